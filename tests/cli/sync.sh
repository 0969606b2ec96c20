#!/usr/bin/env bash
# stave sync and stave record --sync without privileges: what is refused, peers that lie, ranks of one host. tests/system/sync.sh has real offsets.
. "$SRC/tests/harness/cli.sh"
peer() { python3 "$SRC/tests/cli/sync_peer.py" "$@"; }
MASK='s/127\.0\.0\.1:[0-9]*/ADDRESS/g'

# start_peer KIND [OFFSET]: a server in the background, its address in $address
start_peer() {
  rm -f fifo; mkfifo fifo
  peer server "$1" token "${2:-0}" >fifo 2>peer.err & peer_pid=$!
  read -r address <fifo
}
wait_for() { for _ in {1..1200}; do if "$@"; then return 0; fi; sleep 0.05; done; return 1; }

# ---- what is refused ----

run no_token_file 2 "$STAVE" sync 127.0.0.1:1
run no_address 2 "$STAVE" sync --token-file token
head -c 16 /dev/zero | od -An -tx1 | tr -d ' \n' >token; echo >>token; chmod 644 token
run token_others_can_read 3 "$STAVE" sync 127.0.0.1:1 --token-file token
chmod 600 token
run nobody_there 4 "$STAVE" sync 127.0.0.1:1 --token-file token
run no_port 2 "$STAVE" sync 127.0.0.1 --token-file token
run not_a_time 2 "$STAVE" sync 127.0.0.1:1 --token-file token --for soon
echo rubbish >bad; chmod 600 bad
run not_a_token 3 "$STAVE" sync 127.0.0.1:1 --token-file bad
run record_without_a_launcher 2 env -u RANK -u WORLD_SIZE -u OMPI_COMM_WORLD_RANK -u PMIX_RANK -u PMI_RANK -u SLURM_PROCID "$STAVE" record --sync -o x.pftrace -- true
run address_without_sync 2 "$STAVE" record --sync-address 127.0.0.1 -o x.pftrace -- true

# ---- the other host ----

start_peer good 10000000
run_any measured 0 "$STAVE" sync "$address" --token-file token --for 300ms -o far.relation
wait $peer_pid
check peer_was_content test ! -s peer.err
# bounds FILE TRUE_NS: every round has the true offset in it, and is narrower than 20 ms
bounds() { python3 -c '
import json, sys
r = json.load(open(sys.argv[1]))["rounds"]
sys.exit(0 if len(r) >= 2 and all(low <= int(sys.argv[2]) <= high < low + 20000000 for at, low, high in r) else 1)' "$@"; }
check true_offset_is_within_the_bound bounds far.relation 10000000
check the_result_is_said grep -q 'the clock of far is .* ahead of this one, within .*; drift .* ppm (2 rounds)' measured.err
run nothing_is_overwritten 2 "$STAVE" sync "$address" --token-file token -o far.relation
for kind in short magic endless number backward stop; do
  start_peer $kind
  run "peer_$kind" 4 "$STAVE" sync "$address" --token-file token --for 100ms -o lie.relation
  kill $peer_pid 2>/dev/null; wait $peer_pid 2>/dev/null
done
check a_lie_leaves_no_file test ! -e lie.relation

# ---- the server ----

"$STAVE" sync -q --serve 127.0.0.1 --token-file new.token >serving 2>serving.err & server=$!
wait_for test -s serving; address=$(cat serving)
check token_is_private test "$(stat -c %a new.token)" = 600
check token_has_128_bits grep -qxE '[0-9a-f]{32}' new.token
check wrong_token_gets_nothing test "$(peer guess "$address")" = "b''"
python3 "$SRC/tests/cli/sync_peer.py" strangers "$address" 200 >strangers.out & strangers=$!
wait_for test -s strangers.out
run this_host 2 "$STAVE" sync "$address" --token-file new.token
check strangers_cost_at_most_64_descriptors test "$(printf '%s\n' "/proc/$server/fd/"* | wc -l)" -lt 100
kill $strangers; wait $strangers 2>/dev/null
run a_port_that_is_taken 4 "$STAVE" sync --serve "$address" --token-file new.token --for 1s
kill -TERM $server; wait $server; code=$?
check interrupted_server_ends_well test "$code" = 0

# ---- ranks of one host ----

ranks() { for r in 0 1 2; do RANK=$r WORLD_SIZE=3 "$STAVE" record -q --sync --no-summary --no-io -o job.pftrace -- sleep 0.3 2>"rank$r.err" & done; wait; }
ranks
check all_ranks_recorded test -s job.rank0000.pftrace -a -s job.rank0001.pftrace -a -s job.rank0002.pftrace
check published_file_is_removed test -z "$(find . -name '.stave-sync-*')"
check one_clock_needs_no_relation test "$("$STAVE" info -q --json job.rank0001.pftrace | grep -c clock_relation)" = 0
# A run that was killed leaves its file; the next one takes its place. That of a running job is not touched.
# (A launcher that does not say how many ranks there are: rank 0 waits for nobody at its end.)
alone() { env -u RANK -u WORLD_SIZE PMI_RANK=0 timeout 300 "$STAVE" record -q --sync --no-summary --no-io "$@"; }
# shellcheck disable=SC2016 # for the inner shell
alone -o killed.pftrace -- sh -c 'echo $$ >sleeper; exec sleep 300' 2>/dev/null & killed=$!
wait_for compgen -G '.stave-sync-*' >/dev/null; wait_for test -s sleeper
check published_file_is_private test "$(stat -c %a .stave-sync-*)" = 600
cp .stave-sync-* before
alone -o "../$(basename "$PWD")/other.pftrace" -- true 2>other.err
check another_job_has_another_file cmp -s before .stave-sync-*
# As if rank 0 were on another host.
sed -i 's/ [0-9a-f]\{32\}$/ 00000000000000000000000000000000/' .stave-sync-*
run another_host 0 env -u RANK -u WORLD_SIZE PMI_RANK=1 timeout 300 "$STAVE" record --sync --no-summary --no-io -o killed.pftrace -- sleep 0.2
cp before .stave-sync-*
limit=$(cat "/proc/$killed/task/$killed/children"); recorder=$(cat "/proc/${limit% }/task/${limit% }/children")
# shellcheck disable=SC2086 # pids
kill -KILL $limit $recorder "$(cat sleeper)"; wait $killed 2>/dev/null
rm -f killed*
alone -o killed.pftrace -- true 2>again.err
check what_a_killed_job_left_is_replaced test -z "$(find . -name '.stave-sync-*')" -a ! -s again.err
