/* Guests of a session: see guests.h. Called by the writer thread of a traced process and by collectors; never by the traced
 * threads themselves.
 *
 * A guest appears as a directory in the host's. Its process is not asked to announce itself: the directory's time of change is looked at each
 * round. One that has ended (it says so, or its process is no more) is read to its end, and then its directory is removed. */
#include "sdk/guests.h"

#include "sdk/drain.h"
#include "sdk/ticks.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CHECK_MS = 100, FRESH_MS = 50 };

void sv_guests_init(struct sv_guests *g, int dir_fd, struct sv_dict *dict, struct sv_report *report,
                    unsigned takes)
{
    *g = (struct sv_guests){.dir_fd = dir_fd,
                            .dict = dict,
                            .report = report,
                            .takes = takes,
                            .opened = sv_ticks_read(sv_ticks_counter())};
}

static void forget(struct sv_guests *g, size_t i)
{
    sv_drain_free(g->all[i].drain);
    sv_room_close(&g->all[i].room);
    g->all[i] = g->all[--g->n];
}

void sv_guests_fini(struct sv_guests *g)
{
    while (g->n)
        forget(g, g->n - 1);
    free(g->all);
    *g = (struct sv_guests){0};
}

/* ---- meeting them ---- */

static void describe(struct sv_guests *g, const struct sv_session_file *s, uint32_t pid)
{
    char command[sizeof s->command], name[sizeof s->name];
    memcpy(command, s->command, sizeof command);
    memcpy(name, s->name, sizeof name);
    command[sizeof command - 1] = name[sizeof name - 1] = '\0';
    sv_track t = sv_dict_process(g->dict, 0, pid);
    g->dict->tracks[t].name = sv_dict_cstr(g->dict, name);
    g->dict->tracks[t].desc = sv_dict_cstr(g->dict, command);
    g->dict->tracks[t].is_described = true;
    sv_dict_touch(g->dict, t);
}

static int meet(void *ctx, const char *name)
{
    struct sv_guests *g = ctx;
    for (size_t i = 0; i < g->n; i++)
        if (strcmp(g->all[i].room.path, name) == 0)
            return 0;
    g->all = sv_grow(g->all, &g->cap, g->n + 1, sizeof *g->all);
    struct sv_guest *guest = &g->all[g->n];
    *guest = (struct sv_guest){0};
    if (!sv_room_open(&guest->room, g->dir_fd, name, true)) {
        g->has_strangers = true; /* perhaps in the next round */
        return 0;
    }
    if (atomic_load_explicit(&guest->room.session->state, memory_order_acquire) <
        SV_SESSION_GUEST) {
        g->has_strangers = true;
        sv_room_close(&guest->room);
        return 0;
    }
    guest->drain = sv_drain_new(g->dict, g->report, guest->room.pid, g->takes);
    sv_drain_watch(guest->drain, guest->room.session);
    sv_drain_with_source(guest->drain, g->with_source);
    if (guest->room.session->counter == (uint32_t)sv_ticks_counter())
        sv_drain_tick(guest->drain, &g->opened);
    describe(g, guest->room.session, guest->room.pid);
    g->n++;
    g->n_ever++;
    return 0;
}

/* The time of change is coarse: a directory that changed just now may change again without showing it. */
static void look_for_new(struct sv_guests *g, int64_t now_ns, bool look)
{
    struct stat st;
    if (fstat(g->dir_fd, &st) != 0)
        return;
    int64_t changed = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    if (changed == g->dir_changed_ns && !g->has_strangers && !look &&
        now_ns - g->looked_ns > FRESH_MS * 1000000ll)
        return;
    if (changed != g->dir_changed_ns)
        g->looked_ns = now_ns;
    g->dir_changed_ns = changed;
    g->has_strangers = false;
    sv_room_each(g->dir_fd, meet, g);
}

/* ---- rounds ---- */

static void check(struct sv_guest *guest, bool look)
{
    uint32_t state = atomic_load_explicit(&guest->room.session->state, memory_order_acquire);
    guest->is_gone = guest->is_gone || state == SV_SESSION_DONE ||
                     (look && !sv_room_is_alive(&guest->room));
}

