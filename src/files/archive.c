/* An archive as a folder: see archive.h. Called by import.
 *
 * An archive is hostile: its names, sizes and links are words of another. So no file is made by any
 * of its names. Members of a plain tar are read where they are in it; those of a compressed one are
 * copied, one after the other, to a temporary file without a name, which is gone with the process.
 * A budget bounds what an archive may unpack to. */
#include "files/archive.h"

#include "cli/console.h"
#include "core/base/mem.h"
#include "core/files/unlinked.h"
#include "core/files/write_all.h"
#include "files/open.h"
#include "formats/tar.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define UNPACKED_ALWAYS ((uint64_t)1 << 30)  /* may be unpacked from any archive … */
#define UNPACKED_TIMES  ((uint64_t)250)      /* … and so many times what is stored … */
#define UNPACKED_MAX    ((uint64_t)64 << 30) /* … but never more */
#define NAMES_MAX       ((size_t)64 << 20)   /* memory for all names */
enum { NAME_MAX_BYTES = 4000, REFUSED_NAMED = 100 };

struct entry {
    char *name; /* without "." and double slashes */
    struct sv_piece part;
    size_t at; /* its place in the archive */
};

struct archive {
    struct sv_files *f;
    const char *path;
    bool strict;
    struct sv_input *in;
    struct sv_tar tar;
    int fd;          /* of the members' bytes */
    bool is_copied;  /* to fd; otherwise fd is the archive */
    uint64_t copied; /* bytes in fd */
    struct entry *entries;
    size_t n, cap, names;
    size_t refused;
};

/* ---- what is not taken ---- */

__attribute__((format(printf, 3, 4))) static int refuse(struct archive *a, const char *name,
                                                        const char *why, ...)
{
    char line[sizeof((struct sv_err *)NULL)->msg];
    int n = name ? snprintf(line, sizeof line, "%.300s: not read, ", name) : 0;
    va_list ap;
    va_start(ap, why);
    vsnprintf(line + n, sizeof line - (size_t)n, why, ap);
    va_end(ap);
    a->f->refused++;
    if (++a->refused <= REFUSED_NAMED)
        sv_console_error(a->path, SV_NO_POS, line);
    return 0;
}

/* Damage: the end of the archive, whatever follows. */
static int stop(struct archive *a, const char *name, struct sv_err *err)
{
    bool is_damage = err->code == SV_EFORMAT || err->code == SV_ELIMIT;
    if (a->strict && err->code == SV_EFORMAT)
        err->code = SV_EFOUND;
    if (a->strict || !is_damage) {
        err->code = err->code == SV_EIO ? SV_EINPUT : err->code;
        return sv_err_in_file(err, a->path);
    }
    refuse(a, name, "byte %" PRId64 ": %.200s; what follows is not read", err->pos, err->msg);
    sv_err_clear(err);
    return 0;
}

/* ---- names ---- */

enum name_is { NAME_GOOD, NAME_HIDDEN, NAME_OUTSIDE, NAME_LONG, NAME_NONE };

/* As a path below a folder: no "..", not from the root, no parts that say nothing. Hidden: as in
 * folders, names that begin with a dot. */
static enum name_is clean_name(const char *name, char *out, size_t size)
{
    size_t n = 0;
    enum name_is is = *name == '/' ? NAME_OUTSIDE : NAME_GOOD;
    while (*name && is != NAME_OUTSIDE) {
        size_t len = strcspn(name, "/");
        bool says_nothing = len == 0 || (len == 1 && *name == '.');
        if (len == 2 && name[0] == '.' && name[1] == '.')
            is = NAME_OUTSIDE;
        else if (!says_nothing && n + len + 2 > size)
            return NAME_LONG;
        else if (!says_nothing) {
            is = *name == '.' ? NAME_HIDDEN : is;
            if (n > 0)
                out[n++] = '/';
            memcpy(out + n, name, len);
            n += len;
        }
        name += len + (name[len] == '/');
    }
    out[n] = 0;
    return is == NAME_GOOD && n == 0 ? NAME_NONE : is;
}

/* The order in which a folder is walked: by name in each folder, so that a slash is before all
 * other bytes. */
