/* stave report: what a trace says about one subject, for people and for programs.
 *
 * The table of subjects, the options that they share, and the loading of the trace; the rest is in
 * subjects/. */
#include "subjects/subject.h"

#include "cli/console.h"
#include "cli/json_fit.h"
#include "cmd/commands.h"
#include "files/load.h"

#include <stdio.h>
#include <string.h>

#define TOP_OF_TEXT 10

#define ADDRESS(name, report, tables) SV_IF_##report(&sv_##name##_report, )
static const struct sv_report_subject *const subjects[] = {SV_SUBJECTS(ADDRESS)};
#undef ADDRESS
#define N_SUBJECTS (sizeof subjects / sizeof *subjects)

/* What all subjects take, what this one takes, and what does not go together. */
static int check_options(const struct sv_report_subject *s, struct sv_err *err)
{
    char what[64], allowed[400];
    snprintf(what, sizeof what, "report %s", s->name);
    snprintf(allowed, sizeof allowed,
             "by top json all csv memory-limit no-index from strict since until recording %s",
             s->options);
    int code = sv_options_only(what, allowed, err);
    if (code >= 0)
        code = sv_options_either("json", "csv", err);
    return code >= 0 && s->check ? s->check(err) : code;
}

static int parse(struct sv_report_options *o, const struct sv_report_subject *s, struct sv_err *err)
{
    int code = check_options(s, err);
    if (code < 0)
        return code;
    o->limit = o->json || o->csv ? SIZE_MAX : TOP_OF_TEXT;
    if (o->all && (!o->json || o->top))
        return sv_error(err, SV_EUSAGE, "--all belongs to --json without --top");
    if (o->top) {
        uint64_t n;
        if (sv_parse_count(o->top, &n) < 0)
            return sv_error(err, SV_EUSAGE, "--top: '%s' is not a number", o->top);
        o->limit = n ? (size_t)n : SIZE_MAX;
    }
    if (o->by && !sv_word_among(o->by, strlen(o->by), s->sections))
        return sv_error(err, SV_EUSAGE, "--by: '%s' is not one of: %s", o->by, s->sections);
    return 0;
}

/* "io, gpu or batch" */
static const char *known_subjects(const char *last, char known[128])
{
    known[0] = 0;
    for (size_t i = 0; i < N_SUBJECTS; i++)
        snprintf(known + strlen(known), 128 - strlen(known), "%s%s",
                 i == 0                ? ""
                 : i + 1 == N_SUBJECTS ? last
                                       : ", ",
                 subjects[i]->name);
    return known;
}

static const struct sv_report_subject *find(const char *name, struct sv_err *err)
{
    char known[128];
    for (size_t i = 0; i < N_SUBJECTS; i++)
        if (strcmp(subjects[i]->name, name) == 0)
            return subjects[i];
    known_subjects(", ", known);
    sv_error(err, SV_EUSAGE, "unknown report '%s'; available: %s", name, known);
    return NULL;
}

int sv_report_json(const char *subject, const struct sv_trace *t, size_t limit, struct sv_buf *to,
                   struct sv_err *err)
{
    struct sv_report_options o = {.json = true, .limit = limit, .into = to, .path = "the trace"};
    const struct sv_report_subject *s = find(subject, err);
    return s ? s->run(&o, t, err) : SV_EUSAGE;
}

struct answer {
    struct sv_report_options *o;
    const struct sv_report_subject *subject;
    const struct sv_trace *trace;
};

static int fill(void *ctx, size_t most, struct sv_buf *to, struct sv_err *err)
{
    const struct answer *a = ctx;
    a->o->into = to;
    a->o->limit = most;
    int code = a->subject->run(a->o, a->trace, err);
    a->o->into = NULL;
    return code;
}

static int print_limited(struct sv_report_options *o, const struct sv_report_subject *s,
                         const struct sv_trace *t, struct sv_err *err)
{
    const struct sv_json_fit fit = {
        .fill = fill,
        .ctx = &(struct answer){o, s, t},
        .all = o->all,
        .more = "--top N or --by SECTION has more rows of each table, --all everything"};
    return sv_json_fit(&fit, err);
}

