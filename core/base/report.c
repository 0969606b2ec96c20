/* The report: few rows (one per kind of finding), so a linear search is right.
 *
 * Called by readers and stages while they run; the number of rows is bounded, because `what` may
 * come from a file. */
#include "core/base/report.h"
#include "core/base/err.h"
#include "core/base/mem.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MAX 1000 /* past it, findings of a severity share one row */

void sv_report_init(struct sv_report *r)
{
    *r = (struct sv_report){0};
}

void sv_report_fini(struct sv_report *r)
{
    for (size_t i = 0; i < r->n; i++) {
        free(r->rows[i].what);
        free(r->rows[i].first_detail);
    }
    free(r->rows);
    *r = (struct sv_report){0};
}

static struct sv_finding *find(struct sv_report *r, enum sv_severity severity, const char *what)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->rows[i].severity == severity && strcmp(r->rows[i].what, what) == 0)
            return &r->rows[i];
    return NULL;
}

static struct sv_finding *add_row(struct sv_report *r, enum sv_severity severity, const char *what,
                                  int64_t pos)
{
    r->rows = sv_grow(r->rows, &r->cap, r->n + 1, sizeof *r->rows);
    struct sv_finding *row = &r->rows[r->n++];
    *row = (struct sv_finding){
        .severity = severity, .what = sv_strndup(what, strlen(what)), .first_pos = pos};
    return row;
}

void sv_report_add(struct sv_report *r, enum sv_severity severity, const char *what, uint64_t count,
                   int64_t pos, const char *detail_fmt, ...)
{
    if (!r)
        return;
    struct sv_finding *row = find(r, severity, what);
    if (!row && r->n >= ROWS_MAX) {
        what = "other findings";
        row = find(r, severity, what);
    }
    if (!row) {
        row = add_row(r, severity, what, pos);
        if (detail_fmt) {
            char detail[256];
            va_list ap;
            va_start(ap, detail_fmt);
            vsnprintf(detail, sizeof detail, detail_fmt, ap);
            va_end(ap);
            row->first_detail = sv_strndup(detail, strlen(detail));
        }
    }
    row->count += count;
}

uint64_t sv_report_count(const struct sv_report *r, enum sv_severity severity)
{
    uint64_t count = 0;
    for (size_t i = 0; i < r->n; i++)
        if (r->rows[i].severity == severity)
            count += r->rows[i].count;
    return count;
}
