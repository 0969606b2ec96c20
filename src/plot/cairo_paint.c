/* The cairo painter. Called by the commands with a finished picture; without cairo it only says
 * that it is absent.
 *
 * Fonts come from fontconfig: the system's sans-serif, and for each character that it lacks the
 * best font that has it. Where the system has no font at all, cairo's own outline font writes the
 * Latin characters. Must not decide about places: plots do. */
#include "plot/cairo_paint.h"

#ifdef SV_HAVE_CAIRO
#include "core/base/late.h"
#include "plot/colors.h"

#include <cairo-ft.h>
#include <cairo-pdf.h>
#include <cairo.h>
#include <math.h>

#define FUNCTIONS(F)                         \
    F(FcCharSetAddChar)                      \
    F(FcCharSetCopy)                         \
    F(FcCharSetCreate)                       \
    F(FcCharSetDestroy)                      \
    F(FcCharSetHasChar)                      \
    F(FcConfigDestroy)                       \
    F(FcConfigSubstitute)                    \
    F(FcDefaultSubstitute)                   \
    F(FcFontMatch)                           \
    F(FcInitLoadConfigAndFonts)              \
    F(FcPatternAddCharSet)                   \
    F(FcPatternAddInteger)                   \
    F(FcPatternAddString)                    \
    F(FcPatternCreate)                       \
    F(FcPatternDestroy)                      \
    F(FcPatternGetCharSet)                   \
    F(cairo_arc)                             \
    F(cairo_clip)                            \
    F(cairo_create)                          \
    F(cairo_destroy)                         \
    F(cairo_fill)                            \
    F(cairo_fill_preserve)                   \
    F(cairo_font_face_destroy)               \
    F(cairo_ft_font_face_create_for_pattern) \
    F(cairo_image_surface_create)            \
    F(cairo_line_to)                         \
    F(cairo_move_to)                         \
    F(cairo_new_path)                        \
    F(cairo_paint)                           \
    F(cairo_pdf_surface_create_for_stream)   \
    F(cairo_rectangle)                       \
    F(cairo_restore)                         \
    F(cairo_save)                            \
    F(cairo_scale)                           \
    F(cairo_set_dash)                        \
    F(cairo_set_font_face)                   \
    F(cairo_set_font_size)                   \
    F(cairo_set_line_width)                  \
    F(cairo_set_source_rgb)                  \
    F(cairo_show_page)                       \
    F(cairo_show_text)                       \
    F(cairo_status)                          \
    F(cairo_status_to_string)                \
    F(cairo_stroke)                          \
    F(cairo_surface_destroy)                 \
    F(cairo_surface_finish)                  \
    F(cairo_surface_status)                  \
    F(cairo_surface_write_to_png_stream)     \
    F(cairo_text_extents)                    \
    F(cairo_toy_font_face_create)

/* libcairo and what it needs: X11 among others, which no other verb wants. Fontconfig is found
 * through it. */
static struct {
    FUNCTIONS(SV_LATE_MEMBER)
} lib;

#define FACES_MAX  24u
#define LABEL_SIZE 10.0
#define LABEL_PAD  3.0

/* Fonts that are in use: [0] and [1] are the plain and the bold one, the others fill in for single
 * characters. */
struct fonts {
    FcConfig *config; /* our own: the default one is never freed */
    cairo_font_face_t *faces[FACES_MAX];
    FcCharSet *has[FACES_MAX]; /* NULL: unknown, taken to have everything */
    size_t n;
};

struct painter {
    cairo_t *cr;
    struct fonts fonts;
    struct sv_buf text; /* the piece being written, cleaned and terminated */
    const struct sv_picture *picture;
};

static void set_color(cairo_t *cr, uint32_t color)
{
    lib.cairo_set_source_rgb(cr, (color >> 16 & 255) / 255.0, (color >> 8 & 255) / 255.0,
                             (color & 255) / 255.0);
}

/* ---- fonts ---- */

