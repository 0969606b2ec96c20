/* stave report ops: which operators, modules and phases the work of devices belongs to. Called by
 * cmd/report.c with the loaded trace.
 *
 * Tables of columns over subjects/ops/figures.h; subjects/sections.c prints them. */
#include "cli/rows.h"
#include "core/base/sat.h"
#include "subjects/ops/figures.h"
#include "subjects/subject.h"

#define COLUMNS(list) .columns = (list), .n_columns = sizeof(list) / sizeof *(list)

static struct sv_cell text_of(const struct sv_ops_report *r, sv_str s)
{
    struct sv_text t = sv_dict_text(r->names, s);
    return s ? (struct sv_cell){.type = SV_CELL_TEXT, .text = t.bytes, .len = t.len}
             : sv_cell_null();
}

static struct sv_cell count_of(uint64_t n)
{
    return sv_cell_int((int64_t)n);
}

static struct sv_cell share_of(const struct sv_ops_report *r, int64_t ns)
{
    int64_t all = sv_sat_add(r->kernels_ns, r->copies_ns);
    return all > 0 ? sv_cell_real((double)ns / (double)all) : sv_cell_null();
}

/* ---- sections ---- */

static const struct sv_report_column summary_columns[] = {
    {"kernels", "kernels", SV_UNIT_COUNT},
    {"kernels_ns", "their time", SV_UNIT_NS},
    {"copies", "copies and fills", SV_UNIT_COUNT},
    {"copies_ns", "their time", SV_UNIT_NS},
    {"calls", "calls of operators and modules", SV_UNIT_COUNT},
    {"work_without_launch", "work without a launch", SV_UNIT_COUNT},
    {"work_without_operator", "work without an operator", SV_UNIT_COUNT},
};

static void fill_summary(const struct sv_section *s, size_t row, struct sv_cell *cells)
{
    const struct sv_ops_report *r = s->data;
    (void)row;
    *cells++ = count_of(r->n_kernels);
    *cells++ = sv_cell_int(r->kernels_ns);
    *cells++ = count_of(r->n_copies);
    *cells++ = sv_cell_int(r->copies_ns);
    *cells++ = count_of(r->n_calls);
    *cells++ = count_of(r->without_launch);
    *cells++ = count_of(r->without_operator);
}

static const struct sv_report_column phase_columns[] = {
    {"phase", "phase", SV_UNIT_TEXT},
    {"count", "work", SV_UNIT_COUNT},
    {"total_ns", "of devices", SV_UNIT_NS},
    {"share", "share", SV_UNIT_SHARE},
};

static void fill_phase(const struct sv_section *s, size_t row, struct sv_cell *cells)
{
    const struct sv_ops_report *r = s->data;
    const struct sv_ops_group *g = &r->phases.items[row];
    *cells++ = sv_cell_text(sv_ops_phase_names[g->name]);
    *cells++ = count_of(g->n);
    *cells++ = sv_cell_int(g->total_ns);
    *cells++ = share_of(r, g->total_ns);
}

#define GROUP_COLUMNS                                                                       \
    {"calls", "calls", SV_UNIT_COUNT}, {"host_ns", "on the host", SV_UNIT_NS},              \
        {"host_self_ns", "itself", SV_UNIT_NS}, {"count", "work", SV_UNIT_COUNT},           \
        {"total_ns", "of devices", SV_UNIT_NS}, {"self_ns", "launched itself", SV_UNIT_NS}, \
    {                                                                                       \
        "share", "share", SV_UNIT_SHARE                                                     \
    }
static const struct sv_report_column operator_columns[] = {{"operator", "operator", SV_UNIT_TEXT},
                                                           GROUP_COLUMNS};
static const struct sv_report_column module_columns[] = {{"module", "module", SV_UNIT_TEXT},
                                                         GROUP_COLUMNS};

static void fill_group(const struct sv_ops_report *r, const struct sv_ops_group *g,
                       struct sv_cell *cells)
{
    *cells++ = text_of(r, g->name);
    *cells++ = count_of(g->calls);
    *cells++ = sv_cell_int(g->host_ns);
    *cells++ = sv_cell_int(g->host_self_ns);
    *cells++ = count_of(g->n);
    *cells++ = sv_cell_int(g->total_ns);
    *cells++ = sv_cell_int(g->self_ns);
    *cells++ = share_of(r, g->self_ns);
}

