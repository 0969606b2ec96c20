/* The ring source over rings made by hand: good records, and everything that can be wrong with
 * them. */
#include "core/base/buf.h"
#include "sdk/drain/drain.h"
#include "sdk/ring/session_layout.h"
#include "tests/harness/shape_check.h"
#include "tests/harness/test.h"

#include <stave/stave.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE = 16 << 10 };

struct bench {
    struct sv_ring ring;
    uint8_t data[2 * SIZE];
    struct sv_dict *dict;
    struct sv_report report;
    struct sv_drain *drain;
    struct sv_batch batch;
    struct shape_check shape;
};

static void put_name(struct sv_buf *b, struct sv_name_head h, const char *const *texts, size_t n,
                     const uint8_t *types)
{
    size_t at = b->len;
    sv_buf_add(b, &h, sizeof h);
    for (size_t i = 0; i < n; i++)
        sv_buf_add(b, texts[i], strlen(texts[i]) + 1);
    if (types)
        sv_buf_add(b, types, h.n_args);
    while (b->len % 8)
        sv_buf_byte(b, 0);
    h.size = (uint32_t)(b->len - at);
    memcpy(b->data + at, &h, sizeof h);
}

/* Site 1: begin without arguments; 2: instant with an int and a text; 3: counter; 4: instant with
 * an array; 5: instant with two texts; track 3 below the process. */
static void open_bench(struct bench *t)
{
    memset(t, 0, sizeof *t);
    t->ring.size = SIZE;
    t->ring.tid = 7;
    t->ring.owner = 1;
    t->dict = sv_dict_new();
    sv_report_init(&t->report);
    sv_batch_init(&t->batch);
    t->drain = sv_drain_new(t->dict, &t->report, 42);
    shape_check_sink(&t->shape, sv_drain_source(t->drain)->gives, NULL);
    struct sv_buf names;
    sv_buf_init(&names, 1 << 20);
    const char *plain[] = {"cat", "plain", "f.c", "fn"},
               *args[] = {"cat", "args", "f.c", "fn", "k", "t"};
    const char *counter[] = {"cat", "level", "f.c", "fn", ""}, *track[] = {"row", ""};
    const char *list[] = {"cat", "list", "f.c", "fn", "values", "", ""};
    const uint8_t types[] = {STAVE_I_INT, STAVE_I_TEXT}, one[] = {STAVE_I_INT};
    const uint8_t texts[] = {STAVE_I_TEXT, STAVE_I_TEXT};
    const uint8_t array[] = {STAVE_I_ARRAY, STAVE_I_INT, STAVE_I_INT};
    put_name(&names,
             (struct sv_name_head){.kind = SV_NAME_SITE, .event = STAVE_KIND_BEGIN, .id = 1}, plain,
             4, NULL);
    put_name(&names,
             (struct sv_name_head){
                 .kind = SV_NAME_SITE, .event = STAVE_KIND_INSTANT, .n_args = 2, .id = 2},
             args, 6, types);
    put_name(&names,
             (struct sv_name_head){
                 .kind = SV_NAME_SITE, .event = STAVE_KIND_COUNTER, .n_args = 1, .id = 3},
             counter, 5, one);
    put_name(&names,
             (struct sv_name_head){
                 .kind = SV_NAME_SITE, .event = STAVE_KIND_INSTANT, .n_args = 3, .id = 4},
             list, 7, array);
    put_name(&names,
             (struct sv_name_head){
                 .kind = SV_NAME_SITE, .event = STAVE_KIND_INSTANT, .n_args = 2, .id = 5},
             args, 6, texts);
    put_name(&names,
             (struct sv_name_head){
                 .kind = SV_NAME_TRACK, .event = SV_TRACK_CUSTOM, .id = 3, .parent = 1},
             track, 2, NULL);
    CHECK_UINT_EQ(sv_drain_names(t->drain, names.data, names.len), names.len);
    CHECK_UINT_EQ(sv_drain_names(t->drain, names.data, names.len - 1) % 8,
                  0); /* a cut log: whole records only */
    sv_buf_fini(&names);
    struct sv_tick a = {.raw = 0, .boot_ns = 0}, b = {.raw = 1000000, .boot_ns = 1000000};
    sv_drain_tick(t->drain, &a);
    sv_drain_tick(t->drain, &b);
    t->ring.head = SIZE;
    sv_drain_add_ring(t->drain, &t->ring, t->data, SIZE, SIZE);
}

