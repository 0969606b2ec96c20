/* What tracing an inference server costs: `serving DIRECTORY [calls|million|steps|load]`.
 *
 * Prints `NAME VALUE UNIT` for bench/run, which knows the budgets. `calls`: nanoseconds of each
 * life-cycle call, in bursts that fit the rings, time of the calling thread alone, median of many
 * runs; once alone and once with two threads at it. `million`: a million requests in batches of
 * eight as fast as they can be reported, memory and losses. `steps`: a step of an engine without
 * members, and each member. `load`: 10,000 steps/s of 64 members and 1,000 steps/s of 1,000, for
 * some seconds each, and what was lost. Exits 1 when a request is missing from the files'
 * thread. */
#include "measure.h"

#include <pthread.h>
#include <stave/serving.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BATCH = 8, BURST = 128, RUNS = 61, MILLION = 1000000 };

static struct stave_serving *server;
static uint32_t model;
static int failed;

static void open_server(const char *dir, size_t queue, enum stave_full full)
{
    struct stave_error error;
    struct stave_serving_config config = {.size = sizeof config,
                                          .trace_enabled = true,
                                          .trace_output = dir,
                                          .truncate = true,
                                          .queue_records = queue,
                                          .full = full};
    server = stave_serving_open(&config, &error);
    if (!server) {
        fprintf(stderr, "serving: %s\n", error.text);
        exit(2);
    }
    model = stave_serving_model(server, "bert");
    stave_serving_worker(server, 0, "cpu", -1);
}

static void close_server(uint64_t requests)
{
    struct stave_error error;
    struct stave_serving_counts c = {.size = sizeof c};
    struct stave_counts sdk = {.size = sizeof sdk};
    stave_serving_flush(server);
    stave_serving_count(server, &c);
    stave_count(&sdk);
    uint64_t lost = c.lost + sdk.lost_full + sdk.lost_nested + sdk.lost_ring + sdk.lost_output;
    row("serving_lost", (double)lost, "events");
    if (lost || c.requests != requests || c.open_requests || c.open_batches) {
        fprintf(stderr, "serving: %llu of %llu requests, %llu open, %llu lost\n",
                (unsigned long long)c.requests, (unsigned long long)requests,
                (unsigned long long)c.open_requests, (unsigned long long)lost);
        failed = 1;
    }
    if (stave_serving_close(server, &error) != 0) {
        fprintf(stderr, "serving: %s\n", error.text);
        failed = 1;
    }
}

/* ---- each call ---- */

enum call {
    ENQUEUED,
    DEQUEUED,
    COLLECTED,
    SUBMITTED,
    STARTED,
    FINISHED,
    CALLBACK,
    RESPONDED,
    CALLS
};
static const char *const names[CALLS] = {"enqueued", "dequeued", "collected_8", "submitted",
                                         "started",  "finished", "callback",    "responded"};

/* BURST batches of BATCH requests; the calls about requests are made BATCH times as often. */
static double burst(struct stave_serving *s, enum call call, uint64_t first)
{
    uint64_t n = call == ENQUEUED || call == DEQUEUED || call == RESPONDED ? BURST * BATCH : BURST;
    int64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t id = first + i, batch = first / BATCH + i;
        uint64_t members[BATCH];
        switch (call) {
        case ENQUEUED: stave_serving_enqueued(s, id, model, 0, 0); break;
        case DEQUEUED: stave_serving_dequeued(s, id, 0); break;
        case COLLECTED:
            for (uint64_t j = 0; j < BATCH; j++)
                members[j] = first + i * BATCH + j;
            stave_serving_collected(s, batch, model, members, BATCH, 0, 0, 0, 0);
            break;
        case SUBMITTED: stave_serving_submitted(s, batch, 0); break;
        case STARTED: stave_serving_started(s, batch, 0, 0); break;
        case FINISHED: stave_serving_finished(s, batch, 0); break;
        case CALLBACK: stave_serving_callback(s, batch, 0, 0); break;
        default: stave_serving_responded(s, id, 0); break;
        }
    }
    return (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - before) / (double)n;
}

static pthread_barrier_t gate;

/* Two threads: both make the same calls at the same time, about requests of their own. */
struct caller {
    uint64_t first;
    size_t n_callers;
    double costs[CALLS][RUNS];
};

static void *call_all(void *arg)
{
    struct caller *c = arg;
    for (size_t run = 0; run < RUNS; run++) {
        for (int call = 0; call < CALLS; call++) {
            if (c->n_callers > 1)
                pthread_barrier_wait(&gate);
            c->costs[call][run] =
                burst(server, (enum call)call, c->first + run * (uint64_t)(BURST * BATCH));
            if (c->n_callers > 1)
                pthread_barrier_wait(&gate);
            if (c->first == 0)
                stave_serving_flush(server);
        }
    }
    return NULL;
}

