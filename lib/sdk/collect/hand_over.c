/* Hands the rings of a client that still runs back to it when its collector's session ends.
 *
 * The client gets what it needs to continue by itself or to be recovered: a directory next to the
 * collector's, an output with its pid before the suffix, the clock pairs, and the journal's round,
 * for which the marks of its rings are valid. Setting its state to OPEN is the last step: the
 * client sees it at its next check, and starts a writer. */
#include "sdk/session/destination.h"
#include "sdk/write/writer.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* DIR/COLLECTOR → DIR/NAME */
static bool new_home(const struct sv_session_writer *w, const char *name, char *to, size_t size)
{
    const char *dir = w->process->dir, *slash = strrchr(dir, '/');
    return slash && snprintf(to, size, "%.*s/%s", (int)(slash - dir), dir, name) < (int)size;
}

static bool has_something(const struct sv_client_files *files)
{
    for (size_t i = 0; i < files->n_rings; i++)
        if (atomic_load(&files->rings[i]->ring->head) != atomic_load(&files->rings[i]->ring->tail))
            return true;
    return false;
}

bool sv_hand_over(void *writer, struct sv_client_files *files)
{
    struct sv_session_writer *w = writer;
    struct sv_session_file *s = files->session, *mine = w->process->session;
    char home[SV_PATH_MAX], out[SV_OUT_MAX];
    struct sv_claim claim = {.fd = -1};
    struct sv_err err = {0};
    snprintf(out, sizeof out, "%s", w->out);
    if (!new_home(w, files->path, home, sizeof home) ||
        renameat(files->base_fd, files->path, AT_FDCWD, home) != 0)
        return true; /* it stays where it is and finds that this process has exited */
    bool is_file = w->fd < 0;
    if (is_file && (!sv_destination_number(out, sizeof out, files->process.pid) ||
                    !sv_destination_claim(&claim, out, files->process.pid, home, false, &err)))
        claim.out[0] = claim.part[0] = '\0'; /* recovery finds it in its directory */
    memcpy(s->ticks, mine->ticks, sizeof s->ticks);
    atomic_store(&s->n_ticks, atomic_load(&mine->n_ticks));
    snprintf(s->out, sizeof s->out, "%s", claim.out[0] ? claim.out : out);
    snprintf(s->part, sizeof s->part, "%s", claim.part);
    atomic_store(&s->bytes[w->round & 1], 0);
    atomic_store(&s->round, w->round);
    uint32_t state = SV_SESSION_CLIENT;
    if (!atomic_compare_exchange_strong(&s->state, &state, SV_SESSION_OPEN)) {
        /* It has ended in this moment. */
        if (!has_something(files)) {
            sv_client_files_remove(AT_FDCWD, home);
            sv_claim_abandon(&claim);
        } else {
            atomic_store(&s->state, SV_SESSION_OPEN);
        }
    }
    return true;
}
