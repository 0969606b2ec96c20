#!/usr/bin/env bash
# The worked examples of CONTRIBUTING.md: what is new (tests/tools/places) is put into a copy of the tree, with one line in one list. Then the touched files
# are counted, the checks pass and all lists compile. With STAVE_LONG=1 the copy is built, and each new thing is used.
. "$SRC/tests/harness/cli.sh"
[ "$BUILD" = "$SRC/build" ] || { echo "once is enough"; exit 77; }
command -v git >/dev/null || skip_all "no git here"

mkdir tree && (cd "$SRC" && tools/list-files '.' | tar -c -T - | tar -x -C "$TMP/tree") || exit 2
cd tree || exit 2
git init -q . && git add -A && git -c user.name=t -c user.email=t@localhost commit -qm base || exit 2

# touched: the new and changed files, with blanks between them.
touched() { git status --porcelain -uall | sed 's/^...//' | sort | tr '\n' ' ' | sed 's/ $//'; }
# touches NAME FILES: only these.
touches() { if [ "$(touched)" = "$2" ]; then ok "$1"; else echo "  touched: $(touched)"; not_ok "$1"; fi; }
# line_after FILE TEXT LINE: LINE behind the only line with TEXT.
line_after() { [ "$(grep -cF "$2" "$1")" = 1 ] && TEXT=$2 LINE=$3 awk '{ print } index($0, ENVIRON["TEXT"]) { print ENVIRON["LINE"] }' "$1" >new && cat new >"$1"; rm -f new; }
# compiles FILE…: as the build would, apart from the code.
compiles() { local f; for f; do gcc -std=c17 -D_GNU_SOURCE -Wall -Wextra -Werror -fsyntax-only -I. -Isrc -Ilib -Iinclude "$f" || return 1; done; }
# example NAME: its new files.
example() { git stash -q -u 2>/dev/null; cp -r "$SRC/tests/tools/places/$1/." . || exit 2; }
checks() { tools/check-style && tools/check-layers; }

example probe
check probe_line line_after src/record/probes/list.h 'SV_PROBE(page_fault,' 'SV_PROBE(signal, FLAG, SV_WIRE_SIGNAL)'
touches probe_touches "src/record/bpf/signal.h src/record/probes/list.h src/record/probes/signal.c"
check probe_compiles compiles src/record/probes/{signal,probes}.c src/record/decode/decode.c src/record/session/{totals,summary}.c src/cmd/record.c
check probe_checks checks

example report
check report_line line_after src/subjects/list.h 'SUBJECT(gpu,' '    SUBJECT(toy, HAS, NONE)     \'
touches report_touches "src/subjects/list.h src/subjects/toy/sections.c"
check report_compiles compiles src/subjects/toy/sections.c src/cmd/report.c
check report_checks checks

example plot
check plot_line line_after src/plot/kinds.h 'KIND(layers,' '    KIND(toy, 0, 0, NULL, SV_PLOT_WINDOW) \'
touches plot_touches "src/cmd/plot_toy.c src/plot/kinds.h"
check plot_compiles compiles src/cmd/plot{_toy,}.c
check plot_checks checks

example inject
check inject_line line_after src/record/session/injections.h 'INJECTION(itt,' '    INJECTION(toy, "TOY_LIBRARY", false) \'
touches inject_touches "lib/inject/toy/build.cmake lib/inject/toy/toy_entry.c src/record/session/injections.h"
check inject_compiles compiles lib/inject/toy/toy_entry.c src/record/session/inject.c src/cmd/record.c
check inject_checks checks

[ -n "${STAVE_LONG:-}" ] || { skip built "only with STAVE_LONG=1"; exit; }

# All four at once.
for i in 1 2 3; do git add -A; git -c user.name=t -c user.email=t@localhost commit -qm "$i"; git stash pop -q || exit 2; done
touched | grep -qE 'probes|subjects|plot' || not_ok all_are_there
check built tools/build release all unit
equal() { if [ "$2" = "$3" ]; then ok "$1"; else echo "  '$2' is not '$3'"; not_ok "$1"; fi; }
new=$PWD/build/stave
check probe_option grep -q -- '--signals' <("$new" record --help all)
run_any probe_docs_are_old 1 build/tests/unit -q probes.the_documentation
git add -A; git -c user.name=t -c user.email=t@localhost commit -qm all
check probe_docs_updated env UPDATE=1 build/tests/unit -q probes.the_documentation
touches probe_docs_touch docs/record.md
check probe_tests build/tests/unit -q probes
printf '{"traceEvents":[{"ph":"X","name":"a","pid":1,"tid":1,"ts":1,"dur":2}]}' >t.json
equal report_runs "$("$new" report toy t.json 2>&1)" "1 slices"
check plot_runs "$new" plot toy t.json -o t.svg
check inject_is_built test -f build/libstave-toy.so
equal inject_is_used "$("$new" record -q --no-io --no-block -o i.pftrace --inject toy -- sh -c 'echo $TOY_LIBRARY' 2>/dev/null)" "$PWD/build/libstave-toy.so"
if [ "$(id -u)" != 0 ] || ! "$new" record -q --strict --hooks btf -o s.pftrace -- true 2>/dev/null; then skip probe_records "needs root and eBPF"; exit; fi
# shellcheck disable=SC2016 # the shell that is recorded expands it
run_any probe_records 0 "$new" record --signals -o s.pftrace -- sh -c 'trap : USR1; kill -USR1 $$; :'
check probe_summary grep -q ', 1 signals' "$TMP/probe_records.err"
equal probe_events "$("$new" query -q --to csv s.pftrace "SELECT count(*) AS n FROM slice WHERE category = 'signal'" | tail -1)" 1
