/* Perfetto's clocks: snapshots, conversion to the trace clock, and events that wait for a snapshot.
 *
 * A snapshot says what several clocks read at one moment. Snapshots of the same set of clocks form
 * a group, and two clocks of a group convert by the latest row at or before the time (before all
 * rows: by the first). Clocks without a common group convert over others, by the shortest way. A
 * conversion is kept in the clock with the span in which it holds, so that the usual packet costs
 * two comparisons.
 *
 * The trace clock is the primary one of the first snapshot that names it, else BOOTTIME; it stays
 * what it is after the first conversion. Events on a clock that nothing relates to it yet wait, in
 * bounded memory; when no snapshot comes, the first such clock becomes the trace clock itself, and
 * what still cannot be converted is reported. */
#include "core/perfetto/stave.h"
#include "formats/perfetto/read.h"

#include "core/base/mem.h"
#include "core/base/search.h"

#include <assert.h>
#include <stdlib.h>

#define HOPS_MAX 4

struct sv_pf_waiting {
    struct sv_pf_chunk *first, *last;
    uint64_t n;
};

static bool is_sequence_clock(uint32_t id)
{
    return id >= SV_PF_CLOCK_SEQUENCE_FIRST && id <= SV_PF_CLOCK_SEQUENCE_LAST;
}

static struct sv_pf_clock *clock_with_key(struct sv_pf *r, uint64_t key, uint32_t id)
{
    bool is_new;
    uint64_t *slot = sv_map_add(&r->clocks.by_key, key, &is_new);
    if (is_new) {
        struct sv_pf_clock *c = sv_arena_get(&r->arena, sizeof *c, _Alignof(struct sv_pf_clock));
        *c = (struct sv_pf_clock){
            .key = key, .id = id, .is_sequence = is_sequence_clock(id), .multiplier = 1};
        *slot = (uint64_t)(uintptr_t)c;
    }
    return (struct sv_pf_clock *)(uintptr_t)*slot;
}

static uint64_t machine_number(const struct sv_pf *r, const struct sv_pf_machine *m)
{
    for (size_t i = 0; i < r->n_machines; i++)
        if (r->machines[i] == m)
            return i;
    return 0;
}

static struct sv_pf_clock *machine_clock(struct sv_pf *r, const struct sv_pf_machine *m,
                                         uint32_t id)
{
    return clock_with_key(r, machine_number(r, m) << 32 | id, id);
}

struct sv_pf_clock *sv_pf_clock_at(struct sv_pf *r, const struct sv_pf_seq *seq, uint32_t id)
{
    if (!is_sequence_clock(id))
        return machine_clock(r, seq->machine, id);
    uint64_t machine = machine_number(r, seq->machine);
    return clock_with_key(r, 1ull << 63 | machine << 40 | (uint64_t)seq->id << 8 | id, id);
}

/* ---- groups of snapshots ---- */

static struct sv_pf_clock_group *group_of(struct sv_pf *r, struct sv_pf_clock *const *clocks,
                                          uint32_t n)
{
    struct sv_pf_clocks *cs = &r->clocks;
    uint64_t hash = sv_mix64(n);
    for (uint32_t i = 0; i < n; i++)
        hash = sv_mix64(hash ^ clocks[i]->key);
    bool is_new;
    uint64_t *slot = sv_map_add(&cs->group_by_hash, hash, &is_new);
    if (!is_new) {
        struct sv_pf_clock_group *g = &cs->groups[*slot - 1];
        bool is_same = g->n_clocks == n;
        for (uint32_t i = 0; is_same && i < n; i++)
            is_same = g->clocks[i] == clocks[i];
        return is_same ? g : NULL; /* equal hashes of different sets: not worth an idea */
    }
    cs->groups = sv_grow(cs->groups, &cs->cap_groups, cs->n_groups + 1, sizeof *cs->groups);
    struct sv_pf_clock_group *g = &cs->groups[cs->n_groups];
    *g = (struct sv_pf_clock_group){.n_clocks = n};
    g->clocks = sv_arena_get(&r->arena, n * sizeof(struct sv_pf_clock *), _Alignof(void *));
    uint32_t n_global = 0;
    for (uint32_t i = 0; i < n; i++)
        n_global += !clocks[i]->is_sequence;
    for (uint32_t i = 0; i < n; i++) {
        struct sv_pf_clock *c = clocks[i];
        g->clocks[i] = c;
        /* No way leads over the private clocks of a sequence; there may be thousands of them. */
        if (!c->is_sequence && n_global < 2)
            continue;
        SV_APPEND(c->groups, c->n_groups, c->cap_groups) = (uint32_t)cs->n_groups;
    }
    *slot = ++cs->n_groups;
    return g;
}

