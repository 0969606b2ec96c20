/* libstave's events with the names of functions and locks that only the recorder knows. */
#ifndef SV_RECORD_SESSION_FRAMES_H
#define SV_RECORD_SESSION_FRAMES_H

#include "core/stream/stream.h"
#include "record/session/inside.h"
#include "record/stacks/stacks.h"

struct sv_decode;

struct sv_named_source {
    struct sv_source source; /* first */
    struct sv_source *inner;
    struct sv_stacks *stacks;
    struct sv_symbols *symbols;
    struct sv_inside inside;
    sv_str cat, waker_stack, lock_name, process, exec, path;
};

/* `inner` stays the caller's. */
struct sv_source *sv_named_source(struct sv_named_source *s, struct sv_source *inner,
                                  struct sv_decode *decode);

#endif
