/* Rows of the time line that come first: of those whom the first findings name, and of the unit
 * that took longest. Called by `view`, `show` and `plot timeline`, which draw the rows. */
#include "explain/explain.h"
#include "store/track_rows.h"

#define FIRST_FINDINGS 3

static void add_row(struct sv_explanation *e, uint32_t row)
{
    for (size_t i = 0; i < e->n_rows; i++)
        if (e->rows[i] == row)
            return;
    if (row != SV_NO_ROW && e->n_rows < SV_EXPLAIN_ROWS)
        e->rows[e->n_rows++] = row;
}

/* The row of a thread, or the first one of a process. Several processes or hosts may have threads
 * of one number: then that of the process, if it has one. */
static uint32_t row_of_culprit(const struct sv_culprit *c, const struct sv_track_rows *r)
{
    const struct sv_track_info *tracks = r->trace->dict->tracks;
    uint32_t found = SV_NO_ROW;
    for (uint32_t i = 0; i < r->n; i++) {
        const struct sv_row_info *info = &r->items[i];
        const struct sv_track_info *k = &tracks[info->track];
        bool is_of = c->pid >= 0 && tracks[info->group].kind == SV_TRACK_PROCESS &&
                     tracks[info->group].pid == c->pid;
        bool is_thread = c->tid >= 0 && k->kind == SV_TRACK_THREAD && k->tid == c->tid;
        if (!info->lines || (c->tid < 0 ? !is_of : !is_thread))
            continue;
        if (is_of)
            return i;
        found = found == SV_NO_ROW ? i : found;
    }
    return found;
}

/* The row of the shortest slice that begins with the unit and lasts as long at least. */
static uint32_t row_of_unit(const struct sv_worst *w, const struct sv_track_rows *r)
{
    const struct sv_trace *t = r->trace;
    int64_t shortest_ns = INT64_MAX;
    uint32_t found = SV_NO_ROW;
    for (sv_track k = 1; k < t->n_tracks; k++) {
        uint32_t row = sv_trace_row_from(t, k, w->ts_ns);
        for (; row < t->tracks[k].end && t->slices.ts_ns[row] == w->ts_ns; row++) {
            int64_t dur = t->slices.dur_ns[row];
            if (r->row_of_track[k] == SV_NO_ROW || dur < w->dur_ns || dur >= shortest_ns)
                continue;
            shortest_ns = dur;
            found = r->row_of_track[k];
        }
    }
    return found;
}

void sv_explain_rows(struct sv_explanation *e, const struct sv_track_rows *r)
{
    size_t n = e->n < FIRST_FINDINGS ? e->n : FIRST_FINDINGS;
    e->n_rows = 0;
    for (size_t i = 0; i < n; i++)
        add_row(e, row_of_culprit(&e->findings[i].culprit, r));
    for (size_t i = 0; i < n; i++)
        if (e->findings[i].n_worst) {
            add_row(e, row_of_unit(&e->findings[i].worst[0], r));
            break;
        }
}
