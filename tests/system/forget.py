"""forget.py FILE: makes the kernel forget the cached pages of FILE, which is on the disk already.

The kernel passes over pages that somebody uses at the moment, so it is asked until mincore() says that none is left.
"""
import ctypes
import mmap
import os
import sys
import time


def cached_pages(fd, size):
    with mmap.mmap(fd, size, access=mmap.ACCESS_COPY) as data:
        first = ctypes.c_char.from_buffer(data)
        pages = (ctypes.c_ubyte * ((size + mmap.PAGESIZE - 1) // mmap.PAGESIZE))()
        failed = ctypes.CDLL(None, use_errno=True).mincore(ctypes.c_void_p(ctypes.addressof(first)), ctypes.c_size_t(size), pages)
        del first
    if failed:
        raise OSError(ctypes.get_errno(), "mincore")
    return sum(page & 1 for page in pages)


def forget(fd):
    size = os.fstat(fd).st_size
    for _ in range(100):
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        if cached_pages(fd, size) == 0:
            return
        time.sleep(0.05)
    raise TimeoutError("the kernel keeps pages of the file")


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as f:
        forget(f.fileno())
