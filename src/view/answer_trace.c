/* /api/trace: what is in the trace, and the rows of the time line. */
#include "core/base/mem.h"
#include "plot/activity.h"
#include "plot/lanes.h"
#include "plot/row_order.h"
#include "store/ranks.h"
#include "view/answers.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOSSES_MAX  2000u
#define DENSE_LEAST 16u  /* so many at once are shown as their number, until they are unfolded */
#define DENSE_MOST  512u /* lines whose pixels the page adds up */

static void put_int_member(struct sv_json *j, const char *key, size_t len, int64_t v)
{
    sv_json_key(j, key, len);
    sv_json_i64_text(j, v);
}
#define PUT_INT(j, key, v) put_int_member((j), key, sizeof(key) - 1, (v))

static const char *group_kind(const struct sv_dict *d, sv_track group)
{
    return group == 0 ? "none" : d->tracks[group].kind == SV_TRACK_PROCESS ? "process" : "group";
}

static void put_process(struct sv_json *j, const struct sv_dict *d, sv_track process)
{
    struct sv_origin o = sv_origin_of(d, process);
    PUT_INT(j, "pid", d->tracks[process].pid);
    if (o.rank >= 0)
        PUT_INT(j, "rank", o.rank);
    if (!o.host)
        return;
    sv_json_put(j, "host", cstr, o.host);
}

static const char *const gather_words[SV_N_GATHERS] = {
    [SV_GATHER_MACHINE] = "machine", [SV_GATHER_OTHER] = "other"};

static void put_group(struct sv_json *j, const struct sv_shown *s, size_t first,
                      enum sv_gather gather)
{
    sv_track group = s->rows->items[first].group;
    struct sv_buf name;
    const struct sv_dict *d = s->trace->dict;
    sv_buf_init(&name, 1u << 20);
    sv_group_name(d, group, &name);
    sv_json_begin(j, '{');
    sv_json_put(j, "id", u64, group);
    sv_json_put(j, "name", text, sv_buf_cstr(&name), name.len);
    sv_json_put(j, "kind", text, group_kind(d, group), strlen(group_kind(d, group)));
    if (group && d->tracks[group].kind == SV_TRACK_PROCESS)
        put_process(j, d, group);
    if (gather)
        sv_json_put(j, "gather", cstr, gather_words[gather]);
    sv_json_end(j);
    sv_buf_fini(&name);
}

/* Rows of a group are neighbours, so a group is put when it begins. */
static void put_groups(struct sv_json *j, const struct sv_shown *s)
{
    struct sv_row_order order;
    sv_row_order_make(&order, s->rows, s->strips, NULL, 0);
    sv_json_begin(j, '[');
    for (size_t i = 0; i < s->rows->n; i++)
        if (i == 0 || s->rows->items[i].group != s->rows->items[i - 1].group)
            put_group(j, s, i, order.gather[i]);
    sv_json_end(j);
    sv_row_order_fini(&order);
}

/* The whole trace as one pixel. */
static void put_range(struct sv_json *j, const struct sv_shown *s, size_t row)
{
    struct sv_pixels px = {.from_ns = s->trace->first_ns, .width = 1, .right = 1};
    struct sv_strip_points points = {0};
    px.to_ns = s->trace->last_ns < INT64_MAX ? s->trace->last_ns + 1 : INT64_MAX;
    sv_strips_counter(s->strips, row, &px, &points);
    struct sv_strip_point range = {0};
    bool is_finite = true;
    for (size_t i = 0; i < points.n; i++) {
        if (isfinite(points.items[i].last))
            range = points.items[i];
        else
            is_finite = false;
    }
    sv_json_put(j, "min", double, range.min);
    sv_json_put(j, "max", double, range.max);
    sv_json_put(j, "finite", bool, is_finite);
    free(points.items);
}

static void put_counter_row(struct sv_json *j, const struct sv_shown *s, size_t row)
{
    sv_track track = s->rows->items[row].track;
    const struct sv_trace_track *k = &s->trace->tracks[track];
    sv_json_put(j, "kind", text, "counter", 7);
    sv_json_put(j, "points", u64, k->counter_end - k->counter_first);
    sv_json_put(j, "unit", str, s->trace->dict, s->trace->dict->tracks[track].unit);
    put_range(j, s, row);
}

/* The lines with outermost slices: those that count where a row shows how many there are at
 * once. */
static void put_tops(struct sv_json *j, const struct sv_shown *s, size_t row)
{
    const struct sv_row_info *info = &s->rows->items[row];
    const struct sv_slices *c = &s->trace->slices;
    bool *is_top = sv_alloc(info->lines + 1u);
    for (size_t i = 0; i < info->n_members; i++) {
        const struct sv_trace_track *k =
            &s->trace->tracks[s->rows->members[info->first_member + i].track];
        for (uint32_t slice = k->first; slice < k->end; slice++)
            if (c->depth[slice] == 0)
                is_top[sv_track_rows_line(s->rows, slice)] = true;
    }
    sv_json_put(j, "tops", begin, '[');
    for (uint32_t line = 0; line < info->lines; line++)
        if (is_top[line])
            sv_json_u64(j, line);
    sv_json_end(j);
    free(is_top);
}

