/* The SVG painter: one file that needs nothing but a browser. Titles on hover; where the picture
 * has a zoom area, a small script in the file zooms to what is clicked, without any network.
 * Viewers that run no scripts show the picture as it is. */
#pragma once

#include "plot/picture.h"

void sv_svg_paint(struct sv_buf *b, const struct sv_picture *p);

/* its lines, NULL at the end; all but what depends on the picture */
extern const char *const sv_svg_script[];
