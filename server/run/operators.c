/* Operators: the layers of a batch as slices on the row of its worker, below the slice of the batch
 * (libstave-serving's), so that a trace leads from a request to its batch and to what was computed
 * for it. Called on a worker's thread, after the batch: nothing but the clock is read in between.
 * Only our own networks on CPU workers have them; ONNX Runtime and OpenCL compute without us. */
#include "server/run/engine.h"

/* Where requests may be left out, the operators of their batches would stay: there are none. */
struct sv_layer_times *sv_operators_begin(const struct sv_task *t)
{
    struct sv_engine *e = t->model->engine;
    struct sv_worker *w = &e->workers[t->worker];
    if (!t->trace || !e->config->trace_operators || !w->row ||
        !atomic_load_explicit(&e->keeps_all, memory_order_relaxed))
        return NULL;
    w->layers.n = 0;
    return &w->layers;
}

#define PUT(name, layer)                                                                      \
    stave_complete(row, "cpu_op", name, start_ns, end_ns - start_ns, "layer", layer, "batch", \
                   t->id, "rows", t->rows)

/* A call place for each kind: their names are in the dictionary once. */
static void put(const struct sv_task *t, const struct sv_layer *l, int64_t start_ns, int64_t end_ns)
{
    stave_track_t row = t->model->engine->workers[t->worker].row;
    switch (l->kind) {
    case SV_LAYER_DENSE: PUT("dense", l->name); break;
    case SV_LAYER_CONV: PUT("conv", l->name); break;
    case SV_LAYER_MAXPOOL: PUT("maxpool", l->name); break;
    case SV_LAYER_AVGPOOL: PUT("avgpool", l->name); break;
    }
}

void sv_operators_put(const struct sv_task *t, const struct sv_layer_times *times)
{
    const struct sv_network *net = t->model->net;
    stave_track_t row = t->model->engine->workers[t->worker].row;
    int64_t start_ns = t->start_ns;
    uint32_t i = 0, embeds = net->kind == SV_NETWORK_TOKENS;
    if (times->n != net->n + embeds) /* not by us */
        return;
    for (; i < times->n; i++) {
        int64_t end_ns = times->ends_ns[i];
        if (i < embeds)
            PUT("embed", net->embedding.name);
        else
            put(t, &net->layers[i - embeds], start_ns, end_ns);
        start_ns = end_ns;
    }
}
