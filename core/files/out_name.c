/* Names of outputs: see out_name.h. No memory is allocated: the SDK calls it in other people's
 * programs. */
#include "core/files/out_name.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- suffixes ---- */

static size_t base_at(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash + 1 - path) : 0;
}

size_t sv_name_unpacked(const char *path, enum sv_compression *compression)
{
    static const struct {
        const char *suffix;
        enum sv_compression compression;
    } packed[] = {{".gz", SV_GZIP}, {".zst", SV_ZSTD}};
    size_t len = strlen(path);
    for (size_t i = 0; i < sizeof packed / sizeof *packed; i++) {
        size_t n = strlen(packed[i].suffix);
        if (len > base_at(path) + n && strcmp(path + len - n, packed[i].suffix) == 0) {
            *compression = packed[i].compression;
            return len - n;
        }
    }
    *compression = SV_PLAIN;
    return len;
}

const char *sv_name_suffix(const char *path, const char *const *suffixes,
                           enum sv_compression *compression)
{
    size_t len = sv_name_unpacked(path, compression);
    for (; suffixes && *suffixes; suffixes++) {
        size_t n = strlen(*suffixes);
        if (len > n && memcmp(path + len - n, *suffixes, n) == 0)
            return *suffixes;
    }
    return NULL;
}

/* Where the suffix begins: .json of t.json, .json.gz of t.json.gz. */
static size_t suffix_at(const char *path)
{
    enum sv_compression ignored;
    size_t begin = base_at(path), end = sv_name_unpacked(path, &ignored), at;
    for (at = end; at > begin; at--)
        if (path[at - 1] == '.')
            return at - 1;
    return end;
}

bool sv_name_insert(char *path, size_t size, const char *text)
{
    size_t len = strlen(path), n = strlen(text), at = suffix_at(path);
    if (len + n >= size)
        return false;
    memmove(path + at + n, path + at, len - at + 1);
    memcpy(path + at, text, n);
    return true;
}

/* ---- patterns ---- */

void sv_name_host(char *to, size_t size)
{
    if (gethostname(to, size) != 0)
        snprintf(to, size, "localhost");
    to[size - 1] = '\0';
    for (char *c = to; *c; c++)
        if (*c == '/')
            *c = '_';
}

bool sv_name_has(const char *pattern, char letter)
{
    for (const char *at = pattern; (at = strchr(at, '%')) && at[1]; at += 2)
        if (at[1] == letter)
            return true;
    return false;
}

static bool expand_one(char letter, uint32_t pid, const struct sv_launcher *l, char *to,
                       size_t size)
{
    switch (letter) {
    case 'p': snprintf(to, size, "%u", pid); return true;
    case 'h': sv_name_host(to, size); return true;
    case 'r': snprintf(to, size, "%lld", l->rank >= 0 ? (long long)l->rank : 0); return true;
    case 'j': snprintf(to, size, "%s", l->job[0] ? l->job : "0"); return true;
    case '%': snprintf(to, size, "%%"); return true;
    default: return false;
    }
}

const char *sv_name_expand(const char *pattern, uint32_t pid, bool as_it_is,
                           const struct sv_launcher *launcher, char *to, size_t size)
{
    size_t at = 0;
    if (!as_it_is && pattern[0] != '/') {
        if (!getcwd(to, size - 1))
            return "the current directory is unknown";
        at = strlen(to);
        if (to[at - 1] != '/')
            to[at++] = '/';
    }
    for (const char *p = pattern; *p; p++) {
        char piece[256] = {*p, '\0'};
        if (*p == '%' && !expand_one(*++p, pid, launcher, piece, sizeof piece))
            return "after % comes p (process), h (host), r (rank), j (job) or %";
        size_t n = strlen(piece);
        if (at + n + 1 >= size)
            return "too long";
        memcpy(to + at, piece, n);
        at += n;
    }
    to[at] = '\0';
    return NULL;
}

bool sv_name_add_rank(const char *pattern, const struct sv_launcher *launcher, char *path,
                      size_t size, bool *changed)
{
    char text[32];
    *changed = sv_launcher_has_many(launcher) && !sv_name_has(pattern, 'r');
    snprintf(text, sizeof text, ".rank%04lld", (long long)launcher->rank);
    return !*changed || sv_name_insert(path, size, text);
}
