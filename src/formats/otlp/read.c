/* OTLP traces from files: ExportTraceServiceRequest (TracesData) as protobuf, as JSON, as JSON
 * lines, and with a length before each message, as the OpenTelemetry Collector's file exporter
 * writes them.
 *
 * Opened through the table of formats. The input is taken unit by unit: a request, or of plain
 * protobuf a top-level field of it, which is the same. JSON becomes protobuf first (json.h). From a
 * unit next() goes down to the resource's spans, the scope's spans and each span, and gives the
 * span's slice, its events and the flow points that it caused. Texts of events point into the unit,
 * so a new one is only taken for an empty batch. */
#include "core/base/json_scan.h"
#include "core/base/mem.h"
#include "core/stream/batch.h"
#include "formats/otlp/json.h"
#include "formats/otlp/reader.h"

#include <endian.h>
#include <inttypes.h>
#include <stdlib.h>

enum { TAG_MAX = 16, HEAD_BYTES = 4096 };
#define UNIT_MAX ((size_t)512 << 20) /* of a JSON document as protobuf */

/* ---- findings ---- */

int64_t otlp_pos(const struct otlp_reader *r, const uint8_t *at)
{
    bool is_json = r->form == OTLP_FORM_JSON;
    return r->unit_pos + (is_json || !at || at < r->unit ? 0 : at - r->unit);
}

void otlp_damage(struct otlp_reader *r, const uint8_t *at, const char *what, const char *detail)
{
    sv_report_add(r->source.report, SV_DAMAGE, what, 1, otlp_pos(r, at), detail ? "%s" : NULL,
                  detail);
}

void otlp_unknown(struct otlp_reader *r, const struct sv_pb_field *f)
{
    sv_report_add(r->source.report, SV_SKIPPED, "unknown field of OTLP", 1, otlp_pos(r, f->bytes),
                  "number %" PRIu32, f->id);
}

/* ---- units ---- */

static void set_unit(struct otlp_reader *r, const uint8_t *unit, size_t len, size_t bytes,
                     size_t header)
{
    r->unit = unit;
    r->unit_len = len;
    r->unit_bytes = bytes;
    r->unit_pos = (int64_t)(r->in->pos + header);
    r->request = len ? sv_pb_at(unit, len) : (struct sv_pb){0}; /* `{}` has no bytes at all */
}

static int end_input(struct otlp_reader *r)
{
    r->is_at_end = true;
    sv_input_report(r->in, r->source.report);
    if (r->flows.n_unmet)
        sv_report_add(r->source.report, SV_NOTE,
                      "span whose parent or linked span is not in the file", r->flows.n_unmet,
                      SV_NO_POS, NULL);
    return 0;
}

static int cut_off(struct otlp_reader *r, size_t header, size_t missing)
{
    sv_report_add(r->source.report, SV_DAMAGE, "request that breaks off", 1, (int64_t)r->in->pos,
                  "%zu bytes are missing", missing);
    size_t have = r->in->len > header ? r->in->len - header : 0;
    set_unit(r, r->in->data + (have ? header : 0), have, r->in->len, header);
    r->is_cut = true;
    return 1;
}

/* Makes the window hold `header` + `len` bytes, and the unit those after the header. */
static int take_bytes(struct otlp_reader *r, size_t header, size_t len, struct sv_err *err)
{
    int code = sv_input_need(r->in, header + len, err);
    if (code < 0)
        return code;
    if (code == 0)
        return cut_off(r, header, header + len - r->in->len);
    set_unit(r, r->in->data + header, len, header + len, header);
    return 1;
}

