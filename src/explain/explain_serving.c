/* Requests that wait, or are refused. Called by explain/explain.c. */
#include "explain/explain.h"

#include "subjects/engine/llm_figures.h"
#include "subjects/engine/request_units.h"

#include <inttypes.h>
#include <stdio.h>

static void explain_rejected(struct sv_explaining *x, uint64_t rejected, uint64_t all)
{
    double share = all ? (double)rejected / (double)all : 0;
    if (share < SV_EXPLAIN_LEAST)
        return;
    struct sv_answer a = sv_answer_of(SV_CAUSE_REJECTED, share, "high");
    a.culprit.kind = "queue";
    snprintf(a.culprit.name, sizeof a.culprit.name, "queue");
    a.n_units = rejected;
    sv_answer_say(&a, "The server refuses %.0f %% of the requests: %" PRIu64 " of %" PRIu64 ".",
                  share * 100, rejected, all);
    sv_answer_command(&a, "report batch", x->path, "");
    sv_explain_add(x, &a);
}

static bool has_threads(const struct sv_ledger *l)
{
    for (size_t i = 0; i < l->n_units; i++)
        if (l->units[i].counts && l->units[i].thread != SV_NO_THREAD)
            return true;
    return false;
}

/* Without threads only the phases are known. */
static void explain_phases(struct sv_explaining *x, bool is_batches)
{
    const struct sv_ledger *l = x->ledger;
    double in_queue = (double)l->class_ns[SV_WHY_QUEUE], all = (double)l->dur_ns,
           n = (double)l->n_counted;
    if (all <= 0 || in_queue < 6 * SV_EXPLAIN_LEAST * all)
        return;
    struct sv_answer a = sv_answer_of(SV_CAUSE_QUEUE, in_queue / all, "medium");
    a.culprit.kind = "queue";
    snprintf(a.culprit.name, sizeof a.culprit.name, "queue");
    a.n_units = l->n_counted;
    sv_answer_say(&a,
                  "Requests wait %.0f %% of their time until a worker is free: %.1f of %.1f ms on "
                  "average, of %zu requests.",
                  a.share * 100, in_queue / n / 1e6, all / n / 1e6, l->n_counted);
    sv_answer_command(&a, is_batches ? "report batch" : "report llm", x->path, "");
    sv_explain_add(x, &a);
}

bool sv_explain_serving(struct sv_explaining *x)
{
    struct sv_llm l;
    struct sv_llm_figures f;
    sv_llm_make(&l, x->trace);
    sv_llm_figures_make(&f, &l);
    uint64_t all = f.answered + f.rejected + f.failed + f.cancelled;
    bool has_phases = x->ledger->kind == SV_UNIT_IS_REQUEST && !has_threads(x->ledger);
    if (all >= SV_REQUESTS_LEAST) {
        x->e->observed.has_requests = true;
        explain_rejected(x, f.rejected, all);
    }
    if (has_phases)
        explain_phases(x, l.is_batches);
    sv_llm_figures_fini(&f);
    sv_llm_fini(&l);
    return has_phases;
}
