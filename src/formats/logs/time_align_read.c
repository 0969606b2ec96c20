/* The time alignment trace: bpftrace's nanoseconds since boot beside the wall clock's second, a
 * line per system call.
 *
 * Opened through the table of formats. Where the second changes, the two lines around the change
 * enclose the moment at which it began. The closest such pair gives the offset. Its uncertainty is
 * half the width of the pair and one timer tick: bpftrace takes the second from time(), whose clock
 * moves by ticks, so that the change is seen up to 10 ms late, in each pair alike. When several
 * pairs show that the clocks drift apart by more than that, two snapshots on the line through them
 * say so. Lines that two CPUs tore into each other are counted. */
#include "formats/lines.h"

#include "core/base/mem.h"

#include <inttypes.h>
#include <stdlib.h>

#define PAIRS_MAX   65536u
#define TICK_NS     10000000 /* of the slowest kernels: 100 Hz */
#define CLOSE_TIMES 8 /* pairs up to this many times as wide as the closest one show the drift */

struct pair {
    int64_t before_ns, after_ns; /* since boot */
    int64_t wall_ns;             /* the second that begins between them */
};

struct time_align {
    struct sv_lines lines;
    struct pair *pairs;
    size_t n, cap;
    int64_t last_ns, last_of_day;
    bool has_last;
};

static bool is_align_line(struct sv_text line, int64_t *ns, int64_t *of_day)
{
    struct sv_fields f = {line.bytes, line.bytes + line.len};
    struct sv_text first = sv_field_next(&f), second = sv_field_rest(&f);
    return sv_text_i64(first, ns) && *ns >= 0 && second.len == 8 &&
           sv_civil_parse_clock(second.bytes, second.len, of_day) == 8;
}

static int probe(const uint8_t *head, size_t n)
{
    struct sv_fields h = sv_head(head, n);
    struct sv_text line;
    int64_t ns, of_day;
    int good = 0, bad = 0;
    for (int i = 0; i < 64 && sv_head_line(&h, &line); i++) {
        if (is_align_line(line, &ns, &of_day))
            good++;
        else if (line.len && !sv_text_begins(line, "Attach") && !sv_text_begins(line, "TIMESTAMP"))
            bad++;
    }
    return good > bad ? 90 : 0;
}

static bool line(struct sv_lines *l, struct sv_batch *b, const char *p, size_t len)
{
    struct time_align *s = (struct time_align *)l;
    struct sv_text text = {p, (uint32_t)len};
    int64_t ns, of_day;
    (void)b;
    if (len == 0 || sv_text_begins(text, "Attach") || sv_text_begins(text, "TIMESTAMP"))
        return true;
    if (!is_align_line(text, &ns, &of_day))
        return sv_lines_bad(l, "TIMESTAMP HH:MM:SS");
    int64_t step = of_day - s->last_of_day;
    bool is_next = step == SV_S_NS || step == SV_S_NS - SV_DAY_S * SV_S_NS;
    int64_t wall_ns;
    if (!sv_wall_ns(&l->wall, of_day, &wall_ns))
        return sv_lines_bad(l, "a time before the year 2262");
    if (s->has_last && is_next && ns >= s->last_ns && s->n < PAIRS_MAX)
        SV_APPEND(s->pairs, s->n, s->cap) = (struct pair){s->last_ns, ns, wall_ns};
    s->has_last = true;
    s->last_ns = ns;
    s->last_of_day = of_day;
    return true;
}

static int64_t width(const struct pair *p)
{
    return p->after_ns - p->before_ns;
}

static struct sv_snapshot snapshot(int64_t boot_ns, int64_t wall_ns, int64_t uncertainty_ns)
{
    return (struct sv_snapshot){
        .readings = {{SV_CLOCK_BOOTTIME, boot_ns}, {SV_CLOCK_REALTIME, wall_ns}},
        .n = 2,
        .uncertainty_ns = uncertainty_ns};
}

static struct sv_snapshot pair_snapshot(const struct pair *p)
{
    return snapshot(p->before_ns + width(p) / 2, p->wall_ns, (width(p) + 1) / 2 + TICK_NS);
}

/* The line through the close pairs, when it leaves the offset of the closest one by more than all
 * of them are uncertain. */