/* A top-level field with its tag is a request with one element. */
static int next_protobuf(struct otlp_reader *r, struct sv_err *err)
{
    uint64_t tag, len = 0;
    int code = sv_input_need(r->in, TAG_MAX, err);
    if (code < 0 || r->in->len == 0)
        return code < 0 ? code : end_input(r);
    struct sv_pb w = sv_pb_at(r->in->data, r->in->len);
    bool ok = sv_pb_varint(&w, &tag) && tag >> 3 != 0;
    if (ok && (tag & 7) == SV_PB_BYTES)
        ok = sv_pb_varint(&w, &len) && len < SIZE_MAX / 4;
    else if (ok && (tag & 7) == SV_PB_VARINT)
        ok = sv_pb_varint(&w, &len) && (len = 0, true);
    else if (ok)
        ok = (tag & 7) == SV_PB_FIXED64 || (tag & 7) == SV_PB_FIXED32;
    if (!ok) {
        sv_report_add(r->source.report, SV_DAMAGE, "bytes that are not OTLP", 1,
                      (int64_t)r->in->pos, "nothing after them is read");
        return end_input(r);
    }
    if ((tag & 7) == SV_PB_FIXED64 || (tag & 7) == SV_PB_FIXED32)
        len = (tag & 7) == SV_PB_FIXED64 ? 8 : 4;
    size_t header = (size_t)(w.p - r->in->data);
    code = take_bytes(r, header, (size_t)len, err);
    if (code <= 0)
        return code;
    if (tag == (OTLP_RESOURCE_SPANS << 3 | SV_PB_BYTES)) {
        r->resource_spans = r->request;
        return 2;
    }
    otlp_unknown(r, &(struct sv_pb_field){.id = (uint32_t)(tag >> 3), .bytes = r->unit});
    r->request = (struct sv_pb){0};
    return 1;
}

static int next_framed(struct otlp_reader *r, struct sv_err *err)
{
    uint32_t len;
    int code = sv_input_need(r->in, sizeof len, err);
    if (code < 0 || r->in->len == 0)
        return code < 0 ? code : end_input(r);
    if (code == 0)
        return cut_off(r, r->in->len, sizeof len - r->in->len);
    memcpy(&len, r->in->data, sizeof len);
    return take_bytes(r, sizeof len, be32toh(len), err);
}

/* ---- JSON ---- */

/* The end of the document at the window's first byte; 0 at the end of the input: it breaks off. */
static int whole_document(struct otlp_reader *r, size_t *len, struct sv_err *err)
{
    struct sv_json_skip skip = {0};
    size_t done = 0;
    for (;;) {
        const uint8_t *end = r->in->data + r->in->len;
        const uint8_t *q = sv_json_skip(&skip, sv_json_scan_best(), r->in->data + done, end);
        if (q) {
            *len = (size_t)(q - r->in->data);
            return 1;
        }
        done = r->in->len;
        if (r->in->eof)
            return 0;
        int code = sv_input_fill(r->in, done + 1, err);
        if (code < 0)
            return code;
    }
}

/* Past the next line's end: what is damaged may be over there. */
static int skip_line(struct otlp_reader *r, struct sv_err *err)
{
    for (;;) {
        const uint8_t *line = memchr(r->in->data, '\n', r->in->len);
        if (line) {
            sv_input_skip(r->in, (size_t)(line + 1 - r->in->data));
            return 1;
        }
        sv_input_skip(r->in, r->in->len);
        if (r->in->eof)
            return 1;
        int code = sv_input_fill(r->in, 1, err);
        if (code < 0)
            return code;
    }
}

static int bad_document(struct otlp_reader *r, const struct sv_otlp_json *how, struct sv_err *err)
{
    sv_report_add(r->source.report, SV_DAMAGE, "JSON document that cannot be read", 1,
                  (int64_t)r->in->pos + (how->at ? how->at - r->in->data : 0), "%s", how->why);
    return skip_line(r, err);
}

static void note_unknown(struct otlp_reader *r, const struct sv_otlp_json *how)
{
    if (how->n_unknown == 0)
        return;
    int len = how->unknown_len < 60 ? (int)how->unknown_len : 60;
    sv_buf_clear(&r->text);
    sv_buf_escaped(&r->text, (const char *)how->unknown, (size_t)len);
    sv_report_add(r->source.report, SV_SKIPPED, "unknown key of OTLP", how->n_unknown,
                  (int64_t)r->in->pos + (how->unknown - r->in->data), "%s", sv_buf_cstr(&r->text));
}

static const uint8_t *read_document(struct otlp_reader *r, size_t len, struct sv_otlp_json *how)
{
    *how = (struct sv_otlp_json){0};
    sv_buf_clear(&r->json);
    return sv_otlp_from_json(&sv_otlp_request, r->in->data, r->in->data + len, &r->json, how);
}

