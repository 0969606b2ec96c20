"""Random faults for tools/mutate: they are made from the source itself, and judged by the suites that reach their line.

A fault is one change on one line of a function: an operator, a constant, a condition, a statement that is left out, an error that is not returned.
Faults that do not compile, or that give the same object code, are drawn again. Which suites reach which line is measured once, by a build with
gcov (build-cover, --map), and kept in build-mutate/.map with the seconds of each suite. A process that is killed leaves no coverage: the suites that
tests/mutations names for the file count, too. A fault that no suite reaches has survived.

--marks does without that map: in the copy, the functions that hold the drawn faults mark who enters them, the unit tests (and the scripts of --suites) run
once, and a fault is judged by the tests that entered its function, one by one, the quickest first. What fails must fail twice, and pass without the fault."""

import glob
import gzip
import hashlib
import json
import math
import os
import re
import subprocess
import sys
import time

AREAS = {
    "sdk": ["lib/sdk/"],
    "files": ["core/files/"],
    "record": ["src/record/"],
    "listen": ["src/listen/"],
    "net": ["src/net/"],
    "recovery": ["src/cmd/recover", "src/files/tail.c", "src/files/kept.c", "src/files/found.c", "src/files/beside.c"],
}
SWAPS = {" < ": [" <= ", " >= "], " <= ": [" < "], " > ": [" >= ", " <= "], " >= ": [" > "], " == ": [" != "], " != ": [" == "],
         " && ": [" || "], " || ": [" && "], " += ": [" = ", " -= "], " -= ": [" += "], " + ": [" - "], " - ": [" + "], " |= ": [" = ", " &= "],
         " & ": [" | "], " | ": [" & "], " << ": [" >> "], " >> ": [" << "], "++": ["--"]}
SITE = re.compile("|".join(sorted(map(re.escape, SWAPS), key=len, reverse=True)) + r"|(?<![\w.])\d+(?![\w.])|(?<=[( ])!(?=[a-z(])")


def areas_of(names):
    return sorted(names.split(",") if names else AREAS)


# ---- what can be changed ----

def hide(line):
    """The line with strings, characters and comments blanked out, so that nothing is found there."""
    return re.sub(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])*\'|/\*.*?(\*/|$)|//.*', lambda m: "\0" * len(m[0]), line)


def is_code(shown):
    text = shown.strip()
    return bool(text) and text[0] not in "#*{}" and not re.match(r"(assert|static_assert|_Static_assert|case|default|static const)\b", text)


def changes_of(line):
    """All changed versions of a line of a function."""
    shown, found = hide(line), []
    if not is_code(shown):
        return found
    for match in SITE.finditer(shown):
        old = match[0]
        if old == "!":
            news = [""]
        elif old.isdigit():
            news = [str(int(old) + 1)] + (["0"] if int(old) > 1 else [])
        else:
            news = SWAPS[old]
        found += [(line[:match.start()] + new + line[match.end():], "constant" if old.isdigit() else "operator") for new in news]
    indent = line[:len(line) - len(line.lstrip())]
    body = shown.strip()
    if re.fullmatch(r"[a-z_][\w.\->\[\]]*(\(.*\)| [-+|&]?= .*|\+\+|--);", body):
        found.append((f"{indent};", "statement left out"))
    condition = re.fullmatch(r"(if|while) \((.*)\)( \{)?", body)
    if condition and body.count("(") == body.count(")"):
        text = line.strip()[len(condition[1]) + 2:len(line.strip()) - 1 - len(condition[3] or "")]
        found += [(f"{indent}{condition[1]} ({constant} && ({text})){condition[3] or ''}", "condition") for constant in ("false",)]
        if condition[1] == "if":
            found.append((f"{indent}if (true || ({text})){condition[3] or ''}", "condition"))
    if re.match(r"return (-1|-SV_\w+|SV_E\w+|sv_err\w*\(.*\)|err->code|code);", body):
        found.append((f"{indent}return 0;", "error that is not returned"))
    if re.fullmatch(r"return (true|false);", body):
        found.append((line.replace("true", "\1").replace("false", "true").replace("\1", "false"), "result"))
    return found


