/* Files without system calls: what /proc says of open descriptors and of all bytes of a process.
 *
 * A file whose position has moved between two looks was read or written in between, by so many
 * bytes at least: positions that went back, pread() and files that were open for a moment are not
 * seen. The sums of /proc/PID/io are the kernel's, of all calls. */
#include "cmd/top.h"

#include "record/sample/procfs.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILES_MAX = 4096, KEPT_MAX = 1 << 16 };

static uint64_t number_after(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

static void take_totals(struct sv_top *t, uint32_t pid)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "%s/%u/io", sv_procfs_root(), pid);
    if (!sv_procfs_text(path, text, sizeof text))
        return;
    t->has_totals = true;
    t->read_bytes += number_after(text, "rchar: ");
    t->written_bytes += number_after(text, "wchar: ");
}

static void take_descriptor(struct sv_top *t, uint32_t pid, const char *fd)
{
    char path[96], target[1024], text[256];
    bool is_new;
    snprintf(path, sizeof path, "%s/%u/fd/%.16s", sv_procfs_root(), pid, fd);
    ssize_t len = readlink(path, target, sizeof target);
    if (len <= 0 || target[0] != '/' || (size_t)len == sizeof target ||
        (len > 5 && memcmp(target, "/dev/", 5) == 0))
        return;
    snprintf(path, sizeof path, "%s/%u/fdinfo/%.16s", sv_procfs_root(), pid, fd);
    if (!sv_procfs_text(path, text, sizeof text))
        return;
    uint64_t pos = number_after(text, "pos:"),
             key = sv_hash_bytes(target, (size_t)len, (uint64_t)pid << 32 | strtoul(fd, NULL, 10));
    if (t->files.n >= KEPT_MAX)
        sv_map_clear(&t->files);
    uint64_t *at = sv_map_add(&t->files, key, &is_new);
    uint64_t before = is_new ? pos : *at - 1;
    *at = pos + 1;
    if (pos > before)
        sv_top_add(t, SV_TOP_FILES, sv_dict_str(t->names, target, (size_t)len), 0,
                   &(struct sv_top_sum){.more = pos - before});
}

static void take_descriptors(struct sv_top *t, uint32_t pid, size_t *left)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%u/fd", sv_procfs_root(), pid);
    DIR *d = opendir(path);
    for (const struct dirent *e; d && *left > 0 && (e = readdir(d));)
        if (e->d_name[0] != '.') {
            take_descriptor(t, pid, e->d_name);
            --*left;
        }
    if (d)
        closedir(d);
}

void sv_top_look_at_files(struct sv_top *t, uint32_t pid)
{
    uint32_t *pids = NULL;
    size_t n = sv_procfs_family(pid, &pids), left = FILES_MAX;
    bool is_first = !t->has_totals;
    t->read_before = t->read_bytes;
    t->written_before = t->written_bytes;
    t->read_bytes = t->written_bytes = 0;
    for (size_t i = 0; i < n; i++) {
        take_totals(t, pids[i]);
        take_descriptors(t, pids[i], &left);
    }
    free(pids);
    /* Of children that have ended nothing is left: sums may go back. */
    if (is_first || t->read_bytes < t->read_before)
        t->read_before = t->read_bytes;
    if (is_first || t->written_bytes < t->written_before)
        t->written_before = t->written_bytes;
}
