# shellcheck shell=bash
# For tests of the kernel's side of stave record, behind cli.sh: needs root (or the capabilities) and a kernel with BTF.
# equals NAME IS EXPECTED; ask TRACE SQL: the rows of the answer.
# shellcheck disable=SC2034 # play: for the scripts
[ "$(id -u)" = 0 ] || skip_all "needs root: the kernel's side of stave record"
if ! "$STAVE" record --strict -q -o probe.pftrace -- true 2>probe.err; then
  # What the machine refuses is skipped; whatever else keeps us from recording is a failure.
  grep -qE 'not permitted|no type information|not supported|not implemented|built without' probe.err && skip_all "no eBPF here: $(cat probe.err)"
  cat probe.err; not_ok probe; exit 1
fi
play=$BUILD/tests/system/play

equals() { [ "$2" = "$3" ] || echo "  $1: '$2', expected '$3'"; check "$1" test "$2" = "$3"; }
ask() { "$STAVE" query -q --to csv "$1" "$2" | tail -n +2; }
