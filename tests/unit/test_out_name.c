/* Names of outputs: patterns, and what is put before the suffix. */
#include "core/files/out_name.h"
#include "core/files/part_name.h"

#include "tests/harness/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

/* The C library's, but the machine can have another name, or none that can be known (""). */
static const char *pretended;

int own_gethostname(char *to, size_t size) __asm__("gethostname");

int own_gethostname(char *to, size_t size)
{
    struct utsname u;
    uname(&u);
    const char *name = pretended ? pretended : u.nodename;
    errno = EPERM;
    if (!*name)
        return -1;
    memset(to, 'x', size);
    memcpy(to, name, strlen(name) < size ? strlen(name) + 1 : size);
    return 0;
}

TEST(hosts_as_a_part_of_a_name)
{
    char to[8];
    pretended = "a/b/c";
    sv_name_host(to, sizeof to);
    CHECK_STR_EQ(to, "a_b_c");
    pretended = "1234567/9";
    sv_name_host(to, sizeof to);
    CHECK_STR_EQ(to, "1234567");
    pretended = "";
    char longer[32];
    sv_name_host(longer, sizeof longer);
    CHECK_STR_EQ(longer, "localhost");
    pretended = NULL;
}

TEST(suffixes)
{
    static const char *const known[] = {".json", ".pftrace", NULL};
    static const struct {
        const char *path, *suffix;
        size_t unpacked;
        enum sv_compression compression;
    } rows[] = {
        {"a.json", ".json", 6, SV_PLAIN},
        {"a.json.gz", ".json", 6, SV_GZIP},
        {"/x/a.pftrace.zst", ".pftrace", 12, SV_ZSTD},
        {"a.gz", NULL, 1, SV_GZIP},
        {".gz", NULL, 3, SV_PLAIN},
        {"/x/.zst", NULL, 7, SV_PLAIN},
        {".json", NULL, 5, SV_PLAIN},
        {"xjson", NULL, 5, SV_PLAIN},
        {"a.json.gz.txt", NULL, 13, SV_PLAIN},
        {"", NULL, 0, SV_PLAIN},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        enum sv_compression c = SV_ZSTD, d = SV_ZSTD;
        CONTEXT("%s", rows[i].path);
        CHECK_UINT_EQ(sv_name_unpacked(rows[i].path, &c), rows[i].unpacked);
        CHECK_STR_EQ(sv_name_suffix(rows[i].path, known, &d), rows[i].suffix);
        CHECK(c == rows[i].compression && d == rows[i].compression);
        CHECK(sv_name_suffix(rows[i].path, NULL, &d) == NULL);
    }
}

TEST(before_the_suffix)
{
    static const struct {
        const char *path, *result;
    } rows[] = {
        {"t.pftrace", "t.7.pftrace"},
        {"/a.b/t.json.gz", "/a.b/t.7.json.gz"},
        {"t.json.zst", "t.7.json.zst"},
        {"/a.b/t", "/a.b/t.7"},
        {"t", "t.7"},
        {".pftrace", ".7.pftrace"},
        {"/x/.gz", "/x/.7.gz"},
        {"a.b.c.pftrace", "a.b.c.7.pftrace"},
        {"", ".7"},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        char path[64];
        snprintf(path, sizeof path, "%s", rows[i].path);
        CHECK(sv_name_insert(path, sizeof path, ".7"));
        CHECK_STR_EQ(path, rows[i].result);
    }
    char tight[12] = "t.pftrace";
    CHECK(sv_name_insert(tight, sizeof tight, ".7"));
    CHECK(!sv_name_insert(tight, sizeof tight, ".7"));
    CHECK_STR_EQ(tight, "t.7.pftrace");
}

