/* Logs of a command that become rows of its trace, through whole recordings. */
#include "core/base/err.h"
#include "tests/harness/test.h"
#include "tests/unit/verb.h"
#include "tests/unit/whole.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The command writes its log: an interval of 40 ms that begins now, one that began a minute before
 * it and ended then, and a point. */
#define LINE                                                                                    \
    "printf ':::MLLOG {\"namespace\": \"\", \"time_ms\": %s, \"event_type\": \"%s\", \"key\": " \
    "\"%s\", \"value\": 3, \"metadata\": {}}\\n' "
#define SCRIPT                                                                      \
    "t=$(date +%s%3N); {\n" LINE "$((t - 60000)) INTERVAL_START old\n" LINE         \
    "$((t - 59000)) INTERVAL_END old\n" LINE "$t INTERVAL_START epoch_start\n" LINE \
    "$t POINT_IN_TIME eval_accuracy\n" LINE                                         \
    "$((t + 40)) INTERVAL_END epoch_stop\n} > \"$1\"; echo $t > at; exit 5\n"

/* Rows of all logs, with milliseconds since the script began. */
static const char *rows_of(const char *file)
{
    char sql[400];
    snprintf(sql, sizeof sql,
             "SELECT p.name, t.name, s.name, (s.dur + 500000) / 1000000, (to_realtime(s.ts) + "
             "500000) / 1000000 - %lld FROM slice s JOIN track t ON t.id = s.track_id JOIN track p "
             "ON p.id = t.parent_id ORDER BY 1, s.ts, 3",
             strtoll(test_read_file("at"), NULL, 10));
    return whole_ask(file, sql);
}

#define RECORD(out, options) \
    whole_record("-o " out " --only sdk --no-explain " options " -- /bin/sh log.sh log.log")

static void with_logs(void)
{
    whole_need_sql();
    verb_enter("logs");
    test_write_file("log.sh", SCRIPT);
    CHECK_INT_EQ(RECORD("t.pftrace", "--log log.log"), 5);
    CHECK(whole_says("log.log: 1 entries from before the recording left out\n"));
    CHECK_STR_EQ(rows_of("t.pftrace"), "log log.log,phases,epoch,40,0\n"
                                       "log log.log,phases,eval_accuracy,0,0\n");
    /* Each has rows of its own; what cannot be read is one line, and the others are there. */
    test_write_file("old.log",
                    ":::MLLOG {\"namespace\": \"\", \"time_ms\": 1, \"event_type\": "
                    "\"POINT_IN_TIME\", \"key\": \"a\", \"value\": 1, \"metadata\": {}}\n");
    test_write_file("no.log", "not a log\n");
    test_write_file("x.json", "{\"traceEvents\":[{\"ph\":\"X\",\"ts\":1,\"dur\":1,\"pid\":1,"
                              "\"tid\":1,\"name\":\"a\"}]}\n");
    REQUIRE(symlink("log.log", "same.log") == 0);
    CHECK_INT_EQ(RECORD("s.pftrace", "--log old.log --log nowhere.log --log no.log --log x.json "
                                     "--log log.log --log same.log"),
                 5);
    CHECK(whole_says("old.log: 1 entries from before the recording left out\n"));
    CHECK(whole_says("nowhere.log: cannot open: No such file or directory\n"));
    CHECK(whole_says("no.log: byte 0: not a trace that Stave knows; --from FORMAT forces one\n"));
    CHECK(whole_says("stave record: x.json: neither MLLOG lines nor DLIO's log, but chrome; 'stave "
                     "merge' joins it\n"));
    CHECK_STR_EQ(rows_of("s.pftrace"), "log log.log,phases,epoch,40,0\n"
                                       "log log.log,phases,eval_accuracy,0,0\n"
                                       "log same.log,phases,epoch,40,0\n"
                                       "log same.log,phases,eval_accuracy,0,0\n");
    /* All that could not be read is something that was asked for and is missing. */
    CHECK_INT_EQ(whole_record("-o p.pftrace --only sdk --no-explain --strict --log nowhere.log -- "
                              "/bin/true"),
                 1);
    CHECK_INT_EQ(whole_record("-o q.pftrace --only sdk --no-explain --strict --log log.log -- "
                              "/bin/true"),
                 0);
    CHECK_INT_EQ(RECORD("r.pftrace", "--log log.log --redact paths"), SV_EUSAGE);
    CHECK_STR_EQ(verb_message,
                 "--log and --redact exclude each other: texts of a log stay as they are");
    CHECK_INT_EQ(RECORD("r.pftrace", "--log log.log --log-tz Nowhere/No"), SV_EUSAGE);
    CHECK(strstr(verb_message, "there is no time zone 'Nowhere/No'"));
    CHECK(access("r.pftrace", F_OK) != 0);
    verb_leave();
}

/* Times without a zone are of the zone that is said: that of the option, of TZ, of the machine. */
static void in_zones(void)
{
    static const char rows_there[] =
        "log log.log,phases,\"Running DLIO with 1 process(es),init,epoch\"\n";
    static const struct {
        const char *tz, *option;
        bool is_there; /* within the recording */
    } rows[] = {{"UTC", "", true},
                {":UTC", "", true},
                {"Asia/Karachi", "", false},
                {"Asia/Karachi", "--log-tz UTC", true},
                {"UTC", "--log-tz +05:00", false}};
    if (access("/usr/share/zoneinfo/Asia/Karachi", F_OK) != 0)
        SKIP("the package tzdata is not installed");
    whole_need_sql();
    verb_enter("zones");
    test_write_file("log.sh", "date -u '+[INFO] %Y-%m-%dT%H:%M:%S.%6N Running DLIO with 1 "
                              "process(es)' > log.log; sleep 0.01\n"
                              "date -u '+[INFO] %Y-%m-%dT%H:%M:%S.%6N Starting epoch 1: 400 steps "
                              "expected' >> log.log; date +%s%3N > at; exit 5\n");
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        char line[200];
        CONTEXT("TZ=%s %s", rows[i].tz, rows[i].option);
        setenv("TZ", rows[i].tz, 1);
        snprintf(line, sizeof line,
                 "-o t.pftrace --only sdk --no-explain --log log.log %s -- /bin/sh log.sh",
                 rows[i].option);
        CHECK_INT_EQ(whole_record(line), 5);
        CHECK_INT_EQ(whole_says("log.log: 3 entries from before the recording left out\n"),
                     !rows[i].is_there);
        CHECK_STR_EQ(whole_ask("t.pftrace",
                               "SELECT p.name, t.name, group_concat(s.name) FROM slice s JOIN "
                               "track t ON t.id = s.track_id JOIN track p ON p.id = t.parent_id "
                               "GROUP BY 1, 2"),
                     rows[i].is_there ? rows_there : "");
        unlink("t.pftrace");
    }
    unsetenv("TZ");
    verb_leave();
}

TEST(times_of_a_log_are_of_a_zone)
{
    test_in_child(in_zones);
}

TEST(logs_of_the_command_are_rows_of_its_trace)
{
    test_in_child(with_logs);
}
