#!/usr/bin/env bash
# Every public header compiles alone, without a warning, in every standard that it is for, with both compilers; the macros of stave.h record the same in
# each standard of C++.
. "$SRC/tests/harness/cli.sh"
strict=(-Wall -Wextra -Wpedantic -Werror -I"$SRC/include" -fsyntax-only)
headers=("$SRC"/include/stave/*) found=()
for compiler in gcc clang; do if command -v $compiler >/dev/null; then found+=("$compiler"); else skip $compiler "it is not installed"; fi; done

# The headers for C++17 are the .hpp files; words.hpp is what macros.h includes before.
needs_17() { [[ $1 == *.hpp && $1 != words.hpp && $1 != too_old.hpp ]]; }
says_17() { # COMPILER… NAME
  "${@:1:$#-1}" "${strict[@]}" one.cpp 2>one.err && { echo "${*: -1} needs no C++17"; return 1; }
  grep -q '#error.*C++17' one.err || { echo "${*: -1} does not say that it needs C++17"; return 1; }
}
# alone SUFFIX COMPILER STANDARD
alone() {
  local header name bad=0 n=0
  for header in "${headers[@]}"; do
    name=${header##*/}
    if [ "$1" = c ] && [[ $name == *.hpp ]]; then continue; fi
    printf '#include <stave/%s>\nint not_empty;\n' "$name" >one."$1"
    if needs_17 "$name" && [ "$3" = c++11 ]; then
      says_17 "$2" -std="$3" "$name" || bad=1
    else
      "$2" -std="$3" "${strict[@]}" one."$1" || { echo "$name in $3"; bad=1; }
    fi
    n=$((n + 1))
  done
  [ $n -gt 10 ] && [ $bad = 0 ]
}
# together SUFFIX COMPILER STANDARD
together() {
  local header name
  for header in "${headers[@]}"; do
    name=${header##*/}
    case $1:$3:$name in c:*.hpp | *:too_old.*) continue ;; esac
    if ! needs_17 "$name" || [ "$3" != c++14 ]; then echo "#include <stave/$name>"; fi
  done >all."$1"
  "$2" -std="$3" "${strict[@]}" all."$1"
}
for compiler in "${found[@]}"; do
  cpp=${compiler/gcc/g++}; cpp=${cpp/clang/clang++}
  check "${compiler}_c11" alone c "$compiler" c11
  check "${compiler}_c17" together c "$compiler" c17
  for standard in c++11 c++17; do check "${compiler}_$standard" alone cpp "$cpp" $standard; done
  for standard in c++14 c++20 c++2b; do check "${compiler}_$standard" together cpp "$cpp" $standard; done
done

cat >macros.cpp <<'C'
extern "C" { /* as C headers include it that are wrapped so */
#include <stave/stave.h>
}
#include <string>
enum color { RED };
enum class kind : unsigned char { ONE = 1 };
static void with_arguments(int layer, double tokens)
{
    STAVE_FUNC();
    STAVE_FUNC_ARGS(layer, tokens);
}
int main(int argc, char **argv)
{
    std::string text = "a b";
    struct stave_args args;
    stave_args_init(&args);
    stave_args_int(&args, "x", 1);
    stave_track_t track = stave_track(STAVE_ROOT, "row");
    char buffer[8] = "buf";
    const void *pointer = reinterpret_cast<const void *>(4096);
    const int v = -3;
    const int &r = v;
    STAVE_SCOPE("nn", "attention", "layer", 12, "tokens", 1.5f, "s", text, "lit", "text", "p", pointer, "a", &args, "b", true);
    STAVE_SCOPE_ON(track, "c", "on", "u", 3u, "r", r, "arg", argv[0]);
    STAVE_SCOPE_DYN("c", text.c_str(), "buffer", buffer);
    STAVE_INSTANT("io", "miss", "e", RED, "k", kind::ONE, STAVE_FLOW_OUT, 77);
    STAVE_INSTANT_ON(track, "io", "miss");
    STAVE_INSTANT_DYN("io", argv[0]);
    STAVE_COUNTER("mem", "allocated", argc);
    STAVE_COUNTER("mem", "ratio", 0.5);
    STAVE_COUNTER_ADD("mem", "n", 1);
    STAVE_BEGIN("c", "n", "x", -1L);
    STAVE_END("c");
    STAVE_BEGIN_DYN("c", argv[0]);
    STAVE_END("c", "late", 2ULL);
    STAVE_BEGIN_ON(track, "c", "n");
    STAVE_END_ON(track, "c", "x", 'c');
    stave_complete(track, "c", "n", stave_now_ns(), 5, "x", 1);
    with_arguments(1, 2);
    return 0;
}
C
# recorded COMPILER STANDARD: what the program records, without times and ids, is in COMPILER.STANDARD.
recorded() {
  "$1" -std="$2" "${strict[@]:0:5}" macros.cpp -o macros -L"$BUILD" -lstave || return 1
  LD_LIBRARY_PATH=$BUILD STAVE_OUT=macros.pftrace ./macros && "$STAVE" cat macros.pftrace | sed -nE 's/^[0-9.]+ //p; s/ uuid=[^ ]+//; s/^(track #[3-9])/\1/p' >"$1.$2"
  [ "$(wc -l <"$1.$2")" -gt 24 ] && grep -q 'attention.*{layer=12 tokens=1.5 s="a b" lit="text" p=0x1000 a={x=1} b=true}' "$1.$2" || { cat "$1.$2"; return 1; }
  cmp "$1.$2" g++.c++11 || { diff "$1.$2" g++.c++11; return 1; }
}
for compiler in "${found[@]}"; do
  cpp=${compiler/gcc/g++}; cpp=${cpp/clang/clang++}
  for standard in c++11 c++17; do check "records_${compiler}_$standard" recorded "$cpp" $standard; done
done
