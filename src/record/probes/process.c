/* Probe `process`: starts, execs and exits of processes as instants, and the names of processes and
 * threads.
 *
 * Also keeps the table of processes: a child starts with its parent's descriptors, an exec closes
 * some, an exit frees them. */
#include "record/bpf/process.h"
#include "record/decode/state.h"
#include "record/probes/sched.h"
#include "record/sample/process_rank.h"
#include "record/sample/procfs.h"
#include "record/spool/scout.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

/* What a process in a container calls itself, beside the number that the recorder knows it by. */
static void put_inner(struct sv_decode *d, struct sv_batch *b, uint32_t pid)
{
    const struct sv_proc *p = sv_tree_find(&d->tree, pid);
    if (!p || !p->inner_pid)
        return;
    sv_batch_int(b, d->words.inner_pid, p->inner_pid);
    sv_batch_int(b, d->words.pid_namespace, p->inner_namespace);
}

static bool decode_fork(struct sv_decode *d, void *state, struct sv_batch *b,
                        const struct sv_wire_head *record, uint32_t size)
{
    const struct sv_wire_fork *f = (const void *)record;
    (void)state;
    (void)size;
    struct sv_proc *parent = sv_decode_process(d, f->head.tgid);
    if (f->tgid == f->head.tgid) {
        parent->is_threaded = true;
    } else {
        sv_tree_fork(&d->tree, f->head.tgid, f->tgid);
        sv_symbols_fork(d->symbols, f->head.tgid, f->tgid);
        struct sv_event *e =
            sv_batch_put(b, SV_INSTANT, (int64_t)f->head.ts_ns,
                         sv_tree_thread(&d->tree, f->head.tgid, f->head.tid)->calls, d->words.fork,
                         d->words.cat_process);
        sv_batch_int(b, d->words.child, f->tgid);
        if (f->inner_tgid)
            sv_tree_set_inner(&d->tree, sv_tree_find(&d->tree, f->tgid), f->inner_tgid,
                              f->inner_namespace);
        put_inner(d, b, f->tgid);
        sv_batch_finish(b, e);
    }
    sv_tree_name_thread(&d->tree, f->tgid, f->tid, f->comm);
    return true;
}

/* Where the process is, and which container that is: a name of 64 hexadecimal digits. */
static void put_cgroup(struct sv_decode *d, struct sv_batch *b, const struct sv_wire_head *h,
                       uint64_t groups)
{
    char text[SV_PROCFS_CGROUP_MAX];
    size_t n = 0;
    const struct sv_note key = {SV_NOTE_CGROUP, h->tgid, 0, h->ts_ns};
    const char *noted = d->notes ? sv_notes_find(d->notes, key, &n) : NULL;
    if (noted && n < sizeof text)
        snprintf(text, sizeof text, "%.*s", (int)n, noted);
    else
        n = d->options.asks_procfs
                ? sv_procfs_cgroup_of(&d->in_cgroup, h->tgid, groups, (int64_t)h->ts_ns, text)
                : 0;
    if (n == 0)
        return;
    sv_decode_path(b, d->words.cgroup, sv_batch_text(b, text, n), n);
    for (const char *at = text; *at; at++) {
        size_t digits = strspn(at, "0123456789abcdef");
        if (digits == 64) {
            struct sv_arg *a = sv_batch_arg(b);
            a->key = d->words.container;
            a->type = SV_ARG_TEXT;
            a->text = sv_batch_text(b, at, 64);
            a->size = 64;
            return;
        }
        at += digits ? digits - 1 : 0;
    }
}

static void find_rank(struct sv_decode *d, struct sv_proc *p, const struct sv_wire_head *h)
{
    size_t n;
    const struct sv_note key = {SV_NOTE_RANK, h->tgid, 0, h->ts_ns};
    const char *noted = d->notes ? sv_notes_find(d->notes, key, &n) : NULL;
    if (noted)
        sv_process_set_rank(&d->tree, p, noted, n);
    else if (d->options.asks_procfs)
        sv_process_rank(&d->tree, p);
}

static uint64_t auxv(const struct sv_wire_image *x, uint64_t type)
{
    for (unsigned i = 0; i + 1 < SV_WIRE_AUXV && x->auxv[i] != AT_NULL; i += 2)
        if (x->auxv[i] == type)
            return x->auxv[i + 1];
    return 0;
}

/* What is mapped where, as the exec says it; in a container its paths are not ours. */
static void learn_image(struct sv_decode *d, const struct sv_proc *p, const struct sv_wire_head *h,
                        const struct sv_wire_image *x, const struct sv_file *file)
{
    const struct sv_program program = {.inode = x->inode,
                                       .device = x->device,
                                       .entry = auxv(x, AT_ENTRY),
                                       .base = auxv(x, AT_BASE),
                                       .vdso = auxv(x, AT_SYSINFO_EHDR)};
    if (x->has_auxv && file && d->options.asks_procfs && !p->root && !p->inner_pid)
        sv_symbols_program(d->symbols, h->tgid, (int64_t)h->ts_ns, &program, file->path);
}

