/* States of threads, and what the critical path and the division of steps make of them, on a trace
 * that can be counted by hand. */
#include "formats/formats.h"
#include "tests/harness/test.h"
#include "tests/unit/text_trace.h"
#include "why/critical_path.h"
#include "why/steps.h"
#include "why/thread_states.h"

#include <string.h>

/* A trainer (10) whose step waits on a pipe for a loader (20) that reads a file from disk. Times in
 * milliseconds:
 *   trainer  runs 0-10, sleeps in read(pipe) 10-50, runnable 50-52, runs 52-60
 *   loader   sleeps 0-12 (woken by the trainer), runs 12-20, blocked on I/O 20-45 in read(/data/a),
 *            runs 45-60 */
static const char scene[] =
    "# stave text 1\nclock boottime\n"
    "track #1 process uuid=0x1 pid=10 name=\"train\"\n"
    "track #2 thread uuid=0x2 parent=#1 pid=10 tid=10\n"
    "track #3 custom uuid=0x3 parent=#2 name=\"state\"\n"
    "track #4 custom uuid=0x4 parent=#2 name=\"system calls\"\n"
    "track #5 process uuid=0x5 pid=20 name=\"loader\"\n"
    "track #6 thread uuid=0x6 parent=#5 pid=20 tid=20\n"
    "track #7 custom uuid=0x7 parent=#6 name=\"state\"\n"
    "track #8 custom uuid=0x8 parent=#6 name=\"system calls\"\n"
    "0.000000000 begin #2 \"step 1\" cat=\"step\"\n"
    "0.000000000 begin #3 \"Running\" cat=\"thread_state\" {cpu=0}\n"
    "0.000000000 begin #7 \"Sleeping\" cat=\"thread_state\"\n"
    "0.009000000 begin #4 \"read\" cat=\"syscall\" {fd=3 path=\"pipe:[7]\"}\n"
    "0.010000000 end #3\n"
    "0.010000000 begin #3 \"Sleeping\" cat=\"thread_state\"\n"
    "0.010000000 end #7\n"
    "0.010000000 begin #7 \"Runnable\" cat=\"thread_state\" "
    "{waker_tid=10 waker=\"train\"}\n"
    "0.012000000 end #7\n"
    "0.012000000 begin #7 \"Running\" cat=\"thread_state\" {cpu=1}\n"
    "0.018000000 begin #8 \"read\" cat=\"syscall\" {fd=4 path=\"/data/a\"}\n"
    "0.020000000 end #7\n"
    "0.020000000 begin #7 \"Blocked on I/O\" cat=\"thread_state\"\n"
    "0.045000000 end #7\n"
    "0.045000000 begin #7 \"Running\" cat=\"thread_state\" {cpu=1}\n"
    "0.046000000 end #8\n"
    "0.050000000 end #3\n"
    "0.050000000 begin #3 \"Runnable\" cat=\"thread_state\" "
    "{waker_tid=20 waker=\"loader\"}\n"
    "0.052000000 end #3\n"
    "0.052000000 begin #3 \"Running\" cat=\"thread_state\" {cpu=0}\n"
    "0.053000000 end #4\n"
    "0.060000000 end #2\n"
    "0.060000000 end #3\n"
    "0.060000000 begin #2 \"step 2\" cat=\"step\"\n"
    "0.070000000 end #2\n"
    "0.070000000 end #7\n";

struct made {
    struct sv_dict *dict;
    struct sv_report findings;
    struct sv_trace *trace;
    struct sv_thread_states states;
};

static struct made make(const char *text)
{
    struct made m = {.dict = sv_dict_new()};
    m.trace = text_trace(text, m.dict, &m.findings);
    sv_thread_states_init(&m.states, m.trace);
    return m;
}

static void unmake(struct made *m)
{
    sv_thread_states_fini(&m->states);
    sv_trace_free(m->trace);
    sv_report_fini(&m->findings);
    sv_dict_free(m->dict);
}