static void measure_calls(const char *dir)
{
    static struct caller callers[2];
    double worst = 0, worst_of_two = 0, off[RUNS];
    pthread_t other;
    open_server(dir, 0, STAVE_FULL_DEFAULT);
    callers[0].n_callers = 1;
    call_all(&callers[0]);
    close_server((uint64_t)RUNS * BURST * BATCH);
    for (int call = 0; call < CALLS; call++) {
        char name[64];
        double cost = median(callers[0].costs[call], RUNS);
        worst = cost > worst ? cost : worst;
        snprintf(name, sizeof name, "serving_%s", names[call]);
        row(name, cost, "ns");
    }
    row("serving_call_max", worst, "ns");

    open_server(dir, 0, STAVE_FULL_DEFAULT);
    pthread_barrier_init(&gate, NULL, 2);
    for (size_t i = 0; i < 2; i++)
        callers[i] = (struct caller){.first = i * (uint64_t)MILLION * BATCH, .n_callers = 2};
    pthread_create(&other, NULL, call_all, &callers[1]);
    call_all(&callers[0]);
    pthread_join(other, NULL);
    close_server((uint64_t)2 * RUNS * BURST * BATCH);
    for (int call = 0; call < CALLS; call++) {
        double cost = median(callers[0].costs[call], RUNS);
        worst_of_two = cost > worst_of_two ? cost : worst_of_two;
    }
    row("serving_call_max_two_threads", worst_of_two, "ns");

    for (size_t i = 0; i < RUNS; i++)
        off[i] = burst(NULL, ENQUEUED, 0);
    row("serving_off", median(off, RUNS), "ns");
}

/* ---- a million requests ---- */

static double peak_mb(void)
{
    char line[256];
    double kb = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "VmHWM: %lf", &kb) == 1)
            break;
    if (f)
        fclose(f);
    return kb / 1000;
}

/* With the times of a server that has a request each 100 us, waits 1 ms for a batch and computes it
 * in 2 ms. */
static void serve(uint64_t from, uint64_t to, int64_t start_ns)
{
    const int64_t us = 1000;
    for (uint64_t first = from; first < to; first += BATCH) {
        uint64_t members[BATCH], batch = first / BATCH;
        int64_t t = start_ns + (int64_t)(first - from) * 100 * us;
        for (int64_t j = 0; j < BATCH; j++) {
            members[j] = first + (uint64_t)j;
            stave_serving_enqueued(server, members[j], model, 0, t + j * 100 * us);
        }
        t += BATCH * 100 * us;
        for (uint64_t j = 0; j < BATCH; j++)
            stave_serving_dequeued(server, members[j], t);
        stave_serving_collected(server, batch, model, members, BATCH, 0, 0, t, t + 1000 * us);
        stave_serving_submitted(server, batch, t + 1010 * us);
        stave_serving_started(server, batch, 0, t + 1020 * us);
        stave_serving_finished(server, batch, t + 3000 * us);
        for (int64_t j = 0; j < BATCH; j++)
            stave_serving_responded(server, members[j], t + (3020 + j) * us);
        stave_serving_callback(server, batch, t + 3010 * us, t + 3040 * us);
    }
}

static void measure_million(const char *dir)
{
    open_server(dir, 0, STAVE_FULL_BLOCK);
    int64_t origin_ns = stave_now_ns();
    serve(0, MILLION / 10, origin_ns);
    stave_serving_flush(server);
    double early = peak_mb();
    int64_t own = clock_ns(CLOCK_THREAD_CPUTIME_ID), all = clock_ns(CLOCK_PROCESS_CPUTIME_ID),
            start = clock_ns(CLOCK_MONOTONIC);
    serve(MILLION / 10, MILLION, origin_ns + (int64_t)(MILLION / 10) * 100000);
    stave_serving_flush(server);
    own = clock_ns(CLOCK_THREAD_CPUTIME_ID) - own;
    all = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - all;
    double n = MILLION * 0.9;
    row("serving_million_memory", peak_mb() - early, "MB");
    row("serving_million_peak", peak_mb(), "MB");
    row("serving_million_rate", n / (double)(clock_ns(CLOCK_MONOTONIC) - start) * 1e6, "k/s");
    row("serving_request_own", (double)own / n, "ns");
    row("serving_request_behind", (double)(all - own) / n, "ns");
    close_server(MILLION);
}

/* ---- steps of an engine ---- */

enum { MEMBERS_MAX = 1000, STEP_BURST = 64, LOAD_SECONDS = 3 };

static struct stave_serving_member members[MEMBERS_MAX];

static void step_of(uint32_t engine, uint64_t number, size_t n, int64_t start_ns, int64_t end_ns)
{
    struct stave_serving_step step = {.size = sizeof step,
                                      .step = number,
                                      .engine = engine,
                                      .start_ns = start_ns,
                                      .end_ns = end_ns,
                                      .members = members,
                                      .n = n,
                                      .kv_used = 1000,
                                      .kv_total = 8192};
    stave_serving_step(server, &step);
}

