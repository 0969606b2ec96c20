"""forks.py N: forks N children one after the other, as a loader of data does that is made anew for each epoch. Each child makes a file in
shared memory, which has no name any more when the parent gets its descriptor, maps it, and touches all of it."""
import mmap
import os
import socket
import sys

SIZE = 256 << 10
for i in range(int(sys.argv[1])):
    here, there = socket.socketpair()
    if os.fork() == 0:
        name = f"/dev/shm/forks_{os.getpid()}_{i}"
        fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        os.unlink(name)
        os.ftruncate(fd, SIZE)
        with mmap.mmap(fd, SIZE) as data:
            data[:] = b"x" * SIZE
        socket.send_fds(there, [b"f"], [fd])
        os._exit(0)
    _, fds, _, _ = socket.recv_fds(here, 1, 1)
    with mmap.mmap(fds[0], SIZE) as data:
        assert data[::4096] == b"x" * (SIZE // 4096)
    os.close(fds[0])
    os.wait()
    here.close(), there.close()