static void add_face(struct fonts *f, FcPattern *wanted)
{
    FcResult result;
    FcCharSet *has = NULL;
    lib.FcConfigSubstitute(f->config, wanted, FcMatchPattern);
    lib.FcDefaultSubstitute(wanted);
    FcPattern *match = lib.FcFontMatch(f->config, wanted, &result);
    if (match) {
        if (lib.FcPatternGetCharSet(match, FC_CHARSET, 0, &has) == FcResultMatch)
            f->has[f->n] = lib.FcCharSetCopy(has);
        f->faces[f->n] = lib.cairo_ft_font_face_create_for_pattern(match);
        lib.FcPatternDestroy(match);
    } else {
        f->faces[f->n] = lib.cairo_toy_font_face_create("", CAIRO_FONT_SLANT_NORMAL,
                                                        f->n == 1 ? CAIRO_FONT_WEIGHT_BOLD
                                                                  : CAIRO_FONT_WEIGHT_NORMAL);
    }
    f->n++;
}

static FcPattern *sans(bool is_bold)
{
    FcPattern *wanted = lib.FcPatternCreate();
    lib.FcPatternAddString(wanted, FC_FAMILY, (const FcChar8 *)"sans-serif");
    lib.FcPatternAddInteger(wanted, FC_WEIGHT, is_bold ? FC_WEIGHT_BOLD : FC_WEIGHT_NORMAL);
    return wanted;
}

static void open_fonts(struct fonts *f)
{
    f->config = lib.FcInitLoadConfigAndFonts();
    for (int bold = 0; bold < 2; bold++) {
        FcPattern *wanted = sans(bold);
        add_face(f, wanted);
        lib.FcPatternDestroy(wanted);
    }
}

static void close_fonts(struct fonts *f)
{
    for (size_t i = 0; i < f->n; i++) {
        lib.cairo_font_face_destroy(f->faces[i]);
        if (f->has[i])
            lib.FcCharSetDestroy(f->has[i]);
    }
    if (f->config)
        lib.FcConfigDestroy(f->config);
}

static bool has_char(const struct fonts *f, size_t face, uint32_t c)
{
    return !f->has[face] || lib.FcCharSetHasChar(f->has[face], c);
}

/* The face that writes this character, the preferred one where nobody has it. */
static size_t face_for(struct fonts *f, uint32_t c, size_t preferred)
{
    if (c < 0x7f || has_char(f, preferred, c))
        return preferred;
    for (size_t i = 2; i < f->n; i++)
        if (has_char(f, i, c))
            return i;
    if (f->n == FACES_MAX)
        return preferred;
    FcPattern *wanted = sans(preferred == 1);
    FcCharSet *set = lib.FcCharSetCreate();
    lib.FcCharSetAddChar(set, c);
    lib.FcPatternAddCharSet(wanted, FC_CHARSET, set);
    add_face(f, wanted);
    lib.FcCharSetDestroy(set);
    lib.FcPatternDestroy(wanted);
    return has_char(f, f->n - 1, c) ? f->n - 1 : preferred;
}

/* ---- texts ---- */

/* Writes or measures a clean text: runs of characters that one face has. Returns the width. */
static double run_text(struct painter *a, const char *s, size_t len, double size, bool is_bold,
                       bool draw, double x, double y)
{
    double width = 0;
    for (size_t i = 0, n; i < len;) {
        size_t from = i, face = face_for(&a->fonts, sv_text_char(s + i, len - i, &n), is_bold);
        for (i += n; i < len; i += n)
            if (face_for(&a->fonts, sv_text_char(s + i, len - i, &n), is_bold) != face)
                break;
        cairo_text_extents_t e;
        sv_buf_clear(&a->text);
        sv_text_clean(&a->text, s + from, i - from);
        lib.cairo_set_font_face(a->cr, a->fonts.faces[face]);
        lib.cairo_set_font_size(a->cr, size);
        lib.cairo_text_extents(a->cr, sv_buf_cstr(&a->text), &e);
        if (draw) {
            lib.cairo_move_to(a->cr, x + width, y);
            lib.cairo_show_text(a->cr, sv_buf_cstr(&a->text));
        }
        width += e.x_advance;
    }
    return width;
}

#define TEXT_MAX 400u /* no picture is so wide that more would fit */

/* The longest beginning that fits with an ellipsis, by halving over the beginnings of
 * characters. */
static size_t fit(struct painter *a, const char *s, size_t len, double size, bool is_bold,
                  double max_width)
{
    size_t starts[TEXT_MAX + 1], chars = 0;
    double dots = run_text(a, SV_ELLIPSIS, 3, size, is_bold, false, 0, 0);
    for (size_t i = 0, n; i < len && chars < TEXT_MAX; i += n) {
        starts[chars++] = i;
        sv_text_char(s + i, len - i, &n);
    }
    size_t low = 0, high = chars ? chars - 1 : 0;
    while (low < high) {
        size_t mid = (low + high + 1) / 2;
        if (run_text(a, s, starts[mid], size, is_bold, false, 0, 0) + dots <= max_width)
            low = mid;
        else
            high = mid - 1;
    }
    return low < 2 ? 0 : starts[low];
}

