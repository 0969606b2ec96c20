/* The writer as a host: what becomes of guests that still run when the host's session ends.
 *
 * Each gets what it needs to go on alone or to be recovered: a directory of its own beside the host's, an output with its pid before
 * the suffix, the clock pairs, and the journal's round, which makes the marks of its rings its own. Setting its state to OPEN is the last step: the
 * guest sees it when it next asks, and starts a writer. */
#include "sdk/destination.h"
#include "sdk/writer.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* DIR/HOST → DIR/NAME */
static bool new_home(const struct sv_session_writer *w, const char *name, char *to, size_t size)
{
    const char *dir = w->process->dir, *slash = strrchr(dir, '/');
    return slash && snprintf(to, size, "%.*s/%s", (int)(slash - dir), dir, name) < (int)size;
}

static bool has_something(const struct sv_room *room)
{
    for (size_t i = 0; i < room->n_rings; i++)
        if (atomic_load(&room->rings[i]->ring->head) != atomic_load(&room->rings[i]->ring->tail))
            return true;
    return false;
}

bool sv_host_leave(void *writer, struct sv_room *room)
{
    struct sv_session_writer *w = writer;
    struct sv_session_file *s = room->session, *mine = w->process->session;
    char home[SV_PATH_MAX], out[SV_OUT_MAX];
    struct sv_claim claim = {.fd = -1};
    struct sv_err err = {0};
    snprintf(out, sizeof out, "%s", w->out);
    if (!new_home(w, room->path, home, sizeof home) ||
        renameat(room->base_fd, room->path, AT_FDCWD, home) != 0)
        return true; /* it stays where it is and finds us dead */
    bool is_file = w->fd < 0;
    if (is_file && (!sv_destination_number(out, sizeof out, room->process.pid) ||
                    !sv_destination_claim(&claim, out, room->process.pid, home, &err)))
        claim.out[0] = claim.part[0] = '\0'; /* recovery finds it in its directory */
    memcpy(s->ticks, mine->ticks, sizeof s->ticks);
    atomic_store(&s->n_ticks, atomic_load(&mine->n_ticks));
    snprintf(s->out, sizeof s->out, "%s", claim.out[0] ? claim.out : out);
    snprintf(s->part, sizeof s->part, "%s", claim.part);
    atomic_store(&s->bytes[w->round & 1], 0);
    atomic_store(&s->round, w->round);
    uint32_t state = SV_SESSION_GUEST;
    if (!atomic_compare_exchange_strong(&s->state, &state, SV_SESSION_OPEN)) {
        /* It has ended in this moment. */
        if (!has_something(room)) {
            sv_room_remove(AT_FDCWD, home);
            sv_claim_abandon(&claim);
        } else {
            atomic_store(&s->state, SV_SESSION_OPEN);
        }
    }
    return true;
}
