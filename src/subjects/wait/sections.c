/* stave report wait: where the time of steps went, and what is behind the longest waits. Called by
 * cmd/report.c with the loaded trace.
 *
 * Tables of columns over why/wait.h; subjects/sections.c prints them. */
#include "why/lock_waits.h"
#include "why/wait.h"

#include "cli/command.h"
#include "cli/console.h"
#include "cli/rows.h"
#include "core/base/buf.h"
#include "core/base/sat.h"
#include "store/ranks.h"
#include "subjects/engine/request_units.h"
#include "subjects/subject.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS(list) .columns = (list), .n_columns = sizeof(list) / sizeof *(list)
#define WAITS_OF_TEXT 5

/* What a section shows: a report, and which of its rows, in which order. */
struct view {
    const struct sv_wait_report *r;
    uint32_t *rows; /* spans, or chain segments: wait << 12 | segment */
    size_t n;
    struct sv_buf *texts; /* a few, for names that are made */
};

/* Its own name, or its process's; Python calls each main thread the same. */
static struct sv_text name_of(const struct sv_dict *d, sv_track track)
{
    static const char main[] = "MainThread";
    sv_track process = sv_dict_process_of(d, track);
    struct sv_text own = sv_dict_text(d, d->tracks[track].name),
                   its = process ? sv_dict_text(d, d->tracks[process].name) : own;
    bool is_main = own.len == sizeof main - 1 && memcmp(own.bytes, main, own.len) == 0;
    return own.len && !(is_main && its.len) ? own : its;
}

/* "rank 0 · locker (pid 12, tid 14)" */
static struct sv_cell thread_cell(const struct view *v, int text, sv_track track)
{
    const struct sv_dict *d = v->r->trace->dict;
    sv_track process = sv_dict_process_of(d, track);
    struct sv_text name = name_of(d, track);
    struct sv_buf *b = &v->texts[text];
    sv_buf_clear(b);
    sv_rank_prefix(d, track, b);
    sv_buf_add(b, name.bytes, name.len);
    if (process)
        sv_buf_printf(b, "%s(pid %" PRId64, name.len ? " " : "", d->tracks[process].pid);
    if (process && d->tracks[track].kind == SV_TRACK_THREAD &&
        d->tracks[track].tid != d->tracks[process].pid)
        sv_buf_printf(b, ", tid %" PRId64, d->tracks[track].tid);
    if (process)
        sv_buf_str(b, ")");
    if (!b->len)
        sv_track_title(d, track, b);
    return (struct sv_cell){.type = SV_CELL_TEXT, .text = sv_buf_cstr(b), .len = b->len};
}

static struct sv_cell *put_classes(struct sv_cell *c, const struct sv_wait_span *s)
{
    for (int k = 0; k < SV_N_WAIT_CLASSES; k++)
        *c++ = sv_cell_int(s->class_ns[k]);
    return c;
}

/* CLASS columns; the text of each class is the column's heading. */
#define CLASS_COLUMN(member, text) {text "_ns", text, SV_UNIT_NS},

/* ---- summary ---- */

static const struct sv_report_column summary_columns[] = {
    {"of", "of", SV_UNIT_TEXT},
    {"spans", "how many", SV_UNIT_COUNT},
    {"dur_ns", "time", SV_UNIT_NS},
    {"compute_ns", NULL, SV_UNIT_NS},
    {"data_ns", NULL, SV_UNIT_NS},
    {"gpu_ns", NULL, SV_UNIT_NS},
    {"lock_ns", NULL, SV_UNIT_NS},
    {"disk_ns", NULL, SV_UNIT_NS},
    {"cpu_ns", NULL, SV_UNIT_NS},
    {"rank_ns", NULL, SV_UNIT_NS},
    {"peer_ns", NULL, SV_UNIT_NS},
    {"queue_ns", NULL, SV_UNIT_NS},
    {"sleep_ns", NULL, SV_UNIT_NS},
    {"other_ns", NULL, SV_UNIT_NS},
    {"gil_ns", "of lock: interpreter lock", SV_UNIT_NS},
    {"fault_ns", "of disk: mapped files", SV_UNIT_NS},
    {"copy_ns", "of gpu: host in copies", SV_UNIT_NS},
    {"first_ns", NULL, SV_UNIT_NS}, /* what the begins of all tables count from */
    {"shares", "divided", SV_UNIT_TEXT},
    {"states", "states of threads", SV_UNIT_TEXT},
};

