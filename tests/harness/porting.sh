# The tables of docs/porting.md: their second column is code that a test compiles, or commands (`stave …`) that run.
# porting_rows SECTION SOURCE MINIMUM: each piece of code in the table of the section is in SOURCE, and there are that many.
# shellcheck shell=bash disable=SC2016
porting_row_works() {
  local words
  case $1 in
  'stave '*) read -ra words <<<"$1"; "$STAVE" "${words[@]:1}" >/dev/null 2>&1 ;;
  *) grep -qF -- "$1" "$2" ;;
  esac
}
porting_rows() {
  local n=0 code
  while IFS= read -r code; do
    n=$((n + 1))
    porting_row_works "$code" "$2" || { echo "neither compiled nor run: $code"; return 1; }
  done < <(awk -v section="## $1" '/^## / { on = $0 == section } on && /^\| `/' "$SRC/docs/porting.md" | awk -F' \\| ' '{ print $2 }' | grep -oE '`[^`]+`' | tr -d '`')
  [ $n -ge "$3" ] || { echo "only $n"; return 1; }
}
