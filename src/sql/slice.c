/* The table `slice`: slices and instants, one row of the store each.
 *
 * A query's conditions become, in this order: one row by id; the children of a slice; a piece of a
 * track; the rows of some names; a window of time over all tracks; everything. Rows always come in
 * the order of time (the order of ids), unless the query asked for the order of names, which lets
 * GROUP BY name stream, or for that of tracks. */
#include "sql/sql.h"

#ifdef SV_HAVE_SQLITE
#include "core/base/mem.h"
#include "core/base/search.h"
#include "core/base/sort.h"
#include "sql/impl.h"
#include "stats/self.h"
#include "store/track_rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum order {
    ANY = -1,
    NONE,
    TIME,
    TIME_DOWN,
    TRACKS,
    TRACKS_DOWN,
    NAMES,
    NAMES_DOWN,
    NAMES_ONCE, /* one row of each name */
    DUR = SV_ORDER_LIMITED,
    DUR_DOWN
};

static uint64_t slice_rows(struct sv_sql *q)
{
    return q->trace->slices.n;
}

/* ---- orders ---- */

static bool is_id(int column)
{
    return column == SV_SLICE_ID || column == SV_SLICE_SLICE_ID || column < 0;
}

/* Whether the terms are `columns` in this order, a unique one ends them early. */
static bool terms_are(const sqlite3_index_info *info, const int *columns, int n)
{
    for (int i = 0; i < info->nOrderBy; i++) {
        if (info->aOrderBy[i].desc != info->aOrderBy[0].desc || i >= n)
            return false;
        if (is_id(columns[i]) && is_id(info->aOrderBy[i].iColumn))
            return true;
        if (info->aOrderBy[i].iColumn != columns[i])
            return false;
    }
    return true;
}

static bool is_filtered(int column)
{
    return column == SV_SLICE_DUR || column == SV_SLICE_CATEGORY || column == SV_SLICE_CAT;
}

/* Whether the statement has a LIMIT that is handed down, and no condition. */
static bool is_limited(const sqlite3_index_info *info)
{
    bool has_limit = false;
    for (int i = 0; i < info->nConstraint; i++) {
        bool is_limit = info->aConstraint[i].op == SQLITE_INDEX_CONSTRAINT_LIMIT;
        if ((!is_limit && info->aConstraint[i].op != SQLITE_INDEX_CONSTRAINT_OFFSET) ||
            !info->aConstraint[i].usable)
            return false;
        has_limit |= is_limit;
    }
    return has_limit;
}

/* SELECT DISTINCT name: SQLite leaves out what repeats, and so may the table. */
static bool is_distinct_name(sqlite3_index_info *info)
{
    return sqlite3_vtab_distinct(info) >= 2 && info->colUsed == 1u << SV_SLICE_NAME &&
           !info->aOrderBy[0].desc;
}

static int slice_order(struct sv_sql *q, sqlite3_index_info *info, bool has_conds)
{
    (void)q;
    static const int time[] = {SV_SLICE_TS, SV_SLICE_ID}, id[] = {SV_SLICE_ID},
                     tracks[] = {SV_SLICE_TRACK, SV_SLICE_TS, SV_SLICE_ID},
                     name[] = {SV_SLICE_NAME}, dur[] = {SV_SLICE_DUR};
    int down = info->aOrderBy[0].desc ? 1 : 0;
    /* Durations and categories do not narrow the rows to a piece of the store: an order is worth
     * more. */
    for (int i = 0; has_conds; i++) {
        if (i == info->nConstraint)
            has_conds = false;
        else if (info->aConstraintUsage[i].argvIndex > 0 &&
                 !is_filtered(info->aConstraint[i].iColumn))
            break;
    }
    if (terms_are(info, time, 2) || terms_are(info, id, 1))
        return TIME + down;
    if (!has_conds && terms_are(info, tracks, 3))
        return TRACKS + down;
    if (!has_conds && terms_are(info, name, 1))
        return is_distinct_name(info) ? NAMES_ONCE : NAMES + down;
    if (terms_are(info, dur, 1) && is_limited(info))
        return DUR + down;
    return NONE;
}

/* ---- ways to the rows ---- */

struct window {
    int64_t from_ns, to_ns; /* both included */
};

