/* Whom explain names: who had what was waited for, who only passes on, and what the one that is
 * named does itself. Runs of 100 ms, and a loop that nobody marked. Real programs are
 * judged by tests/why. */
#include "explain/explain.h"
#include "tests/unit/text_trace.h"

#include <stdio.h>
#include <string.h>

/* Process K with its main thread, and the rows below that; thread `id` of process `pid`. */
#define ROWS(k, pid, id, name)                                                                 \
    "track #" k "2 thread uuid=0x" k "2 parent=#" pid "1 pid=" pid "0 tid=" id " name=\"" name \
    "\"\n"                                                                                     \
    "track #" k "3 custom uuid=0x" k "3 parent=#" k "2 name=\"state\"\n"                       \
    "track #" k "4 custom uuid=0x" k "4 parent=#" k "2 name=\"system calls\"\n"                \
    "track #" k "5 custom uuid=0x" k "5 parent=#" k "2 name=\"off CPU\"\n"                     \
    "track #" k "6 custom uuid=0x" k "6 parent=#" k "2 name=\"io_uring\"\n"
#define PROCESS(k, name) \
    "track #" k "1 process uuid=0x" k "1 pid=" k "0 name=\"" name "\"\n" ROWS(k, k, k "0", name)
#define STATE(k, at, dur, name, args) \
    "0." at "000 slice #" k "3 \"" name "\" cat=\"thread_state\" dur=0." dur "000 {" args "}\n"
#define CALL(k, at, dur, name, args) \
    "0." at "000 slice #" k "4 \"" name "\" cat=\"syscall\" dur=0." dur "000 {" args "}\n"
#define WAIT(k, at, dur, name, args, stack)                                                      \
    "0." at "000 instant #" k "5 \"" name "\" cat=\"offcpu_sample\" {dur=" dur " reason=\"" name \
    "\" " args " @stack[" stack "]}\n"
#define WOKEN_BY(tid) \
    STATE("1", "099990", "000010", "Runnable", "waker_tid=" tid " waker=\"other\"")

static void explain(const char *body, struct sv_explanation *e)
{
    static char text[20000];
    struct sv_report findings;
    struct sv_dict *dict = sv_dict_new();
    size_t n = (size_t)snprintf(text, sizeof text, "# stave text 1\nclock boottime\n%s", body);
    REQUIRE(n < sizeof text);
    struct sv_trace *t = text_trace(text, dict, &findings);
    sv_explain(e, t, "x", NULL);
    sv_trace_free(t);
    sv_report_fini(&findings);
    sv_dict_free(dict);
}

static int percent(const struct sv_answer *a)
{
    return (int)(a->share * 100 + 0.5);
}

static void check_first(const struct sv_explanation *e, enum sv_explain_cause cause, int share,
                        const char *name)
{
    REQUIRE(e->n > 0);
    CHECK_INT_EQ(e->findings[0].cause, cause);
    CHECK_INT_EQ(percent(&e->findings[0]), share);
    CHECK_STR_EQ(e->findings[0].culprit.name, name);
}

#define SAYS(e, words) CHECK(strstr((e)->findings[0].sentence, words))

/* A poll with a time limit that is asked for again waits for whoever ends the last one, unless the
 * thread does something in between. */
#define POLLED(ran, at, dur)                                                     \
    PROCESS("1", "train")                                                        \
    PROCESS("2", "feeder")                                                       \
    STATE("1", "000000", "020000", "Running", "")                                \
    CALL("1", "000100", "000001", "connect", "peer=\"10.0.0.1:80\" peer_pid=20") \
    CALL("1", "020000", "020000", "poll", "ret=0")                               \
    STATE("1", "020000", "020000", "Sleeping", "reason=\"poll\"")                \
    STATE("1", "040000", "000010", "Runnable", "interrupt=1 waker=\"timer\"")    \
    STATE("1", "040010", ran, "Running", "")                                     \
    CALL("1", at, dur, "poll", "ret=1")                                          \
    STATE("1", at, dur, "Sleeping", "reason=\"poll\"")                           \
    WOKEN_BY("20")                                                               \
    STATE("2", "000000", "099900", "Sleeping", "reason=\"sleep\"")               \
    STATE("2", "099900", "000100", "Running", "")

