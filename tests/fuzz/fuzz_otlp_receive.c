/* Arbitrary bytes as a request of OTLP that is received, protobuf or JSON (where it begins with a
 * bracket): what is taken is read back later, all of its spans, and never stops the reader. Both
 * ways between JSON and protobuf are tried on it. */
#include "formats/formats.h"
#include "formats/otlp/check.h"
#include "formats/otlp/json.h"
#include "store/trace.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t count_slices(const struct sv_buf *kept)
{
    struct sv_err err = {0};
    struct sv_input *in;
    struct sv_source *source;
    struct sv_report report;
    struct sv_dict *dict = sv_dict_new();
    uint64_t n = 0;
    sv_report_init(&report);
    struct sv_trace *trace = sv_trace_new(dict, &report, (size_t)256 << 20);
    if (sv_input_open_memory(kept->data, kept->len, "kept", &in, &err) != SV_OK ||
        sv_format_open(&sv_otlp_format, in, &(struct sv_read_options){0}, dict, &report, &source,
                       &err) != SV_OK ||
        sv_pump(source, sv_trace_sink(trace), NULL, &err) != SV_OK)
        __builtin_trap();
    for (uint64_t i = 0; i < trace->slices.n; i++)
        n += trace->slices.kind[i] == SV_SLICE;
    sv_trace_free(trace);
    sv_input_close(in);
    sv_report_fini(&report);
    sv_dict_free(dict);
    return n;
}

static void there_and_back(const struct sv_buf *message)
{
    static const uint8_t pad[SV_INPUT_PAD];
    struct sv_otlp_json how = {0};
    struct sv_buf text, again;
    struct sv_json j;
    sv_buf_init(&text, (size_t)1 << 26);
    sv_buf_init(&again, (size_t)1 << 26);
    sv_json_init(&j, &text);
    if (sv_otlp_to_json(&sv_otlp_request, message->data, message->len, &j) && !text.failed) {
        size_t len = text.len;
        sv_buf_add(&text, pad, sizeof pad);
        if (!sv_otlp_from_json(&sv_otlp_request, text.data, text.data + len, &again, &how))
            __builtin_trap();
    }
    sv_buf_fini(&text);
    sv_buf_fini(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sv_otlp_checked c;
    struct sv_otlp_json how = {0};
    struct sv_buf message, kept;
    uint8_t *padded = calloc(1, size + SV_INPUT_PAD);
    if (!padded)
        return 0;
    if (size)
        memcpy(padded, data, size);
    sv_buf_init(&message, (size_t)1 << 26);
    sv_buf_init(&kept, (size_t)1 << 26);
    bool ok = true;
    if (size && data[0] == '{')
        ok = sv_otlp_from_json(&sv_otlp_request, padded, padded + size, &message, &how) != NULL;
    else
        sv_buf_add(&message, data, size);
    if (ok && sv_otlp_check(message.data, message.len, &kept, &c)) {
        if (c.spans && count_slices(&kept) != c.spans)
            __builtin_trap();
        there_and_back(&kept);
    }
    sv_buf_fini(&message);
    sv_buf_fini(&kept);
    free(padded);
    return 0;
}
