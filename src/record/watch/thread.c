/* One look at a thread, and the states that lie between two looks.
 *
 * First schedstat: a thread that waited and has not run since is in the same wait. Otherwise stat
 * has its state now and `syscall` the call that it is in, or else `wchan` the kernel's function,
 * which more may read: other rules of ptrace hold for it. How long it ran and waited for a CPU
 * since the last look is counted by the kernel; the rest of the time it waited, and which wait
 * came first follows from the two looks. */
#include "record/watch/parts.h"

#include "core/base/mem.h"
#include "record/bpf/sched.h"
#include "record/probes/waits.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* A running thread's sum is as old as the last tick of its CPU. */
#define TICK_NS  ((int64_t)5000000)
#define SHORT_NS ((int64_t)20000) /* no piece of its own */

/* ---- the files of a thread ---- */

static const char *const file_names[SV_WATCH_FILES] = {"schedstat", "stat", "syscall", "wchan"};

/* Of many threads only the file that is read at each look. */
static bool keeps_open(const struct sv_watch *w, enum sv_watch_file which)
{
    return w->n_fds < w->max_fds &&
           (which == SV_WATCH_SCHED || w->n_threads * SV_WATCH_FILES < (size_t)w->max_fds);
}

/* The text of one of its files; 0: it is gone, or this file is refused. */
static size_t read_file(struct sv_watch *w, struct sv_watch_thread *x, enum sv_watch_file which,
                        char *text, size_t size)
{
    char path[96];
    int fd = x->fds[which];
    if (fd < 0) {
        snprintf(path, sizeof path, "%s/%u/task/%u/%s", w->options.root, x->pid, x->tid,
                 file_names[which]);
        fd = open(path, O_RDONLY | O_CLOEXEC);
    }
    ssize_t n = fd >= 0 ? pread(fd, text, size - 1, 0) : 0;
    text[n > 0 ? n : 0] = 0;
    if (x->fds[which] < 0 && fd >= 0) {
        if (n > 0 && keeps_open(w, which)) {
            x->fds[which] = fd;
            w->n_fds++;
        } else {
            close(fd);
        }
    }
    return n > 0 ? (size_t)n : 0;
}

static bool read_sched(struct sv_watch *w, struct sv_watch_thread *x, struct sv_wire_sched *to)
{
    char text[128];
    unsigned long long run, delay, switches;
    if (!read_file(w, x, SV_WATCH_SCHED, text, sizeof text) ||
        sscanf(text, "%llu %llu %llu", &run, &delay, &switches) != 3)
        return false;
    *to = (struct sv_wire_sched){run, delay, switches};
    return true;
}

/* The letter of its state, and its CPU: the third and the 39th field; 0: it is gone. */
static char read_state(struct sv_watch *w, struct sv_watch_thread *x)
{
    enum { CPU_FIELD = 39 };
    char text[1024];
    size_t n = read_file(w, x, SV_WATCH_STAT, text, sizeof text);
    const char *at = n ? memrchr(text, ')', n) : NULL;
    if (!at || at + 2 >= text + n)
        return 0;
    char letter = at[2];
    at += 2;
    for (unsigned field = 3; field < CPU_FIELD && at; field++) {
        at = strchr(at, ' ');
        at += at != NULL;
    }
    x->cpu = at ? (uint32_t)strtoul(at, NULL, 10) : 0;
    return letter;
}

/* ---- what it waits for ---- */

enum direction { NO_DESCRIPTOR, READS, WRITES };

static enum direction direction_of(uint32_t nr)
{
    switch (nr) {
    case SYS_read:
    case SYS_pread64:
    case SYS_readv:
    case SYS_preadv:
    case SYS_splice: return READS;
    case SYS_write:
    case SYS_pwrite64:
    case SYS_writev:
    case SYS_pwritev:
    case SYS_sendfile: return WRITES;
    default: return NO_DESCRIPTOR;
    }
}

static void look_at_file(struct sv_watch *w, uint32_t pid, uint64_t fd, enum direction direction,
                         struct sv_watch_wait *to)
{
    char path[96];
    struct stat st;
    snprintf(path, sizeof path, "%s/%u/fd/%u", w->options.root, pid, (unsigned)fd);
    if (fd >= 1 << 24 || stat(path, &st) != 0)
        return;
    to->file = st.st_mode;
    if (S_ISFIFO(st.st_mode))
        to->holder = sv_watch_pipe_end(w, pid, st.st_ino, direction == READS);
}

