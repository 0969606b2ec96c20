/* The choice of a common clock and the conversions to it. Called by merge once all inputs have been
 * read, since snapshots may be anywhere in a file.
 *
 * A clock is reached by an input when it is the input's own, or when a snapshot of its machine has
 * both. Among the clocks that all inputs reach, the one wins that most of them use already; ties go
 * to the steadier clock.
 *
 * A cluster's run has thousands of inputs with hundreds of snapshots each, so what a machine's
 * snapshots say is gathered once for each machine. */
#include "store/relate.h"
#include "core/base/buf.h"
#include "core/base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The steadier first. */
static const uint32_t candidates[] = {SV_CLOCK_BOOTTIME, SV_CLOCK_MONOTONIC, SV_CLOCK_MONOTONIC_RAW,
                                      SV_CLOCK_REALTIME};
#define N_CANDIDATES (sizeof candidates / sizeof *candidates)

enum { CLOCKS = 64 }; /* Perfetto's own; those above belong to one sequence of one file */
#define POINTS_MAX ((size_t)4096) /* of one conversion */

/* What the inputs of one machine say together. */
struct machine {
    uint64_t both[CLOCKS]; /* by clock: which others are in the same snapshot, as bits */
    size_t first, n;       /* its inputs in `order` */
    struct sv_shift made[N_CANDIDATES]; /* by the clock it comes from: points of the chosen one */
};

struct relate {
    const struct sv_relate_input *inputs;
    size_t n;
    struct machine *machines;
    size_t n_machines;
    size_t *order; /* inputs by machine */
};

/* ---- conversion ---- */

static int64_t clamp_sub(int64_t a, int64_t b)
{
    int64_t difference;
    if (!__builtin_sub_overflow(a, b, &difference))
        return difference;
    return b < 0 ? INT64_MAX : INT64_MIN;
}

__extension__ typedef __int128 wide;

static wide between(const struct sv_clock_point *p, int64_t ns)
{
    wide run = (wide)p[1].from_ns - p[0].from_ns, rise = (wide)p[1].to_ns - p[0].to_ns;
    return p[0].to_ns + ((wide)ns - p[0].from_ns) * rise / run;
}

bool sv_shift_apply(struct sv_shift *s, int64_t ns, int64_t *out)
{
    const struct sv_clock_point *p = s->points;
    if (s->n == 0)
        return !__builtin_add_overflow(ns, s->offset_ns, out);
    while (s->at > 0 && ns < p[s->at].from_ns)
        s->at--;
    while (s->at + 1 < s->n && ns >= p[s->at + 1].from_ns)
        s->at++;
    bool is_outside = ns < p[0].from_ns || s->at + 1 == s->n; /* there at the clock's own pace */
    wide to = is_outside ? (wide)ns - p[s->at].from_ns + p[s->at].to_ns : between(p + s->at, ns);
    to += s->offset_ns;
    *out = (int64_t)to;
    return to >= INT64_MIN && to <= INT64_MAX;
}

void sv_shift_fini(struct sv_shift *s)
{
    free(s->points);
    *s = (struct sv_shift){0};
}

/* ---- what the machines say ---- */

static void learn_snapshot(struct machine *m, const struct sv_snapshot *s)
{
    uint64_t all = 0;
    for (uint32_t i = 0; i < s->n; i++)
        if (s->readings[i].clock < CLOCKS)
            all |= (uint64_t)1 << s->readings[i].clock;
    for (uint32_t i = 0; i < s->n; i++)
        if (s->readings[i].clock < CLOCKS)
            m->both[s->readings[i].clock] |= all;
}

static void gather(struct relate *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->inputs[i].machine >= r->n_machines)
            r->n_machines = (size_t)r->inputs[i].machine + 1;
    r->machines = sv_alloc(r->n_machines * sizeof *r->machines);
    r->order = sv_alloc(r->n * sizeof *r->order);
    for (size_t i = 0; i < r->n; i++) {
        const struct sv_clocks *c = r->inputs[i].clocks;
        struct machine *m = &r->machines[r->inputs[i].machine];
        m->n++;
        for (size_t s = 0; s < c->n; s++)
            learn_snapshot(m, &c->snapshots[s]);
    }
    for (size_t k = 1; k < r->n_machines; k++)
        r->machines[k].first = r->machines[k - 1].first + r->machines[k - 1].n;
    for (size_t k = 0; k < r->n_machines; k++)
        r->machines[k].n = 0;
    for (size_t i = 0; i < r->n; i++) {
        struct machine *m = &r->machines[r->inputs[i].machine];
        r->order[m->first + m->n++] = i;
    }
}

