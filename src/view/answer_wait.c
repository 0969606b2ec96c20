/* What a state or a wait of a thread says beside its arguments: what for, who ended it and where
 * that one was, and whom a running thread woke. Part of /api/slice. */
#include "subjects/io/words.h"
#include "view/answers.h"

#define WOKEN_MAX 100u

static bool is_of(const struct sv_shown *s, uint32_t slice, const char *category)
{
    struct sv_text cat = sv_dict_text(s->trace->dict, s->trace->slices.cat[slice]);
    return cat.len == strlen(category) && memcmp(cat.bytes, category, cat.len) == 0;
}

/* The state of its thread when a wait began, as the recorder stamps both: SV_NO_ROW: none. */
static uint32_t state_of_wait(const struct sv_shown *s, uint32_t slice, uint32_t thread)
{
    const struct sv_slices *c = &s->trace->slices;
    int64_t middle = c->ts_ns[slice] + (c->dur_ns[slice] > 0 ? c->dur_ns[slice] / 2 : 0);
    return sv_state_before(&s->states, thread, middle).row;
}

/* The state that ended with a wake-up: the wait itself, or the one before Runnable. */
static uint32_t woken_from(const struct sv_shown *s, uint32_t slice, uint32_t thread)
{
    const struct sv_trace *t = s->trace;
    uint32_t state = is_of(s, slice, SV_CAT_THREAD_STATE) ? slice : state_of_wait(s, slice, thread);
    if (state == SV_NO_ROW)
        return state;
    unsigned kind = s->states.state_of[t->slices.name[state]];
    if (kind == SV_WAIT_STATE_RUNNABLE && state > t->tracks[t->slices.track[state]].first)
        return state - 1;
    return kind == SV_WAIT_STATE_RUNNING || kind == SV_WAIT_STATE_PREEMPTED ? SV_NO_ROW : state;
}

static void put_waker(struct sv_json *j, const struct sv_shown *s, uint32_t wait)
{
    struct sv_waker w = sv_state_waker(&s->states, wait);
    int64_t at_ns = sv_trace_end_ns(s->trace, wait);
    if (w.kind == SV_WAKER_UNKNOWN)
        return;
    sv_json_put(j, "at", i64_text, at_ns);
    if (w.name.len)
        sv_json_put(j, "waker", text, w.name.bytes, w.name.len);
    sv_json_put(j, "interrupt", bool, w.kind == SV_WAKER_INTERRUPT);
    if (w.tid >= 0)
        sv_json_put(j, "waker_tid", i64_text, w.tid);
    uint32_t row = w.thread == SV_NO_THREAD ? SV_NO_ROW
                                            : sv_state_before(&s->states, w.thread, at_ns).row;
    if (row != SV_NO_ROW) {
        sv_json_lit(j, "by");
        sv_put_short(j, s, row);
    }
}

/* Whom a thread woke while it was in this state: those who became Runnable by it. */
static void put_woken(struct sv_json *j, const struct sv_shown *s, uint32_t slice, uint32_t thread)
{
    const struct sv_trace *t = s->trace;
    int64_t from_ns = t->slices.ts_ns[slice], to_ns = sv_trace_end_ns(t, slice);
    unsigned n = 0;
    sv_json_put(j, "woke", begin, '[');
    for (uint32_t i = 0; i < s->states.n && n < WOKEN_MAX; i++) {
        sv_track track = s->states.threads[i].state;
        if (!track || i == thread)
            continue;
        for (uint32_t row = sv_trace_row_from(t, track, from_ns);
             row < t->tracks[track].end && t->slices.ts_ns[row] <= to_ns && n < WOKEN_MAX; row++)
            if (row > t->tracks[track].first &&
                sv_state_waker(&s->states, row - 1).thread == thread) {
                sv_put_short(j, s, row);
                n++;
            }
    }
    sv_json_end(j);
}

void sv_put_wait(struct sv_json *j, const struct sv_shown *s, uint32_t slice)
{
    bool is_state = is_of(s, slice, SV_CAT_THREAD_STATE);
    uint32_t thread = s->states.n ? sv_thread_of(&s->states, s->trace->slices.track[slice])
                                  : SV_NO_THREAD;
    if (thread == SV_NO_THREAD || (!is_state && !is_of(s, slice, SV_CAT_OFFCPU_SAMPLE)))
        return;
    uint32_t wait = woken_from(s, slice, thread);
    sv_json_put(j, "wait", begin, '{');
    if (wait != SV_NO_ROW) {
        struct sv_state_piece p =
            sv_state_before(&s->states, thread, sv_trace_end_ns(s->trace, wait));
        if (p.reason != SV_WAIT_NO_REASON) {
            sv_json_put(j, "for", cstr, sv_wait_reason_name(p.reason));
            sv_json_put(j, "what", cstr, sv_wait_reason_what(p.reason));
            sv_json_put(j, "assumed", bool, p.is_assumed);
        }
        put_waker(j, s, wait);
    } else if (is_state) {
        put_woken(j, s, slice, thread);
    }
    sv_json_end(j);
}
