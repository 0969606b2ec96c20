/* clang-format off */
/* The same two events as LTTng-UST tracepoints, for comparison. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER stave_peer
#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "./lttng_peer.h"
#if !defined(LTTNG_PEER_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define LTTNG_PEER_H
#include <lttng/tracepoint.h>
LTTNG_UST_TRACEPOINT_EVENT(stave_peer, begin, LTTNG_UST_TP_ARGS(int, x), LTTNG_UST_TP_FIELDS())
LTTNG_UST_TRACEPOINT_EVENT(stave_peer, two, LTTNG_UST_TP_ARGS(int, a, int, b), LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int,a,a) lttng_ust_field_integer(int,b,b)))
#endif
#include <lttng/tracepoint-event.h>
