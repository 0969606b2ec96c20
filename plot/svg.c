/* The SVG painter of the time line: labels on the left, time axis on top, one band per row.
 *
 * Colours follow the category (the name where there is none) from a palette that colour-blind readers can tell apart (Okabe and Ito).
 * Every rectangle has a title, which browsers show on hover. No script, no font file, no network. */
#include "plot/svg.h"
#include "base/map.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <math.h>

#define LABEL_WIDTH    220.0
#define MARGIN         12.0
#define LINE_HEIGHT    16.0
#define COUNTER_HEIGHT 34.0
#define ROW_GAP        4.0
#define HEAD_HEIGHT    20.0
#define TOP            64.0
#define CHAR_WIDTH     6.2 /* of the 10 px sans-serif, generously */

static const char *const palette[] = {"#56b4e9", "#e69f00", "#009e73", "#f0e442",
                                      "#cc79a7", "#0072b2", "#d55e00", "#999999"};
static const bool is_dark[] = {false, false, true, false, false, true, true, false};

double sv_svg_plot_width(const struct sv_svg_options *options)
{
    double w = options->width - LABEL_WIDTH - 2 * MARGIN;
    return w < 100 ? 100 : w;
}

/* Text content: markup escaped, control characters and invalid UTF-8 replaced (XML has no place for them). */
static void add_text(struct sv_buf *b, const char *s, size_t len)
{
    for (size_t i = 0; i < len;) {
        size_t n = sv_utf8_length(s + i, len - i);
        unsigned char c = (unsigned char)s[i];
        if (c == '&')
            sv_buf_str(b, "&amp;");
        else if (c == '<')
            sv_buf_str(b, "&lt;");
        else if (c == '>')
            sv_buf_str(b, "&gt;");
        else if (c == '"')
            sv_buf_str(b, "&quot;");
        else if (n == 0 || c < 0x20)
            sv_buf_str(b, "\xef\xbf\xbd");
        else
            sv_buf_add(b, s + i, n);
        i += n ? n : 1;
    }
}

/* At most `max` characters, the last one an ellipsis when something was cut. */
static void add_clipped(struct sv_buf *b, struct sv_text t, size_t max)
{
    size_t chars = 0, i = 0;
    while (i < t.len && chars < max) {
        size_t n = sv_utf8_length(t.bytes + i, t.len - i);
        i += n ? n : 1;
        chars++;
    }
    if (i < t.len && max > 1) {
        i = 0;
        for (chars = 0; chars < max - 1; chars++) {
            size_t n = sv_utf8_length(t.bytes + i, t.len - i);
            i += n ? n : 1;
        }
        add_text(b, t.bytes, i);
        sv_buf_str(b, "\xe2\x80\xa6");
        return;
    }
    add_text(b, t.bytes, i);
}

static void add_duration(struct sv_buf *b, int64_t ns)
{
    static const struct {
        int64_t unit;
        const char *name;
    } units[] = {{1000000000, "s"}, {1000000, "ms"}, {1000, "\xc2\xb5s"}, {1, "ns"}};
    size_t u = 0;
    while (u < 3 && ns < units[u].unit)
        u++;
    sv_buf_printf(b, "%.6g %s", (double)ns / (double)units[u].unit, units[u].name);
}

static size_t color_of(const struct sv_trace *t, uint64_t slice)
{
    sv_str key = t->slices.cat[slice] ? t->slices.cat[slice] : t->slices.name[slice];
    struct sv_text text = sv_dict_text(t->dict, key);
    return (size_t)(sv_hash_bytes(text.bytes, text.len, 0) % (sizeof palette / sizeof *palette));
}

