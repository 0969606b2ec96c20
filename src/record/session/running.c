/* Files of recordings that run: see running.h. Called by the recorder, status, stop and trigger.
 *
 * A file is believed only while its process holds the lock on it and is the very process that wrote
 * it: numbers are used again, and those of another pid namespace mean other processes here. The
 * folder is checked as core/files/trusted.h does it: nobody else can have written what is in it. */
#include "record/session/running.h"
#include "core/base/mem.h"
#include "core/files/own_folder.h"
#include "core/files/trusted.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const char magic[8] = "stave-r5";

enum { BASE_MAX = 512, PLACE_MAX = BASE_MAX + SV_OWN_NAME_MAX };

/* Where the list is: BASE/NAME, or what this user has beside it if that is another's. */
static void place(char base[static BASE_MAX], char name[static SV_OWN_NAME_MAX])
{
    const char *run = sv_trusted_getenv("XDG_RUNTIME_DIR");
    bool has_run = run && *run && strlen(run) < BASE_MAX && access(run, W_OK) == 0;
    snprintf(base, BASE_MAX, "%s", has_run ? run : "/dev/shm");
    if (has_run)
        snprintf(name, SV_OWN_NAME_MAX, "stave-recordings");
    else
        snprintf(name, SV_OWN_NAME_MAX, "stave-recordings-%u", (unsigned)geteuid());
}

/* The folder for a new entry; its path goes to `path`. */
static int open_place(char path[static PLACE_MAX])
{
    char base[BASE_MAX], name[SV_OWN_NAME_MAX], other[SV_OWN_NAME_MAX];
    place(base, name);
    snprintf(path, PLACE_MAX, "%s/%s", base, name);
    int fd = sv_trusted_make_folder(AT_FDCWD, path);
    if (fd >= 0)
        return fd;
    fd = sv_own_other(base, name, other);
    snprintf(path, PLACE_MAX, "%s/%s", base, other);
    return fd;
}

const char *sv_running_problem(char *text, size_t size)
{
    char base[BASE_MAX], name[SV_OWN_NAME_MAX];
    place(base, name);
    if (access(base, W_OK | X_OK) == 0)
        return NULL;
    snprintf(text, size, "%s, where recordings are listed: %s", base, strerror(errno));
    return text;
}

/* ---- where it was started ---- */

static uint64_t terminal_before; /* that of the process before it left it */

/* The seventh field of /proc/self/stat; the second is a name in parentheses. */
static uint64_t terminal_now(void)
{
    char text[512];
    unsigned terminal = 0;
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : 0;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = '\0';
    const char *end = strrchr(text, ')');
    return end && sscanf(end + 1, " %*c %*d %*d %*d %u", &terminal) == 1 ? terminal : 0;
}

void sv_running_remember_terminal(void)
{
    terminal_before = terminal_now();
}

bool sv_running_is_near(const struct sv_running *r)
{
    char cwd[PATH_MAX];
    uint64_t terminal = terminal_now();
    return (terminal && terminal == r->terminal) ||
           (getcwd(cwd, sizeof cwd) && strcmp(cwd, r->folder) == 0);
}

/* ---- the recorder ---- */

static struct sv_running described(const char *name, const char *out, bool is_ring)
{
    struct sv_running r = {.id = sv_process_id_self(), .since_s = time(NULL), .is_ring = is_ring};
    char cwd[PATH_MAX];
    uint64_t terminal = terminal_now();
    r.terminal = terminal ? terminal : terminal_before;
    if (getcwd(cwd, sizeof cwd))
        memcpy(r.folder, cwd, strlen(cwd) + 1);
    if (out[0] == '/' || !r.folder[0])
        cwd[0] = 0;
    memcpy(r.magic, magic, sizeof magic);
    snprintf(r.name, sizeof r.name, "%s", name);
    int n = snprintf(r.out, sizeof r.out, "%s%s", cwd, cwd[0] ? "/" : "");
    snprintf(r.out + n, sizeof r.out - (size_t)n, "%s", out);
    return r;
}

/* It gets its name when it is locked and whole: who finds one without a lock removes it. The
 * descriptor stays open until the process ends, and the lock with it. */
static bool put(int dir, const struct sv_running *r, const char *name)
{
    char first[64];
    snprintf(first, sizeof first, ".%.60s", name);
    unlinkat(dir, first, 0);
    int fd = sv_trusted_file(dir, first, O_RDWR | O_CREAT | O_EXCL, SV_TRUST_PRIVATE, 0600);
    if (fd < 0)
        return false;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && write(fd, r, sizeof *r) == (ssize_t)sizeof *r &&
        renameat(dir, first, dir, name) == 0)
        return true;
    close(fd);
    unlinkat(dir, first, 0);
    return false;
}

