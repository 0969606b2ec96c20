/* /api/slice and /api/near: one slice with all that belongs to it, and its neighbours. */
#include "view/answers.h"

#include "core/base/mem.h"
#include "core/chrome/args_json.h"
#include "stats/self.h"

#include <stdlib.h>

#define PARENTS_MAX 64
#define FLOWS_MAX   100u

/* ---- arguments ---- */

static const char *type_word(unsigned type)
{
    switch (type) {
    case SV_ARG_INT:
    case SV_ARG_UINT:
    case SV_ARG_CORRELATION: return "int";
    case SV_ARG_DOUBLE: return "real";
    case SV_ARG_BOOL: return "bool";
    case SV_ARG_TEXT: return "text";
    default: return "json";
    }
}

/* Values are JSON, in a string: numbers may be larger than JavaScript's. Texts are themselves. */
static void put_arg(struct sv_json *j, const struct sv_dict *d, const struct sv_arg *arg,
                    const struct sv_arg *end)
{
    struct sv_text key = sv_dict_text(d, arg->key);
    const char *type = type_word(arg->type);
    sv_json_begin(j, '{');
    sv_json_lit(j, "key");
    if (key.len)
        sv_json_text(j, key.bytes, key.len);
    else
        sv_json_text(j, sv_arg_type_name(arg->type), strlen(sv_arg_type_name(arg->type)));
    sv_json_put(j, "type", cstr, type);
    sv_json_lit(j, "value");
    if (arg->type == SV_ARG_TEXT) {
        sv_json_text(j, arg->text, arg->size);
    } else {
        struct sv_buf value;
        struct sv_json inner;
        sv_buf_init(&value, 1u << 22);
        sv_json_init(&inner, &value);
        sv_arg_json(&inner, d, arg, end);
        sv_json_text(j, sv_buf_cstr(&value), value.len);
        sv_buf_fini(&value);
    }
    sv_json_end(j);
}

void sv_put_args(struct sv_json *j, const struct sv_shown *s, uint32_t slice)
{
    struct sv_batch *scratch = sv_alloc(sizeof *scratch);
    size_t n;
    sv_batch_init(scratch);
    const struct sv_arg *args = sv_trace_args(s->trace, s->trace->slices.args[slice], scratch, &n);
    sv_json_begin(j, '[');
    for (const struct sv_arg *arg = args; args && arg < args + n; arg = sv_arg_next(arg))
        put_arg(j, s->trace->dict, arg, args + n);
    sv_json_end(j);
    sv_batch_fini(scratch);
    free(scratch);
}

/* ---- relations ---- */

static void put_parents(struct sv_json *j, const struct sv_shown *s, uint32_t slice)
{
    uint32_t at = s->trace->slices.parent[slice];
    sv_json_begin(j, '[');
    for (unsigned i = 0; at != SV_NO_ROW && i < PARENTS_MAX; i++) {
        sv_put_short(j, s, at);
        at = s->trace->slices.parent[at];
    }
    sv_json_end(j);
}

static void put_flow(struct sv_json *j, const struct sv_shown *s, uint64_t flow, uint32_t other)
{
    sv_json_begin(j, '{');
    sv_json_put(j, "flow", u64_text, s->trace->flows.id[flow]);
    sv_json_lit(j, "slice");
    sv_put_short(j, s, other);
    sv_json_end(j);
}

static void put_flows(struct sv_json *j, const struct sv_shown *s, uint32_t slice)
{
    const struct sv_flows *f = &s->trace->flows;
    uint64_t first, n = sv_trace_flows_in(s->trace, slice, &first);
    sv_json_put(j, "in", begin, '[');
    for (uint64_t i = 0; i < n && i < FLOWS_MAX; i++)
        put_flow(j, s, f->by_to[first + i], f->from[f->by_to[first + i]]);
    sv_json_end(j);
    sv_json_put(j, "more_in", u64, n > FLOWS_MAX ? n - FLOWS_MAX : 0);
    n = sv_trace_flows_out(s->trace, slice, &first);
    sv_json_put(j, "out", begin, '[');
    for (uint64_t i = 0; i < n && i < FLOWS_MAX; i++)
        put_flow(j, s, first + i, f->to[first + i]);
    sv_json_end(j);
    sv_json_put(j, "more_out", u64, n > FLOWS_MAX ? n - FLOWS_MAX : 0);
}

static void put_place(struct sv_json *j, const struct sv_shown *s, uint32_t slice)
{
    struct sv_buf name;
    sv_track track = s->trace->slices.track[slice];
    uint32_t row = s->rows->row_of_track[track];
    sv_track thread = sv_dict_thread_of(s->trace->dict, track); /* of states and calls, too */
    sv_buf_init(&name, 1u << 20);
    uint32_t own = thread ? s->rows->row_of_track[thread] : SV_NO_ROW;
    sv_row_name(s->rows, own != SV_NO_ROW ? own : row, &name);
    sv_json_put(j, "row", u64, row);
    sv_json_put(j, "line", u64, sv_track_rows_line(s->rows, slice));
    sv_json_put(j, "colour", u64, sv_color_number(&s->colors, slice));
    sv_json_put(j, "track", u64_text, track);
    sv_json_put(j, "thread", text, sv_buf_cstr(&name), name.len);
    sv_buf_clear(&name);
    sv_group_name(s->trace->dict, s->rows->items[row].group, &name);
    sv_json_put(j, "process", text, sv_buf_cstr(&name), name.len);
    sv_buf_fini(&name);
}

