/* What a trace says; see the header. Loads the store, writes a line for each of its rows and sorts
 * them. */
#include "tests/harness/canon.h"

#include "core/base/map.h"
#include "core/base/utf8.h"
#include "tests/harness/test.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TRACKS_DEEP 64

struct writer {
    const struct sv_trace *trace;
    struct sv_batch *scratch;
    struct sv_buf line, text;
    char **lines;
    size_t n, cap;
    unsigned flags;
};

/* Long ones by their beginning, length and hash. */
static void put_text(struct writer *w, const char *bytes, size_t len)
{
    struct sv_buf *b = &w->line, *text = &w->text;
    if (w->flags & CANON_UTF8) {
        sv_buf_clear(text);
        sv_buf_utf8(text, bytes, len);
        bytes = sv_buf_cstr(text);
        len = text->len;
    }
    if (len <= 64) {
        sv_buf_escaped(b, bytes, len);
        return;
    }
    sv_buf_escaped(b, bytes, 16);
    sv_buf_printf(b, "~%zu~%016" PRIx64, len, sv_hash_bytes(bytes, len, 0));
}

static void put_str(struct writer *w, sv_str s)
{
    struct sv_text t = sv_dict_text(w->trace->dict, s);
    sv_buf_byte(&w->line, '"');
    put_text(w, t.bytes, t.len);
    sv_buf_byte(&w->line, '"');
}

static void put_track(struct writer *w, sv_track t)
{
    const struct sv_dict *d = w->trace->dict;
    sv_track chain[TRACKS_DEEP];
    size_t n = 0;
    for (; t && n < TRACKS_DEEP; t = d->tracks[t].parent)
        if (d->tracks[t].kind != SV_TRACK_LANE)
            chain[n++] = t;
    while (n-- > 0) {
        const struct sv_track_info *info = &d->tracks[chain[n]];
        sv_buf_printf(&w->line, "/%s", sv_track_kind_name(info->kind));
        if (info->kind == SV_TRACK_PROCESS || info->kind == SV_TRACK_THREAD)
            sv_buf_printf(&w->line, ":%" PRId64 ":%" PRId64, info->pid,
                          info->kind == SV_TRACK_THREAD ? info->tid : 0);
        put_str(w, info->name);
        if (info->unit) {
            sv_buf_byte(&w->line, '[');
            put_str(w, info->unit);
            sv_buf_byte(&w->line, ']');
        }
    }
}

/* ---- arguments ---- */

static bool is_flow(unsigned type)
{
    return type >= SV_ARG_FLOW_BEGIN && type <= SV_ARG_FLOW_END;
}

static void put_scalar(struct writer *w, const struct sv_arg *a)
{
    struct sv_buf *b = &w->line;
    switch (a->type) {
    case SV_ARG_NULL: sv_buf_str(b, "null"); break;
    case SV_ARG_BOOL: sv_buf_str(b, a->i ? "true" : "false"); break;
    case SV_ARG_INT: sv_buf_i64(b, a->i); break;
    case SV_ARG_UINT: sv_buf_u64(b, a->u); break;
    case SV_ARG_DOUBLE: sv_buf_printf(b, "%a", a->d); break;
    case SV_ARG_TEXT:
        sv_buf_byte(b, '\'');
        put_text(w, a->text, a->size);
        sv_buf_byte(b, '\'');
        break;
    default: sv_buf_printf(b, "%s:%" PRIu64, sv_arg_type_name(a->type), a->u); break;
    }
}

static void put_arg(struct writer *w, const struct sv_arg *a)
{
    const struct sv_arg *end = sv_arg_next(a);
    if (a->key) {
        put_str(w, a->key);
        sv_buf_byte(&w->line, '=');
    }
    if (end == a + 1 && a->type != SV_ARG_DICT && a->type != SV_ARG_ARRAY &&
        a->type != SV_ARG_SOURCE && a->type != SV_ARG_STACK) {
        put_scalar(w, a);
        return;
    }
    sv_buf_printf(&w->line, "%s{", sv_arg_type_name(a->type));
    for (const struct sv_arg *m = a + 1; m < end; m = sv_arg_next(m)) {
        sv_buf_byte(&w->line, ' ');
        put_arg(w, m);
    }
    sv_buf_byte(&w->line, '}');
}

