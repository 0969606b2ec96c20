/* The I/O report: who read and wrote what, how fast, in which pattern, and what the application was
 * doing meanwhile.
 *
 *     struct sv_io_report r;
 *     sv_io_report_make(&r, trace);
 *     for (size_t i = 0; i < r.by[SV_IO_FILE].n; i++) … r.by[SV_IO_FILE].groups[i].bytes_read …
 *     sv_io_report_fini(&r);
 *
 * It goes by the conventions of docs/io.md alone, so that recorded and imported traces are treated
 * alike. Calls that are no file I/O (futex, brk …) do not count; those on pipes, sockets and
 * terminals are summed up apart, and so are block requests of processes that the trace does not
 * have. */
#pragma once

#include "core/base/map.h"
#include "store/trace.h"
#include "why/file_kinds.h"

enum sv_io_by { SV_IO_PROCESS, SV_IO_FILE, SV_IO_FOLDER, SV_IO_DEVICE, SV_IO_PEER, SV_N_IO_BY };

enum sv_io_role { SV_ROLE_NONE, SV_ROLE_TRAINER, SV_ROLE_LOADER, SV_ROLE_OTHER };

#define SV_IO_SIZES \
    32 /* sizes of transfers: [0] nothing, [k] from 2^(k-1) to 2^k - 1 bytes, the last one all above */

struct sv_io_latency {
    uint64_t n;
    int64_t total_ns, max_ns;
    double p50_ns, p90_ns, p99_ns;
};

struct sv_io_group {
    sv_str name; /* in the report's own strings; 0: not known */
    sv_track process;
    uint64_t opens; /* of a peer: connections */
    uint64_t reads, writes, syncs, maps, others, errors;
    uint64_t bytes_read, bytes_written;
    uint64_t sequential, random; /* transfers that continue where the one before ended, or do not */
    struct sv_io_latency read, write, all;
    /* The part of sums of short calls, of which only the total and the longest are known. Where
     * there are some the latency has no percentiles: its n is 0. */
    struct sv_io_summed {
        int64_t total_ns, max_ns;
    } summed_read, summed_write, summed;
    uint64_t sizes[SV_IO_SIZES]; /* of reads and writes */
    /* Of a process: the block requests that it caused, pages that had to be read. */
    uint64_t block_reads, block_bytes_read, block_writes, block_bytes_written, cache_misses;
    uint64_t ahead_bytes, created_bytes; /* of those, what nobody had asked for; made by writes */
    uint64_t cache_miss_bytes;           /* that the misses brought; of a file, too */
    /* Page faults on mapped data files, what they mapped, and how long they waited for it. */
    uint64_t faults, fault_bytes;
    int64_t fault_ns;
    enum sv_io_role role;
    char why[160]; /* the role was given */
};

struct sv_io_groups {
    struct sv_io_group *groups; /* the most time first */
    size_t n;
};

/* A step or phase of the application. */
struct sv_io_span {
    uint32_t row;
    sv_str name, cat; /* of the trace */
    int64_t ts_ns, dur_ns;
    /* threads of its own process in I/O, added up; of a phase without process: all of them */
    int64_t own_ns;
    int64_t any_ns; /* at least one thread of the run was in I/O */
    uint64_t opens, reads, writes, bytes_read,
        bytes_written;     /* of all processes, by when they begin */
    uint64_t bytes_missed; /* not in the page cache: read from disk for the run */
    uint64_t bytes_mapped; /* by faults on mapped data files */
};

/* Calls on one kind of descriptor. */
struct sv_io_kind_sum {
    uint64_t calls, bytes_read, bytes_written;
    int64_t time_ns;
};

/* How files are used: a name for it and the figures. */
struct sv_io_verdict {
    const char *name;
    char figures[160];
};
#define SV_IO_VERDICTS 5

struct sv_io_report {
    const struct sv_trace *trace;
    struct sv_dict *strings; /* names of files, folders and devices */
    struct sv_io_groups by[SV_N_IO_BY];
    struct sv_io_group total; /* of system calls */
    struct sv_io_span *spans; /* in the order of time */
    size_t n_spans;
    uint64_t n_block, n_cache_misses, n_calls, n_faults;
    struct sv_io_kind_sum kinds[SV_N_FILE_KINDS];
    bool knows_paths; /* else calls whose file is not known count as I/O, too */
    /* block requests of others: processes that were not recorded, and the kernel's */
    uint64_t n_other_block, other_block_bytes_read, other_block_bytes_written;
    int64_t names_ns, transfer_ns; /* in open, close, stat and their kin; in reads and writes */
    struct sv_io_verdict verdicts[SV_IO_VERDICTS];
    size_t n_verdicts;
    bool has_gpu; /* the trace knows of GPUs */
};

