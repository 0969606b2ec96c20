/* Loads the kernel programs by libbpf and keeps their maps. Called by the recorder and by `stave
 * doctor`.
 *
 * The programs exist in three forms (bpf/hooks.h), tried from the fastest to the one that needs
 * least, until one loads and attaches.
 *
 * Errors say what to do about them. libbpf's messages are kept only as the detail of an error,
 * never printed. */
#include "record/kernel/kernel.h"

#include "core/files/process_id.h"
#include "record/decode/calls.h"

#include <stdlib.h>

#include <stddef.h>

const char *const sv_hooks_names[] = {"best", "btf", "raw", "tracepoints", NULL};

#ifdef SV_HAVE_EBPF

#include "core/base/mem.h"
#include "io_btf.skel.h"
#include "io_plain.skel.h"
#include "io_raw.skel.h"
#include "record/kernel/tracepoints.h"
#include "record/sample/procfs.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define TYPES "/sys/kernel/btf/vmlinux"

enum {
    RING_BYTES_DEFAULT = 16 << 20,
    RING_BYTES_ALL = 512 << 20, /* of all CPUs, where they are many */
    RING_BYTES_MANY = 2 << 20,  /* at least, of each of many */
    RING_BYTES_SMALLEST = 64 << 10,
    CALL_RING_MOST = 256 << 20,
    CPUS_MAX = 1024,
    PROGRAMS_MAX = 64,
    UNUSED_ENTRIES = 64 /* of a map that no program will use: the kernel clears all */
};
#define NS_PER_S 1000000000ull

struct ring_map {
    int fd;
    bool is_own_fd, is_once;
    void *consumer, *producer; /* pages; the records, twice unless `is_once`, follow the latter */
    uint64_t size;
};

struct hooked {
    struct bpf_program *program;
    struct bpf_link *link;
};

struct sv_kernel {
    struct bpf_object *object;
    enum sv_hooks hooks;
    struct bpf_map *tasks, *outer, *process_ring, *counts, *roots, *pythons;
    struct bpf_map *call_rings; /* NULL: none */
    bool knows_calls;
    enum sv_stack_way stacks;
    struct hooked hooked[PROGRAMS_MAX];
    size_t n_hooked;
    struct sv_wire_shared *shared; /* the programs' own memory, once they are loaded */
    bool has_iterators;            /* programs that the kernel runs for each task */
    bool is_inner;                 /* in a pid namespace that is not the initial one */
    /* One per CPU, that of process starts and exits, and one per CPU for system calls where they
     * have their own (bpf/call_room.h). */
    struct ring_map *rings;
    unsigned n_rings, n_cpus;
    int poll_fd;
    struct bpf_link **clocks;              /* of the sampler, one per CPU */
    int *clock_fds;                        /* theirs; -1: none */
    int stats_fd;                          /* while it is open programs are measured; -1 */
    struct sv_wire_counts *reported, *now; /* per CPU */
    uint64_t reported_missed, n_looks;
    char missing[256];
    char why[256]; /* why not faster hooks */
};

/* libbpf's last complaint. It has one place for all callers, as libbpf has one printer for all. */
static char complaint[256];

__attribute__((format(printf, 2, 0))) static int keep_complaint(enum libbpf_print_level level,
                                                                const char *fmt, va_list args)
{
    char line[256];
    if (level != LIBBPF_WARN)
        return 0;
    vsnprintf(line, sizeof line, fmt, args);
    line[strcspn(line, "\n")] = 0;
    if (line[0] && !complaint[0])
        memcpy(complaint, line, sizeof line);
    return 0;
}

bool sv_kernel_is_built(void)
{
    return true;
}

static bool has_tracefs(void)
{
    return access("/sys/kernel/tracing/events", F_OK) == 0 ||
           access("/sys/kernel/debug/tracing/events", F_OK) == 0;
}

static bool has_btf(void)
{
    return access(TYPES, R_OK) == 0;
}

static int explain(struct sv_err *err, int error, const char *what)
{
    if (error == EPERM || error == EACCES)
        return sv_err_set(
            err, SV_EIO, SV_NO_POS,
            "%s: not permitted; needs root or the capabilities CAP_BPF and CAP_PERFMON", what);
    if (!has_btf())
        return sv_err_set(err, SV_EIO, SV_NO_POS,
                          "%s: the kernel has no type information (/sys/kernel/btf/vmlinux; "
                          "CONFIG_DEBUG_INFO_BTF)",
                          what);
    return sv_err_set(err, SV_EIO, SV_NO_POS, "%s: %s%s%s", what, strerror(error),
                      complaint[0] ? ": " : "", complaint);
}

/* ---- before loading ---- */

static bool is_for(const char *program, const char *prefix)
{
    return strncmp(program, prefix, strlen(prefix)) == 0;
}

/* Whether a tracepoint of this kernel has so many arguments, the first for the kernel itself. Where
 * its types are not understood it is new. */
static bool has_args(const struct sv_tracepoints *t, const char *name, unsigned least,
                     unsigned most)
{
    const struct sv_tracepoint *x = sv_tracepoints_find(t, name);
    return x ? x->n_args >= least && x->n_args <= most : !t->is_known;
}

