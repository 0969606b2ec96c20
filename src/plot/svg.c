/* The SVG painter. Called by the commands with a finished picture.
 *
 * Marks of the zoom area and ticks are put into groups that the script finds by class (z, k). Every
 * number has at most two decimals: files stay small, and equal pictures are equal bytes. */
#include "plot/svg.h"

#include "plot/colors.h"

#include <math.h>

#define LABEL_SIZE 10.0
#define LABEL_PAD  3.0

static void add_escaped(struct sv_buf *b, const char *s, size_t len)
{
    for (size_t i = 0, n; i < len; i += n) {
        uint32_t c = sv_text_char(s + i, len - i, &n);
        if (c == '&')
            sv_buf_str(b, "&amp;");
        else if (c == '<')
            sv_buf_str(b, "&lt;");
        else if (c == '>')
            sv_buf_str(b, "&gt;");
        else if (c == '"')
            sv_buf_str(b, "&quot;");
        else if (s[i] == '\n')
            sv_buf_byte(b, '\n');
        else if (c == 0xfffd)
            sv_buf_str(b, "\xef\xbf\xbd");
        else
            sv_buf_add(b, s + i, n);
    }
}

static void add_number(struct sv_buf *b, double v)
{
    double rounded = round(v * 100);
    if (!isfinite(rounded) || fabs(rounded) > 1e15)
        rounded = 0;
    int64_t n = (int64_t)rounded;
    if (n < 0)
        sv_buf_byte(b, '-');
    uint64_t u = n < 0 ? (uint64_t)-n : (uint64_t)n;
    sv_buf_u64(b, u / 100);
    if (u % 100 == 0)
        return;
    sv_buf_byte(b, '.');
    sv_buf_byte(b, (uint8_t)('0' + u % 100 / 10));
    if (u % 10)
        sv_buf_byte(b, (uint8_t)('0' + u % 10));
}

static void add_attribute(struct sv_buf *b, const char *name, double v)
{
    sv_buf_byte(b, ' ');
    sv_buf_str(b, name);
    sv_buf_str(b, "=\"");
    add_number(b, v);
    sv_buf_byte(b, '"');
}

static void add_color(struct sv_buf *b, const char *name, uint32_t color)
{
    sv_buf_printf(b, " %s=\"#%06x\"", name, color);
}

static const char *bytes_of(const struct sv_picture *p, struct sv_ref r)
{
    return (const char *)p->text.data + r.at;
}

static void add_title(struct sv_buf *b, const struct sv_picture *p, struct sv_ref title)
{
    if (title.len == 0)
        return;
    sv_buf_str(b, "<title>");
    add_escaped(b, bytes_of(p, title), title.len);
    sv_buf_str(b, "</title>");
}

/* The label, shortened to max_width. */
static void add_fitted(struct sv_buf *b, const struct sv_picture *p, struct sv_ref label,
                       double size, double max_width)
{
    bool cut = false;
    size_t len = label.len;
    if (max_width > 0)
        len = sv_text_fit(bytes_of(p, label), label.len, size, max_width, &cut);
    add_escaped(b, bytes_of(p, label), len);
    if (cut && len)
        sv_buf_str(b, SV_ELLIPSIS);
}

static void add_box(struct sv_buf *b, const struct sv_picture *p, const struct sv_picture_mark *m)
{
    bool is_group = m->title.len || m->label.len;
    if (is_group)
        sv_buf_str(b, "<g>");
    add_title(b, p, m->title);
    sv_buf_str(b, "<rect");
    add_attribute(b, "x", m->x);
    add_attribute(b, "y", m->y);
    add_attribute(b, "width", m->w);
    add_attribute(b, "height", m->h);
    add_color(b, "fill", m->color);
    if ((m->flags & SV_MARK_EDGE) && m->w > 3)
        sv_buf_str(b, " class=\"e\"");
    sv_buf_str(b, "/>");
    bool cut;
    double max_width = m->w - 2 * LABEL_PAD;
    if (m->label.len && max_width > 0 &&
        sv_text_fit(bytes_of(p, m->label), m->label.len, LABEL_SIZE, max_width, &cut)) {
        sv_buf_str(b, "<text");
        add_attribute(b, "x", m->x + LABEL_PAD);
        add_attribute(b, "y", m->y + m->h / 2 + 3.5);
        if (sv_color_ink_on(m->color) == 0xffffff)
            sv_buf_str(b, " fill=\"#fff\"");
        sv_buf_str(b, ">");
        add_fitted(b, p, m->label, LABEL_SIZE, max_width);
        sv_buf_str(b, "</text>");
    }
    if (is_group)
        sv_buf_str(b, "</g>");
}

