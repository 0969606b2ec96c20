/* Calls on files, for tests/inject/io.sh. It knows nothing of Stave.
 *
 *     io_play calls      every kind of call, in files of this folder; prints what it did: path, call,
 *                        how often, bytes
 *     io_play hostile    what programs do that could break a preloaded library; prints "whole" */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define NEED(x)                                                                       \
    do {                                                                              \
        if (!(x)) {                                                                   \
            fprintf(stderr, "io_play: line %d: %s: errno %d\n", __LINE__, #x, errno); \
            _exit(1);                                                                 \
        }                                                                             \
    } while (0)

static char folder[PATH_MAX];

static void did(const char *file, const char *call, int n, long bytes)
{
    if (bytes >= 0)
        printf("%s/%s,%s,%d,%ld\n", folder, file, call, n, bytes);
    else
        printf("%s/%s,%s,%d,\n", folder, file, call, n);
}

static void plain_calls(void)
{
    char block[5000] = "";
    struct iovec parts[2] = {{block, 100}, {block + 100, 200}};
    int fd = open("plain", O_CREAT | O_RDWR | O_TRUNC, 0644);
    NEED(fd >= 0);
    for (int i = 0; i < 10; i++)
        NEED(write(fd, block, 5000) == 5000);
    NEED(pwrite(fd, block, 1000, 77) == 1000);
    NEED(writev(fd, parts, 2) == 300);
    NEED(pwritev(fd, parts, 2, 0) == 300);
    NEED(lseek(fd, 0, SEEK_SET) == 0);
    for (int i = 0; i < 4; i++)
        NEED(read(fd, block, 3000) == 3000);
    NEED(pread(fd, block, 5000, 50000) == 300);
    NEED(readv(fd, parts, 2) == 300);
    NEED(preadv(fd, parts, 2, 10) == 300);
    NEED(fsync(fd) == 0 && fdatasync(fd) == 0 && ftruncate(fd, 50000) == 0);
    void *at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
    NEED(at != MAP_FAILED && munmap(at, 4096) == 0);
    int copy = dup(fd);
    NEED(copy >= 0 && read(copy, block, 10) == 10 && close(copy) == 0);
    NEED(close(fd) == 0);
    did("plain", "close", 3, -1); /* copying_calls() opens it again */
    did("plain", "fdatasync", 1, -1);
    did("plain", "fsync", 1, -1);
    did("plain", "ftruncate", 1, -1);
    did("plain", "lseek", 1, -1);
    did("plain", "mmap", 1, -1);
    did("plain", "openat", 2, -1);
    did("plain", "pread64", 1, 300);
    did("plain", "preadv", 1, 300);
    did("plain", "pwrite64", 1, 1000);
    did("plain", "pwritev", 1, 300);
    did("plain", "read", 5, 12010);
    did("plain", "readv", 1, 300);
    did("plain", "write", 10, 50000);
    did("plain", "writev", 1, 300);
}

static void copying_calls(void)
{
    int from = open("plain", O_RDONLY), to = open("copy", O_CREAT | O_WRONLY, 0600);
    off_t at = 100;
    NEED(from >= 0 && to >= 0 && sendfile(to, from, &at, 1000) == 1000);
    /* The path of a call that copies is the one that is read. */
    NEED(close(to) == 0 && close(from) == 0);
    did("copy", "close", 1, -1);
    did("copy", "openat", 1, -1);
}

/* Names relative to the folder, to a descriptor, with dots, and after chdir. */
static void names(void)
{
    struct stat st;
    NEED(mkdir("sub", 0700) == 0);
    int dir = open("sub", O_RDONLY | O_DIRECTORY);
    int fd = openat(dir, "../sub/./x", O_CREAT | O_WRONLY, 0600);
    NEED(dir >= 0 && fd >= 0 && close(fd) == 0 && close(dir) == 0 && chdir("sub") == 0);
    NEED(stat("x", &st) == 0 && access("x", R_OK) == 0 && rename("x", "y") == 0);
    NEED(stat("nothing", &st) != 0 && errno == ENOENT);
    NEED(unlink("y") == 0 && chdir("..") == 0 && rmdir("sub") == 0);
    did("sub/nothing", "newfstatat", 1, -1);
    did("sub/x", "access", 1, -1);
    did("sub/x", "close", 1, -1);
    did("sub/x", "newfstatat", 1, -1);
    did("sub/x", "openat", 1, -1);
    did("sub/x", "rename", 1, -1);
    did("sub/y", "unlink", 1, -1);
}

/* Bytes are what the libc moved, not what was asked of it. */
static void stdio_calls(void)
{
    char line[64];
    FILE *f = fopen("stdio", "w");
    NEED(f);
    for (int i = 0; i < 1000; i++)
        NEED(fprintf(f, "line %05d\n", i) == 11);
    NEED(fclose(f) == 0);
    f = fopen("stdio", "r");
    NEED(f);
    for (int i = 0; i < 1000; i++)
        NEED(fgets(line, sizeof line, f) && strlen(line) == 11);
    NEED(!fgets(line, sizeof line, f) && fclose(f) == 0);
    did("stdio", "bytes read", 1, 11000);
    did("stdio", "bytes written", 1, 11000);
}

static int calls(void)
{
    NEED(getcwd(folder, sizeof folder));
    plain_calls();
    copying_calls();
    names();
    stdio_calls();
    return 0;
}

/* ---- hostile ---- */

static volatile sig_atomic_t ticks;
static int null_fd;

static void tick(int number)
{
    char byte;
    int error = errno;
    (void)number;
    ticks++;
    if (pread(null_fd, &byte, 1, 0) < 0)
        ticks += 1000000;
    errno = error;
}

/* A handler reads while the program reads. */
static void signals(void)
{
    struct itimerval often = {{0, 200}, {0, 200}}, never = {{0, 0}, {0, 0}};
    char byte;
    struct sigaction a = {.sa_handler = tick, .sa_flags = SA_RESTART};
    null_fd = open("/dev/null", O_RDONLY);
    NEED(sigaction(SIGALRM, &a, NULL) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0);
    while (ticks < 50)
        NEED(pread(null_fd, &byte, 1, 0) == 0);
    NEED(setitimer(ITIMER_REAL, &never, NULL) == 0 && ticks < 1000000);
}

static void *reads(void *arg)
{
    char byte;
    (void)arg;
    for (int i = 0; i < 100; i++)
        if (pread(null_fd, &byte, 1, 0) != 0)
            return arg;
    return NULL;
}

/* Threads with the smallest stack that end at once, while others fork. */
static void threads_and_forks(void)
{
    pthread_attr_t small;
    pthread_attr_init(&small);
    NEED(pthread_attr_setstacksize(&small, 2 * (size_t)PTHREAD_STACK_MIN) == 0);
    for (int i = 0; i < 50; i++) {
        pthread_t t;
        int status = -1;
        NEED(pthread_create(&t, &small, reads, folder) == 0);
        pid_t child = fork();
        if (child == 0)
            _exit(reads(folder) ? 1 : 0);
        NEED(child > 0 && waitpid(child, &status, 0) == child && status == 0);
        void *failed;
        NEED(pthread_join(t, &failed) == 0 && !failed);
    }
}

/* The child has the parent's memory; it changes descriptors that are its own. */
static void vforks(void)
{
    char name[] = "true", *argv[] = {name, NULL};
    int fd = open("kept", O_CREAT | O_RDWR, 0600), status = -1;
    NEED(fd >= 0 && write(fd, "abc", 3) == 3);
    pid_t child = vfork();
    if (child == 0) {
        dup2(null_fd, fd);
        execv("/bin/true", argv);
        _exit(127);
    }
    NEED(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    NEED(pwrite(fd, "def", 3, 0) == 3 && close(fd) == 0);
    NEED(posix_spawn(&child, "/bin/true", NULL, NULL, argv, NULL) == 0);
    NEED(waitpid(child, &status, 0) == child && status == 0);
}

/* errno is the program's, also where a call succeeds. */
static void keeps_errno(void)
{
    char byte;
    errno = 4711;
    NEED(pread(null_fd, &byte, 1, 0) == 0 && errno == 4711);
    NEED(access("/", F_OK) == 0 && errno == 4711);
    NEED(open("/nonexistent/x", O_RDONLY) == -1 && errno == ENOENT);
    NEED(close(-1) == -1 && errno == EBADF);
    NEED(read(-1, &byte, 1) == -1 && errno == EBADF);
    NEED(openat(-5, "x", O_RDONLY) == -1 && errno == EBADF);
    const char *volatile nothing = NULL;
    NEED(open(nothing, O_RDONLY) == -1 && errno == EFAULT);
}

static void odd_names(void)
{
    char name[8000];
    memset(name, 'x', sizeof name);
    name[sizeof name - 1] = 0;
    NEED(open(name, O_RDONLY) == -1 && errno == ENAMETOOLONG);
    NEED(open("", O_RDONLY) == -1 && errno == ENOENT);
    NEED(open("\xff\x01\n", O_CREAT | O_RDONLY, 0600) >= 0 && unlink("\xff\x01\n") == 0);
    DIR *d = opendir(".");
    NEED(d);
    while (readdir(d)) {}
    NEED(closedir(d) == 0);
}

/* Descriptors that close behind the library's back, and all at once. */
static void closes(void)
{
    int fd = open("/dev/zero", O_RDONLY);
    char byte = 1;
    NEED(fd >= 0 && syscall(SYS_close, fd) == 0);
    NEED(open("/dev/null", O_RDONLY) == fd && read(fd, &byte, 1) == 0);
    NEED(fcntl(fd, F_DUPFD, 900) >= 900);
    closefrom(3);
    NEED(open("/dev/zero", O_RDONLY) == 3 && read(3, &byte, 1) == 1);
    NEED(dup2(3, 900) == 900 && read(900, &byte, 1) == 1);
}

static int hostile(void)
{
    void *math = dlopen("libm.so.6", RTLD_NOW);
    NEED(math && dlclose(math) == 0);
    signals();
    threads_and_forks();
    vforks();
    keeps_errno();
    odd_names();
    closes();
    puts("whole");
    return 0;
}

int main(int argc, char **argv)
{
    return argc > 1 && strcmp(argv[1], "hostile") == 0 ? hostile() : calls();
}