static bool is_asked_for(const char *program, const struct sv_kernel_options *o)
{
    int probe = sv_probe_of_program(program);
    if (is_for(program, "on_join"))
        return o->cgroup != 0;
    if (is_for(program, "on_waker") || is_for(program, "on_waking") || is_for(program, "on_switch"))
        return o->probes[SV_PROBE_sched] || o->probes[SV_PROBE_offcpu];
    return probe < 0 || o->probes[probe] != 0;
}

static void note_missing(struct sv_kernel *k, const char *what)
{
    size_t n = strlen(k->missing);
    snprintf(k->missing + n, sizeof k->missing - n, "%s%s", n ? " " : "", what);
}

/* What plain tracepoints cannot give. */
static void note_missing_probes(struct sv_kernel *k, const struct sv_kernel_options *o)
{
    for (unsigned i = 0; i < SV_N_PROBES; i++)
        if (o->probes[i] && sv_probes[i]->tracepoint)
            note_missing(k, sv_probes[i]->tracepoint);
}

/* Programs whose tracepoint this kernel lacks are left out, so that the others still load. */
static void choose_programs(struct sv_kernel *k, const struct sv_kernel_options *o,
                            struct sv_wire_config *config)
{
    struct sv_tracepoints there = {0};
    struct bpf_program *p;
    bool is_plain = k->hooks == SV_HOOKS_PLAIN;
    if (!is_plain)
        sv_tracepoints_read(&there, TYPES);
    bpf_object__for_each_program(p, k->object)
    {
        const char *section = bpf_program__section_name(p);
        const char *tracepoint =
            is_for(section, "tp_btf/") || is_for(section, "raw_tp/") ? section + 7 : NULL;
        bool is_wanted = is_asked_for(bpf_program__name(p), o);
        if (is_wanted && there.is_known && tracepoint && !sv_tracepoints_find(&there, tracepoint)) {
            if (strcmp(tracepoint, "mm_filemap_map_pages") != 0) /* older kernels have none */
                note_missing(k, tracepoint);
            is_wanted = false;
        }
        bpf_program__set_autoload(p, is_for(section, "iter/") ? k->has_iterators : is_wanted);
    }
    if (!is_plain && has_btf()) {
        config->complete_has_cqe = has_args(&there, "io_uring_complete", 4, 4);
        config->has_casts = there.has_casts;
        config->switch_has_state = has_args(&there, "sched_switch", 5, UINT32_MAX);
    }
    sv_tracepoints_fini(&there);
}

/* Whether a tracepoint with a name has a field of this name. */
static bool has_field(const char *tracepoint, const char *field)
{
    char path[128], text[4096], word[64];
    snprintf(path, sizeof path, "/sys/kernel/tracing/events/%s/format", tracepoint);
    if (sv_procfs_text(path, text, sizeof text) == 0) {
        snprintf(path, sizeof path, "/sys/kernel/debug/tracing/events/%s/format", tracepoint);
        sv_procfs_text(path, text, sizeof text);
    }
    snprintf(word, sizeof word, " %s;", field);
    return strstr(text, word) != NULL;
}

/* Where pids are not those of the initial namespace the programs translate them. */
static void fill_namespace(struct sv_wire_config *c)
{
    const ino_t initial = 0xeffffffcu; /* the kernel's PROC_PID_INIT_INO */
    struct stat st;
    if (stat("/proc/self/ns/pid", &st) != 0 || st.st_ino == initial)
        return;
    c->pid_namespace = (uint32_t)st.st_ino;
    c->pid_namespace_device = (uint64_t)major(st.st_dev) << 20 | minor(st.st_dev);
}

static void fill_config(const struct sv_kernel *k, const struct sv_kernel_options *o,
                        struct sv_wire_config *c)
{
    sv_calls_plan(k->hooks == SV_HOOKS_PLAIN ? o->groups & ~(unsigned)SV_CALLS_WAITING : o->groups,
                  c->plans);
    c->own_tgid = (uint32_t)getpid();
    fill_namespace(c);
    int64_t mono_ns, boot_ns;
    if (sv_times_offsets(&mono_ns, &boot_ns))
        c->boot_offset_ns = (uint64_t)boot_ns;
    c->follow_all = o->follows_all;
    c->join_cgroup = o->cgroup;
    c->has_states = o->probes[SV_PROBE_sched] != 0;
    c->has_rivals = o->probes[SV_PROBE_rivals] != 0;
    c->exit_has_last = k->hooks == SV_HOOKS_PLAIN &&
                       has_field("sched/sched_process_exit", "group_dead");
    if (o->comm)
        snprintf(c->join_comm, sizeof c->join_comm, "%s", o->comm);
    if (o->prefix && k->hooks != SV_HOOKS_PLAIN) { /* which knows no files */
        snprintf(c->path_prefix, sizeof c->path_prefix, "%s", o->prefix);
        c->path_prefix_len = (uint32_t)strlen(c->path_prefix);
    }
}

