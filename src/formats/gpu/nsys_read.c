/* Nsight Systems' exports (`nsys export --type sqlite`), opened through the table of formats.
 *
 * SQLite reads the file by itself where the input is an uncompressed file; anything else
 * (compressed, a pipe, memory) is read into memory first, within the input's limit. Tables that
 * describe (strings, names, devices) are read at once, the others row by row.
 *
 * The file is another's: the schema is not trusted, only plain tables are read and nothing is
 * sorted or joined, so that a row costs a row; the number of rows is held against the size of the
 * file, because damaged pages can point back at themselves. */
#include "formats/gpu/nsys.h"

#include "core/base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAGIC "SQLite format 3"

static int probe(const uint8_t *head, size_t n)
{
    static const char *const words[] = {"CUPTI_ACTIVITY_KIND_", "NVTX_EVENTS", "TARGET_INFO_",
                                        "StringIds", "META_DATA_EXPORT"};
    if (n < 100 || memcmp(head, MAGIC, sizeof MAGIC) != 0)
        return 0;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (sv_bytes_find((const char *)head, n, words[i]))
            return 99;
    return 40; /* its schema may lie further down */
}

#ifndef SV_HAVE_SQLITE

static int open_source(struct sv_input *in, const struct sv_read_options *options,
                       struct sv_dict *dict, struct sv_report *report, struct sv_source **out,
                       struct sv_err *err)
{
    (void)in, (void)options, (void)dict, (void)report, (void)out;
    return sv_error(err, SV_EFORMAT,
                    "an SQLite database: this program was built without SQLite; install "
                    "libsqlite3-dev and build it again");
}

#else

#include "sql/sandbox.h"

/* ---- columns ---- */

static const char *const column_names[] = {
#define NAME(name) #name,
    SV_NSYS_COLUMNS(NAME)
#undef NAME
};

bool sv_nsys_has(const struct sv_nsys *s, enum sv_nsys_column c)
{
    return s->column[c] >= 0 && sqlite3_column_type(s->rows, s->column[c]) != SQLITE_NULL;
}

int64_t sv_nsys_int(const struct sv_nsys *s, enum sv_nsys_column c)
{
    return s->column[c] >= 0 ? sqlite3_column_int64(s->rows, s->column[c]) : 0;
}

double sv_nsys_double(const struct sv_nsys *s, enum sv_nsys_column c)
{
    return s->column[c] >= 0 ? sqlite3_column_double(s->rows, s->column[c]) : 0;
}

struct sv_text sv_nsys_text(const struct sv_nsys *s, enum sv_nsys_column c)
{
    const void *bytes = s->column[c] >= 0 ? sqlite3_column_text(s->rows, s->column[c]) : NULL;
    int n = bytes ? sqlite3_column_bytes(s->rows, s->column[c]) : 0;
    return (struct sv_text){bytes ? bytes : "", n > 0 ? (uint32_t)n : 0};
}

sv_str sv_nsys_string(struct sv_nsys *s, enum sv_nsys_column text, enum sv_nsys_column id)
{
    if (sv_nsys_has(s, text)) {
        struct sv_text t = sv_nsys_text(s, text);
        return sv_dict_str(s->lines.dict, t.bytes, t.len);
    }
    const uint64_t *found =
        sv_nsys_has(s, id) ? sv_map_find(&s->strings, (uint64_t)sv_nsys_int(s, id)) : NULL;
    return found ? (sv_str)*found : 0;
}

/* ---- tables ---- */

/* A plain table: no view, no virtual one, no columns that are computed. */
static bool is_plain(struct sv_nsys *s, const char *name)
{
    sqlite3_stmt *q = NULL;
    bool is = false;
    if (sqlite3_prepare_v2(s->db,
                           "SELECT sql FROM sqlite_master WHERE type = 'table' AND rootpage > 0 "
                           "AND name = ?1",
                           -1, &q, NULL) == SQLITE_OK) {
        sqlite3_bind_text(q, 1, name, -1, SQLITE_STATIC);
        if (sqlite3_step(q) == SQLITE_ROW) {
            const char *sql = (const char *)sqlite3_column_text(q, 0);
            is = sql && !strcasestr(sql, "generated") && !strcasestr(sql, " as (");
            if (!is)
                sv_report_add(s->lines.source.report, SV_DAMAGE, "table with computed columns", 1,
                              SV_NO_POS, "%s is left out", name);
        }
    }
    sqlite3_finalize(q);
    return is;
}

