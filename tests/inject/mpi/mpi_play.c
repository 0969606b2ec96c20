/* A program that knows MPI and nothing of Stave: calls of all kinds, and a count of each, which the
 * test compares with the trace. Prints "RANK NAME COUNT" for each call that it made.
 *
 *     mpirun -n 4 mpi_play [ROUNDS]
 *     mpirun -n 8 mpi_play die RANK     that rank kills itself while the others wait for it
 *     mpirun -n 2 mpi_play fast CALLS   only Allreduce, for what a call costs: prints nanoseconds
 *                                       per call */
#define OMPI_SKIP_MPICXX 1
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

/* A message that is too long for its buffer, a receive that is cancelled: what comes after them is
 * counted right. */
static void mishaps(void)
{
    MPI_Request r[2];
    MPI_Comm_set_errhandler(W, MPI_ERRORS_RETURN);
    for (int i = 0; i < 4; i++) {
        N(Isend, (sent, 20 + i, MPI_CHAR, right(1), 80, W, &r[0]));
        if (i % 2) {
            N(Irecv,
              (got, i == 1 ? 5 : BYTES, MPI_CHAR, i == 1 ? MPI_ANY_SOURCE : left(1), 80, W, &r[1]));
            N(Waitall, (2, r, MPI_STATUSES_IGNORE));
        } else {
            N(Recv, (got, i == 0 ? 5 : BYTES, MPI_CHAR, left(1), 80, W, MPI_STATUS_IGNORE));
            N(Wait, (&r[0], MPI_STATUS_IGNORE));
        }
        SENT(), GOT();
    }
    N(Irecv, (got, BYTES, MPI_CHAR, left(1), 81, W, &r[0]));
    MPI_Cancel(&r[0]);
    N(Wait, (&r[0], MPI_STATUS_IGNORE));
    N(Barrier, (W));
    N(Sendrecv,
      (sent, 81, MPI_CHAR, right(1), 81, got, 81, MPI_CHAR, left(1), 81, W, MPI_STATUS_IGNORE));
    SENT(), GOT();
    MPI_Comm_set_errhandler(W, MPI_ERRORS_ARE_FATAL);
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
        /* Started ones. NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker) */
        N(Waitall, (2, r, MPI_STATUSES_IGNORE));
    }
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);
}

/* More requests than the library has places for on the stack. */
static void many(void)
{
    enum { MANY = 100 };
    MPI_Request r[2 * MANY];
    for (int i = 0; i < MANY; i++) {
        N(Irecv,
          (got + i, 1 + i, MPI_CHAR, i % 2 ? MPI_ANY_SOURCE : left(1), 90 + i % 3, W, &r[i]));
        GOT();
    }
    for (int i = 0; i < MANY; i++) {
        N(Isend, (sent, 1, MPI_CHAR, right(1), 90 + i % 3, W, &r[MANY + i]));
        SENT();
    }
    N(Waitall, (2 * MANY, r, MPI_STATUSES_IGNORE));
}

/* The other kinds of sends, each to a receive that has been posted. */
static void other_sends(void)
{
    static char buffer[4096 + MPI_BSEND_OVERHEAD];
    void *detached;
    int n;
    MPI_Request r[4], s[2];
    MPI_Buffer_attach(buffer, sizeof buffer);
    for (int i = 0; i < 4; i++)
        N(Irecv, (got + i * BYTES, BYTES, MPI_CHAR, left(1), 100, W, &r[i]));
    N(Barrier, (W));
    N(Bsend, (sent, 21, MPI_CHAR, right(1), 100, W));
    N(Rsend, (sent, 22, MPI_CHAR, right(1), 100, W));
    N(Ibsend, (sent, 23, MPI_CHAR, right(1), 100, W, &s[0]));
    N(Irsend, (sent, 24, MPI_CHAR, right(1), 100, W, &s[1]));
    for (int i = 0; i < 4; i++)
        SENT(), GOT();
    N(Waitall, (2, s, MPI_STATUSES_IGNORE));
    N(Waitall, (4, r, MPI_STATUSES_IGNORE));
    MPI_Buffer_detach(&detached, &n);
}

/* Calls that may find nothing: those that do are recorded. */
static void polls(void)
{
    MPI_Request r[4], s;
    MPI_Message message;
    int flag, index, n, indices[4];
    for (int i = 0; i < 4; i++)
        N(Irecv, (got + i * BYTES, BYTES, MPI_CHAR, left(1), 110 + i, W, &r[i]));
    for (int i = 0; i < 4; i++) {
        N(Send, (sent, 30 + i, MPI_CHAR, right(1), 110 + i, W));
        SENT(), GOT();
    }
    for (flag = 0; !flag;)
        MPI_Testany(4, r, &index, &flag, MPI_STATUS_IGNORE);
    tally("MPI_Testany");
    for (n = 0; n == 0;)
        MPI_Testsome(4, r, &n, indices, MPI_STATUSES_IGNORE);
    tally("MPI_Testsome");
    for (flag = 0; !flag;)
        MPI_Testall(4, r, &flag, MPI_STATUSES_IGNORE);
    tally("MPI_Testall");
    N(Isend, (sent, 40, MPI_CHAR, right(1), 120, W, &s));
    SENT(), GOT();
    for (flag = 0; !flag;)
        MPI_Iprobe(left(1), 120, W, &flag, MPI_STATUS_IGNORE);
    tally("MPI_Iprobe");
    for (flag = 0; !flag;)
        MPI_Improbe(MPI_ANY_SOURCE, 120, W, &flag, &message, MPI_STATUS_IGNORE);
    tally("MPI_Improbe");
    N(Imrecv, (got, BYTES, MPI_CHAR, &message, &r[0]));
    N(Wait, (&r[0], MPI_STATUS_IGNORE));
    N(Wait, (&s, MPI_STATUS_IGNORE));
}

