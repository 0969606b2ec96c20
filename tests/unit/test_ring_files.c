/* Segments of rings that killed recordings left: which numbers are free. */
#include "record/output/ring_files.h"
#include "tests/harness/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void touch(const char *out, const char *suffix)
{
    char path[SV_RING_PATH_MAX + 16];
    snprintf(path, sizeof path, "%s%s", out, suffix);
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    REQUIRE(fd >= 0);
    close(fd);
}

TEST(the_next_number_is_behind_all_that_are_there)
{
    static const struct {
        const char *suffix;
        uint32_t next;
    } rows[] = {
        {".ring-0003", 4},      {".ring-0002", 4}, {".ring-0007.open", 8},     {".ring-x", 8},
        {".ring-12345", 12346}, {".part", 12346},  {".ring-4294967295", 12346}};
    char out[512], path[SV_RING_PATH_MAX];
    snprintf(out, sizeof out, "%s", test_scratch("t[a]*?.pftrace")); /* a name, no pattern */
    touch(test_scratch("ta.pftrace"), ".ring-0099");
    touch(test_scratch("t[a]*?.pftrace2"), ".ring-0098");
    CHECK_UINT_EQ(sv_ring_next_number(out), 1);
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("row %zu", i);
        touch(out, rows[i].suffix);
        CHECK_UINT_EQ(sv_ring_next_number(out), rows[i].next);
    }
    sv_ring_segment_name("/a/t.pftrace", 12, false, path);
    CHECK_STR_EQ(path, "/a/t.pftrace.ring-0012");
    sv_ring_segment_name("/a/t.pftrace", 12345, true, path);
    CHECK_STR_EQ(path, "/a/t.pftrace.ring-12345.open");
}

static void put(const char *out, uint32_t number, bool is_open, const char *text)
{
    char path[SV_RING_PATH_MAX];
    sv_ring_segment_name(out, number, is_open, path);
    test_write_file(path, text);
    chmod(path, 0600);
}

static const char *joined(const struct sv_claim *c, uint64_t part_bytes)
{
    static char text[256];
    struct sv_err err = {0};
    uint64_t bytes = 99;
    int fd = sv_ring_left_join(c, part_bytes, &bytes, &err);
    REQUIRE(fd >= 0);
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    close(fd);
    CHECK_UINT_EQ(bytes, n);
    text[n > 0 ? n : 0] = '\0';
    return text;
}

/* What was open before the oldest segment that is there, the segments in order, and of the growing
 * file what is whole. Older ones are another recording's. */
TEST(segments_of_a_claim_are_joined_in_order)
{
    struct sv_claim c = {.segment = 9, .fd = -1};
    char path[SV_RING_PATH_MAX];
    snprintf(c.out, sizeof c.out, "%s", test_scratch("r.pftrace"));
    snprintf(c.part, sizeof c.part, "%s", test_scratch("r.pftrace.part"));
    CHECK_STR_EQ(joined(&c, 100), ""); /* nothing is there */
    test_write_file(c.part, "growing");
    chmod(c.part, 0600);
    CHECK_STR_EQ(joined(&c, 4), "grow");
    put(c.out, 8, false, "other ");
    put(c.out, 10, true, "open10 ");
    put(c.out, 10, false, "ten ");
    put(c.out, 11, true, "open11 ");
    put(c.out, 11, false, "eleven ");
    put(c.out, 12, false, "twelve ");
    CHECK_STR_EQ(joined(&c, 7), "open10 ten eleven twelve growing");
    CHECK_STR_EQ(joined(&c, 0), "open10 ten eleven twelve ");
    CHECK_STR_EQ(joined(&c, UINT64_MAX), "open10 ten eleven twelve growing");
    c.segment = 11;
    CHECK_STR_EQ(joined(&c, 0), "open11 eleven twelve ");
    c.segment = 10;
    sv_ring_left_remove(&c);
    CHECK_STR_EQ(joined(&c, 0), "");
    sv_ring_segment_name(c.out, 8, false, path);
    CHECK(access(path, F_OK) == 0 && access(c.part, F_OK) == 0);
    for (uint32_t i = 10; i <= 12; i++)
        for (int is_open = 0; is_open < 2; is_open++) {
            sv_ring_segment_name(c.out, i, is_open, path);
            CHECK(access(path, F_OK) != 0);
        }
}
