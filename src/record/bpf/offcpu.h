/* Probe `offcpu`: waits of the followed threads that last, with the stack. Both sides include it;
 * the functions are for the kernel only, called by the programs of joint.h.
 *
 * A thread that waits in a system call has the same stack when the call goes on, so it is taken
 * then, in its own context, and only for waits that lasted: short ones cost the filter and nothing
 * more. Outside of calls (preempted, a page fault) a thread goes on without a word, so there only
 * the function that it was in is noted when it leaves. */
#ifndef SV_RECORD_BPF_OFFCPU_H
#define SV_RECORD_BPF_OFFCPU_H

#include "sched.h"
#include "stack.h"

/* The head's `what` is the CPU on which it runs again. Behind the stack's bytes: a struct
 * sv_wire_away. */
struct sv_wire_offcpu {
    struct sv_wire_head head;
    struct sv_wire_stack stack;
};

/* The same without a stack: only where it was is known. By a flag of the head. */
enum { SV_WIRE_NO_STACK = 1 };
struct sv_wire_short_offcpu {
    struct sv_wire_head head;
    __u64 ip;
    struct sv_wire_away away;
};

/* The stack of the thread that ends a wait for a lock which lasted: the head is that thread's.
 * own[0] is the number of the thread that waited, own[1] when its wait began. The record of that
 * wait comes later. */
struct sv_wire_release {
    struct sv_wire_head head;
    struct sv_wire_stack stack;
};

#if defined(__bpf__) && KNOWS_CALLS && STACK_CAN_COPY

#include "open_file.h"

/* What kind of file the call waits for: of calls whose first argument is a descriptor. */
static __always_inline __u32 mode_of_file(__u32 nr, __u64 fd)
{
    switch (nr) {
    case 0:   /* read */
    case 1:   /* write */
    case 17:  /* pread64 */
    case 18:  /* pwrite64 */
    case 19:  /* readv */
    case 20:  /* writev */
    case 295: /* preadv */
    case 296: /* pwritev */
    case 275: /* splice */ break;
    default: return 0;
    }
    struct file *file = file_of((__s32)fd);
    return file ? BPF_CORE_READ(file, f_inode, i_mode) : 0;
}

CHECKED_ONCE int put_away(__u64 size, struct sv_wire_task *s, __u64 now)
{
    struct stack_room *r = stack_room(STACK_OF_SWITCH);
    __u64 n = size - sizeof r->head - sizeof r->stack;
    if (!r || !s || size < sizeof r->head + sizeof r->stack || n > sizeof r->bytes - sizeof s->away)
        return 0;
    fill_head_at(&r->head, SV_WIRE_OFFCPU, bpf_get_smp_processor_id(), pids_in(s), now);
    __builtin_memcpy(r->bytes + n, &s->away, sizeof s->away);
    send_stack(r, size + sizeof s->away, s, SV_WIRE_OFFCPU);
    s->away.begin_ns = s->away.end_ns = 0;
    return 0;
}

CHECKED_ONCE int put_without_stack(struct sv_wire_task *s, __u64 now)
{
    void *ring = my_ring();
    struct sv_wire_short_offcpu *w = s && ring ? bpf_ringbuf_reserve(ring, sizeof *w, 0) : 0;
    count(SV_WIRE_OFFCPU, w != 0);
    if (w) {
        fill_head_at(&w->head, SV_WIRE_OFFCPU, bpf_get_smp_processor_id(), pids_in(s), now);
        w->head.flags = SV_WIRE_NO_STACK;
        w->ip = s->away.ip;
        w->away = s->away;
        bpf_ringbuf_submit(w, s->is_sampled ? wake_flags(ring, sizeof *w) : BPF_RB_FORCE_WAKEUP);
        s->is_sampled = 1;
    }
    if (s)
        s->away.begin_ns = s->away.end_ns = 0;
    return 0;
}

static __always_inline __u32 rank_of(const struct sv_wire_task *s)
{
    __u64 ns = s->away.end_ns - s->away.begin_ns;
    return ns >= 10000000  ? STACK_OF_LONG_WAIT
           : ns >= 1000000 ? STACK_OF_WAIT
                           : STACK_OF_SHORT_WAIT;
}

/* The current thread has waited in the call that it is still in. */
static __noinline int settle(void *ctx, struct sv_wire_task *s)
{
    struct stack_room *r = stack_room(STACK_OF_SWITCH);
    if (!r || !s)
        return 0;
    struct call_under_way c = call_under_way(bpf_get_current_task_btf());
    __u64 now = now_ns();
    if (!s->away.file)
        s->away.file = mode_of_file(s->away.nr, c.arg0);
    if (is_crowded() || !may_take_stack(now, rank_of(s)))
        return put_without_stack(s, now);
    return put_away(take_stack(ctx, r, s, STACK_OF_SWITCH, false), s, now);
}

static __always_inline void goes_away(void *ctx, struct sv_wire_task *s, unsigned state,
                                      struct call_under_way c, __u64 now)
{
    if (s->away.end_ns)
        settle(ctx, s);
    if (state == SV_STATE_DEAD) {
        s->away.begin_ns = 0;
        return;
    }
    s->away.nr = c.nr;
    s->away.lock = c.lock;
    s->away.ip = c.ip;
    s->away.state = state;
    s->away.woken_ns = 0;
    s->away.file = c.file;
    s->away.waker_tid = SV_WIRE_NO_PID;
    s->away.waker_comm[0] = 0;
    s->away.begin_ns = now;
}

