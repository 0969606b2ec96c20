/* How recordings end that cannot end well, whole: what is kept, what is said of it, and that it can
 * be recovered. No kernel programs are needed. */
#include "cmd/commands.h"
#include "core/base/err.h"
#include "tests/harness/test.h"
#include "tests/unit/verb.h"
#include "tests/unit/whole.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT                                                                                   \
    "SELECT count(*), max(extract_arg(arg_set_id, \"seq\")) FROM slice WHERE name = \"n\" AND " \
    "length(extract_arg(arg_set_id, \"text\")) = 3999"

static void limit_files(rlim_t bytes)
{
    struct rlimit limit = {bytes, RLIM_INFINITY};
    signal(SIGXFSZ, SIG_IGN);
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

/* In a process of its own, which has ended when a file is recovered. */
static void in_child_of_its_own(void (*run)(void))
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        run();
        fflush(stdout);
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void too_large(void)
{
    unsigned n = 0, last = 0;
    char want[200];
    whole_need_sql();
    verb_enter("ends");
    /* The file may not grow: it ends in order, what is in it is whole, and the rest is counted:
     * of 200 instants and the end of the slice around them. */
    limit_files(300000);
    CHECK_INT_EQ(whole_record_emitter(200, "-o t.pftrace"), SV_EIO);
    CHECK(whole_says("t.pftrace: cannot write: File too large: later events are counted but not "
                     "recorded\n"));
    CHECK(strstr(verb_message, "t.pftrace: cannot write: File too large: the trace ends ") ==
          verb_message);
    CHECK(strstr(verb_message, " events of the "));
    CHECK(strstr(verb_message, " after that are lost; raise the limit (ulimit -f) or record less "
                               "(--max-size, --last)"));
    uint64_t n_lost = whole_number_before(verb_message, " events of the ");
    limit_files(RLIM_INFINITY);
    CHECK_STR_EQ(verb_files(), "t.pftrace");
    REQUIRE(sscanf(whole_ask("t.pftrace", COUNT), "%u,%u", &n, &last) == 2);
    CHECK(n > 0 && n < 80);
    CHECK_UINT_EQ(last, n - 1);
    CHECK_UINT_EQ(n_lost, 200 - n + 1);
    snprintf(want, sizeof want, "stave_loss_events,1\nstave_lost_events,%u\n", 200 - n + 1);
    CHECK_STR_EQ(whole_ask("t.pftrace", "SELECT name, value FROM stats WHERE name GLOB "
                                        "\"stave_los*\" ORDER BY 1"),
                 want);
    /* A file that cannot be begun. */
    limit_files(10);
    CHECK_INT_EQ(whole_record_emitter(10, "-o ./n.pftrace"), SV_EIO);
    CHECK_STR_EQ(verb_message, "./n.pftrace: cannot create: File too large");
    CHECK_STR_EQ(verb_files(), "t.pftrace");
    verb_leave();
}

TEST(a_file_that_cannot_grow_ends_in_order)
{
    test_in_child(too_large);
}

/* Another format is made at the end, of what was recorded in the usual one. */
static void converted(void)
{
    whole_need_sql();
    verb_enter("formats");
    CHECK_INT_EQ(whole_record_emitter(100, "-o a,b:c.json"), 0);
    CHECK_STR_EQ(verb_files(), "a,b:c.json");
    CHECK_STR_EQ(whole_ask("a,b:c.json", COUNT), "100,99\n");
    verb_leave();
}

TEST(another_format_has_all_of_it)
{
    test_in_child(converted);
}

static void record_twice(void)
{
    CHECK_INT_EQ(whole_record("-o a.pftrace --only sdk --interval 10ms --no-explain -- /bin/sh "
                              "twice.sh"),
                 SV_EIO);
    CHECK_STR_EQ(verb_message, "a.pftrace: aborted by a second signal; it is kept as .part: stave "
                               "recover a.pftrace");
    CHECK(access("a.pftrace.part", F_OK) == 0 && access("a.pftrace", F_OK) != 0);
}

static void aborted(void)
{
    whole_need_sql();
    verb_enter("aborted");
    test_write_file("twice.sh", "trap '' TERM\nwhile [ ! -s a.pftrace.part ]; do sleep 0.01; done\n"
                                "sleep 0.05\nkill -TERM $PPID\nsleep 0.05\nkill -TERM $PPID\n"
                                "while [ -e twice.sh ]; do sleep 0.01; done\n");
    in_child_of_its_own(record_twice);
    CHECK(verb(&sv_command_recover, "a.pftrace") >= 0);
    CHECK_STR_EQ(verb_files(), "a.pftrace twice.sh");
    CHECK(whole_number("a.pftrace", "SELECT count(*) FROM counter") > 0);
    unlink("twice.sh");
    verb_leave();
}

TEST(a_second_signal_aborts)
{
    test_in_child(aborted);
}