static void fill_operator(const struct sv_section *s, size_t row, struct sv_cell *cells)
{
    const struct sv_ops_report *r = s->data;
    fill_group(r, &r->operators.items[row], cells);
}

static void fill_module(const struct sv_section *s, size_t row, struct sv_cell *cells)
{
    const struct sv_ops_report *r = s->data;
    fill_group(r, &r->modules.items[row], cells);
}

static const struct sv_report_column kernel_columns[] = {
    {"kernel", "kernel", SV_UNIT_TEXT}, {"operator", "operator", SV_UNIT_TEXT},
    {"module", "module", SV_UNIT_TEXT}, {"phase", "phase", SV_UNIT_TEXT},
    {"shapes", "shapes", SV_UNIT_TEXT}, {"count", "count", SV_UNIT_COUNT},
    {"total_ns", "total", SV_UNIT_NS},  {"mean_ns", "mean", SV_UNIT_NS},
    {"max_ns", "longest", SV_UNIT_NS},  {"share", "share", SV_UNIT_SHARE},
    {"kind", NULL, SV_UNIT_TEXT},       {"name", NULL, SV_UNIT_TEXT},
};

static void fill_kernel(const struct sv_section *s, size_t row, struct sv_cell *cells)
{
    static const char *const kinds[SV_GPU_CLASSES] = {
        [SV_GPU_KERNEL] = "kernel", [SV_GPU_COPY] = "copy", [SV_GPU_SET] = "fill"};
    const struct sv_ops_report *r = s->data;
    const struct sv_ops_kind *k = &r->kinds[row];
    *cells++ = text_of(r, k->like.kernel);
    *cells++ = text_of(r, k->like.op);
    *cells++ = text_of(r, k->like.module);
    *cells++ = sv_cell_text(sv_ops_phase_names[k->like.phase]);
    *cells++ = text_of(r, k->like.dims);
    *cells++ = count_of(k->n);
    *cells++ = sv_cell_int(k->total_ns);
    *cells++ = sv_cell_real((double)k->total_ns / (double)k->n);
    *cells++ = sv_cell_int(k->max_ns);
    *cells++ = share_of(r, k->total_ns);
    *cells++ = sv_cell_text(kinds[k->like.class_]);
    *cells++ = text_of(r, k->like.exact);
}

/* ---- the subject ---- */

static int print(const struct sv_ops_report *r, const struct sv_report_options *o,
                 struct sv_err *err)
{
    const struct sv_section sections[] = {
        {.name = "summary",
         .title = "Operators",
         COLUMNS(summary_columns),
         .n_rows = 1,
         .is_one = true,
         .fill = fill_summary,
         .data = r},
        {.name = "phase",
         .title = "Phases",
         COLUMNS(phase_columns),
         .n_rows = r->phases.n,
         .fill = fill_phase,
         .data = r},
        {.name = "operator",
         .title = "Operators",
         COLUMNS(operator_columns),
         .n_rows = r->operators.n,
         .fill = fill_operator,
         .data = r},
        {.name = "module",
         .title = "Modules",
         COLUMNS(module_columns),
         .n_rows = r->modules.n > 1 || (r->modules.n && r->modules.items[0].name) ? r->modules.n
                                                                                  : 0,
         .fill = fill_module,
         .data = r},
        {.name = "kernel",
         .title = "Kernels, copies and fills by operator",
         COLUMNS(kernel_columns),
         .n_rows = r->n_kinds,
         .fill = fill_kernel,
         .data = r},
    };
    return sv_sections_print(sections, sizeof sections / sizeof *sections, o, err);
}

static int run_ops(const struct sv_report_options *o, const struct sv_trace *t, struct sv_err *err)
{
    struct sv_ops_report r;
    sv_ops_report_make(&r, t);
    int code = r.n_work || r.n_calls
                   ? print(&r, o, err)
                   : sv_err_set(err, SV_EINPUT, SV_NO_POS,
                                "%s has no operators: no slices of category cpu_op, no modules of "
                                "PyTorch and no GPU work (docs/gpu.md)",
                                o->path);
    sv_ops_report_fini(&r);
    return code;
}

const struct sv_report_subject sv_ops_report = {
    .name = "ops",
    .sections = "summary phase operator module kernel",
    .options = "",
    .run = run_ops,
};
