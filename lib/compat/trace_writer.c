/* The writer of ferrum's files: stave/trace_writer.h.
 *
 * Each event is written at once, over the closing bracket of the array and together with a new one,
 * so that there is nothing to save when the program ends, however it does. What processes that
 * forked share is in a shared page: the place of the bracket, and a lock that survives its owner.
 * Whoever gets it after a process was killed inside of a write puts the bracket back.
 *
 * The program may close our descriptor (daemons close all) and get its number for a file of its
 * own, and others may remove the file. So each write looks first at what the descriptor is; the
 * file is opened again by its name, and made again if it is gone.
 *
 * A writer is a reference to a file; the list of files is of this process. Memory: the heap may be
 * exhausted, then the event is lost. */
#include "compat/ferrum.h"
#include "core/base/json_scan.h"
#include "core/base/now.h"
#include "core/files/out_name.h"
#include "core/files/recording_mode.h"
#include "core/files/trusted.h"
#include "core/files/write_all.h"
#include "sdk/session/say.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stave/trace_writer.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PATH_MAX_BYTES = 4096, TEXT_MAX = 1 << 26, STACK_BYTES = 2048 };
/* Of an event besides its texts: keys and the longest numbers, and what the check of its arguments
 * may touch behind them. */
enum { EVENT_BYTES = 128 + SV_JSON_PAD };

/* In shared memory. */
struct tail {
    pthread_mutex_t lock;
    uint64_t end; /* where the closing bracket is */
    int error;    /* errno of the first event that was lost */
    dev_t device; /* which file it is */
    ino_t inode;
};

struct stave_trace_writer {
    struct stave_trace_writer *next;
    unsigned n_users;
    int fd;    /* -1: it could not be opened */
    int error; /* then why */
    struct tail *tail;
    int64_t epoch_ns;
    char path[PATH_MAX_BYTES];         /* as it was given */
    char absolute[2 * PATH_MAX_BYTES]; /* the program may change its directory */
};

/* The files of this process, and the global writer. */
static struct {
    pthread_mutex_t lock;
    struct stave_trace_writer *first, *global;
    _Atomic bool has_global;
    bool has_fork_handlers;
} files = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void unlock_files(void)
{
    pthread_mutex_unlock(&files.lock);
}

static void lock_files_for_fork(void)
{
    pthread_mutex_lock(&files.lock);
}

static void lock_files(void)
{
    pthread_mutex_lock(&files.lock);
    if (!files.has_fork_handlers)
        files.has_fork_handlers = pthread_atfork(lock_files_for_fork, unlock_files, unlock_files) ==
                                  0;
}

/* ---- the file ---- */

/* 0 or errno. A limit of the file's size would be a signal: it is asked for before. */
static int put(int fd, const void *bytes, size_t n, uint64_t at)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && at + n > limit.rlim_cur)
        return EFBIG;
    return sv_write_all_at(fd, bytes, n, at) ? 0 : errno;
}

static bool is_same(const struct tail *t, const struct stat *st)
{
    return t->device == st->st_dev && t->inode == st->st_ino;
}

/* Is the descriptor still the file's? */
static bool has_file(const struct stave_trace_writer *w, struct stat *st)
{
    return fstat(w->fd, st) == 0 && is_same(w->tail, st);
}

/* After a write that was not whole. Both bytes have been there before: this needs no space. */
static void put_back(const struct stave_trace_writer *w)
{
    struct stat st;
    if (!has_file(w, &st))
        return;
    int ignored = put(w->fd, "]", 1, w->tail->end);
    ignored |= ftruncate(w->fd, (off_t)w->tail->end + 1);
    (void)ignored;
}

/* 0, or errno: EDEADLK is a signal handler inside of this very function. */
static int lock_tail(struct stave_trace_writer *w)
{
    int code = pthread_mutex_lock(&w->tail->lock);
    if (code == EOWNERDEAD) {
        put_back(w);
        code = pthread_mutex_consistent(&w->tail->lock);
    }
    return code;
}

