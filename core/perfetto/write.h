/* The Perfetto writer's internal interfaces. One struct pf per open file.
 *
 *   core/perfetto/write.c         the sink: open, write, flush, close
 *   core/perfetto/write_shape.c   events: the cursor and the cache of compiled shapes
 *   core/perfetto/write_event.c   events that have no shape: every kind with flows, arguments, loss
 *   core/perfetto/write_args.c    arguments as debug annotations
 *   core/perfetto/write_track.c   track descriptors, substitutes for pids, sequences of tracks
 *   core/perfetto/write_intern.c  numbers for strings, per file; which sequence has interned which
 *   core/perfetto/write_block.c   packets to blocks to the output, compression, clocks, metadata,
 *                                 resync points
 *   core/perfetto/write_origin.c  times before zero: the origin of times, and files whose origin
 *                                 changes
 *
 * Words: a *window* is the part of the file between two resync points; nothing in it refers to an
 * earlier window. A *sequence* is Perfetto's: a stream of packets with its own state. Busy tracks
 * have one each, with the track as a default; all others share the first. A *number* (Perfetto:
 * iid) represents a string. A string has the same number on all sequences, but each sequence must
 * intern it. */
#pragma once

#include "core/base/map.h"
#include "core/base/wire.h"
#include "core/perfetto/proto.h"
#include "core/perfetto/stave.h"
#include "core/stream/writer.h"

/* Packets are handed to the output in blocks; compressed ones are larger (zstd has its best
 * parameters for this size, and Perfetto wants packets below 512 KB). */
enum { PF_BLOCK_BYTES = 128 << 10, PF_PACKED_BLOCK_BYTES = 256 << 10 };
enum {
    PF_RESYNC_BYTES = 4 << 20,  /* default distance of resync points */
    PF_EVENT_LIMIT = 128 << 20, /* a packet larger than this loses its arguments */
    PF_SEQUENCES_MAX = 256,     /* at once, the shared one included */
    PF_SEQUENCE_IDS = 1 << 17,  /* in all: readers keep something for each */
    PF_HOT_EVENTS = 8,          /* with so many a track gets its own sequence (threads at once) */
    PF_NUMBERS_MAX = 1 << 16,   /* of a kind in one window; reaching it ends the window */
    PF_POOL_SLOTS = 8192,       /* remembered texts and source locations, a power of two */
    PF_POOL_TEXT_MIN = 4,       /* shorter texts cost less than a number */
    PF_POOL_TEXT_MAX = 256,     /* longer ones are not remembered */
    PF_RECENT_BITS = 10,        /* 2^N sets of texts that are found by their address */
    PF_RECENT_WAYS = 4,
    PF_FLOWS_MAX = 1 << 18, /* flows whose begin is remembered */
    PF_ARG_DEPTH_MAX = 64,  /* nesting of annotations; protobuf readers give up at 100 */
    PF_PARENTS_MAX = 90     /* Perfetto: 100, less the rows a stage may add below */
};

/* What strings are numbered for; the first four are strings of the dictionary. */
enum pf_number {
    PF_NAME,
    PF_CATEGORY,
    PF_KEY,
    PF_TYPE, /* of a message in an annotation */
    PF_DICT_NUMBERS,
    PF_TEXT = PF_DICT_NUMBERS,
    PF_SOURCE,
    PF_NUMBERS
};

struct pf_bits {
    uint64_t *words;
    uint32_t n_words;
};

static inline bool pf_bits_has(const struct pf_bits *b, uint32_t i)
{
    return i >> 6 < b->n_words && (b->words[i >> 6] >> (i & 63) & 1);
}

void pf_bits_set(struct pf_bits *b, uint32_t i);

/* An argument of a shape: `bytes` from its tag to its value. */
struct pf_slot {
    sv_str key;
    uint8_t type, len;
    uint8_t bytes[8];
};

/* What events of one kind have in common on a sequence, compiled: `bytes` from the tag of the event
 * to its first argument. `rest` is category, kind, flags and number of arguments as the event has
 * them; 0: none yet. */
enum { PF_SHAPES = 128, PF_SHAPE_ARGS = 5 };
struct pf_shape {
    uint64_t rest;
    sv_str name;
    int8_t opens; /* slices: 1 begin, -1 end */
    uint8_t len;
    uint8_t bytes[16];
    struct pf_slot slots[PF_SHAPE_ARGS];
    uint8_t unused[16];
};
_Static_assert(sizeof(struct pf_shape) == 128, "an index becomes an address by a shift");

struct pf_sequence {
    uint32_t id;       /* trusted_packet_sequence_id, from 1 */
    uint32_t window;   /* in which it was last started */
    sv_track track;    /* whose it is; 0: shared */
    uint32_t n_events; /* in this window */
    int64_t last_ns;   /* the time of its incremental clock */
    uint8_t head[8];   /* field sequence id, encoded */
    uint8_t head_len;
    bool has_thread_time;                /* the defaults name the counter of thread time */
    struct pf_bits interned[PF_NUMBERS]; /* by number */
    struct pf_shape *shapes; /* PF_SHAPES, of what it has interned; NULL for the shared one */
};

