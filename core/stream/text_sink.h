/* What sinks of text files share: the buffer that goes to the output, and the end of both.
 *
 * A writer says by a const struct sv_text_kind what it takes and how an event is written; its
 * open() makes the sink by sv_text_sink_open() and prepares the rest of its struct. */
#pragma once

#include "core/base/buf.h"
#include "core/stream/writer.h"

struct sv_text_kind;

/* First in the struct of each such sink. */
struct sv_text_sink {
    struct sv_sink sink;
    const struct sv_text_kind *kind;
    struct sv_output *out;
    struct sv_dict *dict;
    struct sv_report *report;
    struct sv_buf buf;
    bool is_over; /* an event was too large, or there are too many */
};

struct sv_text_kind {
    size_t size;  /* of the sink's struct */
    size_t limit; /* of the buffer */
    unsigned takes;
    bool flushes;         /* what was written so far is a file */
    const char *too_much; /* the error if the buffer failed or `is_over` */
    void (*event)(struct sv_text_sink *s, const struct sv_event *e);
    void (*end)(struct sv_text_sink *s);  /* the last bytes of a whole file; may be NULL */
    void (*fini)(struct sv_text_sink *s); /* may be NULL */
};

/* Zeroed but for what is above. */
void *sv_text_sink_open(const struct sv_text_kind *kind, struct sv_output *out,
                        struct sv_dict *dict, struct sv_report *report, struct sv_sink **sink);
