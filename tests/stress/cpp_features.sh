#!/usr/bin/env bash
# What a C++ program writes, and what is then in the file (cpp_features.cpp); what does not compile says what to write instead.
. "$SRC/tests/harness/cli.sh"
export STAVE_SESSION_DIR=$TMP/sessions STAVE_FULL=block
mkdir -p "$STAVE_SESSION_DIR"

run_any off 0 "$BUILD/tests/stress/cpp_features"
STAVE_OUT=cpp.pftrace run_any on 0 "$BUILD/tests/stress/cpp_features" on
run_any cat 0 "$STAVE" cat -q cpp.pftrace
has() { grep -qF -- "$1" cat.out || { grep -F -- "${1%% *}" cat.out; return 1; }; }
check containers has '"containers" cat="v" {shape=[8 128 4096] losses={a=[0.5 1.5] b=[]} flags={"7"=true} n=5}'
check nulls has '"nulls" cat="v" {null=null name="resnet" no_name=null holes=[1 null] last=1.5}'
check others has '"others" cat="v" {dims=[4 5] mode=3 cut="bcd" path="/a/b" char="text" bits=[true false] pointer=0x1234}'
x=$(printf 'x%.0s' {1..1000})
check long_texts has "\"long texts\" cat=\"v\" {view=\"$x\" string=\"$x\"}"
check dynamic_name has "\"$x\" cat=\"v\" {list=[\"p\" \"q\"]}"
check many_items has '"... (44 more items)"'
check pairs_of_a_scope has 'begin #2 "outer name" cat="s" {layer=12 shape=[1 2]}'
check later_arguments has ' {loss=0.25 more={k=1}}'
check not_when_moved_from sh -c '! grep -q lost cat.out'
check name_by_a_function has '"made by a function" cat="s"'
check built_arguments has '"with args" cat="s" {built=1}'
check exception has '"exception" cat="s" {n=1}'
check all_ended sh -c '[ "$(grep -c " begin " cat.out)" = "$(grep -c " end " cat.out)" ]'
check nothing_of_what_is_off sh -c '! grep -q "cat=.off" cat.out'
run_any requests 0 "$STAVE" query -q cpp.pftrace "select name, extract_arg(arg_set_id, 'id') || ' ' || extract_arg(arg_set_id, 'status') from slice where name like 'request%' order by 1"
check ends_by_any_thread sh -c 'grep -q "request a,1 200" requests.out && grep -q "request b,2 404" requests.out'
check valid "$STAVE" validate -q cpp.pftrace

# says COMPILER… TEXT: one error, which has the text.
refused() {
  local text=$1; shift
  "$@" -I"$SRC/include" -fsyntax-only >refused.log 2>&1 && { echo "it compiles"; return 1; }
  [ "$(grep -cE '(^|[^-])error: ' refused.log)" -le "${errors:-1}" ] && grep -qF -- "$text" refused.log || { head -n 5 refused.log; return 1; }
}
echo '#include <stave/stave.hpp>
int main() { STAVE_SCOPE("a", "b", "k", 1); stave::scope s("a", "b"); s.add("k", 1); STAVE_INSTANT("a", "c"); }' >old.cpp
check too_old_a_standard refused 'needs C++17' "${CXX:-c++}" -std=c++14 old.cpp
echo '#include <stave/stave.h>
int main(void) { STAVE_SCOPE("a", "b", "k", 1); STAVE_FUNC(); return 0; }' >old.c
check too_old_a_standard_for_macros refused 'needs C++11' "${CXX:-c++}" -std=c++98 -x c++ old.c
check too_old_a_standard_for_c refused 'needs C11' "${CC:-cc}" -std=c89 old.c
check c99_is_enough "${CC:-cc}" -std=c99 -Wall -Wextra -Werror -I"$SRC/include" -fsyntax-only old.c
echo '#include <stave/stave.h>
void f(const char *name); void f(const char *name) { STAVE_SCOPE("a", name); }' >name.c
errors=2 check name_in_c refused '_DYN' "${CC:-cc}" -std=c11 name.c
echo '#include <stave/stave.hpp>
void f(const std::string &name) { STAVE_SCOPE("a", name.c_str()); }' >name.cpp
check name_in_cpp refused '_DYN' "${CXX:-c++}" -std=c++17 name.cpp
echo '#include <stave/stave.hpp>
struct thing {}; void f(const thing &t) { STAVE_INSTANT("a", "b", "t", t); }' >type.cpp
errors=3 check type_that_is_no_argument refused 'an argument is a number, a text' "${CXX:-c++}" -std=c++17 type.cpp
echo '#include <stave/stave.hpp>
constexpr const char *fixed = "fixed"; void f(int a) { STAVE_FUNC_ARGS(a); STAVE_SCOPE("a", fixed); STAVE_FUNC(); STAVE_COUNTER("a", "n", a); }' >right.cpp
check what_is_right_compiles "${CXX:-c++}" -std=c++17 -Wall -Wextra -Wpedantic -Werror -I"$SRC/include" -fsyntax-only right.cpp
