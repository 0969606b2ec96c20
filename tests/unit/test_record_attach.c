/* Processes that run already, and what a recording gives up or loses, through whole recordings. */
#include "core/base/err.h"
#include "tests/harness/test.h"
#include "tests/unit/verb.h"
#include "tests/unit/whole.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* A process with this name that opens the file `in` again and again: until it is killed, or for a
 * hundred rounds of 2 ms after `until` has bytes. It has a file open from before. */
static pid_t start_worker(const char *name, const char *until)
{
    int ends[2];
    char c;
    REQUIRE(pipe(ends) == 0);
    pid_t pid = fork();
    if (pid == 0) {
        int kept = open("kept", O_RDWR | O_CREAT, 0600);
        prctl(PR_SET_NAME, name);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (write(ends[1], "r", 1) != 1)
            _exit(1);
        struct stat st;
        for (unsigned i = 0; i < 100; i += until && stat(until, &st) == 0 && st.st_size > 0) {
            int fd = open("in", O_RDONLY);
            if (write(kept, "abc", 3) != 3 || fd < 0)
                _exit(1);
            close(fd);
            usleep(2000);
        }
        _exit(0);
    }
    REQUIRE(read(ends[0], &c, 1) == 1);
    close(ends[0]), close(ends[1]);
    return pid;
}

static void end_worker(pid_t pid)
{
    kill(pid, SIGKILL);
    CHECK(waitpid(pid, NULL, 0) == pid);
}

#define OPENS                                                                                   \
    "SELECT count(*) FROM slice WHERE name = \"openat\" AND extract_arg(arg_set_id, \"path\") " \
    "GLOB \"*/attach/in\""
#define WRITES                                                                                 \
    "SELECT count(*) FROM slice WHERE name = \"write\" AND extract_arg(arg_set_id, \"path\") " \
    "GLOB \"*/attach/kept\" AND extract_arg(arg_set_id, \"bytes\") = 3"
#define NAMES                                                                                  \
    "SELECT DISTINCT process.name FROM slice JOIN thread_track ON slice.track_id = "           \
    "thread_track.id JOIN thread USING (utid) JOIN process USING (upid) WHERE slice.category " \
    "= \"syscall\""

static char line[300];
#define RECORD_OF(format, pid) (snprintf(line, sizeof line, format, (int)(pid)), whole_record(line))

static void attached(void)
{
    whole_need_kernel();
    verb_enter("attach");
    whole_make_work();
    pid_t pid = start_worker("worker-of-test", NULL);
    CHECK_INT_EQ(RECORD_OF("-o t.pftrace -p %d --duration 250ms --no-explain --strict", pid), 0);
    CHECK(whole_says(" recorded: ") && whole_says("1 process, "));
    CHECK(whole_number("t.pftrace", OPENS) >= 5);
    CHECK(whole_number("t.pftrace", WRITES) >= 5);
    CHECK_STR_EQ(whole_ask("t.pftrace", NAMES), "worker-of-test\n");
    CHECK_UINT_EQ(whole_number("t.pftrace", "SELECT (end_ts - start_ts) / 1000000 BETWEEN 200 AND "
                                            "60000 FROM trace_bounds"),
                  1);
    CHECK_INT_EQ(whole_record("-o n.pftrace --comm worker-of-test --duration 150ms --no-explain "
                              "--light"),
                 0);
    CHECK(whole_number("n.pftrace", OPENS) >= 5);
    CHECK_STR_EQ(whole_ask("n.pftrace", NAMES), "worker-of-test\n");
    /* Nobody has that name: there is nothing, and that is said. */
    CHECK_INT_EQ(RECORD_OF("-o o.pftrace --comm no-such-name-%d --duration 50ms --no-explain "
                           "--light",
                           pid),
                 0);
    CHECK(whole_says(" yet; processes that start later are recorded\n"));
    CHECK_UINT_EQ(whole_number("o.pftrace", OPENS), 0);
    /* The whole machine, us not among it. */
    CHECK_INT_EQ(whole_record("-o a.pftrace --all --duration 100ms --no-explain --light"), 0);
    CHECK(whole_number("a.pftrace", OPENS) >= 3);
    end_worker(pid);
    /* It ends by itself when all have ended. */
    pid = start_worker("worker-of-test", "e.pftrace.part");
    CHECK_INT_EQ(RECORD_OF("-o e.pftrace -p %d --no-explain --light", pid), 0);
    CHECK(waitpid(pid, NULL, 0) == pid);
    CHECK(whole_number("e.pftrace", OPENS) > 0);
    verb_leave();
}

