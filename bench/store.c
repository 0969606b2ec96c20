/* The store, measured: how fast it takes events, what they cost in memory, whether the cost per
 * event stays the same.
 *
 *     store            a few seconds, 1.2 GB
 *     store --huge     100 M slices without and 50 M with arguments: minutes, 4.6 GB
 *
 * Prints `name value unit` lines, and what they are made of on stderr. Events are generated, so
 * that no reader is measured with it; each run is a child process, so that peak memory is its own;
 * the best of three counts. Times are CPU times of the process. Virtual machines that hand out
 * memory for the first time spend more on that than on everything else, so linearity is judged by
 * what the program itself computes (user time). */
#include "store/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define N_TRACKS 8u
#define N_NAMES  100u

struct generator {
    struct sv_dict *dict;
    sv_track tracks[N_TRACKS];
    sv_str names[N_NAMES], cat, keys[16];
    uint64_t turn, random;
    int64_t now;
    unsigned depth[N_TRACKS];
    char texts[64][48];
};

struct figures {
    double write_s, finish_s; /* user and system time */
    double user_s;            /* of both */
    double bytes_per_slice, args_per_slice, peak_mb;
    uint64_t slices;
};

typedef void fill_fn(struct generator *g, struct sv_batch *b);

static double seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static double user_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_utime.tv_sec + (double)u.ru_utime.tv_usec * 1e-6;
}

static double peak_mb(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)u.ru_maxrss / 1024.0;
}

static uint64_t roll(struct generator *g)
{
    g->random ^= g->random << 13;
    g->random ^= g->random >> 7;
    g->random ^= g->random << 17;
    return g->random;
}

static void open_generator(struct generator *g)
{
    static const char *const keys[] = {"External id",  "correlation",
                                       "device",       "context",
                                       "stream",       "grid",
                                       "block",        "registers per thread",
                                       "kernel",       "est. achieved occupancy %",
                                       "blocks per SM"};
    char text[64];
    memset(g, 0, sizeof *g);
    g->random = 88172645463325252u;
    g->dict = sv_dict_new();
    for (unsigned i = 0; i < N_TRACKS; i++)
        g->tracks[i] = sv_dict_thread(g->dict, 0, 1000, 1000 + (int64_t)i);
    for (unsigned i = 0; i < N_NAMES; i++) {
        snprintf(text, sizeof text, "aten::operator_%u", i);
        g->names[i] = sv_dict_cstr(g->dict, text);
    }
    for (unsigned i = 0; i < sizeof keys / sizeof keys[0]; i++)
        g->keys[i] = sv_dict_cstr(g->dict, keys[i]);
    g->cat = sv_dict_cstr(g->dict, "cpu_op");
    for (unsigned i = 0; i < 64; i++)
        snprintf(g->texts[i], sizeof g->texts[i], "void at::native::kernel_%u<float>", i);
}

/* Nested begins and ends on a few threads. */
static void fill_edges(struct generator *g, struct sv_batch *b)
{
    while (b->n < SV_BATCH) {
        uint64_t r = roll(g);
        unsigned k = (unsigned)(r % N_TRACKS);
        bool begin = g->depth[k] == 0 || (g->depth[k] < 6 && r >> 32 & 1);
        struct sv_event *e = sv_batch_event(b);
        e->ts_ns = g->now += (int64_t)(r >> 40 & 0xff);
        e->track = g->tracks[k];
        e->kind = begin ? SV_BEGIN : SV_END;
        e->name = begin ? g->names[r >> 16 & 63] : 0;
        e->cat = begin ? g->cat : 0;
        g->depth[k] += begin ? 1 : -1u;
    }
}

static void add_int(struct sv_batch *b, sv_str key, int64_t i)
{
    struct sv_arg *a = sv_batch_arg(b);
    *a = (struct sv_arg){.key = key, .type = SV_ARG_INT, .i = i};
}

/* A whole slice as a profiler of an accelerator writes it: ten arguments, two of them arrays, one a
 * name, one a double. */
static void fill_kernels(struct generator *g, struct sv_batch *b)
{
    while (b->n < SV_BATCH) {
        uint64_t r = roll(g);
        const char *text = g->texts[r >> 20 & 63];
        struct sv_event *e = sv_batch_event(b);
        e->ts_ns = g->now += (int64_t)(r >> 40 & 0x3ff);
        e->dur_ns = (int64_t)(r >> 50 & 0xff);
        e->track = g->tracks[r % N_TRACKS];
        e->kind = SV_SLICE;
        e->name = g->names[r >> 16 & 63];
        e->cat = g->cat;
        add_int(b, g->keys[0], (int64_t)g->turn);
        add_int(b, g->keys[1], (int64_t)g->turn++);
        add_int(b, g->keys[2], (int64_t)(r & 7));
        add_int(b, g->keys[3], 1);
        add_int(b, g->keys[4], (int64_t)(r & 31));
        for (unsigned i = 5; i < 7; i++) {
            size_t array = sv_batch_open(b, g->keys[i], SV_ARG_ARRAY);
            for (unsigned j = 0; j < 3; j++)
                add_int(b, 0, (int64_t)(r >> (8 * j) & 0x1ff));
            sv_batch_close(b, array);
        }
        add_int(b, g->keys[7], (int64_t)(r & 255));
        *sv_batch_arg(b) = (struct sv_arg){.key = g->keys[8],
                                           .type = SV_ARG_TEXT,
                                           .size = (uint32_t)strlen(text) & 0xffffff,
                                           .text = text};
        *sv_batch_arg(b) = (struct sv_arg){
            .key = g->keys[10], .type = SV_ARG_DOUBLE, .d = (double)(r & 0xffff) / 132.0};
        sv_batch_finish(b, e);
    }
}