/* Calls that wait for whoever comes first: a server's loop is idle, and nobody in particular is
 * late. */
static bool waits_for_any(uint32_t nr)
{
    switch (nr) {
    case SYS_poll:
    case SYS_ppoll:
    case SYS_select:
    case SYS_pselect6:
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_accept:
    case SYS_accept4: return true;
    default: return false;
    }
}

/* With one descriptor it is a wait for that one, as a queue of Python's multiprocessing waits. */
static void look_at_poll(struct sv_watch *w, uint32_t pid, const uint64_t args[6],
                         struct sv_watch_wait *to)
{
    struct pollfd one;
    bool is_one = (to->nr == SYS_poll || to->nr == SYS_ppoll) && args[1] == 1 &&
                  sv_watch_read(pid, args[0], &one, sizeof one) && one.fd >= 0;
    if (is_one)
        look_at_file(w, pid, (uint64_t)one.fd, one.events & POLLOUT ? WRITES : READS, to);
    if (!S_ISFIFO(to->file))
        to->nr = SV_WIRE_NO_CALL;
}

static bool is_thread_of(const struct sv_watch *w, uint32_t pid, uint32_t tid)
{
    return sv_map_find(&w->by_tid, (uint64_t)pid << 32 | tid) != NULL;
}

/* What a futex is: only a mutex has a holder. One whose value is the number of a thread is a wait
 * for its end. Of all others (conditions, semaphores) it is not known whether somebody is late or
 * there is nothing to do: in C no reason is given. In Python, whose locks are semaphores, the stack
 * shows it. */
static void look_at_futex(struct sv_watch *w, const struct sv_watch_thread *x,
                          const uint64_t args[6], struct sv_watch_wait *to)
{
    enum { CONTENDED = 2 };
    const struct sv_watch_process *p = sv_watch_process(w, x->pid);
    uint32_t mutex[3] = {0}; /* lock, count, owner: as glibc has it */
    uint32_t value = (uint32_t)args[2];
    bool has_python = p && p->has_python;
    bool is_read = sv_watch_read(x->pid, args[0], mutex, sizeof mutex) && mutex[0] == value;
    bool is_mutex = is_read && value == CONTENDED && ((int)args[1] & FUTEX_CMD_MASK) == FUTEX_WAIT;
    to->lock = args[0];
    to->holder = has_python ? sv_watch_python_holder(p, args[0]) : 0;
    if (is_mutex && is_thread_of(w, x->pid, mutex[2]))
        to->holder = mutex[2];
    if (is_read && !is_mutex && value != x->tid && is_thread_of(w, x->pid, value)) {
        to->nr = SYS_waitid;
        to->holder = value;
        to->lock = 0;
    } else if (!is_mutex && !to->holder && !has_python) {
        to->nr = SV_WIRE_NO_CALL;
        to->lock = 0;
    }
}

/* Locks and queues of the kernel itself. */
static void look_at_lock(const struct sv_watch *w, uint32_t pid, uint64_t first,
                         struct sv_watch_wait *to)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "%s/%u/fd/%u", w->options.root, pid, (unsigned)first);
    switch (sv_waits_object(to->nr)) {
    case SV_WAITS_FILE_LOCK:
    case SV_WAITS_QUEUE:
        to->lock = stat(path, &st) == 0 ? st.st_ino : 0;
        to->file = (uint32_t)first;
        break;
    case SV_WAITS_SEMAPHORE: to->lock = SV_WIRE_SEMAPHORE | (uint32_t)first; break;
    case SV_WAITS_NO_OBJECT: break;
    }
}

/* The wait by the kernel's function, where only that may be read: no arguments, so nothing that may
 * be idle (a futex, epoll). */
