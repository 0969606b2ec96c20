/* The writer thread's state, shared by its three lives: file (writer.c, cut_file.c), stream
 * (stream.c), flight recorder (flight.c). */
#pragma once

#include "core/base/buf.h"
#include "core/base/mem.h"
#include "core/files/claim.h"
#include "core/stream/stream.h"
#include "sdk/collect/clients.h"
#include "sdk/drain/drain_names.h"
#include "sdk/emit/ticks.h"
#include "sdk/session/sdk.h"
#include "sdk/session/stream_address.h"

#include <signal.h>

struct sv_flight_scan;
struct sv_session_parts;

enum { SV_TRIGGERS_MAX = 16 };
struct sv_trigger {
    uint32_t number; /* of its file */
    int64_t when_ns; /* on the trace clock */
    char reason[116];
};

/* How far the output was at a commit. */
struct sv_commit_point {
    uint64_t bytes, written;
};
enum { SV_POINTS = 8 };

enum sv_writer_start { SV_START_WAITS, SV_START_OK, SV_START_FAILED };

struct sv_session_writer {
    struct sv_process *process;
    struct sv_plan plan;
    char out[SV_OUT_MAX], part[SV_PATH_MAX];
    struct sv_claim claim; /* of a file */
    int part_fd;           /* of the growing file, to read: part_place.c; -1: none */
    struct sv_file_id part_id;
    bool is_rewritten;      /* by its sink, at the end */
    bool was_removed;       /* it had to be written again, because somebody removed it */
    bool is_gone;           /* that was not possible: nobody has it any more */
    _Atomic uint32_t start; /* enum sv_writer_start, a futex for who starts it */
    struct sv_err *start_err;
    struct sv_dict *dict;
    struct sv_report report;
    struct sv_drain *drain;
    struct sv_sink *sink;
    struct sv_sink meter; /* in front of it: counts, commits, and continues when a file fails */
    uint64_t n_batches;   /* of this round */
    struct sv_batch *batch;
    struct sv_clients clients; /* forked children */
    uint64_t names_read;
    uint64_t uncommitted; /* bytes of rings read since the last commit */
    int64_t commit_ns, snapshot_ns, named_ns, tick_ns, alone_ns;
    uint64_t heads;   /* of the rings, together, when it last looked … */
    unsigned peek_us; /* … and when it looks again */
    int doze;         /* a timer of the kernel, if has_doze: doze.c */
    bool has_doze;
    int64_t moved_ns, forked_ns; /* when it last saw heads move, and a fork */
    uint32_t n_forked;
    int alone_status; /* of the program's first thread, which has exited; else 0 */
    uint32_t n_named; /* of the process */
    uint64_t round;
    bool failed; /* the output takes nothing any more: what comes is read and counted */
    int64_t failed_ns;
    char cause[128];
    /* Begins, instants and values, and what was reported as lost: */
    uint64_t written, lost;                   /* handed to the sink; not in the output */
    struct sv_commit_point points[SV_POINTS]; /* the newest ones, in turn */
    uint64_t n_points;
    bool
        /* else it opens nothing for a moment while the program runs, which would take its numbers:
         * own_table.h */
        has_own_table;
    bool is_ending;
    bool cannot_lock;   /* the program ends, and a thread that will not continue has the lock */
    bool is_near_limit; /* the output may soon be full: small steps, so that little is cut */
    sv_str cause_full, cause_nested, cause_ring;
    uint64_t reported_full, reported_other; /* lost before they came here, by cause */
    _Atomic uint32_t stop, flush_asked, flush_done;
    struct sv_session_parts *parts; /* NULL: one file */
    /* stream */
    int fd; /* of the connection, or of the file while the listener is away; -1: no stream */
    struct sv_file_id fd_id;
    struct sv_buf bytes;
    uint64_t sent_bytes, sent_events;
    int64_t patience_ns;        /* with a listener that does not answer */
    char unsent[SV_PATH_MAX];   /* the file for what the listener did not take; "": none */
    bool is_away;               /* no listener is there: what comes goes there */
    int64_t retry_ns, pause_ns; /* when it is looked for again, and how long after that */
    uint64_t earlier_events;    /* of connections before this one, and in the file */
    /* flight recorder */
    struct sv_trigger triggers[SV_TRIGGERS_MAX]; /* asked for by hand and not yet written */
    _Atomic uint32_t triggers_asked, triggers_done, n_files;
    sv_str trigger_str;
    struct sv_flight_scan *scans;
    size_t n_scans, cap_scans;
    struct sigaction old_action;
    bool has_old_action;
};

int64_t sv_session_writer_now_ns(void);
int64_t sv_session_writer_boot_ns(void); /* of the trace clock */
void sv_session_writer_tick(struct sv_session_writer *w);
void sv_session_writer_names(struct sv_session_writer *w); /* the new ones, into its own drain */
void sv_session_writer_names_into(struct sv_drain *d);     /* all of them */

/* What was handed to the sink is in the output, and the rings need not have it any more. */
void sv_session_writer_commit(struct sv_session_writer *w);
void sv_session_writer_fail(struct sv_session_writer *w, const struct sv_err *err);

/* ---- rotate.c ---- */

void sv_turn_begin(struct sv_session_writer *w); /* before the first part is opened */
void sv_turn_end(struct sv_session_writer *w);
void sv_turn_note(struct sv_session_writer *w, const struct sv_event *events, size_t n);
void sv_turn_round(struct sv_session_writer *w); /* begins the next part when it is time */

/* ---- part_place.c ---- */

void sv_part_open(struct sv_session_writer *w);
void sv_part_close(struct sv_session_writer *w);
/* Before the file gets its final name: it has the name of the claim again, or the claim has its new
 * one. False: it has neither. */
bool sv_part_settle(struct sv_session_writer *w);
/* Makes the growing file so long, unless the program has put a file of its own in its place. */
void sv_part_cut(const struct sv_session_writer *w, uint64_t bytes);

/* ---- cut_file.c ---- */

/* Ends the growing file at its last whole packet, with the count of what is missing. False: that is
 * not possible, it stays as it is. */
bool sv_cut_file(struct sv_session_writer *w);

/* ---- doze.c ---- */

void sv_doze_begin(struct sv_session_writer *w);
void sv_doze_end(struct sv_session_writer *w);
/* Waits until the program uses CPU time or somebody wakes the writer (process->wake is not `seen`),
 * or for a quarter of a second; false: the program is not idle, it has not waited. */
bool sv_doze(struct sv_session_writer *w, uint32_t seen);

/* ---- hand_over.c ---- */

bool sv_hand_over(void *writer, struct sv_client_files *out); /* of sv_clients_part() */

/* ---- stream.c ---- */

void sv_stream_name(struct sv_session_writer *w); /* the file for what is not sent */
/* Connects, or begins with the file; the sink then fills w->bytes. */
int sv_stream_open(struct sv_session_writer *w, struct sv_err *err);
void sv_stream_close(struct sv_session_writer *w);
/* What has gathered; true: the listener has it, or the file has. */
bool sv_stream_send(struct sv_session_writer *w, struct sv_err *err);
bool sv_stream_end(struct sv_session_writer *w,
                   struct sv_err *err); /* the same, and nothing follows */
/* Slices, instants and counters, and what losses count. */
uint64_t sv_stream_count(const struct sv_event *events, size_t n);

/* ---- flight.c ---- */

void sv_flight_begin(struct sv_session_writer *w);
void sv_flight_end(struct sv_session_writer *w);
void sv_flight_round(struct sv_session_writer *w);
