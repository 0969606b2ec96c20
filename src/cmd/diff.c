/* stave diff: what changed between two traces.
 *
 * Both are loaded with dictionaries of their own; slices are matched by track path, parents and
 * name. Exit code 1 when --fail-over is given and something that counts became slower by more. */
#include "stats/diff.h"

#include "cli/console.h"
#include "cli/rows.h"
#include "cmd/commands.h"
#include "files/load.h"
#include "store/ranks.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

struct diff {
    struct sv_rows_choice to;
    const char *from, *threshold, *alpha, *fail_over, *min_total;
    bool strict, all, ignore_steps, no_index;
    uint64_t top, memory_limit;
};

static int parse_fraction(const char *text, const char *option, double scale, double otherwise,
                          double *out, struct sv_err *err)
{
    *out = otherwise;
    if (!text)
        return 0;
    size_t len = strlen(text);
    double v;
    len -= len && text[len - 1] == '%';
    if (sv_parse_number(text, len, &v) < 0 || v > 1e6)
        return sv_error(err, SV_EUSAGE, "--%s: '%s' is not a number", option, text);
    *out = v * scale;
    return 0;
}

static const char *const names[] = {"state",     "track",     "parents",    "name",
                                    "count_a",   "count_b",   "total_a_ns", "total_b_ns",
                                    "self_a_ns", "self_b_ns", "p50_a_ns",   "p50_b_ns",
                                    "p99_a_ns",  "p99_b_ns",  "change_pct", "p"};
#define N_COLUMNS (sizeof names / sizeof *names)
static const char *const short_names[] = {"state",   "name",    "in",     "count A", "count B",
                                          "total A", "total B", "change", "self A",  "self B",
                                          "p50 A",   "p50 B",   "p"};
#define N_SHORT (sizeof short_names / sizeof *short_names)
/* The columns where the terminal has no room for self times and medians. */
static const uint8_t narrow[] = {0, 1, 2, 3, 4, 5, 6, 7, 12};
#define N_NARROW (sizeof narrow / sizeof *narrow)
#define WIDE     130u /* columns of a terminal that has room for all */

struct texts {
    bool is_narrow;
    char text[N_COLUMNS][32];
    struct sv_buf track, parents, where;
};

static struct sv_cell ns_cell(double ns)
{
    return ns == floor(ns) ? sv_cell_int((int64_t)ns) : sv_cell_real(ns);
}

static struct sv_cell name_cell(const struct sv_trace *t, uint32_t row)
{
    struct sv_text text = sv_dict_text(t->dict, t->slices.name[row]);
    return (struct sv_cell){.type = SV_CELL_TEXT, .text = text.bytes, .len = text.len};
}

static int print_full(struct sv_printer *p, const struct sv_trace *t, uint32_t row,
                      const struct sv_diff_row *r, struct texts *x, struct sv_err *err)
{
    const struct sv_diff_side *a = &r->side[0], *b = &r->side[1];
    bool both = a->count && b->count;
    struct sv_cell cells[N_COLUMNS] = {
        sv_cell_text(sv_diff_state_names[r->state]),
        sv_cell_text(sv_buf_cstr(&x->track)),
        sv_cell_text(sv_buf_cstr(&x->parents)),
        name_cell(t, row),
        sv_cell_int((int64_t)a->count),
        sv_cell_int((int64_t)b->count),
        sv_cell_int(a->total_ns),
        sv_cell_int(b->total_ns),
        sv_cell_int(a->self_ns),
        sv_cell_int(b->self_ns),
        ns_cell(a->p50_ns),
        ns_cell(b->p50_ns),
        ns_cell(a->p99_ns),
        ns_cell(b->p99_ns),
        both ? sv_cell_real(r->change * 100) : sv_cell_null(),
        both ? sv_cell_real(r->p) : sv_cell_null(),
    };
    return p->rows.row(&p->rows, cells, N_COLUMNS, err);
}

static int print_short(struct sv_printer *p, const struct sv_trace *t, uint32_t row,
                       const struct sv_diff_row *r, struct texts *x, struct sv_err *err)
{
    const struct sv_diff_side *a = &r->side[0], *b = &r->side[1];
    bool both = a->count && b->count;
    sv_buf_clear(&x->where);
    sv_buf_add(&x->where, x->track.data, x->track.len);
    if (x->parents.len) {
        sv_buf_str(&x->where, " > ");
        sv_buf_add(&x->where, x->parents.data, x->parents.len);
    }
    snprintf(x->text[7], 32, "%+.1f %%", r->change * 100);
    snprintf(x->text[12], 32, r->p < 0.0001 ? "<0.0001" : "%.4f", r->p);
    struct sv_cell cells[N_SHORT] = {
        sv_cell_text(sv_diff_state_names[r->state]),
        name_cell(t, row),
        sv_cell_text(sv_buf_cstr(&x->where)),
        sv_cell_int((int64_t)a->count),
        sv_cell_int((int64_t)b->count),
        sv_cell_text(sv_human_ns(x->text[5], a->total_ns)),
        sv_cell_text(sv_human_ns(x->text[6], b->total_ns)),
        both ? sv_cell_text(x->text[7]) : sv_cell_null(),
        sv_cell_text(sv_human_ns(x->text[8], a->self_ns)),
        sv_cell_text(sv_human_ns(x->text[9], b->self_ns)),
        sv_cell_text(sv_human_ns(x->text[10], (int64_t)a->p50_ns)),
        sv_cell_text(sv_human_ns(x->text[11], (int64_t)b->p50_ns)),
        both ? sv_cell_text(x->text[12]) : sv_cell_null(),
    };
    for (size_t i = 0; i < N_NARROW && x->is_narrow; i++)
        cells[i] = cells[narrow[i]];
    return p->rows.row(&p->rows, cells, x->is_narrow ? N_NARROW : N_SHORT, err);
}

