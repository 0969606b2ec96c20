/* stave export: chooses one of the forms of export_forms.h, checks that its options fit, and has it
 * written. */
#include "cmd/export.h"
#include "cmd/commands.h"
#include "cmd/export_otlp.h"
#include "cmd/query_shell.h"
#include "core/files/output.h"
#include "sql/sql.h"

#include <assert.h>
#include <string.h>
#include <sys/stat.h>

#define NAMES_BYTES ((size_t)1 << 12)
#define RETRY_S     30

static bool takes(const struct sv_export_form *f, const char *option)
{
    return f->options && sv_word_among(option, strlen(option), f->options);
}

static bool has_suffix(const struct sv_export_form *f, const char *path)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    return f->suffixes && dot && sv_word_among(dot, strlen(dot), f->suffixes);
}

const struct sv_export_form *const sv_export_forms[] = {
#define SV_EXPORT_FORM(id) &sv_export_##id,
#include "cmd/export_forms.h"
#undef SV_EXPORT_FORM
    NULL,
};

int sv_export_end(struct sv_output *out, int code, struct sv_err *err)
{
    int ended = sv_output_end(out, code < 0, err);
    return code < 0 ? code : ended;
}

/* ---- lists of forms ---- */

static bool any_form(const struct sv_export_form *f)
{
    (void)f;
    return true;
}

static bool is_to_stdout(const struct sv_export_form *f)
{
    return f->to_stdout;
}

/* Their names; for people with `last` before the last one. `option`: only those that take it; NULL:
 * those that `is_meant`. */
static void add_names(struct sv_buf *out, bool (*is_meant)(const struct sv_export_form *f),
                      const char *option, const char *between, const char *last)
{
    const char *held = NULL;
    size_t n = 0;
    for (const struct sv_export_form *const *f = sv_export_forms; *f; f++) {
        if (option ? !takes(*f, option) : !is_meant(*f))
            continue;
        if (held)
            sv_buf_printf(out, "%s%s", n++ ? between : "", held);
        held = (*f)->name;
    }
    if (held)
        sv_buf_printf(out, "%s%s", n ? last : "", held);
}

static void list_forms(struct sv_buf *out, bool is_help)
{
    add_names(out, any_form, NULL, is_help ? ", " : " ", is_help ? " or " : " ");
}

static void list_to_stdout(struct sv_buf *out, bool is_help)
{
    (void)is_help;
    add_names(out, is_to_stdout, NULL, ", ", " or ");
}

static void list_suffixes(struct sv_buf *out, bool is_help)
{
    (void)is_help;
    for (const struct sv_export_form *const *f = sv_export_forms, *const *first = f; *f; f++)
        for (const char *s = (*f)->suffixes; s && *s; s += strcspn(s, " "), s += strspn(s, " "))
            sv_buf_printf(out, "%s%.*s", f == first && s == (*f)->suffixes ? "" : ", ",
                          (int)strcspn(s, " "), s);
}

static void list_about(struct sv_buf *out, bool is_help)
{
    (void)is_help;
    for (const struct sv_export_form *const *f = sv_export_forms; *f; f++)
        if ((*f)->about)
            sv_buf_printf(out, "\n\n%s", (*f)->about);
}

static const struct sv_word_list lists[] = {
    {"readers", sv_list_readers},     {"forms", list_forms},       {"to_stdout", list_to_stdout},
    {"form_suffixes", list_suffixes}, {"about_forms", list_about}, {0},
};

/* ---- which one, and what it takes ---- */

/* NULL: none. */
static const struct sv_export_form *choose_form(const struct sv_export_options *o)
{
    for (const struct sv_export_form *const *f = sv_export_forms; *f; f++) {
        if (o->to ? strcmp((*f)->name, o->to) == 0
                  : o->output &&
                        ((*f)->is_database ? sv_is_database(o->output) : has_suffix(*f, o->output)))
            return *f;
    }
    return NULL;
}

static int check_form(const struct sv_export_form *form, struct sv_err *err)
{
    struct sv_buf names;
    sv_buf_init(&names, NAMES_BYTES);
    if (!form)
        list_forms(&names, false);
    int code = form ? 0 : sv_error(err, SV_EUSAGE, "--to: must be one of %s", sv_buf_cstr(&names));
    sv_buf_fini(&names);
    return code;
}

/* Options that are other forms' only. */
static int check_options(const struct sv_export_form *form, struct sv_err *err)
{
    struct sv_buf names;
    int code = 0;
    sv_buf_init(&names, NAMES_BYTES);
    for (size_t i = 0; i < sv_common.given.n && code >= 0; i++) {
        const char *option = sv_common.given.items[i];
        sv_buf_clear(&names);
        add_names(&names, any_form, option, ", ", " or ");
        if (names.len > 0 && !takes(form, option))
            code = sv_error(err, SV_EUSAGE, "--%s goes with --to %s", option, sv_buf_cstr(&names));
    }
    sv_buf_fini(&names);
    return code;
}

static int check_stdout(const struct sv_export_form *form, struct sv_err *err)
{
    struct sv_buf names;
    if (form->to_stdout)
        return 0;
    sv_buf_init(&names, NAMES_BYTES);
    add_names(&names, is_to_stdout, NULL, ", ", " and ");
    int code =
        sv_error(err, SV_EUSAGE, "only %s can be written to standard output", sv_buf_cstr(&names));
    sv_buf_fini(&names);
    return code;
}

