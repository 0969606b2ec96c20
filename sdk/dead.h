/* Sessions of processes that are no more: finding them, and reading what their rings still hold. */
#ifndef SV_SDK_DEAD_H
#define SV_SDK_DEAD_H

#include "base/err.h"
#include "model/stream.h"
#include "sdk/session_layout.h"

struct sv_dead {
    char dir[SV_PATH_MAX];
    struct sv_session_file session; /* a copy, checked: texts end, state is known */
    bool is_alive;                  /* its process still runs */
    uint64_t part_bytes;            /* of session.part that are whole */
    uint64_t ring_bytes;            /* of records that the part lacks, guests included */
    uint32_t n_guests;              /* processes forked from it */
    uint32_t live_guest;            /* one that still runs, 0: none */
};

/* Looks at a session directory. SV_EFORMAT: it is none. */
int sv_dead_look(const char *dir, struct sv_dead *d, struct sv_err *err);

bool sv_dead_has_trace(const struct sv_dead *d); /* false: it was finished */

/* The session that a marker (OUT.session) leads to. */
int sv_dead_of_output(const char *out, struct sv_dead *d, struct sv_err *err);

/* All session directories of this user on this machine; calls `visit` for each until it returns other than 0. */
int sv_dead_each(int (*visit)(void *ctx, const char *dir), void *ctx);

/* What the rings hold past the part, as a source (edges). */
int sv_dead_source(const struct sv_dead *d, struct sv_dict *dict, struct sv_report *report,
                   struct sv_source **out, struct sv_err *err);

/* Removes the directory, its files, the growing output and the marker. */
void sv_dead_remove(const struct sv_dead *d, bool with_part);

#endif
