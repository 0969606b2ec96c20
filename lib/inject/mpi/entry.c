/* The entry: preload.c hands over MPI's functions and takes ours. Also what everything else stands
 * on: the lock, hashes, counts. */
#include "mpi_inject.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const struct mpi_itself *mpi;
_Thread_local int mpi_depth;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void mpi_lock(void)
{
    pthread_mutex_lock(&lock);
}

void mpi_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

#define OURS(name, ...)             .name = mpi_on_##name,
#define OURS_BOTH(name, other, ...) .name = mpi_on_##name, .other = mpi_on_##other,
static const struct mpi_calls ours = {MPI_PLAIN_CALLS(OURS) MPI_COLLECTIVES(OURS_BOTH)};

__attribute__((visibility("default"))) mpi_entry_fn stave_mpi_calls;

const struct mpi_calls *stave_mpi_calls(const struct mpi_itself *itself)
{
    mpi = itself;
    return &ours;
}

/* ---- hashes ---- */

uint64_t mpi_mix(uint64_t a, uint64_t b)
{
    uint64_t x = a ^ (b + 0x9e3779b97f4a7c15ull + (a << 6) + (a >> 2));
    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ull;
    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93ull;
    return x ^ (x >> 32);
}

static uint64_t hash_text(uint64_t h, const char *text)
{
    for (; *text; text++)
        h = mpi_mix(h, (unsigned char)*text);
    return h;
}

/* By what launchers call the job. A program that was started alone is a job of its own. */
uint64_t mpi_job(void)
{
    static const char *const names[] = {"PMIX_NAMESPACE", "SLURM_JOB_ID", "SLURM_STEP_ID",
                                        "PMI_JOBID"};
    static uint64_t job;
    for (size_t i = 0; job == 0 && i < sizeof names / sizeof *names; i++) {
        const char *text = getenv(names[i]);
        job = text ? hash_text(i + 1, text) : job;
    }
    if (job == 0)
        job = mpi_mix((uint64_t)getpid(), (uint64_t)stave_now_ns()) | 1;
    return job;
}

/* ---- counts ---- */

static struct mpi_count *place_of(struct mpi_count *slots, size_t cap, uint64_t key)
{
    size_t at = key & (cap - 1);
    while (slots[at].key && slots[at].key != key)
        at = (at + 1) & (cap - 1);
    return &slots[at];
}

static bool grow(struct mpi_counts *c)
{
    size_t cap = c->cap ? 2 * c->cap : 256;
    struct mpi_count *slots = calloc(cap, sizeof *slots);
    if (!slots)
        return false;
    for (size_t i = 0; i < c->cap; i++)
        if (c->slots[i].key)
            *place_of(slots, cap, c->slots[i].key) = c->slots[i];
    free(c->slots);
    c->slots = slots;
    c->cap = cap;
    return true;
}

uint64_t *mpi_count(struct mpi_counts *c, uint64_t key)
{
    key = key ? key : 1;
    if (c->used >= c->cap / 2 && !grow(c))
        return NULL;
    struct mpi_count *slot = place_of(c->slots, c->cap, key);
    c->used += slot->key == 0;
    slot->key = key;
    return &slot->n;
}
