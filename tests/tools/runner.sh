#!/usr/bin/env bash
# tests/run counts what it should, and the unit runner makes one failed test of a crash.
. "$SRC/tests/harness/cli.sh"

mkdir -p tree/tests/a tree/tools && cp "$SRC/tests/run" tree/tests/
printf '#!/bin/sh\nexit 0\n' >tree/tools/check-layers
cp tree/tools/check-layers tree/tools/check-style
script() { cat >"tree/tests/a/$1.sh"; chmod +x "tree/tests/a/$1.sh"; }

# counts NAME EXIT LINE [ARGUMENT…]: tests/run over suite a exits so and ends in that line.
counts() {
  local name=$1 code=$2 line=$3; shift 3
  tree/tests/run "$@" build:a >said 2>&1
  if [ $? = "$code" ] && [ "$(tail -n 1 said)" = "$line" ]; then ok "$name"; else cat said; not_ok "$name"; fi
}

counts nothing_is_a_failure 1 '0 passed, 1 failed, 0 skipped'
script pass <<<'exit 0'
script skipped <<<'echo no such device; exit 77'
counts pass_and_skip 0 '1 passed, 0 failed, 1 skipped'
check skip_says_why grep -q 'a/skipped.sh: no such device' said
script parts <<<'echo ok one; echo ok two; echo skip three: why'
counts parts 0 '3 passed, 0 failed, 2 skipped'
script broken <<<'echo some output; exit 3'
counts failure 1 '3 passed, 1 failed, 2 skipped'
check failure_shows_output grep -q '| some output' said
script broken <<<'echo ok one; echo not ok two; exit 1'
counts failed_part 1 '4 passed, 1 failed, 2 skipped'
script broken <<<'echo ok one; exit 1'
counts dies_after_parts 1 '4 passed, 1 failed, 2 skipped'
counts filter 0 '1 passed, 0 failed, 0 skipped' -f a/pass
script broken <<<'echo ok one; no_such_command; echo ok two'
counts says_something_on_stderr 1 '2 passed, 1 failed, 0 skipped' -f broken
check stderr_is_shown grep -q '| .*no_such_command' said

# What the shell says while a script of the harness is at work: an expression that is wrong drops the check that contains it.
mkdir -p tree/tests/harness tree/build && cp "$SRC/tests/harness/cli.sh" tree/tests/harness/ && cp tree/tools/check-layers tree/build/stave && chmod +x tree/build/stave
harness() { { echo '#!/usr/bin/env bash'; echo '. "$SRC/tests/harness/cli.sh"'; cat; } | script broken; }
harness <<'END'
check before true
check wrong [ $((3 -)) = 3 ]
check after true
END
counts wrong_expression 1 '2 passed, 1 failed, 0 skipped' -f broken
harness <<'END'
wrong() { [ $((3 -)) = 3 ]; }
check wrong wrong
check after true
END
counts wrong_expression_in_a_function 1 '1 passed, 1 failed, 0 skipped' -f broken
check wrong_is_named grep -q 'not ok wrong: it did not come to its end' said
harness <<'END'
wrong() { exit 0; }
check wrong wrong
END
counts exit_within_a_check 1 '0 passed, 1 failed, 0 skipped' -f broken
harness <<'END'
not() { ! "$@"; }
check wrong not no_such_command
run_any wrong_too 127 no_such_command
run wrong_again 1 eval '! bash -c no_such_command'
END
counts command_not_found 1 '0 passed, 3 failed, 0 skipped' -f broken
harness <<'END'
killed() { bash -c 'kill -9 $$'; [ $? = 137 ]; }
check killed killed
END
counts killed_process_is_no_error 0 '1 passed, 0 failed, 0 skipped' -f broken