/* "compute 61.2 %, data 30.1 %, …", the largest first */
static const char *shares_of(const struct sv_wait_span *s, struct sv_buf *b)
{
    bool is_put[SV_N_WAIT_CLASSES] = {0};
    sv_buf_clear(b);
    for (int n = 0; n < SV_N_WAIT_CLASSES; n++) {
        int best = -1;
        for (int k = 0; k < SV_N_WAIT_CLASSES; k++)
            if (!is_put[k] && (best < 0 || s->class_ns[k] > s->class_ns[best]))
                best = k;
        is_put[best] = true;
        if (s->class_ns[best] > 0 && s->dur_ns > 0)
            sv_buf_printf(b, "%s%s %.1f %%", b->len ? ", " : "", sv_wait_class_names[best],
                          100 * (double)s->class_ns[best] / (double)s->dur_ns);
    }
    return sv_buf_cstr(b);
}

static void fill_summary(const struct sv_section *s, size_t row, struct sv_cell *cells)
{
    const struct view *v = s->data;
    const struct sv_wait_report *r = v->r;
    size_t n = 0;
    (void)row;
    for (size_t i = 0; i < r->n_spans; i++)
        n += r->spans[i].kind == r->kind;
    struct sv_cell *c = cells;
    *c++ = r->kind == SV_UNIT_IS_THREAD && r->total.thread != SV_NO_THREAD
               ? thread_cell(v, 0, r->ledger.states.threads[r->total.thread].track)
               : sv_cell_text(r->kind == SV_UNIT_IS_STEP      ? "steps and the time between them"
                              : r->kind == SV_UNIT_IS_EPOCH   ? "epochs"
                              : r->kind == SV_UNIT_IS_REQUEST ? "requests"
                              : r->kind == SV_UNIT_IS_TURN    ? "turns of a loop"
                                                              : "phases");
    *c++ = sv_cell_int(r->kind == SV_UNIT_IS_THREAD ? 1 : (int64_t)n);
    *c++ = sv_cell_int(r->total.dur_ns);
    c = put_classes(c, &r->total);
    *c++ = r->total.gil_ns ? sv_cell_int(r->total.gil_ns) : sv_cell_null();
    *c++ = r->total.fault_ns ? sv_cell_int(r->total.fault_ns) : sv_cell_null();
    *c++ = r->total.copy_ns ? sv_cell_int(r->total.copy_ns) : sv_cell_null();
    *c++ = sv_cell_int(r->trace->first_ns);
    *c++ = sv_cell_text(shares_of(&r->total, &v->texts[1]));
    *c++ = sv_cell_text(!r->is_assumed ? "recorded"
                        : r->ledger.states.has_calls
                            ? "not recorded (--sched): waits are those of system calls"
                            : "not recorded: waits are those that slices name");
}

/* ---- spans ---- */

static const struct sv_report_column span_columns[] = {
    {"kind", "kind", SV_UNIT_TEXT},
    {"number", "number", SV_UNIT_COUNT},
    {"name", NULL, SV_UNIT_TEXT},
    {"thread", "thread", SV_UNIT_TEXT},
    {"start_ns", "start", SV_UNIT_NS},
    {"dur_ns", "time", SV_UNIT_NS},
    SV_WAIT_CLASSES(CLASS_COLUMN) /* */
    {"longest_ns", "longest", SV_UNIT_NS},
    {"longest_for", "for", SV_UNIT_TEXT},
};

#define N_SPAN_COLUMNS (sizeof span_columns / sizeof *span_columns)

