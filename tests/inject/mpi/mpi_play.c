/* A program that knows MPI and nothing of Stave: calls of all kinds, and a count of each, which the test compares with the trace. Prints "RANK NAME COUNT" for each call that it made.
 *
 *     mpirun -n 4 mpi_play [ROUNDS]
 *     mpirun -n 8 mpi_play die RANK     that rank kills itself in the middle
 *     mpirun -n 2 mpi_play fast CALLS   only Allreduce, for what a call costs: prints nanoseconds per call */
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NAMES = 100, MESSAGES = 5, BYTES = 1000 };

static struct {
    const char *name;
    long n;
} tallies[NAMES];
static int me, size;
static char sent[64 * BYTES], got[64 * BYTES];

static void tally(const char *name)
{
    int i = 0;
    while (tallies[i].name && strcmp(tallies[i].name, name) != 0)
        i++;
    tallies[i].name = name;
    tallies[i].n++;
}

#define N(name, args) (tally("MPI_" #name), MPI_##name args)
#define SENT()        tally("message sent")
#define GOT()         tally("message received")
#define W             MPI_COMM_WORLD

static int right(int by)
{
    return (me + by) % size;
}

static int left(int by)
{
    return (me - by + size) % size;
}

static void ring(int tag)
{
    MPI_Status status;
    if (me % 2 == 0)
        N(Send, (sent, 10 + tag, MPI_CHAR, right(1), tag, W));
    N(Recv, (got, BYTES, MPI_CHAR, left(1), tag, W, tag % 2 ? &status : MPI_STATUS_IGNORE));
    if (me % 2)
        N(Ssend, (sent, 10 + tag, MPI_CHAR, right(1), tag, W));
    SENT();
    GOT();
    N(Sendrecv,
      (sent, 3, MPI_INT, right(1), tag, got, 3, MPI_INT, left(1), tag, W, MPI_STATUS_IGNORE));
    N(Sendrecv_replace, (sent, 4, MPI_CHAR, left(1), tag, right(1), tag, W, &status));
    SENT(), SENT(), GOT(), GOT();
    N(Send, (sent, 1, MPI_CHAR, MPI_PROC_NULL, tag, W)); /* no message */
    N(Recv, (got, 1, MPI_CHAR, MPI_PROC_NULL, tag, W, &status));
}

static void nonblocking(void)
{
    MPI_Request r[6];
    int index, n, indices[4], flag = 0;
    for (int i = 0; i < 3; i++) {
        N(Irecv, (got + i * BYTES, BYTES, MPI_CHAR, left(1), 20, W, &r[i]));
        GOT();
    }
    for (int i = 3; i < 6; i++) {
        N(Isend, (sent, i, MPI_DOUBLE, right(1), 20, W, &r[i]));
        SENT();
    }
    N(Waitall, (6, r, MPI_STATUSES_IGNORE));
    for (int i = 0; i < 4; i++) {
        N(Irecv, (got + i * BYTES, BYTES, MPI_CHAR, left(1), 21 + i % 2, W, &r[i]));
        GOT();
    }
    for (int i = 0; i < 4; i++) {
        N(Send, (sent, 1, MPI_CHAR, right(1), 21 + i % 2, W));
        SENT();
    }
    N(Waitany, (4, r, &index, MPI_STATUS_IGNORE));
    for (int left_over = 3; left_over > 0; left_over -= n)
        N(Waitsome, (4, r, &n, indices, MPI_STATUSES_IGNORE));
    N(Irecv, (got, BYTES, MPI_CHAR, left(1), 23, W, &r[0]));
    N(Issend, (sent, 7, MPI_CHAR, right(1), 23, W, &r[1]));
    SENT(), GOT();
    while (!flag)
        MPI_Test(&r[0], &flag, MPI_STATUS_IGNORE);
    tally("MPI_Test"); /* those that found nothing are not recorded */
    N(Wait, (&r[1], MPI_STATUS_IGNORE));
}

/* Everybody to rank 0, which asks for anybody. Then receives that another one may have preceded. */
static void wildcards(void)
{
    MPI_Status status;
    MPI_Request r[3];
    for (int i = 0; i < MESSAGES; i++) {
        if (me) {
            N(Send, (sent, 100 + me, MPI_CHAR, 0, 30 + i % 2, W));
            SENT();
        }
        for (int k = 1; me == 0 && k < size; k++) {
            N(Recv, (got, BYTES, MPI_CHAR, MPI_ANY_SOURCE, MPI_ANY_TAG, W, &status));
            GOT();
        }
    }
    N(Barrier, (W));
    if (me == 1)
        for (int i = 0; i < 3; i++) {
            N(Send, (sent, 1 + i, MPI_CHAR, 0, 40, W));
            SENT();
        }
    if (me == 0) {
        N(Irecv, (got, BYTES, MPI_CHAR, MPI_ANY_SOURCE, 40, W, &r[0]));
        N(Irecv, (got + BYTES, BYTES, MPI_CHAR, 1, 40, W, &r[1]));
        N(Irecv, (got + 2 * BYTES, BYTES, MPI_CHAR, 1, MPI_ANY_TAG, W, &r[2]));
        N(Wait, (&r[2], &status));
        N(Wait, (&r[1], MPI_STATUS_IGNORE)); /* complete before the first is known */
        N(Wait, (&r[0], MPI_STATUS_IGNORE));
        GOT(), GOT(), GOT();
    }
    N(Barrier, (W));
}

