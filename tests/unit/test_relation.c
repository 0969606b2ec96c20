/* Relations as JSON: what was written is read back, and what is none is refused. */
#include "clocks/relation.h"

#include "tests/harness/test.h"

#include <string.h>

static int parse(struct sv_relation *r, const char *text, struct sv_err *err)
{
    sv_err_clear(err);
    return sv_relation_parse(r, text, strlen(text), err);
}

TEST(what_is_written_is_read_back)
{
    struct sv_relation r = {.local = {"b \"x\"\n", "b00t", "1 -2"}, .reference = {"a", "b11t", ""}};
    struct sv_relation back;
    struct sv_buf json;
    struct sv_err err;
    sv_buf_init(&json, 1 << 20);
    for (int i = 0; i < 3; i++)
        sv_relation_add(&r, &(struct sv_sync_round){i, INT64_MIN / 4 + i, INT64_MAX / 4 - i});
    sv_relation_put(&r, &json);
    sv_err_clear(&err);
    REQUIRE(sv_relation_parse(&back, (const char *)json.data, json.len, &err) == 0);
    CHECK(sv_clock_owner_equal(&back.local, &r.local));
    CHECK(sv_clock_owner_equal(&back.reference, &r.reference));
    CHECK_STR_EQ(back.local.host, r.local.host);
    CHECK(!back.is_estimate);
    REQUIRE(back.n == 3);
    CHECK_MEM_EQ(back.rounds, r.rounds, 3 * sizeof *r.rounds);
    sv_relation_fini(&back);
    sv_relation_fini(&r);
    sv_buf_fini(&json);
}

TEST(an_estimate_stays_one)
{
    struct sv_relation r = {
        .local = {"b", "x", ""}, .reference = {"a", "y", ""}, .is_estimate = true};
    struct sv_relation back;
    struct sv_buf json;
    struct sv_err err;
    sv_buf_init(&json, 1 << 20);
    sv_relation_add(&r, &(struct sv_sync_round){1, 2, 3});
    sv_relation_put(&r, &json);
    sv_err_clear(&err);
    REQUIRE(sv_relation_parse(&back, (const char *)json.data, json.len, &err) == 0);
    CHECK(back.is_estimate);
    sv_relation_fini(&back);
    sv_relation_fini(&r);
    sv_buf_fini(&json);
}

TEST(what_is_none_is_refused_with_the_reason)
{
#define ENDS "\"local\":{\"boot_id\":\"b\"},\"reference\":{\"boot_id\":\"a\"}"
    static const struct {
        const char *json, *why;
    } rows[] = {
        {"", "no JSON object"},
        {"[]", "no JSON object"},
        {"{\"stave_relation\":1", "no JSON object"},
        {"{}", "no 'stave_relation'"},
        {"{\"stave_relation\":2," ENDS ",\"rounds\":[[1,2,3]]}", "newer version"},
        {"{\"stave_relation\":1," ENDS ",\"rounds\":[]}", "no rounds"},
        {"{\"stave_relation\":1," ENDS ",\"rounds\":[[1,2]]}", "no list of"},
        {"{\"stave_relation\":1," ENDS ",\"rounds\":[[1,2,99999999999999999999]]}", "no list of"},
        {"{\"stave_relation\":1," ENDS ",\"rounds\":7}", "no list of"},
        {"{\"stave_relation\":1,\"rounds\":[[1,2,3]]}", "no boot_id"},
        {"{\"stave_relation\":1,\"local\":7,\"rounds\":[[1,2,3]]}", "no host and boot_id"},
        {"{\"stave_relation\":1,\"how\":{}," ENDS ",\"rounds\":[[1,2,3]]}", "no short text"},
        {"{\"stave_relation\":1,\"local\":{\"boot_id\":"
         "\"0123456789012345678901234567890123456789\"}}",
         "no host and boot_id"},
        {"{\"stave_relation\":1,\"local\":{\"boot_id\":\"a\\u0000b\"}}", "no host and boot_id"},
        {"{\"stave_relation\":1,\"local\":{\"boot_id\":\"machine 1\"}}", "no host and boot_id"},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct sv_relation r;
        struct sv_err err;
        CONTEXT("row %zu", i);
        CHECK_INT_EQ(parse(&r, rows[i].json, &err), SV_EFORMAT);
        CHECK(strstr(err.msg, rows[i].why) != NULL);
        CHECK_UINT_EQ(r.n, 0);
    }
}

TEST(rounds_beyond_the_limit_thin_out)
{
    struct sv_relation r = {0};
    for (int i = 0; i < 3 * SV_RELATION_ROUNDS_MAX; i++) {
        sv_relation_add(&r, &(struct sv_sync_round){i, 0, 1});
        REQUIRE(r.n <= SV_RELATION_ROUNDS_MAX);
    }
    CHECK_INT_EQ(r.rounds[0].at_ns, 0);
    CHECK_INT_EQ(r.rounds[r.n - 1].at_ns, 3 * SV_RELATION_ROUNDS_MAX - 1);
    for (size_t i = 0; i + 1 < r.n; i++)
        CHECK(r.rounds[i].at_ns < r.rounds[i + 1].at_ns);
    sv_relation_fini(&r);
}
