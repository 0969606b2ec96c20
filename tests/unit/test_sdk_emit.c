/* What call sites record, through ring and writer into the file; and that no space of the ring is
 * lost on the way. */
#include "tests/unit/sdk_scene.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

TEST(every_kind_of_argument)
{
    static struct sdk_scene s;
    sdk_start(&s, NULL);
    STAVE_INSTANT("c", "words", "int", -7, "uint", UINT64_MAX, "small", 7u, "double", 0.5, "true",
                  (bool)true, "false", (bool)false, "pointer", (void *)0x1234);
    STAVE_INSTANT("c", "mixed", "i", 1, "text", "12345678", "j", 2, "none", (const char *)NULL,
                  "empty", "", "odd", "123456789", "k", -3);
    STAVE_INSTANT_DYN("c", "dynamic", "i", 4, "t", "x");
    uint64_t flow = 77;
    STAVE_INSTANT("c", "arrows", STAVE_FLOW_OUT, flow, STAVE_FLOW_IN, (uint64_t)0,
                  STAVE_CORRELATION, (uint64_t)5);
    CHECK_STR_EQ(sdk_stop(&s),
                 "instant thread words c int=int:-7 uint=uint:18446744073709551615 small=int:7 "
                 "double=double:0.5 true=bool:1 false=bool:0 pointer=pointer:4660\n"
                 "instant thread mixed c i=int:1 text='12345678' j=int:2 none='(null)' empty='' "
                 "odd='123456789' k=int:-3\n"
                 "instant thread dynamic c i=int:4 t='x'\n"
                 "instant thread arrows c flow:77 correlation:5\n");
    sdk_done(&s);
}

/* Bytes of a record: head, words, and each text padded; of the arguments of its site only, and
 * never more than a record may have. */
TEST(bytes_of_a_record)
{
    static const uint8_t types[] = {STAVE_I_INT, STAVE_I_TEXT, STAVE_I_TEXT, STAVE_I_TEXT};
    static char large[SV_RECORD_BYTES_MAX];
    struct stave_site site = {.types = types, .flags = SV_SITE_TEXT};
    memset(large, 'x', sizeof large - 1);
    const uint64_t values[] = {(uintptr_t)large, (uintptr_t) "12345678", (uintptr_t) "123456789",
                               1};
    static const uint64_t bytes[] = {16, 24, 40, 64};
    for (unsigned n = 0; n < TEST_COUNT(bytes); n++) {
        site.n_args = (uint8_t)n;
        CHECK_UINT_EQ(sv_emit_bytes(&site, values), bytes[n]); /* the word behind them is no text */
    }
    site.flags = 0;
    site.n_args = 3;
    CHECK_UINT_EQ(sv_emit_bytes(&site, values), 40);
    site.flags = SV_SITE_TEXT;
    const uint64_t none[] = {1, 0, (uintptr_t) "", 1};
    CHECK_UINT_EQ(sv_emit_bytes(&site, none), 40);
    const uint64_t two[] = {1, (uintptr_t)large, (uintptr_t)large, 1};
    CHECK_UINT_EQ(sv_emit_bytes(&site, two), SV_RECORD_BYTES_MAX);
    site.n_args = 2;
    CHECK_UINT_EQ(sv_emit_bytes(&site, two), 32 + SV_RECORD_BYTES_MAX / 2);
}

TEST(slices_of_the_thread)
{
    static struct sdk_scene s;
    sdk_start(&s, NULL);
    {
        STAVE_SCOPE("c", "scope");
        STAVE_SCOPE("c", "with", "i", 1);
        CHECK_UINT_EQ(sdk_kept(), 32);
        STAVE_SCOPE_DYN("c", "named");
        CHECK_UINT_EQ(sdk_kept(), 48);
    }
    CHECK_UINT_EQ(sdk_kept(), 0);
    STAVE_BEGIN("c", "plain");
    STAVE_BEGIN("c", "args", "i", 2);
    CHECK_UINT_EQ(sdk_kept(), 32);
    STAVE_END("c", "result", 3);
    CHECK_UINT_EQ(sdk_kept(), 16);
    STAVE_END("c");
    CHECK_UINT_EQ(sdk_kept(), 0);
    STAVE_END("c");            /* of nothing */
    STAVE_END("c", "also", 1); /* likewise */
    CHECK_UINT_EQ(sdk_kept(), 0);
    CHECK_STR_EQ(sdk_stop(&s), "begin thread scope c\n"
                               "begin thread with c i=int:1\n"
                               "begin thread named c\n"
                               "end thread  \n"
                               "end thread  \n"
                               "end thread  \n"
                               "begin thread plain c\n"
                               "begin thread args c i=int:2\n"
                               "end thread   result=int:3\n"
                               "end thread  \n");
    sdk_done(&s);
}

