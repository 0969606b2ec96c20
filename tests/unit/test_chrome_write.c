/* formats/chrome_write: each form of event as the line it becomes, and the file around the
 * lines. */
#include "core/base/buf.h"
#include "core/base/json_scan.h"
#include "formats/formats.h"
#include "tests/harness/test.h"

#include <stdlib.h>
#include <string.h>

/* A dictionary with a process, a thread, a stream and a counter, and a writer into memory. */
struct fixture {
    struct sv_dict *dict;
    struct sv_report report;
    struct sv_buf out;
    struct sv_sink *sink;
    struct sv_err err;
    sv_track process, thread, stream, counter;
};

static sv_str str(struct fixture *f, const char *s)
{
    return sv_dict_cstr(f->dict, s);
}

static void name_track(struct fixture *f, sv_track t, const char *name)
{
    f->dict->tracks[t].name = str(f, name);
    f->dict->tracks[t].is_described = true;
}

static void set_up(struct fixture *f)
{
    memset(f, 0, sizeof *f);
    f->dict = sv_dict_new();
    sv_report_init(&f->report);
    sv_buf_init(&f->out, SIZE_MAX);
    f->process = sv_dict_process(f->dict, 0, 10);
    f->thread = sv_dict_thread(f->dict, 0, 10, 11);
    f->stream = sv_dict_child(f->dict, f->process, SV_TRACK_STREAM, str(f, "7"));
    f->counter = sv_dict_child(f->dict, f->process, SV_TRACK_COUNTER, str(f, "load"));
}

static void start(struct fixture *f, const char *dialect)
{
    struct sv_output *o;
    REQUIRE(sv_output_open_buf(&f->out, SV_PLAIN, &o, &f->err) == SV_OK);
    REQUIRE(sv_chrome_writer.open(o, &(struct sv_write_options){.dialect = dialect}, f->dict,
                                  &f->report, &f->sink, &f->err) == SV_OK);
}

static void put(struct fixture *f, const struct sv_event *e)
{
    if (f->sink == NULL)
        start(f, NULL);
    CHECK_INT_EQ(f->sink->write(f->sink, e, 1, &f->err), SV_OK);
}

/* Ends the file; the whole must be JSON. */
static const char *finish(struct fixture *f)
{
    if (f->sink == NULL)
        start(f, NULL);
    CHECK_INT_EQ(f->sink->close(f->sink, false, &f->err), SV_OK);
    size_t len = f->out.len;
    sv_buf_reserve(&f->out, SV_JSON_PAD);
    CHECK(sv_json_valid(f->out.data, len));
    return sv_buf_cstr(&f->out);
}

/* The lines of the events only. */
static const char *finish_lines(struct fixture *f)
{
    char *text = (char *)(uintptr_t)finish(f);
    char *first = strstr(text, "\"traceEvents\":["), *last = strstr(text, "\n]");
    REQUIRE(first != NULL && last != NULL);
    *last = '\0';
    first += strlen("\"traceEvents\":[");
    return *first == '\n' ? first + 1 : first;
}

static void tear_down(struct fixture *f)
{
    sv_buf_fini(&f->out);
    sv_report_fini(&f->report);
    sv_dict_free(f->dict);
}

#define ARGS(...)                                 \
    .args = (const struct sv_arg[]){__VA_ARGS__}, \
    .n_args = sizeof((const struct sv_arg[]){__VA_ARGS__}) / sizeof(struct sv_arg)

TEST(an_empty_trace)
{
    struct fixture f;
    set_up(&f);
    CHECK_STR_EQ(
        finish(&f),
        "{\"displayTimeUnit\":\"ns\",\n"
        "\"otherData\":{\"stave\":{\"version\":1}},\n"
        "\"traceEvents\":[\n"
        "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":10,\"tid\":1073741824,\"args\":{\"name\":"
        "\"7\",\"uuid\":\"0xd99ac229e7dc5c2a\",\"kind\":\"stream\"}}\n"
        "]}\n");
    tear_down(&f);
}

