/* The report on waits, on traces that can be counted by hand. */
#include "formats/formats.h"
#include "tests/harness/test.h"
#include "tests/unit/text_trace.h"
#include "why/wait.h"

#include <stdio.h>
#include <string.h>

#define MS INT64_C(1000000)

struct made {
    struct sv_dict *dict;
    struct sv_report findings;
    struct sv_trace *trace;
    struct sv_wait_report r;
};

static struct made make(const char *body)
{
    static char text[16384];
    struct made m = {.dict = sv_dict_new()};
    snprintf(text, sizeof text, "# stave text 1\nclock boottime\n%s", body);
    m.trace = text_trace(text, m.dict, &m.findings);
    sv_wait_report_make(&m.r, m.trace, &(struct sv_wait_options){.step = -1, .n_waits = 4});
    return m;
}

static void unmake(struct made *m)
{
    sv_wait_report_fini(&m->r);
    sv_trace_free(m->trace);
    sv_report_fini(&m->findings);
    sv_dict_free(m->dict);
}

static void check_sums(const struct made *m)
{
    for (size_t i = 0; i < m->r.n_spans; i++) {
        int64_t sum = 0;
        CONTEXT("span %zu", i);
        for (int k = 0; k < SV_N_WAIT_CLASSES; k++)
            sum += m->r.spans[i].class_ns[k];
        CHECK_INT_EQ(sum, m->r.spans[i].dur_ns);
    }
}

#define TRACKS                                                   \
    "track #1 process uuid=0x1 pid=10 name=\"train\"\n"          \
    "track #2 thread uuid=0x2 parent=#1 pid=10 tid=10\n"         \
    "track #3 custom uuid=0x3 parent=#2 name=\"state\"\n"        \
    "track #4 custom uuid=0x4 parent=#2 name=\"system calls\"\n" \
    "track #5 process uuid=0x5 pid=20 name=\"train\"\n"          \
    "track #6 thread uuid=0x6 parent=#5 pid=20 tid=20\n"         \
    "track #7 custom uuid=0x7 parent=#6 name=\"state\"\n"        \
    "track #8 custom uuid=0x8 parent=#6 name=\"system calls\"\n" \
    "track #9 custom uuid=0x9 name=\"Disks\"\n"                  \
    "track #10 custom uuid=0xa parent=#9 name=\"sda\"\n"         \
    "0.000000000 instant #4 \"fork\" cat=\"process\" {child=20}\n"
#define STATE(at, track, name, args) \
    at " end #" track "\n" at " begin #" track " \"" name "\" cat=\"thread_state\" " args "\n"

/* Step 1 computes until 10, waits in read(pipe) until 50 for a loader that reads /data/a from disk
 * from 12 to 45. Between the steps it waits for a CPU until 64. */
static const char loader[] = TRACKS
    "0.000000000 begin #2 \"step 1\"\n"
    "0.000000000 begin #3 \"Running\" cat=\"thread_state\"\n"
    "0.001000000 begin #7 \"Sleeping\" cat=\"thread_state\"\n"
    "0.002000000 slice #8 \"openat\" cat=\"syscall\" dur=0.000000100 {path=\"/data/b\"}\n"
    "0.002001000 slice #8 \"read\" cat=\"syscall\" dur=0.000000100 {path=\"/data/b\"}\n"
    "0.002002000 slice #8 \"read\" cat=\"syscall\" dur=0.000000100 {path=\"/data/b\"}\n"
    "0.009000000 begin #4 \"read\" cat=\"syscall\" {fd=3 path=\"pipe:[7]\"}\n" STATE(
        "0.010000000", "3", "Sleeping", "")
        STATE("0.012000000", "7", "Running",
              "") "0.012000000 begin #8 \"read\" cat=\"syscall\" {fd=4 path=\"/data/a\" "
                  "bytes=4096}\n" STATE("0.013000000", "7", "Blocked on I/O",
                                        "") "0.013000000 begin #10 \"read\" cat=\"block\" "
                                            "{device=\"sda\" sector=8 bytes=4096 pid=20}\n"
                                            "0.044000000 end #10\n" STATE(
                                                "0.045000000", "7", "Running",
                                                "") "0.045000000 end #8\n" STATE("0.050000000", "3",
                                                                                 "Runnable",
                                                                                 "{waker_tid=20 "
                                                                                 "waker=\"train\"}")
                                                STATE("0.050000000", "3", "Running",
                                                      "") "0.051000000 end #4\n"
                                                          "0.060000000 end #2\n" STATE(
                                                              "0.060000000", "3", "Preempted", "")
                                                              STATE("0.064000000", "3", "Running",
                                                                    "") "0.064000000 begin #2 "
                                                                        "\"step 2\"\n"
                                                                        "0.070000000 end #2\n"
                                                                        "0.070000000 end #3\n"
                                                                        "0.070000000 end #7\n";

