/* Which processes and threads there are: children of the followed ones, execs, exits. Called at
 * each look. Processes that live shorter than the interval are not seen. */
#include "record/watch/parts.h"

#include "core/base/mem.h"
#include "record/sample/procfs.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { YOUNG_LOOKS = 20 }; /* after these an exec is looked for less often */

static size_t read_of(const struct sv_watch *w, uint32_t pid, const char *file, char *text,
                      size_t size)
{
    char path[96];
    snprintf(path, sizeof path, "%s/%u/%s", w->options.root, pid, file);
    return sv_procfs_text(path, text, size);
}

/* Its program and command line as one number; 0: it is gone. */
static uint64_t image_of(const struct sv_watch *w, uint32_t pid)
{
    char path[96], text[4096];
    struct stat st;
    snprintf(path, sizeof path, "%s/%u/exe", w->options.root, pid);
    uint64_t file = stat(path, &st) == 0 ? (uint64_t)st.st_ino : 0;
    size_t n = read_of(w, pid, "cmdline", text, sizeof text);
    return n ? sv_hash_bytes(text, n, file) | 1 : 0;
}

static void put_exec(struct sv_watch *w, uint32_t pid, int64_t now_ns)
{
    char path[96], record[sizeof(struct sv_wire_head) + 8192];
    struct sv_wire_head h;
    size_t at = sizeof h;
    sv_watch_head(&h, SV_WIRE_EXEC, pid, pid, now_ns);
    memcpy(record, &h, sizeof h);
    snprintf(path, sizeof path, "%s/%u/exe", w->options.root, pid);
    ssize_t n = readlink(path, record + at, 4000);
    if (n <= 0)
        return;
    at += (size_t)n;
    record[at++] = 0;
    at += read_of(w, pid, "cmdline", record + at, 4000);
    sv_watch_put(w, record, at);
}

static uint32_t parent_of(const struct sv_watch *w, uint32_t pid)
{
    char text[1024];
    unsigned parent = 0;
    size_t n = read_of(w, pid, "stat", text, sizeof text);
    const char *at = n ? memrchr(text, ')', n) : NULL;
    return at && sscanf(at + 1, " %*c %u", &parent) == 1 ? parent : 0;
}

/* The dynamic linker maps it soon after an exec, so it is looked for in the first looks. */
static void look_inside(struct sv_watch *w, struct sv_watch_process *p)
{
    enum { MAPS_MAX = 1 << 20 };
    if (!w->options.inside || p->is_inside || p->looks >= YOUNG_LOOKS)
        return;
    char *maps = sv_alloc(MAPS_MAX);
    read_of(w, p->pid, "maps", maps, MAPS_MAX);
    p->is_inside = strstr(maps, w->options.inside) != NULL;
    free(maps);
}

/* Seen for the first time: forked by one that is followed, with the same program or another. */
static void meet(struct sv_watch *w, struct sv_watch_process *p, int64_t now_ns)
{
    p->image = image_of(w, p->pid);
    p->parent = parent_of(w, p->pid);
    p->is_known = p->image != 0;
    const struct sv_watch_process *parent = sv_watch_process(w, p->parent);
    bool is_copy = parent && parent->image == p->image;
    look_inside(w, p);
    if (is_copy && parent->has_python) {
        p->has_python = true;
        p->python = parent->python;
    }
    if (!w->options.has_processes || !p->is_known)
        return;
    if (parent && !parent->is_inside) {
        struct sv_wire_fork f = {.tgid = p->pid, .tid = p->pid};
        sv_watch_head(&f.head, SV_WIRE_FORK, p->parent, p->parent, now_ns);
        size_t n = read_of(w, p->pid, "comm", f.comm, sizeof f.comm);
        if (n && f.comm[n - 1] == '\n')
            f.comm[n - 1] = 0;
        sv_watch_put(w, &f, sizeof f);
    }
    if (!is_copy && !p->is_inside)
        put_exec(w, p->pid, now_ns);
}

static void look_for_exec(struct sv_watch *w, struct sv_watch_process *p, int64_t now_ns)
{
    uint64_t image = image_of(w, p->pid);
    if (image == 0 || image == p->image)
        return;
    p->image = image;
    p->has_python = p->is_inside = false;
    p->looks = 0;
    look_inside(w, p);
    if (w->options.has_processes && !p->is_inside)
        put_exec(w, p->pid, now_ns);
}

