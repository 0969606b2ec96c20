/* A picture of a loaded trace, not yet in any form: what was asked is checked, then one function
 * draws. For `stave plot`, which writes it, and for libstave-read, whose callers get it as SVG:
 * nothing here needs cairo. */
#include "cmd/plot.h"

#include "cli/console.h"

#include <string.h>

static int set_window(struct sv_plot *p, const struct sv_interval *w, struct sv_err *err)
{
    const struct sv_trace *t = p->trace;
    p->is_zoomed = w->from.is_given || w->to.is_given;
    p->from_ns = sv_moment_in(&w->from, t->first_ns, t->first_ns);
    p->to_ns =
        sv_moment_in(&w->to, t->first_ns, t->last_ns < INT64_MAX ? t->last_ns + 1 : INT64_MAX);
    if (p->to_ns <= p->from_ns)
        return sv_error(err, SV_EUSAGE, "--time: the window is empty");
    if (p->from_ns > t->last_ns || p->to_ns <= t->first_ns) {
        char end[32];
        return sv_error(err, SV_EUSAGE, "--time: no events in that window; the trace lasts %s",
                        sv_human_ns(end, t->last_ns - t->first_ns));
    }
    return sv_plot_zoom(p, err);
}

static int set_wall_time(struct sv_plot *p, struct sv_err *err)
{
    const struct sv_clocks *c = &p->trace->dict->clocks;
    if (!p->o->wall)
        return 0;
    if (c->trace_clock == SV_CLOCK_REALTIME) {
        p->frame.wall_ns = p->trace->first_ns;
        return 0;
    }
    if (!sv_clocks_convert(c, c->trace_clock, SV_CLOCK_REALTIME, p->trace->first_ns,
                           &p->frame.wall_ns))
        return sv_error(err, SV_EUSAGE, "--wall: the trace does not relate its clock to wall time");
    return 0;
}

static bool is_empty(const struct sv_trace *t)
{
    return t->slices.n == 0 && t->counters.n == 0;
}

int sv_plot_picture(struct sv_plot *p, sv_plot_fn *draw, const struct sv_interval *window,
                    struct sv_picture *picture, double *scale, struct sv_err *err)
{
    sv_picture_init(picture, 0);
    if (is_empty(p->trace))
        return sv_error(err, SV_EFOUND,
                        "%s has neither slices nor counters: there is nothing to draw", p->path);
    int code = sv_plot_size(p, scale, err);
    if (code >= 0)
        code = set_window(p, window, err);
    if (code >= 0)
        code = set_wall_time(p, err);
    if (code < 0)
        return code;
    picture->width = p->frame.width;
    p->picture = picture;
    return draw(p, err);
}

/* ---- without a command ---- */

static const struct {
    const char *name;
    sv_plot_fn *draw;
    size_t least_names, most_names;
    const char *names, *options;
} kinds[] = {
#define KIND(name, ...) {#name, sv_plot_##name, __VA_ARGS__},
    SV_PLOT_KINDS(KIND)
#undef KIND
};
#define N_KINDS (sizeof kinds / sizeof *kinds)

int sv_plot_kind(const char *kind, size_t n_names, sv_plot_fn **draw, struct sv_err *err)
{
    char known[256] = "";
    for (size_t i = 0; i < N_KINDS; i++) {
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", i ? ", " : "",
                 kinds[i].name);
        if (strcmp(kind, kinds[i].name) != 0)
            continue;
        if (n_names < kinds[i].least_names)
            return sv_error(err, SV_EUSAGE, "plot %s needs %s", kind, kinds[i].names);
        if (n_names > kinds[i].most_names)
            return sv_error(err, SV_EUSAGE, "plot %s takes %s names", kind,
                            kinds[i].most_names ? "fewer" : "no");
        *draw = kinds[i].draw;
        return 0;
    }
    return sv_error(err, SV_EUSAGE, "unknown plot '%.40s'; available: %s", kind, known);
}
