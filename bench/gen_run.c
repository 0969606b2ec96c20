/* Makes the trace of a recorded run to measure pictures with: system calls of a trainer and its
 * loaders, block requests, CPU and disk counters, training steps.
 *
 *     gen_run CALLS OUTPUT.pftrace [states]
 *
 * With `states` each call also has three states of its thread: it runs, waits in the call for the
 * disk or, each fourth one, for the thread beside it, and could run; so a trace of n calls has 4 n
 * slices. Calls are slices with file, descriptor and bytes, as `stave record` writes them; 16
 * threads in 8 processes. */
#include "core/files/output.h"
#include "formats/formats.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROCESSES = 8, THREADS = 16, FILES = 640, BATCH = 256 };

struct gen {
    struct sv_dict *dict;
    struct sv_sink *sink;
    struct sv_event events[BATCH];
    struct sv_arg args[BATCH][3];
    size_t n;
    uint64_t random;
    bool with_states;
    int64_t since[THREADS]; /* when the thread began to run */
    sv_track states[THREADS];
    sv_str state, running, sleeping, blocked, runnable, reason, waker_tid;
    sv_str syscall, block, step, fd, bytes, path, pid, names[4];
    sv_track calls[THREADS], steps, disk, cpu[4], rate[2];
    char files[FILES][48];
};

static uint64_t roll(struct gen *g, uint64_t below)
{
    g->random = g->random * 6364136223846793005ull + 1442695040888963407ull;
    return (g->random >> 33) % below;
}