static void put_slice_row(struct sv_json *j, const struct sv_shown *s, size_t row, bool is_lane)
{
    const struct sv_track_info *k = &s->trace->dict->tracks[s->rows->items[row].track];
    sv_json_put(j, "kind", text, "slices", 6);
    sv_json_put(j, "slices", u64, sv_strips_count(s->strips, row));
    sv_json_put(j, "busy", u64_text, sv_strips_busy_ns(s->strips, row));
    bool is_dense = sv_row_overlap(s->rows, row) >= DENSE_LEAST &&
                    s->rows->items[row].lines <= DENSE_MOST;
    if (is_dense)
        sv_json_put(j, "dense", bool, true);
    if (is_dense || is_lane)
        put_tops(j, s, row);
    if (k->kind == SV_TRACK_THREAD)
        PUT_INT(j, "tid", k->tid);
}

/* `lanes`: the common name of the lanes that it is one of; NULL: of none. */
static void put_row(struct sv_json *j, const struct sv_shown *s, size_t row,
                    const struct sv_buf *lanes)
{
    struct sv_buf name;
    const struct sv_row_info *info = &s->rows->items[row];
    const char *track = sv_track_kind_name(s->trace->dict->tracks[info->track].kind);
    sv_buf_init(&name, 1u << 20);
    sv_row_name(s->rows, row, &name);
    sv_json_begin(j, '{');
    sv_json_put(j, "id", u64, row);
    sv_json_put(j, "name", text, sv_buf_cstr(&name), name.len);
    sv_json_put(j, "group", u64, info->group);
    sv_json_put(j, "depth", u64, info->depth);
    sv_json_put(j, "lines", u64, info->lines);
    if (s->about.is_compared)
        sv_json_put(j, "side", u64, s->trace->dict->tracks[info->track].space);
    sv_json_put(j, "track", cstr, track);
    if (lanes)
        sv_json_put(j, "lanes", text, (const char *)lanes->data, lanes->len);
    if (info->lines)
        put_slice_row(j, s, row, lanes != NULL);
    else
        put_counter_row(j, s, row);
    sv_json_end(j);
    sv_buf_fini(&name);
}

/* Lanes of one kind are neighbours. */
static void put_rows(struct sv_json *j, const struct sv_shown *s)
{
    struct sv_buf stem;
    bool *is_shown = sv_alloc(s->rows->n + 1);
    sv_buf_init(&stem, 1u << 20);
    for (size_t i = 0; i < s->rows->n; i++)
        is_shown[i] = s->rows->items[i].lines > 0 && sv_strips_count(s->strips, i) > 0;
    sv_json_begin(j, '[');
    for (size_t i = 0, end, n; i < s->rows->n; i = end) {
        end = sv_lanes_end(s->rows, is_shown, i, &stem, &n);
        for (size_t row = i; row < end; row++)
            put_row(j, s, row, n > 1 && is_shown[row] ? &stem : NULL);
    }
    sv_json_end(j);
    sv_buf_fini(&stem);
    free(is_shown);
}

static void put_losses(struct sv_json *j, const struct sv_shown *s)
{
    const struct sv_losses *l = &s->trace->losses;
    sv_json_begin(j, '[');
    for (uint64_t i = 0; i < l->n && i < LOSSES_MAX; i++) {
        sv_json_begin(j, '{');
        PUT_INT(j, "ts", l->ts_ns[i]);
        PUT_INT(j, "dur", l->dur_ns[i]);
        sv_json_put(j, "count", u64_text, l->count[i]);
        sv_json_put(j, "cause", str, s->trace->dict, l->cause[i]);
        if (sv_trace_has_track(s->trace, l->track[i]) &&
            s->rows->row_of_track[l->track[i]] != SV_NO_ROW) {
            sv_json_put(j, "row", u64, s->rows->row_of_track[l->track[i]]);
        }
        sv_json_end(j);
    }
    sv_json_end(j);
}

static void put_note(struct sv_json *j, const char *fmt, unsigned long long n)
{
    char text[200];
    int len = snprintf(text, sizeof text, "%llu ", n);
    snprintf(text + len, sizeof text - (size_t)len, "%s", fmt);
    sv_json_cstr(j, text);
}

