/* The recorder without its kernel: records from memory to a finished .pftrace, CPU time and bytes
 * per system call.
 *
 *     decode [CALLS]      default 3,000,000, into /dev/null
 *
 * openat, read and close of 1,000 files by one thread and by eight in turns, laid into a ring as
 * the kernel programs lay them. The best of five. What the kernel's side costs is measured by
 * record_load; here are the decoder and the writer alone. */
#include "record/decode/decode.h"
#include "bench/measure.h"
#include "core/base/buf.h"
#include "core/files/output.h"
#include "formats/formats.h"
#include "record/bpf/syscalls.h"
#include "record/session/totals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

#include <linux/bpf.h>

enum { FILES = 1000, ROUNDS = 5, RING_BYTES = 4 << 20, FD = 3 };

struct ring {
    uint8_t *data;
    uint64_t consumer, producer;
    uint64_t now_ns;
};

static double seconds(void)
{
    return (double)clock_ns(CLOCK_PROCESS_CPUTIME_ID) * 1e-9;
}

static void die(const struct sv_err *err)
{
    fprintf(stderr, "decode: %s\n", err->msg);
    exit(1);
}

/* ---- records ---- */

static void put_record(struct ring *r, const struct sv_wire_call *c, const char *path)
{
    size_t text = path ? strlen(path) + 1 : 0, size = sizeof *c + text;
    uint8_t *at = r->data + (r->producer & (RING_BYTES - 1));
    uint32_t head[2] = {(uint32_t)size, 0};
    memcpy(at, head, sizeof head);
    memcpy(at + sizeof head, c, sizeof *c);
    if (path)
        memcpy(at + sizeof head + sizeof *c, path, text);
    r->producer += (size + BPF_RINGBUF_HDR_SZ + 7) & ~(size_t)7;
}

static void put_call(struct ring *r, unsigned thread, unsigned nr, int64_t ret, const char *path)
{
    struct sv_wire_call c = {.head = {.kind = SV_WIRE_CALL,
                                      .tgid = 4000,
                                      .tid = 4000 + thread,
                                      .what = nr,
                                      .ts_ns = r->now_ns + 900},
                             .start_ns = r->now_ns + 200,
                             .ret = ret,
                             .fd = path ? -100 : (int32_t)(FD + thread),
                             .size = nr == SYS_read ? 4096 : ~(uint64_t)0,
                             .offset = nr == SYS_read ? 0 : -1};
    put_record(r, &c, path);
    r->now_ns += 1000;
}

/* Fills the ring once, up to `n` calls; returns how many. */
static size_t fill(struct ring *r, size_t done, size_t n, unsigned threads)
{
    size_t made = 0;
    char path[64];
    while (done + made < n && r->producer - r->consumer < RING_BYTES - 1024) {
        size_t i = (done + made) / 3;
        unsigned thread = (unsigned)(i % threads);
        snprintf(path, sizeof path, "/data/train/class7/f%zu", i % FILES);
        put_call(r, thread, SYS_openat, (int64_t)FD + thread, path);
        put_call(r, thread, SYS_read, 4096, NULL);
        put_call(r, thread, SYS_close, 0, NULL);
        made += 3;
    }
    return made;
}

/* ---- the recorder's round ---- */

static void drain(struct sv_decode *d, struct sv_totals *totals, struct sv_batch *b,
                  struct sv_sink *sink)
{
    struct sv_err err = {0};
    sv_decode_round(d, UINT64_MAX);
    if (sv_pump_round(&totals->source, sink, b, &err) < 0)
        die(&err);
    sv_decode_release(d);
}

/* Returns the seconds of CPU. */
static double run(size_t n, unsigned threads, struct sv_output *output)
{
    struct ring r = {.data = sv_alloc(2 * (size_t)RING_BYTES), .now_ns = 1000000000000};
    struct sv_err err = {0};
    struct sv_report report;
    struct sv_dict *dict = sv_dict_new();
    struct sv_batch *b = sv_alloc(sizeof *b);
    struct sv_sink *sink;
    sv_report_init(&report);
    sv_batch_init(b);
    dict->clocks.trace_clock = SV_CLOCK_BOOTTIME;
    if (sv_perfetto_writer.open(output, NULL, dict, &report, &sink, &err) < 0)
        die(&err);
    struct sv_decode *d = sv_decode_new(dict, &report, NULL);
    struct sv_totals totals;
    sv_totals_init(&totals, sv_decode_source(d));
    sv_krings_add(sv_decode_rings(d), &r.consumer, &r.producer, r.data, RING_BYTES, false);
    double took = 0;
    for (size_t done = 0; done < n;) {
        done += fill(&r, done, n, threads);
        double start = seconds();
        drain(d, &totals, b, sink);
        took += seconds() - start;
    }
    double start = seconds();
    if (sv_totals_sum(&totals, SV_PROBE_syscalls, SV_SUM_EVENTS) < n ||
        sink->close(sink, false, &err) < 0)
        die(&err);
    took += seconds() - start;
    sv_totals_fini(&totals);
    sv_decode_free(d);
    sv_batch_fini(b);
    free(b);
    sv_dict_free(dict);
    sv_report_fini(&report);
    free(r.data);
    return took;
}

static double best_of(size_t n, unsigned threads)
{
    double best = 1e9;
    for (int i = 0; i < ROUNDS; i++) {
        struct sv_output *output;
        struct sv_err err = {0};
        if (sv_output_open("/dev/null", SV_OUTPUT_DIRECT, SV_PLAIN, &output, &err) < 0)
            die(&err);
        double took = run(n, threads, output);
        best = took < best ? took : best;
    }
    return best;
}

static double bytes_per_call(size_t n, unsigned threads)
{
    struct sv_buf to;
    struct sv_output *output;
    struct sv_err err = {0};
    sv_buf_init(&to, (size_t)1 << 30);
    if (sv_output_open_buf(&to, SV_PLAIN, &output, &err) < 0)
        die(&err);
    run(n, threads, output);
    double bytes = (double)to.len / (double)n;
    sv_buf_fini(&to);
    return bytes;
}

int main(int argc, char **argv)
{
    size_t n = argc > 1 ? strtoull(argv[1], NULL, 10) / 24 * 24 : 3000000;
    static const unsigned threads[] = {1, 8};
    for (unsigned t = 0; t < 2; t++) {
        printf("decode_%u_threads %.3f s/M\n", threads[t],
               best_of(n, threads[t]) * 1e6 / (double)n);
        printf("decode_%u_threads_bytes %.1f B/call\n", threads[t],
               bytes_per_call(n / 240 * 24, threads[t]));
    }
    return 0;
}
