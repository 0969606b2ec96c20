/* The writer of ferrum's files: stave/trace_writer.h.
 *
 * An event is printed into memory that all processes share which forked (unwritten.h), and goes to
 * the file with the others: when that memory is full, ten times a second while events come, at a
 * flush, and at the end of the process. It is written over the closing bracket of the array and
 * together with a new one, so that the file is a whole trace whenever it is looked at. What a
 * killed process had not written, its forked relatives write, or `stave recover`. Where the memory
 * has no name by which recovery would find it, each event is written at once.
 *
 * The lock in that memory survives its owner. Whoever gets it after a process was killed inside of
 * a write puts the bracket back.
 *
 * The program may close our descriptor (daemons close all) and get its number for a file of its
 * own, and others may remove the file. So each write looks first at what the descriptor is; the
 * file is opened again by its name, and made again if it is gone.
 *
 * A writer is a reference to a file; the list of files is of this process. Memory: the heap may be
 * exhausted, then an event that is longer than the memory for unwritten ones is lost. */
#include "compat/ferrum.h"
#include "compat/unwritten.h"
#include "core/base/json_scan.h"
#include "core/base/now.h"
#include "core/files/out_name.h"
#include "core/files/recording_mode.h"
#include "core/files/trusted.h"
#include "core/files/write_all.h"
#include "sdk/session/say.h"

#include <errno.h>
#include <fcntl.h>
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

enum { PATH_MAX_BYTES = SV_UNWRITTEN_PATH / 2, TEXT_MAX = 1 << 26, STACK_BYTES = 2048 };
/* Of an event besides its texts: keys and the longest numbers, and what the check of its arguments
 * may touch behind them. */
enum { EVENT_BYTES = 128 + SV_JSON_PAD };
/* Longer ones are printed on the heap. */
enum { EVENT_BYTES_MAX = SV_UNWRITTEN_RING / 4 };
#define WRITES_EVERY_NS 100000000

