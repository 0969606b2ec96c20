/* Mappings of files that others may truncate: see guard.h. Called for files of clients, in the
 * thread that reads them.
 *
 * The handler is there only while there is something to guard, and passes on what is not ours. It
 * must not allocate or lock: it runs inside whatever touched the page. The list changes only in the
 * guarding thread, which is also the one that faults. */
#include "sdk/ring/guard.h"

#include "sdk/ring/session_layout.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

static struct {
    struct sv_guarded *first;
    pid_t pid, tid; /* of the thread that guards; a forked child has none of the mappings */
    struct sigaction before;
} guard;

static _Thread_local bool is_passing_on __attribute__((tls_model("initial-exec")));

/* What would have happened without us. A handler that was installed over ours may call ours for
 * what it does not know either. */
static void pass_on(int sig, siginfo_t *info, void *context)
{
    const struct sigaction before = guard.before;
    bool is_sent = info->si_code <= 0; /* by kill(), not by a fault */
    bool is_function = before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN;
    if (is_function && !is_passing_on) {
        is_passing_on = true;
        if (before.sa_flags & SA_SIGINFO)
            before.sa_sigaction(sig, info, context);
        else
            before.sa_handler(sig);
        is_passing_on = false;
    } else if (before.sa_handler != SIG_IGN || !is_sent) {
        signal(sig, SIG_DFL); /* the instruction faults again, this time for good */
        if (is_sent)
            raise(sig);
    }
}

static bool put_zeros(void *at, size_t bytes)
{
    return mmap(at, bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) != MAP_FAILED;
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
    bool is_ours = info->si_code > 0 && guard.pid == getpid() && guard.tid == gettid();
    uintptr_t at = (uintptr_t)info->si_addr;
    for (struct sv_guarded *g = is_ours ? guard.first : NULL; g; g = g->next) {
        if (at - (uintptr_t)g->at >= g->bytes)
            continue;
        if (!put_zeros(g->at, g->bytes) &&
            !put_zeros((void *)(at & ~(uintptr_t)(SV_PAGE - 1)), SV_PAGE))
            break;
        *g->is_gone = 1;
        return;
    }
    pass_on(sig, info, context);
}

static bool is_installed(void)
{
    struct sigaction now;
    return sigaction(SIGBUS, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) &&
           now.sa_sigaction == on_fault;
}

void sv_guard_check(void)
{
    struct sigaction act = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    if (guard.first && !is_installed())
        sigaction(SIGBUS, &act, &guard.before);
}

/* A fault while the signal is blocked ends the program. */
static void unblock(void)
{
    sigset_t bus;
    sigemptyset(&bus);
    sigaddset(&bus, SIGBUS);
    pthread_sigmask(SIG_UNBLOCK, &bus, NULL);
}

void sv_guard_add(struct sv_guarded *g, void *at, size_t bytes, volatile sig_atomic_t *is_gone)
{
    if (guard.pid != getpid()) { /* inherited by fork: the mappings were not */
        guard.first = NULL;
        guard.pid = getpid();
    }
    if (guard.tid != gettid()) {
        guard.tid = gettid();
        unblock();
    }
    bool is_first = !guard.first;
    *g = (struct sv_guarded){
        .next = guard.first, .at_me = &guard.first, .at = at, .bytes = bytes, .is_gone = is_gone};
    if (g->next)
        g->next->at_me = &g->next;
    guard.first = g;
    if (is_first)
        sv_guard_check();
}

void sv_guard_remove(struct sv_guarded *g)
{
    if (!g->at_me || guard.pid != getpid())
        return;
    *g->at_me = g->next;
    if (g->next)
        g->next->at_me = g->at_me;
    *g = (struct sv_guarded){0};
    if (!guard.first && is_installed())
        sigaction(SIGBUS, &guard.before, NULL);
}
