#!/usr/bin/env bash
# The hot path's object refers to nothing that allocates, locks, prints or enters the kernel; a closed gate is one load and one branch. No event
# makes a system call, neither one of a new call site nor one that finds its ring full.
set -uo pipefail
case $BUILD in *asan | *tsan | *fuzz) echo "instrumented code calls its runtime"; exit 77 ;; esac
object=$(find "$BUILD" -path '*sv_sdk.dir*' -name 'emit.c.o' | head -n 1)
extra=$(nm -u "$object" | awk '{ print $2 }' |
  grep -vxE '_GLOBAL_OFFSET_TABLE_|__stack_chk_fail|clock_gettime|memcpy|memmove|__memmove_chk|strnlen|sv_slow|sv_slow_on|sv_process|sv_site_register|stave_i_dso_gone')
if [ -n "$object" ] && [ -z "$extra" ]; then echo "ok hot path refers to nothing slow"; else echo "not ok hot path: $object: $extra"; fi

cat >"$TMP/gate.c" <<'END'
#include <stave/stave.h>
void other(void);
void gate(void) { STAVE_INSTANT("c", "n", "v", 1); other(); }
END
for flags in "-O2 -fPIE" "-O2 -fPIC"; do
  # shellcheck disable=SC2086
  ${CC:-cc} -std=c17 $flags -I"$SRC/include" -c "$TMP/gate.c" -o "$TMP/gate.o" || exit 1
  # Up to the call that the closed gate reaches.
  path=$(objdump -d --no-show-raw-insn "$TMP/gate.o" | sed -n '/<gate>:/,/ret/p' | awk 'NR > 1 { print $2 }' | sed '/^jmp\|^call\|^b$/q')
  loads=$(echo "$path" | grep -cE '^(mov|movz|cmp|ldr)') branches=$(echo "$path" | grep -cE '^(j[a-ln-z]|cb|b\.)')
  if [ "$loads" -le 1 ] && [ "$branches" = 1 ]; then echo "ok gate $flags: one load, one branch"; else
    echo "not ok gate $flags: $loads loads, $branches branches: $(echo "$path" | tr '\n' ' ')"; fi
done
# Hundreds of full rings in a thread that a system call would kill (hostile_memory.c).
for full in drop overwrite; do
  (cd "$TMP" && STAVE_FULL=$full STAVE_BUFFER=16k STAVE_SESSION_DIR=$TMP/sessions STAVE_OUT=calls.pftrace "$BUILD/tests/stress/hostile_memory" filter 1 200000) >"$TMP/calls" 2>&1; code=$?
  if [ $code = 7 ]; then echo "ok no system call: $full"; else echo "not ok no system call: $full: exit $code: $(cat "$TMP/calls")"; fi
done
lib=$BUILD/libstave.so
needed=$(readelf -d "$lib" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(libc\.so|ld-linux|libpthread|libdl|libm\.so)')
if [ -z "$needed" ]; then echo "ok library needs libc only"; else echo "not ok library needs $needed"; fi
strip -o "$TMP/stripped.so" "$lib"
size=$(stat -c %s "$TMP/stripped.so")
if [ "$size" -le 237568 ]; then echo "ok library has $size bytes"; else echo "not ok library: $size bytes, at most 237568 (232 KiB)"; fi
foreign=$(nm -D --defined-only "$lib" | awk '{ print $3 }' | grep -vE '^(stave_|STAVE_)')
if [ -z "$foreign" ]; then echo "ok library exports stave_ only"; else echo "not ok library exports $foreign"; fi
