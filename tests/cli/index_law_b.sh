#!/usr/bin/env bash
# Indexes of traces: all that the commands say is the same with and without, for one half of the golden files.
. "$SRC/tests/harness/cli.sh"
. "$SRC/tests/harness/index.sh"
law 1 2
