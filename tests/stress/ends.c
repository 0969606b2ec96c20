/* ends HOW PROGRESS [EVENTS]: two threads record moments with a running number until the program
 * ends in the way HOW. A thread that found the gate open and has tried adds to its count in the
 * file PROGRESS (8 bytes each, mapped): so many must be in the trace, in it or as lost. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stave/stave.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

enum { THREADS = 2, ENOUGH = 5000 };

static _Atomic uint64_t *progress;
static uint64_t limit;

static void *record(void *arg)
{
    uint64_t thread = (uint64_t)(uintptr_t)arg;
    STAVE_I_SITE(site, STAVE_KIND_INSTANT, NONE, "ends", "n", 0, 0, "thread", thread, "seq",
                 thread);
    for (uint64_t i = 0; limit == 0 || i < limit; i++) {
        if (!STAVE_I_ON(site))
            continue;
        stave_i_emit(&site, (const uint64_t[]){thread, progress[thread]});
        progress[thread]++;
    }
    return NULL;
}

static void wait_for_enough(void)
{
    while (progress[0] < ENOUGH || progress[1] < ENOUGH)
        usleep(100);
}

static void end_well(int sig)
{
    (void)sig;
    stave_finish();
    _exit(7);
}

/* Before the threads run. */
static void prepare(const char *how)
{
    struct rlimit no_core = {0, 0}, small = {100000, 100000};
    setrlimit(RLIMIT_CORE, &no_core);
    if (strcmp(how, "limit") == 0)
        setrlimit(RLIMIT_FSIZE, &small);
    if (strcmp(how, "handler") == 0 || strcmp(how, "handler_before") == 0)
        signal(SIGTERM, end_well);            /* its own */
    if (strcmp(how, "handler_before") == 0) { /* the session begins after it was set */
        stave_stop();
        stave_start(NULL, NULL);
    }
}

/* Until the kernel ends it, in a memory cgroup. Without one it gives up. */
static void take_all_memory(void)
{
    for (int i = 0; i < 256; i++) {
        volatile char *block = malloc(1 << 20); /* else a compiler leaves it out */
        for (size_t k = 0; block && k < 1 << 20; k += 512)
            block[k] = (char)(i + 1);
    }
    _exit(9);
}

/* While they run, which they may do for ever: `wait` is ended by others. */
static void end_by_signal(const char *how)
{
    static const struct {
        const char *how;
        int sig;
    } signals[] = {{"term", SIGTERM},          {"int", SIGINT},      {"hup", SIGHUP},
                   {"kill", SIGKILL},          {"handler", SIGTERM}, {"abort", SIGABRT},
                   {"handler_before", SIGTERM}};
    wait_for_enough();
    if (strcmp(how, "ignored") == 0) { /* by whoever started it, as nohup does */
        kill(getpid(), SIGHUP);
        end_well(SIGHUP);
    }
    if (strncmp(how, "signal:", 7) == 0)
        kill(getpid(), (int)strtol(how + 7, NULL, 10));
    if (strcmp(how, "hog") == 0)
        take_all_memory();
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++)
        if (strcmp(how, signals[i].how) == 0)
            kill(getpid(), signals[i].sig);
    for (;;)
        pause();
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    int fd = argc > 2 ? open(argv[2], O_RDWR | O_CREAT | O_TRUNC, 0600) : -1;
    if (fd < 0 || ftruncate(fd, 4096) != 0)
        return 2;
    progress = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (progress == MAP_FAILED)
        return 2;
    limit = argc > 3 ? strtoull(argv[3], NULL, 10) : 0;
    prepare(argv[1]);
    for (uintptr_t i = 0; i < THREADS; i++)
        if (pthread_create(&threads[i], NULL, record, (void *)i) != 0)
            return 3;
    if (limit == 0)
        end_by_signal(argv[1]);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    if (strcmp(argv[1], "trigger") == 0)
        return stave_trigger("the end") != 1;
    if (strcmp(argv[1], "quit") == 0)
        _exit(0);
    if (strcmp(argv[1], "exit") == 0)
        exit(5);
    if (strcmp(argv[1], "sudden") == 0)
        abort();
    return 0;
}
