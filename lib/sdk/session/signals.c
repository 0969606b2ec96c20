/* Signals that end the program: see signals.h. The handler runs anywhere, with any lock held: it
 * only calls what is async-signal-safe, and whatever it waits for has a limit. */
#include "sdk/session/signals.h"
#include "core/base/now.h"

#include "core/files/trusted.h"
#include "sdk/session/sdk.h"
#include "sdk/write/own_table.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { WAIT_MS = 500 };

static const int endings[] = {SIGTERM, SIGINT, SIGHUP};
enum { N_ENDINGS = sizeof endings / sizeof *endings };

/* Until the writer has ended; false: it has not. */
static bool wait_for_writer(struct sv_process *p)
{
    int64_t limit = sv_now_ms() + WAIT_MS;
    while (atomic_load(&p->writer_state) == SV_WRITER_RUNS) {
        int64_t left = limit - sv_now_ms();
        if (left <= 0)
            return false;
        struct timespec pause = {.tv_sec = left / 1000, .tv_nsec = left % 1000 * 1000000};
        syscall(SYS_futex, &p->writer_state, FUTEX_WAIT_PRIVATE, SV_WRITER_RUNS, &pause, NULL, 0);
    }
    return true;
}

static void put(char *line, size_t size, size_t *at, const char *text)
{
    for (; *text && *at + 1 < size; text++)
        line[(*at)++] = *text;
}

/* No printf here. The name is the user's own. */
static void name_recovery(const struct sv_session_file *s)
{
    char line[SV_PATH_MAX + 96];
    size_t n = 0;
    put(line, sizeof line, &n,
        "stave: the trace is not complete; to complete it, run: stave recover ");
    put(line, sizeof line, &n, s->out);
    put(line, sizeof line, &n, "\n");
    struct sv_quiet quiet;
    sv_quiet_begin(&quiet);
    ssize_t ignored = sv_say_may() ? write(STDERR_FILENO, line, n) : 0;
    (void)ignored;
    sv_quiet_end(&quiet);
}

static void finish_trace(void)
{
    struct sv_process *p = sv_process;
    /* A forked child has its parent's handler, but no writer; a vforked one has its memory, too. */
    if (!p || atomic_load(&p->ready) != 2 || p->pid != (uint32_t)getpid() ||
        atomic_load(&p->writer_state) == SV_WRITER_NONE || !p->session)
        return;
    atomic_store(&p->is_ending, 1);
    sv_wake_writer();
    bool has_ended = wait_for_writer(p);
    sv_own_table_say(p);
    if (!has_ended || atomic_load(&p->session->state) != SV_SESSION_CLOSED)
        name_recovery(p->session);
    else
        sv_files_remove(p);
}

static void on_ending(int sig)
{
    struct sigaction by_default = {.sa_handler = SIG_DFL};
    sigset_t set;
    finish_trace();
    sigaction(sig, &by_default, NULL);
    sigemptyset(&set);
    sigaddset(&set, sig);
    raise(sig);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL); /* now */
}

void sv_signals_hold(sigset_t *mask)
{
    sigset_t set;
    sigemptyset(&set);
    for (int i = 0; i < N_ENDINGS; i++)
        sigaddset(&set, endings[i]);
    pthread_sigmask(SIG_BLOCK, &set, mask);
}

void sv_signals_release(const sigset_t *mask)
{
    pthread_sigmask(SIG_SETMASK, mask, NULL);
}

void sv_signals_begin(void)
{
    const char *wish = sv_trusted_getenv("STAVE_SIGNALS");
    struct sigaction ours = {.sa_handler = on_ending, .sa_flags = SA_RESTART}, now;
    if (wish && strcmp(wish, "0") == 0)
        return;
    sigemptyset(&ours.sa_mask);
    for (int i = 0; i < N_ENDINGS; i++)
        sigaddset(&ours.sa_mask, endings[i]);
    for (int i = 0; i < N_ENDINGS; i++)
        if (sigaction(endings[i], NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) &&
            now.sa_handler == SIG_DFL)
            sigaction(endings[i], &ours, NULL);
}

void sv_signals_end(void)
{
    struct sigaction by_default = {.sa_handler = SIG_DFL}, now;
    for (int i = 0; i < N_ENDINGS; i++)
        if (sigaction(endings[i], NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) &&
            now.sa_handler == on_ending)
            sigaction(endings[i], &by_default, NULL);
}
