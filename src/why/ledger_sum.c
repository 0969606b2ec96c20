/* A ledger of very many pieces: short ones of a unit that are alike become one. Called by
 * why/ledger.c.
 *
 * Alike are pieces of the same class, doing, doer, file or slice, and chain of edges, all of them
 * moments or none. Those that take a good part of their unit stay as they are. A sum has the time
 * of its first piece and the length of all, so the unit's time still adds up. */
#include "why/ledger.h"

#include "core/base/map.h"
#include "core/base/mem.h"

#include <stdlib.h>
#include <string.h>

enum { WHOLE_PART = 64 };

static uint64_t mix(uint64_t hash, uint64_t x)
{
    return sv_mix64(hash ^ x);
}

static uint64_t chain_of(const struct sv_ledger *l, uint32_t edge)
{
    uint64_t hash = 1;
    for (; edge != SV_NO_EDGE; edge = l->edges[edge].before) {
        const struct sv_why_edge *e = &l->edges[edge];
        const struct sv_lock_wait *wait = sv_why_edge_wait(l, edge);
        hash = mix(mix(mix(hash, e->thread), e->to), (uint64_t)e->reason << 1 | e->by_flow);
        hash = wait ? mix(mix(hash, wait->lock), (uint64_t)wait->use) : hash;
    }
    return hash;
}

static bool is_moment(const struct sv_why_piece *p)
{
    return p->is_sum ? p->is_sum == SV_WHY_SUM_OF_MOMENTS : p->dur_ns < SV_WHY_MOMENT_NS;
}

static uint64_t key_of(const struct sv_ledger *l, const struct sv_why_piece *p)
{
    uint64_t hash = mix(chain_of(l, p->edge), (uint64_t)p->class << 16 | (uint64_t)p->doing << 8 |
                                                  (uint64_t)is_moment(p) << 1 | p->is_assumed);
    struct sv_text path = sv_why_path(l, p);
    hash = mix(hash, p->thread);
    if (path.len)
        return mix(hash, sv_hash_bytes(path.bytes, path.len, 11));
    return p->row != SV_NO_ROW ? mix(hash, l->trace->slices.name[p->row]) : hash;
}

/* Edges from `first` on that no piece of the unit needs any more are given up. */
static void drop_edges(struct sv_ledger *l, size_t first_piece, size_t first)
{
    size_t n = l->n_edges - first, kept = first;
    uint32_t *to = sv_alloc((n + 1) * sizeof *to); /* 1: it is needed; then its new place + 1 */
    for (size_t i = first_piece; i < l->n_pieces; i++)
        for (uint32_t e = l->pieces[i].edge; e != SV_NO_EDGE && e >= first && !to[e - first];
             e = l->edges[e].before)
            to[e - first] = 1;
    for (size_t i = 0; i < n; i++) {
        struct sv_why_edge e = l->edges[first + i];
        if (!to[i])
            continue;
        if (e.before != SV_NO_EDGE && e.before >= first)
            e.before = to[e.before - first] - 1;
        to[i] = (uint32_t)kept + 1;
        l->edges[kept++] = e;
    }
    for (size_t i = first_piece; i < l->n_pieces; i++) {
        uint32_t *e = &l->pieces[i].edge;
        *e = *e != SV_NO_EDGE && *e >= first ? to[*e - first] - 1 : *e;
    }
    l->n_edges = kept;
    free(to);
}

void sv_ledger_sum(struct sv_ledger *l, size_t first_piece, size_t first_edge)
{
    struct sv_map sums = {0};
    size_t kept = first_piece;
    int64_t all = 0;
    bool is_new;
    for (size_t i = first_piece; i < l->n_pieces; i++)
        all += l->pieces[i].dur_ns;
    for (size_t i = first_piece; i < l->n_pieces; i++) {
        const struct sv_why_piece p = l->pieces[i];
        if (p.dur_ns >= all / WHOLE_PART && !p.is_sum) {
            l->pieces[kept++] = p;
            continue;
        }
        uint64_t *at = sv_map_add(&sums, key_of(l, &p), &is_new);
        if (is_new) {
            *at = kept;
            l->pieces[kept++] = p;
        } else {
            l->pieces[*at].is_sum = is_moment(&p) ? SV_WHY_SUM_OF_MOMENTS : SV_WHY_SUM;
            l->pieces[*at].dur_ns += p.dur_ns;
        }
    }
    sv_map_fini(&sums);
    l->n_pieces = kept;
    l->is_summed = true;
    drop_edges(l, first_piece, first_edge);
}
