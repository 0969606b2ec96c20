#!/usr/bin/env bash
# The page looks as its pictures in docs/images do; UPDATE=1 writes them.
. "$SRC/tests/browser/lib.sh"
browse pictures
