/* rings SCENE: threads whose rings are full. Prints `NAME N` for what must be in the file, and
 * `lost N`. */
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stave/stave.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static void expect(const char *name, unsigned long long n)
{
    printf("%s %llu\n", name, n);
}

/* More open slices than the ring has space for their ends: waiting for space would never end. */
static void down(int depth)
{
    STAVE_SCOPE("rings", "deep");
    if (depth > 1)
        down(depth - 1);
}

static void scene_deep(void)
{
    enum { N = 3000 };
    down(N);
    expect("deep", N);
}

/* The writer gets no time while this thread runs: both on one CPU, and it only when that is
 * idle. */
static void hold_writer(bool on)
{
    static cpu_set_t all;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    if (on)
        sched_getaffinity(0, sizeof all, &all);
    sched_setaffinity(0, sizeof one, on ? &one : &all);
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *e; tasks && (e = readdir(tasks));) {
        pid_t tid = (pid_t)strtol(e->d_name, NULL, 10);
        if (tid == 0 || tid == getpid())
            continue;
        sched_setaffinity(tid, sizeof one, on ? &one : &all);
        sched_setscheduler(tid, on ? SCHED_IDLE : SCHED_OTHER, &(struct sched_param){0});
    }
    if (tasks)
        closedir(tasks);
}

/* The room for an end is kept to the last byte: a ring that holds an odd number of heads has room
 * for one that it must not take. */
static void scene_odd(void)
{
    enum { N = 3000, ROUNDS = 20 };
    STAVE_INSTANT("rings", "one"); /* now there is a writer */
    for (int i = 0; i < ROUNDS; i++) {
        stave_flush();
        hold_writer(true);
        STAVE_INSTANT("rings", "one");
        down(N);
        hold_writer(false);
    }
    expect("(deep|one)", (unsigned long long)(N + 1) * ROUNDS + 1);
}

/* A text that becomes longer after it was measured (here by a signal handler, which needs no second
 * core): the record does not grow over those that nobody has read. */
static volatile char text[8192];

static void grow(int signal)
{
    (void)signal;
    text[8] = 'x';
}

static void scene_texts(void)
{
    enum { N = 500000 };
    struct itimerval often = {.it_interval.tv_usec = 50, .it_value.tv_usec = 50}, never = {0};
    sigaction(SIGALRM, &(struct sigaction){.sa_handler = grow, .sa_flags = SA_RESTART}, NULL);
    for (size_t i = 0; i + 1 < sizeof text; i++)
        text[i] = 'x';
    setitimer(ITIMER_REAL, &often, NULL);
    for (int i = 0; i < N; i++) {
        text[8] = 0;
        STAVE_INSTANT("rings", "texts", "i", i, "text", (const char *)(uintptr_t)text);
    }
    setitimer(ITIMER_REAL, &never, NULL);
    expect("texts", N);
}

/* Ends by hand, with and without arguments, find their begins. */
static void scene_by_hand(void)
{
    enum { N = 100000 };
    for (int i = 0; i < N; i++) {
        STAVE_BEGIN("rings", "outer");
        STAVE_BEGIN("rings", "inner", "i", i);
        if (i % 2)
            STAVE_END("rings");
        else
            STAVE_END("rings", "result", i);
        STAVE_END("rings");
        STAVE_END("rings"); /* of nothing: ignored */
    }
    expect("outer", N);
    expect("inner", N);
}

/* The end of a begin that was not recorded closes nobody else's slice. */
static void scene_switched(void)
{
    STAVE_BEGIN("rings", "on");
    stave_set_categories("none");
    STAVE_BEGIN("rings", "off");
    stave_set_categories("*");
    STAVE_END("rings");
    STAVE_END("rings");
    expect("on", 1);
    expect("off", 0);
}

static void *fill(void *arg)
{
    for (int i = 0; i < 200000; i++)
        STAVE_INSTANT("rings", "fill", "i", i);
    return arg;
}

static void scene_threads(void)
{
    enum { THREADS = 4 };
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&t[i], NULL, fill, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    expect("fill", 200000ull * THREADS);
}

static const struct {
    const char *name;
    void (*run)(void);
} scenes[] = {{"deep", scene_deep},       {"odd", scene_odd},           {"texts", scene_texts},
              {"by_hand", scene_by_hand}, {"switched", scene_switched}, {"threads", scene_threads}};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < sizeof scenes / sizeof *scenes; i++) {
        if (strcmp(argv[1], scenes[i].name) != 0)
            continue;
        scenes[i].run();
        struct stave_counts c = {.size = sizeof c};
        stave_flush();
        stave_count(&c);
        expect("lost", c.lost_full + c.lost_nested + c.lost_ring + c.lost_output);
        return 0;
    }
    return 2;
}
