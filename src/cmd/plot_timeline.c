/* stave plot timeline: what the user asked for, and the zoom to a slice by its name. */
#include "cmd/first_rows.h"
#include "cmd/plot.h"

#include "core/base/glob.h"
#include "plot/timeline.h"
#include "subjects/io/bands.h"
#include "why/steps.h"

#include <stdlib.h>
#include <string.h>

#define ARROWS_DEFAULT 40u

/* ---- what is shown ---- */

static const struct {
    const char *name;
    unsigned rows;
} row_words[] = {
    {"cpu", SV_BANDS_CPU}, {"gpu", SV_BANDS_GPU}, {"disk", SV_BANDS_DISK},
    {"io", SV_BANDS_IO},   {"app", SV_ROWS_APP},  {"tracks", SV_ROWS_TRACKS},
};
#define N_ROW_WORDS (sizeof row_words / sizeof *row_words)

static int parse_row_word(const char *word, size_t len, unsigned *rows, struct sv_err *err)
{
    const char *names[N_ROW_WORDS];
    char text[32] = "";
    for (size_t i = 0; i < N_ROW_WORDS; i++) {
        names[i] = row_words[i].name;
        if (strlen(names[i]) == len && memcmp(names[i], word, len) == 0) {
            *rows |= row_words[i].rows;
            return 0;
        }
    }
    memcpy(text, word, len < sizeof text - 1 ? len : sizeof text - 1);
    const char *near = sv_nearest(text, names, N_ROW_WORDS);
    return sv_error(err, SV_EUSAGE,
                    "--rows: unknown rows '%s'%s%s%s; give cpu, gpu, disk, io, app or tracks, "
                    "separated by commas",
                    text, near ? ", perhaps '" : "", near ? near : "", near ? "'" : "");
}

/* Words, or a number: how many rows at most, as before there were words. */
static int parse_rows(const char *text, struct sv_plot_timeline *o, struct sv_err *err)
{
    uint64_t n;
    if (!text)
        return 0;
    if (sv_parse_count(text, &n) >= 0) {
        o->rows_max = (size_t)n;
        return 0;
    }
    for (const char *word = text;; word++) {
        size_t len = strcspn(word, ",");
        int code = parse_row_word(word, len, &o->rows, err);
        word += len;
        if (code < 0 || !*word)
            return code;
    }
}

static int parse_group(const char *text, enum sv_io_grouping *grouping, struct sv_err *err)
{
    static const char *const names[] = {
        [SV_GROUP_PROCESS] = "process", [SV_GROUP_ROLE] = "role", [SV_GROUP_ALL] = "all"};
    for (size_t i = 0; text && i < 3; i++)
        if (strcmp(text, names[i]) == 0) {
            *grouping = (enum sv_io_grouping)i;
            return 0;
        }
    return text ? sv_error(err, SV_EUSAGE, "--group: '%s' is not process, role or all", text) : 0;
}

/* ---- the zoom ---- */

/* The n-th slice (from 1) of a name in the order of time. */
struct wanted {
    const struct sv_trace *trace;
    bool *is_meant; /* by string */
    uint64_t number;
};

static bool *meant_strings(const struct sv_trace *t, const char *name, size_t len, bool *is_any)
{
    const struct sv_dict *d = t->dict;
    char *glob = sv_alloc(len + 1);
    bool *is_meant = sv_alloc((size_t)d->n_strings + 1);
    memcpy(glob, name, len);
    is_meant[sv_dict_find_str(d, name, len)] = true;
    for (sv_str s = 1; s < d->n_strings && strpbrk(glob, "*?["); s++)
        is_meant[s] |= sv_glob_match(glob, sv_dict_text(d, s).bytes, sv_dict_text(d, s).len);
    is_meant[0] = false;
    *is_any = false;
    for (uint64_t row = 0; row < t->slices.n && !*is_any; row++)
        *is_any = is_meant[t->slices.name[row]];
    free(glob);
    return is_meant;
}

struct found {
    int64_t ts_ns;
    uint32_t row;
};

