#!/usr/bin/env bash
# Two tabs, reload, a killed and restarted viewer, wrong tokens, empty traces.
. "$SRC/tests/browser/lib.sh"
browse life
