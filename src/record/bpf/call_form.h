/* The record of a system call in its short or its whole form. Part of syscalls.h; sv_call_whole()
 * reads both. */
#ifndef SV_RECORD_BPF_CALL_FORM_H
#define SV_RECORD_BPF_CALL_FORM_H

static __always_inline bool is_small(const struct sv_wire_call *c)
{
    const __u64 over = ~0ull << 32;
    return !((c->head.ts_ns - c->start_ns | c->size | c->inode | (__u64)(c->offset + 1)) & over) &&
           c->ret == (__s32)c->ret;
}

/* Writes the record, in one form or the other. Returns its size. */
static __always_inline __u64 write_call(void *at, const struct sv_wire_call *c)
{
    struct sv_wire_short_call *s = at;
    if (!is_small(c)) {
        *(struct sv_wire_call *)at = *c;
        return sizeof *c;
    }
    s->head = c->head;
    s->head.flags |= SV_WIRE_SHORT;
    s->took_ns = (__u32)(c->head.ts_ns - c->start_ns);
    s->ret = (__s32)c->ret;
    s->fd = c->fd;
    s->inode = (__u32)c->inode;
    s->offset = (__u32)c->offset;
    s->aux = c->aux;
    s->size = (__u32)c->size;
    return sizeof *s;
}

/* Without the last members of a short record that need not be sent. */
static __always_inline __u64 bytes_needed(const struct sv_wire_call *c, __u64 size)
{
    if (size != sizeof(struct sv_wire_short_call) || (__s64)c->size != c->ret)
        return size;
    if (c->aux)
        return offsetof(struct sv_wire_short_call, size);
    return c->offset == -1 ? offsetof(struct sv_wire_short_call, offset)
                           : offsetof(struct sv_wire_short_call, aux);
}

#endif
