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
    snprintf(path, sizeof path, "%s/pressure", t->root);
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
    static const char *const files[] = {
        "stat",      "meminfo", "diskstats", "net/dev",      "vmstat",          "42/stat",
        "42/status", "net",     "42",        "pressure/cpu", "pressure/memory", "pressure/io",
        "pressure",  ""};
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

/* ---- all of it ---- */

static size_t sample_with(struct bench *t, unsigned also, int64_t now_ns)
{
    sv_usage_also(t->usage, also);
    return sample(t, now_ns);
}

/* The last sample as it came: a line for each row, with the rows above it, its value and unit. */
static const char *shown(const struct bench *t, int64_t now_ns)
{
    static char text[1 << 14];
    size_t n = 0;
    for (size_t i = 0; i < t->batch.n; i++) {
        const struct sv_event *e = &t->batch.events[i];
        const struct sv_track_info *tracks = t->dict->tracks;
        const struct sv_track_info *parent = &tracks[tracks[e->track].parent];
        CHECK(e->kind == SV_COUNTER && e->ts_ns == now_ns && e->n_args == 1);
        double v = e->args[0].type == SV_ARG_INT ? (double)e->args[0].i : e->args[0].d;
        n += (size_t)snprintf(text + n, sizeof text - n, "%s/%s/%s %g %s\n",
                              sv_dict_text(t->dict, tracks[parent->parent].name).bytes,
                              sv_dict_text(t->dict, parent->name).bytes,
                              sv_dict_text(t->dict, tracks[e->track].name).bytes, v,
                              sv_dict_text(t->dict, tracks[e->track].unit).bytes);
    }
    text[n] = '\0';
    return text;
}

static void put_first(struct bench *t)
{
    put(t, "stat",
        "cpu  1000 900 800 700 600 500 400 300 200 0\n"
        "cpu0 1000 900 800 700 600\n"
        "cpu1 1000 900 800 700\n"
        "cpu2345678901234567890123 1 1 1 1 1\n"
        "intr 5\ncpu9 1 1 1 1 1\n");
    put(t, "meminfo",
        "MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable:   400 kB\nSwapCached: 99 kB\n"
        "Cached:\t7 kB\nDirty: 3 kB\n");
    put(t, "diskstats",
        " 8 0 sda 10 1 100 5 20 2 200 8 1 30 13 0 0 0 0\n"
        " 8 1 sdb 1 2 3 4 5 6 7 8 9 10 11\n"
        " 8 2 sdc 1 2 3 4 5 6 7 8 9 10\n"
        " 7 0 loop0 0 0 0 0 0 0 0 0 0 0 0\n");
    put(t, "net/dev",
        "Inter-|  Receive\n face |bytes\n"
        "  eth0: 1000 1 0 0 0 0 0 0 500 1 0 0 0 0 0 0\n"
        "    lo: 7 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0\n"
        "  eth1: 1 2 3 4 5 6 7 8\n"
        "a-name-that-is-longer-than-thirty: 7 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0\n");
    put(t, "pressure/cpu", "some avg10=1.25 avg60=2.00 avg300=3.00 total=4\n");
    put(t, "pressure/memory", "full avg10=9.00 avg60=2.00 avg300=3.00 total=4\n");
    put(t, "pressure/io",
        "some avg10=0.00 avg60=2.00 avg300=3.00 total=4\nfull avg10=7.00 total=1\n");
    put(t, "vmstat", "nr_free_pages 5\noom_kill 3\n");
    put(t, "42/stat", "42 (a ) b) S 1 1 1 0 -1 0 0 0 0 0 100 50 0 0 20 0 1 0 100 4096 3 0\n");
    put(t, "42/status",
        "Name:\ta\nVmRSS:\t  12 kB\nRssAnon:\t     7 kB\nRssFile:\t 4 kB\nRssShmem: 2 kB\n");
}

static void put_second(struct bench *t)
{
    put(t, "stat",
        "cpu  1010 920 830 715 605 506 407 307 204 0\n"
        "cpu0 1002 903 805 740 650\n"
        "cpu1 2000 900 800 700\n");
    put(t, "diskstats",
        " 8 0 sda 14 1 300 13 20 2 200 8 2 1030 13 0 0 0 0\n"
        " 8 1 sdb 1 2 3 4 7 6 19 12 0 9010 11\n"
        " 7 0 loop0 0 0 0 0 0 0 0 0 0 0 0\n");
    put(t, "net/dev",
        "    lo: 7 1 0 0 0 0 0 0 17 1 0 0 0 0 0 0\n"
        "  eth0: 5000 1 0 0 0 0 0 0 500 1 0 0 0 0 0 0\n");
    put(t, "vmstat", "oom_kill 9\noom_kill 4\n");
    put(t, "42/stat", "42 (a ) b) S 1 1 1 0 -1 0 0 0 0 0 120 60 0 0 20 0 1 0 100 4096 -3 0\n");
}

#define LEVELS                                                                               \
    "/Memory/available 409600 bytes\n/Memory/used 614400 bytes\n/Memory/cached 7168 bytes\n" \
    "/Memory/dirty 3072 bytes\n"
#define PRESSURE "/Pressure/cpu 1.25 %\n/Pressure/io 0 %\n"
#define PARTS                                                                                   \
    "/job/memory_anon 7168 bytes\n/job/memory_file 4096 bytes\n/job/memory_shared 2048 bytes\n" \
    "/job/memory 13312 bytes\n"

