/* Long runs of JSON text in several instruction sets, chosen once for the machine. Called through
 * the table of json_scan.h.
 *
 * The versions of one function must agree to the byte: tests run them all on the same input. They
 * are apart from the rest of the scanner because asking for the CPU's features brings a
 * constructor, which libstave, who only checks small values, must not bring into other people's
 * programs. */
#include "core/base/json_scan.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define AVX2 __attribute__((target("avx2,bmi")))
#endif

static const uint8_t *special_16(const uint8_t *p, const uint8_t *end)
{
    for (; p < end; p += 16) {
        unsigned n = sv_json_special16(p);
        if (n < 16)
            return p + n < end ? p + n : end;
    }
    return end;
}

#if defined(__SSE2__)

/* Index of the first byte of v that equals one of the two, 16 when none does. */
static inline unsigned either16(const uint8_t *p, char a, char b)
{
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i m =
        _mm_or_si128(_mm_cmpeq_epi8(v, _mm_set1_epi8(a)), _mm_cmpeq_epi8(v, _mm_set1_epi8(b)));
    return (unsigned)__builtin_ctz((unsigned)_mm_movemask_epi8(m) | 0x10000u);
}

/* [ and { differ in the bit 0x20, and so do ] and }. */
static inline unsigned structure16(const uint8_t *p)
{
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i folded = _mm_or_si128(v, _mm_set1_epi8(0x20));
    __m128i m = _mm_or_si128(_mm_cmpeq_epi8(folded, _mm_set1_epi8('{')),
                             _mm_cmpeq_epi8(folded, _mm_set1_epi8('}')));
    m = _mm_or_si128(m, _mm_cmpeq_epi8(v, _mm_set1_epi8('"')));
    return (unsigned)__builtin_ctz((unsigned)_mm_movemask_epi8(m) | 0x10000u);
}

#else

static inline unsigned either16(const uint8_t *p, char a, char b)
{
    unsigned i = 0;
    while (i < 16 && p[i] != (uint8_t)a && p[i] != (uint8_t)b)
        i++;
    return i;
}

static inline unsigned structure16(const uint8_t *p)
{
    unsigned i = 0;
    while (i < 16 && (p[i] | 0x20) != '{' && (p[i] | 0x20) != '}' && p[i] != '"')
        i++;
    return i;
}

#endif

static const uint8_t *quote_16(const uint8_t *p, const uint8_t *end)
{
    for (; p < end; p += 16) {
        unsigned n = either16(p, '"', '\\');
        if (n < 16)
            return p + n < end ? p + n : end;
    }
    return end;
}

static const uint8_t *structure_16(const uint8_t *p, const uint8_t *end)
{
    for (; p < end; p += 16) {
        unsigned n = structure16(p);
        if (n < 16)
            return p + n < end ? p + n : end;
    }
    return end;
}

#if defined(__SSE2__)
#define NARROW_NAME "sse2"
#elif defined(__aarch64__)
#define NARROW_NAME "neon"
#else
#define NARROW_NAME "plain"
#endif

static const struct sv_json_scan narrow = {NARROW_NAME, special_16, quote_16, structure_16};

#if defined(__x86_64__)

AVX2 static const uint8_t *special_32(const uint8_t *p, const uint8_t *end)
{
    const __m256i quote = _mm256_set1_epi8('"'), slash = _mm256_set1_epi8('\\'),
                  blank = _mm256_set1_epi8(0x20);
    for (; p < end; p += 32) {
        __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)p);
        __m256i m = _mm256_or_si256(_mm256_cmpeq_epi8(v, quote), _mm256_cmpeq_epi8(v, slash));
        m = _mm256_or_si256(m, _mm256_cmpgt_epi8(blank, v));
        unsigned bits = (unsigned)_mm256_movemask_epi8(m);
        if (bits) {
            p += __builtin_ctz(bits);
            return p < end ? p : end;
        }
    }
    return end;
}

AVX2 static const uint8_t *quote_32(const uint8_t *p, const uint8_t *end)
{
    const __m256i quote = _mm256_set1_epi8('"'), slash = _mm256_set1_epi8('\\');
    for (; p < end; p += 32) {
        __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)p);
        unsigned bits = (unsigned)_mm256_movemask_epi8(
            _mm256_or_si256(_mm256_cmpeq_epi8(v, quote), _mm256_cmpeq_epi8(v, slash)));
        if (bits) {
            p += __builtin_ctz(bits);
            return p < end ? p : end;
        }
    }
    return end;
}

AVX2 static const uint8_t *structure_32(const uint8_t *p, const uint8_t *end)
{
    const __m256i quote = _mm256_set1_epi8('"'), fold = _mm256_set1_epi8(0x20);
    const __m256i open = _mm256_set1_epi8('{'), close = _mm256_set1_epi8('}');
    for (; p < end; p += 32) {
        __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)p);
        __m256i f = _mm256_or_si256(v, fold);
        __m256i m = _mm256_or_si256(_mm256_cmpeq_epi8(f, open), _mm256_cmpeq_epi8(f, close));
        unsigned bits =
            (unsigned)_mm256_movemask_epi8(_mm256_or_si256(m, _mm256_cmpeq_epi8(v, quote)));
        if (bits) {
            p += __builtin_ctz(bits);
            return p < end ? p : end;
        }
    }
    return end;
}

static const struct sv_json_scan wide = {"avx2", special_32, quote_32, structure_32};

const struct sv_json_scan *sv_json_scan_best(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") ? &wide : &narrow;
}

const struct sv_json_scan *sv_json_scan_at(unsigned i)
{
    const struct sv_json_scan *best = sv_json_scan_best();
    if (i == 0)
        return best;
    return i == 1 && best != &narrow ? &narrow : NULL;
}

#else

const struct sv_json_scan *sv_json_scan_best(void)
{
    return &narrow;
}

const struct sv_json_scan *sv_json_scan_at(unsigned i)
{
    return i == 0 ? &narrow : NULL;
}

#endif
