/* Help text, man pages and completion scripts, all made from the command structs.
 *
 * `stave VERB --help` prints text for a terminal, the hidden verbs `man` and `completion` print
 * what the build installs. Because the structs also drive the parser, no second list of options
 * exists. */
#include "cli/command.h"
#include "cli/console.h"
#include "core/base/utf8.h"

#include <string.h>

#define WIDTH          78
#define OPTION_COLUMNS 28
#define TEXT_BYTES     ((size_t)1 << 16) /* of one text with its lists */

static const char exit_codes[] =
    "0 success, or the reader of the output closed the pipe; 1 something was found (validate, or "
    "damage under --strict); 2 the command line is wrong; 3 an input cannot be read or is not a "
    "trace; 4 the result could not be produced (disk full, memory limit); 5 the result is empty or "
    "holds less than its input; 6 the trace does not have what an answer needs (explain, whatif).";

/* Fills `text` to WIDTH columns; empty lines separate paragraphs. */
static void print_filled(const char *text, unsigned indent, unsigned column)
{
    while (*text) {
        size_t len = strcspn(text, " \n"), columns = sv_utf8_columns(text, len);
        if (len) {
            if (column > indent && column + 1 + columns > WIDTH) {
                sv_print(stdout, "\n%*s", (int)indent, "");
                column = indent;
            } else if (column > indent) {
                sv_print(stdout, " ");
                column++;
            }
            sv_print(stdout, "%.*s", (int)len, text);
            column += (unsigned)columns;
            text += len;
        }
        if (text[0] == '\n' && text[1] == '\n') {
            sv_print(stdout, "\n\n%*s", (int)indent, "");
            column = indent;
            text++;
        }
        if (*text)
            text++;
    }
    sv_print(stdout, "\n");
}

/* The text with the lists of the command (NULL: none) in place of their names in braces. Valid
 * until `to` changes. */
static const char *fill_in(const struct sv_command *c, const char *text, bool is_help,
                           struct sv_buf *to)
{
    sv_buf_clear(to);
    while (*text) {
        const struct sv_word_list *list = *text == '{' && c ? c->lists : NULL;
        size_t len = strcspn(text, "}");
        while (list && list->name &&
               (strlen(list->name) + 1 != len || memcmp(list->name, text + 1, len - 1) != 0))
            list++;
        if (list && list->name) {
            list->add(to, is_help);
            text += len + 1;
        } else {
            sv_buf_byte(to, (uint8_t)*text++);
        }
    }
    return sv_buf_cstr(to);
}

/* ---- topics ---- */

static bool is_first(const struct sv_option *o)
{
    return !o->topic || !*o->topic;
}

/* Short lists need no topics. */
static bool has_topics(const struct sv_command *c)
{
    size_t n = 0;
    bool any = false;
    for (const struct sv_option *o = c->options; o && o->name; o++, n++)
        any |= !is_first(o);
    return any && n > SV_HELP_FIRST;
}

/* `topic` NULL: any, "": the first. */
static bool is_of(const struct sv_option *o, const char *topic)
{
    return !topic || (is_first(o) ? !*topic : strcmp(o->topic, topic) == 0);
}

/* The topics of a command in the order of their first options: NULL after the last one. */
static const char *next_topic(const struct sv_command *c, const char *topic)
{
    bool is_seen = !topic;
    for (const struct sv_option *o = c->options; o->name; o++) {
        bool is_new = !is_first(o);
        for (const struct sv_option *before = c->options; is_new && before < o; before++)
            is_new = !is_of(before, o->topic);
        if (is_new && is_seen)
            return o->topic;
        is_seen |= is_new && strcmp(o->topic, topic) == 0;
    }
    return NULL;
}

bool sv_help_wants_all(const struct sv_words *operands)
{
    return operands->n > 0 && strcmp(operands->items[operands->n - 1], "all") == 0;
}

/* ---- for a terminal ---- */

