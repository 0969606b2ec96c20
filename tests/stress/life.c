/* life SCENE: what happens to traced programs: they fork, exec, crash, load and unload, start
 * threads by the thousand, trace in signal handlers and at their very end. Each scene prints
 * `expect N NAME` lines: so many events of that name must be in the file or in `lost`. */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stave/stave.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static void expect(uint64_t n, const char *name)
{
    printf("expect %llu %s\n", (unsigned long long)n, name);
    fflush(stdout);
}

static void print_lost(void)
{
    struct stave_counts c = {.size = sizeof c};
    stave_flush();
    stave_count(&c);
    printf("lost full=%llu nested=%llu ring=%llu output=%llu\n", (unsigned long long)c.lost_full,
           (unsigned long long)c.lost_nested, (unsigned long long)c.lost_ring,
           (unsigned long long)c.lost_output);
    fflush(stdout);
}

static void parent_events(int n)
{
    for (int i = 0; i < n; i++)
        STAVE_INSTANT("life", "parent", "i", i);
}

static void child_events(int n)
{
    for (int i = 0; i < n; i++)
        STAVE_INSTANT("life", "child", "i", i);
}

static int wait_for(pid_t pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return status;
}

/* ---- processes ---- */

static int scene_fork(void)
{
    STAVE_SCOPE("life", "around");
    parent_events(1000);
    pid_t pid = fork();
    if (pid == 0) {
        child_events(1000);
        exit(0);
    }
    parent_events(1000);
    int status = wait_for(pid);
    expect(2000, "parent");
    expect(1000, "child");
    return status;
}

static int scene_fork_exit(void) /* _exit: the parent has the child's events */
{
    parent_events(100);
    pid_t pid = fork();
    if (pid == 0) {
        child_events(1000);
        _exit(0);
    }
    int status = wait_for(pid);
    expect(100, "parent");
    expect(1000, "child");
    return status;
}

static int scene_fork_quiet(void) /* a child that never traces leaves nothing */
{
    parent_events(100);
    for (int i = 0; i < 50; i++) {
        pid_t pid = fork();
        if (pid == 0)
            exit(0);
        if (wait_for(pid) != 0)
            return 1;
    }
    expect(100, "parent");
    return 0;
}

static void *trace_all_the_time(void *stop)
{
    uint64_t n = 0;
    while (!*(_Atomic int *)stop) {
        STAVE_INSTANT("life", "busy");
        n++;
    }
    return (void *)(uintptr_t)n;
}

static int scene_fork_busy(void) /* while other threads trace */
{
    _Atomic int stop = 0;
    pthread_t t;
    void *n;
    pthread_create(&t, NULL, trace_all_the_time, (void *)(uintptr_t)&stop);
    int failed = 0;
    for (int i = 0; i < 30; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            child_events(10);
            _exit(0);
        }
        failed |= wait_for(pid);
    }
    stop = 1;
    pthread_join(t, &n);
    expect((uint64_t)(uintptr_t)n, "busy");
    expect(300, "child");
    return failed;
}

static int scene_clone(void) /* behind the C library's back */
{
    parent_events(1000);
    pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) {
        child_events(1000);
        syscall(SYS_exit_group, 0);
    }
    parent_events(1000);
    int status = wait_for(pid);
    expect(2000, "parent");
    expect(1000, "child");
    return status;
}

/* A child that has our handler and our memory, but is not us. */
static int end_vforked(void)
{
    int status = 0;
    pid_t pid = vfork();
    if (pid == 0) {
        /* That is the test. NOLINTNEXTLINE(clang-analyzer-unix.Vfork) */
        kill(getpid(), SIGTERM);
        _exit(127);
    }
    waitpid(pid, &status, 0);
    return !WIFSIGNALED(status) || WTERMSIG(status) != SIGTERM;
}

static int scene_vfork(void)
{
    parent_events(100);
    pid_t pid = vfork();
    if (pid == 0) {
        execl("/bin/true", "true", (char *)NULL);
        _exit(127);
    }
    int status = wait_for(pid);
    char *argv[] = {(char *)(uintptr_t) "true", NULL};
    if (posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ) != 0)
        return 1;
    status |= wait_for(pid);
    status |= system("true");
    parent_events(100);
    status |= end_vforked();
    parent_events(100);
    expect(300, "parent");
    return status;
}

/* ---- threads ---- */

static pthread_key_t late_key;

static void trace_late(void *arg)
{
    (void)arg;
    STAVE_INSTANT("life", "tls destructor");
}

static void *few_events(void *arg)
{
    pthread_setspecific(late_key, arg);
    STAVE_SCOPE("life", "thread");
    for (int i = 0; i < 10; i++)
        STAVE_INSTANT("life", "in thread");
    return NULL;
}

static int many_threads(unsigned at_once, unsigned in_all)
{
    pthread_key_create(&late_key, trace_late);
    pthread_t t[500];
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 64 << 10);
    for (unsigned done = 0; done < in_all; done += at_once) {
        for (unsigned i = 0; i < at_once; i++)
            if (pthread_create(&t[i], &attr, few_events, t) != 0)
                return 1;
        for (unsigned i = 0; i < at_once; i++)
            pthread_join(t[i], NULL);
    }
    expect(10ull * in_all, "in thread");
    expect(in_all, "tls destructor");
    return 0;
}

static int scene_threads(void)
{
    return many_threads(500, 500);
}

