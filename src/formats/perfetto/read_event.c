/* TrackEvent: the payload of nearly every packet, so the hot loop of the reader.
 *
 * sv_pf_track_event() walks the message once: the usual fields into a struct, annotations and flows
 * at once into arguments of the batch. A message that has any other field is walked a second time
 * for those (read_rare). Then the event leaves by its type, or by its legacy phase
 * (formats/perfetto/read_legacy.c). Values of extra counters leave after the event that carried
 * them; thread time among them is an argument of the event instead. */
#include "core/perfetto/stave.h"
#include "formats/perfetto/read.h"

#include "core/base/mem.h"

#define EXTRAS_MAX 64

/* ---- where it happened ---- */

static struct sv_pf_track *track_slow(struct sv_pf *r, uint64_t uuid)
{
    struct sv_pf_track *t = sv_pf_track_at(r, uuid);
    r->seq->last_track = t;
    return t;
}

static inline struct sv_pf_track *track_with(struct sv_pf *r, uint64_t uuid)
{
    struct sv_pf_track *t = r->seq->last_track;
    return __builtin_expect(t && t->uuid == uuid && uuid != 0, 1) ? t : track_slow(r, uuid);
}

static struct sv_pf_track *track_without_uuid(struct sv_pf *r, const struct sv_pf_event_in *e)
{
    struct sv_pf_seq *seq = r->seq;
    bool may_use_thread = !e->has_track || e->type == SV_PF_TYPE_UNSPECIFIED;
    if (seq->has_thread && may_use_thread && seq->thread_track) {
        seq->last_track = seq->thread_track;
        return seq->thread_track;
    }
    return track_slow(r, 0);
}

static inline struct sv_pf_track *track_of(struct sv_pf *r, const struct sv_pf_event_in *e)
{
    uint64_t uuid = e->has_track                ? e->track_uuid
                    : r->seq->has_default_track ? r->seq->default_track
                                                : 0;
    return __builtin_expect(uuid != 0, 1) ? track_with(r, uuid) : track_without_uuid(r, e);
}

struct sv_pf_track *sv_pf_event_track(struct sv_pf *r, const struct sv_pf_event_in *e)
{
    return track_of(r, e);
}

/* ---- names ---- */

struct joined {
    char text[1024];
    size_t n;
};

static void join_category(struct joined *j, const char *bytes, size_t len)
{
    if (j->n > 0 && j->n < sizeof j->text && len > 0)
        j->text[j->n++] = ',';
    size_t more = len < sizeof j->text - j->n ? len : sizeof j->text - j->n;
    if (more > 0)
        memcpy(j->text + j->n, bytes, more);
    j->n += more;
}

static void join_category_iid(struct sv_pf *r, struct joined *j, uint64_t iid)
{
    struct sv_text t = sv_dict_text(r->dict, sv_pf_str(r, SV_PF_T_CATEGORY, iid));
    join_category(j, t.bytes, t.len);
}

static sv_str joined_categories(struct sv_pf *r, struct sv_pf_blob event)
{
    struct joined j = {.n = 0};
    struct sv_pb w = sv_pf_wire(event);
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        struct sv_pb packed = sv_pb_sub(&f);
        uint64_t iid;
        switch (sv_pf_tag(&f)) {
        case SV_PF_B(SV_PF_EVENT_CATEGORIES):
            join_category(&j, (const char *)f.bytes, (size_t)f.u);
            break;
        case SV_PF_V(SV_PF_EVENT_CATEGORY_IIDS): join_category_iid(r, &j, f.u); break;
        case SV_PF_B(SV_PF_EVENT_CATEGORY_IIDS):
            while (packed.p < packed.end && sv_pb_varint(&packed, &iid))
                join_category_iid(r, &j, iid);
            break;
        default: break;
        }
    }
    return sv_dict_str(r->dict, j.text, j.n);
}

/* ---- counters ---- */

void sv_pf_emit_counter(struct sv_pf *r, sv_track track, bool is_double, int64_t i, double d)
{
    sv_pf_ready(r);
    if (is_double)
        sv_pf_arg_double(r, 0, d);
    else
        sv_pf_arg_int(r, 0, i);
    sv_pf_emit(r, SV_COUNTER, track, 0);
}

