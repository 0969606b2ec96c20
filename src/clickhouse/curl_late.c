/* Loads libcurl: see curl_late.h. Called by client.c. */
#include "core/base/late.h" /* without libcurl there is nothing else, and a file must not be empty */

#ifdef SV_HAVE_CURL
#include "clickhouse/curl_late.h"

struct sv_curl sv_curl;

bool sv_curl_load(char *why, size_t size)
{
    static const char *const names[] = {SV_CURL_FUNCTIONS(SV_LATE_NAME)};
    return sv_late_load(SV_CURL_SONAME, "libcurl4", names, sizeof names / sizeof *names, &sv_curl,
                        why, size);
}
#endif
