/* Waits whose causes are known. Each line is what a thread has measured itself: what it waited for,
 * its own number, the number of the thread that ended the wait (0: an interrupt), when it began and
 * ended, and how long that is, in ns. It does nothing else meanwhile.
 *
 *     locks          mutexes in turn, a sleep, a pipe, and a connection over loopback */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 8 };

pthread_mutex_t first_lock = PTHREAD_MUTEX_INITIALIZER, second_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t turn;
static int channel[2], connection[2], holder;

/* As traces have it. */
static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_BOOTTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void rest(int ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000l}, NULL);
}

static void say(const char *what, int by, int64_t begin)
{
    int64_t end = now();
    printf("%s %d %d %lld %lld %lld\n", what, gettid(), by, (long long)begin, (long long)end,
           (long long)(end - begin));
    fflush(stdout);
}

/* Holds each lock for its time; the waiter asks for it just after. */
static void *hold(void *arg)
{
    (void)arg;
    holder = gettid();
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_t *lock = i % 2 ? &second_lock : &first_lock;
        pthread_mutex_lock(lock);
        pthread_barrier_wait(&turn);
        rest(i % 2 ? 40 : 20);
        pthread_mutex_unlock(lock);
        pthread_barrier_wait(&turn);
    }
    rest(30);
    if (write(channel[1], "x", 1) != 1)
        abort();
    rest(30);
    if (write(connection[1], "x", 1) != 1)
        abort();
    return NULL;
}

static void *wait_for_locks(void *arg)
{
    int64_t before;
    char c;
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        pthread_mutex_t *lock = i % 2 ? &second_lock : &first_lock;
        pthread_barrier_wait(&turn);
        before = now();
        pthread_mutex_lock(lock);
        say(i % 2 ? "second_lock" : "first_lock", holder, before);
        pthread_mutex_unlock(lock);
        pthread_barrier_wait(&turn);
    }
    before = now();
    if (read(channel[0], &c, 1) != 1)
        abort();
    say("pipe", holder, before);
    before = now();
    if (read(connection[0], &c, 1) != 1)
        abort();
    say("socket", holder, before);
    return NULL;
}

static void connect_to_self(void)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof to;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    connection[1] = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listener, (struct sockaddr *)&to, size) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&to, &size) != 0 ||
        connect(connection[1], (struct sockaddr *)&to, size) != 0 ||
        (connection[0] = accept(listener, NULL, NULL)) < 0)
        abort();
}

int main(void)
{
    pthread_t threads[2];
    if (pipe(channel) != 0)
        abort();
    connect_to_self();
    for (int i = 0; i < 4; i++) {
        int64_t before = now();
        rest(25);
        say("sleep", 0, before);
    }
    pthread_barrier_init(&turn, NULL, 2);
    pthread_create(&threads[0], NULL, hold, NULL);
    pthread_create(&threads[1], NULL, wait_for_locks, NULL);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    return 0;
}