static void probes(void)
{
    MPI_Message message;
    MPI_Status status;
    MPI_Request r;
    for (int i = 0; i < 2; i++) {
        N(Isend, (sent, 50 + i, MPI_CHAR, right(1), 50, W, &r));
        SENT();
        N(Mprobe, (left(1), 50, W, &message, &status));
        N(Mrecv, (got, BYTES, MPI_CHAR, &message, MPI_STATUS_IGNORE));
        GOT();
        N(Wait, (&r, MPI_STATUS_IGNORE));
    }
    N(Isend, (sent, 5, MPI_CHAR, right(1), 51, W, &r));
    N(Probe, (left(1), 51, W, &status));
    N(Recv, (got, BYTES, MPI_CHAR, left(1), 51, W, &status));
    N(Wait, (&r, MPI_STATUS_IGNORE));
    SENT(), GOT();
}

static void persistent(void)
{
    MPI_Request r[2];
    N(Recv_init, (got, BYTES, MPI_CHAR, left(1), 60, W, &r[0]));
    N(Send_init, (sent, 33, MPI_CHAR, right(1), 60, W, &r[1]));
    for (int i = 0; i < 3; i++) {
        if (i == 0)
            N(Start, (&r[0])), N(Start, (&r[1]));
        else
            N(Startall, (2, r));
        SENT(), GOT();
        N(Waitall, (2, r, MPI_STATUSES_IGNORE));
    }
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
}

static void collectives(MPI_Comm c)
{
    int n;
    double a[64] = {1}, b[64 * 64];
    MPI_Request r;
    MPI_Comm_size(c, &n);
    int counts[64], at[64];
    for (int i = 0; i < n; i++)
        counts[i] = 2, at[i] = 2 * i;
    N(Barrier, (c));
    N(Bcast, (a, 4, MPI_DOUBLE, n - 1, c));
    N(Reduce, (a, b, 4, MPI_DOUBLE, MPI_SUM, 0, c));
    N(Allreduce, (a, b, 8, MPI_DOUBLE, MPI_SUM, c));
    N(Allreduce, (MPI_IN_PLACE, b, 8, MPI_DOUBLE, MPI_MAX, c));
    N(Gather, (a, 2, MPI_DOUBLE, b, 2, MPI_DOUBLE, 0, c));
    N(Gatherv, (a, 2, MPI_DOUBLE, b, counts, at, MPI_DOUBLE, 0, c));
    N(Scatter, (b, 2, MPI_DOUBLE, a, 2, MPI_DOUBLE, 0, c));
    N(Allgather, (a, 2, MPI_DOUBLE, b, 2, MPI_DOUBLE, c));
    N(Allgatherv, (a, 2, MPI_DOUBLE, b, counts, at, MPI_DOUBLE, c));
    N(Alltoall, (a, 1, MPI_DOUBLE, b, 1, MPI_DOUBLE, c));
    N(Alltoallv, (b, counts, at, MPI_DOUBLE, b + 1000, counts, at, MPI_DOUBLE, c));
    N(Reduce_scatter, (b, a, counts, MPI_DOUBLE, MPI_SUM, c));
    N(Reduce_scatter_block, (b, a, 1, MPI_DOUBLE, MPI_SUM, c));
    N(Scan, (a, b, 1, MPI_DOUBLE, MPI_SUM, c));
    N(Exscan, (a, b, 1, MPI_DOUBLE, MPI_SUM, c));
    N(Iallreduce, (a, b, 8, MPI_DOUBLE, MPI_SUM, c, &r));
    N(Wait, (&r, MPI_STATUS_IGNORE));
    N(Ibarrier, (c, &r));
    N(Wait, (&r, MPI_STATUS_IGNORE));
}

static void groups(void)
{
    MPI_Comm half, copy, copy2;
    int n, rank;
    N(Comm_split, (W, me % 2, me, &half));
    N(Comm_dup, (half, &copy));
    N(Comm_dup, (W, &copy2));
    collectives(half);
    N(Allreduce, (sent, got, 1, MPI_INT, MPI_SUM, copy));
    N(Allreduce, (sent, got, 1, MPI_INT, MPI_SUM, copy2));
    MPI_Comm_size(copy, &n);
    MPI_Comm_rank(copy, &rank);
    N(Sendrecv, (sent, 9, MPI_CHAR, (rank + 1) % n, 70, got, 9, MPI_CHAR, (rank + n - 1) % n, 70,
                 copy, MPI_STATUS_IGNORE));
    SENT(), GOT();
    N(Comm_free, (&half));
    N(Comm_free, (&copy));
    N(Comm_free, (&copy2));
}

static void fast(long n)
{
    struct timespec a, b;
    int x = 1, y;
    MPI_Barrier(W);
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (long i = 0; i < n; i++)
        MPI_Allreduce(&x, &y, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
    clock_gettime(CLOCK_MONOTONIC, &b);
    if (me == 0)
        printf("%.0f ns per call\n",
               ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / (double)n);
}

static void print_tallies(void)
{
    for (int i = 0; tallies[i].name; i++)
        printf("%d %s %ld\n", me, tallies[i].name, tallies[i].n);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "1";
    N(Init, (&argc, &argv));
    MPI_Comm_rank(W, &me);
    MPI_Comm_size(W, &size);
    if (strcmp(what, "fast") == 0) {
        fast(argc > 2 ? strtol(argv[2], NULL, 10) : 1000000);
        MPI_Finalize();
        return 0;
    }
    for (int i = 0; i < strtol(what, NULL, 10) || i == 0; i++) {
        ring(2 * i);
        ring(2 * i + 1);
        nonblocking();
        wildcards();
        probes();
        persistent();
        collectives(W);
        groups();
    }
    if (strcmp(what, "die") == 0 && argc > 2 && strtol(argv[2], NULL, 10) == me)
        raise(SIGKILL);
    N(Barrier, (W));
    N(Finalize, ());
    print_tallies();
    return 0;
}
