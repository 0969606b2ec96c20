/* Inside the store: what its files share. Nobody else includes this.
 *
 *   trace.c         write(): rows in the order of arrival, pairing, the memory limit
 *   trace_table.c   columns
 *   trace_args.c    the pool of argument lists
 *   trace_sort.c    finish, first half: the order of rows, columns brought into it
 *   trace_nest.c    finish: parents and depths; the window index and lookups
 *   trace_flow.c    finish: flow points find their slices
 *   trace_chain.c   finish: carriers of flows become arrows
 *   trace_source.c  the trace as a source
 *   trace_image.c   the trace as sections of a file, and back */
#pragma once

#include "core/base/block.h"
#include "core/base/map.h"
#include "core/stream/oddity.h"
#include "store/trace.h"
#include "threads/workers.h"

/* ---- tables: columns that grow together ---- */

#define SV_TABLE_COLUMNS 10

struct sv_column {
    uint16_t offset; /* of its pointer in the owner */
    uint16_t size;   /* bytes per row */
};
#define SV_COLUMN(type, member)                                           \
    {                                                                     \
        offsetof(struct type, member), sizeof *((struct type *)0)->member \
    }

struct sv_table {
    void *owner; /* the struct with the typed pointers */
    const struct sv_column *columns;
    size_t n_columns, row_bytes;
    size_t cap;
    struct sv_block blocks[SV_TABLE_COLUMNS];
};

void sv_table_init(struct sv_table *b, void *owner, const struct sv_column *columns, size_t n);
void sv_table_fini(struct sv_table *b);
bool sv_table_grow(struct sv_table *b, size_t rows);
/* Adds one more column (the next of the array given to init) to a table of `rows` rows, in the
 * block given or in new memory. */
bool sv_table_add_column(struct sv_table *b, size_t rows, struct sv_block *block);
/* column[place[i]] = column[i] for n rows, one column at a time; those with SV_NO_ROW drop out,
 * n_left stay. */
bool sv_table_scatter(struct sv_table *b, const uint32_t *place, size_t n, size_t n_left,
                      struct sv_workers *workers);
void sv_table_trim(struct sv_table *b, size_t rows);

static inline bool sv_table_reserve(struct sv_table *b, size_t rows)
{
    return __builtin_expect(rows <= b->cap, 1) || sv_table_grow(b, rows);
}

/* ---- the pool of argument lists ---- */

enum {
    SV_LIST_HAS_FLOW = 1, /* FLOW_BEGIN, FLOW or FLOW_END is in it */
};

struct sv_list_shape;
struct sv_text_slot;
struct sv_list_slot;

struct sv_lists {
    struct sv_block bytes; /* lists, each at a multiple of four; 0: none */
    size_t used;
    struct sv_list_shape *shapes; /* [0..SHAPE_FIRST) are unused */
    size_t n_shapes, cap_shapes;
    uint64_t *slots; /* of all shapes */
    size_t n_slots, cap_slots;
    uint32_t *by_hash; /* shapes, open addressing */
    size_t cap_by_hash;
    uint64_t *texts; /* texts met more than once: position and length */
    size_t n_texts, cap_texts;
    struct sv_text_slot *text_cache;
    struct sv_list_slot *list_cache;
    uint32_t list_tries, list_hits;
    uint32_t newest;   /* the list written last, if it has a shape and belongs to one row; else 0 */
    size_t newest_end; /* where its values end */
    uint64_t crowded;  /* ends whose arguments would have exceeded SV_ARGS_MAX */
    bool failed;       /* the system or the address space of handles is exhausted */
};

void sv_lists_init(struct sv_lists *p);
void sv_lists_fini(struct sv_lists *p);
void sv_lists_seal(struct sv_lists *p); /* nothing will be added: drop the caches */
size_t sv_lists_bytes(const struct sv_lists *p);

/* Stores a list (n > 0) and returns its handle; 0 when failed. Flags: SV_LIST_*. */
uint32_t sv_lists_add(struct sv_lists *p, const struct sv_arg *args, size_t n, unsigned *flags);
/* The list of a slice whose begin had `begin` and whose end had `end`; either may be 0. */
uint32_t sv_lists_join(struct sv_lists *p, uint32_t begin, uint32_t end);
/* What join was given; a list that is not a join belongs to the begin. */
void sv_lists_split(const struct sv_lists *p, uint32_t list, uint32_t *begin, uint32_t *end);
/* `list` (0: none) followed by a flow, to be called when the list has just been added; 0 when that
 * would take a chain of chains. */