/* A descriptor or -1 with errno. */
static int open_file(const char *path, int flags, struct stat *st)
{
    int fd =
        sv_trusted_target(path)
            ? open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | flags, sv_recording_mode())
            : -1;
    if (fd >= 0 && (fstat(fd, st) != 0 || !S_ISREG(st->st_mode))) {
        close(fd);
        errno = ESPIPE;
        return -1;
    }
    return fd;
}

/* An empty array in the file `fd`. 0 or errno. */
static int begin_file(struct tail *t, int fd, const struct stat *st)
{
    int error = ftruncate(fd, 0) == 0 ? put(fd, "[]", 2, 0) : errno;
    t->end = 1;
    t->device = st->st_dev;
    t->inode = st->st_ino;
    return error;
}

/* The descriptor is that of the file, which has its name and all its bytes. The lock is held. 0 or
 * errno. */
static int look_at_file(struct stave_trace_writer *w)
{
    struct tail *t = w->tail;
    struct stat st;
    bool is_ours = has_file(w, &st);
    if (is_ours && st.st_nlink > 0 && (uint64_t)st.st_size > t->end)
        return 0;
    if (is_ours && st.st_nlink > 0) /* somebody has emptied it */
        return begin_file(t, w->fd, &st);
    int fd = open_file(w->absolute, O_CREAT, &st);
    if (fd < 0)
        return errno;
    if (!is_same(t, &st) && st.st_size > 0) { /* another program's */
        close(fd);
        return EEXIST;
    }
    if (is_ours) /* else the number is another file's now */
        close(w->fd);
    w->fd = fd;
    flock(fd, LOCK_EX | LOCK_NB);
    return is_same(t, &st) ? 0 : begin_file(t, fd, &st);
}

/* The code for errno, 0 for 0. */
static int code_of(int error)
{
    return error == 0 ? 0 : error == ENOMEM ? STAVE_EMEMORY : STAVE_EOUTPUT;
}

static const char *reason(int error)
{
    return error == ESPIPE ? "not a regular file" : strerror(error);
}

/* `bytes` are a comma, the event, and the bracket. */
static int append(struct stave_trace_writer *w, const uint8_t *bytes, size_t n)
{
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    int error = lock_tail(w);
    bool is_first_failure = false;
    if (!error) {
        struct tail *t = w->tail;
        error = look_at_file(w);
        bool is_whole = !error, is_first = t->end == 1;
        if (!error)
            error = put(w->fd, bytes + is_first, n - is_first, t->end);
        if (error) {
            if (is_whole)
                put_back(w);
            is_first_failure = !t->error;
            t->error = t->error ? t->error : error;
        } else {
            t->end += n - is_first - 1;
        }
        pthread_mutex_unlock(&t->lock);
    }
    if (is_first_failure)
        sv_say("%.600s: %s; events are missing in this trace", w->path, strerror(error));
    pthread_setcancelstate(cancel, &cancel);
    return code_of(error);
}

/* ---- opening ---- */

static struct tail *new_tail(void)
{
    struct tail *t =
        mmap(NULL, sizeof *t, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pthread_mutexattr_t kind;
    if (t == MAP_FAILED)
        return NULL;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&t->lock, &kind);
    pthread_mutexattr_destroy(&kind);
    return t;
}

static struct stave_trace_writer *find_file(const struct stat *st)
{
    for (struct stave_trace_writer *w = files.first; w; w = w->next) {
        if (w->fd < 0 || lock_tail(w) != 0)
            continue;
        bool is_found = is_same(w->tail, st);
        pthread_mutex_unlock(&w->tail->lock);
        if (is_found)
            return w;
    }
    return NULL;
}

static void release(struct stave_trace_writer *w)
{
    struct stat st;
    if (w->fd >= 0 && has_file(w, &st))
        close(w->fd);
    if (w->tail)
        munmap(w->tail, sizeof *w->tail);
    free(w);
}

static bool insert_pid(struct stave_trace_writer *w)
{
    char pid[24];
    snprintf(pid, sizeof pid, ".%ld", (long)getpid());
    return sv_name_insert(w->path, sizeof w->path, pid);
}

/* Opens the file and locks it against other processes. Where another one has it, the name becomes
 * one of this process. Returns a descriptor; -1: *same has the file already, or errno says why
 * not. */
