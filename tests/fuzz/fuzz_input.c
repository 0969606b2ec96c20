/* Arbitrary bytes as compressed streams: base/input must end, stay within its memory and give the
 * same bytes however it is asked.
 *
 * The first byte of the data chooses the steps in which it is read; the rest is the file. */
#include "core/base/map.h"
#include "core/base/report.h"
#include "core/files/input.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OUT_MAX ((uint64_t)1 << 20) /* a bomb is read this far */

struct outcome {
    uint64_t hash, len;
    int code;
    bool truncated, has_trailing;
};

static struct outcome read_all(const uint8_t *data, size_t size, size_t step)
{
    struct outcome o = {0};
    struct sv_err err = {0};
    struct sv_input *in;
    if (sv_input_open_memory(data, size, "fuzz", &in, &err) != SV_OK)
        return o;
    while (o.len < OUT_MAX && (o.code = sv_input_need(in, step, &err)) > 0) {
        assert(in->len >= step && in->pos == o.len);
        for (size_t i = 0; i < step; i++)
            o.hash = (o.hash ^ in->data[i]) * 0x100000001b3u;
        sv_input_skip(in, step);
        o.len += step;
    }
    if (o.code == 0 && o.len < OUT_MAX) {
        assert(in->eof && in->len < step);
        for (size_t i = 0; i < in->len; i++)
            o.hash = (o.hash ^ in->data[i]) * 0x100000001b3u;
        o.len += in->len;
    }
    o.truncated = in->truncated;
    o.has_trailing = in->has_trailing;
    struct sv_report r;
    sv_report_init(&r);
    sv_input_report(in, &r);
    assert((sv_report_count(&r, SV_DAMAGE) > 0) == in->truncated);
    sv_report_fini(&r);
    sv_input_close(in);
    return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const size_t steps[] = {1, 3, 64, 4096, 65537, 300000};
    if (size == 0)
        return 0;
    struct outcome one = read_all(data + 1, size - 1, 1);
    struct outcome other =
        read_all(data + 1, size - 1, steps[data[0] % (sizeof steps / sizeof steps[0])]);
    if (one.len < OUT_MAX && other.len < OUT_MAX) {
        assert(one.len == other.len && one.hash == other.hash && one.code == other.code);
        assert(one.truncated == other.truncated && one.has_trailing == other.has_trailing);
    }
    return 0;
}