TEST(a_step_is_divided_exactly_and_its_wait_explained)
{
    struct made m = make(loader);
    check_sums(&m);
    REQUIRE(m.r.n_spans == 4);
    CHECK_INT_EQ(m.r.spans[0].kind, SV_UNIT_IS_STEP);
    CHECK_INT_EQ(m.r.spans[0].class_ns[SV_TIME_COMPUTE], 20 * MS);
    CHECK_INT_EQ(m.r.spans[0].class_ns[SV_TIME_DATA], 40 * MS);
    CHECK_INT_EQ(m.r.spans[1].kind, SV_UNIT_IS_BETWEEN);
    CHECK_INT_EQ(m.r.spans[1].class_ns[SV_TIME_CPU], 4 * MS);
    CHECK_INT_EQ(m.r.spans[3].kind, SV_UNIT_IS_LOADER);
    /* the whole call, running and blocked */
    CHECK_INT_EQ(m.r.spans[3].class_ns[SV_TIME_DISK], 33 * MS + 300);
    CHECK_INT_EQ(m.r.total.dur_ns, 70 * MS);
    REQUIRE(m.r.n_waits == 2);
    const struct sv_wait *w = &m.r.waits[0];
    CHECK_INT_EQ(w->dur_ns, 40 * MS);
    CHECK_INT_EQ(w->class, SV_TIME_DATA);
    CHECK_UINT_EQ(w->cause.path.len, 7);
    CHECK_MEM_EQ(w->cause.path.bytes, "/data/a", 7);
    CHECK_INT_EQ(w->cause.ns, 33 * MS);
    CHECK_INT_EQ(m.dict->tracks[w->cause.track].tid, 20);
    REQUIRE(w->cause.block != SV_NO_ROW);
    CHECK_INT_EQ(m.trace->slices.dur_ns[w->cause.block], 31 * MS);
    unmake(&m);
}

/* A reason that the trace states is taken as it is; a thread of the same process that was active is
 * a lock's holder. */
TEST(a_stated_reason_and_a_waker_of_the_own_process)
{
    struct made m =
        make(TRACKS "track #11 thread uuid=0xb parent=#1 pid=10 tid=11\n"
                    "track #12 custom uuid=0xc parent=#11 name=\"state\"\n"
                    "0.000000000 begin #3 \"Running\" cat=\"thread_state\"\n"
                    "0.000000000 begin #12 \"Running\" cat=\"thread_state\"\n" STATE(
                        "0.010000000", "3", "Sleeping", "{reason=\"gil\"}")
                        STATE("0.015000000", "3", "Runnable", "{waker_tid=11 waker=\"t\"}")
                            STATE("0.016000000", "3", "Sleeping", "")
                                STATE("0.020000000", "3", "Runnable", "{waker_tid=11 waker=\"t\"}")
                                    STATE("0.022000000", "3", "Sleeping", "")
                                        STATE("0.030000000", "3", "Runnable",
                                              "{interrupt=1}") "0.030000000 end #3\n"
                                                               "0.040000000 end #12\n");
    check_sums(&m);
    const struct sv_wait_span *s = &m.r.spans[0];
    CHECK_INT_EQ(s->kind, SV_UNIT_IS_THREAD);
    CHECK_INT_EQ(s->class_ns[SV_TIME_LOCK], 9 * MS);
    CHECK_INT_EQ(s->gil_ns, 5 * MS);
    CHECK_INT_EQ(s->class_ns[SV_TIME_SLEEP], 8 * MS);
    CHECK_INT_EQ(s->class_ns[SV_TIME_CPU], 3 * MS);
    unmake(&m);
}

