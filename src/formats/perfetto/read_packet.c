/* Perfetto packets: splitting them, the state of their sequences, and which payload goes where.
 *
 * Called by formats/perfetto/read.c for every frame: sv_pf_packet_split() first (no effect, so that
 * a damaged packet leaves nothing half done), then sv_pf_packet_read(). The order inside a packet
 * is Perfetto's: loss or clearing of the state, defaults, interned data, payload. A payload that
 * Stave cannot represent is counted by its name. */
#include "formats/perfetto/read.h"

#include "core/base/mem.h"
#include "core/perfetto/stave.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- splitting ---- */

static bool is_beside_payload(uint32_t id)
{
    return id == SV_PF_PACKET_INTERNED_DATA || id == SV_PF_PACKET_DEFAULTS;
}

static inline void set_field(struct sv_pf_packet *k, const struct sv_pb_field *f)
{
    switch (sv_pf_tag(f)) {
    case SV_PF_V(SV_PF_PACKET_TIMESTAMP):
        k->timestamp = f->u;
        k->has_timestamp = true;
        break;
    case SV_PF_V(SV_PF_PACKET_SEQUENCE_ID):
        k->seq_id = (uint32_t)f->u;
        k->has_sequence = true;
        break;
    case SV_PF_B(SV_PF_PACKET_TRACK_EVENT):
        k->payload_id = SV_PF_PACKET_TRACK_EVENT;
        k->payload = sv_pf_bytes(f);
        break;
    case SV_PF_V(SV_PF_PACKET_SEQUENCE_FLAGS): k->flags |= (uint32_t)f->u; break;
    case SV_PF_V(SV_PF_PACKET_CLOCK_ID): k->clock_id = (uint32_t)f->u; break;
    case SV_PF_B(SV_PF_PACKET_INTERNED_DATA):
        k->interned = sv_pf_bytes(f);
        k->n_interned++;
        break;
    case SV_PF_B(SV_PF_PACKET_DEFAULTS):
        k->defaults = sv_pf_bytes(f);
        k->n_defaults++;
        break;
    case SV_PF_V(SV_PF_PACKET_STATE_CLEARED):
        if (f->u)
            k->flags |= SV_PF_SEQ_CLEARED;
        break;
    case SV_PF_V(SV_PF_PACKET_PREVIOUS_DROPPED): k->dropped = (uint32_t)f->u; break;
    case SV_PF_V(SV_PF_PACKET_MACHINE_ID): k->machine_id = (uint32_t)f->u; break;
    default:
        if (f->type == SV_PB_BYTES && !is_beside_payload(f->id)) {
            k->payload_id = f->id;
            k->payload = sv_pf_bytes(f);
        }
    }
}

bool sv_pf_packet_split(const uint8_t *bytes, size_t len, struct sv_pf_packet *k)
{
    struct sv_pb w = sv_pb_at(bytes, len);
    memset(k, 0, offsetof(struct sv_pf_packet, timestamp));
    k->whole = (struct sv_pf_blob){bytes, len};
    for (struct sv_pb_field f; sv_pb_next(&w, &f);)
        set_field(k, &f);
    return !w.bad;
}

/* Known numbers of TracePacket with their only possible wire type; what is not a varint here is a
 * message. */
static int field_of_packet(uint32_t id, uint32_t type)
{
    switch (id) {
    case SV_PF_PACKET_TIMESTAMP:
    case SV_PF_PACKET_SEQUENCE_ID: return type == SV_PB_VARINT ? 2 : 0;
    case SV_PF_PACKET_TRUSTED_UID:
    case SV_PF_PACKET_SEQUENCE_FLAGS:
    case SV_PF_PACKET_STATE_CLEARED:
    case SV_PF_PACKET_PREVIOUS_DROPPED:
    case SV_PF_PACKET_CLOCK_ID:
    case SV_PF_PACKET_TRUSTED_PID:
    case SV_PF_PACKET_FIRST_ON_SEQUENCE:
    case SV_PF_PACKET_MACHINE_ID: return type == SV_PB_VARINT;
    default: return type == SV_PB_BYTES && (id <= 200 || id == 900 || (id >= 1000 && id < 2000));
    }
}

