/* stave export: the tables of a trace for other tools, as a SQLite file, a folder of CSV files or one JSON document.
 *
 * The same tables that `stave query` has, views included, so that a question gets the same answer there. Written beside the
 * target and renamed when complete: a failure leaves nothing that looks finished. */
#include "analysis/calltree.h"
#include "analysis/sql/direct.h"
#include "analysis/sql/sql.h"
#include "cli/console.h"
#include "cli/rows.h"
#include "cmd/clickhouse.h"
#include "cmd/commands.h"
#include "cmd/export_columns.h"
#include "cmd/export_otlp.h"
#include "cmd/query_shell.h"
#include "core/base/printable.h"
#include "core/files/output.h"
#include "files/load.h"
#include "files/rotation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define FRAMES_MAX 1024 /* of a line of folded stacks */

struct export
{
    const char *from, *to, *output, *run, *rank;
    bool strict, assume, force, no_index;
    uint64_t memory_limit, retry;
    struct sv_words categories;
};

/* ---- CSV and JSON ---- */

static int run_table(struct sv_sql *q, const char *table, struct sv_output *out, const char *form,
                     struct sv_err *err)
{
    struct sv_printer *p;
    char sql[128];
    int code = sv_printer_open(form, &p, err);
    if (code < 0)
        return code;
    p->file = out;
    snprintf(sql, sizeof sql, "SELECT * FROM \"%s\"", table);
    code = strcmp(table, "slice") == 0 ? sv_sql_slice_rows(q, &p->rows, err)
                                       : sv_sql_run(q, sql, &p->rows, err);
    int closed = sv_printer_close(p, err);
    return code < 0 ? code : closed;
}

static int end_file(struct sv_output *out, int code, struct sv_err *err)
{
    int ended = sv_output_end(out, code < 0, err);
    return code < 0 ? code : ended;
}

static int write_csv_file(struct sv_sql *q, const char *folder, const char *table,
                          struct sv_err *err)
{
    char path[4096];
    struct sv_output *out;
    if (snprintf(path, sizeof path, "%s/%s.csv", folder, table) >= (int)sizeof path)
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS, "%.300s: the path is too long", folder);
    int code = sv_output_open(path, SV_OUTPUT_RENAME, SV_PLAIN, &out, err);
    return code < 0 ? code : end_file(out, run_table(q, table, out, "csv", err), err);
}

static int write_csv_dir(struct sv_sql *q, const char *path, bool force, struct sv_err *err)
{
    if (mkdir(path, 0777) < 0 && !(force && errno == EEXIST))
        return sv_err_sys(err, "%.300s: cannot create", path);
    int code = 0;
    for (const char *const *t = sv_sql_tables(); *t && code >= 0; t++)
        code = write_csv_file(q, path, *t, err);
    return code;
}

static void put(struct sv_output *out, const char *text)
{
    sv_output_write(out, text, strlen(text));
}

static int write_json(struct sv_sql *q, const char *path, struct sv_err *err)
{
    struct sv_output *out;
    int code = sv_output_open(path, SV_OUTPUT_RENAME, SV_PLAIN, &out, err);
    if (code < 0)
        return code;
    put(out, "{");
    for (const char *const *t = sv_sql_tables(); *t && code >= 0; t++) {
        put(out, t == sv_sql_tables() ? "\"" : ",\n\"");
        put(out, *t);
        put(out, "\": ");
        code = run_table(q, *t, out, "json", err);
    }
    put(out, "}\n");
    return end_file(out, code, err);
}

/* ---- folded stacks ---- */

/* A name in a line of its own rules: printable, no separator. */
static void put_name(struct sv_buf *b, const struct sv_call_node *x)
{
    size_t start = b->len;
    sv_buf_printable(b, x->name, x->len);
    for (size_t i = start; i < b->len; i++)
        if (b->data[i] == ';')
            b->data[i] = ':';
}