/* The running value of an incremental counter; exact as long as it is made of integers. */
static struct sv_pf_counter_sum add_to_sum(struct sv_pf *r, uint64_t uuid,
                                           struct sv_pf_counter_sum delta)
{
    struct sv_pf_seq *seq = r->seq;
    bool is_new;
    uint64_t *slot = sv_map_add(&seq->sums, uuid, &is_new);
    if (is_new) {
        seq->sum = sv_grow(seq->sum, &seq->cap_sum, seq->n_sum + 1, sizeof *seq->sum);
        seq->sum[seq->n_sum] = (struct sv_pf_counter_sum){.is_double = delta.is_double};
        *slot = ++seq->n_sum;
    }
    struct sv_pf_counter_sum *s = &seq->sum[*slot - 1];
    int64_t sum;
    if (!s->is_double && !delta.is_double && !__builtin_add_overflow(s->i, delta.i, &sum)) {
        s->i = sum;
        return *s;
    }
    s->d = (s->is_double ? s->d : (double)s->i) + (delta.is_double ? delta.d : (double)delta.i);
    s->is_double = true;
    return *s;
}

static struct sv_pf_counter_sum absolute(struct sv_pf *r, const struct sv_pf_track *t,
                                         struct sv_pf_counter_sum value)
{
    return t->is_incremental ? add_to_sum(r, t->uuid, value) : value;
}

/* The track for counter values: one that was never described becomes a counter; a described one
 * that is not a counter gets a counter below it. */
static sv_track counter_track(struct sv_pf *r, struct sv_pf_track *t, sv_str name)
{
    struct sv_track_info *info = &r->dict->tracks[t->track];
    if (t->is_counter || info->kind == SV_TRACK_COUNTER) {
        if (name && !info->name) {
            info->name = name;
            sv_dict_touch(r->dict, t->track);
        }
        return t->track;
    }
    sv_pf_note(r, "counter value on a track that is not a counter", "uuid %llu; Perfetto drops it",
               (unsigned long long)t->uuid);
    if (t->is_described || t->uuid == 0)
        return sv_pf_counter(r, t->track, name ? name : r->str.value, NULL);
    info->kind = SV_TRACK_COUNTER;
    info->name = name;
    t->is_counter = true;
    sv_dict_touch(r->dict, t->track);
    return t->track;
}

/* The value is the first argument, but annotations may have come before it. */
static void emit_counter_event(struct sv_pf *r, const struct sv_pf_event_in *e,
                               struct sv_pf_track *t)
{
    if (!e->has_counter && !e->has_double_counter) {
        sv_pf_damage(r, "counter event without value", "dropped");
        sv_batch_drop_args(r->b);
        return;
    }
    struct sv_pf_counter_sum v = absolute(r, t,
                                          (struct sv_pf_counter_sum){.is_double = !e->has_counter,
                                                                     .i = e->counter_i,
                                                                     .d = e->counter_d});
    sv_track track = counter_track(r, t, e->name);
    sv_batch_arg(r->b);
    struct sv_arg *first = r->b->args;
    memmove(first + 1, first, (size_t)(r->b->arg - first - 1) * sizeof *first);
    *first = (struct sv_arg){.type = v.is_double ? SV_ARG_DOUBLE : SV_ARG_INT};
    if (v.is_double)
        first->d = v.d;
    else
        first->i = v.i;
    sv_pf_emit(r, SV_COUNTER, track, 0)->cat = e->cat;
}

/* ---- states ---- */

/* Every state ends the one before it. */
static void emit_state(struct sv_pf *r, const struct sv_pf_event_in *e, struct sv_pf_track *t)
{
    if (t->has_open_state) { /* without arguments: those at hand belong to the new state */
        struct sv_event *end = sv_batch_event(r->b);
        end->ts_ns = r->ts_ns;
        end->kind = SV_END;
        end->track = t->track;
    }
    t->has_open_state = e->name != 0;
    r->dict->tracks[t->track].is_state = true;
    if (e->name)
        sv_pf_emit(r, SV_BEGIN, t->track, e->name)->cat = e->cat;
    else
        sv_batch_drop_args(r->b);
}

/* ---- leaving ---- */

struct sv_event *sv_pf_emit_edge(struct sv_pf *r, const struct sv_pf_event_in *e, unsigned kind,
                                 struct sv_pf_track *t)
{
    if (__builtin_expect(e->has_thread_ns, 0))
        sv_pf_arg_special(r, SV_ARG_THREAD_TIME, (uint64_t)e->thread_ns);
    struct sv_event *out = sv_pf_emit(r, kind, t->track, e->name);
    out->cat = e->cat;
    return out;
}

void sv_pf_emit_loss(struct sv_pf *r, struct sv_pf_seq *seq, sv_track track)
{
    sv_pf_ready(r);
    sv_pf_arg_int(r, 0, (int64_t)seq->n_lost);
    struct sv_event *e = sv_pf_emit(r, SV_LOSS, track, r->str.loss);
    if (!r->copy_texts && seq->has_last && seq->last_ns < r->ts_ns) {
        e->ts_ns = seq->last_ns;
        if (!sv_event_until(e, r->ts_ns))
            e->dur_ns = INT64_MAX; /* no event: where the gap began is all that is known */
    }
    seq->has_loss = false;
    seq->n_lost = 0;
}

