/*
 * Stave: W3C trace context, for programs that call each other over HTTP or gRPC.
 *
 *     struct stave_trace_context in, own;
 *     bool is_called = stave_traceparent_read(header, strlen(header), &in);   a request arrives
 *     stave_trace_context_new(is_called ? &in : NULL, &own);                  its own span
 *     stave_set_trace_context(&own);                                          for this thread
 *     …
 *     char out[STAVE_TRACEPARENT_SIZE];
 *     if (stave_trace_context(&own)) stave_traceparent_write(&own, out);      a request goes out
 *
 * The number of stave_trace_flow() connects spans with slices: a slice with the flow "in" of the
 * incoming context, and one with the flow "out" of its own, are joined by arrows to the spans of
 * OpenTelemetry that 'stave listen --otlp' and 'stave merge' bring into the same trace.
 */
#ifndef STAVE_TRACE_CONTEXT_H
#define STAVE_TRACE_CONTEXT_H

#include <stave/stave.h>

#ifdef __cplusplus
extern "C" {
#endif

struct stave_trace_context {
    uint8_t trace_id[16];
    uint8_t span_id[8];
    uint8_t flags; /* 1: the trace is sampled */
};

/* Bytes of a header's value with its terminating zero. */
#define STAVE_TRACEPARENT_SIZE 56

/* Reads the value of a header 'traceparent'. Returns false if it is not valid; the context is then
 * unchanged. */
STAVE_API bool stave_traceparent_read(const char *text, size_t len,
                                      struct stave_trace_context *context);
STAVE_API void stave_traceparent_write(const struct stave_trace_context *context,
                                       char text[STAVE_TRACEPARENT_SIZE]);

/* A new span: in the trace of its parent or, if that is NULL, in a new trace that is sampled. */
STAVE_API void stave_trace_context_new(const struct stave_trace_context *parent,
                                       struct stave_trace_context *context);

/* Copies the context of this thread. Returns false if it has none. */
STAVE_API bool stave_trace_context(struct stave_trace_context *context);
/* NULL: the thread has none from now on. */
STAVE_API void stave_set_trace_context(const struct stave_trace_context *context);

/* The number of the flow from this span to what follows from it. */
STAVE_API uint64_t stave_trace_flow(const struct stave_trace_context *context);

#ifdef __cplusplus
}
#endif

#endif
