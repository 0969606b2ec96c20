# shellcheck shell=bash
# check_collectives NAME DIR: what stragglers.sql and skew.sql gave for the jobs of make_collectives.py, NAME_stragglers.out and NAME_skew.out, against what was put there and `stave steps`. DIR has the traces.
check_collectives() {
  local job
  for job in apart one; do
    check "${1}_${job}_slow_rank_of_steps" sh -c '[ "$(grep "^$0," "$1_stragglers.out" | cut -d, -f2,4 | grep -c "^[0-9]*,1$")" = 39 ] && [ "$(grep -c "^$0," "$1_stragglers.out")" = 39 ]' $job "$1"
    "$STAVE" steps -q "$2/$job"[0-3].txt --to csv >"steps_$job.out"
    check "${1}_${job}_steps_agree" sh -c '[ "$(grep -c straggler "$0")" = 39 ] && [ "$(grep straggler "$0" | grep -c "rank 1 ")" = 39 ]' "steps_$job.out"
    check "${1}_${job}_last_rank" sh -c '[ "$(grep "^$0," "$1_skew.out" | cut -d, -f9 | sort | uniq -c | xargs)" = "1 39 1" ]' $job "$1"
    check "${1}_${job}_skew" sh -c 'grep "^$0," "$1_skew.out" | awk -F, "\$3 != 7 { n += \$8 > 1800000 && \$8 < 2200000 } END { exit n != 39 }"' $job "$1"
  done
  check "${1}_methods" sh -c '[ "$(grep -E "^(apart|one)," "$0_skew.out" | cut -d, -f1,10 | sort | uniq -c | xargs)" = "1 apart, 39 apart,durations 40 one,begins" ]' "$1"
}
