/* Bins and bands: sums that can be counted by hand, and what a figure of a run is made of. */
#include "plot/bands.h"

#include "formats/formats.h"
#include "plot/layout.h"
#include "subjects/io/bands.h"
#include "tests/harness/test.h"
#include "tests/unit/text_trace.h"
#include "trace_text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A run of one second: CPU and disk counters, a GPU, a trainer with steps and a loader that reads,
 * a request that nobody is known for. */
static const char run_text[] =
    "# stave text 1\nclock boottime\n"
    "track #1 process uuid=0x1 pid=10 name=\"python\"\n"
    "track #2 thread uuid=0x2 parent=#1 pid=10 tid=10 name=\"main\"\n"
    "track #3 custom uuid=0x3 parent=#2 name=\"system calls\"\n"
    "track #4 thread uuid=0x4 parent=#1 pid=10 tid=11 name=\"helper\"\n"
    "track #5 process uuid=0x5 pid=20 name=\"python\"\n"
    "track #6 thread uuid=0x6 parent=#5 pid=20 tid=20\n"
    "track #7 custom uuid=0x7 parent=#6 name=\"system calls\"\n"
    "track #8 custom uuid=0x8 name=\"CPU\"\n"
    "track #9 counter uuid=0x9 parent=#8 name=\"user\" unit=\"%\"\n"
    "track #10 counter uuid=0x10 parent=#8 name=\"idle\" unit=\"%\"\n"
    "track #11 custom uuid=0x11 name=\"Disks\"\n"
    "track #12 custom uuid=0x12 parent=#11 name=\"sda\"\n"
    "track #13 counter uuid=0x13 parent=#12 name=\"read\" unit=\"B/s\"\n"
    "track #14 gpu uuid=0x14 name=\"GPU 0\"\n"
    "track #15 counter uuid=0x15 parent=#14 name=\"sm\" unit=\"%\"\n"
    "track #16 counter uuid=0x16 parent=#14 name=\"framebuffer\" unit=\"bytes\"\n"
    "0.000000000 begin #2 \"step 1\" cat=\"step\" {}\n"
    "0.000000000 counter #16 {1073741824}\n"
    "0.100000000 begin #7 \"openat\" cat=\"syscall\" {path=\"/d/a\" fd=3}\n"
    "0.150000000 end #7\n"
    "0.200000000 begin #7 \"read\" cat=\"syscall\" {path=\"/d/a\" fd=3 bytes=1000}\n"
    "0.250000000 begin #12 \"read\" cat=\"block\" {bytes=1000 pid=20}\n"
    "0.250000000 counter #9 {40}\n0.250000000 counter #10 {60}\n0.250000000 counter #13 "
    "{4000}\n0.250000000 counter #15 {80}\n"
    "0.300000000 end #12\n"
    "0.350000000 instant #4 \"mark\" cat=\"app\"\n"
    "0.400000000 end #7\n"
    "0.450000000 begin #12 \"write\" cat=\"block\" {bytes=50 pid=99}\n"
    "0.460000000 end #12\n"
    "0.500000000 counter #9 {80}\n0.500000000 counter #10 {20}\n0.500000000 counter #13 "
    "{0}\n0.500000000 counter #15 {0}\n"
    "0.600000000 begin #3 \"write\" cat=\"syscall\" {path=\"/d/out\" fd=4 bytes=10}\n"
    "0.700000000 end #3\n"
    "0.750000000 counter #9 {0}\n0.750000000 counter #10 {100}\n0.750000000 counter #13 {0}\n"
    "1.000000000 end #2\n"
    "1.000000000 counter #9 {0}\n1.000000000 counter #10 {100}\n1.000000000 counter #13 {8000}\n";

struct made {
    struct sv_dict *dict;
    struct sv_report findings;
    struct sv_trace *trace;
};

static struct made make(const char *text)
{
    struct made m = {.dict = sv_dict_new()};
    m.trace = text_trace(text, m.dict, &m.findings);
    return m;
}

static void unmake(struct made *m)
{
    sv_trace_free(m->trace);
    sv_report_fini(&m->findings);
    sv_dict_free(m->dict);
}

static struct sv_bands find(const struct made *m, unsigned what, enum sv_io_grouping grouping)
{
    struct sv_bands b;
    struct sv_bands_wanted w = {.what = what,
                                .io = &sv_io_bands,
                                .grouping = grouping,
                                .bins = {.from_ns = 0, .to_ns = 1000000000, .n = 20}};
    sv_bands_find(&b, m->trace, &w);
    return b;
}

