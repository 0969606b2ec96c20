/* The kernel's side of `stave record`: system calls of the followed processes, their births, names and deaths, block requests.
 *
 * Loaded by record/kernel/kernel.c, which fills `config` first. Compiled three times, see hooks.h. A task is followed when it has a value in `tasks`;
 * children of followed tasks are followed. A call is noted at its entry and told at its exit, in one record; what finds no room in the ring of its CPU is counted. */
#if !defined(SV_HOOKS_PLAIN)
#include "kernel_types.h"
#endif
#include "records.h"

#include <linux/bpf.h>
#include <stdbool.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile struct sv_wire_config config SEC(".rodata.config") = {};

struct sv_wire_shared shared = {};

#include "hooks.h"

struct ring {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 1 << 20);
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
    __uint(max_entries, 1); /* one per CPU, set by the loader */
    __type(key, __u32);
    __array(values, struct ring);
} rings SEC(".maps");

/* Births and deaths have a ring of their own, so that a flood of calls cannot push them out. */
struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4 << 20);
} lives SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct sv_wire_counts);
} counts SEC(".maps");

struct long_call {
    struct sv_wire_call call;
    char text[2 * SV_WIRE_PATH_MAX];
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct long_call);
} scratch SEC(".maps");

static __always_inline struct sv_wire_counts *my_counts(void)
{
    __u32 zero = 0;
    return bpf_map_lookup_elem(&counts, &zero);
}

/* Only losses are counted here: what was kept is counted by whoever reads it. */
static __always_inline void count(unsigned kind, bool is_kept)
{
    if (is_kept || kind >= SV_WIRE_KINDS)
        return;
    struct sv_wire_counts *c = my_counts();
    if (c)
        c->lost[kind]++;
}

/* The reader looks every few milliseconds; it is woken only when a ring fills faster than that, once per crossing of the mark. */
static __always_inline __u64 wake_flags(void *ring, __u64 size)
{
    __u64 waiting = bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA);
    return waiting >= config.wake_bytes && waiting < config.wake_bytes + 2 * size + 16
               ? BPF_RB_FORCE_WAKEUP
               : BPF_RB_NO_WAKEUP;
}

static __always_inline void *my_ring(void)
{
    __u32 cpu = bpf_get_smp_processor_id();
    return bpf_map_lookup_elem(&rings, &cpu);
}

#include "following.h"

static __always_inline void fill_head(struct sv_wire_head *h, unsigned kind, __u32 what,
                                      struct numbers who)
{
    h->kind = (__u16)kind;
    h->flags = 0;
    h->tgid = who.tgid;
    h->tid = who.tid;
    h->what = what;
    h->ts_ns = bpf_ktime_get_boot_ns();
}

static __always_inline void put(void *ring, void *record, __u64 size, unsigned kind)
{
    count(kind, bpf_ringbuf_output(ring, record, size, wake_flags(ring, size)) == 0);
}

#include "starts.h"

/* ---- system calls ---- */

/* What sys_enter and sys_exit bring, whatever they are attached by. */
#if defined(SV_HOOKS_PLAIN)

struct enter_context {
    __u64 common;
    long id;
    unsigned long args[6];
};

struct exit_context {
    __u64 common;
    long id, ret;
};

#define ENTERS           SEC("tracepoint/raw_syscalls/sys_enter")
#define EXITS            SEC("tracepoint/raw_syscalls/sys_exit")
#define NUMBER_OF_EXIT() ((unsigned long)ctx->id)
#define RESULT_OF_EXIT() (ctx->ret)
#define REGISTERS()      0

static __always_inline bool is_foreign(const struct enter_context *ctx)
{
    (void)ctx; /* not told */
    return false;
}

static __always_inline void save_args(struct sv_wire_task *s, const struct enter_context *ctx)
{
    for (int i = 0; i < 6; i++)
        s->args[i] = ctx->args[i];
}