/* The probes whose records have a stack. */
static bool wants_stacks(const struct sv_kernel_options *o)
{
    return o->probes[SV_PROBE_sample] != 0 || o->probes[SV_PROBE_offcpu] != 0;
}

/* The registers of a task: needs typed hooks and a helper of Linux 5.15. */
static bool can_read_registers(const struct sv_kernel *k)
{
#if defined(__x86_64__)
    return k->hooks == SV_HOOKS_BTF &&
           libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, BPF_FUNC_task_pt_regs, NULL) == 1;
#else
    (void)k;
    return false;
#endif
}

static enum sv_stack_way stacks_here(const struct sv_kernel *k, const struct sv_kernel_options *o)
{
    bool can_copy = k->knows_calls && o->stacks == SV_STACK_COPY && wants_stacks(o);
    return o->stacks == SV_STACK_COPY && !can_copy ? SV_STACK_FP : o->stacks;
}

static struct bpf_map *map_named(const struct sv_kernel *k, const char *name)
{
    return bpf_object__find_map_by_name(k->object, name);
}

static void set_entries(const struct sv_kernel *k, const char *name, uint32_t n)
{
    struct bpf_map *map = map_named(k, name);
    if (map)
        bpf_map__set_max_entries(map, n);
}

/* What no program uses is not made. */
static void leave_out_maps(const struct sv_kernel *k, const struct sv_kernel_options *o)
{
    static const char *const of_stacks[] = {"stack_rooms", "python_rooms", "python_codes",
                                            "pythons"};
    for (unsigned i = 0; i < sizeof of_stacks / sizeof *of_stacks; i++) {
        struct bpf_map *m = wants_stacks(o) ? NULL : map_named(k, of_stacks[i]);
        if (m)
            bpf_map__set_autocreate(m, false);
    }
}

/* 16 MiB for each of up to 32 CPUs: a quarter of a second of the worst case, system calls and
 * nothing else. The recorder is one thread, so that more rings fill more slowly. */
static uint64_t ring_bytes(const struct sv_kernel *k, const struct sv_kernel_options *o)
{
    uint64_t size = o->ring_bytes ? o->ring_bytes : RING_BYTES_ALL / k->n_cpus;
    if (!o->ring_bytes && size > RING_BYTES_DEFAULT)
        size = RING_BYTES_DEFAULT;
    if (!o->ring_bytes && size < RING_BYTES_MANY)
        size = RING_BYTES_MANY;
    uint64_t power = RING_BYTES_SMALLEST;
    while (power < size)
        power *= 2;
    return power;
}

/* The kernel lets programs compute offsets of half a GiB at most. */
static uint64_t call_bytes(const struct sv_kernel *k, const struct sv_kernel_options *o)
{
    uint64_t size = o->groups ? ring_bytes(k, o) : SV_WIRE_CALL_RING_LEAST;
    return size < CALL_RING_MOST ? size : CALL_RING_MOST;
}

/* Of the common rings: where system calls have their own, what is left is half, and little unless
 * the scheduler is recorded. */
static uint64_t common_bytes(const struct sv_kernel *k, const struct sv_kernel_options *o)
{
    uint64_t size = ring_bytes(k, o);
    if (!k->call_rings || !o->groups)
        return size;
    size /= o->probes[SV_PROBE_sched] || wants_stacks(o) ? 2 : 4;
    return size < RING_BYTES_SMALLEST ? RING_BYTES_SMALLEST : size;
}

static int plan_rings(struct sv_kernel *k, uint64_t bytes, uint64_t call_bytes, struct sv_err *err)
{
    k->n_rings = k->n_cpus + 1 + (k->call_rings ? k->n_cpus : 0);
    k->rings = sv_alloc(k->n_rings * sizeof *k->rings);
    for (unsigned i = 0; i < k->n_rings; i++)
        k->rings[i] = (struct ring_map){.fd = -1, .size = i < k->n_cpus ? bytes : call_bytes};
    k->rings[k->n_cpus].size = bpf_map__max_entries(k->process_ring);
    if (k->call_rings &&
        (bpf_map__set_max_entries(k->call_rings, k->n_cpus) != 0 ||
         bpf_map__set_value_size(k->call_rings,
                                 (uint32_t)(sizeof(struct sv_wire_call_ring) + call_bytes)) != 0))
        return sv_err_set(err, SV_ELIMIT, SV_NO_POS, "the kernel programs are not this stave's");
    return 0;
}

