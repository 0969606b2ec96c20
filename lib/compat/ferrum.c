/* The members of ferrum's events: see ferrum.h. */
#include "compat/ferrum.h"

void sv_ferrum_begin(struct sv_json *j, const struct sv_ferrum_event *e)
{
    sv_json_begin(j, '{');
    sv_json_lit(j, "name");
    sv_json_text(j, e->name, e->name_len);
    sv_json_lit(j, "cat");
    sv_json_text(j, e->cat, e->cat_len);
    sv_json_lit(j, "ph");
    sv_json_text(j, "X", 1);
    sv_json_lit(j, "ts");
    sv_json_u64(j, e->ts_us);
    sv_json_lit(j, "dur");
    sv_json_u64(j, e->dur_us);
    sv_json_lit(j, "pid");
    sv_json_u64(j, e->pid);
    sv_json_lit(j, "tid");
    sv_json_u64(j, e->tid);
}
