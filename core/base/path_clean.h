/* Paths as texts. In a header, because libraries that are loaded into programs have it, too
 * (lib/inject/io), and link nothing of core/. */
#ifndef SV_CORE_BASE_PATH_CLEAN_H
#define SV_CORE_BASE_PATH_CLEAN_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Takes `.`, `..` and doubled slashes out of an absolute path; returns the new length, without a
 * NUL. `to` may be the path itself if `follow` is NULL. Before a `..` `follow` (unless NULL) may
 * replace what has been written, `n` bytes, by what a symbolic link leads to; it returns the new
 * length, and `to` has room for that beyond `max`. */
static inline size_t sv_path_clean(const char *path, size_t len, char *to, size_t max,
                                   size_t (*follow)(void *ctx, char *path, size_t n), void *ctx)
{
    size_t n = 0;
    for (size_t i = 0; i < len;) {
        while (i < len && path[i] == '/')
            i++;
        size_t word = i;
        while (i < len && path[i] != '/')
            i++;
        size_t word_len = i - word;
        if (word_len == 0 || (word_len == 1 && path[word] == '.'))
            continue;
        if (word_len == 2 && path[word] == '.' && path[word + 1] == '.') {
            n = follow ? follow(ctx, to, n) : n;
            while (n > 0 && to[--n] != '/')
                continue;
            continue;
        }
        if (n + word_len + 1 > max) /* by links that lead to themselves */
            break;
        to[n++] = '/';
        memmove(to + n, path + word, word_len);
        n += word_len;
    }
    if (n == 0 && len > 0)
        to[n++] = '/';
    return n;
}

/* It has nothing to take out, but perhaps a slash at its end. */
static inline bool sv_path_is_clean(const char *path, size_t len)
{
    return !memmem(path, len, "/.", 2) && !memmem(path, len, "//", 2);
}

#endif