TEST(processes_that_run_already)
{
    test_in_child(attached);
}

static void looked_at(void)
{
    whole_need_sql();
    REQUIRE(test_refuse_call(SYS_bpf, 0, 0, EPERM));
    verb_enter("attach");
    whole_make_work();
    pid_t pid = start_worker("worker-of-test", NULL);
    CHECK_INT_EQ(RECORD_OF("-o t.pftrace -p %d --duration 300ms --no-explain --look 200", pid), 0);
    CHECK(whole_number("t.pftrace", "SELECT count(*) FROM slice WHERE category = "
                                    "\"thread_state\" AND name = \"Sleeping\"") >= 1);
    CHECK_INT_EQ(RECORD_OF("-o x.pftrace --comm no-such-name-%d --no-explain", pid), SV_EUSAGE);
    CHECK(strstr(verb_message, "--comm: no process is called 'no-such-name-") == verb_message);
    CHECK_INT_EQ(whole_record("-o n.pftrace --comm worker-of-test --duration 100ms --no-explain "
                              "--no-look --interval 20ms"),
                 0);
    CHECK_STR_EQ(whole_ask("n.pftrace", "SELECT count(*) > 1 FROM counter JOIN counter_track ON "
                                        "counter.track_id = counter_track.id WHERE name = "
                                        "\"memory_anon\""),
                 "1\n");
    end_worker(pid);
    CHECK_INT_EQ(RECORD_OF("-o x.pftrace -p %d --no-explain", pid), SV_EUSAGE);
    CHECK(strstr(verb_message, "-p: there is no process "));
    CHECK_INT_EQ(RECORD_OF("-o x.pftrace -p %dx --no-explain", pid), SV_EUSAGE);
    CHECK(strstr(verb_message, "x' is not the pid of a process"));
    CHECK_INT_EQ(whole_record("-o x.pftrace -p 0"), SV_EUSAGE);
    CHECK_INT_EQ(whole_record("-o x.pftrace -p 4294967296"), SV_EUSAGE);
    CHECK_STR_EQ(verb_files(), "in kept many.sh n.pftrace t.pftrace work.sh");
    verb_leave();
}

TEST(processes_that_are_looked_at)
{
    test_in_child(looked_at);
}

/* Rings that are too small: each call is in the trace or counted. */
static void lossy(void)
{
    whole_need_kernel();
    verb_enter("lossy");
    whole_make_work();
    setenv("STAVE_SPOOL", "never", 1);
    CHECK_INT_EQ(whole_record("-o t.pftrace --ring 4K --no-explain --light -- /bin/sh many.sh"), 3);
    uint64_t kept = whole_said(" system calls"), lost = whole_said(" events were lost");
    if (!CHECK(kept > 0 && lost > 0 && kept < 12000 && kept + lost >= 12000))
        printf("%s", verb_said);
    CHECK_UINT_EQ(whole_number("t.pftrace", "SELECT count(*) FROM slice WHERE category = "
                                            "\"syscall\""),
                  kept);
    CHECK_UINT_EQ(whole_number("t.pftrace", "SELECT value FROM stats WHERE name = "
                                            "\"stave_lost_events\""),
                  lost);
    verb_leave();
}

TEST(what_is_lost_is_counted)
{
    test_in_child(lossy);
}
