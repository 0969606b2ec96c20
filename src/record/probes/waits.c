/* What a wait is for: the state of the thread decides where it can, then the system call that it is
 * in. */
#include "record/probes/waits.h"

#include "record/bpf/sched.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

void sv_waits_init(struct sv_waits *w, struct sv_dict *dict)
{
#define REASON_TEXT(member, text, what) [SV_WAIT_FOR_##member] = (text),
    static const char *const texts[SV_N_WAIT_REASONS] = {SV_WAIT_REASONS(REASON_TEXT)};
#undef REASON_TEXT
    *w = (struct sv_waits){.reason = sv_dict_cstr(dict, SV_WAIT_REASON),
                           .lock = sv_dict_cstr(dict, SV_WAIT_LOCK),
                           .lock_name = sv_dict_cstr(dict, SV_WAIT_LOCK_NAME),
                           .path = sv_dict_cstr(dict, SV_WAIT_PATH),
                           .queued = sv_dict_cstr(dict, SV_WAIT_QUEUED),
                           .inferred = sv_dict_cstr(dict, SV_WAIT_INFERRED)};
    for (unsigned i = 1; i < SV_N_WAIT_REASONS; i++)
        w->reasons[i] = sv_dict_cstr(dict, texts[i]);
}

static enum sv_wait_reason by_file(uint32_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFIFO: return SV_WAIT_FOR_PIPE;
    case S_IFSOCK: return SV_WAIT_FOR_SOCKET;
    case S_IFREG:
    case S_IFBLK:
    case S_IFDIR: return SV_WAIT_FOR_DISK;
    }
    return SV_WAIT_NO_REASON; /* a terminal is one character device of many */
}

/* Only where the kernel programs know the call: x86-64. */
static enum sv_wait_reason by_call(uint32_t nr)
{
#if defined(__x86_64__)
    enum { FUTEX_WAITV = 449, FUTEX_WAIT = 455 };
    switch (nr) {
    case SYS_futex:
    case FUTEX_WAITV:
    case FUTEX_WAIT: return SV_WAIT_FOR_LOCK;
    case SYS_nanosleep:
    case SYS_clock_nanosleep: return SV_WAIT_FOR_SLEEP;
    case SYS_poll:
    case SYS_ppoll:
    case SYS_select:
    case SYS_pselect6:
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2: return SV_WAIT_FOR_POLL;
    case SYS_flock:
    case SYS_fcntl:
    case SYS_semop:
    case SYS_semtimedop: return SV_WAIT_FOR_LOCK;
    case SYS_mq_timedsend:
    case SYS_mq_timedreceive:
    case SYS_msgsnd:
    case SYS_msgrcv: return SV_WAIT_FOR_QUEUE;
    case SYS_wait4:
    case SYS_waitid:
    case SYS_vfork: return SV_WAIT_FOR_CHILD;
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_accept:
    case SYS_accept4:
    case SYS_connect: return SV_WAIT_FOR_SOCKET;
    case SYS_fsync:
    case SYS_fdatasync:
    case SYS_sync:
    case SYS_syncfs:
    case SYS_msync:
    case SYS_io_getevents: return SV_WAIT_FOR_DISK;
    }
#endif
    (void)nr;
    return SV_WAIT_NO_REASON;
}

enum sv_waits_object sv_waits_object(uint32_t nr)
{
    switch (nr) {
    case SYS_flock:
    case SYS_fcntl: return SV_WAITS_FILE_LOCK;
    case SYS_semop:
    case SYS_semtimedop: return SV_WAITS_SEMAPHORE;
    case SYS_mq_timedsend:
    case SYS_mq_timedreceive: return SV_WAITS_QUEUE;
    }
    return SV_WAITS_NO_OBJECT;
}

