/* The page as one file: its modules as texts, which a few lines of script turn into modules again,
 * and the trace as packed JSON, which offline.js answers from. */
#include "view/export_html.h"

#include "core/base/mem.h"
#include "view/answers.h"
#include "view/page.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- the trace ---- */

static void put_answer(struct sv_json *j, struct sv_viewer *v, const char *key, const char *path,
                       const char *subject)
{
    struct sv_web_answer a = {0};
    sv_buf_init(&a.body, (size_t)256 << 20);
    if (subject)
        sv_viewer_report(v, subject, &a);
    else
        sv_viewer_answer(v, &(struct sv_web_request){.path = path}, &a);
    sv_json_key(j, key, strlen(key));
    sv_json_raw(j, sv_buf_cstr(&a.body), a.body.len);
    sv_buf_fini(&a.body);
}

#define PUT_COLUMN(j, key, n, each)      \
    do {                                 \
        sv_json_lit(j, key);             \
        sv_json_begin(j, '[');           \
        for (size_t i = 0; i < (n); i++) \
            each;                        \
        sv_json_end(j);                  \
    } while (0)

/* What JavaScript's numbers cannot hold is a string. */
static void put_number(struct sv_json *j, int64_t v)
{
    if (v > ((int64_t)1 << 53) || v < -((int64_t)1 << 53))
        sv_json_i64_text(j, v);
    else
        sv_json_i64(j, v);
}

static void put_slices(struct sv_json *j, const struct sv_shown *s, size_t row)
{
    const struct sv_slices *c = &s->trace->slices;
    size_t n = sv_strips_count(s->strips, row);
    uint32_t *slice = sv_alloc((n + 1) * sizeof *slice);
    for (size_t i = 0; i < n; i++)
        slice[i] = sv_strips_slice(s->strips, row, (uint32_t)i);
    sv_json_begin(j, '{');
    sv_json_put(j, "nests", bool, n && !s->trace->tracks[c->track[slice[0]]].has_overlap);
    sv_json_put(j, "first", i64_text, n ? c->ts_ns[slice[0]] : 0);
    PUT_COLUMN(j, "ts", n, put_number(j, i ? c->ts_ns[slice[i]] - c->ts_ns[slice[i - 1]] : 0));
    PUT_COLUMN(j, "dur", n, put_number(j, c->dur_ns[slice[i]]));
    PUT_COLUMN(j, "number", n, sv_json_u64(j, slice[i]));
    PUT_COLUMN(j, "name", n, sv_json_u64(j, c->name[slice[i]]));
    PUT_COLUMN(j, "cat", n, sv_json_u64(j, c->cat[slice[i]]));
    PUT_COLUMN(j, "line", n, sv_json_u64(j, sv_track_rows_line(s->rows, slice[i])));
    PUT_COLUMN(j, "colour", n, sv_json_u64(j, sv_color_number(&s->colors, slice[i])));
    PUT_COLUMN(j, "instant", n, sv_json_u64(j, c->kind[slice[i]] == SV_INSTANT));
    PUT_COLUMN(
        j, "parent", n,
        sv_json_i64(j, c->parent[slice[i]] == SV_NO_ROW ? -1 : (int64_t)c->parent[slice[i]]));
    PUT_COLUMN(j, "args", n, sv_json_i64(j, c->args[slice[i]] ? (int64_t)slice[i] : -1));
    sv_json_end(j);
    free(slice);
}

static void put_counter(struct sv_json *j, const struct sv_shown *s, size_t row)
{
    const struct sv_trace_track *k = &s->trace->tracks[s->rows->items[row].track];
    const struct sv_counters *c = &s->trace->counters;
    size_t n = k->counter_end - k->counter_first;
    sv_json_begin(j, '{');
    sv_json_put(j, "first", i64_text, c->ts_ns[k->counter_first]);
    PUT_COLUMN(
        j, "times", n,
        put_number(j, i ? c->ts_ns[k->counter_first + i] - c->ts_ns[k->counter_first + i - 1] : 0));
    PUT_COLUMN(j, "values", n, sv_json_double(j, c->value[k->counter_first + i]));
    sv_json_end(j);
}

static void put_rows(struct sv_json *j, const struct sv_shown *s)
{
    sv_json_put(j, "rows", begin, '[');
    for (size_t row = 0; row < s->rows->n; row++) {
        if (s->rows->items[row].lines)
            put_slices(j, s, row);
        else
            put_counter(j, s, row);
    }
    sv_json_end(j);
}

