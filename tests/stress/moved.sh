#!/usr/bin/env bash
# Recovery never makes less: folders that are moved while a trace grows in them, journals that say less than the file holds, claims that lead to nothing.
# shellcheck disable=SC2016,SC2034 # words for inner shells, and what they mean
. "$SRC/tests/harness/cli.sh"
export STAVE_SESSION_DIR=$TMP/sessions XDG_RUNTIME_DIR=$TMP/run STAVE_FULL=block
mkdir -m 700 "$STAVE_SESSION_DIR" "$XDG_RUNTIME_DIR"
numbers=$BUILD/tests/stress/numbers
quick=() # without the kernel's side also for root: it takes a moment to load
[ "$(id -u)" != 0 ] || quick=(setpriv --bounding-set=-all --inh-caps=-all)
record=("${quick[@]}" "$STAVE" record -q --no-summary --only sdk)
count() { "$STAVE" cat -q "$1" | grep -c 'seq='; }
whole() { sed -n 's/^whole 0*//p' "$1"; }
mkfifo go

# ---- stave record, its folder moved ----
# moved NAME BACK: 20,000 events before the move and 20,000 after it
moved() {
  local d=$1
  mkdir "$1"
  "${record[@]}" -o "$1/a.pftrace" -- sh -c '"$0" 1 20000 progress && read line <go && "$0" 1 20000 progress' "$numbers" >"$1.out" 2>"$1.err" & recorder=$!
  until_true '[ "$(whole "$d/a.pftrace.session")" -gt 100000 ] && [ "$(od -A n -t u8 -N 8 progress)" -eq 20000 ]'
  mv "$1" "$1.moved"; echo >go
  wait $recorder; check "$1_exit" test $? = 4
  [ -z "$2" ] || mv "$1.moved" "$1"
}
moved record ''
check record_says grep -q 'record/a.pftrace: cannot rename the finished file to its name: .*; it is kept as .part: stave recover record/a.pftrace' record.err
check record_journal test "$(whole record.moved/a.pftrace.session)" -gt 1000000
cd record.moved || exit 2
run_any record_dry 0 "$STAVE" recover --dry-run a.pftrace
check record_dry_says grep -q 'would be written to .*/record.moved/a.pftrace: 5,000 slices, 40,000 instants' "$TMP/record_dry.out"
check record_dry_removes grep -q '^  the above would be removed when the trace has been read back and counted' "$TMP/record_dry.out"
run_any record_dry_kept 0 "$STAVE" recover --dry-run --keep a.pftrace
run_any record_dry_out 0 "$STAVE" recover --dry-run -o - a.pftrace # nobody can read that again
for name in kept out; do check "record_dry_${name}_keeps" grep -q '^  the above would be kept' "$TMP/record_dry_$name.out"; done
check record_dry_changes_nothing test "$(ls | paste -sd' ')" = 'a.pftrace.part a.pftrace.session'
run_any record_recovered 0 "$STAVE" recover a.pftrace
cd .. || exit 2
check record_all test "$(count record.moved/a.pftrace)" = 40000
check record_nothing_left test "$(ls record.moved)" = a.pftrace -a -z "$(ls -A "$STAVE_SESSION_DIR")"
moved back back; check back_is_there test -s back.moved/a.pftrace.part -o -s back/a.pftrace.part
run_any back_recovered 0 "$STAVE" recover back/a.pftrace
check back_all test "$(count back/a.pftrace)" = 40000

