/* Rings of many threads, and what the program notices of them: sizes by number, rings that are
 * given up, events inside of events, errno, signals that wait, files of an earlier session. */
#include "tests/unit/sdk_scene.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LARGE = 16, MEDIUM = 128, THREADS = MEDIUM + 4 };

static pthread_barrier_t met;

static void *emit_and_meet(void *arg)
{
    STAVE_INSTANT("c", "n", "i", (int)(intptr_t)arg);
    pthread_barrier_wait(&met); /* all are there at once */
    return NULL;
}

static size_t count_events(const struct sdk_scene *s, enum sv_kind kind)
{
    size_t n = 0;
    for (size_t i = 0; i < s->file.got.n; i++)
        n += s->file.got.events[i].kind == kind;
    return n;
}

static int64_t losses(const struct sdk_scene *s)
{
    int64_t n = 0;
    for (size_t i = 0; i < s->file.got.n; i++)
        n += s->file.got.events[i].kind == SV_LOSS ? s->file.got.events[i].args[0].i : 0;
    return n;
}

/* The first ones are large; whoever gives a size has it for all. */
TEST(sizes_by_number)
{
    static const size_t given[] = {0, 32 << 10};
    for (size_t k = 0; k < TEST_COUNT(given); k++) {
        static struct sdk_scene s;
        pthread_t threads[THREADS];
        CONTEXT("%zu bytes", given[k]);
        sdk_start(&s, &(struct stave_options){.buffer_bytes = given[k]});
        uint64_t most = sv_process->ring_bytes;
        REQUIRE(pthread_barrier_init(&met, NULL, THREADS + 1) == 0);
        for (int i = 0; i < THREADS; i++)
            REQUIRE(pthread_create(&threads[i], NULL, emit_and_meet, (void *)(intptr_t)i) == 0);
        pthread_barrier_wait(&met);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        CHECK_UINT_EQ(atomic_load(&sv_process->n_rings), THREADS + 1); /* this thread has one */
        for (int i = 0; i < THREADS; i++) {
            unsigned less = given[k] || i < LARGE ? 0 : i < MEDIUM ? 2 : 4;
            uint64_t size = most >> less;
            CHECK_UINT_EQ(sv_process->rings[i].ring->size,
                          size < SV_RING_BYTES_MIN ? SV_RING_BYTES_MIN : size);
        }
        sdk_stop(&s);
        CHECK_UINT_EQ(count_events(&s, SV_INSTANT), THREADS);
        CHECK_UINT_EQ(s.file.got.n, THREADS);
        sdk_done(&s);
        unlink(s.out);
    }
}

enum { EACH = 5, HELD = MEDIUM - 1 /* and that of this thread */ };

static void *emit_some(void *arg)
{
    for (int i = 0; i < EACH; i++)
        STAVE_INSTANT("c", "n", "i", (int)(intptr_t)arg);
    return NULL;
}

/* A flight recorder has so many rings; then the next thread gets that of one which has ended, and
 * what it held is counted. */
TEST(rings_that_are_given_up)
{
    static struct sdk_scene s;
    struct stave_counts n = {.size = sizeof n};
    enum { MORE = HELD + 40 };
    sdk_start(&s, &(struct stave_options){.full = STAVE_FULL_OVERWRITE, .buffer_bytes = 16 << 10});
    for (int i = 0; i < MORE; i++) {
        pthread_t thread;
        REQUIRE(pthread_create(&thread, NULL, emit_some, (void *)(intptr_t)i) == 0);
        pthread_join(thread, NULL);
    }
    CHECK_UINT_EQ(atomic_load(&sv_process->n_rings), MEDIUM);
    stave_count(&n);
    CHECK_UINT_EQ(n.lost_overwritten, (MORE - HELD) * EACH);
    CHECK_INT_EQ(stave_trigger("now"), 1);
    sdk_read(&s, test_scratch("t.1.pftrace"));
    CHECK_UINT_EQ(count_events(&s, SV_INSTANT), HELD * EACH + 1);
    CHECK_INT_EQ(losses(&s), (MORE - HELD) * EACH);
    bool seen[MORE] = {false};
    for (size_t i = 0; i < s.file.got.n; i++) {
        const struct sv_event *e = &s.file.got.events[i];
        if (e->kind == SV_INSTANT && e->args[0].type == SV_ARG_INT)
            seen[e->args[0].i] = true;
    }
    for (int i = 0; i < MORE; i++)
        CHECK_INT_EQ(seen[i], i >= MORE - HELD); /* the longest ended goes first */
    CHECK_INT_EQ(stave_stop(), 0);
    sdk_done(&s);
}

/* A signal handler that interrupts the recording of an event: its own events are counted, and what
 * was being recorded is whole. */
TEST(events_inside_of_events)
{
    static struct sdk_scene s;
    struct stave_counts n = {.size = sizeof n};
    stave_track_t row = 0;
    sdk_hear();
    sdk_start(&s, NULL);
    row = stave_track(STAVE_PROCESS, "row");
    STAVE_BEGIN("c", "outer");
    for (int i = 0; i < 2; i++) { /* a place that is new, and one that is known */
        sv_self->busy = i == 1;
        STAVE_INSTANT("c", "inside", "i", i);
        STAVE_COUNTER("c", "level", i);
        STAVE_INSTANT_ON(row, "c", "inside on", "i", i);
        STAVE_INSTANT_DYN("c", "inside named", "i", i);
    }
    STAVE_INSTANT("c", "new");
    stave_count(&n);
    CHECK_UINT_EQ(n.lost_nested, 5);
    sv_self->busy = false;
    STAVE_END("c");
    CHECK_STR_EQ(sdk_stop(&s), "begin thread outer c\n"
                               "instant thread inside c i=int:0\n"
                               "counter level   int:0\n"
                               "instant row inside on c i=int:0\n"
                               "instant thread inside named c i=int:0\n"
                               "end thread  \n"
                               "loss thread nested in a signal handler  int:5\n");
    sdk_done(&s);
    CHECK(strstr(sdk_heard(), "t.pftrace: 5 events were lost, in signal handlers or because a "
                              "thread has no ring\n") != NULL);
}

