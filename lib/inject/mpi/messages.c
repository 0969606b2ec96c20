/* Which message is which. MPI does not let messages overtake each other: what rank A sends to rank
 * B with one tag on one communicator is received in that order. So both count (communicator,
 * sender, receiver, tag) and come to the same number without exchanging anything.
 *
 * A receive is counted in the order in which receives are posted, which is the order in which they
 * are matched. One from any source, or with any tag, is known when it is complete; until then a
 * later receive that it might have preceded has no number. Such receives wait in a list, and their
 * flow is recorded as soon as it is known, at the time at which they were complete.
 *
 * The number of a flow is a hash with FLOW_TAG on top: `stave merge` leaves such numbers of MPI's
 * events as they are (src/store/rebase.h). */
#include "mpi_inject.h"

#include <stdlib.h>

#define FLOW_TAG 0xd5ull /* SV_FLOW_SHARED of src/store/rebase.h */
enum { LOOK_AT = 128, SENT = 1, RECEIVED = 2, COLLECTIVE_FLOW = 3 };

static struct mpi_counts counts;
static struct mpi_post *unused;

/* ---- sizes ---- */

uint64_t mpi_bytes(int count, MPI_Datatype type)
{
    int size = 0;
    if (count <= 0 || mpi->Type_size(type, &size) != MPI_SUCCESS || size < 0)
        return 0;
    return (uint64_t)count * (uint64_t)size;
}

uint64_t mpi_sum_bytes(const int *n_each, MPI_Datatype type, int n)
{
    uint64_t one = mpi_bytes(1, type), sum = 0;
    for (int i = 0; n_each && i < n; i++)
        sum += n_each[i] > 0 ? (uint64_t)n_each[i] * one : 0;
    return sum;
}

uint64_t mpi_sum_each(const int *n_each, const MPI_Datatype *types, int n)
{
    uint64_t sum = 0;
    for (int i = 0; n_each && types && i < n; i++)
        sum += mpi_bytes(n_each[i], types[i]);
    return sum;
}

static uint64_t received_bytes(const MPI_Status *status)
{
    MPI_Count n = 0;
    if (mpi->Get_elements_x(status, mpi->byte, &n) != MPI_SUCCESS || n < 0)
        return 0;
    return (uint64_t)n;
}

/* ---- numbers ---- */

static uint64_t path_of(const struct mpi_comm *c, int from, int to, int tag)
{
    uint64_t h = mpi_mix(c->id, (uint64_t)(uint32_t)from << 32 | (uint32_t)to);
    return mpi_mix(h, (uint64_t)(uint32_t)tag);
}

static uint64_t flow_number(uint64_t path, uint64_t seq)
{
    return FLOW_TAG << 56 | mpi_mix(path, seq) >> 8;
}

static void number_message(struct mpi_comm *c, struct mpi_message *m, bool is_sent)
{
    if (m->peer < 0 || c->id == 0)
        return;
    uint64_t path = is_sent ? path_of(c, c->me, m->peer, m->tag)
                            : path_of(c, m->peer, c->me, m->tag);
    uint64_t *count = mpi_count(&counts, mpi_mix(path, is_sent ? SENT : RECEIVED));
    if (!count)
        return;
    m->seq = (*count)++;
    m->flow = flow_number(path, m->seq);
}

struct mpi_message mpi_sending_on(struct mpi_comm *c, uint64_t bytes, int dest, int tag)
{
    struct mpi_message m = {.group = c->group, .peer = mpi_comm_peer(c, dest), .tag = tag};
    m.bytes = bytes;
    number_message(c, &m, true);
    return m;
}

struct mpi_message mpi_sending(int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm)
{
    uint64_t bytes = dest == MPI_PROC_NULL ? 0 : mpi_bytes(count, type);
    mpi_lock();
    struct mpi_message m = mpi_sending_on(mpi_comm_of(comm), bytes, dest, tag);
    mpi_unlock();
    return m;
}

struct mpi_collective mpi_collective(MPI_Comm comm, int root)
{
    mpi_lock();
    struct mpi_comm *c = mpi_comm_of(comm);
    struct mpi_collective is = {.group = c->group, .size = c->size, .seq = c->seq++};
    is.root = mpi_comm_peer(c, root);
    is.flow = c->id ? flow_number(mpi_mix(c->id, COLLECTIVE_FLOW), is.seq) : 0;
    mpi_unlock();
    return is;
}

/* ---- receives ---- */