static void print_options(const struct sv_command *c, const struct sv_option *o, const char *topic)
{
    struct sv_buf text;
    sv_buf_init(&text, TEXT_BYTES);
    for (; o && o->name; o++) {
        if (!is_of(o, topic))
            continue;
        char left[64];
        char letter[8] = "    ";
        if (o->letter)
            snprintf(letter, sizeof letter, "-%c, ", o->letter);
        snprintf(left, sizeof left, "  %s--%s%s%s", letter, o->name, o->arg ? " " : "",
                 o->arg ? o->arg : "");
        size_t columns = sv_utf8_columns(left, strlen(left));
        sv_print(stdout, "%s%s", left, columns < OPTION_COLUMNS ? "" : "\n");
        sv_print(stdout, "%*s", OPTION_COLUMNS - (int)(columns < OPTION_COLUMNS ? columns : 0), "");
        print_filled(fill_in(c, o->help, true, &text), OPTION_COLUMNS, OPTION_COLUMNS);
    }
    sv_buf_fini(&text);
}

static void heading(const char *text)
{
    sv_print(stdout, "\n");
    sv_print_styled(stdout, SV_BOLD, "%s", text);
    sv_print(stdout, "\n");
}

static void print_program_help(void)
{
    sv_print(stdout, "stave: record a workload and see on one time axis where the time went\n");
    heading("Usage");
    sv_print(stdout, "  stave VERB [options] …\n");
    heading("Verbs");
    for (const struct sv_command *const *c = sv_commands; *c; c++)
        if (!(*c)->is_hidden) {
            sv_print(stdout, "  ");
            sv_print_styled(stdout, SV_BOLD, "%-14s", (*c)->name);
            sv_print(stdout, " %s\n", (*c)->summary);
        }
    heading("Options of every verb");
    print_options(NULL, sv_common_options, NULL);
    sv_print(stdout,
             "\n'stave VERB --help' explains a verb with examples; 'stave help VERB' opens its "
             "manual page.\n");
}

static void print_own_options(const struct sv_command *c, bool all)
{
    bool by_topic = has_topics(c);
    heading("Options");
    print_options(c, c->options, by_topic ? "" : NULL);
    if (by_topic && !all)
        sv_print(stdout, "\n  more: stave%c%s --help all\n", c->is_program ? '-' : ' ', c->name);
    for (const char *t = NULL; by_topic && all && (t = next_topic(c, t));) {
        char text[96];
        snprintf(text, sizeof text, "Options: %s", t);
        heading(text);
        print_options(c, c->options, t);
    }
}

void sv_help_print(const struct sv_command *c, bool all)
{
    if (!c) {
        print_program_help();
        return;
    }
    struct sv_buf text;
    sv_buf_init(&text, TEXT_BYTES);
    char joint = c->is_program ? '-' : ' ';
    sv_print(stdout, "stave%c%s: %s\n", joint, c->name, c->summary);
    heading("Usage");
    sv_print(stdout, "  stave%c%s%s%s\n\n  ", joint, c->name, *c->operands ? " " : "", c->operands);
    print_filled(fill_in(c, c->description, true, &text), 2, 2);
    sv_buf_fini(&text);
    if (c->options && c->options->name)
        print_own_options(c, all);
    heading(c->is_program ? "Other options" : "Options of every verb");
    print_options(c, sv_common_options, NULL);
    heading("Examples");
    for (const struct sv_example *e = c->examples; e && e->command; e++)
        sv_print(stdout, "  %s\n      %s\n", e->command, e->what);
    heading("Exit codes");
    sv_print(stdout, "  ");
    print_filled(exit_codes, 2, 2);
}

/* ---- man pages ---- */

/* Troff: a backslash and a leading dot or quote have meaning; dashes must be ASCII to be copied. */
static void print_troff(const char *text)
{
    bool line_start = true;
    for (; *text; text++) {
        if (text[0] == '\n' && text[1] == '\n') {
            printf("\n.PP\n");
            text++;
            line_start = true;
            continue;
        }
        if (line_start && (*text == '.' || *text == '\''))
            printf("\\&");
        if (*text == '\\')
            printf("\\e");
        else if (*text == '-')
            printf("\\-");
        else
            putchar(*text);
        line_start = *text == '\n';
    }
    putchar('\n');
}

