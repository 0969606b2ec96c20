/* What a trace says, as sorted lines of text: slices, instants, counters, losses and arrows,
 * independent of their encoding.
 *
 * Two files say the same when their texts are equal, whatever their format, order, lanes, edges or
 * numbers of flows. One line each:
 *
 *     slice TS DUR TRACK name cat {arguments}      TRACK: the names from the top, lanes left out
 *     instant TS TRACK name cat FLAGS {arguments}
 *     counter TS TRACK VALUE
 *     loss TS DUR TRACK cause COUNT
 *     arrow FROM -> TO                              both as the lines of their slices, without
 *                                                   arguments */
#ifndef TESTS_HARNESS_CANON_H
#define TESTS_HARNESS_CANON_H

#include "core/base/buf.h"
#include "store/trace.h"

enum canon_flag {
    CANON_NO_ARROWS = 1,
    CANON_NO_CPU_TIMES = 2,
    CANON_NO_ARGS = 4,
    CANON_UTF8 = 8 /* texts as formats have them that must be UTF-8: sv_buf_utf8() */
};

const char *canon(struct sv_buf *text, const struct sv_trace *t, unsigned flags);
/* Stores what the source gives, closes it, and says it; an error is a failed check. The damage of
 * the report is in *damage unless NULL. */
const char *canon_source(struct sv_buf *text, struct sv_source *source, unsigned flags);

/* The first line that differs is a failed check. */
bool canon_equal(const char *want, const char *got);

#endif
