/* Perfetto writer: the long way, which writes every kind of event with all that belongs to it.
 *
 * Called for each event that has no shape (core/perfetto/write_shape.c). The order is fixed: the
 * track is prepared, its sequence found, then the event is built aside (strings that the sequence
 * has not interned are collected in w->interned), then the packet is written. Times are deltas on
 * the sequence's clock; an event that goes back in time is written on the trace clock instead.
 *
 * Flows. Perfetto knows three kinds of binding and keeps the numbers of the old kind (phases s, t,
 * f) apart from the others. A flow that was begun explicitly uses bind_id with a direction, because
 * its ends leave it open and it can fan out; one that just passes uses flow_ids, and
 * terminating_flow_ids close it. A number that begins anew while Perfetto still knows it gets
 * another number, or the two flows would become one. */
#include "core/perfetto/write.h"
#include "core/stream/frame_text.h"

/* What an event carries beside its annotations, collected in one pass. */
struct extras {
    bool has_correlation, has_source, has_stack, has_thread_time, has_thread_dur;
    int64_t thread_time, thread_dur;
    uint64_t bind_id;
    unsigned bind_direction; /* 0: none */
};

/* ---- flows ---- */

enum {
    FLOW_EXPLICIT = 1,
    FLOW_GENERATION = 2
}; /* value in the map: generation in the upper bits */

/* The number under which a flow is written. */
static uint64_t flow_wire(uint64_t flow, uint64_t use)
{
    return flow + use / FLOW_GENERATION * 0x9e3779b97f4a7c15u;
}

static uint64_t *flow_use(struct pf *w, uint64_t flow, bool *is_new)
{
    uint64_t *use = sv_map_find(&w->flows, flow);
    *is_new = use == NULL;
    if (use)
        return use;
    if (w->flows.n >= PF_FLOWS_MAX) {
        sv_map_clear(&w->flows);
        w->flows_forgotten = true;
    }
    return sv_map_add(&w->flows, flow, is_new);
}

/* A begin: the same number once more is another flow. */
static uint64_t flow_begin(struct pf *w, uint64_t flow)
{
    bool is_new;
    uint64_t *use = flow_use(w, flow, &is_new);
    if (!is_new)
        *use += FLOW_GENERATION;
    *use |= FLOW_EXPLICIT;
    return flow_wire(flow, *use);
}

static uint64_t flow_pass(struct pf *w, uint64_t flow, bool *is_new, bool *is_explicit)
{
    uint64_t *use = flow_use(w, flow, is_new);
    *is_explicit = *use & FLOW_EXPLICIT;
    return flow_wire(flow, *use);
}

static void flow_arg(struct pf *w, const struct sv_arg *a, struct extras *x)
{
    struct sv_buf *b = &w->event;
    bool is_new, is_explicit;
    uint64_t id;
    if (a->type == SV_ARG_FLOW_BEGIN) {
        id = flow_begin(w, a->u);
        if (x->bind_direction) {
            sv_put_fixed64(b, SV_PF_EVENT_FLOW_IDS, id);
        } else {
            x->bind_direction = SV_PF_FLOW_OUT;
            x->bind_id = id;
        }
        return;
    }
    id = flow_pass(w, a->u, &is_new, &is_explicit);
    if (a->type == SV_ARG_FLOW) {
        sv_put_fixed64(b, SV_PF_EVENT_FLOW_IDS, id);
    } else if (!is_explicit || x->bind_direction == SV_PF_FLOW_IN) {
        sv_put_fixed64(b, SV_PF_EVENT_END_FLOW_IDS, id);
    } else {
        /* A begin can be in flow_ids as well, an end cannot. */
        if (x->bind_direction == SV_PF_FLOW_OUT)
            sv_put_fixed64(b, SV_PF_EVENT_FLOW_IDS, x->bind_id);
        x->bind_direction = SV_PF_FLOW_IN;
        x->bind_id = id;
    }
}

/* ---- arguments with a meaning of their own ---- */

