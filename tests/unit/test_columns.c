/* Descriptions of columns: what is understood, what is refused, headers by name and lines by
 * shape. */
#include "formats/logs/columns.h"
#include "tests/harness/test.h"

#include <string.h>

static struct sv_text text(const char *s)
{
    return (struct sv_text){s, (uint32_t)strlen(s)};
}

static struct sv_fields lines(const char *s)
{
    return (struct sv_fields){s, s + strlen(s)};
}

static void expect_columns(const struct sv_columns *c, const char *expected)
{
    char words[300];
    sv_columns_text(c, words, sizeof words);
    CHECK_STR_EQ(words, expected);
}

TEST(columns_are_read_back_as_they_were_written)
{
    static const char *const all[] = {
        "ts:utc pid bytes latency:ns path",
        "start:utc,end:utc,name",
        "ts:unix_ms tid comm offset:kb - arg.flags counter.loss",
        "end:boot pid comm|fd latency:us path+name",
        "ts:clock cpu %usr %idle",
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct sv_columns c;
        CHECK_INT_EQ(sv_columns_parse(&c, all[i], NULL), 0);
        expect_columns(&c, all[i]);
        CHECK(c.is_csv == (strchr(all[i], ',') != NULL));
    }
}

TEST(columns_that_are_refused)
{
    static const char *const all[] = {
        "",
        "pid path",           /* no time */
        "ts:utc pid pid",     /* twice */
        "ts:parsec",          /* no unit */
        "ts: pid",            /* the same */
        "ts:utc latency:utc", /* a unit of times */
        "ts:utc path:ns",     /* no unit belongs there */
        "ts:utc what",        /* no column */
        "ts:utc arg.",        /* no name */
        "ts:utc bytes=7",     /* only texts and the process hold for all lines */
        "ts:utc pid=x",       /* no number */
        "ts:utc pid=-1",      /* no process */
        "ts:utc name=",       /* no value */
        "ts:utc name=a cat=b disk=c comm=d pid=5",
        "ts:utc - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - - -",
        "ts:utc counter.a_name_that_is_longer_than_a_label_may_be_in_here",
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct sv_columns c;
        struct sv_err err = {0};
        CHECK_INT_EQ(sv_columns_parse(&c, all[i], &err), SV_EUSAGE);
        CHECK(strncmp(err.msg, "columns: ", 9) == 0);
    }
}

