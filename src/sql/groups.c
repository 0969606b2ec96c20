/* Groups of slices: the table stave_slice_groups and the aggregates that put groups together.
 *
 * A statement that reads count(*) and sum(dur) by name asks SQLite for 10 M rows, one call each for
 * the row and for every column. Here one loop over the columns makes the groups, and SQLite joins,
 * filters and sums these few rows. Which columns make up the key follows from what the statement
 * reads (colUsed); fold.c sees to it that everything else is only read through figures that may be
 * summed again.
 *
 * A key is 64 bits: name, number of the category, depth. Tracks are scanned one after the other, so
 * that theirs is not part of it. */
#include "sql/sql.h"

#ifdef SV_HAVE_SQLITE
#include "core/base/mem.h"
#include "core/base/percentile.h"
#include "sql/groups.h"

#include <stdlib.h>
#include <string.h>

enum {
    G_NAME,
    G_CATEGORY,
    G_CAT,
    G_TRACK,
    G_DEPTH,
    G_TS,
    G_DUR,
    G_N,
    G_DUR_SUM,
    G_DUR_MIN,
    G_DUR_MAX,
    G_DUR_VALUES,
    G_TS_MIN,
    G_TS_MAX
};

struct group {
    sv_str name, cat;
    sv_track track;
    uint16_t depth;
    uint64_t n;
    int64_t dur_sum, dur_min, dur_max, ts_min, ts_max;
    uint64_t first_value; /* in `values` */
};

/* The groups of one scan. Scans whose values are read live until the statement ends, since sorted
 * rows refer to them by number. */
struct sv_sql_group_set {
    struct group *groups;
    size_t n, cap;
    int64_t *values; /* durations, group by group; NULL: not read */
    uint32_t number;
};

#define RECENT_BITS 10u

/* The last group that was found for a key, by a hash of the key. */
struct recent {
    uint64_t key;
    sv_track track;
    uint32_t group; /* one more than its number; 0: none */
};

struct scan {
    struct sv_sql *q;
    const struct sv_slices *s;
    struct sv_sql_group_set *set;
    bool by_name, by_cat, by_track, by_depth;
    sv_track key_track;                       /* the current one, 0 unless it is a key */
    const uint16_t *cats;                     /* number by string */
    int64_t from_ns, to_ns, dur_from, dur_to; /* both ends included */
    sv_str name;                              /* the only one; with has_name */
    bool has_name, has_dur;
    uint32_t *numbers; /* of each row, one more than that of its group; NULL: not needed */
    uint64_t first_row, end_row; /* the part of it that was written */
    struct sv_map map;
    struct recent recent[1u << RECENT_BITS];
};

/* ---- the pass ---- */

static uint64_t key_of(const struct scan *p, uint64_t row)
{
    const struct sv_slices *s = p->s;
    uint64_t key = p->by_name ? (uint64_t)s->name[row] << 32 : 0;
    key |= p->by_cat ? (uint64_t)p->cats[s->cat[row]] << 16 : 0;
    return key | (p->by_depth ? s->depth[row] : 0);
}

static uint32_t new_group(struct scan *p, uint64_t row)
{
    struct sv_sql_group_set *set = p->set;
    set->groups = sv_grow(set->groups, &set->cap, set->n + 1, sizeof *set->groups);
    set->groups[set->n] = (struct group){.name = p->s->name[row],
                                         .cat = p->s->cat[row],
                                         .track = p->s->track[row],
                                         .depth = p->s->depth[row],
                                         .dur_min = INT64_MAX,
                                         .dur_max = INT64_MIN,
                                         .ts_min = INT64_MAX,
                                         .ts_max = INT64_MIN};
    return (uint32_t)++set->n;
}

/* One more than the number of the row's group. */
static inline uint32_t group_of(struct scan *p, uint64_t row)
{
    uint64_t key = key_of(p, row);
    struct recent *r = &p->recent[key * 0x9e3779b97f4a7c15u >> (64 - RECENT_BITS)];
    if (r->key != key || r->track != p->key_track || r->group == 0) {
        bool is_new;
        uint64_t *found = sv_map_add(&p->map, key, &is_new);
        if (is_new)
            *found = new_group(p, row);
        *r = (struct recent){key, p->key_track, (uint32_t)*found};
    }
    return r->group;
}

