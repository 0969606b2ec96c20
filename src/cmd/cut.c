/* stave cut: a part of a trace, by time, track, category, name or process, in one streaming pass.
 *
 * Times on the command line count from the first event unless they say otherwise, and the first
 * event is known only when the sorted stream begins: a small stage waits for it and then builds the
 * filter. */
#include "cli/console.h"
#include "cmd/commands.h"
#include "core/base/mem.h"
#include "core/base/sat.h"
#include "files/open.h"
#include "store/filter.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct cut {
    struct sv_output_choice out;
    const char *from;
    bool strict;
    struct sv_interval time;
    struct sv_words tracks, cats, names, pids;
};

struct late_filter {
    struct sv_sink sink;
    const struct cut *options;
    struct sv_filter filter;
    struct sv_dict *dict;
    struct sv_sink *next; /* the filter, once the first event has come */
    bool is_built;
    int64_t first_ns, last_ns; /* of the trace */
};

/* After the filter: a result without events is none, and no file is left that looks like one. */
struct judge {
    struct sv_sink sink, *next;
    const struct late_filter *late;
    bool is_any, is_empty;
};

/* Nothing of the trace is in the window; what counters were before it does not count. */
static bool is_outside(const struct late_filter *l)
{
    return l->is_built && (l->filter.from_ns > l->last_ns || l->filter.to_ns <= l->first_ns);
}

static int judge_write(struct sv_sink *s, const struct sv_event *events, size_t n,
                       struct sv_err *err)
{
    struct judge *j = (struct judge *)s;
    j->is_any |= n > 0;
    return j->next->write(j->next, events, n, err);
}

static int judge_close(struct sv_sink *s, bool failed, struct sv_err *err)
{
    struct judge *j = (struct judge *)s;
    j->is_empty = !failed && (!j->is_any || is_outside(j->late));
    return j->next->close(j->next, failed || j->is_empty, err);
}

static int late_write(struct sv_sink *s, const struct sv_event *events, size_t n,
                      struct sv_err *err)
{
    struct late_filter *l = (struct late_filter *)s;
    if (!l->is_built && n) {
        l->filter.from_ns = sv_moment_in(&l->options->time.from, events[0].ts_ns, INT64_MIN);
        l->filter.to_ns = sv_moment_in(&l->options->time.to, events[0].ts_ns, INT64_MAX);
        l->next = sv_filter_new(l->dict, &l->filter, l->next);
        l->is_built = true;
        l->first_ns = l->last_ns = events[0].ts_ns;
    }
    for (size_t i = 0; i < n; i++) {
        int64_t end = sv_sat_add(events[i].ts_ns, events[i].dur_ns > 0 ? events[i].dur_ns : 0);
        l->last_ns = end > l->last_ns ? end : l->last_ns;
    }
    return l->next->write(l->next, events, n, err);
}

static int late_close(struct sv_sink *s, bool failed, struct sv_err *err)
{
    struct late_filter *l = (struct late_filter *)s;
    return l->next->close(l->next, failed, err);
}

static int check_window(const struct sv_interval *w, struct sv_err *err)
{
    bool is_empty = w->from.is_given && w->to.is_given &&
                    w->from.is_absolute == w->to.is_absolute && w->from.ns >= w->to.ns;
    return is_empty ? sv_error(err, SV_EUSAGE, "--time: the window is empty") : 0;
}

static int parse_pids(const struct sv_words *words, int64_t **pids, struct sv_err *err)
{
    *pids = sv_alloc((words->n + 1) * sizeof **pids);
    for (size_t i = 0; i < words->n; i++) {
        char *end;
        errno = 0;
        (*pids)[i] = strtoll(words->items[i], &end, 10);
        if (*end || errno ||
            (!isdigit((unsigned char)words->items[i][0]) && words->items[i][0] != '-'))
            return sv_error(err, SV_EUSAGE, "--pid: '%s' is not a number", words->items[i]);
    }
    return 0;
}

static struct sv_globs globs(const struct sv_words *w)
{
    return (struct sv_globs){.items = w->items, .n = w->n};
}

/* "from 0 s to 9 us of the trace": both ways in which --time can be given. */
static int say_empty(const struct late_filter *l, const char *path)
{
    char line[320], length[32];
    sv_human_ns(length, sv_sat_sub(l->last_ns, l->first_ns));
    if (!l->is_built)
        snprintf(line, sizeof line, "no events, so nothing was cut and no file was written");
    else
        snprintf(line, sizeof line,
                 "nothing %s, so no file was written: the trace lasts %s, from @%" PRId64
                 "ns to @%" PRId64 "ns of its clock",
                 is_outside(l) ? "is in the window of --time" : "matches", length, l->first_ns,
                 l->last_ns);
    sv_console_error(path, SV_NO_POS, line);
    return SV_EXIT_LESS;
}

