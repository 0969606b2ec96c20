/* The table of open slices and last values for recordings in several files. Called by
 * record/output/parts.c and sdk/write/rotate.c for each batch that is written. */
#include "core/stream/still_open.h"
#include "core/stream/machine.h"

#include <stdio.h>
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

struct sv_still_lasting {
    sv_track track;
    sv_str name;
    int64_t ts_ns;
    struct sv_arg *args; /* with texts of its own, and space for one more */
    uint16_t n_args;
};

static const struct sv_still_row empty_row = {.edge_ns = INT64_MIN, .value_ns = INT64_MIN};

enum { WRITTEN_AT_ONCE = 128 };

void sv_still_fini(struct sv_still *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->rows[i].open);
    free(s->rows);
    for (size_t i = 0; i < s->n_lasting; i++) {
        for (uint16_t k = 0; k < s->lasting[i].n_args; k++)
            if (s->lasting[i].args[k].type == SV_ARG_TEXT)
                free((char *)(uintptr_t)s->lasting[i].args[k].text);
        free(s->lasting[i].args);
    }
    free(s->lasting);
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

void sv_still_label(struct sv_dict *dict, const char *id, uint32_t part, int64_t start_ns)
{
    char text[128];
    int n = snprintf(text, sizeof text, "%s %u %lld", id, part, (long long)start_ns);
    sv_dict_set_meta(dict, SV_META_ROTATION, text, (size_t)n, false);
}

void sv_still_repeat(struct sv_still *s, struct sv_dict *dict, const char *cat,
                     const char *const names[static SV_STILL_NAMES])
{
    s->cat = sv_dict_cstr(dict, cat);
    for (int i = 0; i < SV_STILL_NAMES; i++)
        s->names[i] = sv_dict_cstr(dict, names[i]);
}

static bool lasts(const struct sv_still *s, const struct sv_event *e)
{
    bool is_one = false;
    for (int i = 0; i < SV_STILL_NAMES; i++)
        is_one |= e->name == s->names[i];
    return is_one && e->name && s->n_lasting < SV_STILL_LASTING_MAX;
}

/* Its plain arguments. */
static void hold(struct sv_still *s, const struct sv_event *e)
{
    struct sv_still_lasting *l = &SV_APPEND(s->lasting, s->n_lasting, s->cap_lasting);
    *l = (struct sv_still_lasting){.track = e->track, .name = e->name, .ts_ns = e->ts_ns};
    l->args = sv_alloc((e->n_args + 1u) * sizeof *l->args);
    for (const struct sv_arg *a = e->args; a < e->args + e->n_args; a = sv_arg_next(a)) {
        if (a->type < SV_ARG_BOOL || a->type > SV_ARG_TEXT)
            continue;
        l->args[l->n_args] = *a;
        if (a->type == SV_ARG_TEXT)
            l->args[l->n_args].text = sv_strndup(a->text, a->size);
        l->n_args++;
    }
}

void sv_still_note(struct sv_still *s, const struct sv_event *events, size_t n)
{
    for (const struct sv_event *e = events; e < events + n; e++) {
        if (e->kind == SV_INSTANT) {
            if (s->cat && e->cat == s->cat && lasts(s, e))
                hold(s, e);
            continue;
        }
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
    for (size_t i = 0; i < s->n_lasting; i++) {
        struct sv_still_lasting *l = &s->lasting[i];
        l->args[l->n_args] = mark;
        add(&w,
            (struct sv_event){.kind = SV_INSTANT,
                              .track = l->track,
                              .ts_ns = later(l->ts_ns, not_before_ns),
                              .name = l->name,
                              .cat = s->cat,
                              .n_args = (uint16_t)(l->n_args + (part != 0)),
                              .args = l->args},
            err);
    }
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