static void map_columns(struct sv_nsys *s)
{
    for (size_t c = 0; c < SV_NSYS_COLUMNS_N; c++)
        s->column[c] = -1;
    int n = sqlite3_column_count(s->rows);
    for (int i = 0; i < n && i < 1000; i++) {
        const char *name = sqlite3_column_name(s->rows, i);
        for (size_t c = 0; name && c < SV_NSYS_COLUMNS_N; c++)
            if (strcmp(name, column_names[c]) == 0)
                s->column[c] = (int16_t)i;
    }
}

static void table_fails(struct sv_nsys *s, const char *name)
{
    sv_report_add(s->lines.source.report, SV_DAMAGE, "table that cannot be read to its end", 1,
                  SV_NO_POS, "%s: %s", name, sqlite3_errmsg(s->db));
}

static bool open_table(struct sv_nsys *s, const struct sv_nsys_table *t)
{
    char sql[128];
    if (!is_plain(s, t->name))
        return false;
    snprintf(sql, sizeof sql, "SELECT * FROM main.\"%s\"", t->name);
    if (sqlite3_prepare_v2(s->db, sql, -1, &s->rows, NULL) != SQLITE_OK) {
        table_fails(s, t->name);
        return false;
    }
    map_columns(s);
    if (s->column[t->needs] >= 0)
        return true;
    sv_report_add(s->lines.source.report, SV_SKIPPED, "table without the columns it needs", 1,
                  SV_NO_POS, "%s", t->name);
    sqlite3_finalize(s->rows);
    s->rows = NULL;
    return false;
}

/* The next row of the open table; false at its end, which closes it. */
static bool next_row(struct sv_nsys *s, const struct sv_nsys_table *t)
{
    int code = sqlite3_step(s->rows);
    if (code == SQLITE_ROW && s->n_rows++ < s->rows_max)
        return true;
    if (code == SQLITE_ROW)
        sv_report_add(s->lines.source.report, SV_DAMAGE, "more rows than fit into the file", 1,
                      SV_NO_POS, "%s: pages that refer to each other", t->name);
    else if (code != SQLITE_DONE)
        table_fails(s, t->name);
    sqlite3_finalize(s->rows);
    s->rows = NULL;
    return false;
}

static void take_row(struct sv_nsys *s, const struct sv_nsys_table *t, struct sv_batch *b)
{
    if (t->row(s, b))
        return;
    if (b)
        sv_batch_drop_args(b);
    sv_report_add(s->lines.source.report, SV_DAMAGE, "malformed row", 1, SV_NO_POS,
                  "%s, start %lld", t->name, (long long)sv_nsys_int(s, SV_NSYS_start));
}

/* One row, or the step to the next table. */
static int read_row(struct sv_lines *l, struct sv_batch *b, struct sv_err *err)
{
    struct sv_nsys *s = (struct sv_nsys *)l;
    (void)err;
    const struct sv_nsys_table *t = &sv_nsys_tables[s->table];
    if (!t->name) {
        l->is_at_end = true;
    } else if (t->is_about || (!s->rows && !open_table(s, t))) {
        s->table++;
    } else if (next_row(s, t)) {
        take_row(s, t, b);
    } else {
        s->table++;
    }
    return 0;
}

static void read_about(struct sv_nsys *s)
{
    for (const struct sv_nsys_table *t = sv_nsys_tables; t->name; t++)
        if (t->is_about && open_table(s, t))
            while (next_row(s, t))
                take_row(s, t, NULL);
}

