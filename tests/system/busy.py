"""busy.py PROCESSES TURNS: each of the processes computes and makes some calls in turn, so many times."""
import os
import sys

for _ in range(int(sys.argv[1]) - 1):
    if os.fork() == 0:
        break
for _ in range(int(sys.argv[2])):
    sum(range(20000))
    fd = os.open("/etc/passwd", os.O_RDONLY)
    os.read(fd, 100)
    os.close(fd)
    os.stat("/")