static uint32_t column_of(const struct sv_pf_clock_group *g, const struct sv_pf_clock *c)
{
    for (uint32_t i = 0; i < g->n_clocks; i++)
        if (g->clocks[i] == c)
            return i;
    assert(false); /* a clock is in its groups */
    return 0;
}

static int64_t value_at(const struct sv_pf_clock_group *g, size_t row, uint32_t column)
{
    return g->values[row * g->n_clocks + column];
}

/* A clock that jumps back gives two answers to "which moment was that"; the newest row is the best
 * guess. */
static void mark_backward(struct sv_pf *r, struct sv_pf_clock_group *g, const int64_t *values)
{
    for (uint32_t i = 0; g->n_rows > 0 && i < g->n_clocks; i++) {
        /* There are as many values as the group has clocks.
         * NOLINTNEXTLINE(clang-analyzer-core.UndefinedBinaryOperatorResult) */
        if (values[i] >= value_at(g, g->n_rows - 1, i))
            continue;
        g->clocks[i]->is_backward = true;
        if (g->clocks[i] == r->clocks.trace)
            sv_pf_damage(r, "trace clock goes back", "clock %u in a snapshot", g->clocks[i]->id);
        else
            sv_pf_note(r, "clock goes back", "clock %u in a snapshot", g->clocks[i]->id);
    }
}

static void add_row(struct sv_pf *r, struct sv_pf_clock *const *clocks, const int64_t *values,
                    uint32_t n)
{
    struct sv_pf_clock_group *g = group_of(r, clocks, n);
    if (!g)
        return;
    assert(g->n_clocks == n);
    mark_backward(r, g, values);
    g->values = sv_grow(g->values, &g->cap_values, (g->n_rows + 1) * n, sizeof *g->values);
    memcpy(g->values + g->n_rows * n, values, n * sizeof *values);
    g->n_rows++;
    /* A snapshot that relates one machine clock to clocks of a sequence concerns only that
     * sequence. */
    uint32_t n_global = 0;
    for (uint32_t i = 0; i < n; i++) {
        clocks[i]->is_cached = false;
        n_global += !clocks[i]->is_sequence;
    }
    if (n_global > 1)
        r->clocks.epoch++;
}

/* ---- conversion ---- */

/* The latest row whose value in the column is at or before ns; the first row when all are later. */
static size_t row_for(const struct sv_pf_clock_group *g, uint32_t column, int64_t ns)
{
    if (g->clocks[column]->is_backward)
        return g->n_rows - 1;
    size_t low;
    SV_SEARCH(low, middle, 0, g->n_rows, value_at(g, middle, column) <= ns);
    return low ? low - 1 : 0;
}

struct hop {
    struct sv_pf_clock *clock; /* reached */
    uint32_t group;            /* by which group of snapshots */
    uint32_t from;             /* the hop before; the first one is its own */
    uint32_t n;                /* hops so far */
};

/* Breadth first. The hops of the way to `to`, last one first, are in way[]; returns how many, 0
 * when there is no way. */
static uint32_t find_path(struct sv_pf *r, struct sv_pf_clock *from, const struct sv_pf_clock *to,
                          struct hop *way)
{
    struct hop queue[256] = {{.clock = from}};
    uint32_t mark = ++r->clocks.visit, tail = 1;
    from->visited = mark;
    for (uint32_t head = 0; head < tail; head++) {
        const struct sv_pf_clock *c = queue[head].clock;
        for (size_t i = 0; i < c->n_groups && queue[head].n < HOPS_MAX; i++) {
            const struct sv_pf_clock_group *g = &r->clocks.groups[c->groups[i]];
            for (uint32_t k = 0; k < g->n_clocks; k++) {
                struct sv_pf_clock *next = g->clocks[k];
                if (next->visited == mark || (next->is_sequence && next != to) || tail == 256)
                    continue;
                next->visited = mark;
                queue[tail++] = (struct hop){next, c->groups[i], head, queue[head].n + 1};
                if (next != to)
                    continue;
                uint32_t n = 0;
                for (uint32_t at = tail - 1; at > 0; at = queue[at].from)
                    way[n++] = queue[at];
                return n;
            }
        }
    }
    return 0;
}