static void put_names(struct sv_json *j, const struct sv_dict *d)
{
    PUT_COLUMN(j, "names", d->n_strings, sv_json_str(j, d, (sv_str)i));
}

static void put_args(struct sv_json *j, const struct sv_shown *s)
{
    sv_json_put(j, "args", begin, '{');
    for (uint32_t slice = 0; slice < s->trace->slices.n; slice++) {
        char key[16];
        if (!s->trace->slices.args[slice])
            continue;
        sv_json_key(j, key, (size_t)snprintf(key, sizeof key, "%u", slice));
        sv_put_args(j, s, slice);
    }
    sv_json_end(j);
}

static void put_flows(struct sv_json *j, const struct sv_flows *f)
{
    sv_json_put(j, "flows", begin, '[');
    for (uint64_t i = 0; i < f->n; i++) {
        sv_json_begin(j, '[');
        sv_json_u64_text(j, f->id[i]);
        sv_json_u64(j, f->from[i]);
        sv_json_u64(j, f->to[i]);
        sv_json_end(j);
    }
    sv_json_end(j);
}

static void put_trace(struct sv_buf *to, struct sv_viewer *v, const struct sv_shown *s)
{
    struct sv_json j;
    sv_json_init(&j, to);
    sv_json_begin(&j, '{');
    put_answer(&j, v, "trace", "/api/trace", NULL);
    sv_json_put(&j, "answers", begin, '{');
    put_answer(&j, v, "steps", "/api/steps", NULL);
    put_answer(&j, v, "io", NULL, "io");
    put_answer(&j, v, "gpu", NULL, "gpu");
    put_answer(&j, v, "batch", NULL, "batch");
    put_answer(&j, v, "llm", NULL, "llm");
    put_answer(&j, v, "wait", NULL, "wait");
    put_answer(&j, v, "comm", NULL, "comm");
    put_answer(&j, v, "explain", NULL, "explain");
    sv_json_end(&j);
    put_names(&j, s->trace->dict);
    put_rows(&j, s);
    put_args(&j, s);
    put_flows(&j, &s->trace->flows);
    sv_json_end(&j);
}

/* ---- the file ---- */

static void put_base64(struct sv_buf *to, const uint8_t *p, size_t n)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        uint32_t v = (uint32_t)p[i] << 16 | (i + 1 < n ? (uint32_t)p[i + 1] << 8 : 0) |
                     (i + 2 < n ? p[i + 2] : 0);
        sv_buf_byte(to, (uint8_t)digits[v >> 18]);
        sv_buf_byte(to, (uint8_t)digits[v >> 12 & 63]);
        sv_buf_byte(to, (uint8_t)(i + 1 < n ? digits[v >> 6 & 63] : '='));
        sv_buf_byte(to, (uint8_t)(i + 2 < n ? digits[v & 63] : '='));
    }
}

static int pack(const struct sv_buf *text, struct sv_buf *to, struct sv_err *err)
{
    struct sv_output *out;
    struct sv_buf packed;
    sv_buf_init(&packed, (size_t)1 << 30);
    int code = sv_output_open_buf(&packed, SV_GZIP, &out, err);
    if (code >= 0) {
        sv_output_write(out, text->data, text->len);
        code = sv_output_close(out, err);
    }
    if (code >= 0)
        put_base64(to, packed.data, packed.len);
    sv_buf_fini(&packed);
    return code;
}

static void write_text(struct sv_output *out, const char *text)
{
    sv_output_write(out, text, strlen(text));
}

/* JSON inside of a script: it must not end it. Only strings hold such a character. */
static void write_json(struct sv_output *out, const struct sv_buf *json)
{
    for (size_t i = 0; i < json->len;) {
        size_t n = i;
        while (n < json->len && json->data[n] != '<')
            n++;
        sv_output_write(out, json->data + i, n - i);
        if (n < json->len)
            write_text(out, "\\u003c");
        i = n + 1;
    }
}

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static void write_icon(struct sv_output *out)
{
    const struct sv_page_file *icon = sv_page_file("/icon.svg");
    struct sv_buf text;
    sv_buf_init(&text, 1u << 20);
    sv_buf_str(&text, "src=\"data:image/svg+xml;base64,");
    put_base64(&text, icon->bytes, (size_t)(icon->end - icon->bytes));
    sv_buf_byte(&text, '"');
    sv_output_write(out, text.data, text.len);
    sv_buf_fini(&text);
}

