/* Loads libmicrohttpd: see http_late.h. Called by who opens a server. */
#include "net/http_late.h"

#include <pthread.h>

#ifdef SV_HAVE_MICROHTTPD
struct sv_mhd sv_mhd;

static struct {
    pthread_once_t once;
    bool is_there;
    char why[200];
} library = {.once = PTHREAD_ONCE_INIT};

static void load(void)
{
#ifdef SV_MICROHTTPD_SONAME
    static const char *const names[] = {SV_MHD_FUNCTIONS(SV_LATE_NAME)};
    library.is_there = sv_late_load(SV_MICROHTTPD_SONAME, "libmicrohttpd12", names,
                                    sizeof names / sizeof *names, &sv_mhd, library.why,
                                    sizeof library.why);
#else
#define LINKED(name) name,
    sv_mhd = (struct sv_mhd){SV_MHD_FUNCTIONS(LINKED)};
    library.is_there = true;
#endif
}

int sv_mhd_load(struct sv_err *err)
{
    pthread_once(&library.once, load);
    return library.is_there ? 0 : sv_error(err, SV_EUSAGE, "%s", library.why);
}
#endif
