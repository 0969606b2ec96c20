/* The messages of OTLP traces (opentelemetry-proto, trace v1) as data: numbers and JSON names of
 * their fields.
 *
 * One table for both directions between protobuf and JSON (json.h), and the numbers for who reads
 * or writes the protobuf form. A field that is not here is unknown: it is passed over and
 * counted. */
#pragma once

#include "core/base/wire.h"
#include "core/stream/event.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sv_otlp_request_field { OTLP_RESOURCE_SPANS = 1 };
enum sv_otlp_resource_spans_field { OTLP_RS_RESOURCE = 1, OTLP_RS_SCOPE_SPANS, OTLP_RS_SCHEMA_URL };
enum sv_otlp_resource_field { OTLP_RESOURCE_ATTRIBUTES = 1, OTLP_RESOURCE_DROPPED };
enum sv_otlp_scope_spans_field { OTLP_SS_SCOPE = 1, OTLP_SS_SPANS, OTLP_SS_SCHEMA_URL };
enum sv_otlp_scope_field {
    OTLP_SCOPE_NAME = 1,
    OTLP_SCOPE_VERSION,
    OTLP_SCOPE_ATTRIBUTES,
    OTLP_SCOPE_DROPPED
};
enum sv_otlp_span_field {
    OTLP_SPAN_TRACE_ID = 1,
    OTLP_SPAN_ID,
    OTLP_SPAN_TRACE_STATE,
    OTLP_SPAN_PARENT_ID,
    OTLP_SPAN_NAME,
    OTLP_SPAN_KIND,
    OTLP_SPAN_START,
    OTLP_SPAN_END,
    OTLP_SPAN_ATTRIBUTES,
    OTLP_SPAN_DROPPED_ATTRIBUTES,
    OTLP_SPAN_EVENTS,
    OTLP_SPAN_DROPPED_EVENTS,
    OTLP_SPAN_LINKS,
    OTLP_SPAN_DROPPED_LINKS,
    OTLP_SPAN_STATUS,
    OTLP_SPAN_FLAGS
};
enum sv_otlp_event_field {
    OTLP_EVENT_TIME = 1,
    OTLP_EVENT_NAME,
    OTLP_EVENT_ATTRIBUTES,
    OTLP_EVENT_DROPPED
};
enum sv_otlp_link_field {
    OTLP_LINK_TRACE_ID = 1,
    OTLP_LINK_SPAN_ID,
    OTLP_LINK_TRACE_STATE,
    OTLP_LINK_ATTRIBUTES,
    OTLP_LINK_DROPPED,
    OTLP_LINK_FLAGS
};
enum sv_otlp_status_field { OTLP_STATUS_MESSAGE = 2, OTLP_STATUS_CODE };
enum sv_otlp_key_value_field { OTLP_KV_KEY = 1, OTLP_KV_VALUE };
enum sv_otlp_any_field {
    OTLP_ANY_STRING = 1,
    OTLP_ANY_BOOL,
    OTLP_ANY_INT,
    OTLP_ANY_DOUBLE,
    OTLP_ANY_ARRAY,
    OTLP_ANY_KVLIST,
    OTLP_ANY_BYTES
};
enum { OTLP_LIST_VALUES = 1 }; /* of ArrayValue and KeyValueList */
enum sv_otlp_response_field { OTLP_RESPONSE_PARTIAL = 1 };
enum sv_otlp_partial_field { OTLP_PARTIAL_REJECTED = 1, OTLP_PARTIAL_MESSAGE };
enum sv_rpc_status_field { RPC_STATUS_CODE = 1, RPC_STATUS_MESSAGE };

enum sv_otlp_kind {
    OTLP_KIND_UNSPECIFIED,
    OTLP_KIND_INTERNAL,
    OTLP_KIND_SERVER,
    OTLP_KIND_CLIENT,
    OTLP_KIND_PRODUCER,
    OTLP_KIND_CONSUMER
};
enum sv_otlp_status { OTLP_STATUS_UNSET, OTLP_STATUS_OK, OTLP_STATUS_ERROR };
/* Of a span's or link's flags: is it known whether the parent (the linked span) is another
 * process's, and is it? */
enum { OTLP_FLAG_KNOWS_REMOTE = 0x100, OTLP_FLAG_IS_REMOTE = 0x200 };