/* Rows of a track that begin in the window. */
static void track_rows(const struct sv_trace *t, sv_track track, struct window w, uint32_t *from,
                       uint32_t *to)
{
    *from = *to = 0;
    if (!sv_trace_has_track(t, track) || w.from_ns > w.to_ns)
        return;
    const struct sv_trace_track *k = &t->tracks[track];
    *from = w.from_ns == INT64_MIN ? k->first : sv_trace_row_from(t, track, w.from_ns);
    *to = w.to_ns == INT64_MAX ? k->end : sv_trace_row_from(t, track, w.to_ns + 1);
}

/* ---- conditions that are applied row by row, but without a call of SQLite ---- */

struct filter {
    uint8_t *cats; /* by string, whether it is one that is asked for; NULL: all are */
    int64_t dur_from, dur_to;
    bool is_set, has_category; /* has_category: a string of the trace is among those asked for */
};

static bool slice_passes(const struct sv_sql_cursor *c)
{
    const struct filter *f = c->state;
    const struct sv_slices *s = &c->q->trace->slices;
    return (!f->cats || f->cats[s->cat[c->row]]) && s->dur_ns[c->row] >= f->dur_from &&
           s->dur_ns[c->row] <= f->dur_to;
}

static void slice_finish(struct sv_sql_cursor *c)
{
    struct filter *f = c->state;
    if (f)
        free(f->cats);
    free(f);
    c->state = NULL;
}

static void want_category(const struct sv_sql *q, struct filter *f, sqlite3_value *value)
{
    const char *text = (const char *)sqlite3_value_text(value);
    sv_str s = text ? sv_dict_find_str(q->dict, text, (size_t)sqlite3_value_bytes(value)) : 0;
    if (s) {
        f->cats[s] = 1;
        f->has_category = true;
    }
}

/* A condition on a category. Several hold together, so the second one is left to SQLite. */
static void take_category(const struct sv_sql *q, const struct sv_sql_cond *cond, struct filter *f)
{
    sqlite3_value *value = NULL;
    if (f->cats)
        return;
    f->cats = sv_alloc((size_t)q->dict->n_strings + 1);
    f->is_set = true;
    if (cond->op == SV_OP_EQ)
        want_category(q, f, cond->value);
    for (int rc = cond->op == SV_OP_IN ? sqlite3_vtab_in_first(cond->value, &value) : SQLITE_DONE;
         rc == SQLITE_OK && value; rc = sqlite3_vtab_in_next(cond->value, &value))
        want_category(q, f, value);
}

static struct filter filter_of(const struct sv_sql *q, const struct sv_sql_cond *conds, size_t n)
{
    struct filter f = {.dur_from = INT64_MIN, .dur_to = INT64_MAX};
    for (size_t i = 0; i < n; i++) {
        if (conds[i].column == SV_SLICE_DUR) {
            sv_sql_narrow(&conds[i], &f.dur_from, &f.dur_to);
            f.is_set = true;
        } else if (conds[i].column == SV_SLICE_CATEGORY || conds[i].column == SV_SLICE_CAT) {
            take_category(q, &conds[i], &f);
        }
    }
    return f;
}

/* Leaves it to the cursor, or nothing to it when no slice can pass. */
static void set_filter(struct sv_sql_cursor *c, const struct filter *f)
{
    if (!f->is_set)
        return;
    struct filter *kept = c->state = sv_alloc(sizeof *kept);
    *kept = *f;
    c->is_filtered = true;
    if (f->cats && !f->has_category)
        sv_sql_none(c);
}

static void start_id(struct sv_sql_cursor *c, const struct sv_sql_cond *cond)
{
    int64_t id;
    if (!sv_sql_value_int(cond->value, SV_OP_EQ, &id) || id < 0)
        return;
    uint32_t row = sv_index_row(c->q->index, (uint64_t)id);
    if (row != SV_NO_ROW)
        sv_sql_range(c, row, (uint64_t)row + 1);
}

static void start_children(struct sv_sql_cursor *c, const struct sv_sql_cond *cond)
{
    int64_t id;
    if (!sv_sql_value_int(cond->value, SV_OP_EQ, &id) || id < 0)
        return;
    uint32_t parent = sv_index_row(c->q->index, (uint64_t)id);
    if (parent == SV_NO_ROW)
        return;
    size_t n;
    const uint32_t *children = sv_index_children(c->q->index, parent, &n);
    uint32_t *rows = sv_alloc((n + 1) * sizeof *rows);
    memcpy(rows, children, n * sizeof *rows);
    sv_sql_own(c, rows, n);
}

