#!/usr/bin/env bash
# tools/mutate: its list applies to this tree, and what is wrong with an entry is said. (The faults themselves are tried by `make test-long`.)
. "$SRC/tests/harness/cli.sh"
[ "$BUILD" = "$SRC/build" ] || { echo "once is enough"; exit 77; }

check list_applies "$SRC/tools/mutate" --check
mkdir list
# entry FUNCTION FIND SUITES
entry() { printf 'name: one\nfile: core/base/wire.c\nfunction: %s\nfind: %s\nput: x\nsuites: %s\nwhy: nothing\n' "$1" "$2" "$3" >list/a.txt; }
# refuses NAME TEXT
refuses() { if "$SRC/tools/mutate" --check --from list >out 2>&1; then cat out; not_ok "$1"; elif grep -q "$2" out; then ok "$1"; else cat out; not_ok "$1"; fi; }
entry sv_put_begin 'sv_buf_byte(b, 0);' unit:wire
check applies "$SRC/tools/mutate" --check --from list
entry sv_put_begin 'sv_buf_byte(b, 77);' unit:wire
refuses no_such_text "0 times in sv_put_begin"
entry sv_put_end 'b' unit:wire
refuses many_places "times in sv_put_end"
entry sv_no_such 'b' unit:wire
refuses no_such_function "0 functions sv_no_such"
entry sv_put_begin 'sv_buf_byte(b, 0);' stress/none.sh
refuses no_such_suite "no suite stress/none.sh"
printf 'name: one\nfile: core/base/wire.c\n' >list/a.txt
refuses half_an_entry "without find"
