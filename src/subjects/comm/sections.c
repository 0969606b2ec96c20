/* stave report comm: collectives across ranks, who arrives last, where ranks differ. Called by
 * cmd/report.c with the loaded trace.
 *
 * A verdict in sentences, then tables of columns over subjects/comm/figures.h; subjects/sections.c
 * prints them. */
#include "subjects/comm/figures.h"

#include "cli/console.h"
#include "cli/rows.h"
#include "core/base/buf.h"
#include "core/base/mem.h"
#include "core/base/sat.h"
#include "subjects/subject.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS(list) .columns = (list), .n_columns = sizeof(list) / sizeof *(list)
#define TEXT_BYTES    (1u << 24)
#define SENTENCES_MAX 5u /* of one kind; the tables have all of them */

/* What the tables share: the report, its verdict, texts under construction. */
struct view {
    const struct sv_comm_report *r;
    struct sv_buf verdict;
    struct sv_buf *texts; /* four */
    size_t *late_first;   /* collectives in the order of their table */
    uint32_t *lost_most;  /* ranks in the order of theirs … */
    uint32_t *hosts_most; /* … and hosts */
};

/* ---- words ---- */

static void put_rank(const struct sv_comm_report *r, uint32_t rank, struct sv_buf *to)
{
    char name[96];
    if (r->ranks[rank].number >= 0)
        sv_buf_printf(to, "%" PRId64, r->ranks[rank].number);
    else
        sv_buf_str(to, sv_comm_rank_name(r, rank, name, sizeof name));
}

static bool follows(const struct sv_comm_report *r, uint32_t a, uint32_t b)
{
    return r->ranks[a].number >= 0 && r->ranks[b].number == r->ranks[a].number + 1;
}

/* "0-3, 7" */
static void put_ranks(const struct sv_comm_report *r, const uint32_t *ranks, size_t n,
                      struct sv_buf *to)
{
    for (size_t i = 0, last; i < n; i = last + 1) {
        for (last = i; last + 1 < n && follows(r, ranks[last], ranks[last + 1]); last++) {}
        if (i)
            sv_buf_str(to, ", ");
        put_rank(r, ranks[i], to);
        if (last > i) {
            sv_buf_str(to, last == i + 1 ? ", " : "-");
            put_rank(r, ranks[last], to);
        }
    }
}

static void put_group(const struct sv_comm_report *r, uint32_t group, struct sv_buf *to)
{
    const struct sv_comm_group *g = &r->groups[group];
    struct sv_text name = sv_dict_text(r->strings, g->name);
    struct sv_text desc = sv_dict_text(r->strings, g->desc);
    sv_buf_add(to, name.bytes, name.len);
    if (desc.len && (desc.len != name.len || memcmp(desc.bytes, name.bytes, desc.len) != 0)) {
        sv_buf_str(to, name.len ? " " : "");
        sv_buf_add(to, desc.bytes, desc.len);
    }
}

static void put_collective(const struct sv_comm_report *r, const struct sv_comm_collective *c,
                           struct sv_buf *to)
{
    sv_buf_printf(to, "%s %" PRId64, sv_comm_op_name(c->op), c->seq);
    if (r->groups[c->group].name || r->groups[c->group].desc) {
        sv_buf_str(to, " of group ");
        put_group(r, c->group, to);
    }
}

static const char *plural(size_t n)
{
    return n == 1 ? "rank" : "ranks";
}

/* ---- the verdict ---- */

static void say_missing(const struct sv_comm_report *r, const struct sv_comm_difference *d,
                        struct sv_buf *to)
{
    const struct sv_comm_group *g = &r->groups[r->collectives[d->collective].group];
    sv_buf_printf(to, "%s ", plural(d->n_waiting));
    put_ranks(r, d->waiting, d->n_waiting, to);
    sv_buf_str(to, d->n_waiting == 1 ? " waits in " : " wait in ");
    put_collective(r, &r->collectives[d->collective], to);
    if (d->n_ranks) {
        sv_buf_printf(to, "; %s ", plural(d->n_ranks));
        put_ranks(r, d->ranks, d->n_ranks, to);
        sv_buf_str(to, d->n_ranks == 1 ? " has no record of it" : " have no record of it");
    }
    if (g->n_absent)
        sv_buf_printf(to, "; %zu %s of the group %s not in the trace", g->n_absent,
                      plural(g->n_absent), g->n_absent == 1 ? "is" : "are");
}

