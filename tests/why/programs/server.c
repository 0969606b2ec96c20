/* A server with a queue and two worker threads, and its client, a process of its own:
 *
 *     server ok | cold | lock | queue | rejected [unmarked]
 *
 * cold: each 20th request reads a file that is not in the page cache. lock: each 20th request
 * needs a lock that another thread holds, asleep. queue: four requests at a time, and one worker.
 * rejected: the queue is short, and what does not fit is refused. Its requests are traced by
 * libstave-serving, with `unmarked` by nobody. Shares are of the time of all requests, from their
 * arrival on. */
#include "truth.h"

#include <stave/serving.h>

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { WORKERS = 2, MOST = 16, RARE = 20, FILE_SIZE = 8 << 20 };

struct request {
    int fd;
    uint64_t id;
    int64_t arrived;
};

static struct {
    pthread_mutex_t lock;
    pthread_cond_t more;
    struct request items[MOST];
    int n, limit, closed;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER, .limit = MOST};

pthread_mutex_t index_lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t rebuild, rebuilding;
static const char *how = "ok";
static struct stave_serving *tracer;
static uint32_t model;
static int table;
static pthread_mutex_t sums = PTHREAD_MUTEX_INITIALIZER;
static int64_t in_queue, in_cause, in_all, n_done, n_rejected, delayed;

__attribute__((noinline)) static void read_cold(void)
{
    static char page[4096];
    int64_t end = why_now() + 80000000; /* however fast the disk is */
    posix_fadvise(table, 0, 0, POSIX_FADV_RANDOM);
    while (why_now() < end) {
        posix_fadvise(table, 0, 0, POSIX_FADV_DONTNEED);
        for (int i = 0; i < FILE_SIZE / 4096 && why_now() < end; i++)
            if (pread(table, page, sizeof page, i * 4096l) < 0)
                abort();
    }
}

__attribute__((noinline)) static void rebuild_index(void)
{
    pthread_mutex_lock(&index_lock);
    sem_post(&rebuilding);
    why_sleep_ms(80);
    pthread_mutex_unlock(&index_lock);
}

static void *rebuilder(void *arg)
{
    (void)arg;
    prctl(PR_SET_NAME, "rebuilder");
    for (;;) {
        sem_wait(&rebuild);
        if (queue.closed)
            return NULL;
        rebuild_index();
    }
}

/* The rare case of a request; returns how long it took. */
static int64_t rare(void)
{
    int64_t begin = why_now();
    if (strcmp(how, "cold") == 0)
        read_cold();
    if (strcmp(how, "lock") == 0) {
        sem_post(&rebuild);
        sem_wait(&rebuilding);
        begin = why_now();
        pthread_mutex_lock(&index_lock);
        pthread_mutex_unlock(&index_lock);
    }
    return why_now() - begin;
}

__attribute__((noinline)) static void handle(const struct request *r, int32_t worker)
{
    int64_t took = 0, begin = why_now();
    uint64_t batch = r->id + 1;
    stave_serving_dequeued(tracer, r->id, 0);
    stave_serving_collected(tracer, batch, model, (const uint64_t[]){r->id}, 1, 1, 0, 0, 0);
    stave_serving_submitted(tracer, batch, 0);
    stave_serving_started(tracer, batch, worker, 0);
    why_spin_ms(6);
    if (r->id % RARE == RARE - 1)
        took = rare();
    stave_serving_finished(tracer, batch, 0);
    stave_serving_callback(tracer, batch, 0, 0);
    if (write(r->fd, "done", 4) != 4)
        abort();
    stave_serving_responded(tracer, r->id, 0);
    pthread_mutex_lock(&sums);
    in_queue += begin - r->arrived;
    in_cause += took;
    in_all += why_now() - r->arrived;
    n_done++;
    pthread_mutex_unlock(&sums);
}

static void *work(void *arg)
{
    int32_t worker = *(int32_t *)arg;
    int64_t delay = why_run_delay();
    prctl(PR_SET_NAME, "worker");
    for (;;) {
        pthread_mutex_lock(&queue.lock);
        while (queue.n == 0 && !queue.closed)
            pthread_cond_wait(&queue.more, &queue.lock);
        if (queue.n == 0)
            break;
        struct request r = queue.items[0];
        memmove(queue.items, queue.items + 1, (size_t)--queue.n * sizeof r);
        pthread_mutex_unlock(&queue.lock);
        handle(&r, worker);
    }
    pthread_mutex_unlock(&queue.lock);
    __atomic_add_fetch(&delayed, why_run_delay() - delay, __ATOMIC_RELAXED);
    return NULL;
}

/* A request has come in: into the queue, or back to its client. */
static void take(int fd, uint64_t id)
{
    struct request r = {fd, id, why_now()};
    pthread_mutex_lock(&queue.lock);
    int full = queue.n >= queue.limit;
    if (!full) {
        queue.items[queue.n++] = r;
        stave_serving_enqueued(tracer, id, model, 0, 0);
        pthread_cond_signal(&queue.more);
    }
    pthread_mutex_unlock(&queue.lock);
    if (full) {
        n_rejected++;
        stave_serving_rejected(tracer, id, model, 0, 0);
        if (write(fd, "full", 4) != 4)
            abort();
    }
}

