/* Canonical text, reading: the inverse of the writer, line by line.
 *
 * Opened through the table of formats. A line that cannot be understood is damage: it is counted
 * with its position and skipped, the next line starts afresh. Lines are bounded by the input
 * window. */
#include "core/base/buf.h"
#include "core/base/hex.h"
#include "core/base/map.h"
#include "core/base/mem.h"
#include "formats/formats.h"
#include "formats/text/text_words.h"
#include "formats/writers.h"

#include <stdlib.h>
#include <string.h>

struct text_source {
    struct sv_source source;
    struct sv_input *in;
    struct sv_map numbers; /* file's number → track */
    bool is_reported;      /* what the input has to say */
    struct sv_buf scratch; /* unescaped text */
    uint32_t space;
};

/* What is left of a line; `bad` is set once and stays. */
struct cursor {
    const char *p, *end;
    const char *bad; /* what was expected at p */
    bool is_wide;    /* what was found is a time, but fits no int64 */
};

static bool fail(struct cursor *c, const char *expected)
{
    if (!c->bad)
        c->bad = expected;
    return false;
}

static void skip_blanks(struct cursor *c)
{
    while (c->p < c->end && *c->p == ' ')
        c->p++;
}

static bool peek(const struct cursor *c, char ch)
{
    return c->p < c->end && *c->p == ch;
}

static bool take(struct cursor *c, char ch)
{
    if (!peek(c, ch))
        return false;
    c->p++;
    return true;
}

static struct sv_text take_word(struct cursor *c)
{
    const char *start = c->p;
    while (c->p < c->end && (sv_text_is_word((unsigned char)*c->p) || *c->p == '-' || *c->p == '+'))
        c->p++;
    return (struct sv_text){.bytes = start, .len = (uint32_t)(c->p - start)};
}

static bool take_escape(struct cursor *c, struct sv_buf *to)
{
    if (c->p >= c->end)
        return fail(c, "a character after the backslash");
    char ch = *c->p++;
    if (ch == 'x' && c->end - c->p >= 2 && sv_hex_lower(c->p[0]) >= 0 &&
        sv_hex_lower(c->p[1]) >= 0) {
        sv_buf_byte(to, (uint8_t)(sv_hex_lower(c->p[0]) * 16 + sv_hex_lower(c->p[1])));
        c->p += 2;
        return true;
    }
    static const char from[] = "ntr\\\"", into[] = "\n\t\r\\\"";
    const char *at = strchr(from, ch);
    if (!at || !ch)
        return fail(c, "one of \\n \\t \\r \\\\ \\\" \\xNN");
    sv_buf_byte(to, (uint8_t)into[at - from]);
    return true;
}

/* "…" into `to`, which is cleared first. */
static bool take_quoted(struct cursor *c, struct sv_buf *to)
{
    sv_buf_clear(to);
    if (!take(c, '"'))
        return fail(c, "a quoted text");
    while (c->p < c->end && *c->p != '"') {
        if (*c->p == '\\') {
            c->p++;
            if (!take_escape(c, to))
                return false;
        } else {
            sv_buf_byte(to, (uint8_t)*c->p++);
        }
    }
    return take(c, '"') || fail(c, "a closing quote");
}

static sv_str take_str(struct text_source *s, struct cursor *c)
{
    return take_quoted(c, &s->scratch)
               ? sv_dict_str(s->source.dict, (const char *)s->scratch.data, s->scratch.len)
               : 0;
}

static bool parse_u64(struct sv_text t, uint64_t *out)
{
    uint64_t v = 0;
    if (t.len > 2 && t.bytes[0] == '0' && t.bytes[1] == 'x') {
        if (t.len > 18)
            return false;
        for (uint32_t i = 2; i < t.len; i++) {
            int digit = sv_hex_lower(t.bytes[i]);
            if (digit < 0)
                return false;
            v = v << 4 | (uint64_t)digit;
        }
        *out = v;
        return true;
    }
    for (uint32_t i = 0; i < t.len; i++) {
        if (t.bytes[i] < '0' || t.bytes[i] > '9' || __builtin_mul_overflow(v, 10u, &v) ||
            __builtin_add_overflow(v, (uint64_t)(t.bytes[i] - '0'), &v))
            return false;
    }
    *out = v;
    return t.len > 0;
}

