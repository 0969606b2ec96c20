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
