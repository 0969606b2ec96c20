/* Inside the image of a trace: checks of what was mapped. */
#pragma once

#include "store/image.h"
#include "store/trace_impl.h"

/* Texts end where they say, numbers of strings and tracks are such, truth values are 0 or 1. */
bool sv_image_check_dict(const struct sv_dict_content *c, uint64_t text_bytes);

/* Rows: all of them, or with SV_IMAGE_QUICK samples. Lists of arguments: in a pool of at most
 * SV_IMAGE_LISTS bytes; what a larger one holds is protected by the checksums of its pages
 * alone. */
#define SV_IMAGE_LISTS ((size_t)64 << 20)
bool sv_image_check_rows(const struct sv_trace *t, unsigned how, bool (*stop)(void *), void *ctx);