/* An instant in Stave's own category for what was lost: the first arguments are its count and
 * span. */
static void emit_recorded_loss(struct sv_pf *r, const struct sv_pf_event_in *e,
                               struct sv_pf_track *t)
{
    struct sv_arg *a = r->b->args;
    size_t n = (size_t)(r->b->arg - a), taken = 0;
    int64_t count = 0, span = 0;
    while (taken < n && a[taken].type == SV_ARG_INT && a[taken].key &&
           (a[taken].key == r->str.loss_count || a[taken].key == r->str.loss_span)) {
        *(a[taken].key == r->str.loss_count ? &count : &span) = a[taken].i;
        taken++;
    }
    if (taken == 0) {
        sv_batch_arg(r->b);
        n++;
        taken = 1;
        memmove(r->b->args + 1, r->b->args, (n - 1) * sizeof *a);
        a = r->b->args;
    }
    a[0] = (struct sv_arg){.type = SV_ARG_INT, .i = count};
    memmove(a + 1, a + taken, (n - taken) * sizeof *a);
    r->b->arg -= taken - 1;
    struct sv_event *out = sv_pf_emit(r, SV_LOSS, t->track, e->name);
    struct sv_text cat = sv_dict_text(r->dict, e->cat);
    size_t own = sizeof SV_PF_LOSS_CATEGORY - 1;
    out->cat = cat.len > own ? sv_dict_str(r->dict, cat.bytes + own + 1, cat.len - own - 1) : 0;
    sv_pf_lasts(r, out, span);
    r->seq->has_loss = false;
}

static bool is_recorded_loss(const struct sv_pf *r, const struct sv_pf_event_in *e)
{
    if (e->cat == r->str.loss_category)
        return true;
    struct sv_text cat = sv_dict_text(r->dict, e->cat);
    size_t own = sizeof SV_PF_LOSS_CATEGORY - 1;
    return cat.len > own && cat.bytes[own] == ',' &&
           memcmp(cat.bytes, SV_PF_LOSS_CATEGORY, own) == 0;
}

static void emit_other(struct sv_pf *r, const struct sv_pf_event_in *e, struct sv_pf_track *t)
{
    switch (e->type) {
    case SV_PF_TYPE_COUNTER: emit_counter_event(r, e, t); break;
    case SV_PF_TYPE_STATE: emit_state(r, e, t); break;
    default:
        sv_pf_damage(r, "track event without type", "type %u and no legacy phase; dropped",
                     e->type);
        sv_batch_drop_args(r->b);
    }
}

static inline void emit_event(struct sv_pf *r, const struct sv_pf_event_in *e,
                              struct sv_pf_track *t)
{
    switch (e->type) {
    case SV_PF_TYPE_BEGIN: sv_pf_emit_edge(r, e, SV_BEGIN, t); break;
    case SV_PF_TYPE_END: sv_pf_emit_edge(r, e, SV_END, t); break;
    case SV_PF_TYPE_INSTANT:
        if (__builtin_expect(is_recorded_loss(r, e), 0))
            emit_recorded_loss(r, e, t);
        else
            sv_pf_emit_edge(r, e, SV_INSTANT, t)->flags = e->flags;
        break;
    default: emit_other(r, e, t); break;
    }
}

void sv_pf_emit_typed(struct sv_pf *r, const struct sv_pf_event_in *e, struct sv_pf_track *t)
{
    emit_event(r, e, t);
}

/* ---- rare fields ---- */

struct extras {
    int64_t values[EXTRAS_MAX];
    double doubles[EXTRAS_MAX];
    uint64_t uuids[EXTRAS_MAX], double_uuids[EXTRAS_MAX];
    size_t n_values, n_doubles, n_uuids, n_double_uuids;
    bool is_dropped;
};

static void add_numbers(const struct sv_pb_field *f, uint64_t *items, size_t *n)
{
    struct sv_pb w = sv_pb_sub(f);
    uint64_t u = f->u;
    do {
        if (f->type == SV_PB_BYTES && !sv_pb_varint(&w, &u))
            return;
        if (*n < EXTRAS_MAX)
            items[(*n)++] = u;
    } while (w.p < w.end);
}

static void add_doubles(const struct sv_pb_field *f, struct extras *x)
{
    if (f->type == SV_PB_FIXED64 && x->n_doubles < EXTRAS_MAX)
        x->doubles[x->n_doubles++] = sv_pb_double(f);
    for (uint64_t at = 0; f->type == SV_PB_BYTES && at + 8 <= f->u && x->n_doubles < EXTRAS_MAX;
         at += 8)
        memcpy(&x->doubles[x->n_doubles++], f->bytes + at, 8);
}

