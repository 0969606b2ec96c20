/* The Perfetto writer: what it writes, read back by a small decoder that follows Perfetto's
 * importer. */
#include "tests/unit/pfrig.h"

/* ---- tests ---- */

TEST(slices_instants_and_their_tracks)
{
    start();
    sv_track p = process(50, 7, "prog"), t = thread(51, p, 8, "main");
    begin(1000, t, "a", "cat");
    begin(1010, t, "b", NULL);
    end(1020, t);
    done(event(SV_INSTANT, 1030, t, "now", "cat,two"));
    end(1040, t);
    CHECK_STR_EQ(finish(), "sync\n"
                           "track 1=50 3={ 1=7 6=\"prog\" }\n"
                           "track 1=51 5=50 4={ 1=7 2=8 5=\"main\" }\n"
                           "1000 51 BEGIN n:a c:cat\n"
                           "1010 51 BEGIN n:b\n"
                           "1020 51 END\n"
                           "1030 51 INSTANT n:now c:cat,two\n"
                           "1040 51 END\n");
    stop();
}

TEST(known_names_make_the_smallest_packets)
{
    static const uint8_t expected[] = {
        0x0a, 12, 0x5a, 6, 0x48, 1, 0x50, 1, 0x18, 1, 0x40, 5, 0x50, 2, /* begin: 14 bytes */
        0x0a, 8,  0x5a, 2, 0x48, 2, 0x40, 7, 0x50, 2,                   /* end: 10 bytes */
    };
    start();
    sv_track t = thread(51, process(50, 7, "p"), 8, "t");
    begin(1000, t, "a", "c");
    end(1010, t);
    begin(1015, t, "a", "c");
    end(1022, t);
    finish();
    REQUIRE(g.file.len > sizeof expected);
    CHECK_MEM_EQ(g.file.data + g.file.len - sizeof expected, expected, sizeof expected);
    stop();
}

/* The same events from shapes and by the long way, forced by an argument that has no shape. */
TEST(shapes_and_long_way_agree)
{
    struct sv_buf texts[2];
    for (int way = 0; way < 2; way++) {
        start();
        sv_track t = thread(51, process(50, 7, "p"), 8, "t");
        sv_track c = track(52, SV_TRACK_COUNTER, t, "ctr");
        for (int i = 0; i < 40; i++) {
            struct sv_event *e = event(SV_BEGIN, 1000 + i * 100, t, i & 1 ? "a" : "b", "c");
            arg_i("int", -i);
            arg("flag", SV_ARG_BOOL)->i = i & 1;
            arg("dbl", SV_ARG_DOUBLE)->d = i * 0.5;
            if (way)
                arg("none", SV_ARG_NULL);
            done(e);
            e = event(SV_COUNTER, 1000 + i * 100, c, NULL, NULL);
            if (i & 1)
                arg_i(NULL, i * 1000);
            else
                arg(NULL, SV_ARG_DOUBLE)->d = i;
            if (way)
                arg("none", SV_ARG_NULL);
            done(e);
            e = event(SV_END, 1050 + i * 100, t, NULL, NULL);
            if (way)
                arg("none", SV_ARG_NULL);
            done(e);
        }
        finish();
        texts[way] = g.text;
        sv_buf_init(&g.text, 1);
        stop();
    }
    char *longer = (char *)(uintptr_t)sv_buf_cstr(&texts[1]);
    for (char *p; (p = strstr(longer, " none=null"));)
        memmove(p, p + 10, strlen(p + 10) + 1);
    CHECK_STR_EQ(sv_buf_cstr(&texts[0]), longer);
    sv_buf_fini(&texts[0]);
    sv_buf_fini(&texts[1]);
}

TEST(arguments_of_every_type)
{
    start();
    sv_track t = track(51, SV_TRACK_CUSTOM, 0, "t");
    struct sv_event *e = event(SV_BEGIN, 1, t, "s", NULL);
    arg_i("i", INT64_MIN);
    arg_u("u", SV_ARG_UINT, UINT64_MAX);
    arg("d", SV_ARG_DOUBLE)->d = 0.1;
    arg("inf", SV_ARG_DOUBLE)->d = -INFINITY;
    arg_u("p", SV_ARG_POINTER, 0xabc);
    arg("yes", SV_ARG_BOOL)->i = 1;
    arg("null", SV_ARG_NULL);
    arg_t("bytes", "\xff\0\n", 3);
    arg_s("empty", "");
    arg_i(NULL, 5);
    size_t dict = sv_batch_open(&g.batch, str("dict"), SV_ARG_DICT);
    arg_i("x", 1);
    size_t array = sv_batch_open(&g.batch, str("list"), SV_ARG_ARRAY);
    arg_i(NULL, 1);
    arg(NULL, SV_ARG_NULL);
    sv_batch_close(&g.batch, sv_batch_open(&g.batch, 0, SV_ARG_DICT));
    sv_batch_close(&g.batch, array);
    arg_i("y", 2);
    sv_batch_close(&g.batch, dict);
    sv_batch_close(&g.batch, sv_batch_open(&g.batch, str("none"), SV_ARG_ARRAY));
    done(e);
    e = event(SV_END, 2, t, NULL, NULL);
    arg_i("late", 3);
    done(e);
    CHECK_STR_EQ(events_only(finish()),
                 "1 51 BEGIN n:s i=-9223372036854775808 u=18446744073709551615u d=0.1d inf=-infd "
                 "p=0xabc yes=true null=null bytes=\"\\\\xff\\x00\\n\" empty=\"\" =5 "
                 "dict={x=1}{list=[1][null][json:{}]}{y=2} none=json:[]\n"
                 "2 51 END late=3\n");
    stop();
}

