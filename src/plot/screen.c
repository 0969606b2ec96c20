/* Cells, and the time line in them. Called by `stave show`. Knows escape sequences for colours and
 * places, but no terminal. */
#include "plot/screen.h"

#include "core/base/mem.h"
#include "core/base/utf8.h"
#include "plot/axis.h"
#include "plot/crowds.h"

#include <math.h>
#include <stdlib.h>

void sv_screen_init(struct sv_screen *s, unsigned width, unsigned height)
{
    *s = (struct sv_screen){.width = width, .height = height};
    s->glyphs = sv_alloc(((size_t)width * height + 1) * sizeof *s->glyphs);
    sv_screen_clear(s);
}

void sv_screen_fini(struct sv_screen *s)
{
    free(s->glyphs);
    *s = (struct sv_screen){0};
}

void sv_screen_clear(struct sv_screen *s)
{
    for (size_t i = 0; i < (size_t)s->width * s->height; i++)
        s->glyphs[i] = (struct sv_glyph){.code = ' ', .fg = SV_NO_COLOR, .bg = SV_NO_COLOR};
}

static void put(struct sv_screen *s, unsigned x, unsigned y, uint32_t code, struct sv_pen pen)
{
    if (x < s->width && y < s->height)
        s->glyphs[(size_t)y * s->width + x] =
            (struct sv_glyph){.code = code, .fg = pen.fg, .bg = pen.bg, .flags = pen.flags};
}

static unsigned columns_of(const char *bytes, size_t len, unsigned at_most)
{
    unsigned columns = 0;
    for (size_t i = 0, n; i < len && columns <= at_most; i += n)
        columns += sv_char_columns(sv_text_char(bytes + i, len - i, &n));
    return columns;
}

unsigned sv_screen_text(struct sv_screen *s, unsigned x, unsigned y, unsigned max_columns,
                        const char *bytes, size_t len, struct sv_pen pen)
{
    bool cut = columns_of(bytes, len, max_columns) > max_columns;
    unsigned used = 0, most = cut && max_columns ? max_columns - 1 : max_columns;
    for (size_t i = 0, n; i < len; i += n) {
        uint32_t c = sv_text_char(bytes + i, len - i, &n);
        unsigned columns = sv_char_columns(c);
        if (s->is_ascii && c > 0x7e) {
            c = c == 0xb5 ? 'u' : c == 0xb7 ? '-' : c == 0x2026 ? '~' : '?';
            columns = columns ? 1 : 0;
        }
        if (columns == 0)
            continue;
        if (used + columns > most)
            break;
        put(s, x + used, y, c, pen);
        if (columns == 2)
            put(s, x + used + 1, y, 0, pen);
        used += columns;
    }
    if (cut && max_columns)
        put(s, x + used++, y, s->is_ascii ? '~' : 0x2026, pen);
    return used;
}

unsigned sv_screen_printf(struct sv_screen *s, unsigned x, unsigned y, unsigned max_columns,
                          struct sv_pen pen, const char *fmt, ...)
{
    struct sv_buf text;
    va_list args;
    sv_buf_init(&text, 4096);
    va_start(args, fmt);
    sv_buf_vprintf(&text, fmt, args);
    va_end(args);
    unsigned used = sv_screen_text(s, x, y, max_columns, sv_buf_cstr(&text), text.len, pen);
    sv_buf_fini(&text);
    return used;
}

/* ---- slices ---- */

/* [name----] in w > 1 cells, the selected one <name====>. */
static void draw_brackets(struct sv_screen *s, unsigned x, unsigned y, unsigned w,
                          struct sv_text name, bool is_selected)
{
    struct sv_pen pen = SV_PLAIN_PEN;
    pen.flags = is_selected ? SV_CELL_BOLD : 0;
    for (unsigned i = 1; i + 1 < w; i++)
        put(s, x + i, y, is_selected ? '=' : '-', pen);
    put(s, x, y, is_selected ? '<' : '[', pen);
    if (w > 3)
        sv_screen_text(s, x + 1, y, w - 2, name.bytes, name.len, pen);
    put(s, x + w - 1, y, is_selected ? '>' : ']', pen);
}

