/* What a trace could show: by its metadata, by its events, and of merged files. */
#include "tests/harness/test.h"
#include "tests/unit/text_trace.h"
#include "why/coverage.h"

static struct sv_trace *trace;
static struct sv_dict *dict;
static struct sv_report findings;

static struct sv_coverage coverage(const char *text)
{
    struct sv_coverage c;
    dict = sv_dict_new();
    trace = text_trace(text, dict, &findings);
    sv_coverage_of(&c, trace);
    return c;
}

static void done(void)
{
    sv_trace_free(trace);
    sv_report_fini(&findings);
    sv_dict_free(dict);
}

#define HEAD   "# stave text 1\n"
#define THREAD "track #1 thread uuid=0x12 pid=7 tid=8 name=\"t\"\n"

static void check_text(struct sv_text is, const char *want)
{
    CHECK_UINT_EQ(is.len, strlen(want));
    CHECK(is.len == strlen(want) && memcmp(is.bytes, want, is.len) == 0);
}

TEST(coverage_is_what_the_metadata_say)
{
    struct sv_coverage c = coverage(HEAD "meta \"recorded.states\" \"kernel\"\n"
                                         "meta \"recorded.waits\" \"kernel min_ns=1000000\"\n"
                                         "meta \"recorded.calls\" \"kernel groups=files,sync "
                                         "min_ns=20000 path=/my data/x y\"\n"
                                         "meta \"recorded.counters\" \"proc every_ns=100000000\"\n"
                                         "meta \"recorded.samples\" \"no\"\n");
    const struct sv_coverage_limits *p = c.parts;
    CHECK_INT_EQ(p[SV_COVERAGE_STATES].is, SV_COVERAGE_HAS_ALL);
    CHECK(p[SV_COVERAGE_STATES].is_stated);
    CHECK_INT_EQ(p[SV_COVERAGE_WAITS].min_ns, 1000000);
    CHECK_INT_EQ(p[SV_COVERAGE_CALLS].min_ns, 20000);
    check_text(p[SV_COVERAGE_CALLS].only, "files,sync");
    check_text(p[SV_COVERAGE_CALLS].path, "/my data/x y");
    check_text(p[SV_COVERAGE_COUNTERS].by, "proc");
    CHECK_INT_EQ(p[SV_COVERAGE_COUNTERS].every_ns, 100000000);
    CHECK_INT_EQ(p[SV_COVERAGE_SAMPLES].is, SV_COVERAGE_HAS_NONE);
    CHECK_INT_EQ(p[SV_COVERAGE_BLOCK].is, SV_COVERAGE_UNKNOWN);
    CHECK(!p[SV_COVERAGE_BLOCK].is_stated);
    done();
}

TEST(coverage_says_for_how_long_something_was_given_up)
{
    struct sv_coverage c =
        coverage(HEAD "meta \"recorded.samples\" \"kernel off_ns=12 less_ns=3 of_ns=60 "
                      "every_ns=5\"\n"
                      "meta \"rank 1/recorded.samples\" \"kernel off_ns=7 less_ns=4 of_ns=50\"\n"
                      "meta \"recorded.calls\" \"kernel off_ns=0 less_ns=9 of_ns=60 path=/off_ns=8 "
                      "off_ns=9\"\n");
    const struct sv_coverage_limits *p = c.parts;
    CHECK_INT_EQ(p[SV_COVERAGE_SAMPLES].off_ns, 12);
    CHECK_INT_EQ(p[SV_COVERAGE_SAMPLES].less_ns, 4);
    CHECK_INT_EQ(p[SV_COVERAGE_SAMPLES].of_ns, 60);
    CHECK_INT_EQ(p[SV_COVERAGE_SAMPLES].every_ns, 5);
    CHECK_INT_EQ(p[SV_COVERAGE_CALLS].off_ns, 0);
    CHECK_INT_EQ(p[SV_COVERAGE_CALLS].less_ns, 9);
    check_text(p[SV_COVERAGE_CALLS].path, "/off_ns=8 off_ns=9");
    done();
}

TEST(coverage_of_files_without_metadata_is_what_is_there)
{
    struct sv_coverage c = coverage(HEAD THREAD
                                    "0.000000010 instant #1 \"read\" cat=\"syscall\"\n"
                                    "0.000000020 instant #1 \"accept4\" cat=\"syscall\"\n"
                                    "0.000000030 instant #1 \"Running\" cat=\"thread_state\"\n");
    CHECK_INT_EQ(c.parts[SV_COVERAGE_CALLS].is, SV_COVERAGE_HAS_ALL);
    CHECK_INT_EQ(c.parts[SV_COVERAGE_SOCKETS].is, SV_COVERAGE_HAS_ALL);
    CHECK_INT_EQ(c.parts[SV_COVERAGE_STATES].is, SV_COVERAGE_HAS_ALL);
    CHECK(!c.parts[SV_COVERAGE_STATES].is_stated);
    CHECK_INT_EQ(c.parts[SV_COVERAGE_WAITS].is, SV_COVERAGE_UNKNOWN);
    CHECK_INT_EQ(c.parts[SV_COVERAGE_COUNTERS].is, SV_COVERAGE_UNKNOWN);
    done();
}

TEST(coverage_of_merged_files_is_what_all_of_them_have)
{
    struct sv_coverage c = coverage(HEAD THREAD
                                    "meta \"rank 0/recorded.states\" \"kernel\"\n"
                                    "meta \"rank 1/recorded.states\" \"no\"\n"
                                    "meta \"rank 0/recorded.waits\" \"kernel min_ns=10\"\n"
                                    "meta \"rank 1/recorded.waits\" \"kernel min_ns=20\"\n"
                                    "meta \"recorded.block\" \"no\"\n"
                                    "meta \"unrecorded.calls\" \"no\"\n"
                                    "0.000000010 instant #1 \"read\" cat=\"block\"\n");
    CHECK_INT_EQ(c.parts[SV_COVERAGE_STATES].is, SV_COVERAGE_HAS_SOME);
    CHECK_INT_EQ(c.parts[SV_COVERAGE_WAITS].is, SV_COVERAGE_HAS_ALL);
    CHECK_INT_EQ(c.parts[SV_COVERAGE_WAITS].min_ns, 20);
    CHECK_INT_EQ(c.parts[SV_COVERAGE_BLOCK].is, SV_COVERAGE_HAS_SOME);
    CHECK_INT_EQ(c.parts[SV_COVERAGE_CALLS].is, SV_COVERAGE_UNKNOWN);
    done();
}
