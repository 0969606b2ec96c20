/* The states of threads: what a thread did at any time, what it waited for, and who ended the wait.
 *
 *     struct sv_thread_states s;
 *     sv_thread_states_init(&s, trace);
 *     struct sv_state_cursor c = sv_state_window(&s, thread, from_ns, to_ns);
 *     for (struct sv_state_piece p; sv_state_next(&c, &p);) …       // pieces without gaps, in
 *         order, that add up to the window
 *     sv_thread_states_fini(&s);
 *
 * Two sources are read together: the recorded states (category thread_state, docs/io.md) and the
 * system call that is open on the thread. A reason that the trace states (why/words.h) is taken as
 * it is; otherwise it follows from state and call, and is marked as assumed. Without recorded
 * states a thread waits only while it is in a call that can wait. Memory is per thread and per
 * string, never per row; a window costs a search and its own rows. */
#ifndef SV_WHY_THREAD_STATES_H
#define SV_WHY_THREAD_STATES_H

#include "core/base/map.h"
#include "store/trace.h"
#include "why/file_kinds.h"
#include "why/words.h"

#define SV_NO_THREAD UINT32_MAX

struct sv_thread_rows {
    sv_track track, process;
    sv_track state, calls;  /* rows of its states and calls; 0: none */
    sv_track faults;        /* row of page faults; 0: none */
    sv_track uring;         /* first lane of its requests of io_uring; 0: none */
    int64_t from_ns, to_ns; /* from the first to the last thing that is known of it */
    uint32_t starter;       /* the thread that forked its process; SV_NO_THREAD: not known */
    bool has_exec;          /* its process has executed a program since it was forked */
};

struct sv_thread_states {
    const struct sv_trace *trace;
    struct sv_thread_rows *threads; /* in the order of their tracks */
    uint32_t n;
    uint32_t *of_track; /* by track, rows below a thread included: number + 1; 0: none */
    uint32_t *main_of;  /* by track of a process: number + 1 of the one to look at; 0: none */
    struct sv_map by_tid;
    uint8_t *call_class, *state_of; /* by string */
    sv_str cat_call, cat_state, cat_fault, cat_uring, path, reason, lock, holder_tid, waker,
        waker_tid, interrupt, fd;
    bool has_states, has_calls;
};

struct sv_state_piece {
    int64_t from_ns, to_ns;
    enum sv_wait_state state;   /* NO_STATE: not recorded */
    enum sv_wait_reason reason; /* NO_REASON: it does not wait */
    bool is_assumed;            /* the reason: the trace does not state it */
    /* the state's slice; the open call, or the page fault that a wait for the disk is for;
     * SV_NO_ROW: none */
    uint32_t row, call;
};

/* A piece that is the thread's own doing, not a wait for others: it runs, uses a file, sleeps. */
static inline bool sv_state_is_work(const struct sv_state_piece *p)
{
    return p->reason == SV_WAIT_NO_REASON || p->reason == SV_WAIT_FOR_DISK ||
           p->reason == SV_WAIT_FOR_FAULT || p->reason == SV_WAIT_FOR_SLEEP;
}

void sv_thread_states_init(struct sv_thread_states *s, const struct sv_trace *t);
void sv_thread_states_fini(struct sv_thread_states *s);

/* The thread that a track is, or is a row of; SV_NO_THREAD: none. */
uint32_t sv_thread_of(const struct sv_thread_states *s, sv_track track);
/* Its states or calls are recorded. */
static inline bool sv_thread_is_recorded(const struct sv_thread_states *s, sv_track track)
{
    uint32_t thread = sv_thread_of(s, track);
    return thread != SV_NO_THREAD && (s->threads[thread].state || s->threads[thread].calls);
}
uint32_t sv_thread_by_tid(const struct sv_thread_states *s, uint32_t space, int64_t tid);
/* The one to look at for a process: its main thread where anything is known of it, else the one
 * with most rows. */
uint32_t sv_thread_main(const struct sv_thread_states *s, sv_track process);

struct sv_state_cursor {
    const struct sv_thread_states *states;
    const struct sv_thread_rows *thread;
    int64_t at_ns, to_ns;
    uint32_t state, state_end, call, call_end, fault, fault_end; /* rows */
};
struct sv_state_cursor sv_state_window(const struct sv_thread_states *s, uint32_t thread,
                                       int64_t from_ns, int64_t to_ns);
bool sv_state_next(struct sv_state_cursor *c, struct sv_state_piece *p);

/* The state that ends at or reaches over ts_ns, just before it; from_ns may lie before the first
 * state. */
struct sv_state_piece sv_state_before(const struct sv_thread_states *s, uint32_t thread,
                                      int64_t ts_ns);

enum sv_waker_kind { SV_WAKER_UNKNOWN, SV_WAKER_THREAD, SV_WAKER_OUTSIDE, SV_WAKER_INTERRUPT };
struct sv_waker {
    enum sv_waker_kind kind;
    uint32_t thread;     /* THREAD; else SV_NO_THREAD */
    int64_t tid;         /* -1: not known */
    struct sv_text name; /* as the trace has it, may be empty */
};
/* Who ended the wait that is the slice `row`. */
struct sv_waker sv_state_waker(const struct sv_thread_states *s, uint32_t row);
bool sv_waker_is_timer(const struct sv_waker *w);
/* The state at whose end it is seen who ended the wait of the piece: it may have a time limit, and
 * be asked for again at once. An event loop that somebody waits for may do more in between. */
uint32_t sv_state_wait_ends(const struct sv_thread_states *s, const struct sv_state_piece *p,
                            bool is_awaited);
/* The same where the arguments of the call itself say it (lib/inject/io). */
struct sv_waker sv_call_waker(const struct sv_thread_states *s, uint32_t call);

/* Of a call: what its descriptor or path is. */
enum sv_file_kind sv_call_file_kind(const struct sv_thread_states *s, uint32_t call);
struct sv_text sv_call_path(const struct sv_thread_states *s, uint32_t call);
bool sv_state_reads_file(const struct sv_thread_states *s, uint32_t call);
bool sv_state_is_call(const struct sv_thread_states *s, uint64_t row);
/* The request of io_uring that the thread submitted last before a time; SV_NO_ROW: none. */
uint32_t sv_state_request(const struct sv_thread_states *s, uint32_t thread, int64_t to_ns);
/* The data file that a thread used last before a time; empty: none within the last calls. */
struct sv_text sv_last_data_file(const struct sv_thread_states *s, sv_track track, int64_t ts_ns);
/* A state or a call: no slice of the program's own. */
bool sv_state_is_row(const struct sv_thread_states *s, uint64_t row);
/* A call or a page fault: what `call` of a piece may be. */
bool sv_state_has_file(const struct sv_thread_states *s, uint64_t row);

const char *sv_wait_reason_name(unsigned reason); /* "disk"; of NO_REASON "" */
const char *sv_wait_reason_what(unsigned reason); /* "a disk or a file system" */

/* Are the threads of processes that are two ranks of a job? `other` may be SV_NO_THREAD. */
bool sv_states_are_of_ranks(const struct sv_thread_states *s, uint32_t one, uint32_t other);

#endif
