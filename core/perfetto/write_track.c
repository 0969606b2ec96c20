/* Perfetto writer: track descriptors, substitutes for pids, and the sequences.
 *
 * pf_track_prepare() is called before the first event of a track in a window and after every change
 * of the track; then pf_sequence_for(). What Perfetto's importer does with descriptors decides the
 * order of things here:
 *   - of two descriptors with one uuid the first counts, but for names: a thread's or process's
 *   latest name wins, a plain
 *     track's first one. A track of slices may be described after its events. So a track whose name
 *     is not known yet is put off until
 *     it is, or until the window ends; counters cannot wait.
 *   - a change of what makes the track's identity is an error there; such a change is reported and
 *   not written.
 *   - an event whose track has an undescribed ancestor is lost: parents are always described, even
 *   nameless ones.
 *   - a thread descriptor changes the state of its sequence, so descriptors are written without
 *   one. */
#include "core/perfetto/write.h"

#include <assert.h>
#include <stdlib.h>

static const char thread_time_name[] = "thread_time"; /* Perfetto's own name for it */

void pf_tracks_grow(struct pf *w, sv_track track)
{
    assert(track < w->dict->n_tracks);
    size_t had = w->cap_tracks;
    if (w->dict->n_tracks > had) {
        w->tracks = sv_grow(w->tracks, &w->cap_tracks, w->dict->n_tracks, sizeof *w->tracks);
        memset(w->tracks + had, 0, (w->cap_tracks - had) * sizeof *w->tracks);
    }
    w->n_tracks = w->dict->n_tracks;
}

void pf_tracks_fini(struct pf *w)
{
    for (size_t i = 0; i < w->n_tracks; i++)
        free(w->tracks[i].ends);
    free(w->tracks);
    free(w->put_off);
    for (uint32_t i = 0; i < PF_SEQUENCES_MAX; i++) {
        struct pf_sequence *s = w->sequences[i];
        for (unsigned k = 0; s && k < PF_NUMBERS; k++)
            free(s->interned[k].words);
        if (s)
            free(s->shapes);
        free(s);
    }
    sv_map_fini(&w->pids);
    sv_map_fini(&w->pids_used);
}

/* ---- pids ---- */

enum { PID_BITS = 22 }; /* Linux gives no pid past this */

static bool pid_take(struct pf *w, int64_t pid)
{
    bool is_new;
    sv_map_add(&w->pids_used, (uint64_t)pid, &is_new);
    return is_new;
}

/* Perfetto holds pids of 31 bits, knows one machine per flow, and hides process 0. Everything else
 * gets a substitute: the machine's number above the pid where that fits, so that people can still
 * read it. */
static int64_t wire_pid(struct pf *w, uint32_t space, int64_t pid)
{
    bool is_new;
    uint64_t *slot = sv_map_add(&w->pids, sv_uuid_process(space, pid), &is_new);
    if (!is_new)
        return (int64_t)*slot;
    int64_t wire = pid;
    bool is_plain = space == 0 && pid > 0 && pid <= INT32_MAX;
    bool is_readable = pid >= 0 && pid >> PID_BITS == 0 && space < 255;
    if (!is_plain && is_readable)
        wire = ((int64_t)space + 1) << PID_BITS | pid;
    if ((!is_plain && !is_readable) || !pid_take(w, wire)) {
        do
            wire = ((int64_t)1 << 30) + w->next_pid++;
        while (!pid_take(w, wire));
    }
    *slot = (uint64_t)wire;
    return wire;
}

/* ---- descriptors ---- */

/* Parents come from files: chains that are longer than Perfetto takes, or go round, are cut. */
static sv_track parent_of(struct pf *w, sv_track track)
{
    sv_track at = track;
    for (unsigned steps = 0; steps < PF_PARENTS_MAX; steps++) {
        at = w->dict->tracks[at].parent;
        if (at == 0 || at >= w->dict->n_tracks)
            return w->dict->tracks[track].parent < w->dict->n_tracks ? w->dict->tracks[track].parent
                                                                     : 0;
    }
    sv_report_add(w->report, SV_DAMAGE, "tracks nested too deeply or in a circle", 1, SV_NO_POS,
                  "more than %d levels", PF_PARENTS_MAX);
    return 0;
}

