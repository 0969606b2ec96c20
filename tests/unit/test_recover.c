/* The verb recover, from its words to the files that are there afterwards: which names results get,
 * what goes and what stays, what is refused, and what it says. */
#include "cmd/commands.h"
#include "core/files/claim.h"
#include "files/held.h"
#include "tests/harness/test.h"
#include "tests/unit/verb.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SLICE(name) "{\"ph\":\"X\",\"ts\":1,\"dur\":2,\"pid\":1,\"tid\":1,\"name\":\"" name "\"}"
static const char two[] = "[" SLICE("a") "," SLICE("b") "]";

static int recover(const char *line)
{
    return verb(&sv_command_recover, line);
}

/* A process that claims the name, writes the growing file, says that `whole` bytes of it are there,
 * and ends without a word. Its number. */
static uint32_t killed(const char *out, const char *text, uint64_t whole)
{
    pid_t child = fork();
    if (child == 0) {
        struct sv_claim c;
        struct sv_err err = {0};
        struct sv_claim_wish wish = {.kind = SV_CLAIM_PROGRAM, .journals = true};
        if (sv_claim_take(&c, out, &wish, &err) < 0)
            _exit(1);
        if (text) {
            int fd = open(c.part, O_WRONLY | O_CREAT | O_EXCL, 0600);
            if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
                _exit(2);
            sv_claim_whole(&c, whole);
        }
        _exit(0);
    }
    int status;
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
    return (uint32_t)child;
}

static uint64_t events_in(const char *path)
{
    struct sv_tally t;
    struct sv_err err = {0};
    CHECK_INT_EQ(sv_tally_file(path, &t, &err), 0);
    return sv_tally_held(&t);
}

TEST(the_result_takes_the_place_of_what_was_left)
{
    verb_enter("whole");
    killed("t.json", two, strlen(two));
    CHECK_STR_EQ(verb_files(), "t.json.part t.json.session");
    CHECK_INT_EQ(recover("t.json"), 0);
    CHECK_STR_EQ(verb_files(), "t.json");
    CHECK_UINT_EQ(events_in("t.json"), 2);
    CHECK(strstr(verb_said, "t.json: joined 107 B of ") &&
          strstr(verb_said, "t.json.part and 0 B of rings"));
    CHECK_STR_EQ(verb_shown, "");
    CHECK_INT_EQ(recover("t.json"), SV_EINPUT);
    CHECK(strstr(verb_message, "nothing to recover"));
    CHECK_STR_EQ(verb_files(), "t.json");
    verb_leave();
}

TEST(no_file_is_overwritten)
{
    verb_enter("names");
    test_write_file("t.json", "mine");
    test_write_file("t.recovered.json", "mine, too");
    killed("t.json", two, strlen(two));
    CHECK_INT_EQ(recover("t.json"), 0);
    CHECK_STR_EQ(verb_files(), "t.json t.recovered.2.json t.recovered.json");
    CHECK_STR_EQ(test_read_file("t.json"), "mine");
    CHECK_STR_EQ(test_read_file("t.recovered.json"), "mine, too");
    CHECK_UINT_EQ(events_in("t.recovered.2.json"), 2);
    CHECK(strstr(verb_said, "t.json exists and is kept; the trace was written to "));
    verb_leave();
}

TEST(a_name_of_ones_own_for_the_result)
{
    verb_enter("output");
    killed("t.json", two, strlen(two));
    CHECK_INT_EQ(recover("t.json -o other.json"), 0);
    CHECK_STR_EQ(verb_files(), "other.json");
    CHECK_UINT_EQ(events_in("other.json"), 2);
    CHECK(!strstr(verb_said, "exists"));
    verb_leave();
}