TEST(a_time_limit_is_asked_for_again)
{
    struct sv_explanation e;
    explain(POLLED("000010", "040020", "059970"), &e);
    check_first(&e, SV_CAUSE_PEER, 80, "feeder");
    SAYS(&e, "which sleeps");
    CHECK(e.findings[0].gain > 0.75); /* all of it, not only the last wait */
    sv_explanation_fini(&e);
    explain(POLLED("000200", "040210", "059780"), &e);
    check_first(&e, SV_CAUSE_PEER, 60, "feeder");
    REQUIRE(e.n == 2);
    CHECK_INT_EQ(e.findings[1].cause, SV_CAUSE_SLEEP);
    sv_explanation_fini(&e);
}

/* The one that is named is told by its own function, the one it waits for by that one's. */
TEST(a_holder_waits_in_turn)
{
    struct sv_explanation e;
    explain(
        PROCESS("1", "train") ROWS("3", "1", "11", "keeper") PROCESS("2", "feeder") STATE(
            "1", "000000", "020000", "Running", "") STATE("1", "020000", "079990", "Sleeping",
                                                          "reason=\"lock\"")
            WAIT("1", "020000", "79990000", "lock", "lock=64 waker_tid=11 waker=\"keeper\"",
                 "\"main\" \"update\" \"pthread_mutex_lock\"") WOKEN_BY("11")
                CALL("3", "010000", "089980", "recvfrom", "fd=3 path=\"socket:[7]\"")
                    STATE("3", "010000", "089980", "Sleeping", "reason=\"socket\"") WAIT(
                        "3", "010000", "89980000", "socket", "waker_tid=20 waker=\"feeder\"",
                        "\"main\" \"refill\" \"recv\"")
                        STATE("3", "099980", "000010", "Runnable", "waker_tid=20 waker=\"feeder\"")
                            STATE("3", "099990", "000010", "Running", "")
                                STATE("2", "000000", "099970", "Sleeping", "reason=\"sleep\"")
                                    WAIT("2", "000000", "99970000", "sleep",
                                         "interrupt=1 waker=\"timer\"",
                                         "\"main\" \"answer_late\" \"msleep\"")
                                        STATE("2", "099970", "000030", "Running", ""),
        &e);
    check_first(&e, SV_CAUSE_LOCK, 80, "keeper");
    CHECK_STR_EQ(e.findings[0].culprit.function, "refill");
    SAYS(&e, "while it waits in turn for feeder (pid 20), which sleeps in answer_late");
    sv_explanation_fini(&e);
}

/* A shell that waits for its child only passes on. */
TEST(who_passes_on_is_not_the_culprit)
{
    struct sv_explanation e;
    explain(PROCESS("1", "train") PROCESS("2", "sh") PROCESS("3", "unpack")
                STATE("1", "000000", "020000", "Running", "")
                    CALL("1", "020000", "079990", "read", "fd=3 path=\"pipe:[7]\"")
                        STATE("1", "020000", "079990", "Sleeping", "reason=\"pipe\"") WOKEN_BY("20")
                            CALL("2", "000000", "099980", "wait4", "ret=30")
                                STATE("2", "000000", "099970", "Sleeping", "reason=\"child\"")
                                    STATE("2", "099970", "000010", "Runnable",
                                          "waker_tid=30 waker=\"unpack\"")
                                        STATE("2", "099980", "000020", "Running", "")
                                            STATE("3", "000000", "099970", "Running", ""),
            &e);
    check_first(&e, SV_CAUSE_PIPE, 80, "unpack");
    CHECK_INT_EQ(e.findings[0].culprit.pid, 30);
    sv_explanation_fini(&e);
}

/* Listing folders makes no data worker; reading does. */
#define FORKED(calls)                                                                              \
    PROCESS("1", "train")                                                                          \
    PROCESS("2", "train")                                                                          \
    "0.000000000 instant #14 \"fork\" cat=\"process\" {child=20}\n" STATE("1", "000000", "020000", \
                                                                          "Running", "")           \
        CALL("1", "020000", "079990", "read", "fd=3 path=\"pipe:[7]\"")                            \
            STATE("1", "020000", "079990", "Sleeping", "reason=\"pipe\"") WOKEN_BY("20")           \
                calls STATE("2", "000000", "100000", "Running", "")
#define USES(name) CALL("2", "001000", "000001", name, "fd=4 path=\"/data/a\" bytes=9")

