/* stave stats: where the time goes, by name, category or track.
 *
 * Loads the trace, computes self times once, then groups. Loss and damage come first, on standard
 * error where they do not disturb a table that is read by a program. */
#include "stats/stats.h"

#include "cli/console.h"
#include "cli/rows.h"
#include "cmd/commands.h"
#include "files/load.h"
#include "stats/self.h"
#include "store/ranks.h"
#include "subjects/subject.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct stats {
    struct sv_rows_choice to;
    const char *from, *group_by, *sort;
    struct sv_words filter;
    struct sv_range range;
    bool strict, assume, counters, ns, no_index;
    uint64_t top, memory_limit;
};

static int parse_group(const char *text, unsigned *by, struct sv_err *err)
{
    static const struct {
        const char *word;
        unsigned bit;
    } words[] = {
        {"name", SV_BY_NAME}, {"cat", SV_BY_CAT}, {"category", SV_BY_CAT}, {"track", SV_BY_TRACK}};
    *by = 0;
    for (const char *at = text; *at;) {
        size_t len = strcspn(at, ",");
        unsigned bit = 0;
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (strlen(words[i].word) == len && strncmp(at, words[i].word, len) == 0)
                bit = words[i].bit;
        if (!bit)
            return sv_error(err, SV_EUSAGE, "--group-by: '%.*s' is not name, cat or track",
                            (int)len, at);
        *by |= bit;
        at += len + (at[len] == ',');
    }
    return *by ? 0 : sv_error(err, SV_EUSAGE, "--group-by: the list is empty");
}

static void note_losses(const struct sv_trace *t)
{
    sv_report_losses(t);
    if (t->unmatched_ends)
        sv_console_note("%" PRIu64 " ends without a begin are ignored", t->unmatched_ends);
    if (t->unfinished)
        sv_console_note("%" PRIu64
                        " slices have no end: they are counted until the end of the trace",
                        t->unfinished);
}

/* Times for people have units, times for programs are whole nanoseconds. */
struct cells {
    struct sv_cell cells[16];
    char text[16][32];
    size_t n;
    bool is_human;
};

static void add_ns(struct cells *c, double ns)
{
    if (c->is_human)
        c->cells[c->n] = sv_cell_text(sv_human_ns(c->text[c->n], (int64_t)ns));
    else
        c->cells[c->n] = ns == (double)(int64_t)ns ? sv_cell_int((int64_t)ns)
                                                   : sv_cell_real(round(ns * 1000) / 1000);
    c->n++;
}

static void add_cell(struct cells *c, struct sv_cell cell)
{
    c->cells[c->n++] = cell;
}

static struct sv_cell str_cell(const struct sv_dict *d, sv_str s)
{
    struct sv_text text = sv_dict_text(d, s);
    return s ? (struct sv_cell){.type = SV_CELL_TEXT, .text = text.bytes, .len = text.len}
             : sv_cell_null();
}

