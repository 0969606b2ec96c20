/* A server without models, for tests/stress/serving.sh: `serving_calls DIRECTORY
 * golden|newer|threads|keep|kill|few|busy [truncate|RULE]`.
 *
 *   golden, newer   fixed times and every kind of event, so that the files can be compared byte by
 *                   byte (but for the real time)
 *   threads         four threads serve 5,000 requests each, at once and in any order
 *   keep RULE       1,009 requests, of which some are left out
 *   kill            2,000 requests, then SIGKILL without a word
 *   few             100 requests, then waits for its standard input to end
 *   busy            opens and waits for its standard input to end */
#include <pthread.h>
#include <signal.h>
#include <stave/serving.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 4, PER_THREAD = 5000, BATCH = 8, US = 1000 };

static struct stave_serving *s;
static uint32_t model;

static void open_in(const char *dir, bool is_newer, bool truncate)
{
    struct stave_error error;
    struct stave_serving_config config = {.size = sizeof config,
                                          .trace_enabled = true,
                                          .trace_output = dir,
                                          .truncate = truncate,
                                          .full = STAVE_FULL_BLOCK,
                                          .names = is_newer ? STAVE_SERVING_NAMES_NEWER
                                                            : STAVE_SERVING_NAMES_DEFAULT};
    s = stave_serving_open(&config, &error);
    if (!s) {
        fprintf(stderr, "serving: %s\n", error.text);
        exit(1);
    }
}

static int close_all(void)
{
    struct stave_error error;
    struct stave_serving_counts c = {.size = sizeof c};
    stave_serving_flush(s);
    stave_serving_count(s, &c);
    printf("requests %llu batches %llu rejected %llu failed %llu open %llu %llu lost %llu\n",
           (unsigned long long)c.requests, (unsigned long long)c.batches,
           (unsigned long long)c.rejected, (unsigned long long)c.failed,
           (unsigned long long)c.open_requests, (unsigned long long)c.open_batches,
           (unsigned long long)c.lost);
    printf("deferred %llu\n", (unsigned long long)c.deferred);
    printf("left out %llu %llu\n", (unsigned long long)c.left_out,
           (unsigned long long)c.left_out_batches);
    if (stave_serving_close(s, &error) != 0)
        return fprintf(stderr, "serving: %s\n", error.text), 1;
    return 0;
}

/* ---- fixed times ---- */

/* Calls are noted first and made in the order of their times, as a server would. */
enum what {
    ENQUEUED,
    DEQUEUED,
    COLLECTED,
    SUBMITTED,
    STARTED,
    FINISHED,
    CALLBACK,
    RESPONDED,
    REJECTED,
    CANCELLED,
    CONGESTED,
    BATCH_FAILED,
    FAILED
};

struct call {
    int64_t at, from;
    enum what what;
    uint64_t id, first;
    size_t n;
    int32_t worker;
    unsigned flags;
    size_t number;
};

static struct call calls[8192];
static size_t n_calls;

static void note(struct call c)
{
    c.number = n_calls;
    calls[n_calls++] = c;
}

static int by_time(const void *a, const void *b)
{
    const struct call *x = a, *y = b;
    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->number < y->number ? -1 : 1;
}

static void make(const struct call *c)
{
    uint64_t ids[BATCH];
    for (size_t i = 0; i < c->n; i++)
        ids[i] = c->first + i;
    switch (c->what) {
    case ENQUEUED: stave_serving_enqueued(s, c->id, model, c->flags, c->at); break;
    case DEQUEUED: stave_serving_dequeued(s, c->id, c->at); break;
    case COLLECTED:
        stave_serving_collected(s, c->id, model, ids, c->n, 0, c->flags, c->from, c->at);
        break;
    case SUBMITTED: stave_serving_submitted(s, c->id, c->at); break;
    case STARTED: stave_serving_started(s, c->id, c->worker, c->at); break;
    case FINISHED: stave_serving_finished(s, c->id, c->at); break;
    case CALLBACK: stave_serving_callback(s, c->id, c->from, c->at); break;
    case RESPONDED: stave_serving_responded(s, c->id, c->at); break;
    case REJECTED: stave_serving_rejected(s, c->id, model, 0, c->at); break;
    case CANCELLED: stave_serving_cancelled(s, c->id, c->at); break;
    case CONGESTED: stave_serving_congestion(s, c->flags != 0, c->at); break;
    case BATCH_FAILED: stave_serving_batch_failed(s, c->id, "no memory", c->at); break;
    case FAILED: stave_serving_failed(s, c->id, "no memory", c->at); break;
    }
}

