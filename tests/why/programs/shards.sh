#!/bin/sh
# A script that makes shards with a pipeline: `shards.sh slow|ok`. slow: the sort in the middle has most of the time.
# It measures with the clock of date, and writes its truth itself.
cd "${WHY_FOLDER:-.}" || exit 1
how=$1
lines=2000
[ "$how" = slow ] && lines=200000
begin=$(date +%s%N)
seq 1 "$lines" | awk '{ print ($1 * 7919) % 1000003 }' > words.txt
all=0 in_sort=0
for i in 1 2 3 4 5 6 7 8; do
    at=$(date +%s%N)
    LC_ALL=en_US.UTF-8 sort --parallel=1 -k1,1 words.txt > "sorted.$i"
    in_sort=$((in_sort + $(date +%s%N) - at))
    cut -c1-3 "sorted.$i" | uniq -c > "shard.$i"
done
all=$(($(date +%s%N) - begin))
share=$(awk "BEGIN { print $in_sort / $all }")
cat > "$WHY_TRUTH" <<END
{"healthy": false, "units": null, "dur_ns": $all, "pid": $$, "allowed": [{"cause": ["child", "pipe"], "share": 1}], "noise": {"cpu": 0.1},
 "causes": [{"cause": ["child"], "share": $share, "culprit": [{"name": "sort"}]}]}
END