static void nonblocking_collectives(MPI_Comm c)
{
    int n;
    double a[64] = {1}, b[256], d[256];
    MPI_Request r[8];
    MPI_Comm_size(c, &n);
    int counts[64], at[64];
    for (int i = 0; i < n; i++)
        counts[i] = 1, at[i] = i;
    N(Ibcast, (a, 4, MPI_DOUBLE, 0, c, &r[0]));
    N(Ireduce, (a, b, 4, MPI_DOUBLE, MPI_SUM, 0, c, &r[1]));
    N(Iallgather, (a + 8, 1, MPI_DOUBLE, b + 64, 1, MPI_DOUBLE, c, &r[2]));
    N(Ialltoall, (a + 16, 1, MPI_DOUBLE, b + 128, 1, MPI_DOUBLE, c, &r[3]));
    N(Igather, (a + 8, 1, MPI_DOUBLE, d, 1, MPI_DOUBLE, 0, c, &r[4]));
    N(Iscatter, (a + 16, 1, MPI_DOUBLE, d + 64, 1, MPI_DOUBLE, 0, c, &r[5]));
    N(Iscan, (a + 8, d + 128, 1, MPI_DOUBLE, MPI_SUM, c, &r[6]));
    N(Iallgatherv, (a + 8, 1, MPI_DOUBLE, d + 192, counts, at, MPI_DOUBLE, c, &r[7]));
    /* The checker knows no Iscan. NOLINTNEXTLINE(clang-analyzer-optin.mpi.MPI-Checker) */
    N(Waitall, (8, r, MPI_STATUSES_IGNORE));
    N(Scatterv, (b, counts, at, MPI_DOUBLE, a, 1, MPI_DOUBLE, 0, c));
    MPI_Datatype types[64];
    for (int i = 0; i < n; i++)
        types[i] = MPI_DOUBLE, at[i] = 8 * i;
    N(Alltoallw, (a, counts, at, types, b, counts, at, types, c));
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
    MPI_Comm grid, line, both, between;
    MPI_Group group;
    int dims[1] = {size}, periods[1] = {1}, keep[1] = {1};
    N(Cart_create, (W, 1, dims, periods, 0, &grid));
    N(Cart_sub, (grid, keep, &line));
    N(Allreduce, (sent, got, 1, MPI_INT, MPI_SUM, line));
    MPI_Comm_group(W, &group);
    N(Comm_create, (W, group, &both));
    N(Barrier, (both));
    N(Intercomm_create, (half, 0, W, 1 - me % 2, 71, &between));
    if (rank < size / 2) { /* one of the other half */
        N(Sendrecv, (sent, 30 + me, MPI_CHAR, rank, 72, got, BYTES, MPI_CHAR, rank, 72, between,
                     MPI_STATUS_IGNORE));
        SENT(), GOT();
    }
    MPI_Comm whole;
    N(Intercomm_merge, (between, me % 2, &whole));
    N(Barrier, (whole));
    MPI_Group_free(&group);
    N(Comm_free, (&grid)), N(Comm_free, (&line)), N(Comm_free, (&both));
    N(Comm_free, (&between)), N(Comm_free, (&whole));
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

/* The others are about to wait in the barrier, and have a second for their way into it, when the
 * victim kills itself: whoever starts them ends them then. */
static void die(int victim)
{
    char name[32];
    if (me != victim) {
        snprintf(name, sizeof name, "waits.%d", me);
        FILE *f = fopen(name, "w");
        if (f)
            fclose(f);
        return;
    }
    for (int i = 0; i < size; i++) {
        snprintf(name, sizeof name, "waits.%d", i);
        for (int ms = 0; i != me && ms < 60000 && access(name, F_OK) != 0; ms++)
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    sleep(1);
    raise(SIGKILL);
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
        mishaps();
        many();
        other_sends();
        polls();
        nonblocking_collectives(W);
        persistent();
        collectives(W);
        groups();
    }
    if (strcmp(what, "die") == 0 && argc > 2)
        die((int)strtol(argv[2], NULL, 10));
    N(Barrier, (W));
    N(Finalize, ());
    print_tallies();
    return 0;
}