static void let_go(struct relate *r)
{
    for (size_t k = 0; k < r->n_machines; k++)
        for (size_t c = 0; c < N_CANDIDATES; c++)
            sv_shift_fini(&r->machines[k].made[c]);
    free(r->machines);
    free(r->order);
}

/* ---- who reaches what ---- */

static bool has_both(const struct sv_clocks *c, uint32_t from, uint32_t to)
{
    int64_t ns;
    for (size_t s = 0; s < c->n; s++)
        if (sv_snapshot_get(&c->snapshots[s], from, &ns) &&
            sv_snapshot_get(&c->snapshots[s], to, &ns))
            return true;
    return false;
}

/* A clock that only its own file knows: snapshots of others do not speak about it. */
static bool is_private(uint32_t clock)
{
    return clock == SV_CLOCK_UNKNOWN || clock >= CLOCKS;
}

static bool reaches(const struct relate *r, size_t i, uint32_t clock)
{
    const struct sv_relate_input *in = &r->inputs[i];
    uint32_t from = in->clocks->trace_clock;
    if (from == clock)
        return true;
    if (clock == SV_CLOCK_UNKNOWN)
        return false;
    if (is_private(from) || clock >= CLOCKS)
        return has_both(in->clocks, from, clock);
    return r->machines[in->machine].both[from] >> clock & 1;
}

/* A clock of one machine means nothing on another. */
static bool is_shared(uint32_t clock)
{
    return clock == SV_CLOCK_REALTIME;
}

struct choice {
    uint32_t clock, machine;
    size_t related, native; /* inputs that reach it, that use it already */
    size_t needed;          /* of those that reach it: without an offset */
    bool is_complete;       /* all inputs without an offset reach it */
};

static void rate_machine(const struct relate *r, const struct machine *m, struct choice *c)
{
    for (size_t k = 0; k < m->n; k++) {
        size_t i = r->order[m->first + k];
        if (!reaches(r, i, c->clock))
            continue;
        c->related++;
        c->native += r->inputs[i].clocks->trace_clock == c->clock;
        c->needed += !r->inputs[i].has_offset;
    }
}

static struct choice rate(const struct relate *r, uint32_t clock, uint32_t machine, size_t without)
{
    struct choice c = {.clock = clock, .machine = machine};
    if (!is_shared(clock))
        rate_machine(r, &r->machines[machine], &c);
    for (size_t k = 0; is_shared(clock) && k < r->n_machines; k++)
        rate_machine(r, &r->machines[k], &c);
    c.is_complete = c.needed == without;
    return c;
}

static size_t count_without_offset(const struct relate *r)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n; i++)
        n += !r->inputs[i].has_offset;
    return n;
}

static bool is_better(const struct choice *a, const struct choice *b)
{
    if (a->is_complete != b->is_complete)
        return a->is_complete;
    if (a->related != b->related)
        return a->related > b->related;
    return a->native > b->native;
}

/* Each machine's clocks are tried in the order of the machines' first inputs; the one that all
 * share is tried once. */
static struct choice choose(const struct relate *r)
{
    struct choice best = {0};
    size_t without = count_without_offset(r);
    bool has_tried_shared = false;
    for (size_t i = 0; i < r->n; i++) {
        uint32_t machine = r->inputs[i].machine;
        if (r->order[r->machines[machine].first] != i)
            continue;
        for (size_t c = 0; c < N_CANDIDATES; c++) {
            if (is_shared(candidates[c]) && has_tried_shared)
                continue;
            has_tried_shared |= is_shared(candidates[c]);
            struct choice one = rate(r, candidates[c], machine, without);
            if (is_better(&one, &best))
                best = one;
        }
    }
    return best;
}

/* When all inputs but one are placed by hand, that one is the measure, whatever its clock. */
static bool find_reference(const struct relate *r, size_t *reference)
{
    size_t without = 0;
    *reference = 0;
    for (size_t i = 0; i < r->n; i++) {
        if (r->inputs[i].has_offset)
            continue;
        *reference = i;
        without++;
    }
    return without <= 1;
}

/* ---- building shifts ---- */

static int compare_points(const void *a, const void *b)
{
    const struct sv_clock_point *x = a, *y = b;
    if (x->from_ns != y->from_ns)
        return x->from_ns < y->from_ns ? -1 : 1;
    return x->to_ns < y->to_ns ? -1 : x->to_ns > y->to_ns;
}

