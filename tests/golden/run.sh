#!/usr/bin/env bash
# Golden files. good/: each is printed as text and compared with NAME.txt beside it, and the text is the same after a round trip through
# every format that can be read again. bad/: each must give exactly the messages of NAME.err, what can be recovered as NAME.txt, exit
# status 0 where something was recovered, 3 where nothing was and 4 where a time does not fit; --strict must leave no file. UPDATE=1
# writes what is expected.
. "$SRC/tests/harness/cli.sh"
golden=$SRC/tests/golden

# same NAME EXPECTED IS: compares, or replaces the expected file under UPDATE=1.
same() {
  if [ "${UPDATE:-}" = 1 ]; then cp "$3" "$2"; ok "$1"; return; fi
  if diff -u --label "expected $1" --label "is $1" "$2" "$3"; then ok "$1"; else not_ok "$1"; fi
}

for input in "$golden"/good/*.json "$golden"/good/*.pftrace "$golden"/good/*.out "$golden"/good/*.log; do
  [ -e "$input" ] || continue
  name=$(basename "$input")
  run_any "$name.cat" 0 "$STAVE" cat "$input"
  same "good/$name" "$golden/good/$name.txt" "$name.cat.out"
  "$STAVE" cat -q "$golden/good/$name.txt" >again.txt # a trace of clocks only has no events, which convert would say
  check "text of $name reads back" cmp "$golden/good/$name.txt" again.txt
done

for input in "$golden"/bad/*.json "$golden"/bad/*.pftrace "$golden"/bad/*.txt "$golden"/bad/*.gz "$golden"/bad/*.out "$golden"/bad/*.log; do
  [ -e "$input" ] || continue
  case $input in *.out.txt) continue ;; esac
  name=$(basename "$input")
  "$STAVE" cat "$input" >"$name.out" 2>"$name.raw" </dev/null; code=$?
  mask "$name.raw" >"$name.err"; echo "exit status $code" >>"$name.err"
  same "bad/$name messages" "$golden/bad/$name.err" "$name.err"
  same "bad/$name recovered" "$golden/bad/$name.out.txt" "$name.out"
  rm -f strict.pftrace
  "$STAVE" convert -q --strict "$input" -o strict.pftrace >/dev/null 2>&1 </dev/null; code=$?
  if [ $code != 0 ] && [ ! -e strict.pftrace ] && [ -z "$(find . -name 'strict.pftrace*')" ]; then ok "bad/$name strict"
  else echo "  exit status $code, or a file was left"; not_ok "bad/$name strict"; fi
done
