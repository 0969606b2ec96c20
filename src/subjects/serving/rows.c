/* Rows of batches: adding them, and putting them in order. Called by batch_rows_trace.c and `plot
 * batch`. It reads no file. */
#include "subjects/serving/rows.h"

#include "core/base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *const sv_batch_column_names[SV_N_BATCH_COLUMNS] = {
    "queue_ms",   "batch_ms",     "submit_ms",  "scheduling_ms",
    "codelet_ms", "inference_ms", "callback_ms"};
const char *const sv_batch_phase_names[SV_N_BATCH_PHASES] = {
    "queue", "batch", "submit", "scheduling", "run", "callback", "rest"};

/* ---- rows ---- */

void sv_batch_rows_init(struct sv_batch_rows *b)
{
    *b = (struct sv_batch_rows){.names = sv_dict_new()};
}

void sv_batch_rows_fini(struct sv_batch_rows *b)
{
    free(b->rows);
    free(b->requests);
    free(b->workers);
    free(b->metrics);
    sv_dict_free(b->names);
    *b = (struct sv_batch_rows){0};
}

struct sv_batch_row *sv_batch_row_add(struct sv_batch_rows *b)
{
    b->rows = sv_grow(b->rows, &b->cap, b->n + 1, sizeof *b->rows);
    b->rows[b->n] = (struct sv_batch_row){.first_request = b->n_requests,
                                          .n_requests = 1,
                                          .arrival_ns = SV_BATCH_UNKNOWN,
                                          .end_ns = SV_BATCH_UNKNOWN};
    return &b->rows[b->n++];
}

void sv_batch_request_add(struct sv_batch_rows *b, uint64_t id, int64_t arrival_ns,
                          int64_t latency_ns)
{
    SV_APPEND(b->requests, b->n_requests, b->cap_requests) =
        (struct sv_batch_request){id, arrival_ns, latency_ns};
}

void sv_batch_metric_add(struct sv_batch_rows *b, int64_t ts_ns, double queued, double rejected)
{
    SV_APPEND(b->metrics, b->n_metrics, b->cap_metrics) =
        (struct sv_batch_metric){ts_ns, queued, rejected};
}

static uint8_t device_of(const char *type)
{
    static const char *const gpus[] = {"cuda", "gpu", "opencl", "hip", "rocm"};
    if (strcasecmp(type, "cpu") == 0)
        return SV_BATCH_CPU;
    for (size_t i = 0; i < sizeof gpus / sizeof *gpus; i++)
        if (strcasecmp(type, gpus[i]) == 0)
            return SV_BATCH_GPU;
    return SV_BATCH_OTHER;
}

/* Servers have few workers; a file that claims thousands has the rest of them together. */
#define WORKERS_MAX 4096u

uint32_t sv_batch_worker_of(struct sv_batch_rows *b, int64_t number, const char *type, size_t len)
{
    struct sv_batch_worker w = {.number = number};
    snprintf(w.type, sizeof w.type, "%.*s", (int)(len < 15 ? len : 15), type);
    w.device = device_of(w.type);
    size_t i = b->n_workers; /* the newest are the likeliest */
    while (i-- > 0)
        if (b->workers[i].number == number && strcmp(b->workers[i].type, w.type) == 0)
            return (uint32_t)i;
    if (b->n_workers == WORKERS_MAX)
        return WORKERS_MAX - 1;
    b->workers = sv_grow(b->workers, &b->cap_workers, b->n_workers + 1, sizeof *b->workers);
    b->workers[b->n_workers] = w;
    return (uint32_t)b->n_workers++;
}

static int by_id(const void *a, const void *b)
{
    const struct sv_batch_row *x = a, *y = b;
    if (x->id != y->id)
        return x->id < y->id ? -1 : 1;
    return x->first_request < y->first_request ? -1 : x->first_request > y->first_request;
}

static int by_number(const void *a, const void *b)
{
    const struct sv_batch_worker *x = a, *y = b;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return strcmp(x->type, y->type);
}

void sv_batch_rows_finish(struct sv_batch_rows *b)
{
    size_t n = b->n_workers;
    struct sv_batch_worker *old = sv_alloc((n + 1) * sizeof *old);
    uint32_t *place = sv_alloc((n + 1) * sizeof *place);
    if (n) {
        memcpy(old, b->workers, n * sizeof *old);
        qsort(b->workers, n, sizeof *b->workers, by_number);
    }
    for (size_t i = 0; i < n; i++) {
        const struct sv_batch_worker *at =
            bsearch(&old[i], b->workers, n, sizeof *b->workers, by_number);
        place[i] = (uint32_t)(at - b->workers);
    }
    for (size_t i = 0; i < b->n; i++)
        b->rows[i].worker = place[b->rows[i].worker];
    if (b->n)
        qsort(b->rows, b->n, sizeof *b->rows, by_id);
    free(old);
    free(place);
}
