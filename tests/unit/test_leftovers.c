/* What killed programs have left: which files of a folder count, that each is listed once, and what
 * may be removed as done. */
#include "record/output/leftovers.h"

#include "tests/harness/test.h"
#include "tests/unit/verb.h"

#include <fcntl.h>
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
    verb_enter("growing");
    for (size_t i = 0; i < TEST_COUNT(files); i++)
        test_write_file(files[i], "bytes");
    test_write_file("empty.pftrace.part", "");
    CHECK_STR_EQ(everywhere(), "a.pftrace.part a.pftrace.part.109 b.json.part");
    CHECK_STR_EQ(of_name("a.pftrace"), "a.pftrace.part a.pftrace.part.109");
    CHECK_STR_EQ(of_name("a"), "");
    verb_leave();
}

/* Takes the claim, writes to the growing file, says how much of it is whole, and ends without a
 * word. */
static void leave_behind(const char *out, uint64_t whole)
{
    pid_t child = fork();
    if (child == 0) {
        struct sv_claim c;
        struct sv_err err = {0};
        struct sv_claim_wish wish = {.kind = SV_CLAIM_PROGRAM, .journals = true};
        if (sv_claim_take(&c, out, &wish, &err) < 0)
            _exit(1);
        test_write_file(c.part, "bytes");
        sv_claim_whole(&c, whole);
        _exit(0);
    }
    int status;
    REQUIRE(waitpid(child, &status, 0) == child && status == 0);
}

/* Two markers and two growing files lead to them: each is there once. */
TEST(what_two_places_lead_to_is_listed_once)
{
    char out[PATH_MAX + 16];
    verb_enter("claimed");
    REQUIRE(getcwd(out, PATH_MAX));
    snprintf(out + strlen(out), 16, "/c.pftrace");
    leave_behind(out, SV_CLAIM_UNKNOWN);
    CHECK_STR_EQ(everywhere(), "c.pftrace.part");
    CHECK_STR_EQ(of_name(out), "c.pftrace.part");
    leave_behind(out, SV_CLAIM_UNKNOWN);
    struct sv_leftovers l = {0};
    sv_leftovers_everywhere(&l);
    CHECK_UINT_EQ(l.n, 2);
    sv_leftovers_fini(&l);
    sv_leftovers_of_name(&l, out);
    CHECK_UINT_EQ(l.n, 2);
    sv_leftovers_fini(&l);
    verb_leave();
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

static void set_time(const char *path, time_t s, long ns)
{
    const struct timespec at[2] = {{s, ns}, {s, ns}};
    REQUIRE(utimensat(AT_FDCWD, path, at, 0) == 0);
}

TEST(the_newest_comes_first)
{
    static const struct {
        const char *name;
        time_t s;
        long ns;
    } rows[] = {{"a.json.part", 1000, 5},
                {"b.json.part", 1001, 4},
                {"c.json.part", 999, 999999999},
                {"d.json.part", 1000, 6}};
    char order[8] = "";
    struct sv_leftovers l = {0};
    verb_enter("order");
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        test_write_file(rows[i].name, "bytes");
        set_time(rows[i].name, rows[i].s, rows[i].ns);
    }
    sv_leftovers_everywhere(&l);
    CHECK_UINT_EQ(l.n, 4);
    for (size_t i = 0; i < l.n; i++) {
        order[i] = strrchr(l.all[i]->part, '/')[1];
        CHECK_UINT_EQ(l.all[i]->file_bytes, 5);
        CHECK_UINT_EQ(l.all[i]->part_bytes, 5); /* nobody says that less of it counts */
        CHECK(!l.all[i]->has_claim && !l.all[i]->has_session && !l.all[i]->spool_bytes);
    }
    CHECK_STR_EQ(order, "bdac");
    if (l.n == 4)
        CHECK_INT_EQ(l.all[0]->changed_ns, 1001000000004);
    sv_leftovers_fini(&l);
    CHECK(l.n == 0 && !l.all && !l.problems);
    verb_leave();
}

/* The claim says how much of the growing file counts. */
TEST(as_much_as_the_claim_says_is_whole)
{
    static const uint64_t rows[] = {0, 1, 3, 5, SV_CLAIM_UNKNOWN};
    char name[32];
    uint32_t pid;
    verb_enter("whole");
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        struct sv_leftovers l = {0};
        CONTEXT("row %zu", i);
        snprintf(name, sizeof name, "t%zu.json", i);
        leave_behind(name, rows[i]);
        sv_leftovers_of_name(&l, name);
        REQUIRE(l.n == 1);
        CHECK_UINT_EQ(l.all[0]->file_bytes, 5);
        CHECK_UINT_EQ(l.all[0]->part_bytes, rows[i] == SV_CLAIM_UNKNOWN ? 5 : rows[i]);
        CHECK_INT_EQ(sv_leftover_state(l.all[0], &pid), SV_PROCESS_GONE);
        CHECK(pid > 0 && pid == l.all[0]->claim.holder.pid);
        CHECK(!sv_leftover_is_bare(l.all[0]));
        sv_leftovers_fini(&l);
    }
    verb_leave();
}