TEST(headers_are_read_by_their_words)
{
    struct sv_columns c;
    static const struct {
        const char *header, *columns;
    } all[] = {
        {"TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  LAT(ms)",
         "ts:s comm pid disk rw sector bytes latency:ms"},
        {"TIME     COMM           PID    T BYTES   OFF_KB   LAT(ms) FILENAME",
         "ts comm pid rw bytes offset:kb latency:ms path"},
        {"TIME(s)       UID    PID    COMM               FD ERR PATH",
         "ts:s arg.uid pid comm fd errno path"},
        {"TIMESTAMP PID OFFSET RET (B) LAT (ns) FULLPATH FILENAME",
         "ts pid offset ret latency:ns path+name"},
        {"timestamp,%usr,%nice,%idle", "ts,%usr,%nice,%idle"},
        {"\xef\xbb\xbftimestamp,sm,mem,fb", "ts,sm,mem,fb"},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        REQUIRE(sv_columns_of_header(&c, text(all[i].header)));
        expect_columns(&c, all[i].columns);
    }
    static const char *const none[] = {"",
                                       "PID    COMM               FD ERR PATH", /* no time */
                                       "TIMESTAMP       TIME",
                                       "the time of the name is no header of a log",
                                       "ts_ns,dur_ns,kind,process,pid,thread,tid,track,category",
                                       "batch_id,total_ms,worker_id",
                                       "1000000500000 4242 4096 20000 case.npy",
                                       "timestamp,"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        CHECK(!sv_columns_of_header(&c, text(none[i])));
}

/* The record refers to the columns, until the next call. */
static bool takes(const char *columns, const char *line, struct sv_record *r)
{
    static struct sv_columns c;
    struct sv_csv_line csv = {0};
    REQUIRE(sv_columns_parse(&c, columns, NULL) == 0);
    bool is_taken = sv_columns_take(&c, text(line), &csv, r);
    sv_csv_fini(&csv);
    return is_taken;
}

TEST(times_of_lines)
{
    struct sv_record r;
    REQUIRE(takes("ts:utc pid", "2022-08-30T21:34:57.903677748 7", &r));
    CHECK_INT_EQ(r.stamp[SV_COL_TS].days, 19234);
    CHECK_INT_EQ(r.stamp[SV_COL_TS].of_day, 77697903677748);
    REQUIRE(takes("ts:utc pid", "2022-08-30 21:34:57 7", &r)); /* in two words */
    CHECK_INT_EQ(r.stamp[SV_COL_TS].of_day, 77697000000000);
    REQUIRE(takes("ts:local pid", "08/30/2022 09:34:57 PM 7", &r));
    CHECK_INT_EQ(r.stamp[SV_COL_TS].of_day, 77697000000000);
    REQUIRE(takes("ts:utc pid", "2022-08-30T21:34:57-05:30 7", &r));
    CHECK_INT_EQ(r.stamp[SV_COL_TS].offset_s, -19800);
    REQUIRE(takes("ts:unix pid", "1661895297.000000001 7", &r));
    CHECK_INT_EQ(r.stamp[SV_COL_TS].ns, 1661895297000000001);
    REQUIRE(takes("ts pid", "12:00:01 7", &r));
    CHECK_INT_EQ(r.stamp[SV_COL_TS].unit, SV_UNIT_CLOCK);
    CHECK(!takes("ts:boot pid", "9223372036854775808 7", &r));
    CHECK(!takes("ts:boot pid", "-1 7", &r));
    CHECK(!takes("ts:boot pid", "1.5 7", &r));
    CHECK(!takes("ts:unix pid", "9223372037 7", &r)); /* past int64 in nanoseconds */
    CHECK(!takes("ts:utc pid", "2022-08-30T21:34:57+5 7", &r));
    CHECK(!takes("ts:utc pid", "2022-08-30 7", &r));
    CHECK(!takes("ts:utc pid latency", "2022-08-30T21:34:57 7 -1", &r));
}

TEST(fields_of_lines)
{
    struct sv_record r;
    REQUIRE(takes("ts:boot pid comm bytes", "1 7 my worker 42", &r));
    CHECK_INT_EQ(r.text[SV_COL_COMM].len, 9);
    CHECK_INT_EQ(r.number[SV_COL_BYTES], 42);
    REQUIRE(takes("ts:boot,name,pid", "1,\"a, b\",7", &r));
    CHECK_INT_EQ(r.text[SV_COL_NAME].len, 4);
    REQUIRE(takes("ts:boot offset:kb path name=read", "1 4 a b", &r));
    CHECK_INT_EQ(r.number[SV_COL_OFFSET], 4096);
    CHECK(sv_text_is(r.text[SV_COL_NAME], "read"));
    CHECK(!takes("ts:boot offset:kb", "1 9223372036854775807", &r));
    CHECK(!takes("ts:boot pid", "1 7 more", &r));
    CHECK(!takes("ts:boot pid", "1", &r));
    CHECK(!takes("ts:boot,pid", "1,7,8", &r));
}

static const char *shape(const char *head, enum sv_column_unit unit, const char *path)
{
    struct sv_columns c;
    const struct sv_log_shape *s = sv_log_shape_of(lines(head), unit, path, &c);
    return !s ? "none" : s->op ? s->op : "the line says it";
}

TEST(lines_without_a_header_are_known_by_shape)
{
#define UTC "2022-08-30T21:34:57.888744389 "
    const enum sv_column_unit utc = SV_UNIT_UTC, boot = SV_UNIT_BOOT;
    CHECK_STR_EQ(shape(UTC "7 832 6120 libc.so\n", utc, "read_7"), "read");
    CHECK_STR_EQ(shape(UTC "7 9092 /opt/lib/libc.so \n", utc, "open_7"), "openat");
    CHECK_STR_EQ(shape(UTC "7 R 4096 46265 \n", utc, "x"), "block");
    CHECK_STR_EQ(shape(UTC "7 0x55d70b1471e0 36061 0\n", utc, "x"), "write");
    CHECK_STR_EQ(shape(UTC "7 python sdb W 4096 8 100000\n", utc, "x"), "block");
    CHECK_STR_EQ(shape(UTC "7 0 4096 100000 a.npy\n", utc, "x/read.out"), "read");
    CHECK_STR_EQ(shape(UTC "7 0 4096 100000 a.npy\n", utc, "x/write.out"), "write");
    CHECK_STR_EQ(shape("1000000500000 7 0 4096 10 a.npy\n", boot, NULL), "read");
    CHECK_STR_EQ(shape("1000000500000 7 5 10 a.npy\n", boot, "trace_close.out"), "close");
    CHECK_STR_EQ(shape("1000000500000 7 mkdir() 511 10 /tmp/x\n", boot, NULL), "the line says it");
    CHECK_STR_EQ(shape("1000000500000 7 0 4096 10 a.npy\n", utc, NULL), "none");
    CHECK_STR_EQ(shape("a text\nof two lines\n", utc, "read_7"), "none");
    CHECK_STR_EQ(shape("", utc, "read_7"), "none");
    /* A table of numbers is no log: times since boot are large, and latencies are shorter. */
    CHECK_STR_EQ(shape("1 0 0 812345 2068 10\n2 0 0 812345 2068 10\n", boot, NULL), "none");
    CHECK_STR_EQ(shape("1000000500000 7 0 4096 1000000500001 a\n", boot, NULL), "none");
    /* Fewer than half of the lines are not enough. */
    CHECK_STR_EQ(shape(UTC "7 832 6120 libc.so\nno\nnor this\n", utc, "read_7"), "none");
#undef UTC
}

TEST(names_of_files_say_what_and_whose)
{
    CHECK_INT_EQ(sv_log_pid_of_path("a_1/st_end_data_4242"), 4242);
    CHECK_INT_EQ(sv_log_pid_of_path("a/read_4242.out"), 4242);
    CHECK_INT_EQ(sv_log_pid_of_path("a_17/trace_read.out"), -1);
    CHECK_INT_EQ(sv_log_pid_of_path("a_99999999999999999999"), -1);
    CHECK_STR_EQ(sv_log_op_of_path("read_data/open_7"), "openat");
    CHECK(sv_log_op_of_path("read_data/x") == NULL);
}
