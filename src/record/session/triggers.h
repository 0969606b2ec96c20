/* Triggers of a recording with a ring: --when, and what a hit leads to.
 *
 *     conditions (record/when/) see what the meter writes → a hit becomes an instant of the trace →
 *     after --tail the ring is saved under a name of its own (record/output/parts.c) → one line →
 *     with --explain the sentences of `stave explain`
 *
 * A hit while another is being saved, or soon after it (--pause), is counted. SIGUSR1 and `stave
 * trigger` save at once and in any case. */
#ifndef SV_RECORD_SESSION_TRIGGERS_H
#define SV_RECORD_SESSION_TRIGGERS_H

#include "cli/command.h"
#include "core/stream/stream.h"

struct sv_recorder;
struct sv_record_options;
struct sv_triggers;

struct sv_trigger_options {
    struct sv_words when;
    uint64_t keep, disk_bytes;
    const char *tail, *pause;
};

#define SV_TRIGGER_OPTIONS(type)                                                                   \
    {0,                                                                                            \
     "when",                                                                                       \
     "CONDITION",                                                                                  \
     SV_OPT_LIST,                                                                                  \
     offsetof(type, triggers.when),                                                                \
     "save the ring when this happens, such as 'step > 2x median', 'no step for 30s' or 'exit != " \
     "0'; may be given several times; without --last the ring is of 60s. 'stave trigger --check "  \
     "TRACE' tries conditions on a trace",                                                         \
     NULL,                                                                                         \
     NULL},                                                                                        \
        {0,                                                                                        \
         "keep",                                                                                   \
         "N",                                                                                      \
         SV_OPT_COUNT,                                                                             \
         offsetof(type, triggers.keep),                                                            \
         "with --when: keep the newest N saved files (default 20)",                                \
         NULL,                                                                                     \
         "Long recordings"},                                                                       \
        {0,                                                                                        \
         "disk",                                                                                   \
         "SIZE",                                                                                   \
         SV_OPT_BYTES,                                                                             \
         offsetof(type, triggers.disk_bytes),                                                      \
         "with --when: remove the oldest saved files beyond this size, the ring included; with "   \
         "--rotate: the oldest parts",                                                             \
         NULL,                                                                                     \
         "Long recordings"},                                                                       \
        {0,                                                                                        \
         "tail",                                                                                   \
         "TIME",                                                                                   \
         SV_OPT_TEXT,                                                                              \
         offsetof(type, triggers.tail),                                                            \
         "with --when: record so long after the event before it is saved (default 2s)",            \
         NULL,                                                                                     \
         "Long recordings"},                                                                       \
    {                                                                                              \
        0, "pause", "TIME", SV_OPT_TEXT, offsetof(type, triggers.pause),                           \
            "with --when: what happens so soon after a saved event is counted, not saved "         \
            "(default 30s)",                                                                       \
            NULL, "Long recordings"                                                                \
    }

/* What `stave status` says of them. */
struct sv_trigger_counts {
    uint64_t hits, saved, removed; /* removed: by --keep and --disk */
    uint64_t skipped;              /* hits that were only counted */
    const char *newest;            /* the last file that was saved, ""; valid until the next call */
};

/* Before anything is made: conditions and times. Sets --last where --when needs it. */
int sv_triggers_check(struct sv_record_options *o, struct sv_err *err);
/* Nothing without --last. */
int sv_triggers_open(struct sv_recorder *r, struct sv_err *err);
void sv_triggers_close(struct sv_recorder *r); /* waits for what is being explained */

void sv_triggers_feed(struct sv_recorder *r, const struct sv_event *events, size_t n);
void sv_triggers_forget(struct sv_recorder *r, sv_track track);
/* Nothing happened for so long before now: times of conditions are counted without it. */
void sv_triggers_suspended(struct sv_recorder *r, int64_t ns);
/* After each round: hits, and saves when it is time. */
int sv_triggers_round(struct sv_recorder *r, int64_t now, struct sv_err *err);
/* The last round is over: what is waiting to be saved is saved now. */
int sv_triggers_finish(struct sv_recorder *r, int64_t now, struct sv_err *err);
/* With %t in -o only what was saved is kept: the rest of the ring is not, unless the command failed
 * and nothing has saved that. */
bool sv_triggers_drop_rest(const struct sv_recorder *r);
/* parts.c: `path` is complete. */
void sv_triggers_saved(struct sv_recorder *r, const char *path);
struct sv_trigger_counts sv_triggers_counts(const struct sv_recorder *r);

#endif
