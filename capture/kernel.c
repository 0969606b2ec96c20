/* Loads the kernel programs by libbpf and keeps their maps. Called by the recorder and by `stave doctor`.
 *
 * Errors are told with what to do about them. libbpf's own words are kept only as the detail of an error, never printed. */
#include "capture/kernel.h"
#include "capture/calls.h"

#include <stdlib.h>

#ifndef SV_HAVE_EBPF

bool sv_kernel_is_built(void)
{
    return false;
}

int sv_kernel_open(const struct sv_kernel_options *options, struct sv_kernel **out,
                   struct sv_err *err)
{
    (void)options;
    *out = NULL;
    return sv_err_set(
        err, SV_EUSAGE, SV_NO_POS,
        "this stave was built without eBPF (clang, libbpf-dev and bpftool at build time)");
}

void sv_kernel_close(struct sv_kernel *k)
{
    (void)k;
}

const char *sv_kernel_missing(const struct sv_kernel *k)
{
    (void)k;
    return "";
}

void sv_kernel_rings(const struct sv_kernel *k, struct sv_krings *rings)
{
    (void)k;
    (void)rings;
}

int sv_kernel_poll_fd(const struct sv_kernel *k)
{
    (void)k;
    return -1;
}

int sv_kernel_follow(struct sv_kernel *k, uint32_t pid, struct sv_err *err)
{
    (void)k;
    (void)pid;
    return sv_err_set(err, SV_EUSAGE, SV_NO_POS, "built without eBPF");
}

int sv_kernel_enroll(struct sv_kernel *k, const uint32_t *pids, size_t n, struct sv_err *err)
{
    (void)pids;
    (void)n;
    return sv_kernel_follow(k, 0, err);
}

void sv_kernel_losses(struct sv_kernel *k,
                      void (*tell)(void *ctx, unsigned cpu, const char *what, uint64_t n),
                      void *ctx)
{
    (void)k;
    (void)tell;
    (void)ctx;
}

int sv_kernel_in_flight(struct sv_kernel *k, struct sv_err *err)
{
    return sv_kernel_follow(k, 0, err);
}

struct sv_kernel_sums sv_kernel_count(const struct sv_kernel *k)
{
    (void)k;
    return (struct sv_kernel_sums){0};
}

unsigned sv_kernel_cpus(const struct sv_kernel *k)
{
    (void)k;
    return 0;
}

#else

#include "base/mem.h"
#include "io.skel.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { RING_BYTES_DEFAULT = 16 << 20, RING_BYTES_SMALLEST = 64 << 10, CPUS_MAX = 1024 };

struct ring_map {
    int fd;
    void *consumer, *producer;
    uint64_t size;
};