static void start_track(struct sv_sql_cursor *c, const struct sv_sql_cond *cond, struct window w)
{
    int64_t id;
    uint32_t from, to;
    if (!sv_sql_value_int(cond->value, SV_OP_EQ, &id) || id < 0 || id > UINT32_MAX)
        return;
    track_rows(c->q->trace, (sv_track)id, w, &from, &to);
    sv_sql_range(c, from, to);
}

static const struct sv_track_rows *rows_of(struct sv_sql *q)
{
    if (!q->rows)
        q->rows = sv_track_rows_new(q->trace);
    return q->rows;
}

/* What begins in the window on the tracks of one row of the time line. */
static void start_view_row(struct sv_sql_cursor *c, const struct sv_sql_cond *cond, struct window w)
{
    const struct sv_track_rows *r = rows_of(c->q);
    int64_t id;
    uint32_t from, to, *rows = NULL;
    size_t n = 0, cap = 0;
    if (!sv_sql_value_int(cond->value, SV_OP_EQ, &id) || id < 0 || (uint64_t)id >= r->n ||
        r->items[id].lines == 0)
        return;
    const struct sv_row_member *members = r->members + r->items[id].first_member;
    if (r->items[id].n_members == 1) {
        track_rows(c->q->trace, members[0].track, w, &from, &to);
        sv_sql_range(c, from, to);
        return;
    }
    for (size_t m = 0; m < r->items[id].n_members; m++) {
        track_rows(c->q->trace, members[m].track, w, &from, &to);
        rows = sv_grow(rows, &cap, n + (to - from), sizeof *rows);
        for (uint32_t row = from; row < to; row++)
            rows[n++] = row;
    }
    if (n == 0) {
        free(rows);
        return;
    }
    qsort(rows, n, sizeof *rows, sv_compare_u32);
    sv_index_sort_rows(c->q->index, rows, n);
    sv_sql_own(c, rows, n);
}

static bool name_matches(const struct sv_sql *q, sv_str name, const struct sv_sql_cond *cond)
{
    const char *pattern = (const char *)sqlite3_value_text(cond->value);
    if (!name || !pattern)
        return false;
    const char *text = sv_dict_text(q->dict, name).bytes;
    return cond->op == SV_OP_GLOB ? sqlite3_strglob(pattern, text) == 0
                                  : sqlite3_strlike(pattern, text, 0) == 0;
}

static uint32_t group_named(const struct sv_sql *q, const struct sv_names *names,
                            const struct sv_sql_cond *cond)
{
    const char *text = (const char *)sqlite3_value_text(cond->value);
    if (!text)
        return SV_NO_ROW;
    sv_str name = sv_dict_find_str(q->dict, text, (size_t)sqlite3_value_bytes(cond->value));
    return name ? sv_names_group(names, name) : SV_NO_ROW;
}

static uint32_t first_at_least(const uint32_t *rows, uint32_t from, uint32_t to, uint32_t row)
{
    uint32_t at;
    SV_SEARCH(at, mid, from, to, rows[mid] < row);
    return at;
}

/* The rows of one name: on one track a piece of the group, on all a list sorted by time. */
static void start_name(struct sv_sql_cursor *c, const struct sv_sql_cond *name,
                       const struct sv_sql_cond *track, struct window w)
{
    const struct sv_names *names = sv_index_names(c->q->index);
    uint32_t g = group_named(c->q, names, name);
    if (g == SV_NO_ROW)
        return;
    uint32_t from = names->start[g], to = names->start[g + 1];
    int64_t id;
    if (track) {
        uint32_t row_from, row_to;
        if (!sv_sql_value_int(track->value, SV_OP_EQ, &id) || id < 0 || id > UINT32_MAX)
            return;
        track_rows(c->q->trace, (sv_track)id, w, &row_from, &row_to);
        from = first_at_least(names->rows, from, to, row_from);
        sv_sql_list(c, names->rows, from, first_at_least(names->rows, from, to, row_to));
        return;
    }
    const sv_track *tracks = c->q->trace->slices.track;
    if (tracks[names->rows[from]] == tracks[names->rows[to - 1]]) {
        sv_sql_list(c, names->rows, from, to);
        return;
    }
    uint32_t *rows = sv_alloc_aligned((to - from) * sizeof *rows, 64);
    size_t n = 0;
    for (uint32_t i = from; i < to; i++) {
        int64_t ts = c->q->trace->slices.ts_ns[names->rows[i]];
        if (ts >= w.from_ns && ts <= w.to_ns)
            rows[n++] = names->rows[i];
    }
    sv_index_sort_rows(c->q->index, rows, n);
    sv_sql_own(c, rows, n);
}

