/* The time line of a server in the SDK's tracks: request rows with their phases, batches with an
 * arrow from each of their requests, worker lanes, counters. Made by the writing thread from the
 * same moments as the files. */
#pragma once

#include "core/base/buf.h"
#include "core/base/map.h"
#include "core/serving/life.h"

#include <stave/serving.h>

/* A counter that changes faster than this is recorded less often; the last value always is. */
#define SV_COUNTER_STEP_NS 500000

struct sv_server_counter {
    stave_track_t track;
    int64_t emitted_ns, time_ns; /* of the value below */
    int64_t value;
    bool is_pending;
};

enum { SV_ENGINE_FLOWS = 256 };

/* What engines need of it (engine_tracks.c). */
struct sv_engine_timeline {
    struct sv_server_counter running, tokens, kv, waiting;
    bool has_counters;
    stave_track_t token_track;
    struct sv_buf members;
    uint64_t flows[SV_ENGINE_FLOWS]; /* of requests that came into the step */
    uint32_t n_flows;
};

struct sv_timeline {
    const struct stave_serving *server; /* whose flows */
    stave_track_t group, requests, batches, workers, congestion;
    struct sv_server_counter queued, inflight, size, rejected;
    struct sv_map request_tracks, batch_tracks, worker_tracks; /* row, row, tid → track */
    struct stave_args args;
    struct sv_engine_timeline engine;
    int64_t congested_ns;
    uint64_t n_events, n_bytes; /* since the caller set them to 0; bytes: of long texts only */
};

void sv_timeline_init(struct sv_timeline *t, const struct stave_serving *server,
                      stave_track_t group);
void sv_timeline_fini(struct sv_timeline *t);
void sv_timeline_record(struct sv_timeline *t, struct sv_life *l, enum sv_life_moment moment,
                        int64_t time_ns, const struct sv_life_request *r,
                        const struct sv_life_batch *b);
/* Below the batch's slice on its worker's row, which is there. */
void sv_timeline_operators(struct sv_timeline *t, struct sv_life *l, uint64_t batch,
                           const struct stave_serving_operator *operators, uint32_t n);
/* The counters. */
void sv_timeline_count_moment(struct sv_timeline *t, const struct sv_life *l,
                              enum sv_life_moment moment, int64_t time_ns,
                              const struct sv_life_batch *b);
void sv_timeline_settle(struct sv_timeline *t); /* records the last values of counters */

/* ---- for engine_tracks.c ---- */

stave_track_t sv_timeline_request_track(struct sv_timeline *t, uint32_t row);
void sv_timeline_context(struct stave_args *a, const struct sv_life_context *c); /* NULL: none */
void sv_timeline_count(struct sv_timeline *t, struct sv_server_counter *c, int64_t time_ns,
                       uint64_t value);
