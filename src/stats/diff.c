/* Difference of two traces. Called by the command diff with two loaded stores.
 *
 * Each row gets a 64-bit key made from its track's path, its parent's key and its name's bytes, so
 * that rows of two dictionaries can be compared; parents have smaller rows, so one pass suffices.
 * Groups of equal keys are then summed up side by side. */
#include "stats/diff.h"

#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/percentile.h"
#include "core/base/sat.h"
#include "core/base/sort.h"
#include "stats/select.h"
#include "stats/self.h"
#include "store/filter.h"
#include "why/steps.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const sv_diff_state_names[] = {"same", "changed", "added", "removed"};

/* The rank test looks at so many durations per side at most: evenly spaced ones. */
#define SAMPLE_MAX 20000u

/* ---- the rank test ---- */

double sv_rank_test(int64_t *a, size_t n_a, int64_t *b, size_t n_b)
{
    if (n_a < 3 || n_b < 3)
        return 1;
    qsort(a, n_a, sizeof *a, sv_compare_i64);
    qsort(b, n_b, sizeof *b, sv_compare_i64);
    double n1 = (double)n_a, n2 = (double)n_b, rank_sum = 0, ties = 0, rank = 1;
    for (size_t i = 0, j = 0; i < n_a || j < n_b;) {
        int64_t v = j == n_b || (i < n_a && a[i] <= b[j]) ? a[i] : b[j];
        size_t from_i = i, from_j = j;
        while (i < n_a && a[i] == v)
            i++;
        while (j < n_b && b[j] == v)
            j++;
        double same = (double)(i - from_i + j - from_j);
        rank_sum += (double)(i - from_i) * (rank + (same - 1) / 2);
        ties += same * same * same - same;
        rank += same;
    }
    double n = n1 + n2, u = rank_sum - n1 * (n1 + 1) / 2;
    double variance = n1 * n2 / 12 * (n + 1 - ties / (n * (n - 1)));
    if (variance <= 0)
        return 1;
    double z = fmax(fabs(u - n1 * n2 / 2) - 0.5, 0) / sqrt(variance);
    return erfc(z / sqrt(2));
}

/* ---- keys ---- */

static uint64_t hash_without_numbers(const char *s, size_t len)
{
    char text[512];
    size_t n = 0;
    for (size_t i = 0; i < len && n < sizeof text; i++)
        if (!isdigit((unsigned char)s[i]))
            text[n++] = s[i];
    return sv_hash_bytes(text, n, 1);
}

static uint64_t *track_keys(const struct sv_trace *t)
{
    uint64_t *keys = sv_alloc(((size_t)t->n_tracks + 1) * sizeof *keys);
    struct sv_buf path;
    sv_buf_init(&path, 1u << 16);
    for (sv_track k = 1; k < t->n_tracks; k++) {
        /* Lanes hold what overlapped on their parent: the same work may lie on another one in
         * another run. */
        sv_track home = k;
        while (t->dict->tracks[home].kind == SV_TRACK_LANE && t->dict->tracks[home].parent)
            home = t->dict->tracks[home].parent;
        sv_buf_clear(&path);
        sv_track_path(t->dict, home, &path);
        keys[k] = hash_without_numbers(sv_buf_cstr(&path), path.len);
    }
    sv_buf_fini(&path);
    return keys;
}

static uint64_t *name_keys(const struct sv_trace *t, const struct sv_steps *steps)
{
    const struct sv_dict *d = t->dict;
    uint64_t *keys = sv_alloc(((size_t)d->n_strings + 1) * sizeof *keys);
    for (sv_str s = 0; s < d->n_strings; s++) {
        struct sv_text text = sv_dict_text(d, s);
        keys[s] = sv_hash_bytes(text.bytes, text.len, 2);
    }
    for (size_t i = 0; i < steps->n; i++) {
        sv_str s = t->slices.name[steps->steps[i].row];
        struct sv_text text = sv_dict_text(d, s);
        keys[s] = hash_without_numbers(text.bytes, text.len);
    }
    return keys;
}

