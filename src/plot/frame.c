/* Titles, facts and legends. Used by every plot. */
#include "plot/frame.h"

#include "plot/colors.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

double sv_plot_frame_head(struct sv_picture *p, const struct sv_plot_frame *f, struct sv_ref facts)
{
    double y = SV_MARGIN + 12, max_width = p->width - 2 * SV_MARGIN;
    p->title = sv_picture_text(p, f->title, strlen(f->title));
    sv_picture_label(p, SV_MARGIN, y, 15, SV_ANCHOR_START, SV_MARK_BOLD, SV_COLOR_INK, max_width,
                     p->title);
    y += 17;
    if (facts.len == 0)
        return y - 8;
    sv_picture_label(p, SV_MARGIN, y, 11, SV_ANCHOR_START, 0, SV_COLOR_DIM, max_width, facts);
    return y + 8;
}

static double draw_line(struct sv_picture *p, double y, struct sv_ref text, uint32_t color)
{
    sv_picture_label(p, SV_MARGIN, y + 10, 11, SV_ANCHOR_START, 0, color, p->width - 2 * SV_MARGIN,
                     text);
    return y + 18;
}

double sv_plot_frame_warn(struct sv_picture *p, double y, struct sv_ref text)
{
    return draw_line(p, y, text, SV_COLOR_WARN);
}

double sv_plot_frame_note(struct sv_picture *p, double y, struct sv_ref text)
{
    return draw_line(p, y, text, SV_COLOR_DIM);
}

double sv_plot_frame_legend(struct sv_picture *p, double x, double y, double max_width,
                            const struct sv_legend *items, size_t n)
{
    double at = x;
    for (size_t i = 0; i < n; i++) {
        const char *text = (const char *)p->text.data + items[i].text.at;
        double width = fmin(sv_text_width(text, items[i].text.len, 10), max_width - 20);
        if (at > x && at + width + 14 > x + max_width) {
            at = x;
            y += 16;
        }
        sv_picture_box(p, at, y, 10, 10, items[i].color);
        sv_picture_label(p, at + 14, y + 9, 10, SV_ANCHOR_START, 0, SV_COLOR_INK, width + 4,
                         items[i].text);
        at += width + 32;
    }
    return n ? y + 18 : y;
}

struct sv_axis sv_plot_frame_time_axis(const struct sv_plot_frame *f, double from, double to,
                                       double x0, double x1)
{
    struct sv_axis a = {
        .from = from, .to = to > from ? to : from + 1, .at0 = x0, .at1 = x1, .unit = SV_AXIS_TIME};
    if (f->wall_ns) {
        a.unit = SV_AXIS_WALL;
        a.from += (double)f->wall_ns;
        a.to += (double)f->wall_ns;
    }
    return a;
}

void sv_plot_frame_zoom(struct sv_picture *p, const struct sv_axis *a, double top, double bottom,
                        double label_y)
{
    p->zoom = (struct sv_zoom_area){.x0 = a->at0,
                                    .x1 = a->at1,
                                    .top = top,
                                    .bottom = bottom,
                                    .from = a->from,
                                    .to = a->to,
                                    .unit = a->unit == SV_AXIS_WALL ? SV_ZOOM_WALL : SV_ZOOM_TIME,
                                    .label_y = label_y,
                                    .is_on = true,
                                    .has_ticks = true};
}

void sv_format_count(struct sv_buf *to, uint64_t n)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0)
            sv_buf_byte(to, ',');
        sv_buf_byte(to, (uint8_t)digits[i]);
    }
}