static int prepare(struct sv_kernel *k, const struct sv_kernel_options *o, struct sv_err *err)
{
    struct sv_wire_config config = {0};
    struct bpf_map *constants = map_named(k, ".rodata.config");
    k->tasks = map_named(k, "tasks");
    k->outer = map_named(k, "rings");
    k->process_ring = map_named(k, "process_ring");
    k->counts = map_named(k, "counts");
    k->roots = map_named(k, "roots");
    k->pythons = map_named(k, "pythons");
    k->has_iterators = k->hooks != SV_HOOKS_PLAIN && has_btf();
    choose_programs(k, o, &config);
    if (k->hooks == SV_HOOKS_PLAIN)
        note_missing_probes(k, o);
    fill_config(k, o, &config);
    leave_out_maps(k, o);
    k->knows_calls = (wants_stacks(o) || o->probes[SV_PROBE_sched]) && can_read_registers(k);
    config.knows_calls = k->knows_calls;
    config.has_waits = k->knows_calls && o->probes[SV_PROBE_offcpu];
    k->stacks = stacks_here(k, o);
    config.stack_way = (uint8_t)k->stacks;
    config.has_python = k->pythons && wants_stacks(o);
    config.user_samples = o->samples_little;
    k->is_inner = config.pid_namespace != 0;
    if (k->is_inner && k->hooks == SV_HOOKS_RAW && !k->has_iterators)
        return sv_error(err, SV_EIO,
                        "raw tracepoints find no processes in a container without "
                        "/sys/kernel/btf/vmlinux (mount /sys)");
    int cpus = libbpf_num_possible_cpus();
    if (cpus < 1)
        return sv_error(err, SV_EIO,
                        "/sys/devices/system/cpu/possible cannot be read (mount /sys)");
    if (cpus > CPUS_MAX)
        return sv_err_set(err, SV_ELIMIT, SV_NO_POS, "%d CPUs are more than %d", cpus, CPUS_MAX);
    k->n_cpus = (unsigned)cpus;
    k->call_rings = map_named(k, "call_rings");
    config.n_cpus = k->n_cpus;
    config.wake_bytes = common_bytes(k, o) / 4;
    config.call_ring_bytes = call_bytes(k, o);
    if (!k->tasks || !k->outer || !k->process_ring || !k->counts || !constants ||
        bpf_map__set_initial_value(constants, &config, sizeof config) != 0)
        return sv_err_set(err, SV_ELIMIT, SV_NO_POS, "the kernel programs are not this stave's");
    bpf_map__set_max_entries(k->outer, k->n_cpus);
    if (config.path_prefix_len == 0)
        set_entries(k, "outside", UNUSED_ENTRIES);
    if (o->probes[SV_PROBE_block] == 0)
        set_entries(k, "requests", UNUSED_ENTRIES);
    if (!o->probes[SV_PROBE_rivals])
        set_entries(k, "rivals_of", UNUSED_ENTRIES);
    set_entries(k, "turns", k->n_cpus);
    set_entries(k, "stack_rooms", k->n_cpus * STACK_ROOMS);
    return plan_rings(k, common_bytes(k, o), config.call_ring_bytes, err);
}

/* ---- after loading ---- */

/* The producer's page and the records, as they are mapped. */
static size_t records_bytes(const struct ring_map *r, size_t page)
{
    return page + (r->is_once ? 1 : 2) * r->size;
}

/* The command has no use for the rings: less for its fork to copy and for its execve to undo. */
static void keep_from_children(const struct ring_map *r, size_t page)
{
    madvise(r->producer, records_bytes(r, page), MADV_DONTFORK);
}

/* NULL: not possible. */
static void *mapped(size_t bytes, int prot, int fd, off_t at)
{
    void *p = mmap(NULL, bytes, prot, MAP_SHARED, fd, at);
    return p == MAP_FAILED ? NULL : p;
}

static int map_ring(struct sv_kernel *k, struct ring_map *r, struct sv_err *err)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct epoll_event event = {.events = EPOLLIN};
    r->consumer = mapped(page, PROT_READ | PROT_WRITE, r->fd, 0);
    if (r->consumer)
        r->producer = mapped(page + 2 * r->size, PROT_READ, r->fd, (off_t)page);
    if (!r->producer || epoll_ctl(k->poll_fd, EPOLL_CTL_ADD, r->fd, &event) != 0)
        return sv_err_sys(err, "cannot map a ring buffer");
    keep_from_children(r, page);
    return 0;
}

/* Mapped once: its records do not go over the end. */
static int map_call_ring(struct sv_kernel *k, unsigned cpu, struct sv_err *err)
{
    struct ring_map *r = &k->rings[k->n_cpus + 1 + cpu];
    const size_t page = offsetof(struct sv_wire_call_ring, producer);
    const off_t at = (off_t)(cpu * (sizeof(struct sv_wire_call_ring) + r->size));
    r->fd = bpf_map__fd(k->call_rings);
    r->consumer = mapped(page, PROT_READ | PROT_WRITE, r->fd, at);
    r->producer = mapped(page + r->size, PROT_READ, r->fd, at + (off_t)page);
    if (!r->consumer || !r->producer)
        return sv_err_sys(err, "cannot map a ring buffer");
    r->is_once = true;
    keep_from_children(r, page);
    return 0;
}

/* All at once: after each update by itself the kernel waits until no program uses what was there
 * before, some milliseconds. */
static int use_rings(const struct sv_kernel *k)
{
    uint32_t n = k->n_cpus, *numbers = sv_alloc(n * sizeof *numbers);
    int *fds = sv_alloc(n * sizeof *fds), outer = bpf_map__fd(k->outer);
    for (uint32_t i = 0; i < n; i++) {
        numbers[i] = i;
        fds[i] = k->rings[i].fd;
    }
    int rc = bpf_map_update_batch(outer, numbers, fds, &n, NULL);
    for (uint32_t i = 0; rc != 0 && i < k->n_cpus; i++) { /* before Linux 5.14 */
        if (bpf_map_update_elem(outer, &i, &fds[i], BPF_ANY) != 0)
            break;
        rc = i + 1 < k->n_cpus ? rc : 0;
    }
    free(numbers);
    free(fds);
    return rc;
}

