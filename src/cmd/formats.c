/* stave formats, a hidden verb: the tables of docs/formats.md. */
#include "cli/console.h"
#include "cmd/commands.h"
#include "cmd/export.h"
#include "files/open.h"

#include <stdio.h>
#include <string.h>

static const char *or_nothing(const char *text)
{
    return text ? text : "";
}

static void print_suffixes(const struct sv_writer *w)
{
    for (const char *const *s = w->suffixes; *s; s++)
        sv_print(stdout, "%s`%s`", s == w->suffixes ? "" : " ", *s);
}

static void print_written(void)
{
    sv_print(stdout,
             "| name | what it is | suffixes | read | cannot hold |\n|---|---|---|---|---|\n");
    for (const struct sv_format *const *f = sv_formats; *f; f++) {
        if (!(*f)->writer)
            continue;
        sv_print(stdout, "| `%s` | %s | ", (*f)->name, (*f)->help);
        print_suffixes((*f)->writer);
        sv_print(stdout, " | %s | %s |\n", sv_format_reads(*f) ? "yes" : "no",
                 or_nothing((*f)->lacks));
    }
}

static void print_dialects(void)
{
    sv_print(stdout, "\n| format | `--dialect` | what it is | cannot hold, beyond that |\n"
                     "|---|---|---|---|\n");
    for (const struct sv_format *const *f = sv_formats; *f; f++) {
        for (const struct sv_dialect *d = (*f)->dialects; d && d->name; d++)
            sv_print(stdout, "| `%s` | `%s` | %s | %s |\n", (*f)->name, d->name, d->help,
                     or_nothing(d->lacks));
    }
}

static void print_read(void)
{
    sv_print(stdout, "\n| name | what it reads | times | cannot hold |\n|---|---|---|---|\n");
    for (const struct sv_format *const *f = sv_formats; *f; f++)
        if (!(*f)->writer)
            sv_print(stdout, "| `%s` | %s | %s | %s |\n", (*f)->name, or_nothing((*f)->files),
                     or_nothing((*f)->times), or_nothing((*f)->lacks));
}

/* Words with blanks between them, each as code after `prefix`. */
static void print_words(const char *prefix, const char *words)
{
    for (const char *w = words; w && *w; w += strcspn(w, " "), w += strspn(w, " "))
        sv_print(stdout, "%s`%s%.*s`", w == words ? "" : " ", prefix, (int)strcspn(w, " "), w);
}

static void print_exported(void)
{
    sv_print(stdout, "\n| `stave export --to` | what it is | suffixes | its own options |\n"
                     "|---|---|---|---|\n");
    for (const struct sv_export_form *const *f = sv_export_forms; *f; f++) {
        sv_print(stdout, "| `%s` | %s | ", (*f)->name, (*f)->help);
        print_words("", (*f)->suffixes);
        sv_print(stdout, " | ");
        print_words("--", (*f)->options);
        sv_print(stdout, " |\n");
    }
}

static int run(void *options, const struct sv_words *operands, struct sv_err *err)
{
    (void)options;
    int code = sv_expect_operands(operands, 0, 0, "operand", err);
    if (code < 0)
        return code;
    print_written();
    print_dialects();
    print_read();
    print_exported();
    return 0;
}

const struct sv_command sv_command_formats = {
    .name = "formats",
    .operands = "",
    .summary = "print the tables of formats as Markdown",
    .description = "For docs/formats.md.",
    .run = run,
    .is_hidden = true,
};