/* Returns false when the path was cut to its innermost FRAMES_MAX frames. */
static bool put_path(struct sv_buf *b, const struct sv_calltree *c, size_t call)
{
    const struct sv_call_node *path[FRAMES_MAX];
    size_t n = 0;
    for (; call != 0 && n < FRAMES_MAX; call = c->calls[call].parent)
        path[n++] = &c->calls[call];
    while (n-- > 0) {
        put_name(b, path[n]);
        if (n)
            sv_buf_byte(b, ';');
    }
    return call == 0;
}

/* One line per call path: stack samples counted, or, where a trace has none, microseconds of the slices' own time. */
static void make_tree(struct sv_calltree *c, const struct sv_trace *t, bool *has_samples)
{
    sv_calltree_make(c, &t, 1, &(struct sv_calltree_options){.of_samples = true});
    *has_samples = c->n > 1;
    if (!*has_samples) {
        sv_calltree_fini(c);
        sv_calltree_make(c, &t, 1, &(struct sv_calltree_options){0});
    }
}

static int write_folded(const struct sv_trace *t, const char *path, struct sv_err *err)
{
    struct sv_calltree c;
    struct sv_output *out;
    struct sv_buf line;
    bool has_samples;
    uint64_t n_cut = 0;
    int code = sv_output_open(path, SV_OUTPUT_RENAME, SV_PLAIN, &out, err);
    if (code < 0)
        return code;
    make_tree(&c, t, &has_samples);
    sv_buf_init(&line, (size_t)1 << 30);
    for (size_t i = 1; i < c.n && code >= 0; i++) {
        uint64_t n = has_samples ? c.calls[i].count[0] : (uint64_t)c.calls[i].self_ns[0] / 1000;
        if (n == 0)
            continue;
        n_cut += !put_path(&line, &c, i);
        sv_buf_printf(&line, " %llu\n", (unsigned long long)n);
        if (line.failed)
            code = sv_err_set(err, SV_ELIMIT, SV_NO_POS, "a call path is too long for a line");
        sv_output_pass_on(out, &line);
        code = code < 0 ? code : sv_output_failure(out, err);
    }
    if (n_cut)
        sv_console_note("%llu call paths are deeper than %d: their outermost frames are omitted",
                        (unsigned long long)n_cut, FRAMES_MAX);
    sv_buf_fini(&line);
    sv_calltree_fini(&c);
    return end_file(out, code, err);
}

/* ---- SQLite ---- */

/* An empty file beside the target that nobody else has: the library fills it, and it gets its name when it is complete. */
static int make_beside(const char *target, char *path, size_t size, struct sv_err *err)
{
    const char *slash = strrchr(target, '/'), *base = slash ? slash + 1 : target;
    for (int i = 0; i < 100; i++) {
        if (snprintf(path, size, "%.*s.%.200s.%d-%d.tmp", (int)(base - target), target, base,
                     (int)getpid(), i) >= (int)size)
            return sv_err_set(err, SV_EUSAGE, SV_NO_POS, "%.300s: the path is too long", target);
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0)
            return close(fd);
        if (errno != EEXIST)
            break;
    }
    return sv_err_sys(err, "%.300s: cannot create", target);
}

static int write_sqlite(struct sv_sql *q, const char *target, struct sv_err *err)
{
    char path[4096];
    int code = make_beside(target, path, sizeof path, err);
    if (code < 0)
        return code;
    code = sv_sql_export(q, path, err);
    if (code >= 0 && rename(path, target) < 0)
        code = sv_err_sys(err, "%.300s: cannot rename the finished file to its name", target);
    if (code < 0)
        unlink(path);
    return code;
}

static int write_out(const struct export *o, const char *form, struct sv_sql *q, struct sv_err *err)
{
    if (strcmp(form, "csv-dir") == 0)
        return write_csv_dir(q, o->output, o->force, err);
    return strcmp(form, "sqlite") == 0 ? write_sqlite(q, o->output, err)
                                       : write_json(q, o->output, err);
}

static bool ends_with(const char *text, const char *end)
{
    size_t a = strlen(text), b = strlen(end);
    return a >= b && strcmp(text + a - b, end) == 0;
}

