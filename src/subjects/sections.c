/* Sections of a report, for people and for programs. Called by sections.c of each subject.
 *
 * One table of columns makes the aligned text, the JSON and the CSV; only the text rounds, and only
 * it leaves out columns without heading. */
#include "cli/command.h"
#include "cli/console.h"
#include "cli/rows.h"
#include "core/base/json.h"
#include "subjects/subject.h"

#include <inttypes.h>
#include <string.h>

/* ---- for people ---- */

/* Names of kernels are whole C++ types: people see the beginning, programs all of it. */
#define TEXT_MAX 64

static void shorten(struct sv_cell *c, char text[TEXT_MAX + 8])
{
    size_t n = TEXT_MAX;
    if (c->len <= TEXT_MAX)
        return;
    while (n > 0 && ((unsigned char)c->text[n] & 0xc0) == 0x80) /* not within a character */
        n--;
    snprintf(text, TEXT_MAX + 8, "%.*s…", (int)n, c->text);
    *c = sv_cell_text(text);
}

static void humanise(struct sv_cell *c, enum sv_unit unit, char text[TEXT_MAX + 8])
{
    double value = c->type == SV_CELL_INT ? (double)c->i : c->d;
    if (c->type == SV_CELL_NULL) {
        *c = sv_cell_text("-");
        return;
    }
    if (c->type == SV_CELL_TEXT) {
        shorten(c, text);
        return;
    }
    if (unit == SV_UNIT_NS)
        sv_human_ns(text, (int64_t)value);
    else if (unit == SV_UNIT_BYTES)
        sv_human_bytes(text, (uint64_t)value);
    else if (unit == SV_UNIT_SHARE)
        snprintf(text, 48, "%.1f %%", value * 100);
    else if (unit == SV_UNIT_RATE)
        snprintf(text, 48, "%.2f GB/s", value / 1e9);
    else if (unit == SV_UNIT_REAL)
        snprintf(text, 48, "%.2f", value);
    else
        return;
    *c = sv_cell_text(text);
}

/* Which columns people see: those with a heading, of which one of the first n rows knows
 * something. */
static void find_shown(const struct sv_section *s, size_t n, bool is_shown[SV_CELLS_MAX])
{
    enum { ROWS_MAX = 100000 }; /* of more rows all columns are shown */
    struct sv_cell cells[SV_CELLS_MAX];
    size_t missing = 0;
    for (size_t i = 0; i < s->n_columns; i++) {
        is_shown[i] = s->columns[i].heading && (n == 0 || n > ROWS_MAX);
        missing += s->columns[i].heading && !is_shown[i];
    }
    for (size_t row = 0; row < n && missing; row++) {
        s->fill(s, row, cells);
        for (size_t i = 0; i < s->n_columns; i++)
            if (s->columns[i].heading && !is_shown[i] && cells[i].type != SV_CELL_NULL) {
                is_shown[i] = true;
                missing--;
            }
    }
}

/* Leaves the cells of columns that are shown, in words. */
static size_t for_people(const struct sv_section *s, const bool *is_shown, struct sv_cell *cells,
                         char texts[][TEXT_MAX + 8])
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_columns; i++) {
        if (!is_shown[i])
            continue;
        cells[n] = cells[i];
        humanise(&cells[n], s->columns[i].unit, texts[n]);
        n++;
    }
    return n;
}

static void print_one(const struct sv_section *s)
{
    struct sv_cell cells[SV_CELLS_MAX];
    char text[TEXT_MAX + 8];
    s->fill(s, 0, cells);
    for (size_t i = 0; i < s->n_columns; i++) {
        if (!s->columns[i].heading || cells[i].type == SV_CELL_NULL)
            continue;
        if (s->columns[i].unit == SV_UNIT_COUNT && cells[i].type == SV_CELL_INT)
            cells[i] = sv_cell_text(sv_human_count(text, (uint64_t)cells[i].i));
        humanise(&cells[i], s->columns[i].unit, text);
        sv_print(stdout, "  %-28s %.*s\n", s->columns[i].heading, (int)cells[i].len, cells[i].text);
    }
}

static int print_table(const struct sv_section *s, size_t n, struct sv_err *err)
{
    struct sv_printer *p;
    const char *names[SV_CELLS_MAX];
    struct sv_cell cells[SV_CELLS_MAX];
    char texts[SV_CELLS_MAX][TEXT_MAX + 8];
    bool is_shown[SV_CELLS_MAX];
    size_t n_names = 0;
    find_shown(s, n, is_shown);
    int code = sv_printer_open("table", &p, err);
    if (code < 0)
        return code;
    for (size_t i = 0; i < s->n_columns; i++)
        if (is_shown[i])
            names[n_names++] = s->columns[i].heading;
    code = p->rows.head(&p->rows, names, n_names, err);
    for (size_t i = 0; i < n && code >= 0; i++) {
        s->fill(s, i, cells);
        code = p->rows.row(&p->rows, cells, for_people(s, is_shown, cells, texts), err);
    }
    if (code >= 0)
        code = p->rows.end(&p->rows, err);
    int closed = sv_printer_close(p, err);
    return code < 0 ? code : closed;
}

