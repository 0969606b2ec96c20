/* Records that wait in the spool while a recording runs: each is decoded once, in order, whatever
 * ends the series: the budget, the end of the recording, a full disk, a spool that cannot be read,
 * a reader of the growing file, a record that cannot wait. The rings are made by hand, and so is
 * the recorder around them. */
#include "core/files/output.h"
#include "record/bpf/offcpu.h"
#include "record/session/recorder.h"
#include "record/spool/defer.h"
#include "record/spool/kspool.h"
#include "record/spool/left.h"
#include "tests/harness/test.h"
#include "tests/unit/kbench.h"

#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PID = 1 << 30, PATH_BYTES = 3000, STEP_NS = 10, FIRST_NS = 1000 }; /* no process has it */
enum { MANY = 36, BUDGET = 16 << 20 };                                    /* calls in one round */

struct bench {
    struct kbench *k;
    struct sv_recorder r;
    struct sv_record_options o;
    struct sv_sink sink;
    struct sv_output *file; /* 8 bytes for each call, which says how many are in it */
    sv_str call;            /* the name of the calls that are put in */
    uint64_t n_put, n_seen, n_wrong, n_lost, n_loss_events;
    char part[PATH_MAX], spool[SV_KSPOOL_PATH_MAX];
};

static struct bench *of(struct sv_sink *s)
{
    return (struct bench *)((char *)s - offsetof(struct bench, sink));
}

static int count(struct sv_sink *s, const struct sv_event *events, size_t n, struct sv_err *err)
{
    struct bench *b = of(s);
    (void)err;
    for (size_t i = 0; i < n; i++) {
        const struct sv_event *e = &events[i];
        if (e->kind == SV_LOSS) {
            b->n_loss_events++;
            b->n_lost += (uint64_t)e->args[0].i;
        } else if (e->name == b->call && (e->kind == SV_BEGIN || e->kind == SV_SLICE)) {
            b->n_wrong += e->ts_ns != FIRST_NS + (int64_t)b->n_seen * STEP_NS;
            b->n_seen++;
            sv_output_write(b->file, &e->ts_ns, sizeof e->ts_ns);
        }
    }
    return 0;
}

static int flush(struct sv_sink *s, struct sv_err *err)
{
    return sv_output_flush(of(s)->file, err);
}

static struct bench *open_bench(const char *budget)
{
    struct bench *b = calloc(1, sizeof *b);
    struct sv_err err = {0};
    b->k = kbench_new(NULL);
    snprintf(b->part, sizeof b->part, "%s", test_scratch("t.pftrace.part"));
    REQUIRE(sv_output_open(b->part, SV_OUTPUT_GROW, SV_PLAIN, &b->file, &err) == 0);
    b->o = (struct sv_record_options){.out.path = test_scratch("t.pftrace"), .spool = budget};
    b->sink = (struct sv_sink){.write = count, .flush = flush, .takes = UINT_MAX, .file = b->file};
    b->r = (struct sv_recorder){.options = &b->o, .dict = b->k->dict, .batch = &b->k->batch};
    b->r.system.kernel = (struct sv_kernel *)b; /* there is one: nobody looks at it */
    b->r.system.decode = b->k->decode;
    sv_totals_init(&b->r.system.totals, sv_decode_source(b->k->decode));
    b->call = sv_dict_cstr(b->k->dict, "openat");
    b->r.output.sink = &b->sink;
    b->r.output.part = b->part;
    b->r.output.claim.fd = -1;
    b->r.output.claim.kind = SV_CLAIM_RECORDER;
    b->r.output.claim.holder.pid = (uint32_t)getpid();
    snprintf(b->r.output.claim.out, sizeof b->r.output.claim.out, "%s", b->o.out.path);
    REQUIRE(sv_kspool_name(b->o.out.path, (uint32_t)getpid(), b->spool, sizeof b->spool));
    sv_record_meter_open(&b->r, false);
    setenv("STAVE_SPOOL", "always", 1);
    sv_defer_open(&b->r);
    unsetenv("STAVE_SPOOL");
    return b;
}

static void close_bench(struct bench *b)
{
    sv_defer_close(&b->r);
    sv_record_meter_close(&b->r);
    sv_totals_fini(&b->r.system.totals);
    sv_output_discard(b->file);
    kbench_free(b->k);
    free(b);
}

