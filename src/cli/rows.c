/* Printing tables. Used by every command whose answer is rows: query, stats, diff, steps,
 * critical-path.
 *
 * Text is collected in a buffer and written in pieces, so a result of any size passes through; the
 * aligned forms look at the first rows to find the widths of their columns; longer cells of later
 * rows exceed them. Data goes to standard output only. */
#include "cli/rows.h"

#include "cli/console.h"
#include "core/base/csv_text.h"
#include "core/base/json.h"
#include "core/base/mem.h"
#include "core/base/printable.h"
#include "core/base/utf8.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HELD_MAX  500u
#define WIDTH_MAX 100u
#define PIECE     (64u << 10)
#define LEAST     8u   /* columns of a cell that is cut */
#define TAIL      256u /* bytes of the end of an object */

struct sv_cell sv_cell_text(const char *s)
{
    return s ? (struct sv_cell){.type = SV_CELL_TEXT, .text = s, .len = strlen(s)} : sv_cell_null();
}

struct sv_cell sv_cell_int(int64_t i)
{
    return (struct sv_cell){.type = SV_CELL_INT, .i = i};
}

struct sv_cell sv_cell_real(double d)
{
    return (struct sv_cell){.type = SV_CELL_REAL, .d = d};
}

struct sv_cell sv_cell_null(void)
{
    return (struct sv_cell){.type = SV_CELL_NULL};
}

struct sv_cell sv_cell_bytes(struct sv_text t)
{
    return t.len ? (struct sv_cell){.type = SV_CELL_TEXT, .text = t.bytes, .len = t.len}
                 : sv_cell_null();
}

struct sv_cell sv_cell_share(double part, double whole)
{
    return whole > 0 ? sv_cell_real(part / whole) : sv_cell_null();
}

static int flush(struct sv_printer *p, struct sv_err *err)
{
    if (p->text.failed)
        return sv_error(err, SV_ENOMEM, "a row of the result is too long to print");
    if (p->file) {
        sv_output_pass_on(p->file, &p->text);
        return sv_output_failure(p->file, err);
    }
    int code = sv_print_data(p->out, p->text.data, p->text.len, err);
    sv_buf_clear(&p->text);
    return code;
}

static int flush_if_full(struct sv_printer *p, struct sv_err *err)
{
    return p->text.len >= PIECE ? flush(p, err) : 0;
}

/* ---- values as text ---- */

static void add_hex(struct sv_buf *b, const char *bytes, size_t len)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < len; i++) {
        sv_buf_byte(b, (uint8_t)digits[(uint8_t)bytes[i] >> 4]);
        sv_buf_byte(b, (uint8_t)digits[bytes[i] & 15]);
    }
}

static void add_plain(struct sv_buf *b, const struct sv_cell *c)
{
    switch (c->type) {
    case SV_CELL_INT: sv_buf_i64(b, c->i); break;
    case SV_CELL_REAL: sv_buf_double(b, c->d); break;
    case SV_CELL_TEXT: sv_buf_add(b, c->text, c->len); break;
    case SV_CELL_BLOB: add_hex(b, c->text, c->len); break;
    default: break;
    }
}

/* An empty text is quoted, to distinguish it from NULL. */
static void add_csv_text(struct sv_buf *b, const char *s, size_t len)
{
    if (len == 0)
        sv_buf_str(b, "\"\"");
    else
        sv_buf_csv(b, s, len);
}

static void add_csv(struct sv_printer *p, const struct sv_cell *cells, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (i)
            sv_buf_byte(&p->text, ',');
        if (cells[i].type == SV_CELL_TEXT)
            add_csv_text(&p->text, cells[i].text, cells[i].len);
        else
            add_plain(&p->text, &cells[i]);
    }
    sv_buf_byte(&p->text, '\n');
}

