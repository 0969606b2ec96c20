/* stave cat: a trace as canonical text, one event a line, for people, diffs and tests. */
#include "cmd/commands.h"
#include "files/open.h"

struct cat {
    const char *from;
    bool strict;
};

static int run(void *options, const struct sv_words *operands, struct sv_err *err)
{
    struct cat *o = options;
    struct sv_output_choice out = {.to = "text"};
    int code = sv_expect_operands(operands, 1, 1, "input file", err);
    if (code < 0)
        return code;
    return sv_copy_trace(&(struct sv_copy){.path = operands->items[0],
                                           .from = o->from,
                                           .out = &out,
                                           .strict = o->strict,
                                           .what = "reading"},
                         err);
}

static const struct sv_option options[] = {
    SV_INPUT_OPTIONS(struct cat),
    {0},
};

static const struct sv_example examples[] = {
    {"stave cat trace.pftrace | less", "read it"},
    {"diff <(stave cat a.json) <(stave cat b.pftrace)", "compare two traces event by event"},
    {0},
};

const struct sv_command sv_command_cat = {
    .name = "cat",
    .operands = "IN",
    .summary = "print a trace as text, one event per line",
    .description =
        "Prints every event in time order in Stave's canonical text, which 'stave convert' reads "
        "back. The order is stable: printing the same trace twice gives the same text.",
    .options = options,
    .examples = examples,
    .lists = sv_format_lists,
    .options_size = sizeof(struct cat),
    .run = run,
};
