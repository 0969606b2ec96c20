/* Readers of other tools' logs: the mistakes that are easy to make with them, each as a test;
 * golden files show the rest. */
#include "formats/decimal.h"
#include "formats/formats.h"
#include "store/trace.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <string.h>

struct read {
    struct sv_dict *dict;
    struct sv_trace *trace;
    struct sv_report report;
    const struct sv_format *format;
};

static struct read read_text(const char *text, const char *zone_name)
{
    struct read r = {.dict = sv_dict_new()};
    struct sv_err err = {0};
    struct sv_input *in;
    struct sv_source *source;
    struct sv_zone *zone = NULL;
    sv_report_init(&r.report);
    REQUIRE(sv_input_open_memory(text, strlen(text), "test", &in, &err) == 0);
    r.format = sv_format_probe(in, &err);
    REQUIRE(r.format != NULL);
    REQUIRE(!zone_name || sv_zone_open(zone_name, &zone, &err) == 0);
    struct sv_read_options options = {.zone = zone, .has_date = true, .date_days = 20000};
    REQUIRE(sv_format_open(r.format, in, &options, r.dict, &r.report, &source, &err) == 0);
    r.trace = sv_trace_new(r.dict, &r.report, 0);
    REQUIRE(sv_pump(source, sv_trace_sink(r.trace), NULL, &err) == 0);
    sv_input_close(in);
    sv_zone_free(zone);
    return r;
}

static void read_free(struct read *r)
{
    sv_trace_free(r->trace);
    sv_report_fini(&r->report);
    sv_dict_free(r->dict);
}

static int64_t arg_of(const struct read *r, uint64_t row, const char *key, int64_t none)
{
    struct sv_arg a;
    sv_str s = sv_dict_find_str(r->dict, key, strlen(key));
    return s && sv_trace_arg(r->trace, r->trace->slices.args[row], s, &a) ? a.i : none;
}

static sv_track counter_named(const struct read *r, const char *parent, const char *name)
{
    for (sv_track t = 1; t < r->dict->n_tracks; t++) {
        const struct sv_track_info *info = &r->dict->tracks[t];
        if (info->kind == SV_TRACK_COUNTER &&
            strcmp(sv_dict_text(r->dict, info->name).bytes, name) == 0 &&
            strcmp(sv_dict_text(r->dict, r->dict->tracks[info->parent].name).bytes, parent) == 0)
            return t;
    }
    return 0;
}

#define MPSTAT_HEAD \
    "CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle\n"
#define MPSTAT_REST \
    "  all   1.00    0.00    2.00    0.00    0.00    0.00    0.00    0.00    0.00   97.00\n"

TEST(mpstat_midnight_hour_is_zero)
{
    struct read r = read_text("Linux 5.4.0 (n) \t07/20/2022 \t_x86_64_\t(2 CPU)\n\n"
                              "12:35:53 AM  " MPSTAT_HEAD "12:35:54 AM" MPSTAT_REST
                              "12:35:54 PM" MPSTAT_REST,
                              "-05:00");
    CHECK_STR_EQ(r.format->name, "mpstat");
    CHECK_INT_EQ(r.dict->clocks.trace_clock, SV_CLOCK_REALTIME);
    sv_track idle = counter_named(&r, "CPU", "idle");
    const struct sv_trace_track *t = &r.trace->tracks[idle];
    REQUIRE(t->counter_end - t->counter_first == 2);
    /* 2022-07-20 05:35:54 UTC, and twelve hours later. */
    CHECK_INT_EQ(r.trace->counters.ts_ns[t->counter_first], 1658295354 * SV_S_NS);
    CHECK_INT_EQ(r.trace->counters.ts_ns[t->counter_first + 1], (1658295354 + 43200) * SV_S_NS);
    CHECK_DOUBLE_EQ(r.trace->counters.value[t->counter_first], 97.0);
    read_free(&r);
}

/* A clock that goes back by more than half a day has passed midnight, whether or not a line says
 * 00:00:00. */
TEST(mpstat_passes_midnight_without_saying_so)
{
    struct read r = read_text("Linux 5.4.0 (n) \t12/31/2022 \t_x86_64_\t(2 CPU)\n\n"
                              "23:59:57     " MPSTAT_HEAD "23:59:58" MPSTAT_REST
                              "00:00:01" MPSTAT_REST,
                              "UTC");
    CHECK_INT_EQ(r.trace->last_ns - r.trace->first_ns, 3 * SV_S_NS);
    CHECK_INT_EQ(r.trace->last_ns, 1672531201 * SV_S_NS);
    read_free(&r);
}