/* A pattern is compared once per name, not once per row. */
static void start_pattern(struct sv_sql_cursor *c, const struct sv_sql_cond *cond)
{
    const struct sv_names *names = sv_index_names(c->q->index);
    uint32_t *rows = NULL;
    size_t n = 0, cap = 0, groups = 0;
    for (uint32_t g = 0; g < names->n_groups; g++) {
        if (!name_matches(c->q, names->name[g], cond))
            continue;
        uint32_t count = names->start[g + 1] - names->start[g];
        rows = sv_grow(rows, &cap, n + count, sizeof *rows);
        memcpy(rows + n, names->rows + names->start[g], count * sizeof *rows);
        n += count;
        groups++;
    }
    if (groups > 1)
        qsort(rows, n, sizeof *rows, sv_compare_u32);
    sv_index_sort_rows(c->q->index, rows, n);
    sv_sql_own(c, rows, n);
}

/* What begins in a window of time on any track. A small part is collected and sorted, else the
 * order of all is used. */
static void start_window(struct sv_sql_cursor *c, struct window w)
{
    const struct sv_trace *t = c->q->trace;
    uint32_t from, to;
    uint64_t n = 0;
    for (sv_track k = 0; k < t->n_tracks; k++) {
        track_rows(t, k, w, &from, &to);
        n += to - from;
    }
    if (n > t->slices.n / 16) {
        const uint32_t *order = sv_index_order(c->q->index);
        uint64_t first;
        SV_SEARCH(first, mid, 0, t->slices.n, t->slices.ts_ns[order[mid]] < w.from_ns);
        sv_sql_list(c, order, first, first + n);
        return;
    }
    uint32_t *rows = sv_alloc_aligned((n + 1) * sizeof *rows, 64);
    n = 0;
    for (sv_track k = 0; k < t->n_tracks; k++) {
        track_rows(t, k, w, &from, &to);
        for (uint32_t row = from; row < to; row++)
            rows[n++] = row;
    }
    sv_index_sort_rows(c->q->index, rows, n);
    sv_sql_own(c, rows, n);
}

/* The first row of each name. */
static void start_names_once(struct sv_sql_cursor *c)
{
    const struct sv_names *names = sv_index_names(c->q->index);
    uint32_t *rows = sv_alloc(((size_t)names->n_groups + 1) * sizeof *rows);
    for (uint32_t g = 0; g < names->n_groups; g++)
        rows[g] = names->rows[names->start[g]];
    sv_sql_own(c, rows, names->n_groups);
}

/* As many by duration as LIMIT and OFFSET ask for; SQLite applies both again. */
static void start_longest(struct sv_sql_cursor *c, bool is_down, const struct sv_sql_cond *conds,
                          size_t n_conds)
{
    uint64_t want = 0, n;
    for (size_t i = 0; i < n_conds; i++) {
        int64_t v = sqlite3_value_int64(conds[i].value);
        bool is_limit = conds[i].op == SV_OP_LIMIT;
        uint64_t part = v >= 0 ? (uint64_t)v : is_limit ? UINT64_MAX : 0; /* -1: no limit */
        want = want + part < want ? UINT64_MAX : want + part;
    }
    uint32_t *rows = sv_sql_longest(c->q, is_down, want, &n);
    sv_sql_own(c, rows, n);
}

static void start_all(struct sv_sql_cursor *c, int order, struct window w)
{
    const struct sv_trace *t = c->q->trace;
    if (order == NAMES || order == NAMES_DOWN) {
        const struct sv_names *names = sv_index_names(c->q->index);
        sv_sql_list(c, names->rows, 0, t->slices.n);
        if (order == NAMES) {
            c->names = names;
            c->used &= ~(1u << SV_SLICE_NAME);
        }
    } else if (order == TRACKS || order == TRACKS_DOWN || order == ANY)
        sv_sql_range(c, 0, t->slices.n);
    else if (w.from_ns > INT64_MIN || w.to_ns < INT64_MAX)
        start_window(c, w);
    else
        sv_sql_list(c, sv_index_order(c->q->index), 0, t->slices.n);
}