TEST(with_keep_everything_stays)
{
    verb_enter("keep");
    killed("t.json", two, strlen(two));
    CHECK_INT_EQ(recover("--keep t.json"), 0);
    CHECK_STR_EQ(verb_files(), "t.json t.json.part t.json.session");
    CHECK_UINT_EQ(events_in("t.json"), 2);
    CHECK_INT_EQ(recover("t.json"), 0); /* so that it can be done again */
    CHECK_STR_EQ(verb_files(), "t.json t.recovered.json");
    verb_leave();
}

/* What cannot be read again is not known to hold all, so that what was left stays. */
TEST(a_result_that_cannot_be_read_back)
{
    verb_enter("stream");
    killed("t.json", two, strlen(two));
    CHECK_INT_EQ(recover("t.json -o -"), 0);
    CHECK(strstr(verb_shown, "\"name\"") || strstr(verb_shown, "slice") || verb_shown[0]);
    CHECK_STR_EQ(verb_files(), "t.json.part t.json.session");
    CHECK(strstr(verb_said, "what was left is kept, since the result cannot be read back"));
    CHECK_INT_EQ(recover("t.json -o /dev/null"), 0);
    CHECK_STR_EQ(verb_files(), "t.json.part t.json.session");
    CHECK_INT_EQ(recover("t.json --keep -o -"), 0);
    CHECK(!strstr(verb_said, "what was left is kept"));
    verb_leave();
}

TEST(a_dry_run_changes_nothing)
{
    verb_enter("dry");
    killed("t.json", two, strlen(two));
    CHECK_INT_EQ(recover("--dry-run t.json"), 0);
    CHECK_STR_EQ(verb_files(), "t.json.part t.json.session");
    CHECK(strstr(verb_shown, "t.json.part: 2 slices\n"));
    CHECK(strstr(verb_shown, "t.json: 2 slices\n") && !strstr(verb_shown, "which exists"));
    CHECK(strstr(verb_shown, "the above would be removed when the trace has been read back"));
    CHECK(!strstr(verb_shown, "\n  spool ") && !strstr(verb_shown, "\n  rings in "));
    CHECK_INT_EQ(recover("--dry-run --keep t.json"), 0);
    CHECK(strstr(verb_shown, "the above would be kept\n"));
    CHECK_INT_EQ(recover("--dry-run t.json -o -"), 0);
    CHECK(strstr(verb_shown, "would be written to -: 2 slices\n"));
    CHECK(strstr(verb_shown, "the above would be kept\n"));
    test_write_file("t.json", "mine");
    CHECK_INT_EQ(recover("--dry-run t.json"), 0);
    CHECK(strstr(verb_shown, "t.json, which exists, with .recovered in its name: 2 slices\n"));
    CHECK_STR_EQ(verb_files(), "t.json t.json.part t.json.session");
    verb_leave();
}

TEST(killed_before_it_recorded_anything)
{
    verb_enter("empty");
    killed("t.json", "[]", 2);
    CHECK_INT_EQ(recover("--dry-run t.json"), 0);
    CHECK(strstr(verb_shown, "would be removed: nothing was recorded"));
    CHECK_STR_EQ(verb_files(), "t.json.part t.json.session");
    CHECK_INT_EQ(recover("--keep t.json"), 0);
    CHECK(strstr(verb_said, "before it recorded anything; its files were kept"));
    CHECK_STR_EQ(verb_files(), "t.json.part t.json.session");
    CHECK_INT_EQ(recover("t.json -o asked.json"), 0); /* asked for by name: made, and empty */
    CHECK_STR_EQ(verb_files(), "asked.json");
    killed("t.json", "[]", 2);
    CHECK_INT_EQ(recover("t.json"), 0);
    CHECK(strstr(verb_said, "before it recorded anything; its files were removed"));
    CHECK_STR_EQ(verb_files(), "asked.json");
    /* Before even the growing file was made. */
    killed("t.json", NULL, 0);
    CHECK_STR_EQ(verb_files(), "asked.json t.json.session");
    CHECK_INT_EQ(recover("--keep t.json"), 0);
    CHECK(strstr(verb_said, "its files were kept"));
    CHECK_STR_EQ(verb_files(), "asked.json t.json.session");
    CHECK_INT_EQ(recover("t.json"), 0);
    CHECK(strstr(verb_said, "its files were removed"));
    CHECK_STR_EQ(verb_files(), "asked.json");
    verb_leave();
}

