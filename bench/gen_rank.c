/* Makes the trace of one rank of a simulated training job, to measure what holds many ranks with.
 *
 *     gen_rank RANK WORLD SLICES OUTPUT.pftrace
 *
 * Steps of 1,000 slices: operators with nested calls on the main thread, kernels on a stream, reads
 * of a loader thread, one collective at the end. Eight ranks share a host; each host's boot clock
 * began at another time. Rank 17 is by a third slower in every tenth step. */
#include "core/files/output.h"
#include "formats/formats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 256, OPERATORS = 40, PER_STEP = 1000, READS = 5, SHARDS = 64 };

struct gen {
    struct sv_dict *dict;
    struct sv_sink *sink;
    struct sv_event events[BATCH];
    struct sv_arg args[BATCH][5];
    size_t n;
    uint64_t random, rank, world;
    sv_str operators[OPERATORS], launch, kernel_cat, cpu_cat, runtime_cat, collective, reduce, call,
        pread, user;
    sv_str key_op, key_group, key_seq, key_bytes, key_size, key_path;
    sv_track main, stream, loader;
    char shards[SHARDS][40];
};

static uint64_t roll(struct gen *g, uint64_t below)
{
    g->random = g->random * 6364136223846793005ull + 1442695040888963407ull;
    return (g->random >> 33) % below;
}

static _Noreturn void die(const char *message)
{
    fprintf(stderr, "gen_rank: %s\n", message);
    exit(1);
}

static void flush(struct gen *g)
{
    struct sv_err err = {0};
    if (g->n && g->sink->write(g->sink, g->events, g->n, &err) < 0)
        die(err.msg);
    g->n = 0;
}

static struct sv_event *add(struct gen *g, uint8_t kind, sv_track track, int64_t ts_ns)
{
    if (g->n == BATCH)
        flush(g);
    struct sv_event *e = &g->events[g->n];
    *e = (struct sv_event){.kind = kind, .track = track, .ts_ns = ts_ns, .args = g->args[g->n]};
    g->n++;
    return e;
}

static void begin(struct gen *g, sv_track track, sv_str cat, sv_str name, int64_t ts_ns)
{
    struct sv_event *e = add(g, SV_BEGIN, track, ts_ns);
    e->name = name;
    e->cat = cat;
}

static void end(struct gen *g, sv_track track, int64_t ts_ns)
{
    add(g, SV_END, track, ts_ns);
}

static struct sv_arg int_arg(sv_str key, int64_t i)
{
    return (struct sv_arg){.key = key, .type = SV_ARG_INT, .i = i};
}

static struct sv_arg text_arg(sv_str key, const char *text)
{
    return (struct sv_arg){
        .key = key, .type = SV_ARG_TEXT, .size = (uint32_t)strlen(text) & 0xffffff, .text = text};
}

/* An operator, the launch in it, and its kernel: three slices. */
static int64_t add_operator(struct gen *g, int64_t ts_ns, int64_t *stream_ns)
{
    sv_str name = g->operators[roll(g, OPERATORS)];
    int64_t dur_ns = 8000 + (int64_t)roll(g, 9000), kernel_ns = 6000 + (int64_t)roll(g, 9000);
    int64_t start_ns = ts_ns + 7000 > *stream_ns ? ts_ns + 7000 : *stream_ns;
    begin(g, g->main, g->cpu_cat, name, ts_ns);
    begin(g, g->main, g->runtime_cat, g->launch, ts_ns + 2000);
    end(g, g->main, ts_ns + 6000);
    end(g, g->main, ts_ns + dur_ns);
    begin(g, g->stream, g->kernel_cat, name, start_ns);
    end(g, g->stream, start_ns + kernel_ns);
    *stream_ns = start_ns + kernel_ns;
    return ts_ns + dur_ns + 500;
}

static void add_reads(struct gen *g, int64_t ts_ns)
{
    for (unsigned i = 0; i < READS; i++) {
        struct sv_event *e = add(g, SV_BEGIN, g->loader, ts_ns);
        struct sv_arg *a = g->args[e - g->events];
        e->name = g->pread;
        e->cat = g->call;
        e->n_args = 2;
        a[0] = text_arg(g->key_path, g->shards[roll(g, SHARDS)]);
        a[1] = int_arg(g->key_bytes, 4096 * (1 + (int64_t)roll(g, 64)));
        ts_ns += 100000 + (int64_t)roll(g, 900000);
        end(g, g->loader, ts_ns);
    }
}

static int64_t add_collective(struct gen *g, int64_t ts_ns, uint64_t seq)
{
    struct sv_event *e = add(g, SV_BEGIN, g->main, ts_ns);
    struct sv_arg *a = g->args[e - g->events];
    e->name = g->reduce;
    e->cat = g->collective;
    e->n_args = 5;
    a[0] = text_arg(g->key_op, "allreduce");
    a[1] = text_arg(g->key_group, "world");
    a[2] = int_arg(g->key_seq, (int64_t)seq);
    a[3] = int_arg(g->key_bytes, 1 << 26);
    a[4] = int_arg(g->key_size, (int64_t)g->world);
    end(g, g->main, ts_ns + 300000);
    return ts_ns + 300000;
}

