/* Clients of a session: see clients.h. Called by the writer thread of a traced process and by
 * collectors; never by the traced threads themselves.
 *
 * A client appears as a directory in the collector's. Its process is not asked to announce itself:
 * the directory's time of change is looked at each round. One that has ended (it says so, or its
 * process is no more) is read to its end, and then its directory is removed. */
#include "sdk/collect/clients.h"

#include "core/base/report.h"
#include "sdk/drain/drain.h"
#include "sdk/emit/ticks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { CHECK_MS = 100, FRESH_MS = 50, CLIENTS_MAX = 1 << 16 };

static int next(struct sv_source *source, struct sv_batch *b, struct sv_err *err);

void sv_clients_init(struct sv_clients *g, int dir_fd, struct sv_dict *dict,
                     struct sv_report *report)
{
    *g = (struct sv_clients){
        .source = {.next = next, .gives = SV_CLIENTS_GIVE, .dict = dict, .report = report},
        .dir_fd = dir_fd,
        .self = sv_process_id_self(),
        .budget_bytes = SV_CLIENT_BYTES_MAX,
        .opened = sv_ticks_read(sv_ticks_counter())};
}

void sv_clients_use_dir(struct sv_clients *g, int dir_fd)
{
    g->dir_fd = dir_fd;
    for (size_t i = 0; i < g->n; i++)
        g->all[i].files->base_fd = dir_fd;
}

static void forget(struct sv_clients *g, size_t i)
{
    sv_client_close(&g->all[i]);
    g->all[i] = g->all[--g->n];
}

void sv_clients_fini(struct sv_clients *g)
{
    while (g->n)
        forget(g, g->n - 1);
    free(g->all);
    sv_map_fini(&g->names);
    sv_ring_view_fini(&g->window);
    *g = (struct sv_clients){0};
}

/* ---- meeting them ---- */

static uint64_t name_key(const char *name)
{
    return sv_hash_bytes(name, strlen(name), 0);
}

static void refuse_one(struct sv_clients *g, const char *name, const char *why)
{
    bool is_new;
    sv_map_add(&g->names, name_key(name), &is_new);
    sv_report_add(g->source.report, SV_DAMAGE, "a client is not read", 1, SV_NO_POS, "%.64s: %s",
                  name, why);
}

static bool same_namespace(const struct sv_process_id *a, const struct sv_process_id *b)
{
    return a->pid_namespace == b->pid_namespace && memcmp(a->boot, b->boot, sizeof a->boot) == 0;
}

static int64_t begun_ns(const struct sv_client *c)
{
    return c->files->session->ticks[0].boot_ns;
}

/* A process that executes a program is another client: the newest names it. */
static void replace_older(struct sv_clients *g, struct sv_client *c)
{
    for (struct sv_client *x = g->all; x < c; x++) {
        if (x->files->process.pid != c->files->process.pid ||
            !same_namespace(&x->files->process, &c->files->process))
            continue;
        bool is_older = begun_ns(x) <= begun_ns(c);
        x->is_replaced |= is_older;
        c->is_replaced |= !is_older;
    }
}

static void describe(const struct sv_clients *g, const struct sv_client *c)
{
    if (!c->is_replaced)
        sv_client_files_describe(c->files, g->source.dict);
}

static int meet(void *ctx, const char *name)
{
    struct sv_clients *g = ctx;
    if (sv_map_find(&g->names, name_key(name)))
        return 0;
    if (g->n == CLIENTS_MAX) {
        refuse_one(g, name, "there are too many");
        return 0;
    }
    g->all = sv_grow(g->all, &g->cap, g->n + 1, sizeof *g->all);
    struct sv_client *c = &g->all[g->n];
    if (!sv_client_open(c, g->dir_fd, name, true, g->source.dict, g->source.report, &g->window)) {
        if (errno == EPERM)
            refuse_one(g, name, "it is open to other users");
        else
            g->has_unknown_dirs = true; /* perhaps in the next round */
        return 0;
    }
    if (atomic_load_explicit(&c->files->session->state, memory_order_acquire) < SV_SESSION_CLIENT) {
        g->has_unknown_dirs = true;
        sv_client_close(c);
        return 0;
    }
    c->is_near = same_namespace(&c->files->process, &g->self);
    sv_drain_watch(c->drain, c->files->session);
    sv_drain_with_source(c->drain, g->with_source);
    if (c->files->session->counter == (uint32_t)sv_ticks_counter())
        sv_drain_tick(c->drain, &g->opened);
    replace_older(g, c);
    describe(g, c);
    sv_map_add(&g->names, name_key(name), &(bool){false});
    g->n++;
    g->n_ever++;
    return 0;
}