static inline bool has_duration(const struct scan *p, uint64_t row)
{
    int64_t dur = p->s->dur_ns[row];
    return !p->has_dur || (dur >= p->dur_from && dur <= p->dur_to);
}

static inline uint32_t count_row(struct scan *p, uint64_t row)
{
    uint32_t number = group_of(p, row);
    struct group *g = &p->set->groups[number - 1];
    int64_t ts = p->s->ts_ns[row], dur = p->s->dur_ns[row];
    g->n++;
    g->dur_sum = (int64_t)((uint64_t)g->dur_sum + (uint64_t)dur); /* fold.c asks sv_sql_sums() */
    g->dur_min = dur < g->dur_min ? dur : g->dur_min;
    g->dur_max = dur > g->dur_max ? dur : g->dur_max;
    g->ts_min = ts < g->ts_min ? ts : g->ts_min;
    g->ts_max = ts > g->ts_max ? ts : g->ts_max;
    return number;
}

static inline void scan_row(struct scan *p, uint64_t row)
{
    if (!has_duration(p, row))
        return;
    uint32_t number = count_row(p, row);
    if (p->numbers)
        p->numbers[row] = number;
}

/* By the index of ends most blocks need not be read when long slices are asked for. */
static void scan_long_rows(struct scan *p, uint64_t row, uint64_t to)
{
    const struct sv_trace *t = p->q->trace;
    while ((row = sv_trace_may_last(t, row, to, p->dur_from)) < to) {
        uint64_t end = (row | (SV_TRACE_BLOCK_ROWS - 1)) + 1;
        for (end = end < to ? end : to; row < end; row++)
            scan_row(p, row);
    }
}

static void scan_rows(struct scan *p, uint64_t from, uint64_t to)
{
    const sv_str *names = p->s->name;
    const sv_str name = p->name;
    if (p->has_name) {
        for (uint64_t row = from; row < to; row++)
            if (names[row] == name)
                scan_row(p, row);
    } else if (p->has_dur && p->dur_from > 0) {
        scan_long_rows(p, from, to);
    } else {
        for (uint64_t row = from; row < to; row++)
            scan_row(p, row);
    }
    p->first_row = from < p->first_row ? from : p->first_row;
    p->end_row = to > p->end_row ? to : p->end_row;
}

static void scan_track(struct scan *p, sv_track track)
{
    const struct sv_trace *t = p->q->trace;
    const struct sv_trace_track *k = &t->tracks[track];
    if (k->first == k->end || p->from_ns > p->to_ns)
        return;
    uint32_t from = p->from_ns == INT64_MIN ? k->first : sv_trace_row_from(t, track, p->from_ns);
    uint32_t to = p->to_ns == INT64_MAX ? k->end : sv_trace_row_from(t, track, p->to_ns + 1);
    if (p->by_track) {
        p->key_track = track;
        sv_map_fini(&p->map);
        p->map = (struct sv_map){0};
    }
    scan_rows(p, from, to);
}

/* All rows of one name by the index of names: these are in the order of tracks, too. */
static void scan_named(struct scan *p)
{
    const struct sv_names *names = sv_index_names(p->q->index);
    const struct sv_slices *s = p->s;
    uint32_t g = sv_names_group(names, p->name);
    if (g == SV_NO_ROW)
        return;
    for (uint32_t i = names->start[g]; i < names->start[g + 1]; i++) {
        uint32_t row = names->rows[i];
        if (s->ts_ns[row] < p->from_ns || s->ts_ns[row] > p->to_ns)
            continue;
        if (p->by_track && s->track[row] != p->key_track) {
            p->key_track = s->track[row];
            sv_map_fini(&p->map);
            p->map = (struct sv_map){0};
        }
        scan_rows(p, row, (uint64_t)row + 1);
    }
}

/* Whether the index of names is worth it: it is there, or this statement asked for several
 * names. */
static bool has_names(const struct scan *p)
{
    return p->has_name && (sv_index_has_names(p->q->index) || p->q->n_name_scans > 4);
}

static void scan_all(struct scan *p, sv_track only)
{
    const struct sv_trace *t = p->q->trace;
    if (only != UINT32_MAX) {
        if (sv_trace_has_track(t, only))
            scan_track(p, only);
    } else if (has_names(p)) {
        scan_named(p);
    } else {
        for (sv_track k = 0; k < t->n_tracks; k++)
            scan_track(p, k);
    }
}