static bool parse_i64(struct sv_text t, int64_t *out)
{
    uint64_t u;
    bool negative = t.len && t.bytes[0] == '-';
    if (negative)
        t = (struct sv_text){.bytes = t.bytes + 1, .len = t.len - 1};
    if (!parse_u64(t, &u) || u > (uint64_t)INT64_MAX + negative)
        return false;
    *out = negative ? (int64_t)(0 - u) : (int64_t)u;
    return true;
}

/* -SECONDS.NNNNNNNNN, exactly nine decimals, of any length. */
static bool is_time(struct sv_text w)
{
    uint32_t i = w.len && w.bytes[0] == '-', point = w.len - 10;
    if (w.len < i + 11 || w.bytes[point] != '.')
        return false;
    for (; i < w.len; i++)
        if (i != point && (w.bytes[i] < '0' || w.bytes[i] > '9'))
            return false;
    return true;
}

/* The digits without the point are nanoseconds. */
static bool take_time(struct cursor *c, int64_t *ns)
{
    char digits[32];
    struct sv_text w = take_word(c);
    if (!is_time(w))
        return fail(c, "a time with nine decimals");
    if (w.len < sizeof digits) {
        memcpy(digits, w.bytes, w.len - 10);
        memcpy(digits + w.len - 10, w.bytes + w.len - 9, 9);
        if (parse_i64((struct sv_text){.bytes = digits, .len = w.len - 1}, ns))
            return true;
    }
    c->is_wide = true;
    return fail(c, "a time of int64 nanoseconds");
}

static bool take_i64(struct cursor *c, int64_t *out)
{
    return parse_i64(take_word(c), out) || fail(c, "a whole number");
}

static bool take_number(struct text_source *s, struct cursor *c, sv_track *out)
{
    uint64_t n;
    if (!take(c, '#') || !parse_u64(take_word(c), &n))
        return fail(c, "a track number");
    if (n == 0) {
        *out = 0;
        return true;
    }
    const uint64_t *track = sv_map_find(&s->numbers, n);
    if (!track)
        return fail(c, "a track that was described before");
    *out = (sv_track)*track;
    return true;
}

/* ---- arguments ---- */

static bool take_args(struct text_source *s, struct cursor *c, struct sv_batch *b, char close,
                      bool keyed, unsigned depth);

static bool take_container(struct text_source *s, struct cursor *c, struct sv_batch *b, sv_str key,
                           unsigned type, unsigned depth)
{
    bool is_list = type == SV_ARG_ARRAY || type == SV_ARG_STACK;
    if (!take(c, is_list ? '[' : '{'))
        return fail(c, is_list ? "'['" : "'{'");
    size_t opened = sv_batch_open(b, key, type);
    if (!take_args(s, c, b, is_list ? ']' : '}', !is_list, depth + 1))
        return false;
    sv_batch_close(b, opened);
    return true;
}

static bool take_typed(struct text_source *s, struct cursor *c, struct sv_batch *b, unsigned depth)
{
    struct sv_text w = take_word(c);
    unsigned type = SV_ARG_FLOW_BEGIN;
    while (type <= SV_ARG_THREAD_DUR && !sv_text_is(w, sv_arg_type_name(type)))
        type++;
    if (type > SV_ARG_THREAD_DUR)
        return fail(c, "a type after '@'");
    if (type == SV_ARG_SOURCE || type == SV_ARG_STACK)
        return take_container(s, c, b, 0, type, depth);
    struct sv_arg *a = sv_batch_arg(b);
    a->type = type & 0xff;
    if (!take(c, ':'))
        return fail(c, "':'");
    if (type == SV_ARG_THREAD_TIME || type == SV_ARG_THREAD_DUR)
        return take_i64(c, &a->i);
    return parse_u64(take_word(c), &a->u) || fail(c, "a number");
}

