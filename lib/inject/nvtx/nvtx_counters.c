/* Counters of NVTX: each becomes a counter track of the process.
 *
 * Ids are ours unless the program brings its own. A counter group (a schema with several numbers)
 * is not split: its samples are counted as not recorded. */
#include "inject/nvtx/nvtx.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { COUNTERS_MAX = 4096 };

static pthread_mutex_t registering = PTHREAD_MUTEX_INITIALIZER;
static struct counter {
    struct nvtx_domain *domain;
    uint64_t id, type;
    stave_track_t track;
} counters[COUNTERS_MAX];
static size_t n_counters; /* published by a release store */

uint64_t nvtx_counter_register(nvtxDomainHandle_t domain, const nvtxCounterAttr_t *a)
{
    if (!a || a->structSize < sizeof *a)
        return NVTX_COUNTER_ID_NONE;
    struct nvtx_domain *d = nvtx_domain_of(domain);
    char name[NVTX_TEXT_MAX];
    snprintf(name, sizeof name, "%s%s%s", d->name, d->is_default ? "" : ": ",
             a->name ? a->name : "counter");
    pthread_mutex_lock(&registering);
    uint64_t id = NVTX_COUNTER_ID_NONE;
    if (n_counters < COUNTERS_MAX) {
        struct counter *c = &counters[n_counters];
        c->domain = d;
        c->type = a->schemaId;
        c->id = a->counterId ? a->counterId : NVTX_COUNTER_ID_DYNAMIC_START + n_counters;
        c->track = stave_counter(STAVE_PROCESS, name, "");
        id = c->id;
        __atomic_store_n(&n_counters, n_counters + 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&registering);
    return id;
}

static const struct counter *find(nvtxDomainHandle_t domain, uint64_t id)
{
    const struct nvtx_domain *d = nvtx_domain_of(domain);
    size_t n = __atomic_load_n(&n_counters, __ATOMIC_ACQUIRE);
    if (id >= NVTX_COUNTER_ID_DYNAMIC_START)
        return id - NVTX_COUNTER_ID_DYNAMIC_START < n
                   ? &counters[id - NVTX_COUNTER_ID_DYNAMIC_START]
                   : NULL;
    while (n-- > 0)
        if (counters[n].id == id && counters[n].domain == d)
            return &counters[n];
    return NULL;
}

void nvtx_counter_int(nvtxDomainHandle_t domain, uint64_t id, int64_t value)
{
    const struct counter *c = find(domain, id);
    if (c && !c->domain->is_off)
        STAVE_COUNTER_ON(c->track, NVTX_CATEGORY, value);
}

void nvtx_counter_double(nvtxDomainHandle_t domain, uint64_t id, double value)
{
    const struct counter *c = find(domain, id);
    if (c && !c->domain->is_off)
        STAVE_COUNTER_ON(c->track, NVTX_CATEGORY, value);
}

void nvtx_counter_sample(nvtxDomainHandle_t domain, uint64_t id, const void *values, size_t size)
{
    const struct counter *c = find(domain, id);
    int64_t i;
    double d;
    if (!c || !values)
        return;
    if ((c->type == NVTX_PAYLOAD_ENTRY_TYPE_INT64 || c->type == NVTX_PAYLOAD_ENTRY_TYPE_UINT64) &&
        size >= sizeof i) {
        memcpy(&i, values, sizeof i);
        nvtx_counter_int(domain, id, i);
    } else if ((c->type == NVTX_PAYLOAD_ENTRY_TYPE_DOUBLE ||
                c->type == NVTX_PAYLOAD_ENTRY_TYPE_FLOAT64) &&
               size >= sizeof d) {
        memcpy(&d, values, sizeof d);
        nvtx_counter_double(domain, id, d);
    } else {
        nvtx_lost(NVTX_LOST_DEFERRED);
    }
}
