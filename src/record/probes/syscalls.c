/* Probe `syscalls`: a system call is a slice with all its arguments on the row `system calls` of
 * its thread.
 *
 * Calls that open, close and copy descriptors also change the table of descriptors of their
 * process, from which the others get their paths. Trusts no record: numbers are checked, texts need
 * their NUL, descriptors out of range have no path. */
#include "record/bpf/syscalls.h"
#include "record/decode/calls.h"
#include "record/decode/peers.h"
#include "record/decode/short_calls.h"
#include "record/decode/state.h"
#include "record/probes/sched.h"
#include "record/spool/scout.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdio.h>
#include <string.h>

#define CALL_MAX_NS ((uint64_t)1 << 56) /* two years: a longer one is no call, and sums stay sums */

struct calls {
    const struct sv_call *by_number[SV_WIRE_CALLS_MAX];
    sv_str names[SV_WIRE_CALLS_MAX];
    bool writes[SV_WIRE_CALLS_MAX]; /* transfers that go out */
    struct sv_peers peers;
};

static const struct calls *calls_of(const struct sv_decode *d)
{
    return d->states[SV_PROBE_syscalls];
}

/* ---- descriptors ---- */

static struct sv_proc *process_of(struct sv_decode *d, const struct sv_wire_head *h)
{
    uint64_t who = (uint64_t)h->tgid << 32 | h->tid;
    if (who != d->recent.who || !d->recent.process) {
        d->recent = (struct sv_decode_recent){.who = who, .process = sv_decode_process(d, h->tgid)};
        d->recent.process->is_threaded |= h->tid != h->tgid;
    }
    return d->recent.process;
}

/* After process_of(). */
static struct sv_traced_thread *thread_of(struct sv_decode *d, const struct sv_wire_head *h)
{
    if (!d->recent.thread)
        d->recent.thread = sv_tree_thread(&d->tree, h->tgid, h->tid);
    return d->recent.thread;
}

/* The files of a call. */
struct paths {
    struct sv_file *file, *second; /* held until the record is done */
    const struct sv_file *root;    /* of the process, where it is not the recorder's; NULL */
    struct sv_fd *now;             /* the descriptor, if it still is that file; NULL */
    int64_t offset2;               /* in the second one; -1: not known */
};

static struct sv_fd_when when_of(const struct sv_wire_call *c)
{
    return (struct sv_fd_when){
        .start_ns = c->start_ns, .inode = c->inode, .is_bad = c->ret == -EBADF};
}

/* The directory that a path starts from. Its inode is not known. */
static const struct sv_file *start_of(struct sv_proc *p, int64_t fd, bool has_fd, uint64_t start_ns)
{
    struct sv_fd *now;
    if (!has_fd || (int32_t)fd == AT_FDCWD)
        return p->cwd;
    return sv_fd_find(p, fd, (struct sv_fd_when){.start_ns = start_ns}, &now);
}

static void close_by_time(struct sv_decode *d, struct sv_proc *p, int64_t fd,
                          const struct sv_wire_call *c)
{
    const struct sv_fd_when when = {.start_ns = c->start_ns};
    struct sv_fd *now;
    sv_fd_find(p, fd, when, &now);
    sv_fd_close(&d->tree, p, fd, when, now, c->head.ts_ns);
}

static void apply_close_range(struct sv_decode *d, struct sv_proc *p, const struct sv_wire_call *c)
{
    struct sv_fd *at;
    for (size_t i = (uint32_t)c->fd; (at = sv_fds_next(p, &i)) && i <= c->aux; i++) {
        if (!(c->size & CLOSE_RANGE_CLOEXEC))
            close_by_time(d, p, (int64_t)i, c);
        else if (at->since_ns <= c->start_ns)
            at->closes_on_exec = true;
    }
}

/* A new descriptor. `file` may be NULL: it has no path, or that is not known. */
static void apply_open(struct sv_decode *d, struct sv_proc *p, const struct sv_wire_call *c,
                       struct sv_file *file, bool closes_on_exec)
{
    const struct sv_call *call = calls_of(d)->by_number[c->head.what];
    if (file)
        file->refs++;
    sv_fd_open(&d->tree, p, c->ret,
               (struct sv_fd){.file = file,
                              .since_ns = c->head.ts_ns,
                              .inode = c->inode,
                              .closes_on_exec = closes_on_exec},
               call->effect == SV_EFFECT_DUP || call->effect == SV_EFFECT_DUP2);
}

