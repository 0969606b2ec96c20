/* Sums of waits for locks. Asked by `stave report wait`. */
#include "why/lock_waits.h"

#include "core/base/sat.h"
#include "core/base/search.h"
#include "core/stream/frame_text.h"
#include "why/words.h"

#include <stdlib.h>
#include <string.h>

struct words {
    sv_str cat, reasons[SV_N_WAIT_REASONS], gil, lock, cpu, queued, address, name, waker, waker_tid,
        waker_stack;
};

static struct words find_words(const struct sv_dict *d)
{
#define WORD(text) sv_dict_find_str(d, text, sizeof(text) - 1)
    struct words k = {.cat = WORD(SV_CAT_OFFCPU_SAMPLE),
                      .gil = WORD("gil"),
                      .lock = WORD("lock"),
                      .cpu = WORD("cpu"),
                      .queued = WORD(SV_WAIT_QUEUED),
                      .address = WORD(SV_WAIT_LOCK),
                      .name = WORD(SV_WAIT_LOCK_NAME),
                      .waker = WORD(SV_WAIT_WAKER),
                      .waker_tid = WORD(SV_WAIT_WAKER_TID),
                      .waker_stack = WORD(SV_WAIT_WAKER_STACK)};
#define REASON(member, text, what) k.reasons[SV_WAIT_FOR_##member] = WORD(text);
    SV_WAIT_REASONS(REASON)
#undef REASON
#undef WORD
    return k;
}

static bool begins(struct sv_text t, const char *word)
{
    size_t len = strlen(word);
    return t.len >= len && memcmp(t.bytes, word, len) == 0;
}

/* What every wait for a lock goes through. */
static bool is_of_libraries(struct sv_text f)
{
    bool is_cpython = f.len > 2 && begins(f, "Py") && f.bytes[2] >= 'A' && f.bytes[2] <= 'Z';
    return is_cpython || begins(f, "_") || begins(f, "[") || begins(f, "pthread_") ||
           begins(f, "futex") || begins(f, "lll_") || begins(f, "syscall") || begins(f, "std::") ||
           begins(f, "boost::") || begins(f, "absl::") || begins(f, "sem_");
}

static bool is_any(const char *const *words, const char *text, size_t len)
{
    for (; *words; words++)
        if (strlen(*words) == len && memcmp(*words, text, len) == 0)
            return true;
    return false;
}

/* Functions of the C library that are one system call: what is waited in, not who waits. */
static bool is_wrapper(struct sv_text f)
{
    static const char *const calls[] = {"read",
                                        "write",
                                        "pread",
                                        "pwrite",
                                        "fsync",
                                        "fdatasync",
                                        "msync",
                                        "sync",
                                        "syncfs",
                                        "poll",
                                        "select",
                                        "pselect",
                                        "epoll_wait",
                                        "recv",
                                        "recvfrom",
                                        "recvmsg",
                                        "send",
                                        "sendto",
                                        "sendmsg",
                                        "connect",
                                        "accept",
                                        "accept4",
                                        "sleep",
                                        "usleep",
                                        "nanosleep",
                                        "clock_nanosleep",
                                        "waitpid",
                                        "wait",
                                        "flock",
                                        "fcntl",
                                        "semop",
                                        "ioctl",
                                        "mq_receive",
                                        "mq_send",
                                        "msgrcv",
                                        "msgsnd",
                                        "copy_file_range",
                                        "sendfile",
                                        "open",
                                        "openat",
                                        "close",
                                        NULL};
    return is_any(calls, f.bytes, f.len);
}

/* "sleep_ms", "msleep", "pause::SleepFor": a helper whose name says all that it does. */
static bool is_napper(struct sv_text f)
{
    const char *at = memmem(f.bytes, f.len, "leep", 4);
    size_t before = at ? (size_t)(at - f.bytes) : 0;
    if (!before || (at[-1] != 's' && at[-1] != 'S'))
        return false;
    return before == 1 || at[-1] == 'S' || at[-2] == '_' || at[-2] == ':' ||
           (before == 2 && strchr("mun", at[-2]));
}

