/* The I/O report on small traces whose answers can be counted by hand. */
#include "subjects/io/figures.h"

#include "formats/formats.h"
#include "tests/harness/test.h"
#include "tests/unit/text_trace.h"

#include <stdio.h>
#include <string.h>

struct made {
    struct sv_dict *dict;
    struct sv_report findings;
    struct sv_trace *trace;
    struct sv_io_report report;
};

static struct made make(const char *body)
{
    static char text[32768];
    struct made m = {.dict = sv_dict_new()};
    snprintf(text, sizeof text, "# stave text 1\nclock boottime\n%s", body);
    m.trace = text_trace(text, m.dict, &m.findings);
    sv_io_report_make(&m.report, m.trace);
    return m;
}

static void unmake(struct made *m)
{
    sv_io_report_fini(&m->report);
    sv_trace_free(m->trace);
    sv_report_fini(&m->findings);
    sv_dict_free(m->dict);
}

static const struct sv_io_group *group(const struct made *m, enum sv_io_by by, const char *name)
{
    const struct sv_io_groups *g = &m->report.by[by];
    for (size_t i = 0; i < g->n; i++)
        if (strcmp(sv_dict_text(m->report.strings, g->groups[i].name).bytes, name) == 0)
            return &g->groups[i];
    return NULL;
}

static const struct sv_io_group *process(const struct made *m, int64_t pid)
{
    const struct sv_io_groups *g = &m->report.by[SV_IO_PROCESS];
    for (size_t i = 0; i < g->n; i++)
        if (m->dict->tracks[g->groups[i].process].pid == pid)
            return &g->groups[i];
    return NULL;
}

#define TRACKS                                           \
    "track #1 process uuid=0x1 pid=10 name=\"train\"\n"  \
    "track #2 thread uuid=0x2 parent=#1 pid=10 tid=10\n" \
    "track #3 process uuid=0x3 pid=20 name=\"worker\"\n" \
    "track #4 thread uuid=0x4 parent=#3 pid=20 tid=20\n" \
    "track #5 custom uuid=0x5 name=\"Disks\"\n"          \
    "track #6 custom uuid=0x6 parent=#5 name=\"sda\"\n"

TEST(counts_bytes_and_latencies)
{
    struct made m = make(TRACKS
                         "1.000000000 slice #2 \"openat\" cat=\"syscall\" dur=0.000001000 {fd=3 "
                         "path=\"/d/a\" ret=3}\n"
                         "1.000010000 slice #2 \"read\" cat=\"syscall\" dur=0.000002000 {fd=3 "
                         "path=\"/d/a\" bytes=4096 ret=4096}\n"
                         "1.000020000 slice #2 \"read\" cat=\"syscall\" dur=0.000004000 {fd=3 "
                         "path=\"/d/a\" bytes=100 ret=100}\n"
                         "1.000030000 slice #2 \"read\" cat=\"syscall\" dur=0.000003000 {fd=3 "
                         "path=\"/d/a\" ret=-5 errno=5}\n"
                         "1.000040000 slice #4 \"write\" cat=\"syscall\" dur=0.000005000 {fd=4 "
                         "path=\"/d/sub/b\" bytes=0 ret=0}\n"
                         "1.000050000 slice #4 \"futex\" cat=\"syscall\" dur=0.500000000\n"
                         "1.000060000 instant #4 \"unlink\" cat=\"syscall\" {path=\"/d/sub/b\"}\n");
    const struct sv_io_group *a = group(&m, SV_IO_FILE, "/d/a");
    REQUIRE(a != NULL);
    CHECK_UINT_EQ(m.report.n_calls, 6); /* futex is no I/O */
    CHECK_UINT_EQ(a->opens, 1);
    CHECK_UINT_EQ(a->reads, 3);
    CHECK_UINT_EQ(a->errors, 1);
    CHECK_UINT_EQ(a->bytes_read, 4196);
    CHECK_INT_EQ(a->all.total_ns, 10000);
    CHECK_INT_EQ(a->read.n, 3);
    CHECK_DOUBLE_EQ(a->read.p50_ns, 3000.0);
    CHECK_INT_EQ(a->read.max_ns, 4000);
    CHECK_UINT_EQ(a->sizes[13], 1); /* 4096 … 8191 */
    CHECK_UINT_EQ(a->sizes[7], 1);  /* 64 … 127 */
    const struct sv_io_group *b = group(&m, SV_IO_FOLDER, "/d/sub");
    REQUIRE(b != NULL);
    CHECK_UINT_EQ(b->writes, 1);
    CHECK_UINT_EQ(b->others, 1);
    CHECK_UINT_EQ(b->sizes[0], 1);
    CHECK_UINT_EQ(b->all.n, 1); /* an instant has no duration */
    CHECK_UINT_EQ(process(&m, 20)->writes, 1);
    CHECK_INT_EQ(m.report.total.all.total_ns, 15000);
    unmake(&m);
}

