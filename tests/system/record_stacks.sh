#!/usr/bin/env bash
# Stacks of stave record --sample against programs whose call tree is known: C without frame pointers, Python with its own word on its frames.
# Needs root (or the capabilities) and a kernel with BTF. Counts shares of samples, never times. With STAVE_LONG=1 NumPy and PyTorch, and longer.
. "$SRC/tests/harness/cli.sh"
. "$SRC/tests/harness/kernel.sh"
stacks=$BUILD/tests/system/stacks seconds=1; [ -z "${STAVE_LONG:-}" ] || seconds=10

# folded NAME WORD…: records the command; its call paths are in NAME.folded.
folded() {
  local name=$1; shift
  run_any "$name" 0 "$STAVE" record --no-block --no-page-cache --interval 0 --sample 997 ${how:+--stacks "$how"} -o "$name.pftrace" -- "$@"
  "$STAVE" export -q "$name.pftrace" --to folded -o "$name.folded"
}
# sum FILE PATTERN: samples whose path matches.
sum() { awk -v p="$2" '$0 ~ p { s += $NF } END { print s + 0 }' "$1"; }
# share NAME FILE PATTERN OF: at least 95 % of the samples that match OF match PATTERN, too; there are some.
share() {
  local all part
  all=$(sum "$2" "$4") part=$(awk -v p="$3" -v of="$4" '$0 ~ of && $0 ~ p { s += $NF } END { print s + 0 }' "$2")
  echo "  $1: $part of $all samples"
  [ $((part * 100)) -ge $((all * 95)) ] || awk -v p="$3" -v of="$4" '$0 ~ of && $0 !~ p { print "  other:", $0 }' "$2" | head -n 5
  check "$1" test "$all" -ge 20 -a $((part * 100)) -ge $((all * 95))
}

how=
"$STAVE" record --help all | grep -q 'dwarf' || skip_all "no option --stacks"
run_any can 0 "$STAVE" record -q --strict --sample 99 --stacks dwarf -o can.pftrace -- true || skip_all "no unwinding here: $(cat can.err)"
run_any bad_way 2 "$STAVE" record -q --sample 99 --stacks magic -o x.pftrace -- true
check bad_way_said grep -q "'magic' is none of dwarf, fp and none" bad_way.err

# ---- C without frame pointers ----
# Where a thread starts: a function of the C library that has a name only with its debug information.
start='(_*clone3?|[[]libc[^;]*[+]0x[0-9a-f]+[]])'
tree='descend .*;descend .*;descend .*;descend .*;descend .*;descend .*;descend .*;descend .*;.*compare .*;inlined .*;leaf '
folded tree "$stacks" tree $((seconds * 150))
share tree_reaches_main tree.folded "_start;.*;main .*;$tree" ';leaf '
# Of the program itself: the kernel and the loader take as long as the machine lets them.
grep -vE '_\[k\]|ld-linux|;_dl_' tree.folded >tree.running
share tree_is_most tree.running ';leaf ' .
check tree_has_lines grep -qE '"leaf \(stacks\.c:[0-9]+\)"' <("$STAVE" cat -q tree.pftrace)
folded thread "$stacks" thread $((seconds * 150))
share thread_reaches_start thread.folded "$start.*;run_thread .*;$tree" ';leaf '
folded signal "$stacks" signal $((seconds * 150))
share signal_reaches_main signal.folded '_start;.*;main .*;.*(raise|gsignal|[[]libc[^;]*[]]).*;on_signal .*;.*leaf ' ';leaf '
folded deep "$stacks" deep $((seconds * 150)) # what is not in the copy is said, not guessed
share deep_is_cut deep.folded '[[]cut: the stack is deeper than 64 KiB[]];.*leaf ' ';leaf '
check deep_names_no_main test "$(sum deep.folded ';main ')" = 0

# Without its symbols no name is invented, and one line says why. Of the samples in the program itself: a new file is read from the disk by the kernel.
cp "$stacks" stripped && strip stripped
folded stripped ./stripped tree $((seconds * 150))
share stripped_has_places stripped.folded '__libc_start_main.*;[[]stripped[+]0x[0-9a-f]+[]] ' '[[]stripped[+]0x[0-9a-f]+[]] [0-9]+$'
check stripped_names_nothing test "$(sum stripped.folded 'leaf|descend|compare')" = 0
check stripped_said grep -q 'frames in .* without symbols have no names: .*\[stripped\]' stripped.err

