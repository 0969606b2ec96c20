/* The interactive shell of `stave query -i`.
 *
 * Reads lines until a statement is complete, runs it, shows the rows, through a pager when they are
 * more than the terminal is high. Lines that begin with a dot are commands of the shell. With
 * libedit there is history (kept in the user's state folder), line editing and completion of tables
 * and columns; without it, plain lines. Ctrl-C drops the line or ends the running statement, never
 * the shell. */
#include "cmd/query_shell.h"

#include "cli/console.h"
#include "cli/pager.h"
#include "core/base/buf.h"
#include "core/base/mem.h"

#include <ctype.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef SV_HAVE_EDIT
#include <editline/readline.h>
#endif

struct shell {
    struct sv_sql *q;
    struct sv_printer *p;
    bool is_timed, is_terminal;
};

/* ---- words to complete ---- */

/* Collects the first column of a query. */
struct words {
    struct sv_rows_sink rows;
    char **items;
    size_t n, cap;
};

static int words_row(struct sv_rows_sink *r, const struct sv_cell *cells, size_t n,
                     struct sv_err *err)
{
    (void)n;
    (void)err;
    struct words *w = (struct words *)r;
    if (cells[0].type != SV_CELL_TEXT)
        return 0;
    SV_APPEND(w->items, w->n, w->cap) = sv_strndup(cells[0].text, cells[0].len);
    return 0;
}

static void words_fill(struct words *w, struct sv_sql *q, const char *sql)
{
    struct sv_err err;
    sv_err_clear(&err);
    w->rows = (struct sv_rows_sink){sv_rows_any_head, words_row, sv_rows_no_end};
    (void)sv_sql_run(q, sql, &w->rows, &err);
}

static void words_free(struct words *w)
{
    for (size_t i = 0; i < w->n; i++)
        free(w->items[i]);
    free(w->items);
    *w = (struct words){0};
}

static void fill_tables(struct words *w, struct sv_sql *q)
{
    words_fill(
        w, q,
        "SELECT name FROM (SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') UNION "
        "SELECT name FROM (SELECT 'slice' AS name UNION SELECT 'track' UNION SELECT 'thread' UNION "
        "SELECT 'process' UNION SELECT 'counter' UNION SELECT 'args' UNION SELECT 'flow' UNION "
        "SELECT 'loss' UNION SELECT 'stats' UNION SELECT 'metadata' UNION SELECT 'clock_snapshot' "
        "UNION SELECT 'machine' UNION SELECT 'step')) ORDER BY name");
}

#ifdef SV_HAVE_EDIT
/* libedit's callbacks take no context, so the words of the one shell of this process are here. */
static struct words completions;

static char *next_completion(const char *text, int state)
{
    static size_t at;
    size_t len = strlen(text);
    if (state == 0)
        at = 0;
    while (at < completions.n) {
        const char *word = completions.items[at++];
        if (strncasecmp(word, text, len) == 0) {
            return strdup(word); /* libedit frees it */
        }
    }
    return NULL;
}

static char **complete(const char *text, int start, int end)
{
    (void)start;
    (void)end;
    rl_attempted_completion_over = 1;
    return rl_completion_matches(text, next_completion);
}

static void fill_completions(struct sv_sql *q)
{
    static const char *const keywords[] = {"SELECT",
                                           "FROM",
                                           "WHERE",
                                           "GROUP BY",
                                           "ORDER BY",
                                           "LIMIT",
                                           "JOIN",
                                           "LEFT JOIN",
                                           "USING",
                                           "COUNT(",
                                           "SUM(",
                                           "MIN(",
                                           "MAX(",
                                           "AVG(",
                                           "EXTRACT_ARG(",
                                           "percentile(",
                                           "time_str(",
                                           "ancestor_slice(",
                                           "descendant_slice(",
                                           "slice_during(",
                                           "following_flow(",
                                           "preceding_flow(",
                                           ".tables",
                                           ".schema",
                                           ".help",
                                           ".quit",
                                           ".mode",
                                           ".timer"};
    fill_tables(&completions, q);
    size_t n_tables = completions.n;
    for (size_t i = 0; i < n_tables; i++) {
        char sql[200];
        snprintf(sql, sizeof sql, "SELECT name FROM pragma_table_info('%s')", completions.items[i]);
        words_fill(&completions, q, sql);
    }
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++) {
        SV_APPEND(completions.items, completions.n, completions.cap) =
            sv_strndup(keywords[i], strlen(keywords[i]));
    }
}

