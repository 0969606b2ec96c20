/* What the host was doing when it launched work: operators, modules and phases as nodes over the
 * slices. Called by subjects/ops/figures.c.
 *
 * Parents have smaller rows, so one pass gives each row its innermost node. Modules of backward
 * operators come afterwards, when those of the forward pass are known. It does not change the
 * trace. */
#include "subjects/ops/figures.h"

#include "core/base/buf.h"
#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/stream/batch.h"
#include "why/steps.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const sv_ops_phase_names[SV_N_OPS_PHASES] = {
#define NAME(member, name) name,
    SV_OPS_PHASES(NAME)
#undef NAME
};

#define MODULE_WORD "nn.Module: "

/* What strings mean, once for each. */
struct meanings {
    uint8_t *phase; /* by string: enum sv_ops_phase */
    uint8_t *cat;   /* by string: enum category */
    uint8_t *work;  /* sv_work_of_strings() */
};
enum category { NO_CATEGORY, IS_OPERATOR, IS_MODULE, IS_PHASE, IS_DEVICE };

static enum category category_of(struct sv_text s)
{
    static const struct {
        const char *word;
        enum category means;
    } words[] = {{"cpu_op", IS_OPERATOR},       {"Operator", IS_OPERATOR},
                 {"operator", IS_OPERATOR},     {"torch.forward", IS_MODULE},
                 {"torch.backward", IS_MODULE}, {"torch.optimizer", IS_PHASE}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i].word) == s.len && memcmp(words[i].word, s.bytes, s.len) == 0)
            return words[i].means;
    return sv_gpu_is_on_stream(sv_gpu_class(s.bytes, s.len)) ? IS_DEVICE : NO_CATEGORY;
}

static enum sv_ops_phase phase_of(uint8_t work)
{
    return work == SV_WORK_FORWARD     ? SV_OPS_FORWARD
           : work == SV_WORK_BACKWARD  ? SV_OPS_BACKWARD
           : work == SV_WORK_OPTIMIZER ? SV_OPS_OPTIMIZER
                                       : SV_OPS_OTHER;
}

static void read_strings(struct meanings *m, const struct sv_trace *t)
{
    struct sv_steps steps;
    size_t n = (size_t)t->dict->n_strings + 1;
    m->work = sv_work_of_strings(t->dict);
    m->phase = sv_alloc(n);
    m->cat = sv_alloc(n);
    for (sv_str s = 1; s < t->dict->n_strings; s++) {
        m->phase[s] = (uint8_t)phase_of(m->work[s]);
        m->cat[s] = (uint8_t)category_of(sv_dict_text(t->dict, s));
    }
    sv_steps_find(&steps, t, NULL); /* a marker says nothing about what is below it */
    for (size_t i = 0; i < steps.n && !steps.has_no_markers; i++)
        m->phase[t->slices.name[steps.steps[i].row]] = SV_OPS_OTHER;
    sv_steps_fini(&steps);
}

static void free_strings(struct meanings *m)
{
    free(m->work);
    free(m->phase);
    free(m->cat);
}

/* ---- nodes ---- */

static sv_str name_of(struct sv_ops_nodes *h, uint32_t row)
{
    struct sv_text s = sv_dict_text(h->t->dict, h->t->slices.name[row]);
    size_t n = strlen(MODULE_WORD);
    if (s.len > n && memcmp(s.bytes, MODULE_WORD, n) == 0)
        return sv_dict_str(h->names, s.bytes + n, s.len - n);
    return sv_dict_str(h->names, s.bytes, s.len);
}

static bool names_module(const struct sv_ops_nodes *h, uint32_t row)
{
    struct sv_text s = sv_dict_text(h->t->dict, h->t->slices.name[row]);
    return s.len > strlen(MODULE_WORD) && memcmp(s.bytes, MODULE_WORD, strlen(MODULE_WORD)) == 0;
}

/* The phase of the outermost one that says backward or optimizer, else of the innermost: a forward
 * pass that is computed again belongs to backward. */
static uint8_t phase_below(uint8_t above, uint8_t own)
{
    return above == SV_OPS_BACKWARD || above == SV_OPS_OPTIMIZER || own == SV_OPS_OTHER ? above
                                                                                        : own;
}

