/* Images of traces in memory, for tests that change them. */
#ifndef TESTS_HARNESS_IMAGES_H
#define TESTS_HARNESS_IMAGES_H

#include "store/image.h"

/* A file's bytes as they were written; free() frees them. `more` (may be NULL) adds sections. NULL:
 * it could not be written. */
uint8_t *image_bytes(const struct sv_trace *t, const struct sv_report *report,
                     const struct sv_image_key *key,
                     void (*more)(void *ctx, struct sv_image_writer *w), void *ctx, size_t *size);

#endif