static bool set_number(struct sv_text w, struct sv_arg *a)
{
    char text[64], *end;
    if (w.len > 1 && w.bytes[w.len - 1] == 'u' && w.bytes[1] != 'x') {
        a->type = SV_ARG_UINT;
        return parse_u64((struct sv_text){.bytes = w.bytes, .len = w.len - 1}, &a->u);
    }
    if (w.len > 2 && w.bytes[0] == '0' && w.bytes[1] == 'x') {
        a->type = SV_ARG_POINTER;
        return parse_u64(w, &a->u);
    }
    if (parse_i64(w, &a->i)) {
        a->type = SV_ARG_INT;
        return true;
    }
    if (w.len == 0 || w.len >= sizeof text)
        return false;
    memcpy(text, w.bytes, w.len);
    text[w.len] = '\0';
    a->type = SV_ARG_DOUBLE;
    a->d = strtod(text, &end);
    return *end == '\0';
}

static bool take_scalar(struct cursor *c, struct sv_arg *a)
{
    struct sv_text w = take_word(c);
    if (sv_text_is(w, "null")) {
        a->type = SV_ARG_NULL;
        return true;
    }
    if (sv_text_is(w, "true") || sv_text_is(w, "false")) {
        a->type = SV_ARG_BOOL;
        a->i = w.bytes[0] == 't';
        return true;
    }
    return set_number(w, a) || fail(c, "a value");
}

static bool take_text(struct text_source *s, struct cursor *c, struct sv_batch *b, sv_str key)
{
    if (!take_quoted(c, &s->scratch))
        return false;
    if (s->scratch.len > SV_TEXT_MAX)
        return fail(c, "a shorter text");
    sv_batch_str(b, key, sv_batch_text(b, s->scratch.data, s->scratch.len), s->scratch.len);
    return true;
}

static bool take_value(struct text_source *s, struct cursor *c, struct sv_batch *b, sv_str key,
                       unsigned depth)
{
    if (peek(c, '"'))
        return take_text(s, c, b, key);
    if (peek(c, '{'))
        return take_container(s, c, b, key, SV_ARG_DICT, depth);
    if (peek(c, '['))
        return take_container(s, c, b, key, SV_ARG_ARRAY, depth);
    struct sv_arg *a = sv_batch_arg(b);
    a->key = key;
    return take_scalar(c, a);
}

static bool take_key(struct text_source *s, struct cursor *c, sv_str *key)
{
    if (peek(c, '"')) {
        *key = take_str(s, c);
    } else {
        struct sv_text w = take_word(c);
        *key = sv_dict_str(s->source.dict, w.bytes, w.len);
    }
    return take(c, '=') || fail(c, "'='");
}

/* The counter's value has no key; everything else in braces has, or begins with '@'. */
static bool has_key(const struct cursor *c)
{
    const char *p = c->p;
    if (p < c->end && *p == '"') {
        for (p++; p < c->end && *p != '"'; p++)
            p += *p == '\\';
        p++;
    } else {
        while (p < c->end && sv_text_is_word((unsigned char)*p))
            p++;
    }
    return p < c->end && *p == '=';
}

static bool take_args(struct text_source *s, struct cursor *c, struct sv_batch *b, char close,
                      bool keyed, unsigned depth)
{
    if (depth > SV_TEXT_DEPTH_MAX + 1)
        return fail(c, "less nesting");
    skip_blanks(c);
    while (!take(c, close)) {
        sv_str key = 0;
        if (c->p >= c->end)
            return fail(c, close == '}' ? "'}'" : "']'");
        bool ok = take(c, '@') ? take_typed(s, c, b, depth)
                               : !(keyed && has_key(c) && !take_key(s, c, &key)) &&
                                     take_value(s, c, b, key, depth);
        if (!ok)
            return false;
        skip_blanks(c);
    }
    return true;
}

