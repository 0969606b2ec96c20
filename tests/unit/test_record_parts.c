/* Long recordings in parts and rings, whole: of a program that says what it has recorded by
 * numbers, so that what is in which file can be counted. No kernel programs are needed. */
#include "core/base/err.h"
#include "tests/harness/test.h"
#include "tests/unit/verb.h"
#include "tests/unit/whole.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* How many there are in a file, the first and the last, how often the slice around them; the
 * recording that it is a part of, and its number. */
struct content {
    unsigned n, first, last, n_whole, part;
    char recording[64];
    long long start_ns;
};

static struct content content_of(const char *file)
{
    struct content c = {0};
    const char *row = whole_ask(
        file, "SELECT count(*), min(extract_arg(arg_set_id, \"seq\")), "
              "max(extract_arg(arg_set_id, \"seq\")), (SELECT count(*) FROM slice WHERE name = "
              "\"whole\") FROM slice WHERE name = \"n\" AND length(extract_arg(arg_set_id, "
              "\"text\")) = 3999");
    if (sscanf(row, "%u,%u,%u,%u", &c.n, &c.first, &c.last, &c.n_whole) < 1)
        CHECK(false && "a row");
    row = whole_ask(file, "SELECT str_value FROM metadata WHERE name = \"stave.rotation\"");
    if (sscanf(row, "%63s %u %lld", c.recording, &c.part, &c.start_ns) != 3)
        c.part = 0;
    return c;
}

static bool is_there(const char *file)
{
    return access(file, F_OK) == 0;
}

static uint64_t size_of(const char *file)
{
    struct stat st;
    return stat(file, &st) == 0 ? (uint64_t)st.st_size : 0;
}

static const char *part_name(unsigned number)
{
    static char name[64];
    snprintf(name, sizeof name, "t-%04u.pftrace", number);
    return name;
}

/* The parts of one recording from this number on, and t.pftrace: together they have `n` events up
 * to the last one, each once, and the slice goes on in all of them. Returns how many parts there
 * are. */
static unsigned check_parts(unsigned first, unsigned last_event, char recording[64])
{
    struct content before = {0};
    unsigned n = 0;
    for (unsigned i = first;; i++) {
        bool is_newest = !is_there(part_name(i));
        struct content c = content_of(is_newest ? "t.pftrace" : part_name(i));
        CONTEXT("part %u", i);
        CHECK(c.n_whole == 1 || (is_newest && c.n == 0)); /* it may have begun after all events */
        CHECK_UINT_EQ(c.n, c.n ? c.last - c.first + 1 : 0);
        if (n > 0 && c.n > 0)
            CHECK_UINT_EQ(c.first, before.last + 1);
        if (n > 0) {
            CHECK_STR_EQ(c.recording, before.recording);
            CHECK_UINT_EQ(c.part, before.part + 1);
            CHECK(c.start_ns > before.start_ns);
        }
        if (!is_newest)
            CHECK(size_of(part_name(i)) >= 256 << 10);
        before.last = c.n ? c.last : before.last;
        before.part = c.part;
        before.start_ns = c.start_ns;
        snprintf(before.recording, sizeof before.recording, "%s", c.recording);
        n++;
        if (is_newest)
            break;
    }
    CHECK(before.last == last_event || (n == 1 && before.last == 0));
    snprintf(recording, 64, "%s", before.recording);
    return n;
}

/* `said` is what was said at its end. */
static void check_said(const char *said, unsigned n, unsigned n_removed)
{
    char line[100];
    if (n_removed)
        snprintf(line, sizeof line,
                 "%u parts, the oldest %u of them removed; the newest is t.pftrace", n, n_removed);
    else
        snprintf(line, sizeof line, "%u parts; the newest is t.pftrace", n);
    if (!CHECK(strstr(said, line)))
        printf("  said %s  not %s\n", said, line);
}

