/* stave plot comm: ranks over time, what they waited for each other. */
#include "plot/kinds.h"
#include "subjects/comm/figures.h"
#include "subjects/comm/picture.h"

int sv_plot_comm(struct sv_plot *p, struct sv_err *err)
{
    struct sv_comm_report r;
    int code = 0;
    sv_comm_report_make(&r, p->trace);
    if (r.n_calls == 0)
        code = sv_err_set(err, SV_EFOUND, SV_NO_POS,
                          "no collectives found: no slices of category collective and no kernels "
                          "called ncclKernel… or ncclDevKernel… (docs/comm.md)");
    else
        sv_comm_figure_draw(p->picture, &r,
                            &(struct sv_comm_figure){.frame = p->frame,
                                                     .from_ns = p->from_ns,
                                                     .to_ns = p->to_ns,
                                                     .ranks_max = (size_t)p->o->top});
    sv_comm_report_fini(&r);
    return code;
}
