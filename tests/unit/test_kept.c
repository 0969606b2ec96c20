/* The folder of indexes: which files get one, when it is used, and which ones go. */
#include "files/kept.h"

#include "files/load.h"
#include "tests/harness/test.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char trace[512], cache[512], folder[600];

static void setup(void)
{
    snprintf(trace, sizeof trace, "%s", test_scratch("t.json"));
    snprintf(cache, sizeof cache, "%s", test_scratch("cache"));
    snprintf(folder, sizeof folder, "%s/stave", cache);
    setenv("XDG_CACHE_HOME", cache, 1);
    setenv("STAVE_INDEX_SLICES", "0", 1);
    test_write_file(trace,
                    "[{\"ph\":\"X\",\"ts\":1,\"dur\":2,\"pid\":1,\"tid\":1,\"name\":\"a\"}]");
}

/* The clock is so much later than the last change of the trace. */
static void wait_ns(int64_t ns)
{
    static int64_t now;
    struct stat st;
    REQUIRE(stat(trace, &st) == 0);
    now = (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec + ns;
    test_clock_script(&now, 1);
}

static size_t count(const char *pattern)
{
    glob_t g;
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, pattern);
    size_t n = glob(path, 0, NULL, &g) == 0 ? g.gl_pathc : 0;
    globfree(&g);
    return n;
}

/* Loads it; was it from an index? */
static bool load(void)
{
    struct sv_loaded l;
    struct sv_err err = {0};
    REQUIRE(sv_load(trace, &(struct sv_load_how){0}, &l, &err) == 0);
    CHECK_UINT_EQ(l.trace->slices.n, 1);
    CHECK_STR_EQ(l.in.format->name, "chrome");
    bool is_kept = sv_trace_image(l.trace) != NULL;
    sv_loaded_free(&l);
    return is_kept;
}

TEST(made_once_and_used_again)
{
    struct stat st;
    glob_t g;
    char pattern[700];
    setup();
    wait_ns(10000000000);
    CHECK(!load());
    CHECK_UINT_EQ(count("*"), 1);
    snprintf(pattern, sizeof pattern, "%s/????????????????.stave-index", folder);
    REQUIRE(glob(pattern, 0, NULL, &g) == 0 && g.gl_pathc == 1);
    CHECK(stat(g.gl_pathv[0], &st) == 0 && (st.st_mode & 0777) == 0600);
    CHECK(stat(folder, &st) == 0 && (st.st_mode & 0777) == 0700);
    CHECK(load());
    chmod(g.gl_pathv[0], 0640); /* others could read it: it is not ours alone */
    CHECK(!load());
    CHECK(load()); /* a new one took its place */
    FILE *f = fopen(g.gl_pathv[0], "r+");
    REQUIRE(f && fputs("damaged", f) >= 0 && fclose(f) == 0);
    unsetenv("STAVE_INDEX_SLICES");
    CHECK(!load());
    CHECK_UINT_EQ(count("*"), 0); /* it was removed, and no other one is made */
    CHECK(!load());
    globfree(&g);
}

TEST(a_changed_file_has_no_index)
{
    setup();
    wait_ns(10000000000);
    CHECK(!load());
    CHECK(load());
    test_write_file(trace,
                    "[{\"ph\":\"X\",\"ts\":1,\"dur\":2,\"pid\":1,\"tid\":1,\"name\":\"b\"}]");
    wait_ns(10000000000);
    CHECK(!load());
    CHECK(load());
    CHECK_UINT_EQ(count("*"), 1);
    struct sv_kept_key key;
    sv_kept_key(trace, NULL, false, &key);
    CHECK(key.is_known);
    sv_kept_remove(&key);
    CHECK_UINT_EQ(count("*"), 0);
    sv_kept_key(trace, NULL, false, &key);
    CHECK(!key.is_known);
}

/* What was changed just now could change again without a trace in its times. */
TEST(only_settled_files)
{
    static const struct {
        int64_t age_ns;
        bool is_settled;
    } rows[] = {{-2000000000, false}, {-1, false},        {0, false},         {100000000, false},
                {100000001, true},    {999999999, true},  {1000000001, true}, {2999999999, true},
                {3500000000, true},   {60000000000, true}};
    struct sv_kept_key key;
    struct stat st;
    setup();
    REQUIRE(stat(trace, &st) == 0);
    if (st.st_ctim.tv_nsec == 0 && st.st_mtim.tv_nsec == 0)
        SKIP("this file system has whole seconds");
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("%lld ns", (long long)rows[i].age_ns);
        wait_ns(rows[i].age_ns);
        sv_kept_key(trace, NULL, true, &key);
        CHECK(key.is_known);
        CHECK_INT_EQ(key.is_settled, rows[i].is_settled);
    }
    wait_ns(0);
    CHECK(!load() && count("*") == 0);
}