static void read_wchan(struct sv_watch *w, struct sv_watch_thread *x, struct sv_watch_wait *to)
{
    static const struct {
        const char *begin;
        uint32_t nr, file;
    } functions[] = {{"hrtimer_nanosleep", SYS_clock_nanosleep, 0},
                     {"do_nanosleep", SYS_clock_nanosleep, 0},
                     {"do_wait", SYS_wait4, 0},
                     {"pipe_read", SYS_read, S_IFIFO},
                     {"anon_pipe_read", SYS_read, S_IFIFO},
                     {"pipe_write", SYS_write, S_IFIFO},
                     {"anon_pipe_write", SYS_write, S_IFIFO},
                     {"unix_stream_", SYS_recvfrom, 0}};
    static const uint64_t any_child[6] = {UINT64_MAX};
    char text[64];
    if (!read_file(w, x, SV_WATCH_CHAN, text, sizeof text))
        return;
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (strncmp(text, functions[i].begin, strlen(functions[i].begin)) != 0)
            continue;
        to->nr = functions[i].nr;
        to->file = functions[i].file;
    }
    if (to->nr == SYS_wait4)
        to->holder = sv_watch_child(w, x->pid, to->nr, any_child);
}

/* The call that it is in, if the kernel says it. */
static void read_wait(struct sv_watch *w, struct sv_watch_thread *x, struct sv_watch_wait *to)
{
    char text[256];
    long long nr;
    unsigned long long a[6] = {0}, sp = 0, ip = 0;
    *to = (struct sv_watch_wait){.nr = SV_WIRE_NO_CALL};
    if (!read_file(w, x, SV_WATCH_CALL, text, sizeof text)) {
        read_wchan(w, x, to);
        return;
    }
    if (sscanf(text, "-1 %llx %llx", &sp, &ip) != 2 &&
        sscanf(text, "%lld %llx %llx %llx %llx %llx %llx %llx %llx", &nr, &a[0], &a[1], &a[2],
               &a[3], &a[4], &a[5], &sp, &ip) == 9)
        to->nr = (uint32_t)nr;
    to->sp = sp;
    to->ip = ip;
    const uint64_t args[6] = {a[0], a[1], a[2], a[3], a[4], a[5]};
    if (to->nr == SYS_futex) {
        look_at_futex(w, x, args, to);
    } else if (to->nr == SYS_wait4 || to->nr == SYS_waitid) {
        to->holder = sv_watch_child(w, x->pid, to->nr, args);
    } else if (waits_for_any(to->nr)) {
        look_at_poll(w, x->pid, args, to);
    } else if (direction_of(to->nr)) {
        look_at_file(w, x->pid, a[0], direction_of(to->nr), to);
    } else {
        look_at_lock(w, x->pid, a[0], to);
    }
    if (to->holder == x->tid)
        to->holder = 0;
    if (ip == 0)
        to->nr = SV_WIRE_NO_CALL;
}

/* In the kernel's uninterruptible wait: for a disk, unless it is in a call that has none. */
static unsigned state_by(char letter, const struct sv_watch_wait *wait)
{
    switch (letter) {
    case 'R': return SV_STATE_RUNNING;
    case 'D':
        return wait->nr != SYS_vfork && wait->nr != SYS_futex && wait->nr != SYS_exit_group
                   ? SV_STATE_IO
                   : SV_STATE_BLOCKED;
    case 'T':
    case 't': return SV_STATE_STOPPED;
    default: return SV_STATE_SLEEPING;
    }
}

static bool is_wait(unsigned state)
{
    return state >= SV_STATE_SLEEPING;
}

/* ---- records ---- */

static void put_wake(struct sv_watch *w, const struct sv_watch_thread *x, int64_t ts_ns)
{
    struct sv_wire_wake r = {.waker_tgid = x->pid, .waker_tid = x->wait.holder};
    sv_watch_head(&r.head, SV_WIRE_STATE, x->pid, x->tid, ts_ns);
    r.head.flags = SV_STATE_RUNNABLE | SV_STATE_INFERRED;
    sv_watch_put(w, &r, sizeof r);
}

/* A library in its process sends what it waits for. */
static bool is_inside(const struct sv_watch *w, const struct sv_watch_thread *x)
{
    const struct sv_watch_process *p = sv_watch_process(w, x->pid);
    return p && p->is_inside;
}

static void end_states(struct sv_watch *w, struct sv_watch_thread *x, int64_t ts_ns)
{
    struct sv_wire_head end;
    if (!x->has_open_state)
        return;
    sv_watch_head(&end, SV_WIRE_STATE, x->pid, x->tid, ts_ns);
    end.flags = SV_STATE_DEAD;
    sv_watch_put(w, &end, sizeof end);
    x->has_open_state = false;
}

