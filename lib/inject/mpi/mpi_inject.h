/* What the files of the library share. calls.h has the calls; entry.c makes the table of ours.
 *
 *   comms.c        communicators: their members, a name that is equal on all of them, numbers of
 *                  collectives
 *   messages.c     which message is which: the number that sender and receiver count alike, and the
 *                  number of its flow
 *   requests.c     what nonblocking calls have begun and a wait completes
 *   p2p.c, waits.c, collectives.c, life.c     the calls themselves
 *
 * Nothing is sent, and no call is made that needs another rank: a rank that is not recorded must
 * not be waited for. All state is under one lock, which is held for tens of nanoseconds, never
 * around a call of the program. */
#pragma once

#include <stave/stave.h>
#include <stdbool.h>
#include <stdint.h>

#include "calls.h"

/* Words of src/subjects/comm/words.h. */
#define CAT_MPI        "mpi"
#define CAT_COLLECTIVE "collective"

extern const struct mpi_itself *mpi; /* MPI's own functions */
/* > 0 while this thread is in a call of MPI: what that calls by itself is not recorded. */
extern _Thread_local int mpi_depth;

void mpi_lock(void);
void mpi_unlock(void);

uint64_t mpi_mix(uint64_t a, uint64_t b);
uint64_t mpi_job(void); /* equal on all ranks of a job, different for two jobs */

/* Counts by a key; 0 for a new one. NULL: no memory. With the lock held. */
struct mpi_counts {
    struct mpi_count {
        uint64_t key, n; /* key 0: free */
    } * slots;
    size_t cap, used;
};
uint64_t *mpi_count(struct mpi_counts *c, uint64_t key);

/* ---- communicators ---- */

struct mpi_post;

struct mpi_comm {
    MPI_Comm handle;
    uint64_t id; /* equal on all members; 0: members are not known, so there are no flows */
    char group
        [24]; /* "world", "self", else a hash of the members; ".1" of a second one of the same */
    int size; /* of its group: of both, where it connects two */
    int n_peers;
    int *peers;                    /* by rank in it: rank in the world, < 0: none */
    int me;                        /* rank in the world */
    uint32_t users;                /* requests and the table */
    uint64_t seq;                  /* of collectives */
    struct mpi_post *first, *last; /* receives that await a wildcard before them */
};

struct mpi_comm *mpi_comm_of(MPI_Comm handle); /* with the lock held */
void mpi_comm_made(MPI_Comm handle);           /* takes the lock */
void mpi_comm_gone(MPI_Comm handle);
void mpi_comm_drop(struct mpi_comm *c); /* with the lock held: one user less */
static inline int mpi_comm_peer(const struct mpi_comm *c, int rank)
{
    return rank >= 0 && rank < c->n_peers ? c->peers[rank] : -1;
}

/* ---- messages ---- */

struct mpi_message {
    const char *group;
    int peer, tag;             /* in the world; -1: none */
    uint64_t bytes, seq, flow; /* flow 0: none */
};

uint64_t mpi_bytes(int count, MPI_Datatype type);
uint64_t mpi_sum_bytes(const int *n_each, MPI_Datatype type, int n);
uint64_t mpi_sum_each(const int *n_each, const MPI_Datatype *types, int n);

/* A message that is about to be sent. Takes the lock. */
struct mpi_message mpi_sending(int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm);
struct mpi_message mpi_sending_on(struct mpi_comm *c, uint64_t bytes, int dest,
                                  int tag); /* lock held */

/* The next collective of this communicator. */
struct mpi_collective {
    const char *group;
    int size, root;
    uint64_t seq, flow;
};
struct mpi_collective mpi_collective(MPI_Comm comm, int root);

/* A receive in the order of its post, which is the order of matching. */
struct mpi_post {
    struct mpi_post *next, *before;
    struct mpi_comm *comm;
    int source, tag; /* asked for; source in the world; MPI_ANY_… */
    bool any_source, any_tag, is_listed, is_given, is_matched, is_late;
    int64_t ts_ns;
    struct mpi_message is;
};

/* All with the lock held. NULL: nothing will come, or no memory. */
struct mpi_post *mpi_post_new(struct mpi_comm *c, int source, int tag);
/* It has been received, or given to a probe. Its number may depend on an earlier receive from
 * anybody: then `is.flow` is 0 and the flow is recorded later. */
struct mpi_message mpi_post_matched(struct mpi_post *p, const MPI_Status *status);
void mpi_post_cancelled(struct mpi_post *p); /* and frees it */
void mpi_post_free(struct mpi_post *p); /* NULL is fine. What is late stays until it is known */

/* Has a receive with this result taken a message? One that was too long for the buffer has. */
static inline bool mpi_has_received(int code)
{
    return code == MPI_SUCCESS || code == MPI_ERR_TRUNCATE;
}

/* ---- requests ---- */

enum mpi_kind { MPI_KIND_RECEIVE = 1, MPI_KIND_SEND, MPI_KIND_COLLECTIVE, MPI_KIND_MESSAGE };

/* MPI gives a handle to another request as soon as the one that had it is complete, perhaps in
 * another thread and before this one has seen that. */
struct mpi_ticket {
    uint64_t key;    /* the handle; 0: free, or not in the table */
    uint64_t number; /* of all that ever were */
};

struct mpi_request {
    struct mpi_ticket is;
    enum mpi_kind kind;
    bool is_persistent;
    const char *op, *name;
    struct mpi_comm *comm;
    struct mpi_post *post; /* RECEIVE, MESSAGE */
    int peer, tag;         /* persistent ones: ranks of the communicator */
    uint64_t bytes, seq;
};

/* Takes the lock. The post and the use of the communicator go over to the table. */
void mpi_track(const void *handle, const struct mpi_request *r);
bool mpi_tracks(void); /* is there any? Without the lock */
/* With the lock held. The newest with this handle. */
struct mpi_request *mpi_find(const void *handle);
void mpi_forget(struct mpi_request *r); /* the post stays the caller's */
/* Both take the lock. Before a call: what may be complete after it. After the call: records what
 * has been received. */
void mpi_look(const MPI_Request *requests, int n, struct mpi_ticket *to);
void mpi_completed(struct mpi_ticket ticket, const MPI_Status *status);

void mpi_record_receive(const struct mpi_message *m); /* nothing where it has no flow */

/* ---- the calls ---- */

#define MPI_OURS(name, params, args) int mpi_on_##name params;
#define MPI_OURS_BOTH(name, other, op, bytes, root, params, args) \
    int mpi_on_##name params;                                     \
    int mpi_on_##other(MPI_INSIDE params, MPI_Request *request);
MPI_PLAIN_CALLS(MPI_OURS)
MPI_COLLECTIVES(MPI_OURS_BOTH)

/* Calls MPI's own function. */
#define CALL_MPI(code, name, args)     \
    do {                               \
        mpi_depth++;                   \
        (code) = mpi->calls.name args; \
        mpi_depth--;                   \
    } while (0)
#define END_CALL(cat, code)                       \
    do {                                          \
        if ((code) == MPI_SUCCESS)                \
            STAVE_END(cat);                       \
        else                                      \
            STAVE_END(cat, "error", (int)(code)); \
    } while (0)
