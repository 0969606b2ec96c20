/* /api/path: the critical path of a slice, or of what ends last within an area. */
#include "view/answers.h"

#include "why/critical_path.h"

#define PIECES_MAX 10000u

/* ---- what an area is about ---- */

struct last {
    sv_track track;
    int64_t end_ns;
    bool is_below; /* a row of states or calls */
};

static bool is_below_thread(const struct sv_shown *s, sv_track track)
{
    uint32_t thread = s->states.n ? sv_thread_of(&s->states, track) : SV_NO_THREAD;
    return thread != SV_NO_THREAD && s->states.threads[thread].track != track;
}

/* Until when the last slice that begins before to_ns, or one around it, lasts; at most to_ns. */
static int64_t busy_until(const struct sv_trace *t, sv_track track, int64_t to_ns)
{
    uint32_t row = sv_trace_row_from(t, track, to_ns);
    int64_t last = INT64_MIN;
    if (row == t->tracks[track].first)
        return last;
    for (row--; row != SV_NO_ROW; row = t->slices.parent[row]) {
        int64_t end = sv_trace_end_ns(t, row);
        last = end > last ? end : last;
    }
    return last < to_ns ? last : to_ns;
}

static void look_at(const struct sv_shown *s, const struct sv_ask *ask, sv_track track,
                    struct last *best)
{
    struct last x = {track, busy_until(s->trace, track, ask->to_ns), is_below_thread(s, track)};
    if (x.end_ns <= ask->from_ns || (best->track && x.is_below && !best->is_below))
        return;
    if (!best->track || (best->is_below && !x.is_below) || x.end_ns > best->end_ns)
        *best = x;
}

static struct last last_of_area(const struct sv_shown *s, const struct sv_ask *ask)
{
    struct last best = {0};
    for (size_t i = 0; i < ask->n_rows; i++) {
        const struct sv_row_info *row = &s->rows->items[ask->rows[i].row];
        for (size_t m = 0; row->lines && m < row->n_members; m++)
            look_at(s, ask, s->rows->members[row->first_member + m].track, &best);
    }
    return best;
}

/* ---- the answer ---- */

/* The row of a track, or of what is known of its thread. */
static uint32_t row_of(const struct sv_shown *s, sv_track track)
{
    uint32_t thread = s->states.n ? sv_thread_of(&s->states, track) : SV_NO_THREAD;
    uint32_t row = s->rows->row_of_track[track];
    if (row != SV_NO_ROW || thread == SV_NO_THREAD)
        return row;
    const struct sv_thread_rows *x = &s->states.threads[thread];
    const sv_track others[] = {x->state, x->calls};
    for (size_t i = 0; i < 2 && row == SV_NO_ROW; i++)
        row = others[i] ? s->rows->row_of_track[others[i]] : SV_NO_ROW;
    return row;
}

static unsigned color_of(const struct sv_segment *p)
{
    if (p->kind == SV_SEGMENT_IDLE)
        return sv_color_of_state("");
    if (p->kind == SV_SEGMENT_RUN)
        return sv_color_of_state("Running");
    /* Along a flow, it waits for the one that the flow comes from. */
    return sv_color_of_state(p->reason ? sv_wait_reason_name(p->reason) : "data");
}

static void put_row(struct sv_json *j, const struct sv_shown *s, const struct sv_segment *p)
{
    bool has_slice = p->row != SV_NO_ROW;
    uint32_t row = has_slice ? s->rows->row_of_track[s->trace->slices.track[p->row]]
                             : row_of(s, p->track),
             of_thread = row_of(s, p->track);
    struct sv_buf name;
    sv_json_lit(j, "row");
    if (row == SV_NO_ROW) {
        sv_json_null(j);
        return;
    }
    sv_json_u64(j, row);
    sv_json_put(j, "line", u64, has_slice ? sv_track_rows_line(s->rows, p->row) : 0);
    sv_buf_init(&name, 1u << 20);
    sv_row_name(s->rows, of_thread != SV_NO_ROW ? of_thread : row, &name);
    sv_json_put(j, "thread", text, sv_buf_cstr(&name), name.len);
    sv_buf_clear(&name);
    sv_group_name(s->trace->dict, s->rows->items[row].group, &name);
    sv_json_put(j, "process", text, sv_buf_cstr(&name), name.len);
    sv_buf_fini(&name);
}

static void put_piece(struct sv_json *j, const struct sv_shown *s, const struct sv_segment *p)
{
    static const char *const kinds[] = {"run", "wait", "idle"};
    bool has_slice = p->row != SV_NO_ROW;
    sv_json_begin(j, '{');
    sv_json_put(j, "ts", i64_text, p->ts_ns);
    sv_json_put(j, "dur", i64_text, p->dur_ns);
    sv_json_put(j, "kind", cstr, kinds[p->kind]);
    sv_json_put(j, "for", cstr, p->reason ? sv_wait_reason_name(p->reason) : "");
    sv_json_put(j, "what", cstr, p->reason ? sv_wait_reason_what(p->reason) : "");
    sv_json_put(j, "via", cstr, p->by_flow ? "flow" : p->by_waker ? "waker" : "");
    sv_json_put(j, "name", str, s->trace->dict, has_slice ? s->trace->slices.name[p->row] : 0);
    sv_json_lit(j, "slice");
    if (has_slice)
        sv_json_u64(j, p->row);
    else
        sv_json_null(j);
    put_row(j, s, p);
    sv_json_put(j, "colour", u64, color_of(p));
    sv_json_end(j);
}

static void put_path(struct sv_json *j, const struct sv_shown *s, sv_track track, int64_t from_ns,
                     int64_t to_ns)
{
    struct sv_path path = {0};
    if (track)
        sv_critical_path_of(&path, s->trace, track, from_ns, to_ns, PIECES_MAX);
    sv_json_begin(j, '{');
    sv_json_put(j, "from", i64_text, from_ns);
    sv_json_put(j, "to", i64_text, to_ns);
    sv_json_put(j, "more", bool, path.n >= PIECES_MAX && path.segments[0].ts_ns > from_ns);
    sv_json_put(j, "pieces", begin, '[');
    for (size_t i = 0; i < path.n; i++)
        put_piece(j, s, &path.segments[i]);
    sv_json_end(j);
    sv_json_end(j);
    sv_path_fini(&path);
}

static void answer_area(struct sv_shown *s, const struct sv_web_request *q, struct sv_web_answer *a)
{
    struct sv_ask ask;
    struct sv_json j;
    bool is_read = sv_ask_read(&ask, s, q, a);
    if (is_read && (!ask.has_from || !ask.has_to || ask.to_ns <= ask.from_ns)) {
        sv_web_error(a, 400, "expected from, to and rows");
    } else if (is_read) {
        if (ask.from_ns < s->trace->first_ns) /* nothing was before, and times can be subtracted */
            ask.from_ns = s->trace->first_ns;
        struct last last = last_of_area(s, &ask);
        sv_json_init(&j, &a->body);
        put_path(&j, s, last.track, ask.from_ns, last.track ? last.end_ns : ask.to_ns);
    }
    sv_ask_fini(&ask);
}

void sv_answer_path(struct sv_shown *s, const struct sv_web_request *q, struct sv_web_answer *a)
{
    struct sv_json j;
    uint32_t slice;
    if (q->is_post) {
        answer_area(s, q, a);
    } else if (sv_ask_slice(s, q, a, &slice)) {
        sv_json_init(&j, &a->body);
        put_path(&j, s, s->trace->slices.track[slice], s->trace->slices.ts_ns[slice],
                 sv_trace_end_ns(s->trace, slice));
    }
}
