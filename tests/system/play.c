/* play: small workloads whose system calls are known one by one, for the tests of `stave record`.
 *
 *   play read THREADS DIR N     every thread opens DIR/f1…fN, reads each to its end (two reads),
 *                               closes it
 *   play book DIR               every way to get a descriptor; each file is written to through it
 *   play flood N                N fsync calls on a descriptor that is not open
 *   play deluge N               the same while the parent, which is the recorder, is stopped
 *   play direct FILE N          N writes of 64 KiB past the page cache
 *   play touch FILE N           maps FILE and touches N of its pages, from the last to the first
 *   play vectors FILE           writev of 3 buffers (60 bytes), readv that asks for 100 and gets
 *                               60, preadv2 of 300 buffers of 1 byte
 *   play hang FIFO              reads from FIFO, which nobody writes to
 *   play burn MILLISECONDS      CPU time in burn_inner(), called by burn_outer()
 *   play zeros MILLISECONDS     CPU time in the kernel: reads of 1 MiB from /dev/zero
 *   play sleep SECONDS
 *   play numbered FILE N HOW    pread64 from /dev/zero at 0, 1, … N - 1; FILE has two numbers:
 *                               calls begun, calls done. HOW is go, or stop:
 *                               while the parent, which is the recorder, is stopped. Ends with the
 *                               recorder
 *   play become WORDS…          a thread that is not the first one becomes another program
 *   play pass THREADS N         THREADS threads in a circle, N times around: each waits for its
 *                               neighbour, with much on its stack, reads a byte from /dev/zero and
 *                               wakes the next one. Prints how often they have waited
 *   play swap THREADS DIR N     THREADS × N times: opens one of DIR/f1…f8, reads all of it at once
 *                               and closes it, so that descriptors are used
 *                               again while others open and close. The file of a read is known by
 *                               its size */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void need(int ok, const char *what)
{
    if (ok)
        return;
    fprintf(stderr, "play: %s: %s\n", what, strerror(errno));
    exit(1);
}

static const char *read_dir;
static int n_read_files;

static void *read_all(void *unused)
{
    static _Thread_local char buf[1 << 16];
    char path[4096];
    (void)unused;
    for (int i = 1; i <= n_read_files; i++) {
        snprintf(path, sizeof path, "%s/f%d", read_dir, i);
        int fd = open(path, O_RDONLY);
        need(fd >= 0, path);
        while (read(fd, buf, sizeof buf) > 0)
            continue;
        close(fd);
    }
    return NULL;
}

static void play_read(char **words)
{
    pthread_t threads[64];
    int n = (int)strtol(words[0], NULL, 10);
    read_dir = words[1];
    n_read_files = (int)strtol(words[2], NULL, 10);
    for (int i = 0; i < n && i < 64; i++)
        need(pthread_create(&threads[i], NULL, read_all, NULL) == 0, "thread");
    for (int i = 0; i < n && i < 64; i++)
        pthread_join(threads[i], NULL);
}

static int make(const char *name)
{
    int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
    need(fd >= 0, name);
    return fd;
}

static void mark(int fd)
{
    need(write(fd, "0123456789abcdef", 16) == 16, "write");
}

static void descriptors(void)
{
    int fd = make("dup"), other = dup(fd);
    close(fd);
    mark(other);
    close(other);
    fd = make("dup2");
    need(dup2(fd, 100) == 100, "dup2");
    close(fd);
    mark(100);
    fd = make("dup3");
    need(dup3(fd, 100, O_CLOEXEC) == 100, "dup3");
    close(fd);
    mark(100);
    close(100);
    fd = make("fcntl");
    other = fcntl(fd, F_DUPFD_CLOEXEC, 200);
    close(fd);
    mark(other);
    close_range(200, 300, 0);
    fd = make("first");
    close(fd);
    other = make("reuse");
    need(fd == other, "the same number again");
    mark(other);
    close(other);
}

static void forks(void)
{
    int fd = make("fork");
    pid_t child = fork();
    if (child == 0) {
        mark(fd);
        _exit(0);
    }
    close(fd);
    waitpid(child, NULL, 0);
}

