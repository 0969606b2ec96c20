/* The GPU report: what devices did, when they did nothing and why, and what of it belongs together.
 *
 *     struct sv_gpu_report r;
 *     sv_gpu_report_make(&r, trace, NULL);
 *     for (size_t i = 0; i < r.n_devices; i++) … r.devices[i].busy_ns …
 *     sv_gpu_report_fini(&r);
 *
 * It uses only the vocabulary of core/stream/gpu_words.h, independent of the tool that recorded the
 * work. A device is a number in one machine's (one rank's) numbers: what several processes do on it
 * is added up. */
#ifndef SV_SUBJECTS_GPU_FIGURES_H
#define SV_SUBJECTS_GPU_FIGURES_H

#include "core/stream/gpu_words.h"
#include "store/trace.h"
#include "why/launch.h"
#include "why/ledger.h"
#include "why/spans.h"
#include "why/steps.h"

enum sv_gpu_kind { SV_GPU_COMPUTES, SV_GPU_COPIES, SV_GPU_TALKS, SV_N_GPU_KINDS };

/* clang-format off */
/* GAP(member, name, meaning): what an idle device waited for. Until the next work is launched: what
 * the launching thread did, by the ledger (why/ledger.h). */
#define SV_GPU_GAP_CAUSES(GAP)                                                     \
    GAP(LAUNCH, "launch", "the host ran and had not launched the next work")       \
    GAP(SYNC, "sync", "the host waited for the device before it launched more")    \
    GAP(DATA, "data", "the host loaded data before it launched more")              \
    GAP(LOCK, "lock", "the host waited for a lock before it launched more")        \
    GAP(DISK, "disk", "the host was in calls on files before it launched more")    \
    GAP(CPU, "cpu", "the host waited for a CPU before it launched more")           \
    GAP(COMM, "comm", "the host waited for other ranks before it launched more")   \
    GAP(WAIT, "wait", "the host waited for something else before it launched more") \
    GAP(COPY, "copy", "launched, with a copy before it or a copy itself")          \
    GAP(DEVICE, "device", "launched, but not started: dependencies, or the device") \
    GAP(UNKNOWN, "unknown", "the launch of the next work is unknown")
/* clang-format on */
enum sv_gpu_gap {
#define SV_GAP_MEMBER(member, name, meaning) SV_GAP_##member,
    SV_GPU_GAP_CAUSES(SV_GAP_MEMBER)
#undef SV_GAP_MEMBER
        SV_N_GAPS
};
extern const char *const sv_gpu_gap_names[SV_N_GAPS];
extern const char *const sv_gpu_gap_reasons[SV_N_GAPS];

/* Percentiles of a set of durations. */
struct sv_gpu_times {
    uint64_t n;
    int64_t total_ns, max_ns;
    double p50_ns, p99_ns;
};

/* Parts of gaps with one cause. */
struct sv_gpu_gaps {
    uint64_t n; /* gaps that have such a part */
    int64_t total_ns, max_ns;
};

struct sv_gpu_memory {
    uint64_t allocations, releases, unknown_releases;
    int64_t live_bytes, peak_bytes, peak_at_ns;
    uint64_t live; /* never released */
};

struct sv_gpu_device {
    int64_t number; /* -1: not known */
    uint32_t space;
    sv_track track; /* of its first work, or of the device itself */
    sv_str name;    /* 0: none */
    int64_t rank;   /* of its streams; -1: not known, or of several */
    struct sv_spans sets[SV_N_GPU_KINDS], busy;
    uint64_t n_kernels, n_copies, n_sets;
    int64_t first_ns, last_ns, busy_ns, kinds_ns[SV_N_GPU_KINDS];
    /* of all kernels, added up: over the time of computing it is the concurrency */
    int64_t kernels_ns;
    unsigned concurrency_max;                 /* pieces of work at once */
    int64_t copy_overlap_ns, talk_overlap_ns; /* with computing */
    struct sv_gpu_gaps gaps[SV_N_GAPS];
    struct sv_spans idle[SV_N_GAPS]; /* the same, as times; the row is the work that ends the gap */
    struct sv_span longest_gap;      /* whole, whatever its causes */
    size_t first_gap, end_gap;       /* units of the report's ledger */
    struct sv_gpu_times latency;     /* from the launch's begin to the work's */
    unsigned queue_max;              /* launched, not begun */
    double queue_mean;
    struct sv_gpu_memory memory;
};

