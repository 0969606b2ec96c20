#!/bin/sh
# A script that runs a pipeline whose middle stage is slow; the shell waits for the first one first.
# It measures with the clock of date, and writes its truth itself.
here=$(dirname "$0")
begin=$(date +%s%N)
for _ in 1 2 3; do
    seq 200000 | python3 "$here/limited.py" | cksum > /dev/null
done
all=$(($(date +%s%N) - begin))
cat > "$WHY_TRUTH" <<END
{"healthy": false, "units": null, "dur_ns": $all, "pid": $$, "allowed": [], "noise": {"cpu": 0.1},
 "causes": [{"cause": ["child", "pipe"], "share": 0.95, "culprit": [{"function": "keep_to_the_rate"}]}]}
END
