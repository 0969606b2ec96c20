/* Layers: found by argument, name, track or thread; kinds by words. Called by the command plot.
 *
 * Strings are looked at once each; rows take what their parent has where they say nothing
 * themselves, which one pass settles, since parents have smaller rows. */
#include "subjects/steps/layers.h"

#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/sat.h"
#include "stats/select.h"
#include "stats/self.h"
#include "why/steps.h"

#include <stdlib.h>
#include <string.h>

const char *const sv_layer_names[SV_N_LAYER] = {"attention", "gemm",       "quant", "moe",
                                                "routing",   "norm",       "act",   "comm",
                                                "sampling",  "scheduling", "data",  "other"};

/* In lower case; the first that occurs decides. */
static const struct {
    const char *word;
    enum sv_model_layer_kind kind;
} words[] = {
    {"deep_ep", SV_LAYER_COMM},
    {"nvshmem", SV_LAYER_COMM},
    {"alltoall", SV_LAYER_COMM},
    {"all_to_all", SV_LAYER_COMM},
    {"attention", SV_LAYER_ATTENTION},
    {"attn", SV_LAYER_ATTENTION},
    {"sdpa", SV_LAYER_ATTENTION},
    {"flash_fwd", SV_LAYER_ATTENTION},
    {"gemm", SV_LAYER_GEMM},
    {"quant", SV_LAYER_QUANT},
    {"moe", SV_LAYER_MOE},
    {"expert", SV_LAYER_MOE},
    {"rout", SV_LAYER_ROUTING},
    {"topk", SV_LAYER_ROUTING},
    {"norm", SV_LAYER_NORM},
    {"allreduce", SV_LAYER_COMM},
    {"all_reduce", SV_LAYER_COMM},
    {"allgather", SV_LAYER_COMM},
    {"all_gather", SV_LAYER_COMM},
    {"nccl", SV_LAYER_COMM},
    {"comm", SV_LAYER_COMM},
    {"sampl", SV_LAYER_SAMPLING},
    {"sched", SV_LAYER_SCHEDULING},
    {"silu", SV_LAYER_ACT},
    {"gelu", SV_LAYER_ACT},
    {"relu", SV_LAYER_ACT},
    {"act", SV_LAYER_ACT},
    {"matmul", SV_LAYER_GEMM},
    {"linear", SV_LAYER_GEMM},
    {"addmm", SV_LAYER_GEMM},
    {"aten::mm", SV_LAYER_GEMM},
    {"aten::bmm", SV_LAYER_GEMM},
};

#define NO_LAYER (-1)

static uint8_t kind_of(const char *text)
{
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasestr(text, words[i].word))
            return (uint8_t)words[i].kind;
    return SV_N_LAYER;
}

/* The number after "layer", "layers" or "blocks" and an optional separator; NO_LAYER: none. */
static int32_t layer_in(const char *text)
{
    static const char *const heads[] = {"layer", "blocks"};
    for (size_t h = 0; h < 2; h++)
        for (const char *p = text; (p = strcasestr(p, heads[h])) != NULL;) {
            p += strlen(heads[h]);
            const char *q = p + (*p == 's' || *p == 'S');
            q += strspn(q, "._ #:[-");
            size_t digits = strspn(q, "0123456789");
            if (digits && digits < 6)
                return (int32_t)strtol(q, NULL, 10);
        }
    return NO_LAYER;
}

struct finding {
    const struct sv_trace *t;
    uint8_t *kind_of_string; /* SV_N_LAYER: says nothing */
    int32_t *layer_of_string;
    sv_str keys[3]; /* arguments that name the layer, 0: not in this trace */
    uint8_t *kinds; /* by row */
    int32_t *layers;
};

static void look_at_strings(struct finding *f)
{
    static const char *const keys[] = {"layer", "layer_id", "layer_idx"};
    const struct sv_dict *d = f->t->dict;
    uint8_t *work = sv_work_of_strings(d); /* what steps call data is that here, too */
    f->kind_of_string = sv_alloc((size_t)d->n_strings + 1);
    f->layer_of_string = sv_alloc(((size_t)d->n_strings + 1) * sizeof *f->layer_of_string);
    for (sv_str s = 0; s < d->n_strings; s++) {
        const char *text = sv_dict_text(d, s).bytes;
        f->kind_of_string[s] = work[s] == SV_WORK_DATA ? (uint8_t)SV_LAYER_DATA : kind_of(text);
        f->layer_of_string[s] = layer_in(text);
    }
    free(work);
    for (size_t i = 0; i < 3; i++)
        f->keys[i] = sv_dict_find_str(d, keys[i], strlen(keys[i]));
}