static void say_difference(const struct sv_comm_report *r, const struct sv_comm_difference *d,
                           struct sv_buf *to)
{
    const struct sv_comm_collective *c = &r->collectives[d->collective];
    if (d->kind == SV_DIFFERENCE_MISSING) {
        say_missing(r, d, to);
        return;
    }
    sv_buf_printf(to, "%s ", plural(d->n_ranks));
    put_ranks(r, d->ranks, d->n_ranks, to);
    if (d->kind == SV_DIFFERENCE_STUCK) {
        sv_buf_str(to, d->n_ranks == 1 ? " has" : " have");
        sv_buf_str(to, " not left ");
        put_collective(r, c, to);
        sv_buf_str(to, ", which others have finished");
        return;
    }
    const struct sv_comm_call *odd = sv_comm_call_of(r, c, d->ranks[0]), *other = NULL;
    for (size_t i = c->first; i < c->first + c->n && !other; i++)
        if (d->kind == SV_DIFFERENCE_KIND ? r->calls[i].op != odd->op
                                          : r->calls[i].bytes != odd->bytes)
            other = &r->calls[i];
    sv_buf_str(to, d->n_ranks == 1 ? " has " : " have ");
    if (d->kind == SV_DIFFERENCE_KIND)
        sv_buf_printf(to, "%s where others have %s: ", sv_comm_op_name(odd->op),
                      sv_comm_op_name(other ? other->op : c->op));
    else
        sv_buf_printf(to, "%" PRId64 " bytes where others have %" PRId64 ": ", odd->bytes,
                      other ? other->bytes : c->bytes);
    put_collective(r, c, to);
}

static void say_hang(const struct sv_comm_report *r, struct sv_buf *to)
{
    for (size_t i = 0; i < r->n_differences && i < SENTENCES_MAX; i++) {
        sv_buf_str(to, i ? "Then: " : "First difference: ");
        say_difference(r, &r->differences[i], to);
        sv_buf_str(to, ".\n");
    }
    if (r->n_culprits) {
        sv_buf_printf(to, "Others wait for %s ", plural(r->n_culprits));
        put_ranks(r, r->culprits, r->n_culprits, to);
        sv_buf_printf(to, ", which %s for nobody.\n", r->n_culprits == 1 ? "waits" : "wait");
    }
}

static const char *const before_words[SV_N_BEFORE] = {"computing",
                                                      "I/O",
                                                      "loading",
                                                      "copying",
                                                      "communication",
                                                      "time in other slices",
                                                      "idle time",
                                                      "time in the run queue",
                                                      "time that is unknown"};

/* What it did more of than the first rank: the largest part, if it explains half of the delay. */
static void say_reason(const struct sv_comm_rank *rank, struct sv_buf *to)
{
    char text[32];
    int most = 0;
    for (int k = 1; k < SV_N_BEFORE; k++)
        if (rank->excess_ns[k] > rank->excess_ns[most])
            most = k;
    if (rank->has_before && rank->excess_ns[most] > rank->lost_ns / 2)
        sv_buf_printf(to, "; before them %s more %s than the first rank",
                      sv_human_ns(text, rank->excess_ns[most]), before_words[most]);
    if (rank->has_states)
        sv_buf_printf(to, "; %s in the run queue",
                      sv_human_ns(text, rank->before_ns[SV_BEFORE_RUN_QUEUE]));
    else
        sv_buf_str(to, "; how long in the run queue is unknown, as no scheduler data are recorded");
}