static void add_step(struct gen *g, uint64_t step, int64_t ts_ns)
{
    char name[32];
    bool is_late = g->rank == 17 && step % 10 == 0;
    int64_t at_ns = ts_ns + 1000, stream_ns = ts_ns;
    unsigned operators = (PER_STEP - READS - 2) / 3;
    snprintf(name, sizeof name, "ProfilerStep#%llu", (unsigned long long)step);
    begin(g, g->main, g->user, sv_dict_cstr(g->dict, name), ts_ns);
    add_reads(g, ts_ns);
    for (unsigned i = 0; i < operators; i++)
        at_ns = add_operator(g, at_ns, &stream_ns);
    at_ns = add_collective(g, at_ns + (is_late ? 2000000 : 0), step);
    end(g, g->main, at_ns);
}

static void make_dictionary(struct gen *g)
{
    struct sv_dict *d = g->dict;
    char text[64];
    int64_t pid = 1000 + (int64_t)g->rank;
    struct {
        sv_str *to;
        const char *text;
    } words[] = {{&g->launch, "cudaLaunchKernel"},
                 {&g->kernel_cat, "kernel"},
                 {&g->cpu_cat, "cpu_op"},
                 {&g->runtime_cat, "cuda_runtime"},
                 {&g->collective, "collective"},
                 {&g->reduce, "nccl:all_reduce"},
                 {&g->call, "syscall"},
                 {&g->pread, "pread64"},
                 {&g->user, "user_annotation"},
                 {&g->key_op, "op"},
                 {&g->key_group, "group"},
                 {&g->key_seq, "seq"},
                 {&g->key_bytes, "bytes"},
                 {&g->key_size, "group_size"},
                 {&g->key_path, "path"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        *words[i].to = sv_dict_cstr(d, words[i].text);
    for (unsigned i = 0; i < OPERATORS; i++) {
        snprintf(text, sizeof text, "aten::operator_%u", i);
        g->operators[i] = sv_dict_cstr(d, text);
    }
    for (unsigned i = 0; i < SHARDS; i++)
        snprintf(g->shards[i], sizeof g->shards[i], "/data/shard-%05u.tar", i);
    sv_track process = sv_dict_process(d, 0, pid);
    g->main = sv_dict_thread(d, 0, pid, pid);
    g->loader = sv_dict_thread(d, 0, pid, pid + 100000);
    g->stream = sv_dict_child(d, process, SV_TRACK_STREAM, sv_dict_cstr(d, "stream 7"));
}

static void set_meta(struct gen *g, const char *key, const char *prefix, uint64_t n)
{
    char text[64];
    snprintf(text, sizeof text, "%s%llu", prefix, (unsigned long long)n);
    sv_dict_set_meta(g->dict, key, text, strlen(text), false);
}

static int64_t describe(struct gen *g)
{
    uint64_t host = g->rank / 8;
    int64_t boot_ns = 1000000000000 + (int64_t)host * 3600000000123;
    struct sv_snapshot s = {
        .n = 2,
        .uncertainty_ns = 30,
        .readings = {{SV_CLOCK_BOOTTIME, boot_ns}, {SV_CLOCK_REALTIME, 1700000000000000000}}};
    g->dict->clocks.trace_clock = SV_CLOCK_BOOTTIME;
    sv_clocks_add(&g->dict->clocks, &s);
    set_meta(g, "rank", "", g->rank);
    set_meta(g, "world_size", "", g->world);
    set_meta(g, "hostname", "node", host);
    set_meta(g, "boot_id", "boot-", host);
    set_meta(g, "pid_namespace", "", 4026531836);
    sv_dict_set_meta(g->dict, "job", "simulated", 9, false);
    return boot_ns;
}

int main(int argc, char **argv)
{
    static struct gen g;
    struct sv_err err = {0};
    struct sv_report report;
    struct sv_output *out;
    struct sv_write_options options = {0};
    if (argc != 5)
        die("usage: gen_rank RANK WORLD SLICES OUTPUT.pftrace");
    g.dict = sv_dict_new();
    g.rank = strtoull(argv[1], NULL, 10);
    g.world = strtoull(argv[2], NULL, 10);
    g.random = g.rank * 977 + 1;
    sv_report_init(&report);
    int64_t boot_ns = describe(&g);
    make_dictionary(&g);
    if (sv_output_open(argv[4], SV_OUTPUT_RENAME, SV_PLAIN, &out, &err) < 0 ||
        sv_perfetto_writer.open(out, &options, g.dict, &report, &g.sink, &err) < 0)
        die(err.msg);
    uint64_t steps = strtoull(argv[3], NULL, 10) / PER_STEP;
    for (uint64_t step = 0; step < steps; step++)
        add_step(&g, step, boot_ns + 1000000000 + (int64_t)step * 9000000);
    flush(&g);
    if (g.sink->close(g.sink, false, &err) < 0)
        die(err.msg);
    sv_report_fini(&report);
    sv_dict_free(g.dict);
    return 0;
}