static void put_calls(struct bench *b, unsigned n)
{
    static char path[PATH_BYTES];
    memset(path, 'a', sizeof path - 1);
    path[0] = '/';
    for (; n > 0; n--, b->n_put++) {
        uint64_t ts = FIRST_NS + b->n_put * STEP_NS;
        struct sv_wire_call c = kbench_call(SYS_openat, ts, ts + 5, AT_FDCWD, 3);
        c.head.tgid = c.head.tid = PID;
        kbench_put(b->k, b->n_put & 1, &c, sizeof c, path, sizeof path, 0);
    }
}

/* As the recorder does it (kernel_round() of session/recorder.c). False: the round was decoded. */
static bool make_round(struct bench *b)
{
    struct sv_err err = {0};
    int code;
    bool waits = sv_defer_round(&b->r, sv_recorder_now_ns(), &code, &err);
    CHECK_INT_EQ(code, 0);
    if (waits)
        return true;
    sv_decode_round(b->k->decode, (uint64_t)sv_recorder_now_ns());
    CHECK_INT_EQ(sv_recorder_pull(&b->r, &b->r.system.totals.source, &err), 0);
    sv_decode_release(b->k->decode);
    return false;
}

/* The end of a recording (finish() of session/recorder.c): what waits, then the last round. */
static void finish(struct bench *b)
{
    struct sv_err err = {0};
    unsigned done, before = 0;
    int code;
    while ((code = sv_defer_finish_step(&b->r, &done, &err)) > 0) {
        CHECK(done >= before && done < 1000);
        before = done;
    }
    CHECK_INT_EQ(code, 0);
    CHECK_UINT_EQ(done, 1000);
    CHECK_UINT_EQ(sv_defer_waiting(&b->r), 0);
    CHECK(!make_round(b)); /* nothing may wait: no round follows that would decode it */
    sv_record_commit(&b->r, sv_recorder_now_ns(), true, &err);
}

/* Every call that was put into the rings came once, in the order of their times. */
static void check_all_came(const struct bench *b)
{
    CHECK_UINT_EQ(b->n_seen, b->n_put);
    CHECK_UINT_EQ(b->n_wrong, 0);
    CHECK_UINT_EQ(b->n_lost, 0);
    for (unsigned i = 0; i < KBENCH_RINGS; i++)
        CHECK_UINT_EQ(b->k->rings[i].consumer, b->k->rings[i].producer);
}