static unsigned merge_of(const struct sv_track_info *info)
{
    switch (info->kind) {
    case SV_TRACK_CPU:
    case SV_TRACK_GPU:
    case SV_TRACK_STREAM:
    case SV_TRACK_LANE: /* flow points find their slice on unmerged tracks only */
        return info->sibling_merge == SV_MERGE_DEFAULT ? SV_MERGE_NONE : info->sibling_merge;
    default: return info->sibling_merge;
    }
}

static void text_put(const struct pf *w, struct sv_buf *b, uint32_t field, sv_str str)
{
    struct sv_text text = sv_dict_text(w->dict, str);
    if (str)
        sv_put_text(b, field, text.bytes, text.len);
}

static void process_put(struct pf *w, struct sv_buf *b, const struct sv_track_info *info)
{
    size_t mark = sv_put_begin(b, SV_PF_TRACK_PROCESS);
    sv_put_i64(b, SV_PF_PROCESS_PID, wire_pid(w, info->space, info->pid));
    text_put(w, b, SV_PF_PROCESS_NAME, info->name);
    if (info->start_ns)
        sv_put_u64(b, SV_PF_PROCESS_START_NS, pf_wire_ns(w, info->start_ns));
    text_put(w, b, SV_PF_PROCESS_LABELS, info->desc);
    sv_put_end(b, mark);
}

static void thread_put(struct pf *w, struct sv_buf *b, const struct sv_track_info *info)
{
    size_t mark = sv_put_begin(b, SV_PF_TRACK_THREAD);
    sv_put_i64(b, SV_PF_THREAD_PID, wire_pid(w, info->space, info->pid));
    sv_put_i64(b, SV_PF_THREAD_TID, info->tid);
    text_put(w, b, SV_PF_THREAD_NAME, info->name);
    sv_put_end(b, mark);
}

static unsigned unit_of(const struct pf *w, sv_str unit)
{
    static const char *const names[] = {"", "ns", "count", "bytes"};
    struct sv_text text = sv_dict_text(w->dict, unit);
    for (unsigned i = SV_PF_UNIT_TIME_NS; i <= SV_PF_UNIT_BYTES; i++)
        if (strcmp(text.bytes, names[i]) == 0)
            return i;
    return SV_PF_UNIT_UNSPECIFIED;
}

static uint64_t thread_time_uuid(const struct pf *w, sv_track track)
{
    return sv_uuid_child(w->dict->tracks[track].uuid, SV_TRACK_COUNTER, thread_time_name,
                         sizeof thread_time_name - 1);
}

static void counter_put(struct pf *w, struct sv_buf *b, const struct sv_track_info *info,
                        sv_track parent)
{
    size_t mark = sv_put_begin(b, SV_PF_TRACK_COUNTER);
    unsigned unit = unit_of(w, info->unit);
    if (parent && info->uuid == thread_time_uuid(w, parent)) {
        sv_put_u64(b, SV_PF_COUNTER_TYPE, SV_PF_COUNTER_THREAD_TIME_NS);
    } else {
        text_put(w, b, SV_PF_COUNTER_CATEGORIES, info->cat);
        if (unit)
            sv_put_u64(b, SV_PF_COUNTER_UNIT, unit);
        if (info->multiplier > 1 || info->multiplier < 0)
            sv_put_i64(b, SV_PF_COUNTER_MULTIPLIER, info->multiplier);
        if (!unit)
            text_put(w, b, SV_PF_COUNTER_UNIT_NAME, info->unit);
    }
    sv_put_end(b, mark);
}