static void flush(struct gen *g)
{
    struct sv_err err = {0};
    if (g->n && g->sink->write(g->sink, g->events, g->n, &err) < 0) {
        fprintf(stderr, "gen_run: %s\n", err.msg);
        exit(1);
    }
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

static struct sv_arg int_arg(sv_str key, int64_t i)
{
    return (struct sv_arg){.key = key, .type = SV_ARG_INT, .i = i};
}

static void add_state(struct gen *g, unsigned thread, sv_str name, int64_t from_ns, int64_t to_ns,
                      struct sv_arg arg)
{
    struct sv_event *e = add(g, SV_BEGIN, g->states[thread], from_ns);
    e->name = name;
    e->cat = g->state;
    e->n_args = arg.key != 0;
    g->args[e - g->events][0] = arg;
    add(g, SV_END, g->states[thread], to_ns);
}

/* Runs until a moment after the call began, waits, and could run at its end. */
static void add_states(struct gen *g, unsigned thread, int64_t ts_ns, int64_t dur_ns,
                       bool is_for_other)
{
    static const char pipe[] = "pipe";
    int64_t waits = ts_ns + dur_ns / 8, woken = ts_ns + dur_ns - dur_ns / 8;
    struct sv_arg none = {0},
                  reason = {
                      .key = g->reason, .type = SV_ARG_TEXT, .size = sizeof pipe - 1, .text = pipe};
    add_state(g, thread, g->running, g->since[thread], waits, none);
    add_state(g, thread, is_for_other ? g->sleeping : g->blocked, waits, woken,
              is_for_other ? reason : none);
    add_state(g, thread, g->runnable, woken, ts_ns + dur_ns,
              is_for_other ? int_arg(g->waker_tid, 4000 + (thread + 1) % THREADS) : none);
    g->since[thread] = ts_ns + dur_ns;
}

static void add_call(struct gen *g, unsigned thread, int64_t ts_ns, int64_t dur_ns)
{
    bool is_for_other = g->with_states && roll(g, 4) == 0;
    if (g->with_states)
        add_states(g, thread, ts_ns, dur_ns, is_for_other);
    struct sv_event *e = add(g, SV_BEGIN, g->calls[thread], ts_ns);
    const char *file = is_for_other ? "pipe:[4711]" : g->files[roll(g, FILES)];
    struct sv_arg *a = g->args[e - g->events];
    e->name = g->names[is_for_other ? 0 : roll(g, 4)];
    e->cat = g->syscall;
    e->n_args = 3;
    a[0] = int_arg(g->fd, (int64_t)roll(g, 32));
    a[1] = int_arg(g->bytes, (int64_t)roll(g, 1 << 18));
    a[2] = (struct sv_arg){.key = g->path,
                           .type = SV_ARG_TEXT,
                           .size = (uint32_t)strlen(file) & 0xffffff,
                           .text = file};
    add(g, SV_END, g->calls[thread], ts_ns + dur_ns);
}

static void add_request(struct gen *g, int64_t ts_ns)
{
    struct sv_event *e = add(g, SV_BEGIN, g->disk, ts_ns);
    struct sv_arg *a = g->args[e - g->events];
    e->name = g->names[roll(g, 2)];
    e->cat = g->block;
    e->n_args = 2;
    a[0] = int_arg(g->bytes, 131072);
    a[1] = int_arg(g->pid, 4000 + (int64_t)roll(g, PROCESSES));
    add(g, SV_END, g->disk, ts_ns + (int64_t)roll(g, 400000) + 20000);
}

static void add_values(struct gen *g, int64_t ts_ns)
{
    double user = (double)roll(g, 60), rest[3] = {10, 5, 85 - user};
    for (unsigned i = 0; i < 6; i++) {
        struct sv_event *e = add(g, SV_COUNTER, i < 4 ? g->cpu[i] : g->rate[i - 4], ts_ns);
        double value = i == 0 ? user : i < 4 ? rest[i - 1] : (double)roll(g, 500000000);
        g->args[e - g->events][0] = (struct sv_arg){.type = SV_ARG_DOUBLE, .d = value};
        e->n_args = 1;
    }
}

static void make_dictionary(struct gen *g)
{
    static const char *const names[] = {"read", "write", "openat", "close"},
                             *const cpu[] = {"user", "system", "iowait", "idle"},
                             *const rates[] = {"read", "write"};
    struct sv_dict *d = g->dict;
    sv_str calls = sv_dict_cstr(d, "system calls");
    for (unsigned i = 0; i < 4; i++)
        g->names[i] = sv_dict_cstr(d, names[i]);
    g->syscall = sv_dict_cstr(d, "syscall");
    g->block = sv_dict_cstr(d, "block");
    g->step = sv_dict_cstr(d, "step");
    g->fd = sv_dict_cstr(d, "fd");
    g->bytes = sv_dict_cstr(d, "bytes");
    g->path = sv_dict_cstr(d, "path");
    g->pid = sv_dict_cstr(d, "pid");
    g->state = sv_dict_cstr(d, "thread_state");
    g->running = sv_dict_cstr(d, "Running");
    g->sleeping = sv_dict_cstr(d, "Sleeping");
    g->blocked = sv_dict_cstr(d, "Blocked on I/O");
    g->runnable = sv_dict_cstr(d, "Runnable");
    g->reason = sv_dict_cstr(d, "reason");
    g->waker_tid = sv_dict_cstr(d, "waker_tid");
    for (unsigned i = 0; i < THREADS; i++) {
        sv_track thread = sv_dict_thread(d, 0, 4000 + i % PROCESSES, 4000 + i);
        g->calls[i] = sv_dict_child(d, thread, SV_TRACK_CUSTOM, calls);
        if (g->with_states)
            g->states[i] = sv_dict_child(d, thread, SV_TRACK_CUSTOM, sv_dict_cstr(d, "state"));
        g->since[i] = 1000000000;
        if (i == 0)
            g->steps = thread;
    }
    sv_track group = sv_dict_child(d, 0, SV_TRACK_CUSTOM, sv_dict_cstr(d, "CPU"));
    for (unsigned i = 0; i < 4; i++)
        g->cpu[i] = sv_dict_child(d, group, SV_TRACK_COUNTER, sv_dict_cstr(d, cpu[i]));
    group = sv_dict_child(d, 0, SV_TRACK_CUSTOM, sv_dict_cstr(d, "Disks"));
    g->disk = sv_dict_child(d, group, SV_TRACK_CUSTOM, sv_dict_cstr(d, "nvme0n1"));
    for (unsigned i = 0; i < 2; i++)
        g->rate[i] = sv_dict_child(d, g->disk, SV_TRACK_COUNTER, sv_dict_cstr(d, rates[i]));
    for (unsigned i = 0; i < FILES; i++)
        snprintf(g->files[i], sizeof g->files[i], "/data/imagenet/train/shard-%05u.tar", i);
}

/* The threads take turns: the file is in the order of time for each of them, and almost so as a
 * whole. */
static void make_events(struct gen *g, unsigned long n)
{
    int64_t step_ns = g->with_states ? 2000000 : 200000000;
    int64_t now = 1000000000, next_values = now, next_request = now, next_step = now;
    for (unsigned long i = 0; i < n; i++) {
        now += 400;
        if (now >= next_values) {
            add_values(g, now);
            next_values += 100000000;
        }
        if (now >= next_request) {
            add_request(g, now);
            next_request += 500000;
        }
        if (now >= next_step) {
            struct sv_event *e = add(g, SV_BEGIN, g->steps, now);
            e->name = sv_dict_cstr(g->dict, "training step");
            e->cat = g->step;
            add(g, SV_END, g->steps, now + step_ns / 10 * 9);
            next_step += step_ns;
        }
        add_call(g, (unsigned)(i % THREADS), now, (int64_t)roll(g, 5000) + 300);
    }
    flush(g);
}

int main(int argc, char **argv)
{
    struct sv_err err = {0};
    struct sv_report report;
    struct sv_output *out;
    struct sv_write_options options = {0};
    if (argc != 3 && (argc != 4 || strcmp(argv[3], "states") != 0)) {
        fprintf(stderr, "usage: gen_run CALLS OUTPUT.pftrace [states]\n");
        return 2;
    }
    struct gen *g = calloc(1, sizeof *g);
    if (!g)
        return 1;
    sv_report_init(&report);
    g->dict = sv_dict_new();
    g->random = 42;
    g->with_states = argc == 4;
    make_dictionary(g);
    if (sv_output_open(argv[2], SV_OUTPUT_RENAME, SV_PLAIN, &out, &err) < 0 ||
        sv_perfetto_writer.open(out, &options, g->dict, &report, &g->sink, &err) < 0) {
        fprintf(stderr, "gen_run: %s\n", err.msg);
        return 1;
    }
    make_events(g, strtoul(argv[1], NULL, 10));
    if (g->sink->close(g->sink, false, &err) < 0) {
        fprintf(stderr, "gen_run: %s\n", err.msg);
        return 1;
    }
    sv_dict_free(g->dict);
    sv_report_fini(&report);
    free(g);
    return 0;
}
