/* The sampler over files made by hand: rates, levels, broken lines. */
#include "core/base/mem.h"
#include "record/sample/usage.h"
#include "tests/harness/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct bench {
    char root[256];
    struct sv_dict *dict;
    struct sv_tree tree;
    struct sv_usage *usage;
    struct sv_batch batch;
};

static void put(const struct bench *t, const char *name, const char *text)
{
    char path[320];
    snprintf(path, sizeof path, "%s/%s", t->root, name);
    FILE *f = fopen(path, "w");
    REQUIRE(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

static void open_bench(struct bench *t)
{
    char path[320];
    memset(t, 0, sizeof *t);
    snprintf(t->root, sizeof t->root, "%s", test_scratch("usage"));
    REQUIRE(mkdir(t->root, 0700) == 0 || errno == EEXIST);
    snprintf(path, sizeof path, "%s/net", t->root);
    mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/42", t->root);
    mkdir(path, 0700);
    t->dict = sv_dict_new();
    sv_tree_init(&t->tree, t->dict);
    t->usage = sv_usage_new(t->dict, &t->tree, t->root);
    sv_batch_init(&t->batch);
}

static void close_bench(struct bench *t)
{
    static const char *const files[] = {"stat",      "meminfo", "diskstats", "net/dev", "42/stat",
                                        "42/status", "net",     "42",        ""};
    char path[320];
    for (size_t i = 0; i < TEST_COUNT(files); i++) {
        snprintf(path, sizeof path, "%s/%s", t->root, files[i]);
        remove(path);
    }
    sv_batch_fini(&t->batch);
    sv_usage_free(t->usage);
    sv_tree_fini(&t->tree);
    sv_dict_free(t->dict);
}

static size_t sample(struct bench *t, int64_t now_ns)
{
    struct sv_source *s = sv_usage_source(t->usage);
    sv_usage_sample(t->usage, now_ns);
    sv_batch_reset(&t->batch);
    s->next(s, &t->batch, NULL);
    return t->batch.n;
}

/* The value of the counter PARENT/NAME in the last sample; -1: none. */
static double value(const struct bench *t, const char *parent, const char *name)
{
    for (size_t i = 0; i < t->batch.n; i++) {
        const struct sv_event *e = &t->batch.events[i];
        const struct sv_track_info *track = &t->dict->tracks[e->track];
        if (strcmp(sv_dict_text(t->dict, track->name).bytes, name) == 0 &&
            strcmp(sv_dict_text(t->dict, t->dict->tracks[track->parent].name).bytes, parent) == 0)
            return e->args[0].type == SV_ARG_INT ? (double)e->args[0].i : e->args[0].d;
    }
    return -1;
}

TEST(rates_are_means_since_the_last_sample)
{
    struct bench t;
    bool is_new;
    open_bench(&t);
    struct sv_proc *p = sv_tree_process(&t.tree, 42, &is_new);
    sv_tree_name_process(&t.tree, p, "job", NULL, 0);
    put(&t, "stat", "cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 100 0 50 800 50 0 0 0 0 0\nintr 5\n");
    put(&t, "meminfo",
        "MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: 400 kB\nCached: 7 kB\nDirty: 3 kB\n");
    put(&t, "diskstats",
        "   8  0 sda 10 0 100 5 20 0 200 8 0 30 13 0 0 0 0\n 7 0 loop0 0 0 0 0 0 0 0 0 0 0 0\n");
    put(&t, "net/dev",
        "Inter-|  Receive\n face |bytes\n  eth0: 1000 1 0 0 0 0 0 0 500 1 0 0 0 0 0 0\n");
    put(&t, "42/stat", "42 (a ) b) S 1 1 1 0 -1 0 0 0 0 0 10 5 0 0 20 0 1 0 100 4096 3 0\n");
    put(&t, "42/status", "Name:\ta\nVmRSS:\t  12 kB\nRssAnon:\t     7 kB\nRssFile:\t       4 kB\n");
    CHECK_UINT_EQ(sample(&t, 0), 7); /* levels only: four of memory, three of the process */
    CHECK_DOUBLE_EQ(value(&t, "Memory", "used"), 600 * 1024.0);
    put(&t, "stat", "cpu  150 0 75 825 50 0 0 0 0 0\ncpu0 150 0 75 825 50 0 0 0 0 0\nintr 5\n");
    put(&t, "diskstats",
        "   8  0 sda 14 0 300 13 20 0 200 8 2 1030 13 0 0 0 0\n 7 0 loop0 0 0 0 0 0 0 0 0 0 0 0\n");
    put(&t, "net/dev", "  eth0: 5000 1 0 0 0 0 0 0 500 1 0 0 0 0 0 0\n");
    put(&t, "42/stat", "42 (a ) b) S 1 1 1 0 -1 0 0 0 0 0 60 55 0 0 20 0 1 0 100 4096 3 0\n");
    sample(&t, 2000000000);
    CHECK_DOUBLE_EQ(value(&t, "CPU", "user"), 50);
    CHECK_DOUBLE_EQ(value(&t, "CPU", "system"), 25);
    CHECK_DOUBLE_EQ(value(&t, "CPU 0", "idle"), 25);
    CHECK_DOUBLE_EQ(value(&t, "sda", "read"), 200 * 512 / 2.0);
    CHECK_DOUBLE_EQ(value(&t, "sda", "reads"), 2);
    CHECK_DOUBLE_EQ(value(&t, "sda", "read_wait"), 2);
    CHECK_DOUBLE_EQ(value(&t, "sda", "write_wait"), -1); /* no write: no mean */
    CHECK_DOUBLE_EQ(value(&t, "sda", "busy"), 50);
    CHECK_DOUBLE_EQ(value(&t, "sda", "queue"), 2);
    CHECK_DOUBLE_EQ(value(&t, "loop0", "read"), -1); /* never did anything */
    CHECK_DOUBLE_EQ(value(&t, "eth0", "received"), 2000);
    CHECK_DOUBLE_EQ(value(&t, "job", "cpu"), 100.0 * 100 / (double)sysconf(_SC_CLK_TCK) / 2);
    CHECK_DOUBLE_EQ(value(&t, "job", "memory"), 3.0 * (double)sysconf(_SC_PAGESIZE));
    CHECK_DOUBLE_EQ(value(&t, "job", "memory_anon"), 7 * 1024.0);
    CHECK_DOUBLE_EQ(value(&t, "job", "memory_file"), 4 * 1024.0);
    CHECK_DOUBLE_EQ(value(&t, "job", "memory_shared"), -1); /* not in the file */
    close_bench(&t);
}

TEST(broken_and_missing_files_give_no_values)
{
    struct bench t;
    bool is_new;
    open_bench(&t);
    sv_tree_process(&t.tree, 42, &is_new);
    CHECK_UINT_EQ(sample(&t, 0), 0);
    put(&t, "stat", "cpu");
    put(&t, "meminfo", "MemTotal:\n");
    put(&t, "diskstats", "8 0\n8 0 sda 1 2 x\n");
    put(&t, "net/dev", ":\neth0: 1 2\n");
    put(&t, "42/stat", "42 (a) S 1");
    CHECK_UINT_EQ(sample(&t, 1000), 0);
    put(&t, "stat", "cpu  9 9 9 9 9 9 9 9 9 9\n");
    sample(&t, 2000);
    put(&t, "stat", "cpu  1 1 1 1 1 1 1 1 1 1\n"); /* back in time */
    CHECK_UINT_EQ(sample(&t, 3000), 0);
    close_bench(&t);
}

/* No exit was recorded: the process has been missing from /proc for some seconds. */
TEST(a_process_that_is_gone_from_proc_has_ended)
{
    struct bench t;
    bool is_new;
    open_bench(&t);
    struct sv_proc *seen = sv_tree_process(&t.tree, 42, &is_new);
    const struct sv_proc *other = sv_tree_process(&t.tree, 43, &is_new); /* of another container */
    put(&t, "42/stat", "42 (a) S 1 1 1 0 -1 0 0 0 0 0 10 5 0 0 20 0 1 0 100 4096 3 0\n");
    sample(&t, 0);
    put(&t, "42/stat", "");
    sample(&t, 1000000000);
    CHECK(!seen->is_ended);
    put(&t, "42/stat", "42 (a) S 1 1 1 0 -1 0 0 0 0 0 10 5 0 0 20 0 1 0 100 4096 3 0\n");
    sample(&t, 3500000000);
    put(&t, "42/stat", "");
    sample(&t, 4000000000);
    sample(&t, 5900000000);
    CHECK(!seen->is_ended);
    sample(&t, 6100000000);
    CHECK(seen->is_ended && seen->ended_ns == 6100000000);
    CHECK(!other->is_ended);
    CHECK_UINT_EQ(t.tree.n_ended, 1);
    close_bench(&t);
}
