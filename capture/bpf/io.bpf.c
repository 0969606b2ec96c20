/* The kernel's side of `stave record`: system calls of the followed processes, their births, names and deaths, block requests.
 *
 * Loaded by capture/kernel.c, which fills the constants below first. A task is followed when it has a value in `tasks`; children of
 * followed tasks are followed. A call is noted at its entry and told at its exit, in one record; what finds no room in the ring of its CPU is counted. */
#include "kernel_types.h"
#include "records.h"

#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile struct sv_wire_plan plans[SV_WIRE_CALLS_MAX] = {};
const volatile __u64 min_latency_ns = 0;
const volatile __u64 wake_bytes = 1 << 20;
const volatile __u32 own_tgid = 0;
const volatile bool follow_all = false;

struct task_state {
    __u64 start_ns;
    __u64 args[8]; /* six, and room so that no number of an argument is out of bounds */
    __u32 nr;
    __u32 is_open;
};

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct task_state);
} tasks SEC(".maps");

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
    return waiting >= wake_bytes && waiting < wake_bytes + 2 * size + 16 ? BPF_RB_FORCE_WAKEUP
                                                                         : BPF_RB_NO_WAKEUP;
}

static __always_inline void *my_ring(void)
{
    __u32 cpu = bpf_get_smp_processor_id();
    return bpf_map_lookup_elem(&rings, &cpu);
}

static __always_inline void fill_head(struct sv_wire_head *h, unsigned kind, __u32 what)
{
    __u64 id = bpf_get_current_pid_tgid();
    h->kind = (__u16)kind;
    h->flags = 0;
    h->tgid = (__u32)(id >> 32);
    h->tid = (__u32)id;
    h->what = what;
    h->ts_ns = bpf_ktime_get_boot_ns();
}

static __always_inline void put(void *ring, void *record, __u64 size, unsigned kind)
{
    count(kind, bpf_ringbuf_output(ring, record, size, wake_flags(ring, size)) == 0);
}

/* ---- system calls ---- */

static __always_inline void save_args(struct task_state *s, struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
    s->args[0] = regs->di;
    s->args[1] = regs->si;
    s->args[2] = regs->dx;
    s->args[3] = regs->r10;
    s->args[4] = regs->r8;
    s->args[5] = regs->r9;
#else
    for (int i = 0; i < 6; i++)
        s->args[i] = regs->regs[i];
#endif
}

static __always_inline bool is_foreign(struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
    return regs->cs == 0x23; /* 32-bit code: other numbers, other arguments */
#else
    (void)regs;
    return false;
#endif
}

static __always_inline __u64 number_of(struct pt_regs *regs)
{
#if defined(__TARGET_ARCH_x86)
    return regs->orig_ax;
#else
    return (__u64)(long)regs->syscallno;
#endif
}

/* The state of a task that is followed. One look at the task itself answers for nearly all others: they have no storage of any map, and the
 * call of a helper costs them more than the rest. */
static __always_inline struct task_state *followed(struct task_struct *task)
{
    if (bpf_core_field_exists(task->bpf_storage) && !task->bpf_storage)
        return 0;
    return bpf_task_storage_get(&tasks, task, 0, 0);
}

