/* batching_trace.json: the batching pipeline as Chrome trace events, in the layout that servers'
 * users know.
 *
 * One process; the tracks request enqueued (1), batch (2), dynamic batching (3), batch submitted
 * (4), congestion (5); worker W has the tid 10 + 1000 W and a lane more for each batch that runs
 * beside another. docs/serving.md describes every event. */
#pragma once

#include "core/base/json.h"
#include "core/base/map.h"
#include "core/serving/life.h"

struct sv_batching_json {
    struct sv_buf out;    /* what is not in the file yet */
    struct sv_map labels; /* tid → hash of the name that it has in the file */
    int64_t origin_ns;    /* time 0 of the file */
    int64_t congested_ns; /* since when; 0: it is not */
    int64_t last_ns;
    uint64_t n_requests; /* whose spans are in the file: the newest one's id */
    bool is_newer;       /* names and order of members of the newer servers */
    bool without_spans;  /* of requests */
    bool has_event, has_congestion_track;
    bool is_lossy; /* the buffer's limit was reached: should not happen between two flushes */
};

#define SV_BATCHING_JSON_CLOSING "\n]\n}\n"

struct sv_batching_json_options {
    const char *server;
    int64_t origin_ns, origin_unix_ns;
    bool is_newer, without_spans;
};

/* The head of the file is in `out` then. */
void sv_batching_json_init(struct sv_batching_json *j, const struct sv_batching_json_options *o);
void sv_batching_json_fini(struct sv_batching_json *j);
void sv_batching_json_report(struct sv_batching_json *j, struct sv_life *l,
                             enum sv_life_moment moment, int64_t time_ns,
                             const struct sv_life_request *r, const struct sv_life_batch *b);
/* LEFT_OUT. */
void sv_batching_json_left_out(struct sv_batching_json *j, const struct sv_life *l,
                               const struct sv_life_call *c);
/* A step of an engine: tids 6 to 9 for the first four engines. */
void sv_batching_json_step(struct sv_batching_json *j, const struct sv_life_step *step);
