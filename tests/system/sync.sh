#!/usr/bin/env bash
# Clocks that are really 10 ms apart: ranks in time namespaces (tests/system/timens.c), related by pings. Their true offset is known, and their wall clock,
# which no namespace moves, is one: what merge makes of the ranks can be compared with it.
. "$SRC/tests/harness/cli.sh"
timens=$BUILD/tests/system/timens
[ -x "$timens" ] || skip_all "tests/system/timens is not built"
"$timens" 0 true 2>/dev/null || skip_all "time namespaces are not possible here (they need root, Linux 5.6)"

# run_ranks DIR LAUNCHER: three ranks; the second is 10 ms ahead of the first, the third 10 ms behind
cat >rank.sh <<'END'
offsets=(0 10000000 -10000000)
exec "$timens" "${offsets[${RANK:-$OMPI_COMM_WORLD_RANK}]}" "$STAVE" record -q --sync --no-summary --no-io -o "$1/job.pftrace" -- sleep 0.4
END
export timens STAVE
by_variables() { for r in 0 1 2; do RANK=$r WORLD_SIZE=3 bash rank.sh "$1" & done; wait; }
by_mpirun() { env -u RANK OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun --oversubscribe -n 3 bash "${2:-rank.sh}" "$1"; }

# judge DIR: all rounds of all ranks have the true offset; and merged as if they were three hosts without wall clocks, each rank's events are where the
# wall clock says, to within the bound that the merged file states.
cat >judge.py <<'END'
import csv, io, json, os, subprocess, sys
stave, folder = os.environ["STAVE"], sys.argv[1]
def ask(file, sql):
    return list(csv.reader(io.StringIO(subprocess.run([stave, "query", "-q", file, sql], check=True, capture_output=True, text=True).stdout)))[1:]
files = ["%s/job.rank%04d.pftrace" % (folder, r) for r in range(3)]
for rank, offset in (1, 10000000), (2, -10000000):
    relation = json.loads(ask(files[rank], "select str_value from metadata where name = 'clock_relation'")[0][0])
    assert len(relation["rounds"]) >= 2, "rounds at the start and at the end"
    for at, low, high in relation["rounds"]:
        assert low <= -offset <= high, ("the true offset is within the round", rank, low, high)
        assert high - low < 5000000, ("a round says something", low, high)
where = "select min(ts), to_realtime(min(ts)) from counter"
own = [[int(x) for x in ask(f, where)[0]] for f in files]
hosts = []
for rank, file in enumerate(files):
    text = subprocess.run([stave, "cat", "-q", file], check=True, capture_output=True, text=True).stdout
    boot = ask(file, "select str_value from metadata where name = 'boot_id'")[0][0]
    lines = []
    for line in text.splitlines():
        if line.startswith("snapshot") and rank > 0:
            continue
        lines.append(line.replace(boot, "%08d" % rank + boot[8:], 1) if rank else line)
    hosts.append("%s/host%d.txt" % (folder, rank))
    open(hosts[-1], "w").write("\n".join(lines) + "\n")
subprocess.run([stave, "merge", "-q", *hosts, "-o", folder + "/hosts.pftrace"], check=True)
axis = json.loads(ask(folder + "/hosts.pftrace", "select str_value from metadata where name = 'clock_axis'")[0][0])
bounds = [h["bound_ns"] for h in axis["first_hosts"]]
assert [h["by"] for h in axis["first_hosts"]] == ["its own clock", "pings", "pings"], axis
merged = ask(folder + "/hosts.pftrace", "select min(c.ts), to_realtime(min(c.ts)), machine_id from counter c join counter_track t on t.id = c.track_id group by machine_id order by machine_id")
assert len(merged) == 3, merged
for rank, (ts, real, machine) in enumerate(merged):
    off = int(real) - own[rank][1]
    print("rank %d: %d ns off, stated bound %d ns" % (rank, off, bounds[rank]))
    assert abs(off) <= bounds[rank] + 1000, "the events are where the wall clock says"
assert axis["between_hosts_ns"] is not None and axis["between_hosts_ns"] < 10000000, axis
END

mkdir plain; check ranks_by_variables by_variables plain
check true_offset_is_within_the_bound python3 judge.py plain
run_any one_machine 0 "$STAVE" merge plain/job.rank*.pftrace -o plain/one.pftrace
check namespaces_of_one_machine_need_no_pings grep -q 'converted to the common clock (.*boottime to realtime, uncertain by' one_machine.err
if command -v mpirun >/dev/null; then
  mkdir mpi; check ranks_by_mpirun by_mpirun mpi
  check true_offset_is_within_the_bound_under_mpirun python3 judge.py mpi
else
  skip under_mpirun "there is no mpirun"
fi