static int make_rings(struct sv_kernel *k, struct sv_err *err)
{
    k->poll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (k->poll_fd < 0)
        return sv_err_sys(err, "cannot make an epoll descriptor");
    for (uint32_t i = 0; i < k->n_cpus; i++) {
        struct ring_map *r = &k->rings[i];
        r->fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "ring", 0, 0, (uint32_t)r->size, NULL);
        if (r->fd < 0)
            return explain(err, errno, "cannot make a ring buffer");
        r->is_own_fd = true;
    }
    k->rings[k->n_cpus].fd = bpf_map__fd(k->process_ring);
    int code = 0;
    for (unsigned i = 0; code >= 0 && i <= k->n_cpus; i++)
        code = map_ring(k, &k->rings[i], err);
    for (unsigned i = 0; code >= 0 && k->call_rings && i < k->n_cpus; i++)
        code = map_call_ring(k, i, err);
    return code;
}

static struct bpf_program *program_named(const struct sv_kernel *k, const char *name)
{
    return bpf_object__find_program_by_name(k->object, name);
}

static struct bpf_link **link_of(struct sv_kernel *k, const char *name)
{
    static struct bpf_link *none;
    for (size_t i = 0; i < k->n_hooked; i++)
        if (strcmp(bpf_program__name(k->hooked[i].program), name) == 0)
            return &k->hooked[i].link;
    return &none;
}

static int attach_programs(struct sv_kernel *k, struct sv_err *err)
{
    struct bpf_program *p;
    bpf_object__for_each_program(p, k->object)
    {
        if (!bpf_program__autoload(p) || is_for(bpf_program__section_name(p), "perf_event"))
            continue;
        struct bpf_link *link = k->n_hooked < PROGRAMS_MAX ? bpf_program__attach(p) : NULL;
        if (!link && k->hooks == SV_HOOKS_PLAIN && !has_tracefs())
            return sv_err_set(err, SV_EIO, SV_NO_POS,
                              "cannot attach by plain tracepoints: tracefs is not mounted (mount "
                              "-t tracefs none /sys/kernel/tracing)");
        if (!link)
            return explain(err, errno, "cannot attach the kernel programs");
        k->hooked[k->n_hooked++] = (struct hooked){p, link};
    }
    return 0;
}

/* The kernel waits some milliseconds until no program uses what was there before: the programs are
 * attached meanwhile. They follow nothing yet. */
struct beside {
    const struct sv_kernel *k;
    int error;
};

static void *use_rings_beside(void *of)
{
    struct beside *b = of;
    b->error = use_rings(b->k) == 0 ? 0 : errno ? errno : EIO;
    return NULL;
}

static int attach_all(struct sv_kernel *k, struct sv_err *err)
{
    struct beside b = {.k = k};
    pthread_t thread;
    bool is_beside = pthread_create(&thread, NULL, use_rings_beside, &b) == 0;
    if (!is_beside)
        use_rings_beside(&b);
    int code = attach_programs(k, err);
    if (is_beside)
        pthread_join(thread, NULL);
    if (code >= 0 && b.error != 0)
        code = explain(err, b.error, "cannot use a ring buffer");
    return code;
}

