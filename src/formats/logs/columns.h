/* The columns of a line-oriented log: one description for all of them, as a text of one word per
 * column.
 *
 *     ts:utc pid bytes latency:ns path      fields between blanks; the last text takes the rest of
 *                                           the line
 *     start:utc,end:utc,name                fields between commas (CSV)
 *
 * A description is given by the user (import --columns), made from a header's words, or found by
 * the shape of the lines. KIND:UNIT is a column, KIND=VALUE holds for every line and is none. */
#pragma once

#include "formats/csv_line.h"
#include "formats/lines.h"

#include <string.h>

#define SV_COLUMNS_MAX 32u

enum sv_column_kind {
    SV_COL_SKIP,
    SV_COL_TS, /* of the line: the end of what has a latency, as tools print it then */
    SV_COL_START,
    SV_COL_END,
    SV_COL_LATENCY,
    SV_COL_QUEUE, /* latency from queueing on, the device's own included */
    SV_COL_WAIT,  /* in the queue alone */
    SV_COL_PID,
    SV_COL_TID,
    SV_COL_FD,
    SV_COL_OFFSET,
    SV_COL_RET,
    SV_COL_REQUESTED,
    SV_COL_LENGTH,
    SV_COL_MODE,
    SV_COL_ADDRESS,
    SV_COL_BYTES,
    SV_COL_SECTOR,
    SV_COL_ERRNO,
    SV_COL_COMM,
    SV_COL_COMM_OR_FD, /* it was the one in older scripts and is the other in newer ones */
    SV_COL_FUNCTION,
    SV_COL_DISK,
    SV_COL_RW,
    SV_COL_NAME,
    SV_COL_CAT,
    SV_COL_CPU,
    SV_COL_GPU,
    SV_COL_PATH,      /* from here on: the rest of the line, where it is the last column */
    SV_COL_PATH_NAME, /* path and its last part */
    SV_COL_NAME_PATH,
    SV_COL_COUNTER,
    SV_COL_METER, /* a column of mpstat, pmon or iostat: see meters.h */
    SV_COL_ARG,
    SV_COL_KINDS
};

enum sv_column_unit {
    SV_UNIT_NONE,
    /* times */
    SV_UNIT_AUTO, /* by the look of the first one */
    SV_UNIT_UTC,
    SV_UNIT_LOCAL,
    SV_UNIT_CLOCK, /* a time of day, local */
    SV_UNIT_BOOT,  /* nanoseconds since boot */
    SV_UNIT_UNIX,  /* seconds since 1970 */
    SV_UNIT_UNIX_MS,
    SV_UNIT_UNIX_US,
    SV_UNIT_UNIX_NS,
    /* durations, and times from an unknown zero */
    SV_UNIT_NS,
    SV_UNIT_US,
    SV_UNIT_MS,
    SV_UNIT_S,
    /* sizes */
    SV_UNIT_KB
};

struct sv_meter;

struct sv_log_column {
    enum sv_column_kind kind;
    enum sv_column_unit unit;
    char label[40];               /* of an argument or a counter */
    const struct sv_meter *meter; /* of SV_COL_METER */
};

struct sv_columns {
    struct sv_log_column items[SV_COLUMNS_MAX];
    size_t n;
    bool is_csv;
    struct {
        enum sv_column_kind kind;
        char value[64];
    } fixed[4];
    size_t n_fixed;
};

/* A moment as the line has it. The wall clock's are days and a time of day, all others nanoseconds
 * of their unit's zero. */
struct sv_stamp {
    enum sv_column_unit unit; /* SV_UNIT_NONE: there is none */
    bool has_days, has_offset;
    int64_t days, of_day, offset_s;
    int64_t ns;
};

/* What a line said. */
struct sv_record {
    uint64_t has; /* 1 << kind */
    int64_t number[SV_COL_KINDS];
    struct sv_text text[SV_COL_KINDS];
    struct sv_stamp stamp[SV_COL_END + 1]; /* TS, START, END */
    struct sv_text cells[SV_COLUMNS_MAX];  /* of counters, meters and arguments */
};

