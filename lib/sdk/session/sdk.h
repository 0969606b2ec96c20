/* The SDK inside a traced process: its files and its state.
 *
 *   emit.c      the hot path: from a call site to a committed record
 *   slow.c      what the hot path cannot do: rings for threads, full rings, forked children
 *   registry.c  call sites, categories, tracks: numbers that live as long as the process
 *   session.c   start, flush, stop, the environment
 *   session_files.c     the session directory and its mappings
 *   drain.c     records to events (a source), in the writer and in readers of abandoned sessions
 *   writer.c    the thread that moves the rings to the output
 *   clients.c   rings of other processes, read by a writer together with its own
 *   joining.c   the client's side: no thread, no output
 *   say.c       one line on stderr
 *   quiet.c     writes that cannot raise a signal in the program
 *   signals.c   the end by SIGTERM and the like
 *   cut_file.c  ending a file that cannot grow any more
 *   own_table.c the writer's descriptors, apart from the program's
 *   part_place.c    a growing file whose folder was moved or removed
 *
 * State is in two places. What a forked child inherits (numbers of sites and tracks, the plan) is
 * ordinary memory. What it must not (rings, files, threads, locks) lies in pages that the kernel
 * wipes at fork, so that a child of any kind of fork finds "nothing started yet" and starts by
 * itself at its first event. */
#pragma once

#include "core/files/file_id.h"
#include "core/files/process_id.h"
#include "sdk/ring/session_layout.h"
#include "sdk/session/quiet.h"
#include "sdk/session/say.h"

#include <pthread.h>
#include <stave/stave.h>
#include <stdbool.h>

/* A thread's side of its ring. busy: a record is being written (a signal handler sees that), or
 * there is no ring. The space between limit and full_limit is reserved for the ends of the open
 * slices, 16 bytes each: an end never finds the ring full. */
struct sv_open_on {
    uint32_t track, session;
    uint64_t slice; /* 0: its begin was lost */
};
enum { SV_OPEN_ON_MAX = 32 };

struct sv_thread {
    /* head and limit are not neighbours: as one 16-byte load they would wait for two stores of the
     * event before. */
    uint64_t head, mask;
    uint8_t *data;
    uint64_t limit, full_limit;
    struct sv_ring *ring;
    uint64_t fates; /* STAVE_BEGIN: one bit for each open one, newest lowest: was it recorded? */
    uint32_t busy;
    uint32_t counter; /* enum sv_counter */
    uint32_t block;   /* overwrite: the block whose first record is known, plus 1 */
    /* Slices that this thread has begun on named tracks, the newest last; with more of them the
     * oldest is forgotten. */
    uint64_t slice_base; /* what all of them have in common: process and ring */
    uint32_t n_open_on;
    struct sv_open_on open_on[SV_OPEN_ON_MAX];
};

extern _Thread_local struct sv_thread *sv_self __attribute__((tls_model("initial-exec")));
extern struct sv_thread sv_nobody; /* what sv_self is without a ring */
extern _Atomic uint32_t sv_epoch;  /* number of the session, 0: off */
enum { SV_EPOCH_NONE = 1, SV_EPOCH_FIRST = 2 };

struct sv_ring_ref {
    struct sv_ring *ring;
    uint8_t *data;
};

struct sv_session_writer;
enum sv_session_writer_state { SV_WRITER_NONE, SV_WRITER_RUNS, SV_WRITER_ENDED };

/* May a thread make system calls? It cannot ask by itself where the wrong one kills; the writer
 * looks. */
enum sv_restricted {
    SV_RESTRICTED_UNKNOWN,
    SV_RESTRICTED_ASKED,
    SV_RESTRICTED_NO,
    SV_RESTRICTED_YES
};

