/* Orders over the store: time across tracks, and names.
 *
 * Used by the SQL tables and the statistics; made at first use, since most questions need one of
 * them or none. Rows of a track are in time order already, so the order of time is a merge of as
 * many runs as there are tracks, and a single id is found by binary search in each of them. Must
 * not change the trace. */
#include "store/index.h"

#include "core/base/heap.h"
#include "core/base/mem.h"
#include "core/base/sort.h"
#include "threads/workers.h"

#include <stdlib.h>
#include <string.h>

#define THREADS_FROM ((uint64_t)1 << 18) /* slices */
#define PARTS        4u                  /* of each thread: some are longer than others */

struct sv_index {
    const struct sv_trace *trace;
    uint32_t *order, *rank, *counter_order;
    uint32_t *children,
        *first_child; /* all rows that have a parent, by it; by parent, the first of them */
    sv_track *live;   /* tracks that have rows */
    uint32_t n_live;
    uint64_t searched; /* steps spent on ids without the table */
    struct sv_names *names;
};

struct sv_index *sv_index_new(const struct sv_trace *t)
{
    struct sv_index *x = sv_alloc(sizeof *x);
    x->trace = t;
    x->live = sv_alloc((t->n_tracks + 1) * sizeof *x->live);
    for (sv_track k = 0; k < t->n_tracks; k++)
        if (t->tracks[k].first < t->tracks[k].end)
            x->live[x->n_live++] = k;
    return x;
}

void sv_index_free(struct sv_index *x)
{
    if (!x)
        return;
    if (x->names) {
        free(x->names->name);
        free(x->names->start);
        free(x->names->rows);
        free(x->names->group_of);
        free(x->names);
    }
    free(x->order);
    free(x->rank);
    free(x->counter_order);
    free(x->children);
    free(x->first_child);
    free(x->live);
    free(x);
}

/* ---- time ---- */

/* The head of one track in the merge. */
struct run {
    int64_t ts_ns;
    uint32_t row, end;
};

static bool run_before(const struct run *a, const struct run *b)
{
    return a->ts_ns < b->ts_ns || (a->ts_ns == b->ts_ns && a->row < b->row);
}

static void sift(struct run *heap, size_t n, size_t at)
{
    SV_HEAP_SINK(heap, n, at, a, b, run_before(a, b));
}

/* Merges sorted runs of rows into `order`. */
static void merge_runs(struct run *heap, size_t n, const int64_t *ts_ns, uint32_t *order)
{
    for (size_t i = n; i-- > 0;)
        sift(heap, n, i);
    while (n > 1) {
        struct run *top = &heap[0];
        /* As long as the same track comes first, nothing moves in the heap. */
        const struct run *rival = n > 2 && run_before(&heap[2], &heap[1]) ? &heap[2] : &heap[1];
        do {
            *order++ = top->row++;
            if (top->row == top->end)
                break;
            top->ts_ns = ts_ns[top->row];
        } while (run_before(top, rival));
        if (top->row == top->end)
            heap[0] = heap[--n];
        sift(heap, n, 0);
    }
    if (n == 1)
        for (uint32_t row = heap[0].row; row < heap[0].end; row++)
            *order++ = row;
}

/* The order of time is made by all threads: each merges the rows of a part of the time, which the
 * longest track divides into equal numbers of its own. */
struct merging {
    struct sv_index *x;
    size_t n_parts;
    sv_track longest;
};

static sv_track longest_track(const struct sv_index *x)
{
    const struct sv_trace_track *tracks = x->trace->tracks;
    sv_track longest = x->n_live ? x->live[0] : 0;
    for (uint32_t i = 1; i < x->n_live; i++) {
        sv_track k = x->live[i];
        if (tracks[k].end - tracks[k].first > tracks[longest].end - tracks[longest].first)
            longest = k;
    }
    return longest;
}