/* Two descriptors at once, neither of which has a path. */
static void apply_pair(struct sv_decode *d, struct sv_proc *p, const struct sv_wire_call *c)
{
    const struct sv_fd is = {.since_ns = c->head.ts_ns};
    sv_fd_open(&d->tree, p, (int32_t)c->size, is, false);
    sv_fd_open(&d->tree, p, (int32_t)(c->size >> 32), is, false);
}

static void apply_fcntl(struct sv_decode *d, struct sv_proc *p, const struct sv_wire_call *c,
                        const struct paths *x)
{
    if (c->aux == F_DUPFD || c->aux == F_DUPFD_CLOEXEC)
        apply_open(d, p, c, x->file, c->aux == F_DUPFD_CLOEXEC);
    else if (c->aux == F_SETFD && x->now)
        x->now->closes_on_exec = c->size & FD_CLOEXEC;
}

/* Its working directory, or its root. */
static void set_folder(struct sv_decode *d, struct sv_file **folder, struct sv_file *to)
{
    if (!to)
        return;
    to->refs++;
    sv_file_put(&d->tree, *folder);
    *folder = to;
}

/* What a successful call changes. */
static void apply(struct sv_decode *d, struct sv_proc *p, const struct sv_call *call,
                  const struct sv_wire_call *c, const struct paths *x)
{
    switch (call->effect) {
    case SV_EFFECT_OPEN:
    case SV_EFFECT_OPEN2: apply_open(d, p, c, x->file, c->aux & O_CLOEXEC); break;
    case SV_EFFECT_CLOSE: sv_fd_close(&d->tree, p, c->fd, when_of(c), x->now, c->head.ts_ns); break;
    case SV_EFFECT_DUP:
    case SV_EFFECT_DUP2:
        if (c->ret != c->fd)
            apply_open(d, p, c, x->file, c->aux & O_CLOEXEC);
        break;
    case SV_EFFECT_FCNTL: apply_fcntl(d, p, c, x); break;
    case SV_EFFECT_CLOSE_RANGE: apply_close_range(d, p, c); break;
    case SV_EFFECT_CHDIR:
    case SV_EFFECT_FCHDIR: set_folder(d, &p->cwd, x->file); break;
    case SV_EFFECT_CHROOT:
        if (p->root || (x->file && x->file->len > 1)) /* else it is the one that it has */
            set_folder(d, &p->root, x->file);
        break;
    case SV_EFFECT_MEMFD: apply_open(d, p, c, x->file, c->aux & 1); break; /* MFD_CLOEXEC */
    case SV_EFFECT_SOCKET: apply_open(d, p, c, NULL, false); break;
    case SV_EFFECT_PAIR: apply_pair(d, p, c); break;
    default: break;
    }
}

/* ---- calls ---- */

static struct sv_file *named_file(struct sv_decode *d, struct sv_proc *p,
                                  const struct sv_call *call, const struct sv_wire_call *c,
                                  const char *text, size_t len)
{
    const struct sv_file *dir = start_of(p, c->fd, call->fd != SV_WIRE_NONE, c->start_ns);
    char name[SV_WIRE_PATH_MAX + 32];
    if (call->effect == SV_EFFECT_MEMFD) {
        int n = snprintf(name, sizeof name, "memfd:%.*s", (int)len, text);
        return sv_tree_file(&d->tree, NULL, name, (size_t)n);
    }
    if (call->effect != SV_EFFECT_OPEN || (c->aux & O_TMPFILE) != O_TMPFILE || c->ret < 0)
        return sv_tree_file_of(&d->tree, p, dir, text, len);
    /* A file without a name, in the folder that was opened: as /proc calls it. */
    int n = snprintf(name, sizeof name, "%.*s/#%llu", (int)len, text, (unsigned long long)c->inode);
    return sv_tree_file_of(&d->tree, p, dir, name, (size_t)n);
}

static void call_file(struct sv_decode *d, struct sv_proc *p, const struct sv_wire_call *c,
                      struct paths *x)
{
    struct sv_fd *at = sv_fd_at(p, c->fd);
    if (!sv_fd_is_now(at, c->start_ns, c->inode)) {
        x->file = sv_decode_descriptor(d, p, c->fd, when_of(c), &x->now);
        return;
    }
    x->now = at;
    x->file = at->file;
    x->file->refs++;
}