static void source_arg(struct pf *w, struct pf_sequence *s, const struct sv_arg *a,
                       const struct sv_arg *end)
{
    struct sv_buf *b = &w->scratch;
    sv_buf_clear(b);
    for (const struct sv_arg *m = a + 1; m < end && m <= a + a->size; m = sv_arg_next(m)) {
        struct sv_text key = sv_dict_text(w->dict, m->key);
        if (m->type == SV_ARG_TEXT && strcmp(key.bytes, "file") == 0)
            sv_put_text(b, SV_PF_SOURCE_FILE, m->text, m->size);
        else if (m->type == SV_ARG_TEXT && strcmp(key.bytes, "function") == 0)
            sv_put_text(b, SV_PF_SOURCE_FUNCTION, m->text, m->size);
        else if (m->type == SV_ARG_INT && strcmp(key.bytes, "line") == 0)
            sv_put_u64(b, SV_PF_SOURCE_LINE, (uint32_t)m->i);
    }
    sv_put_u64(&w->event, SV_PF_EVENT_SOURCE_LOCATION_IID, pf_number_source(w, s, b));
}

enum { PLACED_MAX = 400 }; /* bytes of a function or a file, where a frame has both */

static void stack_arg(struct pf *w, const struct sv_arg *a, const struct sv_arg *end)
{
    struct sv_buf *b = &w->event;
    size_t stack = sv_put_begin(b, SV_PF_EVENT_CALLSTACK);
    for (const struct sv_arg *m = a + 1; m < end && m <= a + a->size; m = sv_arg_next(m)) {
        if (m->type != SV_ARG_TEXT)
            continue;
        size_t frame = sv_put_begin(b, SV_PF_INLINE_FRAMES);
        struct sv_frame_parts p = sv_frame_parts(m->text, m->size);
        if (p.function_len > PLACED_MAX || p.file_len > PLACED_MAX) /* readers would cut them */
            p = (struct sv_frame_parts){.function_len = m->size};
        sv_put_text(b, SV_PF_INLINE_FUNCTION, m->text, p.function_len);
        if (p.file_len)
            sv_put_text(b, SV_PF_INLINE_FILE, m->text + p.file_at, p.file_len);
        if (p.line)
            sv_put_u64(b, SV_PF_INLINE_LINE, p.line);
        sv_put_end(b, frame);
    }
    sv_put_end(b, stack);
}

/* Perfetto has one place for each of these in an event. */
static bool takes_place(struct pf *w, bool *is_taken, const char *what)
{
    if (*is_taken)
        sv_report_add(w->report, SV_SKIPPED, what, 1, SV_NO_POS, NULL);
    bool is_free = !*is_taken;
    *is_taken = true;
    return is_free;
}

static void correlation_arg(struct pf *w, uint64_t number)
{
    sv_put_u64(&w->event, SV_PF_EVENT_CORRELATION_ID, number);
    if (!w->names_stages)
        return;
    size_t mark = sv_put_begin(&w->event, SV_PF_EVENT_GPU_CORRELATION);
    sv_put_u64(&w->event, SV_PF_GPU_SUBMISSION_IDS, number);
    sv_put_end(&w->event, mark);
}

static void argument(struct pf *w, struct pf_sequence *s, const struct sv_arg *a,
                     const struct sv_arg *end, struct extras *x)
{
    switch (a->type) {
    case SV_ARG_FLOW_BEGIN:
    case SV_ARG_FLOW:
    case SV_ARG_FLOW_END: flow_arg(w, a, x); break;
    case SV_ARG_CORRELATION:
        if (takes_place(w, &x->has_correlation, "second correlation id of an event"))
            correlation_arg(w, a->u);
        break;
    case SV_ARG_SOURCE:
        if (takes_place(w, &x->has_source, "second source location of an event"))
            source_arg(w, s, a, end);
        break;
    case SV_ARG_STACK:
        if (takes_place(w, &x->has_stack, "second stack of an event"))
            stack_arg(w, a, end);
        break;
    case SV_ARG_THREAD_TIME:
        x->has_thread_time = true;
        x->thread_time = a->i;
        break;
    case SV_ARG_THREAD_DUR:
        x->has_thread_dur = true;
        x->thread_dur = a->i;
        break;
    default: pf_annotation(w, s, a, end); break;
    }
}

static void arguments(struct pf *w, struct pf_sequence *s, const struct sv_event *e, size_t first,
                      struct extras *x)
{
    if (e->n_args == 0) /* args may be NULL */
        return;
    const struct sv_arg *end = e->args + e->n_args;
    for (const struct sv_arg *a = e->args + first; a < end; a = sv_arg_next(a))
        argument(w, s, a, end, x);
}

/* ---- thread time ---- */