/* ---- lines ---- */

static uint32_t clock_named(struct sv_text w)
{
    uint64_t n;
    for (uint32_t clock = 0; clock < 64; clock++)
        if (sv_text_is(w, sv_clock_name(clock)))
            return clock;
    return parse_u64(w, &n) ? (uint32_t)n : SV_CLOCK_UNKNOWN;
}

static bool read_snapshot(struct text_source *s, struct cursor *c)
{
    struct sv_snapshot snapshot = {.uncertainty_ns = -1};
    int64_t wall_state = 0, wall_error_ns = 0;
    for (skip_blanks(c); c->p < c->end; skip_blanks(c)) {
        struct sv_text w = take_word(c);
        int64_t ns;
        if (!take(c, '=') || !take_i64(c, &ns))
            return fail(c, "clock=nanoseconds");
        if (sv_text_is(w, "uncertainty"))
            snapshot.uncertainty_ns = ns;
        else if (sv_text_is(w, "wall_state"))
            wall_state = ns;
        else if (sv_text_is(w, "wall_error"))
            wall_error_ns = ns;
        else if (snapshot.n < SV_READINGS_MAX)
            snapshot.readings[snapshot.n++] =
                (struct sv_reading){.clock = clock_named(w), .ns = ns};
    }
    sv_snapshot_set_wall(&snapshot, wall_state < 0 ? 0 : (uint64_t)wall_state, wall_error_ns);
    sv_clocks_add(&s->source.dict->clocks, &snapshot);
    return true;
}

static bool read_meta(struct text_source *s, struct cursor *c, bool is_json)
{
    skip_blanks(c);
    sv_str key = take_str(s, c);
    skip_blanks(c);
    if (c->bad || !take_quoted(c, &s->scratch))
        return false;
    sv_dict_set_meta(s->source.dict, sv_dict_text(s->source.dict, key).bytes,
                     (const char *)s->scratch.data, s->scratch.len, is_json);
    return true;
}

/* One key=value of a track line. */
static bool read_track_member(struct text_source *s, struct cursor *c, struct sv_text key,
                              struct sv_track_info *t)
{
    const struct {
        const char *key;
        sv_str *text;
        int64_t *number;
    } members[] = {
        {"name", &t->name, NULL},       {"unit", &t->unit, NULL},
        {"cat", &t->cat, NULL},         {"desc", &t->desc, NULL},
        {"merge", &t->merge_key, NULL}, {"origin", &t->origin, NULL},
        {"pid", NULL, &t->pid},         {"tid", NULL, &t->tid},
        {"order", NULL, &t->order},     {"multiplier", NULL, &t->multiplier},
        {"start", NULL, &t->start_ns},
    };
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        if (!sv_text_is(key, members[i].key))
            continue;
        t->has_order |= members[i].number == &t->order;
        if (members[i].number)
            return take_i64(c, members[i].number);
        *members[i].text = take_str(s, c);
        return !c->bad;
    }
    int64_t n;
    if (sv_text_is(key, "parent"))
        return take_number(s, c, &t->parent);
    if (!take_i64(c, &n))
        return false;
    if (sv_text_is(key, "children"))
        t->child_order = (uint8_t)n;
    else if (sv_text_is(key, "siblings"))
        t->sibling_merge = (uint8_t)n;
    else if (sv_text_is(key, "incremental"))
        t->is_incremental = n != 0;
    else if (sv_text_is(key, "space"))
        t->space = (uint32_t)n;
    return true;
}

static unsigned track_kind_named(struct sv_text w)
{
    unsigned kind = SV_TRACK_CUSTOM;
    while (kind <= SV_TRACK_ASYNC && !sv_text_is(w, sv_track_kind_name(kind)))
        kind++;
    return kind <= SV_TRACK_ASYNC ? kind : 0;
}

