/* A trace from the canonical text, for tests of what reads the store. */
#ifndef TESTS_UNIT_TEXT_TRACE_H
#define TESTS_UNIT_TEXT_TRACE_H

#include "formats/formats.h"
#include "store/trace.h"
#include "tests/harness/test.h"

#include <string.h>

/* The text must be without damage. */
static inline struct sv_trace *text_trace(const char *text, struct sv_dict *dict,
                                          struct sv_report *findings)
{
    struct sv_err err = {0};
    struct sv_input *in;
    struct sv_source *source;
    sv_report_init(findings);
    REQUIRE(sv_input_open_memory(text, strlen(text), "test", &in, &err) == 0);
    REQUIRE(sv_format_open(&sv_text_format, in, &(struct sv_read_options){0}, dict, findings,
                           &source, &err) == 0);
    struct sv_trace *trace = sv_trace_new(dict, findings, 0);
    REQUIRE(sv_pump(source, sv_trace_sink(trace), NULL, &err) == 0);
    REQUIRE(sv_report_count(findings, SV_DAMAGE) == 0);
    sv_input_close(in);
    return trace;
}

#endif