static int print_head(struct sv_printer *p, bool is_short, bool is_narrow, struct sv_err *err)
{
    const char *few[N_NARROW];
    for (size_t i = 0; i < N_NARROW; i++)
        few[i] = short_names[narrow[i]];
    if (is_narrow)
        return p->rows.head(&p->rows, few, N_NARROW, err);
    return p->rows.head(&p->rows, is_short ? short_names : names, is_short ? N_SHORT : N_COLUMNS,
                        err);
}

static int print_row(struct sv_printer *p, const struct sv_loaded *l, const struct sv_diff_row *r,
                     struct texts *x, bool is_short, struct sv_err *err)
{
    unsigned which = r->side[0].count ? 0 : 1;
    const struct sv_trace *t = l[which].trace;
    uint32_t row = r->side[which].row;
    sv_buf_clear(&x->track);
    sv_buf_clear(&x->parents);
    sv_track_title(t->dict, t->slices.track[row], &x->track);
    sv_diff_parents(t, row, &x->parents);
    return is_short ? print_short(p, t, row, r, x, err) : print_full(p, t, row, r, x, err);
}

static bool has_rows(const struct diff *o, const struct sv_diff *d)
{
    for (size_t i = 0; i < d->n; i++)
        if (o->all || d->rows[i].state != SV_DIFF_SAME)
            return true;
    return false;
}

static int print_rows(const struct diff *o, const struct sv_loaded *l, const struct sv_diff *d,
                      struct sv_err *err)
{
    struct sv_printer *p;
    struct texts x;
    int code = sv_printer_choose(&o->to, &p, err);
    if (code < 0)
        return code;
    bool is_short = p->form == SV_ROWS_TABLE || p->form == SV_ROWS_MARKDOWN;
    if (is_short && !has_rows(o, d))
        return sv_printer_close(p, err);
    sv_buf_init(&x.track, 1u << 16);
    sv_buf_init(&x.parents, 1u << 16);
    sv_buf_init(&x.where, 1u << 18);
    x.is_narrow = p->form == SV_ROWS_TABLE && p->columns && p->columns < WIDE;
    if (x.is_narrow)
        sv_console_note("self times and p50 are left out: they need %u columns", WIDE);
    code = print_head(p, is_short, x.is_narrow, err);
    uint64_t shown = 0;
    for (size_t i = 0; i < d->n && code >= 0 && (!o->top || shown < o->top); i++) {
        if (d->rows[i].state == SV_DIFF_SAME && !o->all)
            continue;
        shown++;
        code = print_row(p, l, &d->rows[i], &x, is_short, err);
    }
    if (code >= 0)
        code = p->rows.end(&p->rows, err);
    int closed = sv_printer_close(p, err);
    sv_buf_fini(&x.track);
    sv_buf_fini(&x.parents);
    sv_buf_fini(&x.where);
    return code < 0 ? code : closed;
}

static void note_summary(const struct sv_diff *d, const struct sv_diff_options *o)
{
    size_t counts[4] = {0};
    char a[32], b[32];
    for (size_t i = 0; i < d->n; i++)
        counts[d->rows[i].state]++;
    sv_console_note("span %s and %s; %zu changed, %zu added, %zu removed, %zu the same",
                    sv_human_ns(a, d->span_ns[0]), sv_human_ns(b, d->span_ns[1]),
                    counts[SV_DIFF_CHANGED], counts[SV_DIFF_ADDED], counts[SV_DIFF_REMOVED],
                    counts[SV_DIFF_SAME]);
    if (d->steps[0] > 1 || d->steps[1] > 1)
        sv_console_note("compared per step: %" PRIu64 " and %" PRIu64 " steps", d->steps[0],
                        d->steps[1]);
    sv_console_note("changed: the count by %.3g %% or more, or the total with p < %.3g "
                    "(Mann-Whitney, two-sided)",
                    o->threshold * 100, o->alpha);
}