/* A clock per CPU that is online; the program checks whether a followed task runs on it. */
static int attach_sampler(struct sv_kernel *k, unsigned hz, struct sv_err *err)
{
    struct perf_event_attr a = {.size = sizeof a,
                                .type = PERF_TYPE_SOFTWARE,
                                .config = PERF_COUNT_SW_CPU_CLOCK,
                                .sample_period = NS_PER_S / hz};
    unsigned n = 0;
    k->clocks = sv_alloc(k->n_cpus * sizeof(struct bpf_link *));
    k->clock_fds = sv_alloc(k->n_cpus * sizeof *k->clock_fds);
    for (unsigned cpu = 0; cpu < k->n_cpus; cpu++) {
        int fd = (int)syscall(SYS_perf_event_open, &a, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
        k->clock_fds[cpu] = fd;
        if (fd < 0 && errno == ENODEV)
            continue;
        if (fd < 0)
            return explain(err, errno, "--sample: cannot open a clock");
        k->clocks[cpu] = bpf_program__attach_perf_event(program_named(k, "on_sample"), fd);
        if (!k->clocks[cpu]) {
            int saved = errno;
            close(fd);
            return explain(err, saved, "--sample: cannot attach to a clock");
        }
        n++;
    }
    return n ? 0 : sv_err_set(err, SV_EIO, SV_NO_POS, "--sample: no CPU has a clock");
}

static struct bpf_object *open_object(enum sv_hooks hooks)
{
    size_t size = 0;
    const void *bytes = hooks == SV_HOOKS_BTF   ? io_btf_bpf__elf_bytes(&size)
                        : hooks == SV_HOOKS_RAW ? io_raw_bpf__elf_bytes(&size)
                                                : io_plain_bpf__elf_bytes(&size);
    struct bpf_object_open_opts opts = {.sz = sizeof opts, .object_name = "stave"};
    return bpf_object__open_mem(bytes, size, &opts);
}

static int share_memory(struct sv_kernel *k, const struct sv_kernel_options *o, struct sv_err *err)
{
    const struct bpf_map *bss = map_named(k, ".bss");
    if (!bss || bpf_map__value_size(bss) < sizeof *k->shared)
        return sv_err_set(err, SV_ELIMIT, SV_NO_POS, "the kernel programs are not this stave's");
    k->shared = mapped(sizeof *k->shared, PROT_READ | PROT_WRITE, bpf_map__fd(bss), 0);
    if (!k->shared)
        return sv_err_sys(err, "cannot share memory with the kernel programs");
    k->shared->call_period = 1;
    k->shared->call_min_ns = o->min_latency_ns;
    k->shared->wait_min_ns = o->offcpu_min_ns;
    if (o->follows_all)
        memset(k->shared->stacks, 1, sizeof k->shared->stacks);
    return 0;
}

static int load(struct sv_kernel *k, const struct sv_kernel_options *options, struct sv_err *err)
{
    complaint[0] = 0;
    k->object = open_object(k->hooks);
    int code = k->object ? prepare(k, options, err)
                         : explain(err, errno, "cannot open the kernel programs");
    if (code >= 0) {
        int rc = bpf_object__load(k->object);
        if (rc != 0)
            code = explain(err, -rc, "cannot load the kernel programs");
    }
    if (code >= 0)
        code = share_memory(k, options, err);
    if (code >= 0)
        code = make_rings(k, err);
    if (code >= 0)
        code = attach_all(k, err);
    if (code >= 0 && options->probes[SV_PROBE_sample])
        code = attach_sampler(k, (unsigned)options->probes[SV_PROBE_sample], err);
    return code;
}

int sv_kernel_open(const struct sv_kernel_options *options, struct sv_kernel **out,
                   struct sv_err *err)
{
    struct sv_err first = {0}, why = {0};
    bool is_chosen = options->hooks != SV_HOOKS_BEST;
    int code = SV_EIO;
    *out = NULL;
    libbpf_set_print(keep_complaint);
    for (enum sv_hooks h = is_chosen ? options->hooks : SV_HOOKS_BTF;
         h <= (is_chosen ? options->hooks : SV_HOOKS_PLAIN); h++) {
        struct sv_kernel *k = sv_alloc(sizeof *k);
        k->hooks = h;
        k->poll_fd = k->stats_fd = -1;
        why = (struct sv_err){0};
        code = load(k, options, &why);
        if (code >= 0) {
            k->reported = sv_alloc(k->n_cpus * sizeof *k->reported);
            k->now = sv_alloc(k->n_cpus * sizeof *k->now);
            snprintf(k->why, sizeof k->why, "%.255s", first.msg);
            *out = k;
            return 0;
        }
        sv_kernel_close(k);
        if (first.code == SV_OK)
            first = why;
    }
    *err = first; /* what the fastest way lacks is what to fix */
    return code;
}

void sv_kernel_close(struct sv_kernel *k)
{
    if (!k)
        return;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (unsigned i = 0; i < k->n_rings; i++) {
        struct ring_map *r = &k->rings[i];
        if (r->consumer)
            munmap(r->consumer, page);
        if (r->producer)
            munmap(r->producer, records_bytes(r, page));
        if (r->is_own_fd)
            close(r->fd);
    }
    for (unsigned i = 0; k->clocks && i < k->n_cpus; i++)
        bpf_link__destroy(k->clocks[i]);
    free(k->clocks);
    free(k->clock_fds);
    if (k->stats_fd >= 0)
        close(k->stats_fd);
    if (k->poll_fd >= 0)
        close(k->poll_fd);
    for (size_t i = 0; i < k->n_hooked; i++)
        bpf_link__destroy(k->hooked[i].link);
    if (k->shared)
        munmap(k->shared, sizeof *k->shared);
    bpf_object__close(k->object);
    free(k->rings);
    free(k->reported);
    free(k->now);
    free(k);
}

enum sv_hooks sv_kernel_hooks(const struct sv_kernel *k)
{
    return k->hooks;
}

const char *sv_kernel_why_hooks(const struct sv_kernel *k)
{
    return k->why;
}

const char *sv_kernel_missing(const struct sv_kernel *k)
{
    return k->missing;
}

void sv_kernel_rings(const struct sv_kernel *k, struct sv_krings *rings)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (unsigned i = 0; i < k->n_rings; i++) {
        const struct ring_map *r = &k->rings[i];
        sv_krings_add(rings, r->consumer, r->producer, (const uint8_t *)r->producer + page, r->size,
                      r->is_once);
    }
}

bool sv_kernel_knows_calls(const struct sv_kernel *k)
{
    return k->knows_calls;
}

enum sv_stack_way sv_kernel_stacks(const struct sv_kernel *k)
{
    return k->stacks;
}

