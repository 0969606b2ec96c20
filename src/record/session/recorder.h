/* The recorder: what `stave record` does between the command line and the summary.
 *
 *     sv_recorder_run(): opens the output and the sources, starts or finds the processes, runs
 *     until they end, closes everything. */
#ifndef SV_RECORD_SESSION_RECORDER_H
#define SV_RECORD_SESSION_RECORDER_H

#include "files/open.h"
#include "files/redact.h"
#include "record/decode/decode.h"
#include "record/kernel/kernel.h"
#include "record/output/output.h"
#include "record/output/parts.h"
#include "record/sample/usage.h"
#include "record/session/frames.h"
#include "record/session/meter.h"
#include "record/session/totals.h"
#include "record/session/triggers.h"
#include "record/session/use.h"

#include <signal.h>
#include <stdio.h>
#include <sys/types.h>

struct sv_defer;
struct sv_spending;
struct sv_sync_plan;
struct sv_watch;
struct sv_sync_worker;

/* Instead of a file (stave top): a sink for what is recorded, and a call in each round, which ends
 * the recording by false. */
struct sv_record_live {
    void *ctx;
    struct sv_sink *(*open)(void *ctx, const struct sv_dict *dict);
    bool (*round)(void *ctx, int64_t now_ns);
};

struct sv_record_options {
    struct sv_output_choice out;
    struct sv_words pids;
    const char *comm, *cgroup;
    const char *duration, *calls, *prefix, *min_latency, *interval, *redact, *hooks, *paths, *spool,
        *stacks, *offcpu_min, *mode, *only, *sum_calls, *budget;
    uint64_t ring_bytes, max_bytes, look_hz;
    struct sv_probe_setting probes[SV_N_PROBES];
    struct sv_record_use use;
    bool all, strict, drop_caches, json, no_summary, detach, light, no_sockets, self, no_look,
        explain, no_explain, always, no_samples; /* the last: --sample 0 */
    struct sv_sync_plan *sync;                   /* of --sync; NULL: not wanted */
    struct sv_trigger_options triggers;
    char saved_pattern[SV_CLAIM_PATH_MAX]; /* -o with %t (record/output/saved_name.h); "" */
    const struct sv_record_live *live;     /* NULL: a file is written */
};

/* What the kernel records (recorder.c, record/spool/). */
struct sv_record_system {
    struct sv_kernel *kernel; /* NULL: not possible here */
    struct sv_decode *decode;
    struct sv_defer *defer;  /* record/spool/; NULL: records are decoded as they come */
    struct sv_totals totals; /* of its events, for the summary */
    struct sv_redact_plan redact;
    FILE *records_file; /* STAVE_RECORDS: the kernel's records as they came, for tests; NULL */
    struct sv_kernel_options plan; /* what is asked of the kernel */
};

/* What is recorded without kernel programs, and loaded into the command (ladder.c). */
struct sv_record_ladder {
    struct sv_watch *watch; /* NULL: not needed, or not wanted */
    int64_t every_ns;
    bool has_perf;
    bool has_torch, has_io, has_locks; /* libraries that nobody asked for by name */
};

/* What is looked at from time to time (recorder.c; gpus.c). */
struct sv_record_samplers {
    struct sv_usage *usage; /* NULL: not wanted */
    struct sv_gpus *gpus;   /* NULL: not wanted */
    unsigned also;          /* enum sv_usage_also */
    int64_t usage_interval_ns, gpu_interval_ns;
    int64_t usage_ns, gpus_ns; /* the last time */
};

/* The command (child.c). */
struct sv_record_child {
    pid_t pid;
    mode_t umask;           /* the recorder has one that keeps its files private */
    sigset_t mask;          /* of signals, as it was before the recorder */
    int begin_fd, error_fd; /* pipes: lets the child begin; its error, if it cannot. -1 */
    int status;
    bool has_ended;
};

/* --copy-output (copy.c). */
struct sv_record_copier {
    int fds[2]; /* what the command gets as output and errors; -1 */
    pid_t pid;
};

/* What others ask for by signals (recorder.c). */
struct sv_record_signals {
    int fd;
    int n_stops;
    int n_triggers;   /* SIGUSR1 that were not answered yet (parts.c) */
    int64_t asked_ns; /* when the first one came that asks to stop; 0: none */
};

/* When something was, or will be (recorder.c, forget.c). */
struct sv_record_times {
    int64_t started_ns, deadline_ns;
    int64_t stopped_ns; /* the end of what is recorded; the file may be written later */
    int64_t round_ns, summed_ns, snapshot_ns, forgot_ns, forgot_decoded_ns; /* the last ones */
    int64_t cpu_ran_ns; /* our own CPU time between the start and the end of what is recorded */
};

/* Where the clocks were at the last round (clock_marks.c). */
struct sv_record_clocks {
    int64_t looked_ns;
    int64_t real_ns, asleep_ns; /* how far CLOCK_REALTIME is before, MONOTONIC behind BOOTTIME */
    bool is_known;
};

/* What was lost on a CPU, by kind; `what` is a constant. */
struct sv_recorder_loss {
    const char *what;
    uint64_t n;
    unsigned cpu;
};
enum { SV_SAMPLE_HZ_LITTLE = 19 }; /* where nobody asked for more */
enum { SV_RECORDER_LOSSES = 64 };  /* reported one by one; the sum counts them all */
struct sv_record_losses {
    struct sv_recorder_loss rows[SV_RECORDER_LOSSES];
    size_t n;
    uint64_t sum;
};

