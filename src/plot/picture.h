/* A picture as a list of marks: what every plot makes and every back end (SVG, cairo) paints.
 *
 *     struct sv_picture p;
 *     sv_picture_init(&p, 1400);
 *     sv_picture_box(&p, (struct sv_box){…}, sv_picture_text(&p, "name"), …);
 *     p.height = …;
 *
 * Coordinates are pixels from the top left corner. Marks are painted in the order in which they
 * were added. Texts are copied. A back end shortens a text that is wider than its maximum, with its
 * own font; plots that must know a width before painting ask sv_text_width(), which is of a wide
 * font. */
#pragma once

#include "core/base/buf.h"
#include "core/stream/dict.h"

enum sv_mark_shape {
    SV_SHAPE_BOX,  /* x, y, w, h; the label is inside */
    SV_SHAPE_LINE, /* from (x, y) to (x + w, y + h) */
    SV_SHAPE_TEXT, /* label at (x, y), the base line; w: its maximal width, 0: any; h: font size */
    SV_SHAPE_DOT,  /* a disc around (x, y) of radius w */
    SV_SHAPE_PATH, /* through the points; with SV_MARK_FILLED the area inside */
};

enum sv_anchor { SV_ANCHOR_START, SV_ANCHOR_MIDDLE, SV_ANCHOR_END };

enum sv_mark_flag {
    SV_MARK_ZOOM = 1, /* belongs to the plot area: a viewer may stretch it sideways */
    SV_MARK_TICK = 2, /* of the horizontal axis: a viewer that zooms makes it anew */
    SV_MARK_BOLD = 4,
    SV_MARK_FILLED = 8,
    SV_MARK_EDGE = 16, /* a box with a thin white border, so that neighbours can be told apart */
    SV_MARK_DASHED = 32,
};

struct sv_ref {
    size_t at, len; /* in the picture's texts; len 0: none */
};

struct sv_picture_mark {
    uint8_t shape, anchor, flags;
    uint32_t color; /* 0xRRGGBB */
    double x, y, w, h;
    double stroke;           /* width of lines and paths */
    struct sv_ref label;     /* what is written */
    struct sv_ref title;     /* shown on hover; its first line is the whole label */
    size_t points, n_points; /* paths */
};

struct sv_xy {
    double x, y;
};

/* How a viewer that zooms makes ticks: what the left and the right edge of the area mean. */
enum sv_zoom_unit { SV_ZOOM_PLAIN, SV_ZOOM_TIME, SV_ZOOM_WALL };

struct sv_zoom_area {
    double x0, x1, top, bottom;
    double from, to; /* ns since the start, or since 1970 */
    enum sv_zoom_unit unit;
    double label_y; /* base line of tick labels */
    bool is_on, has_ticks;
};

struct sv_picture {
    double width, height;
    struct sv_picture_mark *marks;
    size_t n, cap;
    struct sv_xy *points;
    size_t n_points, cap_points;
    struct sv_buf text;
    struct sv_ref title;
    struct sv_zoom_area zoom;
};

void sv_picture_init(struct sv_picture *p, double width);
void sv_picture_fini(struct sv_picture *p);

/* Copies of texts; printf-like. */
struct sv_ref sv_picture_text(struct sv_picture *p, const char *bytes, size_t len);
struct sv_ref sv_picture_printf(struct sv_picture *p, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
/* A text made piece by piece: everything appended to p->text since `at` (its length then). */
struct sv_ref sv_picture_since(const struct sv_picture *p, size_t at);

void sv_picture_add(struct sv_picture *p, const struct sv_picture_mark *m);
void sv_picture_box(struct sv_picture *p, double x, double y, double w, double h, uint32_t color);
void sv_picture_line(struct sv_picture *p, double x0, double y0, double x1, double y1,
                     uint32_t color);
/* flags: SV_MARK_BOLD; max_width 0: any. */
void sv_picture_label(struct sv_picture *p, double x, double y, double size, enum sv_anchor anchor,
                      unsigned flags, uint32_t color, double max_width, struct sv_ref text);
/* Begins a path: points are added to it until the next mark. */
struct sv_picture_mark *sv_picture_path(struct sv_picture *p, uint32_t color, double stroke,
                                        unsigned flags);
void sv_picture_point(struct sv_picture *p, double x, double y);

/* Marks from number `from` on are moved before those from `to` on: what was drawn last, since only
 * then its size was known, is painted first. */
void sv_picture_move(struct sv_picture *p, size_t from, size_t to);

/* ---- texts ---- */

#define SV_ELLIPSIS "\xe2\x80\xa6"

/* The width of a text in a wide sans-serif font of this size (pixels). */
double sv_text_width(const char *bytes, size_t len, double size);
/* How many bytes of the text fit into `max_width` together with an ellipsis, if one is needed
 * (*cut). 0: not even two characters. */
size_t sv_text_fit(const char *bytes, size_t len, double size, double max_width, bool *cut);
/* The character at s: its code point (U+FFFD for an invalid byte, which counts as one) and its
 * length. */
uint32_t sv_text_char(const char *s, size_t len, size_t *n);
/* Columns of a terminal that the character takes: 0 (combining), 1 or 2. */
unsigned sv_char_columns(uint32_t c);
/* The text as painters may show it: control characters and invalid UTF-8 as U+FFFD. Appends. */
void sv_text_clean(struct sv_buf *to, const char *bytes, size_t len);
