/* Writes an image to a file in memory and reads it back. */
#include "tests/harness/images.h"

#include "core/base/mem.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

uint8_t *image_bytes(const struct sv_trace *t, const struct sv_report *report,
                     const struct sv_image_key *key,
                     void (*more)(void *ctx, struct sv_image_writer *w), void *ctx, size_t *size)
{
    struct sv_err err = {0};
    struct sv_image_writer *w = sv_image_writer_new();
    int fd = memfd_create("image", MFD_CLOEXEC);
    bool ok = fd >= 0 && sv_trace_put(t, report, w);
    if (ok && more)
        more(ctx, w);
    *size = (size_t)sv_image_size(w);
    ok = ok && sv_image_write(w, fd, key, NULL, NULL, &err) == 0;
    uint8_t *bytes = sv_alloc(*size);
    ok = ok && pread(fd, bytes, *size, 0) == (ssize_t)*size;
    sv_image_writer_free(w);
    close(fd);
    if (ok)
        return bytes;
    free(bytes);
    return NULL;
}
