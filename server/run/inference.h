/* An inference between a front and the queue: what HTTP and gRPC share.
 *
 *     struct sv_inference *i = …;                      the front's, with `asked` filled
 *     sv_inference_begin(i, engine, caller, …);
 *     if (!sv_queue_push(i->model, &i->served)) …      else done() comes, on any thread
 *     sv_inference_answer(i, &answer);
 *     sv_inference_over(i, …);
 *     sv_inference_fini(i); */
#pragma once

#include "server/run/engine.h"

struct sv_inference {
    struct sv_model *model;
    struct sv_infer_request asked;
    struct sv_served served;
    int64_t read_ns, parse_ns, serialise_ns; /* how long the front took; 0: not known */
    int64_t sending_ns;                      /* when the answer was ready; 0: not known */
};

/* The headers traceparent and tracestate as they came; parent NULL: none. */
struct sv_caller_headers {
    const char *parent, *state;
    size_t parent_len, state_len;
};

/* A number, whether it is traced, and who calls. `owner` has is_gone() and done(). */
void sv_inference_begin(struct sv_inference *i, const struct sv_caller_headers *headers,
                        bool (*is_gone)(const struct sv_served *r),
                        void (*done)(struct sv_served *r), void *owner);
/* The header traceparent of its answer; false: it has none. */
bool sv_inference_traceparent(const struct sv_inference *i, char text[STAVE_TRACEPARENT_SIZE]);
/* Of one that was computed. */
struct sv_infer_answer sv_inference_answer(const struct sv_inference *i);
/* Why the queue did not take it; *is_full: there is no space, else the server is not ready. */
const char *sv_inference_refusal(const struct sv_inference *i, bool *is_full);
/* The front is done with it: what it took outside of the queue goes into the trace. is_written: all
 * of its answer was, just now. */
void sv_inference_over(const struct sv_inference *i, bool is_written);
void sv_inference_fini(struct sv_inference *i);

#define SV_SAYS_DROPPED "the server stopped before this request's turn"
#define SV_SAYS_FAILED  "the batch could not be computed"
#define SV_SAYS_UNREADY "the server is not ready"
