#!/usr/bin/env bash
# Libraries that one verb needs are loaded by that verb: the program does not link them, and where one cannot be loaded the verb
# says what to install while everything else works.
. "$SRC/tests/harness/cli.sh"

not_linked() { ! objdump -p "$STAVE" | grep -E 'NEEDED +lib(cairo|fontconfig|X11|microhttpd|gnutls|curl|grpc)'; }
if command -v objdump >/dev/null; then check not_linked not_linked; else skip not_linked "no objdump (binutils)"; fi

# In this folder each of them is a file that is no library.
mkdir broken
for name in cairo.so.2 microhttpd.so.12 curl.so.4; do echo 'no library' >"broken/lib$name"; done
without() { LD_LIBRARY_PATH=$TMP/broken "$STAVE" "$@"; }
echo '{"traceEvents":[{"name":"a","ph":"X","ts":1,"dur":1,"pid":1,"tid":1}]}' >t.json

# says NAME EXIT LIBRARY ARGUMENT…: without the library the command ends so; skipped where it was compiled out.
says() {
  local name=$1 code=$2 library=$3; shift 3
  run_any "$name" "$code" without "$@"
  if grep -qE 'built without|this build has no' "$name.err"; then skip "${name}_says_why" "built without it"; return; fi
  check "${name}_says_why" grep -q "lib${library}\.so\.[0-9]* cannot be loaded: install it (Debian: lib${library}[0-9]*)" "$name.err"
}
says png 2 cairo plot timeline t.json -o t.png
check no_png_is_left test ! -e t.png
run_any svg 0 without plot timeline t.json -o t.svg
says view 2 microhttpd view --no-browser t.json
says otlp 2 microhttpd listen --otlp -o o.pftrace
says clickhouse 4 curl query -q clickhouse://127.0.0.1:1/x 'SELECT 1'
run_any others 0 without info t.json
