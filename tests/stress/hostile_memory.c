/* hostile_memory SCENE PROCESSES EVENTS: records instants where rings or system calls are not to be
 * had, writes `emitted N` and exits with 7.
 *
 *   workers    forked children record at the same time, each of them EVENTS, and end by _exit
 *   children   the same, one child after the other
 *   threads    so many threads at the same time instead of processes
 *   limit      the address space may not grow any more; then as workers
 *   limited    the address space of each child may not grow any more, before its first event
 *   setuid     becomes user 65534; then a thread and a forked child record
 *   filter     only read, write, futex and exit remain, anything else kills; new call sites and
 *              full rings; returns from main
 *   strict     the same without futex and exit_group: the first thread ends by the system call exit
 *   names      more names of rows than there is space for; then a call site that is new
 *   kill       as workers, then it kills itself
 *
 * What the program itself needs (memory, threads, messages) is there before the scene begins. */
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stave/stave.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CODE = 7, PROCESSES_MAX = 256 };

static _Atomic uint64_t *emitted; /* by all processes */
static uint64_t events;
static _Atomic int go;

static void record(void)
{
    for (uint64_t i = 0; i < events; i++)
        STAVE_INSTANT("hostile", "n", "i", i);
    *emitted += events;
}

static int say(void)
{
    char line[64];
    int n = snprintf(line, sizeof line, "emitted %llu\n", (unsigned long long)*emitted);
    return write(STDOUT_FILENO, line, (size_t)n) == n ? CODE : 1;
}

/* As much as is mapped now, and a little for the stack. */
static void no_more_memory(void)
{
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%lu", &pages) != 1)
        _exit(3);
    fclose(f);
    struct rlimit limit = {pages * 4096 + 65536, pages * 4096 + 65536};
    if (setrlimit(RLIMIT_AS, &limit) != 0)
        _exit(3);
}

static void child(bool is_limited)
{
    if (is_limited)
        no_more_memory();
    record();
    _exit(0);
}

static void wait_for(pid_t pid)
{
    int status;
    if (waitpid(pid, &status, 0) != pid || status != 0)
        _exit(4);
}

static void workers(unsigned n, bool at_once, bool is_limited)
{
    pid_t pids[PROCESSES_MAX];
    for (unsigned i = 0; i < n; i++) {
        pids[i] = fork();
        if (pids[i] == 0)
            child(is_limited);
        if (!at_once)
            wait_for(pids[i]);
    }
    for (unsigned i = 0; at_once && i < n; i++)
        wait_for(pids[i]);
    record();
}

static void *thread(void *arg)
{
    while (!go)
        usleep(100);
    record();
    return arg;
}

static void threads(unsigned n)
{
    pthread_t all[PROCESSES_MAX];
    for (unsigned i = 0; i < n; i++)
        if (pthread_create(&all[i], NULL, thread, NULL) != 0)
            _exit(4);
    go = 1;
    for (unsigned i = 0; i < n; i++)
        pthread_join(all[i], NULL);
    record();
}

static void other_user(void)
{
    record();
    if (setresgid(65534, 65534, 65534) != 0 || setresuid(65534, 65534, 65534) != 0)
        _exit(3);
    threads(1);
    workers(1, true, false);
}

/* Only these are allowed; any other call kills. */
static void only_few_calls(bool is_strict)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_read, 5, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_write, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, is_strict ? SYS_exit : SYS_futex, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, is_strict ? SYS_exit : SYS_exit_group, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(3);
}

/* Call sites that are new now, and slices. */
static void record_restricted(void)
{
    record();
    for (uint64_t i = 0; i < events; i++) {
        STAVE_SCOPE("hostile", "slice", "i", i);
    }
    *emitted += events;
}

static void names(void)
{
    enum { ROWS = 200, BYTES = 900 };
    record();
    for (int i = 0; i < ROWS; i++) {
        char name[BYTES + 16];
        memset(name, 'x', BYTES);
        snprintf(name + BYTES, 16, "%d", i);
        stave_track(STAVE_PROCESS, name);
    }
    for (uint64_t i = 0; i < events; i++)
        STAVE_INSTANT("hostile", "n", "new", i);
    *emitted += events;
}

int main(int argc, char **argv)
{
    if (argc < 4)
        return 2;
    const char *scene = argv[1];
    unsigned n = (unsigned)strtoul(argv[2], NULL, 10);
    events = strtoull(argv[3], NULL, 10);
    n = n < PROCESSES_MAX ? n : PROCESSES_MAX;
    emitted = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (emitted == MAP_FAILED)
        return 3;
    if (strcmp(scene, "threads") == 0)
        threads(n);
    else if (strcmp(scene, "names") == 0)
        names();
    else if (strcmp(scene, "setuid") == 0)
        other_user();
    else if (strcmp(scene, "filter") == 0 || strcmp(scene, "strict") == 0) {
        bool is_strict = scene[0] == 's';
        only_few_calls(is_strict);
        record_restricted();
        int code = say();
        if (is_strict)
            syscall(SYS_exit, code);
        return code;
    } else {
        if (strcmp(scene, "limit") == 0)
            no_more_memory();
        workers(n, strcmp(scene, "children") != 0, strcmp(scene, "limited") == 0);
    }
    int code = say();
    if (strcmp(scene, "kill") == 0)
        kill(getpid(), SIGKILL);
    return code;
}