/* Finds the way to the trace clock, and remembers its offset and the span in which it holds. */
static bool cache_path(struct sv_pf *r, struct sv_pf_clock *from, int64_t ns)
{
    struct hop way[HOPS_MAX];
    int64_t low = INT64_MIN, high = INT64_MAX, total = 0;
    uint32_t n = find_path(r, from, r->clocks.trace, way);
    const struct sv_pf_clock *c = from;
    for (uint32_t i = n; i > 0; c = way[--i].clock) {
        const struct sv_pf_clock_group *g = &r->clocks.groups[way[i - 1].group];
        uint32_t column = column_of(g, c);
        int64_t here, hop, edge;
        if (__builtin_add_overflow(ns, total, &here))
            return false;
        size_t row = row_for(g, column, here);
        bool is_open = c->is_backward; /* no edges: every time uses the newest row */
        if (row > 0 && !is_open &&
            !__builtin_sub_overflow(value_at(g, row, column), total, &edge) && edge > low)
            low = edge;
        if (row + 1 < g->n_rows &&
            !__builtin_sub_overflow(value_at(g, row + 1, column), total, &edge) && edge < high)
            high = edge;
        int64_t there = value_at(g, row, column_of(g, way[i - 1].clock));
        if (__builtin_sub_overflow(there, value_at(g, row, column), &hop) ||
            __builtin_add_overflow(total, hop, &total))
            return false;
    }
    from->is_cached = n > 0;
    from->epoch = r->clocks.epoch;
    from->from_ns = low;
    from->to_ns = high;
    from->offset_ns = total;
    return n > 0;
}

/* To the trace clock; false when nothing relates the two, or the result is out of range. */
static inline bool to_trace(struct sv_pf *r, struct sv_pf_clock *c, int64_t ns, int64_t *out)
{
    if (c == r->clocks.trace) {
        *out = ns;
        return true;
    }
    if (__builtin_expect(
            !c->is_cached || c->epoch != r->clocks.epoch || ns < c->from_ns || ns >= c->to_ns, 0)) {
        if (!r->clocks.trace || !c->is_known || !cache_path(r, c, ns))
            return false;
    }
    return !__builtin_add_overflow(ns, c->offset_ns, out);
}

/* ---- events that wait ---- */

static void forget_waiting(struct sv_pf *r, size_t i)
{
    struct sv_pf_clock *c = r->clocks.waiting[i];
    free(c->waiting);
    c->waiting = NULL;
    r->clocks.waiting[i] = r->clocks.waiting[--r->clocks.n_waiting];
}

static void drop_chunks(struct sv_pf_chunk *c)
{
    while (c) {
        struct sv_pf_chunk *next = c->next;
        sv_batch_fini(&c->batch);
        free(c);
        c = next;
    }
}

/* Gives the waiting events of a clock their time and lets them leave. */
static bool resolve(struct sv_pf *r, struct sv_pf_clock *c)
{
    int64_t ns;
    struct sv_pf_waiting *w = c->waiting;
    if (c->is_incremental || !to_trace(r, c, w->first->batch.events[0].ts_ns, &ns))
        return false;
    for (struct sv_pf_chunk *k = w->first; k; k = k->next) {
        for (size_t i = 0; i < k->batch.n; i++) {
            struct sv_event *e = &k->batch.events[i];
            int64_t scaled;
            if (!__builtin_mul_overflow(e->ts_ns, c->multiplier, &scaled) &&
                to_trace(r, c, scaled, &ns))
                e->ts_ns = ns;
            if (!sv_event_ends(e))
                sv_source_refuse(&r->source, r->pos);
        }
    }
    sv_pf_spill(r, w->first);
    return true;
}

static void resolve_waiting(struct sv_pf *r)
{
    for (size_t i = 0; i < r->clocks.n_waiting;) {
        if (r->clocks.waiting[i]->waiting->first && resolve(r, r->clocks.waiting[i]))
            forget_waiting(r, i);
        else
            i++;
    }
    if (r->clocks.n_waiting == 0)
        r->clocks.waiting_bytes = 0;
}

