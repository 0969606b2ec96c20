/* stave explain: the most important findings of a trace, in plain sentences. */
#include "explain/explain.h"

#include "cli/console.h"
#include "cmd/commands.h"
#include "core/base/buf.h"
#include "core/base/json.h"
#include "files/load.h"
#include "subjects/subject.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct explain {
    const char *from, *unit, *against;
    struct sv_words ignore;
    bool strict, assume, json, no_index;
    uint64_t memory_limit;
};

/* ---- what was not observed ---- */

struct missing {
    const char *what, *how; /* how: what would show it */
    const char *record;     /* the command; NULL: none would */
};
enum { MISSING_MAX = 6 };

static bool was_left_out(const struct sv_observed *o, enum sv_coverage_part part)
{
    return o->recorded[part] == SV_COVERAGE_HAS_NONE || o->recorded[part] == SV_COVERAGE_UNKNOWN;
}

/* Fills `to` with what would have to be known to say more; returns how many. */
static size_t find_missing(const struct sv_explanation *e, struct missing to[MISSING_MAX])
{
    static const char
        plain[] = "stave record -o run.pftrace -- COMMAND",
        calls[] = "stave record --calls files,maps,sync,names,stat,sockets -o run.pftrace -- "
                  "COMMAND",
        sample[] = "stave record --sample 99 -o run.pftrace -- COMMAND";
    const struct sv_observed *o = &e->observed;
    size_t n = 0;
    if (o->has_requests && o->states < 0.5)
        return 0;
    if (o->states < 0.5)
        to[n++] = (struct missing){"states of threads",
                                   "record with 'stave record' as root, or with CAP_BPF and "
                                   "CAP_PERFMON",
                                   plain};
    else if (!o->has_stacks && was_left_out(o, SV_COVERAGE_WAITS))
        to[n++] =
            (struct missing){"stacks of waits", "record without --light and --no-offcpu", plain};
    if (o->calls < 0.5 && was_left_out(o, SV_COVERAGE_CALLS))
        to[n++] = (struct missing){"system calls", "record without --no-io", plain};
    if (o->states >= 0.5 && e->shares[SV_WHY_UNKNOWN] >= SV_EXPLAIN_LEAST && !o->has_all_sockets)
        to[n++] = (struct missing){"whether waits on several sockets are for requests or answers",
                                   "record all calls on sockets", calls};
    if (e->shares[SV_WHY_COMPUTE] >= 0.5 && !e->n && !e->n_hot &&
        o->recorded[SV_COVERAGE_SAMPLES] == SV_COVERAGE_HAS_NONE)
        to[n++] = (struct missing){"which functions compute", "record with --sample 99", sample};
    return n;
}

/* ---- JSON ---- */

static void put_text(struct sv_json *j, const char *key, const char *text)
{
    if (!text || !*text)
        return;
    sv_json_key(j, key, strlen(key));
    sv_json_text(j, text, strlen(text));
}

static void put_number(struct sv_json *j, const char *key, int64_t v, int64_t none)
{
    if (v == none)
        return;
    sv_json_key(j, key, strlen(key));
    sv_json_i64(j, v);
}

static void put_culprit(struct sv_json *j, const struct sv_culprit *c)
{
    sv_json_lit(j, "culprit");
    sv_json_begin(j, '{');
    put_text(j, "kind", c->kind);
    put_text(j, "name", c->name);
    put_number(j, "pid", c->pid, -1);
    put_number(j, "tid", c->tid, -1);
    put_text(j, "function", c->function);
    put_text(j, "file", c->file);
    put_number(j, "line", c->line, 0);
    put_text(j, "path", c->path);
    put_text(j, "lock", c->lock);
    put_number(j, "rank", c->rank, -1);
    put_text(j, "host", c->host);
    put_text(j, "device", c->device);
    put_text(j, "cgroup", c->cgroup);
    sv_json_end(j);
}