static void make_all(void)
{
    qsort(calls, n_calls, sizeof *calls, by_time);
    for (size_t i = 0; i < n_calls; i++)
        make(&calls[i]);
    n_calls = 0;
}

/* A batch of `n` requests from `first` on; `t` is when the first one came. */
static void one(uint64_t batch, uint64_t first, size_t n, int32_t worker, unsigned flags, int64_t t)
{
    for (size_t i = 0; i < n; i++) {
        int64_t k = (int64_t)i;
        note((struct call){
            .what = ENQUEUED, .id = first + i, .flags = flags, .at = t + k * 100 * US});
        note((struct call){.what = DEQUEUED, .id = first + i, .at = t + (500 + k) * US});
        note((struct call){.what = RESPONDED, .id = first + i, .at = t + (1800 + 10 * k) * US});
    }
    note((struct call){.what = COLLECTED,
                       .id = batch,
                       .first = first,
                       .n = n,
                       .flags = flags,
                       .from = t + 500 * US,
                       .at = t + 600 * US});
    note((struct call){.what = SUBMITTED, .id = batch, .at = t + 620 * US});
    note((struct call){.what = STARTED, .id = batch, .worker = worker, .at = t + 700 * US});
    note((struct call){.what = FINISHED, .id = batch, .at = t + 1700 * US});
    note((struct call){.what = CALLBACK, .id = batch, .from = t + 1710 * US, .at = t + 1790 * US});
}

static int golden(const char *dir, bool is_newer, bool truncate)
{
    open_in(dir, is_newer, truncate);
    int64_t t = stave_now_ns() + (int64_t)1000000 * US; /* all well after the origin */
    model = stave_serving_model(s, "demo \"model\"");
    stave_serving_worker(s, 0, "cpu", -1);
    stave_serving_worker(s, 1, "cuda", 0);
    one(0, 1000, 2, 0, STAVE_SERVING_WARMUP, t);
    one(1, 1, 4, 0, 0, t + 10000 * US);
    one(2, 11, 2, 0, 0, t + 10300 * US); /* runs beside it: lane #2 */
    one(3, 21, 1, 1, 0, t + 20000 * US);
    note((struct call){.what = CONGESTED, .flags = 1, .at = t + 21000 * US});
    note((struct call){.what = REJECTED, .id = 31, .at = t + 21500 * US});
    note((struct call){.what = CONGESTED, .at = t + 22000 * US});
    note((struct call){.what = ENQUEUED, .id = 41, .at = t + 23000 * US});
    note((struct call){.what = CANCELLED, .id = 41, .at = t + 24000 * US});
    note((struct call){.what = ENQUEUED, .id = 51, .at = t + 25000 * US});
    note((struct call){.what = COLLECTED,
                       .id = 4,
                       .first = 51,
                       .n = 1,
                       .from = t + 25100 * US,
                       .at = t + 25200 * US});
    note((struct call){.what = BATCH_FAILED, .id = 4, .at = t + 25300 * US});
    note((struct call){.what = FAILED, .id = 51, .at = t + 25400 * US});
    make_all();
    return close_all();
}

/* ---- threads ---- */

static void *serve(void *arg)
{
    uint64_t base = (uint64_t)(size_t)arg * PER_THREAD;
    for (uint64_t first = base; first < base + PER_THREAD; first += BATCH) {
        uint64_t ids[BATCH], batch = first / BATCH;
        for (uint64_t i = 0; i < BATCH; i++) {
            ids[i] = first + i;
            stave_serving_enqueued(s, ids[i], model, 0, 0);
        }
        int64_t start = stave_now_ns();
        for (uint64_t i = 0; i < BATCH; i++)
            stave_serving_dequeued(s, ids[i], 0);
        stave_serving_collected(s, batch, model, ids, BATCH, 0, 0, start, 0);
        int64_t before = stave_now_ns();
        stave_serving_started(s, batch, (int32_t)(batch % 3), 0);
        if (batch % 2 == 0) /* reported late, as by a delayed thread */
            stave_serving_submitted(s, batch, before);
        stave_serving_finished(s, batch, 0);
        stave_serving_callback(s, batch, 0, 0);
        for (uint64_t i = 0; i < BATCH; i++)
            stave_serving_responded(s, ids[i], 0);
        if (batch % 2 == 1)
            stave_serving_submitted(s, batch, before);
    }
    return NULL;
}

static int threads(const char *dir)
{
    pthread_t t[THREADS];
    open_in(dir, false, false);
    model = stave_serving_model(s, "m");
    for (size_t i = 0; i < THREADS; i++)
        pthread_create(&t[i], NULL, serve, (void *)i);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    return close_all();
}