/* Levels at once, rates from the second sample on, each over the time between the two; what cannot
 * be read gives no value; a counter that goes back is no rate. */
TEST(all_values_of_a_machine)
{
    struct bench t;
    bool is_new;
    char cpu[300];
    open_bench(&t);
    struct sv_proc *p = sv_tree_process(&t.tree, 42, &is_new);
    sv_tree_name_process(&t.tree, p, "job", NULL, 0);
    put_first(&t);
    sample(&t, 1000000000);
    CHECK_STR_EQ(shown(&t, 1000000000), LEVELS PARTS);
    put_second(&t);
    sample_with(&t, SV_USAGE_PRESSURE, 3000000000);
    snprintf(cpu, sizeof cpu, "/job/cpu %g %%\n", 100 * 30 / (double)sysconf(_SC_CLK_TCK) / 2);
    char want[4000];
    snprintf(want, sizeof want, "%s" LEVELS "%s%s%s" PARTS,
             "/CPU/user 10 %\n/CPU/nice 20 %\n/CPU/system 30 %\n/CPU/idle 15 %\n"
             "/CPU/iowait 5 %\n/CPU/irq 6 %\n/CPU/softirq 7 %\n/CPU/steal 7 %\n"
             "/CPU/guest 4 %\n"
             "CPU/CPU 0/user 2 %\nCPU/CPU 0/nice 3 %\nCPU/CPU 0/system 5 %\n"
             "CPU/CPU 0/idle 40 %\nCPU/CPU 0/iowait 50 %\nCPU/CPU 0/irq 0 %\n"
             "CPU/CPU 0/softirq 0 %\nCPU/CPU 0/steal 0 %\n",
             PRESSURE,
             "Disks/sda/reads 2 1/s\nDisks/sda/writes 0 1/s\nDisks/sda/read 51200 B/s\n"
             "Disks/sda/write 0 B/s\nDisks/sda/busy 50 %\nDisks/sda/queue 2 requests\n"
             "Disks/sda/read_wait 2 ms\n"
             "Disks/sdb/reads 0 1/s\nDisks/sdb/writes 1 1/s\nDisks/sdb/read 0 B/s\n"
             "Disks/sdb/write 3072 B/s\nDisks/sdb/busy 100 %\nDisks/sdb/queue 0 requests\n"
             "Disks/sdb/write_wait 2 ms\n"
             "Network/lo/received 0 B/s\nNetwork/lo/sent 5 B/s\n"
             "Network/eth0/received 2000 B/s\nNetwork/eth0/sent 0 B/s\n",
             cpu);
    CHECK_STR_EQ(shown(&t, 3000000000), want);
    /* Everything goes back, or stands still: no rate is below 0, and nothing is of no time. */
    put_first(&t);
    put(&t, "pressure/cpu", "");
    put(&t, "42/status", "");
    sample_with(&t, SV_USAGE_OOM, 4000000000);
    snprintf(want, sizeof want,
             LEVELS "/Pressure/io 0 %%\n/Memory/oom kills 3 count\n%s/job/memory %g bytes\n",
             "Disks/sda/reads 0 1/s\nDisks/sda/writes 0 1/s\nDisks/sda/read 0 B/s\n"
             "Disks/sda/write 0 B/s\nDisks/sda/busy 0 %\nDisks/sda/queue 1 requests\n"
             "Disks/sdb/reads 0 1/s\nDisks/sdb/writes 0 1/s\nDisks/sdb/read 0 B/s\n"
             "Disks/sdb/write 0 B/s\nDisks/sdb/busy 0 %\nDisks/sdb/queue 9 requests\n"
             "Network/eth0/received 0 B/s\nNetwork/eth0/sent 0 B/s\n"
             "Network/lo/received 0 B/s\nNetwork/lo/sent 0 B/s\n/job/cpu 0 %\n",
             3.0 * (double)sysconf(_SC_PAGESIZE));
    CHECK_STR_EQ(shown(&t, 4000000000), want);
    sample(&t, 4000000000);
    snprintf(want, sizeof want,
             LEVELS "/Pressure/io 0 %%\n/Memory/oom kills 3 count\n/job/memory %g bytes\n",
             3.0 * (double)sysconf(_SC_PAGESIZE));
    CHECK_STR_EQ(shown(&t, 4000000000), want);
    close_bench(&t);
}

/* One that was missing for a sample: there is no mean over the time in between. */
TEST(a_process_that_was_missed_has_no_rate_at_once)
{
    static const char stat[] = "42 (a) S 1 1 1 0 -1 0 0 0 0 0 10 5 0 0 20 0 1 0 100 4096 3 0\n";
    struct bench t;
    bool is_new;
    open_bench(&t);
    struct sv_proc *p = sv_tree_process(&t.tree, 42, &is_new);
    sv_tree_name_process(&t.tree, p, "job", NULL, 0);
    for (int i = 0; i < 5; i++) {
        CONTEXT("sample %d", i);
        put(&t, "42/stat", i == 2 ? "" : stat);
        sample(&t, i * (int64_t)1000000000);
        CHECK_DOUBLE_EQ(value(&t, "job", "cpu"), i == 1 || i == 4 ? 0 : -1);
        CHECK_UINT_EQ(t.batch.n, i == 2 ? 0 : i == 1 || i == 4 ? 2 : 1);
    }
    sv_tree_end(&t.tree, p, 5000000000);
    CHECK_UINT_EQ(sample(&t, 6000000000), 0);
    close_bench(&t);
}
