/* Operators, modules and phases by the work that they launched: see figures.h. Called by the
 * report, the tables of SQL and the viewer's page.
 *
 * First the nodes of the host (nodes.c), then one pass over the rows for the work. What is below a
 * node is added up from the last one to the first, since nodes come after the one above them. */
#include "subjects/ops/figures.h"

#include "core/base/buf.h"
#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/sat.h"
#include "stats/self.h"
#include "subjects/ops/kernel_name.h"
#include "why/launch.h"

#include <stdlib.h>
#include <string.h>

struct making {
    struct sv_ops_report *r;
    const struct sv_trace *t;
    struct sv_ops_nodes host;
    struct sv_launches launches;
    uint8_t *class_of;           /* by category */
    sv_str *short_of, *exact_of; /* by name of the trace: that of the report, 0: not yet */
    sv_str path_keys[3];         /* of arguments that name the operator */
    struct sv_map by_kind;       /* hash of what is alike → kind */
    size_t cap_work, cap_kinds;
};

/* ---- work ---- */

static void find_names(struct making *m, struct sv_ops_work *w)
{
    sv_str name = m->t->slices.name[w->row];
    struct sv_text exact = sv_dict_text(m->t->dict, name);
    struct sv_buf text;
    if (!m->exact_of[name] && exact.len) {
        sv_buf_init(&text, 1u << 24);
        sv_kernel_short_name(&text, exact);
        m->short_of[name] = sv_dict_str(m->r->names, sv_buf_cstr(&text), text.len);
        m->exact_of[name] = sv_dict_str(m->r->names, exact.bytes, exact.len);
        sv_buf_fini(&text);
    }
    w->kernel = m->short_of[name];
    w->exact = m->exact_of[name];
}

/* Profiles of JAX and TensorFlow: the work itself says which operator it is. */
static void read_path(const struct making *m, struct sv_ops_work *w)
{
    struct sv_arg a = {0};
    uint32_t handle = m->t->slices.args[w->row];
    for (size_t i = 0; i < sizeof m->path_keys / sizeof *m->path_keys && handle; i++) {
        sv_str key = m->path_keys[i];
        if (!key || !sv_trace_arg(m->t, handle, key, &a) || a.type != SV_ARG_TEXT || !a.size)
            continue;
        struct sv_ops_path p;
        sv_ops_path_read(&p, (struct sv_text){a.text, a.size});
        w->op = sv_dict_str(m->r->names, p.op.bytes, p.op.len);
        if (!w->module && *p.module)
            w->module = sv_dict_cstr(m->r->names, p.module);
        w->phase = w->phase == SV_OPS_OTHER ? (uint8_t)p.phase : w->phase;
        return;
    }
}

/* Adds it to the nodes of the host that it belongs to. */
static void add_to_host(struct making *m, struct sv_ops_work *w, int64_t dur_ns)
{
    uint32_t node = m->host.of_row[w->launch];
    if (node == SV_NO_ROW)
        return;
    struct sv_ops_node *all = m->host.items, *x = &all[node];
    w->phase = x->phase;
    x->total_ns = sv_sat_add(x->total_ns, dur_ns);
    x->n++;
    if (x->op != SV_NO_ROW) {
        w->op_row = all[x->op].row;
        w->op = all[x->op].name;
        w->dims = sv_ops_dims(&m->host, x->op);
        all[x->op].self_ns = sv_sat_add(all[x->op].self_ns, dur_ns);
    }
    if (x->module != SV_NO_ROW) {
        struct sv_ops_node *module = &all[x->module];
        w->module = module->name;
        module->module_n++;
        module->module_ns = sv_sat_add(module->module_ns, dur_ns);
        module->module_self_ns = sv_sat_add(module->module_self_ns, dur_ns);
    }
}

static struct sv_ops_group *group_at(struct sv_ops_groups *g, struct sv_map *by_name, sv_str name)
{
    bool is_new;
    uint64_t *at = sv_map_add(by_name, name, &is_new);
    if (is_new) {
        *at = g->n;
        g->items = sv_grow(g->items, &g->cap, g->n + 1, sizeof *g->items);
        g->items[g->n++] = (struct sv_ops_group){.name = name};
    }
    return &g->items[*at];
}

static bool is_alike(const struct sv_ops_work *a, const struct sv_ops_work *b)
{
    return a->exact == b->exact && a->op == b->op && a->module == b->module && a->dims == b->dims &&
           a->phase == b->phase && a->class_ == b->class_;
}