/* The time of change is coarse: a directory that changed just now may change again without showing
 * it. */
static void look_for_new(struct sv_clients *g, int64_t now_ns, bool look)
{
    struct stat st;
    /* Without a folder in it there is nobody, where the file system counts them: nothing is opened,
     * which would take a number in a shared table. */
    if (fstat(g->dir_fd, &st) != 0 || st.st_nlink == 2)
        return;
    int64_t changed = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    if (changed == g->dir_changed_ns && !g->has_unknown_dirs && !look &&
        now_ns - g->looked_ns > FRESH_MS * 1000000ll)
        return;
    if (changed != g->dir_changed_ns)
        g->looked_ns = now_ns;
    g->dir_changed_ns = changed;
    g->has_unknown_dirs = false;
    sv_client_files_each(g->dir_fd, meet, g);
}

/* ---- rounds ---- */

/* It learns that nobody reads it, and is not met again. */
static void close_client(struct sv_clients *g, size_t i, const char *why)
{
    struct sv_client_files *files = g->all[i].files;
    uint32_t state = SV_SESSION_CLIENT;
    atomic_compare_exchange_strong(&files->session->state, &state, SV_SESSION_OFF);
    sv_report_add(g->source.report, SV_DAMAGE, "a client was closed", 1, SV_NO_POS,
                  "process %u: %s", files->process.pid, why);
    forget(g, i);
}

static void check(struct sv_client *c, bool look)
{
    uint32_t state = atomic_load_explicit(&c->files->session->state, memory_order_acquire);
    c->has_ended = c->has_ended || state == SV_SESSION_DONE || (look && !sv_client_runs(c));
}

/* Is all of it in the output, as of the last commit? It had ended before the last round, which was
 * therefore its last. */
static bool is_read(const struct sv_clients *g, const struct sv_client *c)
{
    uint32_t n = atomic_load_explicit(&c->files->session->n_rings, memory_order_acquire);
    if (c->files->n_met < n && c->files->n_met < SV_RINGS_MAX)
        return false;
    for (size_t i = 0; i < c->files->n_rings; i++) {
        const struct sv_client_ring *m = c->files->rings[i];
        const struct sv_drain_ring *r = sv_drain_ring(c->drain, i);
        struct sv_ring_progress p = sv_ring_committed(m->ring, m->size, g->round);
        uint64_t head = atomic_load_explicit(&m->ring->head, memory_order_acquire) & ~(uint64_t)7;
        if (r->pos != r->end || p.pos != r->pos || head != r->pos ||
            p.lost_full < atomic_load_explicit(&m->ring->lost_full, memory_order_relaxed) ||
            p.lost_nested < atomic_load_explicit(&m->ring->lost_nested, memory_order_relaxed))
            return false;
    }
    return true;
}

static void remove_ended(struct sv_clients *g)
{
    for (size_t k = g->n; k-- > 0;) {
        if (!g->all[k].has_ended || !is_read(g, &g->all[k]))
            continue;
        const char *path = g->all[k].files->path;
        if (sv_client_files_remove(g->dir_fd, path))
            sv_map_remove(&g->names, name_key(path));
        forget(g, k);
    }
}

static uint64_t round_of(struct sv_clients *g, struct sv_client *c, bool look)
{
    check(c, look);
    g->has_gone |= c->has_ended;
    uint64_t fresh = sv_client_round(c, g->round);
    struct sv_tick tick =
        sv_ticks_read((enum sv_counter)(c->files->session->counter == SV_COUNTER_CPU));
    sv_drain_tick(c->drain, &tick);
    if (fresh || c->has_ended) {
        describe(g, c);
        if (sv_client_files_names_due(c->files) && c->is_near && sv_client_runs(c))
            sv_client_files_read_comms(c->files);
        sv_client_files_name_threads(c->files, c->drain);
    }
    return fresh;
}

