/* JSON scanning: small bounded steps over bytes in memory, for readers of large JSON.
 *
 * Nothing here allocates, keeps state of its own or reports: readers build a cursor from these
 * steps and decide what damage means. All functions take [p, end) and never believe a byte at or
 * past `end`, but they may load up to SV_JSON_PAD bytes from there (the pad of struct sv_input, or
 * of the caller's own buffer). Vectors of 16 bytes are used inline (SSE2, NEON, or plain words);
 * longer runs go through a table of functions chosen once for the machine: sv_json_scan_best(). */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#define SV_JSON_PAD 64 /* readable bytes past `end` that every function here may touch */

static inline uint64_t sv_json_load8(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* ---- 16 bytes at a time ---- */

/* Index of the first of the 16 bytes at p that is a quote, a backslash, below 0x20 or past `last`,
 * which is 0x7f or 0x7e; 16 when none is. Compared as signed numbers, so that bytes past 0x7f are
 * below 0x20, too; 0x7f joins them when one is added. */
static inline unsigned sv_json_beyond16(const uint8_t *p, uint8_t last)
{
    const uint8_t shift = (uint8_t)(0x7f - last);
#if defined(__SSE2__)
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i m =
        _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('"')), _mm_cmpeq_epi8(v, _mm_set1_epi8('\\')));
    __m128i shifted = _mm_add_epi8(v, _mm_set1_epi8((char)shift));
    m = _mm_or_si128(m, _mm_cmplt_epi8(shifted, _mm_set1_epi8((char)(0x20 + shift))));
    return (unsigned)__builtin_ctz((unsigned)_mm_movemask_epi8(m) | 0x10000u);
#elif defined(__aarch64__)
    uint8x16_t v = vld1q_u8(p);
    uint8x16_t m = vorrq_u8(vceqq_u8(v, vdupq_n_u8('"')), vceqq_u8(v, vdupq_n_u8('\\')));
    int8x16_t shifted = vreinterpretq_s8_u8(vaddq_u8(v, vdupq_n_u8(shift)));
    m = vorrq_u8(m, vcltq_s8(shifted, vdupq_n_s8((int8_t)(0x20 + shift))));
    uint64_t bits = vget_lane_u64(vreinterpret_u64_u8(vshrn_n_u16(vreinterpretq_u16_u8(m), 4)), 0);
    return bits ? (unsigned)__builtin_ctzll(bits) >> 2 : 16;
#else
    unsigned i = 0;
    while (i < 16 && p[i] != '"' && p[i] != '\\' && p[i] >= 0x20 && p[i] <= last)
        i++;
    return i;
#endif
}

/* Index of the first of the 16 bytes at p that cannot be part of a string as it is (quote,
 * backslash, control character, anything outside ASCII), 16 when all can. */
static inline unsigned sv_json_special16(const uint8_t *p)
{
    return sv_json_beyond16(p, 0x7f);
}

/* Index of the first of the 16 bytes at p that is not a JSON blank, 16 when all are. */
static inline unsigned sv_json_solid16(const uint8_t *p)
{
#if defined(__SSE2__)
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i m =
        _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8(' ')), _mm_cmpeq_epi8(v, _mm_set1_epi8('\n')));
    m = _mm_or_si128(m, _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8('\r')),
                                     _mm_cmpeq_epi8(v, _mm_set1_epi8('\t'))));
    return (unsigned)__builtin_ctz(~(unsigned)_mm_movemask_epi8(m));
#else
    unsigned i = 0;
    while (i < 16 && (p[i] == ' ' || p[i] == '\n' || p[i] == '\r' || p[i] == '\t'))
        i++;
    return i;
#endif
}

/* Are the first n (≤ 16) of the bytes at a and b equal? Loads all 16 of both. */
static inline bool sv_json_same16(const uint8_t *a, const uint8_t *b, unsigned n)
{
#if defined(__SSE2__)
    __m128i eq = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(const void *)a),
                                _mm_loadu_si128((const __m128i *)(const void *)b));
    return ((~(unsigned)_mm_movemask_epi8(eq)) & ((1u << n) - 1)) == 0;
#else
    return memcmp(a, b, n) == 0;
#endif
}

/* Are the 16 bytes at a and b equal but for those whose bits are set in `skip`? */
static inline bool sv_json_same16_but(const uint8_t *a, const uint8_t *b, unsigned skip)
{
#if defined(__SSE2__)
    __m128i eq = _mm_cmpeq_epi8(_mm_loadu_si128((const __m128i *)(const void *)a),
                                _mm_loadu_si128((const __m128i *)(const void *)b));
    return ((unsigned)_mm_movemask_epi8(eq) | skip) == 0xffff;
#else
    for (unsigned i = 0; i < 16; i++)
        if (a[i] != b[i] && !(skip >> i & 1))
            return false;
    return true;
#endif
}

