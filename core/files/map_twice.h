/* A ring of bytes, mapped twice in a row, so that what runs over its end is in one piece. */
#pragma once

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

/* The file is `head` bytes, then the ring of `size` bytes; both are whole pages, and the space is
 * reserved. Returns the head, followed by the ring and the ring again, or NULL with errno. */
static inline uint8_t *sv_map_twice(int fd, size_t head, uint64_t size)
{
    uint8_t *at =
        mmap(NULL, head + 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    if (mmap(at, head + size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE, fd,
             0) == MAP_FAILED ||
        mmap(at + head + size, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
             (off_t)head) == MAP_FAILED) {
        int error = errno;
        munmap(at, head + 2 * size);
        errno = error;
        return NULL;
    }
    return at;
}
