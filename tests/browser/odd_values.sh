#!/usr/bin/env bash
# Counters with NaN and infinities in the page and in the exported page.
. "$SRC/tests/browser/lib.sh"
browse odd_values