struct sv_kernel {
    struct io_bpf *skel;
    struct ring_map *rings; /* one per CPU, and that of births and deaths last */
    unsigned n_rings, n_cpus;
    int poll_fd;
    struct bpf_link **clocks;          /* of the sampler, one per CPU */
    struct sv_wire_counts *told, *now; /* per CPU */
    uint64_t told_missed;
    char missing[256];
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

static int explain(struct sv_err *err, int error, const char *what)
{
    if (error == EPERM || error == EACCES)
        return sv_err_set(
            err, SV_EIO, SV_NO_POS,
            "%s: not permitted; needs root or the capabilities CAP_BPF and CAP_PERFMON", what);
    if (access("/sys/kernel/btf/vmlinux", R_OK) != 0)
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

/* How many arguments a tracepoint of this kernel has, the first for the kernel itself; 0: it has no such one. */
static unsigned n_arguments(const struct btf *btf, const char *name)
{
    int id = btf__find_by_name_kind(btf, name, BTF_KIND_TYPEDEF);
    const struct btf_type *t = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
    t = t ? btf__type_by_id(btf, t->type) : NULL; /* a pointer to … */
    t = t && btf_is_ptr(t) ? btf__type_by_id(btf, t->type) : NULL;
    return t && btf_is_func_proto(t) ? btf_vlen(t) : 0;
}

/* Programs whose tracepoint this kernel lacks are left out, so that the others still load. */
static void choose_programs(struct sv_kernel *k, const struct sv_kernel_options *o)
{
    struct btf *btf = btf__load_vmlinux_btf();
    struct bpf_program *p;
    bpf_object__for_each_program(p, k->skel->obj)
    {
        const char *section = bpf_program__section_name(p);
        bool is_wanted = true;
        char type[96];
        if (is_for(bpf_program__name(p), "on_block"))
            is_wanted = o->has_blocks;
        if (is_for(bpf_program__name(p), "on_cache"))
            is_wanted = o->has_cache;
        if (is_for(bpf_program__name(p), "on_sched"))
            is_wanted = o->has_sched;
        if (is_for(bpf_program__name(p), "on_sample"))
            is_wanted = o->sample_hz > 0;
        if (is_for(bpf_program__name(p), "on_join"))
            is_wanted = o->cgroup != 0;
        if (is_for(bpf_program__name(p), "on_uring"))
            is_wanted = o->groups & SV_CALLS_URING;
        if (is_wanted && btf && is_for(section, "tp_btf/")) {
            snprintf(type, sizeof type, "btf_trace_%s", section + 7);
            if (btf__find_by_name_kind(btf, type, BTF_KIND_TYPEDEF) < 0) {
                size_t n = strlen(k->missing);
                snprintf(k->missing + n, sizeof k->missing - n, "%s%s", n ? " " : "", section + 7);
                is_wanted = false;
            }
        }
        bpf_program__set_autoload(p, is_wanted);
    }
    k->skel->rodata->complete_brings_cqe = btf &&
                                           n_arguments(btf, "btf_trace_io_uring_complete") == 4;
    k->skel->rodata->switch_tells_state = btf && n_arguments(btf, "btf_trace_sched_switch") > 4;
    btf__free(btf);
}

static int prepare(struct sv_kernel *k, const struct sv_kernel_options *o, struct sv_err *err)
{
    _Static_assert(sizeof k->skel->rodata->plans == SV_WIRE_CALLS_MAX * sizeof(struct sv_wire_plan),
                   "the same plan on both sides");
    choose_programs(k, o);
    sv_calls_plan(o->groups, (struct sv_wire_plan *)k->skel->rodata->plans);
    k->skel->rodata->min_latency_ns = o->min_latency_ns;
    k->skel->rodata->own_tgid = (uint32_t)getpid();
    k->skel->rodata->follow_all = o->follows_all;
    k->skel->rodata->join_cgroup = o->cgroup;
    if (o->comm)
        snprintf((char *)k->skel->rodata->join_comm, sizeof k->skel->rodata->join_comm, "%s",
                 o->comm);
    if (o->prefix) {
        snprintf((char *)k->skel->rodata->path_prefix, sizeof k->skel->rodata->path_prefix, "%s",
                 o->prefix);
        k->skel->rodata->path_prefix_len = (uint32_t)strlen((char *)k->skel->rodata->path_prefix);
    }
    size_t size = o->ring_bytes ? o->ring_bytes : RING_BYTES_DEFAULT;
    size_t power = RING_BYTES_SMALLEST;
    while (power < size)
        power *= 2;
    k->skel->rodata->wake_bytes = power / 4;
    int cpus = libbpf_num_possible_cpus();
    if (cpus < 1 || cpus > CPUS_MAX)
        return sv_err_set(err, SV_ELIMIT, SV_NO_POS, "%d CPUs are more than %d", cpus, CPUS_MAX);
    k->n_cpus = (unsigned)cpus;
    bpf_map__set_max_entries(k->skel->maps.rings, k->n_cpus);
    k->rings = sv_alloc((k->n_cpus + 1) * sizeof *k->rings);
    for (unsigned i = 0; i < k->n_cpus; i++)
        k->rings[i] = (struct ring_map){.fd = -1, .size = power};
    k->rings[k->n_cpus] =
        (struct ring_map){.fd = -1, .size = bpf_map__max_entries(k->skel->maps.lives)};
    k->n_rings = k->n_cpus + 1;
    return 0;
}

/* ---- after loading ---- */

static int map_ring(struct sv_kernel *k, struct ring_map *r, struct sv_err *err)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct epoll_event event = {.events = EPOLLIN};
    r->consumer = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
    if (r->consumer == MAP_FAILED)
        r->consumer = NULL;
    else
        r->producer = mmap(NULL, page + 2 * r->size, PROT_READ, MAP_SHARED, r->fd, (off_t)page);
    if (r->producer == MAP_FAILED)
        r->producer = NULL;
    if (!r->producer || epoll_ctl(k->poll_fd, EPOLL_CTL_ADD, r->fd, &event) != 0)
        return sv_err_sys(err, "cannot map a ring buffer");
    return 0;
}

static int make_rings(struct sv_kernel *k, struct sv_err *err)
{
    int outer = bpf_map__fd(k->skel->maps.rings);
    k->poll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (k->poll_fd < 0)
        return sv_err_sys(err, "cannot make an epoll descriptor");
    for (uint32_t i = 0; i < k->n_cpus; i++) {
        struct ring_map *r = &k->rings[i];
        r->fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "ring", 0, 0, (uint32_t)r->size, NULL);
        if (r->fd < 0)
            return explain(err, errno, "cannot make a ring buffer");
        if (bpf_map_update_elem(outer, &i, &r->fd, BPF_ANY) != 0)
            return explain(err, errno, "cannot use a ring buffer");
    }
    k->rings[k->n_cpus].fd = bpf_map__fd(k->skel->maps.lives);
    int code = 0;
    for (unsigned i = 0; code >= 0 && i < k->n_rings; i++)
        code = map_ring(k, &k->rings[i], err);
    return code;
}

