/* A mutex that each step needs is held by another thread, which meanwhile
 *
 *     locks asleep       sleeps
 *     locks writing      writes to a file and syncs it
 *     locks computing    computes
 *     locks convoy       three threads hold it in turn, each asleep
 *     locks free         nobody holds it: healthy */
#include "truth.h"

#include <semaphore.h>

enum { STEPS = 40, MOST = 3 };

pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t go[MOST], held;
static volatile int done;
static int log_fd;
static const char *how;

__attribute__((noinline)) static void hold_asleep(int ms)
{
    pthread_mutex_lock(&pool_lock);
    sem_post(&held);
    why_sleep_ms(ms);
    pthread_mutex_unlock(&pool_lock);
}

__attribute__((noinline)) static void hold_writing(void)
{
    static char block[1 << 20];
    pthread_mutex_lock(&pool_lock);
    sem_post(&held);
    int64_t end = why_now() + 35000000; /* however fast the disk is */
    while (why_now() < end)
        if (pwrite(log_fd, block, sizeof block, 0) < 0 || fsync(log_fd) != 0)
            abort();
    pthread_mutex_unlock(&pool_lock);
}

__attribute__((noinline)) static void hold_computing(void)
{
    pthread_mutex_lock(&pool_lock);
    sem_post(&held);
    why_spin_ms(35);
    pthread_mutex_unlock(&pool_lock);
}

static void *holder(void *arg)
{
    sem_t *mine = arg;
    prctl(PR_SET_NAME, "cleaner");
    for (;;) {
        sem_wait(mine);
        if (done)
            return NULL;
        if (strcmp(how, "writing") == 0)
            hold_writing();
        else if (strcmp(how, "computing") == 0)
            hold_computing();
        else if (strcmp(how, "free") != 0)
            hold_asleep(strcmp(how, "convoy") == 0 ? 15 : 35);
        else
            sem_post(&held);
    }
}

int main(int argc, char **argv)
{
    how = argc > 1 ? argv[1] : "asleep";
    int threads = strcmp(how, "convoy") == 0 ? MOST : 1, healthy = strcmp(how, "free") == 0;
    pthread_t t[MOST];
    struct why w = {0};
    int64_t waited = 0;
    log_fd = why_file("pool.log", O_CREAT | O_RDWR);
    sem_init(&held, 0, 0);
    for (int i = 0; i < threads; i++) {
        sem_init(&go[i], 0, 0);
        pthread_create(&t[i], NULL, holder, &go[i]);
    }
    why_begin(&w);
    for (int i = 0; i < STEPS; i++) {
        STAVE_SCOPE("step", "step", "n", i);
        for (int k = 0; k < threads; k++)
            sem_post(&go[k]);
        sem_wait(&held);
        why_spin_ms(healthy ? 30 : 10);
        int64_t begin = why_now();
        for (int k = 0; k < threads; k++) {
            pthread_mutex_lock(&pool_lock);
            pthread_mutex_unlock(&pool_lock);
        }
        waited += why_now() - begin;
        for (int k = 1; k < threads; k++)
            sem_wait(&held);
    }
    why_end(&w);
    done = 1;
    for (int i = 0; i < threads; i++) {
        sem_post(&go[i]);
        pthread_join(t[i], NULL);
    }
    const char *function = strcmp(how, "writing") == 0     ? "hold_writing"
                           : strcmp(how, "computing") == 0 ? "hold_computing"
                                                           : "hold_asleep";
    char culprit[128];
    snprintf(culprit, sizeof culprit,
             "\"name\": \"cleaner\", \"function\": \"%s\", \"lock\": \"pool_lock\"", function);
    if (!healthy)
        why_cause(&w, "\"lock\"", waited, culprit);
    why_write(&w, "step", STEPS, 1);
}