/* The outermost slice of a name on a track that is around the node. The latest outermost one is the
 * only one that can be: all since then is inside of it, or it has ended. */
static uint32_t outermost(struct sv_ops_nodes *h, struct sv_map *latest, uint32_t node)
{
    struct sv_ops_node *x = &h->items[node];
    uint64_t key = sv_mix64((uint64_t)x->name << 32 | h->t->slices.track[x->row]) ^ x->is_module;
    bool is_new;
    uint64_t *at = sv_map_add(latest, key, &is_new);
    if (!is_new && sv_trace_end_ns(h->t, h->items[*at].row) >= sv_trace_end_ns(h->t, x->row))
        return (uint32_t)*at;
    *at = node;
    return node;
}

static uint32_t add_node(struct sv_ops_nodes *h, const struct meanings *m, struct sv_map *latest,
                         uint32_t row, uint32_t above)
{
    const struct sv_slices *c = &h->t->slices;
    const struct sv_ops_node *up = above == SV_NO_ROW ? NULL : &h->items[above];
    uint8_t own = m->phase[c->name[row]] ? m->phase[c->name[row]] : m->phase[c->cat[row]];
    struct sv_ops_node x = {.row = row,
                            .above = above,
                            .op = up ? up->op : SV_NO_ROW,
                            .module = up ? up->module : SV_NO_ROW,
                            .phase = up ? phase_below(up->phase, own) : own,
                            .is_op = m->cat[c->cat[row]] == IS_OPERATOR,
                            .is_module = m->cat[c->cat[row]] == IS_MODULE || names_module(h, row)};
    uint32_t node = (uint32_t)h->n;
    x.outer = node;
    if (x.is_op)
        x.op = node;
    if (x.is_module)
        x.module = node;
    h->items = sv_grow(h->items, &h->cap, h->n + 1, sizeof *h->items);
    h->items[h->n++] = x;
    if (x.is_op || x.is_module) {
        h->items[node].name = name_of(h, row);
        h->items[node].outer = outermost(h, latest, node);
    }
    return node;
}

static void make_nodes(struct sv_ops_nodes *h, const struct meanings *m)
{
    const struct sv_slices *c = &h->t->slices;
    struct sv_map latest = {0};
    for (uint32_t row = 0; row < c->n; row++) {
        uint32_t above = c->parent[row] == SV_NO_ROW ? SV_NO_ROW : h->of_row[c->parent[row]];
        uint8_t cat = m->cat[c->cat[row]], parent = above == SV_NO_ROW ? 0 : h->items[above].phase;
        bool says = (m->phase[c->name[row]] || m->phase[c->cat[row]]) &&
                    m->phase[c->name[row]] != parent;
        h->of_row[row] = above;
        if (c->kind[row] == SV_SLICE && cat != IS_DEVICE && (cat || says || names_module(h, row)))
            h->of_row[row] = add_node(h, m, &latest, row, above);
    }
    sv_map_fini(&latest);
}

/* Operators that nothing says more of are the forward pass, if their process has a backward one;
 * nodes come after the one above them. */
static void find_forward(struct sv_ops_nodes *h)
{
    const struct sv_trace *t = h->t;
    bool *has_backward = sv_alloc((size_t)t->n_tracks + 1);
    for (size_t i = 0; i < h->n; i++)
        if (h->items[i].phase == SV_OPS_BACKWARD)
            has_backward[sv_dict_process_of(t->dict, t->slices.track[h->items[i].row])] = true;
    has_backward[0] = false;
    for (size_t i = 0; i < h->n; i++) {
        struct sv_ops_node *x = &h->items[i];
        if (x->phase == SV_OPS_OTHER && x->op != SV_NO_ROW &&
            has_backward[sv_dict_process_of(t->dict, t->slices.track[x->row])])
            x->phase = SV_OPS_FORWARD;
    }
    free(has_backward);
}

