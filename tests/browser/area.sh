#!/usr/bin/env bash
# The selected area: a tab for each kind of what is in it, edges that can be dragged; results of queries as rows.
. "$SRC/tests/browser/lib.sh"
browse area
