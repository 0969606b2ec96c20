/* How the writer waits while the program records nothing: four times a second instead of every 10
 * ms, and without a gap in what bursts may hold. Used by writer.c; begin and end on its thread.
 *
 * Nobody who records may make a system call to wake it. But who records uses CPU time: a timer on
 * the CPU time of the process sends the writer a signal, which is blocked in that thread and taken
 * by sigtimedwait(), so that no handler of the program is concerned. Who must wake it otherwise
 * (a stop, a flush, a full ring) uses CPU time, too: sv_wake_writer() spins. */
#include "sdk/write/writer.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { QUIET_MS = 1000, DOZE_MS = 250, CPU_MS = 4, FORK_MS = 10000 };
/* No debugger stops at it, and its default action is to ignore it. */
#define WAKES SIGURG

void sv_doze_begin(struct sv_session_writer *w)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = WAKES};
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    /* Without librt, where a C library still has it there. */
    w->has_doze = syscall(SYS_timer_create, CLOCK_PROCESS_CPUTIME_ID, &event, &w->doze) == 0;
    w->moved_ns = sv_session_writer_now_ns();
}

void sv_doze_end(struct sv_session_writer *w)
{
    if (w->has_doze)
        syscall(SYS_timer_delete, w->doze);
    w->has_doze = false;
}

/* CPU time of children is not that of the process: with a child, or one that may come, no. */
static bool may_doze(struct sv_session_writer *w)
{
    int64_t now = sv_session_writer_now_ns();
    uint32_t forked = atomic_load(&w->process->n_forked);
    if (forked != w->n_forked)
        w->forked_ns = now;
    w->n_forked = forked;
    return w->has_doze && now - w->moved_ns > QUIET_MS * 1000000ll && w->clients.n == 0 &&
           !w->clients.has_unknown_dirs &&
           (forked == 0 || now - w->forked_ns > FORK_MS * 1000000ll);
}

static bool set_timer(struct sv_session_writer *w, long ms)
{
    struct itimerspec at = {.it_value.tv_nsec = ms * 1000000};
    return syscall(SYS_timer_settime, w->doze, 0, &at, NULL) == 0;
}

/* True: nothing came. Who waits for a signal may get one that is for the whole process: it is sent
 * again, for whoever of the program takes it. */
static bool wait_for_signal(const struct sv_session_writer *w)
{
    struct timespec limit = {.tv_nsec = DOZE_MS * 1000000l};
    sigset_t set;
    siginfo_t info = {0};
    sigemptyset(&set);
    sigaddset(&set, WAKES);
    int signal = sigtimedwait(&set, &info, &limit);
    bool is_ours = signal == WAKES && info.si_code == SI_TIMER && info.si_timerid == w->doze;
    if (info.si_code >= 0) /* which a thread may not send */
        info.si_code = SI_QUEUE;
    if (signal == WAKES && !is_ours)
        syscall(SYS_rt_sigqueueinfo, w->process->pid, WAKES, &info);
    return signal < 0 && errno == EAGAIN;
}

bool sv_doze(struct sv_session_writer *w, uint32_t seen)
{
    if (!may_doze(w))
        return false;
    bool was_quiet = false;
    atomic_store(&w->process->dozes, 1); /* pairs with sv_wake_writer() */
    if (atomic_load(&w->process->wake) == seen && set_timer(w, CPU_MS))
        was_quiet = wait_for_signal(w);
    atomic_store(&w->process->dozes, 0);
    if (!was_quiet) /* a program that computes costs no more than before */
        w->moved_ns = sv_session_writer_now_ns();
    set_timer(w, 0);
    return true;
}
