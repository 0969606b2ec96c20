#!/usr/bin/env python3
"""judge.py: records programs whose cause is known, and scores what `stave explain` says of them.

    tests/why/judge.py                       records and judges all programs of list.txt
    tests/why/judge.py --only lock,gil       those with one of these words in their name
    tests/why/judge.py --quick               those that `make test` runs
    tests/why/judge.py --repeat 3            three recordings each; says where verdicts differ
    tests/why/judge.py --keep FOLDER         keeps each recording as NAME.pftrace, its truth as NAME.json
    tests/why/judge.py --traces FOLDER       judges kept recordings, records nothing
    tests/why/judge.py --user                records as a user without root and without capabilities
    tests/why/judge.py --bare                records neither states nor calls: one point each if nothing false is said

Each program measures itself (programs/truth.py, truth.h) and writes what is true. A program with planted causes gets a point each for
  cause    the first finding has the largest planted cause
  culprit  each planted cause has a finding that names its culprit
  share    each planted cause's share is within 10 points of the truth; on a busy machine what explain says of the CPU, if
           that is true, may be missing from it: who was waited for could not run
  false    no finding of 10 % or more has a cause that is not true
  words    where the direction matters: a word of the first sentence
  slow     where some units are slow: their number, and the cause, culprit and share of what they take longer
and a healthy one for cause (there is no finding of 10 % or more) and false. `compute` is never a finding in this sense: it is where the
time should go. Programs that ran once more without a cause get one for
  whatif   `stave whatif --without` gives the gain that the program measured, within 10 points.
Programs that count units which nobody marked get one for
  units    their number is within 2 % of the program's own (or there are none where the program has none).
What the program's main thread waited for a CPU (schedstat) because the machine is busy is true, too, and is not a planted cause."""
import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
SRC = os.path.dirname(os.path.dirname(HERE))
BUILD = os.environ.get("BUILD", f"{SRC}/build")
STAVE = os.environ.get("STAVE", f"{BUILD}/stave")
# Before all others on the machine, so that a busy one adds little noise; --noisy leaves it out.
FIRST = ["chrt", "-r", "1"] if shutil.which("chrt") and os.geteuid() == 0 else []
RECORD = ["record", "-q"]  # the one place for options of the recorder
BARE = ["record", "-q", "--light", "--no-io", "--no-block", "--no-page-cache"]
# Nobody in particular, with nothing that root has.
USER = ["setpriv", "--reuid", "1234", "--regid", "1234", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all",
        "--no-new-privs"]
AS_USER = []  # USER with --user
LEAST = 0.10  # a smaller finding is not false
NEAR = 0.10  # how far a share may be off
NO_UNITS = (None, "run", "thread", "process")  # what explain takes where it finds no units
# Words that say less than the planted ones, and nothing false.
GENERAL = {"data": {"slow_file", "cold_cache", "small_files", "small_reads", "slow_worker",
                    "too_few_loaders", "gpu_data"},
           "disk": {"slow_file", "cold_cache", "checkpoint", "page_fault"}}
TRIES, STILL_S = 3, 0.3  # recordings of one program; a machine that stands still for so long spoils one
CPU_NOISE = 0.03  # from here on a wait for a CPU is noise that explain may state


def pythons():
    """Debian's Python first: it has torch, and is the one that the build's package is for."""
    return [p for p in ("/usr/bin/python3", sys.executable) if os.path.exists(p)]


def has_torch(python):
    return subprocess.run([python, "-c", "import torch"], stderr=subprocess.DEVNULL).returncode == 0


def why_not(needs):
    """Why a program with these needs cannot run here, or None."""
    for need in needs.split(","):
        if need == "torch" and not has_torch(pythons()[0]):
            return "no torch here"
        if need == "mpi" and not (shutil.which("mpicc") and shutil.which("mpirun")):
            return "no MPI here"
        if need == "server" and not os.path.exists(f"{BUILD}/stave-server"):
            return "no stave-server here"
        if need == "root" and (os.geteuid() != 0 or AS_USER):
            return "needs root"
        if need == "cpus" and len(os.sched_getaffinity(0)) < 2:
            return "needs two CPUs"
    return None