/* The CPU time at which an open slice will end: begin events carry both, Perfetto wants it at the
 * end. */
struct pf_thread_end {
    uint32_t depth;
    int64_t ns;
};

struct pf_track {
    uint32_t window;   /* in which it was described, or put off */
    int32_t revision;  /* of the dictionary, at that time */
    uint32_t depth;    /* open slices */
    uint32_t n_events; /* stops counting at PF_HOT_EVENTS */
    uint64_t identity; /* of what Perfetto does not let change, 0: never described */
    struct pf_sequence *own;
    struct pf_thread_end *ends; /* NULL for most */
    uint32_t n_ends;
    uint16_t cap_ends;
    bool is_put_off; /* used, not described: its name may still come */
    bool is_parent;
    uint32_t thread_time_window; /* in which its thread-time counter was described */
};

struct pf_pool_slot {
    uint64_t hash;
    uint32_t number; /* 0: seen once */
    uint32_t len;
    const char *bytes; /* of numbered ones */
};

/* A numbered text and its address when it was last written: sources that keep their texts pass the
 * same pointer again. */
struct pf_recent {
    const char *text;  /* the source's; it may hold another text by now */
    const char *bytes; /* ours */
    uint32_t len, number;
};

struct pf_flow_use { /* how a flow number of the model is written */
    uint32_t generation;
    /* started by SV_ARG_FLOW_BEGIN: ends do not close it, so that it can fan out */
    bool is_explicit;
};

struct pf {
    struct sv_sink sink; /* first: the handle */
    struct sv_output *out;
    struct sv_dict *dict;
    struct sv_report *report;
    enum sv_compression compression;
    size_t block_bytes;
    uint64_t resync_bytes;
    uint32_t window;       /* from 1; 0 before the first packet */
    uint64_t window_bytes; /* handed to the output in this window, before compression */
    bool resyncs_at_flush; /* the next write begins a window */
    bool names_stages;     /* correlation numbers are those of GPU stages, too */
    uint32_t wire_clock;   /* the trace clock as it is written */
    /* what the file's own time line really is; 0: it is not used, or unknown */
    uint32_t alias_clock;
    /* That of sequences. In files that are joined each has its own: a sequence of the next one has
     * the number of another thread's in this one, and begins earlier. */
    uint32_t sequence_clock;
    int64_t origin_ns; /* 0 or below: the time that is written as 0 in this window */

    struct sv_buf block;    /* packets on their way */
    struct sv_buf grouped;  /* the same by sequence, where it is to be compressed */
    struct sv_buf packed;   /* and compressed */
    uint32_t *group_at;     /* by sequence id: where its next packet goes */
    struct sv_buf event;    /* TrackEvent being built */
    struct sv_buf interned; /* InternedData of its packet */
    struct sv_buf scratch;
    void *zlib, *zstd; /* z_stream, ZSTD_CCtx */

    struct pf_track *tracks; /* by sv_track */
    size_t n_tracks, cap_tracks;
    sv_track *put_off;
    size_t n_put_off, cap_put_off;
    struct pf_sequence *sequences[PF_SEQUENCES_MAX]; /* [0] is shared */
    uint32_t n_sequences;
    uint32_t n_sequence_ids; /* given so far */
    struct sv_map pids;      /* uuid of the process → pid as written */
    struct sv_map pids_used; /* pid as written → 1 */
    uint32_t next_pid;
    uint32_t root_window; /* in which uuid 0 was described */

    uint32_t *number_of[PF_DICT_NUMBERS]; /* by sv_str */
    size_t cap_number_of[PF_DICT_NUMBERS];
    sv_str *numbered[PF_DICT_NUMBERS]; /* by number - 1: what to forget at the end of the window */
    size_t cap_numbered[PF_DICT_NUMBERS];
    uint32_t n_numbers[PF_NUMBERS];
    struct pf_pool_slot *pool[2]; /* texts, source locations */
    struct sv_arena pool_bytes;
    struct pf_recent *recent; /* by address */
    struct sv_map flows;      /* flow → packed struct pf_flow_use */
    bool flows_forgotten;

    size_t n_snapshots;  /* of the dictionary's, written */
    int64_t snapshot_ns; /* trace clock of the last one */
    struct sv_meta *meta_written;
    uint32_t n_meta_written;
    size_t meta_bytes; /* of all, when they were last written */
    uint64_t n_losses;
    struct pf_bits sequence_lost; /* by id: something was lost on it */
    sv_str loss_category, loss_count, loss_span, thread_dur, null_type;
};

/* ---- packets to the output (core/perfetto/write_block.c) ---- */

/* A packet: interned data and payload where they are not empty, and the head: the fields beside
 * them. */
void pf_packet(struct pf *w, const struct sv_buf *head, const struct sv_buf *interned,
               uint32_t payload_field, const struct sv_buf *payload);