static bool decode_exec(struct sv_decode *d, void *state, struct sv_batch *b,
                        const struct sv_wire_head *h, uint32_t size)
{
    struct sv_wire_image image = {0};
    const char *file = (const char *)(h + 1);
    size_t left = size - sizeof *h;
    (void)state;
    if (h->flags & SV_WIRE_HAS_IMAGE && left >= sizeof image) {
        left -= sizeof image;
        memcpy(&image, file + left, sizeof image);
    }
    size_t len = strnlen(file, left);
    if (len == left)
        return true;
    struct sv_proc *p = sv_decode_process(d, h->tgid);
    const char *base = memrchr(file, '/', len);
    base = base ? base + 1 : file;
    d->hidden = d->hidden == h->tgid ? 0 : d->hidden;
    sv_fds_exec(&d->tree, p);
    p->image = sv_image_number(h->tgid, h->ts_ns);
    sv_symbols_exec(d->symbols, h->tgid, (int64_t)h->ts_ns);
    sv_stacks_exec(d->stacks, h->tgid, file);
    char command[1024];
    const char *words = file + len + 1;
    size_t words_len = left - len - 1;
    if (words_len == 0 && d->options.asks_procfs) { /* plain tracepoints do not have them */
        words_len = sv_procfs_command(h->tgid, command, sizeof command);
        words = command;
        sv_procfs_inner(&d->tree, p);
    }
    if (words_len == 0) { /* it is gone: what it was before is not its command */
        words = file;
        words_len = len;
    }
    sv_tree_name_process(&d->tree, p, base, words, words_len);
    find_rank(d, p, h);
    sv_tree_name_thread(&d->tree, h->tgid, h->tid, p->name);
    struct sv_event *e = sv_batch_put(b, SV_INSTANT, (int64_t)h->ts_ns,
                                      sv_tree_thread(&d->tree, h->tgid, h->tid)->calls,
                                      d->words.exec, d->words.cat_process);
    sv_decode_path(b, d->words.path, file, len);
    put_inner(d, b, h->tgid);
    put_cgroup(d, b, h, image.groups);
    sv_batch_finish(b, e);
    struct sv_file *program = sv_tree_file_of(&d->tree, p, p->cwd, file, len);
    learn_image(d, p, h, &image, program);
    if (program && d->can_ask_procfs)
        sv_inodes_identify(&d->inodes, &d->tree, program);
    sv_file_put(&d->tree, program);
    return true;
}

static bool decode_exit(struct sv_decode *d, void *state, struct sv_batch *b,
                        const struct sv_wire_head *record, uint32_t size)
{
    const struct sv_wire_exit *x = (const void *)record;
    (void)state;
    (void)size;
    struct sv_proc *p = sv_tree_find(&d->tree, x->head.tgid);
    int64_t now = (int64_t)x->head.ts_ns;
    if (!p || !x->is_last) {
        sv_tree_end_thread(&d->tree, x->head.tgid, x->head.tid, now);
        return true;
    }
    struct sv_event *e = sv_batch_put(b, SV_INSTANT, (int64_t)x->head.ts_ns,
                                      sv_tree_thread(&d->tree, x->head.tgid, x->head.tid)->calls,
                                      d->words.exit, d->words.cat_process);
    if (x->code >= 0) /* plain tracepoints do not say which signal killed it */
        sv_batch_int(b, d->words.status, x->code);
    sv_batch_finish(b, e);
    sv_tree_end_thread(&d->tree, x->head.tgid, x->head.tid, now);
    sv_tree_end(&d->tree, p, now);
    sv_stacks_end(d->stacks, x->head.tgid);
    sv_symbols_end(d->symbols, x->head.tgid);
    return true;
}

static bool decode_name(struct sv_decode *d, void *state, struct sv_batch *b,
                        const struct sv_wire_head *record, uint32_t size)
{
    const struct sv_wire_name *n = (const void *)record;
    (void)state;
    (void)size;
    sv_tree_name_thread(&d->tree, record->tgid, record->tid, n->comm);
    struct sv_traced_thread *x = sv_tree_thread(&d->tree, record->tgid, record->tid);
    if (x->is_own && !d->options.shows_own)
        sv_states_end(b, x, (int64_t)record->ts_ns);
    return true;
}

const struct sv_probe sv_probe_process = {
    .name = "process",
    .cat = SV_CAT_PROCESS,
    .records = {{SV_WIRE_FORK, sizeof(struct sv_wire_fork), "forks", decode_fork},
                {SV_WIRE_EXEC, sizeof(struct sv_wire_head), "execs", decode_exec},
                {SV_WIRE_EXIT, sizeof(struct sv_wire_exit), "exits", decode_exit},
                {SV_WIRE_NAME, sizeof(struct sv_wire_name), "thread names", decode_name}},
    .docs = {"process starts, execs and exits", "`system calls` below the thread",
             "child, path, cgroup, container, status; names and command lines of processes"},
    .ends_gathering = true,
    .can_wait = sv_scout_process,
};
