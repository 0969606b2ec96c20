/* The kernel programs: loading, attaching, processes to follow, losses. The only place that knows
 * libbpf.
 *
 *     sv_kernel_open → sv_kernel_rings → sv_kernel_follow / sv_kernel_enroll → (rounds of the
 *     decoder, sv_kernel_losses) → sv_kernel_close
 *
 * Built without eBPF, sv_kernel_open() says so and everything else is never called. */
#ifndef SV_RECORD_KERNEL_KERNEL_H
#define SV_RECORD_KERNEL_KERNEL_H

#include "core/base/err.h"
#include "record/bpf/stack.h"
#include "record/kernel/krings.h"
#include "record/probes/probe.h"

/* How the programs are attached, from the fastest to the one that needs least. */
enum sv_hooks {
    SV_HOOKS_BEST, /* the first that loads */
    SV_HOOKS_BTF,  /* typed tracepoints, storage of the task: Linux 5.13 */
    SV_HOOKS_RAW,  /* raw tracepoints, tasks by number: Linux 5.8 */
    /* tracepoints by name, which need tracefs and no type information: system calls and processes
     * only */
    SV_HOOKS_PLAIN,
};
extern const char *const sv_hooks_names[]; /* as --hooks has them, NULL-terminated */

struct sv_kernel_options {
    enum sv_hooks hooks;
    unsigned groups;              /* of calls.h; 0: no system calls */
    uint64_t min_latency_ns;      /* shorter calls are left out */
    uint64_t offcpu_min_ns;       /* shorter waits are left out */
    size_t ring_bytes;            /* per CPU, a power of two; 0: the default */
    uint64_t probes[SV_N_PROBES]; /* sv_probes_choose() */
    enum sv_stack_way stacks;     /* a copy only where the kernel can: sv_kernel_stacks() */
    bool follows_all;
    bool samples_little; /* nobody asked for samples: without frames of the kernel */
    /* calls on files outside of it are left out where the kernel can decide; NULL: none */
    const char *prefix;
    const char *comm; /* joins processes that get this name; NULL: none */
    uint64_t cgroup;  /* joins processes that enter the cgroup of this number; 0: none */
};

struct sv_kernel;

bool sv_kernel_is_built(void);
int sv_kernel_open(const struct sv_kernel_options *options, struct sv_kernel **out,
                   struct sv_err *err);
void sv_kernel_close(struct sv_kernel *k);
enum sv_hooks sv_kernel_hooks(const struct sv_kernel *k);
/* Why not the fastest; "" when it is. */
const char *sv_kernel_why_hooks(const struct sv_kernel *k);
/* Tracepoints that this kernel does not have, as words; "" when all are there. */
const char *sv_kernel_missing(const struct sv_kernel *k);

/* How the stacks of processes are taken. */
enum sv_stack_way sv_kernel_stacks(const struct sv_kernel *k);
/* Whether the system call that a thread waits in is known: --offcpu needs it. */
bool sv_kernel_knows_calls(const struct sv_kernel *k);
/* From now on the frames of Python are read in this process and in what it forks; `offsets` NULL:
 * not any more. */
void sv_kernel_python(struct sv_kernel *k, uint32_t pid, const struct sv_wire_python *offsets);

/* The first stack of a process with this program is not urgent: see bpf/stack.h. */
void sv_kernel_knows_program(struct sv_kernel *k, uint64_t inode);

void sv_kernel_rings(const struct sv_kernel *k, struct sv_krings *rings);
int sv_kernel_poll_fd(const struct sv_kernel *k); /* readable when a ring fills */

/* Processes are known by the numbers of the caller's own pid namespace, and so are those in the
 * records.
 *
 * A process that has one thread and no child yet: from now on it and all that it starts. */
int sv_kernel_follow(struct sv_kernel *k, uint32_t pid, struct sv_err *err);
/* Processes that already run, with their threads and all that descends from them. Returns how many
 * threads. */
int sv_kernel_enroll(struct sv_kernel *k, const uint32_t *pids, size_t n, struct sv_err *err);

/* What was lost since the last call, per CPU and kind of record; `report` is called for each that
 * is not 0. */
void sv_kernel_losses(struct sv_kernel *k,
                      void (*report)(void *ctx, unsigned cpu, const char *what, uint64_t n),
                      void *ctx);

/* No more calls begin or end from here on; those that have begun are put into the rings as they are
 * (plain tracepoints do not know them). */
int sv_kernel_in_flight(struct sv_kernel *k, struct sv_err *err);

struct sv_kernel_sums {
    uint64_t lost, not_followed, filtered, foreign;
    uint64_t no_stack;  /* stacks that were left out, all but their innermost frame */
    uint64_t invisible; /* threads that this pid namespace does not show: they were not followed */
};
struct sv_kernel_sums sv_kernel_count(const struct sv_kernel *k);
unsigned sv_kernel_cpus(const struct sv_kernel *k);

/* What can change while the programs run (--budget). */
struct sv_kernel_limits {
    uint64_t call_min_ns, wait_min_ns; /* shorter ones are left out */
    bool has_stacks;                   /* of waits */
};
void sv_kernel_limit(struct sv_kernel *k, const struct sv_kernel_limits *limits);
/* The programs of system calls, which are attached in the beginning. Calls that are under way when
 * they are attached again have no record. */
int sv_kernel_attach_calls(struct sv_kernel *k, bool is_on, struct sv_err *err);
/* Of the sampler, which was attached in the beginning; 0: none for now. */
void sv_kernel_sample(struct sv_kernel *k, unsigned hz);
/* From now on the kernel measures its programs, until `k` is closed; false: it cannot, or may
 * not. */
bool sv_kernel_time_programs(struct sv_kernel *k);
int64_t sv_kernel_run_ns(const struct sv_kernel *k);      /* CPU of all its programs since then */
uint64_t sv_kernel_ring_bytes(const struct sv_kernel *k); /* of a CPU, for all but system calls */

#endif
