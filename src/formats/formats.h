/* The table of formats: the only place that knows them all. Adding one is a file per direction and a line in formats.c. */
#ifndef SV_FORMATS_FORMATS_H
#define SV_FORMATS_FORMATS_H

#include "core/files/input.h"
#include "core/stream/stream.h"
#include "core/stream/writer.h"
#include "formats/civil.h"

struct sv_read_options {
    uint32_t space; /* pids of this input live in this space (merge gives each input its own) */
    bool strict;    /* the caller will refuse damage; readers still recover and report */
    /* For files that tell the time as people do: */
    const struct sv_zone *zone;     /* of local times, borrowed; NULL: not known */
    const struct sv_zone *log_zone; /* of application logs, which mostly are in UTC; NULL: that */
    bool has_date;
    int64_t date_days; /* since 1970: the day on which a file without dates begins */
};

struct sv_format {
    const char *name; /* "perfetto", "chrome", "text", "csv": what --to takes */
    const char *const
        *suffixes; /* NULL-terminated, the first is the usual one: ".pftrace", ".perfetto-trace" */
    const char *help;
    /* How sure this format is that the head of the (decompressed) input is its own: 0 no … 100 certain. */
    int (*probe)(const uint8_t *head, size_t n);
    /* Sources own nothing of `in` but its position: the caller closes it after the source. NULL where there is no reader. */
    int (*open_source)(struct sv_input *in, const struct sv_read_options *options,
                       struct sv_dict *dict, struct sv_report *report, struct sv_source **out,
                       struct sv_err *err);
    /* Sinks own `out`: their close() ends in sv_output_close() or, failed, sv_output_discard(). NULL where there is no writer. */
    int (*open_sink)(struct sv_output *out, const struct sv_write_options *options,
                     struct sv_dict *dict, struct sv_report *report, struct sv_sink **sink,
                     struct sv_err *err);
    /* `--dialect` of another format's writer that is a writer of its own: "kineto" of "chrome". */
    const char *dialect_of, *dialect;
    /* Formats that say the same and more: where a folder has a file of one of them, import leaves this one out. NULL: none. */
    const char *const *told_by;
    bool needs_date;   /* its files hold times of day without the day: another one must tell */
    bool needs_zone;   /* its times are local and do not say where */
    bool is_binary;    /* not for a terminal */
    bool readers_sort; /* events may stand in any order: whoever reads this format sorts them */
    bool compresses_inside; /* options->compression means something to open_sink */
    bool can_continue;      /* so does options->continues */
};

extern const struct sv_format *const sv_formats[]; /* NULL-terminated */

const struct sv_format *sv_format_named(const char *name);
/* The writer of this dialect, or the format itself. */
const struct sv_format *sv_format_dialect(const struct sv_format *format, const char *dialect);
/* By suffix, whole-file compression included: "x.json.gz" → chrome with SV_GZIP. NULL when no format has it. */
const struct sv_format *sv_format_for_path(const char *path, enum sv_compression *compression);
/* By content: the format most sure of the input's head. NULL when none is. */
const struct sv_format *sv_format_probe(struct sv_input *in, struct sv_err *err);

/* The doors of the formats, one file per direction. */
int sv_perfetto_probe(const uint8_t *head, size_t n);
int sv_chrome_probe(const uint8_t *head, size_t n);
int sv_text_probe(const uint8_t *head, size_t n);
int sv_bpftrace_probe(const uint8_t *head, size_t n);
int sv_time_align_probe(const uint8_t *head, size_t n);
int sv_mpstat_probe(const uint8_t *head, size_t n);
int sv_pmon_probe(const uint8_t *head, size_t n);
int sv_iostat_probe(const uint8_t *head, size_t n);
int sv_strace_probe(const uint8_t *head, size_t n);
int sv_mllog_probe(const uint8_t *head, size_t n);
int sv_dlio_probe(const uint8_t *head, size_t n);
int sv_sbt_probe(const uint8_t *head, size_t n);
int sv_batching_csv_probe(const uint8_t *head, size_t n);
int sv_paje_probe(const uint8_t *head, size_t n);
int sv_starpu_rec_probe(const uint8_t *head, size_t n);
int sv_starpu_dag_probe(const uint8_t *head, size_t n);
int sv_fxt_probe(const uint8_t *head, size_t n);
int sv_nsys_probe(const uint8_t *head, size_t n);
int sv_rocprofv3_probe(const uint8_t *head, size_t n);

#define SV_SOURCE_DOOR(name)                                                                   \
    int name(struct sv_input *in, const struct sv_read_options *options, struct sv_dict *dict, \
             struct sv_report *report, struct sv_source **out, struct sv_err *err)
SV_SOURCE_DOOR(sv_perfetto_source); /* formats/perfetto/read.c */
SV_SOURCE_DOOR(sv_chrome_source);   /* formats/chrome/read.c */
SV_SOURCE_DOOR(sv_text_source);     /* text_read.c */
SV_SINK_DOOR(sv_text_sink);         /* text_write.c */
SV_SINK_DOOR(sv_csv_sink);          /* csv_write.c */
SV_SINK_DOOR(sv_kineto_sink);       /* kineto_write.c */
SV_SINK_DOOR(sv_tracesmith_sink);   /* tracesmith_write.c */
SV_SINK_DOOR(sv_tracesmith_basic_sink);
SV_SINK_DOOR(sv_perfetto_gpu_sink); /* formats/perfetto/gpu_write.c */
#define XX                          /* its dialect: track events name the stages that they launch */
SV_SINK_DOOR(sv_dot_sink);          /* dot_write.c */
SV_SOURCE_DOOR(sv_sbt_source);      /* sbt_read.c */
SV_SOURCE_DOOR(sv_bpftrace_source); /* bpftrace_read.c */
SV_SOURCE_DOOR(sv_time_align_source); /* time_align_read.c */
SV_SOURCE_DOOR(sv_mpstat_source);     /* mpstat_read.c */
SV_SOURCE_DOOR(sv_pmon_source);       /* pmon_read.c */
SV_SOURCE_DOOR(sv_iostat_source);     /* iostat_read.c */
SV_SOURCE_DOOR(sv_strace_source);     /* strace_read.c */
SV_SOURCE_DOOR(sv_mllog_source);      /* mllog_read.c */
SV_SOURCE_DOOR(sv_dlio_source);       /* dlio_read.c */
SV_SOURCE_DOOR(sv_paje_source);       /* paje_read.c */
SV_SOURCE_DOOR(sv_starpu_rec_source); /* formats/starpu/rec_read.c */
SV_SOURCE_DOOR(sv_starpu_dag_source); /* formats/starpu/dag_read.c */
SV_SOURCE_DOOR(sv_fxt_source);        /* fxt_read.c */
SV_SOURCE_DOOR(sv_nsys_source);       /* nsys_read.c */
SV_SOURCE_DOOR(sv_rocprofv3_source);  /* rocprofv3_read.c */

SV_SOURCE_DOOR(sv_batching_csv_source); /* batching_csv_read.c */
/* metrics.csv beside it, row by row: queue size and rejections so far. */
typedef void sv_metric_fn(void *ctx, int64_t ts_ns, double queued, double rejected);
int sv_metrics_csv_read(struct sv_input *in, sv_metric_fn *take, void *ctx,
                        struct sv_report *report, struct sv_err *err);

#endif
