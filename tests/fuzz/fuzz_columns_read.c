/* Arbitrary bytes as a line-oriented log, and, where they begin with a line "columns: …", by that
 * description. */
#include "log_fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char mark[] = "columns: ";
    char columns[512];
    const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
    size_t skip = sizeof mark - 1, len = end ? (size_t)(end - data) : 0;
    struct sv_err err = {0};
    unsigned needs;
    if (len <= skip || len - skip >= sizeof columns || memcmp(data, mark, skip) != 0)
        return log_fuzz(&sv_columns_format, LOG_READS_ANYTHING, data, size);
    memcpy(columns, data + skip, len - skip);
    columns[len - skip] = '\0';
    if (sv_columns_check(columns, &needs, &err) < 0)
        return 0;
    return log_fuzz_as(&sv_columns_format, LOG_READS_ANYTHING, columns, end + 1, size - len - 1);
}
