# shellcheck shell=bash disable=SC2154
# The statements of share/sql/clickhouse against Stave's own answers; part of tests/cli/clickhouse.sh.
