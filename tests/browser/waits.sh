#!/usr/bin/env bash
# A selected wait says what for, which lock, who ended it, and shows both stacks; keys and arrows lead to the others.
. "$SRC/tests/browser/lib.sh"
browse waits
