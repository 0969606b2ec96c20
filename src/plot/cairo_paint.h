/* The cairo painter: PNG and PDF. */
#pragma once

#include "core/base/err.h"
#include "plot/picture.h"

enum sv_picture_form { SV_FORM_SVG, SV_FORM_PNG, SV_FORM_PDF };

/* Loads cairo, which is not linked: SV_EUSAGE says why there is none. One thread at a time. */
int sv_cairo_load(struct sv_err *err);

/* Appends the picture as PNG (scale: pixels per pixel of the picture) or PDF. SV_ELIMIT: too large
 * for cairo; SV_EUSAGE: there is no cairo. */
int sv_cairo_paint(struct sv_buf *out, const struct sv_picture *p, enum sv_picture_form form,
                   double scale, struct sv_err *err);