TEST(a_worker_reads_data)
{
    struct sv_explanation e;
    explain(FORKED(USES("openat") USES("getdents64") USES("getdents64") USES("close")), &e);
    check_first(&e, SV_CAUSE_PIPE, 80, "train");
    sv_explanation_fini(&e);
    explain(FORKED(USES("read") USES("read") USES("read")), &e);
    REQUIRE(e.n > 0);
    CHECK(e.findings[0].cause == SV_CAUSE_FEW_LOADERS || e.findings[0].cause == SV_CAUSE_DATA);
    sv_explanation_fini(&e);
}

/* A server that nobody asks waits for nobody. */
#define SERVES(call, reason)                                        \
    PROCESS("1", "serve")                                           \
    PROCESS("2", "client")                                          \
    STATE("1", "000000", "020000", "Running", "")                   \
    CALL("1", "020000", "079990", call, "fd=3 path=\"socket:[7]\"") \
    STATE("1", "020000", "079990", "Sleeping", reason)              \
    WOKEN_BY("20") STATE("2", "000000", "100000", "Running", "")

TEST(a_server_without_requests_is_idle)
{
    struct sv_explanation e;
    explain(SERVES("accept4", "reason=\"socket\""), &e);
    CHECK_INT_EQ(e.n, 0);
    sv_explanation_fini(&e);
    explain(SERVES("recvfrom", "reason=\"socket\""), &e);
    check_first(&e, SV_CAUSE_PEER, 80, "client");
    sv_explanation_fini(&e);
}

/* A ring has the file of its request; several files have their folder. */
TEST(files_of_rings_and_folders)
{
    struct sv_explanation e;
    explain(
        PROCESS("1", "train") STATE("1", "000000", "020000", "Running", "") CALL(
            "1", "020000", "080000", "io_uring_enter", "fd=3 path=\"anon_inode:[io_uring]\"")
            STATE("1", "020000", "080000", "Blocked on I/O",
                  "") "0.020100000 slice #16 \"io_uring_read\" cat=\"io_uring\" dur=0.079000000 "
                      "{path=\"/data/table\"}\n",
        &e);
    REQUIRE(e.n > 0);
    CHECK_STR_EQ(e.findings[0].culprit.path, "/data/table");
    sv_explanation_fini(&e);
#define SYNCED(at, name)                                             \
    CALL("1", at, "015900", "fsync", "fd=3 path=\"/save/" name "\"") \
    STATE("1", at, "015900", "Blocked on I/O", "")
    explain(PROCESS("1", "train") STATE("1", "000000", "020000", "Running", "")
                SYNCED("020000", "a") SYNCED("036000", "b") SYNCED("052000", "c")
                    SYNCED("068000", "d") SYNCED("084000", "e"),
            &e);
    REQUIRE(e.n > 0);
    CHECK_STR_EQ(e.findings[0].culprit.path, "/save/");
    SAYS(&e, ", in /save/.");
    sv_explanation_fini(&e);
}

/* Who puts something into a full queue does not wait for data. */
TEST(a_full_queue_is_emptied_by_somebody)
{
    struct sv_explanation e;
    explain(
        PROCESS("1", "train") PROCESS("2", "writer") STATE("1", "000000", "020000", "Running", "")
            STATE("1", "020000", "079990", "Sleeping", "reason=\"lock\"")
                WAIT("1", "020000", "79990000", "lock", "lock=64 waker_tid=20 waker=\"writer\"",
                     "\"main\" \"Queue.put (/usr/lib/python3.11/multiprocessing/queues.py:89)\"")
                    WOKEN_BY("20") STATE("2", "000000", "100000", "Running", ""),
        &e);
    check_first(&e, SV_CAUSE_DATA, 80, "writer");
    SAYS(&e, "for room in a queue that is full, until writer (pid 20) takes something out");
    sv_explanation_fini(&e);
}

/* What comes before a loop is no turn of it. */
TEST(the_first_turn_may_be_the_start)
{
    static char text[20000];
    struct sv_explanation e;
    size_t n = (size_t)snprintf(
        text, sizeof text, "%s",
        PROCESS("1", "train") STATE("1", "000000", "990000", "Running", "")
            CALL("1", "001000", "000001", "epoll_wait", "fd=3 path=\"anon_inode:[eventpoll]\""));
    for (int i = 0; i < 30; i++)
        n += (size_t)snprintf(
            text + n, sizeof text - n,
            CALL("1", "%d", "000001", "epoll_wait", "fd=3 path=\"anon_inode:[eventpoll]\""),
            200000 + i * 26000);
    explain(text, &e);
    CHECK_INT_EQ(e.n_units, 30);
    sv_explanation_fini(&e);
}
