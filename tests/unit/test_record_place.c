/* Before a recording begins: where its files go, which arguments are taken; and the command: how it
 * is started and what its end means. */
#include "core/files/part_name.h"
#include "record/session/recorder.h"
#include "record/spool/defer.h"
#include "tests/harness/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* The program's own, which the recorder asks whether it may print. */
struct sv_common sv_common = {.quiet = true};
const struct sv_option sv_common_options[] = {{0}};

/* ---- --out-dir ---- */

static int place(const char *dir, const char *out, struct sv_record_place *p)
{
    struct sv_err err = {0};
    struct sv_record_options o = {.out = {.path = out}, .use = {.out_dir = dir}};
    *p = (struct sv_record_place){0};
    int code = sv_record_place(&o, p, &err);
    CHECK_INT_EQ(code, err.code);
    CHECK(code < 0 || strcmp(o.out.path, p->trace) == 0);
    return code;
}

static void touch(const char *dir, const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    test_write_file(path, "");
}

TEST(a_run_has_the_number_after_the_last_one)
{
    static const struct {
        const char *there, *name;
    } rows[] = {
        {NULL, "run-0001"},          {NULL, "run-0002"},         {"run-0009.tar.zst", "run-0010"},
        {"run-0020x", "run-0011"},   {"run-x", "run-0012"},      {"run--30", "run-0013"},
        {"ran-0030", "run-0014"},    {"run-999999", "run-0015"}, {"run-0000", "run-0016"},
        {"run-999997", "run-999998"}};
    char dir[512], path[1200];
    struct sv_record_place p;
    snprintf(dir, sizeof dir, "%s", test_scratch("runs"));
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("row %zu", i);
        if (rows[i].there)
            touch(dir, rows[i].there);
        CHECK_INT_EQ(place(dir, NULL, &p), 0);
        CHECK_STR_EQ(p.name, rows[i].name);
        snprintf(path, sizeof path, "%s/%s/trace.pftrace", dir, rows[i].name);
        CHECK_STR_EQ(p.trace, path);
        CHECK(access(p.folder, F_OK) == 0);
    }
    snprintf(path, sizeof path, "%s/run-999998/stdout.log", dir);
    CHECK_STR_EQ(p.out_log, path);
    snprintf(path, sizeof path, "%s/run-999998/stderr.log", dir);
    CHECK_STR_EQ(p.err_log, path);
    snprintf(path, sizeof path, "%s/run-999998.tar.zst", dir);
    CHECK_STR_EQ(p.archive, path);
    CHECK_INT_EQ(place(dir, NULL, &p), SV_EIO); /* no number is left */
}

TEST(what_is_no_folder_or_no_name_is_refused)
{
    char dir[512], name[202];
    struct sv_record_place p;
    snprintf(dir, sizeof dir, "%s", test_scratch("runs"));
    CHECK_INT_EQ(place(dir, "a/b.pftrace", &p), SV_EUSAGE);
    memset(name, 'n', sizeof name);
    name[201] = 0;
    CHECK_INT_EQ(place(dir, name, &p), SV_EUSAGE);
    CHECK(access(dir, F_OK) != 0); /* nothing is made */
    name[200] = 0;
    CHECK_INT_EQ(place(dir, name, &p), 0);
    CHECK_STR_EQ(strrchr(p.trace, '/') + 1, name);
    test_write_file(test_scratch("file"), "");
    CHECK(place(test_scratch("file"), NULL, &p) < 0);
    CHECK(place(test_scratch("file/below"), NULL, &p) < 0);
}

TEST(files_beside_a_trace_have_its_name_without_suffix)
{
    struct sv_record_place p;
    CHECK_INT_EQ(place(NULL, "/a/train.json.gz", &p), 0);
    CHECK_STR_EQ(p.name, "train");
    CHECK_STR_EQ(p.trace, "/a/train.json.gz");
    CHECK_STR_EQ(p.out_log, "/a/train.stdout.log");
    CHECK_STR_EQ(p.err_log, "/a/train.stderr.log");
    CHECK_STR_EQ(p.archive, "/a/train.tar.zst");
    CHECK_INT_EQ(place(NULL, "train.pftrace", &p), 0);
    CHECK_STR_EQ(p.name, "train");
    CHECK_STR_EQ(p.archive, "train.tar.zst");
}