/* A ring that is full, to the byte. A begin that does not fit has no end, whatever follows; an end
 * always fits, if need be without its arguments. */
TEST(a_full_ring)
{
    static struct sdk_scene s;
    char text[7000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    sdk_hear();
    sdk_start(&s, &(struct stave_options){.buffer_bytes = 16 << 10});
    stave_track_t row = stave_track(STAVE_PROCESS, "row");
    STAVE_BEGIN_ON(row, "c", "outer on");
    STAVE_BEGIN("c", "outer");
    stave_flush();
    sdk_hold();
    uint64_t begin = sv_self->head;
    STAVE_INSTANT("c", "fill", "text", text);
    CHECK_UINT_EQ(sv_self->head - begin, 16 + 8 + 7000);
    STAVE_INSTANT("c", "fill", "text", text);
    STAVE_BEGIN("c", "lost", "text", text);
    STAVE_BEGIN_ON(row, "c", "lost on", "text", text);
    STAVE_BEGIN("c", "inner");
    STAVE_BEGIN_ON(row, "c", "inner on");
    CHECK_UINT_EQ(sdk_kept(), 32);
    while (sv_self->head + 16 + sdk_kept() <= begin + (16 << 10))
        STAVE_INSTANT("c", "small");
    struct stave_counts n = {.size = sizeof n};
    stave_count(&n);
    CHECK_UINT_EQ(n.lost_full, 2);
    STAVE_INSTANT("c", "lost, too");
    STAVE_BEGIN("c", "lost, too");
    STAVE_COUNTER("c", "lost, too", 1);
    stave_count(&n);
    CHECK_UINT_EQ(n.lost_full, 5);
    STAVE_END("c");               /* of what was lost just now */
    STAVE_END("c", "text", text); /* of the inner one: as a plain end */
    CHECK_UINT_EQ(sdk_kept(), 16);
    STAVE_END("c"); /* of what was lost first */
    CHECK_UINT_EQ(sdk_kept(), 16);
    STAVE_END("c");
    CHECK_UINT_EQ(sdk_kept(), 0);
    CHECK(sv_self->head + 16 > sv_self->limit && sv_self->head <= sv_self->limit);
    sdk_release();
    stave_flush();
    STAVE_END_ON(row, "c"); /* inner on */
    STAVE_END_ON(row, "c"); /* lost on */
    stave_flush();          /* it ends nothing else, either */
    STAVE_INSTANT_ON(row, "c", "between");
    STAVE_END_ON(row, "c"); /* outer on */
    const char *lines = sdk_stop(&s), *after = strstr(lines, "begin thread inner c\n");
    REQUIRE(after != NULL);
    CHECK(strstr(lines, "lost") == NULL);
    size_t small = 0;
    for (const char *at = after; (at = strstr(at, "instant thread small c\n")); at++)
        small++;
    CHECK_UINT_EQ(small, (16384 - 2 * 7024 - 16 - 24 - 32) / 16);
    CHECK_STR_EQ(strstr(lines, "end thread"), "end thread  \nend thread  \n"
                                              "loss thread ring full  int:5\n"
                                              "end row  \ninstant row between c\nend row  \n");
    stave_count(&n);
    CHECK_UINT_EQ(n.lost_full, 5);
    CHECK_UINT_EQ(n.lost_nested + n.lost_ring + n.lost_output + n.lost_overwritten, 0);
    sdk_done(&s);
    CHECK(strstr(sdk_heard(), ": 5 events were lost, 5 of them because rings were full: ") != NULL);
}

/* The space that ends take is given back, so that a small ring takes any number of slices. */
TEST(no_space_is_lost_with_many_slices)
{
    static struct sdk_scene s;
    sdk_start(&s, &(struct stave_options){.buffer_bytes = 16 << 10, .full = STAVE_FULL_BLOCK});
    stave_track_t row = stave_track(STAVE_PROCESS, "row");
    for (int i = 0; i < 1500; i++) {
        STAVE_BEGIN("c", "hand", "i", i);
        STAVE_END("c", "i", i);
        STAVE_SCOPE_ON(row, "c", "on", "i", i);
        STAVE_SCOPE_ON(STAVE_THREAD, "c", "own");
    }
    CHECK_UINT_EQ(sdk_kept(), 0);
    struct stave_counts n = {.size = sizeof n};
    sdk_stop(&s);
    stave_count(&n);
    CHECK_UINT_EQ(n.lost_full + n.lost_nested + n.lost_ring + n.lost_output, 0);
    CHECK_UINT_EQ(n.events, 9000);
    CHECK_UINT_EQ(s.file.got.n, 9000);
    sdk_done(&s);
}

TEST(slices_on_tracks)
{
    static struct sdk_scene s;
    sdk_start(&s, NULL);
    stave_track_t row = stave_track(STAVE_PROCESS, "row"), below = stave_track(row, "below");
    STAVE_BEGIN_ON(row, "c", "outer", "i", 1, "t", "text");
    {
        STAVE_SCOPE_ON(row, "c", "scope", "i", 2);
        CHECK_UINT_EQ(sdk_kept(), 32);
        STAVE_SCOPE_ON(STAVE_THREAD, "c", "own scope", "i", 3);
        CHECK_UINT_EQ(sdk_kept(), 48);
        STAVE_BEGIN_ON(below, "c", "other row");
        STAVE_BEGIN_ON(STAVE_THREAD, "c", "own", "i", 4);
        CHECK_UINT_EQ(sdk_kept(), 64);
        STAVE_END_ON(STAVE_THREAD, "c", "i", 5);
        CHECK_UINT_EQ(sdk_kept(), 48);
    }
    CHECK_UINT_EQ(sdk_kept(), 0);
    STAVE_INSTANT_ON(row, "c", "on row", "i", 6);
    STAVE_END_ON(row, "c", "i", 7);
    STAVE_END_ON(below, "c");
    STAVE_END_ON(below, "c"); /* of nothing */
    CHECK_STR_EQ(sdk_stop(&s), "begin row outer c i=int:1 t='text'\n"
                               "begin row scope c i=int:2\n"
                               "begin thread own scope c i=int:3\n"
                               "begin row/below other row c\n"
                               "begin thread own c i=int:4\n"
                               "end thread   i=int:5\n"
                               "end thread  \n"
                               "end row  \n"
                               "instant row on row c i=int:6\n"
                               "end row   i=int:7\n"
                               "end row/below  \n");
    sdk_done(&s);
}

static struct stave_event make_event(enum stave_kind kind, stave_track_t track, const char *name,
                                     const struct stave_args *args)
{
    return (struct stave_event){.size = sizeof(struct stave_event),
                                .kind = kind,
                                .track = track,
                                .category = "c",
                                .name = name,
                                .args = args};
}

/* What bindings call. */
TEST(events_known_at_run_time)
{
    static struct sdk_scene s;
    static struct stave_args args;
    sdk_start(&s, &(struct stave_options){.categories = "c"});
    stave_track_t row = stave_track(STAVE_PROCESS, "row");
    stave_track_t level = stave_counter(STAVE_PROCESS, "level", "B");
    stave_args_init(&args);
    stave_args_int(&args, "i", 1);
    stave_args_list(&args, "list");
    stave_args_text(&args, NULL, "a");
    stave_args_end(&args);
    const stave_track_t tracks[] = {STAVE_THREAD, row};
    for (int i = 0; i < 2; i++) {
        struct stave_event e = make_event(STAVE_KIND_BEGIN, tracks[i], "begin", &args);
        CHECK(stave_emit(&e));
        CHECK_UINT_EQ(sdk_kept(), i ? 0 : 16);
        e = make_event(STAVE_KIND_INSTANT, tracks[i], "instant", i ? NULL : &args);
        CHECK(stave_emit(&e));
        e = make_event(STAVE_KIND_END, tracks[i], NULL, i ? &args : NULL);
        CHECK(stave_emit(&e));
        CHECK_UINT_EQ(sdk_kept(), 0);
    }
    struct stave_event e = make_event(STAVE_KIND_COUNTER, level, NULL, NULL);
    e.value = 2.5;
    CHECK(stave_emit(&e));
    e = make_event(STAVE_KIND_COMPLETE, stave_track(STAVE_PROCESS, "whole row"), "whole", &args);
    e.start_ns = stave_now_ns() - 5000;
    e.dur_ns = 4000;
    CHECK(stave_emit(&e));
    e.category = "off";
    CHECK(!stave_emit(&e));
    CHECK_UINT_EQ(stave_slice_begin(&e), 0);
    e.category = NULL;
    CHECK(!stave_emit(&e));
    e = make_event(STAVE_KIND_LOSS, row, "loss", NULL);
    CHECK(!stave_emit(&e));
    e = make_event(STAVE_KIND_LOSS + 1, row, "no kind", NULL);
    CHECK(!stave_emit(&e));
    CHECK_STR_EQ(sdk_stop(&s), "begin thread begin c i=int:1 list=array(1) 'a'\n"
                               "instant thread instant c i=int:1 list=array(1) 'a'\n"
                               "end thread  \n"
                               "begin row begin c i=int:1 list=array(1) 'a'\n"
                               "instant row instant c\n"
                               "end row   i=int:1 list=array(1) 'a'\n"
                               "counter level   double:2.5\n"
                               "begin whole row whole c i=int:1 list=array(1) 'a'\n"
                               "end whole row  \n");
    e = make_event(STAVE_KIND_INSTANT, row, "late", NULL);
    CHECK(!stave_emit(&e));
    sdk_done(&s);
}

/* Slices that are ended by their number, in any order and by any thread. */
static uint64_t numbers[3];

static void *end_second(void *track)
{
    struct stave_event e = make_event(STAVE_KIND_END, *(stave_track_t *)track, NULL, NULL);
    stave_slice_end(numbers[1], &e);
    return NULL;
}

TEST(slices_that_end_by_number)
{
    static struct sdk_scene s;
    static struct stave_args args;
    sdk_start(&s, NULL);
    stave_track_t row = stave_track(STAVE_PROCESS, "row");
    const char *names[] = {"first", "second", "third"};
    sdk_hold(); /* one round for all of it: ring after ring */
    for (int i = 0; i < 3; i++) {
        struct stave_event e = make_event(STAVE_KIND_BEGIN, row, names[i], NULL);
        numbers[i] = stave_slice_begin(&e);
        CHECK(numbers[i] != 0);
    }
    CHECK(numbers[0] != numbers[1] && numbers[1] != numbers[2]);
    CHECK_UINT_EQ(sv_self->n_open_on, 3);
    struct stave_event end = make_event(STAVE_KIND_END, row, NULL, NULL);
    stave_slice_end(numbers[0], &end);
    CHECK_UINT_EQ(sv_self->n_open_on, 2);
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, end_second, &row) == 0);
    pthread_join(thread, NULL);
    stave_args_init(&args);
    stave_args_int(&args, "of", 3);
    end.args = &args;
    stave_slice_end(numbers[2], &end);
    stave_slice_end(0, &end);
    struct stave_event own = make_event(STAVE_KIND_BEGIN, STAVE_THREAD, "of the process", NULL);
    uint64_t n = stave_slice_begin(&own);
    end.track = STAVE_THREAD;
    stave_slice_end(n, &end);
    sdk_release();
    const char *text = sdk_stop(&s);
    CHECK_STR_EQ(text, "begin row first c\n"
                       "begin row/row second c\n"
                       "begin row/row' third c\n"
                       "end row  \n"
                       "end row/row'   of=int:3\n"
                       "begin process of the process c\n"
                       "end process   of=int:3\n"
                       "end row/row  \n");
    stave_slice_end(numbers[2], &end); /* nothing runs */
    sdk_done(&s);
}

