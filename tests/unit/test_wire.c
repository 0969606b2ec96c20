/* The protobuf cursor on good and hostile bytes, and the writer against it. */
#include "core/base/wire.h"
#include "tests/harness/test.h"

TEST(reads_what_it_writes)
{
    struct sv_buf b;
    sv_buf_init(&b, 1 << 20);
    sv_put_u64(&b, 1, UINT64_MAX);
    sv_put_double(&b, 2, 0.5);
    size_t outer = sv_put_begin(&b, 3);
    size_t inner = sv_put_begin(&b, 4);
    for (int i = 0; i < 300; i++)
        sv_put_u64(&b, 5, (uint64_t)i);
    sv_put_end(&b, inner);
    sv_put_end(&b, outer);
    sv_put_bytes(&b, 100, "xyz", 3);

    struct sv_pb w = sv_pb_at(b.data, b.len);
    struct sv_pb_field f;
    REQUIRE(sv_pb_next(&w, &f));
    CHECK(f.id == 1 && f.u == UINT64_MAX);
    REQUIRE(sv_pb_next(&w, &f));
    CHECK(f.id == 2 && sv_pb_double(&f) == 0.5);
    REQUIRE(sv_pb_next(&w, &f) && f.id == 3);
    struct sv_pb sub = sv_pb_sub(&f);
    REQUIRE(sv_pb_next(&sub, &f) && f.id == 4);
    struct sv_pb leaf = sv_pb_sub(&f);
    for (uint64_t i = 0; i < 300; i++)
        CHECK(sv_pb_next(&leaf, &f) && f.id == 5 && f.u == i);
    CHECK(!sv_pb_next(&leaf, &f) && !leaf.bad);
    REQUIRE(sv_pb_next(&w, &f));
    CHECK(f.id == 100 && f.u == 3 && memcmp(f.bytes, "xyz", 3) == 0);
    CHECK(!sv_pb_next(&w, &f) && !w.bad);
    sv_buf_fini(&b);
}

TEST(stops_at_damage_and_says_where)
{
    static const struct {
        const char *bytes;
        size_t len, bad_at;
    } rows[] = {
        {"\x08\x01\x12\x05xy", 6, 2},                                /* length past the end */
        {"\x12\x03xy", 4, 0},                                        /* by one byte */
        {"\x08\x80", 2, 0},                                          /* varint cut off */
        {"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12, 0}, /* varint of 11 bytes */
        {"\x08\x01\x0b", 3, 2},                                      /* group */
        {"\x00\x01", 2, 0},                                          /* field 0 */
        {"\x09\x01\x02\x03", 4, 0},                                  /* short fixed64 */
        {"\x0d\x01\x02\x03", 4, 0},                                  /* short fixed32 */
        {"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, 0},     /* length 2^64-1 */
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("row %zu", i);
        struct sv_pb w = sv_pb_at((const uint8_t *)rows[i].bytes, rows[i].len);
        struct sv_pb_field f;
        while (sv_pb_next(&w, &f))
            ;
        CHECK(w.bad);
        CHECK_UINT_EQ(w.p - (const uint8_t *)rows[i].bytes, rows[i].bad_at);
    }
}
