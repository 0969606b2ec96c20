/* /api/window and /api/names: what is to be painted, in pixels.
 *
 * The reply is the format SVW1 of docs/view_protocol.md. Names are collected while the rows are
 * encoded, and put in front. */
#include "view/answers.h"

#include "core/base/map.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#define PIXELS_MAX 8192
#define WIDTH_MAX  16384
#define NAMES_MAX  4096u /* past them only those of wide slices are sent */
#define WIDE       16u
#define NAME_BYTES 96u
#define LINES_MAX  20000u /* of all rows together */

struct reply {
    const struct sv_shown *s;
    struct sv_buf *out;
    struct sv_map names; /* those that are to be sent */
    struct sv_buf name_list;
    uint64_t n_names;
};

static void put_v(struct sv_buf *b, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        sv_buf_byte(b, (uint8_t)(v | 0x80));
    sv_buf_byte(b, (uint8_t)v);
}

static void put_z(struct sv_buf *b, int64_t v)
{
    put_v(b, (uint64_t)v << 1 ^ (uint64_t)(v >> 63));
}

static void put_f32(struct sv_buf *b, double d)
{
    double most = isfinite(d) ? FLT_MAX : INFINITY; /* what is finite stays so */
    float f = (float)(isnan(d) ? d : fmin(fmax(d, -most), most));
    sv_buf_add(b, &f, sizeof f);
}

/* No more than so many bytes, and no half character. */
static size_t cut_text(struct sv_text text)
{
    size_t n = text.len < NAME_BYTES ? text.len : NAME_BYTES;
    while (n < text.len && n > 0 && ((uint8_t)text.bytes[n] & 0xc0) == 0x80)
        n--;
    return n;
}

static void put_name(struct reply *r, sv_str name, uint32_t pixels)
{
    bool is_new;
    put_v(r->out, name);
    if (name == 0 || (r->n_names >= NAMES_MAX && pixels < WIDE))
        return;
    sv_map_add(&r->names, name, &is_new);
    if (!is_new)
        return;
    struct sv_text text = sv_dict_text(r->s->trace->dict, name);
    size_t n = cut_text(text);
    put_v(&r->name_list, name);
    put_v(&r->name_list, n);
    sv_buf_add(&r->name_list, text.bytes, n);
    r->n_names++;
}

static void put_dur(struct sv_buf *b, int64_t dur_ns)
{
    put_v(b, dur_ns == SV_UNFINISHED ? 0 : (uint64_t)dur_ns + 1);
}

enum { INSTANT = 1, UNFINISHED = 2, OTHER_TAIL = 4 };

static void put_item(struct reply *r, const struct sv_strip_item *item, int32_t *pixel,
                     uint32_t *slice)
{
    const struct sv_slices *c = &r->s->trace->slices;
    struct sv_buf *b = r->out;
    bool has_other = item->tail && item->last != item->longest;
    unsigned flags = (c->kind[item->longest] == SV_INSTANT ? INSTANT : 0u) |
                     (item->tail && c->dur_ns[item->last] == SV_UNFINISHED ? UNFINISHED : 0u) |
                     (has_other ? OTHER_TAIL : 0u);
    put_v(b, (uint64_t)((int64_t)item->pixel - *pixel));
    put_v(b, item->n);
    sv_buf_byte(b, (uint8_t)(flags | (sv_color_number(&r->s->colors, item->longest) & 7u) << 3));
    sv_buf_byte(b, item->cover);
    put_z(b, (int64_t)item->longest - *slice);
    put_name(r, c->name[item->longest], item->tail + 1);
    put_dur(b, c->dur_ns[item->longest]);
    put_v(b, item->tail);
    if (has_other) {
        put_z(b, (int64_t)item->last - item->longest);
        put_name(r, c->name[item->last], item->tail + 1);
        sv_buf_byte(b, (uint8_t)sv_color_number(&r->s->colors, item->last));
        put_dur(b, c->dur_ns[item->last]);
    }
    *pixel = item->pixel;
    *slice = item->longest;
}

static void put_slices(struct reply *r, const struct sv_pixels *px, const struct sv_ask_row *row,
                       struct sv_strip_items *items)
{
    sv_strips_row(r->s->strips, row->row, px, row->first_line, row->n_lines, items);
    sv_buf_byte(r->out, 0);
    put_v(r->out, row->first_line);
    put_v(r->out, items->n_lines);
    for (uint32_t l = 0; l < items->n_lines; l++) {
        int32_t pixel = px->left;
        uint32_t slice = 0;
        put_v(r->out, items->lines[l].n);
        for (size_t i = 0; i < items->lines[l].n; i++)
            put_item(r, &items->lines[l].items[i], &pixel, &slice);
    }
}

