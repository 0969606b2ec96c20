/* The Perfetto writer, measured: events per second from prepared batches, and bytes per event
 * beside gzip'ed JSON.
 *
 *     write_perfetto [EVENTS]      default 2,000,000
 *
 * Begin and end events of 100 names on 8 threads, in time order, nested up to four deep, 1.5 us
 * between two of a thread. Then the same with two random integer arguments, with long times (three
 * bytes instead of two), and with names and times drawn uniformly, the worst for compression. Speed
 * is the best of five, of one core, into /dev/null. */
#include "core/base/buf.h"
#include "formats/formats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zlib.h>

enum { N_TRACKS = 8, N_NAMES = 100, ROUNDS = 5 };

struct bench {
    struct sv_dict *dict;
    struct sv_report report;
    struct sv_event *events;
    struct sv_arg *args;
    size_t n;
    uint64_t random;
};

static double seconds(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static uint64_t roll(struct bench *b, uint64_t below)
{
    b->random ^= b->random << 13;
    b->random ^= b->random >> 7;
    b->random ^= b->random << 17;
    return b->random % below;
}

static void die(const struct sv_err *err)
{
    fprintf(stderr, "write_perfetto: %s\n", err->msg);
    exit(1);
}

/* ---- the events ---- */

static void add_args(struct bench *b, struct sv_event *e, const sv_str keys[2])
{
    struct sv_arg *a = &b->args[2 * (size_t)(e - b->events)];
    a[0] = (struct sv_arg){.key = keys[0], .type = SV_ARG_INT, .i = (int64_t)roll(b, 100)};
    a[1] = (struct sv_arg){.key = keys[1], .type = SV_ARG_INT, .i = (int64_t)roll(b, 5000)};
    e->args = a;
    e->n_args = 2;
}

static void make_tracks(struct bench *b, sv_track tracks[N_TRACKS])
{
    char text[40];
    for (unsigned i = 0; i < N_TRACKS; i++) {
        snprintf(text, sizeof text, "worker %u", i);
        tracks[i] = sv_dict_thread(b->dict, 0, 4000, 4001 + i);
        b->dict->tracks[tracks[i]].name = sv_dict_cstr(b->dict, text);
    }
}

/* Few names are frequent and many are rare, times are exponential; or both uniform, the worst for
 * compression. */
static unsigned draw_name(struct bench *b, bool is_uniform)
{
    unsigned name = 0;
    while (!is_uniform && name < N_NAMES - 1 && roll(b, 13))
        name++;
    return is_uniform ? (unsigned)roll(b, N_NAMES) : name;
}

static int64_t draw_time(struct bench *b, double mean_ns, bool is_uniform)
{
    double r = (double)(roll(b, 1000000) + 1) / 1e6;
    return 80 + (int64_t)(is_uniform ? 2 * mean_ns * r : -mean_ns * log(r));
}

static void prepare(struct bench *b, size_t n, double mean_ns, bool is_uniform, bool with_args)
{
    char text[40];
    sv_track tracks[N_TRACKS];
    int64_t next_ns[N_TRACKS];
    unsigned depth[N_TRACKS] = {0};
    *b = (struct bench){.dict = sv_dict_new(), .n = n, .random = 88172645463325252u};
    b->dict->clocks.trace_clock = SV_CLOCK_BOOTTIME;
    sv_report_init(&b->report);
    b->events = sv_alloc(n * sizeof *b->events);
    b->args = with_args ? sv_alloc(2 * n * sizeof *b->args) : NULL;
    make_tracks(b, tracks);
    sv_str keys[2] = {sv_dict_cstr(b->dict, "layer"), sv_dict_cstr(b->dict, "batch")};
    for (unsigned i = 0; i < N_TRACKS; i++)
        next_ns[i] = 1000000000 + i;
    for (size_t i = 0; i < n; i++) {
        unsigned at = 0;
        for (unsigned t = 1; t < N_TRACKS; t++)
            at = next_ns[t] < next_ns[at] ? t : at;
        bool begins = depth[at] == 0 || (depth[at] < 4 && roll(b, 2));
        struct sv_event *e = &b->events[i];
        *e = (struct sv_event){.ts_ns = next_ns[at], .track = tracks[at]};
        e->kind = begins ? SV_BEGIN : SV_END;
        depth[at] += begins ? 1u : -1u;
        if (begins) {
            unsigned name = draw_name(b, is_uniform);
            snprintf(text, sizeof text, "operation_of_layer_%u", name);
            e->name = sv_dict_cstr(b->dict, text);
            snprintf(text, sizeof text, "category%u", name % 4);
            e->cat = sv_dict_cstr(b->dict, text);
        }
        if (with_args && begins)
            add_args(b, e, keys);
        next_ns[at] += draw_time(b, mean_ns, is_uniform);
    }
}

static void discard(struct bench *b)
{
    sv_dict_free(b->dict);
    sv_report_fini(&b->report);
    free(b->events);
    free(b->args);
}

/* ---- what is measured ---- */

/* Writes all events; returns the seconds it took and leaves the size. */
static double write_all(struct bench *b, const char *path, struct sv_buf *to,
                        enum sv_compression compression)
{
    struct sv_err err = {0};
    struct sv_output *out;
    struct sv_sink *sink;
    struct sv_write_options options = {.compression = compression};
    if ((to ? sv_output_open_buf(to, SV_PLAIN, &out, &err)
            : sv_output_open(path, SV_OUTPUT_DIRECT, SV_PLAIN, &out, &err)) < 0 ||
        sv_perfetto_writer.open(out, &options, b->dict, &b->report, &sink, &err) < 0)
        die(&err);
    double start = seconds();
    for (size_t i = 0; i < b->n; i += SV_BATCH) {
        size_t n = b->n - i < SV_BATCH ? b->n - i : SV_BATCH;
        if (sink->write(sink, b->events + i, n, &err) < 0)
            die(&err);
    }
    if (sink->close(sink, false, &err) < 0)
        die(&err);
    return seconds() - start;
}

static double best_speed(struct bench *b, enum sv_compression compression)
{
    double best = 1e9;
    for (int i = 0; i < ROUNDS; i++) {
        double s = write_all(b, "/dev/null", NULL, compression);
        best = s < best ? s : best;
    }
    return (double)b->n / best / 1e6;
}

static double bytes_per_event(struct bench *b, enum sv_compression compression)
{
    struct sv_buf file;
    sv_buf_init(&file, (size_t)4 << 30);
    write_all(b, NULL, &file, compression);
    double size = (double)file.len / (double)b->n;
    sv_buf_fini(&file);
    return size;
}

/* The same events as Chrome JSON: the smallest form that a viewer takes. */
static void json_sizes(const struct bench *b, double *plain, double *gzip)
{
    struct sv_buf json;
    sv_buf_init(&json, (size_t)4 << 30);
    sv_buf_str(&json, "[");
    for (size_t i = 0; i < b->n; i++) {
        const struct sv_event *e = &b->events[i];
        sv_buf_printf(&json, "%s{\"ph\":\"%c\",\"pid\":4000,\"tid\":%lld,\"ts\":", i ? ",\n" : "",
                      e->kind == SV_BEGIN ? 'B' : 'E', (long long)b->dict->tracks[e->track].tid);
        sv_buf_us3(&json, e->ts_ns);
        if (e->kind == SV_BEGIN)
            sv_buf_printf(&json, ",\"name\":\"%s\",\"cat\":\"%s\"",
                          sv_dict_text(b->dict, e->name).bytes,
                          sv_dict_text(b->dict, e->cat).bytes);
        if (e->n_args)
            sv_buf_printf(&json, ",\"args\":{\"layer\":%lld,\"batch\":%lld}",
                          (long long)e->args[0].i, (long long)e->args[1].i);
        sv_buf_str(&json, "}");
    }
    uLongf packed_len = compressBound(json.len);
    uint8_t *packed = malloc(packed_len);
    if (!packed || json.failed || compress2(packed, &packed_len, json.data, json.len, 6) != Z_OK)
        exit(1);
    *plain = (double)json.len / (double)b->n;
    *gzip = (double)packed_len / (double)b->n;
    free(packed);
    sv_buf_fini(&json);
}

static void row(const char *title, size_t n, double mean_ns, bool is_uniform, bool with_args)
{
    struct bench b;
    double json, gzip;
    prepare(&b, n, mean_ns, is_uniform, with_args);
    json_sizes(&b, &json, &gzip);
    printf("%-26s %7.1f %8.1f %8.1f | %6.2f %8.2f %6.2f | %6.1f %8.2f\n", title,
           best_speed(&b, SV_PLAIN), best_speed(&b, SV_GZIP), best_speed(&b, SV_ZSTD),
           bytes_per_event(&b, SV_PLAIN), bytes_per_event(&b, SV_GZIP),
           bytes_per_event(&b, SV_ZSTD), json, gzip);
    discard(&b);
}

int main(int argc, char **argv)
{
    size_t n = argc > 1 ? (size_t)strtoull(argv[1], NULL, 10) : 2000000;
    printf("%zu events each            M events/s                | bytes per event        | "
           "JSON bytes per event\n",
           n);
    printf("%-26s %7s %8s %8s | %6s %8s %6s | %6s %8s\n", "", "plain", "deflate", "zstd", "plain",
           "deflate", "zstd", "plain", "gzip -6");
    row("begin/end", n, 1500, false, false);
    row("  two int arguments", n, 1500, false, true);
    row("  times of 100 us", n, 100000, false, false);
    row("  names, times uniform", n, 3000, true, false);
    return 0;
}