/* A result that lacks something is not left behind as if it were whole, and no input goes. */
TEST(a_result_that_cannot_be_written)
{
    verb_enter("unwritable");
    killed("t.json", two, strlen(two));
    CHECK(recover("t.json -o nowhere/t.json") < 0);
    CHECK_STR_EQ(verb_files(), "t.json.part t.json.session");
    CHECK(recover("t.json -o t.unknown") < 0);
    CHECK_STR_EQ(verb_files(), "t.json.part t.json.session");
    verb_leave();
}

TEST(a_program_that_runs_is_left_alone)
{
    struct sv_claim c;
    struct sv_err err = {0};
    struct sv_claim_wish wish = {.kind = SV_CLAIM_PROGRAM};
    char text[64];
    verb_enter("running");
    REQUIRE(sv_claim_take(&c, "t.json", &wish, &err) == 0);
    test_write_file(c.part, two);
    chmod(c.part, 0600);
    snprintf(text, sizeof text, "process %u is still writing it", (unsigned)getpid());
    CHECK_INT_EQ(recover("t.json"), SV_EHELD);
    CHECK(strstr(verb_message, text));
    CHECK_INT_EQ(recover("--force t.json"), SV_EHELD);
    CHECK_INT_EQ(recover("--clean --yes --discard t.json"), 0);
    CHECK(strstr(verb_shown, "kept: process ") && strstr(verb_shown, " is running\n"));
    CHECK_STR_EQ(verb_files(), "t.json.part t.json.session");
    CHECK_INT_EQ(recover(""), 0);
    CHECK(strstr(verb_shown, "(running)\n"));
    sv_claim_abandon(&c);
    CHECK_STR_EQ(verb_files(), "");
    verb_leave();
}

/* Two recoveries of one trace: the second leaves everything as it is. */
TEST(one_recovery_at_a_time)
{
    verb_enter("locked");
    killed("t.json", two, strlen(two));
    int fd = open("t.json.part", O_RDONLY | O_CLOEXEC);
    REQUIRE(fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0);
    CHECK_INT_EQ(recover("t.json"), SV_EINPUT);
    CHECK(strstr(verb_message, "another process is recovering it"));
    CHECK_INT_EQ(recover("--clean --yes --discard t.json"), 0);
    CHECK(strstr(verb_shown, "kept: another process is recovering it"));
    CHECK_STR_EQ(verb_files(), "t.json.part t.json.session");
    close(fd);
    CHECK_INT_EQ(recover("t.json"), 0);
    CHECK_STR_EQ(verb_files(), "t.json");
    verb_leave();
}

/* Two programs of one name were killed: each trace gets a file of its own. */
TEST(all_that_a_name_leads_to)
{
    static const char three[] = "[" SLICE("a") "," SLICE("b") "," SLICE("c") "]";
    verb_enter("both");
    killed("t.json", two, strlen(two));
    killed("t.json", three, strlen(three));
    CHECK_INT_EQ(recover("t.json -o -"), SV_EUSAGE);
    CHECK(strstr(verb_message, "there are 2 traces to recover, which standard output cannot hold"));
    CHECK_INT_EQ(recover("t.json"), 0);
    CHECK_STR_EQ(verb_files(), "t.json t.recovered.json");
    CHECK_UINT_EQ(events_in("t.json") + events_in("t.recovered.json"), 5);
    verb_leave();
}