static void fill_span(const struct sv_section *s, size_t row, struct sv_cell *cells)
{
    const struct view *v = s->data;
    const struct sv_wait_span *x = &v->r->spans[v->rows[row]];
    const struct sv_trace *t = v->r->trace;
    struct sv_cell *c = cells;
    *c++ = sv_cell_text(sv_unit_kind_names[x->kind]);
    *c++ = x->number >= 0 ? sv_cell_int(x->number) : sv_cell_null();
    *c++ = x->row != SV_NO_ROW ? sv_cell_bytes(sv_dict_text(t->dict, t->slices.name[x->row]))
                               : sv_cell_null();
    *c++ = x->thread != SV_NO_THREAD
               ? thread_cell(v, 0, v->r->ledger.states.threads[x->thread].track)
               : sv_cell_null();
    *c++ = sv_cell_int(sv_sat_sub(x->ts_ns, t->first_ns));
    *c++ = sv_cell_int(x->dur_ns);
    c = put_classes(c, x);
    *c++ = x->longest_ns ? sv_cell_int(x->longest_ns) : sv_cell_null();
    *c++ = x->longest_ns ? sv_cell_text(sv_wait_class_names[x->longest_class]) : sv_cell_null();
}

static _Thread_local const struct sv_wait_report *sorted; /* for qsort, within one call */

static int64_t waited(uint32_t i)
{
    const struct sv_wait_span *s = &sorted->spans[i];
    return s->dur_ns - s->class_ns[SV_TIME_COMPUTE];
}

/* The most waiting first. */
static int by_wait(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    if (waited(x) != waited(y))
        return waited(x) > waited(y) ? -1 : 1;
    return (x > y) - (x < y);
}

/* Spans of some kinds; text shows those that wait most, programs all in the order of time. */
static struct view view_spans(const struct sv_wait_report *r, struct sv_buf *texts, unsigned kinds,
                              bool is_sorted)
{
    struct view v = {.r = r, .texts = texts};
    v.rows = calloc(r->n_spans + 1, sizeof *v.rows);
    for (size_t i = 0; v.rows && i < r->n_spans; i++)
        if (kinds & 1u << r->spans[i].kind)
            v.rows[v.n++] = (uint32_t)i;
    sorted = r;
    if (is_sorted && v.n)
        qsort(v.rows, v.n, sizeof *v.rows, by_wait);
    return v;
}

/* ---- the longest waits ---- */

static const struct sv_report_column wait_columns[] = {
    {"wait", "wait", SV_UNIT_COUNT},
    {"in", "in", SV_UNIT_TEXT},
    {"number", NULL, SV_UNIT_COUNT},
    {"thread", "thread", SV_UNIT_TEXT},
    {"start_ns", "start", SV_UNIT_NS},
    {"dur_ns", "time", SV_UNIT_NS},
    {"for", "for", SV_UNIT_TEXT},
    {"call", "call", SV_UNIT_TEXT},
    {"cause", "because", SV_UNIT_TEXT},
    {"cause_thread", "of", SV_UNIT_TEXT},
    {"cause_ns", "for so long", SV_UNIT_NS},
    {"path", "file", SV_UNIT_TEXT},
    {"last_path", "last file before", SV_UNIT_TEXT},
    {"request", "disk request", SV_UNIT_TEXT},
    {"request_ns", NULL, SV_UNIT_NS},
};

/* What the thread behind a wait did. */
static const char *cause_text(const struct sv_wait_report *r, const struct sv_wait_cause *c,
                              struct sv_buf *b)
{
    const struct sv_trace *t = r->trace;
    sv_buf_clear(b);
    if (c->kind == SV_SEGMENT_WAIT && c->reason == SV_WAIT_FOR_OTHER)
        sv_buf_str(b, "slept");
    else if (c->kind == SV_SEGMENT_WAIT && c->reason)
        sv_buf_printf(b, "waited for %s", sv_wait_reason_what(c->reason));
    else if (c->kind == SV_SEGMENT_IDLE)
        sv_buf_str(b, "not known");
    else
        sv_buf_str(b, c->kind == SV_SEGMENT_WAIT ? "waited" : "ran");
    if (c->row != SV_NO_ROW) {
        struct sv_text name = sv_dict_text(t->dict, t->slices.name[c->row]);
        sv_buf_str(b, " in ");
        sv_buf_add(b, name.bytes, name.len);
    }
    return sv_buf_cstr(b);
}