/* What only Stave reads. */
static void private_put(struct pf *w, struct sv_buf *b, const struct sv_track_info *info)
{
    size_t start = b->len, mark = sv_put_begin(b, SV_PF_STAVE), empty = b->len;
    bool has_pid = info->kind == SV_TRACK_PROCESS || info->kind == SV_TRACK_THREAD;
    unsigned flags = 0;
    if (merge_of(info) != info->sibling_merge)
        flags |= SV_PF_STAVE_MERGE_DEFAULT;
    if (info->kind == SV_TRACK_COUNTER && info->is_incremental)
        flags |= SV_PF_STAVE_COUNTER_INCREMENTAL;
    if (info->kind > SV_TRACK_COUNTER)
        sv_put_u64(b, SV_PF_STAVE_TRACK_KIND, info->kind);
    if (info->space)
        sv_put_u64(b, SV_PF_STAVE_TRACK_SPACE, info->space);
    if (has_pid && wire_pid(w, info->space, info->pid) != info->pid)
        sv_put_i64(b, SV_PF_STAVE_TRACK_PID, info->pid);
    if (info->has_order && info->order != (int32_t)info->order)
        sv_put_i64(b, SV_PF_STAVE_TRACK_ORDER, info->order);
    if (flags)
        sv_put_u64(b, SV_PF_STAVE_TRACK_FLAGS, flags);
    text_put(w, b, SV_PF_STAVE_TRACK_ORIGIN, info->origin);
    if (b->len == empty)
        b->len = start;
    else
        sv_put_end(b, mark);
}

static int64_t clamp_i32(int64_t v)
{
    return v < INT32_MIN ? INT32_MIN : v > INT32_MAX ? INT32_MAX : v;
}

static void descriptor_put(struct pf *w, struct sv_buf *b, const struct sv_track_info *info,
                           sv_track parent)
{
    bool is_named = info->kind == SV_TRACK_PROCESS || info->kind == SV_TRACK_THREAD;
    unsigned merge = merge_of(info);
    sv_put_u64(b, SV_PF_TRACK_UUID, info->uuid);
    if (parent && info->uuid)
        sv_put_u64(b, SV_PF_TRACK_PARENT_UUID, w->dict->tracks[parent].uuid);
    if (!is_named)
        text_put(w, b, SV_PF_TRACK_NAME, info->name);
    if (info->kind == SV_TRACK_PROCESS)
        process_put(w, b, info);
    else if (info->kind == SV_TRACK_THREAD)
        thread_put(w, b, info);
    else if (info->kind == SV_TRACK_COUNTER)
        counter_put(w, b, info, parent);
    if (info->child_order)
        sv_put_u64(b, SV_PF_TRACK_CHILD_ORDERING, info->child_order);
    if (info->has_order)
        sv_put_i64(b, SV_PF_TRACK_SIBLING_ORDER_RANK, clamp_i32(info->order));
    if (info->kind != SV_TRACK_PROCESS)
        text_put(w, b, SV_PF_TRACK_DESCRIPTION, info->desc);
    if (merge)
        sv_put_u64(b, SV_PF_TRACK_SIBLING_MERGE, merge);
    if (merge == SV_MERGE_BY_KEY)
        text_put(w, b, SV_PF_TRACK_MERGE_KEY, info->merge_key);
    private_put(w, b, info);
}

/* What Perfetto compares when a uuid is described again. */
static uint64_t identity_of(struct pf *w, const struct sv_track_info *info, sv_track parent)
{
    bool has_pid = info->kind == SV_TRACK_PROCESS || info->kind == SV_TRACK_THREAD;
    bool is_counter = info->kind == SV_TRACK_COUNTER;
    uint64_t parts[] = {
        parent ? w->dict->tracks[parent].uuid : 0,
        has_pid ? (uint64_t)wire_pid(w, info->space, info->pid) : 0,
        info->kind == SV_TRACK_THREAD ? (uint64_t)info->tid : 0,
        (uint64_t)has_pid << 1 | is_counter,
        merge_of(info),
        info->merge_key,
        is_counter ? info->cat : 0,
        is_counter ? (uint64_t)info->multiplier : 0,
    };
    return sv_hash_bytes(parts, sizeof parts, 0) | 1;
}

/* Processes and threads are sorted by rank only if the root is described so. */
static void root_describe(struct pf *w)
{
    struct sv_buf *b = &w->scratch;
    w->root_window = w->window;
    sv_buf_clear(b);
    sv_put_u64(b, SV_PF_TRACK_UUID, 0);
    sv_put_u64(b, SV_PF_TRACK_PROCESS_ORDERING, 1);
    sv_put_u64(b, SV_PF_TRACK_THREAD_ORDERING, 1);
    pf_packet(w, NULL, NULL, SV_PF_PACKET_TRACK_DESCRIPTOR, b);
}