static void man_options(const struct sv_command *c, const struct sv_option *o, const char *topic)
{
    struct sv_buf text;
    sv_buf_init(&text, TEXT_BYTES);
    for (; o && o->name; o++) {
        if (!is_of(o, topic))
            continue;
        printf(".TP\n");
        if (o->letter)
            printf("\\fB\\-%c\\fR, ", o->letter);
        printf("\\fB\\-\\-%s\\fR", o->name);
        if (o->arg)
            printf(" \\fI%s\\fR", o->arg);
        putchar('\n');
        print_troff(fill_in(c, o->help, true, &text));
    }
    sv_buf_fini(&text);
}

static void man_program(void)
{
    printf(".TH STAVE 1 \"\" \"stave\" \"User Commands\"\n.SH NAME\n"
           "stave \\- record a workload and see on one time axis where the time went\n"
           ".SH SYNOPSIS\n.B stave\n.I VERB\n[options] \\&...\n.SH DESCRIPTION\n"
           "A tracing toolkit for machine\\-learning workloads. Each verb has a page of its "
           "own.\n.SH VERBS\n");
    for (const struct sv_command *const *c = sv_commands; *c; c++)
        if (!(*c)->is_hidden)
            printf(".TP\n\\fBstave\\-%s\\fR(1)\n%s\n", (*c)->name, (*c)->summary);
    printf(".SH OPTIONS\n");
    man_options(NULL, sv_common_options, NULL);
    printf(".SH \"EXIT STATUS\"\n");
    print_troff(exit_codes);
    printf(".SH ENVIRONMENT\n.TP\n\\fBNO_COLOR\\fR\nIf set, no colours are used.\n"
           ".TP\n\\fBTMPDIR\\fR\nFolder for temporary files of sorting and of unpacked archives "
           "(default /var/tmp).\n");
}

void sv_help_man(const struct sv_command *c)
{
    if (!c) {
        man_program();
        return;
    }
    struct sv_buf text;
    sv_buf_init(&text, TEXT_BYTES);
    printf(".TH STAVE\\-%s 1 \"\" \"stave\" \"User Commands\"\n.SH NAME\nstave\\-%s \\- ", c->name,
           c->name);
    print_troff(c->summary);
    printf(".SH SYNOPSIS\n.B stave%s%s\n", c->is_program ? "\\-" : " ", c->name);
    print_troff(c->operands);
    printf(".SH DESCRIPTION\n");
    print_troff(fill_in(c, c->description, true, &text));
    sv_buf_fini(&text);
    printf(".SH OPTIONS\n");
    bool by_topic = has_topics(c);
    man_options(c, c->options, by_topic ? "" : NULL);
    for (const char *t = NULL; by_topic && (t = next_topic(c, t));) {
        printf(".SS \"%s\"\n", t);
        man_options(c, c->options, t);
    }
    if (by_topic)
        printf(".SS \"%s\"\n", c->is_program ? "Other options" : "Options of every verb");
    man_options(c, sv_common_options, NULL);
    printf(".SH EXAMPLES\n");
    for (const struct sv_example *e = c->examples; e && e->command; e++) {
        printf(".TP\n.B ");
        print_troff(e->command);
        print_troff(e->what);
    }
    printf(".SH \"EXIT STATUS\"\n");
    print_troff(exit_codes);
    printf(".SH \"SEE ALSO\"\n.BR stave (1)\n");
}

/* ---- completion ---- */

static void print_option_words(const struct sv_option *o)
{
    for (; o && o->name; o++)
        printf(" --%s", o->name);
}

