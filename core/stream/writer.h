/* Writers: sinks that end in a file. */
#ifndef SV_CORE_STREAM_WRITER_H
#define SV_CORE_STREAM_WRITER_H

#include "core/files/output.h"
#include "core/stream/stream.h"

struct sv_write_options {
    /* inside the format (Perfetto packets); whole-file compression is the output's */
    enum sv_compression compression;
    const char *dialect;  /* format-specific variant, NULL for the default */
    int64_t resync_bytes; /* Perfetto: distance of resync points, 0 default */
    /* the output holds a file that ends after a flush: go on there (can_continue) */
    bool continues;
};

#define SV_SINK_DOOR(name)                                                                        \
    int name(struct sv_output *out, const struct sv_write_options *options, struct sv_dict *dict, \
             struct sv_report *report, struct sv_sink **sink, struct sv_err *err)

SV_SINK_DOOR(sv_perfetto_sink); /* core/perfetto/write.c */
SV_SINK_DOOR(sv_chrome_sink);   /* core/chrome/write.c */
#define SV_PERFETTO_GPU \
    "gpu" /* dialect of Perfetto: track events name the stages that they launch */

#endif