static void thread_end_push(struct pf_track *t, int64_t ns)
{
    if (t->n_ends == t->cap_ends) {
        if (t->cap_ends > UINT16_MAX / 2)
            return;
        t->cap_ends = t->cap_ends ? (uint16_t)(t->cap_ends * 2) : 8;
        t->ends = sv_realloc(t->ends, t->cap_ends * sizeof *t->ends);
    }
    t->ends[t->n_ends++] = (struct pf_thread_end){.depth = t->depth + 1, .ns = ns};
}

/* Slices carry time and duration at their begin; the end gets the sum. */
static void thread_time(struct pf *w, struct pf_sequence *s, const struct sv_event *e,
                        struct extras *x)
{
    struct pf_track *t = pf_track_of(w, e->track);
    if (e->kind == SV_END && t->n_ends && t->ends[t->n_ends - 1].depth == t->depth) {
        int64_t ns = t->ends[--t->n_ends].ns;
        x->thread_time = x->has_thread_time ? x->thread_time : ns;
        x->has_thread_time = true;
    }
    if (x->has_thread_time && e->track) {
        uint64_t uuid = pf_thread_time(w, s, e->track);
        if (!s->track)
            sv_put_u64(&w->event, SV_PF_EVENT_EXTRA_COUNTER_UUIDS, uuid);
        sv_put_i64(&w->event, SV_PF_EVENT_EXTRA_COUNTER_VALUES, x->thread_time);
        if (e->kind == SV_BEGIN && x->has_thread_dur)
            thread_end_push(t, x->thread_time + x->thread_dur);
    } else if (x->has_thread_dur) {
        pf_annotation_i64(w, s, w->thread_dur, x->thread_dur);
    }
}

/* ---- kinds ---- */

static void names(struct pf *w, struct pf_sequence *s, const struct sv_event *e)
{
    if (e->name)
        sv_put_u64(&w->event, SV_PF_EVENT_NAME_IID, pf_number(w, s, PF_NAME, e->name));
    if (e->cat)
        sv_put_u64(&w->event, SV_PF_EVENT_CATEGORY_IIDS, pf_number(w, s, PF_CATEGORY, e->cat));
}

static unsigned scope_of(const struct sv_event *e)
{
    return e->kind != SV_INSTANT         ? 0
           : e->flags & SV_SCOPE_GLOBAL  ? SV_PF_SCOPE_GLOBAL
           : e->flags & SV_SCOPE_PROCESS ? SV_PF_SCOPE_PROCESS
                                         : 0;
}

/* Perfetto heeds a scope only beside a phase, and refuses that of a process where it knows none. */
static bool has_phase(const struct pf *w, const struct sv_event *e)
{
    unsigned scope = scope_of(e);
    return scope == SV_PF_SCOPE_GLOBAL ||
           (scope == SV_PF_SCOPE_PROCESS && sv_dict_process_of(w->dict, e->track));
}

static void legacy(struct pf *w, const struct sv_event *e, const struct extras *x)
{
    struct sv_buf *b = &w->event;
    unsigned scope = scope_of(e);
    if (!scope && !x->bind_direction)
        return;
    size_t mark = sv_put_begin(b, SV_PF_EVENT_LEGACY_EVENT);
    if (has_phase(w, e))
        sv_put_u64(b, SV_PF_LEGACY_PHASE, 'I');
    if (x->bind_direction) {
        sv_put_u64(b, SV_PF_LEGACY_BIND_ID, x->bind_id);
        sv_put_u64(b, SV_PF_LEGACY_FLOW_DIRECTION, x->bind_direction);
    }
    if (scope)
        sv_put_u64(b, SV_PF_LEGACY_INSTANT_SCOPE, scope);
    sv_put_end(b, mark);
}

static void slice_or_instant(struct pf *w, struct pf_sequence *s, const struct sv_event *e,
                             unsigned type, bool with_args)
{
    struct extras x = {0};
    if (!has_phase(w, e))
        sv_put_u64(&w->event, SV_PF_EVENT_TYPE, type);
    if (e->kind !=
        SV_END) /* it closes the newest, whatever its name: Perfetto would look for that name */
        names(w, s, e);
    if (with_args)
        arguments(w, s, e, 0, &x);
    thread_time(w, s, e, &x);
    legacy(w, e, &x);
}

