/* A wait into the trace, in the form of the recorder's own (src/record/probes/offcpu.c): a slice of
 * category offcpu_sample on the row `off CPU`, named by its reason, with lock, waker and both
 * stacks. Frames that are addresses, and the lock's name, are filled in by the recorder. */
#include "inject/preload/preload.h"

#include <stdatomic.h>
#include <string.h>

/* Too large for the stack of a small thread. */
enum { BUILDERS = 16 };
static struct stave_args builders[BUILDERS];
static atomic_bool is_taken[BUILDERS];

static struct stave_args *take_builder(size_t *number)
{
    for (size_t i = 0; i < BUILDERS; i++) {
        if (!atomic_exchange_explicit(&is_taken[i], true, memory_order_acquire)) {
            *number = i;
            return &builders[i];
        }
    }
    return NULL;
}

/* Outermost first; Python's frames are outside of the native ones. */
static void put_stack(struct stave_args *a, const char *key, const struct pre_stack *s,
                      const char *innermost)
{
    const char *frames[128];
    unsigned n = 0;
    for (uint32_t at = 0; at < s->python_len && n < 128; at += (uint32_t)strlen(s->python + at) + 1)
        frames[n++] = s->python + at;
    stave_args_list(a, key);
    while (n-- > 0)
        stave_args_text(a, NULL, frames[n]);
    for (uint32_t i = s->n_native; i-- > 0;)
        stave_args_pointer(a, NULL, (const void *)(s->native[i] - 1)); /* in the call, not after */
    if (innermost)
        stave_args_text(a, NULL, innermost);
    stave_args_end(a);
}

static void put_waker(struct stave_args *a, const struct pre_wait *w)
{
    if (w->by_tid)
        stave_args_int(a, "waker_tid", w->by_tid);
    if (w->by_name)
        stave_args_text_n(a, "waker", w->by_name, strnlen(w->by_name, 16));
    if (w->by_stack)
        put_stack(a, "waker_stack", w->by_stack, NULL);
    if (!w->by_tid && w->is_timeout)
        stave_args_int(a, "interrupt", 1);
}

static void put_wait(struct stave_args *a, const struct pre_wait *w, const struct pre_stack *own)
{
    struct pre_thread *t = pre_thread();
    if (!t->waits)
        t->waits = stave_track(stave_thread_track(t->tid), "off CPU");
    stave_args_init(a);
    stave_args_text(a, "reason", w->reason);
    if (w->lock) {
        stave_args_int(a, "lock", (int64_t)w->lock);
        stave_args_pointer(a, "lock_name", (const void *)w->lock);
    }
    put_waker(a, w);
    put_stack(a, STAVE_STACK, own, w->function);
    stave_emit(&(struct stave_event){.size = sizeof(struct stave_event),
                                     .kind = STAVE_KIND_COMPLETE,
                                     .track = t->waits,
                                     .category = "offcpu_sample",
                                     .name = w->reason,
                                     .args = a,
                                     .start_ns = w->start_ns,
                                     .dur_ns = w->end_ns - w->start_ns});
}

void pre_waited(const struct pre_wait *w)
{
    size_t number = 0;
    struct pre_stack own;
    struct stave_args *a = take_builder(&number);
    if (!a)
        return;
    pre_stack_take(&own, w->caller);
    put_wait(a, w, &own);
    atomic_store_explicit(&is_taken[number], false, memory_order_release);
}
