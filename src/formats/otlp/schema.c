/* The table of OTLP's messages: see schema.h. */
#include "formats/otlp/schema.h"

#define COUNT(a)          (sizeof(a) / sizeof *(a))
#define NAME(word)        .name = word, .name_len = sizeof word - 1
#define MESSAGE(word, m)  NAME(word), .type = OTLP_TYPE_MESSAGE, .message = &(m)
#define MESSAGES(word, m) MESSAGE(word, m), .is_repeated = true
#define VALUE(word, t)    NAME(word), .type = OTLP_TYPE_##t

static const char *const kind_names[] = {"SPAN_KIND_UNSPECIFIED",
                                         "SPAN_KIND_INTERNAL",
                                         "SPAN_KIND_SERVER",
                                         "SPAN_KIND_CLIENT",
                                         "SPAN_KIND_PRODUCER",
                                         "SPAN_KIND_CONSUMER",
                                         NULL};
static const char *const status_names[] = {"STATUS_CODE_UNSET", "STATUS_CODE_OK",
                                           "STATUS_CODE_ERROR", NULL};

static const struct sv_otlp_message any_value, key_value;

static const struct sv_otlp_field array_fields[] = {
    {.id = OTLP_LIST_VALUES, MESSAGES("values", any_value)},
};
static const struct sv_otlp_message array_value = {array_fields, COUNT(array_fields)};

static const struct sv_otlp_field list_fields[] = {
    {.id = OTLP_LIST_VALUES, MESSAGES("values", key_value)},
};
static const struct sv_otlp_message key_value_list = {list_fields, COUNT(list_fields)};

static const struct sv_otlp_field any_fields[] = {
    {.id = OTLP_ANY_STRING, VALUE("stringValue", STRING)},
    {.id = OTLP_ANY_BOOL, VALUE("boolValue", BOOL)},
    {.id = OTLP_ANY_INT, VALUE("intValue", INT64)},
    {.id = OTLP_ANY_DOUBLE, VALUE("doubleValue", DOUBLE)},
    {.id = OTLP_ANY_ARRAY, MESSAGE("arrayValue", array_value)},
    {.id = OTLP_ANY_KVLIST, MESSAGE("kvlistValue", key_value_list)},
    {.id = OTLP_ANY_BYTES, VALUE("bytesValue", BASE64)},
};
static const struct sv_otlp_message any_value = {any_fields, COUNT(any_fields)};

static const struct sv_otlp_field key_value_fields[] = {
    {.id = OTLP_KV_KEY, VALUE("key", STRING)},
    {.id = OTLP_KV_VALUE, MESSAGE("value", any_value)},
};
static const struct sv_otlp_message key_value = {key_value_fields, COUNT(key_value_fields)};

static const struct sv_otlp_field resource_fields[] = {
    {.id = OTLP_RESOURCE_ATTRIBUTES, MESSAGES("attributes", key_value)},
    {.id = OTLP_RESOURCE_DROPPED, VALUE("droppedAttributesCount", UINT32)},
};
static const struct sv_otlp_message resource = {resource_fields, COUNT(resource_fields)};

static const struct sv_otlp_field scope_fields[] = {
    {.id = OTLP_SCOPE_NAME, VALUE("name", STRING)},
    {.id = OTLP_SCOPE_VERSION, VALUE("version", STRING)},
    {.id = OTLP_SCOPE_ATTRIBUTES, MESSAGES("attributes", key_value)},
    {.id = OTLP_SCOPE_DROPPED, VALUE("droppedAttributesCount", UINT32)},
};
static const struct sv_otlp_message scope = {scope_fields, COUNT(scope_fields)};

static const struct sv_otlp_field event_fields[] = {
    {.id = OTLP_EVENT_TIME, VALUE("timeUnixNano", FIXED64)},
    {.id = OTLP_EVENT_NAME, VALUE("name", STRING)},
    {.id = OTLP_EVENT_ATTRIBUTES, MESSAGES("attributes", key_value)},
    {.id = OTLP_EVENT_DROPPED, VALUE("droppedAttributesCount", UINT32)},
};
static const struct sv_otlp_message event = {event_fields, COUNT(event_fields)};

static const struct sv_otlp_field link_fields[] = {
    {.id = OTLP_LINK_TRACE_ID, VALUE("traceId", HEX)},
    {.id = OTLP_LINK_SPAN_ID, VALUE("spanId", HEX)},
    {.id = OTLP_LINK_TRACE_STATE, VALUE("traceState", STRING)},
    {.id = OTLP_LINK_ATTRIBUTES, MESSAGES("attributes", key_value)},
    {.id = OTLP_LINK_DROPPED, VALUE("droppedAttributesCount", UINT32)},
    {.id = OTLP_LINK_FLAGS, VALUE("flags", FIXED32)},
};
static const struct sv_otlp_message span_link = {link_fields, COUNT(link_fields)};

