/* stave steps: the iterations of a training run, each taken apart by kind of work.
 *
 * Rows go to standard output; what is remarkable (slow first step, outliers, stragglers among
 * ranks) is reported on standard error. */
#include "why/steps.h"
#include "subjects/comm/figures.h"

#include "cli/console.h"
#include "cmd/clickhouse.h"
#include "cmd/commands.h"
#include "core/base/buf.h"
#include "core/base/sat.h"
#include "store/ranks.h"

struct steps {
    const char *from, *marker, *run;
    struct sv_rows_choice to;
    struct sv_range range;
    bool strict, assume, ns, no_index;
    uint64_t memory_limit;
};

#define N_COLUMNS (5 + SV_N_WORK + SV_N_DEVICE)

struct line {
    struct sv_cell cells[N_COLUMNS];
    char text[N_COLUMNS][32];
    size_t n;
    bool is_human;
};

/* Kinds of work that no step has need no column in a table for people. */
struct shown {
    bool work[SV_N_WORK + SV_N_DEVICE];
    bool is_human;
};

static struct shown shown_of(const struct sv_steps *s, bool is_human)
{
    struct shown x = {.is_human = is_human};
    for (size_t k = 0; k < SV_N_WORK + SV_N_DEVICE; k++)
        x.work[k] = !is_human;
    for (size_t i = 0; i < s->n && is_human; i++) {
        for (size_t k = 0; k < SV_N_WORK; k++)
            x.work[k] |= s->steps[i].work_ns[k] != 0;
        for (size_t k = 0; k < SV_N_DEVICE; k++)
            x.work[SV_N_WORK + k] |= s->steps[i].device_ns[k] != 0;
    }
    return x;
}

static void add_ns(struct line *l, int64_t ns)
{
    l->cells[l->n] = l->is_human ? sv_cell_text(sv_human_ns(l->text[l->n], ns)) : sv_cell_int(ns);
    l->n++;
}

static int print_head(struct sv_printer *p, const struct shown *x, struct sv_err *err)
{
    bool is_human = x->is_human;
    const char *names[N_COLUMNS];
    char suffixed[N_COLUMNS][40];
    size_t n = 0;
    names[n++] = "step";
    names[n++] = "track";
    names[n++] = is_human ? "start" : "start_ns";
    names[n++] = is_human ? "dur" : "dur_ns";
    for (size_t i = 0; i < SV_N_WORK + SV_N_DEVICE; i++) {
        if (!x->work[i])
            continue;
        const char *name = i < SV_N_WORK ? sv_work_names[i] : sv_device_names[i - SV_N_WORK];
        snprintf(suffixed[n], sizeof suffixed[n], "%s%s", name, is_human ? "" : "_ns");
        names[n] = suffixed[n];
        n++;
    }
    names[n++] = "note";
    return p->rows.head(&p->rows, names, n, err);
}

/* Where the steps are from: a trace, or rows of a database. */
struct origin {
    const struct sv_trace *trace;
    const struct sv_step_rows *rows; /* instead of a trace */
};

static void add_title(const struct origin *o, sv_track track, struct sv_buf *to)
{
    if (o->rows)
        sv_buf_str(to, o->rows->titles[track]);
    else
        sv_track_title(o->trace->dict, track, to);
}

static int print_step(struct sv_printer *p, const struct origin *o, const struct sv_step *s,
                      const struct shown *x, const char *note, struct sv_err *err)
{
    struct line l = {.is_human = x->is_human};
    struct sv_buf path;
    sv_buf_init(&path, 1u << 16);
    add_title(o, s->track, &path);
    l.cells[l.n++] = sv_cell_int(s->number);
    l.cells[l.n++] = sv_cell_text(sv_buf_cstr(&path));
    add_ns(&l, o->rows ? s->ts_ns : s->ts_ns - o->trace->first_ns);
    add_ns(&l, s->dur_ns);
    for (size_t i = 0; i < SV_N_WORK + SV_N_DEVICE; i++)
        if (x->work[i])
            add_ns(&l, i < SV_N_WORK ? s->work_ns[i] : s->device_ns[i - SV_N_WORK]);
    l.cells[l.n++] = sv_cell_text(note);
    int code = p->rows.row(&p->rows, l.cells, l.n, err);
    sv_buf_fini(&path);
    return code;
}

/* The track that works longest per step on average, if by more than a tenth over the mean of
 * all. */