static const char *request_text(const struct sv_trace *t, uint32_t row, struct sv_buf *b)
{
    struct sv_arg a;
    sv_str device = sv_dict_find_str(t->dict, "device", 6),
           bytes = sv_dict_find_str(t->dict, "bytes", 5);
    char size[32], dur[32];
    sv_buf_clear(b);
    struct sv_text name = sv_dict_text(t->dict, t->slices.name[row]);
    sv_buf_add(b, name.bytes, name.len);
    if (bytes && sv_trace_arg(t, t->slices.args[row], bytes, &a) && a.type == SV_ARG_INT && a.i > 0)
        sv_buf_printf(b, " %s", sv_human_bytes(size, (uint64_t)a.i));
    if (device && sv_trace_arg(t, t->slices.args[row], device, &a) && a.type == SV_ARG_TEXT) {
        sv_buf_str(b, " ");
        sv_buf_add(b, a.text, a.size);
    }
    sv_buf_printf(b, " %s", sv_human_ns(dur, sv_trace_end_ns(t, row) - t->slices.ts_ns[row]));
    return sv_buf_cstr(b);
}

static void fill_wait(const struct sv_section *s, size_t row, struct sv_cell *cells)
{
    const struct view *v = s->data;
    const struct sv_wait_report *r = v->r;
    const struct sv_trace *t = r->trace;
    const struct sv_wait *w = &r->waits[row];
    const struct sv_wait_span *span = &r->spans[w->span];
    struct sv_cell *c = cells;
    sv_buf_clear(&v->texts[3]);
    sv_buf_str(&v->texts[3], sv_unit_kind_names[span->kind]);
    if (span->number >= 0)
        sv_buf_printf(&v->texts[3], " %" PRId64, span->number);
    *c++ = sv_cell_int((int64_t)row + 1);
    *c++ = sv_cell_text(sv_buf_cstr(&v->texts[3]));
    *c++ = span->number >= 0 ? sv_cell_int(span->number) : sv_cell_null();
    *c++ = thread_cell(v, 0, r->ledger.states.threads[span->thread].track);
    *c++ = sv_cell_int(sv_sat_sub(w->ts_ns, t->first_ns));
    *c++ = sv_cell_int(w->dur_ns);
    *c++ = sv_cell_text(sv_wait_class_names[w->class]);
    *c++ = w->call != SV_NO_ROW ? sv_cell_bytes(sv_dict_text(t->dict, t->slices.name[w->call]))
                                : sv_cell_null();
    *c++ = sv_cell_text(cause_text(r, &w->cause, &v->texts[1]));
    *c++ = w->cause.track ? thread_cell(v, 2, w->cause.track) : sv_cell_null();
    *c++ = sv_cell_int(w->cause.ns);
    *c++ = sv_cell_bytes(w->cause.path);
    *c++ = sv_cell_bytes(w->cause.last);
    bool has_block = w->cause.block != SV_NO_ROW;
    *c++ = has_block ? sv_cell_text(request_text(t, w->cause.block, &v->texts[4])) : sv_cell_null();
    *c++ = has_block
               ? sv_cell_int(sv_trace_end_ns(t, w->cause.block) - t->slices.ts_ns[w->cause.block])
               : sv_cell_null();
}

/* ---- chains ---- */

static const struct sv_report_column chain_columns[] = {
    {"wait", "wait", SV_UNIT_COUNT},     {"start_ns", "start", SV_UNIT_NS},
    {"dur_ns", "time", SV_UNIT_NS},      {"thread", "thread", SV_UNIT_TEXT},
    {"kind", "did", SV_UNIT_TEXT},       {"for", "for", SV_UNIT_TEXT},
    {"name", "in", SV_UNIT_TEXT},        {"path", "file", SV_UNIT_TEXT},
    {"via", "reached by", SV_UNIT_TEXT},
};

