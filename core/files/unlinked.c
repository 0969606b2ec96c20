/* Temporary files without a name. Called by the sorter, the import of archives, the recorder's
 * segments and the backlog of a server's tracer. */
#include "core/files/unlinked.h"

#include "core/files/trusted.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *sv_temporary_dir(void)
{
    const char *dir = sv_trusted_getenv("TMPDIR");
    if (dir && *dir)
        return dir;
    return access("/var/tmp", W_OK) == 0 ? "/var/tmp" : "/tmp";
}

int sv_open_unlinked(const char *dir)
{
    int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC | O_EXCL, 0600);
    if (fd >= 0)
        /* else the file system or the kernel may not know it, or the folder cannot be used */
        return fd;
    char path[4096];
    size_t len = strlen(dir);
    static const char tail[] = "/stave-XXXXXX";
    if (len + sizeof tail > sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    memcpy(path, dir, len);
    memcpy(path + len, tail, sizeof tail);
    fd = mkostemp(path, O_CLOEXEC);
    if (fd >= 0)
        unlink(path);
    return fd;
}
