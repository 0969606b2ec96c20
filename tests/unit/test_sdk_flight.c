/* The flight recorder: what a file has when something happens, and what was overwritten by then. */
#include "sdk/write/writer.h"
#include "tests/unit/sdk_scene.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *numbered(struct sdk_scene *s, unsigned number)
{
    char name[32];
    snprintf(name, sizeof name, "t.%u.pftrace", number);
    return sdk_read(s, test_scratch(name));
}

static void start(struct sdk_scene *s, struct stave_options o)
{
    o.full = STAVE_FULL_OVERWRITE;
    o.buffer_bytes = 16 << 10;
    sdk_start(s, &o);
}

static void *of_thread(void *arg)
{
    (void)arg;
    stave_set_thread_name("other");
    STAVE_INSTANT("c", "of a thread");
    return NULL;
}

TEST(a_trigger_writes_what_the_rings_hold)
{
    static struct sdk_scene s;
    start(&s, (struct stave_options){0});
    STAVE_BEGIN("c", "slice", "i", 1);
    STAVE_END("c");
    pthread_t t;
    REQUIRE(pthread_create(&t, NULL, of_thread, NULL) == 0);
    pthread_join(t, NULL);
    CHECK_INT_EQ(stave_trigger("the first"), 1);
    STAVE_INSTANT("c", "later");
    CHECK_INT_EQ(stave_trigger(NULL), 2);
    const char *lines = numbered(&s, 1);
    CHECK_STR_EQ(lines, "begin thread slice c i=int:1\nend thread  \ninstant other of a thread c\n"
                        "instant process trigger stave reason='the first'\n");
    lines = numbered(&s, 2);
    CHECK_STR_EQ(lines, "begin thread slice c i=int:1\nend thread  \ninstant thread later c\n"
                        "instant other of a thread c\n"
                        "instant process trigger stave reason=''\n");
    struct stave_counts n = {.size = sizeof n};
    stave_count(&n);
    CHECK_UINT_EQ(n.events, 3 + 4);
    CHECK_INT_EQ(stave_stop(), 0);
    CHECK_INT_EQ(stave_trigger("too late"), -1);
    CHECK_STR_EQ(sdk_read(&s, s.out), "(absent)");
    sdk_done(&s);
}

/* Files of an earlier run stay, and so does a folder: the next free numbers are taken. */
TEST(files_of_an_earlier_run)
{
    static struct sdk_scene s;
    char folder[600];
    snprintf(folder, sizeof folder, "%s", test_scratch("t.3.pftrace"));
    for (int run = 0; run < 2; run++) {
        start(&s, (struct stave_options){0});
        STAVE_INSTANT("c", "n", "run", run);
        CHECK_INT_EQ(stave_trigger("now"), 1 + run);
        CHECK(strstr(numbered(&s, 1), "instant thread n c run=int:0\n") != NULL);
        if (run == 0) {
            CHECK_INT_EQ(mkdir(folder, 0700), 0);
        } else {
            CHECK(strstr(numbered(&s, 2), "instant thread n c run=int:1\n") != NULL);
            CHECK_INT_EQ(stave_trigger("again"), 4);
            CHECK(strstr(numbered(&s, 4), "reason='again'\n") != NULL);
        }
        CHECK_INT_EQ(stave_stop(), 0);
        sdk_done(&s);
    }
    CHECK_INT_EQ(rmdir(folder), 0);
}