static void write_text(struct painter *a, struct sv_ref ref, double x, double y, double size,
                       bool is_bold, enum sv_anchor anchor, double max_width)
{
    const char *s = (const char *)a->picture->text.data + ref.at;
    size_t len = ref.len < TEXT_MAX ? ref.len : TEXT_MAX;
    const char *line = memchr(s, '\n', len);
    if (line)
        len = (size_t)(line - s);
    double width = run_text(a, s, len, size, is_bold, false, 0, 0);
    bool cut = max_width > 0 && width > max_width;
    if (cut) {
        len = fit(a, s, len, size, is_bold, max_width);
        if (len == 0)
            return;
        width = run_text(a, s, len, size, is_bold, false, 0, 0);
    }
    if (anchor != SV_ANCHOR_START)
        x -= anchor == SV_ANCHOR_END ? width : width / 2;
    run_text(a, s, len, size, is_bold, true, x, y);
    if (cut)
        run_text(a, SV_ELLIPSIS, 3, size, is_bold, true, x + width, y);
}

/* ---- marks ---- */

static void paint_box(struct painter *a, const struct sv_picture_mark *m)
{
    lib.cairo_rectangle(a->cr, m->x, m->y, m->w, m->h);
    set_color(a->cr, m->color);
    if ((m->flags & SV_MARK_EDGE) && m->w > 3) {
        lib.cairo_fill_preserve(a->cr);
        lib.cairo_set_source_rgb(a->cr, 1, 1, 1);
        lib.cairo_set_line_width(a->cr, 0.6);
        lib.cairo_stroke(a->cr);
    } else {
        lib.cairo_fill(a->cr);
    }
    if (m->label.len && m->w > 2 * LABEL_PAD + LABEL_SIZE) {
        set_color(a->cr, sv_color_ink_on(m->color));
        write_text(a, m->label, m->x + LABEL_PAD, m->y + m->h / 2 + 3.5, LABEL_SIZE, false,
                   SV_ANCHOR_START, m->w - 2 * LABEL_PAD);
    }
}

static void paint_path(struct painter *a, const struct sv_picture_mark *m)
{
    static const double dashes[] = {4, 3};
    lib.cairo_new_path(a->cr);
    if (m->shape == SV_SHAPE_LINE) {
        /* Upright and level lines lie on whole pixels, or they are grey and wide. */
        double x = m->w == 0 ? floor(m->x) + 0.5 : m->x, y = m->h == 0 ? floor(m->y) + 0.5 : m->y;
        lib.cairo_move_to(a->cr, x, y);
        lib.cairo_line_to(a->cr, x + m->w, y + m->h);
    }
    for (size_t i = 0; i < m->n_points; i++) {
        const struct sv_xy *at = &a->picture->points[m->points + i];
        lib.cairo_line_to(a->cr, at->x, at->y);
    }
    set_color(a->cr, m->color);
    lib.cairo_set_line_width(a->cr, m->stroke);
    lib.cairo_set_dash(a->cr, dashes, m->flags & SV_MARK_DASHED ? 2 : 0, 0);
    if (m->flags & SV_MARK_FILLED)
        lib.cairo_fill(a->cr);
    else
        lib.cairo_stroke(a->cr);
}

static void paint_dot(struct painter *a, const struct sv_picture_mark *m)
{
    lib.cairo_new_path(a->cr);
    lib.cairo_arc(a->cr, m->x, m->y, m->w, 0, 6.283185307179586);
    set_color(a->cr, m->color);
    lib.cairo_fill(a->cr);
}

static void paint_mark(struct painter *a, const struct sv_picture_mark *m)
{
    const struct sv_zoom_area *z = &a->picture->zoom;
    bool clip = z->is_on && (m->flags & SV_MARK_ZOOM);
    if (clip) {
        lib.cairo_save(a->cr);
        lib.cairo_rectangle(a->cr, z->x0, 0, z->x1 - z->x0 + 1, a->picture->height);
        lib.cairo_clip(a->cr);
    }
    switch (m->shape) {
    case SV_SHAPE_BOX: paint_box(a, m); break;
    case SV_SHAPE_DOT: paint_dot(a, m); break;
    case SV_SHAPE_TEXT:
        set_color(a->cr, m->color);
        write_text(a, m->label, m->x, m->y, m->h, m->flags & SV_MARK_BOLD, m->anchor, m->w);
        break;
    default: paint_path(a, m); break;
    }
    if (clip)
        lib.cairo_restore(a->cr);
}

