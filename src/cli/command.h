/* A command is a const struct in its own file: name, words for people, options, and what it does.
 *
 * The help text, the man page and the shell completions are all made from these structs, so they
 * cannot disagree with the parser. Commands return an exit code or a negative SV_E…; only main.c
 * prints errors. */
#pragma once

#include "cli/nearest.h"
#include "core/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sv_exit {
    SV_EXIT_OK = 0,
    SV_EXIT_FOUND = 1, /* validate found something, or --strict met damage */
    SV_EXIT_USAGE = 2, /* the command line makes no sense */
    SV_EXIT_INPUT = 3, /* an input cannot be opened, or is no trace */
    SV_EXIT_OUTPUT =
        /* the result could not be produced: disk full, memory limit, a time that fits no int64 */
    4,
    SV_EXIT_LESS = 5,  /* the result is empty, or holds less than its input */
    SV_EXIT_UNSURE = 6 /* explain, whatif: the trace does not have what an answer needs */
};

enum sv_option_type {
    SV_OPT_FLAG,   /* bool */
    SV_OPT_TEXT,   /* const char * */
    SV_OPT_OUTPUT, /* const char *: a file or folder to write; a URL is refused */
    SV_OPT_LIST,   /* struct sv_words: may be given several times */
    SV_OPT_BYTES,  /* uint64_t: 512M, 2G */
    SV_OPT_COUNT,  /* uint64_t */
    SV_OPT_WINDOW  /* struct sv_interval: a:b */
};

struct sv_words {
    const char **items;
    size_t n, cap;
};

/* Times as the user gave them: a plain number counts from the start of the trace, with a leading
 * '@' it is on the trace's clock. */
struct sv_moment {
    int64_t ns;
    bool is_given, is_absolute;
};

struct sv_interval {
    struct sv_moment from, to;
};

struct sv_option {
    char letter;      /* 0: long form only */
    const char *name; /* without the dashes */
    const char *arg;  /* how its argument is called in the help, NULL for flags */
    enum sv_option_type type;
    size_t offset; /* of the value in the command's own options struct */
    const char *help;
    const char *choices; /* for completion: words separated by blanks, NULL: files or anything */
    /* The heading under which the help of a verb with more than SV_HELP_FIRST options has it; NULL
     * or "": it is among the first, which --help shows without `all`. */
    const char *topic;
};

struct sv_example {
    const char *command, *what;
};

/* Words that are listed elsewhere, such as the names of formats: `{name}` in help, choices and
 * description of a command is replaced by them. */
struct sv_buf;
struct sv_word_list {
    const char *name;
    void (*add)(struct sv_buf *out, bool is_help); /* "a, b or c"; else for completion: "a b c" */
};

struct sv_command {
    const char *name;
    const char *operands; /* "IN… -o OUT" */
    const char *summary;  /* one line, no full stop */
    /* paragraphs separated by empty lines; lines are filled by the printer */
    const char *description;
    const struct sv_option *options;   /* ends with a zeroed one */
    const struct sv_example *examples; /* ends with a zeroed one */
    const struct sv_word_list *lists;  /* ends with a zeroed one; NULL: none */
    void (*first)(struct sv_buf *out); /* words for its first operand; NULL: it is a file */
    size_t options_size;               /* of the command's own struct */
    int (*run)(void *options, const struct sv_words *operands, struct sv_err *err);
    /* its operands are a command with options of its own: they follow -- */
    bool takes_command;
    bool is_hidden;  /* used by the build only: not in the list of commands */
    bool is_program; /* no verb of stave, but a program of its own: stave-NAME */
};

extern const struct sv_command *const sv_commands[]; /* NULL-terminated, in the order of the help */

const struct sv_command *sv_command_named(const char *name);

/* Options that every command has, kept apart from each command's own. */
struct sv_common {
    bool quiet, help;
    const char *color;
    uint64_t threads;      /* 0: not given */
    struct sv_words given; /* the names of the command's own options, as they came */
};
extern struct sv_common sv_common;
extern const struct sv_option sv_common_options[];

/* Fills options (zeroed by the caller) and operands. SV_EUSAGE names the culprit and the nearest
 * option. */
int sv_command_parse(const struct sv_command *c, int argc, char **argv, void *options,
                     struct sv_words *operands, struct sv_err *err);

/* One option of the table as if its text had been given on the command line. */
int sv_option_set(const struct sv_option *o, void *options, const char *text, struct sv_err *err);

void sv_words_add(struct sv_words *w, const char *word);
void sv_words_free(struct sv_words *w);

/* Refuses a URL as the output that --option names, unless its scheme is among `schemes` (words with
 * blanks between them; NULL: none). The URL is not repeated: it may hold what others must not
 * read. */
int sv_refuse_url(const char *option, const char *text, const char *schemes, struct sv_err *err);

/* For options that mean something only beside others. is_given: the command's own option of this
 * name was given. only: refuses those that are not among `allowed` (words with blanks between
 * them); what: "report io", for the message. need: refuses one without the other. */
bool sv_option_is_given(const char *name);
int sv_options_only(const char *what, const char *allowed, struct sv_err *err);
int sv_options_need(const char *option, const char *other, struct sv_err *err);
int sv_options_either(const char *option, const char *other, struct sv_err *err);
bool sv_word_among(const char *word, size_t len, const char *list);

/* What users write, all of it or SV_EUSAGE: neither signs nor anything after it, nothing that does
 * not fit. */
int sv_parse_count(const char *text, uint64_t *out);            /* 17 */
int sv_parse_number(const char *text, size_t len, double *out); /* 0.5, 12, 1e6; no nan, no inf */
/* When the next part of a rotated trace begins: SIZE[,COUNT] or TIME[,COUNT]. */
struct sv_rotate {
    uint64_t bytes; /* or … */
    int64_t ns;
    uint64_t parts; /* that are kept; 0: all */
};
#define SV_NO_ROTATE                                                                           \
    "neither a size of at least 256K, such as 512M, nor a time of at least a second, such as " \
    "10min; 512M,4 keeps four parts"
int sv_parse_rotate(const char *text, struct sv_rotate *r);
bool sv_is_a_time(const char *text, size_t len); /* it has a unit that no size has */

int sv_parse_bytes(const char *text, uint64_t *out); /* 512M, 1.5G */
int sv_parse_moment(const char *text, size_t len,
                    struct sv_moment *out); /* 1.5s, 20ms, 300us, 5ns, 1.5 (s) */
/* The time that is meant in a trace that begins at first_ns; `missing` when none was given.
 * Saturates. */
int64_t sv_moment_in(const struct sv_moment *m, int64_t first_ns, int64_t missing);

/* Help and man page of one command (NULL: of the program), completion script of a shell. A command
 * with more than SV_HELP_FIRST options shows those without a topic, and with `all` the others, too,
 * topic by topic. */
enum { SV_HELP_FIRST = 12 };
void sv_help_print(const struct sv_command *c, bool all);
bool sv_help_wants_all(const struct sv_words *operands); /* --help all */
void sv_help_man(const struct sv_command *c);
int sv_help_completion(const char *shell, struct sv_err *err);
int sv_help_complete_program(const struct sv_command *c, const char *shell, struct sv_err *err);
