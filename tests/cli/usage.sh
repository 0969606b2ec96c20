#!/usr/bin/env bash
# The command line itself: help, unknown words, exit codes; help and man page agree.
. "$SRC/tests/harness/cli.sh"
lines=$SRC/tests/golden/good/lines.json

run_any no_verb 2 "$STAVE"
run unknown_verb 2 "$STAVE" convrt
run unknown_option 2 "$STAVE" convert --outptu x
run missing_value 2 "$STAVE" convert x -o
run flag_with_value 2 "$STAVE" info --json=1 x
run bad_window 2 "$STAVE" cut x --time 5 -o y.txt
run no_input 2 "$STAVE" convert -o x.pftrace
run no_such_file 3 "$STAVE" convert nowhere.json -o x.pftrace
run directory 3 "$STAVE" info .
run unknown_suffix 2 "$STAVE" convert "$lines" -o x.unknown
run unknown_format 2 "$STAVE" convert "$lines" --to nothing
run unwritable 4 "$STAVE" convert "$lines" -o nowhere/x.pftrace
check no_partial_file test ! -e nowhere
if [ -e /dev/full ]; then run_any disk_full 4 sh -c '"$0" cat "$1" >/dev/full' "$STAVE" "$lines"; fi

# Every verb explains itself, with an example. --help all, the man page and the completion name the same options; --help has the first dozen
# of a verb with more, and says where the others are.
options_in() { sed -n "/^Options/,/^$1/p" "$2" | grep -oE '^ {2,6}(-., )?--[a-z0-9-]+' | grep -oE -- '--[a-z0-9-]+'; }
"$STAVE" completion bash >completion
for verb in $("$STAVE" verbs); do
  "$STAVE" "$verb" --help >"$verb.help"; "$STAVE" "$verb" --help all >"$verb.all"; "$STAVE" man "$verb" >"$verb.man"
  check "$verb has examples" grep -q '^Examples' "$verb.help"
  in_help=$(options_in Examples "$verb.all" | sort)
  in_man=$(grep -oE 'fB\\-\\-[a-z0-9-]+' "$verb.man" | sed 's/^fB\\-\\-/--/' | sort)
  check "$verb man names the options of its help" test "$in_help" = "$in_man"
  in_completion=$(sed -n "/^    $verb)/{n;s/^ *words='\(.*\)'/\1/p}" completion | tr -s ' ' '\n' | grep . | sort)
  check "$verb completion has the options of its help" test "$in_help" = "$in_completion"
  n_first=$(options_in 'Options of every' "$verb.help" | wc -l) n=$(options_in 'Options of every' "$verb.all" | wc -l)
  check "$verb help is short" test "$n_first" -le 12
  check "$verb says where the others are" test "$(grep -cxF "  more: stave $verb --help all" "$verb.help")" = $((n > n_first))
done
check topics_have_headings test "$(grep -c '^Options: ' record.all)" = "$(grep -c '^\.SS ' <(grep -v 'every verb' record.man))"
check help_of_a_kind cmp <("$STAVE" plot timeline --help all) plot.all
check completion_bash bash -n <("$STAVE" completion bash)
NO_COLOR=1 CLICOLOR_FORCE=1 "$STAVE" info --help >plain; "$STAVE" info --help --color always >coloured
check no_color_is_respected sh -c '! grep -q "$(printf "\033")" plain'
check color_always grep -q $'\033' coloured