static struct paths paths_of(struct sv_decode *d, struct sv_proc *p, const struct sv_call *call,
                             const struct sv_wire_call *c, const char *text, size_t left)
{
    struct paths x = {.offset2 = -1, .root = call->path != SV_WIRE_NONE ? p->root : NULL};
    if (call->path == SV_WIRE_NONE) {
        struct sv_fd *ignored;
        if (call->fd != SV_WIRE_NONE)
            call_file(d, p, c, &x);
        if (call->places)
            x.second = sv_decode_descriptor(d, p, (int32_t)c->aux,
                                            (struct sv_fd_when){.start_ns = c->start_ns}, &ignored);
        if (call->places && left >= sizeof x.offset2)
            memcpy(&x.offset2, text, sizeof x.offset2);
        return x;
    }
    size_t len = strnlen(text, left);
    if (!(c->head.flags & SV_WIRE_NO_PATH) && len < left)
        x.file = named_file(d, p, call, c, text, len);
    if (call->path2 == SV_WIRE_NONE || len >= left)
        return x;
    text += len + 1;
    left -= len + 1;
    len = strnlen(text, left);
    if (len == left)
        return x;
    bool is_raw = call->effect == SV_EFFECT_SYMLINK;
    const struct sv_file *dir =
        is_raw ? NULL : start_of(p, (int32_t)c->aux, call->aux != SV_WIRE_NONE, c->start_ns);
    x.second = is_raw ? sv_tree_file(&d->tree, NULL, text, len)
                      : sv_tree_file_of(&d->tree, p, dir, text, len);
    return x;
}

static bool is_transfer(const struct sv_call *call)
{
    return call->sense == SV_SENSE_TRANSFER || call->sense == SV_SENSE_VECTOR;
}

/* The kernel takes the mode of open only where a file may be made; elsewhere the argument is
 * whatever was in the register. */
static bool has_mode(const struct sv_call *call, const struct sv_wire_call *c)
{
    return call->sense == SV_SENSE_MODE ||
           (call->sense == SV_SENSE_FLAGS &&
            (c->aux & O_CREAT || (c->aux & O_TMPFILE) == O_TMPFILE));
}

static void put_result(struct sv_decode *d, struct sv_batch *b, const struct sv_call *call,
                       const struct sv_wire_call *c)
{
    const struct sv_kernel_words *s = &d->words;
    if (is_transfer(call) && call->size != SV_WIRE_NONE && c->size <= INT64_MAX &&
        (int64_t)c->size != c->ret)
        sv_batch_int(b, s->requested, (int64_t)c->size);
    if (call->sense == SV_SENSE_RANGE || call->sense == SV_SENSE_MAP)
        sv_batch_int(b, s->length, (int64_t)c->size);
    if (call->sense == SV_SENSE_FLAGS && c->aux != 0)
        sv_batch_int(b, s->flags, c->aux);
    if (has_mode(call, c))
        sv_batch_int(b, s->mode, (int64_t)(c->size & 07777));
    if (c->offset >= 0 && (call->offset != SV_WIRE_NONE || call->has_position || call->places))
        sv_batch_int(b, s->offset, c->offset);
    if (c->head.flags & SV_WIRE_UNFINISHED) {
        return;
    } else if (c->ret < 0 && c->ret >= -4095) {
        sv_batch_int(b, s->error, -c->ret);
    } else if (is_transfer(call)) {
        sv_batch_int(b, s->bytes, c->ret);
    } else if (call->sense == SV_SENSE_SEEK) {
        sv_batch_int(b, s->offset, c->ret);
    } else if (call->sense == SV_SENSE_RET) {
        sv_batch_int(b, s->ret, c->ret);
    } else if (call->sense == SV_SENSE_MAP) {
        struct sv_arg *a = sv_batch_arg(b);
        a->key = s->address;
        a->type = SV_ARG_POINTER;
        a->u = (uint64_t)c->ret;
    }
}

static bool opens(const struct sv_call *call)
{
    return call->effect == SV_EFFECT_OPEN || call->effect == SV_EFFECT_OPEN2;
}

