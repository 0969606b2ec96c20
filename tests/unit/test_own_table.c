/* The writer's own table of descriptors: what stays in it, and that the program's is as it was;
 * also where the newer call, or both, are refused. */
#include "sdk/session/sdk.h"
#include "sdk/write/own_table.h"
#include "tests/harness/test.h"
#include "tests/unit/sdk_scene.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FILES = 40 };

static struct {
    int keep;
    bool is_own, says_so;
    char open[FILES + 1]; /* by number: x or . */
    char folder[300];
} seen;

static void look(char to[FILES + 1])
{
    for (int fd = 0; fd < FILES; fd++)
        to[fd] = fcntl(fd, F_GETFD) < 0 ? '.' : 'x';
    to[FILES] = '\0';
}

static void *take(void *arg)
{
    seen.is_own = sv_own_table_take(seen.keep);
    seen.says_so = sv_own_table_is();
    look(seen.open);
    if (!getcwd(seen.folder, sizeof seen.folder))
        seen.folder[0] = '\0';
    return arg;
}

enum { WITH_ALL, WITHOUT_CLOSE_RANGE, WITHOUT_UNSHARE, WITHOUT_BOTH, WAYS };

static void each_descriptor_with(int way)
{
    static const int keeps[] = {-1, 0, 1, 2, 3, 20, 30};
    if ((way & WITHOUT_CLOSE_RANGE && !test_refuse_call(SYS_close_range, 0, 0, ENOSYS)) ||
        (way & WITHOUT_UNSHARE && !test_refuse_call(SYS_unshare, 0, 0, EPERM)))
        SKIP("system calls cannot be refused here");
    for (int fd = 0; fd < FILES; fd++) /* others, such as the harness's, are not in the way */
        if (fd > 2 && fd != 20 && fd != 30)
            close(fd);
    dup2(1, 20);
    dup2(1, 30);
    for (size_t i = 0; i < TEST_COUNT(keeps); i++) {
        pthread_t thread;
        char before[FILES + 1], after[FILES + 1], expected[FILES + 1];
        CONTEXT("way %d, %d stays", way, keeps[i]);
        look(before);
        memset(expected, '.', FILES);
        expected[FILES] = '\0';
        if (keeps[i] >= 0)
            expected[keeps[i]] = before[keeps[i]];
        seen.keep = keeps[i];
        REQUIRE(pthread_create(&thread, NULL, take, NULL) == 0);
        pthread_join(thread, NULL);
        look(after);
        CHECK_STR_EQ(after, before);
        CHECK_INT_EQ(seen.is_own, way != WITHOUT_BOTH);
        CHECK_INT_EQ(seen.says_so, seen.is_own);
        CHECK_STR_EQ(seen.open, seen.is_own ? expected : before);
        CHECK_INT_EQ(strcmp(seen.folder, "/") == 0, !(way & WITHOUT_UNSHARE));
        CHECK(!sv_own_table_is());
    }
}

static void with_all(void)
{
    each_descriptor_with(WITH_ALL);
}

static void without_close_range(void)
{
    each_descriptor_with(WITHOUT_CLOSE_RANGE);
}

static void without_unshare(void)
{
    each_descriptor_with(WITHOUT_UNSHARE);
}

static void without_both(void)
{
    each_descriptor_with(WITHOUT_BOTH);
}

TEST(one_descriptor_stays)
{
    static void (*const ways[WAYS])(void) = {with_all, without_close_range, without_unshare,
                                             without_both};
    if (TEST_HAS_TSAN)
        SKIP("with ThreadSanitizer the table is always the program's");
    for (int i = 0; i < WAYS; i++)
        test_in_child(ways[i]);
}

/* A line of the writer, which has no standard error: as it is, also when it has to wait for the
 * program. */
static void lines_without_borrowing(void)
{
    static struct sdk_scene s;
    if (!test_refuse_call(SYS_pidfd_getfd, 0, 0, EPERM))
        SKIP("system calls cannot be refused here");
    sdk_start(&s, NULL);
    sdk_hear();
    STAVE_INSTANT("c", "n");
    stave_flush();
    unlink(sv_process->session->part);
    CHECK_INT_EQ(stave_stop(), 0);
    stave_finish();
    const char *said = sdk_heard();
    CHECK(strstr(said, "it was removed while it was written, and is written again\n") != NULL);
    CHECK_INT_EQ(strlen(said) - strcspn(said, "\n"), 1); /* once */
    sdk_done(&s);
}

TEST(lines_that_wait_for_the_program)
{
    if (TEST_HAS_TSAN)
        SKIP("with ThreadSanitizer the table is always the program's");
    test_in_child(lines_without_borrowing);
}
