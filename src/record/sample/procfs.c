/* Reads /proc. Called at the start of a recording, for processes that already run when they are
 * first seen, and after losses.
 *
 * Everything here races with the processes it looks at: what is gone meanwhile is left out, and is
 * no error. */
#include "record/sample/procfs.h"
#include "record/sample/process_rank.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { FAMILY_MAX = 1 << 20 };

/* Written once, by sv_procfs_open(). */
static char root[32] = "/proc";

const char *sv_procfs_root(void)
{
    return root;
}

/* A /proc of our own pid namespace that is in no folder: no other process sees it, and it goes with
 * its descriptor. */
static int mount_proc(void)
{
    enum {
        CLOSE_ON_EXEC = 1,
        CREATE = 6
    }; /* FSOPEN_CLOEXEC, FSMOUNT_CLOEXEC; FSCONFIG_CMD_CREATE */
    int at = -1, fs = (int)syscall(SYS_fsopen, "proc", CLOSE_ON_EXEC);
    if (fs >= 0 && syscall(SYS_fsconfig, fs, CREATE, NULL, NULL, 0) == 0)
        at = (int)syscall(SYS_fsmount, fs, CLOSE_ON_EXEC, 0);
    if (fs >= 0)
        close(fs);
    return at;
}

static bool is_ours(const char *self)
{
    char text[32];
    ssize_t n = readlink(self, text, sizeof text - 1);
    text[n > 0 ? n : 0] = 0;
    return n > 0 && strtoul(text, NULL, 10) == (unsigned long)getpid();
}

int sv_procfs_open(struct sv_err *err)
{
    char self[48];
    if (is_ours("/proc/self"))
        return 0;
    int fd = mount_proc();
    if (fd >= 0) {
        snprintf(root, sizeof root, "/proc/self/fd/%d", fd);
        snprintf(self, sizeof self, "%s/self", root);
        if (is_ours(self))
            return 0;
        close(fd);
        snprintf(root, sizeof root, "/proc");
    }
    if (access("/proc/self", F_OK) != 0)
        return sv_err_set(err, SV_EIO, SV_NO_POS, "/proc is not mounted: mount -t proc proc /proc");
    return sv_err_set(err, SV_EIO, SV_NO_POS,
                      "/proc shows another pid namespace than this one: mount -t proc proc /proc "
                      "(or unshare --mount-proc)");
}

size_t sv_procfs_text(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t n = 0;
    if (fd < 0) {
        text[0] = 0;
        return 0;
    }
    while (n + 1 < size) {
        ssize_t got = read(fd, text + n, size - 1 - n);
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    close(fd);
    text[n] = 0;
    return n;
}

static struct sv_file *link_target(struct sv_tree *t, const char *path)
{
    char target[4096];
    static const char memory[] = "/memfd:", gone[] = " (deleted)";
    const size_t n_gone = sizeof gone - 1;
    ssize_t n = readlink(path, target, sizeof target);
    if (n <= 0)
        return NULL;
    size_t len = (size_t)n;
    if (len > n_gone && strncmp(target, memory, sizeof memory - 1) == 0 &&
        memcmp(target + len - n_gone, gone, n_gone) == 0) /* as memfd_create() names it */
        return sv_tree_file(t, NULL, target + 1, len - 1 - n_gone);
    return sv_tree_file(t, NULL, target, len);
}

/* The numbers in a folder of /proc: processes, their threads, their descriptors. */
static DIR *numbers_of(uint32_t pid, const char *what)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%u/%s", sv_procfs_root(), pid, what);
    return opendir(path);
}

/* False: there are no more, and the folder is closed. */
static bool next_number(DIR *dir, uint32_t *number)
{
    for (struct dirent *e; dir && (e = readdir(dir));) {
        char *end;
        *number = (uint32_t)strtoul(e->d_name, &end, 10);
        if (end != e->d_name && *end == '\0')
            return true;
    }
    if (dir)
        closedir(dir);
    return false;
}

