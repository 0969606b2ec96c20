/* Conditions on durations: which slices, how long, and those that are still open. Called by
 * record/when/when.c and kinds.c. */
#include "cli/console.h"
#include "core/base/glob.h"
#include "core/base/mem.h"
#include "record/when/condition.h"
#include "subjects/steps/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_VALUES = 5 };
#define WINDOW_NS ((int64_t)600000000000)

static const char *const markers[] = {SV_STEP_MARKERS};

/* ---- which ---- */

static bool find_marker(const char *text, unsigned *marker)
{
    for (unsigned i = 0; i < sizeof markers / sizeof *markers; i++)
        if (sv_glob_match(markers[i], text, strlen(text))) {
            *marker = i;
            return true;
        }
    return false;
}

bool sv_pick_has(const struct sv_pick *p, const char *text)
{
    unsigned ignored;
    switch (p->kind) {
    case SV_PICK_STEP: return find_marker(text, &ignored);
    case SV_PICK_REQUEST: return sv_glob_match("[Rr]equest*", text, strlen(text));
    default: return sv_glob_match(p->glob, text, strlen(text));
    }
}

bool sv_pick_takes(struct sv_condition *c, const struct sv_seen *s)
{
    unsigned marker = 0;
    if (c->pick.kind != SV_PICK_STEP)
        return true;
    if (!s->is_slice || !find_marker(s->text, &marker) ||
        (c->pick.has_marker && marker > c->pick.marker))
        return false;
    if (!c->pick.has_marker || marker < c->pick.marker) {
        c->pick.has_marker = true;
        c->pick.marker = marker;
        if (c->limit.window)
            sv_window_clear(c->limit.window);
    }
    return true;
}

/* ---- how long ---- */

static void parse_window(struct sv_when_reader *r, struct sv_limit *l)
{
    int64_t span_ns = sv_when_word(r, "over") ? sv_when_time(r) : WINDOW_NS;
    if (!sv_when_failed(r))
        l->window = sv_window_new(span_ns);
}

/* median, p99, p99.9 */
static bool parse_share(struct sv_when_reader *r, double *share)
{
    if (sv_when_word(r, "median")) {
        *share = 0.5;
        return true;
    }
    if (*r->at != 'p' || r->at[1] < '0' || r->at[1] > '9')
        return false;
    r->at++;
    double percent = sv_when_number(r, "a percentile such as p99");
    if (percent <= 0 || percent >= 100)
        sv_when_expect(r, "a percentile between p1 and p99.99");
    *share = percent / 100;
    return true;
}

/* 500ms | 2x median [over 5m] | [1.5x] p99 [over 1m] */
static void parse_limit(struct sv_when_reader *r, struct sv_limit *l)
{
    static const char expected[] = "a time (500ms), a factor (2x median) or a percentile (p99)";
    const char *from = r->at;
    l->factor = 1;
    if (sv_when_is_number(r)) {
        l->factor = sv_when_number(r, expected);
        if (l->factor > 0 && sv_when_time_of(r, l->factor, &l->ns) && l->ns > 0)
            return;
        if (!sv_when_word(r, "x") || !(l->factor > 0)) {
            r->at = from;
            sv_when_expect(r, expected);
            return;
        }
        if (!parse_share(r, &l->share))
            sv_when_expect(r, "median, or a percentile such as p99");
    } else if (!parse_share(r, &l->share)) {
        sv_when_expect(r, expected);
    }
    parse_window(r, l);
}

void sv_slice_parse(struct sv_when_reader *r, struct sv_condition *c)
{
    c->op = sv_when_compare(r, false);
    const char *from = r->at;
    parse_limit(r, &c->limit);
    if (sv_when_failed(r))
        return;
    while (*from == ' ')
        from++;
    snprintf(c->limit.text, sizeof c->limit.text, "%.*s", (int)(r->at - from), from);
}

/* A percentile means something only where there are values beyond it. */
static uint64_t least_of(const struct sv_limit *l)
{
    uint64_t n = (uint64_t)ceil(1 / (1 - l->share) - 1e-9);
    return n > LEAST_VALUES ? n : LEAST_VALUES;
}

/* 0: not known yet. */
static int64_t limit_of(const struct sv_limit *l)
{
    if (!l->window)
        return l->ns;
    return l->window->n < least_of(l)
               ? 0
               : (int64_t)(l->factor * (double)sv_window_at(l->window, l->share));
}