/* The file begins in the middle of a second and lacks a line: nothing may shift, and no second may
 * be mixed with another. */
TEST(pmon_groups_by_time_and_gpu)
{
    struct read r = read_text("# Date Time gpu pid type sm mem enc dec fb command\n"
                              " 20230211 08:11:18 2 7 C 20 1 - - 10 python\n"
                              " 20230211 08:11:18 3 7 C 30 1 - - 10 python\n"
                              " 20230211 08:11:19 0 7 C 40 1 - - 10 python\n"
                              " 20230211 08:11:19 0 8 C 15 1 - - 10 python\n"
                              " 20230211 08:11:19 2 7 C 60 1 - - 10 python\n"
                              " 20230211 08:11:20 0 - - - - - - - -\n",
                              "UTC");
    CHECK_STR_EQ(r.format->name, "pmon");
    const struct {
        const char *gpu;
        int64_t second;
        double sm;
    } rows[] = {{"GPU 0", 19, 55},
                {"GPU 0", 20, 0},
                {"GPU 2", 18, 20},
                {"GPU 2", 19, 60},
                {"GPU 3", 18, 30}};
    uint32_t seen = 0;
    for (sv_track t = 1; t < r.trace->n_tracks; t++) {
        const struct sv_track_info *info = &r.dict->tracks[t];
        if (info->kind != SV_TRACK_COUNTER || r.dict->tracks[info->parent].kind != SV_TRACK_GPU ||
            strcmp(sv_dict_text(r.dict, info->name).bytes, "sm") != 0)
            continue;
        for (uint32_t c = r.trace->tracks[t].counter_first; c < r.trace->tracks[t].counter_end; c++)
            for (size_t i = 0; i < TEST_COUNT(rows); i++)
                if (strcmp(sv_dict_text(r.dict, r.dict->tracks[info->parent].name).bytes,
                           rows[i].gpu) == 0 &&
                    r.trace->counters.ts_ns[c] / SV_S_NS % 60 == rows[i].second) {
                    CONTEXT("%s at :%d", rows[i].gpu, (int)rows[i].second);
                    CHECK_DOUBLE_EQ(r.trace->counters.value[c], rows[i].sm);
                    seen++;
                }
    }
    CHECK_UINT_EQ(seen, TEST_COUNT(rows));
    read_free(&r);
}

TEST(bpftrace_latencies_are_what_the_file_says)
{
    struct read r = read_text("unlink():\n"
                              "TIMESTAMP       PID    FUNCTION   LAT(ns)  FILENAME FULLPATH\n"
                              "1000000600000     4242   unlink()   1200      /ckpt/old.pt\n"
                              "1000000700000     4242   unlink()   120      /ckpt/old.pt\n",
                              NULL);
    REQUIRE(r.trace->slices.n == 2);
    CHECK_INT_EQ(r.trace->slices.kind[0], SV_SLICE);
    CHECK_INT_EQ(r.trace->slices.dur_ns[0], 1200);
    CHECK_INT_EQ(r.trace->slices.kind[1], SV_SLICE);
    CHECK_INT_EQ(r.trace->slices.dur_ns[1], 120);
    CHECK_UINT_EQ(sv_report_count(&r.report, SV_NOTE), 0);
    read_free(&r);
}

TEST(bpftrace_negative_results_keep_their_sign)
{
    struct read r = read_text("TIMESTAMP         PID    FD   RET (B)      LAT(ns)      FILENAME\n"
                              "1000000600000     4242   5    18446744073709551605 3000         a\n"
                              "1000000700000     4242   5    4096 3000         a\n",
                              NULL);
    REQUIRE(r.trace->slices.n == 2);
    CHECK_INT_EQ(arg_of(&r, 0, "ret", 0), -11);
    CHECK_INT_EQ(arg_of(&r, 0, "errno", 0), 11);
    CHECK_INT_EQ(arg_of(&r, 0, "bytes", -1), -1); /* none */
    CHECK_INT_EQ(arg_of(&r, 1, "bytes", -1), 4096);
    CHECK_INT_EQ(arg_of(&r, 1, "errno", -1), -1);
    read_free(&r);
}

