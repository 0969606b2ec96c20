/* From the inputs of a merge to its time axis: whose clocks they are, what their metadata say of
 * relations, and what was asked for besides. Called by merge.c, perhaps several times, until it is
 * known which inputs take part; what is said about the result waits until then. */
#pragma once

#include "clocks/align.h"
#include "clocks/hosts.h"
#include "clocks/merge.h"
#include "clocks/time_axis.h"

struct sv_merge_axis_input {
    const char *name;
    const struct sv_dict *dict;
    const struct sv_host *from;
    bool has_offset;
    int64_t offset_ns;
    int64_t first_ns, last_ns; /* of its events; the first is later: it has none */
    struct sv_ends *ends;      /* of its collectives, if they are to align it */
};

struct sv_merge_axis {
    struct sv_time_axis axis;
    struct sv_time_axis_input *inputs;
    struct sv_clock_owner *owners;
    struct sv_relation *relations; /* the first n_own are to be freed */
    size_t n_own;
    struct sv_report notes;
};

/* Forgets what it found before. Zeroed: nothing. */
int sv_merge_axis_relate(struct sv_merge_axis *x, const struct sv_merge_axis_input *inputs,
                         size_t n, const struct sv_merge_options *options, struct sv_err *err);
struct sv_shift sv_merge_axis_take(struct sv_merge_axis *x, size_t i); /* the caller's now */
/* Clocks, snapshots and metadata into `dict` (NULL: it failed), notes into `report`; both may be
 * NULL. */
void sv_merge_axis_say(const struct sv_merge_axis *x, struct sv_dict *dict,
                       struct sv_report *report);
void sv_merge_axis_fini(struct sv_merge_axis *x);