static void rotated(void)
{
    char first[64], second[64], third[64], said[sizeof verb_said];
    whole_need_sql();
    verb_enter("rotated");
    CHECK_INT_EQ(whole_record_emitter(400, "-o t.pftrace --rotate 256K"), 0);
    memcpy(said, verb_said, sizeof said);
    unsigned n = check_parts(1, 399, first);
    CHECK(n >= 2);
    CHECK_INT_EQ(content_of("t-0001.pftrace").first, 0);
    CHECK_INT_EQ(content_of("t-0001.pftrace").part, 1);
    check_said(said, n, 0);
    /* The next one begins behind it: the newest part of the one before has got a number. Two are
     * kept, and those of the one before. */
    CHECK_INT_EQ(whole_record_emitter(400, "-o t.pftrace --rotate 256K,2"), 0);
    memcpy(said, verb_said, sizeof said);
    for (unsigned i = 1; i <= n; i++)
        CHECK_STR_EQ(content_of(part_name(i)).recording, first);
    CHECK(!is_there(part_name(n + 1)));
    unsigned newest = content_of("t.pftrace").part;
    CHECK(newest >= 2);
    CHECK_UINT_EQ(check_parts(n + newest - 1, 399, second), 2);
    CHECK(strcmp(first, second) != 0);
    check_said(said, newest, newest - 2);
    /* Only the newest one. */
    unsigned all = n + newest;
    CHECK_INT_EQ(whole_record_emitter(200, "-o t.pftrace --rotate 256K,1"), 0);
    memcpy(said, verb_said, sizeof said);
    CHECK_STR_EQ(content_of(part_name(all)).recording, second);
    CHECK(!is_there(part_name(all + 1)));
    newest = content_of("t.pftrace").part;
    CHECK_UINT_EQ(check_parts(all + newest, 199, third), 1);
    CHECK(newest >= 2);
    check_said(said, newest, newest - 1);
    /* So much for all of them: what was there before goes first. */
    CHECK_INT_EQ(whole_record_emitter(900, "-o t.pftrace --rotate 256K --disk 1M"), 0); /* 3.5 MB */
    for (unsigned i = 1; i < all; i++)
        CHECK(!is_there(part_name(i)));
    uint64_t sum = size_of("t.pftrace");
    unsigned oldest = 0;
    for (unsigned i = all + 16; i >= all; i--)
        if (is_there(part_name(i))) {
            sum += size_of(part_name(i));
            oldest = i;
        }
    CHECK(sum > 200 << 10 && sum < 3000 << 10); /* more than was asked for, for one round */
    if (oldest)
        check_parts(oldest, 899, second);
    verb_leave();
}

TEST(parts_are_one_after_the_other)
{
    test_in_child(rotated);
}

static void ring(void)
{
    whole_need_sql();
    verb_enter("ring");
    CHECK_INT_EQ(whole_record_emitter(700, "-o r.pftrace --last 2M"), 0);
    CHECK_STR_EQ(verb_files(), "r.pftrace");
    struct content c = content_of("r.pftrace");
    CHECK_UINT_EQ(c.last, 699);
    CHECK_UINT_EQ(c.n, c.last - c.first + 1);
    CHECK_UINT_EQ(c.n_whole, 1);
    CHECK(c.first > 0 && size_of("r.pftrace") < 2400 << 10 && size_of("r.pftrace") > 1 << 20);
    CHECK_UINT_EQ(c.part, 0);
    /* All of a time that is longer than the recording; saved while it runs, and at the end. */
    setenv("EMIT_SIGNAL", "s-0001.pftrace", 1);
    CHECK_INT_EQ(whole_record_emitter(100, "-o s.pftrace --last 100s"), 0);
    unsetenv("EMIT_SIGNAL");
    CHECK_STR_EQ(verb_files(), "r.pftrace s-0001.pftrace s.pftrace");
    CHECK(whole_says("saved s-0001.pftrace\n"));
    for (int i = 0; i < 2; i++) {
        c = content_of(i ? "s-0001.pftrace" : "s.pftrace");
        CHECK(c.n == 100 && c.first == 0 && c.last == 99 && c.n_whole == 1 && c.part == 0);
    }
    verb_leave();
}

TEST(a_ring_has_the_newest)
{
    test_in_child(ring);
}