static void close_bench(struct bench *t)
{
    CHECK_STR_EQ(shape_check_end(&t->shape), "");
    sv_drain_free(t->drain);
    sv_batch_fini(&t->batch);
    sv_report_fini(&t->report);
    sv_dict_free(t->dict);
}

static void put(struct bench *t, const uint64_t *words, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t at = (t->ring.head + 8 * i) & (SIZE - 1);
        memcpy(t->data + at, &words[i], 8);
        memcpy(t->data + SIZE + at, &words[i], 8);
    }
    t->ring.head += 8 * n;
}

static int pull(struct bench *t)
{
    sv_batch_reset(&t->batch);
    sv_drain_round(t->drain);
    struct sv_source *s = sv_drain_source(t->drain);
    int n = s->next(s, &t->batch, NULL);
    shape_check_see(&t->shape, t->batch.events, t->batch.n);
    return n;
}

static const char *name_of(const struct bench *t, const struct sv_event *e)
{
    return sv_dict_text(t->dict, e->name).bytes;
}

TEST(turns_records_into_events)
{
    static struct bench t; /* aligned as rings are, more than ASan does for the stack */
    open_bench(&t);
    uint64_t text;
    memcpy(&text, "hello\0\0", 8);
    put(&t, (uint64_t[]){SV_WORD(1, STAVE_KIND_BEGIN, 0, 2), 100}, 2);
    put(&t, (uint64_t[]){SV_WORD(2, STAVE_KIND_INSTANT, 2, 5), 150, (uint64_t)-5, 5, text}, 5);
    put(&t, (uint64_t[]){SV_WORD(3, STAVE_KIND_COUNTER, 1, 3), 160, 77}, 3);
    put(&t, (uint64_t[]){SV_WORD(0, STAVE_KIND_END, 0, 2), 200}, 2);
    REQUIRE(pull(&t) == 4);
    const struct sv_event *e = t.batch.events;
    CHECK_INT_EQ(e[0].kind, SV_BEGIN);
    CHECK_STR_EQ(name_of(&t, &e[0]), "plain");
    CHECK_INT_EQ(e[0].ts_ns, 100);
    CHECK_INT_EQ(t.dict->tracks[e[0].track].tid, 7);
    CHECK_INT_EQ(e[1].kind, SV_INSTANT);
    REQUIRE(e[1].n_args == 2);
    CHECK_INT_EQ(e[1].args[0].i, -5);
    CHECK_INT_EQ(e[1].args[1].size, 5);
    CHECK_MEM_EQ(e[1].args[1].text, "hello", 5);
    CHECK_INT_EQ(e[2].kind, SV_COUNTER);
    CHECK_INT_EQ(e[2].args[0].i, 77);
    CHECK_INT_EQ(t.dict->tracks[e[2].track].kind, SV_TRACK_COUNTER);
    CHECK_INT_EQ(e[3].kind, SV_END);
    CHECK_INT_EQ(pull(&t), 0);
    close_bench(&t);
}

TEST(time_of_a_thread_never_goes_back)
{
    static struct bench t; /* aligned as rings are, more than ASan does for the stack */
    open_bench(&t);
    put(&t, (uint64_t[]){SV_WORD(1, STAVE_KIND_BEGIN, 0, 2), 300}, 2);
    put(&t, (uint64_t[]){SV_WORD(0, STAVE_KIND_END, 0, 2), 290}, 2);
    REQUIRE(pull(&t) == 2);
    CHECK_INT_EQ(t.batch.events[1].ts_ns, 300);
    close_bench(&t);
}

TEST(ends_without_a_begin_are_left_out)
{
    static struct bench t; /* aligned as rings are, more than ASan does for the stack */
    open_bench(&t);
    put(&t, (uint64_t[]){SV_WORD(0, STAVE_KIND_END, 0, 2), 10}, 2);
    CHECK_INT_EQ(pull(&t), 0);
    close_bench(&t);
}

