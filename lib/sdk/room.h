/* A room: the files of one traced process, seen by another one: the host of its session, a collector, `stave recover`.
 *
 *     sv_room_open → per round: sv_room_rings(), sv_drain_round(), sv_room_names() → sv_room_close
 *
 * The owner may write, cut and rename at any time, and may die at any instruction: everything is checked. Folder and files must be this
 * user's alone. No file stays open, since a host may have hundreds of clients in a process whose files are somebody else's. */
#ifndef SV_SDK_ROOM_H
#define SV_SDK_ROOM_H

#include "sdk/guard.h"
#include "sdk/session_layout.h"

struct sv_dict;
struct sv_drain;
struct sv_report;

struct sv_room_ring {
    struct sv_ring *ring;
    const uint8_t *data; /* mapped twice in a row */
    uint64_t size;
    struct sv_guarded guarded;
};

struct sv_room {
    int base_fd; /* borrowed: what `path` begins at */
    char path[SV_PATH_MAX];
    bool is_writable;                /* hosts move tails; others only look */
    volatile sig_atomic_t is_gone;   /* files were cut under us: what is read now is zeros */
    struct sv_session_file *session; /* mapped */
    struct sv_guarded guarded;
    struct sv_process_id process; /* as it was when it was opened */
    uint64_t names_read;
    struct sv_room_ring **rings; /* those that could be mapped */
    size_t n_rings, cap_rings;
    uint32_t n_met; /* numbers of rings that were looked for */
    int error;      /* errno, when the system could not open or map a file that may be there */
};

/* NULL: no session of this version is there (yet); errno is EPERM when it is not this user's alone. */
struct sv_room *sv_room_open(int base_fd, const char *path, bool is_writable);
void sv_room_close(struct sv_room *r);

/* New rings, into the drain unless that is NULL, each from where `round` of the journal left it. */
void sv_room_rings(struct sv_room *r, struct sv_drain *d, uint64_t round, struct sv_report *report);
void sv_room_names(struct sv_room *r, struct sv_drain *d, struct sv_report *report); /* new ones */
void sv_room_name_threads(const struct sv_room *r, struct sv_drain *d);
void sv_room_describe(const struct sv_room *r, struct sv_dict *dict); /* its process's track */

/* What the output has of a ring as of `round`. */
struct sv_ring_progress sv_ring_committed(const struct sv_ring *r, uint64_t size, uint64_t round);
/* Where to begin to read it: behind what is committed, or, where newer records have overwritten that, at the oldest one that is whole. */
uint64_t sv_ring_start(const struct sv_ring *r, uint64_t size, uint64_t committed, uint32_t full);

/* Overwritten rings: records before `start` that are no longer there, or that a reader from there on leaves out. */
uint64_t sv_ring_forgotten(const struct sv_ring *r, const uint8_t *data, uint64_t size,
                           uint64_t start);

/* Records that nobody has read: between tail and head. */
uint64_t sv_ring_pending(const struct sv_ring *r, const uint8_t *data);

/* The files of a session and their directory; false: something else is in it, or it is not this user's. */
bool sv_room_remove(int base_fd, const char *path);

/* Calls visit() with the name of each directory in the directory `fd` until it returns other than 0. */
int sv_room_each(int fd, int (*visit)(void *ctx, const char *name), void *ctx);

#endif
