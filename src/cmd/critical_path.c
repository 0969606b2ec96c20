/* stave critical-path: what a slice had to wait for, segment by segment. */
#include "why/critical_path.h"

#include "cli/console.h"
#include "cli/rows.h"
#include "cmd/commands.h"
#include "core/base/glob.h"
#include "core/base/mem.h"
#include "core/base/sat.h"
#include "files/load.h"
#include "stats/select.h"
#include "store/index.h"
#include "store/ranks.h"
#include "subjects/io/words.h"

#include <stdlib.h>
#include <string.h>

struct critical_path {
    const char *from_format, *from, *to;
    struct sv_rows_choice form;
    bool strict, assume, summary, no_index;
    uint64_t memory_limit;
};

/* "id:17" or a glob: the first slice of that name for --from, the last to end for --to. */
static int find_slice(const struct sv_trace *t, struct sv_index *x, const char *what, bool is_last,
                      const char *option, uint32_t *row, struct sv_err *err)
{
    *row = SV_NO_ROW;
    if (strncmp(what, "id:", 3) == 0) {
        uint64_t id;
        if (sv_parse_count(what + 3, &id) >= 0)
            *row = sv_index_row(x, id);
    } else {
        bool *is_named = sv_alloc((size_t)t->dict->n_strings + 1);
        for (sv_str s = 1; s < t->dict->n_strings; s++) {
            struct sv_text text = sv_dict_text(t->dict, s);
            is_named[s] = sv_glob_match(what, text.bytes, text.len);
        }
        for (uint32_t i = 0; i < t->slices.n; i++) {
            if (!is_named[t->slices.name[i]] || t->slices.kind[i] != SV_SLICE)
                continue;
            bool is_better = *row == SV_NO_ROW ||
                             (is_last ? sv_trace_end_ns(t, i) > sv_trace_end_ns(t, *row)
                                      : t->slices.ts_ns[i] < t->slices.ts_ns[*row]);
            if (is_better)
                *row = i;
        }
        free(is_named);
    }
    return *row != SV_NO_ROW ? 0
                             : sv_error(err, SV_EUSAGE,
                                        "--%s: no slice matches '%s' (give a name, a glob or id:N)",
                                        option, what);
}

/* The slice that ends last; system calls, states and block requests count only where there are no
 * others. */
static uint32_t last_slice(const struct sv_trace *t)
{
    sv_str call = sv_dict_find_str(t->dict, SV_CAT_SYSCALL, strlen(SV_CAT_SYSCALL)),
           block = sv_dict_find_str(t->dict, SV_CAT_BLOCK, strlen(SV_CAT_BLOCK));
    struct sv_meanwhile states = sv_meanwhile_of(t->dict);
    uint32_t best = SV_NO_ROW, best_call = SV_NO_ROW;
    for (uint32_t i = 0; i < t->slices.n; i++) {
        sv_str cat = t->slices.cat[i];
        bool is_below = (cat && (cat == call || cat == block)) || sv_is_meanwhile(&states, cat);
        uint32_t *to = is_below ? &best_call : &best;
        if (t->slices.kind[i] == SV_SLICE &&
            (*to == SV_NO_ROW || sv_trace_end_ns(t, i) > sv_trace_end_ns(t, *to)))
            *to = i;
    }
    return best != SV_NO_ROW ? best : best_call;
}

static const char *kind_name(const struct sv_segment *s)
{
    static const char *const names[] = {"run", "wait", "idle"};
    return names[s->kind];
}

static struct sv_cell ns_cell(char text[32], int64_t ns, bool is_human)
{
    return is_human ? sv_cell_text(sv_human_ns(text, ns)) : sv_cell_int(ns);
}

/* The file of a call; null: none is known. */
static struct sv_cell path_cell(const struct sv_trace *t, sv_str key, uint32_t row)
{
    struct sv_arg a;
    bool found = key && row != SV_NO_ROW && sv_trace_arg(t, t->slices.args[row], key, &a);
    return found && a.type == SV_ARG_TEXT
               ? (struct sv_cell){.type = SV_CELL_TEXT, .text = a.text, .len = a.size}
               : sv_cell_null();
}

