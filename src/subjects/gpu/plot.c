/* stave plot gpu: what devices did over time. */
#include "plot/kinds.h"
#include "subjects/gpu/figures.h"
#include "subjects/gpu/picture.h"

int sv_plot_gpu(struct sv_plot *p, struct sv_err *err)
{
    struct sv_gpu_report r;
    int code = 0;
    sv_gpu_report_make(&r, p->trace, p->o->marker);
    if (r.n_work == 0)
        code = sv_err_set(
            err, SV_EFOUND, SV_NO_POS,
            "no GPU work found: no slices of category kernel, gpu_memcpy or similar (docs/gpu.md)");
    else
        sv_gpu_figure_draw(p->picture, &r,
                           &(struct sv_gpu_figure){.frame = p->frame,
                                                   .from_ns = p->from_ns,
                                                   .to_ns = p->to_ns,
                                                   .streams_max = (size_t)p->o->top});
    sv_gpu_report_fini(&r);
    return code;
}