/* flow_ids_old and friends: varints, one by one or packed; the new generation: packed. */
static void add_flows(struct sv_pf *r, const struct sv_pb_field *f, unsigned type, bool is_fixed)
{
    struct sv_pb w = sv_pb_sub(f);
    uint64_t u = f->u;
    do {
        if (f->type == SV_PB_BYTES) {
            if (is_fixed && w.end - w.p >= 8) {
                memcpy(&u, w.p, 8);
                w.p += 8;
            } else if (is_fixed || !sv_pb_varint(&w, &u)) {
                return;
            }
        }
        sv_pf_arg_special(r, type, sv_pf_salted(r, u));
    } while (w.p < w.end);
}

/* The time fields of old traces: microseconds, as increments of the thread descriptor's or
 * absolute. */
static bool read_old_times(struct sv_pf *r, struct sv_pf_event_in *e, const struct sv_pb_field *f)
{
    struct sv_pf_seq *seq = r->seq;
    int64_t v = (int64_t)f->u, ns = 0;
    bool is_delta = f->id <= SV_PF_EVENT_INSTRUCTIONS_DELTA;
    bool is_ok = !is_delta || seq->has_reference;
    bool is_time = f->id != SV_PF_EVENT_INSTRUCTIONS_DELTA &&
                   f->id != SV_PF_EVENT_INSTRUCTIONS_ABSOLUTE;
    is_ok = is_ok && !__builtin_mul_overflow(v, is_time ? 1000 : 1, &ns);
    switch (f->id) {
    case SV_PF_EVENT_TIMESTAMP_DELTA_US:
        is_ok = is_ok && !__builtin_add_overflow(seq->reference_ns, ns, &seq->reference_ns);
        ns = seq->reference_ns;
        break;
    case SV_PF_EVENT_THREAD_TIME_DELTA_US:
        is_ok = is_ok &&
                !__builtin_add_overflow(seq->reference_thread_ns, ns, &seq->reference_thread_ns);
        ns = seq->reference_thread_ns;
        break;
    case SV_PF_EVENT_INSTRUCTIONS_DELTA:
        is_ok = is_ok && !__builtin_add_overflow(seq->reference_instructions, ns,
                                                 &seq->reference_instructions);
        ns = seq->reference_instructions;
        break;
    default: break;
    }
    if (!is_ok)
        return false;
    if (f->id == SV_PF_EVENT_TIMESTAMP_DELTA_US || f->id == SV_PF_EVENT_TIMESTAMP_ABSOLUTE_US) {
        r->ts_ns = sv_pf_time_of(r, SV_CLOCK_MONOTONIC, ns);
        e->has_time = true;
        return ns >= 0;
    }
    if (is_time) {
        e->thread_ns = ns;
        e->has_thread_ns = true;
    } else {
        e->instructions = ns;
        e->has_instructions = true;
    }
    return true;
}

/* Work that the GPU does for this event, or that it waits for: the stages carry the same flows. */
static void read_gpu_correlation(struct sv_pf *r, struct sv_pb w)
{
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        struct sv_pb packed = sv_pb_sub(&f);
        uint64_t id = f.u;
        do {
            if (f.type == SV_PB_BYTES && !sv_pb_varint(&packed, &id))
                break;
            bool is_wait = f.id == SV_PF_GPU_WAIT_IDS;
            sv_pf_arg_special(r, is_wait ? SV_ARG_FLOW : SV_ARG_FLOW_BEGIN,
                              sv_pf_gpu_flow(r, id, is_wait));
        } while (packed.p < packed.end);
    }
}

static void count_field(struct sv_pf *r, uint32_t id)
{
    struct sv_pf_count *c = &r->event_fields[id < 64 ? id : 0];
    if (c->n++ == 0)
        c->first_pos = r->pos;
}

