#!/usr/bin/env bash
# stave view as a server: who may ask, what it answers, what is refused. The page in a browser: tests/browser.
. "$SRC/tests/harness/cli.sh"

client() { python3 "$SRC/tests/cli/view_client.py" "$@"; }
served() { local check=$1; shift; check "$check" client "$check" "$url" "$@"; }

# view ARGS…: starts it and sets pid and url when the trace is shown; ends it: done_with.
view() {
  rm -f url
  "$STAVE" view --no-browser "$@" >url 2>view.err & pid=$!
  for _ in $(seq 1200); do [ -s url ] && break; sleep 0.05; done 2>/dev/null
  url=$(head -n 1 url)
}
ready() { for _ in $(seq 600); do client is_ready "$url" 2>/dev/null && return; sleep 0.05; done; }
done_with() { kill -"${1:-TERM}" "$pid"; wait "$pid"; }

cat >run.json <<'END'
[{"ph":"M","name":"process_name","pid":1,"args":{"name":"train"}},
 {"ph":"X","pid":1,"tid":1,"ts":0,"dur":100,"name":"step 1"},{"ph":"X","pid":1,"tid":1,"ts":10,"dur":40,"name":"forward"},
 {"ph":"X","pid":1,"tid":1,"ts":60,"dur":0.5,"name":"tiny"},{"ph":"X","pid":1,"tid":1,"ts":61,"dur":0.001,"name":"tiny"},
 {"ph":"X","pid":1,"tid":1,"ts":100,"dur":100,"name":"step 2"},{"ph":"X","pid":1,"tid":1,"ts":110,"dur":40,"name":"forward"},
 {"ph":"i","pid":1,"tid":1,"ts":120,"name":"mark","s":"t"},{"ph":"X","pid":1,"tid":2,"ts":5,"dur":50,"name":"a"},
 {"ph":"X","pid":1,"tid":2,"ts":30,"dur":50,"name":"b"},{"ph":"B","pid":1,"tid":3,"ts":150,"name":"open"},
 {"ph":"b","cat":"r","id":1,"pid":1,"tid":1,"ts":1,"name":"request"},{"ph":"e","cat":"r","id":1,"pid":1,"tid":1,"ts":90,"name":"request"},
 {"ph":"b","cat":"r","id":2,"pid":1,"tid":1,"ts":50,"name":"request"},{"ph":"e","cat":"r","id":2,"pid":1,"tid":1,"ts":150,"name":"request"},
 {"ph":"C","pid":1,"tid":1,"ts":3,"name":"memory","args":{"v":5}},{"ph":"C","pid":1,"tid":1,"ts":99,"name":"memory","args":{"v":7}}]
END

view run.json
check the_address_is_alone_on_a_line grep -qxE 'http://127\.0\.0\.1:[0-9]+/#token=[0-9a-f]{32}' url
for _ in $(seq 1200); do [ -s view.err ] && break; sleep 0.05; done # it comes after the address
check the_ssh_command_is_printed grep -qE 'ssh -N -L [0-9]+:127\.0\.0\.1:[0-9]+' view.err
ready
for part in token_and_names methods_and_addresses headers bad_bodies answers pixels_are_sql sql_is_bounded notes at_once old_is_dropped is_compressed_for_those_who_are_far cut only_loopback_listens; do served $part; done
check notes_are_kept_beside_the_trace grep -q '"marks"' run.json.notes.json
port=${url#http://127.0.0.1:}; port=${port%%/*}
run_any a_port_in_use_is_named 4 timeout 60 "$STAVE" view --no-browser --port "$port" run.json
check its_message_has_the_port grep -q "port $port" a_port_in_use_is_named.err
check the_token_is_not_in_the_arguments bash -c "! tr '\0' ' ' </proc/$pid/cmdline | grep -q ${url##*=}"
done_with INT; check ctrl_c_ends_it test $? = 0
run_any the_window_is_a_trace 0 "$STAVE" cat cut.pftrace
check it_has_the_second_step grep -q "step 2" the_window_is_a_trace.out

cat >samples.txt <<'END'
# stave text 1
meta "sample_hz" "100"
track #1 process uuid=0x11 pid=1 name="job"
track #2 thread uuid=0x12 parent=#1 pid=1 tid=2 name="main"
track #3 custom uuid=0x13 parent=#2 name="samples"
0.000000010 instant #3 "step" cat="cpu_sample" {@stack["main (run.py:9)" "step (train.py:41)"]}
0.000000020 instant #3 "step" cat="cpu_sample" {@stack["main (run.py:9)" "step (train.py:42)"]}
0.000000030 instant #3 "vfs_read_[k]" cat="cpu_sample" {@stack["main (run.py:9)" "vfs_read_[k]"]}
END
view samples.txt; ready; served samples_are_a_tree; done_with

view run.json; ready; done_with TERM; check sigterm_ends_it test $? = 0

mkdir folder && cp run.json folder/ && chmod 500 folder
if [ "$(id -u)" = 0 ]; then rm -f folder/run.json.notes.json; mkdir folder/run.json.notes.json; fi
view folder/run.json; ready; served notes_not_kept; done_with

# What can be read only once: the address comes when it is loaded.
from_input() { rm -f url; "$STAVE" view --no-browser - <"$1" >url 2>view.err & pid=$!; for _ in $(seq 1200); do [ -s url ] && break; sleep 0.05; done; url=$(head -n 1 url); }
from_input run.json; check standard_input_is_shown client is_ready "$url"; done_with
mkfifo pipe; cat run.json >pipe & from_input pipe; check a_pipe_is_shown client is_ready "$url"; done_with
run_any a_pipe_that_is_no_trace 3 bash -c 'echo nonsense | "$0" view --no-browser -' "$STAVE"
check its_address_is_not_printed test ! -s a_pipe_that_is_no_trace.out

view --socket here.sock run.json; ready_socket() { for _ in $(seq 600); do client by_socket "$url" here.sock >/dev/null 2>&1 && return; sleep 0.05; done; }
ready_socket; served by_socket here.sock
check the_socket_is_for_this_user test "$(stat -c %a here.sock)" = 600
run_any a_name_that_is_there_is_refused 4 "$STAVE" view --no-browser --socket here.sock run.json
done_with; check the_socket_is_removed test ! -e here.sock

sed 's/"ts":/"ts":7/g' run.json >other.json
view --compare run.json other.json --align forward; ready; served sides; done_with

echo nonsense >bad.txt
run_any no_trace_is_refused 3 "$STAVE" view --no-browser bad.txt
run_any a_missing_file_is_refused 3 "$STAVE" view --no-browser nothing.json
run_any compare_takes_two 2 "$STAVE" view --no-browser --compare run.json
run_any align_needs_compare 2 "$STAVE" view --no-browser --align x run.json
run_any follow_takes_one 2 "$STAVE" view --no-browser --follow run.json other.json
run_any nothing_to_follow 3 "$STAVE" view --no-browser --follow nothing.pftrace
run_any a_port_that_is_none 2 "$STAVE" view --no-browser --port 70000 run.json
run_any export_is_alone 2 "$STAVE" view --export x.html --port 1 run.json
run_any an_export_never_replaces_its_input 2 "$STAVE" view --export run.json run.json
run_any an_export_needs_a_folder 4 "$STAVE" view --export nowhere/x.html run.json
check nothing_was_served test ! -s no_trace_is_refused.out