#define MS INT64_C(1000000)

TEST(a_window_of_states_has_no_gaps_and_knows_reasons)
{
    static const struct {
        int64_t to;
        enum sv_wait_state state;
        enum sv_wait_reason reason;
    } expected[] = {
        {9, SV_WAIT_STATE_RUNNING, SV_WAIT_NO_REASON},
        {10, SV_WAIT_STATE_RUNNING, SV_WAIT_NO_REASON},
        {50, SV_WAIT_STATE_SLEEPING, SV_WAIT_FOR_PIPE},
        {52, SV_WAIT_STATE_RUNNABLE, SV_WAIT_FOR_CPU},
        {53, SV_WAIT_STATE_RUNNING, SV_WAIT_NO_REASON},
        {60, SV_WAIT_STATE_RUNNING, SV_WAIT_NO_REASON},
        {65, SV_WAIT_NO_STATE, SV_WAIT_NO_REASON},
    };
    struct made m = make(scene);
    uint32_t thread = sv_thread_by_tid(&m.states, 0, 10);
    REQUIRE(thread != SV_NO_THREAD);
    struct sv_state_cursor c = sv_state_window(&m.states, thread, 0, 65 * MS);
    struct sv_state_piece p;
    int64_t at = 0;
    for (size_t i = 0; i < TEST_COUNT(expected); i++) {
        CONTEXT("piece %zu", i);
        REQUIRE(sv_state_next(&c, &p));
        CHECK_INT_EQ(p.from_ns, at);
        CHECK_INT_EQ(p.to_ns, expected[i].to * MS);
        CHECK_INT_EQ(p.state, expected[i].state);
        CHECK_INT_EQ(p.reason, expected[i].reason);
        at = p.to_ns;
    }
    CHECK(!sv_state_next(&c, &p));
    /* A window that begins within a wait. */
    c = sv_state_window(&m.states, thread, 30 * MS, 51 * MS);
    REQUIRE(sv_state_next(&c, &p));
    CHECK_INT_EQ(p.to_ns, 50 * MS);
    CHECK_INT_EQ(p.reason, SV_WAIT_FOR_PIPE);
    struct sv_waker w = sv_state_waker(&m.states, p.row);
    CHECK_INT_EQ(w.kind, SV_WAKER_THREAD);
    CHECK_INT_EQ(w.tid, 20);
    unmake(&m);
}

/* Without states the call itself may say who ended the wait (lib/inject/io). */
TEST(a_call_says_who_ended_its_wait)
{
    static const char calls[] =
        "# stave text 1\nclock boottime\n"
        "track #1 process uuid=0x1 pid=10 name=\"train\"\n"
        "track #2 thread uuid=0x2 parent=#1 pid=10 tid=10\n"
        "track #3 custom uuid=0x3 parent=#2 name=\"system calls\"\n"
        "track #4 process uuid=0x4 pid=20 name=\"loader\"\n"
        "track #5 thread uuid=0x5 parent=#4 pid=20 tid=20\n"
        "track #6 custom uuid=0x6 parent=#5 name=\"system calls\"\n"
        "0.000000000 begin #3 \"read\" cat=\"syscall\" {path=\"pipe:[7]\" waker_tid=20}\n"
        "0.001000000 begin #6 \"write\" cat=\"syscall\" {path=\"pipe:[7]\"}\n"
        "0.002000000 end #6\n"
        "0.002000000 end #3\n";
    struct made m = make(calls);
    struct sv_state_piece p;
    uint32_t thread = sv_thread_by_tid(&m.states, 0, 10);
    REQUIRE(thread != SV_NO_THREAD);
    struct sv_state_cursor c = sv_state_window(&m.states, thread, 0, MS);
    REQUIRE(sv_state_next(&c, &p));
    CHECK_INT_EQ(p.reason, SV_WAIT_FOR_PIPE);
    REQUIRE(p.call != SV_NO_ROW);
    struct sv_waker w = sv_call_waker(&m.states, p.call);
    CHECK_INT_EQ(w.kind, SV_WAKER_THREAD);
    CHECK_UINT_EQ(w.thread, sv_thread_by_tid(&m.states, 0, 20));
    unmake(&m);
}

