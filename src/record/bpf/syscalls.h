/* Probe `syscalls`: one record per system call of the followed tasks. Both sides include it; the
 * programs are for the kernel only.
 *
 * The entry of a call notes its arguments in the state of the task, the exit writes the record. */
#ifndef SV_RECORD_BPF_SYSCALLS_H
#define SV_RECORD_BPF_SYSCALLS_H

#include "records.h"

#include <stddef.h>

enum sv_wire_call_flag {
    SV_WIRE_STATE_ONLY = 1, /* only for the table of descriptors, not an event */
    SV_WIRE_NO_PATH = 2,    /* the memory of the path could not be read */
    SV_WIRE_UNFINISHED = 4, /* has begun and not ended: ts_ns is when that was found */
    SV_WIRE_SHORT = 8       /* the record is a struct sv_wire_short_call */
};

struct sv_wire_call {
    struct sv_wire_head head;
    __u64 start_ns;
    __s64 ret;
    __s32 fd;
    __u32 aux;    /* flags, mode, a second descriptor: see the plan */
    __u64 size;   /* ~0: not known */
    __s64 offset; /* -1: not known */
    __u64 inode;  /* of fd's file when the call began, or of what it opened; 0: not known */
};

/* The same where all numbers are small, which is nearly always. A call without a path ends before
 * the first of the last three members from which on all have the value that sv_call_whole() gives
 * to one that is missing. */
struct sv_wire_short_call {
    struct sv_wire_head head;
    __u32 took_ns;
    __s32 ret;
    __s32 fd;
    __u32 inode;
    __u32 offset; /* missing: ~0, which is not known */
    __u32 aux;    /* missing: 0 */
    __u32 size;   /* missing: the same as ret */
};

#if defined(__bpf__)

#include "call_form.h"
#include "call_room.h"
#include "open_file.h"
#include "path_filter.h"
#include "process_start.h"
#include "syscall_context.h"

/* The file of a descriptor can be read only now: when the call ends another thread may have closed
 * it and opened another file. */
static __always_inline void note_descriptor(struct sv_wire_task *s,
                                            const volatile struct sv_wire_plan *p)
{
    s->inode = 0;
    s->is_outside = 0;
    if (p->fd == SV_WIRE_NONE || p->path != SV_WIRE_NONE)
        return;
    __s32 fd = (__s32)s->args[p->fd & 7];
    s->inode = inode_of(fd);
    s->is_outside = is_outside_fd(fd, p);
}

/* The check before it (on_enter) is a function of its own, which saves no registers: it is enough
 * for most calls of most processes. */
static __noinline int enter(struct enter_context *ctx)
{
    unsigned long id = (unsigned long)ctx->id;
    struct sv_wire_task *s = state_at_entry();
    note_end(s, ctx);
    if (!s || id >= SV_WIRE_CALLS_MAX || !config.plans[id].wants)
        return 0;
    if (is_foreign(ctx)) {
        struct sv_wire_counts *c = my_counts();
        if (c)
            c->foreign++;
        return 0;
    }
    save_args(s, ctx);
    s->nr = (__u32)id;
    s->is_open = 1;
    s->start_ns = now_ns();
    note_descriptor(s,
                    &config.plans[id]); /* last: as close as can be to what the call itself sees */
    return 0;
}

ENTERS
int on_enter(struct enter_context *ctx)
{
    return is_not_followed(REGISTERS()) ? 0 : enter(ctx);
}

struct buffer {
    __u64 at, size;
};

/* What the buffers of a vector hold together. Vectors longer than any in use are not added up. */
static __noinline __u64 vector_bytes(__u64 at, __u64 n)
{
    enum { VECTOR_MAX = 256 };
    __u32 zero = 0;
    __u64 sum = 0;
    struct long_call *c = bpf_map_lookup_elem(&scratch, &zero);
    if (!c || n > VECTOR_MAX)
        return ~0ull;
    struct buffer *all = (struct buffer *)c->text;
    if (bpf_probe_read_user(all, (__u32)n * sizeof *all, (void *)at) != 0)
        return ~0ull;
    for (__u32 i = 0; i < VECTOR_MAX && i < n; i++)
        sum += all[i].size;
    return sum;
}

static __always_inline void fill_call(struct sv_wire_call *c, const struct sv_wire_task *s,
                                      const volatile struct sv_wire_plan *p, long ret, __u64 now,
                                      bool is_state_only)
{
    c->head.kind = SV_WIRE_CALL;
    c->head.flags = is_state_only ? SV_WIRE_STATE_ONLY : 0;
    c->head.tgid = s->tgid;
    c->head.tid = s->tid;
    c->head.what = s->nr;
    c->head.ts_ns = now;
    c->start_ns = s->start_ns;
    c->ret = ret;
    c->fd = p->fd == SV_WIRE_NONE ? -1 : (__s32)s->args[p->fd & 7];
    c->aux = p->aux == SV_WIRE_NONE ? 0 : (__u32)s->args[p->aux & 7];
    c->size = p->size == SV_WIRE_NONE ? 0 : s->args[p->size & 7];
    c->offset = p->offset == SV_WIRE_NONE ? -1 : (__s64)s->args[p->offset & 7];
    if (p->wants & SV_WIRE_POSITION && ret >= 0) {
        __s64 after = position(c->fd);
        c->offset = after >= ret ? after - ret : -1;
    }
    c->inode = s->inode;
    if (p->wants & SV_WIRE_RETURNS_FD && ret >= 0)
        c->inode = inode_of((__s32)ret);
}