uint64_t sv_clients_round(struct sv_clients *g, int64_t now_ns, bool look)
{
    uint64_t bytes = 0;
    remove_ended(g);
    look_for_new(g, now_ns, look);
    look = look || now_ns - g->checked_ns > CHECK_MS * 1000000ll;
    if (look)
        g->checked_ns = now_ns;
    if (g->n)
        sv_guard_check();
    g->at = 0;
    g->has_gone = false;
    for (size_t i = g->n; i-- > 0;) {
        bytes += round_of(g, &g->all[i], look);
        const char *why = sv_client_fault(&g->all[i], g->budget_bytes);
        if (why)
            close_client(g, i, why);
    }
    return bytes;
}

/* What was read of a client before it is closed is kept: it lies in the window and in the
 * dictionary. */
static int next(struct sv_source *source, struct sv_batch *b, struct sv_err *err)
{
    struct sv_clients *g = (struct sv_clients *)source;
    while (g->at < g->n) {
        struct sv_client *c = &g->all[g->at];
        int n = sv_client_next(c, b, err);
        if (n > 0)
            atomic_fetch_add_explicit(g->is_lost ? &c->files->session->lost_output
                                                 : &c->files->session->n_events,
                                      (uint64_t)n, memory_order_relaxed);
        const char *why = sv_client_fault(c, g->budget_bytes);
        if (why)
            close_client(g, g->at, why);
        else if (n == 0)
            g->at++;
        if (n != 0)
            return n;
    }
    return 0;
}

bool sv_clients_are_pressed(const struct sv_clients *g)
{
    for (size_t k = 0; k < g->n; k++)
        for (size_t i = 0; i < g->all[k].files->n_rings; i++) {
            const struct sv_drain_ring *r = sv_drain_ring(g->all[k].drain, i);
            if (r->pos - atomic_load_explicit(&r->ring->tail, memory_order_relaxed) > r->size / 8)
                return true;
        }
    return false;
}

/* ---- commits ---- */

void sv_clients_mark(struct sv_clients *g, uint64_t round)
{
    for (size_t k = 0; k < g->n; k++)
        for (size_t i = 0; i < g->all[k].files->n_rings; i++)
            sv_drain_mark(g->all[k].drain, i, g->all[k].files->rings[i]->ring, round);
    for (size_t k = 0; k < g->n; k++)
        sv_drain_mark_ringless(g->all[k].drain, g->all[k].files->session, round);
    g->round = round;
}

void sv_clients_release(struct sv_clients *g)
{
    for (size_t k = 0; k < g->n; k++) {
        const struct sv_client *c = &g->all[k];
        for (size_t i = 0; i < c->files->n_rings; i++) /* pairs with the acquire in slow.c */
            atomic_store_explicit(&c->files->rings[i]->ring->tail, sv_drain_ring(c->drain, i)->pos,
                                  memory_order_release);
    }
}

/* ---- the end ---- */

void sv_clients_part(struct sv_clients *g, bool (*leave)(void *ctx, struct sv_client_files *files),
                     void *ctx)
{
    for (size_t k = g->n; k-- > 0;) {
        struct sv_client *c = &g->all[k];
        if (c->has_ended || !leave(ctx, c->files))
            sv_client_files_remove(g->dir_fd, c->files->path);
        forget(g, k);
    }
}

bool sv_clients_are_unread(const struct sv_clients *g)
{
    for (size_t k = 0; k < g->n; k++)
        if (g->all[k].files->error)
            return true;
    return false;
}

void sv_clients_refuse(struct sv_clients *g)
{
    for (size_t k = 0; k < g->n; k++) {
        uint32_t state = SV_SESSION_CLIENT; /* each counts for itself what is lost */
        atomic_compare_exchange_strong(&g->all[k].files->session->state, &state, SV_SESSION_OFF);
    }
}
