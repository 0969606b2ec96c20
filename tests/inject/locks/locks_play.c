/* Waits for locks, for tests/inject/locks.sh. It knows nothing of Stave.
 *
 *     locks_play waits     one wait of each kind, 30 ms or more, ended by the thread "helper" in
 *                          let_go(); prints how many
 *     locks_play storm     many threads and short waits; prints the sum that a lock guarded */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
sem_t semaphore, held;
static int is_ready;
static _Atomic int turn_of_main = -1; /* which of its waits main is about to begin */

static void pause_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&t, &t) != 0) {}
}

/* However slow the machine is: main is there, and the kernel has put it to sleep. */
static void until_main_waits(int turn)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)getpid());
    for (;;) {
        FILE *f = turn_of_main == turn ? fopen(path, "re") : NULL;
        size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
        text[n] = 0;
        if (f)
            fclose(f);
        const char *name_end = strrchr(text, ')');
        if (name_end && strncmp(name_end, ") S", 3) == 0)
            return;
        pause_ms(1);
    }
}

__attribute__((noinline)) static void let_go(int turn)
{
    until_main_waits(turn);
    pause_ms(30);
    switch (turn) {
    case 0: pthread_mutex_unlock(&mutex); break;
    case 1: pthread_rwlock_unlock(&rwlock); break;
    case 2:
        pthread_mutex_lock(&mutex);
        is_ready = 1;
        pthread_cond_signal(&condition);
        pthread_mutex_unlock(&mutex);
        break;
    case 3: sem_post(&semaphore); break;
    }
    __asm__ volatile(""); /* no jump to the libc: the stack is to show us */
}

static void *helper(void *arg)
{
    prctl(PR_SET_NAME, "helper");
    pthread_mutex_lock(&mutex);
    pthread_rwlock_wrlock(&rwlock);
    sem_post(&held);
    for (int turn = 0; turn < 4; turn++)
        let_go(turn);
    until_main_waits(4);
    pause_ms(30);
    return arg;
}

static int waits(void)
{
    pthread_t t;
    struct timespec limit;
    sem_init(&semaphore, 0, 0);
    sem_init(&held, 0, 0);
    if (pthread_create(&t, NULL, helper, NULL) != 0)
        return 1;
    while (sem_trywait(&held) != 0)
        pause_ms(1);
    turn_of_main = 0;
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
    turn_of_main = 1;
    pthread_rwlock_rdlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
    pthread_mutex_lock(&mutex);
    turn_of_main = 2;
    while (!is_ready)
        pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
    turn_of_main = 3;
    sem_wait(&semaphore);
    turn_of_main = 4;
    pthread_join(t, NULL);
    /* Errors and time limits are the libc's own. */
    clock_gettime(CLOCK_REALTIME, &limit);
    if (sem_timedwait(&semaphore, &limit) != -1 || errno != ETIMEDOUT)
        return 2;
    pthread_mutex_t checks;
    pthread_mutexattr_t how;
    pthread_mutexattr_init(&how);
    pthread_mutexattr_settype(&how, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&checks, &how);
    if (pthread_mutex_lock(&checks) != 0 || pthread_mutex_lock(&checks) != EDEADLK)
        return 3;
    puts("whole");
    return 0;
}

static long sum;

static void *adds(void *arg)
{
    for (int i = 0; i < 20000; i++) {
        pthread_mutex_lock(&mutex);
        sum++;
        pthread_mutex_unlock(&mutex);
    }
    return arg;
}

static int storm(void)
{
    enum { THREADS = 16 };
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&t[i], NULL, adds, NULL) != 0)
            return 1;
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    printf("%ld\n", sum);
    return 0;
}

int main(int argc, char **argv)
{
    return argc > 1 && strcmp(argv[1], "storm") == 0 ? storm() : waits();
}
