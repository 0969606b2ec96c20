/* Legacy events: TrackEvents that carry a Chrome phase (B E X i I R C b n e S T p F s t f M) and
 * its ids.
 *
 * Called by formats/perfetto/read_event.c when a TrackEvent has a legacy_event; its arguments are
 * built already. Without a phase the message only adds to the event's type: a flow by bind_id, the
 * scope of an instant.
 *
 * Asynchronous phases get a track of their own per id, below their process; the id counts within
 * the category (the old S T p F: within the name), and only local ids within the process, as in
 * Perfetto. Perfetto keeps C for its JSON export only; here they are counters. */
#include "formats/perfetto/read.h"

#include <stdio.h>

#define FLOWS_MAX  1000000u /* remembered flow ids */
#define SERIES_MAX 64

enum id_kind { ID_NONE, ID_UNSCOPED, ID_LOCAL, ID_GLOBAL };

struct legacy {
    uint32_t phase;
    enum id_kind id_kind;
    uint64_t id, bind_id, direction, scope;
    struct sv_pf_blob id_scope;
    int64_t dur_us, thread_dur_us, pid, tid;
    bool has_bind_id, has_thread_dur, has_pid, has_tid, binds_enclosing;
};

static void set_id(struct legacy *l, enum id_kind kind, uint64_t id)
{
    l->id_kind = kind;
    l->id = id;
}

static void read_field(struct legacy *l, const struct sv_pb_field *f)
{
    switch (sv_pf_tag(f)) {
    case SV_PF_V(SV_PF_LEGACY_PHASE): l->phase = (uint32_t)f->u; break;
    case SV_PF_V(SV_PF_LEGACY_DURATION_US): l->dur_us = (int64_t)f->u; break;
    case SV_PF_V(SV_PF_LEGACY_THREAD_DURATION_US):
        l->thread_dur_us = (int64_t)f->u;
        l->has_thread_dur = true;
        break;
    case SV_PF_V(SV_PF_LEGACY_UNSCOPED_ID): set_id(l, ID_UNSCOPED, f->u); break;
    case SV_PF_V(SV_PF_LEGACY_LOCAL_ID): set_id(l, ID_LOCAL, f->u); break;
    case SV_PF_V(SV_PF_LEGACY_GLOBAL_ID): set_id(l, ID_GLOBAL, f->u); break;
    case SV_PF_B(SV_PF_LEGACY_ID_SCOPE): l->id_scope = sv_pf_bytes(f); break;
    case SV_PF_V(SV_PF_LEGACY_BIND_ID):
        l->bind_id = f->u;
        l->has_bind_id = true;
        break;
    case SV_PF_V(SV_PF_LEGACY_BIND_TO_ENCLOSING): l->binds_enclosing = f->u != 0; break;
    case SV_PF_V(SV_PF_LEGACY_FLOW_DIRECTION): l->direction = f->u; break;
    case SV_PF_V(SV_PF_LEGACY_INSTANT_SCOPE): l->scope = f->u; break;
    case SV_PF_V(SV_PF_LEGACY_PID_OVERRIDE):
        l->pid = (int32_t)f->u;
        l->has_pid = true;
        break;
    case SV_PF_V(SV_PF_LEGACY_TID_OVERRIDE):
        l->tid = (int32_t)f->u;
        l->has_tid = true;
        break;
    default: break;
    }
}

uint64_t sv_pf_legacy_name_iid(struct sv_pf_blob legacy)
{
    struct sv_pb w = sv_pf_wire(legacy);
    uint64_t iid = 0;
    for (struct sv_pb_field f; sv_pb_next(&w, &f);)
        if (sv_pf_tag(&f) == SV_PF_V(SV_PF_LEGACY_NAME_IID))
            iid = f.u;
    return iid;
}

/* ---- where ---- */

/* Overrides only count where no track was named. */
static struct sv_pf_track *track_of(struct sv_pf *r, const struct sv_pf_event_in *e,
                                    const struct legacy *l)
{
    struct sv_pf_seq *seq = r->seq;
    uint64_t uuid = e->has_track ? e->track_uuid : seq->has_default_track ? seq->default_track : 0;
    bool can_override = uuid == 0 && (l->has_pid || (l->has_tid && seq->has_thread));
    if (!can_override)
        return sv_pf_event_track(r, e);
    int64_t pid = l->has_pid ? l->pid : seq->pid;
    return sv_pf_thread(r, pid, l->has_tid ? l->tid : l->has_pid ? -1 : seq->tid);
}