/* What costs most first; hosts before ranks. */
static size_t say_slow(const struct view *v, struct sv_buf *to)
{
    const struct sv_comm_report *r = v->r;
    char name[96], lost[32];
    size_t n = 0, n_hosts = 0;
    for (size_t i = 0; i < r->n_hosts; i++) {
        const struct sv_comm_host *h = &r->hosts[v->hosts_most[i]];
        if (!h->is_slow || ++n_hosts > SENTENCES_MAX)
            continue;
        sv_buf_printf(to,
                      "Host %s is slow: one of its %zu ranks is last in %" PRIu64 " of %" PRIu64
                      " collectives (%.1f expected of equal ranks), %s lost, %.1f %% of the time",
                      h->name, h->n_ranks, h->last, h->judged, h->expected,
                      sv_human_ns(lost, h->lost_ns), 100 * h->lost_share);
        if (h->gain > 0)
            sv_buf_printf(to,
                          "; the job would take %.0f %% less time if it were as fast as its peers",
                          100 * h->gain);
        sv_buf_str(to, ".\n");
    }
    const struct sv_comm_rank *most = r->n_ranks ? &r->ranks[v->lost_most[0]] : NULL;
    if (!n_hosts && r->n_ranks && !most->is_slow && most->lost_share >= SV_COMM_COST_SHARE) {
        n++;
        sv_buf_printf(to,
                      "%s costs most: last in %" PRIu64 " of %" PRIu64
                      " collectives, %s lost, %.1f %% of the time; that may be chance, or one "
                      "disturbance.\n",
                      sv_comm_rank_name(r, v->lost_most[0], name, sizeof name), most->last,
                      most->judged, sv_human_ns(lost, most->lost_ns), 100 * most->lost_share);
    }
    for (uint32_t i = 0; i < r->n_ranks; i++) {
        const struct sv_comm_rank *k = &r->ranks[v->lost_most[i]];
        if (!k->is_slow || ++n > SENTENCES_MAX)
            continue;
        sv_buf_printf(to,
                      "%s is slow: last in %" PRIu64 " of %" PRIu64
                      " collectives (%.1f expected of equal ranks), %s lost, %.1f %% of the time",
                      sv_comm_rank_name(r, v->lost_most[i], name, sizeof name), k->last, k->judged,
                      k->expected, sv_human_ns(lost, k->lost_ns), 100 * k->lost_share);
        if (k->gain > 0)
            sv_buf_printf(to,
                          "; the job would take %.0f %% less time if it were as fast as its peers",
                          100 * k->gain);
        say_reason(k, to);
        sv_buf_str(to, ".\n");
    }
    return n + n_hosts;
}

static void make_verdict(struct view *v)
{
    const struct sv_comm_report *r = v->r;
    size_t n_told = 0;
    for (size_t i = 0; i < r->n_groups; i++)
        n_told += r->groups[i].n_told;
    say_hang(r, &v->verdict);
    if (say_slow(v, &v->verdict))
        return;
    if (r->n_ranks < 2)
        sv_buf_str(&v->verdict, "One rank: there is nothing to compare. Give the traces of all "
                                "ranks.\n");
    else if (n_told)
        sv_buf_str(&v->verdict, "No rank is slow: none is last more often, and at a cost, than "
                                "equal ranks are, and none costs much.\n");
    else if (!r->n_differences)
        sv_buf_str(&v->verdict, "Cannot tell who is slow: of no collective it is known who was "
                                "last.\n");
}

/* ---- cells ---- */

struct cells {
    struct sv_cell *next;
};

static void whole(struct cells *c, int64_t n)
{
    *c->next++ = n < 0 ? sv_cell_null() : sv_cell_int(n);
}

static void count(struct cells *c, uint64_t n)
{
    *c->next++ = sv_cell_int((int64_t)n);
}

static void real(struct cells *c, double v)
{
    *c->next++ = sv_cell_real(v);
}

static void buffer(struct cells *c, struct sv_buf *b)
{
    const char *text = sv_buf_cstr(b);
    *c->next++ = b->len ? (struct sv_cell){.type = SV_CELL_TEXT, .text = text, .len = b->len}
                        : sv_cell_null();
}

static void word(struct cells *c, const char *text)
{
    *c->next++ = *text ? sv_cell_text(text) : sv_cell_null();
}

/* Number, and the name where there is none. */
static void rank_cells(struct cells *c, const struct view *v, uint32_t rank)
{
    if (rank == SV_COMM_NO_RANK) {
        *c->next++ = sv_cell_null();
        return;
    }
    sv_buf_clear(&v->texts[0]);
    put_rank(v->r, rank, &v->texts[0]);
    if (v->r->ranks[rank].number >= 0)
        whole(c, v->r->ranks[rank].number);
    else
        buffer(c, &v->texts[0]);
}

/* rank: whose they are; SV_COMM_NO_RANK: nobody's. */
static void before_cells(struct cells *c, const struct view *v, const int64_t *ns, uint32_t rank)
{
    const struct sv_comm_rank *is = rank == SV_COMM_NO_RANK ? NULL : &v->r->ranks[rank];
    for (int k = 0; k < SV_N_BEFORE; k++) {
        bool is_of_states = k == SV_BEFORE_IDLE || k == SV_BEFORE_RUN_QUEUE;
        bool is_known = is && is->has_before && (is->has_states || !is_of_states);
        *c->next++ = is_known ? sv_cell_int(ns[k]) : sv_cell_null();
    }
}

