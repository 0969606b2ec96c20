/* Clocks: what timestamps mean, and how the clocks of a run relate.
 *
 * Sources convert what they read to the trace clock before an event leaves them. The snapshots stay
 * here, so that sinks can store them and merge can relate two files. Clock numbers are Perfetto's
 * built-in ones (1..63); 0 means "unknown origin": a file whose timestamps count from nowhere in
 * particular (most Chrome JSON). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sv_clock {
    SV_CLOCK_UNKNOWN = 0,
    SV_CLOCK_REALTIME = 1,
    SV_CLOCK_REALTIME_COARSE = 2,
    SV_CLOCK_MONOTONIC = 3,
    SV_CLOCK_MONOTONIC_COARSE = 4,
    SV_CLOCK_MONOTONIC_RAW = 5,
    SV_CLOCK_BOOTTIME = 6,
    SV_CLOCK_TSC =
        9 /* in ticks, as Perfetto's own recorder stores it: a fit's drift gives its rate */
};

struct sv_reading {
    uint32_t clock;
    int64_t ns; /* in nanoseconds whatever the clock's own unit; the TSC's ticks */
};

#define SV_READINGS_MAX 16

/* What the kernel knew of its wall clock (adjtimex): is something keeping it to the true time, and
 * how wrong is it at most? */
enum sv_wall_state { SV_WALL_UNKNOWN = 0, SV_WALL_SYNCHRONISED = 1, SV_WALL_FREE = 2 };

/* Clocks read at (nearly) the same moment. */
struct sv_snapshot {
    struct sv_reading readings[SV_READINGS_MAX];
    uint32_t n;
    uint32_t wall_state;    /* enum sv_wall_state */
    int64_t uncertainty_ns; /* half the width of the bracket (A, B, A); -1 unknown */
    int64_t wall_error_ns;  /* against true time; means nothing while wall_state is unknown */
};

struct sv_clocks {
    uint32_t trace_clock; /* the clock all events are on */
    struct sv_snapshot *snapshots;
    size_t n, cap;
};

void sv_clocks_fini(struct sv_clocks *c);
void sv_clocks_add(struct sv_clocks *c, const struct sv_snapshot *s);

const char *sv_clock_name(uint32_t clock);

/* The value of `clock` in a snapshot. */
bool sv_snapshot_get(const struct sv_snapshot *s, uint32_t clock, int64_t *ns);

/* Fills in what this machine's kernel says about its wall clock now. */
void sv_snapshot_read_wall(struct sv_snapshot *s);
/* What a file says about it; a negative error, or a state that does not exist, is nothing. */
void sv_snapshot_set_wall(struct sv_snapshot *s, uint64_t state, int64_t error_ns);

/* Converts a time between two clocks of one run: by the latest snapshot at or before it that has
 * both clocks (the earliest one for times before all of them). False when no snapshot has both. */
bool sv_clocks_convert(const struct sv_clocks *c, uint32_t from, uint32_t to, int64_t ns,
                       int64_t *out);

/* How two clocks of one run relate: to = from + offset + drift × (from − at), over all snapshots
 * that have both. */
struct sv_clock_fit {
    int64_t offset_ns, at_ns;
    double drift;           /* ns per ns */
    int64_t uncertainty_ns; /* worst residual plus the snapshots' own; -1 unknown */
    size_t n_snapshots;
};
bool sv_clocks_fit(const struct sv_clocks *c, uint32_t from, uint32_t to, struct sv_clock_fit *fit);
/* False: there is no such time. */
bool sv_clock_fit_apply(const struct sv_clock_fit *fit, int64_t from_ns, int64_t *to_ns);