uint32_t sv_lists_add_flow(struct sv_lists *p, uint32_t list, unsigned type, uint64_t id);
/* `list` without that flow. */
uint32_t sv_lists_drop_flow(struct sv_lists *p, uint32_t list, unsigned type, uint64_t id);
/* `list` (its begin, if it is a join) followed by `more`. */
uint32_t sv_lists_append(struct sv_lists *p, uint32_t list, uint32_t more);

size_t sv_lists_count(const struct sv_lists *p, uint32_t list); /* slots needed for decoding */
/* Decodes into `out`, which has space for sv_lists_count(); returns how many there are. */
size_t sv_lists_decode(const struct sv_lists *p, uint32_t list, struct sv_arg *out);
enum sv_args_hit sv_lists_search(const struct sv_lists *p, uint32_t list, struct sv_args_search *s);
bool sv_lists_find(const struct sv_lists *p, uint32_t list, sv_str key, unsigned type,
                   struct sv_arg *out); /* type 0: any type with this key */

struct sv_image;
struct sv_image_writer;
void sv_lists_put(const struct sv_lists *p, struct sv_image_writer *w);
/* The pool as it was put; it lies in the image. False: sections are missing, or the tables of
 * shapes and texts are not sound. */
bool sv_lists_of_image(struct sv_lists *p, const struct sv_image *im, uint32_t n_strings);
void sv_lists_let_go(struct sv_lists *p); /* of what lies in the image */
/* All lists are sound. Sets a bit in `starts` (zeroed, one for each handle) for each of them. */
bool sv_lists_check(const struct sv_lists *p, uint32_t n_strings, uint64_t *starts);

/* ---- loading ---- */

/* Rows that exist only while loading, beside SV_SLICE and SV_INSTANT: SV_BEGIN and SV_END on a
 * track whose edges went back in time (paired at the end), and SV_END that found nothing open (it
 * may, once the track is in order). */

enum sv_track_flag {
    SV_T_EDGES = 1,    /* has begin or end */
    SV_T_SLICES = 2,   /* has whole slices */
    SV_T_UNSORTED = 4, /* slices and instants are not in row order */
    SV_T_RAW = 8,   /* edges or instants went back in time: from there on they are kept as rows */
    SV_T_DEEP = 16, /* deeper than a row can say: treated like whole slices */
    SV_T_COUNTERS_UNSORTED = 32, /* counter values went back in time */
    SV_T_ENDS = 64               /* has SV_END rows */
};

struct sv_track_state {
    int64_t edge_ns;    /* the newest begin, end or instant */
    int64_t row_ns;     /* the newest slice or instant */
    int64_t row_dur_ns; /* and its length for sorting */
    int64_t counter_ns; /* the newest counter value */
    uint32_t open;      /* innermost open slice: number in `open` of the trace, 0: none */
    uint32_t n_open;
    uint32_t n_rows, n_counters;
    uint32_t last_row; /* the newest of n_rows */
    uint8_t flags;
};

/* The depth of a row that came as a whole slice, until nest computes it; begins nest less deep. */
#define SV_WHOLE UINT16_MAX

/* Bytes per row for putting a track in order: keys and spare space; edges are two keys per row. */
#define SV_SORT_ROW_BYTES 24u
#define SV_SORT_RAW_BYTES 48u

struct sv_open_slice {
    uint32_t row, below; /* below: the enclosing one, or the next free one */
};

/* How a flow came to its row. */
enum sv_carried {
    SV_BY_BEGIN,
    SV_BY_END,
    /* as a point that followed its slice at once: believed until the order of rows is known */
    SV_BY_POINT,
    SV_BY_POINT_NEXT /* the same with SV_BIND_NEXT */
};

/* Flow arguments seen while loading. */
struct sv_carriers {
    uint64_t n;
    uint64_t *id;
    uint32_t *row;
    uint8_t *type;
    uint8_t *how; /* enum sv_carried */
};

