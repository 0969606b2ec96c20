/* A collector without rings of its own: see collect.h.
 *
 * Called by commands and tests, single-threaded. The session file is the same as a traced
 * process's, so that joining and recovery know only one kind. */
#include "sdk/collect/collect.h"

#include "core/files/trusted.h"
#include "sdk/collect/clients.h"
#include "sdk/emit/ticks.h"
#include "sdk/ring/ringless.h"
#include "sdk/session/folders.h"
#include "sdk/session/sdk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SNAPSHOT_MS = 10000 };

struct sv_collect {
    struct sv_source source; /* first: the handle */
    struct sv_clients clients;
    struct sv_session_file *session;
    struct sv_guarded guarded;
    volatile sig_atomic_t is_gone; /* the session file was cut: nothing could be recovered */
    int dir_fd;
    char dir[SV_PATH_MAX];
    int64_t snapshot_ns, tick_ns;
    struct sv_ringless_reader ringless; /* programs that could not even become clients */
};

static int next(struct sv_source *source, struct sv_batch *b, struct sv_err *err)
{
    struct sv_collect *c = (struct sv_collect *)source;
    struct sv_source *clients = &c->clients.source;
    int n = clients->next(clients, b, err);
    if (n != 0)
        return n;
    sv_ringless_report(&c->ringless, source->dict, b, c->tick_ns);
    return (int)b->n;
}

static void close_source(struct sv_source *source)
{
    sv_collect_close((struct sv_collect *)source, true);
}

static void tick(struct sv_collect *c)
{
    struct sv_session_file *s = c->session;
    struct sv_tick t = sv_ticks_read((enum sv_counter)s->counter);
    uint64_t n = atomic_load_explicit(&s->n_ticks, memory_order_relaxed);
    s->ticks[n == 0 ? 0 : 1 + (n - 1) % (SV_TICKS_MAX - 1)] = t;
    atomic_store_explicit(&s->n_ticks, n + 1, memory_order_release);
    c->tick_ns = t.boot_ns;
    if (c->snapshot_ns && t.mono_ns - c->snapshot_ns < SNAPSHOT_MS * 1000000ll)
        return;
    struct sv_snapshot snapshot;
    sv_ticks_snapshot(&snapshot, &t);
    sv_clocks_add(&c->source.dict->clocks, &snapshot);
    c->snapshot_ns = t.mono_ns;
}

static int make_dir(struct sv_collect *c, const char *dir, struct sv_err *err)
{
    char name[32];
    snprintf(name, sizeof name, "record-%d", (int)getpid());
    if (!dir) {
        c->dir_fd = sv_folder_for_session(name, NULL, c->dir, sizeof c->dir);
    } else if (snprintf(c->dir, sizeof c->dir, "%s", dir) < (int)sizeof c->dir &&
               mkdir(dir, 0700) == 0) {
        c->dir_fd = sv_trusted_folder(AT_FDCWD, dir, SV_TRUST_PRIVATE);
    }
    if (c->dir_fd >= 0)
        return 0;
    return sv_error(err, SV_EIO, "cannot make %s: %s", dir ? dir : "a session folder",
                    strerror(errno));
}

/* "": it has no name that recovery could use. */
static void absolute(const char *path, char *to, size_t size)
{
    char here[SV_PATH_MAX] = "";
    bool is_relative = *path && path[0] != '/' && getcwd(here, sizeof here);
    int n = snprintf(to, size, "%s%s%s", is_relative ? here : "", is_relative ? "/" : "", path);
    if (n < 0 || (size_t)n >= size)
        to[0] = '\0';
}

