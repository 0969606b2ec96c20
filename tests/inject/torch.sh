#!/usr/bin/env bash
# --inject torch: a training script that an unchanged Python runs under `stave record`, with the stand-in for PyTorch; in the long suite with PyTorch itself.
. "$SRC/tests/harness/cli.sh"
[ -f "$BUILD/python/interpreter" ] || skip_all "the Python package was not built (python3-dev is absent)"
python=$(cat "$BUILD/python/interpreter")
case $BUILD in *san) skip_all "the interpreter is not instrumented" ;; esac
unset PYTHONPATH
export STAVE_SESSION_DIR=$TMP/sessions PYTHONDONTWRITEBYTECODE=1 PYTHONNOUSERSITE=1
mkdir -p "$STAVE_SESSION_DIR" other
ask() { "$STAVE" query -q --to csv "$1" "$2" | tail -n +2; }
equals() { check "$1" test "$2" = "$3"; }

cat >train.py <<'END'
import sys, torch
from torch.utils.data import DataLoader
real = hasattr(torch, "__version__")
net = torch.nn.Linear(1, 1) if real else torch.nn.Linear()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1) if real else torch.optim.SGD([])
for batch in DataLoader([float(i) for i in range(6)], batch_size=2, num_workers=1):
    out = net(batch.float().reshape(-1, 1) if real else torch.Tensor())
    (out.sum() if real else out).backward()
    optimizer.step()
print("sitecustomize of others:", "hidden" in sys.argv or getattr(sys, "was_customized", False))
END
echo 'import sys; sys.was_customized = True' >other/sitecustomize.py

# trained NAME: three steps, with the batches of a worker
trained() {
  equals "$1_steps" "$(ask "$1.pftrace" "SELECT group_concat(name, ' ') FROM slice WHERE category = 'step'")" "ProfilerStep#0 ProfilerStep#1 ProfilerStep#2"
  equals "$1_slices" "$(ask "$1.pftrace" "SELECT count(*) FROM slice WHERE category IN ('torch.forward', 'torch.optimizer') OR name = 'backward'")" 9
  equals "$1_arrows" "$(ask "$1.pftrace" "SELECT count(*) FROM flow f JOIN slice o ON o.id = f.slice_out JOIN slice i ON i.id = f.slice_in WHERE o.name = 'dataloader fetch' AND i.name = 'dataloader batch'")" 3
  check "$1_valid" "$STAVE" validate -q "$1.pftrace"
}
run_any small 0 env PYTHONPATH="$PWD/other:$SRC/tests/python/stand_in" "$STAVE" record -q --inject torch -o small.pftrace -- "$python" train.py
check small_ran_the_other_sitecustomize grep -qx 'sitecustomize of others: True' small.out
trained small

# A Python without torch does not load stave; one without the package says so and runs on.
run_any without 0 "$STAVE" record -q --inject torch -o without.pftrace -- "$python" -c 'import sys; print("stave" in sys.modules)'
check without_torch grep -qx False without.out
# Threads of Python have their names in the kernel, and with them in the trace; the first one keeps its own.
cat >names.py <<'END'
import threading
def comm(): return open(f"/proc/self/task/{threading.get_native_id()}/comm").read().strip()
def load(): print(comm())
for name in None, "saver", "a name of many letters":
    t = threading.Thread(target=load, name=name); t.start(); t.join()
print(comm())
END
run_any names 0 "$STAVE" record -q --inject torch -o names.pftrace -- "$python" names.py
if "$python" -c 'import sys; sys.exit(sys.version_info >= (3, 14))'; then
  check names_in_the_kernel diff <(printf '%s\n' load saver 'a name of many') <(head -n 3 names.out)
  check names_first_thread grep -q '^python' <(tail -n 1 names.out)
fi

mkdir -p alone && cp -r "$BUILD/stave-torch" alone/
run_any absent 0 env STAVE_INJECT_DIR="$PWD/alone" PYTHONPATH="$SRC/tests/python/stand_in" "$STAVE" record -q --inject torch -o absent.pftrace -- "$python" -c 'import torch; print(torch.Tensor.__name__)'
if ! "$python" -c 'import stave' 2>/dev/null; then
  check absent_runs grep -qx Tensor absent.out
  check absent_says grep -q "stave: --inject torch: .* has no usable package stave .*torch is not traced: pip install stave" absent.err
fi

if [ -n "${STAVE_LONG:-}" ]; then
  if "$python" -c 'import torch' 2>/dev/null; then
    run_any real 0 "$STAVE" record -q --inject torch -o real.pftrace -- "$python" train.py hidden
    trained real
  else
    echo "skip real: no PyTorch here (package python3-torch)"
  fi
fi