/* of: what is asked about: "units" or "slow_units" */
static void put_finding(struct sv_json *j, const struct sv_answer *f, const char *of)
{
    sv_json_line(j);
    sv_json_begin(j, '{');
    put_text(j, "cause", sv_explain_words[f->cause]);
    put_text(j, "of", of);
    sv_json_lit(j, "share");
    sv_json_double(j, f->share);
    sv_json_lit(j, "gain");
    sv_json_double(j, f->gain);
    put_text(j, "sure", f->sure);
    put_text(j, "sentence", f->sentence);
    put_text(j, "command", f->command);
    put_culprit(j, &f->culprit);
    sv_json_lit(j, "chain");
    sv_json_begin(j, '[');
    for (size_t i = 0; i < f->n_chain; i++)
        sv_json_text(j, f->chain[i], strlen(f->chain[i]));
    sv_json_end(j);
    sv_json_lit(j, "units");
    sv_json_u64(j, f->n_units);
    sv_json_lit(j, "worst");
    sv_json_begin(j, '[');
    for (size_t i = 0; i < f->n_worst; i++) {
        sv_json_begin(j, '{');
        put_number(j, "unit", f->worst[i].number, -1);
        put_number(j, "ts", f->worst[i].ts_ns, INT64_MIN);
        put_number(j, "dur", f->worst[i].dur_ns, INT64_MIN);
        sv_json_end(j);
    }
    sv_json_end(j);
    put_text(j, "advice", sv_explain_advice[f->cause]);
    sv_json_end(j);
}

static void put_slow(struct sv_json *j, const struct sv_slow_units *s)
{
    sv_json_lit(j, "slow_units");
    sv_json_begin(j, '{');
    sv_json_lit(j, "n");
    sv_json_u64(j, s->n);
    sv_json_lit(j, "of");
    sv_json_u64(j, s->of);
    put_number(j, "mean_ns", (int64_t)s->mean_ns, -1);
    put_number(j, "usual_ns", (int64_t)s->usual_ns, -1);
    put_number(j, "longest_ns", (int64_t)s->longest_ns, -1);
    sv_json_lit(j, "findings");
    sv_json_begin(j, '[');
    for (size_t i = 0; i < s->n_findings; i++)
        put_finding(j, &s->findings[i], "slow_units");
    sv_json_end(j);
    sv_json_end(j);
}

/* Parts of the recording as its metadata name them: all of which at least this much is there, or
 * none. */
static void put_recorded(struct sv_json *j, const char *key, const struct sv_observed *o,
                         enum sv_coverage_is is)
{
    sv_json_key(j, key, strlen(key));
    sv_json_begin(j, '[');
    for (int i = 0; i < SV_N_COVERAGE_PARTS; i++)
        if (is == SV_COVERAGE_HAS_NONE ? o->recorded[i] == is : o->recorded[i] >= is)
            sv_json_text(j, sv_coverage_names[i], strlen(sv_coverage_names[i]));
    sv_json_end(j);
}

static void put_coverage(struct sv_json *j, const struct sv_explanation *e)
{
    const struct sv_observed *o = &e->observed;
    const struct {
        const char *key;
        double share;
    } shares[] = {{"states", o->states}, {"calls", o->calls}, {"slices", o->slices}};
    const struct {
        const char *key;
        bool is;
    } parts[] = {{"stacks", o->has_stacks},
                 {"flows", o->has_flows},
                 {"gpu", o->has_gpu},
                 {"ranks", o->has_ranks},
                 {"requests", o->has_requests}};
    struct missing missing[MISSING_MAX];
    sv_json_lit(j, "coverage");
    sv_json_begin(j, '{');
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        sv_json_key(j, shares[i].key, strlen(shares[i].key));
        sv_json_double(j, shares[i].share);
    }
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        sv_json_key(j, parts[i].key, strlen(parts[i].key));
        sv_json_bool(j, parts[i].is);
    }
    put_recorded(j, "recorded", o, SV_COVERAGE_HAS_SOME);
    put_recorded(j, "not_recorded", o, SV_COVERAGE_HAS_NONE);
    sv_json_end(j);
    sv_json_lit(j, "not_observed");
    sv_json_begin(j, '[');
    size_t n = find_missing(e, missing);
    for (size_t i = 0; i < n; i++) {
        sv_json_begin(j, '{');
        put_text(j, "what", missing[i].what);
        put_text(j, "how", missing[i].how);
        put_text(j, "record", missing[i].record);
        sv_json_end(j);
    }
    sv_json_end(j);
}