static void die(const char *what)
{
    fprintf(stderr, "store: %s\n", what);
    exit(1);
}

/* What generating the same events alone takes: it is taken off. */
static double generate(fill_fn *fill, struct generator *g, struct sv_batch *b, uint64_t n)
{
    double start = user_seconds();
    for (uint64_t done = 0; done < n; done += SV_BATCH) {
        sv_batch_reset(b);
        fill(g, b);
    }
    return user_seconds() - start;
}

/* Writes n events into the store; only what the store does is in write_s. */
static void load(fill_fn *fill, struct generator *g, struct sv_batch *b, uint64_t n,
                 struct sv_sink *sink, struct figures *f)
{
    struct sv_err err = {0};
    for (uint64_t done = 0; done < n; done += SV_BATCH) {
        sv_batch_reset(b);
        fill(g, b);
        double start = seconds();
        if (sink->write(sink, b->events, b->n, &err) < 0)
            die(err.msg);
        f->write_s += seconds() - start;
    }
    double start = seconds();
    if (sink->close(sink, false, &err) < 0)
        die(err.msg);
    f->finish_s = seconds() - start;
}

static void measure(fill_fn *fill, uint64_t n, struct figures *f)
{
    struct generator *g = malloc(sizeof *g);
    struct sv_batch *b = malloc(sizeof *b);
    if (!g || !b)
        die("no memory");
    sv_batch_init(b);
    open_generator(g);
    double generating = generate(fill, g, b, n);
    sv_dict_free(g->dict);
    open_generator(g);
    struct sv_trace *t = sv_trace_new(g->dict, NULL, 0);
    double start = user_seconds();
    load(fill, g, b, n, sv_trace_sink(t), f);
    f->user_s = user_seconds() - start - generating;
    f->slices = t->slices.n;
    f->args_per_slice = (double)sv_trace_args_bytes(t) / (double)t->slices.n;
    f->bytes_per_slice = (double)sv_trace_bytes(t) / (double)t->slices.n - f->args_per_slice;
    f->peak_mb = peak_mb();
    sv_trace_free(t);
    sv_batch_fini(b);
    sv_dict_free(g->dict);
    free(b);
    free(g);
}

/* In a child, so that its peak is its own. */
static struct figures measure_apart(fill_fn *fill, uint64_t n)
{
    struct figures f = {0};
    int ends[2];
    pid_t pid = pipe(ends) < 0 ? -1 : fork();
    if (pid < 0)
        die("no child");
    if (pid == 0) {
        measure(fill, n, &f);
        _exit(write(ends[1], &f, sizeof f) == sizeof f ? 0 : 1);
    }
    close(ends[1]);
    ssize_t got = read(ends[0], &f, sizeof f);
    close(ends[0]);
    int status;
    if (waitpid(pid, &status, 0) < 0 || status != 0 || got != sizeof f)
        die("the child failed");
    return f;
}

static struct figures best_of(const char *what, fill_fn *fill, uint64_t n, unsigned runs)
{
    struct figures best = {0};
    for (unsigned i = 0; i < runs; i++) {
        struct figures f = measure_apart(fill, n);
        if (i == 0 || f.write_s + f.finish_s < best.write_s + best.finish_s)
            best = f;
    }
    fprintf(stderr,
            "%-22s %4.0f M: write %5.1f + finish %5.1f ns/event (user %5.1f), %.1f + %.1f B/slice, "
            "peak %.0f MB = %.1f B/slice\n",
            what, (double)n / 1e6, best.write_s / (double)n * 1e9, best.finish_s / (double)n * 1e9,
            best.user_s / (double)n * 1e9, best.bytes_per_slice, best.args_per_slice, best.peak_mb,
            best.peak_mb * 1048576.0 / (double)best.slices);
    return best;
}

static double rate(const struct figures *f, uint64_t n)
{
    return (double)n / (f->write_s + f->finish_s) / 1e6;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

int main(int argc, char **argv)
{
    const uint64_t million = 1000000;
    bool huge = argc > 1 && strcmp(argv[1], "--huge") == 0;
    if (argc > 1 && !huge) {
        fprintf(stderr, "usage: store [--huge]\n");
        return 2;
    }
    if (huge) {
        best_of("edges", fill_edges, 200 * million, 1);
        best_of("slices, ten arguments", fill_kernels, 50 * million, 1);
        return 0;
    }
    struct figures kernels = best_of("slices, ten arguments", fill_kernels, 2 * million, 3);
    struct figures one = best_of("edges", fill_edges, million, 3);
    struct figures ten = best_of("edges", fill_edges, 10 * million, 3);
    struct figures fifty = best_of("edges", fill_edges, 50 * million, 3);
    printf("store_edges %.1f M/s\n", rate(&ten, 10 * million));
    printf("store_slices_ten_args %.2f M/s\n", rate(&kernels, 2 * million));
    printf("store_bytes_per_slice %.1f bytes\n", fifty.bytes_per_slice);
    printf("store_peak_per_slice %.1f bytes\n", fifty.peak_mb * 1048576.0 / (double)fifty.slices);
    printf("store_ten_args %.1f bytes\n", kernels.args_per_slice);
    printf("store_linearity %.3f max/1M\n",
           larger(ten.user_s / 10, fifty.user_s / 50) / one.user_s);
    return 0;
}