/* The slowest requests are those one looks for: none is removed. */
TEST(bpftrace_keeps_the_slowest_block_requests)
{
    char text[16384];
    size_t n =
        (size_t)snprintf(text, sizeof text, "TIMESTAMP PID COMM DISK T BYTES SECTOR LAT(ns)\n");
    for (int i = 0; i < 200; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%d000000000 1 python sdb R 4096 %d %d\n",
                              i + 100, i * 8, i == 150 ? 900000000 : 1000);
    struct read r = read_text(text, NULL);
    int64_t longest = 0;
    for (uint64_t i = 0; i < r.trace->slices.n; i++)
        longest = r.trace->slices.dur_ns[i] > longest ? r.trace->slices.dur_ns[i] : longest;
    CHECK_UINT_EQ(r.trace->slices.n, 200);
    CHECK_INT_EQ(longest, 900000000);
    read_free(&r);
}

/* The pair of the original's own example: half way between the two lines, and not surer than a
 * tick. */
TEST(time_align_takes_the_closest_pair)
{
    struct read r = read_text("1380359127000000  15:28:11\n"
                              "1380359127900000  15:28:12\n"
                              "1380360127432329  15:28:12\n"
                              "1380360127485040  15:28:13\n",
                              "UTC");
    CHECK_STR_EQ(r.format->name, "time-align");
    REQUIRE(r.dict->clocks.n == 1);
    const struct sv_snapshot *s = r.dict->clocks.snapshots;
    CHECK_INT_EQ(s->readings[0].ns, 1380360127458684);
    CHECK_INT_EQ(s->readings[1].ns, (20000 * SV_DAY_S + 15 * 3600 + 28 * 60 + 13) * SV_S_NS);
    CHECK_INT_EQ(s->uncertainty_ns, 26356 + 10000000);
    read_free(&r);
}

/* 100 µs per second apart for 1,000 s: far more than the ticks hide. */
TEST(time_align_finds_drift)
{
    static char text[100000];
    size_t n = 0;
    for (int64_t s = 0; s < 1000; s++) {
        int64_t edge = 5000000000 + s * 1000100000;
        n += (size_t)snprintf(text + n, sizeof text - n, "%lld  10:%02d:%02d\n%lld  10:%02d:%02d\n",
                              (long long)edge - 20000, (int)(s / 60), (int)(s % 60),
                              (long long)edge + 20000, (int)((s + 1) / 60), (int)((s + 1) % 60));
    }
    struct read r = read_text(text, "UTC");
    struct sv_clock_fit fit;
    CHECK_UINT_EQ(r.dict->clocks.n, 2);
    REQUIRE(sv_clocks_fit(&r.dict->clocks, SV_CLOCK_BOOTTIME, SV_CLOCK_REALTIME, &fit));
    CHECK(fit.drift > -100.1e-6 && fit.drift < -99.9e-6);
    read_free(&r);
}

TEST(strace_follows_descriptors_over_threads_and_forks)
{
    struct read r = read_text(
        "10 1658345292.000000 open(\"/a\", O_RDONLY) = 3 <0.000001>\n"
        "10 1658345292.000100 clone(flags=CLONE_VM|CLONE_THREAD) = 11 <0.000001>\n"
        "10 1658345292.000200 clone(flags=SIGCHLD) = 12 <0.000001>\n"
        "11 1658345292.000300 read(3, \"\", 5) = 5 <0.000001>\n"
        "12 1658345292.000400 dup2(3, 9) = 9 <0.000001>\n"
        "10 1658345292.000500 close(3) = 0 <0.000001>\n"
        "12 1658345292.000600 read(9, \"\", 5) = 5 <0.000001>\n"
        "11 1658345292.000700 read(3, \"\", 5) = -1 EBADF (Bad file descriptor) <0.000001>\n",
        NULL);
    sv_str path = sv_dict_find_str(r.dict, "path", 4);
    unsigned with_path = 0;
    struct sv_arg a;
    for (uint64_t i = 0; i < r.trace->slices.n; i++) {
        bool is_read = strcmp(sv_dict_text(r.dict, r.trace->slices.name[i]).bytes, "read") == 0;
        bool has_path = sv_trace_arg(r.trace, r.trace->slices.args[i], path, &a);
        with_path += is_read && has_path;
        if (is_read)
            CHECK(has_path == (arg_of(&r, i, "errno", 0) == 0));
    }
    CHECK_UINT_EQ(with_path, 2);
    CHECK_INT_EQ(r.dict->tracks[sv_dict_thread(r.dict, 0, 10, 11)].pid, 10);
    read_free(&r);
}

