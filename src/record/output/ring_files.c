/* Files of a ring: see ring_files.h. Called by record/output/parts.c while it records, and by
 * `stave recover` afterwards.
 *
 * Rings of several killed recorders may lie under one name: each has the numbers from its claim's
 * first segment up to the next claim's. */
#include "record/output/ring_files.h"

#include "core/files/trusted.h"
#include "core/files/unlinked.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHUNK = 1 << 16 };

void sv_ring_segment_name(const char *out, uint32_t number, bool is_open,
                          char path[static SV_RING_PATH_MAX])
{
    snprintf(path, SV_RING_PATH_MAX, "%.1000s.ring-%04u%s", out, number, is_open ? ".open" : "");
}

/* ---- which there are ---- */

/* All of a name; the name itself is no pattern. */
static bool find_all(const char *out, glob_t *found)
{
    char pattern[2 * SV_CLAIM_PATH_MAX + 32];
    size_t at = 0;
    for (const char *c = out; *c && at < 2 * SV_CLAIM_PATH_MAX; c++) {
        if (strchr("*?[\\", *c))
            pattern[at++] = '\\';
        pattern[at++] = *c;
    }
    snprintf(pattern + at, sizeof pattern - at, ".ring-[0-9]*");
    return glob(pattern, GLOB_NOSORT, NULL, found) == 0;
}

static uint32_t number_of(const char *path)
{
    unsigned long n = strtoul(strrchr(path, '-') + 1, NULL, 10);
    return n < UINT32_MAX ? (uint32_t)n : 0;
}

uint32_t sv_ring_next_number(const char *out)
{
    glob_t found;
    uint32_t next = 1;
    if (!find_all(out, &found))
        return next;
    for (size_t i = 0; i < found.gl_pathc; i++) {
        uint32_t n = number_of(found.gl_pathv[i]);
        next = n >= next ? n + 1 : next;
    }
    globfree(&found);
    return next;
}

/* The numbers of a claim: from `first` to before `end`, as far as they are there. */
struct numbers {
    uint32_t first, end;
};

static int find_end(void *ctx, const struct sv_claim *c, enum sv_claim_state state)
{
    struct numbers *n = ctx;
    if (state == SV_CLAIM_THERE && c->segment > n->first && c->segment < n->end)
        n->end = c->segment;
    return 0;
}

static struct numbers numbers_of(const struct sv_claim *c)
{
    struct numbers n = {c->segment, UINT32_MAX}, there = {UINT32_MAX, 0};
    glob_t found;
    sv_claims_each(c->out, find_end, &n);
    if (!find_all(c->out, &found))
        return (struct numbers){0};
    for (size_t i = 0; i < found.gl_pathc; i++) {
        uint32_t k = number_of(found.gl_pathv[i]);
        if (k < n.first || k >= n.end)
            continue;
        there.first = k < there.first ? k : there.first;
        there.end = k + 1 > there.end ? k + 1 : there.end;
    }
    globfree(&found);
    return there.end ? there : (struct numbers){0};
}

/* ---- joining ---- */

/* At most `limit` bytes of a file; what is not there is no error. */
static int append(int to, const char *path, uint64_t limit, uint64_t *bytes, struct sv_err *err)
{
    static char chunk[CHUNK];
    int fd = sv_trusted_file(AT_FDCWD, path, O_RDONLY, SV_TRUST_OWN, 0);
    if (fd < 0)
        return errno == ENOENT ? 0 : sv_err_sys(err, "%.300s", path);
    int code = 0;
    while (code >= 0 && limit > 0) {
        ssize_t n = read(fd, chunk, limit < sizeof chunk ? (size_t)limit : sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            code = sv_err_sys(err, "%.300s", path);
        if (n <= 0)
            break;
        if (write(to, chunk, (size_t)n) != n)
            code = sv_err_sys(err, "no space to join the segments of %.300s", path);
        limit -= (uint64_t)n;
        *bytes += (uint64_t)n;
    }
    close(fd);
    return code;
}

/* Beside the trace, or where temporary files are. */
static int open_nameless(const char *out)
{
    char folder[SV_CLAIM_PATH_MAX] = ".";
    const char *slash = strrchr(out, '/'), *tmp = sv_trusted_getenv("TMPDIR");
    if (slash)
        snprintf(folder, sizeof folder, "%.*s", slash == out ? 1 : (int)(slash - out), out);
    int fd = sv_open_unlinked(folder);
    return fd >= 0 ? fd : sv_open_unlinked(tmp && *tmp ? tmp : "/tmp");
}

int sv_ring_left_join(const struct sv_claim *c, uint64_t part_bytes, uint64_t *bytes,
                      struct sv_err *err)
{
    char path[SV_RING_PATH_MAX];
    struct numbers n = numbers_of(c);
    int fd = open_nameless(c->out), code = 0;
    *bytes = 0;
    if (fd < 0)
        return sv_err_sys(err, "no space to join the segments of %.300s", c->out);
    for (uint32_t k = n.first; code >= 0 && k < n.end; k++) {
        if (k == n.first) {
            sv_ring_segment_name(c->out, k, true, path);
            code = append(fd, path, UINT64_MAX, bytes, err);
        }
        sv_ring_segment_name(c->out, k, false, path);
        if (code >= 0)
            code = append(fd, path, UINT64_MAX, bytes, err);
    }
    if (code >= 0)
        code = append(fd, c->part, part_bytes, bytes, err);
    if (code < 0)
        close(fd);
    return code < 0 ? code : fd;
}

void sv_ring_left_remove(const struct sv_claim *c)
{
    char path[SV_RING_PATH_MAX];
    struct numbers n = numbers_of(c);
    for (uint32_t k = n.first; k < n.end; k++)
        for (int is_open = 0; is_open < 2; is_open++) {
            sv_ring_segment_name(c->out, k, is_open, path);
            unlink(path);
        }
}
