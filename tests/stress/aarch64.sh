#!/usr/bin/env bash
# The library for aarch64: cross-compiled, run under qemu-user, its trace read here. Part of the long tests.
set -uo pipefail
[ -n "${STAVE_LONG:-}" ] || { echo "only with STAVE_LONG=1"; exit 77; }
case $BUILD in *asan | *tsan) echo "once is enough"; exit 77 ;; esac
cc=aarch64-linux-gnu-gcc
command -v $cc >/dev/null && command -v qemu-aarch64 >/dev/null || { echo "needs gcc-aarch64-linux-gnu and qemu-user"; exit 77; }
cd "$SRC" || exit 2
mkdir "$TMP/include"
# Only the declarations of zlib are needed: it is called by name.
for h in zlib.h zconf.h; do cp "$(find /usr/include -name $h | head -n 1)" "$TMP/include/" || { echo "needs zlib.h"; exit 77; }; done
flags="-std=c17 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DSV_HAVE_ZLIB=1 -I. -Ilib -Iinclude -I$TMP/include -O2 -fPIC -fvisibility=hidden -Wall -Wextra -Werror -fno-strict-aliasing -ffunction-sections"
objects=()
for source in lib/sdk/{emit,ring,drain,write,collect,session,recover}/*.c lib/sdk/standalone/compress_by_name.c core/*/*.c; do
  object=$TMP/${source//\//_}.o
  # shellcheck disable=SC2086
  $cc $flags -c "$source" -o "$object" || { echo "not ok aarch64: $source"; exit 1; }
  objects+=("$object")
done
$cc -shared -Wl,--gc-sections -Wl,--version-script=lib/sdk/libstave.map "${objects[@]}" -o "$TMP/libstave.so" -lpthread -ldl -lm || exit 1
for program in numbers life; do
  # shellcheck disable=SC2086
  $cc $flags -o "$TMP/$program" tests/stress/$program.c -L"$TMP" -lstave -lpthread -ldl || exit 1
done
echo "ok aarch64 compiles"
cd "$TMP" || exit 2
export STAVE_SESSION_DIR=$TMP/sessions STAVE_FULL=block
mkdir -p "$STAVE_SESSION_DIR"
run() { timeout 120 qemu-aarch64 -L /usr/aarch64-linux-gnu -E LD_LIBRARY_PATH="$TMP" "$@"; }
STAVE_OUT=a.pftrace run ./numbers 2 20000 progress >out 2>&1 &&
  "$STAVE" cat -q a.pftrace | awk -v want="20000 20000" -f "$SRC/tests/stress/check_numbers.awk" >>out
if [ $? = 0 ]; then echo "ok aarch64: every event, once"; else echo "not ok aarch64: $(cat out)"; fi
STAVE_OUT=b.pftrace run ./life atexit >out 2>&1 && [ "$("$STAVE" cat -q b.pftrace | grep -c '"parent"\|"atexit"')" = 11 ]
if [ $? = 0 ]; then echo "ok aarch64: atexit"; else echo "not ok aarch64: $(cat out)"; fi
