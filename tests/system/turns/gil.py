"""gil.py MODULE: three threads hold Python's interpreter lock in turn, and their stamps are printed (turns.h)."""
import ctypes
import sys
import threading

with_lock, without = ctypes.PyDLL(sys.argv[1]), ctypes.CDLL(sys.argv[1])


def worker(number):
    with_lock.hold_in_turn(number)


with_lock.prepare()
for number in range(3):
    threading.Thread(target=worker, args=(number,)).start()
without.wait_for_turns()