/* The groups and their sizes are known: puts the durations of each one side by side. */
static void collect_values(struct scan *p)
{
    struct sv_sql_group_set *set = p->set;
    uint64_t n = 0;
    uint64_t *next = sv_alloc((set->n + 1) * sizeof *next);
    for (size_t i = 0; i < set->n; i++) {
        set->groups[i].first_value = next[i] = n;
        n += set->groups[i].n;
    }
    set->values = sv_alloc_aligned((n + 1) * sizeof *set->values, 64);
    sv_advise_huge(set->values, (n + 1) * sizeof *set->values);
    for (uint64_t row = p->first_row; row < p->end_row; row++)
        if (p->numbers[row])
            set->values[next[p->numbers[row] - 1]++] = p->s->dur_ns[row];
    free(next);
}

/* ---- what is kept of it ---- */

static void set_free(struct sv_sql_group_set *set)
{
    if (!set)
        return;
    free(set->groups);
    free(set->values);
    free(set);
}

void sv_sql_forget_groups(struct sv_sql *q)
{
    for (uint32_t i = 0; i < q->n_group_sets; i++)
        set_free(q->group_sets[i]);
    q->n_group_sets = 0;
    q->n_name_scans = 0;
}

/* The durations of a group, by what stave_dur_values says. */
static struct group *group_by_handle(const struct sv_sql *q, int64_t handle,
                                     struct sv_sql_group_set **set)
{
    uint64_t number = (uint64_t)handle >> 32, group = (uint32_t)handle;
    if (number >= q->n_group_sets || group >= q->group_sets[number]->n)
        return NULL;
    *set = q->group_sets[number];
    return &(*set)->groups[group];
}

/* Numbers of the categories by string, or NULL: more than 65535 of them. */
static const uint16_t *category_numbers(struct sv_sql *q)
{
    const struct sv_slices *s = &q->trace->slices;
    if (q->category_numbers)
        return q->category_numbers;
    uint16_t *numbers = sv_alloc(q->dict->n_strings * sizeof *numbers);
    uint32_t n = 0;
    for (uint64_t row = 0; row < s->n; row++)
        if (s->cat[row] && !numbers[s->cat[row]]) {
            if (n == UINT16_MAX) {
                free(numbers);
                return NULL;
            }
            numbers[s->cat[row]] = (uint16_t)++n;
        }
    return q->category_numbers = numbers;
}

enum sv_sql_sums sv_sql_sums(struct sv_sql *q)
{
    const struct sv_slices *s = &q->trace->slices;
    if (!q->has_sums) {
        uint64_t sum = 0; /* stops beyond 2^63 */
        for (uint64_t row = 0; row < s->n && !(sum >> 63); row++) {
            int64_t dur = s->dur_ns[row];
            sum += dur < 0 ? 0 - (uint64_t)dur : (uint64_t)dur;
        }
        q->sums = sum >> 63 ? SV_SUMS_OVERFLOW : sum >> 53 ? SV_SUMS_FIT : SV_SUMS_ARE_EXACT;
        q->has_sums = true;
    }
    return (enum sv_sql_sums)q->sums;
}

/* ---- the table ---- */

static uint64_t groups_rows(struct sv_sql *q)
{
    return q->trace->slices.n / 10 + 10;
}

static bool is_used(const struct sv_sql_cursor *c, int column)
{
    return c->used >> column & 1;
}

/* Takes the conditions; false: nothing can match. *only is the one track that is asked for. */
static bool take_conditions(struct scan *p, const struct sv_sql_cond *conds, size_t n,
                            sv_track *only)
{
    const struct sv_sql_cond *track = sv_sql_find_cond(conds, n, G_TRACK, SV_OP_EQ);
    const struct sv_sql_cond *name = sv_sql_find_cond(conds, n, G_NAME, SV_OP_EQ);
    for (size_t i = 0; i < n; i++) {
        if (conds[i].column == G_TS)
            sv_sql_narrow(&conds[i], &p->from_ns, &p->to_ns);
        if (conds[i].column == G_DUR) {
            sv_sql_narrow(&conds[i], &p->dur_from, &p->dur_to);
            p->has_dur = true;
        }
    }
    if (track) {
        int64_t id;
        if (!sv_sql_value_int(track->value, SV_OP_EQ, &id) || id < 0 || id >= UINT32_MAX)
            return false;
        *only = (sv_track)id;
    }
    if (name) {
        const char *text = (const char *)sqlite3_value_text(name->value);
        p->name =
            text ? sv_dict_find_str(p->q->dict, text, (size_t)sqlite3_value_bytes(name->value)) : 0;
        p->has_name = true;
        p->q->n_name_scans++;
        return p->name != 0;
    }
    return true;
}