static int print_stats(const struct stats *o, const struct sv_trace *t, const struct sv_stats *s,
                       unsigned by, struct sv_printer *p, struct sv_err *err)
{
    const char *names[16];
    size_t n = 0;
    static const char *const plain[] = {"count",  "total_ns", "self_ns", "min_ns", "mean_ns",
                                        "p50_ns", "p90_ns",   "p99_ns",  "max_ns"};
    static const char *const human[] = {"count", "total", "self", "min", "mean",
                                        "p50",   "p90",   "p99",  "max"};
    bool is_human = !o->ns && (p->form == SV_ROWS_TABLE || p->form == SV_ROWS_MARKDOWN);
    if (by & SV_BY_TRACK)
        names[n++] = "track";
    if (by & SV_BY_CAT)
        names[n++] = "category";
    if (by & SV_BY_NAME)
        names[n++] = "name";
    for (size_t i = 0; i < 9; i++)
        names[n++] = is_human ? human[i] : plain[i];
    int code = p->rows.head(&p->rows, names, n, err);
    struct sv_buf path;
    sv_buf_init(&path, 1u << 16);
    size_t rows = o->top && o->top < s->n ? (size_t)o->top : s->n;
    for (size_t i = 0; i < rows && code >= 0; i++) {
        const struct sv_stat *k = &s->groups[i];
        struct cells c = {.is_human = is_human};
        sv_buf_clear(&path);
        if (by & SV_BY_TRACK) {
            sv_track_title(t->dict, k->track, &path);
            add_cell(&c, sv_cell_text(sv_buf_cstr(&path)));
        }
        if (by & SV_BY_CAT)
            add_cell(&c, str_cell(t->dict, k->cat));
        if (by & SV_BY_NAME)
            add_cell(&c, str_cell(t->dict, k->name));
        add_cell(&c, sv_cell_int((int64_t)k->count));
        add_ns(&c, (double)k->total_ns);
        add_ns(&c, (double)k->self_ns);
        add_ns(&c, (double)k->min_ns);
        add_ns(&c, (double)k->total_ns / (double)k->count);
        add_ns(&c, k->p50_ns);
        add_ns(&c, k->p90_ns);
        add_ns(&c, k->p99_ns);
        add_ns(&c, (double)k->max_ns);
        code = p->rows.row(&p->rows, c.cells, c.n, err);
    }
    sv_buf_fini(&path);
    if (code >= 0)
        code = p->rows.end(&p->rows, err);
    if (code >= 0 && rows < s->n)
        sv_console_note("%zu more rows; --top 0 shows all", s->n - rows);
    return code;
}

/* For people: bytes with a unit, other values with six digits. */
static void add_value(struct cells *c, double v, bool is_bytes)
{
    char *text = c->text[c->n];
    if (!c->is_human)
        c->cells[c->n] = sv_cell_real(v);
    else if (is_bytes && v >= 0 && v < 1e18)
        c->cells[c->n] = sv_cell_text(sv_human_bytes(text, (uint64_t)v));
    else
        snprintf(text, sizeof c->text[0], "%.6g", v), c->cells[c->n] = sv_cell_text(text);
    c->n++;
}

static int print_counters(const struct sv_trace *t, const struct sv_select *select,
                          struct sv_printer *p, struct sv_err *err)
{
    static const char *const names[] = {"counter", "unit", "count", "first",
                                        "last",    "min",  "mean",  "max"};
    size_t n;
    struct sv_counter_stat *stats = sv_counter_stats(t, select, &n);
    struct sv_buf path;
    sv_buf_init(&path, 1u << 16);
    bool is_human = p->form == SV_ROWS_TABLE || p->form == SV_ROWS_MARKDOWN;
    int code = n ? p->rows.head(&p->rows, names, 8, err) : 0;
    for (size_t i = 0; i < n && code >= 0; i++) {
        const struct sv_counter_stat *c = &stats[i];
        sv_buf_clear(&path);
        sv_track_title(t->dict, c->track, &path);
        sv_str unit = t->dict->tracks[c->track].unit;
        bool is_bytes = strcmp(sv_dict_text(t->dict, unit).bytes, "bytes") == 0;
        struct cells k = {.is_human = is_human};
        add_cell(&k, sv_cell_text(sv_buf_cstr(&path)));
        add_cell(&k, str_cell(t->dict, unit));
        add_cell(&k, sv_cell_int((int64_t)c->count));
        const double values[] = {c->first, c->last, c->min, c->mean, c->max};
        for (size_t v = 0; v < sizeof values / sizeof *values; v++)
            add_value(&k, values[v], is_bytes);
        code = p->rows.row(&p->rows, k.cells, k.n, err);
    }
    if (code >= 0 && n)
        code = p->rows.end(&p->rows, err);
    sv_buf_fini(&path);
    free(stats);
    return code;
}