/* In wiped pages. */
struct sv_process {
    _Atomic uint32_t ready;
    uint32_t pid;
    uint32_t generation;   /* of forks: distinguishes slices that an ancestor has begun */
    _Atomic uint64_t lock; /* thread that holds it, 0: free */
    _Atomic uint32_t start_failed, output_failed;
    _Atomic uint32_t n_parts, n_parts_removed; /* of the file: rotate.c */
    _Atomic uint32_t n_waiting;                /* threads that wait for space */
    /* enum sv_session_writer_state; a futex for those who wait for its end */
    _Atomic uint32_t writer_state;
    _Atomic uint32_t is_ending;      /* a signal ends the program: signals.c */
    _Atomic uint32_t restricted;     /* enum sv_restricted; a futex for who asks */
    _Atomic uint32_t restricted_tid; /* the thread that asks */
    struct sv_session_file *session; /* NULL: no directory yet */
    /* Of a client: the session whose writer reads our rings; else NULL. */
    const struct sv_session_file *collector;
    int64_t collector_looked_ns;
    _Atomic uint64_t collector_ticks;   /* its clock readings when it was seen to advance … */
    _Atomic int64_t collector_moved_ns; /* … and when that was */
    _Atomic uint32_t is_orphan; /* a client whose collector is gone: its rings are for recovery */
    bool resumes; /* the next writer begins where a collector has left off, not at the heads */
    _Atomic uint32_t
        is_out_of_reach; /* the program ends and cannot remove its files: the writer does */
    int names_fd, dir_fd, more_fd; /* use sv_files_names(), sv_files_dir() */
    struct sv_file_id names_id, dir_id, more_id;
    uint8_t *names_map; /* the first SV_NAMES_MAPPED bytes of the file; NULL: not mapped */
    _Atomic int64_t names_failed_ns,
        ring_failed_ns; /* when that was tried in vain; 0: it was not */
    _Atomic uint32_t
        lost_slot; /* where this process counts what it cannot record, plus 1; 0: not known yet */
    char dir[SV_PATH_MAX];
    char name[SV_GIVEN_NAME];  /* given by hand, "": none; under the lock */
    _Atomic uint32_t n_named;  /* how often it was given */
    _Atomic uint32_t n_unsaid; /* a line that the writer could not print: own_table.h */
    char unsaid[1024];
    char said[512];        /* the last line of the thread that has `control` */
    _Atomic uint32_t full; /* enum stave_full of the running session */
    uint64_t ring_bytes;
    bool ring_bytes_given;
    _Atomic uint32_t n_rings;
    struct sv_ring_ref rings[SV_RINGS_MAX];
    uint32_t ended_at;              /* flight recorder: where to look for rings of ended threads */
    struct sv_thread *free_threads; /* linked by data */
    struct sv_thread *slab;
    uint32_t slab_used;
    uint64_t flow_base;
    _Atomic uint64_t flow_next;
    _Atomic uint32_t wake;          /* futex: the writer sleeps on it … */
    _Atomic uint32_t dozes;         /* … or until CPU time was used (doze.c) */
    _Atomic uint64_t names_written; /* bytes of the registry's log in the file */
    _Atomic uint64_t names_known;   /* those that the writer may read, in memory */
    struct sv_session_writer *writer;
    pthread_t writer_thread;
    bool has_writer;
    _Atomic uint32_t writer_works,
        forks;                    /* a fork waits for the writer's pause, and it for the fork */
    _Atomic uint32_t n_forked;    /* how many there were */
    _Atomic uint32_t is_draining; /* a session is being stopped */
    pthread_mutex_t control;      /* start, stop and flush, one at a time: sv_control_lock() */
    _Atomic uint32_t control_owner;
    int control_cancel; /* the owner's state of cancellation */
    struct sv_quiet control_quiet;
};

/* A slice as the program holds it: above what a record says (sv_slice_id) the generation of the
 * process that began it. */
enum { SV_SLICE_RECORD_BITS = 52 };
#define SV_SLICE_RECORD_MASK (((uint64_t)1 << SV_SLICE_RECORD_BITS) - 1)

extern struct sv_process *sv_process; /* NULL before the first use */

/* ---- slow.c ---- */

/* The hot path gives up: does all of it. Returns like stave_i_emit(). */
uint32_t sv_slow(struct stave_site *site, const uint64_t *values);
/* The same for a begin or an end on a track; see struct sv_on. */
struct sv_on;
uint32_t sv_slow_on(struct stave_site *site, const uint64_t *values, struct sv_on *on);
struct sv_thread *sv_attach(void); /* a ring for the calling thread; NULL: none */
bool sv_process_init(void);        /* in this process, if it is not yet; false: cannot */
/* false: this thread holds it already (a signal handler) or nothing is there to lock */
bool sv_lock(void);
bool sv_lock_within(unsigned ms); /* false: not in this time; for who must not wait for a thread */
void sv_unlock(void);
void sv_wake_writer(void);
/* A plugin with a copy of the library goes: nothing calls back into it any more, and its memory is
 * given back. */
void sv_process_unload(void);
void sv_wait_at(_Atomic uint32_t *at, uint32_t value, unsigned ms); /* while it has this value */

/* ---- emit.c ---- */

/* Of a slice on a named track. */
struct sv_on {
    uint64_t slice; /* end: which one, 0: not known; begin: which one it is, once it is recorded */
    uint64_t kept;  /* bytes that a begin keeps for its end, and that the end gives back */
    bool is_end;
};

