/* The frame of sinks that write text: see text_sink.h. Called by the pump. */
#include "core/stream/text_sink.h"

#include "core/base/mem.h"

#include <stdlib.h>

#define PASS_BYTES ((size_t)1 << 16)

static int text_write(struct sv_sink *sink, const struct sv_event *events, size_t n,
                      struct sv_err *err)
{
    struct sv_text_sink *s = (struct sv_text_sink *)sink;
    for (size_t i = 0; i < n; i++)
        s->kind->event(s, &events[i]);
    if (s->buf.failed || s->is_over)
        return sv_error(err, SV_ELIMIT, "%s", s->kind->too_much);
    if (s->buf.len >= PASS_BYTES)
        sv_output_pass_on(s->out, &s->buf);
    return sv_output_failure(s->out, err);
}

static int text_flush(struct sv_sink *sink, struct sv_err *err)
{
    struct sv_text_sink *s = (struct sv_text_sink *)sink;
    sv_output_pass_on(s->out, &s->buf);
    return sv_output_flush(s->out, err);
}

static int text_close(struct sv_sink *sink, bool failed, struct sv_err *err)
{
    struct sv_text_sink *s = (struct sv_text_sink *)sink;
    if (!failed && s->kind->end)
        s->kind->end(s);
    if (!failed)
        sv_output_pass_on(s->out, &s->buf);
    int code = sv_output_end(s->out, failed, err);
    if (s->kind->fini)
        s->kind->fini(s);
    sv_buf_fini(&s->buf);
    free(s);
    return code;
}

void *sv_text_sink_open(const struct sv_text_kind *kind, struct sv_output *out,
                        struct sv_dict *dict, struct sv_report *report, struct sv_sink **sink)
{
    struct sv_text_sink *s = sv_alloc(kind->size);
    s->sink = (struct sv_sink){.write = text_write,
                               .close = text_close,
                               .flush = kind->flushes ? text_flush : NULL,
                               .file = kind->flushes ? out : NULL,
                               .takes = kind->takes};
    s->kind = kind;
    s->out = out;
    s->dict = dict;
    s->report = report;
    sv_buf_init(&s->buf, kind->limit);
    *sink = &s->sink;
    return s;
}
