/* A screen of character cells, and the time line drawn into it: the layout's painter for terminals.
 *
 * A cell is a pixel of the layout. Cells have colours whatever the terminal can do; writing the
 * screen brings them down to true colour, 256 colours or none. Without colours slices have
 * brackets: [forward----]. */
#pragma once

#include "plot/colors.h"
#include "plot/layout.h"

enum sv_depth { SV_DEPTH_MONO, SV_DEPTH_256, SV_DEPTH_TRUE };

enum sv_cell_flag { SV_CELL_BOLD = 1, SV_CELL_DIM = 2, SV_CELL_REVERSE = 4 };

#define SV_NO_COLOR UINT32_MAX /* the terminal's own */

struct sv_glyph {
    uint32_t code; /* 0: the right half of a wide character */
    uint32_t fg, bg;
    uint8_t flags;
};

struct sv_screen {
    unsigned width, height;
    struct sv_glyph *glyphs;
    enum sv_depth depth;
    bool is_ascii; /* no characters beyond ASCII */
};

void sv_screen_init(struct sv_screen *s, unsigned width, unsigned height);
void sv_screen_fini(struct sv_screen *s);
void sv_screen_clear(struct sv_screen *s);

struct sv_pen {
    uint32_t fg, bg;
    uint8_t flags;
};
#define SV_PLAIN_PEN                         \
    (struct sv_pen)                          \
    {                                        \
        .fg = SV_NO_COLOR, .bg = SV_NO_COLOR \
    }

/* Writes the text into at most `max_columns` cells, with an ellipsis if it is longer; returns the
 * cells used. */
unsigned sv_screen_text(struct sv_screen *s, unsigned x, unsigned y, unsigned max_columns,
                        const char *bytes, size_t len, struct sv_pen pen);
unsigned sv_screen_printf(struct sv_screen *s, unsigned x, unsigned y, unsigned max_columns,
                          struct sv_pen pen, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));

/* One line of a row of the layout at (x, y); `selected` (SV_NO_ROW: none) is highlighted. */
void sv_screen_slices(struct sv_screen *s, unsigned x, unsigned y, const struct sv_layout *l,
                      size_t row, uint32_t line, const struct sv_colors *colors, uint32_t selected);
/* How many of the outermost slices of n rows there are at once. */
void sv_screen_density(struct sv_screen *s, unsigned x, unsigned y, const struct sv_layout *l,
                       const uint32_t *rows, size_t n);
void sv_screen_counter(struct sv_screen *s, unsigned x, unsigned y, const struct sv_layout *l,
                       size_t row);
/* Ticks of the window. */
void sv_screen_axis(struct sv_screen *s, unsigned x, unsigned y, const struct sv_layout *l);

/* Appends the screen: for a terminal from its top left corner (is_whole), or as lines of text
 * without trailing blanks. */
void sv_screen_write(const struct sv_screen *s, bool is_whole, struct sv_buf *to);
