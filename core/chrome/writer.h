/* The inside of the Chrome JSON writer, shared by its files and by nobody else.
 *
 *   core/chrome/write.c         entry points: head, tail, one line per event
 *   core/chrome/write_track.c   tracks → pids, tids and the metadata events that describe them
 *   core/chrome/write_args.c    argument lists → JSON
 *   core/chrome/write_async.c   tracks of operations with an id: b, n, e
 *
 * Everything goes into `buf` through `json`, a line per event, and from there to the output at the
 * end of each batch. */
#pragma once

#include "core/base/json.h"
#include "core/base/map.h"
#include "core/chrome/keys.h"
#include "core/stream/writer.h"

enum chrome_row_form {
    ROW_NONE, /* not placed yet */
    ROW_THREAD,
    ROW_COUNTER,
    ROW_SERIES, /* one of several values of a counter */
    ROW_ASYNC
};

/* What the writer knows about a track. */
struct chrome_row {
    int64_t pid, tid;  /* of its events; tid is only valid with has_tid */
    int64_t group_pid; /* of the tracks below it (a process, a group at the top), with has_group */
    const char *ids;   /* `"pid":1,"tid":2` */
    sv_str label;      /* counters: the name in the file */
    int32_t revision;  /* of the track when it was last described */
    int32_t group_revision;
    uint16_t ids_len;
    uint8_t form; /* enum chrome_row_form */
    bool has_tid, has_group;
    bool is_described, is_group_described;
    bool is_bound; /* its uuid is in the file */
    bool needs_id; /* counters: another one has the same name */
};

#define CHROME_SERIES_MAX 32

/* A counter event that is still open, because the next value may belong to it. */
struct chrome_open_counter {
    int64_t ts_ns;
    sv_track parent; /* 0: none is open */
    sv_str cat;
    size_t n;
    sv_track series[CHROME_SERIES_MAX];
};

struct chrome_open_async {
    sv_str name, cat;
    uint32_t below; /* number + 1 */
};

struct chrome_due_async {
    int64_t end_ns;
    uint64_t number; /* in order of begin */
    sv_track track;
    sv_str name, cat;
};

struct chrome_writer {
    struct sv_sink sink;
    struct sv_output *out;
    struct sv_dict *dict;
    struct sv_report *report;
    struct sv_buf buf, scratch;
    struct sv_json json;
    bool is_array, has_head;
    int64_t base_ns;
    struct sv_arena arena;

    struct chrome_row *rows; /* by track */
    size_t n_rows, cap_rows;
    uint8_t *has_child; /* by track, for the first n_seen tracks */
    size_t n_seen, cap_seen;
    struct sv_map pids;   /* pid → track that has it */
    struct sv_map tids;   /* hash of pid and tid → track */
    struct sv_map labels; /* hash of pid and counter label → track */
    int64_t next_number;  /* for synthetic pids and tids */
    int64_t global_pid;   /* of tracks that belong nowhere */
    bool has_global;
    bool is_placing; /* the ancestors of some track */

    /* numbers of flows that have begun: the only memory that grows with the file */
    struct sv_map flows;
    struct chrome_open_counter counter;

    struct sv_map async_tops; /* track → number + 1 of its newest open begin */
    struct chrome_open_async *open;
    size_t n_open, cap_open;
    uint32_t free_open;           /* number + 1 */
    struct chrome_due_async *due; /* a heap, the earliest end on top */
    size_t n_due, cap_due;
    uint64_t n_begun;

    sv_str *head_meta; /* the values that the head has */
    uint32_t n_head_meta;
    size_t n_head_snapshots;
};

/* core/chrome/write.c */
void chrome_line(struct chrome_writer *w); /* begins an event; sv_json_end() ends it */
void chrome_key_text(struct chrome_writer *w, const char *key, size_t len, sv_str text);
void chrome_time(struct chrome_writer *w, int64_t ts_ns);

/* The uuid in the file, where 0 means no track: Perfetto's default track, which has it, gets
 * another. */
static inline uint64_t chrome_uuid(const struct chrome_writer *w, sv_track t)
{
    uint64_t uuid = w->dict->tracks[t].uuid;
    return uuid != 0 ? uuid : sv_mix64(1);
}

/* core/chrome/write_track.c. Rows move when another track is placed. */
struct chrome_row *chrome_place(struct chrome_writer *w, sv_track t, const struct sv_event *first);
struct chrome_row *chrome_bind(struct chrome_writer *w, sv_track t);
bool chrome_is_process(struct chrome_writer *w, sv_track t, int64_t *pid);
void chrome_begin_metadata(struct chrome_writer *w, const char *name, int64_t pid,
                           int64_t tid); /* opens args */
void chrome_end_metadata(struct chrome_writer *w);
void chrome_describe_late(struct chrome_writer *w);

static inline struct chrome_row *chrome_row(struct chrome_writer *w, const struct sv_event *e)
{
    if (__builtin_expect(e->track < w->n_rows && w->rows[e->track].form != ROW_NONE, 1))
        return &w->rows[e->track];
    return chrome_place(w, e->track, e);
}

/* core/chrome/write_args.c */
struct chrome_extras { /* what an argument list says outside of `args` */
    const struct sv_arg *thread_time, *thread_dur, *stack;
    uint32_t n_flows, n_correlations;
    bool any_args;
};
struct chrome_extras chrome_survey(const struct sv_arg *args, size_t n);
void chrome_put_args(struct chrome_writer *w, const struct sv_arg *args, size_t n,
                     const struct chrome_extras *x);
void chrome_stack(struct chrome_writer *w, const struct sv_arg *stack);

/* core/chrome/write_async.c */
void chrome_async_until(struct chrome_writer *w, int64_t ts_ns);
void chrome_put_async(struct chrome_writer *w, const struct sv_event *e);

/* core/chrome/write.c: the fields of an event after its ids, and the end of the line */
void chrome_finish(struct chrome_writer *w, const struct sv_event *e,
                   const struct chrome_extras *x);
