/* Events of those who have no ring: counted in a page that every forked process inherits
 * (session_layout.h: struct sv_ringless).
 *
 *   in the program:  sv_ringless_use() with the page of the session that will report the losses →
 *                    sv_ringless_count() per event
 *   in its reader:   sv_ringless_reader_init() → per round sv_ringless_report() → per commit
 *                    sv_ringless_mark()
 *
 * The page is shared memory: a reader takes from it numbers, and no number can do harm. */
#pragma once

#include "core/stream/stream.h"
#include "sdk/ring/session_layout.h"

#define SV_LOST_RING "no ring for the thread" /* the cause, as it is in the output */

/* ---- in the program; async-signal-safe, no system call ---- */

void sv_ringless_use(struct sv_ringless *page); /* from now on, and in forked children */
bool sv_ringless_are_used(void);
void sv_ringless_count(void);
uint64_t sv_ringless_mine(void); /* of this process */
/* Has nobody of this session said a line about it? Then the caller does. */
bool sv_ringless_may_say(void);
void sv_ringless_begin(struct sv_ringless *page); /* a new session: nothing is lost yet */

/* ---- in the reader ---- */

struct sv_ringless_reader {
    const struct sv_ringless *page; /* NULL: none */
    uint32_t pid;                   /* whose the slot of all others is */
    sv_str cause;
    uint64_t reported[SV_LOST_SLOTS];
};

void sv_ringless_reader_init(struct sv_ringless_reader *r, const struct sv_ringless *page,
                             struct sv_dict *dict, uint32_t pid);
/* What was lost since the last report, on the tracks of the processes. False: not all of it has
 * found space in this batch. */
bool sv_ringless_report(struct sv_ringless_reader *r, struct sv_dict *dict, struct sv_batch *b,
                        int64_t ns);
/* Stores in the page what was reported, in the older of its marks. */
void sv_ringless_mark(const struct sv_ringless_reader *r, struct sv_ringless *page, uint64_t round);
void sv_ringless_resume(struct sv_ringless_reader *r, uint64_t round); /* recovery */
uint64_t sv_ringless_pending(const struct sv_ringless *page,
                             uint64_t round); /* not in the output */

/* An event with a count and a cause. */
void sv_report_loss(struct sv_batch *b, sv_track track, int64_t ns, sv_str cause, uint64_t n);
