/* States of threads over rings made by hand: each change ends the state before it, wake-ups that
 * come late change nothing. */
#include "tests/harness/test.h"
#include "tests/unit/kbench.h"

#include <string.h>

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