# Debug information in a file of its own: taken when the build id is the same, otherwise left alone.
mkdir .debug; objcopy --only-keep-debug "$stacks" .debug/stripped.debug
objcopy --add-gnu-debuglink=.debug/stripped.debug stripped linked
if readelf -n linked | grep -q 'Build ID'; then
  folded linked ./linked tree $((seconds * 150))
  share linked_has_names linked.folded "_start;.*;main .*;$tree" ';leaf |[[]linked[+]0x[0-9a-f]+[]] [0-9]+$'
  cp "$SRC"/tests/system/stacks.c other.c; echo 'int another_build;' >>other.c
  gcc -O2 -g -pthread -Wl,--build-id other.c -o other && objcopy --only-keep-debug other .debug/stripped.debug
  folded other_build ./linked tree $((seconds * 150))
  check other_build_names_nothing test "$(sum other_build.folded 'leaf|descend|compare')" = 0
  # A file for debuggers that has symbols only.
  gcc -O2 -pthread -Wl,--build-id other.c -o bare && objcopy --only-keep-debug bare .debug/bare.debug && strip bare && objcopy --add-gnu-debuglink=.debug/bare.debug bare
  folded bare ./bare tree $((seconds * 150))
  share bare_has_names bare.folded '_start;.*;main;.*;descend;.*compare;.*leaf ' 'leaf [0-9]+$|[[]bare[+]0x[0-9a-f]+[]] [0-9]+$'
else skip linked "the linker makes no build ids"; fi

# ---- Python ----
# chains FILE THREAD: the Python functions of the samples of a thread, outermost first, with their number.
chains() {
  awk -v thread="$2" '{ n = $NF; sub(/ [0-9]+$/, "") } { k = split($0, f, ";"); if (f[1] != thread) next; path = ""
    for (i = 2; i <= k; i++) if (f[i] ~ / \([^ ()]*\.py\)$/) { sub(/ \([^ ()]*\)$/, "", f[i]); path = path (path == "" ? "" : ";") f[i] }
    print n, path }' "$1"
}
# python_share NAME FILE THREAD: at least 95 % of the thread's samples are in a chain that the program itself has seen, or in a caller of it.
python_share() {
  local all part
  read -r part all < <(awk 'NR == FNR { path = ""; k = split($0, f, ";"); for (i = 1; i <= k; i++) { path = path (i > 1 ? ";" : "") f[i]; seen[path] = 1 } next } { n = $1; sub(/^[0-9]+ /, ""); all += n; if ($0 in seen) part += n } END { print part + 0, all + 0 }' seen.txt <(chains "$2" "$3"))
  echo "  $1: $part of $all samples"
  check "$1" test "$all" -ge 20 -a $((part * 100)) -ge $((all * 95))
}
python=/usr/bin/python3
if [ "$("$python" -c 'import sys; print(sys.version_info[:2])' 2>&1)" = "(3, 11)" ]; then
  folded python "$python" "$SRC/tests/system/stacks.py" $seconds seen.txt
  for thread in train load; do
    python_share "python_$thread" python.folded "$thread"
    share "python_${thread}_reaches_start" python.folded "^[^;]*;$start" "^$thread;"
  done
  # What is called by sorted() has native frames of sorted() around it, and no loop of the interpreter is left.
  share python_native_between python.folded 'train [(]stacks.py[)];[^;]*[^)];.*;train.<locals>.<lambda> [(]stacks.py[)]' '^train;.*<lambda>'
  check python_no_loop_left test $(($(sum python.folded '^train;.*<lambda>.*_PyEval_EvalFrameDefault') * 20)) -le "$(sum python.folded '^train;.*<lambda>')"
  line=$(grep -n 'return self.forward' "$SRC/tests/system/stacks.py" | cut -d: -f1)
  check python_line grep -q "\"Model.step (stacks.py:$line)\"" <("$STAVE" cat -q python.pftrace)
  if [ -z "${STAVE_LONG:-}" ]; then skip python_numpy_and_fp "only with STAVE_LONG=1"
  elif "$python" -c 'import numpy' 2>/dev/null; then
    how=fp
    folded python_fp "$python" "$SRC/tests/system/stacks.py" 1 seen.txt
    python_share python_fp_train python_fp.folded train
    how=
    OPENBLAS_NUM_THREADS=1 folded numpy "$python" "$SRC/tests/system/stacks.py" 20 seen.txt numpy
    for thread in train load blas ufunc; do
      python_share "numpy_$thread" numpy.folded "$thread"
      share "numpy_${thread}_reaches_start" numpy.folded "^[^;]*;$start|has no unwind information" "^$thread;"
    done
  else skip python_numpy "no numpy"; fi
else skip python "no CPython 3.11 as $python"; fi
