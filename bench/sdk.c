/* What the SDK costs: `sdk [PART…]` with the parts burst, sustained, threads, writer, marker.
 *
 * Prints `NAME VALUE UNIT` for bench/run, which knows the budgets. Every figure is the median of
 * repeated runs in one process, next to the references measured in the same run: one counter read
 * and one 16-byte store, in turn with the bursts; a write to the kernel's trace_marker. Exits 1
 * when an event was lost. */
#include "measure.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stave/stave.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BURST = 200000, RUNS = 15 };

static int failed;
static char path[256];

static void start(size_t buffer, enum stave_full full)
{
    struct stave_options o = {
        .size = sizeof o, .out = path, .buffer_bytes = buffer, .full = full, .categories = "*"};
    if (stave_start(&o, NULL) != 0)
        exit(2);
}

static uint64_t lost(void)
{
    struct stave_counts c = {.size = sizeof c};
    stave_count(&c);
    return c.lost_full + c.lost_nested + c.lost_ring + c.lost_output;
}

static void stop(const char *name, uint64_t expected)
{
    stave_flush();
    struct stave_counts c = {.size = sizeof c};
    stave_count(&c);
    uint64_t gone = lost();
    if (gone || (expected && c.events < expected)) {
        fprintf(stderr, "bench: sdk: %s: %llu lost, %llu of %llu written\n", name,
                (unsigned long long)gone, (unsigned long long)c.events,
                (unsigned long long)expected);
        failed = 1;
    }
    stave_stop();
}

/* ---- bodies: `n` events each ---- */

static unsigned char store_area[4 << 20] __attribute__((aligned(64)));

__attribute__((noinline)) static void reference(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        uint64_t *at = (uint64_t *)(void *)(store_area + (i * 16 & (sizeof store_area - 1)));
        at[0] = i;
#if defined(__x86_64__)
        at[1] = __builtin_ia32_rdtsc();
#else
        at[1] = (uint64_t)clock_ns(CLOCK_MONOTONIC);
#endif
        __asm__ volatile("" ::: "memory");
    }
}

__attribute__((noinline)) static void scopes(uint64_t n)
{
    for (uint64_t i = 0; i < n; i += 2) {
        STAVE_SCOPE("bench", "scope");
    }
}

__attribute__((noinline)) static void begins(uint64_t n)
{
    for (uint64_t i = 0; i < n; i += 2) {
        STAVE_BEGIN("bench", "begin");
        STAVE_END("bench");
    }
}

__attribute__((noinline)) static void two_ints(uint64_t n)
{
    for (uint64_t i = 0; i < n; i += 2) {
        STAVE_SCOPE("bench", "ints", "a", i, "b", (int)i);
    }
}

__attribute__((noinline)) static void one_text(uint64_t n)
{
    char text[] = "twenty bytes of text";
    for (uint64_t i = 0; i < n; i++) {
        text[3] = (char)('a' + i % 26);
        STAVE_INSTANT("bench", "text", "t", text);
    }
}

static int evaluated;
__attribute__((noinline)) static int expensive(void)
{
    return ++evaluated;
}

__attribute__((noinline)) static void disabled(uint64_t n)
{
    for (uint64_t i = 0; i < n; i++) {
        STAVE_INSTANT("off", "never", "v", expensive());
        __asm__ volatile("" ::: "memory");
    }
}

static double burst_ns(void (*body)(uint64_t), uint64_t n)
{
    int64_t t0 = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    body(n);
    return (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - t0) / (double)n;
}

struct cost {
    double ns, ratio; /* per event; to the reference */
};

/* Of bursts that the ring holds, each beside one of the reference: what slows the machine for a
 * while slows both. */
static struct cost bursts(void (*body)(uint64_t), uint64_t n)
{
    double ns[RUNS], ratio[RUNS];
    for (int i = 0; i < RUNS; i++) {
        stave_flush();
        double ref = burst_ns(reference, BURST);
        ns[i] = burst_ns(body, n);
        ratio[i] = ns[i] / ref;
    }
    return (struct cost){median(ns, RUNS), median(ratio, RUNS)};
}

