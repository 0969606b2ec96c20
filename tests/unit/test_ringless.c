/* The page of counters for those who have no ring: what is reported, once, and again after the
 * marks of a journal. */
#include "core/stream/dict.h"
#include "sdk/ring/ringless.h"
#include "tests/harness/test.h"

#include <string.h>

struct scene {
    struct sv_ringless page;
    struct sv_ringless_reader reader;
    struct sv_dict *dict;
    struct sv_batch batch;
};

static void open_scene(struct scene *s)
{
    memset(&s->page, 0, sizeof s->page);
    s->dict = sv_dict_new();
    sv_batch_init(&s->batch);
    sv_ringless_reader_init(&s->reader, &s->page, s->dict, 7);
}

static void close_scene(struct scene *s)
{
    sv_batch_fini(&s->batch);
    sv_dict_free(s->dict);
}

/* What the next report has for the process; 0: nothing. */
static int64_t reported(struct scene *s, uint32_t pid)
{
    int64_t sum = 0;
    sv_batch_reset(&s->batch);
    REQUIRE(sv_ringless_report(&s->reader, s->dict, &s->batch, 5));
    for (size_t i = 0; i < s->batch.n; i++) {
        const struct sv_event *e = &s->batch.events[i];
        CHECK(e->kind == SV_LOSS && e->ts_ns == 5 && e->n_args == 1);
        if (e->track == sv_dict_process(s->dict, 0, pid))
            sum += e->args[0].i;
    }
    return sum;
}

TEST(ringless_once)
{
    static struct scene s;
    open_scene(&s);
    CHECK(reported(&s, 7) == 0 && s.batch.n == 0);
    s.page.slots[0].pid = 41;
    s.page.slots[0].lost = 10;
    s.page.slots[SV_LOST_SLOTS - 1].lost = 3; /* those without a slot: on the session's process */
    CHECK(reported(&s, 41) == 10 && s.batch.n == 2);
    CHECK(reported(&s, 41) == 0 && s.batch.n == 0);
    s.page.slots[0].lost = 12;
    CHECK(reported(&s, 41) == 2);
    s.page.slots[0].lost = 1; /* somebody wrote into it */
    CHECK(reported(&s, 41) == 0);
    close_scene(&s);
}

TEST(ringless_others)
{
    static struct scene s;
    open_scene(&s);
    s.page.slots[SV_LOST_SLOTS - 1].lost = 3;
    CHECK(reported(&s, 7) == 3);
    close_scene(&s);
}

/* A full batch: the rest comes with the next one, and nothing twice. */
TEST(ringless_in_pieces)
{
    static struct scene s;
    open_scene(&s);
    for (unsigned i = 0; i < SV_LOST_SLOTS; i++) {
        s.page.slots[i].pid = 100 + i;
        s.page.slots[i].lost = 1;
    }
    s.batch.n = SV_BATCH - 20;
    CHECK(!sv_ringless_report(&s.reader, s.dict, &s.batch, 5));
    CHECK(s.batch.n == SV_BATCH);
    sv_batch_reset(&s.batch);
    CHECK(sv_ringless_report(&s.reader, s.dict, &s.batch, 5));
    CHECK(s.batch.n == SV_LOST_SLOTS - 20);
    close_scene(&s);
}

/* The mark of a round that was not committed does not count. */
TEST(ringless_marks)
{
    static struct scene s;
    open_scene(&s);
    s.page.slots[2].pid = 41;
    s.page.slots[2].lost = 10;
    CHECK(sv_ringless_pending(&s.page, 0) == 10);
    CHECK(reported(&s, 41) == 10);
    sv_ringless_mark(&s.reader, &s.page, 1);
    s.page.slots[2].lost = 15;
    CHECK(reported(&s, 41) == 5);
    sv_ringless_mark(&s.reader, &s.page, 2); /* and killed before the journal has it */
    s.page.slots[2].lost = 16;
    CHECK(sv_ringless_pending(&s.page, 1) == 6 && sv_ringless_pending(&s.page, 2) == 1);
    for (uint64_t round = 0; round < 3; round++) {
        sv_ringless_reader_init(&s.reader, &s.page, s.dict, 7);
        sv_ringless_resume(&s.reader, round);
        CHECK(reported(&s, 41) == (round == 0 ? 16 : round == 1 ? 6 : 1));
    }
    close_scene(&s);
}

/* Of two marks the newer one counts that is not past the round, wherever it lies. */
TEST(ringless_of_two_marks)
{
    static const struct {
        uint64_t rounds[2], round, pending;
    } rows[] = {{{0, 0}, 9, 100}, {{3, 0}, 9, 90}, {{0, 3}, 9, 80},
                {{3, 4}, 9, 80},  {{4, 3}, 9, 90}, {{4, 3}, 4, 90},
                {{4, 3}, 3, 80},  {{3, 4}, 3, 90}, {{3, 4}, 2, 100}};
    static struct scene s;
    open_scene(&s);
    s.page.slots[SV_LOST_SLOTS - 1].lost = 100;
    s.page.slots[SV_LOST_SLOTS - 1].marked[0] = 10;
    s.page.slots[SV_LOST_SLOTS - 1].marked[1] = 20;
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("row %zu", i);
        s.page.mark_round[0] = rows[i].rounds[0];
        s.page.mark_round[1] = rows[i].rounds[1];
        CHECK_UINT_EQ(sv_ringless_pending(&s.page, rows[i].round), rows[i].pending);
    }
    close_scene(&s);
}
