/* chrome_read_speed [FILE] [RUNS]: how fast the Chrome reader is, next to scans of the same bytes.
 *
 * Reads the file (default: a generated one must be given) from the page cache, in turns: a memchr
 * loop over every quote, a vector scan that notes the position of every quote, and the reader into
 * a drain. Medians of RUNS (default 5) in MB/s of the file and their ratio, since the machine's own
 * speed changes from minute to minute. */
#include "core/base/json_scan.h"
#include "formats/formats.h"
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define RUNS_MAX 99

struct result {
    double memchr_s, scan_s, read_s;
    uint64_t quotes, events, args;
};

static uint64_t count_by_memchr(const char *p, size_t len)
{
    uint64_t n = 0;
    for (const char *end = p + len; (p = memchr(p, '"', (size_t)(end - p))); p++)
        n++;
    return n;
}

/* Positions of a block at a time, as a structural index would have them. */
static uint64_t count_by_scan(const uint8_t *p, size_t len)
{
    static uint32_t at[4096 + 64];
    uint64_t n = 0, kept = 0;
    size_t i = 0;
#if defined(__SSE2__)
    const __m128i quote = _mm_set1_epi8('"');
    for (; i + 64 <= len; i += 64) {
        uint64_t bits = 0;
        for (unsigned k = 0; k < 4; k++) {
            __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(p + i + 16 * k));
            bits |= (uint64_t)(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(v, quote)) << (16 * k);
        }
        for (; bits; bits &= bits - 1) {
            at[kept++] = (uint32_t)(i + (unsigned)__builtin_ctzll(bits));
            n++;
        }
        if (kept >= 4096)
            kept = at[0] & 1; /* keeps the stores alive */
    }
#endif
    for (; i < len; i++)
        n += p[i] == '"';
    return n;
}

static int read_all(const char *path, struct result *r)
{
    struct sv_err err = {0};
    struct sv_input *in;
    struct sv_source *s;
    struct sv_dict *d = sv_dict_new();
    struct sv_report report;
    struct sv_batch *b = malloc(sizeof *b);
    sv_report_init(&report);
    sv_batch_init(b);
    if (sv_input_open(path, &in, &err) < 0 ||
        sv_format_open(&sv_chrome_format, in, NULL, d, &report, &s, &err) < 0) {
        fprintf(stderr, "%s: %s\n", path, err.msg);
        return -1;
    }
    int n;
    r->events = r->args = 0;
    while ((n = s->next(s, b, &err)) > 0) {
        r->events += (uint64_t)n;
        for (int i = 0; i < n; i++)
            r->args += b->events[i].n_args;
        sv_batch_reset(b);
    }
    for (size_t i = 0; i < report.n && getenv("VERBOSE"); i++)
        fprintf(stderr, "# %llu × %s (first at %lld)\n", (unsigned long long)report.rows[i].count,
                report.rows[i].what, (long long)report.rows[i].first_pos);
    s->close(s);
    sv_input_close(in);
    sv_batch_fini(b);
    free(b);
    sv_report_fini(&report);
    sv_dict_free(d);
    return n;
}

int main(int argc, char **argv)
{
    static double times[3][RUNS_MAX];
    int runs = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 5;
    struct result r = {0};
    size_t len = 0;
    if (argc < 2 || runs < 1 || runs > RUNS_MAX) {
        fprintf(stderr, "usage: chrome_read_speed FILE [RUNS]\n");
        return 2;
    }
    for (int i = 0; i < runs; i++) { /* the reader first, so that the peak of memory is its own */
        double start = clock_s(CLOCK_PROCESS_CPUTIME_ID);
        if (read_all(argv[1], &r) < 0)
            return 3;
        times[0][i] = clock_s(CLOCK_PROCESS_CPUTIME_ID) - start;
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    char *bytes = read_file(argv[1], SV_JSON_PAD, &len);
    if (!bytes || len == 0) {
        perror(argv[1]);
        return 3;
    }
    for (int i = 0; i < runs; i++) {
        double start = clock_s(CLOCK_PROCESS_CPUTIME_ID);
        r.quotes = count_by_memchr(bytes, len);
        times[1][i] = clock_s(CLOCK_PROCESS_CPUTIME_ID) - start;
        start = clock_s(CLOCK_PROCESS_CPUTIME_ID);
        if (count_by_scan((const uint8_t *)bytes, len) != r.quotes)
            return 1;
        times[2][i] = clock_s(CLOCK_PROCESS_CPUTIME_ID) - start;
        start = clock_s(CLOCK_PROCESS_CPUTIME_ID);
        if (read_all(argv[1], &r) < 0)
            return 3;
        times[0][i] = clock_s(CLOCK_PROCESS_CPUTIME_ID) - start;
    }
    double mb = (double)len / 1e6;
    double read = mb / median(times[0], (size_t)runs), find = mb / median(times[1], (size_t)runs);
    double scan = mb / median(times[2], (size_t)runs);
    printf("chrome read: %.0f MB, %llu events, %llu arguments, %llu quotes, %s\n", mb,
           (unsigned long long)r.events, (unsigned long long)r.args, (unsigned long long)r.quotes,
           sv_json_scan_best()->name);
    printf("  reader into a drain      %7.0f MB/s (best %.0f)   %.2f M events/s   peak %ld KB\n",
           read, mb / times[0][0], (double)r.events / 1e6 / (mb / read), usage.ru_maxrss);
    printf("  every quote, by memchr   %7.0f MB/s   reader/scan %.2f\n", find, read / find);
    printf("  every quote, by vectors  %7.0f MB/s   reader/scan %.2f\n", scan, read / scan);
    free(bytes);
    return 0;
}
