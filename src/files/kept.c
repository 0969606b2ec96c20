/* The folder of indexes: names, keys, and which ones go when there are too many.
 *
 * Called by sv_load() and `stave view`. The folder is $XDG_CACHE_HOME/stave or ~/.cache/stave; it
 * and its files must be this user's alone. An index is written under a name of its own and renamed
 * when it is whole, so that nobody sees half of one and two programs can write at once. Nothing
 * here prints: who has no cache has none. */
#include "files/kept.h"

#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/files/trusted.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define SUFFIX      ".stave-index"
#define PART        ".stave-part"
#define NAME_LEN    16u /* hexadecimal digits before the suffix */
#define FILES_MAX   32u
#define BYTES_MAX   ((uint64_t)20 << 30)
#define SAMPLES     64u
#define NAME_SIZE   64u /* of a buffer for the name of an index */
#define SAMPLE_SIZE 4096u

/* ---- the file ---- */

/* The first, the last and evenly spaced blocks between them. */
static bool sample(int fd, uint64_t size, uint64_t *out)
{
    char block[SAMPLE_SIZE];
    uint64_t last = size > sizeof block ? size - sizeof block : 0, h = size;
    for (uint64_t i = 0; i < SAMPLES; i++) {
        uint64_t at = last / (SAMPLES - 1) * i + last % (SAMPLES - 1) * i / (SAMPLES - 1);
        ssize_t n = pread(fd, block, sizeof block, (off_t)at);
        if (n < 0)
            return false;
        h = sv_hash_pair(h, sv_hash_bytes(block, (size_t)n, i));
    }
    *out = h;
    return true;
}

/* Clocks of file systems have steps: a change in the same step as the one before leaves no trace in
 * the times. */
static bool is_settled(const struct stat *st)
{
    struct timespec now;
    const struct timespec *c = &st->st_ctim, *m = &st->st_mtim;
    int64_t step_ns = c->tv_nsec || m->tv_nsec ? 100000000 : 2000000000;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t age_s = now.tv_sec - c->tv_sec;
    return age_s > 3 || (age_s >= 0 && age_s * 1000000000 + now.tv_nsec - c->tv_nsec > step_ns);
}

/* ---- the folder ---- */

/* -1: there is none. */
static int open_folder(bool is_made)
{
    const char *cache = sv_trusted_getenv("XDG_CACHE_HOME"), *home = sv_trusted_getenv("HOME");
    char path[PATH_MAX];
    bool is_given = cache && *cache == '/';
    if (!is_given && (!home || *home != '/'))
        return -1;
    int len =
        snprintf(path, sizeof path, "%s%s", is_given ? cache : home, is_given ? "" : "/.cache");
    if (len < 0 || (size_t)len >= sizeof path)
        return -1;
    if (is_made)
        (void)mkdir(path, 0700);
    int base = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (base < 0)
        return -1;
    int folder = is_made ? sv_trusted_make_folder(base, "stave")
                         : sv_trusted_folder(base, "stave", SV_TRUST_PRIVATE);
    close(base);
    return folder;
}

static void name_index(char to[NAME_SIZE], const struct sv_kept_key *key)
{
    snprintf(to, NAME_SIZE, "%016llx" SUFFIX, (unsigned long long)key->name);
}

static bool is_ours(const char *name, const char *suffix)
{
    return strspn(name, "0123456789abcdef") == NAME_LEN && strcmp(name + NAME_LEN, suffix) == 0;
}

/* Everything but the samples. */
static bool stat_key(int fd, const char *from, struct sv_kept_key *key)
{
    struct stat st;
    const char *format = from ? from : "";
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size <= 0)
        return false;
    uint64_t words[] = {(uint64_t)st.st_dev,
                        (uint64_t)st.st_ino,
                        (uint64_t)st.st_size,
                        (uint64_t)st.st_mtim.tv_sec,
                        (uint64_t)st.st_mtim.tv_nsec,
                        (uint64_t)st.st_ctim.tv_sec,
                        (uint64_t)st.st_ctim.tv_nsec,
                        sv_hash_bytes(format, strlen(format), 0),
                        sv_kept_build,
                        sizeof(void *)};
    _Static_assert(sizeof words < sizeof key->image.words, "room for the key and the samples");
    memcpy(key->image.words, words, sizeof words);
    key->name = sv_hash_pair(sv_hash_pair(sv_hash_pair(1, words[0]), words[1]), words[7]);
    key->is_settled = is_settled(&st);
    return true;
}

