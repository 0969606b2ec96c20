/* Rows of batches, and the CSV that they come from. Called by `report batch` and `plot batch`.
 *
 * Times become whole nanoseconds as they are read. A cell that is no number spoils its row only; a missing column spoils the file. */
#include "analysis/batch_rows.h"

#include "base/mem.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *const sv_batch_column_names[SV_N_BATCH_COLUMNS] = {
    "queue_ms",   "batch_ms",     "submit_ms",  "scheduling_ms",
    "codelet_ms", "inference_ms", "callback_ms"};
const char *const sv_batch_phase_names[SV_N_BATCH_PHASES] = {
    "queue", "batch", "submit", "scheduling", "run", "callback", "rest"};

/* ---- rows ---- */

void sv_batch_rows_init(struct sv_batch_rows *b)
{
    *b = (struct sv_batch_rows){.names = sv_dict_new()};
}

void sv_batch_rows_fini(struct sv_batch_rows *b)
{
    free(b->rows);
    free(b->requests);
    free(b->workers);
    free(b->metrics);
    sv_dict_free(b->names);
    *b = (struct sv_batch_rows){0};
}

struct sv_batch_row *sv_batch_row_add(struct sv_batch_rows *b)
{
    b->rows = sv_grow(b->rows, &b->cap, b->n + 1, sizeof *b->rows);
    b->rows[b->n] = (struct sv_batch_row){.first_request = b->n_requests,
                                          .n_requests = 1,
                                          .arrival_ns = SV_BATCH_UNKNOWN,
                                          .end_ns = SV_BATCH_UNKNOWN};
    return &b->rows[b->n++];
}

void sv_batch_request_add(struct sv_batch_rows *b, uint64_t id, int64_t arrival_ns)
{
    b->requests = sv_grow(b->requests, &b->cap_requests, b->n_requests + 1, sizeof *b->requests);
    b->requests[b->n_requests++] = (struct sv_batch_request){id, arrival_ns};
}

static uint8_t device_of(const char *type)
{
    static const char *const gpus[] = {"cuda", "gpu", "opencl", "hip", "rocm"};
    if (strcasecmp(type, "cpu") == 0)
        return SV_BATCH_CPU;
    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++)
        if (strcasecmp(type, gpus[i]) == 0)
            return SV_BATCH_GPU;
    return SV_BATCH_OTHER;
}

/* Servers have few workers; a file that claims thousands has the rest of them together. */
#define WORKERS_MAX 4096u

uint32_t sv_batch_worker_of(struct sv_batch_rows *b, int64_t number, const char *type, size_t len)
{
    struct sv_batch_worker w = {.number = number};
    snprintf(w.type, sizeof w.type, "%.*s", (int)(len < 15 ? len : 15), type);
    w.device = device_of(w.type);
    size_t i = b->n_workers; /* the newest are the likeliest */
    while (i-- > 0)
        if (b->workers[i].number == number && strcmp(b->workers[i].type, w.type) == 0)
            return (uint32_t)i;
    if (b->n_workers == WORKERS_MAX)
        return WORKERS_MAX - 1;
    b->workers = sv_grow(b->workers, &b->cap_workers, b->n_workers + 1, sizeof *b->workers);
    b->workers[b->n_workers] = w;
    return (uint32_t)b->n_workers++;
}

static int64_t at_least_0(int64_t ns)
{
    return ns > 0 ? ns : 0;
}

/* Whatever the columns say, the phases fill the total exactly: those that come too late find no room. */
static void fit_phases(struct sv_batch_row *r)
{
    int64_t left = at_least_0(r->total_ns);
    for (size_t i = 0; i < SV_BATCH_REST; i++) {
        int64_t ns = at_least_0(r->phase_ns[i]);
        r->phase_ns[i] = ns < left ? ns : left;
        left -= r->phase_ns[i];
    }
    r->phase_ns[SV_BATCH_REST] = left;
}

void sv_batch_derive_phases(struct sv_batch_row *r)
{
    const int64_t *c = r->column_ns;
    r->phase_ns[SV_PHASE_QUEUE] = c[SV_BATCH_QUEUE];
    r->phase_ns[SV_PHASE_BATCH] = c[SV_BATCH_BATCH];
    r->phase_ns[SV_PHASE_SUBMIT] = c[SV_BATCH_SUBMIT] - c[SV_BATCH_BATCH];
    r->phase_ns[SV_PHASE_SCHEDULING] = c[SV_BATCH_SCHEDULING];
    r->phase_ns[SV_PHASE_RUN] = c[SV_BATCH_CODELET];
    r->phase_ns[SV_PHASE_CALLBACK] = c[SV_BATCH_CALLBACK];
    fit_phases(r);
}

static int by_id(const void *a, const void *b)
{
    const struct sv_batch_row *x = a, *y = b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x->first_request < y->first_request ? -1 : x->first_request > y->first_request;
}

