/* The I/O report, by time: how long the threads were in I/O during each step and phase of the application.
 *
 * Called once the groups are made. Calls of one thread do not overlap, those of a process whose threads are not known may: the time in which at
 * least one runs counts once per track. */
#include "analysis/report_io.h"
#include "analysis/steps.h"

#include "base/map.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#define SPANS_MAX 65536u

struct piece {
    int64_t from_ns, to_ns;
};

struct finder {
    struct sv_io_report *report;
    const struct sv_io_words *words;
    sv_track *tracks; /* those that have calls */
    size_t n_tracks, cap_tracks;
    struct piece *pieces;
    size_t n_pieces, cap_pieces;
    size_t cap_spans;
};

static void find_tracks(struct finder *f)
{
    const struct sv_trace *t = f->report->trace;
    for (sv_track track = 1; track < t->n_tracks; track++) {
        for (uint32_t row = t->tracks[track].first; row < t->tracks[track].end; row++) {
            if (sv_io_kind_at(f->words, row) != SV_IO_CALL)
                continue;
            f->tracks = sv_grow(f->tracks, &f->cap_tracks, f->n_tracks + 1, sizeof *f->tracks);
            f->tracks[f->n_tracks++] = track;
            break;
        }
    }
}

static int by_start(const void *a, const void *b)
{
    const struct piece *x = a, *y = b;
    return x->from_ns < y->from_ns ? -1 : x->from_ns > y->from_ns;
}

/* The length of the union. */
static int64_t covered(struct piece *p, size_t n)
{
    int64_t sum = 0, end = INT64_MIN;
    if (n)
        qsort(p, n, sizeof *p, by_start);
    for (size_t i = 0; i < n; i++) {
        int64_t from = p[i].from_ns > end ? p[i].from_ns : end;
        if (p[i].to_ns > from) {
            sum += p[i].to_ns - from;
            end = p[i].to_ns;
        }
    }
    return sum;
}

static void count(struct finder *f, struct sv_io_span *s, uint32_t row)
{
    enum sv_io_op op = sv_io_op_at(f->words, row);
    int64_t bytes = sv_io_arg(f->words, row, f->words->bytes, 0);
    uint64_t moved = bytes > 0 ? (uint64_t)bytes : 0;
    s->opens += op == SV_OP_OPEN;
    s->reads += op == SV_OP_READ;
    s->writes += op == SV_OP_WRITE;
    s->bytes_read += op == SV_OP_READ ? moved : 0;
    s->bytes_written += op == SV_OP_WRITE ? moved : 0;
}

static void add_track(struct finder *f, struct sv_io_span *s, sv_track track, bool is_own)
{
    const struct sv_trace *t = f->report->trace;
    int64_t end = s->ts_ns + s->dur_ns;
    size_t first = f->n_pieces;
    struct sv_window w = sv_trace_window(t, track, s->ts_ns, end);
    for (uint32_t row; sv_window_next(&w, &row);) {
        if (sv_io_kind_at(f->words, row) != SV_IO_CALL)
            continue;
        int64_t from = t->slices.ts_ns[row], to = sv_trace_end_ns(t, row);
        if (from >= s->ts_ns)
            count(f, s, row);
        f->pieces = sv_grow(f->pieces, &f->cap_pieces, f->n_pieces + 1, sizeof *f->pieces);
        f->pieces[f->n_pieces++] =
            (struct piece){from > s->ts_ns ? from : s->ts_ns, to < end ? to : end};
    }
    if (is_own)
        s->own_ns += covered(f->pieces + first, f->n_pieces - first);
}

static void measure(struct finder *f, struct sv_io_span *s)
{
    const struct sv_dict *d = f->report->trace->dict;
    sv_track process = sv_dict_process_of(d, f->report->trace->slices.track[s->row]);
    f->n_pieces = 0;
    for (size_t i = 0; i < f->n_tracks; i++)
        add_track(f, s, f->tracks[i], !process || sv_dict_process_of(d, f->tracks[i]) == process);
    s->any_ns = covered(f->pieces, f->n_pieces);
}

static void add_span(struct finder *f, uint32_t row, int64_t ts_ns, int64_t dur_ns)
{
    struct sv_io_report *r = f->report;
    const struct sv_slices *c = &r->trace->slices;
    if (r->n_spans == SPANS_MAX)
        return;
    r->spans = sv_grow(r->spans, &f->cap_spans, r->n_spans + 1, sizeof *r->spans);
    r->spans[r->n_spans++] = (struct sv_io_span){
        .row = row, .name = c->name[row], .cat = c->cat[row], .ts_ns = ts_ns, .dur_ns = dur_ns};
}

static int by_time(const void *a, const void *b)
{
    const struct sv_io_span *x = a, *y = b;
    if (x->ts_ns != y->ts_ns)
        return x->ts_ns < y->ts_ns ? -1 : 1;
    return x->dur_ns > y->dur_ns ? -1 : x->dur_ns < y->dur_ns;
}

/* Steps, and slices of the categories phase and step, in the order of time. */
static void list_spans(struct finder *f)
{
    struct sv_io_report *r = f->report;
    const struct sv_trace *t = r->trace;
    struct sv_steps steps;
    struct sv_map seen = {0};
    sv_str phase = sv_dict_find_str(t->dict, "phase", 5),
           step = sv_dict_find_str(t->dict, "step", 4);
    find_tracks(f);
    sv_steps_find(&steps, t, NULL);
    for (size_t i = 0; f->n_tracks && i < steps.n; i++) {
        bool is_new;
        sv_map_add(&seen, steps.steps[i].row, &is_new);
        add_span(f, steps.steps[i].row, steps.steps[i].ts_ns, steps.steps[i].dur_ns);
    }
    for (uint64_t row = 0; f->n_tracks && row < t->slices.n; row++) {
        sv_str cat = t->slices.cat[row];
        if (cat && (cat == phase || cat == step) && t->slices.kind[row] == SV_SLICE &&
            !sv_map_find(&seen, row))
            add_span(f, (uint32_t)row, t->slices.ts_ns[row],
                     sv_trace_end_ns(t, row) - t->slices.ts_ns[row]);
    }
    if (r->n_spans)
        qsort(r->spans, r->n_spans, sizeof *r->spans, by_time);
    sv_steps_fini(&steps);
    sv_map_fini(&seen);
}

void sv_io_list_spans(struct sv_io_report *r, const struct sv_io_words *w)
{
    struct finder f = {.report = r, .words = w};
    list_spans(&f);
    free(f.tracks);
}

void sv_io_find_spans(struct sv_io_report *r, const struct sv_io_words *w)
{
    struct finder f = {.report = r, .words = w};
    list_spans(&f);
    for (size_t i = 0; i < r->n_spans; i++)
        measure(&f, &r->spans[i]);
    free(f.tracks);
    free(f.pieces);
}
