/* The Parquet writer: its encodings come back, and the types of exported tables. Whole files are
 * judged by other programs' readers in tests/cli/parquet.sh; these run without them. */
#include "core/base/buf.h"
#include "parquet/encode.h"
#include "parquet/parquet.h"
#include "parquet/rows.h"
#include "parquet/thrift.h"
#include "sql/sql.h"
#include "sql/typed.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <string.h>

/* ---- readers, as the format's description has them ---- */

struct bytes {
    const uint8_t *at, *end;
};

static uint64_t take_varint(struct bytes *b)
{
    uint64_t v = 0;
    for (unsigned shift = 0; b->at < b->end && shift < 64; shift += 7) {
        v |= (uint64_t)(*b->at & 0x7f) << shift;
        if (!(*b->at++ & 0x80))
            return v;
    }
    REQUIRE(b->at == NULL); /* it has no end */
    return 0;
}

static int64_t take_zigzag(struct bytes *b)
{
    uint64_t v = take_varint(b);
    return (int64_t)(v >> 1 ^ -(v & 1));
}

static uint64_t bits_at(const uint8_t *p, size_t bit, unsigned width)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < width; i++)
        v |= (uint64_t)(p[(bit + i) / 8] >> (bit + i) % 8 & 1) << i;
    return v;
}

static size_t read_delta(struct bytes *b, int64_t *out, size_t cap)
{
    uint64_t block = take_varint(b), minis = take_varint(b), n = take_varint(b), done = 1;
    uint64_t value = (uint64_t)take_zigzag(b), per = block / minis;
    REQUIRE(n <= cap && block == 128 && minis == 4);
    if (n)
        out[0] = (int64_t)value;
    while (done < n) {
        uint64_t least = (uint64_t)take_zigzag(b);
        const uint8_t *widths = b->at;
        b->at += minis;
        for (uint64_t m = 0; m < minis && done < n; m++) {
            REQUIRE((size_t)(b->end - b->at) >= per * widths[m] / 8);
            for (uint64_t i = 0; i < per && done < n; i++) {
                value += least + bits_at(b->at, i * widths[m], widths[m]);
                out[done++] = (int64_t)value;
            }
            b->at += per * widths[m] / 8;
        }
    }
    return n;
}

static void read_hybrid(struct bytes *b, uint32_t *out, size_t n, unsigned width)
{
    size_t done = 0;
    while (done < n) {
        uint64_t head = take_varint(b);
        if (head & 1) {
            size_t count = (head >> 1) * 8;
            REQUIRE((size_t)(b->end - b->at) >= count * width / 8);
            for (size_t i = 0; i < count && done < n; i++)
                out[done++] = (uint32_t)bits_at(b->at, i * width, width);
            b->at += count * width / 8;
            continue;
        }
        uint32_t value = (uint32_t)bits_at(b->at, 0, (width + 7) / 8 * 8);
        b->at += (width + 7) / 8;
        REQUIRE((head >> 1) <= n - done);
        for (uint64_t i = 0; i < head >> 1; i++)
            out[done++] = value;
    }
}

/* ---- encodings ---- */

static uint64_t state = 1;

static uint64_t draw(void)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 20;
}

static int64_t shaped(unsigned shape, size_t i)
{
    static const int64_t ends[] = {INT64_MIN, INT64_MAX, 0, -1, 1, INT64_MIN + 1, INT64_MAX - 1};
    switch (shape) {
    case 0: return ends[i % TEST_COUNT(ends)];
    case 1: return (int64_t)i;
    case 2: return 42;
    case 3: return (int64_t)(draw() << 20 ^ draw());
    default: return (int64_t)(i * 1000 + draw() % 700);
    }
}

