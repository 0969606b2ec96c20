#!/usr/bin/env bash
# -finstrument-functions: every function a slice, named from the symbols; filters by module and by duration.
set -uo pipefail
case $BUILD in *asan | *tsan) echo "the test compiles its own program without the sanitizer"; exit 77 ;; esac
export STAVE_SESSION_DIR=$TMP/sessions STAVE_FULL=block LD_LIBRARY_PATH=$BUILD
mkdir -p "$STAVE_SESSION_DIR"
cd "$TMP" || exit 2
cat >fn.c <<'END'
#include <unistd.h>
static int leaf(int x) { return x * 2; }
static int slow(int x) { usleep(x * 1000); return leaf(x); }
int visible(int x) { int s = 0; for (int i = 0; i < 100; i++) s += leaf(i); return s + slow(x); }
int main(int argc, char **argv) { (void)argv; return visible(argc > 1 ? 2500 : 3) & 0; }
END
say() { if [ "$1" = 0 ]; then echo "ok functions: $2"; else echo "not ok functions: $2"; fi; }
for pie in -pie -no-pie; do
  ${CC:-cc} -O0 -finstrument-functions $pie fn.c -o fn -L"$BUILD" -lstave-functions -lstave || { say 1 "link $pie"; continue; }
  rm -f f.pftrace
  STAVE_OUT=f.pftrace ./fn; "$STAVE" cat -q f.pftrace >f.txt
  [ "$(grep -c '"leaf"' f.txt)" = 101 ] && [ "$(grep -c ' end ' f.txt)" = 104 ] && [ "$(grep -c '"main"' f.txt)" = 1 ]
  say $? "names and counts, $pie"
done
# A busy machine takes the processor away for a while, also in a short function: it counts as long only after two seconds.
STAVE_FUNCTIONS_MIN_US=2000000 STAVE_OUT=g.pftrace ./fn long; "$STAVE" cat -q g.pftrace >g.txt
[ "$(grep -c ' begin ' g.txt)" = 3 ] && ! grep -q '"leaf"' g.txt; say $? "only long ones"
STAVE_FUNCTIONS='-fn,-exe' STAVE_OUT=h.pftrace ./fn; "$STAVE" cat -q h.pftrace >h.txt
[ "$(grep -c ' begin ' h.txt)" = 0 ]; say $? "modules left out"

# Libraries that come and go: two of them, one after the other, perhaps at the same place. One has its code in its first segment, as older linkers do.
flags=()
for n in one two; do
  echo "static int inside_$n(int x) { return x + 1; } int enter(int x) { return inside_$n(x); }" >$n.c
  ${CC:-cc} -O0 -finstrument-functions -fPIC -shared "${flags[@]}" $n.c -o $n.so || say 1 "build $n.so"
  flags=("-Wl,-z,noseparate-code")
done
cat >host.c <<'END'
#include <dlfcn.h>
int main(void)
{
    const char *names[] = {"./one.so", "./two.so"};
    for (int i = 0; i < 2; i++) {
        void *library = dlopen(names[i], RTLD_NOW);
        int (*enter)(int) = library ? (int (*)(int))dlsym(library, "enter") : 0;
        if (!enter || enter(1) != 2 || dlclose(library) != 0)
            return 1;
    }
    return 0;
}
END
${CC:-cc} -O0 -finstrument-functions host.c -o host -L"$BUILD" -lstave-functions -lstave -ldl || say 1 "build host"
STAVE_OUT=d.pftrace ./host; code=$?
"$STAVE" cat -q d.pftrace >d.txt
[ $code = 0 ] && [ "$(grep -c '"enter"' d.txt)" = 2 ] && [ "$(grep -c '"inside_one"' d.txt)" = 1 ] && [ "$(grep -c '"inside_two"' d.txt)" = 1 ]
say $? "libraries loaded and gone"
