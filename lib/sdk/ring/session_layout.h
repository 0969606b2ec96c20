/* The files of a session: what the traced process writes and what its writer, a collector or `stave
 * recover` reads.
 *
 *   DIR/session   struct sv_session_file: who, which clock, how much of the output is whole
 *   DIR/names     a log of struct sv_name_head records: call sites and tracks
 *   DIR/ring.N    struct sv_ring, then `size` bytes of records
 *   MORE/ring.N   the same, where DIR had no space for it
 *   DIR/PID-…/    a client: another process with the same files, whose rings the collector of DIR
 *                 empties into its output
 *
 * Readers must trust nothing in them: another process wrote them, and may have died at any
 * instruction. */
#pragma once

#include "core/files/process_id.h"

#include <stdalign.h>
#include <stdatomic.h>
#include <stdint.h>

#define SV_SESSION_MAGIC  0x31535645u /* "EVS1" */
#define SV_RING_MAGIC     0x31525645u
#define SV_LAYOUT_VERSION 6u

enum {
    SV_RINGS_MAX = 4096,
    SV_PATH_MAX = 1024,
    SV_PAGE = 4096,
    SV_RING_BLOCKS = 16,
    SV_GIVEN_NAME = 128 /* of a thread or process: bytes, with its end */
};
#define SV_RING_BYTES_MIN ((uint64_t)16 << 10)
#define SV_RING_BYTES_MAX ((uint64_t)1 << 30)

/* ---- records ---- */

/* Every record is two words and n_args words, then text padded to 8. Word 0, from the low bits:
 * site id 32, kind 8, n_args 8, size of the record in words 16. Word 1: the raw time. The word of a
 * text: length in the low half. */
#define SV_WORD(site, kind, n_args, words) \
    ((uint64_t)(site) | (uint64_t)(kind) << 32 | (uint64_t)(n_args) << 40 | (uint64_t)(words) << 48)
#define SV_RECORD_BYTES_MAX 65536u /* of one record, its text included */
enum { SV_RECORD_HEAD = 16 };

static inline uint32_t sv_word_site(uint64_t w)
{
    return (uint32_t)w;
}
static inline unsigned sv_word_kind(uint64_t w)
{
    return (unsigned)(w >> 32) & 0xff;
}
static inline unsigned sv_word_args(uint64_t w)
{
    return (unsigned)(w >> 40) & 0xff;
}
static inline uint64_t sv_word_bytes(uint64_t w)
{
    return (w >> 48) * 8;
}

/* Which slice of a named track: where its begin is, as the ring's number and the position in it. An
 * end carries it (STAVE_I_SLICE), so that it closes this slice whatever else is open or was lost. 0
 * is none. */
enum { SV_SLICE_POS_BITS = 40 };

static inline uint64_t sv_slice_id(uint32_t ring, uint64_t pos)
{
    return (uint64_t)ring << SV_SLICE_POS_BITS |
           (pos / 8 & (((uint64_t)1 << SV_SLICE_POS_BITS) - 1));
}
static inline uint32_t sv_slice_ring(uint64_t id)
{
    return (uint32_t)(id >> SV_SLICE_POS_BITS);
}
static inline uint64_t sv_slice_pos(uint64_t id)
{
    return (id & (((uint64_t)1 << SV_SLICE_POS_BITS) - 1)) * 8;
}

/* ---- rings ---- */

enum sv_ring_state { SV_RING_FREE, SV_RING_LIVE, SV_RING_ENDED };

/* A slice of a named track whose begin is in the output and whose end is not. */
struct sv_mark_slice {
    uint64_t id;
    int64_t begin_ns;
    uint64_t owner; /* as in its record: STAVE_I_OWNER */
    uint32_t track, lane;
};
enum { SV_MARK_SLICES = 48 };

/* How far a round of the writer had read, how many of the losses it had written and which slices
 * were open then: see sv_session_file.round. */
