#!/usr/bin/env bash
# Hostile names, arguments, results, notes and addresses: no script runs, nothing leaves the machine.
. "$SRC/tests/browser/lib.sh"
browse hostile