static int run(void *options, const struct sv_words *operands, struct sv_err *err)
{
    struct sv_report_options *o = options;
    struct sv_loaded l;
    char known[128], what[160];
    snprintf(what, sizeof what, "subject (%s)", known_subjects(" or ", known));
    int code = sv_expect_operands(operands, 1, SIZE_MAX, what, err);
    if (code < 0)
        return code;
    const struct sv_report_subject *s = find(operands->items[0], err);
    code = s ? sv_expect_operands(operands, 2, s->takes_many ? SIZE_MAX : 2, "trace", err)
             : SV_EUSAGE;
    if (code >= 0)
        code = parse(o, s, err);
    if (code < 0)
        return code;
    o->path = operands->items[1];
    struct sv_load_how how = SV_LOAD_HOW(o);
    code = sv_load_traces(operands->items + 1, operands->n - 1, &how, &l, err);
    if (code >= 0) {
        sv_report_losses(l.trace);
        bool is_limited = o->json && !o->top && !o->baseline;
        code = is_limited ? print_limited(o, s, l.trace, err) : s->run(o, l.trace, err);
    }
    sv_loaded_free(&l);
    return code;
}

static const struct sv_option options[] = {
    {0, "by", "WHAT", SV_OPT_TEXT, offsetof(struct sv_report_options, by),
     "only this section; io: process, file, folder, device, peer or span (steps and phases); gpu: "
     "summary, device, stream, gap, kernel, copy, memory, allocation or step; ops: summary, "
     "phase, operator, module or kernel; batch: summary, "
     "phase, transport, sla, worker, size, model, queue, congestion, why, batch or request; llm: "
     "summary, "
     "latency, "
     "phase, slo, size, load, why, step, request, span or member; comm: summary, rank, "
     "group, collective or difference; wait: summary, span, loader, wait, chain, lock, pass or "
     "advice; "
     "with --csv the table to write (default: process, summary or batch)",
     "process file folder device peer span summary stream gap kernel copy memory allocation step "
     "phase "
     "sla worker size model queue congestion batch request rank group collective difference "
     "latency slo load why transport member loader wait chain lock pass advice operator module",
     NULL},
    {0, "top", "N", SV_OPT_TEXT, offsetof(struct sv_report_options, top),
     "the first N rows of each section, 0 for all (default: 10 in text, all with --csv)", NULL,
     NULL},
    {0, "steps", "GLOB", SV_OPT_TEXT, offsetof(struct sv_report_options, steps),
     "gpu, wait: slices of this name are the steps (default: ProfilerStep#N and other common "
     "names)",
     NULL, NULL},
    {0, "step", "N", SV_OPT_TEXT, offsetof(struct sv_report_options, step),
     "wait: only the step of this number and the time before it", NULL, NULL},
    {0, "json", NULL, SV_OPT_FLAG, offsetof(struct sv_report_options, json),
     "the report as JSON, as many rows of each table as fit into 32 KiB (docs/json.md)", NULL,
     NULL},
    {0, "all", NULL, SV_OPT_FLAG, offsetof(struct sv_report_options, all),
     "with --json: all rows of all tables", NULL, "For programs"},
    {0, "csv", NULL, SV_OPT_FLAG, offsetof(struct sv_report_options, csv), "one table as CSV", NULL,
     NULL},
    {0, "sla", "MS,…", SV_OPT_TEXT, offsetof(struct sv_report_options, sla),
     "batch: latency limits in milliseconds (default 50,100,200)", NULL, NULL},
    {0, "request", "ID", SV_OPT_TEXT, offsetof(struct sv_report_options, request),
     "batch, llm: show where the time of this request went", NULL, NULL},
    {0, "why", NULL, SV_OPT_FLAG, offsetof(struct sv_report_options, why),
     "batch: what requests waited for in each phase, and who had it; llm: the slowest tokens, each "
     "with the step, preemption, queue or cold load behind it",
     NULL, NULL},
    {0, "slo", "LIMITS", SV_OPT_TEXT, offsetof(struct sv_report_options, slo),
     "llm: limits of ttft, tpot, itl and e2e, as ttft=200ms,tpot=50ms; the report has the goodput",
     NULL, NULL},
    {0, "baseline", "TRACE", SV_OPT_TEXT, offsetof(struct sv_report_options, baseline),
     "batch, llm: compare with this earlier run; exit with 1 if a limit below is exceeded", NULL,
     NULL},
    {0, "max-latency-regression", "PERCENT", SV_OPT_TEXT,
     offsetof(struct sv_report_options, max_latency_regression),
     "batch, llm: allowed growth of p50, p95 and p99 in percent (default 10)", NULL,
     "Limits of a comparison"},
    {0, "max-throughput-drop", "PERCENT", SV_OPT_TEXT,
     offsetof(struct sv_report_options, max_throughput_drop),
     "batch, llm: allowed decrease of the throughput in percent (default 10)", NULL,
     "Limits of a comparison"},
    {0, "max-rejected", "N", SV_OPT_TEXT, offsetof(struct sv_report_options, max_rejected),
     "batch: allowed number of rejected requests (default: as many as in the baseline)", NULL,
     "Limits of a comparison"},
    {0, "assume", NULL, SV_OPT_FLAG, offsetof(struct sv_report_options, assume),
     "comm, io, wait: traces whose clocks cannot be related: use their timestamps unchanged", NULL,
     NULL},
    SV_MEMORY_OPTION(struct sv_report_options),
    SV_INDEX_OPTION(struct sv_report_options),
    SV_RANGE_OPTIONS(struct sv_report_options),
    SV_INPUT_OPTIONS(struct sv_report_options),
    {0},
};

