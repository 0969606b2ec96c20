#!/usr/bin/env bash
# stave show: one screen as text, what is refused, and the keys in a real terminal (tmux).
. "$SRC/tests/harness/cli.sh"
export LC_ALL=C.UTF-8 TERM=xterm-256color
unset NO_COLOR COLORTERM

cat >small.json <<'JSON'
{"traceEvents": [
{"ph": "M", "name": "process_name", "pid": 1, "args": {"name": "trainer"}},
{"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": "main"}},
{"ph": "X", "name": "step 1", "cat": "step", "pid": 1, "tid": 1, "ts": 0, "dur": 1000},
{"ph": "X", "name": "forward", "cat": "op", "pid": 1, "tid": 1, "ts": 100, "dur": 300, "args": {"layer": 0, "shape": [2, 3], "odd": "\u001b[31m"}},
{"ph": "X", "name": "attn", "cat": "op", "pid": 1, "tid": 1, "ts": 150, "dur": 100},
{"ph": "X", "name": "backward", "cat": "op", "pid": 1, "tid": 1, "ts": 400, "dur": 500},
{"ph": "X", "name": "step 2", "cat": "step", "pid": 1, "tid": 1, "ts": 1000, "dur": 2000},
{"ph": "X", "name": "forward", "cat": "op", "pid": 1, "tid": 1, "ts": 1100, "dur": 600, "args": {"second": true}},
{"ph": "X", "name": "\u4e16\u754c \u001b[31mred", "cat": "op", "pid": 1, "tid": 2, "ts": 500, "dur": 2000},
{"ph": "b", "id": 1, "name": "request", "cat": "req", "pid": 1, "tid": 1, "ts": 0},
{"ph": "e", "id": 1, "name": "request", "cat": "req", "pid": 1, "tid": 1, "ts": 1500},
{"ph": "b", "id": 2, "name": "request", "cat": "req", "pid": 1, "tid": 1, "ts": 700},
{"ph": "e", "id": 2, "name": "request", "cat": "req", "pid": 1, "tid": 1, "ts": 2500},
{"ph": "C", "name": "queue", "pid": 1, "ts": 0, "args": {"value": 3}},
{"ph": "C", "name": "queue", "pid": 1, "ts": 1500, "args": {"value": 7}}
]}
JSON
echo '{"traceEvents": []}' >empty.json

run whole 0 "$STAVE" show small.json --once --width 90 --height 20
run ascii 0 "$STAVE" show small.json --once --width 90 --height 20 --ascii
run window 0 "$STAVE" show small.json --once --time 1ms:2ms --width 60 --height 14
run found 0 "$STAVE" show small.json --once --find FORW --width 80 --height 24
run colors 0 "$STAVE" show small.json --once --color always --width 50 --height 12
COLORTERM=truecolor run true_color 0 "$STAVE" show small.json --once --color always --width 50 --height 8
check no_escapes_in_text sh -c '! "$0" show small.json --once | grep -q "$(printf "\033")"' "$STAVE"
check no_color sh -c '! NO_COLOR=1 "$0" show small.json --once | grep -q "$(printf "\033")"' "$STAVE"
run_any narrow 0 "$STAVE" show small.json --once --width 20 --height 5
check every_width sh -c 'for w in $(seq 20 7 200); do "$0" show small.json --once --width $w --height 12 >x || exit 1; [ "$(wc -L <x)" -le $w ] || exit 1; done' "$STAVE"

run no_terminal 2 "$STAVE" show small.json
run too_narrow 2 "$STAVE" show small.json --once --width 3
run not_found 1 "$STAVE" show small.json --once --find nowhere
run empty 1 "$STAVE" show empty.json --once
run empty_window 2 "$STAVE" show small.json --once --time 5s:6s
run_any no_file 3 "$STAVE" show absent.json --once
run bad_order 2 "$STAVE" show small.json --once --order time