void sv_kernel_python(struct sv_kernel *k, uint32_t pid, const struct sv_wire_python *offsets)
{
    if (k->pythons && !offsets)
        bpf_map_delete_elem(bpf_map__fd(k->pythons), &pid);
    else if (k->pythons) /* a full map: its frames stay native */
        bpf_map_update_elem(bpf_map__fd(k->pythons), &pid, offsets, BPF_ANY);
}

void sv_kernel_knows_program(struct sv_kernel *k, uint64_t inode)
{
    k->shared->programs[inode & (SV_WIRE_PROGRAMS - 1)] = 1;
}

int sv_kernel_poll_fd(const struct sv_kernel *k)
{
    return k->poll_fd;
}

unsigned sv_kernel_cpus(const struct sv_kernel *k)
{
    return k->n_cpus;
}

uint64_t sv_kernel_ring_bytes(const struct sv_kernel *k)
{
    return k->rings[0].size;
}

/* ---- processes to follow ---- */

/* Where tasks cannot be walked over. In a pid namespace of its own their numbers are not the
 * kernel's: they are found by their first call. 1: it was not followed before. */
static int follow_number(struct sv_kernel *k, uint32_t pid, uint32_t tid, struct sv_err *err)
{
    const struct sv_wire_task state = {.tgid = pid, .tid = tid};
    const uint8_t one = 1;
    if (bpf_map__value_size(k->tasks) != sizeof state)
        return sv_err_set(err, SV_ELIMIT, SV_NO_POS, "the kernel programs are not this stave's");
    const void *value = k->is_inner ? (const void *)&one : &state;
    int map = bpf_map__fd(k->is_inner ? k->roots : k->tasks);
    if (bpf_map_update_elem(map, &tid, value, BPF_NOEXIST) == 0)
        return 1;
    return errno == EEXIST ? 0 : explain(err, errno, "cannot follow the process");
}

int sv_kernel_follow(struct sv_kernel *k, uint32_t pid, struct sv_err *err)
{
    int n = k->has_iterators ? sv_kernel_enroll(k, &pid, 1, err) : follow_number(k, pid, pid, err);
    if (n == 0)
        return sv_err_set(err, SV_EIO, SV_NO_POS, "cannot find process %u", pid);
    return n < 0 ? n : 0;
}

static int walk_tasks(const struct bpf_link *link, struct sv_err *err)
{
    char bytes[64];
    int fd = link ? bpf_iter_create(bpf_link__fd(link)) : -1;
    if (fd < 0)
        return explain(err, link ? errno : ENOTSUP, "cannot walk over the processes");
    while (read(fd, bytes, sizeof bytes) > 0)
        continue;
    close(fd);
    return 0;
}

/* The same by /proc: every thread of the families, until no new one is found. */
static int enroll_by_procfs(struct sv_kernel *k, const uint32_t *pids, size_t n, struct sv_err *err)
{
    int found = 0, before;
    do {
        before = found;
        for (size_t i = 0; i < n; i++) {
            uint32_t *family = NULL, *threads = NULL;
            size_t n_family = sv_procfs_family(pids[i], &family);
            for (size_t f = 0; f < n_family; f++) {
                size_t n_threads = sv_procfs_threads(family[f], &threads);
                int code = 0;
                for (size_t t = 0; code >= 0 && t < n_threads; t++, found += code)
                    code = follow_number(k, family[f], threads[t], err);
                free(threads);
                if (code < 0) {
                    free(family);
                    return code;
                }
            }
            free(family);
        }
    } while (found != before);
    return found;
}

int sv_kernel_enroll(struct sv_kernel *k, const uint32_t *pids, size_t n, struct sv_err *err)
{
    uint8_t one = 1;
    int code = 0;
    if (!k->has_iterators)
        return enroll_by_procfs(k, pids, n, err);
    for (size_t i = 0; i < n; i++)
        if (bpf_map_update_elem(bpf_map__fd(k->roots), &pids[i], &one, BPF_ANY) != 0)
            return explain(err, errno, "cannot follow the processes");
    volatile uint32_t *n_enrolled = &k->shared->n_enrolled;
    uint32_t before;
    *n_enrolled = 0;
    do { /* a process may start before its parent is followed: until a walk finds no new one */
        before = *n_enrolled;
        code = walk_tasks(*link_of(k, "enroll"), err);
    } while (code >= 0 && *n_enrolled != before);
    return code < 0 ? code : (int)*n_enrolled;
}

static void detach(struct sv_kernel *k, const char *program)
{
    struct bpf_link **link = link_of(k, program);
    bpf_link__destroy(*link);
    *link = NULL;
}

int sv_kernel_in_flight(struct sv_kernel *k, struct sv_err *err)
{
    /* In this order: else a call that begins when exits are no longer recorded would be found. */
    detach(k, "on_enter");
    detach(k, "on_exit");
    if (!k->has_iterators)
        return 0; /* tasks cannot be walked over */
    *(volatile uint32_t *)&k->shared->is_ending = 1;
    int code = walk_tasks(*link_of(k, "in_flight"), err);
    return code < 0 ? code : walk_tasks(*link_of(k, "sum_up"), err);
}

