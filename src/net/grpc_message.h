/* A message as libgrpc brings it, as one piece of bytes: slices joined, compressed ones unpacked up
 * to a limit. */
#pragma once

#include "net/grpc.h"

#ifdef SV_HAVE_GRPC
#include <grpc/byte_buffer.h>

struct sv_grpc_message {
    const uint8_t *bytes; /* of the buffer, or owned */
    size_t len;
    uint8_t *owned;
    const char *why; /* it was refused */
};

/* SV_GRPC_OK, or with what status the call is to be refused. The buffer must outlive it; close it
 * in both cases. */
enum sv_grpc_status sv_grpc_message_open(struct sv_grpc_message *m, const grpc_byte_buffer *from,
                                         size_t max);
void sv_grpc_message_close(struct sv_grpc_message *m);
#endif
