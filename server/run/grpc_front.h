/* KServe v2 over gRPC. The functions take NULL where a server has no gRPC. */
#pragma once

#include "server/run/engine.h"

struct sv_grpc_front;

/* Takes the port (NULL: has none of its own); calls are answered from start on. */
int sv_grpc_front_open(struct sv_engine *e, const struct sv_config *c, const char *address,
                       struct sv_grpc_front **out, struct sv_err *err);
int sv_grpc_front_start(struct sv_grpc_front *f, struct sv_err *err);
uint16_t sv_grpc_front_port(const struct sv_grpc_front *f); /* 0: none of its own */
/* A connection that came elsewhere and speaks HTTP/2: it is the front's from then on. After the
 * start. */
void sv_grpc_front_take(struct sv_grpc_front *f, int fd);
void sv_grpc_front_stop(struct sv_grpc_front *f); /* no new calls; the open ones are answered */
void sv_grpc_front_close(struct sv_grpc_front *f);
void sv_grpc_front_metrics(struct sv_grpc_front *f, struct sv_buf *out);
