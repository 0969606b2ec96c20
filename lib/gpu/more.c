/* What few events have, as arguments: queueing times, graph nodes, thread, call stack. */
#include "gpu/impl.h"

bool sv_gpu_has_more(const struct stave_gpu_at *at)
{
    return at->queued || at->submitted || at->graph || at->graph_node || at->thread || at->n_stack;
}

/* How long before its begin, ns. */
static void put_wait(struct stave_args *a, const char *key, const struct stave_gpu_at *at,
                     const struct device *d, int64_t when)
{
    if (when)
        stave_args_int(a, key, sv_gpu_ns(d, at, at->begin) - sv_gpu_ns(d, at, when));
}

const struct stave_args *sv_gpu_more(struct stave_args *storage, const struct stave_gpu_at *at,
                                     const struct device *d)
{
    stave_args_init(storage);
    put_wait(storage, "queued", at, d, at->queued);
    put_wait(storage, "submitted", at, d, at->submitted);
    if (at->graph)
        stave_args_uint(storage, "graph id", at->graph);
    if (at->graph_node)
        stave_args_uint(storage, "graph node id", at->graph_node);
    if (at->thread)
        stave_args_int(storage, "thread", at->thread);
    if (at->n_stack) {
        stave_args_list(storage, "call stack");
        for (size_t i = 0; i < at->n_stack; i++)
            stave_args_text(storage, NULL, at->stack[i]);
        stave_args_end(storage);
    }
    return storage;
}