static int claim_file(struct stave_trace_writer *w, struct stat *st,
                      struct stave_trace_writer **same)
{
    char wanted[PATH_MAX_BYTES];
    memcpy(wanted, w->path, sizeof wanted);
    for (bool is_ours = false;; is_ours = true) {
        int fd = open_file(w->path, O_CREAT, st);
        *same = fd >= 0 ? find_file(st) : NULL;
        if (fd < 0)
            return -1;
        if (!*same && (flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)) {
            if (is_ours)
                sv_say("%.400s: another process is writing it; this trace is %.400s", wanted,
                       w->path);
            return fd;
        }
        close(fd);
        errno = EBUSY;
        if (*same || is_ours || !insert_pid(w))
            return -1;
    }
}

static bool set_absolute(struct stave_trace_writer *w)
{
    size_t size = sizeof w->absolute, n = 0;
    if (w->path[0] != '/') {
        if (!getcwd(w->absolute, PATH_MAX_BYTES))
            return false;
        n = strlen(w->absolute);
        w->absolute[n++] = '/';
    }
    snprintf(w->absolute + n, size - n, "%s", w->path);
    return true;
}

/* Returns the writer, or one that has the file already; `w` is then released. */
static struct stave_trace_writer *fill(struct stave_trace_writer *w)
{
    struct stat st = {0};
    struct stave_trace_writer *same = NULL;
    int fd = claim_file(w, &st, &same);
    if (same) {
        release(w);
        same->n_users++;
        return same;
    }
    w->error = fd < 0 ? errno : 0;
    w->tail = fd < 0 ? NULL : new_tail();
    if (fd >= 0)
        w->error = !w->tail           ? ENOMEM
                   : !set_absolute(w) ? ENAMETOOLONG
                                      : begin_file(w->tail, fd, &st);
    if (!w->error)
        w->fd = fd;
    else if (fd >= 0)
        close(fd);
    w->next = files.first;
    files.first = w;
    return w;
}

/* The lock is held. */
static struct stave_trace_writer *open_path(const char *path)
{
    if (!path || !*path)
        return NULL;
    struct stave_trace_writer *w = calloc(1, sizeof *w);
    int cancel;
    if (!w)
        return NULL;
    w->fd = -1;
    w->n_users = 1;
    w->epoch_ns = sv_now_ns(CLOCK_MONOTONIC);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    if ((size_t)snprintf(w->path, sizeof w->path, "%s", path) < sizeof w->path)
        w = fill(w);
    else
        w->error = ENAMETOOLONG;
    if (w->error)
        sv_say("%.600s: %s; there is no trace", w->path, reason(w->error));
    pthread_setcancelstate(cancel, &cancel);
    return w;
}

static const char *const variables[] = {"STAVE_TRACE_OUT", "FERRUM_TRACE_OUT"};
enum { N_VARIABLES = sizeof variables / sizeof *variables };

static const char *path_in_environment(void)
{
    for (int i = 0; i < N_VARIABLES; i++) {
        const char *path = sv_trusted_getenv(variables[i]);
        if (path && *path)
            return path;
    }
    return NULL;
}

static const char *path_in(const char *const *vars)
{
    for (int i = 0; i < N_VARIABLES; i++) {
        size_t n = strlen(variables[i]);
        for (const char *const *v = vars; v && *v; v++)
            if (strncmp(*v, variables[i], n) == 0 && (*v)[n] == '=' && (*v)[n + 1])
                return *v + n + 1;
    }
    return NULL;
}

struct stave_trace_writer *stave_trace_writer_open(const char *path)
{
    lock_files();
    struct stave_trace_writer *w = open_path(path);
    unlock_files();
    return w;
}

struct stave_trace_writer *stave_trace_writer_from_env(void)
{
    return stave_trace_writer_open(path_in_environment());
}

struct stave_trace_writer *stave_trace_writer_from_vars(const char *const *vars)
{
    return stave_trace_writer_open(path_in(vars));
}

void stave_trace_writer_close(struct stave_trace_writer *w)
{
    if (!w)
        return;
    lock_files();
    bool is_last = --w->n_users == 0;
    for (struct stave_trace_writer **at = &files.first; is_last && *at; at = &(*at)->next)
        if (*at == w) {
            *at = w->next;
            break;
        }
    unlock_files();
    if (is_last)
        release(w);
}

