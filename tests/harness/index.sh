# shellcheck shell=bash
# Indexes of traces, for tests/cli/index*.sh: a folder of their own for them, and what makes and uses them. Needs tests/harness/cli.sh.
export XDG_CACHE_HOME=$TMP/cache
folder=$XDG_CACHE_HOME/stave
mkdir "$XDG_CACHE_HOME"
"$STAVE" query -q "$SRC/tests/golden/good/kineto.json" 'SELECT 1' >/dev/null 2>probe.err || { grep -q 'no SQLite' probe.err && skip_all "built without SQLite"; }

# make TRACE…: indexes of them. uses TRACE: is it opened from its index? count: how many there are.
make() { local t; for t; do STAVE_INDEX_SLICES=0 "$STAVE" query -q "$t" 'SELECT 1' >/dev/null 2>&1; done; }
uses() { "$STAVE" query --time "$1" 'SELECT 1' >uses.out 2>&1; grep -q 'from its index' uses.out; }
uses_not() { ! uses "$1"; }
count() { find "$folder" -name '*.stave-index' 2>/dev/null | wc -l; }

# said FILE OPTION…: all that the commands say of a trace.
commands=('export --to json -o -' stats 'report io' 'report batch' 'show --once --width 100 --height 30')
case $BUILD in *asan) [ -n "${STAVE_LONG:-}" ] || commands=('export --to json -o -') ;; esac # every command takes ten times as long
said() {
  local c file=$1; shift
  for c in "${commands[@]}"; do
    # shellcheck disable=SC2086 # a command is words
    "$STAVE" $c "$file" "$@" </dev/null 2>&1; echo "exit status $?"
  done
}
loadable() { "$STAVE" query -q "$1" 'SELECT 1' >/dev/null 2>&1; }

# law PART PARTS: every golden file, good and bad, of this part; the same output with an index and without. (Under a sanitizer, which has seen them all in
# other tests, every fourth.)
law() {
  local part=$1 parts=$2 n=0 k=0 every=1 input name
  case $BUILD in *asan) [ -n "${STAVE_LONG:-}" ] || every=4 ;; esac
  for input in "$SRC"/tests/golden/good/* "$SRC"/tests/golden/bad/*; do
    case $input in *.txt | *.err) continue ;; esac
    k=$((k + 1)); [ $((k % every)) = 0 ] && [ $((k / every % parts)) = "$part" ] || continue
    loadable "$input" || continue
    name="$(basename "$(dirname "$input")") $(basename "$input")"
    said "$input" --no-index >plain
    make "$input"
    check "index of $name" uses "$input"
    said "$input" >indexed
    check "same of $name" cmp plain indexed
    "$STAVE" stats "$input" --no-index --strict >plain 2>&1; echo "exit status $?" >>plain
    "$STAVE" stats "$input" --strict >indexed 2>&1; echo "exit status $?" >>indexed
    check "same of $name, strict" cmp plain indexed
    n=$((n + 1))
    rm -f "$folder"/*
  done
  check there_were_files test "$n" -gt $((40 / every / parts))
}
