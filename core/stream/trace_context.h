/* W3C trace context: the header traceparent ("00-TRACE_ID-SPAN_ID-FLAGS", lower-case hexadecimal),
 * and the flow that leaves a span.
 *
 * Everything that knows the ids of a span gives its outgoing flow the same number, so that an arrow
 * leads from a span of OpenTelemetry to what libstave recorded in the process that was called, and
 * back. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SV_TRACE_ID_BYTES = 16, SV_SPAN_ID_BYTES = 8, SV_TRACEPARENT_LEN = 55 };

/* False: it is not valid, and the ids are not changed. Later versions may have more after a
 * dash. */
bool sv_traceparent_read(const char *text, size_t len, uint8_t trace_id[SV_TRACE_ID_BYTES],
                         uint8_t span_id[SV_SPAN_ID_BYTES], uint8_t *flags);
void sv_traceparent_write(char text[SV_TRACEPARENT_LEN + 1],
                          const uint8_t trace_id[SV_TRACE_ID_BYTES],
                          const uint8_t span_id[SV_SPAN_ID_BYTES], uint8_t flags);

/* The number of the flow from this span to what follows from it; never 0. */
uint64_t sv_trace_flow(const uint8_t trace_id[SV_TRACE_ID_BYTES],
                       const uint8_t span_id[SV_SPAN_ID_BYTES]);

/* Are there other bytes than 0? Ids of zeros are not valid. */
bool sv_is_id(const uint8_t *id, size_t n);