#define BEFORE_COLUMNS(prefix, shown)                                                              \
    {prefix "compute_ns", shown "compute", SV_UNIT_NS}, {prefix "io_ns", shown "I/O", SV_UNIT_NS}, \
        {prefix "loader_ns", shown "loader", SV_UNIT_NS},                                          \
        {prefix "copy_ns", shown "copy", SV_UNIT_NS},                                              \
        {prefix "comm_ns", shown "comm", SV_UNIT_NS},                                              \
        {prefix "other_ns", shown "other", SV_UNIT_NS},                                            \
        {prefix "idle_ns", shown "idle", SV_UNIT_NS},                                              \
        {prefix "run_queue_ns", shown "run queue", SV_UNIT_NS},                                    \
    {                                                                                              \
        prefix "unknown_ns", shown "unknown", SV_UNIT_NS                                           \
    }

#define HIDDEN_BEFORE_COLUMNS(prefix)                                                    \
    {prefix "compute_ns", NULL, SV_UNIT_NS}, {prefix "io_ns", NULL, SV_UNIT_NS},         \
        {prefix "loader_ns", NULL, SV_UNIT_NS}, {prefix "copy_ns", NULL, SV_UNIT_NS},    \
        {prefix "comm_ns", NULL, SV_UNIT_NS}, {prefix "other_ns", NULL, SV_UNIT_NS},     \
        {prefix "idle_ns", NULL, SV_UNIT_NS}, {prefix "run_queue_ns", NULL, SV_UNIT_NS}, \
    {                                                                                    \
        prefix "unknown_ns", NULL, SV_UNIT_NS                                            \
    }

/* ---- sections ---- */

static const struct sv_report_column summary_columns[] = {
    {"ranks", "ranks", SV_UNIT_COUNT},
    {"groups", "groups", SV_UNIT_COUNT},
    {"collectives", "collectives", SV_UNIT_COUNT},
    {"calls", "calls", SV_UNIT_COUNT},
    {"compared", "compared", SV_UNIT_COUNT},
    {"skew_median_ns", "skew, median", SV_UNIT_NS},
    {"transfer_median_ns", "transfer, median", SV_UNIT_NS},
    {"arrival_ns", "skew, sum", SV_UNIT_NS},
    {"transfer_ns", "transfer, sum", SV_UNIT_NS},
    {"wait_ns", "waited, all ranks", SV_UNIT_NS},
    {"clock_error_ns", "error of clocks", SV_UNIT_NS},
    {"passed_on", "passed on from other groups", SV_UNIT_COUNT},
    {"alone", "groups of one rank", SV_UNIT_COUNT},
    {"missing", "cannot tell: ranks missing", SV_UNIT_COUNT},
    {"unfinished", "cannot tell: unfinished", SV_UNIT_COUNT},
    {"differs", "cannot tell: kinds differ", SV_UNIT_COUNT},
    {"clocks", "cannot tell: within error", SV_UNIT_COUNT},
    {"unrelated", "cannot tell: no clocks", SV_UNIT_COUNT},
    {"broken", "cannot tell: left too early", SV_UNIT_COUNT},
    {"differences", "differences", SV_UNIT_COUNT},
    {"slow", NULL, SV_UNIT_TEXT},
    {"slow_hosts", NULL, SV_UNIT_TEXT},
    {"waited_for", NULL, SV_UNIT_TEXT},
    {"verdict", NULL, SV_UNIT_TEXT},
};

/* Of what is known. */
static int64_t sum_of(const struct sv_comm_report *r, bool of_skew)
{
    int64_t sum = 0;
    for (size_t i = 0; i < r->n; i++) {
        int64_t ns = of_skew ? r->collectives[i].skew_ns : r->collectives[i].transfer_ns;
        sum = ns > 0 ? sv_sat_add(sum, ns) : sum;
    }
    return sum;
}