TEST(nesting_deeper_than_readers_take_is_cut_and_reported)
{
    size_t opened[100];
    start();
    struct sv_event *e = event(SV_INSTANT, 1, track(51, SV_TRACK_CUSTOM, 0, "t"), "s", NULL);
    for (int i = 0; i < 100; i++)
        opened[i] = sv_batch_open(&g.batch, str("k"), SV_ARG_DICT);
    arg_i("bottom", 1);
    for (int i = 100; i-- > 0;)
        sv_batch_close(&g.batch, opened[i]);
    arg_i("after", 2);
    done(e);
    const char *text = events_only(finish());
    CHECK_UINT_EQ(count(text, "{k="), 64);
    CHECK_UINT_EQ(count(text, "bottom"), 0);
    CHECK_UINT_EQ(count(text, " after=2"), 1);
    CHECK_UINT_EQ(sv_report_count(&g.report, SV_SKIPPED), 1);
    stop();
}

TEST(texts_become_numbers_when_they_repeat)
{
    start();
    sv_track t = track(51, SV_TRACK_THREAD, 0, "t");
    char unique[40];
    for (int i = 0; i < 4; i++) {
        struct sv_event *e = event(SV_INSTANT, i, t, "s", NULL);
        arg_s("same", "again and again");
        snprintf(unique, sizeof unique, "only once %d", i);
        arg_s("other", unique);
        arg_s("short", "abc");
        done(e);
    }
    CHECK_STR_EQ(
        events_only(finish()),
        "0 51 INSTANT n:s same=\"again and again\" other=\"only once 0\" short=\"abc\"\n"
        "1 51 INSTANT n:s same=\"again and again\"# other=\"only once 1\" short=\"abc\"\n"
        "2 51 INSTANT n:s same=\"again and again\"# other=\"only once 2\" short=\"abc\"\n"
        "3 51 INSTANT n:s same=\"again and again\"# other=\"only once 3\" short=\"abc\"\n");
    stop();
}

/* More texts than the table remembers: still right, and the memory stays. */
TEST(a_flood_of_texts_is_written_right)
{
    start();
    g.options.resync_bytes = 100000; /* the decoder knows 4096 numbers */
    sv_track t = track(51, SV_TRACK_THREAD, 0, "t");
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 20000; i++) {
            char text[40];
            snprintf(text, sizeof text, "text number %d", i);
            struct sv_event *e = event(SV_INSTANT, round * 100000 + i, t, "s", NULL);
            arg_s("k", text);
            done(e);
        }
    }
    const char *text = finish();
    for (int i = 0; i < 20000; i += 777) {
        char want[60];
        snprintf(want, sizeof want, "k=\"text number %d\"", i);
        CHECK_UINT_EQ(count(text, want), 3);
    }
    stop();
}

TEST(source_stack_and_correlation)
{
    start();
    sv_track t = track(51, SV_TRACK_CUSTOM, 0, "t");
    for (int i = 0; i < 2; i++) {
        struct sv_event *e = event(SV_BEGIN, i, t, "s", NULL);
        size_t opened = sv_batch_open(&g.batch, 0, SV_ARG_SOURCE);
        arg_s("file", "a.c");
        arg_i("line", 42);
        arg_s("function", "f");
        sv_batch_close(&g.batch, opened);
        opened = sv_batch_open(&g.batch, 0, SV_ARG_STACK);
        arg_s(NULL, "main");
        arg_s(NULL, "f");
        sv_batch_close(&g.batch, opened);
        arg_u(NULL, SV_ARG_CORRELATION, 77);
        arg_u(NULL, SV_ARG_CORRELATION, 78);
        done(e);
    }
    CHECK_STR_EQ(events_only(finish()), "0 51 BEGIN n:s source=a.c:42:f stack=main;f; corr=77\n"
                                        "1 51 BEGIN n:s source=a.c:42:f stack=main;f; corr=77\n");
    CHECK_UINT_EQ(sv_report_count(&g.report, SV_SKIPPED), 2);
    stop();
}

/* ---- flows ---- */

