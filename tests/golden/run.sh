#!/usr/bin/env bash
# Golden files. good/: each is printed as text and compared with NAME.txt beside it, and the text is the same after a round trip through
# every format that can be read again. bad/: each must give exactly the messages of NAME.err, what can be recovered as NAME.txt, exit
# status 0 where something was recovered, 3 where nothing was and 4 where a time does not fit; --strict must leave no file. UPDATE=1
# writes what is expected. Every other file of the two folders is an input, whatever its suffix. `run.sh WORD`: only those with WORD in
# their name.
. "$SRC/tests/harness/cli.sh"
golden=$SRC/tests/golden word=${1:-}

# same NAME EXPECTED IS: compares, or replaces the expected file under UPDATE=1.
same() {
  if [ "${UPDATE:-}" = 1 ]; then cp "$3" "$2"; ok "$1"; return; fi
  if diff -u --label "expected $1" --label "is $1" "$2" "$3"; then ok "$1"; else not_ok "$1"; fi
}

# inputs FOLDER SUFFIX…: its files, without those that are the expectation of another one: its name and one of the suffixes.
inputs() {
  local folder=$golden/$1 file suffix; shift
  for file in "$folder"/*"$word"*; do
    [ -e "$file" ] || continue
    for suffix in "$@"; do
      if [[ $file == *"$suffix" && -e ${file%"$suffix"} ]]; then continue 2; fi
    done
    echo "$file"
  done
}

while read -r input; do
  name=$(basename "$input")
  run_any "$name.cat" 0 "$STAVE" cat "$input"
  same "good/$name" "$golden/good/$name.txt" "$name.cat.out"
  "$STAVE" cat -q "$golden/good/$name.txt" >again.txt # a trace of clocks only has no events, which convert would say
  check "text of $name reads back" cmp "$golden/good/$name.txt" again.txt
done < <(inputs good .txt)

while read -r input; do
  name=$(basename "$input")
  "$STAVE" cat "$input" >"$name.out" 2>"$name.raw" </dev/null; code=$?
  mask "$name.raw" >"$name.err"; echo "exit status $code" >>"$name.err"
  same "bad/$name messages" "$golden/bad/$name.err" "$name.err"
  same "bad/$name recovered" "$golden/bad/$name.out.txt" "$name.out"
  rm -f strict.pftrace
  "$STAVE" convert -q --strict "$input" -o strict.pftrace >/dev/null 2>&1 </dev/null; code=$?
  if [ $code != 0 ] && [ ! -e strict.pftrace ] && [ -z "$(find . -name 'strict.pftrace*')" ]; then ok "bad/$name strict"
  else echo "  exit status $code, or a file was left"; not_ok "bad/$name strict"; fi
done < <(inputs bad .err .out.txt)
