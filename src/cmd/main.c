/* The program: finds the verb, parses its options, runs it, and alone prints errors and chooses the
 * exit code.
 *
 * Every verb is a struct in a file of its own; the table below is their only list. */
#include "cli/console.h"
#include "cli/dispositions.h"
#include "cmd/commands.h"
#include "core/base/mem.h"
#include "threads/workers.h"
#include <stave/stave.h>

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct sv_command *const sv_commands[] = {
#define COMMAND(name) &sv_command_##name,
    SV_COMMANDS(COMMAND)
#undef COMMAND
        NULL,
};

struct sv_common sv_common;

uint32_t stave_i_obeys_environment =
    0; /* STAVE_OUT is for the programs whose traces are looked at */

const struct sv_option sv_common_options[] = {
    {'q', "quiet", NULL, SV_OPT_FLAG, offsetof(struct sv_common, quiet),
     "print only errors and damage on standard error", NULL, NULL},
    {0, "color", "WHEN", SV_OPT_TEXT, offsetof(struct sv_common, color),
     "auto (default), always or never; NO_COLOR is respected", "auto always never", NULL},
    {0, "threads", "N", SV_OPT_COUNT, offsetof(struct sv_common, threads),
     "load traces with N threads, 64 at most (default: the CPUs that the process may use); results "
     "do not depend on it",
     NULL, NULL},
    {'h', "help", NULL, SV_OPT_FLAG, offsetof(struct sv_common, help),
     "this help; --help all: with all options of a verb that has many", NULL, NULL},
    {0},
};

const struct sv_command *sv_command_named(const char *name)
{
    for (const struct sv_command *const *c = sv_commands; *c; c++)
        if (strcmp((*c)->name, name) == 0)
            return *c;
    return NULL;
}

static int exit_code(int code)
{
    switch (code) {
    case SV_EPIPE: return SV_EXIT_OK;
    case SV_EUSAGE: return SV_EXIT_USAGE;
    case SV_EINPUT:
    case SV_EFORMAT: return SV_EXIT_INPUT;
    case SV_EFOUND: return SV_EXIT_FOUND;
    case SV_EIO:
    case SV_ENOMEM:
    case SV_ELIMIT: return SV_EXIT_OUTPUT;
    default: return code < 0 ? SV_EXIT_OUTPUT : code;
    }
}

static int unknown_verb(const char *name)
{
    const char *names[64];
    size_t n = 0;
    for (const struct sv_command *const *c = sv_commands; *c && n < 64; c++)
        if (!(*c)->is_hidden)
            names[n++] = (*c)->name;
    const char *near = sv_nearest(name, names, n);
    if (near)
        sv_print(stderr, "stave: unknown verb '%s'; did you mean '%s'?\n", name, near);
    else
        sv_print(stderr, "stave: unknown verb '%s'; 'stave --help' lists them\n", name);
    return SV_EXIT_USAGE;
}

/* An exhausted heap: the command is left where it is. What it was writing has no name yet, or is a
 * growing file for `stave recover`. */
static int out_of_memory(void)
{
    sv_no_memory = NULL;
    sv_console_error(NULL, SV_NO_POS,
                     "out of memory: raise the limit (ulimit -v, the limit of the container) or "
                     "use a smaller input");
    return SV_EXIT_OUTPUT;
}

static int run_command(const struct sv_command *c, int argc, char **argv)
{
    jmp_buf jump;
    sv_console_init(c->name, NULL, false);
    sv_no_memory = &jump;
    if (setjmp(jump) != 0)
        return out_of_memory();
    struct sv_err err;
    struct sv_words operands = {0};
    void *options = sv_alloc(c->options_size + 1);
    sv_err_clear(&err);
    int code = sv_command_parse(c, argc, argv, options, &operands, &err);
    if (code == 0) {
        sv_console_init(c->name, sv_common.color, sv_common.quiet);
        sv_workers_set_default(sv_common.threads < SV_WORKERS_MAX ? (unsigned)sv_common.threads
                                                                  : SV_WORKERS_MAX);
        if (sv_common.help)
            sv_help_print(c, sv_help_wants_all(&operands));
        else
            code = c->run(options, &operands, &err);
    }
    code = sv_console_finish(code, &err);
    if (code < 0 && code != SV_EPIPE && err.code != SV_OK)
        sv_console_error(NULL, err.pos, err.msg);
    sv_words_free(&operands);
    sv_words_free(&sv_common.given);
    free(options);
    return exit_code(code);
}

/* For what needs no command. */
static int finish(void)
{
    struct sv_err err;
    sv_err_clear(&err);
    int code = sv_console_finish(0, &err);
    if (code < 0 && code != SV_EPIPE)
        sv_console_error(NULL, err.pos, err.msg);
    return exit_code(code);
}

/* Blocks of a MiB and more go back to the system when they are freed. By itself the allocator
 * raises that limit after the first such block, and a stage's memory stays beside that of the stage
 * after it. */
static void set_up_memory(void)
{
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 1 << 20);
#endif
}

int main(int argc, char **argv)
{
    set_up_memory();
    sv_dispositions_set(); /* a closed pipe, a limit: errors of write() like any other */
    sv_console_init("", NULL, false);
    if (argc < 2) {
        sv_help_print(NULL, false);
        return SV_EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        sv_help_print(NULL, false);
        return finish();
    }
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        sv_print(stdout, "stave %s\n", stave_version());
        return finish();
    }
    const struct sv_command *c = sv_command_named(argv[1]);
    return c ? run_command(c, argc - 2, argv + 2) : unknown_verb(argv[1]);
}