TEST(slices_and_edges)
{
    struct fixture f;
    set_up(&f);
    f.dict->tracks[f.stream].is_described = false;
    put(&f, &(struct sv_event){.ts_ns = 1,
                               .dur_ns = 1234567,
                               .kind = SV_SLICE,
                               .track = f.thread,
                               .name = str(&f, "a\"b"),
                               .cat = str(&f, "cpu")});
    put(&f, &(struct sv_event){
                .ts_ns = 1001, .kind = SV_BEGIN, .track = f.thread, .name = str(&f, "c")});
    put(&f, &(struct sv_event){.ts_ns = 1002,
                               .kind = SV_END,
                               .track = f.thread,
                               ARGS({.key = str(&f, "k"), .type = SV_ARG_INT, .i = -1})});
    put(&f, &(struct sv_event){
                .ts_ns = -5, .dur_ns = SV_UNFINISHED, .kind = SV_SLICE, .track = f.thread});
    CHECK_STR_EQ(finish_lines(&f),
                 "{\"ph\":\"X\",\"cat\":\"cpu\",\"name\":\"a\\\"b\",\"pid\":10,\"tid\":11,\"ts\":0."
                 "001,\"dur\":1234.567},\n"
                 "{\"ph\":\"B\",\"name\":\"c\",\"pid\":10,\"tid\":11,\"ts\":1.001},\n"
                 "{\"ph\":\"E\",\"pid\":10,\"tid\":11,\"ts\":1.002,\"args\":{\"k\":-1}},\n"
                 "{\"ph\":\"B\",\"name\":\"\",\"pid\":10,\"tid\":11,\"ts\":-0.005}");
    tear_down(&f);
}

TEST(arguments_of_every_type)
{
    struct fixture f;
    set_up(&f);
    sv_str k = str(&f, "k");
    put(&f, &(struct sv_event){
                .kind = SV_SLICE,
                .track = f.thread,
                .name = k,
                ARGS({.key = k, .type = SV_ARG_NULL}, {.key = k, .type = SV_ARG_BOOL, .i = 1},
                     {.key = k, .type = SV_ARG_UINT, .u = UINT64_MAX},
                     {.key = k, .type = SV_ARG_DOUBLE, .d = 0.5},
                     {.key = k, .type = SV_ARG_POINTER, .u = 0xabc},
                     {.key = k, .type = SV_ARG_TEXT, .text = "x\n\xff", .size = 3},
                     {.key = k, .type = SV_ARG_DICT, .size = 4},
                     {.key = k, .type = SV_ARG_ARRAY, .size = 2}, {.type = SV_ARG_INT, .i = 1},
                     {.type = SV_ARG_ARRAY}, {.key = k, .type = SV_ARG_INT, .i = 2},
                     {.key = k, .type = SV_ARG_DICT}, {.type = SV_ARG_CORRELATION, .u = 5},
                     {.type = SV_ARG_SOURCE, .size = 2},
                     {.key = str(&f, "file"), .type = SV_ARG_TEXT, .text = "a.c", .size = 3},
                     {.key = str(&f, "line"), .type = SV_ARG_INT, .i = 3},
                     {.type = SV_ARG_STACK, .size = 2},
                     {.type = SV_ARG_TEXT, .text = "main", .size = 4},
                     {.type = SV_ARG_TEXT, .text = "f", .size = 1},
                     {.type = SV_ARG_THREAD_TIME, .i = 7000}, {.type = SV_ARG_THREAD_DUR, .i = 1},
                     {.type = SV_ARG_CORRELATION, .u = 6})});
    const char *lines = finish_lines(&f);
    CHECK(strstr(lines, "\"dur\":0.000,\"tts\":7.000,\"tdur\":0.001,\"stack\":[\"main\",\"f\"],"
                        "\"args\":{\"k\":null,"
                        "\"k\":true,\"k\":18446744073709551615,\"k\":0.5,\"k\":\"0xabc\",\"k\":"
                        "\"x\\n\\\\xff\","
                        "\"k\":{\"k\":[1,[]],\"k\":2},\"k\":{},\"correlation\":[5,6],\"stave."
                        "source\":{\"file\":\"a.c\","
                        "\"line\":3}}}") != NULL);
    tear_down(&f);
}

