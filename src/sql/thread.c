/* The tables `thread` and `process`.
 *
 * Numbered as Perfetto does it: 0 is the idle thread of the idle process, the others follow in the
 * order in which the dictionary met their tracks, each process with its main thread first, whether
 * or not the trace has a track for that. Called when a connection opens; reads the dictionary
 * only. */
#include "sql/sql.h"

#ifdef SV_HAVE_SQLITE
#include "core/base/mem.h"
#include "core/base/search.h"
#include "sql/impl.h"

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

uint32_t sv_sql_machine_of(const struct sv_sql *q, uint32_t space)
{
    for (uint32_t i = 0; i < q->n_spaces; i++)
        if (q->spaces[i] == space)
            return i;
    return 0;
}

static uint32_t add_thread(struct sv_sql *q, struct sv_sql_task task)
{
    q->threads[q->n_threads] = task;
    return q->n_threads++;
}

/* The process and its main thread; pid 0 of this machine is the idle one, which is there
 * already. */
static void add_process(struct sv_sql *q, sv_track track)
{
    const struct sv_track_info *k = &q->dict->tracks[track];
    if (k->pid == 0 && k->space == 0 && !q->processes[1].track) {
        q->processes[1].track = track;
        q->process_of[track] = 1;
        return;
    }
    uint32_t number = q->process_of[track] = q->n_processes++;
    q->processes[number] = (struct sv_sql_task){track, number, k->space, k->pid};
    add_thread(q, (struct sv_sql_task){0, number, k->space, k->pid});
}

/* Where the main thread of each process is, by its number. */
static uint32_t *main_threads(const struct sv_sql *q)
{
    uint32_t *numbers = sv_alloc(((size_t)q->n_processes + 1) * sizeof *numbers);
    for (uint32_t i = q->n_threads; i-- > 1;)
        numbers[q->threads[i].process] = i;
    return numbers;
}

static int compare_tids(const void *a, const void *b, void *ctx)
{
    const struct sv_sql *q = ctx;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (q->threads[x].id != q->threads[y].id)
        return q->threads[x].id < q->threads[y].id ? -1 : 1;
    return x < y ? -1 : x > y;
}

static void number_processes(struct sv_sql *q, uint32_t n)
{
    q->threads[1] = q->processes[1] = (struct sv_sql_task){.process = 1};
    q->n_threads = q->n_processes = 2;
    for (sv_track k = 1; k < n; k++) {
        sv_track process = sv_dict_process_of(q->dict, k);
        if (process && !q->process_of[process])
            add_process(q, process);
        if (q->dict->tracks[k].kind == SV_TRACK_THREAD)
            q->thread_of[k] = add_thread(
                q, (struct sv_sql_task){k, process ? q->process_of[process] : 0,
                                        q->dict->tracks[k].space, q->dict->tracks[k].tid});
        add_space(q, q->dict->tracks[k].space);
    }
}

/* The first thread track with the number of its process is the main thread: it takes the place that
 * was kept for it. */
static void place_main_threads(struct sv_sql *q)
{
    uint32_t *mains = main_threads(q),
             *moved = sv_alloc(((size_t)q->n_threads + 1) * sizeof *moved);
    uint32_t kept = 1;
    for (uint32_t i = 1; i < q->n_threads; i++) {
        struct sv_sql_task *t = &q->threads[i], *main = &q->threads[mains[t->process]];
        bool is_main = t->track && t->process && t->id == main->id && !main->track;
        if (is_main)
            main->track = t->track;
        moved[i] = is_main ? moved[mains[t->process]] : kept++;
    }
    for (uint32_t i = 1; i < q->n_threads; i++)
        if (moved[i] <= i && q->threads[i].track)
            q->thread_of[q->threads[i].track] = moved[i];
    for (uint32_t i = 1, at = 0; i < q->n_threads; i++)
        if (moved[i] > at)
            q->threads[at = moved[i]] = q->threads[i];
    q->n_threads = kept;
    free(mains);
    free(moved);
}

