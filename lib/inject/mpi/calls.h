/* The calls of MPI that are taken: what a program calls (preload/preload.c), what the library makes
 * of it, and MPI's own function behind it.
 *
 * Declared by Open MPI's mpi.h. The lists have a line per call, or per family: CALL(name,
 * parameters, arguments). A collective's line is for the blocking and the nonblocking one, and says
 * what is recorded: COLLECTIVE(name, nonblocking name, op, bytes, root or -1, parameters,
 * arguments). The words of `op` are those of src/subjects/comm/words.h. Neighbourhood collectives,
 * one-sided calls and files are not taken. */
#pragma once

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#define MPI_INSIDE(...) __VA_ARGS__

/* clang-format off: lists */
#define MPI_SEND_P (const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm)
#define MPI_SEND_A (buf, count, type, dest, tag, comm)
#define MPI_ISEND_P                                                                   \
    (const void *buf, int count, MPI_Datatype type, int dest, int tag, MPI_Comm comm, \
     MPI_Request *request)
#define MPI_ISEND_A (buf, count, type, dest, tag, comm, request)
#define MPI_SENDS(CALL)                 \
    CALL(Send, MPI_SEND_P, MPI_SEND_A)  \
    CALL(Bsend, MPI_SEND_P, MPI_SEND_A) \
    CALL(Ssend, MPI_SEND_P, MPI_SEND_A) \
    CALL(Rsend, MPI_SEND_P, MPI_SEND_A)
#define MPI_ISENDS(CALL)                   \
    CALL(Isend, MPI_ISEND_P, MPI_ISEND_A)  \
    CALL(Ibsend, MPI_ISEND_P, MPI_ISEND_A) \
    CALL(Issend, MPI_ISEND_P, MPI_ISEND_A) \
    CALL(Irsend, MPI_ISEND_P, MPI_ISEND_A)
#define MPI_SEND_INITS(CALL)                   \
    CALL(Send_init, MPI_ISEND_P, MPI_ISEND_A)  \
    CALL(Bsend_init, MPI_ISEND_P, MPI_ISEND_A) \
    CALL(Ssend_init, MPI_ISEND_P, MPI_ISEND_A) \
    CALL(Rsend_init, MPI_ISEND_P, MPI_ISEND_A)

#define MPI_RECEIVES(CALL)                                                                         \
    CALL(Recv,                                                                                     \
         (void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,             \
          MPI_Status *status),                                                                     \
         (buf, count, type, source, tag, comm, status))                                            \
    CALL(Irecv,                                                                                    \
         (void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,             \
          MPI_Request *request),                                                                   \
         (buf, count, type, source, tag, comm, request))                                           \
    CALL(Recv_init,                                                                                \
         (void *buf, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,             \
          MPI_Request *request),                                                                   \
         (buf, count, type, source, tag, comm, request))                                           \
    CALL(Sendrecv,                                                                                 \
         (const void *sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag,        \
          void *recvbuf, int recvcount, MPI_Datatype recvtype, int source, int recvtag,            \
          MPI_Comm comm, MPI_Status *status),                                                      \
         (sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source,       \
          recvtag, comm, status))                                                                  \
    CALL(Sendrecv_replace,                                                                         \
         (void *buf, int count, MPI_Datatype type, int dest, int sendtag, int source, int recvtag, \
          MPI_Comm comm, MPI_Status *status),                                                      \
         (buf, count, type, dest, sendtag, source, recvtag, comm, status))                         \
    CALL(Probe, (int source, int tag, MPI_Comm comm, MPI_Status *status),                          \
         (source, tag, comm, status))                                                              \
    CALL(Iprobe, (int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status),              \
         (source, tag, comm, flag, status))                                                        \
    CALL(Mprobe, (int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status),   \
         (source, tag, comm, message, status))                                                     \
    CALL(                                                                                          \
        Improbe,                                                                                   \
        (int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status), \
        (source, tag, comm, flag, message, status))                                                \
    CALL(Mrecv,                                                                                    \
         (void *buf, int count, MPI_Datatype type, MPI_Message *message, MPI_Status *status),      \
         (buf, count, type, message, status))                                                      \
    CALL(Imrecv,                                                                                   \
         (void *buf, int count, MPI_Datatype type, MPI_Message *message, MPI_Request *request),    \
         (buf, count, type, message, request))

