/* The followed processes and their open files. Called by the decoder for every record that changes
 * something; asks only its caller.
 *
 * Paths are joined as texts: `.` and `..` are taken out. A `..` behind a symbolic link leads to
 * where the link's folder is, as it does in the kernel; other links are not resolved. */
#include "record/decode/tree.h"

#include "core/base/path_clean.h"
#include "subjects/io/words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS_FIRST = 1 << 10, PATH_LEN_MAX = 1 << 15 };

void sv_tree_init(struct sv_tree *t, struct sv_dict *dict)
{
    *t = (struct sv_tree){.dict = dict, .n_buckets = BUCKETS_FIRST};
    t->buckets = sv_alloc(t->n_buckets * sizeof *t->buckets);
    t->calls_name = sv_dict_cstr(dict, SV_ROW_SYSCALLS);
    sv_lanes_init(&t->lanes, dict);
}

void sv_tree_sweep(struct sv_tree *t)
{
    while (t->unused) {
        struct sv_file *f = t->unused;
        t->unused = f->next;
        free(f);
    }
    memset(t->no_links, 0, sizeof t->no_links);
}

void sv_tree_fini(struct sv_tree *t)
{
    sv_tree_sweep(t);
    for (size_t i = 0; i < t->n_buckets; i++) {
        while (t->buckets[i]) {
            struct sv_file *f = t->buckets[i];
            t->buckets[i] = f->next;
            free(f);
        }
    }
    for (size_t i = 0; i < t->n; i++) {
        sv_fds_free(&t->processes[i]->open); /* the files themselves are gone */
        free(t->processes[i]);
    }
    free(t->processes);
    free(t->threads);
    free(t->buckets);
    sv_map_fini(&t->by_pid);
    sv_map_fini(&t->by_tid);
    sv_lanes_fini(&t->lanes);
}

/* ---- files ---- */

static void rehash(struct sv_tree *t)
{
    size_t n = t->n_buckets * 4;
    struct sv_file **to = sv_alloc(n * sizeof *to);
    for (size_t i = 0; i < t->n_buckets; i++) {
        while (t->buckets[i]) {
            struct sv_file *f = t->buckets[i];
            t->buckets[i] = f->next;
            f->next = to[f->hash & (n - 1)];
            to[f->hash & (n - 1)] = f;
        }
    }
    free(t->buckets);
    t->buckets = to;
    t->n_buckets = n;
}

/* NULL: not met yet. */
static struct sv_file *find(const struct sv_tree *t, uint64_t hash, const char *path, size_t len)
{
    struct sv_file *f = t->buckets[hash & (t->n_buckets - 1)];
    while (f && (f->hash != hash || f->len != len || memcmp(f->path, path, len) != 0))
        f = f->next;
    if (f)
        f->refs++;
    return f;
}

/* Where libstave keeps its rings (lib/sdk/session/folders.c): /dev/shm/stave-UID, /tmp/stave-UID,
 * /run/user/UID/stave. */
static bool is_own(const char *path)
{
    static const char *const bases[] = {"/dev/shm/stave-", "/tmp/stave-", "/run/user/"};
    for (size_t i = 0; i < sizeof bases / sizeof *bases; i++) {
        size_t n = strlen(bases[i]), digits = 0;
        if (strncmp(path, bases[i], n) != 0)
            continue;
        digits = strspn(path + n, "0123456789");
        const char *end = path + n + digits;
        if (i == 2 && strncmp(end, "/stave", 6) == 0)
            end += 6;
        else if (i == 2)
            continue;
        if (digits && (*end == '/' || !*end))
            return true;
    }
    return false;
}

static struct sv_file *add(struct sv_tree *t, uint64_t hash, const char *path, size_t len)
{
    if (t->n_files >= t->n_buckets * 2)
        rehash(t);
    struct sv_file *f = sv_alloc(sizeof *f + len + 1);
    f->hash = hash;
    f->refs = 1;
    f->len = (uint32_t)len & (INT32_MAX >> 1);
    memcpy(f->path, path, len);
    f->is_own = is_own(f->path);
    f->next = t->buckets[hash & (t->n_buckets - 1)];
    t->buckets[hash & (t->n_buckets - 1)] = f;
    t->n_files++;
    return f;
}

static struct sv_file *intern(struct sv_tree *t, const char *path, size_t len)
{
    uint64_t hash = sv_hash_bytes(path, len, 0);
    struct sv_file *f = find(t, hash, path, len);
    return f ? f : add(t, hash, path, len);
}

/* The folder that the first n bytes lead to, where their last word is a symbolic link: its path
 * takes their place. Returns their length. */
