/* Writing to a descriptor: see write_all.h. */
#include "core/files/write_all.h"

#include <errno.h>
#include <unistd.h>

bool sv_write_all(int fd, const void *bytes, size_t n)
{
    const char *at = bytes;
    while (n > 0) {
        ssize_t done = write(fd, at, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        at += done;
        n -= (size_t)done;
    }
    return true;
}

bool sv_write_all_at(int fd, const void *bytes, size_t n, uint64_t at)
{
    const char *from = bytes;
    while (n > 0) {
        ssize_t done = pwrite(fd, from, n, (off_t)at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done == 0)
            errno = EIO;
        if (done <= 0)
            return false;
        from += done;
        at += (uint64_t)done;
        n -= (size_t)done;
    }
    return true;
}

bool sv_read_all_at(int fd, void *to, size_t n, uint64_t at)
{
    char *next = to;
    while (n > 0) {
        ssize_t done = pread(fd, next, n, (off_t)at);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        next += done;
        at += (uint64_t)done;
        n -= (size_t)done;
    }
    return true;
}
