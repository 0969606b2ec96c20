/* Stacks of watched threads: the frames of CPython as its own structures have them, or the upper
 * end of the stack of a thread that waits in a call, whose pointer the kernel shows.
 *
 * Memory is read by process_vm_readv(), which the rules of ptrace allow or not; the process is not
 * stopped. It may change while it is read: what makes no sense is left out, and a code object is
 * believed only if its name can be read. */
#include "record/watch/parts.h"

#include "core/base/mem.h"
#include "record/sample/procfs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    THREADS_MAX = 4096,
    FRAME_BYTES = 80,
    CODE_BYTES = 144,
    LINES_MAX = 8 << 10,
    CODES_MAX = 1 << 17
};

bool sv_watch_read(uint32_t pid, uint64_t at, void *to, size_t size)
{
    struct iovec local = {to, size}, remote = {(void *)(uintptr_t)at, size};
    return at && process_vm_readv((int)pid, &local, 1, &remote, 1, 0) == (ssize_t)size;
}

static uint64_t word_at(uint32_t pid, uint64_t at)
{
    uint64_t word = 0;
    return sv_watch_read(pid, at, &word, sizeof word) ? word : 0;
}

static uint64_t word_in(const uint8_t *bytes, uint32_t at)
{
    uint64_t word;
    memcpy(&word, bytes + at, sizeof word);
    return word;
}

/* ---- code objects ---- */

/* The characters of a text object; of a longer one its end. */
static uint16_t take_text(uint32_t pid, const struct sv_wire_python *p, uint64_t text, char *to,
                          size_t max, uint8_t *kind)
{
    enum { LENGTH = 16, STATE = 32, IS_COMPACT = 1 << 5, IS_ASCII = 1 << 6, HEAD = 40 };
    uint8_t head[HEAD];
    if (!sv_watch_read(pid, text, head, sizeof head))
        return 0;
    uint64_t length = word_in(head, LENGTH);
    uint32_t state = (uint32_t)word_in(head, STATE);
    uint64_t at = text + (state & IS_ASCII ? p->text_ascii : p->text_other);
    *kind = state >> 2 & 7;
    if (!(state & IS_COMPACT) || length == 0 || length > 1 << 20 || *kind == 0 || *kind > 4)
        return 0;
    length *= *kind;
    if (length > max) {
        at += length - max;
        length = max;
    }
    return sv_watch_read(pid, at, to, length) ? (uint16_t)length : 0;
}

static void send_code(struct sv_watch *w, const struct sv_watch_thread *x,
                      const struct sv_wire_python *p, uint64_t code, const uint8_t *object)
{
    enum { SIZE = 16, DATA = 32 };
    struct {
        struct sv_wire_code code;
        char lines[LINES_MAX];
    } r = {.code = {.code = code}};
    struct sv_wire_code *c = &r.code;
    uint64_t lines = word_in(object, p->linetable);
    sv_watch_head(&c->head, SV_WIRE_CODE, x->pid, x->tid, x->looked_ns);
    memcpy(&c->first_line, object + p->first_line, sizeof c->first_line);
    c->name_bytes =
        take_text(x->pid, p, word_in(object, p->name), c->name, sizeof c->name, &c->name_kind);
    c->file_bytes =
        take_text(x->pid, p, word_in(object, p->file), c->file, sizeof c->file, &c->file_kind);
    uint64_t n = lines ? word_at(x->pid, lines + SIZE) : 0;
    n = n > LINES_MAX ? LINES_MAX : n;
    c->linetable_bytes = n && sv_watch_read(x->pid, lines + DATA, r.lines, n) ? (uint32_t)n : 0;
    sv_watch_put(w, &r, sizeof r.code + c->linetable_bytes);
}

/* Sends it unless this very one was sent before. False: it is none. */
static bool know_code(struct sv_watch *w, const struct sv_watch_thread *x,
                      const struct sv_wire_python *p, uint64_t code)
{
    uint8_t object[CODE_BYTES];
    bool is_new;
    if (!sv_watch_read(x->pid, code, object, sizeof object))
        return false;
    uint64_t mark = word_in(object, p->name) * 31 + word_in(object, p->file) * 17 +
                    word_in(object, p->linetable);
    if (w->codes.n >= CODES_MAX)
        sv_map_clear(&w->codes);
    uint64_t *at = sv_map_add(&w->codes, sv_mix64(code) ^ (uint64_t)x->pid << 40, &is_new);
    if (is_new || *at != mark)
        send_code(w, x, p, code, object);
    *at = mark;
    return true;
}

/* ---- frames ---- */

