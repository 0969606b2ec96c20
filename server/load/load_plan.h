/* stave-load: arrivals (when), drive (the connections), summary (what came of it). One thread, one
 * epoll. */
#pragma once

#include "core/base/buf.h"
#include "core/base/err.h"

#include <netinet/in.h>
#include <stave/trace_context.h>

#define SV_LOAD_BODIES 16 /* different inputs, used in turn */

struct sv_target {
    struct sockaddr_in address;
    char host[64]; /* host:port, for the header */
    char model[104];
    char input[64];
    uint32_t dims[3], n_dims;
    size_t in_size;
};

/* When requests leave: NULL times mean a closed loop, each connection sends when its answer is
 * there. */
struct sv_arrivals {
    int64_t *times_ns; /* since the start, ascending */
    uint64_t n;
};

enum sv_outcome { SV_LOAD_OK, SV_LOAD_REJECTED, SV_LOAD_FAILED, SV_LOAD_BROKEN, SV_LOAD_OUTCOMES };

struct sv_load_tally {
    uint64_t sent, counts[SV_LOAD_OUTCOMES];
    int64_t *latencies_ns; /* of the good answers */
    uint64_t n, cap;
    uint64_t batch_rows; /* sum over answers of the size of their batch */
    int64_t elapsed_ns;
    char first_error[256];
};

struct sv_drive {
    const struct sv_target *target;
    struct sv_buf *bodies; /* whole requests with their headers */
    uint32_t n_bodies;
    struct sv_arrivals arrivals;
    uint32_t concurrency;
    int64_t timeout_ns, duration_ns; /* duration 0: until all are sent */
    bool is_traced;                  /* between sv_load_trace_start() and _stop() */
};

/* load_target.c: the target's address, readiness and model, by plain blocking requests. */
int sv_target_open(const char *url, const char *model, double wait_seconds, struct sv_target *t,
                   struct sv_err *err);

/* arrivals.c */
void sv_arrivals_regular(struct sv_arrivals *a, uint64_t n, double rate);
void sv_arrivals_poisson(struct sv_arrivals *a, uint64_t n, double rate, uint64_t seed);
int sv_arrivals_schedule(struct sv_arrivals *a, const char *path, struct sv_err *err);

/* drive.c */
int sv_drive_run(const struct sv_drive *d, struct sv_load_tally *out, struct sv_err *err);

/* load_trace.c: --trace. A request's span, on the row of its connection. */
struct sv_load_span {
    struct stave_trace_context context;
    stave_track_t track;
    struct sv_buf bytes; /* the request with its traceparent */
    int64_t start_ns;
};
int sv_load_trace_start(const char *path, struct sv_err *err);
int sv_load_trace_stop(struct sv_err *err);
void sv_load_trace_begin(struct sv_load_span *s, const struct sv_buf *body, uint32_t connection);
/* status 0: no answer. */
void sv_load_trace_end(const struct sv_load_span *s, enum sv_outcome outcome, int status);

/* load_tally.c */
void sv_load_tally_sort(struct sv_load_tally *t);
double sv_load_tally_ms(const struct sv_load_tally *t,
                        double percentile); /* linear between ranks */
double sv_load_tally_mean_ms(const struct sv_load_tally *t);
double sv_load_tally_rate(const struct sv_load_tally *t);
void sv_load_tally_json(const struct sv_load_tally *t, struct sv_buf *out);
void sv_load_tally_text(const struct sv_load_tally *t, struct sv_buf *out);
