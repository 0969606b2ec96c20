/* The files of one traced process as another process sees them: the collector of its session, or
 * `stave recover`.
 *
 *     sv_client_files_open → per round: sv_client_files_rings(), sv_drain_round(),
 *     sv_client_files_names() → sv_client_files_close
 *
 * The client may write, truncate and rename its files at any time, and may be killed at any
 * instruction: everything is checked. Directory and files must belong to this user and be
 * accessible to nobody else. No file stays open: a collector may have hundreds of clients, and it
 * runs in a process whose descriptors belong to the program. */
#pragma once

#include "sdk/ring/guard.h"
#include "sdk/ring/session_layout.h"

struct sv_dict;
struct sv_drain;
struct sv_report;

struct sv_client_ring {
    struct sv_ring *ring;
    const uint8_t *data; /* mapped twice in a row */
    uint64_t size;
    struct sv_guarded guarded;
    uint32_t n_looks; /* rounds in which its thread's name was wanted */
    char comm[16];    /* its name in the kernel, read later than the ring's; "": not yet */
};

struct sv_client_files {
    int base_fd; /* borrowed: what `path` begins at */
    char path[SV_PATH_MAX];
    bool is_writable;                /* collectors move tails; others only look */
    volatile sig_atomic_t is_gone;   /* its files were truncated: reads give zeros */
    struct sv_session_file *session; /* mapped */
    struct sv_guarded guarded;
    struct sv_process_id process; /* as it was when it was opened */
    uint64_t names_read;
    struct sv_client_ring **rings; /* those that could be mapped */
    size_t n_rings, cap_rings;
    uint32_t n_met; /* numbers of rings that were looked for */
    int error;      /* errno, when the system could not open or map a file that may be there */
};

/* NULL: there is no session of this version (yet). errno is EPERM when other users have access to
 * it. */
struct sv_client_files *sv_client_files_open(int base_fd, const char *path, bool is_writable);
void sv_client_files_close(struct sv_client_files *r);

/* Adds new rings to the drain unless that is NULL, each from its position as of `round` of the
 * journal. */
void sv_client_files_rings(struct sv_client_files *r, struct sv_drain *d, uint64_t round,
                           struct sv_report *report);
/* New names. False: they cannot be read now; the records that need them are to wait. */
bool sv_client_files_names(struct sv_client_files *r, struct sv_drain *d, struct sv_report *report);
/* Threads may get their names after their first event: reads those that are due, of a process that
 * runs and is in the reader's pid namespace. */
bool sv_client_files_names_due(struct sv_client_files *r);
void sv_client_files_read_comms(struct sv_client_files *r);
void sv_client_files_name_threads(const struct sv_client_files *r, struct sv_drain *d);
void sv_client_files_describe(const struct sv_client_files *r,
                              struct sv_dict *dict); /* its process's track */

/* What the output has of a ring as of `round`. */
struct sv_ring_progress sv_ring_committed(const struct sv_ring *r, uint64_t size, uint64_t round);
/* Where to begin to read it: after what is committed, or, where newer records have overwritten
 * that, at the oldest one that is whole. */
uint64_t sv_ring_start(const struct sv_ring *r, uint64_t size, uint64_t committed, uint32_t full);

/* Overwritten rings: records before `start` that are no longer there, or that a reader from there
 * on leaves out. */
uint64_t sv_ring_forgotten(const struct sv_ring *r, const uint8_t *data, uint64_t size,
                           uint64_t start);

/* Records that nobody has read: between tail and head. */
uint64_t sv_ring_pending(const struct sv_ring *r, const uint8_t *data);

/* The files of a session and their directory; false: something else is in it, or it is not this
 * user's. */
bool sv_client_files_remove(int base_fd, const char *path);

/* Calls visit() with the name of each directory in the directory `fd` until it returns other than
 * 0. */
int sv_client_files_each(int fd, int (*visit)(void *ctx, const char *name), void *ctx);
