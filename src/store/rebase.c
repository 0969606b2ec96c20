/* Translation between dictionaries: see rebase.h. Merge has one of these per input and calls it for
 * every event, in the order of the merged stream, so that the numbers in the common dictionary do
 * not depend on how the inputs were given. */
#include "store/rebase.h"
#include "subjects/comm/words.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define PARENTS_MAX 64 /* they come from files and may form a circle */
#define FLOW_GROUP_BITS \
    40 /* numbers below this stay readable: group << 40 | number, exact in JSON for 8,191 groups */

void sv_rebase_fini(struct sv_rebase *r)
{
    sv_shift_fini(&r->shift);
    sv_map_fini(&r->identities);
    free(r->strings);
    free(r->tracks);
}

/* ---- strings ---- */

static sv_str translate(struct sv_rebase *r, sv_str s)
{
    if (s == 0)
        return 0;
    if (s >= r->n_strings) {
        size_t need = r->from->n_strings > s ? r->from->n_strings : (size_t)s + 1;
        r->strings = sv_grow(r->strings, &r->cap_strings, need, sizeof *r->strings);
        memset(r->strings + r->n_strings, 0, (need - r->n_strings) * sizeof *r->strings);
        r->n_strings = need;
    }
    if (r->strings[s] == 0) {
        struct sv_text text = sv_dict_text(r->from, s);
        r->strings[s] = sv_dict_str(r->to, text.bytes, text.len);
    }
    return r->strings[s];
}

/* ---- tracks ---- */

static uint64_t salted(uint64_t uuid, uint64_t salt)
{
    return salt ? sv_mix64(uuid ^ sv_mix64(salt)) : uuid;
}

static uint64_t child_uuid(const struct sv_dict *d, const struct sv_track_info *t, uint64_t parent)
{
    char number[24];
    struct sv_text name = sv_dict_text(d, t->name);
    if (t->kind != SV_TRACK_LANE)
        return sv_uuid_child(parent, t->kind, name.bytes, name.len);
    int len = snprintf(number, sizeof number, "%lld", (long long)t->order); /* lanes go by number */
    return sv_uuid_child(parent, t->kind, number, (size_t)len);
}

/* A process or thread is known by its number. Only the first track with that number may claim it
 * (numbers are reused); a track whose uuid says that it is the one always may. */
static bool claims(struct sv_rebase *r, sv_track track, uint64_t identity)
{
    if (r->from->tracks[track].uuid == identity)
        return true;
    if (sv_dict_find_track(r->from, identity))
        return false;
    bool is_new;
    uint64_t *owner = sv_map_add(&r->identities, identity, &is_new);
    if (is_new)
        *owner = track;
    return *owner == track;
}

static uint64_t uuid_of(struct sv_rebase *r, sv_track track, sv_track to_parent)
{
    const struct sv_track_info *t = &r->from->tracks[track];
    uint32_t space = r->space + t->space;
    if (t->kind == SV_TRACK_PROCESS && t->pid >= 0 &&
        claims(r, track, sv_uuid_process(t->space, t->pid)))
        return sv_uuid_process(space, t->pid);
    if (t->kind == SV_TRACK_THREAD && t->tid >= 0 &&
        claims(r, track, sv_uuid_thread(t->space, t->pid, t->tid)))
        return sv_uuid_thread(space, t->pid, t->tid);
    uint64_t parent = t->parent ? r->from->tracks[t->parent].uuid : 0;
    if (t->kind == SV_TRACK_PROCESS || t->kind == SV_TRACK_THREAD ||
        t->uuid != child_uuid(r->from, t, parent))
        return salted(t->uuid, r->salt);
    if (t->parent == 0) /* a track without a parent belongs to its machine */
        return salted(t->uuid, space);
    return child_uuid(r->from, t, r->to->tracks[to_parent].uuid);
}

/* The input that made the track describes it; others only fill what is still empty. */
static void fill(sv_str *to, sv_str value, bool is_owner)
{
    if (value && (is_owner || *to == 0))
        *to = value;
}

