/* A condition and its kind: what record/when/ shares among its files. */
#ifndef SV_RECORD_WHEN_CONDITION_H
#define SV_RECORD_WHEN_CONDITION_H

#include "core/base/map.h"
#include "record/when/parse.h"
#include "record/when/when.h"
#include "record/when/window.h"

/* What is fed to conditions, one after the other. */
enum sv_seen_kind {
    SV_SEEN_NAME = 1, /* a slice that ended, or an instant */
    SV_SEEN_COUNTER = 2,
    SV_SEEN_EXIT = 4,
    SV_SEEN_LOSS = 8
};
struct sv_seen {
    enum sv_seen_kind kind;
    bool is_slice;
    sv_str name;      /* NAME, LOSS */
    const char *text; /* NAME: the same; EXIT: the process; COUNTER: of its track */
    sv_track track;
    int64_t ts_ns;  /* the end of a slice */
    int64_t dur_ns; /* of a slice */
    uint64_t fired; /* slice: conditions that said so while it was open */
    double value;   /* COUNTER; EXIT: as wait() gives it; LOSS: how many */
};

/* Which slices: steps by the usual markers, requests, or a name. */
enum sv_pick_kind { SV_PICK_STEP = 1, SV_PICK_REQUEST, SV_PICK_NAME };
struct sv_pick {
    enum sv_pick_kind kind;
    char *glob;      /* NAME; of a counter, too */
    unsigned marker; /* STEP: of the markers seen the one that is tried first */
    bool has_marker;
};

/* Durations are compared with a time, or with a share of those of the last while. */
struct sv_limit {
    int64_t ns; /* 0: it is computed */
    double factor, share;
    struct sv_when_window *window;
    char text[64];
};

enum { SV_ROWS_MAX = 64, SV_RATE_SLOTS = 32 };

/* A counter that matches: since when the comparison holds. */
struct sv_when_counter {
    sv_track track;
    int64_t since_ns;
    double value;
    bool holds, has_fired;
};

struct sv_condition {
    const struct sv_when_kind *kind;
    unsigned number;
    char *text;
    struct sv_pick pick;
    enum sv_when_op op;
    double value;            /* to compare with */
    struct sv_limit limit;   /* slices */
    int64_t for_ns, span_ns; /* "for 30s"; "over 10s" */
    int signal;              /* 0: any */
    bool is_seen, is_said;   /* something had such a name; that nothing had was said */
    bool has_fired;          /* it still holds: one hit until it stops */
    int64_t last_ns;         /* NO: the last one; RATE: the first one */
    struct sv_when_counter rows[SV_ROWS_MAX];
    size_t n_rows;
    uint64_t slots[SV_RATE_SLOTS]; /* RATE: events in each part of the span */
    int64_t slot;                  /* the newest */
    int64_t killed_ns, oom_ns;     /* OOM: last end by SIGKILL, last rise of the count */
    double oom_count;
    char killed[64];
    struct sv_when_log *log;
};

struct sv_when_kind {
    const char *word, *syntax, *holds;
    unsigned feeds; /* enum sv_seen_kind: only such are fed to it */
    unsigned needs; /* enum sv_when_need */
    void (*parse)(struct sv_when_reader *r, struct sv_condition *c);
    /* NULL: nothing is fed. NAME: only names that sv_pick_has() */
    void (*feed)(struct sv_when *w, struct sv_condition *c, const struct sv_seen *s);
    void (*check)(struct sv_when *w, struct sv_condition *c, int64_t now_ns); /* NULL: no need */
};
extern const struct sv_when_kind *const sv_when_kinds[]; /* ends with NULL */

/* A slice that is open and matches. */
enum { SV_OPEN_MAX = 1024 };
struct sv_when_open {
    sv_track track; /* 0: free */
    sv_str name;
    int64_t begin_ns;
    uint64_t conditions, fired; /* bits */
    uint32_t inner;             /* begins after it that are not here */
    uint32_t below;             /* the one around it, + 1; 0: none */
};

struct sv_when {
    struct sv_dict *dict;
    struct sv_condition *all[SV_WHEN_MAX];
    size_t n;
    unsigned feeds;
    uint64_t *by_name; /* by string: which conditions it matters to; KNOWN: looked at */
    size_t n_names;
    uint64_t *by_track; /* of counters, likewise */
    size_t n_tracks;
    struct sv_when_open open[SV_OPEN_MAX];
    uint32_t free_open, n_open; /* the first place that may be free */
    struct sv_map top;          /* track → its innermost open slice + 1 */
    struct sv_when_hit hits[64];
    size_t first_hit, n_hits;
    uint64_t n_uncounted;
    int64_t first_tick_ns, checked_ns;
    sv_str exit, status, cat_process;
};
#define SV_WHEN_KNOWN ((uint64_t)1 << 63)

/* Steps: is the name one, and is no marker that is tried before it known? It then becomes the
 * marker. */
bool sv_pick_has(const struct sv_pick *p, const char *text);
bool sv_pick_takes(struct sv_condition *c, const struct sv_seen *s);

void sv_when_hit(struct sv_when *w, struct sv_condition *c, int64_t ts_ns, sv_track track,
                 const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* slices.c */
void sv_when_open_begin(struct sv_when *w, const struct sv_event *e);
/* True: it closed one that matters; it is in *out. */
bool sv_when_open_end(struct sv_when *w, const struct sv_event *e, struct sv_when_open *out);
void sv_when_open_forget(struct sv_when *w, sv_track track);
void sv_slice_parse(struct sv_when_reader *r, struct sv_condition *c);
void sv_slice_feed(struct sv_when *w, struct sv_condition *c, const struct sv_seen *s);
void sv_slice_check(struct sv_when *w, struct sv_condition *c, int64_t now_ns);

/* log_file.c */
struct sv_when_log *sv_when_log_new(const char *path, const char *text);
void sv_when_log_free(struct sv_when_log *l);
const char *sv_when_log_path(const struct sv_when_log *l);
bool sv_when_log_is_there(const struct sv_when_log *l);
/* Reads on: the next new line with the text, valid until the next call; NULL: none. */
const char *sv_when_log_next(struct sv_when_log *l);

#endif
