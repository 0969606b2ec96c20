/* The reader of OTLP traces, inside: what its files share. See read.c for the order of calls.
 *
 *   read.c            units of the input (requests) as protobuf, and the way through them to the
 *                     spans
 *   read_resource.c   resources as processes
 *   read_span.c       spans as slices, their events as instants
 *   read_flow.c       parents and links across processes as flows
 *   read_value.c      attributes as arguments
 *   read_llm.c        spans of LLM engines in the words of core/serving/engine_words.h */
#pragma once

#include "core/base/buf.h"
#include "core/base/map.h"
#include "core/base/wire.h"
#include "formats/formats.h"
#include "formats/otlp/schema.h"

enum otlp_form {
    OTLP_FORM_UNKNOWN,
    OTLP_FORM_PROTOBUF, /* requests one after the other, as they are */
    OTLP_FORM_FRAMED,   /* each with its length before it: the collector's file exporter */
    OTLP_FORM_JSON      /* one after the other, mostly one a line */
};

struct otlp_text {
    const uint8_t *bytes;
    size_t len;
};

/* What is known of a span for flows, by the number of the flow that leaves it. */
struct otlp_seen {
    uint64_t flow;
    int64_t ts_ns, end_ns;
    sv_track track;
    bool has_begun; /* the flow */
};
struct otlp_point { /* a flow's beginning on a slice that has been given already */
    uint64_t flow;
    int64_t ts_ns;
    sv_track track;
};
struct otlp_flows {
    struct sv_map seen_at; /* flow → place in `seen`, a ring */
    struct sv_map waiting; /* flows that have ends, but no begin yet → how many */
    struct otlp_seen *seen;
    size_t n_seen, cap_seen;
    struct otlp_point *points; /* to be given */
    size_t n_points, at_point, cap_points;
    uint64_t n_unmet;
};

/* Heads of resources and scopes that are in the metadata, by a hash of their bytes. */
struct otlp_kept {
    struct sv_map seen;
    uint32_t n;
};
/* Their keys, with a number after them. */
#define OTLP_META_RESOURCE "otel.resource."
#define OTLP_META_SCOPE    "otel.scope."
/* Attributes that `stave export` writes: of a batch its number, of warm-up 1. */
#define OTLP_STAVE_BATCH  "stave.batch.id"
#define OTLP_STAVE_WARMUP "stave.warmup"

struct otlp_span {
    const uint8_t *trace_id, *id, *parent_id; /* NULL: none, or not valid */
    struct otlp_text name, state, message;
    uint64_t start, end;
    uint32_t kind, status, flags, dropped_attributes, dropped_events, dropped_links;
    int64_t tid; /* -1: none */
    struct otlp_text thread_name;
    const char *wrong; /* why it cannot be an event; NULL: it can */
    bool is_llm, is_batch, is_warmup, has_events, has_links;
    int64_t batch;
};

struct otlp_reader {
    struct sv_source source;
    struct sv_input *in;
    uint32_t space;
    enum otlp_form form;
    bool is_at_end, has_found;
    bool is_cut;        /* the input ends in the unit */
    struct sv_buf json; /* a JSON document as protobuf */
    /* The unit that is being read, in the window or in `json`. */
    const uint8_t *unit;
    size_t unit_len, unit_bytes; /* unit_bytes: of the input, to be left behind after it */
    int64_t unit_pos;
    struct sv_pb request, resource_spans, scope_spans, span_events;
    bool in_events;
    struct otlp_text scope, scope_version;
    sv_track process; /* or what is in its place */
    int64_t pid;      /* -1: not known */
    uint32_t resource_space;
    /* of the span whose events are being given */
    sv_track track;
    int64_t span_ns;
    const uint8_t *span_id;
    /* Hosts in the order in which they came: a space of pids each. */
    struct sv_map hosts;
    struct otlp_kept resources, scopes;
    uint32_t n_hosts;
    struct otlp_flows flows;
    struct otlp_keys key;
    sv_str cat, spans;
    struct sv_buf text;
};

/* Byte position of a place in the unit; of a JSON document that of its begin. */
int64_t otlp_pos(const struct otlp_reader *r, const uint8_t *at);
void otlp_damage(struct otlp_reader *r, const uint8_t *at, const char *what, const char *detail);
/* `bytes` is its place, also where it is a number, for which sv_pb_next() does not set it. */
void otlp_unknown(struct otlp_reader *r, const struct sv_pb_field *f);

/* ---- read_value.c ---- */

/* The key and the value of an attribute; false: it is damaged. */
bool otlp_key_value(struct sv_pb w, struct otlp_text *key, struct sv_pb *value);
bool otlp_value_text(struct sv_pb value, struct otlp_text *out);
bool otlp_value_int(struct sv_pb value, int64_t *out); /* also a text of digits */
bool otlp_value_double(struct sv_pb value, double *out);
/* Adds an attribute to the arguments of the event that is being made. */
void otlp_put_attribute(struct otlp_reader *r, struct sv_batch *b, struct sv_pb attribute);
void otlp_put_text(struct sv_batch *b, sv_str key, struct otlp_text t);
void otlp_put_hex(struct sv_batch *b, sv_str key, const uint8_t *bytes, size_t n);
bool otlp_is(struct otlp_text t, const char *word);
sv_str otlp_word(struct otlp_reader *r, struct otlp_text t); /* in the dictionary */

/* ---- read_resource.c ---- */
void otlp_resource(struct otlp_reader *r, struct sv_pb resource_spans);
void otlp_scope(struct otlp_reader *r, struct sv_pb scope_spans);

/* ---- read_span.c ---- */

/* Reads what is needed before the arguments are made. False: it is damaged. */
bool otlp_span_read(struct sv_pb w, struct otlp_span *s);
/* The same without attributes and status: whether it can be an event. */
void otlp_span_outline(struct sv_pb w, struct otlp_span *s);
void otlp_span_put(struct otlp_reader *r, struct sv_batch *b, struct sv_pb w,
                   const struct otlp_span *s);
void otlp_event_put(struct otlp_reader *r, struct sv_batch *b, struct sv_pb w);

/* ---- read_flow.c ---- */

/* The arguments of a span for its parent, its links and those that follow from it. */
void otlp_flow_args(struct otlp_reader *r, struct sv_batch *b, struct sv_pb w,
                    const struct otlp_span *s, sv_track track, int64_t end_ns);
bool otlp_flow_point(struct otlp_reader *r, struct sv_batch *b); /* false: none is left */
void otlp_flows_fini(struct otlp_flows *f);

/* ---- read_llm.c ---- */

/* Does an attribute of this name make its span a request of an engine? */
bool otlp_llm_marks(struct otlp_text key);
/* The request's arguments, from the attributes of the span. */
void otlp_llm_args(struct otlp_reader *r, struct sv_batch *b, struct sv_pb w,
                   const struct otlp_span *s);
