/* stave plot: pictures of a trace.
 *
 * Loads the trace, lets one function draw the picture that was asked for, and has it painted in the
 * form that the suffix of the output says. Nothing is written unless all of it worked. */
#include "cmd/plot.h"

#include "cmd/commands.h"
#include "cmd/first_rows.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *name;
    sv_plot_fn *draw; /* NULL: batch, whose input need not be a trace */
    size_t least_names, most_names;
    const char *names;
    const char *options; /* those that not all have */
} kinds[] = {
#define KIND(name, ...) {#name, sv_plot_##name, __VA_ARGS__},
    SV_PLOT_KINDS(KIND)
#undef KIND
        {"batch", NULL, 0, 0, NULL, "panel sla"},
};
#define N_KINDS (sizeof kinds / sizeof *kinds)

/* ---- what was asked ---- */

/* --from and --to are the sides of --time. Before they were, --from named a format, and still
 * does. */
static int take_sides(struct sv_plot *p, struct sv_interval *w, struct sv_err *err)
{
    const struct sv_plot_options *o = p->o;
    p->format = o->input_format;
    if (o->from && sv_parse_moment(o->from, strlen(o->from), &w->from) < 0) {
        w->from = o->window.from;
        p->format = o->from;
    } else if (o->from && o->window.from.is_given) {
        return sv_error(err, SV_EUSAGE, "--time or --from, not both");
    }
    if (!o->to)
        return 0;
    if (o->window.to.is_given)
        return sv_error(err, SV_EUSAGE, "--time or --to, not both");
    if (sv_parse_moment(o->to, strlen(o->to), &w->to) < 0)
        return sv_error(err, SV_EUSAGE,
                        "--to: '%s' is not a time such as 1.5s, 20ms or @123456789ns", o->to);
    return 0;
}

static int draw(size_t kind, struct sv_plot *p, const struct sv_interval *window,
                enum sv_picture_form form, struct sv_err *err)
{
    struct sv_picture picture;
    double scale;
    int code = sv_plot_picture(p, kinds[kind].draw, window, &picture, &scale, err);
    if (code >= 0)
        code = sv_plot_write(p->o->output, form, scale, &picture, err);
    sv_picture_fini(&picture);
    return code;
}

static int find_kind(const char *name, size_t *kind, struct sv_err *err)
{
    const char *names[N_KINDS];
    for (*kind = 0; *kind < N_KINDS; ++*kind) {
        names[*kind] = kinds[*kind].name;
        if (strcmp(name, kinds[*kind].name) == 0)
            return 0;
    }
    const char *near = sv_nearest(name, names, N_KINDS);
    char known[256] = "";
    for (size_t i = 0; i < N_KINDS; i++)
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s",
                 i == 0             ? ""
                 : i + 1 == N_KINDS ? " and "
                                    : ", ",
                 names[i]);
    return sv_error(err, SV_EUSAGE, "unknown plot '%s'%s%s%s; available: %s", name,
                    near ? ", perhaps '" : "", near ? near : "", near ? "'" : "", known);
}

/* What this kind of picture has no use for is not passed over. */
static int check_options(size_t kind, struct sv_err *err)
{
    static const char *const apart[][2] = {
        {"arrows", "no-arrows"}, {"top", "max-rows"}, {"log", "linear"}};
    char what[64], allowed[400];
    snprintf(what, sizeof what, "plot %s", kinds[kind].name);
    snprintf(
        allowed, sizeof allowed,
        "output width height scale title memory-limit no-index input-format strict since until "
        "recording %s",
        kinds[kind].options);
    int code = sv_options_only(what, allowed, err);
    for (size_t i = 0; i < sizeof apart / sizeof *apart && code >= 0; i++)
        code = sv_options_either(apart[i][0], apart[i][1], err);
    return code;
}

/* The names of the panels instead of a picture. */
static int list_panels(const struct sv_words *operands, struct sv_err *err)
{
    int code = sv_options_only("plot batch --list", "list", err);
    if (code >= 0)
        code = sv_expect_operands(operands, 1, 1, "operand", err);
    return code < 0 ? code : sv_plot_list_panels();
}

/* The operands after the trace, and where the picture goes. */
static int check(const struct sv_plot *p, size_t kind, struct sv_err *err)
{
    const char *output = p->o->output;
    if (p->n_names < kinds[kind].least_names)
        return sv_error(err, SV_EUSAGE, "plot %s needs %s after the trace", kinds[kind].name,
                        kinds[kind].names);
    if (p->n_names > kinds[kind].most_names)
        return sv_error(err, SV_EUSAGE, "plot %s: unexpected argument '%s'", kinds[kind].name,
                        p->names[kinds[kind].most_names]);
    if ((!output || strcmp(output, "-") == 0) && isatty(STDOUT_FILENO))
        return sv_error(err, SV_EUSAGE,
                        "refusing to write an image to a terminal: use -o FILE.svg (.png, .pdf); "
                        "'stave show' draws in the terminal");
    return 0;
}

