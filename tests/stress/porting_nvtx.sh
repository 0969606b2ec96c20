#!/usr/bin/env bash
# docs/porting.md, "From NVTX": every row is code that was compiled, and is in the trace.
. "$SRC/tests/harness/cli.sh"
. "$SRC/tests/harness/porting.sh"
export STAVE_SESSION_DIR=$TMP/sessions STAVE_FULL=block
mkdir -p "$STAVE_SESSION_DIR"

check rows porting_rows "From NVTX" "$SRC/tests/stress/porting_nvtx.cpp" 12
STAVE_OUT=run.pftrace run_any program 0 "$BUILD/tests/stress/porting_nvtx"
run_any cat 0 "$STAVE" cat -q run.pftrace
has() { local text; for text; do grep -qF -- "$text" cat.out || { echo "lacks $text"; return 1; }; done; }
check events has 'name="loader"' 'begin #2 "whole_function" cat="nvtx"' '"epoch" cat="nvtx"' '"7" cat="nvtx"' 'instant #2 "checkpoint" cat="nvtx"' '"batch" cat="nvtx"' \
  '"known at run time" cat="nvtx"' '{payload=42}' 'name="ranges"' '"request" cat="nvtx"' '"gemm" cat="my.domain" {shape=[8 128] color="#ff0000"}' 'name="queue"'
# shellcheck disable=SC2016 # for the inner shell
check all_ended sh -c '[ "$(grep -c " begin " cat.out)" = 7 ] && [ "$(grep -c " end " cat.out)" = 7 ]'
STAVE_CATEGORIES='-my.*' STAVE_OUT=less.pftrace run_any less 1 "$BUILD/tests/stress/porting_nvtx"
run_any less_cat 0 "$STAVE" cat -q less.pftrace
check categories_are_switches sh -c 'grep -q epoch less_cat.out && ! grep -q gemm less_cat.out'