/* A clock per CPU that is there; the program looks whether somebody followed runs on it. */
static int attach_sampler(struct sv_kernel *k, unsigned hz, struct sv_err *err)
{
    struct perf_event_attr a = {.size = sizeof a,
                                .type = PERF_TYPE_SOFTWARE,
                                .config = PERF_COUNT_SW_CPU_CLOCK,
                                .freq = 1,
                                .sample_freq = hz};
    unsigned n = 0;
    k->clocks = sv_alloc(k->n_cpus * sizeof(struct bpf_link *));
    for (unsigned cpu = 0; cpu < k->n_cpus; cpu++) {
        int fd = (int)syscall(SYS_perf_event_open, &a, -1, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
        if (fd < 0 && errno == ENODEV)
            continue;
        if (fd < 0)
            return explain(err, errno, "--sample: cannot open a clock");
        k->clocks[cpu] = bpf_program__attach_perf_event(k->skel->progs.on_sample, fd);
        if (!k->clocks[cpu]) {
            int saved = errno;
            close(fd);
            return explain(err, saved, "--sample: cannot attach to a clock");
        }
        n++;
    }
    return n ? 0 : sv_err_set(err, SV_EIO, SV_NO_POS, "--sample: no CPU has a clock");
}

int sv_kernel_open(const struct sv_kernel_options *options, struct sv_kernel **out,
                   struct sv_err *err)
{
    struct sv_kernel *k = sv_alloc(sizeof *k);
    *out = NULL;
    k->poll_fd = -1;
    complaint[0] = 0;
    libbpf_set_print(keep_complaint);
    k->skel = io_bpf__open();
    int code = k->skel ? prepare(k, options, err)
                       : explain(err, errno, "cannot open the kernel programs");
    if (code >= 0) {
        int rc = io_bpf__load(k->skel);
        if (rc != 0)
            code = explain(err, -rc, "cannot load the kernel programs");
    }
    if (code >= 0)
        code = make_rings(k, err);
    if (code >= 0) {
        int rc = io_bpf__attach(k->skel);
        if (rc != 0)
            code = explain(err, -rc, "cannot attach the kernel programs");
    }
    if (code >= 0 && options->sample_hz)
        code = attach_sampler(k, options->sample_hz, err);
    if (code < 0) {
        sv_kernel_close(k);
        return code;
    }
    k->told = sv_alloc(k->n_cpus * sizeof *k->told);
    k->now = sv_alloc(k->n_cpus * sizeof *k->now);
    *out = k;
    return 0;
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
            munmap(r->producer, page + 2 * r->size);
        if (r->fd >= 0 && i < k->n_cpus)
            close(r->fd);
    }
    for (unsigned i = 0; k->clocks && i < k->n_cpus; i++)
        bpf_link__destroy(k->clocks[i]);
    free(k->clocks);
    if (k->poll_fd >= 0)
        close(k->poll_fd);
    io_bpf__destroy(k->skel);
    free(k->rings);
    free(k->told);
    free(k->now);
    free(k);
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
        sv_krings_add(rings, r->consumer, r->producer, (const uint8_t *)r->producer + page,
                      r->size);
    }
}

int sv_kernel_poll_fd(const struct sv_kernel *k)
{
    return k->poll_fd;
}

unsigned sv_kernel_cpus(const struct sv_kernel *k)
{
    return k->n_cpus;
}

/* ---- whom to follow ---- */