/* The first row of a track in the part, or in the one after the last. */
static uint32_t part_from(const struct merging *m, sv_track track, size_t part)
{
    const struct sv_trace *t = m->x->trace;
    const struct sv_trace_track *k = &t->tracks[m->longest];
    uint64_t length = k->end - k->first;
    if (part == 0 || part == m->n_parts)
        return part == 0 ? t->tracks[track].first : t->tracks[track].end;
    return sv_trace_row_from(t, track, t->slices.ts_ns[k->first + length * part / m->n_parts]);
}

static void merge_part(void *ctx, size_t part)
{
    const struct merging *m = ctx;
    const struct sv_index *x = m->x;
    const struct sv_trace *t = x->trace;
    struct run *heap = sv_alloc((x->n_live + 1) * sizeof *heap);
    size_t n = 0;
    uint64_t before = 0;
    for (uint32_t i = 0; i < x->n_live; i++) {
        uint32_t row = part_from(m, x->live[i], part), end = part_from(m, x->live[i], part + 1);
        before += row - t->tracks[x->live[i]].first;
        if (row < end)
            heap[n++] = (struct run){t->slices.ts_ns[row], row, end};
    }
    merge_runs(heap, n, t->slices.ts_ns, x->order + before);
    free(heap);
}

const uint32_t *sv_index_order(struct sv_index *x)
{
    if (x->order)
        return x->order;
    const struct sv_trace *t = x->trace;
    struct sv_workers *w = t->slices.n < THREADS_FROM ? NULL : sv_workers_new(0);
    size_t threads = sv_workers_count(w);
    x->order = sv_alloc_aligned((t->slices.n + 1) * sizeof *x->order, 64);
    sv_advise_huge(x->order, (t->slices.n + 1) * sizeof *x->order);
    struct merging m = {x, threads == 1 ? 1 : PARTS * threads, longest_track(x)};
    sv_workers_each(w, m.n_parts, merge_part, &m);
    sv_workers_free(w);
    return x->order;
}

const uint32_t *sv_index_counter_order(struct sv_index *x)
{
    if (x->counter_order)
        return x->counter_order;
    const struct sv_trace *t = x->trace;
    x->counter_order = sv_alloc_aligned((t->counters.n + 1) * sizeof *x->counter_order, 64);
    struct run *heap = sv_alloc(((size_t)t->n_tracks + 1) * sizeof *heap);
    size_t n = 0;
    for (sv_track i = 0; i < t->n_tracks; i++) {
        const struct sv_trace_track *k = &t->tracks[i];
        if (k->counter_first < k->counter_end)
            heap[n++] =
                (struct run){t->counters.ts_ns[k->counter_first], k->counter_first, k->counter_end};
    }
    merge_runs(heap, n, t->counters.ts_ns, x->counter_order);
    free(heap);
    return x->counter_order;
}

static void make_rank(struct sv_index *x)
{
    const uint32_t *order = sv_index_order(x);
    uint64_t n = x->trace->slices.n;
    x->rank = sv_alloc_aligned((n + 1) * sizeof *x->rank, 64);
    sv_advise_huge(x->rank, (n + 1) * sizeof *x->rank);
    for (uint32_t id = 0; id < n; id++)
        x->rank[order[id]] = id;
}

/* Whether searching is still cheaper than the table: all searches together may cost a fraction of
 * making it. */
static bool may_search(struct sv_index *x, unsigned steps_per_track)
{
    x->searched += (uint64_t)x->n_live * steps_per_track;
    return x->searched < x->trace->slices.n / 4 + 100000;
}

/* Rows of a track that come before (ts_ns, row). */
static uint64_t count_before(const struct sv_trace *t, sv_track track, int64_t ts_ns, uint32_t row)
{
    const struct sv_trace_track *k = &t->tracks[track];
    if (row >= k->first && row < k->end)
        return row - k->first;
    /* Tracks lie in order: those before the row's win ties, those after it lose them. */
    bool wins_ties = k->first < row;
    if (wins_ties && ts_ns == INT64_MAX)
        return k->end - k->first;
    return sv_trace_row_from(t, track, wins_ties ? ts_ns + 1 : ts_ns) - k->first;
}

