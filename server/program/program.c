/* A command struct as a program: the options' parser, the help, the manual page and the completion
 * are those of `stave`.
 *
 * Called by main() of stave-server and stave-load. The only place of these programs that prints
 * errors and chooses the exit code. */
#include "server/program/program.h"

#include "cli/console.h"
#include "core/base/mem.h"
#include <stave/stave.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct sv_command *const sv_commands[] = {NULL};
struct sv_common sv_common;

const struct sv_option sv_common_options[] = {
    {'q', "quiet", NULL, SV_OPT_FLAG, offsetof(struct sv_common, quiet),
     "only errors on standard error", NULL, NULL},
    {0, "color", "WHEN", SV_OPT_TEXT, offsetof(struct sv_common, color),
     "auto (default), always or never; NO_COLOR is respected", "auto always never", NULL},
    {'h', "help", NULL, SV_OPT_FLAG, offsetof(struct sv_common, help),
     "this help; --help all: with all options", NULL, NULL},
    {0},
};

const struct sv_command *sv_command_named(const char *name)
{
    (void)name;
    return NULL;
}

static int exit_code(int code)
{
    switch (code) {
    case SV_EUSAGE: return SV_EXIT_USAGE;
    case SV_EINPUT:
    case SV_EFORMAT: return SV_EXIT_INPUT;
    case SV_EFOUND: return SV_EXIT_FOUND;
    default: return code < 0 ? SV_EXIT_OUTPUT : code;
    }
}

static int run(const struct sv_command *c, int argc, char **argv, struct sv_err *err)
{
    struct sv_words operands = {0};
    void *options = sv_alloc(c->options_size + 1);
    int code = sv_command_parse(c, argc, argv, options, &operands, err);
    if (code == 0) {
        sv_console_init(c->name, sv_common.color, sv_common.quiet);
        if (sv_common.help)
            sv_help_print(c, sv_help_wants_all(&operands));
        else
            code = c->run(options, &operands, err);
    }
    sv_words_free(&operands);
    free(options);
    return code;
}

int sv_program_main(const struct sv_command *c, int argc, char **argv)
{
    struct sv_err err;
    int code = 0;
    signal(SIGPIPE, SIG_IGN);
    sv_err_clear(&err);
    sv_console_init(c->name, NULL, false);
    if (argc == 2 && strcmp(argv[1], "--version") == 0)
        sv_print(stdout, "stave-%s %s\n", c->name, stave_version());
    else if (argc == 2 && strcmp(argv[1], "man") == 0)
        sv_help_man(c);
    else if (argc == 3 && strcmp(argv[1], "completion") == 0)
        code = sv_help_complete_program(c, argv[2], &err);
    else
        code = run(c, argc - 1, argv + 1, &err);
    if (fflush(stdout) != 0 && code >= 0)
        code = sv_err_sys(&err, "standard output");
    if (code < 0 && err.code != SV_OK)
        sv_print(stderr, "stave-%s: %s\n", c->name, err.msg);
    return exit_code(code);
}
