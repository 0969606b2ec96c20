/* The pool of threads: everything is done once, items come back in order, and a line can be stopped
 * and continued. */
#include "core/base/mem.h"
#include "tests/harness/test.h"
#include "threads/workers.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

static const unsigned counts[] = {1, 2, 3, 8};

enum { N = 1000 };

static void count_up(void *ctx, size_t i)
{
    ((unsigned *)ctx)[i]++;
}

TEST(each_index_runs_once)
{
    for (size_t k = 0; k < TEST_COUNT(counts); k++) {
        CONTEXT("%u threads", counts[k]);
        struct sv_workers *w = sv_workers_new(counts[k]);
        unsigned seen[N] = {0};
        sv_workers_each(w, 0, count_up, seen);
        sv_workers_each(w, 1, count_up, seen);
        sv_workers_each(w, N, count_up, seen);
        CHECK_UINT_EQ(seen[0], 2);
        for (size_t i = 1; i < N; i++)
            REQUIRE(seen[i] == 1);
        CHECK_UINT_EQ(sv_workers_count(w), counts[k]);
        sv_workers_free(w);
    }
    unsigned seen[2] = {0};
    sv_workers_each(NULL, 2, count_up, seen);
    CHECK(seen[0] == 1 && seen[1] == 1);
    CHECK_UINT_EQ(sv_workers_count(NULL), 1);
}

TEST(shares_cover_everything)
{
    for (size_t n = 0; n < 40; n++) {
        size_t at = 0;
        for (size_t i = 0; i < 7; i++) {
            size_t from, to;
            sv_workers_share(n, i, 7, &from, &to);
            REQUIRE(from == at && to >= from && to - from <= n / 7 + 1);
            at = to;
        }
        REQUIRE(at == n);
    }
}

/* ---- lines ---- */

struct counter {
    unsigned next, end;
};

struct item {
    unsigned number, square;
    char *memory; /* kept from one use to the next */
};

static bool fill(void *ctx, void *to)
{
    struct counter *c = ctx;
    struct item *i = to;
    if (c->next == c->end)
        return false;
    i->number = c->next++;
    i->square = 0;
    return true;
}

static void square(void *ctx, void *of)
{
    struct item *i = of;
    (void)ctx;
    if (!i->memory)
        i->memory = sv_alloc(16);
    for (volatile unsigned spin = i->number * 7919 % 3000; spin > 0; spin--)
        ;
    i->square = i->number * i->number;
}

static void clean(void *item)
{
    free(((struct item *)item)->memory);
}

static const struct sv_line_ops ops = {fill, square, clean, sizeof(struct item)};

static void expect_items(struct sv_line *l, unsigned from, unsigned end)
{
    for (unsigned n = from; n < end; n++) {
        const struct item *i = sv_line_next(l);
        REQUIRE(i && i->number == n && i->square == n * n);
    }
}

TEST(a_line_keeps_the_order)
{
    for (size_t k = 0; k < TEST_COUNT(counts); k++) {
        CONTEXT("%u threads", counts[k]);
        struct sv_workers *w = sv_workers_new(counts[k]);
        struct counter c = {.end = N};
        struct sv_line *l = sv_line_new(w, &ops, &c);
        expect_items(l, 0, N);
        CHECK(sv_line_next(l) == NULL && sv_line_next(l) == NULL);
        sv_line_free(l);
        sv_workers_free(w);
    }
}

TEST(a_halted_line_gives_what_was_filled_and_goes_on)
{
    for (size_t k = 0; k < TEST_COUNT(counts); k++) {
        CONTEXT("%u threads", counts[k]);
        struct sv_workers *w = sv_workers_new(counts[k]);
        struct counter c = {.end = N};
        struct sv_line *l = sv_line_new(w, &ops, &c);
        expect_items(l, 0, 20);
        sv_line_halt(l);
        unsigned filled = c.next;
        expect_items(l, 20, filled);
        CHECK(sv_line_next(l) == NULL);
        CHECK_UINT_EQ(c.next, filled);
        c.next += 100; /* what the owner dealt with itself */
        sv_line_resume(l);
        expect_items(l, filled + 100, N);
        CHECK(sv_line_next(l) == NULL);
        c.end += 10;
        sv_line_resume(l);
        expect_items(l, N, N + 10);
        CHECK(sv_line_next(l) == NULL);
        sv_line_free(l);
        sv_workers_free(w);
    }
}

TEST(a_line_may_be_left_early_and_needs_no_pool)
{
    struct sv_workers *w = sv_workers_new(4);
    struct counter c = {.end = N}, d = {.end = 3};
    struct sv_line *l = sv_line_new(w, &ops, &c), *alone = sv_line_new(NULL, &ops, &d);
    unsigned seen[N] = {0};
    expect_items(l, 0, 1);
    sv_workers_each(w, N, count_up, seen); /* while the line is busy */
    for (size_t i = 0; i < N; i++)
        REQUIRE(seen[i] == 1);
    expect_items(alone, 0, 3);
    CHECK(sv_line_next(alone) == NULL);
    sv_line_free(alone);
    sv_line_free(l);
    sv_workers_free(w);
}

/* ---- the process ---- */

static void note_mask(void *ctx, size_t i)
{
    sigset_t set;
    (void)i;
    pthread_sigmask(SIG_SETMASK, NULL, &set);
    if (!sigismember(&set, SIGTERM))
        __atomic_fetch_add((unsigned *)ctx, 1, __ATOMIC_RELAXED);
    for (volatile unsigned spin = 200000; spin > 0; spin--)
        ;
}

/* Only the caller's thread may be interrupted: what it runs is less than all. */
TEST(signals_are_blocked_in_workers)
{
    struct sv_workers *w = sv_workers_new(2);
    sigset_t before, after;
    unsigned open = 0;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    CHECK(!sigismember(&before, SIGTERM));
    for (int round = 0; round < 200 && open == (unsigned)round * 50; round++)
        sv_workers_each(w, 50, note_mask, &open);
    CHECK(open % 50 != 0);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    CHECK(!sigismember(&after, SIGTERM));
    sv_workers_free(w);
}

TEST(the_default_is_what_the_process_may_use)
{
    unsigned cpus = sv_workers_cpus();
    CHECK(cpus >= 1);
    struct sv_workers *w = sv_workers_new(0);
    CHECK_UINT_EQ(sv_workers_count(w), cpus < SV_WORKERS_MAX ? cpus : SV_WORKERS_MAX);
    sv_workers_free(w);
    sv_workers_set_default(3);
    w = sv_workers_new(0);
    CHECK_UINT_EQ(sv_workers_count(w), 3);
    sv_workers_free(w);
    w = sv_workers_new(100000);
    CHECK_UINT_EQ(sv_workers_count(w), SV_WORKERS_MAX);
    sv_workers_free(w);
    sv_workers_set_default(0);
}