/* `text`, `len`: what follows the record. */
static void put_call(struct sv_decode *d, struct sv_batch *b, const struct sv_call *call,
                     const struct sv_wire_call *c, const struct paths *x, const char *text,
                     size_t len)
{
    struct sv_traced_thread *thread = thread_of(d, &c->head);
    int64_t start = (int64_t)c->start_ns, end = (int64_t)c->head.ts_ns;
    sv_str name = calls_of(d)->names[call->nr];
    bool is_whole = !(c->head.flags & SV_WIRE_UNFINISHED);
    if (is_whole)
        sv_states_ran(d, b, thread, c->start_ns, c->head.ts_ns);
    struct sv_event *e = sv_batch_put(b, is_whole ? SV_SLICE : SV_BEGIN, start, thread->calls, name,
                                      d->words.cat_syscall);
    e->dur_ns = is_whole ? end - start : 0;
    bool is_open = opens(call);
    if (is_open ? c->ret >= 0 : call->fd != SV_WIRE_NONE && call->path == SV_WIRE_NONE)
        sv_batch_int(b, d->words.fd, is_open ? c->ret : c->fd);
    if (x->file)
        sv_decode_path(b, d->words.path, x->file->path, x->file->len);
    if (x->root)
        sv_decode_path(b, d->words.root, x->root->path, x->root->len);
    if (call->places)
        sv_batch_int(b, d->words.fd2, (int32_t)c->aux);
    if (x->second)
        sv_decode_path(b, d->words.path2, x->second->path, x->second->len);
    put_result(d, b, call, c);
    if (x->offset2 >= 0)
        sv_batch_int(b, d->words.offset2, x->offset2);
    if (c->head.flags & SV_WIRE_PEER)
        sv_peers_put(&calls_of(d)->peers, d, b, &c->head, text, len, call->fd != SV_WIRE_NONE);
    sv_batch_finish(b, e);
    thread->end_ns = end;
}

static void add_sums(struct sv_decode *d, struct sv_proc *p, const struct sv_call *call,
                     const struct sv_wire_call *c, const struct paths *x)
{
    struct sv_file *f = x->file;
    int64_t dur = (int64_t)(c->head.ts_ns - c->start_ns);
    uint64_t bytes = is_transfer(call) && c->ret > 0 ? (uint64_t)c->ret : 0;
    bool writes = calls_of(d)->writes[call->nr];
    p->calls++;
    p->time_ns += dur;
    p->bytes_read += writes ? 0 : bytes;
    p->bytes_written += writes || call->places ? bytes : 0;
    if (call->places && x->second) {
        x->second->writes++;
        x->second->written_bytes += bytes;
    }
    if (!f)
        return;
    f->opens += opens(call);
    f->reads += is_transfer(call) && !writes;
    f->writes += writes;
    f->read_bytes += writes ? 0 : bytes;
    f->written_bytes += writes ? bytes : 0;
    f->errors += c->ret < 0;
    f->time_ns += dur;
    f->longest_ns = dur > f->longest_ns ? dur : f->longest_ns;
}

/* --sum-calls: one of many. Calls that wait for a peer are events whatever they took. */
static bool is_summed(const struct sv_decode *d, const struct sv_wire_call *c)
{
    return d->short_calls && !(c->head.flags & (SV_WIRE_UNFINISHED | SV_WIRE_PEER)) &&
           c->head.ts_ns - c->start_ns < d->options.sum_below_ns;
}

static void sum_call(struct sv_decode *d, struct sv_batch *b, const struct sv_proc *p,
                     const struct sv_call *call, const struct sv_wire_call *c,
                     const struct paths *x)
{
    struct sv_traced_thread *thread = thread_of(d, &c->head);
    const struct sv_short_call one = {.process = p->track,
                                      .name = calls_of(d)->names[call->nr],
                                      .path = x->file ? x->file->path : NULL,
                                      .path_len = x->file ? x->file->len : 0,
                                      .start_ns = (int64_t)c->start_ns,
                                      .end_ns = (int64_t)c->head.ts_ns,
                                      .bytes = is_transfer(call) && c->ret > 0 ? (uint64_t)c->ret
                                                                               : 0,
                                      .failed = c->ret < 0 && c->ret >= -4095};
    sv_states_ran(d, b, thread, c->start_ns, c->head.ts_ns);
    sv_short_calls_add(d->short_calls, &one);
    thread->end_ns = one.end_ns;
}

