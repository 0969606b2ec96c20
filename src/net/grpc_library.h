/* libgrpc's C core, found when it is asked for. Only where its headers were there at the build
 * (SV_HAVE_GRPC).
 *
 * Linking it would load a dozen C++ libraries into every run of every command. */
#pragma once

#ifdef SV_HAVE_GRPC
#include "core/base/err.h"
#include "core/base/late.h"

#include <grpc/grpc.h>
#include <grpc/grpc_posix.h>
#include <grpc/grpc_security.h>
#include <grpc/support/alloc.h>
#include <grpc/support/log.h>
#include <grpc/support/time.h>

#define SV_GRPC_FUNCTIONS(F)                   \
    F(grpc_init)                               \
    F(grpc_shutdown)                           \
    F(grpc_version_string)                     \
    F(grpc_metadata_array_init)                \
    F(grpc_metadata_array_destroy)             \
    F(grpc_call_details_init)                  \
    F(grpc_call_details_destroy)               \
    F(grpc_completion_queue_create_for_next)   \
    F(grpc_completion_queue_next)              \
    F(grpc_completion_queue_shutdown)          \
    F(grpc_completion_queue_destroy)           \
    F(grpc_call_start_batch)                   \
    F(grpc_call_unref)                         \
    F(grpc_call_get_peer)                      \
    F(grpc_channel_create)                     \
    F(grpc_channel_create_call)                \
    F(grpc_channel_destroy)                    \
    F(grpc_insecure_credentials_create)        \
    F(grpc_channel_credentials_release)        \
    F(gpr_free)                                \
    F(grpc_server_create)                      \
    F(grpc_server_register_completion_queue)   \
    F(grpc_server_request_call)                \
    F(grpc_server_add_http2_port)              \
    F(grpc_server_start)                       \
    F(grpc_server_shutdown_and_notify)         \
    F(grpc_server_cancel_all_calls)            \
    F(grpc_server_destroy)                     \
    F(grpc_server_add_channel_from_fd)         \
    F(grpc_insecure_server_credentials_create) \
    F(grpc_server_credentials_release)         \
    F(grpc_resource_quota_create)              \
    F(grpc_resource_quota_resize)              \
    F(grpc_resource_quota_unref)               \
    F(grpc_resource_quota_arg_vtable)          \
    F(grpc_raw_byte_buffer_create)             \
    F(grpc_byte_buffer_length)                 \
    F(grpc_byte_buffer_destroy)                \
    F(grpc_slice_from_copied_buffer)           \
    F(grpc_slice_unref)                        \
    F(gpr_now)                                 \
    F(gpr_inf_future)                          \
    F(gpr_time_add)                            \
    F(gpr_time_from_millis)                    \
    F(gpr_set_log_function)

struct sv_grpc_library {
    SV_GRPC_FUNCTIONS(SV_LATE_MEMBER)
};

/* Loaded once and for good; NULL with the reason. From any thread. */
const struct sv_grpc_library *sv_grpc_library(struct sv_err *err);
#endif