/* "title (note): lane/part …" of every band. */
static const char *words_of(const struct sv_bands *b, char text[1000])
{
    size_t at = 0;
    text[0] = 0;
    for (size_t i = 0; i < b->n; i++) {
        const struct sv_band *x = &b->bands[i];
        at +=
            (size_t)snprintf(text + at, 1000 - at, "%s%s (%s):", i ? "; " : "", x->title, x->note);
        for (size_t k = 0; k < x->n; k++)
            at += (size_t)snprintf(text + at, 1000 - at, " %s%s%s",
                                   x->kind == SV_BAND_LANES ? x->lanes[x->parts[k].lane] : "",
                                   x->kind == SV_BAND_LANES ? "/" : "", x->parts[k].name);
    }
    return text;
}

TEST(bins_cover_what_slices_cover)
{
    /* Against adding up bin by bin, for pieces of many lengths, some beyond the edges. */
    struct sv_bins b = {.from_ns = 1000, .to_ns = 2000, .n = 40};
    struct sv_cover c;
    double expected[40] = {0};
    uint64_t random = 7;
    sv_cover_init(&c, b.n);
    for (int i = 0; i < 500; i++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        int64_t from = 900 + (int64_t)(random >> 40) % 1200,
                to = from + (int64_t)(random >> 20) % 300;
        double weight = 1 + (double)(i % 3);
        sv_cover_add(&c, &b, from, to, weight);
        for (size_t k = 0; k < b.n; k++) {
            double lo = fmax(1000 + 25 * (double)k, (double)from),
                   hi = fmin(1025 + 25 * (double)k, (double)to);
            expected[k] += hi > lo ? (hi - lo) / 25 * weight : 0;
        }
    }
    sv_cover_finish(&c);
    for (size_t k = 0; k < b.n; k++) {
        CONTEXT("bin %zu", k);
        CHECK(fabs(c.part[k] - expected[k]) < 1e-9);
    }
    sv_cover_fini(&c);
}

TEST(counters_count_before_or_after_their_time)
{
    struct sv_dict *d = sv_dict_new();
    struct sv_trace *t =
        trace_text_load("C 100 t 10\nC 200 t 30\nC 300 t 50\nX 0 400 u x\n", d, NULL);
    struct sv_bins b = {.from_ns = 0, .to_ns = 400, .n = 4};
    sv_track track = 0;
    double mean[4];
    for (sv_track k = 1; k < t->n_tracks; k++)
        track = t->tracks[k].counter_first < t->tracks[k].counter_end ? k : track;
    REQUIRE(track);
    sv_bins_counter(&b, t, track, SV_VALUE_UNTIL, mean);
    CHECK(mean[0] == 10 && mean[1] == 30 && mean[2] == 50 && isnan(mean[3]));
    sv_bins_counter(&b, t, track, SV_VALUE_FROM, mean);
    CHECK(isnan(mean[0]) && mean[1] == 10 && mean[2] == 30 && mean[3] == 50);
    b.n = 2; /* a bin wider than the intervals: the mean over time */
    sv_bins_counter(&b, t, track, SV_VALUE_UNTIL, mean);
    CHECK(mean[0] == 20 && mean[1] == 50);
    b = (struct sv_bins){.from_ns = 250, .to_ns = 300, .n = 1}; /* between two values */
    sv_bins_counter(&b, t, track, SV_VALUE_UNTIL, mean);
    CHECK(mean[0] == 50);
    sv_bins_counter(&b, t, track, SV_VALUE_FROM, mean);
    CHECK(mean[0] == 30);
    sv_trace_free(t);
    sv_dict_free(d);
}

TEST(a_run_becomes_bands)
{
    struct made m = make(run_text);
    char text[1000];
    struct sv_bands b = find(&m, SV_BANDS_ALL, SV_GROUP_PROCESS);
    CHECK_STR_EQ(words_of(&b, text),
                 "CPU (): user system iowait idle; GPU 0 (): SM framebuffer; disk sda (): read "
                 "write; python (pid 10) (trainer): read/write/write, sync; python (pid 20) "
                 "(loader): block/block read read/write/read open/open; no known process (the "
                 "kernel or other processes): block/block write");
    CHECK_UINT_EQ(sv_bands_there(m.trace, &sv_io_bands), SV_BANDS_ALL);
    REQUIRE(b.n == 6);
    CHECK(b.bands[0].parts[0].value[2] == 40 && b.bands[0].parts[0].value[7] == 80);
    CHECK(b.bands[1].right.to > 0);
    CHECK(b.bands[1].parts[1].is_right && b.bands[1].parts[1].value[3] == 1073741824);
    CHECK(b.bands[2].parts[0].value[1] == 4000 && b.bands[2].parts[0].value[18] == 8000);
    const struct sv_band_part *read = &b.bands[4].parts[1];
    CHECK_STR_EQ(read->name, "read");
    CHECK(fabs(read->value[5] - 1) < 1e-9 && read->value[3] == 0 && read->value[9] == 0);
    CHECK_UINT_EQ(read->count[4], 1);
    CHECK(read->bytes[4] == 1000);
    sv_bands_fini(&b);
    unmake(&m);
}