static bool is_there(const char *name)
{
    return access(name, F_OK) == 0;
}

/* The growing file and the marker go; a file that has taken the name since then stays. */
TEST(only_what_was_looked_at_is_removed)
{
    verb_enter("remove");
    for (int is_replaced = 0; is_replaced < 2; is_replaced++) {
        struct sv_leftovers l = {0};
        CONTEXT(is_replaced ? "replaced" : "as it was");
        leave_behind("t.json", 5);
        test_write_file("other.json.part", "bytes");
        sv_leftovers_of_name(&l, "t.json");
        REQUIRE(l.n == 1);
        if (is_replaced) {
            test_write_file("new", "another one");
            REQUIRE(rename("new", "t.json.part") == 0);
        }
        sv_leftover_remove(l.all[0], false);
        CHECK_INT_EQ(is_there("t.json.part"), is_replaced);
        CHECK(!is_there("t.json.session") && is_there("other.json.part"));
        sv_leftovers_fini(&l);
        unlink("t.json.part");
    }
    verb_leave();
}

/* Another user could have planted it: it is no input, and that is said, once for each. */
TEST(files_of_others_are_not_read)
{
    struct sv_leftovers l = {0};
    if (geteuid() != 0)
        SKIP("only root can give files away");
    verb_enter("others");
    test_write_file("a.json.part", "bytes");
    test_write_file("b.json.part", "bytes");
    REQUIRE(chown("a.json.part", 12345, (gid_t)-1) == 0);
    sv_leftovers_everywhere(&l);
    sv_leftovers_of_name(&l, "a.json");
    CHECK_UINT_EQ(l.n, 1);
    CHECK_UINT_EQ(l.n_problems, 1);
    CHECK(l.n_problems && strstr(l.problems[0], "a.json.part: another user could have written it"));
    CHECK_INT_EQ(l.failed.code, 0);
    sv_leftovers_fini(&l);
    /* A marker that another one could have written, and one that is none. */
    test_write_file("c.json.session", "stave-claim 1\n");
    REQUIRE(chown("c.json.session", 12345, (gid_t)-1) == 0);
    test_write_file("d.json.session", "something\n");
    sv_leftovers_of_name(&l, "c.json");
    CHECK(l.n_problems == 1 && strstr(l.problems[0], "another user could have written it"));
    sv_leftovers_of_name(&l, "d.json");
    CHECK(l.n_problems == 2 && strstr(l.problems[1], "not a claim that this version understands"));
    CHECK_UINT_EQ(l.n, 0);
    sv_leftovers_fini(&l);
    verb_leave();
}

TEST(names_from_the_root_on)
{
    char here[PATH_MAX], to[PATH_MAX], expected[PATH_MAX + 16];
    verb_enter("absolute");
    REQUIRE(getcwd(here, sizeof here) && symlink("sessions", "link") == 0);
    static const struct {
        const char *path, *expected; /* below the folder; NULL: there is none */
    } rows[] = {{"t.json", "/t.json"},
                {"./t.json", "/t.json"},
                {"link/t", "/sessions/t"},
                {"sessions/../t", "/t"},
                {"nowhere/t.json", NULL},
                {"sessions/", NULL},
                {"", NULL}};
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("'%s'", rows[i].path);
        bool is_known = sv_leftovers_absolute(rows[i].path, to, sizeof to);
        CHECK_INT_EQ(is_known, rows[i].expected != NULL);
        snprintf(expected, sizeof expected, "%s%s", here, rows[i].expected ? rows[i].expected : "");
        if (is_known)
            CHECK_STR_EQ(to, expected);
    }
    CHECK(sv_leftovers_absolute("/t.json", to, sizeof to) && strcmp(to, "/t.json") == 0);
    CHECK(sv_leftovers_absolute("/t.json", to, 8));
    CHECK(!sv_leftovers_absolute("/t.json", to, 7));
    verb_leave();
}

TEST(a_marker_alone_is_bare)
{
    struct sv_leftover *o = calloc(1, sizeof *o);
    REQUIRE(o != NULL);
    CHECK(!sv_leftover_is_bare(o));
    o->has_claim = true;
    CHECK(sv_leftover_is_bare(o));
    o->part[0] = 'x';
    CHECK(!sv_leftover_is_bare(o));
    o->part[0] = '\0', o->has_session = true;
    CHECK(!sv_leftover_is_bare(o));
    o->has_session = false, o->problem[0] = 'x';
    CHECK(!sv_leftover_is_bare(o));
    o->problem[0] = '\0', o->claim.segment = 1;
    CHECK(!sv_leftover_is_bare(o));
    o->claim.segment = 0, o->spool_bytes = 1;
    CHECK(!sv_leftover_is_bare(o));
    free(o);
}
