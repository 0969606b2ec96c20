/* SIGPIPE and SIGXFSZ: see dispositions.h. Called by main(), and between fork and exec: nothing but
 * sigaction(). */
#include "cli/dispositions.h"

#include <signal.h>
#include <stddef.h>

enum { N = 2 };
static const int numbers[N] = {SIGPIPE, SIGXFSZ};
static struct sigaction before[N];

void sv_dispositions_set(void)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    for (size_t i = 0; i < N; i++)
        sigaction(numbers[i], &ignore, &before[i]);
}

void sv_dispositions_restore(void)
{
    for (size_t i = 0; i < N; i++)
        sigaction(numbers[i], &before[i], NULL);
}
