/* Records to events: one system call is a slice with all its arguments on the row `system calls` of its thread.
 *
 * Called by the recorder once per round, and by tests with recorded bytes. Trusts no record: sizes are checked, texts need their NUL,
 * numbers out of range stay without a path. Must not block on anything but /proc. */
#include "record/decode/decode.h"
#include "record/decode/inodes.h"
#include "record/decode/samples.h"
#include "record/decode/states.h"
#include "record/decode/uring.h"
#include "record/sample/disks.h"
#include "record/sample/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EVENTS_PER_RECORD = 3, LOSSES_MAX = 256 }; /* a call, and the misses before it */
#define CALL_MAX_NS ((uint64_t)1 << 56) /* two years: a longer one is no call, and sums stay sums */

struct loss {
    sv_track track;
    sv_str name;
    uint64_t n;
    int64_t from_ns, to_ns;
};

/* Pages that came one after the other. */
struct misses {
    int64_t ts_ns;
    uint32_t tgid, tid, device;
    uint64_t inode, offset, bytes;
};

struct names {
    sv_str cat, fd, path, path2, requested, bytes, offset, length, address, flags, ret, error;
    sv_str process, exit, exec, fork, child, code, cgroup, container, inner_pid, inner_namespace;
    sv_str page_cache, add, inode, fault, file;
};

/* Who made the call before: mostly the one who made this. Good only until a record of another kind, or the next batch. */
struct recent {
    uint64_t who;                    /* process << 32 | thread */
    struct sv_proc *process;         /* NULL: nobody */
    struct sv_traced_thread *thread; /* NULL: not asked for yet */
};

struct sv_decode {
    struct sv_source source;
    struct sv_decode_options options;
    struct sv_krings rings;
    struct sv_tree tree;
    struct sv_disks disks;
    struct sv_states states;
    struct sv_samples samples;
    struct sv_uring uring;
    struct sv_inodes inodes;
    const struct sv_call *by_number[SV_WIRE_CALLS_MAX];
    sv_str call_names[SV_WIRE_CALLS_MAX];
    bool writes[SV_WIRE_CALLS_MAX]; /* transfers that go out */
    struct names s;
    struct misses misses;
    struct recent recent;
    uint32_t hidden; /* process that has not become the command yet; 0: none */
    struct loss losses[LOSSES_MAX];
    size_t n_losses;
    struct sv_decode_totals sums;
    size_t prefix_len;
};

/* ---- arguments ---- */

static void put_path(struct sv_decode *d, struct sv_batch *b, sv_str key, const char *text,
                     size_t len)
{
    if (d->options.redact)
        d->options.redact(d->options.redact_ctx, b, text, len, &text, &len);
    sv_batch_str(b, key, text, len);
}

static struct sv_event *put_event(struct sv_batch *b, unsigned kind, int64_t ts_ns, sv_track track,
                                  sv_str name, sv_str cat)
{
    struct sv_event *e = sv_batch_event(b);
    e->kind = (uint8_t)kind;
    e->ts_ns = ts_ns;
    e->track = track;
    e->name = name;
    e->cat = cat;
    return e;
}

/* ---- the book ---- */

static struct sv_proc *known_process(struct sv_decode *d, uint32_t pid)
{
    bool is_new;
    struct sv_proc *p = sv_tree_process(&d->tree, pid, &is_new);
    if (!p->has_snapshot && d->options.asks_procfs)
        sv_procfs_complete(&d->tree, pid);
    p->has_snapshot = true;
    return p;
}

