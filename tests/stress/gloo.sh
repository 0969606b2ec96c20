#!/usr/bin/env bash
# Four ranks of torch.distributed (gloo) by environment variables alone, each below its own recorder: a whole file per rank, named and described by it; one axis after a merge. Needs Debian's
# torch, so it runs with STAVE_LONG=1 only.
. "$SRC/tests/harness/cli.sh"
[ -n "${STAVE_LONG:-}" ] || skip_all "only with STAVE_LONG=1"
python=/usr/bin/python3
"$python" -c 'import torch.distributed as d; assert d.is_gloo_available()' 2>/dev/null || skip_all "no torch with gloo here (package python3-torch)"
export STAVE_SESSION_DIR=$TMP/sessions GLOO_SOCKET_IFNAME=lo OMP_NUM_THREADS=1
mkdir -p "$STAVE_SESSION_DIR"
cat >job.py <<'END'
import os
import torch
import torch.distributed as dist

dist.init_process_group(
    "gloo", init_method="file://" + os.path.abspath("meeting"), rank=int(os.environ["RANK"]), world_size=int(os.environ["WORLD_SIZE"])
)
for step in range(20):
    grad = torch.full((1000,), float(dist.get_rank()))
    dist.all_reduce(grad)
    assert grad[0].item() == sum(range(dist.get_world_size()))
dist.barrier()
raise SystemExit(10 + dist.get_rank())
END
pids=()
for rank in 0 1 2 3; do
  env RANK=$rank WORLD_SIZE=4 LOCAL_RANK=$rank SLURM_JOB_ID=5 "$STAVE" record --no-summary -o gloo.pftrace -- "$python" job.py >"out.$rank" 2>"err.$rank" & pids+=($!)
done
for rank in 0 1 2 3; do
  wait "${pids[$rank]}"; code=$?
  check "rank $rank: the exit code is the command's" test $code = $((10 + rank))
  check "rank $rank: its file is sound" "$STAVE" validate -q "gloo.rank000$rank.pftrace"
done
check "no other files" test "$(find . -maxdepth 1 -name 'gloo*' | wc -l)" = 4
check "rank 0 says the name once" test "$(cat err.* | grep -c 'each rank writes a file of its own')" = 1 -a "$(grep -c 'each rank' err.0)" = 1
check merged "$STAVE" merge -q gloo.rank*.pftrace -o gloo.pftrace
check "who is who" test "$("$STAVE" query -q --to csv gloo.pftrace "SELECT DISTINCT rank, local_rank, world_size, job, launcher FROM process WHERE rank IS NOT NULL ORDER BY 1" | tail -n +2 | paste -sd' ')" = \
  "0,0,4,5,torchrun 1,1,4,5,torchrun 2,2,4,5,torchrun 3,3,4,5,torchrun"