static void names(void)
{
    mkdir("inner", 0755);
    need(chdir("inner") == 0, "chdir");
    int fd = make("chdir");
    mark(fd);
    close(fd);
    need(chdir("..") == 0, "chdir");
    int dir = open("inner", O_RDONLY | O_DIRECTORY);
    fd = openat(dir, "dirfd", O_RDWR | O_CREAT, 0644);
    mark(fd);
    close(fd);
    need(fchdir(dir) == 0, "fchdir");
    fd = make("fchdir");
    mark(fd);
    close(fd);
    close(dir);
    need(chdir("..") == 0, "chdir");
    close(make("before"));
    need(rename("before", "renamed") == 0, "rename");
    fd = open("renamed", O_RDWR);
    mark(fd);
    close(fd);
    need(open("nowhere", O_RDONLY) < 0, "open of nothing");
}

static void deep(const char *root)
{
    char path[4096], name[201];
    snprintf(path, sizeof path, "%s", root);
    memset(name, 'd', 200);
    name[200] = 0;
    for (int i = 0; i < 12; i++) {
        size_t n = strlen(path);
        snprintf(path + n, sizeof path - n, "/%s", name);
        need(mkdir(path, 0755) == 0 || errno == EEXIST, "mkdir");
    }
    size_t n = strlen(path);
    snprintf(path + n, sizeof path - n, "/odd\n\xff\"name");
    int fd = make(path);
    mark(fd);
    close(fd);
}

static void transfers(void)
{
    char a[4], b[6];
    struct iovec v[] = {{a, sizeof a}, {b, sizeof b}};
    int fd = make("transfer"), to = make("copy");
    mark(fd);
    need(preadv(fd, v, 2, 5) == 10, "preadv");
    off_t from = 0;
    if (copy_file_range(fd, &from, to, NULL, 10, 0) != 10)
        fprintf(stderr, "play: copy_file_range: %s\n", strerror(errno));
    void *map = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    need(map != MAP_FAILED, "mmap");
    munmap(map, 4096);
    close(fd);
    close(to);
}

static void play_book(char **words)
{
    need(mkdir(words[0], 0755) == 0 && chdir(words[0]) == 0, words[0]);
    descriptors();
    forks();
    names();
    deep(words[0]);
    transfers();
}

static void play_flood(char **words)
{
    long n = strtol(words[0], NULL, 10);
    for (long i = 0; i < n; i++)
        fsync(-1);
}

static void play_deluge(char **words)
{
    kill(getppid(), SIGSTOP);
    play_flood(words);
    kill(getppid(), SIGCONT);
}

static void play_direct(char **words)
{
    void *block = NULL;
    long n = strtol(words[1], NULL, 10);
    int fd = open(words[0], O_RDWR | O_CREAT | O_DIRECT, 0644);
    need(fd >= 0 && posix_memalign(&block, 4096, 65536) == 0, words[0]);
    memset(block, 'x', 65536);
    for (long i = 0; i < n; i++)
        need(pwrite(fd, block, 65536, i * 65536) == 65536, "pwrite");
    need(fsync(fd) == 0, "fsync"); /* where O_DIRECT went through the cache after all */
    close(fd);
    free(block);
}

static void play_touch(char **words)
{
    long n = strtol(words[1], NULL, 10);
    int fd = open(words[0], O_RDONLY);
    need(fd >= 0, words[0]);
    void *map = mmap(NULL, (size_t)n * 4096, PROT_READ, MAP_SHARED, fd, 0);
    need(map != MAP_FAILED, "mmap");
    need(madvise(map, (size_t)n * 4096, MADV_RANDOM) == 0, "madvise");
    for (long i = n; i-- > 0;)
        (void)((volatile char *)map)[i * 4096];
}

static void play_vectors(char **words)
{
    static char bytes[300];
    struct iovec some[] = {{bytes, 10}, {bytes, 20}, {bytes, 30}}, many[300];
    int fd = make(words[0]);
    need(writev(fd, some, 3) == 60, "writev");
    need(lseek(fd, 0, SEEK_SET) == 0, "lseek");
    some[2].iov_len = 70;
    need(readv(fd, some, 3) == 60, "readv");
    for (int i = 0; i < 300; i++)
        many[i] = (struct iovec){bytes + i, 1};
    need(preadv2(fd, many, 300, 0, 0) == 60, "preadv2");
    close(fd);
}

static void play_hang(char **words)
{
    char byte;
    int fd = open(words[0], O_RDWR);
    need(fd >= 0, words[0]);
    need(read(fd, &byte, 1) >= 0, "read");
}