static uint64_t text_hash(const struct sv_pf *r, sv_str text, uint64_t seed)
{
    struct sv_text t = sv_dict_text(r->dict, text);
    return sv_hash_bytes(t.bytes, t.len, seed);
}

static bool is_old_async(uint32_t phase)
{
    return phase == 'S' || phase == 'T' || phase == 'p' || phase == 'F';
}

/* The track of an asynchronous operation. */
static struct sv_pf_track *async_track(struct sv_pf *r, const struct sv_pf_event_in *e,
                                       const struct legacy *l, struct sv_pf_track *home)
{
    sv_track process = sv_dict_process_of(r->dict, home->track);
    uint64_t key = sv_mix64(l->id + SV_TRACK_ASYNC);
    if (l->id_scope.len > 0) {
        key = text_hash(r, e->cat, key);
        key = sv_hash_bytes(l->id_scope.bytes, l->id_scope.len, key);
    } else {
        key = text_hash(r, is_old_async(l->phase) ? e->name : e->cat, key);
    }
    if (l->id_kind == ID_LOCAL && process)
        key = sv_mix64(key ^ r->dict->tracks[process].uuid);
    struct sv_pf_track *t = sv_pf_track_at(r, key);
    struct sv_track_info *info = &r->dict->tracks[t->track];
    if (!t->is_described) {
        t->is_described = true;
        info->kind = SV_TRACK_ASYNC;
        info->parent = l->id_kind == ID_LOCAL ? process : 0; /* other ids are the whole trace's */
        info->is_described = true;
        sv_dict_touch(r->dict, t->track);
    }
    if (!info->name && e->name) {
        info->name = e->name;
        sv_dict_touch(r->dict, t->track);
    }
    return t;
}

/* ---- flows ---- */

static void bind_flow(struct sv_pf *r, const struct legacy *l)
{
    uint64_t id = sv_pf_salted(r, l->bind_id);
    switch (l->direction) {
    case SV_PF_FLOW_OUT: sv_pf_arg_special(r, SV_ARG_FLOW_BEGIN, id); break;
    case SV_PF_FLOW_INOUT: sv_pf_arg_special(r, SV_ARG_FLOW, id); break;
    case SV_PF_FLOW_IN: sv_pf_arg_special(r, SV_ARG_FLOW_END, id); break;
    default: sv_pf_damage(r, "bind_id without flow direction", "dropped");
    }
}

/* Flows with the same id but another category or name are different ones. The first keeps the id as
 * it is, the others get a number made of all three. */
static uint64_t flow_number(struct sv_pf *r, const struct sv_pf_event_in *e, uint64_t id)
{
    bool is_new;
    if (r->seq->has_whole_flows)
        return sv_pf_salted(r, id);
    uint64_t own = text_hash(r, e->name, text_hash(r, e->cat, sv_mix64(id)));
    uint64_t *slot = sv_map_find(&r->flow_owner, id);
    if (!slot && r->flow_owner.n >= FLOWS_MAX)
        return sv_pf_salted(r, own);
    slot = slot ? slot : sv_map_add(&r->flow_owner, id, &is_new);
    if (*slot == 0)
        *slot = own | 1;
    return sv_pf_salted(r, *slot == (own | 1) ? id : own);
}

/* The flow comes first among the arguments; those at hand follow it. */
static void emit_flow(struct sv_pf *r, const struct sv_pf_event_in *e, const struct legacy *l,
                      struct sv_pf_track *t)
{
    if (l->id_kind == ID_NONE) {
        sv_pf_damage(r, "flow event without id", "dropped");
        sv_batch_drop_args(r->b);
        return;
    }
    unsigned type = l->phase == 's'   ? SV_ARG_FLOW_BEGIN
                    : l->phase == 't' ? SV_ARG_FLOW
                                      : SV_ARG_FLOW_END;
    sv_batch_arg(r->b);
    struct sv_arg *first = r->b->args;
    memmove(first + 1, first, (size_t)(r->b->arg - first - 1) * sizeof *first);
    *first = (struct sv_arg){.type = type & 0xff, .u = flow_number(r, e, l->id)};
    struct sv_event *out = sv_pf_emit(r, SV_FLOW, t->track, e->name);
    out->cat = e->cat;
    if (type == SV_ARG_FLOW_END && !l->binds_enclosing)
        out->flags = SV_BIND_NEXT;
}

/* ---- counters ---- */

struct series {
    sv_str key;
    bool is_double;
    int64_t i;
    double d;
};

