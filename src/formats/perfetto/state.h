/* The Perfetto reader's state, shared by its files. Nothing outside formats/perfetto_read*.c
 * includes this.
 *
 * The way of a packet: formats/perfetto/read_block.c cuts the input into blocks of whole packets
 * and decodes what needs no state (by all threads) → formats/perfetto/read.c takes the blocks in
 * order (unpacks compressed packets, finds its way where frames are broken) →
 * formats/perfetto/read_packet.c splits a packet and keeps the state of its sequence → _clock.c
 * makes its timestamp a trace time → _event.c, _legacy.c, _gpu.c or _meta.c turn the payload into
 * events (_args.c and _json.c their arguments, _intern.c and _track.c what they refer to).
 *
 * Three rules about memory: texts in events point into the input window, the unpacked packets or a
 * sequence's interned strings, so none of these may move or go away while a batch is being filled;
 * events past the batch's end go to `spill`; events whose clock is not known yet go to their
 * clock's `waiting` list with copied texts. */
#pragma once

#include "core/base/map.h"
#include "core/base/wire.h"
#include "core/files/input.h"
#include "core/perfetto/proto.h"
#include "core/stream/stream.h"
#include "formats/perfetto/block.h"
#include "threads/workers.h"

#define SV_PF_UNPACKED_MAX   ((uint64_t)1 << 30) /* what one compressed packet may expand to */
#define SV_PF_WAITING_MAX    ((size_t)16 << 20)  /* memory for events that wait for their clock */
#define SV_PF_SKIPPED_IDS    1024u
#define SV_PF_SEQUENCES_MAX  262144u
#define SV_PF_NEAR_SEQUENCES 256u
#define SV_PF_CLOCKS_MAX     64u /* per snapshot */
#define SV_PF_GRAVES         16u
#define SV_PF_DEPTH_MAX      64u  /* nested arguments */
#define SV_PF_ANCESTORS_MAX  100u /* of a track */

/* ---- interned data ---- */

/* the tables of texts (values: sv_str), then those of messages (values: blobs) */
enum sv_pf_table_id {
    SV_PF_T_CATEGORY,
    SV_PF_T_NAME,
    SV_PF_T_ARG_NAME,
    SV_PF_T_ARG_TYPE,
    SV_PF_T_COMPUTE_ARG_NAME,
    SV_PF_T_TEXTS,
    SV_PF_T_ARG_STRING = SV_PF_T_TEXTS,
    SV_PF_T_CORRELATION,
    SV_PF_T_FUNCTION,
    SV_PF_T_MAPPING_PATH,
    SV_PF_T_SOURCE_PATH,
    SV_PF_T_LOG_BODY,
    SV_PF_T_SOURCE, /* from here on whole messages, before it their texts only */
    SV_PF_T_FRAME,
    SV_PF_T_CALLSTACK,
    SV_PF_T_MAPPING,
    SV_PF_T_GPU_CONTEXT,
    SV_PF_T_GPU_SPEC,
    SV_PF_T_GPU_COUNTERS,
    SV_PF_T_KERNEL,
    SV_PF_TABLES
};

struct sv_pf_blob {
    const uint8_t *bytes;
    size_t len;
};

/* iid → value + 1: an array for small iids, a map for the others. */
struct sv_pf_table {
    uint32_t *near;
    uint32_t n_near, cap_near; /* [n_near, cap_near) is unused so far */
    struct sv_map far;
};

/* What INCREMENTAL_STATE_CLEARED forgets. */
struct sv_pf_state {
    struct sv_pf_table tables[SV_PF_TABLES];
    struct sv_arena bytes;
    struct sv_pf_blob *blobs;
    size_t n_blobs, cap_blobs;
};

/* ---- clocks ---- */

struct sv_pf_waiting; /* a list of events whose clock is not known yet */

