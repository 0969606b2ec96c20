/* Strips: what the viewer shows of a row at any zoom, without looking at every slice.
 *
 *     struct sv_strips *s = sv_strips_new(rows);
 *     struct sv_pixels px = {.from_ns = a, .to_ns = b, .width = 1600, .left = -400, .right = 2000};
 *     struct sv_strip_items out = {0};
 *     sv_strips_row(s, row, &px, first_line, n_lines, &out);      // one list of items per line
 *
 * A row's slices in the order of time are cut into blocks; a block knows, for each line of its row,
 * how many slices begin before it, how long they last together, and the longest within it. So the
 * number of slices in a pixel, how much of it they cover, and the longest of them are exact at
 * every zoom, and a picture costs by its pixels, not by the trace. Memory: at most 0.8 bytes per
 * slice, and 4 more for slices of rows that are made of several tracks. Read-only once it is made:
 * any number of threads may ask. */
#pragma once

#include "store/track_rows.h"

struct sv_strips;

struct sv_strips *sv_strips_new(const struct sv_track_rows *rows);
void sv_strips_free(struct sv_strips *s);
size_t sv_strips_bytes(const struct sv_strips *s);
/* Adds the strips to an image of their trace: there sv_strips_new() finds them. Put the rows,
 * too. */
void sv_strips_put(const struct sv_strips *s, struct sv_image_writer *w);

/* Pixel i is [edge(i), edge(i + 1)), edge(i) = from + floor(i × (to − from) / width); from < to. */
struct sv_pixels {
    int64_t from_ns, to_ns;
    uint32_t width;
    int32_t left, right; /* the pixels that are asked for: [left, right) */
};
int64_t sv_pixel_edge(const struct sv_pixels *px, int64_t i); /* saturates */
int64_t sv_pixel_of(const struct sv_pixels *px,
                    int64_t ns); /* the last one that begins at or before ns */

/* The slices of a line that begin in one pixel. */
struct sv_strip_item {
    int32_t pixel;
    uint32_t n;       /* 0: `longest` began before the leftmost pixel and reaches into it */
    uint32_t longest; /* slice */
    uint32_t last;    /* the last one that begins in this pixel … */
    uint32_t
        tail; /* … and how many further pixels it touches, those past the right edge not counted */
    uint8_t cover; /* 0 … 255: how much of the pixel is covered by slices of this line */
};

struct sv_strip_line {
    struct sv_strip_item *items;
    size_t n, cap;
};

/* One list per line that was asked for; reused by the next call. */
struct sv_strip_items {
    struct sv_strip_line *lines;
    uint32_t n_lines;
    size_t cap_lines;
};
void sv_strip_items_fini(struct sv_strip_items *out);

void sv_strips_row(const struct sv_strips *s, size_t row, const struct sv_pixels *px,
                   uint32_t first_line, uint32_t n_lines, struct sv_strip_items *out);

/* Time covered on the first line of a row. */
uint64_t sv_strips_busy_ns(const struct sv_strips *s, size_t row);
uint64_t sv_strips_count(const struct sv_strips *s, size_t row); /* slices of a row */
/* Slice number i of a row in the order of time; and how many begin before ns. */
uint32_t sv_strips_slice(const struct sv_strips *s, size_t row, uint32_t i);
uint32_t sv_strips_before(const struct sv_strips *s, size_t row, int64_t ns);
/* The last slice of the line among the first `at` ones of the row, as such a number; SV_NO_ROW:
 * none. And the next one from `at` on. */
uint32_t sv_strips_last_before(const struct sv_strips *s, size_t row, uint32_t line, uint32_t at);
uint32_t sv_strips_next_from(const struct sv_strips *s, size_t row, uint32_t line, uint32_t at);

/* A counter within a pixel: its finite values, or those that are not, which have a point of their
 * own there (NaN, else an infinity, in all three). */
struct sv_strip_point {
    int32_t pixel;
    double min, max, last;
};
struct sv_strip_points {
    struct sv_strip_point *items;
    size_t n, cap;
};
/* The first point is the value from before `left`, if there is one. */
void sv_strips_counter(const struct sv_strips *s, size_t row, const struct sv_pixels *px,
                       struct sv_strip_points *out);