static uint64_t *row_keys(const struct sv_trace *t, const struct sv_steps *steps)
{
    const struct sv_slices *c = &t->slices;
    uint64_t *keys = sv_alloc_aligned((c->n + 1) * sizeof *keys, 64);
    uint64_t *tracks = track_keys(t), *names = name_keys(t, steps);
    for (uint64_t row = 0; row < c->n; row++) {
        uint64_t above = c->parent[row] == SV_NO_ROW ? tracks[c->track[row]] : keys[c->parent[row]];
        keys[row] = sv_mix64(above * 3 + names[c->name[row]]);
    }
    free(tracks);
    free(names);
    return keys;
}

/* ---- groups ---- */

struct side {
    const struct sv_trace *t;
    uint64_t *keys;
    uint32_t *group; /* by row */
    uint64_t *start; /* by group: where its durations begin; one more at the end */
    int64_t *durs;
    struct sv_steps steps;
    struct sv_meanwhile left_out;
};

static int64_t length(const struct sv_trace *t, uint64_t row)
{
    return sv_trace_end_ns(t, row) - t->slices.ts_ns[row];
}

static void number_groups(struct side *s, struct sv_map *map)
{
    uint64_t n = s->t->slices.n;
    s->group = sv_alloc_aligned((n + 1) * sizeof *s->group, 64);
    for (uint64_t row = 0; row < n; row++) {
        bool is_new;
        uint64_t *number = sv_map_add(map, s->keys[row], &is_new);
        if (is_new)
            *number = map->n - 1;
        s->group[row] = (uint32_t)*number;
    }
}

static bool counts(const struct side *s, uint64_t row)
{
    return s->t->slices.kind[row] == SV_SLICE &&
           !sv_is_meanwhile(&s->left_out, s->t->slices.cat[row]);
}

static void sum_groups(struct side *s, struct sv_diff_row *rows, size_t n_groups, unsigned which)
{
    const struct sv_trace *t = s->t;
    int64_t *self = sv_self_times(t);
    for (size_t g = 0; g < n_groups; g++)
        rows[g].side[which].row = SV_NO_ROW;
    for (uint64_t row = 0; row < t->slices.n; row++) {
        struct sv_diff_side *x = &rows[s->group[row]].side[which];
        if (!counts(s, row))
            continue;
        if (x->count++ == 0)
            x->row = (uint32_t)row;
        x->total_ns = sv_sat_add(x->total_ns, length(t, row));
        x->self_ns = sv_sat_add(x->self_ns, self[row]);
    }
    free(self);
    s->start = sv_alloc((n_groups + 2) * sizeof *s->start);
    for (size_t g = 0; g < n_groups; g++)
        s->start[g + 1] = s->start[g] + rows[g].side[which].count;
    uint64_t *next = sv_alloc((n_groups + 1) * sizeof *next);
    memcpy(next, s->start, n_groups * sizeof *next);
    s->durs = sv_alloc_aligned((s->start[n_groups] + 1) * sizeof *s->durs, 64);
    for (uint64_t row = 0; row < t->slices.n; row++)
        if (counts(s, row))
            s->durs[next[s->group[row]]++] = length(t, row);
    free(next);
}

static int64_t *sample(const struct side *s, size_t group, size_t *n)
{
    uint64_t from = s->start[group], count = s->start[group + 1] - from;
    *n = count < SAMPLE_MAX ? (size_t)count : SAMPLE_MAX;
    int64_t *v = sv_alloc((*n + 1) * sizeof *v);
    for (size_t i = 0; i < *n; i++)
        v[i] = s->durs[from + i * count / *n];
    return v;
}

