/* The parser of answers, and statements handed on one by one. Called for `stave query` and by
 * load.c for its own questions. */
#include "clickhouse/answer.h"

#include "core/base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- values ---- */

static bool begins(const char *text, size_t n, const char *with)
{
    return n >= strlen(with) && memcmp(text, with, strlen(with)) == 0;
}

/* What remains of Nullable(…) and LowCardinality(…). */
static void unwrap(const char **type, size_t *n)
{
    static const char *const around[] = {"Nullable(", "LowCardinality("};
    for (size_t i = 0; i < 4; i++) {
        const char *a = around[i % 2];
        if (!begins(*type, *n, a) || (*type)[*n - 1] != ')')
            continue;
        *type += strlen(a);
        *n -= strlen(a) + 1;
    }
}

static uint8_t kind_of(const char *type, size_t n)
{
    static const char *const ints[] = {"Int8",   "Int16",  "Int32",  "Int64", "UInt8",
                                       "UInt16", "UInt32", "UInt64", "Bool"};
    unwrap(&type, &n);
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++)
        if (n == strlen(ints[i]) && memcmp(type, ints[i], n) == 0)
            return SV_CELL_INT;
    if (n == 7 && (memcmp(type, "Float64", 7) == 0 || memcmp(type, "Float32", 7) == 0))
        return SV_CELL_REAL;
    return SV_CELL_TEXT;
}

/* Removes the backslashes in place; returns the length. */
static size_t unescape(char *text, size_t n)
{
    static const char letters[] = "bfrnt0", bytes[] = "\b\f\r\n\t";
    size_t to = 0;
    for (size_t i = 0; i < n; i++) {
        char c = text[i];
        if (c == '\\' && i + 1 < n) {
            const char *known = strchr(letters, c = text[++i]);
            if (known && c)
                c = c == '0' ? 0 : bytes[known - letters];
        }
        text[to++] = c;
    }
    return to;
}

/* `text` is terminated. A number past int64 stays text: no digit is lost. */
static bool fill(struct sv_cell *cell, uint8_t kind, char *text, size_t n)
{
    char *end = text;
    *cell = (struct sv_cell){.type = SV_CELL_NULL};
    if (n == 2 && memcmp(text, "\\N", 2) == 0)
        return true;
    errno = 0;
    if (kind == SV_CELL_INT && (strcmp(text, "true") == 0 || strcmp(text, "false") == 0)) {
        cell->i = *text == 't';
        end = text + n;
    } else if (kind == SV_CELL_INT) {
        cell->i = strtoll(text, &end, 10);
        if (errno == ERANGE && end == text + n) {
            errno = 0;
            (void)strtoull(text, &end, 10);
            kind = *text == '-' || errno ? (uint8_t)SV_CELL_NULL : (uint8_t)SV_CELL_TEXT;
        }
    } else if (kind == SV_CELL_REAL) {
        cell->d = strtod(text, &end);
        errno = 0; /* too small or too large for a double is what the server has */
    }
    if (kind == SV_CELL_NULL || (kind != SV_CELL_TEXT && (n == 0 || end != text + n || errno)))
        return false;
    cell->type = (enum sv_cell_type)kind;
    cell->text = text;
    if (kind == SV_CELL_TEXT) {
        cell->len = unescape(text, n);
        text[cell->len] = 0;
    }
    return true;
}

/* ---- lines ---- */

static int damaged(const struct sv_ch_answer *a, const char *what, struct sv_err *err)
{
    return sv_error(err, SV_EIO, "the server's answer is damaged: line %llu %s",
                    (unsigned long long)a->n_lines, what);
}