/* Of batches that are over in 1.9 ms and of one that takes 50 ms more only the slow one is kept,
 * and who failed; the next batch is kept because nothing is left out any more. Times are given. */
static int keep(const char *dir, const char *rule)
{
    struct stave_error error;
    open_in(dir, false, false);
    if (stave_serving_keep(s, rule, &error) != 0)
        return fprintf(stderr, "serving: %s\n", error.text), 1;
    int64_t t = stave_now_ns() + (int64_t)1000000 * US;
    model = stave_serving_model(s, "m");
    stave_serving_worker(s, 0, "cpu", -1);
    one(0, 1000, 2, 0, STAVE_SERVING_WARMUP, t);
    for (uint64_t i = 0; i < 500; i++)
        one(1 + i, 1 + 2 * i, 2, 0, 0, t + (int64_t)(10000 + 2000 * i) * US);
    one(601, 2001, 4, 0, 0, t + 1100000 * US);
    calls[n_calls - 6].at += 50000 * US; /* the answer to its last request */
    note((struct call){.what = REJECTED, .id = 3001, .at = t + 1200000 * US});
    note((struct call){.what = ENQUEUED, .id = 3002, .at = t + 1210000 * US});
    note((struct call){.what = CANCELLED, .id = 3002, .at = t + 1220000 * US});
    one(602, 3101, 3, 0, 0, t + 1300000 * US);
    calls[n_calls - 6].what = FAILED;
    make_all();
    if (stave_serving_keep(s, "all", &error) != 0)
        return 1;
    one(603, 3301, 2, 0, 0, t + 1500000 * US);
    make_all();
    return close_all();
}

/* Batches of every size at which a list of members is cut, in the events (8) or in the records
 * (56). */
static int sizes(const char *dir)
{
    static const size_t n[] = {1, 7, 8, 9, 16, 17, 55, 56, 57, 64, 112, 113, 300};
    uint64_t first = 1000;
    open_in(dir, false, false);
    model = stave_serving_model(s, "m");
    for (size_t b = 0; b < sizeof n / sizeof *n; b++) {
        uint64_t ids[300];
        for (size_t i = 0; i < n[b]; i++) {
            ids[i] = first++;
            stave_serving_enqueued(s, ids[i], model, 0, 0);
            stave_serving_dequeued(s, ids[i], 0);
        }
        stave_serving_collected(s, n[b], model, ids, n[b], 0, 0, 0, 0);
        stave_serving_submitted(s, n[b], 0);
        stave_serving_started(s, n[b], 0, 0);
        stave_serving_finished(s, n[b], 0);
        stave_serving_callback(s, n[b], 0, 0);
        for (size_t i = 0; i < n[b]; i++)
            stave_serving_responded(s, ids[i], 0);
    }
    return close_all();
}

static int killed(const char *dir)
{
    open_in(dir, false, false);
    model = stave_serving_model(s, "m");
    int64_t t = stave_now_ns();
    for (uint64_t i = 0; i < 2000; i += 4) {
        one(i / 4, i, 4, 0, 0, t + (int64_t)i * 1000 * US);
        make_all();
        if (i == 1000)
            stave_serving_flush(s);
    }
    raise(SIGKILL);
    return 0;
}

static int busy(const char *dir, uint64_t requests)
{
    char byte;
    open_in(dir, false, false);
    model = stave_serving_model(s, "m");
    for (uint64_t i = 0; i < requests; i += 4) {
        one(i / 4, i, 4, 0, 0, stave_now_ns());
        make_all();
    }
    printf("%s\n", stave_serving_file(s, STAVE_SERVING_JSON));
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    return close_all();
}

int main(int argc, char **argv)
{
    const char *what = argc > 2 ? argv[2] : "";
    bool truncate = argc > 3 && strcmp(argv[3], "truncate") == 0;
    if (strcmp(what, "golden") == 0 || strcmp(what, "newer") == 0)
        return golden(argv[1], strcmp(what, "newer") == 0, truncate);
    if (strcmp(what, "threads") == 0)
        return threads(argv[1]);
    if (strcmp(what, "sizes") == 0)
        return sizes(argv[1]);
    if (strcmp(what, "keep") == 0)
        return keep(argv[1], argc > 3 ? argv[3] : "all");
    if (strcmp(what, "kill") == 0)
        return killed(argv[1]);
    return busy(argv[1], strcmp(what, "few") == 0 ? 100 : 0);
}