/* Reads requests of all connections until the last is closed. */
static uint64_t serve(int listener, int connections)
{
    struct pollfd polls[MOST] = {0};
    uint64_t id = 0;
    int open = connections;
    for (int i = 0; i < connections; i++)
        polls[i] = (struct pollfd){accept(listener, NULL, NULL), POLLIN, 0};
    while (open > 0) {
        poll(polls, (nfds_t)connections, -1);
        for (int i = 0; i < connections; i++) {
            char text[8];
            if (polls[i].fd < 0 || !polls[i].revents)
                continue;
            if (read(polls[i].fd, text, sizeof text) > 0) {
                take(polls[i].fd, id++);
            } else {
                polls[i].fd = -1;
                open--;
            }
        }
    }
    return id;
}

/* One connection of the client: asks again when it has its answer. */
struct asker {
    int port, n;
};

static void *ask(void *arg)
{
    const struct asker *a = arg;
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)a->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char text[8];
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    prctl(PR_SET_NAME, "client");
    if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0)
        abort();
    for (int i = 0; i < a->n; i++) {
        if (write(fd, "ask", 3) != 3 || read(fd, text, sizeof text) != 4)
            abort();
        if (memcmp(text, "full", 4) == 0)
            why_sleep_ms(12);
    }
    close(fd);
    return NULL;
}

static void be_client(int port, int connections, int n)
{
    pthread_t t[MOST];
    struct asker a = {port, n};
    for (int i = 0; i < connections; i++)
        pthread_create(&t[i], NULL, ask, &a);
    for (int i = 0; i < connections; i++)
        pthread_join(t[i], NULL);
    _exit(0);
}

static void state_truth(uint64_t n)
{
    struct why w = {.wall = in_all, .delay = delayed};
    if (strcmp(how, "cold") == 0)
        why_cause(&w, "\"slow_file\", \"cold_cache\", \"disk\"", in_cause,
                  "\"path\": \"table.bin\"");
    if (strcmp(how, "lock") == 0)
        why_cause(&w, "\"lock\"", in_cause, "\"name\": \"rebuilder\", \"lock\": \"index_lock\"");
    if (strcmp(how, "queue") == 0)
        why_cause(&w, "\"queue\"", in_queue, "\"name\": \"worker\"}, {\"function\": \"handle\"");
    if (strcmp(how, "rejected") == 0) {
        why_cause(&w, "\"rejected\"", (int64_t)((double)n_rejected / (double)n * (double)in_all),
                  "");
        why_allow(&w, "\"queue\"", in_queue);
    }
    why_write(&w, "request", (long)n, tracer != NULL);
}

int main(int argc, char **argv)
{
    int marked = argc < 3 || strcmp(argv[2], "unmarked") != 0, connections = 1, n = 160,
        workers = WORKERS;
    how = argc > 1 ? argv[1] : how;
    if (strcmp(how, "queue") == 0)
        connections = 4, n = 60, workers = 1;
    if (strcmp(how, "rejected") == 0)
        connections = 6, n = 60, workers = 1, queue.limit = 2;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&at, size) != 0 || listen(listener, MOST) != 0 ||
        getsockname(listener, (struct sockaddr *)&at, &size) != 0)
        abort();
    pid_t client = fork();
    if (client == 0)
        be_client(ntohs(at.sin_port), connections, n);
    char *block = calloc(1, FILE_SIZE);
    table = why_file("table.bin", O_CREAT | O_RDWR);
    if (write(table, block, FILE_SIZE) != FILE_SIZE || fsync(table) != 0)
        abort();
    struct stave_serving_config config = {
        .size = sizeof config, .trace_enabled = marked, .trace_output = "traces"};
    tracer = stave_serving_open(&config, NULL);
    model = stave_serving_model(tracer, "bert");
    sem_init(&rebuild, 0, 0);
    sem_init(&rebuilding, 0, 0);
    pthread_t t[WORKERS], r;
    static int32_t ids[WORKERS];
    for (int i = 0; i < workers; i++) {
        ids[i] = i;
        stave_serving_worker(tracer, i, "cpu", -1);
        pthread_create(&t[i], NULL, work, &ids[i]);
    }
    pthread_create(&r, NULL, rebuilder, NULL);
    uint64_t served = serve(listener, connections);
    pthread_mutex_lock(&queue.lock);
    queue.closed = 1;
    pthread_cond_broadcast(&queue.more);
    pthread_mutex_unlock(&queue.lock);
    sem_post(&rebuild);
    for (int i = 0; i < workers; i++)
        pthread_join(t[i], NULL);
    pthread_join(r, NULL);
    waitpid(client, NULL, 0);
    state_truth(served);
    stave_serving_close(tracer, NULL);
}
