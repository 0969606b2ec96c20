#!/usr/bin/env bash
# The worked example of CONTRIBUTING.md, a new format: the code in it is compiled in a copy of src/formats and linked with the program's other
# objects. Touched are its own file and one line; help, completion, errors and tables know it then.
. "$SRC/tests/harness/cli.sh"
[ "$BUILD" = "$SRC/build" ] || { echo "once is enough"; exit 77; }
command -v ninja >/dev/null || { echo "ninja is absent"; exit 77; }

mkdir -p tree/src && cp -r "$SRC/src/formats" tree/src/
awk '/^### A new format/ { here = 1 } here && /^```$/ { exit } code { print } here && /^```c$/ { code = 1 }' "$SRC/CONTRIBUTING.md" >tree/src/formats/logs/toy_read.c
echo 'SV_FORMAT(toy)' >>tree/src/formats/list.h
check the_example_is_there grep -q 'sv_toy_format' tree/src/formats/logs/toy_read.c
if command -v clang-format >/dev/null; then
  check the_example_is_formatted clang-format --style="file:$SRC/.clang-format" --dry-run -Werror tree/src/formats/logs/toy_read.c
fi

# What was touched: one new file, one new line in another, nothing else.
diff -r "$SRC/src/formats" tree/src/formats >touched
check one_new_file test "$(grep -c '^Only in' touched)" = 1
check one_changed_file test "$(grep -c '^diff ' touched)" = 1
check one_new_line test "$(grep '^[<>]' touched)" = '> SV_FORMAT(toy)'

# Compiled as the build does, with the copy's headers first, and linked before the archives.
ninja -C "$BUILD" -t commands stave >all_commands
compile=$(grep -E -- '-c [^ ]*/src/formats/formats\.c$' all_commands | sed -E "s| -MD .*||; s| -I| -I$TMP/tree/src -I|; s|^ccache ||")
link=$(grep -E -- '-o stave ' all_commands | sed -E 's/^: && //; s/ && :$//')
build_it() {
  local file
  for file in formats.c logs/toy_read.c; do eval "$compile -c 'tree/src/formats/$file' -o '$(basename "$file").o'" || return 1; done
  (cd "$BUILD" && ${link/ -o stave / "$TMP/formats.c.o" "$TMP/toy_read.c.o" -o "$TMP/stave" })
}
check it_builds build_it
[ -x ./stave ] || exit 1

printf '1500 7 load batch\n1520 30 step\nnot a line\n' >run.toy
run_any reads 0 ./stave convert run.toy -o run.txt
check recognised ./stave info run.toy
grep slice run.txt | tr -s ' ' >got
check has_its_events test "$(wc -l <got)" = 2
check first_event grep -q '0.001500000.*load batch' got
check damage_is_named grep -q "line that is not the toy's" reads.err
./stave convert --help | tr -s ' \n' '  ' >help
check in_the_help grep -qE -- '--from FORMAT [^(]*[ ,]toy [(]' help
check in_the_completion sh -c './stave completion bash | grep -q -- "--from).* toy"'
check in_the_table sh -c './stave formats | grep -q "^| .toy. | the toy.s log | microseconds since the start | threads, flows, arguments |"'
run_any error 2 ./stave convert run.toy --from nothing -o x.txt
check in_the_error grep -q ' or toy' error.err
check not_before sh -c '! "$0" formats | grep -q toy' "$STAVE"

# Its tests need no list either: a golden file of the new suffix is read, and fails where nothing reads it or nothing is expected; the test of
# the tables counts the new format.
mkdir -p tree/tests/golden/good tree/tests/golden/bad tree/tests/cli tree/docs
cp -r "$SRC/tests/harness" tree/tests/
cp "$SRC/tests/golden/run.sh" tree/tests/golden/
printf '1500 7 load batch\n1520 30 step\n' >tree/tests/golden/good/run.toy
# in_tree SCRIPT STAVE [WORD=VALUE…]: runs a script of the copy.
in_tree() { local script=$1 stave=$2; shift 2; rm -rf inner; mkdir inner && env "$@" SRC="$TMP/tree" STAVE="$stave" TMP="$TMP/inner" "tree/tests/$script" >said 2>&1; }
not_in_tree() { ! in_tree "$@"; }
check golden_without_expectation not_in_tree golden/run.sh "$TMP/stave"
check golden_is_written in_tree golden/run.sh "$TMP/stave" UPDATE=1
check golden_is_read in_tree golden/run.sh "$TMP/stave"
check golden_is_named grep -qx 'ok good/run.toy' said
check golden_that_nothing_reads not_in_tree golden/run.sh "$STAVE"
mv tree/tests/golden/good/run.toy tree/tests/golden/bad/ && printf 'no line\n' >>tree/tests/golden/bad/run.toy
check bad_golden_without_expectation not_in_tree golden/run.sh "$TMP/stave"

cp -r "$SRC/tests/cli/formats" "$SRC/tests/cli/formats.sh" tree/tests/cli/
mkdir -p tree/src/cmd && cp "$SRC/src/cmd/export_forms.h" tree/src/cmd/
cp "$SRC/docs/formats.md" tree/docs/ && cp "$SRC/tests/golden/good/lines.json" tree/tests/golden/good/
check tables_are_old not_in_tree cli/formats.sh "$TMP/stave"
check tables_are_written in_tree cli/formats.sh "$TMP/stave" UPDATE=1
check tables_are_read in_tree cli/formats.sh "$TMP/stave"
check table_has_it grep -qx 'ok from toy' said
