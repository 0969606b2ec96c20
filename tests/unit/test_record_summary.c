/* What `stave record` says at the end, of files and processes with known sums. */
#include "record/decode/short_calls.h"
#include "record/session/recorder.h"
#include "tests/harness/test.h"
#include "tests/unit/kbench.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char said[1 << 14];

/* Without what this program itself has used. */
static void summarise(const struct sv_recorder *r)
{
    int before = dup(STDERR_FILENO),
        to = open(test_scratch("said"), O_RDWR | O_CREAT | O_TRUNC, 0600);
    REQUIRE(before >= 0 && to >= 0 && fflush(stderr) == 0 && dup2(to, STDERR_FILENO) >= 0);
    sv_recorder_summary(r);
    fflush(stderr);
    dup2(before, STDERR_FILENO);
    ssize_t n = pread(to, said, sizeof said - 1, 0);
    said[n > 0 ? n : 0] = 0;
    char *own = strstr(said, "  stave itself");
    if (own)
        *own = 0;
    close(before);
    close(to);
}

static void add_file(struct sv_tree *t, const char *path, int64_t time_ns)
{
    struct sv_file *f = sv_tree_file(t, NULL, path, strlen(path));
    f->opens = 1;
    f->reads = 20;
    f->writes = 300;
    f->read_bytes = 4000;
    f->written_bytes = 50000;
    f->time_ns = time_ns;
    f->longest_ns = time_ns / 2;
}

static void add_process(struct sv_tree *t, uint32_t pid, uint64_t calls, int64_t time_ns)
{
    bool is_new;
    struct sv_proc *p = sv_tree_process(t, pid, &is_new);
    p->calls = calls;
    p->time_ns = time_ns;
    p->bytes_read = 1000 * pid;
    p->bytes_written = 2000 * pid;
    snprintf(p->name, sizeof p->name, "p%u", pid);
}

/* Of a path that is too long the end; no byte that a terminal obeys. */
static const char expected[] =
    "\n"
    "        time    longest    calls       read    written  slowest files (110 in all)\n"
    "   22.000 ms  11.000 ms      321    3.9 KiB   48.8 KiB  /session2\n"
    "   21.000 ms  10.500 ms      321    3.9 KiB   48.8 KiB  "
    "…xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx?"
    "y\n"
    "   20.000 ms  10.000 ms      321    3.9 KiB   48.8 KiB  "
    "/xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx?\n"
    "    7.000 ms   3.500 ms      321    3.9 KiB   48.8 KiB  /data/7\n"
    "    6.000 ms   3.000 ms      321    3.9 KiB   48.8 KiB  /data/6\n"
    "\n"
    "    in calls               calls       read    written  busiest processes (10 in all)\n"
    "    7.000 ms                   7    6.8 KiB   13.7 KiB  p7 (7)\n"
    "    6.500 ms                   5        0 B        0 B  gone (9)\n"
    "    6.000 ms                   6    5.9 KiB   11.7 KiB  p6 (6)\n"
    "    5.000 ms                   5    4.9 KiB    9.8 KiB  p5 (5)\n"
    "    4.000 ms                   4    3.9 KiB    7.8 KiB  p4 (4)\n"
    "\n"
    "  2.000 s recorded: 12 processes\n"
    "  17 events were lost\n"
    "    CPU 3: 12 system calls\n"
    "    CPU 1: 5 exits\n"
    "    stave did not empty the rings in time; a larger --ring, fewer --calls or a "
    "--min-latency would help\n";

TEST(the_slowest_files_and_the_busiest_processes_are_shown)
{
    struct kbench *k = kbench_new(NULL);
    struct sv_tree *t = sv_decode_tree(k->decode);
    char path[80];
    struct sv_record_options o = {0};
    struct sv_recorder r = {
        .options = &o,
        .system = {.decode = k->decode, .totals = k->totals},
        .times = {.started_ns = 1000000000, .round_ns = 3000000000},
        .losses = {.rows = {{"system calls", 12, 3}, {"exits", 5, 1}}, .n = 2, .sum = 17}};
    const bool was_quiet = sv_common.quiet;
    for (int i = 1; i <= 7; i++) {
        snprintf(path, sizeof path, "/data/%d", i);
        add_file(t, path, i * 1000000);
    }
    memset(path, 'x', sizeof path);
    path[0] = '/';
    path[60] = 0; /* as long as is shown */
    path[59] = '\n';
    add_file(t, path, 20000000);
    path[60] = 'y'; /* one more */
    path[61] = 0;
    add_file(t, path, 21000000);
    add_file(t, "pipe:[7]", 90000000); /* waits for another process */
    sv_tree_file(t, NULL, "/never", 6);
    setenv("STAVE_SESSION", "/session", 1);
    add_file(t, "/session/ring", 90000000); /* our own */
    add_file(t, "/session2", 22000000);
    for (uint32_t i = 1; i <= 7; i++)
        add_process(t, i, i, i * 1000000);
    add_process(t, 8, 0, 99000000); /* no calls */
    t->gone[0] = (struct sv_gone){.pid = 9, .name = "gone", .calls = 5, .time_ns = 6500000};
    t->n_gone = 1;
    t->n_forgotten = 4;
    t->n_forgotten_active = 3;
    t->n_forgotten_files = 100;
    sv_common.quiet = false;
    summarise(&r);
    CHECK_STR_EQ(said, expected);
    r.times.stopped_ns = 2000000000;
    r.losses.sum = r.losses.n = 0;
    summarise(&r);
    CHECK(strstr(said, "  1.000 s recorded: 12 processes\n"));
    CHECK(!strstr(said, "lost") && !strstr(said, "CPU 3"));
    sv_common.quiet = true;
    summarise(&r);
    CHECK_STR_EQ(said, "");
    sv_common.quiet = was_quiet;
    unsetenv("STAVE_SESSION");
    kbench_free(k);
}

