/* Sources and sinks, and the pump between them.
 *
 * A source is pulled, a sink is pushed, a stage is a sink with a next. A source states what it
 * gives and a sink what it takes; the pump compares the two and puts `sort`, `pair`, `split`,
 * `lanes` or `spans` between them, so neither side knows of the other. Files are pumped to their
 * end (sv_pump). Live sources are pumped in rounds (sv_pump_round). */
#pragma once

#include "core/base/err.h"
#include "core/base/report.h"
#include "core/stream/batch.h"
#include "core/stream/dict.h"

/* The shape of a stream: kinds of events and their order. A source states all that it may give, a
 * sink all that it takes, so that `gives & ~takes` is what has to be changed on the way. Of slices
 * and of order a higher level includes the lower ones. */
enum sv_shape {
    SV_HAS_EDGES = 1,       /* begin and end */
    SV_HAS_NESTED = 2,      /* whole slices; slices and edges of one track nest */
    SV_HAS_SLICES = 2 | 4,  /* whole slices; those of one track may also cross */
    SV_HAS_FLOW_POINTS = 8, /* SV_FLOW events, apart from the slices they bind to */
    /* Times never go back. Of slices that begin at the same time on one track the outer one comes
     * first. */
    SV_IN_ORDER = 0,
    /* Times go back, but begins and ends of one track are as a sort by time would pair them: each
     * end closes the newest begin that is open on its track, now and after the sort (a slice counts
     * as its begin and end in a row). For who reads threads one by one. */
    SV_IN_TRACK_ORDER = 16,
    SV_IN_NO_ORDER = 16 | 32, /* only a sort by time shows which end belongs to which begin */
    SV_HAS_ANYTHING = 63
};
#define SV_ORDER_BITS ((unsigned)SV_IN_NO_ORDER)

struct sv_source {
    /* Fills b (which is empty) with up to SV_BATCH events; texts may point into the source's own
     * memory, valid until the next call. Returns the number of events, 0 at the end, negative on an
     * error. An error after events were delivered ends the stream: what came before it counts. */
    int (*next)(struct sv_source *s, struct sv_batch *b, struct sv_err *err);
    void (*close)(struct sv_source *s);
    unsigned gives; /* enum sv_shape */
    struct sv_dict *dict;
    struct sv_report *report;
    /* With so many threads another one may take the batches (files/beside.h): all arguments are in
     * a batch's memory, texts may be elsewhere. 0: never. */
    unsigned beside_from;
    /* an event that cannot be represented: next() ends with an error, see sv_source_given() */
    bool has_refused;
    int64_t refused_pos;
};

/* For readers: an event whose start, duration or end (sv_event_ends()) fits no int64 is at this
 * byte. */
static inline void sv_source_refuse(struct sv_source *s, int64_t pos)
{
    s->refused_pos = s->has_refused ? s->refused_pos : pos;
    s->has_refused = true;
}

/* What next() returns: the number of events, or the refusal. */
int sv_source_given(const struct sv_source *s, size_t n, struct sv_err *err);

struct sv_output;

struct sv_sink {
    int (*write)(struct sv_sink *s, const struct sv_event *events, size_t n, struct sv_err *err);
    /* Ends the stream: stages pass it on, formats write their last bytes. Frees the sink, also
     * after an error. `failed` says that the stream is not whole (a write failed, or the source
     * did): discard what cannot be finished. */
    int (*close)(struct sv_sink *s, bool failed, struct sv_err *err);
    unsigned takes; /* enum sv_shape: from live sources, which cannot wait */
    /* What makes the better file, if the whole stream is there before the file must be: 0, or a
     * part of `takes`. */
    unsigned best;
    /* close() will replace the file: what was flushed is then no longer its beginning */
    bool rewrites;
    /* Everything written so far reaches the file, which a reader can use up to there. NULL: the
     * sink cannot. For live sources. */
    int (*flush)(struct sv_sink *s, struct sv_err *err);
    /* Where flush() puts it, for its length; NULL: the sink has no flush, or no file now. */
    const struct sv_output *file;
    /* No more events come on this track, and its number will be another track's: whatever is kept
     * by number is to be written and let go. Those below it have been forgotten before it. NULL:
     * the sink needs all tracks to the end. For recordings without an end. */
    void (*forget)(struct sv_sink *s, sv_track track);
};

struct sv_pump_options {
    size_t sort_memory_bytes;    /* 0: the default; more than this is spilled to a temporary file */
    bool strict;                 /* damage in the source's report fails the stream with SV_EFOUND */
    void (*progress)(void *ctx); /* called now and then, may be NULL */
    void *progress_ctx;
    uint64_t *n_events; /* counts what the source gives, may be NULL */
};

/* Runs the source to its end into the sink and closes both. On a source error the sink is closed
 * with failed = true. Returns 0 or the first error; a source that cannot read on gives SV_EINPUT,
 * so that it differs from a sink that cannot write. */
int sv_pump(struct sv_source *source, struct sv_sink *sink, const struct sv_pump_options *options,
            struct sv_err *err);

/* Runs the source to its end into the sink as it is: no stages, the sink stays open, the source is
 * closed. For several sources into one sink, which was wrapped by sv_pump_adapt() for all of
 * them. */
int sv_pump_into(struct sv_source *source, struct sv_sink *sink,
                 const struct sv_pump_options *options, struct sv_err *err);

/* Wraps `sink` in the stages it needs for a source of this shape (what sv_pump does first). */
struct sv_sink *sv_pump_adapt(unsigned gives, struct sv_sink *sink, struct sv_dict *dict,
                              struct sv_report *report, const struct sv_pump_options *options);

/* One round of a live source: all that it has now goes to the sink; both stay open. The stages keep
 * events back until later ones have come, which a file that is to be whole after each round cannot
 * have: the sink must take what the source gives (SV_EFORMAT). What several sources give to one
 * sink is in order per track at best. Ends early when the sink fails. */
int sv_pump_round(struct sv_source *source, struct sv_sink *sink, struct sv_batch *batch,
                  struct sv_err *err);

/* The shape that stages give to a sink. */
static inline unsigned sv_sink_wants(const struct sv_sink *s)
{
    return s->best ? s->best : s->takes;
}

/* For stages that change nothing about the shape: they take what `next` takes, in this order at
 * least. */
static inline void sv_sink_takes_as(struct sv_sink *s, const struct sv_sink *next, unsigned order)
{
    s->takes = next->takes & ~(SV_ORDER_BITS & ~order);
    s->best = next->best & ~(SV_ORDER_BITS & ~order);
}
