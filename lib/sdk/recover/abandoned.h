/* Abandoned sessions: finding the session directories of processes that have exited without
 * finishing them, and reading what their rings hold. */
#pragma once

#include "core/base/err.h"
#include "core/stream/stream.h"
#include "sdk/ring/session_layout.h"
#include "sdk/session/folders.h"

struct sv_abandoned {
    char dir[SV_PATH_MAX];
    struct sv_session_file session; /* a copy, checked: texts end */
    enum sv_process_state process;  /* does it still run? */
    uint64_t part_bytes;            /* of its growing file that are whole */
    uint64_t ring_bytes;            /* of records that the growing file lacks, clients included */
    uint64_t ring_losses;           /* likewise */
    uint32_t n_clients;            /* other processes in it: forked ones, or those of a collector */
    uint32_t running_client;       /* one that still runs, 0: none */
    enum sv_process_state clients; /* RUNS: one does; UNKNOWN: one may */
    int64_t changed_ns;            /* when something last happened in it, CLOCK_REALTIME */
    bool is_other_version;         /* it cannot be read here, but elsewhere */
};

/* Looks at a session directory. SV_EFORMAT: it is none of this version; SV_EINPUT: it is none, or
 * not this user's alone. */
int sv_abandoned_look(const char *dir, struct sv_abandoned *d, struct sv_err *err);

bool sv_abandoned_has_trace(const struct sv_abandoned *d); /* false: it was finished */
bool sv_abandoned_is_kept(const struct sv_abandoned *d); /* its trace was recovered, with --keep */

/* The session directories of this user in the folder; calls `visit` for each until it returns other
 * than 0, which is returned. -1: the folder cannot be used; errno says why. */
int sv_abandoned_each(const struct sv_folder *f, int (*visit)(void *ctx, const char *dir),
                      void *ctx);

/* What the rings hold past the growing file, as a source. It continues from the file: what is open
 * there ends here, so that only both together have begins and ends in order. */
#define SV_ABANDONED_GIVES (SV_HAS_EDGES | SV_HAS_NESTED | SV_IN_NO_ORDER)
int sv_abandoned_source(const struct sv_abandoned *d, struct sv_dict *dict,
                        struct sv_report *report, struct sv_source **out, struct sv_err *err);

/* Notes that it was recovered, and is kept. */
void sv_abandoned_note_kept(const struct sv_abandoned *d);
/* Removes the directory and its files, nothing else. False: something is left. */
bool sv_abandoned_remove(const struct sv_abandoned *d);