/* Threads name themselves after their start. */
void sv_watch_name(struct sv_watch *w, struct sv_watch_thread *x, int64_t now_ns)
{
    char file[64];
    struct sv_wire_name r = {0};
    if (!w->options.has_processes)
        return;
    x->named_at = x->last.switches;
    snprintf(file, sizeof file, "task/%u/comm", x->tid);
    size_t n = read_of(w, x->pid, file, r.comm, sizeof r.comm);
    if (n && r.comm[n - 1] == '\n')
        r.comm[n - 1] = 0;
    if (n == 0 || strcmp(r.comm, x->name) == 0)
        return;
    memcpy(x->name, r.comm, sizeof x->name);
    sv_watch_head(&r.head, SV_WIRE_NAME, x->pid, x->tid, now_ns);
    sv_watch_put(w, &r, sizeof r);
}

static void add_thread(struct sv_watch *w, uint32_t pid, uint32_t tid)
{
    bool is_new;
    uint64_t *at = sv_map_add(&w->by_tid, (uint64_t)pid << 32 | tid, &is_new);
    if (!is_new)
        return;
    w->threads = sv_grow(w->threads, &w->cap_threads, w->n_threads + 1, sizeof *w->threads);
    w->threads[w->n_threads] =
        (struct sv_watch_thread){.pid = pid, .tid = tid, .fds = {-1, -1, -1, -1}};
    _Static_assert(SV_WATCH_FILES == 4, "each is -1");
    *at = ++w->n_threads;
    w->sums.threads++;
}

/* The folder of the threads has one link for each, and two of its own: as long as that is the same
 * number it is not read. */
static void find_threads(struct sv_watch *w, size_t i, bool is_thorough)
{
    char path[96];
    struct stat st;
    uint32_t pid = w->processes[i].pid;
    snprintf(path, sizeof path, "%s/%u/task", w->options.root, pid);
    if (stat(path, &st) != 0) {
        w->processes[i].is_gone = true;
        return;
    }
    if (!is_thorough && st.st_nlink == w->processes[i].n_threads)
        return;
    w->processes[i].n_threads = (uint32_t)st.st_nlink;
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char *end;
        unsigned long tid = strtoul(e->d_name, &end, 10);
        if (tid > 0 && tid <= UINT32_MAX && *end == 0)
            add_thread(w, pid, (uint32_t)tid);
    }
    if (dir)
        closedir(dir);
}

/* Mostly the main thread starts processes. All threads are asked now and then, of very many less
 * often: that is a file for each. */
static void find_children(struct sv_watch *w, const struct sv_watch_process *p, bool is_thorough)
{
    enum { THREADS_MANY = 64, LOOKS_BETWEEN = 100 };
    char file[64], text[16384], *end;
    uint32_t *family = NULL, pid = p->pid;
    if (is_thorough && (p->n_threads < THREADS_MANY || p->looks % LOOKS_BETWEEN == 0)) {
        size_t n = sv_procfs_family(pid, &family);
        for (size_t k = 0; k < n; k++)
            sv_watch_add(w, family[k]);
        free(family);
        return;
    }
    snprintf(file, sizeof file, "task/%u/children", pid);
    read_of(w, pid, file, text, sizeof text);
    char *at = text;
    for (unsigned long child; (child = strtoul(at, &end, 10)) > 0 && end != at; at = end)
        sv_watch_add(w, (uint32_t)child);
}

/* A zombie has no threads that do anything, but it is there until its parent has asked for it. */
static bool is_zombie(const struct sv_watch *w, uint32_t pid)
{
    char text[1024];
    size_t n = read_of(w, pid, "stat", text, sizeof text);
    const char *at = n ? memrchr(text, ')', n) : NULL;
    return !at || at + 2 >= text + n || strchr("ZX", at[2]);
}

void sv_watch_find(struct sv_watch *w, int64_t now_ns, bool is_thorough)
{
    for (size_t i = 0; i < w->n_processes; i++)
        if (!w->processes[i].is_gone)
            find_children(w, &w->processes[i], is_thorough);
    for (size_t i = 0; i < w->n_processes; i++) {
        struct sv_watch_process *p = &w->processes[i];
        if (!p->is_known)
            meet(w, p, now_ns);
        else if (is_thorough || p->looks < YOUNG_LOOKS)
            look_for_exec(w, p, now_ns);
        look_inside(w, p);
        p->looks++;
        find_threads(w, i, is_thorough);
        p = &w->processes[i];
        p->is_gone |= is_zombie(w, p->pid);
    }
}
