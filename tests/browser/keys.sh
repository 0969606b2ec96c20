#!/usr/bin/env bash
# Every interaction by keyboard and mouse.
. "$SRC/tests/browser/lib.sh"
browse keys
