/* What the fuzz targets for sessions share: an input is cut into sections, and a source is read
 * into the store.
 *
 * A section is a length (4 bytes, little endian, taken modulo what is left) and so many bytes. */
#ifndef TESTS_FUZZ_SESSION_FUZZ_H
#define TESTS_FUZZ_SESSION_FUZZ_H

#include "core/stream/stream.h"
#include "store/trace.h"
#include "tests/harness/shape_check.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct section {
    const uint8_t *bytes;
    size_t len;
};

static inline struct section take_section(struct section *rest)
{
    uint32_t n;
    if (rest->len < sizeof n)
        return (struct section){rest->bytes, 0};
    memcpy(&n, rest->bytes, sizeof n);
    size_t left = rest->len - sizeof n;
    struct section s = {rest->bytes + sizeof n, n <= left ? n : left ? n % left : 0};
    *rest = (struct section){s.bytes + s.len, left - s.len};
    return s;
}

/* All that the source gives; every batch must pass the store's own checks, and have the shape that
 * is stated (unless NULL). */
static inline void read_all(struct sv_source *source, struct sv_trace *trace,
                            struct shape_check *shape)
{
    static struct sv_batch batch; /* its memory is made once, not for each input */
    static bool is_ready;
    struct sv_err err = {0};
    struct sv_sink *sink = sv_trace_sink(trace);
    if (!is_ready)
        sv_batch_init(&batch);
    is_ready = true;
    for (int n; sv_batch_reset(&batch), (n = source->next(source, &batch, &err)) > 0;) {
        if (shape)
            shape_check_see(shape, batch.events, (size_t)n);
        assert(sink->write(sink, batch.events, (size_t)n, &err) == 0 || err.code == SV_ENOMEM);
    }
}

#endif
