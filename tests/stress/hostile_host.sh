#!/usr/bin/env bash
# The program that is traced may do what it likes (hostile_host.c, copies/): its own files, descriptors, output and exit code are as they are without tracing,
# and every event is in the trace or counted as lost.
set -uo pipefail
case $BUILD in *asan | *tsan) echo "a sanitizer has descriptors, threads and output of its own"; exit 77 ;; esac
cd "$TMP" || exit 2
mkdir -m 700 sessions
export STAVE_SESSION_DIR=$TMP/sessions STAVE_FULL=block
host=$BUILD/tests/stress/hostile_host
is_root=$([ "$(id -u)" = 0 ] && echo 1)

# counts FILE…: "KEPT LOST": the events of the test in the traces, and those that the traces say were lost.
counts() {
  local f; for f in "$@"; do "$STAVE" cat -q "$f" || echo "cannot read $f"; done 2>>cat.log |
    awk '/ cat="(host|plugin)"/ { if (/ (instant|begin|slice) /) kept++ } / loss / { lost += substr($0, match($0, /\{[0-9]+\}$/) + 1) } /^cannot/ { bad++ } END { print bad ? "bad" : kept + 0, lost + 0 }'
}

# judge NAME EXIT-UNTRACED EXIT-TRACED keeps|loses LINES: compares u and t, and counts; so many lines of the library are expected at most.
judge() {
  local name=$1 why='' emitted kept lost traces
  [ "$2" = "$3" ] || why="exit $3, untraced $2"
  cmp -s u.out t.out || why="$why; output differs: $(diff u.out t.out | head -n 4 | tr '\n' ' ')"
  grep -v '^stave: ' t.err >t.other
  cmp -s u.err t.other || why="$why; said: $(head -n 3 t.other)"
  [ "$(grep -c '^stave: ' t.err)" -le "$5" ] || why="$why; $(grep '^stave: ' t.err | tr '\n' ' ')"
  diff -r -x 't.*' -x traces -x elsewhere u t >diff.log 2>&1 || why="$why; files differ: $(head -n 4 diff.log | tr '\n' ' ')"
  while read -r marker; do "$STAVE" recover -q "${marker%.session}" >>recover.log 2>&1; done < <(find t -name '*.session')
  mapfile -t traces < <(find t -name 't*.pftrace')
  emitted=$(sed -n 's/^emitted //p' t.out); read -r kept lost < <(counts "${traces[@]}")
  [ "$kept" != bad ] && [ "$((kept + lost))" = "${emitted:-none}" ] || why="$why; emitted $emitted, kept $kept, lost $lost in ${traces[*]}"
  [ "$4" = loses ] || [ "$lost" = 0 ] || why="$why; $lost lost"
  [ -z "$(find t -name '*.part' -o -name '*.session*')" ] || why="$why; left $(find t -name '*.part' -o -name '*.session*' | tr '\n' ' ')"
  [ -z "$(ls sessions)" ] || { why="$why; sessions left: $(ls sessions)"; rm -rf sessions/*; }
  if [ -z "$why" ]; then echo "ok hostile_host: $name"; else echo "not ok hostile_host: $name: ${why#; } ($(head -n 1 t.err))"; fi
}

# scene NAME [FILTER [COMMAND…]]: runs it untraced in u and traced in t.
scene() {
  local name=$1 filter=${2:-} untraced traced with=() may=keeps lines=0
  shift $(($# > 1 ? 2 : 1))
  rm -rf u t; mkdir -p u/traces t/traces
  local out=$TMP/t/traces/t.pftrace
  [ -z "$filter" ] || with=(via "$filter")
  (cd u && exec "$@" "$host" "${with[@]}" ${filter:+""} "$name" >../u.out 2>../u.err); untraced=$?
  if [ -n "$filter" ]; then
    (cd t && exec "$@" "$host" "${with[@]}" "$out" "$name" >../t.out 2>../t.err); traced=$?
  else
    (cd t && STAVE_OUT=$out exec "$@" "$host" "$name" >../t.out 2>../t.err); traced=$?
  fi
  if [ $untraced = 77 ]; then echo "skip hostile_host: $name: $(cat u.out)"; return; fi
  case $filter in *u*r*) sort -o u.out u.out; sort -o t.out t.out ;; esac # the numbers may differ in a shared table, and so their order
  [ $untraced = 7 ] || echo "not ok hostile_host: $name: untraced exit $untraced"
  case $name:$filter in # what cannot be: a ring in a folder that is out of reach, a name in a folder of another user
  setuid*) may=loses lines=2 ;; chroot_closed*) may=loses lines=2 ;; removed*) lines=1 ;; chroot:*u*) lines=1 ;; esac
  judge "$name${filter:+ without $filter}${1:+ ($1)}" $untraced $traced $may $lines
}

# Who reads the program's output sees its end when the program closes it.
end_of_output() {
  rm -rf t; mkdir -p t/traces
  (cd t && { STAVE_OUT=$TMP/t/traces/t.pftrace "$host" end_of_output 2>&1 & }; exec >/dev/null 2>&1; wait $!; echo $? >../t.code) | (cd t && cat >../t.out; touch seen)
  [ "$(cat t.code)" = 7 ] && [ "$(counts t/traces/t.pftrace)" = "53500 0" ]
  if [ $? = 0 ]; then echo "ok hostile_host: end of output"; else echo "not ok hostile_host: end of output: exit $(cat t.code), $(cat t.out)"; fi
}
end_of_output
for name in plain closefrom close_range loop dup2 pipe fork moved removed own_error; do scene $name; done
# u: unshare; r: close_range with a table of one's own; g: pidfd_getfd
for filter in r ur; do for name in plain closefrom dup2 pipe; do scene $name $filter; done; done
scene removed urg; scene removed g; scene own_error ur; scene moved ur
if [ -n "$is_root" ]; then
  for name in chroot chroot_closed setuid; do scene $name; done
  scene chroot ur; scene setuid ur
else
  for name in chroot setuid; do echo "skip hostile_host: $name: needs root"; done
fi
if unshare --time --boottime 1000000 true 2>/dev/null; then scene closefrom '' unshare --time --boottime 1000000
else echo "skip hostile_host: time namespace: cannot make one"; fi

# ---- copies of the library ----
# copies HOST A B STEPS…: HOST is so, a or none; A and B are the plugins plugin (the shared library), plugin_a, plugin_b (copies).
copies() {
  local on=$1 a=$2 b=$3 steps mode; shift 3
  local run=("$BUILD/tests/stress/copies_$on" "$BUILD/tests/stress/$a.so" "$BUILD/tests/stress/$b.so")
  for mode in "${modes[@]}"; do for steps; do
    rm -rf u t; mkdir -p u/traces t/traces
    (cd u && COPIES_GLOBAL=$mode exec "${run[@]}" "$steps" >../u.out 2>../u.err); local untraced=$?
    (cd t && COPIES_GLOBAL=$mode STAVE_OUT=$TMP/t/traces/t.pftrace exec "${run[@]}" "$steps" >../t.out 2>../t.err); local traced=$?
    [ $untraced = 7 ] || echo "not ok hostile_host: copies: untraced exit $untraced: $(cat u.out u.err)"
    judge "host $on, plugins $a and $b${mode:+ (global)}: $steps" $untraced $traced keeps 2 # a line for each session that took another name
  done; done
}
orders=(haxAhaxAh haxbyAyhBh axbyABbyaxhBA hatAh hafxAh) modes=('')
[ -z "${STAVE_LONG:-}" ] || { orders+=(haxhAh axAaxA haxbyBxhAh axfA); modes+=(global); }
for on in so a none; do
  copies $on plugin_a plugin_b "${orders[@]}"
  copies $on plugin_a plugin "${orders[@]}"
  copies $on plugin plugin_b "${orders[@]}"
done

# ---- a program that ThreadSanitizer watches ----
sanitized() {
  cat >raced.c <<'END'
#include <pthread.h>
#include <stave/stave.h>
#include <stdlib.h>
static int shared;
static void *run(void *races)
{
    for (int i = 0; i < 3000; i++) {
        STAVE_SCOPE("host", "watched", "text", "a text that is long enough", "i", i);
        if (races)
            shared++;
    }
    return NULL;
}
int main(int argc, char **argv)
{
    pthread_t t[4];
    (void)argv;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 4; i++)
            if (pthread_create(&t[i], NULL, run, argc > 1 ? &shared : NULL) != 0)
                return 1;
        for (int i = 0; i < 4; i++)
            pthread_join(t[i], NULL);
    }
    return 0;
}
END
  local still=() code races; setarch -R true 2>/dev/null && still=(setarch -R)
  ${CC:-cc} -g -O1 -fsanitize=thread -I"$SRC/include" raced.c -o raced -L"$BUILD" -lstave -Wl,-rpath,"$BUILD" >cc.log 2>&1 &&
    TSAN_OPTIONS='' "${still[@]}" ./raced >cc.log 2>&1 || { echo "skip hostile_host: sanitized: no ThreadSanitizer here: $(head -n 1 cc.log)"; return; }
  export TSAN_OPTIONS=suppressions=$SRC/share/tsan.supp
  rm -f s.pftrace
  STAVE_BUFFER=64k STAVE_OUT=s.pftrace "${still[@]}" ./raced >t.out 2>t.err; code=$?
  STAVE_BUFFER=64k STAVE_OUT=r.pftrace "${still[@]}" ./raced races >t.out 2>r.err; races=$?
  [ $code = 0 ] && [ ! -s t.err ] && [ "$(counts s.pftrace)" = "36000 0" ] && [ $races = 66 ] && grep -q 'data race' r.err
  if [ $? = 0 ]; then echo "ok hostile_host: sanitized"; else echo "not ok hostile_host: sanitized: exit $code and $races, $(counts s.pftrace), $(head -n 3 t.err)"; fi
}
sanitized
