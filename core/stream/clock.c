/* Clock arithmetic: names, conversion by snapshot, and the linear fit that merge uses.
 *
 * All integer except the drift, which is a ratio and multiplies only the distance from a nearby
 * anchor. */
#include "core/stream/clock.h"
#include "core/base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/timex.h>

static const struct {
    uint32_t clock;
    const char *name;
} names[] = {
    {SV_CLOCK_UNKNOWN, "unknown"},
    {SV_CLOCK_REALTIME, "realtime"},
    {SV_CLOCK_REALTIME_COARSE, "realtime_coarse"},
    {SV_CLOCK_MONOTONIC, "monotonic"},
    {SV_CLOCK_MONOTONIC_COARSE, "monotonic_coarse"},
    {SV_CLOCK_MONOTONIC_RAW, "monotonic_raw"},
    {SV_CLOCK_BOOTTIME, "boottime"},
    {SV_CLOCK_TSC, "tsc"},
};

const char *sv_clock_name(uint32_t clock)
{
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].clock == clock)
            return names[i].name;
    return "other";
}

void sv_clocks_fini(struct sv_clocks *c)
{
    free(c->snapshots);
    *c = (struct sv_clocks){0};
}

void sv_clocks_add(struct sv_clocks *c, const struct sv_snapshot *s)
{
    assert(s->n <= SV_READINGS_MAX);
    SV_APPEND(c->snapshots, c->n, c->cap) = *s;
}

bool sv_snapshot_get(const struct sv_snapshot *s, uint32_t clock, int64_t *ns)
{
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->readings[i].clock == clock) {
            *ns = s->readings[i].ns;
            return true;
        }
    }
    return false;
}

void sv_snapshot_set_wall(struct sv_snapshot *s, uint64_t state, int64_t error_ns)
{
    bool is_known = error_ns >= 0 && (state == SV_WALL_SYNCHRONISED || state == SV_WALL_FREE);
    s->wall_state = is_known ? (uint32_t)state : SV_WALL_UNKNOWN;
    s->wall_error_ns = is_known ? error_ns : 0;
}

/* Reads only (no modes), which everybody may; a sandbox that forbids it leaves it unknown. */
void sv_snapshot_read_wall(struct sv_snapshot *s)
{
    struct timex t = {0};
    int state = adjtimex(&t);
    bool is_free = state == TIME_ERROR || t.status & STA_UNSYNC;
    if (state < 0)
        sv_snapshot_set_wall(s, SV_WALL_UNKNOWN, 0);
    else
        sv_snapshot_set_wall(s, is_free ? SV_WALL_FREE : SV_WALL_SYNCHRONISED,
                             (int64_t)t.maxerror * 1000);
}

/* Differences of any two times. */
__extension__ typedef __int128 wide;

static bool fits(wide v, int64_t *out)
{
    *out = (int64_t)v;
    return v >= INT64_MIN && v <= INT64_MAX;
}

static int64_t clamp(double v)
{
    return v >= 0x1p63 ? INT64_MAX : v < -0x1p63 ? INT64_MIN : v == v ? (int64_t)v : 0;
}

bool sv_clocks_convert(const struct sv_clocks *c, uint32_t from, uint32_t to, int64_t ns,
                       int64_t *out)
{
    if (from == to) {
        *out = ns;
        return true;
    }
    bool found = false, before = false;
    int64_t best_from = 0, best_to = 0;
    for (size_t i = 0; i < c->n; i++) {
        int64_t a, b;
        if (!sv_snapshot_get(&c->snapshots[i], from, &a) ||
            !sv_snapshot_get(&c->snapshots[i], to, &b))
            continue;
        bool is_before = a <= ns;
        /* Best: the latest of those at or before ns; without one, the earliest. */
        bool better = !found || (is_before && (!before || a >= best_from)) ||
                      (!is_before && !before && a < best_from);
        if (better) {
            best_from = a;
            best_to = b;
            before = is_before;
            found = true;
        }
    }
    return found && fits((wide)ns + best_to - best_from, out);
}

/* Least squares over (from, to − from), centred on the mean so that the sums stay small. */
bool sv_clocks_fit(const struct sv_clocks *c, uint32_t from, uint32_t to, struct sv_clock_fit *fit)
{
    *fit = (struct sv_clock_fit){.uncertainty_ns = -1};
    int64_t anchor = 0, a, b;
    wide base = 0;
    double sum_x = 0, sum_y = 0, sum_xx = 0, sum_xy = 0;
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++) {
        const struct sv_snapshot *s = &c->snapshots[i];
        if (!sv_snapshot_get(s, from, &a) || !sv_snapshot_get(s, to, &b))
            continue;
        if (n == 0) {
            anchor = a;
            base = (wide)b - a;
        }
        double x = (double)((wide)a - anchor), y = (double)((wide)b - a - base);
        sum_x += x;
        sum_y += y;
        sum_xx += x * x;
        sum_xy += x * y;
        n++;
    }
    if (n == 0)
        return false;
    double count = (double)n, spread = sum_xx - sum_x * sum_x / count;
    fit->drift = spread > 0 ? (sum_xy - sum_x * sum_y / count) / spread : 0;
    fit->at_ns = anchor;
    if (!fits(base + clamp((sum_y - fit->drift * sum_x) / count), &fit->offset_ns))
        return false;
    fit->n_snapshots = n;
    wide worst = 0;
    for (size_t i = 0; i < c->n; i++) {
        const struct sv_snapshot *s = &c->snapshots[i];
        if (!sv_snapshot_get(s, from, &a) || !sv_snapshot_get(s, to, &b))
            continue;
        wide residual = (wide)b - a - fit->offset_ns -
                        clamp(fit->drift * (double)((wide)a - anchor));
        residual = (residual < 0 ? -residual : residual) +
                   (s->uncertainty_ns > 0 ? s->uncertainty_ns : 0);
        worst = residual > worst ? residual : worst;
    }
    if (!fits(worst, &fit->uncertainty_ns))
        fit->uncertainty_ns = INT64_MAX;
    return true;
}

bool sv_clock_fit_apply(const struct sv_clock_fit *fit, int64_t from_ns, int64_t *to_ns)
{
    double drifted = fit->drift * (double)((wide)from_ns - fit->at_ns);
    return fits((wide)from_ns + fit->offset_ns + clamp(drifted), to_ns);
}