static void put_hot(struct sv_json *j, const struct sv_explanation *e)
{
    sv_json_lit(j, "hot");
    sv_json_begin(j, '[');
    for (size_t i = 0; i < e->n_hot; i++) {
        sv_json_begin(j, '{');
        put_text(j, "function", e->hot[i].function);
        sv_json_lit(j, "share");
        sv_json_double(j, e->hot[i].share);
        sv_json_end(j);
    }
    sv_json_end(j);
}

/* One kind of units: what it is, where its time went, and the findings. */
static void put_units(struct sv_json *j, const struct sv_explanation *e)
{
    sv_json_lit(j, "units");
    sv_json_begin(j, '{');
    put_text(j, "kind", e->unit_kind);
    sv_json_lit(j, "n");
    sv_json_u64(j, e->n_units);
    sv_json_lit(j, "dur_ns");
    sv_json_i64(j, e->dur_ns);
    sv_json_lit(j, "marked");
    sv_json_bool(j, !e->is_found);
    sv_json_end(j);
    if (e->is_against) {
        sv_json_lit(j, "change");
        sv_json_double(j, e->change);
    }
    sv_json_lit(j, "time");
    sv_json_begin(j, '{');
    for (int k = 0; k < SV_N_WHY_CLASSES; k++)
        if (e->shares[k] > 0) {
            sv_json_key(j, sv_why_class_names[k], strlen(sv_why_class_names[k]));
            sv_json_double(j, e->shares[k]);
        }
    sv_json_end(j);
    if (e->n_hot)
        put_hot(j, e);
    sv_json_lit(j, "left_off");
    sv_json_u64(j, e->n_suspended);
    sv_json_lit(j, "findings");
    sv_json_begin(j, '[');
    for (size_t i = 0; i < e->n; i++)
        put_finding(j, &e->findings[i], "units");
    sv_json_end(j);
    if (e->slow.n)
        put_slow(j, &e->slow);
}

static void write_json(const struct sv_explanation *e, struct sv_buf *b)
{
    struct sv_json j;
    sv_json_init(&j, b);
    sv_json_begin(&j, '{');
    sv_json_lit(&j, "version");
    sv_json_u64(&j, SV_EXPLAIN_FORM);
    put_coverage(&j, e);
    put_units(&j, e);
    if (e->also) {
        sv_json_lit(&j, "also");
        sv_json_begin(&j, '{');
        put_units(&j, e->also);
        sv_json_end(&j);
    }
    sv_json_end(&j);
    sv_buf_byte(b, '\n');
}

/* Leaves off the finding of least weight; false: there is none. */
static bool shorten(struct sv_explanation *e)
{
    if (e->also && shorten(e->also))
        return true;
    if (!e->n && !e->slow.n_findings)
        return false;
    if (e->slow.n_findings > 1 || !e->n)
        e->slow.n_findings--;
    else
        e->n--;
    e->n_suspended++;
    return true;
}

/* Names of other programs may need escapes: the last findings are left off until the rest fits. */
static int print_json(struct sv_explanation *e, struct sv_err *err)
{
    enum { BYTES_MAX = 16384 };
    struct sv_buf b;
    sv_buf_init(&b, 1u << 20);
    write_json(e, &b);
    while (b.len > BYTES_MAX && shorten(e)) {
        sv_buf_clear(&b);
        write_json(e, &b);
    }
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
    sv_print(stdout, "   try: %s\n", sv_explain_advice[f->cause]);
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
    if (e->n_hot)
        sv_print(stdout, "Computes in: ");
    for (size_t i = 0; i < e->n_hot; i++) {
        sv_print_text(stdout, i ? ", " : "", e->hot[i].function, strlen(e->hot[i].function), "");
        sv_print(stdout, " %.0f %%", e->hot[i].share * 100);
    }
    if (e->n_hot)
        sv_print(stdout, "\n");
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
    struct missing missing[MISSING_MAX];
    size_t n = find_missing(e, missing);
    print_head(e, "Explained");
    for (size_t i = 0; i < n; i++)
        sv_print(stdout, "Not observed: %s; %s%s%s.\n", missing[i].what, missing[i].how,
                 missing[i].record ? ": " : "", missing[i].record ? missing[i].record : "");
    print_findings(e);
    if (!e->n && e->can_say)
        sv_print(stdout, e->is_against
                             ? "Nothing has become slower by a twentieth of the time of a unit.\n"
                         : e->shares[SV_WHY_UNKNOWN] >= SV_EXPLAIN_LEAST
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
