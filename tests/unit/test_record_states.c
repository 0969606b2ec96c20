/* States of threads over rings made by hand: each change ends the state before it, wake-ups that
 * come late change nothing. */
#include "tests/harness/test.h"
#include "tests/unit/kbench.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

static void put(struct kbench *k, unsigned cpu, uint64_t ts, uint32_t tid, unsigned state)
{
    struct sv_wire_head h = {.kind = SV_WIRE_STATE,
                             .flags = (uint16_t)state,
                             .tgid = 10,
                             .tid = tid,
                             .what = cpu,
                             .ts_ns = ts};
    kbench_put(k, cpu, &h, sizeof h, NULL, 0, 0);
}

TEST(a_state_ends_the_one_before_it)
{
    struct kbench *k = kbench_new(NULL);
    put(k, 0, 100, 11, SV_STATE_RUNNABLE);
    put(k, 1, 120, 11, SV_STATE_RUNNING);
    put(k, 1, 200, 11, SV_STATE_IO);
    put(k, 0, 300, 11, SV_STATE_RUNNABLE);
    put(k, 0, 310, 11, SV_STATE_RUNNING);
    put(k, 0, 400, 11, SV_STATE_DEAD);
    kbench_round(k, 1000);
    CHECK_STR_EQ(k->text, "100 begin /state Runnable\n"
                          "120 end /state \n"
                          "120 begin /state Running cpu=1\n"
                          "200 end /state \n"
                          "200 begin /state Blocked on I/O io_wait=1\n"
                          "300 end /state \n"
                          "300 begin /state Runnable\n"
                          "310 end /state \n"
                          "310 begin /state Running cpu=0\n"
                          "400 end /state \n");
    kbench_free(k);
}

TEST(a_wake_up_of_a_thread_that_runs_or_was_preempted_changes_nothing)
{
    struct kbench *k = kbench_new(NULL);
    put(k, 0, 100, 11, SV_STATE_RUNNING);
    put(k, 0, 110, 11, SV_STATE_RUNNABLE);
    put(k, 0, 120, 11, SV_STATE_PREEMPTED);
    put(k, 0, 130, 11, SV_STATE_RUNNABLE);
    CHECK_UINT_EQ(kbench_round(k, 1000), 3);
    CHECK(strstr(k->text, "120 begin /state Preempted"));
    CHECK(!strstr(k->text, "Runnable"));
    kbench_free(k);
}

TEST(states_that_do_not_exist_are_left_out)
{
    struct kbench *k = kbench_new(NULL);
    put(k, 0, 100, 11, 0);
    put(k, 0, 110, 11, SV_STATES);
    put(k, 0, 120, 11, 65535);
    CHECK_UINT_EQ(kbench_round(k, 1000), 0);
    kbench_free(k);
}

TEST(a_wait_whose_end_was_not_seen_ends_with_the_next_one)
{
    struct kbench *k = kbench_new(NULL);
    put(k, 0, 100, 11, SV_STATE_SLEEPING);
    put(k, 0, 150, 11, SV_STATE_SLEEPING);
    put(k, 0, 200, 11, SV_STATE_RUNNING);
    put(k, 0, 210, 11, SV_STATE_RUNNING);
    kbench_round(k, 1000);
    CHECK_STR_EQ(k->text, "100 begin /state Sleeping\n"
                          "150 end /state \n"
                          "150 begin /state Sleeping\n"
                          "200 end /state \n"
                          "200 begin /state Running cpu=0\n");
    kbench_free(k);
}

/* A switch that the kernel did not show. */
TEST(who_has_made_a_call_runs)
{
    struct kbench *k = kbench_new(NULL);
    struct sv_wire_call c = kbench_call(SYS_fsync, 200, 250, 3, 0);
    put(k, 0, 100, 11, SV_STATE_PREEMPTED);
    kbench_put(k, 0, &c, sizeof c, NULL, 0, 0);
    put(k, 0, 300, 11, SV_STATE_SLEEPING);
    c = kbench_call(SYS_fsync, 290, 400, 3, 0); /* it waited in it */
    kbench_put(k, 0, &c, sizeof c, NULL, 0, 0);
    put(k, 0, 500, 11, SV_STATE_PREEMPTED);
    c = kbench_call(SYS_fsync, 420, 500, 3, 0); /* it was over when the thread was preempted */
    kbench_put(k, 0, &c, sizeof c, NULL, 0, 0);
    c.head.flags = SV_WIRE_UNFINISHED;
    c.start_ns = 490;
    c.head.ts_ns = 600;
    kbench_put(k, 0, &c, sizeof c, NULL, 0, 0);
    kbench_round(k, 1000);
    CHECK(strstr(k->text, "100 begin /state Preempted\n"
                          "200 end /state  inferred=1\n"
                          "200 begin /state Running inferred=1\n"
                          "200 begin /system calls fsync"));
    CHECK(strstr(k->text, "300 end /state \n"
                          "300 begin /state Sleeping\n"
                          "400 end /state  inferred=1\n"
                          "400 begin /state Running inferred=1\n"));
    CHECK(strstr(k->text, "500 end /state \n500 begin /state Preempted\n"));
    CHECK(!strstr(k->text, "600 end /state"));
    kbench_free(k);
}

