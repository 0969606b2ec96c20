/* Frames of CPython, read from the state of the current thread. Part of stack.h; for the kernel
 * only.
 *
 * The recorder finds _PyRuntime in the files of a process and puts the offsets of its version into
 * `pythons`. Code objects are sent once, with their names, before the first frame that refers to
 * them: the process may be gone when the recorder reads the record. */
#ifndef SV_RECORD_BPF_STACK_PYTHON_H
#define SV_RECORD_BPF_STACK_PYTHON_H

#if defined(SV_HOOKS_BTF)
#define STACK_HAS_PYTHON 1

enum {
    PYTHON_THREADS_MAX = 512,
    PYTHON_FRAME_BYTES = 80, /* of a frame that are read: no more, its memory may end there */
    PYTHON_CODE_BYTES = 144, /* of a code object */
    PYTHON_LINES_MAX = 8 << 10
};

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1 << 14);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, __u32); /* process */
    __type(value, struct sv_wire_python);
} pythons SEC(".maps");

struct python_code_key {
    __u64 code;
    __u64 process; /* its number and its start: numbers are used again */
};

/* Code objects that were sent, with what distinguishes another one at the same address. */
struct {
    __uint(type, BPF_MAP_TYPE_LRU_HASH);
    __uint(max_entries, 1 << 16);
    __type(key, struct python_code_key);
    __type(value, __u64);
} python_codes SEC(".maps");

struct python_room {
    __u64 process; /* of the key */
    struct sv_wire_code code;
    char lines[PYTHON_LINES_MAX];
    char frame[128]; /* powers of two: a masked offset is inside */
    char object[256];
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, STACK_ROOMS);
    __type(key, __u32);
    __type(value, struct python_room);
} python_rooms SEC(".maps");

static __always_inline __u64 user_word(__u64 at)
{
    __u64 word = 0;
    bpf_probe_read_user(&word, sizeof word, (void *)at);
    return word;
}

static __always_inline __u64 word_in(const char *bytes, __u64 at, __u64 size)
{
    return *(const __u64 *)(bytes + (at & (size - 8)));
}

/* What the thread calls itself: its number in its own pid namespace. */
static __always_inline __u64 native_id(void)
{
    struct pid *pid = BPF_CORE_READ(current_task(), thread_pid);
    unsigned level = BPF_CORE_READ(pid, level);
    if (level >= LEVELS_MAX)
        return 0;
    struct upid *u = upid_at(pid, level);
    return (__u32)BPF_CORE_READ(u, nr);
}

struct python_search {
    __u64 id, at, found; /* `found`: 0 until then */
    __u32 native_id, next;
};

static long is_python_thread(__u32 i, void *of)
{
    struct python_search *s = of;
    (void)i;
    if (s->at && user_word(s->at + s->native_id) == s->id)
        s->found = s->at;
    else if (s->at)
        s->at = user_word(s->at + s->next);
    return s->found || !s->at;
}

/* The state of this thread. Mostly it is the one that runs Python; one that waits or computes
 * without the interpreter's lock is in the list only. */
__noinline __u64 python_thread(__u32 process)
{
    const struct sv_wire_python *p = bpf_map_lookup_elem(&pythons, &process);
    __u64 id = native_id(), at = 0;
    if (!p || !id)
        return 0;
    if (p->current != SV_PYTHON_NONE)
        at = user_word(p->runtime + p->current);
    if (at && user_word(at + p->native_id) == id)
        return at;
    at = user_word(p->runtime + p->interpreters);
    at = at ? user_word(at + p->threads) : 0;
    struct python_search s = {.id = id, .at = at, .native_id = p->native_id, .next = p->next};
    REPEAT(PYTHON_THREADS_MAX, is_python_thread, &s);
    return s.found;
}

/* The characters of a text object; of a longer one its end. Returns the bytes, and the bytes per
 * character. */
static __always_inline __u64 take_text(char *to, __u64 max, __u64 text,
                                       const struct sv_wire_python *p, __u8 *kind)
{
    enum { LENGTH = 16, STATE = 32, IS_COMPACT = 1 << 5, IS_ASCII = 1 << 6 };
    __u64 length = user_word(text + LENGTH);
    __u32 state = (__u32)user_word(text + STATE);
    __u64 at = text + (state & IS_ASCII ? p->text_ascii : p->text_other);
    *kind = state >> 2 & 7;
    if (!text || !(state & IS_COMPACT) || length == 0 || length > 1 << 20)
        return 0;
    length *= *kind;
    if (length > max) {
        at += length - max;
        length = max;
    }
    if (length > max || bpf_probe_read_user(to, length, (void *)at) != 0)
        return 0;
    return length;
}

static __always_inline __u32 first_line_of(const struct python_room *r,
                                           const struct sv_wire_python *p)
{
    return *(const __u32 *)(r->object + (p->first_line & (sizeof r->object - 4)));
}