/* The trace clock may only be chosen before it was used. */
static void set_trace_clock(struct sv_pf *r, struct sv_pf_clock *c)
{
    if (r->clocks.is_fixed || r->clocks.trace == c)
        return;
    r->clocks.trace = c;
    r->clocks.epoch++;
    bool is_private = c->is_sequence || c->id == SV_PF_CLOCK_TRACE_FILE;
    r->dict->clocks.trace_clock = is_private ? SV_CLOCK_UNKNOWN : c->id;
}

/* A clock that others know, to which a private one can be converted. */
static struct sv_pf_clock *public_clock(struct sv_pf *r, struct sv_pf_clock *c)
{
    struct sv_pf_clock *best = NULL;
    for (size_t i = 0; i < c->n_groups; i++) {
        const struct sv_pf_clock_group *g = &r->clocks.groups[c->groups[i]];
        for (uint32_t k = 0; k < g->n_clocks; k++) {
            struct sv_pf_clock *x = g->clocks[k];
            bool is_better = !best || x->id == SV_CLOCK_BOOTTIME ||
                             (x->id == SV_CLOCK_MONOTONIC && best->id != SV_CLOCK_BOOTTIME);
            if (!x->is_sequence && is_better)
                best = x;
        }
    }
    return best ? best : c;
}

/* No snapshot decided on a trace clock: the one in use becomes it. */
static void adopt(struct sv_pf *r, struct sv_pf_clock *c)
{
    if (r->clocks.trace)
        return;
    set_trace_clock(r, c->is_sequence ? public_clock(r, c) : c);
    assert(r->clocks.trace);
    r->clocks.is_fixed = true;
    sv_pf_note(r, "no clock snapshot", "times are taken as those of clock %u (%s)",
               r->clocks.trace->id, sv_clock_name(r->clocks.trace->id));
}

/* Another machine whose clocks nothing relates to ours: its clock is assumed to show the same
 * time. */
static void bridge(struct sv_pf *r, struct sv_pf_clock *c)
{
    struct sv_pf_clock *trace = r->clocks.trace;
    uint64_t machine = c->is_sequence ? c->key << 1 >> 41 : c->key >> 32;
    if (!trace || trace->is_sequence || machine == 0 || machine >= r->n_machines)
        return;
    struct hop way[HOPS_MAX];
    struct sv_pf_clock *twin = machine_clock(r, r->machines[machine], trace->id);
    if (twin == trace || (twin->is_known && find_path(r, twin, trace, way) > 0))
        return;
    struct sv_pf_clock *pair[] = {twin, trace};
    twin->is_known = trace->is_known = true;
    add_row(r, pair, (int64_t[]){0, 0}, 2);
    c->is_known = c->is_known || c == twin;
    sv_pf_note(r, "machine without clock synchronisation",
               "machine %u: its clocks are assumed to show the same time",
               r->machines[machine]->id);
}

/* Nothing more to wait for: the trace clock is decided, and what cannot be converted to it is given
 * up. */
static void give_up_waiting(struct sv_pf *r)
{
    if (r->clocks.n_waiting > 0)
        adopt(r, r->clocks.waiting[0]);
    for (size_t i = 0; i < r->clocks.n_waiting; i++)
        bridge(r, r->clocks.waiting[i]);
    resolve_waiting(r);
    while (r->clocks.n_waiting > 0) {
        struct sv_pf_clock *c = r->clocks.waiting[0];
        sv_report_add(r->report, SV_DAMAGE, "events on a clock without snapshot", c->waiting->n,
                      r->pos, "clock %u: no snapshot relates it to the trace clock%s", c->id,
                      c->is_incremental ? " before these events" : "");
        drop_chunks(c->waiting->first);
        forget_waiting(r, 0);
    }
    r->clocks.waiting_bytes = 0;
}

static struct sv_pf_chunk *add_waiting_chunk(struct sv_pf *r, struct sv_pf_waiting *w)
{
    struct sv_pf_chunk *c = sv_alloc(sizeof *c);
    sv_batch_init(&c->batch);
    sv_arena_init(&c->batch.arena, (size_t)1 << 16);
    if (w->last)
        w->last->next = c;
    else
        w->first = c;
    w->last = c;
    r->clocks.waiting_bytes += sizeof *c;
    return c;
}