struct sv_pf_clock {
    uint64_t key; /* machine, sequence and number: see sv_pf_clock_at() */
    uint32_t id;
    bool is_sequence, is_incremental,
        is_backward; /* backward: it jumped back, no source of conversions */
    bool is_known;   /* some snapshot had it */
    bool is_cached;
    int64_t multiplier;
    int64_t last_ns;                   /* incremental: the sum so far */
    int64_t from_ns, to_ns, offset_ns; /* cached conversion: valid in [from, to) */
    uint64_t epoch;                    /* of the cache */
    uint32_t *groups;                  /* the groups it is in */
    size_t n_groups, cap_groups;
    uint32_t visited; /* mark of the path search */
    struct sv_pf_waiting *waiting;
};

/* Snapshots of the same set of clocks: values[row × n_clocks + column]. */
struct sv_pf_clock_group {
    struct sv_pf_clock **clocks;
    uint32_t n_clocks;
    int64_t *values;
    size_t n_rows, cap_values;
};

struct sv_pf_clocks {
    struct sv_map by_key; /* → struct sv_pf_clock * */
    struct sv_pf_clock_group *groups;
    size_t n_groups, cap_groups;
    struct sv_map group_by_hash;  /* → group + 1 */
    struct sv_pf_clock *trace;    /* all events are converted to it; NULL: not decided */
    struct sv_pf_clock *fallback; /* of packets that name no clock; NULL: taken as they are */
    bool is_fixed;                /* the trace clock was used and cannot change */
    int64_t origin_ns;            /* what times in the file count from (core/perfetto/stave.h) */
    uint64_t epoch;
    uint32_t visit;
    struct sv_pf_clock *waiting[64]; /* the clocks with waiting events */
    size_t n_waiting, waiting_bytes;
};

/* ---- tracks ---- */

enum sv_pf_name_rank { /* who may overwrite whose name */
                       SV_PF_NAME_NONE,
                       SV_PF_NAME_CHROME_PROCESS,
                       SV_PF_NAME_TREE_THREAD,
                       SV_PF_NAME_CHROME_THREAD,
                       SV_PF_NAME_DESCRIPTOR,
                       SV_PF_NAME_RENDERER,
                       SV_PF_NAME_TREE_PROCESS
};

struct sv_pf_track {
    uint64_t uuid; /* as in the file */
    sv_track track;
    bool is_described, is_counter, is_incremental, is_thread_time, has_open_state, is_parent;
    uint8_t name_rank;
};

struct sv_pf_machine {
    uint32_t id;
    uint32_t space;
    uint64_t salt; /* keeps uuids and flow ids of different inputs apart; 0: as in the file */
    struct sv_map tracks;    /* uuid → struct sv_pf_track * */
    struct sv_map processes; /* pid → struct sv_pf_track * */
    struct sv_map threads;   /* mixed pid and tid → struct sv_pf_track * */
};

/* ---- sequences ---- */

struct sv_pf_uuids {
    uint64_t *items;
    size_t n, cap;
};

struct sv_pf_counter_sum { /* of an incremental counter */
    bool is_double;
    int64_t i;
    double d;
};

struct sv_pf_seq {
    uint32_t id;
    struct sv_pf_machine *machine;
    struct sv_pf_state *state; /* NULL until something was interned */
    bool is_valid;             /* cleared since the beginning or the last loss */
    bool has_default_track, has_thread, has_reference, has_loss, has_last;
    bool has_whole_flows; /* the numbers of flow points are unique */
    uint32_t default_clock_id;
    struct sv_pf_clock *default_clock,
        *named_clock; /* named: by the newest packet that named one */
    uint32_t damage;  /* sv_pf.damage when its state was last known to be whole */
    uint64_t default_track;
    struct sv_pf_uuids extra, extra_double; /* default uuids of extra counters */
    struct sv_pf_track *last_track;         /* the newest track an event was on */
    struct sv_pf_track *thread_track;
    int64_t pid, tid;
    int64_t reference_ns, reference_thread_ns, reference_instructions;
    struct sv_map sums; /* counter uuid → number + 1 in sum */
    struct sv_pf_counter_sum *sum;
    size_t n_sum, cap_sum;
    uint64_t n_lost; /* packets skipped for want of state */
    int64_t last_ns;
};

/* ---- the packet at hand ---- */

/* The next two are made for every packet, so only their first part is cleared; it says what of the
 * rest is valid. */
