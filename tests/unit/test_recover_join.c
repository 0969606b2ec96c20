/* What is read of a growing file that somebody left, and what the result must hold. */
#include "cmd/recover_join.h"

#include "cli/console.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SLICE(name) "{\"ph\":\"X\",\"ts\":1,\"dur\":2,\"pid\":1,\"tid\":1,\"name\":\"" name "\"}"

static struct sv_leftover o;
static char result[512];

/* A growing file of which the journal says that so many bytes are whole. */
static void leave(const char *text, size_t whole)
{
    o = (struct sv_leftover){.part_bytes = whole, .file_bytes = strlen(text)};
    snprintf(o.out, sizeof o.out, "%s", test_scratch("t.json"));
    snprintf(o.part, sizeof o.part, "%s", test_scratch("t.json.part"));
    snprintf(result, sizeof result, "%s", test_scratch("result.txt"));
    sv_console_mute();
    test_write_file(o.part, text);
    chmod(o.part, 0600);
}

static int join(struct sv_recovered *r, struct sv_err *err)
{
    struct sv_output_choice out = {.path = result};
    *err = (struct sv_err){0};
    unlink(result);
    return sv_recover_join(&o, &out, r, err);
}

TEST(all_of_it_is_in_the_result)
{
    static const char text[] = "[" SLICE("a") "," SLICE("b") "]";
    struct sv_recovered r;
    struct sv_err err;
    leave(text, strlen(text));
    CHECK_INT_EQ(join(&r, &err), 0);
    CHECK_UINT_EQ(sv_tally_held(&r.part), 2);
    CHECK_UINT_EQ(sv_tally_held(&r.inputs), 2);
    CHECK_UINT_EQ(sv_tally_held(&r.spool) + sv_tally_held(&r.rings), 0);
    CHECK(!r.is_damaged);
    CHECK(strstr(test_read_file(result), "\"a\"") || strstr(test_read_file(result), " a"));
    CHECK_INT_EQ(sv_recover_check(&o, result, &r, &err), 0);
    CHECK_UINT_EQ(sv_tally_held(&r.result), 2);
    CHECK_INT_EQ(sv_recover_join(&o, NULL, &r, &err), 0); /* only counts */
    CHECK_UINT_EQ(sv_tally_held(&r.inputs), 2);
}

TEST(a_result_that_lacks_something)
{
    static const char text[] = "[" SLICE("a") "," SLICE("b") "]";
    struct sv_recovered r;
    struct sv_err err;
    char path[512];
    leave(text, strlen(text));
    REQUIRE(join(&r, &err) == 0);
    snprintf(path, sizeof path, "%s", test_scratch("less.json"));
    test_write_file(path, "[" SLICE("a") "]");
    CHECK_INT_EQ(sv_recover_check(&o, path, &r, &err), SV_EIO);
    CHECK(strstr(err.msg, "it would hold only 1 of 2 slices of ") != NULL);
    err = (struct sv_err){0};
    r.inputs = (struct sv_tally){0}; /* what a plain read gives counts, too */
    r.plain.by_kind[SV_SLICE] = 2;
    CHECK_INT_EQ(sv_recover_check(&o, path, &r, &err), SV_EIO);
    err = (struct sv_err){0};
    CHECK_INT_EQ(sv_recover_check(&o, "/nonexistent/x.json", &r, &err), SV_EIO);
    CHECK(strstr(err.msg, "cannot be read back") != NULL);
}

/* The journal is a hint: where it would cost events, all of the file is read. */
TEST(a_journal_that_says_too_little)
{
    static const char text[] = "[" SLICE("a") "," SLICE("b") "]";
    struct sv_recovered r;
    struct sv_err err;
    leave(text, strlen("[" SLICE("a") ","));
    CHECK_INT_EQ(join(&r, &err), 0);
    CHECK_UINT_EQ(sv_tally_held(&r.plain), 2);
    CHECK_UINT_EQ(sv_tally_held(&r.inputs), 2);
    CHECK_UINT_EQ(o.part_bytes, strlen(text));
    leave(text, strlen(text) - 1); /* nothing is missing without the last byte */
    CHECK_INT_EQ(join(&r, &err), 0);
    CHECK_UINT_EQ(sv_tally_held(&r.inputs), 2);
    CHECK_UINT_EQ(o.part_bytes, strlen(text) - 1);
}

TEST(a_file_that_was_truncated_is_damage)
{
    static const char text[] = "[" SLICE("a") "," SLICE("b") "]";
    struct sv_recovered r;
    struct sv_err err;
    leave(text, strlen(text));
    REQUIRE(truncate(o.part, (off_t)strlen("[" SLICE("a") ",")) == 0);
    CHECK_INT_EQ(join(&r, &err), 0);
    CHECK(r.is_damaged);
    CHECK_UINT_EQ(sv_tally_held(&r.inputs), 1);
}

/* Whatever cannot be read is an error, never a trace without it. */
TEST(what_cannot_be_read_is_an_error)
{
    static const char text[] = "[" SLICE("a") "]";
    struct sv_recovered r;
    struct sv_err err;
    leave(text, strlen(text));
    chmod(o.part, 0622); /* others could have written it */
    CHECK_INT_EQ(join(&r, &err), SV_EIO);
    CHECK(strstr(err.msg, o.part) != NULL);
    leave(text, strlen(text) - 1); /* nor is it by a plain read */
    chmod(o.part, 0622);
    CHECK_INT_EQ(join(&r, &err), SV_EIO);
    leave(text, strlen(text));
    unlink(o.part);
    CHECK_INT_EQ(join(&r, &err), SV_EIO);
    leave("no trace of any kind", 20);
    CHECK_INT_EQ(join(&r, &err), SV_EINPUT);
    CHECK(strstr(err.msg, "no reader for this format") != NULL);
    leave(text, strlen(text));
    o.part[0] = '\0'; /* none: nothing to read */
    o.part_bytes = o.file_bytes = 0;
    CHECK_INT_EQ(join(&r, &err), 0);
    CHECK(sv_tally_held(&r.inputs) == 0 && !r.is_damaged);
}