/* Faults on its pages will ask for its path, and stacks for its functions. */
static void learn_mapped(struct sv_decode *d, const struct sv_wire_call *c, struct sv_file *f)
{
    const struct sv_mapped_code code = {.ts_ns = (int64_t)c->head.ts_ns,
                                        .start = (uint64_t)c->ret,
                                        .bytes = c->size,
                                        .offset = c->offset > 0 ? (uint64_t)c->offset : 0,
                                        .inode = c->inode,
                                        .device = c->aux};
    if (c->head.flags & SV_WIRE_MAPS_CODE && c->ret > 0 && c->inode)
        sv_symbols_map(d->symbols, c->head.tgid, &code, f->path);
    if (c->inode && c->aux && f->path[0] == '/')
        sv_inodes_learn(&d->inodes, &d->tree, c->aux, c->inode, f);
    else if (d->can_ask_procfs)
        sv_inodes_identify(&d->inodes, &d->tree, f);
}

/* A call of a thread of libstave's, or on one of its files. */
static bool is_own(struct sv_decode *d, const struct sv_wire_head *h, const struct paths *x)
{
    return sv_decode_hides(d, x->file) ||
           (d->tree.has_own_threads && !d->options.shows_own && thread_of(d, h)->is_own);
}

static bool decode_call(struct sv_decode *d, void *state, struct sv_batch *b,
                        const struct sv_wire_head *record, uint32_t size)
{
    struct calls *s = state;
    const struct sv_call *call = record->what < SV_WIRE_CALLS_MAX ? s->by_number[record->what]
                                                                  : NULL;
    struct sv_wire_call whole;
    const struct sv_wire_call *c = &whole;
    const char *text;
    if (!call || !sv_call_whole(record, size, &whole, &text) || c->head.ts_ns < c->start_ns ||
        c->head.ts_ns - c->start_ns > CALL_MAX_NS)
        return false;
    struct sv_proc *p = process_of(d, &c->head);
    size_t left = size - (size_t)(text - (const char *)record);
    struct paths x = paths_of(d, p, call, c, text, left);
    struct sv_wire_peer peer;
    if (c->head.flags & SV_WIRE_PEER && sv_peer_read(&peer, text, left))
        sv_peers_note(&s->peers, &peer, c->head.tgid);
    bool is_shown =
        call->group != SV_CALLS_FDS && !(c->head.flags & SV_WIRE_STATE_ONLY) &&
        (!d->hidden || c->head.tgid != d->hidden) && !is_own(d, &c->head, &x) &&
        (!d->prefix_len || sv_decode_is_below(d, x.file) || sv_decode_is_below(d, x.second));
    if (is_shown) {
        if (is_summed(d, c))
            sum_call(d, b, p, call, c, &x);
        else
            put_call(d, b, call, c, &x, text, left);
        add_sums(d, p, call, c, &x);
    }
    if (call->effect == SV_EFFECT_MAP && x.file)
        learn_mapped(d, c, x.file);
    /* A close that fails has closed all the same, unless there was nothing to close. */
    if (!(c->head.flags & SV_WIRE_UNFINISHED) &&
        (c->ret >= 0 || (call->effect == SV_EFFECT_CLOSE && c->ret != -EBADF)))
        apply(d, p, call, c, &x);
    sv_file_put(&d->tree, x.file);
    sv_file_put(&d->tree, x.second);
    return true;
}

static void open_calls(struct sv_decode *d, void *state)
{
    struct calls *s = state;
    sv_calls_index(s->by_number);
    for (size_t i = 0; i < sv_n_calls; i++) {
        s->names[sv_calls[i].nr] = sv_dict_cstr(d->source.dict, sv_calls[i].name);
        s->writes[sv_calls[i].nr] = sv_call_writes(&sv_calls[i]);
    }
}

static void close_calls(struct sv_decode *d, void *state)
{
    struct calls *s = state;
    (void)d;
    sv_peers_fini(&s->peers);
}

const struct sv_probe sv_probe_syscalls = {
    .name = "syscalls",
    .cat = SV_CAT_SYSCALL,
    .records = {{SV_WIRE_CALL, offsetof(struct sv_wire_short_call, offset), "system calls",
                 decode_call}},
    .option = {.name = "no-io",
               .help = "do not record system calls",
               .topic = "System calls",
               .turns_off = true},
    .sums = {{SV_SUM_EVENTS, "system calls", true},
             {SV_SUM_UNFINISHED, "calls had not ended", false}},
    .less = "fewer --calls or a --min-latency",
    .docs = {"system calls", "`system calls` below the thread",
             "descriptor, full path, bytes, offset, errno; of sockets the peer; `--calls` chooses "
             "groups"},
    .state_size = sizeof(struct calls),
    .open = open_calls,
    .close = close_calls,
    .ends_gathering = true,
    .can_wait = sv_scout_call,
};