TEST(differences_come_back)
{
    static const size_t sizes[] = {0, 1, 2, 32, 33, 128, 129, 130, 161, 257, 1000};
    int64_t values[1000], back[1000];
    for (unsigned shape = 0; shape < 5; shape++) {
        for (size_t s = 0; s < TEST_COUNT(sizes); s++) {
            CONTEXT("shape %u, %zu values", shape, sizes[s]);
            struct sv_buf b;
            sv_buf_init(&b, 1 << 20);
            for (size_t i = 0; i < sizes[s]; i++)
                values[i] = shaped(shape, i);
            sv_encode_delta(&b, values, sizes[s]);
            struct bytes in = {b.data, b.data + b.len};
            CHECK_UINT_EQ(read_delta(&in, back, 1000), sizes[s]);
            CHECK(sizes[s] == 0 || memcmp(values, back, sizes[s] * sizeof *values) == 0);
            CHECK(in.at == in.end);
            sv_buf_fini(&b);
        }
    }
}

TEST(a_counting_column_costs_nearly_nothing)
{
    int64_t values[12800];
    struct sv_buf b;
    sv_buf_init(&b, 1 << 20);
    for (size_t i = 0; i < TEST_COUNT(values); i++)
        values[i] = (int64_t)i * 7;
    sv_encode_delta(&b, values, TEST_COUNT(values));
    CHECK(b.len < 5 * 100 + 20); /* five bytes for each block of 128 */
    sv_buf_fini(&b);
}

TEST(runs_come_back)
{
    uint32_t values[3000], back[3000];
    for (unsigned width = 1; width <= 32; width++) {
        for (unsigned longest = 1; longest < 40; longest += 6) {
            CONTEXT("width %u, runs up to %u", width, longest);
            size_t n = 2000 + draw() % 1000;
            for (size_t i = 0; i < n;) {
                uint32_t value =
                    (uint32_t)(draw() & (width == 32 ? UINT32_MAX : (1u << width) - 1));
                for (size_t run = 1 + draw() % longest; run > 0 && i < n; run--)
                    values[i++] = value;
            }
            struct sv_buf b;
            sv_buf_init(&b, 1 << 20);
            sv_encode_hybrid(&b, values, n, width);
            struct bytes in = {b.data, b.data + b.len};
            read_hybrid(&in, back, n, width);
            CHECK_MEM_EQ(values, back, n * sizeof *values);
            CHECK(in.at == in.end);
            sv_buf_fini(&b);
        }
    }
}

TEST(levels_come_back)
{
    uint8_t present[1000];
    uint32_t back[1000];
    for (size_t n = 1; n <= 1000; n += 37) {
        for (unsigned kind = 0; kind < 4; kind++) { /* none, all, mixed, not given */
            CONTEXT("%zu rows, kind %u", n, kind);
            struct sv_buf b;
            uint32_t len;
            sv_buf_init(&b, 1 << 20);
            for (size_t i = 0; i < n; i++)
                present[i] = kind == 2 ? draw() % 5 < 3 || i % 100 < 20 : kind > 0;
            sv_encode_levels(&b, kind == 3 ? NULL : present, n);
            memcpy(&len, b.data, 4);
            CHECK_UINT_EQ(len, b.len - 4);
            struct bytes in = {b.data + 4, b.data + b.len};
            read_hybrid(&in, back, n, 1);
            for (size_t i = 0; i < n; i++)
                REQUIRE(back[i] == present[i]);
            sv_buf_fini(&b);
        }
    }
}

TEST(thrift_fields)
{
    static const uint8_t expected[] = {0x15, 0x03, 0x16, 0x80, 0x01, 0x29, 0x1c, 0x00, 0x18,
                                       0x02, 'a',  'b',  0xac, 0x15, 0x00, 0x00, 0x00};
    struct sv_buf b;
    sv_buf_init(&b, 1 << 10);
    struct sv_thrift t = sv_thrift_begin(&b);
    sv_thrift_i32(&t, 1, -2);
    sv_thrift_i64(&t, 2, 64);
    sv_thrift_list(&t, 4, SV_THRIFT_STRUCT, 1);
    struct sv_thrift member = sv_thrift_begin(&b);
    sv_thrift_end(&member);
    sv_thrift_text(&t, 5, "ab", 2);
    struct sv_thrift inner = sv_thrift_struct(&t, 15);
    sv_thrift_i32(&inner, 1, 0);
    sv_thrift_end(&inner);
    sv_thrift_end(&t);
    CHECK_UINT_EQ(b.len, sizeof expected);
    CHECK_MEM_EQ(b.data, expected, sizeof expected);
    sv_buf_fini(&b);
}