/* What an earlier session began is not ended in a later one. */
TEST(slices_of_an_earlier_session)
{
    static struct sdk_scene s;
    sdk_start(&s, NULL);
    stave_track_t row = stave_track(STAVE_PROCESS, "row");
    STAVE_BEGIN_ON(row, "c", "old");
    STAVE_BEGIN("c", "old");
    {
        STAVE_SCOPE("c", "old scope");
        STAVE_SCOPE_ON(row, "c", "old scope on");
        CHECK_INT_EQ(stave_stop(), 0);
        struct stave_options o = {.size = sizeof o, .out = test_scratch("second.pftrace")};
        REQUIRE(stave_start(&o, NULL) == 0);
        STAVE_INSTANT("c", "first");
    }
    STAVE_BEGIN_ON(row, "c", "new");
    STAVE_END_ON(row, "c");
    STAVE_END_ON(row, "c");
    STAVE_INSTANT("c", "last");
    CHECK_INT_EQ(stave_stop(), 0);
    CHECK_STR_EQ(sdk_read(&s, test_scratch("second.pftrace")), "instant thread first c\n"
                                                               "begin row new c\n"
                                                               "end row  \n"
                                                               "instant thread last c\n");
    sdk_done(&s);
}

/* A thread remembers so many open slices; with more of them the oldest is forgotten, and the end
 * of it closes it nevertheless. */
