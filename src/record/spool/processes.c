/* See processes.h. Processes, then threads, then files by their inodes; numbers are 64 bits wide,
 * texts have their length before them. Called when a series of entries begins, and by `stave
 * recover`, which trusts no number of it. */
#include "record/spool/processes.h"

#include "record/decode/tree.h"

#include <string.h>

/* ---- writing ---- */

static void put(struct sv_buf *to, uint64_t number)
{
    sv_buf_add(to, &number, sizeof number);
}

static void put_text(struct sv_buf *to, const char *text, size_t len)
{
    put(to, len);
    sv_buf_add(to, text, len);
}

static void put_file(struct sv_buf *to, const struct sv_file *f)
{
    put_text(to, f ? f->path : "", f ? f->len : 0);
}

static void put_fds(struct sv_buf *to, const struct sv_proc *p)
{
    const struct sv_fd *at;
    for (size_t fd = 0; (at = sv_fds_next(p, &fd)); fd++) {
        if (!at->file)
            continue;
        put(to, fd + 1);
        put(to, at->since_ns);
        put(to, at->inode);
        put(to, at->closes_on_exec);
        put_file(to, at->file);
    }
    put(to, 0);
}

static void put_process(struct sv_buf *to, const struct sv_tree *t, const struct sv_proc *p)
{
    struct sv_text text = sv_dict_text(t->dict, t->dict->tracks[p->track].desc);
    put(to, p->pid);
    put(to, p->parent);
    put(to, p->inner_pid);
    put(to, p->inner_namespace);
    put(to, p->is_threaded);
    put_text(to, p->name, strnlen(p->name, sizeof p->name));
    put_text(to, text.bytes, p->command_len <= text.len ? p->command_len : 0);
    put_file(to, p->cwd);
    put_file(to, p->root);
    put_fds(to, p);
}

void sv_processes_put(struct sv_buf *to, const struct sv_tree *t, const struct sv_inodes *x)
{
    for (size_t i = 0; i < t->n; i++)
        if (!t->processes[i]->is_ended && t->processes[i]->pid)
            put_process(to, t, t->processes[i]);
    put(to, 0);
    for (size_t i = 0; i < t->n_threads; i++) {
        const struct sv_traced_thread *thread = &t->threads[i];
        if (thread->ended_ns || !thread->pid)
            continue;
        struct sv_text name = sv_dict_text(t->dict, t->dict->tracks[thread->track].name);
        put(to, thread->pid);
        put(to, thread->tid);
        put_text(to, name.bytes, name.len);
    }
    put(to, 0);
    for (size_t i = 0; i < x->numbers.cap; i++) {
        const struct sv_map_slot *slot = &x->numbers.slots[i];
        if (!x->numbers.used[i] || slot->value == 0 || !x->files[slot->value - 1])
            continue;
        put(to, slot->key);
        put_file(to, x->files[slot->value - 1]);
    }
    put(to, 0);
}

void sv_processes_put_one(struct sv_buf *to, const struct sv_tree *t, uint32_t pid)
{
    const struct sv_proc *p = sv_tree_find(t, pid);
    if (p && pid)
        put_process(to, t, p);
    for (int lists = 0; lists < 3; lists++)
        put(to, 0);
}

/* ---- reading ---- */

struct bytes {
    const uint8_t *at, *end;
    bool is_bad;
};

static uint64_t get(struct bytes *b)
{
    uint64_t number = 0;
    if ((size_t)(b->end - b->at) < sizeof number) {
        b->is_bad = true;
        b->at = b->end;
        return 0;
    }
    memcpy(&number, b->at, sizeof number);
    b->at += sizeof number;
    return number;
}

static const char *get_text(struct bytes *b, size_t *len)
{
    uint64_t n = get(b);
    if (n > (size_t)(b->end - b->at)) {
        b->is_bad = true;
        n = 0;
    }
    const char *text = (const char *)b->at;
    b->at += n;
    *len = (size_t)n;
    return text;
}

/* Paths are longer than the kernel's limit only in damaged files. */
static struct sv_file *get_file(struct bytes *b, struct sv_tree *t)
{
    size_t len;
    const char *text = get_text(b, &len);
    return len > 0 && len <= 2 * (size_t)SV_WIRE_PATH_MAX ? sv_tree_file(t, NULL, text, len) : NULL;
}

static void get_fds(struct bytes *b, struct sv_tree *t, struct sv_proc *p)
{
    for (uint64_t fd; (fd = get(b)) != 0 && !b->is_bad;) {
        struct sv_fd is = {.since_ns = get(b)};
        is.inode = get(b);
        is.closes_on_exec = get(b) != 0;
        is.file = get_file(b, t);
        if (is.file && fd <= SV_FDS_MAX)
            sv_fd_open(t, p, (int64_t)fd - 1, is, true);
        else
            sv_file_put(t, is.file);
    }
}

static void get_process(struct bytes *b, struct sv_tree *t, uint32_t pid)
{
    bool is_new;
    size_t len;
    char name[SV_WIRE_COMM] = "";
    struct sv_proc *p = sv_tree_process(t, pid, &is_new);
    p->parent = (uint32_t)get(b);
    uint32_t inner = (uint32_t)get(b), inner_namespace = (uint32_t)get(b);
    p->is_threaded = get(b) != 0;
    p->has_snapshot = true;
    const char *text = get_text(b, &len);
    memcpy(name, text, len < sizeof name ? len : sizeof name - 1);
    text = get_text(b, &len);
    sv_tree_name_process(t, p, name, text, len);
    if (inner)
        sv_tree_set_inner(t, p, inner, inner_namespace);
    sv_file_put(t, p->cwd);
    p->cwd = get_file(b, t);
    sv_file_put(t, p->root);
    p->root = get_file(b, t);
    get_fds(b, t, p);
}

bool sv_processes_get(const uint8_t *bytes, size_t n, struct sv_tree *t, struct sv_inodes *x)
{
    struct bytes b = {.at = bytes, .end = bytes + n};
    uint64_t number;
    size_t len;
    while ((number = get(&b)) != 0 && !b.is_bad)
        get_process(&b, t, (uint32_t)number);
    while ((number = get(&b)) != 0 && !b.is_bad) {
        uint32_t tid = (uint32_t)get(&b);
        char name[SV_WIRE_COMM] = "";
        const char *text = get_text(&b, &len);
        memcpy(name, text, len < sizeof name ? len : sizeof name - 1);
        sv_tree_name_thread(t, (uint32_t)number, tid, name);
    }
    while ((number = get(&b)) != 0 && !b.is_bad) {
        struct sv_file *f = get_file(&b, t);
        sv_inodes_learn_key(x, t, number, f);
        sv_file_put(t, f);
    }
    return !b.is_bad;
}
