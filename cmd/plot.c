/* stave plot: a picture of a trace. */
#include "cmd/commands.h"
#include "cmd/console.h"
#include "cmd/files.h"
#include "cmd/load.h"
#include "plot/svg.h"

#include <string.h>

struct plot {
    const char *output, *from, *title;
    struct sv_interval window;
    uint64_t width, rows, memory_limit;
    bool strict;
};

static int64_t resolve(const struct sv_moment *m, const struct sv_trace *t, int64_t missing)
{
    return !m->is_given ? missing : m->is_absolute ? m->ns : t->first_ns + m->ns;
}

static int paint(const struct plot *o, const struct sv_trace *t, const char *title,
                 struct sv_err *err)
{
    struct sv_layout layout;
    struct sv_svg_options svg = {.title = title,
                                 .width = o->width ? (double)o->width : 1400,
                                 .rows_max = o->rows ? o->rows : 200};
    struct sv_output *out;
    int code = sv_output_open(o->output ? o->output : "-", SV_OUTPUT_RENAME, SV_PLAIN, &out, err);
    if (code < 0)
        return code;
    struct sv_buf buf;
    sv_buf_init(&buf, (size_t)1 << 30);
    sv_layout_init(&layout, t, resolve(&o->window.from, t, t->first_ns),
                   resolve(&o->window.to, t, t->last_ns), sv_svg_plot_width(&svg));
    sv_svg_timeline(&buf, &layout, &svg);
    sv_output_write(out, buf.data, buf.len);
    sv_layout_fini(&layout);
    sv_buf_fini(&buf);
    return sv_output_close(out, err);
}

static int run(void *options, const struct sv_words *operands, struct sv_err *err)
{
    struct plot *o = options;
    int code = sv_expect_operands(operands, 2, 2, "kind of picture or input file", err);
    if (code < 0)
        return code;
    if (strcmp(operands->items[0], "timeline") != 0)
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS, "there is no picture '%s'; there is timeline",
                          operands->items[0]);
    const char *path = operands->items[1];
    struct sv_loaded loaded;
    code = sv_load(path, o->from, o->strict, o->memory_limit, &loaded, err);
    if (code >= 0)
        code = paint(o, loaded.trace, o->title ? o->title : path, err);
    sv_loaded_free(&loaded);
    return code;
}

static const struct sv_option options[] = {
    {'o', "output", "FILE", SV_OPT_TEXT, offsetof(struct plot, output),
     "where to write the SVG (default: standard output)", NULL},
    {0, "time", "FROM:TO", SV_OPT_WINDOW, offsetof(struct plot, window),
     "only this window; times count from the start of the trace, with a leading @ they are on its "
     "clock",
     NULL},
    {0, "width", "PIXELS", SV_OPT_COUNT, offsetof(struct plot, width),
     "of the picture (default 1400)", NULL},
    {0, "rows", "N", SV_OPT_COUNT, offsetof(struct plot, rows),
     "at most so many rows (default 200)", NULL},
    {0, "title", "TEXT", SV_OPT_TEXT, offsetof(struct plot, title),
     "above the picture (default: the file's name)", NULL},
    {0, "memory-limit", "SIZE", SV_OPT_BYTES, offsetof(struct plot, memory_limit),
     "refuse a trace that needs more", NULL},
    SV_INPUT_OPTIONS(struct plot),
    {0},
};

static const struct sv_example examples[] = {
    {"stave plot timeline trace.pftrace -o trace.svg",
     "the whole trace; open it in a browser, hover for details"},
    {"stave plot timeline trace.json --time 1.2s:1.3s -o step.svg", "a tenth of a second of it"},
    {0},
};

const struct sv_command sv_command_plot = {
    .name = "plot",
    .operands = "timeline IN -o OUT.svg",
    .summary = "draw the time line of a trace",
    .description = "Draws processes, threads, other tracks and counters over time as an SVG "
                   "picture. What is narrower than a pixel is "
                   "merged, so a large trace makes no large picture.",
    .options = options,
    .examples = examples,
    .options_size = sizeof(struct plot),
    .run = run,
};