int sv_kernel_follow(struct sv_kernel *k, uint32_t pid, struct sv_err *err)
{
    uint64_t state[16] = {0};
    if (bpf_map__value_size(k->skel->maps.tasks) > sizeof state)
        return sv_err_set(err, SV_ELIMIT, SV_NO_POS, "the state of a task has outgrown its room");
    int fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);
    if (fd < 0)
        return sv_err_sys(err, "cannot find process %u", pid);
    int rc = bpf_map_update_elem(bpf_map__fd(k->skel->maps.tasks), &fd, state, BPF_ANY);
    int saved = errno;
    close(fd);
    return rc == 0 ? 0 : explain(err, saved, "cannot follow the process");
}

static int walk_tasks(const struct bpf_link *link, struct sv_err *err)
{
    char bytes[64];
    int fd = link ? bpf_iter_create(bpf_link__fd(link)) : -1;
    if (fd < 0)
        return explain(err, errno, "cannot walk over the processes");
    while (read(fd, bytes, sizeof bytes) > 0)
        continue;
    close(fd);
    return 0;
}

int sv_kernel_enroll(struct sv_kernel *k, const uint32_t *pids, size_t n, struct sv_err *err)
{
    uint8_t one = 1;
    int code = 0;
    for (size_t i = 0; i < n; i++)
        if (bpf_map_update_elem(bpf_map__fd(k->skel->maps.roots), &pids[i], &one, BPF_ANY) != 0)
            return explain(err, errno, "cannot follow the processes");
    uint32_t before;
    k->skel->bss->n_enrolled = 0;
    do { /* until a walk finds nobody who was born before its parent was followed */
        before = k->skel->bss->n_enrolled;
        code = walk_tasks(k->skel->links.enroll, err);
    } while (code >= 0 && k->skel->bss->n_enrolled != before);
    return code < 0 ? code : (int)k->skel->bss->n_enrolled;
}

int sv_kernel_in_flight(struct sv_kernel *k, struct sv_err *err)
{
    bpf_link__destroy(k->skel->links.on_exit);
    k->skel->links.on_exit = NULL;
    return walk_tasks(k->skel->links.in_flight, err);
}

/* ---- losses ---- */

static bool read_counts(const struct sv_kernel *k)
{
    uint32_t zero = 0;
    return bpf_map_lookup_elem(bpf_map__fd(k->skel->maps.counts), &zero, k->now) == 0;
}

/* Runs that the kernel left out because the program was already running on that CPU. */
static uint64_t missed_runs(const struct sv_kernel *k)
{
    uint64_t n = 0;
    const struct bpf_program *const programs[] = {k->skel->progs.on_enter, k->skel->progs.on_exit};
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        struct bpf_prog_info info = {0};
        uint32_t size = sizeof info;
        int fd = bpf_program__fd(programs[i]);
        if (fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &size) == 0)
            n += info.recursion_misses;
    }
    return n;
}

void sv_kernel_losses(struct sv_kernel *k,
                      void (*tell)(void *ctx, unsigned cpu, const char *what, uint64_t n),
                      void *ctx)
{
    static const char *const names[SV_WIRE_KINDS] = {[SV_WIRE_CALL] = "system calls",
                                                     [SV_WIRE_FORK] = "forks",
                                                     [SV_WIRE_EXEC] = "execs",
                                                     [SV_WIRE_EXIT] = "exits",
                                                     [SV_WIRE_NAME] = "thread names",
                                                     [SV_WIRE_BLOCK] = "block requests",
                                                     [SV_WIRE_CACHE] = "page cache events",
                                                     [SV_WIRE_STATE] = "thread states",
                                                     [SV_WIRE_SAMPLE] = "stack samples",
                                                     [SV_WIRE_URING] = "io_uring requests",
                                                     [SV_WIRE_FAULT] = "page faults"};
    if (!read_counts(k))
        return;
    for (unsigned cpu = 0; cpu < k->n_cpus; cpu++) {
        struct sv_wire_counts *now = &k->now[cpu], *told = &k->told[cpu];
        for (unsigned kind = 1; kind < SV_WIRE_KINDS; kind++)
            if (now->lost[kind] != told->lost[kind])
                tell(ctx, cpu, names[kind], now->lost[kind] - told->lost[kind]);
        if (now->not_followed != told->not_followed)
            tell(ctx, cpu, "children not followed", now->not_followed - told->not_followed);
        *told = *now;
    }
    uint64_t missed = missed_runs(k);
    if (missed != k->told_missed)
        tell(ctx, 0, "calls while the program ran", missed - k->told_missed);
    k->told_missed = missed;
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
        s.lost += c->not_followed;
        s.filtered += c->filtered;
        s.foreign += c->foreign;
    }
    return s;
}

#endif