/* The page without what it would load: styles are in it, scripts follow. */
static void write_page(struct sv_output *out)
{
    const struct sv_page_file *page = sv_page_file("/");
    const unsigned char *at = page->bytes;
    while (at < page->end) {
        const unsigned char *line = memchr(at, '\n', (size_t)(page->end - at));
        const unsigned char *next = line ? line + 1 : page->end;
        char text[512];
        size_t n = (size_t)(next - at) < sizeof text - 1 ? (size_t)(next - at) : sizeof text - 1;
        memcpy(text, at, n);
        text[n] = 0;
        char *icon = strstr(text, "src=\"icon.svg\"");
        if (icon) {
            sv_output_write(out, text, (size_t)(icon - text));
            write_icon(out);
            write_text(out, icon + strlen("src=\"icon.svg\""));
        } else if (!strstr(text, "<link ") && !strstr(text, "<script ") &&
                   !strstr(text, "</body>") && !strstr(text, "</html>"))
            sv_output_write(out, at, (size_t)(next - at));
        if (strstr(text, "<meta charset"))
            write_text(out,
                       "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                       "script-src 'unsafe-inline' blob:; style-src 'unsafe-inline'; img-src "
                       "blob: data:; base-uri 'none'; form-action 'none'\">\n");
        at = next;
    }
}

static void write_styles(struct sv_output *out)
{
    for (const struct sv_page_file *f = sv_page_files; f->path; f++) {
        if (!ends_with(f->path, ".css"))
            continue;
        write_text(out, "<style>\n");
        sv_output_write(out, f->bytes, (size_t)(f->end - f->bytes));
        write_text(out, "</style>\n");
    }
}

static const char loader[] =
    "<script type=\"module\">\n"
    "const bundle = JSON.parse(document.getElementById('stave-bundle').textContent), urls = new "
    "Map();\n"
    "// A module becomes a blob after those that it imports.\n"
    "function url(name) {\n"
    "  if (!urls.has(name)) {\n"
    "    const text = bundle.modules[name].replace(/(from|import)(\\s*)'\\.\\/([\\w.]+)'/g, (all, "
    "word, space, other) => `${word}${space}'${url(other)}'`);\n"
    "    urls.set(name, URL.createObjectURL(new Blob([text], { type: 'text/javascript' })));\n"
    "  }\n"
    "  return urls.get(name);\n"
    "}\n"
    "const { start } = await import(url('offline.js'));\n"
    "await start(bundle.trace);\n"
    "await import(url('main.js'));\n"
    "</script>\n</body>\n</html>\n";

static int write_bundle(struct sv_output *out, const struct sv_buf *trace, struct sv_err *err)
{
    struct sv_buf json, packed;
    struct sv_json j;
    sv_buf_init(&json, (size_t)1 << 30);
    sv_buf_init(&packed, (size_t)1 << 30);
    int code = pack(trace, &packed, err);
    sv_json_init(&j, &json);
    sv_json_begin(&j, '{');
    sv_json_put(&j, "modules", begin, '{');
    for (const struct sv_page_file *f = sv_page_files; f->path; f++)
        if (ends_with(f->path, ".js")) {
            sv_json_key(&j, f->path + 1, strlen(f->path + 1));
            sv_json_text(&j, (const char *)f->bytes, (size_t)(f->end - f->bytes));
        }
    sv_json_end(&j);
    sv_json_put(&j, "trace", text, sv_buf_cstr(&packed), packed.len);
    sv_json_end(&j);
    if (code >= 0 && (json.failed || packed.failed))
        code = sv_error(err, SV_ELIMIT, "the trace is too large for a page");
    write_text(out, "<script type=\"application/json\" id=\"stave-bundle\">");
    write_json(out, &json);
    write_text(out, "</script>\n");
    sv_buf_fini(&json);
    sv_buf_fini(&packed);
    return code;
}

int sv_view_export(struct sv_viewer *v, struct sv_output *out, struct sv_err *err)
{
    const struct sv_shown *s = sv_viewer_shown(v);
    struct sv_buf trace;
    if (s->trace->slices.n > SV_EXPORT_SLICES_MAX)
        return sv_error(err, SV_ELIMIT,
                        "the trace has %llu slices; a page can hold %u: take a part of it with "
                        "'stave cut --time'",
                        (unsigned long long)s->trace->slices.n, SV_EXPORT_SLICES_MAX);
    sv_buf_init(&trace, (size_t)1 << 30);
    put_trace(&trace, v, s);
    write_page(out);
    write_styles(out);
    int code =
        trace.failed
            ? sv_error(err, SV_ELIMIT,
                       "the trace is too large for a page: its arguments take more than 1 GiB")
            : write_bundle(out, &trace, err);
    write_text(out, loader);
    sv_buf_fini(&trace);
    return code;
}