static int slice_start(struct sv_sql_cursor *c, int order, const struct sv_sql_cond *conds,
                       size_t n)
{
    const struct sv_sql_cond *cond, *track, *name;
    struct window w = {INT64_MIN, INT64_MAX};
    struct filter f = filter_of(c->q, conds, n);
    for (size_t i = 0; i < n; i++)
        if (conds[i].column == SV_SLICE_TS && conds[i].op != SV_OP_NULL)
            sv_sql_narrow(&conds[i], &w.from_ns, &w.to_ns);
    c->is_backward = order == TIME_DOWN || order == TRACKS_DOWN || order == NAMES_DOWN;
    track = sv_sql_find_cond(conds, n, SV_SLICE_TRACK, SV_OP_EQ);
    name = sv_sql_find_cond(conds, n, SV_SLICE_NAME, SV_OP_EQ);
    if (order == DUR || order == DUR_DOWN)
        start_longest(c, order == DUR_DOWN, conds, n);
    else if (order == NAMES_ONCE)
        start_names_once(c);
    else if ((cond = sv_sql_find_cond(conds, n, SV_SLICE_ID, SV_OP_EQ)) ||
             (cond = sv_sql_find_cond(conds, n, SV_SLICE_SLICE_ID, SV_OP_EQ)))
        start_id(c, cond);
    else if ((cond = sv_sql_find_cond(conds, n, SV_SLICE_PARENT, SV_OP_EQ)))
        start_children(c, cond);
    else if ((cond = sv_sql_find_cond(conds, n, SV_SLICE_VIEW_ROW, SV_OP_EQ)))
        start_view_row(c, cond, w);
    else if (name)
        start_name(c, name, track, w);
    else if (track)
        start_track(c, track, w);
    else if ((cond = sv_sql_find_cond(conds, n, SV_SLICE_NAME, SV_OP_GLOB)) ||
             (cond = sv_sql_find_cond(conds, n, SV_SLICE_NAME, SV_OP_LIKE)))
        start_pattern(c, cond);
    else
        start_all(c, order, w);
    set_filter(c, &f);
    return SQLITE_OK;
}

/* ---- columns ---- */

static void thread_column(struct sv_sql_cursor *c, sqlite3_context *ctx, unsigned type)
{
    struct sv_arg arg;
    uint32_t handle = c->q->trace->slices.args[c->row];
    if (handle && sv_trace_arg_of_type(c->q->trace, handle, type, &arg))
        sqlite3_result_int64(ctx, arg.i);
}

static int64_t self_ns(struct sv_sql *q, uint64_t row)
{
    if (!q->self_ns)
        q->self_ns = sv_self_times(q->trace);
    return q->self_ns[row];
}

/* In the order of names the column of names, which would be met out of order, is not needed. */
static sv_str name_of(struct sv_sql_cursor *c)
{
    if (!c->names)
        return c->q->trace->slices.name[c->row];
    while (c->at >= c->names->start[c->group + 1])
        c->group++;
    return c->names->name[c->group];
}

