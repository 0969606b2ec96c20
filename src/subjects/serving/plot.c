/* stave plot batch: the panels of an inference server's run, one by one or all on a sheet.
 *
 * The input is the server's summary CSV (with metrics.csv beside it, where it is) or a trace of it.
 * A folder as output gets a picture per panel. */
#include "plot/kinds.h"

#include "cli/console.h"
#include "cli/nearest.h"
#include "formats/formats.h"
#include "subjects/serving/panels.h"
#include "subjects/serving/sla.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PANEL_WIDTH  900.0
#define PANEL_HEIGHT 520.0
#define SHEET_WIDTH  1650.0

_Static_assert(SV_SLA_MAX == SV_BATCH_LIMITS_MAX, "all limits fit");

struct wanted {
    const struct sv_panel *panels[64];
    size_t n;
    bool is_all;
};

int sv_plot_list_panels(void)
{
    size_t n;
    const struct sv_panel *panels = sv_batch_panels(&n);
    for (size_t i = 0; i < n; i++)
        sv_print(stdout, "%-20s %s\n", panels[i].name, panels[i].title);
    return 0;
}

static int choose_panels(const struct sv_words *names, struct wanted *w, struct sv_err *err)
{
    size_t n_all;
    const struct sv_panel *panels = sv_batch_panels(&n_all);
    const char *candidates[64];
    for (size_t i = 0; i < n_all; i++)
        candidates[i] = panels[i].name;
    *w = (struct wanted){.is_all = names->n == 0};
    for (size_t i = 0; i < n_all && w->is_all; i++)
        w->panels[w->n++] = &panels[i];
    for (size_t k = 0; k < names->n; k++) {
        size_t i = 0;
        while (i < n_all && strcmp(names->items[k], panels[i].name) != 0)
            i++;
        if (i == n_all) {
            const char *near = sv_nearest(names->items[k], candidates, n_all);
            return sv_error(err, SV_EUSAGE, "--panel: unknown panel '%s'%s%s%s; --list shows all",
                            names->items[k], near ? ", perhaps '" : "", near ? near : "",
                            near ? "'" : "");
        }
        if (w->n < 64)
            w->panels[w->n++] = &panels[i];
    }
    return 0;
}

/* ---- the input ---- */

static void take_metric(void *ctx, int64_t ts_ns, double queued, double rejected)
{
    sv_batch_metric_add(ctx, ts_ns, queued, rejected);
}

/* The newer server writes metrics.csv beside its summary: its values take precedence over those
 * derived from the requests. */
static int read_metrics(const char *path, struct sv_batch_rows *b, bool strict, struct sv_err *err)
{
    char beside[4096];
    const char *slash = strrchr(path, '/');
    struct sv_input *in;
    struct sv_report report;
    int n = snprintf(beside, sizeof beside, "%.*smetrics.csv", slash ? (int)(slash + 1 - path) : 0,
                     path);
    if (n < 0 || (size_t)n >= sizeof beside || access(beside, R_OK) != 0)
        return 0;
    int code = sv_input_open(beside, &in, err);
    if (code < 0)
        return code;
    sv_report_init(&report);
    b->n_metrics = 0;
    code = sv_metrics_csv_read(in, take_metric, b, &report, err);
    sv_input_close(in);
    sv_console_findings(beside, &report);
    if (code < 0)
        sv_err_in_file(err, beside);
    else if (strict && sv_report_count(&report, SV_DAMAGE))
        code = sv_error(err, SV_EFOUND, "%s is damaged", beside);
    sv_report_fini(&report);
    return code;
}

static int load(const struct sv_plot *p, struct sv_batch_rows *b, struct sv_err *err)
{
    struct sv_loaded loaded;
    struct sv_load_how how = {.from = p->format,
                              .strict = p->o->strict,
                              .memory_limit_bytes = p->o->memory_limit,
                              .index = p->o->no_index};
    int code = sv_load(p->path, &how, &loaded, err);
    if (code >= 0) {
        sv_batch_rows_from_trace(b, loaded.trace);
        if (strcmp(loaded.in.format->name, "batching-csv") == 0)
            code = read_metrics(p->path, b, p->o->strict, err);
    }
    sv_loaded_free(&loaded);
    return code;
}

/* ---- the output ---- */

static bool is_folder(const char *path)
{
    struct stat st;
    size_t len = path ? strlen(path) : 0;
    return len && (path[len - 1] == '/' || (stat(path, &st) == 0 && S_ISDIR(st.st_mode)));
}

