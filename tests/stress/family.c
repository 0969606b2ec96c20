/* family SCENE PROGRESS: a traced program and its forked children, in one session. Every process
 * records instants with its number and a running count, and writes the count to the file PROGRESS
 * after each one (8 bytes per process, mapped): what must be in the traces. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stave/stave.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static _Atomic uint64_t *progress; /* [0] is the first process */
enum { SLOTS = 512 };

static void record(uint64_t who, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        STAVE_INSTANT("seq", "n", "thread", who, "seq", progress[who]);
        progress[who]++;
    }
}

static int wait_for(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

/* A child that runs `body` and ends by exit(0). */
static pid_t child(void (*body)(uint64_t who), uint64_t who)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    body(who);
    exit(0);
}

static void wait_for_progress(uint64_t who, uint64_t n)
{
    while (progress[who] < n)
        usleep(1000);
}

static void much(uint64_t who)
{
    record(who, 20000);
}

static void until_killed(uint64_t who)
{
    for (;;)
        record(who, 1000);
}

static void quick_exit_body(uint64_t who)
{
    record(who, 1000);
    _exit(0);
}

/* ---- scenes ---- */

static int scene_workers(void) /* many at once; some end without a goodbye */
{
    enum { N = 40 };
    pid_t pids[N];
    record(0, 100);
    for (uint64_t i = 0; i < N; i++)
        pids[i] = child(i % 2 ? much : quick_exit_body, 1 + i);
    record(0, 10000);
    int failed = 0;
    for (int i = 0; i < N; i++)
        failed |= wait_for(pids[i]);
    record(0, 100);
    return failed;
}

static int scene_killed(void) /* workers killed in the middle; nothing to recover */
{
    for (uint64_t i = 1; i <= 20; i++) {
        pid_t pid = child(until_killed, i);
        wait_for_progress(i, 100 * i);
        kill(pid, SIGKILL);
        wait_for(pid);
        record(0, 10);
    }
    return 0;
}

static void generation(uint64_t who)
{
    record(who, 500);
    if (who < 5)
        wait_for(child(generation, who + 1));
    record(who, 500);
}

static int scene_generations(void)
{
    generation(0);
    return 0;
}

static void *thread_body(void *arg)
{
    record((uint64_t)(uintptr_t)arg, 5000);
    return NULL;
}

static void with_threads(uint64_t who)
{
    pthread_t t[8];
    for (uint64_t i = 0; i < 8; i++)
        pthread_create(&t[i], NULL, thread_body, (void *)(uintptr_t)(who + i));
    for (int i = 0; i < 8; i++)
        pthread_join(t[i], NULL);
}

static int scene_threads(void)
{
    record(0, 10);
    pid_t a = child(with_threads, 8), b = child(with_threads, 16);
    return wait_for(a) | wait_for(b);
}

/* The parent is gone when the child goes on. `gone` of the slots says so. */
static void outlive(uint64_t who)
{
    record(who, 1000);
    while (kill((pid_t)progress[SLOTS - 1], 0) == 0)
        usleep(1000);
    record(who, 100000); /* more than the ring holds: it must notice */
}

static void outlive_and_quit(uint64_t who)
{
    record(who, 1000);
    while (kill((pid_t)progress[SLOTS - 1], 0) == 0)
        usleep(1000);
    record(who, 100);
    _exit(0);
}

/* The scene runs in a grandchild of the test, so that the process that waits is not the one that
 * dies. */
static int orphan(void (*body)(uint64_t), bool by_kill)
{
    progress[SLOTS - 1] = (uint64_t)getpid();
    record(0, 100);
    printf("orphan %d\n", (int)child(body, 1));
    fflush(stdout);
    wait_for_progress(1, 1000);
    record(0, 100);
    if (by_kill)
        kill(getpid(), SIGKILL);
    return 0;
}

static int scene_orphan(void)
{
    return orphan(outlive, false);
}

static int scene_orphan_killed(void)
{
    return orphan(outlive, true);
}

static int scene_orphan_quits(void)
{
    return orphan(outlive_and_quit, false);
}

static void stay(uint64_t who)
{
    record(who, 1000);
    sleep(1000);
}

static int scene_all_killed(void) /* the test kills the group; until then all live */
{
    record(0, 100);
    printf("child %d\n", (int)child(stay, 1));
    fflush(stdout);
    wait_for_progress(1, 1000);
    record(0, 100);
    sleep(1000);
    return 0;
}