/* Fields that become arguments; true when it was one of them. */
static bool read_rare_arg(struct sv_pf *r, const struct sv_pb_field *f)
{
    switch (sv_pf_tag(f)) {
    case SV_PF_B(SV_PF_EVENT_TASK_EXECUTION): sv_pf_arg_task(r, sv_pf_bytes(f)); return true;
    case SV_PF_B(SV_PF_EVENT_LOG_MESSAGE): sv_pf_arg_log(r, sv_pf_bytes(f)); return true;
    case SV_PF_B(SV_PF_EVENT_SOURCE_LOCATION):
        sv_pf_arg_source(r, sv_pf_bytes(f), SV_ARG_SOURCE, 0);
        return true;
    case SV_PF_V(SV_PF_EVENT_SOURCE_LOCATION_IID):
        sv_pf_arg_source(r, sv_pf_blob_at(r, SV_PF_T_SOURCE, f->u), SV_ARG_SOURCE, 0);
        return true;
    case SV_PF_B(SV_PF_EVENT_CORRELATION_STR):
        sv_pf_arg_text(r, sv_dict_cstr(r->dict, "correlation_id"), sv_pf_bytes(f).bytes,
                       (size_t)f->u);
        return true;
    case SV_PF_V(SV_PF_EVENT_CORRELATION_STR_IID): {
        struct sv_pf_blob text = sv_pf_blob_at(r, SV_PF_T_CORRELATION, f->u);
        if (text.bytes)
            sv_pf_arg_text(r, sv_dict_cstr(r->dict, "correlation_id"), text.bytes, text.len);
        return true;
    }
    case SV_PF_B(SV_PF_EVENT_CALLSTACK): sv_pf_arg_inline_callstack(r, sv_pf_bytes(f)); return true;
    case SV_PF_V(SV_PF_EVENT_CALLSTACK_IID):
        sv_pf_arg_callstack(r, sv_pf_blob_at(r, SV_PF_T_CALLSTACK, f->u));
        return true;
    case SV_PF_F(SV_PF_EVENT_CALLSTACK_WEIGHT):
        sv_pf_arg_double(r, sv_dict_cstr(r->dict, "callstack_weight"), sv_pb_double(f));
        return true;
    case SV_PF_B(SV_PF_EVENT_GPU_CORRELATION): read_gpu_correlation(r, sv_pb_sub(f)); return true;
    case SV_PF_V(SV_PF_EVENT_GPU_API):
        sv_pf_arg_int(r, sv_dict_cstr(r->dict, "gpu_api"), (int64_t)f->u);
        return true;
    default: return false;
    }
}

/* What the first walk has read already. */
static bool is_usual(const struct sv_pb_field *f)
{
    switch (sv_pf_tag(f)) {
    case SV_PF_V(SV_PF_EVENT_TYPE):
    case SV_PF_V(SV_PF_EVENT_NAME_IID):
    case SV_PF_V(SV_PF_EVENT_CATEGORY_IIDS):
    case SV_PF_B(SV_PF_EVENT_CATEGORY_IIDS):
    case SV_PF_V(SV_PF_EVENT_TRACK_UUID):
    case SV_PF_B(SV_PF_EVENT_DEBUG_ANNOTATIONS):
    case SV_PF_V(SV_PF_EVENT_COUNTER_VALUE):
    case SV_PF_F(SV_PF_EVENT_DOUBLE_COUNTER_VALUE):
    case SV_PF_F(SV_PF_EVENT_FLOW_IDS):
    case SV_PF_F(SV_PF_EVENT_END_FLOW_IDS):
    case SV_PF_V(SV_PF_EVENT_CORRELATION_ID):
    case SV_PF_B(SV_PF_EVENT_NAME):
    case SV_PF_B(SV_PF_EVENT_CATEGORIES): return true;
    default: return false;
    }
}

static void read_rare(struct sv_pf *r, struct sv_pf_event_in *e, const struct sv_pb_field *f,
                      struct extras *x)
{
    switch (f->id) {
    case SV_PF_EVENT_TIMESTAMP_DELTA_US:
    case SV_PF_EVENT_TIMESTAMP_ABSOLUTE_US:
    case SV_PF_EVENT_THREAD_TIME_DELTA_US:
    case SV_PF_EVENT_THREAD_TIME_ABSOLUTE_US:
    case SV_PF_EVENT_INSTRUCTIONS_DELTA:
    case SV_PF_EVENT_INSTRUCTIONS_ABSOLUTE:
        if (f->type == SV_PB_VARINT && !read_old_times(r, e, f))
            x->is_dropped = true;
        break;
    case SV_PF_EVENT_LEGACY_EVENT:
        e->legacy = sv_pf_bytes(f);
        e->has_legacy = f->type == SV_PB_BYTES;
        break;
    case SV_PF_EVENT_EXTRA_COUNTER_VALUES:
        add_numbers(f, (uint64_t *)x->values, &x->n_values);
        break;
    case SV_PF_EVENT_EXTRA_COUNTER_UUIDS: add_numbers(f, x->uuids, &x->n_uuids); break;
    case SV_PF_EVENT_EXTRA_DOUBLE_COUNTER_VALUES: add_doubles(f, x); break;
    case SV_PF_EVENT_EXTRA_DOUBLE_COUNTER_UUIDS:
        add_numbers(f, x->double_uuids, &x->n_double_uuids);
        break;
    case SV_PF_EVENT_FLOW_IDS_OLD:
    case SV_PF_EVENT_END_FLOW_IDS_OLD:
        if (!e->has_flows)
            add_flows(r, f, f->id == SV_PF_EVENT_FLOW_IDS_OLD ? SV_ARG_FLOW : SV_ARG_FLOW_END,
                      false);
        break;
    case SV_PF_EVENT_FLOW_IDS:
    case SV_PF_EVENT_END_FLOW_IDS:
        if (f->type == SV_PB_BYTES)
            add_flows(r, f, f->id == SV_PF_EVENT_FLOW_IDS ? SV_ARG_FLOW : SV_ARG_FLOW_END, true);
        break;
    default:
        if (!is_usual(f) && !read_rare_arg(r, f))
            count_field(r, f->id);
    }
}

