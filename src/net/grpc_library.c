/* Loads libgrpc: see grpc_library.h. */
#include "net/grpc_library.h"
#include "net/grpc.h"

#include <stdio.h>

#ifdef SV_HAVE_GRPC
#include <pthread.h>
#include <stdlib.h>

static struct {
    pthread_once_t once;
    struct sv_grpc_library functions;
    bool is_there;
    char why[200];
} library = {.once = PTHREAD_ONCE_INIT};

/* The library writes warnings of its own to standard error; what concerns a user, we report. */
static void drop_line(gpr_log_func_args *args)
{
    (void)args;
}

static void load(void)
{
    static const char *const names[] = {SV_GRPC_FUNCTIONS(SV_LATE_NAME)};
    struct sv_grpc_library *f = &library.functions;
    library.is_there = sv_late_load(SV_GRPC_SONAME, "libgrpc29", names,
                                    sizeof names / sizeof *names, f, library.why,
                                    sizeof library.why);
    if (library.is_there && !getenv("GRPC_VERBOSITY"))
        f->gpr_set_log_function(drop_line);
}

const struct sv_grpc_library *sv_grpc_library(struct sv_err *err)
{
    pthread_once(&library.once, load);
    if (library.is_there)
        return &library.functions;
    sv_error(err, SV_EIO, "no gRPC: %s", library.why);
    return NULL;
}

const char *sv_grpc_version(char *why, size_t size)
{
    struct sv_err err = {0};
    const struct sv_grpc_library *f = sv_grpc_library(&err);
    if (f)
        return f->grpc_version_string();
    snprintf(why, size, "%s", err.msg);
    return NULL;
}
#else
const char *sv_grpc_version(char *why, size_t size)
{
    snprintf(why, size, "no gRPC: this build has none: install libgrpc-dev and build again");
    return NULL;
}
#endif
