/* See latency_columns.h. */
#include "subjects/serving/latency_columns.h"

struct sv_cell *sv_put_latency(struct sv_cell *c, const struct sv_latency *l)
{
    const double values[] = {l->mean_ns, l->p50_ns, l->p90_ns, l->p95_ns, l->p99_ns};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        *c++ = l->n && values[i] >= 0 ? sv_cell_real(values[i]) : sv_cell_null();
    *c++ = l->n ? sv_cell_int(l->max_ns) : sv_cell_null();
    return c;
}

struct sv_cell *sv_put_outcomes(struct sv_cell *c, uint64_t answered, uint64_t rejected,
                                uint64_t failed, uint64_t cancelled, uint64_t open)
{
    const uint64_t counts[] = {answered, rejected, failed, cancelled, open};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        *c++ = sv_cell_int((int64_t)counts[i]);
    return c;
}