/* The next line's end, in the window. NULL: there is none up to the end of the input. *code: an
 * error. */
static const uint8_t *find_line(struct otlp_reader *r, int *code, struct sv_err *err)
{
    size_t done = 0;
    *code = 0;
    for (;;) {
        const uint8_t *line = memchr(r->in->data + done, '\n', r->in->len - done);
        done = r->in->len;
        if (line || r->in->eof)
            return line;
        *code = sv_input_fill(r->in, done + 1, err);
        if (*code < 0)
            return NULL;
    }
}

/* Most files have a document per line, whose end is found at once. The byte after it; NULL: it is
 * not so here, or *code is an error. */
static const uint8_t *read_line(struct otlp_reader *r, struct sv_otlp_json *how, int *code,
                                struct sv_err *err)
{
    const uint8_t *line = find_line(r, code, err), *last = line;
    while (last && last > r->in->data && sv_json_is_blank(last[-1]))
        last--;
    return last && last > r->in->data && last[-1] == '}'
               ? read_document(r, (size_t)(line - r->in->data), how)
               : NULL;
}

static int next_json(struct otlp_reader *r, struct sv_err *err)
{
    struct sv_otlp_json how = {0};
    size_t len = 0;
    int code = sv_input_need(r->in, 1, err);
    if (code < 0)
        return code;
    const uint8_t *end = r->in->data + r->in->len;
    const uint8_t *p = r->in->len ? sv_json_solid(r->in->data, end) : end;
    sv_input_skip(r->in, (size_t)(p - r->in->data));
    if (r->in->len == 0)
        return r->in->eof ? end_input(r) : 1;
    if (*r->in->data != '{') {
        how = (struct sv_otlp_json){.at = r->in->data, .why = "a JSON object is expected"};
        return bad_document(r, &how, err);
    }
    p = read_line(r, &how, &code, err);
    if (!p) {
        code = code < 0 ? code : whole_document(r, &len, err);
        if (code < 0)
            return code;
        len = code ? len : r->in->len;
        p = read_document(r, len, &how);
        if (!p)
            return bad_document(r, &how, err);
    }
    len = (size_t)(p - r->in->data);
    note_unknown(r, &how);
    set_unit(r, r->json.data, r->json.len, len, 0);
    return 1;
}

/* ---- forms ---- */

static bool is_framed(const uint8_t *p, size_t n)
{
    uint32_t len;
    if (n < 6)
        return false;
    memcpy(&len, p, sizeof len);
    return p[0] == 0 && be32toh(len) > 2 && p[4] == (OTLP_RESOURCE_SPANS << 3 | SV_PB_BYTES);
}

/* Is there a span with valid ids on the way down? The head may end anywhere, so lengths past it are
 * cut. */
static bool has_span(const uint8_t *p, const uint8_t *end, unsigned level)
{
    static const uint8_t ids[] = {OTLP_RESOURCE_SPANS, OTLP_RS_SCOPE_SPANS, OTLP_SS_SPANS};
    for (unsigned fields = 0; p < end && fields < 64; fields++) {
        struct sv_pb w = sv_pb_at(p, (size_t)(end - p));
        uint64_t tag, len;
        if (!sv_pb_varint(&w, &tag) || (tag & 7) != SV_PB_BYTES || !sv_pb_varint(&w, &len))
            return false;
        size_t have = (size_t)(end - w.p), n = len < have ? (size_t)len : have;
        if (level == sizeof ids)
            return tag == (OTLP_SPAN_TRACE_ID << 3 | SV_PB_BYTES) && len == OTLP_TRACE_ID_BYTES &&
                   have >= len + 2 && w.p[len] == (OTLP_SPAN_ID << 3 | SV_PB_BYTES) &&
                   w.p[len + 1] == OTLP_SPAN_ID_BYTES;
        if (tag >> 3 == ids[level])
            return has_span(w.p, w.p + n, level + 1);
        if (tag >> 3 > 3)
            return false;
        p = w.p + n;
    }
    return false;
}

/* An object of JSON, whose first key begins with a printable character. A protobuf request begins
 * with a line feed (the tag of its first field), and a bracket may follow (its length), but no such
 * key. */