static void describe(struct pf *w, sv_track track)
{
    const struct sv_track_info *info = &w->dict->tracks[track];
    struct pf_track *t = pf_track_of(w, track);
    struct sv_buf *b = &w->scratch;
    sv_track parent = parent_of(w, track);
    uint64_t identity = identity_of(w, info, parent);
    t->window = w->window;
    t->revision = info->revision;
    t->is_put_off = false;
    if (t->identity && t->identity != identity) {
        sv_report_add(w->report, SV_NOTE, "track changed its place after it was written", 1,
                      SV_NO_POS, "uuid %llu", (unsigned long long)info->uuid);
        return;
    }
    t->identity = identity;
    bool is_sorted_by_root = info->kind == SV_TRACK_PROCESS || info->kind == SV_TRACK_THREAD;
    if (info->has_order && is_sorted_by_root && w->root_window != w->window)
        root_describe(w);
    sv_buf_clear(b);
    descriptor_put(w, b, info, parent);
    if (b->failed)
        sv_report_add(w->report, SV_SKIPPED, "track description larger than a packet may be", 1,
                      SV_NO_POS, NULL);
    else
        pf_packet(w, NULL, NULL, SV_PF_PACKET_TRACK_DESCRIPTOR, b);
}

/* ---- when to describe ---- */

static bool name_may_come(const struct sv_track_info *info)
{
    switch (info->kind) {
    case SV_TRACK_PROCESS:
    case SV_TRACK_THREAD: return info->name == 0;
    case SV_TRACK_CUSTOM: return !info->is_described;
    default: return false;
    }
}

static void put_off(struct pf *w, sv_track track)
{
    struct pf_track *t = pf_track_of(w, track);
    t->window = w->window;
    t->revision = w->dict->tracks[track].revision;
    if (t->is_put_off)
        return;
    t->is_put_off = true;
    SV_APPEND(w->put_off, w->n_put_off, w->cap_put_off) = track;
}

static bool is_prepared(struct pf *w, sv_track track)
{
    struct pf_track *t = pf_track_of(w, track);
    return t->window == w->window && t->revision == w->dict->tracks[track].revision;
}

static void prepare_one(struct pf *w, sv_track track)
{
    struct pf_track *t = pf_track_of(w, track);
    if (t->identity == 0 && name_may_come(&w->dict->tracks[track]))
        put_off(w, track);
    else
        describe(w, track);
}

void pf_track_prepare(struct pf *w, sv_track track)
{
    sv_track chain[PF_PARENTS_MAX + 1];
    unsigned n = 0;
    if (is_prepared(w, track))
        return;
    chain[n++] = track;
    for (sv_track p = parent_of(w, track); p; p = parent_of(w, p)) {
        pf_track_of(w, p)->is_parent = true;
        if (is_prepared(w, p))
            break;
        chain[n++] = p;
    }
    while (n > 0)
        prepare_one(w, chain[--n]);
}

/* A track of which nothing is known but its uuid needs no description, unless others are below
 * it. */
void pf_tracks_describe_put_off(struct pf *w)
{
    size_t kept = 0;
    for (size_t i = 0; i < w->n_put_off; i++) {
        sv_track track = w->put_off[i];
        const struct sv_track_info *info = &w->dict->tracks[track];
        struct pf_track *t = pf_track_of(w, track);
        if (!t->is_put_off)
            continue;
        if (info->kind == SV_TRACK_CUSTOM && !info->is_described && !t->is_parent)
            w->put_off[kept++] = track;
        else
            describe(w, track);
    }
    w->n_put_off = kept;
}

void pf_tracks_describe_rest(struct pf *w)
{
    for (sv_track track = 1; track < w->dict->n_tracks; track++) {
        const struct sv_track_info *info = &w->dict->tracks[track];
        struct pf_track *t = pf_track_of(w, track);
        bool is_new_name = t->identity && t->revision != info->revision;
        bool is_unused = !t->identity && info->kind <= SV_TRACK_COUNTER &&
                         (info->is_described || info->kind != SV_TRACK_CUSTOM);
        if (is_new_name || is_unused)
            pf_track_prepare(w, track);
    }
    pf_tracks_describe_put_off(w);
}