static void put_notes(struct sv_json *j, const struct sv_shown *s)
{
    const struct sv_report *r = s->about.report;
    const struct sv_trace *t = s->trace;
    sv_json_begin(j, '[');
    for (size_t i = 0; r && i < r->n; i++)
        if (r->rows[i].severity != SV_NOTE)
            put_note(j, r->rows[i].what, (unsigned long long)r->rows[i].count);
    if (s->about.is_tail) {
        static const char tail[] = "while the recording runs only its end is read; all of it is "
                                   "shown when it has ended";
        sv_json_text(j, tail, sizeof tail - 1);
    }
    if (t->unfinished)
        put_note(j, "slices never ended", (unsigned long long)t->unfinished);
    if (t->unmatched_ends)
        put_note(j, "ends without a beginning", (unsigned long long)t->unmatched_ends);
    if (t->losses.n > LOSSES_MAX)
        put_note(j, "records of lost events; the first 2000 are shown",
                 (unsigned long long)t->losses.n);
    sv_json_end(j);
}

/* Where nearly everything happens, if that is less than half of the time: shown first. */
static void put_active(struct sv_json *j, const struct sv_shown *s)
{
    struct sv_activity a;
    if (s->about.is_live || s->about.is_tail || !sv_activity_find(s->trace, &a))
        return;
    sv_json_put(j, "active", begin, '[');
    sv_json_i64_text(j, a.from_ns);
    sv_json_i64_text(j, a.to_ns);
    sv_json_u64_text(j, a.n_outside);
    sv_json_end(j);
}

/* What the colours of states mean, where the trace has states. */
static void put_legend(struct sv_json *j, const struct sv_shown *s)
{
    if (!s->colors.of_state)
        return;
    sv_json_put(j, "states", begin, '[');
    for (const struct sv_color_legend *l = sv_color_of_states; l->name; l++) {
        sv_json_begin(j, '{');
        sv_json_put(j, "name", cstr, l->name);
        sv_json_put(j, "colour", u64, l->color);
        sv_json_end(j);
    }
    sv_json_end(j);
}

/* The groups that are gathered, by what with. */
static void put_gathered(struct sv_json *j, const struct sv_shown *s, const struct sv_row_order *o)
{
    sv_json_put(j, "gather", begin, '{');
    for (unsigned kind = SV_GATHER_NOT + 1; kind < SV_N_GATHERS; kind++) {
        sv_json_key(j, gather_words[kind], strlen(gather_words[kind]));
        sv_json_begin(j, '[');
        for (size_t i = 0; i < s->rows->n; i++)
            if (o->gather[i] == kind &&
                (i == 0 || s->rows->items[i].group != s->rows->items[i - 1].group))
                sv_json_u64(j, s->rows->items[i].group);
        sv_json_end(j);
    }
    sv_json_end(j);
}

/* /api/order: the rows, those of the body first. */
void sv_answer_order(struct sv_shown *s, const struct sv_web_request *q, struct sv_web_answer *a)
{
    struct sv_ask ask;
    struct sv_json j;
    if (sv_ask_read(&ask, s, q, a)) {
        struct sv_row_order order;
        uint32_t *first = sv_alloc((ask.n_rows + 1) * sizeof *first);
        for (size_t i = 0; i < ask.n_rows; i++)
            first[i] = ask.rows[i].row;
        sv_row_order_make(&order, s->rows, s->strips, first, ask.n_rows);
        sv_json_init(&j, &a->body);
        sv_json_begin(&j, '{');
        sv_json_put(&j, "rows", begin, '[');
        for (size_t i = 0; i < s->rows->n; i++)
            sv_json_u64(&j, order.rows[i]);
        sv_json_end(&j);
        put_gathered(&j, s, &order);
        sv_json_end(&j);
        sv_row_order_fini(&order);
        free(first);
    }
    sv_ask_fini(&ask);
}

void sv_answer_trace(struct sv_shown *s, const struct sv_web_request *q, struct sv_web_answer *a)
{
    const struct sv_trace *t = s->trace;
    struct sv_json j;
    (void)q;
    sv_json_init(&j, &a->body);
    sv_json_begin(&j, '{');
    sv_json_put(&j, "version", u64, 1);
    sv_json_put(&j, "state", text, "ready", 5);
    sv_json_put(&j, "generation", u64, s->generation);
    sv_json_put(&j, "live", bool, s->about.is_live);
    sv_json_put(&j, "compared", bool, s->about.is_compared);
    sv_viewer_put_name(&j, s->viewer);
    PUT_INT(&j, "first", s->about.is_tail ? s->about.began_ns : t->first_ns);
    PUT_INT(&j, "last", t->last_ns);
    put_active(&j, s);
    put_legend(&j, s);
    sv_json_put(&j, "slices", u64, t->slices.n);
    sv_json_put(&j, "counters", u64, t->counters.n);
    sv_json_put(&j, "flows", u64, t->flows.n);
    sv_json_lit(&j, "pages");
    sv_pages_put_json(&j, s->pages);
    sv_json_lit(&j, "groups");
    put_groups(&j, s);
    sv_json_lit(&j, "rows");
    put_rows(&j, s);
    sv_json_lit(&j, "losses");
    put_losses(&j, s);
    sv_json_lit(&j, "notes");
    put_notes(&j, s);
    sv_json_end(&j);
}
