/* An oddity: something that happened any number of times in a stream; the first occurrence is
 * reported in full, at the end. Cheaper than a line in the report per event, for stages that may
 * meet millions. */
#pragma once

#include "core/base/err.h"
#include "core/base/report.h"
#include "core/stream/dict.h"

#include <inttypes.h>
#include <stdio.h>

struct sv_oddity {
    uint64_t count;
    int64_t first_ns;
    sv_track first_track;
};

static inline void sv_oddity_note(struct sv_oddity *o, int64_t ts_ns, sv_track track)
{
    if (o->count++ == 0) {
        o->first_ns = ts_ns;
        o->first_track = track;
    }
}

/* The track for a message: its name, or its numbers where it has none. */
static inline const char *sv_oddity_where(const struct sv_dict *dict, sv_track track, char *to,
                                          size_t size)
{
    const struct sv_track_info *t = &dict->tracks[track];
    if (t->name)
        snprintf(to, size, "track \"%.200s\"", sv_dict_text(dict, t->name).bytes);
    else if (t->kind == SV_TRACK_THREAD)
        snprintf(to, size, "thread %" PRId64 " of process %" PRId64, t->tid, t->pid);
    else if (t->kind == SV_TRACK_PROCESS)
        snprintf(to, size, "process %" PRId64, t->pid);
    else
        snprintf(to, size, "a track without a name");
    return to;
}

#define SV_TOO_LONG "a slice lasts longer than 64 bits of nanoseconds can say"

/* For what cannot be represented at all: SV_ELIMIT when it happened, else 0. */
static inline int sv_oddity_refuse(const struct sv_oddity *o, const struct sv_dict *dict,
                                   const char *what, struct sv_err *err)
{
    if (o->count == 0)
        return 0;
    char where[256];
    return sv_error(err, SV_ELIMIT, "%s: at %" PRId64 " ns on %s; correct it or leave it out", what,
                    o->first_ns, sv_oddity_where(dict, o->first_track, where, sizeof where));
}

/* `report` may be NULL. */
static inline void sv_oddity_report(const struct sv_oddity *o, struct sv_report *report,
                                    const struct sv_dict *dict, enum sv_severity severity,
                                    const char *what)
{
    char where[256];
    if (o->count && report)
        sv_report_add(report, severity, what, o->count, SV_NO_POS, "at %" PRId64 " ns on %s",
                      o->first_ns, sv_oddity_where(dict, o->first_track, where, sizeof where));
}
