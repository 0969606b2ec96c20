/* stave explain: the most important findings of a trace, in plain sentences. */
#include "explain/explain.h"

#include "cli/console.h"
#include "cmd/briefly.h"
#include "cmd/commands.h"
#include "core/base/buf.h"
#include "files/load.h"
#include "subjects/subject.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct explain {
    const char *from, *unit, *against;
    struct sv_words ignore;
    struct sv_range range;
    bool strict, assume, json, no_index;
    uint64_t memory_limit;
};

static int print_json(struct sv_explanation *e, struct sv_err *err)
{
    struct sv_buf b;
    sv_buf_init(&b, 1u << 20);
    sv_explain_json(e, &b);
    int code = sv_print_json(&b, err);
    sv_buf_fini(&b);
    return code;
}

/* ---- for people ---- */

/* "compute 62 %, lock 30 %": what has a hundredth or more, the largest first. */
static void print_time(const struct sv_explanation *e)
{
    bool is_said[SV_N_WHY_CLASSES] = {0};
    const char *between = "";
    for (;;) {
        int most = -1;
        for (int k = 0; k < SV_N_WHY_CLASSES; k++)
            if (!is_said[k] && e->shares[k] >= 0.01 && (most < 0 || e->shares[k] > e->shares[most]))
                most = k;
        if (most < 0)
            break;
        is_said[most] = true;
        sv_print(stdout, "%s%s %.0f %%", between, sv_why_class_names[most], e->shares[most] * 100);
        between = ", ";
    }
    sv_print(stdout, "\n");
}

static void print_finding(const struct sv_answer *f, size_t number)
{
    sv_print(stdout, "%zu. ", number);
    sv_print_text(stdout, "", f->sentence, strlen(f->sentence), "\n");
    for (size_t i = 0; f->n_chain > 1 && i < f->n_chain; i++)
        sv_print_text(stdout, i ? "     → " : "   chain: ", f->chain[i], strlen(f->chain[i]), "\n");
    sv_print(stdout, "   try: %s\n", sv_answer_advice(f));
    sv_print(stdout, "   gain: %.0f %% of the time without it; sure: %s; ", f->gain * 100, f->sure);
    sv_print_text(stdout, "see: ", f->command, strlen(f->command), "\n");
}

static void print_slow(const struct sv_explanation *e)
{
    const struct sv_slow_units *s = &e->slow;
    sv_print(stdout,
             "Slow ones: %zu of %zu take %.3f ms on average and %.3f ms at most; the middle half "
             "takes %.3f ms.\n",
             s->n, s->of, s->mean_ns / 1e6, s->longest_ns / 1e6, s->usual_ns / 1e6);
    for (size_t i = 0; i < s->n_findings; i++)
        print_finding(&s->findings[i], e->n + i + 1);
    if (!s->n_findings)
        sv_print(stdout, "   What they have more of is not known.\n");
}

static void print_hot(FILE *to, const struct sv_explanation *e)
{
    if (e->n_hot)
        sv_print(to, "Computes in: ");
    for (size_t i = 0; i < e->n_hot; i++) {
        sv_print_text(to, i ? ", " : "", e->hot[i].function, strlen(e->hot[i].function), "");
        sv_print(to, " %.0f %%", e->hot[i].share * 100);
    }
    if (e->n_hot)
        sv_print(to, "\n");
}

/* What one kind of units is, and where its time went. */
static void print_head(const struct sv_explanation *e, const char *word)
{
    sv_print(stdout, "%s: %.3f s of %s", word, (double)e->dur_ns / 1e9, e->of);
    if (strcmp(e->unit_kind, "thread") != 0)
        sv_print(stdout, " (%zu%s, median %.3f ms)", e->n_units,
                 e->is_found ? ", found by what repeats" : "", e->median_ns / 1e6);
    sv_print(stdout, ".\n");
    if (e->is_against)
        sv_print(stdout, "Each takes %.0f %% %s than before.\n",
                 (e->change < 0 ? -e->change : e->change) * 100, e->change < 0 ? "less" : "more");
    if (!e->observed.has_requests) {
        sv_print(stdout, "Time: ");
        print_time(e);
    }
    print_hot(stdout, e);
}

static void print_findings(const struct sv_explanation *e)
{
    for (size_t i = 0; i < e->n; i++)
        print_finding(&e->findings[i], i + 1);
    if (e->n_suspended)
        sv_print(stdout, "%zu more findings of less weight\n", e->n_suspended);
    if (e->slow.n)
        print_slow(e);
}