int sv_pf_packet_plausible(const uint8_t *bytes, size_t len, size_t have)
{
    struct sv_pb w = sv_pb_at(bytes, have < len ? have : len);
    struct sv_pb_field f;
    int best = 0;
    for (int n = 0; n < 64 && sv_pb_next(&w, &f); n++) {
        int field = field_of_packet(f.id, f.type);
        if (field == 0)
            return 0;
        if (field > best)
            best = field;
    }
    if (!w.bad)
        return len == 0 ? 1 : best;
    if (have >= len) /* all of it is here, so the damage is real */
        return 0;
    /* The last field reaches past what is here: its head must be right. */
    uint64_t tag;
    if (!sv_pb_varint(&w, &tag))
        return w.end - w.p < 5 ? (best ? best : 1) : 0;
    int field = tag <= UINT32_MAX ? field_of_packet((uint32_t)(tag >> 3), (uint32_t)(tag & 7)) : 0;
    return field > best ? field : field ? best : 0;
}

/* ---- machines and sequences ---- */

static struct sv_pf_machine *machine_at(struct sv_pf *r, uint32_t id)
{
    for (size_t i = 0; i < r->n_machines; i++)
        if (r->machines[i]->id == id)
            return r->machines[i];
    if (r->n_machines >= 256)
        return r->machines[0];
    struct sv_pf_machine *m = sv_alloc(sizeof *m);
    m->id = id;
    /* The first machine of a file is the one that the caller's space means. */
    m->space = r->space;
    if (r->n_machines > 0)
        m->space = (uint32_t)sv_mix64((uint64_t)r->space << 32 | id) | 0x80000000u;
    m->salt = m->space ? sv_mix64(m->space) : 0;
    SV_APPEND(r->machines, r->n_machines, r->cap_machines) = m;
    return m;
}

static struct sv_pf_seq *sequence_slow(struct sv_pf *r, const struct sv_pf_packet *k)
{
    bool is_new;
    uint64_t key = (uint64_t)k->machine_id << 32 | k->seq_id;
    uint64_t *slot = sv_map_find(&r->sequences, key);
    if (!slot && r->n_sequences >= SV_PF_SEQUENCES_MAX)
        return NULL;
    slot = sv_map_add(&r->sequences, key, &is_new);
    if (is_new) {
        struct sv_pf_seq *seq = sv_arena_get(&r->arena, sizeof *seq, _Alignof(struct sv_pf_seq));
        *seq = (struct sv_pf_seq){
            .id = k->seq_id, .machine = machine_at(r, k->machine_id), .damage = r->damage};
        *slot = (uint64_t)(uintptr_t)seq;
        r->n_sequences++;
        if (k->machine_id == 0 && k->seq_id < SV_PF_NEAR_SEQUENCES)
            r->near_sequences[k->seq_id] = seq;
    }
    r->seq_cached_id = k->seq_id;
    r->seq_cached_machine = k->machine_id;
    r->seq_cached = (struct sv_pf_seq *)(uintptr_t)*slot;
    return r->seq_cached;
}

static inline struct sv_pf_seq *sequence_of(struct sv_pf *r, const struct sv_pf_packet *k)
{
    if (__builtin_expect(r->seq_cached && r->seq_cached_id == k->seq_id &&
                             r->seq_cached_machine == k->machine_id,
                         1))
        return r->seq_cached;
    if (k->machine_id == 0 && k->seq_id < SV_PF_NEAR_SEQUENCES && r->near_sequences[k->seq_id])
        return r->near_sequences[k->seq_id];
    return sequence_slow(r, k);
}

static void free_sequence(struct sv_pf_seq *seq)
{
    sv_pf_state_free(seq->state);
    free(seq->extra.items);
    free(seq->extra_double.items);
    sv_map_fini(&seq->sums);
    free(seq->sum);
}

void sv_pf_sequences_free(struct sv_pf *r)
{
    for (size_t i = 0; i < r->sequences.cap; i++)
        if (r->sequences.used[i])
            free_sequence((struct sv_pf_seq *)(uintptr_t)r->sequences.slots[i].value);
    sv_map_fini(&r->sequences);
    sv_map_fini(&r->flow_owner);
    for (size_t i = 0; i < r->n_machines; i++) {
        sv_map_fini(&r->machines[i]->tracks);
        sv_map_fini(&r->machines[i]->processes);
        sv_map_fini(&r->machines[i]->threads);
        free(r->machines[i]);
    }
    free(r->machines);
}

/* ---- the state of a sequence ---- */

static void forget_sums(struct sv_pf_seq *seq)
{
    sv_map_clear(&seq->sums);
    seq->n_sum = 0;
    seq->has_reference = false;
}

