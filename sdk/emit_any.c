/* Events whose everything is known at run time only: for bindings.
 *
 * One static call place per kind and shape, all of it passed as words. The category is looked up on each call, so that a
 * macro is several times cheaper. */
#include "sdk/sdk.h"

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
SHAPE(end, STAVE_KIND_END, STAVE_I_TRACK, STAVE_I_ARGS);
SHAPE(instant, STAVE_KIND_INSTANT, STAVE_I_TRACK, STAVE_I_NAME, STAVE_I_CAT, STAVE_I_ARGS);
SHAPE(counter, STAVE_KIND_COUNTER, STAVE_I_TRACK, STAVE_I_DOUBLE);
SHAPE(complete, STAVE_KIND_COMPLETE, STAVE_I_TRACK, STAVE_I_START, STAVE_I_DUR, STAVE_I_NAME,
      STAVE_I_CAT, STAVE_I_ARGS);

bool stave_emit(const struct stave_event *e)
{
    if (!stave_enabled(e->category ? e->category : ""))
        return false;
    uint64_t track = e->track, name = (uintptr_t)e->name, cat = (uintptr_t)e->category;
    uint64_t args = (uintptr_t)e->args;
    switch (e->kind) {
    case STAVE_KIND_BEGIN: return stave_i_emit(&begin, (uint64_t[]){track, name, cat, args}) != 0;
    case STAVE_KIND_END: return stave_i_emit(&end, (uint64_t[]){track, args}) != 0;
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