static const struct sv_example examples[] = {
    {"stave report io run.pftrace",
     "which process reads which files, how fast, and what waits for it"},
    {"stave report io run.pftrace --by file --top 50",
     "the fifty files with the largest total time"},
    {"stave report io run.pftrace --csv --by span", "time in I/O per step, for a spreadsheet"},
    {"stave report io strace.out --json", "directly from strace's output"},
    {"stave report gpu trace.json", "what the GPUs did, and why they waited"},
    {"stave report gpu trace.json --by kernel --csv", "all kernels, for a spreadsheet"},
    {"stave report ops trace.json --by operator", "which operators the GPU's time belongs to"},
    {"stave report batch batching_trace.pftrace --sla 20,50",
     "requests, batches and phases of an inference server"},
    {"stave report batch batching_trace_summary.csv --by worker", "from the server's summary"},
    {"stave report batch new.pftrace --request 4711", "where the time of one request went"},
    {"stave report batch new.pftrace --baseline old.pftrace --max-latency-regression 5",
     "for CI: exit code 1 if it became slower"},
    {"stave report llm batching_trace.pftrace --slo ttft=200ms,tpot=50ms",
     "time to first token, time per token, goodput of an engine with continuous batching"},
    {"stave report batch run.pftrace --why", "what requests waited for in the queue and later"},
    {"stave report llm batching_trace.pftrace --why", "what the slowest tokens waited for"},
    {"stave report wait run.pftrace", "what training waits for, and what is behind it"},
    {"stave report wait run.pftrace --step 57", "why did step 57 wait?"},
    {"stave report comm job.rank*.pftrace", "which rank the others wait for"},
    {"stave report comm nccl_trace_rank_*", "where a job hangs, from PyTorch's flight recorder"},
    {0},
};

static void add_subjects(struct sv_buf *out)
{
    for (size_t i = 0; i < N_SUBJECTS; i++) {
        sv_buf_str(out, i ? " " : "");
        sv_buf_str(out, subjects[i]->name);
    }
}

