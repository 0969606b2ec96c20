/* The vocabulary of communication between ranks (docs/comm.md): categories, keys of arguments,
 * names of operations.
 *
 * The one list of them. The capture of MPI calls and the reader of flight recorder dumps write
 * these words; the report, SQL, the alignment of clocks and the exports look for them. A collective
 * is a slice of category SV_CAT_COLLECTIVE on the thread or stream that took part, from the rank's
 * arrival to its end. Its name is the producer's ("MPI_Allreduce", "nccl:all_reduce"). Libraries
 * that cannot include this header write the same words as literals. */
#ifndef SV_SUBJECTS_COMM_WORDS_H
#define SV_SUBJECTS_COMM_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SV_CAT_COLLECTIVE "collective"
#define SV_CAT_MPI        "mpi" /* point-to-point calls and waits of MPI */
#define SV_CAT_P2P        "p2p" /* those of others */

/* Keys of arguments. */
#define SV_COMM_OP    "op"    /* text: one of the operations below */
#define SV_COMM_GROUP "group" /* text: communicator or process group, equal on all of its members */
#define SV_COMM_SEQ   "seq"   /* int: number of this collective in its group, from 0 */
#define SV_COMM_BYTES "bytes" /* int: what this rank contributes */
#define SV_COMM_SIZE  "group_size" /* int: how many ranks the group has */
#define SV_COMM_PEER  "peer"       /* int: the other rank, of point-to-point operations */
#define SV_COMM_TAG   "tag"        /* int: of point-to-point operations */
#define SV_COMM_STATE "state"      /* text: how far it got, where the source says it */
/* Where the file does not say it: */
#define SV_COMM_RANK    "rank"        /* int: the rank of the job that took part */
#define SV_COMM_DESC    "group_desc"  /* text: what the group is for */
#define SV_COMM_MEMBERS "group_ranks" /* text: "[0, 1, 2]" */

/* The group of all ranks. */
#define SV_COMM_WORLD "world"

/* clang-format off */
/* The operations: OP(member, text). */
#define SV_COMM_OPS(OP)               \
    OP(ALLREDUCE, "allreduce")           \
    OP(ALLGATHER, "allgather")           \
    OP(ALLTOALL, "alltoall")             \
    OP(BARRIER, "barrier")               \
    OP(BROADCAST, "broadcast")           \
    OP(GATHER, "gather")                 \
    OP(REDUCE, "reduce")                 \
    OP(REDUCE_SCATTER, "reduce_scatter") \
    OP(SCAN, "scan")                     \
    OP(SCATTER, "scatter")               \
    OP(SEND, "send")                     \
    OP(RECV, "recv")                     \
    OP(OTHER, "other")
/* clang-format on */

enum sv_comm_op {
#define SV_COMM_MEMBER(member, text) SV_COMM_##member,
    SV_COMM_OPS(SV_COMM_MEMBER)
#undef SV_COMM_MEMBER
        SV_N_COMM_OPS
};

/* What a name says, as PyTorch, NCCL, RCCL, gloo and MPI write it: "nccl:_all_gather_base",
 * "ncclDevKernel_AllReduce_Sum_f32_RING_LL", "MPI_Ibcast". */
enum sv_comm_op sv_comm_op_of(const char *name, size_t len);
const char *sv_comm_op_name(unsigned op);

/* Does every rank that takes part have to wait for all others? */
bool sv_comm_op_waits_for_all(unsigned op);

/* The size of an element by PyTorch's name of its type ("BFloat16"); 0: not known. */
int64_t sv_comm_type_bytes(const char *name, size_t len);

#endif
