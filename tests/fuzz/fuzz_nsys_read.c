/* SQLite databases from nowhere, as exports of Nsight Systems: most are refused when they are opened, none may crash, hang or leak. */
#include "formats/formats.h"
#include "model/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sv_err err = {0};
    struct sv_input *in;
    struct sv_source *source;
    struct sv_report report;
    struct sv_read_options options = {0};
    struct sv_dict *dict = sv_dict_new();
    sv_report_init(&report);
    (void)sv_nsys_probe(data, size);
    if (sv_input_open_memory(data, size, "fuzz", &in, &err) != SV_OK)
        __builtin_trap();
    struct sv_trace *trace = sv_trace_new(dict, &report, (size_t)256 << 20);
    if (sv_nsys_source(in, &options, dict, &report, &source, &err) == SV_OK)
        (void)sv_pump(source, sv_trace_sink(trace), NULL, &err);
    sv_trace_free(trace);
    sv_input_close(in);
    sv_report_fini(&report);
    sv_dict_free(dict);
    return 0;
}