/* The events of this packet will wait for clock c. */
static bool wait_for(struct sv_pf *r, struct sv_pf_clock *c)
{
    struct sv_pf_clocks *cs = &r->clocks;
    if (!c->waiting) {
        if (cs->n_waiting == sizeof cs->waiting / sizeof *cs->waiting)
            return false;
        c->waiting = sv_alloc(sizeof *c->waiting);
        cs->waiting[cs->n_waiting++] = c;
    }
    struct sv_pf_waiting *w = c->waiting;
    struct sv_pf_chunk *k = w->last && w->last->batch.n < SV_BATCH ? w->last : NULL;
    if (!k)
        k = add_waiting_chunk(r, w);
    w->n++;
    r->b = &k->batch;
    r->copy_texts = true;
    return true;
}

void sv_pf_clocks_more(struct sv_pf *r)
{
    for (size_t i = 0; i < r->clocks.n_waiting; i++) {
        struct sv_pf_waiting *w = r->clocks.waiting[i]->waiting;
        if (w->last && &w->last->batch == r->b) {
            r->b = &add_waiting_chunk(r, w)->batch;
            return;
        }
    }
    assert(false); /* a waiting event has a list */
}

static size_t waiting_bytes(const struct sv_pf *r)
{
    size_t n = r->clocks.waiting_bytes;
    for (size_t i = 0; i < r->clocks.n_waiting; i++) {
        const struct sv_pf_waiting *w = r->clocks.waiting[i]->waiting;
        n += w->last ? w->last->batch.arena.used_bytes : 0;
    }
    return n;
}

/* ---- the time of a packet ---- */

static bool raw_ns(struct sv_pf *r, struct sv_pf_clock *c, uint64_t timestamp, int64_t *ns)
{
    int64_t value = (int64_t)timestamp, origin_ns = r->clocks.origin_ns;
    if (!c->is_incremental && __builtin_add_overflow(timestamp, origin_ns, &value)) {
        sv_pf_damage(r, "timestamp out of range", "%llu", (unsigned long long)timestamp);
        return false;
    }
    if (__builtin_expect(c->multiplier != 1, 0) &&
        __builtin_mul_overflow(value, c->multiplier, &value)) {
        sv_pf_damage(r, "timestamp out of range", "%llu × %lld", (unsigned long long)timestamp,
                     (long long)c->multiplier);
        return false;
    }
    if (c->is_incremental) {
        /* Files with an origin hold the whole range of times, so a step may be that long; in others
         * it goes back. */
        bool is_long = origin_ns && timestamp > INT64_MAX;
        if (is_long ? __builtin_add_overflow(c->last_ns, timestamp, &value)
                    : __builtin_add_overflow(c->last_ns, value, &value)) {
            sv_pf_damage(r, "timestamp out of range", "the sum of increments overflows");
            return false;
        }
        c->last_ns = value;
    }
    *ns = value;
    return true;
}

static struct sv_pf_clock *clock_of(struct sv_pf *r, const struct sv_pf_packet *k)
{
    struct sv_pf_seq *seq = r->seq;
    if (k->clock_id) {
        if (!seq->named_clock || seq->named_clock->id != k->clock_id)
            seq->named_clock = sv_pf_clock_at(r, seq, k->clock_id);
        return seq->named_clock;
    }
    if (seq->default_clock)
        return seq->default_clock;
    if (!r->clocks.fallback || seq->machine == r->machines[0])
        return r->clocks.fallback;
    return machine_clock(r, seq->machine, r->clocks.fallback->id);
}

static void note_time(struct sv_pf *r)
{
    if (!r->has_latest || r->ts_ns > r->latest_ns)
        r->latest_ns = r->ts_ns;
    r->has_latest = true;
}

/* The clock of this packet cannot be converted (yet). */
static bool time_later(struct sv_pf *r, struct sv_pf_clock *c, uint64_t timestamp, int64_t ns)
{
    if (!r->clocks.trace && c->id == SV_CLOCK_BOOTTIME) { /* what a snapshot would choose anyway */
        adopt(r, c);
        r->ts_ns = ns;
        note_time(r);
        return true;
    }
    if (waiting_bytes(r) > SV_PF_WAITING_MAX)
        give_up_waiting(r);
    if (to_trace(r, c, ns, &r->ts_ns)) {
        note_time(r);
        return true;
    }
    if (c->is_incremental || !wait_for(r, c)) {
        sv_pf_damage(r, "events on a clock without snapshot", "clock %u", c->id);
        return false;
    }
    /* Raw: the multiplier is not known before the snapshot. Stave has none. */
    r->ts_ns = r->clocks.origin_ns ? ns : (int64_t)timestamp;
    return true;
}