static void clear_state(struct sv_pf *r, struct sv_pf_seq *seq)
{
    sv_pf_state_clear(r, seq);
    forget_sums(seq);
    seq->is_valid = true;
    seq->damage = r->damage;
    seq->has_default_track = seq->has_whole_flows = false;
    seq->default_clock_id = 0;
    seq->default_clock = NULL;
    seq->extra.n = seq->extra_double.n = 0;
}

/* What was interned before the gap may have been replaced inside it. */
static void lose_state(struct sv_pf *r, struct sv_pf_seq *seq)
{
    sv_pf_state_clear(r, seq);
    forget_sums(seq);
    seq->is_valid = false;
}

static void add_uuid(struct sv_pf_uuids *u, uint64_t uuid)
{
    if (u->n >= 256)
        return;
    SV_APPEND(u->items, u->n, u->cap) = uuid;
}

static void add_uuids(struct sv_pf_uuids *u, const struct sv_pb_field *f)
{
    if (f->type == SV_PB_VARINT) {
        add_uuid(u, f->u);
        return;
    }
    struct sv_pb w = sv_pb_sub(f);
    uint64_t uuid;
    while (w.p < w.end && sv_pb_varint(&w, &uuid))
        add_uuid(u, uuid);
}

static void read_event_defaults(struct sv_pf_seq *seq, struct sv_pb w)
{
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        switch (f.id) {
        case SV_PF_EVENT_TRACK_UUID:
            seq->default_track = f.u;
            seq->has_default_track = f.type == SV_PB_VARINT;
            break;
        case SV_PF_EVENT_EXTRA_COUNTER_UUIDS: add_uuids(&seq->extra, &f); break;
        case SV_PF_EVENT_EXTRA_DOUBLE_COUNTER_UUIDS: add_uuids(&seq->extra_double, &f); break;
        default: break;
        }
    }
}

/* New defaults replace the old ones as a whole. */
static void read_defaults(struct sv_pf *r, struct sv_pf_seq *seq, struct sv_pf_blob data)
{
    struct sv_pb w = sv_pf_wire(data);
    seq->has_default_track = seq->has_whole_flows = false;
    seq->default_clock_id = 0;
    seq->default_clock = NULL;
    seq->extra.n = seq->extra_double.n = 0;
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        if (sv_pf_tag(&f) == SV_PF_V(SV_PF_DEFAULTS_CLOCK_ID))
            seq->default_clock_id = (uint32_t)f.u;
        else if (sv_pf_tag(&f) == SV_PF_B(SV_PF_DEFAULTS_TRACK_EVENT))
            read_event_defaults(seq, sv_pb_sub(&f));
        else if (sv_pf_tag(&f) == SV_PF_V(SV_PF_STAVE))
            seq->has_whole_flows = f.u == 1;
    }
    if (seq->default_clock_id)
        seq->default_clock = sv_pf_clock_at(r, seq, seq->default_clock_id);
    if (w.bad)
        sv_pf_damage(r, "malformed defaults", "of sequence %u", seq->id);
}

/* A message in several pieces is the sum of them. */
static void read_all_interned(struct sv_pf *r, const struct sv_pf_packet *k)
{
    struct sv_pb w = sv_pf_wire(k->whole);
    for (struct sv_pb_field f; sv_pb_next(&w, &f);)
        if (sv_pf_tag(&f) == SV_PF_B(SV_PF_PACKET_INTERNED_DATA))
            sv_pf_interned_data(r, sv_pf_bytes(&f));
}

/* Everything but the payload. */
static void update_sequence(struct sv_pf *r, const struct sv_pf_packet *k, bool is_first)
{
    struct sv_pf_seq *seq = r->seq;
    if (k->dropped && !is_first) {
        seq->has_loss = true;
        sv_pf_note(r, "packets dropped while recording", "before this packet of sequence %u",
                   seq->id);
    }
    if (k->flags & SV_PF_SEQ_CLEARED)
        clear_state(r, seq);
    else if (k->dropped)
        lose_state(r, seq);
    if (k->n_defaults)
        read_defaults(r, seq, k->defaults);
    if (k->n_interned == 1)
        sv_pf_interned_data(r, k->interned);
    else if (k->n_interned > 1)
        read_all_interned(r, k);
}

/* ---- payloads ---- */

static void count_payload(struct sv_pf *r, uint32_t id)
{
    id = id < SV_PF_SKIPPED_IDS ? id : 0;
    struct sv_pf_count *c = &r->payloads[id];
    if (c->n++ == 0)
        c->first_pos = r->pos;
    if (r->payloads_end <= id)
        r->payloads_end = id + 1;
}