/* The wait that ends, with its stack. */
static void put_offcpu(struct sv_watch *w, struct sv_watch_thread *x, int64_t end_ns)
{
    struct sv_watch_stack *s = x->stack;
    x->stack = NULL;
    if (!s)
        return;
    if (is_inside(w, x)) {
        free(s);
        return;
    }
    struct sv_wire_away away = {.begin_ns = (uint64_t)x->state_ns,
                                .end_ns = (uint64_t)end_ns,
                                .woken_ns = x->wait.holder ? (uint64_t)end_ns : 0,
                                .lock = x->wait.lock,
                                .nr = x->wait.nr,
                                .state = x->state | SV_STATE_INFERRED,
                                .file = x->wait.file,
                                .waker_tid = x->wait.holder};
    struct sv_wire_offcpu *r = (void *)s->record;
    r->head.ts_ns = away.end_ns;
    memcpy(s->record + s->bytes, &away, sizeof away);
    if (end_ns - x->state_ns >= w->options.offcpu_min_ns)
        sv_watch_put(w, s->record, s->bytes + sizeof away);
    free(s);
}

/* From `ts_ns` on it is in this state; `wait` is what it waits for, where it does. */
static void enter(struct sv_watch *w, struct sv_watch_thread *x, unsigned state, int64_t ts_ns,
                  const struct sv_watch_wait *wait)
{
    if (is_wait(x->state)) {
        put_offcpu(w, x, ts_ns);
        if (x->wait.holder && w->options.has_states && !is_wait(state) && !is_inside(w, x))
            put_wake(w, x, ts_ns);
    }
    x->state = state;
    x->state_ns = ts_ns;
    if (wait)
        x->wait = *wait;
    if (!w->options.has_states)
        return;
    if (is_inside(w, x)) {
        end_states(w, x, ts_ns);
        return;
    }
    x->has_open_state = true;
    struct sv_wire_wait r = {.nr = SV_WIRE_NO_CALL};
    sv_watch_head(&r.head, SV_WIRE_STATE, x->pid, x->tid, ts_ns);
    r.head.flags = (uint16_t)(state | SV_STATE_INFERRED);
    r.head.what = x->cpu;
    bool is_fault = wait && state == SV_STATE_IO && wait->ip && wait->nr == SV_WIRE_NO_CALL;
    if (is_fault || (wait && wait->nr != SV_WIRE_NO_CALL)) {
        r.nr = wait->nr;
        r.lock = wait->lock;
        r.file = wait->file;
        sv_watch_put(w, &r, sizeof r);
    } else {
        sv_watch_put(w, &r.head, sizeof r.head);
    }
}

/* ---- between two looks ---- */

struct lengths {
    int64_t run, delay, rest;
};

static int64_t within(uint64_t now, uint64_t before, int64_t most)
{
    uint64_t n = now > before ? now - before : 0;
    return n > (uint64_t)most ? most : (int64_t)n;
}

static struct lengths divide(const struct sv_watch_thread *x, const struct sv_wire_sched *now,
                             int64_t all_ns)
{
    struct lengths l;
    l.run = within(now->run_ns, x->last.run_ns, all_ns);
    l.delay = within(now->delay_ns, x->last.delay_ns, all_ns - l.run);
    l.rest = all_ns - l.run - l.delay;
    return l;
}

static void run_for(struct sv_watch *w, struct sv_watch_thread *x, int64_t *at, int64_t ns)
{
    if (ns >= SHORT_NS && x->state != SV_STATE_RUNNING)
        enter(w, x, SV_STATE_RUNNING, *at, NULL);
    *at += ns;
}

static void queue_for(struct sv_watch *w, struct sv_watch_thread *x, int64_t *at, int64_t ns)
{
    if (ns >= SHORT_NS)
        enter(w, x, x->state == SV_STATE_RUNNING ? SV_STATE_PREEMPTED : SV_STATE_RUNNABLE, *at,
              NULL);
    *at += ns;
}