TEST(damaged_records_end_their_ring_with_a_finding)
{
    static const uint64_t rows[][5] = {
        {0},                                                   /* zeros: a size of nothing */
        {SV_WORD(1, STAVE_KIND_BEGIN, 0, 1), 1},               /* shorter than a head */
        {SV_WORD(1, STAVE_KIND_BEGIN, 0, 60000), 1},           /* longer than what was committed */
        {SV_WORD(99, STAVE_KIND_BEGIN, 0, 2), 1},              /* a site that nobody registered */
        {SV_WORD(2, STAVE_KIND_INSTANT, 1, 5), 1, 2, 3, 4},    /* another number of arguments */
        {SV_WORD(2, STAVE_KIND_INSTANT, 2, 3), 1, 2},          /* arguments past its end */
        {SV_WORD(2, STAVE_KIND_INSTANT, 2, 5), 1, 2, 9999, 4}, /* a text past its end */
        {SV_WORD(2, STAVE_KIND_INSTANT, 2, 5), 1, 2, 9, 4},    /* by one byte */
        {SV_WORD(5, STAVE_KIND_INSTANT, 2, 5), 1, 8, 8, 4},    /* two texts, space for one */
        {SV_WORD(1, 200, 0, 2), 1},                            /* no such kind */
        {SV_WORD(1, STAVE_KIND_LOSS + 1, 0, 2), 1},
        {~(uint64_t)0, ~(uint64_t)0, ~(uint64_t)0},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("row %zu", i);
        static struct bench t;
        open_bench(&t);
        put(&t, (uint64_t[]){SV_WORD(1, STAVE_KIND_BEGIN, 0, 2), 1}, 2);
        put(&t, rows[i], 5);
        CHECK_INT_EQ(pull(&t), 1);
        CHECK_UINT_EQ(sv_report_count(&t.report, SV_DAMAGE), 1);
        CHECK_INT_EQ(pull(&t), 0);
        close_bench(&t);
    }
}

/* What was read before the damage stays: the next round does not go back behind it. */
TEST(time_does_not_go_back_after_damage)
{
    static struct bench t;
    open_bench(&t);
    uint64_t words[] = {SV_WORD(1, STAVE_KIND_BEGIN, 0, 2), 500, SV_WORD(0, STAVE_KIND_END, 0, 2),
                        600, SV_WORD(1, STAVE_KIND_BEGIN, 0, 1) /* too short */};
    put(&t, words, TEST_COUNT(words));
    CHECK_INT_EQ(pull(&t), 2);
    CHECK_UINT_EQ(sv_report_count(&t.report, SV_DAMAGE), 1);
    put(&t, words, 2);
    CHECK_INT_EQ(pull(&t), 1);
    CHECK_INT_EQ(t.batch.events[0].ts_ns, 600);
    close_bench(&t);
}

TEST(a_record_ends_where_the_ring_was_committed)
{
    static struct bench t; /* aligned as rings are, more than ASan does for the stack */
    open_bench(&t);
    put(&t, (uint64_t[]){SV_WORD(3, STAVE_KIND_COUNTER, 1, 3), 1, 2}, 3);
    t.ring.head -= 8; /* its last word is not committed */
    CHECK_INT_EQ(pull(&t), 0);
    CHECK_UINT_EQ(sv_report_count(&t.report, SV_DAMAGE), 1);
    close_bench(&t);
}

TEST(a_head_out_of_reach_is_damage)
{
    static const uint64_t heads[] = {SIZE + 3 * SIZE, SIZE + SIZE + 8, SIZE - 8, 0};
    for (size_t i = 0; i < TEST_COUNT(heads); i++) {
        CONTEXT("head %zu", i);
        static struct bench t; /* aligned as rings are, more than ASan does for the stack */
        open_bench(&t);
        for (size_t k = 0; k < SIZE / 16; k++)
            put(&t, (uint64_t[]){SV_WORD(1, STAVE_KIND_BEGIN, 0, 2), k}, 2);
        t.ring.head = heads[i];
        CHECK_INT_EQ(pull(&t), 0);
        CHECK_UINT_EQ(sv_report_count(&t.report, SV_DAMAGE), 1);
        close_bench(&t);
    }
}

TEST(a_full_ring_is_read_whole)
{
    static struct bench t; /* aligned as rings are, more than ASan does for the stack */
    open_bench(&t);
    for (size_t k = 0; k < SIZE / 16; k++)
        put(&t, (uint64_t[]){SV_WORD(1, STAVE_KIND_BEGIN, 0, 2), k}, 2);
    int n = pull(&t), all = n;
    struct sv_source *s = sv_drain_source(t.drain);
    for (; n > 0; all += n) {
        sv_batch_reset(&t.batch);
        n = s->next(s, &t.batch, NULL);
    }
    CHECK_INT_EQ(all, SIZE / 16);
    CHECK_UINT_EQ(sv_report_count(&t.report, SV_DAMAGE), 0);
    close_bench(&t);
}