TEST(who_has_had_a_page_fault_runs)
{
    struct kbench *k = kbench_new(NULL);
    struct sv_wire_fault f = {
        .page = {.head = {.kind = SV_WIRE_FAULT, .tgid = 10, .tid = 11, .ts_ns = 300},
                 .inode = 7,
                 .bytes = 4096,
                 .fd = -1,
                 .pad = SV_WIRE_FAULT_WAITED},
        .start_ns = 200};
    put(k, 0, 100, 11, SV_STATE_RUNNABLE);
    kbench_put(k, 0, &f, sizeof f, NULL, 0, 0);
    put(k, 0, 400, 12, SV_STATE_RUNNABLE); /* another thread */
    kbench_round(k, 1000);
    CHECK(strstr(k->text, "200 end /state  inferred=1\n200 begin /state Running inferred=1\n"));
    CHECK(strstr(k->text, "400 begin /state Runnable\n"));
    kbench_free(k);
}

TEST(rivals_and_sums_are_instants_of_the_thread)
{
    struct kbench *k = kbench_new(NULL);
    struct sv_wire_rival r = {.head = {.kind = SV_WIRE_RIVAL, .tgid = 10, .tid = 11, .ts_ns = 100},
                              .dur_ns = 5000,
                              .n = 3,
                              .tgid = 70,
                              .tid = 71,
                              .comm = "spinner_with_all"}; /* no NUL */
    struct sv_wire_schedstat s = {
        .head = {.kind = SV_WIRE_SCHEDSTAT, .tgid = 10, .tid = 11, .ts_ns = 103},
        .counted = {1000, 6000, 4}};
    kbench_put(k, 0, &r, sizeof r, NULL, 0, 0);
    r.tgid = r.tid = SV_WIRE_NO_PID; /* outside of our pid namespace */
    r.is_followed = 1;
    r.head.ts_ns = 101;
    kbench_put(k, 0, &r, sizeof r, NULL, 0, 0);
    r.head.ts_ns = 102;
    r.head.what = SV_RIVAL_IS_REST;
    kbench_put(k, 0, &r, sizeof r, NULL, 0, 0);
    r.head.what = SV_RIVAL_IS_CROWD;
    r.is_followed = r.tgid = 0;
    kbench_put(k, 0, &r, sizeof r, NULL, 0, 0);
    kbench_put(k, 0, &s, sizeof s, NULL, 0, 0);
    r.dur_ns = s.counted.delay_ns = UINT64_MAX;
    r.head.ts_ns = s.head.ts_ns = 104;
    kbench_put(k, 0, &r, sizeof r, NULL, 0, 0);
    kbench_put(k, 0, &s, sizeof s, NULL, 0, 0);
    kbench_round(k, 1000);
    CHECK(strstr(k->text, "CPU rival rival=spinner_with_all outside=1 rival_pid=70 rival_tid=71 "
                          "dur=5000 n=3\n"));
    CHECK(strstr(k->text, "CPU rival rival=spinner_with_all outside=1 dur=5000 n=3\n"));
    CHECK(strstr(k->text, "CPU rival rival=spinner_with_all dur=5000 n=3\n"));
    CHECK(strstr(k->text, "CPU rival rival=others dur=5000 n=3\n"));
    CHECK(strstr(k->text, "schedstat run_ns=1000 delay_ns=6000 switches=4\n"));
    CHECK_UINT_EQ(sv_decode_malformed(k->decode), 2);
    kbench_free(k);
}

static void put_wake(struct kbench *k, uint64_t ts, uint32_t waker, const char comm[16])
{
    struct sv_wire_wake w = {.head = {.kind = SV_WIRE_STATE,
                                      .flags = SV_STATE_RUNNABLE,
                                      .tgid = 10,
                                      .tid = 11,
                                      .ts_ns = ts},
                             .waker_tgid = 20,
                             .waker_tid = waker};
    memcpy(w.waker_comm, comm, sizeof w.waker_comm);
    kbench_put(k, 0, &w, sizeof w, NULL, 0, 0);
}