static int check_output(const struct sv_export_options *o, const struct sv_export_form *form,
                        struct sv_err *err)
{
    struct stat st;
    if (sv_is_database(o->output) != form->is_database)
        return sv_error(err, SV_EUSAGE,
                        "--to clickhouse needs -o clickhouse://HOST:PORT/DATABASE, and no other "
                        "form can be written there");
    if (form->is_database || sv_is_url(o->output))
        return 0;
    if (strcmp(o->output, "-") == 0)
        return check_stdout(form, err);
    if (!o->force && !form->to_folder && stat(o->output, &st) == 0)
        return sv_error(err, SV_EIO, "%s exists; use --force to overwrite it", o->output);
    return 0;
}

static int check(const struct sv_export_options *o, const struct sv_export_form *form,
                 struct sv_err *err)
{
    if (!sv_sql_is_built_in() && (!form || !form->needs_no_sqlite))
        return sv_error(err, SV_ELIMIT,
                        "this build has no SQLite: install libsqlite3-dev and build again");
    if (!o->output || !*o->output)
        return sv_error(err, SV_EUSAGE, "no output given: use -o PATH");
    int code = form && form->check
                   ? form->check(o, err)
                   : sv_refuse_url("output", o->output, "clickhouse clickhouses", err);
    if (code >= 0)
        code = check_form(form, err);
    if (code < 0)
        return code;
    assert(form); /* check_form() refuses none */
    code = check_options(form, err);
    return code < 0 ? code : check_output(o, form, err);
}

static int write_each(const struct sv_export_options *o, const struct sv_export_form *form,
                      const struct sv_words *traces, struct sv_err *err)
{
    struct sv_rotations r;
    sv_rotations_find(traces->items, traces->n, o->from, &r);
    int code = form->write_each(o, &r, err);
    sv_rotations_fini(&r);
    return code;
}

static int write_tables(const struct sv_export_options *o, const struct sv_export_form *form,
                        const struct sv_loaded *l, struct sv_err *err)
{
    struct sv_sql *q = NULL;
    struct sv_sql_options sql = sv_query_options(l, o->memory_limit);
    int code = sv_sql_open(l->trace, &sql, &q, err);
    if (code >= 0)
        code = form->write_tables(o, q, err);
    sv_sql_close(q);
    return code;
}

static int export(const struct sv_export_options *o, const struct sv_words *operands,
                  struct sv_err *err)
{
    struct sv_loaded l;
    const struct sv_export_form *form = choose_form(o);
    int code =
        sv_expect_operands(operands, 1, form && form->write_each ? SIZE_MAX : 100, "trace", err);
    if (code >= 0)
        code = check(o, form, err);
    if (code >= 0)
        code = sv_check_inputs(operands->items, operands->n, o->output, err);
    if (code < 0)
        return code;
    assert(form); /* check() refuses none */
    if (form->write_each)
        return write_each(o, form, operands, err);
    code =
        sv_load_traces(operands->items, operands->n, &(struct sv_load_how)SV_LOAD_HOW(o), &l, err);
    if (code >= 0)
        code = form->write_trace ? form->write_trace(o, l.trace, err)
                                 : write_tables(o, form, &l, err);
    sv_loaded_free(&l);
    return code;
}

static int run(void *options, const struct sv_words *operands, struct sv_err *err)
{
    struct sv_export_options *o = options;
    if (!sv_option_is_given("retry"))
        o->retry_s = RETRY_S;
    int code = export(o, operands, err);
    sv_words_free(&o->categories);
    return code;
}

static const struct sv_option options[] = {
    {'o', "output", "PATH", SV_OPT_TEXT, offsetof(struct sv_export_options, output),
     "the file ({form_suffixes}), folder or database (clickhouse://HOST:PORT/NAME) to write; '-' "
     "is "
     "standard output ({to_stdout})",
     NULL, NULL},
    {0, "to", "FORM", SV_OPT_TEXT, offsetof(struct sv_export_options, to),
     "{forms} (default: by the suffix of the output)", "{forms}", NULL},
    {0, "force", NULL, SV_OPT_FLAG, offsetof(struct sv_export_options, force),
     "overwrite an existing file or folder; load traces again that the database has", NULL, NULL},
    {0, "run", "NAME", SV_OPT_TEXT, offsetof(struct sv_export_options, run),
     "parquet, clickhouse: the name of the run (default: the launcher's job, as the trace says it)",
     NULL, NULL},
    {0, "rank", "N", SV_OPT_TEXT, offsetof(struct sv_export_options, rank),
     "parquet: the rank of the one trace (default: as the trace says it)", NULL, NULL},
    {0, "category", "NAME", SV_OPT_LIST, offsetof(struct sv_export_options, categories),
     "otlp: slices of this category (may be repeated; default: spans of OpenTelemetry, requests "
     "and "
     "engine steps)",
     NULL, NULL},
    {0, "retry", "SECONDS", SV_OPT_COUNT, offsetof(struct sv_export_options, retry_s),
     "otlp: how long a request is repeated when the collector is busy or not there (default 30)",
     NULL, NULL},
    SV_MEMORY_OPTION(struct sv_export_options),
    SV_INDEX_OPTION(struct sv_export_options),
    SV_INPUTS_OPTIONS(struct sv_export_options),
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
                   "with one CSV file per table, or one JSON document with an array per "
                   "table.{about_forms}",
    .options = options,
    .examples = examples,
    .lists = lists,
    .options_size = sizeof(struct sv_export_options),
    .run = run,
};
