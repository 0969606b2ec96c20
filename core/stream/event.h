/* The event: what every source gives and every sink takes.
 *
 * Glossary, one word per thing in the whole program:
 *   string    bytes that entered the dictionary once; referred to by number (sv_str), 0 is "none"
 *   track     one row of the time line: a process, a thread, a counter, a GPU stream…; by number
 *             (sv_track), 0 is "none"
 *   argument  a typed value with a key, attached to an event; nested ones follow their parent
 *   event     a timestamp on a track: begin, end, slice, instant, counter, flow, loss
 *   clock     where timestamps come from; every event is int64 nanoseconds on the trace clock
 *   edges     begin and end events: nested per track, the end closes the newest open begin
 *   slice     an event with a duration; slices of one track may overlap until `split` gives them
 *             lanes
 *   flow      a 64-bit number that connects events: an arrow from slice to slice
 *   source, sink, stage   who gives events, who takes them, who does both (a stage is a sink with a
 *                         next)
 *   trace     the store: all events in memory, by column (it is a sink, too) */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint32_t sv_str;
typedef uint32_t sv_track;

enum sv_kind {
    SV_BEGIN = 1, /* opens a slice on the track */
    SV_END,   /* closes the newest open slice of the track; its arguments belong to that slice */
    SV_SLICE, /* a whole slice: ts_ns, dur_ns (SV_UNFINISHED: it never ended) */
    SV_INSTANT,
    /* args[0] (no key, INT or DOUBLE) is the value; the name of the counter is the track's */
    SV_COUNTER,
    SV_FLOW, /* a point on a track whose args[0] (FLOW_BEGIN, FLOW or FLOW_END) binds to the slice that is open there
                   * at ts_ns (with SV_BIND_NEXT: to the next slice that begins there). For formats that record flows apart from slices. */
    /* something was lost here: name is the cause, args[0].i the count (0: unknown), dur_ns the
     * span */
    SV_LOSS
};

#define SV_UNFINISHED (-1)

enum sv_event_flag {
    SV_BIND_NEXT =
        1, /* the end of a flow: binds to the next slice rather than to the enclosing one */
    SV_SCOPE_PROCESS = 2, /* instant: concerns the whole process */
    SV_SCOPE_GLOBAL = 4   /* instant: concerns everything */
};

enum sv_arg_type {
    SV_ARG_NULL = 1,
    SV_ARG_BOOL,    /* i */
    SV_ARG_INT,     /* i */
    SV_ARG_UINT,    /* u: only for values past INT64_MAX, so that equal numbers have equal types */
    SV_ARG_DOUBLE,  /* d */
    SV_ARG_TEXT,    /* text, size bytes; not interned, not necessarily UTF-8 */
    SV_ARG_POINTER, /* u */
    SV_ARG_DICT,    /* the next `size` arguments are its members (and their members) */
    SV_ARG_ARRAY,   /* the same; the members have no key */
    /* Arguments with a meaning of their own and no key: */
    SV_ARG_FLOW_BEGIN,  /* u: a flow starts here, even if the number was used before */
    SV_ARG_FLOW,        /* u: a flow passes (the first one starts it) */
    SV_ARG_FLOW_END,    /* u: a flow ends here */
    SV_ARG_CORRELATION, /* u: same number = same piece of work (host call and device kernel) */
    /* like DICT: where in the code; members `file`, `function` (TEXT), `line` (INT), any may be
     * absent */
    SV_ARG_SOURCE,
    SV_ARG_STACK,       /* like ARRAY: TEXT frames, outermost first */
    SV_ARG_THREAD_TIME, /* i: CPU time of the thread at ts, ns */
    SV_ARG_THREAD_DUR   /* i: CPU time within the slice, ns */
};

/* Arguments are a flat list in pre-order: a DICT or ARRAY is followed by its members, `size` slots
 * in all, so that nesting needs no pointers and skipping no recursion. */
struct sv_arg {
    sv_str key;        /* 0 for array members and for types with a meaning of their own */
    uint32_t type : 8; /* enum sv_arg_type */
    /* TEXT: bytes; DICT, ARRAY, SOURCE, STACK: slots that follow and belong to it */
    uint32_t size : 24;
    union {
        int64_t i;
        uint64_t u;
        double d;
        const char *text; /* not terminated */
    };
};
_Static_assert(sizeof(struct sv_arg) == 16, "arguments are 16 bytes");

#define SV_ARGS_MAX 65535u           /* slots per event; readers report and drop what is beyond */
#define SV_TEXT_MAX ((1u << 24) - 1) /* bytes per text; readers cut and report */

struct sv_event {
    int64_t ts_ns;
    int64_t dur_ns; /* SLICE and LOSS; 0 otherwise */
    sv_track track;
    sv_str name;
    sv_str cat;    /* several categories are joined by ',' */
    uint8_t kind;  /* enum sv_kind */
    uint8_t flags; /* enum sv_event_flag */
    uint16_t n_args;
    const struct sv_arg *args; /* valid until the call that brought the event returns */
};
_Static_assert(sizeof(struct sv_event) == 40, "events are 40 bytes");

/* Is its end a time? Readers refuse an event whose end is not: no format and no stage could say
 * when that is. */
static inline bool sv_event_ends(const struct sv_event *e)
{
    int64_t end_ns;
    return e->dur_ns <= 0 || !__builtin_add_overflow(e->ts_ns, e->dur_ns, &end_ns);
}

/* Makes a slice end there, or at its begin if that is later. False: it lasts longer than 64 bits
 * can say. */
static inline bool sv_event_until(struct sv_event *e, int64_t end_ns)
{
    int64_t dur_ns;
    bool fits = !__builtin_sub_overflow(end_ns, e->ts_ns, &dur_ns);
    e->dur_ns = fits && dur_ns > 0 ? dur_ns : 0;
    return fits || end_ns < e->ts_ns;
}

/* The slot after `a` and everything that belongs to it. */
static inline bool sv_arg_is_flow(const struct sv_arg *a)
{
    return a->type == SV_ARG_FLOW || a->type == SV_ARG_FLOW_BEGIN || a->type == SV_ARG_FLOW_END;
}

static inline const struct sv_arg *sv_arg_next(const struct sv_arg *a)
{
    switch (a->type) {
    case SV_ARG_DICT:
    case SV_ARG_ARRAY:
    case SV_ARG_SOURCE:
    case SV_ARG_STACK: return a + 1 + a->size;
    default: return a + 1;
    }
}

const char *sv_kind_name(unsigned kind);     /* "begin", "end", … */
const char *sv_arg_type_name(unsigned type); /* "int", "text", … */