static void draw_box(struct sv_screen *s, unsigned x, unsigned y, unsigned w, struct sv_text name,
                     struct sv_pen pen)
{
    for (unsigned i = 0; i < w; i++)
        put(s, x + i, y, ' ', pen);
    /* A thin line on the left tells neighbours of one colour apart. */
    struct sv_pen edge = pen;
    edge.fg = sv_color_mix(pen.bg, 0xffffff, 0.75);
    put(s, x, y, s->is_ascii ? '|' : 0x258f, edge);
    if (w > 3)
        sv_screen_text(s, x + 1, y, w - 1, name.bytes, name.len, pen);
}

/* A cell of one slice, or of many: then by how much of it they cover. */
static uint32_t narrow_glyph(const struct sv_screen *s, const struct sv_rect *r)
{
    static const char ascii[] = ".:+#";
    unsigned level = r->cover / 64u;
    if (r->n_merged > 1)
        return s->is_ascii ? (uint32_t)ascii[level] : level < 3 ? 0x2591u + level : 0x2588u;
    bool is_full = r->x1 - r->x0 >= 0.7;
    return s->is_ascii || s->depth == SV_DEPTH_MONO ? '|' : is_full ? 0x2588 : 0x258c;
}

static void draw_rect(struct sv_screen *s, unsigned x, unsigned y, const struct sv_layout *l,
                      const struct sv_rect *r, const struct sv_colors *colors, bool is_selected)
{
    double x0 = fmin(fmax(round(r->x0), 0), l->width - 1);
    double x1 = fmin(fmax(round(r->x1), x0 + 1), l->width);
    bool is_narrow = r->x1 - r->x0 < 1 || x1 - x0 < 2;
    unsigned at = x + (unsigned)(is_narrow ? fmin(floor(r->x0), l->width - 1) : x0);
    struct sv_text name = sv_dict_text(l->trace->dict, l->trace->slices.name[r->slice]);
    uint32_t color = sv_color_of(colors, r->slice);
    struct sv_pen pen = {.fg = color, .bg = SV_NO_COLOR};
    if (is_narrow && is_selected) {
        put(s, at, y, '*',
            (struct sv_pen){
                .fg = SV_NO_COLOR, .bg = SV_NO_COLOR, .flags = SV_CELL_BOLD | SV_CELL_REVERSE});
    } else if (is_narrow) {
        put(s, at, y, narrow_glyph(s, r), pen);
    } else if (s->depth == SV_DEPTH_MONO) {
        draw_brackets(s, at, y, (unsigned)(x1 - x0), name, is_selected);
    } else {
        pen = (struct sv_pen){.fg = is_selected ? 0x000000 : sv_color_ink_on(color),
                              .bg = is_selected ? 0xffffff : color,
                              .flags = is_selected ? SV_CELL_BOLD : 0};
        draw_box(s, at, y, (unsigned)(x1 - x0), name, pen);
    }
}

/* The rectangle of a slice that was merged with others, if it belongs to this line and is in the
 * window. */
static bool own_rect(const struct sv_layout *l, size_t row, uint32_t line, uint32_t slice,
                     struct sv_rect *r)
{
    const struct sv_row_info *info = &l->index->rows->items[row];
    const struct sv_slices *c = &l->trace->slices;
    int64_t end = sv_trace_end_ns(l->trace, slice);
    for (size_t i = 0; i < info->n_members; i++) {
        const struct sv_row_member *m = &l->index->rows->members[info->first_member + i];
        if (m->track != c->track[slice])
            continue;
        *r = (struct sv_rect){.x0 = sv_layout_x(l, c->ts_ns[slice]),
                              .x1 = sv_layout_x(l, end),
                              .line = line,
                              .n_merged = 1,
                              .slice = slice};
        return sv_layout_line(l->index, m, slice) == line && c->ts_ns[slice] < l->to_ns &&
               end >= l->from_ns;
    }
    return false;
}