static void fill_chain(const struct sv_section *s, size_t row, struct sv_cell *cells)
{
    static const char *const kinds[] = {"run", "wait", "idle"};
    const struct view *v = s->data;
    const struct sv_trace *t = v->r->trace;
    const struct sv_segment *x =
        &v->r->waits[v->rows[row] >> 12].chain.segments[v->rows[row] & 0xfff];
    bool has_row = x->row != SV_NO_ROW;
    struct sv_cell *c = cells;
    *c++ = sv_cell_int((int64_t)(v->rows[row] >> 12) + 1);
    *c++ = sv_cell_int(sv_sat_sub(x->ts_ns, t->first_ns));
    *c++ = sv_cell_int(x->dur_ns);
    *c++ = thread_cell(v, 0, x->track);
    *c++ = sv_cell_text(kinds[x->kind]);
    *c++ = x->reason ? sv_cell_text(sv_wait_reason_name(x->reason)) : sv_cell_null();
    *c++ = has_row ? sv_cell_bytes(sv_dict_text(t->dict, t->slices.name[x->row])) : sv_cell_null();
    *c++ = has_row && sv_state_has_file(&v->r->ledger.states, x->row)
               ? sv_cell_bytes(sv_call_path(&v->r->ledger.states, x->row))
               : sv_cell_null();
    *c++ = sv_cell_text(x->by_waker ? "waker" : x->by_flow ? "flow" : NULL);
}

/* The segments of each chain that take at least a twentieth of the wait, in the order of time. */
static struct view view_chains(const struct sv_wait_report *r, struct sv_buf *texts, size_t n_waits)
{
    enum { SEGMENTS = 20 };
    struct view v = {.r = r, .texts = texts};
    v.rows = calloc(n_waits * SEGMENTS + 1, sizeof *v.rows);
    for (size_t i = 0; v.rows && i < n_waits && i < r->n_waits; i++) {
        const struct sv_wait *w = &r->waits[i];
        size_t n = 0;
        for (size_t k = 0; k < w->chain.n && k < 0xfff && n < SEGMENTS; k++) {
            if (w->chain.segments[k].dur_ns < w->dur_ns / 20)
                continue;
            v.rows[v.n++] = (uint32_t)(i << 12 | k);
            n++;
        }
    }
    return v;
}

/* ---- locks ---- */

struct lock_view {
    const struct view *all;
    const struct sv_lock_waits *waits;
};

static const struct sv_report_column lock_columns[] = {
    {"thread", "thread", SV_UNIT_TEXT},
    {"function", "waits in", SV_UNIT_TEXT},
    {"lock", "for", SV_UNIT_TEXT},
    {"address", NULL, SV_UNIT_TEXT},
    {"releaser", "held by", SV_UNIT_TEXT},
    {"releaser_tid", "tid", SV_UNIT_TEXT},
    {"released_in", "released in", SV_UNIT_TEXT},
    {"waits", "waits", SV_UNIT_COUNT},
    {"total_ns", "time", SV_UNIT_NS},
    {"longest_ns", "longest", SV_UNIT_NS},
    {"queued_ns", "then for a CPU", SV_UNIT_NS},
};

static void fill_lock(const struct sv_section *s, size_t row, struct sv_cell *c)
{
    const struct lock_view *v = s->data;
    const struct sv_lock_sum *l = &v->waits->sums[row];
    struct sv_buf *address = &v->all->texts[1], *tid = &v->all->texts[2];
    sv_buf_clear(address);
    sv_buf_clear(tid);
    sv_buf_printf(address, "0x%" PRIx64, l->lock);
    sv_buf_printf(tid, "%" PRId64, l->releaser_tid);
    *c++ = thread_cell(v->all, 0, l->thread);
    *c++ = sv_cell_bytes(l->function);
    *c++ = l->is_gil          ? sv_cell_text("the interpreter lock of Python")
           : l->lock_name.len ? sv_cell_bytes(l->lock_name)
                              : sv_cell_text(sv_buf_cstr(address));
    *c++ = l->lock ? sv_cell_text(sv_buf_cstr(address)) : sv_cell_null();
    *c++ = sv_cell_bytes(l->releaser);
    *c++ = l->releaser_tid ? sv_cell_text(sv_buf_cstr(tid)) : sv_cell_null();
    *c++ = sv_cell_bytes(l->released_in);
    *c++ = sv_cell_int((int64_t)l->n);
    *c++ = sv_cell_int(l->total_ns);
    *c++ = sv_cell_int(l->longest_ns);
    *c++ = sv_cell_int(l->queued_ns);
}