static void put_counter(struct reply *r, const struct sv_pixels *px, uint32_t row)
{
    struct sv_strip_points points = {0};
    int32_t pixel = px->left;
    sv_strips_counter(r->s->strips, row, px, &points);
    sv_buf_byte(r->out, 1);
    put_v(r->out, points.n);
    for (size_t i = 0; i < points.n; i++) {
        put_v(r->out, (uint64_t)((int64_t)points.items[i].pixel - pixel));
        put_f32(r->out, points.items[i].min);
        put_f32(r->out, points.items[i].max);
        put_f32(r->out, points.items[i].last);
        pixel = points.items[i].pixel;
    }
    free(points.items);
}

static const char *judge(const struct sv_ask *ask)
{
    uint64_t lines = 0;
    if (!ask->has_from || !ask->has_to || ask->to_ns <= ask->from_ns)
        return "'from' and 'to' must be times, 'from' the earlier one";
    if (ask->width < 1 || ask->width > WIDTH_MAX)
        return "'width' must be 1 to 16384";
    if (ask->left < -WIDTH_MAX || ask->right > 2 * WIDTH_MAX || ask->right <= ask->left ||
        ask->right - ask->left > PIXELS_MAX)
        return "'left' and 'right' must be pixels, at most 8192 of them";
    for (size_t i = 0; i < ask->n_rows; i++)
        lines += ask->rows[i].n_lines;
    return lines > LINES_MAX ? "too many lines" : NULL;
}

static bool put_rows(struct reply *r, const struct sv_ask *ask, const struct sv_pixels *px)
{
    struct sv_strip_items items = {0};
    bool is_old = false;
    for (size_t i = 0; i < ask->n_rows && !is_old; i++) {
        uint32_t row = ask->rows[i].row;
        put_v(r->out, row);
        if (r->s->rows->items[row].lines)
            put_slices(r, px, &ask->rows[i], &items);
        else
            put_counter(r, px, row);
        is_old = sv_viewer_is_old(r->s->viewer, ask->tab, (uint64_t)ask->seq);
    }
    sv_strip_items_fini(&items);
    return !is_old;
}

static void reply_window(struct sv_shown *s, const struct sv_ask *ask, struct sv_web_answer *a)
{
    struct sv_pixels px = {ask->from_ns, ask->to_ns, (uint32_t)ask->width, (int32_t)ask->left,
                           (int32_t)ask->right};
    struct sv_buf rows;
    sv_buf_init(&rows, a->body.limit);
    struct reply r = {.s = s, .out = &rows};
    sv_buf_init(&r.name_list, a->body.limit);
    put_v(&rows, ask->n_rows);
    if (!put_rows(&r, ask, &px)) {
        sv_web_error(a, 409, SV_ASKED_NEWER);
    } else {
        a->type = "application/octet-stream";
        sv_buf_str(&a->body, "SVW1");
        put_v(&a->body, r.n_names);
        sv_buf_add(&a->body, r.name_list.data, r.name_list.len);
        sv_buf_add(&a->body, rows.data, rows.len);
        a->body.failed |= rows.failed || r.name_list.failed;
    }
    sv_buf_fini(&rows);
    sv_buf_fini(&r.name_list);
    sv_map_fini(&r.names);
}

void sv_answer_window(struct sv_shown *s, const struct sv_web_request *q, struct sv_web_answer *a)
{
    struct sv_ask ask;
    if (sv_ask_read(&ask, s, q, a)) {
        const char *wrong = judge(&ask);
        if (wrong)
            sv_web_error(a, 400, "%s", wrong);
        else
            reply_window(s, &ask, a);
    }
    sv_ask_fini(&ask);
}

void sv_answer_names(struct sv_shown *s, const struct sv_web_request *q, struct sv_web_answer *a)
{
    struct sv_ask ask;
    struct sv_json j;
    if (sv_ask_read(&ask, s, q, a)) {
        sv_json_init(&j, &a->body);
        sv_json_begin(&j, '{');
        sv_json_put(&j, "names", begin, '[');
        for (size_t i = 0; i < ask.n_names; i++) {
            if ((uint64_t)ask.names[i] >= s->trace->dict->n_strings)
                continue;
            struct sv_text text = sv_dict_text(s->trace->dict, (sv_str)ask.names[i]);
            sv_json_begin(&j, '{');
            sv_json_put(&j, "name", i64, ask.names[i]);
            sv_json_put(&j, "text", text, text.bytes, cut_text(text));
            sv_json_end(&j);
        }
        sv_json_end(&j);
        sv_json_end(&j);
    }
    sv_ask_fini(&ask);
}
