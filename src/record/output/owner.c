/* Whose a finished recording is: see owner.h. Files stay root's while they grow, because only what
 * is the recorder's own is believed; called at the end. */
#include "record/output/owner.h"

#include "core/files/trusted.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* A number from the environment that sudo made; 0: none. */
static unsigned long number_of(const char *name)
{
    const char *text = sv_trusted_getenv(name);
    char *end;
    errno = 0;
    unsigned long n = text && *text >= '0' && *text <= '9' ? strtoul(text, &end, 10) : 0;
    return n > 0 && *end == '\0' && errno == 0 && n < (uid_t)-1 ? n : 0;
}

/* The one user of the processes; uid 0: root's, several users', or one is gone. */
static struct sv_record_owner of_processes(const struct sv_words *pids)
{
    struct sv_record_owner owner = {0};
    for (size_t i = 0; i < pids->n; i++) {
        char path[64];
        struct stat st;
        snprintf(path, sizeof path, "/proc/%.40s", pids->items[i]);
        if (stat(path, &st) != 0 || (i > 0 && st.st_uid != owner.uid))
            return (struct sv_record_owner){0};
        owner = (struct sv_record_owner){st.st_uid, st.st_gid};
    }
    return owner;
}

struct sv_record_owner sv_record_owner_find(const struct sv_record_options *o)
{
    if (geteuid() != 0)
        return (struct sv_record_owner){0};
    if (o->pids.n > 0)
        return of_processes(&o->pids);
    unsigned long uid = number_of("SUDO_UID"), gid = number_of("SUDO_GID");
    return (struct sv_record_owner){(uid_t)(gid ? uid : 0), (gid_t)gid};
}

void sv_record_owner_give(const struct sv_record_owner *owner, const char *path)
{
    struct stat st;
    if (owner->uid == 0 || !*path)
        return;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return;
    bool is_made = fstat(fd, &st) == 0 && st.st_uid == 0 &&
                   ((S_ISREG(st.st_mode) && st.st_nlink == 1) || S_ISDIR(st.st_mode));
    if (is_made && fchown(fd, owner->uid, owner->gid) != 0)
        errno = 0; /* a file system without owners */
    close(fd);
}

void sv_record_owner_give_folder(const struct sv_record_owner *owner, const char *path)
{
    char file[1400];
    DIR *d = owner->uid ? opendir(path) : NULL;
    for (const struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.' &&
            snprintf(file, sizeof file, "%s/%s", path, e->d_name) < (int)sizeof file)
            sv_record_owner_give(owner, file);
    if (d)
        closedir(d);
    sv_record_owner_give(owner, path);
}
