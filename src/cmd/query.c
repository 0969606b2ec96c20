/* stave query: SQL over a trace.
 *
 * Loads the inputs into the store, opens the SQL connection over it, runs what the operand, the
 * file, standard input or the shell gives. Ctrl-C ends the running statement; the handler only sets
 * SQLite's own flag. */
#include "cli/console.h"
#include "cmd/clickhouse.h"
#include "cmd/commands.h"
#include "cmd/query_shell.h"
#include "sql/sql.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct query {
    const char *from, *file;
    struct sv_rows_choice to;
    struct sv_range range;
    bool strict, assume, time, interactive, no_index;
    uint64_t memory_limit;
};

#define SQL_MAX (64u << 20)

/* ---- where the SQL comes from ---- */

static int read_all(const char *path, struct sv_buf *b, struct sv_err *err)
{
    bool is_stdin = strcmp(path, "-") == 0;
    FILE *f = is_stdin ? stdin : fopen(path, "rb");
    if (!f) {
        sv_err_sys(err, "%s", path);
        return err->code = SV_EINPUT;
    }
    char piece[8192];
    size_t n;
    while ((n = fread(piece, 1, sizeof piece, f)) > 0)
        sv_buf_add(b, piece, n);
    bool is_bad = ferror(f) != 0;
    if (!is_stdin)
        fclose(f);
    if (is_bad)
        return sv_error(err, SV_EINPUT, "%s: cannot be read", path);
    if (b->failed)
        return sv_error(err, SV_ELIMIT, "%s: more than 64 MiB of SQL", path);
    return 0;
}

/* Fills `sql` and says how many operands are traces. */
static int find_sql(const struct query *o, const struct sv_words *operands, struct sv_buf *sql,
                    size_t *n_traces, struct sv_err *err)
{
    *n_traces = operands->n;
    if (operands->n == 0)
        return sv_error(err, SV_EUSAGE, "give a trace and a query: stave query TRACE \"SELECT …\"");
    if (o->interactive)
        return 0;
    if (o->file)
        return read_all(o->file, sql, err);
    if (operands->n == 1) {
        if (isatty(STDIN_FILENO))
            return sv_error(err, SV_EUSAGE,
                            "no query: give it as the last operand, with -f FILE or on standard "
                            "input, or use -i");
        return read_all("-", sql, err);
    }
    *n_traces = operands->n - 1;
    sv_buf_str(sql, operands->items[operands->n - 1]);
    return 0;
}

/* ---- running ---- */

/* for the signal handler; sqlite3_interrupt() may be called from one */
static struct sv_sql *running;

