/* Writers: sinks that end in a file. One `const struct sv_writer` per output says how its files are
 * called and what it can do. */
#pragma once

#include "core/files/output.h"
#include "core/stream/stream.h"

struct sv_write_options {
    /* inside the format (Perfetto packets); whole-file compression is the output's */
    enum sv_compression compression;
    const char *dialect;  /* format-specific variant, NULL for the default */
    int64_t resync_bytes; /* Perfetto: distance of resync points, 0 default */
    /* Perfetto: what follows a flush refers to nothing before it, so that it can be a file of its
     * own */
    bool resyncs_at_flush;
    /* the output holds a file that ends after a flush: continue there (can_continue) */
    bool continues;
    /* Perfetto: the number of this file among those that are joined byte by byte. What has its own
     * number may begin before the end of the file before; 0: it is joined to nothing. */
    uint32_t joined;
    /* TraceSmith's JSON, which has no place for them: metadata are members of `otherData` */
    bool adds_metadata;
};

/* Opens a sink. It owns `out` from then on: its close() ends in sv_output_close() or, failed,
 * sv_output_discard(). After a failure the caller still has `out`. `options` may be NULL. */
typedef int sv_open_sink_fn(struct sv_output *out, const struct sv_write_options *options,
                            struct sv_dict *dict, struct sv_report *report, struct sv_sink **sink,
                            struct sv_err *err);

struct sv_writer {
    const char *name; /* "perfetto" */
    /* NULL-terminated, the usual one first: ".pftrace"; NULL: no suffix means it */
    const char *const *suffixes;
    sv_open_sink_fn *open;
    bool is_binary;         /* not for a terminal; a file that was cut needs no end */
    bool compresses_inside; /* options->compression means something to open */
    bool can_continue;      /* so does options->continues */
};

extern const struct sv_writer sv_perfetto_writer; /* core/perfetto/write.c */
extern const struct sv_writer sv_chrome_writer;   /* core/chrome/write.c */
/* core/chrome/tracesmith_write.c: the dialects SV_TRACESMITH… */
extern const struct sv_writer sv_tracesmith_writer;

#define SV_JOINED_MAX 64 /* files of different numbers: the numbers are below that */

/* dialect of Perfetto: track events name the stages that they launch */
#define SV_PERFETTO_GPU "gpu"
/* dialects of TraceSmith's JSON: with track names and arrows, without one of them, without both */
#define SV_TRACESMITH           "tracesmith"
#define SV_TRACESMITH_NO_TRACKS "tracesmith-no-tracks"
#define SV_TRACESMITH_NO_FLOWS  "tracesmith-no-flows"
#define SV_TRACESMITH_BASIC     "tracesmith-basic"