enum { OTLP_TRACE_ID_BYTES = 16, OTLP_SPAN_ID_BYTES = 8 };
enum { OTLP_DEPTH_MAX = 32 }; /* of values in values; what is deeper is damage */

enum sv_otlp_type {
    OTLP_TYPE_MESSAGE,
    OTLP_TYPE_STRING,
    OTLP_TYPE_HEX,    /* bytes, hexadecimal in JSON: ids */
    OTLP_TYPE_BASE64, /* bytes, base64 in JSON */
    OTLP_TYPE_BOOL,
    OTLP_TYPE_ENUM,    /* a number in JSON, a name is taken, too */
    OTLP_TYPE_UINT32,  /* a number in JSON */
    OTLP_TYPE_INT64,   /* a text in JSON, a number is taken, too */
    OTLP_TYPE_FIXED64, /* the same, never negative */
    OTLP_TYPE_FIXED32,
    OTLP_TYPE_DOUBLE
};

struct sv_otlp_message;

enum { OTLP_NAME_MAX = 32 };

struct sv_otlp_field {
    char name[OTLP_NAME_MAX]; /* in JSON; two loads of 16 bytes have all of it */
    uint8_t name_len;
    uint8_t id, type; /* type: enum sv_otlp_type */
    bool is_repeated;
    const struct sv_otlp_message *message; /* OTLP_TYPE_MESSAGE */
    const char *const *names;              /* OTLP_TYPE_ENUM: from 0 on, NULL at the end */
};

struct sv_otlp_message {
    const struct sv_otlp_field *fields;
    size_t n;
};

extern const struct sv_otlp_message sv_otlp_request;  /* ExportTraceServiceRequest, TracesData */
extern const struct sv_otlp_message sv_otlp_response; /* ExportTraceServiceResponse */
extern const struct sv_otlp_message sv_rpc_status;    /* google.rpc.Status, without details */

/* The field with this number, NULL: unknown. */
static inline const struct sv_otlp_field *sv_otlp_field(const struct sv_otlp_message *m,
                                                        uint32_t id)
{
    if (id - 1 < m->n && m->fields[id - 1].id == id) /* most tables have all numbers from 1 on */
        return &m->fields[id - 1];
    for (size_t i = 0; i < m->n; i++)
        if (m->fields[i].id == id)
            return &m->fields[i];
    return NULL;
}

static inline uint32_t sv_otlp_wire_type(const struct sv_otlp_field *f)
{
    static const uint8_t types[] = {
        [OTLP_TYPE_MESSAGE] = SV_PB_BYTES,   [OTLP_TYPE_STRING] = SV_PB_BYTES,
        [OTLP_TYPE_HEX] = SV_PB_BYTES,       [OTLP_TYPE_BASE64] = SV_PB_BYTES,
        [OTLP_TYPE_BOOL] = SV_PB_VARINT,     [OTLP_TYPE_ENUM] = SV_PB_VARINT,
        [OTLP_TYPE_UINT32] = SV_PB_VARINT,   [OTLP_TYPE_INT64] = SV_PB_VARINT,
        [OTLP_TYPE_FIXED64] = SV_PB_FIXED64, [OTLP_TYPE_FIXED32] = SV_PB_FIXED32,
        [OTLP_TYPE_DOUBLE] = SV_PB_FIXED64,
    };
    return types[f->type];
}

/* What OTLP has and an event has no place for: arguments with these keys, when it is read and when
 * it is written. */
#define OTLP_KEYS(KEY)                                 \
    KEY(trace_id, "trace_id")                          \
    KEY(span_id, "span_id")                            \
    KEY(parent_id, "parent_span_id")                   \
    KEY(kind, "otel.kind")                             \
    KEY(status, "otel.status")                         \
    KEY(status_message, "otel.status_message")         \
    KEY(trace_state, "otel.trace_state")               \
    KEY(scope, "otel.scope")                           \
    KEY(scope_version, "otel.scope_version")           \
    KEY(dropped_attributes, "otel.dropped_attributes") \
    KEY(dropped_events, "otel.dropped_events")         \
    KEY(dropped_links, "otel.dropped_links")           \
    KEY(name, "otel.name")                             \
    KEY(links, "otel.links")                           \
    KEY(flags, "otel.flags")                           \
    KEY(attributes, "attributes")

struct otlp_keys {
#define OTLP_KEY(name, word) sv_str name;
    OTLP_KEYS(OTLP_KEY)
#undef OTLP_KEY
};
