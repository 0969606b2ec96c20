/* Enqueued work, from the call to its times (pending.c).
 *
 * Each command's event is kept, retained, in its queue's list until it is complete; then its times
 * are read, the work is recorded and the event released. This happens on the program's own threads:
 * now and then while it enqueues, and where it waits. */
#pragma once

#include "layer.h"

enum cl_work_kind {
    CL_WORK_KERNEL,
    CL_WORK_COPY,
    CL_WORK_MAP, /* a copy on some devices, nothing on others: without bandwidth */
    CL_WORK_FILL,
    CL_WORK_MARK,
    CL_WORK_WAIT
};

enum { CL_WORK_ARGS = 16 };
struct cl_work {
    struct cl_work *next;
    struct cl_queue *queue;
    cl_event event;
    const char *name; /* for ever, or a literal; NULL: by kind */
    enum cl_work_kind kind;
    enum stave_gpu_copy_kind direction;
    int32_t status;
    uint64_t correlation, bytes;
    int64_t before, after; /* the call */
    uint64_t queued, submitted, started, ended;
    uint32_t dims, n_args;
    size_t global[3], local[3];
    uint64_t args[CL_WORK_ARGS];
    uint32_t n_waits; /* events in the wait list */
    bool is_blocking; /* the call returns when the command is complete */
};

/* Around the call. begin: false when nothing is to be recorded and the call is to be made
 * untouched. `w` is the caller's. */
bool cl_work_begin(struct cl_work *w, cl_command_queue queue, const char *call);
/* `event` is the new command's. `is_ours`: the program did not ask for it, so that it is ours to
 * release. */
void cl_work_end(struct cl_work *w, cl_int status, cl_event event, bool is_ours);

/* WAITED: the program has just waited for something on this queue; whatever is complete is recorded
 * when the call returns, since the program may end by _exit at any time. */
enum cl_drain { CL_DRAIN_SOME, CL_DRAIN_ALL, CL_DRAIN_WAITED };
void cl_drain_queue(struct cl_queue *q, enum cl_drain how);
void cl_drain_queues(enum cl_drain how);
void cl_drain_at_exit(void);
/* How many references to the event are ours. */
cl_uint cl_pending_refs(struct cl_queue *q, cl_event event);
void cl_read_timer(struct cl_device_info_of *d); /* where it has one; once a second at most */

/* Record a command whose times are known, or one that has failed (record_work.c). */
void cl_record_work(const struct cl_work *w, const struct cl_clock *clock);
void cl_record_failed(const struct cl_work *w);
