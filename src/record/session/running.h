/* Recordings that run: each has a small file in the user's runtime folder, by which `stave status`,
 * `stave stop` and `stave trigger` find it.
 *
 *     sv_running_announce → sv_running_update every now and then → the file is removed        (the
 *         recorder)
 *     sv_running_all → sv_running_signal                                                  (the
 *         others) */
#ifndef SV_RECORD_SESSION_RUNNING_H
#define SV_RECORD_SESSION_RUNNING_H

#include "core/base/err.h"
#include "core/files/process_id.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* What changes while it records, beside the size. */
struct sv_running_state {
    uint64_t events, lost;
    uint64_t hits, saved, removed; /* of a ring: conditions met, files saved, and removed again */
    uint64_t skipped;              /* conditions met while another was saved: counted only */
    uint64_t parts, parts_removed; /* --rotate: files so far, the one that grows included */
    uint64_t disk_bytes;           /* --disk; 0: no limit */
    double budget, cost;           /* --budget and what was measured last, shares; 0: none */
    uint64_t steps;                /* of detail that are given up now */
    char recorded[256];            /* what is recorded: "states waits calls …" */
    char conditions[512];          /* of --when, one after the other, with '\n' between them */
    char newest[1024];             /* the last file that was saved, as -o has it; "" */
};

/* Written as it is in memory: only the same program on the same machine reads it. */
struct sv_running {
    char magic[8]; /* also the version */
    struct sv_process_id id;
    int64_t since_s;  /* wall clock */
    uint64_t bytes;   /* on the disk, of all its files */
    uint64_t is_ring; /* with --last: saves on SIGUSR1 */
    /* filled by the reader: its pid namespace is not ours, so its number means nothing here */
    uint64_t is_outside;
    uint64_t terminal;     /* from which it was started; 0: none */
    char name[64];         /* of the recorded command, or what -p said */
    char out[PATH_MAX];    /* where the trace will be */
    char folder[PATH_MAX]; /* in which it was started */
    struct sv_running_state state;
};

/* Remembers the terminal: before a recorder leaves it. */
void sv_running_remember_terminal(void);
/* Was it started from the terminal or the folder of this process? */
bool sv_running_is_near(const struct sv_running *r);

/* Says that this process records; the returned path (malloc) is to be removed at the end, NULL when
 * it cannot be written. */
char *sv_running_announce(const char *name, const char *out, bool is_ring);
void sv_running_update(const char *path, uint64_t bytes, const struct sv_running_state *state);
/* Why no recording can be announced or found: a message, NULL: they can. */
const char *sv_running_problem(char *text, size_t size);
/* All that run now, oldest first; files of processes that are gone are removed. Returns how
 * many. */
size_t sv_running_all(struct sv_running **all);
/* Is it called so: by its number, its command or its output? */
bool sv_running_is(const struct sv_running *r, const char *word);
/* One that has ended meanwhile is no error. One of another pid namespace is. */
int sv_running_signal(const struct sv_running *r, int signal, struct sv_err *err);

#endif