/* ---- passes and advice ---- */

static const struct sv_report_column pass_columns[] = {
    {"pass", "pass", SV_UNIT_COUNT},       {"files", "files", SV_UNIT_COUNT},
    {"bytes", "read", SV_UNIT_BYTES},      {"read_ns", "in read", SV_UNIT_NS},
    {"bytes_per_s", "rate", SV_UNIT_RATE}, {"missed_bytes", "not in the page cache", SV_UNIT_BYTES},
    {"start_ns", "start", SV_UNIT_NS},
};

static void fill_pass(const struct sv_section *s, size_t row, struct sv_cell *c)
{
    const struct view *v = s->data;
    const struct sv_wait_pass *p = &v->r->passes[row];
    *c++ = sv_cell_int((int64_t)row + 1);
    *c++ = sv_cell_int((int64_t)p->files);
    *c++ = sv_cell_int((int64_t)p->bytes);
    *c++ = sv_cell_int(p->read_ns);
    *c++ = p->read_ns ? sv_cell_real((double)p->bytes * 1e9 / (double)p->read_ns) : sv_cell_null();
    *c++ = sv_cell_int((int64_t)p->missed_bytes);
    *c++ = sv_cell_int(sv_sat_sub(p->from_ns, v->r->trace->first_ns));
}

static const struct sv_report_column advice_columns[] = {
    {"try", NULL, SV_UNIT_TEXT}, {"evidence", NULL, SV_UNIT_TEXT}, {"sure", NULL, SV_UNIT_TEXT}};

static void fill_advice(const struct sv_section *s, size_t row, struct sv_cell *c)
{
    const struct view *v = s->data;
    const struct sv_wait_advice *a = &v->r->advice[row];
    *c++ = sv_cell_text(a->what);
    *c++ = sv_cell_text(a->evidence);
    *c++ = sv_cell_text(a->sure);
}

static void print_advice(const struct sv_wait_report *r)
{
    sv_print(stdout, "\nWhat to try\n");
    for (size_t i = 0; i < r->n_advice; i++)
        sv_print(stdout, "  %s\n    because %s (sure: %s)\n", r->advice[i].what,
                 r->advice[i].evidence, r->advice[i].sure);
}

/* ---- the subject ---- */

/* Classes that none of the spans has need no column for people. */
static void hide_empty(const struct view *v, struct sv_report_column *columns)
{
    enum { FIRST_CLASS = 6 };
    for (int k = 0; k < SV_N_WAIT_CLASSES; k++) {
        bool is_any = false;
        for (size_t i = 0; i < v->n; i++)
            is_any |= v->r->spans[v->rows[i]].class_ns[k] != 0;
        if (!is_any)
            columns[FIRST_CLASS + k].heading = NULL;
    }
}

enum { SUMMARY, SPAN, LOADER, WAIT, CHAIN, LOCK, PASS, ADVICE, N_SECTIONS, N_TEXTS = 5 };

