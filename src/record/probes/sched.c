/* Probe `sched`: the states of threads (running, runnable, waiting …) as slices on a row `state`
 * below each thread. SQL's thread_state shows them.
 *
 * A thread has one state at a time, so each change ends the one before it. Records of a thread come
 * from several CPUs: the record of a wake-up may come after that of the switch that followed it,
 * and must then change nothing. The kernel does not show each switch: a thread that has made a call
 * since its last state runs, and that is marked as inferred. */
#include "record/probes/sched.h"
#include "record/probes/waits.h"
#include "record/spool/scout.h"

struct states {
    sv_str names[SV_STATES];
    struct sv_waits waits;
    sv_str quota;
};

static void open_states(struct sv_decode *d, void *state)
{
    static const char *const names[SV_STATES] = {
        [SV_STATE_RUNNING] = "Running",     [SV_STATE_RUNNABLE] = "Runnable",
        [SV_STATE_PREEMPTED] = "Preempted", [SV_STATE_SLEEPING] = "Sleeping",
        [SV_STATE_IO] = "Blocked on I/O",   [SV_STATE_BLOCKED] = "Blocked",
        [SV_STATE_STOPPED] = "Stopped"};
    struct states *s = state;
    for (unsigned i = 1; i < SV_STATES; i++)
        s->names[i] = names[i] ? sv_dict_cstr(d->source.dict, names[i]) : 0;
    sv_waits_init(&s->waits, d->source.dict);
    s->quota = sv_dict_cstr(d->source.dict, SV_WAIT_QUOTA);
}

static bool is_change(const struct sv_traced_thread *x, unsigned state)
{
    /* A wait after a wait is another one: what woke the thread was hidden from the tracepoints. */
    if (state == x->state)
        return state != SV_STATE_RUNNING && state != SV_STATE_RUNNABLE;
    /* Who can already continue is not made runnable by being woken. */
    return !(state == SV_STATE_RUNNABLE &&
             (x->state == SV_STATE_RUNNING || x->state == SV_STATE_PREEMPTED));
}

/* What the state says already is not repeated. */
static void put_reason(const struct states *s, struct sv_decode *d, struct sv_batch *b,
                       const struct sv_wire_wait *w)
{
    unsigned state = w->head.flags & SV_STATE_ONLY;
    struct sv_waits_for what = {.pid = w->head.tgid,
                                .nr = w->nr,
                                .file = w->file,
                                .lock = w->lock,
                                .begin_ns = w->head.ts_ns};
    if (state == SV_STATE_IO && w->nr == SV_WIRE_NO_CALL) /* in no call: a page is missing */
        what.reason = SV_WAIT_FOR_FAULT;
    if (state == SV_STATE_SLEEPING || state == SV_STATE_BLOCKED)
        what.reason = sv_waits_reason(state, w->nr, w->file);
    if (what.reason)
        sv_waits_put(&s->waits, d, b, &what);
}

/* The end of the state before. `ran` is NULL unless the thread could run and its group's quota of
 * CPU time was used up. */
static void put_end(const struct states *s, struct sv_decode *d, struct sv_batch *b, int64_t now,
                    sv_track row, const struct sv_wire_ran *ran)
{
    struct sv_event *e = sv_batch_put(b, SV_END, now, row, 0, 0);
    if (!ran || ran->quota_ns > INT64_MAX)
        return;
    sv_waits_put(&s->waits, d, b,
                 &(struct sv_waits_for){.reason = SV_WAIT_FOR_QUOTA, .nr = SV_WIRE_NO_CALL});
    sv_batch_int(b, s->quota, (int64_t)ran->quota_ns);
    sv_decode_put_cgroup(d, b, sv_decode_cgroup(d, ran->cgroup));
    sv_batch_finish(b, e);
}

/* At most two events: the end of the old state, the begin of the new one. The size of the record
 * shows whether it has the waker, or the call that it waits in. */