/* Writes its last name, and frees what was kept for it: sequence, substitute of its pid, thread
 * times. */
void pf_track_forget(struct pf *w, sv_track track)
{
    const struct sv_track_info *info = &w->dict->tracks[track];
    struct pf_track *t = pf_track_of(w, track);
    bool is_unused = !t->identity && (info->kind != SV_TRACK_CUSTOM || info->is_described);
    if (w->window && (is_unused || t->is_put_off || t->revision != info->revision)) {
        pf_track_prepare(w, track);
        if (t->is_put_off)
            describe(w, track);
    }
    if (t->own) {
        t->own->track = 0;
        w->n_sequences--;
    }
    free(t->ends);
    *t = (struct pf_track){0};
    if (info->kind == SV_TRACK_PROCESS) {
        uint64_t uuid = sv_uuid_process(info->space, info->pid);
        const uint64_t *wire = sv_map_find(&w->pids, uuid);
        if (wire)
            sv_map_remove(&w->pids_used, *wire);
        sv_map_remove(&w->pids, uuid);
    }
}

/* ---- sequences ---- */

void pf_sequence_defaults(struct pf *w, const struct pf_sequence *s, struct sv_buf *head)
{
    size_t defaults = sv_put_begin(head, SV_PF_PACKET_DEFAULTS);
    sv_put_u64(head, SV_PF_DEFAULTS_CLOCK_ID, w->sequence_clock);
    sv_put_u64(head, SV_PF_STAVE, 1);
    if (s->track) {
        size_t event = sv_put_begin(head, SV_PF_DEFAULTS_TRACK_EVENT);
        sv_put_u64(head, SV_PF_EVENT_TRACK_UUID, w->dict->tracks[s->track].uuid);
        if (s->has_thread_time)
            sv_put_u64(head, SV_PF_EVENT_EXTRA_COUNTER_UUIDS, thread_time_uuid(w, s->track));
        sv_put_end(head, event);
    }
    sv_put_end(head, defaults);
}

/* Sets the sequence's clock. Perfetto wants the snapshots of a sequence in order, so it never goes
 * back. */
void pf_sequence_anchor(struct pf *w, struct pf_sequence *s, struct sv_buf *head, int64_t ns)
{
    struct sv_buf *b = &w->scratch;
    if (ns > s->last_ns)
        s->last_ns = ns;
    sv_buf_clear(b);
    uint64_t reading = pf_wire_ns(w, s->last_ns);
    pf_clock_put(b, w->wire_clock, reading);
    if (w->alias_clock)
        pf_clock_put(b, w->alias_clock, reading);
    size_t clock = sv_put_begin(b, SV_PF_SNAPSHOT_CLOCKS);
    sv_put_u64(b, SV_PF_CLOCK_ID, w->sequence_clock);
    sv_put_u64(b, SV_PF_CLOCK_TIMESTAMP, reading);
    sv_put_u64(b, SV_PF_CLOCK_IS_INCREMENTAL, 1);
    sv_put_end(b, clock);
    pf_primary_put(w, b);
    pf_packet(w, head, NULL, SV_PF_PACKET_CLOCK_SNAPSHOT, b);
}

static void sequence_start(struct pf *w, struct pf_sequence *s, int64_t ts_ns)
{
    struct sv_buf head;
    s->window = w->window;
    s->has_thread_time = false;
    pf_interned_clear(s);
    sv_buf_init(&head, 256);
    sv_buf_add(&head, s->head, s->head_len);
    sv_put_u64(&head, SV_PF_PACKET_SEQUENCE_FLAGS, SV_PF_SEQ_CLEARED);
    pf_sequence_defaults(w, s, &head);
    pf_sequence_anchor(w, s, &head, ts_ns);
    sv_buf_fini(&head);
}

static void sequence_name(struct pf *w, struct pf_sequence *s)
{
    s->id = ++w->n_sequence_ids;
    s->window = 0;
    s->last_ns = INT64_MIN;
    s->head_len =
        (uint8_t)sv_put_varint_at(s->head, (uint64_t)SV_PF_PACKET_SEQUENCE_ID << 3 | SV_PB_VARINT);
    s->head_len += (uint8_t)sv_put_varint_at(s->head + s->head_len, s->id);
}