static bool has_offsets(const struct sv_wire_python *p)
{
    return p->name <= CODE_BYTES - 8 && p->file <= CODE_BYTES - 8 &&
           p->linetable <= CODE_BYTES - 8 && p->first_line <= CODE_BYTES - 4 &&
           p->code <= FRAME_BYTES - 8 && p->previous <= FRAME_BYTES - 8 &&
           p->instr <= FRAME_BYTES - 8 && p->owner < FRAME_BYTES;
}

/* One walk over the list of the interpreter's threads finds those of all that are watched. */
static void find_python_threads(struct sv_watch *w, uint32_t pid, const struct sv_wire_python *p)
{
    uint64_t at = word_at(pid, p->runtime + p->interpreters);
    at = at ? word_at(pid, at + p->threads) : 0;
    for (int i = 0; i < THREADS_MAX && at; i++) {
        uint32_t tid = (uint32_t)word_at(pid, at + p->native_id);
        const uint64_t *x = sv_map_find(&w->by_tid, (uint64_t)pid << 32 | tid);
        if (x)
            w->threads[*x - 1].python = at;
        at = word_at(pid, at + p->next);
    }
}

/* Its state in the interpreter, which stays at its address while the thread lives. */
static uint64_t python_thread(struct sv_watch *w, struct sv_watch_thread *x,
                              const struct sv_wire_python *p)
{
    for (int i = 0; i < 2; i++) {
        if (x->python && (uint32_t)word_at(x->pid, x->python + p->native_id) == x->tid)
            return x->python;
        x->python = 0;
        if (i == 0)
            find_python_threads(w, x->pid, p);
    }
    return 0;
}

/* The interpreter's lock and its conditions are within its state, and that of the main interpreter
 * within the runtime's. From 3.12 on an interpreter says who had its lock last, and whether it is
 * taken. */
uint32_t sv_watch_python_holder(const struct sv_watch_process *p, uint64_t lock)
{
    enum { RUNTIME_BYTES = 1 << 18 };
    const struct sv_wire_python *o = &p->python;
    uint64_t at = 0;
    if (lock < o->runtime || lock - o->runtime > RUNTIME_BYTES)
        return 0;
    if (o->current != SV_PYTHON_NONE) {
        at = word_at(p->pid, o->runtime + o->current);
    } else {
        uint64_t interpreter = word_at(p->pid, o->runtime + o->interpreters);
        bool is_taken = interpreter && (int32_t)word_at(p->pid, interpreter + o->locked) == 1;
        at = is_taken ? word_at(p->pid, interpreter + o->holder) : 0;
    }
    return at ? (uint32_t)word_at(p->pid, at + o->native_id) : 0;
}

/* The frames of the thread, innermost first; how many. */
static uint16_t take_python(struct sv_watch *w, struct sv_watch_thread *x,
                            const struct sv_wire_python *p, struct sv_wire_pyframe *to,
                            uint16_t *has_more)
{
    uint8_t bytes[FRAME_BYTES];
    uint16_t n = 0;
    uint64_t at = has_offsets(p) ? python_thread(w, x, p) : 0;
    if (at && p->cframe != SV_PYTHON_NONE)
        at = word_at(x->pid, at + p->cframe);
    at = at ? word_at(x->pid, at + p->frame) : 0;
    while (at && n < SV_STACK_PYTHON_MAX && sv_watch_read(x->pid, at, bytes, sizeof bytes)) {
        uint64_t code = word_in(bytes, p->code) & ~(uint64_t)7;
        if (!know_code(w, x, p, code))
            break;
        to[n++] = (struct sv_wire_pyframe){
            .code = code,
            .at = (uint32_t)(word_in(bytes, p->instr) - code - p->bytecode),
            .owner = bytes[p->owner],
            .is_entry = p->entry < FRAME_BYTES ? bytes[p->entry] : 0};
        at = word_in(bytes, p->previous);
    }
    *has_more = n == SV_STACK_PYTHON_MAX && at;
    return n;
}

/* From the pointer on, as far as there is memory. */
static uint32_t copy_stack(uint32_t pid, uint64_t sp, uint8_t *to)
{
    struct iovec local = {to, SV_WATCH_COPY}, remote[SV_WATCH_COPY / 4096 + 1];
    unsigned n = 0;
    for (uint64_t at = sp, left = SV_WATCH_COPY; left > 0 && n < SV_WATCH_COPY / 4096 + 1; n++) {
        uint64_t step = 4096 - (at & 4095);
        step = step < left ? step : left;
        remote[n] = (struct iovec){(void *)(uintptr_t)at, step};
        at += step;
        left -= step;
    }
    ssize_t got = process_vm_readv((int)pid, &local, 1, remote, n, 0);
    return got > 0 ? (uint32_t)got : 0;
}