# A trainer waits for the data worker, which waits for one slow file: the worker has the larger pid, and computes less.
awk 'BEGIN {
  print "# stave text 1\nclock boottime\ntrack #1 process uuid=0x1 pid=10 name=\"train\"\ntrack #2 thread uuid=0x2 parent=#1 pid=10 tid=10 name=\"main\""
  print "track #3 custom uuid=0x3 parent=#2 name=\"state\"\ntrack #5 process uuid=0x5 pid=11 name=\"worker\"\ntrack #6 thread uuid=0x6 parent=#5 pid=11 tid=11 name=\"main\""
  print "track #7 custom uuid=0x7 parent=#6 name=\"state\"\n0.000000000 instant #2 \"fork\" cat=\"process\" {child=11}"
  for (t = 1000; i < 12; i++) {
    w = i == 5 ? 40000 : 2000
    put(t, 2, "ProfilerStep#" i, "user_annotation", w + 5000); put(t, 3, "Running", "thread_state", 20); put(t, 7, "Running", "thread_state", 50)
    put(t + 10, 2, "read", "syscall", w - 20, "fd=4 path=\"pipe:[7]\" bytes=100"); put(t + 20, 3, "Sleeping", "thread_state", w - 70, "reason=\"pipe\"")
    put(t + 45, 6, "read", "syscall", w - 150, "fd=3 path=\"/data/" i "\" bytes=4096"); put(t + 50, 7, "Blocked on I/O", "thread_state", w - 160)
    put(t + w - 110, 7, "Running", "thread_state", 100); put(t + w - 50, 3, "Runnable", "thread_state", 40, "waker=\"worker\" waker_tid=11")
    put(t + w - 10, 3, "Running", "thread_state", 5010); put(t + w - 10, 7, "Sleeping", "thread_state", 5010, "reason=\"pipe\"")
    t += w + 5000
  }
}
function put(t, track, name, cat, us, args) { printf "%d.%09d slice #%d \"%s\" cat=\"%s\" dur=%d.%09d {%s}\n", t / 1e6, t % 1e6 * 1000, track, name, cat, us / 1e6, us % 1e6 * 1000, args }' >waits.txt
order() { "$STAVE" show waits.txt --once --width 80 "$@" | grep -oE '^(train|worker) ' | paste -sd '' | xargs; }
check rows_of_findings_come_first [ "$(order)" = "worker train" ]
check or_those_of_the_trace [ "$(order --order trace)" = "train worker" ]
picture() { "$STAVE" plot timeline waits.txt --rows tracks "$@" | grep -oE '>(train|worker) ' | tr -d '>' | paste -sd '' | xargs; }
check in_pictures_too [ "$(picture)" = "worker train" ]
check and_there_by_the_trace [ "$(picture --order trace)" = "train worker" ]

# In a terminal: the program gets keys, the screen is compared.
command -v tmux >/dev/null || { skip in_a_terminal "no tmux"; exit 0; }
t() { tmux -S "$TMP/tmux" "$@"; }
# wait_for WORD: the screen shows it within some seconds; not_yet: or does not.
wait_for() { for _ in $(seq 800); do t capture-pane -p | grep -qF -- "$1" && return 0; sleep 0.05; done; t capture-pane -p; return 1; }
wait_gone() { for _ in $(seq 800); do t capture-pane -p | grep -qF -- "$1" || return 0; sleep 0.05; done; t capture-pane -p; return 1; }
trap 't kill-server 2>/dev/null; [ "$CLI_FAILED" = 0 ] || exit 1' EXIT
if ! t -f /dev/null new-session -d -x 90 -y 24 'env PS1="ready> " sh' 2>tmux.err; then skip in_a_terminal "tmux does not start: $(head -n 1 tmux.err)"; exit 0; fi
t set -g default-terminal xterm-256color
stty_is() { t send-keys "stty -a | tr ' ' '\n' | grep -cx -e icanon -e echo | sed s/^/modes:/" Enter; wait_for modes:2; }
check shell wait_for 'ready>'
t send-keys "NO_COLOR=1 $STAVE show small.json; echo code:\$?" Enter
check starts wait_for 'q: quit'
check draws wait_for '[step 1'
t send-keys '?';              check helps wait_for 'any key: back'
t send-keys x;                check comes_back wait_for '[step 1'
t send-keys /;                check asks wait_for '/_'
t send-keys 'forw' Enter;     check finds wait_for '300 µs at 100 µs'
check shows_arguments wait_for 'shape [2,3]'
t send-keys n;                check finds_next wait_for '600 µs at 1.1 ms'
t send-keys n;                check ends_search wait_for "no further slice matches 'forw'"
t send-keys N;                check finds_previous wait_for '300 µs at 100 µs'
t send-keys Enter;            check fits wait_for '85 µs + 330 µs'
t send-keys 0;                check shows_all wait_for '0 ns + 3'
t send-keys + +;              check zooms wait_gone '0 ns + 3'
t send-keys 0 Tab;            check next_slice wait_for 'backward'
t send-keys Down;             check next_line wait_for '>'
t send-keys Escape;           check deselects wait_gone ' at '
t send-keys 0 + Right;        check moves wait_gone ' 0 ns +'
t send-keys Left Left Left;   check moves_back wait_for ' 0 ns +'
t resize-window -x 60 -y 16;  check resizes wait_gone 'q: quit'
t resize-window -x 100 -y 30; check resizes_again wait_for 'q: quit'
# The shell's word: what is typed while the program still gives the terminal back is thrown away.
t send-keys C-z;              check stops wait_for 'Stopped'
t send-keys "clear; fg; echo code:\$?" Enter;       check goes_on wait_for 'q: quit'
t send-keys q;                check quits wait_for 'code:0'
check modes_are_back stty_is
# A signal from elsewhere ends it and leaves the terminal as it was.
t send-keys "clear; $STAVE show small.json; echo code:\$?" Enter
check starts_again wait_for 'q: quit'
pane=$(t display -p '#{pane_pid}')
kill -TERM "$(cut -d ' ' -f 1 "/proc/$pane/task/$pane/children")"
check ends_by_signal wait_for 'code:143'
t send-keys "clear" Enter
check modes_are_back_again stty_is
