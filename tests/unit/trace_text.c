/* Traces as text: see the header. Mistakes in the text abort the test program: they are mistakes of
 * the test. */
#include "trace_text.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS 16

struct line {
    char *words[WORDS];
    size_t n;
};

static struct line split_words(char *text)
{
    struct line l = {0};
    for (char *w = strtok_r(text, " ", &text); w; w = strtok_r(NULL, " ", &text)) {
        assert(l.n < WORDS);
        l.words[l.n++] = w;
    }
    return l;
}

static const char *word(const struct line *l, size_t i)
{
    assert(i < l->n && l->words[i]);
    return l->words[i];
}

static sv_str string_of(struct sv_dict *d, const char *word)
{
    return strcmp(word, "-") == 0 ? 0 : sv_dict_cstr(d, word);
}

static sv_track track_of(struct sv_dict *d, const char *word)
{
    return sv_dict_child(d, 0, SV_TRACK_CUSTOM, sv_dict_cstr(d, word));
}

static struct sv_arg number(const char *text)
{
    struct sv_arg a = {.type = SV_ARG_INT};
    if (strpbrk(text, ".naf")) { /* 1.5, nan, inf */
        a.type = SV_ARG_DOUBLE;
        a.d = strtod(text, NULL);
    } else if (text[0] != '-' && strtoull(text, NULL, 10) > INT64_MAX) {
        a.type = SV_ARG_UINT;
        a.u = strtoull(text, NULL, 10);
    } else {
        a.i = strtoll(text, NULL, 10);
    }
    return a;
}

static void add_array(struct sv_batch *b, sv_str key, char *items)
{
    size_t array = sv_batch_open(b, key, SV_ARG_ARRAY);
    for (char *w = strtok_r(items, ",]", &items); w; w = strtok_r(NULL, ",]", &items)) {
        struct sv_arg a = number(w);
        *sv_batch_arg(b) = a;
    }
    sv_batch_close(b, array);
}

static void add_arg(struct sv_dict *d, struct sv_batch *b, char *word)
{
    static const char marks[] = "><~@#";
    static const unsigned types[] = {SV_ARG_FLOW_BEGIN, SV_ARG_FLOW_END, SV_ARG_FLOW,
                                     SV_ARG_THREAD_TIME, SV_ARG_CORRELATION};
    const char *mark = strchr(marks, word[0]);
    if (mark) {
        *sv_batch_arg(b) =
            (struct sv_arg){.type = types[mark - marks] & 0xff, .u = strtoull(word + 1, NULL, 10)};
        return;
    }
    char *value = strchr(word, '=');
    assert(value);
    sv_str key = sv_dict_str(d, word, (size_t)(value - word));
    value++;
    if (value[0] == '[') {
        add_array(b, key, value + 1);
        return;
    }
    struct sv_arg a = number(value);
    if (value[0] == '\'') {
        size_t len = strcspn(value + 1, "'");
        a.type = SV_ARG_TEXT;
        a.size = len & 0xffffff;
        a.text = sv_batch_text(b, value + 1, len);
    }
    a.key = key;
    *sv_batch_arg(b) = a;
}

/* The words after `from` are arguments. */
static void finish(struct sv_dict *d, struct sv_batch *b, struct sv_event *e, const struct line *l,
                   size_t from)
{
    for (size_t i = from; i < l->n; i++)
        add_arg(d, b, l->words[i]);
    sv_batch_finish(b, e);
}

static void parse_flow(struct sv_event *e, struct sv_batch *b, char kind, const char *id)
{
    e->kind = SV_FLOW;
    e->flags = kind == 'F' ? SV_BIND_NEXT : 0;
    *sv_batch_arg(b) = (struct sv_arg){.type = kind == 's'   ? SV_ARG_FLOW_BEGIN
                                               : kind == 'p' ? SV_ARG_FLOW
                                                             : SV_ARG_FLOW_END,
                                       .u = strtoull(id, NULL, 10)};
    sv_batch_finish(b, e);
}