/* Which of the rules for reading another process refuses it. */
static const char *refusal_of(const struct sv_watch *w, uint32_t pid, int error)
{
    char path[96], text[4096], scope[16] = "";
    struct stat st;
    snprintf(path, sizeof path, "%s/%u/status", w->options.root, pid);
    const char *at = sv_procfs_text(path, text, sizeof text) ? strstr(text, "\nUid:") : NULL;
    unsigned long uid = at ? strtoul(at + 5, NULL, 10) : geteuid();
    snprintf(text, sizeof text, "%s/sys/kernel/yama/ptrace_scope", w->options.root);
    sv_procfs_text(text, scope, sizeof scope);
    if (error == ENOSYS)
        return "a filter of system calls refuses process_vm_readv";
    if (uid != geteuid())
        return "it is another user's: root and CAP_SYS_PTRACE may";
    if (stat(path, &st) == 0 && st.st_uid != uid) /* its files are root's then, not its folder */
        return "it has said so (prctl PR_SET_DUMPABLE), or has had privileges";
    if (scope[0] >= '1' && scope[0] <= '9')
        return "kernel.yama.ptrace_scope allows it for commands that stave starts only";
    return "a security module or a filter of system calls refuses it";
}

/* Head and stack of a record in the room; its size, 0: there is no stack. */
static size_t take_stack(struct sv_watch *w, struct sv_watch_thread *x, bool is_waiting)
{
    struct sv_wire_offcpu *r = (void *)w->room;
    struct sv_wire_pyframe *frames = (void *)(r + 1);
    struct sv_watch_process *p = sv_watch_process(w, x->pid);
    if (!p || p->is_refused)
        return 0;
    memset(r, 0, sizeof *r);
    errno = 0;
    if (!p->was_tried) { /* what refuses to be read is not known to be Python either */
        uint8_t byte;
        p->was_tried = true;
        sv_watch_read(x->pid, 1, &byte, sizeof byte);
    }
    if (p->has_python)
        r->stack.n_python = take_python(w, x, &p->python, frames, &r->stack.has_more_python);
    if (r->stack.n_python == 0 && is_waiting && x->wait.sp) {
        r->stack.regs[SV_STACK_SP] = x->wait.sp;
        r->stack.regs[SV_STACK_IP] = x->wait.ip;
        r->stack.copy_bytes =
            w->options.copies_stacks ? copy_stack(x->pid, x->wait.sp, (uint8_t *)frames) : 0;
    }
    bool has_stack = r->stack.n_python || r->stack.regs[SV_STACK_SP];
    w->sums.stacks += has_stack;
    if (errno == EPERM || errno == EACCES || errno == ENOSYS) {
        w->sums.unreadable++;
        w->sums.why_unreadable = refusal_of(w, x->pid, errno);
        p->is_refused = true;
    }
    return has_stack ? sizeof *r + r->stack.n_python * sizeof *frames + r->stack.copy_bytes : 0;
}

/* What the holder of the interpreter's lock does meanwhile: the functions that have it. */
static void send_holder(struct sv_watch *w, const struct sv_watch_thread *x)
{
    const uint64_t *at = sv_map_find(&w->by_tid, (uint64_t)x->pid << 32 | x->wait.holder);
    if (!x->wait.lock || !at)
        return;
    struct sv_watch_thread *holder = &w->threads[*at - 1];
    size_t n = take_stack(w, holder, false);
    struct sv_wire_release *r = (void *)w->room;
    if (n == 0)
        return;
    sv_watch_head(&r->head, SV_WIRE_RELEASE, holder->pid, holder->tid, x->looked_ns);
    r->stack.own[0] = x->tid;
    r->stack.own[1] = (uint64_t)x->state_ns;
    sv_watch_put(w, r, n);
}

void sv_watch_stack_of_wait(struct sv_watch *w, struct sv_watch_thread *x)
{
    if (x->wait.holder)
        send_holder(w, x);
    size_t n = take_stack(w, x, true);
    free(x->stack);
    x->stack = NULL;
    if (n == 0)
        return;
    x->stack = sv_alloc(sizeof *x->stack + n + sizeof(struct sv_wire_away));
    x->stack->bytes = n;
    memcpy(x->stack->record, w->room, n);
    sv_watch_head(&((struct sv_wire_offcpu *)(void *)x->stack->record)->head, SV_WIRE_OFFCPU,
                  x->pid, x->tid, x->looked_ns);
}

/* Without a kernel's clock only Python's frames are known of a thread that runs. */
void sv_watch_stack_of_run(struct sv_watch *w, struct sv_watch_thread *x, int64_t now_ns)
{
    size_t n = take_stack(w, x, false);
    if (n == 0)
        return;
    struct sv_wire_head *h = (void *)w->room;
    sv_watch_head(h, SV_WIRE_SAMPLE, x->pid, x->tid, now_ns);
    h->what = x->cpu;
    h->flags = SV_STATE_INFERRED;
    sv_watch_put(w, w->room, n);
}
