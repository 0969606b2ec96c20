/* Trace context of requests: see caller.h. What clients send is checked here; the trace gets ids
 * and printable text only. */
#include "server/run/caller.h"
#include "server/run/engine.h"

#include "core/base/mem.h"

#include <string.h>

enum { STATE_MAX = 512 };

static void trim(const char **text, size_t *len)
{
    while (*len && (**text == ' ' || **text == '\t')) {
        ++*text;
        --*len;
    }
    while (*len && ((*text)[*len - 1] == ' ' || (*text)[*len - 1] == '\t'))
        --*len;
}

/* How much of it is kept: whole entries, the first ones; none of a header with bytes that the
 * specification excludes. */
static size_t state_kept(const char *state, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if ((state[i] < 0x20 || state[i] > 0x7e) && state[i] != '\t')
            return 0;
    if (len <= STATE_MAX)
        return len;
    const char *comma = memrchr(state, ',', STATE_MAX + 1);
    return comma ? (size_t)(comma - state) : 0;
}

struct sv_caller *sv_caller_new(struct sv_engine *e, const char *parent, size_t parent_len,
                                const char *state, size_t state_len)
{
    struct stave_trace_context in;
    if (!parent)
        return NULL;
    trim(&parent, &parent_len);
    if (!stave_traceparent_read(parent, parent_len, &in)) {
        atomic_fetch_add_explicit(&e->bad_traceparents, 1, memory_order_relaxed);
        return NULL;
    }
    if (!e->trace)
        return NULL;
    if (state)
        trim(&state, &state_len);
    size_t kept = state ? state_kept(state, state_len) : 0;
    struct sv_caller *c = sv_alloc(sizeof *c + kept + 1);
    c->caller = in;
    stave_trace_context_new(&in, &c->own);
    if (kept)
        memcpy(c->state, state, kept);
    return c;
}