static int print_path(struct sv_printer *p, const struct sv_trace *t, struct sv_index *x,
                      const struct sv_path *path, struct sv_err *err)
{
    bool is_human = p->form == SV_ROWS_TABLE || p->form == SV_ROWS_MARKDOWN;
    const char *const names[] = {is_human ? "start" : "start_ns",
                                 is_human ? "dur" : "dur_ns",
                                 "kind",
                                 "name",
                                 "track",
                                 "slice_id",
                                 "via",
                                 "for",
                                 "path",
                                 "class"};
    enum { N = sizeof names / sizeof *names };
    char start[32], dur[32];
    struct sv_buf track;
    sv_str key = sv_dict_find_str(t->dict, SV_WAIT_PATH, strlen(SV_WAIT_PATH));
    sv_buf_init(&track, 1u << 16);
    int code = p->rows.head(&p->rows, names, N, err);
    for (size_t i = 0; i < path->n && code >= 0; i++) {
        const struct sv_segment *s = &path->segments[i];
        bool has_row = s->row != SV_NO_ROW;
        struct sv_text name = sv_dict_text(t->dict, has_row ? t->slices.name[s->row] : 0);
        sv_buf_clear(&track);
        sv_track_title(t->dict, s->track, &track);
        struct sv_cell cells[N] = {
            ns_cell(start, sv_sat_sub(s->ts_ns, t->first_ns), is_human),
            ns_cell(dur, s->dur_ns, is_human),
            sv_cell_text(kind_name(s)),
            has_row ? (struct sv_cell){.type = SV_CELL_TEXT, .text = name.bytes, .len = name.len}
                    : sv_cell_null(),
            sv_cell_text(sv_buf_cstr(&track)),
            has_row ? sv_cell_int(sv_index_id(x, s->row)) : sv_cell_null(),
            sv_cell_text(s->by_flow    ? "flow"
                         : s->by_waker ? "waker"
                                       : NULL),
            sv_cell_text(s->reason ? sv_wait_reason_name(s->reason) : NULL),
            path_cell(t, key, s->row),
            sv_cell_text(s->class < SV_N_WHY_CLASSES ? sv_why_class_names[s->class] : NULL),
        };
        code = p->rows.row(&p->rows, cells, N, err);
    }
    sv_buf_fini(&track);
    return code < 0 ? code : p->rows.end(&p->rows, err);
}

/* Time on the path by kind and name. */
struct sum {
    enum sv_segment_kind kind;
    enum sv_wait_reason reason;
    sv_str name;
    int64_t ns;
    uint64_t n;
};

static int by_time(const void *a, const void *b)
{
    const struct sum *x = a, *y = b;
    if (x->ns != y->ns)
        return x->ns > y->ns ? -1 : 1;
    return x->name < y->name ? -1 : x->name > y->name;
}

static int by_name(const void *a, const void *b)
{
    const struct sum *x = a, *y = b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->reason != y->reason)
        return x->reason < y->reason ? -1 : 1;
    return x->name < y->name ? -1 : x->name > y->name;
}

static int print_summary(struct sv_printer *p, const struct sv_trace *t, const struct sv_path *path,
                         struct sv_err *err)
{
    bool is_human = p->form == SV_ROWS_TABLE || p->form == SV_ROWS_MARKDOWN;
    const char *const names[] = {"kind",    "name", "segments", is_human ? "dur" : "dur_ns",
                                 "percent", "for"};
    char dur[32];
    struct sum *sums = sv_alloc((path->n + 1) * sizeof *sums);
    size_t n = 0;
    int64_t all = 0;
    for (size_t i = 0; i < path->n; i++) {
        const struct sv_segment *s = &path->segments[i];
        sums[i] = (struct sum){s->kind, s->reason, s->row == SV_NO_ROW ? 0 : t->slices.name[s->row],
                               s->dur_ns, 1};
        all = sv_sat_add(all, s->dur_ns);
    }
    qsort(sums, path->n, sizeof *sums, by_name);
    for (size_t i = 0; i < path->n; i++) {
        if (n && by_name(&sums[n - 1], &sums[i]) == 0) {
            sums[n - 1].ns += sums[i].ns;
            sums[n - 1].n++;
        } else {
            sums[n++] = sums[i];
        }
    }
    qsort(sums, n, sizeof *sums, by_time);
    int code = p->rows.head(&p->rows, names, 6, err);
    for (size_t i = 0; i < n && code >= 0; i++) {
        struct sv_text name = sv_dict_text(t->dict, sums[i].name);
        struct sv_segment kind = {.kind = sums[i].kind};
        int64_t permille = all ? (int64_t)(1000.0 * (double)sums[i].ns / (double)all) : 0;
        struct sv_cell cells[6] = {
            sv_cell_text(kind_name(&kind)),
            sums[i].name
                ? (struct sv_cell){.type = SV_CELL_TEXT, .text = name.bytes, .len = name.len}
                : sv_cell_null(),
            sv_cell_int((int64_t)sums[i].n),
            ns_cell(dur, sums[i].ns, is_human),
            sv_cell_real((double)permille / 10),
            sv_cell_text(sums[i].reason ? sv_wait_reason_name(sums[i].reason) : NULL)};
        code = p->rows.row(&p->rows, cells, 6, err);
    }
    free(sums);
    return code < 0 ? code : p->rows.end(&p->rows, err);
}