static bool counter(struct pf *w, struct pf_sequence *s, const struct sv_event *e, bool with_args)
{
    struct extras x = {0};
    if (e->n_args == 0 || e->track == 0 || w->dict->tracks[e->track].kind != SV_TRACK_COUNTER) {
        sv_report_add(w->report, SV_SKIPPED, "counter event without value or counter track", 1,
                      SV_NO_POS, NULL);
        return false;
    }
    sv_put_u64(&w->event, SV_PF_EVENT_TYPE, SV_PF_TYPE_COUNTER);
    if (e->args[0].type == SV_ARG_DOUBLE)
        sv_put_double(&w->event, SV_PF_EVENT_DOUBLE_COUNTER_VALUE, e->args[0].d);
    else if (e->args[0].type == SV_ARG_UINT)
        sv_put_double(&w->event, SV_PF_EVENT_DOUBLE_COUNTER_VALUE, (double)e->args[0].u);
    else
        sv_put_i64(&w->event, SV_PF_EVENT_COUNTER_VALUE, e->args[0].i);
    if (with_args)
        arguments(w, s, e, 1, &x);
    return true;
}

static bool flow_point(struct pf *w, struct pf_sequence *s, const struct sv_event *e,
                       bool with_args)
{
    struct extras x = {0};
    unsigned type = e->n_args ? e->args[0].type : 0;
    bool is_new = false, is_explicit;
    if (type < SV_ARG_FLOW_BEGIN || type > SV_ARG_FLOW_END) {
        sv_report_add(w->report, SV_SKIPPED, "flow point without a flow", 1, SV_NO_POS, NULL);
        return false;
    }
    uint64_t flow = e->args[0].u;
    /* A start outside of every slice starts nothing: the number stays with the flow that it
     * belonged to. */
    bool begins = type == SV_ARG_FLOW_BEGIN && pf_track_of(w, e->track)->depth > 0;
    uint64_t id = begins ? flow_begin(w, flow) : flow_pass(w, flow, &is_new, &is_explicit);
    /* Perfetto wants a start before a step; the model takes the first step for one. */
    bool starts = type == SV_ARG_FLOW_BEGIN ||
                  (type == SV_ARG_FLOW && is_new && !w->flows_forgotten);
    bool binds_next = e->flags & SV_BIND_NEXT;
    names(w, s, e);
    if (with_args)
        arguments(w, s, e, 1, &x);
    size_t mark = sv_put_begin(&w->event, SV_PF_EVENT_LEGACY_EVENT);
    sv_put_u64(&w->event, SV_PF_LEGACY_PHASE, starts ? 's' : type == SV_ARG_FLOW ? 't' : 'f');
    sv_put_u64(&w->event, SV_PF_LEGACY_UNSCOPED_ID, id);
    if (type == SV_ARG_FLOW_END && !binds_next)
        sv_put_u64(&w->event, SV_PF_LEGACY_BIND_TO_ENCLOSING, 1);
    sv_put_end(&w->event, mark);
    return true;
}

static void loss(struct pf *w, struct pf_sequence *s, const struct sv_event *e, bool with_args)
{
    struct extras x = {0};
    sv_put_u64(&w->event, SV_PF_EVENT_TYPE, SV_PF_TYPE_INSTANT);
    sv_put_u64(&w->event, SV_PF_EVENT_CATEGORY_IIDS,
               pf_number(w, s, PF_CATEGORY, w->loss_category));
    names(w, s, e); /* a category of its own comes second */
    pf_annotation_i64(w, s, w->loss_count, e->n_args ? e->args[0].i : 0);
    if (e->dur_ns)
        pf_annotation_i64(w, s, w->loss_span, e->dur_ns);
    if (with_args)
        arguments(w, s, e, 1, &x);
}

/* False: there is nothing to write. */
static bool build(struct pf *w, struct pf_sequence *s, const struct sv_event *e, bool with_args)
{
    sv_buf_clear(&w->event);
    if (!s->track && e->track)
        sv_put_u64(&w->event, SV_PF_EVENT_TRACK_UUID, w->dict->tracks[e->track].uuid);
    switch (e->kind) {
    case SV_BEGIN: slice_or_instant(w, s, e, SV_PF_TYPE_BEGIN, with_args); return true;
    case SV_END: slice_or_instant(w, s, e, SV_PF_TYPE_END, with_args); return true;
    case SV_INSTANT: slice_or_instant(w, s, e, SV_PF_TYPE_INSTANT, with_args); return true;
    case SV_COUNTER: return counter(w, s, e, with_args);
    case SV_FLOW: return flow_point(w, s, e, with_args);
    case SV_LOSS: loss(w, s, e, with_args); return true;
    default: return false;
    }
}

