/* Sources and sinks, and the pump between them.
 *
 * A source is pulled, a sink is pushed, a stage is a sink with a next. Instances say what they give and take; sv_pump()
 * compares the two and puts `sort`, `pair` or `split` between them, so neither side knows of the other. */
#ifndef SV_CORE_STREAM_STREAM_H
#define SV_CORE_STREAM_STREAM_H

#include "core/base/err.h"
#include "core/base/report.h"
#include "core/stream/batch.h"
#include "core/stream/dict.h"

/* What a stream holds (source: may hold; sink: can take). */
enum sv_shape {
    SV_HAS_EDGES = 1,        /* begin and end */
    SV_HAS_SLICES = 2,       /* whole slices */
    SV_HAS_OVERLAP = 4,      /* slices of one track may overlap without nesting */
    SV_HAS_DISORDER = 8,     /* timestamps may go backwards (source: may; sink: can take) */
    SV_HAS_FLOW_POINTS = 16, /* SV_FLOW events, apart from the slices they bind to */
    SV_HAS_ANYTHING = 31
};

struct sv_source {
    /* Fills b (which is empty) with up to SV_BATCH events; texts may point into the source's own memory, valid until the next call.
     * Returns the number of events, 0 at the end, negative on an error. An error after events were delivered ends the
     * stream: what came before it counts. */
    int (*next)(struct sv_source *s, struct sv_batch *b, struct sv_err *err);
    void (*close)(struct sv_source *s);
    unsigned gives; /* enum sv_shape */
    struct sv_dict *dict;
    struct sv_report *report;
    /* an event that cannot be told: next() ends with an error, see sv_source_given() */
    bool has_refused;
    int64_t refused_pos;
};

/* For readers: an event whose duration or end fits no int64 (sv_event_ends()) stands at this byte. */
static inline void sv_source_refuse(struct sv_source *s, int64_t pos)
{
    s->refused_pos = s->has_refused ? s->refused_pos : pos;
    s->has_refused = true;
}

/* What next() returns: the number of events, or the refusal. */
int sv_source_given(const struct sv_source *s, size_t n, struct sv_err *err);

struct sv_sink {
    int (*write)(struct sv_sink *s, const struct sv_event *events, size_t n, struct sv_err *err);
    /* Ends the stream: stages pass it on, formats write their last bytes. Frees the sink, also after an error. `failed` says that the
     * stream is not whole (a write failed, or the source did): discard what cannot be finished. */
    int (*close)(struct sv_sink *s, bool failed, struct sv_err *err);
    unsigned takes; /* enum sv_shape */
    /* close() will replace the file: what was flushed is then no longer its beginning */
    bool rewrites;
    /* Everything written so far reaches the file, which a reader can use up to there. NULL: the sink cannot. For live sources. */
    int (*flush)(struct sv_sink *s, struct sv_err *err);
    /* No more events come on this track, and its number will be another track's: whatever is kept by number is to be written and let go.
     * Those below it have been forgotten before it.
     * NULL: the sink needs all tracks to the end. For recordings without an end. */
    void (*forget)(struct sv_sink *s, sv_track track);
};

struct sv_pump_options {
    size_t sort_memory_bytes;    /* 0: the default; more than this is spilled to a temporary file */
    bool strict;                 /* damage in the source's report fails the stream with SV_EFOUND */
    void (*progress)(void *ctx); /* called now and then, may be NULL */
    void *progress_ctx;
};

/* Runs the source to its end into the sink and closes both. On a source error the sink is closed with failed = true.
 * Returns 0 or the first error; a source that cannot read on gives SV_EINPUT, so that it is told apart from a sink that
 * cannot write. */
int sv_pump(struct sv_source *source, struct sv_sink *sink, const struct sv_pump_options *options,
            struct sv_err *err);

/* Runs the source to its end into the sink as it is: no stages, the sink stays open, the source is closed. For several
 * sources into one sink. */
int sv_pump_into(struct sv_source *source, struct sv_sink *sink,
                 const struct sv_pump_options *options, struct sv_err *err);

/* Wraps `sink` in the stages it needs for a source of this shape (what sv_pump does first). */
struct sv_sink *sv_pump_adapt(unsigned gives, struct sv_sink *sink, struct sv_dict *dict,
                              struct sv_report *report, const struct sv_pump_options *options);

#endif