TEST(flows_that_begin_fan_out_and_begin_anew)
{
    start();
    sv_track t = track(51, SV_TRACK_CUSTOM, 0, "t");
    static const struct {
        unsigned type[3];
        uint64_t id[3];
        const char *expected;
    } rows[] = {
        {{SV_ARG_FLOW_BEGIN}, {5}, " bind=5 dir=2"},
        {{SV_ARG_FLOW_END}, {5}, " bind=5 dir=1"},
        {{SV_ARG_FLOW_END}, {5}, " bind=5 dir=1"},
        {{SV_ARG_FLOW}, {5}, " flow=5"},
        {{SV_ARG_FLOW_BEGIN}, {5}, " bind=11400714819323198490 dir=2"},
        {{SV_ARG_FLOW_END}, {5}, " bind=11400714819323198490 dir=1"},
        {{SV_ARG_FLOW}, {6}, " flow=6"},
        {{SV_ARG_FLOW_END}, {6}, " endflow=6"},
        {{SV_ARG_FLOW_END}, {99}, " endflow=99"},
        {{SV_ARG_FLOW_BEGIN, SV_ARG_FLOW_BEGIN}, {10, 11}, " flow=11 bind=10 dir=2"},
        {{SV_ARG_FLOW_BEGIN, SV_ARG_FLOW_END, SV_ARG_FLOW_END},
         {12, 10, 11},
         " flow=12 endflow=11 bind=10 dir=1"},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct sv_event *e = event(SV_INSTANT, (int64_t)i, t, "s", NULL);
        for (int k = 0; k < 3 && rows[i].type[k]; k++)
            arg_u(NULL, rows[i].type[k], rows[i].id[k]);
        done(e);
    }
    const char *line = events_only(finish());
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("row %zu", i);
        char expected[200], got[200];
        snprintf(expected, sizeof expected, "%zu 51 INSTANT n:s%s", i, rows[i].expected);
        snprintf(got, sizeof got, "%.*s", (int)strcspn(line, "\n"), line);
        CHECK_STR_EQ(got, expected);
        line += strcspn(line, "\n") + 1;
    }
    stop();
}

static void flow_point(int64_t ts_ns, sv_track t, unsigned type, uint64_t id, unsigned flags)
{
    struct sv_event *e = event(SV_FLOW, ts_ns, t, "f", "c");
    e->flags = (uint8_t)flags;
    arg_u(NULL, type, id);
    done(e);
}

TEST(flow_points_keep_their_binding)
{
    start();
    sv_track t = track(51, SV_TRACK_LANE, 0, "t");
    begin(0, t, "a", NULL);
    flow_point(1, t, SV_ARG_FLOW_BEGIN, 3, 0);
    flow_point(2, t, SV_ARG_FLOW, 3, 0);
    flow_point(3, t, SV_ARG_FLOW_END, 3, 0);
    flow_point(4, t, SV_ARG_FLOW_END, 3, SV_BIND_NEXT);
    flow_point(5, t, SV_ARG_FLOW, 4, 0); /* the first step is a start */
    flow_point(6, t, SV_ARG_FLOW, 4, 0);
    flow_point(7, t, SV_ARG_FLOW_BEGIN, 3, 0); /* begins anew */
    end(8, t);
    flow_point(9, t, SV_ARG_FLOW_BEGIN, 3, 0); /* outside of every slice: begins nothing */
    struct sv_event *e = event(SV_FLOW, 10, t, "none", NULL); /* no flow: skipped */
    done(e);
    CHECK_STR_EQ(finish(), "sync\n"
                           "track 1=51 2=\"t\" 15=2 990={ 1=8 5=1 }\n"
                           "0 51 BEGIN n:a\n"
                           "1 51 - n:f c:c ph=s id=3\n"
                           "2 51 - n:f c:c ph=t id=3\n"
                           "3 51 - n:f c:c ph=f id=3 enclosing\n"
                           "4 51 - n:f c:c ph=f id=3\n"
                           "5 51 - n:f c:c ph=s id=4\n"
                           "6 51 - n:f c:c ph=t id=4\n"
                           "7 51 - n:f c:c ph=s id=11400714819323198488\n"
                           "8 51 END\n"
                           "9 51 - n:f c:c ph=s id=11400714819323198488\n");
    CHECK_UINT_EQ(sv_report_count(&g.report, SV_SKIPPED), 1);
    stop();
}

/* An end that closes nothing does not count: the next flow is outside of every slice and begins
 * nothing. */
TEST(ends_without_a_begin_do_not_count)
{
    start();
    sv_track t = thread(51, process(50, 7, "p"), 8, "t");
    begin(0, t, "a", NULL);
    flow_point(1, t, SV_ARG_FLOW_BEGIN, 3, 0);
    for (int i = 2; i < 6; i++)
        end(i, t);
    flow_point(6, t, SV_ARG_FLOW_BEGIN, 3, 0);
    const char *text = events_only(finish());
    CHECK(strstr(text, "5 51 END\n6 51 - n:f c:c ph=s id=3\n"));
    stop();
}

/* ---- counters, thread time, scopes ---- */

