/* Requests of OTLP into a file or to a collector: see export_otlp.h.
 *
 * A file ending in .json or .jsonl has a JSON document per line; others have the requests as
 * protobuf one after the other, which is one request for who reads it. A collector that has no
 * time, or is not there (yet), is asked again, later and later, until the time for it is over:
 * spans may arrive twice then, with the same ids. */
#include "cli/console.h"
#include "cmd/export_otlp.h"
#include "core/base/hex.h"
#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/base/now.h"
#include "core/base/printable.h"
#include "core/base/wire.h"
#include "core/files/out_name.h"
#include "core/files/output.h"
#include "formats/otlp/json.h"
#include "net/http_post.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { ANSWER_MS = 30000, FIRST_WAIT_MS = 100, LONGEST_WAIT_MS = 5000, HEADERS_MAX = 4096 };

struct otlp_out {
    const struct sv_export_options *o;
    struct sv_output *file; /* NULL: to a collector */
    bool is_json;
    struct sv_buf text;
    struct sv_http_target target;
    char headers[HEADERS_MAX];
    uint64_t rejected, requests, repeated;
    char why[200]; /* of the first that was rejected */
};

bool sv_is_url(const char *output)
{
    return output && strstr(output, "://") != NULL;
}

static bool ends_with(const char *text, size_t len, const char *end)
{
    size_t n = strlen(end);
    return len >= n && memcmp(text + len - n, end, n) == 0;
}

/* ---- headers, as OpenTelemetry's own exporters take them ---- */

/* NAME=VALUE,…, values percent-encoded, as lines of HTTP. False: it would not be one. */
static bool make_headers(const char *text, struct sv_buf *out)
{
    while (*text) {
        size_t n = strcspn(text, ","), name = strcspn(text, "=,");
        if (name == 0 || name >= n)
            return false;
        sv_buf_add(out, text, name);
        sv_buf_str(out, ": ");
        for (size_t i = name + 1; i < n; i++) {
            bool is_code = text[i] == '%' && i + 2 < n && sv_hex_digit(text[i + 1]) >= 0 &&
                           sv_hex_digit(text[i + 2]) >= 0;
            int code = is_code ? sv_hex_digit(text[i + 1]) * 16 + sv_hex_digit(text[i + 2]) : 0;
            char c = is_code ? (char)code : text[i];
            if ((unsigned char)c < ' ' || c == 0x7f)
                return false;
            sv_buf_byte(out, (uint8_t)c);
            i += is_code ? 2 : 0;
        }
        sv_buf_str(out, "\r\n");
        text += n + (text[n] == ',');
    }
    return !out->failed;
}

static int read_headers(struct otlp_out *out, struct sv_err *err)
{
    const char *text = getenv("OTEL_EXPORTER_OTLP_HEADERS");
    struct sv_buf lines;
    sv_buf_init(&lines, HEADERS_MAX - 1);
    bool ok = !text || make_headers(text, &lines);
    if (ok)
        snprintf(out->headers, sizeof out->headers, "%s", sv_buf_cstr(&lines));
    sv_buf_fini(&lines);
    return ok ? 0
              : sv_error(err, SV_EUSAGE,
                         "OTEL_EXPORTER_OTLP_HEADERS: expected NAME=VALUE,NAME=VALUE");
}

/* ---- open and close ---- */

int otlp_check(const struct sv_export_options *o, struct sv_err *err)
{
    struct sv_http_target target;
    bool is_https = strncasecmp(o->output, "https://", 8) == 0; /* refused with its own message */
    if (!is_https && sv_refuse_url("output", o->output, "http", err) < 0)
        return err->code;
    return sv_is_url(o->output) ? sv_http_target_read(&target, o->output, "4318", "/v1/traces", err)
                                : 0;
}

int otlp_out_open(const struct sv_export_options *o, struct otlp_out **result, struct sv_err *err)
{
    struct otlp_out *out = *result = sv_alloc(sizeof *out);
    enum sv_compression compression = SV_PLAIN;
    out->o = o;
    sv_buf_init(&out->text, (size_t)1 << 28);
    if (sv_is_url(o->output)) {
        int code = sv_http_target_read(&out->target, o->output, "4318", "/v1/traces", err);
        return code < 0 ? code : read_headers(out, err);
    }
    size_t len = sv_name_unpacked(o->output, &compression);
    out->is_json = ends_with(o->output, len, ".json") || ends_with(o->output, len, ".jsonl") ||
                   strcmp(o->output, "-") == 0;
    return sv_output_open(o->output, SV_OUTPUT_RENAME, compression, &out->file, err);
}

int otlp_out_close(struct otlp_out *out, bool failed, uint64_t *rejected, struct sv_err *err)
{
    int code = out->file ? sv_output_end(out->file, failed, err) : 0;
    *rejected = out->rejected;
    if (out->rejected)
        sv_console_note("%s: %llu spans were rejected: %s", out->o->output,
                        (unsigned long long)out->rejected, out->why);
    if (out->repeated)
        sv_console_note("%s: %llu requests had to be sent again", out->o->output,
                        (unsigned long long)out->repeated);
    sv_buf_fini(&out->text);
    free(out);
    return code;
}

