/* Random events from a seed, a sink that keeps what it gets, and a text form to compare: for laws
 * over stages and formats.
 *
 *     struct gen g;
 *     gen_make(&g, &(struct gen_options){.seed = 7, .n = 1000, .shape = SV_HAS_EDGES |
 *     SV_HAS_NESTED, .extras = GEN_ALL});
 *     struct collect c = {0};
 *     struct sv_sink *s = sv_sort_new(g.dict, 0, collect_sink(&c, SV_HAS_ANYTHING));
 *     gen_push(&g, s, &err);                    // writes in batches of random size and closes
 *     CHECK_STR_EQ(dump(&text, g.dict, c.events, c.n), …);
 *     collect_fini(&c); gen_fini(&g);
 *
 * Equal options give equal events on every machine. */
#ifndef TESTS_HARNESS_GEN_EVENTS_H
#define TESTS_HARNESS_GEN_EVENTS_H

#include "core/base/buf.h"
#include "core/stream/stream.h"

struct rng {
    uint64_t state;
};
uint64_t rng_next(struct rng *r);
uint64_t rng_below(struct rng *r, uint64_t n); /* 0 … n − 1; n > 0 */

enum gen_extra {
    GEN_INSTANTS = 1,
    GEN_COUNTERS = 2,
    GEN_LOSS = 4,
    GEN_FLOWS = 8,       /* flow and correlation arguments on slices and begins */
    GEN_ARGS = 16,       /* nested arguments of the types in arg_types */
    GEN_UNFINISHED = 32, /* begins without end, SV_UNFINISHED slices */
    GEN_UNMATCHED = 64,  /* ends without begin */
    GEN_ALL = 63         /* all but unmatched ends, which are damage */
};

/* What most traces do not have, and a few do. */
enum gen_odd {
    GEN_ODD_TIMES = 1, /* from anywhere in int64 on, in steps of any size, up to its very end */
    GEN_ODD_NAMES =
        2, /* of events, categories, keys and tracks: empty, long, control bytes, NUL, alike */
    GEN_ODD_ARGS = 4,    /* deep, many, long texts, equal keys, stacks, sources, CPU times */
    GEN_ODD_TRACKS = 8,  /* nested rows, rows of the same name, CPUs, devices, top-level rows */
    GEN_ODD_BYTES = 16,  /* names and texts that are not UTF-8 */
    GEN_ODD_NUMBERS = 32 /* nan, infinities, -0, the smallest and largest */
};

struct gen_options {
    uint64_t seed;
    unsigned odd;       /* enum gen_odd */
    size_t n;           /* about so many events */
    unsigned shape;     /* enum sv_shape */
    unsigned extras;    /* enum gen_extra */
    unsigned n_tracks;  /* that carry slices; 0: six */
    uint32_t arg_types; /* 1 << enum sv_arg_type, 0: all that are values */
    int64_t start_ns;
    int64_t depth; /* of open slices per track, 0: eight */
};

/* With SV_IN_NO_ORDER the events are shuffled, with SV_IN_TRACK_ORDER tracks are mixed; otherwise
 * they are in time order (ties in any order, except that an end never comes before its begin).
 * Slices nest per track unless SV_HAS_SLICES is given. */
struct gen {
    struct sv_dict *dict;
    struct sv_event *events;
    size_t n, cap;
    struct sv_arena arena;
    struct rng rng;
};
void gen_make(struct gen *g, const struct gen_options *options);
void gen_fini(struct gen *g);

/* Writes all events into the sink in batches of 1 … SV_BATCH events and closes it. The memory of a
 * batch is overwritten after each call, so that a stage which keeps a borrowed pointer is
 * caught. */
int gen_push(struct gen *g, struct sv_sink *sink, struct sv_err *err);
int push_events(const struct sv_event *events, size_t n, struct sv_sink *sink, struct sv_err *err);

/* The events as a source; closing it leaves `g` alone. */
struct sv_source *gen_source(struct gen *g, unsigned gives, struct sv_report *report);

struct collect {
    struct sv_event *events;
    size_t n, cap;
    struct sv_arena arena;
    bool closed, failed;
    size_t fail_at; /* write() answers SV_EIO when this many events have come; 0: never */
};
struct sv_sink *collect_sink(struct collect *c, unsigned takes);
void collect_fini(struct collect *c);

/* One line an event: time, duration, kind, track, name, category, flags, arguments. `buf` is
 * cleared first. */
const char *dump(struct sv_buf *buf, const struct sv_dict *dict, const struct sv_event *events,
                 size_t n);
/* The same with the lines sorted: for sets of events whose order does not matter. */
const char *dump_set(struct sv_buf *buf, const struct sv_dict *dict, const struct sv_event *events,
                     size_t n);

#endif
