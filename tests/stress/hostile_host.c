/* hostile_host SCENE: a program that does what a program may do, while it is traced
 * (hostile_host.sh). It prints what it sees of its own files and descriptors, which must be the
 * same whether it is traced or not, and how many events it has recorded. It ends with 7.
 *
 * hostile_host via FILTER OUT SCENE: the same in a program to which the kernel refuses some calls:
 * FILTER has a letter for each of them (u: unshare, r: a table of one's own by close_range, g:
 * pidfd_getfd); OUT is its STAVE_OUT, "" for none. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stave/stave.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OWN_FILES = 24, OWN_BYTES = 65536, EXIT = 7 };

static uint64_t emitted;

static void emit(int n)
{
    for (int i = 0; i < n; i++)
        STAVE_INSTANT("host", "n", "i", i);
    emitted += (uint64_t)n;
}

/* A place that nobody has met before: its name must be written. */
static void emit_late(int n)
{
    for (int i = 0; i < n; i++)
        STAVE_INSTANT("host", "late", "i", i);
    emitted += (uint64_t)n;
}

/* A thread: its ring must be made. Its first events meet the writer with whatever the program has
 * done to it. */
static void *in_thread(void *arg)
{
    (void)arg;
    emit_late(1000);
    return NULL;
}

static void record_after(void)
{
    pthread_t t;
    emit_late(500);
    stave_flush();
    if (pthread_create(&t, NULL, in_thread, NULL) == 0)
        pthread_join(t, NULL);
    emit(50000);
    stave_flush();
    emit(1000);
}

/* ---- the program's own files ---- */

static int own[OWN_FILES];

static void put(int fd, size_t bytes, char with)
{
    char block[4096];
    memset(block, with, sizeof block);
    for (; bytes > 0; bytes -= sizeof block)
        if (write(fd, block, sizeof block) != (ssize_t)sizeof block)
            printf("cannot write %d: %s\n", fd, strerror(errno));
}

static void open_own(const char *prefix)
{
    char name[64];
    for (int i = 0; i < OWN_FILES; i++) {
        snprintf(name, sizeof name, "%s.%d", prefix, i);
        own[i] = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);
        put(own[i], OWN_BYTES / 2, (char)('a' + i));
    }
}

static void close_own(void)
{
    struct stat st;
    for (int i = 0; i < OWN_FILES; i++) {
        put(own[i], OWN_BYTES / 2, (char)('A' + i));
        if (fstat(own[i], &st) != 0 || st.st_size != OWN_BYTES)
            printf("own %d has %lld bytes\n", i, (long long)st.st_size);
        if (close(own[i]) != 0)
            printf("own %d: %s\n", i, strerror(errno));
    }
}

/* Where the library shares the table, what it opens for a moment may take a number. What is open,
 * without the session and the trace: a library in the program's own table has them there, out of
 * the way of its numbers. */
static void list_open(void)
{
    char dir[PATH_MAX], link[64], to[PATH_MAX];
    const char *base = getenv("STAVE_SESSION_DIR");
    for (int fd = 0; fd < 2048; fd++) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t n = readlink(link, to, sizeof to - 1);
        if (n < 0)
            continue;
        to[n] = '\0';
        if ((base && strncmp(to, base, strlen(base)) == 0) || strstr(to, "/t.pftrace"))
            continue;
        const char *name = strrchr(to, '/');
        bool is_own = getcwd(dir, sizeof dir) && strncmp(to, dir, strlen(dir)) == 0;
        printf("open %d %s\n", getenv("HOST_SHARES") ? -1 : fd,
               fd < 3           ? "standard"
               : is_own && name ? name + 1
                                : to);
    }
}

/* ---- scenes ---- */

static void plain(void)
{
    emit(1000);
    open_own("own");
    record_after();
    list_open();
    close_own();
}

static void reuse(void (*close_all)(void))
{
    emit(1000);
    close_all();
    open_own("own"); /* under the numbers that are free now */
    list_open();
    record_after();
    close_own();
    list_open();
    close_all();
    record_after();
    open_own("more");
    close_own();
}

static void by_closefrom(void)
{
    closefrom(3);
}

static void by_close_range(void)
{
    if (syscall(SYS_close_range, 3, ~0U, 0) != 0)
        printf("close_range: %s\n", strerror(errno));
}

static void by_loop(void)
{
    for (int fd = 3; fd < 1024; fd++)
        close(fd);
}

static void scene_closefrom(void)
{
    reuse(by_closefrom);
}

static void scene_close_range(void)
{
    reuse(by_close_range);
}

static void scene_loop(void)
{
    reuse(by_loop);
}

/* Every number that may be somebody's becomes the program's, without a moment in which it is
 * closed. */
static void scene_dup2(void)
{
    emit(1000);
    int fd = open("all", O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0644);
    put(fd, OWN_BYTES, 'a');
    for (int i = 3; i < 1024; i++)
        if (i != fd)
            dup2(fd, i);
    record_after();
    struct stat st;
    fstat(fd, &st);
    printf("all has %lld bytes\n", (long long)st.st_size);
    for (int i = 3; i < 1024; i++)
        if (fstat(i, &st) != 0 || st.st_size != OWN_BYTES)
            printf("%d is not mine any more\n", i);
}

/* Who reads a pipe must see its end when the program closes it, although a thread was started while
 * it was open; also for standard output and error. */
