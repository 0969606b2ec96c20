/* Who calls: the W3C trace context of a request, and the span that the server makes below it. */
#pragma once

#include <stave/trace_context.h>

struct sv_engine;

struct sv_caller {
    struct stave_trace_context own, caller;
    char state[]; /* the header tracestate as far as it is kept, or "" */
};

/* Of the headers traceparent and tracestate (NULL: there is none). NULL without a valid
 * traceparent, which is counted if there is one, and in a server that is not traced. To be freed
 * with free(). */
struct sv_caller *sv_caller_new(struct sv_engine *e, const char *parent, size_t parent_len,
                                const char *state, size_t state_len);