uint32_t sv_index_id(struct sv_index *x, uint32_t row)
{
    if (x->n_live == 1)
        return row;
    if (!x->rank && !may_search(x, 24))
        make_rank(x);
    if (x->rank)
        return x->rank[row];
    uint64_t id = 0;
    for (uint32_t i = 0; i < x->n_live; i++)
        id += count_before(x->trace, x->live[i], x->trace->slices.ts_ns[row], row);
    return (uint32_t)id;
}

/* How many slices begin before ts_ns. */
static uint64_t begun_before(const struct sv_index *x, int64_t ts_ns)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < x->n_live; i++)
        n += sv_trace_row_from(x->trace, x->live[i], ts_ns) - x->trace->tracks[x->live[i]].first;
    return n;
}

static uint32_t search_row(const struct sv_index *x, uint64_t id)
{
    const struct sv_trace *t = x->trace;
    int64_t low = t->first_ns, high = t->last_ns; /* begun_before(low) <= id */
    while (low < high) {
        int64_t middle = (int64_t)(((uint64_t)high - (uint64_t)low + 1) / 2 + (uint64_t)low);
        if (begun_before(x, middle) <= id)
            low = middle;
        else
            high = middle - 1;
    }
    id -= begun_before(x, low);
    for (uint32_t i = 0; i < x->n_live; i++) {
        const struct sv_trace_track *k = &t->tracks[x->live[i]];
        uint32_t from = sv_trace_row_from(t, x->live[i], low);
        uint32_t to = low == INT64_MAX ? k->end : sv_trace_row_from(t, x->live[i], low + 1);
        if (id < to - from)
            return (uint32_t)(from + id);
        id -= to - from;
    }
    return SV_NO_ROW;
}

uint32_t sv_index_row(struct sv_index *x, uint64_t id)
{
    if (id >= x->trace->slices.n)
        return SV_NO_ROW;
    if (x->n_live == 1)
        return (uint32_t)id;
    if (x->order || !may_search(x, 64 * 24))
        return sv_index_order(x)[id];
    return search_row(x, id);
}

/* ---- children ---- */

static void make_children(struct sv_index *x)
{
    const uint32_t *parent = x->trace->slices.parent;
    uint64_t n = x->trace->slices.n;
    uint32_t *first = x->first_child = sv_alloc_aligned((n + 2) * sizeof *first, 64);
    x->children = sv_alloc_aligned((n + 1) * sizeof *x->children, 64);
    memset(first, 0, (n + 2) * sizeof *first);
    for (uint64_t row = 0; row < n; row++)
        if (parent[row] != SV_NO_ROW)
            first[parent[row] + 2]++;
    for (uint64_t row = 1; row <= n; row++)
        first[row + 1] += first[row];
    for (uint32_t row = 0; row < n;
         /* first[p + 1] is where the next one goes, and ends as where the next parent's begin */
         row++)
        if (parent[row] != SV_NO_ROW)
            x->children[first[parent[row] + 1]++] = row;
}

const uint32_t *sv_index_children(struct sv_index *x, uint32_t row, size_t *n)
{
    if (!x->children)
        make_children(x);
    *n = x->first_child[row + 1] - x->first_child[row];
    return x->children + x->first_child[row];
}

struct timed {
    int64_t ts_ns;
    uint32_t row;
};

static bool timed_before(const struct timed *a, const struct timed *b, const void *ctx)
{
    (void)ctx;
    return a->ts_ns < b->ts_ns;
}
SV_SORT_DEFINE(sort_timed, struct timed, timed_before)

