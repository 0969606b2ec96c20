/* libcurl, loaded when a database is first used: with the 30 libraries that it needs, it was half
 * of the time in which `stave` starts.
 *
 *     if (!sv_curl_load(why, sizeof why)) …       // then the names of libcurl's functions may be
 *                                                 used as ever */
#pragma once

#include "core/base/late.h"

#include <curl/curl.h>

/* curl.h has macros of the same names that check types. */
#undef curl_easy_setopt
#undef curl_easy_getinfo

#define SV_CURL_FUNCTIONS(X)    \
    X(curl_easy_cleanup)        \
    X(curl_easy_escape)         \
    X(curl_easy_getinfo)        \
    X(curl_easy_init)           \
    X(curl_easy_perform)        \
    X(curl_easy_reset)          \
    X(curl_easy_setopt)         \
    X(curl_easy_strerror)       \
    X(curl_free)                \
    X(curl_global_cleanup)      \
    X(curl_global_init)         \
    X(curl_multi_add_handle)    \
    X(curl_multi_cleanup)       \
    X(curl_multi_info_read)     \
    X(curl_multi_init)          \
    X(curl_multi_perform)       \
    X(curl_multi_poll)          \
    X(curl_multi_remove_handle) \
    X(curl_slist_append)        \
    X(curl_slist_free_all)

struct sv_curl {
    SV_CURL_FUNCTIONS(SV_LATE_MEMBER)
};

extern struct sv_curl sv_curl;

/* Before anything else here; false: `why` says what to install. */
bool sv_curl_load(char *why, size_t size);
