/* Two ranks compute and meet in a collective: mpi_ranks sleeper | computes | starved | ok. Rank 1
 * sleeps 150 ms in each tenth step, computes longer in each, or shares its CPU with a thief
 * that runs beside them. Rank 0 states the truth. */
#define _GNU_SOURCE
#include "truth.h"

#include <mpi.h>
#include <sched.h>

enum { STEPS = 40 };

__attribute__((noinline)) static void wait_for_license(void)
{
    why_sleep_ms(150);
}

static void stay_on(int cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
}

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "ok";
    int rank, work = strcmp(how, "ok") == 0 ? 30 : 15;
    struct why w = {0};
    double sum = 0, x = 1;
    int64_t extra = 0, theirs = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (strcmp(how, "starved") == 0)
        stay_on(rank == 1 ? (int)sysconf(_SC_NPROCESSORS_ONLN) - 1 : 0);
    MPI_Barrier(MPI_COMM_WORLD);
    why_begin(&w);
    for (int i = 0; i < STEPS; i++) {
        STAVE_SCOPE("step", "step", "n", i);
        int64_t begin = why_now();
        if (rank == 1 && strcmp(how, "sleeper") == 0 && i % 10 == 9)
            wait_for_license();
        if (rank == 1 && strcmp(how, "computes") == 0)
            why_spin_ms(20);
        extra += why_now() - begin;
        why_spin_ms(work);
        MPI_Allreduce(&x, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    why_end(&w);
    if (strcmp(how, "starved") == 0)
        extra = rank == 1 ? w.delay : 0;
    MPI_Reduce(&extra, &theirs, 1, MPI_INT64_T, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        if (strcmp(how, "ok") != 0)
            why_cause(&w, "\"straggler_rank\"", theirs, "\"rank\": 1");
        if (strcmp(how, "starved") == 0)
            why_allow(&w, "\"cpu\"", theirs);
        why_write(&w, "step", STEPS, 1);
    }
    MPI_Finalize();
}
