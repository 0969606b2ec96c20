#!/usr/bin/env bash
# stave symbolize: a stripped program is recorded; its functions get their names afterwards from a debuginfod on the loopback, by the build id that the trace has.
# Without DEBUGINFOD_URLS nothing is asked.
. "$SRC/tests/harness/cli.sh"
for tool in cc debuginfod objcopy curl; do command -v $tool >/dev/null || skip_all "no $tool here"; done
"$STAVE" record -q --strict --sample 99 -o probe.pftrace -- true 2>probe.err || skip_all "cannot sample here: $(tail -n 1 probe.err)"
cat >hot.c <<'C'
#include <time.h>
static volatile unsigned long sum;
__attribute__((noinline)) void grind_numbers(void) { for (unsigned long i = 0; i < 200000; i++) sum += i * i; }
__attribute__((noinline)) void turn_wheel(void) { grind_numbers(); sum++; }
int main(void) { for (time_t end = time(0) + 2; time(0) < end;) turn_wheel(); }
C
mkdir debug other
cc -O1 -g -Wl,--build-id=sha1 hot.c -o whole && objcopy --only-keep-debug whole debug/hot.debug && objcopy --strip-all whole hot
check records "$STAVE" record -q --sample 199 -o run.pftrace -- ./hot
frames() { "$STAVE" cat -q "$1" | grep -c "$2"; }
check has_no_names test "$(frames run.pftrace grind_numbers)" = 0
check has_its_file test "$(frames run.pftrace '\[hot+0x')" -gt 5
id=$(readelf -n whole | sed -n 's/.*Build ID: //p')
check has_its_build_id test "$("$STAVE" query -q run.pftrace "select str_value from metadata where name = 'build_id.hot'" | tail -n 1)" = "$id"

export DEBUGINFOD_CACHE_PATH=$TMP/cache HOME=$TMP
port=$((20000 + $$ % 20000))
debuginfod -p $port -d "$TMP/index.sqlite" -F "$TMP/debug" -t 1 >server.log 2>&1 & server=$!
trap 'kill $server 2>/dev/null' EXIT
if ! until_true "curl -sf http://127.0.0.1:$port/buildid/$id/debuginfo -o fetched || ! kill -0 $server" || [ ! -s fetched ]; then skip_all "debuginfod does not serve here: $(tail -n 1 server.log)"; fi

unset DEBUGINFOD_URLS
run_any without 0 "$STAVE" symbolize run.pftrace -o same.pftrace
check says_how grep -q 'hot: 0 frames have names now.*set DEBUGINFOD_URLS' without.err
check nothing_is_asked test ! -e "$DEBUGINFOD_CACHE_PATH"
export DEBUGINFOD_URLS=http://127.0.0.1:$port
run_any by_server 0 "$STAVE" symbolize run.pftrace -o named.pftrace
check named test "$(frames named.pftrace 'grind_numbers')" -gt 5
check no_file_is_left test "$(frames named.pftrace '\[hot+0x')" = 0
count() { "$STAVE" query -q "$1" 'select count(*), sum(dur), sum(arg_set_id is not null) from slice' | tail -n 1; }
check all_else_is_the_same test "$(count run.pftrace)" = "$(count named.pftrace)"
hottest() { "$STAVE" query -q named.pftrace "select name from slice where category = 'cpu_sample' group by name order by count(*) desc limit 1" | tail -n 1; }
check by_name test "$(hottest)" = grind_numbers
sed 's/200000/100000/' hot.c >other.c && cc -O1 -g -Wl,--build-id=sha1 other.c -o other/hot && mkdir -p "$DEBUGINFOD_CACHE_PATH/$id" && objcopy --only-keep-debug other/hot "$DEBUGINFOD_CACHE_PATH/$id/debuginfo"
run_any another_build 0 "$STAVE" symbolize run.pftrace -o wrong.pftrace
check never_of_another_build test "$(frames wrong.pftrace grind_numbers)" = 0
"$STAVE" record -q --light --sample 0 -o stackless.pftrace -- true
run_any no_ids 1 "$STAVE" symbolize stackless.pftrace -o x.pftrace
run_any no_output 2 "$STAVE" symbolize run.pftrace
check no_partial test ! -e x.pftrace
