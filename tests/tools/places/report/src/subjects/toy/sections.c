/* stave report toy: how many slices there are. */
#include "subjects/subject.h"

#include <inttypes.h>

static int run_toy(const struct sv_report_options *o, const struct sv_trace *t, struct sv_err *err)
{
    struct sv_buf text;
    sv_buf_init(&text, 1 << 20);
    sv_buf_printf(&text, "%" PRIu64 " slices\n", (uint64_t)t->slices.n);
    int code = sv_report_write(o, &text, err);
    sv_buf_fini(&text);
    return code;
}

const struct sv_report_subject sv_toy_report = {
    .name = "toy", .sections = "", .options = "", .run = run_toy};