/* Nanoseconds of one call, the flush apart: as a burst that fits the ring. */
static double step_cost(uint32_t engine, size_t n)
{
    double costs[RUNS];
    for (size_t run = 0; run < RUNS; run++) {
        int64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        for (uint64_t i = 0; i < STEP_BURST; i++)
            step_of(engine, run * STEP_BURST + i, n, 1, 0);
        costs[run] = (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - before) / STEP_BURST;
        stave_serving_flush(server);
    }
    return median(costs, RUNS);
}

static uint32_t open_engine(const char *dir, size_t queue)
{
    open_server(dir, queue, STAVE_FULL_DEFAULT);
    for (uint64_t i = 0; i < MEMBERS_MAX; i++) {
        members[i] = (struct stave_serving_member){.request = i,
                                                   .tokens_in = 1,
                                                   .tokens_out = 1,
                                                   .position = (uint32_t)(500 + i),
                                                   .phase = STAVE_SERVING_DECODE};
        stave_serving_enqueued(server, i, model, 0, 0);
    }
    return stave_serving_engine(server, "engine 0");
}

static void close_engine(const char *name, uint64_t steps, uint64_t n_members)
{
    struct stave_serving_counts c = {.size = sizeof c};
    struct stave_counts sdk = {.size = sizeof sdk};
    struct stave_error error;
    stave_serving_flush(server);
    for (uint64_t i = 0; i < MEMBERS_MAX; i++)
        stave_serving_responded(server, i, 0);
    stave_serving_flush(server);
    stave_serving_count(server, &c);
    stave_count(&sdk);
    uint64_t lost = c.lost + sdk.lost_full + sdk.lost_nested + sdk.lost_ring + sdk.lost_output;
    row(name, (double)lost, "events");
    if (lost || c.steps != steps || c.step_members != n_members || c.tokens_out != n_members) {
        fprintf(stderr, "serving: %llu of %llu steps, %llu of %llu members, %llu lost\n",
                (unsigned long long)c.steps, (unsigned long long)steps,
                (unsigned long long)c.step_members, (unsigned long long)n_members,
                (unsigned long long)lost);
        failed = 1;
    }
    if (stave_serving_close(server, &error) != 0) {
        fprintf(stderr, "serving: %s\n", error.text);
        failed = 1;
    }
}

static void measure_steps(const char *dir)
{
    uint32_t engine = open_engine(dir, 0);
    double none = step_cost(engine, 0), some = step_cost(engine, 64),
           many = step_cost(engine, MEMBERS_MAX);
    close_engine("serving_steps_lost", 3 * RUNS * STEP_BURST,
                 (uint64_t)RUNS * STEP_BURST * (64 + MEMBERS_MAX));
    row("serving_step", none, "ns");
    row("serving_step_64", some, "ns");
    row("serving_step_1000", many, "ns");
    row("serving_step_member_64", (some - none) / 64, "ns");
    row("serving_step_member", (many - none) / MEMBERS_MAX, "ns");
}

/* As an engine would: a step at its time, members of the same requests. */
static void hold_load(const char *dir, const char *name, uint64_t per_second, size_t n)
{
    uint64_t steps = per_second * LOAD_SECONDS;
    int64_t period = 1000000000 / (int64_t)per_second;
    uint32_t engine = open_engine(dir, 0);
    int64_t all = clock_ns(CLOCK_PROCESS_CPUTIME_ID), own = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    int64_t next = stave_now_ns();
    for (uint64_t i = 0; i < steps; i++) {
        int64_t end = next + period;
        step_of(engine, i, n, next, end);
        next = end;
        int64_t rest = next - stave_now_ns();
        if (rest > 0)
            nanosleep(&(struct timespec){.tv_nsec = rest}, NULL);
    }
    stave_serving_flush(server);
    own = clock_ns(CLOCK_THREAD_CPUTIME_ID) - own;
    all = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - all - own;
    char text[64];
    snprintf(text, sizeof text, "%s_behind", name);
    row(text, (double)all / (double)(steps * n), "ns"); /* of a member, in other threads */
    snprintf(text, sizeof text, "%s_lost", name);
    close_engine(text, steps, steps * n);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return fprintf(stderr, "usage: serving DIRECTORY [calls|million|steps|load]\n"), 2;
    if (argc < 3 || strcmp(argv[2], "calls") == 0)
        measure_calls(argv[1]);
    if (argc < 3 || strcmp(argv[2], "million") == 0)
        measure_million(argv[1]);
    if (argc < 3 || strcmp(argv[2], "steps") == 0)
        measure_steps(argv[1]);
    if (argc < 3 || strcmp(argv[2], "load") == 0) {
        hold_load(argv[1], "serving_load_64", 10000, 64);
        hold_load(argv[1], "serving_load_1000", 1000, MEMBERS_MAX);
    }
    return failed;
}
