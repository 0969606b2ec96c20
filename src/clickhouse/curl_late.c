/* Loads libcurl: see curl_late.h. Called by client.c. */
#include <dlfcn.h> /* without libcurl there is nothing else, and a file must not be empty */

#ifdef SV_HAVE_CURL
#include "clickhouse/curl_late.h"

#include <stdio.h>
#include <string.h>

#define SONAME "libcurl.so.4"

struct sv_curl sv_curl;

static struct {
    bool is_done;
    char why[200];
} loading;

static void load(void)
{
    void *handle = dlopen(SONAME, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle) {
        snprintf(loading.why, sizeof loading.why,
                 SONAME " cannot be loaded: install it (Debian: libcurl4)");
        return;
    }
#define FIND(name)                                                                       \
    {                                                                                    \
        void *symbol = dlsym(handle, #name);                                             \
        memcpy(&sv_curl.name, &symbol, sizeof symbol);                                   \
        if (!symbol)                                                                     \
            snprintf(loading.why, sizeof loading.why, SONAME " has no function " #name); \
    }
    SV_CURL_FUNCTIONS(FIND)
#undef FIND
}

bool sv_curl_load(char *why, size_t size)
{
    if (!loading.is_done)
        load();
    loading.is_done = true;
    snprintf(why, size, "%s", loading.why);
    return !loading.why[0];
}
#endif
