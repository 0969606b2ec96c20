/* The tables `track`, `thread` and `process`: the dictionary's tracks.
 *
 * Threads and processes are tracks of those kinds, numbered from 1 in the order in which the dictionary met them (utid, upid).
 * A track belongs to the thread or process above it. Names follow Perfetto: the track of a thread itself has no name, the
 * thread has. */
#include "analysis/sql.h"

#ifdef SV_HAVE_SQLITE
#include "analysis/sql_impl.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* ---- numbering ---- */

/* Groups 1 … n_tracks - 1 by number[track]: counting sort. */
static uint32_t *group_tracks(const uint32_t *number, uint32_t n_tracks, uint32_t n_groups,
                              uint32_t **first)
{
    uint32_t *tracks = sv_alloc(((size_t)n_tracks + 1) * sizeof *tracks);
    uint32_t *start = *first = sv_alloc(((size_t)n_groups + 2) * sizeof *start);
    for (uint32_t k = 1; k < n_tracks; k++)
        start[number[k] + 1]++;
    for (uint32_t g = 0; g < n_groups; g++)
        start[g + 1] += start[g];
    uint32_t *next = sv_alloc(((size_t)n_groups + 1) * sizeof *next);
    memcpy(next, start, n_groups * sizeof *next);
    for (uint32_t k = 1; k < n_tracks; k++)
        tracks[next[number[k]]++] = k;
    free(next);
    return tracks;
}

static void add_space(struct sv_sql *q, uint32_t space)
{
    for (uint32_t i = 0; i < q->n_spaces; i++)
        if (q->spaces[i] == space)
            return;
    q->spaces = sv_realloc(q->spaces, (q->n_spaces + 1) * sizeof *q->spaces);
    q->spaces[q->n_spaces++] = space;
}

void sv_sql_number_tracks(struct sv_sql *q)
{
    const struct sv_dict *d = q->dict;
    uint32_t n = d->n_tracks ? d->n_tracks : 1;
    q->thread_track = sv_alloc(n * sizeof *q->thread_track);
    q->process_track = sv_alloc(n * sizeof *q->process_track);
    q->utid = sv_alloc(n * sizeof *q->utid);
    q->upid = sv_alloc(n * sizeof *q->upid);
    q->n_threads = q->n_processes = 1;
    add_space(q, 0);
    for (sv_track k = 1; k < n; k++) {
        if (d->tracks[k].kind == SV_TRACK_PROCESS) {
            q->upid[k] = q->n_processes;
            q->process_track[q->n_processes++] = k;
        } else if (d->tracks[k].kind == SV_TRACK_THREAD) {
            q->utid[k] = q->n_threads;
            q->thread_track[q->n_threads++] = k;
        }
        add_space(q, d->tracks[k].space);
    }
    for (sv_track k = 1; k < n; k++) {
        q->upid[k] = q->upid[sv_dict_process_of(d, k)];
        q->utid[k] = q->utid[sv_dict_thread_of(d, k)];
    }
    q->by_thread = group_tracks(q->utid, n, q->n_threads, &q->thread_first);
    q->by_process = group_tracks(q->upid, n, q->n_processes, &q->process_first);
}

static uint32_t machine_of(const struct sv_sql *q, sv_track track)
{
    for (uint32_t i = 0; i < q->n_spaces; i++)
        if (q->spaces[i] == q->dict->tracks[track].space)
            return i;
    return 0;
}

/* Sets the cursor to the one number that equals the value, if it is within 1 … n - 1. */
static void start_number(struct sv_sql_cursor *c, const struct sv_sql_cond *cond, uint32_t n)
{
    int64_t number;
    if (sv_sql_value_int(cond->value, SV_OP_EQ, &number) && number > 0 && number < n)
        sv_sql_range(c, (uint64_t)number, (uint64_t)number + 1);
}

/* ---- track ---- */

enum {
    T_ID,
    T_NAME,
    T_TYPE,
    T_DIMENSION,
    T_PARENT,
    T_SOURCE,
    T_MACHINE,
    T_GROUP,
    T_UTID,
    T_UPID,
    T_UNIT,
    T_DESCRIPTION,
    T_KIND,
    T_IS_COUNTER,
    T_UUID,
    T_CPU
};

