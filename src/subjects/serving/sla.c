/* Limits of latency, as the user writes them. Called by `stave report batch` and `stave plot
 * batch`. */
#include "subjects/serving/sla.h"

#include "cli/command.h"

#include <string.h>

int sv_parse_sla(const char *list, double *ms, size_t *n, struct sv_err *err)
{
    const char *p = list ? list : "50,100,200";
    *n = 0;
    for (;;) {
        size_t len = strcspn(p, ",");
        double v;
        if (sv_parse_number(p, len, &v) < 0 || !(v > 0) || v > 1e9)
            return sv_error(err, SV_EUSAGE,
                            "--sla: '%s' is not a list of milliseconds such as 50,100", list);
        if (*n == SV_SLA_MAX)
            return sv_error(err, SV_EUSAGE, "--sla: at most %d limits", SV_SLA_MAX);
        ms[(*n)++] = v;
        if (!p[len])
            return 0;
        p += len + 1;
    }
}