static void print_text(const struct sv_explanation *e)
{
    struct sv_missing missing[SV_EXPLAIN_MISSING];
    size_t n = sv_explain_missing(e, missing);
    print_head(e, "Explained");
    for (size_t i = 0; i < n; i++)
        sv_print(stdout, "Not observed: %s; %s%s%s.\n", missing[i].what, missing[i].how,
                 missing[i].record ? ": " : "", missing[i].record ? missing[i].record : "");
    print_findings(e);
    if (!e->n && e->can_say)
        sv_print(stdout,
                 e->is_against ? "Nothing has become slower by a twentieth of the time of a unit.\n"
                 : e->n_ignored ? "Nothing else is known that takes a twentieth of the time.\n"
                 : !sv_explain_is_whole(e)
                     ? "No wait that is known takes a twentieth of the time.\n"
                     : "Nothing slows it down: no wait takes a twentieth of the time.\n");
    if (!e->can_say)
        sv_print(stdout,
                 "Cannot say what slows it down: the trace does not have what is needed.\n");
    if (e->also) {
        print_head(e->also, "Also explained");
        print_findings(e->also);
    }
}

/* The traces as a shell takes them, at most what a command of a finding has room for. */
static void quote(const struct sv_words *operands, char *to, size_t size)
{
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/+:=@,-%";
    size_t n = 0;
    for (size_t i = 0; i < operands->n; i++) {
        const char *name = operands->items[i];
        bool is_plain = name[strspn(name, plain)] == 0;
        if (strlen(name) + 4 > size - n || (!is_plain && strchr(name, '\''))) {
            snprintf(to + n, size - n, "%s", size - n > 6 ? (n ? " …" : "TRACE") : "");
            return;
        }
        n += (size_t)snprintf(to + n, size - n, is_plain ? "%s%s" : "%s'%s'", n ? " " : "", name);
    }
}

static int check_ignored(const char *word, size_t room, struct sv_err *err)
{
    size_t len = strcspn(word, ":");
    if (strlen(word) + 2 > room)
        return sv_error(err, SV_EUSAGE, "--ignore: too much at '%.40s'; name fewer causes", word);
    for (int i = 0; i < SV_N_CAUSES; i++)
        if (strlen(sv_explain_words[i]) == len && memcmp(sv_explain_words[i], word, len) == 0)
            return 0;
    return sv_error(err, SV_EUSAGE, "--ignore: '%.*s' is not a cause; docs/why.md lists them",
                    (int)len, word);
}

/* Fills *e; the exit code, or negative. */
static int explain_trace(const struct explain *o, const struct sv_trace *t, const char *path,
                         struct sv_explanation *e, struct sv_err *err)
{
    struct sv_explain_options how = {.unit = o->unit};
    char ignore[1024] = "";
    size_t n = 0;
    if (!t->slices.n && !t->counters.n)
        return sv_err_set(err, SV_EFORMAT, -1, "%s has no events: there is nothing to explain",
                          path);
    for (size_t i = 0; i < o->ignore.n; i++) {
        int code = check_ignored(o->ignore.items[i], sizeof ignore - n, err);
        if (code < 0)
            return code;
        n += (size_t)snprintf(ignore + n, sizeof ignore - n, "%s%s", n ? "\n" : "",
                              o->ignore.items[i]);
    }
    how.ignore = ignore;
    sv_explain(e, t, path, &how);
    return e->can_say ? SV_EXIT_OK : SV_EXIT_UNSURE;
}

/* Loads and explains; the exit code, or negative. */
static int explain(const struct explain *o, const struct sv_words *operands,
                   struct sv_explanation *e, struct sv_err *err)
{
    struct sv_loaded l;
    int code =
        sv_load_traces(operands->items, operands->n, &(struct sv_load_how)SV_LOAD_HOW(o), &l, err);
    if (code >= 0) {
        char path[100] = "";
        sv_report_losses(l.trace);
        quote(operands, path, sizeof path);
        code = explain_trace(o, l.trace, path, e, err);
    }
    sv_loaded_free(&l);
    return code;
}

