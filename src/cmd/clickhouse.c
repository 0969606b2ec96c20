/* Databases of ClickHouse for the commands: `stave export --to clickhouse` and `stave query
 * clickhouse://…`. */
#include "cmd/clickhouse.h"
#include "cmd/export.h"

#include "cli/console.h"
#include "clickhouse/answer.h"
#include "clickhouse/database.h"
#include "cmd/query_shell.h"
#include "sql/sql.h"
#include "store/ranks.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

int sv_database_open(const char *url, struct sv_ch **out, struct sv_err *err)
{
    struct sv_ch_target t;
    *out = NULL;
    int code = sv_ch_target_parse(url, &t, err);
    if (code >= 0)
        code = sv_ch_credentials(&t, err);
    if (code >= 0)
        code = sv_ch_open(&t, out, err);
    explicit_bzero(&t, sizeof t);
    return code;
}

int sv_database_alone(const char *const *paths, size_t n, struct sv_err *err)
{
    size_t databases = 0;
    for (size_t i = 0; i < n; i++)
        databases += sv_is_database(paths[i]);
    if (databases && n > 1)
        return sv_error(
            err, SV_EUSAGE,
            "a database is the only input: give one clickhouse:// URL and no other trace");
    return 0;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int sv_query_clickhouse(const char *url, const char *sql, const struct sv_rows_choice *to,
                        bool is_timed, struct sv_err *err)
{
    struct sv_printer *p = NULL;
    struct sv_ch *c = NULL;
    int code = sv_printer_choose(to, &p, err);
    if (code >= 0)
        code = sv_database_open(url, &c, err);
    double start = seconds();
    if (code >= 0)
        code = sv_ch_run(c, sql, &p->rows, err);
    sv_ch_close(c);
    int closed = sv_printer_close(p, err);
    if (is_timed)
        sv_console_note("query %.3f s", seconds() - start);
    return code < 0 ? code : closed;
}

/* ---- export ---- */

struct shown {
    const char *file;
    double since;
    bool is_visible;
};

static void show_progress(void *ctx, const char *table, uint64_t rows)
{
    struct shown *s = ctx;
    char count[32];
    double now = seconds();
    if (sv_common.quiet || !isatty(STDERR_FILENO) || now - s->since < 0.2)
        return;
    s->since = now;
    s->is_visible = true;
    sv_print(stderr, "\r\033[K%s: %s %s rows ", s->file, table, sv_human_count(count, rows));
}

static void say_lost(void *ctx, const char *table, uint64_t n)
{
    const struct shown *s = ctx;
    char count[32];
    sv_console_note("%s: table %s: %s values have another type than their column and are NULL",
                    s->file, table, sv_human_count(count, n));
}

static const char *run_of(const struct sv_export_options *o, const struct sv_dict *d)
{
    const char *job = sv_origin_of(d, 0).job;
    return o->run ? o->run : job && *job && strlen(job) < 200 ? job : "default";
}

/* 1: it is there already. */
static int is_there(const struct sv_export_options *o, struct sv_ch_db *db,
                    const struct sv_ch_file *f, struct sv_ch_found *found, struct sv_err *err)
{
    int code = sv_ch_find(db, f, found, err);
    if (code < 0)
        return code;
    if (found->has_content && (!o->force || (f->host && !found->is_same_place))) {
        sv_console_note("%s: is in run '%s' already%s%s%s", f->path, found->run,
                        strcmp(found->name, f->name) == 0 ? "" : " as ",
                        strcmp(found->name, f->name) == 0 ? "" : found->name,
                        o->force ? "" : "; --force loads it again");
        return 1;
    }
    if (found->has_place && !o->force)
        return sv_error(err, SV_EIO,
                        "%.200s: run '%.100s' has another file of this name, host and rank; "
                        "--force replaces it, --run NAME keeps both",
                        f->path, found->run);
    return 0;
}

static int load_rows(const struct sv_export_options *o, struct sv_ch_db *db, struct sv_ch_file *f,
                     const struct sv_loaded *l, struct sv_err *err)
{
    struct sv_sql_options options = sv_query_options(l, o->memory_limit);
    struct sv_origin origin = sv_origin_of(l->dict, 0);
    struct sv_ch_found found;
    struct sv_sql *q = NULL;
    struct shown shown = {.file = f->name, .since = seconds()};
    f->run = run_of(o, l->dict);
    f->host = origin.host && *origin.host ? origin.host : "unknown";
    f->rank = origin.rank;
    int code = is_there(o, db, f, &found, err);
    if (code != 0)
        return code < 0 ? code : 0;
    code = sv_sql_open(l->trace, &options, &q, err);
    if (code >= 0)
        code = sv_ch_load(db, f, &found, q, l->trace,
                          &(struct sv_ch_progress){show_progress, say_lost, &shown}, err);
    if (shown.is_visible)
        sv_print(stderr, "\r\033[K");
    sv_sql_close(q);
    return code;
}

/* `parts`: of the recording that begins with the file; NULL: it is alone. */
static int export_one(const struct sv_export_options *o, struct sv_ch_db *db, const char *path,
                      const struct sv_rotation *parts, struct sv_err *err)
{
    struct sv_ch_file f;
    struct sv_ch_found found;
    struct sv_loaded l = {0};
    struct sv_load_how how = {.from = o->from,
                              .strict = o->strict,
                              .memory_limit_bytes = o->memory_limit,
                              .index = o->no_index,
                              .rotation = parts};
    int code = sv_ch_file_read(&f, parts ? parts->paths : &path, parts ? parts->n : 1, err);
    if (code < 0)
        return code;
    /* Before it is read; without --run its content is enough: it says which run it belongs to. */
    f.run = o->run;
    code = is_there(o, db, &f, &found, err);
    if (code != 0)
        return code < 0 ? code : 0;
    code = sv_load(path, &how, &l, err);
    if (code >= 0)
        code = load_rows(o, db, &f, &l, err);
    sv_loaded_free(&l);
    return code;
}

static int write_database(const struct sv_export_options *o, const struct sv_rotations *traces,
                          struct sv_err *err)
{
    const char *const *paths = traces->inputs;
    size_t n = traces->n;
    struct sv_ch *c = NULL;
    struct sv_ch_db db = {0};
    if (o->run && (!*o->run || strlen(o->run) > 200))
        return sv_error(err, SV_EUSAGE, "--run: a name of 1 to 200 bytes");
    for (size_t i = 0; i < n; i++)
        if (strcmp(paths[i], "-") == 0)
            return sv_error(err, SV_EUSAGE, "standard input has no name in the ledger: give files");
    int code = sv_database_open(o->output, &c, err);
    if (code >= 0)
        code = sv_ch_db_open(c, &db, err);
    for (size_t i = 0; i < n && code >= 0; i++)
        code = export_one(o, &db, paths[i], sv_rotation_of(traces, paths[i]), err);
    sv_ch_db_close(&db);
    sv_ch_close(c);
    return code;
}

const struct sv_export_form sv_export_clickhouse = {
    .name = "clickhouse",
    .help = "tables of a ClickHouse database, each trace exactly once",
    .about = "clickhouse: each trace by itself, exactly once: what is there already is left out, "
             "a load that was interrupted is never visible. User and password come from "
             "STAVE_CLICKHOUSE_USER and STAVE_CLICKHOUSE_PASSWORD or from the file that "
             "STAVE_CLICKHOUSE_FILE names (user=…, password=…; mode 600), never from the URL; "
             "clickhouses:// uses TLS. See docs/clickhouse.md.",
    .options = "run",
    .is_database = true,
    .write_each = write_database,
};
