/* The table of open slices and last values for recordings in several files. Called by
 * record/output/parts.c for each batch that is written. */
#include "record/output/still_open.h"
#include "core/stream/machine.h"

#include <stdlib.h>
#include <string.h>

struct open_slice {
    sv_str name, cat;
};

struct sv_still_row {
    struct open_slice *open;
    size_t n, cap;
    /* The latest begin or end: an open slice ends no earlier. Instants say nothing of it: they may
     * be another thread's, whose events came sooner. */
    int64_t edge_ns;
    int64_t value_ns;
    struct sv_arg value;     /* type 0: no counter, or none yet */
    struct sv_arg marked[2]; /* while it is written */
};

static const struct sv_still_row empty_row = {.edge_ns = INT64_MIN, .value_ns = INT64_MIN};

enum { WRITTEN_AT_ONCE = 128 };

void sv_still_fini(struct sv_still *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->rows[i].open);
    free(s->rows);
    *s = (struct sv_still){0};
}

static struct sv_still_row *row_of(struct sv_still *s, sv_track track)
{
    if (track >= s->n) {
        size_t n = (size_t)track + 1;
        s->rows = sv_grow(s->rows, &s->cap, n, sizeof *s->rows);
        for (; s->n < n; s->n++)
            s->rows[s->n] = empty_row;
    }
    return &s->rows[track];
}

static int64_t later(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

void sv_still_note(struct sv_still *s, const struct sv_event *events, size_t n)
{
    for (const struct sv_event *e = events; e < events + n; e++) {
        struct sv_still_row *row = row_of(s, e->track);
        if (e->kind == SV_BEGIN || e->kind == SV_END)
            row->edge_ns = later(row->edge_ns, e->ts_ns);
        if (e->kind == SV_BEGIN) {
            row->open = sv_grow(row->open, &row->cap, row->n + 1, sizeof *row->open);
            row->open[row->n++] = (struct open_slice){e->name, e->cat};
        } else if (e->kind == SV_END && row->n > 0) {
            row->n--;
        } else if (e->kind == SV_COUNTER && e->n_args > 0 &&
                   (e->args[0].type == SV_ARG_INT || e->args[0].type == SV_ARG_DOUBLE ||
                    e->args[0].type == SV_ARG_UINT)) {
            row->value = e->args[0];
            row->value_ns = later(row->value_ns, e->ts_ns);
        }
    }
}

void sv_still_forget(struct sv_still *s, sv_track track)
{
    if (track >= s->n)
        return;
    free(s->rows[track].open);
    s->rows[track] = empty_row;
}

/* Events on their way to a sink, some at once. */
struct writing {
    struct sv_sink *to;
    struct sv_event events[WRITTEN_AT_ONCE];
    size_t n;
    int code;
};

static void send(struct writing *w, struct sv_err *err)
{
    if (w->n > 0 && w->code >= 0)
        w->code = w->to->write(w->to, w->events, w->n, err);
    w->n = 0;
}

static void add(struct writing *w, struct sv_event e, struct sv_err *err)
{
    if (w->n == WRITTEN_AT_ONCE)
        send(w, err);
    w->events[w->n++] = e;
}

static struct sv_arg part_arg(struct sv_dict *dict, uint32_t part)
{
    return (struct sv_arg){
        .key = part ? sv_dict_cstr(dict, SV_ARG_PART) : 0, .type = SV_ARG_INT, .i = part};
}

int sv_still_end(struct sv_still *s, int64_t not_before_ns, uint32_t part, struct sv_dict *dict,
                 struct sv_sink *to, struct sv_err *err)
{
    struct writing w = {.to = to};
    const struct sv_arg mark = part_arg(dict, part);
    for (size_t i = 0; i < s->n; i++) {
        struct sv_still_row *row = &s->rows[i];
        for (size_t k = row->n; k-- > 0;)
            add(&w,
                (struct sv_event){.kind = SV_END,
                                  .track = (sv_track)i,
                                  .ts_ns = later(row->edge_ns, not_before_ns),
                                  .n_args = part != 0,
                                  .args = &mark},
                err);
    }
    send(&w, err);
    return w.code;
}

int sv_still_begin(struct sv_still *s, int64_t not_before_ns, uint32_t part, struct sv_dict *dict,
                   struct sv_sink *to, struct sv_err *err)
{
    struct writing w = {.to = to};
    const struct sv_arg mark = part_arg(dict, part);
    const struct sv_arg continued[] = {
        {.key = sv_dict_cstr(dict, "continued"), .type = SV_ARG_BOOL, .i = 1}, mark};
    for (size_t i = 0; i < s->n; i++) {
        struct sv_still_row *row = &s->rows[i];
        if (row->n > 0)
            row->edge_ns = later(row->edge_ns, not_before_ns);
        if (row->value.type)
            row->value_ns = later(row->value_ns, not_before_ns);
        for (size_t k = 0; k < row->n; k++)
            add(&w,
                (struct sv_event){.kind = SV_BEGIN,
                                  .track = (sv_track)i,
                                  .ts_ns = row->edge_ns,
                                  .name = row->open[k].name,
                                  .cat = row->open[k].cat,
                                  .n_args = part ? 2 : 1,
                                  .args = continued},
                err);
        row->marked[0] = row->value;
        row->marked[1] = mark;
        if (row->value.type)
            add(&w,
                (struct sv_event){.kind = SV_COUNTER,
                                  .track = (sv_track)i,
                                  .ts_ns = row->value_ns,
                                  .name = dict->tracks[i].name,
                                  .n_args = part ? 2 : 1,
                                  .args = row->marked},
                err);
    }
    send(&w, err);
    return w.code;
}