static int take_names(struct sv_ch_answer *a, char *line, size_t n, struct sv_err *err)
{
    a->n_columns = 1;
    for (size_t i = 0; i < n; i++)
        a->n_columns += line[i] == '\t';
    if (a->n_columns > SV_CH_COLUMNS_MAX)
        return damaged(a, "has too many columns", err);
    sv_buf_add(&a->names, line, n);
    sv_buf_byte(&a->names, 0);
    a->kinds = sv_alloc(a->n_columns);
    a->cells = sv_alloc(a->n_columns * sizeof *a->cells);
    return 0;
}

static int give_head(struct sv_ch_answer *a, struct sv_err *err)
{
    const char **names = sv_alloc(a->n_columns * sizeof *names);
    char *at = (char *)a->names.data, *end = at + a->names.len - 1;
    for (size_t i = 0; i < a->n_columns; i++) {
        char *tab = at < end ? memchr(at, '\t', (size_t)(end - at)) : NULL;
        char *stop = tab ? tab : end;
        at[unescape(at, (size_t)(stop - at))] = 0;
        names[i] = at;
        at = stop + 1;
    }
    int code = a->rows->head(a->rows, names, a->n_columns, err);
    free(names);
    return code;
}

/* Types or a row: as many fields as there are names. */
static int take_fields(struct sv_ch_answer *a, char *line, size_t n, struct sv_err *err)
{
    char *at = line, *end = line + n;
    for (size_t i = 0; i < a->n_columns; i++) {
        bool is_last = i + 1 == a->n_columns;
        char *tab = memchr(at, '\t', (size_t)(end - at));
        if (!tab != is_last)
            return damaged(a, "has not as many fields as the first (WITH TOTALS cannot be used)",
                           err);
        char *stop = tab ? tab : end;
        *stop = 0;
        if (a->n_lines == 2)
            a->kinds[i] = kind_of(at, (size_t)(stop - at));
        else if (!fill(&a->cells[i], a->kinds[i], at, (size_t)(stop - at)))
            return damaged(a, "has a value that its column cannot have", err);
        at = stop + 1;
    }
    if (a->n_lines == 2)
        return give_head(a, err);
    return a->rows->row(a->rows, a->cells, a->n_columns, err);
}

/* `line` has one more byte, which may be written. */
static int take_line(struct sv_ch_answer *a, char *line, size_t n, struct sv_err *err)
{
    a->n_lines++;
    return a->n_lines == 1 ? take_names(a, line, n, err) : take_fields(a, line, n, err);
}

static int take_bytes(struct sv_ch_take *take, const char *data, size_t n, struct sv_err *err)
{
    struct sv_ch_answer *a = (struct sv_ch_answer *)take;
    int code = 0;
    while (n > 0 && code >= 0) {
        const char *feed = memchr(data, '\n', n);
        size_t some = feed ? (size_t)(feed - data) + 1 : n;
        sv_buf_add(&a->line, data, some);
        if (a->line.failed)
            return damaged(a, "has a row of more than 64 MiB after it", err);
        data += some;
        n -= some;
        if (!feed)
            break;
        code = take_line(a, (char *)a->line.data, a->line.len - 1, err);
        sv_buf_clear(&a->line);
    }
    return code;
}

void sv_ch_answer_init(struct sv_ch_answer *a, struct sv_rows_sink *rows)
{
    *a = (struct sv_ch_answer){.take = {take_bytes}, .rows = rows};
    sv_buf_init(&a->line, SV_CH_ROW_BYTES_MAX);
    sv_buf_init(&a->names, SV_CH_ROW_BYTES_MAX + 1u);
}

int sv_ch_answer_end(struct sv_ch_answer *a, struct sv_err *err)
{
    if (a->line.len || a->n_lines == 1)
        return damaged(a, "is the last whole one", err);
    return a->n_lines ? a->rows->end(a->rows, err) : 0;
}

void sv_ch_answer_fini(struct sv_ch_answer *a)
{
    sv_buf_fini(&a->line);
    sv_buf_fini(&a->names);
    free(a->kinds);
    free(a->cells);
}

/* ---- statements ---- */