/* The two futexes of a condition variable are in one word; waiters move from one to the other. */
#define LOCK_OF(futex)     ((futex) & ~7ull)
#define LIMIT_IS_RECENT_NS 20000000

/* By process: the last lock for which one of its threads has waited until a time limit. */
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 1024);
    __type(key, __u32);
    __type(value, __u64);
} limited_locks SEC(".maps");

/* Some wait for a lock with a time limit, again and again: only the last of these waits says who
 * released it, however short that one is. CPython does so, and a thread that releases its lock
 * waits until another has taken it: at the condition behind the lock's own condition and mutex. */
static __always_inline bool is_part_of_more(struct sv_wire_task *s)
{
    if (!is_futex(s->away.nr))
        return false;
    if (!s->limited_lock) {
        __u32 tgid = s->tgid;
        const __u64 *lock = bpf_map_lookup_elem(&limited_locks, &tgid);
        if (!lock)
            return false;
        s->limited_lock = *lock;
    }
    __u64 behind = LOCK_OF(s->away.lock) - s->limited_lock;
    if (behind == 0)
        return s->limited_ns && s->away.begin_ns - s->limited_ns < LIMIT_IS_RECENT_NS;
    return behind >= 16 && behind < 112;
}

static __always_inline bool lasts(struct sv_wire_task *s, __u64 now)
{
    return now - s->away.begin_ns >= shared.wait_min_ns || is_part_of_more(s);
}

static __always_inline void note_limit(struct sv_wire_task *s, __u64 now)
{
    if (!is_futex(s->away.nr))
        return;
    if (s->away.woken_ns && !s->away.waker_tid) {
        __u64 lock = LOCK_OF(s->away.lock);
        __u32 tgid = s->tgid;
        if (lock != s->limited_lock)
            bpf_map_update_elem(&limited_locks, &tgid, &lock, BPF_ANY);
        s->limited_lock = lock;
        s->limited_ns = now;
    } else if (LOCK_OF(s->away.lock) == s->limited_lock) {
        s->limited_ns = 0;
    }
}

static __always_inline void comes_back(struct sv_wire_task *s, __u64 now, __u64 quota_ns)
{
    if (!s->away.begin_ns)
        return;
    if (!lasts(s, now)) {
        s->away.begin_ns = 0;
        return;
    }
    s->away.end_ns = now;
    if (s->away.state == SV_STATE_PREEMPTED && quota_ns >= (now - s->away.begin_ns) / 2)
        s->away.state |= SV_STATE_QUOTA;
    note_limit(s, now);
    if (s->away.nr == SV_WIRE_NO_CALL)
        put_without_stack(s, now);
}

/* The current thread wakes it. Interrupts do not come here: they would find the room in use. */
static __noinline int put_release(void *ctx, const struct sv_wire_task *woken)
{
    const struct interrupts *i = my_interrupts();
    struct sv_wire_task *self = i && !i->hard && !i->soft ? followed_self() : 0;
    struct stack_room *r = self ? stack_room(STACK_OF_SWITCH) : 0;
    if (!self || !r || !woken || is_crowded() ||
        !may_take_stack(woken->away.woken_ns, STACK_OF_WAKER))
        return 0;
    __u64 size = take_stack(ctx, r, self, STACK_OF_SWITCH, false);
    fill_head(&r->head, SV_WIRE_RELEASE, bpf_get_smp_processor_id(), pids_in(self));
    r->stack.own[0] = woken->tid;
    r->stack.own[1] = woken->away.begin_ns;
    send_stack(r, size, self, SV_WIRE_RELEASE);
    return 0;
}

static __always_inline void is_woken(void *ctx, struct sv_wire_task *s, const struct waker *by,
                                     __u64 now)
{
    if (!s->away.begin_ns || s->away.end_ns || s->away.woken_ns)
        return;
    s->away.woken_ns = now;
    s->away.waker_tid = by->pids.tid;
    __builtin_memcpy(s->away.waker_comm, by->name, sizeof s->away.waker_comm);
    if (s->away.lock && s->away.waker_tid && lasts(s, now))
        put_release(ctx, s);
}

/* The switch to this thread may not have been seen, which happened on Linux 6.18 now and then: the
 * call in which the thread waited has just ended, so it runs. One that was not in a call has made
 * this one since. */
static __always_inline void come_back_unseen(struct sv_wire_task *s)
{
    bool is_since = s->away.nr == SV_WIRE_NO_CALL && s->start_ns > s->away.begin_ns;
    s->away.state |= SV_STATE_INFERRED;
    comes_back(s, is_since ? s->start_ns : now_ns(), 0);
}

static __always_inline int leave_wait(void *ctx, struct sv_wire_task *s)
{
    if (!s || !s->away.begin_ns) /* nearly always: nothing else of it is looked at */
        return 0;
    if (!s->away.end_ns)
        come_back_unseen(s);
    return s->away.end_ns ? settle(ctx, s) : 0;
}

#endif

#endif