static int32_t layer_in_args(const struct finding *f, uint64_t row)
{
    struct sv_arg arg;
    uint32_t handle = f->t->slices.args[row];
    for (size_t i = 0; handle && i < 3; i++)
        if (f->keys[i] && sv_trace_arg(f->t, handle, f->keys[i], &arg) && arg.type == SV_ARG_INT &&
            arg.i >= 0 && arg.i < (int64_t)SV_LAYERS_MAX)
            return (int32_t)arg.i;
    return NO_LAYER;
}

/* Returns whether any row has a layer. */
static bool look_at_rows(struct finding *f)
{
    const struct sv_slices *s = &f->t->slices;
    bool found = false;
    f->kinds = sv_alloc_aligned(s->n + 1, 64);
    f->layers = sv_alloc_aligned((s->n + 1) * sizeof *f->layers, 64);
    for (uint64_t row = 0; row < s->n; row++) {
        uint32_t parent = s->parent[row];
        uint8_t kind = f->kind_of_string[s->cat[row]];
        if (kind == SV_N_LAYER)
            kind = f->kind_of_string[s->name[row]];
        if (kind == SV_N_LAYER && parent != SV_NO_ROW)
            kind = f->kinds[parent];
        int32_t layer = layer_in_args(f, row);
        if (layer == NO_LAYER)
            layer = f->layer_of_string[s->name[row]];
        if (layer == NO_LAYER && parent != SV_NO_ROW)
            layer = f->layers[parent];
        if (layer == NO_LAYER)
            layer = f->layer_of_string[f->t->dict->tracks[s->track[row]].name];
        f->kinds[row] = kind;
        f->layers[row] = layer;
        found |= layer != NO_LAYER;
    }
    return found;
}

/* Threads as layers: only if all of them have small numbers. */
static bool use_threads(struct finding *f)
{
    const struct sv_trace *t = f->t;
    size_t n = 0;
    for (sv_track k = 1; k < t->n_tracks; k++) {
        const struct sv_track_info *info = &t->dict->tracks[k];
        if (t->tracks[k].first == t->tracks[k].end)
            continue;
        if (info->kind != SV_TRACK_THREAD || info->tid < 0 || info->tid > 4095)
            return false;
        n++;
        for (uint32_t row = t->tracks[k].first; row < t->tracks[k].end; row++)
            f->layers[row] = (int32_t)info->tid;
    }
    return n > 1;
}

static int by_number(const void *a, const void *b)
{
    const struct sv_model_layer *x = a, *y = b;
    return x->number < y->number ? -1 : x->number > y->number;
}

static void add_up(struct sv_layers *l, const struct finding *f, int64_t from_ns, int64_t to_ns)
{
    const struct sv_slices *s = &f->t->slices;
    int64_t *self = sv_self_times(f->t);
    struct sv_meanwhile left_out = sv_meanwhile_of(f->t->dict);
    struct sv_map map = {0};
    for (uint64_t row = 0; row < s->n; row++) {
        if (s->kind[row] != SV_SLICE || sv_is_meanwhile(&left_out, s->cat[row]) ||
            s->ts_ns[row] < from_ns || s->ts_ns[row] >= to_ns)
            continue;
        if (f->layers[row] == NO_LAYER) {
            l->outside_ns += self[row];
            continue;
        }
        bool is_new;
        uint64_t *number = sv_map_add(&map, (uint64_t)f->layers[row], &is_new);
        if (is_new) {
            l->layers = sv_grow(l->layers, &l->cap, l->n + 1, sizeof *l->layers);
            l->layers[l->n] = (struct sv_model_layer){.number = f->layers[row]};
            *number = l->n++;
        }
        uint8_t kind = f->kinds[row] == SV_N_LAYER ? (uint8_t)SV_LAYER_OTHER : f->kinds[row];
        int64_t *ns = &l->layers[*number].ns[kind];
        *ns = sv_sat_add(*ns, self[row]);
        l->layers[*number].count++;
    }
    sv_map_fini(&map);
    free(self);
    if (l->n)
        qsort(l->layers, l->n, sizeof *l->layers, by_number);
}

void sv_layers_find(struct sv_layers *l, const struct sv_trace *t, int64_t from_ns, int64_t to_ns)
{
    struct finding f = {.t = t};
    *l = (struct sv_layers){0};
    look_at_strings(&f);
    bool found = look_at_rows(&f);
    if (!found)
        found = l->by_thread = use_threads(&f);
    if (found)
        add_up(l, &f, from_ns, to_ns);
    free(f.kind_of_string);
    free(f.layer_of_string);
    free(f.kinds);
    free(f.layers);
}

void sv_layers_fini(struct sv_layers *l)
{
    free(l->layers);
    *l = (struct sv_layers){0};
}
