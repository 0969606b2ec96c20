#!/usr/bin/env bash
# stave redact: what must not leave the house is nowhere in the bytes of the copy; the rest is as it was.
# shellcheck disable=SC2016 # words for inner shells
. "$SRC/tests/harness/cli.sh"
cat >in.json <<'J'
{"traceEvents":[
{"ph":"M","pid":7,"tid":7,"name":"process_name","args":{"name":"worker"}},
{"ph":"M","pid":7,"tid":7,"name":"process_labels","args":{"labels":"worker --key hunter2 /srv/private/x"}},
{"ph":"X","pid":7,"tid":7,"ts":1,"dur":5,"name":"open /srv/private/model.bin","args":{"path":"/srv/private/model.bin","note":"reads '/srv/private/model.bin' twice","bytes":17}},
{"ph":"X","pid":7,"tid":7,"ts":10,"dur":5,"name":"load","args":{"path":"/srv/private/model.bin","user_name":"grace.hopper","list":["a","/srv/private/list"]}},
{"ph":"X","pid":7,"tid":7,"ts":20,"dur":5,"name":"SELECT name FROM t1 WHERE card = '4111-1111' AND n = 31337","args":{"db.statement":"SELECT name FROM t1 WHERE card = '4111''1111' AND n=31337"}}
],"command":"worker --key hunter2"}
J
run_any all 0 "$STAVE" redact -q in.json -o all.json
check all_nothing_left sh -c '! grep -E "private|model|hunter2|4111|31337|srv" all.json'
"$STAVE" cat -q all.json >all.txt
check all_events test "$(grep -cE ' (slice|begin) ' all.txt)" = "$("$STAVE" cat -q in.json | grep -cE ' (slice|begin) ')"
check all_same_token test "$(grep -oE 'path="/[a-z2-7]{10}/[a-z2-7]{10}/[a-z2-7]{10}"' all.txt | sort | uniq -c | awk '{ print $1 }')" = 2
check all_sql grep -q 'db.statement="SELECT name FROM t1 WHERE card = ? AND n=?"' all.txt
check all_stays grep -q 'bytes=17' all.txt
check all_other_args_stay grep -q 'user_name="grace.hopper"' all.txt
check all_process_stays grep -q 'name="worker"' all.txt
run_any again 0 "$STAVE" redact -q in.json -o again.json
check again_other_tokens sh -c '! cmp -s all.json again.json'
run_any perfetto 0 "$STAVE" redact -q in.json -o p.pftrace
check perfetto_nothing_left sh -c '! grep -aE "private|model.bin|hunter2|4111" p.pftrace'
check perfetto_valid "$STAVE" validate -q p.pftrace
run_any args 0 "$STAVE" redact -q in.json --what 'args=user*,sql' -o args.json
check args_gone sh -c '! grep -E "grace|31337" args.json'
check args_paths_stay grep -q /srv/private/model.bin args.json
run_any wrong 2 "$STAVE" redact -q in.json --what 'pahts' -o wrong.json
check wrong_says grep -qxF "stave redact: redact: 'pahts' is none of paths, commands, sql, args=GLOB and all" wrong.err
check wrong_nothing test ! -e wrong.json
run_any same 2 "$STAVE" redact -q in.json -o in.json
check same_stays grep -q hunter2 in.json

# While recording: the program's own events, too.
mkdir -p private.d; echo x >private.d/secret.txt
export STAVE_SESSION_DIR=$TMP/s XDG_RUNTIME_DIR=$TMP/s; mkdir -p s
run_any record 0 "$STAVE" record -q --no-summary --no-explain --no-inject --redact all -o r.pftrace -- sh -c 'cat private.d/secret.txt hunter2 2>/dev/null; "$0" step=5*3' "$BUILD/tests/stress/paced"
check record_nothing_left sh -c '! grep -aE "private\.d|secret\.txt|hunter2" r.pftrace'
check record_steps test "$("$STAVE" cat -q r.pftrace | grep -c 'begin .* "step"')" = 3
check record_valid "$STAVE" validate -q r.pftrace