void sv_screen_slices(struct sv_screen *s, unsigned x, unsigned y, const struct sv_layout *l,
                      size_t row, uint32_t line, const struct sv_colors *colors, uint32_t selected)
{
    const struct sv_rect *rects = l->rects + l->rows[row].first_rect;
    struct sv_rect chosen;
    for (size_t i = 0; i < l->rows[row].n_rects; i++) {
        if (rects[i].line == line)
            draw_rect(s, x, y, l, &rects[i], colors, false);
    }
    if (selected != SV_NO_ROW && own_rect(l, row, line, selected, &chosen))
        draw_rect(s, x, y, l, &chosen, colors, true);
}

/* ---- counters and axis ---- */

/* Of 8 levels, 0 is the lowest. */
static uint32_t level_glyph(const struct sv_screen *s, int level)
{
    static const char ascii[] = "_.-=+*%#";
    level = level < 0 ? 0 : level > 7 ? 7 : level;
    return s->is_ascii ? (uint32_t)ascii[level] : 0x2581u + (uint32_t)level;
}

void sv_screen_density(struct sv_screen *s, unsigned x, unsigned y, const struct sv_layout *l,
                       const uint32_t *rows, size_t n)
{
    size_t width = (size_t)l->width;
    float *at_once = sv_alloc((width + 1) * sizeof *at_once), most = 0;
    struct sv_pen pen = {.fg = sv_palette[0], .bg = SV_NO_COLOR};
    for (size_t i = 0; i < n; i++)
        sv_row_at_once(l, rows[i], at_once);
    for (size_t i = 0; i < width; i++)
        most = at_once[i] > most ? at_once[i] : most;
    for (size_t i = 0; i < width; i++)
        if (at_once[i] > 0)
            put(s, x + (unsigned)i, y, level_glyph(s, (int)lroundf(at_once[i] / most * 7)), pen);
    free(at_once);
}

/* What a scale has no place for: NaN, and infinities. */
static uint32_t odd_sign(const struct sv_screen *s, double v)
{
    if (isnan(v))
        return s->is_ascii ? 'N' : 0xd7; /* a cross */
    return s->is_ascii ? (v > 0 ? '^' : 'v') : v > 0 ? 0x2191u : 0x2193u;
}

void sv_screen_counter(struct sv_screen *s, unsigned x, unsigned y, const struct sv_layout *l,
                       size_t row)
{
    const struct sv_row *r = &l->rows[row];
    const struct sv_point *points = l->points + r->first_point;
    double low = fmin(r->min, 0), range = fmax(r->max, 0) - low;
    size_t next = 0;
    double value = 0;
    struct sv_pen pen = {.fg = sv_palette[0], .bg = SV_NO_COLOR},
                  warn = {.fg = SV_COLOR_WARN, .bg = SV_NO_COLOR};
    for (unsigned i = 0; i < (unsigned)l->width; i++) {
        bool has_more = next < r->n_points && points[next].x < i + 1;
        double most = has_more ? -INFINITY : value, odd = has_more ? 0 : value;
        for (; next < r->n_points && points[next].x < i + 1; next++) {
            value = points[next].value;
            if (isfinite(value))
                most = fmax(most, points[next].max);
            else
                odd = isnan(odd) ? odd : value;
        }
        if (next == 0)
            continue;
        if (!isfinite(odd)) {
            put(s, x + i, y, odd_sign(s, odd), warn);
            continue;
        }
        int level = range > 0 ? (int)lround((most - low) / range * 7) : 0;
        put(s, x + i, y, level_glyph(s, level), pen);
    }
}

