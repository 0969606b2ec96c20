/* Requests by their handle: receives and collectives that have begun, persistent ones of all kinds,
 * and messages that a probe has taken. A table of structs, so that a nonblocking call allocates
 * nothing. Sends are not in it: their flow leaves from the call. */
#include "mpi_inject.h"

#include <stdatomic.h>
#include <stdlib.h>

static struct mpi_request *table;
static size_t cap;
static atomic_size_t used;

static uint64_t n_ever;

static size_t first_slot(uint64_t key)
{
    return mpi_mix(key, 0) & (cap - 1);
}

static void put(const struct mpi_request *r)
{
    size_t at = first_slot(r->is.key);
    while (table[at].is.key)
        at = (at + 1) & (cap - 1);
    table[at] = *r;
}

static bool make_room(void)
{
    struct mpi_request *old = table, *grown;
    size_t n = cap;
    if (used < cap / 2)
        return true;
    grown = calloc(cap ? 2 * cap : 256, sizeof *grown);
    if (!grown)
        return false;
    table = grown;
    cap = cap ? 2 * cap : 256;
    for (size_t i = 0; i < n; i++)
        if (old[i].is.key)
            put(&old[i]);
    free(old);
    return true;
}

bool mpi_tracks(void)
{
    return atomic_load_explicit(&used, memory_order_relaxed) > 0;
}

/* number 0: the newest. */
static struct mpi_request *find(struct mpi_ticket t)
{
    struct mpi_request *best = NULL;
    for (size_t at = cap ? first_slot(t.key) : 0; cap && table[at].is.key;
         at = (at + 1) & (cap - 1)) {
        struct mpi_request *r = &table[at];
        if (r->is.key != t.key || (t.number && r->is.number != t.number))
            continue;
        if (!best || r->is.number > best->is.number)
            best = r;
    }
    return best;
}

struct mpi_request *mpi_find(const void *handle)
{
    return find((struct mpi_ticket){.key = (uintptr_t)handle});
}

void mpi_forget(struct mpi_request *r)
{
    size_t at = (size_t)(r - table);
    mpi_comm_drop(r->comm);
    table[at].is.key = 0;
    used--;
    for (size_t i = (at + 1) & (cap - 1); table[i].is.key; i = (i + 1) & (cap - 1)) {
        struct mpi_request moved = table[i];
        table[i].is.key = 0;
        put(&moved);
    }
}

void mpi_track(const void *handle, const struct mpi_request *r)
{
    mpi_lock();
    if (make_room()) {
        struct mpi_request tracked = *r;
        tracked.is = (struct mpi_ticket){.key = (uintptr_t)handle, .number = ++n_ever};
        tracked.comm->users++;
        put(&tracked);
        used++;
    } else {
        mpi_post_free(r->post);
    }
    mpi_unlock();
}

void mpi_look(const MPI_Request *requests, int n, struct mpi_ticket *to)
{
    mpi_lock();
    for (int i = 0; i < n; i++) {
        const struct mpi_request *r = mpi_find(requests[i]);
        to[i] = r ? r->is : (struct mpi_ticket){0};
    }
    mpi_unlock();
}

void mpi_record_receive(const struct mpi_message *m)
{
    if (m->flow)
        STAVE_INSTANT(CAT_MPI, "MPI receive complete", "op", "recv", "group", m->group, "peer",
                      m->peer, "tag", m->tag, "bytes", m->bytes, "seq", m->seq, STAVE_FLOW_IN,
                      m->flow);
}

static void complete_receive(struct mpi_request *r, const MPI_Status *status)
{
    int is_cancelled = 0;
    struct mpi_post *post = r->post;
    r->post = NULL;
    if (!post) /* a persistent one that was not started */
        return;
    mpi->Test_cancelled(status, &is_cancelled);
    if (is_cancelled) {
        mpi_post_cancelled(post);
        return;
    }
    struct mpi_message m = mpi_post_matched(post, status);
    mpi_record_receive(&m);
    mpi_post_free(post);
}

void mpi_completed(struct mpi_ticket ticket, const MPI_Status *status)
{
    if (!ticket.key)
        return;
    mpi_lock();
    struct mpi_request *r = find(ticket);
    if (r && r->kind == MPI_KIND_RECEIVE)
        complete_receive(r, status);
    else if (r && r->kind == MPI_KIND_COLLECTIVE)
        STAVE_INSTANT(CAT_MPI, "MPI collective complete", "op", r->op, "group", r->comm->group,
                      "seq", r->seq);
    if (r && !r->is_persistent)
        mpi_forget(r);
    mpi_unlock();
}