TEST(a_path_follows_a_sleep_to_its_waker)
{
    static const struct {
        int64_t ts, dur, tid;
        enum sv_segment_kind kind;
        enum sv_wait_reason reason;
        enum sv_why_class class;
    } expected[] = {
        {0, 10, 10, SV_SEGMENT_RUN, 0, SV_WHY_COMPUTE},
        {10, 2, 20, SV_SEGMENT_WAIT, SV_WAIT_FOR_CPU, SV_WHY_PIPE},
        {12, 6, 20, SV_SEGMENT_RUN, 0, SV_WHY_PIPE},
        {18, 2, 20, SV_SEGMENT_RUN, 0, SV_WHY_PIPE},
        {20, 25, 20, SV_SEGMENT_WAIT, SV_WAIT_FOR_DISK, SV_WHY_PIPE},
        {45, 1, 20, SV_SEGMENT_RUN, 0, SV_WHY_PIPE},
        {46, 4, 20, SV_SEGMENT_RUN, 0, SV_WHY_PIPE},
        {50, 2, 10, SV_SEGMENT_WAIT, SV_WAIT_FOR_CPU, SV_WHY_CPU},
        {52, 8, 10, SV_SEGMENT_RUN, 0, SV_WHY_COMPUTE},
    };
    struct made m = make(scene);
    struct sv_path p;
    uint32_t trainer = sv_thread_by_tid(&m.states, 0, 10);
    sv_critical_path_of(&p, m.trace, m.states.threads[trainer].track, 0, 60 * MS, 0);
    CHECK_UINT_EQ(p.n, TEST_COUNT(expected));
    for (size_t i = 0; i < p.n && i < TEST_COUNT(expected); i++) {
        CONTEXT("segment %zu", i);
        CHECK_INT_EQ(p.segments[i].ts_ns, expected[i].ts * MS);
        CHECK_INT_EQ(p.segments[i].dur_ns, expected[i].dur * MS);
        CHECK_INT_EQ(p.segments[i].kind, expected[i].kind);
        CHECK_INT_EQ(p.segments[i].reason, expected[i].reason);
        CHECK_INT_EQ(m.dict->tracks[p.segments[i].track].tid, expected[i].tid);
        CHECK_INT_EQ(p.segments[i].class, expected[i].class);
    }
    sv_path_fini(&p);
    /* No more than asked for, and those that are nearest to the end. */
    sv_critical_path_of(&p, m.trace, m.states.threads[trainer].track, 0, 60 * MS, 3);
    CHECK_UINT_EQ(p.n, 3);
    CHECK_INT_EQ(p.segments[0].ts_ns, 46 * MS);
    sv_path_fini(&p);
    unmake(&m);
}

TEST(a_step_that_computes_without_slices_is_not_idle)
{
    struct made m = make(scene);
    struct sv_steps s;
    sv_steps_find(&s, m.trace, NULL);
    REQUIRE(s.n == 2);
    sv_steps_divide(&s, m.trace);
    CHECK_INT_EQ(s.steps[0].work_ns[SV_WORK_OTHER], 18 * MS);
    CHECK_INT_EQ(s.steps[0].work_ns[SV_WORK_IDLE], 42 * MS);
    CHECK_INT_EQ(s.steps[1].work_ns[SV_WORK_UNTRACED], 10 * MS); /* no state is recorded there */
    sv_steps_fini(&s);
    unmake(&m);
}

