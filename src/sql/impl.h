/* Internal header of sql/: what its files and the tables of subjects share.
 *
 *   sql.c     the connection, running statements
 *   table.c   virtual tables: one implementation for all, driven by struct sv_sql_table
 *   slice.c, track.c, thread.c (with process)
 *   event.c   counter, flow, loss
 *   args.c    args, EXTRACT_ARG
 *   meta.c    stats, metadata, clocks, machine
 *   origin.c  columns about rank and host
 *   walk.c    ancestor_slice and other functions that give rows
 *   span.c    SPAN_JOIN
 *   fold.c    aggregates rewritten over groups.c
 *   tokens.c  the words of a statement
 *   func.c    functions of values
 *   views.c   the views
 *   dialect.c Perfetto's own statements
 *   export.c  all tables as a SQLite file, by tree_file.c
 *
 * Tables of one subject (step, collective, engine_request, …) are in subjects/NAME/table.c. */
#pragma once

#include "core/base/buf.h"
#include "core/base/map.h"
#include "sql/direct.h"
#include "sql/set.h"
#include "sql/sql.h"
#include "store/index.h"
#include "store/ranks.h"

#include "sql/sandbox.h"

#include <sqlite3.h>

struct sv_track_rows;
struct sv_sql_function;
struct sv_sql_group_set;

#define SV_SET_COUNT(name, report, tables) SV_IF_##tables(+1)
enum { SV_N_SETS = 0 SV_SUBJECTS(SV_SET_COUNT) };
#undef SV_SET_COUNT

/* A thread or process: `track` is 0 where the trace only implies it (the idle one, the main thread
 * of a process). */
struct sv_sql_task {
    sv_track track;
    uint32_t process; /* of a thread: its number, 0: unknown */
    uint32_t space;
    int64_t id; /* tid, pid */
};

struct sv_sql {
    struct sv_sandbox sandbox;
    sqlite3 *db; /* the sandbox's */
    const struct sv_trace *trace;
    const struct sv_dict *dict;
    struct sv_index *index;
    const char *arg_prefix;
    const struct sv_report *report;
    const char *trace_type;
    uint64_t trace_bytes;
    struct sv_batch *scratch; /* for decoding arguments */
    struct sv_buf text;       /* a key or value under construction */
    /* Threads and processes. [0] is unused, [1] is the idle one, so the number that SQL shows
     * (utid, upid) is one less. */
    struct sv_sql_task *threads, *processes;
    uint32_t *thread_of, *process_of; /* by track: what it belongs to; 0: none */
    uint32_t n_threads, n_processes;  /* including [0] */
    uint32_t *by_tid;                 /* threads, by tid and then by number, from [1] on */
    uint32_t args_of;                 /* the last handle that sv_sql_has_args() looked at */
    bool has_args;
    uint32_t *by_thread, *by_process;       /* tracks, grouped by thread and by process … */
    uint32_t *thread_first, *process_first; /* … and where each group begins; one more at the end */
    uint32_t *spaces, n_spaces;             /* machines */
    struct sv_origin *origins;              /* of the machines; made at first use */
    int64_t *self_ns;                       /* made at first use */
    struct sv_track_rows *rows;             /* of the time line; made at first use */
    uint64_t *arg_sets;                     /* one bit per handle that occurs; made at first use */
    uint32_t arg_set_max;
    uint8_t *categories;   /* by string, whether a slice has it as category; made at first use */
    void *kept[SV_N_SETS]; /* by set of tables: what they were made of */
    struct sv_sql_group_set **group_sets; /* of the running statement (groups.c) */
    size_t cap_group_sets;
    uint32_t n_group_sets, n_name_scans;
    uint16_t *category_numbers; /* by string; made at first use */
    int sums;                   /* enum sv_sql_sums, if has_sums */
    bool has_sums, has_own_aggregate;
    int64_t limit_ms, deadline_ms;     /* of the running statements; 0: no limit */
    struct sv_sql_function *functions; /* made by CREATE PERFETTO FUNCTION */
    unsigned call_depth;               /* of these functions within each other */
    char foreign_module[104];          /* an included module of which Stave has nothing */
};

/* ---- virtual tables ---- */

enum sv_sql_op {
    SV_OP_EQ = 'e',
    SV_OP_IN = 'i', /* the value is a list, for sqlite3_vtab_in_first() */
    SV_OP_GT = 'g',
    SV_OP_GE = 'G',
    SV_OP_LT = 'l',
    SV_OP_LE = 'L',
    SV_OP_GLOB = '*',
    SV_OP_LIKE = '%',
    SV_OP_NULL = '0',
    SV_OP_LIMIT = 'n', /* of the whole statement; the column means nothing */
    SV_OP_OFFSET = 'o'
};

/* Part of what order() returns: start() wants LIMIT and OFFSET as conditions. */
#define SV_ORDER_LIMITED 0x40

/* A condition that SQLite hands down: column OP value. */
struct sv_sql_cond {
    int column;
    enum sv_sql_op op;
    sqlite3_value *value;
};

#define SV_SQL_CONDS_MAX 16

