"""python3 -m stave VERB …: what the program `stave` does, with the same options, results and exit codes.

    python3 -m stave record -- train.py            as: stave record -- python3 train.py
    python3 -m stave record -m mypackage.train     as: stave record -- python3 -m mypackage.train
    python3 -m stave explain run.pftrace

Of `record`, beside its own options ('python3 -m stave record --help'):

  --auto GLOBS    trace every function of these modules, comma separated; * is all of them, __main__ the script
  --exclude GLOBS but not of these
  --max-depth N   at most N traced calls deep
  --logging       log records as moments
  --torch         PyTorch: data loaders and their workers, modules forward and backward, optimizers, checkpoints, steps (by default, where the hooks are installed)
  --torch-depth N of modules inside each other (default 3)
  --categories GLOBS   record only these categories

Where the package was built without the program (from source), `record` has these options, -o and -q only, and records what the script itself traces.
"""
import contextlib
import os
import runpy
import sys

import stave
from stave import _program, _session, _stave


class _UsageError(Exception):
    pass


def _options(words):
    """Options, and the program with its arguments."""
    options = {"out": "trace.pftrace", "auto": None, "exclude": "", "max_depth": None, "logging": False, "categories": None,
               "quiet": False, "torch": False, "torch_depth": None}
    with_value = {"-o": "out", "--auto": "auto", "--exclude": "exclude", "--max-depth": "max_depth",
                  "--categories": "categories", "--torch-depth": "torch_depth"}
    flags = {"--logging": "logging", "--torch": "torch", "-q": "quiet"}
    while words:
        word = words.pop(0)
        if word == "--":
            break
        if word in with_value:
            if not words:
                raise _UsageError(f"{word} needs a value")
            options[with_value[word]] = words.pop(0)
        elif word in flags:
            options[flags[word]] = True
        elif word == "-m" or not word.startswith("-"):
            words.insert(0, word)
            break
        else:
            raise _UsageError(f"no option {word}")
    if options["torch_depth"] is not None:
        if not options["torch_depth"].isdigit():
            raise _UsageError(f"--torch-depth: {options['torch_depth']!r} is not a number")
        options["torch"] = True
    if not words or words == ["-m"]:
        raise _UsageError("which program? give a script, or -m and a module")
    return options, words


def _globs(text):
    return [g for g in text.split(",") if g]


def _run(program):
    """As `python3 script.py …` and `python3 -m module …` do."""
    if program[0] == "-m":
        sys.argv = program[1:]
        sys.path[0] = os.getcwd()
        runpy.run_module(program[1], run_name="__main__", alter_sys=True)
        return
    sys.argv = program
    sys.path[0] = os.path.dirname(os.path.abspath(program[0]))
    runpy.run_path(program[0], run_name="__main__")


def _auto(options):
    if options["auto"] is None:
        return None
    limit = {} if options["max_depth"] is None else {"max_depth": int(options["max_depth"])}
    return stave.auto(*_globs(options["auto"]), exclude=_globs(options["exclude"]), **limit)


@contextlib.contextmanager
def _traced(options):
    """What the options ask for, while the program runs."""
    if options["logging"]:
        import logging
        logging.getLogger().addHandler(stave.log_handler())
    running, torch = _auto(options), None
    if options["torch"]:
        from stave import _torch_auto as torch
        torch.install(torch.DEPTH if options["torch_depth"] is None else int(options["torch_depth"]))
    try:
        yield
    finally:
        if running:
            running.stop()
        if torch:
            torch.finish()


def record(options, program):
    out = os.path.abspath(options["out"]) if ":" not in options["out"] else options["out"]
    try:
        stave.start(out, categories=options["categories"])
    except (OSError, ValueError):  # the library has said why
        return 1
    # From here on it is like STAVE_OUT: an open() of the program joins, and so do the processes it starts, whatever they are.
    _session._State.path, _session._State.by_environment = None, True
    where = {"STAVE_SESSION": _stave.session()} if _stave.session() else {"STAVE_OUT": out}
    os.environ.update(where)
    try:
        with _traced(options):
            _run(program)
    except SystemExit as end:  # sys.exit(0) is an end like any other
        if end.code not in (None, 0):
            raise
    finally:
        for name in where:
            os.environ.pop(name, None)
        _session._State.by_environment = False
        ok = _stave.stop() == 0
        counts = _stave.counts()
        lost = sum(v for k, v in counts.items() if k.startswith("lost_"))
        if not options["quiet"]:
            print(f"stave: {out}: {counts['events']:,} events" + (f", {lost:,} lost" if lost else "")
                  + ("" if ok else ", not complete"), file=sys.stderr)
    return 0 if ok and not lost else 4  # as `stave record`


_VALUES = ("--auto", "--exclude", "--max-depth", "--torch-depth", "--categories")
_FLAGS = ("--logging", "--torch")


def _is_program(word):
    """Where the options of `record` end, if no -- says it: at a script, or at -m and a module."""
    return word == "-m" or word.endswith(".py")


def _split(words):
    """Options of the program, those of this module, and the command."""
    theirs, ours, words = [], [], list(words)
    while words:
        word = words.pop(0)
        if word == "--":
            break
        if word in _VALUES:
            if not words:
                raise _UsageError(f"{word} needs a value")
            ours += [word, words.pop(0)]
        elif word in _FLAGS:
            ours.append(word)
        elif _is_program(word):
            words.insert(0, word)
            break
        else:
            theirs.append(word)
            if word in ("-o", "--output") and words:
                theirs.append(words.pop(0))
    return theirs, ours, words


def _command(ours, words):
    """The command that `stave record` starts: scripts and modules get this Python."""
    if not words or not (ours or _is_program(words[0])):
        return words
    if not ours:
        return [sys.executable, *words]
    _options([*ours, "--", *words])  # refuses what makes no sense before anything is started
    return [sys.executable, "-m", "stave", "--inside", *ours, "--", *words]


def _inside(words):
    """In the process that `stave record` has started: what the options ask for, then the script."""
    options, program = _options(words)
    if options["categories"]:
        os.environ.setdefault("STAVE_CATEGORIES", options["categories"])
    with _traced(options):
        _run(program)
    return 0


def main(words):
    if not words or words[0] in ("-h", "--help"):
        print(__doc__.strip())
        return 0
    if words[0] in ("-V", "--version"):
        print(stave.__version__)
        return 0
    try:
        if words[0] == "--inside":
            return _inside(words[1:])
        if words[0] != "record" or any(w in ("-h", "--help") for w in words[1:2]):
            return _program.become(words)
        if _program.path() is not None:
            theirs, ours, command = _split(words[1:])
            return _program.become(["record", *theirs, *(["--", *_command(ours, command)] if command else [])])
        options, program = _options(words[1:])
        if program[0] != "-m" and not os.path.exists(program[0]):
            raise _UsageError(f"{program[0]}: no such file")
    except _UsageError as error:
        print(f"stave: {error}; run 'python3 -m stave --help' for details", file=sys.stderr)
        return 2
    return record(options, program)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