static void bash_choices(const struct sv_command *c, const struct sv_option *o)
{
    struct sv_buf words;
    sv_buf_init(&words, TEXT_BYTES);
    for (; o && o->name; o++)
        if (o->choices)
            printf("        --%s) COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return ;;\n", o->name,
                   fill_in(c, o->choices, false, &words));
    sv_buf_fini(&words);
}

/* The words of its first operand; NULL: they are not known. The text is valid until the next
 * call. */
static const char *first_words(const struct sv_command *c)
{
    static char text[512];
    struct sv_buf b;
    if (!c->first)
        return NULL;
    sv_buf_init(&b, sizeof text);
    c->first(&b);
    snprintf(text, sizeof text, "%s", sv_buf_cstr(&b));
    sv_buf_fini(&b);
    return text;
}

static void complete_bash(void)
{
    const char *first;
    printf("# bash completion for stave, made by 'stave completion bash'\n_stave() {\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=\n"
           "    COMPREPLY=()\n    if ((COMP_CWORD == 1)); then\n        COMPREPLY=($(compgen -W '");
    for (const struct sv_command *const *c = sv_commands; *c; c++)
        if (!(*c)->is_hidden)
            printf("%s ", (*c)->name);
    printf("' -- \"$cur\"))\n        return\n    fi\n    case ${COMP_WORDS[1]} in\n");
    for (const struct sv_command *const *c = sv_commands; *c; c++) {
        if ((*c)->is_hidden)
            continue;
        printf("    %s)\n        words='", (*c)->name);
        print_option_words((*c)->options);
        print_option_words(sv_common_options);
        printf("'\n        case $prev in\n");
        bash_choices(*c, (*c)->options);
        bash_choices(*c, sv_common_options);
        printf("        esac\n");
        if ((first = first_words(*c)))
            printf("        if ((COMP_CWORD == 2)) && [[ $cur != -* ]]; then\n            "
                   "COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return\n        fi\n",
                   first);
        printf("        ;;\n");
    }
    printf("    esac\n    [[ $cur == -* ]] && COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\n"
           "complete -o default -F _stave stave\n");
}

/* zsh and fish put descriptions in single quotes; brackets and colons have meaning to zsh. */
static void print_quoted(const char *text, const char *escape)
{
    for (; *text; text++) {
        if (*text == '\'')
            printf("'\\''");
        else if (strchr(escape, *text))
            printf("\\%c", *text);
        else
            putchar(*text == '\n' ? ' ' : *text);
    }
}

static void zsh_options(const struct sv_command *c, const struct sv_option *o)
{
    struct sv_buf text;
    sv_buf_init(&text, TEXT_BYTES);
    for (; o && o->name; o++) {
        printf(" \\\n            '--%s%s[", o->name, o->arg ? "=" : "");
        print_quoted(fill_in(c, o->help, true, &text), "[]:");
        printf("]");
        if (o->choices)
            printf(":%s:(%s)", o->name, fill_in(c, o->choices, false, &text));
        else if (o->arg)
            printf(":%s:_files", o->name);
        printf("'");
    }
    sv_buf_fini(&text);
}

static void complete_zsh(void)
{
    const char *first;
    printf(
        "#compdef stave\n# zsh completion for stave, made by 'stave completion zsh'\n_stave() {\n"
        "    local -a verbs\n    verbs=(\n");
    for (const struct sv_command *const *c = sv_commands; *c; c++) {
        if ((*c)->is_hidden)
            continue;
        printf("        '%s:", (*c)->name);
        print_quoted((*c)->summary, ":");
        printf("'\n");
    }
    printf("    )\n    if ((CURRENT == 2)); then\n        _describe verb verbs\n        return\n   "
           " fi\n"
           "    case $words[2] in\n");
    for (const struct sv_command *const *c = sv_commands; *c; c++) {
        if ((*c)->is_hidden)
            continue;
        printf("    %s)\n        shift words\n        ((CURRENT--))\n        _arguments",
               (*c)->name);
        zsh_options(*c, (*c)->options);
        zsh_options(*c, sv_common_options);
        if ((first = first_words(*c)))
            printf(" \\\n            '1:word:(%s)'", first);
        printf(" \\\n            '*:file:_files' ;;\n");
    }
    printf("    esac\n}\n_stave \"$@\"\n");
}

