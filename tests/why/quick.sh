#!/usr/bin/env bash
# stave explain on recordings of real programs whose cause is known (tests/why/programs): it must earn 95 % of the points and raise no false alarm on healthy programs.
# STAVE_LONG=1: all programs, three recordings each, with the same verdicts. The programs measure themselves; nothing here has a time limit.
. "$SRC/tests/harness/cli.sh"
. "$SRC/tests/harness/kernel.sh"
. "$SRC/tests/harness/why.sh"
judged explained --goal 95