static struct sv_proc *process_of(struct sv_decode *d, const struct sv_wire_head *h)
{
    uint64_t who = (uint64_t)h->tgid << 32 | h->tid;
    if (who != d->recent.who || !d->recent.process) {
        d->recent = (struct recent){.who = who, .process = known_process(d, h->tgid)};
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
    struct sv_fd *now;             /* the descriptor, if it still is that file; NULL */
    bool are_told;                 /* by an earlier event, as far as the file goes */
};

static struct sv_fd_when when_of(const struct sv_wire_call *c)
{
    return (struct sv_fd_when){
        .start_ns = c->start_ns, .inode = c->inode, .is_bad = c->ret == -EBADF};
}

/* The directory that a path starts from. Its inode is not told. */
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
    for (size_t i = (uint32_t)c->fd; i < p->open.n_fds && i <= c->aux; i++) {
        struct sv_fd *at = &p->open.fds[i];
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
    const struct sv_call *call = d->by_number[c->head.what];
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

static void set_cwd(struct sv_decode *d, struct sv_proc *p, struct sv_file *to)
{
    if (!to)
        return;
    to->refs++;
    sv_file_put(&d->tree, p->cwd);
    p->cwd = to;
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
    case SV_EFFECT_FCHDIR: set_cwd(d, p, x->file); break;
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
    return sv_tree_file(&d->tree, dir, text, len);
}

/* The file of a descriptor, held. What the book does not know /proc may: descriptors come by messages and by io_uring, too. */
static struct sv_file *descriptor_file(struct sv_decode *d, struct sv_proc *p, int64_t fd,
                                       struct sv_fd_when when, struct sv_fd **now)
{
    struct sv_file *f = sv_fd_find(p, fd, when, now);
    if (f) {
        f->refs++;
        return f;
    }
    if (fd < 0 || !d->options.asks_procfs || p->is_ended)
        return NULL;
    f = sv_procfs_descriptor(&d->tree, p->pid, fd, when.inode);
    if (f) {
        f->refs++;
        sv_fd_open(&d->tree, p, fd,
                   (struct sv_fd){.file = f, .since_ns = when.start_ns, .inode = when.inode},
                   false);
        *now = sv_fd_at(p, fd);
    }
    return f;
}

static void call_file(struct sv_decode *d, struct sv_proc *p, const struct sv_wire_call *c,
                      struct paths *x)
{
    struct sv_fd *at = sv_fd_at(p, c->fd);
    if (!sv_fd_is_now(at, c->start_ns, c->inode)) {
        x->file = descriptor_file(d, p, c->fd, when_of(c), &x->now);
        return;
    }
    x->now = at;
    x->file = at->file;
    x->file->refs++;
}

static struct paths paths_of(struct sv_decode *d, struct sv_proc *p, const struct sv_call *call,
                             const struct sv_wire_call *c, uint32_t size)
{
    struct paths x = {0};
    if (call->path == SV_WIRE_NONE) {
        if (call->fd != SV_WIRE_NONE)
            call_file(d, p, c, &x);
        return x;
    }
    const char *text = (const char *)(c + 1);
    size_t left = size - sizeof *c, len = strnlen(text, left);
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
    x.second = sv_tree_file(&d->tree, dir, text, len);
    return x;
}

static bool is_transfer(const struct sv_call *call)
{
    return call->sense == SV_SENSE_TRANSFER || call->sense == SV_SENSE_VECTOR;
}

static void put_result(struct sv_decode *d, struct sv_batch *b, const struct sv_call *call,
                       const struct sv_wire_call *c)
{
    const struct names *s = &d->s;
    if (is_transfer(call) && call->size != SV_WIRE_NONE && c->size <= INT64_MAX &&
        (int64_t)c->size != c->ret)
        sv_batch_int(b, s->requested, (int64_t)c->size);
    if (call->sense == SV_SENSE_RANGE || call->sense == SV_SENSE_MAP)
        sv_batch_int(b, s->length, (int64_t)c->size);
    if (call->sense == SV_SENSE_FLAGS && c->aux != 0)
        sv_batch_int(b, s->flags, c->aux);
    if (c->offset >= 0 && (call->offset != SV_WIRE_NONE || call->has_position))
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

static bool has_descriptor(const struct sv_call *call, const struct sv_wire_call *c)
{
    return call->path == SV_WIRE_NONE && call->fd != SV_WIRE_NONE && c->fd >= 0;
}

/* The event that was just made has told which file the descriptor is. One on what it was before is taken for what it is by whoever reads
 * the trace, so then it is told again. */
static void note_told(struct sv_fd *at, const struct sv_fd *told)
{
    if (at)
        at->is_told = at == told;
}

static void put_call(struct sv_decode *d, struct sv_batch *b, const struct sv_call *call,
                     const struct sv_wire_call *c, const struct paths *x)
{
    struct sv_traced_thread *thread = thread_of(d, &c->head);
    int64_t start = (int64_t)c->start_ns, end = (int64_t)c->head.ts_ns;
    sv_str name = d->call_names[call->nr];
    bool is_whole = !(c->head.flags & SV_WIRE_UNFINISHED);
    struct sv_event *e =
        put_event(b, is_whole ? SV_SLICE : SV_BEGIN, start, thread->calls, name, d->s.cat);
    e->dur_ns = is_whole ? end - start : 0;
    bool is_open = opens(call);
    if (is_open ? c->ret >= 0 : call->fd != SV_WIRE_NONE && call->path == SV_WIRE_NONE)
        sv_batch_int(b, d->s.fd, is_open ? c->ret : c->fd);
    if (x->file && !x->are_told)
        put_path(d, b, d->s.path, x->file->path, x->file->len);
    else if (!x->are_told && d->options.tells_once && has_descriptor(call, c))
        put_path(d, b, d->s.path, "", 0); /* or a reader would take it for an earlier one */
    if (x->second)
        put_path(d, b, d->s.path2, x->second->path, x->second->len);
    put_result(d, b, call, c);
    sv_batch_finish(b, e);
    thread->end_ns = end;
}

static bool is_write(const struct sv_call *call)
{
    return is_transfer(call) &&
           (strstr(call->name, "write") || strncmp(call->name, "send", 4) == 0);
}

static void add_sums(struct sv_decode *d, struct sv_proc *p, const struct sv_call *call,
                     const struct sv_wire_call *c, struct sv_file *f)
{
    int64_t dur = (int64_t)(c->head.ts_ns - c->start_ns);
    uint64_t bytes = is_transfer(call) && c->ret > 0 ? (uint64_t)c->ret : 0;
    bool writes = d->writes[call->nr];
    d->sums.calls++;
    d->sums.unfinished += (c->head.flags & SV_WIRE_UNFINISHED) != 0;
    p->calls++;
    p->time_ns += dur;
    p->bytes_read += writes ? 0 : bytes;
    p->bytes_written += writes ? bytes : 0;
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

static bool is_below(const struct sv_decode *d, const struct sv_file *f)
{
    return f && f->len >= d->prefix_len && memcmp(f->path, d->options.prefix, d->prefix_len) == 0;
}

static void on_call(struct sv_decode *d, struct sv_batch *b, const struct sv_wire_call *c,
                    uint32_t size)
{
    const struct sv_call *call = c->head.what < SV_WIRE_CALLS_MAX ? d->by_number[c->head.what]
                                                                  : NULL;
    if (size < sizeof *c || !call || c->head.ts_ns < c->start_ns ||
        c->head.ts_ns - c->start_ns > CALL_MAX_NS) {
        d->sums.unknown++;
        return;
    }
    struct sv_proc *p = process_of(d, &c->head);
    struct paths x = paths_of(d, p, call, c, size);
    bool is_shown = call->group != SV_CALLS_BOOK && !(c->head.flags & SV_WIRE_STATE_ONLY) &&
                    (!d->hidden || c->head.tgid != d->hidden) &&
                    (!d->prefix_len || is_below(d, x.file) || is_below(d, x.second));
    if (is_shown) {
        x.are_told = d->options.tells_once && x.now && x.now->is_told;
        put_call(d, b, call, c, &x);
        add_sums(d, p, call, c, x.file);
    }
    if (call->sense == SV_SENSE_MAP && x.file && d->options.asks_procfs)
        sv_inodes_identify(&d->inodes, &d->tree, x.file); /* faults will ask */
    bool is_told = is_shown && d->options.tells_once;
    if (is_told && !opens(call))
        note_told(sv_fd_at(p, call->path == SV_WIRE_NONE ? c->fd : -1), x.now);
    /* A close that fails has closed all the same, unless there was nothing to close. */
    if (!(c->head.flags & SV_WIRE_UNFINISHED) &&
        (c->ret >= 0 || (call->effect == SV_EFFECT_CLOSE && c->ret != -EBADF)))
        apply(d, p, call, c, &x);
    if (is_told && opens(call))
        note_told(sv_fd_at(p, c->ret), sv_fd_at(p, c->ret));
    sv_file_put(&d->tree, x.file);
    sv_file_put(&d->tree, x.second);
}

/* ---- births, names, deaths ---- */

/* What a process in a container calls itself, beside the number that the recorder knows it by. */
static void put_inner(struct sv_decode *d, struct sv_batch *b, uint32_t pid)
{
    const struct sv_proc *p = sv_tree_find(&d->tree, pid);
    if (!p || !p->inner_pid)
        return;
    sv_batch_int(b, d->s.inner_pid, p->inner_pid);
    sv_batch_int(b, d->s.inner_namespace, p->inner_namespace);
}

static void on_fork(struct sv_decode *d, struct sv_batch *b, const struct sv_wire_fork *f)
{
    struct sv_proc *parent = known_process(d, f->head.tgid);
    if (f->tgid == f->head.tgid) {
        parent->is_threaded = true;
    } else {
        sv_tree_fork(&d->tree, f->head.tgid, f->tgid);
        sv_symbols_fork(d->samples.symbols, f->head.tgid, f->tgid);
        struct sv_event *e = put_event(b, SV_INSTANT, (int64_t)f->head.ts_ns,
                                       sv_tree_thread(&d->tree, f->head.tgid, f->head.tid)->calls,
                                       d->s.fork, d->s.process);
        sv_batch_int(b, d->s.child, f->tgid);
        if (f->inner_tgid)
            sv_tree_set_inner(&d->tree, sv_tree_find(&d->tree, f->tgid), f->inner_tgid,
                              f->inner_namespace);
        put_inner(d, b, f->tgid);
        sv_batch_finish(b, e);
        d->sums.forks++;
    }
    sv_tree_name_thread(&d->tree, f->tgid, f->tid, f->comm);
}

/* Where the process is, and which container that is: a name of 64 hexadecimal digits. */
static void put_cgroup(struct sv_decode *d, struct sv_batch *b, uint32_t pid)
{
    char text[1024];
    size_t n = d->options.asks_procfs ? sv_procfs_cgroup(pid, text, sizeof text) : 0;
    if (n == 0)
        return;
    put_path(d, b, d->s.cgroup, sv_batch_text(b, text, n), n);
    for (const char *at = text; *at; at++) {
        size_t digits = strspn(at, "0123456789abcdef");
        if (digits == 64) {
            sv_batch_str(b, d->s.container, sv_batch_text(b, at, 64), 64);
            return;
        }
        at += digits ? digits - 1 : 0;
    }
}

static void on_exec(struct sv_decode *d, struct sv_batch *b, const struct sv_wire_head *h,
                    uint32_t size)
{
    const char *file = (const char *)(h + 1);
    size_t left = size - sizeof *h, len = strnlen(file, left);
    if (len == left)
        return;
    struct sv_proc *p = known_process(d, h->tgid);
    const char *base = memrchr(file, '/', len);
    base = base ? base + 1 : file;
    d->hidden = d->hidden == h->tgid ? 0 : d->hidden;
    sv_fds_exec(&d->tree, p);
    sv_symbols_exec(d->samples.symbols, h->tgid);
    char command[1024];
    const char *words = file + len + 1;
    size_t words_len = left - len - 1;
    if (words_len == 0 && d->options.asks_procfs) { /* plain tracepoints do not tell them */
        words_len = sv_procfs_command(h->tgid, command, sizeof command);
        words = command;
        sv_procfs_inner(&d->tree, p);
    }
    if (words_len == 0) { /* it is gone: what it was before is not its command */
        words = file;
        words_len = len;
    }
    sv_tree_name_process(&d->tree, p, base, words, words_len);
    sv_tree_name_thread(&d->tree, h->tgid, h->tid, p->name);
    struct sv_event *e = put_event(b, SV_INSTANT, (int64_t)h->ts_ns,
                                   sv_tree_thread(&d->tree, h->tgid, h->tid)->calls, d->s.exec,
                                   d->s.process);
    put_path(d, b, d->s.path, file, len);
    put_inner(d, b, h->tgid);
    put_cgroup(d, b, h->tgid);
    sv_batch_finish(b, e);
    struct sv_file *program = sv_tree_file(&d->tree, p->cwd, file, len);
    if (program && d->options.asks_procfs)
        sv_inodes_identify(&d->inodes, &d->tree, program);
    sv_file_put(&d->tree, program);
    d->sums.execs++;
}

static void on_exit_record(struct sv_decode *d, struct sv_batch *b, const struct sv_wire_exit *x)
{
    struct sv_proc *p = sv_tree_find(&d->tree, x->head.tgid);
    int64_t now = (int64_t)x->head.ts_ns;
    if (!p || !x->is_last) {
        sv_tree_end_thread(&d->tree, x->head.tgid, x->head.tid, now);
        return;
    }
    struct sv_event *e = put_event(b, SV_INSTANT, (int64_t)x->head.ts_ns,
                                   sv_tree_thread(&d->tree, x->head.tgid, x->head.tid)->calls,
                                   d->s.exit, d->s.process);
    if (x->code >= 0) /* plain tracepoints do not tell who was killed by what */
        sv_batch_int(b, d->s.code, x->code);
    sv_batch_finish(b, e);
    sv_tree_end_thread(&d->tree, x->head.tgid, x->head.tid, now);
    sv_tree_end(&d->tree, p, now);
    sv_symbols_end(d->samples.symbols, x->head.tgid);
    d->sums.exits++;
}

/* ---- the page cache ---- */

static void put_page_file(struct sv_decode *d, struct sv_batch *b, uint32_t pid, uint32_t device,
                          uint64_t inode)
{
    const struct sv_file *f =
        sv_inodes_find(&d->inodes, &d->tree, pid, device, inode, d->options.asks_procfs);
    sv_batch_int(b, d->s.inode, (int64_t)inode);
    if (f)
        put_path(d, b, d->s.path, f->path, f->len);
}

/* The call under way says which file this is. */
static void learn_file(struct sv_decode *d, const struct sv_wire_cache *c)
{
    if (c->fd < 0)
        return;
    const struct sv_fd_when when = {.start_ns = c->head.ts_ns, .inode = c->inode};
    struct sv_fd *now;
    struct sv_file *f = descriptor_file(d, known_process(d, c->head.tgid), c->fd, when, &now);
    if (f && f->path[0] == '/')
        sv_inodes_learn(&d->inodes, &d->tree, c->device, c->inode, f);
    sv_file_put(&d->tree, f);
}

static void on_fault(struct sv_decode *d, struct sv_batch *b, const struct sv_wire_cache *c)
{
    struct sv_traced_thread *x = sv_tree_thread(&d->tree, c->head.tgid, c->head.tid);
    if (x->faults == 0)
        x->faults = sv_dict_child(d->source.dict, x->track, SV_TRACK_CUSTOM,
                                  sv_dict_cstr(d->source.dict, "page faults"));
    learn_file(d, c);
    struct sv_event *e =
        put_event(b, SV_INSTANT, (int64_t)c->head.ts_ns, x->faults, d->s.file, d->s.fault);
    put_page_file(d, b, c->head.tgid, c->device, c->inode);
    sv_batch_int(b, d->s.offset, (int64_t)c->offset);
    sv_batch_finish(b, e);
    d->sums.faults++;
}

/* ---- io_uring ---- */

static void add_uring_sums(struct sv_decode *d, struct sv_proc *p, const struct sv_wire_uring *r,
                           struct sv_file *f)
{
    uint64_t bytes = r->res > 0 ? (uint64_t)r->res : 0;
    bool reads = sv_uring_is_read(r->head.what), writes = sv_uring_is_write(r->head.what);
    d->sums.urings++;
    p->bytes_read += reads ? bytes : 0;
    p->bytes_written += writes ? bytes : 0;
    if (!f)
        return;
    f->reads += reads;
    f->writes += writes;
    f->read_bytes += reads ? bytes : 0;
    f->written_bytes += writes ? bytes : 0;
    f->errors += r->res < 0;
}

/* A file of the ring's own table: it was open when it was put there, and mostly still is. */
static const struct sv_file *fixed_file(struct sv_decode *d, struct sv_proc *p,
                                        const struct sv_wire_uring *r)
{
    enum { OPEN_FILES_MAX = 256 };
    for (size_t i = 0; d->options.asks_procfs && i < p->open.n_fds && i < OPEN_FILES_MAX; i++)
        if (p->open.fds[i].file)
            sv_inodes_identify(&d->inodes, &d->tree, p->open.fds[i].file);
    return sv_inodes_find(&d->inodes, &d->tree, p->pid, r->device, r->inode, false);
}

static void on_uring(struct sv_decode *d, struct sv_batch *b, const struct sv_wire_uring *r)
{
    struct sv_proc *p = known_process(d, r->head.tgid);
    bool has_fd = r->fd >= 0 && !(r->head.flags & SV_WIRE_FIXED_FILE);
    const struct sv_fd_when when = {.start_ns = r->start_ns, .inode = r->inode};
    struct sv_fd *now;
    struct sv_file *held = has_fd ? descriptor_file(d, p, r->fd, when, &now) : NULL;
    const struct sv_file *f = held;
    int64_t end_ns;
    if (f && f->path[0] == '/')
        sv_inodes_learn(&d->inodes, &d->tree, r->device, r->inode, held);
    else if (!f && r->inode)
        f = fixed_file(d, p, r);
    if (!d->prefix_len || is_below(d, f)) {
        struct sv_event *e = sv_uring_begin(&d->uring, &d->tree, b, r, &end_ns);
        if (f)
            put_path(d, b, d->s.path, f->path, f->len);
        sv_uring_end(&d->uring, b, e, r, end_ns);
        add_uring_sums(d, p, r, held);
    }
    sv_file_put(&d->tree, held);
}

/* Neighbouring pages that a thread brings in at once are one event: a read-ahead of 128 KiB is 32 records. */
static void put_misses(struct sv_decode *d, struct sv_batch *b)
{
    struct misses *m = &d->misses;
    if (m->bytes == 0)
        return;
    struct sv_traced_thread *thread = sv_tree_thread(&d->tree, m->tgid, m->tid);
    struct sv_event *e =
        put_event(b, SV_INSTANT, m->ts_ns,
                  thread->cache ? thread->cache : sv_tree_cache_row(&d->tree, thread), d->s.add,
                  d->s.page_cache);
    put_page_file(d, b, m->tgid, m->device, m->inode);
    sv_batch_int(b, d->s.offset, (int64_t)m->offset);
    sv_batch_int(b, d->s.bytes, (int64_t)m->bytes);
    sv_batch_finish(b, e);
    d->sums.missed_bytes += m->bytes;
    m->bytes = 0;
}

static void on_cache(struct sv_decode *d, struct sv_batch *b, const struct sv_wire_cache *c)
{
    struct misses *m = &d->misses;
    bool continues = m->bytes > 0 && m->tid == c->head.tid && m->inode == c->inode &&
                     m->device == c->device && m->offset + m->bytes == c->offset;
    if (!continues) {
        put_misses(d, b);
        learn_file(d, c);
        *m = (struct misses){.ts_ns = (int64_t)c->head.ts_ns,
                             .tgid = c->head.tgid,
                             .tid = c->head.tid,
                             .inode = c->inode,
                             .device = c->device,
                             .offset = c->offset};
    }
    m->bytes += c->bytes;
}

/* ---- the source ---- */

static void on_record(struct sv_decode *d, struct sv_batch *b, const struct sv_wire_head *h,
                      uint32_t size)
{
    static const uint32_t sizes[SV_WIRE_KINDS] = {[SV_WIRE_CALL] = sizeof(struct sv_wire_call),
                                                  [SV_WIRE_FORK] = sizeof(struct sv_wire_fork),
                                                  [SV_WIRE_EXEC] = sizeof(struct sv_wire_head),
                                                  [SV_WIRE_EXIT] = sizeof(struct sv_wire_exit),
                                                  [SV_WIRE_NAME] = sizeof(struct sv_wire_name),
                                                  [SV_WIRE_BLOCK] = sizeof(struct sv_wire_block),
                                                  [SV_WIRE_CACHE] = sizeof(struct sv_wire_cache),
                                                  [SV_WIRE_STATE] = sizeof(struct sv_wire_head),
                                                  [SV_WIRE_SAMPLE] = sizeof(struct sv_wire_sample),
                                                  [SV_WIRE_URING] = sizeof(struct sv_wire_uring),
                                                  [SV_WIRE_FAULT] = sizeof(struct sv_wire_cache)};
    if (h->kind == 0 || h->kind >= SV_WIRE_KINDS || sizes[h->kind] == 0 || size < sizes[h->kind] ||
        h->ts_ns > INT64_MAX) {
        d->sums.unknown++;
        return;
    }
    const void *record = h;
    if (h->kind < SV_WIRE_CACHE)
        put_misses(d, b);
    if (h->kind != SV_WIRE_CALL)
        d->recent.process = NULL;
    switch (h->kind) {
    case SV_WIRE_CALL: on_call(d, b, record, size); break;
    case SV_WIRE_FORK: on_fork(d, b, record); break;
    case SV_WIRE_EXEC: on_exec(d, b, record, size); break;
    case SV_WIRE_EXIT: on_exit_record(d, b, record); break;
    case SV_WIRE_CACHE: on_cache(d, b, record); break;
    case SV_WIRE_STATE: sv_states_change(&d->states, &d->tree, b, record, size); break;
    case SV_WIRE_FAULT: on_fault(d, b, record); break;
    case SV_WIRE_URING: on_uring(d, b, record); break;
    case SV_WIRE_SAMPLE:
        if (!sv_samples_put(&d->samples, &d->tree, b, record, size))
            d->sums.unknown++;
        break;
    case SV_WIRE_NAME: {
        const struct sv_wire_name *n = record;
        sv_tree_name_thread(&d->tree, h->tgid, h->tid, n->comm);
        break;
    }
    case SV_WIRE_BLOCK: {
        const struct sv_wire_block *k = record;
        d->sums.blocks++;
        *(sv_disk_is_write(k->command) ? &d->sums.block_written_bytes
                                       : &d->sums.block_read_bytes) += k->bytes;
        sv_disks_request(&d->disks, b, k);
        break;
    }
    default: break;
    }
}

static void put_losses(struct sv_decode *d, struct sv_batch *b)
{
    while (d->n_losses > 0 && b->n < SV_BATCH) {
        struct loss *l = &d->losses[--d->n_losses];
        struct sv_event *e = put_event(b, SV_LOSS, l->from_ns, l->track, l->name, 0);
        e->dur_ns = l->to_ns - l->from_ns;
        sv_batch_int(b, 0, (int64_t)l->n);
        sv_batch_finish(b, e);
    }
}

static int next(struct sv_source *source, struct sv_batch *b, struct sv_err *err)
{
    struct sv_decode *d = (struct sv_decode *)source;
    const struct sv_wire_head *h;
    uint32_t size;
    (void)err;
    sv_tree_sweep(&d->tree);
    d->recent.process = NULL;
    put_losses(d, b);
    while (b->n + EVENTS_PER_RECORD <= SV_BATCH && (h = sv_krings_next(&d->rings, &size))) {
        if (d->options.keep)
            d->options.keep(d->options.keep_ctx, h, size);
        on_record(d, b, h, size);
    }
    if (b->n < SV_BATCH)
        put_misses(d, b);
    return (int)b->n;
}

static void close_source(struct sv_source *source)
{
    (void)source; /* sv_decode_free() */
}

static void intern_names(struct sv_decode *d, struct sv_dict *dict)
{
    const struct {
        sv_str *at;
        const char *text;
    } all[] = {{&d->s.cat, "syscall"},
               {&d->s.fd, "fd"},
               {&d->s.path, "path"},
               {&d->s.path2, "path2"},
               {&d->s.requested, "requested"},
               {&d->s.bytes, "bytes"},
               {&d->s.offset, "offset"},
               {&d->s.length, "length"},
               {&d->s.address, "address"},
               {&d->s.flags, "flags"},
               {&d->s.ret, "ret"},
               {&d->s.error, "errno"},
               {&d->s.process, "process"},
               {&d->s.exit, "exit"},
               {&d->s.exec, "exec"},
               {&d->s.fork, "fork"},
               {&d->s.child, "child"},
               {&d->s.code, "status"},
               {&d->s.cgroup, "cgroup"},
               {&d->s.container, "container"},
               {&d->s.inner_pid, "inner_pid"},
               {&d->s.inner_namespace, "pid_namespace"},
               {&d->s.page_cache, "page_cache"},
               {&d->s.add, "add"},
               {&d->s.inode, "inode"},
               {&d->s.fault, "fault"},
               {&d->s.file, "file"}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        *all[i].at = sv_dict_cstr(dict, all[i].text);
    for (size_t i = 0; i < sv_n_calls; i++) {
        d->call_names[sv_calls[i].nr] = sv_dict_cstr(dict, sv_calls[i].name);
        d->writes[sv_calls[i].nr] = is_write(&sv_calls[i]);
    }
}

struct sv_decode *sv_decode_new(struct sv_dict *dict, struct sv_report *report,
                                const struct sv_decode_options *options)
{
    struct sv_decode *d = sv_alloc(sizeof *d);
    d->source = (struct sv_source){.next = next,
                                   .close = close_source,
                                   .gives = SV_HAS_EDGES | SV_HAS_SLICES | SV_HAS_DISORDER,
                                   .dict = dict,
                                   .report = report};
    if (options)
        d->options = *options;
    d->prefix_len = d->options.prefix ? strlen(d->options.prefix) : 0;
    sv_tree_init(&d->tree, dict);
    sv_disks_init(&d->disks, dict);
    sv_states_init(&d->states, dict);
    sv_samples_init(&d->samples, dict);
    sv_uring_init(&d->uring, dict);
    sv_calls_index(d->by_number);
    intern_names(d, dict);
    if (d->options.asks_procfs) /* the dynamic linker's and libc's files are everybody's */
        sv_inodes_find(&d->inodes, &d->tree, (uint32_t)getpid(), 0, 1, true);
    return d;
}

void sv_decode_free(struct sv_decode *d)
{
    if (!d)
        return;
    sv_krings_fini(&d->rings);
    sv_inodes_fini(&d->inodes, &d->tree);
    sv_tree_fini(&d->tree);
    sv_disks_fini(&d->disks);
    sv_samples_fini(&d->samples);
    free(d);
}

struct sv_source *sv_decode_source(struct sv_decode *d)
{
    return &d->source;
}

struct sv_krings *sv_decode_rings(struct sv_decode *d)
{
    return &d->rings;
}

struct sv_tree *sv_decode_tree(struct sv_decode *d)
{
    return &d->tree;
}

uint64_t sv_decode_round(struct sv_decode *d, uint64_t cutoff_ns)
{
    return sv_krings_round(&d->rings, cutoff_ns);
}

void sv_decode_release(struct sv_decode *d)
{
    sv_krings_release(&d->rings);
}

const struct sv_decode_totals *sv_decode_sums(const struct sv_decode *d)
{
    return &d->sums;
}

void sv_decode_hide_until_exec(struct sv_decode *d, uint32_t pid)
{
    d->hidden = pid;
}

void sv_decode_tell_again(struct sv_decode *d)
{
    for (size_t i = 0; d->options.tells_once && i < d->tree.n; i++)
        for (size_t fd = 0; fd < d->tree.processes[i]->open.n_fds; fd++)
            d->tree.processes[i]->open.fds[fd].is_told = false;
}

void sv_decode_lost(struct sv_decode *d, unsigned cpu, const char *what, uint64_t n,
                    uint64_t since_ns, uint64_t now_ns)
{
    struct sv_dict *dict = d->source.dict;
    char name[32];
    snprintf(name, sizeof name, "CPU %u", cpu);
    sv_track group = sv_dict_child(dict, 0, SV_TRACK_CUSTOM, sv_dict_cstr(dict, "Lost"));
    d->sums.lost += n;
    for (size_t i = 0; i < d->tree.n; i++) { /* the books may have holes now */
        if (d->tree.processes[i]->is_ended)
            continue;
        d->tree.processes[i]->has_snapshot = false;
        sv_fds_lost(d->tree.processes[i]);
    }
    if (d->n_losses == LOSSES_MAX)
        d->n_losses--; /* cannot happen: next() empties the list every round */
    d->losses[d->n_losses++] =
        (struct loss){sv_dict_child(dict, group, SV_TRACK_CUSTOM, sv_dict_cstr(dict, name)),
                      sv_dict_cstr(dict, what), n, (int64_t)since_ns, (int64_t)now_ns};
}
