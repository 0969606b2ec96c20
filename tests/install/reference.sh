#!/usr/bin/env bash
# docs/api.md is what the headers say, and has every function and macro for users.
. "$SRC/tests/harness/cli.sh"

run_any reference 0 "$SRC/tools/make-reference"
is_current() { cmp reference.out "$SRC/docs/api.md" || { echo "run: tools/make-reference >docs/api.md"; return 1; }; }
check docs_api_is_current is_current
is_complete() {
  local name missing=
  while IFS= read -r name; do
    grep -qE "(^|[^A-Za-z_])$name\(" reference.out || missing+=" $name"
  done < <(cat "$SRC"/include/stave/*.h | tr '\n' ' ' | grep -oE 'STAVE_API [^;{]*' | grep -oE 'stave_[a-z0-9_]+\(' | tr -d '(' | grep -v '^stave_i_' | sort -u
    sed -nE 's/^#define (STAVE_[A-Z_]+|stave_complete)\(.*/\1/p' "$SRC/include/stave/macros.h" | grep -v '^STAVE_I_')
  [ -z "$missing" ] || { echo "missing:$missing"; return 1; }
}
check every_function_and_macro is_complete
check nothing_internal sh -c '! grep -qiE "stave_i_[a-z]" reference.out'