static bool decode_state(struct sv_decode *d, void *state, struct sv_batch *b,
                         const struct sv_wire_head *h, uint32_t size)
{
    const struct states *s = state;
    struct sv_traced_thread *x = sv_tree_thread(&d->tree, h->tgid, h->tid);
    unsigned to = h->flags & SV_STATE_ONLY;
    if (to == 0 || to >= SV_STATES || !is_change(x, to))
        return true;
    int64_t now = (int64_t)h->ts_ns < x->state_ns ? x->state_ns : (int64_t)h->ts_ns;
    sv_track row = sv_decode_row(d, h, SV_PROBE_sched, SV_ROW_STATE);
    if (x->state)
        put_end(s, d, b, now, row,
                size >= sizeof(struct sv_wire_ran) && to == SV_STATE_RUNNING
                    ? (const struct sv_wire_ran *)(const void *)h
                    : NULL);
    x->state = to == SV_STATE_DEAD ? 0 : (uint8_t)to;
    x->state_ns = now;
    if (to == SV_STATE_DEAD)
        return true;
    struct sv_event *e = sv_batch_put(b, SV_BEGIN, now, row, s->names[to], d->words.cat_state);
    if (to == SV_STATE_RUNNING)
        sv_batch_int(b, d->words.cpu, h->what);
    if (to == SV_STATE_IO)
        sv_batch_int(b, d->words.io_wait, 1);
    const struct sv_wire_wake *wake = (const void *)h;
    if (to == SV_STATE_RUNNABLE && size >= sizeof *wake)
        sv_waits_waker(d, b, wake->waker_tid, wake->waker_comm);
    else if (size >= sizeof(struct sv_wire_wait))
        put_reason(s, d, b, (const void *)h);
    if (h->flags & SV_STATE_INFERRED)
        sv_batch_int(b, s->waits.inferred, 1);
    sv_batch_finish(b, e);
    return true;
}

void sv_states_end_unseen(struct sv_decode *d, struct sv_batch *b, struct sv_traced_thread *x,
                          int64_t ran_ns)
{
    const struct states *s = d->states[SV_PROBE_sched];
    sv_track row = x->rows[SV_PROBE_sched];
    struct sv_event *e = sv_batch_put(b, SV_END, ran_ns, row, 0, 0);
    sv_batch_int(b, s->waits.inferred, 1);
    sv_batch_finish(b, e);
    e = sv_batch_put(b, SV_BEGIN, ran_ns, row, s->names[SV_STATE_RUNNING], d->words.cat_state);
    sv_batch_int(b, s->waits.inferred, 1);
    sv_batch_finish(b, e);
    x->state = SV_STATE_RUNNING;
    x->state_ns = ran_ns;
}

void sv_states_end(struct sv_batch *b, struct sv_traced_thread *x, int64_t now_ns)
{
    if (x->state)
        sv_batch_put(b, SV_END, now_ns > x->state_ns ? now_ns : x->state_ns,
                     x->rows[SV_PROBE_sched], 0, 0);
    x->state = 0;
}

const struct sv_probe sv_probe_sched = {
    .name = "sched",
    .cat = SV_CAT_THREAD_STATE,
    .records = {{SV_WIRE_STATE, sizeof(struct sv_wire_head), "thread states", decode_state}},
    .option = {.name = "sched",
               .help = "record thread states in spite of --light or a configuration's no-sched",
               .topic = "Threads",
               .off_name = "no-sched",
               .off_help = "do not record thread states"},
    .less = "--no-sched",
    .docs =
        {"thread states", "`state` below the thread",
         "Running, with its CPU; Runnable, with its waker; Preempted, Sleeping, Blocked on I/O, "
         "Blocked, Stopped"},
    .tracepoint = "sched_switch",
    .state_size = sizeof(struct states),
    .open = open_states,
    .can_wait = sv_scout_always,
};
