"""doc_commands.py LIST FILE.md…: runs the commands of the code blocks of Markdown files, one by one, in this folder, and judges their exit codes.

A command is a line of an indented block (or of a fenced one without a language, or with `sh`) that begins with a program of PROGRAMS, after settings of
variables. What follows two blanks and a # is a comment. LIST has the commands that are run in another way, `KIND :: COMMAND :: TEXT`:

    skip :: COMMAND :: why it cannot run here
    exit N :: COMMAND :: why its exit code is N
    until :: COMMAND :: a command of the shell; it runs in the background until this one succeeds, then SIGINT ends it (OUT: the file with its output)
    during :: COMMAND :: the same, and SIGINT comes after the next command
    after :: COMMAND :: a command of the shell that has to run before it
    beside :: COMMAND :: a server ;; a command of the shell that succeeds when it is ready; SIGINT ends the server after the command
    keys :: COMMAND :: it runs in a terminal in which these keys are pressed

A COMMAND that ends in … stands for all that begin so. An entry that no command matches is a failure.
Each file begins with the inputs of the folder ../inputs, if it is there. Results are printed as tests/harness/cli.sh does."""
import os
import pty
import re
import signal
import subprocess
import sys
import time

PROGRAMS = {"stave", "stave-server", "stave-load", "build/stave", "build/stave-server", "build/stave-load", "make", "cc", "c++", "python3", "pip", "sudo", "mpirun",
            "apt", "tools/build-starpu-fxt", "trace_processor", "duckdb", "./program", "./a.out", "./rank", "env", "git", "cmake", "gdb"}
ALL = {"README.md"}  # each line of its blocks is a command
LIMIT = int(os.environ.get("DOC_LIMIT") or 120) * int(os.environ.get("TEST_SCALE") or 1)


def lines(path):
    """Lines of code blocks; those that follow a line with a backslash or within quotes belong to it."""
    fence, before, is_block, found = None, "", False, []
    with open(path, encoding="utf-8") as text:
        for line in text.read().split("\n"):
            if line.startswith("```"):
                fence = None if fence is not None else line[3:]
            elif fence is not None:
                if fence in ("", "sh", "bash"):
                    found.append(line)
            elif line.startswith("    ") and (is_block or not before.strip()):
                is_block = True
                found.append(line[4:])
                continue
            is_block = False
            before = line
    joined = []
    for line in found:
        if joined and (joined[-1].count('"') % 2 or joined[-1].endswith("\\")):
            joined[-1] += "\n" + line
        else:
            joined.append(line)
    return joined


def commands(path):
    for line in lines(path):
        command = re.sub(r"\s+#\s.*", "", line).removeprefix("$ ").strip()
        words = [w for w in command.split() if not re.match(r"[A-Z_0-9]+=", w)]
        if words and (words[0] in PROGRAMS and not (words[0] == "stave" and words[1:] and words[1].endswith(":")) or (os.path.basename(path) in ALL and command)):
            yield command


class Entry:
    def __init__(self, line):
        self.kind, self.command, self.text = (w.strip() for w in line.split("::", 2))
        self.is_used = False

    def matches(self, command):
        command = " ".join(command.split())
        return command.startswith(self.command[:-1]) if self.command.endswith("…") else command == self.command


def read_list(path):
    with open(path, encoding="utf-8") as text:
        return [Entry(line) for line in text if line.strip() and not line.startswith("#")]


def start(command, name):
    with open(name, "wb") as out:
        return subprocess.Popen(["bash", "-c", command], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)


def wait_for(process, condition, out):
    """None, or what is wrong."""
    end = time.monotonic() + LIMIT
    while subprocess.run(["bash", "-c", condition], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False,
                         env=dict(os.environ, OUT=out)).returncode:
        if process.poll() is not None:
            return f"it ended with exit {process.returncode} before `{condition}`"
        if time.monotonic() > end:
            os.killpg(process.pid, signal.SIGKILL)
            return f"it did not come to `{condition}`"
        time.sleep(0.05)
    return None


def finish(process, wanted):
    try:
        code = process.wait(LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return "it did not end"
    return None if code in wanted else f"exit {code}, expected {' or '.join(map(str, wanted))}"


def interrupt(process):
    os.killpg(process.pid, signal.SIGINT)
    return finish(process, (0, 130, -signal.SIGINT))


def press(command, keys):
    """Runs it in a terminal; what it draws goes to command.out."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execvpe("bash", ["bash", "-c", command], dict(os.environ, TERM="xterm", LINES="40", COLUMNS="120"))
    is_pressed = False
    with open("command.out", "wb") as out:
        while True:
            try:
                text = os.read(terminal, 65536)
            except OSError:
                break
            if not text:
                break
            out.write(text)
            if not is_pressed:
                os.write(terminal, keys.encode())
                is_pressed = True
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return None if code == 0 else f"exit {code}"


def run(command, entry):
    """None, or what is wrong."""
    kind = entry.kind if entry else "exit 0"
    if kind == "keys":
        return press(command, entry.text)
    if kind == "after" and subprocess.run(["bash", "-c", entry.text], stdin=subprocess.DEVNULL, check=False).returncode:
        return f"`{entry.text}` failed"
    if kind == "beside":
        server, condition = entry.text.split(";;")
        behind = start(server, "server.out")
        wrong = wait_for(behind, condition, "server.out") or finish(start(command, "command.out"), (0,))
        return wrong or interrupt(behind)
    process = start(command, "command.out")
    if kind == "until":
        return wait_for(process, entry.text, "command.out") or interrupt(process)
    return finish(process, (int(kind.split()[1]) if kind.startswith("exit") else 0,))


def report(name, wrong):
    if wrong:
        with open("command.out", encoding="utf-8", errors="replace") as out:
            print("".join(f"  {line}" for line in out.readlines()[-20:]).rstrip())
        print(f"not ok {name}: {wrong}", flush=True)
    else:
        print(f"ok {name}", flush=True)
    return bool(wrong)


def run_file(path, entries):
    behind, failed = None, 0  # behind: a server and its name
    if os.path.isdir("../inputs"):
        subprocess.run(["cp", "-a", "--remove-destination", "../inputs/.", "."], check=True)
    for command in commands(path):
        name = f"{os.path.basename(path)}: {' '.join(command.split())}"
        entry = next((e for e in entries if e.matches(command)), None)
        if entry:
            entry.is_used = True
        if entry and entry.kind == "skip":
            print(f"skip {name}: {entry.text}", flush=True)
        elif entry and entry.kind == "during":
            behind = start(command, "server.out"), name
            wrong = wait_for(behind[0], entry.text, "server.out")
            if wrong:
                failed, behind = report(name, wrong), None
        else:
            failed |= report(name, run(command, entry))
            if behind:
                failed |= report(behind[1], interrupt(behind[0]))
                behind = None
    return failed


def main(list_path, paths):
    entries = read_list(list_path)
    failed = any([run_file(path, entries) for path in paths])
    for entry in entries:
        if not entry.is_used:
            failed = True
            print(f"not ok list: no command is '{entry.command}'")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