static int print_text(const struct sv_section *s, const struct sv_report_options *o, bool is_first,
                      struct sv_err *err)
{
    size_t n = s->n_rows < o->limit ? s->n_rows : o->limit;
    sv_print(stdout, is_first ? "%s\n" : "\n%s\n", s->title);
    if (s->is_one) {
        print_one(s);
        return 0;
    }
    int code = print_table(s, n, err);
    if (code >= 0 && n < s->n_rows)
        sv_print(stdout, "%zu more: --top 0 --by %s\n", s->n_rows - n, s->name);
    return code;
}

/* ---- for programs ---- */

static int print_csv(const struct sv_section *s, const struct sv_report_options *o,
                     struct sv_err *err)
{
    struct sv_printer *p;
    const char *names[SV_CELLS_MAX];
    struct sv_cell cells[SV_CELLS_MAX];
    int code = sv_printer_open("csv", &p, err);
    if (code < 0)
        return code;
    for (size_t i = 0; i < s->n_columns; i++)
        names[i] = s->columns[i].key;
    code = p->rows.head(&p->rows, names, s->n_columns, err);
    for (size_t i = 0; i < s->n_rows && i < o->limit && code >= 0; i++) {
        s->fill(s, i, cells);
        code = p->rows.row(&p->rows, cells, s->n_columns, err);
    }
    if (code >= 0)
        code = p->rows.end(&p->rows, err);
    int closed = sv_printer_close(p, err);
    return code < 0 ? code : closed;
}

void sv_cells_json(struct sv_json *j, const char *const *names, const struct sv_cell *cells,
                   size_t n)
{
    sv_json_begin(j, '{');
    for (size_t i = 0; i < n; i++) {
        const struct sv_cell *c = &cells[i];
        if (c->type == SV_CELL_NULL)
            continue;
        sv_json_key(j, names[i], strlen(names[i]));
        if (c->type == SV_CELL_INT)
            sv_json_i64(j, c->i);
        else if (c->type == SV_CELL_REAL)
            sv_json_double(j, c->d);
        else
            sv_json_text(j, c->text, c->len);
    }
    sv_json_end(j);
}

static void put_section(struct sv_json *j, const struct sv_section *s, size_t limit)
{
    const char *names[SV_CELLS_MAX];
    struct sv_cell cells[SV_CELLS_MAX];
    size_t n = s->n_columns;
    for (size_t i = 0; i < n; i++)
        names[i] = s->columns[i].key;
    sv_json_line(j);
    sv_json_key(j, s->name, strlen(s->name));
    if (!s->is_one)
        sv_json_begin(j, '[');
    for (size_t i = 0; i < s->n_rows && (i < limit || s->is_one); i++) {
        if (!s->is_one)
            sv_json_line(j);
        s->fill(s, i, cells);
        sv_cells_json(j, names, cells, n);
    }
    if (!s->is_one)
        sv_json_end(j);
}

int sv_report_write(const struct sv_report_options *o, struct sv_buf *b, struct sv_err *err)
{
    if (b->failed)
        return sv_error(err, SV_ENOMEM, "the report is too long: use --top N, or --csv");
    if (!o->into)
        return sv_print_data(stdout, b->data, b->len, err);
    sv_buf_add(o->into, b->data, b->len);
    return 0;
}

/* ---- which ---- */

static bool is_asked(const struct sv_section *s, const struct sv_report_options *o)
{
    return !o->by || strcmp(o->by, s->name) == 0;
}

static int print_json(const struct sv_section *sections, size_t n,
                      const struct sv_report_options *o, struct sv_err *err)
{
    struct sv_buf b;
    struct sv_json j;
    sv_buf_init(&b, (size_t)1 << 30);
    sv_json_init(&j, &b);
    sv_json_begin(&j, '{');
    sv_json_put(&j, "version", u64, SV_REPORT_FORM);
    for (size_t i = 0; i < n; i++)
        if (is_asked(&sections[i], o))
            put_section(&j, &sections[i], o->limit);
    sv_json_end(&j);
    sv_buf_byte(&b, '\n');
    int code = sv_report_write(o, &b, err);
    sv_buf_fini(&b);
    return code;
}

int sv_sections_print(const struct sv_section *sections, size_t n,
                      const struct sv_report_options *o, struct sv_err *err)
{
    bool is_first = true;
    int code = 0;
    if (o->json)
        return print_json(sections, n, o, err);
    for (size_t i = 0; i < n && code >= 0; i++) {
        if (!is_asked(&sections[i], o) || (sections[i].n_rows == 0 && !o->by))
            continue;
        if (o->csv)
            return print_csv(&sections[i], o, err);
        code = print_text(&sections[i], o, is_first, err);
        is_first = false;
    }
    return code;
}

void sv_report_losses(const struct sv_trace *t)
{
    uint64_t lost = 0;
    for (uint64_t i = 0; i < t->losses.n; i++)
        lost += t->losses.count[i];
    if (t->losses.n)
        sv_console_note("events were lost at %" PRIu64 " places, at least %" PRIu64
                        " in total: the figures do not include them",
                        t->losses.n, lost);
}

/* ---- options ---- */

int sv_report_check(const char *const *of_baseline, size_t n_of_baseline,
                    const char *const (*apart)[2], size_t n_apart, struct sv_err *err)
{
    int code = 0;
    for (size_t i = 0; i < n_of_baseline && code >= 0; i++)
        code = sv_options_need(of_baseline[i], "baseline", err);
    for (size_t i = 0; i < n_apart && code >= 0; i++)
        code = sv_options_either(apart[i][0], apart[i][1], err);
    return code;
}
