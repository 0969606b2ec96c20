/* /api/cut: a window of the trace as a Perfetto file.
 *
 * The stages of a writer may add tracks and strings to the dictionary: nobody else may use the
 * trace meanwhile (viewer.c sees to that). */
#include "view/answers.h"

#include "core/stream/writer.h"
#include "store/filter.h"

static int write_window(struct sv_shown *s, const struct sv_filter *window, struct sv_buf *to,
                        struct sv_err *err)
{
    struct sv_report report;
    struct sv_output *out;
    struct sv_sink *sink;
    struct sv_dict *dict = s->trace->dict;
    int code = sv_output_open_buf(to, SV_PLAIN, &out, err);
    if (code < 0)
        return code;
    sv_report_init(&report);
    code = sv_perfetto_writer.open(out, NULL, dict, &report, &sink, err);
    if (code < 0) {
        sv_output_discard(out);
    } else {
        struct sv_source *source = sv_trace_source(s->trace, &report);
        sink = sv_pump_adapt(source->gives & ~SV_ORDER_BITS, sink, dict, &report, NULL);
        sink = sv_filter_new(dict, window, sink);
        code = sv_pump(source, sink, NULL, err);
    }
    sv_report_fini(&report);
    return code;
}

void sv_answer_cut(struct sv_shown *s, const struct sv_web_request *q, struct sv_web_answer *a)
{
    struct sv_ask ask;
    struct sv_err err;
    sv_err_clear(&err);
    if (sv_ask_read(&ask, s, q, a)) {
        struct sv_filter window = SV_FILTER_ALL;
        window.from_ns = ask.from_ns;
        window.to_ns = ask.to_ns;
        if (!ask.has_from || !ask.has_to || ask.to_ns <= ask.from_ns) {
            sv_web_error(a, 400, "'from' and 'to' must be times, 'from' the earlier one");
        } else if (write_window(s, &window, &a->body, &err) < 0) {
            a->body.failed = false;
            sv_web_error(a, 413, "%s; use 'stave cut'", err.msg);
        } else {
            a->type = "application/octet-stream";
        }
    }
    sv_ask_fini(&ask);
}