__attribute__((noinline)) static uint64_t burn_inner(uint64_t x)
{
    for (int i = 0; i < 100000; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    return x;
}

/* The innermost function has no frame of its own, so the one around it is not in the stack. */
__attribute__((noinline)) static uint64_t burn_middle(uint64_t x)
{
    return x ^ burn_inner(x);
}

__attribute__((noinline)) static uint64_t burn_outer(clock_t until)
{
    uint64_t x = 1;
    while (clock() < until)
        x ^= burn_middle(x);
    return x;
}

static void play_burn(char **words)
{
    clock_t until = (clock_t)(strtoul(words[0], NULL, 10) * (CLOCKS_PER_SEC / 1000));
    if (burn_outer(until) == 42)
        puts("rare");
}

static void play_zeros(char **words)
{
    static char bytes[1 << 20];
    clock_t until = (clock_t)(strtoul(words[0], NULL, 10) * (CLOCKS_PER_SEC / 1000));
    int fd = open("/dev/zero", O_RDONLY);
    need(fd >= 0, "/dev/zero");
    while (clock() < until)
        need(read(fd, bytes, sizeof bytes) == (ssize_t)sizeof bytes, "read");
    close(fd);
}

static void play_sleep(char **words)
{
    sleep((unsigned)strtoul(words[0], NULL, 10));
}

/* Keeps a file in the page cache until it is killed; writes a line into another when it is
 * there. */
static void play_hold(char **words)
{
    struct stat st;
    int fd = open(words[0], O_RDONLY), to = open(words[1], O_WRONLY);
    need(fd >= 0 && to >= 0 && fstat(fd, &st) == 0, words[0]);
    void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    need(map != MAP_FAILED && mlock(map, (size_t)st.st_size) == 0, "mlock");
    need(write(to, "held\n", 5) == 5, words[1]);
    pause();
}

static void *open_one(void *unused)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    (void)unused;
    need(fd >= 0, "/dev/null");
    close(fd);
    return NULL;
}

/* Processes and threads that are gone as soon as they have done something, one after the other. */
static void play_short_lived(char **words)
{
    unsigned long processes = strtoul(words[0], NULL, 10), threads = strtoul(words[1], NULL, 10);
    for (unsigned long i = 0; i < processes; i++) {
        pid_t child = fork();
        need(child >= 0, "fork");
        if (child == 0) {
            open_one(NULL);
            _exit(0);
        }
        need(waitpid(child, NULL, 0) == child, "waitpid");
    }
    for (unsigned long i = 0; i < threads; i++) {
        pthread_t thread;
        need(pthread_create(&thread, NULL, open_one, NULL) == 0, "pthread_create");
        pthread_join(thread, NULL);
    }
}

/* ---- descriptors that change hands ---- */

enum { SWAP_FILES = 8 };
static const char *swap_dir;
static unsigned long n_swaps;

static int open_swapped(unsigned long i)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/f%lu", swap_dir, i % SWAP_FILES + 1);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    need(fd >= 0, path);
    return fd;
}

static void *swap(void *seed)
{
    static _Thread_local char buf[1 << 12];
    for (unsigned long i = 0; i < n_swaps; i++) {
        int fd = open_swapped(i * 5 + (unsigned long)(uintptr_t)seed);
        need(pread(fd, buf, sizeof buf, 0) > 0, "pread");
        close(fd);
    }
    return NULL;
}

static void play_swap(char **words)
{
    pthread_t threads[64];
    unsigned long n = strtoul(words[0], NULL, 10);
    swap_dir = words[1];
    n_swaps = strtoul(words[2], NULL, 10);
    for (uintptr_t i = 0; i < n && i < 64; i++)
        need(pthread_create(&threads[i], NULL, swap, (void *)i) == 0, "thread");
    for (unsigned long i = 0; i < n && i < 64; i++)
        pthread_join(threads[i], NULL);
}