static int scene_restart(void) /* the parent stops and starts again while the child lives */
{
    int go[2];
    if (pipe(go) != 0)
        return 1;
    record(0, 100);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        char c;
        record(1, 1000);
        if (read(go[0], &c, 1) != 1)
            _exit(1);
        record(1, 1000);
        stave_flush();
        record(1, 10);
        exit(0);
    }
    wait_for_progress(1, 1000);
    stave_stop();
    record(0, 0);
    struct stave_options o = {.size = sizeof o, .out = "again.pftrace", .full = STAVE_FULL_BLOCK};
    if (stave_start(&o, NULL) != 0 || write(go[1], "x", 1) != 1)
        return 1;
    printf("orphan %d\n", (int)pid);
    int status = wait_for(pid);
    STAVE_INSTANT("life", "again");
    return status;
}

static void flush_and_stop(uint64_t who)
{
    record(who, 1000);
    if (stave_flush() != 0)
        exit(1);
    stave_stop();
    stave_stop();
    STAVE_INSTANT("life", "while stopped");
    int first = stave_start(NULL, NULL), again = stave_start(NULL, NULL);
    if (first != 0 || again != 0)
        exit(1);
    record(who, 1000);
    struct stave_counts c = {.size = sizeof c};
    stave_flush();
    stave_count(&c);
    if (c.events < 2000)
        exit(1);
}

static void finish_twice(uint64_t who) /* by hand, then by its exit() */
{
    record(who, 500);
    stave_finish();
}

static int scene_finished(void)
{
    record(0, 10);
    return wait_for(child(finish_twice, 1));
}

static int scene_control(void) /* a child that flushes, stops and starts */
{
    record(0, 10);
    return wait_for(child(flush_and_stop, 1));
}

static int scene_disk_full(
    void) /* the parent's file cannot grow: the blocked child must not wait for ever */
{
    struct rlimit small = {20000, 20000};
    record(0, 10);
    struct stave_counts c = {.size = sizeof c};
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        record(1, 10);
        wait_for_progress(0, 11);
        for (int i = 0; i < 300000; i++)
            STAVE_INSTANT("life", "too much", "i", i);
        stave_flush();
        stave_count(&c);
        printf("went on, lost %s\n", c.lost_output + c.lost_full ? "some" : "none");
        exit(0);
    }
    wait_for_progress(1, 10);
    setrlimit(RLIMIT_FSIZE, &small);
    record(0, 1);
    return wait_for(pid);
}

static int64_t boot_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_BOOTTIME, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* Each event lies between its own reading of the clock and the next one's, from the first on. */
static void emit_times(uint64_t who)
{
    int64_t begun = boot_ns();
    for (int n = 0; n < 100 || boot_ns() - begun < 50000000; n++) { /* on a busy machine, too */
        STAVE_INSTANT("times", "t", "who", who, "before", boot_ns());
        usleep(100);
    }
}

static int scene_times(void)
{
    emit_times(0);
    return wait_for(child(emit_times, 1));
}

static void paced(uint64_t who) /* a little at a time, until the file `end` is there */
{
    while (access("end", F_OK) != 0) {
        record(who, 10);
        usleep(2000);
    }
}

static int scene_paced(void)
{
    pid_t pid = child(paced, 1);
    paced(0);
    return wait_for(pid);
}

static const struct {
    const char *name;
    int (*run)(void);
} scenes[] = {{"workers", scene_workers},
              {"killed", scene_killed},
              {"generations", scene_generations},
              {"threads", scene_threads},
              {"orphan", scene_orphan},
              {"orphan_killed", scene_orphan_killed},
              {"orphan_quits", scene_orphan_quits},
              {"all_killed", scene_all_killed},
              {"restart", scene_restart},
              {"control", scene_control},
              {"finished", scene_finished},
              {"times", scene_times},
              {"paced", scene_paced},
              {"disk_full", scene_disk_full}};

int main(int argc, char **argv)
{
    int fd = argc == 3 ? open(argv[2], O_RDWR | O_CREAT | O_TRUNC, 0600) : -1;
    if (fd < 0 || ftruncate(fd, 8 * SLOTS) != 0)
        return 2;
    progress = mmap(NULL, 8 * SLOTS, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (progress == MAP_FAILED)
        return 2;
    for (size_t i = 0; i < sizeof scenes / sizeof *scenes; i++)
        if (strcmp(argv[1], scenes[i].name) == 0)
            return scenes[i].run() != 0;
    return 2;
}