bool sv_pf_time(struct sv_pf *r, const struct sv_pf_packet *k)
{
    struct sv_pf_clock *c = clock_of(r, k);
    int64_t ns;
    if (__builtin_expect(!c, 0)) {
        if (k->timestamp > INT64_MAX) {
            sv_pf_damage(r, "timestamp out of range", "%llu", (unsigned long long)k->timestamp);
            return false;
        }
        r->ts_ns = (int64_t)k->timestamp;
        note_time(r);
        return true;
    }
    if (__builtin_expect(!raw_ns(r, c, k->timestamp, &ns), 0))
        return false;
    if (__builtin_expect(!to_trace(r, c, ns, &r->ts_ns), 0))
        return time_later(r, c, k->timestamp, ns);
    r->clocks.is_fixed = true;
    note_time(r);
    return true;
}

int64_t sv_pf_time_of(struct sv_pf *r, uint32_t clock, int64_t ns)
{
    int64_t out;
    struct sv_pf_clock *c = machine_clock(r, r->seq->machine, clock);
    return to_trace(r, c, ns, &out) ? out : ns;
}

/* ---- snapshots ---- */

struct reading {
    uint32_t id;
    uint64_t timestamp, multiplier;
    int64_t ns; /* both, and the origin of the file */
    bool is_incremental;
};

struct readings {
    struct reading at[SV_PF_CLOCKS_MAX];
    uint32_t n;
    uint32_t primary;
    uint32_t alias;         /* what the file's own time line really is; 0: unknown */
    int64_t uncertainty_ns; /* -1: unknown */
    uint64_t wall_state;
    int64_t wall_error_ns;
    int64_t origin_ns;
};

static struct reading read_clock(struct sv_pb w)
{
    struct reading x = {.multiplier = 1};
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        switch (sv_pf_tag(&f)) {
        case SV_PF_V(SV_PF_CLOCK_ID): x.id = (uint32_t)f.u; break;
        case SV_PF_V(SV_PF_CLOCK_TIMESTAMP): x.timestamp = f.u; break;
        case SV_PF_V(SV_PF_CLOCK_IS_INCREMENTAL): x.is_incremental = f.u != 0; break;
        case SV_PF_V(SV_PF_CLOCK_MULTIPLIER_NS): x.multiplier = f.u ? f.u : 1; break;
        default: break;
        }
    }
    return x;
}

/* What the snapshot says beside its clocks; the rest of its fields is needed to read those. */
static void read_snapshot_facts(struct sv_pb w, struct readings *s)
{
    *s = (struct readings){.uncertainty_ns = -1};
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        switch (sv_pf_tag(&f)) {
        case SV_PF_V(SV_PF_SNAPSHOT_PRIMARY): s->primary = (uint32_t)f.u; break;
        case SV_PF_V(SV_PF_STAVE_CLOCK):
            s->alias = is_sequence_clock((uint32_t)f.u) ? 0 : (uint32_t)f.u;
            break;
        case SV_PF_V(SV_PF_STAVE): s->uncertainty_ns = (int64_t)f.u; break;
        case SV_PF_V(SV_PF_STAVE_WALL): s->wall_state = f.u; break;
        case SV_PF_V(SV_PF_STAVE_WALL_ERROR): s->wall_error_ns = (int64_t)f.u; break;
        case SV_PF_V(SV_PF_STAVE_ORIGIN): s->origin_ns = (int64_t)f.u; break;
        default: break;
        }
    }
}

/* The reading in nanoseconds; false: malformed or out of range. */
static bool reading_ns(const struct readings *s, struct reading *x)
{
    bool has_origin = x->id == s->primary || x->id == s->alias || is_sequence_clock(x->id);
    uint64_t product;
    return x->multiplier <= INT64_MAX && !(x->is_incremental && !is_sequence_clock(x->id)) &&
           !__builtin_mul_overflow(x->timestamp, x->multiplier, &product) &&
           !__builtin_add_overflow(product, has_origin ? s->origin_ns : 0, &x->ns);
}

