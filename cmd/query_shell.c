#include "cmd/query_shell.h"

int sv_query_shell(struct sv_sql *q, struct sv_printer *p, bool is_timed, struct sv_err *err)
{
    (void)q;
    (void)p;
    (void)is_timed;
    return sv_err_set(err, SV_EUSAGE, SV_NO_POS, "-i is not there yet");
}
