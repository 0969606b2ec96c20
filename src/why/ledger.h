/* The ledger: where the time of each unit went, who had what it waited for, and what that one did
 * meanwhile.
 *
 *     struct sv_ledger l;
 *     sv_ledger_make(&l, trace, &(struct sv_ledger_options){.step = -1});
 *     for (size_t i = 0; i < l.n_pieces; i++) … l.pieces[i].class, l.pieces[i].thread …
 *     sv_ledger_fini(&l);
 *
 * A unit is a step, the time between two steps, an epoch, a phase, or the life of a thread. Its
 * time is cut into pieces that add up to it exactly. Where its own thread runs, or waits for
 * something that is nobody's work (a disk, a timer, a CPU), that is the piece. Where it waits for
 * somebody, the wait becomes an edge, and the pieces are what that one did meanwhile, through as
 * many hands as there are. So each piece has three answers: `class` says what the unit's own thread
 * waited for, the edges and `thread` who had it, and `doing` what that one did. Following never
 * changes the class.
 *
 * Who had it is decided by facts in this order: the table of locks (who released it), who woke the
 * thread, a flow. docs/why.md has the rules. */
#ifndef SV_WHY_LEDGER_H
#define SV_WHY_LEDGER_H

#include "why/data_workers.h"
#include "why/lock_waits.h"
#include "why/spans.h"

/* clang-format off */
/* CLASS(member, word): what the unit's thread used or waited for. */
#define SV_WHY_CLASSES(CLASS)                                                      \
    CLASS(COMPUTE, "compute")                                                      \
    CLASS(LOCK, "lock")                                                            \
    CLASS(GIL, "gil")       /* the interpreter lock of Python */                   \
    CLASS(DATA, "data")     /* what a loader, or another thread, makes */          \
    CLASS(DISK, "disk")     /* calls on files, running or not */                   \
    CLASS(PAGE, "page")     /* pages of mapped files */                            \
    CLASS(PIPE, "pipe")                                                            \
    CLASS(SOCKET, "socket")                                                        \
    CLASS(CHILD, "child")   /* the end of a process */                             \
    CLASS(SLEEP, "sleep")   /* a time that the thread itself chose */              \
    CLASS(CPU, "cpu")       /* it could run */                                     \
    CLASS(GPU, "gpu")                                                              \
    CLASS(COPY, "copy")     /* between host and device */                          \
    CLASS(COMM, "comm")     /* collectives and other ranks */                      \
    CLASS(QUEUE, "queue")   /* a request, for a worker */                          \
    CLASS(UNKNOWN, "unknown")

/* DOING(member, word): what the last one did. */
#define SV_WHY_DOINGS(DOING)   \
    DOING(RUNS, "runs")        \
    DOING(READS, "reads")      \
    DOING(WRITES, "writes")    \
    DOING(NAMES, "names")      /* opens, closes, looks up files */ \
    DOING(FAULTS, "faults")    \
    DOING(SLEEPS, "sleeps")    \
    DOING(QUEUED, "queued")    /* could run */ \
    DOING(DEVICE, "device")    \
    DOING(AWAY, "away")        /* outside of what was recorded */ \
    DOING(WAITS, "waits")      /* for something that is not known */
/* clang-format on */

enum sv_why_class {
#define SV_WHY_MEMBER(member, word) SV_WHY_##member,
    SV_WHY_CLASSES(SV_WHY_MEMBER)
#undef SV_WHY_MEMBER
        SV_N_WHY_CLASSES
};
enum sv_why_doing {
#define SV_WHY_MEMBER(member, word) SV_DOING_##member,
    SV_WHY_DOINGS(SV_WHY_MEMBER)
#undef SV_WHY_MEMBER
        SV_N_DOINGS
};
extern const char *const sv_why_class_names[SV_N_WHY_CLASSES];
extern const char *const sv_why_doing_names[SV_N_DOINGS];

#define SV_NO_EDGE UINT32_MAX

/* How a piece was reached: `thread` waited for `to`. */
struct sv_why_edge {
    uint32_t before; /* the edge that led to `thread`; SV_NO_EDGE: it is the unit's own */
    uint32_t thread;
    uint32_t to;   /* SV_NO_THREAD: not in the trace */
    uint32_t wait; /* of the locks' waits; UINT32_MAX: it has no stack */
    uint32_t part; /* of the locks' parts; UINT32_MAX: none */
    uint32_t row;  /* the state; SV_NO_ROW: none */
    uint32_t call; /* that `thread` waited in; SV_NO_ROW: none */
    enum sv_wait_reason reason;
    bool by_flow, is_assumed;
};

#define SV_WHY_MOMENT_NS 200000
enum sv_why_sum_of {
    SV_WHY_NO_SUM,
    SV_WHY_SUM,
    SV_WHY_SUM_OF_MOMENTS /* each is shorter than SV_WHY_MOMENT_NS */
};

struct sv_why_piece {
    int64_t ts_ns, dur_ns;
    uint32_t unit;
    uint32_t edge;   /* the last one; SV_NO_EDGE: the unit's own thread */
    uint32_t thread; /* who did it; SV_NO_THREAD: nobody that the trace knows */
    uint32_t row;    /* the call, fault or slice that it was in; SV_NO_ROW: none */
    uint32_t state;  /* the state's slice; SV_NO_ROW: none */
    uint8_t class, doing;
    bool is_assumed; /* a rule decided, not a fact */
    uint8_t is_sum;  /* of several like it: the time is that of the first; enum sv_why_sum_of */
};