static void add_rect(struct sv_buf *b, const struct sv_layout *l, const struct sv_rect *r,
                     double top)
{
    const struct sv_trace *t = l->trace;
    struct sv_text name = sv_dict_text(t->dict, t->slices.name[r->slice]);
    double x = MARGIN + LABEL_WIDTH + r->x0, y = top + r->depth * LINE_HEIGHT;
    double w = r->x1 - r->x0 < 0.7 ? 0.7 : r->x1 - r->x0;
    size_t color = color_of(t, r->slice);
    sv_buf_printf(
        b, "<g><rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" fill=\"%s\"%s/><title>",
        x, y, w, LINE_HEIGHT - 1, palette[color],
        w > 3 ? " stroke=\"#fff\" stroke-width=\".6\"" : "");
    add_text(b, name.bytes, name.len);
    sv_buf_str(b, "\n");
    if (t->slices.dur_ns[r->slice] == SV_UNFINISHED)
        sv_buf_str(b, "never ended");
    else
        add_duration(b, t->slices.dur_ns[r->slice]);
    sv_buf_str(b, " at ");
    add_duration(b, t->slices.ts_ns[r->slice] - t->first_ns);
    if (r->n_merged > 1)
        sv_buf_printf(b, "\nthe longest of %u slices within a pixel", r->n_merged);
    sv_buf_str(b, "</title>");
    size_t room = (size_t)((w - 4) / CHAR_WIDTH);
    if (w > 4 + 3 * CHAR_WIDTH) {
        sv_buf_printf(b, "<text x=\"%.2f\" y=\"%.1f\"%s>", x + 2, y + 11,
                      is_dark[color] ? " fill=\"#fff\"" : "");
        add_clipped(b, name, room);
        sv_buf_str(b, "</text>");
    }
    sv_buf_str(b, "</g>\n");
}

static void add_counter(struct sv_buf *b, const struct sv_layout *l, const struct sv_row *row,
                        double top)
{
    double range = row->max - row->min, left = MARGIN + LABEL_WIDTH,
           floor = top + COUNTER_HEIGHT - 2;
    if (row->n_points == 0)
        return;
    sv_buf_str(b, "<path class=\"c\" d=\"");
    for (size_t i = 0; i < row->n_points; i++) {
        const struct sv_point *p = &l->points[row->first_point + i];
        double y = floor - (range > 0 ? (p->value - row->min) / range : 0.5) * (COUNTER_HEIGHT - 6);
        sv_buf_printf(b, i ? "H%.2fV%.2f" : "M%.2f %.2f", left + p->x, y);
    }
    sv_buf_printf(b, "H%.2f\"><title>%g to %g</title></path>\n", left + l->width, row->min,
                  row->max);
}

static void add_label(struct sv_buf *b, const struct sv_layout *l, const struct sv_row *row,
                      double y)
{
    const struct sv_track_info *t = &l->trace->dict->tracks[row->track];
    struct sv_text name = sv_dict_text(l->trace->dict, t->name);
    sv_buf_printf(b, "<text class=\"l\" x=\"%.1f\" y=\"%.1f\">", MARGIN + LABEL_WIDTH - 8, y + 11);
    if (name.len)
        add_clipped(b, name, (size_t)(LABEL_WIDTH / CHAR_WIDTH) - 2);
    else if (t->kind == SV_TRACK_THREAD)
        sv_buf_printf(b, "thread %" PRId64, t->tid);
    else
        sv_buf_str(b, sv_track_kind_name(t->kind));
    sv_buf_str(b, "</text>\n");
}

static void add_process(struct sv_buf *b, const struct sv_layout *l, const struct sv_row *row,
                        double y, double width)
{
    const struct sv_track_info *t = &l->trace->dict->tracks[row->process];
    struct sv_text name = sv_dict_text(l->trace->dict, t->name);
    sv_buf_printf(b,
                  "<rect x=\"0\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"#eee\"/><text "
                  "class=\"p\" x=\"%.1f\" y=\"%.1f\">",
                  y, width, HEAD_HEIGHT - 4, MARGIN, y + 12);
    if (row->process) {
        add_clipped(b, name, 100);
        sv_buf_printf(b, "%s(pid %" PRId64 ")", name.len ? " " : "", t->pid);
    } else {
        sv_buf_str(b, "no process");
    }
    sv_buf_str(b, "</text>\n");
}

