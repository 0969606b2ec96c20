/* Formats: what each is called, how it is recognised, read and written. Each format is one `const
 * struct sv_format` at the end of its own file; list.h is the only list of them. Help, completion,
 * error texts and the tables in docs/formats.md are made from it. */
#pragma once

#include "core/files/input.h"
#include "core/stream/stream.h"
#include "core/stream/writer.h"
#include "formats/civil.h"

struct sv_workers;

struct sv_rotation;
struct sv_read_options {
    struct sv_workers *workers; /* threads that may help (threads/workers.h); NULL: none */
    size_t
        /* what one of them takes at a time, whatever the size of the file; 0: the reader chooses.
         * For tests. */
        block_bytes;
    uint32_t space; /* pids of this input live in this space (merge gives each input its own) */
    bool strict;    /* the caller will refuse damage; readers still recover and report */
    /* For files with times of day: */
    const struct sv_zone *zone;     /* of local times, borrowed; NULL: not known */
    unsigned skip_subjects;         /* enum sv_covers: other files hold them; for derived files */
    const struct sv_dict *roles;    /* its processes name those of line-oriented logs; NULL: none */
    const struct sv_zone *log_zone; /* of application logs, which mostly are in UTC; NULL: that */
    bool has_date;
    int64_t date_days; /* since 1970: the day on which a file without dates begins */
    const struct sv_rotation *
        /* the file is the first of these parts, which are read with it (files/rotation.h); NULL:
         * alone */
        rotation;
    const char *
        /* of a line-oriented log (formats/logs/columns.h), borrowed; NULL: the reader finds them */
        columns;
};

/* What a file lacks of its times. */
enum sv_needs { SV_NEEDS_DATE = 1, SV_NEEDS_ZONE = 2 };

/* What a file of a run is about, and how far from the tool that measured it: of two files about the
 * same the nearer one counts. */
enum sv_covers {
    SV_ABOUT_READS = 1,
    SV_ABOUT_WRITES = 2,
    SV_ABOUT_OPENS = 4,
    SV_ABOUT_CLOSES = 8,
    SV_ABOUT_BLOCKS = 16,
    SV_ABOUT_CPUS = 32,
    SV_ABOUT_GPUS = 64,
    SV_ABOUT_DISKS = 128,
    SV_ABOUT_PHASES = 256
};
enum sv_distance {
    SV_MEASURED,
    SV_ALIGNED, /* the tool's lines, filtered or with other times */
    SV_DERIVED  /* intervals or averages of them */
};
struct sv_holds {
    unsigned subjects; /* enum sv_covers; 0: not known */
    enum sv_distance distance;
    int64_t pid; /* the only process in it; -1: any */
};

/* Opens a source. It owns nothing of `in` but its position: the caller closes `in` after the
 * source. */
typedef int sv_open_source_fn(struct sv_input *in, const struct sv_read_options *options,
                              struct sv_dict *dict, struct sv_report *report,
                              struct sv_source **out, struct sv_err *err);

/* A variant of a format that is only written: `--dialect NAME`. */
struct sv_dialect {
    const char *name;
    const char *help;
    const char *lacks; /* as below */
    /* NULL: the format's own. Either way the writer gets the name in options->dialect. */
    const struct sv_writer *writer;
};

/* Texts with `help`, `files`, `times` and `lacks` are printed as Markdown by `stave formats`. */
struct sv_format {
    const char *name; /* what --from and --to take: "perfetto" */
    const char *help; /* one line: "Perfetto protobuf trace" */
    /* what it cannot hold, of what an event may have; NULL: it holds everything */
    const char *lacks;
    const char *files; /* read only: which files of which tools */
    const char *times; /* read only: what its times are */
    /* How sure this format is that the head of the (decompressed) input is its own: 0 no … 100
     * certain. NULL where there is no reader. */
    int (*probe)(const uint8_t *head, size_t n);
    sv_open_source_fn *open_source;
    const struct sv_lines_kind *lines; /* instead of open_source: a reader of lines (lines.h) */
    const struct sv_writer *writer;    /* with the suffixes; NULL where there is none */
    const struct sv_dialect *dialects; /* ends with a zeroed one; NULL: none */
    /* Formats that say the same and more: where a folder has a file of one of them, import leaves
     * this one out. NULL: none. */
    const char *const *covered_by;
    bool needs_date; /* its files hold times of day without the day */
    bool needs_zone; /* its times are local and the file does not say where */
    /* Instead of these two, where it depends on the file: enum sv_needs. NULL: it does not. */
    unsigned (*needs)(const uint8_t *head, size_t n);
    /* enum sv_covers: what its files are about. As the tool measured it, if the probe is 90 or
     * more, else aligned: only the tool's own files have its header. */
    unsigned covers;
    /* Instead, where it depends on the file; NULL: it does not. `path` may help. */
    struct sv_holds (*holds)(const uint8_t *head, size_t n, const char *path);
    bool readers_sort; /* events may be in any order: readers of this format sort them */
};

#define SV_FORMAT(id) extern const struct sv_format sv_##id##_format;
#include "formats/list.h"
#undef SV_FORMAT
extern const struct sv_format *const sv_formats[]; /* NULL-terminated */

const struct sv_format *sv_format_named(const char *name);
bool sv_format_reads(const struct sv_format *f);
int sv_format_open(const struct sv_format *f, struct sv_input *in,
                   const struct sv_read_options *options, struct sv_dict *dict,
                   struct sv_report *report, struct sv_source **out, struct sv_err *err);
/* By suffix, whole-file compression included: "x.json.gz" → chrome with SV_GZIP. NULL when no
 * format has it. */
const struct sv_format *sv_format_for_path(const char *path, enum sv_compression *compression);
/* The length of the path without the suffixes of format and compression. */
size_t sv_format_stem(const char *path);
/* By content: the format most sure of the input's head. NULL when none is. */
const struct sv_format *sv_format_probe(struct sv_input *in, struct sv_err *err);
/* enum sv_needs of an input of this format. */
unsigned sv_format_needs(const struct sv_format *f, struct sv_input *in);
struct sv_holds sv_format_holds(const struct sv_format *f, struct sv_input *in);

/* The dialect of this name (or old name). */
const struct sv_dialect *sv_dialect_named(const struct sv_format *f, const char *name);
/* The first format that has such a dialect; NULL: none. */
const struct sv_format *sv_format_of_dialect(const char *name);

/* Lists of names of one format (NULL: of all), `between` them, `last` before the last one: " " and
 * " " for scripts, ", " and " or " for people. */
enum sv_format_list {
    SV_LIST_READERS,
    SV_LIST_WRITERS,
    SV_LIST_SUFFIXES, /* the usual one of each writer */
    SV_LIST_DIALECTS
};
void sv_format_names(struct sv_buf *out, enum sv_format_list which, const struct sv_format *of,
                     const char *between, const char *last);
/* "chrome: array (an array …), …": all dialects by format, with their help. */
void sv_format_dialects(struct sv_buf *out);

/* Descriptions of columns (formats/logs/columns.h) for the reader `columns`. Checks one, and says
 * what its times need. */
int sv_columns_check(const char *columns, unsigned *needs, struct sv_err *err);
/* Do most lines at the beginning of the input have these columns? */
bool sv_columns_fit(const char *columns, struct sv_input *in);

/* metrics.csv beside a server's summary, row by row: queue size and rejections so far. */
typedef void sv_metric_fn(void *ctx, int64_t ts_ns, double queued, double rejected);
int sv_metrics_csv_read(struct sv_input *in, sv_metric_fn *take, void *ctx,
                        struct sv_report *report, struct sv_err *err);