TEST(counters_and_their_units)
{
    start();
    sv_track c[4];
    static const char *const units[] = {"ns", "bytes", "W", NULL};
    for (unsigned i = 0; i < 4; i++) {
        c[i] = track(60 + i, SV_TRACK_COUNTER, 0, "c");
        info(c[i])->unit = str(units[i]);
    }
    info(c[1])->multiplier = 1024;
    info(c[2])->cat = str("power,gpu");
    info(c[3])->is_incremental = true;
    for (unsigned i = 0; i < 4; i++) {
        struct sv_event *e = event(SV_COUNTER, 5, c[i], NULL, NULL);
        if (i == 1)
            arg("", SV_ARG_DOUBLE)->d = 2.5;
        else
            arg_i(NULL, i == 0 ? INT64_MAX : -1);
        if (i == 2)
            arg_i("extra", 1);
        done(e);
    }
    done(event(SV_COUNTER, 6, c[0], NULL, NULL)); /* no value */
    struct sv_event *e = event(SV_COUNTER, 6, track(70, SV_TRACK_CUSTOM, 0, "x"), NULL, NULL);
    arg_i(NULL, 1);
    done(e); /* not a counter's track */
    CHECK_STR_EQ(finish(), "sync\n"
                           "track 1=60 2=\"c\" 8={ 3=1 }\n5 60 COUNTER value=9223372036854775807\n"
                           "track 1=61 2=\"c\" 8={ 3=3 4=1024 }\n5 61 COUNTER value=2.5d\n"
                           "track 1=62 2=\"c\" 8={ 2=\"power,gpu\" 6=\"W\" }\n"
                           "5 62 COUNTER value=-1 extra=1\n"
                           "track 1=63 2=\"c\" 8={ } 990={ 5=2 }\n5 63 COUNTER value=-1\n"
                           "track 1=70 2=\"x\"\n");
    CHECK_UINT_EQ(sv_report_count(&g.report, SV_SKIPPED), 2);
    stop();
}

TEST(thread_time_stands_at_begin_and_end)
{
    start();
    sv_track t = thread(51, process(50, 7, "p"), 8, "t");
    struct sv_event *e = event(SV_BEGIN, 1, t, "s", NULL);
    arg_u(NULL, SV_ARG_THREAD_TIME, 100);
    arg_u(NULL, SV_ARG_THREAD_DUR, 30);
    done(e);
    begin(2, t, "inner", NULL);
    end(3, t);
    end(4, t);
    end(5, t);
    e = event(SV_BEGIN, 6, t, "u", NULL);
    arg_u(NULL, SV_ARG_THREAD_DUR, 30);
    done(e);
    CHECK_STR_EQ(events_only(finish()), "1 51 BEGIN n:s cpu=100\n"
                                        "2 51 BEGIN n:inner\n"
                                        "3 51 END\n"
                                        "4 51 END cpu=130\n"
                                        "5 51 END\n"
                                        "6 51 BEGIN n:u thread_dur_ns=30\n");
    CHECK_UINT_EQ(count(sv_buf_cstr(&g.text), " 5=51 8={ 1=1 }\n"), 1);
    stop();
}

TEST(scope_of_instants)
{
    start();
    sv_track alone = track(51, SV_TRACK_CUSTOM, 0, "t"),
             process = track(52, SV_TRACK_PROCESS, 0, "p");
    sv_track inside = track(53, SV_TRACK_CUSTOM, process, "u");
    static const uint8_t flags[] = {0, SV_SCOPE_PROCESS, SV_SCOPE_GLOBAL};
    for (int i = 0; i < 6; i++) {
        struct sv_event *e = event(SV_INSTANT, i, i < 3 ? alone : inside, "s", NULL);
        e->flags = flags[i % 3];
        done(e);
    }
    CHECK_STR_EQ(events_only(finish()), "0 51 INSTANT n:s\n1 51 INSTANT n:s scope=2\n"
                                        "2 51 - n:s ph=I scope=1\n3 53 INSTANT n:s\n"
                                        "4 53 - n:s ph=I scope=2\n5 53 - n:s ph=I scope=1\n");
    stop();
}

/* ---- time ---- */

TEST(time_that_goes_back_is_absolute)
{
    start();
    sv_track t = thread(51, process(50, 7, "p"), 8, "t");
    static const int64_t times[] = {1000, 900, 1005, 1005, -3, INT64_MAX / 2, 5};
    for (size_t i = 0; i < TEST_COUNT(times); i++)
        done(event(SV_INSTANT, times[i], t, "s", NULL));
    /* All of them later by the origin, which is -10 ns. */
    CHECK_STR_EQ(events_only(finish()), "1010 51 INSTANT n:s\n910 51 INSTANT n:s\n"
                                        "1015 51 INSTANT n:s\n1015 51 INSTANT n:s\n"
                                        "7 51 INSTANT n:s\n4611686018427387913 51 INSTANT n:s\n"
                                        "15 51 INSTANT n:s\n");
    stop();
}