/* Is all of it in the output, as of the last commit? */
static bool is_read(const struct sv_guest *guest)
{
    uint32_t n = atomic_load_explicit(&guest->room.session->n_rings, memory_order_acquire);
    if (guest->room.n_met < n && guest->room.n_met < SV_RINGS_MAX)
        return false;
    for (size_t i = 0; i < guest->room.n_rings; i++) {
        const struct sv_ring *r = guest->room.rings[i].ring;
        if (atomic_load_explicit(&r->tail, memory_order_relaxed) !=
            atomic_load_explicit(&r->head, memory_order_acquire))
            return false;
    }
    return true;
}

static void remove_gone(struct sv_guests *g)
{
    for (size_t k = g->n; k-- > 0;) {
        if (!g->all[k].is_gone || !is_read(&g->all[k]))
            continue;
        sv_room_remove(g->dir_fd, g->all[k].room.path);
        forget(g, k);
    }
}

uint64_t sv_guests_round(struct sv_guests *g, int64_t now_ns, bool look)
{
    uint64_t bytes = 0;
    remove_gone(g);
    look_for_new(g, now_ns, look);
    look = look || now_ns - g->checked_ns > CHECK_MS * 1000000ll;
    if (look)
        g->checked_ns = now_ns;
    g->at = 0;
    g->has_gone = false;
    for (size_t i = 0; i < g->n; i++) {
        struct sv_guest *guest = &g->all[i];
        struct sv_room *room = &guest->room;
        check(guest, look);
        g->has_gone |= guest->is_gone;
        sv_room_rings(room, guest->drain, g->round, g->report);
        uint64_t fresh = sv_drain_round(guest->drain);
        sv_room_names(room, guest->drain, g->report);
        struct sv_tick tick =
            sv_ticks_read((enum sv_counter)(room->session->counter == SV_COUNTER_CPU));
        sv_drain_tick(guest->drain, &tick);
        if (fresh || guest->is_gone)
            sv_room_name_threads(room, guest->drain);
        bytes += fresh;
    }
    return bytes;
}

int sv_guests_next(struct sv_guests *g, struct sv_batch *b, struct sv_err *err)
{
    for (; g->at < g->n; g->at++) {
        struct sv_guest *guest = &g->all[g->at];
        struct sv_source *source = sv_drain_source(guest->drain);
        int n = source->next(source, b, err);
        if (n == 0)
            continue;
        struct sv_session_file *s = guest->room.session;
        if (n > 0)
            atomic_fetch_add_explicit(g->is_lost ? &s->lost_output : &s->n_events, (uint64_t)n,
                                      memory_order_relaxed);
        return n;
    }
    return 0;
}

bool sv_guests_are_pressed(const struct sv_guests *g)
{
    for (size_t k = 0; k < g->n; k++)
        for (size_t i = 0; i < g->all[k].room.n_rings; i++) {
            const struct sv_drain_ring *r = sv_drain_ring(g->all[k].drain, i);
            if (r->pos - atomic_load_explicit(&r->ring->tail, memory_order_relaxed) > r->size / 8)
                return true;
        }
    return false;
}

/* ---- commits ---- */

void sv_guests_mark(struct sv_guests *g, uint64_t round)
{
    for (size_t k = 0; k < g->n; k++)
        for (size_t i = 0; i < g->all[k].room.n_rings; i++)
            sv_drain_mark(g->all[k].drain, i, g->all[k].room.rings[i].ring, round);
    g->round = round;
}

void sv_guests_release(struct sv_guests *g)
{
    for (size_t k = 0; k < g->n; k++) {
        struct sv_guest *guest = &g->all[k];
        for (size_t i = 0; i < guest->room.n_rings; i++) /* pairs with the acquire in slow.c */
            atomic_store_explicit(&guest->room.rings[i].ring->tail,
                                  sv_drain_ring(guest->drain, i)->pos, memory_order_release);
    }
}

/* ---- the end ---- */

void sv_guests_part(struct sv_guests *g, bool (*leave)(void *ctx, struct sv_room *room), void *ctx)
{
    for (size_t k = g->n; k-- > 0;) {
        struct sv_guest *guest = &g->all[k];
        if (guest->is_gone || !leave(ctx, &guest->room))
            sv_room_remove(g->dir_fd, guest->room.path);
        forget(g, k);
    }
}

void sv_guests_refuse(struct sv_guests *g)
{
    for (size_t k = 0; k < g->n; k++) {
        uint32_t state = SV_SESSION_GUEST; /* each counts for itself what is lost */
        atomic_compare_exchange_strong(&g->all[k].room.session->state, &state, SV_SESSION_OFF);
    }
}