TEST(what_has_no_index)
{
    struct sv_kept_key key, other;
    setup();
    sv_kept_key("-", NULL, true, &key);
    CHECK(!key.is_known);
    sv_kept_key("/nonexistent/t.json", NULL, true, &key);
    CHECK(!key.is_known);
    sv_kept_key("/", NULL, true, &key);
    CHECK(!key.is_known);
    sv_kept_key(trace, NULL, false, &key);
    CHECK(!key.is_known); /* none is there, and none is needed */
    sv_kept_key(trace, NULL, true, &key);
    CHECK(key.is_known);
    sv_kept_key(trace, "chrome", true, &other);
    CHECK(other.is_known && other.name != key.name);
    sv_kept_key(trace, "", true, &other);
    CHECK(other.name == key.name && memcmp(&other.image, &key.image, sizeof key.image) == 0);
    test_write_file(trace, "");
    sv_kept_key(trace, NULL, true, &key);
    CHECK(!key.is_known);
    unlink(trace);
    REQUIRE(mkfifo(trace, 0600) == 0);
    sv_kept_key(trace, NULL, true, &key); /* does not wait */
    CHECK(!key.is_known);
}

/* The samples see a byte at both ends and in any sampled block. */
TEST(samples_of_the_content)
{
    enum { SIZE = 1000000 };
    static char bytes[SIZE];
    static const size_t places[] = {0, 4095, SIZE - 1, SIZE - 4096};
    struct sv_kept_key first, key;
    size_t last = TEST_COUNT(first.image.words) - 1;
    setup();
    for (size_t i = 0; i <= TEST_COUNT(places); i++) {
        memset(bytes, 'x', sizeof bytes);
        if (i > 0)
            bytes[places[i - 1]] = 'y';
        FILE *f = fopen(trace, "w");
        REQUIRE(f && fwrite(bytes, 1, SIZE, f) == SIZE && fclose(f) == 0);
        sv_kept_key(trace, NULL, true, i ? &key : &first);
        CONTEXT("place %zu", i);
        CHECK(i == 0 || (key.is_known && key.image.words[last] != first.image.words[last]));
    }
    sv_kept_key(trace, NULL, true, &first);
    CHECK_UINT_EQ(first.image.words[last], key.image.words[last]);
}

/* ---- the folder ---- */

TEST(only_a_folder_of_ones_own)
{
    setup();
    wait_ns(10000000000);
    REQUIRE(mkdir(cache, 0700) == 0 && mkdir(folder, 0700) == 0);
    chmod(folder, 0755);
    CHECK(!load());
    CHECK_UINT_EQ(count("*"), 0);
    chmod(folder, 0700);
    CHECK(!load());
    CHECK_UINT_EQ(count("*"), 1);
    char home[600], below[700];
    struct stat st;
    snprintf(home, sizeof home, "%s", test_scratch("home"));
    snprintf(below, sizeof below, "%s/.cache/stave", home);
    REQUIRE(mkdir(home, 0700) == 0);
    setenv("HOME", home, 1);
    setenv("XDG_CACHE_HOME", "relative", 1);
    CHECK(!load()); /* the other folder has none */
    CHECK(stat(below, &st) == 0);
    CHECK(load());
    unsetenv("XDG_CACHE_HOME");
    CHECK(load());
    setenv("HOME", "relative", 1);
    CHECK(!load());
    unsetenv("HOME");
    CHECK(!load());
    setenv("XDG_CACHE_HOME", cache, 1);
    CHECK(load());
}

/* An index as far as its name and its first bytes go, used so many seconds after 1970. */
static void make_old(const char *name, const char *bytes, time_t used_s, time_t changed_s)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    test_write_file(path, bytes);
    chmod(path, 0600);
    const struct timespec times[2] = {{.tv_sec = used_s}, {.tv_sec = changed_s}};
    REQUIRE(utimensat(AT_FDCWD, path, times, 0) == 0);
}

static bool is_there(const char *name)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