static int groups_start(struct sv_sql_cursor *c, int order, const struct sv_sql_cond *conds,
                        size_t n)
{
    (void)order;
    struct sv_sql *q = c->q;
    struct scan *p = sv_alloc(sizeof *p);
    sv_track only = UINT32_MAX;
    *p = (struct scan){.q = q,
                       .s = &q->trace->slices,
                       .by_name = is_used(c, G_NAME),
                       .by_cat = is_used(c, G_CATEGORY) || is_used(c, G_CAT),
                       .by_track = is_used(c, G_TRACK),
                       .by_depth = is_used(c, G_DEPTH),
                       .from_ns = INT64_MIN,
                       .to_ns = INT64_MAX,
                       .dur_from = INT64_MIN,
                       .dur_to = INT64_MAX,
                       .first_row = UINT64_MAX};
    if (p->by_cat && !(p->cats = category_numbers(q))) {
        free(p);
        return SQLITE_ERROR;
    }
    struct sv_sql_group_set *set = c->state = p->set = sv_alloc(sizeof *set);
    if (is_used(c, G_DUR_VALUES))
        p->numbers = sv_alloc((q->trace->slices.n + 1) * sizeof *p->numbers);
    if (take_conditions(p, conds, n, &only))
        scan_all(p, only);
    if (p->numbers) {
        collect_values(p);
        set->number = q->n_group_sets;
        SV_APPEND(q->group_sets, q->n_group_sets, q->cap_group_sets) = set;
    }
    sv_map_fini(&p->map);
    free(p->numbers);
    free(p);
    sv_sql_range(c, 0, set->n);
    return SQLITE_OK;
}

static void groups_finish(struct sv_sql_cursor *c)
{
    struct sv_sql_group_set *set = c->state;
    if (set && !set->values)
        set_free(set);
    c->state = NULL;
}

static void groups_column(struct sv_sql_cursor *c, sqlite3_context *ctx, int column)
{
    const struct sv_sql_group_set *set = c->state;
    const struct group *g = &set->groups[c->row];
    switch (column) {
    case G_NAME: sv_sql_result_str(c->q, ctx, g->name); break;
    case G_CATEGORY:
    case G_CAT: sv_sql_result_str(c->q, ctx, g->cat); break;
    case G_TRACK: sqlite3_result_int64(ctx, g->track); break;
    case G_DEPTH: sqlite3_result_int(ctx, g->depth); break;
    case G_N: sqlite3_result_int64(ctx, (sqlite3_int64)g->n); break;
    case G_DUR_SUM: sqlite3_result_int64(ctx, g->dur_sum); break;
    case G_DUR_MIN: sqlite3_result_int64(ctx, g->dur_min); break;
    case G_DUR_MAX: sqlite3_result_int64(ctx, g->dur_max); break;
    case G_DUR_VALUES:
        sqlite3_result_int64(ctx, (sqlite3_int64)((uint64_t)set->number << 32 | c->row));
        break;
    case G_TS_MIN: sqlite3_result_int64(ctx, g->ts_min); break;
    case G_TS_MAX: sqlite3_result_int64(ctx, g->ts_max); break;
    default: sqlite3_result_error(ctx, "a group of slices has no such value", -1); break;
    }
}

static const struct sv_sql_key group_keys[] = {
    {G_TRACK, "e", 0.01}, {G_NAME, "e", 0.01}, {G_TS, "egGlL", 0.5}, {G_DUR, "egGlL", 0.5}};