/* The clock of a sequence never goes back. Where times do (a merge writes one machine after the
 * other), a new one costs less than whole times in all its packets. */
static void sequence_renew(struct pf *w, struct pf_sequence *s, int64_t ts_ns)
{
    if (ts_ns < s->last_ns && w->n_sequence_ids < PF_SEQUENCE_IDS)
        sequence_name(w, s);
}

/* The first sequence that belongs to nobody; the shared one when there is none. */
static struct pf_sequence *sequence_free(struct pf *w, uint32_t first)
{
    for (uint32_t i = first; i < PF_SEQUENCES_MAX; i++) {
        struct pf_sequence *s = w->sequences[i];
        if (s && (i == 0 || s->track))
            continue;
        if (!s) {
            s = w->sequences[i] = sv_alloc(sizeof *s);
            s->shapes = i ? sv_alloc(PF_SHAPES * sizeof *s->shapes) : NULL;
            sequence_name(w, s);
        }
        return s;
    }
    return NULL;
}

static void sequence_give(struct pf *w, sv_track track, int64_t ts_ns)
{
    struct pf_sequence *s = w->n_sequences < PF_SEQUENCES_MAX ? sequence_free(w, 1) : NULL;
    if (!s)
        return;
    w->n_sequences++;
    sequence_renew(w, s, ts_ns);
    s->track = track;
    s->window = 0;
    s->n_events = 0;
    pf_track_of(w, track)->own = s;
}

struct pf_sequence *pf_sequence_for(struct pf *w, sv_track track, int64_t ts_ns)
{
    struct pf_track *t = pf_track_of(w, track);
    if (w->n_sequences == 0) {
        sequence_free(w, 0);
        w->n_sequences = 1;
    }
    if (t->n_events < PF_HOT_EVENTS)
        t->n_events++;
    if (track && !t->own &&
        (w->dict->tracks[track].kind == SV_TRACK_THREAD || t->n_events == PF_HOT_EVENTS))
        sequence_give(w, track, ts_ns);
    struct pf_sequence *s = t->own ? t->own : w->sequences[0];
    if (s->window != w->window) {
        if (!s->track)
            sequence_renew(w, s, ts_ns);
        sequence_start(w, s, ts_ns);
    }
    s->n_events++;
    return s;
}

void pf_sequences_prune(struct pf *w)
{
    bool is_crowded = w->n_sequences > PF_SEQUENCES_MAX / 2;
    for (uint32_t i = 1; i < PF_SEQUENCES_MAX; i++) {
        struct pf_sequence *s = w->sequences[i];
        if (!s || !s->track)
            continue;
        if (is_crowded && s->n_events < PF_HOT_EVENTS) {
            struct pf_track *t = pf_track_of(w, s->track);
            t->own = NULL;
            t->n_events = 0;
            s->track = 0;
            w->n_sequences--;
        }
        s->n_events = 0;
    }
}

uint64_t pf_thread_time(struct pf *w, struct pf_sequence *s, sv_track track)
{
    struct pf_track *t = pf_track_of(w, track);
    uint64_t uuid = thread_time_uuid(w, track);
    struct sv_buf *b = &w->scratch;
    t->is_parent = true;
    if (t->thread_time_window != w->window) {
        t->thread_time_window = w->window;
        sv_buf_clear(b);
        sv_put_u64(b, SV_PF_TRACK_UUID, uuid);
        sv_put_u64(b, SV_PF_TRACK_PARENT_UUID, w->dict->tracks[track].uuid);
        size_t counter = sv_put_begin(b, SV_PF_TRACK_COUNTER);
        sv_put_u64(b, SV_PF_COUNTER_TYPE, SV_PF_COUNTER_THREAD_TIME_NS);
        sv_put_end(b, counter);
        pf_packet(w, NULL, NULL, SV_PF_PACKET_TRACK_DESCRIPTOR, b);
    }
    if (s->track && !s->has_thread_time) {
        s->has_thread_time = true;
        sv_buf_clear(b);
        sv_buf_add(b, s->head, s->head_len);
        pf_sequence_defaults(w, s, b);
        pf_packet(w, b, NULL, 0, NULL);
    }
    return uuid;
}
