/* The Chrome reader at its limits: deep, long and many things are kept in part and reported; damage
 * never costs more than its bytes. */
#include "chrome_text.h"

#include "core/files/input.h"
#include "tests/harness/test.h"

#include <stdlib.h>
#include <time.h>

static void repeat(struct sv_buf *b, const char *text, size_t n)
{
    while (n--)
        sv_buf_str(b, text);
}

static struct sv_buf new_buf(void)
{
    struct sv_buf b;
    sv_buf_init(&b, (size_t)1 << 28);
    return b;
}

TEST(deep_values_are_kept_as_text)
{
    struct sv_buf json = new_buf();
    struct chrome_text_result r;
    repeat(&json, "[{\"ph\":\"i\",\"pid\":1,\"tid\":1,\"ts\":1,\"args\":{\"a\":", 1);
    repeat(&json, "[", 100);
    repeat(&json, "1", 1);
    repeat(&json, "]", 100);
    repeat(&json, ",\"b\":2}}]", 1);
    chrome_text_read(json.data, json.len, 0, 0, &r);
    CHECK_STR_EQ(sv_buf_cstr(&r.findings), "n 1 value nested too deeply, kept as text @109\n");
    CHECK(
        strstr(sv_buf_cstr(&r.events),
               "['[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]']"));
    CHECK(strstr(sv_buf_cstr(&r.events), "],b=2\n"));
    chrome_text_free(&r);
    sv_buf_fini(&json);
}

TEST(more_arguments_than_an_event_can_hold_are_reported)
{
    struct sv_buf json = new_buf();
    struct chrome_text_result r;
    repeat(&json, "[{\"ph\":\"i\",\"pid\":1,\"tid\":1,\"ts\":1,\"args\":{\"a\":[0", 1);
    repeat(&json, ",1", 70000);
    repeat(&json, "],\"b\":2}},{\"ph\":\"i\",\"pid\":1,\"tid\":1,\"ts\":2}]", 1);
    chrome_text_read(json.data, json.len, 0, 0, &r);
    CHECK_STR_EQ(sv_buf_cstr(&r.findings), "s 1 arguments past the limit of one event @1\n");
    CHECK_UINT_EQ(r.n_events, 2);
    chrome_text_free(&r);
    sv_buf_fini(&json);
}

TEST(a_counter_with_more_series_than_a_batch)
{
    struct sv_buf json = new_buf();
    struct chrome_text_result r;
    repeat(&json, "[{\"ph\":\"i\",\"pid\":1,\"tid\":1,\"ts\":1},", 1);
    repeat(&json, "{\"ph\":\"C\",\"name\":\"c\",\"pid\":1,\"ts\":2,\"args\":{", 1);
    for (int i = 0; i < 700; i++)
        sv_buf_printf(&json, "%s\"s%d\":%s", i ? "," : "", i, i == 600 ? "null" : "5");
    repeat(&json, "}},{\"ph\":\"i\",\"pid\":1,\"tid\":1,\"ts\":3}]", 1);
    chrome_text_read(json.data, json.len, 0, 0, &r);
    CHECK_UINT_EQ(r.n_events, 1 + 699 + 1);
    CHECK_STR_EQ(sv_buf_cstr(&r.findings), "D 1 counter value that is not a number @35\n");
    CHECK(strstr(sv_buf_cstr(&r.events), "/counter:s0 5\n") &&
          strstr(sv_buf_cstr(&r.events), "/counter:s699 5\n"));
    chrome_text_free(&r);
    sv_buf_fini(&json);
}

/* Reads with a small window limit, so that an event larger than it can be made. */
TEST(values_larger_than_the_window_are_reported_and_passed)
{
    static const char *const heads[] = {"{\"systemTraceEvents\":\"",
                                        "{\"traceEvents\":[{\"ph\":\"i\",\"name\":\""};
    static const char *const tails[] = {
        "\",\"traceEvents\":[{\"ph\":\"i\",\"pid\":1,\"tid\":1,\"ts\":1}]}",
        "\"},{\"ph\":\"i\",\"pid\":1,\"tid\":1,\"ts\":1}]}"};
    static const char *const findings[] = {"top-level value too large to keep",
                                           "event larger than 64 MiB or never closed"};
    for (size_t i = 0; i < TEST_COUNT(heads); i++) {
        struct sv_buf json = new_buf();
        struct sv_input *in;
        struct sv_source *s;
        struct sv_err err = {0};
        struct sv_report report;
        struct sv_dict *d = sv_dict_new();
        struct sv_batch *b = malloc(sizeof *b);
        uint64_t n_events = 0;
        repeat(&json, heads[i], 1);
        repeat(&json, "0123456789abcdef", (size_t)1 << 18);
        repeat(&json, tails[i], 1);
        sv_report_init(&report);
        sv_batch_init(b);
        REQUIRE(sv_input_open_memory(json.data, json.len, "test", &in, &err) == 0);
        in->window_limit = (size_t)1 << 21;
        REQUIRE(sv_format_open(&sv_chrome_format, in, NULL, d, &report, &s, &err) == 0);
        int n;
        while ((n = s->next(s, b, &err)) > 0) {
            n_events += (uint64_t)n;
            sv_batch_reset(b);
        }
        CONTEXT("%s", findings[i]);
        CHECK_INT_EQ(n, 0);
        CHECK_UINT_EQ(n_events, 1);
        CHECK_UINT_EQ(report.n, 1);
        CHECK_STR_EQ(report.n ? report.rows[0].what : "", findings[i]);
        s->close(s);
        sv_input_close(in);
        sv_batch_fini(b);
        free(b);
        sv_report_fini(&report);
        sv_dict_free(d);
        sv_buf_fini(&json);
    }
}

/* Damage that starts again and again must cost no more than its bytes: each of these took minutes
 * if it did not. */
TEST(adversarial_input_takes_linear_time)
{
    static const struct {
        const char *start, *part;
    } rows[] = {{"[", "{\"a\":\"b\"c "},
                {"[", "{\"x\":[{\"x\":[1,"},
                {"[", "{\"ph\":\"X\",\"args\":{\"a\":[[["},
                {"[", "{\"a\""},
                {"[", "{"},
                {"[", "\""},
                {"[", "\\\""},
                {"[", "{\"a\":\"\\"},
                {"[", "],"},
                {"[", "},{"},
                {"[", ",,,,"},
                {"{\"traceEvents\":[", "]}"},
                {"[{\"ph\":\"i\",\"ts\":1,\"args\":{\"a\":[", "\"b\" \"c\" "},
                {"[{\"ph\":\"i\",\"ts\":1,\"args\":{\"a\":{", "\"b\":{\"b\":1},"},
                {"[", "{\"ph\":\"X\",\"ts\":1,\"dur\":1,\"name\":\"q\"q\",\"x\"}"},
                {"", "{\"a\":1}"},
                {"", "\n\n[\n"}};
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct sv_buf json = new_buf();
        struct chrome_text_result r;
        repeat(&json, rows[i].start, 1);
        repeat(&json, rows[i].part, ((size_t)1 << 20) / strlen(rows[i].part));
        clock_t start = clock();
        chrome_text_read(json.data, json.len, 0, 0, &r);
        double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
        CONTEXT("%s%s… took %.1f s", rows[i].start, rows[i].part, seconds);
        CHECK(seconds < 10);
        CHECK(r.rc == 0 || r.rc == SV_EFORMAT);
        chrome_text_free(&r);
        sv_buf_fini(&json);
    }
}
