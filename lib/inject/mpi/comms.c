/* Communicators by their handle: made at first sight, freed with MPI's.
 *
 * The members, as ranks of the world, are known without asking another rank. Two communicators with
 * the same members have different names by counting: all members make them in the same order. */
#include "mpi_inject.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct mpi_comm **table; /* a power of two, open */
static size_t cap, used;
static struct mpi_counts names; /* communicators by the hash of their members */
static struct mpi_comm nobody = {.group = "?", .me = -1, .users = 1};

static size_t slot_of(MPI_Comm handle)
{
    size_t at = mpi_mix((uintptr_t)handle, 0) & (cap - 1);
    while (table[at] && table[at]->handle != handle)
        at = (at + 1) & (cap - 1);
    return at;
}

static bool make_room(void)
{
    struct mpi_comm **old = table;
    size_t n = cap;
    if (used < cap / 2)
        return true;
    table = calloc(cap ? 2 * cap : 64, sizeof *table);
    if (!table) {
        table = old;
        return false;
    }
    cap = cap ? 2 * cap : 64;
    for (size_t i = 0; i < n; i++)
        if (old[i])
            table[slot_of(old[i]->handle)] = old[i];
    free(old);
    return true;
}

static void remove_at(size_t at)
{
    table[at] = NULL;
    used--;
    for (size_t i = (at + 1) & (cap - 1); table[i]; i = (i + 1) & (cap - 1)) {
        struct mpi_comm *c = table[i];
        table[i] = NULL;
        table[slot_of(c->handle)] = c;
    }
}

void mpi_comm_drop(struct mpi_comm *c)
{
    if (c == &nobody || --c->users > 0)
        return;
    free(c->peers);
    free(c);
}

/* The ranks of a group in the world; NULL: no memory. */
static int *world_ranks(MPI_Group group, int n)
{
    MPI_Group world;
    int *ranks = calloc(2 * (size_t)n + 1, sizeof *ranks);
    if (!ranks)
        return NULL;
    for (int i = 0; i < n; i++)
        ranks[n + i] = i;
    mpi->Comm_group(mpi->world, &world);
    mpi->Group_translate_ranks(group, n, ranks + n, world, ranks);
    mpi->Group_free(&world);
    return ranks;
}

static uint64_t hash_of(const int *ranks, int n, bool *is_known)
{
    uint64_t h = mpi_mix((uint64_t)n, 1);
    for (int i = 0; i < n; i++) {
        h = mpi_mix(h, (uint64_t)(uint32_t)ranks[i]);
        *is_known = *is_known && ranks[i] >= 0;
    }
    return h;
}

static void name_comm(struct mpi_comm *c, uint64_t members, bool is_world)
{
    uint64_t *count = mpi_count(&names, members);
    uint64_t n = count ? (*count)++ : 0;
    int len = is_world ? snprintf(c->group, sizeof c->group, "world")
                       : snprintf(c->group, sizeof c->group, "%012llx",
                                  (unsigned long long)(members >> 16));
    if (n)
        snprintf(c->group + len, sizeof c->group - (size_t)len, ".%u", (unsigned)n);
    c->id = mpi_mix(mpi_mix(mpi_job(), members), n) | 1;
}

static bool is_all(const int *ranks, int n, int world_size)
{
    for (int i = 0; i < n; i++)
        if (ranks[i] != i)
            return false;
    return n == world_size;
}

/* One that connects two groups has a hash to which both sides come. */
static void learn_members(struct mpi_comm *c)
{
    MPI_Group group;
    int world_size = 0, n = 0, is_inter = 0;
    bool is_known = true;
    mpi->Comm_size(mpi->world, &world_size);
    mpi->Comm_rank(mpi->world, &c->me);
    mpi->Comm_test_inter(c->handle, &is_inter);
    mpi->Comm_group(c->handle, &group);
    mpi->Group_size(group, &n);
    int *own = world_ranks(group, n);
    mpi->Group_free(&group);
    c->size = c->n_peers = own ? n : 0;
    c->peers = own;
    if (!own)
        return;
    uint64_t members = hash_of(own, n, &is_known);
    bool is_world = !is_inter && is_all(own, n, world_size);
    if (is_inter) {
        mpi->Comm_remote_group(c->handle, &group);
        mpi->Group_size(group, &n);
        c->peers = world_ranks(group, n);
        mpi->Group_free(&group);
        free(own);
        c->n_peers = c->peers ? n : 0;
        c->size += c->n_peers;
        members ^= c->peers ? hash_of(c->peers, n, &is_known) : 0;
    }
    name_comm(c, members, is_world);
    c->id = is_known ? c->id : 0;
}

struct mpi_comm *mpi_comm_of(MPI_Comm handle)
{
    if (!handle || handle == mpi->no_comm || !make_room())
        return &nobody;
    size_t at = slot_of(handle);
    if (table[at])
        return table[at];
    struct mpi_comm *c = calloc(1, sizeof *c);
    if (!c)
        return &nobody;
    *c = (struct mpi_comm){.handle = handle, .users = 1};
    mpi_depth++;
    learn_members(c);
    mpi_depth--;
    table[at] = c;
    used++;
    return c;
}

void mpi_comm_made(MPI_Comm handle)
{
    mpi_lock();
    mpi_comm_of(mpi->world); /* the first with its members, whichever call comes first */
    mpi_comm_of(handle);
    mpi_unlock();
}

void mpi_comm_gone(MPI_Comm handle)
{
    mpi_lock();
    size_t at = cap ? slot_of(handle) : 0;
    if (cap && table[at]) {
        struct mpi_comm *c = table[at];
        remove_at(at);
        mpi_comm_drop(c);
    }
    mpi_unlock();
}