const char *sv_sql_track_type(const struct sv_sql *q, sv_track track)
{
    static const char *const names[3][2] = {
        {"global_track_event", "global_counter_track_event"},
        {"process_track_event", "process_counter_track_event"},
        {"thread_track_event", "thread_counter_track_event"},
    };
    const struct sv_track_info *k = &q->dict->tracks[track];
    if (k->kind == SV_TRACK_THREAD)
        return "thread_execution";
    if (k->kind == SV_TRACK_ASYNC)
        return q->upid[track] ? "legacy_async_process_slice" : "legacy_async_global_slice";
    int scope = q->utid[track] ? 2 : q->upid[track] ? 1 : 0;
    return names[scope][k->kind == SV_TRACK_COUNTER];
}

static uint64_t track_rows(struct sv_sql *q)
{
    return q->dict->n_tracks;
}

static int track_start(struct sv_sql_cursor *c, int order, const struct sv_sql_cond *conds,
                       size_t n)
{
    (void)order;
    const struct sv_sql *q = c->q;
    const struct sv_sql_cond *cond;
    int64_t number;
    if ((cond = sv_sql_find_cond(conds, n, T_ID, SV_OP_EQ))) {
        start_number(c, cond, q->dict->n_tracks);
    } else if ((cond = sv_sql_find_cond(conds, n, T_UTID, SV_OP_EQ))) {
        if (sv_sql_value_int(cond->value, SV_OP_EQ, &number) && number > 0 && number < q->n_threads)
            sv_sql_list(c, q->by_thread, q->thread_first[number], q->thread_first[number + 1]);
    } else if ((cond = sv_sql_find_cond(conds, n, T_UPID, SV_OP_EQ))) {
        if (sv_sql_value_int(cond->value, SV_OP_EQ, &number) && number > 0 &&
            number < q->n_processes)
            sv_sql_list(c, q->by_process, q->process_first[number], q->process_first[number + 1]);
    } else {
        sv_sql_range(c, 1, q->dict->n_tracks);
    }
    return SQLITE_OK;
}

/* Threads and processes are not parents in this sense: their rows say to whom they belong by utid and upid. */
static void track_parent(const struct sv_sql *q, sqlite3_context *ctx,
                         const struct sv_track_info *k)
{
    unsigned kind = q->dict->tracks[k->parent].kind;
    if (k->parent && kind != SV_TRACK_PROCESS && kind != SV_TRACK_THREAD)
        sqlite3_result_int64(ctx, k->parent);
}

static void track_cpu(const struct sv_sql *q, sqlite3_context *ctx, const struct sv_track_info *k)
{
    struct sv_text name = sv_dict_text(q->dict, k->name);
    size_t at = name.len;
    while (at > 0 && name.bytes[at - 1] >= '0' && name.bytes[at - 1] <= '9')
        at--;
    if (k->kind == SV_TRACK_CPU && at < name.len)
        sqlite3_result_int64(ctx, strtoll(name.bytes + at, NULL, 10));
}

/* The track of a thread or process has no name, its owner has. A series of a group of counters is "group series", and a row
 * without a name has that of the first slice on it. */
static void track_name(struct sv_sql *q, sqlite3_context *ctx, sv_track track)
{
    const struct sv_track_info *k = &q->dict->tracks[track], *above = &q->dict->tracks[k->parent];
    if (k->kind == SV_TRACK_THREAD || k->kind == SV_TRACK_PROCESS)
        return;
    if (k->kind == SV_TRACK_COUNTER && k->parent && above->kind == SV_TRACK_COUNTER &&
        above->name) {
        struct sv_text group = sv_dict_text(q->dict, above->name);
        struct sv_text series = sv_dict_text(q->dict, k->name);
        sv_buf_clear(&q->text);
        sv_buf_add(&q->text, group.bytes, group.len);
        sv_buf_byte(&q->text, ' ');
        sv_buf_add(&q->text, series.bytes, series.len);
        sv_sql_result_text(ctx, sv_buf_cstr(&q->text), q->text.len);
    } else if (!k->name && k->kind == SV_TRACK_CUSTOM && sv_trace_has_track(q->trace, track) &&
               q->trace->tracks[track].first < q->trace->tracks[track].end) {
        sv_sql_result_str(q, ctx, q->trace->slices.name[q->trace->tracks[track].first]);
    } else {
        sv_sql_result_str(q, ctx, k->name);
    }
}

