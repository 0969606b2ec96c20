/* Descriptors that are still ours: see file_id.h. Async-signal-safe. */
#include "core/files/file_id.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { HIGH_END = 1024, HIGH_ROOM = 64 }; /* the usual limit, and what select() can take */

struct sv_file_id sv_file_id_of(int fd)
{
    struct stat st;
    return fd >= 0 && fstat(fd, &st) == 0 ? (struct sv_file_id){st.st_dev, st.st_ino}
                                          : (struct sv_file_id){0};
}

bool sv_file_id_is(int fd, const struct sv_file_id *id)
{
    struct sv_file_id now = sv_file_id_of(fd);
    return (id->device || id->inode) && now.device == id->device && now.inode == id->inode;
}

int sv_file_id_close(int fd, const struct sv_file_id *id)
{
    if (sv_file_id_is(fd, id))
        return close(fd);
    errno = EBADF;
    return -1;
}

int sv_file_id_move_up(int fd)
{
    struct rlimit limit;
    rlim_t end = HIGH_END;
    if (fd < 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return fd;
    if (limit.rlim_cur < end)
        end = limit.rlim_cur;
    int high = end > 2 * (rlim_t)HIGH_ROOM ? fcntl(fd, F_DUPFD_CLOEXEC, (int)end - HIGH_ROOM) : -1;
    if (high < 0)
        return fd;
    close(fd);
    return high;
}
