/* The tables of a trace for other tools, as a SQLite file, a folder of CSV files or one JSON
 * document: forms of `stave export`.
 *
 * The same tables that `stave query` has, views included, so that a question gets the same answer
 * there. Written beside the target and renamed when complete: a failure leaves nothing that looks
 * finished. */
#include "cli/rows.h"
#include "cmd/export.h"
#include "core/files/output.h"
#include "sql/direct.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

static int write_csv_file(struct sv_sql *q, const char *folder, const char *table,
                          struct sv_err *err)
{
    char path[4096];
    struct sv_output *out;
    if (snprintf(path, sizeof path, "%s/%s.csv", folder, table) >= (int)sizeof path)
        return sv_error(err, SV_EUSAGE, "%.300s: the path is too long", folder);
    int code = sv_output_open(path, SV_OUTPUT_RENAME, SV_PLAIN, &out, err);
    return code < 0 ? code : sv_export_end(out, run_table(q, table, out, "csv", err), err);
}

static int write_csv_dir(const struct sv_export_options *o, struct sv_sql *q, struct sv_err *err)
{
    if (mkdir(o->output, 0777) < 0 && !(o->force && errno == EEXIST))
        return sv_err_sys(err, "%.300s: cannot create", o->output);
    int code = 0;
    for (const char *const *t = sv_sql_tables(); *t && code >= 0; t++)
        code = write_csv_file(q, o->output, *t, err);
    return code;
}

static void put(struct sv_output *out, const char *text)
{
    sv_output_write(out, text, strlen(text));
}

static int write_json(const struct sv_export_options *o, struct sv_sql *q, struct sv_err *err)
{
    struct sv_output *out;
    int code = sv_output_open(o->output, SV_OUTPUT_RENAME, SV_PLAIN, &out, err);
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
    return sv_export_end(out, code, err);
}

const struct sv_export_form sv_export_csv_dir = {
    .name = "csv-dir",
    .help = "a folder with a CSV file for each table",
    .write_tables = write_csv_dir,
};

const struct sv_export_form sv_export_json = {
    .name = "json",
    .help = "one JSON document with an array for each table",
    .suffixes = ".json",
    .to_stdout = true,
    .write_tables = write_json,
};

/* ---- SQLite ---- */

/* An empty file beside the target that nobody else has: the library fills it, and it gets its name
 * when it is complete. */
static int make_beside(const char *target, char *path, size_t size, struct sv_err *err)
{
    const char *slash = strrchr(target, '/'), *base = slash ? slash + 1 : target;
    for (int i = 0; i < 100; i++) {
        if (snprintf(path, size, "%.*s.%.200s.%d-%d.tmp", (int)(base - target), target, base,
                     (int)getpid(), i) >= (int)size)
            return sv_error(err, SV_EUSAGE, "%.300s: the path is too long", target);
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (fd >= 0)
            return close(fd);
        if (errno != EEXIST)
            break;
    }
    return sv_err_sys(err, "%.300s: cannot create", target);
}

static int write_sqlite(const struct sv_export_options *o, struct sv_sql *q, struct sv_err *err)
{
    const char *target = o->output;
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

const struct sv_export_form sv_export_sqlite = {
    .name = "sqlite",
    .help = "an SQLite database with indexes on times, tracks and names",
    .suffixes = ".db .sqlite .sqlite3",
    .write_tables = write_sqlite,
};
