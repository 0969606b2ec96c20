/* stave export --to otlp: slices as spans, into a file or to a collector.
 *
 *   export_otlp.c        which slices, and their ids
 *   export_otlp_requests.c  requests and batches that are known by their life, not as slices
 *   export_otlp_span.c   a slice as a span
 *   export_otlp_send.c   requests into a file or over HTTP */
#pragma once

#include "cmd/export.h"
#include "core/base/buf.h"
#include "core/base/map.h"
#include "core/stream/trace_context.h"
#include "formats/otlp/schema.h"
#include "store/trace.h"
#include "subjects/engine/llm.h"

bool sv_is_url(const char *output);
/* Before the trace is loaded: can it be written there? */
int otlp_check(const struct sv_export_options *o, struct sv_err *err);

/* ---- the parts, for each other ---- */

#define OTLP_NONE UINT32_MAX

struct otlp_chosen {
    uint32_t row, parent; /* parent: among the chosen, OTLP_NONE: none of them */
    uint32_t first_event; /* instants that name this span, in `events`; OTLP_NONE: none */
    uint32_t life;        /* a request that is known by its life: in `llm`; OTLP_NONE: a slice */
    uint32_t batch;       /* in `served`; OTLP_NONE: it is none. `row` is then a request's */
    uint32_t ids_row;     /* the slice that has its ids: mostly `row` */
    uint8_t trace_id[SV_TRACE_ID_BYTES], id[SV_SPAN_ID_BYTES];
    bool has_own; /* its ids are arguments */
};

struct otlp_instant {
    uint32_t row, next;
};

struct otlp_export {
    const struct sv_trace *t;
    const struct sv_dict *dict;
    const struct sv_export_options *o;
    struct sv_batch scratch;
    int64_t wall_ns;  /* is added to the trace's times */
    uint32_t *of_row; /* chosen, by row; OTLP_NONE: it is not */
    struct otlp_chosen *chosen;
    size_t n, cap;
    struct sv_map by_id;    /* span id → chosen */
    struct sv_map requests; /* number of a request, or hash of its name → chosen + 1 */
    struct sv_map
        called; /* number and arrival of a request → row + 1 of the slice with its trace context */
    struct sv_llm llm;
    struct sv_serving_report served; /* its batches only */
    struct sv_map batches;           /* number of a batch → chosen + 1 */
    struct otlp_instant *events;
    size_t n_events, cap_events;
    struct otlp_keys key;
    struct {
        sv_str batch_cat, request_cat, request_name, step_cat, step_name, request, request_id,
            members;
    } word;
    uint64_t n_early; /* slices before 1970, left out */
};

/* The row becomes a span with the ids of ids_row; `life`: as above. */
void otlp_choose(struct otlp_export *x, uint32_t row, uint32_t ids_row, uint32_t life);
void otlp_find_requests(struct otlp_export *x);
void otlp_put_life(const struct otlp_export *x, struct sv_buf *out, const struct otlp_chosen *c);
/* The spans of a request's batch, and of a batch's requests. */
void otlp_put_life_links(const struct otlp_export *x, struct sv_buf *out,
                         const struct otlp_chosen *c);
const char *otlp_life_name(const struct otlp_export *x, const struct otlp_chosen *c);
void otlp_life_times(const struct otlp_export *x, const struct otlp_chosen *c, int64_t *start_ns,
                     int64_t *end_ns);
/* What its slice or its requests do not give: neither of both. */
static inline bool otlp_is_life(const struct otlp_chosen *c)
{
    return c->life != OTLP_NONE || c->batch != OTLP_NONE;
}
bool otlp_is_request(const struct otlp_export *x, uint32_t row);
bool otlp_is_step(const struct otlp_export *x, uint32_t row);
void otlp_put_link(struct sv_buf *out, const struct otlp_chosen *to);
void otlp_make_ids(struct otlp_export *x, struct otlp_chosen *c, uint64_t id);
/* Appends the span, a field of ScopeSpans. */
void otlp_put_span(struct otlp_export *x, struct sv_buf *out, uint32_t chosen);

/* A time of the trace as a span's. */
static inline uint64_t wall_of(const struct otlp_export *x, int64_t ns)
{
    return (uint64_t)ns + (uint64_t)x->wall_ns;
}

struct otlp_out;
int otlp_out_open(const struct sv_export_options *o, struct otlp_out **result, struct sv_err *err);
/* A request as protobuf. */
int otlp_out_put(struct otlp_out *out, const struct sv_buf *request, struct sv_err *err);
/* *rejected: spans that the collector did not take. */
int otlp_out_close(struct otlp_out *out, bool failed, uint64_t *rejected, struct sv_err *err);
