/* Descriptors that are still the same file, and their high numbers. */
#include "core/files/file_id.h"

#include "tests/harness/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

TEST(a_descriptor_is_its_file)
{
    int zero = open("/dev/zero", O_RDONLY | O_CLOEXEC),
        file = open(test_scratch("f"), O_RDWR | O_CREAT, 0600);
    struct sv_file_id of_zero = sv_file_id_of(zero), of_file = sv_file_id_of(file);
    struct stat st;
    REQUIRE(fstat(file, &st) == 0);
    CHECK(of_file.device == st.st_dev && of_file.inode == st.st_ino);
    CHECK(sv_file_id_is(zero, &of_zero) && sv_file_id_is(file, &of_file));
    CHECK(!sv_file_id_is(zero, &of_file) && !sv_file_id_is(file, &of_zero));
    struct sv_file_id other = {of_file.device, of_file.inode + 1};
    CHECK(!sv_file_id_is(file, &other));
    other = (struct sv_file_id){of_file.device + 1, of_file.inode};
    CHECK(!sv_file_id_is(file, &other));
    errno = 0;
    CHECK(sv_file_id_close(file, &of_zero) == -1 && errno == EBADF);
    CHECK(fcntl(file, F_GETFD) >= 0); /* it is not closed */
    CHECK_INT_EQ(sv_file_id_close(file, &of_file), 0);
    CHECK(fcntl(file, F_GETFD) < 0);
    errno = 0;
    CHECK(sv_file_id_close(file, &of_file) == -1 && errno == EBADF);
    close(zero);
}

TEST(no_file_is_nobodys)
{
    struct sv_file_id none = sv_file_id_of(-1);
    CHECK(none.device == 0 && none.inode == 0);
    CHECK(!sv_file_id_is(-1, &none));
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    CHECK(!sv_file_id_is(fd, &none));
    close(fd);
    none = sv_file_id_of(fd);
    CHECK(none.device == 0 && none.inode == 0 && !sv_file_id_is(fd, &none));
}

/* The number that a descriptor gets with such a limit of open files. */
static int moved_to(rlim_t most)
{
    struct rlimit limit;
    REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = most;
    REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    struct sv_file_id id = sv_file_id_of(fd);
    int high = sv_file_id_move_up(fd);
    CHECK(sv_file_id_is(high, &id));
    CHECK((fcntl(high, F_GETFD) & FD_CLOEXEC) != 0);
    CHECK(high == fd || fcntl(fd, F_GETFD) < 0); /* the old number is free again */
    close(high);
    return high == fd ? 0 : high;
}

static void move_with_limits(void)
{
    CHECK_INT_EQ(moved_to(4096), 960); /* select() must be able to take it */
    CHECK_INT_EQ(moved_to(1025), 960);
    CHECK_INT_EQ(moved_to(1000), 936);
    CHECK_INT_EQ(moved_to(150), 86);
    CHECK_INT_EQ(moved_to(129), 65);
    CHECK_INT_EQ(moved_to(128), 0); /* too few to keep away from the low ones */
    CHECK_INT_EQ(moved_to(64), 0);
    CHECK_INT_EQ(sv_file_id_move_up(-1), -1);
}

TEST(high_numbers_by_the_limit)
{
    struct rlimit limit;
    REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    if (limit.rlim_max < 4096)
        SKIP("few open files are allowed here");
    test_in_child(move_with_limits);
}

/* All high numbers are taken: it stays where it is. */
static void fill_high_numbers(void)
{
    struct rlimit limit;
    REQUIRE(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = 200;
    REQUIRE(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    for (int i = 136; i < 200; i++)
        REQUIRE(dup2(fd, i) == i);
    CHECK_INT_EQ(sv_file_id_move_up(fd), fd);
    CHECK(fcntl(fd, F_GETFD) >= 0);
    close(199);
    CHECK_INT_EQ(sv_file_id_move_up(fd), 199);
}

TEST(no_high_number_is_free)
{
    test_in_child(fill_high_numbers);
}
