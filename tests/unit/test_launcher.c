/* Launchers by their variables: which one counts, what is no launcher. */
#include "core/files/launcher.h"

#include "tests/harness/test.h"

#include <stdlib.h>
#include <string.h>

static void set_only(const char *list)
{
    static const char *const all[] = {"RANK",
                                      "WORLD_SIZE",
                                      "LOCAL_RANK",
                                      "OMPI_COMM_WORLD_RANK",
                                      "OMPI_COMM_WORLD_SIZE",
                                      "OMPI_COMM_WORLD_LOCAL_RANK",
                                      "PMIX_RANK",
                                      "PMIX_NAMESPACE",
                                      "PMI_RANK",
                                      "PMI_SIZE",
                                      "MPI_LOCALRANKID",
                                      "SLURM_PROCID",
                                      "SLURM_NTASKS",
                                      "SLURM_STEP_NUM_TASKS",
                                      "SLURM_LOCALID",
                                      "SLURM_JOB_ID",
                                      "PBS_JOBID",
                                      "LSB_JOBID",
                                      "TORCHELASTIC_RUN_ID"};
    for (size_t i = 0; i < TEST_COUNT(all); i++)
        unsetenv(all[i]);
    char text[512];
    strncpy(text, list, sizeof text - 1);
    text[sizeof text - 1] = '\0';
    char *save = NULL;
    for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        char *equals = strchr(word, '=');
        *equals = '\0';
        setenv(word, equals + 1, 1);
    }
}

TEST(each_launcher)
{
    static const struct {
        const char *environment, *name;
        int64_t rank, size, local;
        const char *job;
        bool has_many;
    } rows[] = {
        {"", NULL, -1, -1, -1, "", false},
        {"OMPI_COMM_WORLD_RANK=3 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=1 PMIX_RANK=3",
         "openmpi", 3, 4, 1, "", true},
        {"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=1", "openmpi", 0, 1, -1, "", false},
        {"PMIX_RANK=2 PMIX_NAMESPACE=prterun-host-7@1", "pmix", 2, -1, -1, "prterun-host-7@1",
         true},
        {"PMIX_RANK=2 SLURM_NTASKS=8 SLURM_LOCALID=2 SLURM_JOB_ID=99 SLURM_PROCID=2", "pmix", 2, 8,
         2, "99", true},
        {"PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=1", "pmi", 1, 2, 1, "", true},
        {"SLURM_PROCID=5 SLURM_NTASKS=6 SLURM_LOCALID=1 SLURM_JOB_ID=7", "slurm", 5, 6, 1, "7",
         true},
        {"SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_JOB_ID=7", NULL, -1, -1, -1, "7", false},
        {"SLURM_PROCID=0 SLURM_NTASKS=4 SLURM_STEP_NUM_TASKS=1", NULL, -1, -1, -1, "", false},
        {"RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 TORCHELASTIC_RUN_ID=none", "torchrun", 0, 2, 0, "",
         true},
        {"RANK=3", NULL, 3, -1, -1, "", false}, /* a number for %r, but anybody's variable */
        {"RANK=3 PMI_RANK=0 PMI_SIZE=1", "pmi", 0, 1, -1, "", false},
        {"RANK=captain WORLD_SIZE=2", NULL, -1, -1, -1, "", false},
        {"RANK=2 WORLD_SIZE=2", NULL, -1, -1, -1, "", false},
        {"RANK=-1 WORLD_SIZE=2", NULL, -1, -1, -1, "", false},
        {"RANK=99999999999999999999 WORLD_SIZE=2", NULL, -1, -1, -1, "", false},
        /* torchrun on each node of a Slurm job: its numbers are those of the processes */
        {"RANK=5 WORLD_SIZE=8 SLURM_PROCID=1 SLURM_NTASKS=2", "torchrun", 5, 8, -1, "", true},
        /* a leftover of one process below a launcher of several */
        {"RANK=0 WORLD_SIZE=1 OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4", "openmpi", 2, 4, -1,
         "", true},
        {"PMI_RANK=0 PMI_SIZE=2 PBS_JOBID=../../etc/x", "pmi", 0, 2, -1, "_._.._etc_x", true},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("%s", rows[i].environment);
        set_only(rows[i].environment);
        struct sv_launcher l = sv_launcher_find();
        CHECK_STR_EQ(l.name ? l.name : "none", rows[i].name ? rows[i].name : "none");
        CHECK_INT_EQ(l.rank, rows[i].rank);
        CHECK_INT_EQ(l.size, rows[i].size);
        CHECK_INT_EQ(l.local_rank, rows[i].local);
        CHECK_STR_EQ(l.job, rows[i].job);
        CHECK_INT_EQ(sv_launcher_has_many(&l), rows[i].has_many);
    }
}
