/* stave help, and the hidden verbs that the build uses: completion, man, verbs. */
#include "cli/console.h"
#include "cmd/commands.h"
#include "files/open.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int named(const struct sv_words *operands, const struct sv_command **c, struct sv_err *err)
{
    *c = NULL;
    if (operands->n == 0)
        return 0;
    *c = sv_command_named(operands->items[0]);
    return *c ? 0
              : sv_error(err, SV_EUSAGE, "unknown verb '%s'; 'stave --help' lists them",
                         operands->items[0]);
}

/* The manual page where one is installed and a terminal can show it, else the same words as plain
 * text. */
static int run_help(void *options, const struct sv_words *operands, struct sv_err *err)
{
    (void)options;
    const struct sv_command *c;
    int code = named(operands, &c, err);
    if (code < 0)
        return code;
    if (isatty(STDOUT_FILENO)) {
        char page[64], probe[96];
        snprintf(page, sizeof page, "stave%s%s", c ? "-" : "", c ? c->name : "");
        snprintf(probe, sizeof probe, "man -w %s >/dev/null 2>&1", page);
        if (system(probe) == 0)
            execlp("man", "man", page, (char *)NULL);
    }
    sv_help_print(c, true);
    return 0;
}

static int run_man(void *options, const struct sv_words *operands, struct sv_err *err)
{
    (void)options;
    const struct sv_command *c;
    int code = named(operands, &c, err);
    if (code >= 0)
        sv_help_man(c);
    return code;
}

static int run_completion(void *options, const struct sv_words *operands, struct sv_err *err)
{
    (void)options;
    int code = sv_expect_operands(operands, 1, 1, "shell", err);
    static char whole[1 << 16];
    setvbuf(stdout, whole, _IOFBF, sizeof whole); /* written at once: a failure keeps its reason */
    return code < 0 ? code : sv_help_completion(operands->items[0], err);
}

static int run_verbs(void *options, const struct sv_words *operands, struct sv_err *err)
{
    (void)options;
    (void)operands;
    (void)err;
    for (const struct sv_command *const *c = sv_commands; *c; c++)
        if (!(*c)->is_hidden)
            sv_print(stdout, "%s\n", (*c)->name);
    return 0;
}

static void add_verbs(struct sv_buf *out)
{
    for (const struct sv_command *const *c = sv_commands; *c; c++)
        if (!(*c)->is_hidden) {
            sv_buf_str(out, (*c)->name);
            sv_buf_byte(out, ' ');
        }
}

static void add_shells(struct sv_buf *out)
{
    sv_buf_str(out, "bash zsh fish");
}

static const struct sv_example help_examples[] = {
    {"stave help merge", "how traces are merged onto one time axis"},
    {0},
};

static const struct sv_example completion_examples[] = {
    {"source <(stave completion bash)", "complete verbs and options in this shell"},
    {0},
};

const struct sv_command sv_command_help = {
    .name = "help",
    .operands = "[VERB]",
    .summary = "open the manual page of a verb",
    .description = "Opens the manual page of VERB, or of the program. Prints the same text where "
                   "the page is not installed.",
    .examples = help_examples,
    .first = add_verbs,
    .run = run_help,
};

const struct sv_command sv_command_completion = {
    .name = "completion",
    .operands = "bash|zsh|fish",
    .summary = "print a completion script for a shell",
    .description =
        "The package installs these scripts. This verb prints them for use without the package.",
    .examples = completion_examples,
    .first = add_shells,
    .run = run_completion,
};

const struct sv_command sv_command_man = {
    .name = "man",
    .operands = "[VERB]",
    .summary = "print the source of a manual page",
    .description = "For the build.",
    .run = run_man,
    .is_hidden = true,
};

const struct sv_command sv_command_verbs = {
    .name = "verbs",
    .operands = "",
    .summary = "list the verbs, one per line",
    .description = "For the build.",
    .run = run_verbs,
    .is_hidden = true,
};