static int compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    const unsigned char *p = (const unsigned char *)x->name, *q = (const unsigned char *)y->name;
    while (*p && *p == *q) {
        p++;
        q++;
    }
    int c = *p == 0 ? 0 : *p == '/' ? 1 : *p + 1, d = *q == 0 ? 0 : *q == '/' ? 1 : *q + 1;
    if (c != d)
        return c - d;
    return (x->at > y->at) - (x->at < y->at);
}

/* ---- members ---- */

static int copy_bytes(struct archive *a, const uint8_t *bytes, size_t n, struct sv_err *err)
{
    if (!sv_write_all_at(a->fd, bytes, n, a->copied))
        return sv_error(err, SV_EIO,
                        "%.200s: a temporary file in %.100s cannot be written: %s; set TMPDIR "
                        "to a directory with more space",
                        a->path, sv_temporary_dir(), strerror(errno));
    a->copied += n;
    return 0;
}

/* The content of a member, as much as there is. */
static int take_content(struct archive *a, uint64_t bytes, struct sv_piece *part,
                        struct sv_err *err)
{
    *part = (struct sv_piece){.at = a->is_copied ? a->copied : a->in->pos};
    while (part->bytes < bytes) {
        struct sv_err why = {0};
        uint64_t left = bytes - part->bytes;
        int more = sv_input_need(a->in, 1, &why);
        if (more < 0) {
            *err = why;
            return stop(a, NULL, err);
        }
        if (more == 0)
            break;
        size_t n = left < a->in->len ? (size_t)left : a->in->len;
        int code = a->is_copied ? copy_bytes(a, a->in->data, n, err) : 0;
        if (code < 0)
            return code;
        sv_input_skip(a->in, n);
        part->bytes += n;
    }
    return 0;
}

static int take_file(struct archive *a, const struct sv_tar_member *m, const char *name,
                     struct sv_err *err)
{
    struct sv_piece part;
    a->names += strlen(name) + sizeof *a->entries + 1;
    if (a->names > NAMES_MAX)
        return refuse(a, name, "the names in the archive need more than %zu MiB", NAMES_MAX >> 20);
    int code = take_content(a, m->bytes, &part, err);
    if (code < 0)
        return code;
    if (part.bytes < m->bytes && !a->strict)
        refuse(a, NULL, "%.300s: only %" PRIu64 " of %" PRIu64 " bytes are there", name, part.bytes,
               m->bytes);
    a->entries = sv_grow(a->entries, &a->cap, a->n + 1, sizeof *a->entries);
    a->entries[a->n] =
        (struct entry){.name = sv_strndup(name, strlen(name)), .part = part, .at = a->n};
    a->n++;
    return 0;
}

static int take_member(struct archive *a, const struct sv_tar_member *m, struct sv_err *err)
{
    static const char *const refused[] = {
        [SV_TAR_SPARSE] = "it is stored as a sparse file: store it whole (tar without --sparse)",
        [SV_TAR_OTHER] = "it is of a kind that is not known"};
    char name[NAME_MAX_BYTES];
    enum name_is is = clean_name(m->name, name, sizeof name);
    if (m->kind == SV_TAR_FOLDER)
        return 0;
    if (is == NAME_OUTSIDE)
        return refuse(a, m->name, "its name leads out of the archive");
    if (is == NAME_LONG)
        return refuse(a, m->name, "its name is longer than %d bytes", NAME_MAX_BYTES);
    if (is == NAME_NONE)
        return refuse(a, m->name, "it has no name");
    if (is == NAME_HIDDEN)
        return 0;
    if (m->kind == SV_TAR_FILE)
        return take_file(a, m, name, err);
    if (m->kind != SV_TAR_LINK && m->kind != SV_TAR_DEVICE)
        return refuse(a, name, "%s", refused[m->kind]);
    if (a->f->n_links++ < REFUSED_NAMED) /* it holds no bytes: nothing is lost */
        sv_console_note("%s/%s: skipped, it is a %s", a->path, name,
                        m->kind == SV_TAR_LINK ? "link" : "device");
    return 0;
}

static int take_members(struct archive *a, struct sv_err *err)
{
    struct sv_tar_member m;
    int code;
    while ((code = sv_tar_next(&a->tar, &m, err)) > 0) {
        code = take_member(a, &m, err);
        if (code < 0)
            return code;
    }
    return code < 0 ? stop(a, NULL, err) : 0;
}

/* ---- all of it ---- */