static bool has_index(const struct sv_kept_key *key)
{
    char name[NAME_SIZE];
    struct stat st;
    int folder = open_folder(false);
    if (folder < 0)
        return false;
    name_index(name, key);
    bool is_there = fstatat(folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    close(folder);
    return is_there;
}

void sv_kept_key(const char *path, const char *from, bool is_needed, struct sv_kept_key *key)
{
    *key = (struct sv_kept_key){0};
    int fd = strcmp(path, "-") == 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return;
    const size_t last = sizeof key->image.words / sizeof *key->image.words - 1;
    key->is_known = stat_key(fd, from, key) && (is_needed || has_index(key)) &&
                    sample(fd, key->image.words[2], &key->image.words[last]);
    close(fd);
}

/* ---- opening ---- */

static const struct sv_format *format_of(const struct sv_trace *t)
{
    uint64_t n;
    char name[64] = "";
    const char *text = sv_image_find(sv_trace_image(t), "format", 1, &n);
    if (!text || n >= sizeof name)
        return NULL;
    memcpy(name, text, (size_t)n);
    const struct sv_format *f = sv_format_named(name);
    return f && sv_format_reads(f) ? f : NULL;
}

/* Dictionary and report are new: what a bad index put into them must not stay. */
static struct sv_trace *open_image(int fd, const struct sv_kept_key *key, unsigned how,
                                   struct sv_dict **dict, struct sv_report *report,
                                   const struct sv_format **format)
{
    struct sv_image *im = sv_image_open(fd, &key->image);
    struct sv_report found;
    struct sv_dict *d = im ? sv_dict_new() : NULL;
    sv_report_init(&found);
    struct sv_trace *t = im ? sv_trace_of_image(im, d, &found, how) : NULL;
    *format = t ? format_of(t) : NULL;
    if (t && *format) {
        sv_dict_free(*dict);
        sv_report_fini(report);
        *dict = d;
        *report = found;
        return t;
    }
    sv_trace_free(t);
    sv_dict_free(d);
    sv_report_fini(&found);
    return NULL;
}

struct sv_trace *sv_kept_open(const struct sv_kept_key *key, unsigned how, struct sv_dict **dict,
                              struct sv_report *report, const struct sv_format **format)
{
    char name[NAME_SIZE];
    int folder = key->is_known ? open_folder(false) : -1;
    if (folder < 0)
        return NULL;
    name_index(name, key);
    int fd = sv_trusted_file(folder, name, O_RDONLY, SV_TRUST_PRIVATE, 0);
    struct sv_trace *t = fd >= 0 ? open_image(fd, key, how, dict, report, format) : NULL;
    if (t) { /* the time of use, for choosing what goes */
        const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}};
        (void)futimens(fd, times);
    } else if (fd >= 0) {
        (void)unlinkat(folder, name, 0);
    }
    if (fd >= 0)
        close(fd);
    close(folder);
    return t;
}

void sv_kept_remove(const struct sv_kept_key *key)
{
    char name[NAME_SIZE];
    int folder = open_folder(false);
    name_index(name, key);
    if (folder < 0)
        return;
    (void)unlinkat(folder, name, 0);
    close(folder);
}

/* ---- making room ---- */

struct old {
    char name[NAME_SIZE];
    struct timespec used;
    uint64_t bytes;
};

