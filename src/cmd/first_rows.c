/* --order: see first_rows.h. Called by show and plot. */
#include "cmd/first_rows.h"

#include <string.h>

#define UNASKED_MOST 2000000u /* slices that are explained without being asked for */

int sv_check_order(const char *order, struct sv_err *err)
{
    bool is_known = !order || strcmp(order, "findings") == 0 || strcmp(order, "trace") == 0;
    return is_known ? 0 : sv_error(err, SV_EUSAGE, "--order: '%s' is not findings or trace", order);
}

size_t sv_first_rows(const char *order, const struct sv_track_rows *r, uint32_t to[SV_EXPLAIN_ROWS])
{
    struct sv_explanation e;
    uint64_t n_slices = r->trace->slices.n;
    bool is_asked = order ? strcmp(order, "findings") == 0 : n_slices <= UNASKED_MOST;
    if (!is_asked || n_slices == 0)
        return 0;
    sv_explain(&e, r->trace, "TRACE", NULL);
    sv_explain_rows(&e, r);
    memcpy(to, e.rows, e.n_rows * sizeof *to);
    size_t n = e.n_rows;
    sv_explanation_fini(&e);
    return n;
}
