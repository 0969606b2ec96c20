/* The lists of enqueued commands, and taking from them what is complete. Called by the wrappers of
 * enqueueing and waiting calls, and at the end of the program.
 *
 * No thread and no callback of our own: a driver's callbacks run where it likes, and the program's
 * may call OpenCL again. A list is detached under its lock and walked without it, so that drivers
 * (and what they call) never run below a lock that the enqueueing threads need. */
#include <stdlib.h>
#include <time.h>

#include "pending.h"

enum {
    DRAIN_EVERY =
        /* enqueues of a queue: fewer disturb the driver at its work, more let its memory grow */
    32,
    DRAIN_MOST = 64, /* of them at a time, while the program enqueues */
    LOOK_AHEAD = 16, /* incomplete ones that an out-of-order queue is looked through */
    BURST =
        /* so much work in BURST_NS could fill a ring of the default size: the writer is waited
         * for */
    1024,
    PENDING_MAX = 1 << 20,
    DRAIN_WAIT_S = 1
};
#define TIMER_EVERY_NS INT64_C(1000000000)
#define TIE_EVERY_NS   INT64_C(1000000000)
#define BURST_NS       INT64_C(50000000)
#define EXIT_WAIT_MS   500 /* without any progress */

static atomic_uint_fast64_t correlations;
static atomic_bool is_over;

bool cl_work_begin(struct cl_work *w, cl_command_queue queue, const char *call)
{
    if (!stave_enabled(NULL) || atomic_load_explicit(&is_over, memory_order_relaxed))
        return false;
    struct cl_queue *q = cl_queue_of(queue);
    if (!q)
        return false;
    w->queue = q;
    w->correlation = atomic_fetch_add_explicit(&correlations, 1, memory_order_relaxed) + 1;
    stave_gpu_call_begin(STAVE_GPU_OPENCL, call, q->device->gpu, w->correlation);
    w->before = stave_now_ns();
    return true;
}

static void call_ended(cl_int status)
{
    if (status == CL_SUCCESS) {
        stave_gpu_call_end();
        return;
    }
    struct stave_args more;
    stave_args_init(&more);
    stave_args_int(&more, "error", status);
    stave_gpu_call_end_with(&more);
}

/* Of the queue's spare ones if it has any. */
static struct cl_work *work_new(struct cl_queue *q)
{
    pthread_mutex_lock(&q->lock);
    struct cl_work *w = q->spare;
    if (w)
        q->spare = w->next;
    pthread_mutex_unlock(&q->lock);
    if (!w && atomic_load_explicit(&q->n_pending, memory_order_relaxed) < PENDING_MAX)
        w = malloc(sizeof *w);
    return w;
}

static void append(struct cl_queue *q, struct cl_work *w)
{
    w->next = NULL;
    pthread_mutex_lock(&q->lock);
    *q->last = w;
    q->last = &w->next;
    atomic_fetch_add_explicit(&q->n_pending, 1, memory_order_relaxed);
    pthread_mutex_unlock(&q->lock);
}

void cl_work_end(struct cl_work *w, cl_int status, cl_event event, bool is_ours)
{
    struct cl_queue *q = w->queue;
    w->after = stave_now_ns();
    call_ended(status);
    if (status != CL_SUCCESS || !event)
        return;
    if (!q->is_profiled || (!is_ours && cl_real.clRetainEvent(event) != CL_SUCCESS)) {
        if (is_ours)
            cl_real.clReleaseEvent(event);
        stave_gpu_lost(q->device->gpu, 1, "the queue has no profiling");
        return;
    }
    struct cl_work *kept = work_new(q);
    if (!kept) {
        cl_real.clReleaseEvent(event);
        stave_gpu_lost(q->device->gpu, 1, "too much work is pending");
        return;
    }
    w->event = event;
    *kept = *w;
    append(q, kept);
    unsigned n = atomic_fetch_add_explicit(&q->enqueued, 1, memory_order_relaxed);
    if (w->is_blocking)
        cl_drain_queue(q, CL_DRAIN_WAITED);
    else if (n % DRAIN_EVERY == DRAIN_EVERY - 1)
        cl_drain_queue(q, CL_DRAIN_SOME);
}

/* ---- the device's clock ---- */