static void hit(struct sv_when *w, struct sv_condition *c, const struct sv_when_open *s,
                int64_t ts_ns, bool is_open)
{
    char a[32], b[32], of[160] = "";
    struct sv_text name = sv_dict_text(w->dict, s->name);
    if (c->limit.window)
        snprintf(of, sizeof of, ": %s is %s", c->limit.text, sv_human_ns(b, limit_of(&c->limit)));
    sv_when_hit(w, c, ts_ns, s->track, "'%.100s' %s %s%s", name.bytes,
                is_open ? "has not ended after" : "took", sv_human_ns(a, ts_ns - s->begin_ns), of);
}

void sv_slice_feed(struct sv_when *w, struct sv_condition *c, const struct sv_seen *s)
{
    if (!s->is_slice || !sv_pick_takes(c, s))
        return;
    struct sv_limit *l = &c->limit;
    if (l->window)
        sv_window_turn(l->window, s->ts_ns);
    int64_t limit = limit_of(l);
    const struct sv_when_open o = {
        .track = s->track, .name = s->name, .begin_ns = s->ts_ns - s->dur_ns};
    c->is_seen = true;
    if (limit > 0 && !(s->fired >> c->number & 1) &&
        sv_when_holds(c->op, (double)s->dur_ns, (double)limit))
        hit(w, c, &o, s->ts_ns, false);
    if (l->window)
        sv_window_add(l->window, s->ts_ns, s->dur_ns);
}

/* What is open for too long already: nobody needs to wait for its end. */
void sv_slice_check(struct sv_when *w, struct sv_condition *c, int64_t now_ns)
{
    int64_t limit = limit_of(&c->limit);
    uint64_t bit = (uint64_t)1 << c->number;
    if (limit <= 0 || w->n_open == 0 || (c->op != SV_GT && c->op != SV_GE))
        return;
    for (uint32_t i = 0; i < SV_OPEN_MAX; i++) {
        struct sv_when_open *o = &w->open[i];
        if (!o->track || !(o->conditions & bit) || (o->fired & bit) ||
            now_ns - o->begin_ns <= limit)
            continue;
        const struct sv_seen s = {
            .kind = SV_SEEN_NAME, .is_slice = true, .text = sv_dict_text(w->dict, o->name).bytes};
        if (c->pick.kind == SV_PICK_STEP && !sv_pick_takes(c, &s))
            continue;
        o->fired |= bit;
        hit(w, c, o, now_ns, true);
    }
}

/* ---- open ones ---- */

static uint32_t free_place(struct sv_when *w)
{
    for (uint32_t i = w->free_open; i < SV_OPEN_MAX; i++)
        if (!w->open[i].track) {
            w->free_open = i + 1;
            return i + 1;
        }
    w->free_open = SV_OPEN_MAX;
    return 0;
}

void sv_when_open_begin(struct sv_when *w, const struct sv_event *e)
{
    uint64_t conditions = w->by_name[e->name] & ~SV_WHEN_KNOWN;
    uint64_t *top = w->top.n ? sv_map_find(&w->top, e->track) : NULL;
    uint32_t place = conditions ? free_place(w) : 0;
    if (!place) {
        if (top)
            w->open[*top - 1].inner++;
        return;
    }
    w->open[place - 1] = (struct sv_when_open){.track = e->track,
                                               .name = e->name,
                                               .begin_ns = e->ts_ns,
                                               .conditions = conditions,
                                               .below = top ? (uint32_t)*top : 0};
    bool is_new;
    *sv_map_add(&w->top, e->track, &is_new) = place;
    w->n_open++;
}

static void close_top(struct sv_when *w, uint64_t *top)
{
    struct sv_when_open *o = &w->open[*top - 1];
    w->free_open = *top - 1 < w->free_open ? (uint32_t)*top - 1 : w->free_open;
    if (o->below)
        *top = o->below;
    else
        sv_map_remove(&w->top, o->track);
    o->track = 0;
    w->n_open--;
}

bool sv_when_open_end(struct sv_when *w, const struct sv_event *e, struct sv_when_open *out)
{
    uint64_t *top = w->top.n ? sv_map_find(&w->top, e->track) : NULL;
    if (!top)
        return false;
    struct sv_when_open *o = &w->open[*top - 1];
    if (o->inner > 0) {
        o->inner--;
        return false;
    }
    *out = *o;
    close_top(w, top);
    return true;
}

void sv_when_open_forget(struct sv_when *w, sv_track track)
{
    uint64_t *top;
    while (w->top.n && (top = sv_map_find(&w->top, track)))
        close_top(w, top);
}
