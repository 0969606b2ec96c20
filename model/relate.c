/* The choice of a common clock and the conversions to it. Called by merge once all inputs have been read, since snapshots may
 * stand anywhere in a file.
 *
 * A clock is reached by an input when it is the input's own, or when a snapshot of its machine has both. Among the clocks
 * that all inputs reach, the one wins that most of them use already; ties go to the steadier clock. */
#include "model/relate.h"
#include "base/buf.h"
#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define STEADY_NS \
    1000 /* offsets that differ by no more than this are one offset: durations stay exact */

/* The steadier first. */
static const uint32_t candidates[] = {SV_CLOCK_BOOTTIME, SV_CLOCK_MONOTONIC, SV_CLOCK_MONOTONIC_RAW,
                                      SV_CLOCK_REALTIME};
#define N_CANDIDATES (sizeof candidates / sizeof *candidates)

struct relate {
    const struct sv_relate_input *inputs;
    size_t n;
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

/* ---- who reaches what ---- */

/* Does the snapshot of input `owner` speak about the clock `from` of input i? */
static bool speaks_about(const struct relate *r, size_t owner, size_t i, uint32_t from)
{
    if (owner == i)
        return true;
    return from != SV_CLOCK_UNKNOWN && r->inputs[owner].machine == r->inputs[i].machine;
}

static bool reaches(const struct relate *r, size_t i, uint32_t clock)
{
    uint32_t from = r->inputs[i].clocks->trace_clock;
    if (from == clock)
        return true;
    for (size_t k = 0; clock != SV_CLOCK_UNKNOWN && k < r->n; k++) {
        const struct sv_clocks *c = r->inputs[k].clocks;
        int64_t ns;
        for (size_t s = 0; speaks_about(r, k, i, from) && s < c->n; s++)
            if (sv_snapshot_get(&c->snapshots[s], from, &ns) &&
                sv_snapshot_get(&c->snapshots[s], clock, &ns))
                return true;
    }
    return false;
}

/* A clock of one machine means nothing on another. */
static bool is_shared(uint32_t clock)
{
    return clock == SV_CLOCK_REALTIME;
}

struct choice {
    uint32_t clock, machine;
    size_t related, native; /* inputs that reach it, that use it already */
    bool is_complete;       /* all inputs without an offset reach it */
};

static struct choice rate(const struct relate *r, uint32_t clock, uint32_t machine)
{
    struct choice c = {.clock = clock, .machine = machine, .is_complete = true};
    for (size_t i = 0; i < r->n; i++) {
        bool here = is_shared(clock) || r->inputs[i].machine == machine;
        if (here && reaches(r, i, clock)) {
            c.related++;
            c.native += r->inputs[i].clocks->trace_clock == clock;
        } else {
            c.is_complete &= r->inputs[i].has_offset;
        }
    }
    return c;
}

static bool is_better(const struct choice *a, const struct choice *b)
{
    if (a->is_complete != b->is_complete)
        return a->is_complete;
    if (a->related != b->related)
        return a->related > b->related;
    return a->native > b->native;
}

/* Each machine's clocks are tried once, by its first input. */
static bool is_first_of_machine(const struct relate *r, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (r->inputs[k].machine == r->inputs[i].machine)
            return false;
    return true;
}

static struct choice choose(const struct relate *r)
{
    struct choice best = {0};
    for (size_t i = 0; i < r->n; i++) {
        for (size_t c = 0; is_first_of_machine(r, i) && c < N_CANDIDATES; c++) {
            struct choice one = rate(r, candidates[c], r->inputs[i].machine);
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

static void collect_points(const struct relate *r, size_t i, uint32_t clock, struct sv_shift *s)
{
    uint32_t from = r->inputs[i].clocks->trace_clock;
    size_t cap = 0;
    s->uncertainty_ns = -1;
    for (size_t k = 0; k < r->n; k++) {
        const struct sv_clocks *c = r->inputs[k].clocks;
        for (size_t j = 0; speaks_about(r, k, i, from) && j < c->n; j++) {
            struct sv_clock_point p;
            const struct sv_snapshot *shot = &c->snapshots[j];
            if (!sv_snapshot_get(shot, from, &p.from_ns) || !sv_snapshot_get(shot, clock, &p.to_ns))
                continue;
            s->points = sv_grow(s->points, &cap, s->n + 1, sizeof *s->points);
            s->points[s->n++] = p;
            if (shot->uncertainty_ns > s->uncertainty_ns)
                s->uncertainty_ns = shot->uncertainty_ns;
        }
    }
}

/* Sorted, growing in both columns (a wall clock that was set back keeps its old pace until it has caught up), and one point where the offset
 * does not change. */
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
    int64_t steady = s->uncertainty_ns > STEADY_NS ? s->uncertainty_ns : STEADY_NS;
    if (clamp_sub(most, least) <= steady) {
        s->points[0] = s->points[n / 2];
        n = 1;
    }
    s->n = n;
}

static void build(const struct relate *r, size_t i, const struct choice *c, struct sv_shift *s)
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
    collect_points(r, i, c->clock, s);
    assert(s->n > 0);
    tidy_points(s);
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
    sv_buf_printf(b, "%s: ", in->name);
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
    bool answer = choose(&joined).is_complete;
    free(same);
    return answer;
}

static int refuse(const struct relate *r, const struct choice *c, struct sv_err *err)
{
    struct sv_buf b;
    size_t told = 0, lost = r->n;
    sv_buf_init(&b, 4096);
    for (size_t i = 0; i < r->n; i++) {
        bool here = is_shared(c->clock) || r->inputs[i].machine == c->machine;
        bool is_lost = !r->inputs[i].has_offset && !(here && reaches(r, i, c->clock));
        if (is_lost && lost == r->n)
            lost = i;
        if (told < 3) {
            sv_buf_str(&b, told++ ? "; " : "");
            describe(&b, &r->inputs[i]);
        }
    }
    if (r->n > told)
        sv_buf_printf(&b, "; and %zu more", r->n - told);
    const char *name = r->inputs[lost < r->n ? lost : 0].name;
    int code =
        sv_err_set(err, SV_EUSAGE, SV_NO_POS,
                   "no clock relates these traces (%.260s): give %s--offset %s=±NS, or --assume "
                   "to take all times as they are",
                   sv_buf_cstr(&b), would_join(r) ? "--same-host if one machine wrote them, " : "",
                   strlen(name) <= 70 ? name : "FILE" /* half a path helps nobody */);
    sv_buf_fini(&b);
    return code;
}

int sv_relate(const struct sv_relate_input *inputs, size_t n, bool assume, struct sv_shift *shifts,
              uint32_t *common_clock, struct sv_err *err)
{
    struct relate r = {.inputs = inputs, .n = n};
    size_t reference;
    assert(n > 0);
    struct choice c;
    if (find_reference(&r, &reference)) {
        c = rate(&r, inputs[reference].clocks->trace_clock, inputs[reference].machine);
        c.is_complete = true;
    } else {
        c = choose(&r);
    }
    if (!c.is_complete && !assume)
        return refuse(&r, &c, err);
    for (size_t i = 0; i < n; i++)
        build(&r, i, &c, &shifts[i]);
    *common_clock = c.related ? c.clock : SV_CLOCK_UNKNOWN;
    return 0;
}