static uint64_t size_of(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

TEST(what_waits_is_decoded_at_the_end)
{
    struct bench *b = open_bench("16M");
    for (int i = 0; i < 5; i++) {
        put_calls(b, MANY);
        CHECK(make_round(b));
        CHECK_UINT_EQ(b->k->rings[0].consumer, b->k->rings[0].producer);
        CHECK(sv_defer_waiting(&b->r) > 0);
    }
    CHECK_UINT_EQ(b->n_seen, 0);
    CHECK(size_of(b->spool) > 5 * MANY * (uint64_t)PATH_BYTES);
    put_calls(b, 7); /* what comes while the recording ends */
    finish(b);
    check_all_came(b);
    CHECK_UINT_EQ(size_of(b->spool), 4096); /* it is given back to the disk at once */
    close_bench(b);
    CHECK(access(test_scratch("t.pftrace"), F_OK) != 0);
}

/* The moment in which records were once lost: everything is decoded, the recording ends, and the
 * last round finds new records while calls still come in masses. */
TEST(nothing_waits_in_the_last_rounds)
{
    struct bench *b = open_bench("16M");
    struct sv_err err = {0};
    unsigned done;
    put_calls(b, MANY);
    CHECK(make_round(b));
    CHECK_INT_EQ(sv_defer_catch_up(&b->r, &err), 0);
    CHECK_UINT_EQ(sv_defer_waiting(&b->r), 0);
    CHECK_INT_EQ(sv_defer_finish_step(&b->r, &done, &err), 0);
    for (int i = 0; i < 3; i++) {
        put_calls(b, MANY);
        CHECK(!make_round(b));
        check_all_came(b);
    }
    CHECK_UINT_EQ(sv_defer_waiting(&b->r), 0);
    close_bench(b);
}

/* More than half of the budget waits: all of it is decoded, and then it waits again. */
TEST(a_full_spool_is_decoded)
{
    struct bench *b = open_bench("16M");
    uint64_t most = 0, turns = 0;
    while (b->n_put < 2 * (uint64_t)BUDGET / PATH_BYTES) {
        uint64_t seen = b->n_seen;
        put_calls(b, MANY);
        CHECK(make_round(b));
        most = size_of(b->spool) > most ? size_of(b->spool) : most;
        turns += b->n_seen > seen;
        if (b->n_seen > seen)
            check_all_came(b);
    }
    CHECK_UINT_EQ(turns, 4); /* 33 MiB in pieces of 8 MiB, and the rest */
    CHECK(most >= BUDGET / 2 - (512 << 10) && most <= BUDGET / 2 + (512 << 10));
    finish(b);
    check_all_came(b);
    close_bench(b);
}

static void limit_files(uint64_t bytes, struct rlimit *before)
{
    struct rlimit limit;
    REQUIRE(getrlimit(RLIMIT_FSIZE, before) == 0);
    limit = (struct rlimit){bytes, before->rlim_max};
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

/* The disk is full in the middle of an entry: the round that could not be moved is decoded after
 * what waits, and so is all that follows. */
TEST(a_full_disk_ends_the_waiting)
{
    struct bench *b = open_bench("16M");
    struct rlimit before;
    signal(SIGXFSZ, SIG_IGN);
    for (int i = 0; i < 4; i++) {
        put_calls(b, MANY);
        CHECK(make_round(b));
    }
    limit_files(size_of(b->spool) + 40000, &before);
    put_calls(b, MANY);
    CHECK(!make_round(b));
    check_all_came(b);
    setrlimit(RLIMIT_FSIZE, &before);
    put_calls(b, MANY);
    CHECK(!make_round(b)); /* for the rest of the recording */
    finish(b);
    check_all_came(b);
    close_bench(b);
}

/* The same while the recording ends: much waits, more has come, and the disk does not take it. What
 * is left in the rings is decoded by the last round. */
TEST(a_full_disk_in_the_last_round_loses_nothing)
{
    struct bench *b = open_bench("64M");
    struct rlimit before;
    signal(SIGXFSZ, SIG_IGN);
    while (b->n_put < ((uint64_t)9 << 20) / PATH_BYTES) {
        put_calls(b, MANY);
        CHECK(make_round(b));
    }
    CHECK_UINT_EQ(b->n_seen, 0);
    put_calls(b, MANY);
    limit_files(size_of(b->spool) + 40000, &before);
    finish(b);
    setrlimit(RLIMIT_FSIZE, &before);
    check_all_came(b);
    close_bench(b);
}

/* The same without a limit: what has come while so much waits is moved behind it first. */
TEST(what_comes_while_the_rest_is_decoded_waits_its_turn)
{
    struct bench *b = open_bench("64M");
    struct sv_err err = {0};
    unsigned done;
    while (b->n_put < ((uint64_t)9 << 20) / PATH_BYTES) {
        put_calls(b, MANY);
        CHECK(make_round(b));
    }
    put_calls(b, MANY);
    CHECK(sv_defer_finish_step(&b->r, &done, &err) >= 0);
    CHECK_UINT_EQ(b->k->rings[0].consumer, b->k->rings[0].producer);
    put_calls(b, MANY);
    finish(b);
    check_all_came(b);
    close_bench(b);
}

/* A spool that became shorter: what is not there any more is counted, in the trace and in the sum,
 * and the recording continues without a spool. */
TEST(a_spool_that_cannot_be_read_again_is_a_loss)
{
    struct bench *b = open_bench("16M");
    struct sv_err err = {0};
    for (int i = 0; i < 4; i++) {
        put_calls(b, MANY);
        CHECK(make_round(b));
    }
    uint64_t end = size_of(b->spool), waits = sv_defer_waiting(&b->r);
    CHECK(waits > 4 * MANY * PATH_BYTES / 64 && waits <= (end - 4096) / 64);
    REQUIRE(truncate(b->spool, (off_t)(end - 2 * MANY * PATH_BYTES)) == 0);
    uint64_t put = b->n_put;
    const uint64_t earlier = 1000000;
    b->r.losses.sum = earlier;
    CHECK_INT_EQ(sv_defer_catch_up(&b->r, &err), 0);
    CHECK(b->n_seen > 0 && b->n_seen < put && b->n_wrong == 0);
    CHECK(b->r.losses.sum > earlier && b->r.losses.sum - earlier < waits);
    CHECK_UINT_EQ(sv_defer_waiting(&b->r), 0);
    put_calls(b, MANY);
    uint64_t seen = b->n_seen;
    CHECK(!make_round(b));
    CHECK_UINT_EQ(b->n_seen, seen + MANY);
    CHECK_UINT_EQ(b->n_loss_events, 1);
    CHECK_UINT_EQ(b->n_lost, b->r.losses.sum - earlier);
    close_bench(b);
}

/* The name is taken: records are decoded as they come, to the end of the recording. */
TEST(a_spool_that_cannot_be_made)
{
    struct bench *b = open_bench("16M");
    test_write_file(b->spool, "another's");
    for (int i = 0; i < 2; i++) {
        put_calls(b, MANY);
        CHECK(!make_round(b));
        check_all_came(b);
        CHECK_STR_EQ(test_read_file(b->spool), i == 0 ? "another's" : "(absent)");
        unlink(b->spool);
    }
    finish(b);
    close_bench(b);
}

/* Who opens the growing file reads it: from then on nothing waits. */
TEST(who_reads_the_growing_file_gets_what_waits)
{
    struct bench *b = open_bench("16M");
    put_calls(b, MANY);
    CHECK(make_round(b));
    CHECK_UINT_EQ(b->n_seen, 0);
    int fd = open(b->part, O_RDONLY);
    REQUIRE(fd >= 0);
    close(fd);
    put_calls(b, MANY);
    CHECK(make_round(b));
    check_all_came(b);
    CHECK_UINT_EQ(size_of(b->part), b->n_seen * 8); /* it is in the file, too */
    put_calls(b, MANY);
    CHECK(!make_round(b));
    check_all_came(b);
    close_bench(b);
}

/* A wait whose stack must be read now: what came before it is decoded first. */
TEST(what_cannot_wait_ends_the_series)
{
    struct bench *b = open_bench("16M");
    struct sv_wire_offcpu w = {.head = {.kind = SV_WIRE_OFFCPU, .tgid = PID + 1, .tid = PID + 1},
                               .stack.regs[SV_STACK_IP] = 4096};
    const struct sv_wire_fork f = {
        .head = {.kind = SV_WIRE_FORK, .tgid = PID, .tid = PID, .ts_ns = 50},
        .tgid = PID + 1,
        .tid = PID + 1};
    kbench_put(b->k, 0, &f, sizeof f, NULL, 0, 0);
    put_calls(b, MANY);
    CHECK(make_round(b));
    w.head.ts_ns = FIRST_NS + b->n_put * STEP_NS - 1;
    kbench_put(b->k, b->n_put & 1, &w, sizeof w, NULL, 0, 0);
    put_calls(b, MANY);
    CHECK(!make_round(b));
    CHECK_UINT_EQ(b->n_seen, b->n_put);
    CHECK_UINT_EQ(b->k->rings[1].consumer, b->k->rings[1].producer);
    CHECK_UINT_EQ(sv_defer_waiting(&b->r), 0);
    close_bench(b);
}

/* ---- a recorder that was killed ---- */

static uint64_t recovered(const struct bench *b, uint64_t part_bytes, int64_t *first)
{
    struct sv_report report;
    struct sv_err err = {0};
    struct sv_source *s;
    struct sv_batch *batch = calloc(1, sizeof *batch);
    struct sv_dict *dict = sv_dict_new();
    uint64_t n_calls = 0;
    sv_report_init(&report);
    sv_batch_init(batch);
    REQUIRE(sv_spool_left_source(b->spool, part_bytes, dict, &report, &s, &err) == 0);
    for (int n; sv_batch_reset(batch), (n = s->next(s, batch, &err)) > 0;)
        for (int i = 0; i < n; i++) {
            const struct sv_event *e = &batch->events[i];
            if (e->kind != SV_BEGIN && e->kind != SV_SLICE)
                continue;
            *first = n_calls == 0 ? e->ts_ns : *first;
            n_calls++;
        }
    s->close(s);
    CHECK_UINT_EQ(sv_report_count(&report, SV_DAMAGE), 0);
    sv_report_fini(&report);
    sv_batch_fini(batch);
    free(batch);
    sv_dict_free(dict);
    return n_calls;
}

/* Killed after any commit: the growing file and what is decoded from the spool are all calls, each
 * once. */
TEST(file_and_spool_are_the_whole_after_a_kill)
{
    struct bench *b = open_bench("64M");
    struct sv_err err = {0};
    unsigned done;
    int code = 1, n_cuts = 0;
    char path[SV_KSPOOL_PATH_MAX];
    while (b->n_put < ((uint64_t)20 << 20) / PATH_BYTES) {
        put_calls(b, MANY);
        CHECK(make_round(b));
        sv_record_commit(&b->r, sv_recorder_now_ns(), true, &err);
    }
    while (code > 0) {
        uint64_t whole = b->r.output.whole_bytes;
        int64_t first = -1;
        CONTEXT("%llu bytes are whole", (unsigned long long)whole);
        CHECK_UINT_EQ(recovered(b, whole, &first), b->n_put - whole / 8);
        CHECK_INT_EQ(first, FIRST_NS + (int64_t)(whole / 8) * STEP_NS);
        CHECK(sv_spool_left_bytes(&b->r.output.claim, whole, path, sizeof path) > 0);
        CHECK_STR_EQ(path, b->spool);
        code = sv_defer_finish_step(&b->r, &done, &err);
        sv_record_commit(&b->r, sv_recorder_now_ns(), true, &err);
        n_cuts++;
    }
    CHECK_INT_EQ(code, 0);
    CHECK_UINT_EQ(
        sv_spool_left_bytes(&b->r.output.claim, b->r.output.whole_bytes, path, sizeof path), 0);
    check_all_came(b);
    close_bench(b);
}

/* An output that is kept for `stave recover` keeps its spool. */
TEST(the_spool_stays_with_a_file_that_is_kept)
{
    for (int is_kept = 0; is_kept < 2; is_kept++) {
        char path[SV_KSPOOL_PATH_MAX];
        struct bench *b = open_bench("16M");
        put_calls(b, MANY);
        CHECK(make_round(b));
        b->r.output.is_kept = is_kept;
        snprintf(path, sizeof path, "%s", b->spool);
        close_bench(b);
        CHECK_INT_EQ(access(path, F_OK), is_kept ? 0 : -1);
        if (is_kept)
            sv_spool_left_remove(path);
        CHECK(access(path, F_OK) != 0);
    }
}

TEST(sizes_of_a_spool)
{
    static const struct {
        const char *size;
        int code;
        bool is_made;
    } rows[] = {{NULL, 0, true},
                {"16M", 0, true},
                {"0", 0, false},
                {"1G", 0, true},
                {"16777215", SV_EUSAGE, false},
                {"1", SV_EUSAGE, false},
                {"much", SV_EUSAGE, false},
                {"", SV_EUSAGE, false}};
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct sv_err err = {0};
        CONTEXT("--spool %s", rows[i].size ? rows[i].size : "(none)");
        struct sv_record_options o = {.spool = rows[i].size};
        CHECK_INT_EQ(sv_defer_check(&o, &err), rows[i].code);
        if (rows[i].code < 0)
            continue;
        struct bench *b = open_bench(rows[i].size);
        CHECK_INT_EQ(b->r.system.defer != NULL, rows[i].is_made);
        close_bench(b);
    }
}

/* Where events are wanted live, or the trace's size steers the recording, nothing waits. */
TEST(what_is_wanted_live_does_not_wait)
{
    for (unsigned i = 0; i <= 6; i++) {
        struct bench *b = open_bench("16M");
        sv_defer_close(&b->r);
        CONTEXT("row %u", i);
        b->o.use.last = i == 1 ? "1s" : NULL;
        b->o.use.rotate = i == 2 ? "1M" : NULL;
        b->o.max_bytes = i == 3;
        b->o.redact = i == 4 ? "names" : NULL;
        b->r.system.records_file = i == 5 ? stderr : NULL;
        b->r.system.kernel = i == 6 ? NULL : b->r.system.kernel;
        sv_defer_open(&b->r);
        CHECK_INT_EQ(b->r.system.defer != NULL, i == 0);
        b->o.redact = NULL;
        close_bench(b);
    }
}
