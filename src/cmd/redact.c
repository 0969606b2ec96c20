/* stave redact: a copy of a trace without paths, command lines, SQL or chosen arguments, for
 * others. */
#include "files/redact.h"
#include "cmd/commands.h"
#include "files/open.h"

struct redact {
    struct sv_output_choice out;
    const char *from, *what;
    bool strict;
    struct sv_range range;
};

static int put_stage(const void *ctx, struct sv_dict *dict, struct sv_report *report,
                     struct sv_sink **sink, struct sv_err *err)
{
    (void)report, (void)err;
    *sink = sv_redact_stage(ctx, dict, *sink, true);
    return 0;
}

static int run(void *options, const struct sv_words *operands, struct sv_err *err)
{
    struct redact *o = options;
    struct sv_redact_plan plan;
    int code = sv_expect_operands(operands, 1, 1, "input file", err);
    if (code >= 0)
        code = sv_redact_parse(o->what ? o->what : "all", &plan, err);
    if (code < 0)
        return code;
    return sv_copy_trace(&(struct sv_copy){.path = operands->items[0],
                                           .from = o->from,
                                           .range = o->range,
                                           .out = &o->out,
                                           .strict = o->strict,
                                           .what = "redacting",
                                           .is_result = true,
                                           .before = put_stage,
                                           .ctx = &plan},
                         err);
}

static const struct sv_option options[] = {
    SV_OUTPUT_OPTIONS(struct redact),
    {0, "what", "LIST", SV_OPT_TEXT, offsetof(struct redact, what),
     "paths, commands, sql, args=GLOB or all (the first three; default), separated by commas",
     "all paths commands sql", NULL},
    SV_RANGE_OPTIONS(struct redact),
    SV_INPUT_OPTIONS(struct redact),
    {0},
};

static const struct sv_example examples[] = {
    {"stave redact run.pftrace -o public.pftrace", "no paths, command lines and SQL values"},
    {"stave redact run.pftrace --what paths,args=user*,args=prompt -o public.pftrace",
     "paths, and the values of these arguments"},
    {0},
};

const struct sv_command sv_command_redact = {
    .name = "redact",
    .operands = "IN -o OUT",
    .summary = "copy a trace without paths, command lines and SQL values",
    .description =
        "Copies a trace, so that it can be given to others. Every component of a path becomes a "
        "token of ten letters, the same wherever it occurs in the copy, in arguments, names, "
        "stacks "
        "and metadata: any word with a slash counts as a path, and the file of a stack's frame. "
        "Command lines of processes go. "
        "Texts "
        "in quotes and numbers in SQL become '?', its comments go. args=GLOB replaces the values "
        "of arguments with "
        "such a key by 'redacted'.\n\nA folder with the parts of a recording becomes one "
        "file.\n\nThe tokens are made with a random key that is kept nowhere: "
        "two copies have different ones. Names of processes, threads, functions and slices stay, "
        "as "
        "do the host's name and times. The input is not changed.",
    .options = options,
    .examples = examples,
    .lists = sv_format_lists,
    .options_size = sizeof(struct redact),
    .run = run,
};