TEST(more_open_slices_than_a_thread_remembers)
{
    static struct sdk_scene s;
    sdk_start(&s, NULL);
    stave_track_t rows[SV_OPEN_ON_MAX + 2];
    for (int i = 0; i < SV_OPEN_ON_MAX + 2; i++) {
        char name[16];
        snprintf(name, sizeof name, "row %d", i);
        rows[i] = stave_track(STAVE_PROCESS, name);
        STAVE_BEGIN_ON(rows[i], "c", "slice");
        CHECK_UINT_EQ(sv_self->n_open_on, i < SV_OPEN_ON_MAX ? i + 1 : SV_OPEN_ON_MAX);
    }
    CHECK_UINT_EQ(sv_self->open_on[0].track, rows[2]);
    CHECK_UINT_EQ(sv_self->open_on[SV_OPEN_ON_MAX - 1].track, rows[SV_OPEN_ON_MAX + 1]);
    for (int i = 0; i < SV_OPEN_ON_MAX + 2; i++)
        STAVE_END_ON(rows[i], "c");
    CHECK_UINT_EQ(sv_self->n_open_on, 0);
    sdk_stop(&s);
    size_t ends = 0;
    for (size_t i = 0; i < s.file.got.n; i++)
        ends += s.file.got.events[i].kind == SV_END;
    CHECK_UINT_EQ(ends, SV_OPEN_ON_MAX + 2);
    sdk_done(&s);
}