TEST(nesting_without_end)
{
    struct fixture f;
    set_up(&f);
    enum { N = 5000 };
    struct sv_arg *args = calloc(N, sizeof *args);
    for (uint32_t i = 0; i < N; i++)
        args[i] = (struct sv_arg){.type = i % 2 ? SV_ARG_DICT : SV_ARG_ARRAY,
                                  .size = (N - 1 - i) & 0xffffff};
    args[3].size = 0xffffff; /* and one that lies about its size */
    put(&f, &(struct sv_event){.kind = SV_INSTANT, .track = f.thread, .args = args, .n_args = N});
    finish(&f);
    CHECK_UINT_EQ(sv_report_count(&f.report, SV_SKIPPED), 1);
    free(args);
    tear_down(&f);
}

TEST(flows_stand_in_the_args_and_once_more_for_viewers)
{
    struct fixture f;
    set_up(&f);
    f.dict->tracks[f.stream].is_described = false;
    put(&f, &(struct sv_event){
                .ts_ns = 1000,
                .dur_ns = 10,
                .kind = SV_SLICE,
                .track = f.thread,
                ARGS({.type = SV_ARG_FLOW, .u = 1}, {.type = SV_ARG_FLOW_BEGIN, .u = 255})});
    put(&f, &(struct sv_event){.ts_ns = 2000,
                               .kind = SV_BEGIN,
                               .track = f.thread,
                               ARGS({.type = SV_ARG_FLOW, .u = 1})});
    put(&f, &(struct sv_event){.ts_ns = 3000,
                               .kind = SV_END,
                               .track = f.thread,
                               ARGS({.type = SV_ARG_FLOW_END, .u = 1})});
    put(&f, &(struct sv_event){.ts_ns = 4000,
                               .kind = SV_FLOW,
                               .track = f.thread,
                               .name = str(&f, "ac2g"),
                               .cat = str(&f, "gpu"),
                               ARGS({.type = SV_ARG_FLOW_END, .u = 255})});
    put(&f, &(struct sv_event){.ts_ns = 5000,
                               .kind = SV_FLOW,
                               .track = f.thread,
                               .flags = SV_BIND_NEXT,
                               ARGS({.type = SV_ARG_FLOW, .u = 9})});
#define MIRROR(ph, id, ts)                                                     \
    "{\"cat\":\"stave.flow\",\"name\":\"flow\",\"ph\":\"" ph "\",\"id\":\"" id \
    "\",\"pid\":10,\"tid\":11,\"ts\":" ts ",\"bp\":\"e\"},\n"
    CHECK_STR_EQ(
        finish_lines(&f),
        "{\"ph\":\"X\",\"name\":\"\",\"pid\":10,\"tid\":11,\"ts\":1.000,\"dur\":0.010,\"args\":{"
        "\"stave.flow\":"
        "[\"0x1\",\"begin 0xff\"]}},\n" MIRROR("s", "0x1", "1.000") MIRROR(
            "s", "0xff",
            "1.000") "{\"ph\":\"B\",\"name\":\"\",\"pid\":10,\"tid\":11,\"ts\":2.000,\"args\":{"
                     "\"stave.flow\":[\"0x1\"]}},\n" MIRROR("t", "0x1", "2.000")
                         MIRROR("f", "0x1",
                                "2.999") "{\"ph\":\"E\",\"pid\":10,\"tid\":11,\"ts\":3.000,"
                                         "\"args\":{\"stave.flow\":[\"end 0x1\"]}},\n"
                                         "{\"cat\":\"gpu\",\"name\":\"ac2g\",\"ph\":\"f\",\"id\":"
                                         "\"0xff\",\"pid\":10,\"tid\":11,\"ts\":4.000,"
                                         "\"bp\":\"e\"},\n"
                                         "{\"cat\":\"\",\"name\":\"\",\"ph\":\"t\",\"id\":\"0x9\","
                                         "\"pid\":10,\"tid\":11,\"ts\":5.000}");
    tear_down(&f);
}

