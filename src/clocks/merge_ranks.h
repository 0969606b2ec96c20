/* Which inputs take part in a merge: called by merge.c once all have been read, and free of how
 * they are.
 *
 * Two inputs of one rank that cover the same time would show its work twice: refused with both
 * names. Files that complete each other are none: of different formats, of different writers or
 * processes (an SDK's file and a recording), or one after the other (the profiler's cycles). A
 * conversion of a file covers its time to the nanosecond.
 *
 * A file of Kineto that was cut has lost the base of its times, which is at its end. Ranks of one
 * job on one host have the same base. */
#pragma once

#include "core/base/err.h"
#include "core/base/report.h"
#include "core/stream/clock.h"

#define SV_CARD_NO_RANK INT64_MAX

struct sv_merge_card {
    const char *name;
    const char *kind, *job, *writer; /* format; as its metadata say; NULL: unknown */
    int64_t rank;                    /* SV_CARD_NO_RANK: unknown */
    int64_t pid;                     /* of its first process, -1: none */
    uint32_t machine;                /* equal numbers: the same machine */
    struct sv_clocks *clocks;
    bool has_offset, is_damaged;
    bool has_span;            /* it has events */
    int64_t begin_ns, end_ns; /* on the common clock */
    bool is_out;              /* found here: it is left out */
};

/* An input that is damaged and has no clock takes its base from another one, or is left out, unless
 * `assume`. `report` (may be NULL) names each. */
void sv_merge_find_clocks(struct sv_merge_card *const *cards, size_t n, bool assume,
                          struct sv_report *report);

/* The cards are sorted by rank and have their spans. SV_EUSAGE: two are the same. `skips_bad`: if
 * one of them is damaged, it is left out. */
int sv_merge_check_ranks(struct sv_merge_card *const *cards, size_t n, bool skips_bad,
                         struct sv_report *report, struct sv_err *err);
