/* The launcher: which of many equal processes this one is, where something like mpirun started
 * them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sv_launcher {
    const char *name; /* "openmpi", "pmix", "pmi", "slurm", "torchrun"; NULL: none that is known */
    int64_t rank;     /* among all; -1: nobody says */
    int64_t size, local_rank; /* how many in all, which of this machine; -1: unknown */
    char job[64];             /* number or name of the job, fit for a file's name; "": none */
};

/* From the environment, which a program with more rights than its caller does not believe. No
 * memory is allocated. */
struct sv_launcher sv_launcher_find(void);
/* The same of another environment. */
struct sv_environment {
    const char *(*get)(void *ctx, const char *name); /* NULL: it is not set */
    void *ctx;
};
struct sv_launcher sv_launcher_find_in(const struct sv_environment *e);
/* Do several ranks run, so that one file's name is not enough? */
bool sv_launcher_has_many(const struct sv_launcher *l);