static void snapshot(int64_t boot_ns, int64_t real_ns, int64_t uncertainty_ns)
{
    struct sv_snapshot s = {.n = 4, .uncertainty_ns = uncertainty_ns};
    s.readings[0] = (struct sv_reading){SV_CLOCK_REALTIME, real_ns};
    s.readings[1] = (struct sv_reading){SV_CLOCK_BOOTTIME, boot_ns};
    s.readings[2] = (struct sv_reading){SV_CLOCK_BOOTTIME, 99}; /* twice: an error in Perfetto */
    s.readings[3] = (struct sv_reading){100, 1}; /* of a sequence: Perfetto refuses the file */
    sv_clocks_add(&g.dict->clocks, &s);
}

TEST(clock_snapshots_in_order)
{
    start();
    sv_track t = track(51, SV_TRACK_CUSTOM, 0, "t");
    snapshot(2000, 7000, 3);
    snapshot(1000, 6000, -1);
    done(event(SV_INSTANT, 1, t, "s", NULL));
    flush();
    snapshot(3000, 8000, 0);
    snapshot(500, 5500, 0); /* too late */
    CHECK_STR_EQ(finish(), "sync\n"
                           "snapshot 1={ 1=1 2=6000 } 1={ 1=6 2=1000 } 2=6\n"
                           "snapshot 1={ 1=1 2=7000 } 1={ 1=6 2=2000 } 2=6 990=3\n"
                           "track 1=51 2=\"t\"\n"
                           "1 51 INSTANT n:s\n"
                           "snapshot 1={ 1=1 2=8000 } 1={ 1=6 2=3000 } 2=6 990=0\n");
    CHECK_UINT_EQ(sv_report_count(&g.report, SV_SKIPPED), 1);
    stop();
}

TEST(clocks_that_are_written)
{
    static const struct {
        uint32_t clock;
        bool relates;
        uint8_t wire;
        const char *snapshots;
    } rows[] = {
        {SV_CLOCK_BOOTTIME, false, 6, ""},
        {SV_CLOCK_UNKNOWN, false, 11, ""},
        {77, false, 11, ""},
        {SV_CLOCK_REALTIME, true, 1, "snapshot 1={ 1=1 2=20 } 1={ 1=6 2=10 } 2=1\n"},
        /* Perfetto expects BOOTTIME to be related: the file's own clock is used as the real one */
        {SV_CLOCK_MONOTONIC, true, 11, "snapshot 1={ 1=1 2=20 } 1={ 1=6 2=10 } 2=11 991=3\n"},
        {SV_CLOCK_TSC, false, 11, ""},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("row %zu", i);
        start();
        g.dict->clocks.trace_clock = rows[i].clock;
        if (rows[i].relates)
            snapshot(10, 20, -1);
        done(event(SV_INSTANT, 1000, track(51, SV_TRACK_CUSTOM, 0, "t"), "s", NULL));
        char expected[300];
        snprintf(expected, sizeof expected, "sync\n%strack 1=51 2=\"t\"\n1000 51 INSTANT n:s\n",
                 rows[i].snapshots);
        CHECK_STR_EQ(finish(), expected);
        const uint8_t clock[] = {0x08, rows[i].wire, 0x10, 0xe8, 0x07};
        CHECK(memmem(g.file.data, g.file.len, clock, sizeof clock) != NULL);
        const uint8_t alias[] = {0x10, 11, 0xf8, 0x3d, (uint8_t)rows[i].clock};
        bool has_alias = rows[i].wire == 11 && rows[i].clock && rows[i].clock < 64;
        CHECK((memmem(g.file.data, g.file.len, alias, sizeof alias) != NULL) == has_alias);
        stop();
    }
}

TEST(a_clock_of_unknown_origin_keeps_its_relations)
{
    struct sv_snapshot s = {.n = 2, .uncertainty_ns = -1};
    s.readings[0] = (struct sv_reading){SV_CLOCK_UNKNOWN, 5};
    s.readings[1] = (struct sv_reading){SV_CLOCK_REALTIME, 9000};
    start();
    g.dict->clocks.trace_clock = SV_CLOCK_UNKNOWN;
    sv_clocks_add(&g.dict->clocks, &s);
    CHECK_STR_EQ(finish(), "sync\nsnapshot 1={ 1=11 2=5 } 1={ 1=1 2=9000 } 2=11\n");
    stop();
}

/* ---- tracks ---- */