void sv_screen_axis(struct sv_screen *s, unsigned x, unsigned y, const struct sv_layout *l)
{
    struct sv_axis a = {.from = (double)l->from_ns - (double)l->trace->first_ns,
                        .to = (double)l->to_ns - (double)l->trace->first_ns,
                        .at0 = 0,
                        .at1 = l->width,
                        .unit = SV_AXIS_TIME};
    double step = sv_axis_step(&a, l->width / 14);
    struct sv_pen pen = {.fg = SV_NO_COLOR, .bg = SV_NO_COLOR, .flags = SV_CELL_DIM};
    struct sv_buf text;
    unsigned free_from = 0;
    sv_buf_init(&text, 256);
    for (double k = ceil(a.from / step - 1e-9); k * step < a.to; k++) {
        double at = fmax(floor(sv_axis_place(&a, k * step)), 0);
        sv_buf_clear(&text);
        sv_axis_format(&text, &a, k * step, step);
        if (at < free_from || at >= l->width)
            continue;
        put(s, x + (unsigned)at, y, s->is_ascii ? '|' : 0x2502, pen);
        free_from = (unsigned)at + 2;
        unsigned max_columns = (unsigned)(l->width - at) - 1;
        if (columns_of(sv_buf_cstr(&text), text.len, max_columns) <= max_columns)
            free_from += sv_screen_text(s, x + (unsigned)at + 1, y, max_columns, sv_buf_cstr(&text),
                                        text.len, pen);
    }
    sv_buf_fini(&text);
}

/* ---- writing ---- */

/* The nearest of the 6 × 6 × 6 colours of 256-colour terminals. */
static unsigned cube(uint32_t color)
{
    unsigned number = 16, weights[] = {36, 6, 1};
    for (unsigned i = 0; i < 3; i++) {
        unsigned v = color >> (16 - 8 * i) & 255;
        unsigned level = v < 48 ? 0 : v < 115 ? 1 : (v - 35) / 40;
        number += weights[i] * level;
    }
    return number;
}

static void add_color(struct sv_buf *to, enum sv_depth depth, unsigned base, uint32_t color)
{
    if (color == SV_NO_COLOR)
        return;
    if (depth == SV_DEPTH_TRUE)
        sv_buf_printf(to, ";%u;2;%u;%u;%u", base, color >> 16 & 255, color >> 8 & 255, color & 255);
    else
        sv_buf_printf(to, ";%u;5;%u", base, cube(color));
}

static void add_style(const struct sv_screen *s, const struct sv_glyph *g, struct sv_buf *to)
{
    sv_buf_str(to, "\x1b[0");
    if (g->flags & SV_CELL_BOLD)
        sv_buf_str(to, ";1");
    if (g->flags & SV_CELL_DIM)
        sv_buf_str(to, ";2");
    if (g->flags & SV_CELL_REVERSE)
        sv_buf_str(to, ";7");
    if (s->depth != SV_DEPTH_MONO) {
        add_color(to, s->depth, 38, g->fg);
        add_color(to, s->depth, 48, g->bg);
    }
    sv_buf_byte(to, 'm');
}

static bool looks_same(const struct sv_screen *s, const struct sv_glyph *a,
                       const struct sv_glyph *b)
{
    return a->flags == b->flags &&
           (s->depth == SV_DEPTH_MONO || (a->fg == b->fg && a->bg == b->bg));
}

static void write_line(const struct sv_screen *s, unsigned y, bool has_styles, struct sv_buf *to)
{
    const struct sv_glyph *line = s->glyphs + (size_t)y * s->width;
    struct sv_glyph now = {.fg = SV_NO_COLOR, .bg = SV_NO_COLOR};
    unsigned end = s->width;
    while (end && line[end - 1].code == ' ' && line[end - 1].bg == SV_NO_COLOR &&
           !(line[end - 1].flags & SV_CELL_REVERSE))
        end--;
    for (unsigned x = 0; x < end; x++) {
        char bytes[4];
        if (has_styles && !looks_same(s, &line[x], &now)) {
            add_style(s, &line[x], to);
            now = line[x];
        }
        if (line[x].code)
            sv_buf_add(to, bytes, sv_utf8_encode(bytes, line[x].code));
    }
    if (has_styles && (now.flags || now.fg != SV_NO_COLOR || now.bg != SV_NO_COLOR))
        sv_buf_str(to, "\x1b[0m");
}

void sv_screen_write(const struct sv_screen *s, bool is_whole, struct sv_buf *to)
{
    bool has_styles = is_whole || s->depth != SV_DEPTH_MONO;
    for (unsigned y = 0; y < s->height; y++) {
        if (is_whole)
            sv_buf_printf(to, "\x1b[%u;1H", y + 1);
        write_line(s, y, has_styles, to);
        sv_buf_str(to, is_whole ? "\x1b[K" : "\n");
    }
}
