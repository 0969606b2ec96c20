/* A whole file into the store, measured: the path that every question about a trace begins with.
 *
 *     load_file FILE [THREADS]      one line: seconds, MB/s, events/s, slices, bytes per slice,
 *                                   peak memory, and the speed of a plain memory
 *                    scan over the same bytes in the same run
 *
 * Seconds are those of the CPU with one thread, which is the default, so that other programs
 * disturb less; with more they are those of the clock, and cpu_seconds are those of all threads.
 *
 * One load per process, so that peak memory is the load's own; bench/run repeats it and takes
 * medians. The scan reads the file first, so both meet a warm page cache. It finds every quote with
 * the C library's memchr(), which is what a JSON reader has to do at least. */
#include "files/beside.h"
#include "files/unpack.h"
#include "formats/formats.h"
#include "store/trace.h"
#include "threads/workers.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static double seconds(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

/* The positions of quotes are summed so that finding them cannot be optimised away. */
static uint64_t scan(const uint8_t *p, size_t n, uint64_t at)
{
    uint64_t sum = 0;
    for (const uint8_t *q = p, *end = p + n; (q = memchr(q, '"', (size_t)(end - q))); q++)
        sum += at + (uint64_t)(q - p);
    return sum;
}

/* Reads the file in blocks and scans them; returns bytes per second of the scan alone. */
static double scan_speed(const char *path, uint64_t *size)
{
    enum { BLOCK = 1 << 20 };
    uint8_t *buf = malloc(BLOCK);
    int fd = open(path, O_RDONLY);
    double spent = 0;
    volatile uint64_t sink = 0;
    *size = 0;
    for (ssize_t n; fd >= 0 && buf && (n = read(fd, buf, BLOCK)) > 0; *size += (uint64_t)n) {
        double start = seconds(CLOCK_PROCESS_CPUTIME_ID);
        sink += scan(buf, (size_t)n, *size);
        spent += seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
    }
    if (fd >= 0)
        close(fd);
    free(buf);
    (void)sink;
    return spent > 0 ? (double)*size / spent : 0;
}

static _Noreturn void die(const char *path, const struct sv_err *err)
{
    fprintf(stderr, "load_file: %s: %s\n", path, err->msg);
    exit(1);
}

static uint64_t count_events(const struct sv_trace *t)
{
    return t->slices.n + t->counters.n + t->losses.n;
}

/* As files/load.c does it. */
static int store(struct sv_source *source, struct sv_trace *trace, struct sv_workers *workers,
                 struct sv_err *err)
{
    return sv_pump(sv_beside(source, trace, workers, 0), sv_trace_sink(trace), NULL, err);
}

int main(int argc, char **argv)
{
    struct sv_err err;
    struct sv_input *in;
    struct sv_source *source;
    struct sv_report report;
    struct sv_read_options options = {0};
    uint64_t size;
    sv_err_clear(&err);
    if (argc != 2 && argc != 3) {
        fprintf(stderr, "usage: load_file FILE [THREADS]\n");
        return 2;
    }
    double scanned = scan_speed(argv[1], &size);
    unsigned threads = argc == 3 ? (unsigned)strtoul(argv[2], NULL, 10) : 1;
    clockid_t clock = threads == 1 ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC;
    double cpu_start = seconds(CLOCK_PROCESS_CPUTIME_ID), start = seconds(clock);
    options.workers = sv_workers_new(threads);
    struct sv_dict *dict = sv_dict_new();
    sv_report_init(&report);
    if (sv_input_open(argv[1], &in, &err) < 0)
        die(argv[1], &err);
    sv_unpack_beside(in, options.workers, 0);
    const struct sv_format *format = sv_format_probe(in, &err);
    if (!format || sv_format_open(format, in, &options, dict, &report, &source, &err) < 0)
        die(argv[1], &err);
    struct sv_trace *trace = sv_trace_new(dict, &report, 0);
    sv_trace_use(trace, options.workers);
    if (store(source, trace, options.workers, &err) < 0)
        die(argv[1], &err);
    sv_input_unpack_end(in);
    sv_workers_free(options.workers);
    double spent = seconds(clock) - start, cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_start;
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    if (sv_report_count(&report, SV_DAMAGE)) {
        fprintf(stderr, "load_file: %s: damaged: the figures would not count\n", argv[1]);
        return 1;
    }
    printf("seconds %.3f mb_s %.0f slices_s %.0f slices %" PRIu64 " counters %" PRIu64
           " flows %" PRIu64
           " store_mb %.0f bytes_slice %.1f peak_mb %.0f scan_mb_s %.0f size_mb %.0f cpu_seconds "
           "%.3f\n",
           spent, (double)size / spent / 1e6, (double)count_events(trace) / spent, trace->slices.n,
           trace->counters.n, trace->flows.n, (double)sv_trace_bytes(trace) / 1e6,
           trace->slices.n ? (double)sv_trace_bytes(trace) / (double)trace->slices.n : 0,
           (double)usage.ru_maxrss * 1024 / 1e6, scanned / 1e6, (double)size / 1e6, cpu);
    sv_trace_free(trace);
    sv_input_close(in);
    sv_report_fini(&report);
    sv_dict_free(dict);
    return 0;
}