/* What `stave status` and the terminal show (recorder.c). */
struct sv_record_status {
    char *listing; /* the file by which `stave status` finds us */
    int64_t shown_ns;
    uint64_t shown_events;
    bool is_shown; /* the line on the terminal */
};

struct sv_recorder {
    const struct sv_record_options *options;
    const struct sv_words *command;
    struct sv_dict *dict;
    struct sv_report report;
    struct sv_batch *batch;
    struct sv_record_system system;
    struct sv_record_ladder ladder;
    struct sv_record_samplers samplers;
    struct sv_collect *collect; /* of programs with libstave */
    struct sv_named_source collected;
    struct sv_sync_worker *sync; /* --sync; NULL */
    struct sv_record_meter meter;
    struct sv_record_output output;
    struct sv_record_child child;
    struct sv_record_copier copier;
    struct sv_record_signals signals;
    struct sv_record_times times;
    struct sv_record_clocks clocks;
    struct sv_record_losses losses;
    struct sv_record_status status;
    struct sv_triggers *triggers; /* NULL: no ring */
    struct sv_spending *spending; /* --budget; NULL */
    /* Prints what `stave explain` says of a saved file; in a process of its own. */
    void (*explain)(const char *path, const char *cause);
    int detach_fd;   /* with --detach: a pipe, written to when the recording has begun; -1 */
    bool has_begun;  /* something may have been recorded */
    bool is_aborted; /* by a second signal: the growing file stays */
    bool is_partial; /* something that was asked for is not possible */
    bool is_bare;    /* events of libstave only: --only sdk, or there is no /proc */
};

/* Returns the exit code of the command, or negative. */
int sv_recorder_run(struct sv_recorder *r, struct sv_err *err);
void sv_recorder_summary(const struct sv_recorder *r);

int64_t sv_recorder_now_ns(void);
int64_t sv_recorder_cpu_ns(void);                 /* of this process so far */
void sv_recorder_snapshot(struct sv_recorder *r); /* of all clocks, into the dictionary */
/* --sum-calls: writes the sums of seconds that are over, or `all`, which must be before tracks of
 * processes are forgotten. */
int sv_recorder_sums(struct sv_recorder *r, int64_t now, bool all, struct sv_err *err);
/* Marks that the wall clock was set, or the machine suspended, since the round before. */
int sv_clock_marks_round(struct sv_recorder *r, struct sv_err *err);
/* All of the source's round into the meter. */
int sv_recorder_pull(struct sv_recorder *r, struct sv_source *source, struct sv_err *err);

/* Frees what is kept of processes and threads that ended a while ago (record/session/forget.c): the
 * recorder needs memory for running ones only. */
void sv_record_forget(struct sv_recorder *r, int64_t now);
/* The same while records of the spool are decoded: `decoded_ns` is the time of the last one. */
void sv_record_forget_decoded(struct sv_recorder *r, int64_t decoded_ns);

/* What is recorded, into the metadata of the trace, and into the list of `stave status`
 * (record/session/recorded.c). */
void sv_record_describe_parts(struct sv_recorder *r);
void sv_record_publish(struct sv_recorder *r, uint64_t events, uint64_t bytes);

/* The ladder (record/session/ladder.c): opened when it is known whether there is a kernel, `why`
 * there is none; followed processes are watched where there is none. The last look is before the
 * command is waited for. */
bool sv_record_is_python(const struct sv_words *command);
int sv_record_ladder_open(struct sv_recorder *r, const char *why, struct sv_err *err);
/* There is no session: what libraries would send comes from looks. */
void sv_record_ladder_without_libraries(struct sv_recorder *r);
void sv_record_ladder_prepare(struct sv_recorder *r, uint32_t pid); /* before its exec */
void sv_record_ladder_follow(struct sv_recorder *r, uint32_t pid);
int sv_record_ladder_round(struct sv_recorder *r, int64_t now, struct sv_err *err);
int sv_record_ladder_patience_ms(const struct sv_recorder *r, int most_ms); /* up to its look */
void sv_record_ladder_last_look(struct sv_recorder *r);
int sv_record_ladder_finish(struct sv_recorder *r, struct sv_err *err);
void sv_record_ladder_summary(const struct sv_recorder *r);
void sv_record_ladder_close(struct sv_recorder *r);

/* Programs that trace with libstave (record/session/sdk.c). */
/* before the command starts: sets its environment */
void sv_record_sdk_open(struct sv_recorder *r);
int sv_record_sdk_round(struct sv_recorder *r, bool is_last, struct sv_err *err);
void sv_record_sdk_close(struct sv_recorder *r);

/* --detach (record/session/detach.c): forks before anything is made. The parent waits, and returns
 * the exit code. In the one that records, *fd is to be written to when it has begun; it leaves the
 * terminal when it has its output. */
int sv_record_detach(int *fd, bool *is_parent, struct sv_err *err);
int sv_record_leave_terminal(const char *out, int fd, struct sv_err *err);

/* The command (record/session/child.c): it starts stopped and continues with sv_child_begin(). */
int sv_child_start(struct sv_recorder *r, struct sv_err *err);
int sv_child_begin(struct sv_recorder *r, struct sv_err *err);
bool sv_child_look(struct sv_recorder *r); /* has it ended? */
int sv_child_exit_code(const struct sv_recorder *r);

#endif
