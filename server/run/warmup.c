/* Warm-up: each worker computes a few batches, then a few requests go the whole way, before the
 * first real one.
 *
 * It runs before the server calls itself ready. Its inputs come from the configured seed; its
 * events carry the warm-up flag. */
#include "server/run/engine.h"

#include "core/base/mem.h"

#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static uint32_t open_requests;

static void on_done(struct sv_served *r)
{
    sv_served_ends(r->owner, r, SV_ANSWERED, NULL);
    for (uint32_t i = 0; i < SV_IO_MAX; i++)
        free(r->out[i].bytes);
    free(r);
    pthread_mutex_lock(&lock);
    open_requests--;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

static void wait_below(uint32_t n)
{
    pthread_mutex_lock(&lock);
    while (open_requests >= n)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static struct sv_served *new_request(struct sv_model *m, const struct sv_tensor_value *in)
{
    struct sv_served *r = sv_alloc(sizeof *r);
    r->id = atomic_fetch_add(&m->engine->next_request, 1);
    r->rows = 1;
    r->is_warmup = true;
    r->trace = m->engine->trace;
    r->in = in;
    r->done = on_done;
    r->owner = m;
    pthread_mutex_lock(&lock);
    open_requests++;
    pthread_mutex_unlock(&lock);
    return r;
}

/* A batch of one, made by hand: the batcher could not send it to a worker of our choice. */
static void run_on(struct sv_model *m, uint32_t worker, const struct sv_tensor_value *in)
{
    struct sv_served *r = new_request(m, in);
    struct sv_task *t = sv_alloc(sizeof *t);
    struct stave_serving *trace = r->trace;
    r->enqueued_ns = stave_now_ns();
    stave_serving_enqueued(trace, r->id, m->traced, STAVE_SERVING_WARMUP, r->enqueued_ns);
    *t = (struct sv_task){.model = m,
                          .slot = sv_engine_take_slot(m),
                          .requests = r,
                          .n = 1,
                          .rows = 1,
                          .is_warmup = true,
                          .worker = -1,
                          .collect_start_ns = stave_now_ns()};
    stave_serving_dequeued(trace, r->id, t->collect_start_ns);
    t->collect_end_ns = stave_now_ns();
    sv_engine_submit(t, (int)worker);
}

static uint64_t next_random(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

/* Floats between -0.5 and 0.5, whole numbers and truth values 0 or 1, which every vocabulary has;
 * of all else zeros. */
static void fill(enum sv_datatype type, uint8_t *to, size_t n, uint64_t *x)
{
    size_t size = sv_datatype_size(type);
    for (size_t i = 0; i < n; i++, to += size) {
        float f = (float)(next_random(x) >> 40) / (float)(1 << 24) - 0.5f;
        double d = (double)f;
        if (type == SV_TYPE_FP32)
            memcpy(to, &f, sizeof f);
        else if (type == SV_TYPE_FP64)
            memcpy(to, &d, sizeof d);
        else if (type <= SV_TYPE_INT64)
            *to = f > 0;
    }
}

static void make_input(const struct sv_tensor_spec *s, struct sv_tensor_value *v, uint64_t *x)
{
    enum { DYNAMIC = 8 };
    size_t size = s->type == SV_TYPE_BYTES ? 4 : sv_datatype_size(s->type);
    for (uint32_t i = 0; i < s->n_dims; i++)
        v->dims[i] = s->dims[i] == SV_DIM_DYNAMIC ? DYNAMIC : s->dims[i];
    size_t n = sv_tensor_values(v->dims, s->n_dims);
    v->len = n * size;
    v->bytes = sv_alloc(v->len);
    if (s->type != SV_TYPE_BYTES)
        fill(s->type, v->bytes, n, x);
}

/* n × SV_IO_MAX */
static struct sv_tensor_value *make_inputs(const struct sv_model *m, size_t n)
{
    uint64_t x = (uint64_t)m->config->seed * 2654435761u + 88172645463325252u;
    struct sv_tensor_value *in = sv_alloc(n * SV_IO_MAX * sizeof *in);
    for (size_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < m->describes.n_inputs; i++)
            make_input(&m->describes.inputs[i], &in[k * SV_IO_MAX + i], &x);
    return in;
}

static void warm_up(struct sv_model *m)
{
    const struct sv_config *c = m->config;
    size_t n = (size_t)c->warmup_pregen_inputs, at = 0;
    if (n == 0) {
        sv_batcher_start(m);
        return;
    }
    struct sv_tensor_value *in = make_inputs(m, n);
    for (uint32_t w = 0; w < m->engine->n_workers; w++)
        for (int64_t i = 0; i < c->warmup_batches_per_worker && sv_engine_can_compute(m, w); i++)
            run_on(m, w, in + (at++ % n) * SV_IO_MAX);
    wait_below(1);
    sv_batcher_start(m);
    for (int64_t i = 0; i < c->warmup_request_nb; i++) {
        wait_below((uint32_t)c->max_queue_size);
        struct sv_served *r = new_request(m, in + (at++ % n) * SV_IO_MAX);
        if (!sv_queue_push(m, r)) { /* cannot be: nobody else pushes yet */
            on_done(r);
        }
    }
    wait_below(1);
    for (size_t i = 0; i < n * SV_IO_MAX; i++)
        free(in[i].bytes);
    free(in);
}

void sv_engine_warm_up(struct sv_engine *e)
{
    for (uint32_t i = 0; i < e->n_models; i++)
        warm_up(&e->models[i]);
}