static void judge(struct sv_diff_row *r, size_t group, struct side *sides, const uint64_t *steps,
                  const struct sv_diff_options *o)
{
    r->p = 1;
    if (r->side[0].count && r->side[1].count) {
        size_t n[2];
        int64_t *v[2] = {sample(&sides[0], group, &n[0]), sample(&sides[1], group, &n[1])};
        r->p = sv_rank_test(v[0], n[0], v[1], n[1]);
        free(v[0]);
        free(v[1]);
        double a = (double)r->side[0].total_ns / (double)steps[0];
        double b = (double)r->side[1].total_ns / (double)steps[1];
        r->change = a > 0 ? b / a - 1 : 0;
    }
    for (unsigned k = 0; k < 2; k++) {
        int64_t *v = sides[k].durs + sides[k].start[group];
        r->side[k].p50_ns = sv_percentile(v, r->side[k].count, 0.5);
        r->side[k].p99_ns = sv_percentile(v, r->side[k].count, 0.99);
    }
    double per_a = (double)r->side[0].count / (double)steps[0];
    double per_b = (double)r->side[1].count / (double)steps[1];
    bool counts_differ = fabs(per_b - per_a) >= fmax(o->threshold, 1e-9) * per_a;
    r->state = r->side[0].count == 0   ? SV_DIFF_ADDED
               : r->side[1].count == 0 ? SV_DIFF_REMOVED
               : counts_differ || (fabs(r->change) >= o->threshold && r->p < o->alpha)
                   ? SV_DIFF_CHANGED
                   : SV_DIFF_SAME;
}

struct ranked {
    double weight;
    struct sv_diff_row row;
};

static int by_weight(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->weight != y->weight)
        return x->weight > y->weight ? -1 : 1;
    return x->row.side[0].row < y->row.side[0].row ? -1 : x->row.side[0].row > y->row.side[0].row;
}

/* Groups of instants only are dropped; the others go by how much time per step they gain or
 * lose. */
static void rank_rows(struct sv_diff *d, size_t n_groups)
{
    struct ranked *rows = sv_alloc((n_groups + 1) * sizeof *rows);
    d->n = 0;
    for (size_t g = 0; g < n_groups; g++) {
        const struct sv_diff_row *r = &d->rows[g];
        if (r->side[0].count + r->side[1].count == 0)
            continue;
        double a = (double)r->side[0].total_ns / (double)d->steps[0];
        double b = (double)r->side[1].total_ns / (double)d->steps[1];
        rows[d->n++] = (struct ranked){fabs(b - a), *r};
    }
    qsort(rows, d->n, sizeof *rows, by_weight);
    for (size_t i = 0; i < d->n; i++)
        d->rows[i] = rows[i].row;
    free(rows);
}

void sv_diff_make(struct sv_diff *d, const struct sv_trace *a, const struct sv_trace *b,
                  const struct sv_diff_options *o)
{
    struct side sides[2] = {{.t = a}, {.t = b}};
    struct sv_map map = {0};
    *d = (struct sv_diff){.steps = {1, 1}};
    for (unsigned k = 0; k < 2; k++) {
        sv_steps_find(&sides[k].steps, sides[k].t, NULL);
        sides[k].left_out = sv_meanwhile_of(sides[k].t->dict);
        sides[k].keys = row_keys(sides[k].t, &sides[k].steps);
        number_groups(&sides[k], &map);
        d->span_ns[k] = sv_sat_sub(sides[k].t->last_ns, sides[k].t->first_ns);
    }
    if (!o->ignore_steps && sides[0].steps.n && sides[1].steps.n)
        for (unsigned k = 0; k < 2; k++)
            d->steps[k] = sides[k].steps.n;
    d->rows = sv_alloc((map.n + 1) * sizeof *d->rows);
    for (unsigned k = 0; k < 2; k++)
        sum_groups(&sides[k], d->rows, map.n, k);
    for (size_t g = 0; g < map.n; g++)
        judge(&d->rows[g], g, sides, d->steps, o);
    rank_rows(d, map.n);
    for (unsigned k = 0; k < 2; k++) {
        free(sides[k].keys);
        free(sides[k].group);
        free(sides[k].start);
        free(sides[k].durs);
        sv_steps_fini(&sides[k].steps);
    }
    sv_map_fini(&map);
}

void sv_diff_fini(struct sv_diff *d)
{
    free(d->rows);
    *d = (struct sv_diff){0};
}

void sv_diff_parents(const struct sv_trace *t, uint32_t row, struct sv_buf *to)
{
    uint32_t chain[64];
    size_t n = 0;
    while ((row = t->slices.parent[row]) != SV_NO_ROW && n < 64)
        chain[n++] = row;
    while (n-- > 0) {
        struct sv_text name = sv_dict_text(t->dict, t->slices.name[chain[n]]);
        if (to->len)
            sv_buf_byte(to, '/');
        sv_buf_add(to, name.bytes, name.len);
    }
}