/* The newest events are there without a gap, and all others are counted. */
TEST(the_newest_stay)
{
    for (int n = 100; n < 3000; n += 333) {
        static struct sdk_scene s;
        CONTEXT("%d events", n);
        start(&s, (struct stave_options){0});
        for (int i = 0; i < n; i++)
            STAVE_INSTANT("c", "n", "i", i);
        struct stave_counts count = {.size = sizeof count};
        stave_count(&count);
        CHECK_INT_EQ(stave_trigger("now"), 1);
        numbered(&s, 1);
        int64_t first = -1, lost = 0, seen = 0;
        for (size_t i = 0; i < s.file.got.n; i++) {
            const struct sv_event *e = &s.file.got.events[i];
            if (e->kind == SV_LOSS)
                lost += e->args[0].i;
            if (e->kind != SV_INSTANT || e->args[0].type != SV_ARG_INT)
                continue;
            first = first < 0 ? e->args[0].i : first;
            CHECK_INT_EQ(e->args[0].i, first + seen++);
        }
        CHECK_INT_EQ(first + seen, n);
        CHECK_INT_EQ(lost, first);
        CHECK(seen >= (n < 400 ? n : 400)); /* of at most 16384 / 24; whole blocks are given up */
        CHECK(count.lost_overwritten <= (uint64_t)lost && (n < 600 || count.lost_overwritten > 0));
        CHECK_INT_EQ(stave_stop(), 0);
        sdk_done(&s);
        unlink(test_scratch("t.1.pftrace"));
    }
}

/* A thread goes the short way up to the end of a block, whose first record is known; with a record
 * that is longer, up to its end. */
TEST(blocks_of_a_ring)
{
    static struct sdk_scene s;
    enum { BLOCK = (16 << 10) / SV_RING_BLOCKS };
    start(&s, (struct stave_options){0});
    const struct sv_ring *ring = sv_self->ring;
    uint64_t first = sv_self->head;
    CHECK_UINT_EQ(first % BLOCK, 0);
    for (uint64_t i = 0; i < 3 * SV_RING_BLOCKS * BLOCK / 16; i++) {
        uint64_t head = sv_self->head;
        STAVE_INSTANT("c", "n");
        CHECK_UINT_EQ(sv_self->full_limit, (head / BLOCK + 1) * BLOCK);
        CHECK_UINT_EQ(atomic_load(&ring->block_first[head / BLOCK % SV_RING_BLOCKS]),
                      head / BLOCK * BLOCK);
        CHECK(!sv_self->busy);
    }
    struct stave_counts n = {.size = sizeof n};
    stave_count(&n);
    CHECK_UINT_EQ(n.lost_overwritten, 2 * SV_RING_BLOCKS * BLOCK / 16);
    static char text[3000];
    memset(text, 'x', sizeof text - 1);
    uint64_t head = sv_self->head;
    STAVE_INSTANT("c", "large", "text", text);
    CHECK_UINT_EQ(sv_self->head, head + 24 + 3000);
    CHECK(sv_self->full_limit >= sv_self->head && sv_self->full_limit <= sv_self->head + 16);
    for (int i = 0; i < 2; i++) /* the first one fits yet */
        STAVE_INSTANT("c", "n");
    CHECK_UINT_EQ(sv_self->full_limit % BLOCK, 0);
    CHECK_INT_EQ(stave_stop(), 0);
    sdk_done(&s);
}

/* Only what is not older than asked for. */
TEST(older_events_are_left_out)
{
    static struct sdk_scene s;
    start(&s, (struct stave_options){.keep_ms = 50});
    STAVE_INSTANT("c", "old");
    STAVE_INSTANT("c", "old");
    for (int64_t now = stave_now_ns(); stave_now_ns() - now < 60 * 1000000;)
        usleep(5000);
    STAVE_INSTANT("c", "new");
    CHECK_INT_EQ(stave_trigger("now"), 1);
    const char *lines = numbered(&s, 1);
    CHECK(strstr(lines, "instant thread old c") == NULL);
    CHECK(strstr(lines, "loss thread") != NULL);
    CHECK_INT_EQ(stave_stop(), 0);
    sdk_done(&s);
}

static bool is_written(struct sdk_scene *s, unsigned number)
{
    char name[32];
    snprintf(name, sizeof name, "t.%u.pftrace", number);
    for (int i = 0; i < 10000 && access(test_scratch(name), F_OK) != 0; i++)
        usleep(1000);
    return strcmp(numbered(s, number), "(absent)") != 0;
}