#if defined(__TARGET_ARCH_x86)
enum { ENDS_PROCESS = 231 }; /* exit_group */
#else
enum { ENDS_PROCESS = 94 };
#endif

/* Its argument is the exit code, which no tracepoint tells. */
static __always_inline void note_end(struct sv_wire_task *s, const struct enter_context *ctx)
{
    if (s && ctx->id == ENDS_PROCESS) {
        s->nr = ENDS_PROCESS;
        s->args[0] = ctx->args[0];
    }
}

#else

struct enter_context {
    struct pt_regs *regs;
    long id;
};

struct exit_context {
    struct pt_regs *regs;
    long ret;
};

#define ENTERS           TRACEPOINT(sys_enter)
#define EXITS            TRACEPOINT(sys_exit)
#define NUMBER_OF_EXIT() number_of(ctx->regs)
#define RESULT_OF_EXIT() (ctx->ret)
#define REGISTERS()      (ctx->regs)

static __always_inline void save_args(struct sv_wire_task *s, const struct enter_context *ctx)
{
    struct pt_regs *regs = ctx->regs;
#if defined(__TARGET_ARCH_x86)
    s->args[0] = GET(regs, di);
    s->args[1] = GET(regs, si);
    s->args[2] = GET(regs, dx);
    s->args[3] = GET(regs, r10);
    s->args[4] = GET(regs, r8);
    s->args[5] = GET(regs, r9);
#else
    for (int i = 0; i < 6; i++)
        s->args[i] = GET(regs, regs[i]);
#endif
}

static __always_inline bool is_foreign(const struct enter_context *ctx)
{
#if defined(__TARGET_ARCH_x86)
    struct pt_regs *regs = ctx->regs;
    return GET(regs, cs) == 0x23; /* 32-bit code: other numbers, other arguments */
#else
    (void)ctx;
    return false;
#endif
}

static __always_inline void note_end(struct sv_wire_task *s, const struct enter_context *ctx)
{
    (void)s; /* the task tells it */
    (void)ctx;
}

static __always_inline __u64 number_of(struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
    return GET(regs, orig_ax);
#else
    return (__u64)(long)GET(regs, syscallno);
#endif
}

#endif

#if KNOWS_KERNEL

static __always_inline struct file *file_of(__s32 fd)
{
    struct task_struct *task = current_task();
    struct files_struct *files = GET(task, files);
    struct file **table, *file = 0;
    if (!files)
        return 0;
    struct fdtable *fdt = GET(files, fdt);
    if (!fdt || (__u32)fd >= GET(fdt, max_fds))
        return 0;
    table = GET(fdt, fd);
    if (bpf_probe_read_kernel(&file, sizeof file, table + (__u32)fd) != 0)
        return 0;
    return file;
}

/* Where the descriptor's file stands after the transfer. */
static __always_inline __s64 position(__s32 fd)
{
    struct file *file = file_of(fd);
    long long pos = -1;
    if (!file || BPF_CORE_READ_INTO(&pos, file, f_pos) != 0)
        return -1;
    return pos;
}

/* Only where threads share descriptors: otherwise nobody can change one under a call. */
static __always_inline __u64 inode_of(__s32 fd)
{
    struct task_struct *task = current_task();
    struct files_struct *files = GET(task, files);
    if (!files || GET(files, count.counter) < 2)
        return 0;
    struct file *file = file_of(fd);
    return file ? BPF_CORE_READ(file, f_inode, i_ino) : 0;
}

#else

static __always_inline void *file_of(__s32 fd)
{
    (void)fd;
    return 0;
}

static __always_inline __s64 position(__s32 fd)
{
    (void)fd;
    return -1;
}

static __always_inline __u64 inode_of(__s32 fd)
{
    (void)fd;
    return 0;
}

#endif

#include "elsewhere.h"

