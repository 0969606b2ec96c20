/* What the SDK costs, against the budgets of issue "libstave": `sdk [ROW…]`.
 *
 * Every row is the median of repeated runs in one process, next to the references measured in the same run (one counter read and one
 * 16-byte store; a write to the kernel's trace_marker where it may be opened). A row that lost an event fails. Prints
 * `name value unit budget ok|MISSED` and exits 1 when a budget was missed. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stave/stave.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BURST = 200000, RUNS = 15 };

static int missed;
static char path[256];

static int64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* Time of this thread alone: what other programs on the machine take does not count. */
static int64_t thread_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double best; /* of the last median: what an idle machine would show */

static double median(double *v, size_t n)
{
    qsort(v, n, sizeof *v, by_value);
    best = v[0];
    return v[n / 2];
}

static void row(const char *name, double value, const char *unit, double budget, bool at_least)
{
    bool ok = budget <= 0 || (at_least ? value >= budget : value <= budget);
    printf("%-34s %10.2f %-9s", name, value, unit);
    if (budget > 0)
        printf(" %s %8.2f  %s", at_least ? ">=" : "<=", budget, ok ? "ok" : "MISSED");
    if (best > 0)
        printf("  (lowest %.2f)", best);
    printf("\n");
    best = 0;
    fflush(stdout);
    missed += !ok;
}

static void start(size_t buffer, enum stave_full full)
{
    struct stave_options o = {
        .size = sizeof o, .out = path, .buffer_bytes = buffer, .full = full, .categories = "*"};
    if (stave_start(&o) != 0)
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
        printf("%s: %llu lost, %llu of %llu written\n", name, (unsigned long long)gone,
               (unsigned long long)c.events, (unsigned long long)expected);
        missed++;
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
        at[1] = (uint64_t)now_ns();
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

/* ns per event of bursts that the ring holds. */
static double bursts(void (*body)(uint64_t), uint64_t n)
{
    double v[RUNS];
    for (int i = 0; i < RUNS; i++) {
        stave_flush();
        int64_t t0 = thread_ns();
        body(n);
        v[i] = (double)(thread_ns() - t0) / (double)n;
    }
    return median(v, RUNS);
}

static double file_bytes(void)
{
    struct stat st;
    return stat(path, &st) == 0 ? (double)st.st_size : 0;
}

/* ---- rows ---- */

static void burst_rows(void)
{
    reference(sizeof store_area / 16); /* first touch */
    double ref = bursts(reference, BURST);
    row("counter read + 16-byte store", ref, "ns", 0, false);
    start((size_t)16 << 20, STAVE_FULL_DROP);
    scopes(BURST); /* first touch */
    double scope = bursts(scopes, BURST);
    row("scope, per event", scope, "ns", 25, false);
    double manual = bursts(begins, BURST);
    row("scope / reference", scope / ref, "x", 1.5, false);
    row("begin/end, per event", manual, "ns", 25, false);
    row("begin/end / reference", manual / ref, "x", 1.5, false);
    row("slice with 2 integers, per event", bursts(two_ints, BURST), "ns", 40, false);
    row("20-byte text", bursts(one_text, BURST), "ns", 60, false);
    stave_categories("bench");
    row("disabled", bursts(disabled, 20000000), "ns", 1, false);
    if (evaluated > 1) {
        printf("disabled: the argument was evaluated %d times\n", evaluated);
        missed++;
    }
    stop("bursts", 0);
}

struct worker {
    pthread_barrier_t *barrier;
    int64_t ns;
};

static void *work(void *arg)
{
    struct worker *w = arg;
    scopes(1000);
    double quickest = 1e18;
    for (int i = 0; i < 5; i++) {
        pthread_barrier_wait(w->barrier);
        int64_t t0 = thread_ns();
        scopes(BURST);
        int64_t took = thread_ns() - t0;
        quickest = (double)took < quickest ? (double)took : quickest;
        pthread_barrier_wait(w->barrier);
        stave_flush();
    }
    w->ns = (int64_t)quickest;
    return NULL;
}

static double threads_rate(unsigned n)
{
    pthread_barrier_t barrier;
    pthread_barrier_init(&barrier, NULL, n);
    struct worker w[8];
    pthread_t t[8];
    for (unsigned i = 0; i < n; i++) {
        w[i].barrier = &barrier;
        pthread_create(&t[i], NULL, work, &w[i]);
    }
    int64_t slowest = 0;
    for (unsigned i = 0; i < n; i++) {
        pthread_join(t[i], NULL);
        slowest = w[i].ns > slowest ? w[i].ns : slowest;
    }
    return (double)BURST * n / (double)slowest;
}

static void threads_row(void)
{
    start((size_t)8 << 20, STAVE_FULL_DROP);
    double one = threads_rate(1), two = threads_rate(2);
    row("2 threads / 1 thread", two / one, "x", 1.9, true);
    stop("threads", 0);
}

/* CPU time of the writer thread so far, from the scheduler: other programs on the machine do not count. */
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

static void sustained_row(void)
{
    enum { N = 20000000 };
    double v[3], ours[3], writers[3];
    for (int i = 0; i < 3; i++) {
        start((size_t)4 << 20, STAVE_FULL_BLOCK);
        int64_t t0 = now_ns(), c0 = thread_ns();
        double w0 = writer_cpu_ns();
        scopes(N);
        v[i] = (double)(now_ns() - t0) / N;
        ours[i] = (double)(thread_ns() - c0) / N;
        writers[i] = (writer_cpu_ns() - w0) / N;
        stop("sustained", N);
    }
    row("sustained 20 M events, block", median(v, 3), "ns", 50, false);
    row("  of it on the tracing core", median(ours, 3), "ns", 0, false);
    row("  on the writer's core", median(writers, 3), "ns", 50, false);
    row("file bytes per event", file_bytes() / N, "bytes", 14, false);
}

/* The writer alone: what it needs of a core per event. */
static void writer_row(void)
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
    row("writer", median(v, 7), "M/s", 20, true);
    for (int i = 0; i < 5; i++) {
        start((size_t)64 << 20, STAVE_FULL_DROP);
        scopes(1000000);
        int64_t t0 = now_ns();
        stave_stop();
        latency[i] = (double)(now_ns() - t0) / 1e6;
    }
    row("stop with 1 M events", median(latency, 5), "ms", 200, false);
}

