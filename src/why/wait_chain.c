/* The report on waits: the chain behind the longest ones, down to the file and the block request.
 * Called by why/wait.c, once.
 *
 * The chain of a wait is what the ledger says of its time: whoever was active meanwhile. Its cause
 * is the part of it that took most of the time; what one thread did with one file is one part,
 * running or waiting. */
#include "why/wait.h"

#include "core/base/mem.h"
#include "core/base/sat.h"
#include "subjects/io/words.h"

#include <stdlib.h>
#include <string.h>

enum { SEGMENTS_MAX = 2048, PARTS_MAX = 128, REQUESTS_MAX = 100000 };

struct part {
    struct sv_wait_cause cause;
    int64_t most_ns; /* the longest segment: it gives kind and reason */
};

static struct sv_text path_of(const struct sv_wait_report *r, uint32_t row)
{
    if (row == SV_NO_ROW || !sv_state_has_file(&r->ledger.states, row))
        return (struct sv_text){"", 0};
    return sv_call_path(&r->ledger.states, row);
}

static bool is_same(const struct sv_wait_cause *a, const struct sv_wait_cause *b)
{
    if (a->track != b->track || a->path.len != b->path.len ||
        memcmp(a->path.bytes, b->path.bytes, a->path.len) != 0)
        return false;
    return a->path.len || (a->kind == b->kind && a->reason == b->reason);
}

static void find_cause(const struct sv_wait_report *r, struct sv_wait *w)
{
    struct part parts[PARTS_MAX];
    size_t n = 0, best = 0;
    for (size_t i = 0; i < w->chain.n; i++) {
        const struct sv_segment *s = &w->chain.segments[i];
        struct sv_wait_cause c = {.track = s->track,
                                  .kind = s->kind,
                                  .reason = s->reason,
                                  .row = s->row,
                                  .path = path_of(r, s->row),
                                  .block = SV_NO_ROW};
        size_t k = 0;
        while (k < n && !is_same(&parts[k].cause, &c))
            k++;
        if (k == PARTS_MAX)
            continue;
        if (k == n)
            parts[n++] = (struct part){.cause = c};
        parts[k].cause.ns = sv_sat_add(parts[k].cause.ns, s->dur_ns);
        if (s->dur_ns > parts[k].most_ns) {
            parts[k].most_ns = s->dur_ns;
            parts[k].cause.kind = s->kind;
            parts[k].cause.reason = s->reason;
            parts[k].cause.row = s->row;
            parts[k].cause.ts_ns = s->ts_ns;
        }
    }
    for (size_t k = 1; k < n; k++)
        if (parts[k].cause.ns > parts[best].cause.ns)
            best = k;
    if (n)
        w->cause = parts[best].cause;
    else
        w->cause = (struct sv_wait_cause){.row = SV_NO_ROW, .block = SV_NO_ROW};
}

/* The longest request of the process that caused the wait, while it lasted. */
static uint32_t find_request(const struct sv_wait_report *r, const struct sv_wait *w)
{
    const struct sv_trace *t = r->trace;
    sv_str block = sv_dict_find_str(t->dict, SV_CAT_BLOCK, strlen(SV_CAT_BLOCK)),
           key = sv_dict_find_str(t->dict, "pid", 3);
    sv_track process = sv_dict_process_of(t->dict, w->cause.track);
    uint32_t best = SV_NO_ROW, row, seen = 0;
    struct sv_arg a;
    if (!block || !key || !process)
        return SV_NO_ROW;
    for (sv_track k = 1; k < t->n_tracks; k++) {
        uint32_t first = t->tracks[k].first;
        if (first == t->tracks[k].end || t->slices.cat[first] != block)
            continue;
        struct sv_window x = sv_trace_window(t, k, w->ts_ns, w->ts_ns + w->dur_ns);
        while (sv_window_next(&x, &row) && seen++ < REQUESTS_MAX) {
            bool is_longer = best == SV_NO_ROW || t->slices.dur_ns[row] > t->slices.dur_ns[best];
            if (is_longer && sv_trace_arg(t, t->slices.args[row], key, &a) &&
                a.type == SV_ARG_INT && a.i == t->dict->tracks[process].pid)
                best = row;
        }
    }
    return best;
}

/* Where pieces are sums, the waits are walked again, whole. */
static void make_windows(const struct sv_wait_report *r, size_t n, struct sv_ledger *again)
{
    struct sv_given_unit *windows = sv_alloc(n * sizeof *windows);
    for (size_t i = 0; i < n; i++) {
        const struct sv_wait *w = &r->waits[i];
        windows[i] = sv_given_window(r->spans[w->span].thread, 0, w->ts_ns, w->ts_ns + w->dur_ns);
    }
    sv_ledger_make(again, r->trace,
                   &(struct sv_ledger_options){.step = -1,
                                               .given = windows,
                                               .n_given = n,
                                               .given_kind = SV_UNIT_IS_WINDOW,
                                               .pieces_max = UINT32_MAX});
    free(windows);
}

void sv_wait_explain(struct sv_wait_report *r, size_t n)
{
    struct sv_ledger again = {0};
    if (!n)
        return;
    if (r->ledger.is_summed)
        make_windows(r, n, &again);
    struct sv_path_finder *f = sv_path_finder_new(r->trace);
    for (size_t i = 0; i < n; i++) {
        struct sv_wait *w = &r->waits[i];
        w->chain = (struct sv_path){0};
        sv_path_of_unit(&w->chain, again.trace ? &again : &r->ledger, f, again.trace ? i : w->span,
                        w->ts_ns, w->ts_ns + w->dur_ns, SEGMENTS_MAX);
        find_cause(r, w);
        if (!w->cause.path.len && w->cause.track)
            w->cause.last = sv_last_data_file(&r->ledger.states, w->cause.track, w->cause.ts_ns);
        if (w->cause.reason == SV_WAIT_FOR_DISK || w->cause.path.len)
            w->cause.block = find_request(r, w);
    }
    sv_path_finder_free(f);
    if (again.trace)
        sv_ledger_fini(&again);
}
