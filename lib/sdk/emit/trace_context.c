/* W3C trace context of libstave's users: see <stave/trace_context.h>. Needs no session; a thread's
 * context is its own. */
#include "core/stream/trace_context.h"
#include "core/base/map.h"

#include <stave/trace_context.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

_Static_assert(STAVE_TRACEPARENT_SIZE == SV_TRACEPARENT_LEN + 1, "the header's size is public");

static _Thread_local struct stave_trace_context current;
static _Thread_local bool has_current;

bool stave_traceparent_read(const char *text, size_t len, struct stave_trace_context *context)
{
    return text &&
           sv_traceparent_read(text, len, context->trace_id, context->span_id, &context->flags);
}

void stave_traceparent_write(const struct stave_trace_context *context,
                             char text[STAVE_TRACEPARENT_SIZE])
{
    sv_traceparent_write(text, context->trace_id, context->span_id, context->flags);
}

/* Ids need not be secret, but must not repeat: where the kernel has no random bytes yet, time,
 * process and a count make them. */
static void make_id(uint8_t *to, size_t n)
{
    static _Thread_local uint64_t count;
    if (getrandom(to, n, GRND_NONBLOCK) == (ssize_t)n && sv_is_id(to, n))
        return;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t seed = (uint64_t)now.tv_sec << 30 ^ (uint64_t)now.tv_nsec ^ (uint64_t)getpid() << 40 ^
                    (uint64_t)(uintptr_t)&count;
    for (size_t i = 0; i < n; i += 8) {
        uint64_t word = sv_mix64(seed + ++count) | 1;
        memcpy(to + i, &word, 8);
    }
}

void stave_trace_context_new(const struct stave_trace_context *parent,
                             struct stave_trace_context *context)
{
    struct stave_trace_context own = {.flags = 1};
    if (parent)
        own = *parent;
    else
        make_id(own.trace_id, sizeof own.trace_id);
    make_id(own.span_id, sizeof own.span_id);
    *context = own;
}

bool stave_trace_context(struct stave_trace_context *context)
{
    if (has_current)
        *context = current;
    return has_current;
}

void stave_set_trace_context(const struct stave_trace_context *context)
{
    has_current = context != NULL;
    if (context)
        current = *context;
}

uint64_t stave_trace_flow(const struct stave_trace_context *context)
{
    return sv_trace_flow(context->trace_id, context->span_id);
}
