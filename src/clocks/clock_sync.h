/* Clock synchronisation: from exchanged pings to the offset between two clocks, with a bound that
 * holds.
 *
 *     a ping: `local` sends at t1, `remote` receives at t2 and answers at t3, `local` receives at
 *     t4
 *     offset = remote − local.  No message arrives before it was sent:  t3 − t4 ≤ offset ≤ t2 − t1
 *
 * Pings that follow each other closely are a round. Each gives such an interval, and while the
 * rates of the two clocks differ by no more than SV_SYNC_RATE_PPM all of them hold at one moment, a
 * little wider. Their intersection is the round: about half of the shortest round trip to each
 * side, however uneven the two ways are.
 *
 * Between rounds the offset is on the line between them. It leaves the line by no more than
 * SV_SYNC_WANDER_PPM of the distance (the rate of a crystal changes little within half a minute),
 * or by as much as the rounds themselves show: where the rates of neighbouring gaps contradict each
 * other, a clock was slewed or stepped in one of them, and the bound there covers the offset before
 * and after it. Before the first and after the last round it goes on at the average rate, and the
 * bound grows with the distance.
 *
 * Pure arithmetic: no clock is read here and nothing is sent (record/sync/ping.c does that). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SV_SYNC_RATE_PPM   500 /* the kernel adjusts a clock's rate by no more */
#define SV_SYNC_WANDER_PPM 1   /* within a gap, around its average */

struct sv_ping {
    int64_t t1, t2, t3, t4;
};

/* What one round says: at this local time the offset was in [low, high]. */
struct sv_sync_round {
    int64_t at_ns, low_ns, high_ns;
};

/* False: no ping is usable (one that arrived before it was sent, or answered before it came). */
bool sv_sync_round_of(const struct sv_ping *pings, size_t n, struct sv_sync_round *out);

struct sv_sync_point {
    int64_t at_ns;     /* local */
    int64_t offset_ns; /* remote − local, by best knowledge */
    int64_t bound_ns;  /* at this point the true offset is not further away */
    int64_t gap_ns;    /* the same between this point and the next */
};

/* The offset over time. */
struct sv_sync {
    struct sv_sync_point *points; /* at_ns grows */
    size_t n;
    double drift;    /* ns per ns, over all; 0 with one point */
    bool is_stepped; /* some gap cannot be explained by a steady rate */
};

/* Sorts the rounds. Rounds that others make superfluous are left out: a wide one (a busy network)
 * between two narrow ones. */
void sv_sync_fit(struct sv_sync *s, struct sv_sync_round *rounds, size_t n);
void sv_sync_fini(struct sv_sync *s);

/* At any local time; the bound is INT64_MAX where it exceeds the range. Needs a point. */
struct sv_sync_point sv_sync_at(const struct sv_sync *s, int64_t local_ns);
/* The greatest bound from one local time to another. */
int64_t sv_sync_bound(const struct sv_sync *s, int64_t from_ns, int64_t to_ns);
