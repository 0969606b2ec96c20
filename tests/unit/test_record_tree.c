/* The table of processes by itself: how paths are joined, how long they may be, what is kept of who
 * has ended. */
#include "record/decode/tree.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct sv_tree tree;

static void set_up(void)
{
    sv_tree_init(&tree, sv_dict_new());
}

static void tear_down(void)
{
    struct sv_dict *dict = tree.dict;
    sv_tree_fini(&tree);
    sv_dict_free(dict);
}

static struct sv_file *file(const struct sv_file *dir, const char *path)
{
    return sv_tree_file(&tree, dir, path, strlen(path));
}

TEST(paths_are_joined_and_cleaned)
{
    static const struct {
        const char *dir, *path, *whole;
    } rows[] = {{NULL, "/a/b", "/a/b"},
                {NULL, "/a//b", "/a/b"},
                {NULL, "/a/./b", "/a/b"},
                {NULL, "/a/../b", "/b"},
                {NULL, "/..", "/"},
                {NULL, "/a/..", "/"},
                {NULL, "/a/.b/..c", "/a/.b/..c"},
                {NULL, "/a/", "/a/"},
                {NULL, "//a", "/a"},
                {NULL, "b", "b"},
                {"/a", "b", "/a/b"},
                {"/a", "../b", "/b"},
                {"/a", "./b/.", "/a/b"},
                {"/a", "", "/a"},
                {"/a/c", "../../../b", "/b"},
                {"/a", "/b", "/b"},
                {"pipe:[3]", "b", "b"},
                {"/a", "..", "/"},
                {"/a", "b.", "/a/b."},
                {"/a/b", "..x", "/a/b/..x"}};
    set_up();
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        const struct sv_file *dir = rows[i].dir ? file(NULL, rows[i].dir) : NULL;
        CONTEXT("row %zu", i);
        const struct sv_file *f = file(dir, rows[i].path);
        REQUIRE(f);
        CHECK_STR_EQ(f->path, rows[i].whole);
        CHECK_UINT_EQ(f->len, strlen(rows[i].whole));
        CHECK(file(dir, rows[i].path) == f); /* once */
    }
    CHECK(!sv_tree_file(&tree, NULL, "", 0));
    const struct sv_file *pipe = file(NULL, "pipe:[3]");
    CHECK(sv_tree_file(&tree, pipe, "", 0) == pipe);
    tear_down();
}

/* Longer than any path of the kernel: what cannot be joined is taken as it is. */
TEST(paths_that_are_too_long_are_not_joined)
{
    enum { MOST = 1 << 15, DIR_LEN = 100 };
    char *path = malloc(MOST);
    char dir[DIR_LEN + 1];
    REQUIRE(path);
    set_up();
    memset(dir, 'd', DIR_LEN);
    dir[0] = '/';
    dir[DIR_LEN] = 0;
    memset(path, 'p', MOST);
    const struct sv_file *from = file(NULL, dir);
    for (size_t len = MOST - DIR_LEN - 4; len < MOST - DIR_LEN + 4; len++) {
        const struct sv_file *f = sv_tree_file(&tree, from, path, len);
        bool fits = DIR_LEN + len + 1 <= MOST;
        CONTEXT("length %zu", len);
        CHECK_UINT_EQ(f->len, fits ? DIR_LEN + 1 + len : len);
        CHECK_INT_EQ(f->path[0], fits ? '/' : 'p');
    }
    tear_down();
    free(path);
}

/* The table grows; a path is found again whatever its size was then. */
TEST(many_paths_are_each_there_once)
{
    enum { MANY = 10000 };
    char text[32];
    set_up();
    for (int again = 0; again < 2; again++)
        for (int i = 0; i < MANY; i++) {
            snprintf(text, sizeof text, "/f/%d", i);
            const struct sv_file *f = file(NULL, text);
            CHECK_UINT_EQ(f->refs, again + 1);
        }
    CHECK_UINT_EQ(tree.n_files, MANY);
    CHECK(tree.n_buckets * 2 >= MANY);
    tear_down();
}

/* Paths that nobody holds are kept up to a number, for the summary. */
TEST(paths_that_nobody_holds_are_forgotten_when_there_are_many)
{
    enum { MORE = 10 };
    char text[32];
    set_up();
    struct sv_file *held = file(NULL, "/held");
    for (int i = 1; i < SV_FILES_KEPT_MAX; i++) {
        snprintf(text, sizeof text, "/f/%d", i);
        sv_file_put(&tree, file(NULL, text));
    }
    CHECK_UINT_EQ(tree.n_files, SV_FILES_KEPT_MAX);
    CHECK_UINT_EQ(tree.n_forgotten_files, 0);
    for (int i = 0; i < MORE; i++) {
        snprintf(text, sizeof text, "/more/%d", i);
        sv_file_put(&tree, file(NULL, text));
    }
    CHECK_UINT_EQ(tree.n_files, SV_FILES_KEPT_MAX);
    CHECK_UINT_EQ(tree.n_forgotten_files, MORE);
    sv_file_put(&tree, NULL);
    CHECK(tree.unused != NULL);
    sv_tree_sweep(&tree);
    CHECK(!tree.unused);
    CHECK(file(NULL, "/held") == held && held->refs == 2);
    tear_down();
}

