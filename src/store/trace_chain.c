/* The store, finish, last step: carriers of one flow number become arrows.
 *
 * All carriers (arguments of slices, bound points) are linked by number, sorted by time and
 * connected, see struct sv_flows for the rules. Carriers of equal number and time are taken as
 * begin, pass, end, then by row: the order in which they came would not survive leaving the store.
 * Most flows have two carriers, one soon after the other, so linking through a table of numbers is
 * cheaper than sorting. */
#include "core/base/search.h"
#include "store/trace_impl.h"

#include "core/base/sort.h"

#define AHEAD 8u /* carriers whose slots are on their way from memory */

struct carrier {
    uint64_t id;
    int64_t ts_ns;
    uint32_t row;
    uint32_t type;
};

_Static_assert(SV_ARG_FLOW_BEGIN < SV_ARG_FLOW && SV_ARG_FLOW < SV_ARG_FLOW_END,
               "types sort as begin, pass, end");

static bool carrier_before(const struct carrier *a, const struct carrier *b, const void *unused)
{
    (void)unused;
    if (a->ts_ns != b->ts_ns)
        return a->ts_ns < b->ts_ns;
    return a->type != b->type ? a->type < b->type : a->row < b->row;
}
SV_SORT_DEFINE(sort_carriers, struct carrier, carrier_before)

/* ---- carriers by number ---- */

/* Carriers are counted through: those of slices, then the points. */
struct linker {
    const struct sv_trace *trace;
    size_t n;
    uint32_t *slots; /* 1 + the last carrier of a number, open addressing; 0: free */
    size_t mask;
    uint32_t *next;  /* 1 + the next carrier of the same number; 0: none */
    uint64_t *later; /* a bit for each carrier that is not the first of its number */
};

static inline uint64_t number_of(const struct linker *l, size_t i)
{
    const struct sv_carriers *c = &l->trace->impl->carrier;
    return i < c->n ? c->id[i] : l->trace->points.id[i - c->n];
}

static inline uint32_t row_of(const struct linker *l, size_t i)
{
    const struct sv_carriers *c = &l->trace->impl->carrier;
    return i < c->n ? c->row[i] : l->trace->points.row[i - c->n];
}

static struct carrier carrier_at(const struct linker *l, size_t i)
{
    const struct sv_trace *t = l->trace;
    const struct sv_carriers *c = &t->impl->carrier;
    if (i >= c->n) {
        size_t point = i - c->n;
        return (struct carrier){.id = t->points.id[point],
                                .ts_ns = t->points.ts_ns[point],
                                .row = t->points.row[point],
                                .type = t->points.type[point]};
    }
    uint32_t row = c->row[i];
    bool at_end = c->how[i] == SV_BY_END && t->tracks[t->slices.track[row]].has_edges;
    return (struct carrier){.id = c->id[i],
                            .ts_ns = at_end ? sv_row_end(&t->slices, row) : t->slices.ts_ns[row],
                            .row = row,
                            .type = c->type[i]};
}

/* Numbers come from files: where the table lies, which nobody knows beforehand, is part of their
 * places. */
static size_t place_of(const struct linker *l, uint64_t id)
{
    return sv_mix64(id ^ (uintptr_t)l->slots) & l->mask;
}

/* Links each carrier to the one of the same number before it. */
static void link_all(struct linker *l)
{
    for (size_t i = 0; i < l->n; i++) {
        if (i + AHEAD < l->n)
            __builtin_prefetch(&l->slots[place_of(l, number_of(l, i + AHEAD))], 1);
        if (row_of(l, i) == SV_NO_ROW)
            continue;
        uint64_t id = number_of(l, i);
        size_t at = place_of(l, id);
        while (l->slots[at] && number_of(l, l->slots[at] - 1) != id)
            at = (at + 1) & l->mask;
        if (l->slots[at]) {
            l->next[l->slots[at] - 1] = (uint32_t)i + 1;
            l->later[i / 64] |= (uint64_t)1 << i % 64;
        }
        l->slots[at] = (uint32_t)i + 1;
    }
}

/* ---- arrows ---- */

static void add_arrow(struct sv_trace *t, uint64_t id, uint32_t old, uint32_t new)
{
    struct sv_flows *f = &t->flows;
    bool forward = t->slices.ts_ns[old] <= t->slices.ts_ns[new];
    f->id[f->n] = id;
    f->from[f->n] = forward ? old : new;
    f->to[f->n++] = forward ? new : old;
}

/* Carriers of one number, in order. There are fewer arrows than carriers, so the table has
 * space. */
static void connect(struct sv_trace *t, const struct carrier *c, size_t n)
{
    uint32_t origin = SV_NO_ROW;
    bool has_begun = false;
    for (size_t i = 0; i < n; i++) {
        if (c[i].type == SV_ARG_FLOW_BEGIN) {
            origin = c[i].row;
            has_begun = true;
            continue;
        }
        if (origin != SV_NO_ROW)
            add_arrow(t, c[i].id, origin, c[i].row);
        if (c[i].type == SV_ARG_FLOW) {
            has_begun = origin == SV_NO_ROW ? false : has_begun;
            origin = c[i].row;
        } else if (!has_begun) {
            origin = SV_NO_ROW;
        }
    }
}