static void read_snapshot(struct sv_pf *r, struct sv_pf_blob data, struct readings *s)
{
    struct sv_pb w = sv_pf_wire(data);
    read_snapshot_facts(w, s);
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        if (sv_pf_tag(&f) != SV_PF_B(SV_PF_SNAPSHOT_CLOCKS))
            continue;
        struct reading x = read_clock(sv_pb_sub(&f));
        bool is_twice = false;
        for (uint32_t i = 0; i < s->n; i++)
            is_twice = is_twice || s->at[i].id == x.id;
        if (is_twice || s->n == SV_PF_CLOCKS_MAX || !reading_ns(s, &x))
            sv_pf_damage(r, "invalid clock in a snapshot", "clock %u", x.id);
        else
            s->at[s->n++] = x;
    }
    if (w.bad)
        sv_pf_damage(r, "malformed clock snapshot", "its last part is damaged");
}

/* For sinks and merge: what clocks that others know showed at this moment. */
static void keep_snapshot(struct sv_pf *r, const struct readings *s)
{
    struct sv_snapshot kept = {.uncertainty_ns = s->uncertainty_ns};
    sv_snapshot_set_wall(&kept, s->wall_state, s->wall_error_ns);
    for (uint32_t i = 0; i < s->n && kept.n < SV_READINGS_MAX; i++) {
        const struct reading *x = &s->at[i];
        if (!is_sequence_clock(x->id) && !(s->alias && x->id == SV_PF_CLOCK_TRACE_FILE))
            kept.readings[kept.n++] = (struct sv_reading){
                x->id == SV_PF_CLOCK_TRACE_FILE ? SV_CLOCK_UNKNOWN : x->id, x->ns};
    }
    if (kept.n > 1 && r->seq->machine == r->machines[0])
        sv_clocks_add(&r->dict->clocks, &kept);
}

static void apply_properties(struct sv_pf *r, struct sv_pf_clock *c, const struct reading *x)
{
    if (c->is_known &&
        (c->multiplier != (int64_t)x->multiplier || c->is_incremental != x->is_incremental))
        sv_pf_damage(r, "clock with changed properties", "clock %u: the new ones are used", x->id);
    c->is_known = true;
    c->multiplier = (int64_t)x->multiplier;
    c->is_incremental = x->is_incremental;
    c->last_ns = x->ns;
}

static void choose_clocks(struct sv_pf *r, const struct readings *s)
{
    uint32_t id = s->primary;
    bool has_private = false;
    for (uint32_t i = 0; i < s->n; i++)
        has_private = has_private || s->at[i].id == SV_PF_CLOCK_TRACE_FILE;
    for (uint32_t i = 0; i < s->n && !id && !has_private; i++)
        if (s->at[i].id == SV_CLOCK_BOOTTIME)
            id = SV_CLOCK_BOOTTIME;
    if (!id || is_sequence_clock(id) || r->seq->machine != r->machines[0])
        return;
    r->clocks.fallback = machine_clock(r, r->seq->machine, id);
    set_trace_clock(r, r->clocks.fallback);
    if (s->alias && id == SV_PF_CLOCK_TRACE_FILE && r->clocks.trace == r->clocks.fallback)
        r->dict->clocks.trace_clock = s->alias;
}

void sv_pf_clock_snapshot(struct sv_pf *r, struct sv_pf_blob data)
{
    struct readings s;
    struct sv_pf_clock *clocks[SV_PF_CLOCKS_MAX];
    int64_t values[SV_PF_CLOCKS_MAX] = {0};
    read_snapshot(r, data, &s);
    r->clocks.origin_ns = s.origin_ns; /* all snapshots of a window have it */
    if (s.n == 0)
        return;
    choose_clocks(r, &s);
    for (uint32_t i = 0; i < s.n; i++) {
        clocks[i] = sv_pf_clock_at(r, r->seq, s.at[i].id);
        apply_properties(r, clocks[i], &s.at[i]);
        values[i] = s.at[i].ns;
    }
    add_row(r, clocks, values, s.n);
    keep_snapshot(r, &s);
    if (r->clocks.n_waiting > 0 && r->clocks.trace)
        resolve_waiting(r);
}

