#!/usr/bin/env bash
# stave explain on recordings of the programs of quick.sh without states and calls: it blames nobody wrongly. STAVE_LONG=1 as there.
. "$SRC/tests/harness/cli.sh"
. "$SRC/tests/harness/kernel.sh"
. "$SRC/tests/harness/why.sh"
judged bare --bare --goal 100