static void play_numbered(char **words)
{
    char byte;
    uint64_t n = strtoull(words[1], NULL, 10);
    int file = open(words[0], O_RDWR | O_CREAT | O_TRUNC, 0644), zero = open("/dev/zero", O_RDONLY);
    need(file >= 0 && zero >= 0 && ftruncate(file, 2 * sizeof n) == 0, words[0]);
    void *map = mmap(NULL, 2 * sizeof n, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    need(map != MAP_FAILED, "mmap");
    volatile uint64_t *progress = map;
    bool stops = strcmp(words[2], "stop") == 0;
    pid_t recorder = getppid();
    if (stops)
        kill(recorder, SIGSTOP);
    for (uint64_t i = 0; i < n && (i % 1024 != 0 || getppid() == recorder); i++) {
        progress[0] = i + 1;
        need(pread(zero, &byte, 1, (off_t)i) == 1, "pread");
        progress[1] = i + 1;
    }
    if (stops)
        kill(recorder, SIGCONT);
}

enum { PASS_THREADS = 64, PASS_STACK = 24 << 10 };
static struct {
    pthread_mutex_t lock;
    pthread_cond_t ready;
    int turns;
    long waits;
} places[PASS_THREADS];
static int n_places, n_rounds, zero_fd;

static void *pass(void *place)
{
    volatile char deep[PASS_STACK];
    struct rusage use;
    size_t i = (size_t)place, next = (i + 1) % (size_t)n_places;
    char byte;
    for (size_t at = 0; at < sizeof deep; at += 64)
        deep[at] = (char)at;
    for (int n = 0; n < n_rounds; n++) {
        pthread_mutex_lock(&places[i].lock);
        while (places[i].turns == 0)
            pthread_cond_wait(&places[i].ready, &places[i].lock);
        places[i].turns--;
        pthread_mutex_unlock(&places[i].lock);
        need(pread(zero_fd, &byte, 1, n) == 1, "pread");
        pthread_mutex_lock(&places[next].lock);
        places[next].turns++;
        pthread_cond_signal(&places[next].ready);
        pthread_mutex_unlock(&places[next].lock);
    }
    need(getrusage(RUSAGE_THREAD, &use) == 0, "getrusage");
    places[i].waits = use.ru_nvcsw;
    return NULL;
}

/* Four turns at a time: there is always somebody who can run. */
static void play_pass(char **words)
{
    pthread_t threads[PASS_THREADS];
    long waits = 0;
    n_places = (int)strtol(words[0], NULL, 10);
    n_rounds = (int)strtol(words[1], NULL, 10);
    zero_fd = open("/dev/zero", O_RDONLY);
    need(n_places > 0 && n_places <= PASS_THREADS && zero_fd >= 0, "pass");
    for (size_t i = 0; i < (size_t)n_places; i++) {
        pthread_mutex_init(&places[i].lock, NULL);
        pthread_cond_init(&places[i].ready, NULL);
        places[i].turns = i % 8 == 0;
    }
    for (size_t i = 0; i < (size_t)n_places; i++)
        need(pthread_create(&threads[i], NULL, pass, (void *)i) == 0, "thread");
    for (int i = 0; i < n_places; i++) {
        pthread_join(threads[i], NULL);
        waits += places[i].waits;
    }
    printf("%ld\n", waits);
}

static void *become(void *words)
{
    char **argv = words;
    execvp(argv[0], argv);
    need(0, argv[0]);
    return NULL;
}

static void play_become(char **words)
{
    pthread_t thread;
    need(pthread_create(&thread, NULL, become, words) == 0, "thread");
    pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int n_words;
        void (*play)(char **words);
    } plays[] = {{"read", 3, play_read},      {"book", 1, play_book},
                 {"flood", 1, play_flood},    {"direct", 2, play_direct},
                 {"touch", 2, play_touch},    {"vectors", 1, play_vectors},
                 {"hang", 1, play_hang},      {"burn", 1, play_burn},
                 {"sleep", 1, play_sleep},    {"short_lived", 2, play_short_lived},
                 {"hold", 2, play_hold},      {"deluge", 1, play_deluge},
                 {"become", -1, play_become}, {"numbered", 3, play_numbered},
                 {"swap", 3, play_swap},      {"zeros", 1, play_zeros},
                 {"pass", 2, play_pass}};
    for (size_t i = 0; argc > 1 && i < sizeof plays / sizeof *plays; i++) {
        if (strcmp(argv[1], plays[i].name) == 0 &&
            (plays[i].n_words < 0 || argc == 2 + plays[i].n_words)) {
            plays[i].play(argv + 2);
            return 0;
        }
    }
    fprintf(stderr, "play: unknown play\n");
    return 2;
}