struct sv_pf_packet {
    const struct sv_pf_quick *quick; /* instead of the payload; NULL: it is not decoded yet */
    uint32_t seq_id, flags, clock_id, machine_id, dropped;
    uint32_t payload_id; /* 0: none */
    uint32_t n_interned, n_defaults;
    bool has_timestamp, has_sequence;
    uint64_t timestamp; /* from here on not cleared */
    struct sv_pf_blob payload, interned, defaults, whole;
};

struct sv_pf_event_in { /* a TrackEvent, decoded except for its arguments */
    uint32_t type;
    uint32_t n_categories; /* 2 and more: joined later */
    bool has_time, has_track, has_counter, has_double_counter, has_legacy, has_thread_ns;
    bool has_instructions;
    bool is_rare; /* has fields that need a second look */
    bool has_flows;
    uint64_t name_iid;
    sv_str name, cat;
    uint32_t name_len;        /* of name_text */
    uint8_t flags;            /* enum sv_event_flag */
    const uint8_t *name_text; /* from here on not cleared */
    uint64_t track_uuid, category_iid;
    int64_t counter_i, thread_ns, instructions;
    double counter_d;
    struct sv_pf_blob legacy;
};

struct sv_pf_chunk { /* a batch in a list */
    struct sv_batch batch;
    struct sv_pf_chunk *next;
};

struct sv_pf_count {
    uint64_t n;
    int64_t first_pos;
};

struct sv_pf_unpacker; /* the decompressor of formats/perfetto/read.c */
struct sv_pf_gpu;      /* the state of formats/perfetto/read_gpu.c */
struct sv_pf_losses;   /* the newest TraceStats */

struct sv_pf {
    struct sv_source source;
    struct sv_dict *dict;
    struct sv_report *report;
    struct sv_input *in;
    uint32_t space;
    struct sv_arena arena;            /* tracks, sequences, clocks: live as long as the reader */
    struct sv_once_paths *once_paths; /* NULL: the file has every path */

    struct sv_workers *workers; /* NULL: one thread */
    size_t block_bytes;         /* of packets, about */
    struct sv_line *line;       /* of blocks; made by the first call */
    struct sv_pf_block *block;  /* the one at hand; NULL: none yet */
    bool is_single;             /* packets are read one by one, until the input is sound again */
    uint64_t single_until;      /* the position from where it is believed to be */

    struct sv_batch *b;   /* where events go now */
    struct sv_batch *out; /* the batch of this call */
    struct sv_pf_chunk *spill, *spill_last, *in_flight, *free_chunks;
    struct sv_pf_state *graveyard[SV_PF_GRAVES]; /* cleared while texts of it were in use */
    size_t n_graveyard;

    /* the packet at hand */
    int64_t pos; /* its byte position */
    struct sv_pf_seq *seq;
    int64_t ts_ns;
    uint32_t damage;   /* how often frames were lost so far */
    bool has_time;     /* of GPU packets */
    bool copy_texts;   /* the events wait: the window will be gone when they leave */
    int64_t latest_ns; /* the newest trace time seen */
    bool has_latest;

    struct sv_pf_machine **machines;
    size_t n_machines, cap_machines;
    struct sv_map sequences;  /* machine and id → struct sv_pf_seq * */
    struct sv_map flow_owner; /* legacy flow id → whose it is */
    size_t n_sequences;
    uint32_t n_moves; /* of threads to a process that was described late */
    uint32_t seq_cached_machine, seq_cached_id;
    struct sv_pf_seq *seq_cached;
    struct sv_pf_seq *near_sequences[SV_PF_NEAR_SEQUENCES]; /* of the first machine, by number */
    struct sv_pf_clocks clocks;
    struct sv_pf_unpacker *unpacker;
    struct sv_pf_gpu *gpu;
    struct sv_pf_losses *losses;

    struct sv_pf_count payloads
        [SV_PF_SKIPPED_IDS]; /* skipped packets by payload number; [0] the numbers past it */
    uint32_t payloads_end;   /* after the largest that was counted */
    struct sv_pf_count event_fields[64]; /* skipped fields of TrackEvent; [0] the numbers past it */
    bool is_finished;
    struct {
        sv_str value, file, function, line, loss, loss_category, loss_count, loss_span;
    } str;
};
