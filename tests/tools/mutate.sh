#!/usr/bin/env bash
# tools/mutate: its list applies to this tree, and what is wrong with an entry is said. (The faults themselves are tried by `make test-long`.)
. "$SRC/tests/harness/cli.sh"
[ "$BUILD" = "$SRC/build" ] || { echo "once is enough"; exit 77; }

check list_applies "$SRC/tools/mutate" --check
mkdir list
# entry FUNCTION FIND SUITES
entry() { printf 'name: one\nfile: core/base/wire.c\nfunction: %s\nfind: %s\nput: x\nsuites: %s\nwhy: nothing\n' "$1" "$2" "$3" >list/a.txt; }
# refuses NAME TEXT
refuses() { if "$SRC/tools/mutate" --check --from list >out 2>&1; then cat out; not_ok "$1"; elif grep -q "$2" out; then ok "$1"; else cat out; not_ok "$1"; fi; }
entry sv_put_begin 'sv_buf_byte(b, 0);' unit:wire
check applies "$SRC/tools/mutate" --check --from list
entry sv_put_begin 'sv_buf_byte(b, 77);' unit:wire
refuses no_such_text "0 times in sv_put_begin"
entry sv_put_end 'b' unit:wire
refuses many_places "times in sv_put_end"
entry sv_no_such 'b' unit:wire
refuses no_such_function "0 functions sv_no_such"
entry sv_put_begin 'sv_buf_byte(b, 0);' stress/none.sh
refuses no_such_suite "no suite stress/none.sh"
printf 'name: one\nfile: core/base/wire.c\n' >list/a.txt
refuses half_an_entry "without find"

# A sample has so many of the list, the same ones for a seed; without one the day is the seed.
sample() { "$SRC/tools/mutate" --list --sample "$@" | grep -v '^#'; }
check sample_has_so_many test "$(sample 5 --seed 7 | sort -u | wc -l)" = 5
check sample_is_chosen_by_the_seed test "$(sample 5 --seed 7)" = "$(sample 5 --seed 7)" -a "$(sample 5 --seed 7)" != "$(sample 5 --seed 8)"
check sample_names_its_seed grep -qE '^# 3 of [0-9]+: --sample 3 --seed 20[0-9]{6}$' <("$SRC/tools/mutate" --list --sample 3)

# Random faults: what is changed, what is not, and that a seed gives the same ones again.
cat >random.py <<'PY'
import os, sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1] + "/tools")
import mutants

def texts(line): return {c.strip() for c, _ in mutants.changes_of(line)}
assert texts("    if (a < b && !c)") == {"if (a <= b && !c)", "if (a >= b && !c)", "if (a < b || !c)", "if (a < b && c)", "if (false && (a < b && !c))", "if (true || (a < b && !c))"}
assert texts("    total += n;") == {"total = n;", "total -= n;", ";"}
assert texts("    return sv_err_sys(err, \"a < b\");") == {"return 0;"}
assert texts("    return true;") == {"return false;"}
assert texts("    close(fd);") == {";"}
assert texts("    x = 12; /* 13 */") == {"x = 13; /* 13 */", "x = 0; /* 13 */"}
for kept in ("    assert(a < b);", "#if A < B", "    /* a < b */", "    case 3:", "    puts"): assert texts(kept) == set(), kept
first = mutants.draw(sys.argv[1], 30, 7, ["listen", "files"])
assert first == mutants.draw(sys.argv[1], 30, 7, ["listen", "files"]) != mutants.draw(sys.argv[1], 30, 8, ["listen", "files"])
assert len({m[:2] for m in first}) == len(first) == 150 and all(m[0].startswith(("src/listen/", "core/files/")) for m in first)
for path, number, change, _ in first:
    text = open(os.path.join(sys.argv[1], path), encoding="utf-8").read()
    assert mutants.with_line(text, number, change) != text
low, high = mutants.wilson(96, 120)
assert abs(low - 0.7196) < 0.001 and abs(high - 0.8617) < 0.001, (low, high)
PY
check random_faults python3 random.py "$SRC"

