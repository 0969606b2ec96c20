/* Triton's TraceSetting over gRPC: its messages as the JSON of /v2/trace/setting, and back. */
#pragma once

#include "core/base/buf.h"
#include "core/base/err.h"

/* A TraceSettingRequest: the body for sv_trace_set() into `json`, and the model (bytes of the
 * message; empty: the server). `wants`: it sets something. */
struct sv_trace_asked {
    const char *model;
    size_t model_len;
    bool wants;
};
int sv_trace_proto_read(const uint8_t *bytes, size_t len, struct sv_trace_asked *out,
                        struct sv_buf *json, struct sv_err *err);
/* The page of sv_page_trace() as a TraceSettingResponse. */
void sv_trace_proto_write(const struct sv_buf *json, struct sv_buf *out);
