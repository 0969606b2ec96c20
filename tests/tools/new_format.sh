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
  for file in formats.c logs/toy_read.c; do $compile -c "tree/src/formats/$file" -o "$(basename "$file").o" || return 1; done
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