# What fails runs once more, alone, after all others; what passes then is flaky.
rm -f tree/tests/a/*.sh
flaky() { script "$1" <<<"if [ -e '$TMP/$1.ran' ]; then echo fine this time; exit 0; fi; touch '$TMP/$1.ran'; echo bad luck; exit 1"; rm -f "$1.ran"; }
flaky one; flaky two; script pass <<<'exit 0'
counts flaky_passes 0 '3 passed, 0 failed, 0 skipped'
listed() { tail -n 3 said | diff - <(printf '%s\n' 'flaky: a/one.sh' 'flaky: a/two.sh' '3 passed, 0 failed, 0 skipped'); }
check flaky_is_listed listed
check flaky_shows_both_outputs sh -c 'grep -q "| bad luck" said && grep -q "| fine this time" said'
flaky one; flaky two; flaky three
counts more_than_two_flaky_fail 1 '4 passed, 1 failed, 0 skipped'
rm -f tree/tests/a/*.sh ./*.ran
script count <<<"echo x >>'$TMP/count'; exit 1"
counts fails_twice 1 '0 passed, 1 failed, 0 skipped'
check runs_twice_only [ "$(wc -l <count)" = 2 ]
rm count; rm tree/tests/a/count.sh
script two <<<"[ ! -e '$TMP/one.ended' ]" # would fail if the second run came before it
script one <<<"if [ -e '$TMP/one.ran' ]; then touch '$TMP/one.ended'; exit 0; fi; touch '$TMP/one.ran'; exit 1"
counts alone_after_all_others 0 '2 passed, 0 failed, 0 skipped' -j 1 -f /
flaky one; flaky two
TEST_AGAIN=1 counts many_failures_do_not_run_again 1 '0 passed, 2 failed, 0 skipped'
rm -f tree/tests/a/*.sh

# The long ones start first, whatever their names; those that must be alone come last.
mkdir tree/tests/why
for name in a/first a/last why/quick; do printf '#!/bin/sh\necho %s >>%s\n' "$name" "$TMP/order" >"tree/tests/$name.sh"; chmod +x "tree/tests/$name.sh"; done
printf '%s\n' '70 1 a/last.sh' '90 1 why/quick.sh' >tree/tests/seconds
tree/tests/run -j 1 -w took build:a,why >said 2>&1
check long_ones_first [ "$(tr '\n' ' ' <order)" = 'a/last a/first why/quick ' ]
check seconds_are_written [ "$(sort -k3 took | sed -E 's/^[0-9]+ [0-9]+\.[0-9] //' | tr '\n' ' ')" = 'a/first.sh a/last.sh why/quick.sh ' ]
rm -r tree/tests/seconds tree/tests/why tree/tests/a/*.sh

# -m: the other builds are made meanwhile; what needs them waits, all else does not.
rm -f order
mkdir tree/build-asan
script first <<<"until [ -e '$TMP/began' ]; do sleep 0.05; done; echo \$BUILD >>'$TMP/order'; touch '$TMP/ran'"
script second <<<"[ \"\$BUILD\" = \"\$SRC/build\" ] || [ -e '$TMP/made' ]"
tree/tests/run -j 1 -m "touch '$TMP/began'; until [ -e '$TMP/ran' ]; do sleep 0.05; done; touch '$TMP/made'; echo it was made" build:a build-asan:a >said 2>&1
check meanwhile [ "$?|$(tail -n 1 said)" = '0|4 passed, 0 failed, 0 skipped' ]
check meanwhile_is_shown grep -qx 'it was made' said
rm -f made; touch made
tree/tests/run -m 'echo a broken build; exit 3' build:a >said 2>&1
check meanwhile_fails [ "$?|$(tail -n 1 said)" = '1|2 passed, 1 failed, 0 skipped' ]
check meanwhile_says_why grep -qx 'a broken build' said
rm -r tree/build-asan tree/tests/a/*.sh

# -f selects inside of the unit tests and the golden files, too; where nothing has the word that is a failure, once for all suites.
mkdir -p tree/build/tests tree/tests/golden/good
printf '#!/bin/sh\n[ "$1" = -l ] || { echo "ok of $*"; exit; }\ncase $2 in alpha) echo a.alpha ;; esac\n' >tree/build/tests/unit
printf '#!/bin/sh\necho "ok golden of $*"\n' >tree/tests/golden/run.sh
chmod +x tree/build/tests/unit tree/tests/golden/run.sh
touch tree/tests/golden/good/alpha_beta.toy
selects() { tree/tests/run -f "$1" build:unit,golden,a >said 2>&1; [ "$(grep -E '^ok ' said | awk '{ print $3 }' | sort | xargs)|$(tail -n 1 said)" = "$2" ]; }
check word_in_both selects alpha 'golden/run.sh unit|2 passed, 0 failed, 0 skipped'
check word_in_a_golden selects beta 'golden/run.sh|1 passed, 0 failed, 0 skipped'
check word_in_neither selects gamma '|0 passed, 1 failed, 0 skipped'
check word_is_the_suite selects unit 'unit|1 passed, 0 failed, 0 skipped'
rm -r tree/build/tests tree/tests/golden

# Fuzz targets come from their sources: one without a corpus runs; a corpus without a target, and a target that is not built, fail.
mkdir -p tree/tests/fuzz/corpus/with tree/build/tests/fuzz
touch tree/tests/fuzz/fuzz_with.c tree/tests/fuzz/fuzz_without.c
for target in with without; do printf '#!/bin/sh\necho "$*" >>%s\n' "$TMP/given" >"tree/build/tests/fuzz/fuzz_$target"; done
chmod +x tree/build/tests/fuzz/*
fuzzed() { tree/tests/run -j 1 build:fuzz >said 2>&1; [ "$(tail -n 1 said)" = "$1" ]; }
check target_without_a_corpus fuzzed '2 passed, 0 failed, 0 skipped'
check targets_get_their_corpus diff <(sed 's/ *$//' given) <(printf '%s\n' '-rounds=20 tests/fuzz/corpus/with' '-rounds=20')
mkdir tree/tests/fuzz/corpus/of_none
check corpus_without_a_target fuzzed '2 passed, 1 failed, 0 skipped'
rm -r tree/tests/fuzz tree/build/tests
printf 'int LLVMFuzzerTestOneInput(const unsigned char *p, unsigned long n) { (void)p; (void)n; return 0; }\n' | sed '1i #include <stddef.h>' >target.c
check fuzz_driver_compiles gcc -std=c17 -D_GNU_SOURCE target.c "$SRC/tests/harness/fuzz_main.c" -o target
check no_file_is_an_empty_input [ "$(./target -rounds=20)" = '# 21 inputs' ]

# Limits grow with the scale.
script broken <<<'timeout --foreground -s KILL -k 5 1 sh -c "sleep 1.5; echo ok slept"; timeout 1 sleep 60; [ $? = 124 ] && echo ok ended'
TEST_SCALE=3 counts limits_are_scaled 0 '2 passed, 0 failed, 0 skipped'
script broken <<<'[ "$TEST_SCALE" -ge 2 ]'
TEST_SCALE='' counts scale_is_measured 0 '1 passed, 0 failed, 0 skipped'

script broken <<<'sleep 60'
TEST_SCALE=1 TEST_TIMEOUT=1 counts time_limit 1 '0 passed, 1 failed, 0 skipped' -f broken
script broken <<<'[ -d "$TMP" ] && [ "$STAVE" = "$BUILD/stave" ] && [ "$BUILD" = "$SRC/build" ]'
counts environment 0 '1 passed, 0 failed, 0 skipped' -f broken

# What ASan need not see every time: named in tests/asan-long, and there.
rm -f tree/tests/a/*.sh; script pass <<<'exit 0'; script later <<<'exit 0'; mkdir -p tree/build-asan
echo 'a/later.sh it reads nothing' >tree/tests/asan-long
asan() { tree/tests/run build-asan:a >said 2>&1; grep -qx "$1" said; }
check asan_later asan '1 passed, 0 failed, 1 skipped'
check asan_later_is_said grep -q 'a/later.sh: .*STAVE_LONG' said
STAVE_LONG=1 check asan_long asan '2 passed, 0 failed, 0 skipped'
counts only_asan 0 '2 passed, 0 failed, 0 skipped'
listed_scripts() { local name bad=0; while read -r name _; do [[ $name = '#'* ]] || [ -x "$SRC/tests/$name" ] || { echo "tests/$1: no $name"; bad=1; }; done <"$SRC/tests/$1"; [ $bad = 0 ]; }
check asan_long_names_scripts listed_scripts asan-long
mkdir tree/build-minimal; mv tree/tests/asan-long tree/tests/minimal-without
tree/tests/run build-minimal:a build:a >said 2>&1
check minimal_leaves_out test "$(grep -c 'minimal:a/later.sh: .*minimal-without' said) $(tail -n 1 said)" = '1 3 passed, 0 failed, 1 skipped'
check minimal_without_names_scripts listed_scripts minimal-without

cat >test_sample.c <<'C'
#include "tests/harness/test.h"
#include <stdlib.h>
TEST(passes) { CHECK_INT_EQ(1, 1); CHECK_STR_EQ("a", "a"); }
TEST(fails) { CONTEXT("row %d", 7); CHECK_INT_EQ(1, 2); CHECK_STR_EQ("a", NULL); }
TEST(crashes) { abort(); }
TEST(leaves) { REQUIRE(0); abort(); }
TEST(skips) { SKIP("no device"); }
TEST(starves) { test_alloc_fail(2); void *a = malloc(1), *b = malloc(1); CHECK(a && !b); free(a); }
C
check compiles gcc -std=c17 -D_GNU_SOURCE -DTEST_SRC='"."' -I"$SRC" -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=fdopendir \
  test_sample.c "$SRC/tests/harness/test.c" "$SRC/tests/harness/alloc.c" -o sample
./sample >said 2>/dev/null
check fails_when_one_fails [ $? = 1 ]
results() { grep -E '^(ok|not ok|skip) ' said | diff - <(printf '%s\n' 'ok sample.passes' 'not ok sample.fails' 'not ok sample.crashes' 'not ok sample.leaves' 'skip sample.skips: no device' 'ok sample.starves'); }
check results results
check says_where grep -qF 'test_sample.c:4: 1 == 2: 1 is not 2  [row 7]' said
check filters [ "$(./sample -l star)" = sample.starves ]
check without_fork ./sample -n passes skips
