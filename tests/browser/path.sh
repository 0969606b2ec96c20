#!/usr/bin/env bash
# The critical path of a slice, a wait or an area as a row: its pieces are those of `stave critical-path`, in the fixed colours; each leads to its thread.
. "$SRC/tests/browser/lib.sh"
browse path