char *sv_running_announce(const char *name, const char *out, bool is_ring)
{
    char path[PLACE_MAX], file[48];
    int dir = open_place(path);
    if (dir < 0)
        return NULL;
    struct sv_running r = described(name, out, is_ring);
    snprintf(file, sizeof file, "%u.%llu", r.id.pid, (unsigned long long)r.id.pid_namespace);
    bool is_there = put(dir, &r, file);
    close(dir);
    size_t n = strlen(path) + strlen(file) + 2;
    char *whole = is_there ? sv_alloc(n) : NULL;
    if (whole)
        snprintf(whole, n, "%s/%s", path, file);
    return whole;
}

void sv_running_update(const char *path, uint64_t bytes, const struct sv_running_state *state)
{
    int fd = path ? sv_trusted_file(AT_FDCWD, path, O_WRONLY, SV_TRUST_PRIVATE, 0) : -1;
    if (fd < 0)
        return;
    if (pwrite(fd, state, sizeof *state, offsetof(struct sv_running, state)) < 0 ||
        pwrite(fd, &bytes, sizeof bytes, offsetof(struct sv_running, bytes)) < 0)
        bytes = 0; /* then what is shown is an old one */
    close(fd);
}

/* ---- the others ---- */

static bool read_one(int dir, const char *name, struct sv_running *r)
{
    int fd = sv_trusted_file(dir, name, O_RDONLY, SV_TRUST_PRIVATE, 0);
    if (fd < 0)
        return false;
    bool is_held = flock(fd, LOCK_SH | LOCK_NB) != 0;
    ssize_t n = pread(fd, r, sizeof *r, 0);
    close(fd);
    bool is_whole = n == (ssize_t)sizeof *r && memcmp(r->magic, magic, sizeof magic) == 0;
    enum sv_process_state state = is_whole ? sv_process_id_state(&r->id) : SV_PROCESS_GONE;
    if (!is_held || (is_whole && state == SV_PROCESS_GONE)) {
        unlinkat(dir, name, 0); /* its writer has exited */
        return false;
    }
    r->name[sizeof r->name - 1] = r->out[sizeof r->out - 1] = r->folder[sizeof r->folder - 1] = 0;
    r->state.newest[sizeof r->state.newest - 1] = 0;
    r->state.recorded[sizeof r->state.recorded - 1] = 0;
    r->state.conditions[sizeof r->state.conditions - 1] = 0;
    r->is_outside = state == SV_PROCESS_UNKNOWN;
    return is_whole;
}

bool sv_running_is(const struct sv_running *r, const char *word)
{
    char pid[16];
    snprintf(pid, sizeof pid, "%u", r->id.pid);
    return strcmp(word, pid) == 0 || strcmp(word, r->name) == 0 || strcmp(word, r->out) == 0;
}

static int by_age(const void *a, const void *b)
{
    const struct sv_running *x = a, *y = b;
    return x->since_s != y->since_s ? (x->since_s > y->since_s) - (x->since_s < y->since_s)
                                    : (x->id.pid > y->id.pid) - (x->id.pid < y->id.pid);
}

struct list {
    struct sv_running *all;
    size_t n, cap;
};

static void read_folder(struct list *l, const char *base, const char *name)
{
    char path[PLACE_MAX];
    struct sv_running r;
    snprintf(path, sizeof path, "%s/%s", base, name);
    int fd = sv_trusted_folder(AT_FDCWD, path, SV_TRUST_PRIVATE);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    for (struct dirent *e; d && (e = readdir(d));) {
        if (e->d_name[0] == '.' || !read_one(fd, e->d_name, &r))
            continue;
        l->all = sv_grow(l->all, &l->cap, l->n + 1, sizeof *l->all);
        l->all[l->n++] = r;
    }
    if (d)
        closedir(d);
    else if (fd >= 0)
        close(fd);
}

size_t sv_running_all(struct sv_running **all)
{
    char base[BASE_MAX], name[SV_OWN_NAME_MAX];
    char others[SV_OWN_OTHERS_MAX][SV_OWN_NAME_MAX];
    struct list l = {0};
    place(base, name);
    read_folder(&l, base, name);
    size_t n_others = sv_own_others(base, name, others);
    for (size_t i = 0; i < n_others; i++)
        read_folder(&l, base, others[i]);
    if (l.n > 1)
        qsort(l.all, l.n, sizeof *l.all, by_age);
    *all = l.all;
    return l.n;
}

int sv_running_signal(const struct sv_running *r, int signal, struct sv_err *err)
{
    if (r->is_outside)
        return sv_err_set(err, SV_EINPUT, SV_NO_POS,
                          "the recording %u runs in another pid namespace: call stave there",
                          r->id.pid);
    int fd = (int)syscall(SYS_pidfd_open, r->id.pid, 0), code = 0;
    /* Checked again through the descriptor: from here on it is that process, even if its pid is
     * reused. */
    if (sv_process_id_state(&r->id) != SV_PROCESS_RUNS)
        code = 0;
    else if (fd >= 0 ? syscall(SYS_pidfd_send_signal, fd, signal, NULL, 0) != 0
                     : kill((pid_t)r->id.pid, signal) != 0)
        code = errno == ESRCH ? 0 : sv_err_sys(err, "cannot signal the recording %u", r->id.pid);
    if (fd >= 0)
        close(fd);
    return code;
}
