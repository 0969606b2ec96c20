/* See scout.h. Called by record/spool/defer.c for each record that it moves; costs some nanoseconds
 * where nothing is looked up. */
#include "record/spool/scout.h"

#include "record/bpf/page_cache.h"
#include "record/bpf/process.h"
#include "record/bpf/stack.h"
#include "record/bpf/syscalls.h"
#include "record/decode/calls.h"
#include "record/probes/probe.h"
#include "record/sample/process_rank.h"
#include "record/spool/kspool.h"
#include "record/spool/notes.h"
#include "record/spool/processes.h"
#include "record/symbols/symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdlib.h>
#include <string.h>

#define YOUNG_NS ((int64_t)100000000)
enum { FDS_MAX = 1 << 16 }; /* higher numbers are looked up at each call */

struct sv_scouted {
    uint32_t pid;       /* 0: the entry is not used */
    uint64_t *since;    /* by descriptor: since when its file is known; 0: it is not */
    size_t n;           /* of an entry that is not used: the next one's index + 1 */
    uint64_t forked_ns; /* it is not in the tree yet; 0: it is */
    uint64_t image;     /* as in the tree */
    bool is_other;      /* it was made, or runs another program, since the scout began */
};

/* ---- processes ---- */

static void note_open(struct sv_scouted *p, int64_t fd, uint64_t since_ns)
{
    if (fd < 0 || fd >= FDS_MAX)
        return;
    if ((size_t)fd >= p->n) {
        size_t n = p->n ? p->n : 64;
        while (n <= (size_t)fd)
            n *= 2;
        p->since = sv_realloc(p->since, n * sizeof *p->since);
        memset(p->since + p->n, 0, (n - p->n) * sizeof *p->since);
        p->n = n;
    }
    p->since[fd] = since_ns ? since_ns : 1;
}

static void note_closed(struct sv_scouted *p, int64_t fd)
{
    if (fd >= 0 && (size_t)fd < p->n)
        p->since[fd] = 0;
}

static bool knows(const struct sv_scouted *p, int64_t fd)
{
    return fd >= 0 && (size_t)fd < p->n && p->since[fd] != 0;
}

/* As the decoder has it now. One that it does not know has no records that wait, so that it may
 * learn it out of turn. */
static void fill(struct sv_scout *s, struct sv_scouted *p)
{
    const struct sv_proc *known = sv_tree_find(s->tree, p->pid);
    if (!known || !known->has_snapshot) {
        struct sv_buf bytes;
        sv_procfs_complete(s->tree, p->pid);
        sv_buf_init(&bytes, SV_KSPOOL_ENTRY_MAX / 4);
        sv_processes_put_one(&bytes, s->tree, p->pid);
        sv_note_put(&s->notes, (struct sv_note){.kind = SV_NOTE_PROCESS, .pid = p->pid},
                    (const char *)bytes.data, bytes.failed ? 0 : bytes.len);
        sv_buf_fini(&bytes);
        known = sv_tree_find(s->tree, p->pid);
    }
    const struct sv_fd *at;
    p->image = sv_tree_image(s->tree, p->pid).number;
    for (size_t fd = 0; known && !known->is_ended && (at = sv_fds_next(known, &fd)); fd++)
        if (at->file)
            note_open(p, (int64_t)fd, at->since_ns);
}

static struct sv_scouted *entry_of(struct sv_scout *s, uint32_t pid, bool *is_new)
{
    uint64_t *at = sv_map_add(&s->by_pid, pid, is_new);
    if (*is_new) {
        size_t i = s->free_at;
        if (i) {
            s->free_at = s->all[i - 1].n;
        } else {
            s->all = sv_grow(s->all, &s->cap, s->n + 1, sizeof *s->all);
            i = ++s->n;
        }
        s->all[i - 1] = (struct sv_scouted){.pid = pid};
        *at = i;
    }
    return &s->all[*at - 1];
}

static struct sv_scouted *process_of(struct sv_scout *s, uint32_t pid)
{
    bool is_new;
    if (s->recent && s->recent->pid == pid)
        return s->recent;
    struct sv_scouted *p = entry_of(s, pid, &is_new);
    if (is_new)
        fill(s, p);
    return s->recent = p;
}

static void is_in_tree(struct sv_scout *s, struct sv_scouted *p)
{
    s->n_unknown -= p->forked_ns != 0;
    p->forked_ns = 0;
}

/* No call of it will come. */
static void end_process(struct sv_scout *s, struct sv_scouted *p)
{
    size_t i = (size_t)(p - s->all) + 1;
    is_in_tree(s, p);
    free(p->since);
    sv_map_remove(&s->by_pid, p->pid);
    *p = (struct sv_scouted){.n = s->free_at};
    s->free_at = i;
    s->recent = NULL;
}

void sv_scout_round(struct sv_scout *s, int64_t now_ns)
{
    bool is_new;
    for (size_t i = 0; s->n_unknown > 0 && i < s->n; i++) {
        struct sv_scouted *p = &s->all[i];
        if (!p->forked_ns || (int64_t)p->forked_ns > now_ns - YOUNG_NS)
            continue;
        sv_tree_process(s->tree, p->pid, &is_new);
        is_in_tree(s, p);
    }
}

