/* The members of ferrum's events: see ferrum.h. */
#include "compat/ferrum.h"

void sv_ferrum_begin(struct sv_json *j, const struct sv_ferrum_event *e)
{
    sv_json_begin(j, '{');
    sv_json_put(j, "name", text, e->name, e->name_len);
    sv_json_put(j, "cat", text, e->cat, e->cat_len);
    sv_json_put(j, "ph", text, "X", 1);
    sv_json_put(j, "ts", u64, e->ts_us);
    sv_json_put(j, "dur", u64, e->dur_us);
    sv_json_put(j, "pid", u64, e->pid);
    sv_json_put(j, "tid", u64, e->tid);
}