TEST(a_signal_is_a_trigger)
{
    static struct sdk_scene s;
    struct sigaction act;
    signal(SIGUSR2, SIG_IGN);
    start(&s, (struct stave_options){.trigger_signal = SIGUSR2});
    STAVE_INSTANT("c", "n");
    raise(SIGUSR2);
    CHECK(is_written(&s, 1));
    CHECK_STR_EQ(sv_buf_cstr(&s.text),
                 "instant thread n c\ninstant process trigger stave reason='signal'\n");
    CHECK_INT_EQ(stave_stop(), 0);
    CHECK(sigaction(SIGUSR2, NULL, &act) == 0 && act.sa_handler == SIG_IGN);
    signal(SIGUSR2, SIG_DFL);
    sdk_done(&s);
}

enum { LIMIT_MS = 20 };

/* A slice of another name, of this one that is over soon, of this one at a depth that is not
 * looked at, and of this one. */
TEST(a_long_slice_is_a_trigger)
{
    static struct sdk_scene s;
    start(&s, (struct stave_options){.trigger_name = "watched", .trigger_ms = LIMIT_MS});
    const struct sv_session_writer *w = sv_process->writer;
    STAVE_INSTANT("c", "first");
    stave_flush(); /* it looks at the ring from here on */
    STAVE_BEGIN("c", "other");
    usleep(1500 * LIMIT_MS);
    STAVE_END("c");
    int64_t begun = stave_now_ns();
    STAVE_BEGIN("c", "watched");
    STAVE_END("c");
    bool is_short = stave_now_ns() - begun < LIMIT_MS * 1000000;
    stave_flush();
    CHECK(!is_short || atomic_load(&w->n_files) == 0);
    enum { DEPTH = 70 };
    uint32_t before = atomic_load(&w->n_files);
    for (int i = 0; i < DEPTH; i++)
        STAVE_BEGIN("c", "outer");
    STAVE_BEGIN("c", "watched");
    usleep(1500 * LIMIT_MS);
    STAVE_END("c");
    for (int i = 0; i < DEPTH; i++)
        STAVE_END("c");
    stave_flush();
    CHECK_UINT_EQ(atomic_load(&w->n_files), before);
    STAVE_BEGIN("c", "watched");
    usleep(1500 * LIMIT_MS);
    STAVE_END("c");
    stave_flush();
    CHECK_UINT_EQ(atomic_load(&w->n_files), before + 1);
    const char *lines = numbered(&s, before + 1);
    CHECK(strstr(lines, "instant process trigger stave reason='watched'\n") != NULL);
    stave_flush(); /* once is enough */
    CHECK_UINT_EQ(atomic_load(&w->n_files), before + 1);
    CHECK_INT_EQ(stave_stop(), 0);
    sdk_done(&s);
}

static pthread_barrier_t steps;

static void *watched(void *arg)
{
    (void)arg;
    STAVE_INSTANT("c", "first");
    pthread_barrier_wait(&steps); /* flush: its ring is looked at */
    pthread_barrier_wait(&steps);
    STAVE_BEGIN("c", "watched");
    pthread_barrier_wait(&steps);
    pthread_barrier_wait(&steps); /* the other one is deep by now */
    usleep(1500 * LIMIT_MS);
    STAVE_END("c");
    return NULL;
}

/* What the depth of one thread makes it forget is not another one's. */
TEST(a_long_slice_beside_a_deep_one)
{
    static struct sdk_scene s;
    pthread_t thread;
    start(&s, (struct stave_options){.trigger_name = "watched", .trigger_ms = LIMIT_MS});
    const struct sv_session_writer *w = sv_process->writer;
    REQUIRE(pthread_barrier_init(&steps, NULL, 2) == 0);
    REQUIRE(pthread_create(&thread, NULL, watched, NULL) == 0);
    pthread_barrier_wait(&steps);
    stave_flush();
    pthread_barrier_wait(&steps);
    pthread_barrier_wait(&steps);
    stave_flush();
    for (int i = 0; i < 66; i++)
        STAVE_BEGIN("c", "outer");
    stave_flush();
    pthread_barrier_wait(&steps);
    pthread_join(thread, NULL);
    stave_flush();
    CHECK_UINT_EQ(atomic_load(&w->n_files), 1);
    CHECK_INT_EQ(stave_stop(), 0);
    sdk_done(&s);
}