static void track_column(struct sv_sql_cursor *c, sqlite3_context *ctx, int column)
{
    const struct sv_sql *q = c->q;
    sv_track track = (sv_track)c->row;
    const struct sv_track_info *k = &q->dict->tracks[track];
    switch (column) {
    case T_ID: sqlite3_result_int64(ctx, track); break;
    case T_NAME: track_name(c->q, ctx, track); break;
    case T_TYPE: sqlite3_result_text(ctx, sv_sql_track_type(q, track), -1, SQLITE_STATIC); break;
    case T_DIMENSION:
        sqlite3_result_int64(ctx, sv_sql_arg_set(SV_OF_TRACK_DIMENSION, track));
        break;
    case T_PARENT: track_parent(q, ctx, k); break;
    case T_SOURCE: sqlite3_result_int64(ctx, sv_sql_arg_set(SV_OF_TRACK_SOURCE, track)); break;
    case T_MACHINE: sqlite3_result_int64(ctx, machine_of(q, track)); break;
    case T_UTID:
        if (q->utid[track])
            sqlite3_result_int64(ctx, q->utid[track]);
        break;
    case T_UPID:
        if (q->upid[track])
            sqlite3_result_int64(ctx, q->upid[track]);
        break;
    case T_UNIT: sv_sql_result_str(q, ctx, k->unit); break;
    case T_DESCRIPTION: sv_sql_result_str(q, ctx, k->desc); break;
    case T_KIND: sqlite3_result_text(ctx, sv_track_kind_name(k->kind), -1, SQLITE_STATIC); break;
    case T_IS_COUNTER: sqlite3_result_int(ctx, k->kind == SV_TRACK_COUNTER); break;
    case T_UUID: sqlite3_result_int64(ctx, (sqlite3_int64)k->uuid); break;
    case T_CPU: track_cpu(q, ctx, k); break;
    default: break;
    }
}

static const struct sv_sql_key track_keys[] = {
    {T_ID, "e", 0}, {T_UTID, "e", 0.01}, {T_UPID, "e", 0.1}};

const struct sv_sql_table sv_sql_track = {
    .name = "track",
    .columns = "id INTEGER, name TEXT, type TEXT, dimension_arg_set_id INTEGER, parent_id INTEGER, "
               "source_arg_set_id INTEGER, machine_id INTEGER, track_group_id INTEGER, "
               "owner_utid INTEGER HIDDEN, owner_upid INTEGER HIDDEN, unit TEXT HIDDEN, "
               "description TEXT HIDDEN, kind TEXT HIDDEN, is_counter INTEGER HIDDEN, "
               "uuid INTEGER HIDDEN, cpu INTEGER HIDDEN",
    .keys = track_keys,
    .n_keys = sizeof track_keys / sizeof track_keys[0],
    .rows = track_rows,
    .start = track_start,
    .column = track_column,
};

/* ---- thread ---- */

enum {
    TH_UTID,
    TH_ID,
    TH_TID,
    TH_NAME,
    TH_START,
    TH_END,
    TH_UPID,
    TH_IS_MAIN,
    TH_IS_IDLE,
    TH_MACHINE,
    TH_ARGS
};

static uint64_t thread_rows(struct sv_sql *q)
{
    return q->n_threads;
}

static int thread_start(struct sv_sql_cursor *c, int order, const struct sv_sql_cond *conds,
                        size_t n)
{
    (void)order;
    const struct sv_sql_cond *cond;
    if ((cond = sv_sql_find_cond(conds, n, TH_UTID, SV_OP_EQ)) ||
        (cond = sv_sql_find_cond(conds, n, TH_ID, SV_OP_EQ)))
        start_number(c, cond, c->q->n_threads);
    else
        sv_sql_range(c, 1, c->q->n_threads);
    return SQLITE_OK;
}