/* Which uuids the values of extra counters belong to. */
static const uint64_t *uuids_for(size_t n_values, const uint64_t *own, size_t n_own,
                                 const struct sv_pf_uuids *defaults, size_t *n)
{
    const uint64_t *uuids = n_own > 0 ? own : defaults->items;
    *n = n_own > 0 ? n_own : defaults->n;
    *n = n_values < *n ? n_values : *n;
    return uuids;
}

struct extra_value {
    struct sv_pf_track *track;
    struct sv_pf_counter_sum value;
};

/* Resolves the extra counters. Thread time becomes part of the event; returns how many others there
 * are. */
static size_t resolve_extras(struct sv_pf *r, struct sv_pf_event_in *e, const struct extras *x,
                             struct extra_value *out)
{
    size_t n, n_double, n_out = 0;
    const uint64_t *uuids = uuids_for(x->n_values, x->uuids, x->n_uuids, &r->seq->extra, &n);
    const uint64_t *double_uuids = uuids_for(x->n_doubles, x->double_uuids, x->n_double_uuids,
                                             &r->seq->extra_double, &n_double);
    if (n < x->n_values || n_double < x->n_doubles)
        sv_pf_damage(r, "extra counter value without track", "sequence %u", r->seq->id);
    for (size_t i = 0; i < n + n_double; i++) {
        bool is_double = i >= n;
        struct sv_pf_track *t = sv_pf_track_at(r, is_double ? double_uuids[i - n] : uuids[i]);
        struct sv_pf_counter_sum v = {.is_double = is_double};
        v.i = is_double ? 0 : x->values[i];
        v.d = is_double ? x->doubles[i - n] : 0;
        v = absolute(r, t, v);
        if (t->is_thread_time && !v.is_double) {
            int64_t factor = r->dict->tracks[t->track].multiplier;
            e->has_thread_ns = !__builtin_mul_overflow(v.i, factor > 0 ? factor : 1, &e->thread_ns);
        } else {
            out[n_out++] = (struct extra_value){t, v};
        }
    }
    return n_out;
}

static void rare_event(struct sv_pf *r, struct sv_pf_event_in *e, struct sv_pf_blob event)
{
    struct extras x;
    struct extra_value extra[2 * EXTRAS_MAX];
    struct sv_pb w = sv_pf_wire(event);
    x.n_values = x.n_doubles = x.n_uuids = x.n_double_uuids = 0;
    x.is_dropped = false;
    for (struct sv_pb_field f; sv_pb_next(&w, &f);)
        read_rare(r, e, &f, &x);
    if (e->has_legacy && !e->name_iid && (e->name_iid = sv_pf_legacy_name_iid(e->legacy)) != 0)
        e->name = sv_pf_str_quick(r, SV_PF_T_NAME, e->name_iid);
    if (x.is_dropped || !e->has_time) {
        sv_pf_damage(r,
                     x.is_dropped ? "time increment without a reference"
                                  : "track event without timestamp",
                     "sequence %u; dropped", r->seq->id);
        sv_batch_drop_args(r->b);
        return;
    }
    size_t n = x.n_values + x.n_doubles > 0 ? resolve_extras(r, e, &x, extra) : 0;
    if (e->has_legacy)
        sv_pf_legacy_event(r, e);
    else
        emit_event(r, e, track_of(r, e));
    if (e->has_instructions && r->seq->last_track) {
        sv_str name = sv_dict_cstr(r->dict, "thread_instruction_count");
        sv_track t = sv_pf_counter(r, r->seq->last_track->track, name, "count");
        sv_pf_emit_counter(r, t, false, e->instructions, 0);
    }
    for (size_t i = 0; i < n; i++)
        sv_pf_emit_counter(r, counter_track(r, extra[i].track, 0), extra[i].value.is_double,
                           extra[i].value.i, extra[i].value.d);
}

/* ---- the usual fields ---- */