enum sv_unit_kind {
    SV_UNIT_IS_STEP,
    SV_UNIT_IS_BETWEEN, /* the time before a step, since the one before it */
    SV_UNIT_IS_EPOCH,
    SV_UNIT_IS_PHASE,
    SV_UNIT_IS_THREAD, /* where there is nothing of these */
    SV_UNIT_IS_REQUEST,
    SV_UNIT_IS_TURN,   /* of a loop that nobody marked */
    SV_UNIT_IS_WINDOW, /* a time of a thread that a report asks for: a gap of a device … */
    SV_UNIT_IS_LOADER, /* the main thread of a data worker; counts nowhere */
    SV_N_UNIT_KINDS
};

extern const char *const sv_unit_kind_names[SV_N_UNIT_KINDS];

/* A unit that the caller knows: a request that is in a queue until left_ns and waits until run_ns;
 * then a thread works for it until done_ns. `busy` has the times in which that thread worked for
 * any request. */
struct sv_given_unit {
    int64_t number, from_ns, left_ns, run_ns, done_ns, to_ns;
    uint32_t thread; /* SV_NO_THREAD: not known, or that of `track` */
    sv_track track;  /* 0: none */
    const struct sv_spans *busy;
};

/* A time of a thread, or of that of a track. */
static inline struct sv_given_unit sv_given_window(uint32_t thread, sv_track track, int64_t from_ns,
                                                   int64_t to_ns)
{
    return (struct sv_given_unit){.number = -1,
                                  .from_ns = from_ns,
                                  .left_ns = from_ns,
                                  .run_ns = from_ns,
                                  .done_ns = to_ns,
                                  .to_ns = to_ns,
                                  .thread = thread,
                                  .track = track};
}

struct sv_why_unit {
    enum sv_unit_kind kind;
    int64_t number; /* of a step; else -1 */
    uint32_t row;   /* the marker; SV_NO_ROW: none */
    uint32_t thread;
    sv_track track; /* where `thread` is not known: whose slices say what they can; 0: none */
    int64_t ts_ns, dur_ns;
    int64_t left_ns;         /* of a request: it left the queue */
    int64_t run_ns, done_ns; /* when `thread` works for it: all the time, but of a request */
    const struct sv_spans *busy;
    size_t first, end; /* pieces */
    int64_t class_ns[SV_N_WHY_CLASSES];
    bool counts; /* it is part of the total */
};

struct sv_ledger {
    const struct sv_trace *trace;
    struct sv_thread_states states;
    struct sv_data_workers workers;
    struct sv_lock_waits locks;
    struct sv_why_unit *units;
    size_t n_units;
    struct sv_why_piece *pieces; /* by unit, then time */
    size_t n_pieces, pieces_cap;
    struct sv_why_edge *edges;
    size_t n_edges, edges_cap;
    enum sv_unit_kind kind; /* what the total is made of; a step's includes the time between */
    size_t n_counted;
    int64_t dur_ns, class_ns[SV_N_WHY_CLASSES];
    bool is_summed;   /* there were too many pieces: short ones that are alike are one */
    bool is_found;    /* the units have no marks: they were found by what repeats */
    double median_ns; /* of units that count, those between steps apart */
};

struct sv_ledger_options {
    const char *marker;                /* of steps; NULL: the usual ones */
    const struct sv_steps *steps;      /* found already: the only units, one for each; NULL: none */
    int64_t step;                      /* only the step of this number; -1: all */
    bool with_loaders;                 /* as units, too */
    const struct sv_given_unit *given; /* instead of those in the trace; NULL: none */
    size_t n_given;
    enum sv_unit_kind given_kind;
    size_t pieces_max; /* from here on pieces are summed; 0: by the size of the trace */
    unsigned threads;  /* 0: the default; the result is the same */
};

void sv_ledger_make(struct sv_ledger *l, const struct sv_trace *t,
                    const struct sv_ledger_options *o);
void sv_ledger_fini(struct sv_ledger *l);

/* Lets units of another kind count that lie beside those that counted: the kind that takes most
 * time. False, and nothing is changed: they take less than this. */
bool sv_units_count_others(struct sv_ledger *l, int64_t least_ns);

/* Where the piece's own wait was recorded with its stack; NULL: nowhere. */
const struct sv_lock_wait *sv_why_wait(const struct sv_ledger *l, const struct sv_why_piece *p);
/* The path of the file that it was about; empty: none. */
struct sv_text sv_why_path(const struct sv_ledger *l, const struct sv_why_piece *p);
/* The function of the one who did it: where it waited, else where it released the lock, else the
 * slice that it was in; with file and line where they are known. Empty: not known. */
struct sv_text sv_why_frame(const struct sv_ledger *l, const struct sv_why_piece *p);
/* The first edge that is a wait, not a join: what the class is of. SV_NO_EDGE: none. */
uint32_t sv_why_first_edge(const struct sv_ledger *l, uint32_t edge);

/* The recorded wait of an edge; NULL: none is. */
const struct sv_lock_wait *sv_why_edge_wait(const struct sv_ledger *l, uint32_t edge);
/* In which function the other one ended the wait; empty: not known. */
struct sv_text sv_why_released_in(const struct sv_ledger *l, uint32_t edge);

/* ---- the parts, for each other ---- */

struct sv_steps;
void sv_units_find(struct sv_ledger *l, const struct sv_steps *steps,
                   const struct sv_ledger_options *o);
void sv_units_count(struct sv_ledger *l);
/* Makes the pieces from the first one on fewer, and gives up edges from there on that are not
 * needed any more: those of one unit, the last. */
void sv_ledger_sum(struct sv_ledger *l, size_t first_piece, size_t first_edge);
/* What repeats in the process of the thread that leads; 0: nothing. free() them. */
size_t sv_units_repeat(const struct sv_ledger *l, uint32_t thread, enum sv_unit_kind *kind,
                       struct sv_given_unit **units);

#endif
