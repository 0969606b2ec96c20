/* Folders beside one that somebody else has taken the name of. */
#include "core/files/own_folder.h"

#include "tests/harness/test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char base[512];

static const char *in_base(const char *name)
{
    static char path[1024];
    snprintf(path, sizeof path, "%s/%s", base, name);
    return path;
}

static void make_base(void)
{
    snprintf(base, sizeof base, "%s", test_scratch("base"));
    REQUIRE(mkdir(base, 0700) == 0);
}

TEST(only_own_folders_of_the_name_are_found)
{
    char found[SV_OWN_OTHERS_MAX][SV_OWN_NAME_MAX];
    make_base();
    CHECK_UINT_EQ(sv_own_others(base, "stave", found), 0);
    mkdir(in_base("stave"), 0700);
    mkdir(in_base("stave."), 0700);
    mkdir(in_base("stave-1"), 0700);
    mkdir(in_base("stav.1"), 0700);
    mkdir(in_base("stave.open"), 0700);
    chmod(in_base("stave.open"), 0750);
    mkdir(in_base("stave.world"), 0700);
    chmod(in_base("stave.world"), 0701);
    test_write_file(in_base("stave.file"), "");
    chmod(in_base("stave.file"), 0600);
    CHECK_INT_EQ(symlink("stave", in_base("stave.link")), 0);
    if (geteuid() == 0) {
        mkdir(in_base("stave.theirs"), 0700);
        CHECK_INT_EQ(chown(in_base("stave.theirs"), 65534, (gid_t)-1), 0);
    }
    CHECK_UINT_EQ(sv_own_others(base, "stave", found), 0);
    mkdir(in_base("stave.x"), 0700);
    CHECK_UINT_EQ(sv_own_others(base, "stave", found), 1);
    CHECK_STR_EQ(found[0], "stave.x");
    CHECK_UINT_EQ(sv_own_others(in_base("none"), "stave", found), 0);
}

TEST(names_and_numbers_have_limits)
{
    char found[SV_OWN_OTHERS_MAX][SV_OWN_NAME_MAX], name[SV_OWN_NAME_MAX + 1];
    make_base();
    memset(name, 'n', sizeof name);
    memcpy(name, "s.", 2);
    name[SV_OWN_NAME_MAX] = '\0';
    REQUIRE(mkdir(in_base(name), 0700) == 0);
    CHECK_UINT_EQ(sv_own_others(base, "s", found), 0);
    name[SV_OWN_NAME_MAX - 1] = '\0';
    REQUIRE(mkdir(in_base(name), 0700) == 0);
    CHECK_UINT_EQ(sv_own_others(base, "s", found), 1);
    CHECK_STR_EQ(found[0], name);
    for (int i = 0; i < 300; i++) { /* more than one answer of the kernel holds */
        snprintf(name, sizeof name, "other.%d", i);
        REQUIRE(mkdir(in_base(name), 0700) == 0);
    }
    REQUIRE(mkdir(in_base("t.1"), 0700) == 0 && mkdir(in_base("t.2"), 0700) == 0);
    CHECK_UINT_EQ(sv_own_others(base, "t", found), 2);
    CHECK_UINT_EQ(sv_own_others(base, "other", found), SV_OWN_OTHERS_MAX);
    for (int i = 0; i < SV_OWN_OTHERS_MAX; i++)
        CHECK(strncmp(found[i], "other.", 6) == 0);
}

TEST(one_is_made_and_used_again)
{
    char made[SV_OWN_NAME_MAX], again[SV_OWN_NAME_MAX];
    struct stat st, same;
    make_base();
    int fd = sv_own_other(base, "stave", made);
    REQUIRE(fd >= 0 && fstat(fd, &st) == 0);
    CHECK(S_ISDIR(st.st_mode) && (st.st_mode & 0777) == 0700);
    CHECK(strncmp(made, "stave.", 6) == 0 && strlen(made) == 6 + 16);
    CHECK(stat(in_base(made), &same) == 0 && same.st_ino == st.st_ino);
    close(fd);
    fd = sv_own_other(base, "stave", again);
    CHECK(fd >= 0);
    CHECK_STR_EQ(again, made);
    close(fd);
    fd = sv_own_other(base, "other", again);
    CHECK(fd >= 0 && strncmp(again, "other.", 6) == 0);
    close(fd);
}

TEST(one_that_cannot_be_made)
{
    char made[SV_OWN_NAME_MAX], name[SV_OWN_NAME_MAX];
    make_base();
    errno = 0;
    CHECK(sv_own_other(in_base("none"), "stave", made) == -1 && errno == ENOENT);
    memset(name, 'n', sizeof name);
    name[SV_OWN_NAME_MAX - 17] = '\0'; /* with a dot and 16 digits a byte too long */
    CHECK_INT_EQ(sv_own_other(base, name, made), -1);
    name[SV_OWN_NAME_MAX - 18] = '\0';
    int fd = sv_own_other(base, name, made);
    CHECK(fd >= 0);
    close(fd);
}