class Program:
    """A line of list.txt: name, when, needs, command. A word `+`: what follows runs beside it, unrecorded."""

    def __init__(self, line):
        self.name, self.when, self.needs, command = line.split(None, 3)
        self.command, _, self.beside = command.partition(" + ")
        self.command, self.beside = shlex.split(self.command), shlex.split(self.beside)


def programs():
    with open(f"{HERE}/list.txt") as file:
        return [Program(line) for line in file if line.strip() and not line.startswith("#")]


def compiled(source, work):
    """The program made of a C source, once for each run of the judge."""
    out = f"{work}/bin/{os.path.splitext(os.path.basename(source))[0]}"
    if not os.path.exists(out):
        os.makedirs(f"{work}/bin", exist_ok=True)
        cc = ["mpicc"] if "mpi" in os.path.basename(source) else ["c++", "-std=c++17"] if source.endswith(".cc") else ["cc"]
        subprocess.run([*cc, "-O1", "-g", "-fno-omit-frame-pointer", "-pthread", "-Wall", "-Wextra",
                        f"-I{SRC}/include", "-o", out, source, f"-L{BUILD}", "-lstave", "-lstave-serving",
                        f"-Wl,-rpath,{BUILD}"], check=True)
    return out


def words(command, work):
    """A command of list.txt as it is started: sources are compiled, scripts get Python."""
    out = []
    for word in command:
        path = f"{HERE}/programs/{word}"
        if word.endswith((".c", ".cc")) and os.path.exists(path):
            out.append(compiled(path, work))
        elif word.endswith(".py") and os.path.exists(path):
            out += [pythons()[0], path]
        else:
            out.append(word.replace("{BUILD}", BUILD).replace("{SRC}", SRC))
    return out


class Stillness:
    """The longest time in which this process did not get to run: a machine that was suspended, or its group frozen."""

    def __enter__(self):
        self.longest, self.done = 0.0, threading.Event()
        self.thread = threading.Thread(target=self.watch, daemon=True)
        self.thread.start()
        return self

    def watch(self):
        if FIRST:  # the programs must not keep it from running
            os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(2))
        before = time.monotonic()
        while not self.done.wait(0.05):
            now = time.monotonic()
            self.longest, before = max(self.longest, now - before), now

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()


def record(program, work, keep):
    """A recording during which the machine did not stand still, if that can be had: its traces and its truth, or an error."""
    for _ in range(TRIES):
        with Stillness() as still:
            done = record_once(program, work, keep)
        if still.longest < STILL_S:
            break
    return done