void pf_block_flush(struct pf *w);
int pf_block_init(struct pf *w, struct sv_err *err);
void pf_block_fini(struct pf *w);
void pf_window_begin(struct pf *w,
                     int64_t origin_ns); /* marker, clocks, metadata; forgets all numbers */
void pf_clock_put(struct sv_buf *b, uint32_t clock, uint64_t reading);
void pf_primary_put(const struct pf *w, struct sv_buf *b);
void pf_marker_write(struct pf *w);
void pf_snapshots_write(struct pf *w); /* those that are new in the dictionary */
void pf_meta_write(struct pf *w, bool changed_only);
void pf_stats_write(struct pf *w);

/* ---- where times count from (core/perfetto/write_origin.c) ---- */

/* A time as the file has it. */
static inline uint64_t pf_wire_ns(const struct pf *w, int64_t ns)
{
    return (uint64_t)ns - (uint64_t)w->origin_ns;
}

/* Times from `ns` on are going to be written: begins a window with an earlier origin if they need
 * one. */
void pf_origin_lower(struct pf *w, int64_t ns);
void pf_origin_write(struct pf *w); /* the origin of the window, unless it is 0 */
/* Writes packets whose times count from 0. */
void pf_packets_write(struct pf *w, const uint8_t *packets, size_t n);
/* The finished file once more, all of it with the last origin. What fails leaves the file as it
 * was, and is reported. */
void pf_origin_unify(struct pf *w);
void pf_origin_report(struct pf *w);

/* ---- numbers (core/perfetto/write_intern.c) ---- */

/* The number of a string of the dictionary; what the sequence has not interned is appended to
 * w->interned. */
uint32_t pf_number(struct pf *w, struct pf_sequence *s, enum pf_number kind, sv_str str);
/* The number of a text, 0: write it as it is. */
uint32_t pf_number_text(struct pf *w, struct pf_sequence *s, const char *text, size_t len);
/* The number of a text that got one in this window at the same address, else 0: the quick half of
 * pf_number_text(). */
static inline struct pf_recent *pf_recent_set(const struct pf *w, const char *text)
{
    uint64_t set = (uint64_t)(uintptr_t)text * 0x9e3779b97f4a7c15u >> (64 - PF_RECENT_BITS);
    return &w->recent[set * PF_RECENT_WAYS];
}

static inline uint32_t pf_number_recent(const struct pf *w, const char *text, size_t len)
{
    const struct pf_recent *r = pf_recent_set(w, text), *end = r + PF_RECENT_WAYS;
    while (r < end && r->text != text)
        r++;
    bool is_same = r < end && r->number && r->len == len && memcmp(r->bytes, text, len) == 0;
    return is_same ? r->number : 0;
}
/* The number of a source location, given as the fields of its message without the number. */
uint32_t pf_number_source(struct pf *w, struct pf_sequence *s, const struct sv_buf *message);
void pf_numbers_forget(struct pf *w);
void pf_numbers_fini(struct pf *w);
bool pf_numbers_full(const struct pf *w);
void pf_interned_clear(struct pf_sequence *s); /* the sequence has interned nothing */

/* ---- tracks and sequences (core/perfetto/write_track.c) ---- */

/* Makes the track usable in this window: describes it and its parents, or puts that off. */
void pf_track_prepare(struct pf *w, sv_track track);
void pf_tracks_describe_put_off(struct pf *w); /* at the end of a window */
/* at the end of the file: all that the dictionary holds */
void pf_tracks_describe_rest(struct pf *w);
void pf_tracks_fini(struct pf *w);
/* The sequence for an event of this track, started in this window. */
struct pf_sequence *pf_sequence_for(struct pf *w, sv_track track, int64_t ts_ns);
void pf_sequence_anchor(struct pf *w, struct pf_sequence *s, struct sv_buf *head, int64_t ns);
void pf_sequence_defaults(struct pf *w, const struct pf_sequence *s, struct sv_buf *head);
void pf_sequences_prune(struct pf *w); /* at the end of a window: cold tracks give theirs back */
/* The counter of thread time of this track: described once a window. */
uint64_t pf_thread_time(struct pf *w, struct pf_sequence *s, sv_track track);

static inline struct pf_track *pf_track_of(struct pf *w, sv_track track);
void pf_tracks_grow(struct pf *w, sv_track track);
void pf_track_forget(struct pf *w, sv_track track);

static inline struct pf_track *pf_track_of(struct pf *w, sv_track track)
{
    if (__builtin_expect(track >= w->n_tracks, 0))
        pf_tracks_grow(w, track);
    return &w->tracks[track];
}

/* ---- events (core/perfetto/write_shape.c, write_event.c, write_args.c) ---- */

void pf_events_write(struct pf *w, const struct sv_event *events, size_t n);
void pf_event_write(struct pf *w, const struct sv_event *e); /* the long way: any event */
/* One argument with a name, and what belongs to it, as DebugAnnotation into w->event. */
void pf_annotation(struct pf *w, struct pf_sequence *s, const struct sv_arg *a,
                   const struct sv_arg *end);
void pf_annotation_i64(struct pf *w, struct pf_sequence *s, sv_str key, int64_t value);