/* ---- the packet ---- */

/* Sets the head's time; a step back is written on the trace clock and does not change the
 * sequence's clock. */
static void time_put(struct pf *w, struct pf_sequence *s, int64_t ts_ns, bool is_absolute,
                     struct sv_buf *head)
{
    if (is_absolute || ts_ns < s->last_ns) {
        sv_put_u64(head, SV_PF_PACKET_TIMESTAMP, pf_wire_ns(w, ts_ns));
        sv_put_u64(head, SV_PF_PACKET_CLOCK_ID, w->wire_clock);
        return;
    }
    sv_put_u64(head, SV_PF_PACKET_TIMESTAMP, (uint64_t)ts_ns - (uint64_t)s->last_ns);
    s->last_ns = ts_ns;
}

/* The packet of the event also reports the loss and restarts the sequence. */
static void loss_put(struct pf *w, struct pf_sequence *s, struct sv_buf *head)
{
    w->n_losses++;
    pf_bits_set(&w->sequence_lost, s->id);
    sv_put_u64(head, SV_PF_PACKET_SEQUENCE_FLAGS, SV_PF_SEQ_CLEARED);
    sv_put_u64(head, SV_PF_PACKET_PREVIOUS_DROPPED, 1);
    pf_sequence_defaults(w, s, head);
}

static void depth_count(struct pf_track *t, unsigned kind)
{
    if (kind == SV_BEGIN)
        t->depth++;
    else if (kind == SV_END && t->depth)
        t->depth--;
}

static void write_one(struct pf *w, const struct sv_event *e)
{
    uint8_t bytes[256];
    struct sv_buf head = {.data = bytes, .cap = sizeof bytes, .limit = sizeof bytes};
    bool is_loss = e->kind == SV_LOSS;
    if (e->ts_ns < w->origin_ns) /* shapes are not used for steps back: only here */
        pf_origin_lower(w, e->ts_ns);
    if (e->track)
        pf_track_prepare(w, e->track);
    struct pf_sequence *s = pf_sequence_for(w, e->track, e->ts_ns);
    sv_buf_clear(&w->interned);
    if (is_loss)
        pf_interned_clear(s);
    bool is_written = build(w, s, e, true);
    if (w->event.failed && !w->interned.failed) {
        sv_report_add(w->report, SV_SKIPPED, "arguments of an event too large for a packet",
                      e->n_args, SV_NO_POS, NULL);
        is_written = build(w, s, e, false);
    }
    depth_count(pf_track_of(w, e->track), e->kind);
    if (!is_written)
        return;
    if (w->event.failed || w->interned.failed) {
        s->window = 0; /* what it has interned is not in the file: restart it */
        sv_report_add(w->report, SV_SKIPPED, "event too large for a packet", 1, SV_NO_POS, NULL);
        return;
    }
    time_put(w, s, e->ts_ns, is_loss, &head);
    sv_buf_add(&head, s->head, s->head_len);
    if (is_loss)
        loss_put(w, s, &head);
    pf_packet(w, &head, &w->interned, SV_PF_PACKET_TRACK_EVENT, &w->event);
    if (is_loss) {
        sv_buf_clear(&head);
        sv_buf_add(&head, s->head, s->head_len);
        pf_sequence_anchor(w, s, &head, e->ts_ns);
    }
}

/* A whole slice as its edges; one that never ends has only the first. */
void pf_event_write(struct pf *w, const struct sv_event *e)
{
    if (e->kind != SV_SLICE) {
        write_one(w, e);
        return;
    }
    struct sv_event begin = *e, end = {.kind = SV_END, .track = e->track};
    begin.kind = SV_BEGIN;
    begin.dur_ns = 0;
    write_one(w, &begin);
    if (__builtin_add_overflow(e->ts_ns, e->dur_ns, &end.ts_ns))
        sv_report_add(w->report, SV_DAMAGE, "slice whose end is out of range", 1, SV_NO_POS,
                      "it stays without an end");
    else if (e->dur_ns >= 0)
        write_one(w, &end);
}
