#!/usr/bin/env bash
# stave explain on recordings that a user without privileges makes of the programs of quick.sh: 80 % of the points, and nobody is blamed wrongly.
. "$SRC/tests/harness/cli.sh"
[ -n "${STAVE_LONG:-}" ] || skip_all "takes minutes: make test-long"
[ "$(id -u)" = 0 ] || skip_all "needs root to become another user"
. "$SRC/tests/harness/why.sh"
judged user --user --goal 80
