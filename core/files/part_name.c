/* Names of parts. Called by the recorder, by traced programs and by who lists what they wrote. */
#include "core/files/part_name.h"

#include "core/files/out_name.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PATH_SIZE = 1200 };

void sv_part_new_id(char id[static SV_PART_ID])
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    snprintf(id, SV_PART_ID, "%llx-%lx-%lx", (unsigned long long)t.tv_sec, (unsigned long)t.tv_nsec,
             (unsigned long)getpid());
}

void sv_parts_name(const char *out, uint32_t number, char *path, size_t size)
{
    char text[16];
    snprintf(text, sizeof text, "-%04u", number);
    if (snprintf(path, size, "%s", out) < (int)size)
        sv_name_insert(path, size, text);
}

/* Of NAME-0012.SUFFIX: 12; 0: it is no part of `out`, whose suffix begins at `dot`. */
static uint32_t number_in(const char *entry, const char *out, size_t dot)
{
    char *end;
    if (strncmp(entry, out, dot) != 0 || entry[dot] != '-' || entry[dot + 1] < '0' ||
        entry[dot + 1] > '9')
        return 0;
    unsigned long n = strtoul(entry + dot + 1, &end, 10);
    return strcmp(end, out + dot) == 0 && n < UINT32_MAX ? (uint32_t)n : 0;
}

uint32_t sv_parts_free_number(const char *out)
{
    char folder[PATH_SIZE] = ".", one[PATH_SIZE];
    const char *slash = strrchr(out, '/'), *base = slash ? slash + 1 : out;
    if (slash)
        snprintf(folder, sizeof folder, "%.*s", slash == out ? 1 : (int)(slash - out), out);
    sv_parts_name(base, 1, one, sizeof one);
    size_t dot = strlen(base);
    while (dot > 0 && (strncmp(one, base, dot) != 0 || strncmp(one + dot, "-0001", 5) != 0))
        dot--;
    uint32_t next = 1;
    DIR *d = opendir(folder);
    for (const struct dirent *e; d && (e = readdir(d));) {
        uint32_t n = number_in(e->d_name, base, dot);
        next = n >= next ? n + 1 : next;
    }
    if (d)
        closedir(d);
    return next;
}