TEST(hierarchy_order_and_merging)
{
    start();
    sv_track p = process(50, 7, "p"), group = track(60, SV_TRACK_CUSTOM, p, "group");
    sv_track row = track(61, SV_TRACK_CUSTOM, group, "row"), stream;
    info(p)->has_order = true;
    info(p)->order = -2;
    info(p)->desc = str("label");
    info(p)->start_ns = 123;
    info(group)->child_order = SV_ORDER_EXPLICIT;
    info(group)->desc = str("what it is");
    info(row)->has_order = true;
    info(row)->order = (int64_t)1 << 40;
    info(row)->sibling_merge = SV_MERGE_BY_KEY;
    info(row)->merge_key = str("key");
    stream = track(62, SV_TRACK_STREAM, row, "stream");
    done(event(SV_INSTANT, 1, stream, "s", NULL));
    CHECK_STR_EQ(finish(), "sync\n"
                           "track 1=0 19=1 20=1\n"
                           "track 1=50 3={ 1=7 6=\"p\" 7=123 8=\"label\" } 12=-2\n"
                           "track 1=60 5=50 2=\"group\" 11=3 14=\"what it is\"\n"
                           "track 1=61 5=60 2=\"row\" 12=2147483647 15=3 16=\"key\" "
                           "990={ 4=1099511627776 }\n"
                           "track 1=62 5=61 2=\"stream\" 15=2 990={ 1=7 5=1 }\n"
                           "1 62 INSTANT n:s\n");
    stop();
}

TEST(parents_in_a_circle_do_no_harm)
{
    start();
    sv_track a = track(60, SV_TRACK_CUSTOM, 0, "a"), b = track(61, SV_TRACK_CUSTOM, a, "b");
    info(a)->parent = b;
    sv_track at = 0;
    for (unsigned i = 0; i < 200; i++)
        at = track(100 + i, SV_TRACK_CUSTOM, at, "deep");
    done(event(SV_INSTANT, 1, b, "s", NULL));
    done(event(SV_INSTANT, 2, at, "s", NULL));
    const char *text = finish();
    CHECK_UINT_EQ(count(text, "1 61 INSTANT"), 1);
    CHECK_UINT_EQ(count(text, "2 299 INSTANT"), 1);
    CHECK(sv_report_count(&g.report, SV_DAMAGE) > 0);
    stop();
}

TEST(names_that_come_late)
{
    start();
    sv_track p = process(50, 7, NULL), t = thread(51, p, 8, NULL);
    sv_track c = track(52, SV_TRACK_CUSTOM, 0, NULL), never = track(53, SV_TRACK_CUSTOM, 0, NULL);
    done(event(SV_INSTANT, 1, t, "s", NULL));
    done(event(SV_INSTANT, 2, c, "s", NULL));
    done(event(SV_INSTANT, 3, never, "s", NULL));
    flush();
    info(t)->name = str("thread");
    sv_dict_touch(g.dict, t);
    /* the name is known now; the process still has none */
    done(event(SV_INSTANT, 4, t, "s", NULL));
    flush();
    info(c)->name = str("custom");
    info(c)->parent = p;
    info(c)->is_described = true;
    sv_dict_touch(g.dict, c);
    info(t)->name = str("renamed");
    sv_dict_touch(g.dict, t);
    sv_track counter = track(54, SV_TRACK_COUNTER, p, "ctr");
    struct sv_event *e = event(SV_COUNTER, 5, counter, NULL, NULL);
    arg_i(NULL, 1);
    done(e);
    CHECK_STR_EQ(finish(), "sync\n"
                           "1 51 INSTANT n:s\n2 52 INSTANT n:s\n3 53 INSTANT n:s\n"
                           "track 1=51 5=50 4={ 1=7 2=8 5=\"thread\" }\n"
                           "4 51 INSTANT n:s\n"
                           "track 1=54 5=50 2=\"ctr\" 8={ }\n"
                           "5 54 COUNTER value=1\n"
                           "track 1=51 5=50 4={ 1=7 2=8 5=\"renamed\" }\n"
                           "track 1=52 5=50 2=\"custom\"\n"
                           "track 1=50 3={ 1=7 }\n");
    stop();
}

TEST(a_track_that_changes_its_place_is_reported_not_written)
{
    start();
    sv_track a = track(60, SV_TRACK_CUSTOM, 0, "a"), b = track(61, SV_TRACK_CUSTOM, 0, "b");
    done(event(SV_INSTANT, 1, b, "s", NULL));
    flush();
    info(b)->parent = a;
    sv_dict_touch(g.dict, b);
    done(event(SV_INSTANT, 2, b, "s", NULL));
    CHECK_UINT_EQ(count(finish(), "track 1=61"), 1);
    CHECK_UINT_EQ(sv_report_count(&g.report, SV_NOTE), 1);
    stop();
}

TEST(pids_that_perfetto_cannot_hold)
{
    static const struct {
        uint32_t space;
        int64_t pid;
        const char *expected;
    } rows[] = {
        {0, 7, "3={ 1=7 }"},
        {0, 0, "3={ 1=4194304 } 990={ 3=0 }"},
        {1, 7, "3={ 1=8388615 } 990={ 2=1 3=7 }"},
        {2, 0, "3={ 1=12582912 } 990={ 2=2 3=0 }"},
        {0, -5, "3={ 1=1073741824 } 990={ 3=-5 }"},
        {0, (int64_t)1 << 40, "3={ 1=1073741825 } 990={ 3=1099511627776 }"},
        {900, 7, "3={ 1=1073741826 } 990={ 2=900 3=7 }"},
        {0, 8388615, "3={ 1=1073741827 } 990={ 3=8388615 }"}, /* taken by machine 1 */
    };
    start();
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        sv_track p = process(100 + i, rows[i].pid, NULL);
        info(p)->space = rows[i].space;
        done(event(SV_INSTANT, (int64_t)i, p, "s", NULL));
    }
    const char *text = finish();
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        char expected[100];
        snprintf(expected, sizeof expected, "track 1=%zu %s\n", 100 + i, rows[i].expected);
        CHECK_STR_EQ(strstr(text, expected) ? expected : text, expected);
    }
    stop();
}

