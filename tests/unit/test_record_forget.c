/* Processes and threads that have ended: forgotten, with what was kept of them. */
#include "record/decode/forget.h"
#include "tests/harness/test.h"
#include "tests/unit/kbench.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>

/* A sink that looks at the order: a row is forgotten before the one above it. */
struct watcher {
    struct sv_sink sink;
    const struct sv_dict *dict;
    uint64_t forgotten[4096]; /* uuids by row */
    unsigned n, n_wrong;
};

static void no_more(struct sv_sink *s, sv_track track)
{
    struct watcher *w = (struct watcher *)(void *)s;
    const struct sv_track_info *info = &w->dict->tracks[track];
    REQUIRE(track < TEST_COUNT(w->forgotten));
    if (info->parent && w->forgotten[info->parent] == w->dict->tracks[info->parent].uuid)
        w->n_wrong++;
    w->forgotten[track] = info->uuid;
    w->n++;
}

static bool keeps_17(void *ctx, uint32_t pid)
{
    (void)ctx;
    return pid == 17;
}

/* Starts, calls and exits of many processes, forgotten from time to time: only running ones are
 * kept. */
TEST(memory_is_that_of_the_living)
{
    enum { LIVES = 20000, AT_ONCE = 100 };
    struct kbench *k = kbench_new(NULL);
    struct sv_tree *t = sv_decode_tree(k->decode);
    struct watcher w = {.sink = {.forget = no_more}, .dict = k->dict};
    uint64_t ts = 1000;
    struct sv_wire_call open = kbench_call(SYS_openat, 10, 11, AT_FDCWD, 3);
    kbench_put(k, 0, &open, sizeof open, "/kept", 6, 0);
    for (uint32_t i = 0; i < LIVES; i++, ts += 100) {
        uint32_t pid = 100 + i, tid = i % 4 ? pid : 10; /* every fourth is a thread of process 10 */
        struct sv_wire_fork f = {.head = {.kind = SV_WIRE_FORK, .tgid = 10, .tid = 11, .ts_ns = ts},
                                 .tgid = tid,
                                 .tid = pid,
                                 .comm = "loader"};
        kbench_put(k, 0, &f, sizeof f, NULL, 0, 0);
        struct sv_wire_call c = kbench_call(SYS_fsync, ts + 10, ts + 20 + i % 7, 3, 0);
        c.head.tgid = tid;
        c.head.tid = pid;
        kbench_put(k, 0, &c, sizeof c, NULL, 0, 0);
        struct sv_wire_exit x = {
            .head = {.kind = SV_WIRE_EXIT, .tgid = tid, .tid = pid, .ts_ns = ts + 50},
            .is_last = i % 4 != 0};
        kbench_put(k, 0, &x, sizeof x, NULL, 0, 0);
        if (i % AT_ONCE == AT_ONCE - 1) {
            kbench_round(k, ts + 60);
            CHECK(t->n_ended >= AT_ONCE);
            sv_forget_dead(t, (int64_t)ts - 1000, NULL, NULL, &w.sink);
            CHECK(t->n_ended <= 20);
        }
    }
    CHECK(w.n > LIVES * 2);
    CHECK_UINT_EQ(w.n_wrong, 0);
    CHECK(t->n < 30 && t->n_threads < 30);
    CHECK(k->dict->n_tracks < 4 * (AT_ONCE + 40));
    CHECK_UINT_EQ(t->n + t->n_forgotten, LIVES / 4 * 3 + 1);
    CHECK_UINT_EQ(sv_totals_sum(&k->totals, SV_PROBE_syscalls, SV_SUM_EVENTS), LIVES + 1);
    CHECK_UINT_EQ(t->n_gone, SV_GONE_MAX);
    for (size_t i = 0; i < t->n_gone; i++)
        CHECK_INT_EQ(t->gone[i].time_ns, 16); /* the busiest */
    struct sv_wire_call fsync = kbench_call(SYS_fsync, ts, ts + 1, 3, 0);
    kbench_put(k, 0, &fsync, sizeof fsync, NULL, 0, 0);
    kbench_round(k, ts + 2);
    CHECK(strstr(k->text, "path=/kept"));
    /* Who is needed by somebody else stays, and so does who has begun again. */
    bool is_new;
    sv_tree_end(t, sv_tree_process(t, 17, &is_new), 5);
    sv_tree_end(t, sv_tree_process(t, 18, &is_new), 5);
    sv_tree_end(t, sv_tree_process(t, 19, &is_new), 5);
    sv_tree_fork(t, 10, 19);
    sv_forget_dead(t, INT64_MAX, keeps_17, NULL, &w.sink);
    CHECK(sv_tree_find(t, 17) && !sv_tree_find(t, 18) && sv_tree_find(t, 19));
    /* A sink that cannot forget keeps the rows, which the number then finds again. */
    sv_track row = sv_dict_process(k->dict, 0, 17);
    w.sink.forget = NULL;
    sv_forget_dead(t, INT64_MAX, NULL, NULL, &w.sink);
    CHECK(!sv_tree_find(t, 17));
    CHECK_UINT_EQ(sv_dict_process(k->dict, 0, 17), row);
    kbench_free(k);
}
