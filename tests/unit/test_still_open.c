/* Where one file of a recording ends and the next begins: open slices are continued at a time that
 * their ends can follow. */
#include "core/stream/still_open.h"
#include "tests/harness/test.h"

#include <string.h>

struct kept {
    struct sv_sink sink; /* first */
    struct sv_event events[16];
    size_t n;
};

static int keep(struct sv_sink *s, const struct sv_event *events, size_t n, struct sv_err *err)
{
    struct kept *k = (struct kept *)(void *)s;
    (void)err;
    for (size_t i = 0; i < n; i++) {
        REQUIRE(k->n < TEST_COUNT(k->events));
        k->events[k->n++] = events[i];
    }
    return 0;
}

static void note(struct sv_still *s, enum sv_kind kind, sv_track track, int64_t ts_ns)
{
    struct sv_arg value = {.type = SV_ARG_INT, .i = 7};
    struct sv_event e = {.kind = (uint8_t)kind, .track = track, .ts_ns = ts_ns};
    if (kind == SV_COUNTER) {
        e.args = &value;
        e.n_args = 1;
    }
    sv_still_note(s, &e, 1);
}

/* A thread's events may be written before earlier ones of another thread on the same track. */
TEST(an_instant_of_another_thread_does_not_delay_what_is_continued)
{
    struct sv_still s = {0};
    struct sv_err err;
    struct sv_dict *dict = sv_dict_new();
    struct kept old = {.sink = {.write = keep}}, next = {.sink = {.write = keep}};
    sv_track track = sv_dict_track(dict, 1, NULL), counter = sv_dict_track(dict, 2, NULL);
    note(&s, SV_BEGIN, track, 50);
    note(&s, SV_BEGIN, track, 100);
    note(&s, SV_END, track, 120);
    note(&s, SV_BEGIN, track, 130);
    note(&s, SV_INSTANT, track, 500); /* the end of the slice, at 140, is still to come */
    note(&s, SV_COUNTER, counter, 600);
    CHECK_INT_EQ(sv_still_end(&s, 10, 0, dict, &old.sink, &err), 0);
    CHECK_INT_EQ(sv_still_begin(&s, 10, 0, dict, &next.sink, &err), 0);
    CHECK_INT_EQ(old.n, 2);
    CHECK_INT_EQ(next.n, 3);
    for (size_t i = 0; i < 2; i++) {
        CHECK_INT_EQ(old.events[i].kind, SV_END);
        CHECK_INT_EQ(old.events[i].ts_ns, 130);
        CHECK_INT_EQ(next.events[i].kind, SV_BEGIN);
        CHECK_INT_EQ(next.events[i].ts_ns, 130);
    }
    CHECK_INT_EQ(next.events[2].kind, SV_COUNTER);
    CHECK_INT_EQ(next.events[2].ts_ns, 600);
    next.n = 0;
    CHECK_INT_EQ(sv_still_begin(&s, 1000, 0, dict, &next.sink, &err), 0);
    CHECK_INT_EQ(next.events[0].ts_ns, 1000);
    sv_still_fini(&s);
    sv_dict_free(dict);
}

/* What is behind the events that were given is not looked at. */
TEST(only_the_events_that_were_written_count)
{
    struct sv_still s = {0};
    struct sv_err err;
    struct sv_dict *dict = sv_dict_new();
    struct kept old = {.sink = {.write = keep}};
    sv_track track = sv_dict_track(dict, 1, NULL);
    struct sv_event events[] = {{.kind = SV_BEGIN, .track = track, .ts_ns = 1, .name = 5, .cat = 6},
                                {.kind = SV_BEGIN, .track = track, .ts_ns = 2},
                                {.kind = SV_END, .track = track, .ts_ns = 3}};
    sv_still_note(&s, events, 0);
    CHECK_INT_EQ(sv_still_end(&s, 0, 0, dict, &old.sink, &err), 0);
    CHECK_UINT_EQ(old.n, 0);
    sv_still_note(&s, events, 1);
    CHECK_INT_EQ(sv_still_end(&s, 0, 0, dict, &old.sink, &err), 0);
    CHECK_UINT_EQ(old.n, 1);
    CHECK_UINT_EQ(old.events[0].n_args, 0);
    old.n = 0;
    CHECK_INT_EQ(sv_still_begin(&s, 0, 3, dict, &old.sink, &err), 0);
    REQUIRE(old.n == 1);
    CHECK_UINT_EQ(old.events[0].name, 5);
    CHECK_UINT_EQ(old.events[0].cat, 6);
    CHECK_UINT_EQ(old.events[0].n_args, 2); /* that it is continued, and in which part */
    sv_still_note(&s, events + 2, 1);
    sv_still_note(&s, events + 2, 1); /* an end of nothing */
    old.n = 0;
    CHECK_INT_EQ(sv_still_begin(&s, 0, 0, dict, &old.sink, &err), 0);
    CHECK_UINT_EQ(old.n, 0);
    sv_still_fini(&s);
    sv_dict_free(dict);
}