static __always_inline struct task_state *my_state(void)
{
    struct task_struct *task = bpf_get_current_task_btf();
    if (!follow_all)
        return followed(task);
    if ((__u32)task->tgid == own_tgid)
        return 0;
    return bpf_task_storage_get(&tasks, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_enter, struct pt_regs *regs, long id)
{
    if ((unsigned long)id >= SV_WIRE_CALLS_MAX || !plans[id].wants)
        return 0;
    struct task_state *s = my_state();
    if (!s)
        return 0;
    if (is_foreign(regs)) {
        struct sv_wire_counts *c = my_counts();
        if (c)
            c->foreign++;
        return 0;
    }
    save_args(s, regs);
    s->nr = (__u32)id;
    s->is_open = 1;
    s->start_ns = bpf_ktime_get_boot_ns();
    return 0;
}

static __always_inline struct file *file_of(__s32 fd)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct files_struct *files = task->files;
    struct file **table, *file = 0;
    if (!files)
        return 0;
    struct fdtable *fdt = files->fdt;
    if (!fdt || (__u32)fd >= fdt->max_fds)
        return 0;
    table = fdt->fd;
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

#include "elsewhere.h"

static __always_inline void fill_call(struct sv_wire_call *c, const struct task_state *s,
                                      const volatile struct sv_wire_plan *p, long ret, __u64 now)
{
    __u64 id = bpf_get_current_pid_tgid();
    c->head.kind = SV_WIRE_CALL;
    c->head.flags = 0;
    c->head.tgid = (__u32)(id >> 32);
    c->head.tid = (__u32)id;
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
}

/* A path is read at the exit: the kernel itself has read it by then, so its page is there. */
static __always_inline void call_with_path(const struct task_state *s,
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

static __always_inline void call_without_path(const struct task_state *s,
                                              const volatile struct sv_wire_plan *p, long ret,
                                              __u64 now, bool is_state_only)
{
    void *ring = my_ring();
    if (!ring || leaves_out_fd((__s32)s->args[p->fd & 7], p))
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
    bpf_ringbuf_submit(c, wake_flags(ring, sizeof *c));
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_exit, struct pt_regs *regs, long ret)
{
    __u64 id = number_of(regs);
    if (id >= SV_WIRE_CALLS_MAX || !plans[id].wants)
        return 0; /* most calls of most processes end here */
    struct task_struct *task = bpf_get_current_task_btf();
    struct task_state *s = followed(task);
    if (!s || !s->is_open)
        return 0;
    s->is_open = 0;
    const volatile struct sv_wire_plan *p = &plans[s->nr & (SV_WIRE_CALLS_MAX - 1)];
    __u64 now = bpf_ktime_get_boot_ns();
    bool is_wanted = p->wants & SV_WIRE_WANTED && now - s->start_ns >= min_latency_ns;
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

/* ---- births, names, deaths ---- */

#include "newcomers.h"

SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child)
{
    if (!followed(parent))
        return 0;
    if (!bpf_task_storage_get(&tasks, child, 0, BPF_LOCAL_STORAGE_GET_F_CREATE)) {
        struct sv_wire_counts *c = my_counts();
        if (c)
            c->not_followed++;
    }
    struct sv_wire_fork *f = bpf_ringbuf_reserve(&lives, sizeof *f, 0);
    count(SV_WIRE_FORK, f != 0);
    if (!f)
        return 0;
    fill_head(&f->head, SV_WIRE_FORK, 0);
    f->tgid = (__u32)child->tgid;
    f->tid = (__u32)child->pid;
    bpf_probe_read_kernel_str(f->comm, sizeof f->comm, child->comm);
    bpf_ringbuf_submit(f, wake_flags(&lives, sizeof *f));
    return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_pid, struct linux_binprm *bprm)
{
    __u32 zero = 0;
    struct long_call *c = bpf_map_lookup_elem(&scratch, &zero);
    if (!c || (!followed(task) && !joins_by_exec(task)))
        return 0;
    struct sv_wire_head *h = &c->call.head;
    char *text = (char *)(h + 1);
    fill_head(h, SV_WIRE_EXEC, (__u32)old_pid);
    long len = bpf_probe_read_kernel_str(text, SV_WIRE_PATH_MAX, bprm->filename);
    if (len <= 0 || len > SV_WIRE_PATH_MAX)
        len = 0;
    struct mm_struct *mm = task->mm;
    if (mm) {
        __u64 size = mm->arg_end - mm->arg_start;
        if (size > SV_WIRE_PATH_MAX)
            size = SV_WIRE_PATH_MAX;
        if (bpf_probe_read_user(text + len, (__u32)size, (void *)mm->arg_start) == 0)
            len += (long)size;
    }
    __u64 all = sizeof *h + (__u64)len;
    if (all <= sizeof *c)
        put(&lives, c, all, SV_WIRE_EXEC);
    return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_task_exit, struct task_struct *task)
{
    if (!followed(task))
        return 0;
    struct sv_wire_exit *e = bpf_ringbuf_reserve(&lives, sizeof *e, 0);
    count(SV_WIRE_EXIT, e != 0);
    if (!e)
        return 0;
    fill_head(&e->head, SV_WIRE_EXIT, 0);
    e->code = task->exit_code;
    struct signal_struct *signal = task->signal;
    e->is_last = signal && signal->live.counter == 0;
    bpf_ringbuf_submit(e, wake_flags(&lives, sizeof *e));
    return 0;
}

SEC("tp_btf/task_rename")
int BPF_PROG(on_rename, struct task_struct *task, const char *comm)
{
    if (!followed(task) && !(is_called_so(comm) && join(task)))
        return 0;
    struct sv_wire_name *n = bpf_ringbuf_reserve(&lives, sizeof *n, 0);
    count(SV_WIRE_NAME, n != 0);
    if (!n)
        return 0;
    fill_head(&n->head, SV_WIRE_NAME, 0);
    n->head.tgid = (__u32)task->tgid; /* another thread may give the name */
    n->head.tid = (__u32)task->pid;
    bpf_probe_read_kernel_str(n->comm, sizeof n->comm, comm);
    bpf_ringbuf_submit(n, wake_flags(&lives, sizeof *n));
    return 0;
}

/* ---- processes that already run ---- */

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 65536);
    __type(key, __u32); /* tgid */
    __type(value, __u8);
} roots SEC(".maps");

