/* When requests leave: at a steady rate, as a Poisson process, or by a recorded schedule.
 *
 * All times are made before the load begins, so that making them cannot disturb it. */
#include "server/load/load_plan.h"

#include "core/base/mem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SCHEDULE_MAX 100000000u

void sv_arrivals_regular(struct sv_arrivals *a, uint64_t n, double rate)
{
    a->n = n;
    a->times_ns = sv_alloc(n * sizeof *a->times_ns);
    for (uint64_t i = 0; i < n; i++)
        a->times_ns[i] = (int64_t)((double)i * 1e9 / rate);
}

static double uniform(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return ((double)(*x >> 11) + 0.5) / (double)(1ull << 53);
}

void sv_arrivals_poisson(struct sv_arrivals *a, uint64_t n, double rate, uint64_t seed)
{
    uint64_t x = seed * 2654435761u + 88172645463325252u;
    double at = 0;
    a->n = n;
    a->times_ns = sv_alloc(n * sizeof *a->times_ns);
    for (uint64_t i = 0; i < n; i++) {
        at -= log(uniform(&x)) * 1e9 / rate;
        a->times_ns[i] = (int64_t)at;
    }
}

/* `delta_us[,repeat]`: so long after the one before, and that so often. */
static int read_line(struct sv_arrivals *a, size_t *cap, const char *line, int64_t *at_ns)
{
    char *end;
    double delta_us = strtod(line, &end);
    double repeat = 1;
    if (end == line || !(delta_us >= 0) || delta_us > 1e12)
        return SV_EFORMAT;
    while (*end == ' ')
        end++;
    if (*end == ',') {
        const char *from = end + 1;
        repeat = strtod(from, &end);
        if (end == from || !(repeat >= 1) || repeat > SCHEDULE_MAX)
            return SV_EFORMAT;
    }
    end += strspn(end, " \r\n");
    if (*end || (double)a->n + repeat > SCHEDULE_MAX)
        return SV_EFORMAT;
    a->times_ns = sv_grow(a->times_ns, cap, a->n + (uint64_t)repeat, sizeof *a->times_ns);
    for (uint64_t i = 0; i < (uint64_t)repeat; i++) {
        *at_ns += (int64_t)(delta_us * 1e3);
        a->times_ns[a->n++] = *at_ns;
    }
    return 0;
}

int sv_arrivals_schedule(struct sv_arrivals *a, const char *path, struct sv_err *err)
{
    FILE *f = fopen(path, "re");
    char line[256];
    size_t cap = 0;
    int64_t at_ns = 0;
    int code = 0;
    if (!f) {
        sv_err_sys(err, "%s", path);
        return SV_EINPUT;
    }
    for (unsigned n = 1; code == 0 && fgets(line, sizeof line, f); n++) {
        bool is_blank = line[strspn(line, " \r\n")] == 0 || line[0] == '#';
        bool is_header = n == 1 && strncmp(line, "delta_us", 8) == 0;
        if (!is_blank && !is_header && read_line(a, &cap, line, &at_ns) < 0)
            code = sv_error(err, SV_EFORMAT, "%s:%u: expected delta_us,repeat", path, n);
    }
    fclose(f);
    if (code == 0 && a->n == 0)
        code = sv_error(err, SV_EFORMAT, "%s: no requests found", path);
    return code;
}
