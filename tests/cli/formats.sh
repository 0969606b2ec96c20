#!/usr/bin/env bash
# One list of formats: help, completion, errors and docs/formats.md are made from it. UPDATE=1 writes the block in docs/formats.md anew.
. "$SRC/tests/harness/cli.sh"
lines=$SRC/tests/golden/good/lines.json
docs=$SRC/docs/formats.md
begin='<!-- begin: stave formats -->' end='<!-- end: stave formats -->'

"$STAVE" formats >tables
if [ "${UPDATE:-}" = 1 ]; then
  { sed "/^$begin\$/q" "$docs"; cat tables; sed -n "/^$end\$/,\$p" "$docs"; } >new && cp new "$docs"
fi
sed -n "/^$begin\$/,/^$end\$/p" "$docs" | sed '1d;$d' >in_docs
check docs_have_every_format diff in_docs tables

# The tables as lines: "exports FORM", "chooses FORM SUFFIX", "reads NAME", "writes NAME", "suffix NAME SUFFIX", "dialect NAME DIALECT [FORMER]".
awk -F' *\\| *' '
/^\| name \| what it is/ { table = "written"; next }
/^\| format/ { table = "dialects"; next }
/^\| name \| what it reads/ { table = "read"; next }
/^\| `stave export/ { table = "exported"; next }
!/^\| `/ { next }
{ gsub(/`/, "") }
table == "written" { print "writes", $2; if ($5 == "yes") print "reads", $2; n = split($4, s, " "); for (i = 1; i <= n; i++) print "suffix", $2, s[i] }
table == "dialects" { print "dialect", $2, $3 }
table == "read" { print "reads", $2 }
table == "exported" { print "exports", $2; n = split($4, s, " "); for (i = 1; i <= n; i++) print "chooses", $2, s[i] }
' tables >facts
# Each row gave a line, each format of the list is among them, and what is written has a suffix.
check every_row_is_read test "$(grep -c '^| `[^ ]*` ' tables)" = "$(grep -vE '^(suffix|chooses)' facts | awk '!/^reads/ || !w[$2]; /^writes/ { w[$2] = 1 }' | wc -l)"
in_list() { sed -n 's/^SV_FORMAT(\(.*\))$/\1/p' "$SRC/src/formats/list.h" | tr _ - | sort; }
check every_format_is_read diff <(in_list) <(sed -nE 's/^(reads|writes) //p' facts | tr _ - | sort -u)
check every_writer_has_a_suffix diff <(sed -n 's/^writes //p' facts | sort) <(sed -nE 's/^suffix ([^ ]+) .*/\1/p' facts | sort -u)

# What the tables say is what --from, --to and --dialect offer, and name in their errors.
run_any bad_from 2 "$STAVE" convert "$lines" --from nothing -o x.txt
run_any bad_to 2 "$STAVE" convert "$lines" --to nothing
"$STAVE" convert --help | tr -s ' \n' '  ' >help
"$STAVE" completion bash | sed -n '/^    convert)/,/esac ;;/p' >offers
words_of() { tr -c 'a-z0-9\n.-' ' ' | tr -s ' ' '\n'; }
listed() { grep -qxF -e "$1" <(words_of); }
offered() { grep -e "--$1)" offers | listed "$2" && listed "$2" <help; }
named() { offered "$1" "$2" && listed "$2" <"bad_$1.err"; }
unpacked() { zcat "$1" >unpacked && cmp unpacked "$2"; }
while read -r what who rest; do
  case $what in
  reads) check "from $who" named from "$who" ;;
  writes) check "to $who" named to "$who" ;;
  dialect) read -r dialect _ <<<"$rest"; check "$dialect of $who is offered" offered dialect "$dialect" ;;
  suffix)
    rm -f b
    "$STAVE" convert -q "$lines" -o "a$rest"; "$STAVE" convert -q "$lines" --to "$who" -o b; "$STAVE" convert -q "$lines" -o "a$rest.gz"
    check "$rest is $who" cmp "a$rest" b
    check "$rest.gz is $who" unpacked "a$rest.gz" b ;;
  esac
done <facts

# The same of the forms of export: in the list, in help, completion and error, and chosen by their suffixes.
forms_in_list() { sed -n 's/^SV_EXPORT_FORM(\(.*\))$/\1/p' "$SRC/src/cmd/export_forms.h" | tr _ -; }
check every_form_is_read diff <(forms_in_list) <(sed -n 's/^exports //p' facts)
run_any bad_form 2 "$STAVE" export "$lines" --to nothing -o x
"$STAVE" export --help | tr -s ' \n' '  ' >help
"$STAVE" completion bash | sed -n '/^    export)/,/esac ;;/p' >offers
form_is_known() { grep -e '--to)' offers | listed "$1" && listed "$1" <help && listed "$1" <bad_form.err; }
if "$STAVE" query "$lines" 'SELECT 1' >/dev/null 2>&1; then
  while read -r what form suffix; do
    case $what in
    exports) check "form $form" form_is_known "$form" ;;
    chooses) run_any "$suffix chooses $form" 0 "$STAVE" export -q "$lines" -o "form$suffix"
      run_any "$form as $suffix" 0 "$STAVE" export -q "$lines" --to "$form" --force -o "form$suffix" ;;
    esac
  done <facts
fi

# Each dialect is accepted, also as a format; one that a format does not have is refused.
grep '^dialect' facts | grep -v batching >dialects
while read -r _ format dialect; do
  run_any "$dialect" 0 "$STAVE" convert -q "$lines" --to "$format" --dialect "$dialect" -o d.1
  run_any "to $dialect" 0 "$STAVE" convert -q "$lines" --to "$dialect" -o d.2
  check "$dialect by any name" cmp d.1 d.2
done <dialects
run dialect_of_another 2 "$STAVE" convert "$lines" --dialect kineto -o x.pftrace
run no_dialects 2 "$STAVE" convert "$lines" --dialect kineto -o x.txt
run_any rows_by_kind 0 "$STAVE" convert -q "$lines" --gpu-tracks kind -o k.txt

# No text of any verb shows the name of a list instead of the list.
for verb in $("$STAVE" verbs); do "$STAVE" "$verb" --help all; "$STAVE" man "$verb"; done >all_help
for shell in bash zsh fish; do "$STAVE" completion $shell; done >>all_help
check lists_are_filled_in sh -c '! grep -E "\{(readers|writers|suffixes|dialects)\}" all_help'