/* Of a track that was merged before: the label of then below the label of now. */
static sv_str origin_of(struct sv_rebase *r, const struct sv_track_info *t)
{
    if (t->origin == 0 || r->origin == 0)
        return t->origin ? translate(r, t->origin) : r->origin;
    struct sv_text outer = sv_dict_text(r->to, r->origin), inner = sv_dict_text(r->from, t->origin);
    size_t len = (size_t)outer.len + 1 + inner.len;
    char *text = sv_alloc(len + 1);
    memcpy(text, outer.bytes, outer.len);
    text[outer.len] = '/';
    memcpy(text + outer.len + 1, inner.bytes, inner.len);
    sv_str origin = len < UINT32_MAX ? sv_dict_str(r->to, text, len) : r->origin;
    free(text);
    return origin;
}

/* A process that two inputs describe is of the rank that one of them names. What else two of them
 * describe, as the disks of a machine, is of neither. */
static void set_origin(const struct sv_rebase *r, struct sv_track_info *to, sv_str origin,
                       bool is_owner)
{
    if (to->kind != SV_TRACK_PROCESS && to->parent)
        to->origin = 0;
    else if (is_owner || (to->kind == SV_TRACK_PROCESS && (r->has_rank || to->origin == 0)))
        to->origin = origin;
    else if (to->kind != SV_TRACK_PROCESS && to->origin != origin)
        to->origin = 0;
}

static void describe(struct sv_rebase *r, sv_track track, sv_track to_parent)
{
    struct sv_rebase_track *slot = &r->tracks[track];
    const struct sv_track_info *t = &r->from->tracks[track];
    sv_str name = translate(r, t->name), unit = translate(r, t->unit), cat = translate(r, t->cat);
    sv_str desc = translate(r, t->desc), merge_key = translate(r, t->merge_key);
    if (desc == 0 && t->kind == SV_TRACK_PROCESS)
        desc = r->label;
    sv_str origin = origin_of(r, t);
    struct sv_track_info *to = &r->to->tracks[slot->to];
    if (slot->is_owner) {
        uint64_t uuid = to->uuid;
        int32_t revision = to->revision;
        sv_str old_desc = to->desc;
        *to = *t;
        to->uuid = uuid;
        to->revision = revision;
        to->parent = to_parent;
        to->space = r->space + t->space;
        if (t->start_ns && !sv_shift_apply(&r->shift, t->start_ns, &to->start_ns))
            to->start_ns = 0;
        to->name = to->unit = to->cat = to->merge_key = 0;
        to->desc = old_desc;
    }
    set_origin(r, to, origin, slot->is_owner);
    fill(&to->name, name, slot->is_owner);
    fill(&to->unit, unit, slot->is_owner);
    fill(&to->cat, cat, slot->is_owner);
    fill(&to->desc, desc, slot->is_owner);
    fill(&to->merge_key, merge_key, slot->is_owner);
    to->is_described |= t->is_described;
    slot->revision = t->revision;
    sv_dict_touch(r->to, slot->to);
}

static void settle(struct sv_rebase *r, sv_track track)
{
    struct sv_rebase_track *slot = &r->tracks[track];
    sv_track parent = r->from->tracks[track].parent;
    sv_track to_parent = parent ? r->tracks[parent].to : 0;
    if (slot->to == 0) {
        bool is_new;
        slot->to = sv_dict_track(r->to, uuid_of(r, track, to_parent), &is_new);
        slot->is_owner = is_new;
    } else if (slot->revision == r->from->tracks[track].revision) {
        return;
    }
    describe(r, track, to_parent);
}

static sv_track track_to(struct sv_rebase *r, sv_track track)
{
    if (track == 0)
        return 0;
    if (r->n_tracks < r->from->n_tracks) {
        size_t need = r->from->n_tracks;
        r->tracks = sv_grow(r->tracks, &r->cap_tracks, need, sizeof *r->tracks);
        memset(r->tracks + r->n_tracks, 0, (need - r->n_tracks) * sizeof *r->tracks);
        r->n_tracks = need;
    }
    assert(track < r->n_tracks);
    const struct sv_rebase_track *slot = &r->tracks[track];
    if (slot->to && slot->revision == r->from->tracks[track].revision)
        return slot->to;
    sv_track chain[PARENTS_MAX];
    size_t n = 0;
    for (sv_track t = track; t && n < PARENTS_MAX; t = r->from->tracks[t].parent)
        chain[n++] = t;
    while (n-- > 0) /* parents first: their uuids are in those of their children */
        settle(r, chain[n]);
    return r->tracks[track].to;
}