static inline void read_usual(struct sv_pf *r, struct sv_pf_event_in *e,
                              const struct sv_pb_field *f)
{
    switch (sv_pf_tag(f)) {
    case SV_PF_V(SV_PF_EVENT_TYPE): e->type = (uint32_t)f->u; break;
    case SV_PF_V(SV_PF_EVENT_NAME_IID): e->name_iid = f->u; break;
    case SV_PF_V(SV_PF_EVENT_CATEGORY_IIDS):
        e->category_iid = f->u;
        e->n_categories++;
        break;
    case SV_PF_V(SV_PF_EVENT_TRACK_UUID):
        e->track_uuid = f->u;
        e->has_track = true;
        break;
    case SV_PF_B(SV_PF_EVENT_DEBUG_ANNOTATIONS):
        sv_pf_annotation(r, f->bytes, (size_t)f->u, 0, false);
        break;
    case SV_PF_V(SV_PF_EVENT_COUNTER_VALUE):
        e->counter_i = (int64_t)f->u;
        e->has_counter = true;
        break;
    case SV_PF_F(SV_PF_EVENT_DOUBLE_COUNTER_VALUE):
        e->counter_d = sv_pb_double(f);
        e->has_double_counter = true;
        break;
    case SV_PF_F(SV_PF_EVENT_FLOW_IDS):
        sv_pf_arg_special(r, SV_ARG_FLOW, sv_pf_salted(r, f->u));
        e->has_flows = true;
        break;
    case SV_PF_F(SV_PF_EVENT_END_FLOW_IDS):
        sv_pf_arg_special(r, SV_ARG_FLOW_END, sv_pf_salted(r, f->u));
        e->has_flows = true;
        break;
    case SV_PF_V(SV_PF_EVENT_CORRELATION_ID):
        sv_pf_arg_special(r, SV_ARG_CORRELATION, sv_pf_salted(r, f->u));
        break;
    case SV_PF_B(SV_PF_EVENT_NAME):
        e->name_text = f->bytes;
        e->name_len = (uint32_t)f->u;
        break;
    case SV_PF_B(SV_PF_EVENT_CATEGORIES):
    case SV_PF_B(SV_PF_EVENT_CATEGORY_IIDS): e->n_categories += 2; break;
    default: e->is_rare = true; break;
    }
}

static inline void resolve_names(struct sv_pf *r, struct sv_pf_event_in *e, struct sv_pf_blob event)
{
    if (__builtin_expect(e->name_iid != 0, 1))
        e->name = sv_pf_str_quick(r, SV_PF_T_NAME, e->name_iid);
    else if (e->name_len > 0)
        e->name = sv_dict_str(r->dict, (const char *)e->name_text, e->name_len);
    if (__builtin_expect(e->n_categories == 1, 1))
        e->cat = sv_pf_str_quick(r, SV_PF_T_CATEGORY, e->category_iid);
    else if (e->n_categories > 1)
        e->cat = joined_categories(r, event);
}

/* Frames were lost since the last packet of this sequence: perhaps some of its own, with their time
 * increments. */
static void after_damage(struct sv_pf *r)
{
    struct sv_pf_seq *seq = r->seq;
    seq->damage = r->damage;
    if (!seq->last_track)
        return;
    seq->has_loss = true;
    if (seq->default_clock && seq->default_clock->is_incremental)
        sv_pf_damage(
            r, "times after damaged bytes",
            "sequence %u: they lack the increments that were lost, until its next snapshot",
            seq->id);
}

/* ---- events that were decoded ahead (formats/perfetto/read_block.c) ---- */

/* The arguments of the record at hand. */
static void take_args(struct sv_pf *r, struct sv_pf_event_in *e, size_t n)
{
    const struct sv_arg *from = r->block->args + r->block->next_arg;
    for (const struct sv_arg *a = from; a < from + n; a++) {
        switch (a->type) {
        case SV_PF_QUICK_COUNTER:
            e->counter_i = a->i;
            e->has_counter = true;
            break;
        case SV_PF_QUICK_DOUBLE_COUNTER:
            e->counter_d = a->d;
            e->has_double_counter = true;
            break;
        case SV_ARG_FLOW:
        case SV_ARG_FLOW_END:
        case SV_ARG_CORRELATION: sv_pf_arg_special(r, a->type, sv_pf_salted(r, a->u)); break;
        default: sv_pf_arg_quick(r, a); break;
        }
    }
}

/* What the first walk over the fields would have found. */
static void take_quick(struct sv_pf *r, struct sv_pf_event_in *e, const struct sv_pf_quick *q)
{
    e->type = q->type;
    e->name_iid = q->name_iid;
    e->n_categories = (q->has & SV_PF_QUICK_CATEGORY) != 0;
    e->category_iid = q->category_iid;
    e->has_track = q->has & SV_PF_QUICK_TRACK;
    e->track_uuid = q->track_uuid;
    if (q->n_args)
        take_args(r, e, q->n_args);
}

/* The time of an event on the default clock of its sequence, where nothing is left to find out
 * about that. */
