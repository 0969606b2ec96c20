/* The balance of a Chrome file: ends without begins, begins without ends, flows that end without
 * having begun.
 *
 * The phases call it for every begin, end and flow point, the reader once at the end, when it is
 * reported with the byte position of the first of each kind. Files of Stave's own are not looked
 * at: they hold what their source held. Files need not be in time order: an end that the file has
 * before its begin is paired with it if their times allow. Memory holds a number per track, what is
 * open or unmatched, and a bounded number of flows; past that bound flows are no longer watched.
 * Nearly half of a profiler's events are flow points, so their table is flat, and a point is
 * entered only after its slot had time to come. */
#include "formats/chrome/reader.h"

#include <stdlib.h>

#define FLOWS_MAX   (1u << 18)
#define TRACKS_KEPT 1024u /* tracks whose place is kept while nothing is open on them */

/* ---- begins and ends ---- */

/* One track with something open or unmatched. */
struct chrome_open {
    uint32_t depth, unmatched;       /* begins that are open; ends that had none */
    int64_t open_pos, unmatched_pos; /* of the outermost open begin; of the first such end */
    int64_t unmatched_ns;            /* the latest such end */
};

static struct chrome_open *open_of(struct chrome_balance *b, sv_track track)
{
    if (__builtin_expect(track >= b->cap_tracks, 0)) {
        size_t old = b->cap_tracks;
        b->tracks = sv_grow(b->tracks, &b->cap_tracks, (size_t)track + 1, sizeof *b->tracks);
        memset(b->tracks + old, 0, (b->cap_tracks - old) * sizeof *b->tracks);
    }
    if (b->tracks[track] == 0) {
        uint32_t at = b->n_free ? b->free[--b->n_free] : (uint32_t)b->n++;
        b->open = sv_grow(b->open, &b->cap, b->n, sizeof *b->open);
        b->open[at] = (struct chrome_open){0};
        b->tracks[track] = at + 1;
    }
    return &b->open[b->tracks[track] - 1];
}

static void forget(struct chrome_balance *b, sv_track track)
{
    SV_APPEND(b->free, b->n_free, b->cap_free) = b->tracks[track] - 1;
    b->tracks[track] = 0;
}

void chrome_balance_edge(struct chrome_balance *b, const struct sv_event *e, int64_t pos)
{
    struct chrome_open *o = open_of(b, e->track);
    if (e->kind == SV_BEGIN) {
        if (o->unmatched && e->ts_ns <= o->unmatched_ns)
            o->unmatched--;
        else if (o->depth++ == 0)
            o->open_pos = pos;
    } else if (o->depth) {
        o->depth--;
    } else {
        if (o->unmatched++ == 0) {
            o->unmatched_pos = pos;
            o->unmatched_ns = e->ts_ns;
        }
        if (e->ts_ns > o->unmatched_ns)
            o->unmatched_ns = e->ts_ns;
    }
    if (o->depth == 0 && o->unmatched == 0 && b->n > TRACKS_KEPT)
        forget(b, e->track);
}

/* ---- flows ---- */

/* A slot is the flow's number, mixed, without its lowest bit, and that bit says that it began.
 * Numbers that differ in that bit only are taken for one: a chance of one in 2^63. */
#define BEGUN 1u

static uint64_t *slot_of(const struct chrome_balance *b, uint64_t key)
{
    size_t mask = b->cap_flows - 1;
    size_t i = (size_t)(key >> 20) & mask;
    while (b->flows[i] && ((b->flows[i] ^ key) & ~(uint64_t)BEGUN))
        i = (i + 1) & mask;
    return &b->flows[i];
}

static void grow_flows(struct chrome_balance *b)
{
    uint64_t *old = b->flows;
    size_t n = b->cap_flows;
    b->cap_flows = n ? n * 2 : 1024;
    /* Written at once: pages that are looked at before would come twice. */
    b->flows = sv_realloc(NULL, b->cap_flows * sizeof *b->flows);
    memset(b->flows, 0, b->cap_flows * sizeof *b->flows);
    for (size_t i = 0; i < n; i++)
        if (old[i])
            *slot_of(b, old[i]) = old[i];
    free(old);
}