TEST(arrays_hold_what_is_theirs)
{
    static const struct {
        uint64_t claimed;
        unsigned size; /* slots that follow and belong to the array */
    } rows[] = {{2, 2}, {1, 1}, {0, 0}, {3, 2}, {UINT64_MAX, 2}, {UINT64_MAX - 1, 2}};
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("row %zu", i);
        static struct bench t;
        open_bench(&t);
        put(&t, (uint64_t[]){SV_WORD(4, STAVE_KIND_INSTANT, 3, 5), 1, rows[i].claimed, 7, 8}, 5);
        REQUIRE(pull(&t) == 1);
        const struct sv_event *e = &t.batch.events[0];
        REQUIRE(e->n_args == 3 && e->args[0].type == SV_ARG_ARRAY);
        CHECK_UINT_EQ(e->args[0].size, rows[i].size);
        close_bench(&t);
    }
}

TEST(the_next_thread_of_a_ring_begins_anew)
{
    static struct bench t; /* aligned as rings are, more than ASan does for the stack */
    open_bench(&t);
    put(&t, (uint64_t[]){SV_WORD(1, STAVE_KIND_BEGIN, 0, 2), 1}, 2);
    REQUIRE(pull(&t) == 1);
    sv_track first = t.batch.events[0].track;
    t.ring.owner = 2;
    t.ring.tid = 8;
    put(&t, (uint64_t[]){SV_WORD(0, STAVE_KIND_END, 0, 2), 2}, 2);
    put(&t, (uint64_t[]){SV_WORD(1, STAVE_KIND_BEGIN, 0, 2), 3}, 2);
    REQUIRE(pull(&t) == 1); /* the end is not the first thread's */
    CHECK_INT_EQ(t.batch.events[0].kind, SV_BEGIN);
    CHECK(t.batch.events[0].track != first);
    close_bench(&t);
}

/* A recovery goes on where the growing file ends: slices that are open there end here. */
TEST(ends_of_slices_that_were_begun_before)
{
    static struct bench t; /* aligned as rings are, more than ASan does for the stack */
    open_bench(&t);
    put(&t, (uint64_t[]){SV_WORD(0, STAVE_KIND_END, 0, 2), 1}, 2);
    CHECK_INT_EQ(pull(&t), 0); /* whose ring it is is known now */
    sv_drain_resume(t.drain, 0, NULL);
    put(&t, (uint64_t[]){SV_WORD(0, STAVE_KIND_END, 0, 2), 2}, 2);
    put(&t, (uint64_t[]){SV_WORD(1, STAVE_KIND_BEGIN, 0, 2), 3}, 2);
    put(&t, (uint64_t[]){SV_WORD(0, STAVE_KIND_END, 0, 2), 4}, 2);
    put(&t, (uint64_t[]){SV_WORD(0, STAVE_KIND_END, 0, 2), 5}, 2);
    REQUIRE(pull(&t) == 4);
    CHECK_INT_EQ(t.batch.events[0].kind, SV_END);
    CHECK_INT_EQ(t.batch.events[1].kind, SV_BEGIN);
    CHECK_INT_EQ(t.batch.events[2].kind, SV_END);
    CHECK_INT_EQ(t.batch.events[3].kind, SV_END);
    close_bench(&t);
}

TEST(damaged_names_are_findings)
{
    static struct bench t; /* aligned as rings are, more than ASan does for the stack */
    open_bench(&t);
    struct sv_name_head rows[] = {
        {.size = 24, .kind = SV_NAME_SITE, .event = 1, .n_args = 9, .id = 5}, /* no texts at all */
        {.size = 24, .kind = SV_NAME_TRACK, .id = 0},
        {.size = 24, .kind = SV_NAME_TRACK, .id = UINT32_MAX},
        {.size = 24, .kind = SV_NAME_ORDER, .id = 77},
        {.size = 24, .kind = 99},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("row %zu", i);
        uint64_t before = sv_report_count(&t.report, SV_DAMAGE);
        CHECK_UINT_EQ(sv_drain_names(t.drain, (const uint8_t *)&rows[i], sizeof rows[i]), 24);
        CHECK_UINT_EQ(sv_report_count(&t.report, SV_DAMAGE), before + 1);
    }
    struct sv_name_head endless = {.size = 1 << 20, .kind = SV_NAME_SITE};
    CHECK_UINT_EQ(sv_drain_names(t.drain, (const uint8_t *)&endless, sizeof endless), 0);
    close_bench(&t);
}

