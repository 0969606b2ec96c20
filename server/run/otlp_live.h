/* Spans of the trace to an OpenTelemetry collector while the server runs: OTLP over HTTP (protobuf)
 * or gRPC (otlp_way.h).
 *
 *     sv_otlp_live_open("http://127.0.0.1:4318", &o, &err);   or grpc://127.0.0.1:4317
 *     sv_otlp_live_put(o, &ended);            each request and batch; never waits
 *     sv_otlp_live_close(o);                  what is left is sent, for a few seconds at most
 *
 * Between the two there is a queue of 4 MiB. A thread sends it; what a collector does not take it
 * tries again, later and later. What finds the queue full is lost and counted. */
#pragma once

#include "core/base/buf.h"
#include "core/base/err.h"

#include <stave/serving.h>

struct sv_otlp_live;

/* SV_EUSAGE: it is no such URL. Whether anybody answers there is not asked. */
int sv_otlp_live_open(const char *url, struct sv_otlp_live **out, struct sv_err *err);
void sv_otlp_live_put(void *live, const struct stave_serving_ended *what);
void sv_otlp_live_close(struct sv_otlp_live *o);                       /* NULL: nothing */
void sv_otlp_live_metrics(struct sv_otlp_live *o, struct sv_buf *out); /* NULL: nothing */