void sv_sql_number_tracks(struct sv_sql *q)
{
    const struct sv_dict *d = q->dict;
    uint32_t n = d->n_tracks ? d->n_tracks : 1;
    q->threads = sv_alloc((2 * (size_t)n + 2) * sizeof *q->threads);
    q->processes = sv_alloc(((size_t)n + 2) * sizeof *q->processes);
    q->thread_of = sv_alloc(n * sizeof *q->thread_of);
    q->process_of = sv_alloc(n * sizeof *q->process_of);
    add_space(q, 0);
    number_processes(q, n);
    place_main_threads(q);
    for (sv_track k = 1; k < n; k++) {
        q->process_of[k] = q->process_of[sv_dict_process_of(d, k)];
        q->thread_of[k] = q->thread_of[sv_dict_thread_of(d, k)];
    }
    q->by_thread = group_tracks(q->thread_of, n, q->n_threads, &q->thread_first);
    q->by_process = group_tracks(q->process_of, n, q->n_processes, &q->process_first);
    q->by_tid = sv_alloc(((size_t)q->n_threads + 1) * sizeof *q->by_tid);
    for (uint32_t i = 1; i < q->n_threads; i++)
        q->by_tid[i] = i;
    if (q->n_threads > 1)
        qsort_r(q->by_tid + 1, q->n_threads - 1, sizeof *q->by_tid, compare_tids, q);
}

void sv_sql_start_number(struct sv_sql_cursor *c, const struct sv_sql_cond *cond, int shift,
                         uint32_t n)
{
    int64_t number;
    if (sv_sql_value_int(cond->value, SV_OP_EQ, &number) && number >= 1 - shift &&
        number < (int64_t)n - shift)
        sv_sql_range(c, (uint64_t)(number + shift), (uint64_t)(number + shift) + 1);
}

/* ---- thread ---- */

static void start_tid(struct sv_sql_cursor *c, const struct sv_sql_cond *cond)
{
    const struct sv_sql *q = c->q;
    int64_t tid;
    uint64_t from, to;
    if (!sv_sql_value_int(cond->value, SV_OP_EQ, &tid))
        return;
    SV_SEARCH(from, middle, 1, q->n_threads, q->threads[q->by_tid[middle]].id < tid);
    SV_SEARCH(to, middle, from, q->n_threads, q->threads[q->by_tid[middle]].id <= tid);
    sv_sql_list(c, q->by_tid, from, to);
}

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

/* Threads and processes count from 1; two columns hold the number. */
static int start_numbered(struct sv_sql_cursor *c, const struct sv_sql_cond *conds, size_t n,
                          const int columns[2], uint32_t last)
{
    const struct sv_sql_cond *cond;
    if ((cond = sv_sql_find_cond(conds, n, columns[0], SV_OP_EQ)) ||
        (cond = sv_sql_find_cond(conds, n, columns[1], SV_OP_EQ)))
        sv_sql_start_number(c, cond, 1, last);
    else
        sv_sql_range(c, 1, last);
    return SQLITE_OK;
}

static int thread_start(struct sv_sql_cursor *c, int order, const struct sv_sql_cond *conds,
                        size_t n)
{
    const struct sv_sql_cond *tid = sv_sql_find_cond(conds, n, TH_TID, SV_OP_EQ);
    (void)order;
    if (tid && !sv_sql_find_cond(conds, n, TH_UTID, SV_OP_EQ) &&
        !sv_sql_find_cond(conds, n, TH_ID, SV_OP_EQ)) {
        start_tid(c, tid);
        return SQLITE_OK;
    }
    return start_numbered(c, conds, n, (const int[]){TH_UTID, TH_ID}, c->q->n_threads);
}

static bool is_json(const struct sv_sql *q)
{
    return strcmp(q->arg_prefix, "args.") == 0;
}

static void thread_name(const struct sv_sql *q, sqlite3_context *ctx, uint64_t number)
{
    const struct sv_track_info *k = &q->dict->tracks[q->threads[number].track];
    if (q->threads[number].track && k->name)
        sv_sql_result_str(q, ctx, k->name);
    else if (number == 1 && !is_json(q)) /* as Perfetto names it */
        sqlite3_result_text(ctx, "swapper", -1, SQLITE_STATIC);
}