/* What a descriptor is can only be asked now: when the call ends another thread may have closed it, and opened something else. */
static __always_inline void note_descriptor(struct sv_wire_task *s,
                                            const volatile struct sv_wire_plan *p)
{
    s->inode = 0;
    s->is_elsewhere = 0;
    if (p->fd == SV_WIRE_NONE || p->path != SV_WIRE_NONE)
        return;
    __s32 fd = (__s32)s->args[p->fd & 7];
    s->inode = inode_of(fd);
    s->is_elsewhere = is_elsewhere_fd(fd, p);
}

/* The first look is a function of its own, which needs no registers to be saved: it answers for most calls of most processes. */
static __noinline int enter(struct enter_context *ctx)
{
    unsigned long id = (unsigned long)ctx->id;
    struct sv_wire_task *s = state_at_entry();
    note_end(s, ctx);
    if (!s || id >= SV_WIRE_CALLS_MAX || !config.plans[id].wants)
        return 0;
    if (is_foreign(ctx)) {
        struct sv_wire_counts *c = my_counts();
        if (c)
            c->foreign++;
        return 0;
    }
    save_args(s, ctx);
    s->nr = (__u32)id;
    s->is_open = 1;
    s->start_ns = bpf_ktime_get_boot_ns();
    note_descriptor(s,
                    &config.plans[id]); /* last: as close as can be to what the call itself sees */
    return 0;
}

ENTERS
int on_enter(struct enter_context *ctx)
{
    return is_nobody(REGISTERS()) ? 0 : enter(ctx);
}

struct buffer {
    __u64 at, size;
};

/* What the buffers of a vector hold together. Vectors longer than any in use are not added up. */
static __noinline __u64 vector_bytes(__u64 at, __u64 n)
{
    enum { VECTOR_MAX = 256 };
    __u32 zero = 0;
    __u64 sum = 0;
    struct long_call *c = bpf_map_lookup_elem(&scratch, &zero);
    if (!c || n > VECTOR_MAX)
        return ~0ull;
    struct buffer *all = (struct buffer *)c->text;
    if (bpf_probe_read_user(all, (__u32)n * sizeof *all, (void *)at) != 0)
        return ~0ull;
    for (__u32 i = 0; i < VECTOR_MAX && i < n; i++)
        sum += all[i].size;
    return sum;
}

static __always_inline void fill_call(struct sv_wire_call *c, const struct sv_wire_task *s,
                                      const volatile struct sv_wire_plan *p, long ret, __u64 now)
{
    c->head.kind = SV_WIRE_CALL;
    c->head.flags = 0;
    c->head.tgid = s->tgid;
    c->head.tid = s->tid;
    c->head.what = s->nr;
    c->head.ts_ns = now;
    c->start_ns = s->start_ns;
    c->ret = ret;
    c->fd = p->fd == SV_WIRE_NONE ? -1 : (__s32)s->args[p->fd & 7];
    c->aux = p->aux == SV_WIRE_NONE ? 0 : (__u32)s->args[p->aux & 7];
    c->size = p->size == SV_WIRE_NONE ? 0 : s->args[p->size & 7];
    c->offset = p->offset == SV_WIRE_NONE ? -1 : (__s64)s->args[p->offset & 7];
    if (p->wants & SV_WIRE_POSITION && ret >= 0) {
        __s64 after = position(c->fd);
        c->offset = after >= ret ? after - ret : -1;
    }
    c->inode = s->inode;
    if (p->wants & SV_WIRE_RETURNS_FD && ret >= 0)
        c->inode = inode_of((__s32)ret);
}