TEST(everything_the_dictionary_knows_is_described)
{
    start();
    process(50, 7, "idle");
    track(52, SV_TRACK_CUSTOM, 0, "empty group");
    track(53, SV_TRACK_CUSTOM, 0, NULL); /* only ever referred to */
    CHECK_STR_EQ(finish(), "sync\ntrack 1=50 3={ 1=7 6=\"idle\" }\ntrack 1=52 2=\"empty group\"\n");
    stop();
}

/* ---- windows ---- */

/* Each window is self-contained: cut the file at any marker and the rest decodes to the rest of the
 * events. */
static void windows_row(enum sv_compression compression, unsigned n_tracks)
{
    start();
    g.options = (struct sv_write_options){.compression = compression, .resync_bytes = 5000};
    sv_dict_set_meta(g.dict, "k", "v", 1, false);
    snapshot(10, 20, -1);
    sv_track p = process(50, 7, "p");
    for (unsigned i = 0; i < 6000; i++) {
        char name[20];
        snprintf(name, sizeof name, "name %u", i % 97);
        sv_track t = sv_dict_track(g.dict, 1000 + i * 7919u % n_tracks, NULL);
        if (!info(t)->name) {
            info(t)->name = str("t");
            info(t)->is_described = true;
            info(t)->parent = p;
        }
        struct sv_event *e = event(SV_INSTANT, 1000 + i * 10, t, name, "c");
        arg_i("n", i);
        done(e);
    }
    char *whole = strdup(events_only(finish()));
    const uint8_t *at = g.file.data, *file_end = at + g.file.len;
    unsigned n_windows = 0;
    CHECK_UINT_EQ(count(whole, "\n"), 6000);
    while ((at = memmem(at, (size_t)(file_end - at), "\xa2\x02\x10\x82\x47\x7a\x76\xb2", 8))) {
        /* Each is read to the file's end: of many small windows some will do. */
        if (++n_windows > 20 && n_windows % 29 != 0) {
            at++;
            continue;
        }
        sv_buf_clear(&g.text);
        CHECK(pftext(at - 2, (size_t)(file_end - at) + 2, &g.text));
        const char *rest = events_only(sv_buf_cstr(&g.text));
        size_t len = strlen(rest);
        CHECK(len <= strlen(whole) && strcmp(whole + strlen(whole) - len, rest) == 0);
        CHECK(count(sv_buf_cstr(&g.text), "meta 1={ 1=\"k\" 3=\"v\" }\n") >= 1);
        CHECK(count(sv_buf_cstr(&g.text), "snapshot 1={ 1=1 2=20 }") >= 1);
        at++;
    }
    CHECK(n_windows >= 10);
    free(whole);
    stop();
}

TEST(windows_stand_alone)
{
    static const unsigned n_tracks[] = {1, 8, 300, 1000};
    for (size_t i = 0; i < TEST_COUNT(n_tracks); i++) {
        CONTEXT("%u tracks", n_tracks[i]);
        windows_row(SV_PLAIN, n_tracks[i]);
    }
    windows_row(SV_GZIP, 8);
#ifdef SV_HAVE_ZSTD
    windows_row(SV_ZSTD, 8);
#endif
}

/* More names in a window than numbers of one byte, two bytes, and than a window holds. */
TEST(a_flood_of_names_ends_the_window)
{
    start();
    sv_track t = thread(51, process(50, 7, "p"), 8, "t");
    for (unsigned i = 0; i < 70000; i++) {
        char name[20];
        snprintf(name, sizeof name, "n%u", i);
        done(event(SV_INSTANT, i, t, name, NULL));
    }
    flush();
    CHECK_INT_EQ(g.sink->close(g.sink, false, &g.err), 0);
    unsigned markers = 0;
    for (const uint8_t *p = g.file.data, *e = p + g.file.len;
         (p = memmem(p, (size_t)(e - p), "\x82\x47\x7a\x76\xb2\x8d", 6)); p++)
        markers++;
    CHECK_UINT_EQ(markers, 2);
    stop();
}

/* ---- loss, metadata, failures ---- */