# A whole run over a tree of one file, with a test that reaches all of it but one function: judged, kept, and not judged again.
mkdir -p tiny/core/files tiny/tools tiny/build
printf '#!/bin/sh\necho core/files/a.c\n' >tiny/tools/list-files; chmod +x tiny/tools/list-files
cat >tiny/core/files/a.c <<'C'
/* Two functions; the second is tested by nobody. */
int clamp(int x);
int spare(int x);
int clamp(int x)
{
    if (x > 7)
        return 7;
    return x;
}

int spare(int x)
{
    return x + 5;
}

int main(void)
{
    return clamp(9) == 7 && clamp(8) == 7 && clamp(7) == 7 && clamp(3) == 3 ? 0 : 1;
}
C
cat >tiny/build/build.ninja <<'N'
rule cc
  command = cc -g -O1 -MD -MT $out -MF $out.d -o $out -c $in
rule link
  command = cc -o $out $in
build a.c.o: cc ../core/files/a.c
build prog: link a.c.o
N
cat >whole.py <<'PY'
import os, subprocess, sys, types
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1] + "/tools")
import mutants
judged = 0

class Suite:
    targets = ["prog"]
    def __init__(self, word): self.word = word
    def build(self):
        out = subprocess.run(["ninja", "-C", "tiny/build", "prog"], capture_output=True, text=True)
        return out.returncode == 0, out.stdout
    def passes(self, limit):
        global judged
        judged += 1
        return subprocess.run(["tiny/build/prog"]).returncode == 0, "not ok clamp"

reach = types.SimpleNamespace(reach=lambda path, number: ["unit:clamp"] if number < 10 or number > 15 else [])
runner = types.SimpleNamespace(healthy={}, is_healthy=lambda suite: runner.healthy.setdefault(suite.word, True), limit=lambda suite: 60)
options = types.SimpleNamespace(random=6, seed=3, area="files", without=[], most=9)
tree = os.path.abspath("tiny")
before = open("tiny/core/files/a.c").read()
for _ in range(2):
    mutants.run(tree, options, mutants.Judge(tree, reach, {}, runner, Suite), lambda out: out)
    assert open("tiny/core/files/a.c").read() == before
    print("judged", judged)
PY
whole() { python3 whole.py "$SRC" >whole.out 2>&1; }
check random_run whole
check random_results sh -c 'grep -q "^killed *core/files/a.c:7: .* by unit:clamp$" whole.out && grep -q "^UNREACHED core/files/a.c:13: " whole.out'
check random_summary grep -qE '^[0-9]+ of [0-9]+ noticed \([0-9]+ %, 95 % interval [0-9]+ to [0-9]+ %\); 1 reached by no suite$' whole.out
check random_resumes [ "$(grep -c '^judged' whole.out)" = 2 ] && check random_judges_once [ "$(grep '^judged' whole.out | sort -u | wc -l)" = 1 ]

# --marks: who enters a function is measured by the functions themselves, and the sources are as they were.
cat >tiny/unit <<'U'
#!/bin/sh
TEST_NAME=a.enters "$(dirname "$0")/build/prog"
echo "ok a.enters"; echo "# 3 ms of CPU: a.enters"; echo "ok a.other"; echo "not ok a.fails"
U
chmod +x tiny/unit
cat >marks.py <<'PY'
import os, subprocess, sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1] + "/tools")
import mutants
tree, path = os.path.abspath("tiny"), "core/files/a.c"
before = open("tiny/" + path).read()
lines = before.split("\n")
faults = [(path, n, "", "") for n in (7, 13)]
builds = []
def build():
    builds.append(open("tiny/" + path).read())
    subprocess.run(["ninja", "-C", "tiny/build", "prog"], check=True, stdout=subprocess.DEVNULL)
def made():
    marks = mutants.Marks(tree, "state", faults)
    marks.make([], tree + "/unit", build)
    return marks
marks = made()
assert open("tiny/" + path).read() == before and builds[0].count("sv_mark_(") == 2, builds
assert marks.reach(path, 7) == ["test:a.enters"] and marks.reach(path, 13) == [], marks.tests
assert "test:a.other" in marks.seconds and "test:a.fails" not in marks.seconds and marks.seconds["test:a.enters"] == 0.003
assert made().tests == marks.tests and len(builds) == 1  # kept
PY
marks() { python3 marks.py "$SRC" >marks.out 2>&1 || { cat marks.out; return 1; }; }
check marks_by_function marks
