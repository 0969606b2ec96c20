/* Jumps of clocks: the wall clock is set, the machine was suspended. Called in each round of the
 * recorder, before what the round brings.
 *
 * Each is an event in the row Recorder, and a snapshot of all clocks, so that the time of day is
 * right from then on. A clock that is only made faster or slower (adjtime) gives no jump between
 * two rounds. */
#include "cli/console.h"
#include "files/range.h"
#include "record/session/recorder.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* What is less is no jump: the looks at the clocks themselves are so far apart, or the clock is
 * being corrected by at most an eighth of its speed. */
#define LEAST_NS ((int64_t)5000000)
enum { SLEW = 8, LOOKS = 4 };

struct look {
    int64_t boot_ns, real_ns, mono_ns, width_ns;
};

static int64_t read_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The narrowest of a few: this process may be put aside between two clocks. */
static struct look look_at_clocks(int64_t narrow_ns)
{
    struct look best = {.width_ns = INT64_MAX};
    for (int i = 0; i < LOOKS && best.width_ns > narrow_ns; i++) {
        struct look l = {.boot_ns = read_ns(CLOCK_BOOTTIME),
                         .real_ns = read_ns(CLOCK_REALTIME),
                         .mono_ns = read_ns(CLOCK_MONOTONIC)};
        l.width_ns = read_ns(CLOCK_BOOTTIME) - l.boot_ns;
        if (l.width_ns < best.width_ns)
            best = l;
    }
    return best;
}

static int64_t absolute(int64_t ns)
{
    return ns < 0 ? -ns : ns;
}

static int write_mark(struct sv_recorder *r, const struct sv_event *mark, const char *name,
                      struct sv_err *err)
{
    struct sv_dict *d = r->dict;
    struct sv_event e = *mark;
    e.track = sv_dict_child(d, 0, SV_TRACK_CUSTOM, sv_dict_cstr(d, "Recorder"));
    e.name = sv_dict_cstr(d, name);
    e.cat = sv_dict_cstr(d, "recorder");
    e.flags = SV_SCOPE_GLOBAL;
    return r->meter.input->write(r->meter.input, &e, 1, err);
}

static int mark_set(struct sv_recorder *r, const struct look *l, int64_t by_ns, struct sv_err *err)
{
    char before[SV_UTC_SIZE], after[SV_UTC_SIZE], by[32];
    sv_utc_text(before, l->real_ns - by_ns);
    sv_utc_text(after, l->real_ns);
    const struct sv_arg args[] = {
        {.key = sv_dict_cstr(r->dict, "by_ns"), .type = SV_ARG_INT, .i = by_ns},
        {.key = sv_dict_cstr(r->dict, "from"),
         .type = SV_ARG_TEXT,
         .size = (uint32_t)strlen(before) & 0xffffff,
         .text = before},
        {.key = sv_dict_cstr(r->dict, "to"),
         .type = SV_ARG_TEXT,
         .size = (uint32_t)strlen(after) & 0xffffff,
         .text = after},
    };
    struct sv_event e = {.ts_ns = l->boot_ns, .kind = SV_INSTANT, .n_args = 3, .args = args};
    sv_console_note("the wall clock was set %s by %s, to %s UTC", by_ns < 0 ? "back" : "forward",
                    sv_human_ns(by, absolute(by_ns)), after);
    return write_mark(r, &e, "clock set", err);
}

static int mark_suspended(struct sv_recorder *r, const struct look *l, int64_t ns,
                          struct sv_err *err)
{
    char text[32];
    struct sv_event e = {.ts_ns = l->boot_ns - ns, .dur_ns = ns, .kind = SV_SLICE};
    sv_console_note("the machine was suspended for %s", sv_human_ns(text, ns));
    sv_triggers_suspended(r, ns);
    return write_mark(r, &e, "suspended", err);
}

int sv_clock_marks_round(struct sv_recorder *r, struct sv_err *err)
{
    struct sv_record_clocks *c = &r->clocks;
    struct look l = look_at_clocks(LEAST_NS / 8);
    struct sv_record_clocks now = {.is_known = true,
                                   .looked_ns = l.boot_ns,
                                   .real_ns = l.real_ns - l.boot_ns,
                                   .asleep_ns = l.boot_ns - l.mono_ns};
    int64_t slept = now.asleep_ns - c->asleep_ns, set = now.real_ns - c->real_ns;
    int64_t awake = now.looked_ns - c->looked_ns - slept, unsure = LEAST_NS + l.width_ns;
    int code = 0;
    bool was_known = c->is_known;
    *c = now;
    if (!was_known)
        return 0;
    bool is_set = absolute(set) > unsure + awake / SLEW, is_asleep = slept > unsure;
    if (is_set || is_asleep)
        sv_recorder_snapshot(r);
    if (is_asleep)
        code = mark_suspended(r, &l, slept, err);
    if (is_set && code >= 0)
        code = mark_set(r, &l, set, err);
    return code;
}