static int draw_one(const struct sv_plot *p, const struct sv_panel *panel,
                    const struct sv_batch_rows *b, const char *output, enum sv_picture_form form,
                    double scale, struct sv_err *err)
{
    struct sv_picture picture;
    double w = p->o->width ? (double)p->o->width : PANEL_WIDTH;
    double h = p->o->height ? (double)p->o->height : floor(w * PANEL_HEIGHT / PANEL_WIDTH);
    sv_picture_init(&picture, w);
    picture.height = h;
    picture.title = sv_picture_printf(&picture, "%s", panel->title);
    sv_batch_panel_draw(&picture, panel, b, 0, 0, w, h);
    int code = sv_plot_write(output, form, scale, &picture, err);
    sv_picture_fini(&picture);
    return code;
}

/* A file per panel: NUMBER-NAME.png (SVG where there is no cairo). */
static int draw_folder(const struct sv_plot *p, const struct wanted *w,
                       const struct sv_batch_rows *b, double scale, struct sv_err *err)
{
    size_t n_all;
    const struct sv_panel *panels = sv_batch_panels(&n_all);
    struct sv_err why = {0};
    enum sv_picture_form form = sv_cairo_load(&why) >= 0 ? SV_FORM_PNG : SV_FORM_SVG;
    const char *folder = p->o->output;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return sv_error(err, SV_EIO, "%s: %s", folder, strerror(errno));
    int code = 0;
    for (size_t i = 0; i < w->n && code >= 0; i++) {
        char path[4096];
        int n = snprintf(path, sizeof path, "%s%s%02zu-%s.%s", folder,
                         folder[strlen(folder) - 1] == '/' ? "" : "/",
                         (size_t)(w->panels[i] - panels), w->panels[i]->name,
                         form == SV_FORM_PNG ? "png" : "svg");
        if (n < 0 || (size_t)n >= sizeof path)
            return sv_error(err, SV_EUSAGE, "the name of the folder is too long");
        code = draw_one(p, w->panels[i], b, path, form, scale, err);
    }
    if (code >= 0)
        sv_console_note("%zu pictures in %s", w->n, folder);
    return code;
}

/* Several panels in one picture: all of them as a sheet, chosen ones below each other. */
static int draw_sheet(const struct sv_plot *p, const struct wanted *w,
                      const struct sv_batch_rows *b, enum sv_picture_form form, double scale,
                      struct sv_err *err)
{
    struct sv_picture picture;
    double width = p->o->width ? (double)p->o->width : w->is_all ? SHEET_WIDTH : PANEL_WIDTH;
    sv_picture_init(&picture, width);
    if (w->is_all) {
        sv_batch_sheet_draw(&picture, b, p->o->title ? p->o->title : p->name);
    } else {
        double h = floor(width * PANEL_HEIGHT / PANEL_WIDTH);
        picture.title = sv_picture_printf(&picture, "%s", p->o->title ? p->o->title : p->name);
        for (size_t i = 0; i < w->n; i++)
            sv_batch_panel_draw(&picture, w->panels[i], b, 0, h * (double)i, width, h);
        picture.height = h * (double)w->n;
    }
    int code = sv_plot_write(p->o->output, form, scale, &picture, err);
    sv_picture_fini(&picture);
    return code;
}

int sv_plot_batch(struct sv_plot *p, double scale, struct sv_err *err)
{
    struct sv_batch_rows b;
    struct wanted w;
    enum sv_picture_form form = SV_FORM_SVG;
    bool to_folder = is_folder(p->o->output);
    int code = choose_panels(&p->o->panels, &w, err);
    if (code >= 0 && !to_folder)
        code = sv_plot_form(p->o->output, &form, err);
    if (code < 0)
        return code;
    sv_batch_rows_init(&b);
    code = sv_parse_sla(p->o->sla, b.sla_ms, &b.n_sla, err);
    if (code >= 0)
        code = load(p, &b, err);
    if (code >= 0 && b.n == 0)
        code = sv_error(err, SV_EFOUND, "%s has no batches: there is nothing to draw", p->path);
    if (code >= 0 && to_folder)
        code = draw_folder(p, &w, &b, scale, err);
    else if (code >= 0 && w.n == 1)
        code = draw_one(p, w.panels[0], &b, p->o->output, form, scale, err);
    else if (code >= 0)
        code = draw_sheet(p, &w, &b, form, scale, err);
    sv_batch_rows_fini(&b);
    return code;
}