#define MPI_WAITS(CALL)                                                                            \
    CALL(Start, (MPI_Request * request), (request))                                                \
    CALL(Startall, (int n, MPI_Request requests[]), (n, requests))                                 \
    CALL(Wait, (MPI_Request * request, MPI_Status * status), (request, status))                    \
    CALL(Waitall, (int n, MPI_Request requests[], MPI_Status statuses[]), (n, requests, statuses)) \
    CALL(Waitany, (int n, MPI_Request requests[], int *index, MPI_Status *status),                 \
         (n, requests, index, status))                                                             \
    CALL(Waitsome,                                                                                 \
         (int n, MPI_Request requests[], int *n_out, int indices[], MPI_Status statuses[]),        \
         (n, requests, n_out, indices, statuses))                                                  \
    CALL(Test, (MPI_Request * request, int *flag, MPI_Status *status), (request, flag, status))    \
    CALL(Testall, (int n, MPI_Request requests[], int *flag, MPI_Status statuses[]),               \
         (n, requests, flag, statuses))                                                            \
    CALL(Testany, (int n, MPI_Request requests[], int *index, int *flag, MPI_Status *status),      \
         (n, requests, index, flag, status))                                                       \
    CALL(Testsome,                                                                                 \
         (int n, MPI_Request requests[], int *n_out, int indices[], MPI_Status statuses[]),        \
         (n, requests, n_out, indices, statuses))                                                  \
    CALL(Request_free, (MPI_Request * request), (request))

#define MPI_GATHER_P                                                                          \
    (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, \
     MPI_Datatype recvtype, int root, MPI_Comm comm)
#define MPI_GATHER_A (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm)
#define MPI_ALLGATHER_P                                                                       \
    (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf, int recvcount, \
     MPI_Datatype recvtype, MPI_Comm comm)
