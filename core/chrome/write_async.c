/* The Chrome writer's async tracks: nestable b, n and e events whose id is the uuid of the track.
 *
 * Viewers find the b of an e by category and name, so the name of what is open is remembered per
 * track. A whole slice becomes two events; its e waits in a heap until the stream, which is in time
 * order, has come to its end: viewers sort by time but keep the order of ties, and an inner slice
 * must end before the one around it. Memory is bounded by what is open at one time. */
#include "core/base/heap.h"
#include "core/chrome/writer.h"

#include <assert.h>

static void put_async(struct chrome_writer *w, const char *phase, sv_track t, sv_str cat,
                      sv_str name, int64_t ts_ns)
{
    struct sv_json *j = &w->json;
    const struct chrome_row *row = &w->rows[t];
    chrome_line(w);
    sv_json_members(j, phase, 8);
    sv_json_lit(j, "cat"); /* always: viewers insist on it */
    struct sv_text text = sv_dict_text(w->dict, cat);
    sv_json_text(j, text.bytes, text.len);
    chrome_key_text(w, "name", 4, name);
    sv_json_members(j, row->ids, row->ids_len);
    sv_json_put(j, "id", hex, chrome_uuid(w, t));
    chrome_time(w, ts_ns);
}

/* ---- ends that are still to come ---- */

/* Of equal ends the slice that began last comes first: it is the inner one. */
static bool is_before(const struct chrome_due_async *a, const struct chrome_due_async *b)
{
    return a->end_ns != b->end_ns ? a->end_ns < b->end_ns : a->number > b->number;
}

static void add_due(struct chrome_writer *w, const struct sv_event *e)
{
    w->due = sv_grow(w->due, &w->cap_due, w->n_due + 1, sizeof *w->due);
    int64_t end_ns;
    if (__builtin_add_overflow(e->ts_ns, e->dur_ns, &end_ns))
        end_ns = INT64_MAX;
    struct chrome_due_async new = {.end_ns = end_ns,
                                   .number = w->n_begun++,
                                   .track = e->track,
                                   .name = e->name,
                                   .cat = e->cat};
    size_t i = w->n_due++;
    for (; i > 0 && is_before(&new, &w->due[(i - 1) / 2]); i = (i - 1) / 2)
        w->due[i] = w->due[(i - 1) / 2];
    w->due[i] = new;
}

static struct chrome_due_async take_due(struct chrome_writer *w)
{
    struct chrome_due_async top = w->due[0];
    w->due[0] = w->due[--w->n_due];
    SV_HEAP_SINK(w->due, w->n_due, 0, a, b, is_before(a, b));
    return top;
}

void chrome_async_until(struct chrome_writer *w, int64_t ts_ns)
{
    while (w->n_due > 0 && w->due[0].end_ns <= ts_ns) {
        struct chrome_due_async d = take_due(w);
        put_async(w, "\"ph\":\"e\"", d.track, d.cat, d.name, d.end_ns);
        sv_json_end(&w->json);
    }
}

/* ---- begins without their end ---- */

static void push_open(struct chrome_writer *w, const struct sv_event *e)
{
    uint32_t number = w->free_open;
    if (number > 0) {
        w->free_open = w->open[number - 1].below;
    } else {
        w->open = sv_grow(w->open, &w->cap_open, w->n_open + 1, sizeof *w->open);
        number = (uint32_t)++w->n_open;
    }
    uint64_t *top = sv_map_add(&w->async_tops, e->track, NULL);
    w->open[number - 1] =
        (struct chrome_open_async){.name = e->name, .cat = e->cat, .below = (uint32_t)*top};
    *top = number;
}

/* The name and category of the begin that this end belongs to. */
static void pop_open(struct chrome_writer *w, const struct sv_event *e, sv_str *cat, sv_str *name)
{
    *cat = e->cat;
    *name = e->name;
    uint64_t *top = sv_map_find(&w->async_tops, e->track);
    if (top == NULL)
        return;
    uint32_t number = (uint32_t)*top;
    struct chrome_open_async *o = &w->open[number - 1];
    *cat = o->cat;
    *name = o->name;
    if (o->below != 0)
        *top = o->below;
    else
        sv_map_remove(&w->async_tops, e->track);
    o->below = w->free_open;
    w->free_open = number;
}

void chrome_put_async(struct chrome_writer *w, const struct sv_event *e)
{
    struct chrome_extras x = chrome_survey(e->args, e->n_args);
    sv_str cat = e->cat, name = e->name;
    const char *phase = "\"ph\":\"b\"";
    switch (e->kind) {
    case SV_BEGIN: push_open(w, e); break;
    case SV_END:
        pop_open(w, e, &cat, &name);
        phase = "\"ph\":\"e\"";
        break;
    case SV_INSTANT: phase = "\"ph\":\"n\""; break;
    default: assert(e->kind == SV_SLICE); break;
    }
    put_async(w, phase, e->track, cat, name, e->ts_ns);
    chrome_finish(w, e, &x);
    if (e->kind != SV_SLICE || e->dur_ns < 0)
        return;
    if (e->dur_ns > 0) {
        add_due(w, e);
        return;
    }
    put_async(w, "\"ph\":\"e\"", e->track, cat, name, e->ts_ns);
    sv_json_end(&w->json);
}
