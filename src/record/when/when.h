/* Conditions of `--when`: what they are, and whether one of them has just come true.
 *
 *     sv_when_new → sv_when_add (one per --when) → sv_when_feed (all events, as they come) and
 *     sv_when_tick (what time alone decides) → sv_when_next (the hits) → sv_when_free
 *
 * Nothing here knows of a recorder or a file: `stave record` feeds what it writes
 * (record/session/triggers.c), `stave trigger --check` a recorded trace. Memory is bounded: a
 * window of durations is a histogram, tables of open slices and of counters have a limit. */
#ifndef SV_RECORD_WHEN_WHEN_H
#define SV_RECORD_WHEN_WHEN_H

#include "core/base/err.h"
#include "core/stream/dict.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SV_WHEN_MAX = 32, SV_WHEN_CAUSE_MAX = 400 };

struct sv_when;

struct sv_when_hit {
    unsigned condition;
    int64_t ts_ns;                 /* on the trace's clock: when the condition became true */
    sv_track track;                /* of the event; 0: none */
    char cause[SV_WHEN_CAUSE_MAX]; /* a sentence without a full stop */
};

struct sv_when *sv_when_new(struct sv_dict *dict);
void sv_when_free(struct sv_when *w);
/* SV_EUSAGE: the message says at which character, and what is expected there. */
int sv_when_add(struct sv_when *w, const char *text, struct sv_err *err);
size_t sv_when_n(const struct sv_when *w);
const char *sv_when_text(const struct sv_when *w, unsigned condition);
/* It has the name and lines of a log, which a recording with --redact must not have. */
bool sv_when_is_private(const struct sv_when *w, unsigned condition);

/* What the conditions need that is not in every recording. */
enum sv_when_need { SV_WHEN_PRESSURE = 1, SV_WHEN_OOM = 2, SV_WHEN_LOG = 4 };
unsigned sv_when_needs(const struct sv_when *w);

/* Events in any order between tracks, begins and ends of one track in theirs. */
void sv_when_feed(struct sv_when *w, const struct sv_event *events, size_t n);
/* The end of a process that no event shows; `status` as wait() gives it. */
void sv_when_exit(struct sv_when *w, int64_t ts_ns, const char *name, int status);
/* It is this late now, and all events up to it have been fed. */
void sv_when_tick(struct sv_when *w, int64_t now_ns);
/* The machine was suspended for so long until now: what is absent or open was not, meanwhile. */
void sv_when_suspended(struct sv_when *w, int64_t ns);
void sv_when_forget(struct sv_when *w, sv_track track); /* its number will be another track's */

/* Takes the oldest hit. More than a few dozen at once are counted only. */
bool sv_when_next(struct sv_when *w, struct sv_when_hit *hit);
uint64_t sv_when_uncounted(const struct sv_when *w); /* hits that found no place since the start */

/* A condition about names that nothing has had in the minute since the first tick, each once. At
 * the end of a recorded trace (`at_end`) at once. False: there is none. */
bool sv_when_unseen(struct sv_when *w, bool at_end, unsigned *condition, const char **what);

/* The kinds of conditions, for the table in docs/record.md. False: there is no such row. */
struct sv_when_row {
    const char *syntax, *holds;
};
bool sv_when_row(size_t i, struct sv_when_row *row);

#endif