TEST(processes_are_grouped_as_asked)
{
    struct made m = make(run_text);
    char text[1000];
    struct sv_bands b = find(&m, SV_BANDS_IO, SV_GROUP_ROLE);
    CHECK_STR_EQ(
        words_of(&b, text),
        "trainers (1 process): read/write/write, sync; loaders (1 process): block/block "
        "read read/write/read open/open; no known process (the kernel or other processes): "
        "block/block write");
    sv_bands_fini(&b);
    b = find(&m, SV_BANDS_IO, SV_GROUP_ALL);
    CHECK_STR_EQ(words_of(&b, text), "all processes (3 of them): block/block read block/block "
                                     "write read/write/read read/write/write, sync open/open");
    sv_bands_fini(&b);
    struct sv_bands_wanted w = {.what = SV_BANDS_IO,
                                .io = &sv_io_bands,
                                .processes_max = 2,
                                .bins = {.from_ns = 0, .to_ns = 1000000000, .n = 20}};
    sv_bands_find(&b, m.trace, &w);
    CHECK_STR_EQ(words_of(&b, text),
                 "python (pid 20) (loader): block/block read read/write/read open/open; 2 other "
                 "processes (): block/block write read/write/write, sync");
    sv_bands_fini(&b);
    unmake(&m);
}

TEST(a_window_without_anything_has_no_bands)
{
    struct made m = make(run_text);
    struct sv_bands b;
    struct sv_bands_wanted w = {.what = SV_BANDS_IO | SV_BANDS_DISK,
                                .io = &sv_io_bands,
                                .bins = {.from_ns = 720000000, .to_ns = 740000000, .n = 5}};
    sv_bands_find(&b, m.trace, &w);
    CHECK_UINT_EQ(b.n, 0);
    sv_bands_fini(&b);
    w.bins.n = 0;
    sv_bands_find(&b, m.trace, &w);
    CHECK_UINT_EQ(b.n, 0);
    sv_bands_fini(&b);
    unmake(&m);
}

TEST(values_that_are_no_numbers_are_gaps)
{
    struct made m = make("# stave text 1\nclock boottime\ntrack #1 custom uuid=0x1 name=\"CPU\"\n"
                         "track #2 counter uuid=0x2 parent=#1 name=\"user\"\n"
                         "0.000000000 instant #1 \"start\"\n0.250000000 counter #2 "
                         "{10}\n0.500000000 counter #2 {NaN}\n0.750000000 "
                         "counter #2 {Infinity}\n"
                         "1.000000000 counter #2 {20}\n");
    struct sv_bands b = find(&m, SV_BANDS_CPU, SV_GROUP_PROCESS);
    REQUIRE(b.n == 1);
    const double *v = b.bands[0].parts[0].value;
    CHECK(v[4] == 10 && isnan(v[7]) && isnan(v[12]) && v[17] == 20);
    sv_bands_fini(&b);
    unmake(&m);
}

TEST(rows_below_a_thread_follow_it)
{
    struct made m = make(run_text);
    struct sv_layout_index *x = sv_layout_index_new(m.trace);
    struct sv_buf b;
    sv_track group = UINT32_MAX;
    sv_buf_init(&b, 4096);
    for (size_t i = 0; i < x->rows->n; i++) {
        if (x->rows->items[i].group != group) {
            group = x->rows->items[i].group;
            sv_buf_str(&b, "[");
            sv_group_name(m.dict, group, &b);
            sv_buf_str(&b, "] ");
        }
        for (uint32_t k = 0; k < x->rows->items[i].depth; k++)
            sv_buf_byte(&b, '.');
        sv_row_name(x->rows, i, &b);
        sv_buf_str(&b, ", ");
    }
    CHECK_STR_EQ(
        sv_buf_cstr(&b),
        "[python (pid 10)] main, .system calls, helper, [python (pid 20)] main thread 20 · "
        "system calls, [GPU 0] framebuffer, sm, [Disks] sda, .sda read, [CPU] idle, user, ");
    sv_buf_fini(&b);
    sv_layout_index_free(x);
    unmake(&m);
}