TEST(loss_is_a_packet_that_perfetto_counts)
{
    start();
    sv_track t = thread(51, process(50, 7, "p"), 8, "t");
    begin(1, t, "a", "c");
    struct sv_event *e = event(SV_LOSS, 5, t, "ring full", NULL);
    e->dur_ns = 3;
    arg_i(NULL, 12);
    arg_i("cpu", 2);
    done(e);
    end(6, t);
    begin(7, t, "a", "c");
    e = event(SV_LOSS, 9, 0, "somewhere", "x");
    arg_i(NULL, 0);
    done(e);
    CHECK_STR_EQ(events_only(finish()),
                 "1 51 BEGIN n:a c:c\n"
                 "dropped\n"
                 "5 51 INSTANT c:stave.loss n:ring full count=12 span_ns=3 cpu=2\n"
                 "6 51 END\n"
                 "7 51 BEGIN n:a c:c\n"
                 "dropped\n"
                 "9 0 INSTANT c:stave.loss n:somewhere c:x count=0\n");
    CHECK_UINT_EQ(count(sv_buf_cstr(&g.text), "stats 1=\"\" 18={ 1=1 4=0 } 18={ 1=2 4=0 }\n"), 1);
    stop();
}

TEST(metadata_that_changes)
{
    start();
    sv_dict_set_meta(g.dict, "a", "1", 1, false);
    sv_dict_set_meta(g.dict, "j", "{}", 2, true);
    flush();
    done(event(SV_INSTANT, 1, track(51, SV_TRACK_CUSTOM, 0, "t"), "s", NULL));
    flush();
    sv_dict_set_meta(g.dict, "a", "2", 1, false);
    sv_dict_set_meta(g.dict, "b", "3", 1, false);
    CHECK_STR_EQ(finish(), "sync\n"
                           "meta 1={ 1=\"a\" 3=\"1\" } 1={ 1=\"j\" 3=\"{}\" 990=1 }\n"
                           "track 1=51 2=\"t\"\n"
                           "1 51 INSTANT n:s\n"
                           "meta 1={ 1=\"a\" 3=\"2\" } 1={ 1=\"b\" 3=\"3\" }\n");
    stop();
}

TEST(texts_larger_than_a_block)
{
    static const enum sv_compression ways[] = {SV_PLAIN, SV_GZIP};
    for (size_t way = 0; way < TEST_COUNT(ways); way++) {
        start();
        g.options.compression = ways[way];
        size_t len = 3 << 20;
        char *big = malloc(len);
        memset(big, 'x', len);
        struct sv_event *e = event(SV_INSTANT, 1, track(51, SV_TRACK_CUSTOM, 0, "t"), "s", NULL);
        arg_t("big", big, len);
        done(e);
        done(event(SV_INSTANT, 2, track(51, SV_TRACK_CUSTOM, 0, "t"), "after", NULL));
        const char *text = events_only(finish());
        CHECK_UINT_EQ(strcspn(text, "\n"), len + strlen("1 51 INSTANT n:s big=\"\""));
        CHECK_UINT_EQ(count(text, "2 51 INSTANT n:after"), 1);
        free(big);
        stop();
    }
}

TEST(a_failed_stream_leaves_no_file)
{
    struct sv_output *out;
    const char *path = test_scratch("x.pftrace");
    start();
    REQUIRE(sv_output_open(path, SV_OUTPUT_RENAME, SV_PLAIN, &out, &g.err) == 0);
    REQUIRE(sv_perfetto_writer.open(out, NULL, g.dict, &g.report, &g.sink, &g.err) == 0);
    done(event(SV_INSTANT, 1, track(51, SV_TRACK_CUSTOM, 0, "t"), "s", NULL));
    flush();
    CHECK_INT_EQ(g.sink->close(g.sink, true, &g.err), 0);
    FILE *f = fopen(path, "rb");
    CHECK(f == NULL);
    stop();
}

/* The outside judge that every machine can have. */
TEST(protoc_decodes_the_file)
{
    if (system("protoc --version >/dev/null 2>&1") != 0)
        SKIP("protoc is not installed");
    start();
    sv_track t = thread(51, process(50, 7, "p"), 8, "thread name");
    for (int i = 0; i < 300; i++) {
        struct sv_event *e = event(SV_BEGIN, i * 10, t, "slice name", "c");
        arg_i("n", i);
        arg_s("text", "value of it");
        arg_u(NULL, SV_ARG_FLOW, 0xabcdef0123456789);
        done(e);
        end(i * 10 + 5, t);
    }
    finish();
    const char *path = test_scratch("t.pftrace"), *raw = test_scratch("t.txt");
    FILE *f = fopen(path, "wb");
    REQUIRE(f && fwrite(g.file.data, 1, g.file.len, f) == g.file.len && fclose(f) == 0);
    char command[2200];
    snprintf(command, sizeof command, "protoc --decode_raw <%s >%s 2>&1", path, raw);
    CHECK_INT_EQ(system(command), 0);
    snprintf(command, sizeof command,
             "test $(grep -c '^  11 {' %s) = 600 && grep -q '5: \"thread name\"' %s && "
             "test $(grep -c '47: 0xabcdef0123456789' %s) = 300 && "
             "test $(grep -c 'value of it' %s) = 2",
             raw, raw, raw, raw);
    CHECK_INT_EQ(system(command), 0);
    stop();
}