static double file_bytes(void)
{
    struct stat st;
    return stat(path, &st) == 0 ? (double)st.st_size : 0;
}

/* ---- parts ---- */

static void burst_part(void)
{
    reference(sizeof store_area / 16); /* first touch */
    start((size_t)16 << 20, STAVE_FULL_DROP);
    for (int i = 0; i < 6; i++) { /* first touch of the ring */
        scopes(BURST);
        stave_flush();
    }
    row("sdk_reference", bursts(reference, BURST).ns, "ns");
    struct cost c = bursts(begins, BURST);
    row("sdk_begin_end", c.ns, "ns");
    row("sdk_begin_end_ratio", c.ratio, "of reference");
    c = bursts(scopes, BURST);
    row("sdk_scope", c.ns, "ns");
    row("sdk_scope_ratio", c.ratio, "of reference");
    row("sdk_two_ints", bursts(two_ints, BURST).ns, "ns");
    row("sdk_text", bursts(one_text, BURST).ns, "ns");
    stave_set_categories("bench");
    row("sdk_disabled", bursts(disabled, 20000000).ns, "ns");
    if (evaluated > 1) {
        fprintf(stderr, "bench: sdk: disabled: the argument was evaluated %d times\n", evaluated);
        failed = 1;
    }
    stop("bursts", 0);
}

/* Two threads, first one of them alone, then both at once, in turn. Their own CPU time: three
 * threads, the writer being one, share two cores here, and the writer's time is measured
 * elsewhere. */
static pthread_barrier_t barrier;
static double thread_took[2][RUNS], alone_took[RUNS];

static void *work(void *arg)
{
    bool is_first = arg == NULL; /* it is measured alone, too */
    scopes(BURST);               /* first touch */
    for (int i = 0; i < RUNS; i++) {
        pthread_barrier_wait(&barrier);
        if (is_first) {
            stave_flush();
            alone_took[i] = burst_ns(scopes, BURST);
            stave_flush();
        }
        pthread_barrier_wait(&barrier);
        thread_took[is_first][i] = burst_ns(scopes, BURST);
    }
    return NULL;
}

static void threads_part(void)
{
    start((size_t)8 << 20, STAVE_FULL_DROP);
    pthread_t other;
    double gain[RUNS];
    pthread_barrier_init(&barrier, NULL, 2);
    if (pthread_create(&other, NULL, work, gain) != 0)
        exit(2);
    work(NULL);
    pthread_join(other, NULL);
    for (int i = 0; i < RUNS; i++) {
        double a = thread_took[0][i], b = thread_took[1][i];
        gain[i] = 2 * alone_took[i] / (a > b ? a : b);
    }
    row("sdk_two_threads", median(gain, RUNS), "times one");
    stop("threads", 0);
}

/* CPU time of the writer thread so far, from the scheduler: other programs on the machine do not
 * count. */
static double writer_cpu_ns(void)
{
    double ns = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *e; tasks && (e = readdir(tasks));) {
        char name[300], text[64] = {0};
        snprintf(name, sizeof name, "/proc/self/task/%s/comm", e->d_name);
        int fd = open(name, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
        close(fd);
        if (n < 12 || strncmp(text, "stave-writer", 12) != 0)
            continue;
        snprintf(name, sizeof name, "/proc/self/task/%s/schedstat", e->d_name);
        fd = open(name, O_RDONLY | O_CLOEXEC);
        n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
        close(fd);
        if (n > 0)
            ns = strtod(text, NULL);
    }
    if (tasks)
        closedir(tasks);
    return ns;
}