static bool find_drift(const struct time_align *s, const struct pair *best, int64_t *first_ns,
                       int64_t *last_ns, struct sv_clock_fit *fit)
{
    struct sv_clocks close = {0};
    int64_t widest = 0;
    *first_ns = *last_ns = 0;
    for (size_t i = 0; i < s->n; i++) {
        const struct pair *p = &s->pairs[i];
        if (width(p) / CLOSE_TIMES > width(best))
            continue;
        struct sv_snapshot one = pair_snapshot(p);
        if (close.n == 0)
            *first_ns = one.readings[0].ns;
        *last_ns = one.readings[0].ns;
        widest = one.uncertainty_ns > widest ? one.uncertainty_ns : widest;
        sv_clocks_add(&close, &one);
    }
    bool has_fit = close.n >= 3 && sv_clocks_fit(&close, SV_CLOCK_BOOTTIME, SV_CLOCK_REALTIME, fit);
    double moved = has_fit ? fit->drift * (double)(*last_ns - *first_ns) : 0;
    sv_clocks_fini(&close);
    return (moved < 0 ? -moved : moved) > 2.0 * (double)widest;
}

static void add_fitted(struct sv_clocks *c, const struct sv_clock_fit *fit, int64_t at_ns)
{
    int64_t wall_ns;
    if (!sv_clock_fit_apply(fit, at_ns, &wall_ns))
        return; /* clocks that drift apart like that are related by nothing */
    struct sv_snapshot one = snapshot(at_ns, wall_ns, fit->uncertainty_ns);
    sv_clocks_add(c, &one);
}

static const struct pair *closest(const struct time_align *s)
{
    const struct pair *best = s->pairs;
    for (size_t i = 1; i < s->n; i++)
        if (width(&s->pairs[i]) < width(best))
            best = &s->pairs[i];
    return best;
}

static bool end(struct sv_lines *l, struct sv_batch *b)
{
    struct time_align *s = (struct time_align *)l;
    struct sv_clock_fit fit = {0};
    int64_t first_ns = 0, last_ns = 0;
    sv_wall_set_clock(l);
    l->dict->clocks.trace_clock = SV_CLOCK_BOOTTIME;
    if (s->n == 0) {
        sv_report_add(l->source.report, SV_DAMAGE, "no change of the wall clock's second", 1,
                      SV_NO_POS, "the clocks cannot be related by this file");
        return false;
    }
    const struct pair *best = closest(s);
    struct sv_snapshot one = pair_snapshot(best);
    int64_t uncertainty_ns = one.uncertainty_ns;
    double drift = 0;
    if (!find_drift(s, best, &first_ns, &last_ns, &fit)) {
        if (l->wall.zone && l->wall.has_date)
            sv_clocks_add(&l->dict->clocks, &one);
    } else {
        drift = fit.drift;
        uncertainty_ns = fit.uncertainty_ns;
        if (l->wall.zone && l->wall.has_date) {
            add_fitted(&l->dict->clocks, &fit, first_ns);
            add_fitted(&l->dict->clocks, &fit, last_ns);
        }
    }
    sv_report_add(l->source.report, SV_NOTE, "clocks related by pairs of lines", s->n, SV_NO_POS,
                  "the closest pair is %" PRId64 " ns wide; uncertainty %" PRId64
                  " ns, drift %.3f ppm",
                  width(best), uncertainty_ns, drift * 1e6);
    sv_add_int(l, b, "width_ns", width(best));
    sv_add_int(l, b, "uncertainty_ns", uncertainty_ns);
    sv_add_int(l, b, "pairs", (int64_t)s->n);
    sv_add_double(l, b, "drift_ppm", drift * 1e6);
    sv_track track = sv_lines_group(l, 0, SV_TRACK_CUSTOM, "time alignment", 14);
    sv_put_event(l, b, SV_INSTANT, one.readings[0].ns, track, sv_dict_cstr(l->dict, "clock pair"),
                 "clock");
    return false;
}

static void fini(struct sv_lines *l)
{
    free(((struct time_align *)l)->pairs);
}

static const struct sv_lines_kind kind = {
    .size = sizeof(struct time_align),
    .max_events = 1,
    .gives = SV_HAS_NESTED,
    .damaged = "torn line of the time alignment",
    .clock = SV_CLOCK_BOOTTIME,
    .line = line,
    .end = end,
    .fini = fini,
};

const struct sv_format sv_time_align_format = {
    .name = "time-align",
    .help = "bpftrace's nanoseconds beside the wall clock's seconds",
    .lacks = "events: it only relates two clocks",
    .files = "`trace_time_align.bt`",
    .times = "relates time since boot to the wall clock",
    .probe = probe,
    .lines = &kind,
    .needs_date = true,
    .needs_zone = true,
};