static void thread_column(struct sv_sql_cursor *c, sqlite3_context *ctx, int column)
{
    const struct sv_sql *q = c->q;
    sv_track track = q->thread_track[c->row];
    const struct sv_track_info *k = &q->dict->tracks[track];
    switch (column) {
    case TH_UTID:
    case TH_ID: sqlite3_result_int64(ctx, (sqlite3_int64)c->row); break;
    case TH_TID: sqlite3_result_int64(ctx, k->tid); break;
    case TH_NAME: sv_sql_result_str(q, ctx, k->name); break;
    case TH_UPID:
        if (q->upid[track])
            sqlite3_result_int64(ctx, q->upid[track]);
        break;
    case TH_IS_MAIN:
        if (q->upid[track])
            sqlite3_result_int(ctx, k->tid == k->pid);
        break;
    case TH_IS_IDLE: sqlite3_result_int(ctx, 0); break;
    case TH_MACHINE: sqlite3_result_int64(ctx, machine_of(q, track)); break;
    case TH_ARGS:
        if (k->has_order)
            sqlite3_result_int64(ctx, sv_sql_arg_set(SV_OF_THREAD, track));
        break;
    default: break;
    }
}

static const struct sv_sql_key thread_keys[] = {{TH_UTID, "e", 0}, {TH_ID, "e", 0}};

const struct sv_sql_table sv_sql_thread = {
    .name = "thread",
    .columns = "utid INTEGER, id INTEGER, tid INTEGER, name TEXT, start_ts INTEGER, "
               "end_ts INTEGER, upid INTEGER, is_main_thread INTEGER, is_idle INTEGER, "
               "machine_id INTEGER, arg_set_id INTEGER",
    .keys = thread_keys,
    .n_keys = sizeof thread_keys / sizeof thread_keys[0],
    .rows = thread_rows,
    .start = thread_start,
    .column = thread_column,
};

/* ---- process ---- */

enum {
    P_UPID,
    P_ID,
    P_PID,
    P_NAME,
    P_START,
    P_END,
    P_PARENT,
    P_UID,
    P_APPID,
    P_USER,
    P_CMDLINE,
    P_ARGS,
    P_MACHINE
};

static uint64_t process_rows(struct sv_sql *q)
{
    return q->n_processes;
}

static int process_start(struct sv_sql_cursor *c, int order, const struct sv_sql_cond *conds,
                         size_t n)
{
    (void)order;
    const struct sv_sql_cond *cond;
    if ((cond = sv_sql_find_cond(conds, n, P_UPID, SV_OP_EQ)) ||
        (cond = sv_sql_find_cond(conds, n, P_ID, SV_OP_EQ)))
        start_number(c, cond, c->q->n_processes);
    else
        sv_sql_range(c, 1, c->q->n_processes);
    return SQLITE_OK;
}

static void process_column(struct sv_sql_cursor *c, sqlite3_context *ctx, int column)
{
    const struct sv_sql *q = c->q;
    sv_track track = q->process_track[c->row];
    const struct sv_track_info *k = &q->dict->tracks[track];
    switch (column) {
    case P_UPID:
    case P_ID: sqlite3_result_int64(ctx, (sqlite3_int64)c->row); break;
    case P_PID: sqlite3_result_int64(ctx, k->pid); break;
    case P_NAME: sv_sql_result_str(q, ctx, k->name); break;
    case P_START:
        if (k->start_ns)
            sqlite3_result_int64(ctx, k->start_ns);
        break;
    case P_CMDLINE: sv_sql_result_str(q, ctx, k->desc); break;
    case P_ARGS:
        if (k->has_order)
            sqlite3_result_int64(ctx, sv_sql_arg_set(SV_OF_PROCESS, track));
        break;
    case P_MACHINE: sqlite3_result_int64(ctx, machine_of(q, track)); break;
    default: break;
    }
}

static const struct sv_sql_key process_keys[] = {{P_UPID, "e", 0}, {P_ID, "e", 0}};

const struct sv_sql_table sv_sql_process = {
    .name = "process",
    .columns = "upid INTEGER, id INTEGER, pid INTEGER, name TEXT, start_ts INTEGER, "
               "end_ts INTEGER, parent_upid INTEGER, uid INTEGER, android_appid INTEGER, "
               "android_user_id INTEGER, cmdline TEXT, arg_set_id INTEGER, machine_id INTEGER",
    .keys = process_keys,
    .n_keys = sizeof process_keys / sizeof process_keys[0],
    .rows = process_rows,
    .start = process_start,
    .column = process_column,
};
#endif