/* A file of its own for each hit, called by the time of the hit; nothing else is left. */
static void named_by_time(void)
{
    char name[200], time[64] = "", ts[64];
    whole_need_sql();
    verb_enter("named");
    test_write_file("end.sh", "exit 3\n");
    CHECK_INT_EQ(whole_record("-o 'w 100%% %t.pftrace' --only sdk --no-explain --tail 0s --when "
                              "'exit == 3' -- /bin/sh end.sh"),
                 3);
    snprintf(name, sizeof name, "%s", verb_files());
    REQUIRE(sscanf(name, "end.sh w 100%% %31[0-9TZ.].pftrace", time) == 1);
    size_t len = strlen(time); /* with the dot of the ending */
    REQUIRE(len == strlen("20260102T030405.678Z."));
    time[len - 1] = '\0';
    snprintf(name, sizeof name, "w 100%% %s.pftrace", time);
    CHECK_STR_EQ(verb_files() + strlen("end.sh "), name);
    char said[300];
    snprintf(said, sizeof said, "saved %s: exit == 3: process 'sh' ended with exit code 3\n", name);
    CHECK(whole_says(said));
    REQUIRE(rename(name, "w.pftrace") == 0);
    snprintf(ts, sizeof ts, "%s",
             whole_ask("w.pftrace", "SELECT ts FROM slice WHERE name = \"exit == 3\""));
    char want[400];
    snprintf(want, sizeof want,
             "trigger,exit == 3\ntrigger_cause,process 'sh' ended with exit code 3\n"
             "trigger_time,%s\ntrigger_ts,%s",
             time, ts);
    CHECK_STR_EQ(whole_ask("w.pftrace", "SELECT name, str_value FROM metadata WHERE name GLOB "
                                        "\"trigger*\" ORDER BY 1"),
                 want);
    /* Without a hit nothing is kept of a command that succeeds; of one that fails all is. */
    CHECK_INT_EQ(whole_record("-o %t.pftrace --only sdk --no-explain --when 'exit == 4' -- "
                              "/bin/true"),
                 0);
    CHECK_STR_EQ(verb_files(), "end.sh w.pftrace");
    CHECK_INT_EQ(whole_record("-o z%t.pftrace --only sdk --no-explain --when 'exit == 4' -- "
                              "/bin/sh end.sh"),
                 3);
    CHECK_STR_EQ(strstr(verb_files(), "w.pftrace z2") ? "kept" : verb_files(), "kept");
    verb_leave();
}

TEST(a_file_called_by_the_time_of_its_hit)
{
    test_in_child(named_by_time);
}

/* Each hit is an event of the trace, and a file or one that was left out; two files are kept. */
static void many_hits(void)
{
    char said[sizeof verb_said], newest[64] = "";
    unsigned n_files = 0, n_saved = 0;
    whole_need_sql();
    verb_enter("hits");
    setenv("EMIT_HITS", "24", 1);
    CHECK_INT_EQ(whole_record_emitter(16, "-o h.pftrace --tail 0s --pause 100ms --keep 2 --when "
                                          "'slice \"long\" > 2ms' --when 'slice \"short\" > 2ms'"),
                 0);
    unsetenv("EMIT_HITS");
    memcpy(said, verb_said, sizeof said);
    uint64_t skipped = whole_number_before(said, " more events met a condition while another was ");
    for (const char *at = said; (at = strstr(at, "stave record: saved h-")); at++) {
        CHECK(sscanf(at, "stave record: saved %63[^:]: ", newest) == 1);
        CHECK(strstr(at, ": slice \"long\" > 2ms: 'long' took 5.000 ms\n") ==
              at + strlen("stave record: saved ") + strlen(newest));
        n_saved++;
    }
    CONTEXT("%u saved, %llu skipped\n%s", n_saved, (unsigned long long)skipped, said);
    CHECK(n_saved >= 2 && n_saved + skipped == 12);
    for (unsigned i = 1; i <= 24; i++) {
        char name[64];
        snprintf(name, sizeof name, "h-%04u.pftrace", i);
        n_files += is_there(name);
        CHECK(!is_there(name) || i + 1 >= n_saved);
    }
    CHECK_UINT_EQ(n_files, 2);
    CHECK(is_there(newest) && content_of(newest).n == 16);
    CHECK_UINT_EQ(whole_number("h.pftrace", "SELECT count(*) FROM slice WHERE category = "
                                            "\"trigger\" AND name GLOB \"slice*long* > 2ms\""),
                  12);
    CHECK_UINT_EQ(whole_number("h.pftrace", "SELECT max(extract_arg(arg_set_id, \"hit\")) FROM "
                                            "slice WHERE category = \"trigger\""),
                  12);
    verb_leave();
}

TEST(hits_are_saved_or_counted)
{
    test_in_child(many_hits);
}