static void fill_summary(const struct sv_section *s, size_t row, struct sv_cell *cells)
{
    const struct view *v = s->data;
    const struct sv_comm_report *r = v->r;
    struct cells c = {cells};
    (void)row;
    count(&c, r->n_ranks);
    count(&c, r->n_groups);
    count(&c, r->n);
    count(&c, r->n_calls);
    count(&c, r->by_doubt[SV_COMM_TOLD]);
    whole(&c, (int64_t)r->skew_median_ns);
    whole(&c, (int64_t)r->transfer_median_ns);
    whole(&c, sum_of(r, true));
    whole(&c, sum_of(r, false));
    whole(&c, r->wait_ns);
    whole(&c, r->clock_error_ns);
    count(&c, r->n_passed_on);
    for (int k = SV_COMM_ALONE; k < SV_N_COMM_DOUBTS; k++)
        *c.next++ = r->by_doubt[k] ? sv_cell_int((int64_t)r->by_doubt[k]) : sv_cell_null();
    count(&c, r->n_differences);
    sv_buf_clear(&v->texts[0]);
    for (uint32_t i = 0; i < r->n_ranks; i++)
        if (r->ranks[v->lost_most[i]].is_slow) {
            sv_buf_str(&v->texts[0], v->texts[0].len ? ", " : "");
            put_rank(r, v->lost_most[i], &v->texts[0]);
        }
    buffer(&c, &v->texts[0]);
    sv_buf_clear(&v->texts[2]);
    for (size_t i = 0; i < r->n_hosts; i++)
        if (r->hosts[v->hosts_most[i]].is_slow)
            sv_buf_printf(&v->texts[2], "%s%s", v->texts[2].len ? ", " : "",
                          r->hosts[v->hosts_most[i]].name);
    buffer(&c, &v->texts[2]);
    sv_buf_clear(&v->texts[1]);
    put_ranks(r, r->culprits, r->n_culprits, &v->texts[1]);
    buffer(&c, &v->texts[1]);
    *c.next++ = (struct sv_cell){.type = SV_CELL_TEXT,
                                 .text = v->verdict.data ? (const char *)v->verdict.data : "",
                                 .len = v->verdict.len ? v->verdict.len - 1 : 0};
}

static const struct sv_report_column rank_columns[] = {
    {"rank", "rank", SV_UNIT_COUNT},
    {"calls", "collectives", SV_UNIT_COUNT},
    {"judged", "judged", SV_UNIT_COUNT},
    {"last", "last", SV_UNIT_COUNT},
    {"expected", "expected", SV_UNIT_REAL},
    {"lost_ns", "lost", SV_UNIT_NS},
    {"lead_median_ns", "median", SV_UNIT_NS},
    {"wait_ns", "waits", SV_UNIT_NS},
    BEFORE_COLUMNS("before_", ""),
    HIDDEN_BEFORE_COLUMNS("excess_"),
    {"p_value", NULL, SV_UNIT_REAL},
    {"lost_share", NULL, SV_UNIT_SHARE},
    {"is_slow", NULL, SV_UNIT_COUNT},
    {"verdict", "verdict", SV_UNIT_TEXT},
};

/* Where no trace says what ranks did before. */
static const struct sv_report_column short_rank_columns[] = {
    {"rank", "rank", SV_UNIT_COUNT},          {"calls", "collectives", SV_UNIT_COUNT},
    {"judged", "judged", SV_UNIT_COUNT},      {"last", "last", SV_UNIT_COUNT},
    {"expected", "expected", SV_UNIT_REAL},   {"lost_ns", "lost", SV_UNIT_NS},
    {"lead_median_ns", "median", SV_UNIT_NS}, {"wait_ns", "waits", SV_UNIT_NS},
    HIDDEN_BEFORE_COLUMNS("before_"),         HIDDEN_BEFORE_COLUMNS("excess_"),
    {"p_value", NULL, SV_UNIT_REAL},          {"lost_share", NULL, SV_UNIT_SHARE},
    {"is_slow", NULL, SV_UNIT_COUNT},         {"verdict", "verdict", SV_UNIT_TEXT},
};
_Static_assert(sizeof short_rank_columns == sizeof rank_columns, "the same columns");