static int64_t duration(const char *word)
{
    return strcmp(word, "-") == 0 ? SV_UNFINISHED : strtoll(word, NULL, 10);
}

static void parse_event(struct sv_dict *d, struct sv_batch *b, const struct line *l)
{
    char kind = word(l, 0)[0];
    size_t at = kind == 'X' || kind == 'L' ? 3 : 2; /* the word after the times */
    struct sv_event *e = sv_batch_event(b);
    e->ts_ns = strtoll(word(l, 1), NULL, 10);
    e->dur_ns = at == 3 ? duration(word(l, 2)) : 0;
    e->track = track_of(d, word(l, at));
    switch (kind) {
    case 'B':
    case 'X':
    case 'I':
        e->kind = kind == 'B' ? SV_BEGIN : kind == 'X' ? SV_SLICE : SV_INSTANT;
        e->name = string_of(d, word(l, at + 1));
        finish(d, b, e, l, at + 2);
        break;
    case 'E':
        e->kind = SV_END;
        finish(d, b, e, l, at + 1);
        break;
    case 'C':
        e->kind = SV_COUNTER;
        *sv_batch_arg(b) = number(word(l, at + 1));
        sv_batch_finish(b, e);
        break;
    case 'L':
        e->kind = SV_LOSS;
        e->name = string_of(d, word(l, at + 1));
        *sv_batch_arg(b) = number(word(l, at + 2));
        sv_batch_finish(b, e);
        break;
    default: parse_flow(e, b, kind, word(l, at + 1));
    }
}

static int flush(struct sv_batch *b, struct sv_sink *sink, struct sv_err *err)
{
    int code = b->n ? sink->write(sink, b->events, b->n, err) : 0;
    sv_batch_reset(b);
    return code;
}

int trace_text_write(const char *text, size_t batch, struct sv_dict *dict, struct sv_sink *sink,
                     struct sv_err *err)
{
    struct sv_batch *b = sv_alloc(sizeof *b);
    char *copy = sv_strndup(text, strlen(text)), *rest = copy;
    int code = 0;
    sv_batch_init(b);
    for (char *l = strtok_r(rest, "\n", &rest); l && code == 0; l = strtok_r(NULL, "\n", &rest)) {
        struct line words = split_words(l);
        if (words.n)
            parse_event(dict, b, &words);
        if (b->n == batch)
            code = flush(b, sink, err);
    }
    if (code == 0)
        code = flush(b, sink, err);
    sv_batch_fini(b);
    free(copy);
    free(b);
    return code;
}

struct sv_trace *trace_text_load(const char *text, struct sv_dict *dict, struct sv_report *report)
{
    struct sv_err err = {0};
    struct sv_trace *t = sv_trace_new(dict, report, 0);
    struct sv_sink *sink = sv_trace_sink(t);
    int code = trace_text_write(text, 3, dict, sink, &err);
    if (code < 0 || sink->close(sink, false, &err) < 0)
        fprintf(stderr, "trace_text: %s\n", err.msg);
    return t;
}

/* ---- out ---- */

static void put_string(const struct sv_trace *t, struct sv_buf *out, sv_str s)
{
    struct sv_text text = sv_dict_text(t->dict, s);
    if (s)
        sv_buf_add(out, text.bytes, text.len);
    else
        sv_buf_byte(out, '-');
}

static void put_track(const struct sv_trace *t, struct sv_buf *out, sv_track k)
{
    put_string(t, out, t->dict->tracks[k].name);
}

static void put_value(struct sv_buf *out, const struct sv_arg *a)
{
    switch (a->type) {
    case SV_ARG_DOUBLE:
        sv_buf_double(out, a->d);
        sv_buf_byte(out, 'd');
        break;
    case SV_ARG_TEXT:
        sv_buf_byte(out, '\'');
        sv_buf_add(out, a->text, a->size);
        sv_buf_byte(out, '\'');
        break;
    case SV_ARG_INT: sv_buf_i64(out, a->i); break;
    case SV_ARG_UINT: sv_buf_u64(out, a->u); break;
    default:
        sv_buf_printf(out, "%s:%" PRIu64, sv_arg_type_name(a->type),
                      sv_arg_next(a) == a + 1 ? a->u : a->size);
    }
}