#define MPI_ALLGATHER_A (sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm)
#define MPI_REDUCE_P \
    (const void *sendbuf, void *recvbuf, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
#define MPI_REDUCE_A (sendbuf, recvbuf, count, type, op, comm)
/* `bytes` is what this rank gives, or what it gets where only the root gives. In place, the other
 * side of the call says it. */
#define MPI_OWN_BYTES \
    (sendbuf == MPI_IN_PLACE ? mpi_bytes(recvcount, recvtype) : mpi_bytes(sendcount, sendtype))
#define MPI_COLLECTIVES(COLLECTIVE)                                                                \
    COLLECTIVE(Barrier, Ibarrier, "barrier", 0, -1, (MPI_Comm comm), (comm))                       \
    COLLECTIVE(Bcast, Ibcast, "broadcast", mpi_bytes(count, type), root,                           \
               (void *buf, int count, MPI_Datatype type, int root, MPI_Comm comm),                 \
               (buf, count, type, root, comm))                                                     \
    COLLECTIVE(Gather, Igather, "gather", MPI_OWN_BYTES, root, MPI_GATHER_P, MPI_GATHER_A)         \
    COLLECTIVE(Gatherv, Igatherv, "gather",                                                        \
               sendbuf == MPI_IN_PLACE ? 0 : mpi_bytes(sendcount, sendtype), root,                 \
               (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,          \
                const int recvcounts[], const int displs[], MPI_Datatype recvtype, int root,       \
                MPI_Comm comm),                                                                    \
               (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, root, comm))  \
    COLLECTIVE(Scatter, Iscatter, "scatter",                                                       \
               recvbuf == MPI_IN_PLACE ? mpi_bytes(sendcount, sendtype)                            \
                                       : mpi_bytes(recvcount, recvtype),                           \
               root, MPI_GATHER_P, MPI_GATHER_A)                                                   \
    COLLECTIVE(Scatterv, Iscatterv, "scatter",                                                     \
               recvbuf == MPI_IN_PLACE ? 0 : mpi_bytes(recvcount, recvtype), root,                 \
               (const void *sendbuf, const int sendcounts[], const int displs[],                   \
                MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype,        \
                int root, MPI_Comm comm),                                                          \
               (sendbuf, sendcounts, displs, sendtype, recvbuf, recvcount, recvtype, root, comm))  \
    COLLECTIVE(Allgather, Iallgather, "allgather", MPI_OWN_BYTES, -1, MPI_ALLGATHER_P,             \
               MPI_ALLGATHER_A)                                                                    \
    COLLECTIVE(Allgatherv, Iallgatherv, "allgather",                                               \
               sendbuf == MPI_IN_PLACE ? 0 : mpi_bytes(sendcount, sendtype), -1,                   \
               (const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,          \
                const int recvcounts[], const int displs[], MPI_Datatype recvtype, MPI_Comm comm), \
               (sendbuf, sendcount, sendtype, recvbuf, recvcounts, displs, recvtype, comm))        \
    COLLECTIVE(Alltoall, Ialltoall, "alltoall", MPI_OWN_BYTES *(uint64_t)c.size, -1,               \
               MPI_ALLGATHER_P, MPI_ALLGATHER_A)                                                   \
    COLLECTIVE(                                                                                    \
        Alltoallv, Ialltoallv, "alltoall",                                                         \
        sendbuf == MPI_IN_PLACE ? mpi_sum_bytes(recvcounts, recvtype, c.size)                      \
                                : mpi_sum_bytes(sendcounts, sendtype, c.size),                     \
        -1,                                                                                        \
        (const void *sendbuf, const int sendcounts[], const int sdispls[], MPI_Datatype sendtype,  \
         void *recvbuf, const int recvcounts[], const int rdispls[], MPI_Datatype recvtype,        \
         MPI_Comm comm),                                                                           \
        (sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls, recvtype, comm))    \
    COLLECTIVE(                                                                                    \
        Alltoallw, Ialltoallw, "alltoall",                                                         \
        sendbuf == MPI_IN_PLACE ? mpi_sum_each(recvcounts, recvtypes, c.size)                      \
                                : mpi_sum_each(sendcounts, sendtypes, c.size),                     \
        -1,                                                                                        \
        (const void *sendbuf, const int sendcounts[], const int sdispls[],                         \
         const MPI_Datatype sendtypes[], void *recvbuf, const int recvcounts[],                    \
         const int rdispls[], const MPI_Datatype recvtypes[], MPI_Comm comm),                      \
        (sendbuf, sendcounts, sdispls, sendtypes, recvbuf, recvcounts, rdispls, recvtypes, comm))  \
    COLLECTIVE(Reduce, Ireduce, "reduce", mpi_bytes(count, type), root,                            \
               (const void *sendbuf, void *recvbuf, int count, MPI_Datatype type, MPI_Op op,       \
                int root, MPI_Comm comm),                                                          \
               (sendbuf, recvbuf, count, type, op, root, comm))                                    \
    COLLECTIVE(Allreduce, Iallreduce, "allreduce", mpi_bytes(count, type), -1, MPI_REDUCE_P,       \
               MPI_REDUCE_A)                                                                       \
    COLLECTIVE(Reduce_scatter, Ireduce_scatter, "reduce_scatter",                                  \
               mpi_sum_bytes(recvcounts, type, c.size), -1,                                        \
               (const void *sendbuf, void *recvbuf, const int recvcounts[], MPI_Datatype type,     \
                MPI_Op op, MPI_Comm comm),                                                         \
               (sendbuf, recvbuf, recvcounts, type, op, comm))                                     \
    COLLECTIVE(Reduce_scatter_block, Ireduce_scatter_block, "reduce_scatter",                      \
               mpi_bytes(count, type) * (uint64_t)c.size, -1, MPI_REDUCE_P, MPI_REDUCE_A)          \
    COLLECTIVE(Scan, Iscan, "scan", mpi_bytes(count, type), -1, MPI_REDUCE_P, MPI_REDUCE_A)        \
    COLLECTIVE(Exscan, Iexscan, "scan", mpi_bytes(count, type), -1, MPI_REDUCE_P, MPI_REDUCE_A)

/* What all of a communicator call together to make another one of it. */
#define MPI_MAKERS(CALL)                                                                           \
    CALL(Comm_dup, (MPI_Comm comm, MPI_Comm * made), (comm, made))                                 \
    CALL(Comm_dup_with_info, (MPI_Comm comm, MPI_Info info, MPI_Comm * made), (comm, info, made))  \
    CALL(Comm_split, (MPI_Comm comm, int color, int key, MPI_Comm *made),                          \
         (comm, color, key, made))                                                                 \
    CALL(Comm_split_type, (MPI_Comm comm, int split_type, int key, MPI_Info info, MPI_Comm *made), \
         (comm, split_type, key, info, made))                                                      \
    CALL(Comm_create, (MPI_Comm comm, MPI_Group group, MPI_Comm * made), (comm, group, made))      \
    CALL(Cart_create,                                                                              \
         (MPI_Comm comm, int ndims, const int dims[], const int periods[], int reorder,            \
          MPI_Comm *made),                                                                         \
         (comm, ndims, dims, periods, reorder, made))                                              \
    CALL(Cart_sub, (MPI_Comm comm, const int remain_dims[], MPI_Comm *made),                       \
         (comm, remain_dims, made))                                                                \
    CALL(Graph_create,                                                                             \
         (MPI_Comm comm, int nnodes, const int index[], const int edges[], int reorder,            \
          MPI_Comm *made),                                                                         \
         (comm, nnodes, index, edges, reorder, made))                                              \
    CALL(Dist_graph_create,                                                                        \
         (MPI_Comm comm, int n, const int nodes[], const int degrees[], const int targets[],       \
          const int weights[], MPI_Info info, int reorder, MPI_Comm *made),                        \
         (comm, n, nodes, degrees, targets, weights, info, reorder, made))                         \
    CALL(Dist_graph_create_adjacent,                                                               \
         (MPI_Comm comm, int indegree, const int sources[], const int sourceweights[],             \
          int outdegree, const int destinations[], const int destweights[], MPI_Info info,         \
          int reorder, MPI_Comm *made),                                                            \
         (comm, indegree, sources, sourceweights, outdegree, destinations, destweights, info,      \
          reorder, made))                                                                          \
    CALL(Intercomm_merge, (MPI_Comm comm, int high, MPI_Comm *made), (comm, high, made))
/* What only some of it call. */
#define MPI_PART_MAKERS(CALL)                                                           \
    CALL(Comm_create_group, (MPI_Comm comm, MPI_Group group, int tag, MPI_Comm *made),  \
         (comm, group, tag, made))                                                      \
    CALL(Intercomm_create,                                                              \
         (MPI_Comm comm, int local_leader, MPI_Comm bridge, int remote_leader, int tag, \
          MPI_Comm *made),                                                              \
         (comm, local_leader, bridge, remote_leader, tag, made))

#define MPI_LIFE(CALL)                                                        \
    CALL(Init, (int *argc, char ***argv), (argc, argv))                       \
    CALL(Init_thread, (int *argc, char ***argv, int required, int *provided), \
         (argc, argv, required, provided))                                    \
    CALL(Finalize, (void), ())                                                \
    CALL(Abort, (MPI_Comm comm, int code), (comm, code))                      \
    CALL(Comm_free, (MPI_Comm * comm), (comm))                                \
    CALL(Comm_disconnect, (MPI_Comm * comm), (comm))

/* All but the collectives. */
#define MPI_PLAIN_CALLS(CALL) \
    MPI_SENDS(CALL)           \
    MPI_ISENDS(CALL)          \
    MPI_SEND_INITS(CALL)      \
    MPI_RECEIVES(CALL) MPI_WAITS(CALL) MPI_MAKERS(CALL) MPI_PART_MAKERS(CALL) MPI_LIFE(CALL)

/* What the library asks of MPI itself. */
#define MPI_HELPERS(HELPER)       \
    HELPER(Comm_size)             \
    HELPER(Comm_rank)             \
    HELPER(Comm_group)            \
    HELPER(Comm_remote_group)     \
    HELPER(Comm_test_inter)       \
    HELPER(Group_size)            \
    HELPER(Group_translate_ranks) \
    HELPER(Group_free) HELPER(Type_size) HELPER(Get_elements_x) HELPER(Test_cancelled)
/* clang-format on */

#define MPI_MEMBER(name, ...)             __typeof__(MPI_##name) *name;
#define MPI_MEMBER_1(name)                MPI_MEMBER(name, )
#define MPI_MEMBERS(blocking, other, ...) MPI_MEMBER(blocking, ) MPI_MEMBER(other, )

/* A function for each call: MPI's own, or those of the library. */
struct mpi_calls {
    MPI_PLAIN_CALLS(MPI_MEMBER)
    MPI_COLLECTIVES(MPI_MEMBERS)
};

/* MPI itself. Open MPI's constants are objects, whose addresses are known when it is loaded. */
struct mpi_itself {
    struct mpi_calls calls;
    MPI_HELPERS(MPI_MEMBER_1)
    MPI_Comm world, no_comm;
    MPI_Request no_request;
    MPI_Message no_message;
    MPI_Datatype byte;
};

/* The library's only entry: what a program's calls go to from now on. */
#define MPI_ENTRY      "stave_mpi_calls"
#define MPI_ENTRY_FILE "libstave-mpi-calls.so"
typedef const struct mpi_calls *mpi_entry_fn(const struct mpi_itself *itself);