static bool read_track(struct text_source *s, struct cursor *c)
{
    struct sv_dict *d = s->source.dict;
    uint64_t number, uuid;
    skip_blanks(c);
    if (!take(c, '#') || !parse_u64(take_word(c), &number) || number == 0)
        return fail(c, "a track number");
    skip_blanks(c);
    unsigned kind = track_kind_named(take_word(c));
    skip_blanks(c);
    if (!kind || !sv_text_is(take_word(c), "uuid") || !take(c, '=') ||
        !parse_u64(take_word(c), &uuid))
        return fail(c, "kind uuid=0x…");
    sv_track track = sv_dict_track(d, uuid, NULL);
    struct sv_track_info info = {.uuid = uuid,
                                 .kind = (uint8_t)kind,
                                 .pid = -1,
                                 .tid = -1,
                                 .is_described = true,
                                 .space = s->space,
                                 .revision = d->tracks[track].revision + 1};
    for (skip_blanks(c); c->p < c->end; skip_blanks(c)) {
        struct sv_text key = take_word(c);
        if (!take(c, '=') || !read_track_member(s, c, key, &info))
            return fail(c, "key=value");
    }
    d->tracks[track] = info;
    *sv_map_add(&s->numbers, number, NULL) = track;
    return true;
}

static bool take_kind(struct cursor *c, uint8_t *kind)
{
    struct sv_text w = take_word(c);
    for (unsigned k = SV_BEGIN; k <= SV_LOSS; k++) {
        if (sv_text_is(w, sv_kind_name(k))) {
            *kind = (uint8_t)k;
            return true;
        }
    }
    return fail(c, "begin, end, slice, instant, counter, flow or loss");
}

/* cat="…", dur=…, or a flag. */
static bool read_event_member(struct text_source *s, struct cursor *c, struct sv_event *e)
{
    struct sv_text w = take_word(c);
    if (sv_text_is(w, "cat") && take(c, '=')) {
        e->cat = take_str(s, c);
        return !c->bad;
    }
    if (sv_text_is(w, "dur") && take(c, '=')) {
        if (c->end - c->p >= 10 && memcmp(c->p, "unfinished", 10) == 0) {
            c->p += 10;
            e->dur_ns = SV_UNFINISHED;
            return true;
        }
        return take_time(c, &e->dur_ns);
    }
    for (unsigned i = 0; i < SV_TEXT_FLAGS; i++) {
        if (sv_text_is(w, sv_text_flag_names[i])) {
            e->flags |= (uint8_t)(1u << i);
            return true;
        }
    }
    return fail(c, "cat=, dur=, a flag or arguments");
}

static bool read_event(struct text_source *s, struct cursor *c, struct sv_batch *b)
{
    struct sv_event e = {0};
    if (!take_time(c, &e.ts_ns))
        return false;
    skip_blanks(c);
    if (!take_kind(c, &e.kind))
        return false;
    skip_blanks(c);
    if (!take_number(s, c, &e.track))
        return false;
    skip_blanks(c);
    if (peek(c, '"'))
        e.name = take_str(s, c);
    for (skip_blanks(c); !c->bad && c->p < c->end && *c->p != '{'; skip_blanks(c))
        if (!read_event_member(s, c, &e))
            return false;
    if (take(c, '{') && !take_args(s, c, b, '}', true, 0))
        return false;
    skip_blanks(c);
    if (c->bad || c->p != c->end)
        return fail(c, "the end of the line");
    if (!sv_batch_finish(b, &e))
        sv_report_add(s->source.report, SV_DAMAGE, "more arguments than an event can have", 1,
                      (int64_t)s->in->pos, NULL);
    if (!sv_event_ends(&e))
        sv_source_refuse(&s->source, (int64_t)s->in->pos);
    b->events[b->n++] = e;
    return true;
}