const struct sv_command sv_command_report = {
    .name = "report",
    .operands = "io|gpu|ops|batch|llm|comm|wait TRACE…",
    .summary = "report on I/O, GPUs, operators, an inference server, ranks or waits",
    .description =
        "io: for each process, file, folder and device: opens, reads, writes, bytes, latencies "
        "(p50, p90, p99, maximum), sizes, how many transfers continue where the previous one ended "
        "(sequential) and errors; for processes also the bytes read by block requests and the "
        "bytes that must have come from the page cache; for each training step and phase the time "
        "that its own process and the whole run spent in I/O.\n\n"
        "Only files of the run count: calls on pipes, sockets and terminals and block requests of "
        "other processes are lines of their own. How files are used is said in words with "
        "figures: sequential, random, many small files, small transfers, metadata-bound, "
        "mapped.\n\n"
        "Processes are classified by their activity, and the report gives the reason: a trainer "
        "uses a GPU or has the steps, a loader uses no GPU and reads at least 1 % of all bytes. If "
        "the trace has neither GPUs nor steps, a process that loads PyTorch or forked data "
        "workers is the trainer; otherwise no roles are given.\n\n"
        "It uses the slices that docs/io.md describes, recorded or imported. Calls that are not "
        "file I/O (futex, brk and so on) are not counted.\n\n"
        "gpu: for each device and stream how long it was busy, computed, copied and communicated, "
        "and how much of that overlapped with computing; its idle gaps by cause. Kernels by name "
        "with count, total, mean, p50 and p99; copies by direction with bandwidth; the latency "
        "from "
        "launch to start and how many launches were waiting; memory, its peak, and what was never "
        "released; the time of each step by kind, which adds up. Work without a launch, launches "
        "without work and the like are counted.\n\n"
        "ops: the same work by operator, module and phase. docs/gpu.md describes both.\n\n"
        "batch: which requests of an inference server shared which batch, and how their time "
        "divides into queue, batch, submit, scheduling, run, callback and respond, which follow "
        "each other and add up; percentiles overall, by worker, batch size and model; requests "
        "answered in time; batch efficiency; queue and congestion over time; throughput as "
        "answered requests over the time from the first arrival to the last end. It reads traces "
        "made with libstave-serving, their batching_trace.json and the summary as CSV "
        "(docs/serving.md). Warm-up requests are not counted.\n\n"
        "llm: requests, steps and tokens of an engine with continuous batching: time to first "
        "token, time per output token, time between tokens, end to end; queue, prefill, decode, "
        "preempted, transfer and respond, which do not overlap and sum to the request's time; all "
        "by step size and by load. A step's time is divided among its members by the tokens that "
        "it computed for them, to the nanosecond; kernels and I/O inside it likewise. It reads "
        "traces made with libstave-serving, and spans and logs of vLLM and SGLang as far as they "
        "have it (docs/llm.md).\n\n"
        "comm: collectives of several ranks, matched by group and number. For each the arrival "
        "skew (last begin minus first begin) and the transfer (end minus last begin), or why they "
        "cannot be known; for each rank how often it was last, by how much, and what it did before "
        "(compute, I/O, loader, copy, communication, idle). A rank is called slow only if chance "
        "does not explain how often it is last and at least 1 % of the time is lost. Of a hang the "
        "first collective that ranks differ on: a missing rank, different kinds or sizes. Give one "
        "merged trace or the traces of all ranks. docs/comm.md has the rules.\n\n"
        "wait: the time of each step and of the time before it (else of epochs, phases or "
        "threads), divided exactly: computing, waiting for data, for the GPU, for a lock, for the "
        "disk, for a CPU, for another rank, for another process (peer), sleeping, and what is not "
        "known. For the longest waits the chain behind them: who was active meanwhile, followed "
        "through wakers and flows down to the file and the disk request. Who waits for whom. How "
        "long the same files "
        "took to read again; what to try, and the evidence for it. It needs thread states (stave "
        "record --sched) or GPU profiles; without them it uses system calls and says so. "
        "docs/why.md has the rules.",
    .options = options,
    .examples = examples,
    .lists = sv_format_lists,
    .first = add_subjects,
    .options_size = sizeof(struct sv_report_options),
    .run = run,
};