/* Payloads that need a timestamp: false when it has none or it cannot be converted. */
static bool set_time(struct sv_pf *r, const struct sv_pf_packet *k)
{
    r->has_time = true;
    if (k->has_timestamp)
        return sv_pf_time(r, k);
    if (k->payload_id == SV_PF_PACKET_GPU_COUNTER || k->payload_id == SV_PF_PACKET_GPU_STAGE)
        r->has_time = false; /* it may hold descriptions all the same */
    r->ts_ns = r->latest_ns; /* as Perfetto does: the newest time so far */
    return true;
}

/* True when the payload was one of these. */
static bool read_timed(struct sv_pf *r, const struct sv_pf_packet *k)
{
    void (*read)(struct sv_pf *, struct sv_pf_blob);
    switch (k->payload_id) {
    case SV_PF_PACKET_PROCESS_STATS: read = sv_pf_process_stats; break;
    case SV_PF_PACKET_GPU_STAGE: read = sv_pf_gpu_stage; break;
    case SV_PF_PACKET_GPU_COUNTER: read = sv_pf_gpu_counters; break;
    case SV_PF_PACKET_GPU_FREQUENCY: read = sv_pf_gpu_frequency; break;
    case SV_PF_PACKET_GPU_MEM_TOTAL: read = sv_pf_gpu_memory; break;
    case SV_PF_PACKET_GPU_LOG: read = sv_pf_gpu_log; break;
    case SV_PF_PACKET_CHROME_TRIGGER: read = sv_pf_chrome_trigger; break;
    case SV_PF_PACKET_TRIGGER:
    case SV_PF_PACKET_CLONE_TRIGGER: read = sv_pf_trigger; break;
    default: return false;
    }
    if (set_time(r, k))
        read(r, k->payload);
    return true;
}

static bool read_untimed(struct sv_pf *r, const struct sv_pf_packet *k)
{
    void (*read)(struct sv_pf *, struct sv_pf_blob);
    switch (k->payload_id) {
    case SV_PF_PACKET_TRACK_DESCRIPTOR: read = sv_pf_track_descriptor; break;
    case SV_PF_PACKET_PROCESS_DESCRIPTOR: read = sv_pf_process_descriptor; break;
    case SV_PF_PACKET_THREAD_DESCRIPTOR: read = sv_pf_thread_descriptor; break;
    case SV_PF_PACKET_PROCESS_TREE: read = sv_pf_process_tree; break;
    case SV_PF_PACKET_TRACE_UUID: read = sv_pf_trace_uuid; break;
    case SV_PF_PACKET_SYSTEM_INFO: read = sv_pf_system_info; break;
    case SV_PF_PACKET_CHROME_EVENTS: read = sv_pf_chrome_events; break;
    case SV_PF_PACKET_CHROME_METADATA: read = sv_pf_chrome_metadata; break;
    case SV_PF_PACKET_TRACE_CONFIG: read = sv_pf_trace_config; break;
    case SV_PF_PACKET_RANGE_OF_INTEREST: read = sv_pf_range_of_interest; break;
    case SV_PF_PACKET_ATTRIBUTES: read = sv_pf_trace_attributes; break;
    case SV_PF_PACKET_TRACE_STATS: read = sv_pf_trace_stats; break;
    case SV_PF_PACKET_GPU_INFO: read = sv_pf_gpu_info; break;
    case SV_PF_PACKET_SYNC_MARKER:
        r->clocks.origin_ns = 0; /* until the window says another one */
        return true;
    case SV_PF_PACKET_SERVICE_EVENT:
    case SV_PF_PACKET_PROVENANCE:
    case SV_PF_PACKET_EXTENSION_DESCRIPTOR: return true; /* about the recording, not part of it */
    default: return false;
    }
    read(r, k->payload);
    return true;
}

static void read_payload(struct sv_pf *r, const struct sv_pf_packet *k)
{
    switch (k->payload_id) {
    case 0: return;
    case SV_PF_PACKET_CLOCK_SNAPSHOT: sv_pf_clock_snapshot(r, k->payload); return;
    case SV_PF_PACKET_REMOTE_CLOCK_SYNC: sv_pf_remote_clock_sync(r, k->payload); return;
    default: break;
    }
    if ((k->flags & SV_PF_SEQ_NEEDS_STATE) && !r->seq->is_valid) {
        r->seq->n_lost++;
        r->seq->has_loss = true;
        sv_pf_damage(r, "packet without the state it needs",
                     "sequence %u: what it refers to was lost or comes later", r->seq->id);
        return;
    }
    if (!read_untimed(r, k) && !read_timed(r, k))
        count_payload(r, k->payload_id);
}

