/* The order of rows, and which groups are gathered at their end. Called by all that draw a time
 * line. */
#include "plot/row_order.h"

#include "core/base/mem.h"

#include <stdlib.h>

#define TRIVIAL 1000u /* such a part of the slices and of the time */

/* The rows [first, end) are those of a group. */
static enum sv_gather gather_of(const struct sv_track_rows *r, const struct sv_strips *s,
                                size_t first, size_t end)
{
    const struct sv_trace *t = r->trace;
    sv_track group = r->items[first].group;
    uint64_t n_slices = 0, busy_ns = 0, span = (uint64_t)t->last_ns - (uint64_t)t->first_ns;
    bool has_slices = false;
    for (size_t i = first; i < end; i++) {
        if (!r->items[i].lines)
            continue;
        has_slices = true;
        n_slices += sv_strips_count(s, i);
        busy_ns += sv_strips_busy_ns(s, i) * (r->items[i].depth == 0);
    }
    if (group == 0)
        return SV_GATHER_NOT;
    if (t->dict->tracks[group].kind != SV_TRACK_PROCESS)
        return has_slices ? SV_GATHER_NOT : SV_GATHER_MACHINE;
    return n_slices < t->slices.n / TRIVIAL && busy_ns < span / TRIVIAL ? SV_GATHER_OTHER
                                                                        : SV_GATHER_NOT;
}

static size_t group_end(const struct sv_track_rows *r, size_t first)
{
    size_t end = first + 1;
    while (end < r->n && r->items[end].group == r->items[first].group)
        end++;
    return end;
}

static void gather(struct sv_row_order *o, const struct sv_track_rows *r, const struct sv_strips *s,
                   const uint32_t *wanted, size_t n)
{
    for (size_t i = 0, end; i < r->n; i = end) {
        end = group_end(r, i);
        enum sv_gather kind = gather_of(r, s, i, end);
        for (size_t k = 0; k < n; k++)
            if (wanted[k] >= i && wanted[k] < end)
                kind = SV_GATHER_NOT;
        for (size_t k = i; k < end; k++)
            o->gather[k] = (uint8_t)kind;
        o->n_groups[kind]++;
    }
    for (size_t i = 0; i < r->n; i++)
        if (o->n_groups[o->gather[i]] < SV_GATHER_LEAST)
            o->gather[i] = SV_GATHER_NOT;
}

void sv_row_order_make(struct sv_row_order *o, const struct sv_track_rows *r,
                       const struct sv_strips *s, const uint32_t *first, size_t n)
{
    uint32_t *ordered = sv_alloc((r->n + 1) * sizeof *ordered);
    *o = (struct sv_row_order){.rows = sv_alloc((r->n + 1) * sizeof *o->rows),
                               .gather = sv_alloc(r->n + 1)};
    gather(o, r, s, first, n);
    sv_rows_order(r, first, n, ordered);
    size_t at = 0;
    for (unsigned kind = 0; kind < SV_N_GATHERS; kind++)
        for (size_t i = 0; i < r->n; i++)
            if (o->gather[ordered[i]] == kind)
                o->rows[at++] = ordered[i];
    free(ordered);
}

void sv_row_order_fini(struct sv_row_order *o)
{
    free(o->rows);
    free(o->gather);
    *o = (struct sv_row_order){0};
}

void sv_gather_name(const struct sv_row_order *o, enum sv_gather gather, struct sv_buf *to)
{
    sv_buf_printf(to, gather == SV_GATHER_MACHINE ? "The machine (%zu groups)" : "%zu others",
                  o->n_groups[gather]);
}
