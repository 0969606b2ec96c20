/* A room: the files of one traced process, seen by another one: the host of its session, a collector, `stave recover`.
 *
 *     sv_room_open → per round: sv_room_rings(), sv_drain_round(), sv_room_names() → sv_room_close
 *
 * The owner may write at any time, and may die at any instruction: everything is checked. No file stays open, since a host may have hundreds
 * of guests in a process whose files are somebody else's. */
#ifndef SV_SDK_ROOM_H
#define SV_SDK_ROOM_H

#include "sdk/session_layout.h"

#include <stdbool.h>
#include <stddef.h>

struct sv_drain;
struct sv_report;

struct sv_room_ring {
    struct sv_ring *ring;
    const uint8_t *data; /* mapped twice in a row */
    uint64_t size;
    void *at;
    size_t bytes;
};

struct sv_room {
    int base_fd; /* borrowed: what `path` begins at */
    char path[SV_PATH_MAX];
    bool is_writable;                /* hosts move tails; others only look */
    struct sv_session_file *session; /* mapped */
    uint32_t pid;                    /* as they were when it was opened */
    uint64_t start_ticks;
    uint64_t names_read;
    struct sv_room_ring *rings; /* those that could be mapped */
    size_t n_rings, cap_rings;
    uint32_t n_met; /* numbers of rings that were looked for */
};

/* False: no session of this version is there (yet). */
bool sv_room_open(struct sv_room *r, int base_fd, const char *path, bool is_writable);
void sv_room_close(struct sv_room *r);
bool sv_room_is_alive(const struct sv_room *r); /* does its process run? */

/* New rings, into the drain unless that is NULL, each from where `round` of the journal left it. */
void sv_room_rings(struct sv_room *r, struct sv_drain *d, uint64_t round, struct sv_report *report);
void sv_room_names(struct sv_room *r, struct sv_drain *d, struct sv_report *report); /* new ones */
void sv_room_name_threads(const struct sv_room *r, struct sv_drain *d);

/* The mark of the last commit up to `round`, NULL: there is none; and how far the output has this ring. */
const struct sv_mark *sv_ring_last_mark(const struct sv_ring *r, uint64_t round);
uint64_t sv_ring_committed(const struct sv_ring *r, uint64_t round);
/* Where to begin to read it: there, or, where newer records have overwritten that, at the oldest one that is whole. */
uint64_t sv_ring_start(const struct sv_ring *r, uint64_t round, uint32_t full);

/* Overwritten rings: records before `start` that are no longer there, or that a reader from there on leaves out. */
uint64_t sv_ring_forgotten(const struct sv_ring *r, const uint8_t *data, uint64_t start);

/* Records that nobody has read: between tail and head. */
uint64_t sv_ring_pending(const struct sv_ring *r, const uint8_t *data);

/* The files of a session and their directory; false: something else is in it. */
bool sv_room_remove(int base_fd, const char *path);

/* Calls visit() with the name of each directory in the directory `fd` until it returns other than 0. */
int sv_room_each(int fd, int (*visit)(void *ctx, const char *name), void *ctx);

#endif