static void scene_pipe(void)
{
    int p[2], s[2];
    char byte;
    if (pipe(p) != 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, s) != 0)
        return;
    stave_stop();
    emit(0);
    stave_start(
        &(struct stave_options){.size = sizeof(struct stave_options), .out = getenv("STAVE_OUT")},
        NULL);
    emit(1000);
    stave_flush();
    close(p[1]);
    close(s[1]);
    printf("the pipe's end: %zd\n", read(p[0], &byte, 1));
    printf("the socket's end: %zd\n", read(s[0], &byte, 1));
    close(p[0]);
    close(s[0]);
    record_after();
    list_open();
}

/* Standard output and error are closed, and who reads them makes the file "seen" then. */
static void scene_end_of_output(void)
{
    emit(1000);
    stave_flush();
    printf("emitted %d\n", 1000 + 52500);
    fflush(stdout);
    close(1);
    close(2);
    int i = 0;
    while (i < 20000 && access("seen", F_OK) != 0 && i++ >= 0)
        usleep(1000);
    record_after();
    exit(i < 20000 ? EXIT : 1);
}

/* A child that ends by _exit while its parent's descriptors are gone, and one that continues
 * alone. */
static void scene_fork(void)
{
    emit(1000);
    closefrom(3);
    open_own("own");
    for (int i = 0; i < 2; i++) {
        fflush(stdout);
        pid_t pid = fork();
        if (pid == 0) {
            emit_late(2000);
            if (i == 0) {
                closefrom(3);
                emit(3000);
                stave_flush();
                _exit(0);
            }
            exit(0);
        }
        int status = -1;
        waitpid(pid, &status, 0);
        printf("child %d: %d\n", i, status);
    }
    emitted += 2000 + 3000 + 2000;
    record_after();
    close_own();
    list_open();
}

static void scene_chroot(void)
{
    emit(1000);
    mkdir("root", 0755);
    printf("chroot: %d %d\n", chroot("root"), chdir("/"));
    record_after();
    open_own("own");
    close_own();
}

static void scene_chroot_closed(void)
{
    emit(1000);
    mkdir("root", 0755);
    printf("chroot: %d %d\n", chroot("root"), chdir("/"));
    closefrom(3);
    record_after();
    open_own("own");
    close_own();
}

static void scene_moved(void)
{
    emit(1000);
    printf("moved: %d\n", rename("traces", "elsewhere"));
    record_after();
}

static void remove_all(const char *folder)
{
    DIR *d = opendir(folder);
    for (const struct dirent *e; d && (e = readdir(d));)
        unlinkat(dirfd(d), e->d_name, 0);
    if (d)
        closedir(d);
    printf("removed %s: %d\n", folder, rmdir(folder));
}

static void scene_removed(void)
{
    emit(1000);
    stave_flush();
    remove_all("traces");
    record_after();
}

/* The number of standard error becomes a file of the program's: the line about what was removed
 * does not go there. */
static void scene_own_error(void)
{
    emit(1000);
    stave_flush();
    close(STDERR_FILENO);
    int fd = open("own.error", O_RDWR | O_CREAT | O_TRUNC, 0644);
    printf("opened %d\n", fd);
    remove_all("traces");
    record_after();
    put(fd, OWN_BYTES, 'e');
}

static void scene_setuid(void)
{
    emit(1000);
    stave_flush();
    printf("setuid: %d\n", setresuid(65534, 65534, 65534));
    record_after();
}

static const struct {
    const char *name;
    void (*run)(void);
} scenes[] = {
    {"plain", plain},
    {"closefrom", scene_closefrom},
    {"close_range", scene_close_range},
    {"loop", scene_loop},
    {"dup2", scene_dup2},
    {"pipe", scene_pipe},
    {"end_of_output", scene_end_of_output},
    {"fork", scene_fork},
    {"chroot", scene_chroot},
    {"chroot_closed", scene_chroot_closed},
    {"moved", scene_moved},
    {"removed", scene_removed},
    {"own_error", scene_own_error},
    {"setuid", scene_setuid},
};

/* ---- refused calls ---- */

#define LOAD(field)  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(what) BPF_STMT(BPF_RET | BPF_K, what)
enum { CLOSE_UNSHARE = 2 };

static int refuse(const char *letters)
{
    long unshare_nr = strchr(letters, 'u') ? SYS_unshare : -1;
    long range_nr = strchr(letters, 'r') ? SYS_close_range : -1;
    long getfd_nr = strchr(letters, 'g') ? SYS_pidfd_getfd : -1;
    struct sock_filter filter[] = {
        LOAD(nr),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)unshare_nr, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)getfd_nr, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)range_nr, 0, 3),
        LOAD(args[2]),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLOSE_UNSHARE, 0, 1),
        RETURN(SECCOMP_RET_ERRNO | EPERM),
        RETURN(SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0;
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "via") == 0) {
        if (refuse(argv[2]) != 0) {
            puts("no filter");
            return 77;
        }
        if (*argv[3])
            setenv("STAVE_OUT", argv[3], 1);
        if (strchr(argv[2], 'u') && strchr(argv[2], 'r'))
            setenv("HOST_SHARES", "1", 1);
        argv[3] = argv[0];
        execv("/proc/self/exe", argv + 3);
        return 1;
    }
    for (size_t i = 0; argc == 2 && i < sizeof scenes / sizeof *scenes; i++) {
        if (strcmp(scenes[i].name, argv[1]) != 0)
            continue;
        scenes[i].run();
        printf("emitted %llu\n", (unsigned long long)emitted);
        return EXIT;
    }
    return 2;
}
