/* Chrome JSON in, lines of text out: for the tests of the Chrome reader.
 *
 * One line per event: phase-like letter, time, track, name, category in brackets, arguments. Tracks
 * are p10, p10/t11, or the kind and name of each step (p10/counter:x). Flow numbers are #1, #2 … in
 * the order of their first sight, because most are hashes. Findings are one line each: severity
 * letter, count, what, first position. */
#ifndef TESTS_UNIT_CHROME_TEXT_H
#define TESTS_UNIT_CHROME_TEXT_H

#include "core/base/buf.h"
#include "formats/formats.h"

struct chrome_text_result {
    struct sv_buf events, findings, tracks, meta;
    uint64_t n_events;
    int rc;
    struct sv_err err;
    struct sv_clocks clocks; /* snapshots not kept, only their number */
    int64_t base_snapshot_ns;
};

/* Reads the bytes, `piece` at a time through a pipe (0: all at once, from memory). Free with
 * chrome_text_free(). */
void chrome_text_read(const void *bytes, size_t len, size_t piece, uint32_t space,
                      struct chrome_text_result *out);
void chrome_text_free(struct chrome_text_result *r);

#endif