static int run_loaded(const struct critical_path *o, const struct sv_trace *t, struct sv_err *err)
{
    struct sv_index *x = sv_index_new(t);
    struct sv_path path = {0};
    struct sv_printer *p = NULL;
    uint32_t from = SV_NO_ROW, to = last_slice(t);
    int code = 0;
    if (to == SV_NO_ROW)
        code = sv_error(err, SV_EFOUND, "the trace has no slices");
    if (code >= 0 && o->from)
        code = find_slice(t, x, o->from, false, "from", &from, err);
    if (code >= 0 && o->to)
        code = find_slice(t, x, o->to, true, "to", &to, err);
    if (code >= 0 && from != SV_NO_ROW && t->slices.ts_ns[from] >= sv_trace_end_ns(t, to))
        code = sv_error(err, SV_EUSAGE, "the slice of --from begins after the slice of --to ends");
    if (code >= 0)
        code = sv_printer_choose(&o->form, &p, err);
    if (code >= 0) {
        sv_critical_path(&path, t, from, t->first_ns, to);
        if (!path.is_complete)
            sv_console_note("the path does not contain the slice of --from: at that time it is on "
                            "another track");
        code = o->summary ? print_summary(p, t, &path, err) : print_path(p, t, x, &path, err);
    }
    int closed = sv_printer_close(p, err);
    sv_path_fini(&path);
    sv_index_free(x);
    return code < 0 ? code : closed;
}

static int run(void *options, const struct sv_words *operands, struct sv_err *err)
{
    const struct critical_path *o = options;
    struct sv_loaded l;
    int code = sv_expect_operands(operands, 1, 100, "trace", err);
    if (code < 0)
        return code;
    code = sv_load_traces(operands->items, operands->n,
                          &(struct sv_load_how){.from = o->from_format,
                                                .strict = o->strict,
                                                .assume = o->assume,
                                                .memory_limit_bytes = o->memory_limit,
                                                .index = o->no_index},
                          &l, err);
    if (code >= 0)
        code = run_loaded(o, l.trace, err);
    sv_loaded_free(&l);
    return code;
}

static const struct sv_option options[] = {
    {0, "from", "SLICE", SV_OPT_TEXT, offsetof(struct critical_path, from),
     "where the path begins: a name or glob (its first slice) or id:N (default: the start of the "
     "trace)",
     NULL, NULL},
    {0, "to", "SLICE", SV_OPT_TEXT, offsetof(struct critical_path, to),
     "the slice to explain: a name or glob (its last slice) or id:N (default: the slice that ends "
     "last, without system calls)",
     NULL, NULL},
    {0, "summary", NULL, SV_OPT_FLAG, offsetof(struct critical_path, summary),
     "time on the path by name instead of every segment", NULL, NULL},
    SV_ROWS_OPTION(struct critical_path, "form", form),
    SV_MEMORY_OPTION(struct critical_path),
    SV_INDEX_OPTION(struct critical_path),
    SV_ASSUME_OPTION(struct critical_path),
    SV_INPUT_OPTIONS_AS(struct critical_path, "input-format", from_format),
    {0},
};

static const struct sv_example examples[] = {
    {"stave critical-path run.pftrace --from 'ProfilerStep#3' --to 'ProfilerStep#3'", "one step"},
    {"stave critical-path run.pftrace --to 'response*' --summary",
     "what the last response waited for"},
    {0},
};

const struct sv_command sv_command_critical_path = {
    .name = "critical-path",
    .operands = "TRACE… [--from SLICE] [--to SLICE]",
    .summary = "show what a slice had to wait for",
    .description =
        "What had to happen, one thing after the other, for a slice to end when it did. The "
        "segments add up to the time between both ends.\n\n"
        "Where states or system calls of the slice's thread were recorded, the segments are the "
        "ledger's (docs/why.md): what the thread did, and while it waited for another one, what "
        "that one did (via waker, or flow). class says what the thread of the slice had or waited "
        "for, kind and for what the track of the segment did: run, or wait with its reason. The "
        "classes add up to what 'stave report wait' and the SQL table why say of the same "
        "time.\n\n"
        "On other tracks, slices, flows and devices say it, backwards from the end: through nested "
        "slices, along the flow into each slice to the slice where the flow begins, or to the "
        "slice that ended last on the same track if that was later. Within another slice the flow "
        "is followed unless a slice began there after the origin of the flow ended. kind is run (a "
        "slice without its children), wait (between the origin and the target of a flow) or idle "
        "(no slice was open). GPU work is preceded by the call that launched it, and a call that "
        "waits for a GPU by the work that ended last during the call.",
    .options = options,
    .examples = examples,
    .lists = sv_format_lists,
    .options_size = sizeof(struct critical_path),
    .run = run,
};