static bool is_json(const uint8_t *p, size_t n)
{
    size_t at = n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    while (at < n && sv_json_is_blank(p[at]))
        at++;
    if (at == n || p[at++] != '{')
        return false;
    while (at < n && sv_json_is_blank(p[at]))
        at++;
    return at == n || p[at] == '}' || (p[at] == '"' && (at + 1 == n || p[at + 1] >= ' '));
}

static int find_form(struct otlp_reader *r, struct sv_err *err)
{
    int code = sv_input_need(r->in, HEAD_BYTES, err);
    if (code < 0)
        return code;
    const uint8_t *p = r->in->data;
    size_t n = r->in->len < HEAD_BYTES ? r->in->len : HEAD_BYTES;
    if (is_framed(p, n))
        r->form = OTLP_FORM_FRAMED;
    else
        r->form = !has_span(p, p + n, 0) && is_json(p, n) ? OTLP_FORM_JSON : OTLP_FORM_PROTOBUF;
    if (r->form == OTLP_FORM_JSON && n >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0)
        sv_input_skip(r->in, 3);
    return 0;
}

/* 1: there is a unit; 2: it is the content of resource spans; 0: the end. */
static int next_unit(struct otlp_reader *r, struct sv_err *err)
{
    sv_input_skip(r->in, r->unit_bytes);
    r->unit_bytes = 0;
    r->unit = NULL;
    r->request = (struct sv_pb){0};
    int code = r->form == OTLP_FORM_UNKNOWN ? find_form(r, err) : 0;
    if (code < 0)
        return code;
    switch (r->form) {
    case OTLP_FORM_JSON: return next_json(r, err);
    case OTLP_FORM_FRAMED: return next_framed(r, err);
    default: return next_protobuf(r, err);
    }
}

/* ---- down to the spans ---- */

static void one_span(struct otlp_reader *r, struct sv_batch *b, struct sv_pb w)
{
    struct otlp_span s;
    bool is_whole = otlp_span_read(w, &s);
    if (s.wrong)
        otlp_damage(r, w.p, "span that is not valid", s.wrong);
    else if (!is_whole)
        otlp_damage(r, w.p, "span that cannot be read", "it breaks off");
    if (s.start) /* the time of one without would be 1970 */
        otlp_span_put(r, b, w, &s);
}

/* The last element of an input that breaks off, as far as it is there. */
static bool cut_element(struct otlp_reader *r, struct sv_pb *w, uint32_t id, struct sv_pb *out)
{
    struct sv_pb at = {.p = w->p, .end = w->end};
    uint64_t tag, len;
    *w = (struct sv_pb){0};
    if (!r->is_cut || !sv_pb_varint(&at, &tag) || !sv_pb_varint(&at, &len) || at.p == at.end ||
        tag != ((uint64_t)id << 3 | SV_PB_BYTES))
        return false;
    *out = at;
    return true;
}

/* The next element of a list that is below `w`; what is neither that nor known to the caller is
 * unknown. */
static bool next_element(struct otlp_reader *r, struct sv_pb *w, uint32_t id,
                         const struct sv_otlp_message *m, struct sv_pb *out)
{
    struct sv_pb_field f = {.bytes = w->p};
    for (; sv_pb_next(w, &f); f.bytes = w->p) {
        if (f.id == id && f.type == SV_PB_BYTES) {
            *out = sv_pb_sub(&f);
            return true;
        }
        if (!sv_otlp_field(m, f.id))
            otlp_unknown(r, &f);
    }
    if (w->bad && !r->is_cut)
        otlp_damage(r, w->p, "message that cannot be read", NULL);
    return cut_element(r, w, id, out);
}