static int by_number(const void *a, const void *b)
{
    const struct sv_batch_worker *x = a, *y = b;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return strcmp(x->type, y->type);
}

void sv_batch_rows_finish(struct sv_batch_rows *b)
{
    size_t n = b->n_workers;
    struct sv_batch_worker *old = sv_alloc((n + 1) * sizeof *old);
    uint32_t *place = sv_alloc((n + 1) * sizeof *place);
    if (n) {
        memcpy(old, b->workers, n * sizeof *old);
        qsort(b->workers, n, sizeof *b->workers, by_number);
    }
    for (size_t i = 0; i < n; i++) {
        const struct sv_batch_worker *at =
            bsearch(&old[i], b->workers, n, sizeof *b->workers, by_number);
        place[i] = (uint32_t)(at - b->workers);
    }
    for (size_t i = 0; i < b->n; i++)
        b->rows[i].worker = place[b->rows[i].worker];
    if (b->n)
        qsort(b->rows, b->n, sizeof *b->rows, by_id);
    free(old);
    free(place);
}

/* ---- CSV ---- */

struct cell {
    const char *at; /* inside the file; quotes taken off at its ends, doubled ones stay */
    size_t len;
};

#define CELLS_MAX 64u

struct csv {
    const char *at, *end, *begin;
    struct cell cells[CELLS_MAX];
    size_t n; /* of the line; past CELLS_MAX only counted */
    const char *line;
};

static const char *take_quoted(struct csv *c, struct cell *cell)
{
    const char *p = c->at + 1;
    cell->at = p;
    for (; p < c->end; p++)
        if (*p == '"') {
            if (p + 1 == c->end || p[1] != '"')
                break;
            p++;
        }
    cell->len = (size_t)(p - cell->at);
    while (p < c->end && *p != ',' && *p != '\n')
        p++; /* what stands after the closing quote belongs to nobody */
    return p;
}

/* The cells of the next line that is not empty; false at the end. */
static bool next_line(struct csv *c)
{
    while (c->at < c->end && (*c->at == '\n' || *c->at == '\r'))
        c->at++;
    c->n = 0;
    c->line = c->at;
    if (c->at >= c->end)
        return false;
    for (;;) {
        struct cell cell = {c->at, 0};
        const char *p = c->at;
        if (p < c->end && *p == '"') {
            p = take_quoted(c, &cell);
        } else {
            while (p < c->end && *p != ',' && *p != '\n')
                p++;
            cell.len = (size_t)(p - c->at);
        }
        while (cell.len && isspace((unsigned char)cell.at[cell.len - 1]))
            cell.len--;
        if (c->n < CELLS_MAX)
            c->cells[c->n] = cell;
        c->n++;
        c->at = p < c->end ? p + 1 : p;
        if (p >= c->end || *p == '\n')
            return true;
    }
}

static bool is_word(struct cell c, const char *word)
{
    return c.len == strlen(word) && memcmp(c.at, word, c.len) == 0;
}

/* A decimal number times `unit`, as a whole number; false for anything else, NaN and infinities included. */
static bool read_scaled(struct cell c, double unit, int64_t *out)
{
    char text[40], *end;
    if (c.len == 0 || c.len >= sizeof text)
        return false;
    memcpy(text, c.at, c.len);
    text[c.len] = 0;
    double v = strtod(text, &end) * unit;
    if (*end || !isfinite(v) || fabs(v) > 9e18)
        return false;
    *out = (int64_t)llround(v);
    return true;
}

static bool read_id(struct cell c, uint64_t *out)
{
    uint64_t v = 0;
    for (size_t i = 0; i < c.len; i++) {
        unsigned digit = (unsigned)((unsigned char)c.at[i] - '0');
        if (digit > 9 || __builtin_mul_overflow(v, 10u, &v) || __builtin_add_overflow(v, digit, &v))
            return false;
    }
    *out = v;
    return c.len > 0;
}

enum {
    COL_ID,
    COL_WORKER,
    COL_TYPE,
    COL_SIZE,
    COL_TOTAL,
    COL_PHASES, /* SV_N_BATCH_COLUMNS of them */
    COL_REQUIRED = COL_PHASES + SV_N_BATCH_COLUMNS,
    COL_MODEL = COL_REQUIRED,
    COL_REQUESTS,
    COL_ARRIVALS,
    COL_JOBS,
    COL_WARMUP,
    COL_CONGESTED,
    COL_EXCLUSIVE, /* SV_BATCH_REST of them */
    N_COLUMNS = COL_EXCLUSIVE + SV_BATCH_REST
};

