#include "analysis/sql.h"

#ifdef SV_HAVE_SQLITE
#include "analysis/sql_impl.h"
int sv_sql_add_span_join(struct sv_sql *q)
{
    (void)q;
    return SQLITE_OK;
}
#endif