/* Takes the numbers among the arguments at hand. */
static size_t take_series(struct sv_pf *r, struct series *out)
{
    size_t n = 0;
    const struct sv_arg *a = r->b->args;
    for (; a < r->b->arg && n < SERIES_MAX; a = sv_arg_next(a)) {
        if (a->type == SV_ARG_INT || a->type == SV_ARG_BOOL)
            out[n++] = (struct series){.key = a->key, .i = a->i};
        else if (a->type == SV_ARG_DOUBLE)
            out[n++] = (struct series){.key = a->key, .is_double = true, .d = a->d};
        else if (a->type == SV_ARG_UINT)
            out[n++] = (struct series){.key = a->key, .is_double = true, .d = (double)a->u};
    }
    sv_batch_drop_args(r->b);
    return n;
}

/* One counter per series: "name", or "name series" unless the series is called value. */
static void emit_counters(struct sv_pf *r, const struct sv_pf_event_in *e, const struct legacy *l,
                          struct sv_pf_track *t)
{
    struct series series[SERIES_MAX];
    size_t n = take_series(r, series);
    sv_track process = sv_dict_process_of(r->dict, t->track);
    for (size_t i = 0; i < n; i++) {
        char text[512], id[32] = "";
        struct sv_text name = sv_dict_text(r->dict, e->name);
        struct sv_text key = sv_dict_text(r->dict, series[i].key);
        bool is_plain = series[i].key == r->str.value || series[i].key == 0;
        if (l->id_kind != ID_NONE)
            snprintf(id, sizeof id, " id: 0x%llx", (unsigned long long)l->id);
        int len = snprintf(text, sizeof text, "%.*s%s%s%.*s",
                           (int)(name.len < 200 ? name.len : 200), name.bytes, id,
                           is_plain ? "" : " ", is_plain ? 0 : (int)(key.len < 200 ? key.len : 200),
                           key.bytes);
        sv_str full = sv_dict_str(r->dict, text, (size_t)len);
        sv_pf_emit_counter(r, sv_pf_counter(r, process, full, NULL), series[i].is_double,
                           series[i].i, series[i].d);
    }
    if (n == 0)
        sv_pf_damage(r, "counter event without value", "dropped");
}

/* ---- metadata ---- */

static void set_order(struct sv_pf *r, sv_track t, const struct sv_arg *a)
{
    struct sv_track_info *info = &r->dict->tracks[t];
    if (!t || !a || a->type != SV_ARG_INT)
        return;
    info->order = a->i;
    info->has_order = true;
    sv_dict_touch(r->dict, t);
}

static void set_name(struct sv_pf *r, sv_track t, unsigned rank, const struct sv_arg *a)
{
    if (!t || !a || a->type != SV_ARG_TEXT || a->size == 0)
        return;
    struct sv_track_info *info = &r->dict->tracks[t];
    int64_t pid = info->pid, tid = info->tid;
    struct sv_pf_track *known = tid >= 0 ? sv_pf_thread(r, pid, tid) : sv_pf_process(r, pid);
    if (known->track == t)
        sv_pf_name(r, known, rank, sv_dict_str(r->dict, a->text, a->size));
}

static void set_labels(struct sv_pf *r, sv_track t, const struct sv_arg *a)
{
    if (!t || !a || a->type != SV_ARG_TEXT)
        return;
    sv_str text = sv_dict_str(r->dict, a->text, a->size);
    r->dict->tracks[t].desc = text;
    sv_dict_touch(r->dict, t);
}

static void read_metadata(struct sv_pf *r, const struct sv_pf_event_in *e,
                          const struct sv_pf_track *t)
{
    const struct sv_arg *a = r->b->arg > r->b->args ? r->b->args : NULL;
    sv_track process = sv_dict_process_of(r->dict, t->track);
    sv_track thread = sv_dict_thread_of(r->dict, t->track);
    const char *name = sv_dict_text(r->dict, e->name).bytes;
    if (strcmp(name, "process_name") == 0)
        set_name(r, process, SV_PF_NAME_DESCRIPTOR, a);
    else if (strcmp(name, "thread_name") == 0)
        set_name(r, thread, SV_PF_NAME_CHROME_THREAD, a);
    else if (strcmp(name, "process_labels") == 0)
        set_labels(r, process, a);
    else if (strcmp(name, "process_sort_index") == 0)
        set_order(r, process, a);
    else if (strcmp(name, "thread_sort_index") == 0)
        set_order(r, thread, a);
    else
        sv_report_add(r->report, SV_SKIPPED, "legacy metadata event", 1, r->pos,
                      "the first is called \"%.100s\"", name);
    sv_batch_drop_args(r->b);
}