static void on_interrupt(int signal)
{
    (void)signal;
    if (running)
        sv_sql_interrupt(running);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int sv_query_run(struct sv_sql *q, const char *sql, struct sv_printer *p, bool is_timed,
                 struct sv_err *err)
{
    struct sigaction action = {.sa_handler = on_interrupt}, before;
    sigemptyset(&action.sa_mask);
    running = q;
    sigaction(SIGINT, &action, &before);
    double start = seconds();
    int code = sv_sql_run(q, sql, &p->rows, err);
    sigaction(SIGINT, &before, NULL);
    running = NULL;
    if (is_timed) {
        fflush(stdout);
        sv_console_note("query %.3f s", seconds() - start);
    }
    return code;
}

static int run_loaded(const struct query *o, const struct sv_loaded *l, const char *sql,
                      struct sv_err *err)
{
    struct sv_sql_options options = sv_query_options(l, o->memory_limit);
    struct sv_sql *q = NULL;
    struct sv_printer *p = NULL;
    struct sv_rows_choice choice = o->to;
    if (o->interactive && !choice.form && !choice.json)
        choice.form = "table";
    int code = sv_printer_choose(&choice, &p, err);
    if (code >= 0)
        code = sv_sql_open(l->trace, &options, &q, err);
    if (code >= 0)
        code = o->interactive ? sv_query_shell(q, p, o->time, err)
                              : sv_query_run(q, sql, p, o->time, err);
    sv_sql_close(q);
    int closed = sv_printer_close(p, err);
    return code < 0 ? code : closed;
}

static int run_database(const struct query *o, const char *url, const char *sql, struct sv_err *err)
{
    if (o->interactive)
        return sv_error(err, SV_EUSAGE,
                        "-i: the shell works on files; give the statements as an operand, with -f "
                        "or on standard input");
    return sv_query_clickhouse(url, sql, &o->to, o->time, err);
}

static int run(void *options, const struct sv_words *operands, struct sv_err *err)
{
    const struct query *o = options;
    struct sv_buf sql;
    struct sv_loaded l;
    size_t n_traces;
    sv_buf_init(&sql, SQL_MAX);
    bool is_database = operands->n > 0 && sv_is_database(operands->items[0]);
    if (!is_database && !sv_sql_is_built_in())
        return sv_error(err, SV_ELIMIT,
                        "this build has no SQLite: install libsqlite3-dev and build again");
    int code = sv_options_either("file", "interactive", err);
    if (code >= 0)
        code = find_sql(o, operands, &sql, &n_traces, err);
    if (code >= 0)
        code = sv_database_alone(operands->items, n_traces, err);
    if (code >= 0 && is_database) {
        code = run_database(o, operands->items[0], sv_buf_cstr(&sql), err);
    } else if (code >= 0) {
        double start = seconds();
        code =
            sv_load_traces(operands->items, n_traces, &(struct sv_load_how)SV_LOAD_HOW(o), &l, err);
        if (o->time)
            sv_console_note("load %.3f s%s", seconds() - start,
                            code >= 0 && sv_trace_image(l.trace) ? ", from its index" : "");
        if (code >= 0)
            code = run_loaded(o, &l, sv_buf_cstr(&sql), err);
        sv_loaded_free(&l);
    }
    sv_buf_fini(&sql);
    if (code == SV_EAGAIN) {
        sv_console_error(NULL, SV_NO_POS, "interrupted");
        return 130;
    }
    return code;
}

static const struct sv_option options[] = {
    {'f', "file", "FILE", SV_OPT_TEXT, offsetof(struct query, file),
     "read the SQL from FILE ('-': standard input)", NULL, NULL},
    {'i', "interactive", NULL, SV_OPT_FLAG, offsetof(struct query, interactive),
     "start an interactive shell with history and completion", NULL, NULL},
    SV_ROWS_OPTION(struct query, "to", to),
    {0, "time", NULL, SV_OPT_FLAG, offsetof(struct query, time),
     "report the time of loading and of each statement on standard error", NULL, NULL},
    SV_MEMORY_OPTION(struct query),
    SV_INDEX_OPTION(struct query),
    SV_RANGE_OPTIONS(struct query),
    SV_INPUTS_OPTIONS(struct query),
    {0},
};

static const struct sv_example examples[] = {
    {"stave query trace.pftrace 'select name, count(*), sum(dur) from slice group by name'",
     "where the time goes"},
    {"stave query trace.json 'select * from kernel order by dur desc limit 10' --to markdown",
     "the ten longest kernels, for a report"},
    {"stave query -i trace.pftrace", "an interactive shell"},
    {"stave query clickhouse://db1:8123/traces 'select rank, sum(dur) from io group by rank'",
     "over all that 'stave export' loaded there"},
    {0},
};

const struct sv_command sv_command_query = {
    .name = "query",
    .operands = "TRACE… [SQL]",
    .summary = "query a trace with SQL",
    .description =
        "Loads the traces and runs SQL statements over them. Tables and columns have the names "
        "that Perfetto gives them (slice, track, thread, process, counter, args, flow…), so that "
        "queries written for Perfetto run unchanged; io, file, kernel, memcpy, batch, request and "
        "loss are Stave's own. The last operand is the query unless it comes from -f or standard "
        "input; it may hold several statements. Statements never change the file.\n\n"
        "Instead of traces a database that 'stave export --to clickhouse' filled can be given: "
        "clickhouse://HOST:PORT/DATABASE. The statements are handed on as they are, in "
        "ClickHouse's SQL, and may change nothing; see docs/clickhouse.md.",
    .options = options,
    .examples = examples,
    .lists = sv_format_lists,
    .options_size = sizeof(struct query),
    .run = run,
};
