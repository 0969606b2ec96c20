/* The balance of a Chrome file: ends without begins, begins without ends, flows that end without having begun.
 *
 * The phases call it for every begin, end and flow point, the reader once at the end, when it is reported with the byte position of
 * the first of each kind. Files of Stave's own are not looked at: they hold what their source held. Files need not be in time order: an end that the file has before its begin is paired with it if their times
 * allow. Memory holds what is open or unmatched, and a bounded number of flows; past that bound flows are no longer watched. */
#include "formats/chrome_reader.h"

#include <stdlib.h>

#define FLOWS_MAX (1u << 18)

enum { FLOW_BEGUN = 1, FLOW_ENDED = 2 };

/* One track with something open or unmatched. */
struct chrome_open {
    uint32_t depth, unmatched;       /* begins that are open; ends that had none */
    int64_t open_pos, unmatched_pos; /* of the outermost open begin; of the first such end */
    int64_t unmatched_ns;            /* the latest such end */
};

static struct chrome_open *open_of(struct chrome_balance *b, sv_track track)
{
    bool is_new;
    uint64_t *slot = sv_map_add(&b->tracks, track, &is_new);
    if (is_new) {
        uint32_t at = b->n_free ? b->free[--b->n_free] : (uint32_t)b->n++;
        b->open = sv_grow(b->open, &b->cap, b->n, sizeof *b->open);
        b->open[at] = (struct chrome_open){0};
        *slot = at;
    }
    return &b->open[*slot];
}

static void forget(struct chrome_balance *b, sv_track track, const struct chrome_open *o)
{
    if (o->depth || o->unmatched)
        return;
    b->free = sv_grow(b->free, &b->cap_free, b->n_free + 1, sizeof *b->free);
    b->free[b->n_free++] = (uint32_t)(o - b->open);
    sv_map_remove(&b->tracks, track);
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
    forget(b, e->track, o);
}

void chrome_balance_flow(struct chrome_balance *b, const struct sv_event *e, int64_t pos)
{
    if (b->flows.n >= FLOWS_MAX)
        return;
    uint64_t *state = sv_map_add(&b->flows, e->args[0].u, NULL);
    uint64_t bit = e->args[0].type == SV_ARG_FLOW_BEGIN ? FLOW_BEGUN : FLOW_ENDED;
    if (*state == 0)
        *state = (uint64_t)pos << 2;
    *state |= bit;
}

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
    const struct sv_map *flows = &r->balance.flows;
    uint64_t n = 0;
    int64_t first = SV_NO_POS;
    for (size_t i = 0; i < flows->cap; i++) {
        if (!flows->used[i] || (flows->slots[i].value & 3) != FLOW_ENDED)
            continue;
        n++;
        first_of(&first, (int64_t)(flows->slots[i].value >> 2));
    }
    /* PyTorch's profiler ends a flow at every runtime call, begun or not: a note, or all of its files would be damaged. */
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
    sv_map_fini(&b->tracks);
    sv_map_fini(&b->flows);
    free(b->open);
    free(b->free);
}
