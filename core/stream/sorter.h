/* The sorter: takes events in any order, gives them back in order, in bounded memory.
 *
 *     sv_sorter_add(…) …; sv_sorter_finish(…); while ((n = sv_sorter_next(…)) > 0) …
 *
 * The order is that of stages.h: time; then begin, end, instant, counter, loss as they came; then
 * slices, longest first; then flow points, ends of arrows last. Behind the `sort` stage (one
 * sorter) and `merge` (one per input). */
#pragma once

#include "core/base/err.h"
#include "core/stream/event.h"

#include <stdbool.h>
#include <stddef.h>

#define SV_SORT_MEMORY_DEFAULT ((size_t)256 << 20)

#define SV_ENDS_FLOW 1 /* see sv_flow_mark() */

/* The rank of an event: time first, then the tie. Equal ranks keep the order of arrival. */
struct sv_rank {
    int64_t ts_ns, tie;
};

static inline struct sv_rank sv_rank_of(int64_t ts_ns, int64_t dur_ns, unsigned kind)
{
    if (kind ==
        SV_SLICE) /* unfinished ones are the longest; what is negative beyond that is empty */
        return (struct sv_rank){ts_ns, dur_ns == SV_UNFINISHED ? -INT64_MAX
                                       : dur_ns > 0            ? -dur_ns
                                                               : 0};
    return (struct sv_rank){ts_ns, kind == SV_FLOW ? 1 + (dur_ns == SV_ENDS_FLOW) : INT64_MIN};
}

/* An arrow's end comes after its start, though both have the same time: inside the sorter the
 * duration of a flow point, which has none, says which of them it is. */
static inline int64_t sv_flow_mark(const struct sv_event *e)
{
    bool is_end = e->kind == SV_FLOW && e->n_args && e->args[0].type == SV_ARG_FLOW_END;
    return is_end ? SV_ENDS_FLOW : e->dur_ns;
}

static inline bool sv_rank_before(struct sv_rank a, struct sv_rank b)
{
    return a.ts_ns != b.ts_ns ? a.ts_ns < b.ts_ns : a.tie < b.tie;
}

struct sv_sorter;

/* Past memory_bytes (0: the default) sorted runs go to an unlinked file in $TMPDIR, /var/tmp or
 * /tmp. */
struct sv_sorter *sv_sorter_new(size_t memory_bytes);
void sv_sorter_free(struct sv_sorter *s);
/* Its runs go to this file, which others use too: see runs.h. Before the first event. */
struct sv_runs_file;
void sv_sorter_share(struct sv_sorter *s, struct sv_runs_file *file);

/* Copies the events with all they point to. */
int sv_sorter_add(struct sv_sorter *s, const struct sv_event *events, size_t n, struct sv_err *err);

/* Moves what is held in memory to the file: others need the memory more. Before finish only. */
int sv_sorter_spill(struct sv_sorter *s, struct sv_err *err);
size_t sv_sorter_bytes(const struct sv_sorter *s); /* memory held now */
bool sv_sorter_has_spilled(const struct sv_sorter *s);

/* Nothing more is added. Reading takes at most about memory_bytes (0: what it was made with). */
int sv_sorter_finish(struct sv_sorter *s, size_t memory_bytes, struct sv_err *err);

/* The next events in order: how many (at most max), 0 at the end, negative on an error. What they
 * point to is valid until the next call. */
int sv_sorter_next(struct sv_sorter *s, struct sv_event *events, size_t max, struct sv_err *err);
