/* The list of marks that plots make and back ends paint, and what is known about texts before a
 * font is.
 *
 * Filled by the plots, read by the SVG and cairo painters. Knows no file format, and no trace. */
#include "plot/picture.h"

#include "core/base/mem.h"
#include "core/base/printable.h"
#include "core/base/utf8.h"

#include <stdlib.h>

void sv_picture_init(struct sv_picture *p, double width)
{
    *p = (struct sv_picture){.width = width};
    sv_buf_init(&p->text, (size_t)1 << 30);
}

void sv_picture_fini(struct sv_picture *p)
{
    free(p->marks);
    free(p->points);
    sv_buf_fini(&p->text);
    *p = (struct sv_picture){0};
}

struct sv_ref sv_picture_since(const struct sv_picture *p, size_t at)
{
    return (struct sv_ref){at, p->text.len - at};
}

struct sv_ref sv_picture_text(struct sv_picture *p, const char *bytes, size_t len)
{
    size_t at = p->text.len;
    sv_buf_add(&p->text, bytes, len);
    return sv_picture_since(p, at);
}

struct sv_ref sv_picture_printf(struct sv_picture *p, const char *fmt, ...)
{
    size_t at = p->text.len;
    va_list args;
    va_start(args, fmt);
    sv_buf_vprintf(&p->text, fmt, args);
    va_end(args);
    return sv_picture_since(p, at);
}

void sv_picture_add(struct sv_picture *p, const struct sv_picture_mark *m)
{
    SV_APPEND(p->marks, p->n, p->cap) = *m;
}

void sv_picture_box(struct sv_picture *p, double x, double y, double w, double h, uint32_t color)
{
    sv_picture_add(p, &(struct sv_picture_mark){
                          .shape = SV_SHAPE_BOX, .x = x, .y = y, .w = w, .h = h, .color = color});
}

void sv_picture_line(struct sv_picture *p, double x0, double y0, double x1, double y1,
                     uint32_t color)
{
    sv_picture_add(p, &(struct sv_picture_mark){.shape = SV_SHAPE_LINE,
                                                .x = x0,
                                                .y = y0,
                                                .w = x1 - x0,
                                                .h = y1 - y0,
                                                .stroke = 1,
                                                .color = color});
}

void sv_picture_label(struct sv_picture *p, double x, double y, double size, enum sv_anchor anchor,
                      unsigned flags, uint32_t color, double max_width, struct sv_ref text)
{
    sv_picture_add(p, &(struct sv_picture_mark){.shape = SV_SHAPE_TEXT,
                                                .anchor = (uint8_t)anchor,
                                                .flags = (uint8_t)flags,
                                                .x = x,
                                                .y = y,
                                                .w = max_width,
                                                .h = size,
                                                .color = color,
                                                .label = text});
}

struct sv_picture_mark *sv_picture_path(struct sv_picture *p, uint32_t color, double stroke,
                                        unsigned flags)
{
    sv_picture_add(p, &(struct sv_picture_mark){.shape = SV_SHAPE_PATH,
                                                .flags = (uint8_t)flags,
                                                .color = color,
                                                .stroke = stroke,
                                                .points = p->n_points});
    return &p->marks[p->n - 1];
}

void sv_picture_point(struct sv_picture *p, double x, double y)
{
    SV_APPEND(p->points, p->n_points, p->cap_points) = (struct sv_xy){x, y};
    p->marks[p->n - 1].n_points++;
}

void sv_picture_move(struct sv_picture *p, size_t from, size_t to)
{
    size_t n = p->n - from;
    if (n == 0 || to >= from)
        return;
    struct sv_picture_mark *moved = sv_alloc(n * sizeof *moved);
    memcpy(moved, p->marks + from, n * sizeof *moved);
    memmove(p->marks + to + n, p->marks + to, (from - to) * sizeof *moved);
    memcpy(p->marks + to, moved, n * sizeof *moved);
    free(moved);
}

/* ---- texts ---- */

/* Advance widths of the printable ASCII characters of DejaVu Sans, which is as wide as sans-serif
 * fonts get: hundredths of the font size. */
static const uint8_t ascii_width[95] = {
    32, 40, 46, 84, 64, 95, 78, 28, 39,  39, 50, 84, 32, 36, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 34, 34, 84, 84, 84, 53, 100, 68, 69, 70, 77, 63, 58, 78, 75, 30, 30, 66, 56, 86, 75, 79,
    60, 79, 70, 64, 61, 73, 68, 99, 69,  61, 69, 39, 34, 39, 84, 50, 50, 61, 64, 55, 64, 62, 35, 64,
    63, 28, 28, 58, 28, 97, 63, 61, 64,  64, 41, 52, 39, 63, 59, 82, 59, 59, 53, 64, 34, 64, 84};

struct range {
    uint32_t first, last;
};

static bool is_in(const struct range *r, size_t n, uint32_t c)
{
    for (size_t i = 0; i < n; i++)
        if (c >= r[i].first && c <= r[i].last)
            return true;
    return false;
}

unsigned sv_char_columns(uint32_t c)
{
    static const struct range none[] = {{0x300, 0x36f},   {0x200b, 0x200f}, {0x202a, 0x202e},
                                        {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xe0100, 0xe01ef}};
    static const struct range wide[] = {{0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0x33ff},
                                        {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xa000, 0xa4cf},
                                        {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe30, 0xfe4f},
                                        {0xff00, 0xff60},   {0xffe0, 0xffe6},   {0x1f300, 0x1f64f},
                                        {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};
    if (c < 0x300)
        return 1;
    if (is_in(none, sizeof none / sizeof *none, c))
        return 0;
    return is_in(wide, sizeof wide / sizeof *wide, c) ? 2 : 1;
}

uint32_t sv_text_char(const char *s, size_t len, size_t *n)
{
    size_t bytes = sv_utf8_length(s, len);
    *n = bytes ? bytes : 1;
    if (sv_printable_length(s, bytes) == 0)
        return 0xfffd;
    uint32_t c = sv_utf8_code_point(s, bytes);
    return c == 0xfffe || c == 0xffff ? 0xfffd : c;
}

static double char_width(uint32_t c, double size)
{
    if (c >= 0x20 && c < 0x7f)
        return ascii_width[c - 0x20] * size / 100;
    unsigned columns = sv_char_columns(c);
    return columns == 0 ? 0 : columns == 2 ? size : 0.8 * size;
}

double sv_text_width(const char *bytes, size_t len, double size)
{
    double width = 0;
    for (size_t i = 0, n; i < len; i += n)
        width += char_width(sv_text_char(bytes + i, len - i, &n), size);
    return width;
}

size_t sv_text_fit(const char *bytes, size_t len, double size, double max_width, bool *cut)
{
    double width = 0, dots = char_width(0x2026, size);
    size_t fits = 0, chars = 0; /* what fits with the ellipsis after it */
    *cut = false;
    for (size_t i = 0, n; i < len; i += n) {
        width += char_width(sv_text_char(bytes + i, len - i, &n), size);
        if (width + dots <= max_width) {
            fits = i + n;
            chars++;
        }
        if (width > max_width) {
            *cut = true;
            return chars >= 2 ? fits : 0;
        }
    }
    return len;
}

void sv_text_clean(struct sv_buf *to, const char *bytes, size_t len)
{
    for (size_t i = 0, n; i < len; i += n) {
        uint32_t c = sv_text_char(bytes + i, len - i, &n);
        if (c == 0xfffd)
            sv_buf_str(to, "\xef\xbf\xbd");
        else
            sv_buf_add(to, bytes + i, n);
    }
}
