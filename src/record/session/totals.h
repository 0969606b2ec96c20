/* Sums for the summary: a stage after the decoder that counts the events of each probe. It changes
 * nothing.
 *
 * It is put around the decoder's source, not before the recorder's sink: programs with libstave may
 * use the same categories. */
#ifndef SV_RECORD_SESSION_TOTALS_H
#define SV_RECORD_SESSION_TOTALS_H

#include "core/stream/stream.h"
#include "record/probes/probe.h"

struct sv_total {
    uint64_t events; /* slices, begins and instants */
    uint64_t begins; /* those of them that are no whole slices */
    uint64_t bytes;  /* of their arguments `bytes` */
    bool has_bytes;  /* the probe has such a sum */
};

struct sv_totals {
    struct sv_source source;
    struct sv_source *from;
    uint8_t *by_cat; /* category → number of its probe + 1, 0: none */
    size_t n_cats;
    sv_str bytes;
    struct sv_total of[SV_N_PROBES + 1]; /* by that number */
};

/* The source to pull instead of `from`, until sv_totals_fini(). */
struct sv_source *sv_totals_init(struct sv_totals *t, struct sv_source *from);
void sv_totals_fini(struct sv_totals *t);
/* One of the sums of a probe. */
uint64_t sv_totals_sum(const struct sv_totals *t, enum sv_probe_number probe,
                       enum sv_probe_sum_of of);

#endif