/* Ticks at 1, 2 or 5 times a power of ten, about one per hundred pixels. */
static void add_axis(struct sv_buf *b, const struct sv_layout *l, double height)
{
    double span = (double)(l->to_ns - l->from_ns), want = span / (l->width / 100);
    double step = pow(10, floor(log10(want > 1 ? want : 1)));
    while (step < want)
        step *= step * 2 >= want ? 2 : step * 5 >= want ? 5 : 10;
    int64_t offset = l->from_ns - l->trace->first_ns;
    for (double t = ceil((double)offset / step) * step; t <= (double)offset + span; t += step) {
        double x = MARGIN + LABEL_WIDTH + (t - (double)offset) / span * l->width;
        sv_buf_printf(
            b, "<path class=\"g\" d=\"M%.2f %.1fV%.1f\"/><text class=\"a\" x=\"%.2f\" y=\"%.1f\">",
            x, TOP - 10, height, x, TOP - 14);
        add_duration(b, (int64_t)t);
        sv_buf_str(b, "</text>\n");
    }
}

static double row_height(const struct sv_row *row)
{
    return (row->lines ? row->lines * LINE_HEIGHT : COUNTER_HEIGHT) + ROW_GAP;
}

static bool starts_process(const struct sv_layout *l, size_t i)
{
    return i == 0 || l->rows[i].process != l->rows[i - 1].process;
}

static void add_head(struct sv_buf *b, const struct sv_layout *l, const struct sv_svg_options *o,
                     double height)
{
    sv_buf_printf(b,
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
                  "viewBox=\"0 0 %.0f %.0f\" "
                  "font-family=\"sans-serif\" "
                  "font-size=\"10\">\n<style>.l{text-anchor:end;fill:#333}.p{font-weight:bold}.a{"
                  "text-anchor:middle;fill:#555}"
                  ".g{stroke:#ddd}.c{fill:none;stroke:#0072b2}.t{font-size:15px;font-weight:bold}."
                  "s{fill:#b00}</style>\n"
                  "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n<text class=\"t\" "
                  "x=\"%.0f\" y=\"22\">",
                  o->width, height, o->width, height, MARGIN);
    add_text(b, o->title, strlen(o->title));
    sv_buf_str(b, "</text>\n");
    if (l->trace->losses.n)
        sv_buf_printf(
            b, "<text class=\"s\" x=\"%.0f\" y=\"38\">%" PRIu64 " gaps in the recording</text>\n",
            MARGIN, l->trace->losses.n);
}

void sv_svg_timeline(struct sv_buf *out, const struct sv_layout *l, const struct sv_svg_options *o)
{
    size_t n = l->n_rows < o->rows_max ? l->n_rows : o->rows_max;
    double height = TOP + MARGIN;
    for (size_t i = 0; i < n; i++)
        height += row_height(&l->rows[i]) + (starts_process(l, i) ? HEAD_HEIGHT : 0);
    if (n < l->n_rows)
        height += HEAD_HEIGHT;
    add_head(out, l, o, height);
    add_axis(out, l, height - MARGIN);
    double y = TOP;
    for (size_t i = 0; i < n; i++) {
        const struct sv_row *row = &l->rows[i];
        if (starts_process(l, i)) {
            add_process(out, l, row, y, o->width);
            y += HEAD_HEIGHT;
        }
        add_label(out, l, row, y);
        for (size_t r = 0; r < row->n_rects; r++)
            add_rect(out, l, &l->rects[row->first_rect + r], y);
        if (!row->lines)
            add_counter(out, l, row, y);
        y += row_height(row);
    }
    if (n < l->n_rows)
        sv_buf_printf(out, "<text x=\"%.1f\" y=\"%.1f\">… and %zu more rows</text>\n", MARGIN,
                      y + 10, l->n_rows - n);
    sv_buf_str(out, "</svg>\n");
}