static void put_times(struct sv_json *j, const struct sv_shown *s, uint32_t slice)
{
    const struct sv_slices *c = &s->trace->slices;
    sv_json_put(j, "ts", i64_text, c->ts_ns[slice]);
    sv_json_put(j, "dur", i64_text, c->dur_ns[slice]);
    sv_json_put(j, "ends", i64_text, sv_trace_end_ns(s->trace, slice));
    sv_json_put(j, "self", i64_text, sv_self_time(s->trace, slice));
    sv_json_put(j, "unfinished", bool, c->dur_ns[slice] == SV_UNFINISHED);
    sv_json_put(j, "instant", bool, c->kind[slice] == SV_INSTANT);
}

void sv_answer_slice(struct sv_shown *s, const struct sv_web_request *q, struct sv_web_answer *a)
{
    const struct sv_slices *c = &s->trace->slices;
    struct sv_json j;
    uint32_t slice;
    if (!sv_ask_slice(s, q, a, &slice))
        return;
    sv_json_init(&j, &a->body);
    sv_json_begin(&j, '{');
    sv_json_put(&j, "slice", u64, slice);
    sv_json_put(&j, "id", u64_text, sv_viewer_id(s->viewer, slice));
    sv_json_put(&j, "name", str, s->trace->dict, c->name[slice]);
    sv_json_put(&j, "category", str, s->trace->dict, c->cat[slice]);
    put_times(&j, s, slice);
    put_place(&j, s, slice);
    sv_json_lit(&j, "args");
    sv_put_args(&j, s, slice);
    sv_json_lit(&j, "parents");
    put_parents(&j, s, slice);
    put_flows(&j, s, slice);
    sv_put_wait(&j, s, slice);
    sv_json_end(&j);
}

/* ---- neighbours ---- */

static bool comes_before(const struct sv_trace *t, uint32_t a, uint32_t b)
{
    const int64_t *ts = t->slices.ts_ns;
    return ts[a] != ts[b] ? ts[a] < ts[b] : a < b;
}

/* The first after `slice` in the order of time with its name; a track is left where it can bring
 * nothing nearer. */
static uint32_t next_of_name(const struct sv_trace *t, uint32_t slice)
{
    const struct sv_slices *c = &t->slices;
    uint32_t best = SV_NO_ROW;
    for (sv_track k = 0; k < t->n_tracks; k++) {
        uint32_t row = sv_trace_row_from(t, k, c->ts_ns[slice]), end = t->tracks[k].end;
        for (; row < end && (best == SV_NO_ROW || comes_before(t, row, best)); row++)
            if (c->name[row] == c->name[slice] && comes_before(t, slice, row)) {
                best = row;
                break;
            }
    }
    return best;
}

static uint32_t previous_of_name(const struct sv_trace *t, uint32_t slice)
{
    const struct sv_slices *c = &t->slices;
    uint32_t best = SV_NO_ROW;
    for (sv_track k = 0; k < t->n_tracks; k++) {
        uint32_t first = t->tracks[k].first, row = t->tracks[k].end;
        if (c->ts_ns[slice] < INT64_MAX)
            row = sv_trace_row_from(t, k, c->ts_ns[slice] + 1);
        for (; row > first && (best == SV_NO_ROW || comes_before(t, best, row - 1)); row--)
            if (c->name[row - 1] == c->name[slice] && comes_before(t, row - 1, slice)) {
                best = row - 1;
                break;
            }
    }
    return best;
}

static uint32_t near_on_line(const struct sv_shown *s, uint32_t slice, bool is_next)
{
    const struct sv_slices *c = &s->trace->slices;
    uint32_t row = s->rows->row_of_track[c->track[slice]];
    uint32_t line = sv_track_rows_line(s->rows, slice);
    uint32_t at = sv_strips_before(s->strips, row, c->ts_ns[slice]);
    while (sv_strips_slice(s->strips, row, at) != slice)
        at++;
    uint32_t found = is_next ? sv_strips_next_from(s->strips, row, line, at + 1)
                             : sv_strips_last_before(s->strips, row, line, at);
    return found == SV_NO_ROW ? found : sv_strips_slice(s->strips, row, found);
}

void sv_answer_near(struct sv_shown *s, const struct sv_web_request *q, struct sv_web_answer *a)
{
    struct sv_json j;
    uint32_t slice, found;
    const char *to = sv_web_param(q, "to"), *by = sv_web_param(q, "by");
    if (!sv_ask_slice(s, q, a, &slice))
        return;
    bool is_next = !to || strcmp(to, "previous") != 0;
    if (by && strcmp(by, "row") == 0)
        found = near_on_line(s, slice, is_next);
    else
        found = is_next ? next_of_name(s->trace, slice) : previous_of_name(s->trace, slice);
    sv_json_init(&j, &a->body);
    sv_json_begin(&j, '{');
    sv_json_lit(&j, "slice");
    if (found == SV_NO_ROW)
        sv_json_null(&j);
    else
        sv_put_short(&j, s, found);
    sv_json_end(&j);
}
