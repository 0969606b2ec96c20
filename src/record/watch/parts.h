/* The watcher from inside: its files share this. */
#ifndef SV_RECORD_WATCH_PARTS_H
#define SV_RECORD_WATCH_PARTS_H

#include "core/base/map.h"
#include "record/bpf/offcpu.h"
#include "record/bpf/process.h"
#include "record/bpf/rivals.h"
#include "record/watch/watch.h"

/* What one look shows of a wait. */
struct sv_watch_wait {
    uint64_t lock, sp, ip;
    uint32_t nr;     /* SV_WIRE_NO_CALL: in none */
    uint32_t file;   /* as in struct sv_wire_wait */
    uint32_t holder; /* the thread that can end it: has the lock, is the child; 0: not known */
};

struct sv_watch_stack {
    size_t bytes; /* of the record */
    _Alignas(8) uint8_t record[];
};

enum { SV_WATCH_FILES = 4 };
enum sv_watch_file { SV_WATCH_SCHED, SV_WATCH_STAT, SV_WATCH_CALL, SV_WATCH_CHAN };

struct sv_watch_thread {
    uint32_t pid, tid, cpu;
    unsigned state; /* enum sv_wire_state; 0: none yet */
    uint32_t looks;
    unsigned postponed; /* looks since the last one that said what it did */
    char name[16];
    uint64_t named_at;       /* the switches that it had when its name was read */
    int fds[SV_WATCH_FILES]; /* -1: not kept open */
    struct sv_wire_sched first, last;
    int64_t looked_ns, state_ns;  /* the last look; since when it is in this state */
    struct sv_watch_wait wait;    /* where the state is one */
    struct sv_watch_stack *stack; /* of the wait; NULL: none */
    bool has_open_state;          /* a record of it was sent, and no end */
    uint64_t python;              /* its state in the interpreter, 0: not looked for */
};

struct sv_watch_process {
    uint32_t pid, parent;
    bool is_known, is_gone, has_python, was_read, is_refused, was_tried;
    bool is_inside; /* it has the library of options.inside */
    uint64_t image; /* of its program and command line: another one after an exec */
    uint32_t n_threads, looks;
    struct sv_wire_python python;
};

enum { SV_WATCH_CPUS = 256 };
struct sv_watch_perf {
    int fd;
    void *at;
};

struct sv_watch {
    struct sv_watch_options options;
    struct {
        uint64_t consumer, producer;
        uint8_t *data;
    } ring;
    struct sv_watch_process *processes;
    size_t n_processes, cap_processes;
    struct sv_map by_pid; /* → index + 1 */
    struct sv_watch_thread *threads;
    size_t n_threads, cap_threads;
    struct sv_map by_tid;
    struct sv_map peers; /* of pipes: see peers.c */
    struct sv_map codes; /* of Python: address and process → mark */
    uint8_t *room;       /* for one record with a stack */
    int64_t next_ns;
    uint64_t random;
    int n_fds, max_fds;
    struct sv_watch_perf perf[SV_WATCH_CPUS];
    unsigned n_perf;
    struct sv_watch_sums sums;
};

enum { SV_WATCH_COPY = 16 << 10 };

/* A record of `size` bytes; counted as lost where the ring is full. */
void sv_watch_put(struct sv_watch *w, const void *record, size_t size);
static inline void sv_watch_head(struct sv_wire_head *h, unsigned kind, uint32_t pid, uint32_t tid,
                                 int64_t ts_ns)
{
    *h = (struct sv_wire_head){
        .kind = (uint16_t)kind, .tgid = pid, .tid = tid, .ts_ns = (uint64_t)ts_ns};
}

struct sv_watch_process *sv_watch_process(const struct sv_watch *w, uint32_t pid);

/* thread.c: one look at a thread. False: it is gone. */
bool sv_watch_thread(struct sv_watch *w, struct sv_watch_thread *x, int64_t now_ns);
/* Its last records: it is gone, or the recording ends. */
void sv_watch_thread_end(struct sv_watch *w, struct sv_watch_thread *x, int64_t now_ns);

/* processes.c: finds children, execs and exits; `is_thorough`: asks every thread for children. */
void sv_watch_find(struct sv_watch *w, int64_t now_ns, bool is_thorough);

/* Sends its name if it is another one. */
void sv_watch_name(struct sv_watch *w, struct sv_watch_thread *x, int64_t now_ns);

/* perf.c: what the software clock has sampled since; true: there are records. */
bool sv_watch_take_samples(struct sv_watch *w);
void sv_watch_sample_close(struct sv_watch *w);

/* peers.c: who can end a wait; 0: not known, or one of several. */
uint32_t sv_watch_child(const struct sv_watch *w, uint32_t pid, uint32_t nr,
                        const uint64_t args[6]);
uint32_t sv_watch_pipe_end(struct sv_watch *w, uint32_t pid, uint64_t inode, bool is_writer);

/* stacks.c: the stack of a thread that waits, kept in x->stack until the wait ends; that of one
 * that runs, sent at once. */
void sv_watch_stack_of_wait(struct sv_watch *w, struct sv_watch_thread *x);
void sv_watch_stack_of_run(struct sv_watch *w, struct sv_watch_thread *x, int64_t now_ns);
/* The thread that runs Python's code now, where `lock` is the interpreter's; 0: not known. */
uint32_t sv_watch_python_holder(const struct sv_watch_process *p, uint64_t lock);
bool sv_watch_read(uint32_t pid, uint64_t at, void *to, size_t size);

#endif