/* True: something was done; false: the unit is over. */
static bool step(struct otlp_reader *r, struct sv_batch *b)
{
    const struct sv_otlp_message *rs = sv_otlp_field(&sv_otlp_request, 1)->message;
    const struct sv_otlp_message *ss = sv_otlp_field(rs, OTLP_RS_SCOPE_SPANS)->message;
    const struct sv_otlp_message *span = sv_otlp_field(ss, OTLP_SS_SPANS)->message;
    struct sv_pb w;
    if (r->in_events) {
        r->in_events = next_element(r, &r->span_events, OTLP_SPAN_EVENTS, span, &w);
        if (r->in_events)
            otlp_event_put(r, b, w);
    } else if (otlp_flow_point(r, b)) {
        return true;
    } else if (r->scope_spans.p && next_element(r, &r->scope_spans, OTLP_SS_SPANS, ss, &w)) {
        one_span(r, b, w);
    } else if (r->resource_spans.p &&
               next_element(r, &r->resource_spans, OTLP_RS_SCOPE_SPANS, rs, &w)) {
        otlp_scope(r, w);
        r->scope_spans = w;
    } else if (r->request.p &&
               next_element(r, &r->request, OTLP_RESOURCE_SPANS, &sv_otlp_request, &w)) {
        otlp_resource(r, w);
        r->resource_spans = w;
    } else {
        return false;
    }
    return true;
}

static int next(struct sv_source *source, struct sv_batch *b, struct sv_err *err)
{
    struct otlp_reader *r = (struct otlp_reader *)(void *)source;
    while (b->n < SV_BATCH && !r->source.has_refused) {
        if (step(r, b))
            continue;
        if (b->n || r->is_at_end) /* its texts are in the unit */
            break;
        int code = next_unit(r, err);
        if (code < 0)
            return code;
        if (code == 2) {
            otlp_resource(r, r->resource_spans);
            r->request = (struct sv_pb){0};
        }
    }
    if (b->n == 0 && r->is_at_end && !r->has_found)
        return sv_error(err, SV_EFORMAT, "no spans were found");
    return sv_source_given(source, b->n, err);
}

/* ---- life ---- */

static void close_source(struct sv_source *source)
{
    struct otlp_reader *r = (struct otlp_reader *)(void *)source;
    otlp_flows_fini(&r->flows);
    sv_map_fini(&r->hosts);
    sv_map_fini(&r->resources.seen);
    sv_map_fini(&r->scopes.seen);
    sv_buf_fini(&r->json);
    sv_buf_fini(&r->text);
    free(r);
}

static void name_keys(struct otlp_reader *r, struct sv_dict *d)
{
#define NAME(name, word) r->key.name = sv_dict_cstr(d, word);
    OTLP_KEYS(NAME)
#undef NAME
    r->cat = sv_dict_cstr(d, "otlp");
    r->spans = sv_dict_cstr(d, "spans");
}

static int open_source(struct sv_input *in, const struct sv_read_options *options,
                       struct sv_dict *dict, struct sv_report *report, struct sv_source **out,
                       struct sv_err *err)
{
    (void)err;
    struct otlp_reader *r = sv_alloc(sizeof *r);
    r->source = (struct sv_source){
        .next = next,
        .close = close_source,
        .gives = SV_HAS_SLICES | SV_IN_NO_ORDER | SV_HAS_FLOW_POINTS,
        .dict = dict,
        .report = report,
    };
    r->in = in;
    r->space = options ? options->space : 0;
    r->pid = -1;
    sv_buf_init(&r->json, UNIT_MAX);
    sv_buf_init(&r->text, (size_t)1 << 26);
    name_keys(r, dict);
    dict->clocks.trace_clock = SV_CLOCK_REALTIME;
    *out = &r->source;
    return 0;
}

/* ---- recognition ---- */

static bool contains(const uint8_t *head, size_t n, const char *word)
{
    return memmem(head, n, word, strlen(word)) != NULL;
}

static int probe(const uint8_t *head, size_t n)
{
    if ((is_framed(head, n) && has_span(head + 4, head + n, 0)) || has_span(head, head + n, 0))
        return 100;
    if (!is_json(head, n))
        return 0;
    if (contains(head, n, "\"resourceSpans\""))
        return 97;
    return contains(head, n, "\"resourceMetrics\"") || contains(head, n, "\"resourceLogs\"") ? 60
                                                                                             : 0;
}

const struct sv_format sv_otlp_format = {
    .name = "otlp",
    .help = "OpenTelemetry's traces (OTLP)",
    .lacks = "metrics and logs: only traces are read",
    .files = "requests as protobuf, JSON or JSON lines, as SDKs send them and the Collector's file "
             "exporter writes them; docs/otlp.md",
    .times = "nanoseconds since 1970 (UTC)",
    .probe = probe,
    .open_source = open_source,
};
