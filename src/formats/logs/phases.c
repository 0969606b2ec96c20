/* Phases of applications, for the readers of their logs. */
#include "formats/logs/phases.h"

#include "core/base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void sv_phases_fini(struct sv_phases *p)
{
    free(p->open);
    *p = (struct sv_phases){0};
}

bool sv_phase_begin(struct sv_phases *p, sv_track track, sv_str name, int64_t ts_ns, int64_t number)
{
    if (p->n == SV_PHASES_OPEN_MAX)
        return false;
    SV_APPEND(p->open, p->n, p->cap) = (struct sv_phase){track, name, ts_ns, number};
    return true;
}

/* What the number of a phase counts. */
static const char *number_key(struct sv_text name)
{
    static const char *const own[] = {"block", "checkpoint", "step"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (sv_text_begins(name, own[i]))
            return own[i];
    return "epoch";
}

static void put(const struct sv_phase *o, struct sv_lines *l, struct sv_batch *b, int64_t dur_ns)
{
    struct sv_text name = sv_dict_text(l->dict, o->name);
    bool is_step = sv_text_begins(name, "step");
    if (o->number >= 0)
        sv_add_int(l, b, number_key(name), o->number);
    struct sv_event *e =
        sv_put_event(l, b, SV_SLICE, o->ts_ns, o->track, o->name, is_step ? "step" : "phase");
    e->dur_ns = dur_ns;
}

bool sv_phase_end(struct sv_phases *p, struct sv_lines *l, struct sv_batch *b, sv_track track,
                  sv_str name, int64_t ts_ns, int64_t number)
{
    for (size_t i = p->n; i > 0; i--) {
        struct sv_phase *o = &p->open[i - 1];
        if (o->track != track || o->name != name ||
            (number >= 0 && o->number >= 0 && number != o->number))
            continue;
        put(o, l, b, ts_ns > o->ts_ns ? ts_ns - o->ts_ns : 0);
        memmove(o, o + 1, (p->n - i) * sizeof *o);
        p->n--;
        return true;
    }
    return false;
}

bool sv_phase_leave(struct sv_phases *p, struct sv_lines *l, struct sv_batch *b)
{
    if (p->n == 0)
        return false;
    put(&p->open[--p->n], l, b, SV_UNFINISHED);
    return true;
}

sv_track sv_phase_track(struct sv_lines *l, int64_t rank)
{
    char name[40] = "phases";
    int n = rank < 0 ? 6 : snprintf(name, sizeof name, "rank %" PRId64 " phases", rank);
    return sv_lines_group(l, 0, SV_TRACK_CUSTOM, name, (size_t)n);
}