/* A call as the library io records it. */
static void call(struct sv_inside *x, struct sv_batch *b, struct sv_dict *d, uint32_t pid,
                 const char *name, const char *path, const char *path2, int64_t bytes)
{
    sv_batch_reset(b);
    struct sv_event *e = sv_batch_put(b, SV_SLICE, 100, sv_dict_thread(d, 0, pid, pid),
                                      sv_dict_cstr(d, name), sv_dict_cstr(d, "syscall"));
    e->dur_ns = 1000000;
    if (path)
        sv_batch_str(b, sv_dict_cstr(d, "path"), path, strlen(path));
    if (path2)
        sv_batch_str(b, sv_dict_cstr(d, "path2"), path2, strlen(path2));
    sv_batch_int(b, sv_dict_cstr(d, "bytes"), bytes);
    sv_batch_finish(b, e);
    sv_inside_count(x, &b->events[0]);
}

static const char both_sides[] =
    "\n"
    "        time    longest    calls       read    written  slowest files (2 in all)\n"
    "    4.000 ms   1.000 ms        4     1000 B    2.0 KiB  /a\n"
    "        0 ns       0 ns        1        0 B      500 B  /b\n"
    "\n"
    "    in calls               calls       read    written  busiest processes (2 in all)\n"
    "    6.000 ms                   7    3.9 KiB    7.8 KiB  p3 (3)\n"
    "    1.000 ms                   1      500 B      500 B   (77)\n";

/* Calls that a library in the command saw are added to those of the kernel; a process of which only
 * it saw calls has a row of its own. */
TEST(calls_that_a_library_saw_are_added)
{
    struct kbench *k = kbench_new(NULL);
    struct sv_record_options o = {0};
    struct sv_recorder r = {.options = &o,
                            .system = {.decode = k->decode, .totals = k->totals},
                            .times = {.started_ns = 1, .round_ns = 1000000001}};
    struct sv_inside *x = &r.collected.inside;
    const bool was_quiet = sv_common.quiet;
    sv_inside_init(x, k->dict, sv_decode_tree(k->decode));
    add_process(sv_decode_tree(k->decode), 3, 3, 2000000);
    call(x, &k->batch, k->dict, 3, "openat", "/a", NULL, -1);
    call(x, &k->batch, k->dict, 3, "read", "/a", NULL, 1000);
    call(x, &k->batch, k->dict, 3, "write", "/a", NULL, 1500);
    call(x, &k->batch, k->dict, 3, "write", "/a", NULL, 500);
    call(x, &k->batch, k->dict, 77, "sendfile", NULL, "/b", 500);
    call(x, &k->batch, k->dict, 77, "no_call", "/a", NULL, 500);
    CHECK_UINT_EQ(x->n_calls, 5);
    CHECK_UINT_EQ(sv_inside_others(x), 1);
    sv_common.quiet = false;
    summarise(&r);
    sv_common.quiet = was_quiet;
    if (!CHECK(strncmp(said, both_sides, strlen(both_sides)) == 0))
        printf("%s", said);
    sv_inside_fini(x);
    kbench_free(k);
}

TEST(what_the_trace_must_not_have_is_not_said)
{
    struct kbench *k = kbench_new(NULL);
    struct sv_record_options o = {.redact = "paths"};
    struct sv_recorder r = {.options = &o,
                            .system = {.decode = k->decode, .totals = k->totals},
                            .times = {.started_ns = 1, .round_ns = 1000000001}};
    const bool was_quiet = sv_common.quiet;
    char token[64];
    REQUIRE(sv_redact_parse("paths", &r.system.redact, NULL) == 0);
    add_file(sv_decode_tree(k->decode), "/patients/scan-7.bin", 1000000);
    size_t n = sv_redact_path(&r.system.redact.tokens, "/patients/scan-7.bin", 20, token,
                              sizeof token - 1);
    token[n] = 0;
    sv_common.quiet = false;
    summarise(&r);
    CHECK(!strstr(said, "patients") && !strstr(said, "scan"));
    CHECK(strstr(said, token)); /* as the trace calls it */
    o.redact = "args=pa*";
    REQUIRE(sv_redact_parse("args=pa*", &r.system.redact, NULL) == 0);
    summarise(&r);
    CHECK(!strstr(said, "patients") && strstr(said, "  redacted\n"));
    sv_common.quiet = was_quiet;
    kbench_free(k);
}

TEST(calls_that_were_summed_are_counted)
{
    struct kbench *k = kbench_new(&(struct sv_decode_options){.sum_below_ns = 1000000});
    struct sv_record_options o = {0};
    struct sv_recorder r = {.options = &o,
                            .system = {.decode = k->decode, .totals = k->totals},
                            .times = {.started_ns = 1, .round_ns = 1000000001}};
    const bool was_quiet = sv_common.quiet;
    const struct sv_short_call c = {.process = sv_dict_process(k->dict, 0, 3),
                                    .name = sv_dict_cstr(k->dict, "read"),
                                    .start_ns = 5,
                                    .end_ns = 10};
    for (int i = 0; i < 700; i++)
        sv_short_calls_add(sv_decode_short_calls(k->decode), &c);
    r.collected.inside.n_calls = 2; /* a library saw two more */
    sv_common.quiet = false;
    summarise(&r);
    sv_common.quiet = was_quiet;
    CHECK(strstr(said, "  1.000 s recorded: 702 system calls, "));
    kbench_free(k);
}