static bool read_line(struct text_source *s, struct cursor *c, struct sv_batch *b)
{
    skip_blanks(c);
    if (c->p == c->end || *c->p == '#')
        return true;
    if (*c->p == '-' || (*c->p >= '0' && *c->p <= '9'))
        return read_event(s, c, b);
    struct sv_text w = take_word(c);
    if (sv_text_is(w, "track"))
        return read_track(s, c);
    if (sv_text_is(w, "snapshot"))
        return read_snapshot(s, c);
    if (sv_text_is(w, "meta") || sv_text_is(w, "json"))
        return read_meta(s, c, w.bytes[0] == 'j');
    skip_blanks(c);
    if (sv_text_is(w, "clock")) {
        s->source.dict->clocks.trace_clock = clock_named(take_word(c));
        return true;
    }
    return fail(c, "an event, or track, clock, snapshot, meta or json");
}

/* The length of the next line without its newline; the window holds it whole. 0 and *found = false
 * at the end. */
static int next_line(struct sv_input *in, size_t *len, bool *found, struct sv_err *err)
{
    for (size_t need = 1, seen = 0;;) {
        int code = sv_input_need(in, need, err);
        if (code < 0)
            return code;
        const uint8_t *newline = in->len > seen ? memchr(in->data + seen, '\n', in->len - seen)
                                                : NULL;
        *found = in->len > 0;
        *len = newline ? (size_t)(newline - in->data) : in->len;
        if (newline || code == 0)
            return 0;
        seen = in->len;
        need = in->len * 2;
    }
}

static void put_bad(struct text_source *s, const struct cursor *c)
{
    int64_t pos = (int64_t)s->in->pos;
    if (c->is_wide)
        sv_source_refuse(&s->source, pos);
    else
        sv_report_add(s->source.report, SV_DAMAGE, "line not understood, skipped", 1,
                      pos + (c->p - (const char *)s->in->data), "expected %s",
                      c->bad ? c->bad : "something else");
}

static int text_next(struct sv_source *source, struct sv_batch *b, struct sv_err *err)
{
    struct text_source *s = (struct text_source *)source;
    while (b->n < SV_BATCH) {
        size_t len;
        bool found;
        int code = next_line(s->in, &len, &found, err);
        if (code < 0)
            return code;
        if (!found)
            break;
        struct cursor c = {.p = (const char *)s->in->data, .end = (const char *)s->in->data + len};
        if (c.end > c.p && c.end[-1] == '\r')
            c.end--;
        if (!read_line(s, &c, b)) {
            put_bad(s, &c);
            sv_batch_drop_args(b);
        }
        sv_input_skip(s->in, len < s->in->len ? len + 1 : len);
    }
    if (b->n == 0 && !s->is_reported) {
        sv_input_report(s->in, source->report);
        s->is_reported = true;
    }
    return sv_source_given(source, b->n, err);
}

static void text_close(struct sv_source *source)
{
    struct text_source *s = (struct text_source *)source;
    sv_buf_fini(&s->scratch);
    sv_map_fini(&s->numbers);
    free(s);
}

static int probe(const uint8_t *head, size_t n)
{
    size_t len = strlen(SV_TEXT_HEAD);
    return n >= len && memcmp(head, SV_TEXT_HEAD, len) == 0 ? 100 : 0;
}

static int open_source(struct sv_input *in, const struct sv_read_options *options,
                       struct sv_dict *dict, struct sv_report *report, struct sv_source **out,
                       struct sv_err *err)
{
    (void)err;
    struct text_source *s = sv_alloc(sizeof *s);
    s->source = (struct sv_source){.next = text_next,
                                   .close = text_close,
                                   .gives = SV_HAS_ANYTHING,
                                   .dict = dict,
                                   .report = report};
    s->in = in;
    s->space = options->space;
    sv_buf_init(&s->scratch, (size_t)1 << 28);
    *out = &s->source;
    return 0;
}

const struct sv_format sv_text_format = {
    .name = "text",
    .help = "canonical text, one event a line",
    .probe = probe,
    .open_source = open_source,
    .writer = &sv_text_writer,
};
