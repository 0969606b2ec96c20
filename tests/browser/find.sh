#!/usr/bin/env bash
# The search finds arguments, rows and processes as SQL does; the palette goes to rows.
. "$SRC/tests/browser/lib.sh"
browse find
