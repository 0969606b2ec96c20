/* What the readers of text logs have in common: lines with their positions, fields, times of day,
 * arguments.
 *
 * A reader is a struct that begins with a struct sv_lines and a const struct sv_lines_kind that
 * says what it does with a line. A line that cannot be understood is damage, counted with its byte
 * position; the next line starts afresh. */
#pragma once

#include "formats/civil.h"
#include "formats/formats.h"

struct sv_lines;

struct sv_lines_kind {
    size_t size;         /* of the reader's own struct */
    size_t max_events;   /* that one call of line() or end() gives */
    unsigned gives;      /* enum sv_shape */
    const char *damaged; /* what a line is called that cannot be understood: "bpftrace line" */
    void (*init)(struct sv_lines *l);
    /* One line without its end. False: not understood. */
    bool (*line)(struct sv_lines *l, struct sv_batch *b, const char *p, size_t len);
    /* After each line, until it returns false: for lines that give more events than a batch holds.
     * May be NULL. */
    bool (*more)(struct sv_lines *l, struct sv_batch *b);
    /* Instead of line(), for what does not come in lines: reads one record, sets is_at_end when
     * there is none. */
    int (*read)(struct sv_lines *l, struct sv_batch *b, struct sv_err *err);
    /* After the last line; called again while it returns true. May be NULL. */
    bool (*end)(struct sv_lines *l, struct sv_batch *b);
    void (*fini)(struct sv_lines *l);
    uint32_t clock; /* the trace's; 0: it is not known, or init() says */
    /* The log of an application, whose zone is --log-tz and else UTC: the note that says the
     * latter. NULL: times are in the zone of this machine. */
    const char *taken_as_utc;
};

/* Local wall time that becomes nanoseconds: a date (in the file, or from the options) and times of
 * day that pass midnight. */
struct sv_wall {
    const struct sv_zone *zone; /* NULL: not known, times count as if they were UTC */
    bool has_date,
        is_elsewhere; /* is_elsewhere: its day may not be that of the machine's other files */
    int64_t days, last_of_day, last_utc_s;
};

struct sv_lines {
    struct sv_source source;
    const struct sv_lines_kind *kind;
    struct sv_input *in;
    struct sv_dict *dict; /* = source.dict */
    uint32_t space;
    int64_t pos;     /* of the line that is being read */
    const char *why; /* why it was not understood: set by line() before it returns false, or NULL */
    bool is_at_end;  /* all lines were read */
    bool is_finished; /* end() was, too */
    struct sv_wall wall;
    const struct sv_zone *log_zone;
    struct sv_zone *utc;         /* in its place, where none was given */
    const char *columns;         /* that the user gave; NULL: none */
    unsigned skip_subjects;      /* see struct sv_read_options */
    const struct sv_dict *roles; /* its processes have the names of this trace's; NULL: none */
};

int sv_lines_open(const struct sv_lines_kind *kind, struct sv_input *in,
                  const struct sv_read_options *options, struct sv_dict *dict,
                  struct sv_report *report, struct sv_source **out);

static inline bool sv_lines_bad(struct sv_lines *l, const char *why)
{
    l->why = why;
    return false;
}

/* ---- wall time ---- */

/* A new date: the times after it count from there. */
void sv_wall_set_date(struct sv_wall *w, int64_t days);
/* A time of day that goes back by more than half a day is the next day's. False: past all times. */
bool sv_wall_ns(struct sv_wall *w, int64_t ns_of_day, int64_t *ns);
/* Says in the dictionary what the times mean: REALTIME, or unknown with a note when date or zone
 * are. */
void sv_wall_set_clock(struct sv_lines *l);

/* ---- fields ---- */

struct sv_fields {
    const char *p, *end;
};

/* up to the next blank or tab; len 0 at the end */
struct sv_text sv_field_next(struct sv_fields *f);
struct sv_text sv_field_rest(struct sv_fields *f); /* without the blanks around it */
size_t sv_field_count(struct sv_fields f);         /* at most 32 */

/* A whole number that fits; 0x… does not count. */
bool sv_text_i64(struct sv_text t, int64_t *out);
/* The same, but one past INT64_MAX is a negative one that was printed without its sign. */
bool sv_text_signless(struct sv_text t, int64_t *out);
bool sv_text_u64(struct sv_text t, uint64_t *out);  /* also 0x… */
bool sv_text_double(struct sv_text t, double *out); /* 12.5 and 12,5 */
/* The first place of a word in the bytes, NULL when there is none. */
const char *sv_bytes_find(const char *p, size_t len, const char *word);

/* The head of an input, line by line, for probes. Only whole lines; false at the end. */
bool sv_head_line(struct sv_fields *head, struct sv_text *line);
static inline struct sv_fields sv_head(const uint8_t *head, size_t n)
{
    return (struct sv_fields){(const char *)head, (const char *)head + n};
}

/* ---- events ---- */

void sv_add_int(struct sv_lines *l, struct sv_batch *b, const char *key, int64_t v);
void sv_add_uint(struct sv_lines *l, struct sv_batch *b, const char *key, uint64_t v);
/* What the text is: a whole number, a number, or itself. */
void sv_put_value(struct sv_batch *b, sv_str key, struct sv_text t);
void sv_add_text(struct sv_lines *l, struct sv_batch *b, const char *key, struct sv_text t);
void sv_add_pointer(struct sv_lines *l, struct sv_batch *b, const char *key, uint64_t v);
void sv_add_double(struct sv_lines *l, struct sv_batch *b, const char *key, double v);
/* ret, and errno or bytes by its sign; is_transfer: what is not negative are bytes. */
void sv_add_result(struct sv_lines *l, struct sv_batch *b, int64_t ret, bool is_transfer);

/* An event with the arguments added since the last one. */
struct sv_event *sv_put_event(struct sv_lines *l, struct sv_batch *b, unsigned kind, int64_t ts_ns,
                              sv_track track, sv_str name, const char *cat);
/* A value that is not a number (nan, inf) is damage. */
void sv_put_counter(struct sv_lines *l, struct sv_batch *b, sv_track track, int64_t ts_ns,
                    double v);

sv_track sv_lines_process(struct sv_lines *l, int64_t pid, struct sv_text comm);
/* A track of the convention in docs/io.md, by its name below a parent (0: top). */
sv_track sv_lines_group(struct sv_lines *l, sv_track parent, unsigned kind, const char *name,
                        size_t len);
sv_track sv_lines_counter(struct sv_lines *l, sv_track parent, const char *name, const char *unit);