void cl_read_timer(struct cl_device_info_of *d)
{
    int64_t now = stave_now_ns();
    pthread_mutex_lock(&d->lock);
    bool is_due = !d->has_no_timer && (!d->timer_ns || now - d->timer_ns > TIMER_EVERY_NS);
    if (is_due)
        d->timer_ns = now;
    pthread_mutex_unlock(&d->lock);
    if (!is_due)
        return;
    cl_ulong device = 0, host = 0;
    int64_t before = stave_now_ns();
    cl_int status = cl_real.clGetDeviceAndHostTimer
                        ? cl_real.clGetDeviceAndHostTimer(d->id, &device, &host)
                        : CL_INVALID_OPERATION;
    int64_t after = stave_now_ns();
    pthread_mutex_lock(&d->lock);
    if (status == CL_SUCCESS && device)
        cl_clock_add(&d->clock, before, device, after);
    else
        d->has_no_timer = true;
    pthread_mutex_unlock(&d->lock);
}

/* The tie that the trace shows: the first, after a jump, and one a second. */
static struct cl_clock clock_now(struct cl_device_info_of *d, uint64_t device)
{
    pthread_mutex_lock(&d->lock);
    struct cl_clock clock = d->clock;
    bool is_due = clock.is_set && (!d->tied_ns || clock.at - d->tied_ns > TIE_EVERY_NS);
    if (is_due)
        d->tied_ns = clock.at;
    pthread_mutex_unlock(&d->lock);
    if (is_due)
        stave_gpu_clock_tie(d->gpu_clock, (int64_t)device, cl_clock_host(&clock, device),
                            cl_clock_uncertainty(&clock));
    return clock;
}

/* ---- taking what is complete ---- */

static uint64_t time_of(cl_event event, cl_profiling_info what)
{
    cl_ulong t = 0;
    return cl_real.clGetEventProfilingInfo(event, what, sizeof t, &t, NULL) == CL_SUCCESS ? t : 0;
}

static bool is_complete(struct cl_work *w)
{
    cl_int status = CL_QUEUED;
    if (cl_real.clGetEventInfo(w->event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status,
                               NULL) != CL_SUCCESS)
        status = CL_INVALID_EVENT;
    w->status = status;
    if (status != CL_COMPLETE)
        return status < 0;
    w->queued = time_of(w->event, CL_PROFILING_COMMAND_QUEUED);
    w->submitted = time_of(w->event, CL_PROFILING_COMMAND_SUBMIT);
    w->started = time_of(w->event, CL_PROFILING_COMMAND_START);
    w->ended = time_of(w->event, CL_PROFILING_COMMAND_END);
    struct cl_device_info_of *d = w->queue->device;
    if (w->queued) {
        pthread_mutex_lock(&d->lock);
        cl_clock_add(&d->clock, w->before, w->queued, w->after);
        pthread_mutex_unlock(&d->lock);
    }
    return true;
}

struct list {
    struct cl_work *first, **last;
    size_t n;
};

static void list_add(struct list *l, struct cl_work *w)
{
    w->next = NULL;
    *l->last = w;
    l->last = &w->next;
    l->n++;
}

/* Moves the complete ones of `l` to `done`, in order. */
static void take_complete(const struct cl_queue *q, struct list *l, enum cl_drain how,
                          struct list *done)
{
    struct cl_work **at = &l->first;
    unsigned ahead = 0;
    unsigned look = q->is_in_order ? 1 : how != CL_DRAIN_SOME ? UINT32_MAX : LOOK_AHEAD;
    while (*at && ahead < look && (how != CL_DRAIN_SOME || done->n < DRAIN_MOST)) {
        struct cl_work *w = *at;
        if (!is_complete(w)) {
            ahead++;
            at = &w->next;
            continue;
        }
        *at = w->next;
        if (!w->next)
            l->last = at;
        list_add(done, w);
    }
}

static void detach(struct cl_queue *q, struct list *l)
{
    pthread_mutex_lock(&q->lock);
    l->first = q->first;
    l->last = q->first ? q->last : &l->first;
    q->first = NULL;
    q->last = &q->first;
    pthread_mutex_unlock(&q->lock);
}