/* A path is read at the exit: the kernel itself has read it by then, so its page is there. */
static __always_inline void call_with_path(const struct sv_wire_task *s,
                                           const volatile struct sv_wire_plan *p, long ret,
                                           __u64 now, bool is_state_only)
{
    __u32 zero = 0;
    struct long_call *c = bpf_map_lookup_elem(&scratch, &zero);
    void *ring = my_ring();
    if (!c || !ring)
        return;
    fill_call(&c->call, s, p, ret, now);
    if (is_state_only)
        c->call.head.flags |= SV_WIRE_STATE_ONLY;
    long len = bpf_probe_read_user_str(c->text, SV_WIRE_PATH_MAX, (void *)s->args[p->path & 7]);
    if (len <= 0 || len > SV_WIRE_PATH_MAX) {
        c->call.head.flags |= SV_WIRE_NO_PATH;
        c->text[0] = 0;
        len = 1;
    }
    if (p->path2 == SV_WIRE_NONE && leaves_out_path(c->text, len, p, ret, c->call.aux))
        return;
    if (p->path2 != SV_WIRE_NONE) {
        long more =
            bpf_probe_read_user_str(c->text + len, SV_WIRE_PATH_MAX, (void *)s->args[p->path2 & 7]);
        if (more > 0 && more <= SV_WIRE_PATH_MAX)
            len += more;
    }
    __u64 size = sizeof c->call + (__u64)len;
    if (size > sizeof *c)
        return;
    put(ring, c, size, SV_WIRE_CALL);
}

static __always_inline void call_without_path(const struct sv_wire_task *s,
                                              const volatile struct sv_wire_plan *p, long ret,
                                              __u64 now, bool is_state_only)
{
    void *ring = my_ring();
    if (!ring || leaves_out_fd(s))
        return;
    struct sv_wire_call *c = bpf_ringbuf_reserve(ring, sizeof *c, 0);
    count(SV_WIRE_CALL, c != 0);
    if (!c)
        return;
    fill_call(c, s, p, ret, now);
    if (is_state_only)
        c->head.flags |= SV_WIRE_STATE_ONLY;
    if (p->wants & SV_WIRE_VECTOR)
        c->size = vector_bytes(s->args[1], c->size);
    if (p->wants & SV_WIRE_PAIR &&
        bpf_probe_read_user(&c->size, sizeof c->size, (void *)c->size) != 0)
        c->size = ~0ull; /* twice -1 */
    bpf_ringbuf_submit(c, wake_flags(ring, sizeof *c));
}

static __noinline int leave_call(struct exit_context *ctx)
{
    struct sv_wire_task *s = followed_self();
    if (!s || !s->is_open || NUMBER_OF_EXIT() != s->nr)
        return 0;
    long ret = RESULT_OF_EXIT();
    s->is_open = 0;
    const volatile struct sv_wire_plan *p = &config.plans[s->nr & (SV_WIRE_CALLS_MAX - 1)];
    __u64 now = bpf_ktime_get_boot_ns();
    bool is_wanted = p->wants & SV_WIRE_WANTED && now - s->start_ns >= config.min_latency_ns;
    if (!is_wanted && !(p->wants & SV_WIRE_KEEPS_BOOK && ret >= 0)) {
        struct sv_wire_counts *c = my_counts();
        if (c && p->wants & SV_WIRE_WANTED)
            c->filtered++;
        return 0;
    }
    if (p->path != SV_WIRE_NONE)
        call_with_path(s, p, ret, now, !is_wanted);
    else
        call_without_path(s, p, ret, now, !is_wanted);
    return 0;
}

EXITS
int on_exit(struct exit_context *ctx)
{
    return is_nobody(REGISTERS()) ? 0 : leave_call(ctx);
}

/* ---- births, names, deaths ---- */

#if KNOWS_KERNEL
#include "sched.h"
#endif
#include "births.h"

#if KNOWS_KERNEL

/* ---- processes that already run ---- */

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 65536);
    __type(key, __u32); /* tgid */
    __type(value, __u8);
} roots SEC(".maps");

/* Follows the roots and all that descends from followed tasks. The loader runs it until nobody new is found. */
SEC("iter/task")
int enroll(struct bpf_iter__task *ctx)
{
    struct task_struct *task = ctx->task;
    if (!task)
        return 0;
    struct numbers n = numbers_of(task);
    if (n.tgid == config.own_tgid || followed(task))
        return 0;
    struct task_struct *parent = GET(task, real_parent);
    bool is_root = bpf_map_lookup_elem(&roots, &n.tgid) != 0;
    if (!is_root && !(parent && followed(parent)))
        return 0;
    if (follow(task))
        shared.n_enrolled++;
    return 0;
}

