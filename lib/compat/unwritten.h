/* The events of a ferrum file that are not in it yet: JSON text in memory that all processes share
 * which forked with the writer open, and that `stave recover` finds by its name after a crash.
 *
 *     sv_unwritten_new → under its lock: print at sv_unwritten_end(), move `pushed`; write what is
 *     between `written` and `pushed` to the file, move `written` → sv_unwritten_remove
 *     sv_unwritten_each → sv_unwritten_complete → sv_unwritten_discard      (recovery)
 *
 * `pushed` and `written` count bytes since the beginning and only grow, one store each: whoever is
 * killed leaves either the old value or the new one. Between two events is a comma, and the first
 * has one, too: in the file the bracket of the array is in its place. So a byte of the text is in
 * the file at its position less `origin`, and writing it there again changes nothing. */
#pragma once

#include "core/base/err.h"
#include "sdk/ring/session_layout.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

enum { SV_UNWRITTEN_HEAD = 16384, SV_UNWRITTEN_RING = 65536, SV_UNWRITTEN_PATH = 8192 };

struct sv_unwritten { /* the head */
    uint64_t magic;
    uint32_t version, pid;
    pthread_mutex_t lock;             /* robust: it survives its owner */
    _Atomic uint64_t pushed, written; /* see above */
    _Atomic uint64_t origin;
    int64_t tried_ns;      /* when it was last written to the file, CLOCK_MONOTONIC */
    int error;             /* errno of the first event that was lost */
    _Atomic bool has_name; /* recovery finds it; false: each event is written at once */
    dev_t device;          /* of the file */
    ino_t inode;
    char path[SV_UNWRITTEN_PATH];
};
_Static_assert(sizeof(struct sv_unwritten) <= SV_UNWRITTEN_HEAD, "the head has its pages");

static inline uint8_t *sv_unwritten_at(struct sv_unwritten *u, uint64_t position)
{
    return (uint8_t *)u + SV_UNWRITTEN_HEAD + position % SV_UNWRITTEN_RING;
}

/* `dir` becomes its folder; "": it has no name. NULL: errno. */
struct sv_unwritten *sv_unwritten_new(char dir[static SV_PATH_MAX]);
void sv_unwritten_remove(struct sv_unwritten *u, const char *dir); /* the name only */
void sv_unwritten_free(struct sv_unwritten *u);                    /* the memory only */

/* ---- recovery ---- */

struct sv_unwritten_left {
    char dir[SV_PATH_MAX];
    char path[SV_UNWRITTEN_PATH]; /* of the file, absolute */
    uint32_t pid;
    dev_t device;
    ino_t inode;
    uint64_t at; /* where in the file the text belongs */
    size_t n;
    uint8_t text[SV_UNWRITTEN_RING];
};

/* All of this user, until visit() returns other than 0, which is returned. What is damaged is left
 * out. */
int sv_unwritten_each(int (*visit)(void *ctx, const struct sv_unwritten_left *l), void *ctx);
/* Does a process still have the file open to write it? */
bool sv_unwritten_is_held(const struct sv_unwritten_left *l);
/* Writes the text to the file, which is at `path` now, and reads it back. SV_EHELD: a process still
 * writes the file. */
int sv_unwritten_complete(const struct sv_unwritten_left *l, const char *path, struct sv_err *err);
void sv_unwritten_discard(const char *dir);
