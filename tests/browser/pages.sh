#!/usr/bin/env bash
# The pages of steps, GPU, I/O, serving and ranks have the numbers of the commands, and lead to the right place of the time line.
. "$SRC/tests/browser/lib.sh"
browse pages
