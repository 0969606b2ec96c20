/* Leftovers: what programs, recorders and listeners that were killed have left, found by name or
 * all of it.
 *
 * Each is a growing file, a session directory with rings, or both; a claim (core/files/claim.h)
 * ties them to the name of the output. Only what belongs to this user and nobody else could have
 * written is looked at; the rest is a problem, which has a text for the user. */
#ifndef SV_RECORD_OUTPUT_LEFTOVERS_H
#define SV_RECORD_OUTPUT_LEFTOVERS_H

#include "core/files/claim.h"
#include "sdk/recover/abandoned.h"

struct sv_leftover {
    char out[SV_PATH_MAX];  /* the name it was for, absolute; "": it went to no file */
    char part[SV_PATH_MAX]; /* its growing file, which is there; "": none */
    bool has_claim, has_session;
    char problem[160]; /* why the session, dead.dir, cannot be read; "": it can, or there is none */
    struct sv_claim claim;
    struct sv_abandoned dead;
    char spool[SV_PATH_MAX]; /* records that its recorder had not decoded; "": none */
    uint64_t spool_bytes;
    uint64_t part_device, part_inode;
    uint64_t part_bytes; /* of the growing file that are whole */
    uint64_t file_bytes; /* of all of it */
    int64_t changed_ns;  /* when something was last written to it */
};

struct sv_leftovers {
    struct sv_leftover **all; /* newest first */
    size_t n, cap;
    char **problems;
    size_t n_problems, cap_problems;
    /* the system could not say what is there: nothing may be taken for gone */
    struct sv_err failed;
};

void sv_leftovers_fini(struct sv_leftovers *l);

/* All that belongs to the output `name`: its claims, growing files, those that were moved aside,
 * sessions that were to write it. */
void sv_leftovers_of_name(struct sv_leftovers *l, const char *name);
/* One session directory. */
int sv_leftovers_of_session(struct sv_leftovers *l, const char *dir, struct sv_err *err);
/* All sessions of this user on this machine, and what is left in the current directory. */
void sv_leftovers_everywhere(struct sv_leftovers *l);

/* Does its process still run, or one of its clients? *pid is set to it. */
enum sv_process_state sv_leftover_state(const struct sv_leftover *o, uint32_t *pid);
bool sv_leftover_is_bare(const struct sv_leftover *o); /* a claim that leads to nothing */
bool sv_leftover_is_done(const struct sv_leftover *o); /* nothing in it is missing elsewhere */
/* Removes the growing file, the session directory and the claim. `all`: also a session that could
 * not be read. */
void sv_leftover_remove(struct sv_leftover *o, bool all);

/* Who has just taken a claim says that something was left under the name. */
void sv_leftovers_note(const struct sv_claim *c);

bool sv_leftovers_absolute(const char *path, char *to, size_t size);

#endif