enum { MAY_CREATE = 020000100 }; /* O_TMPFILE's own bit, O_CREAT */

/* The mode of open says something only where a file may be made. */
static __always_inline void drop_mode(struct sv_wire_call *c, const volatile struct sv_wire_plan *p)
{
    if (p->wants & SV_WIRE_OPENS && !(c->aux & MAY_CREATE))
        c->size = 0;
}

/* The paths of a call; their bytes. 0: the call is left out. A path is read at the exit: the kernel
 * itself has read it by then, so its page is there. */
static __always_inline __u64 put_paths(struct sv_wire_head *head, char *text,
                                       const struct sv_wire_task *s,
                                       const volatile struct sv_wire_plan *p, long ret, __u32 aux)
{
    long len = bpf_probe_read_user_str(text, SV_WIRE_PATH_MAX, (void *)s->args[p->path & 7]);
    if (len <= 0 || len > SV_WIRE_PATH_MAX) {
        head->flags |= SV_WIRE_NO_PATH;
        text[0] = 0;
        len = 1;
    }
    if (p->path2 == SV_WIRE_NONE)
        return leaves_out_path(text, len, p, ret, aux) ? 0 : (__u64)len;
    long more =
        bpf_probe_read_user_str(text + len, SV_WIRE_PATH_MAX, (void *)s->args[p->path2 & 7]);
    return (__u64)(more > 0 && more <= SV_WIRE_PATH_MAX ? len + more : len);
}

static __always_inline void call_with_path(const struct sv_wire_task *s,
                                           const volatile struct sv_wire_plan *p, long ret,
                                           __u64 now, bool is_state_only)
{
    struct call_room room;
    struct sv_wire_call c;
    char *at = take_room(&room, sizeof(struct long_call));
    if (!at)
        return;
    fill_call(&c, s, p, ret, now, is_state_only);
    drop_mode(&c, p);
    __u64 size = write_call(at, &c);
    __u64 len = put_paths((struct sv_wire_head *)at, at + size, s, p, ret, c.aux);
    if (len > 0 && len <= 2 * SV_WIRE_PATH_MAX)
        put_room(&room, size + len);
    else
        leave_room(&room);
}

static __always_inline void call_without_path(const struct sv_wire_task *s,
                                              const volatile struct sv_wire_plan *p, long ret,
                                              __u64 now, bool is_state_only)
{
    struct call_room room;
    struct sv_wire_call c;
    if (leaves_out_fd(s))
        return;
    fill_call(&c, s, p, ret, now, is_state_only);
    if (p->wants & SV_WIRE_VECTOR)
        c.size = vector_bytes(s->args[1], c.size);
    if (p->wants & SV_WIRE_PAIR) {
        __u64 both;
        c.size = bpf_probe_read_user(&both, sizeof both, (void *)c.size) == 0
                     ? both
                     : ~0ull; /* twice -1 */
    }
    if (p->size == SV_WIRE_NONE)
        c.size = (__u64)ret;
    void *at = take_room(&room, sizeof c);
    if (at)
        put_room(&room, bytes_needed(&c, write_call(at, &c)));
}

static __noinline int leave_call(struct exit_context *ctx)
{
    struct sv_wire_task *s = followed_self();
    if (!s || !s->is_open || NUMBER_OF_EXIT() != s->nr)
        return 0;
    long ret = RESULT_OF_EXIT();
    s->is_open = 0;
    const volatile struct sv_wire_plan *p = &config.plans[s->nr & (SV_WIRE_CALLS_MAX - 1)];
    __u64 now = now_ns();
    bool is_wanted = p->wants & SV_WIRE_WANTED && now - s->start_ns >= config.min_latency_ns;
    if (!is_wanted && !(p->wants & SV_WIRE_CHANGES_FDS && ret >= 0)) {
        struct sv_wire_counts *c = my_counts();
        if (c && p->wants & SV_WIRE_WANTED)
            c->filtered++;
        return 0;
    }
    if (p->path != SV_WIRE_NONE)
        call_with_path(s, p, ret, now, !is_wanted);
    else
        call_without_path(s, p, ret, now, !is_wanted);
    return 0;
}

EXITS
int on_exit(struct exit_context *ctx)
{
    return is_not_followed(REGISTERS()) ? 0 : leave_call(ctx);
}

#if KNOWS_KERNEL

/* Run when exits are no longer recorded: calls that have begun and not ended. Their paths cannot be
 * read from here. */
SEC("iter/task")
int in_flight(struct bpf_iter__task *ctx)
{
    struct task_struct *task = ctx->task;
    struct sv_wire_task *s = task ? followed(task) : 0;
    void *ring = my_ring();
    if (!s || !s->is_open || !ring)
        return 0;
    const volatile struct sv_wire_plan *p = &config.plans[s->nr & (SV_WIRE_CALLS_MAX - 1)];
    __u64 now = now_ns();
    if (!(p->wants & SV_WIRE_WANTED) || now - s->start_ns < config.min_latency_ns)
        return 0;
    struct sv_wire_call *c = bpf_ringbuf_reserve(ring, sizeof *c, 0);
    count(SV_WIRE_CALL, c != 0);
    if (!c)
        return 0;
    fill_call(c, s, p, -1, now, false);
    c->head.flags = SV_WIRE_UNFINISHED | SV_WIRE_NO_PATH;
    if (p->wants & SV_WIRE_VECTOR)
        c->size = ~0ull;
    bpf_ringbuf_submit(c, wake_flags(ring, sizeof *c));
    return 0;
}

#endif

#endif

#endif
