/* The class of a wait: what its reason says, and where that is not enough, who ended it. Called by
 * why/wait.c for each wait of a span.
 *
 * A sleeping thread is followed to its waker. Within its own process that may be a messenger
 * (PyTorch's pin-memory thread, a queue's feeder) that slept itself; then its waker counts, for a
 * few steps. Bounded: a look at another thread stops after LOOK_MAX pieces. */
#include "store/ranks.h"
#include "why/wait.h"

enum { HOPS_MAX = 4, LOOK_MAX = 64 };

/* How the waker spent the wait: the time in calls on files, and its own longest wait. */
struct look {
    int64_t file_ns, wait_ns;
    struct sv_state_piece wait;
};

static struct look look_at(const struct sv_thread_states *s, uint32_t thread, int64_t from_ns,
                           int64_t to_ns)
{
    struct look l = {0};
    /* Backwards: what it did last is nearest to the reason. */
    for (int i = 0; i < LOOK_MAX && to_ns > from_ns && to_ns > s->threads[thread].from_ns; i++) {
        struct sv_state_piece p = sv_state_before(s, thread, to_ns);
        int64_t from = p.from_ns > from_ns ? p.from_ns : from_ns, ns = p.to_ns - from;
        bool is_sleep = p.row != SV_NO_ROW && p.reason != SV_WAIT_NO_REASON &&
                        p.reason != SV_WAIT_FOR_CPU && p.reason != SV_WAIT_FOR_DISK &&
                        p.reason != SV_WAIT_FOR_FAULT;
        if (p.call != SV_NO_ROW && sv_call_file_kind(s, p.call) == SV_FILE_REGULAR)
            l.file_ns += ns;
        if (is_sleep && ns > l.wait_ns) {
            l.wait_ns = ns;
            l.wait = p;
        }
        to_ns = p.from_ns;
    }
    return l;
}

static enum sv_wait_class without_thread(enum sv_waker_kind kind, enum sv_wait_reason reason)
{
    switch (reason) {
    case SV_WAIT_FOR_LOCK: return SV_TIME_LOCK;
    case SV_WAIT_FOR_PIPE:
    case SV_WAIT_FOR_SOCKET:
    case SV_WAIT_FOR_CHILD: return SV_TIME_PEER;
    case SV_WAIT_FOR_POLL:
        return kind == SV_WAKER_INTERRUPT ? SV_TIME_SLEEP
               : kind == SV_WAKER_OUTSIDE ? SV_TIME_PEER
                                          : SV_TIME_OTHER;
    default: return kind == SV_WAKER_INTERRUPT ? SV_TIME_SLEEP : SV_TIME_OTHER;
    }
}

/* Woken by a thread of another process. */
static enum sv_wait_class of_process(const struct sv_data_workers *w, sv_track own, sv_track other)
{
    const struct sv_trace *t = w->states->trace;
    int64_t mine = sv_rank_of_track(t, own), its = sv_rank_of_track(t, other);
    if (mine >= 0 && its >= 0 && mine != its)
        return SV_TIME_RANK;
    return sv_is_data_worker(w, own, other) ? SV_TIME_DATA : SV_TIME_PEER;
}

static enum sv_wait_class of_sleep(const struct sv_data_workers *w, uint32_t thread,
                                   const struct sv_state_piece *p)
{
    const struct sv_thread_states *s = w->states;
    sv_track own = s->threads[thread].process;
    struct sv_state_piece at = *p;
    for (int hop = 0; hop < HOPS_MAX; hop++) {
        struct sv_waker waker = sv_state_waker(s, at.row);
        if (waker.kind != SV_WAKER_THREAD)
            return without_thread(waker.kind, at.reason);
        if (s->threads[waker.thread].process != own)
            return of_process(w, own, s->threads[waker.thread].process);
        int64_t end = sv_trace_end_ns(s->trace, at.row), from = s->trace->slices.ts_ns[at.row];
        struct look l = look_at(s, waker.thread, from, end);
        if (l.file_ns > (end - from) / 2)
            return SV_TIME_DATA;
        if (l.wait_ns <= (end - from) / 2)
            return SV_TIME_LOCK; /* the other thread was active: it held what this one needed */
        at = l.wait;
    }
    return SV_TIME_LOCK;
}

enum sv_wait_class sv_wait_class_of(const struct sv_data_workers *w, uint32_t thread,
                                    const struct sv_state_piece *p)
{
    switch (p->reason) {
    case SV_WAIT_NO_REASON: return SV_TIME_COMPUTE;
    case SV_WAIT_FOR_CPU: return SV_TIME_CPU;
    case SV_WAIT_FOR_DISK:
    case SV_WAIT_FOR_FAULT: return SV_TIME_DISK;
    case SV_WAIT_FOR_GIL: return SV_TIME_LOCK;
    case SV_WAIT_FOR_SLEEP: return SV_TIME_SLEEP;
    case SV_WAIT_FOR_DATA: return SV_TIME_DATA;
    case SV_WAIT_FOR_GPU: return SV_TIME_GPU;
    case SV_WAIT_FOR_RANK: return SV_TIME_RANK;
    case SV_WAIT_FOR_TERMINAL:
    case SV_WAIT_FOR_STOPPED: return SV_TIME_OTHER;
    default: break;
    }
    if (p->row != SV_NO_ROW)
        return of_sleep(w, thread, p);
    return without_thread(SV_WAKER_UNKNOWN, p->reason);
}
