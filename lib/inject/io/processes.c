/* Starts of processes. Where there are no kernel probes (STAVE_IO_ALONE), forks and programs are
 * recorded as those would: instants on the row `system calls`. */
#include "io.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

bool io_is_alone;

/* After the constructor of preload.c. */
__attribute__((constructor(102))) static void start(void)
{
    char path[1024];
    if (getauxval(AT_SECURE) || !pre_on(NULL))
        return;
    io_ends_init();
    io_is_alone = getenv("STAVE_IO_ALONE") != NULL;
    long n = io_is_alone ? syscall(SYS_readlink, "/proc/self/exe", path, sizeof path - 1) : 0;
    if (n <= 0)
        return;
    path[n] = 0;
    IO_ENTER();
    STAVE_INSTANT_ON(pre_calls_row(), "process", "exec", "path", path);
    IO_LEAVE();
}

static pid_t forked(pid_t child)
{
    int error = errno;
    if (child > 0 && io_is_alone && pre_on(NULL)) {
        IO_ENTER();
        STAVE_INSTANT_ON(pre_calls_row(), "process", "fork", "child", (int)child);
        IO_LEAVE();
    }
    errno = error;
    return child;
}

/* A child begins with the call that made it: before its first own event it may wait for a CPU. */
WRAP(pid_t, fork, void)
{
    static const struct pre_call none = {0};
    int64_t start_ns = io_is_alone ? stave_now_ns() : 0;
    pid_t child = NEXT(fork)();
    if (child == 0 && io_is_alone && pre_on(NULL)) {
        int error = errno;
        IO_ENTER();
        pre_record("clone", start_ns, stave_now_ns(), &none);
        IO_LEAVE();
        errno = error;
    }
    return forked(child);
}

/* ---- names of threads: libstave has asked for them at a thread's first event ---- */

static int named(int failed, const char *name)
{
    int error = errno;
    char text[16] = "";
    if (!failed && io_is_alone && pre_on(NULL)) {
        strncpy(text, name, sizeof text - 1);
        IO_ENTER();
        stave_set_thread_name(text);
        IO_LEAVE();
    }
    errno = error;
    return failed;
}

WRAP(int, prctl, int what, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
    int done = NEXT(prctl)(what, a, b, c, d);
    return what == PR_SET_NAME && done == 0 ? named(0, (const char *)a) : done;
}

WRAP(int, pthread_setname_np, pthread_t thread, const char *name)
{
    int error = NEXT(pthread_setname_np)(thread, name);
    return pthread_equal(thread, pthread_self()) ? named(error, name) : error;
}

#define SPAWN(symbol)                                                                       \
    WRAP(int, symbol, pid_t *child, const char *path, const void *actions, const void *how, \
         char *const *argv, char *const *envp)                                              \
    {                                                                                       \
        pid_t own = 0, *to = child ? child : &own;                                          \
        int error = NEXT(symbol)(to, path, actions, how, argv, envp);                       \
        if (error == 0)                                                                     \
            forked(*to);                                                                    \
        return error;                                                                       \
    }
SPAWN(posix_spawn)
SPAWN(posix_spawnp)

/* The child of vfork has the parent's memory until it executes a program: it is quiet, or it would
 * change the parent's table of descriptors. A function in C cannot return twice. */
#if defined(__x86_64__)
_Static_assert(offsetof(struct pre_thread, is_quiet) == 0, "vfork sets it");
__attribute__((used)) static pid_t io_vforked(int result)
{
    if (result >= 0)
        return forked(result);
    errno = -result;
    return -1;
}

__asm__(".text\n"
        ".globl vfork\n"
        ".type vfork, @function\n"
        "vfork:\n"
        "    endbr64\n"
        "    pop %rdi\n"      /* the child will overwrite the stack */
        "    mov $58, %eax\n" /* SYS_vfork */
        "    syscall\n"
        "    push %rdi\n"
        "    mov pre_self@gottpoff(%rip), %rcx\n"
        "    test %eax, %eax\n"
        "    sete %fs:(%rcx)\n"
        "    jz 1f\n"
        "    sub $8, %rsp\n"
        "    mov %eax, %edi\n"
        "    call io_vforked\n"
        "    add $8, %rsp\n"
        "1:  ret\n"
        ".size vfork, . - vfork\n");
#else
WRAP(pid_t, vfork, void)
{
    return on_fork();
}
#endif