struct sv_sql_cursor;

/* Which conditions a table can use. */
struct sv_sql_key {
    int column;
    const char *ops; /* letters of enum sv_sql_op */
    double fraction; /* of all rows that are left under one such condition; 0: one row at most */
};

struct sv_sql_table {
    const char *name, *columns; /* columns: as in CREATE TABLE; NULL: those of typed.h */
    const struct sv_sql_key *keys;
    size_t n_keys;
    unsigned
        /* columns, as bits, whose conditions start() applies to the letter: SQLite does not check
         * them again */
        exact;
    uint64_t (*rows)(struct sv_sql *q); /* how many there are, roughly */
    /* The order that can be given for ORDER BY, as a number > 0 for start(), else 0. */
    int (*order)(struct sv_sql *q, sqlite3_index_info *info, bool has_conds);
    /* Before the first row of an iteration: computes what rows() then counts exactly; may be
     * NULL. */
    const void *(*make)(struct sv_sql *q);
    /* Begins an iteration: sets the range of the cursor by sv_sql_range(), _list() or _none().
     * Conditions may be used or not: SQLite checks each row again. NULL: all rows that pass(). */
    int (*start)(struct sv_sql_cursor *c, int order, const struct sv_sql_cond *conds, size_t n);
    int (*step)(struct sv_sql_cursor *c); /* NULL: the next of the range */
    void (*column)(struct sv_sql_cursor *c, sqlite3_context *ctx, int column);
    void (*finish)(struct sv_sql_cursor *c); /* frees `state`, may be NULL */
    bool (*passes)(const struct sv_sql_cursor
                       *c); /* whether the current row is wanted; asked if `is_filtered` */
    /* Asks the memory for the columns `used` (bits) of a row that will be current soon; may be
     * NULL. */
    void (*prefetch)(const struct sv_sql *q, uint32_t row, unsigned used);
    int n_arguments; /* hidden columns at the end that must be given: the table is a function */
    int first_argument;
};

struct sv_sql_cursor {
    sqlite3_vtab_cursor base;
    struct sv_sql *q;
    const struct sv_sql_table *table;
    const uint32_t *rows;         /* the rows in question, or NULL: all numbers from at to end */
    uint32_t *owned;              /* a list made for this cursor */
    uint64_t at, end;             /* positions; what is left is [at, end) */
    bool is_filtered;             /* rows that do not pass() are left out */
    bool is_backward;             /* from end - 1 down to at */
    uint64_t row;                 /* the current one */
    unsigned used;                /* columns that the statement reads, as bits */
    const struct sv_names *names; /* the rows are those of all names, in their order: … */
    uint32_t group;               /* … the name of the current row, found by going along */
    void *state;
};

int sv_sql_add_table(struct sv_sql *q, const struct sv_sql_table *table);

void sv_sql_none(struct sv_sql_cursor *c);
void sv_sql_range(struct sv_sql_cursor *c, uint64_t from, uint64_t to);
void sv_sql_list(struct sv_sql_cursor *c, const uint32_t *rows, uint64_t from, uint64_t to);
void sv_sql_own(struct sv_sql_cursor *c, uint32_t *rows, uint64_t n);
static inline bool sv_sql_at_end(const struct sv_sql_cursor *c)
{
    return c->at >= c->end;
}

/* The value as an integer for a comparison by `op`; false: no integer equals it. Bounds are rounded
 * to the side that loses nothing. */
bool sv_sql_value_int(sqlite3_value *v, enum sv_sql_op op, int64_t *out);
/* Narrows [*from, *to] by a condition on a time. */
void sv_sql_narrow(const struct sv_sql_cond *cond, int64_t *from, int64_t *to);
/* The condition on a column with this operator, or NULL. */
const struct sv_sql_cond *sv_sql_find_cond(const struct sv_sql_cond *conds, size_t n, int column,
                                           enum sv_sql_op op);

void sv_sql_result_str(const struct sv_sql *q, sqlite3_context *ctx, sv_str s); /* 0: NULL */
void sv_sql_result_text(sqlite3_context *ctx, const char *s, size_t len);       /* copied */

/* ---- the tables ---- */

extern const struct sv_sql_table sv_sql_slice, sv_sql_track, sv_sql_thread, sv_sql_process,
    sv_sql_counter, sv_sql_flow, sv_sql_loss, sv_sql_args, sv_sql_stats, sv_sql_metadata,
    sv_sql_clock_snapshot, sv_sql_machine, sv_sql_ancestor, sv_sql_descendant, sv_sql_connected,
    sv_sql_following, sv_sql_preceding, sv_sql_during, sv_sql_ancestor_and_self,
    sv_sql_descendant_and_self;

/* The columns of `slice`, shared by all tables whose rows are slices. */
#define SV_SQL_SLICE_SHOWN                                                                     \
    "id INTEGER, ts INTEGER, dur INTEGER, track_id INTEGER, category TEXT, name TEXT, "        \
    "depth INTEGER, parent_id INTEGER, arg_set_id INTEGER, thread_ts INTEGER, "                \
    "thread_dur INTEGER, thread_instruction_count INTEGER, thread_instruction_delta INTEGER, " \
    "cat TEXT, slice_id INTEGER"