# Of a real recording nothing that names a file stays, whoever looks: not in the bytes, not in metadata, stacks and messages of triggers.
mkdir -p xsecretdir; python=$(command -v python3) && cat >xsecretdir/xsecretmod.py <<'P'
import time
def compute(seconds):
    end, n = time.time() + seconds, 0
    while time.time() < end:
        n += 1
P
cat >xsecretmain.py <<'P'
import ctypes, os, socket, sys
sys.path.insert(0, "xsecretdir")
import xsecretmod
end = socket.socket(socket.AF_UNIX); end.bind("xsecretsock"); end.listen(1)
socket.socket(socket.AF_UNIX).connect("xsecretsock")
os.memfd_create("xsecretmemory")
if os.path.exists("xsecretdir/libxsecret.so"):
    ctypes.CDLL(os.path.abspath("xsecretdir/libxsecret.so")).turn(200)
xsecretmod.compute(0.3)
print("ready", flush=True)
if len(sys.argv) > 2:
    print("xsecretline", file=open("xsecretlog", "a"), flush=True)
    while not os.path.exists(sys.argv[2]):
        xsecretmod.compute(0.01)
P
cat >turn.c <<'C'
#include <time.h>
int turn(int ms)
{
    volatile long n = 0;
    for (clock_t end = clock() + ms * (CLOCKS_PER_SEC / 1000); clock() < end;)
        n++;
    return (int)n;
}
C
"${CC:-cc}" -O1 -s -shared -fPIC -o xsecretdir/libxsecret.so turn.c
secret() { grep -qaF xsecret "$@" || "$STAVE" cat -q "$1" | grep -qF xsecret; }
if [ -n "$python" ]; then
  run_any plain 0 "$STAVE" record -q --no-summary --no-explain --sample 199 -o plain.pftrace -- "$python" xsecretmain.py --key=xsecretkey
  check plain_names_them secret plain.pftrace
  run_any copy 0 "$STAVE" redact -q plain.pftrace -o copy.pftrace
  check copy_says_nothing sh -c '! { cat copy.pftrace; "$0" cat -q copy.pftrace; } | grep -aoE ".{0,40}xsecret.{0,40}"' "$STAVE"
  check copy_valid "$STAVE" validate -q copy.pftrace
  check copy_has_samples test "$("$STAVE" cat -q copy.pftrace | grep -c 'cat="cpu_sample"')" = "$("$STAVE" cat -q plain.pftrace | grep -c 'cat="cpu_sample"')"
  rm -f xsecretsock
  "$STAVE" record -q --no-summary --no-explain --redact all --sample 199 -o hit.pftrace --tail 0s --when "log xsecretlog ~ 'xsecretline'" -- "$python" xsecretmain.py --key=xsecretkey go >hit.out 2>hit.err &
  check hit_saved until_true '[ -e hit-0001.pftrace ]'
  touch go; wait $!
  for f in hit hit-0001; do
    check "${f}_says_nothing" sh -c '! { cat "$1"; "$0" cat -q "$1"; } | grep -aoE ".{0,40}xsecret.{0,40}"' "$STAVE" $f.pftrace
  done
  check hit_says_what grep -qF 'meta "trigger" "log (redacted)"' <("$STAVE" cat -q hit-0001.pftrace)
else skip real "no python3 here"; fi

# The parts of a recording become one file; a range of it, too.
mkdir parts.d; STAVE_FULL=block run_any parts 0 "$STAVE" record -q --no-summary --no-explain --no-inject --light --rotate 256K -o parts.d/p.pftrace -- "$BUILD/tests/stress/epochs" 400
run_any folder 0 "$STAVE" redact -q parts.d -o folder.pftrace
check folder_all test "$("$STAVE" cat -q folder.pftrace | grep -c 'begin .*"step"')" = 400
run_any range 0 "$STAVE" redact -q parts.d --since 0s --until 1ns -o range.pftrace
run_any convert_folder 0 "$STAVE" convert -q parts.d -o folder.json
check convert_all test "$("$STAVE" cat -q folder.json | grep -c 'begin .*"step"')" = 400
run_any convert_two 2 "$STAVE" convert -q all.json args.json --since 1s -o two.json