TEST(sequential_or_random)
{
    static const struct {
        const char *calls;
        uint64_t sequential, random;
    } rows[] = {
        {"1.1 pread64 offset=0 bytes=10\n1.2 pread64 offset=10 bytes=10\n1.3 pread64 offset=50 "
         "bytes=10\n",
         1, 1},
        {"1.1 read bytes=10\n1.2 read bytes=10\n1.3 read bytes=10\n", 2, 0},
        {"1.1 read bytes=10\n1.2 lseek ret=100\n1.3 read bytes=10\n", 0, 1},
        /* A seek to the current position moves nothing; the position is known from the opening
         * on. */
        {"1.0 openat ret=3\n1.1 read bytes=10\n1.2 lseek ret=10\n1.3 read bytes=10\n", 1, 0},
        {"1.1 read bytes=10\n", 0, 0},
        {"1.1 read bytes=10\n1.2 pread64 offset=7 bytes=10\n", 0, 0}, /* nothing to compare with */
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        char body[4096], line[256];
        size_t n = (size_t)snprintf(body, sizeof body, "%s", TRACKS);
        for (const char *p = rows[i].calls; *p; p = strchr(p, '\n') + 1) {
            int second, name_from, name_to, end;
            REQUIRE(sscanf(p, "1.%d %n%*s%n %*[^\n]%n", &second, &name_from, &name_to, &end) == 1);
            snprintf(line, sizeof line,
                     "1.%d00000000 slice #2 \"%.*s\" cat=\"syscall\" dur=0.000001000 {fd=3 "
                     "path=\"/f\"%.*s}\n",
                     second, name_to - name_from, p + name_from, end - name_to, p + name_to);
            n += (size_t)snprintf(body + n, sizeof body - n, "%s", line);
        }
        CONTEXT("row %zu", i);
        struct made m = make(body);
        CHECK_UINT_EQ(m.report.total.sequential, rows[i].sequential);
        CHECK_UINT_EQ(m.report.total.random, rows[i].random);
        unmake(&m);
    }
}

TEST(block_requests_belong_to_devices_and_processes)
{
    struct made m = make(
        TRACKS
        "1.000000000 slice #4 \"read\" cat=\"syscall\" dur=0.000100000 {fd=3 bytes=8192 ret=8192}\n"
        "1.000010000 slice #6 \"read\" cat=\"block\" dur=0.000050000 {device=\"sda\" sector=8 "
        "bytes=4096 pid=20}\n"
        "1.000020000 slice #6 \"read\" cat=\"block\" dur=0.000150000 {device=\"sda\" sector=16 "
        "bytes=512 pid=99}\n"
        "1.000030000 slice #6 \"write\" cat=\"block\" dur=0.000070000 {device=\"sda\" sector=0 "
        "bytes=512 pid=10}\n");
    const struct sv_io_group *sda = group(&m, SV_IO_DEVICE, "sda");
    REQUIRE(sda != NULL);
    CHECK_UINT_EQ(m.report.n_block, 3);
    CHECK_UINT_EQ(sda->reads, 2);
    CHECK_UINT_EQ(sda->bytes_written, 512);
    CHECK_UINT_EQ(sda->sequential, 1);
    CHECK_UINT_EQ(sda->random, 1);
    CHECK_DOUBLE_EQ(sda->read.p50_ns, 100000.0);
    CHECK_UINT_EQ(process(&m, 20)->block_bytes_read, 4096);
    CHECK_DOUBLE_EQ(sv_io_cached(&m.report, process(&m, 20)), 0.5);
    CHECK_UINT_EQ(m.report.total.block_bytes_read, 4096); /* of the run; 99 is not of it */
    CHECK_UINT_EQ(m.report.n_other_block, 1);
    CHECK_UINT_EQ(m.report.other_block_bytes_read, 512);
    CHECK_INT_EQ(m.report.total.all.total_ns, 100000); /* of calls alone */
    unmake(&m);
}