static bool closes_on_exec(uint32_t pid, uint32_t fd)
{
    char path[64], text[512];
    snprintf(path, sizeof path, "%s/%u/fdinfo/%u", sv_procfs_root(), pid, fd);
    sv_procfs_text(path, text, sizeof text);
    const char *flags = strstr(text, "flags:");
    return flags && strtoul(flags + 6, NULL, 8) & O_CLOEXEC;
}

/* What a descriptor of a process is at one moment: its inode and its name, NULL when it is gone. */
static struct sv_file *descriptor_target(struct sv_tree *t, uint32_t pid, int64_t fd,
                                         uint64_t *inode)
{
    char path[64];
    struct stat st;
    snprintf(path, sizeof path, "%s/%u/fd/%lld", sv_procfs_root(), pid, (long long)fd);
    int held = open(path, O_PATH | O_CLOEXEC); /* so that both are of the same file */
    if (held < 0)
        return NULL;
    snprintf(path, sizeof path, "/proc/self/fd/%d", held);
    struct sv_file *f = link_target(t, path);
    *inode = fstat(held, &st) == 0 ? (uint64_t)st.st_ino : 0;
    close(held);
    return f;
}

static void read_fds(struct sv_tree *t, struct sv_proc *p)
{
    DIR *dir = numbers_of(p->pid, "fd");
    for (uint32_t fd; next_number(dir, &fd);) {
        struct sv_fd is = {.closes_on_exec = closes_on_exec(p->pid, fd)};
        is.file = descriptor_target(t, p->pid, fd, &is.inode);
        if (is.file)
            sv_fd_open(t, p, fd, is, true);
    }
}

/* 0: it is gone. */
static size_t name_of(const char *path, char name[32])
{
    size_t n = sv_procfs_text(path, name, 32);
    if (n > 0)
        name[n - 1] = 0;
    return n;
}

static void read_threads(struct sv_tree *t, struct sv_proc *p)
{
    char path[64], name[32];
    DIR *dir = numbers_of(p->pid, "task");
    for (uint32_t tid; next_number(dir, &tid);) {
        p->is_threaded |= tid != p->pid;
        snprintf(path, sizeof path, "%s/%u/task/%u/comm", sv_procfs_root(), p->pid, tid);
        if (name_of(path, name))
            sv_tree_name_thread(t, p->pid, tid, name);
    }
}

size_t sv_procfs_command(uint32_t pid, char *text, size_t size)
{
    char path[64];
    snprintf(path, sizeof path, "%s/%u/cmdline", sv_procfs_root(), pid);
    return sv_procfs_text(path, text, size);
}

/* "NSpid: 4711 12 1": from our namespace down to its own. */
void sv_procfs_inner(struct sv_tree *t, struct sv_proc *p)
{
    char path[64], text[4096];
    struct stat st;
    snprintf(path, sizeof path, "%s/%u/status", sv_procfs_root(), p->pid);
    sv_procfs_text(path, text, sizeof text);
    const char *line = strstr(text, "\nNSpid:");
    if (!line)
        return;
    line += strlen("\nNSpid:");
    unsigned long number = 0;
    unsigned n = 0;
    for (char *end; *line && *line != '\n'; line = end, n++) {
        unsigned long next = strtoul(line, &end, 10);
        if (end == line)
            break;
        number = next;
    }
    snprintf(path, sizeof path, "%s/%u/ns/pid", sv_procfs_root(), p->pid);
    if (n > 1 && stat(path, &st) == 0)
        sv_tree_set_inner(t, p, (uint32_t)number, (uint32_t)st.st_ino);
}

bool sv_procfs_complete(struct sv_tree *t, uint32_t pid)
{
    char path[64], name[32], command[4096];
    bool is_new;
    snprintf(path, sizeof path, "%s/%u/comm", sv_procfs_root(), pid);
    size_t n = name_of(path, name);
    struct sv_proc *p = sv_tree_process(t, pid, &is_new);
    p->has_snapshot = true;
    if (n == 0)
        return false;
    n = sv_procfs_command(pid, command, sizeof command);
    sv_procfs_inner(t, p);
    sv_tree_name_process(t, p, name, command, n);
    sv_process_rank(t, p);
    snprintf(path, sizeof path, "%s/%u/cwd", sv_procfs_root(), pid);
    sv_file_put(t, p->cwd);
    p->cwd = link_target(t, path);
    snprintf(path, sizeof path, "%s/%u/root", sv_procfs_root(), pid);
    sv_file_put(t, p->root);
    p->root = link_target(t, path);
    if (p->root && p->root->len == 1) { /* the recorder's own */
        sv_file_put(t, p->root);
        p->root = NULL;
    }
    sv_fds_clear(t, p);
    read_fds(t, p);
    read_threads(t, p);
    return true;
}