#define SECOND_THREAD                                       \
    "track #11 thread uuid=0xb parent=#1 pid=10 tid=11\n"   \
    "track #12 custom uuid=0xc parent=#11 name=\"state\"\n" \
    "track #13 custom uuid=0xd parent=#11 name=\"system calls\"\n"

/* A lock stays a lock whatever its holder does, and what that one did is in the ledger. */
TEST(a_lock_whose_holder_sleeps_is_a_lock)
{
    struct made m =
        make(TRACKS SECOND_THREAD
             "0.000000000 begin #3 \"Running\" cat=\"thread_state\"\n"
             "0.000000000 begin #12 \"Running\" cat=\"thread_state\"\n" STATE(
                 "0.010000000", "3", "Sleeping", "{reason=\"lock\"}")
                 STATE("0.011000000", "12", "Sleeping", "{reason=\"sleep\"}")
                     STATE("0.039000000", "12", "Running", "")
                         STATE("0.040000000", "3", "Runnable", "{waker_tid=11 waker=\"t\"}")
                             STATE("0.040000000", "3", "Running", "") "0.050000000 end #3\n"
                                                                      "0.050000000 end #12\n");
    const struct sv_ledger *l = &m.r.ledger;
    int64_t asleep = 0;
    check_sums(&m);
    CHECK_INT_EQ(m.r.total.class_ns[SV_TIME_LOCK], 30 * MS);
    CHECK_INT_EQ(m.r.total.class_ns[SV_TIME_SLEEP], 0);
    for (size_t i = l->units[0].first; i < l->units[0].end; i++) {
        const struct sv_why_piece *p = &l->pieces[i];
        if (p->class != SV_WHY_LOCK)
            continue;
        CHECK_INT_EQ(m.dict->tracks[l->states.threads[p->thread].track].tid, 11);
        asleep += p->doing == SV_DOING_SLEEPS ? p->dur_ns : 0;
    }
    CHECK_INT_EQ(asleep, 28 * MS);
    unmake(&m);
}

/* Two threads that wait for each other are no way without an end. */
TEST(waits_in_a_circle_end)
{
    struct made m =
        make(TRACKS SECOND_THREAD
             "0.000000000 begin #3 \"Running\" cat=\"thread_state\"\n"
             "0.000000000 begin #12 \"Running\" cat=\"thread_state\"\n" STATE(
                 "0.010000000", "3", "Sleeping", "{reason=\"lock\"}")
                 STATE("0.012000000", "12", "Sleeping", "{reason=\"lock\"}")
                     STATE("0.030000000", "12", "Runnable", "{waker_tid=10 waker=\"m\"}")
                         STATE("0.030000000", "12", "Running", "")
                             STATE("0.040000000", "3", "Runnable", "{waker_tid=11 waker=\"t\"}")
                                 STATE("0.040000000", "3", "Running", "") "0.050000000 end #3\n"
                                                                          "0.050000000 end #12\n");
    check_sums(&m);
    CHECK_INT_EQ(m.r.total.class_ns[SV_TIME_LOCK], 30 * MS);
    unmake(&m);
}