/* Follows the roots and all that descends from followed tasks. The loader runs it until nobody new is found. */
__u32 n_enrolled = 0;

SEC("iter/task")
int enroll(struct bpf_iter__task *ctx)
{
    struct task_struct *task = ctx->task;
    if (!task)
        return 0;
    __u32 tgid = (__u32)task->tgid;
    if (tgid == own_tgid || followed(task))
        return 0;
    struct task_struct *parent = task->real_parent;
    bool is_root = bpf_map_lookup_elem(&roots, &tgid) != 0;
    if (!is_root && !(parent && followed(parent)))
        return 0;
    if (bpf_task_storage_get(&tasks, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE))
        n_enrolled++;
    return 0;
}

/* ---- calls in flight ---- */

/* Walked when the exits are no longer told: calls that began and have not ended. Their paths cannot be read from here. */
SEC("iter/task")
int in_flight(struct bpf_iter__task *ctx)
{
    struct task_struct *task = ctx->task;
    struct task_state *s = task ? followed(task) : 0;
    void *ring = my_ring();
    if (!s || !s->is_open || !ring)
        return 0;
    const volatile struct sv_wire_plan *p = &plans[s->nr & (SV_WIRE_CALLS_MAX - 1)];
    __u64 now = bpf_ktime_get_boot_ns();
    if (!(p->wants & SV_WIRE_WANTED) || now - s->start_ns < min_latency_ns)
        return 0;
    struct sv_wire_call *c = bpf_ringbuf_reserve(ring, sizeof *c, 0);
    count(SV_WIRE_CALL, c != 0);
    if (!c)
        return 0;
    fill_call(c, s, p, -1, now);
    c->head.flags = SV_WIRE_UNFINISHED | SV_WIRE_NO_PATH;
    c->head.tgid = (__u32)task->tgid;
    c->head.tid = (__u32)task->pid;
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
    __u64 id = bpf_get_current_pid_tgid();
    struct request_state s = {.tgid = (__u32)(id >> 32), .tid = (__u32)id};
    if (is_issue)
        s.issue_ns = now;
    else
        s.queue_ns = now;
    bpf_get_current_comm(s.comm, sizeof s.comm);
    if (bpf_map_update_elem(&requests, &key, &s, BPF_ANY) != 0)
        count(SV_WIRE_BLOCK, false);
}

SEC("tp_btf/block_rq_insert")
int BPF_PROG(on_block_insert, struct request *rq)
{
    note_request(rq, false);
    return 0;
}