#define READS                                                                                    \
    "1.000000000 slice #4 \"read\" cat=\"syscall\" dur=0.000100000 {fd=3 bytes=8192 ret=8192}\n" \
    "1.000000000 slice #2 \"openat\" cat=\"syscall\" dur=0.000100000 {path=\"/x\" ret=3}\n"

TEST(misses_of_the_page_cache)
{
    struct made m = make(
        TRACKS
        "1.000000000 instant #4 \"add\" cat=\"page_cache\" {device=\"sda\" inode=7 offset=0 "
        "bytes=4096}\n"
        "1.000010000 instant #4 \"add\" cat=\"page_cache\" {device=\"sda\" inode=7 offset=4096 "
        "bytes=65536}\n"
        "1.000020000 instant #4 \"delete\" cat=\"page_cache\" {device=\"sda\" inode=7 bytes=4096}\n"
        "1.000030000 slice #4 \"read\" cat=\"syscall\" dur=0.000001000 {bytes=1 ret=1}\n");
    CHECK_UINT_EQ(m.report.n_cache_misses, 2);
    CHECK_UINT_EQ(process(&m, 20)->cache_misses, 2);
    CHECK_UINT_EQ(process(&m, 20)->cache_miss_bytes, 69632);
    unmake(&m);
}

/* Two epochs over a mapped file: cold, then warm. */
TEST(what_is_read_through_mappings)
{
    struct made m = make(
        TRACKS
        "0.500000000 instant #4 \"exec\" cat=\"process\" {path=\"./load\"}\n"
        "1.000000000 slice #4 \"epoch 1\" cat=\"phase\" dur=1.000000000\n"
        "1.100000000 slice #4 \"mmap\" cat=\"syscall\" dur=0.000001000 {path=\"/data/w\" "
        "length=9}\n"
        "1.200000000 instant #4 \"add\" cat=\"page_cache\" {path=\"/data/w\" bytes=2097152}\n"
        "1.200000000 slice #4 \"file\" cat=\"fault\" dur=0.250000000 {path=\"/data/w\" bytes=65536 "
        "major=1}\n"
        "1.600000000 instant #4 \"mapped\" cat=\"fault\" {path=\"/data/w\" bytes=2031616 "
        "count=31}\n"
        "1.700000000 instant #4 \"mapped\" cat=\"fault\" {path=\"/lib/libc.so.6\" bytes=65536 "
        "count=1}\n"
        "1.800000000 instant #4 \"mapped\" cat=\"fault\" {path=\"/data/load\" bytes=65536 "
        "count=1}\n"
        "3.000000000 slice #4 \"epoch 2\" cat=\"phase\" dur=1.000000000\n"
        "3.100000000 instant #4 \"mapped\" cat=\"fault\" {path=\"/data/w\" bytes=2097152 "
        "count=32}\n");
    const struct sv_io_group *t = &m.report.total, *f = &m.report.by[SV_IO_FILE].groups[0];
    CHECK_STR_EQ(sv_dict_text(m.report.strings, f->name).bytes, "/data/w");
    CHECK_UINT_EQ(f->fault_bytes, 4 << 20);
    CHECK_UINT_EQ(f->faults, 64);
    CHECK_INT_EQ(f->fault_ns, 250000000);
    CHECK_UINT_EQ(f->cache_miss_bytes, 2 << 20);
    CHECK_UINT_EQ(t->fault_bytes, 4 << 20); /* neither the library nor the program */
    CHECK_UINT_EQ(process(&m, 20)->faults, 64);
    REQUIRE(m.report.n_spans == 2);
    CHECK_INT_EQ(m.report.spans[0].own_ns, 250001000);
    CHECK_UINT_EQ(m.report.spans[0].bytes_missed, 2 << 20);
    CHECK_UINT_EQ(m.report.spans[1].bytes_mapped, 2 << 20);
    CHECK_UINT_EQ(m.report.spans[1].bytes_missed, 0);
    REQUIRE(m.report.n_verdicts == 1);
    CHECK_STR_EQ(m.report.verdicts[0].name, "mapped");
    CHECK(strstr(m.report.verdicts[0].figures, "1 mappings of data files, 64 page faults"));
    unmake(&m);
}

