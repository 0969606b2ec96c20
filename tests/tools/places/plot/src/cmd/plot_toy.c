/* stave plot toy: an empty picture. */
#include "plot/kinds.h"

int sv_plot_toy(struct sv_plot *p, struct sv_err *err)
{
    (void)p;
    (void)err;
    return 0;
}