static const char *const column_names[N_COLUMNS] = {
    "batch_id",       "worker_id",          "worker_type",        "batch_size",
    "total_ms",       "queue_ms",           "batch_ms",           "submit_ms",
    "scheduling_ms",  "codelet_ms",         "inference_ms",       "callback_ms",
    "model_name",     "request_ids",        "request_arrival_us", "logical_jobs",
    "warmup",         "congested",          "excl_queue_ms",      "excl_batch_ms",
    "excl_submit_ms", "excl_scheduling_ms", "excl_run_ms",        "excl_callback_ms"};

#define NO_COLUMN SIZE_MAX

static void find_columns(const struct csv *c, const char *const *names, size_t n, size_t *column)
{
    for (size_t k = 0; k < n; k++) {
        column[k] = NO_COLUMN;
        for (size_t i = 0; i < c->n && i < CELLS_MAX; i++)
            if (is_word(c->cells[i], names[k]))
                column[k] = i;
    }
}

static int check_columns(const size_t *column, const char *const *names, size_t n,
                         struct sv_err *err)
{
    char missing[200] = "";
    size_t at = 0, n_missing = 0;
    for (size_t k = 0; k < n; k++) {
        if (column[k] != NO_COLUMN)
            continue;
        n_missing++;
        if (at < sizeof missing - 40)
            at += (size_t)snprintf(missing + at, sizeof missing - at, "%s%s", at ? ", " : "",
                                   names[k]);
    }
    return n_missing ? sv_err_set(err, SV_EFORMAT, SV_NO_POS,
                                  "not a summary of batches: no column %s", missing)
                     : 0;
}

/* The window of the input grows until it holds all of it. */
static int read_all(struct sv_input *in, struct csv *c, struct sv_err *err)
{
    int code;
    while ((code = sv_input_need(in, in->len + 1, err)) > 0)
        continue;
    if (code < 0)
        return code;
    *c = (struct csv){.at = (const char *)in->data};
    c->begin = c->at;
    c->end = c->at + in->len;
    if (in->len >= 3 && memcmp(in->data, "\xef\xbb\xbf", 3) == 0)
        c->at += 3;
    return 0;
}

struct reading {
    struct sv_batch_rows *rows;
    struct csv csv;
    size_t column[N_COLUMNS];
    struct sv_report *report;
};

static struct cell cell_of(const struct reading *r, size_t column)
{
    size_t at = r->column[column];
    return at < r->csv.n && at < CELLS_MAX ? r->csv.cells[at] : (struct cell){0};
}

static bool next_item(struct cell *list, struct cell *item)
{
    if (list->len == 0)
        return false;
    const char *semicolon = memchr(list->at, ';', list->len);
    item->at = list->at;
    item->len = semicolon ? (size_t)(semicolon - list->at) : list->len;
    size_t used = item->len + (semicolon != NULL);
    list->at += used;
    list->len -= used;
    return true;
}

/* Requests and arrivals are lists of the same length; where they are not, what has no partner is not known. */
static void read_requests(struct reading *r, struct sv_batch_row *row)
{
    struct cell ids = cell_of(r, COL_REQUESTS), arrivals = cell_of(r, COL_ARRIVALS), id, arrival;
    for (;;) {
        uint64_t number = 0;
        int64_t ns = SV_BATCH_UNKNOWN;
        bool has_id = next_item(&ids, &id), has_arrival = next_item(&arrivals, &arrival);
        if (!has_id && !has_arrival)
            break;
        if (has_id && !read_id(id, &number))
            number = 0;
        if (has_arrival && !read_scaled(arrival, 1e3, &ns))
            ns = SV_BATCH_UNKNOWN;
        if (ns != SV_BATCH_UNKNOWN && (row->arrival_ns == SV_BATCH_UNKNOWN || ns < row->arrival_ns))
            row->arrival_ns = ns;
        sv_batch_request_add(r->rows, number, ns);
        row->n_known++;
    }
    int64_t jobs = 0;
    if (r->column[COL_JOBS] != NO_COLUMN && read_scaled(cell_of(r, COL_JOBS), 1, &jobs) &&
        jobs > 0 && jobs <= UINT32_MAX)
        row->n_requests = (uint32_t)jobs;
    else
        row->n_requests = row->n_known ? row->n_known : row->size;
    if (row->arrival_ns != SV_BATCH_UNKNOWN &&
        __builtin_add_overflow(row->arrival_ns, row->total_ns, &row->end_ns))
        row->end_ns = SV_BATCH_UNKNOWN;
}