struct sv_trace_impl {
    struct sv_sink sink; /* first, so that a sink is its trace's impl */
    struct sv_trace *trace;
    struct sv_report *report;
    struct sv_workers *workers; /* for finish; NULL: one thread */
    uint32_t n_tracks;          /* see sv_trace_tracks() */
    size_t memory_limit;
    struct sv_table slices, counters, flows, points, losses, carriers;
    struct sv_carriers carrier;
    struct sv_lists args;
    struct sv_track_state *states;
    size_t n_states;
    struct sv_open_slice *open; /* [0] is unused */
    size_t n_open, cap_open;
    uint32_t free_open;
    size_t sort_bytes; /* what sorting the track that needs most will take */
    struct sv_oddity unmatched, unfinished, negative, unbound, valueless, too_long;
    uint64_t dropped_counter_args;
    bool finished;
    struct sv_block places; /* between sort and nest: space for the parents */
    /* Blocks of 64 rows, of 64 such blocks, …: the latest end among them. */
    struct sv_block ends[6];
    size_t n_levels;
    struct sv_image *image; /* where all columns lie; NULL: in blocks */
    uint32_t image_strings; /* of the dictionary in it, which may have grown since */
};

/* Into how many ranges n rows are cut for the threads: some for each, so that one that is late
 * holds up the others little. One thread has one. */
#define SV_RANGE_ROWS 65536u
static inline size_t sv_trace_ranges(const struct sv_workers *workers, uint64_t n)
{
    size_t threads = sv_workers_count(workers), most = threads == 1 ? 1 : 4 * threads;
    return n / SV_RANGE_ROWS < most ? (size_t)(n / SV_RANGE_ROWS) + 1 : most;
}

/* How many blocks n rows, or n blocks of the level below, are. The highest level has at most as
 * many as a block holds. */
#define SV_FANOUT_BITS 6u
static inline uint64_t sv_trace_level_size(uint64_t n)
{
    return (n + (1u << SV_FANOUT_BITS) - 1) >> SV_FANOUT_BITS;
}

/* The duration of what ends there; one that is too long is cut, and finish refuses the trace. */
static inline int64_t sv_trace_span(struct sv_trace_impl *x, int64_t from_ns, int64_t to_ns,
                                    sv_track track)
{
    int64_t dur_ns;
    if (__builtin_expect(!__builtin_sub_overflow(to_ns, from_ns, &dur_ns), 1))
        return dur_ns;
    sv_oddity_note(&x->too_long, from_ns, track);
    return INT64_MAX;
}

/* The end of a slice for all questions of order: an unfinished one ends after everything. */
static inline int64_t sv_row_end(const struct sv_slices *s, uint64_t row)
{
    int64_t dur = s->dur_ns[row];
    return dur == SV_UNFINISHED ? INT64_MAX : s->ts_ns[row] + dur;
}

/* The length for sorting: an unfinished slice is longer than any other. */
static inline int64_t sv_sort_dur(int64_t dur_ns)
{
    return dur_ns == SV_UNFINISHED ? INT64_MAX : dur_ns;
}

static inline bool sv_track_keeps_edges(unsigned flags)
{
    return (flags & (SV_T_EDGES | SV_T_SLICES | SV_T_DEEP)) == SV_T_EDGES;
}

/* A flow point that is bound when all rows are there. */
bool sv_trace_add_point(struct sv_trace *t, const struct sv_event *e, const struct sv_arg *a);

/* Closes the image; the columns are gone. */
void sv_trace_let_go(struct sv_trace *t);

int sv_trace_no_memory(const struct sv_trace *t, struct sv_err *err);

/* The slice that a flow point binds to: the one open there, else one that ends just there; or the
 * next one that begins. *hint is a row of the track that does not begin later, its first one to
 * begin with; it moves on, since points are asked for in time order. */
uint32_t sv_trace_bind_at(const struct sv_trace *t, sv_track track, int64_t ts_ns, uint32_t *hint);
uint32_t sv_trace_bind_next(const struct sv_trace *t, sv_track track, int64_t ts_ns,
                            uint32_t *hint);

/* The steps of finish, in this order. */
int sv_trace_sort(struct sv_trace *t, struct sv_err *err);
int sv_trace_doubt(struct sv_trace *t, struct sv_err *err); /* points that were bound too early */
int sv_trace_sort_points(struct sv_trace *t, struct sv_err *err);
int sv_trace_nest(struct sv_trace *t, struct sv_err *err);
int sv_trace_bind(struct sv_trace *t, struct sv_err *err);  /* flow points */
int sv_trace_chain(struct sv_trace *t, struct sv_err *err); /* arrows */
