"""The middle stage of stages.sh: it keeps to a rate."""
import sys
import time


def keep_to_the_rate():
    time.sleep(0.1)


for number, line in enumerate(sys.stdin):
    if number % 25000 == 0:
        keep_to_the_rate()
    if number % 100 == 0:
        sys.stdout.write(line)