static size_t follow_link(void *tree, char *path, size_t n)
{
    struct sv_tree *t = tree;
    char name[SV_TREE_PATH_MAX], to[SV_TREE_PATH_MAX];
    if (!t->link_of || n == 0 || n >= sizeof name)
        return n;
    uint64_t hash = sv_hash_bytes(path, n, 0) | 1, *known = &t->no_links[hash >> 58];
    if (*known == hash)
        return n;
    memcpy(name, path, n);
    name[n] = 0;
    if (!t->link_of(t->link_ctx, name, to)) {
        *known = hash;
        return n;
    }
    n = strlen(to);
    memcpy(path, to, n);
    return n;
}

static size_t clean(struct sv_tree *t, const char *path, size_t len, char *to)
{
    return sv_path_clean(path, len, to, PATH_LEN_MAX, follow_link, t);
}

struct sv_file *sv_tree_file(struct sv_tree *t, const struct sv_file *dir, const char *path,
                             size_t len)
{
    char joined[PATH_LEN_MAX], cleaned[PATH_LEN_MAX + SV_TREE_PATH_MAX];
    bool is_absolute = len > 0 && path[0] == '/';
    if (is_absolute) {
        /* An absolute path that is known is a clean one: only new ones need a look. */
        uint64_t hash = sv_hash_bytes(path, len, 0);
        struct sv_file *f = find(t, hash, path, len);
        if (f || sv_path_is_clean(path, len))
            return f ? f : add(t, hash, path, len);
    }
    if (!is_absolute && (!dir || dir->path[0] != '/'))
        return len ? intern(t, path, len) : dir ? intern(t, dir->path, dir->len) : NULL;
    size_t n = is_absolute ? 0 : dir->len;
    if (n + len + 1 > sizeof joined)
        return intern(t, path, len);
    if (!is_absolute) {
        memcpy(joined, dir->path, n);
        joined[n++] = '/';
    }
    memcpy(joined + n, path, len);
    return intern(t, cleaned, clean(t, joined, n + len, cleaned));
}

/* What is below a root of a path, or of a folder that it starts from; NULL: it is outside. */
static const char *below(const struct sv_file *root, const struct sv_file *dir)
{
    if (!dir || dir->len < root->len || memcmp(dir->path, root->path, root->len) != 0)
        return NULL;
    return dir->path[root->len] == '/' || dir->len == root->len ? dir->path + root->len : NULL;
}

/* As the program has it; `..` does not lead out of its root. Links are not resolved there: they
 * begin at that root, too. */
struct sv_file *sv_tree_file_of(struct sv_tree *t, const struct sv_proc *p,
                                const struct sv_file *dir, const char *path, size_t len)
{
    char inner[PATH_LEN_MAX], joined[2 * PATH_LEN_MAX];
    struct sv_tree texts_only = {0};
    bool is_absolute = len > 0 && path[0] == '/';
    const char *from = !p->root || len == 0 ? NULL : is_absolute ? "" : below(p->root, dir);
    if (!from || p->root->len + strlen(from) + len + 1 > SV_TREE_PATH_MAX)
        return sv_tree_file(t, dir, path, len);
    int n = snprintf(inner, sizeof inner, "%s/%.*s", from, (int)len, path);
    memcpy(joined, p->root->path, p->root->len);
    size_t more = clean(&texts_only, inner, (size_t)n, joined + p->root->len);
    return intern(t, joined, p->root->len + (more > 1 ? more : 0));
}

static void forget(struct sv_tree *t, struct sv_file *f)
{
    struct sv_file **at = &t->buckets[f->hash & (t->n_buckets - 1)];
    while (*at != f)
        at = &(*at)->next;
    *at = f->next;
    t->n_files--;
    t->n_forgotten_files++;
    f->next = t->unused;
    t->unused = f;
}

void sv_file_put(struct sv_tree *t, struct sv_file *f)
{
    if (f && --f->refs == 0 && t->n_files > SV_FILES_KEPT_MAX)
        forget(t, f);
}

/* ---- processes ---- */

struct sv_proc *sv_tree_find(const struct sv_tree *t, uint32_t pid)
{
    const uint64_t *at = sv_map_find(&t->by_pid, pid);
    return at ? t->processes[*at - 1] : NULL;
}

struct sv_proc *sv_tree_process(struct sv_tree *t, uint32_t pid, bool *is_new)
{
    uint64_t *at = sv_map_add(&t->by_pid, pid, is_new);
    if (!*is_new)
        return t->processes[*at - 1];
    t->processes = sv_grow(t->processes, &t->cap, t->n + 1, sizeof *t->processes);
    struct sv_proc *p = sv_alloc(sizeof *p);
    p->pid = pid;
    p->track = sv_dict_process(t->dict, 0, pid);
    t->processes[t->n++] = p;
    *at = t->n;
    return p;
}