static int print(const struct sv_report_options *o, const struct sv_wait_report *r,
                 struct sv_err *err)
{
    struct sv_buf texts[N_TEXTS];
    bool is_text = !o->json && !o->csv;
    for (size_t i = 0; i < N_TEXTS; i++)
        sv_buf_init(&texts[i], 1u << 20);
    size_t n_waits = r->n_waits < o->limit ? r->n_waits : o->limit;
    const struct view all = {.r = r, .texts = texts};
    struct view spans = view_spans(r, texts, ~(1u << SV_UNIT_IS_LOADER), is_text),
                loaders = view_spans(r, texts, 1u << SV_UNIT_IS_LOADER, is_text),
                chains = view_chains(r, texts, n_waits);
    struct sv_report_column of_spans[N_SPAN_COLUMNS], of_loaders[N_SPAN_COLUMNS];
    memcpy(of_spans, span_columns, sizeof of_spans);
    memcpy(of_loaders, span_columns, sizeof of_loaders);
    hide_empty(&spans, of_spans);
    hide_empty(&loaders, of_loaders);
    const struct sv_lock_waits *locks = &r->ledger.locks;
    const struct lock_view lock_view = {&all, locks};
    const struct sv_section sections[N_SECTIONS] = {
        {"summary", "Where the time went", COLUMNS(summary_columns), 1, true, fill_summary, &all},
        {"span", "The spans that wait most", COLUMNS(of_spans), spans.n, false, fill_span, &spans},
        {"loader", "Loader processes", COLUMNS(of_loaders), loaders.n, false, fill_span, &loaders},
        {"wait", "The longest waits", COLUMNS(wait_columns), r->n_waits, false, fill_wait, &all},
        {"chain", "What happened meanwhile", COLUMNS(chain_columns), chains.n, false, fill_chain,
         &chains},
        {"lock", "Who waits for whom", COLUMNS(lock_columns), locks->n, false, fill_lock,
         &lock_view},
        {"pass", "Reading of the same files again", COLUMNS(pass_columns),
         r->n_passes > 1 || !is_text || o->by ? r->n_passes : 0, false, fill_pass, &all},
        {"advice", "What to try", COLUMNS(advice_columns), r->n_advice, false, fill_advice, &all},
    };
    struct sv_report_options shown = *o;
    int code;
    if (is_text && !o->by) {
        code = sv_sections_print(sections, CHAIN, &shown, err);
        shown.limit = SIZE_MAX; /* of chains the parts are few already */
        if (code >= 0 && chains.n)
            sv_print(stdout, "\n");
        if (code >= 0)
            code = sv_sections_print(sections + CHAIN, 1, &shown, err);
        for (int i = LOCK; i <= PASS && code >= 0; i++) {
            shown.limit = i == LOCK ? o->limit : SIZE_MAX;
            if (sections[i].n_rows)
                sv_print(stdout, "\n");
            code = sv_sections_print(sections + i, 1, &shown, err);
        }
        if (code >= 0 && r->n_advice)
            print_advice(r);
    } else {
        code = sv_sections_print(sections, N_SECTIONS, &shown, err);
    }
    free(spans.rows);
    free(loaders.rows);
    free(chains.rows);
    for (size_t i = 0; i < N_TEXTS; i++)
        sv_buf_fini(&texts[i]);
    return code;
}

static int run_wait(const struct sv_report_options *o, const struct sv_trace *t, struct sv_err *err)
{
    struct sv_wait_report r;
    uint64_t step = 0;
    if (o->step && (sv_parse_count(o->step, &step) < 0 || step > INT64_MAX))
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS, "--step: '%s' is not a number", o->step);
    size_t n = o->top ? (o->limit < 100 ? o->limit : 100) : o->json || o->csv ? 20 : WAITS_OF_TEXT;
    struct sv_ledger ledger;
    sv_why_make(&ledger, t,
                &(struct sv_ledger_options){.marker = o->steps,
                                            .step = o->step ? (int64_t)step : -1,
                                            .with_loaders = true});
    sv_wait_report_make(&r, t, &(struct sv_wait_options){.ledger = &ledger, .n_waits = n});
    int code;
    if (o->step && !r.n_spans)
        code = sv_err_set(err, SV_EINPUT, SV_NO_POS, "%s has no step %s: 'stave steps' lists them",
                          o->path, o->step);
    else if (!r.n_spans)
        code = sv_err_set(err, SV_EINPUT, SV_NO_POS,
                          "%s has no threads to look at: record with 'stave record --sched'",
                          o->path);
    else
        code = print(o, &r, err);
    sv_wait_report_fini(&r);
    return code;
}

const struct sv_report_subject sv_wait_report = {
    .name = "wait",
    .sections = "summary span loader wait chain lock pass advice",
    .options = "steps step assume",
    .takes_many = true,
    .run = run_wait,
};