TEST(who_woke_a_thread_is_reported_unless_it_was_an_interrupt_of_an_idle_cpu)
{
    struct kbench *k = kbench_new(NULL);
    put(k, 0, 90, 11, SV_STATE_SLEEPING);
    put_wake(k, 100, 21, "writer\0\0\0\0\0\0\0\0\0");
    put(k, 0, 110, 11, SV_STATE_SLEEPING);
    put_wake(k, 140, 0, "swapper/1\0\0\0\0\0\0");
    put(k, 0, 150, 11, SV_STATE_SLEEPING);
    put_wake(k, 160, 23, "sixteen_and_full"); /* no NUL: the record is not trusted */
    put(k, 0, 170, 11, SV_STATE_SLEEPING);
    put_wake(k, 180, SV_WIRE_NO_PID, "outside\0\0\0\0\0\0\0\0"); /* of our pid namespace */
    kbench_round(k, 1000);
    CHECK(strstr(k->text, "100 begin /state Runnable waker_tid=21 waker=writer\n"));
    CHECK(strstr(k->text, "140 begin /state Runnable interrupt=1\n"));
    CHECK(strstr(k->text, "160 begin /state Runnable waker_tid=23 waker=sixteen_and_full\n"));
    CHECK(strstr(k->text, "180 begin /state Runnable waker=outside\n"));
    kbench_free(k);
}

/* The quota of its group was used up while the thread could run. */
TEST(a_state_ends_with_the_quota_that_it_waited_for)
{
    struct kbench *k = kbench_new(NULL);
    const struct sv_wire_ran ran = {.head = {.kind = SV_WIRE_STATE,
                                             .flags = SV_STATE_RUNNING,
                                             .tgid = 10,
                                             .tid = 11,
                                             .what = 1,
                                             .ts_ns = 500},
                                    .quota_ns = 350};
    struct sv_wire_ran wrong = ran;
    wrong.head.ts_ns = 700;
    wrong.quota_ns = UINT64_MAX;
    put(k, 0, 100, 11, SV_STATE_PREEMPTED);
    kbench_put(k, 0, &ran, sizeof ran, NULL, 0, 0);
    put(k, 0, 600, 11, SV_STATE_PREEMPTED);
    kbench_put(k, 0, &wrong, sizeof wrong, NULL, 0, 0);
    kbench_round(k, 1000);
    CHECK_STR_EQ(k->text, "100 begin /state Preempted\n"
                          "500 end /state  reason=quota quota_ns=350\n"
                          "500 begin /state Running cpu=1\n"
                          "600 end /state \n"
                          "600 begin /state Preempted\n"
                          "700 end /state \n"
                          "700 begin /state Running cpu=1\n");
    kbench_free(k);
}

static void put_wait(struct kbench *k, uint64_t ts, uint32_t nr, uint32_t file, uint64_t lock)
{
    const struct sv_wire_wait w = {.head = {.kind = SV_WIRE_STATE,
                                            .flags = SV_STATE_SLEEPING,
                                            .tgid = 10,
                                            .tid = 11,
                                            .ts_ns = ts},
                                   .lock = lock,
                                   .nr = nr,
                                   .file = file};
    kbench_put(k, 0, &w, sizeof w, NULL, 0, 0);
}

/* Locks and queues of the kernel say which one it is. */
TEST(a_wait_for_a_lock_of_the_kernel_names_it)
{
    struct kbench *k = kbench_new(NULL);
    struct sv_wire_call c = kbench_call(SYS_openat, 50, 60, AT_FDCWD, 0);
    c.ret = 5;
    kbench_put(k, 0, &c, sizeof c, "/tmp/a.lock", sizeof "/tmp/a.lock", 0);
    put_wait(k, 100, SYS_flock, 5, 77);
    put_wait(k, 200, SYS_fcntl, 5, 77);
    put_wait(k, 300, SYS_semtimedop, 0, SV_WIRE_SEMAPHORE | 9);
    put_wait(k, 400, SYS_mq_timedreceive, 5, 77); /* that the descriptor is a file is the test's */
    put_wait(k, 500, SYS_msgrcv, 0, 0);
    put_wait(k, 600, SYS_flock, 9, 0); /* not known */
    put_wait(k, 700, SYS_flock, UINT32_MAX, 0);
    kbench_round(k, 1000);
    CHECK(strstr(k->text, "100 begin /state Sleeping reason=lock lock=77 lock_name=/tmp/a.lock "
                          "path=/tmp/a.lock\n"));
    CHECK(strstr(k->text, "200 begin /state Sleeping reason=lock lock=77 lock_name=/tmp/a.lock "));
    CHECK(strstr(k->text, "300 begin /state Sleeping reason=lock lock=4294967305 "
                          "lock_name=semaphore 9\n"));
    CHECK(strstr(k->text, "400 begin /state Sleeping reason=queue path=/tmp/a.lock\n"));
    CHECK(strstr(k->text, "500 begin /state Sleeping reason=queue\n"));
    CHECK(strstr(k->text, "600 begin /state Sleeping reason=lock\n"));
    CHECK(strstr(k->text, "700 begin /state Sleeping reason=lock\n"));
    kbench_free(k);
}
