#!/usr/bin/env bash
# What somebody without root has in a container: from an empty environment with the wheel to the sentence about what is slow, one command each; the same as root. The box is that of
# tests/harness/box.sh, and the wheel is all that is there of Stave.
. "$SRC/tests/harness/cli.sh"
. "$SRC/tests/harness/box.sh"
case $BUILD in */build) ;; *) skip_all "wheels have a build of their own: tested once, with the release build" ;; esac
why=$(box_why_not)
[ -z "$why" ] || skip_all "$why"
[ -f "$BUILD/python/interpreter" ] || skip_all "Python's headers are absent (package python3-dev)"
python=$(cat "$BUILD/python/interpreter")
"$python" -c 'import pip, venv' 2>/dev/null || skip_all "$python has no pip and venv (packages python3-pip and python3-venv)"
unset PYTHONPATH
export PIP_CONFIG_FILE=/dev/null PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONNOUSERSITE=1
mkdir box; chmod 777 box; chmod a+rx .
boxed true 2>box.err || skip_all "cannot make the box: $(cat box.err)"
plant

check makes_wheel "$python" "$SRC/tools/make-wheel" --reuse "$python"
wheels=("$SRC"/build-wheel/dist/*-manylinux_*.whl)
cp "${wheels[0]}" . # the tree itself is not looked at from here on
"$python" -m venv --without-pip fresh
check installs "$python" -m pip --python fresh/bin/python install -q --no-index ./*.whl
chmod -R a+rX fresh
stave=$TMP/fresh/bin/stave own_python=$TMP/fresh/bin/python
has_kernel() { "$stave" doctor 2>&1 | grep -q '^ok  stave record .* here: kernel programs'; }
for name in $planted; do
  boxed "$stave" record -o "$name.pftrace" -- "$own_python" "$name.py" >"$name.said" 2>&1
  check "${name}_in_the_box" says "$name" "$name.said"
  if ! has_kernel; then skip "${name}_as_root" 'no kernel programs here'; continue; fi
  (cd box && "$stave" record -o "$name.root.pftrace" -- "$own_python" "$name.py") >"$name.root" 2>&1
  check "${name}_as_root" says "$name" "$name.root"
done
boxed "$own_python" -m stave record -q --explain -o by_python.pftrace -- lock.py >by_python 2>&1
check lock_by_python says lock by_python
# The rest of what is said: a line of what was recorded here, and the way to look closer.
check says_what_is_recorded grep -q 'recorded instead: ' lock.said
check says_how_to_look_closer grep -q '^Look closer: stave explain lock.pftrace' lock.said
looks_closer() { boxed "$stave" explain lock.pftrace | grep -q 'refresh_cache()'; }
check looks_closer looks_closer