static const char *choose_form(const struct export *o)
{
    if (o->to || !o->output)
        return o->to ? o->to : "";
    if (sv_is_database(o->output))
        return "clickhouse";
    if (ends_with(o->output, ".json"))
        return "json";
    if (ends_with(o->output, ".folded"))
        return "folded";
    if (ends_with(o->output, ".tar"))
        return "perfetto-tar";
    return ends_with(o->output, ".db") || ends_with(o->output, ".sqlite") ||
                   ends_with(o->output, ".sqlite3")
               ? "sqlite"
               : "";
}

#define FORMS "sqlite csv-dir json folded parquet perfetto-tar clickhouse otlp"

static bool is_form(const char *form)
{
    static const char forms[] = FORMS;
    size_t n = strlen(form);
    for (const char *at = forms; n > 0 && (at = strstr(at, form)); at += n)
        if ((at == forms || at[-1] == ' ') && (at[n] == ' ' || at[n] == '\0'))
            return true;
    return false;
}

/* Written into a folder that may be there already. */
static bool is_tree(const char *form)
{
    return strcmp(form, "parquet") == 0;
}

/* Of many traces, each by itself. */
static bool is_many(const char *form)
{
    return is_tree(form) || strcmp(form, "perfetto-tar") == 0;
}

static int export_many(const struct export *o, const char *form, const struct sv_rotations *r,
                       struct sv_err *err)
{
    const struct sv_words traces = {.items = r->inputs, .n = r->n};
    struct sv_export_many many = {.from = o->from,
                                  .output = o->output,
                                  .run = o->run,
                                  .rank = o->rank,
                                  .strict = o->strict,
                                  .assume = o->assume,
                                  .force = o->force,
                                  .no_index = o->no_index,
                                  .memory_limit = o->memory_limit,
                                  .rotations = r};
    return is_tree(form) ? sv_export_parquet(&many, &traces, err)
                         : sv_export_perfetto_tar(&many, &traces, err);
}

static int check(const struct export *o, const char *form, struct sv_err *err)
{
    struct stat st;
    bool is_otlp = strcmp(form, "otlp") == 0;
    if (!sv_sql_is_built_in() && strcmp(form, "folded") != 0 && strcmp(form, "perfetto-tar") != 0 &&
        !is_otlp)
        return sv_err_set(err, SV_ELIMIT, SV_NO_POS,
                          "this build has no SQLite: install libsqlite3-dev and build again");
    if (!o->output || !*o->output)
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS, "no output given: use -o PATH");
    const char *schemes = is_otlp ? "http" : "clickhouse clickhouses";
    bool is_https = is_otlp &&
                    strncasecmp(o->output, "https://", 8) == 0; /* refused with its own message */
    if (!is_https && sv_refuse_url("output", o->output, schemes, err) < 0)
        return SV_EUSAGE;
    if (!is_form(form))
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS, "--to: must be one of " FORMS);
    bool is_database = strcmp(form, "clickhouse") == 0, is_columns = strcmp(form, "parquet") == 0;
    if ((o->run && !is_columns && !is_database) || (o->rank && !is_columns))
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS,
                          "--run goes with --to parquet or clickhouse, --rank with --to parquet");
    if (sv_is_database(o->output) != is_database)
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS,
                          "--to clickhouse needs -o clickhouse://HOST:PORT/DATABASE, and no other "
                          "form can be written there");
    if ((o->categories.n || sv_option_is_given("retry")) && !is_otlp)
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS, "--category and --retry go with --to otlp");
    if (is_otlp && sv_is_url(o->output))
        return sv_export_otlp_check(&(struct sv_to_otlp){.output = o->output}, err);
    if (is_database)
        return 0;
    bool is_stdout = strcmp(o->output, "-") == 0;
    if (is_stdout && strcmp(form, "json") != 0 && strcmp(form, "folded") != 0 && !is_otlp)
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS,
                          "only json, folded and otlp can be written to standard output");
    if (!is_stdout && !o->force && !is_tree(form) && stat(o->output, &st) == 0)
        return sv_err_set(err, SV_EIO, SV_NO_POS, "%s exists; use --force to overwrite it",
                          o->output);
    return 0;
}

