#!/usr/bin/env bash
# What happens to traced programs (see life.c): every event is in a file or in a counter, and the program does not notice.
set -uo pipefail
# Deadly signals end a program as they do without a sanitizer, whose handlers would print and exit.
no_handlers=handle_segv=0:handle_sigbus=0:handle_sigfpe=0:handle_sigill=0:handle_abort=0
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:$no_handlers TSAN_OPTIONS=${TSAN_OPTIONS:-}:$no_handlers
export STAVE_SESSION_DIR=$TMP/sessions STAVE_FULL=block PLUGIN=$BUILD/tests/stress/plugin.so
mkdir -p "$STAVE_SESSION_DIR"
cd "$TMP" || exit 2

# count FILE NAME: begin and instant events of that name.
count() { "$STAVE" cat -q "$1" 2>>cat.log | grep -cE "(begin|slice|instant) .*\"$2\""; }

# said_losses N: one line with this number; nothing when nothing was lost.
said_losses() {
  if [ "$1" = 0 ]; then [ ! -s err ]; else [ "$(wc -l <err)" = 1 ] && grep -q "^stave: .*: $1 events\? w[a-z]* lost, " err; fi
}

# scene NAME EXIT [PROGRAM]: runs it and compares every `expect` line with the file plus what was lost.
scene() {
  case $BUILD:$1 in
  *tsan:fork* | *tsan:clone) echo "skip life: $1: ThreadSanitizer does not support threads after fork"; return ;;
  *tsan:vfork) echo "skip life: $1: ThreadSanitizer makes vfork() a fork() and holds the child's signal back"; return ;;
  esac
  local name=$1 want=$2 program=${3:-life} code lost file=t.pftrace n what have ok=1 why=
  rm -rf t.* second.*
  { STAVE_OUT=t.pftrace timeout --foreground -s KILL 100 "$BUILD/tests/stress/$program" "$name" >out 2>err; } 2>shell.log # bash names what ended by a signal
  code=$?
  [ $code = "$want" ] || { ok=0; why="exit $code, not $want"; }
  if [ ! -e t.pftrace ] && [ -e t.pftrace.session ]; then
    "$STAVE" recover -q t.pftrace >recover.log 2>&1 || { ok=0; why="$why recover: $(cat recover.log)"; }
  fi
  [ -e $file ] || { ok=0; why="$why no file"; }
  lost=$(sed -n 's/^lost full=\([0-9]*\) nested=\([0-9]*\) ring=\([0-9]*\) output=\([0-9]*\)/\1 + \2 + \3 + \4/p' out | tail -n 1)
  lost=$((${lost:-0}))
  while read -r _ n what; do
    have=$(count $file "$what")
    if [ "$lost" = 0 ] && [ "$have" != "$n" ]; then ok=0; why="$why; $what: $have of $n"; fi
    if [ "$lost" != 0 ] && { [ "$have" -gt "$n" ] || [ $((have + lost)) -lt "$n" ]; }; then
      ok=0; why="$why; $what: $have in the file and $lost lost of $n"; fi
  done < <(grep '^expect' out)
  sed -i '/was not suspended/d' err # LeakSanitizer, in forked children
  if [ "$name" != disk_full ] && ! said_losses "$lost"; then ok=0; why="$why; $lost lost, said: $(head -n 2 err)"; fi
  extra "$name" || ok=0
  if [ $ok = 1 ]; then echo "ok life: $name ($program)"; else echo "not ok life: $name ($program): $why"; fi
}

# What a scene leaves besides the parent's file.
extra() {
  case $1 in
  fork* | clone) [ "$(ls t.* | wc -l)" = 1 ] || { why="$why; left $(echo t.*)"; return 1; } ;;
  restart) [ "$(count second.pftrace child)" = 100 ] || { why="$why; second file"; return 1; } ;;
  disk_full) # ended at its last whole packet, with the number of those that are missing
    [ "$(wc -l <err)" = 1 ] && grep -q 'File too large; further events are lost and counted' err && grep -q 'went on' out && [ "$(count t.pftrace parent)" = 100 ] &&
      [ $(($(count t.pftrace "too much") + $("$STAVE" cat -q t.pftrace | sed -n 's/.* loss .*{\([0-9]*\)}$/\1/p' | awk '{ sum += $1 } END { print sum + 0 }'))) = 200000 ] ||
      { why="$why; said $(cat err), has $(count t.pftrace "too much") $("$STAVE" cat -q t.pftrace | grep ' loss ')"; return 1; } ;;
  esac
}

for name in fork fork_exit fork_quiet fork_busy clone vfork threads churn signals atexit quit restart plugin disk_full; do scene $name 0; done
scene abort 134
scene segv 139
STAVE_FULL=drop scene drop 0
if [ -x "$BUILD/tests/stress/life_static" ]; then
  for name in fork fork_exit threads signals abort plugin; do
    case $name in abort) scene $name 134 life_static ;; *) scene $name 0 life_static ;; esac
  done
fi
# Preloaded into a program that AddressSanitizer watches, which traces, forks and frees.
preload_with_asan() {
  # What the sanitizer says in the child of any program that has a second thread; the rest is ours.
  local asan note='Running thread [0-9]* was not suspended'
  asan=$(${CC:-cc} -print-file-name=libasan.so)
  [ -e "$asan" ] || { echo "skip life: preloaded beside AddressSanitizer: no libasan.so"; return; }
  cat >watched.c <<'END'
#include <stave/stave.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
    for (int i = 0; i < 1000; i++) {
        char *text = malloc(32);
        if (!text) return 1;
        strcpy(text, "on the heap");
        STAVE_SCOPE("life", "watched", "text", text);
        free(text);
    }
    pid_t pid = fork();
    if (pid == 0) { STAVE_INSTANT("life", "in child"); exit(0); }
    int status = 1;
    waitpid(pid, &status, 0);
    return status != 0;
}
END
  rm -rf t.*
  ${CC:-cc} -g -O1 -fsanitize=address,undefined -I"$SRC/include" watched.c -o watched -L"$BUILD" -lstave >err 2>&1 &&
    LD_LIBRARY_PATH=$BUILD LD_PRELOAD="$asan $BUILD/libstave.so" STAVE_OUT=t.pftrace ./watched >out 2>err &&
    [ "$(count t.pftrace watched)" = 1000 ] && [ "$(count t.pftrace "in child")" = 1 ] && ! grep -qv "$note" err
  if [ $? = 0 ]; then echo "ok life: preloaded beside AddressSanitizer"; else echo "not ok life: preloaded beside AddressSanitizer: $(head -n 5 err)"; fi
}
case $BUILD in *asan | *tsan) ;; *) preload_with_asan ;; esac
left=$(find "$STAVE_SESSION_DIR" -mindepth 1 -type d | wc -l)
if [ "$left" = 0 ]; then echo "ok life leaves no sessions"; else echo "not ok life: $left sessions left: $(find "$STAVE_SESSION_DIR" -mindepth 1 | head -n 5)"; fi