/* ---- files ---- */

static struct sv_cell text(const char *s, size_t len)
{
    return (struct sv_cell){.type = SV_CELL_TEXT, .text = s, .len = len};
}

TEST(a_file_begins_and_ends_as_it_must)
{
    static const struct sv_parquet_column columns[] = {
        {"i", SV_PARQUET_INT}, {"r", SV_PARQUET_REAL}, {"t", SV_PARQUET_TEXT}};
    const char *path = test_scratch("a.parquet");
    struct sv_parquet *p;
    struct sv_err err = {0};
    uint32_t footer;
    REQUIRE(sv_parquet_open(path, columns, 3, &p, &err) == 0);
    struct sv_parquet_rows *r = sv_parquet_rows_new(p, columns, 3);
    for (int64_t i = 0; i < 300000; i++) {
        struct sv_cell cells[] = {{.type = i % 3 ? SV_CELL_INT : SV_CELL_NULL, .i = i},
                                  {.type = SV_CELL_REAL, .d = 0.5},
                                  text("a\0b\xff", i % 5 ? 4 : 0)};
        sv_parquet_rows_add(r, cells);
    }
    sv_parquet_rows_end(r);
    REQUIRE(sv_parquet_close(p, &err) == 0);
    FILE *f = fopen(path, "rb");
    char ends[8];
    REQUIRE(f && fread(ends, 1, 4, f) == 4 && memcmp(ends, "PAR1", 4) == 0);
    REQUIRE(fseek(f, -8, SEEK_END) == 0 && fread(ends, 1, 8, f) == 8);
    CHECK_MEM_EQ(ends + 4, "PAR1", 4);
    memcpy(&footer, ends, 4);
    CHECK((long)footer + 12 < ftell(f));
    fclose(f);
}

TEST(a_file_that_cannot_be_made)
{
    static const struct sv_parquet_column column = {"i", SV_PARQUET_INT};
    struct sv_parquet *p;
    struct sv_err err = {0};
    CHECK_INT_EQ(sv_parquet_open("/nowhere/at/all.parquet", &column, 1, &p, &err), SV_EIO);
    CHECK(p == NULL);
}

/* ---- types ---- */

TEST(values_in_the_types_of_their_columns)
{
    static const struct {
        enum sv_column_type type;
        struct sv_cell in;
        bool fits;
        enum sv_cell_type out;
        const char *text;
    } rows[] = {
        {SV_COLUMN_INT, {.type = SV_CELL_INT, .i = 7}, true, SV_CELL_INT, "7"},
        {SV_COLUMN_INT, {.type = SV_CELL_REAL, .d = 7}, true, SV_CELL_INT, "7"},
        {SV_COLUMN_INT, {.type = SV_CELL_REAL, .d = 7.5}, false, SV_CELL_NULL, ""},
        {SV_COLUMN_INT, {.type = SV_CELL_REAL, .d = 1e19}, false, SV_CELL_NULL, ""},
        {SV_COLUMN_INT,
         {.type = SV_CELL_REAL, .d = -9223372036854775808.0},
         true,
         SV_CELL_INT,
         "-9223372036854775808"},
        {SV_COLUMN_INT, {.type = SV_CELL_TEXT, .text = "7", .len = 1}, false, SV_CELL_NULL, ""},
        {SV_COLUMN_TEXT, {.type = SV_CELL_INT, .i = -7}, true, SV_CELL_TEXT, "-7"},
        {SV_COLUMN_TEXT, {.type = SV_CELL_REAL, .d = 0.5}, true, SV_CELL_TEXT, "0.5"},
        {SV_COLUMN_TEXT, {.type = SV_CELL_TEXT, .text = "x", .len = 1}, true, SV_CELL_TEXT, "x"},
        {SV_COLUMN_TEXT, {.type = SV_CELL_BLOB, .text = "x", .len = 1}, false, SV_CELL_NULL, ""},
        {SV_COLUMN_REAL, {.type = SV_CELL_INT, .i = 3}, true, SV_CELL_REAL, "3.0"},
        {SV_COLUMN_REAL, {.type = SV_CELL_INT, .i = INT64_MAX}, false, SV_CELL_NULL, ""},
        {SV_COLUMN_INT, {.type = SV_CELL_NULL}, true, SV_CELL_NULL, ""},
    };
    for (size_t i = 0; i < TEST_COUNT(rows); i++) {
        CONTEXT("row %zu", i);
        struct sv_cell cell = rows[i].in;
        struct sv_buf b, shown;
        sv_buf_init(&b, 64);
        sv_buf_init(&shown, 64);
        CHECK(sv_typed_convert(rows[i].type, &cell, &b) == rows[i].fits);
        CHECK_INT_EQ(cell.type, rows[i].out);
        if (cell.type == SV_CELL_TEXT)
            sv_buf_add(&shown, cell.text, cell.len);
        else if (cell.type == SV_CELL_INT)
            sv_buf_i64(&shown, cell.i);
        else if (cell.type == SV_CELL_REAL)
            sv_buf_double(&shown, cell.d);
        CHECK_STR_EQ(sv_buf_cstr(&shown), rows[i].text);
        sv_buf_fini(&b);
        sv_buf_fini(&shown);
    }
}

