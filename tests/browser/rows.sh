#!/usr/bin/env bash
# Rows come in the order that people look for them; very many at once are one curve, and processes that do nothing one group.
. "$SRC/tests/browser/lib.sh"
browse rows