/* Past a text in quotes, a comment, or one byte. */
static const char *skip_token(const char *p, bool *is_blank)
{
    *is_blank = true;
    if (p[0] == '-' && p[1] == '-')
        return p + strcspn(p, "\n");
    if (p[0] == '/' && p[1] == '*') {
        const char *end = strstr(p + 2, "*/");
        return end ? end + 2 : p + strlen(p);
    }
    *is_blank = *p == ' ' || (*p >= '\t' && *p <= '\r');
    if (*p != '\'' && *p != '"' && *p != '`')
        return p + 1;
    for (const char quote = *p++; *p && *p != quote; p++)
        if (*p == '\\' && p[1])
            p++;
    return *p ? p + 1 : p;
}

size_t sv_ch_statement(const char *sql, bool *is_empty)
{
    const char *p = sql;
    *is_empty = true;
    while (*p && *p != ';') {
        bool is_blank;
        p = skip_token(p, &is_blank);
        *is_empty &= is_blank;
    }
    return (size_t)(p - sql) + (*p == ';');
}

int sv_ch_run(struct sv_ch *c, const char *sql, struct sv_rows_sink *rows, struct sv_err *err)
{
    int code = 0;
    while (code >= 0 && *sql) {
        bool is_empty;
        struct sv_ch_answer a;
        size_t n = sv_ch_statement(sql, &is_empty);
        size_t text = n - (n && sql[n - 1] == ';');
        sv_ch_answer_init(&a, rows);
        if (!is_empty)
            code = sv_ch_ask(c, NULL, SV_CH_READ, sql, text, &a.take, err);
        if (code >= 0)
            code = sv_ch_answer_end(&a, err);
        sv_ch_answer_fini(&a);
        sql += n;
    }
    return code;
}

/* ---- rows of our own questions ---- */

struct each_sink {
    struct sv_rows_sink rows;
    size_t n_columns;
    sv_ch_row *row;
    void *ctx;
};

static int each_head(struct sv_rows_sink *r, const char *const *names, size_t n, struct sv_err *err)
{
    const struct each_sink *s = (struct each_sink *)r;
    (void)names;
    return n == s->n_columns
               ? 0
               : sv_error(err, SV_EIO, "the server answers with %zu columns instead of %zu", n,
                          s->n_columns);
}

static int each_row(struct sv_rows_sink *r, const struct sv_cell *cells, size_t n,
                    struct sv_err *err)
{
    struct each_sink *s = (struct each_sink *)r;
    (void)n;
    return s->row(s->ctx, cells, err);
}

int sv_ch_each(struct sv_ch *c, const char *host, const char *sql, size_t n_columns, sv_ch_row *row,
               void *ctx, struct sv_err *err)
{
    struct each_sink s = {{each_head, each_row, sv_rows_no_end}, n_columns, row, ctx};
    struct sv_ch_answer a;
    sv_ch_answer_init(&a, &s.rows);
    int code = sv_ch_ask(c, host, SV_CH_READ, sql, strlen(sql), &a.take, err);
    if (code >= 0)
        code = sv_ch_answer_end(&a, err);
    sv_ch_answer_fini(&a);
    if (code == SV_EUSAGE) /* the statement is ours */
        code = err->code = SV_EIO;
    return code;
}

struct number {
    int64_t value;
    bool is_there;
};

static int take_number(void *ctx, const struct sv_cell *cells, struct sv_err *err)
{
    struct number *n = ctx;
    (void)err;
    *n = (struct number){cells[0].i, cells[0].type == SV_CELL_INT};
    return 0;
}

int sv_ch_number(struct sv_ch *c, const char *host, const char *sql, int64_t *out,
                 struct sv_err *err)
{
    struct number n = {0};
    int code = sv_ch_each(c, host, sql, 1, take_number, &n, err);
    if (code >= 0 && !n.is_there)
        code = sv_error(err, SV_EIO, "the server answers a question for a number with none");
    *out = n.value;
    return code;
}