/* Reports tables that have rows and are not read. */
static void report_others(struct sv_nsys *s)
{
    static const char *const others[] = {
        "SCHED_EVENTS",          "COMPOSITE_EVENTS",    "GENERIC_EVENTS",  "CUBLAS_EVENTS",
        "CUDNN_EVENTS",          "MPI_P2P_EVENTS",      "VULKAN_WORKLOAD", "ETW_EVENTS",
        "OPENACC_LAUNCH_EVENTS", "NVVIDEO_ENCODER_API", "SYSCALL",         "NIC_METRIC"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (is_plain(s, others[i]))
            sv_report_add(s->lines.source.report, SV_SKIPPED, "table that is not read", 1,
                          SV_NO_POS, "%s", others[i]);
}

/* ---- opening ---- */

/* Is the input this very file, not compressed? */
static bool is_file(const struct sv_input *in)
{
    uint8_t head[100];
    FILE *f = in->compression || in->pos || !in->size_bytes ? NULL : fopen(in->name, "rb");
    bool is = f && fread(head, 1, sizeof head, f) == sizeof head && in->len >= sizeof head &&
              memcmp(head, in->data, sizeof head) == 0;
    if (f)
        fclose(f);
    return is;
}

/* As a URI, so that SQLite neither locks nor looks for a journal. */
static int open_file(struct sv_nsys *s, const char *path)
{
    static const char digits[] = "0123456789abcdef";
    size_t len = strlen(path), n = 0;
    char *uri = sv_alloc(3 * len + 40);
    n += (size_t)snprintf(uri, 16, "file:");
    for (const char *p = path; *p; p++) {
        if (*p == '%' || *p == '?' || *p == '#') {
            uri[n++] = '%';
            uri[n++] = digits[(unsigned char)*p >> 4];
            uri[n++] = digits[(unsigned char)*p & 15];
        } else {
            uri[n++] = *p;
        }
    }
    snprintf(uri + n, 32, "?immutable=1");
    int code = sv_sandbox_open_foreign(uri, NULL, 0, &s->db);
    free(uri);
    return code;
}

static int open_copy(struct sv_nsys *s, struct sv_input *in, struct sv_err *err)
{
    for (int more = 1; more > 0;) {
        more = sv_input_need(in, in->len + 1, err);
        if (more < 0)
            return more;
    }
    size_t size = in->len;
    s->copy = sv_alloc(size ? size : 1);
    memcpy(s->copy, in->data, size);
    sv_input_skip(in, size);
    s->rows_max = size;
    if (sv_sandbox_open_foreign(NULL, s->copy, size, &s->db) != SQLITE_OK)
        return sv_err_set(err, SV_EFORMAT, 0, "this SQLite cannot read a database in memory");
    return 0;
}

static int check_tables(struct sv_nsys *s, struct sv_err *err)
{
    sqlite3_stmt *q = NULL;
    if (sqlite3_prepare_v2(s->db, "SELECT 1 FROM sqlite_master", -1, &q, NULL) != SQLITE_OK)
        return sv_err_set(err, SV_EFORMAT, 0, "damaged SQLite database: %s", sqlite3_errmsg(s->db));
    sqlite3_finalize(q);
    for (const struct sv_nsys_table *t = sv_nsys_tables; t->name; t++)
        if (!t->is_about && is_plain(s, t->name))
            return 0;
    if (is_plain(s, "META_DATA_EXPORT") || is_plain(s, "StringIds"))
        return 0; /* a report in which nothing happened */
    return sv_err_set(err, SV_EFORMAT, 0,
                      "an SQLite database, but no export of Nsight Systems: it has none of its "
                      "tables (CUPTI_ACTIVITY_KIND_KERNEL, NVTX_EVENTS …); nsys export --type "
                      "sqlite REPORT.nsys-rep makes one");
}

static void fini(struct sv_lines *l)
{
    struct sv_nsys *s = (struct sv_nsys *)l;
    sqlite3_finalize(s->rows);
    sqlite3_close(s->db);
    free(s->copy);
    struct sv_map *maps[] = {&s->strings, &s->processes,  &s->threads, &s->gpus,  &s->cuda_devices,
                             &s->domains, &s->categories, &s->metrics, &s->tracks};
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++)
        sv_map_fini(maps[i]);
}

static const struct sv_lines_kind kind = {
    .size = sizeof(struct sv_nsys),
    .max_events = 4,
    .gives = SV_HAS_SLICES | SV_IN_NO_ORDER,
    .damaged = "row",
    .read = read_row,
    .fini = fini,
};

static int open_source(struct sv_input *in, const struct sv_read_options *options,
                       struct sv_dict *dict, struct sv_report *report, struct sv_source **out,
                       struct sv_err *err)
{
    int code = sv_lines_open(&kind, in, options, dict, report, out);
    if (code < 0)
        return code;
    struct sv_nsys *s = (struct sv_nsys *)*out;
    if (is_file(in)) {
        s->rows_max = in->size_bytes;
        if (open_file(s, in->name) != SQLITE_OK)
            code = sv_error(err, SV_EIO, "%s", sqlite3_errmsg(s->db));
        sv_input_skip(in, in->len); /* SQLite reads it */
    } else {
        code = open_copy(s, in, err);
    }
    if (code >= 0)
        code = check_tables(s, err);
    if (code < 0) {
        (*out)->close(*out);
        *out = NULL;
        return code;
    }
    dict->clocks.trace_clock = SV_CLOCK_UNKNOWN;
    read_about(s);
    report_others(s);
    return SV_OK;
}

#endif

const struct sv_format sv_nsys_format = {
    .name = "nsys",
    .help = "SQLite export of Nsight Systems",
    .lacks = "payloads with a schema, other than as text",
    .files = "`nsys export --type sqlite` ([below](#nsight-systems))",
    .times = "UTC where the report says when it began",
    .probe = probe,
    .open_source = open_source,
};