static void put_args(const struct sv_trace *t, struct sv_buf *out, uint32_t handle)
{
    struct sv_batch *b = sv_alloc(sizeof *b);
    size_t n;
    sv_batch_init(b);
    const struct sv_arg *args = sv_trace_args(t, handle, b, &n);
    for (size_t i = 0; i < n; i++) {
        sv_buf_byte(out, ' ');
        if (args[i].key) {
            put_string(t, out, args[i].key);
            sv_buf_byte(out, '=');
        }
        put_value(out, &args[i]);
    }
    sv_batch_fini(b);
    free(b);
}

static void put_slices(const struct sv_trace *t, struct sv_buf *out)
{
    const struct sv_slices *s = &t->slices;
    for (uint64_t row = 0; row < s->n; row++) {
        put_track(t, out, s->track[row]);
        sv_buf_printf(out, " %" PRIi64 "+", s->ts_ns[row]);
        if (s->kind[row] == SV_INSTANT)
            sv_buf_str(out, "i");
        else if (s->dur_ns[row] == SV_UNFINISHED)
            sv_buf_str(out, "?");
        else
            sv_buf_i64(out, s->dur_ns[row]);
        sv_buf_byte(out, ' ');
        put_string(t, out, s->name[row]);
        sv_buf_printf(out, " %u", s->depth[row]);
        if (s->parent[row] != SV_NO_ROW) {
            sv_buf_str(out, " <");
            put_string(t, out, s->name[s->parent[row]]);
        }
        put_args(t, out, s->args[row]);
        sv_buf_byte(out, '\n');
    }
}

static void put_flows(const struct sv_trace *t, struct sv_buf *out)
{
    for (uint64_t i = 0; i < t->flows.n; i++) {
        sv_buf_printf(out, "flow %" PRIu64 " ", t->flows.id[i]);
        put_string(t, out, t->slices.name[t->flows.from[i]]);
        sv_buf_str(out, "->");
        put_string(t, out, t->slices.name[t->flows.to[i]]);
        sv_buf_byte(out, '\n');
    }
    for (uint64_t i = 0; i < t->points.n; i++) {
        sv_buf_printf(out, "point %" PRIu64 " %s ", t->points.id[i],
                      sv_arg_type_name(t->points.type[i]));
        put_track(t, out, t->points.track[i]);
        sv_buf_printf(out, " %" PRIi64 " ", t->points.ts_ns[i]);
        put_string(t, out, t->points.row[i] == SV_NO_ROW ? 0 : t->slices.name[t->points.row[i]]);
        sv_buf_byte(out, '\n');
    }
}

const char *trace_text_dump(const struct sv_trace *t, struct sv_buf *out)
{
    sv_buf_clear(out);
    put_slices(t, out);
    for (uint64_t row = 0; row < t->counters.n; row++) {
        struct sv_arg value = sv_trace_counter(t, row);
        put_track(t, out, t->counters.track[row]);
        sv_buf_printf(out, " %" PRIi64 " = ", t->counters.ts_ns[row]);
        put_value(out, &value);
        sv_buf_byte(out, '\n');
    }
    put_flows(t, out);
    for (uint64_t row = 0; row < t->losses.n; row++) {
        sv_buf_str(out, "loss ");
        put_track(t, out, t->losses.track[row]);
        sv_buf_printf(out, " %" PRIi64 "+%" PRIi64 " %" PRIu64 " ", t->losses.ts_ns[row],
                      t->losses.dur_ns[row], t->losses.count[row]);
        put_string(t, out, t->losses.cause[row]);
        sv_buf_byte(out, '\n');
    }
    return sv_buf_cstr(out);
}
