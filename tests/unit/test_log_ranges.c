/* Exceptional values in the files of other tools: a number that fits no time is damage with its
 * byte position, never another time.
 *
 * Each row changes one place of a file that is good; the rest of it is read as before. Under UBSan
 * this also says that nothing overflows on the way. */
#include "core/base/buf.h"
#include "formats/decimal.h"
#include "formats/formats.h"
#include "tests/harness/gen_events.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GOOD   "tests/golden/good/"
#define CORPUS "tests/fuzz/corpus/"

static void load(struct sv_buf *to, const char *path)
{
    char chunk[4096];
    FILE *f = fopen(test_source(path), "rb");
    REQUIRE(f != NULL);
    sv_buf_init(to, (size_t)1 << 26);
    for (size_t n; (n = fread(chunk, 1, sizeof chunk, f)) > 0;)
        sv_buf_add(to, chunk, n);
    fclose(f);
}

/* The first place of `from` becomes `to`; returns where. */
static size_t replace(struct sv_buf *b, const char *from, const char *to)
{
    uint8_t *at = memmem(b->data, b->len, from, strlen(from));
    REQUIRE(at != NULL);
    size_t place = (size_t)(at - b->data), tail = b->len - place - strlen(from);
    struct sv_buf out;
    sv_buf_init(&out, (size_t)1 << 26);
    sv_buf_add(&out, b->data, place);
    sv_buf_add(&out, to, strlen(to));
    sv_buf_add(&out, at + strlen(from), tail);
    sv_buf_fini(b);
    *b = out;
    return place;
}

struct result {
    int code;
    struct sv_err err;
    struct sv_report report;
    struct collect got;
};

static void read_it(const struct sv_buf *b, const char *name, struct result *r)
{
    struct sv_input *in;
    struct sv_source *source;
    struct sv_dict *dict = sv_dict_new();
    memset(r, 0, sizeof *r);
    sv_report_init(&r->report);
    REQUIRE(sv_input_open_memory(b->data, b->len, name, &in, &r->err) == 0);
    const struct sv_format *f = sv_format_probe(in, &r->err);
    REQUIRE(f != NULL);
    REQUIRE(sv_format_open(f, in, &(struct sv_read_options){0}, dict, &r->report, &source,
                           &r->err) == 0);
    r->code = sv_pump(source, collect_sink(&r->got, SV_HAS_ANYTHING), NULL, &r->err);
    sv_input_close(in);
    sv_dict_free(dict);
}

static void done(struct result *r)
{
    sv_report_fini(&r->report);
    collect_fini(&r->got);
}

static const struct sv_finding *first_damage(const struct sv_report *r)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->rows[i].severity == SV_DAMAGE)
            return &r->rows[i];
    return NULL;
}

/* Where the line of this place begins. */
static size_t line_of(const struct sv_buf *b, size_t place)
{
    while (place > 0 && b->data[place - 1] != '\n')
        place--;
    return place;
}

enum where { AT_LINE, AT_RECORD }; /* RECORD: anywhere behind the line, where a record ends */