struct sv_mark {
    _Atomic uint64_t round, pos;
    _Atomic uint64_t lost_full, lost_nested;
    uint64_t unused;
    int64_t until_ns;  /* no slice on a named track is later in the output */
    uint32_t n_lanes;  /* at most, of any track */
    uint32_t n_slices; /* past SV_MARK_SLICES: how many there were; only the first are recorded */
    struct sv_mark_slice slices[SV_MARK_SLICES];
};

/* What the output has of a ring, as plain numbers. */
struct sv_ring_progress {
    uint64_t pos, lost_full, lost_nested;
    const struct sv_mark *mark; /* where they are from, NULL: nothing was committed */
};

/* Overwrite: the oldest record of this session that is not counted as overwritten, and how many
 * are. The two belong together. */
struct sv_forgotten {
    _Atomic uint64_t oldest, lost;
};

struct sv_ring {
    uint32_t magic, version;
    uint64_t size; /* of the records' area, a power of two */
    uint32_t pid, number;
    _Atomic uint32_t state; /* enum sv_ring_state */
    _Atomic uint32_t owner; /* grows with each thread that takes the ring */
    _Atomic uint32_t tid;
    char comm[16];            /* the thread's name when it came */
    char name[SV_GIVEN_NAME]; /* given by hand, "": none */
    /* Written by the thread. Positions count bytes since the ring was made and never wrap. */
    alignas(64) _Atomic uint64_t head;
    _Atomic uint64_t lost_full, lost_nested;
    _Atomic uint64_t n_forgotten;     /* its lowest bit: which of the two counts */
    struct sv_forgotten forgotten[2]; /* the other one is written, so that a kill leaves a pair */
    /* overwrite: first record that begins in each block */
    _Atomic uint64_t block_first[SV_RING_BLOCKS];
    /* Written by the reader. */
    alignas(64) _Atomic uint64_t tail; /* the thread may write up to tail + size */
    struct sv_mark mark[2];
};
_Static_assert(sizeof(struct sv_ring) <= SV_PAGE, "records begin at the second page");

static inline void sv_ring_forget(struct sv_ring *r, uint64_t oldest, uint64_t lost)
{
    uint64_t n = atomic_load_explicit(&r->n_forgotten, memory_order_relaxed) + 1;
    atomic_store_explicit(&r->forgotten[n & 1].oldest, oldest, memory_order_relaxed);
    atomic_store_explicit(&r->forgotten[n & 1].lost, lost, memory_order_relaxed);
    atomic_store_explicit(&r->n_forgotten, n, memory_order_release); /* now it is so */
}

/* Of a thread that continues meanwhile, perhaps one that it has just replaced; `tries` bounds what
 * a ring full of noise can cost. */
static inline void sv_ring_forgot(const struct sv_ring *r, uint64_t *oldest, uint64_t *lost)
{
    for (int tries = 0; tries < 100; tries++) {
        uint64_t n = atomic_load_explicit(&r->n_forgotten, memory_order_acquire);
        *oldest = atomic_load_explicit(&r->forgotten[n & 1].oldest, memory_order_relaxed);
        *lost = atomic_load_explicit(&r->forgotten[n & 1].lost, memory_order_relaxed);
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(&r->n_forgotten, memory_order_relaxed) == n)
            return;
    }
}

/* ---- time ---- */

/* The counter and the trace clock (CLOCK_BOOTTIME) read together. */
struct sv_tick {
    uint64_t raw;
    int64_t boot_ns, mono_ns;
    int64_t uncertainty_ns;
};
enum { SV_TICKS_MAX = 64 };
enum sv_counter { SV_COUNTER_MONOTONIC, SV_COUNTER_CPU }; /* what raw times are */

/* ---- session ---- */

