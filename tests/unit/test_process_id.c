/* Which process: itself, one that has ended, another boot, another namespace. */
#include "core/files/process_id.h"

#include "tests/harness/test.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

TEST(own_process_runs)
{
    struct sv_process_id id = sv_process_id_self();
    CHECK_INT_EQ(id.pid, getpid());
    CHECK(id.start_ticks != 0 && id.pid_namespace != 0);
    CHECK_INT_EQ(sv_process_id_state(&id), SV_PROCESS_RUNS);
}

TEST(an_ended_process_is_gone)
{
    struct sv_process_id id = {0};
    int ends[2];
    CHECK_INT_EQ(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        id = sv_process_id_self();
        _exit(write(ends[1], &id, sizeof id) == sizeof id ? 0 : 1);
    }
    CHECK_INT_EQ(read(ends[0], &id, sizeof id), sizeof id);
    siginfo_t info;
    waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT);
    CHECK_INT_EQ(sv_process_id_state(&id), SV_PROCESS_GONE); /* nobody has waited for it yet */
    waitpid(child, NULL, 0);
    CHECK_INT_EQ(sv_process_id_state(&id), SV_PROCESS_GONE);
    close(ends[0]);
    close(ends[1]);
}

TEST(a_reused_pid_is_another_process)
{
    struct sv_process_id id = sv_process_id_self(), other = id;
    other.start_ticks++;
    CHECK_INT_EQ(sv_process_id_state(&other), SV_PROCESS_GONE);
    CHECK(!sv_process_id_equal(&id, &other));
    other.start_ticks = 0;
    CHECK_INT_EQ(sv_process_id_state(&other), SV_PROCESS_GONE);
}

TEST(another_namespace_cannot_be_judged)
{
    struct sv_process_id id = sv_process_id_self();
    id.pid_namespace++;
    CHECK_INT_EQ(sv_process_id_state(&id), SV_PROCESS_UNKNOWN);
}

TEST(another_boot_of_this_machine_is_gone_of_another_unknown)
{
    static const uint8_t none[SV_BOOT_ID_BYTES];
    struct sv_process_id id = sv_process_id_self();
    id.boot[3] ^= 1;
    bool has_machine = memcmp(id.machine, none, sizeof none) != 0;
    CHECK_INT_EQ(sv_process_id_state(&id), has_machine ? SV_PROCESS_GONE : SV_PROCESS_UNKNOWN);
    id.machine[3] ^= 1;
    CHECK_INT_EQ(sv_process_id_state(&id), SV_PROCESS_UNKNOWN);
}