/* Writes the record if it fits. 0: it does not. `on` may be NULL. */
uint32_t sv_emit_try(struct sv_thread *t, uint64_t word, const struct stave_site *site,
                     const uint64_t *values, struct sv_on *on);
/* Bytes of the record: known for most sites, measured where there is text. */
uint64_t sv_emit_bytes(const struct stave_site *site, const uint64_t *values);
/* stave_site.flags: has text; opens a slice of its thread; its second word says which slice it
 * ends */
enum { SV_SITE_TEXT = 1, SV_SITE_NESTS = 2, SV_SITE_SLICE = 4 };

/* ---- registry.c ---- */

bool sv_registry_init(void);                      /* false: no memory */
bool sv_site_register(struct stave_site *site);   /* is it on? */
void sv_sites_switch(bool on, const char *globs); /* all of them, and those that come */
bool sv_sites_off(unsigned ms); /* for a writer whose program ends; false: the lock was not free */
bool sv_category_on(const char *category);
bool sv_given_name(char name[SV_GIVEN_NAME]); /* of the process; false: none was given */
/* The log from `from` on, in the memory of this process: for its own writer. */
const uint8_t *sv_names_log(uint64_t from, size_t *n);
bool sv_names_flush(void);   /* appends what the session's file lacks; the lock is held */
void sv_registry_drop(void); /* the log and its tables; the lock is held */
void sv_registry_before_fork(void);
void sv_registry_after_fork(bool is_child);

/* ---- session_files.c ---- */

/* Directory, session, names. In the session directory `collector` when that is not NULL. */
bool sv_files_open(struct sv_process *p, const char *collector);
void sv_files_remove(struct sv_process *p); /* at the end of the process */
/* Descriptors of the directory and of the names, opened again if the program has closed them; -1:
 * there are none, or they cannot be reached. */
int sv_files_dir(struct sv_process *p);
int sv_files_names(struct sv_process *p);
/* Where a ring may be, in this order: DIR/ring.N, MORE/ring.N, or memory without a name, which no
 * other process finds. */
enum sv_ring_place { SV_RING_IN_DIR, SV_RING_IN_MORE, SV_RING_IN_MEMORY };
bool sv_ring_open(struct sv_process *p, uint32_t number, uint64_t size, enum sv_ring_place place,
                  struct sv_ring_ref *out);
enum { SV_NAMES_MAPPED = 32 << 10 };

/* ---- session.c ---- */

enum { SV_OUT_MAX = SV_PATH_MAX - 64 };

/* What a session is to be: resolved options, kept for forked children. */
struct sv_plan {
    char pattern[SV_OUT_MAX]; /* as given, %p and all */
    char categories[1024];
    char compress[16];
    uint64_t buffer_bytes; /* 0: the default */
    uint32_t full;         /* enum stave_full, never DEFAULT */
    bool full_by_default;  /* neither options nor STAVE_FULL have chosen it */
    uint64_t keep_ms, after_ms, trigger_ms;
    int trigger_signal;
    char trigger_name[128];
    uint64_t rotate_bytes, rotate_parts;
    int64_t rotate_ns;
    bool with_source;
    bool is_shared; /* by STAVE_OUT: other processes and other copies of the library have it, too */
    bool is_collected; /* STAVE_SESSION: no output of our own */
};

void sv_control_lock(struct sv_process *p);
bool sv_control_try(struct sv_process *p);
void sv_control_unlock(struct sv_process *p);
void sv_session_inherit(void); /* in a forked child, at its first event; the lock is not held */
void sv_session_fail(const char *what, int error); /* tracing off, one line */
void sv_session_unread(const char *what);          /* nobody reads the rings any more; one line */
/* What cannot be recorded is counted (ringless.h); one line for all processes of the session. */
void sv_session_count_only(const char *what, int error);
bool sv_session_close_gates(void); /* sv_sites_off(), and nobody begins anything any more */
/* A client whose ring is full: is its collector still there? True: things have changed, look
 * again. */
bool sv_session_check_collector(void);

/* ---- writer.c ---- */

struct sv_err;
bool sv_session_writer_start(struct sv_process *p, const struct sv_plan *plan, const char *out,
                             struct sv_err *err);
/* the last round, the final name; joins the thread */
void sv_session_writer_stop(struct sv_process *p);
void sv_session_writer_free(void); /* what a stopped one has left; not in a signal handler */
void sv_session_writer_flush(struct sv_process *p);