/* How many folders it is in. */
static size_t depth_of(const char *name)
{
    size_t n = 0;
    for (; *name; name++)
        n += *name == '/';
    return n;
}

/* Up to and with the folder that is too deep. */
static size_t deep_part(const char *name)
{
    const char *p = name;
    for (int level = 0; level < SV_FOLDERS_MAX; level++)
        p = strchr(p, '/') + 1;
    return (size_t)(p - name);
}

static void add_file(struct archive *a, const struct entry *e)
{
    size_t size = strlen(a->path) + strlen(e->name) + 2, n = a->f->n;
    char *path = sv_alloc(size);
    snprintf(path, size, "%s/%s", a->path, e->name);
    sv_files_add(a->f, path, true);
    free(path);
    if (a->f->n == n)
        return; /* too many */
    a->f->items[n].is_member = true;
    a->f->items[n].fd = a->fd;
    a->f->items[n].part = e->part;
}

/* Of a name that is there twice the last one counts, as when an archive is unpacked. */
static void add_files(struct archive *a)
{
    const char *deep = NULL;
    if (a->n > 0)
        qsort(a->entries, a->n, sizeof *a->entries, compare_entries);
    for (size_t i = 0; i < a->n; i++) {
        const struct entry *e = &a->entries[i];
        if (i + 1 < a->n && strcmp(e->name, e[1].name) == 0)
            continue;
        if (depth_of(e->name) < SV_FOLDERS_MAX) {
            add_file(a, e);
            continue;
        }
        a->f->too_deep += !deep || strncmp(deep, e->name, deep_part(e->name)) != 0;
        deep = e->name;
    }
}

static uint64_t budget(uint64_t stored)
{
    uint64_t most = stored < UNPACKED_MAX / UNPACKED_TIMES ? stored * UNPACKED_TIMES : UNPACKED_MAX;
    return most > UNPACKED_ALWAYS ? most : UNPACKED_ALWAYS;
}

static int open_store(struct archive *a, struct sv_err *err)
{
    a->is_copied = a->in->compression != NULL;
    a->fd = a->is_copied ? sv_open_unlinked(sv_temporary_dir())
                         : open(a->path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (a->fd < 0 && a->is_copied)
        return sv_err_sys(err, "a temporary file in %.200s for %.200s", sv_temporary_dir(),
                          a->path);
    if (a->fd < 0) {
        sv_err_sys(err, "%.300s", a->path);
        return err->code = SV_EINPUT;
    }
    struct sv_files *f = a->f;
    SV_APPEND(f->stores, f->n_stores, f->stores_cap) = a->fd;
    return 0;
}

static int take_archive(struct archive *a, struct sv_err *err)
{
    int code = open_store(a, err);
    if (code < 0)
        return code;
    a->tar = sv_tar_at(a->in, a->is_copied ? budget(a->in->size_bytes) : UINT64_MAX);
    code = take_members(a, err);
    sv_tar_fini(&a->tar);
    if (code >= 0)
        add_files(a);
    if (a->refused > REFUSED_NAMED) {
        char line[64];
        snprintf(line, sizeof line, "%zu more files were not read", a->refused - REFUSED_NAMED);
        sv_console_error(a->path, SV_NO_POS, line);
    }
    for (size_t i = 0; i < a->n; i++)
        free(a->entries[i].name);
    free(a->entries);
    return code < 0 ? code : 1;
}

/* NULL: it is no archive, or cannot be read; who reads it otherwise says why. */
static struct sv_input *open_archive(const char *path)
{
    struct stat st;
    struct sv_err ignored = {0};
    struct sv_input *in;
    if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || sv_input_open(path, &in, &ignored) < 0)
        return NULL;
    if (sv_input_need(in, SV_TAR_BLOCK, &ignored) > 0 && sv_tar_is(in->data, in->len))
        return in;
    sv_input_close(in);
    return NULL;
}

bool sv_is_archive(const char *path)
{
    struct sv_input *in = open_archive(path);
    sv_input_close(in);
    return in != NULL;
}

int sv_files_archive(struct sv_files *f, const char *path, bool strict, struct sv_err *err)
{
    struct archive a = {.f = f, .path = path, .strict = strict, .in = open_archive(path)};
    int code = a.in ? take_archive(&a, err) : 0;
    sv_input_close(a.in);
    return code;
}