/* ---- calls in flight ---- */

/* Walked when the exits are no longer told: calls that began and have not ended. Their paths cannot be read from here. */
SEC("iter/task")
int in_flight(struct bpf_iter__task *ctx)
{
    struct task_struct *task = ctx->task;
    struct sv_wire_task *s = task ? followed(task) : 0;
    void *ring = my_ring();
    if (!s || !s->is_open || !ring)
        return 0;
    const volatile struct sv_wire_plan *p = &config.plans[s->nr & (SV_WIRE_CALLS_MAX - 1)];
    __u64 now = bpf_ktime_get_boot_ns();
    if (!(p->wants & SV_WIRE_WANTED) || now - s->start_ns < config.min_latency_ns)
        return 0;
    struct sv_wire_call *c = bpf_ringbuf_reserve(ring, sizeof *c, 0);
    count(SV_WIRE_CALL, c != 0);
    if (!c)
        return 0;
    fill_call(c, s, p, -1, now);
    c->head.flags = SV_WIRE_UNFINISHED | SV_WIRE_NO_PATH;
    if (p->wants & SV_WIRE_VECTOR)
        c->size = ~0ull;
    bpf_ringbuf_submit(c, wake_flags(ring, sizeof *c));
    return 0;
}

/* ---- block requests ---- */

struct request_state {
    __u64 queue_ns, issue_ns;
    __u32 tgid, tid;
    char comm[SV_WIRE_COMM];
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 65536);
    __type(key, __u64); /* address of the request */
    __type(value, struct request_state);
} requests SEC(".maps");

static __always_inline void note_request(struct request *rq, bool is_issue)
{
    __u64 key = (__u64)rq, now = bpf_ktime_get_boot_ns();
    struct request_state *old = bpf_map_lookup_elem(&requests, &key);
    if (is_issue && old) {
        old->issue_ns = now;
        return;
    }
    struct numbers n = own_numbers();
    struct request_state s = {.tgid = n.tgid, .tid = n.tid};
    if (is_issue)
        s.issue_ns = now;
    else
        s.queue_ns = now;
    bpf_get_current_comm(s.comm, sizeof s.comm);
    if (bpf_map_update_elem(&requests, &key, &s, BPF_ANY) != 0)
        count(SV_WIRE_BLOCK, false);
}

TRACEPOINT(block_rq_insert)
int BPF_PROG(on_block_insert, struct request *rq)
{
    note_request(rq, false);
    return 0;
}

TRACEPOINT(block_rq_issue)
int BPF_PROG(on_block_issue, struct request *rq)
{
    note_request(rq, true);
    return 0;
}

TRACEPOINT(block_rq_complete)
int BPF_PROG(on_block_complete, struct request *rq, int error, unsigned int bytes)
{
    __u64 key = (__u64)rq;
    struct request_state *s = bpf_map_lookup_elem(&requests, &key);
    void *ring = my_ring();
    if (!s || !ring)
        return 0;
    struct sv_wire_block *b = bpf_ringbuf_reserve(ring, sizeof *b, 0);
    count(SV_WIRE_BLOCK, b != 0);
    if (b) {
        fill_head(&b->head, SV_WIRE_BLOCK, 0, (struct numbers){s->tgid, s->tid});
        b->queue_ns = s->queue_ns;
        b->issue_ns = s->issue_ns;
        b->sector = GET(rq, __sector);
        struct request_queue *q = GET(rq, q);
        struct gendisk *disk = q ? GET(q, disk) : 0;
        b->device = disk ? (__u32)GET(disk, major) << 20 | (__u32)GET(disk, first_minor) : 0;
        b->bytes = bytes;
        b->command = GET(rq, cmd_flags);
        b->error = error;
        __builtin_memcpy(b->comm, s->comm, sizeof b->comm);
        bpf_ringbuf_submit(b, wake_flags(ring, sizeof *b));
    }
    if (GET(rq, __data_len) <= bytes)
        bpf_map_delete_elem(&requests, &key);
    return 0;
}