/* Two of one hash are next to never: the later one gets the next free number. */
static struct sv_ops_kind *kind_at(struct making *m, const struct sv_ops_work *w)
{
    struct sv_ops_report *r = m->r;
    uint64_t key = sv_mix64((uint64_t)w->exact << 32 | w->op);
    key = sv_mix64(key ^ ((uint64_t)w->module << 32 | w->dims));
    key ^= (uint64_t)w->phase << 8 | w->class_;
    for (;; key++) {
        bool is_new;
        uint64_t *at = sv_map_add(&m->by_kind, key, &is_new);
        if (is_new) {
            *at = r->n_kinds;
            r->kinds = sv_grow(r->kinds, &m->cap_kinds, r->n_kinds + 1, sizeof *r->kinds);
            r->kinds[r->n_kinds++] = (struct sv_ops_kind){.like = *w, .max_ns = -1};
        }
        if (is_alike(&r->kinds[*at].like, w))
            return &r->kinds[*at];
    }
}

static void add_work(struct making *m, uint32_t row, enum sv_gpu_class class)
{
    struct sv_ops_report *r = m->r;
    struct sv_ops_work w = {.row = row,
                            .launch = sv_launch_of(&m->launches, row),
                            .op_row = SV_NO_ROW,
                            .class_ = (uint8_t) class};
    int64_t dur_ns = sv_trace_end_ns(m->t, row) - m->t->slices.ts_ns[row];
    find_names(m, &w);
    if (w.launch != SV_NO_ROW)
        add_to_host(m, &w, dur_ns);
    if (!w.op)
        read_path(m, &w);
    r->without_launch += w.launch == SV_NO_ROW;
    r->without_operator += !w.op;
    r->n_kernels += class == SV_GPU_KERNEL;
    r->n_copies += class != SV_GPU_KERNEL;
    int64_t *sum = class == SV_GPU_KERNEL ? &r->kernels_ns : &r->copies_ns;
    *sum = sv_sat_add(*sum, dur_ns);
    struct sv_ops_kind *k = kind_at(m, &w);
    k->n++;
    k->total_ns = sv_sat_add(k->total_ns, dur_ns);
    if (dur_ns > k->max_ns) {
        k->max_ns = dur_ns;
        k->like = w;
    }
    r->work = sv_grow(r->work, &m->cap_work, r->n_work + 1, sizeof *r->work);
    r->work[r->n_work++] = w;
}

static void find_work(struct making *m)
{
    const struct sv_slices *c = &m->t->slices;
    for (uint32_t row = 0; row < c->n; row++) {
        enum sv_gpu_class class = (enum sv_gpu_class)m->class_of[c->cat[row]];
        if (sv_gpu_is_work(class) && c->kind[row] == SV_SLICE)
            add_work(m, row, class);
    }
}

/* ---- groups ---- */

/* From each node to the one above it. */
static void add_up(struct sv_ops_nodes *h)
{
    for (size_t i = h->n; i-- > 0;) {
        const struct sv_ops_node *x = &h->items[i];
        if (x->above == SV_NO_ROW)
            continue;
        struct sv_ops_node *up = &h->items[x->above];
        up->total_ns = sv_sat_add(up->total_ns, x->total_ns);
        up->n += x->n;
        up->module_ns = sv_sat_add(up->module_ns, x->module_ns);
        up->module_n += x->module_n;
    }
}

static void add_host(struct making *m, struct sv_map *by_op, struct sv_map *by_module)
{
    const struct sv_ops_nodes *h = &m->host;
    int64_t *self = h->n ? sv_self_times(m->t) : NULL;
    for (size_t i = 0; i < h->n; i++) {
        const struct sv_ops_node *x = &h->items[i];
        if (!x->is_op && !x->is_module)
            continue;
        struct sv_ops_group *g = x->is_op ? group_at(&m->r->operators, by_op, x->name)
                                          : group_at(&m->r->modules, by_module, x->name);
        bool is_outer = x->outer == i;
        int64_t dur = sv_trace_end_ns(m->t, x->row) - m->t->slices.ts_ns[x->row];
        m->r->n_calls++;
        g->calls++;
        g->host_ns = sv_sat_add(g->host_ns, is_outer ? dur : 0);
        g->host_self_ns = sv_sat_add(g->host_self_ns, self[x->row]);
        g->n += !is_outer ? 0 : x->is_op ? x->n : x->module_n;
        g->total_ns = sv_sat_add(g->total_ns, !is_outer  ? 0
                                              : x->is_op ? x->total_ns
                                                         : x->module_ns);
        g->self_ns = sv_sat_add(g->self_ns, x->is_op ? x->self_ns : x->module_self_ns);
    }
    free(self);
}

