"""kernel_locks.py: waits each for what another process has or sends: a lock of a file by flock() and by fcntl(), a System V semaphore, a POSIX and a System V message
queue. Prints the number of the semaphore, the name of the queue and the inode of the file."""
import ctypes
import fcntl
import os
import time

libc = ctypes.CDLL(None, use_errno=True)
librt = ctypes.CDLL("librt.so.1", use_errno=True)


class Sembuf(ctypes.Structure):
    _fields_ = [("num", ctypes.c_ushort), ("op", ctypes.c_short), ("flags", ctypes.c_short)]


class Attr(ctypes.Structure):
    _fields_ = [("flags", ctypes.c_long), ("most", ctypes.c_long), ("size", ctypes.c_long), ("rest", ctypes.c_long * 5)]


file = os.open("kernel.lock", os.O_CREAT | os.O_RDWR)
semaphore = libc.semget(0, 1, 0o600)
name = f"/stave.{os.getpid()}".encode()
queue = librt.mq_open(name, os.O_CREAT | os.O_RDWR, 0o600, ctypes.byref(Attr(most=4, size=64)))
messages = libc.msgget(0, 0o600)
text = ctypes.create_string_buffer(64)


def change(by):
    libc.semop(semaphore, ctypes.byref(Sembuf(0, by, 0)), 1)


def against(take, give, wait):
    """Another process takes it, and gives it 0.2 s later."""
    ready, taken = os.pipe()
    if os.fork() == 0:
        take()
        os.write(taken, b".")
        time.sleep(0.2)
        give()
        os._exit(0)
    os.read(ready, 1)
    wait()
    os.wait()


def nothing():
    pass


def flocked():
    fcntl.flock(os.open("kernel.lock", os.O_RDWR), fcntl.LOCK_EX)


def flock():
    fcntl.flock(file, fcntl.LOCK_EX)
    fcntl.flock(file, fcntl.LOCK_UN)


against(flocked, nothing, flock)
against(lambda: fcntl.lockf(file, fcntl.LOCK_EX), nothing, lambda: fcntl.lockf(file, fcntl.LOCK_EX))
against(nothing, lambda: change(1), lambda: change(-1))
against(nothing, lambda: librt.mq_send(queue, b"x", 1, 0), lambda: librt.mq_receive(queue, text, 64, None))
against(nothing, lambda: libc.msgsnd(messages, b"\1" + bytes(7) + b"x", 1, 0), lambda: libc.msgrcv(messages, text, 8, 0, 0))
print(semaphore, name.decode(), os.fstat(file).st_ino)
libc.semctl(semaphore, 0, 0)  # IPC_RMID
libc.msgctl(messages, 0, None)
librt.mq_unlink(name)