/* Files of Python's library whose functions wait, or wake others, on behalf of their caller. */
static bool is_of_python(const char *file, size_t len)
{
    static const char *const files[] = {"threading.py",
                                        "queue.py",
                                        "_base.py",
                                        "thread.py",
                                        "process.py",
                                        "connection.py",
                                        "queues.py",
                                        "pool.py",
                                        "synchronize.py",
                                        "popen_fork.py",
                                        "popen_spawn_posix.py",
                                        "context.py",
                                        "managers.py",
                                        "subprocess.py",
                                        "socket.py",
                                        "ssl.py",
                                        "selectors.py",
                                        "contextlib.py",
                                        "socketserver.py",
                                        "client.py",
                                        "server.py",
                                        "base_events.py",
                                        "events.py",
                                        "runners.py",
                                        "request.py",
                                        "logging/__init__.py",
                                        NULL};
    return is_any(files, file, len);
}

/* What a stack says. The function is the innermost one of Python, else the innermost that is none
 * of the libraries' own; the frame is that of the program's own code. */
struct stack_words {
    struct sv_text function, frame;
    enum sv_lock_use use;
    bool is_posted;     /* a semaphore */
    bool is_for_room;   /* in a queue that is full */
    const char *kernel; /* what kind of lock of the kernel; NULL: none */
};

/* Is the function of the C library that of this call? "__GI___fcntl64_nocancel" is fcntl's. */
static bool is_call(struct sv_text f, const char *call)
{
    const char *at = memmem(f.bytes, f.len, call, strlen(call)), *end = f.bytes + f.len;
    if (!at)
        return false;
    const char *rest = at + strlen(call);
    bool is_own = at == f.bytes || (at - f.bytes >= 2 && f.bytes[0] == '_' && f.bytes[1] == '_');
    return is_own && (rest == end || (end - rest >= 2 && memcmp(rest, "64", 2) == 0) ||
                      (end - rest == 8 && memcmp(rest, "_syscall", 8) == 0));
}

