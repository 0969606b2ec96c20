/* Guarded mappings: what another process cuts away reads as zeros, and nobody else's faults are
 * touched. */
#include "sdk/ring/guard.h"

#include "sdk/ring/session_layout.h"
#include "tests/harness/test.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 8 * SV_PAGE };

struct mapped {
    int fd;
    volatile uint8_t *at;
    struct sv_guarded guarded;
    volatile sig_atomic_t is_gone;
};

static void map_file(struct mapped *m, const char *name)
{
    m->fd = open(test_scratch(name), O_RDWR | O_CREAT | O_TRUNC, 0600);
    REQUIRE(m->fd >= 0 && ftruncate(m->fd, BYTES) == 0);
    m->at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
    REQUIRE(m->at != MAP_FAILED);
    memset((void *)(uintptr_t)m->at, 7, BYTES);
}

static void guard(struct mapped *m)
{
    sv_guard_add(&m->guarded, (void *)(uintptr_t)m->at, BYTES, &m->is_gone);
}

static void (*handler(void))(int)
{
    struct sigaction now;
    sigaction(SIGBUS, NULL, &now);
    return now.sa_handler;
}

TEST(a_cut_file_reads_as_zeros)
{
    test_leaves_open();
    static struct mapped a, b;
    signal(SIGBUS, SIG_DFL);
    map_file(&a, "a");
    map_file(&b, "b");
    guard(&a);
    guard(&b);
    REQUIRE(ftruncate(a.fd, SV_PAGE) == 0);
    CHECK_INT_EQ(a.at[0], 7);
    CHECK(!a.is_gone);
    CHECK_INT_EQ(a.at[5 * SV_PAGE], 0);
    CHECK(a.is_gone);
    CHECK_INT_EQ(a.at[0], 0); /* all of it: nothing half true is left */
    a.at[BYTES - 1] = 3;      /* goes nowhere */
    CHECK(!b.is_gone);
    CHECK_INT_EQ(b.at[5 * SV_PAGE], 7);
    REQUIRE(ftruncate(b.fd, 0) == 0);
    b.at[0] = 1; /* writing, too */
    CHECK(b.is_gone);
    sv_guard_remove(&a.guarded);
    sv_guard_remove(&b.guarded);
    CHECK(handler() == SIG_DFL);
}

TEST(the_handler_is_there_only_while_it_is_needed)
{
    test_leaves_open();
    static struct mapped a, b;
    signal(SIGBUS, SIG_IGN);
    map_file(&a, "a");
    map_file(&b, "b");
    guard(&a);
    CHECK(handler() != SIG_IGN);
    guard(&b);
    sv_guard_remove(&a.guarded);
    CHECK(handler() != SIG_IGN);
    sv_guard_remove(&b.guarded);
    CHECK(handler() == SIG_IGN);
    sv_guard_remove(&b.guarded); /* twice does no harm */
}

static void leave(int sig)
{
    (void)sig;
    _exit(42);
}

static int status_of_child(void (*run)(void))
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        run();
        _exit(0);
    }
    REQUIRE(waitpid(pid, &status, 0) == pid);
    return status;
}

static struct mapped mine, other;

static void fault_elsewhere(void)
{
    map_file(&mine, "mine");
    map_file(&other, "other");
    guard(&mine);
    if (ftruncate(other.fd, 0) == 0)
        other.at[0] = 1;
}

static void with_a_handler(void)
{
    signal(SIGBUS, leave);
    fault_elsewhere();
}

static void with_a_handler_over_ours(void)
{
    map_file(&mine, "mine");
    guard(&mine);
    signal(SIGBUS, leave);
    sv_guard_check();
    if (ftruncate(mine.fd, 0) != 0 || mine.at[0] != 0 || !mine.is_gone)
        _exit(1);
    raise(SIGBUS);
}

static void without_a_handler(void)
{
    signal(SIGBUS, SIG_DFL);
    fault_elsewhere();
}

static void sent_and_ignored(void)
{
    signal(SIGBUS, SIG_IGN);
    map_file(&mine, "mine");
    guard(&mine);
    raise(SIGBUS);
    _exit(7);
}

static struct sigaction below;

static void chain(int sig, siginfo_t *info, void *context)
{
    below.sa_sigaction(sig, info, context);
}

/* A handler that calls what was there before it, which was ours. */
static void chained(void)
{
    struct sigaction act = {.sa_sigaction = chain, .sa_flags = SA_SIGINFO};
    signal(SIGBUS, SIG_DFL);
    map_file(&mine, "mine");
    map_file(&other, "other");
    guard(&mine);
    sigaction(SIGBUS, &act, &below);
    sv_guard_check();
    if (ftruncate(other.fd, 0) == 0)
        other.at[0] = 1;
}

TEST(faults_of_others_go_where_they_went)
{
    int status = status_of_child(with_a_handler);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
    status = status_of_child(with_a_handler_over_ours);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 42);
    status = status_of_child(without_a_handler);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
    status = status_of_child(sent_and_ignored);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    status = status_of_child(chained);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
}

/* A child has none of the mappings: what it guards is its own. */
static void guard_again(void)
{
    map_file(&other, "of the child");
    guard(&other);
    if (ftruncate(other.fd, 0) != 0 || other.at[0] != 0)
        _exit(1);
    sv_guard_remove(&other.guarded);
    _exit(handler() == SIG_DFL ? 5 : 6);
}

TEST(a_child_begins_anew)
{
    test_leaves_open();
    signal(SIGBUS, SIG_DFL);
    map_file(&mine, "mine");
    guard(&mine);
    int status = status_of_child(guard_again);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 5);
    REQUIRE(ftruncate(mine.fd, 0) == 0);
    CHECK_INT_EQ(mine.at[0], 0);
    sv_guard_remove(&mine.guarded);
}