/* ---- events ---- */

static uint64_t move_number(const struct sv_rebase *r, uint64_t id)
{
    if (r->flow_group == 0)
        return id;
    if (id >> FLOW_GROUP_BITS == 0 && r->flow_group >> 23 == 0)
        return (uint64_t)r->flow_group << FLOW_GROUP_BITS | id;
    return sv_mix64(id ^ sv_mix64(r->flow_group));
}

/* Both ends of a message, and all members of a collective, have made the same number. */
bool sv_flow_is_shared(const struct sv_dict *d, sv_str cat, uint64_t id)
{
    const char *text = id >> 56 == SV_FLOW_SHARED ? sv_dict_text(d, cat).bytes : "";
    return strcmp(text, SV_CAT_MPI) == 0 || strcmp(text, SV_CAT_COLLECTIVE) == 0;
}

/* Kineto's files have their correlation numbers in an ordinary argument; 0 and less mean none. */
static bool is_correlation(struct sv_rebase *r, const struct sv_arg *a)
{
    if (r->n_searched != r->from->n_strings) {
        r->correlation = sv_dict_find_str(r->from, "correlation", 11);
        r->n_searched = r->from->n_strings;
    }
    return a->key && a->key == r->correlation &&
           ((a->type == SV_ARG_INT && a->i > 0) || a->type == SV_ARG_UINT);
}

static void move_correlation(const struct sv_rebase *r, struct sv_arg *a)
{
    a->u = move_number(r, a->u);
    a->type = a->u > INT64_MAX ? SV_ARG_UINT : SV_ARG_INT;
}

static void copy_arg(struct sv_rebase *r, sv_str cat, const struct sv_arg *a, struct sv_batch *b,
                     bool is_top)
{
    const char *text = a->type == SV_ARG_TEXT ? sv_batch_text(b, a->text, a->size) : NULL;
    struct sv_arg *to = sv_batch_arg(b);
    *to = *a;
    to->key = translate(r, a->key);
    switch (a->type) {
    case SV_ARG_TEXT: to->text = text; break;
    case SV_ARG_FLOW_BEGIN:
    case SV_ARG_FLOW:
    case SV_ARG_FLOW_END:
        if (!sv_flow_is_shared(r->from, cat, a->u))
            to->u = move_number(r, a->u);
        break;
    case SV_ARG_CORRELATION: to->u = move_number(r, a->u); break;
    case SV_ARG_INT:
    case SV_ARG_UINT:
        if (is_top && r->flow_group && is_correlation(r, a))
            move_correlation(r, to);
        break;
    default: break;
    }
}

bool sv_rebase_time(struct sv_rebase *r, struct sv_event *e)
{
    struct sv_event to = *e;
    int64_t end_ns;
    if (!sv_shift_apply(&r->shift, e->ts_ns, &to.ts_ns))
        return false;
    /* By both ends, so that what ended with its parent still does. */
    if (e->dur_ns > 0 && r->shift.n > 1) {
        if (__builtin_add_overflow(e->ts_ns, e->dur_ns, &end_ns) ||
            !sv_shift_apply(&r->shift, end_ns, &end_ns) || !sv_event_until(&to, end_ns))
            return false;
    }
    *e = to;
    return sv_event_ends(e);
}

void sv_rebase_event(struct sv_rebase *r, const struct sv_event *e, struct sv_batch *b)
{
    sv_track track = track_to(r, e->track);
    struct sv_event *to = sv_batch_event(b);
    *to = *e;
    to->track = track;
    to->name = translate(r, e->name);
    to->cat = translate(r, e->cat);
    const struct sv_arg *top = e->args;
    for (size_t i = 0; i < e->n_args; i++) {
        bool is_top = &e->args[i] == top;
        if (is_top)
            top = sv_arg_next(top);
        copy_arg(r, e->cat, &e->args[i], b, is_top);
    }
    sv_batch_finish(b, to);
}