/* A call on a file is the file's time, running, blocked and runnable; preempted is the CPU's. */
TEST(a_call_on_a_file_counts_as_a_whole)
{
    struct made m = make(
        TRACKS "0.000000000 begin #3 \"Running\" cat=\"thread_state\"\n"
               "0.010000000 begin #4 \"read\" cat=\"syscall\" {path=\"/data/a\"}\n" STATE(
                   "0.012000000", "3", "Blocked on I/O", "")
                   STATE("0.020000000", "3", "Runnable", "{interrupt=1 waker=\"block\"}")
                       STATE("0.021000000", "3", "Running", "")
                           STATE("0.023000000", "3", "Preempted", "")
                               STATE("0.026000000", "3", "Running", "") "0.030000000 end #4\n"
                                                                        "0.050000000 end #3\n");
    check_sums(&m);
    CHECK_INT_EQ(m.r.total.class_ns[SV_TIME_DISK], 17 * MS);
    CHECK_INT_EQ(m.r.total.class_ns[SV_TIME_CPU], 3 * MS);
    unmake(&m);
}

/* Ten turns with the same call are units; what was before them is not. */
TEST(turns_that_nobody_marked)
{
    static char text[12000];
    size_t n = (size_t)snprintf(text, sizeof text, "%s",
                                TRACKS "0.000000000 begin #3 \"Running\" cat=\"thread_state\"\n");
    for (int i = 0; i < 20; i++)
        n += (size_t)snprintf(text + n, sizeof text - n,
                              "0.%03d000000 slice #4 \"openat\" cat=\"syscall\" dur=0.000100000 "
                              "{path=\"/data/%d\"}\n",
                              100 + 20 * i, i);
    snprintf(text + n, sizeof text - n, "0.510000000 end #3\n");
    struct made m = make(text);
    check_sums(&m);
    CHECK_INT_EQ(m.r.kind, SV_UNIT_IS_TURN);
    CHECK_UINT_EQ(m.r.ledger.n_counted, 20);
    CHECK(m.r.ledger.is_found);
    unmake(&m);
}

/* Without states: calls that can wait, and slices. */
TEST(without_states_calls_are_the_waits)
{
    struct made m = make(TRACKS "0.001000000 begin #4 \"read\" cat=\"syscall\" {path=\"/data/a\"}\n"
                                "0.005000000 end #4\n"
                                "0.006000000 begin #4 \"futex\" cat=\"syscall\"\n"
                                "0.009000000 end #4\n");
    check_sums(&m);
    CHECK(m.r.is_assumed);
    CHECK_INT_EQ(m.r.spans[0].class_ns[SV_TIME_DISK], 4 * MS);
    CHECK_INT_EQ(m.r.spans[0].class_ns[SV_TIME_LOCK], 3 * MS);
    CHECK_INT_EQ(m.r.spans[0].class_ns[SV_TIME_COMPUTE], 2 * MS);
    unmake(&m);
}

/* A mapped file: the thread is in no call, and blocks right after a page fault. */
TEST(a_mapped_file_is_behind_a_wait_for_the_disk)
{
    struct made m =
        make(TRACKS "track #11 custom uuid=0xb parent=#2 name=\"page faults\"\n"
                    "0.000000000 begin #3 \"Running\" cat=\"thread_state\"\n"
                    "0.009990000 instant #11 \"file\" cat=\"fault\" {path=\"/data/m\"}\n" STATE(
                        "0.010000000", "3", "Blocked on I/O", "")
                        STATE("0.030000000", "3", "Running", "")
                            STATE("0.040000000", "3", "Blocked on I/O", "")
                                STATE("0.045000000", "3", "Running", "") "0.050000000 end "
                                                                         "#3\n");
    check_sums(&m);
    CHECK_INT_EQ(m.r.spans[0].class_ns[SV_TIME_DISK], 25 * MS);
    CHECK_INT_EQ(m.r.spans[0].fault_ns, 20 * MS); /* no fault was near the second one */
    REQUIRE(m.r.n_waits == 2);
    CHECK_UINT_EQ(m.r.waits[0].cause.path.len, 7);
    CHECK_MEM_EQ(m.r.waits[0].cause.path.bytes, "/data/m", 7);
    unmake(&m);
}