enum sv_session_state {
    SV_SESSION_CLOSED,
    SV_SESSION_OPEN,   /* it writes its own output (client: by now; its collector has left it) */
    SV_SESSION_CLIENT, /* its rings are emptied by its collector */
    SV_SESSION_DONE,   /* a client that has ended */
    SV_SESSION_OFF,    /* a client whose collector can write no more */
    SV_SESSION_KEPT    /* recovered, and left where it is */
};

/* The output has everything and is being replaced by a file of another size: all of it counts. */
#define SV_PART_WHOLE UINT64_MAX

struct sv_session_file {
    uint32_t magic, version;
    struct sv_process_id process;
    _Atomic uint32_t state;
    uint32_t counter; /* enum sv_counter */
    uint32_t full;    /* enum stave_full */
    _Atomic uint32_t n_rings;
    _Atomic uint64_t names_bytes; /* whole records in `names` */
    uint64_t unused;
    _Atomic uint64_t lost_output, n_events;
    /* The journal. Round r: marks and bytes[r & 1] are prepared, the output is written, round = r
     * makes it so. A reader believes bytes[round & 1] of the output, and of each ring the newest
     * mark whose round is not past it. */
    _Atomic uint64_t round;
    _Atomic uint64_t bytes[2]; /* or SV_PART_WHOLE */
    _Atomic uint64_t n_ticks;  /* ticks[0] is the first ever, the others the newest, in turn */
    struct sv_tick ticks[SV_TICKS_MAX];
    char out[SV_PATH_MAX];  /* final name */
    char part[SV_PATH_MAX]; /* growing name */
    char command[256];
    char name[SV_GIVEN_NAME]; /* of the process: given by hand, else of the program */
    char more[SV_PATH_MAX]; /* a second directory, for rings that found no space in DIR; "": none */
};
_Static_assert(sizeof(struct sv_session_file) <= 2 * SV_PAGE, "two pages");

/* ---- losses of those who have no ring ----
 *
 * The third page of the session file. Every forked process has it mapped, and counts in it what it
 * cannot record: a thread without a ring, a child that could not make a session. The marks say what
 * the output has of it, as those of the rings do. */
struct sv_lost_slot {
    _Atomic uint32_t pid; /* 0: free */
    uint32_t unused;
    _Atomic uint64_t lost;
    _Atomic uint64_t marked[2]; /* as of mark_round[] */
};
enum { SV_LOST_SLOTS = 126 }; /* the last one is for all processes that found no other */

struct sv_ringless {
    _Atomic uint64_t mark_round[2];
    _Atomic uint32_t has_said; /* one line per session, whoever says it */
    uint32_t unused[11];
    struct sv_lost_slot slots[SV_LOST_SLOTS];
};
_Static_assert(sizeof(struct sv_ringless) == SV_PAGE, "one page");
#define SV_RINGLESS_AT   (2 * SV_PAGE)
#define SV_SESSION_BYTES (SV_RINGLESS_AT + SV_PAGE)

static inline struct sv_ringless *sv_session_ringless(const struct sv_session_file *s)
{
    return (struct sv_ringless *)((uintptr_t)s + SV_RINGLESS_AT);
}

/* ---- names ---- */

enum sv_name_kind { SV_NAME_SITE = 1, SV_NAME_TRACK, SV_NAME_ORDER };

/* Followed by terminated texts. SITE: category, name, file, function, then n_args keys, then n_args
 * type bytes. TRACK: name, unit. ORDER: nothing, `value` is the order of track `id`. Padded to
 * 8. */
struct sv_name_head {
    uint32_t size; /* all of it */
    uint8_t kind;  /* enum sv_name_kind */
    uint8_t event; /* SITE: enum stave_kind; TRACK: enum sv_track_kind */
    uint8_t n_args;
    uint8_t pad;
    uint32_t id;
    uint32_t parent; /* TRACK */
    int64_t value;   /* SITE: line; TRACK: id of an async row; ORDER */
};
_Static_assert(sizeof(struct sv_name_head) == 24, "a whole number of words");
