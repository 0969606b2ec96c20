/* Probe `syscalls`: one record per system call of the followed tasks. Both sides include it; the
 * programs are for the kernel only.
 *
 * The entry of a call notes its arguments in the state of the task, the exit (joint.h) writes the
 * record. */
#ifndef SV_RECORD_BPF_SYSCALLS_H
#define SV_RECORD_BPF_SYSCALLS_H

#include "records.h"

#include <stddef.h>

enum sv_wire_call_flag {
    SV_WIRE_STATE_ONLY = 1, /* only for the table of descriptors, not an event */
    SV_WIRE_NO_PATH = 2,    /* the memory of the path could not be read */
    SV_WIRE_UNFINISHED = 4, /* has begun and not ended: ts_ns is when that was found */
    SV_WIRE_SHORT = 8,      /* the record is a struct sv_wire_short_call */
    SV_WIRE_PEER = 16,      /* a struct sv_wire_peer (peer.h) follows */
    SV_WIRE_MAPS_CODE = 32  /* what it maps can be executed */
};

/* A call that copies is followed by the offset in what it writes to (__s64, -1: not known). */
struct sv_wire_call {
    struct sv_wire_head head;
    __u64 start_ns;
    __s64 ret;
    __s32 fd;
    __u32 aux;    /* flags, mode, a second descriptor, a device: see the plan */
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
#include "peer.h"
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
    s->inode = p->maps ? mapped_inode(fd, &s->args[p->aux & 7]) : inode_of(fd);
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
    s->is_open = shared.call_period;
    note_waits(s, &config.plans[id]);
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

#include "call_record.h"

int send_requests(__u32 wants, long n);

static __always_inline int leave_call(struct exit_context *ctx, struct sv_wire_task *s)
{
    if (s->is_open != shared.call_period || NUMBER_OF_EXIT() != s->nr)
        return 0;
    long ret = RESULT_OF_EXIT();
    s->is_open = 0;
    const volatile struct sv_wire_plan *p = &config.plans[s->nr & (SV_WIRE_CALLS_MAX - 1)];
    __u64 now = now_ns();
    bool is_short = now - s->start_ns < shared.call_min_ns,
         is_wanted = p->wants & SV_WIRE_WANTED && !is_short && !is_without_wait(s, p);
    bool is_done = ret >= 0 || (p->waits & SV_WIRE_HAS_PEER && ret == -IN_PROGRESS);
    bool is_needed = p->wants & SV_WIRE_CHANGES_FDS && is_done && (!p->maps || s->inode);
    if (!is_wanted && !is_needed) {
        struct sv_wire_counts *c = my_counts();
        if (c && p->wants & SV_WIRE_WANTED && is_short)
            c->filtered++;
        return 0;
    }
    if (gives_peer(s, p, now))
        return call_with_peer(s, ret, now, !is_wanted);
    if (p->path != SV_WIRE_NONE)
        call_with_path(s, ret, now, !is_wanted);
    else if (p->places)
        call_that_copies(s, ret, now, !is_wanted);
    else
        call_without_path(s, ret, now, !is_wanted);
    if (p->wants & (SV_WIRE_SUBMITS | SV_WIRE_REAPS) && ret > 0)
        send_requests(p->wants, ret);
    return 0;
}

#if KNOWS_KERNEL

#include "in_flight.h"

#endif

#endif

#endif