static void list_add(struct mpi_post *p)
{
    struct mpi_comm *c = p->comm;
    p->before = c->last;
    if (c->last)
        c->last->next = p;
    else
        c->first = p;
    c->last = p;
    p->is_listed = true;
}

static void list_remove(struct mpi_post *p)
{
    struct mpi_comm *c = p->comm;
    if (p->before)
        p->before->next = p->next;
    else
        c->first = p->next;
    if (p->next)
        p->next->before = p->before;
    else
        c->last = p->before;
    p->next = p->before = NULL;
    p->is_listed = false;
}

static bool is_known(const struct mpi_post *p)
{
    return p->is_matched || (!p->any_source && !p->any_tag);
}

/* Might `a`, which was posted before, have got a message that `b` would count? */
static bool may_precede(const struct mpi_post *a, const struct mpi_post *b)
{
    if (is_known(a))
        return a->is.peer == b->is.peer && a->is.tag == b->is.tag;
    return (a->any_source || a->source == b->is.peer) && (a->any_tag || a->tag == b->is.tag);
}

static bool is_open(const struct mpi_post *p)
{
    unsigned n = 0;
    for (const struct mpi_post *a = p->comm->first; a && a != p; a = a->next)
        if (++n > LOOK_AT || may_precede(a, p))
            return true;
    return false;
}

static void give_number(struct mpi_post *p)
{
    number_message(p->comm, &p->is, false);
    p->is_given = true;
}

static void record_late(const struct mpi_post *p)
{
    stave_complete(STAVE_THREAD, CAT_MPI, "MPI receive complete", p->ts_ns, 0, "op", "recv",
                   "group", p->is.group, "peer", p->is.peer, "tag", p->is.tag, "bytes", p->is.bytes,
                   "seq", p->is.seq, STAVE_FLOW_IN, p->is.flow);
}

/* Whatever has become known, in the order of posting. */
static void settle(struct mpi_comm *c)
{
    unsigned n = 0;
    for (struct mpi_post *p = c->first, *next; p && n < LOOK_AT; p = next, n++) {
        next = p->next;
        if (!is_known(p) || is_open(p))
            continue;
        list_remove(p);
        give_number(p);
        if (!p->is_late)
            continue;
        if (p->is.flow)
            record_late(p);
        p->is_late = false;
        mpi_post_free(p);
    }
}

struct mpi_post *mpi_post_new(struct mpi_comm *c, int source, int tag)
{
    struct mpi_post *p = unused;
    if (source == MPI_PROC_NULL || c->id == 0)
        return NULL;
    if (p)
        unused = p->next;
    else
        p = malloc(sizeof *p);
    if (!p)
        return NULL;
    *p = (struct mpi_post){.comm = c, .tag = tag};
    p->any_source = source == MPI_ANY_SOURCE;
    p->any_tag = tag == MPI_ANY_TAG;
    p->source = p->any_source ? -1 : mpi_comm_peer(c, source);
    p->is = (struct mpi_message){.group = c->group, .peer = p->source, .tag = tag};
    c->users++;
    if (!is_known(p) || c->first)
        list_add(p);
    else
        give_number(p);
    if (p->is_listed && is_known(p))
        settle(c);
    return p;
}

struct mpi_message mpi_post_matched(struct mpi_post *p, const MPI_Status *status)
{
    p->is.bytes = received_bytes(status);
    if (p->is_given)
        return p->is;
    p->is.peer = mpi_comm_peer(p->comm, status->MPI_SOURCE);
    p->is.tag = status->MPI_TAG;
    p->is_matched = true;
    p->ts_ns = stave_now_ns();
    settle(p->comm);
    return p->is;
}

void mpi_post_free(struct mpi_post *p)
{
    if (!p)
        return;
    if (p->is_listed && p->is_matched) {
        p->is_late = true;
        return;
    }
    struct mpi_comm *c = p->comm;
    if (p->is_listed) { /* cancelled, or freed while it was active */
        list_remove(p);
        settle(c);
    }
    p->next = unused;
    unused = p;
    mpi_comm_drop(c);
}

/* It counted when it was posted. Only the newest can take that back. */
void mpi_post_cancelled(struct mpi_post *p)
{
    if (p->is_given && p->is.flow) {
        uint64_t path = path_of(p->comm, p->is.peer, p->comm->me, p->is.tag);
        uint64_t *count = mpi_count(&counts, mpi_mix(path, RECEIVED));
        if (count && *count == p->is.seq + 1)
            --*count;
    }
    mpi_post_free(p);
}
