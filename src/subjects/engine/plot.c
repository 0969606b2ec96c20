/* stave plot llm: latencies, steps, queue and cache of an engine with continuous batching, on one
 * sheet. */
#include "plot/kinds.h"
#include "subjects/engine/panels.h"

int sv_plot_llm(struct sv_plot *p, struct sv_err *err)
{
    struct sv_llm l;
    struct sv_llm_figures f;
    int code = 0;
    sv_llm_make(&l, p->trace);
    sv_llm_figures_make(&f, &l);
    if (l.n_requests == 0 && l.n_steps == 0)
        code = sv_error(err, SV_EFOUND,
                        "no requests and no engine steps found: no events of category "
                        "serving.engine or serving.life (docs/llm.md)");
    else
        sv_llm_sheet_draw(
            p->picture, &l, &f,
            &(struct sv_llm_figure){.frame = p->frame, .from_ns = p->from_ns, .to_ns = p->to_ns});
    sv_llm_figures_fini(&f);
    sv_llm_fini(&l);
    return code;
}
