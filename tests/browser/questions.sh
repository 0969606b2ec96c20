#!/usr/bin/env bash
# Seven questions, each answered from the first screen in at most four interactions.
. "$SRC/tests/browser/lib.sh"
browse questions