TEST(the_oldest_ones_go)
{
    char name[64];
    setup();
    wait_ns(10000000000);
    REQUIRE(mkdir(cache, 0700) == 0 && mkdir(folder, 0700) == 0);
    for (unsigned i = 0; i < 40; i++) { /* the times in another order than the names */
        snprintf(name, sizeof name, "%016x.stave-index", i * 7 % 40);
        make_old(name, "stave image", 1000 + (time_t)i, i % 2 ? 1 : 1000 + (time_t)i);
    }
    make_old("0000000000000100.stave-index", "other", 1, 1);       /* not by its first bytes */
    make_old("00000000000000aA.stave-index", "stave image", 1, 1); /* not by their names */
    make_old("000000000000001.stave-index", "stave image", 1, 1);
    make_old("0000000000000101.stave-indexes", "stave image", 1, 1);
    make_old("0000000000000102.stave-index", "stav", 1, 1);
    make_old("0000000000000103.stave-part", "left", 1, 1);
    make_old("0000000000000104.stave-part", "in use", 1, 1);
    snprintf(name, sizeof name, "%s", "0000000000000104.stave-part");
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    REQUIRE(fd >= 0 && flock(fd, LOCK_EX) == 0);
    CHECK(!load());
    CHECK(load());
    for (unsigned i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "%016x.stave-index", i * 7 % 40);
        CONTEXT("number %u", i);
        CHECK_INT_EQ(is_there(name), i >= 9); /* 31 of them, and the new one */
    }
    CHECK(is_there("0000000000000100.stave-index") && is_there("00000000000000aA.stave-index"));
    CHECK(is_there("000000000000001.stave-index") && is_there("0000000000000101.stave-indexes"));
    CHECK(is_there("0000000000000102.stave-index"));
    CHECK(!is_there("0000000000000103.stave-part") && is_there("0000000000000104.stave-part"));
    close(fd);
}

/* The last change counts where it is later than the last use. */
TEST(the_later_time_counts)
{
    char name[64];
    setup();
    wait_ns(10000000000);
    REQUIRE(mkdir(cache, 0700) == 0 && mkdir(folder, 0700) == 0);
    for (unsigned i = 0; i < 32; i++) {
        snprintf(name, sizeof name, "%016x.stave-index", i);
        make_old(name, "stave image", i == 5 ? 1 : 5000, i == 5 ? 9000 : i == 6 ? 1 : 6000);
    }
    CHECK(!load());
    CHECK(is_there("0000000000000005.stave-index") && !is_there("0000000000000006.stave-index"));
    CHECK_UINT_EQ(count("*"), 32);
}

static struct sv_loaded made;

static void write_too_little(void)
{
    struct sv_err err = {0};
    struct rlimit limit = {100, 100};
    struct sv_image_writer *w = sv_kept_begin(made.trace, &made.in.report, made.in.format);
    signal(SIGXFSZ, SIG_IGN);
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    CHECK_INT_EQ(sv_kept_end(w, trace, NULL, &made.key, NULL, NULL, &err), SV_EIO);
    CHECK_UINT_EQ(count("*"), 0);
}

TEST(nothing_is_left_of_what_was_not_finished)
{
    struct sv_err err = {0};
    setup();
    unsetenv("STAVE_INDEX_SLICES");
    wait_ns(10000000000);
    struct sv_load_how how = {.index = SV_INDEX_MADE};
    REQUIRE(sv_load(trace, &how, &made, &err) == 0);
    CHECK(made.key.is_known && made.key.is_settled);
    test_in_child(write_too_little);
    struct sv_kept_key young = made.key;
    young.is_settled = false;
    struct sv_image_writer *w = sv_kept_begin(made.trace, &made.in.report, made.in.format);
    CHECK_INT_EQ(sv_kept_end(w, trace, NULL, &young, NULL, NULL, &err), SV_EFOUND);
    CHECK_STR_EQ(err.msg, "the trace was changed just before it was read");
    err = (struct sv_err){0};
    test_write_file(trace, "[]");
    w = sv_kept_begin(made.trace, &made.in.report, made.in.format);
    CHECK_INT_EQ(sv_kept_end(w, trace, NULL, &made.key, NULL, NULL, &err), SV_EFOUND);
    CHECK_STR_EQ(err.msg, "the trace was changed");
    CHECK_UINT_EQ(count("*"), 0);
    CHECK(sv_kept_begin(made.trace, &made.in.report, NULL) == NULL);
    sv_loaded_free(&made);
}

TEST(from_how_many_slices_on)
{
    static const struct {
        const char *text;
        uint64_t n;
    } rows[] = {{"0", 0},
                {"17", 17},
                {"", UINT64_MAX},
                {"x", UINT64_MAX},
                {"1x", UINT64_MAX},
                {"18446744073709551616", UINT64_MAX},
                {"1000000", 1000000}};
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("%s", rows[i].text);
        setenv("STAVE_INDEX_SLICES", rows[i].text, 1);
        CHECK_UINT_EQ(sv_kept_slices(), rows[i].n);
    }
    unsetenv("STAVE_INDEX_SLICES");
    CHECK_UINT_EQ(sv_kept_slices(), UINT64_MAX);
}
