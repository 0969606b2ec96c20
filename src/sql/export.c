/* All tables as an ordinary SQLite database.
 *
 * SQLite makes the file, its schema and the small tables. Slices and their indexes are most of it,
 * and the store has them in order: by time, by track and time, and, after a pass of counting, by
 * name. So they are written as pages of the file (tree_file.c) when SQLite has closed it. */
#include "sql/sql.h"

#ifdef SV_HAVE_SQLITE
#include "core/base/mem.h"
#include "core/base/utf8.h"
#include "sql/impl.h"
#include "sql/tree_file.h"

#include <stdlib.h>
#include <string.h>

/* ---- slices as pages ---- */

struct slices {
    struct sv_sql *q;
    const uint32_t *order; /* rows by id */
    uint32_t *by_name;     /* ids, by name and then by id */
};

/* A record of a few numbers and texts. */
static size_t put_record(uint8_t *out, const struct sv_cell *cells, size_t n)
{
    uint8_t types[8 * SV_SQL_SLICE_CELLS], *type = types, *body;
    unsigned kinds[SV_SQL_SLICE_CELLS];
    for (size_t i = 0; i < n; i++) {
        kinds[i] = cells[i].type == SV_CELL_INT ? sv_tree_int_type(cells[i].i) : 0;
        type += sv_tree_put_varint(type, cells[i].type == SV_CELL_TEXT ? 13 + 2 * cells[i].len
                                                                       : kinds[i]);
    }
    size_t len = (size_t)(type - types);
    /* The header's length counts itself: one byte as long as it is below 128, which few types
     * always are. */
    out[0] = (uint8_t)(len + 1);
    memcpy(out + 1, types, len);
    body = out + 1 + len;
    for (size_t i = 0; i < n; i++) {
        if (cells[i].type == SV_CELL_TEXT) {
            memcpy(body, cells[i].text, cells[i].len);
            body += cells[i].len;
        } else if (cells[i].type == SV_CELL_INT) {
            body += sv_tree_put_int(body, kinds[i], cells[i].i);
        }
    }
    return (size_t)(body - out);
}

static struct sv_cell number(int64_t i)
{
    return (struct sv_cell){.type = SV_CELL_INT, .i = i};
}

#define AHEAD 24

static size_t row_record(void *ctx, uint64_t i, uint8_t *out)
{
    const struct slices *s = ctx;
    struct sv_cell cells[SV_SQL_SLICE_CELLS];
    if (i + AHEAD < s->q->trace->slices.n)
        sv_sql_slice.prefetch(s->q, s->order[i + AHEAD], ~0u);
    sv_sql_slice_cells(s->q, s->order[i], (uint32_t)i, cells);
    return put_record(out, cells, SV_SQL_SLICE_CELLS);
}

static size_t id_record(void *ctx, uint64_t i, uint8_t *out)
{
    (void)ctx;
    return put_record(out, (struct sv_cell[]){number((int64_t)i), number((int64_t)i + 1)}, 2);
}

static size_t ts_record(void *ctx, uint64_t i, uint8_t *out)
{
    const struct slices *s = ctx;
    return put_record(
        out,
        (struct sv_cell[]){number(s->q->trace->slices.ts_ns[s->order[i]]), number((int64_t)i + 1)},
        2);
}

static size_t track_record(void *ctx, uint64_t i, uint8_t *out)
{
    const struct slices *s = ctx;
    const struct sv_slices *t = &s->q->trace->slices;
    return put_record(
        out,
        (struct sv_cell[]){number(t->track[i]), number(t->ts_ns[i]),
                           number((int64_t)sv_index_id(s->q->index, (uint32_t)i) + 1)},
        3);
}

static size_t name_record(void *ctx, uint64_t i, uint8_t *out)
{
    const struct slices *s = ctx;
    uint32_t id = s->by_name[i];
    sv_str name = s->q->trace->slices.name[s->order[id]];
    struct sv_text text = sv_dict_text(s->q->dict, name);
    struct sv_cell cells[] = {{.type = SV_CELL_NULL}, number((int64_t)id + 1)};
    if (name)
        cells[0] = (struct sv_cell){.type = SV_CELL_TEXT, .text = text.bytes, .len = text.len};
    return put_record(out, cells, 2);
}

static uint32_t *ids_by_name(struct sv_sql *q, const uint32_t *order)
{
    const struct sv_names *names = sv_index_names(q->index);
    uint64_t n = q->trace->slices.n;
    uint32_t *ids = sv_alloc_aligned((n + 1) * sizeof *ids, 64);
    uint32_t *next = sv_alloc(((size_t)names->n_groups + 1) * sizeof *next);
    memcpy(next, names->start, ((size_t)names->n_groups + 1) * sizeof *next);
    for (uint32_t id = 0; id < n; id++)
        ids[next[names->group_of[q->trace->slices.name[order[id]]]]++] = id;
    free(next);
    return ids;
}

