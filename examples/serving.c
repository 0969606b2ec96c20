/* An inference server in small: two clients, one thread that makes batches, two workers, traced
 * from request to worker.
 *
 *     ./serving DIRECTORY        writes batching_trace.json, batching_trace_summary.csv and
 *                                batching_trace.pftrace there
 *     stave report batch DIRECTORY/batching_trace.pftrace
 *
 * The model is an addition; the example shows where the tracing calls go. */
#include <pthread.h>
#include <stave/serving.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CLIENTS = 2, WORKERS = 2, REQUESTS = 200, BATCH = 8, QUEUE = 64, BATCHES = 4 };

struct batch {
    uint64_t id, requests[BATCH];
    size_t n;
};

static struct stave_serving *tracer;
static uint32_t model;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static uint64_t queue[QUEUE]; /* waiting requests */
static struct batch ready[BATCHES];
static size_t queued, n_ready, clients_left = CLIENTS;
static int batching_ended;

static void pause_us(long us)
{
    nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

static void *client(void *number)
{
    uint64_t first = (uint64_t)(size_t)number * REQUESTS;
    for (uint64_t i = 0; i < REQUESTS; i++) {
        uint64_t request = first + i;
        pthread_mutex_lock(&lock);
        if (queued == QUEUE) {
            stave_serving_rejected(tracer, request, model, 0, 0);
        } else {
            stave_serving_enqueued(tracer, request, model, 0, 0);
            queue[queued++] = request;
            pthread_cond_broadcast(&changed);
        }
        pthread_mutex_unlock(&lock);
        pause_us(200);
    }
    pthread_mutex_lock(&lock);
    clients_left--;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* Takes what waits, at most BATCH; with the lock held. */
static void collect(struct batch *b)
{
    b->n = queued < BATCH ? queued : BATCH;
    for (size_t i = 0; i < b->n; i++) {
        b->requests[i] = queue[i];
        stave_serving_dequeued(tracer, queue[i], 0);
    }
    queued -= b->n;
    for (size_t i = 0; i < queued; i++)
        queue[i] = queue[i + b->n];
}

static void *batching(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    for (uint64_t id = 0;; id++) {
        while (n_ready == BATCHES || (queued == 0 && clients_left > 0))
            pthread_cond_wait(&changed, &lock);
        if (queued == 0)
            break;
        int64_t start_ns = stave_now_ns();
        struct batch b = {.id = id};
        collect(&b);
        stave_serving_collected(tracer, b.id, model, b.requests, b.n, 0, 0, start_ns, 0);
        stave_serving_submitted(tracer, b.id, 0);
        ready[n_ready++] = b;
        pthread_cond_broadcast(&changed);
    }
    batching_ended = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return NULL;
}

static void compute(const struct batch *b, int32_t worker)
{
    stave_serving_started(tracer, b->id, worker, 0);
    pause_us(300 + 100 * (long)b->n);
    stave_serving_finished(tracer, b->id, 0);
    int64_t start_ns = stave_now_ns();
    for (size_t i = 0; i < b->n; i++)
        stave_serving_responded(tracer, b->requests[i], 0);
    stave_serving_callback(tracer, b->id, start_ns, 0);
}

static void *work(void *number)
{
    pthread_mutex_lock(&lock);
    for (;;) {
        while (n_ready == 0 && !batching_ended)
            pthread_cond_wait(&changed, &lock);
        if (n_ready == 0)
            break;
        struct batch b = ready[0];
        n_ready--;
        for (size_t i = 0; i < n_ready; i++)
            ready[i] = ready[i + 1];
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
        compute(&b, (int32_t)(size_t)number);
        pthread_mutex_lock(&lock);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

int main(int argc, char **argv)
{
    struct stave_error error;
    struct stave_serving_config config = {
        .size = sizeof config, .trace_enabled = true, .trace_output = argc > 1 ? argv[1] : NULL};
    tracer = stave_serving_open(&config, &error);
    if (!tracer) {
        fprintf(stderr, "serving: %s\n", error.text);
        return 1;
    }
    model = stave_serving_model(tracer, "sum");
    for (int32_t i = 0; i < WORKERS; i++)
        stave_serving_worker(tracer, i, "cpu", -1);

    pthread_t threads[CLIENTS + 1 + WORKERS];
    size_t n = 0;
    for (size_t i = 0; i < CLIENTS; i++)
        pthread_create(&threads[n++], NULL, client, (void *)i);
    pthread_create(&threads[n++], NULL, batching, NULL);
    for (size_t i = 0; i < WORKERS; i++)
        pthread_create(&threads[n++], NULL, work, (void *)i);
    for (size_t i = 0; i < n; i++)
        pthread_join(threads[i], NULL);

    if (stave_serving_close(tracer, &error) != 0) {
        fprintf(stderr, "serving: %s\n", error.text);
        return 1;
    }
    return 0;
}