static const struct {
    const char *file, *from, *to;
    enum where where;
} damages[] = {
    {GOOD "strace.out", "1658345292.000200", "9223372037.000200", AT_LINE},
    {GOOD "strace.out", "<0.000050>", "<9223372036.854775808>", AT_LINE},
    {GOOD "strace.out", "<0.000050>", "<99999999999999999999.5>", AT_LINE},
    {GOOD "strace.out", "<0.000050>", "<99999999999999999999>", AT_LINE},
    {GOOD "strace.out", "<0.000050>", "<nan>", AT_LINE},
    {GOOD "strace.out", "<0.000050>", "<-0.5>", AT_LINE},
    {GOOD "strace.out", "<0.000050>", "<>", AT_LINE},
    {GOOD "bpftrace_bio.out", "1000000600000", "18446744073709551615", AT_LINE},
    {GOOD "bpftrace_bio.out", "1000000600000", "9223372036854775808", AT_LINE},
    {GOOD "bpftrace_bio.out", "        100000", "        18446744073709551615", AT_LINE},
    {GOOD "bpftrace_bio.out", " 4096 ", " 18446744073709551615 ", AT_LINE},
    {GOOD "bpftrace_cut_bio.out", "1000000600000", "9223372036854775808", AT_LINE},
    {GOOD "bcc_biosnoop.out", "0.001500125", "9223372036.854775808", AT_LINE},
    {GOOD "bcc_biosnoop.out", " 0.10", " 9223372036854.775808", AT_LINE},
    {GOOD "bcc_biosnoop.out", " 0.10", " -0.10", AT_LINE},
    {GOOD "columns_csv.log", "12.00", "nan", AT_LINE},
    {GOOD "columns_csv.log", "12.00", "1e999", AT_LINE},
    {GOOD "columns_csv.log", "2022-08-30T21:34:57,sda", "9999-08-30T21:34:57,sda", AT_LINE},
    {GOOD "columns_csv.log", "58.500+02:00", "58.500+99:00", AT_LINE},
    {GOOD "mpstat_12h.out", " 10.00 ", " nan ", AT_LINE},
    {GOOD "mpstat_12h.out", " 10.00 ", " 1e999 ", AT_LINE},
    {GOOD "mpstat_12h.out", "12:35:54", "25:35:54", AT_LINE},
    {GOOD "pmon.out", "13086 ", "inf ", AT_LINE},
    {GOOD "pmon.out", "20230211", "99990211", AT_LINE},
    {GOOD "pmon.out", "2720661", "18446744073709551615", AT_LINE},
    {GOOD "iostat.json", "5.88", "1e999", AT_RECORD},
    {GOOD "iostat.json", "5.88", "nan", AT_RECORD},
    {GOOD "iostat.json", "5.88", "-inf", AT_RECORD},
    {GOOD "iostat.json", "5.88", "", AT_RECORD},
    {GOOD "iostat.json", "11/15/26 23:06:37", "11/15/9999 23:06:37", AT_RECORD},
    {GOOD "iostat.json", "11/15/26 23:06:37", "11/15/26 23:06:18446744073709551615", AT_RECORD},
    {GOOD "iostat.json", "11/15/26 23:06:37", "11/15/26 23:06:37+99:99", AT_RECORD},
    {GOOD "mllog.log", "1658345292500", "9223372036855", AT_LINE},
    {GOOD "mllog.log", "1658345292500", "1e300", AT_LINE},
    {GOOD "mllog.log", "1658345292500", "-5", AT_LINE},
    {GOOD "time_align.out", "1380360127485040", "18446744073709551615", AT_LINE},
    {GOOD "paje.log", "0.002000000", "9223372036.854775808", AT_LINE},
    {GOOD "paje.log", "0.002000000", "1e300", AT_LINE},
    {GOOD "paje.log", "0.002000000", "nan", AT_LINE},
    {GOOD "starpu_tasks.log", "StartTime: 1.000000", "StartTime: 9223372036854.775808", AT_RECORD},
    {GOOD "starpu_tasks.log", "EndTime: 2.000000", "EndTime: -2", AT_RECORD},
    {GOOD "starpu_tasks.log", "SubmitTime: 0.500000", "SubmitTime: 1e99", AT_RECORD},
    {GOOD "starpu_states.log", "S: 1.500000", "S: inf", AT_RECORD},
    {CORPUS "batching_csv_read/ours.csv", "27414053061", "9223372036854776", AT_LINE},
    {CORPUS "batching_csv_read/ours.csv", ",0.500,", ",9e18,", AT_LINE},
    {CORPUS "batching_csv_read/ours.csv", ",0.500,", ",nan,", AT_LINE},
    {CORPUS "batching_csv_read/ours.csv", ",1.790,", ",9223372036854.775,", AT_LINE},
    {CORPUS "rocprofv3_read/two_processes.json", "\"start_timestamp\":3000",
     "\"start_timestamp\":\"3000\"", AT_RECORD},
};

TEST(a_number_that_fits_no_time_is_damage_with_its_place)
{
    for (size_t i = 0; i < TEST_COUNT(damages); i++) {
        struct sv_buf b;
        struct result before, after;
        CONTEXT("%s: %s to %s", damages[i].file, damages[i].from, damages[i].to);
        load(&b, damages[i].file);
        read_it(&b, damages[i].file, &before);
        size_t place = replace(&b, damages[i].from, damages[i].to), line = line_of(&b, place);
        read_it(&b, damages[i].file, &after);
        CHECK_INT_EQ(after.code, 0);
        uint64_t had = sv_report_count(&before.report, SV_DAMAGE),
                 has = sv_report_count(&after.report, SV_DAMAGE);
        CHECK(has > had);
        const struct sv_finding *f = first_damage(&after.report);
        if (CHECK(f != NULL) && f && had == 0 && damages[i].where == AT_LINE)
            CHECK_INT_EQ(f->first_pos, line);
        else if (f && had == 0)
            CHECK(f->first_pos >= (int64_t)(line > 2000 ? line - 2000 : 0));
        CHECK(after.got.n + 40 >= before.got.n); /* the rest is there */
        for (size_t k = 0; k < after.got.n; k++)
            CHECK(after.got.events[k].ts_ns >= 0 && after.got.events[k].dur_ns >= SV_UNFINISHED);
        done(&before);
        done(&after);
        sv_buf_fini(&b);
    }
}

/* Each is a time, both together are none; or the file is of a kind in which only a number can be a
 * time, and it is one. */
