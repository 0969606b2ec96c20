#!/usr/bin/env bash
# The page of operators has the numbers of SQL and of the reports; from each sum a link leads to its longest instance, the next and the previous one.
. "$SRC/tests/browser/lib.sh"
browse links