static int by_time(const void *a, const void *b)
{
    const struct found *x = a, *y = b;
    if (x->ts_ns != y->ts_ns)
        return x->ts_ns < y->ts_ns ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

static int find_nth(const struct wanted *w, const char *what, uint32_t *row, struct sv_err *err)
{
    const struct sv_trace *t = w->trace;
    size_t n = 0, cap = 0;
    struct found *rows = NULL;
    int code = 0;
    for (uint64_t i = 0; i < t->slices.n; i++)
        if (w->is_meant[t->slices.name[i]])
            SV_APPEND(rows, n, cap) = (struct found){t->slices.ts_ns[i], (uint32_t)i};
    if (w->number > n) {
        code = sv_error(err, SV_EUSAGE, "--around: '%s' occurs only %zu time%s", what, n,
                        n == 1 ? "" : "s");
    } else {
        qsort(rows, n, sizeof *rows, by_time);
        *row = rows[w->number - 1].row;
    }
    free(rows);
    return code;
}

/* Of steps the number is that which `steps` and the viewer show. False: these are no steps. */
static bool find_step(const struct wanted *w, const char *what, uint32_t *row, int *code,
                      struct sv_err *err)
{
    struct sv_steps steps;
    bool are_steps = false;
    sv_steps_find(&steps, w->trace, NULL);
    *code = SV_EUSAGE;
    for (size_t i = 0; i < steps.n && !steps.has_no_markers && *code < 0; i++) {
        if (!w->is_meant[w->trace->slices.name[steps.steps[i].row]])
            continue;
        are_steps = true;
        *row = steps.steps[i].row;
        *code = (uint64_t)steps.steps[i].number == w->number ? 0 : SV_EUSAGE;
    }
    if (are_steps && *code < 0)
        sv_error(err, SV_EUSAGE, "--around: '%s': no step has this number (stave steps)", what);
    sv_steps_fini(&steps);
    return are_steps;
}

/* "step 7", "load batch#3", "ProfilerStep#*#2": the whole text is a name first, only then a number
 * is taken off its end. */
static int find_around(const struct sv_plot *p, uint32_t *row, struct sv_err *err)
{
    const char *text = p->o->around, *hash = strrchr(text, '#');
    bool is_any;
    struct wanted w = {.trace = p->trace, .number = 1};
    w.is_meant = meant_strings(p->trace, text, strlen(text), &is_any);
    uint64_t number;
    int code = 0;
    bool has_step = false;
    if (!is_any && hash && sv_parse_count(hash + 1, &number) >= 0) {
        free(w.is_meant);
        w.number = number;
        w.is_meant = meant_strings(p->trace, text, (size_t)(hash - text), &is_any);
        has_step = is_any && find_step(&w, text, row, &code, err);
        is_any = is_any && (has_step || number);
    }
    if (!is_any)
        code = sv_plot_no_such_slice(p, text, err);
    else if (!has_step)
        code = find_nth(&w, text, row, err);
    free(w.is_meant);
    return code;
}

static int64_t clamp(double ns)
{
    return ns <= (double)INT64_MIN ? INT64_MIN : ns >= 9.2e18 ? INT64_MAX : (int64_t)ns;
}

/* A share of the slice (20%) or a time (5ms). */
static int parse_margin(const char *text, double dur_ns, double *margin_ns, struct sv_err *err)
{
    struct sv_moment m;
    double percent;
    *margin_ns = 0.25 * dur_ns;
    if (!text)
        return 0;
    size_t len = strlen(text);
    if (text[len - 1] == '%' && sv_parse_number(text, len - 1, &percent) >= 0 && percent <= 1e6) {
        *margin_ns = percent / 100 * dur_ns;
        return 0;
    }
    if (*text == '@' || sv_parse_moment(text, strlen(text), &m) < 0 || m.ns < 0)
        return sv_error(err, SV_EUSAGE,
                        "--margin: '%s' is neither a share such as 20%% nor a time such as 5ms",
                        text);
    *margin_ns = (double)m.ns;
    return 0;
}

int sv_plot_zoom(struct sv_plot *p, struct sv_err *err)
{
    const struct sv_trace *t = p->trace;
    uint32_t row = 0;
    double margin;
    if (!p->o->around)
        return p->o->margin ? sv_error(err, SV_EUSAGE, "--margin needs --around NAME") : 0;
    if (p->is_zoomed)
        return sv_error(err, SV_EUSAGE, "--around or a window (--time, --from, --to), not both");
    int code = find_around(p, &row, err);
    if (code < 0)
        return code;
    int64_t from = t->slices.ts_ns[row], to = sv_trace_end_ns(t, row);
    double dur = (double)to - (double)from;
    if (dur <= 0) /* an instant: a hundredth of the trace around it */
        dur = ((double)t->last_ns - (double)t->first_ns) / 100;
    code = parse_margin(p->o->margin, dur, &margin, err);
    if (code < 0)
        return code;
    p->from_ns = clamp((double)from - margin);
    p->to_ns = clamp((double)to + margin + 1);
    p->from_ns = p->from_ns > t->first_ns ? p->from_ns : t->first_ns;
    p->to_ns = t->last_ns < INT64_MAX && p->to_ns > t->last_ns ? t->last_ns + 1 : p->to_ns;
    if (p->to_ns <= p->from_ns)
        p->to_ns = p->from_ns < INT64_MAX ? p->from_ns + 1 : p->from_ns;
    return 0;
}

int sv_plot_timeline(struct sv_plot *p, struct sv_err *err)
{
    const struct sv_plot_options *o = p->o;
    bool has_window = p->is_zoomed || o->around;
    struct sv_plot_timeline timeline = {.frame = p->frame,
                                        .io = &sv_io_bands,
                                        .from_ns = has_window ? p->from_ns : 0,
                                        .to_ns = has_window ? p->to_ns : 0,
                                        .processes_max = o->top < 200 ? (size_t)o->top : 200,
                                        .arrows_max = ARROWS_DEFAULT,
                                        .only_busiest = o->top > 0,
                                        .first_rows = sv_first_rows,
                                        .order = o->order};
    _Static_assert(SV_EXPLAIN_ROWS <= SV_FIRST_ROWS, "a picture has space for them");
    int code = parse_rows(o->rows, &timeline, err);
    if (code >= 0)
        code = parse_group(o->group, &timeline.grouping, err);
    if (code >= 0)
        code = sv_check_order(o->order, err);
    if (code < 0)
        return code;
    if (o->max_rows)
        timeline.rows_max = o->max_rows;
    if (o->top)
        timeline.rows_max = o->top;
    if (o->no_arrows || sv_option_is_given("arrows"))
        timeline.arrows_max = o->no_arrows ? 0 : (size_t)o->arrows;
    if (sv_timeline_draw(p->picture, p->trace, &timeline) == 0)
        return sv_error(err, SV_EFOUND,
                        timeline.rows ? "the trace has nothing for these rows in that window"
                                      : "no events in that window");
    return 0;
}