/* An end whose flow is unknown so far is remembered: the begin may still come. */
static void enter_flow(struct chrome_balance *b, const struct chrome_flow_point *p)
{
    uint64_t *slot = slot_of(b, p->key);
    if (*slot == 0) {
        b->n_flows++;
        if (!(p->key & BEGUN)) {
            b->suspects = sv_grow(b->suspects, &b->cap_suspects, b->n_suspects + 1, sizeof *p);
            b->suspects[b->n_suspects++] = *p;
        }
    }
    *slot |= p->key;
    if (b->n_flows > b->cap_flows / 2)
        grow_flows(b);
}

void chrome_balance_flow(struct chrome_balance *b, const struct sv_event *e, int64_t pos)
{
    if (b->n_flows >= FLOWS_MAX)
        return;
    if (b->cap_flows == 0)
        grow_flows(b);
    struct chrome_flow_point *p = &b->waiting[b->n_waiting++ % CHROME_WAITING];
    if (p->key)
        enter_flow(b, p);
    p->key = (sv_mix64(e->args[0].u) | 2u) & ~(uint64_t)BEGUN;
    p->key |= e->args[0].type == SV_ARG_FLOW_BEGIN ? BEGUN : 0;
    p->pos = pos;
    __builtin_prefetch(&b->flows[(size_t)(p->key >> 20) & (b->cap_flows - 1)], 1);
}

/* ---- the report ---- */

static void first_of(int64_t *first, int64_t pos)
{
    if (*first == SV_NO_POS || pos < *first)
        *first = pos;
}

static void report_edges(struct chrome_reader *r)
{
    const struct chrome_balance *b = &r->balance;
    uint64_t ends = 0, begins = 0;
    int64_t first_end = SV_NO_POS, first_begin = SV_NO_POS;
    for (size_t i = 0; i < b->n; i++) { /* free ones are empty */
        const struct chrome_open *o = &b->open[i];
        ends += o->unmatched;
        begins += o->depth;
        if (o->unmatched)
            first_of(&first_end, o->unmatched_pos);
        if (o->depth)
            first_of(&first_begin, o->open_pos);
    }
    if (ends)
        sv_report_add(r->source.report, SV_DAMAGE, "end without a begin", ends, first_end, NULL);
    if (begins)
        sv_report_add(r->source.report, SV_DAMAGE, "begin without an end", begins, first_begin,
                      NULL);
}

static void report_flows(struct chrome_reader *r)
{
    struct chrome_balance *b = &r->balance;
    uint64_t n = 0;
    int64_t first = SV_NO_POS;
    for (size_t i = 0; i < CHROME_WAITING; i++) {
        const struct chrome_flow_point *p = &b->waiting[(b->n_waiting + i) % CHROME_WAITING];
        if (p->key)
            enter_flow(b, p);
    }
    for (size_t i = 0; i < b->n_suspects; i++) {
        if (*slot_of(b, b->suspects[i].key) & BEGUN)
            continue;
        n++;
        first_of(&first, b->suspects[i].pos);
    }
    /* PyTorch's profiler ends a flow at every runtime call, begun or not: a note, or all of its
     * files would be damaged. */
    if (n)
        sv_report_add(r->source.report, SV_NOTE, "flow that never began", n, first, NULL);
}

void chrome_balance_report(struct chrome_reader *r)
{
    if (r->balance.is_reported)
        return;
    r->balance.is_reported = true;
    report_edges(r);
    report_flows(r);
}

void chrome_balance_fini(struct chrome_balance *b)
{
    free(b->tracks);
    free(b->flows);
    free(b->suspects);
    free(b->open);
    free(b->free);
}