void sv_index_sort_rows(const struct sv_index *x, uint32_t *rows, size_t n)
{
    const int64_t *ts_ns = x->trace->slices.ts_ns;
    const sv_track *track = x->trace->slices.track;
    if (n < 2 || track[rows[0]] == track[rows[n - 1]])
        return;
    struct timed *items = sv_alloc_aligned(n * sizeof *items, 64);
    struct timed *spare = sv_alloc_aligned(SV_SORT_SPARE(n) * sizeof *spare, 64);
    for (size_t i = 0; i < n; i++)
        items[i] = (struct timed){ts_ns[rows[i]], rows[i]};
    sort_timed(items, n, spare, NULL);
    for (size_t i = 0; i < n; i++)
        rows[i] = items[i].row;
    free(items);
    free(spare);
}

/* ---- names ---- */

struct named {
    struct sv_text text;
    sv_str name;
};

static bool named_before(const struct named *a, const struct named *b, const void *ctx)
{
    (void)ctx;
    uint32_t len = a->text.len < b->text.len ? a->text.len : b->text.len;
    int c = a->name && b->name ? memcmp(a->text.bytes, b->text.bytes, len) : 0;
    if (a->name == 0 || b->name == 0)
        return a->name == 0 && b->name != 0;
    return c ? c < 0 : a->text.len < b->text.len;
}
SV_SORT_DEFINE(sort_named, struct named, named_before)

/* The names that occur, sorted; their number of rows is in count[]. */
static struct named *used_names(const struct sv_trace *t, const uint32_t *count, uint32_t n_strings,
                                uint32_t *n)
{
    *n = 0;
    for (sv_str s = 0; s < n_strings; s++)
        *n += count[s] != 0;
    struct named *used = sv_alloc((*n + 1) * sizeof *used);
    struct named *spare = sv_alloc(SV_SORT_SPARE(*n) * sizeof *spare);
    uint32_t at = 0;
    for (sv_str s = 0; s < n_strings; s++)
        if (count[s])
            used[at++] = (struct named){sv_dict_text(t->dict, s), s};
    sort_named(used, *n, spare, NULL);
    free(spare);
    return used;
}

const struct sv_names *sv_index_names(struct sv_index *x)
{
    if (x->names)
        return x->names;
    const struct sv_trace *t = x->trace;
    const sv_str *name = t->slices.name;
    struct sv_names *names = x->names = sv_alloc(sizeof *names);
    uint32_t n_strings = names->n_strings = t->dict->n_strings;
    uint32_t *next = sv_alloc(((size_t)n_strings + 1) * sizeof *next);
    for (uint64_t row = 0; row < t->slices.n; row++)
        next[name[row]]++;
    struct named *used = used_names(t, next, n_strings, &names->n_groups);
    names->name = sv_alloc(((size_t)names->n_groups + 1) * sizeof *names->name);
    names->start = sv_alloc(((size_t)names->n_groups + 1) * sizeof *names->start);
    names->group_of = sv_alloc(((size_t)n_strings + 1) * sizeof *names->group_of);
    memset(names->group_of, 0xff, ((size_t)n_strings + 1) * sizeof *names->group_of);
    uint32_t at = 0;
    for (uint32_t g = 0; g < names->n_groups; g++) {
        sv_str s = names->name[g] = used[g].name;
        names->group_of[s] = g;
        names->start[g] = at;
        at += next[s];
        next[s] = names->start[g];
    }
    names->start[names->n_groups] = at;
    names->rows = sv_alloc_aligned((t->slices.n + 1) * sizeof *names->rows, 64);
    sv_advise_huge(names->rows, (t->slices.n + 1) * sizeof *names->rows);
    for (uint32_t row = 0; row < t->slices.n; row++)
        names->rows[next[name[row]]++] = row;
    free(next);
    free(used);
    return names;
}

bool sv_index_has_names(const struct sv_index *x)
{
    return x->names != NULL;
}

uint32_t sv_names_group(const struct sv_names *names, sv_str name)
{
    return name < names->n_strings ? names->group_of[name] : SV_NO_ROW;
}