TEST(transfers_by_peer)
{
    struct made m = make(
        TRACKS
        "1.000000000 slice #4 \"tcp_send\" cat=\"network\" dur=0.000002000 {peer=\"10.0.0.7:443\" "
        "port=5000 bytes=100}\n"
        "2.000000000 slice #4 \"tcp_recv\" cat=\"network\" dur=0.000003000 {peer=\"10.0.0.7:443\" "
        "port=5000 bytes=70}\n"
        "3.000000000 slice #4 \"tcp_recv\" cat=\"network\" dur=0.000004000 {peer=\"10.0.0.7:443\" "
        "port=5001 errno=104}\n"
        "4.000000000 slice #4 \"tcp_send\" cat=\"network\" dur=0.000001000 {peer=\"[::1]:80\" "
        "port=5000 bytes=1}\n");
    const struct sv_io_groups *peers = &m.report.by[SV_IO_PEER];
    REQUIRE(peers->n == 2);
    const struct sv_io_group *g = &peers->groups[0]; /* the most time first */
    CHECK_STR_EQ(sv_dict_text(m.report.strings, g->name).bytes, "10.0.0.7:443");
    CHECK_UINT_EQ(g->opens, 2);
    CHECK_UINT_EQ(g->bytes_written, 100);
    CHECK_UINT_EQ(g->bytes_read, 70);
    CHECK_UINT_EQ(g->errors, 1);
    CHECK_INT_EQ(g->read.total_ns, 7000);
    CHECK_INT_EQ(g->write.total_ns, 2000);
    CHECK_UINT_EQ(m.report.n_calls, 0);
    CHECK_UINT_EQ(m.report.total.bytes_read, 0);
    unmake(&m);
}

TEST(roles)
{
    static const struct {
        const char *more;
        enum sv_io_role train, worker;
    } rows[] = {
        {"track #7 custom uuid=0x7 parent=#1 name=\"GPU 0\"\n"
         "track #8 counter uuid=0x8 parent=#7 name=\"sm\"\n1.5 counter #8 {50.0}\n",
         SV_ROLE_TRAINER, SV_ROLE_LOADER},
        {"2.0 slice #2 \"step 1\" cat=\"step\" dur=1.0\n", SV_ROLE_TRAINER, SV_ROLE_LOADER},
        {"2.0 slice #2 \"clone\" cat=\"syscall\" dur=0.001 {ret=20}\n", SV_ROLE_TRAINER,
         SV_ROLE_LOADER},
        {"2.0 instant #2 \"fork\" cat=\"process\" {child=20}\n", SV_ROLE_TRAINER, SV_ROLE_LOADER},
        {"", SV_ROLE_NONE, SV_ROLE_NONE},
        /* Another program is no data worker: a compiler does not train. */
        {"2.0 instant #2 \"fork\" cat=\"process\" {child=20}\n"
         "2.1 instant #4 \"exec\" cat=\"process\" {path=\"/usr/lib/cc1\"}\n",
         SV_ROLE_NONE, SV_ROLE_NONE},
        /* The parent of somebody who reads nothing trains nobody. */
        {"2.0 slice #4 \"clone\" cat=\"syscall\" dur=0.001 {ret=10}\n", SV_ROLE_NONE, SV_ROLE_NONE},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        char body[4096] = TRACKS READS, *to = body + strlen(body);
        /* Times need nine decimals. */
        for (const char *p = rows[i].more; *p; p++) {
            *to++ = *p;
            bool is_decimal = p > rows[i].more + 1 && p[-1] == '.' && *p >= '0' && *p <= '9';
            if (is_decimal && (p[1] == ' ' || p[1] == '\n')) {
                memcpy(to, "00000000", 8);
                to += 8;
            } else if (strncmp(p, "1 {", 3) == 0 && p[-1] == '0' && p[-2] == '0') {
                memcpy(to, "000000", 6);
                to += 6;
            }
        }
        CONTEXT("row %zu", i);
        struct made m = make(body);
        CHECK_INT_EQ(process(&m, 10)->role, rows[i].train);
        CHECK_INT_EQ(process(&m, 20)->role, rows[i].worker);
        CHECK(*process(&m, 20)->why != 0);
        unmake(&m);
    }
}