static void fill_rank(const struct sv_section *s, size_t row, struct sv_cell *cells)
{
    const struct view *v = s->data;
    const struct sv_comm_rank *k = &v->r->ranks[v->lost_most[row]];
    struct cells c = {cells};
    rank_cells(&c, v, v->lost_most[row]);
    count(&c, k->calls);
    count(&c, k->judged);
    count(&c, k->last);
    real(&c, k->expected);
    whole(&c, k->lost_ns);
    *c.next++ = k->last ? sv_cell_int(k->lead_median_ns) : sv_cell_null();
    whole(&c, k->wait_ns);
    uint32_t of = k->last ? v->lost_most[row] : SV_COMM_NO_RANK;
    before_cells(&c, v, k->before_ns, of);
    before_cells(&c, v, k->excess_ns, of);
    real(&c, k->p_value);
    real(&c, k->lost_share);
    count(&c, k->is_slow);
    word(&c, k->is_slow ? "slow" : "");
}

static const struct sv_report_column host_columns[] = {
    {"host", "host", SV_UNIT_TEXT},         {"ranks", "ranks", SV_UNIT_COUNT},
    {"judged", "judged", SV_UNIT_COUNT},    {"last", "last", SV_UNIT_COUNT},
    {"expected", "expected", SV_UNIT_REAL}, {"lost_ns", "lost", SV_UNIT_NS},
    {"p_value", NULL, SV_UNIT_REAL},        {"lost_share", "of the time", SV_UNIT_SHARE},
    {"is_slow", NULL, SV_UNIT_COUNT},       {"verdict", "verdict", SV_UNIT_TEXT},
};

static void fill_host(const struct sv_section *s, size_t row, struct sv_cell *cells)
{
    const struct view *v = s->data;
    const struct sv_comm_host *h = &v->r->hosts[v->hosts_most[row]];
    struct cells c = {cells};
    word(&c, h->name);
    count(&c, h->n_ranks);
    count(&c, h->judged);
    count(&c, h->last);
    real(&c, h->expected);
    whole(&c, h->lost_ns);
    real(&c, h->p_value);
    real(&c, h->lost_share);
    count(&c, h->is_slow);
    word(&c, h->is_slow ? "slow" : "");
}

static const struct sv_report_column group_columns[] = {
    {"group", "group", SV_UNIT_TEXT},    {"size", "size", SV_UNIT_COUNT},
    {"ranks", "ranks", SV_UNIT_TEXT},    {"collectives", "collectives", SV_UNIT_COUNT},
    {"judged", "judged", SV_UNIT_COUNT}, {"first_seq", NULL, SV_UNIT_COUNT},
    {"last_seq", NULL, SV_UNIT_COUNT},   {"is_counted", NULL, SV_UNIT_COUNT},
};

static void fill_group(const struct sv_section *s, size_t row, struct sv_cell *cells)
{
    const struct view *v = s->data;
    const struct sv_comm_group *g = &v->r->groups[row];
    struct cells c = {cells};
    sv_buf_clear(&v->texts[0]);
    put_group(v->r, (uint32_t)row, &v->texts[0]);
    buffer(&c, &v->texts[0]);
    whole(&c, g->size);
    sv_buf_clear(&v->texts[1]);
    put_ranks(v->r, g->members, g->n_members, &v->texts[1]);
    buffer(&c, &v->texts[1]);
    count(&c, g->n);
    count(&c, g->n_told);
    whole(&c, g->n ? v->r->collectives[g->first].seq : -1);
    whole(&c, g->n ? v->r->collectives[g->first + g->n - 1].seq : -1);
    count(&c, g->is_counted);
}

static const struct sv_report_column collective_columns[] = {
    {"group", "group", SV_UNIT_TEXT},
    {"seq", "number", SV_UNIT_COUNT},
    {"op", "operation", SV_UNIT_TEXT},
    {"bytes", "bytes", SV_UNIT_BYTES},
    {"ts_ns", NULL, SV_UNIT_COUNT},
    {"end_ns", NULL, SV_UNIT_COUNT},
    {"ranks", "ranks", SV_UNIT_COUNT},
    {"skew_ns", "skew", SV_UNIT_NS},
    {"transfer_ns", "transfer", SV_UNIT_NS},
    {"error_ns", "error", SV_UNIT_NS},
    {"by", NULL, SV_UNIT_TEXT},
    {"last", "last", SV_UNIT_COUNT},
    {"lead_ns", "by", SV_UNIT_NS},
    {"first", NULL, SV_UNIT_COUNT},
    {"is_passed_on", NULL, SV_UNIT_COUNT},
    HIDDEN_BEFORE_COLUMNS("before_"),
    {"cannot_tell", "cannot tell", SV_UNIT_TEXT},
};