TEST(counters)
{
    static struct sdk_scene s;
    sdk_start(&s, NULL);
    stave_track_t level = stave_counter(STAVE_PROCESS, "level", "B");
    CHECK_UINT_EQ(stave_counter(STAVE_PROCESS, "level", "other unit"), level);
    STAVE_COUNTER("c", "int", -5);
    STAVE_COUNTER("c", "uint", UINT64_MAX);
    STAVE_COUNTER("c", "double", 1.5);
    STAVE_COUNTER_ON(level, "c", 7);
    for (int i = 0; i < 3; i++)
        STAVE_COUNTER_ADD("c", "sum", 3 - i);
    STAVE_COUNTER_ADD("c", "sum", 10); /* another place, the same counter */
    STAVE_COUNTER_ADD("c", "other", -1);
    CHECK_STR_EQ(sdk_stop(&s), "counter int   int:-5\n"
                               "counter uint   double:1.8446744073709552e+19\n"
                               "counter double   double:1.5\n"
                               "counter level   int:7\n"
                               "counter sum   int:3\n"
                               "counter sum   int:5\n"
                               "counter sum   int:6\n"
                               "counter sum   int:16\n"
                               "counter other   int:-1\n");
    sdk_done(&s);
}

/* Slices that were measured elsewhere: nested ones share a row, others do not; times that are none
 * are losses. */
TEST(slices_with_given_times)
{
    static struct sdk_scene s;
    sdk_start(&s, NULL);
    stave_track_t row = stave_track(STAVE_PROCESS, "row");
    int64_t now = stave_now_ns() - 1000000;
    stave_complete(row, "c", "outer", now, 500, "i", 1);
    stave_complete(row, "c", "inner", now + 100, 100, "i", 2);
    stave_complete(row, "c", "crosses", now + 300, 500, "i", 3);
    stave_complete(row, "c", "negative", now + 2000, -5, "i", 4);
    stave_complete(row, "c", "too late", INT64_MAX - 5, 10, "i", 5);
    stave_complete(row, "c", "the last", INT64_MAX - 10, 10, "i", 6);
    CHECK_STR_EQ(sdk_stop(&s), "begin row outer c i=int:1\n"
                               "end row  \n"
                               "begin row inner c i=int:2\n"
                               "end row  \n"
                               "begin row/row crosses c i=int:3\n"
                               "end row/row  \n"
                               "begin row negative c i=int:4\n"
                               "end row  \n"
                               "loss row time out of range  int:1\n"
                               "loss row time out of range  int:1\n");
    for (size_t i = 0; i < s.file.got.n; i++) {
        const struct sv_event *e = &s.file.got.events[i];
        if (e->kind == SV_BEGIN && e->n_args == 1 && e->args[0].i <= 4) {
            static const int64_t begins[] = {0, 0, 100, 300, 2000};
            CHECK_INT_EQ(e->ts_ns - now, begins[e->args[0].i]);
        }
    }
    sdk_done(&s);
}