static void add_json(struct sv_printer *p, const struct sv_cell *cells, size_t n)
{
    struct sv_json j;
    sv_json_init(&j, &p->text);
    sv_json_begin(&j, '{');
    for (size_t i = 0; i < n; i++) {
        sv_json_key(&j, p->names[i], strlen(p->names[i]));
        switch (cells[i].type) {
        case SV_CELL_INT: sv_json_i64(&j, cells[i].i); break;
        case SV_CELL_REAL: sv_json_double(&j, cells[i].d); break;
        case SV_CELL_TEXT: sv_json_text(&j, cells[i].text, cells[i].len); break;
        case SV_CELL_BLOB: {
            struct sv_buf hex;
            sv_buf_init(&hex, 1u << 30);
            add_hex(&hex, cells[i].text, cells[i].len);
            sv_json_text(&j, sv_buf_cstr(&hex), hex.len);
            sv_buf_fini(&hex);
            break;
        }
        default: sv_json_null(&j); break;
        }
    }
    sv_json_end(&j);
}

/* ---- aligned ---- */

static size_t width_of(const char *s)
{
    return sv_utf8_columns(s, strlen(s));
}

/* The bytes of its first, or last, so many columns. */
static size_t first_bytes(const char *text, size_t len, size_t columns)
{
    size_t at = 0;
    while (at < len) {
        size_t n = at + 1;
        while (n < len && ((uint8_t)text[n] & 0xc0) == 0x80)
            n++;
        if (sv_utf8_columns(text, n) > columns)
            break;
        at = n;
    }
    return at;
}

static size_t last_bytes(const char *text, size_t len, size_t columns)
{
    size_t at = len;
    while (at > 0) {
        size_t n = at - 1;
        while (n > 0 && ((uint8_t)text[n] & 0xc0) == 0x80)
            n--;
        if (sv_utf8_columns(text + n, len - n) > columns)
            break;
        at = n;
    }
    return len - at;
}

/* Both ends of a text say more than one of them: of paths, and of names with numbers. */
static const char *cut(struct sv_printer *p, const char *text, size_t width, struct sv_buf *to)
{
    size_t len = strlen(text), tail = (width - 1) / 2, head = width - 1 - tail;
    if (!p->columns || width_of(text) <= width)
        return text;
    p->is_cut = true;
    sv_buf_init(to, 1u << 30);
    sv_buf_add(to, text, first_bytes(text, len, head));
    sv_buf_str(to, sv_locale_is_c() ? "~" : "…");
    sv_buf_str(to, text + len - last_bytes(text, len, tail));
    return sv_buf_cstr(to);
}

static void add_padded(struct sv_printer *p, const char *whole, size_t column)
{
    struct sv_buf room = {0};
    const char *text = cut(p, whole, p->widths[column], &room);
    size_t width = width_of(text), width_max = p->widths[column];
    size_t pad = width < width_max ? width_max - width : 0;
    bool is_last = column + 1 == p->n_columns && p->form == SV_ROWS_TABLE;
    if (p->is_number[column])
        for (size_t i = 0; i < pad; i++)
            sv_buf_byte(&p->text, ' ');
    sv_buf_str(&p->text, text);
    if (!p->is_number[column] && !is_last)
        for (size_t i = 0; i < pad; i++)
            sv_buf_byte(&p->text, ' ');
    sv_buf_fini(&room);
}

/* "name  value" for each cell: rows that are wider than the terminal even with their texts cut. */
static void add_upright(struct sv_printer *p, char *const *cells)
{
    size_t widest = 0;
    for (size_t i = 0; i < p->n_columns; i++)
        widest = width_of(p->names[i]) > widest ? width_of(p->names[i]) : widest;
    for (size_t i = 0; i < p->n_columns; i++) {
        size_t room = p->columns > widest + 2 + LEAST ? p->columns - widest - 2 : LEAST;
        struct sv_buf kept = {0};
        if (!*cells[i])
            continue;
        sv_buf_str(&p->text, p->names[i]);
        for (size_t k = width_of(p->names[i]); k < widest + 2; k++)
            sv_buf_byte(&p->text, ' ');
        sv_buf_str(&p->text, cut(p, cells[i], room, &kept));
        sv_buf_byte(&p->text, '\n');
        sv_buf_fini(&kept);
    }
    sv_buf_byte(&p->text, '\n');
}