static void collect_from(const struct sv_clocks *c, uint32_t from, uint32_t to, struct sv_shift *s,
                         size_t *cap)
{
    for (size_t j = 0; j < c->n; j++) {
        struct sv_clock_point p;
        const struct sv_snapshot *shot = &c->snapshots[j];
        if (!sv_snapshot_get(shot, from, &p.from_ns) || !sv_snapshot_get(shot, to, &p.to_ns))
            continue;
        s->points = sv_grow(s->points, cap, s->n + 1, sizeof *s->points);
        s->points[s->n++] = p;
        if (shot->uncertainty_ns > s->uncertainty_ns)
            s->uncertainty_ns = shot->uncertainty_ns;
    }
}

/* Of the input itself when its clock is its own, else of all inputs of its machine. */
static void collect_points(const struct relate *r, size_t i, uint32_t clock, struct sv_shift *s)
{
    const struct sv_relate_input *in = &r->inputs[i];
    uint32_t from = in->clocks->trace_clock;
    const struct machine *m = &r->machines[in->machine];
    size_t cap = 0;
    s->uncertainty_ns = -1;
    if (is_private(from) || clock >= CLOCKS)
        collect_from(in->clocks, from, clock, s, &cap);
    for (size_t k = 0; !is_private(from) && clock < CLOCKS && k < m->n; k++)
        collect_from(r->inputs[r->order[m->first + k]].clocks, from, clock, s, &cap);
}

/* Sorted, growing in both columns (a wall clock that was set back keeps its old pace until it has
 * caught up), and one point where the offset does not change. */
static void tidy_points(struct sv_shift *s)
{
    qsort(s->points, s->n, sizeof *s->points, compare_points);
    size_t n = 1;
    int64_t least = clamp_sub(s->points[0].to_ns, s->points[0].from_ns), most = least;
    for (size_t i = 1; i < s->n; i++) {
        struct sv_clock_point p = s->points[i];
        if (p.from_ns == s->points[n - 1].from_ns || p.to_ns < s->points[n - 1].to_ns)
            continue;
        int64_t offset = clamp_sub(p.to_ns, p.from_ns);
        least = offset < least ? offset : least;
        most = offset > most ? offset : most;
        s->points[n++] = p;
    }
    int64_t steady = s->uncertainty_ns > SV_RELATE_STEADY_NS ? s->uncertainty_ns
                                                             : SV_RELATE_STEADY_NS;
    if (clamp_sub(most, least) <= steady) {
        s->points[0] = s->points[n / 2];
        n = 1;
    }
    s->n = n;
}

/* Many processes of a machine say nearly the same: some of it is enough, the first and the last
 * among it. */
static void thin_out(struct sv_shift *s)
{
    if (s->n <= POINTS_MAX)
        return;
    for (size_t i = 0; i < POINTS_MAX; i++)
        s->points[i] = s->points[i * (s->n - 1) / (POINTS_MAX - 1)];
    s->n = POINTS_MAX;
    s->points = sv_realloc(s->points, s->n * sizeof *s->points);
}

static void make_points(const struct relate *r, size_t i, uint32_t clock, struct sv_shift *s)
{
    collect_points(r, i, clock, s);
    assert(s->n > 0);
    tidy_points(s);
    thin_out(s);
}

/* Inputs of one machine with one clock have the same points: they are made once. */
static void find_points(struct relate *r, size_t i, uint32_t clock, struct sv_shift *s)
{
    struct sv_shift *made = NULL;
    for (size_t c = 0; c < N_CANDIDATES; c++)
        if (candidates[c] == r->inputs[i].clocks->trace_clock)
            made = &r->machines[r->inputs[i].machine].made[c];
    if (!made || clock >= CLOCKS) {
        make_points(r, i, clock, s);
        return;
    }
    if (made->n == 0)
        make_points(r, i, clock, made);
    s->n = made->n;
    s->uncertainty_ns = made->uncertainty_ns;
    s->points = sv_realloc(NULL, made->n * sizeof *made->points);
    memcpy(s->points, made->points, made->n * sizeof *made->points);
}

static void build(struct relate *r, size_t i, const struct choice *c, struct sv_shift *s)
{
    const struct sv_relate_input *in = &r->inputs[i];
    *s = (struct sv_shift){.offset_ns = in->has_offset ? in->offset_ns : 0};
    bool here = is_shared(c->clock) || in->machine == c->machine;
    if (!here || !reaches(r, i, c->clock)) {
        s->is_assumed = !in->has_offset;
        return;
    }
    if (in->clocks->trace_clock == c->clock)
        return;
    find_points(r, i, c->clock, s);
}

