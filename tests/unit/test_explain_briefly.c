/* What is said at the end of a recording, of traces with known states and samples. */
#include "cmd/briefly.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <string.h>

static const char head[] =
    "# stave text 1\nclock boottime\nmeta \"writer\" \"stave record\"\n"
    "track #1 process uuid=0x1 pid=100 name=\"python3\"\n"
    "track #2 thread uuid=0x2 parent=#1 pid=100 tid=100 name=\"python3\"\n"
    "track #3 custom uuid=0x3 parent=#2 name=\"state\"\n"
    "0.000000000 slice #3 \"Running\" cat=\"thread_state\" dur=1.000000000\n";
static const char samples[] =
    "0.100000000 instant #2 \"sample\" cat=\"cpu_sample\" {@stack[\"main\" \"crunch (a.py:6)\"]}\n"
    "0.200000000 instant #2 \"sample\" cat=\"cpu_sample\" {@stack[\"main\" \"crunch (a.py:6)\"]}\n"
    "0.300000000 instant #2 \"sample\" cat=\"cpu_sample\" {@stack[\"main\" \"crunch (a.py:6)\"]}\n"
    "0.400000000 instant #2 \"sample\" cat=\"cpu_sample\" {@stack[\"main\"]}\n";
static const char waits[] =
    "1.000000000 slice #3 \"Sleeping\" cat=\"thread_state\" dur=%s {reason=\"sleep\"}\n";

static char said[4096];

static void say(const char *with_samples, const char *sleeps)
{
    struct sv_err err = {0};
    const char *path = test_scratch("briefly.txt");
    FILE *f = fopen(path, "w"), *to = tmpfile();
    REQUIRE(f && to);
    fprintf(f, "%s%s", head, with_samples);
    if (sleeps)
        fprintf(f, waits, sleeps);
    fclose(f);
    CHECK_INT_EQ(sv_explain_briefly(to, path, 3, (size_t)1 << 30, &err), 0);
    rewind(to);
    said[fread(said, 1, sizeof said - 1, to)] = 0;
    fclose(to);
}

static const char hot[] = "  Computes in: crunch (a.py:6) 75 %, main 25 %\n";

TEST(where_the_time_is_computing_the_functions_are_said)
{
    say(samples, NULL);
    CHECK(strncmp(said, "  No", 4) == 0 && strstr(said, "takes a twentieth"));
    CHECK(strstr(said, hot));
    say("", NULL);
    CHECK(!strstr(said, "Computes"));
    say(samples, "0.500000000"); /* a third of the time is a wait */
    CHECK(strncmp(said, "  1. ", 5) == 0);
    CHECK(strstr(said, hot));
    say(samples, "9.000000000");
    CHECK(strncmp(said, "  1. ", 5) == 0);
    CHECK(!strstr(said, "Computes"));
}
