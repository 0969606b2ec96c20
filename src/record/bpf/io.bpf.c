/* The kernel's side of `stave record`: what the probes (record/probes/list.h) have in common. Their
 * programs are in NAME.h beside this file.
 *
 * Loaded by record/kernel/kernel.c, which fills `config` first. Compiled three times, see hooks.h.
 * A task is followed when it has a value in `tasks`; children of followed tasks are followed. A
 * record that does not fit into the ring of its CPU is counted. */
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

/* Process starts and exits have a ring of their own, so that many calls cannot push them out. */
struct {
    __uint(type, BPF_MAP_TYPE_RINGBUF);
    __uint(max_entries, 4 << 20);
} process_ring SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct sv_wire_counts);
} counts SEC(".maps");

static __always_inline struct sv_wire_counts *my_counts(void)
{
    __u32 zero = 0;
    return bpf_map_lookup_elem(&counts, &zero);
}

/* Only losses are counted here: what was kept is counted by the reader. */
static __always_inline void count(unsigned kind, bool is_kept)
{
    if (is_kept || kind >= SV_WIRE_KINDS)
        return;
    struct sv_wire_counts *c = my_counts();
    if (c)
        c->lost[kind]++;
}

/* The reader looks every few milliseconds; it is woken only when a ring fills faster than that,
 * once per crossing of the mark. */
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

/* As the recorder reads it. */
static __always_inline __u64 now_ns(void)
{
    return bpf_ktime_get_boot_ns() + config.boot_offset_ns;
}

#include "following.h"

static __always_inline void fill_head_at(struct sv_wire_head *h, unsigned kind, __u32 what,
                                         struct pids who, __u64 now)
{
    h->kind = (__u16)kind;
    h->flags = 0;
    h->tgid = who.tgid;
    h->tid = who.tid;
    h->what = what;
    h->ts_ns = now;
}

static __always_inline void fill_head(struct sv_wire_head *h, unsigned kind, __u32 what,
                                      struct pids who)
{
    fill_head_at(h, kind, what, who, now_ns());
}

static __always_inline void put(void *ring, void *record, __u64 size, unsigned kind)
{
    count(kind, bpf_ringbuf_output(ring, record, size, wake_flags(ring, size)) == 0);
}

#include "kernel_probes.h"

/* what several of them share */
#include "joint.h"

#if KNOWS_KERNEL
#include "follow_running.h"
#endif
