/* Events whose everything is known at run time only: for bindings.
 *
 * One static call site per kind and shape, all of it passed as words. The category is looked up on
 * each call, so that a macro is several times cheaper. */
#include "sdk/session/sdk.h"

static const char *const no_keys[] = {"", "", "", "", "", "", 0};
static struct stave_i_dso no_dso;

#define SHAPE(id, kind_, ...)                                   \
    static const uint8_t id##_types[] = {__VA_ARGS__};          \
    static struct stave_site id = {.state = 1,                  \
                                   .kind = kind_,               \
                                   .n_args = sizeof id##_types, \
                                   .keys = no_keys,             \
                                   .types = id##_types,         \
                                   .dso = &no_dso}

SHAPE(begin, STAVE_KIND_BEGIN, STAVE_I_TRACK, STAVE_I_NAME, STAVE_I_CAT, STAVE_I_ARGS);
SHAPE(slice, STAVE_KIND_BEGIN, STAVE_I_TRACK, STAVE_I_OWNER, STAVE_I_NAME, STAVE_I_CAT,
      STAVE_I_ARGS);
SHAPE(end, STAVE_KIND_END, STAVE_I_TRACK, STAVE_I_SLICE, STAVE_I_ARGS);
SHAPE(instant, STAVE_KIND_INSTANT, STAVE_I_TRACK, STAVE_I_NAME, STAVE_I_CAT, STAVE_I_ARGS);
SHAPE(counter, STAVE_KIND_COUNTER, STAVE_I_TRACK, STAVE_I_DOUBLE);
SHAPE(complete, STAVE_KIND_COMPLETE, STAVE_I_TRACK, STAVE_I_START, STAVE_I_DUR, STAVE_I_NAME,
      STAVE_I_CAT, STAVE_I_ARGS);

/* On the thread's own track the end has reserved space, as that of a scope has. */
static bool emit_begin(const uint64_t *values)
{
    return values[0] == STAVE_THREAD ? stave_i_scope_on(&begin, values) != 0
                                     : stave_i_open_on(&begin, values) != 0;
}

static void emit_end(const uint64_t *values)
{
    if (values[0] == STAVE_THREAD)
        stave_i_scope_end_with(atomic_load_explicit(&sv_epoch, memory_order_relaxed), &end, values);
    else
        stave_i_end_on(&end, values);
}

uint64_t stave_slice_begin(const struct stave_event *e)
{
    if (!stave_enabled(e->category ? e->category : ""))
        return 0;
    uint64_t track = e->track == STAVE_THREAD ? STAVE_PROCESS : e->track;
    return stave_i_open_on(&slice, (uint64_t[]){track, 0, (uintptr_t)e->name,
                                                (uintptr_t)e->category, (uintptr_t)e->args});
}

void stave_slice_end(uint64_t which, const struct stave_event *e)
{
    uint64_t track = e->track == STAVE_THREAD ? STAVE_PROCESS : e->track;
    stave_i_close_on(&end, which, (uint64_t[]){track, 0, (uintptr_t)e->args});
}

bool stave_emit(const struct stave_event *e)
{
    if (!stave_enabled(e->category ? e->category : ""))
        return false;
    uint64_t track = e->track, name = (uintptr_t)e->name, cat = (uintptr_t)e->category;
    uint64_t args = (uintptr_t)e->args;
    switch (e->kind) {
    case STAVE_KIND_BEGIN: return emit_begin((uint64_t[]){track, name, cat, args});
    case STAVE_KIND_END: emit_end((uint64_t[]){track, 0, args}); return true;
    case STAVE_KIND_INSTANT:
        return stave_i_emit(&instant, (uint64_t[]){track, name, cat, args}) != 0;
    case STAVE_KIND_COUNTER:
        return stave_i_emit(&counter, (uint64_t[]){track, stave_i_from_double(e->value)}) != 0;
    case STAVE_KIND_COMPLETE:
        return stave_i_emit(&complete, (uint64_t[]){track, (uint64_t)e->start_ns,
                                                    (uint64_t)e->dur_ns, name, cat, args}) != 0;
    case STAVE_KIND_LOSS: break;
    }
    return false;
}