struct sv_file *sv_procfs_descriptor(struct sv_tree *t, uint32_t pid, int64_t fd, uint64_t inode)
{
    uint64_t is_now = 0;
    struct sv_file *f = descriptor_target(t, pid, fd, &is_now);
    if (!f || (inode ? is_now == inode : f->path[0] != '/'))
        return f;
    sv_file_put(t, f);
    return NULL;
}

/* ---- families ---- */

struct family {
    uint32_t *pids;
    size_t n, cap;
    struct sv_map seen;
};

static void add_member(struct family *f, uint32_t pid)
{
    bool is_new;
    sv_map_add(&f->seen, pid, &is_new);
    if (!is_new || f->n >= FAMILY_MAX)
        return;
    f->pids = sv_grow(f->pids, &f->cap, f->n + 1, sizeof *f->pids);
    f->pids[f->n++] = pid;
}

static void add_children(struct family *f, uint32_t pid)
{
    char path[80], text[16384];
    DIR *dir = numbers_of(pid, "task");
    for (uint32_t tid; next_number(dir, &tid);) {
        snprintf(path, sizeof path, "%s/%u/task/%u/children", sv_procfs_root(), pid, tid);
        sv_procfs_text(path, text, sizeof text);
        char *at = text, *end;
        for (unsigned long child; (child = strtoul(at, &end, 10)) > 0 && end != at; at = end)
            add_member(f, (uint32_t)child);
    }
}

size_t sv_procfs_family(uint32_t pid, uint32_t **pids)
{
    struct family f = {0};
    char path[64];
    snprintf(path, sizeof path, "%s/%u", sv_procfs_root(), pid);
    if (access(path, F_OK) == 0)
        add_member(&f, pid);
    for (size_t i = 0; i < f.n; i++)
        add_children(&f, f.pids[i]);
    sv_map_fini(&f.seen);
    *pids = f.pids;
    return f.n;
}

size_t sv_procfs_threads(uint32_t pid, uint32_t **tids)
{
    struct family f = {0};
    DIR *dir = numbers_of(pid, "task");
    for (uint32_t tid; next_number(dir, &tid);)
        add_member(&f, tid);
    sv_map_fini(&f.seen);
    *tids = f.pids;
    return f.n;
}

size_t sv_procfs_named(const char *comm, uint32_t **pids)
{
    struct family f = {0};
    char path[64], name[32];
    DIR *dir = opendir(sv_procfs_root());
    for (uint32_t pid; next_number(dir, &pid);) {
        snprintf(path, sizeof path, "%s/%u/comm", sv_procfs_root(), pid);
        if (pid != (uint32_t)getpid() && name_of(path, name) && strncmp(name, comm, 15) == 0)
            add_member(&f, pid);
    }
    sv_map_fini(&f.seen);
    *pids = f.pids;
    return f.n;
}

static void cgroup_path(const char *folder, const char *file, char path[1024])
{
    bool is_whole = folder[0] == '/' && strncmp(folder, "/sys/", 5) == 0;
    snprintf(path, 1024, "%s%s%.900s%s", is_whole ? "" : "/sys/fs/cgroup",
             is_whole || folder[0] == '/' ? "" : "/", folder, file);
}

bool sv_procfs_is_cgroup(const char *folder)
{
    struct statfs fs;
    char path[1024];
    cgroup_path(folder, "/cgroup.procs", path);
    return statfs(path, &fs) == 0 &&
           (fs.f_type == CGROUP2_SUPER_MAGIC || fs.f_type == CGROUP_SUPER_MAGIC);
}

