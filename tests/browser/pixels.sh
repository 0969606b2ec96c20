#!/usr/bin/env bash
# What the page says of a pixel equals SQL; planted outliers stay visible at every zoom.
. "$SRC/tests/browser/lib.sh"
browse pixels
