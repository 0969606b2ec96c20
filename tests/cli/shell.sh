#!/usr/bin/env bash
# stave query -i on a real terminal, which tmux is: editing, history, completion, paging, Ctrl-C.
. "$SRC/tests/harness/cli.sh"
good=$SRC/tests/golden/good/kineto.json

command -v tmux >/dev/null || skip_all "tmux is not installed"
"$STAVE" query -q "$good" 'SELECT 1' >probe.out 2>probe.err || { grep -q 'no SQLite' probe.err && skip_all "built without SQLite"; }

term() { TMUX='' TMUX_TMPDIR=$TMP tmux -f /dev/null "$@"; }
trap 'term kill-server 2>/dev/null; [ "$CLI_FAILED" = 0 ] || exit 1' EXIT
screen() { term capture-pane -p 2>/dev/null | grep -v '^$'; }

# shows TEXT: waits until the screen has it, as a whole line when TEXT begins with '^'.
shows() {
  for _ in $(seq 600); do
    if [ "${1:0:1}" = ^ ]; then screen | sed 's/^ *//; s/ *$//' | grep -qxF -- "${1:1}" && return 0
    else screen | grep -qF -- "$1" && return 0; fi
    term list-sessions >/dev/null 2>&1 || { echo "the shell has ended"; return 1; }
    sleep 0.1
  done
  screen
  return 1
}
# tmux takes a semicolon at the end of a word for its own.
type_text() { term send-keys -l -- "${1%;}"; if [ "${1: -1}" = ';' ]; then term send-keys -l -- '\;'; fi; }
# Waits for the prompt (of a statement, or of its next line): before it the terminal echoes and takes Ctrl-C by itself.
at_prompt() { for _ in $(seq 600); do screen | tail -n 1 | grep -qE '^ *(stave|\.\.\.)> *$' && return; sleep 0.1; done; }
enter() { at_prompt; type_text "$1"; term send-keys Enter; }
# less throws away what was typed before it has dealt with Ctrl-C, so q may have to be typed again; one too many is taken back.
leave_pager() {
  for _ in $(seq 100); do screen | tail -n 1 | grep -q '^stave>' && break; term send-keys q; sleep 0.2; done
  term send-keys C-u
}
open_shell() {
  term new-session -d -x 100 -y 20 "env -u LESS PAGER=less XDG_STATE_HOME=$TMP/state $STAVE query -q -i $good"
}

open_shell
check greets shows 'stave>'
enter 'SELECT 6 * 7 AS answer;'
check answers shows '^42'

# A query that would never end: Ctrl-C ends it, not the shell.
# (Before the query has begun Ctrl-C drops the line: then once more.)
interrupted() {
  at_prompt
  for _ in $(seq 60); do
    type_text 'WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n;'
    term send-keys Enter
    sleep 0.5
    term send-keys C-c
    for _ in $(seq 10); do ! screen | grep -qF 'stave query: interrupted' || return 0; sleep 0.1; done
  done
  screen
  return 1
}
check interrupted interrupted
enter 'SELECT 40 + 3 AS answer;'
check goes_on_after_interrupt shows '^43'

# A line that is being typed is dropped.
at_prompt; type_text 'SELECT half a line'
check typed shows 'SELECT half a line'
term send-keys C-c
check back_at_prompt shows '^stave>'
enter 'SELECT 40 + 4 AS answer;'
check goes_on_after_dropped_line shows '^44'

# A statement over several lines, an error, the commands of the shell.
enter 'SELECT 40'
check asks_for_more shows '...>'
enter '  + 5 AS answer;'
check several_lines shows '^45'
enter 'SELEC;'
check tells_errors shows 'syntax error'
enter '.schema thread'
check schema shows 'thread(utid INTEGER, id INTEGER, tid INTEGER'
enter '.tables'
check tables shows '^trace_bounds'

# More than a screen goes through the pager; Ctrl-C there leaves nothing behind.
if command -v less >/dev/null; then
  enter 'SELECT a.id, b.name FROM slice a, slice b;'
  check pages shows '^:'
  term send-keys C-c
  leave_pager
  enter 'SELECT 40 + 6 AS answer;'
  check goes_on_after_pager shows '^46'
else
  skip pager "less is not installed"
fi

if ldd "$STAVE" 2>/dev/null | grep libedit >/dev/null; then
  enter 'SELECT 40 + 7 AS answer;'
  check answers_before_up shows '^47'
  at_prompt; term send-keys Up Enter
  twice() { for _ in $(seq 600); do [ "$(screen | grep -cE '^ *47 *$')" != 2 ] || return 0; sleep 0.1; done; screen; return 1; }
  check history_up twice
  at_prompt; type_text 'SELECT count(*) AS n FROM clock_sn'
  term send-keys Tab
  check completes_tables shows 'FROM clock_snapshot'
  term send-keys C-c
  check back_at_prompt_2 shows '^stave>'
  type_text 'SELECT is_main_t'
  term send-keys Tab
  check completes_columns shows 'SELECT is_main_thread'
  term send-keys C-c
  check back_at_prompt_3 shows '^stave>'
  enter '.quit'
  for _ in $(seq 600); do term list-sessions >/dev/null 2>&1 || break; sleep 0.1; done
  check history_is_kept grep -q 'SELECT' "$TMP/state/stave/history"
  check history_is_private test "$(stat -c %a "$TMP/state/stave/history")" = 600
  open_shell
  check greets_again shows 'stave>'
  term send-keys Up
  check history_is_read shows '.quit'
  term send-keys C-c
else
  check says_what_is_missing shows 'without libedit'
fi

# Ctrl-D leaves, on an empty line.
check back_at_prompt_4 shows '^stave>'
term send-keys C-d
for _ in $(seq 600); do term list-sessions >/dev/null 2>&1 || break; sleep 0.1; done
check leaves sh -c '! TMUX= TMUX_TMPDIR="$0" tmux -f /dev/null list-sessions' "$TMP"