uint64_t sv_procfs_cgroup_number(const char *folder)
{
    struct stat st;
    char path[1024];
    cgroup_path(folder, "", path);
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode) ? (uint64_t)st.st_ino : 0;
}

/* Lines of "number:controllers:path". The one of the unified hierarchy, "0::", counts; where it is
 * the root, the longest of the others. */
size_t sv_procfs_cgroup(uint32_t pid, char *text, size_t size)
{
    char path[64], all[8192];
    size_t best = 0;
    snprintf(path, sizeof path, "%s/%u/cgroup", sv_procfs_root(), pid);
    sv_procfs_text(path, all, sizeof all);
    text[0] = 0;
    for (char *line = all; *line;) {
        size_t len = strcspn(line, "\n");
        const char *at = memchr(line, ':', len);
        at = at ? memchr(at + 1, ':', (size_t)(line + len - at - 1)) : NULL;
        size_t n = at ? (size_t)(line + len - at - 1) : 0;
        bool is_unified = strncmp(line, "0::", 3) == 0;
        if (n > 1 && n < size && (n > best || is_unified)) {
            memcpy(text, at + 1, n);
            text[n] = 0;
            best = n;
            if (is_unified)
                break;
        }
        line += len + (line[len] == '\n');
    }
    return best;
}

size_t sv_procfs_cgroup_of(struct sv_cgroup *last, uint32_t pid, uint64_t groups, int64_t ts_ns,
                           char text[SV_PROCFS_CGROUP_MAX])
{
    const int64_t keep_ns = 1000000000;
    bool is_known = last->n && groups && groups == last->groups && ts_ns >= last->ts_ns &&
                    ts_ns - last->ts_ns < keep_ns;
    if (!is_known) {
        last->groups = groups;
        last->ts_ns = ts_ns;
        last->n = sv_procfs_cgroup(pid, last->text, sizeof last->text);
    }
    memcpy(text, last->text, last->n + 1);
    return last->n;
}

/* Below the folder of `len` bytes in `path`; true: it is there. */
static bool find_folder(char path[SV_PROCFS_CGROUP_MAX], size_t len, uint64_t number, int depth)
{
    const struct dirent *e;
    DIR *d = depth > 0 ? opendir(path) : NULL;
    bool is_found = false;
    while (d && !is_found && (e = readdir(d))) {
        size_t n = strlen(e->d_name);
        if (e->d_type != DT_DIR || e->d_name[0] == '.' || len + n + 2 > SV_PROCFS_CGROUP_MAX)
            continue;
        path[len] = '/';
        memcpy(path + len + 1, e->d_name, n + 1);
        is_found = e->d_ino == number || find_folder(path, len + 1 + n, number, depth - 1);
    }
    if (d)
        closedir(d);
    return is_found;
}

size_t sv_procfs_cgroup_called(uint64_t number, char text[SV_PROCFS_CGROUP_MAX])
{
    enum { DEPTH = 16 };
    bool is_unified = sv_procfs_is_cgroup("/sys/fs/cgroup");
    char path[SV_PROCFS_CGROUP_MAX];
    snprintf(path, sizeof path, "/sys/fs/cgroup%s", is_unified ? "" : "/cpu");
    size_t base = strlen(path);
    bool is_found = number && find_folder(path, base, number, DEPTH);
    size_t n = is_found ? strlen(path) - base : 0;
    memcpy(text, path + base, n);
    text[n] = 0;
    return n;
}

size_t sv_procfs_in_cgroup(const char *folder, uint32_t **pids)
{
    enum { LIST_MAX = 1 << 20 };
    struct family f = {0};
    char path[1024];
    char *text = sv_alloc(LIST_MAX), *at = text, *end;
    cgroup_path(folder, "/cgroup.procs", path);
    sv_procfs_text(path, text, LIST_MAX);
    for (unsigned long pid; (pid = strtoul(at, &end, 10)) > 0 && end != at; at = end)
        if (pid != (unsigned long)getpid())
            add_member(&f, (uint32_t)pid);
    free(text);
    sv_map_fini(&f.seen);
    *pids = f.pids;
    return f.n;
}