struct heads {
    struct sv_rows_sink rows;
    const struct sv_typed_table *table;
};

/* Outside rank and host are columns of every table; of a machine most columns are Perfetto's and
 * always empty. */
static bool is_left_out(const char *table, const char *column)
{
    return strcmp(column, "rank") == 0 || strcmp(column, "host") == 0 ||
           strcmp(table, "machine") == 0;
}

static int check_head(struct sv_rows_sink *r, const char *const *names, size_t n,
                      struct sv_err *err)
{
    const struct sv_typed_table *t = ((const struct heads *)r)->table;
    struct sv_typed_column typed[SV_TYPED_COLUMNS_MAX];
    size_t n_typed = sv_typed_columns(t, typed);
    (void)err;
    for (size_t i = 0; i < n; i++) {
        bool is_there = is_left_out(t->name, names[i]);
        for (size_t k = 0; k < n_typed; k++)
            is_there |= strcmp(typed[k].name, names[i]) == 0;
        CONTEXT("%s.%s: add it to typed.c", t->name, names[i]);
        CHECK(is_there);
    }
    return 0;
}

static int no_row(struct sv_rows_sink *r, const struct sv_cell *cells, size_t n, struct sv_err *err)
{
    (void)r;
    (void)cells;
    (void)n;
    (void)err;
    return 0;
}

TEST(every_column_of_sql_is_exported)
{
    if (!sv_sql_is_built_in())
        SKIP("built without SQLite");
    struct sv_report report;
    struct sv_err err = {0};
    struct sv_sql *q;
    char sql[128];
    sv_report_init(&report);
    struct sv_dict *dict = sv_dict_new();
    struct sv_trace *trace = sv_trace_new(dict, &report, 0);
    REQUIRE(sv_trace_finish(trace, &err) == 0);
    REQUIRE(sv_sql_open(trace, &(struct sv_sql_options){0}, &q, &err) == 0);
    for (size_t i = 0; i < sv_n_typed_tables; i++) {
        struct heads h = {{check_head, no_row, sv_rows_no_end}, &sv_typed_tables[i]};
        struct sv_buf typed;
        snprintf(sql, sizeof sql, "SELECT * FROM \"%s\"", sv_typed_tables[i].name);
        CHECK_INT_EQ(sv_sql_run(q, sql, &h.rows, &err), 0);
        sv_buf_init(&typed, 1 << 12);
        sv_typed_select(&sv_typed_tables[i], &typed);
        CHECK_INT_EQ(sv_sql_run(q, sv_buf_cstr(&typed), &h.rows, &err), 0);
        sv_buf_fini(&typed);
    }
    sv_sql_close(q);
    sv_trace_free(trace);
    sv_dict_free(dict);
    sv_report_fini(&report);
}
