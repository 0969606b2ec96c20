/* Colours: a palette that colour-blind readers can tell apart (Okabe and Ito), and which slice gets
 * which.
 *
 * Where a trace has several categories they are coloured by how often they occur, the rarest
 * together as "other"; where it has not, or nearly all that lasts is of one, the name decides: few
 * names have colours of their own. The choice is made for the whole trace, so all windows of it
 * look alike. States of threads and waits have the same colours in every trace: running is green,
 * waiting for a CPU vermilion or orange, for a disk yellow, for a lock purple, for others blue;
 * sleeping is grey. */
#pragma once

#include "store/image.h"

#define SV_N_COLORS   7u /* of the palette without its grey */
#define SV_COLOR_GREY 0x999999u
#define SV_COLOR_INK  0x222222u
#define SV_COLOR_DIM  0x666666u
#define SV_COLOR_GRID 0xdddddfu
#define SV_COLOR_WARN 0xb03000u

extern const uint32_t sv_palette[SV_N_COLORS + 1]; /* the last one is the grey */

struct sv_colors {
    const struct sv_trace *trace;
    bool by_category;
    uint8_t *of_string; /* number in the palette, by sv_str */
    sv_str
        keys[SV_N_COLORS]; /* categories or names with a colour of their own, the largest first */
    size_t n_keys;
    bool has_others;
    uint32_t n_strings;   /* of of_string */
    sv_str states, waits; /* categories whose colours are fixed; UINT32_MAX: the trace has none */
    uint8_t *of_state;    /* as of_string, of their names; NULL: it has none */
};

/* is_left_out (by sv_str; NULL: none): categories that shall not take a colour from the others. */
void sv_colors_init(struct sv_colors *c, const struct sv_trace *t, const bool *is_left_out);
void sv_colors_fini(struct sv_colors *c);
/* Adds the colours to an image of their trace: there sv_colors_init() finds them, unless categories
 * are left out. */
void sv_colors_put(const struct sv_colors *c, struct sv_image_writer *w);

static inline unsigned sv_color_number(const struct sv_colors *c, uint64_t row)
{
    const struct sv_slices *s = &c->trace->slices;
    if (s->cat[row] == c->states || s->cat[row] == c->waits)
        return c->of_state[s->name[row]];
    return c->of_string[c->by_category && s->cat[row] ? s->cat[row] : s->name[row]];
}
/* The number of a state's or a wait's fixed colour, by its name or reason; of others the grey. */
unsigned sv_color_of_state(const char *name);

static inline uint32_t sv_color_of(const struct sv_colors *c, uint64_t row)
{
    return sv_palette[sv_color_number(c, row)];
}

/* Black or white, whichever is easier to read on it. */
uint32_t sv_color_ink_on(uint32_t color);
uint32_t sv_color_mix(uint32_t a, uint32_t b, double share_of_b);

/* Pixels that many slices share. Calm: how little the longest slice says about them, 0: it is alone
 * or fills a quarter; then they have its colour, else less and less of it. Shade: how much of them
 * is covered. */
#define SV_CALMEST 3u
#define SV_SHADES  8u
unsigned sv_color_calm(uint64_t n_slices, uint64_t longest_ns, double pixel_ns);
unsigned sv_color_shade(uint8_t cover);
uint32_t sv_color_toned(uint32_t color, unsigned calm, unsigned shade);
/* -1: blue, 0: almost white, 1: vermilion. */
uint32_t sv_color_diverging(double x);

/* What the fixed colours of states and waits mean, for a legend; ends with NULL. */
struct sv_color_legend {
    const char *name;
    uint8_t color;
};
extern const struct sv_color_legend sv_color_of_states[];