/* Whether every record fits into a page. */
static bool fits_pages(const struct sv_sql *q)
{
    const struct sv_slices *s = &q->trace->slices;
    size_t name = 0, cat = 0, numbers = 16 * SV_SQL_SLICE_CELLS;
    for (uint64_t row = 0; row < s->n; row++) {
        size_t a = sv_dict_text(q->dict, s->name[row]).len,
               b = sv_dict_text(q->dict, s->cat[row]).len;
        name = a > name ? a : name;
        cat = b > cat ? b : cat;
    }
    return name + numbers <= sv_tree_payload_max(true) &&
           name + 2 * cat + numbers <= sv_tree_payload_max(false);
}

static const struct {
    const char *name, *definition;
    size_t (*record)(void *ctx, uint64_t i, uint8_t *out);
} slice_trees[] = {
    {"slice", NULL, row_record},
    {"slice_ts", "slice(ts)", ts_record},
    {"slice_track", "slice(track_id, ts)", track_record},
    {"slice_name", "slice(name)", name_record},
    {"slice_id", "slice(id)", id_record},
};
#define N_SLICE_TREES (sizeof slice_trees / sizeof *slice_trees)

/* Where the trees of slices begin in the attached file. */
static int find_roots(struct sv_sql *q, uint32_t *roots, struct sv_err *err)
{
    sqlite3_stmt *s = NULL;
    size_t n = 0;
    if (sqlite3_prepare_v2(q->db, "SELECT rootpage FROM out.sqlite_schema WHERE name = ?", -1, &s,
                           NULL) == SQLITE_OK)
        for (; n < N_SLICE_TREES; n++) {
            sqlite3_bind_text(s, 1, slice_trees[n].name, -1, SQLITE_STATIC);
            if (sqlite3_step(s) != SQLITE_ROW)
                break;
            roots[n] = (uint32_t)sqlite3_column_int64(s, 0);
            sqlite3_reset(s);
        }
    sqlite3_finalize(s);
    return n == N_SLICE_TREES ? 0 : sv_sql_error(q, "reading the schema", err);
}

static int fill_slices(struct sv_sql *q, const char *path, const uint32_t *roots,
                       struct sv_err *err)
{
    struct sv_tree_file *f;
    int code = sv_tree_file_open(path, &f, err);
    if (code < 0)
        return code;
    struct slices s = {.q = q, .order = sv_index_order(q->index)};
    s.by_name = ids_by_name(q, s.order);
    for (size_t i = 0; i < N_SLICE_TREES && code >= 0; i++)
        code = sv_tree_fill(f, roots[i],
                            &(struct sv_page_tree){.is_index = slice_trees[i].definition != NULL,
                                                   .n = q->trace->slices.n,
                                                   .record = slice_trees[i].record,
                                                   .ctx = &s},
                            err);
    free(s.by_name);
    int closed = sv_tree_file_close(f, err);
    return code < 0 ? code : closed;
}

/* ---- texts that are no UTF-8 ---- */

static bool is_odd(struct sv_text t)
{
    return sv_utf8_valid(t.bytes, t.len) != t.len;
}

/* Whether a text of the trace is no UTF-8, which readers of the database would refuse. Names are
 * looked at once each, texts of arguments in each list. */
static bool has_odd_text(const struct sv_sql *q)
{
    const struct sv_slices *s = &q->trace->slices;
    struct sv_batch scratch;
    bool found = false;
    for (uint32_t i = 0; i < q->dict->n_strings && !found; i++)
        found = is_odd(sv_dict_text(q->dict, i));
    sv_batch_init(&scratch);
    for (uint64_t row = 0; row < s->n && !found; row++) {
        size_t n = 0;
        if (!s->args[row] || (row && s->args[row] == s->args[row - 1]))
            continue;
        const struct sv_arg *args = sv_trace_args(q->trace, s->args[row], &scratch, &n);
        for (size_t i = 0; i < n && !found; i++)
            found = args[i].type == SV_ARG_TEXT &&
                    is_odd((struct sv_text){args[i].text, args[i].size});
        sv_batch_reset(&scratch);
    }
    sv_batch_fini(&scratch);
    return found;
}

/* stave_utf8(X): X by the rule of core/base/utf8.h. */
static void utf8_function(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
    struct sv_buf b;
    struct sv_text t = {(const char *)sqlite3_value_text(argv[0]), 0};
    t.len = (uint32_t)sqlite3_value_bytes(argv[0]);
    (void)argc;
    if (sqlite3_value_type(argv[0]) != SQLITE_TEXT || !t.bytes || !is_odd(t)) {
        sqlite3_result_value(ctx, argv[0]);
        return;
    }
    sv_buf_init(&b, (size_t)1 << 30);
    sv_buf_utf8(&b, t.bytes, t.len);
    sv_sql_result_text(ctx, sv_buf_cstr(&b), b.len);
    sv_buf_fini(&b);
}