/* ---- --rotate, --last, --spool ---- */

static int check_parts(const char *rotate, const char *last, const char *out, const char *to)
{
    struct sv_err err = {0};
    const struct sv_record_options o = {.out = {.path = out, .to = to},
                                        .use = {.rotate = rotate, .last = last}};
    return sv_parts_check(&o, &err);
}

TEST(sizes_and_times_of_long_recordings)
{
    static const struct {
        const char *rotate, *last;
        bool is_good;
    } rows[] = {{NULL, NULL, true},
                {"256K", NULL, true},
                {"255K", NULL, false},
                {"512M,4", NULL, true},
                {"512M,1", NULL, true},
                {"512M,0", NULL, false},
                {"512M,1000000", NULL, true},
                {"512M,1000001", NULL, false},
                {"512M,4x", NULL, false},
                {"512M,", NULL, false},
                {"512M,-1", NULL, false},
                {"512M, 4", NULL, false},
                {"", NULL, false},
                {",4", NULL, false},
                {"big", NULL, false},
                {NULL, "30s", true},
                {NULL, "2min", true},
                {NULL, "1s", true},
                {NULL, "999ms", false},
                {NULL, "1000ms", true},
                {NULL, "-5s", false},
                {NULL, "s", false},
                {NULL, "", false},
                {NULL, "2M", true},
                {NULL, "2047K", false},
                {NULL, "256M", true},
                {NULL, "10000000\0x", false},
                {NULL, "10000009\0x", false},
                {NULL, "0", false},
                {NULL, "M", false},
                {"512M", "30s", false}};
    char size[80];
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("row %zu", i);
        CHECK_INT_EQ(check_parts(rows[i].rotate, rows[i].last, NULL, NULL),
                     rows[i].is_good ? 0 : SV_EUSAGE);
    }
    for (int n = 62; n <= 65; n++) { /* the number of digits that a size may have */
        memset(size, '0', sizeof size);
        snprintf(size + n - 4, 8, "512M");
        CHECK_INT_EQ(check_parts(size, NULL, NULL, NULL), n < 64 ? 0 : SV_EUSAGE);
    }
    CHECK_INT_EQ(check_parts("1M", NULL, "t.pftrace", NULL), 0);
    CHECK_INT_EQ(check_parts("1M", NULL, "t.json", NULL), SV_EUSAGE);
    CHECK_INT_EQ(check_parts("1M", NULL, "t.pftrace.gz", NULL), SV_EUSAGE);
    CHECK_INT_EQ(check_parts("1M", NULL, "t.x", "perfetto"), 0);
    CHECK_INT_EQ(check_parts("1M", NULL, "t.pftrace", "chrome"), SV_EUSAGE);
    CHECK_INT_EQ(check_parts("1M", NULL, "t.pftrace", "nothing"), SV_EUSAGE);
}

TEST(parts_have_free_numbers)
{
    static const struct {
        const char *there;
        uint32_t next;
    } rows[] = {
        {"t-0001.pftrace", 2},      {"t-0009.pftrace", 10},         {"t-0004.pftrace", 10},
        {"t-0020.json", 10},        {"u-0020.pftrace", 10},         {"t-x.pftrace", 10},
        {"t-.pftrace", 10},         {"t0030.pftrace", 10},          {"t-0030.pftrace.part", 10},
        {"t-10000.pftrace", 10001}, {"t-4294967295.pftrace", 10001}};
    char dir[512], out[600], path[700], before[4096];
    snprintf(dir, sizeof dir, "%s", test_scratch("parts"));
    REQUIRE(mkdir(dir, 0700) == 0);
    snprintf(out, sizeof out, "%s/t.pftrace", dir);
    CHECK_UINT_EQ(sv_parts_free_number(out), 1);
    REQUIRE(getcwd(before, sizeof before) && chdir(dir) == 0);
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("row %zu", i);
        touch(dir, rows[i].there);
        CHECK_UINT_EQ(sv_parts_free_number(out), rows[i].next);
        CHECK_UINT_EQ(sv_parts_free_number("t.pftrace"), rows[i].next);
    }
    REQUIRE(chdir(before) == 0);
    sv_parts_name(out, 3, path, sizeof path);
    CHECK_STR_EQ(strrchr(path, '/'), "/t-0003.pftrace");
    CHECK_UINT_EQ(sv_parts_free_number("/nowhere-at-all.pftrace"), 1);
}