TEST(instants_have_a_scope_and_loss_is_visible)
{
    struct fixture f;
    set_up(&f);
    f.dict->tracks[f.stream].is_described = false;
    put(&f, &(struct sv_event){
                .ts_ns = 1000, .kind = SV_INSTANT, .track = f.thread, .name = str(&f, "i")});
    put(&f, &(struct sv_event){
                .ts_ns = 1000, .kind = SV_INSTANT, .track = f.process, .flags = SV_SCOPE_PROCESS});
    put(&f, &(struct sv_event){.ts_ns = 2000,
                               .dur_ns = 77,
                               .kind = SV_LOSS,
                               .track = f.thread,
                               .name = str(&f, "ring full"),
                               ARGS({.type = SV_ARG_INT, .i = 12})});
    put(&f, &(struct sv_event){
                .ts_ns = 2000, .kind = SV_INSTANT, .track = f.thread, .flags = SV_SCOPE_GLOBAL});
    CHECK_STR_EQ(
        finish_lines(&f),
        "{\"ph\":\"i\",\"name\":\"i\",\"pid\":10,\"tid\":11,\"ts\":1.000,\"s\":\"t\"},\n"
        "{\"ph\":\"i\",\"name\":\"\",\"pid\":10,\"ts\":1.000,\"s\":\"p\"},\n"
        "{\"ph\":\"i\",\"cat\":\"stave.loss\",\"name\":\"ring "
        "full\",\"pid\":10,\"tid\":11,\"ts\":2.000,\"s\":\"t\","
        "\"args\":{\"count\":12,\"span_ns\":77}},\n"
        "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":10,\"tid\":11,\"args\":{\"name\":\"thread "
        "11\",\"uuid\":"
        "\"0x5ed49fcfe560394b\",\"track_name\":\"\"}},\n" /* the scope alone would lead elsewhere */
        "{\"ph\":\"i\",\"name\":\"\",\"pid\":10,\"tid\":11,\"ts\":2.000,\"s\":\"g\"}");
    tear_down(&f);
}

static void put_value(struct fixture *f, int64_t ts_ns, sv_track t, struct sv_arg value)
{
    put(f, &(struct sv_event){
               .ts_ns = ts_ns, .kind = SV_COUNTER, .track = t, .args = &value, .n_args = 1});
}