struct sv_gpu_stream {
    size_t device;
    int64_t number; /* -1: not known */
    sv_track track, process;
    struct sv_spans sets[SV_N_GPU_KINDS], busy;
    uint64_t n;
    int64_t busy_ns, first_ns, last_ns;
};

struct sv_gpu_group {
    sv_str name; /* of a kernel */
    enum sv_gpu_direction direction;
    bool is_set;
    uint64_t bytes;
    struct sv_gpu_times times;
};

struct sv_gpu_step {
    const struct sv_step *step;
    int64_t compute_ns, talk_ns, copy_ns; /* each without what those before it cover */
    /* no device busy, and the step's thread at work (it runs, copies, is in calls on files), or
     * waiting: sums over the ledger */
    int64_t host_ns, idle_ns;
    unsigned waits_for; /* most of idle_ns; SV_N_WHY_CLASSES: nothing */
};

/* Allocations that nobody released. */
struct sv_gpu_leak {
    uint32_t row;
    uint64_t address;
    int64_t bytes;
    size_t device;
};

/* What a device's memory held from then on. */
struct sv_gpu_level {
    int64_t ts_ns, bytes;
    size_t device;
};

/* How long a device was busy, of the time that counters say something about. */
struct sv_gpu_use {
    int64_t known_ns, busy_ns;
};

/* A device by a counter of its utilisation, or what a process did on it (pmon). */
struct sv_gpu_sampled {
    int64_t number;
    sv_track track, process; /* process 0: all of them */
    uint32_t space;
    sv_str name; /* 0: none */
    uint64_t n;  /* values */
    struct sv_gpu_use use;
};

struct sv_gpu_report {
    const struct sv_trace *trace;
    struct sv_ledger gaps; /* its units: each gap until the work that ends it was launched */
    struct sv_gpu_sampled *sampled;
    size_t n_sampled;
    struct sv_gpu_device *devices;
    struct sv_gpu_stream *streams;
    struct sv_gpu_group *kernels, *copies; /* the most time first */
    struct sv_gpu_leak *leaks;             /* the largest first */
    struct sv_gpu_level *levels;           /* in the order of time */
    struct sv_steps steps;
    struct sv_gpu_step *by_step;
    size_t n_devices, n_streams, n_kernels, n_copies, n_leaks, n_levels;
    uint64_t n_work, n_calls;
    uint64_t without_launch; /* work whose launch is not known */
    uint64_t without_work;   /* launches that no work belongs to */
    uint64_t before_launch;  /* work that begins before its launch: clocks that do not fit */
    uint64_t unfinished;     /* work that never ended */
};

/* steps: the marker of steps, NULL: what is usual. */
void sv_gpu_report_make(struct sv_gpu_report *r, const struct sv_trace *t, const char *steps);
void sv_gpu_report_fini(struct sv_gpu_report *r);

/* ---- the parts, for each other ---- */

struct sv_gpu_making {
    struct sv_gpu_report *r;
    const struct sv_trace *t;
    struct sv_gpu_words words;
    struct sv_launches launches;
    uint8_t *by_cat;                /* enum sv_gpu_class, by string */
    uint8_t *by_name;               /* kinds of work (steps.h), by string */
    struct sv_map devices, streams; /* hash of who it is → index */
    size_t cap_devices, cap_streams;
};

size_t sv_gpu_device_at(struct sv_gpu_making *m, uint32_t row);
int64_t sv_gpu_number_at(const struct sv_gpu_making *m, uint64_t row, const sv_str *keys, size_t n);
void sv_gpu_find_gaps(struct sv_gpu_making *m);
void sv_gpu_find_memory(struct sv_gpu_making *m);
void sv_gpu_find_sampled(struct sv_gpu_report *r);
/* Of all devices of the step's machine, added up. */
struct sv_gpu_use sv_gpu_use_in_step(const struct sv_gpu_report *r, const struct sv_step *s);
void sv_gpu_divide_steps(struct sv_gpu_making *m, const char *marker);

#endif
