/* The Perfetto reader's inside: the calls between its files. See formats/perfetto/state.h for the
 * whole. */
#pragma once

#include "formats/perfetto/state.h"

static inline struct sv_pb sv_pf_wire(struct sv_pf_blob b)
{
    return b.bytes ? sv_pb_at(b.bytes, b.len) : (struct sv_pb){0}; /* a message that is not there */
}

static inline struct sv_pf_blob sv_pf_bytes(const struct sv_pb_field *f)
{
    return f->type == SV_PB_BYTES ? (struct sv_pf_blob){f->bytes, (size_t)f->u}
                                  : (struct sv_pf_blob){NULL, 0};
}

static inline sv_str sv_pf_intern(struct sv_pf *r, struct sv_pf_blob text)
{
    return sv_dict_str(r->dict, (const char *)text.bytes, text.len);
}

/* A field and its wire type as one number, so that a field of the wrong type is an unknown
 * field. */
#define SV_PF_V(id) ((uint32_t)(id) << 3 | SV_PB_VARINT)
#define SV_PF_B(id) ((uint32_t)(id) << 3 | SV_PB_BYTES)
#define SV_PF_F(id) ((uint32_t)(id) << 3 | SV_PB_FIXED64)

static inline uint32_t sv_pf_tag(const struct sv_pb_field *f)
{
    return f->id << 3 | f->type;
}

/* ---- formats/perfetto/read_block.c ---- */

extern const struct sv_line_ops sv_pf_block_ops; /* with struct sv_pf as the context */

/* ---- formats/perfetto/read.c: batches ---- */

void sv_pf_spill(struct sv_pf *r, struct sv_pf_chunk *list); /* whole batches, for the next calls */
void sv_pf_more(struct sv_pf *r); /* r->b is full: another one takes its place */

/* Before the arguments of an event are built; few events without arguments may leave before it. */
static inline void sv_pf_ready(struct sv_pf *r)
{
    if (__builtin_expect(r->b->n > SV_BATCH - 4, 0))
        sv_pf_more(r);
}

void sv_pf_finish_slow(struct sv_pf *r, struct sv_event *e);

/* An event at r->ts_ns with the arguments that were built since sv_pf_ready(). */
static inline struct sv_event *sv_pf_emit(struct sv_pf *r, unsigned kind, sv_track track,
                                          sv_str name)
{
    struct sv_event *e = sv_batch_event(r->b);
    e->ts_ns = r->ts_ns;
    e->kind = (uint8_t)kind;
    e->track = track;
    e->name = name;
    if (r->b->arg != r->b->args)
        sv_pf_finish_slow(r, e);
    return e;
}

/* An event that ends at no time is refused; one that waits for its clock is looked at again. */
static inline void sv_pf_lasts(struct sv_pf *r, struct sv_event *e, int64_t dur_ns)
{
    e->dur_ns = dur_ns;
    if (!sv_event_ends(e))
        sv_source_refuse(&r->source, r->pos);
}

void sv_pf_damage(struct sv_pf *r, const char *what, const char *detail_fmt, ...)
    __attribute__((format(printf, 3, 4)));
