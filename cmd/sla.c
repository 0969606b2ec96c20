/* Limits of latency, as the user writes them. Called by `stave report batch` and `stave plot batch`. */
#include "cmd/sla.h"

#include <stdlib.h>

int sv_parse_sla(const char *list, double *ms, size_t *n, struct sv_err *err)
{
    const char *p = list ? list : "50,100,200";
    *n = 0;
    while (*p) {
        char *end;
        double v = strtod(p, &end);
        if (end == p || !(v > 0) || v > 1e9 || (*end && *end != ','))
            return sv_err_set(err, SV_EUSAGE, SV_NO_POS,
                              "--sla: '%s' is no list of milliseconds such as 50,100", list);
        if (*n == SV_SLA_MAX)
            return sv_err_set(err, SV_EUSAGE, SV_NO_POS, "--sla: at most %d limits", SV_SLA_MAX);
        ms[(*n)++] = v;
        p = *end ? end + 1 : end;
    }
    return 0;
}