/* A clone of a thread that failed must not adopt the next process. */
TEST(strace_failed_clone_adopts_nobody)
{
    struct read r =
        read_text("10 1658345292.000000 clone(flags=CLONE_VM|CLONE_THREAD <unfinished ...>\n"
                  "10 1658345292.000100 <... clone resumed>) = -1 EAGAIN (Resource temporarily "
                  "unavailable) <0.0001>\n"
                  "20 1658345292.000200 close(3) = 0 <0.000001>\n",
                  NULL);
    CHECK(sv_dict_find_track(r.dict, sv_uuid_thread(0, 20, 20)) != 0);
    CHECK(sv_dict_find_track(r.dict, sv_uuid_thread(0, 10, 20)) == 0);
    read_free(&r);
}

TEST(every_log_is_recognised_by_its_content)
{
    static const struct {
        const char *head, *format;
    } rows[] = {
        {"{\"sysstat\": {\n\"hosts\": [", "iostat"},
        {"[INFO] 2023-03-20T14:40:29.513205 Running", "dlio"},
        {"noise\n:::MLLOG {\"key\": 1}", "mllog"},
        {"[pid 12] 23:00:00.000001 read(3, ", "strace"},
        {"12 1658345292.000000 read(3, ", "strace"},
        {"# gpu pid type sm mem enc dec command", "pmon"},
        {"10:00:00 AM  CPU %usr %nice", "mpstat"},
        {"1380360127432329  15:28:12", "time-align"},
        {"Attaching 2 probes...\nTIMESTAMP PID FD LAT(ns) FILENAME", "bpftrace"},
        {"%EventDef\tPajeDefineContainerType\t1\n", "paje"},
        {"% a comment of TeX\n", NULL},
        {"E: SetState\nN: Idle\n", "starpu-rec"},
        {"#\n# E: Event type\n#\n\nE: PushState\n", "starpu-rec"},
        {"JobId: 1\nSubmitTime: 0.5\nMPIRank: 0\n", "starpu-rec"},
        {"JobId: 1\n", NULL},
        {"digraph G {\n\tcolor=white\n\trankdir=LR;\nsubgraph cluster_0 {\n", "starpu-dag"},
        {"digraph G {\n\tcolor=white\n\trankdir=LR;\nsubgraph cluster_1 {\n", NULL},
        {"digraph G {\n\ta->b\n}\n", NULL},
        {"[{\"ph\":\"X\"}]", "chrome"},
        {"batch_id,model_name,worker_id,total_ms\n", "batching-csv"},
        {"batch_id,model_name\n", NULL},
        {"just words", NULL},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct sv_input *in;
        struct sv_err err = {0};
        CONTEXT("%s", rows[i].head);
        REQUIRE(sv_input_open_memory(rows[i].head, strlen(rows[i].head), "x", &in, &err) == 0);
        const struct sv_format *f = sv_format_probe(in, &err);
        CHECK_STR_EQ(f ? f->name : "none", rows[i].format ? rows[i].format : "none");
        sv_input_close(in);
    }
}

TEST(decimal_times_keep_their_digits)
{
    static const struct {
        const char *text;
        int decimals;
        int64_t ns; /* -1: refused */
    } rows[] = {
        {"0", 9, 0},
        {"1.5", 9, 1500000000},
        {"12.345678901", 9, 12345678901},
        {"12.3456789019", 9, 12345678901},
        {"12.345678901", 6, 12345678},
        {"9007199.254740993", 9, 9007199254740993},
        {"1.5e+03", 6, 1500000000},
        {".5", 9, 500000000},
        {"", 9, -1},
        {".", 9, -1},
        {"-1", 9, -1},
        {"1.2.3", 9, -1},
        {"soon", 9, -1},
        {"e5", 9, -1},
        {"99999999999999999999", 9, -1},
        {"1e300", 9, -1},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        int64_t ns = -1;
        CONTEXT("%s", rows[i].text);
        struct sv_text t = {rows[i].text, (uint32_t)strlen(rows[i].text)};
        CHECK(sv_decimal_ns(t, rows[i].decimals, &ns) == (rows[i].ns >= 0));
        if (rows[i].ns >= 0)
            CHECK_INT_EQ(ns, rows[i].ns);
    }
}