static int run_batch(struct sv_plot *p, struct sv_err *err)
{
    double scale;
    int code = sv_plot_size(p, &scale, err);
    return code < 0 ? code : sv_plot_batch(p, scale, err);
}

static int run_trace(size_t kind, struct sv_plot *p, const struct sv_interval *window,
                     struct sv_err *err)
{
    enum sv_picture_form form;
    struct sv_loaded loaded;
    int code = sv_plot_form(p->o->output, &form, err);
    if (code < 0)
        return code;
    struct sv_load_how how = {.from = p->format,
                              .strict = p->o->strict,
                              .memory_limit_bytes = p->o->memory_limit,
                              .index = p->o->no_index,
                              .range = p->o->range};
    code = sv_load(p->path, &how, &loaded, err);
    p->trace = loaded.trace;
    if (code >= 0)
        code = draw(kind, p, window, form, err);
    sv_loaded_free(&loaded);
    return code;
}

static int plot(const struct sv_plot_options *o, const struct sv_words *operands,
                struct sv_err *err)
{
    struct sv_interval window = o->window;
    size_t kind;
    int code = sv_expect_operands(operands, 1, 200, "kind of picture", err);
    if (code >= 0)
        code = find_kind(operands->items[0], &kind, err);
    if (code >= 0 && o->list && !kinds[kind].draw)
        return list_panels(operands, err);
    if (code >= 0)
        code = check_options(kind, err);
    if (code >= 0)
        code = sv_expect_operands(operands, 2, 200, "trace", err);
    if (code < 0)
        return code;
    struct sv_plot p = {.o = o,
                        .path = operands->items[1],
                        .name = basename(operands->items[1]),
                        .names = operands->items + 2,
                        .n_names = operands->n - 2};
    code = check(&p, kind, err);
    if (code >= 0)
        code = sv_check_inputs(&p.path, 1, o->output, err);
    if (code >= 0)
        code = take_sides(&p, &window, err);
    if (code < 0)
        return code;
    return kinds[kind].draw ? run_trace(kind, &p, &window, err) : run_batch(&p, err);
}

static int run(void *options, const struct sv_words *operands, struct sv_err *err)
{
    struct sv_plot_options *o = options;
    int code = plot(o, operands, err);
    sv_words_free(&o->panels);
    return code;
}

