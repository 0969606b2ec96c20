/* What LD_PRELOAD puts into every program of a recording: MPI's functions by name, and nothing else
 * until one of them is called.
 *
 * The first call finds MPI's own functions and loads the library that records
 * (libstave-mpi-calls.so, beside this one), and with it libstave. So a shell or a compiler that
 * runs below the recorder is not touched. Where anything is missing the calls go to MPI as they
 * are, and one line says why: an MPI other than the one that this was built for has other types,
 * which a call that is handed on does not look at. */

#include "inject/mpi/calls.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct mpi_itself itself;
static const struct mpi_calls *calls;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void *library; /* MPI's, where only a part of the program sees it */

/* MPI may be loaded by a module of the program (Python's mpi4py), for that module alone. */
static void *find(const char *name)
{
    static const char *const names[] = {"libmpi.so.40", "libmpi.so.12", "libmpi.so"};
    void *found = dlsym(RTLD_DEFAULT, name);
    for (size_t i = 0; !library && i < sizeof names / sizeof *names; i++)
        library = dlopen(names[i], RTLD_LAZY | RTLD_NOLOAD);
    return found || !library ? found : dlsym(library, name);
}

static void find_function(void *to, const char *name)
{
    void *found = find(name);
    memcpy(to, &found, sizeof found);
}

static void find_itself(void)
{
#define FIND(name, ...)             find_function(&itself.calls.name, "PMPI_" #name);
#define FIND_BOTH(name, other, ...) FIND(name, ) FIND(other, )
#define FIND_HELPER(name)           find_function(&itself.name, "PMPI_" #name);
    MPI_PLAIN_CALLS(FIND)
    MPI_COLLECTIVES(FIND_BOTH)
    MPI_HELPERS(FIND_HELPER)
    itself.world = find("ompi_mpi_comm_world");
    itself.no_comm = find("ompi_mpi_comm_null");
    itself.no_request = find("ompi_request_null");
    itself.no_message = find("ompi_message_null");
    itself.byte = find("ompi_mpi_byte");
}

static bool is_whole(void)
{
    bool is = itself.world && itself.no_comm && itself.no_request && itself.no_message &&
              itself.byte;
#define CHECK(name) is = is && itself.name;
    MPI_HELPERS(CHECK)
    return is;
}

static void say(const char *why)
{
    char line[1024];
    int n = snprintf(line, sizeof line, "stave: MPI is not recorded: %s\n", why ? why : "?");
    size_t len = n < 0 ? 0 : (size_t)n < sizeof line ? (size_t)n : sizeof line - 1;
    if (write(STDERR_FILENO, line, len) < 0)
        return; /* nobody listens */
}

static const struct mpi_calls *load_library(void)
{
    char path[PATH_MAX];
    Dl_info self;
    if (!dladdr(&itself, &self) || !self.dli_fname)
        return NULL;
    const char *slash = strrchr(self.dli_fname, '/');
    int n = snprintf(path, sizeof path, "%.*s" MPI_ENTRY_FILE,
                     slash ? (int)(slash + 1 - self.dli_fname) : 0, self.dli_fname);
    void *loaded = n > 0 && n < PATH_MAX ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    mpi_entry_fn *entry = NULL;
    void *found = loaded ? dlsym(loaded, MPI_ENTRY) : NULL;
    memcpy(&entry, &found, sizeof found);
    if (!entry)
        say(dlerror());
    return entry ? entry(&itself) : NULL;
}

static void begin(void)
{
    find_itself();
    const struct mpi_calls *ours = NULL;
    if (is_whole())
        ours = load_library();
    else
        say("this program's MPI is not Open MPI, for which --inject mpi was built");
    calls = ours ? ours : &itself.calls;
}

static const struct mpi_calls *taken(void)
{
    pthread_once(&once, begin);
    return calls;
}

#define EXPORT __attribute__((visibility("default")))
#define CALL(name, params, args)   \
    EXPORT int MPI_##name params   \
    {                              \
        return taken()->name args; \
    }
#define COLLECTIVE(name, other, op, bytes, root, params, args)      \
    EXPORT int MPI_##name params                                    \
    {                                                               \
        return taken()->name args;                                  \
    }                                                               \
    EXPORT int MPI_##other(MPI_INSIDE params, MPI_Request *request) \
    {                                                               \
        return taken()->other(MPI_INSIDE args, request);            \
    }
MPI_PLAIN_CALLS(CALL)
MPI_COLLECTIVES(COLLECTIVE)