static const struct sv_otlp_field status_fields[] = {
    {.id = OTLP_STATUS_MESSAGE, VALUE("message", STRING)},
    {.id = OTLP_STATUS_CODE, VALUE("code", ENUM), .names = status_names},
};
static const struct sv_otlp_message status = {status_fields, COUNT(status_fields)};

static const struct sv_otlp_field span_fields[] = {
    {.id = OTLP_SPAN_TRACE_ID, VALUE("traceId", HEX)},
    {.id = OTLP_SPAN_ID, VALUE("spanId", HEX)},
    {.id = OTLP_SPAN_TRACE_STATE, VALUE("traceState", STRING)},
    {.id = OTLP_SPAN_PARENT_ID, VALUE("parentSpanId", HEX)},
    {.id = OTLP_SPAN_NAME, VALUE("name", STRING)},
    {.id = OTLP_SPAN_KIND, VALUE("kind", ENUM), .names = kind_names},
    {.id = OTLP_SPAN_START, VALUE("startTimeUnixNano", FIXED64)},
    {.id = OTLP_SPAN_END, VALUE("endTimeUnixNano", FIXED64)},
    {.id = OTLP_SPAN_ATTRIBUTES, MESSAGES("attributes", key_value)},
    {.id = OTLP_SPAN_DROPPED_ATTRIBUTES, VALUE("droppedAttributesCount", UINT32)},
    {.id = OTLP_SPAN_EVENTS, MESSAGES("events", event)},
    {.id = OTLP_SPAN_DROPPED_EVENTS, VALUE("droppedEventsCount", UINT32)},
    {.id = OTLP_SPAN_LINKS, MESSAGES("links", span_link)},
    {.id = OTLP_SPAN_DROPPED_LINKS, VALUE("droppedLinksCount", UINT32)},
    {.id = OTLP_SPAN_STATUS, MESSAGE("status", status)},
    {.id = OTLP_SPAN_FLAGS, VALUE("flags", FIXED32)},
};
static const struct sv_otlp_message span = {span_fields, COUNT(span_fields)};

static const struct sv_otlp_field scope_spans_fields[] = {
    {.id = OTLP_SS_SCOPE, MESSAGE("scope", scope)},
    {.id = OTLP_SS_SPANS, MESSAGES("spans", span)},
    {.id = OTLP_SS_SCHEMA_URL, VALUE("schemaUrl", STRING)},
};
static const struct sv_otlp_message scope_spans = {scope_spans_fields, COUNT(scope_spans_fields)};

static const struct sv_otlp_field resource_spans_fields[] = {
    {.id = OTLP_RS_RESOURCE, MESSAGE("resource", resource)},
    {.id = OTLP_RS_SCOPE_SPANS, MESSAGES("scopeSpans", scope_spans)},
    {.id = OTLP_RS_SCHEMA_URL, VALUE("schemaUrl", STRING)},
};
static const struct sv_otlp_message resource_spans = {resource_spans_fields,
                                                      COUNT(resource_spans_fields)};

static const struct sv_otlp_field request_fields[] = {
    {.id = OTLP_RESOURCE_SPANS, MESSAGES("resourceSpans", resource_spans)},
};
const struct sv_otlp_message sv_otlp_request = {request_fields, COUNT(request_fields)};

static const struct sv_otlp_field partial_fields[] = {
    {.id = OTLP_PARTIAL_REJECTED, VALUE("rejectedSpans", INT64)},
    {.id = OTLP_PARTIAL_MESSAGE, VALUE("errorMessage", STRING)},
};
static const struct sv_otlp_message partial = {partial_fields, COUNT(partial_fields)};

static const struct sv_otlp_field response_fields[] = {
    {.id = OTLP_RESPONSE_PARTIAL, MESSAGE("partialSuccess", partial)},
};
const struct sv_otlp_message sv_otlp_response = {response_fields, COUNT(response_fields)};

static const struct sv_otlp_field rpc_status_fields[] = {
    {.id = RPC_STATUS_CODE, VALUE("code", UINT32)},
    {.id = RPC_STATUS_MESSAGE, VALUE("message", STRING)},
};
const struct sv_otlp_message sv_rpc_status = {rpc_status_fields, COUNT(rpc_status_fields)};