/* ---- phases ---- */

static void emit_complete(struct sv_pf *r, const struct sv_pf_event_in *e, const struct legacy *l,
                          struct sv_pf_track *t)
{
    int64_t dur_ns, thread_ns;
    if (__builtin_mul_overflow(l->dur_us, 1000, &dur_ns) && l->dur_us > 0)
        sv_source_refuse(&r->source, r->pos);
    if (l->dur_us < 0) {
        sv_pf_damage(r, "slice with a negative duration", "dropped");
        sv_batch_drop_args(r->b);
        return;
    }
    if (e->has_thread_ns)
        sv_pf_arg_special(r, SV_ARG_THREAD_TIME, (uint64_t)e->thread_ns);
    if (l->has_thread_dur && !__builtin_mul_overflow(l->thread_dur_us, 1000, &thread_ns))
        sv_pf_arg_special(r, SV_ARG_THREAD_DUR, (uint64_t)thread_ns);
    struct sv_event *out = sv_pf_emit(r, SV_SLICE, t->track, e->name);
    out->cat = e->cat;
    sv_pf_lasts(r, out, dur_ns);
}

static void emit_async(struct sv_pf *r, const struct sv_pf_event_in *e, const struct legacy *l,
                       struct sv_pf_track *home)
{
    if (l->id_kind == ID_NONE) {
        sv_pf_damage(r, "asynchronous event without id", "kept on the track of its thread");
    } else {
        home = async_track(r, e, l, home);
    }
    bool begins = l->phase == 'b' || l->phase == 'S';
    bool ends = l->phase == 'e' || l->phase == 'F';
    sv_pf_emit_edge(r, e, begins ? SV_BEGIN : ends ? SV_END : SV_INSTANT, home);
}

static uint8_t instant_flags(const struct legacy *l)
{
    return l->scope == SV_PF_SCOPE_GLOBAL    ? SV_SCOPE_GLOBAL
           : l->scope == SV_PF_SCOPE_PROCESS ? SV_SCOPE_PROCESS
                                             : 0;
}

static void skip_phase(struct sv_pf *r, uint32_t phase)
{
    char what[48];
    snprintf(what, sizeof what,
             phase > ' ' && phase < 127 ? "legacy event of phase %c" : "legacy event of phase %u",
             phase);
    sv_report_add(r->report, SV_SKIPPED, what, 1, r->pos, NULL);
    sv_batch_drop_args(r->b);
}

static void emit_phase(struct sv_pf *r, const struct sv_pf_event_in *e, const struct legacy *l,
                       struct sv_pf_track *t)
{
    switch (l->phase) {
    case 'B': sv_pf_emit_edge(r, e, SV_BEGIN, t); break;
    case 'E': sv_pf_emit_edge(r, e, SV_END, t); break;
    case 'X': emit_complete(r, e, l, t); break;
    case 'i':
    case 'I':
    case 'R': sv_pf_emit_edge(r, e, SV_INSTANT, t)->flags = instant_flags(l); break;
    case 'b':
    case 'e':
    case 'n':
    case 'S':
    case 'T':
    case 'p':
    case 'F': emit_async(r, e, l, t); break;
    case 's':
    case 't':
    case 'f': emit_flow(r, e, l, t); break;
    case 'C': emit_counters(r, e, l, t); break;
    case 'M': read_metadata(r, e, t); break;
    default: skip_phase(r, l->phase); break;
    }
}

void sv_pf_legacy_event(struct sv_pf *r, struct sv_pf_event_in *e)
{
    struct legacy l = {0};
    struct sv_pb w = sv_pf_wire(e->legacy);
    for (struct sv_pb_field f; sv_pb_next(&w, &f);)
        read_field(&l, &f);
    if (w.bad) {
        sv_pf_damage(r, "malformed legacy event", "dropped");
        sv_batch_drop_args(r->b);
        return;
    }
    if (l.has_bind_id)
        bind_flow(r, &l);
    bool by_type = l.phase == 0 || e->type == SV_PF_TYPE_COUNTER || e->type == SV_PF_TYPE_STATE;
    e->flags = instant_flags(&l);
    if (by_type)
        sv_pf_emit_typed(r, e, track_of(r, e, &l));
    else
        emit_phase(r, e, &l, track_of(r, e, &l));
}
