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
    const char *from;
    bool strict, assume, json, no_index;
    uint64_t memory_limit;
};

/* At most five findings of a bounded length: bounded as a whole. */
static int print_json(const struct sv_explanation *e, struct sv_err *err)
{
    struct sv_buf b;
    struct sv_json j;
    sv_buf_init(&b, 1u << 16);
    sv_json_init(&j, &b);
    sv_json_begin(&j, '{');
    sv_json_lit(&j, "of");
    sv_json_text(&j, e->of, strlen(e->of));
    sv_json_lit(&j, "dur_ns");
    sv_json_i64(&j, e->dur_ns);
    sv_json_lit(&j, "left_off");
    sv_json_u64(&j, e->n_suspended);
    sv_json_lit(&j, "findings");
    sv_json_begin(&j, '[');
    for (size_t i = 0; i < e->n; i++) {
        const struct sv_answer *f = &e->findings[i];
        const char *cause = sv_explain_words[f->cause];
        sv_json_line(&j);
        sv_json_begin(&j, '{');
        sv_json_lit(&j, "cause");
        sv_json_text(&j, cause, strlen(cause));
        sv_json_lit(&j, "share");
        sv_json_double(&j, f->share);
        sv_json_lit(&j, "sure");
        sv_json_text(&j, f->sure, strlen(f->sure));
        sv_json_lit(&j, "sentence");
        sv_json_text(&j, f->sentence, strlen(f->sentence));
        sv_json_lit(&j, "command");
        sv_json_text(&j, f->command, strlen(f->command));
        sv_json_end(&j);
    }
    sv_json_end(&j);
    sv_json_end(&j);
    sv_buf_byte(&b, '\n');
    int code = sv_print_json(&b, err);
    sv_buf_fini(&b);
    return code;
}

static void print_text(const struct sv_explanation *e)
{
    for (size_t i = 0; i < e->n; i++) {
        const struct sv_answer *f = &e->findings[i];
        sv_print(stdout, "%zu. ", i + 1);
        sv_print_text(stdout, "", f->sentence, strlen(f->sentence), "\n");
        sv_print(stdout, "   sure: %s; ", f->sure);
        sv_print_text(stdout, "see: ", f->command, strlen(f->command), "\n");
    }
    if (e->n_suspended)
        sv_print(stdout, "%zu more findings of less weight\n", e->n_suspended);
    if (!e->n)
        sv_print(stdout, "Nothing found: no wait takes a twentieth of the time of %s.\n", e->of);
    if (!e->has_states)
        sv_console_note(
            "the trace has no states of threads: 'stave record --sched' would show what threads "
            "wait for");
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

static int run(void *options, const struct sv_words *operands, struct sv_err *err)
{
    const struct explain *o = options;
    struct sv_loaded l;
    struct sv_explanation e;
    int code = sv_expect_operands(operands, 1, 100, "trace", err);
    if (code < 0)
        return code;
    code =
        sv_load_traces(operands->items, operands->n, &(struct sv_load_how)SV_LOAD_HOW(o), &l, err);
    if (code >= 0) {
        sv_report_losses(l.trace);
        char path[100] = "";
        quote(operands, path, sizeof path);
        sv_explain(&e, l.trace, path);
        if (o->json)
            code = print_json(&e, err);
        else
            print_text(&e);
    }
    sv_loaded_free(&l);
    return code;
}

static const struct sv_option options[] = {
    {0, "json", NULL, SV_OPT_FLAG, offsetof(struct explain, json),
     "the findings as JSON, less than 16 KiB", NULL, NULL},
    SV_MEMORY_OPTION(struct explain),
    SV_INDEX_OPTION(struct explain),
    SV_INPUTS_OPTIONS(struct explain),
    {0},
};

static const struct sv_example examples[] = {
    {"stave record --sched -o run.pftrace -- python3 train.py", "with the states of threads"},
    {"stave explain run.pftrace", "why is it slow?"},
    {"stave explain --json run.pftrace", "for tools"},
    {0},
};

const struct sv_command sv_command_explain = {
    .name = "explain",
    .operands = "TRACE…",
    .summary = "say in plain sentences what slows a run down",
    .description =
        "Prints at most five findings, the most important first: what was found, with figures, "
        "how sure it is, and the command that shows it. It looks for waits for data and what is "
        "behind them (one slow file, a cold page cache, one slow loader, small reads, many small "
        "files, too few loaders), for locks and Python's interpreter lock, for a CPU, for the disk "
        "(checkpoints), for another process or rank, for GPUs that wait for launches or copies, "
        "and for memory that grows. What takes less than a twentieth of the time is no finding; "
        "'Nothing found' is a good answer.\n\n"
        "Record with 'stave record --sched', or give a PyTorch profile. docs/why.md has the "
        "causes and their rules. The exit code is 0 whether something is found or not.",
    .options = options,
    .examples = examples,
    .lists = sv_format_lists,
    .options_size = sizeof(struct explain),
    .run = run,
};
