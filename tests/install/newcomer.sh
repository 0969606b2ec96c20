#!/usr/bin/env bash
# A newcomer's first hour, in a clone of the last commit: make, the tutorial, one edit that makes a test fail, the edit taken back. Takes minutes: in the long suite.
. "$SRC/tests/harness/cli.sh"
case $BUILD in */build) ;; *) skip_all "once is enough" ;; esac
[ -n "${STAVE_LONG:-}" ] || skip_all "takes minutes: make test-long"
git -C "$SRC" rev-parse HEAD >commit 2>/dev/null || skip_all "not a git checkout"

check clone git clone -q "$SRC" clone
cd clone || exit 1
export STAVE_NO_DEPS=1 # tests/tools and a fresh machine try the installing
check make make >../make.log 2>&1
check the_program_says_who_it_is build/stave --version >../version
check run_makes_its_trace eval 'make run >../run.log 2>&1 && [ -s out/training.pftrace ]'
check tutorial tests/run -f tutorial build:install >../tutorial.log 2>&1

# CONTRIBUTING.md, "Edit, test, look": an edit, the tests that touch it, in one command.
check tests_pass make check T=chrome >../check.log 2>&1
sed -i 's/sv_json_put(j, "traceEvents"/sv_json_put(j, "traceEvent"/' src/formats/chrome/kineto_write.c
check the_edit_is_one test "$(git diff --name-only)" = src/formats/chrome/kineto_write.c
check the_tests_notice eval '! make check T=chrome >../broken.log 2>&1'
git checkout -q src
check taken_back make check T=chrome >../again.log 2>&1
