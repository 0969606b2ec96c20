/* How a call that has ended becomes a record: with paths, with both ends of a copy, with a peer, or
 * plain. Included by syscalls.h, on the kernel's side only. */
#ifndef SV_RECORD_BPF_CALL_RECORD_H
#define SV_RECORD_BPF_CALL_RECORD_H

struct buffer {
    __u64 at, size;
};

/* What the buffers of a vector hold together. Vectors longer than any in use are not added up. Not
 * static: the kernel checks it once. */
__noinline __u64 vector_bytes(__u64 at, __u64 n)
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

enum { HAS_NO_NAME = 020000000 }; /* O_TMPFILE's own bit: its number is its name */

static __always_inline void fill_call(struct sv_wire_call *c, const struct sv_wire_task *s,
                                      const volatile struct sv_wire_plan *p, long ret, __u64 now,
                                      bool is_state_only)
{
    c->head.kind = SV_WIRE_CALL;
    c->head.flags = is_state_only ? SV_WIRE_STATE_ONLY : 0;
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
        c->inode = p->wants & SV_WIRE_OPENS && c->aux & HAS_NO_NAME ? number_of_file((__s32)ret)
                                                                    : inode_of((__s32)ret);
}

enum { MAY_CREATE = 020000100 }; /* O_TMPFILE's own bit, O_CREAT */
enum { MAY_EXECUTE = 4 };        /* PROT_EXEC */

/* The mode of open says something only where a file may be made. */
static __always_inline void drop_mode(struct sv_wire_call *c, const volatile struct sv_wire_plan *p)
{
    if (p->wants & SV_WIRE_OPENS && !(c->aux & MAY_CREATE))
        c->size = 0;
}

/* The paths of a call; their bytes. 0: the call is left out. A path is read at the exit: the kernel
 * itself has read it by then, so its page is there. */
static __always_inline __u64 put_paths(struct sv_wire_head *head, char *text,
                                       const struct sv_wire_task *s,
                                       const volatile struct sv_wire_plan *p, long ret, __u32 aux)
{
    long len = bpf_probe_read_user_str(text, SV_WIRE_PATH_MAX, (void *)s->args[p->path & 7]);
    if (len <= 0 || len > SV_WIRE_PATH_MAX) {
        head->flags |= SV_WIRE_NO_PATH;
        text[0] = 0;
        len = 1;
    }
    if (p->path2 == SV_WIRE_NONE)
        return leaves_out_path(text, len, p, ret, aux) ? 0 : (__u64)len;
    long more =
        bpf_probe_read_user_str(text + len, SV_WIRE_PATH_MAX, (void *)s->args[p->path2 & 7]);
    return (__u64)(more > 0 && more <= SV_WIRE_PATH_MAX ? len + more : len);
}

CHECKED_ONCE int call_with_path(const struct sv_wire_task *s, long ret, __u64 now,
                                bool is_state_only)
{
    if (!s)
        return 0;
    const volatile struct sv_wire_plan *p = &config.plans[s->nr & (SV_WIRE_CALLS_MAX - 1)];
    struct call_room room;
    struct sv_wire_call c;
    char *at = take_room(&room, sizeof(struct long_call));
    if (!at)
        return 0;
    fill_call(&c, s, p, ret, now, is_state_only);
    drop_mode(&c, p);
    __u64 size = write_call(at, &c);
    __u64 len = put_paths((struct sv_wire_head *)at, at + size, s, p, ret, c.aux);
    if (len > 0 && len <= 2 * SV_WIRE_PATH_MAX)
        put_room(&room, size + len);
    else
        leave_room(&room);
    return 0;
}

/* Where a copy began on one side: the number that the argument points to, or the file's position,
 * both of which the call has moved on. */
static __noinline __s64 copy_offset(const struct sv_wire_task *s, __u32 argument, __s32 fd,
                                    long ret)
{
    __s64 after = -1;
    if (!s)
        return -1;
    __u64 at = argument < SV_WIRE_NONE ? s->args[argument & 7] : 0;
    if (!at)
        after = position(fd);
    else if (bpf_probe_read_user(&after, sizeof after, (void *)at) != 0)
        after = -1;
    return ret >= 0 && after >= ret ? after - ret : -1;
}

CHECKED_ONCE int call_that_copies(const struct sv_wire_task *s, long ret, __u64 now,
                                  bool is_state_only)
{
    if (!s)
        return 0;
    const volatile struct sv_wire_plan *p = &config.plans[s->nr & (SV_WIRE_CALLS_MAX - 1)];
    struct call_room room;
    struct sv_wire_call c;
    fill_call(&c, s, p, ret, now, is_state_only);
    c.offset = copy_offset(s, p->places & 15, c.fd, ret);
    __s64 to = copy_offset(s, p->places >> 4, (__s32)c.aux, ret);
    char *at = take_room(&room, sizeof c + sizeof to);
    if (!at)
        return 0;
    __u64 size = write_call(at, &c);
    if (size > sizeof c)
        size = sizeof c; /* never; the kernel wants to be sure */
    *(__s64 *)(at + size) = to;
    put_room(&room, size + sizeof to);
    return 0;
}

CHECKED_ONCE int call_without_path(const struct sv_wire_task *s, long ret, __u64 now,
                                   bool is_state_only)
{
    if (!s)
        return 0;
    const volatile struct sv_wire_plan *p = &config.plans[s->nr & (SV_WIRE_CALLS_MAX - 1)];
    struct call_room room;
    struct sv_wire_call c;
    if (leaves_out_fd(s))
        return 0;
    fill_call(&c, s, p, ret, now, is_state_only);
    if (p->maps && s->args[2] & MAY_EXECUTE) {
        c.head.flags |= SV_WIRE_MAPS_CODE;
        note_code((__u64)file_of(c.fd));
    }
    if (p->wants & SV_WIRE_VECTOR)
        c.size = vector_bytes(s->args[1], c.size);
    if (p->wants & SV_WIRE_PAIR) {
        __u64 both;
        c.size = bpf_probe_read_user(&both, sizeof both, (void *)c.size) == 0
                     ? both
                     : ~0ull; /* twice -1 */
    }
    if (p->size == SV_WIRE_NONE)
        c.size = (__u64)ret;
    void *at = take_room(&room, sizeof c);
    if (at)
        put_room(&room, bytes_needed(&c, write_call(at, &c)));
    return 0;
}

CHECKED_ONCE int call_with_peer(const struct sv_wire_task *s, long ret, __u64 now,
                                bool is_state_only)
{
    if (!s)
        return 0;
    const volatile struct sv_wire_plan *p = &config.plans[s->nr & (SV_WIRE_CALLS_MAX - 1)];
    struct call_room room;
    struct sv_wire_call c;
    fill_call(&c, s, p, ret, now, is_state_only);
    if (p->wants & SV_WIRE_VECTOR)
        c.size = vector_bytes(s->args[1], c.size);
    if (p->size == SV_WIRE_NONE)
        c.size = (__u64)ret;
    c.head.flags |= SV_WIRE_PEER;
    char *at = take_room(&room, sizeof c + PEER_BYTES_MAX);
    if (!at)
        return 0;
    __u64 size = write_call(at, &c);
    put_room(&room, size + put_peer(at + size, peer_descriptor(s, p, ret)));
    return 0;
}

#endif
