/* Arbitrary bytes as the answer of a ClickHouse server, in pieces of the size that the first byte
 * says; and as its words on a failure, and as statements. */
#include "clickhouse/answer.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct counter {
    struct sv_rows_sink rows;
    size_t n_columns, n_ends;
};

static int take_head(struct sv_rows_sink *r, const char *const *names, size_t n, struct sv_err *err)
{
    struct counter *c = (struct counter *)r;
    (void)err;
    assert(n > 0 && n <= SV_CH_COLUMNS_MAX && c->n_columns == 0);
    for (size_t i = 0; i < n; i++)
        assert(strlen(names[i]) < SV_CH_ROW_BYTES_MAX);
    c->n_columns = n;
    return 0;
}

static int take_row(struct sv_rows_sink *r, const struct sv_cell *cells, size_t n,
                    struct sv_err *err)
{
    (void)err;
    assert(n == ((struct counter *)r)->n_columns);
    for (size_t i = 0; i < n; i++)
        assert(cells[i].type != SV_CELL_TEXT || cells[i].text[cells[i].len] == 0);
    return 0;
}

static int take_end(struct sv_rows_sink *r, struct sv_err *err)
{
    (void)err;
    ((struct counter *)r)->n_ends++;
    return 0;
}

static void parse(const uint8_t *data, size_t size)
{
    struct counter c = {.rows = {take_head, take_row, take_end}};
    struct sv_ch_answer a;
    struct sv_err err;
    int code = 0;
    size_t piece = size ? data[0] + 1u : 1;
    sv_err_clear(&err);
    sv_ch_answer_init(&a, &c.rows);
    for (size_t i = 1; i < size && code >= 0; i += piece)
        code = a.take.bytes(&a.take, (const char *)data + i, size - i < piece ? size - i : piece,
                            &err);
    if (code >= 0)
        code = sv_ch_answer_end(&a, &err);
    assert(code >= 0 || (err.code == SV_EIO && *err.msg));
    assert(c.n_ends <= 1 && (code < 0 || c.n_ends == (c.n_columns > 0)));
    sv_ch_answer_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char words[64];
    parse(data, size);
    sv_ch_words((const char *)data, size, words, sizeof words);
    assert(strlen(words) < sizeof words);
    char *sql = strndup((const char *)data, size);
    for (const char *at = sql; *at;) {
        bool is_empty;
        size_t n = sv_ch_statement(at, &is_empty);
        assert(n > 0 && n <= strlen(at));
        at += n;
    }
    free(sql);
    return 0;
}
