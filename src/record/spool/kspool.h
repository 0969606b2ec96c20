/* The spool of a recording: records of the kernel as they came, in a file beside the output, until
 * they are decoded.
 *
 *     sv_kspool_make → sv_kspool_begin (what is known of the processes) → sv_kspool_append… →
 *     sv_kspool_next… → sv_kspool_reset → … → sv_kspool_remove
 *     sv_kspool_open (after the recorder was killed) → sv_kspool_next…
 *
 * OUT.spool-PID, readable by its user only: a head of one page, then entries. The first has the
 * processes, the others notes (notes.h) or a piece of each ring. The head says up to where entries
 * were decoded when the growing file had so many whole bytes, for the last two of its commits: so
 * after a kill each record is either in the growing file or decoded from here. A whole entry
 * survives the recorder's end, not necessarily that of the machine. It is this machine's and this
 * version's own: no order of bytes, and another layout is refused. */
#ifndef SV_RECORD_SPOOL_KSPOOL_H
#define SV_RECORD_SPOOL_KSPOOL_H

#include "core/base/err.h"
#include "record/kernel/krings.h"

#include <stdbool.h>
#include <stdint.h>

enum sv_kspool_kind {
    SV_KSPOOL_END,
    SV_KSPOOL_PROCESSES, /* what was known when the series began */
    SV_KSPOOL_NOTES,     /* what was looked up for the records of the next entry */
    SV_KSPOOL_RECORDS,
    SV_KSPOOL_LATE /* records, some of which could not wait: nothing was looked up for them */
};

enum { SV_KSPOOL_PATH_MAX = 1100, SV_KSPOOL_ENTRY_MAX = 64 << 20 };

struct sv_kspool {
    int fd; /* -1: none */
    uint32_t n_rings;
    bool is_active; /* has entries */
    uint64_t at;    /* the next entry to read */
    uint64_t end;   /* of the last one that is whole */
    uint64_t n_commits;
    uint8_t *entry; /* the one that was read last */
    size_t n, cap;
    struct sv_krings rings; /* its pieces */
    char path[SV_KSPOOL_PATH_MAX];
};

/* The name of the spool of a recorder that writes OUT. False: too long. */
bool sv_kspool_name(const char *out, uint32_t pid, char *path, size_t size);

int sv_kspool_make(struct sv_kspool *s, const char *out, uint32_t n_rings, struct sv_err *err);
void sv_kspool_remove(struct sv_kspool *s); /* and closes */
void sv_kspool_close(struct sv_kspool *s);  /* leaves the file */

/* A new series of entries: the growing file has `part_bytes` now, which hold all records before
 * it. */
bool sv_kspool_begin(struct sv_kspool *s, const void *processes, size_t n, uint64_t part_bytes);
/* What was read of the rings and not given back to the kernel yet, after its notes. False: it could
 * not be written, and nothing was. */
bool sv_kspool_append(struct sv_kspool *s, const struct sv_krings *rings, bool is_late,
                      const void *notes, size_t n);
/* The growing file has so many whole bytes, with all records up to the next entry to read. Call it
 * before that number is noted elsewhere. */
void sv_kspool_note(struct sv_kspool *s, uint64_t part_bytes);
void sv_kspool_reset(struct sv_kspool *s); /* all entries are decoded, and in the growing file */

/* The next entry: its kind; pieces are in s->rings, other bytes in s->entry, s->n of them.
 * SV_KSPOOL_END: there is no more; negative: damaged or not readable. */
int sv_kspool_next(struct sv_kspool *s, struct sv_err *err);

/* After a kill. *done is where decoding had come for this state of the growing file. SV_EINPUT:
 * there is none, or it is empty. */
int sv_kspool_open(struct sv_kspool *s, const char *path, uint64_t part_bytes, uint64_t *done,
                   struct sv_err *err);

#endif
