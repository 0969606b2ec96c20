/* Arbitrary bytes as canonical text: what the reader understands of it, written again, reads back
 * as the same text without damage. */
#include "core/base/buf.h"
#include "formats/formats.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads the text and writes what was understood; returns the damage. */
static uint64_t again(const uint8_t *text, size_t len, struct sv_buf *to)
{
    struct sv_err err = {0};
    struct sv_input *in;
    struct sv_output *out;
    struct sv_source *source;
    struct sv_sink *sink;
    struct sv_report report;
    struct sv_dict *dict = sv_dict_new();
    sv_report_init(&report);
    sv_buf_init(to, (size_t)64 << 20);
    if (sv_input_open_memory(text, len, "fuzz", &in, &err) != SV_OK ||
        sv_output_open_buf(to, SV_PLAIN, &out, &err) != SV_OK ||
        sv_format_open(&sv_text_format, in, &(struct sv_read_options){0}, dict, &report, &source,
                       &err) != SV_OK ||
        sv_text_format.writer->open(out, &(struct sv_write_options){0}, dict, &report, &sink,
                                    &err) != SV_OK)
        __builtin_trap();
    int code = sv_pump(source, sink, NULL, &err);
    assert(code == SV_OK || to->failed || code == SV_ELIMIT); /* a time that does not fit */
    uint64_t damage = sv_report_count(&report, SV_DAMAGE);
    sv_input_close(in);
    sv_report_fini(&report);
    sv_dict_free(dict);
    return damage;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sv_buf first, second;
    again(data, size, &first);
    if (first.len > 0) { /* else it was refused */
        uint64_t damage = again(first.data, first.len, &second);
        assert(damage == 0);
        assert(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
        sv_buf_fini(&second);
    }
    sv_buf_fini(&first);
    return 0;
}