/* What is not complete goes back before what came meanwhile. */
static void attach(struct cl_queue *q, const struct list *l)
{
    if (!l->first)
        return;
    pthread_mutex_lock(&q->lock);
    *l->last = q->first;
    if (!q->first)
        q->last = l->last;
    q->first = l->first;
    pthread_mutex_unlock(&q->lock);
}

/* The calling thread's ring holds a little more than a burst. */
static void pace(void)
{
    static _Thread_local uint32_t recorded;
    static _Thread_local int64_t since_ns;
    if (++recorded % BURST != 0)
        return;
    int64_t now = stave_now_ns();
    if (now - since_ns < BURST_NS)
        stave_flush();
    since_ns = stave_now_ns();
}

static void record_all(struct cl_queue *q, struct cl_work *done)
{
    struct cl_clock clock = {0};
    size_t recorded = 0;
    for (struct cl_work *w = done; w; w = w->next) {
        if (recorded % 256 == 0) {
            cl_read_timer(q->device);
            clock = clock_now(q->device, w->queued);
        }
        if (w->status == CL_COMPLETE && w->ended)
            cl_record_work(w, &clock);
        else
            cl_record_failed(w);
        cl_real.clReleaseEvent(w->event);
        recorded++;
        pace();
    }
}

static void give_back(struct cl_queue *q, const struct list *done)
{
    if (!done->first)
        return;
    pthread_mutex_lock(&q->lock);
    *done->last = q->spare;
    q->spare = done->first;
    atomic_fetch_sub_explicit(&q->n_pending, done->n, memory_order_relaxed);
    pthread_mutex_unlock(&q->lock);
}

static void drain_locked(struct cl_queue *q, enum cl_drain how)
{
    struct list list = {0}, done = {.last = &done.first};
    detach(q, &list);
    take_complete(q, &list, how, &done);
    attach(q, &list);
    record_all(q, done.first);
    give_back(q, &done);
}

/* Another thread may have looked before the command was complete. A limit: the driver's code runs
 * below this lock, and nobody knows what it waits for. */
static bool wait_for_drain(struct cl_queue *q)
{
    struct timespec limit;
    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += DRAIN_WAIT_S;
    return pthread_mutex_timedlock(&q->drain, &limit) == 0;
}

void cl_drain_queue(struct cl_queue *q, enum cl_drain how)
{
    if (atomic_load_explicit(&q->n_pending, memory_order_relaxed) == 0)
        return;
    /* Busy: another thread is at it, or this one, below a callback. What it leaves is taken the
     * next time. */
    static _Thread_local bool is_draining;
    if (pthread_mutex_trylock(&q->drain) != 0 &&
        (how != CL_DRAIN_WAITED || is_draining || !wait_for_drain(q)))
        return;
    is_draining = true;
    drain_locked(q, how);
    is_draining = false;
    pthread_mutex_unlock(&q->drain);
}

void cl_drain_queues(enum cl_drain how)
{
    for (struct cl_queue *q = atomic_load(&cl_queues); q; q = q->next_queue)
        cl_drain_queue(q, how);
}

cl_uint cl_pending_refs(struct cl_queue *q, cl_event event)
{
    cl_uint refs = 0;
    pthread_mutex_lock(&q->lock);
    for (struct cl_work *w = q->first; w; w = w->next)
        refs += w->event == event;
    pthread_mutex_unlock(&q->lock);
    return refs;
}

/* ---- the end of the program ---- */

static size_t all_pending(void)
{
    size_t n = 0;
    for (struct cl_queue *q = atomic_load(&cl_queues); q; q = q->next_queue)
        n += atomic_load(&q->n_pending);
    return n;
}

/* What the device still works on is waited for, a little: without us the program would not wait at
 * all. */
void cl_drain_at_exit(void)
{
    if (atomic_exchange(&is_over, true))
        return;
    size_t left = all_pending();
    for (int quiet_ms = 0; left && quiet_ms < EXIT_WAIT_MS; quiet_ms++) {
        cl_drain_queues(CL_DRAIN_ALL);
        size_t now = all_pending();
        if (now < left)
            quiet_ms = 0;
        left = now;
        if (left)
            nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
    for (struct cl_queue *q = atomic_load(&cl_queues); left && q; q = q->next_queue) {
        size_t n = atomic_load(&q->n_pending);
        if (n)
            stave_gpu_lost(q->device->gpu, n, "not complete when the program ended");
    }
}