TEST(counters_with_one_and_with_several_series)
{
    struct fixture f;
    set_up(&f);
    f.dict->tracks[f.stream].is_described = false;
    sv_track a = sv_dict_child(f.dict, f.counter, SV_TRACK_COUNTER, str(&f, "a"));
    sv_track b = sv_dict_child(f.dict, f.counter, SV_TRACK_COUNTER, str(&f, "b"));
    sv_track c = sv_dict_child(f.dict, f.thread, SV_TRACK_COUNTER, str(&f, "own"));
    f.dict->tracks[c].unit = str(&f, "bytes");
    put_value(&f, 1000, f.counter, (struct sv_arg){.type = SV_ARG_INT, .i = 1});
    put_value(&f, 2000, a, (struct sv_arg){.type = SV_ARG_INT, .i = 2});
    put_value(&f, 2000, b, (struct sv_arg){.type = SV_ARG_DOUBLE, .d = 2.5});
    put_value(&f, 2000, b, (struct sv_arg){.type = SV_ARG_DOUBLE, .d = 3});
    put_value(&f, 3000, a, (struct sv_arg){.type = SV_ARG_INT, .i = 4});
    put_value(&f, 3000, c, (struct sv_arg){.type = SV_ARG_INT, .i = 5});
    CHECK_STR_EQ(
        finish_lines(&f),
        "{\"ph\":\"C\",\"name\":\"load\",\"pid\":10,\"ts\":1.000,\"args\":{\"value\":1}},\n"
        "{\"ph\":\"C\",\"name\":\"load\",\"pid\":10,\"ts\":2.000,\"args\":{\"a\":2,\"b\":2.5}},\n"
        "{\"ph\":\"C\",\"name\":\"load\",\"pid\":10,\"ts\":2.000,\"args\":{\"b\":3.0}},\n"
        "{\"ph\":\"C\",\"name\":\"load\",\"pid\":10,\"ts\":3.000,\"args\":{\"a\":4}},\n"
        "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":10,\"tid\":11,\"args\":{\"name\":\"thread "
        "11\",\"uuid\":"
        "\"0x5ed49fcfe560394b\",\"track_name\":\"\"}},\n"
        "{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":10,\"tid\":1073741824,\"args\":{\"name\":"
        "\"thread 11 › "
        "own\",\"uuid\":\"0xf53668b4c046380c\",\"kind\":\"counter\",\"parent\":"
        "\"0x5ed49fcfe560394b\","
        "\"track_name\":\"own\",\"unit\":\"bytes\"}},\n"
        "{\"ph\":\"C\",\"name\":\"thread 11 › "
        "own\",\"pid\":10,\"tid\":1073741824,\"ts\":3.000,\"args\":{"
        "\"value\":5}}");
    tear_down(&f);
}

static sv_track add_async(struct fixture *f, uint64_t uuid, const char *name)
{
    sv_track t = sv_dict_track(f->dict, uuid, NULL);
    f->dict->tracks[t].kind = SV_TRACK_ASYNC;
    f->dict->tracks[t].parent = f->process;
    name_track(f, t, name);
    return t;
}

TEST(operations_end_in_order_and_by_name)
{
    struct fixture f;
    set_up(&f);
    f.dict->tracks[f.stream].is_described = false;
    sv_track op = add_async(&f, 0x1f, "op"), other = add_async(&f, 0x20, "other");
    sv_str name = str(&f, "op"), in = str(&f, "in"), cat = str(&f, "c");
    put(&f, &(struct sv_event){.ts_ns = 1000,
                               .dur_ns = 5000,
                               .kind = SV_SLICE,
                               .track = op,
                               .name = name,
                               .cat = cat});
    put(&f, &(struct sv_event){
                .ts_ns = 2000, .dur_ns = 4000, .kind = SV_SLICE, .track = op, .name = in});
    put(&f, &(struct sv_event){
                .ts_ns = 3000, .kind = SV_BEGIN, .track = other, .name = in, .cat = cat});
    put(&f, &(struct sv_event){.ts_ns = 3500, .kind = SV_INSTANT, .track = other, .name = name});
    put(&f, &(struct sv_event){.ts_ns = 6000,
                               .kind = SV_END,
                               .track = other,
                               ARGS({.key = in, .type = SV_ARG_INT, .i = 1})});
#define OP(ph, cat, name, id, ts)                             \
    "{\"ph\":\"" ph "\",\"cat\":\"" cat "\",\"name\":\"" name \
    "\",\"pid\":10,\"tid\":10,\"id\":\"" id "\",\"ts\":" ts
    CHECK_STR_EQ(
        finish_lines(&f),
        OP("b", "c", "op", "0x1f", "1.000") "},\n" OP(
            "b", "", "in", "0x1f", "2.000") "},\n"
                                            "{\"ph\":\"M\",\"name\":\"thread_name\","
                                            "\"pid\":10,\"tid\":1073741824,\"args\":{"
                                            "\"name\":\"other\","
                                            "\"uuid\":\"0x20\",\"kind\":\"async\"}},"
                                            "\n" /* its first event is called otherwise */
        OP("b", "c", "in", "0x20", "3.000") "},\n" OP("n", "", "op", "0x20", "3.500") "},\n" OP(
            "e", "", "in", "0x1f",
            "6.000") "},\n" OP("e", "c", "op", "0x1f",
                               "6.000") "},\n" OP("e", "c", "in", "0x20",
                                                  "6.000") ",\"args\":{\"in\":1}}");
    tear_down(&f);
}