static int scene_churn(void)
{
    return many_threads(4, getenv("STAVE_LONG") ? 100000 : 5000);
}

/* ---- signals and the end ---- */

static volatile uint64_t n_handled;

static void on_signal(int sig)
{
    (void)sig;
    STAVE_SCOPE("life", "handler");
    n_handled++;
}

static int scene_signals(void)
{
    struct sigaction act = {.sa_handler = on_signal};
    struct itimerval every = {{0, 100}, {0, 100}};
    sigaction(SIGALRM, &act, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    uint64_t n = 0;
    struct timespec t0, now;
    clock_gettime(CLOCK_MONOTONIC, &t0);
    do {
        STAVE_SCOPE("life", "main loop", "n", n);
        n++;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - t0.tv_sec < 1);
    struct itimerval never = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &never, NULL);
    expect(n, "main loop");
    expect(n_handled, "handler");
    return 0;
}

static void at_the_end(void)
{
    STAVE_INSTANT("life", "atexit");
}

static int scene_atexit(void)
{
    atexit(at_the_end);
    parent_events(10);
    expect(10, "parent");
    expect(1, "atexit");
    return 0;
}

static int scene_abort(void)
{
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    parent_events(1000);
    expect(1000, "parent");
    abort();
}

static int scene_segv(void)
{
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    parent_events(1000);
    expect(1000, "parent");
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
    return 0;
}

static int scene_quit(void) /* _exit without a goodbye */
{
    parent_events(1000);
    expect(1000, "parent");
    _exit(0);
}

/* ---- sessions ---- */

static int scene_restart(void)
{
    parent_events(10); /* in the file of STAVE_OUT */
    stave_flush();
    stave_flush();
    stave_stop();
    stave_stop();
    stave_flush();
    struct stave_options o = {.size = sizeof o, .out = "second.pftrace", .full = STAVE_FULL_BLOCK};
    for (int i = 0; i < 20; i++) {
        int first = stave_start(&o, NULL), again = stave_start(&o, NULL);
        if (first != 0 || again != 0)
            return 1;
        child_events(100);
        stave_stop();
    }
    child_events(5); /* off: in no file */
    expect(10, "parent");
    return 0;
}

static int scene_plugin(void)
{
    for (int i = 0; i < 20; i++) {
        void *so = dlopen(getenv("PLUGIN"), RTLD_NOW | RTLD_LOCAL);
        if (!so) {
            printf("%s\n", dlerror());
            return 1;
        }
        void (*work)(int);
        *(void **)(void *)&work = dlsym(so, "plugin_work");
        work(100);
        stave_set_categories(i % 2 ? "*" : "plugin,life"); /* walks all call places */
        dlclose(so);
        stave_set_categories("*");
    }
    expect(2000, "in plugin");
    return 0;
}

static int scene_disk_full(
    void) /* files cannot grow any more: tracing ends, the program does not */
{
    parent_events(100);
    stave_flush();
    struct rlimit small = {20000, 20000};
    setrlimit(RLIMIT_FSIZE, &small);
    for (int i = 0; i < 200000; i++)
        STAVE_INSTANT("life", "too much", "i", i);
    stave_flush();
    printf("went on\n");
    print_lost();
    return 0;
}

static int scene_drop(void) /* more than the ring takes: in the file or counted */
{
    enum { N = 2000000 };
    for (uint64_t i = 0; i < N; i++)
        STAVE_INSTANT("life", "flood");
    expect(N, "flood");
    return 0;
}

static void flood(int n)
{
    for (int i = 0; i < n; i++) {
        STAVE_SCOPE("life", "step", "i", i);
    }
}

/* Until the recorder has written it; after a minute the script finds that it is not there. */
static void wait_for_file(const char *path)
{
    for (int i = 0; i < 6000 && access(path, F_OK) != 0; i++)
        usleep(10000);
}

static int scene_flight(void) /* STAVE_FULL=overwrite: files only when something happens */
{
    flood(1000000);
    STAVE_INSTANT("life", "last words", "n", 1);
    int first = stave_trigger("by hand");
    flood(100000);
    int second = stave_trigger("again");
    raise(SIGUSR1);
    wait_for_file("t.3.pftrace");
    stave_flush(); /* now the recorder has seen all that was before */
    {
        STAVE_SCOPE("life", "slow");
        usleep(60000);
    }
    wait_for_file("t.4.pftrace");
    flood(1000);
    printf("files %d %d\n", first, second);
    return first != 1 || second != 2;
}

static const struct {
    const char *name;
    int (*run)(void);
} scenes[] = {{"flight", scene_flight},       {"fork", scene_fork},
              {"fork_exit", scene_fork_exit}, {"fork_quiet", scene_fork_quiet},
              {"fork_busy", scene_fork_busy}, {"clone", scene_clone},
              {"vfork", scene_vfork},         {"threads", scene_threads},
              {"churn", scene_churn},         {"signals", scene_signals},
              {"atexit", scene_atexit},       {"abort", scene_abort},
              {"segv", scene_segv},           {"quit", scene_quit},
              {"restart", scene_restart},     {"plugin", scene_plugin},
              {"disk_full", scene_disk_full}, {"drop", scene_drop}};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc == 2 && i < sizeof scenes / sizeof *scenes; i++) {
        if (strcmp(argv[1], scenes[i].name) != 0)
            continue;
        int status = scenes[i].run();
        print_lost();
        return status != 0;
    }
    return 2;
}
