/* Room for the records of system calls. Part of syscalls.h.
 *
 * On x86-64 they have rings of their own, one per CPU, in memory that both sides map, and are
 * written there in place: no helper is called, and nothing is locked. That is enough because
 * nothing else writes there and the kernel runs the programs of sys_enter and sys_exit with
 * preemption off. A program that finds another one in the middle of a record all the same counts
 * its own as lost. Records have the heads of BPF_MAP_TYPE_RINGBUF, so that one reader reads both; a
 * record does not go over the end of the ring, a discarded one fills what is left there. A reader
 * sees a record when `producer` is behind it: stores are not reordered on x86-64. Elsewhere records
 * go through the common rings. */
#ifndef SV_RECORD_BPF_CALL_ROOM_H
#define SV_RECORD_BPF_CALL_ROOM_H

struct long_call {
    struct sv_wire_call call;
    char text[2 * SV_WIRE_PATH_MAX + 512]; /* paths, or what an exec has */
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct long_call);
} scratch SEC(".maps");

#if defined(__TARGET_ARCH_x86)

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(map_flags, BPF_F_MMAPABLE);
    __uint(max_entries, 1); /* one per CPU, set by the loader, and so is the size */
    __uint(key_size, sizeof(__u32));
    __uint(value_size, sizeof(struct sv_wire_call_ring) + SV_WIRE_CALL_RING_LEAST);
} call_rings SEC(".maps");

struct call_room {
    struct sv_wire_call_ring *ring;
    char *head;
    __u64 before, at; /* positions: where the ring ended, and where the record begins */
};

#define BARRIER() asm volatile("" ::: "memory")

/* `size` bytes at most: they end before the ring does. NULL: there is no room, which is counted. */
static __always_inline void *take_room(struct call_room *room, __u64 size)
{
    __u32 cpu = bpf_get_smp_processor_id();
    struct sv_wire_call_ring *r = bpf_map_lookup_elem(&call_rings, &cpu);
    const __u64 bytes = config.call_ring_bytes;
    if (!r || r->is_busy)
        goto lost;
    r->is_busy = 1;
    BARRIER();
    const __u64 before = r->producer;
    __u64 at = before, off = at & (bytes - 8);
    if (off > bytes - BPF_RINGBUF_HDR_SZ - size) {
        *(__u32 *)(r->data + off) = (__u32)(bytes - off - BPF_RINGBUF_HDR_SZ) |
                                    BPF_RINGBUF_DISCARD_BIT;
        at += bytes - off;
        off = 0;
    }
    if (at + BPF_RINGBUF_HDR_SZ + size - r->consumer > bytes) {
        r->is_busy = 0;
        goto lost;
    }
    *room = (struct call_room){r, r->data + off, before, at};
    return r->data + off + BPF_RINGBUF_HDR_SZ;
lost:
    count(SV_WIRE_CALL, false);
    return 0;
}

static __always_inline void leave_room(const struct call_room *room)
{
    room->ring->is_busy = 0;
}

/* Wakes the reader by a record of the common ring that is discarded. */
static __noinline int wake_reader(void)
{
    void *ring = my_ring();
    void *nothing = ring ? bpf_ringbuf_reserve(ring, 8, 0) : 0;
    if (nothing)
        bpf_ringbuf_discard(nothing, BPF_RB_FORCE_WAKEUP);
    return 0;
}

/* The record is whole. */
static __always_inline void put_room(const struct call_room *room, __u64 size)
{
    struct sv_wire_call_ring *r = room->ring;
    __u64 step = (size + BPF_RINGBUF_HDR_SZ + 7) & ~7ull, end = room->at + step;
    *(__u32 *)room->head = (__u32)size;
    BARRIER();
    *(volatile __u64 *)&r->producer = end;
    BARRIER();
    r->is_busy = 0;
    const __u64 mark = config.call_ring_bytes / 4, read = r->consumer;
    if (end - read >= mark && room->before - read < mark) /* once per crossing of the mark */
        wake_reader();
}

#else

struct call_room {
    void *ring;
    struct long_call *call;
};

static __always_inline void *take_room(struct call_room *room, __u64 size)
{
    __u32 zero = 0;
    (void)size;
    room->ring = my_ring();
    room->call = bpf_map_lookup_elem(&scratch, &zero);
    return room->ring ? room->call : 0;
}

static __always_inline void leave_room(const struct call_room *room)
{
    (void)room;
}

static __always_inline void put_room(const struct call_room *room, __u64 size)
{
    put(room->ring, room->call, size, SV_WIRE_CALL);
}

#endif

#endif
