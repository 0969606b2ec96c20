/* Where a frame of Python is: the line by the line table of its code object (CPython 3.11 and
 * later), and the file as people know it. In a header, because libraries that are loaded into
 * programs have it, too (lib/inject/preload), and link nothing of core/. The tables are foreign
 * bytes. */
#ifndef SV_CORE_BASE_PYTHON_PLACE_H
#define SV_CORE_BASE_PYTHON_PLACE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct sv_python_table {
    const uint8_t *at, *end;
};

static inline uint32_t sv_python_number(struct sv_python_table *t)
{
    uint32_t number = 0;
    for (unsigned shift = 0; t->at < t->end && shift < 30; shift += 6) {
        uint8_t byte = *t->at++;
        number |= (uint32_t)(byte & 63) << shift;
        if (!(byte & 64))
            break;
    }
    return number;
}

static inline int sv_python_signed(struct sv_python_table *t)
{
    uint32_t number = sv_python_number(t);
    return number & 1 ? -(int)(number >> 1) : (int)(number >> 1);
}

/* The line of the instruction `at` bytes from the first one on; 0: it has none. An entry is a byte
 * 1kkkklll (kind, units of code − 1) and what its kind needs: the lines that it is further on, and
 * columns. */
static inline int sv_python_line(const uint8_t *table, size_t n, int first_line, uint32_t at)
{
    enum { ONE_LINE = 10, NO_COLUMNS = 13, LONG = 14, NO_PLACE = 15, UNIT = 2 };
    int64_t line = first_line;
    uint64_t end = 0;
    if ((int32_t)at < 0) /* it has not begun */
        return first_line;
    if (n == 0)
        return 0;
    struct sv_python_table t = {table, table + n};
    while (t.at < t.end) {
        uint8_t head = *t.at++;
        unsigned kind = head >> 3 & 15;
        if (!(head & 0x80))
            return 0;
        end += (uint64_t)UNIT * ((head & 7) + 1);
        if (kind == NO_COLUMNS || kind == LONG)
            line += sv_python_signed(&t);
        else if (kind >= ONE_LINE && kind < NO_COLUMNS)
            line += kind - ONE_LINE;
        for (unsigned i = 0; kind == LONG && i < 3; i++)
            sv_python_number(&t);
        for (unsigned i = kind < ONE_LINE ? 1 : 0; kind < NO_COLUMNS && i < 2 && t.at < t.end; i++)
            t.at++;
        if (at < end)
            return kind == NO_PLACE || line < 0 || line > INT32_MAX ? 0 : (int)line;
    }
    return 0;
}

/* "/usr/lib/python3/dist-packages/torch/nn/functional.py" is "torch/nn/functional.py", a script is
 * its name. */
static inline const char *sv_python_short_file(const char *path)
{
    static const char *const folders[] = {"/site-packages/", "/dist-packages/"};
    for (unsigned i = 0; i < 2; i++) {
        const char *at = strstr(path, folders[i]);
        if (at)
            return at + strlen(folders[i]);
    }
    const char *slash = strrchr(path, '/');
    if (!slash || strcmp(slash, "/__init__.py") != 0)
        return slash ? slash + 1 : path;
    while (slash > path && slash[-1] != '/') /* with the name of its package */
        slash--;
    return slash;
}

#endif