static void sustained_part(void)
{
    enum { N = 20000000 };
    double v[3], ours[3], writers[3];
    for (int i = 0; i < 3; i++) {
        start((size_t)4 << 20, STAVE_FULL_BLOCK);
        int64_t t0 = clock_ns(CLOCK_MONOTONIC), c0 = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        double w0 = writer_cpu_ns();
        scopes(N);
        v[i] = (double)(clock_ns(CLOCK_MONOTONIC) - t0) / N;
        ours[i] = (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - c0) / N;
        writers[i] = (writer_cpu_ns() - w0) / N;
        stop("sustained", N);
    }
    row("sdk_sustained", median(v, 3), "ns");
    row("sdk_sustained_tracing_core", median(ours, 3), "ns");
    row("sdk_sustained_writer_core", median(writers, 3), "ns");
    row("sdk_file_bytes", file_bytes() / N, "bytes/event");
}

/* The writer alone: what it needs of a core per event. */
static void writer_part(void)
{
    double v[7], latency[5];
    for (int i = 0; i < 7; i++) {
        start((size_t)64 << 20, STAVE_FULL_DROP);
        uint64_t n = 2000000;
        stave_flush();
        double before = writer_cpu_ns();
        scopes(n);
        stave_flush();
        v[i] = (double)n * 1000 / (writer_cpu_ns() - before);
        stop("writer", n);
    }
    row("sdk_writer", median(v, 7), "M events/s");
    for (int i = 0; i < 5; i++) {
        start((size_t)64 << 20, STAVE_FULL_DROP);
        scopes(1000000);
        int64_t t0 = clock_ns(CLOCK_MONOTONIC);
        stave_stop();
        latency[i] = (double)(clock_ns(CLOCK_MONOTONIC) - t0) / 1e6;
    }
    row("sdk_stop", median(latency, 5), "ms");
}

/* A buffer of our own in the kernel, so that nobody else's is disturbed; mounted for this thread
 * alone where it is not. -1: not allowed. */
static int open_marker(char *folder, size_t size)
{
    static const char mount_point[] = "/sys/kernel/tracing";
    char name[128];
    snprintf(folder, size, "%s/instances/stave-bench-%d", mount_point, (int)getpid());
    if (mkdir(folder, 0700) != 0) {
        bool is_mounted = unshare(CLONE_NEWNS) == 0 &&
                          mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
                          mount("none", mount_point, "tracefs", 0, NULL) == 0;
        if (!is_mounted || mkdir(folder, 0700) != 0)
            return -1;
    }
    snprintf(name, sizeof name, "%s/trace_marker", folder);
    return open(name, O_WRONLY | O_CLOEXEC);
}

static void marker_part(void)
{
    enum { N = 20000 };
    char folder[96];
    int fd = open_marker(folder, sizeof folder);
    static const char text[] = "B|1|scope\n";
    double v[RUNS];
    bool ok = fd >= 0;
    for (int i = 0; ok && i < RUNS; i++) {
        int64_t t0 = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        for (int j = 0; ok && j < N; j++)
            ok = write(fd, text, sizeof text - 1) == sizeof text - 1;
        v[i] = (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - t0) / N;
    }
    if (ok)
        row("peer_trace_marker", median(v, RUNS), "ns");
    else
        fprintf(stderr, "bench: sdk: trace_marker is not measured: needs root and tracefs\n");
    if (fd >= 0)
        close(fd);
    rmdir(folder);
}

static const struct {
    const char *name;
    void (*run)(void);
} parts[] = {{"burst", burst_part},
             {"sustained", sustained_part},
             {"threads", threads_part},
             {"writer", writer_part},
             {"marker", marker_part}};

static void *run_part(void *arg)
{
    parts[(uintptr_t)arg].run();
    return NULL;
}

int main(int argc, char **argv)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/stave-bench-%d.pftrace", tmp ? tmp : "/tmp", (int)getpid());
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        bool wanted = argc == 1;
        for (int a = 1; a < argc; a++)
            wanted |= strcmp(argv[a], parts[i].name) == 0;
        pthread_t thread; /* each on a thread of its own: a ring of the size it asks for */
        if (wanted && pthread_create(&thread, NULL, run_part, (void *)(uintptr_t)i) == 0)
            pthread_join(thread, NULL);
    }
    unlink(path);
    return failed;
}