struct sv_traced_thread *sv_tree_thread(struct sv_tree *t, uint32_t pid, uint32_t tid)
{
    bool is_new;
    uint64_t *at = sv_map_add(&t->by_tid, (uint64_t)pid << 32 | tid, &is_new);
    if (!is_new)
        return &t->threads[*at - 1];
    t->threads = sv_grow(t->threads, &t->cap_threads, t->n_threads + 1, sizeof *t->threads);
    struct sv_traced_thread *x = &t->threads[t->n_threads++];
    *at = t->n_threads;
    *x = (struct sv_traced_thread){
        .pid = pid, .tid = tid, .track = sv_dict_thread(t->dict, 0, pid, tid)};
    x->calls = sv_dict_child(t->dict, x->track, SV_TRACK_CUSTOM, t->calls_name);
    return x;
}

static void name_track(struct sv_dict *d, sv_track track, const char *name, size_t len)
{
    sv_str s = sv_dict_str(d, name, len);
    if (len == 0 || d->tracks[track].name == s)
        return;
    d->tracks[track].name = s;
    d->tracks[track].is_described = true;
    sv_dict_touch(d, track);
}

bool sv_tree_is_own_thread(const struct sv_tree *t, uint32_t pid, uint32_t tid)
{
    const uint64_t *at = sv_map_find(&t->by_tid, (uint64_t)pid << 32 | tid);
    return at && t->threads[*at - 1].is_own;
}

void sv_tree_name_thread(struct sv_tree *t, uint32_t pid, uint32_t tid, const char *name)
{
    struct sv_traced_thread *x = sv_tree_thread(t, pid, tid);
    x->ended_ns = 0; /* the number may have been another's */
    x->is_own = strncmp(name, "stave-writer", 16) == 0 || strncmp(name, "stave-serving", 16) == 0;
    t->has_own_threads |= x->is_own;
    name_track(t->dict, x->track, name, strnlen(name, 16));
}

/* The command, whose words are separated by NULs, and the number in its own pid namespace. */
static void describe(struct sv_dict *d, struct sv_proc *p, const char *command, size_t len)
{
    enum { COMMAND_MAX = 1024, INNER_MAX = 64 };
    char text[COMMAND_MAX + INNER_MAX];
    while (len > 0 && command[len - 1] == 0)
        len--;
    len = len < COMMAND_MAX ? len : COMMAND_MAX;
    for (size_t i = 0; i < len; i++)
        text[i] = command[i] ? command[i] : ' ';
    p->command_len = (uint16_t)len;
    if (p->inner_pid)
        len += (size_t)snprintf(text + len, INNER_MAX, "%s(pid %u in pid namespace %u)",
                                len ? " " : "", p->inner_pid, p->inner_namespace);
    sv_dict_describe(d, p->track, text, len);
    sv_dict_touch(d, p->track);
}

/* As another one's description, or its own, has it. */
static void describe_as(struct sv_tree *t, struct sv_proc *p, const struct sv_proc *other)
{
    struct sv_text text = sv_dict_text(t->dict, t->dict->tracks[other->track].desc);
    char *command = sv_strndup(text.bytes, other->command_len <= text.len ? other->command_len : 0);
    describe(t->dict, p, command, strlen(command));
    free(command);
}

void sv_tree_set_inner(struct sv_tree *t, struct sv_proc *p, uint32_t pid, uint32_t pid_namespace)
{
    if (p->inner_pid == pid && p->inner_namespace == pid_namespace)
        return;
    p->inner_pid = pid;
    p->inner_namespace = pid_namespace;
    describe_as(t, p, p);
}

void sv_tree_name_process(struct sv_tree *t, struct sv_proc *p, const char *name,
                          const char *command, size_t command_len)
{
    size_t len = strnlen(name, sizeof p->name - 1);
    memset(p->name, 0, sizeof p->name);
    memcpy(p->name, name, len);
    name_track(t->dict, p->track, name, len);
    if (command_len > 0 && !t->hides_commands)
        describe(t->dict, p, command, command_len);
}

/* Of the forgotten ones the busiest stay, for the summary. */
static void remember(struct sv_tree *t, const struct sv_proc *p)
{
    struct sv_gone g = {.pid = p->pid,
                        .calls = p->calls,
                        .bytes_read = p->bytes_read,
                        .bytes_written = p->bytes_written,
                        .time_ns = p->time_ns};
    size_t least = 0;
    memcpy(g.name, p->name, sizeof g.name);
    t->n_forgotten++;
    t->n_forgotten_active += p->calls > 0;
    if (p->calls == 0)
        return;
    if (t->n_gone < SV_GONE_MAX) {
        t->gone[t->n_gone++] = g;
        return;
    }
    for (size_t i = 1; i < SV_GONE_MAX; i++)
        if (t->gone[i].time_ns < t->gone[least].time_ns)
            least = i;
    if (t->gone[least].time_ns < g.time_ns)
        t->gone[least] = g;
}