static int load_database(const struct export *o, const struct sv_rotations *r, struct sv_err *err)
{
    struct sv_to_database to = {.url = o->output,
                                .run = o->run,
                                .force = o->force,
                                .how = {.from = o->from,
                                        .strict = o->strict,
                                        .memory_limit_bytes = o->memory_limit,
                                        .index = o->no_index}};
    return sv_export_clickhouse(&to, r, err);
}

static int export(const struct export *o, const struct sv_words *operands, struct sv_err *err)
{
    struct sv_loaded l;
    struct sv_sql *q = NULL;
    const char *form = choose_form(o);
    bool is_database = strcmp(form, "clickhouse") == 0;
    int code = sv_expect_operands(operands, 1, is_many(form) || is_database ? SIZE_MAX : 100,
                                  "trace", err);
    if (code >= 0)
        code = check(o, form, err);
    if (code >= 0)
        code = sv_check_inputs(operands->items, operands->n, o->output, err);
    if (code < 0)
        return code;
    if (is_database || is_many(form)) { /* each by itself, a recording with all its parts */
        struct sv_rotations r;
        sv_rotations_find(operands->items, operands->n, o->from, &r);
        code = is_database ? load_database(o, &r, err) : export_many(o, form, &r, err);
        sv_rotations_fini(&r);
        return code;
    }
    code =
        sv_load_traces(operands->items, operands->n, &(struct sv_load_how)SV_LOAD_HOW(o), &l, err);
    bool is_otlp = strcmp(form, "otlp") == 0;
    if (code >= 0 && (is_otlp || strcmp(form, "folded") == 0)) {
        struct sv_to_otlp otlp = {.output = o->output,
                                  .categories = o->categories,
                                  .retry_s = sv_option_is_given("retry") ? o->retry : 30};
        code = is_otlp ? sv_export_otlp(&otlp, l.trace, err)
                       : write_folded(l.trace, o->output, err);
        sv_loaded_free(&l);
        return code;
    }
    struct sv_sql_options sql = sv_query_options(&l, o->memory_limit);
    if (code >= 0)
        code = sv_sql_open(l.trace, &sql, &q, err);
    if (code >= 0)
        code = write_out(o, form, q, err);
    sv_sql_close(q);
    sv_loaded_free(&l);
    return code;
}

static int run(void *options, const struct sv_words *operands, struct sv_err *err)
{
    struct export *o = options;
    int code = export(o, operands, err);
    sv_words_free(&o->categories);
    return code;
}

static const struct sv_option options[] = {
    {'o', "output", "PATH", SV_OPT_TEXT, offsetof(struct export, output),
     "the file (.db, .sqlite, .json, .folded, .tar), folder or database "
     "(clickhouse://HOST:PORT/NAME) to write; '-' is standard output (json, folded)",
     NULL, NULL},
    {0, "to", "FORM", SV_OPT_TEXT, offsetof(struct export, to),
     "sqlite, csv-dir, json, folded, parquet, perfetto-tar, clickhouse or otlp (default: by the "
     "suffix of the output)",
     FORMS, NULL},
    {0, "force", NULL, SV_OPT_FLAG, offsetof(struct export, force),
     "overwrite an existing file or folder; load traces again that the database has", NULL, NULL},
    {0, "run", "NAME", SV_OPT_TEXT, offsetof(struct export, run),
     "parquet, clickhouse: the name of the run (default: the launcher's job, as the trace says it)",
     NULL, NULL},
    {0, "rank", "N", SV_OPT_TEXT, offsetof(struct export, rank),
     "parquet: the rank of the one trace (default: as the trace says it)", NULL, NULL},
    {0, "category", "NAME", SV_OPT_LIST, offsetof(struct export, categories),
     "otlp: slices of this category (may be repeated; default: spans of OpenTelemetry, requests "
     "and "
     "engine steps)",
     NULL, NULL},
    {0, "retry", "SECONDS", SV_OPT_COUNT, offsetof(struct export, retry),
     "otlp: how long a request is repeated when the collector is busy or not there (default 30)",
     NULL, NULL},
    SV_MEMORY_OPTION(struct export),
    SV_INDEX_OPTION(struct export),
    SV_INPUTS_OPTIONS(struct export),
    {0},
};