static void add_text(struct sv_buf *b, const struct sv_picture *p, const struct sv_picture_mark *m)
{
    static const char *const anchors[] = {"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
    sv_buf_str(b, "<text");
    add_attribute(b, "x", m->x);
    add_attribute(b, "y", m->y);
    if (m->h != LABEL_SIZE)
        add_attribute(b, "font-size", m->h);
    sv_buf_str(b, anchors[m->anchor]);
    if (m->flags & SV_MARK_BOLD)
        sv_buf_str(b, " font-weight=\"bold\"");
    add_color(b, "fill", m->color);
    sv_buf_str(b, ">");
    add_title(b, p, m->title);
    /* Bold is wider, by about a tenth. */
    add_fitted(b, p, m->label, m->flags & SV_MARK_BOLD ? m->h * 1.1 : m->h, m->w);
    sv_buf_str(b, "</text>");
}

static void add_path(struct sv_buf *b, const struct sv_picture *p, const struct sv_picture_mark *m)
{
    sv_buf_str(b, "<path d=\"");
    if (m->shape == SV_SHAPE_LINE) {
        sv_buf_byte(b, 'M');
        add_number(b, m->x);
        sv_buf_byte(b, ' ');
        add_number(b, m->y);
        sv_buf_byte(b, 'L');
        add_number(b, m->x + m->w);
        sv_buf_byte(b, ' ');
        add_number(b, m->y + m->h);
    }
    for (size_t i = 0; i < m->n_points; i++) {
        const struct sv_xy *at = &p->points[m->points + i];
        sv_buf_byte(b, i ? 'L' : 'M');
        add_number(b, at->x);
        sv_buf_byte(b, ' ');
        add_number(b, at->y);
    }
    sv_buf_byte(b, '"');
    if (m->flags & SV_MARK_FILLED) {
        add_color(b, "fill", m->color);
    } else {
        sv_buf_str(b, " fill=\"none\"");
        add_color(b, "stroke", m->color);
        if (m->stroke != 1)
            add_attribute(b, "stroke-width", m->stroke);
    }
    if (m->flags & SV_MARK_DASHED)
        sv_buf_str(b, " stroke-dasharray=\"4 3\"");
    if (m->flags & SV_MARK_ZOOM)
        sv_buf_str(b, " vector-effect=\"non-scaling-stroke\"");
    if (m->title.len) {
        sv_buf_byte(b, '>');
        add_title(b, p, m->title);
        sv_buf_str(b, "</path>");
    } else {
        sv_buf_str(b, "/>");
    }
}

static void add_dot(struct sv_buf *b, const struct sv_picture *p, const struct sv_picture_mark *m)
{
    sv_buf_str(b, "<circle");
    add_attribute(b, "cx", m->x);
    add_attribute(b, "cy", m->y);
    add_attribute(b, "r", m->w);
    add_color(b, "fill", m->color);
    sv_buf_str(b, m->title.len ? ">" : "/>");
    if (m->title.len) {
        add_title(b, p, m->title);
        sv_buf_str(b, "</circle>");
    }
}

static void add_mark(struct sv_buf *b, const struct sv_picture *p, const struct sv_picture_mark *m)
{
    switch (m->shape) {
    case SV_SHAPE_BOX: add_box(b, p, m); break;
    case SV_SHAPE_TEXT: add_text(b, p, m); break;
    case SV_SHAPE_DOT: add_dot(b, p, m); break;
    default: add_path(b, p, m); break;
    }
    sv_buf_byte(b, '\n');
}

static void add_head(struct sv_buf *b, const struct sv_picture *p)
{
    sv_buf_printf(b,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
                  "viewBox=\"0 0 %.0f %.0f\" font-family=\"'DejaVu Sans',Verdana,sans-serif\" "
                  "font-size=\"10\">\n",
                  p->width, p->height, p->width, p->height);
    if (p->title.len) {
        add_title(b, p, p->title);
        sv_buf_byte(b, '\n');
    }
    sv_buf_str(b, "<style>text{pointer-events:none;white-space:pre}.e{stroke:#fff;stroke-width:.6}"
                  ".z g:hover rect{stroke:#000;stroke-width:1}</style>\n"
                  "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");
    if (!p->zoom.is_on)
        return;
    sv_buf_str(b, "<clipPath id=\"area\"><rect");
    add_attribute(b, "x", p->zoom.x0);
    add_attribute(b, "y", 0);
    add_attribute(b, "width", p->zoom.x1 - p->zoom.x0 + 1);
    add_attribute(b, "height", p->height);
    sv_buf_str(b, "/></clipPath>\n");
}

static void add_script(struct sv_buf *b, const struct sv_zoom_area *z)
{
    sv_buf_printf(b,
                  "<script><![CDATA[\nvar area = {x0: %.2f, x1: %.2f, top: %.2f, bottom: %.2f, "
                  "from: %.17g, to: %.17g, unit: %d, ticks: %s, label: %.2f};\n",
                  z->x0, z->x1, z->top, z->bottom, z->from, z->to, (int)z->unit,
                  z->has_ticks ? "true" : "false", z->label_y);
    for (const char *const *line = sv_svg_script; *line; line++)
        sv_buf_str(b, *line);
    sv_buf_str(b, "]]></script>\n");
}

/* Runs of marks that belong to one group: z (the zoom area), k (ticks), or none. */
static unsigned group_of(const struct sv_picture *p, const struct sv_picture_mark *m)
{
    return p->zoom.is_on ? m->flags & (SV_MARK_ZOOM | SV_MARK_TICK) : 0;
}

void sv_svg_paint(struct sv_buf *b, const struct sv_picture *p)
{
    unsigned group = 0;
    add_head(b, p);
    for (size_t i = 0; i < p->n; i++) {
        unsigned mine = group_of(p, &p->marks[i]);
        if (mine != group && group)
            sv_buf_str(b, "</g>\n");
        if (mine != group && mine)
            sv_buf_str(b, mine & SV_MARK_ZOOM ? "<g class=\"z\" clip-path=\"url(#area)\">\n"
                                              : "<g class=\"k\">\n");
        group = mine;
        add_mark(b, p, &p->marks[i]);
    }
    if (group)
        sv_buf_str(b, "</g>\n");
    if (p->zoom.is_on)
        add_script(b, &p->zoom);
    sv_buf_str(b, "</svg>\n");
}