SEC("tp_btf/block_rq_issue")
int BPF_PROG(on_block_issue, struct request *rq)
{
    note_request(rq, true);
    return 0;
}

SEC("tp_btf/block_rq_complete")
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
        fill_head(&b->head, SV_WIRE_BLOCK, 0);
        b->head.tgid = s->tgid;
        b->head.tid = s->tid;
        b->queue_ns = s->queue_ns;
        b->issue_ns = s->issue_ns;
        b->sector = rq->__sector;
        struct request_queue *q = rq->q;
        struct gendisk *disk = q ? q->disk : 0;
        b->device = disk ? (__u32)disk->major << 20 | (__u32)disk->first_minor : 0;
        b->bytes = bytes;
        b->command = rq->cmd_flags;
        b->error = error;
        __builtin_memcpy(b->comm, s->comm, sizeof b->comm);
        bpf_ringbuf_submit(b, wake_flags(ring, sizeof *b));
    }
    if (rq->__data_len <= bytes)
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
    return 4096u << (folio->_flags_1 & 15);
}

/* The descriptor of the call that is under way, if it is this file's: so the page's file has a path. */
static __always_inline __s32 descriptor_of(const struct task_state *s, struct inode *inode)
{
    const volatile struct sv_wire_plan *p = &plans[s->nr & (SV_WIRE_CALLS_MAX - 1)];
    if (!s->is_open || p->fd == SV_WIRE_NONE || p->path != SV_WIRE_NONE)
        return -1;
    __s32 fd = (__s32)s->args[p->fd & 7];
    struct file *file = file_of(fd);
    return file && BPF_CORE_READ(file, f_inode) == inode ? fd : -1;
}

static __always_inline void fill_page(struct sv_wire_cache *c, const struct task_state *s,
                                      struct address_space *mapping)
{
    struct inode *inode = mapping ? mapping->host : 0;
    struct super_block *sb = inode ? inode->i_sb : 0;
    c->inode = inode ? inode->i_ino : 0;
    c->device = sb ? sb->s_dev : 0;
    c->fd = inode ? descriptor_of(s, inode) : -1;
    c->pad = 0;
}

/* A page of a file is touched in memory and not mapped there yet. */
SEC("tp_btf/mm_filemap_fault")
int BPF_PROG(on_cache_fault, struct address_space *mapping, unsigned long index)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct task_state *s = followed(task);
    void *ring = s ? my_ring() : 0;
    if (!s || !ring)
        return 0;
    struct sv_wire_cache *c = bpf_ringbuf_reserve(ring, sizeof *c, 0);
    count(SV_WIRE_FAULT, c != 0);
    if (!c)
        return 0;
    fill_head(&c->head, SV_WIRE_FAULT, 0);
    fill_page(c, s, mapping);
    c->offset = (__u64)index << 12;
    c->bytes = 4096;
    bpf_ringbuf_submit(c, wake_flags(ring, sizeof *c));
    return 0;
}

/* A page enters the cache: it was not there, and is read or made now. Only for followed tasks; read-ahead is theirs, too. */
SEC("tp_btf/mm_filemap_add_to_page_cache")
int BPF_PROG(on_cache_add, struct folio *folio)
{
    struct task_struct *task = bpf_get_current_task_btf();
    struct task_state *s = followed(task);
    if (!s)
        return 0;
    void *ring = my_ring();
    if (!ring)
        return 0;
    struct sv_wire_cache *c = bpf_ringbuf_reserve(ring, sizeof *c, 0);
    count(SV_WIRE_CACHE, c != 0);
    if (!c)
        return 0;
    fill_head(&c->head, SV_WIRE_CACHE, 0);
    fill_page(c, s, folio->mapping);
    c->offset = (__u64)folio->index << 12;
    c->bytes = folio_bytes(folio);
    bpf_ringbuf_submit(c, wake_flags(ring, sizeof *c));
    return 0;
}

#include "sample.h"
#include "sched.h"
#include "io_uring.h"