/* The step is 10 ms long: its own thread reads for 2 ms of it (one call begins before it), the
 * worker for 5 ms, 1 ms at the same time. */
TEST(time_in_steps)
{
    struct made m = make(
        TRACKS "1.000000000 slice #2 \"step 1\" cat=\"step\" dur=0.010000000\n"
               "0.999000000 slice #2 \"read\" cat=\"syscall\" dur=0.002000000 {bytes=10 ret=10}\n"
               "1.003000000 slice #2 \"read\" cat=\"syscall\" dur=0.001000000 {bytes=20 ret=20}\n"
               "1.003000000 slice #4 \"read\" cat=\"syscall\" dur=0.004000000 {bytes=30 ret=30}\n"
               "1.009000000 slice #4 \"write\" cat=\"syscall\" dur=0.005000000 {bytes=40 ret=40}\n"
               "0.500000000 instant #4 \"add\" cat=\"page_cache\" {bytes=4096}\n"
               "1.004000000 instant #4 \"add\" cat=\"page_cache\" {bytes=8192}\n"
               "1.005000000 instant #4 \"add\" cat=\"page_cache\" {bytes=16384}\n"
               "1.020000000 instant #4 \"add\" cat=\"page_cache\" {bytes=32768}\n");
    REQUIRE(m.report.n_spans == 1);
    CHECK_UINT_EQ(m.report.spans[0].bytes_missed, 24576);
    const struct sv_io_span *s = m.report.spans;
    CHECK_INT_EQ(s->own_ns, 2000000);
    CHECK_INT_EQ(s->any_ns, 6000000);
    CHECK_UINT_EQ(s->reads, 2); /* that begin in it */
    CHECK_UINT_EQ(s->bytes_read, 50);
    CHECK_UINT_EQ(s->bytes_written, 40);
    unmake(&m);
}

/* Waiting on a pipe is no I/O on files, and a thread's rows count once: its own I/O is no longer
 * than the step. */
TEST(pipes_are_apart_and_a_thread_counts_once)
{
    struct made m =
        make("meta \"writer\" \"stave record\"\n" TRACKS
             "track #7 custom uuid=0x7 parent=#2 name=\"io_uring\"\n"
             "1.000000000 slice #2 \"step 1\" cat=\"step\" dur=0.010000000\n"
             "1.000000000 slice #2 \"read\" cat=\"syscall\" dur=0.006000000 {path=\"/d/a\" "
             "bytes=20}\n"
             "1.001000000 slice #7 \"io_uring_read\" cat=\"io_uring\" dur=0.009000000 "
             "{path=\"/d/a\" bytes=30}\n"
             "1.006000000 slice #2 \"read\" cat=\"syscall\" dur=0.004000000 {path=\"pipe:[1]\" "
             "bytes=5}\n"
             "1.020000000 slice #2 \"read\" cat=\"syscall\" dur=0.001000000 {fd=0 bytes=7}\n");
    CHECK_UINT_EQ(m.report.n_calls, 2);
    CHECK_UINT_EQ(m.report.total.bytes_read, 50);
    CHECK_UINT_EQ(m.report.kinds[SV_FILE_PIPE].bytes_read, 5);
    CHECK_INT_EQ(m.report.kinds[SV_FILE_PIPE].time_ns, 4000000);
    CHECK_UINT_EQ(m.report.kinds[SV_FILE_UNKNOWN].bytes_read, 7);
    REQUIRE(m.report.n_spans == 1);
    CHECK_INT_EQ(m.report.spans[0].own_ns, 10000000);
    unmake(&m);
}
