/* A file that grows and is whole after every flush: new bytes are written over the old closing
 * ones, together with new ones, in one write. A killed process leaves a file that any reader opens.
 * While it is open it is locked, so that another server sees that it is in use. */
#pragma once

#include "core/base/buf.h"

#include <stdbool.h>

struct sv_growing_file {
    int fd;       /* -1: not open */
    uint64_t end; /* where the closing bytes begin */
    int error;    /* errno of the first failure; nothing is written after it */
    const char *closing;
};

/* Replaces what is there. `closing` may be "". False: errno. */
bool sv_growing_open(struct sv_growing_file *f, const char *path, const char *closing);
/* Appends and empties `b`; without bytes it only makes sure that the closing ones are there. */
void sv_growing_flush(struct sv_growing_file *f, struct sv_buf *b);
int sv_growing_close(struct sv_growing_file *f); /* 0 or errno of the first failure */
/* Does a living process have it open this way? */
bool sv_growing_is_busy(const char *path);
