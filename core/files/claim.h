/* Claims: who writes an output file. One protocol for traced programs (libstave), `stave record`
 * and `stave listen`.
 *
 *   OUT           the finished file; untouched until the new one is whole
 *   OUT.part      the growing file of the process that holds the claim
 *   OUT.session   the marker: it exists exactly as long as the claim. It appears whole or not at
 *                 all, and only one process can make it
 *   OUT.part.N, OUT.session.N   what processes that were killed left behind under the same name,
 *                               moved aside by the next one
 *
 * Writers:    sv_claim_take → create c.part (SV_OUTPUT_GROW) → sv_claim_whole()… → sv_claim_settle,
 *             which also releases;
 *             or sv_claim_abandon when nothing was recorded.
 * Recovery:   sv_claim_read (the claim that OUT has now) or sv_claims_each (all that belongs to
 *             OUT, newest first)
 *             → sv_process_id_state(&c.holder) → join c.part and c.session into
 *             sv_claim_free_name() → sv_claim_abandon.
 *
 * A marker is believed only when it belongs to this user and nobody else can write to it
 * (trusted.h), so that the session folder it names is this user's own. Its name is the only source
 * of the names of OUT and of the growing file: a part that was moved aside is found through its
 * marker, not through its session. A holder that cannot be judged (another machine, another pid
 * namespace) counts as running.
 *
 * The growing file of a recorder is a Perfetto trace whatever the suffix of OUT: recovery looks at
 * its content. With --last there are segments, too: OUT.ring-NNNN from c.segment on, older than the
 * growing file; OUT.ring-NNNN.open, before the oldest, has what was open then.
 *
 * The marker is text, `key value` lines after the version line "stave-claim 1", at most
 * SV_CLAIM_BYTES_MAX bytes: whole, kind, pid, start, pid-namespace, boot, machine, found, segment,
 * session, command. Unknown keys are ignored. */
#pragma once

#include "core/base/err.h"
#include "core/files/process_id.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SV_CLAIM_PATH_MAX = 1024,
    SV_CLAIM_BYTES_MAX = 4096,
    SV_CLAIM_NUMBER_MAX = 9999,
    SV_CLAIM_KEPT_MAX =
        99 /* so many are renamed, the next is replaced: a loop must not fill a disk */
};
#define SV_CLAIM_SUFFIX ".session"
#define SV_PART_SUFFIX  ".part"

enum sv_claim_kind {
    SV_CLAIM_PROGRAM,  /* a program with libstave: its rings are in the session folder */
    SV_CLAIM_RECORDER, /* stave record: the session folder is that of its collector */
    SV_CLAIM_LISTENER  /* stave listen */
};

/* What was there under the final name when the claim was made: the only file that may be
 * replaced. */
struct sv_claim_found {
    bool is_known, exists;
    uint64_t device, inode, size;
    int64_t changed_s, changed_ns; /* ctime */
};

struct sv_claim {
    char out[SV_CLAIM_PATH_MAX];    /* final name */
    char part[SV_CLAIM_PATH_MAX];   /* growing file; it may not exist (yet) */
    char marker[SV_CLAIM_PATH_MAX]; /* OUT.session or OUT.session.N */
    unsigned number;                /* N; 0: not moved aside */
    enum sv_claim_kind kind;
    struct sv_process_id holder;
    char session[SV_CLAIM_PATH_MAX]; /* folder, "": none */
    char command[256];               /* of the holder, safe to print */
    struct sv_claim_found found;
    /* of the growing file, as journalled here; SV_CLAIM_UNKNOWN: see session */
    uint64_t whole_bytes;
    uint32_t segment; /* recorder with --last: number of its first segment OUT.ring-NNNN; 0: none */
    bool has_left; /* sv_claim_take: what a killed process left under this name was moved aside */
    bool keeps;    /* what was found is renamed when this is settled, not replaced */
    bool is_own;   /* what was found is this process's own, and may go without a word */
    /* sv_claim_settle: what was found was replaced, or has this name now ("": neither) */
    bool has_replaced;
    char kept[SV_CLAIM_PATH_MAX];
    int fd; /* the marker, while this process holds it and journals; else -1 */
    /* which file the marker is: one that others made since then is not touched */
    struct sv_claim_found file;
};
#define SV_CLAIM_UNKNOWN UINT64_MAX

/* ---- reading ---- */

enum sv_claim_state {
    SV_CLAIM_NONE,
    SV_CLAIM_THERE,
    /* the marker is another user's, others can write to it, or it is not a regular file: not
     * read */
    SV_CLAIM_FOREIGN,
    SV_CLAIM_DAMAGED,   /* not a marker of this version */
    SV_CLAIM_UNREADABLE /* the system could not open or read it: errno says why */
};

/* The claim that OUT has now. The names in `c` are set whatever the answer. */
enum sv_claim_state sv_claim_read(const char *out, struct sv_claim *c);
/* All that belongs to OUT, newest first: OUT.session, then OUT.session.N from the highest number
 * down; also those that cannot be read. Until visit() returns other than 0, which is returned. */
int sv_claims_each(const char *out,
                   int (*visit)(void *ctx, const struct sv_claim *c, enum sv_claim_state state),
                   void *ctx);
/* The claim of OUT that names this session folder. False: none does. */
bool sv_claim_of_session(const char *out, const char *session, struct sv_claim *c);

/* ---- holding ---- */

struct sv_claim_wish {
    enum sv_claim_kind kind;
    const char *session; /* folder, NULL: none. It need not exist yet */
    uint32_t pid;        /* for another process of this machine; 0: this one */
    uint32_t segment;
    bool journals; /* sv_claim_whole() will be called */
    /* What was finished under the name since then (CLOCK_REALTIME) is not replaced but renamed; 0:
     * it is replaced. */
    int64_t keep_since_ns;
};

/* 0; SV_EHELD: another process has it, `err` names it; others: it cannot be made. Messages are to
 * be read after "OUT: ". What a dead process left is moved aside, and `has_left` is set. Nothing
 * stays behind after a failure. A claim that was made for this very session is taken over. */
int sv_claim_take(struct sv_claim *c, const char *out, const struct sv_claim_wish *wish,
                  struct sv_err *err);
/* The session folder, where it is made after the claim. The marker is replaced as a whole. */
int sv_claim_set_session(struct sv_claim *c, const char *session, struct sv_err *err);
/* So many bytes of the growing file are whole. */
void sv_claim_whole(struct sv_claim *c, uint64_t bytes);

/* The name that a whole trace of this claim gets: OUT, or, where OUT is a file that was not there
 * when the claim was made, the next free OUT with a number before the suffix. False: too long, or
 * none is left. */
bool sv_claim_free_name(const struct sv_claim *c, char *to, size_t size);
/* The growing file gets that name (c->out afterwards), the marker goes. Nothing is overwritten but
 * what was there before. */
int sv_claim_settle(struct sv_claim *c, struct sv_err *err);
/* The same with another file, made from the growing one, which then goes. */
int sv_claim_settle_as(struct sv_claim *c, const char *from, struct sv_err *err);
void sv_claim_release(struct sv_claim *c); /* the marker only */
void sv_claim_abandon(struct sv_claim *c); /* the growing file, too */
/* Keeps everything for `stave recover`: only closes. */
void sv_claim_keep(struct sv_claim *c);
