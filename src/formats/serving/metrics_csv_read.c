/* metrics.csv, which the newer inference server writes beside its summary: queue size and
 * rejections over time.
 *
 * Called by `stave plot batch`, row by row. Malformed rows are damage and left out; with a missing
 * column the file is not read. */
#include "formats/csv_line.h"
#include "formats/decimal.h"
#include "formats/lines.h"

#include <string.h>

enum { TIME, QUEUED, REJECTED, N_COLUMNS };
static const char *const names[N_COLUMNS] = {"timestamp_us", "queue_size", "rejected_total"};

static bool take_row(const struct sv_csv_line *line, const int *place, int64_t *ts_ns, double *v)
{
    for (int c = 0; c < N_COLUMNS; c++)
        if (place[c] >= (int)line->n)
            return false;
    if (!sv_decimal_signed_ns(line->fields[place[TIME]], 3, ts_ns))
        return false;
    return sv_text_double(line->fields[place[QUEUED]], &v[QUEUED]) &&
           sv_text_double(line->fields[place[REJECTED]], &v[REJECTED]);
}

static int take_head(const struct sv_csv_line *line, int *place, struct sv_err *err)
{
    char missing[100];
    sv_csv_find(line, names, N_COLUMNS, place);
    if (sv_csv_missing(names, place, N_COLUMNS, missing, sizeof missing))
        return sv_error(err, SV_EFORMAT, "not the metrics of a server: no column %s", missing);
    return 0;
}

static int take_lines(struct sv_input *in, struct sv_csv_line *line, sv_metric_fn *take, void *ctx,
                      struct sv_report *report, struct sv_err *err)
{
    const char *begin = (const char *)in->data, *end = begin + in->len;
    int place[N_COLUMNS], code = 0;
    bool has_head = false;
    for (const char *p = begin, *next; p < end && code >= 0; p = next) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        double v[N_COLUMNS];
        int64_t ts_ns;
        next = stop ? stop + 1 : end;
        stop = stop ? stop : end;
        if (stop == p || (stop == p + 1 && *p == '\r'))
            continue;
        bool is_line = sv_csv_split(line, p, (size_t)(stop - p));
        if (!has_head) {
            has_head = true;
            code = take_head(line, place, err);
        } else if (is_line && take_row(line, place, &ts_ns, v)) {
            take(ctx, ts_ns, v[QUEUED], v[REJECTED]);
        } else {
            sv_report_add(report, SV_DAMAGE, "row of metrics not understood, left out", 1,
                          p - begin, "three numbers were expected");
        }
    }
    return code;
}

int sv_metrics_csv_read(struct sv_input *in, sv_metric_fn *take, void *ctx,
                        struct sv_report *report, struct sv_err *err)
{
    struct sv_csv_line line = {0};
    int code;
    while ((code = sv_input_need(in, in->len + 1, err)) > 0)
        continue; /* the window grows until it holds all of it */
    if (code >= 0)
        code = take_lines(in, &line, take, ctx, report, err);
    sv_csv_fini(&line);
    return code;
}