static bool is_before(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

/* A file of ours by name, owner and first bytes; what is left of a program that was ended while it
 * wrote is removed. */
static bool look_at(int folder, const char *name, struct old *out)
{
    struct stat st;
    char head[5] = "";
    bool is_part = is_ours(name, PART);
    if (!is_part && !is_ours(name, SUFFIX))
        return false;
    int fd = sv_trusted_file(folder, name, O_RDONLY, SV_TRUST_PRIVATE, 0);
    if (fd < 0)
        return false;
    bool is_good = fstat(fd, &st) == 0;
    if (is_part && is_good && flock(fd, LOCK_EX | LOCK_NB) == 0)
        (void)unlinkat(folder, name, 0);
    is_good = is_good && !is_part && pread(fd, head, sizeof head, 0) == sizeof head &&
              memcmp(head, "stave", sizeof head) == 0;
    close(fd);
    if (!is_good)
        return false;
    *out = (struct old){.used = is_before(&st.st_atim, &st.st_mtim) ? st.st_mtim : st.st_atim,
                        .bytes = (uint64_t)st.st_blocks * 512};
    snprintf(out->name, sizeof out->name, "%.63s", name);
    return true;
}

/* The files of ours but for `except`. */
static size_t list_old(int folder, const char *except, struct old **out)
{
    size_t n = 0, cap = 0;
    struct old *all = NULL;
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = copy >= 0 ? fdopendir(copy) : NULL;
    for (struct dirent *e; dir && (e = readdir(dir));) {
        all = sv_grow(all, &cap, n + 1, sizeof *all);
        if (strcmp(e->d_name, except) != 0 && look_at(folder, e->d_name, &all[n]))
            n++;
    }
    if (dir)
        closedir(dir);
    else if (copy >= 0)
        close(copy);
    *out = all;
    return n;
}

/* All indexes together. */
static uint64_t bytes_max(int folder, uint64_t held)
{
    struct statvfs fs;
    if (fstatvfs(folder, &fs) != 0)
        return 0;
    uint64_t tenth = ((uint64_t)fs.f_bavail * fs.f_frsize + held) / 10;
    return tenth < BYTES_MAX ? tenth : BYTES_MAX;
}

/* Removes what was not used for longest until one of `bytes` more fits. False: it is too large. */
static bool make_room(int folder, const char *except, uint64_t bytes)
{
    struct old *all;
    size_t n = list_old(folder, except, &all), left = n;
    uint64_t held = 0;
    for (size_t i = 0; i < n; i++)
        held += all[i].bytes;
    uint64_t max = bytes_max(folder, held);
    while (bytes <= max && left && (left >= FILES_MAX || held + bytes > max)) {
        struct old *oldest = NULL;
        for (size_t i = 0; i < n; i++)
            if (all[i].name[0] && (!oldest || is_before(&all[i].used, &oldest->used)))
                oldest = &all[i];
        if (!oldest)
            break;
        (void)unlinkat(folder, oldest->name, 0);
        held -= oldest->bytes;
        oldest->name[0] = '\0';
        left--;
    }
    free(all);
    return bytes <= max;
}

/* ---- making ---- */

uint64_t sv_kept_slices(void)
{
    const char *text = sv_trusted_getenv("STAVE_INDEX_SLICES");
    char *end;
    errno = 0;
    unsigned long long n = text ? strtoull(text, &end, 10) : 0;
    return text && *text && *end == '\0' && errno == 0 ? n : UINT64_MAX;
}

struct sv_image_writer *sv_kept_begin(const struct sv_trace *t, const struct sv_report *report,
                                      const struct sv_format *format)
{
    struct sv_image_writer *w = sv_image_writer_new();
    if (format && sv_trace_put(t, report, w)) {
        sv_image_add(w, "format", format->name, strlen(format->name), 1);
        return w;
    }
    sv_image_writer_free(w);
    return NULL;
}

/* A new file of a name that nobody else has, locked while this program lives. */
static int open_part(int folder, char name[NAME_SIZE])
{
    struct timespec now;
    for (unsigned i = 0; i < 100; i++) {
        clock_gettime(CLOCK_REALTIME, &now);
        uint64_t h =
            sv_hash_pair(sv_hash_pair(sv_hash_pair((uint64_t)getpid(), i), (uint64_t)now.tv_sec),
                         (uint64_t)now.tv_nsec);
        snprintf(name, NAME_SIZE, "%016llx" PART, (unsigned long long)h);
        int fd = sv_trusted_file(folder, name, O_RDWR | O_CREAT | O_EXCL, SV_TRUST_PRIVATE, 0600);
        if (fd >= 0)
            (void)flock(fd, LOCK_EX | LOCK_NB);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

static int write_index(struct sv_image_writer *w, int folder, const struct sv_kept_key *key,
                       bool (*stop)(void *), void *ctx, struct sv_err *err)
{
    char part[NAME_SIZE], name[NAME_SIZE];
    name_index(name, key);
    if (!make_room(folder, name, sv_image_size(w)))
        return sv_error(err, SV_ELIMIT,
                        "it would be larger than a tenth of the free space, or 20 GB");
    int fd = open_part(folder, part);
    if (fd < 0)
        return sv_err_sys(err, "cannot make a file");
    int code = sv_image_write(w, fd, &key->image, stop, ctx, err);
    if (code >= 0 && renameat(folder, part, folder, name) != 0)
        code = sv_err_sys(err, "cannot rename a file");
    if (code < 0)
        (void)unlinkat(folder, part, 0);
    close(fd);
    return code;
}

int sv_kept_end(struct sv_image_writer *w, const char *path, const char *from,
                const struct sv_kept_key *key, bool (*stop)(void *), void *ctx, struct sv_err *err)
{
    struct sv_kept_key now;
    sv_kept_key(path, from, true, &now);
    bool is_same = memcmp(&now.image, &key->image, sizeof now.image) == 0;
    int folder = is_same && key->is_settled ? open_folder(true) : -1;
    int code = !is_same ? sv_error(err, SV_EFOUND, "the trace was changed")
               : !key->is_settled
                   ? sv_error(err, SV_EFOUND, "the trace was changed just before it was read")
               : folder < 0 ? sv_err_sys(err, "no folder that only you can use")
                            : write_index(w, folder, key, stop, ctx, err);
    if (folder >= 0)
        close(folder);
    sv_image_writer_free(w);
    return code;
}
