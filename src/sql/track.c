/* The table `track`: the dictionary's tracks.
 *
 * A track belongs to the thread or process above it. Names follow Perfetto: the track of a thread
 * itself has no name, the thread has. */
#include "sql/sql.h"

#ifdef SV_HAVE_SQLITE
#include "sql/impl.h"
#include <stdlib.h>

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
    T_CPU,
    T_IS_STATE,
    T_ORIGIN
};

static const char *track_type(const struct sv_sql *q, sv_track track)
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
        return q->process_of[track] ? "legacy_async_process_slice" : "legacy_async_global_slice";
    int scope = q->thread_of[track] ? 2 : q->process_of[track] ? 1 : 0;
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
        sv_sql_start_number(c, cond, 0, q->dict->n_tracks);
    } else if ((cond = sv_sql_find_cond(conds, n, T_UTID, SV_OP_EQ))) {
        if (sv_sql_value_int(cond->value, SV_OP_EQ, &number) && number >= 0 &&
            number < q->n_threads - 1)
            sv_sql_list(c, q->by_thread, q->thread_first[number + 1], q->thread_first[number + 2]);
    } else if ((cond = sv_sql_find_cond(conds, n, T_UPID, SV_OP_EQ))) {
        if (sv_sql_value_int(cond->value, SV_OP_EQ, &number) && number >= 0 &&
            number < q->n_processes - 1)
            sv_sql_list(c, q->by_process, q->process_first[number + 1],
                        q->process_first[number + 2]);
    } else {
        sv_sql_range(c, 1, q->dict->n_tracks);
    }
    return SQLITE_OK;
}

/* Threads and processes are not parents in this sense: their rows say to whom they belong by utid
 * and upid. */
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

/* The track of a thread or process has no name, its owner has. A series of a group of counters is
 * "group series", and a row without a name has that of the first slice on it. */
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
    case T_TYPE: sqlite3_result_text(ctx, track_type(q, track), -1, SQLITE_STATIC); break;
    case T_DIMENSION:
        sqlite3_result_int64(ctx, sv_sql_arg_set(SV_OF_TRACK_DIMENSION, track));
        break;
    case T_PARENT: track_parent(q, ctx, k); break;
    case T_SOURCE: sqlite3_result_int64(ctx, sv_sql_arg_set(SV_OF_TRACK_SOURCE, track)); break;
    case T_MACHINE: sqlite3_result_int64(ctx, sv_sql_machine_of(q, k->space)); break;
    case T_UTID:
        if (q->thread_of[track])
            sqlite3_result_int64(ctx, q->thread_of[track] - 1);
        break;
    case T_UPID:
        if (q->process_of[track])
            sqlite3_result_int64(ctx, q->process_of[track] - 1);
        break;
    case T_UNIT: sv_sql_result_str(q, ctx, k->unit); break;
    case T_DESCRIPTION: sv_sql_result_str(q, ctx, k->desc); break;
    case T_KIND: sqlite3_result_text(ctx, sv_track_kind_name(k->kind), -1, SQLITE_STATIC); break;
    case T_IS_COUNTER: sqlite3_result_int(ctx, k->kind == SV_TRACK_COUNTER); break;
    case T_UUID: sqlite3_result_int64(ctx, (sqlite3_int64)k->uuid); break;
    case T_IS_STATE: sqlite3_result_int(ctx, k->is_state); break;
    case T_CPU: track_cpu(q, ctx, k); break;
    default:
        if (column >= T_ORIGIN) {
            struct sv_origin o = sv_origin_of(q->dict, track);
            sv_sql_origin_column(ctx, &o, column - T_ORIGIN);
        }
        break;
    }
}

static const struct sv_sql_key track_keys[] = {
    {T_ID, "e", 0}, {T_UTID, "e", 0.01}, {T_UPID, "e", 0.1}};

const struct sv_sql_table sv_sql_track = {
    .name = "track",
    .columns =
        "id INTEGER, name TEXT, type TEXT, dimension_arg_set_id INTEGER, parent_id INTEGER, "
        "source_arg_set_id INTEGER, machine_id INTEGER, track_group_id INTEGER, "
        "owner_utid INTEGER HIDDEN, owner_upid INTEGER HIDDEN, unit TEXT HIDDEN, "
        "description TEXT HIDDEN, kind TEXT HIDDEN, is_counter INTEGER HIDDEN, "
        "uuid INTEGER HIDDEN, cpu INTEGER HIDDEN, is_state INTEGER HIDDEN, " SV_SQL_ORIGIN_COLUMNS(
            " HIDDEN"),
    .keys = track_keys,
    .n_keys = sizeof track_keys / sizeof track_keys[0],
    .rows = track_rows,
    .start = track_start,
    .column = track_column,
};
#endif
