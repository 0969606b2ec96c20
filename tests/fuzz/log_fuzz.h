/* What all fuzz targets for readers of logs do: read arbitrary bytes into the store. Nothing may
 * crash, hang or leak, and every batch must pass the store's own checks. */
#ifndef TESTS_FUZZ_LOG_FUZZ_H
#define TESTS_FUZZ_LOG_FUZZ_H

#include "formats/formats.h"
#include "store/trace.h"
#include "tests/harness/shape_check.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whether a reader may refuse when it is opened, or reads anything. */
enum log_manners { LOG_READS_ANYTHING, LOG_MAY_REFUSE };

/* `columns`: as for import --columns; NULL: the reader finds them. */
static inline int log_fuzz_as(const struct sv_format *format, enum log_manners manners,
                              const char *columns, const uint8_t *data, size_t size)
{
    struct sv_err err = {0};
    struct sv_input *in;
    struct sv_source *source;
    struct sv_report report;
    struct sv_zone *zone = NULL;
    struct sv_dict *dict = sv_dict_new();
    sv_report_init(&report);
    (void)format->probe(data, size);
    if (format->needs)
        (void)format->needs(data, size);
    if (format->holds)
        (void)format->holds(data, size, "fuzz_1");
    if (size % 2 && sv_zone_open("-05:00", &zone, &err) != SV_OK)
        __builtin_trap();
    struct sv_read_options options = {
        .zone = zone, .has_date = size % 3 == 0, .date_days = 19000, .columns = columns};
    if (sv_input_open_memory(data, size, "fuzz", &in, &err) != SV_OK)
        __builtin_trap();
    struct sv_trace *trace = sv_trace_new(dict, &report, (size_t)256 << 20);
    struct shape_check shape = {0};
    if (sv_format_open(format, in, &options, dict, &report, &source, &err) == SV_OK)
        (void)sv_pump(source, shape_check_sink(&shape, source->gives, sv_trace_sink(trace)), NULL,
                      &err);
    else if (manners == LOG_READS_ANYTHING)
        __builtin_trap();
    if (shape_check_end(&shape)[0])
        __builtin_trap();
    sv_trace_free(trace);
    sv_input_close(in);
    sv_zone_free(zone);
    sv_report_fini(&report);
    sv_dict_free(dict);
    return 0;
}

static inline int log_fuzz(const struct sv_format *format, enum log_manners manners,
                           const uint8_t *data, size_t size)
{
    return log_fuzz_as(format, manners, NULL, data, size);
}

#define LOG_FUZZ(name, manners)                                    \
    int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)   \
    {                                                              \
        return log_fuzz(&sv_##name##_format, manners, data, size); \
    }

#endif
