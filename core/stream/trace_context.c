/* W3C trace context: see trace_context.h. Headers are other programs' words. */
#include "core/stream/trace_context.h"
#include "core/base/hex.h"
#include "core/base/map.h"

#include <string.h>

bool sv_is_id(const uint8_t *id, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (id[i])
            return true;
    return false;
}

/* The header allows lower case only. */
static bool read_hex(const char *text, uint8_t *to, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int high = sv_hex_lower(text[2 * i]), low = sv_hex_lower(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        to[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static char *write_hex(char *to, const uint8_t *bytes, size_t n)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        *to++ = digits[bytes[i] >> 4];
        *to++ = digits[bytes[i] & 15];
    }
    return to;
}

bool sv_traceparent_read(const char *text, size_t len, uint8_t trace_id[SV_TRACE_ID_BYTES],
                         uint8_t span_id[SV_SPAN_ID_BYTES], uint8_t *flags)
{
    uint8_t version, trace[SV_TRACE_ID_BYTES], span[SV_SPAN_ID_BYTES], bits;
    while (len > 0 && (text[len - 1] == ' ' || text[len - 1] == '\t'))
        len--;
    while (len > 0 && (*text == ' ' || *text == '\t')) {
        text++;
        len--;
    }
    if (len < SV_TRACEPARENT_LEN || text[2] != '-' || text[35] != '-' || text[52] != '-' ||
        !read_hex(text, &version, 1) || !read_hex(text + 3, trace, sizeof trace) ||
        !read_hex(text + 36, span, sizeof span) || !read_hex(text + 53, &bits, 1))
        return false;
    if (version == 0xff || (len > SV_TRACEPARENT_LEN && (version == 0 || text[55] != '-')) ||
        !sv_is_id(trace, sizeof trace) || !sv_is_id(span, sizeof span))
        return false;
    memcpy(trace_id, trace, sizeof trace);
    memcpy(span_id, span, sizeof span);
    *flags = bits;
    return true;
}

void sv_traceparent_write(char text[SV_TRACEPARENT_LEN + 1],
                          const uint8_t trace_id[SV_TRACE_ID_BYTES],
                          const uint8_t span_id[SV_SPAN_ID_BYTES], uint8_t flags)
{
    char *to = text;
    memcpy(to, "00-", 3);
    to = write_hex(to + 3, trace_id, SV_TRACE_ID_BYTES);
    *to++ = '-';
    to = write_hex(to, span_id, SV_SPAN_ID_BYTES);
    *to++ = '-';
    to = write_hex(to, &flags, 1);
    *to = '\0';
}

/* Big endian on every machine: the number is the same wherever it is made. */
static uint64_t word(const uint8_t *p)
{
    uint64_t v = 0;
    for (int i = 0; i < 8; i++)
        v = v << 8 | p[i];
    return v;
}

uint64_t sv_trace_flow(const uint8_t trace_id[SV_TRACE_ID_BYTES],
                       const uint8_t span_id[SV_SPAN_ID_BYTES])
{
    uint64_t flow =
        sv_mix64(sv_mix64(sv_mix64(word(trace_id)) + word(trace_id + 8)) + word(span_id));
    return flow ? flow : 1;
}