static inline bool quick_time(struct sv_pf *r, const struct sv_pf_seq *seq, uint64_t timestamp)
{
    struct sv_pf_clock *c = seq->default_clock;
    int64_t ns, origin_ns = r->clocks.origin_ns;
    if (!c || c->multiplier != 1 || timestamp > INT64_MAX ||
        __builtin_add_overflow((int64_t)timestamp, c->is_incremental ? c->last_ns : origin_ns, &ns))
        return false;
    int64_t offset_ns = 0;
    if (c != r->clocks.trace) {
        if (!c->is_cached || c->epoch != r->clocks.epoch || ns < c->from_ns || ns >= c->to_ns)
            return false;
        offset_ns = c->offset_ns;
    }
    if (__builtin_add_overflow(ns, offset_ns, &r->ts_ns))
        return false;
    if (c->is_incremental)
        c->last_ns = ns;
    r->clocks.is_fixed = true;
    if (!r->has_latest || r->ts_ns > r->latest_ns)
        r->latest_ns = r->ts_ns;
    r->has_latest = true;
    return true;
}

/* Begins and ends of a sequence in good order, which are nearly all events: sv_pf_track_event()
 * without what they cannot have. False: nothing was done. */
static inline bool quick_edge(struct sv_pf *r, const struct sv_pf_quick *q)
{
    struct sv_pf_seq *seq = q->seq_id < SV_PF_NEAR_SEQUENCES ? r->near_sequences[q->seq_id] : NULL;
    bool is_edge = q->type == SV_PF_TYPE_BEGIN || q->type == SV_PF_TYPE_END;
    if (!is_edge || !seq || !seq->is_valid || seq->has_loss || seq->damage != r->damage ||
        !(q->has & SV_PF_QUICK_SEQUENCE) || !quick_time(r, seq, q->timestamp))
        return false;
    r->seq = seq;
    sv_pf_ready(r);
    if (q->n_args)
        take_args(r, &(struct sv_pf_event_in){0}, q->n_args);
    sv_str name = q->name_iid ? sv_pf_str_quick(r, SV_PF_T_NAME, q->name_iid) : 0;
    sv_str cat =
        q->has & SV_PF_QUICK_CATEGORY ? sv_pf_str_quick(r, SV_PF_T_CATEGORY, q->category_iid) : 0;
    uint64_t uuid = q->has & SV_PF_QUICK_TRACK ? q->track_uuid
                    : seq->has_default_track   ? seq->default_track
                                               : 0;
    const struct sv_pf_track *t = seq->last_track;
    if (__builtin_expect(!t || t->uuid != uuid || uuid == 0, 0))
        t = track_of(r, &(struct sv_pf_event_in){.type = q->type,
                                                 .has_track = q->has & SV_PF_QUICK_TRACK,
                                                 .track_uuid = q->track_uuid});
    sv_pf_emit(r, q->type == SV_PF_TYPE_BEGIN ? SV_BEGIN : SV_END, t->track, name)->cat = cat;
    seq->last_ns = r->ts_ns;
    seq->has_last = true;
    return true;
}

void sv_pf_quick_event(struct sv_pf *r, const struct sv_pf_quick *q)
{
    if (__builtin_expect(!quick_edge(r, q), 0))
        sv_pf_packet_read(r, &(struct sv_pf_packet){.quick = q,
                                                    .seq_id = q->seq_id,
                                                    .flags = q->flags,
                                                    .payload_id = SV_PF_PACKET_TRACK_EVENT,
                                                    .has_timestamp = true,
                                                    .has_sequence = q->has & SV_PF_QUICK_SEQUENCE,
                                                    .timestamp = q->timestamp});
}

void sv_pf_track_event(struct sv_pf *r, const struct sv_pf_packet *k)
{
    struct sv_pf_event_in e;
    struct sv_pb w = sv_pf_wire(k->payload);
    struct sv_pb_field f;
    struct sv_pf_seq *seq = r->seq;
    memset(&e, 0, offsetof(struct sv_pf_event_in, name_text));
    if (__builtin_expect(seq->damage != r->damage, 0))
        after_damage(r);
    if (k->has_timestamp && !sv_pf_time(r, k))
        return;
    e.has_time = k->has_timestamp;
    sv_pf_ready(r);
    if (k->quick)
        take_quick(r, &e, k->quick);
    while (sv_pb_next(&w, &f)) /* then there is no payload */
        read_usual(r, &e, &f);
    if (__builtin_expect(w.bad, 0)) {
        sv_pf_damage(r, "malformed track event", "dropped");
        sv_batch_drop_args(r->b);
        return;
    }
    resolve_names(r, &e, k->payload);
    if (__builtin_expect(e.is_rare || !e.has_time, 0))
        rare_event(r, &e, k->payload);
    else
        emit_event(r, &e, track_of(r, &e));
    if (__builtin_expect(seq->has_loss, 0))
        sv_pf_emit_loss(r, seq, seq->last_track ? seq->last_track->track : 0);
    seq->last_ns = r->ts_ns;
    seq->has_last = true;
}