TEST(sizes_of_the_spool)
{
    static const struct {
        const char *text;
        bool is_good;
    } rows[] = {{NULL, true}, {"4G", true}, {"16M", true}, {"16383K", false},
                {"0", true},  {"1", false}, {"x", false},  {"", false}};
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct sv_err err = {0};
        const struct sv_record_options o = {.spool = rows[i].text};
        CONTEXT("row %zu", i);
        CHECK_INT_EQ(sv_defer_check(&o, &err), rows[i].is_good ? 0 : SV_EUSAGE);
    }
}

/* ---- the command ---- */

struct started {
    struct sv_recorder r;
    struct sv_words words;
    int code;
};

/* Started, begun unless it is given up, and waited for. */
static int run(struct started *s, const char *const *argv, size_t n)
{
    struct sv_err err = {0};
    s->words = (struct sv_words){.items = (const char **)(uintptr_t)argv, .n = n};
    s->r = (struct sv_recorder){
        .command = &s->words, .copier.fds = {-1, -1}, .child = {.begin_fd = -1, .error_fd = -1}};
    sigprocmask(SIG_SETMASK, NULL, &s->r.child.mask);
    s->r.child.umask = umask(022);
    REQUIRE(sv_child_start(&s->r, &err) == 0);
    CHECK(s->r.child.pid > 0 && s->r.child.begin_fd >= 0 && s->r.child.error_fd >= 0);
    CHECK(!sv_child_look(&s->r)); /* it waits for the word to begin */
    CHECK_INT_EQ(sv_child_exit_code(&s->r), 0);
    s->code = sv_child_begin(&s->r, &err);
    CHECK(s->r.child.begin_fd == -1 && s->r.child.error_fd == -1);
    CHECK_INT_EQ(s->code, err.code);
    while (!sv_child_look(&s->r))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    CHECK(sv_child_look(&s->r)); /* and stays so */
    return sv_child_exit_code(&s->r);
}

TEST(the_end_of_a_command_is_its_code_or_its_signal)
{
    struct started s;
    const char *const exits[] = {"sh", "-c", "exit 7"},
                      *const killed[] = {"sh", "-c", "kill -9 $$"},
                      *const absent[] = {"/nowhere/at/all"}, *const folder[] = {"/"};
    CHECK_INT_EQ(run(&s, exits, 3), 7);
    CHECK_INT_EQ(s.code, 0);
    CHECK_INT_EQ(run(&s, killed, 3), 128 + 9);
    CHECK_INT_EQ(s.code, 0);
    CHECK_INT_EQ(run(&s, absent, 1), 127);
    CHECK(s.code < 0);
    CHECK_INT_EQ(run(&s, folder, 1), 126);
    CHECK(s.code < 0);
}

/* The recorder gives up before the command has begun: it never does. */
TEST(a_command_that_is_given_up_does_not_run)
{
    struct sv_err err = {0};
    char path[512];
    snprintf(path, sizeof path, "%s", test_scratch("made"));
    const char *argv[] = {"touch", path};
    const struct sv_words words = {.items = argv, .n = 2};
    struct sv_recorder r = {.command = &words, .copier.fds = {-1, -1}};
    sigprocmask(SIG_SETMASK, NULL, &r.child.mask);
    REQUIRE(sv_child_start(&r, &err) == 0);
    close(r.child.begin_fd);
    while (!sv_child_look(&r))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    CHECK_INT_EQ(sv_child_exit_code(&r), 126);
    CHECK(access(path, F_OK) != 0);
    close(r.child.error_fd);
}
