/* A picture as a file, in the form that the suffix of its name says: see making.h. */
#include "plot/making.h"
#include "plot/svg.h"

#include <string.h>
#include <strings.h>

int sv_plot_form(const char *output, enum sv_picture_form *form, struct sv_err *err)
{
    static const struct {
        const char *suffix;
        enum sv_picture_form form;
    } forms[] = {{".svg", SV_FORM_SVG}, {".png", SV_FORM_PNG}, {".pdf", SV_FORM_PDF}};
    *form = SV_FORM_SVG;
    if (!output || strcmp(output, "-") == 0)
        return 0;
    size_t len = strlen(output);
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        size_t n = strlen(forms[i].suffix);
        if (len > n && strcasecmp(output + len - n, forms[i].suffix) == 0) {
            *form = forms[i].form;
            struct sv_err why = {0};
            if (*form != SV_FORM_SVG && sv_cairo_load(&why) < 0)
                return sv_error(err, SV_EUSAGE, "%s: %s", output, why.msg);
            return 0;
        }
    }
    return sv_error(err, SV_EUSAGE, "%s: unknown suffix; use .svg, .png or .pdf", output);
}

int sv_plot_write(const char *output, enum sv_picture_form form, double scale,
                  const struct sv_picture *p, struct sv_err *err)
{
    struct sv_buf bytes;
    struct sv_output *out;
    int code = 0;
    sv_buf_init(&bytes, (size_t)2 << 30);
    if (form == SV_FORM_SVG)
        sv_svg_paint(&bytes, p);
    else
        code = sv_cairo_paint(&bytes, p, form, scale, err);
    if (code >= 0 && bytes.failed)
        code = sv_error(err, SV_ELIMIT, "the picture is larger than 2 GB");
    if (code >= 0)
        code = sv_output_open(output ? output : "-", SV_OUTPUT_RENAME, SV_PLAIN, &out, err);
    if (code >= 0) {
        sv_output_write(out, bytes.data, bytes.len);
        code = sv_output_close(out, err);
    }
    sv_buf_fini(&bytes);
    return code;
}