def record_once(program, work, keep):
    """Runs the program under stave record. Returns its traces and its truth, or an error."""
    folder = tempfile.mkdtemp(prefix="run.", dir=work)
    truth, trace = f"{keep}/{program.name}.json", f"{keep}/{program.name}.pftrace"
    for old in os.listdir(keep):
        if old.split(".")[0] == program.name:
            os.remove(f"{keep}/{old}")
    env = dict(os.environ, WHY_TRUTH=truth, WHY_FOLDER=folder, WHY_TRACE=f"{keep}/{program.name}",
               WHY_BUILD=BUILD, WHY_SRC=SRC, STAVE=STAVE, STAVE_SESSION_DIR=folder,
               PYTHONPATH=f"{BUILD}/python", PYTHONDONTWRITEBYTECODE="1")
    command = words(program.command, work)
    beside = None
    if program.when.endswith("!"):  # writes its traces itself
        line = command
    else:
        inject = [n for n in program.needs.split(",") if n in ("mpi", "torch")]
        line = [STAVE, *RECORD, *(["--inject", ",".join(inject)] if inject else []), "-o", trace, "--"]
        if AS_USER:  # who may not put a program before others: stave itself is, too
            os.chmod(folder, 0o777)
            line = [*FIRST, *AS_USER, *line, *command]
        else:
            line = [*line, *FIRST, *command]
    if program.beside:
        beside = subprocess.Popen(FIRST + words(program.beside, work), env=env, cwd=folder,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        env["WHY_BESIDE"] = beside.stdout.readline().decode().strip()
    with open(f"{folder}/log", "w") as log:
        done = subprocess.run(line, env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=log,
                              stderr=log)
    if beside:
        beside.stdin.close()
        if done.returncode != 0:  # it may wait for the one that did not run
            beside.terminate()
        beside.wait()
    with open(f"{folder}/log") as log:
        said = log.read().strip().splitlines()[-3:]
    shutil.rmtree(folder, ignore_errors=True)
    if done.returncode != 0 or not os.path.exists(truth):
        return None, f"exit {done.returncode}: {' / '.join(said)}"
    facts = json.load(open(truth))
    facts.setdefault("traces", [os.path.basename(trace)])
    facts.update({"bare": True} if RECORD == BARE else {})
    with open(truth, "w") as file:
        json.dump(facts, file, indent=1)
        file.write("\n")
    return facts, None


def explain(facts, folder):
    """What explain says of a recording: its JSON, or an error."""
    done = subprocess.run([STAVE, "explain", "-q", "--no-index", "--json",
                           *(f"{folder}/{t}" for t in facts["traces"])],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode not in (0, 6):
        return None, f"explain: exit {done.returncode}: {done.stderr.strip()[:100]}"
    if len(done.stdout) > 16384:
        return None, "explain: more than 16 KiB"
    try:
        return json.loads(done.stdout), None
    except ValueError as problem:
        return None, f"explain: {problem}"


def whatif(facts, folder):
    """Do the gains that `stave whatif` gives agree with those that the program measured when it ran without the cause?"""
    good = True
    for wanted in facts["whatif"]:
        done = subprocess.run([STAVE, "whatif", "-q", "--no-index", "--json", "--without", wanted["without"],
                               *(f"{folder}/{t}" for t in facts["traces"])], stdout=subprocess.PIPE, text=True)
        gain = json.loads(done.stdout)["without"][0]["gain"] if done.returncode == 0 else -1
        good = good and abs(gain - wanted["gain"]) <= NEAR
        wanted["got"] = gain
    return good


# Facts of which the end is enough: a culprit's path may be absolute or relative.
PATHS = ("path", "file")


def same(member, is_, wanted):
    if isinstance(wanted, list):
        return any(same(member, is_, w) for w in wanted)
    if is_ is None:
        return False
    if member in PATHS:
        return os.path.basename(str(is_)) == os.path.basename(str(wanted))
    if member in ("name", "lock"):  # "python3 (pid 12)", "locker"
        return str(wanted) in str(is_)
    if member == "function":
        return str(is_).split("(")[0].split("::")[-1].split(".")[-1].strip() == str(wanted)
    return str(is_) == str(wanted)


def named(culprit, alternatives):
    """Does this culprit have all facts of one of the alternatives?"""
    return any(all(same(k, culprit.get(k), v) for k, v in facts.items()) for facts in alternatives)


class Verdict:
    def __init__(self, facts, said):
        """SAID: what explain says of the recording, as `stave explain --json` prints it."""
        self.points, self.most, self.marks, self.said = 0, 0, {}, said
        findings = said.get("findings", [])
        self.findings = [f for f in findings if f["cause"] != "compute" and
                         not self.noise(facts, f)]
        self.queued = sum(f["share"] for f in findings if self.noise(facts, f))
        self.healthy = facts["healthy"]
        if facts.get("bare"):
            self.bare(facts)
            return
        top = self.findings[0] if self.findings else None
        if self.healthy:
            self.mark("cause", top is None or top.get("share", 0) < LEAST)
        else:
            self.planted(facts, top)
        self.false = [f for f in self.findings if f.get("share", 0) >= LEAST and
                      not self.true(facts, f)]
        self.mark("false", not self.false)
        if facts.get("words"):
            self.mark("words", top is not None and facts["words"] in top["sentence"])
        if facts.get("slow"):
            self.slow(facts["slow"], said.get("slow_units", {}))
        units = facts.get("units")
        if units and not units.get("marked", True):
            found = said.get("units", {})
            n = found.get("n", 0) if found.get("kind") not in NO_UNITS else 0
            self.mark("units", abs(n - units["n"]) <= 0.02 * units["n"])

    def bare(self, facts):
        """Little can be known of it: what is said must be true, and what is not said is no fault."""
        wanted = [c for cause in facts["causes"] for c in cause["culprit"]]
        self.false = [f for f in self.findings if f.get("share", 0) >= LEAST and not (
            self.true(facts, f) and (not who(f) or named(f.get("culprit", {}), wanted)))]
        self.mark("false", not self.false)

    def planted(self, facts, top):
        causes = facts["causes"]
        first = [c for c in causes if c["share"] >= causes[0]["share"] - 0.05]
        self.mark("cause", top is not None and any(top["cause"] in c["cause"] for c in first))
        culprit = share = True
        for cause in causes:
            of = [f for f in self.findings if f["cause"] in cause["cause"]]
            hit = [f for f in of if named(f.get("culprit", {}), cause["culprit"])]
            culprit = culprit and bool(hit)
            share = share and any(-NEAR - self.queued <= f.get("share", 0) - cause["share"] <= NEAR
                                  for f in hit or of)
        self.mark("culprit", culprit)
        if not facts.get("no_share"):
            self.mark("share", share)

    def slow(self, wanted, slow):
        """The slow units: how many, and what they have more of."""
        top = (slow.get("findings") or [{}])[0]
        self.mark("slow", slow.get("n") == wanted["n"] and top.get("cause") in wanted["cause"] and
                  named(top.get("culprit", {}), wanted["culprit"]) and
                  abs(top.get("share", 0) - wanted["share"]) <= NEAR)

    def mark(self, word, good):
        self.marks[word] = bool(good)
        self.points += bool(good)
        self.most += 1

    @staticmethod
    def noise(facts, finding):
        """A wait for a CPU that the kernel has counted, too."""
        cpu = facts.get("noise", {}).get("cpu", 0)
        return (finding["cause"] == "cpu" and cpu >= CPU_NOISE and
                abs(finding.get("share", 0) - cpu) <= NEAR and
                not any("cpu" in c["cause"] for c in facts["causes"]))

    @staticmethod
    def true(facts, finding):
        word = finding["cause"]
        return any(word in c["cause"] or GENERAL.get(word, set()) & set(c["cause"])
                   for c in facts["causes"]) or any(
            word in a["cause"] and finding["share"] <= a["share"] + NEAR
            for a in facts.get("allowed", []))

    def key(self):
        """What must be the same in each repetition. A finding below LEAST counts nowhere, so not here either."""
        top = self.findings[0] if self.findings and self.findings[0].get("share", 0) >= LEAST else {}
        return top.get("cause"), tuple(self.marks.values())

    def line(self, name, facts):
        signs = "".join(f"{w}{'+' if good else '-'} " for w, good in self.marks.items())
        wanted = ", ".join(f"{c['cause'][0]} {c['share']:.0%}" for c in facts["causes"]) or "healthy"
        noise = facts.get("noise", {}).get("cpu", 0)
        if noise >= CPU_NOISE:
            wanted += f" (cpu {noise:.0%})"
        got = ", ".join(f"{f['cause']} {f.get('share', 0):.0%}{who(f)}"
                        for f in self.said.get("findings", [])[:4]) or "nothing"
        gains = "".join(f"; {w['without']} {w['gain']:.0%}: {w.get('got', 0):.0%}" for w in facts.get("whatif", []))
        return f"{name:24} {self.points}/{self.most}  {signs:38} {wanted:28} | {got}{gains}"


def who(finding):
    culprit = finding.get("culprit", {})
    known = [str(culprit[k]) for k in ("name", "function", "path", "lock", "rank", "device")
             if k in culprit]
    return f" [{' '.join(known)}]" if known else ""


def arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="words of names, separated by commas; =NAME: exactly this one")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--keep", metavar="FOLDER", type=os.path.abspath)
    parser.add_argument("--traces", metavar="FOLDER")
    parser.add_argument("--user", action="store_true", help="record as uid 1234, without capabilities")
    parser.add_argument("--bare", action="store_true", help="record neither states nor calls")
    parser.add_argument("--noisy", action="store_true", help="let the machine's other work disturb")
    parser.add_argument("--goal", type=float, help="fail below this percentage, on a false alarm, or if verdicts of repetitions differ")
    parser.add_argument("--verbose", action="store_true", help="with the sentences of the findings")
    return parser.parse_args()


def chosen(options):
    for program in programs():
        if options.quick and not program.when.startswith("quick"):
            continue
        if options.bare and program.when.endswith("!"):
            continue
        if options.only and not any(w[1:] == program.name if w[:1] == "=" else w in program.name
                                    for w in options.only.split(",")):
            continue
        yield program


def judge_once(program, options, work):
    """The verdict on one recording, or why there is none, and whether that is a failure."""
    folder = options.traces or options.keep or work
    if options.traces:
        path = f"{folder}/{program.name}.json"
        if not os.path.exists(path):
            return None, None, "not recorded"
        facts = json.load(open(path))
    else:
        facts, problem = record(program, work, folder)
        if problem:
            return None, None, "PROBLEM " + problem
    said, problem = explain(facts, folder)
    if problem:
        said = {"findings": []}
        print(f"{program.name:24} {problem}")
        verdict = Verdict(facts, said)
        verdict.points = 0
        return verdict, facts, None
    verdict = Verdict(facts, said)
    if facts.get("whatif") and not facts.get("bare"):  # no states, no replay
        verdict.mark("whatif", whatif(facts, folder))
    return verdict, facts, None


def main():
    options = arguments()
    if options.noisy:
        FIRST.clear()
    if options.bare:
        RECORD[:] = BARE
    if options.user:
        AS_USER[:] = USER
    points = most = alarms = problems = differ = healthy = 0
    if options.keep:
        os.makedirs(options.keep, exist_ok=True)
    work = tempfile.mkdtemp(prefix="why.", dir=os.environ.get("TMP"))
    for folder in [work, options.keep] if options.user else []:
        if folder:
            os.chmod(folder, 0o777)
    try:
        for program in chosen(options):
            missing = None if options.traces else why_not(program.needs)
            if missing:
                print(f"skip {program.name}: {missing}")
                continue
            keys = set()
            for _ in range(options.repeat):
                verdict, facts, why = judge_once(program, options, work)
                if why:
                    problems += why.startswith("PROBLEM")
                    print(f"{program.name:24} {why}")
                    continue
                print(verdict.line(program.name, facts), flush=True)
                if options.verbose:
                    for finding in verdict.said.get("findings", []):
                        print("    " + finding.get("sentence", finding.get("text", "")))
                points, most = points + verdict.points, most + verdict.most
                healthy += verdict.healthy
                alarms += verdict.healthy and not (verdict.marks.get("cause", True) and
                                                   verdict.marks["false"])
                keys.add(verdict.key())
            if len(keys) > 1:
                differ += 1
                print(f"{program.name:24} its verdicts differ")
    finally:
        shutil.rmtree(work, ignore_errors=True)
    share = 100 * points / most if most else 0
    print(f"{points} of {most} points ({share:.1f} %), {alarms} false alarms on {healthy} healthy "
          f"runs, {differ} programs with differing verdicts, {problems} not recorded")
    if problems or options.goal and (share < options.goal or alarms or differ):
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