bool stave_trace_writer_is_enabled(const struct stave_trace_writer *w)
{
    return w != NULL;
}

struct stave_trace_writer *stave_global_trace(void)
{
    if (!atomic_load_explicit(&files.has_global, memory_order_acquire)) {
        lock_files();
        if (!files.has_global)
            files.global = open_path(path_in_environment());
        atomic_store_explicit(&files.has_global, true, memory_order_release);
        unlock_files();
    }
    return files.global;
}

void stave_flush_global_trace(void)
{
    if (atomic_load_explicit(&files.has_global, memory_order_acquire))
        stave_trace_writer_flush(files.global, NULL);
}

/* ---- events ---- */

static size_t length(const char *text, size_t given)
{
    return !text ? 0 : given ? given : strlen(text);
}

/* NaN and what is below 0: 0; too large: the largest. */
static uint64_t to_u64(double v)
{
    return !(v > 0) ? 0 : v >= 0x1p64 ? UINT64_MAX : (uint64_t)v;
}

/* Is it an object (1), one without members (0), or none (-1)? Uses `b`, which is empty and has
 * space. */
static int look_at_args(struct sv_buf *b, const char *args, size_t len)
{
    sv_buf_add(b, args, len);
    const uint8_t *p = b->data, *end = p + len;
    bool is_valid = sv_json_valid(p, len);
    sv_buf_clear(b);
    p = is_valid ? sv_json_solid(p, end) : end;
    if (p == end || *p != '{')
        return -1;
    return *sv_json_solid(p + 1, end) != '}';
}

/* A buffer that cannot grow, with a comma before and a bracket after the event. 0 or STAVE_EFORMAT:
 * without its arguments. */
static int print(struct sv_buf *b, const struct stave_trace_event *e, size_t args_len)
{
    struct sv_json j;
    const struct sv_ferrum_event event = {.name = e->name ? e->name : "",
                                          .name_len = length(e->name, e->name_len),
                                          .cat = e->cat ? e->cat : "",
                                          .cat_len = length(e->cat, e->cat_len),
                                          .ts_us = e->ts,
                                          .dur_us = e->dur,
                                          .pid = e->pid,
                                          .tid = e->tid};
    int args = args_len ? look_at_args(b, e->args, args_len) : 0;
    sv_buf_byte(b, ',');
    sv_json_init(&j, b);
    sv_ferrum_begin(&j, &event);
    if (args > 0)
        sv_json_put(&j, "args", raw, e->args, args_len);
    sv_json_end(&j);
    sv_buf_byte(b, ']');
    return args < 0 ? STAVE_EFORMAT : 0;
}

/* Prints the event and gives it to take(), whose negative result counts. Short ones need no
 * heap. */
static int with_printed(const struct stave_trace_event *e,
                        int (*take)(void *ctx, const uint8_t *bytes, size_t n), void *ctx)
{
    uint8_t bytes[STACK_BYTES];
    size_t args = length(e->args, e->args_len), name = length(e->name, e->name_len),
           cat = length(e->cat, e->cat_len);
    if (args > TEXT_MAX || name > TEXT_MAX || cat > TEXT_MAX)
        return STAVE_ELIMIT;
    /* A byte becomes six at most. */
    size_t space = EVENT_BYTES + 6 * (name + cat) + args;
    struct sv_buf b = {.data = bytes, .cap = sizeof bytes, .limit = sizeof bytes};
    if (space > sizeof bytes)
        b = (struct sv_buf){.data = malloc(space), .cap = space, .limit = space};
    int status = STAVE_EMEMORY;
    if (b.data) {
        status = print(&b, e, args);
        int taken = take(ctx, b.data, b.len);
        status = taken < 0 ? taken : status;
    }
    if (b.data != bytes)
        free(b.data);
    return status;
}

static int take_for_file(void *ctx, const uint8_t *bytes, size_t n)
{
    return append(ctx, bytes, n);
}