static inline bool sv_record_has(const struct sv_record *r, enum sv_column_kind kind)
{
    return (r->has >> kind & 1) != 0;
}

static inline char sv_record_rw(const struct sv_record *r)
{
    struct sv_text word = r->text[SV_COL_RW];
    uint32_t i = 0;
    if (!sv_record_has(r, SV_COL_RW))
        return 0;
    while (i + 1 < word.len && word.bytes[i] == 'F' && strchr("RWDNF", word.bytes[i + 1]))
        i++; /* a flush before it */
    return word.bytes[i];
}

/* SV_EUSAGE with the word that is not understood. `err` may be NULL. */
int sv_columns_parse(struct sv_columns *c, const char *description, struct sv_err *err);
/* The description of a header line by the names in it; false: it is no header, or has no time. */
bool sv_columns_of_header(struct sv_columns *c, struct sv_text line);
bool sv_columns_have(const struct sv_columns *c, enum sv_column_kind kind);
/* As words, for messages. */
void sv_columns_text(const struct sv_columns *c, char *out, size_t cap);

/* False: the line does not have these columns. `csv` holds the fields of a CSV line, until the next
 * one. */
bool sv_columns_take(const struct sv_columns *c, struct sv_text line, struct sv_csv_line *csv,
                     struct sv_record *r);

/* ---- known layouts without a header ---- */

/* Which times are before the columns. */
enum sv_shape_times {
    SV_BEFORE_BOTH, /* since boot, or UTC: the scripts' lines, raw or aligned */
    SV_BEFORE_BOOT,
    SV_BEFORE_UTC,
    SV_BEFORE_NONE /* the columns have them, in UTC */
};

struct sv_log_shape {
    const char *columns;
    const char *op;   /* what the events are: see sv_record_put(); NULL: the line says it */
    const char *name; /* what the file is called for people */
    enum sv_shape_times times;
};
/* The layout that most lines of the head have, with times of `unit` (BOOT or UTC) in front; NULL:
 * none. `path`, which may be NULL, decides between layouts that look alike. */
const struct sv_log_shape *sv_log_shape_of(struct sv_fields head, enum sv_column_unit unit,
                                           const char *path, struct sv_columns *c);
/* Do most lines of the head have these columns? */
bool sv_log_fits(struct sv_fields head, const struct sv_columns *c);
/* "read", "write", "openat", "close" or "block", by the name of the file; NULL: it does not say. */
const char *sv_log_op_of_path(const char *path);
/* The same by the columns, and by the path where they do not say it. */
const char *sv_log_op_of_columns(const struct sv_columns *c, const char *path);
/* enum sv_covers of such an op, 0: none. */
unsigned sv_log_subject(const char *op);
/* The number after the last '_' of the name of the file; -1: there is none. */
int64_t sv_log_pid_of_path(const char *path);

/* ---- events ---- */

/* Time and duration by the columns. False: none, or past all times. Sets the clock of the
 * dictionary at the first one. */
struct sv_log_clock {
    bool is_set;
    enum sv_column_unit unit;
};
bool sv_record_time(struct sv_lines *l, struct sv_log_clock *clock, struct sv_record *r,
                    int64_t *start_ns, int64_t *dur_ns);
/* Puts the event: on its disk ("block"), in its process (a call), or in the row of phases. */
void sv_record_put(struct sv_lines *l, struct sv_batch *b, const struct sv_record *r,
                   const struct sv_columns *c, struct sv_text op, int64_t start_ns, int64_t dur_ns);
/* Puts the values of counters and meters; false: one is no number. */
bool sv_record_meters(struct sv_lines *l, struct sv_batch *b, const struct sv_columns *c,
                      const struct sv_record *r, int64_t ts_ns);