static void emit_all(stave_track_t row, const char *text)
{
    static const int bad = 123456;
    errno = bad;
    STAVE_INSTANT("c", "n", "t", text);
    CHECK_INT_EQ(errno, bad);
    STAVE_COUNTER("c", "level", 1);
    CHECK_INT_EQ(errno, bad);
    STAVE_BEGIN("c", "slice", "i", 1);
    CHECK_INT_EQ(errno, bad);
    STAVE_END("c", "i", 1);
    CHECK_INT_EQ(errno, bad);
    STAVE_BEGIN_ON(row, "c", "slice on");
    CHECK_INT_EQ(errno, bad);
    STAVE_END_ON(row, "c");
    CHECK_INT_EQ(errno, bad);
    STAVE_INSTANT_DYN("c", text, "i", 1);
    CHECK_INT_EQ(errno, bad);
    stave_complete(row, "c", "given", 5, 5);
    CHECK_INT_EQ(errno, bad);
}

static void *emit_all_in_thread(void *row)
{
    emit_all(*(stave_track_t *)row, "of a thread");
    return NULL;
}

/* The program's errno is its own: at places that are new and known, with a ring and without. */
TEST(errno_is_as_it_was)
{
    static struct sdk_scene s;
    pthread_t thread;
    sdk_hear();
    sdk_fresh(&s);
    emit_all(0, "off");
    sdk_start(&s, &(struct stave_options){.buffer_bytes = 16 << 10});
    stave_track_t row = stave_track(STAVE_PROCESS, "row");
    for (int i = 0; i < 2; i++)
        emit_all(row, "text");
    REQUIRE(pthread_create(&thread, NULL, emit_all_in_thread, &row) == 0);
    pthread_join(thread, NULL);
    sv_self->busy = true;
    emit_all(row, "nested");
    sv_self->busy = false;
    sdk_hold();
    for (int i = 0; i < 500; i++)
        emit_all(row, "a ring that is full");
    sdk_release();
    stave_stop();
    emit_all(row, "after the end");
    sdk_done(&s);
    sdk_heard();
}

/* A signal that waits for the program is not taken from it, and none is added. */
TEST(signals_that_wait)
{
    static const int signals[] = {SIGPIPE, SIGXFSZ};
    for (size_t k = 0; k <= TEST_COUNT(signals); k++) {
        static struct sdk_scene s;
        sigset_t blocked, before, after;
        CONTEXT("signal %zu", k);
        sigemptyset(&blocked);
        for (size_t i = 0; i < TEST_COUNT(signals); i++)
            sigaddset(&blocked, signals[i]);
        pthread_sigmask(SIG_BLOCK, &blocked, &before);
        if (k < TEST_COUNT(signals))
            raise(signals[k]);
        sdk_start(&s, NULL);
        STAVE_INSTANT("c", "n");
        CHECK_STR_EQ(sdk_stop(&s), "instant thread n c\n");
        sigpending(&after);
        for (size_t i = 0; i < TEST_COUNT(signals); i++)
            CHECK_INT_EQ(sigismember(&after, signals[i]), i == k);
        sigtimedwait(&blocked, NULL, &(struct timespec){0});
        pthread_sigmask(SIG_SETMASK, &before, &after);
        for (size_t i = 0; i < TEST_COUNT(signals); i++)
            CHECK_INT_EQ(sigismember(&after, signals[i]), 1); /* the mask was left as it was */
        sdk_done(&s);
        unlink(s.out);
    }
}

/* A second session of this process under the same name replaces its own file without a word; a file
 * of somebody else is replaced with one, and one that came meanwhile is left. */
TEST(files_of_an_earlier_session)
{
    static struct sdk_scene s;
    sdk_start(&s, NULL);
    STAVE_INSTANT("c", "first");
    sdk_hear();
    CHECK_INT_EQ(stave_stop(), 0);
    struct stave_options o = {.size = sizeof o, .out = s.out};
    REQUIRE(stave_start(&o, NULL) == 0);
    STAVE_INSTANT("c", "second");
    CHECK_STR_EQ(sdk_stop(&s), "instant thread second c\n");
    CHECK_STR_EQ(sdk_heard(), "");
    unlink(s.out);
    test_write_file(s.out, "of another run");
    sdk_hear();
    REQUIRE(stave_start(&o, NULL) == 0);
    STAVE_INSTANT("c", "third");
    CHECK_STR_EQ(sdk_stop(&s), "instant thread third c\n");
    CHECK(strstr(sdk_heard(), "t.pftrace: the trace of an earlier run was replaced\n") != NULL);
    sdk_hear();
    REQUIRE(stave_start(&o, NULL) == 0);
    STAVE_INSTANT("c", "fourth");
    CHECK_INT_EQ(stave_flush(), 0);
    unlink(s.out);
    test_write_file(s.out, "came meanwhile");
    CHECK_INT_EQ(stave_stop(), 0);
    CHECK_STR_EQ(sdk_read(&s, test_scratch("t.1.pftrace")), "instant thread fourth c\n");
    CHECK_STR_EQ(test_read_file(s.out), "came meanwhile");
    CHECK(strstr(sdk_heard(),
                 "t.pftrace was written by another process meanwhile: the trace is ") != NULL);
    sdk_done(&s);
}