/* What fails does not keep the others from being recovered, and its error is the result. */
TEST(one_of_two_cannot_be_recovered)
{
    verb_enter("one");
    killed("t.json", two, strlen(two));
    killed("t.json", two, strlen(two));
    int fd = open("t.json.part", O_RDONLY | O_CLOEXEC); /* the newer one's */
    REQUIRE(fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0);
    CHECK_INT_EQ(recover("t.json"), SV_EINPUT);
    CHECK_STR_EQ(verb_files(), "t.json t.json.part t.json.session");
    CHECK_UINT_EQ(events_in("t.json"), 2);
    close(fd);
    verb_leave();
}

TEST(the_list_says_what_is_there)
{
    char head[128];
    verb_enter("list");
    CHECK_INT_EQ(recover(""), 0);
    CHECK_STR_EQ(verb_shown, "");
    CHECK(strstr(verb_said,
                 "no sessions on this machine, and no files to recover in this directory"));
    uint32_t pid = killed("t.json", two, 100);
    CHECK_INT_EQ(recover(""), 0);
    snprintf(head, sizeof head, "t.json.part  pid %u (exited)\n", pid);
    CHECK(strstr(verb_shown, head));
    CHECK(strstr(verb_shown, "t.json: 100 B written\n"));
    CHECK(!strstr(verb_said, "no sessions"));
    CHECK_STR_EQ(verb_files(), "t.json.part t.json.session");
    verb_leave();
}

TEST(only_what_is_done_is_cleaned)
{
    verb_enter("clean");
    CHECK_INT_EQ(recover("--clean"), 0);
    CHECK(strstr(verb_said, "no sessions on this machine"));
    killed("t.json", two, strlen(two));
    killed("e.json", NULL, 0);
    CHECK_INT_EQ(recover("--clean"), 0);
    CHECK(strstr(verb_shown, "kept: not recovered; recover it, or add --discard and its name"));
    CHECK(strstr(verb_shown, "would be removed: it holds nothing that is not in the trace"));
    CHECK(strstr(verb_said, "nothing was removed; --yes removes the above"));
    CHECK_STR_EQ(verb_files(), "e.json.session t.json.part t.json.session");
    CHECK_INT_EQ(recover("--clean --yes"), 0);
    CHECK(strstr(verb_shown, "removed: it holds nothing that is not in the trace"));
    CHECK(!strstr(verb_said, "nothing was removed"));
    CHECK_STR_EQ(verb_files(), "t.json.part t.json.session");
    CHECK_INT_EQ(recover("--clean"), 0);
    CHECK(strstr(verb_said, "there is nothing that can be removed"));
    CHECK_INT_EQ(recover("--clean --discard other.json"), SV_EINPUT);
    CHECK(strstr(verb_message, "--discard: no files or sessions of 'other.json' found"));
    CHECK_INT_EQ(recover("--clean --discard t.json"), 0);
    CHECK(strstr(verb_shown, "would be removed: as requested, including events that were not"));
    CHECK_STR_EQ(verb_files(), "t.json.part t.json.session");
    CHECK_INT_EQ(recover("--clean --yes --discard t.json --discard other.json"), SV_EINPUT);
    CHECK_STR_EQ(verb_files(), "t.json.part t.json.session");
    CHECK_INT_EQ(recover("--clean --yes --discard t.json"), 0);
    CHECK_STR_EQ(verb_files(), "");
    verb_leave();
}

TEST(words_that_make_no_sense)
{
    static const char *const rows[] = {"--clean t.json",
                                       "--clean --keep",
                                       "--clean -o x.json",
                                       "--clean --dry-run",
                                       "--yes t.json",
                                       "--discard x.json t.json",
                                       "--keep",
                                       "-o x.json",
                                       "--force",
                                       "--dry-run",
                                       "t.json u.json",
                                       "--nonsense"};
    verb_enter("usage");
    killed("t.json", two, strlen(two));
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("recover %s", rows[i]);
        CHECK_INT_EQ(recover(rows[i]), SV_EUSAGE);
        CHECK_STR_EQ(verb_files(), "t.json.part t.json.session");
    }
    verb_leave();
}