/* ---- files ---- */

static cairo_status_t take_bytes(void *to, const unsigned char *bytes, unsigned n)
{
    struct sv_buf *b = to;
    sv_buf_add(b, bytes, n);
    return b->failed ? CAIRO_STATUS_WRITE_ERROR : CAIRO_STATUS_SUCCESS;
}

#define SIDE_MAX  32767.0 /* of a cairo image */
#define PIXEL_MAX 3e8

static int check_size(const struct sv_picture *p, enum sv_picture_form form, double scale,
                      struct sv_err *err)
{
    double w = p->width * scale, h = p->height * scale;
    if (form == SV_FORM_PDF || (w <= SIDE_MAX && h <= SIDE_MAX && w * h <= PIXEL_MAX))
        return 0;
    return sv_error(err, SV_ELIMIT,
                    "a PNG of %.0f × %.0f pixels is too large: use a smaller --scale, --width or "
                    "--rows, or write SVG or PDF",
                    w, h);
}

int sv_cairo_load(struct sv_err *err)
{
    static const char *const names[] = {FUNCTIONS(SV_LATE_NAME)};
    char why[200];
    if (sv_late_load(SV_CAIRO_SONAME, "libcairo2", names, sizeof names / sizeof *names, &lib, why,
                     sizeof why))
        return 0;
    return sv_error(err, SV_EUSAGE, "%s, or write SVG (-o FILE.svg)", why);
}

int sv_cairo_paint(struct sv_buf *out, const struct sv_picture *p, enum sv_picture_form form,
                   double scale, struct sv_err *err)
{
    int code = sv_cairo_load(err);
    if (code >= 0)
        code = check_size(p, form, scale, err);
    if (code < 0)
        return code;
    struct painter a = {.picture = p};
    cairo_surface_t *surface =
        form == SV_FORM_PDF
            ? lib.cairo_pdf_surface_create_for_stream(take_bytes, out, p->width * 0.75,
                                                      p->height * 0.75)
            : lib.cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)ceil(p->width * scale),
                                             (int)ceil(p->height * scale));
    a.cr = lib.cairo_create(surface);
    sv_buf_init(&a.text, 1u << 20);
    open_fonts(&a.fonts);
    /* A pixel of the picture is 1/96 inch, as in a browser; PDF counts 1/72. */
    double unit = form == SV_FORM_PDF ? 0.75 : scale;
    lib.cairo_scale(a.cr, unit, unit);
    lib.cairo_set_source_rgb(a.cr, 1, 1, 1);
    lib.cairo_paint(a.cr);
    for (size_t i = 0; i < p->n; i++)
        paint_mark(&a, &p->marks[i]);
    if (form == SV_FORM_PDF)
        lib.cairo_show_page(a.cr);
    cairo_status_t status = lib.cairo_status(a.cr);
    lib.cairo_destroy(a.cr);
    if (status == CAIRO_STATUS_SUCCESS && form == SV_FORM_PNG)
        status = lib.cairo_surface_write_to_png_stream(surface, take_bytes, out);
    lib.cairo_surface_finish(surface);
    if (status == CAIRO_STATUS_SUCCESS)
        status = lib.cairo_surface_status(surface);
    lib.cairo_surface_destroy(surface);
    close_fonts(&a.fonts);
    sv_buf_fini(&a.text);
    if (status != CAIRO_STATUS_SUCCESS)
        return sv_error(err, SV_ELIMIT, "cairo failed: %s", lib.cairo_status_to_string(status));
    return 0;
}

#else

int sv_cairo_load(struct sv_err *err)
{
    return sv_error(err, SV_EUSAGE,
                    "this stave was built without cairo and writes only SVG (-o FILE.svg)");
}

int sv_cairo_paint(struct sv_buf *out, const struct sv_picture *p, enum sv_picture_form form,
                   double scale, struct sv_err *err)
{
    (void)out;
    (void)p;
    (void)form;
    (void)scale;
    return sv_cairo_load(err);
}

#endif