static const char *command(uint32_t pid)
{
    const struct sv_proc *p = sv_tree_find(&tree, pid);
    return sv_dict_text(tree.dict, tree.dict->tracks[p->track].desc).bytes;
}

TEST(a_command_is_its_words_and_not_too_long)
{
    static char words[2000];
    bool is_new;
    set_up();
    struct sv_proc *p = sv_tree_process(&tree, 10, &is_new);
    CHECK(is_new && sv_tree_process(&tree, 10, &is_new) == p && !is_new);
    sv_tree_name_process(&tree, p, "a name of more than sixteen bytes", "ls\0-l\0\0", 7);
    CHECK_STR_EQ(command(10), "ls -l");
    CHECK_UINT_EQ(p->command_len, 5);
    CHECK_STR_EQ(p->name, "a name of more ");
    sv_tree_name_process(&tree, p, "b", "", 0); /* no command: the one before stays */
    CHECK_STR_EQ(command(10), "ls -l");
    CHECK_STR_EQ(p->name, "b");
    memset(words, 'w', sizeof words);
    sv_tree_name_process(&tree, p, "c", words, sizeof words);
    CHECK_UINT_EQ(p->command_len, 1024);
    CHECK_UINT_EQ(strlen(command(10)), 1024);
    tree.hides_commands = true;
    sv_tree_name_process(&tree, p, "d", "secret", 6);
    CHECK_UINT_EQ(strlen(command(10)), 1024);
    sv_tree_set_inner(&tree, p, 3, 77);
    CHECK_STR_EQ(command(10) + 1024, " (pid 3 in pid namespace 77)");
    CHECK_UINT_EQ(p->command_len, 1024);
    sv_tree_fork(&tree, 10, 11); /* the child has the command, not the number */
    CHECK_UINT_EQ(strlen(command(11)), 1024);
    tear_down();
}

static void end_with(uint32_t pid, uint64_t calls, int64_t time_ns)
{
    bool is_new;
    struct sv_proc *p = sv_tree_process(&tree, pid, &is_new);
    p->calls = calls;
    p->time_ns = time_ns;
    p->bytes_read = pid;
    p->bytes_written = 2 * pid;
    snprintf(p->name, sizeof p->name, "p%u", pid);
    sv_tree_end(&tree, p, 5);
}

static void ignore(void *ctx, sv_track root)
{
    ++*(unsigned *)ctx;
    (void)root;
}

/* Of many that have ended the busiest are kept, with their sums. */
TEST(the_busiest_of_the_forgotten_are_kept)
{
    enum { LIVES = 3 * SV_GONE_MAX };
    unsigned n_rows = 0;
    const struct sv_tree_forgetting how = {.forgets = ignore, .ctx = &n_rows};
    set_up();
    for (uint32_t i = 0; i < LIVES; i++) {
        end_with(100 + i, 1, (int64_t)(i * 7 % LIVES)); /* each time once */
        CHECK_UINT_EQ(tree.n_ended, 1);
        sv_tree_forget(&tree, 4, &how); /* too early */
        CHECK_UINT_EQ(tree.n_ended, 1);
        CHECK_UINT_EQ(tree.n, 1);
        sv_tree_forget(&tree, 5, &how);
        CHECK_UINT_EQ(tree.n_ended, 0);
        CHECK_UINT_EQ(tree.n, 0);
    }
    end_with(99, 0, 1000000); /* no calls: it did nothing that the summary shows */
    sv_tree_forget(&tree, 5, &how);
    CHECK_UINT_EQ(n_rows, LIVES + 1);
    CHECK_UINT_EQ(tree.n_forgotten, LIVES + 1);
    CHECK_UINT_EQ(tree.n_forgotten_active, LIVES);
    REQUIRE(tree.n_gone == SV_GONE_MAX);
    for (size_t i = 0; i < SV_GONE_MAX; i++) {
        const struct sv_gone *g = &tree.gone[i];
        char name[16];
        snprintf(name, sizeof name, "p%u", g->pid);
        CHECK(g->time_ns >= LIVES - SV_GONE_MAX);
        CHECK_INT_EQ(g->time_ns, (g->pid - 100) * 7 % LIVES);
        CHECK_UINT_EQ(g->calls, 1);
        CHECK_UINT_EQ(g->bytes_read, g->pid);
        CHECK_UINT_EQ(g->bytes_written, 2 * g->pid);
        CHECK_STR_EQ(g->name, name);
    }
    tear_down();
}