static const struct sv_example examples[] = {
    {"stave export trace.pftrace -o trace.db && sqlite3 trace.db .tables", "for any SQLite tool"},
    {"stave export trace.json --to csv-dir -o tables/", "one CSV file per table, for data frames"},
    {"stave export hot.pftrace --to folded -o - | flamegraph.pl > hot.svg",
     "stacks for flame graph tools and speedscope"},
    {"stave export job.rank*.pftrace -o 'clickhouse://db1:8123/traces?cluster=two' --run 7",
     "each rank's trace into a database of two shards"},
    {"stave export job.rank*.pftrace --to parquet -o lake/ --run monday",
     "column files for DuckDB, ClickHouse and others, a folder per rank"},
    {"stave export job.rank*.pftrace --to perfetto-tar -o job.tar",
     "all ranks in one archive that Perfetto opens on one time axis"},
    {"stave export run.pftrace --to otlp -o http://127.0.0.1:4318",
     "requests and engine steps as spans, to a collector of OpenTelemetry"},
    {"stave export run.pftrace --to otlp --category nn -o nn.jsonl",
     "slices of one category as JSON lines"},
    {0},
};

const struct sv_command sv_command_export = {
    .name = "export",
    .operands = "TRACE… -o PATH",
    .summary = "write traces' tables as SQLite, CSV, JSON or Parquet, to ClickHouse, or spans",
    .description = "Writes all tables of 'stave query', with the same names and columns: an "
                   "ordinary SQLite database with indexes on times, tracks and names, a folder "
                   "with one CSV file per table, or one JSON document with an array per table.\n\n"
                   "folded: one line per call path with a number, for flame graph tools: the "
                   "number of stack samples ('stave record --sample') or, in a trace without "
                   "samples, the self time of the slices in microseconds.\n\n"
                   "parquet: each trace becomes a folder PATH/run=…/host=…/rank=… with one file "
                   "per table, the layout that engines read as partitions. Traces are not merged: "
                   "each keeps its own clock, and the table clock_snapshot relates it to the wall "
                   "clock. A rank's folder appears when it is whole; one that exists is replaced "
                   "by --force only. docs/scale.md has the rest.\n\n"
                   "perfetto-tar: each trace becomes a Perfetto trace in one TAR, and "
                   "perfetto_manifest.json in it names their ranks and the offsets of their "
                   "clocks. Traces whose clocks cannot be related are refused, unless --assume is "
                   "given.\n\n"
                   "clickhouse: each trace by itself, exactly once: what is there already is left "
                   "out, a load that was interrupted is never visible. User and password come "
                   "from STAVE_CLICKHOUSE_USER and STAVE_CLICKHOUSE_PASSWORD or from the file that "
                   "STAVE_CLICKHOUSE_FILE names (user=…, password=…; mode 600), never from the "
                   "URL; clickhouses:// uses TLS. See docs/clickhouse.md.\n\n"
                   "otlp: slices as spans of OpenTelemetry, into a file (.json or .jsonl: JSON "
                   "lines, else protobuf) or to a collector (http://HOST:PORT[/PATH], the path "
                   "/v1/traces without one). Ids are the same in each export, so that a receiver "
                   "can recognise spans that come twice; a collector that is busy or not there is "
                   "asked again. Headers for it come from OTEL_EXPORTER_OTLP_HEADERS. The exit "
                   "status is 1 when the collector rejected spans. See docs/otlp.md.",
    .options = options,
    .examples = examples,
    .lists = sv_format_lists,
    .options_size = sizeof(struct export),
    .run = run,
};