/* ---- refusal ---- */

static void add_clock(struct sv_buf *b, uint32_t clock, uint64_t *seen)
{
    uint64_t bit = (uint64_t)1 << (clock & 63);
    if (clock > 63 || *seen & bit)
        return;
    sv_buf_printf(b, "%s%s", *seen ? ", " : "", sv_clock_name(clock));
    *seen |= bit;
}

static void describe(struct sv_buf *b, const struct sv_relate_input *in)
{
    uint64_t seen = 0;
    sv_buf_printf(b, "%s", in->name);
    if (in->host)
        sv_buf_printf(b, " of host %.64s", in->host);
    sv_buf_str(b, ": ");
    add_clock(b, in->clocks->trace_clock, &seen);
    for (size_t s = 0; s < in->clocks->n; s++)
        for (uint32_t k = 0; k < in->clocks->snapshots[s].n; k++)
            add_clock(b, in->clocks->snapshots[s].readings[k].clock, &seen);
}

/* Would they be related if they came from one machine? Then it is worth asking. */
static bool would_join(const struct relate *r)
{
    struct sv_relate_input *same = sv_alloc(r->n * sizeof *same);
    for (size_t i = 0; i < r->n; i++) {
        same[i] = r->inputs[i];
        same[i].machine = 0;
    }
    struct relate joined = {.inputs = same, .n = r->n};
    gather(&joined);
    bool answer = choose(&joined).is_complete;
    let_go(&joined);
    free(same);
    return answer;
}

static bool is_lost(const struct relate *r, const struct choice *c, size_t i)
{
    bool here = is_shared(c->clock) || r->inputs[i].machine == c->machine;
    return !r->inputs[i].has_offset && !(here && reaches(r, i, c->clock));
}

/* The first that is placed, the first that is not, and one more. */
static void name_some(const struct relate *r, const struct choice *c, size_t lost, struct sv_buf *b)
{
    size_t placed = 0, third = 0, named = 0;
    while (placed < r->n && is_lost(r, c, placed))
        placed++;
    while (third == placed || third == lost)
        third++;
    for (size_t i = 0; i < r->n; i++) {
        if (i != placed && i != lost && i != third)
            continue;
        sv_buf_str(b, named++ ? "; " : "");
        describe(b, &r->inputs[i]);
    }
    if (r->n > named)
        sv_buf_printf(b, "; and %zu more", r->n - named);
}

static int refuse(const struct relate *r, const struct choice *c, struct sv_err *err)
{
    struct sv_buf b;
    size_t lost = 0;
    while (lost + 1 < r->n && !is_lost(r, c, lost))
        lost++;
    sv_buf_init(&b, 4096);
    name_some(r, c, lost, &b);
    const char *name = r->inputs[lost].name;
    bool has_hosts = r->n_machines > 1 && !is_private(r->inputs[lost].clocks->trace_clock);
    int code = sv_error(err, SV_EUSAGE,
                        "no clock relates these traces (%.220s): give %s%s--offset %s=±NS, or "
                        "--assume to use all times unchanged",
                        sv_buf_cstr(&b),
                        would_join(r) ? "--same-host if one machine wrote them, " : "",
                        has_hosts ? "--relation FILE (of 'stave sync'), " : "",
                        strlen(name) <= 70 ? name : "FILE" /* half a path helps nobody */);
    sv_buf_fini(&b);
    return code;
}

int sv_relate(const struct sv_relate_input *inputs, size_t n, bool assume, struct sv_shift *shifts,
              uint32_t *common_clock, uint32_t *machine, struct sv_err *err)
{
    struct relate r = {.inputs = inputs, .n = n};
    size_t reference;
    assert(n > 0);
    struct choice c;
    int code = 0;
    gather(&r);
    if (find_reference(&r, &reference)) {
        c = rate(&r, inputs[reference].clocks->trace_clock, inputs[reference].machine, 0);
        c.is_complete = true;
    } else {
        c = choose(&r);
    }
    if (!c.is_complete && !assume)
        code = refuse(&r, &c, err);
    for (size_t i = 0; code == 0 && i < n; i++)
        build(&r, i, &c, &shifts[i]);
    let_go(&r);
    *machine = c.machine;
    *common_clock = c.related ? c.clock : SV_CLOCK_UNKNOWN;
    return code;
}