int stave_trace_writer_push_event(struct stave_trace_writer *w,
                                  const struct stave_trace_event *event)
{
    if (!w)
        return 0;
    return w->fd < 0 ? code_of(w->error) : with_printed(event, take_for_file, w);
}

int stave_trace_writer_push_timed(struct stave_trace_writer *w,
                                  const struct stave_trace_event *event, double dur_ms)
{
    if (!w)
        return 0;
    struct stave_trace_event e = *event;
    uint64_t now = (uint64_t)(sv_now_ns(CLOCK_MONOTONIC) - w->epoch_ns) / 1000,
             cut = to_u64(dur_ms * 1000);
    e.dur = to_u64(round(dur_ms * 1000));
    e.ts = now > cut ? now - cut : 0;
    return stave_trace_writer_push_event(w, &e);
}

int stave_trace_writer_push_with_args(struct stave_trace_writer *w, const char *name,
                                      const char *cat, double dur_ms, uint32_t tid,
                                      const char *args)
{
    const struct stave_trace_event e = {.name = name, .cat = cat, .tid = tid, .args = args};
    return stave_trace_writer_push_timed(w, &e, dur_ms);
}

int stave_trace_writer_push(struct stave_trace_writer *w, const char *name, const char *cat,
                            double dur_ms, uint32_t tid)
{
    return stave_trace_writer_push_with_args(w, name, cat, dur_ms, tid, NULL);
}

/* 0, or errno of the first event that is missing. */
static int error_of(struct stave_trace_writer *w)
{
    if (!w || w->fd < 0)
        return w ? w->error : 0;
    int error = lock_tail(w);
    if (error)
        return error;
    error = look_at_file(w);
    error = w->tail->error ? w->tail->error : error;
    pthread_mutex_unlock(&w->tail->lock);
    return error;
}

int stave_trace_writer_flush(struct stave_trace_writer *w, struct stave_error *error)
{
    char text[sizeof error->text] = "";
    int os_error = error_of(w);
    if (os_error)
        snprintf(text, sizeof text, "%.400s: %s", w->path, reason(os_error));
    return sv_fail(error, code_of(os_error), os_error, text);
}

struct stave_trace_event stave_trace_event_complete(const char *name, const char *cat,
                                                    uint64_t start_ts_us, double dur_ms,
                                                    uint32_t tid)
{
    return (struct stave_trace_event){.name = name,
                                      .cat = cat,
                                      .ts = start_ts_us,
                                      .dur = to_u64(round(dur_ms * 1000)),
                                      .tid = tid};
}

struct place {
    char *to;
    size_t size;
    int len;
};

static int take_for_caller(void *ctx, const uint8_t *bytes, size_t n)
{
    struct place *p = ctx;
    size_t len = n - 2; /* without comma and bracket */
    if (len >= p->size)
        return STAVE_ELIMIT;
    memcpy(p->to, bytes + 1, len);
    p->to[len] = '\0';
    p->len = (int)len;
    return 0;
}

int stave_trace_event_json(const struct stave_trace_event *event, char *to, size_t size)
{
    struct place p = {.to = to, .size = size};
    int status = with_printed(event, take_for_caller, &p);
    return status < 0 ? status : p.len;
}

/* In pieces on the stack: no heap. A piece ends with a whole character where it is valid. */
size_t stave_trace_json_text(const char *text, size_t len, char *to, size_t size)
{
    uint8_t bytes[STACK_BYTES];
    const size_t piece_max = sizeof bytes / 6 - 2;
    size_t total = 0;
    for (size_t at = 0, n; at < len || total == 0; at += n) {
        n = len - at < piece_max ? len - at : piece_max;
        for (size_t k = 0; k < 3 && at + n < len && ((uint8_t)text[at + n] & 0xc0) == 0x80; k++)
            n--;
        struct sv_buf b = {.data = bytes, .cap = sizeof bytes, .limit = sizeof bytes};
        sv_json_escape(&b, at < len ? text + at : "", n);
        size_t from = at > 0, until = at + n < len ? b.len - 1 : b.len; /* inner quotes */
        if (total < size)
            memcpy(to + total, bytes + from,
                   until - from < size - total ? until - from : size - total);
        total += until - from;
    }
    return total;
}