TEST(random_bytes_never_hurt)
{
    uint64_t x = 88172645463325252u;
    for (int round = 0; round < 200; round++) {
        static struct bench t;
        open_bench(&t);
        for (int i = 0; i < 400; i++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            uint64_t word = x % 3 ? SV_WORD(x % 5, x % 7, x % 4, 2 + x % 6) : x;
            put(&t, &word, 1);
        }
        while (pull(&t) > 0)
            ;
        close_bench(&t);
    }
}

TEST(losses_are_reported_once)
{
    static struct bench t; /* aligned as rings are, more than ASan does for the stack */
    open_bench(&t);
    t.ring.lost_full = 12;
    REQUIRE(pull(&t) == 1);
    CHECK_INT_EQ(t.batch.events[0].kind, SV_LOSS);
    CHECK_INT_EQ(t.batch.events[0].args[0].i, 12);
    CHECK_STR_EQ(name_of(&t, &t.batch.events[0]), "ring full");
    CHECK_INT_EQ(pull(&t), 0);
    t.ring.lost_nested = 3;
    REQUIRE(pull(&t) == 1);
    CHECK_INT_EQ(t.batch.events[0].kind, SV_LOSS);
    CHECK_INT_EQ(t.batch.events[0].args[0].i, 3);
    CHECK_STR_EQ(name_of(&t, &t.batch.events[0]), "nested in a signal handler");
    CHECK_INT_EQ(pull(&t), 0);
    t.ring.lost_full = 14;
    t.ring.lost_nested = 4;
    REQUIRE(pull(&t) == 2);
    CHECK_INT_EQ(t.batch.events[0].args[0].i, 2);
    CHECK_INT_EQ(t.batch.events[1].args[0].i, 1);
    close_bench(&t);
}

/* Losses that do not fit into a batch come with the next one. */
TEST(losses_after_a_full_batch)
{
    for (size_t n = SV_BATCH - 10; n <= SV_BATCH + 2; n++) {
        static struct bench t;
        uint64_t lost = 0, events = 0;
        CONTEXT("%zu events", n);
        open_bench(&t);
        for (size_t k = 0; k < n; k++)
            put(&t, (uint64_t[]){SV_WORD(1, STAVE_KIND_BEGIN, 0, 2), k}, 2);
        t.ring.lost_full = 12;
        t.ring.lost_nested = 5;
        sv_drain_ring(t.drain, 0)->lost_overwritten = 7;
        struct sv_source *s = sv_drain_source(t.drain);
        sv_drain_round(t.drain);
        for (;;) {
            sv_batch_reset(&t.batch);
            if (s->next(s, &t.batch, NULL) == 0)
                break;
            CHECK(t.batch.n <= SV_BATCH);
            for (size_t i = 0; i < t.batch.n; i++) {
                events += t.batch.events[i].kind == SV_BEGIN;
                if (t.batch.events[i].kind == SV_LOSS)
                    lost = 100 * lost + (uint64_t)t.batch.events[i].args[0].i;
            }
        }
        CHECK_UINT_EQ(events, n);
        CHECK_UINT_EQ(lost, 71205);
        close_bench(&t);
    }
}

/* The finding says which ring, where, and once. */
TEST(damage_has_a_position)
{
    static struct bench t;
    open_bench(&t);
    put(&t, (uint64_t[]){SV_WORD(1, STAVE_KIND_BEGIN, 0, 2), 1}, 2);
    put(&t, (uint64_t[]){SV_WORD(99, STAVE_KIND_BEGIN, 0, 2), 1}, 2);
    CHECK_INT_EQ(pull(&t), 1);
    REQUIRE(t.report.n == 1);
    CHECK_STR_EQ(t.report.rows[0].what, "damaged ring record");
    CHECK_UINT_EQ(t.report.rows[0].count, 1);
    CHECK_INT_EQ(t.report.rows[0].first_pos, SIZE + 16);
    CHECK(strncmp(t.report.rows[0].first_detail, "ring 0:", 7) == 0);
    close_bench(&t);
}