static void thread_column(struct sv_sql_cursor *c, sqlite3_context *ctx, int column)
{
    const struct sv_sql *q = c->q;
    const struct sv_sql_task *t = &q->threads[c->row];
    switch (column) {
    case TH_UTID:
    case TH_ID: sqlite3_result_int64(ctx, (sqlite3_int64)c->row - 1); break;
    case TH_TID: sqlite3_result_int64(ctx, t->id); break;
    case TH_NAME: thread_name(q, ctx, c->row); break;
    case TH_UPID:
        if (t->process)
            sqlite3_result_int64(ctx, t->process - 1);
        break;
    case TH_IS_MAIN:
        if (t->process)
            sqlite3_result_int(ctx, t->id == q->processes[t->process].id);
        break;
    case TH_IS_IDLE: sqlite3_result_int(ctx, c->row == 1); break;
    case TH_MACHINE: sqlite3_result_int64(ctx, sv_sql_machine_of(q, t->space)); break;
    case TH_ARGS:
        if (t->track && q->dict->tracks[t->track].has_order)
            sqlite3_result_int64(ctx, sv_sql_arg_set(SV_OF_THREAD, t->track));
        break;
    default: break;
    }
}

/* A tid is that of several threads where there are several machines. */
static const struct sv_sql_key thread_keys[] = {
    {TH_UTID, "e", 0}, {TH_ID, "e", 0}, {TH_TID, "e", 0.001}};

const struct sv_sql_table sv_sql_thread = {
    .name = "thread",
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
    P_MACHINE,
    P_ORIGIN
};

static uint64_t process_rows(struct sv_sql *q)
{
    return q->n_processes;
}

static int process_start(struct sv_sql_cursor *c, int order, const struct sv_sql_cond *conds,
                         size_t n)
{
    (void)order;
    return start_numbered(c, conds, n, (const int[]){P_UPID, P_ID}, c->q->n_processes);
}

static void process_column(struct sv_sql_cursor *c, sqlite3_context *ctx, int column)
{
    const struct sv_sql *q = c->q;
    const struct sv_sql_task *p = &q->processes[c->row];
    const struct sv_track_info *k = p->track ? &q->dict->tracks[p->track] : NULL;
    switch (column) {
    case P_UPID:
    case P_ID: sqlite3_result_int64(ctx, (sqlite3_int64)c->row - 1); break;
    case P_PID: sqlite3_result_int64(ctx, p->id); break;
    case P_NAME: sv_sql_result_str(q, ctx, k ? k->name : 0); break;
    case P_START:
        if (k && k->start_ns)
            sqlite3_result_int64(ctx, k->start_ns);
        break;
    case P_CMDLINE: sv_sql_result_str(q, ctx, k ? k->desc : 0); break;
    case P_ARGS:
        if (k && k->has_order)
            sqlite3_result_int64(ctx, sv_sql_arg_set(SV_OF_PROCESS, p->track));
        break;
    case P_MACHINE: sqlite3_result_int64(ctx, sv_sql_machine_of(q, p->space)); break;
    default:
        if (column >= P_ORIGIN && k) {
            struct sv_origin o = sv_origin_of(q->dict, p->track);
            sv_sql_origin_column(ctx, &o, column - P_ORIGIN);
        }
        break;
    }
}

static const struct sv_sql_key process_keys[] = {{P_UPID, "e", 0}, {P_ID, "e", 0}};

const struct sv_sql_table sv_sql_process = {
    .name = "process",
    .columns = "upid INTEGER, id INTEGER, pid INTEGER, name TEXT, start_ts INTEGER, "
               "end_ts INTEGER, parent_upid INTEGER, uid INTEGER, android_appid INTEGER, "
               "android_user_id INTEGER, cmdline TEXT, arg_set_id INTEGER, machine_id "
               "INTEGER, " SV_SQL_ORIGIN_COLUMNS(""),
    .keys = process_keys,
    .n_keys = sizeof process_keys / sizeof process_keys[0],
    .rows = process_rows,
    .start = process_start,
    .column = process_column,
};
#endif
