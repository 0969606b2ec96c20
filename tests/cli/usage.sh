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

# Every verb explains itself, with an example, and its man page names the same options.
for verb in $("$STAVE" verbs); do
  "$STAVE" "$verb" --help >"$verb.help"; "$STAVE" man "$verb" >"$verb.man"
  check "$verb has examples" grep -q '^Examples' "$verb.help"
  in_help=$(grep -oE '^ +(-., )?--[a-z-]+' "$verb.help" | grep -oE -- '--[a-z-]+' | sort -u)
  in_man=$(grep -oE 'fB\\-\\-[a-z-]+' "$verb.man" | sed 's/^fB\\-\\-/--/' | sort -u)
  check "$verb man names the options of its help" test "$in_help" = "$in_man"
done
check completion_bash bash -n <("$STAVE" completion bash)
NO_COLOR=1 CLICOLOR_FORCE=1 "$STAVE" info --help >plain; "$STAVE" info --help --color always >coloured
check no_color_is_respected sh -c '! grep -q "$(printf "\033")" plain'
check color_always grep -q $'\033' coloured