struct stave_trace_writer {
    struct stave_trace_writer *next;
    unsigned n_users;
    int fd;    /* -1: it could not be opened */
    int error; /* then why */
    struct sv_unwritten *tail;
    int64_t epoch_ns;
    char path[PATH_MAX_BYTES]; /* as it was given; tail->path is absolute */
    char dir[SV_PATH_MAX];     /* of the tail; "": it has no name */
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

static bool is_same(const struct sv_unwritten *t, const struct stat *st)
{
    return t->device == st->st_dev && t->inode == st->st_ino;
}

/* Where the closing bracket is; 0: no event is in the file, which is "[]". */
static uint64_t end_of(const struct sv_unwritten *t)
{
    return t->written - t->origin;
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
    uint64_t end = end_of(w->tail);
    int ignored = put(w->fd, end ? "]" : "[]", end ? 1 : 2, end);
    ignored |= ftruncate(w->fd, (off_t)(end ? end + 1 : 2));
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
static int begin_file(struct sv_unwritten *t, int fd, const struct stat *st)
{
    int error = ftruncate(fd, 0) == 0 ? put(fd, "[]", 2, 0) : errno;
    t->origin = t->written;
    t->device = st->st_dev;
    t->inode = st->st_ino;
    return error;
}

/* The descriptor is that of the file, which has its name and all its bytes. The lock is held. 0 or
 * errno. */
static int look_at_file(struct stave_trace_writer *w)
{
    struct sv_unwritten *t = w->tail;
    struct stat st;
    bool is_ours = has_file(w, &st);
    if (is_ours && st.st_nlink > 0 && (uint64_t)st.st_size > end_of(t))
        return 0;
    if (is_ours && st.st_nlink > 0) /* somebody has emptied it */
        return begin_file(t, w->fd, &st);
    int fd = open_file(t->path, O_CREAT, &st);
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

/* How many bytes of the text, `max` at most, are whole events. */
static size_t whole_events(const uint8_t *text, size_t max)
{
    size_t whole = 0, depth = 0;
    bool in_text = false;
    for (size_t i = 0; i < max; i++) {
        uint8_t c = text[i];
        if (in_text) {
            i += c == '\\';
            in_text = c != '"';
        } else if (c == '"') {
            in_text = true;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if ((c == '}' || c == ']') && --depth == 0) {
            whole = i + 1;
        }
    }
    return whole;
}

/* The first `n` bytes of what is unwritten, which are whole events, and the bracket. 0 or errno. */
static int put_first(struct stave_trace_writer *w, size_t n)
{
    struct sv_unwritten *t = w->tail;
    uint64_t end = end_of(t), from = t->written;
    uint8_t *text = sv_unwritten_at(t, from), next = text[n];
    if (end == 0)
        *text = '[';
    text[n] = ']';
    int error = put(w->fd, text, n + 1, end);
    text[n] = next;
    if (error)
        put_back(w);
    else
        t->written = from + n;
    return error;
}

/* All of it; as many events as the file has space for, if that is not enough. The lock is held. 0
 * or errno: there is more. */
static int write_all(struct stave_trace_writer *w, int64_t now_ns)
{
    struct sv_unwritten *t = w->tail;
    int cancel, failed = 0;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    int error = look_at_file(w);
    t->tried_ns = now_ns;
    for (size_t max = SV_UNWRITTEN_RING; !error && max > 0 && t->pushed > t->written;) {
        size_t n = (size_t)(t->pushed - t->written);
        if (n > max)
            n = whole_events(sv_unwritten_at(t, t->written), max);
        int code = n > 0 ? put_first(w, n) : failed;
        failed = failed ? failed : code;
        if (code)
            max = max > n && n > 0 ? n / 2 : max / 2;
    }
    pthread_setcancelstate(cancel, &cancel);
    return error ? error : t->pushed > t->written ? failed : 0;
}

/* ---- opening ---- */

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
    sv_unwritten_free(w->tail);
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
    char *to = w->tail->path;
    size_t n = 0;
    if (w->path[0] != '/') {
        if (!getcwd(to, PATH_MAX_BYTES))
            return false;
        n = strlen(to);
        to[n++] = '/';
    }
    snprintf(to + n, SV_UNWRITTEN_PATH - n, "%s", w->path);
    return true;
}

/* What a killed process left for this very file, which begins anew. */
static int forget_earlier(void *st, const struct sv_unwritten_left *l)
{
    if (l->device == ((struct stat *)st)->st_dev && l->inode == ((struct stat *)st)->st_ino)
        sv_unwritten_discard(l->dir);
    return 0;
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
    if (fd >= 0)
        sv_unwritten_each(forget_earlier, &st);
    w->tail = fd < 0 ? NULL : sv_unwritten_new(w->dir);
    if (fd >= 0)
        w->error = !w->tail           ? ENOMEM
                   : !set_absolute(w) ? ENAMETOOLONG
                                      : begin_file(w->tail, fd, &st);
    if (!w->error)
        w->fd = fd;
    else if (fd >= 0)
        close(fd);
    if (w->error && w->tail)
        sv_unwritten_remove(w->tail, w->dir);
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

/* Has no other process the file open? The lock of the file is given up and taken again. */
static bool is_last(struct stave_trace_writer *w)
{
    struct stat st, now;
    int fd = open_file(w->tail->path, 0, &now);
    if (fd < 0 || !is_same(w->tail, &now)) {
        if (fd >= 0)
            close(fd);
        return true;
    }
    if (has_file(w, &st))
        close(w->fd);
    w->fd = fd;
    return flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

/* At the end of the process, or of the last reference: everything is in the file, or stays for
 * recovery. From then on each event is written at once. */
static void finish(struct stave_trace_writer *w)
{
    if (w->fd < 0 || lock_tail(w) != 0)
        return;
    struct sv_unwritten *t = w->tail;
    int error = t->pushed > t->written ? write_all(w, 0) : 0;
    bool has_rest = t->pushed > t->written;
    if (!has_rest && is_last(w))
        sv_unwritten_remove(t, w->dir);
    pthread_mutex_unlock(&t->lock);
    if (has_rest && t->has_name)
        sv_say("%.600s: %s; its last events are kept: stave recover %.600s", w->path, reason(error),
               w->path);
}

__attribute__((destructor)) static void finish_files(void)
{
    lock_files();
    for (struct stave_trace_writer *w = files.first; w; w = w->next)
        finish(w);
    unlock_files();
}

void stave_trace_writer_close(struct stave_trace_writer *w)
{
    if (!w)
        return;
    lock_files();
    bool is_unused = --w->n_users == 0;
    for (struct stave_trace_writer **at = &files.first; is_unused && *at; at = &(*at)->next)
        if (*at == w) {
            *at = w->next;
            break;
        }
    unlock_files();
    if (!is_unused)
        return;
    finish(w);
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

/* As round(), without a call. */
static uint64_t rounded(double v)
{
    uint64_t whole = to_u64(v);
    return whole + (whole < UINT64_MAX && v - (double)whole >= 0.5);
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

/* An event whose lengths are known. */
struct event {
    struct sv_ferrum_event plain;
    const char *args;
    size_t args_len;
    size_t space; /* that is enough for it: a byte of a text becomes six at most */
};

/* False: a text is too long. */
static bool measure(const struct stave_trace_event *e, struct event *to)
{
    size_t name = length(e->name, e->name_len), cat = length(e->cat, e->cat_len),
           args = length(e->args, e->args_len);
    *to = (struct event){.plain = {.name = e->name ? e->name : "",
                                   .name_len = name,
                                   .cat = e->cat ? e->cat : "",
                                   .cat_len = cat,
                                   .ts_us = e->ts,
                                   .dur_us = e->dur,
                                   .pid = e->pid,
                                   .tid = e->tid},
                         .args = e->args,
                         .args_len = args,
                         .space = EVENT_BYTES + 6 * (name + cat) + args};
    return args <= TEXT_MAX && name <= TEXT_MAX && cat <= TEXT_MAX;
}

/* A buffer that cannot grow, with a comma before and a bracket after the event. 0 or STAVE_EFORMAT:
 * without its arguments. */
static int print(struct sv_buf *b, const struct event *e)
{
    struct sv_json j;
    int args = e->args_len ? look_at_args(b, e->args, e->args_len) : 0;
    sv_buf_byte(b, ',');
    sv_json_init(&j, b);
    sv_ferrum_begin(&j, &e->plain);
    if (args > 0)
        sv_json_put(&j, "args", raw, e->args, e->args_len);
    sv_json_end(&j);
    sv_buf_byte(b, ']');
    return args < 0 ? STAVE_EFORMAT : 0;
}

/* Prints the event into memory of its own and gives it to take(), whose negative result counts.
 * Short ones need no heap. */
static int with_printed(const struct event *e,
                        int (*take)(void *ctx, const uint8_t *bytes, size_t n), void *ctx)
{
    uint8_t bytes[STACK_BYTES];
    struct sv_buf b = {.data = bytes, .cap = sizeof bytes, .limit = sizeof bytes};
    if (e->space > sizeof bytes)
        b = (struct sv_buf){.data = malloc(e->space), .cap = e->space, .limit = e->space};
    int status = STAVE_EMEMORY;
    if (b.data) {
        status = print(&b, e);
        int taken = take(ctx, b.data, b.len);
        status = taken < 0 ? taken : status;
    }
    if (b.data != bytes)
        free(b.data);
    return status;
}

struct long_event {
    struct stave_trace_writer *w;
    int error; /* errno */
};

/* `bytes` are a comma, the event, and the bracket. The lock is held. */
static int write_long(void *ctx, const uint8_t *bytes, size_t n)
{
    struct long_event *l = ctx;
    struct stave_trace_writer *w = l->w;
    struct sv_unwritten *t = w->tail;
    int cancel, error = write_all(w, t->tried_ns);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    uint64_t end = end_of(t), is_first = end == 0;
    if (!error && is_first)
        error = put(w->fd, "[", 1, 0);
    if (!error) {
        error = put(w->fd, bytes + is_first, n - is_first, end + is_first);
        if (error)
            put_back(w);
        else
            t->origin -= n - 1;
    }
    pthread_setcancelstate(cancel, &cancel);
    l->error = error;
    return 0;
}

/* Into the memory for unwritten events. The lock is held. Returns what print() does; *error is
 * errno if the event is lost. */
static int add(struct stave_trace_writer *w, const struct event *e, int64_t now_ns, int *error)
{
    size_t space = e->space;
    struct sv_unwritten *t = w->tail;
    bool is_time = now_ns - t->tried_ns >= WRITES_EVERY_NS;
    /* One byte stays free for the bracket. */
    if (t->pushed - t->written + space >= SV_UNWRITTEN_RING) {
        int failed = is_time || !t->error ? write_all(w, now_ns) : t->error;
        if (t->pushed - t->written + space >= SV_UNWRITTEN_RING) {
            *error = failed;
            return STAVE_EOUTPUT;
        }
    }
    struct sv_buf b = {.data = sv_unwritten_at(t, t->pushed), .cap = space, .limit = space};
    int status = print(&b, e);
    uint64_t before = t->pushed;
    atomic_store_explicit(&t->pushed, before + b.len - 1, memory_order_release);
    if (!t->has_name) {
        *error = write_all(w, now_ns);
        if (*error && t->pushed > t->written)
            t->pushed = before;
    } else if (is_time) {
        write_all(w, now_ns); /* if it fails the event waits */
    }
    return status;
}

static int push(struct stave_trace_writer *w, const struct stave_trace_event *e, int64_t now_ns)
{
    struct event m;
    if (!measure(e, &m))
        return STAVE_ELIMIT;
    int status = 0, error = lock_tail(w);
    bool is_first_failure = false;
    if (!error) {
        struct sv_unwritten *t = w->tail;
        if (m.space <= EVENT_BYTES_MAX) {
            status = add(w, &m, now_ns, &error);
        } else {
            struct long_event l = {w, 0};
            status = with_printed(&m, write_long, &l);
            error = l.error;
        }
        is_first_failure = error && !t->error;
        t->error = t->error ? t->error : error;
        pthread_mutex_unlock(&t->lock);
    }
    if (is_first_failure)
        sv_say("%.600s: %s; events are missing in this trace", w->path, strerror(error));
    return error ? code_of(error) : status;
}

int stave_trace_writer_push_event(struct stave_trace_writer *w,
                                  const struct stave_trace_event *event)
{
    if (!w)
        return 0;
    return w->fd < 0 ? code_of(w->error) : push(w, event, sv_now_ns(CLOCK_MONOTONIC_COARSE));
}

int stave_trace_writer_push_timed(struct stave_trace_writer *w,
                                  const struct stave_trace_event *event, double dur_ms)
{
    if (!w)
        return 0;
    if (w->fd < 0)
        return code_of(w->error);
    struct stave_trace_event e = *event;
    int64_t now_ns = sv_now_ns(CLOCK_MONOTONIC);
    uint64_t now = (uint64_t)(now_ns - w->epoch_ns) / 1000, cut = to_u64(dur_ms * 1000);
    e.dur = rounded(dur_ms * 1000);
    e.ts = now > cut ? now - cut : 0;
    return push(w, &e, now_ns);
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
    error = write_all(w, sv_now_ns(CLOCK_MONOTONIC));
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
    return (struct stave_trace_event){
        .name = name, .cat = cat, .ts = start_ts_us, .dur = rounded(dur_ms * 1000), .tid = tid};
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
    struct event m;
    int status = measure(event, &m) ? with_printed(&m, take_for_caller, &p) : STAVE_ELIMIT;
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