void sv_pf_note(struct sv_pf *r, const char *what, const char *detail_fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- formats/perfetto/read_packet.c ---- */

/* Splits a packet into its parts without any effect. False: a field is malformed. */
bool sv_pf_packet_split(const uint8_t *bytes, size_t len, struct sv_pf_packet *k);
void sv_pf_packet_read(struct sv_pf *r, const struct sv_pf_packet *k);
void sv_pf_packet_finish(struct sv_pf *r); /* at the end: pending losses, what was skipped */
void sv_pf_sequences_free(struct sv_pf *r);
/* How plausible it is that a packet of `len` bytes, `have` of which are here, is at `bytes`: 0 no,
 * 1 maybe, 2 yes. */
int sv_pf_packet_plausible(const uint8_t *bytes, size_t len, size_t have);

/* ---- formats/perfetto/read_intern.c ---- */

void sv_pf_interned_data(struct sv_pf *r, struct sv_pf_blob data);
void sv_pf_state_clear(struct sv_pf *r, struct sv_pf_seq *seq);
void sv_pf_state_free(struct sv_pf_state *s);
bool sv_pf_find_far(const struct sv_pf_state *s, unsigned table, uint64_t iid, uint32_t *value);

static inline bool sv_pf_find(const struct sv_pf_state *s, unsigned table, uint64_t iid,
                              uint32_t *value)
{
    if (__builtin_expect(s && iid < s->tables[table].n_near && s->tables[table].near[iid], 1)) {
        *value = s->tables[table].near[iid] - 1;
        return true;
    }
    return s && sv_pf_find_far(s, table, iid, value);
}

/* The text or message of an iid; unknown ones are reported and give 0, or a blob without bytes. */
sv_str sv_pf_str(struct sv_pf *r, unsigned table, uint64_t iid);
struct sv_pf_blob sv_pf_blob_at(struct sv_pf *r, unsigned table, uint64_t iid);

static inline sv_str sv_pf_str_quick(struct sv_pf *r, unsigned table, uint64_t iid)
{
    uint32_t value;
    return __builtin_expect(sv_pf_find(r->seq->state, table, iid, &value), 1)
               ? value
               : sv_pf_str(r, table, iid);
}

/* ---- formats/perfetto/read_clock.c ---- */

struct sv_pf_clock *sv_pf_clock_at(struct sv_pf *r, const struct sv_pf_seq *seq, uint32_t id);
void sv_pf_clock_snapshot(struct sv_pf *r, struct sv_pf_blob data);
void sv_pf_remote_clock_sync(struct sv_pf *r, struct sv_pf_blob data);
/* The packet's timestamp as r->ts_ns. False: it cannot be one, or nothing may wait for it any more
 * (reported). */
bool sv_pf_time(struct sv_pf *r, const struct sv_pf_packet *k);
/* A time of a built-in clock as trace time; as it is when nothing relates the two. */
int64_t sv_pf_time_of(struct sv_pf *r, uint32_t clock, int64_t ns);
void sv_pf_clocks_more(struct sv_pf *r); /* another chunk for the events that wait with r->b */
/* no snapshot will come: events that waited leave or are reported */
void sv_pf_clocks_finish(struct sv_pf *r);
void sv_pf_clocks_free(struct sv_pf *r);

/* ---- formats/perfetto/read_track.c ---- */

struct sv_pf_track *sv_pf_track_at(struct sv_pf *r, uint64_t uuid);
void sv_pf_track_descriptor(struct sv_pf *r, struct sv_pf_blob data);
void sv_pf_process_descriptor(struct sv_pf *r, struct sv_pf_blob data);
void sv_pf_thread_descriptor(struct sv_pf *r, struct sv_pf_blob data);
struct sv_pf_track *sv_pf_process(struct sv_pf *r, int64_t pid);
struct sv_pf_track *sv_pf_thread(struct sv_pf *r, int64_t pid, int64_t tid);
void sv_pf_name(struct sv_pf *r, struct sv_pf_track *t, unsigned rank, sv_str name);
/* A counter below `parent` (0: top level), made on first sight. */
sv_track sv_pf_counter(struct sv_pf *r, sv_track parent, sv_str name, const char *unit);
sv_track sv_pf_named_track(struct sv_pf *r, unsigned kind, const char *name);
uint64_t sv_pf_salted(const struct sv_pf *r,
                      uint64_t id); /* a flow or correlation id of this input */
void sv_pf_tracks_finish(struct sv_pf *r);
const char *sv_pf_chrome_process(uint64_t type); /* NULL: unknown */
const char *sv_pf_chrome_thread(uint64_t type);

/* ---- formats/perfetto/read_event.c, formats/perfetto/read_legacy.c ---- */

void sv_pf_track_event(struct sv_pf *r, const struct sv_pf_packet *k);
void sv_pf_quick_event(struct sv_pf *r, const struct sv_pf_quick *q); /* of r->block */
void sv_pf_emit_loss(struct sv_pf *r, struct sv_pf_seq *seq, sv_track track);
void sv_pf_emit_counter(struct sv_pf *r, sv_track track, bool is_double, int64_t i, double d);

struct sv_pf_track *sv_pf_event_track(struct sv_pf *r, const struct sv_pf_event_in *e);
struct sv_event *sv_pf_emit_edge(struct sv_pf *r, const struct sv_pf_event_in *e, unsigned kind,
                                 struct sv_pf_track *t);
/* By its type, not its phase. */
void sv_pf_emit_typed(struct sv_pf *r, const struct sv_pf_event_in *e, struct sv_pf_track *t);
void sv_pf_legacy_event(struct sv_pf *r, struct sv_pf_event_in *e);
uint64_t sv_pf_legacy_name_iid(struct sv_pf_blob legacy);

/* ---- formats/perfetto/read_args.c, formats/perfetto/read_json.c: arguments, appended to r->b
 * ---- */

void sv_pf_annotation(struct sv_pf *r, const uint8_t *bytes, size_t len, unsigned depth,
                      bool is_member);
void sv_pf_arg_quick(struct sv_pf *r, const struct sv_arg *from);
void sv_pf_arg_text(struct sv_pf *r, sv_str key, const uint8_t *bytes, size_t len);
void sv_pf_arg_uint(struct sv_pf *r, sv_str key, uint64_t u);
void sv_pf_arg_double(struct sv_pf *r, sv_str key, double d);
void sv_pf_arg_special(struct sv_pf *r, unsigned type,
                       uint64_t u); /* flows, correlation, thread time */
void sv_pf_arg_source(struct sv_pf *r, struct sv_pf_blob location, unsigned type, sv_str key);
void sv_pf_arg_task(struct sv_pf *r, struct sv_pf_blob task);
void sv_pf_arg_log(struct sv_pf *r, struct sv_pf_blob message);
void sv_pf_arg_callstack(struct sv_pf *r, struct sv_pf_blob callstack);
void sv_pf_arg_inline_callstack(struct sv_pf *r, struct sv_pf_blob callstack);
void sv_pf_arg_json(struct sv_pf *r, sv_str key, const char *json, size_t len);

/* Takes back the arguments from number `start` on. (Past the limit the batch counts no more: then
 * they stay.) */
static inline void sv_pf_rollback(struct sv_pf *r, size_t start)
{
    size_t n = (size_t)(r->b->arg - r->b->args);
    if (!r->b->overflow && start < n)
        r->b->arg -= n - start;
}

static inline void sv_pf_arg_int(struct sv_pf *r, sv_str key, int64_t i)
{
    sv_batch_int(r->b, key, i);
}

/* ---- formats/perfetto/read_meta.c, formats/perfetto/read_gpu.c ---- */

void sv_pf_process_tree(struct sv_pf *r, struct sv_pf_blob data);
void sv_pf_process_stats(struct sv_pf *r, struct sv_pf_blob data);
void sv_pf_trace_uuid(struct sv_pf *r, struct sv_pf_blob data);
void sv_pf_system_info(struct sv_pf *r, struct sv_pf_blob data);
void sv_pf_chrome_events(struct sv_pf *r, struct sv_pf_blob data);
void sv_pf_chrome_metadata(struct sv_pf *r, struct sv_pf_blob data);
void sv_pf_trace_config(struct sv_pf *r, struct sv_pf_blob data);
void sv_pf_range_of_interest(struct sv_pf *r, struct sv_pf_blob data);
void sv_pf_trace_attributes(struct sv_pf *r, struct sv_pf_blob data);
void sv_pf_trace_stats(struct sv_pf *r, struct sv_pf_blob data);
void sv_pf_chrome_trigger(struct sv_pf *r, struct sv_pf_blob data);
void sv_pf_trigger(struct sv_pf *r, struct sv_pf_blob data);
void sv_pf_meta_finish(struct sv_pf *r);
void sv_pf_gpu_stage(struct sv_pf *r, struct sv_pf_blob data);
void sv_pf_gpu_counters(struct sv_pf *r, struct sv_pf_blob data);
/* The flow from a submission to its stage, or from a stage to those that wait for it. */
uint64_t sv_pf_gpu_flow(const struct sv_pf *r, uint64_t event_id, bool is_wait);
void sv_pf_gpu_info(struct sv_pf *r, struct sv_pf_blob data);
void sv_pf_gpu_frequency(struct sv_pf *r, struct sv_pf_blob data);
void sv_pf_gpu_memory(struct sv_pf *r, struct sv_pf_blob data);
void sv_pf_gpu_log(struct sv_pf *r, struct sv_pf_blob data);
void sv_pf_gpu_finish(struct sv_pf *r);
void sv_pf_gpu_free(struct sv_pf *r);