/* ---- records ---- */

static bool copies(const struct sv_call *call, const struct sv_wire_call *c)
{
    return ((call->effect == SV_EFFECT_DUP || call->effect == SV_EFFECT_DUP2) && c->ret != c->fd) ||
           (call->effect == SV_EFFECT_FCNTL && (c->aux == F_DUPFD || c->aux == F_DUPFD_CLOEXEC));
}

/* As decode_call() and apply() of probes/syscalls.c do it. */
static void follow(struct sv_scouted *p, const struct sv_call *call, const struct sv_wire_call *c)
{
    if (call->effect == SV_EFFECT_CLOSE) {
        /* One that was opened meanwhile by another thread stays. */
        if (c->ret != -EBADF && knows(p, c->fd) && p->since[c->fd] <= c->start_ns)
            note_closed(p, c->fd);
        return;
    }
    if (c->ret < 0)
        return;
    if (call->effect == SV_EFFECT_OPEN || call->effect == SV_EFFECT_OPEN2) {
        if (c->head.flags & SV_WIRE_NO_PATH)
            note_closed(p, c->ret);
        else
            note_open(p, c->ret, c->head.ts_ns);
    } else if (copies(call, c)) {
        if (knows(p, c->fd))
            note_open(p, c->ret, c->head.ts_ns);
        else
            note_closed(p, c->ret);
    } else if (call->effect == SV_EFFECT_CLOSE_RANGE) {
        for (size_t fd = (uint32_t)c->fd; fd < p->n && fd <= c->aux; fd++)
            p->since[fd] = c->size & CLOSE_RANGE_CLOEXEC ? p->since[fd] : 0;
    } else if (call->effect == SV_EFFECT_SOCKET) {
        note_closed(p, c->ret);
    } else if (call->effect == SV_EFFECT_PAIR) {
        note_closed(p, (int32_t)c->size);
        note_closed(p, (int32_t)(c->size >> 32));
    }
}

/* False: it has no name that could be trusted later. */
static bool look_up(struct sv_scout *s, struct sv_scouted *p, int64_t fd, uint64_t ns,
                    uint64_t inode)
{
    struct sv_file *f = sv_procfs_descriptor(s->tree, p->pid, fd, inode);
    if (!f)
        return false;
    sv_note_put(&s->notes, (struct sv_note){SV_NOTE_DESCRIPTOR, p->pid, fd, ns}, f->path, f->len);
    sv_file_put(s->tree, f);
    note_open(p, fd, ns);
    return true;
}

bool sv_scout_call(struct sv_scout *s, const struct sv_wire_head *record, uint32_t size)
{
    const struct sv_call *call = record->what < SV_WIRE_CALLS_MAX ? s->calls[record->what] : NULL;
    struct sv_wire_call whole;
    const struct sv_wire_call *c = &whole;
    const char *text;
    bool is_new;
    if (!call || !sv_call_whole(record, size, &whole, &text))
        return true; /* malformed */
    struct sv_scouted *p = process_of(s, record->tgid);
    bool asks = call->fd != SV_WIRE_NONE && call->path == SV_WIRE_NONE && c->fd >= 0;
    /* What was closed is not there to be asked for. */
    if (asks && !knows(p, c->fd) && call->effect != SV_EFFECT_CLOSE && c->ret != -EBADF)
        look_up(s, p, c->fd, c->start_ns, c->inode);
    if (call->places && !knows(p, (int32_t)c->aux) && c->ret != -EBADF)
        look_up(s, p, (int32_t)c->aux, c->start_ns, 0);
    if (!(record->flags & SV_WIRE_UNFINISHED))
        follow(p, call, c);
    if (call->effect == SV_EFFECT_MAP && c->inode && knows(p, c->fd))
        sv_map_add(&s->mapped, sv_inodes_key(c->aux, c->inode), &is_new);
    return true;
}

/* A child starts with its parent's descriptors and memory. */
static void fork_process(struct sv_scout *s, const struct sv_wire_fork *f)
{
    bool is_new;
    const struct sv_scouted *parent = process_of(s, f->head.tgid);
    size_t n = parent->n;
    uint64_t image = parent->image, *since = n ? sv_alloc(n * sizeof *since) : NULL;
    if (n)
        memcpy(since, parent->since, n * sizeof *since);
    struct sv_scouted *child = entry_of(s, f->tgid, &is_new);
    is_in_tree(s, child);
    free(child->since);
    child->since = since;
    child->n = n;
    child->image = image;
    child->is_other = true;
    child->forked_ns = f->head.ts_ns ? f->head.ts_ns : 1;
    s->n_unknown++;
    s->recent = NULL;
}

static uint64_t groups_of(const struct sv_wire_head *h, uint32_t size)
{
    struct sv_wire_image image = {0};
    if (h->flags & SV_WIRE_HAS_IMAGE && size >= sizeof *h + sizeof image)
        memcpy(&image, (const char *)h + size - sizeof image, sizeof image);
    return image.groups;
}