static void fill_collective(const struct sv_section *s, size_t row, struct sv_cell *cells)
{
    const struct view *v = s->data;
    const struct sv_comm_collective *k = &v->r->collectives[v->late_first[row]];
    struct cells c = {cells};
    sv_buf_clear(&v->texts[1]);
    put_group(v->r, k->group, &v->texts[1]);
    buffer(&c, &v->texts[1]);
    *c.next++ = sv_cell_int(k->seq);
    word(&c, sv_comm_op_name(k->op));
    whole(&c, k->bytes);
    *c.next++ = sv_cell_int(k->ts_ns);
    *c.next++ = sv_cell_int(k->end_ns);
    count(&c, k->n);
    whole(&c, k->skew_ns);
    whole(&c, k->transfer_ns);
    whole(&c, k->error_ns);
    word(&c, sv_comm_method_names[k->method]);
    bool is_told = k->last != SV_COMM_NO_RANK;
    rank_cells(&c, v, k->last);
    whole(&c, is_told ? k->lead_ns : -1);
    whole(&c, is_told ? v->r->ranks[k->first_rank].number : -1);
    count(&c, k->is_passed_on);
    before_cells(&c, v, k->before_ns, k->is_passed_on ? SV_COMM_NO_RANK : k->last);
    word(&c, sv_comm_doubt_reasons[k->doubt]);
}

static const struct sv_report_column difference_columns[] = {
    {"kind", "difference", SV_UNIT_TEXT}, {"group", "group", SV_UNIT_TEXT},
    {"seq", "number", SV_UNIT_COUNT},     {"op", "operation", SV_UNIT_TEXT},
    {"ts_ns", NULL, SV_UNIT_COUNT},       {"ranks", "ranks", SV_UNIT_TEXT},
    {"waiting", "waiting", SV_UNIT_TEXT}, {"text", NULL, SV_UNIT_TEXT},
};

static void fill_difference(const struct sv_section *s, size_t row, struct sv_cell *cells)
{
    const struct view *v = s->data;
    const struct sv_comm_difference *d = &v->r->differences[row];
    const struct sv_comm_collective *k = &v->r->collectives[d->collective];
    struct cells c = {cells};
    for (int i = 0; i < 4; i++)
        sv_buf_clear(&v->texts[i]);
    word(&c, sv_comm_difference_names[d->kind]);
    put_group(v->r, k->group, &v->texts[0]);
    buffer(&c, &v->texts[0]);
    *c.next++ = sv_cell_int(k->seq);
    word(&c, sv_comm_op_name(k->op));
    *c.next++ = sv_cell_int(d->ts_ns);
    put_ranks(v->r, d->ranks, d->n_ranks, &v->texts[1]);
    buffer(&c, &v->texts[1]);
    put_ranks(v->r, d->waiting, d->n_waiting, &v->texts[2]);
    buffer(&c, &v->texts[2]);
    say_difference(v->r, d, &v->texts[3]);
    buffer(&c, &v->texts[3]);
}

/* ---- the subject ---- */

static int by_lead(const void *a, const void *b, void *ctx)
{
    const struct sv_comm_collective *all = ctx;
    const struct sv_comm_collective *x = &all[*(const size_t *)a], *y = &all[*(const size_t *)b];
    if (x->skew_ns != y->skew_ns)
        return x->skew_ns > y->skew_ns ? -1 : 1;
    return (*(const size_t *)a > *(const size_t *)b) - (*(const size_t *)a < *(const size_t *)b);
}

static int by_host_loss(const void *a, const void *b, void *ctx)
{
    const struct sv_comm_host *all = ctx;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (all[x].lost_ns != all[y].lost_ns)
        return all[x].lost_ns > all[y].lost_ns ? -1 : 1;
    return (x > y) - (x < y);
}

/* A line for each sentence. */
static void print_verdict(struct view *v)
{
    const char *p = sv_buf_cstr(&v->verdict);
    for (size_t len; *p; p += len + (p[len] == '\n')) {
        len = strcspn(p, "\n");
        sv_print(stdout, "%.*s\n", (int)len, p);
    }
    sv_print(stdout, "\n");
}

static bool says_before(const struct sv_comm_report *r)
{
    bool has_any = false;
    for (size_t i = 0; i < r->n_ranks; i++)
        has_any |= r->ranks[i].last && r->ranks[i].has_before;
    return has_any;
}

