/* Changes of state to edges. Called by the decoder for each record of the scheduler.
 *
 * A thread has one state at a time, so each change ends the one before it. Records of a thread come from several CPUs: a wake-up may
 * be told a moment after the switch that followed it, and must then change nothing. */
#include "record/decode/states.h"

#include <string.h>

void sv_states_init(struct sv_states *s, struct sv_dict *dict)
{
    static const char *const names[SV_STATES] = {
        [SV_STATE_RUNNING] = "Running",     [SV_STATE_RUNNABLE] = "Runnable",
        [SV_STATE_PREEMPTED] = "Preempted", [SV_STATE_SLEEPING] = "Sleeping",
        [SV_STATE_IO] = "Blocked on I/O",   [SV_STATE_BLOCKED] = "Blocked",
        [SV_STATE_STOPPED] = "Stopped"};
    *s = (struct sv_states){.cat = sv_dict_cstr(dict, "thread_state"),
                            .row = sv_dict_cstr(dict, "state"),
                            .cpu = sv_dict_cstr(dict, "cpu"),
                            .io_wait = sv_dict_cstr(dict, "io_wait"),
                            .waker_tid = sv_dict_cstr(dict, "waker_tid"),
                            .waker = sv_dict_cstr(dict, "waker"),
                            .interrupt = sv_dict_cstr(dict, "interrupt")};
    for (unsigned i = 1; i < SV_STATES; i++)
        s->names[i] = names[i] ? sv_dict_cstr(dict, names[i]) : 0;
}

static bool is_change(const struct sv_traced_thread *x, unsigned state)
{
    if (state == x->state)
        return false;
    /* Who can already go on is not made runnable by being woken. */
    return !(state == SV_STATE_RUNNABLE &&
             (x->state == SV_STATE_RUNNING || x->state == SV_STATE_PREEMPTED));
}

/* Number 0 is the CPU that had nothing to do: an interrupt woke the thread. */
static void put_waker(struct sv_states *s, struct sv_batch *b, const struct sv_wire_wake *w)
{
    size_t len = strnlen(w->waker_comm, sizeof w->waker_comm);
    if (w->waker_tid != 0) {
        if (w->waker_tid != SV_WIRE_NO_NUMBER) /* it may be outside of our pid namespace */
            sv_batch_int(b, s->waker_tid, w->waker_tid);
        sv_batch_str(b, s->waker, sv_batch_text(b, w->waker_comm, len), len);
    } else {
        sv_batch_int(b, s->interrupt, 1);
    }
}

void sv_states_change(struct sv_states *s, struct sv_tree *t, struct sv_batch *b,
                      const struct sv_wire_head *h, uint32_t size)
{
    struct sv_traced_thread *x = sv_tree_thread(t, h->tgid, h->tid);
    unsigned state = h->flags;
    if (state == 0 || state >= SV_STATES || !is_change(x, state))
        return;
    int64_t now = (int64_t)h->ts_ns;
    if (x->state_row == 0)
        x->state_row = sv_dict_child(t->dict, x->track, SV_TRACK_CUSTOM, s->row);
    if (now < x->state_ns)
        now = x->state_ns;
    if (x->state) {
        struct sv_event *e = sv_batch_event(b);
        *e = (struct sv_event){.kind = SV_END, .ts_ns = now, .track = x->state_row};
    }
    x->state = state == SV_STATE_DEAD ? 0 : (uint8_t)state;
    x->state_ns = now;
    s->n++;
    if (state == SV_STATE_DEAD)
        return;
    struct sv_event *e = sv_batch_event(b);
    *e = (struct sv_event){.kind = SV_BEGIN,
                           .ts_ns = now,
                           .track = x->state_row,
                           .name = s->names[state],
                           .cat = s->cat};
    if (state == SV_STATE_RUNNING)
        sv_batch_int(b, s->cpu, h->what);
    if (state == SV_STATE_IO)
        sv_batch_int(b, s->io_wait, 1);
    if (state == SV_STATE_RUNNABLE && size >= sizeof(struct sv_wire_wake))
        put_waker(s, b, (const void *)h);
    sv_batch_finish(b, e);
}
