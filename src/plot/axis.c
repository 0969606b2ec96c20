/* Ticks and their labels. Used by every plot that has an axis, and by the terminal view.
 *
 * All labels of an axis have the same unit and the same number of decimals. */
#include "plot/axis.h"

#include "plot/colors.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define TICKS_MAX       200
#define TICK_LABEL_HALF 20 /* pixels, of a usual one */

static const struct {
    double unit;
    const char *name;
} times[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "\xc2\xb5s"}, {1, "ns"}},
  counts[] = {{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}},
  sizes[] = {{1099511627776.0, "TiB"},
             {1073741824.0, "GiB"},
             {1048576.0, "MiB"},
             {1024.0, "KiB"},
             {1, "B"}};

static int decimals(double step)
{
    if (step <= 0 || step >= 1)
        return 0;
    int n = (int)ceil(-log10(step) - 1e-9);
    return n > 9 ? 9 : n;
}

static void format_wall(struct sv_buf *to, double ns, double step)
{
    int digits = decimals(step / 1e9);
    double whole = floor(ns / 1e9);
    double fraction = ns / 1e9 - whole;
    char text[32];
    if (step >= 1e9)
        fraction = 0;
    snprintf(text, sizeof text, "%.*f", digits, fraction);
    if (text[0] == '1') {
        whole += 1;
        snprintf(text, sizeof text, "%.*f", digits, 0.0);
    }
    time_t seconds = (time_t)whole;
    struct tm tm;
    if (!gmtime_r(&seconds, &tm))
        return;
    sv_buf_printf(to, "%02d:%02d:%02d%s", tm.tm_hour, tm.tm_min, tm.tm_sec, text + 1);
}

void sv_format_duration(struct sv_buf *to, double ns)
{
    size_t u = 0;
    while (u < 3 && fabs(ns) < times[u].unit)
        u++;
    sv_buf_printf(to, "%.6g %s", ns / times[u].unit, times[u].name);
}

void sv_axis_of_unit(struct sv_axis *a, const char *unit)
{
    a->unit = SV_AXIS_COUNT;
    a->suffix = NULL;
    if (strcasecmp(unit, "bytes") == 0 || strcasecmp(unit, "size_bytes") == 0)
        a->unit = SV_AXIS_BYTES;
    else if (strcmp(unit, "ns") == 0 || strcmp(unit, "time_ns") == 0)
        a->unit = SV_AXIS_TIME;
    else if (*unit && strcasecmp(unit, "count") != 0 && strlen(unit) < 16)
        a->suffix = unit;
}

void sv_axis_format(struct sv_buf *to, const struct sv_axis *a, double value, double step)
{
    double largest = fmax(fabs(a->from), fabs(a->to)), unit = 1;
    const char *name = "";
    if (a->unit == SV_AXIS_WALL) {
        format_wall(to, value, step);
        return;
    }
    size_t u = 0;
    if (a->unit == SV_AXIS_TIME) {
        while (u < 3 && largest < times[u].unit)
            u++;
        unit = times[u].unit;
        name = times[u].name;
    } else if (a->unit == SV_AXIS_BYTES) {
        while (u < 4 && largest < sizes[u].unit)
            u++;
        unit = sizes[u].unit;
        name = sizes[u].name;
    } else {
        while (u < 4 && largest < counts[u].unit * (a->suffix ? 1 : 10))
            u++;
        unit = counts[u].unit;
        name = counts[u].name;
    }
    double shown = value / unit;
    if (fabs(shown) < step / unit / 1e6)
        shown = 0; /* no "-0" */
    if (step > 0)
        sv_buf_printf(to, "%.*f", decimals(step / unit), shown);
    else
        sv_buf_printf(to, "%.6g", shown);
    if (*name || a->suffix)
        sv_buf_printf(to, " %s%s", name, a->suffix ? a->suffix : "");
}

double sv_axis_place(const struct sv_axis *a, double value)
{
    double span = a->to - a->from;
    return span == 0 ? a->at0 : a->at0 + (value - a->from) / span * (a->at1 - a->at0);
}

static double round_step(double want, bool is_binary)
{
    if (is_binary && want >= 1) {
        double step = 1;
        while (step < want)
            step *= 2;
        return step;
    }
    double step = pow(10, floor(log10(want)));
    if (step >= want * 0.999999)
        return step;
    return step * 2 >= want ? step * 2 : step * 5 >= want ? step * 5 : step * 10;
}

double sv_axis_step(const struct sv_axis *a, double n)
{
    double want = fabs(a->to - a->from) / (n > 1 ? n : 1);
    if (!(want > 0) || !isfinite(want))
        return 1;
    if (a->unit == SV_AXIS_TIME || a->unit == SV_AXIS_WALL)
        want = fmax(want, 1);
    if (a->unit == SV_AXIS_WHOLE)
        want = fmax(want, 1);
    return round_step(want, a->unit == SV_AXIS_BYTES);
}

double sv_axis_round_up(const struct sv_axis *a, double largest)
{
    struct sv_axis all = *a;
    all.from = 0;
    all.to = largest;
    double step = sv_axis_step(&all, 5);
    return largest > 0 ? ceil(largest / step - 1e-9) * step : 1;
}

/* The places of the ticks: returns how many; values[i] rise. */
static size_t ticks(const struct sv_axis *a, double step, double values[TICKS_MAX])
{
    double low = fmin(a->from, a->to), high = fmax(a->from, a->to);
    size_t n = 0;
    for (double k = ceil(low / step - 1e-9); k * step <= high + step * 1e-9 && n < TICKS_MAX; k++)
        values[n++] = k * step;
    return n;
}

static struct sv_ref tick_text(struct sv_picture *p, const struct sv_axis *a, double value,
                               double step)
{
    size_t at = p->text.len;
    sv_axis_format(&p->text, a, value, step);
    return sv_picture_since(p, at);
}

void sv_axis_draw_x(struct sv_picture *p, const struct sv_axis *a, double top, double bottom,
                    bool labels_below, unsigned flags)
{
    double values[TICKS_MAX], step = sv_axis_step(a, (a->at1 - a->at0) / 110);
    size_t n = ticks(a, step, values);
    for (size_t i = 0; i < n; i++) {
        double x = sv_axis_place(a, values[i]);
        sv_picture_line(p, x, top, x, bottom, SV_COLOR_GRID);
        p->marks[p->n - 1].flags |= (uint8_t)flags;
        bool is_outside = x + TICK_LABEL_HALF > p->width; /* it would be cut off */
        sv_picture_label(p, is_outside ? p->width - 1 : x, labels_below ? bottom + 14 : top - 4, 10,
                         is_outside ? SV_ANCHOR_END : SV_ANCHOR_MIDDLE, flags, SV_COLOR_DIM, 0,
                         tick_text(p, a, values[i], step));
    }
}

void sv_axis_draw_y(struct sv_picture *p, const struct sv_axis *a, double left, double right)
{
    double values[TICKS_MAX], step = sv_axis_step(a, fmax(fabs(a->at1 - a->at0) / 45, 2));
    size_t n = ticks(a, step, values);
    for (size_t i = 0; i < n; i++) {
        double y = sv_axis_place(a, values[i]);
        sv_picture_line(p, left, y, right, y, SV_COLOR_GRID);
        sv_picture_label(p, left - 6, y + 3.5, 10, SV_ANCHOR_END, 0, SV_COLOR_DIM, 0,
                         tick_text(p, a, values[i], step));
    }
}
