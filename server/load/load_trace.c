/* The trace of stave-load: one slice per request on the row of its connection, and the header that
 * makes the server's span its child.
 *
 * Only with --trace. The request's bytes are copied, as each has ids of its own. */
#include "server/load/load_plan.h"

#include <stave/stave.h>
#include <stdio.h>
#include <string.h>

#define CATEGORY "load"

int sv_load_trace_start(const char *path, struct sv_err *err)
{
    struct stave_options o = {.size = sizeof o, .out = path, .full = STAVE_FULL_BLOCK};
    struct stave_error error;
    if (stave_start(&o, &error) == 0) {
        stave_set_process_name("stave-load");
        return 0;
    }
    return sv_error(err, SV_EIO, "--trace: %.400s", error.text);
}

int sv_load_trace_stop(struct sv_err *err)
{
    return stave_stop() == 0 ? 0 : sv_error(err, SV_EIO, "the trace is not complete");
}

void sv_load_trace_begin(struct sv_load_span *s, const struct sv_buf *body, uint32_t connection)
{
    char parent[STAVE_TRACEPARENT_SIZE], name[32];
    const char *line = memchr(body->data, '\n', body->len); /* of the request */
    size_t first = line ? (size_t)(line + 1 - (const char *)body->data) : 0;
    if (!s->track) {
        snprintf(name, sizeof name, "connection %u", connection + 1);
        s->track = stave_track(STAVE_PROCESS, name);
        stave_set_track_order(s->track, connection);
        sv_buf_init(&s->bytes, (size_t)1 << 30);
    }
    stave_trace_context_new(NULL, &s->context);
    stave_traceparent_write(&s->context, parent);
    s->bytes.len = 0;
    sv_buf_add(&s->bytes, body->data, first);
    sv_buf_printf(&s->bytes, "traceparent: %s\r\n", parent);
    sv_buf_add(&s->bytes, body->data + first, body->len - first);
    s->start_ns = stave_now_ns();
}

void sv_load_trace_end(const struct sv_load_span *s, enum sv_outcome outcome, int status)
{
    static const char *const names[SV_LOAD_OUTCOMES] = {"ok", "rejected", "failed", "no answer"};
    char parent[STAVE_TRACEPARENT_SIZE]; /* 00-TRACE-SPAN-FLAGS */
    stave_traceparent_write(&s->context, parent);
    parent[35] = parent[52] = '\0';
    stave_complete(s->track, CATEGORY, "request", s->start_ns, stave_now_ns() - s->start_ns,
                   "outcome", names[outcome], "status", status, "trace_id", parent + 3, "span_id",
                   parent + 36, STAVE_FLOW_OUT, stave_trace_flow(&s->context));
}