/* Work that no slice of the host is the operator or module of: by its own words, or without any. */
static void add_rest(struct making *m, struct sv_map *by_op, struct sv_map *by_module)
{
    struct sv_ops_report *r = m->r;
    struct sv_map by_phase = {0};
    for (size_t i = 0; i < r->n_work; i++) {
        const struct sv_ops_work *w = &r->work[i];
        int64_t dur = sv_trace_end_ns(m->t, w->row) - m->t->slices.ts_ns[w->row];
        uint32_t node = w->launch == SV_NO_ROW ? SV_NO_ROW : m->host.of_row[w->launch];
        bool has_module = node != SV_NO_ROW && m->host.items[node].module != SV_NO_ROW;
        struct sv_ops_group *groups[] = {
            group_at(&r->phases, &by_phase, w->phase),
            w->op_row == SV_NO_ROW ? group_at(&r->operators, by_op, w->op) : NULL,
            has_module ? NULL : group_at(&r->modules, by_module, w->module)};
        for (size_t k = 0; k < 3; k++) {
            if (!groups[k])
                continue;
            groups[k]->n++;
            groups[k]->total_ns = sv_sat_add(groups[k]->total_ns, dur);
            groups[k]->self_ns = sv_sat_add(groups[k]->self_ns, dur);
        }
    }
    sv_map_fini(&by_phase);
}

static int most_self_first(const void *a, const void *b)
{
    const struct sv_ops_group *x = a, *y = b;
    if (x->self_ns != y->self_ns)
        return x->self_ns < y->self_ns ? 1 : -1;
    if (x->host_self_ns != y->host_self_ns)
        return x->host_self_ns < y->host_self_ns ? 1 : -1;
    return (x->name > y->name) - (x->name < y->name);
}

static int most_time_first(const void *a, const void *b)
{
    const struct sv_ops_kind *x = a, *y = b;
    if (x->total_ns != y->total_ns)
        return x->total_ns < y->total_ns ? 1 : -1;
    return (x->like.row > y->like.row) - (x->like.row < y->like.row);
}

static void sort_groups(struct sv_ops_groups *g)
{
    if (g->n)
        qsort(g->items, g->n, sizeof *g->items, most_self_first);
}

static void make_groups(struct making *m)
{
    struct sv_map by_op = {0}, by_module = {0};
    add_up(&m->host);
    add_host(m, &by_op, &by_module);
    add_rest(m, &by_op, &by_module);
    sort_groups(&m->r->operators);
    sort_groups(&m->r->modules);
    sort_groups(&m->r->phases);
    if (m->r->n_kinds)
        qsort(m->r->kinds, m->r->n_kinds, sizeof *m->r->kinds, most_time_first);
    sv_map_fini(&by_op);
    sv_map_fini(&by_module);
}

/* ---- the whole ---- */

void sv_ops_report_make(struct sv_ops_report *r, const struct sv_trace *t)
{
    static const char *const keys[] = {"tf_op", "op_name", "hlo_op"};
    size_t n = (size_t)t->dict->n_strings + 1;
    struct making m = {.r = r, .t = t};
    *r = (struct sv_ops_report){.trace = t, .names = sv_dict_new()};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        m.path_keys[i] = sv_dict_find_str(t->dict, keys[i], strlen(keys[i]));
    m.class_of = sv_alloc(n);
    m.short_of = sv_alloc(n * sizeof *m.short_of);
    m.exact_of = sv_alloc(n * sizeof *m.exact_of);
    for (sv_str s = 1; s < t->dict->n_strings; s++) {
        struct sv_text cat = sv_dict_text(t->dict, s);
        m.class_of[s] = (uint8_t)sv_gpu_class(cat.bytes, cat.len);
    }
    sv_launches_init(&m.launches, t);
    sv_ops_nodes_make(&m.host, t, r->names);
    find_work(&m);
    make_groups(&m);
    sv_ops_nodes_fini(&m.host);
    sv_launches_fini(&m.launches);
    sv_map_fini(&m.by_kind);
    free(m.class_of);
    free(m.short_of);
    free(m.exact_of);
}

void sv_ops_report_fini(struct sv_ops_report *r)
{
    free(r->work);
    free(r->kinds);
    free(r->operators.items);
    free(r->modules.items);
    free(r->phases.items);
    sv_dict_free(r->names);
    *r = (struct sv_ops_report){0};
}
