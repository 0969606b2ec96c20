/* JSON writing: the only code that prints JSON, and it always escapes.
 *
 * Appends to a struct sv_buf; commas and nesting are kept by the writer, so calls read like the
 * document:
 *
 *     sv_json_begin(&j, '{'); sv_json_key(&j, "ts", 2); sv_json_us3(&j, ts_ns); sv_json_end(&j);
 *
 * Text is always valid UTF-8 JSON: control characters, quotes and backslashes are escaped, invalid
 * bytes become \\xNN (sv_buf_utf8()). */
#pragma once

#include "core/base/buf.h"

#define SV_JSON_DEPTH_MAX 256 /* deeper containers are written as null */

struct sv_json {
    struct sv_buf *out;
    uint32_t depth;
    bool need_comma;
    bool after_key;
    bool need_line;
    uint32_t too_deep; /* containers opened past the limit */
    char close[SV_JSON_DEPTH_MAX];
};

void sv_json_init(struct sv_json *j, struct sv_buf *out);
void sv_json_begin(struct sv_json *j, char bracket); /* '{' or '[' */
void sv_json_end(struct sv_json *j);
/* The next member, element or closing bracket begins a new line. */
void sv_json_line(struct sv_json *j);
void sv_json_key(struct sv_json *j, const char *key, size_t len);
void sv_json_text(struct sv_json *j, const char *s, size_t len);
void sv_json_cstr(struct sv_json *j, const char *s); /* ends in a NUL */
void sv_json_i64(struct sv_json *j, int64_t v);
void sv_json_u64(struct sv_json *j, uint64_t v);
/* As strings, for readers whose numbers are doubles. */
void sv_json_i64_text(struct sv_json *j, int64_t v);
void sv_json_u64_text(struct sv_json *j, uint64_t v);
/* NaN and infinities as the strings "NaN", "Infinity", "-Infinity". */
void sv_json_double(struct sv_json *j, double d);
/* Nanoseconds as microseconds, exactly three decimals. */
void sv_json_us3(struct sv_json *j, int64_t ns);
void sv_json_hex(struct sv_json *j, uint64_t v); /* "0x1f", a string */
void sv_json_bool(struct sv_json *j, bool v);
void sv_json_null(struct sv_json *j);
/* A value that is valid JSON already, or (members) a list `"a":1,"b":2` that was made by these
 * functions. */
void sv_json_raw(struct sv_json *j, const char *json, size_t len);
void sv_json_members(struct sv_json *j, const char *json, size_t len);

/* A key that is a literal and needs no escapes: the fast way. `quoted` is the key with its quotes
 * and the colon. */
void sv_json_quoted_key(struct sv_json *j, const char *quoted, size_t len);
#define sv_json_lit(j, key) sv_json_quoted_key((j), "\"" key "\":", sizeof(key) + 2)
/* A member with such a key, its value by one of the functions above: sv_json_put(j, "n", u64, n) */
#define sv_json_put(j, key, type, ...) (sv_json_lit(j, key), sv_json_##type((j), __VA_ARGS__))

/* The value as sv_json_double() writes it, appended to b. */
void sv_json_put_double(struct sv_buf *b, double d);
/* The bytes as a JSON string with quotes, appended to b. */
void sv_json_escape(struct sv_buf *b, const char *s, size_t len);
