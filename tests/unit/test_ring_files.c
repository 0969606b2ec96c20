/* Segments of rings that killed recordings left: which numbers are free. */
#include "record/output/ring_files.h"
#include "tests/harness/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
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
