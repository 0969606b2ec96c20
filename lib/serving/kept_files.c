/* Names of a server's files, and what happens to those of the servers before it.
 *
 * A server that starts has the plain names. What is there already is renamed to the next free
 * number, all files of a run to the same one (batching_trace.3.json, batching_trace_summary.3.csv
 * …), those that stave-server makes of them at its end, too. When a living server writes there, the
 * new one puts its process number into its own names instead. */
#include "serving/growing_file.h"
#include "serving/tracer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    N_FILES = 4,         /* that the tracer writes */
    N_ALL = N_FILES + 2, /* of a run: its plots, and its trace joined with StarPU's */
    NUMBER_MAX = 1000000
};

static const char *const names[2][N_ALL] = {
    [STAVE_SERVING_NAMES_DEFAULT] = {"batching_trace.json", "batching_trace_summary.csv",
                                     "batching_trace_metrics.csv", "batching_trace.pftrace",
                                     "batching_trace_plots.png", "batching_trace_starpu.pftrace"},
    [STAVE_SERVING_NAMES_NEWER] = {"perfetto_trace.json", "trace.csv", "metrics.csv",
                                   "trace.pftrace", "trace_plots.png", "trace_starpu.pftrace"},
};

/* DIR/NAME, with ".NUMBER" before the suffix when it is not 0. */
static bool path_of(char *to, const char *dir, const char *name, uint64_t number)
{
    size_t n = strlen(dir);
    const char *slash = n && dir[n - 1] == '/' ? "" : "/", *dot = strrchr(name, '.');
    int len = number ? snprintf(to, SV_SERVING_PATH_MAX, "%s%s%.*s.%llu%s", dir, slash,
                                (int)(dot - name), name, (unsigned long long)number, dot)
                     : snprintf(to, SV_SERVING_PATH_MAX, "%s%s%s", dir, slash, name);
    if (len >= SV_SERVING_PATH_MAX)
        errno = ENAMETOOLONG;
    return len < SV_SERVING_PATH_MAX;
}

static bool any_exists(const char *dir, const char *const *set, uint64_t number, bool *exists)
{
    char path[SV_SERVING_PATH_MAX];
    *exists = false;
    for (size_t i = 0; i < N_ALL; i++) {
        if (!path_of(path, dir, set[i], number))
            return false;
        *exists |= access(path, F_OK) == 0;
    }
    return true;
}

static bool is_in_use(const char *dir, const char *const *set)
{
    char path[SV_SERVING_PATH_MAX];
    for (size_t i = 0; i < N_FILES; i++)
        if (path_of(path, dir, set[i], 0) && sv_growing_is_busy(path))
            return true;
    return false;
}

static bool move_all(const char *dir, const char *const *set, uint64_t number)
{
    char from[SV_SERVING_PATH_MAX], to[SV_SERVING_PATH_MAX];
    for (size_t i = 0; i < N_ALL; i++) {
        if (!path_of(from, dir, set[i], 0) || !path_of(to, dir, set[i], number))
            return false;
        if (rename(from, to) != 0 && errno != ENOENT)
            return false;
    }
    return true;
}

static bool keep_earlier(const char *dir, const char *const *set)
{
    bool exists;
    if (!any_exists(dir, set, 0, &exists))
        return false;
    for (uint64_t number = 1; exists && number < NUMBER_MAX; number++) {
        bool is_taken;
        if (!any_exists(dir, set, number, &is_taken))
            return false;
        if (!is_taken)
            return move_all(dir, set, number);
    }
    return true;
}

bool sv_serving_name_files(struct stave_serving *s, const char *dir)
{
    const char *const *set = names[s->config.names == STAVE_SERVING_NAMES_NEWER];
    char *const paths[N_FILES] = {s->paths.json, s->paths.csv, s->paths.metrics, s->paths.pftrace};
    snprintf(s->paths.dir, sizeof s->paths.dir, "%s", dir);
    uint64_t number = is_in_use(dir, set) ? (uint64_t)getpid() : 0;
    if (!number && !s->config.truncate && !keep_earlier(dir, set))
        return false;
    for (size_t i = 0; i < N_FILES; i++)
        if (!path_of(paths[i], dir, set[i], number))
            return false;
    return true;
}