# ---- a program with libstave, its folder moved; and after chroot() ----
sdk() { # NAME ARG...: the folder NAME is moved in the middle, or the program changes its root
  local d=$1
  mkdir "$1"; mkfifo "$1.in"
  STAVE_OUT=$1/a.pftrace "$BUILD/tests/stress/held" 20000 "${@:2}" <"$1.in" >"$1.out" 2>"$1.err" & pid=$!
  exec 7>"$1.in"
  until_true 'grep -q half "$d.out"'
  [ $# -gt 1 ] || mv "$1" "$1.moved"
  echo >&7; exec 7>&-
  wait $pid; check "$1_exit" test $? = 0
}
# The library finds its file where it is now, and its writer keeps the root directory that it had.
sdk program
check program_says_nothing test ! -s program.err
check program_all test "$(count program.moved/a.pftrace)" = 40000
check program_nothing_left test "$(ls program.moved)" = a.pftrace -a -z "$(ls -A "$STAVE_SESSION_DIR")"
if [[ $BUILD = *tsan ]]; then skip rooted "with ThreadSanitizer the writer has no table of descriptors and root directory of its own"
elif [ "$(id -u)" = 0 ]; then
  mkdir jail; sdk rooted jail
  check rooted_all test "$(count rooted/a.pftrace)" = 40000
  check rooted_nothing_left test "$(ls rooted)" = a.pftrace -a -z "$(ls -A "$STAVE_SESSION_DIR")"
else skip rooted "chroot() needs root"; fi

# ---- a journal that says less than the file holds ----
# kept NAME [OPTION]...: what a killed recorder leaves, with 20,000 events
kept() {
  local d=$1
  "${record[@]}" "${@:2}" -o "$1.pftrace" -- sh -c '"$0" 1 20000 progress && read line <go' "$numbers" >out 2>err & recorder=$!
  until_true '[ "$(od -A n -t u8 -N 8 progress)" -eq 20000 ] && [ "$(count "$d.pftrace.part")" = 20000 ]'
  kill -9 $recorder; wait $recorder 2>/dev/null; echo >go
  until_true '! "$STAVE" recover 2>/dev/null | grep -q running'
}
kept zero; sed -i 's/^whole .*/whole 00000000000000000000/' zero.pftrace.session
rm -r "$(sed -n 's/^session //p' zero.pftrace.session)"
run_any zero_recovered 0 "$STAVE" recover zero.pftrace
check zero_all test "$(count zero.pftrace)" = 20000

# ---- claims that lead to nothing make no file ----
kept bare; rm -r bare.pftrace.part "$(sed -n 's/^session //p' bare.pftrace.session)"
echo precious >bare.pftrace
run_any bare_removed 0 "$STAVE" recover bare.pftrace
check bare_no_file test "$(echo bare*)" = 'bare.pftrace bare_removed.err bare_removed.out' -a "$(cat bare.pftrace)" = precious
kept gone; rm gone.pftrace.part # its session is there and holds nothing more
run_any gone_removed 0 "$STAVE" recover gone.pftrace
check gone_no_file test "$(echo gone.*)" = 'gone.*' -a -z "$(ls -A "$STAVE_SESSION_DIR")"

# ---- what cannot be counted stays ----
kept stays
mkfifo stays_pipe.pftrace; cat stays_pipe.pftrace >stays.copy & copies=$!
run_any stays_out 0 "$STAVE" recover stays.pftrace -o stays_pipe.pftrace
wait $copies
check stays_kept test -s stays.pftrace.part -a -s stays.pftrace.session -a "$(count stays.copy)" = 20000
check stays_says grep -q 'what was left is kept, since the result cannot be read back' stays_out.err
# A disk that loses what was written: the result is empty when it is read back.
printf '%s\n' '#include <stdio.h>' '#include <string.h>' '#include <unistd.h>' '#include <sys/syscall.h>' \
  'int rename(const char *a, const char *b) { if (strstr(a, ".tmp") && strstr(b, "stays")) if (truncate(a, 200)) return -1;' \
  '  return (int)syscall(SYS_rename, a, b); }' >lossy.c
case $BUILD in
*asan | *tsan) skip less "the sanitizer is between the program and the shim" ;;
*)
  ${CC:-cc} -shared -fPIC -o lossy.so lossy.c || not_ok "a library that is compiled"
  run_any less 4 env LD_PRELOAD="$PWD/lossy.so" "$STAVE" recover stays.pftrace
  check less_says grep -qE 'stays.pftrace: it would hold only [0-9,]+ of 2,500 slices of .*/stays.pftrace.part; nothing was removed' less.err
  check less_all_stays test -s stays.pftrace.part -a -s stays.pftrace.session -a ! -e stays.pftrace ;;
esac
run_any stays_recovered 0 "$STAVE" recover stays.pftrace
check stays_all test "$(count stays.pftrace)" = 20000 -a ! -e stays.pftrace.part
