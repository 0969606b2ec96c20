/* Notes: what the scout looks up for records that are decoded later. They are in the spool before
 * their records, and are read when these are decoded. */
#ifndef SV_RECORD_SPOOL_NOTES_H
#define SV_RECORD_SPOOL_NOTES_H

#include "core/base/buf.h"
#include "core/base/map.h"

enum sv_note_kind {
    SV_NOTE_DESCRIPTOR = 1, /* the name of a descriptor */
    SV_NOTE_CGROUP,         /* of a process that made an exec */
    SV_NOTE_RANK,           /* the launcher's variables of such a process */
    /* What the decoder of this recording has learnt already, for another one: */
    SV_NOTE_PROCESS, /* in the form of processes.h */
    SV_NOTE_FILE     /* the path of an inode; `fd` is its device, `ns` its number */
};

/* Which record it is for: that of `pid` with this time (of its start for calls), and the
 * descriptor, if it is about one. */
struct sv_note {
    uint32_t kind, pid;
    int64_t fd;
    uint64_t ns;
};

/* Those of the entries that are being decoded. A zeroed one is empty. */
struct sv_notes {
    struct sv_buf bytes;
    struct sv_map at; /* mixed note → position + 1 */
};

void sv_note_put(struct sv_buf *to, struct sv_note note, const char *text, size_t len);
/* Instead of those before. `learn` gets those for another decoder; NULL: they are known. False:
 * damaged. */
typedef void sv_notes_learn_fn(void *ctx, const struct sv_note *note, const char *text, size_t len);
bool sv_notes_set(struct sv_notes *n, const uint8_t *bytes, size_t len, sv_notes_learn_fn *learn,
                  void *ctx);
/* NULL: there is none. */
const char *sv_notes_find(const struct sv_notes *n, struct sv_note note, size_t *len);
void sv_notes_fini(struct sv_notes *n);

#endif
