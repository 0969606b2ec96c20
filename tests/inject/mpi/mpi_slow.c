/* An MPI program for the communication report, which knows nothing of Stave.
 *
 *   mpi_slow STEPS RANK DELAY_MS   works 5 to 25 ms and joins an MPI_Allreduce, STEPS times; RANK
 *                                  works DELAY_MS longer (-1: none does)
 *   mpi_slow hang RANK             RANK leaves its 21st collective out and sleeps; each says that
 *                                  it got there, and the job is killed by the test
 *   mpi_slow kind RANK             at the 21st collective RANK calls MPI_Barrier instead
 *
 * Work is sleep, and its chance is larger than what a busy machine with fewer processors than ranks
 * adds. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void work(unsigned *seed, long extra_us)
{
    long us = 5000 + (long)(rand_r(seed) % 20000) + extra_us;
    struct timespec t = {us / 1000000, us % 1000000 * 1000};
    nanosleep(&t, NULL);
}

static void add_all(int n)
{
    static double in[4096], out[4096];
    MPI_Allreduce(in, out, n, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    unsigned seed = (unsigned)rank * 7919u + 1;
    const char *what = argc > 1 ? argv[1] : "40";
    int who = argc > 2 ? (int)strtol(argv[2], NULL, 10) : -1;
    if (strcmp(what, "hang") == 0 || strcmp(what, "kind") == 0) {
        for (int i = 0; i < 20; i++)
            add_all(1024);
        printf("rank %d is there\n", rank);
        fflush(stdout);
        if (rank == who && strcmp(what, "hang") == 0)
            for (;;)
                pause();
        if (rank == who)
            MPI_Barrier(MPI_COMM_WORLD);
        else
            add_all(1024);
        for (;;) /* the barrier may get through: what it was is in the trace */
            pause();
    }
    for (int i = 0, n = (int)strtol(what, NULL, 10); i < n; i++) {
        work(&seed, rank == who && argc > 3 ? strtol(argv[3], NULL, 10) * 1000 : 0);
        add_all(1024);
    }
    MPI_Finalize();
    return 0;
}
