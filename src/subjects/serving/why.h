/* What requests waited for in each of their phases: sums over the ledger. For report batch --why.
 *
 *     struct sv_serving_why w;
 *     sv_serving_why_make(&w, &report, trace, NULL);
 *     for (size_t i = 0; i < w.n; i++) … w.rows[i].phase, w.rows[i].class …
 *     sv_serving_why_fini(&w);
 *
 * A piece of a request's ledger (why/ledger.h) belongs to the phases that it lies in. All rows
 * together are the time of the requests. */
#pragma once

#include "subjects/serving/report.h"
#include "why/ledger.h"

struct sv_serving_why_row {
    uint8_t phase, class, doing;
    uint32_t thread; /* who did it; SV_NO_THREAD: not known */
    int64_t ns, longest_ns;
    uint64_t n;        /* requests that have such a time */
    uint64_t longest;  /* the request that has the longest one */
    struct sv_text in; /* the file, or the function; empty: neither is known */
    size_t last;       /* unit that was counted last, plus 1 */
};

struct sv_serving_why {
    struct sv_ledger ledger;         /* texts are its own */
    struct sv_serving_why_row *rows; /* the most time first */
    size_t n, cap;
    uint64_t n_requests;
    int64_t ns, phase_ns[SV_N_PHASES];
    bool has_threads; /* of some it is known who worked for them */
    bool is_other;    /* the units of the ledger are no requests: there are too few */
};

/* only: one request; NULL: all that were answered, without warm-up. */
void sv_serving_why_make(struct sv_serving_why *w, const struct sv_serving_report *r,
                         const struct sv_trace *t, const struct sv_served_request *only);
void sv_serving_why_fini(struct sv_serving_why *w);
