/* How spans get to a collector: one attempt over HTTP (protobuf) or gRPC. What is tried again, and
 * when, is for otlp_live.c. Waits, within its limit; one thread at a time. */
#pragma once

#include "core/base/buf.h"
#include "core/base/err.h"

struct sv_otlp_way;

/* http://HOST[:4318][/v1/traces] or grpc://HOST[:4317]. SV_EUSAGE: it is neither; SV_EIO: there is
 * no gRPC here. Whether anybody answers there is not asked. */
int sv_otlp_way_open(const char *url, struct sv_otlp_way **out, struct sv_err *err);
void sv_otlp_way_close(struct sv_otlp_way *w); /* NULL: nothing */

/* `request` is an ExportTraceServiceRequest. 0: taken, but for *rejected spans. SV_EAGAIN: it may
 * be taken later, not before *asked_s. SV_EIO: it is refused for good. */
int sv_otlp_way_send(struct sv_otlp_way *w, const struct sv_buf *request, int64_t limit_ms,
                     uint64_t *rejected, unsigned *asked_s, struct sv_err *err);