/* A call that waits for a lock of the kernel: which one. */
static const char *kernel_lock(struct sv_text f)
{
    static const char *const calls[] = {"flock", "fcntl", "semtimedop", "semop"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (is_call(f, calls[i]))
            return calls[i];
    return NULL;
}

static enum sv_lock_use use_of(struct sv_text f)
{
    static const char *const made[] = {"Condition.wait",
                                       "Event.wait",
                                       "Queue.get",
                                       "Queue.put",
                                       "_queue_SimpleQueue_get",
                                       "_queue_SimpleQueue_get_impl",
                                       NULL};
    static const char *const ended[] = {"Thread.join", "Thread._wait_for_tstate_lock", NULL};
    static const char *const native[] = {"pthread_cond_", "__pthread_cond_", "___pthread_cond_"};
    for (size_t i = 0; i < sizeof native / sizeof *native; i++)
        if (begins(f, native[i]))
            return SV_LOCK_CONDITION;
    if (is_any(made, f.bytes, f.len))
        return SV_LOCK_CONDITION;
    if (is_any(ended, f.bytes, f.len) || begins(f, "__pthread_clockjoin") ||
        begins(f, "__pthread_timedjoin") || begins(f, "pthread_join") ||
        begins(f, "___pthread_join"))
        return SV_LOCK_JOIN;
    return SV_LOCK_MUTEX;
}

/* Who posts a semaphore makes what is waited for. CPython's own locks are semaphores, too. */
static bool is_semaphore(struct sv_text f)
{
    return begins(f, "sem_") || begins(f, "__sem_") || begins(f, "__new_sem_");
}

static struct stack_words read_stack(const struct sv_arg *stack)
{
    struct stack_words t = {.function = {"", 0}, .frame = {"", 0}};
    struct sv_text native = {"", 0}, native_frame = {"", 0};
    bool is_only_napper = false;
    for (uint32_t i = stack->size; i > 0; i--) {
        if (stack[i].type != SV_ARG_TEXT)
            continue;
        struct sv_frame_parts p = sv_frame_parts(stack[i].text, stack[i].size);
        struct sv_text f = {stack[i].text, (uint32_t)p.function_len};
        const char *file = stack[i].text + p.file_at;
        bool is_python = p.file_len > 3 && memcmp(file + p.file_len - 3, ".py", 3) == 0;
        enum sv_lock_use use = use_of(f);
        /* CPython's own lock has a condition, whatever it is used for: the outermost says it. */
        t.use = use != SV_LOCK_MUTEX && (is_python || t.use == SV_LOCK_MUTEX) ? use : t.use;
        t.is_posted |= is_semaphore(f);
        t.is_for_room |= f.len == 9 && memcmp(f.bytes, "Queue.put", 9) == 0;
        t.kernel = i == stack->size ? kernel_lock(f) : t.kernel;
        if (is_python && !t.function.len)
            t.function = f;
        if (is_python && !is_of_python(file, p.file_len)) {
            t.frame = (struct sv_text){stack[i].text, stack[i].size};
            break;
        }
        bool is_inner = i + 2 > stack->size && is_wrapper(f);
        if (is_of_libraries(f) || is_inner)
            continue;
        if (!native.len || is_only_napper) {
            is_only_napper = !native.len && is_napper(f);
            native = f;
            native_frame = (struct sv_text){stack[i].text, stack[i].size};
        }
    }
    t.is_posted &= !t.function.len && t.use == SV_LOCK_MUTEX;
    t.use = t.is_posted ? SV_LOCK_CONDITION : t.use;
    t.function = t.function.len ? t.function : native;
    t.frame = t.frame.len ? t.frame : native_frame;
    return t;
}

struct sv_text sv_stack_frame(const struct sv_arg *stack)
{
    return read_stack(stack).frame;
}

/* The same bytes have the same place: many waits have few texts. */
static struct sv_text keep(struct sv_lock_waits *w, struct sv_text t)
{
    bool is_new;
    if (!t.len)
        return (struct sv_text){"", 0};
    uint64_t *at = sv_map_add(&w->by_text, sv_hash_bytes(t.bytes, t.len, 1), &is_new);
    if (is_new)
        *at = (uint64_t)(uintptr_t)sv_arena_copy(&w->texts, t.bytes, t.len);
    return (struct sv_text){(const char *)(uintptr_t)*at, t.len};
}

/* The two futexes of a condition variable of glibc are in one word of eight bytes; waiters move
 * from one to the other. */
static uint64_t pair_of(uint64_t address)
{
    return address & ~(uint64_t)7;
}

static void read_arg(struct sv_lock_waits *w, const struct words *k, const struct sv_arg *a,
                     struct sv_lock_wait *x)
{
    if (a->type == SV_ARG_STACK) {
        struct stack_words t = read_stack(a);
        x->function = keep(w, t.function);
        x->frame = keep(w, t.frame);
        x->use = t.use;
        x->is_semaphore = t.is_posted;
        x->is_for_room = t.is_for_room;
        if (t.kernel) {
            x->use = SV_LOCK_KERNEL;
            if (!x->lock_name.len)
                x->lock_name = (struct sv_text){t.kernel, (uint32_t)strlen(t.kernel)};
        }
    } else if (a->type == SV_ARG_ARRAY && a->key == k->waker_stack) {
        struct stack_words t = read_stack(a);
        x->by.function = keep(w, t.function);
        x->by.frame = keep(w, t.frame);
    } else if (a->type == SV_ARG_INT && a->key == k->address)
        x->lock = x->is_gil ? pair_of((uint64_t)a->i) : (uint64_t)a->i;
    else if (a->type == SV_ARG_INT && a->key == k->waker_tid)
        x->by.tid = a->i;
    else if (a->type == SV_ARG_TEXT && a->key == k->name)
        x->lock_name = keep(w, (struct sv_text){a->text, a->size});
    else if (a->type == SV_ARG_TEXT && a->key == k->waker)
        x->by.name = keep(w, (struct sv_text){a->text, a->size});
}

static enum sv_wait_reason reason_of(const struct words *k, sv_str name)
{
    unsigned i = 1;
    while (i < SV_N_WAIT_REASONS && (!name || k->reasons[i] != name))
        i++;
    return i < SV_N_WAIT_REASONS ? (enum sv_wait_reason)i : SV_WAIT_NO_REASON;
}

/* A time in which a thread did not run. */
static void read_row(struct sv_lock_waits *w, const struct sv_trace *t, const struct words *k,
                     uint64_t row, struct sv_batch *scratch, struct sv_lock_wait *x)
{
    const struct sv_slices *s = &t->slices;
    bool is_gil = s->name[row] == k->gil;
    int64_t queued = 0;
    size_t n;
    sv_track thread = sv_dict_thread_of(t->dict, s->track[row]);
    *x = (struct sv_lock_wait){.thread = thread ? thread : s->track[row],
                               .process = sv_dict_process_of(t->dict, s->track[row]),
                               .row = (uint32_t)row,
                               .reason = reason_of(k, s->name[row]),
                               .is_gil = is_gil,
                               .begin_ns = s->ts_ns[row]};
    sv_batch_reset(scratch);
    const struct sv_arg *a = sv_trace_args(t, s->args[row], scratch, &n), *end = a + n;
    for (; a < end; a = sv_arg_next(a)) {
        if (a->type == SV_ARG_INT && a->key == k->queued)
            queued = a->i > 0 ? a->i : 0;
        else
            read_arg(w, k, a, x);
    }
    x->end_ns = sv_trace_end_ns(t, row);
    int64_t dur = x->end_ns - x->begin_ns;
    x->woken_ns = x->end_ns - (queued < dur ? queued : dur);
    if (!x->by.tid)
        x->by = (struct sv_lock_release){0};
}

void sv_lock_waits_add(struct sv_lock_waits *w, const struct sv_lock_wait *x,
                       const struct sv_lock_release *by, int64_t from_ns, int64_t to_ns,
                       int64_t queued_ns)
{
    int64_t ns = sv_sat_sub(to_ns, from_ns);
    w->parts = sv_grow(w->parts, &w->parts_cap, w->n_parts + 1, sizeof *w->parts);
    w->parts[w->n_parts++] = (struct sv_lock_part){
        .thread = x->thread, .wait = x->row, .from_ns = from_ns, .to_ns = to_ns, .by = *by};
    uint64_t lock = x->is_gil ? 0 : x->lock;
    uint64_t parts[5] = {x->thread, lock, (uint64_t)by->tid, (uint64_t)(uintptr_t)x->function.bytes,
                         (uint64_t)(uintptr_t)by->function.bytes};
    bool is_new;
    uint64_t *at = sv_map_add(&w->by_key, sv_hash_bytes(parts, sizeof parts, x->is_gil), &is_new);
    if (is_new) {
        w->sums = sv_grow(w->sums, &w->cap, w->n + 1, sizeof *w->sums);
        w->sums[w->n] = (struct sv_lock_sum){.thread = x->thread,
                                             .function = x->function,
                                             .lock_name = x->lock_name,
                                             .releaser = by->name,
                                             .released_in = by->function,
                                             .lock = lock,
                                             .releaser_tid = by->tid,
                                             .is_gil = x->is_gil};
        *at = w->n++;
    }
    struct sv_lock_sum *sum = &w->sums[*at];
    sum->n++;
    sum->total_ns = sv_sat_add(sum->total_ns, ns);
    sum->queued_ns = sv_sat_add(sum->queued_ns, queued_ns);
    sum->longest_ns = ns > sum->longest_ns ? ns : sum->longest_ns;
}

/* ---- waits that are asked for again ---- */

/* A thread that ran for less than this since a time limit ended its wait has not had the lock
 * meanwhile. One that was woken by a release may have had it for a moment, so there it is only what
 * trying takes. */
#define AGAIN_NS 2000000
#define TRIES_NS 200000

/* Of each process the futex of the interpreter lock itself: that which threads wait for with a time
 * limit. The others guard it, or wait until another thread has taken it over. Where no limit was
 * reached it is the first one, as in CPython's structure. */
static void find_gils(struct sv_map *gils, const struct sv_lock_wait *waits, size_t n)
{
    for (int limited = 1; limited >= 0; limited--) {
        struct sv_map found = {0};
        for (size_t i = 0; i < n; i++) {
            const struct sv_lock_wait *x = &waits[i];
            bool is_new;
            if (!x->is_gil || (limited && x->by.tid))
                continue;
            if (!limited && sv_map_find(gils, x->process))
                continue;
            uint64_t *at = sv_map_add(&found, x->process, &is_new);
            *at = is_new || x->lock < *at ? x->lock : *at;
        }
        for (size_t i = 0; i < found.cap; i++) {
            bool is_new;
            if (found.used[i])
                *sv_map_add(gils, found.slots[i].key, &is_new) = found.slots[i].value;
        }
        sv_map_fini(&found);
    }
}

/* Whether the thread asks for the lock again in x, without having had it since `last`. */
static bool is_again(const struct sv_lock_wait *last, const struct sv_lock_wait *x)
{
    int64_t ran = sv_sat_sub(sv_sat_sub(x->begin_ns, last->end_ns), x->away_ns);
    return last->lock == x->lock && ran < (last->by.tid ? TRIES_NS : AGAIN_NS);
}

/* Waits of one thread for one lock do not overlap, and nothing is lost between them while it still
 * wants the lock: a wait that a time limit ended is part of the next one; after a release that
 * another thread was quicker to use, the next wait begins with that release. */
static size_t join_again(struct sv_lock_wait *waits, size_t n, const struct sv_map *gils)
{
    size_t kept = 0;
    int64_t until = 0; /* the waits of this thread so far */
    for (size_t i = 0; i < n; i++) {
        struct sv_lock_wait x = waits[i], *last = kept ? &waits[kept - 1] : NULL;
        const uint64_t *gil = x.is_gil ? sv_map_find(gils, x.process) : NULL;
        bool is_limited = gil && *gil == x.lock;
        bool is_first = !last || last->thread != x.thread;
        if (!is_first && x.begin_ns < until)
            x.begin_ns = until;
        until = is_first || x.end_ns > until ? x.end_ns : until;
        if (!is_first && is_again(last, &x)) {
            if (is_limited && !last->by.tid) {
                x.begin_ns = last->begin_ns;
                kept--;
            } else if (last->by.tid) {
                x.begin_ns = last->end_ns = last->woken_ns;
            }
        }
        if (x.begin_ns > x.woken_ns)
            x.begin_ns = x.woken_ns;
        waits[kept++] = x;
    }
    return kept;
}

static int by_total(const void *a, const void *b)
{
    const struct sv_lock_sum *x = a, *y = b;
    if (x->total_ns != y->total_ns)
        return x->total_ns > y->total_ns ? -1 : 1;
    return x->thread < y->thread ? -1 : x->thread > y->thread;
}

static void read_waits(struct sv_lock_waits *w, const struct sv_trace *t, const struct words *k)
{
    const struct sv_slices *s = &t->slices;
    struct sv_batch scratch;
    size_t cap = 0;
    sv_batch_init(&scratch);
    for (uint64_t row = 0; row < s->n; row++) {
        if (s->cat[row] != k->cat || !s->args[row])
            continue;
        w->waits = sv_grow(w->waits, &cap, w->n_waits + 1, sizeof *w->waits);
        read_row(w, t, k, row, &scratch, &w->waits[w->n_waits++]);
    }
    sv_batch_fini(&scratch);
}

static int by_begin(const void *a, const void *b)
{
    const struct sv_lock_wait *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    if (x->begin_ns != y->begin_ns)
        return x->begin_ns < y->begin_ns ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static int by_from(const void *a, const void *b)
{
    const struct sv_lock_part *x = a, *y = b;
    if (x->thread != y->thread)
        return x->thread < y->thread ? -1 : 1;
    return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

/* Those for locks, with the time that their thread was preempted since the one before. */
static size_t only_locks(const struct sv_lock_waits *w, struct sv_lock_wait *locks)
{
    int64_t away = 0;
    size_t n = 0;
    for (size_t i = 0; i < w->n_waits; i++) {
        const struct sv_lock_wait *x = &w->waits[i];
        if (n && locks[n - 1].thread != x->thread)
            away = 0;
        if (x->reason == SV_WAIT_FOR_CPU)
            away = sv_sat_add(away, x->end_ns - x->begin_ns);
        if (x->reason != SV_WAIT_FOR_LOCK && x->reason != SV_WAIT_FOR_GIL)
            continue;
        locks[n] = *x;
        locks[n++].away_ns = away;
        away = 0;
    }
    return n;
}

/* Of a thread, also of another process that has the memory at the same place; or, 0, of any of the
 * process. */
static uint64_t use_key(const struct sv_lock_wait *x, int64_t tid)
{
    uint64_t parts[3] = {tid ? 0 : x->process, x->lock, (uint64_t)tid};
    return sv_hash_bytes(parts, sizeof parts, 1);
}

/* Who posts a semaphore that he waits for himself has held it, as one of a pool: nobody makes
 * anything. CPython's locks are semaphores; a wait whose stack lacks Python's functions is what the
 * others for that lock are. */
static void find_pools(struct sv_lock_waits *w, const struct sv_dict *d)
{
    struct sv_map users = {0};
    bool is_new;
    for (size_t i = 0; i < w->n_waits; i++) {
        const struct sv_lock_wait *x = &w->waits[i];
        if (x->is_semaphore)
            *sv_map_add(&users, use_key(x, d->tracks[x->thread].tid), &is_new) = 1;
        else if (x->lock && x->use == SV_LOCK_MUTEX)
            *sv_map_add(&users, use_key(x, 0), &is_new) = 1;
    }
    for (size_t i = 0; i < w->n_waits; i++) {
        struct sv_lock_wait *x = &w->waits[i];
        if (x->is_semaphore && (sv_map_find(&users, use_key(x, 0)) ||
                                (x->by.tid && sv_map_find(&users, use_key(x, x->by.tid)))))
            x->use = SV_LOCK_MUTEX;
    }
    sv_map_fini(&users);
}

/* Parts know their waits by row; joined ones by the last of their rows. */
static void number_parts(struct sv_lock_waits *w)
{
    struct sv_map by_row = {0};
    bool is_new;
    for (size_t i = 0; i < w->n_waits; i++)
        *sv_map_add(&by_row, w->waits[i].row, &is_new) = i;
    for (size_t i = 0; i < w->n_parts; i++)
        w->parts[i].wait = (uint32_t)*sv_map_find(&by_row, w->parts[i].wait);
    sv_map_fini(&by_row);
    if (w->n_parts > 1)
        qsort(w->parts, w->n_parts, sizeof *w->parts, by_from);
}

void sv_lock_waits_make(struct sv_lock_waits *w, const struct sv_trace *t)
{
    struct words k = find_words(t->dict);
    struct sv_map gils = {0};
    *w = (struct sv_lock_waits){0};
    sv_arena_init(&w->texts, 1 << 14);
    if (!k.cat)
        return;
    read_waits(w, t, &k);
    find_pools(w, t->dict);
    if (w->n_waits > 1)
        qsort(w->waits, w->n_waits, sizeof *w->waits, by_begin);
    struct sv_lock_wait *locks = sv_alloc((w->n_waits + 1) * sizeof *locks);
    size_t n = only_locks(w, locks);
    find_gils(&gils, locks, n);
    n = join_again(locks, n, &gils);
    sv_lock_blame(w, t->dict, locks, n, &gils);
    sv_map_fini(&gils);
    free(locks);
    number_parts(w);
    if (w->n > 1)
        qsort(w->sums, w->n, sizeof *w->sums, by_total);
}

const struct sv_lock_wait *sv_lock_wait_at(const struct sv_lock_waits *w, sv_track thread,
                                           int64_t begin_ns)
{
    size_t at;
    SV_SEARCH(at, mid, 0, w->n_waits,
              w->waits[mid].thread < thread ||
                  (w->waits[mid].thread == thread && w->waits[mid].begin_ns < begin_ns));
    const struct sv_lock_wait *after = at < w->n_waits ? &w->waits[at] : NULL,
                              *before = at > 0 ? &w->waits[at - 1] : NULL;
    int64_t to = after && after->thread == thread ? after->begin_ns - begin_ns : INT64_MAX,
            from = before && before->thread == thread ? begin_ns - before->begin_ns : INT64_MAX;
    if (to > SV_WAIT_NEAR_NS && from > SV_WAIT_NEAR_NS)
        return NULL;
    return to <= from ? after : before;
}

size_t sv_lock_part_from(const struct sv_lock_waits *w, sv_track thread, int64_t from_ns)
{
    size_t at;
    SV_SEARCH(at, mid, 0, w->n_parts,
              w->parts[mid].thread < thread ||
                  (w->parts[mid].thread == thread && w->parts[mid].to_ns <= from_ns));
    return at;
}

void sv_lock_waits_fini(struct sv_lock_waits *w)
{
    free(w->sums);
    free(w->waits);
    free(w->parts);
    sv_map_fini(&w->by_key);
    sv_map_fini(&w->by_text);
    sv_arena_fini(&w->texts);
    *w = (struct sv_lock_waits){0};
}
