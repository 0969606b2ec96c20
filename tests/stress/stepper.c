/* stepper main|writer K PROGRAM ARGUMENT…: runs the program to the SIGTRAP that it sends to itself,
 * lets one thread of it go K instructions further, and kills it with SIGKILL there. `main` is the
 * thread that sent the signal; `writer` is the other one, while the first runs on. Prints `K
 * stopped`, or `N end` when the next SIGTRAP of its own came after N instructions.
 *
 * stepper scout-main|scout-writer FILES PROGRAM ARGUMENT…: prints each number of instructions after
 * which one of the files (a glob) is another than one instruction before: the moments at which a
 * kill leaves something else behind. */
#include <errno.h>
#include <glob.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FILES_MAX = 16, WATCHED_BYTES = 8192 };

static pid_t program, writer;

static _Noreturn void give_up(const char *what)
{
    perror(what);
    if (program > 0)
        kill(program, SIGKILL);
    exit(2);
}

static void start(char **command)
{
    program = fork();
    if (program < 0)
        give_up("fork");
    if (program == 0) {
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        execv(command[0], command);
        _exit(127);
    }
    int status;
    if (waitpid(program, &status, 0) != program || !WIFSTOPPED(status))
        give_up("exec");
    ptrace(PTRACE_SETOPTIONS, program, NULL, (void *)(PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL));
}

static bool is_own_trap(pid_t thread, int status)
{
    siginfo_t info;
    return WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP && status >> 16 == 0 &&
           ptrace(PTRACE_GETSIGINFO, thread, NULL, &info) == 0 && info.si_code <= 0;
}

static void go_on(pid_t thread, int status, bool steps)
{
    int signal = WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
    if (signal == SIGTRAP || signal == SIGSTOP || status >> 16 != 0)
        signal = 0; /* ours, or that of a new thread */
    ptrace(steps ? PTRACE_SINGLESTEP : PTRACE_CONT, thread, NULL, (void *)(intptr_t)signal);
}

/* Lets all threads run until the first one sends itself a SIGTRAP; it stays stopped there. */
static void run_to_trap(void)
{
    go_on(program, 0, false);
    for (;;) {
        int status;
        pid_t thread = waitpid(-1, &status, __WALL);
        if (thread < 0 || (thread == program && !WIFSTOPPED(status)))
            give_up("the program ended early");
        if (thread == program && is_own_trap(thread, status))
            return;
        if (thread != program && WIFSTOPPED(status) && writer == 0)
            writer = thread;
        if (WIFSTOPPED(status))
            go_on(thread, status, false);
    }
}

/* ---- what a kill leaves behind ---- */

static struct watched {
    char *path;
    const uint8_t *bytes; /* of the file, mapped: as much as is watched */
    uint8_t before[WATCHED_BYTES];
    off_t size;
} files[FILES_MAX];
static size_t n_files;

static void watch(const char *pattern)
{
    glob_t found;
    if (glob(pattern, GLOB_BRACE, NULL, &found) != 0)
        give_up(pattern);
    for (size_t i = 0; i < found.gl_pathc && n_files < FILES_MAX; i++) {
        struct watched *w = &files[n_files];
        FILE *f = fopen(found.gl_pathv[i], "r");
        if (!f)
            continue;
        w->path = strdup(found.gl_pathv[i]);
        w->bytes = mmap(NULL, WATCHED_BYTES, PROT_READ, MAP_SHARED, fileno(f), 0);
        fclose(f);
        n_files++;
    }
    globfree(&found);
}

static bool has_changed(void)
{
    bool changed = false;
    for (size_t i = 0; i < n_files; i++) {
        struct watched *w = &files[i];
        struct stat st;
        off_t size = stat(w->path, &st) == 0 ? st.st_size : -1;
        changed = changed || size != w->size;
        w->size = size;
        if (w->bytes == MAP_FAILED || size < WATCHED_BYTES ||
            memcmp(w->before, w->bytes, WATCHED_BYTES) == 0)
            continue;
        memcpy(w->before, w->bytes, WATCHED_BYTES);
        changed = true;
    }
    return changed;
}

/* ---- steps ---- */

/* The writer sleeps or works: stops it wherever it is. */
static void stop_writer(void)
{
    int status;
    if (writer == 0 || syscall(SYS_tgkill, program, writer, SIGSTOP) != 0)
        give_up("no second thread");
    while (waitpid(writer, &status, __WALL) == writer && WIFSTOPPED(status) &&
           WSTOPSIG(status) != SIGSTOP)
        go_on(writer, status, false);
}

/* Steps one thread; how many instructions it took until `limit` or the program's next trap
 * (*ended). */
static uint64_t step(pid_t thread, uint64_t limit, bool scouts, bool *ended)
{
    uint64_t n = 0;
    *ended = false;
    if (limit == 0)
        return 0;
    go_on(thread, 0, true);
    if (thread != program)
        go_on(program, 0, false);
    while (n < limit) {
        int status;
        pid_t who = waitpid(-1, &status, __WALL);
        if (who < 0)
            break;
        if (!WIFSTOPPED(status)) {
            if (who == program || who == thread)
                break; /* it has ended before its second trap */
            continue;
        }
        *ended = who == program && is_own_trap(who, status);
        if (*ended)
            break;
        n += who == thread;
        if (who == thread && scouts && has_changed())
            printf("%llu\n", (unsigned long long)n);
        if (who != thread || n < limit)
            go_on(who, status, who == thread);
    }
    return n;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    bool scouts = strncmp(argv[1], "scout-", 6) == 0, ended;
    bool is_writer = strcmp(argv[1] + (scouts ? 6 : 0), "writer") == 0;
    start(argv + 3);
    run_to_trap();
    if (scouts) {
        watch(argv[2]);
        (void)has_changed();
    }
    if (is_writer)
        stop_writer();
    uint64_t limit = scouts ? UINT64_MAX : strtoull(argv[2], NULL, 10);
    uint64_t n = step(is_writer ? writer : program, limit, scouts, &ended);
    kill(program, SIGKILL);
    while (waitpid(-1, NULL, __WALL) > 0 || errno == EINTR)
        ;
    printf("%llu %s\n", (unsigned long long)n, ended ? "end" : "stopped");
    return 0;
}
