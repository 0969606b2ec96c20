/* What killed programs have left: which files of a folder count, that each is listed once, and what
 * may be removed as done. */
#include "record/output/leftovers.h"

#include "tests/harness/test.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* The growing files that were found, in the order of their names: "a.pftrace.part
 * a.pftrace.part.109". */
static int by_part(const void *a, const void *b)
{
    return strcmp((*(struct sv_leftover *const *)a)->part, (*(struct sv_leftover *const *)b)->part);
}

static const char *parts_of(struct sv_leftovers *l)
{
    static char text[1024];
    size_t at = 0;
    text[0] = '\0';
    if (l->n > 1)
        qsort(l->all, l->n, sizeof *l->all, by_part);
    for (size_t i = 0; i < l->n; i++) {
        const char *slash = strrchr(l->all[i]->part, '/');
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s", i ? " " : "",
                               slash ? slash + 1 : "-");
    }
    sv_leftovers_fini(l);
    return text;
}

/* An empty folder, which becomes the current one; sessions are looked for in another one that is
 * empty. */
static void enter(const char *name, char before[static PATH_MAX])
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof folder, "%s", test_scratch(name));
    REQUIRE(getcwd(before, PATH_MAX) && mkdir(folder, 0700) == 0 && chdir(folder) == 0);
    REQUIRE(mkdir("sessions", 0700) == 0);
    snprintf(folder + strlen(folder), sizeof folder - strlen(folder), "/sessions");
    setenv("STAVE_SESSION_DIR", folder, 1);
}

static void leave(const char *before)
{
    unsetenv("STAVE_SESSION_DIR");
    REQUIRE(chdir(before) == 0);
}

static const char *of_name(const char *name)
{
    struct sv_leftovers l = {0};
    sv_leftovers_of_name(&l, name);
    return parts_of(&l);
}

static const char *everywhere(void)
{
    struct sv_leftovers l = {0};
    sv_leftovers_everywhere(&l);
    return parts_of(&l);
}

TEST(only_growing_files_count)
{
    static const char *const files[] = {"a.pftrace.part",
                                        "a.pftrace.part.109",
                                        "b.json.part",
                                        "a.pftrace",
                                        "a.pftrace.part.x",
                                        "a.pftrace.partx7",
                                        "a.pftrace.part7",
                                        ".part",
                                        "7",
                                        "a.7",
                                        "notes.txt",
                                        "part.7"};
    char before[PATH_MAX];
    enter("growing", before);
    for (size_t i = 0; i < TEST_COUNT(files); i++)
        test_write_file(files[i], "bytes");
    test_write_file("empty.pftrace.part", "");
    CHECK_STR_EQ(everywhere(), "a.pftrace.part a.pftrace.part.109 b.json.part");
    CHECK_STR_EQ(of_name("a.pftrace"), "a.pftrace.part a.pftrace.part.109");
    CHECK_STR_EQ(of_name("a"), "");
    leave(before);
}

/* Takes the claim, writes to the growing file, and ends without a word. */
static void leave_behind(const char *out)
{
    pid_t child = fork();
    if (child == 0) {
        struct sv_claim c;
        struct sv_err err = {0};
        struct sv_claim_wish wish = {.kind = SV_CLAIM_PROGRAM};
        if (sv_claim_take(&c, out, &wish, &err) < 0)
            _exit(1);
        test_write_file(c.part, "bytes");
        _exit(0);
    }
    int status;
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
}

/* Two markers and two growing files lead to them: each is there once. */
TEST(what_two_places_lead_to_is_listed_once)
{
    char before[PATH_MAX], out[PATH_MAX + 16];
    enter("claimed", before);
    REQUIRE(getcwd(out, PATH_MAX));
    snprintf(out + strlen(out), 16, "/c.pftrace");
    leave_behind(out);
    CHECK_STR_EQ(everywhere(), "c.pftrace.part");
    CHECK_STR_EQ(of_name(out), "c.pftrace.part");
    leave_behind(out);
    struct sv_leftovers l = {0};
    sv_leftovers_everywhere(&l);
    CHECK_UINT_EQ(l.n, 2);
    sv_leftovers_fini(&l);
    sv_leftovers_of_name(&l, out);
    CHECK_UINT_EQ(l.n, 2);
    sv_leftovers_fini(&l);
    leave(before);
}

TEST(done_is_what_holds_nothing_that_is_missing)
{
    static const struct {
        enum sv_session_state state;
        uint64_t part, ring, losses, spool;
        bool is_done;
    } rows[] = {
        {SV_SESSION_OPEN, 0, 0, 0, 0, true},    {SV_SESSION_OPEN, 1, 0, 0, 0, false},
        {SV_SESSION_OPEN, 0, 1, 0, 0, false},   {SV_SESSION_OPEN, 0, 0, 1, 0, false},
        {SV_SESSION_OPEN, 0, 0, 0, 1, false},   {SV_SESSION_CLOSED, 1, 1, 1, 0, true},
        {SV_SESSION_KEPT, 1, 1, 1, 0, true},    {SV_SESSION_KEPT, 1, 1, 1, 1, false},
        {SV_SESSION_CLIENT, 0, 1, 0, 0, false},
    };
    struct sv_leftover *o = calloc(1, sizeof *o);
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("row %zu", i);
        o->has_session = true;
        atomic_store(&o->dead.session.state, rows[i].state);
        o->part_bytes = rows[i].part;
        o->dead.ring_bytes = rows[i].ring;
        o->dead.ring_losses = rows[i].losses;
        o->spool_bytes = rows[i].spool;
        CHECK_INT_EQ(sv_leftover_is_done(o), rows[i].is_done);
    }
    *o = (struct sv_leftover){.file_bytes = 1};
    CHECK(!sv_leftover_is_done(o));
    o->file_bytes = 0;
    CHECK(sv_leftover_is_done(o));
    snprintf(o->problem, sizeof o->problem, "damaged");
    CHECK(!sv_leftover_is_done(o));
    free(o);
}