void sv_io_report_make(struct sv_io_report *r, const struct sv_trace *t);
/* Only who there is and which role each has: processes with calls, transfers and bytes, spans
 * without measures. For pictures; much cheaper. */
void sv_io_roles_make(struct sv_io_report *r, const struct sv_trace *t);
void sv_io_report_fini(struct sv_io_report *r);

extern const char
    *const sv_io_by_names[SV_N_IO_BY]; /* "process", "file", "folder", "device", "peer" */
const char *sv_io_role_name(enum sv_io_role role);
/* The share of what was read that no block request brought, 0 … 1; -1: not known. Read-ahead makes
 * it an estimate. */
double sv_io_cached(const struct sv_io_report *r, const struct sv_io_group *g);
/* The share of sequential transfers, -1: none could be compared. */
double sv_io_sequential(const struct sv_io_group *g);

/* ---- the parts, for each other ---- */

enum sv_io_op {
    SV_OP_NONE, /* no I/O */
    SV_OP_OPEN,
    SV_OP_CLOSE,
    SV_OP_READ,
    SV_OP_WRITE,
    SV_OP_SYNC,
    SV_OP_MAP,
    SV_OP_SEEK,
    SV_OP_COPY, /* reads `path` and writes `path2` */
    SV_OP_OTHER /* stat, mkdir, unlink … */
};

enum sv_io_kind {
    SV_IO_NOTHING,
    SV_IO_CALL,
    SV_IO_SUM, /* of short calls (`record --sum-calls`) */
    SV_IO_BLOCK,
    SV_IO_CACHE_MISS,
    SV_IO_CREATED, /* a page that a write made */
    SV_IO_FAULT,
    SV_IO_START,
    SV_IO_SOCKET
};

/* What the names and categories of a trace mean, each looked at once. */
struct sv_io_words {
    const struct sv_trace *trace;
    uint8_t *ops, *kinds; /* by sv_str */
    uint32_t n;
    struct sv_map processes;      /* space, pid → track: uuids are the producer's own */
    sv_str failed, time, longest; /* of a sum */
    sv_str path, path2, fd2, offset2, bytes, offset, errno_, device, sector, pid, fd, ret, count,
        child, readahead, peer, port;
    bool knows_paths; /* a recording: descriptors without path are no files */
};

void sv_io_words_init(struct sv_io_words *w, const struct sv_trace *t);
void sv_io_words_fini(struct sv_io_words *w);
/* Of a call or a sum of calls; else NONE. */
enum sv_io_op sv_io_op_at(const struct sv_io_words *w, uint64_t row);
enum sv_io_kind sv_io_kind_at(const struct sv_io_words *w, uint64_t row);
struct sv_text sv_io_path(const struct sv_io_words *w, uint64_t row);
/* Of a call: does it count as I/O on files? */
bool sv_io_is_on_file(const struct sv_io_words *w, enum sv_file_kind kind);
bool sv_io_is_file(const struct sv_io_words *w, uint64_t row, sv_str key); /* of the path there */
/* An integer argument, `none` when there is none. */
int64_t sv_io_arg(const struct sv_io_words *w, uint64_t row, sv_str key, int64_t none);

/* The process with this number beside `track`, 0: the trace has none. */
sv_track sv_io_process(const struct sv_io_words *w, sv_track track, int64_t pid);

/* A page fault on a mapped file that is no code. */
bool sv_io_is_data_fault(const struct sv_io_words *w, uint64_t row);
/* Libraries, programs, settings: their mappings are no reading of data. */
bool sv_io_is_code(struct sv_text path);
void sv_io_judge(struct sv_io_report *r, const struct sv_io_words *w); /* the verdicts */
void sv_io_list_spans(struct sv_io_report *r, const struct sv_io_words *w);
void sv_io_find_spans(struct sv_io_report *r, const struct sv_io_words *w);
void sv_io_find_roles(struct sv_io_report *r, const struct sv_io_words *w);
