/* Operators: the layers of a batch as slices below it in the trace, so that this leads from a
 * request to its batch and to what was computed for it. Called on a worker's thread, before and
 * after the batch: nothing but the clock is read in between. Only our own networks on CPU workers
 * have them; ONNX Runtime and OpenCL compute without us. */
#include "server/run/engine.h"

struct sv_layer_times *sv_operators_begin(const struct sv_task *t)
{
    struct sv_layer_times *times = &t->model->engine->workers[t->worker].layers;
    if (!t->trace || !t->model->engine->config->trace_operators)
        return NULL;
    times->n = 0;
    return times;
}

void sv_operators_put(const struct sv_task *t, const struct sv_layer_times *times)
{
    const struct sv_network *net = t->model->net;
    struct stave_serving_operator o[SV_LAYERS_MAX + 1];
    uint32_t embeds = net->kind == SV_NETWORK_TOKENS;
    int64_t start_ns = t->start_ns;
    if (times->n != net->n + embeds) /* not computed by us */
        return;
    for (uint32_t i = 0; i < times->n; i++) {
        const struct sv_layer *l = i < embeds ? NULL : &net->layers[i - embeds];
        o[i] = (struct stave_serving_operator){.name = l ? sv_layer_kind_names[l->kind] : "embed",
                                               .layer = l ? l->name : net->embedding.name,
                                               .start_ns = start_ns,
                                               .end_ns = times->ends_ns[i]};
        start_ns = times->ends_ns[i];
    }
    stave_serving_operators(t->trace, t->id, o, times->n);
}