void sv_sql_slice_column(struct sv_sql_cursor *c, sqlite3_context *ctx, int column)
{
    const struct sv_slices *s = &c->q->trace->slices;
    uint64_t row = c->row;
    switch (column) {
    case SV_SLICE_ID:
    case SV_SLICE_SLICE_ID:
        sqlite3_result_int64(ctx, sv_index_id(c->q->index, (uint32_t)row));
        break;
    case SV_SLICE_TS: sqlite3_result_int64(ctx, s->ts_ns[row]); break;
    case SV_SLICE_DUR: sqlite3_result_int64(ctx, s->dur_ns[row]); break;
    case SV_SLICE_TRACK: sqlite3_result_int64(ctx, s->track[row]); break;
    case SV_SLICE_CATEGORY:
    case SV_SLICE_CAT: sv_sql_result_str(c->q, ctx, s->cat[row]); break;
    case SV_SLICE_NAME: sv_sql_result_str(c->q, ctx, name_of(c)); break;
    case SV_SLICE_DEPTH: sqlite3_result_int(ctx, s->depth[row]); break;
    case SV_SLICE_PARENT:
        if (s->parent[row] != SV_NO_ROW)
            sqlite3_result_int64(ctx, sv_index_id(c->q->index, s->parent[row]));
        break;
    case SV_SLICE_ARGS:
        if (s->args[row] && sv_sql_has_args(c->q, s->args[row]))
            sqlite3_result_int64(ctx, s->args[row]);
        break;
    case SV_SLICE_THREAD_TS: thread_column(c, ctx, SV_ARG_THREAD_TIME); break;
    case SV_SLICE_THREAD_DUR: thread_column(c, ctx, SV_ARG_THREAD_DUR); break;
    case SV_SLICE_KIND:
        sqlite3_result_text(ctx, sv_kind_name(s->kind[row]), -1, SQLITE_STATIC);
        break;
    case SV_SLICE_SELF: sqlite3_result_int64(ctx, self_ns(c->q, row)); break;
    case SV_SLICE_VIEW_ROW:
        sqlite3_result_int64(ctx, rows_of(c->q)->row_of_track[s->track[row]]);
        break;
    case SV_SLICE_VIEW_LINE:
        sqlite3_result_int64(ctx, sv_track_rows_line(rows_of(c->q), (uint32_t)row));
        break;
    default: break;
    }
}

bool sv_sql_has_category(struct sv_sql *q, const char *list)
{
    const struct sv_slices *s = &q->trace->slices;
    char quoted[40];
    if (!q->categories) {
        q->categories = sv_alloc(q->dict->n_strings);
        for (uint64_t row = 0; row < s->n; row++)
            q->categories[s->cat[row]] = 1;
    }
    for (uint32_t i = 1; i < q->dict->n_strings; i++) {
        struct sv_text text = sv_dict_text(q->dict, i);
        if (!q->categories[i] || text.len > sizeof quoted - 3)
            continue;
        snprintf(quoted, sizeof quoted, "'%s'", text.bytes);
        if (strlen(text.bytes) == text.len && strstr(list, quoted))
            return true;
    }
    return false;
}

static void slice_prefetch(const struct sv_sql *q, uint32_t row, unsigned used)
{
    const struct sv_slices *s = &q->trace->slices;
    if (used & 1u << SV_SLICE_TS)
        __builtin_prefetch(&s->ts_ns[row]);
    if (used & 1u << SV_SLICE_DUR)
        __builtin_prefetch(&s->dur_ns[row]);
    if (used & 1u << SV_SLICE_NAME)
        __builtin_prefetch(&s->name[row]);
    if (used & (1u << SV_SLICE_CATEGORY | 1u << SV_SLICE_CAT))
        __builtin_prefetch(&s->cat[row]);
    if (used & 1u << SV_SLICE_TRACK)
        __builtin_prefetch(&s->track[row]);
    if (used & 1u << SV_SLICE_PARENT)
        __builtin_prefetch(&s->parent[row]);
    if (used & 1u << SV_SLICE_ARGS)
        __builtin_prefetch(&s->args[row]);
}

static const struct sv_sql_key slice_keys[] = {
    {SV_SLICE_ID, "e", 0},          {SV_SLICE_SLICE_ID, "e", 0}, {SV_SLICE_PARENT, "e", 1e-6},
    {SV_SLICE_TRACK, "e", 0.01},    {SV_SLICE_TS, "e", 1e-5},    {SV_SLICE_TS, "gGlL", 0.05},
    {SV_SLICE_NAME, "e", 0.01},     {SV_SLICE_NAME, "*%", 0.1},  {SV_SLICE_VIEW_ROW, "e", 0.01},
    {SV_SLICE_CATEGORY, "ei", 0.2}, {SV_SLICE_CAT, "ei", 0.2},   {SV_SLICE_DUR, "egGlL", 0.5},
};

const struct sv_sql_table sv_sql_slice = {
    .name = "slice",
    .columns = SV_SQL_SLICE_COLUMNS,
    .keys = slice_keys,
    .n_keys = sizeof slice_keys / sizeof slice_keys[0],
    .rows = slice_rows,
    .order = slice_order,
    .start = slice_start,
    .column = sv_sql_slice_column,
    .prefetch = slice_prefetch,
    .passes = slice_passes,
    .finish = slice_finish,
};
#endif
