"""Makes pages of a file by writes, and reads others; says what the kernel has counted for it.

    pages.py FILE    prints: bytes of pages that were made, bytes that were read from the disk
"""
import os
import sys

MIB = 1 << 20


def from_disk():
    with open("/proc/self/io", encoding="ascii") as f:
        return int(next(line for line in f if line.startswith("read_bytes")).split()[1])


fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
made = sum(os.write(fd, b"x" * MIB) for _ in range(32))
os.fsync(fd)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
before = from_disk()
for at in range(0, MIB, 1 << 16):
    os.pread(fd, 1 << 16, at)
os.pwrite(fd, b"y" * 10, 20 * MIB)  # part of a page: the rest has to be read
read = from_disk() - before
made += os.pwrite(fd, b"z" * 8192, 24 * MIB)  # whole ones: nothing of them has to be
os.lseek(fd, 0, os.SEEK_END)
made += os.write(fd, b"e" * 4096)
os.close(fd)
print(made, read)