int sv_explain_briefly(FILE *to, const char *path, size_t most, size_t memory_limit,
                       struct sv_err *err)
{
    struct sv_explanation e = {0};
    const struct explain o = {.memory_limit = memory_limit, .no_index = true};
    int code = explain(&o, &(struct sv_words){.items = &path, .n = 1}, &e, err);
    if (code < 0)
        return code;
    for (size_t i = 0; i < e.n && i < most; i++) {
        sv_print(to, "  %zu. ", i + 1);
        sv_print_text(to, "", e.findings[i].sentence, strlen(e.findings[i].sentence), "\n");
    }
    if (!e.n && e.can_say)
        sv_print(to, sv_explain_is_whole(&e)
                         ? "  Nothing slows it down: no wait takes a twentieth of the time.\n"
                         : "  No wait that is known takes a twentieth of the time.\n");
    if (!e.can_say)
        sv_print(to, "  Cannot say what slows it down: the trace does not have what is needed.\n");
    /* Who computes waits for a CPU, too. */
    bool is_busy = e.shares[SV_WHY_COMPUTE] + e.shares[SV_WHY_CPU] >= 0.5;
    if (e.n_hot && (!e.n || is_busy)) {
        sv_print(to, "  ");
        print_hot(to, &e);
    }
    sv_explanation_fini(&e);
    return 0;
}

static int run(void *options, const struct sv_words *operands, struct sv_err *err)
{
    struct explain *o = options;
    struct sv_explanation e = {0}, before = {0};
    int code = sv_expect_operands(operands, 1, 100, "trace", err);
    if (code >= 0)
        code = explain(o, operands, &e, err);
    if (code >= 0 && o->against) {
        const char *other = o->against;
        int its = explain(o, &(struct sv_words){.items = &other, .n = 1}, &before, err);
        code = its < 0 ? its : its > code ? its : code;
        if (its >= 0)
            sv_explain_against(&e, &before);
    }
    int printed = SV_EXIT_OK;
    if (code >= 0 && o->json)
        printed = print_json(&e, err);
    else if (code >= 0)
        print_text(&e);
    sv_explanation_fini(&e);
    sv_explanation_fini(&before);
    sv_words_free(&o->ignore);
    return printed < 0 ? printed : code;
}

static const struct sv_option options[] = {
    {0, "json", NULL, SV_OPT_FLAG, offsetof(struct explain, json),
     "the findings as JSON, less than 16 KiB", NULL, NULL},
    {0, "unit", "GLOB", SV_OPT_TEXT, offsetof(struct explain, unit),
     "the slices or instants that are the units (default: steps, epochs, phases)", NULL, NULL},
    {0, "ignore", "CAUSE[:CULPRIT]", SV_OPT_LIST, offsetof(struct explain, ignore),
     "leave out what is known: a cause, or a cause with its culprit; may be given several times",
     NULL, NULL},
    {0, "against", "TRACE", SV_OPT_TEXT, offsetof(struct explain, against),
     "what has become slower since this trace, per unit", NULL, NULL},
    SV_MEMORY_OPTION(struct explain),
    SV_INDEX_OPTION(struct explain),
    SV_RANGE_OPTIONS(struct explain),
    SV_INPUTS_OPTIONS(struct explain),
    {0},
};

static const struct sv_example examples[] = {
    {"stave record -o run.pftrace -- python3 train.py", "records what is needed"},
    {"stave explain run.pftrace", "why is it slow?"},
    {"stave explain new.pftrace --against old.pftrace", "what has become slower?"},
    {"stave explain --json run.pftrace", "for tools"},
    {0},
};

const struct sv_command sv_command_explain = {
    .name = "explain",
    .operands = "TRACE…",
    .summary = "say in plain sentences what slows a run down",
    .description =
        "Says what it explains (steps, requests, turns of a loop, or the main thread) and where "
        "its "
        "time went, then at most five findings, the most important first: what the thread waits "
        "for, who has it, and what that one does, by name, with the share of the time, the chain "
        "that leads there, what to try, how sure it is, and the command that shows it.\n\n"
        "It finds locks and Python's interpreter lock, slow files, cold caches, small reads and "
        "files, slow and too few loaders, checkpoints, page faults, slow processes and peers, "
        "sleeps, whoever takes the CPU, full queues, idle GPUs, communication that nothing "
        "overlaps, slow ranks and hosts, and memory that grows. What takes less than a twentieth "
        "of "
        "the time is no finding.\n\n"
        "Record with 'stave record', or give a PyTorch profile. docs/why.md has the causes, their "
        "rules and the form of --json. The exit code is 0 whether something is found or not, and 6 "
        "if the trace does not have what an answer needs.",
    .options = options,
    .examples = examples,
    .lists = sv_format_lists,
    .options_size = sizeof(struct explain),
    .run = run,
};
