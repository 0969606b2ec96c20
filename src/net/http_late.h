/* libmicrohttpd, loaded when a server is opened: with GnuTLS and what that needs it was the longest
 * part of a start. A build of archives (the wheel) has it linked.
 *
 *     if (sv_mhd_load(err) < 0) …        // then sv_mhd.MHD_start_daemon(…) */
#pragma once

#ifdef SV_HAVE_MICROHTTPD
#include "core/base/err.h"
#include "core/base/late.h"

#include <microhttpd.h>

#define SV_MHD_FUNCTIONS(F)            \
    F(MHD_add_connection)              \
    F(MHD_add_response_header)         \
    F(MHD_create_response_from_buffer) \
    F(MHD_destroy_response)            \
    F(MHD_get_connection_info)         \
    F(MHD_get_connection_values)       \
    F(MHD_lookup_connection_value)     \
    F(MHD_queue_response)              \
    F(MHD_resume_connection)           \
    F(MHD_start_daemon)                \
    F(MHD_stop_daemon)                 \
    F(MHD_suspend_connection)

struct sv_mhd {
    SV_MHD_FUNCTIONS(SV_LATE_MEMBER)
};

extern struct sv_mhd sv_mhd;

/* Before anything else here, from any thread. SV_EUSAGE says what to install. */
int sv_mhd_load(struct sv_err *err);
#endif