enum sv_wait_reason sv_waits_reason(unsigned state, uint32_t nr, uint32_t file)
{
    switch (state & SV_STATE_ONLY) {
    case SV_STATE_PREEMPTED: return state & SV_STATE_QUOTA ? SV_WAIT_FOR_QUOTA : SV_WAIT_FOR_CPU;
    case SV_STATE_RUNNABLE: return SV_WAIT_FOR_CPU;
    case SV_STATE_STOPPED: return SV_WAIT_FOR_STOPPED;
    case SV_STATE_IO: return SV_WAIT_FOR_DISK;
    }
    enum sv_wait_reason r = by_call(nr);
    if (sv_waits_object(nr) != SV_WAITS_NO_OBJECT)
        return r;
    enum sv_wait_reason of_file = by_file(file);
    return of_file ? of_file : r;
}

/* The name of a futex is looked up only where stacks are recorded: their records are decoded while
 * the process lives. */
static void put_lock_name(const struct sv_waits *w, struct sv_batch *b,
                          const struct sv_waits_for *x, const char *of_futex)
{
    char text[32];
    if (of_futex)
        sv_decode_text(b, w->lock_name, of_futex, strlen(of_futex));
    else if (sv_waits_object(x->nr) == SV_WAITS_SEMAPHORE) {
        int n = snprintf(text, sizeof text, "semaphore %u", (uint32_t)x->lock);
        sv_decode_text(b, w->lock_name, text, (size_t)n);
    }
}

/* The file of a lock, the name of a queue. */
static void put_path(const struct sv_waits *w, struct sv_decode *d, struct sv_batch *b,
                     const struct sv_waits_for *x)
{
    struct sv_fd *now;
    struct sv_file *f =
        sv_decode_descriptor(d, sv_decode_process(d, x->pid), (int32_t)x->file,
                             (struct sv_fd_when){.start_ns = x->begin_ns, .inode = x->lock}, &now);
    if (!f)
        return;
    if (x->reason == SV_WAIT_FOR_LOCK)
        sv_decode_path(b, w->lock_name, f->path, f->len);
    sv_decode_path(b, w->path, f->path, f->len);
    sv_file_put(&d->tree, f);
}

enum sv_wait_reason sv_waits_put(const struct sv_waits *w, struct sv_decode *d, struct sv_batch *b,
                                 const struct sv_waits_for *x)
{
    enum sv_waits_object object = sv_waits_object(x->nr);
    enum sv_wait_reason reason = x->reason;
    bool is_gil = false, has_lock = reason == SV_WAIT_FOR_LOCK && x->lock;
    const char *name = has_lock && object == SV_WAITS_NO_OBJECT && d->options.found_python
                           ? sv_stacks_lock(d->stacks, x->pid, x->lock, &is_gil)
                           : NULL;
    if (is_gil)
        reason = SV_WAIT_FOR_GIL;
    if (reason) {
        struct sv_text text = sv_dict_text(d->source.dict, w->reasons[reason]);
        sv_batch_str(b, w->reason, text.bytes, text.len);
    }
    if (has_lock)
        sv_batch_int(b, w->lock, (int64_t)x->lock);
    if (has_lock)
        put_lock_name(w, b, x, name);
    if (object == SV_WAITS_FILE_LOCK || object == SV_WAITS_QUEUE)
        put_path(w, d, b, x);
    return reason;
}

/* Recordings of older versions have the idle task's name here. */
void sv_waits_waker(const struct sv_decode *d, struct sv_batch *b, uint32_t tid,
                    const char name[SV_WIRE_COMM])
{
    size_t len = strnlen(name, SV_WIRE_COMM);
    if (tid == 0)
        sv_batch_int(b, d->words.interrupt, 1);
    else if (tid != SV_WIRE_NO_PID) /* it may be outside of our pid namespace */
        sv_batch_int(b, d->words.waker_tid, tid);
    if (len && (tid || strncmp(name, "swapper", 7) != 0))
        sv_decode_text(b, d->words.waker, name, len);
}
