/* Congestion: is more coming than can be done? Decided once per tick from a few averages, with
 * hysteresis.
 *
 * Pressure: arrivals exceed completions (ρ), or the queue is full and growing, or latency nears its
 * goal; it must last. A rejection is congestion at once. Pure arithmetic, no clock and no lock of
 * its own. */
#pragma once

#include "server/server_config.h"

struct sv_congestion_sample {
    uint64_t arrived, completed, rejected; /* since the last tick */
    double fill;                           /* queue: 0..1 */
    double inflight;                       /* batches in work over their limit: 0..1 */
    double p95_ms;                         /* of this tick's requests, 0 when there were none */
};

struct sv_congestion {
    const struct sv_congestion_config *config;
    double rho, fill; /* averages */
    double last_fill;
    int64_t pressed_ms, calm_ms; /* how long already */
    bool is_congested;
    enum { SV_PRESSURE_LOW, SV_PRESSURE_NONE, SV_PRESSURE_HIGH, SV_PRESSURE_SEVERE } pressure;
};

void sv_congestion_init(struct sv_congestion *g, const struct sv_congestion_config *config);
void sv_congestion_tick(struct sv_congestion *g, const struct sv_congestion_sample *s);

/* The adaptive strategy: from one target to the next, once per tick. */
int64_t sv_congestion_target(const struct sv_congestion *g, int64_t target, int64_t min,
                             int64_t max);
