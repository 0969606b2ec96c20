/* What writing Chrome JSON costs: MB/s of output, from events in memory to nowhere. Prints `name
 * value unit` lines.
 *
 *     bench/chrome_write [THOUSAND EVENTS]        default 1000 */
#include "formats/formats.h"
#include "measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 3, MADE = 1024, ARGS = 9 };

static struct sv_dict *dict;
static struct sv_event events[MADE];
static struct sv_arg args[MADE][ARGS];

/* Processor time: the machine may have other work. */
static sv_str word(const char *prefix, unsigned i)
{
    char text[80];
    int len = snprintf(text, sizeof text, "%s%u", prefix, i);
    return sv_dict_str(dict, text, (size_t)len);
}

static struct sv_arg number(const char *key, int64_t v)
{
    return (struct sv_arg){.key = sv_dict_cstr(dict, key), .type = SV_ARG_INT, .i = v};
}

/* Slices as an accelerator profiler writes them: long names, many arguments, a flow each. */
static void make_events(bool is_rich)
{
    static const char grid[] = "[1024, 1, 1]";
    for (unsigned i = 0; i < MADE; i++) {
        struct sv_arg *a = args[i];
        a[0] = number("External id", i);
        a[1] = number("device", 0);
        a[2] = number("stream", i % 8);
        a[3] = (struct sv_arg){.type = SV_ARG_CORRELATION, .u = 1000 + i};
        a[4] = number("registers per thread", 128);
        a[5] = number("shared memory", 49152);
        a[6] = (struct sv_arg){
            .key = sv_dict_cstr(dict, "blocks per SM"), .type = SV_ARG_DOUBLE, .d = 4.571429};
        a[7] = (struct sv_arg){.key = sv_dict_cstr(dict, "grid"),
                               .type = SV_ARG_TEXT,
                               .size = sizeof grid - 1,
                               .text = grid};
        a[8] = (struct sv_arg){.type = SV_ARG_FLOW, .u = i};
        events[i] = (struct sv_event){
            .dur_ns = 1000 + i,
            .track = sv_dict_thread(dict, 0, 100, 100 + i % 8),
            .kind = SV_SLICE,
            .name =
                is_rich
                    ? word("void at::native::vectorized_elementwise_kernel<4, add, std::array>#",
                           i % 100)
                    : word("op", i % 100),
            .cat = word("kernel", 0),
            .args = a,
            .n_args = is_rich ? ARGS : 0};
    }
}

static double write_all(size_t n, uint64_t *bytes)
{
    struct sv_err err = {0};
    struct sv_report report;
    struct sv_output *out;
    struct sv_sink *sink;
    sv_report_init(&report);
    if (sv_output_open("/dev/null", SV_OUTPUT_DIRECT, SV_PLAIN, &out, &err) != SV_OK ||
        sv_chrome_writer.open(out, NULL, dict, &report, &sink, &err) != SV_OK)
        abort();
    double start = clock_s(CLOCK_PROCESS_CPUTIME_ID);
    int64_t ts_ns = 1000000000;
    for (size_t done = 0; done < n; done += SV_BATCH) {
        struct sv_event *batch = events + done % MADE;
        for (size_t i = 0; i < SV_BATCH; i++)
            batch[i].ts_ns = ts_ns += 1500;
        if (sink->write(sink, batch, SV_BATCH, &err) < 0)
            abort();
    }
    *bytes = sv_output_bytes(out);
    sink->close(sink, false, &err);
    sv_report_fini(&report);
    return clock_s(CLOCK_PROCESS_CPUTIME_ID) - start;
}

static void measure(const char *name, size_t n)
{
    double best = 1e9;
    uint64_t bytes = 0;
    for (int i = 0; i < ROUNDS; i++) {
        double s = write_all(n, &bytes);
        best = s < best ? s : best;
    }
    printf("%-34s %12.0f MB/s      %.0f ns/event, %.0f bytes/event\n", name,
           (double)bytes / best / 1e6, best / (double)n * 1e9, (double)bytes / (double)n);
}

int main(int argc, char **argv)
{
    size_t n = (argc > 1 ? strtoul(argv[1], NULL, 10) : 1000) * 1000;
    dict = sv_dict_new();
    make_events(false);
    measure("chrome_write_plain", n);
    make_events(true);
    measure("chrome_write_rich", n);
    sv_dict_free(dict);
    return 0;
}
