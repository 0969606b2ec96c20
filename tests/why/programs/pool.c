/* Steps that a pool of three threads works on; the main thread waits until all have done. pool
 * fixed | queue | chain | ok:
 *
 * fixed: each thread has its own part of a step; that of the third reads a file past the cache and
 * takes longest, that of the first is the next longest. queue: the threads take parts from one
 * list; one part reads the file. chain: the pool has two stages; in the first one the third thread
 * reads the file. ok: no part takes longer than the main thread's own work.
 *
 * The program then runs without the file, and measures what a step gains. */
#include "truth.h"

#include <stdbool.h>

enum { WORKERS = 3, PARTS = 12, STEPS = 30, READ_MS = 40 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t has_work = PTHREAD_COND_INITIALIZER, all_done = PTHREAD_COND_INITIALIZER;
static int todo[WORKERS]; /* parts that only this thread may take */
static int in_list, n_open, stage, table;
static bool is_over, reads;
static const char *how;

__attribute__((noinline)) static void read_table(void)
{
    static char page[65536];
    int64_t end = why_now() + READ_MS * 1000000l; /* however fast the disk is */
    for (int i = 0; why_now() < end; i = (i + 1) % 64) {
        if (i == 0)
            posix_fadvise(table, 0, 0, POSIX_FADV_DONTNEED);
        if (pread(table, page, sizeof page, i * 65536l) < 0)
            abort();
    }
}

/* A part: an answer of something that is far away. */
static void work_on(int worker, int part)
{
    static const int fixed_ms[WORKERS] = {26, 14, 6};
    bool is_slow = strcmp(how, "queue") == 0 ? part == 5 : worker == 2;
    if (strcmp(how, "queue") == 0)
        why_sleep_ms(5);
    else
        why_sleep_ms(stage == 1 ? 8 : strcmp(how, "ok") == 0 ? 1 : fixed_ms[worker]);
    if (is_slow && reads && stage == 0)
        read_table();
}

static void *worker(void *arg)
{
    int self = (int)(intptr_t)arg, part;
    char name[16];
    snprintf(name, sizeof name, "pool-%d", self);
    prctl(PR_SET_NAME, name);
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!is_over && !todo[self] && !in_list)
            pthread_cond_wait(&has_work, &lock);
        if (is_over)
            break;
        part = todo[self] ? self : PARTS - in_list;
        todo[self] ? todo[self]-- : in_list--;
        pthread_mutex_unlock(&lock);
        work_on(self, part);
        pthread_mutex_lock(&lock);
        if (--n_open == 0)
            pthread_cond_signal(&all_done);
    }
    pthread_mutex_unlock(&lock);
    return NULL;
}

__attribute__((noinline)) static void run_parts(int n_stage)
{
    pthread_mutex_lock(&lock);
    stage = n_stage;
    if (strcmp(how, "queue") == 0)
        n_open = in_list = PARTS;
    for (int i = 0; i < WORKERS && !in_list; i++)
        n_open += todo[i] = 1;
    pthread_cond_broadcast(&has_work);
    while (n_open)
        pthread_cond_wait(&all_done, &lock);
    pthread_mutex_unlock(&lock);
}

static void step(int64_t *waited)
{
    int64_t begin = why_now();
    run_parts(0);
    if (strcmp(how, "chain") == 0)
        run_parts(1);
    *waited += why_now() - begin;
    why_spin_ms(strcmp(how, "ok") == 0 ? 20 : 6);
}

int main(int argc, char **argv)
{
    struct why w = {0};
    pthread_t threads[WORKERS];
    int64_t waited = 0, unused = 0;
    how = argc > 1 ? argv[1] : "fixed";
    bool is_ok = strcmp(how, "ok") == 0;
    static char page[65536];
    table = why_file("table.bin", O_RDWR | O_CREAT);
    for (int i = 0; i < 64; i++)
        if (pwrite(table, page, sizeof page, i * 65536l) < 0)
            abort();
    fsync(table);
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&threads[i], NULL, worker, (void *)(intptr_t)i);
    reads = !is_ok;
    why_begin(&w);
    for (int i = 0; i < STEPS; i++) {
        STAVE_SCOPE("step", "step", "n", i);
        step(&waited);
    }
    why_end(&w);
    reads = false;
    int64_t begin = why_now();
    for (int i = 0; i < STEPS; i++)
        step(&unused);
    double without = (double)(why_now() - begin);
    pthread_mutex_lock(&lock);
    is_over = true;
    pthread_cond_broadcast(&has_work);
    pthread_mutex_unlock(&lock);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    if (is_ok) {
        why_allow(&w, "\"data\", \"lock\"", waited);
    } else {
        why_cause(&w, "\"data\", \"lock\", \"disk\", \"slow_file\", \"cold_cache\"", waited,
                  "\"path\": \"table.bin\"}, {\"function\": \"read_table\"}, {\"name\": \"pool-\"");
        snprintf(w.more, sizeof w.more,
                 ",\n \"whatif\": [{\"without\": \"file:table.bin\", \"gain\": %.4f}]",
                 1 - without / (double)w.wall);
    }
    why_write(&w, "step", STEPS, 1);
}