#define SV_SQL_SLICE_COLUMNS                                           \
    SV_SQL_SLICE_SHOWN ", kind TEXT HIDDEN, self_dur INTEGER HIDDEN, " \
                       "view_row INTEGER HIDDEN, view_line INTEGER HIDDEN"
enum {
    SV_SLICE_ID,
    SV_SLICE_TS,
    SV_SLICE_DUR,
    SV_SLICE_TRACK,
    SV_SLICE_CATEGORY,
    SV_SLICE_NAME,
    SV_SLICE_DEPTH,
    SV_SLICE_PARENT,
    SV_SLICE_ARGS,
    SV_SLICE_THREAD_TS,
    SV_SLICE_THREAD_DUR,
    SV_SLICE_INSTRUCTIONS,
    SV_SLICE_INSTRUCTIONS_DELTA,
    SV_SLICE_CAT,
    SV_SLICE_SLICE_ID,
    SV_SLICE_KIND,
    SV_SLICE_SELF,
    SV_SLICE_VIEW_ROW,
    SV_SLICE_VIEW_LINE,
    SV_SLICE_N_COLUMNS
};
/* Functions that give slices have their arguments where `slice` has its hidden columns. */
#define SV_SLICE_ARGUMENT SV_SLICE_KIND
_Static_assert((int)SV_SQL_SLICE_CELLS == (int)SV_SLICE_KIND, "columns that are not hidden");
void sv_sql_slice_column(struct sv_sql_cursor *c, sqlite3_context *ctx, int column);

/* Argument sets: those of slices are the store's handles; those of tracks and processes are made
 * here, with numbers past 32 bits. */
enum sv_arg_owner {
    SV_OF_SLICE,
    SV_OF_TRACK_SOURCE,
    SV_OF_TRACK_DIMENSION,
    SV_OF_PROCESS,
    SV_OF_THREAD
};
static inline int64_t sv_sql_arg_set(enum sv_arg_owner owner, uint32_t number)
{
    return (int64_t)owner << 32 | number;
}

/* What SQLite says went wrong. */
int sv_sql_error(struct sv_sql *q, const char *doing, struct sv_err *err);

int sv_sql_add_functions(struct sv_sql *q);
int sv_sql_add_arg_functions(struct sv_sql *q);
int sv_sql_add_span_join(struct sv_sql *q);
/* thread_slice: what it has of others than slices (s), and where from. */
#define SV_SQL_THREAD_SLICE_OWNERS                                                   \
    "k.name AS track_name, t.name AS thread_name, t.utid, t.tid, t.is_main_thread, " \
    "p.name AS process_name, p.upid, p.pid"
#define SV_SQL_THREAD_SLICE_JOIN                                                     \
    "JOIN thread_track k ON s.track_id = k.id JOIN thread t USING (utid) LEFT JOIN " \
    "process p USING (upid)"
extern const char *const sv_sql_views[]; /* CREATE statements, NULL-terminated */

/* The first `want` rows by duration (is_down: longest first), *n of them; free() it. */
uint32_t *sv_sql_longest(const struct sv_sql *q, bool is_down, uint64_t want, uint64_t *n);

void sv_sql_flow_column(struct sv_sql_cursor *c, sqlite3_context *ctx, int column);
/* The row of the slice with the id in `value`, or SV_NO_ROW. */
uint32_t sv_sql_slice_of(struct sv_sql *q, sqlite3_value *value);

/* ---- Perfetto's own statements ---- */

/* Deals with the statement at the beginning of `sql`, if it is Perfetto's: 1 when it is done and
 * *tail points after it; 0 when the text, perhaps rewritten, is for SQLite. */
int sv_sql_dialect(struct sv_sql *q, char *sql, const char **tail, struct sv_err *err);
const char *sv_sql_dialect_hint(const struct sv_sql *q, const char *message); /* "" mostly */
const char *sv_sql_skip_space(const char *p);                                 /* and comments */
void sv_sql_forget_functions(struct sv_sql *q);

void sv_sql_number_tracks(struct sv_sql *q);
uint32_t sv_sql_machine_of(const struct sv_sql *q, uint32_t space);

/* The columns about rank and host that process, track and machine end in; `which` counts from the
 * first of them. */
#define SV_SQL_ORIGIN_COLUMNS(hidden)                                                 \
    "rank INTEGER" hidden ", local_rank INTEGER" hidden ", world_size INTEGER" hidden \
    ", job TEXT" hidden ", launcher TEXT" hidden ", host TEXT" hidden ", boot_id TEXT" hidden
void sv_sql_origin_column(sqlite3_context *ctx, const struct sv_origin *o, int which);
const struct sv_origin *sv_sql_machine_origin(struct sv_sql *q, uint64_t machine);
/* Sets the cursor to the one number in [1, n) that is the value plus `shift`, if there is one. */
void sv_sql_start_number(struct sv_sql_cursor *c, const struct sv_sql_cond *cond, int shift,
                         uint32_t n);