/* ---- changes while it runs ---- */

/* All zeros for a program that is not loaded. */
static struct bpf_prog_info info_of(const struct bpf_program *program)
{
    struct bpf_prog_info info = {0};
    uint32_t size = sizeof info;
    int fd = bpf_program__fd(program);
    if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &size) != 0)
        return (struct bpf_prog_info){0};
    return info;
}

void sv_kernel_limit(struct sv_kernel *k, const struct sv_kernel_limits *limits)
{
    volatile struct sv_wire_shared *s = k->shared;
    s->call_min_ns = limits->call_min_ns;
    s->wait_min_ns = limits->wait_min_ns;
    s->has_no_stacks = !limits->has_stacks;
}

/* Each call keeps the period in which it began: one that ended while the programs were away is
 * neither taken for a later one nor for one that has not ended. */
int sv_kernel_attach_calls(struct sv_kernel *k, bool is_on, struct sv_err *err)
{
    static const char *const programs[] = {"on_exit", "on_enter"};
    volatile uint32_t *period = &k->shared->call_period;
    ++*period;
    for (size_t i = 0; i < 2; i++) {
        struct bpf_link **link = link_of(k, programs[i]);
        if (!is_on)
            detach(k, programs[i]);
        else if (!*link && !(*link = bpf_program__attach(program_named(k, programs[i]))))
            return explain(err, errno, "cannot attach the programs of system calls again");
    }
    *period += !is_on;
    return 0;
}

/* A clock that is disabled costs nothing. */
void sv_kernel_sample(struct sv_kernel *k, unsigned hz)
{
    uint64_t period = hz ? NS_PER_S / hz : 0;
    for (unsigned cpu = 0; k->clocks && cpu < k->n_cpus; cpu++) {
        int fd = k->clocks[cpu] ? k->clock_fds[cpu] : -1;
        if (fd < 0)
            continue;
        ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
        if (hz && ioctl(fd, PERF_EVENT_IOC_PERIOD, &period) == 0)
            ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
    }
}

bool sv_kernel_time_programs(struct sv_kernel *k)
{
    if (k->stats_fd < 0)
        k->stats_fd = bpf_enable_stats(BPF_STATS_RUN_TIME);
    return k->stats_fd >= 0;
}

int64_t sv_kernel_run_ns(const struct sv_kernel *k)
{
    uint64_t n = 0;
    struct bpf_program *p;
    bpf_object__for_each_program(p, k->object)
    {
        n += info_of(p).run_time_ns;
    }
    return (int64_t)n;
}

/* ---- losses ---- */

static bool read_counts(const struct sv_kernel *k)
{
    uint32_t zero = 0;
    return bpf_map_lookup_elem(bpf_map__fd(k->counts), &zero, k->now) == 0;
}

/* Runs that the kernel left out because the program was already running on that CPU: an interrupt
 * may complete a block request while the record of another one is written. */
static uint64_t missed_runs(const struct sv_kernel *k)
{
    uint64_t n = 0;
    for (size_t i = 0; i < k->n_hooked; i++)
        n += info_of(k->hooked[i].program).recursion_misses;
    return n;
}

void sv_kernel_losses(struct sv_kernel *k,
                      void (*report)(void *ctx, unsigned cpu, const char *what, uint64_t n),
                      void *ctx)
{
    if (!read_counts(k))
        return;
    for (unsigned cpu = 0; cpu < k->n_cpus; cpu++) {
        struct sv_wire_counts *now = &k->now[cpu], *reported = &k->reported[cpu];
        for (unsigned kind = 1; kind < SV_WIRE_KINDS; kind++)
            if (now->lost[kind] != reported->lost[kind])
                report(ctx, cpu, sv_probe_lost_name(kind), now->lost[kind] - reported->lost[kind]);
        if (now->not_followed != reported->not_followed)
            report(ctx, cpu, "children not followed", now->not_followed - reported->not_followed);
        *reported = *now;
    }
    /* A system call for each program: not in every round, but in the last ones. */
    if (k->n_looks++ % 10 != 0 && !(k->shared && k->shared->is_ending))
        return;
    uint64_t missed = missed_runs(k);
    if (missed != k->reported_missed)
        report(ctx, 0, "records while a program ran", missed - k->reported_missed);
    k->reported_missed = missed;
}

struct sv_kernel_sums sv_kernel_count(const struct sv_kernel *k)
{
    struct sv_kernel_sums s = {.lost = missed_runs(k)};
    if (!read_counts(k))
        return s;
    for (unsigned cpu = 0; cpu < k->n_cpus; cpu++) {
        const struct sv_wire_counts *c = &k->now[cpu];
        for (unsigned kind = 1; kind < SV_WIRE_KINDS; kind++)
            s.lost += c->lost[kind];
        s.not_followed += c->not_followed;
        s.no_stack += c->no_stack;
        s.lost += c->not_followed;
        s.filtered += c->filtered;
        s.foreign += c->foreign;
        s.invisible += c->invisible;
    }
    return s;
}

#endif
