/* What every kind of picture needs while it is made: see making.h. */
#include "plot/making.h"

#include "cli/nearest.h"

#include <stdlib.h>
#include <string.h>

int sv_plot_no_such(const char *what, const char *name, const char *const *candidates, size_t n,
                    struct sv_err *err)
{
    struct sv_buf list;
    const char **left = sv_alloc((n + 1) * sizeof *left);
    size_t n_left = n;
    bool is_near = false;
    sv_buf_init(&list, 400);
    memcpy(left, candidates, n * sizeof *left);
    for (size_t shown = 0; shown < 4 && n_left; shown++) {
        const char *near = sv_nearest(name, left, n_left);
        is_near |= near != NULL;
        if (!near && is_near)
            break;
        near = near ? near : left[0];
        sv_buf_str(&list, shown ? ", '" : "'");
        sv_text_clean(&list, near, strlen(near) < 60 ? strlen(near) : 60);
        sv_buf_str(&list, "'");
        for (size_t i = n_left; i-- > 0;)
            if (left[i] == near)
                left[i] = left[--n_left];
    }
    free(left);
    int code = n ? sv_error(err, SV_EUSAGE, "no %s matches '%.80s'; available: %s%s", what, name,
                            sv_buf_cstr(&list), n_left ? ", " SV_ELLIPSIS : "")
                 : sv_error(err, SV_EFOUND, "the trace has no %ss", what);
    sv_buf_fini(&list);
    return code;
}

int sv_plot_size(struct sv_plot *p, double *scale, struct sv_err *err)
{
    const struct sv_plot_options *o = p->o;
    *scale = 1;
    if (o->scale &&
        (sv_parse_number(o->scale, strlen(o->scale), scale) < 0 || *scale < 0.1 || *scale > 10))
        return sv_error(err, SV_EUSAGE, "--scale: '%s' is not between 0.1 and 10", o->scale);
    if (o->width && (o->width < 300 || o->width > 20000))
        return sv_error(err, SV_EUSAGE, "--width must be between 300 and 20000 pixels");
    if (o->height && (o->height < 150 || o->height > 20000))
        return sv_error(err, SV_EUSAGE, "--height must be between 150 and 20000 pixels");
    p->frame.title = o->title ? o->title : p->name;
    p->frame.width = o->width ? (double)o->width : 1400;
    p->frame.height = (double)o->height;
    return 0;
}

int sv_plot_no_such_slice(const struct sv_plot *p, const char *name, struct sv_err *err)
{
    const struct sv_dict *d = p->trace->dict;
    bool *is_name = sv_alloc((size_t)d->n_strings + 1);
    const char **names = sv_alloc(((size_t)d->n_strings + 1) * sizeof *names);
    size_t n = 0;
    for (uint64_t row = 0; row < p->trace->slices.n; row++) {
        sv_str s = p->trace->slices.name[row];
        if (s && !is_name[s] && p->trace->slices.kind[row] == SV_SLICE)
            names[n++] = sv_dict_text(d, s).bytes;
        is_name[s] = true;
    }
    int code = sv_plot_no_such("slice", name, names, n, err);
    free(names);
    free(is_name);
    return code;
}