static void note_no_sequence(struct sv_pf *r, const struct sv_pf_packet *k)
{
    if (k->payload_id == SV_PF_PACKET_TRACK_EVENT)
        sv_pf_note(r, "track event without sequence id", "kept; Perfetto drops it");
}

void sv_pf_packet_read(struct sv_pf *r, const struct sv_pf_packet *k)
{
    size_t n_before = r->n_sequences;
    struct sv_pf_seq *seq = sequence_of(r, k);
    if (__builtin_expect(!seq, 0)) {
        sv_pf_damage(r, "too many packet sequences",
                     "more than %u; packets of the others are dropped", SV_PF_SEQUENCES_MAX);
        return;
    }
    r->seq = seq;
    if (__builtin_expect(
            k->flags & SV_PF_SEQ_CLEARED || k->dropped || k->n_defaults || k->n_interned, 0))
        update_sequence(r, k, n_before != r->n_sequences);
    if (__builtin_expect(k->payload_id != SV_PF_PACKET_TRACK_EVENT, 0)) {
        read_payload(r, k);
        return;
    }
    if (__builtin_expect(!k->has_sequence, 0))
        note_no_sequence(r, k);
    if (__builtin_expect((k->flags & SV_PF_SEQ_NEEDS_STATE) && !seq->is_valid, 0))
        read_payload(r, k);
    else
        sv_pf_track_event(r, k);
}

/* ---- the end ---- */

static const struct {
    uint32_t id;
    const char *name;
} payload_names[] = {
#define NAME_ROW(name, id, text) {id, text},
    SV_PF_PAYLOADS(NAME_ROW)};

static void report_payload(struct sv_pf *r, uint32_t id)
{
    char what[96];
    const char *name = NULL;
    for (size_t i = 0; i < sizeof payload_names / sizeof *payload_names; i++)
        if (payload_names[i].id == id)
            name = payload_names[i].name;
    if (name)
        snprintf(what, sizeof what, "%s packet", name);
    else
        snprintf(what, sizeof what, id ? "packet of unknown type %u" : "packet of an unknown type",
                 id);
    sv_report_add(r->report, SV_SKIPPED, what, r->payloads[id].n, r->payloads[id].first_pos, NULL);
}

static const char *const event_field_names[64] = {
    [24] = "cc_scheduler_state",
    [25] = "chrome_user_event",
    [26] = "chrome_keyed_service",
    [27] = "chrome_legacy_ipc",
    [28] = "chrome_histogram_sample",
    [29] = "chrome_latency_info",
    [32] = "chrome_frame_reporter",
    [35] = "chrome_message_pump",
    [38] = "chrome_mojo_event_info",
    [39] = "chrome_application_state_info",
    [40] = "chrome_renderer_scheduler_state",
    [41] = "chrome_window_handle_event_info",
    [43] = "chrome_content_settings_event_info",
    [49] = "chrome_active_processes",
    [50] = "screenshot",
};

static void report_event_fields(struct sv_pf *r)
{
    for (uint32_t id = 0; id < 64; id++) {
        const struct sv_pf_count *c = &r->event_fields[id];
        char what[80];
        const char *name = event_field_names[id];
        if (c->n == 0)
            continue;
        if (name)
            snprintf(what, sizeof what, "track_event field %s", name);
        else
            snprintf(what, sizeof what, id ? "track_event field %u" : "track_event extension field",
                     id);
        sv_report_add(r->report, SV_SKIPPED, what, c->n, c->first_pos, NULL);
    }
}

void sv_pf_packet_finish(struct sv_pf *r)
{
    for (size_t i = 0; i < r->sequences.cap; i++) {
        if (!r->sequences.used[i])
            continue;
        struct sv_pf_seq *seq = (struct sv_pf_seq *)(uintptr_t)r->sequences.slots[i].value;
        if (!seq->has_loss)
            continue;
        r->seq = seq;
        r->ts_ns = seq->has_last ? seq->last_ns : r->latest_ns;
        sv_pf_emit_loss(r, seq, seq->last_track ? seq->last_track->track : 0);
    }
    for (uint32_t id = 0; id < r->payloads_end; id++)
        if (r->payloads[id].n)
            report_payload(r, id);
    report_event_fields(r);
}