static int run_loaded(const struct stats *o, const struct sv_trace *t, unsigned by,
                      struct sv_err *err)
{
    struct sv_select select;
    struct sv_stats s = {0};
    struct sv_printer *p = NULL;
    note_losses(t);
    int code = sv_select_init(&select, t, o->filter.items, o->filter.n, err);
    if (code >= 0)
        code = sv_printer_choose(&o->to, &p, err);
    if (code >= 0 && !o->counters) {
        int64_t *self = sv_self_times(t);
        sv_stats_make(&s, t, self, o->filter.n ? &select : NULL, by);
        free(self);
        code = sv_stats_sort(&s, t->dict, o->sort ? o->sort : "total", err);
        if (code >= 0)
            code = print_stats(o, t, &s, by, p, err);
    }
    if (code >= 0 && (o->counters || p->form == SV_ROWS_TABLE || p->form == SV_ROWS_MARKDOWN))
        code = print_counters(t, &select, p, err);
    int closed = sv_printer_close(p, err);
    sv_stats_fini(&s);
    sv_select_fini(&select);
    return code < 0 ? code : closed;
}

static int run(void *options, const struct sv_words *operands, struct sv_err *err)
{
    struct stats *o = options;
    struct sv_loaded l;
    unsigned by;
    static const char *const of_slices[] = {"group-by", "sort", "top", "ns"};
    int code = sv_expect_operands(operands, 1, 100, "trace", err);
    for (size_t i = 0; i < sizeof of_slices / sizeof *of_slices && code >= 0; i++)
        code = sv_options_either("counters", of_slices[i], err);
    if (code >= 0)
        code = parse_group(o->group_by ? o->group_by : "name", &by, err);
    if (code < 0)
        return code;
    code =
        sv_load_traces(operands->items, operands->n, &(struct sv_load_how)SV_LOAD_HOW(o), &l, err);
    if (code >= 0)
        code = run_loaded(o, l.trace, by, err);
    sv_loaded_free(&l);
    sv_words_free(&o->filter);
    return code;
}

static const struct sv_option options[] = {
    {0, "group-by", "WHAT", SV_OPT_TEXT, offsetof(struct stats, group_by),
     "name (default), cat, track, or several joined by commas", "name cat track", NULL},
    {0, "filter", "TERM", SV_OPT_LIST, offsetof(struct stats, filter),
     "only slices with name=GLOB, cat=GLOB, track=GLOB, dur>=TIME or dur<=TIME; may be given "
     "several times; states and waits of threads count only if name, cat or track asks for them",
     NULL, NULL},
    {0, "sort", "COLUMN", SV_OPT_TEXT, offsetof(struct stats, sort),
     "count, total (default), self, min, mean, p50, p90, p99, max or name",
     "count total self min mean p50 p90 p99 max name", NULL},
    {0, "top", "N", SV_OPT_COUNT, offsetof(struct stats, top), "only the first N rows", NULL, NULL},
    {0, "counters", NULL, SV_OPT_FLAG, offsetof(struct stats, counters),
     "counters instead of slices", NULL, NULL},
    {0, "ns", NULL, SV_OPT_FLAG, offsetof(struct stats, ns),
     "print times in nanoseconds in tables, too", NULL, NULL},
    SV_ROWS_OPTION(struct stats, "to", to),
    SV_MEMORY_OPTION(struct stats),
    SV_INDEX_OPTION(struct stats),
    SV_RANGE_OPTIONS(struct stats),
    SV_INPUTS_OPTIONS(struct stats),
    {0},
};

static const struct sv_example examples[] = {
    {"stave stats trace.pftrace --top 20", "the twenty names with the largest total time"},
    {"stave stats trace.json --group-by cat,name --sort self --to csv",
     "self time, for a spreadsheet"},
    {"stave stats trace.json --filter 'cat=kernel' --group-by track", "per GPU stream"},
    {0},
};

const struct sv_command sv_command_stats = {
    .name = "stats",
    .operands = "TRACE…",
    .summary = "sum up slices by name, category or track, and counters",
    .description = "Prints for each group of slices: count, total time, self time (without its "
                   "children), minimum, mean, p50, p90, p99 and maximum. Percentiles are "
                   "interpolated. Slices without an end are counted until the end of the trace; "
                   "instants are not counted. In tables counters follow the slices; --counters "
                   "prints only counters. The mean of a counter is weighted by time.\n\n"
                   "Loss and damage are reported first, on standard error.",
    .options = options,
    .examples = examples,
    .lists = sv_format_lists,
    .options_size = sizeof(struct stats),
    .run = run,
};