static void add_line(struct sv_printer *p, char *const *cells)
{
    bool is_markdown = p->form == SV_ROWS_MARKDOWN;
    if (p->is_upright) {
        add_upright(p, cells);
        return;
    }
    for (size_t i = 0; i < p->n_columns; i++) {
        sv_buf_str(&p->text, is_markdown ? (i ? " | " : "| ") : i ? "  " : "");
        add_padded(p, cells[i], i);
    }
    sv_buf_str(&p->text, is_markdown ? " |\n" : "\n");
}

static void add_rule(struct sv_printer *p)
{
    bool is_markdown = p->form == SV_ROWS_MARKDOWN;
    for (size_t i = 0; i < p->n_columns; i++) {
        sv_buf_str(&p->text, is_markdown ? (i ? " | " : "| ") : i ? "  " : "");
        size_t width = p->widths[i] < 3 && is_markdown ? 3 : p->widths[i];
        for (size_t k = 0; k < width; k++)
            sv_buf_byte(&p->text, is_markdown && p->is_number[i] && k + 1 == width ? ':' : '-');
    }
    sv_buf_str(&p->text, is_markdown ? " |\n" : "\n");
}

/* A cell as one line of printable text. */
static char *cell_line(struct sv_printer *p, const struct sv_cell *c)
{
    struct sv_buf plain, line;
    sv_buf_init(&plain, 1u << 30);
    sv_buf_init(&line, 1u << 30);
    if (c->type == SV_CELL_TEXT)
        sv_buf_printable(&plain, c->text, c->len);
    else
        add_plain(&plain, c);
    const char *text = sv_buf_cstr(&plain);
    for (; *text; text++) {
        if (*text == '|' && p->form == SV_ROWS_MARKDOWN)
            sv_buf_byte(&line, '\\');
        sv_buf_byte(&line, (uint8_t)*text);
    }
    if (sv_locale_is_c() && p->form == SV_ROWS_TABLE) {
        sv_buf_clear(&plain);
        sv_buf_ascii(&plain, sv_buf_cstr(&line), line.len);
        sv_buf_clear(&line);
        sv_buf_str(&line, sv_buf_cstr(&plain));
    }
    char *copy = sv_strndup(sv_buf_cstr(&line), line.len);
    sv_buf_fini(&plain);
    sv_buf_fini(&line);
    return copy;
}

static bool is_aligned(const struct sv_printer *p)
{
    return p->form == SV_ROWS_TABLE || p->form == SV_ROWS_MARKDOWN;
}

static size_t line_width(const struct sv_printer *p)
{
    size_t sum = p->n_columns ? 2 * (p->n_columns - 1) : 0;
    for (size_t i = 0; i < p->n_columns; i++)
        sum += p->widths[i];
    return sum;
}

/* Takes columns from the widest text until a line fits; where that is not enough, rows are upright.
 * Numbers are never cut. */
static void fit(struct sv_printer *p)
{
    while (p->columns && p->form == SV_ROWS_TABLE && line_width(p) > p->columns) {
        size_t widest = SIZE_MAX;
        for (size_t i = 0; i < p->n_columns; i++)
            if (!p->is_number[i] && p->widths[i] > LEAST && p->widths[i] > width_of(p->names[i]) &&
                (widest == SIZE_MAX || p->widths[i] > p->widths[widest]))
                widest = i;
        p->is_upright = widest == SIZE_MAX;
        if (p->is_upright)
            return;
        p->widths[widest]--;
    }
}

static void settle(struct sv_printer *p)
{
    if (p->is_flowing)
        return;
    p->is_flowing = true;
    fit(p);
    if (p->is_upright) {
        for (size_t i = 0; i < p->n_held; i += p->n_columns)
            add_line(p, p->held + i);
        for (size_t i = 0; i < p->n_held; i++)
            free(p->held[i]);
        p->n_held = 0;
        return;
    }
    sv_buf_str(&p->text, p->form == SV_ROWS_TABLE ? sv_style(SV_BOLD) : "");
    add_line(p, p->names);
    sv_buf_str(&p->text, p->form == SV_ROWS_TABLE ? sv_style(SV_RESET) : "");
    add_rule(p);
    for (size_t i = 0; i < p->n_held; i += p->n_columns)
        add_line(p, p->held + i);
    for (size_t i = 0; i < p->n_held; i++)
        free(p->held[i]);
    p->n_held = 0;
}

