/* Collectives: a slice from the call to its return, with the number that this call has on all ranks
 * of the communicator. One flow goes through all of them. */
#include "mpi_inject.h"

/* The root is an argument only where there is one. */
#define BEGIN_COLLECTIVE(name, op_, bytes_, c)                                               \
    do {                                                                                     \
        uint64_t n_bytes = (bytes_);                                                         \
        if ((c).flow == 0)                                                                   \
            STAVE_BEGIN(CAT_COLLECTIVE, name, "op", op_, "group", (c).group, "seq", (c).seq, \
                        "bytes", n_bytes, "group_size", (c).size);                           \
        else if ((c).root >= 0)                                                              \
            STAVE_BEGIN(CAT_COLLECTIVE, name, "op", op_, "group", (c).group, "seq", (c).seq, \
                        "bytes", n_bytes, "group_size", (c).size, "root", (c).root,          \
                        STAVE_FLOW_OUT, (c).flow);                                           \
        else                                                                                 \
            STAVE_BEGIN(CAT_COLLECTIVE, name, "op", op_, "group", (c).group, "seq", (c).seq, \
                        "bytes", n_bytes, "group_size", (c).size, STAVE_FLOW_OUT, (c).flow); \
    } while (0)

static void track_collective(MPI_Request request, int code, const char *op, MPI_Comm comm,
                             uint64_t seq)
{
    if (code != MPI_SUCCESS || request == mpi->no_request)
        return;
    mpi_lock();
    struct mpi_comm *c = mpi_comm_of(comm);
    mpi_unlock();
    if (c->size > 1) /* one that is alone has finished, and its request is everybody's */
        mpi_track(request, &(struct mpi_request){
                               .kind = MPI_KIND_COLLECTIVE, .op = op, .comm = c, .seq = seq});
}

#define COLLECTIVE(name, other, word, bytes, root_, params, args) \
    int mpi_on_##name params                                      \
    {                                                             \
        int code;                                                 \
        if (mpi_depth)                                            \
            return mpi->calls.name args;                          \
        struct mpi_collective c = mpi_collective(comm, root_);    \
        BEGIN_COLLECTIVE("MPI_" #name, word, bytes, c);           \
        CALL_MPI(code, name, args);                               \
        END_CALL(CAT_COLLECTIVE, code);                           \
        return code;                                              \
    }                                                             \
    int mpi_on_##other(MPI_INSIDE params, MPI_Request *request)   \
    {                                                             \
        int code;                                                 \
        if (mpi_depth)                                            \
            return mpi->calls.other(MPI_INSIDE args, request);    \
        struct mpi_collective c = mpi_collective(comm, root_);    \
        BEGIN_COLLECTIVE("MPI_" #other, word, bytes, c);          \
        CALL_MPI(code, other, (MPI_INSIDE args, request));        \
        END_CALL(CAT_COLLECTIVE, code);                           \
        track_collective(*request, code, word, comm, c.seq);      \
        return code;                                              \
    }
MPI_COLLECTIVES(COLLECTIVE)

/* ---- communicators are made by all members of one ---- */

#define MAKER(name, params, args)                           \
    int mpi_on_##name params                                \
    {                                                       \
        int code;                                           \
        if (mpi_depth)                                      \
            return mpi->calls.name args;                    \
        struct mpi_collective c = mpi_collective(comm, -1); \
        BEGIN_COLLECTIVE("MPI_" #name, "other", 0, c);      \
        CALL_MPI(code, name, args);                         \
        END_CALL(CAT_COLLECTIVE, code);                     \
        if (code == MPI_SUCCESS)                            \
            mpi_comm_made(*made);                           \
        return code;                                        \
    }
MPI_MAKERS(MAKER)
