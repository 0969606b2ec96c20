#!/usr/bin/env bash
# docs/porting.md, "From ferrum": each column of its table is a program that compiles, runs, and writes the same events as the others.
set -uo pipefail
cd "$TMP" || exit 2
command -v python3 >/dev/null || { echo "no python3"; exit 77; }
unset STAVE_TRACE_OUT
export FERRUM_TRACE_OUT=global.json LD_LIBRARY_PATH=$BUILD
say() { if [ "$1" = 0 ]; then echo "ok porting_ferrum: $2"; else echo "not ok porting_ferrum: $2: ${3:-}"; fi; }
case $BUILD in *asan) sanitize=-fsanitize=address,undefined ;; *tsan) sanitize=-fsanitize=thread ;; *) sanitize= ;; esac

python3 - "$SRC/docs/porting.md" <<'END' || { say 1 "the table is read"; exit 1; }
import re, sys
section = re.search(r"^## From ferrum$(.*?)(?=^## |\Z)", open(sys.argv[1]).read(), re.M | re.S)[1]
table = re.search(r"^\| Rust.*?\n\|[-|]+\n(.*?)\n\n", section, re.M | re.S)[1]
rows = [["\n".join(re.findall(r"`([^`]+)`", cell)) for cell in re.split(r" \| ", line.strip("| "))] for line in table.splitlines()]
assert len(rows) >= 15 and all(len(r) == 4 and all(r) for r in rows), rows
for i, (name, begin, end) in enumerate([("p.rs", "fn main() {", "drop((v, env)); }"), ("p.py", "", ""),
                                        ("p.c", "#undef NDEBUG\n#include <assert.h>\nint main(void) {", "stave_trace_writer_close(v); stave_trace_writer_close(env); return 0; }"),
                                        ("p.cpp", "#undef NDEBUG\n#include <cassert>\nint main() {", "return 0; }")]):
    with open(name, "w") as f:
        print(rows[0][i], begin, *(r[i] for r in rows[1:]), end, sep="\n", file=f)
END

# tried NAME COMMAND…: its files are those that all give
tried() {
  local name=$1; shift
  mkdir -p "$name"
  (cd "$name" && "$@") >out 2>&1 && [ ! -s out ] && (cd "$name" && python3 "$SRC/tests/harness/ferrum_strict.py" a.json && echo -- && python3 "$SRC/tests/harness/ferrum_strict.py" global.json && cat b.json) >list 2>>out &&
    [ "$(tr '\t' '|' <list)" = 'attn|attention|1250|0|3|{}
gemm|gemm|500|0|3|{"dim": 4096, "tokens": 4}
--
embed|decode_step|123|0|0|{}
[]' ]
  say $? "$name" "$(cat out list)"
}
# shellcheck disable=SC2086
${CC:-cc} -std=c11 -Wall -Wextra -Werror $sanitize -I"$SRC/include" p.c -o in_c -L"$BUILD" -lstave-file >out 2>&1; say $? "C compiles" "$(head -n 5 out)"
tried C ../in_c
# shellcheck disable=SC2086
${CXX:-c++} -std=c++17 -Wall -Wextra -Werror $sanitize -I"$SRC/include" p.cpp -o in_cpp -L"$BUILD" -lstave-file >out 2>&1; say $? "C++ compiles" "$(head -n 5 out)"
tried C++ ../in_cpp
if [ "$sanitize" ]; then
  echo "skip porting_ferrum: Python and Rust: tried with the plain libraries"
  exit
fi
if [ -f "$BUILD/python/interpreter" ]; then PYTHONPATH=$BUILD/python tried Python "$(cat "$BUILD/python/interpreter")" ../p.py; else echo "skip porting_ferrum: Python: the package was not built"; fi
if rustc --version >out 2>&1; then
  rustc --edition 2021 --crate-type rlib --crate-name stave -L "native=$BUILD" -l stave -l stave-file "$SRC/lib/rust/src/lib.rs" -o libstave.rlib >out 2>&1 &&
    rustc --edition 2021 -L "native=$BUILD" --extern stave=libstave.rlib p.rs -o in_rust >>out 2>&1; say $? "Rust compiles" "$(head -n 20 out)"
  tried Rust ../in_rust
else echo "skip porting_ferrum: Rust: there is no rustc"; fi