/* The columns of a table for SELECT, texts through the function. NULL: an error of SQLite. */
static char *clean_columns(const struct sv_sql *q, const char *table)
{
    sqlite3_stmt *s = NULL;
    char *sql = sqlite3_mprintf("SELECT * FROM main.%Q", table), *list = NULL;
    if (sql && sqlite3_prepare_v2(q->db, sql, -1, &s, NULL) == SQLITE_OK) {
        sqlite3_str *out = sqlite3_str_new(q->db);
        for (int i = 0; i < sqlite3_column_count(s); i++) {
            const char *name = sqlite3_column_name(s, i), *type = sqlite3_column_decltype(s, i);
            bool is_number = type && strcmp(type, "TEXT") != 0;
            sqlite3_str_appendf(out, is_number ? "%s\"%w\"" : "%sCAST(stave_utf8(\"%w\") AS TEXT)",
                                i ? ", " : "", name);
            if (!is_number)
                sqlite3_str_appendf(out, " AS \"%w\"", name);
        }
        list = sqlite3_str_finish(out);
    }
    sqlite3_finalize(s);
    sqlite3_free(sql);
    return list;
}

/* ---- the rest ---- */

static int exec(struct sv_sql *q, const char *doing, char *sql, struct sv_err *err)
{
    int rc = sql ? sqlite3_exec(q->db, sql, NULL, NULL, NULL) : SQLITE_NOMEM;
    sqlite3_free(sql);
    return rc == SQLITE_OK ? 0 : sv_sql_error(q, doing, err);
}

/* Views that need nothing but the exported tables stay views. */
static int export_views(struct sv_sql *q, const char *path, struct sv_err *err)
{
    static const char *const names[] = {"slices ",        "instants ",
                                        "counters ",      "thread_slice ",
                                        "process_slice ", "thread_or_process_slice ",
                                        "sched_slice "};
    const char *begin = "CREATE VIEW ";
    int code = 0;
    for (const char *const *v = sv_sql_views; *v; v++) {
        const char *name = *v + strlen(begin);
        for (size_t i = 0; i < sizeof names / sizeof *names && code >= 0; i++)
            if (strncmp(name, names[i], strlen(names[i])) == 0)
                code = exec(q, path, sqlite3_mprintf("%sout.%s", begin, name), err);
    }
    return code;
}

static int export_table(struct sv_sql *q, const char *path, const char *table, bool is_odd,
                        const char *condition, struct sv_err *err)
{
    char *columns = is_odd ? clean_columns(q, table) : sqlite3_mprintf("*");
    char *sql = columns ? sqlite3_mprintf("CREATE TABLE out.%Q AS SELECT %s FROM main.%Q%s", table,
                                          columns, table, condition)
                        : NULL;
    sqlite3_free(columns);
    return exec(q, path, sql, err);
}

/* The tables, without slices if these are written as pages, and the indexes. */
static int export_tables(struct sv_sql *q, const char *path, bool has_slices, bool is_odd,
                         struct sv_err *err)
{
    int code = 0;
    for (const char *const *t = sv_sql_tables(); code >= 0 && *t; t++)
        code = export_table(q, path, *t, is_odd,
                            strcmp(*t, "slice") == 0 && !has_slices ? " WHERE 0" : "", err);
    for (size_t i = 0; code >= 0 && i < N_SLICE_TREES; i++)
        if (slice_trees[i].definition)
            code = exec(q, path,
                        sqlite3_mprintf("CREATE INDEX out.%s ON %s", slice_trees[i].name,
                                        slice_trees[i].definition),
                        err);
    if (code >= 0)
        code = exec(q, path,
                    sqlite3_mprintf("CREATE INDEX out.args_set ON args(arg_set_id); CREATE INDEX "
                                    "out.counter_track_ts ON counter(track_id, ts)"),
                    err);
    return code < 0 ? code : export_views(q, path, err);
}

int sv_sql_export(struct sv_sql *q, const char *path, struct sv_err *err)
{
    uint32_t roots[N_SLICE_TREES] = {0};
    bool is_odd = has_odd_text(q), is_paged = q->trace->slices.n > 0 && !is_odd && fits_pages(q);
    sv_sandbox_trust(&q->sandbox, true);
    int code = exec(q, path, sqlite3_mprintf("ATTACH %Q AS out", path), err);
    if (code >= 0 && sqlite3_create_function(q->db, "stave_utf8", 1,
                                             SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY,
                                             NULL, utf8_function, NULL, NULL) != SQLITE_OK)
        code = sv_sql_error(q, path, err);
    if (code >= 0)
        code = exec(q, path,
                    sqlite3_mprintf("PRAGMA out.page_size = 4096; PRAGMA out.journal_mode = OFF; "
                                    "PRAGMA out.synchronous = OFF; BEGIN"),
                    err);
    if (code >= 0)
        code = export_tables(q, path, !is_paged, is_odd, err);
    if (code >= 0)
        code = exec(q, path, sqlite3_mprintf("COMMIT"), err);
    if (code >= 0 && is_paged)
        code = find_roots(q, roots, err);
    if (code >= 0)
        code = exec(q, path, sqlite3_mprintf("DETACH out"), err);
    if (code >= 0 && is_paged)
        code = fill_slices(q, path, roots, err);
    sv_sandbox_trust(&q->sandbox, false);
    return code;
}
#endif