TEST(boot_id_as_the_kernel_writes_it)
{
    uint8_t id[SV_BOOT_ID_BYTES] = {0x12, 0xab, 0, 0xff, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    char text[SV_BOOT_TEXT];
    sv_boot_text(id, text);
    CHECK_STR_EQ(text, "12ab00ff-0506-0708-090a-0b0c0d0e0f10");
}

TEST(every_part_makes_another_process)
{
    struct sv_process_id id = sv_process_id_self(), same = id;
    CHECK(sv_process_id_equal(&id, &same));
    same.pid++;
    CHECK(!sv_process_id_equal(&id, &same));
    same = id;
    same.pid_namespace++;
    CHECK(!sv_process_id_equal(&id, &same));
    same = id;
    same.boot[15] ^= 1;
    CHECK(!sv_process_id_equal(&id, &same));
}

/* What is not known differs from nothing. */
TEST(unknown_boots_and_namespaces_are_this_one)
{
    struct sv_process_id id = sv_process_id_self();
    memset(id.boot, 0, sizeof id.boot);
    CHECK_INT_EQ(sv_process_id_state(&id), SV_PROCESS_RUNS);
    id.pid_namespace = 0;
    CHECK_INT_EQ(sv_process_id_state(&id), SV_PROCESS_RUNS);
    id = sv_process_id_self();
    id.boot[0] ^= 1;
    memset(id.machine, 0, sizeof id.machine);
    CHECK_INT_EQ(sv_process_id_state(&id), SV_PROCESS_UNKNOWN);
}

TEST(the_boot_is_the_kernels)
{
    uint8_t id[SV_BOOT_ID_BYTES];
    char text[SV_BOOT_TEXT];
    REQUIRE(sv_boot_id(id));
    sv_boot_text(id, text);
    CHECK(strncmp(test_read_file("/proc/sys/kernel/random/boot_id"), text, strlen(text)) == 0);
    CHECK_UINT_EQ(strlen(text), 36);
    struct sv_process_id self = sv_process_id_self();
    CHECK_MEM_EQ(self.boot, id, sizeof id);
}

/* ---- when it began ---- */

static void check_ticks(const char *name)
{
    char text[1024];
    uint64_t ticks = 0;
    prctl(PR_SET_NAME, name);
    snprintf(text, sizeof text, "%s", test_read_file("/proc/self/stat"));
    char *after = strrchr(text, ')');
    REQUIRE(after && sscanf(after + 2,
                            "%*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                            "%*s %*s %" SCNu64,
                            &ticks) == 1);
    CHECK(ticks > 0);
    CHECK_UINT_EQ(sv_process_start_ticks((uint32_t)getpid()), ticks);
}

TEST(the_start_is_found_behind_any_name)
{
    check_ticks("usual");
    check_ticks("a b) Z 1 2 (c");
    check_ticks(") X 3");
    CHECK_UINT_EQ(sv_process_start_ticks(0), 0);
    CHECK_UINT_EQ(sv_process_start_ticks(UINT32_MAX), 0);
}

static uint64_t ticks_of(pid_t pid)
{
    return sv_process_start_ticks((uint32_t)pid);
}

/* What a child says that began at least a tick after this process. */
static int in_later_child(int (*run)(void))
{
    enum { AGAIN = 99 };
    uint64_t own = ticks_of(getpid());
    for (;;) {
        int status = -1;
        pid_t child = fork();
        if (child == 0)
            _exit(ticks_of(getpid()) > own ? run() : AGAIN);
        if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
            return -1;
        if (WEXITSTATUS(status) != AGAIN)
            return WEXITSTATUS(status);
    }
}

/* While both clocks stand still, a job's start is its first process's. */
static bool job_is_of(pid_t pid)
{
    static const int64_t now = 4000000000000000000;
    uint64_t ticks = ticks_of(pid);
    test_clock_script(&now, 1);
    int64_t start_ns = sv_process_job_start_ns();
    test_clock_script(NULL, 0);
    return ticks > 0 && start_ns == (int64_t)ticks * (1000000000 / sysconf(_SC_CLK_TCK));
}

static pid_t leader;

static int of_its_group(void)
{
    return job_is_of(getpgrp()) && getpgrp() != getpid() ? 0 : 1;
}

static int lead_a_group(void)
{
    setpgid(0, 0);
    return job_is_of(getpid()) ? in_later_child(of_its_group) : 2;
}

/* The group of one that has ended. */
static int without_a_leader(void)
{
    if (setpgid(0, leader) != 0)
        return 3;
    kill(leader, SIGKILL);
    while (ticks_of(leader) != 0)
        sched_yield();
    return job_is_of(getppid()) ? 0 : 4;
}

TEST(a_job_begins_with_its_group_its_parent_or_itself)
{
    CHECK_INT_EQ(in_later_child(lead_a_group), 0);
    int ready[2];
    char byte;
    REQUIRE(pipe(ready) == 0);
    leader = fork();
    if (leader == 0) {
        setpgid(0, 0);
        if (write(ready[1], "g", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    CHECK_INT_EQ(read(ready[0], &byte, 1), 1);
    CHECK_INT_EQ(in_later_child(without_a_leader), 0);
    kill(leader, SIGKILL);
    waitpid(leader, NULL, 0);
    close(ready[0]);
    close(ready[1]);
}

static const int64_t scripted = 5000000000123;

/* Without /proc: now. */
static void without_proc(void)
{
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", "/proc", "tmpfs", 0, NULL) != 0)
        SKIP("no namespaces of mounts here");
    test_clock_script(&scripted, 1);
    CHECK_INT_EQ(sv_process_job_start_ns(), scripted);
    struct sv_process_id id = sv_process_id_self();
    CHECK(id.pid == (uint32_t)getpid() && id.start_ticks == 0 && id.pid_namespace == 0);
    static const uint8_t none[SV_BOOT_ID_BYTES];
    uint8_t boot[SV_BOOT_ID_BYTES] = {1};
    CHECK(!sv_boot_id(boot));
    CHECK_MEM_EQ(boot, none, sizeof none);
    char text[64] = "x";
    CHECK(!sv_pids_text(text) && text[0] == '\0');
    text[0] = 'x';
    CHECK(!sv_times_text(text) && text[0] == '\0');
}

TEST(nothing_is_known_without_proc)
{
    if (!test_in_child(without_proc))
        SKIP("no namespaces of mounts here");
}

/* ---- namespaces ---- */

static int adopted(void)
{
    return getppid() == 1 && job_is_of(getpid()) ? 0 : 1; /* the first process says nothing */
}

/* The first process of a namespace of pids has neither a parent nor a group that it sees. */
static void in_first_process(void)
{
    char text[SV_PIDS_TEXT], expected[SV_PIDS_TEXT];
    struct stat st;
    int status = -1;
    if (unshare(CLONE_NEWPID | CLONE_NEWNS) != 0)
        SKIP("no namespaces of pids here");
    pid_t child = fork();
    if (child == 0) {
        if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 || getpid() != 1)
            _exit(1);
        bool is_good = sv_pids_text(text); /* the /proc of the outer namespace */
        is_good &= stat("/proc/self/ns/pid", &st) == 0;
        snprintf(expected, sizeof expected, "%llu", (unsigned long long)st.st_ino);
        is_good &= strcmp(text, expected) == 0;
        if (mount("none", "/proc", "proc", 0, NULL) != 0)
            _exit(2);
        is_good &= sv_pids_text(text) && ticks_of(1) > 0;
        snprintf(expected, sizeof expected, "%llu:%llu", (unsigned long long)st.st_ino,
                 (unsigned long long)ticks_of(1));
        is_good &= strcmp(text, expected) == 0;
        _exit(!is_good ? 3 : !job_is_of(1) ? 4 : in_later_child(adopted) != 0 ? 5 : 0);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    if (WEXITSTATUS(status) == 1 || WEXITSTATUS(status) == 2)
        SKIP("no namespaces of mounts here"); /* such as in a chroot */
    CHECK_INT_EQ(WEXITSTATUS(status), 0);
}

TEST(the_first_process_of_a_namespace)
{
    if (!test_in_child(in_first_process))
        SKIP("no namespaces of pids here");
}

TEST(the_pids_of_the_machine_need_no_start)
{
    char text[SV_PIDS_TEXT], expected[SV_PIDS_TEXT];
    struct stat st;
    REQUIRE(stat("/proc/self/ns/pid", &st) == 0);
    if (st.st_ino != 0xEFFFFFFC)
        SKIP("in a namespace of pids");
    CHECK(sv_pids_text(text));
    snprintf(expected, sizeof expected, "%llu", (unsigned long long)st.st_ino);
    CHECK_STR_EQ(text, expected);
}

static const char *offsets, *times_text;

static void in_new_time(void)
{
    char text[SV_TIMES_TEXT];
    int64_t mono = 1, boot = 1, wanted_mono = 0, wanted_boot = 0;
    int status = -1;
    if (unshare(CLONE_NEWTIME) != 0)
        SKIP("no namespaces of time here");
    CHECK(!sv_times_text(text)); /* that is the children's */
    int fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
    REQUIRE(fd >= 0 && write(fd, offsets, strlen(offsets)) == (ssize_t)strlen(offsets));
    close(fd);
    pid_t child = fork();
    if (child == 0) {
        bool has_text = sv_times_text(text);
        bool is_good = has_text == (*times_text != '\0') && strcmp(text, times_text) == 0 &&
                       sv_times_offsets(&mono, &boot);
        sscanf(times_text, "%" SCNd64 " %" SCNd64, &wanted_mono, &wanted_boot);
        is_good &= mono == wanted_mono && boot == wanted_boot;
        /* And one whose children have another: the offsets of its own are not to be seen. */
        struct stat st;
        char number[SV_TIMES_TEXT];
        bool is_other = stat("/proc/self/ns/time", &st) == 0 && unshare(CLONE_NEWTIME) == 0;
        snprintf(number, sizeof number, "namespace %llu", (unsigned long long)st.st_ino);
        is_good &= is_other && sv_times_text(text) && strcmp(text, number) == 0 &&
                   !sv_times_offsets(&mono, &boot);
        _exit(is_good ? 0 : 1);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

TEST(what_a_time_namespace_adds)
{
    static const struct {
        const char *offsets, *text;
    } rows[] = {
        {"monotonic 1000 5\nboottime 7 999999999\n", "1000000000005 7999999999"},
        {"monotonic 0 0\nboottime 3 0\n", "0 3000000000"},
        {"monotonic 2 0\nboottime 0 0\n", "2000000000 0"},
        {"monotonic -1 250\nboottime 5 0\n", "-999999750 5000000000"},
        {"monotonic 0 0\nboottime 0 0\n", ""},
    };
    char text[SV_TIMES_TEXT];
    int64_t mono, boot;
    if (sv_times_text(text))
        SKIP("in a namespace of time");
    CHECK(!sv_times_offsets(&mono, &boot) && text[0] == '\0');
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("%s", rows[i].offsets);
        offsets = rows[i].offsets;
        times_text = rows[i].text;
        if (!test_in_child(in_new_time))
            SKIP("no namespaces of time here");
    }
}