static int print(struct view *v, const struct sv_report_options *o, struct sv_err *err)
{
    const struct sv_comm_report *r = v->r;
    bool is_brief = !o->json && !o->csv && !o->by, is_long = says_before(r);
    const struct sv_section sections[] = {
        {.name = "summary",
         .title = "Summary",
         COLUMNS(summary_columns),
         .n_rows = 1,
         .is_one = true,
         .fill = fill_summary,
         .data = v},
        {.name = "difference",
         .title = "Differences, the first one first",
         COLUMNS(difference_columns),
         .n_rows = r->n_differences,
         .fill = fill_difference,
         .data = v},
        {.name = "rank",
         .title = is_long ? "Ranks: how often last, what it cost, and what they did before"
                          : "Ranks: how often last, and what it cost",
         .columns = is_long ? rank_columns : short_rank_columns,
         .n_columns = sizeof rank_columns / sizeof *rank_columns,
         .n_rows = is_brief && r->by_doubt[SV_COMM_TOLD] == 0 ? 0 : r->n_ranks,
         .fill = fill_rank,
         .data = v},
        {.name = "host",
         .title = "Hosts: how often one of their ranks is last, and what it costs",
         COLUMNS(host_columns),
         .n_rows = r->n_hosts,
         .fill = fill_host,
         .data = v},
        {.name = "group",
         .title = "Groups",
         COLUMNS(group_columns),
         .n_rows = r->n_groups,
         .fill = fill_group,
         .data = v},
        {.name = "collective",
         .title = "Collectives, the largest skew first",
         COLUMNS(collective_columns),
         .n_rows = r->n,
         .fill = fill_collective,
         .data = v},
    };
    if (is_brief)
        print_verdict(v);
    return sv_sections_print(sections, sizeof sections / sizeof *sections, o, err);
}

static int print_all(const struct sv_comm_report *r, const struct sv_report_options *o,
                     struct sv_err *err)
{
    struct sv_buf texts[4];
    struct view v = {.r = r,
                     .texts = texts,
                     .late_first = sv_alloc((r->n + 1) * sizeof *v.late_first),
                     .lost_most = sv_alloc((r->n_ranks + 1) * sizeof *v.lost_most),
                     .hosts_most = sv_alloc((r->n_hosts + 1) * sizeof *v.hosts_most)};
    for (size_t i = 0; i < 4; i++)
        sv_buf_init(&texts[i], TEXT_BYTES);
    sv_buf_init(&v.verdict, TEXT_BYTES);
    for (size_t i = 0; i < r->n; i++)
        v.late_first[i] = i;
    qsort_r(v.late_first, r->n, sizeof *v.late_first, by_lead, r->collectives);
    for (uint32_t i = 0; i < r->n_ranks; i++)
        v.lost_most[i] = i;
    qsort_r(v.lost_most, r->n_ranks, sizeof *v.lost_most, sv_comm_by_loss, r->ranks);
    for (uint32_t i = 0; i < r->n_hosts; i++)
        v.hosts_most[i] = i;
    qsort_r(v.hosts_most, r->n_hosts, sizeof *v.hosts_most, by_host_loss, r->hosts);
    make_verdict(&v);
    int code = print(&v, o, err);
    for (size_t i = 0; i < 4; i++)
        sv_buf_fini(&texts[i]);
    sv_buf_fini(&v.verdict);
    free(v.late_first);
    free(v.lost_most);
    free(v.hosts_most);
    return code;
}

static int run_comm(const struct sv_report_options *o, const struct sv_trace *t, struct sv_err *err)
{
    struct sv_comm_report r;
    sv_comm_report_make(&r, t);
    int code =
        r.n_calls == 0
            ? sv_err_set(err, SV_EINPUT, SV_NO_POS,
                         "%s has no collectives: no slices of category collective and no "
                         "kernels called ncclKernel… or ncclDevKernel… (docs/comm.md); 'stave "
                         "whatif' also reads timelines of pipelines",
                         o->path)
            : print_all(&r, o, err);
    sv_comm_report_fini(&r);
    return code;
}

const struct sv_report_subject sv_comm_report = {
    .name = "comm",
    .sections = "summary rank host group collective difference",
    .options = "assume",
    .takes_many = true,
    .run = run_comm,
};
