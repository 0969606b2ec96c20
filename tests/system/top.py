"""Runs `stave top` in a pseudo terminal of 80 × 24 for tests/system/top.sh: python3 top.py STEPS COMMAND…. STEPS are separated by commas: a text to wait for, or key:K
to press. Prints the screens that were drawn, without their control sequences; exits with the command's code, or 99 when a text did not come."""
import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time

steps, command = sys.argv[1].split(","), sys.argv[2:]
pid, fd = pty.fork()
if pid == 0:
    os.environ["TERM"] = "xterm"
    os.execvp(command[0], command)
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
seen, code, until = b"", None, time.monotonic() + 60


def more():
    global seen
    if not select.select([fd], [], [], 0.2)[0]:
        return True
    try:
        part = os.read(fd, 65536)
    except OSError:
        part = b""
    seen += part
    return bool(part)


at = 0
for step in steps:
    if step.startswith("key:"):
        at = len(seen)
        os.write(fd, step[4:].encode())
        continue
    while step.encode() not in seen[at:] and time.monotonic() < until and more():
        pass
    if step.encode() not in seen[at:]:
        code = 99
        break
while code is None and time.monotonic() < until and more():
    pass
if code == 99:
    os.kill(pid, 9)
_, status = os.waitpid(pid, 0)
text = re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", seen.replace(b"\x1b[H", b"\n--screen--\n")).replace(b"\r", b"").decode(errors="replace")
sys.stdout.write(text)
sys.exit(code if code is not None else os.waitstatus_to_exitcode(status))