/* ---- a request ---- */

static int put_file(struct otlp_out *out, const struct sv_buf *request, struct sv_err *err)
{
    struct sv_json j;
    if (!out->is_json) {
        sv_output_write(out->file, request->data, request->len);
        return sv_output_failure(out->file, err);
    }
    sv_json_init(&j, &out->text);
    sv_otlp_to_json(&sv_otlp_request, request->data, request->len, &j);
    sv_buf_byte(&out->text, '\n');
    if (out->text.failed)
        return sv_error(err, SV_ELIMIT, "a request is too large for JSON");
    sv_output_pass_on(out->file, &out->text);
    return sv_output_failure(out->file, err);
}

static struct sv_pb wire_of(const struct sv_buf *b)
{
    return b->len ? sv_pb_at(b->data, b->len) : (struct sv_pb){0};
}

static void keep_words(char *to, size_t size, const void *text, size_t len)
{
    struct sv_buf b;
    sv_buf_init(&b, 4096);
    sv_buf_printable(&b, text, len < 150 ? len : 150);
    snprintf(to, size, "%s", sv_buf_cstr(&b));
    sv_buf_fini(&b);
}

static void see_partial(struct otlp_out *out, const struct sv_buf *body)
{
    struct sv_pb w = wire_of(body);
    struct sv_pb_field f, p;
    while (sv_pb_next(&w, &f)) {
        if (f.id != OTLP_RESPONSE_PARTIAL || f.type != SV_PB_BYTES)
            continue;
        for (struct sv_pb part = sv_pb_sub(&f); sv_pb_next(&part, &p);) {
            if (p.id == OTLP_PARTIAL_REJECTED && p.type == SV_PB_VARINT)
                out->rejected += p.u;
            else if (p.id == OTLP_PARTIAL_MESSAGE && p.type == SV_PB_BYTES && !out->why[0])
                keep_words(out->why, sizeof out->why, p.bytes, (size_t)p.u);
        }
    }
}

/* What a collector says of a refusal: google.rpc.Status, or any text. */
static void reason(const struct sv_http_reply *reply, char *to, size_t size)
{
    struct sv_pb w = wire_of(&reply->body);
    struct sv_pb_field f, message = {0};
    while (sv_pb_next(&w, &f))
        if (f.id == RPC_STATUS_MESSAGE && f.type == SV_PB_BYTES)
            message = f;
    if (!w.bad && message.bytes)
        keep_words(to, size, message.bytes, (size_t)message.u);
    else
        keep_words(to, size, reply->body.data, reply->body.len);
}

static bool is_temporary(unsigned status)
{
    return status == 429 || status == 502 || status == 503 || status == 504;
}

static void wait_ms(int64_t ms)
{
    struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

/* One attempt. 0: taken; SV_EAGAIN: it may be later. */
static int send_once(struct otlp_out *out, const struct sv_buf *request, unsigned *retry_after_s,
                     struct sv_err *err)
{
    struct sv_http_reply reply;
    char why[200];
    int code = sv_http_post(&out->target, "application/x-protobuf", out->headers, request->data,
                            request->len, ANSWER_MS, &reply, err);
    *retry_after_s = reply.retry_after_s;
    if (code >= 0 && reply.status == 200) {
        see_partial(out, &reply.body);
    } else if (code >= 0) {
        reason(&reply, why, sizeof why);
        code = sv_err_set(err, is_temporary(reply.status) ? SV_EAGAIN : SV_EIO, SV_NO_POS,
                          "the collector answers %u: %s", reply.status, why);
    }
    sv_buf_fini(&reply.body);
    return code;
}

static int put_collector(struct otlp_out *out, const struct sv_buf *request, struct sv_err *err)
{
    int64_t limit = sv_now_ms() + (int64_t)out->o->retry_s * 1000, wait = FIRST_WAIT_MS;
    out->requests++;
    for (unsigned tries = 0;; tries++) {
        struct sv_err why = {0};
        unsigned asked_s;
        int code = send_once(out, request, &asked_s, &why);
        if (code >= 0)
            return 0;
        int64_t pause = (int64_t)asked_s * 1000 > wait ? (int64_t)asked_s * 1000 : wait;
        if (code != SV_EAGAIN || sv_now_ms() + pause > limit)
            return sv_error(
                err, SV_EIO,
                "%s: %s%s; what was sent before is there, and can be sent again with the same ids",
                out->o->output, why.msg,
                code == SV_EAGAIN ? ", until the time for repeating (--retry) was over" : "");
        out->repeated += tries == 0;
        wait_ms(pause);
        wait = wait * 2 < LONGEST_WAIT_MS ? wait * 2 : LONGEST_WAIT_MS;
    }
}

int otlp_out_put(struct otlp_out *out, const struct sv_buf *request, struct sv_err *err)
{
    if (request->failed)
        return sv_error(err, SV_ELIMIT, "a span is too large for a request");
    return out->file ? put_file(out, request, err) : put_collector(out, request, err);
}