static int map_session(struct sv_collect *c, struct sv_err *err)
{
    int fd = sv_trusted_file(c->dir_fd, "session", O_RDWR | O_CREAT | O_EXCL, SV_TRUST_OWN, 0600);
    void *at = MAP_FAILED;
    if (fd >= 0 && (errno = posix_fallocate(fd, 0, SV_SESSION_BYTES)) == 0)
        at = mmap(NULL, SV_SESSION_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        sv_err_sys(err, "cannot make a session in %s", c->dir);
    if (fd >= 0)
        close(fd);
    if (at == MAP_FAILED)
        return SV_EIO;
    c->session = at;
    sv_guard_add(&c->guarded, at, SV_SESSION_BYTES, &c->is_gone);
    return 0;
}

int sv_collect_open(const char *dir, const char *out, const char *part, struct sv_dict *dict,
                    struct sv_report *report, struct sv_collect **to, struct sv_err *err)
{
    struct sv_collect *c = sv_alloc(sizeof *c);
    c->source = (struct sv_source){.next = next,
                                   .close = close_source,
                                   .gives = SV_CLIENTS_GIVE,
                                   .dict = dict,
                                   .report = report};
    c->dir_fd = -1;
    int code = make_dir(c, dir, err);
    if (code >= 0)
        code = map_session(c, err);
    if (code < 0) {
        if (c->dir_fd >= 0)
            sv_client_files_remove(AT_FDCWD, c->dir);
        sv_collect_close(c, false);
        return code;
    }
    struct sv_session_file *s = c->session;
    *s = (struct sv_session_file){.magic = SV_SESSION_MAGIC,
                                  .version = SV_LAYOUT_VERSION,
                                  .process = sv_process_id_self(),
                                  .counter = sv_ticks_counter()};
    absolute(out, s->out, sizeof s->out);
    absolute(part, s->part, sizeof s->part);
    snprintf(s->command, sizeof s->command, "collector");
    dict->clocks.trace_clock = SV_CLOCK_BOOTTIME;
    sv_clients_init(&c->clients, c->dir_fd, dict, report);
    sv_ringless_reader_init(&c->ringless, sv_session_ringless(s), dict, s->process.pid);
    tick(c);
    atomic_store(&s->state, SV_SESSION_OPEN);
    *to = c;
    return 0;
}

const char *sv_collect_dir(const struct sv_collect *c)
{
    return c->dir;
}

struct sv_source *sv_collect_source(struct sv_collect *c)
{
    return &c->source;
}

uint64_t sv_collect_round(struct sv_collect *c, bool look)
{
    tick(c);
    return sv_clients_round(&c->clients, stave_now_ns(), look);
}

bool sv_collect_is_pressed(const struct sv_collect *c)
{
    return sv_clients_are_pressed(&c->clients);
}

void sv_collect_commit(struct sv_collect *c, uint64_t bytes)
{
    struct sv_session_file *s = c->session;
    uint64_t round = atomic_load(&s->round) + 1;
    sv_clients_mark(&c->clients, round);
    sv_ringless_mark(&c->ringless, sv_session_ringless(s), round);
    atomic_store_explicit(&s->bytes[round & 1], bytes, memory_order_relaxed);
    atomic_store_explicit(&s->round, round, memory_order_release); /* now it is so */
    sv_clients_release(&c->clients);
}

size_t sv_collect_n_running(const struct sv_collect *c)
{
    return c->clients.n;
}

bool sv_collect_has(const struct sv_collect *c, uint32_t pid)
{
    for (size_t i = 0; i < c->clients.n; i++)
        if (c->clients.all[i].files->process.pid == pid)
            return true;
    return false;
}

uint64_t sv_collect_n_ever(const struct sv_collect *c)
{
    return c->clients.n_ever;
}

static int remove_one(void *ctx, const char *name)
{
    sv_client_files_remove(((const struct sv_collect *)ctx)->dir_fd, name);
    return 0;
}

static bool forget_one(void *ctx, struct sv_client_files *files)
{
    (void)ctx, (void)files;
    return false;
}

void sv_collect_close(struct sv_collect *c, bool keep)
{
    if (c->session) {
        sv_clients_refuse(&c->clients);
        if (!keep) {
            sv_clients_part(&c->clients, forget_one, NULL);
            atomic_store(&c->session->state, SV_SESSION_CLOSED);
        }
        sv_guard_remove(&c->guarded);
        munmap(c->session, SV_SESSION_BYTES);
        if (!keep) {
            sv_client_files_each(c->dir_fd, remove_one, c); /* of clients that were closed */
            sv_client_files_remove(AT_FDCWD, c->dir);
        }
    }
    sv_clients_fini(&c->clients);
    if (c->dir_fd >= 0)
        close(c->dir_fd);
    free(c);
}
