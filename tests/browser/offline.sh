#!/usr/bin/env bash
# The exported page answers as the server does.
. "$SRC/tests/browser/lib.sh"
browse offline