static bool has_line(const char *text, const char *piece)
{
    if (strstr(text, piece) != NULL)
        return true;
    test_context("missing: %s in:\n%s", piece, text);
    return false;
}

TEST(tracks_and_their_numbers)
{
    struct fixture f;
    set_up(&f);
    struct sv_dict *d = f.dict;
    name_track(&f, f.process, "python");
    d->tracks[f.process].desc = str(&f, "rank 0");
    d->tracks[f.process].order = -3;
    d->tracks[f.process].has_order = true;
    name_track(&f, f.thread, "main");
    sv_track far = sv_dict_thread(d, 2, 10, 11); /* the same numbers on another machine */
    name_track(&f, d->tracks[far].parent, "python");
    sv_track gpu = sv_dict_child(d, 0, SV_TRACK_GPU, str(&f, "GPU 0"));
    sv_track stream = sv_dict_child(d, gpu, SV_TRACK_STREAM, str(&f, "stream 7"));
    sv_track lane = sv_dict_child(d, stream, SV_TRACK_LANE, str(&f, "stream 7"));
    d->tracks[lane].order = 1;
    d->tracks[lane].has_order = true;
    sv_track alone = sv_dict_child(d, 0, SV_TRACK_CUSTOM, str(&f, "alone"));
    const sv_track tracks[] = {f.thread, far, lane, alone, f.process};
    for (size_t i = 0; i < TEST_COUNT(tracks); i++)
        put(&f, &(struct sv_event){.kind = SV_SLICE, .track = tracks[i]});
    d->tracks[f.thread].name = str(&f, "late");
    sv_dict_touch(d, f.thread);
    const char *text = finish(&f);
    static const char *const pieces[] = {
        "\"name\":\"process_name\",\"pid\":10,\"tid\":10,\"args\":{\"name\":\"python\"}}",
        "\"process_labels\",\"pid\":10,\"tid\":10,\"args\":{\"labels\":\"rank 0\"}}",
        "\"process_sort_index\",\"pid\":10,\"tid\":10,\"args\":{\"sort_index\":-3}}",
        "\"thread_name\",\"pid\":10,\"tid\":11,\"args\":{\"name\":\"main\"}}",
        ("\"process_name\",\"pid\":1073741824,\"tid\":1073741824,\"args\":{\"name\":\"python (pid "
         "10, space 2)\",\"uuid\":"),
        "\"track_name\":\"python\",\"pid\":10,\"space\":2}}",
        "\"thread_name\",\"pid\":1073741824,\"tid\":11,\"args\":{\"name\":\"thread 11\",\"uuid\":",
        "\"args\":{\"name\":\"GPU 0\",\"uuid\":",
        "\"kind\":\"gpu\"}}",
        "{\"name\":\"stream 7 (lane 2)\",\"uuid\":",
        "{\"sort_index\":0,\"order\":1}}",
        "{\"name\":\"global\",\"uuid\":\"0x0\"}}",
        "{\"name\":\"alone\",\"uuid\":",
        "\"kind\":\"process\",\"parent\":\"0x0\",\"desc\":\"rank 0\"}}",
        "\"thread_name\",\"pid\":10,\"tid\":11,\"args\":{\"name\":\"late\"}}",
    };
    for (size_t i = 0; i < TEST_COUNT(pieces); i++)
        CHECK(has_line(text, pieces[i]));
    tear_down(&f);
}

