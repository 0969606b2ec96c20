/* Which pages beside the time line a trace has data for. Called when a trace is shown; kept in its
 * image. */
#pragma once

#include "core/base/json.h"
#include "store/image.h"
#include "store/trace.h"

/* Bits of a number that is kept: new ones come last. */
enum {
    SV_PAGE_STEPS,
    SV_PAGE_GPU,
    SV_PAGE_IO,
    SV_PAGE_SERVING,
    SV_PAGE_RANKS,
    SV_PAGE_LLM,
    SV_PAGE_WAITS,
    SV_PAGE_EXPLAIN,
    SV_PAGE_OPS,
    SV_N_PAGES
};

uint32_t sv_pages_of(const struct sv_trace *t);
void sv_pages_put_json(struct sv_json *j, uint32_t pages); /* ["steps","gpu"] */
/* Adds them to an image of the trace: there sv_pages_of() finds them. */
void sv_pages_put(uint32_t pages, struct sv_image_writer *w);
