/* Arbitrary bytes as StarPU's FxT traces, after a valid head: without it the reader refuses. */
#include "log_fuzz.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t head[44] = {
        [3] = 2, [4] = 40, [12] = 1, [20] = 24, [28] = 16, [36] = 1, [40] = 2};
    uint8_t *bytes = malloc(sizeof head + size);
    assert(bytes);
    memcpy(bytes, head, sizeof head);
    if (size > 0)
        memcpy(bytes + sizeof head, data, size);
    log_fuzz(&sv_fxt_format, LOG_READS_ANYTHING, bytes, sizeof head + size);
    free(bytes);
    return 0;
}