/* In the file the uuid 0 says that a pid is no track: a track that has it must not be taken for
 * that. */
TEST(a_track_with_the_uuid_0_stays_a_track)
{
    struct fixture f;
    set_up(&f);
    sv_track zero = sv_dict_track(f.dict, 0, NULL);
    name_track(&f, zero, "Default Track");
    sv_track below = sv_dict_child(f.dict, zero, SV_TRACK_CUSTOM, str(&f, "below"));
    put(&f, &(struct sv_event){.kind = SV_SLICE, .track = zero});
    put(&f, &(struct sv_event){.kind = SV_SLICE, .track = below});
    const char *text = finish(&f);
    CHECK(has_line(text, "{\"name\":\"Default Track\",\"uuid\":\"0x"));
    CHECK(strstr(text, "\"uuid\":\"0x0\"") == NULL);
    tear_down(&f);
}

TEST(parents_in_a_circle)
{
    struct fixture f;
    set_up(&f);
    sv_track tracks[40];
    for (size_t i = 0; i < TEST_COUNT(tracks); i++) {
        tracks[i] = sv_dict_track(f.dict, 100 + i, NULL);
        f.dict->tracks[tracks[i]].is_described = true;
    }
    for (size_t i = 0; i < TEST_COUNT(tracks); i++)
        f.dict->tracks[tracks[i]].parent = tracks[(i + 1) % TEST_COUNT(tracks)];
    put(&f, &(struct sv_event){.kind = SV_SLICE, .track = tracks[5]});
    finish(&f);
    tear_down(&f);
}

TEST(clocks_base_and_metadata)
{
    struct fixture f;
    set_up(&f);
    struct sv_dict *d = f.dict;
    d->tracks[f.stream].is_described = false;
    d->clocks.trace_clock = SV_CLOCK_REALTIME;
    sv_clocks_add(&d->clocks, &(struct sv_snapshot){.readings = {{6, 5}, {1, 1700000000000000005}},
                                                    .n = 2,
                                                    .uncertainty_ns = 40});
    sv_dict_set_meta(d, "hostname", "a\"b", 3, false);
    sv_dict_set_meta(d, "rank", "{\"n\":1}", 7, true);
    sv_dict_set_meta(d, "chrome.deviceProperties", "[{}]", 4, true);
    sv_dict_set_meta(d, "chrome.otherData", " { \"old\" : 1 } ", 15, true);
    sv_dict_set_meta(d, "broken", "{\"n\":", 5, true);
    put(&f, &(struct sv_event){.ts_ns = 1700000000123456789, .kind = SV_BEGIN, .track = f.thread});
    sv_dict_set_meta(d, "rank", "{\"n\":2}", 7, true);
    sv_clocks_add(&d->clocks,
                  &(struct sv_snapshot){.readings = {{6, 7}}, .n = 1, .uncertainty_ns = -1});
    CHECK_STR_EQ(
        finish(&f),
        "{\"displayTimeUnit\":\"ns\",\n\"baseTimeNanoseconds\":1700000000000000000,\n"
        "\"deviceProperties\":[{}],\n"
        "\"otherData\":{\"stave\":{\"version\":1,\"clock\":1,\"snapshots\":[\n{\"readings\":[[6,5],"
        "[1,"
        "1700000000000000005]],\"uncertainty_ns\":40}]}, \"old\" : 1 "
        ",\"hostname\":\"a\\\"b\",\"rank\":{\"n\":1},"
        "\"broken\":\"{\\\"n\\\":\"},\n\"traceEvents\":[\n"
        "{\"ph\":\"B\",\"name\":\"\",\"pid\":10,\"tid\":11,\"ts\":123456.789}\n],\n"
        "\"stave\":{\"snapshots\":[\n{\"readings\":[[6,7]]}],\"meta\":{\"rank\":{\"n\":2}}}}\n");
    tear_down(&f);
}