/* ---- other machines ---- */

struct round {
    uint64_t host[64], client[64]; /* by built-in clock; 0: not read */
};

static void read_round(struct sv_pb w, struct round *x)
{
    struct sv_pb_field f, g;
    *x = (struct round){0};
    while (sv_pb_next(&w, &f)) {
        if (f.id != SV_PF_SYNCED_CLIENT && f.id != SV_PF_SYNCED_HOST)
            continue;
        uint64_t *at = f.id == SV_PF_SYNCED_HOST ? x->host : x->client;
        struct sv_pb snapshot = sv_pb_sub(&f);
        while (sv_pb_next(&snapshot, &g)) {
            if (sv_pf_tag(&g) != SV_PF_B(SV_PF_SNAPSHOT_CLOCKS))
                continue;
            struct reading c = read_clock(sv_pb_sub(&g));
            if (c.id < 64 && c.timestamp < (uint64_t)1 << 62)
                at[c.id] = c.timestamp;
        }
    }
}

/* Adds what two rounds (client, host, client, host) say about the distance of the two machines. */
static void add_offsets(const struct round *a, const struct round *b, int64_t *sum, uint32_t *n)
{
    const uint64_t interval_ns = 30ull *
                                 1000000000; /* rounds further apart do not belong together */
    if (b->client[SV_CLOCK_BOOTTIME] - a->client[SV_CLOCK_BOOTTIME] >= interval_ns)
        return;
    for (uint32_t i = 0; i < 64; i++) {
        int64_t t1h = (int64_t)a->host[i], t1c = (int64_t)a->client[i];
        int64_t t2h = (int64_t)b->host[i], t2c = (int64_t)b->client[i];
        if (!t1h || !t1c || !t2h || !t2c || n[i] > 1000)
            continue;
        int64_t both = (t1c + t2c) / 2 - t1h + (t2c - (t1h + t2h) / 2);
        if (!__builtin_add_overflow(sum[i], both, &sum[i]))
            n[i] += 2;
    }
}

void sv_pf_remote_clock_sync(struct sv_pf *r, struct sv_pf_blob data)
{
    struct sv_pb w = sv_pf_wire(data);
    struct round rounds[2];
    int64_t sum[64] = {0};
    uint32_t n[64] = {0}, n_rounds = 0;
    if (r->seq->machine == r->machines[0])
        return;
    for (struct sv_pb_field f; sv_pb_next(&w, &f);) {
        if (sv_pf_tag(&f) != SV_PF_B(SV_PF_REMOTE_SYNCED))
            continue;
        read_round(sv_pb_sub(&f), &rounds[n_rounds % 2]);
        if (n_rounds++ > 0)
            add_offsets(&rounds[n_rounds % 2], &rounds[(n_rounds + 1) % 2], sum, n);
    }
    for (uint32_t i = 0; i < 64 && n_rounds > 1; i++) {
        if (n[i] == 0)
            continue;
        int64_t host = (int64_t)rounds[(n_rounds + 1) % 2].host[i];
        struct sv_pf_clock *pair[] = {machine_clock(r, r->machines[0], i),
                                      machine_clock(r, r->seq->machine, i)};
        pair[0]->is_known = pair[1]->is_known = true;
        add_row(r, pair, (int64_t[]){host, host + sum[i] / n[i]}, 2);
    }
    if (r->clocks.n_waiting > 0 && r->clocks.trace)
        resolve_waiting(r);
}

/* ---- the end ---- */

void sv_pf_clocks_finish(struct sv_pf *r)
{
    give_up_waiting(r);
}

void sv_pf_clocks_free(struct sv_pf *r)
{
    struct sv_pf_clocks *cs = &r->clocks;
    while (cs->n_waiting > 0) {
        drop_chunks(cs->waiting[0]->waiting->first);
        forget_waiting(r, 0);
    }
    for (size_t i = 0; i < cs->by_key.cap; i++)
        if (cs->by_key.used[i])
            free(((struct sv_pf_clock *)(uintptr_t)cs->by_key.slots[i].value)->groups);
    for (size_t i = 0; i < cs->n_groups; i++)
        free(cs->groups[i].values);
    free(cs->groups);
    sv_map_fini(&cs->by_key);
    sv_map_fini(&cs->group_by_hash);
}
