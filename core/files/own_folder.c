/* Folders of this user under names that others cannot take: see own_folder.h. */
#include "core/files/own_folder.h"

#include "core/files/trusted.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* As the kernel gives them; readdir() would allocate memory. */
struct entry {
    uint64_t inode;
    int64_t next;
    uint16_t size;
    uint8_t type;
    char name[];
};

static bool is_own(int base, const char *name)
{
    struct stat st;
    return fstatat(base, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
           st.st_uid == geteuid() && (st.st_mode & 077) == 0;
}

static bool is_other(const char *entry, const char *name, size_t len)
{
    return strncmp(entry, name, len) == 0 && entry[len] == '.' && entry[len + 1] &&
           strlen(entry) < SV_OWN_NAME_MAX;
}

size_t sv_own_others(const char *base, const char *name,
                     char to[static SV_OWN_OTHERS_MAX][SV_OWN_NAME_MAX])
{
    _Alignas(8) char buf[4096];
    size_t found = 0, len = strlen(name);
    int fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (long n = 1; fd >= 0 && n > 0 && found < SV_OWN_OTHERS_MAX;) {
        n = syscall(SYS_getdents64, fd, buf, sizeof buf);
        for (long at = 0; at < n && found < SV_OWN_OTHERS_MAX;) {
            const struct entry *e = (const struct entry *)(const void *)(buf + at);
            if (is_other(e->name, name, len) && is_own(fd, e->name))
                memcpy(to[found++], e->name, strlen(e->name) + 1);
            at += e->size;
        }
    }
    if (fd >= 0)
        close(fd);
    return found;
}

int sv_own_other(const char *base, const char *name, char made[static SV_OWN_NAME_MAX])
{
    char others[SV_OWN_OTHERS_MAX][SV_OWN_NAME_MAX];
    uint64_t random;
    bool is_made = sv_own_others(base, name, others) > 0;
    if (is_made)
        memcpy(made, others[0], SV_OWN_NAME_MAX);
    else if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random ||
             snprintf(made, SV_OWN_NAME_MAX, "%s.%016llx", name, (unsigned long long)random) >=
                 SV_OWN_NAME_MAX)
        return -1;
    int in = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (in < 0)
        return -1;
    int fd = is_made || mkdirat(in, made, 0700) == 0 ? sv_trusted_folder(in, made, SV_TRUST_PRIVATE)
                                                     : -1;
    int error = errno;
    close(in);
    errno = error;
    return fd;
}