/* A number that is used again: what ended is remembered, once. */
TEST(a_process_that_begins_again_is_another_one)
{
    unsigned n_rows = 0;
    const struct sv_tree_forgetting how = {.forgets = ignore, .ctx = &n_rows};
    bool is_new;
    set_up();
    sv_tree_process(&tree, 10, &is_new)->cwd = file(NULL, "/home");
    end_with(11, 3, 30);
    sv_tree_fork(&tree, 10, 11);
    const struct sv_proc *p = sv_tree_find(&tree, 11);
    CHECK(!p->is_ended && p->calls == 0 && p->parent == 10);
    CHECK_UINT_EQ(tree.n_ended, 0);
    CHECK_UINT_EQ(tree.n_gone, 1);
    CHECK_STR_EQ(p->cwd->path, "/home");
    CHECK_UINT_EQ(p->cwd->refs, 2);
    sv_tree_fork(&tree, 10, 11); /* its end was lost: nothing is remembered */
    CHECK_UINT_EQ(tree.n_gone, 1);
    CHECK_UINT_EQ(sv_tree_find(&tree, 10)->cwd->refs, 2);
    sv_tree_fork(&tree, 12, 12); /* of itself: nonsense, without harm */
    CHECK(sv_tree_find(&tree, 12) && !sv_tree_find(&tree, 12)->cwd);
    /* Threads: their end is known once, and the rows of those that run stay. */
    sv_tree_name_thread(&tree, 10, 21, "worker");
    sv_tree_end_thread(&tree, 10, 20, 7); /* never seen */
    CHECK_UINT_EQ(tree.n_ended, 0);
    sv_tree_end_thread(&tree, 10, 21, 7);
    sv_tree_end_thread(&tree, 10, 21, 8);
    CHECK_UINT_EQ(tree.n_ended, 1);
    sv_tree_forget(&tree, 7, &how);
    CHECK_UINT_EQ(tree.n_threads, 1);
    sv_tree_forget(&tree, 8, &how);
    CHECK_UINT_EQ(tree.n_threads, 0);
    CHECK_UINT_EQ(n_rows, 1);
    tear_down();
}

/* A link "/l" to "/far/folder", one that leads to itself ever longer, and nothing else. */
static unsigned asked;

static bool link_of(void *ctx, const char *path, char to[SV_TREE_PATH_MAX])
{
    (void)ctx;
    asked++;
    if (strcmp(path, "/l") == 0)
        memcpy(to, "/far/folder", sizeof "/far/folder");
    else if (strncmp(path, "/again", 6) == 0)
        snprintf(to, SV_TREE_PATH_MAX, "/again%.3000s/x", path);
    return strcmp(path, "/l") == 0 || strncmp(path, "/again", 6) == 0;
}

TEST(two_dots_behind_a_link_lead_to_where_it_leads)
{
    static char endless[20000] = "/again";
    set_up();
    tree.link_of = link_of;
    CHECK_STR_EQ(file(NULL, "/l/../x")->path, "/far/x");
    CHECK_STR_EQ(file(NULL, "/l/./../../x")->path, "/x");
    CHECK_STR_EQ(file(NULL, "/l/x")->path, "/l/x");
    CHECK_STR_EQ(file(file(NULL, "/"), "l/../x")->path, "/far/x");
    asked = 0;
    CHECK_STR_EQ(file(NULL, "/a/b/../x")->path, "/a/x");
    CHECK_STR_EQ(file(NULL, "/a/b/../y")->path, "/a/y");
    CHECK_UINT_EQ(asked, 1); /* until the next sweep */
    sv_tree_sweep(&tree);
    CHECK_STR_EQ(file(NULL, "/a/b/../z")->path, "/a/z");
    CHECK_UINT_EQ(asked, 2);
    for (size_t n = 6; n + 6 < sizeof endless; n += 5)
        memcpy(endless + n, "/y/..", 6);
    CHECK(file(NULL, endless)); /* ends, and within its memory */
    tear_down();
}

TEST(paths_of_a_process_begin_at_its_root)
{
    static const struct {
        const char *dir, *path, *whole;
    } rows[] = {{NULL, "/a", "/jail/a"},
                {NULL, "/", "/jail"},
                {NULL, "/../../a", "/jail/a"},
                {"/jail", "a", "/jail/a"},
                {"/jail/b", "../../../a", "/jail/a"},
                {"/jail2", "../a", "/a"},
                {"/out", "a", "/out/a"},
                {"/jail", "", "/jail"}};
    bool is_new;
    set_up();
    struct sv_proc *p = sv_tree_process(&tree, 5, &is_new);
    CHECK_STR_EQ(sv_tree_file_of(&tree, p, NULL, "/a", 2)->path, "/a");
    p->root = file(NULL, "/jail");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct sv_file *dir = rows[i].dir ? file(NULL, rows[i].dir) : NULL;
        CHECK_STR_EQ(sv_tree_file_of(&tree, p, dir, rows[i].path, strlen(rows[i].path))->path,
                     rows[i].whole);
    }
    sv_tree_fork(&tree, 5, 6);
    CHECK(sv_tree_find(&tree, 6)->root == p->root);
    tear_down();
}
