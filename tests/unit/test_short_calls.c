/* Sums of short calls: exact, per second, in bounded memory. */
#include "core/stream/batch.h"
#include "record/decode/decode.h"
#include "record/decode/short_calls.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <string.h>

#define S ((int64_t)1000000000)

struct sums {
    int64_t calls, bytes, failed, events, without_path;
};

static int64_t arg(struct sv_dict *d, const struct sv_event *e, const char *key)
{
    for (unsigned i = 0; i < e->n_args; i++)
        if (e->args[i].key == sv_dict_cstr(d, key))
            return e->args[i].type == SV_ARG_INT ? e->args[i].i : 1;
    return 0;
}

static struct sums take(struct sv_short_calls *s, struct sv_dict *d, int64_t until_ns)
{
    struct sums sums = {0};
    struct sv_source *source = sv_short_calls_source(s, until_ns);
    static struct sv_batch b;
    struct sv_err err = {0};
    sv_batch_init(&b);
    while (source->next(source, &b, &err) > 0) {
        for (size_t i = 0; i < b.n; i++) {
            sums.events++;
            sums.calls += arg(d, &b.events[i], "count");
            sums.bytes += arg(d, &b.events[i], "bytes");
            sums.failed += arg(d, &b.events[i], "failed");
            sums.without_path += arg(d, &b.events[i], "path") ? 0 : arg(d, &b.events[i], "count");
        }
        sv_batch_reset(&b);
    }
    sv_batch_fini(&b);
    return sums;
}

TEST(short_calls_are_summed_by_second_process_call_and_file)
{
    struct sv_dict *d = sv_dict_new();
    struct sv_report report;
    sv_report_init(&report);
    struct sv_decode *decode =
        sv_decode_new(d, &report, &(struct sv_decode_options){.sum_below_ns = 1000000});
    struct sv_short_calls *s = sv_decode_short_calls(decode);
    REQUIRE(s);
    struct sv_short_call c = {.process = sv_dict_process(d, 0, 7),
                              .name = sv_dict_cstr(d, "read"),
                              .path = "/a",
                              .path_len = 2,
                              .bytes = 10};
    for (int i = 0; i < 1500; i++) {
        c.start_ns = i * (S / 1000);
        c.end_ns = c.start_ns + 100;
        c.failed = i % 100 == 0;
        sv_short_calls_add(s, &c);
    }
    c.path = NULL;
    c.path_len = 0;
    c.bytes = 0;
    sv_short_calls_add(s, &c);
    struct sums first = take(s, d, S);
    CHECK_INT_EQ(first.events, 1);
    CHECK_INT_EQ(first.calls, 1000);
    CHECK_INT_EQ(first.bytes, 10000);
    CHECK_INT_EQ(first.failed, 10);
    CHECK_INT_EQ(take(s, d, S).events, 0);
    struct sums rest = take(s, d, INT64_MAX);
    CHECK_INT_EQ(rest.events, 2);
    CHECK_INT_EQ(rest.calls, 501);
    CHECK_INT_EQ(rest.without_path, 1);
    sv_decode_free(decode);
    sv_report_fini(&report);
    sv_dict_free(d);
}

TEST(short_calls_on_very_many_files_are_all_counted)
{
    enum { FILES = 70000 };
    struct sv_dict *d = sv_dict_new();
    struct sv_report report;
    sv_report_init(&report);
    struct sv_decode *decode =
        sv_decode_new(d, &report, &(struct sv_decode_options){.sum_below_ns = 1000000});
    struct sv_short_calls *s = sv_decode_short_calls(decode);
    char path[32];
    for (int i = 0; i < FILES; i++) {
        struct sv_short_call c = {.process = sv_dict_process(d, 0, 7),
                                  .name = sv_dict_cstr(d, "read"),
                                  .path = path,
                                  .end_ns = 5,
                                  .bytes = 1};
        c.path_len = (size_t)snprintf(path, sizeof path, "/data/%d", i);
        sv_short_calls_add(s, &c);
    }
    struct sums all = take(s, d, INT64_MAX);
    CHECK_INT_EQ(all.calls, FILES);
    CHECK_INT_EQ(all.bytes, FILES);
    CHECK(all.without_path > 0 && all.without_path < FILES / 2);
    sv_decode_free(decode);
    sv_report_fini(&report);
    sv_dict_free(d);
}
