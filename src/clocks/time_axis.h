/* The axis of a merge: which clock the inputs come onto, by what each of them was placed there, and
 * how far off it may be.
 *
 * Within a host the clock snapshots relate its clocks, to some tens of nanoseconds. Between hosts
 * there is, in this order:
 *   a relation that was measured by pings (relation.h): its bound holds
 *   an estimate from collectives, if it was asked for: no bound
 *   the wall clocks: as good as what synchronises them. Their greatest error is the bound where
 *   each kernel states one; else it is unknown
 * The error between two events of different hosts is at most the sum of what the two hosts state.
 *
 * A clock belongs to a machine and to a time namespace on it: clocks of two namespaces of one
 * machine are different ones, and its wall clock, which has no namespaces, relates them as exactly
 * as any two clocks of one machine. */
#pragma once

#include "clocks/relation.h"
#include "core/base/report.h"
#include "core/stream/dict.h"
#include "store/relate.h"

#define SV_META_AXIS "clock_axis"

struct sv_time_axis_input {
    struct sv_relate_input is;
    const char *host, *boot, *times; /* NULL: unknown */
    int64_t first_ns,
        last_ns; /* of its events, on its own clock; the first is later: it has none */
};

enum sv_time_axis_by {
    SV_BY_HOST, /* it is of the host whose clock the axis is, or of the only one */
    SV_BY_WALL, /* wall clocks of several hosts */
    SV_BY_PINGS,
    SV_BY_COLLECTIVES, /* an estimate */
    SV_BY_HAND,        /* --offset */
    SV_BY_ASSUMPTION
};

struct sv_time_axis_place {
    enum sv_time_axis_by by;
    int64_t within_ns;     /* -1: unknown */
    int64_t between_ns;    /* against the common clock; -1: unknown, 0: the same host */
    bool has_common_clock; /* its own snapshots are about the common clock */
};

struct sv_time_axis {
    const struct sv_time_axis_input *inputs;
    size_t n;
    const struct sv_relation *relations; /* of all files; those of other hosts are passed over */
    size_t n_relations;
    /* What they are about: each host's BOOTTIME (0), or for an estimate its wall clock, as if that
     * were a clock of the host. */
    uint32_t measured;
    bool assume;
    /* Found by sv_time_axis_relate(), [n]: */
    struct sv_shift *shifts; /* whoever takes them sets this to NULL */
    struct sv_time_axis_place *places;
    uint32_t clock; /* the common one */
};

int sv_time_axis_relate(struct sv_time_axis *a, struct sv_err *err);
void sv_time_axis_fini(struct sv_time_axis *a);

/* Where the axis has several hosts: what relates them, with the bound, as findings; and the same as
 * metadata SV_META_AXIS. (time_axis_report.c) */
void sv_time_axis_report(const struct sv_time_axis *a, struct sv_report *report);
void sv_time_axis_describe(const struct sv_time_axis *a, struct sv_dict *dict);
