/* Traces as text, for the tests of the store and of its users: events in, tables out, one line
 * each.
 *
 *     B 10 t name [args]   E 20 t [args]   X 10 5 t name [args]   I 10 t name   C 10 t 1.5   L 10 5
 *         t cause 3
 *     s 10 t 7   p 10 t 7   f 10 t 7 (flow points: begin, pass, end)   F 10 t 7 (end, binds to the
 *         next slice)
 *
 * args: k=5 k=1.5 k='text' k=[1,2] >7 ~7 <7 (flow begins, passes, ends) @5 (CPU time) #9
 * (correlation). A name of - is none; a duration of - is unfinished. */
#ifndef TESTS_UNIT_TRACE_TEXT_H
#define TESTS_UNIT_TRACE_TEXT_H

#include "core/base/buf.h"
#include "store/trace.h"

/* Pushes the events of `text` into the sink in batches of `batch` events; returns the first
 * error. */
int trace_text_write(const char *text, size_t batch, struct sv_dict *dict, struct sv_sink *sink,
                     struct sv_err *err);

/* A finished trace of those events; the dictionary and the report are the caller's. */
struct sv_trace *trace_text_load(const char *text, struct sv_dict *dict, struct sv_report *report);

/* The tables: "name track ts+dur depth <parent args" per slice, then counters, flows, points,
 * losses. */
const char *trace_text_dump(const struct sv_trace *t, struct sv_buf *out);

#endif