/* ---- the table of flows ---- */

struct arrow {
    uint64_t id;
    uint32_t from, to;
};

static bool arrow_before(const struct arrow *a, const struct arrow *b, const void *unused)
{
    (void)unused;
    if (a->from != b->from)
        return a->from < b->from;
    return a->to != b->to ? a->to < b->to : a->id < b->id;
}
SV_SORT_DEFINE(sort_arrows, struct arrow, arrow_before)

/* Flows are sorted by (from, to, id), so a stable sort by `to` completes the order. */
static bool arrives_before(const uint32_t *a, const uint32_t *b, const void *to)
{
    return ((const uint32_t *)to)[*a] < ((const uint32_t *)to)[*b];
}
SV_SORT_DEFINE(sort_arriving, uint32_t, arrives_before)

static void sort_flows(struct sv_trace *t, struct arrow *scratch)
{
    struct sv_flows *f = &t->flows;
    for (uint64_t i = 0; i < f->n; i++)
        scratch[i] = (struct arrow){.id = f->id[i], .from = f->from[i], .to = f->to[i]};
    sort_arrows(scratch, f->n, scratch + f->n, NULL);
    for (uint64_t i = 0; i < f->n; i++) {
        f->id[i] = scratch[i].id;
        f->from[i] = scratch[i].from;
        f->to[i] = scratch[i].to;
        f->by_to[i] = (uint32_t)i;
    }
    sort_arriving(f->by_to, f->n, (uint32_t *)scratch, f->to);
}

/* The carriers of each number in order of time, connected; numbers in the order of their first
 * carrier. */
static bool connect_all(struct sv_trace *t, const struct linker *l)
{
    struct sv_block scratch = {0};
    for (size_t i = 0; i < l->n; i++) {
        if (row_of(l, i) == SV_NO_ROW || l->later[i / 64] >> i % 64 & 1)
            continue;
        size_t n = 0;
        for (size_t k = i + 1; k; k = l->next[k - 1]) {
            if (!sv_block_reserve(&scratch, 2 * (n + 1) * sizeof(struct carrier)))
                return false;
            ((struct carrier *)scratch.at)[n++] = carrier_at(l, k - 1);
        }
        struct carrier *c = scratch.at;
        if (n > 1)
            sort_carriers(c, n, c + n, NULL);
        connect(t, c, n);
    }
    sv_block_fini(&scratch);
    return true;
}

static bool make_arrows(struct sv_trace *t, size_t n)
{
    struct sv_block slots = {0}, links = {0}, arrows = {0};
    struct linker l = {.trace = t, .n = n, .mask = 1};
    while (l.mask < n + n / 4)
        l.mask = l.mask * 2 + 1;
    bool ok = sv_block_reserve(&slots, (l.mask + 1) * sizeof *l.slots) &&
              sv_block_reserve(&links, (n + 63) / 64 * sizeof *l.later + n * sizeof *l.next) &&
              sv_table_reserve(&t->impl->flows, n);
    if (ok) {
        l.slots = slots.at;
        l.later = links.at;
        l.next = (uint32_t *)(l.later + (n + 63) / 64);
        link_all(&l);
        ok = connect_all(t, &l);
    }
    sv_block_fini(&slots);
    sv_block_fini(&links);
    n = (size_t)t->flows.n;
    ok = ok && sv_block_reserve(&arrows, (n + SV_SORT_SPARE(n)) * sizeof(struct arrow));
    if (ok)
        sort_flows(t, arrows.at);
    sv_block_fini(&arrows);
    return ok;
}

int sv_trace_chain(struct sv_trace *t, struct sv_err *err)
{
    size_t n = (size_t)(t->impl->carrier.n + t->points.n);
    if (n == 0)
        return 0;
    if (!make_arrows(t, n))
        return sv_trace_no_memory(t, err);
    sv_table_trim(&t->impl->flows, t->flows.n);
    return 0;
}

/* ---- questions ---- */

/* Where `row` begins in a column of n ascending rows, looked at through `through` if that is
 * given. */
static uint64_t first_at(const uint32_t *rows, const uint32_t *through, uint64_t n, uint64_t row)
{
    uint64_t from;
    SV_SEARCH(from, mid, 0, n, rows[through ? through[mid] : mid] < row);
    return from;
}

uint64_t sv_trace_flows_out(const struct sv_trace *t, uint32_t row, uint64_t *first)
{
    const struct sv_flows *f = &t->flows;
    *first = first_at(f->from, NULL, f->n, row);
    return first_at(f->from, NULL, f->n, (uint64_t)row + 1) - *first;
}

uint64_t sv_trace_flows_in(const struct sv_trace *t, uint32_t row, uint64_t *first)
{
    const struct sv_flows *f = &t->flows;
    *first = first_at(f->to, f->by_to, f->n, row);
    return first_at(f->to, f->by_to, f->n, (uint64_t)row + 1) - *first;
}
