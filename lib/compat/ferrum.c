/* The members of ferrum's events: see ferrum.h. */
#include "compat/ferrum.h"

/* The keys of literals need no escapes: the text around the values, for the writer in programs,
 * which prints each event as it comes. */
#define ADD(b, literal) sv_buf_add((b), literal, sizeof(literal) - 1)

void sv_ferrum_begin(struct sv_json *j, const struct sv_ferrum_event *e)
{
    struct sv_buf *b = j->out;
    sv_json_begin(j, '{');
    ADD(b, "\"name\":");
    sv_json_escape(b, e->name, e->name_len);
    ADD(b, ",\"cat\":");
    sv_json_escape(b, e->cat, e->cat_len);
    ADD(b, ",\"ph\":\"X\",\"ts\":");
    sv_buf_u64(b, e->ts_us);
    ADD(b, ",\"dur\":");
    sv_buf_u64(b, e->dur_us);
    ADD(b, ",\"pid\":");
    sv_buf_u64(b, e->pid);
    ADD(b, ",\"tid\":");
    sv_buf_u64(b, e->tid);
    j->need_comma = true;
}
