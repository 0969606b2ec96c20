/* Launchers by the variables that they set: see launcher.h. Called where outputs are named and
 * described, by the SDK and by commands.
 *
 * The innermost launcher counts: torchrun runs below mpirun or srun, mpirun below sbatch. A
 * launcher that started one process only is passed over when another one started several. */
#include "core/files/launcher.h"

#include "core/files/trusted.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SIZES = 2 };
struct known {
    const char *name, *rank, *sizes[SIZES], *local;
    bool needs_size; /* without a size the number alone does not show a launcher */
    bool needs_many; /* set in every job, with one process, too */
};

static const struct known all[] = {
    {"torchrun", "RANK", {"WORLD_SIZE"}, "LOCAL_RANK", true, false},
    {"openmpi",
     "OMPI_COMM_WORLD_RANK",
     {"OMPI_COMM_WORLD_SIZE"},
     "OMPI_COMM_WORLD_LOCAL_RANK",
     false,
     false},
    {"pmix", "PMIX_RANK", {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}, "SLURM_LOCALID", false, false},
    {"pmi", "PMI_RANK", {"PMI_SIZE"}, "MPI_LOCALRANKID", false, false},
    {"slurm",
     "SLURM_PROCID",
     {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"},
     "SLURM_LOCALID",
     true,
     true},
};

/* -1: not set, or no number. */
static int64_t number(const struct sv_environment *e, const char *variable)
{
    const char *text = variable ? e->get(e->ctx, variable) : NULL;
    char *end;
    if (!text || !isdigit((unsigned char)*text))
        return -1;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    return errno == 0 && *end == '\0' && n <= INT32_MAX ? n : -1;
}

static bool look(const struct sv_environment *e, const struct known *k, struct sv_launcher *l)
{
    *l = (struct sv_launcher){.name = k->name, .rank = number(e, k->rank), .size = -1};
    for (int i = 0; i < SIZES && l->size < 0; i++)
        l->size = number(e, k->sizes[i]);
    l->local_rank = number(e, k->local);
    if (l->rank < 0 || (l->size >= 0 && l->rank >= l->size) || (k->needs_many && l->size <= 1))
        return false;
    if (k->needs_size && l->size < 0)
        l->name = NULL;
    return true;
}

static void find_job(const struct sv_environment *e, char *to, size_t size)
{
    static const char *const names[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID",
                                        "TORCHELASTIC_RUN_ID", "PMIX_NAMESPACE"};
    size_t n = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names && n == 0; i++) {
        const char *text = e->get(e->ctx, names[i]);
        if (!text || strcmp(text, "none") == 0)
            continue;
        for (; text[n] && n < size - 1; n++)
            to[n] = text[n];
    }
    to[n] = '\0';
    for (char *c = to; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("._-@+", *c))
            *c = '_';
    if (to[0] == '.')
        to[0] = '_';
}

bool sv_launcher_has_many(const struct sv_launcher *l)
{
    return l->name && l->size != 1;
}

struct sv_launcher sv_launcher_find_in(const struct sv_environment *e)
{
    struct sv_launcher l, best = {.rank = -1, .size = -1, .local_rank = -1};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!look(e, &all[i], &l))
            continue;
        bool is_better = l.name &&
                         (!best.name || (!sv_launcher_has_many(&best) && sv_launcher_has_many(&l)));
        if (best.rank < 0 || is_better)
            best = l;
    }
    find_job(e, best.job, sizeof best.job);
    return best;
}

static const char *own_variable(void *ctx, const char *name)
{
    (void)ctx;
    return sv_trusted_getenv(name);
}

struct sv_launcher sv_launcher_find(void)
{
    return sv_launcher_find_in(&(struct sv_environment){.get = own_variable});
}
