/* Whether a processor is free for work that can wait. */
#pragma once

#include <stdbool.h>

struct sv_processors {
    int fd;       /* /proc/loadavg; -1: not known, so they count as free */
    int expected; /* threads that may run at once */
};

void sv_processors_init(struct sv_processors *p);
void sv_processors_fini(struct sv_processors *p);
/* More threads want to run than there are processors, the caller among them. */
bool sv_processors_are_busy(const struct sv_processors *p);