/* The name of the column that makes no sense, or NULL. */
static const char *read_row(struct reading *r, struct sv_batch_row *row)
{
    int64_t size, worker;
    struct cell type = cell_of(r, COL_TYPE), model = cell_of(r, COL_MODEL);
    if (!read_id(cell_of(r, COL_ID), &row->id))
        return "batch_id";
    if (!read_scaled(cell_of(r, COL_WORKER), 1, &worker))
        return "worker_id";
    if (!read_scaled(cell_of(r, COL_SIZE), 1, &size) || size < 0 || size > UINT32_MAX)
        return "batch_size";
    if (!read_scaled(cell_of(r, COL_TOTAL), 1e6, &row->total_ns) || row->total_ns < 0)
        return "total_ms";
    for (size_t i = 0; i < SV_N_BATCH_COLUMNS; i++)
        if (!read_scaled(cell_of(r, COL_PHASES + i), 1e6, &row->column_ns[i]) ||
            row->column_ns[i] < 0)
            return sv_batch_column_names[i];
    row->size = (uint32_t)size;
    row->model = sv_dict_str(r->rows->names, model.at ? model.at : "", model.len);
    row->worker = sv_batch_worker_of(r->rows, worker, type.at ? type.at : "", type.len);
    row->is_congested = is_word(cell_of(r, COL_CONGESTED), "true");
    sv_batch_derive_phases(row);
    int64_t phases[SV_BATCH_REST];
    for (size_t i = 0; i < SV_BATCH_REST; i++)
        if (!read_scaled(cell_of(r, COL_EXCLUSIVE + i), 1e6, &phases[i]))
            return NULL; /* derived they stay */
    memcpy(row->phase_ns, phases, sizeof phases);
    fit_phases(row);
    r->rows->has_phases = true;
    return NULL;
}

static void read_line(struct reading *r)
{
    int64_t pos = r->csv.line - r->csv.begin;
    struct sv_batch_rows *b = r->rows;
    if (is_word(cell_of(r, COL_WARMUP), "true"))
        return;
    struct sv_batch_row *row = sv_batch_row_add(b);
    const char *bad = read_row(r, row);
    if (!bad) {
        read_requests(r, row);
        return;
    }
    b->n--;
    struct cell cell = {0};
    for (size_t k = 0; k < N_COLUMNS; k++)
        if (strcmp(column_names[k], bad) == 0)
            cell = cell_of(r, k);
    sv_report_add(r->report, SV_DAMAGE, "row of a batch not understood, left out", 1, pos,
                  "%s is '%.*s'", bad, (int)(cell.len < 40 ? cell.len : 40),
                  cell.at ? cell.at : "");
}

bool sv_batch_rows_probe(const uint8_t *head, size_t n)
{
    struct csv c = {.at = (const char *)head, .begin = (const char *)head};
    size_t column[N_COLUMNS], found = 0;
    c.end = c.at + n;
    if (n >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0)
        c.at += 3;
    if (!next_line(&c))
        return false;
    find_columns(&c, column_names, N_COLUMNS, column);
    for (size_t k = 0; k < COL_REQUIRED; k++)
        found += column[k] != NO_COLUMN;
    return found >= 3 && column[COL_ID] != NO_COLUMN;
}

int sv_batch_rows_read_csv(struct sv_batch_rows *b, struct sv_input *in, struct sv_report *report,
                           struct sv_err *err)
{
    struct reading r = {.rows = b, .report = report};
    int code = read_all(in, &r.csv, err);
    if (code < 0)
        return code;
    if (!next_line(&r.csv))
        return sv_err_set(err, SV_EFORMAT, SV_NO_POS, "the file is empty");
    find_columns(&r.csv, column_names, N_COLUMNS, r.column);
    code = check_columns(r.column, column_names, COL_REQUIRED, err);
    if (code < 0)
        return code;
    b->has_congestion = r.column[COL_CONGESTED] != NO_COLUMN;
    while (next_line(&r.csv))
        read_line(&r);
    sv_input_report(in, report);
    sv_batch_rows_finish(b);
    return 0;
}

int sv_batch_rows_read_metrics(struct sv_batch_rows *b, struct sv_input *in,
                               struct sv_report *report, struct sv_err *err)
{
    static const char *const names[] = {"timestamp_us", "queue_size", "rejected_total"};
    struct csv c;
    size_t column[3];
    int code = read_all(in, &c, err);
    if (code < 0 || !next_line(&c))
        return code;
    find_columns(&c, names, 3, column);
    code = check_columns(column, names, 3, err);
    while (code >= 0 && next_line(&c)) {
        int64_t v[3];
        bool is_good = true;
        for (size_t i = 0; i < 3; i++)
            is_good &= column[i] < c.n && read_scaled(c.cells[column[i]], i ? 1 : 1e3, &v[i]);
        if (!is_good) {
            sv_report_add(report, SV_DAMAGE, "row of metrics not understood, left out", 1,
                          c.line - c.begin, "three numbers were expected");
            continue;
        }
        b->metrics = sv_grow(b->metrics, &b->cap_metrics, b->n_metrics + 1, sizeof *b->metrics);
        b->metrics[b->n_metrics++] = (struct sv_batch_metric){v[0], (double)v[1], (double)v[2]};
    }
    return code;
}