static void fish_options(const struct sv_command *c, const struct sv_option *o)
{
    struct sv_buf text;
    sv_buf_init(&text, TEXT_BYTES);
    for (; o && o->name; o++) {
        printf("complete -c stave -n '__fish_seen_subcommand_from %s' -l %s", c->name, o->name);
        if (o->letter)
            printf(" -s %c", o->letter);
        if (o->choices)
            printf(" -x -a '%s'", fill_in(c, o->choices, false, &text));
        else if (o->arg)
            printf(" -r");
        printf(" -d '");
        print_quoted(fill_in(c, o->help, true, &text), "\\");
        printf("'\n");
    }
    sv_buf_fini(&text);
}

static void complete_fish(void)
{
    printf("# fish completion for stave, made by 'stave completion fish'\n");
    for (const struct sv_command *const *c = sv_commands; *c; c++) {
        if ((*c)->is_hidden)
            continue;
        printf("complete -c stave -n __fish_use_subcommand -f -a %s -d '", (*c)->name);
        print_quoted((*c)->summary, "\\");
        printf("'\n");
        fish_options(*c, (*c)->options);
        fish_options(*c, sv_common_options);
        const char *first = first_words(*c);
        if (first)
            printf("complete -c stave -n '__fish_seen_subcommand_from %s; and test (count "
                   "(commandline -opc)) -eq 2' -f -a '%s'\n",
                   (*c)->name, first);
    }
}

/* ---- of a program without verbs ---- */

static void program_bash(const struct sv_command *c)
{
    printf("# bash completion for stave-%s\n_stave_%s() {\n"
           "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
           "    COMPREPLY=()\n    case $prev in\n",
           c->name, c->name);
    bash_choices(c, c->options);
    bash_choices(c, sv_common_options);
    printf("    esac\n    [[ $cur == -* ]] && COMPREPLY=($(compgen -W '");
    print_option_words(c->options);
    print_option_words(sv_common_options);
    printf("' -- \"$cur\"))\n}\ncomplete -o default -F _stave_%s stave-%s\n", c->name, c->name);
}

static void program_zsh(const struct sv_command *c)
{
    printf("#compdef stave-%s\n_arguments", c->name);
    zsh_options(c, c->options);
    zsh_options(c, sv_common_options);
    printf(" \\\n            '*:file:_files'\n");
}

static void program_fish_options(const char *name, const struct sv_option *o)
{
    for (; o && o->name; o++) {
        printf("complete -c stave-%s -l %s%s -d '", name, o->name, o->arg ? " -r" : "");
        print_quoted(o->help, "\\");
        printf("'\n");
    }
}

int sv_help_complete_program(const struct sv_command *c, const char *shell, struct sv_err *err)
{
    if (strcmp(shell, "bash") == 0) {
        program_bash(c);
    } else if (strcmp(shell, "zsh") == 0) {
        program_zsh(c);
    } else if (strcmp(shell, "fish") == 0) {
        program_fish_options(c->name, c->options);
        program_fish_options(c->name, sv_common_options);
    } else {
        return sv_error(err, SV_EUSAGE, "no completion for '%s'; available: bash, zsh and fish",
                        shell);
    }
    return 0;
}

int sv_help_completion(const char *shell, struct sv_err *err)
{
    static const struct {
        const char *shell;
        void (*print)(void);
    } shells[] = {{"bash", complete_bash}, {"zsh", complete_zsh}, {"fish", complete_fish}};
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        if (strcmp(shell, shells[i].shell) == 0) {
            shells[i].print();
            return 0;
        }
    }
    return sv_error(err, SV_EUSAGE, "no completion for '%s'; available: bash, zsh and fish", shell);
}