static __always_inline bool send_code(struct python_room *r, const struct sv_wire_python *p,
                                      __u64 code, struct pids who)
{
    enum { SIZE = 16, DATA = 32 };
    struct sv_wire_code *c = &r->code;
    __u64 lines = word_in(r->object, p->linetable, sizeof r->object);
    c->code = code;
    c->first_line = first_line_of(r, p);
    c->name_bytes = (__u16)take_text(
        c->name, sizeof c->name, word_in(r->object, p->name, sizeof r->object), p, &c->name_kind);
    c->file_bytes = (__u16)take_text(
        c->file, sizeof c->file, word_in(r->object, p->file, sizeof r->object), p, &c->file_kind);
    c->pad = 0;
    __u64 n = lines ? user_word(lines + SIZE) : 0;
    if (n > PYTHON_LINES_MAX)
        n = PYTHON_LINES_MAX;
    if (n > 0 && bpf_probe_read_user(r->lines, n, (void *)(lines + DATA)) != 0)
        n = 0;
    c->linetable_bytes = (__u32)n;
    fill_head(&c->head, SV_WIRE_CODE, 0, who);
    void *ring = my_ring();
    __u64 size = sizeof *c + n;
    if (!ring || size > sizeof *c + sizeof r->lines)
        return false;
    bool is_kept = bpf_ringbuf_output(ring, c, size, wake_flags(ring, size)) == 0;
    count(SV_WIRE_CODE, is_kept);
    return is_kept;
}

/* Sends the code object unless this one was sent before. */
__noinline int know_code(__u64 code, __u32 process, __u32 tgid, __u32 tid, __u32 room)
{
    const struct sv_wire_python *p = bpf_map_lookup_elem(&pythons, &process);
    struct python_room *r = bpf_map_lookup_elem(&python_rooms, &room);
    if (!p || !r || bpf_probe_read_user(r->object, PYTHON_CODE_BYTES, (void *)code) != 0)
        return 0;
    struct python_code_key key = {.code = code, .process = r->process};
    __u64 mark = word_in(r->object, p->name, sizeof r->object) * 31 +
                 word_in(r->object, p->file, sizeof r->object) * 17 +
                 word_in(r->object, p->linetable, sizeof r->object);
    const __u64 *known = bpf_map_lookup_elem(&python_codes, &key);
    if (known && *known == mark)
        return 0;
    if (send_code(r, p, code, (struct pids){tgid, tid}))
        bpf_map_update_elem(&python_codes, &key, &mark, BPF_ANY);
    return 0;
}

/* One frame; what came before it is returned, 0: nothing. */
static __always_inline __u64 take_frame(struct python_room *r, const struct sv_wire_python *p,
                                        __u64 frame, struct sv_wire_pyframe *f)
{
    if (bpf_probe_read_user(r->frame, PYTHON_FRAME_BYTES, (void *)frame) != 0)
        __builtin_memset(r->frame, 0, sizeof r->frame);
    __u64 code = word_in(r->frame, p->code, sizeof r->frame) & ~7ull;
    f->code = code;
    f->at = (__u32)(word_in(r->frame, p->instr, sizeof r->frame) - code - p->bytecode);
    f->owner = (__u8)r->frame[p->owner & (sizeof r->frame - 1)];
    f->is_entry = r->frame[p->entry & (sizeof r->frame - 1)]; /* NONE: a byte that is not read */
    f->pad = 0;
    return word_in(r->frame, p->previous, sizeof r->frame);
}

/* The process whose offsets are used: its own, or that which it was forked from. 0: it has no
 * Python. */
static __always_inline __u32 python_process(const struct sv_wire_task *task)
{
    __u32 own = task->tgid, origin = task->origin;
    if (bpf_map_lookup_elem(&pythons, &own))
        return own;
    return origin && bpf_map_lookup_elem(&pythons, &origin) ? origin : 0;
}

struct python_walk {
    __u64 frame; /* the next one; 0: there is none */
    __u64 at;    /* in the room */
    __u32 n, room, process, tgid, tid;
};

static long step_python(__u32 i, void *of)
{
    struct python_walk *w = of;
    __u32 room = w->room, process = w->process;
    struct stack_room *to = stack_room(room);
    struct python_room *r = bpf_map_lookup_elem(&python_rooms, &room);
    const struct sv_wire_python *p = bpf_map_lookup_elem(&pythons, &process);
    if (!to || !r || !p || i >= SV_STACK_PYTHON_MAX || !w->frame)
        return 1;
    /* masked, so that the kernel sees the bounds: behind the addresses */
    __u64 at = (w->at & 0x7f8) + (i & (SV_STACK_PYTHON_MAX - 1)) * sizeof(struct sv_wire_pyframe);
    struct sv_wire_pyframe *f = (void *)(to->bytes + at);
    w->frame = take_frame(r, p, w->frame, f);
    know_code(f->code, process, w->tgid, w->tid, room);
    w->n = i + 1;
    return !w->frame;
}

/* Writes the frames of Python at this place of the room, innermost first. Returns the bytes. */
__noinline __u64 take_python(__u32 room, __u64 at, __u32 process, __u32 tgid, __u32 tid)
{
    struct stack_room *to = stack_room(room);
    struct python_room *r = bpf_map_lookup_elem(&python_rooms, &room);
    const struct sv_wire_python *p = bpf_map_lookup_elem(&pythons, &process);
    if (!to || !r || !p || at > 0x7f8)
        return 0;
    r->process = BPF_CORE_READ(current_task(), group_leader, start_time) << 22 ^ tgid;
    __u64 frame = python_thread(process);
    if (frame && p->cframe != SV_PYTHON_NONE)
        frame = user_word(frame + p->cframe);
    if (frame)
        frame = user_word(frame + p->frame);
    struct python_walk w = {
        .frame = frame, .at = at, .room = room, .process = process, .tgid = tgid, .tid = tid};
    REPEAT(SV_STACK_PYTHON_MAX, step_python, &w);
    to->stack.n_python = (__u16)w.n;
    to->stack.has_more_python = w.frame != 0;
    return (w.n & 0xff) * sizeof(struct sv_wire_pyframe);
}

#else
#define STACK_HAS_PYTHON 0
#endif

#endif