static int compare_lines(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_cpu_time(const struct sv_arg *a)
{
    return a->type == SV_ARG_THREAD_TIME || a->type == SV_ARG_THREAD_DUR;
}

static bool is_special(const struct sv_arg *a)
{
    return a->type > SV_ARG_ARRAY;
}

/* Puts one argument as a text of its own. */
static char *text_of(struct writer *w, const struct sv_arg *a)
{
    size_t start = w->line.len;
    put_arg(w, a);
    char *text = sv_strndup((char *)w->line.data + start, w->line.len - start);
    w->line.len = start;
    return text;
}

/* The arguments in their order, then those with a meaning of their own, which formats keep
 * elsewhere, sorted. Flows are written as arrows. */
static void put_args(struct writer *w, uint32_t handle)
{
    size_t n, n_texts = 0, n_plain = 0;
    const struct sv_arg *args = sv_trace_args(w->trace, handle, w->scratch, &n);
    char **texts = sv_alloc((n + 1) * sizeof *texts);
    for (int special = 0; special < 2; special++) {
        for (const struct sv_arg *a = args; a && a < args + n; a = sv_arg_next(a))
            if (!is_flow(a->type) && is_special(a) == special &&
                !(w->flags & CANON_NO_CPU_TIMES && is_cpu_time(a)))
                texts[n_texts++] = text_of(w, a);
        n_plain = special ? n_plain : n_texts;
    }
    if (n_texts - n_plain > 1)
        qsort(texts + n_plain, n_texts - n_plain, sizeof *texts, compare_lines);
    sv_buf_str(&w->line, " {");
    for (size_t i = 0; i < n_texts; i++) {
        sv_buf_byte(&w->line, ' ');
        sv_buf_str(&w->line, texts[i]);
        free(texts[i]);
    }
    sv_buf_byte(&w->line, '}');
    free(texts);
    sv_batch_reset(w->scratch);
}

/* ---- lines ---- */

static void end_line(struct writer *w)
{
    w->lines = sv_grow(w->lines, &w->cap, w->n + 1, sizeof *w->lines);
    w->lines[w->n++] = sv_strndup(sv_buf_cstr(&w->line), w->line.len);
    sv_buf_clear(&w->line);
}

static void put_slice(struct writer *w, uint64_t row)
{
    const struct sv_slices *s = &w->trace->slices;
    bool is_slice = s->kind[row] == SV_SLICE;
    sv_buf_printf(&w->line, "%s %" PRId64 " ", is_slice ? "slice" : "instant", s->ts_ns[row]);
    if (is_slice)
        sv_buf_printf(&w->line, "%" PRId64 " ", s->dur_ns[row]);
    put_track(w, s->track[row]);
    sv_buf_byte(&w->line, ' ');
    put_str(w, s->name[row]);
    sv_buf_byte(&w->line, ' ');
    put_str(w, s->cat[row]);
    if (s->flags[row])
        sv_buf_printf(&w->line, " flags:%u", s->flags[row]);
}

static void put_counters(struct writer *w)
{
    const struct sv_counters *c = &w->trace->counters;
    for (uint64_t i = 0; i < c->n; i++) {
        struct sv_arg value = sv_trace_counter(w->trace, i);
        sv_buf_printf(&w->line, "counter %" PRId64 " ", c->ts_ns[i]);
        put_track(w, c->track[i]);
        sv_buf_byte(&w->line, ' ');
        put_scalar(w, &value);
        end_line(w);
    }
}

static void put_losses(struct writer *w)
{
    const struct sv_losses *l = &w->trace->losses;
    for (uint64_t i = 0; i < l->n; i++) {
        sv_buf_printf(&w->line, "loss %" PRId64 " %" PRId64 " ", l->ts_ns[i], l->dur_ns[i]);
        put_track(w, l->track[i]);
        sv_buf_byte(&w->line, ' ');
        put_str(w, l->cause[i]);
        sv_buf_printf(&w->line, " %" PRIu64, l->count[i]);
        end_line(w);
    }
}

static void put_arrows(struct writer *w)
{
    const struct sv_flows *f = &w->trace->flows;
    for (uint64_t i = 0; i < f->n; i++) {
        sv_buf_str(&w->line, "arrow ");
        put_slice(w, f->from[i]);
        sv_buf_str(&w->line, " -> ");
        put_slice(w, f->to[i]);
        end_line(w);
    }
}

const char *canon(struct sv_buf *text, const struct sv_trace *t, unsigned flags)
{
    struct writer w = {.trace = t, .scratch = sv_alloc(sizeof *w.scratch), .flags = flags};
    sv_batch_init(w.scratch);
    sv_buf_init(&w.line, (size_t)1 << 28);
    sv_buf_init(&w.text, (size_t)1 << 28);
    for (uint64_t row = 0; row < t->slices.n; row++) {
        put_slice(&w, row);
        if (!(flags & CANON_NO_ARGS))
            put_args(&w, t->slices.args[row]);
        end_line(&w);
    }
    put_counters(&w);
    put_losses(&w);
    if (!(flags & CANON_NO_ARROWS))
        put_arrows(&w);
    if (w.n > 1)
        qsort(w.lines, w.n, sizeof *w.lines, compare_lines);
    sv_buf_clear(text);
    for (size_t i = 0; i < w.n; i++) {
        sv_buf_str(text, w.lines[i]);
        sv_buf_byte(text, '\n');
        free(w.lines[i]);
    }
    free(w.lines);
    sv_buf_fini(&w.line);
    sv_buf_fini(&w.text);
    sv_batch_fini(w.scratch);
    free(w.scratch);
    return sv_buf_cstr(text);
}

const char *canon_source(struct sv_buf *text, struct sv_source *source, unsigned flags)
{
    struct sv_err err = {0};
    struct sv_trace *t = sv_trace_new(source->dict, NULL, 0);
    CHECK_INT_EQ(sv_pump(source, sv_trace_sink(t), NULL, &err), 0);
    CHECK_STR_EQ(err.msg, "");
    canon(text, t, flags);
    sv_trace_free(t);
    return sv_buf_cstr(text);
}

/* The line up to the first difference and a little of what follows; the beginning always, since it
 * says which event it is. */
static char *excerpt(const char *line, size_t len, size_t differs)
{
    size_t from = differs > 300 ? differs - 100 : 0, to = differs + 200 < len ? differs + 200 : len;
    struct sv_buf b;
    sv_buf_init(&b, 4096);
    if (from > 200) {
        sv_buf_add(&b, line, 200);
        sv_buf_str(&b, " … ");
    } else {
        from = 0;
    }
    sv_buf_add(&b, line + from, to - from);
    char *text = sv_strndup(sv_buf_cstr(&b), b.len);
    sv_buf_fini(&b);
    return text;
}

bool canon_equal(const char *want, const char *got)
{
    for (size_t line = 1; *want || *got; line++) {
        size_t a = strcspn(want, "\n"), b = strcspn(got, "\n"), same = 0;
        while (same < a && same < b && want[same] == got[same])
            same++;
        if (same < a || same < b) {
            char *x = excerpt(want, a, same), *y = excerpt(got, b, same);
            if (test_str_eq(y, x, "got", "wanted", __FILE__, (int)line))
                test_check(false, "lines that differ", __FILE__, (int)line);
            free(x);
            free(y);
            return false;
        }
        want += a + (want[a] == '\n');
        got += b + (got[b] == '\n');
    }
    return true;
}