# The estimate from collectives of a real MPI program is nearer to the truth than the offsets are apart; nothing better is promised.
library=$BUILD/libstave-mpi.so play=$BUILD/tests/inject/mpi_play
if [ -z "${STAVE_LONG:-}" ]; then
  skip collectives_of_mpi "only with STAVE_LONG=1"
elif [ -e "$library" ] && [ -x "$play" ] && command -v mpirun >/dev/null; then
  sed "s|--no-io|--no-io --no-block --no-page-cache --inject mpi|; s|-- sleep 0.4|-- $play 20|; s|--sync ||" rank.sh >rank_mpi.sh
  mkdir sessions calls
  export STAVE_SESSION_DIR=$TMP/sessions OMPI_MCA_btl_vader_single_copy_mechanism=none
  check ranks_of_mpi by_mpirun calls rank_mpi.sh
  cat >estimate.py <<'END'
import csv, io, os, subprocess
stave = os.environ["STAVE"]
def ask(file, sql):
    return list(csv.reader(io.StringIO(subprocess.run([stave, "query", "-q", file, sql], check=True, capture_output=True, text=True).stdout)))[1:]
hosts, own = [], []
for rank in range(3):
    file = "calls/job.rank%04d.pftrace" % rank
    own.append(int(ask(file, "select to_realtime(min(ts)) from slice where category = 'collective'")[0][0]))
    boot = ask(file, "select str_value from metadata where name = 'boot_id'")[0][0]
    lines = subprocess.run([stave, "cat", "-q", file], check=True, capture_output=True, text=True).stdout.splitlines()
    hosts.append("calls/host%d.txt" % rank)
    open(hosts[-1], "w").write("\n".join(l.replace(boot, "%08d" % rank + boot[8:]) if rank else l for l in lines if rank == 0 or not l.startswith("snapshot")) + "\n")
subprocess.run([stave, "merge", "-q", *hosts, "--align", "collectives", "-o", "calls/all.pftrace"], check=True)
for rank, real in ask("calls/all.pftrace", "select k.rank, to_realtime(min(s.ts)) from slice s join track k on k.id = s.track_id where s.category = 'collective' group by 1 order by 1"):
    off = int(real) - own[int(rank)]
    print("rank %s: %d ns off" % (rank, off))
    assert abs(off) < 5000000
END
  check estimate_from_collectives python3 estimate.py
else
  skip collectives_of_mpi "no libstave-mpi.so or no mpirun"
fi

# Two hosts without a launcher.
"$STAVE" sync -q --serve 127.0.0.1 --token-file token >serving & server=$!
for _ in {1..100}; do if [ -s serving ]; then break; fi; sleep 0.05; done
"$timens" -10000000 "$STAVE" sync -q "$(cat serving)" --token-file token --for 200ms -o behind.relation
kill $server; wait $server
check stave_sync_finds_the_true_offset python3 -c 'import json
r = json.load(open("behind.relation"))
assert len(r["rounds"]) == 2 and all(low <= 10000000 <= high < low + 5000000 for at, low, high in r["rounds"]), r'

# A rank that is killed has the relation as far as it was measured.
RANK=0 WORLD_SIZE=2 "$STAVE" record -q --sync --no-summary --no-io -o killed.pftrace -- sh -c 'until [ -e killed ]; do sleep 0.1; done' & first=$!
RANK=1 WORLD_SIZE=2 "$timens" 10000000 "$STAVE" record -q --sync --no-summary --no-io -o killed.pftrace -- sleep 60 & second=$!
children() { cat "/proc/$1/task/$1/children" 2>/dev/null; }
for _ in {1..600}; do if grep -aqs stave_relation killed.rank0001.pftrace.part; then break; fi; sleep 0.05; done
recorder=$(children $second); sleeper=$(children "${recorder% }")
# shellcheck disable=SC2086 # pids
kill -KILL $recorder $sleeper; wait $second 2>/dev/null; touch killed; wait $first
"$STAVE" recover -q killed.rank0001.pftrace 2>/dev/null
check relation_survives_a_kill grep -q '"stave_relation' <("$STAVE" query -q killed.rank0001.pftrace "select str_value from metadata where name = 'clock_relation'")

# What the kernel says in a time namespace is on the recorder's clock.
if "$timens" 5000000000 "$STAVE" record -q --strict --no-summary -o moved.pftrace -- ls / >/dev/null 2>&1; then
  check kernel_events_are_on_the_same_clock test "$("$STAVE" query -q moved.pftrace "select max(ts) - min(ts) < 4000000000 and count(*) > 10 as ok from slice" | tail -1)" = 1
  check and_beside_the_samples test "$("$STAVE" query -q moved.pftrace "select abs((select min(ts) from counter) - (select min(ts) from slice)) < 4000000000 as ok" | tail -1)" = 1
else
  skip kernel_events "eBPF is not possible here"
fi