/* source → sort → late filter → judge → whatever stages the format needs → format */
static int cut(const struct cut *o, const char *path, const int64_t *pids, struct sv_err *err)
{
    struct sv_dict *dict = sv_dict_new();
    struct sv_opened in;
    struct late_filter late = {
        .options = o, .dict = dict, .sink = {.write = late_write, .close = late_close}};
    late.filter = (struct sv_filter){.tracks = globs(&o->tracks),
                                     .cats = globs(&o->cats),
                                     .names = globs(&o->names),
                                     .pids = pids,
                                     .n_pids = o->pids.n};
    struct judge judge = {.sink = {.write = judge_write, .close = judge_close}, .late = &late};
    int code = sv_open_input(path, o->from, 0, dict, &in, err);
    if (code >= 0)
        code = sv_open_output(&o->out, dict, &in.report, &judge.next, err);
    if (code >= 0) {
        unsigned gives = in.source->gives & ~SV_ORDER_BITS;
        judge.next = sv_pump_adapt(gives, judge.next, dict, &in.report, NULL);
        judge.sink.takes = judge.next->takes;
        judge.sink.best = judge.next->best;
        late.next = &judge.sink;
        late.sink.takes = gives; /* so that sv_run() puts a sort in front, and nothing else */
        code = sv_run(&in, &late.sink, o->strict, "cutting", err);
        if (code >= 0 && judge.is_empty)
            code = say_empty(&late, path);
    }
    sv_opened_close(&in);
    sv_dict_free(dict);
    return code;
}

static int run(void *options, const struct sv_words *operands, struct sv_err *err)
{
    struct cut *o = options;
    int64_t *pids = NULL;
    int code = sv_expect_operands(operands, 1, 1, "input file", err);
    if (code >= 0)
        code = sv_check_inputs(operands->items, 1, o->out.path, err);
    if (code >= 0)
        code = check_window(&o->time, err);
    if (code >= 0)
        code = parse_pids(&o->pids, &pids, err);
    if (code >= 0)
        code = cut(o, operands->items[0], pids, err);
    free(pids);
    sv_words_free(&o->tracks);
    sv_words_free(&o->cats);
    sv_words_free(&o->names);
    sv_words_free(&o->pids);
    return code;
}

static const struct sv_option options[] = {
    {'t', "time", "FROM:TO", SV_OPT_WINDOW, offsetof(struct cut, time),
     "the time window; 1.5s, 20ms, 300us, 5ns count from the start of the trace, with a leading @ "
     "they are times of its clock; either side may be omitted",
     NULL, NULL},
    {0, "track", "GLOB", SV_OPT_LIST, offsetof(struct cut, tracks),
     "tracks whose name or path (process/thread/…) matches; may be given several times, as may "
     "the following",
     NULL, NULL},
    {0, "cat", "GLOB", SV_OPT_LIST, offsetof(struct cut, cats), "events with a matching category",
     NULL, NULL},
    {0, "name", "GLOB", SV_OPT_LIST, offsetof(struct cut, names), "events with a matching name",
     NULL, NULL},
    {0, "pid", "PID", SV_OPT_LIST, offsetof(struct cut, pids), "events of this process", NULL,
     NULL},
    SV_OUTPUT_OPTIONS(struct cut),
    SV_INPUT_OPTIONS(struct cut),
    {0},
};

static const struct sv_example examples[] = {
    {"stave cut run.pftrace --time 1.2s:1.3s -o step.pftrace",
     "a tenth of a second, including slices that were open in it"},
    {"stave cut run.json.gz --cat kernel --cat 'gpu_*' -o gpu.pftrace", "only GPU work"},
    {"stave cut run.pftrace --name 'ProfilerStep#*' --to text", "print the steps"},
    {0},
};

const struct sv_command sv_command_cut = {
    .name = "cut",
    .operands = "IN [--time FROM:TO] [--track GLOB] [--cat GLOB] [--name GLOB] [--pid PID] -o OUT",
    .summary = "keep a part of a trace",
    .description = "Writes the events that are in the window and match all given conditions. The "
                   "result is a complete trace: slices that were open at the start of the window "
                   "begin there (the argument cut.begin_ns has their real start); slices that are "
                   "open at its end end there (argument cut.end); counters start with their last "
                   "value; names, tracks and flows are kept. If nothing is left, no file is "
                   "written, and the exit status is 5.\n\n"
                   "The file is streamed, never loaded: cutting 100 GB needs no more memory than "
                   "cutting 100 MB.",
    .options = options,
    .examples = examples,
    .lists = sv_format_lists,
    .options_size = sizeof(struct cut),
    .run = run,
};