static inline bool sv_json_is_blank(uint8_t c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* The first byte that is not a blank; `end` when there is none. */
static inline const uint8_t *sv_json_solid(const uint8_t *p, const uint8_t *end)
{
    if (*p >
        /* most often there is none or one (a byte past end may be looked at, but not passed) */
        ' ')
        return p < end ? p : end;
    for (;;) {
        unsigned n = sv_json_solid16(p);
        p += n;
        if (p >= end)
            return end;
        if (n < 16)
            return p;
    }
}

/* ---- longer runs, by the best instructions of the machine ---- */

struct sv_json_scan {
    const char *name; /* "avx2", "sse2", "neon", "plain" */
    /* The first special byte (see sv_json_special16), or end. */
    const uint8_t *(*special)(const uint8_t *p, const uint8_t *end);
    /* The first quote or backslash, or end. */
    const uint8_t *(*quote)(const uint8_t *p, const uint8_t *end);
    /* The first of " { } [ ], or end. */
    const uint8_t *(*structure)(const uint8_t *p, const uint8_t *end);
};

const struct sv_json_scan *sv_json_scan_best(void);
/* The i-th one that this machine can run, the best first; NULL past the last (for tests). */
const struct sv_json_scan *sv_json_scan_at(unsigned i);

/* The first special byte at or after p, or end: short strings inline, long ones by the table. */
static inline const uint8_t *sv_json_special(const struct sv_json_scan *scan, const uint8_t *p,
                                             const uint8_t *end)
{
    unsigned n = sv_json_special16(p);
    if (__builtin_expect(n == 16, 0)) {
        n += sv_json_special16(p + 16);
        if (n == 32)
            return p + 32 < end ? scan->special(p + 32, end) : end;
    }
    return p + n < end ? p + n : end;
}

/* ---- values ---- */

/* Steps over one value without looking into it. The state allows a value larger than the window:
 * start with a zeroed one at the first byte of the value, give it piece after piece. Returns the
 * byte after the value, or NULL when [p, end) ends first. A scalar ends before the next blank or
 * structural byte, so the last one of an input is never complete: ask sv_json_skip_is_scalar().
 * Brackets are counted, not matched by kind. */
struct sv_json_skip {
    uint32_t depth;
    bool in_string, escaped, in_scalar;
};

const uint8_t *sv_json_skip(struct sv_json_skip *s, const struct sv_json_scan *scan,
                            const uint8_t *p, const uint8_t *end);

/* One well-formed JSON value with nothing around it but blanks, valid UTF-8, nested at most
 * SV_JSON_VALID_DEPTH deep. */
#define SV_JSON_VALID_DEPTH 256
bool sv_json_valid(const uint8_t *p, size_t len);

/* The text between the quotes, escapes resolved, written to out (at most len bytes, out may be p).
 * Returns the length. What cannot be resolved is kept as it is (unknown escapes) or becomes U+FFFD
 * (half a surrogate pair). */
enum sv_json_oddity {
    SV_JSON_BAD_ESCAPE = 1,
    SV_JSON_LONE_SURROGATE = 2,
    SV_JSON_CONTROL = 4, /* a raw control character */
    SV_JSON_BAD_UTF8 = 8
};
size_t sv_json_unescape(const uint8_t *p, size_t len, char *out, unsigned *oddities);
/* The oddities of a text without escapes. */
unsigned sv_json_text_oddities(const uint8_t *p, size_t len);

/* ---- numbers ---- */

/* ± digits × 10^exp10. Digits that do not fit 64 bits are cut: the first one and whether any after
 * it is not 0 are kept, so that rounding stays exact. */
struct sv_json_number {
    uint64_t digits;
    int32_t exp10;
    bool is_negative;
    bool is_integer; /* written without point and exponent */
    bool is_odd;     /* not JSON's grammar, but plain: +1 .5 5. 007 */
    uint8_t cut;     /* first digit that was cut */
    bool cut_more;   /* a later one was not 0 */
};

/* The byte after the number at p, or NULL when there is none. A number that touches `end` may
 * continue past it. */
const uint8_t *sv_json_number(const uint8_t *p, const uint8_t *end, struct sv_json_number *out);

enum sv_json_exactness { SV_JSON_EXACT, SV_JSON_ROUNDED, SV_JSON_OVERFLOW };

/* The number × 10^shift as an integer, ties to even. */
enum sv_json_exactness sv_json_number_int(const struct sv_json_number *n, int shift, int64_t *out);
/* The nearest double; text is what the number was read from. */
double sv_json_number_double(const struct sv_json_number *n, const uint8_t *text, size_t len);

/* NaN and the infinities, which JSON has no numbers for: the words that writers use for them
 * ("NaN", "-Infinity", "inf" and so on, in any case). False: none of these. */
bool sv_json_not_finite(const uint8_t *p, size_t len, double *out);

/* Up to 8 decimal digits at p; *n says how many there are (0..8). */
static inline uint32_t sv_json_digits8(const uint8_t *p, unsigned *n)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    uint64_t v = sv_json_load8(p) ^ 0x3030303030303030ull;
    uint64_t other = ((v + 0x7676767676767676ull) | v) &
                     0x8080808080808080ull; /* its lowest bit is exact */
    unsigned count = other ? (unsigned)__builtin_ctzll(other) >> 3 : 8;
    *n = count;
    if (count == 0)
        return 0;
    v <<= (8 - count) * 8; /* leading zeros */
    v = (v * 10) + (v >> 8);
    v = (((v & 0x000000ff000000ffull) * 0x000f424000000064ull) +
         (((v >> 16) & 0x000000ff000000ffull) * 0x0000271000000001ull)) >>
        32;
    return (uint32_t)v;
#else
    uint32_t v = 0;
    unsigned i = 0;
    for (; i < 8 && p[i] >= '0' && p[i] <= '9'; i++)
        v = v * 10 + (p[i] - '0');
    *n = i;
    return v;
#endif
}