static const struct sv_option options[] = {
    {'o', "output", "FILE", SV_OPT_OUTPUT, offsetof(struct sv_plot_options, output),
     "write to FILE.svg, FILE.png or FILE.pdf (default: SVG to standard output)", NULL, NULL},
    SV_TIME_OPTION(struct sv_plot_options, "only this window"),
    {0, "from", "TIME", SV_OPT_TEXT, offsetof(struct sv_plot_options, from),
     "start of the window (default: start of the trace)", NULL, "Window"},
    {0, "to", "TIME", SV_OPT_TEXT, offsetof(struct sv_plot_options, to),
     "end of the window (default: end of the trace)", NULL, "Window"},
    {0, "around", "NAME[#N]", SV_OPT_TEXT, offsetof(struct sv_plot_options, around),
     "the window around the first (the N-th) slice of this name or glob", NULL, NULL},
    {0, "margin", "SIZE", SV_OPT_TEXT, offsetof(struct sv_plot_options, margin),
     "with --around: time before and after the slice, as a time or a share of the slice (default "
     "25%)",
     NULL, "Window"},
    {0, "width", "PIXELS", SV_OPT_COUNT, offsetof(struct sv_plot_options, width),
     "width of the picture in pixels (default 1400)", NULL, NULL},
    {0, "height", "PIXELS", SV_OPT_COUNT, offsetof(struct sv_plot_options, height),
     "height of the picture in pixels (default: by its content)", NULL, NULL},
    {0, "scale", "FACTOR", SV_OPT_TEXT, offsetof(struct sv_plot_options, scale),
     "pixels of a PNG per pixel of the picture, for sharp prints (default 1)", NULL, "Picture"},
    {0, "title", "TEXT", SV_OPT_TEXT, offsetof(struct sv_plot_options, title),
     "title of the picture (default: the name of the file)", NULL, NULL},
    {0, "wall", NULL, SV_OPT_FLAG, offsetof(struct sv_plot_options, wall),
     "time axes show the time of day (UTC) instead of the time since the start", NULL, "Picture"},
    {0, "top", "N", SV_OPT_COUNT, offsetof(struct sv_plot_options, top),
     "only the N largest: rows of a timeline, tracks of a flame graph, counters, steps, layers",
     NULL, NULL},
    {0, "rows", "WHAT", SV_OPT_TEXT, offsetof(struct sv_plot_options, rows),
     "timeline: cpu, gpu, disk, io, app (the application's own tracks) or tracks (all), joined by "
     "commas (default: cpu,gpu,disk,io,app as far as the trace has them, else tracks)",
     "cpu gpu disk io app tracks", NULL},
    {0, "order", "WORD", SV_OPT_TEXT, offsetof(struct sv_plot_options, order),
     "timeline: " SV_ORDER_HELP, "findings trace", "timeline"},
    {0, "group", "HOW", SV_OPT_TEXT, offsetof(struct sv_plot_options, group),
     "timeline: file and block I/O by process (default), by role (trainers, loaders, others) or "
     "for all together",
     "process role all", NULL},
    {0, "max-rows", "N", SV_OPT_COUNT, offsetof(struct sv_plot_options, max_rows),
     "timeline: maximum number of tracks (default 200; 24 below cpu, gpu, disk and io)", NULL,
     "timeline"},
    {0, "arrows", "N", SV_OPT_COUNT, offsetof(struct sv_plot_options, arrows),
     "timeline: draw flows as arrows unless there are more than N in the window (default 40)", NULL,
     "timeline"},
    {0, "no-arrows", NULL, SV_OPT_FLAG, offsetof(struct sv_plot_options, no_arrows),
     "timeline: draw none", NULL, "timeline"},
    {0, "diff", "TRACE", SV_OPT_TEXT, offsetof(struct sv_plot_options, diff),
     "flame: compare with this trace, the newer of the two", NULL, NULL},
    {0, "merge-tracks", NULL, SV_OPT_FLAG, offsetof(struct sv_plot_options, merge_tracks),
     "flame: call paths of all tracks together", NULL, "flame"},
    {0, "samples", NULL, SV_OPT_FLAG, offsetof(struct sv_plot_options, samples),
     "flame: use stack samples ('stave record --sample 99') instead of slices", NULL, NULL},
    {0, "offcpu", NULL, SV_OPT_FLAG, offsetof(struct sv_plot_options, offcpu),
     "flame: time that threads waited, by what for ('stave record --offcpu')", NULL, NULL},
    {0, "buckets", "N", SV_OPT_COUNT, offsetof(struct sv_plot_options, buckets),
     "hist: number of buckets (default: by the number of slices)", NULL, "hist"},
    {0, "log", NULL, SV_OPT_FLAG, offsetof(struct sv_plot_options, log),
     "hist: logarithmic buckets (default if durations differ more than tenfold)", NULL, "hist"},
    {0, "linear", NULL, SV_OPT_FLAG, offsetof(struct sv_plot_options, linear),
     "hist: buckets of equal width", NULL, "hist"},
    {0, "marker", "GLOB", SV_OPT_TEXT, offsetof(struct sv_plot_options, marker),
     "steps: the name of the slices that mark steps (default: ProfilerStep#N and other common "
     "names)",
     NULL, "steps"},
    {0, "panel", "NAME", SV_OPT_LIST, offsetof(struct sv_plot_options, panels),
     "batch: only this panel; may be given several times", NULL, "batch"},
    {0, "list", NULL, SV_OPT_FLAG, offsetof(struct sv_plot_options, list),
     "batch: list the names of all panels", NULL, "batch"},
    {0, "sla", "MS,…", SV_OPT_TEXT, offsetof(struct sv_plot_options, sla),
     "batch: latency limits of the panel sla in milliseconds (default 50,100,200)", NULL, "batch"},
    SV_MEMORY_OPTION(struct sv_plot_options),
    SV_INDEX_OPTION(struct sv_plot_options),
    SV_RANGE_OPTIONS(struct sv_plot_options),
    SV_INPUT_OPTIONS_AS(struct sv_plot_options, "input-format", input_format),
    {0},
};