TEST(patterns)
{
    struct sv_launcher l = {.rank = 3, .size = 4, .job = "77"};
    struct sv_launcher none = {.rank = -1, .size = -1};
    char to[256], host[64], expected[512], cwd[256];
    CHECK(!sv_name_expand("a%p-%r-%j-%%.json", 12, true, &l, to, sizeof to));
    CHECK_STR_EQ(to, "a12-3-77-%.json");
    CHECK(!sv_name_expand("%r.%j", 12, true, &none, to, sizeof to));
    CHECK_STR_EQ(to, "0.0");
    sv_name_host(host, sizeof host);
    CHECK(!sv_name_expand("/x/%h", 12, false, &l, to, sizeof to));
    snprintf(expected, sizeof expected, "/x/%s", host);
    CHECK_STR_EQ(to, expected);
    REQUIRE(getcwd(cwd, sizeof cwd) != NULL);
    CHECK(!sv_name_expand("t.json", 12, false, &l, to, sizeof to));
    snprintf(expected, sizeof expected, "%s/t.json", cwd);
    CHECK_STR_EQ(to, expected);
    CHECK(sv_name_expand("%x", 12, true, &l, to, sizeof to) != NULL);
    CHECK(sv_name_expand("t%", 12, true, &l, to, sizeof to) != NULL);
    CHECK_STR_EQ(sv_name_expand("12345678", 12, true, &l, to, 9), "too long");
    CHECK(!sv_name_expand("1234567", 12, true, &l, to, 9));
    CHECK_STR_EQ(to, "1234567");
    CHECK_STR_EQ(sv_name_expand("x", 12, false, &l, to, 2), "the current directory is unknown");
    char before[256];
    REQUIRE(getcwd(before, sizeof before) != NULL && chdir("/") == 0);
    CHECK(!sv_name_expand("t.json", 12, false, &l, to, sizeof to));
    CHECK_STR_EQ(to, "/t.json");
    REQUIRE(chdir(before) == 0);
    CHECK(sv_name_has("%%p%p", 'p') && !sv_name_has("%%p", 'p') && !sv_name_has("p%", 'p'));
}

TEST(ranks)
{
    struct sv_launcher l = {"pmi", 3, 4, -1, ""}, one = {"pmi", 0, 1, -1, ""};
    struct sv_launcher unknown = {"pmix", 12345, -1, -1, ""}, none = {NULL, 3, -1, -1, ""};
    char path[64] = "job.json.gz";
    bool changed;
    CHECK(sv_name_add_rank("job.json.gz", &l, path, sizeof path, &changed) && changed);
    CHECK_STR_EQ(path, "job.rank0003.json.gz");
    CHECK(sv_name_add_rank("%r.pftrace", &l, path, sizeof path, &changed) && !changed);
    CHECK(sv_name_add_rank("x.pftrace", &one, path, sizeof path, &changed) && !changed);
    CHECK(sv_name_add_rank("x.pftrace", &none, path, sizeof path, &changed) && !changed);
    CHECK_STR_EQ(path, "job.rank0003.json.gz");
    snprintf(path, sizeof path, "x.pftrace");
    CHECK(sv_name_add_rank("x.pftrace", &unknown, path, sizeof path, &changed) && changed);
    CHECK_STR_EQ(path, "x.rank12345.pftrace");
}

/* Parts of a name: which number is free, whatever else is in the folder. */
TEST(numbers_of_parts)
{
    static const struct {
        const char *file;
        uint32_t next; /* with this file as well */
    } rows[] = {{"t-x.pftrace", 1},
                {"t-5x.pftrace", 1},
                {"t-0005.json", 1},
                {"u-0005.pftrace", 1},
                {"tt-0005.pftrace", 1},
                {"t-.pftrace", 1},
                {"t0005.pftrace", 1},
                {"t-4294967295.pftrace", 1},
                {"t-0005.pftrace.part", 1},
                {"t--5.pftrace", 1},
                {"t-+5.pftrace", 1},
                {"t- 5.pftrace", 1},
                {"t-0001.pftrace", 2},
                {"t-0004.pftrace", 5},
                {"t-0003.pftrace", 5},
                {"t-12345.pftrace", 12346},
                {"t-4294967294.pftrace", 4294967295}};
    char out[512], path[512];
    REQUIRE(mkdir(test_scratch("parts"), 0700) == 0);
    snprintf(out, sizeof out, "%s/t.pftrace", test_scratch("parts"));
    CHECK_UINT_EQ(sv_parts_free_number(out), 1);
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("%s", rows[i].file);
        snprintf(path, sizeof path, "%s/%s", test_scratch("parts"), rows[i].file);
        test_write_file(path, "");
        CHECK_UINT_EQ(sv_parts_free_number(out), rows[i].next);
    }
    sv_parts_name("a/t.json.gz", 7, path, sizeof path);
    CHECK_STR_EQ(path, "a/t-0007.json.gz");
    sv_parts_name("a/t.pftrace", 12345, path, sizeof path);
    CHECK_STR_EQ(path, "a/t-12345.pftrace");
}