/* What it did since the last look, up to the state that it is in now. */
static void fill(struct sv_watch *w, struct sv_watch_thread *x, struct lengths l, unsigned state,
                 const struct sv_watch_wait *wait)
{
    int64_t at = x->looked_ns;
    bool was_waiting = is_wait(x->state), waits = is_wait(state);
    if (was_waiting) {
        at += waits ? l.rest / 2 : l.rest; /* of the wait that the last look showed */
        queue_for(w, x, &at, l.delay);
        run_for(w, x, &at, l.run);
    } else if (waits) {
        run_for(w, x, &at, l.run / 2);
        queue_for(w, x, &at, l.delay);
        run_for(w, x, &at, l.run - l.run / 2);
    } else {
        const struct sv_watch_wait unseen = {.nr = SV_WIRE_NO_CALL};
        bool is_short = l.rest < TICK_NS;
        run_for(w, x, &at, l.run / 2 + (is_short ? l.rest : 0));
        if (!is_short) {
            enter(w, x, SV_STATE_SLEEPING, at, &unseen);
            at += l.rest;
        }
        queue_for(w, x, &at, l.delay);
        run_for(w, x, &at, l.run - l.run / 2);
    }
    if (waits)
        enter(w, x, state, at, wait);
    else if (x->state != SV_STATE_RUNNING)
        enter(w, x, SV_STATE_RUNNING, at, NULL);
}

/* Not run since: the wait of the last look goes on. */
static bool is_same_wait(const struct sv_watch_thread *x, const struct sv_wire_sched *now)
{
    return is_wait(x->state) && now->switches == x->last.switches && now->run_ns == x->last.run_ns;
}

static void look_first(struct sv_watch *w, struct sv_watch_thread *x, int64_t now_ns,
                       const struct sv_wire_sched *sched, unsigned state,
                       const struct sv_watch_wait *wait)
{
    x->first = x->last = *sched;
    enter(w, x, state, now_ns, is_wait(state) ? wait : NULL);
}

/* The kernel counts the time in a run queue when it ends. A thread that can run now, and of whose
 * time much is open, may be in one: the next look knows more. */
static bool is_open(struct sv_watch_thread *x, char letter, struct lengths l)
{
    enum { LOOKS = 4 };
    if (letter != 'R' || l.rest < TICK_NS || x->postponed >= LOOKS) {
        x->postponed = 0;
        return false;
    }
    x->postponed++;
    return true;
}

static void take_stack(struct sv_watch *w, struct sv_watch_thread *x, int64_t now_ns, char letter)
{
    if (letter == 'R' && w->options.has_samples)
        sv_watch_stack_of_run(w, x, now_ns);
    else if (letter != 'R' && w->options.has_waits && !is_inside(w, x))
        sv_watch_stack_of_wait(w, x);
}

bool sv_watch_thread(struct sv_watch *w, struct sv_watch_thread *x, int64_t now_ns)
{
    struct sv_wire_sched sched;
    struct sv_watch_wait wait = {.nr = SV_WIRE_NO_CALL};
    if (!read_sched(w, x, &sched))
        return false;
    bool is_first = x->state == 0;
    if (!is_first && is_same_wait(x, &sched)) {
        x->looked_ns = now_ns;
        return true;
    }
    char letter = read_state(w, x);
    if (letter == 0 || strchr("ZXx", letter)) {
        x->last = sched;
        return false;
    }
    if (letter != 'R')
        read_wait(w, x, &wait);
    unsigned state = state_by(letter, &wait);
    struct lengths l = divide(x, &sched, now_ns - x->looked_ns);
    if (is_first) {
        look_first(w, x, now_ns, &sched, state, &wait);
    } else if (is_open(x, letter, l)) {
        return true; /* no sample either: it may not run */
    } else {
        fill(w, x, l, state, &wait);
    }
    x->last = sched;
    x->looked_ns = now_ns;
    take_stack(w, x, now_ns, letter);
    return true;
}

void sv_watch_thread_end(struct sv_watch *w, struct sv_watch_thread *x, int64_t now_ns)
{
    if (x->state == 0)
        return;
    if (is_wait(x->state))
        put_offcpu(w, x, now_ns);
    end_states(w, x, now_ns);
    struct sv_wire_schedstat s = {.counted = {x->last.run_ns - x->first.run_ns,
                                              x->last.delay_ns - x->first.delay_ns,
                                              x->last.switches - x->first.switches}};
    sv_watch_head(&s.head, SV_WIRE_SCHEDSTAT, x->pid, x->tid, now_ns);
    sv_watch_put(w, &s, sizeof s);
}