/* How many groups became slower than allowed; what is new counts, too. */
static size_t count_failures(const struct sv_diff *d, double limit, double min_ns)
{
    size_t n = 0;
    for (size_t i = 0; i < d->n; i++) {
        const struct sv_diff_row *r = &d->rows[i];
        bool is_large = (double)r->side[1].total_ns >= min_ns;
        n += is_large &&
             ((r->state == SV_DIFF_CHANGED && r->change > limit) || r->state == SV_DIFF_ADDED);
    }
    return n;
}

static int parse(const struct diff *o, struct sv_diff_options *d, double *limit, double *min_ns,
                 struct sv_err *err)
{
    d->ignore_steps = o->ignore_steps;
    int code = parse_fraction(o->threshold, "threshold", 0.01, 0.05, &d->threshold, err);
    if (code >= 0)
        code = parse_fraction(o->alpha, "alpha", 1, 0.01, &d->alpha, err);
    if (code >= 0)
        code = parse_fraction(o->fail_over, "fail-over", 0.01, 0, limit, err);
    if (code >= 0)
        code = parse_fraction(o->min_total, "min-total", 1e6, 0, min_ns, err);
    return code;
}

static int run(void *options, const struct sv_words *operands, struct sv_err *err)
{
    const struct diff *o = options;
    struct sv_diff_options d_options = {0};
    struct sv_loaded l[2] = {0};
    struct sv_diff d = {0};
    double limit, min_ns;
    int code = sv_expect_operands(operands, 2, 2, "two traces", err);
    if (code >= 0)
        code = sv_options_need("min-total", "fail-over", err);
    if (code >= 0)
        code = parse(o, &d_options, &limit, &min_ns, err);
    if (code < 0)
        return code;
    struct sv_load_how how = {.from = o->from,
                              .strict = o->strict,
                              .memory_limit_bytes = o->memory_limit,
                              .index = o->no_index};
    size_t loaded = 0;
    for (; loaded < 2 && code >= 0; loaded++)
        code = sv_load(operands->items[loaded], &how, &l[loaded], err);
    if (code >= 0) {
        sv_diff_make(&d, l[0].trace, l[1].trace, &d_options);
        note_summary(&d, &d_options);
        code = print_rows(o, l, &d, err);
    }
    size_t failures = code >= 0 && o->fail_over ? count_failures(&d, limit, min_ns) : 0;
    if (failures)
        code = sv_error(err, SV_EFOUND,
                        "%zu group%s became slower by more than %.3g %%, or are new", failures,
                        failures == 1 ? "" : "s", limit * 100);
    sv_diff_fini(&d);
    for (size_t i = 0; i < loaded; i++)
        sv_loaded_free(&l[i]);
    return code;
}

static const struct sv_option options[] = {
    {0, "threshold", "PERCENT", SV_OPT_TEXT, offsetof(struct diff, threshold),
     "hide changes of a total that are smaller than this (default 5)", NULL, NULL},
    {0, "alpha", "P", SV_OPT_TEXT, offsetof(struct diff, alpha),
     "hide changes with this p-value or a higher one (default 0.01)", NULL, NULL},
    {0, "fail-over", "PERCENT", SV_OPT_TEXT, offsetof(struct diff, fail_over),
     "exit with 1 if a group is new or became slower by more than this", NULL, NULL},
    {0, "min-total", "MS", SV_OPT_TEXT, offsetof(struct diff, min_total),
     "--fail-over ignores groups with a smaller total in B, in milliseconds", NULL, NULL},
    {0, "no-steps", NULL, SV_OPT_FLAG, offsetof(struct diff, ignore_steps),
     "compare totals even if both traces have steps", NULL, NULL},
    {0, "all", NULL, SV_OPT_FLAG, offsetof(struct diff, all),
     "also show groups that did not change", NULL, NULL},
    {0, "top", "N", SV_OPT_COUNT, offsetof(struct diff, top), "only the first N rows", NULL, NULL},
    SV_ROWS_OPTION(struct diff, "to", to),
    {0, "memory-limit", "BYTES", SV_OPT_BYTES, offsetof(struct diff, memory_limit),
     "stop with an error instead of using more memory than this, per trace", NULL, NULL},
    SV_INDEX_OPTION(struct diff),
    SV_INPUT_OPTIONS(struct diff),
    {0},
};

static const struct sv_example examples[] = {
    {"stave diff before.json after.json", "what changed, the largest first"},
    {"stave diff base.pftrace new.pftrace --fail-over 10 --min-total 5 --to markdown",
     "in a pipeline"},
    {0},
};

const struct sv_command sv_command_diff = {
    .name = "diff",
    .operands = "A B",
    .summary = "compare two traces",
    .description =
        "Matches slices by the path of their track, the names of their parents and "
        "their own name; numbers in track paths (pids, tids) are ignored. For each "
        "group: added, removed, changed or the same; counts, totals, self times, p50, "
        "p99. If both traces have training steps, totals are compared per step. The "
        "Mann-Whitney rank test decides whether durations differ by more than chance. A table "
        "leaves out self times and p50 in a terminal of less than 130 columns.",
    .options = options,
    .examples = examples,
    .lists = sv_format_lists,
    .options_size = sizeof(struct diff),
    .run = run,
};