/* A number with a unit, as people write it (1,234; 3.688 ms; 98 %), or the sign for none: aligned
 * like a number. */
static bool is_quantity(const char *s)
{
    if (strcmp(s, "-") == 0 || !*s)
        return true;
    s += *s == '-' || *s == '+';
    size_t n = strspn(s, "0123456789.,");
    if (n == 0)
        return false;
    s += n;
    s += *s == ' ';
    return strspn(s, "%abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ/") == strlen(s) &&
           strlen(s) <= 5;
}

static int add_aligned(struct sv_printer *p, const struct sv_cell *cells, size_t n,
                       struct sv_err *err)
{
    p->held = sv_grow(p->held, &p->cap_held, p->n_held + n, sizeof *p->held);
    char **line = p->held + p->n_held;
    for (size_t i = 0; i < n; i++) {
        line[i] = cell_line(p, &cells[i]);
        if (p->is_flowing)
            continue;
        size_t width = width_of(line[i]);
        if (width > p->widths[i])
            p->widths[i] = width < WIDTH_MAX ? width : WIDTH_MAX;
        if (cells[i].type == SV_CELL_BLOB ||
            (cells[i].type == SV_CELL_TEXT && !is_quantity(line[i])))
            p->is_number[i] = false;
    }
    if (!p->is_flowing) {
        p->n_held += n;
        if (n && p->n_held / n >= HELD_MAX)
            settle(p);
        return flush_if_full(p, err);
    }
    add_line(p, line);
    for (size_t i = 0; i < n; i++)
        free(line[i]);
    return flush_if_full(p, err);
}

/* ---- the three calls ---- */

static void forget_columns(struct sv_printer *p)
{
    for (size_t i = 0; i < p->n_columns; i++)
        free(p->names[i]);
    for (size_t i = 0; i < p->n_held; i++)
        free(p->held[i]);
    free(p->names);
    free(p->widths);
    free(p->is_number);
    p->names = NULL;
    p->widths = NULL;
    p->is_number = NULL;
    p->n_columns = p->n_held = 0;
}

static int print_head(struct sv_rows_sink *r, const char *const *names, size_t n,
                      struct sv_err *err)
{
    struct sv_printer *p = (struct sv_printer *)r;
    forget_columns(p);
    p->names = sv_alloc((n + 1) * sizeof *p->names);
    p->widths = sv_alloc((n + 1) * sizeof *p->widths);
    p->is_number = sv_alloc((n + 1) * sizeof *p->is_number);
    p->n_columns = n;
    p->n_rows = p->n_left_out = 0;
    p->is_flowing = p->is_upright = false;
    for (size_t i = 0; i < n; i++) {
        struct sv_cell name = sv_cell_text(names[i]);
        p->names[i] = is_aligned(p) ? cell_line(p, &name) : sv_strndup(names[i], strlen(names[i]));
        p->widths[i] = width_of(p->names[i]);
        p->is_number[i] = true;
    }
    bool is_apart = p->form == SV_ROWS_TABLE || p->form == SV_ROWS_CSV ||
                    p->form == SV_ROWS_MARKDOWN;
    if (p->n_results++ && is_apart)
        sv_buf_byte(&p->text, '\n');
    if (p->form == SV_ROWS_CSV) {
        for (size_t i = 0; i < n; i++) {
            if (i)
                sv_buf_byte(&p->text, ',');
            add_csv_text(&p->text, names[i], strlen(names[i]));
        }
        sv_buf_byte(&p->text, '\n');
    } else if (p->form == SV_ROWS_JSON) {
        sv_buf_str(&p->text, p->is_object ? "{\"version\":1,\"rows\":[" : "[");
    }
    return flush_if_full(p, err);
}

/* A row of an object, unless there is no room for it. */
static void add_limited(struct sv_printer *p, const struct sv_cell *cells, size_t n)
{
    size_t before = p->text.len;
    if (p->n_left_out == 0) {
        sv_buf_str(&p->text, p->n_rows > 1 ? ",\n " : "");
        add_json(p, cells, n);
    }
    size_t more = p->text.len - before;
    if (p->n_left_out > 0 || (p->most && p->written + more + TAIL > p->most)) {
        p->n_left_out++;
        p->text.len = before;
    } else {
        p->written += more;
    }
}