static void note_program(struct sv_scout *s, const struct sv_wire_head *h, uint32_t size)
{
    char text[1 << 14];
    size_t n =
        sv_procfs_cgroup_of(&s->cgroup, h->tgid, groups_of(h, size), (int64_t)h->ts_ns, text);
    sv_note_put(&s->notes, (struct sv_note){SV_NOTE_CGROUP, h->tgid, 0, h->ts_ns}, text, n);
    n = sv_process_rank_variables(h->tgid, text, sizeof text);
    sv_note_put(&s->notes, (struct sv_note){SV_NOTE_RANK, h->tgid, 0, h->ts_ns}, text, n);
}

bool sv_scout_process(struct sv_scout *s, const struct sv_wire_head *record, uint32_t size)
{
    const struct sv_wire_fork *f = (const void *)record;
    struct sv_scouted *p = process_of(s, record->tgid);
    if (record->kind == SV_WIRE_FORK && f->tgid != record->tgid)
        fork_process(s, f);
    if (record->kind == SV_WIRE_EXEC) {
        p->image = sv_image_number(record->tgid, record->ts_ns);
        note_program(s, record, size);
        p->is_other = true;
    }
    if (record->kind == SV_WIRE_EXIT &&
        ((const struct sv_wire_exit *)(const void *)record)->is_last)
        end_process(s, p);
    return true;
}

/* A file that nothing is known of is mapped: what the process maps now is learnt. */
static void find_mapped(struct sv_scout *s, const struct sv_scouted *p,
                        const struct sv_wire_cache *c)
{
    const struct sv_proc_image who = {p->pid, p->image};
    if (sv_inodes_has(s->inodes, c->device, c->inode) ||
        sv_map_find(&s->mapped, sv_inodes_key(c->device, c->inode)))
        return;
    const struct sv_file *f = sv_inodes_find(s->inodes, s->tree, c->device, c->inode, &who);
    if (f)
        sv_note_put(&s->notes, (struct sv_note){SV_NOTE_FILE, c->head.tgid, c->device, c->inode},
                    f->path, f->len);
}

bool sv_scout_page(struct sv_scout *s, const struct sv_wire_head *record, uint32_t size)
{
    const struct sv_wire_cache *c = (const void *)record;
    struct sv_scouted *p = process_of(s, record->tgid);
    (void)size;
    if (c->fd < 0)
        find_mapped(s, p, c);
    else if (!knows(p, c->fd))
        look_up(s, p, c->fd, record->ts_ns, c->inode);
    return true;
}

bool sv_scout_code(struct sv_scout *s, const struct sv_wire_head *record, uint64_t ip)
{
    struct sv_code_at at;
    if (!s->symbols || process_of(s, record->tgid)->is_other)
        return false;
    sv_symbols_find(s->symbols, record->tgid, ip, (int64_t)record->ts_ns, &at);
    return true;
}

bool sv_scout_stack(struct sv_scout *s, const struct sv_wire_head *record, uint32_t size)
{
    const struct sv_wire_stack *stack = (const void *)(record + 1);
    return size >= sizeof *record + sizeof *stack &&
           sv_scout_code(s, record, stack->regs[SV_STACK_IP]);
}

bool sv_scout_always(struct sv_scout *s, const struct sv_wire_head *record, uint32_t size)
{
    (void)s, (void)record, (void)size;
    return true;
}

bool sv_scout_can_wait(struct sv_scout *s, const struct sv_wire_head *record, uint32_t size)
{
    unsigned kind = record->kind < SV_WIRE_KINDS ? record->kind : 0;
    if (size < s->sizes[kind])
        return true; /* malformed: there is nothing to ask for */
    return s->by_kind[kind] && s->by_kind[kind](s, record, size);
}

/* ---- all of it ---- */

void sv_scout_init(struct sv_scout *s, struct sv_tree *tree, struct sv_inodes *inodes)
{
    *s = (struct sv_scout){.tree = tree, .inodes = inodes};
    sv_buf_init(&s->notes, SV_KSPOOL_ENTRY_MAX / 2);
    sv_calls_index(s->calls);
    for (unsigned i = 0; i < SV_N_PROBES; i++)
        for (unsigned k = 0; k < SV_PROBE_RECORDS && sv_probes[i]->records[k].size; k++) {
            const struct sv_probe_record *r = &sv_probes[i]->records[k];
            s->by_kind[r->kind] = sv_probes[i]->can_wait;
            s->sizes[r->kind] = r->size;
        }
}

void sv_scout_begin(struct sv_scout *s)
{
    for (size_t i = 0; i < s->n; i++)
        free(s->all[i].since);
    s->n = s->free_at = s->n_unknown = 0;
    s->recent = NULL;
    sv_map_clear(&s->by_pid);
    sv_map_clear(&s->mapped);
    sv_buf_clear(&s->notes);
}

void sv_scout_fini(struct sv_scout *s)
{
    sv_scout_begin(s);
    free(s->all);
    sv_map_fini(&s->by_pid);
    sv_map_fini(&s->mapped);
    sv_buf_fini(&s->notes);
}