/* $XDG_STATE_HOME/stave/history or ~/.local/state/stave/history; false when there is no place for
 * it. */
static bool history_path(char *path, size_t size)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    int n = state && *state ? snprintf(path, size, "%s/stave", state)
            : home && *home ? snprintf(path, size, "%s/.local/state/stave", home)
                            : -1;
    if (n < 0 || (size_t)n + 10 >= size)
        return false;
    for (char *p = path + 1; *p; p++) {
        if (*p == '/') {
            *p = '\0';
            (void)mkdir(path, 0700);
            *p = '/';
        }
    }
    (void)mkdir(path, 0700);
    memcpy(path + n, "/history", 9);
    return true;
}
#endif

/* ---- lines ---- */

#ifdef SV_HAVE_EDIT
#define NO_EDITING ""
#else
#define NO_EDITING "\nNo history and no completion: this stave was built without libedit."
#endif

static sigjmp_buf to_prompt;
/* only a line that is being typed may be dropped by a jump */
static volatile sig_atomic_t is_reading;

static void on_prompt_interrupt(int signal)
{
    (void)signal;
    if (is_reading)
        siglongjmp(to_prompt, 1);
}

/* One line without its newline, or NULL at the end of input. */
static char *read_line(const struct shell *s, const char *prompt)
{
#ifdef SV_HAVE_EDIT
    if (s->is_terminal)
        return readline(prompt);
#endif
    char *line = NULL;
    size_t cap = 0;
    if (s->is_terminal) {
        sv_print(stdout, "%s", prompt);
        fflush(stdout);
    }
    ssize_t n = getline(&line, &cap, stdin);
    if (n < 0) {
        free(line);
        return NULL;
    }
    if (n && line[n - 1] == '\n')
        line[n - 1] = '\0';
    return line;
}

/* ---- commands of the shell ---- */

static void print_help(void)
{
    sv_print(stdout, ".tables          the tables and views\n"
                     ".schema [TABLE]  the columns of a table, or of all\n"
                     ".mode FORM       table, csv, json, jsonl or markdown\n"
                     ".timer on|off    show how long statements take\n"
                     ".quit            leave (also Ctrl-D)\n"
                     "Everything else is SQL and ends with a semicolon.\n");
}

static void print_tables(const struct shell *s)
{
    struct words w = {0};
    fill_tables(&w, s->q);
    for (size_t i = 0; i < w.n; i++)
        sv_print(stdout, "%s\n", w.items[i]);
    words_free(&w);
}

static void print_schema(const struct shell *s, const char *table)
{
    struct words w = {0}, c = {0};
    fill_tables(&w, s->q);
    for (size_t i = 0; i < w.n; i++) {
        if (*table && strcmp(table, w.items[i]) != 0)
            continue;
        size_t size = strlen(w.items[i]) + 120;
        char *sql = sv_alloc(size);
        snprintf(sql, size,
                 "SELECT name || CASE type WHEN '' THEN '' ELSE ' ' || type END FROM "
                 "pragma_table_xinfo('%s')",
                 w.items[i]);
        words_fill(&c, s->q, sql);
        sv_print(stdout, "%s(", w.items[i]);
        for (size_t k = 0; k < c.n; k++)
            sv_print(stdout, "%s%s", k ? ", " : "", c.items[k]);
        sv_print(stdout, ")\n");
        words_free(&c);
        free(sql);
    }
    words_free(&w);
}

static void set_mode(const struct shell *s, const char *form)
{
    struct sv_printer *p;
    struct sv_err err;
    sv_err_clear(&err);
    if (sv_printer_open(form, &p, &err) < 0) {
        sv_console_error(NULL, SV_NO_POS, err.msg);
        return;
    }
    s->p->form = p->form;
    (void)sv_printer_close(p, &err);
}

/* False: leave. */
static bool run_command(struct shell *s, const char *line)
{
    char word[32] = "", rest[200] = "";
    sscanf(line, "%31s %199[^\n]", word, rest);
    if (strcmp(word, ".quit") == 0 || strcmp(word, ".exit") == 0)
        return false;
    if (strcmp(word, ".tables") == 0)
        print_tables(s);
    else if (strcmp(word, ".schema") == 0)
        print_schema(s, rest);
    else if (strcmp(word, ".mode") == 0)
        set_mode(s, rest);
    else if (strcmp(word, ".timer") == 0)
        s->is_timed = strcmp(rest, "off") != 0;
    else
        print_help();
    return true;
}