TEST(the_array_form_is_whole_after_every_flush)
{
    struct fixture f;
    set_up(&f);
    f.dict->tracks[f.stream].is_described = false;
    start(&f, "array");
    for (int i = 0; i < 3; i++) {
        put(&f, &(struct sv_event){.ts_ns = i, .kind = SV_BEGIN, .track = f.thread});
        CHECK_INT_EQ(f.sink->flush(f.sink, &f.err), SV_OK);
        struct sv_buf copy; /* a viewer would add the bracket */
        sv_buf_init(&copy, SIZE_MAX);
        sv_buf_add(&copy, f.out.data, f.out.len);
        sv_buf_byte(&copy, ']');
        sv_buf_reserve(&copy, SV_JSON_PAD);
        CHECK(sv_json_valid(copy.data, copy.len));
        sv_buf_fini(&copy);
    }
    CHECK_STR_EQ(
        finish(&f),
        "[\n{\"ph\":\"M\",\"name\":\"stave\",\"pid\":0,\"tid\":0,\"args\":{\"version\":1}},\n"
        "{\"ph\":\"B\",\"name\":\"\",\"pid\":10,\"tid\":11,\"ts\":0.000},\n"
        "{\"ph\":\"B\",\"name\":\"\",\"pid\":10,\"tid\":11,\"ts\":0.001},\n"
        "{\"ph\":\"B\",\"name\":\"\",\"pid\":10,\"tid\":11,\"ts\":0.002}\n]\n");
    struct sv_output *o;
    struct sv_sink *s;
    REQUIRE(sv_output_open_memory(&o) == SV_OK);
    CHECK_INT_EQ(sv_chrome_writer.open(o, &(struct sv_write_options){.dialect = "xml"}, f.dict,
                                       &f.report, &s, &f.err),
                 SV_EUSAGE);
    sv_output_discard(o);
    tear_down(&f);
}

/* Cut after any flush, a file is whole again when another writer continues with it: with nothing
 * but an end, and with an event before that. */
TEST(a_cut_file_goes_on)
{
    static const char *const dialects[] = {NULL, "array"};
    for (size_t d = 0; d < TEST_COUNT(dialects); d++) {
        for (int n_more = 0; n_more < 2; n_more++) {
            struct fixture f;
            struct sv_output *o;
            set_up(&f);
            start(&f, dialects[d]);
            put(&f, &(struct sv_event){.ts_ns = 1000,
                                       .kind = SV_INSTANT,
                                       .track = f.thread,
                                       .name = str(&f, "first")});
            CHECK_INT_EQ(f.sink->flush(f.sink, &f.err), SV_OK);
            size_t len = f.out.len;
            put(&f,
                &(struct sv_event){
                    .ts_ns = 2000, .kind = SV_INSTANT, .track = f.thread, .name = str(&f, "lost")});
            f.sink->close(f.sink, true, &f.err);
            f.out.len = len;
            struct sv_write_options options = {.dialect = dialects[d], .continues = true};
            REQUIRE(sv_output_open_buf(&f.out, SV_PLAIN, &o, &f.err) == SV_OK);
            REQUIRE(sv_chrome_writer.open(o, &options, f.dict, &f.report, &f.sink, &f.err) ==
                    SV_OK);
            if (n_more)
                put(&f, &(struct sv_event){.ts_ns = 3000,
                                           .kind = SV_INSTANT,
                                           .track = f.thread,
                                           .name = str(&f, "last")});
            const char *text = finish(&f);
            CHECK(strstr(text, "\"first\"") != NULL && strstr(text, "\"lost\"") == NULL);
            CHECK_INT_EQ(strstr(text, "\"last\"") != NULL, n_more);
            tear_down(&f);
        }
    }
}