static void note_straggler(const struct sv_steps *s, const struct origin *o)
{
    double all = 0, worst = 0;
    sv_track who = 0;
    for (size_t i = 0; i < s->n;) {
        double sum = 0;
        size_t first = i;
        for (; i < s->n && s->steps[i].track == s->steps[first].track; i++)
            sum += (double)sv_step_own_ns(&s->steps[i]);
        all += sum;
        if (sum / (double)(i - first) > worst) {
            worst = sum / (double)(i - first);
            who = s->steps[first].track;
        }
    }
    all /= (double)s->n;
    bool is_one = false;
    for (size_t i = 0; i < s->n; i++)
        is_one |= s->steps[i].track == who && s->steps[i].is_straggler;
    if (s->n_tracks < 2 || worst < 1.1 * all || !is_one)
        return;
    struct sv_buf path;
    sv_buf_init(&path, 1u << 16);
    add_title(o, who, &path);
    sv_console_note("straggler: %s works %.0f %% longer per step than the mean of %zu tracks",
                    sv_buf_cstr(&path), (worst / all - 1) * 100, s->n_tracks);
    sv_buf_fini(&path);
}

/* The time between the steps of a track is nobody's: it is noted where it is a twentieth or
 * more. */
static void note_gaps(const struct sv_steps *s)
{
    int64_t between = 0, within = 0;
    char time[32];
    for (size_t i = 0; i < s->n; i++) {
        const struct sv_step *x = &s->steps[i], *before = i ? x - 1 : NULL;
        within = sv_sat_add(within, x->dur_ns);
        if (!before || before->track != x->track)
            continue;
        int64_t gap = sv_sat_sub(x->ts_ns, sv_sat_add(before->ts_ns, before->dur_ns));
        between = sv_sat_add(between, gap > 0 ? gap : 0);
    }
    double share = (double)between / ((double)between + (double)within);
    if (between > 0 && share >= 0.05)
        sv_console_note("%s lie between the steps, %.0f %% of the time; 'stave report wait' shows "
                        "what they wait for",
                        sv_human_ns(time, between), share * 100);
}

static void note_summary(const struct sv_steps *s, const struct origin *o)
{
    char median[32], limit[32];
    size_t outliers = 0;
    for (size_t i = 0; i < s->n; i++)
        outliers += s->steps[i].is_outlier;
    sv_console_note("%zu steps on %zu track%s by '%s', median %s", s->n, s->n_tracks,
                    s->n_tracks == 1 ? "" : "s", s->marker,
                    sv_human_ns(median, (int64_t)s->median_ns));
    if (s->first_ratio > SV_SLOW_FIRST)
        sv_console_note("the first step takes %.1f times the median of the others: warm-up",
                        s->first_ratio);
    if (outliers)
        sv_console_note("%zu outlier%s: longer than %s (median + 5 scaled median deviations)",
                        outliers, outliers == 1 ? "" : "s",
                        sv_human_ns(limit, (int64_t)s->limit_ns));
    note_straggler(s, o);
}

static int print_steps(const struct steps *o, const struct origin *from, struct sv_steps *s,
                       struct sv_err *err)
{
    struct sv_printer *p;
    int code = sv_printer_choose(&o->to, &p, err);
    if (code < 0)
        return code;
    bool is_human = !o->ns && (p->form == SV_ROWS_TABLE || p->form == SV_ROWS_MARKDOWN);
    struct shown x = shown_of(s, is_human);
    code = print_head(p, &x, err);
    for (size_t i = 0; i < s->n && code >= 0; i++) {
        const struct sv_step *step = &s->steps[i];
        const char *note = step->is_slow_first  ? "first"
                           : step->is_straggler ? "straggler"
                           : step->is_outlier   ? "outlier"
                                                : NULL;
        code = print_step(p, from, &s->steps[i], &x, note, err);
    }
    if (code >= 0)
        code = p->rows.end(&p->rows, err);
    int closed = sv_printer_close(p, err);
    return code < 0 ? code : closed;
}

static int run_database(const struct steps *o, const char *url, struct sv_err *err)
{
    struct sv_step_rows rows;
    if (o->marker)
        return sv_error(err, SV_EUSAGE,
                        "--marker: the steps of a database were found when it was filled");
    int code = sv_steps_clickhouse(url, o->run, &rows, err);
    if (code >= 0) {
        note_summary(&rows.steps, &(struct origin){.rows = &rows});
        code = print_steps(o, &(struct origin){.rows = &rows}, &rows.steps, err);
    }
    sv_step_rows_fini(&rows);
    return code;
}