/* The text is the caller's only while it is written. */
TEST(instants_that_hold_are_repeated)
{
    static const char *const names[] = {"model", "worker"};
    struct sv_still s = {0};
    struct sv_err err;
    struct sv_dict *dict = sv_dict_new();
    struct kept next = {.sink = {.write = keep}};
    sv_still_repeat(&s, dict, "life", names);
    sv_str cat = sv_dict_cstr(dict, "life"), key = sv_dict_cstr(dict, "name");
    char text[] = "bert";
    struct sv_arg args[] = {{.key = key, .type = SV_ARG_TEXT, .size = 4, .text = text}};
    struct sv_event e = {
        .kind = SV_INSTANT, .track = 3, .ts_ns = 5, .cat = cat, .n_args = 1, .args = args};
    e.name = sv_dict_cstr(dict, "enqueued");
    sv_still_note(&s, &e, 1);
    e.name = sv_dict_cstr(dict, "model");
    sv_still_note(&s, &e, 1);
    e.cat = key;
    sv_still_note(&s, &e, 1);
    text[0] = 'X';
    CHECK_INT_EQ(sv_still_begin(&s, 100, 2, dict, &next.sink, &err), 0);
    REQUIRE(next.n == 1);
    const struct sv_event *r = &next.events[0];
    CHECK(r->kind == SV_INSTANT && r->track == 3 && r->name == e.name && r->cat == cat);
    CHECK_INT_EQ(r->ts_ns, 100); /* in the part */
    REQUIRE(r->n_args == 2);
    CHECK(memcmp(r->args[0].text, "bert", 4) == 0);
    CHECK_INT_EQ(r->args[1].i, 2);
    sv_still_fini(&s);
    sv_dict_free(dict);
}

TEST(counters_have_their_last_number)
{
    static const struct {
        enum sv_arg_type type;
        bool is_number;
    } rows[] = {
        {SV_ARG_INT, true}, {SV_ARG_UINT, true}, {SV_ARG_DOUBLE, true}, {SV_ARG_BOOL, false}};
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct sv_still s = {0};
        struct sv_err err;
        struct sv_dict *dict = sv_dict_new();
        struct kept next = {.sink = {.write = keep}};
        sv_track track = sv_dict_track(dict, 1, NULL);
        struct sv_arg value = {.type = rows[i].type, .i = 7};
        struct sv_event e = {
            .kind = SV_COUNTER, .track = track, .ts_ns = 9, .args = &value, .n_args = 1};
        CONTEXT("row %zu", i);
        sv_still_note(&s, &e, 1);
        e.n_args = 0; /* says nothing */
        e.ts_ns = 20;
        sv_still_note(&s, &e, 1);
        CHECK_INT_EQ(sv_still_begin(&s, 0, 2, dict, &next.sink, &err), 0);
        CHECK_UINT_EQ(next.n, rows[i].is_number);
        if (next.n == 1) {
            CHECK_INT_EQ(next.events[0].ts_ns, 9);
            CHECK_UINT_EQ(next.events[0].n_args, 2);
            CHECK_INT_EQ(next.events[0].args[0].i, 7);
            CHECK_INT_EQ(next.events[0].args[1].i, 2);
        }
        sv_still_forget(&s, track);
        sv_still_forget(&s, track + 1); /* never seen */
        next.n = 0;
        CHECK_INT_EQ(sv_still_begin(&s, 0, 2, dict, &next.sink, &err), 0);
        CHECK_UINT_EQ(next.n, 0);
        sv_still_fini(&s);
        sv_dict_free(dict);
    }
}

static int count(struct sv_sink *s, const struct sv_event *events, size_t n, struct sv_err *err)
{
    struct kept *k = (struct kept *)(void *)s;
    (void)events;
    k->n += n;
    return k->n >= 300 ? sv_err_set(err, SV_EIO, SV_NO_POS, "full") : 0;
}

/* More than are written at once; a sink that fails is asked no more. */
TEST(many_open_slices_are_all_continued)
{
    struct sv_still s = {0};
    struct sv_err err = {0};
    struct sv_dict *dict = sv_dict_new();
    struct kept next = {.sink = {.write = count}};
    sv_track track = sv_dict_track(dict, 1, NULL);
    for (int i = 1; i <= 290; i++)
        note(&s, SV_BEGIN, track, i);
    CHECK_INT_EQ(sv_still_end(&s, 0, 1, dict, &next.sink, &err), 0);
    CHECK_UINT_EQ(next.n, 290);
    next.n = 0;
    for (int i = 1; i <= 200; i++)
        note(&s, SV_BEGIN, track, i);
    CHECK_INT_EQ(sv_still_begin(&s, 0, 1, dict, &next.sink, &err), SV_EIO);
    CHECK_UINT_EQ(next.n, 384);
    sv_still_fini(&s);
    sv_dict_free(dict);
}