const struct sv_sql_table sv_sql_groups = {
    .name = SV_SQL_GROUPS,
    .columns = "name TEXT, category TEXT, cat TEXT, track_id INTEGER, depth INTEGER, ts INTEGER, "
               "dur INTEGER, stave_n INTEGER, stave_dur_sum INTEGER, stave_dur_min INTEGER, "
               "stave_dur_max INTEGER, stave_dur_values INTEGER, stave_ts_min INTEGER, "
               "stave_ts_max INTEGER",
    .keys = group_keys,
    .n_keys = sizeof group_keys / sizeof group_keys[0],
    .exact = 1u << G_TS | 1u << G_DUR,
    .rows = groups_rows,
    .start = groups_start,
    .column = groups_column,
    .finish = groups_finish,
};

/* ---- aggregates of aggregates ---- */

struct sums {
    int64_t sum, n;
};

static void add_sums(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct sums *s = sqlite3_aggregate_context(ctx, sizeof *s);
    if (!s) {
        sqlite3_result_error_nomem(ctx);
        return;
    }
    /* fold.c asks sv_sql_sums(); who calls it with other numbers gets what wraps around. */
    s->n = (int64_t)((uint64_t)s->n + (uint64_t)sqlite3_value_int64(argv[0]));
    if (argc > 1)
        s->sum = (int64_t)((uint64_t)s->sum + (uint64_t)sqlite3_value_int64(argv[1]));
}

static void count_final(sqlite3_context *ctx)
{
    const struct sums *s = sqlite3_aggregate_context(ctx, 0);
    sqlite3_result_int64(ctx, s ? s->n : 0);
}

static void mean_final(sqlite3_context *ctx)
{
    const struct sums *s = sqlite3_aggregate_context(ctx, 0);
    if (s && s->n)
        sqlite3_result_double(ctx, (double)s->sum / (double)s->n);
}

struct parts {
    int64_t *handles;
    size_t n, cap;
    double p;
};

static void percentile_step(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    (void)argc;
    struct parts *v = sqlite3_aggregate_context(ctx, sizeof *v);
    if (!v) {
        sqlite3_result_error_nomem(ctx);
        return;
    }
    v->p = sqlite3_value_double(argv[1]);
    if (!(v->p >= 0 && v->p <= 100)) { /* not from fold.c: anyone may call it */
        sqlite3_result_error(ctx, "percentile: the second argument is not within 0 … 100", -1);
        v->p = 0;
        return;
    }
    SV_APPEND(v->handles, v->n, v->cap) = sqlite3_value_int64(argv[0]);
}

/* The values of all groups in one array; *n of them. */
static int64_t *join_values(const struct sv_sql *q, const struct parts *v, size_t *n)
{
    int64_t *all = NULL;
    size_t cap = 0;
    *n = 0;
    for (size_t i = 0; i < v->n; i++) {
        struct sv_sql_group_set *set;
        const struct group *g = group_by_handle(q, v->handles[i], &set);
        if (!g || g->n == 0)
            continue;
        all = sv_grow(all, &cap, *n + g->n, sizeof *all);
        memcpy(all + *n, set->values + g->first_value, g->n * sizeof *all);
        *n += g->n;
    }
    return all;
}

static void percentile_final(sqlite3_context *ctx)
{
    const struct sv_sql *q = sqlite3_user_data(ctx);
    struct parts *v = sqlite3_aggregate_context(ctx, 0);
    struct sv_sql_group_set *set;
    const struct group *g;
    if (!v)
        return;
    if (v->n == 1 && (g = group_by_handle(q, v->handles[0], &set))) {
        sqlite3_result_double(ctx, sv_percentile(set->values + g->first_value, g->n, v->p / 100));
    } else {
        size_t n;
        int64_t *all = join_values(q, v, &n);
        if (n)
            sqlite3_result_double(ctx, sv_percentile(all, n, v->p / 100));
        free(all);
    }
    free(v->handles);
    v->handles = NULL;
}

int sv_sql_add_group_functions(struct sv_sql *q)
{
    int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
    int rc =
        sqlite3_create_function(q->db, "stave_count", 1, flags, q, NULL, add_sums, count_final);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_function(q->db, "stave_mean", 2, flags, q, NULL, add_sums, mean_final);
    if (rc == SQLITE_OK)
        rc = sqlite3_create_function(q->db, "stave_percentile", 2, flags, q, NULL, percentile_step,
                                     percentile_final);
    return rc;
}
#endif