static int run(void *options, const struct sv_words *operands, struct sv_err *err)
{
    const struct steps *o = options;
    struct sv_loaded l;
    struct sv_steps s = {0};
    int code = sv_expect_operands(operands, 1, 100, "trace", err);
    if (code >= 0)
        code = sv_database_alone(operands->items, operands->n, err);
    if (code < 0)
        return code;
    if (sv_is_database(operands->items[0]))
        return run_database(o, operands->items[0], err);
    if (o->run)
        return sv_error(err, SV_EUSAGE, "--run: only a database has several runs");
    code =
        sv_load_traces(operands->items, operands->n, &(struct sv_load_how)SV_LOAD_HOW(o), &l, err);
    if (code >= 0) {
        sv_steps_find(&s, l.trace, o->marker);
        if (s.n == 0)
            code = sv_error(
                err, SV_EFOUND,
                o->marker ? "no slice or instant matches '%s'"
                          : "no steps found: give the name of their marker with --marker GLOB%s",
                o->marker ? o->marker : "");
    }
    if (code >= 0) {
        sv_steps_divide(&s, l.trace);
        sv_comm_keep_stragglers(&s, l.trace);
        note_summary(&s, &(struct origin){.trace = l.trace});
        note_gaps(&s);
        code = print_steps(o, &(struct origin){.trace = l.trace}, &s, err);
    }
    sv_steps_fini(&s);
    sv_loaded_free(&l);
    return code;
}

static const struct sv_option options[] = {
    {0, "marker", "GLOB", SV_OPT_TEXT, offsetof(struct steps, marker),
     "the name of the slices or instants that mark steps (default: ProfilerStep#N and other common "
     "names)",
     NULL, NULL},
    {0, "ns", NULL, SV_OPT_FLAG, offsetof(struct steps, ns),
     "print times in nanoseconds in tables, too", NULL, NULL},
    {0, "run", "NAME", SV_OPT_TEXT, offsetof(struct steps, run),
     "of a database with several runs: the one to show", NULL, NULL},
    SV_ROWS_OPTION(struct steps, "to", to),
    SV_MEMORY_OPTION(struct steps),
    SV_INDEX_OPTION(struct steps),
    SV_RANGE_OPTIONS(struct steps),
    SV_INPUTS_OPTIONS(struct steps),
    {0},
};

static const struct sv_example examples[] = {
    {"stave steps trace.json", "iterations of a PyTorch profile"},
    {"stave steps clickhouse://db1:8123/traces --run 7", "all ranks that were exported there"},
    {"stave steps run.pftrace --marker 'train loop*' --to csv", "with a marker of your own"},
    {0},
};

const struct sv_command sv_command_steps = {
    .name = "steps",
    .operands = "TRACE…",
    .summary = "divide training steps by kind of work",
    .description =
        "Finds the iterations of a run and divides the time of each among data, copies, forward, "
        "backward, optimizer, communication, checkpoint, calls on files (disk), other work and "
        "waiting (idle); untraced is time of which nothing is known. The parts add up to the step. "
        "Waiting for data, communication and copies are what 'stave report wait' calls so. Other "
        "time is assigned to the innermost slice of the step's thread, whose kind follows from its "
        "name, its category or its parent. Where that thread has no slice with such a name, the "
        "time is assigned to the other threads of the process (backward on the autograd thread), "
        "then to the work on the devices: a kernel has the kind of the call that launched it, "
        "found by flows and correlation numbers. The columns device_… show how long at least one "
        "kernel, copy or collective was running, independent of the thread.\n\n"
        "Notes: `first` is a first step that takes more than 1.5 times the median of the others, "
        "`outlier` is more than 5 scaled median deviations above the median, `straggler` is the "
        "rank that works longest in a step, by a tenth above the median rank (time in "
        "communication does not count), if 'stave report comm' calls that rank or its host "
        "slow.\n\n"
        "Known markers: ProfilerStep#N of PyTorch; step, iteration, iter, batch and epoch with or "
        "without a number, as NVTX and SDK users write them; block_start and epoch_start of MLLOG. "
        "Instants mark steps, too: such a step lasts until its …_stop or until the next step. "
        "Where there are no markers, the argument 'step' of slices is used.\n\n"
        "A database that 'stave export --to clickhouse' filled can be given instead of traces: "
        "the start of a step then counts from the start of its own trace.",
    .options = options,
    .examples = examples,
    .lists = sv_format_lists,
    .options_size = sizeof(struct steps),
    .run = run,
};
