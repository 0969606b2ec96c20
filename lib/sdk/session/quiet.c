/* SIGXFSZ and SIGPIPE kept away from the program: see quiet.h. Both go to the thread that writes,
 * so that blocking them there is enough. */
#include "sdk/session/quiet.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

static const int ours[] = {SIGXFSZ, SIGPIPE};
enum { N_OURS = sizeof ours / sizeof *ours };

void sv_quiet_begin(struct sv_quiet *q)
{
    int saved = errno;
    sigset_t pending;
    sigemptyset(&q->owned);
    for (int i = 0; i < N_OURS; i++)
        sigaddset(&q->owned, ours[i]);
    pthread_sigmask(SIG_BLOCK, &q->owned, &q->mask);
    if (sigpending(&pending) == 0)
        for (int i = 0; i < N_OURS; i++)
            if (sigismember(&pending, ours[i]) == 1)
                sigdelset(&q->owned, ours[i]);
    errno = saved;
}

void sv_quiet_end(struct sv_quiet *q)
{
    int saved = errno;
    const struct timespec now = {0};
    while (sigtimedwait(&q->owned, NULL, &now) > 0)
        ;
    pthread_sigmask(SIG_SETMASK, &q->mask, NULL);
    errno = saved;
}
