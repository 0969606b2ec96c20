/* Which inputs take part in a merge: see merge_ranks.h. */
#include "clocks/merge_ranks.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool is_same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* What does not name its job may be of any. */
static bool may_be_one_job(const struct sv_merge_card *a, const struct sv_merge_card *b)
{
    return !a->job || !b->job || strcmp(a->job, b->job) == 0;
}

/* Each is a row of its own, so that all are named. */
static void leave_out(struct sv_merge_card *c, struct sv_report *report, const char *why)
{
    char what[300];
    snprintf(what, sizeof what, "%.240s: left out of the merge", c->name);
    if (report)
        sv_report_add(report, SV_DAMAGE, what, 1, SV_NO_POS, "%s", why);
    c->is_out = true;
}

/* ---- clocks that were lost ---- */

static bool has_lost_clock(const struct sv_merge_card *c)
{
    return c->is_damaged && c->clocks->trace_clock == SV_CLOCK_UNKNOWN && c->clocks->n == 0 &&
           !c->has_offset;
}

/* What relates times without a clock to the wall clock; NULL: nothing. */
static const struct sv_snapshot *base_of(const struct sv_merge_card *card)
{
    const struct sv_clocks *c = card->clocks;
    int64_t ns;
    for (size_t s = 0; c->trace_clock == SV_CLOCK_UNKNOWN && s < c->n; s++)
        if (sv_snapshot_get(&c->snapshots[s], SV_CLOCK_UNKNOWN, &ns) &&
            sv_snapshot_get(&c->snapshots[s], SV_CLOCK_REALTIME, &ns))
            return &c->snapshots[s];
    return NULL;
}

static const struct sv_merge_card *find_base(struct sv_merge_card *const *cards, size_t n,
                                             const struct sv_merge_card *c)
{
    for (size_t i = 0; i < n; i++)
        if (cards[i] != c && cards[i]->machine == c->machine && may_be_one_job(cards[i], c) &&
            is_same_text(cards[i]->kind, c->kind) && base_of(cards[i]))
            return cards[i];
    return NULL;
}

static size_t count_lost(struct sv_merge_card *const *cards, size_t n)
{
    size_t lost = 0;
    for (size_t i = 0; i < n; i++)
        lost += has_lost_clock(cards[i]);
    return lost;
}

void sv_merge_find_clocks(struct sv_merge_card *const *cards, size_t n, bool assume,
                          struct sv_report *report)
{
    if (count_lost(cards, n) == n)
        return; /* the refusal says what can be done */
    for (size_t i = 0; i < n; i++) {
        if (!has_lost_clock(cards[i]))
            continue;
        const struct sv_merge_card *other = find_base(cards, n, cards[i]);
        if (other) {
            struct sv_snapshot base = *base_of(other);
            sv_clocks_add(cards[i]->clocks, &base);
            if (report)
                sv_report_add(report, SV_NOTE,
                              "input without its end, which has the base of its "
                              "times: taken from another rank of the host",
                              1, SV_NO_POS, "%s: from %s", cards[i]->name, other->name);
        } else if (!assume) {
            leave_out(cards[i], report,
                      "its end is missing, and with it the base of its times; no other input is of "
                      "the same host and job: give the base by --offset FILE=NANOSECONDS");
        }
    }
}

/* ---- ranks given twice ---- */

/* To the nanosecond: one was made of the other. */
static bool is_same_span(const struct sv_merge_card *a, const struct sv_merge_card *b)
{
    return a->has_span && b->has_span && a->begin_ns == b->begin_ns && a->end_ns == b->end_ns &&
           a->begin_ns < a->end_ns;
}

/* Do they claim to be the same record of the same rank? */
static bool is_same_rank(const struct sv_merge_card *a, const struct sv_merge_card *b)
{
    if (a->rank != b->rank || !may_be_one_job(a, b))
        return false;
    if (is_same_span(a, b))
        return true;
    if (!is_same_text(a->kind, b->kind) || !is_same_text(a->writer, b->writer))
        return false;
    return !a->writer || a->pid == b->pid; /* each process of a rank writes its own */
}

static bool do_overlap(const struct sv_merge_card *a, const struct sv_merge_card *b)
{
    return a->has_span && b->has_span && a->begin_ns <= b->end_ns && b->begin_ns <= a->end_ns;
}

static bool find_twice(struct sv_merge_card *const *cards, size_t n, size_t *first, size_t *second)
{
    for (size_t i = 0; i < n && cards[i]->rank != SV_CARD_NO_RANK; i++)
        for (size_t k = i + 1; k < n && cards[k]->rank == cards[i]->rank; k++)
            if (!cards[i]->is_out && !cards[k]->is_out && is_same_rank(cards[i], cards[k]) &&
                do_overlap(cards[i], cards[k])) {
                *first = i;
                *second = k;
                return true;
            }
    return false;
}

int sv_merge_check_ranks(struct sv_merge_card *const *cards, size_t n, bool skips_bad,
                         struct sv_report *report, struct sv_err *err)
{
    size_t a, b;
    while (find_twice(cards, n, &a, &b)) {
        if (!skips_bad || cards[a]->is_damaged == cards[b]->is_damaged)
            return sv_error(err, SV_EUSAGE,
                            "rank %" PRId64
                            " is given twice, by %.150s and %.150s, which cover the same time: "
                            "leave one out, or give --repeat-ranks if they are of different jobs",
                            cards[a]->rank, cards[a]->name, cards[b]->name);
        leave_out(cards[cards[a]->is_damaged ? a : b], report,
                  "it is damaged, and another input has the same rank");
    }
    return 0;
}