static const struct sv_example examples[] = {
    {"stave plot timeline trace.pftrace -o trace.svg",
     "the whole trace; open it in a browser, hover for details, click to zoom"},
    {"stave plot timeline run.pftrace --group role -o run.png",
     "a recorded run: CPU, GPU, disks, file I/O of trainers and loaders, phases"},
    {"stave plot timeline run.pftrace --around 'training step#7' --margin 50% -o step.png",
     "the seventh training step, and half its duration before and after it"},
    {"stave plot timeline trace.json --time 1.2s:1.3s -o step.png", "a tenth of a second of it"},
    {"stave plot flame trace.json -o flame.svg", "where the time goes, by call path"},
    {"stave plot flame run.pftrace --offcpu -o waits.svg",
     "where threads waited, as 'stave record --offcpu' has seen it"},
    {"stave plot flame hot.pftrace --samples -o hot.svg",
     "where the CPUs spent their time, from the stacks of 'stave record --sample 99'"},
    {"stave plot flame before.json --diff after.json -o diff.svg",
     "what became slower (orange) and faster (blue)"},
    {"stave plot hist trace.json 'aten::conv2d' -o conv.png",
     "how long the calls of one operator take"},
    {"stave plot counter trace.pftrace 'gpu*' -o gpu.pdf", "counters over time"},
    {"stave plot steps trace.json -o steps.svg", "each training step by kind of work"},
    {"stave plot gpu trace.json -o gpu.png", "what the GPUs did over time, and why they waited"},
    {"stave plot comm merged.pftrace -o comm.svg", "which ranks wait, and for whom"},
    {"stave plot layers decode.json -o layers.svg",
     "time per layer of a model by kind of operation"},
    {"stave plot batch batching_trace_summary.csv -o plots.png",
     "an inference server's batches: 37 panels on one sheet"},
    {"stave plot batch server.pftrace --panel throughput --panel sla -o load.svg",
     "two of them; 'stave plot batch --list' names all"},
    {"stave plot llm batching_trace.pftrace -o llm.png",
     "tokens, steps and queue of an engine with continuous batching"},
    {"stave plot batch trace.csv -o plots/", "a picture for each panel"},
    {"stave plot batch trace.csv --panel sla --sla 20,50 -o sla.svg",
     "requests within 20 and 50 ms"},
    {0},
};

static void add_kinds(struct sv_buf *out)
{
    for (size_t i = 0; i < N_KINDS; i++) {
        sv_buf_str(out, i ? " " : "");
        sv_buf_str(out, kinds[i].name);
    }
}

const struct sv_command sv_command_plot = {
    .name = "plot",
    .operands = "KIND TRACE [NAME…] -o FILE",
    .summary = "draw a trace: timeline, flame graph, histogram, counters, steps, GPUs, layers, "
               "batches, ranks, LLM engines",
    .description =
        "The suffix of the output chooses SVG (hover for details, click to zoom, no network), PNG "
        "or PDF.\n\n"
        "timeline: for a trace with system events, first the machine (CPU, GPUs, disks, file and "
        "block I/O of each process), then the application's phases, threads and counters; for "
        "other traces all tracks. Slices narrower than a pixel are merged, so the size of the "
        "picture does not depend on the size of the trace.\n\n"
        "flame: time by call path; the width of a box is its total time, the part without children "
        "is its self time. With --diff the widths are those of the second trace and colours show "
        "the change (per step, where both have steps).\n\n"
        "hist NAME: the durations of the slices of this name (a glob), with median, p90 and "
        "p99.\n\n"
        "counter [NAME…]: counters by name (globs) over time, those of one unit in one panel.\n\n"
        "steps: a bar per training step, divided as by 'stave steps'.\n\n"
        "gpu: for each device the share of time that it computed, communicated, copied or waited "
        "for the host, its memory, and its busiest streams (--top N), by 'stave report gpu'.\n\n"
        "comm: each rank over time: waiting for others in collectives, transfer, and where it "
        "arrived last, by 'stave report comm'; --top N takes the ranks that cost most.\n\n"
        "llm: an engine with continuous batching: time to first token, time between tokens, steps, "
        "queue, KV cache and tokens per second over time, latencies by step size and by load, by "
        "'stave report llm'.\n\n"
        "layers: a bar per layer of a model, divided by kind of operation. The layer is the "
        "argument 'layer', a number in the name of the slice or of one around it (layers.3, "
        "DecoderLayer_7), or else the thread's number; the kind follows from the category and the "
        "name. Self times are added up.\n\n"
        "batch: the batches of an inference server, from its summary CSV (and metrics.csv beside "
        "it) or from a trace of it: latencies, phases, workers, sizes, arrivals, throughput. All "
        "panels on one sheet, some of them (--panel), or a picture for each in a folder (-o DIR/).",
    .options = options,
    .examples = examples,
    .lists = sv_format_lists,
    .first = add_kinds,
    .options_size = sizeof(struct sv_plot_options),
    .run = run,
};