def mutants_of(root, path):
    """(path, line number, change, kind) of all functions of a file."""
    found, is_inside, is_comment = [], False, False
    with open(os.path.join(root, path), encoding="utf-8") as source:
        for number, line in enumerate(source.read().split("\n"), 1):
            if line == "{":
                is_inside = True
            elif line == "}":
                is_inside = False
            elif is_inside and not is_comment:
                found += [(path, number, change, kind) for change, kind in changes_of(line)]
            if "/*" in line and "*/" not in line.partition("/*")[2]:
                is_comment = True
            elif "*/" in line:
                is_comment = False
    return found


def all_mutants(root, areas):
    listed = subprocess.run(["tools/list-files"], cwd=root, stdout=subprocess.PIPE, text=True, check=True).stdout.split("\n")
    paths = sorted(p for p in listed if p.endswith(".c") and "/bpf/" not in p and any(p.startswith(f) for a in areas for f in AREAS[a]))
    return [m for p in paths for m in mutants_of(root, p)]


# ---- which suites reach a line ----

def digest(root, path):
    with open(os.path.join(root, path), "rb") as source:
        return hashlib.sha256(source.read()).hexdigest()[:16]


class Map:
    """Suite → seconds and lines, measured in build-cover of the root."""

    def __init__(self, root, path):
        self.root, self.path, self.cover = root, path, os.path.join(root, "build-cover")
        try:
            with gzip.open(path, "rt", encoding="utf-8") as kept:
                self.suites, self.digests = json.load(kept)
        except (OSError, ValueError):
            self.suites, self.digests = {}, {}

    def keep(self):
        with gzip.open(self.path + ".part", "wt", encoding="utf-8") as out:
            json.dump([self.suites, self.digests], out)
        os.replace(self.path + ".part", self.path)

    def build(self):
        flags = "--coverage -fprofile-update=atomic -O0"
        subprocess.run(["cmake", "--preset", "release", "-B", self.cover, "-DCMAKE_BUILD_TYPE=Debug", "-DSV_WERROR=OFF", f"-DCMAKE_C_FLAGS={flags}",
                        "-DCMAKE_EXE_LINKER_FLAGS=--coverage", "-DCMAKE_SHARED_LINKER_FLAGS=--coverage"], cwd=self.root, stdout=subprocess.DEVNULL, check=True)
        subprocess.run(["cmake", "--build", self.cover, "--target", "stave_program", "stave", "unit", "stress_programs", "system_programs", "--", "--quiet"], check=True)

    def lines(self):
        """Path → lines that the processes of a suite reached, of the files of AREAS."""
        folders = tuple(f for a in AREAS.values() for f in a)
        data = [p for p in glob.glob(f"{self.cover}/CMakeFiles/*.dir/**/*.gcda", recursive=True)
                if os.path.relpath(p, self.cover).split(".dir/", 1)[1].startswith(folders)]
        found = {}
        if not data:
            return found
        out = subprocess.run(["gcov", "--json-format", "--stdout", *data], cwd=self.cover, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
        for text in out.split(b"\n"):
            for file in json.loads(text)["files"] if text.startswith(b"{") else []:
                path = os.path.relpath(os.path.join(self.cover, file["file"]), self.root) if not os.path.isabs(file["file"]) else os.path.relpath(file["file"], self.root)
                path = path if path.startswith(folders) else file["file"].removeprefix("../")
                if path.startswith(folders):
                    found.setdefault(path, set()).update(l["line_number"] for l in file["lines"] if l["count"] > 0)
        return {path: sorted(lines) for path, lines in found.items()}

    def measure(self, word):
        for old in glob.glob(f"{self.cover}/**/*.gcda", recursive=True):
            os.unlink(old)
        if word.startswith("unit:"):
            command = [f"{self.cover}/tests/unit", "-n", word[5:]]
        else:
            command = ["tests/run", "-j", "1", "-f", word, f"build-cover:{word.split('/')[0]}"]
        start = time.monotonic()
        try:
            subprocess.run(command, cwd=self.root, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, timeout=900,
                           env=dict(os.environ, TEST_AGAIN="0"))
        except subprocess.TimeoutExpired:
            pass
        took = time.monotonic() - start
        self.suites[word] = {"seconds": took, "lines": self.lines()}
        for path in self.suites[word]["lines"]:
            self.digests.setdefault(path, digest(self.root, path))
        self.keep()

    def words(self):
        groups = subprocess.run([f"{self.cover}/tests/unit", "-l"], stdout=subprocess.PIPE, text=True, check=True).stdout.split("\n")
        found = [f"unit:{g}." for g in sorted({g.partition(".")[0] for g in groups if "." in g})]
        for folder in ("stress", "cli", "system"):
            found += [p.removeprefix("tests/") for p in sorted(glob.glob(f"tests/{folder}/*.sh", root_dir=self.root)) if os.access(os.path.join(self.root, p), os.X_OK)]
        return found

    def make(self, only=""):
        if not os.path.exists(f"{self.cover}/tests/unit") or not only:
            self.build()
        words = [w for w in self.words() if w not in self.suites and w.startswith(only or "")]
        for i, word in enumerate(words, 1):
            self.measure(word)
            print(f"map {i}/{len(words)} {word}: {sum(map(len, self.suites[word]['lines'].values()))} lines", flush=True)

    def reach(self, path, number):
        """Suites that reach the line (the file, where it has changed since), the quickest first."""
        is_current = self.digests.get(path) == digest(self.root, path)
        found = [w for w, s in self.suites.items() if s["lines"].get(path) and (not is_current or number in s["lines"][path])]
        return sorted(found, key=lambda w: self.suites[w]["seconds"])


# ---- who enters a function ----

MARK = """#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static inline __attribute__((no_instrument_function)) void sv_mark_(int k)
{
    static char seen[100000];
    char line[300];
    const char *to, *who;
    int error = errno;
    if (seen[k])
        return;
    seen[k] = 1;
    to = getenv("STAVE_MARKS"), who = getenv("TEST_NAME");
    int fd = to && who ? open(to, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666) : -1;
    if (fd >= 0) {
        int n = snprintf(line, sizeof line, "%d %.200s\\n", k, who);
        (void)!write(fd, line, (size_t)n);
        close(fd);
    }
    errno = error;
}
"""


def body_of(lines, number):
    """The number of the line with the brace that opens the function of this line."""
    while number > 0 and lines[number - 1] != "{":
        number -= 1
    return number


class Marks:
    """(file, function) → the tests that enter it. Made once for the faults that are drawn; kept for as long as they and the tree are the same."""

    def __init__(self, tree, state, faults):
        self.tree, self.path, self.places = tree, os.path.join(tree, ".marks"), {}
        for path, number, _, _ in faults:
            with open(os.path.join(tree, path), encoding="utf-8") as source:
                self.places.setdefault(path, set()).add(body_of(source.read().split("\n"), number))
        self.ids = {(path, line): i for i, (path, line) in enumerate((p, l) for p in sorted(self.places) for l in sorted(self.places[p]))}
        self.key = hashlib.sha256(repr((state, sorted(self.ids))).encode()).hexdigest()
        self.tests, self.seconds, self.cover = {}, {}, {}

    def put(self, has_marks):
        for path, lines in self.places.items():
            whole = os.path.join(self.tree, path)
            with open(whole, encoding="utf-8") as source:
                text = source.read()
            if has_marks:
                self.cover[path] = text
                code = text.split("\n")
                for line in lines:
                    code[line - 1] = "{ sv_mark_(%d);" % self.ids[path, line]
                text = f'#include "{self.tree}/.marks.h"\n' + "\n".join(code)
            else:
                text = self.cover[path]
            with open(whole, "w", encoding="utf-8") as source:
                source.write(text)

    def measure(self, suites, unit):
        """Runs the unit tests (`unit`; None: they have run) and the suites, in a tree with marks."""
        marks = os.path.join(self.tree, ".marks.txt")
        with open(marks, "w", encoding="utf-8"):
            pass
        if unit:
            out = subprocess.run([unit, "-t"], cwd=self.tree, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace",
                                 env=dict(os.environ, STAVE_MARKS=marks), check=False).stdout
            passed = set(re.findall(r"^ok (\S+)$", out, re.M))
            times = {name: int(ms) / 1000 for ms, name in re.findall(r"^# (\d+) ms of CPU: (\S+)$", out, re.M)}
            self.seconds = {"test:" + name: times.get(name, 1) for name in passed}
        for suite in suites:
            start = time.monotonic()
            subprocess.run(suite.command, cwd=self.tree, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           env=dict(suite.environment, STAVE_MARKS=marks, TEST_NAME=suite.word), check=False)
            self.seconds[suite.word] = time.monotonic() - start
        with open(marks, encoding="utf-8") as lines:
            for number, _, who in (line.rstrip("\n").partition(" ") for line in lines):
                word = who if who in self.seconds else "test:" + who
                if word in self.seconds and word not in self.tests.setdefault(number, []):
                    self.tests[number].append(word)

    def make(self, suites, unit, build):
        try:
            with open(self.path, encoding="utf-8") as kept:
                key, self.tests, self.seconds = json.load(kept)
        except (OSError, ValueError):
            key = None
        if key != self.key:
            self.tests, self.seconds = {}, {}
        new = [suite for suite in suites if suite.word not in self.seconds]
        if self.seconds and not new:
            return
        with open(os.path.join(self.tree, ".marks.h"), "w", encoding="utf-8") as header:
            header.write(MARK)
        try:
            self.put(True)
            build()
            self.measure(new, None if self.seconds else unit)
        finally:
            self.put(False)
        with open(self.path, "w", encoding="utf-8") as kept:
            json.dump([self.key, self.tests, self.seconds], kept)

    def reach(self, path, number):
        with open(os.path.join(self.tree, path), encoding="utf-8") as source:
            line = body_of(source.read().split("\n"), number)
        words = self.tests.get(str(self.ids.get((path, line))), [])
        return sorted(words, key=lambda w: (not w.startswith("test:"), self.seconds[w]))


# ---- the run ----

def wilson(hits, n):
    """The 95 % interval of a share."""
    if n == 0:
        return 0.0, 1.0
    z, p = 1.959964, hits / n
    middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)