/* A thread with states that waits for a device: what that did, and the class stays. */
TEST(a_path_goes_into_the_device_that_a_thread_waits_for)
{
    static const struct {
        int64_t ts, dur;
        enum sv_segment_kind kind;
        const char *name;
    } expected[] = {
        {0, 1, SV_SEGMENT_RUN, "cudaStreamSynchronize"},
        {1, 1, SV_SEGMENT_IDLE, NULL},
        {2, 6, SV_SEGMENT_RUN, "gemm"},
        {8, 2, SV_SEGMENT_RUN, "cudaStreamSynchronize"},
    };
    struct made m =
        make("# stave text 1\nclock boottime\n"
             "track #1 process uuid=0x1 pid=10\n"
             "track #2 thread uuid=0x2 parent=#1 pid=10 tid=10\n"
             "track #3 custom uuid=0x3 parent=#2 name=\"state\"\n"
             "track #4 process uuid=0x4 pid=0\n"
             "track #5 thread uuid=0x5 parent=#4 pid=0 tid=7\n"
             "0.000000000 slice #2 \"cudaStreamSynchronize\" cat=\"cuda_runtime\" dur=0.010000000\n"
             "0.000000000 slice #3 \"Running\" cat=\"thread_state\" dur=0.001000000\n"
             "0.001000000 slice #3 \"Sleeping\" cat=\"thread_state\" dur=0.008000000\n"
             "0.009000000 slice #3 \"Running\" cat=\"thread_state\" dur=0.001000000\n"
             "0.002000000 slice #5 \"gemm\" cat=\"kernel\" dur=0.006000000\n");
    struct sv_path p;
    uint32_t thread = sv_thread_by_tid(&m.states, 0, 10);
    sv_critical_path_of(&p, m.trace, m.states.threads[thread].track, 0, 10 * MS, 0);
    CHECK_UINT_EQ(p.n, TEST_COUNT(expected));
    for (size_t i = 0; i < p.n && i < TEST_COUNT(expected); i++) {
        CONTEXT("segment %zu", i);
        const struct sv_segment *s = &p.segments[i];
        CHECK_INT_EQ(s->ts_ns, expected[i].ts * MS);
        CHECK_INT_EQ(s->dur_ns, expected[i].dur * MS);
        CHECK_INT_EQ(s->kind, expected[i].kind);
        CHECK_INT_EQ(s->class, SV_WHY_GPU);
        if (expected[i].name)
            CHECK_STR_EQ(sv_dict_text(m.dict, m.trace->slices.name[s->row]).bytes,
                         expected[i].name);
    }
    sv_path_fini(&p);
    unmake(&m);
}

/* A state that was lost leaves a gap: the path goes on behind it. */
TEST(a_path_crosses_a_gap_between_states)
{
    struct made m = make("# stave text 1\nclock boottime\n"
                         "track #1 process uuid=0x1 pid=10\n"
                         "track #2 thread uuid=0x2 parent=#1 pid=10 tid=10\n"
                         "track #3 custom uuid=0x3 parent=#2 name=\"state\"\n"
                         "0.000000000 slice #3 \"Running\" cat=\"thread_state\" dur=0.010000000\n"
                         "0.011000000 slice #3 \"Running\" cat=\"thread_state\" dur=0.009000000\n");
    struct sv_path p;
    sv_critical_path_of(&p, m.trace, m.states.threads[0].track, 0, 20 * MS, 0);
    REQUIRE(p.n == 3);
    CHECK_INT_EQ(p.segments[0].kind, SV_SEGMENT_RUN);
    CHECK_INT_EQ(p.segments[0].dur_ns, 10 * MS);
    CHECK_INT_EQ(p.segments[1].kind, SV_SEGMENT_IDLE);
    CHECK_INT_EQ(p.segments[1].dur_ns, MS);
    CHECK_INT_EQ(p.segments[2].dur_ns, 9 * MS);
    sv_path_fini(&p);
    unmake(&m);
}
