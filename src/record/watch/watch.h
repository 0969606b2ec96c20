/* The watcher: states, waits and stacks of threads without any privilege, by looking at /proc at an
 * interval. It makes the same records as the kernel programs (record/bpf/), so the same probes
 * decode them.
 *
 *     sv_watch_new → sv_watch_add(), once for each process to follow → per round:
 *     sv_watch_look(), then the decoder's round → sv_watch_finish() → sv_watch_free()
 *
 * What the kernel counts of a thread (schedstat) is exact: how long it ran and waited for a CPU
 * between two looks. Where in between, and what it waited for, is what the looks show, so all
 * states are marked as inferred. A thread that has not run since the last look costs one read. */
#ifndef SV_RECORD_WATCH_WATCH_H
#define SV_RECORD_WATCH_WATCH_H

#include "record/bpf/stack.h"
#include "record/kernel/krings.h"

struct sv_watch;

struct sv_watch_options {
    const char *root; /* "/proc" but in tests and foreign pid namespaces */
    int64_t every_ns;
    int64_t offcpu_min_ns; /* shorter waits have no stack */
    bool has_states, has_waits, has_samples;
    bool copies_stacks; /* of programs that are not Python: to be unwound */
    bool has_processes; /* starts and exits, too: nobody else sends them */
    /* A library that sends what its process waits for, and forks and programs, exactly: processes
     * that have it are not looked at for these; NULL: none. */
    const char *inside;
};

struct sv_watch_sums {
    uint64_t looks, lost;        /* lost: records that the ring had no room for */
    int64_t spent_ns;            /* CPU time of all looks */
    int64_t every_ns;            /* the interval now */
    uint64_t stacks, unreadable; /* unreadable: of a process that does not let itself be read */
    const char *why_unreadable;  /* of the last one; NULL: none */
    uint32_t threads;            /* that were watched */
};

/* Adds its ring to `rings`. */
struct sv_watch *sv_watch_new(const struct sv_watch_options *options, struct sv_krings *rings);
void sv_watch_free(struct sv_watch *w);

/* The library of options.inside cannot send anything: all processes are looked at. */
void sv_watch_all(struct sv_watch *w);
/* Follows a process, and from then on its children. */
void sv_watch_add(struct sv_watch *w, uint32_t pid);
/* A process runs Python: its frames are read from now on; NULL: it has ended. */
void sv_watch_python(struct sv_watch *w, uint32_t pid, const struct sv_wire_python *offsets);

/* Samples the stacks of a process that is about to execute its program, and of all that it starts,
 * by perf events (perf.c). *why is an error's number where that is not allowed. */
bool sv_watch_can_sample(int *why);
void sv_watch_sample(struct sv_watch *w, uint32_t pid, unsigned hz);

/* Looks at all threads if it is time. True: there are records. */
bool sv_watch_look(struct sv_watch *w, int64_t now_ns);
int64_t sv_watch_next_ns(const struct sv_watch *w); /* when it is time */
/* Looks once more, whatever the time: before a process that has exited is waited for. */
void sv_watch_look_now(struct sv_watch *w, int64_t now_ns);
/* The end of the recording: the sums of all threads that still run. */
void sv_watch_finish(struct sv_watch *w, int64_t now_ns);

struct sv_watch_sums sv_watch_sums(const struct sv_watch *w);

#endif
