/* The ring source: records of one process to events.
 *
 *     sv_drain_new → for each ring sv_drain_add_ring → per round: names, ticks, sv_drain_round(),
 *     sv_pump_round()
 *
 * Used by the writer thread on its own rings, and by collectors and recovery on those of others;
 * trusts nothing it reads. */
#pragma once

#include "core/stream/stream.h"
#include "sdk/drain/own_spans.h"
#include "sdk/emit/ticks.h"
#include "sdk/ring/session_layout.h"

struct sv_drain_ring {
    const struct sv_ring *ring;
    const uint8_t *data; /* mapped twice in a row */
    uint64_t size;
    uint64_t first;                   /* where reading began */
    uint64_t pos, end;                /* read so far; where this round ends */
    uint64_t stop;                    /* how far the plan goes: see drain_tracks.h */
    uint64_t waited;                  /* where it waited for another ring for a whole round */
    uint32_t number, edge, edges_end; /* the ring's own; the next of the plan and the last */
    const struct sv_mark *mark;       /* to continue from, until it is known; else NULL */
    uint32_t owner;                   /* of the track below */
    sv_track track;
    int64_t last_ns;
    uint64_t lost_full, lost_nested; /* already reported */
    uint64_t lost_overwritten;       /* to be reported */
    int64_t first_ns;                /* of the first record that was read */
    struct sv_own_spans own;         /* begins and ends on the track above */
};

/* What is before is not of this output. */
static inline void sv_drain_start_at(struct sv_drain_ring *r, uint64_t pos)
{
    r->first = r->pos = r->end = r->stop = pos;
}

/* Causes of losses, as they are in the output. */
#define SV_LOST_FULL   "ring full"
#define SV_LOST_NESTED "nested in a signal handler"
#define SV_LOST_OLD    "not kept by the flight recorder"

struct sv_drain;

/* Slices that do not nest with what else is on their track are put on lanes of it. */
struct sv_drain *sv_drain_new(struct sv_dict *dict, struct sv_report *report, uint32_t pid);
void sv_drain_free(struct sv_drain *d);
struct sv_source *sv_drain_source(struct sv_drain *d); /* next() gives 0 at the end of each round */

/* More of the log of names: whole records. Returns how many bytes were understood. */
size_t sv_drain_names(struct sv_drain *d, const uint8_t *bytes, size_t n);
void sv_drain_tick(struct sv_drain *d, const struct sv_tick *tick);
struct sv_ticks *sv_drain_ticks(struct sv_drain *d);

/* Reading begins at `pos`. The ring's number is the order of adding. */
struct sv_drain_ring *sv_drain_add_ring(struct sv_drain *d, const struct sv_ring *ring,
                                        const uint8_t *data, uint64_t size, uint64_t pos);
size_t sv_drain_n_rings(const struct sv_drain *d);
struct sv_drain_ring *sv_drain_ring(struct sv_drain *d, size_t i);

/* The rings are another process's: their records are copied to the window, which several sources
 * may share, before they are read. */
struct sv_ring_view;
void sv_drain_through(struct sv_drain *d, struct sv_ring_view *window);
size_t sv_drain_bytes(const struct sv_drain *d); /* memory held, besides the dictionary */

/* Stores how far ring i was read and what is open there in the older of its marks, for `round` of
 * the journal; called before the round is committed. */
void sv_drain_mark(const struct sv_drain *d, size_t i, struct sv_ring *ring, uint64_t round);
/* Recovery: reading continues after the mark. */
void sv_drain_resume(struct sv_drain *d, size_t i, const struct sv_mark *mark);
/* The same for the losses of those who have no ring: ringless.h. */
void sv_drain_mark_ringless(const struct sv_drain *d, struct sv_session_file *session,
                            uint64_t round);
void sv_drain_resume_ringless(struct sv_drain *d, uint64_t round);

/* A new round: everything committed until now. Returns its bytes. */
uint64_t sv_drain_round(struct sv_drain *d);
void sv_drain_hold(struct sv_drain *d); /* nothing of it, before any of it was read */

void sv_drain_name_thread(struct sv_drain *d, struct sv_drain_ring *r, const char *name);
/* Reports losses without a ring as well. */
void sv_drain_watch(struct sv_drain *d, const struct sv_session_file *session);
void sv_drain_with_source(struct sv_drain *d,
                          bool on);                 /* file, function and line with every event */
void sv_drain_from(struct sv_drain *d, int64_t ns); /* what is older is left out */
struct sv_drain_names;
const struct sv_drain_names *sv_drain_all_names(const struct sv_drain *d);