/* ---- the page cache ---- */

/* The kernel's word for several pages that live together. Its flags stand first, in a struct or as they are, depending on the kernel. */
static __always_inline __u32 folio_bytes(struct folio *folio)
{
    unsigned long flags = 0;
    if (bpf_probe_read_kernel(&flags, sizeof flags, folio) != 0 ||
        !(flags >> bpf_core_enum_value(enum pageflags, PG_head) & 1) ||
        !bpf_core_field_exists(folio->_flags_1))
        return 4096;
    return 4096u << (GET(folio, _flags_1) & 15);
}

/* The descriptor of the call that is under way, if it is this file's: so the page's file has a path. */
static __always_inline __s32 descriptor_of(const struct sv_wire_task *s, struct inode *inode)
{
    const volatile struct sv_wire_plan *p = &config.plans[s->nr & (SV_WIRE_CALLS_MAX - 1)];
    if (!s->is_open || p->fd == SV_WIRE_NONE || p->path != SV_WIRE_NONE)
        return -1;
    __s32 fd = (__s32)s->args[p->fd & 7];
    struct file *file = file_of(fd);
    return file && BPF_CORE_READ(file, f_inode) == inode ? fd : -1;
}

static __always_inline void fill_page(struct sv_wire_cache *c, const struct sv_wire_task *s,
                                      struct address_space *mapping)
{
    struct inode *inode = mapping ? GET(mapping, host) : 0;
    struct super_block *sb = inode ? GET(inode, i_sb) : 0;
    c->inode = inode ? GET(inode, i_ino) : 0;
    c->device = sb ? GET(sb, s_dev) : 0;
    c->fd = inode ? descriptor_of(s, inode) : -1;
    c->pad = 0;
}

/* A page of a file is touched in memory and not mapped there yet. */
TRACEPOINT(mm_filemap_fault)
int BPF_PROG(on_cache_fault, struct address_space *mapping, unsigned long index)
{
    struct sv_wire_task *s = followed_self();
    void *ring = s ? my_ring() : 0;
    if (!s || !ring)
        return 0;
    struct sv_wire_cache *c = bpf_ringbuf_reserve(ring, sizeof *c, 0);
    count(SV_WIRE_FAULT, c != 0);
    if (!c)
        return 0;
    fill_head(&c->head, SV_WIRE_FAULT, 0, numbers_in(s));
    fill_page(c, s, mapping);
    c->offset = (__u64)index << 12;
    c->bytes = 4096;
    bpf_ringbuf_submit(c, wake_flags(ring, sizeof *c));
    return 0;
}

/* A page enters the cache: it was not there, and is read or made now. Only for followed tasks; read-ahead is theirs, too. */
TRACEPOINT(mm_filemap_add_to_page_cache)
int BPF_PROG(on_cache_add, struct folio *folio)
{
    struct sv_wire_task *s = followed_self();
    if (!s)
        return 0;
    void *ring = my_ring();
    if (!ring)
        return 0;
    struct sv_wire_cache *c = bpf_ringbuf_reserve(ring, sizeof *c, 0);
    count(SV_WIRE_CACHE, c != 0);
    if (!c)
        return 0;
    fill_head(&c->head, SV_WIRE_CACHE, 0, numbers_in(s));
    fill_page(c, s, GET(folio, mapping));
    c->offset = (__u64)GET(folio, index) << 12;
    c->bytes = folio_bytes(folio);
    bpf_ringbuf_submit(c, wake_flags(ring, sizeof *c));
    return 0;
}

#include "io_uring.h"

#endif

#include "sample.h"