def object_code(tree, path, commands):
    """The code that a file compiles to; None: it does not."""
    command = commands.get(path)
    if command is None:
        return None
    command = re.sub(r" -g\b| -Werror\b", "", re.sub(r"-o \S+", "-o " + os.path.join(tree, ".one.o"), re.sub(r"-M[DTF]\b( \S+\.[od])?", "", command)))
    if subprocess.run(command, shell=True, cwd=os.path.join(tree, "build"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode:
        return None
    with open(os.path.join(tree, ".one.o"), "rb") as code:
        return code.read()


def compile_commands(tree):
    out = subprocess.run(["ninja", "-C", "build", "-t", "compdb"], cwd=tree, stdout=subprocess.PIPE, text=True, check=True).stdout
    found = {}
    for entry in json.loads(out):
        if entry["output"].endswith(".c.o"):
            found.setdefault(os.path.relpath(os.path.join(entry["directory"], entry["file"]), tree), entry["command"])
    return found


def with_line(text, number, change):
    lines = text.split("\n")
    lines[number - 1] = change
    return "\n".join(lines)


class Judge:
    """Puts one fault at a time into the tree. `suite_of` makes a suite of a word; `runner` knows which are healthy."""

    def __init__(self, tree, reach, named, runner, suite_of):
        self.tree, self.reach, self.named, self.runner, self.suite_of = tree, reach, named, runner, suite_of
        self.commands = compile_commands(tree)

    def suites(self, path, number, without):
        words = self.reach.reach(path, number)
        words += [w for w in self.named.get(path, []) if w not in words]
        return [w for w in words if not any(w.startswith(p) for p in without)]

    def one(self, mutant, without, limit, tried=()):
        """'same', 'no code', or (the suite that noticed or None, its complaint, the suites that were tried). `tried`: those that missed it before."""
        path, number, change, _ = mutant
        words = [w for w in self.suites(path, number, without)[:limit] if w not in tried]
        if tried and not words:
            return None, "", []
        source = os.path.join(self.tree, path)
        with open(source, encoding="utf-8") as file:
            text = file.read()

        def put(fault):
            with open(source, "w", encoding="utf-8") as file:
                file.write(with_line(text, number, change) if fault else text)

        before = object_code(self.tree, path, self.commands)
        try:
            put(True)
            after = object_code(self.tree, path, self.commands)
            if after is None or before is None:
                return "no code"
            if after == before:
                return "same"
            return self.judge(words, put)
        finally:
            put(False)

    def is_healthy(self, suite, put):
        """A suite is tried without any fault when it is needed for the first time: most faults are noticed by the first one."""
        if suite.word in self.runner.healthy:
            return self.runner.healthy[suite.word], False
        put(False)
        healthy = self.runner.is_healthy(suite)
        put(True)
        return healthy, True

    def judge(self, words, put):
        tried, built = [], set()
        for word in words:
            suite = self.suite_of(word)
            healthy, has_changed = self.is_healthy(suite, put)
            if has_changed:
                built.clear()
            if not healthy:
                continue
            if not built.issuperset(suite.targets):
                ok, out = suite.build()
                if not ok:
                    return None, "does not link: " + out[-200:], tried
                built.update(suite.targets)
            tried.append(word)
            ok, out = suite.passes(self.runner.limit(suite))
            if not ok and self.is_sure(suite, put):
                return word, out, tried
        return None, "", tried

    def is_sure(self, suite, put):
        """With --marks: it fails again, and passes without the fault under the same load. (A busy machine makes tests fail, too.)"""
        if not isinstance(self.reach, Marks):
            return True
        if suite.passes(self.runner.limit(suite))[0]:
            return False
        if suite.whole:
            return suite.passes(self.runner.limit(suite), suite.whole)[0]
        put(False)
        suite.build()
        ok = suite.passes(self.runner.limit(suite))[0]
        put(True)
        suite.build()
        return ok


def draw(root, count, seed, areas):
    """Mutants in the order in which they are tried: more than enough, since some do not count. The place in this order comes from the seed and the text
    of the line, so that a change elsewhere in the tree leaves the order of the others as it is."""
    pool, times, lines = [], {}, {}
    for mutant in all_mutants(root, areas):
        path, number, change, _ = mutant
        if path not in lines:
            with open(os.path.join(root, path), encoding="utf-8") as source:
                lines[path] = source.read().split("\n")
        what = (path, lines[path][number - 1], change)
        times[what] = times.get(what, 0) + 1
        pool.append((hashlib.sha256(repr((seed, what, times[what])).encode()).digest(), mutant))
    seen, chosen = set(), []
    for _, mutant in sorted(pool):  # at most one on a line
        if mutant[:2] not in seen:
            seen.add(mutant[:2])
            chosen.append(mutant)
    return chosen[:5 * count]


def summary(results):
    noticed = [r for r in results if r["by"]]
    reached = [r for r in results if r["suites"]]
    low, high = wilson(len(noticed), len(results))
    return (f"{len(noticed)} of {len(results)} noticed ({100 * len(noticed) / max(1, len(results)):.0f} %, 95 % interval {100 * low:.0f} to {100 * high:.0f} %); "
            f"{len(results) - len(reached)} reached by no suite")


def show(result):
    word = "killed  " if result["by"] else "SURVIVED" if result["suites"] else "UNREACHED"
    print(f"{word} {result['file']}:{result['line']}: {result['kind']}: {result['put'].strip()}" + (f"  by {result['by']}" if result["by"] else ""), flush=True)


def judge_again(judge, mutant, options, before, complaint):
    """(result, whether there is anything new). One that survived is judged again by the suites that were not tried: the map may know more of them."""
    tried = before["suites"] if before else []
    said = judge.one(mutant, options.without, options.most, tried)
    if before and (isinstance(said, str) or not said[2]):
        return before, False
    result = {"file": mutant[0], "digest": digest(judge.tree, mutant[0]), "line": mutant[1], "put": mutant[2], "kind": mutant[3], "redrawn": said if isinstance(said, str) else None}
    if not isinstance(said, str):
        result.update(by=said[0], said=complaint(said[1]) if said[0] else said[1], suites=tried + said[2])
    return result, True


def run(root, options, judge, complaint):
    """Resumes where the state of the same seed and areas ended; the last line on a fault counts."""
    areas = areas_of(options.area)
    path = os.path.join(judge.tree, f".random-{options.seed}-{'-'.join(areas)}")
    try:
        with open(path, encoding="utf-8") as kept:
            state = [json.loads(line) for line in kept]
    except OSError:
        state = []
    digests = {p: digest(root, p) for p in {r["file"] for r in state} if os.path.exists(os.path.join(root, p))}
    done = {(r["file"], r["line"], r["put"]): r for r in state if r["digest"] == digests.get(r["file"])}  # a file that has changed is judged again
    results = []
    with open(path, "a", encoding="utf-8") as kept:
        for mutant in draw(root, options.random, options.seed, areas):
            if len(results) >= options.random:
                break
            result = done.get(mutant[:3])
            if result is None or (not result["redrawn"] and not result["by"]):
                result, is_new = judge_again(judge, mutant, options, result, complaint)
                if is_new:
                    kept.write(json.dumps(result) + "\n")
                    kept.flush()
                    if not result["redrawn"]:
                        show(result)
            if not result["redrawn"]:
                results.append(result)
    for result in results:
        if not result["by"]:
            show(result)
    print(summary(results))
    return 0 if sum(1 for r in results if r["by"]) >= 0.8 * len(results) else 1


if __name__ == "__main__":
    sys.exit("mutants.py is a part of tools/mutate")