static void end_object(struct sv_printer *p)
{
    struct sv_buf b;
    sv_buf_init(&b, TAIL);
    sv_buf_str(&b, "],\"n\":");
    sv_buf_u64(&b, p->n_rows);
    if (p->n_left_out) {
        sv_buf_str(&b, ",\"truncated\":{\"rows\":");
        sv_buf_u64(&b, p->n_rows - p->n_left_out);
        sv_buf_str(&b, ",\"of\":");
        sv_buf_u64(&b, p->n_rows);
        sv_buf_str(&b, ",\"more\":\"" SV_ROWS_ALL "\"}");
    }
    sv_buf_str(&b, "}\n");
    sv_buf_add(&p->text, b.data, b.len);
    p->written += b.len;
    sv_buf_fini(&b);
}

static int print_row(struct sv_rows_sink *r, const struct sv_cell *cells, size_t n,
                     struct sv_err *err)
{
    struct sv_printer *p = (struct sv_printer *)r;
    p->n_rows++;
    switch (p->form) {
    case SV_ROWS_CSV: add_csv(p, cells, n); break;
    case SV_ROWS_JSON:
        if (p->is_object) {
            add_limited(p, cells, n);
            break;
        }
        sv_buf_str(&p->text, p->n_rows > 1 ? ",\n " : "");
        add_json(p, cells, n);
        break;
    case SV_ROWS_JSONL:
        add_json(p, cells, n);
        sv_buf_byte(&p->text, '\n');
        break;
    default: return add_aligned(p, cells, n, err);
    }
    return flush_if_full(p, err);
}

static int print_end(struct sv_rows_sink *r, struct sv_err *err)
{
    struct sv_printer *p = (struct sv_printer *)r;
    if (p->is_object)
        end_object(p);
    else if (p->form == SV_ROWS_JSON)
        sv_buf_str(&p->text, "]\n");
    if (is_aligned(p))
        settle(p);
    return flush(p, err);
}

int sv_printer_open(const char *form, struct sv_printer **out, struct sv_err *err)
{
    static const char *const forms[] = {"table", "csv", "json", "jsonl", "markdown"};
    size_t f = 0;
    *out = NULL;
    if (!form)
        form = isatty(STDOUT_FILENO) ? "table" : "csv";
    while (f < sizeof forms / sizeof *forms && strcmp(form, forms[f]) != 0)
        f++;
    if (f == sizeof forms / sizeof *forms)
        return sv_error(err, SV_EUSAGE, "--to: '%s' is not table, csv, json, jsonl or markdown",
                        form);
    struct sv_printer *p = *out = sv_alloc(sizeof *p);
    p->rows = (struct sv_rows_sink){print_head, print_row, print_end};
    p->form = (enum sv_rows_form)f;
    p->out = stdout;
    p->columns = p->form == SV_ROWS_TABLE ? sv_screen_columns() : 0;
    sv_buf_init(&p->text, 1u << 30);
    return 0;
}

int sv_printer_choose(const struct sv_rows_choice *choice, struct sv_printer **out,
                      struct sv_err *err)
{
    *out = NULL;
    if (choice->json && choice->form)
        return sv_error(err, SV_EUSAGE, "--json, or another form, not both");
    if (choice->all && !choice->json)
        return sv_error(err, SV_EUSAGE, "--all belongs to --json; the other forms have all rows");
    int code = sv_printer_open(choice->json ? "json" : choice->form, out, err);
    if (code >= 0 && choice->json) {
        (*out)->is_object = true;
        (*out)->most = choice->all ? 0 : SV_JSON_MOST;
    }
    return code;
}

int sv_printer_close(struct sv_printer *p, struct sv_err *err)
{
    if (!p)
        return 0;
    int code = flush(p, err);
    static bool is_said; /* a report has several tables */
    if (p->is_cut && !is_said) {
        is_said = true;
        sv_console_note("texts were cut to %u columns; other forms than the table have them whole",
                        p->columns);
    }
    forget_columns(p);
    free(p->held);
    sv_buf_fini(&p->text);
    free(p);
    return code;
}