/* ---- statements ---- */

/* Rows go through a pager when they are more than the terminal is high. */
static void run_statement(struct shell *s, const char *sql)
{
    struct sv_err err;
    sv_err_clear(&err);
    struct sv_pager *pager = s->is_terminal ? sv_pager_open() : NULL;
    s->p->out = pager ? sv_pager_file(pager) : stdout;
    s->p->n_results = 0;
    int code = sv_query_run(s->q, sql, s->p, s->is_timed, &err);
    if (code < 0 && s->p->text.len)
        sv_buf_clear(&s->p->text);
    fflush(s->p->out);
    clearerr(s->p->out);
    s->p->out = stdout;
    sv_pager_close(pager);
    if (code == SV_EAGAIN)
        sv_console_error(NULL, SV_NO_POS, "interrupted");
    else if (code < 0 && code != SV_EIO && code != SV_EPIPE)
        sv_console_error(NULL, SV_NO_POS, err.msg);
}

static bool is_blank(const char *s)
{
    while (isspace((unsigned char)*s) || *s == ';')
        s++;
    return *s == '\0';
}

/* Takes one line; false: leave. */
static bool take_line(struct shell *s, struct sv_buf *statement, const char *line)
{
    if (statement->len == 0 && line[strspn(line, " \t")] == '.')
        return run_command(s, line + strspn(line, " \t"));
    sv_buf_str(statement, line);
    sv_buf_byte(statement, '\n');
    if (!sv_sql_is_complete(sv_buf_cstr(statement)))
        return true;
    if (!is_blank(sv_buf_cstr(statement)))
        run_statement(s, sv_buf_cstr(statement));
    sv_buf_clear(statement);
    return true;
}

static void begin_editing(struct shell *s, char *history, size_t size)
{
    *history = '\0';
#ifdef SV_HAVE_EDIT
    if (!s->is_terminal)
        return;
    rl_initialize();
    rl_attempted_completion_function = complete;
    fill_completions(s->q);
    using_history();
    stifle_history(1000);
    if (history_path(history, size))
        (void)read_history(history);
#else
    (void)s;
    (void)size;
#endif
}

static void remember(const struct shell *s, const char *line)
{
#ifdef SV_HAVE_EDIT
    if (s->is_terminal && *line)
        add_history(line);
#else
    (void)s;
    (void)line;
#endif
}

static void end_editing(const struct shell *s, const char *history)
{
#ifdef SV_HAVE_EDIT
    if (s->is_terminal && *history) {
        (void)write_history(history);
        (void)chmod(history, 0600);
    }
    words_free(&completions);
#else
    (void)s;
    (void)history;
#endif
}

int sv_query_shell(struct sv_sql *q, struct sv_printer *p, bool is_timed, struct sv_err *err)
{
    static struct shell s; /* static: they live across siglongjmp() */
    static struct sv_buf statement;
    static volatile bool goes_on;
    static char history[4096];
    struct sigaction action = {.sa_handler = on_prompt_interrupt}, before;
    (void)err;
    s = (struct shell){q, p, is_timed, isatty(STDIN_FILENO) != 0};
    sv_buf_init(&statement, 64u << 20);
    begin_editing(&s, history, sizeof history);
    if (s.is_terminal)
        sv_print(stdout,
                 "SQL over the trace; .help lists the shell's own commands." NO_EDITING "\n");
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, &before);
    goes_on = true;
    while (goes_on) {
        if (sigsetjmp(to_prompt, 1) != 0) { /* from on_prompt_interrupt(), while is_reading */
            is_reading = false;
            sv_buf_clear(&statement);
            sv_print(stdout, "\n");
        }
        is_reading = s.is_terminal;
        char *line = read_line(&s, statement.len ? "   ...> " : "stave> ");
        is_reading = false;
        if (!line)
            break;
        remember(&s, line);
        goes_on = take_line(&s, &statement, line);
        free(line);
    }
    sigaction(SIGINT, &before, NULL);
    if (statement.len && !is_blank(sv_buf_cstr(&statement)))
        run_statement(&s, sv_buf_cstr(&statement));
    end_editing(&s, history);
    sv_buf_fini(&statement);
    return 0;
}