static void marker_row(void)
{
    int fd = open("/sys/kernel/tracing/trace_marker", O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        printf("%-34s %s\n", "trace_marker", "not measured: cannot be opened");
        return;
    }
    static const char text[] = "B|1|scope\n";
    double v[RUNS];
    for (int i = 0; i < RUNS; i++) {
        int64_t t0 = now_ns();
        for (int j = 0; j < 20000; j++)
            if (write(fd, text, sizeof text - 1) < 0)
                break;
        v[i] = (double)(now_ns() - t0) / 20000;
    }
    close(fd);
    row("trace_marker write", median(v, RUNS), "ns", 0, false);
}

static const struct {
    const char *name;
    void (*run)(void);
} rows[] = {{"burst", burst_rows},
            {"sustained", sustained_row},
            {"threads", threads_row},
            {"writer", writer_row},
            {"marker", marker_row}};

static void *run_row(void *arg)
{
    rows[(uintptr_t)arg].run();
    return NULL;
}

int main(int argc, char **argv)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/stave-bench-%d.pftrace", tmp ? tmp : "/tmp", (int)getpid());
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool wanted = argc == 1;
        for (int a = 1; a < argc; a++)
            wanted |= strcmp(argv[a], rows[i].name) == 0;
        pthread_t thread; /* each on a thread of its own: a ring of the size it asks for */
        if (wanted && pthread_create(&thread, NULL, run_row, (void *)(uintptr_t)i) == 0)
            pthread_join(thread, NULL);
    }
    unlink(path);
    return missed != 0;
}