/* The module of a backward operator: that of the operator which an arrow comes from. */
static uint32_t module_before(const struct sv_ops_nodes *h, const struct sv_ops_node *x)
{
    const struct sv_trace *t = h->t;
    uint64_t first, n = sv_trace_flows_in(t, x->row, &first);
    for (uint64_t i = first; i < first + n && i < first + 8; i++) {
        uint32_t from = h->of_row[t->flows.from[t->flows.by_to[i]]];
        if (from != SV_NO_ROW && h->items[from].op != SV_NO_ROW &&
            h->items[from].module != SV_NO_ROW)
            return h->items[from].module;
    }
    return SV_NO_ROW;
}

static void follow_arrows(struct sv_ops_nodes *h)
{
    uint32_t *found = sv_alloc((h->n + 1) * sizeof *found);
    for (size_t i = 0; i < h->n; i++) {
        const struct sv_ops_node *x = &h->items[i];
        found[i] = x->module != SV_NO_ROW || !x->is_op ? SV_NO_ROW : module_before(h, x);
        if (found[i] == SV_NO_ROW && x->above != SV_NO_ROW)
            found[i] = found[x->above];
    }
    for (size_t i = 0; i < h->n; i++)
        if (h->items[i].module == SV_NO_ROW)
            h->items[i].module = found[i];
    free(found);
}

void sv_ops_nodes_make(struct sv_ops_nodes *h, const struct sv_trace *t, struct sv_dict *names)
{
    struct meanings m;
    *h = (struct sv_ops_nodes){.t = t, .names = names};
    h->of_row = sv_alloc_aligned((t->slices.n + 1) * sizeof *h->of_row, 64);
    read_strings(&m, t);
    make_nodes(h, &m);
    find_forward(h);
    follow_arrows(h);
    free_strings(&m);
}

void sv_ops_nodes_fini(struct sv_ops_nodes *h)
{
    free(h->items);
    free(h->of_row);
    *h = (struct sv_ops_nodes){0};
}

/* ---- sizes ---- */

/* [[64,128],[128,256],[]] as "64×128, 128×256": tensors without sizes are scalars, and left out. */
static void put_dims(struct sv_buf *to, const struct sv_arg *array)
{
    const struct sv_arg *end = sv_arg_next(array);
    for (const struct sv_arg *a = array + 1; a < end; a = sv_arg_next(a)) {
        if (a->type != SV_ARG_ARRAY || a->size == 0)
            continue;
        if (to->len)
            sv_buf_str(to, ", ");
        for (const struct sv_arg *d = a + 1; d < sv_arg_next(a); d = sv_arg_next(d)) {
            char number[24];
            snprintf(number, sizeof number, "%s%" PRId64, d > a + 1 ? "×" : "", d->i);
            sv_buf_str(to, d->type == SV_ARG_INT || d->type == SV_ARG_UINT ? number : "…");
        }
    }
}

static sv_str read_dims(const struct sv_ops_nodes *h, uint32_t handle)
{
    enum { LONGEST = 200 };
    struct sv_batch *scratch = sv_alloc(sizeof *scratch);
    struct sv_buf text;
    sv_str key = sv_dict_find_str(h->t->dict, "Input Dims", 10), dims = 0;
    size_t n = 0;
    sv_buf_init(&text, 1u << 20);
    sv_batch_init(scratch);
    const struct sv_arg *args = key ? sv_trace_args(h->t, handle, scratch, &n) : NULL;
    for (const struct sv_arg *a = args; a && a < args + n; a = sv_arg_next(a))
        if (a->key == key && a->type == SV_ARG_ARRAY && text.len == 0)
            put_dims(&text, a);
    size_t len = text.len < LONGEST ? text.len : LONGEST;
    while (len < text.len && len > 0 && (text.data[len] & 0xc0) == 0x80) /* within a letter */
        len--;
    if (len)
        dims = sv_dict_str(h->names, sv_buf_cstr(&text), len);
    sv_batch_fini(scratch);
    free(scratch);
    sv_buf_fini(&text);
    return dims;
}

sv_str sv_ops_dims(struct sv_ops_nodes *h, uint32_t node)
{
    struct sv_ops_node *x = &h->items[node];
    if (!x->has_dims && h->t->slices.args[x->row])
        x->dims = read_dims(h, h->t->slices.args[x->row]);
    x->has_dims = true;
    return x->dims;
}