static void begin_again(struct sv_tree *t, struct sv_proc *p)
{
    bool was_ended = p->is_ended;
    sv_tree_end(t, p, 0);
    t->n_ended -= t->n_ended > 0;
    if (was_ended)
        remember(t, p);
    *p = (struct sv_proc){.pid = p->pid, .track = p->track};
}

struct sv_proc_image sv_tree_image(const struct sv_tree *t, uint32_t pid)
{
    const struct sv_proc *p = sv_tree_find(t, pid);
    return (struct sv_proc_image){pid, p && p->image ? p->image : sv_image_number(pid, 0)};
}

void sv_tree_fork(struct sv_tree *t, uint32_t parent, uint32_t child)
{
    bool is_new;
    struct sv_proc *c = sv_tree_process(t, child, &is_new);
    struct sv_proc *p = sv_tree_find(t, parent);
    if (!is_new) /* the number is used again */
        begin_again(t, c);
    c->parent = parent;
    if (!p || p == c)
        return;
    c->has_snapshot = p->has_snapshot;
    c->image = sv_tree_image(t, parent).number;
    c->cwd = p->cwd;
    if (c->cwd)
        c->cwd->refs++;
    c->root = p->root;
    if (c->root)
        c->root->refs++;
    sv_fds_copy(t, c, p);
    sv_tree_name_process(t, c, p->name, NULL, 0);
    t->dict->tracks[c->track].origin = t->dict->tracks[p->track].origin;
    if (!is_new || t->dict->tracks[c->track].desc == 0)
        describe_as(t, c, p);
}

void sv_tree_end(struct sv_tree *t, struct sv_proc *p, int64_t now_ns)
{
    sv_fds_clear(t, p);
    sv_file_put(t, p->cwd);
    sv_file_put(t, p->root);
    p->cwd = p->root = NULL;
    t->n_ended += !p->is_ended;
    p->is_ended = true;
    p->ended_ns = now_ns;
}

void sv_tree_end_thread(struct sv_tree *t, uint32_t pid, uint32_t tid, int64_t now_ns)
{
    const uint64_t *at = sv_map_find(&t->by_tid, (uint64_t)pid << 32 | tid);
    if (!at)
        return;
    t->n_ended += t->threads[*at - 1].ended_ns == 0;
    t->threads[*at - 1].ended_ns = now_ns;
}

/* ---- forgetting ---- */

static void remove_process(struct sv_tree *t, size_t i)
{
    struct sv_proc *p = t->processes[i];
    sv_map_remove(&t->by_pid, p->pid);
    sv_fds_clear(t, p);
    free(p);
    t->processes[i] = t->processes[--t->n];
    if (i < t->n)
        *sv_map_find(&t->by_pid, t->processes[i]->pid) = i + 1;
}

static void remove_thread(struct sv_tree *t, size_t i)
{
    struct sv_traced_thread *x = &t->threads[i];
    sv_map_remove(&t->by_tid, (uint64_t)x->pid << 32 | x->tid);
    *x = t->threads[--t->n_threads];
    if (i < t->n_threads)
        *sv_map_find(&t->by_tid, (uint64_t)x->pid << 32 | x->tid) = i + 1;
}

static bool is_kept(const struct sv_tree_forgetting *how, uint32_t pid)
{
    return how->keeps && how->keeps(how->ctx, pid);
}

void sv_tree_forget(struct sv_tree *t, int64_t before_ns, const struct sv_tree_forgetting *how)
{
    struct sv_map removed = {0};
    bool is_new;
    t->n_ended = 0;
    for (size_t i = t->n; i-- > 0;) {
        struct sv_proc *p = t->processes[i];
        if (!p->is_ended)
            continue;
        if (p->ended_ns > before_ns || is_kept(how, p->pid)) {
            t->n_ended++;
            continue;
        }
        remember(t, p);
        sv_map_add(&removed, p->pid, &is_new);
        how->forgets(how->ctx, p->track);
        remove_process(t, i);
    }
    for (size_t i = t->n_threads; i-- > 0;) {
        const struct sv_traced_thread *x = &t->threads[i];
        bool is_ended = x->ended_ns != 0;
        if (!sv_map_find(&removed, x->pid) &&
            (!is_ended || x->ended_ns > before_ns || is_kept(how, x->pid))) {
            t->n_ended += is_ended;
            continue;
        }
        how->forgets(how->ctx, x->track);
        remove_thread(t, i);
    }
    sv_map_fini(&removed);
}