TEST(an_end_that_fits_no_time_is_refused_with_its_place)
{
    static const struct {
        const char *file, *from, *to;
    } rows[] = {
        {GOOD "strace.out", "<0.000050>", "<9000000000.000050>"},
        {GOOD "strace.out", "1658345292.000600", "9223372036.854770"},
        {CORPUS "rocprofv3_read/two_processes.json", "\"start_timestamp\":3000",
         "\"start_timestamp\":9223372036854775808"},
        {CORPUS "rocprofv3_read/two_processes.json", "\"end_timestamp\":4500",
         "\"end_timestamp\":1e30"},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct sv_buf b;
        struct result r;
        CONTEXT("%s: %s to %s", rows[i].file, rows[i].from, rows[i].to);
        load(&b, rows[i].file);
        size_t place = replace(&b, rows[i].from, rows[i].to);
        read_it(&b, rows[i].file, &r);
        CHECK_INT_EQ(r.code, SV_ELIMIT);
        CHECK(r.err.pos >= 0 && r.err.pos <= (int64_t)place && r.err.pos + 200 > (int64_t)place);
        done(&r);
        sv_buf_fini(&b);
    }
}

/* Each pair of lines passes midnight once: after 292 years of it there is no such time. */
TEST(days_that_pass_do_not_pass_the_end_of_time)
{
    struct sv_buf b;
    struct result r;
    sv_buf_init(&b, (size_t)1 << 26);
    for (int i = 0; i < 107000; i++)
        sv_buf_str(&b,
                   "[pid 1] 23:00:00.000000 close(3) = 0\n[pid 1] 01:00:00.000000 close(3) = 0\n");
    read_it(&b, "strace", &r);
    const struct sv_finding *f = first_damage(&r.report);
    CHECK(f && strstr(f->first_detail, "2262") != NULL);
    for (size_t i = 1; i < r.got.n; i++)
        if (r.got.events[i].ts_ns < r.got.events[i - 1].ts_ns) {
            CHECK(false);
            break;
        }
    CHECK_UINT_EQ(r.got.n + sv_report_count(&r.report, SV_DAMAGE), 214000);
    done(&r);
    sv_buf_fini(&b);
}

TEST(decimal_times_up_to_the_last)
{
    static const struct {
        const char *text;
        int decimals;
        bool is_signed, is_time;
        int64_t ns;
    } rows[] = {
        {"9223372036.854775807", 9, false, true, INT64_MAX},
        {"9223372036.854775808", 9, false, false, 0},
        {"9223372036.8547758079", 9, false, true, INT64_MAX},
        {"9223372036854.775807", 6, false, true, INT64_MAX},
        {"9223372036854775807", 0, false, true, INT64_MAX},
        {"9223372036854775808", 0, false, false, 0},
        {"9.223372036854775807e+09", 9, false, true, INT64_MAX},
        {"92233720368547758070e-1", 0, false, false, 0}, /* more digits than a time has */
        {"1e18", 0, false, true, 1000000000000000000},
        {"1e19", 0, false, false, 0},
        {"1e-300", 9, false, true, 0},
        {"0e999999999999", 9, false, true, 0},
        {"1e", 9, false, false, 0},
        {"1e+", 9, false, false, 0},
        {"1e5x", 9, false, false, 0},
        {"0.1844674407370955161999", 19, false, true, 1844674407370955161},
        {"nan", 9, true, false, 0},
        {"inf", 9, true, false, 0},
        {"-9223372036.854775808", 9, true, true, INT64_MIN},
        {"-9223372036.854775809", 9, true, false, 0},
        {"-1", 9, false, false, 0},
        {"--1", 9, true, false, 0},
        {"-", 9, true, false, 0},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct sv_text t = {rows[i].text, (uint32_t)strlen(rows[i].text)};
        int64_t ns = 0;
        CONTEXT("%s", rows[i].text);
        CHECK((rows[i].is_signed ? sv_decimal_signed_ns : sv_decimal_ns)(t, rows[i].decimals,
                                                                         &ns) == rows[i].is_time);
        if (rows[i].is_time)
            CHECK_INT_EQ(ns, rows[i].ns);
    }
}

TEST(whole_numbers_fit_or_are_none)
{
    static const struct {
        const char *text;
        bool fits, is_signless;
        int64_t v, signless;
    } rows[] = {
        {"9223372036854775807", true, true, INT64_MAX, INT64_MAX},
        {"9223372036854775808", false, true, 0, INT64_MIN},
        {"18446744073709551615", false, true, 0, -1},
        {"18446744073709551616", false, false, 0, 0},
        {"-9223372036854775808", true, true, INT64_MIN, INT64_MIN},
        {"-9223372036854775809", false, false, 0, 0},
        {"0x10", false, false, 0, 0},
        {"", false, false, 0, 0},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct sv_text t = {rows[i].text, (uint32_t)strlen(rows[i].text)};
        int64_t v = 0;
        CONTEXT("%s", rows[i].text);
        CHECK(sv_text_i64(t, &v) == rows[i].fits);
        CHECK_INT_EQ(v, rows[i].v);
        v = 0;
        CHECK(sv_text_signless(t, &v) == rows[i].is_signless);
        CHECK_INT_EQ(v, rows[i].signless);
    }
}
