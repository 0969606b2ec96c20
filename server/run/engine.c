/* Models on StarPU: codelets, buffers that StarPU knows, submission of batches and what follows
 * them.
 *
 * Order: sv_engine_open (networks, StarPU, slots), batchers submit, sv_engine_close. A batch's way:
 * input copied into its slot through StarPU's data interface, task submitted, codelet on some
 * worker, the task's callback, then the output acquired in main memory (which brings it back from a
 * device) and given to the requests. Everything after the submission runs on StarPU's threads and
 * must not wait. */
#include "server/run/engine.h"
#include "cli/console.h"
#include "server/run/trace_control.h"

#include "core/base/mem.h"

#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- computing: on a worker ---- */

static void begin_work(struct sv_task *t)
{
    t->worker = starpu_worker_get_id();
    t->start_ns = stave_now_ns();
    stave_serving_started(t->trace, t->id, t->worker, t->start_ns);
}

static void end_work(struct sv_task *t)
{
    struct sv_worker *w = &t->model->engine->workers[t->worker];
    t->end_ns = stave_now_ns();
    stave_serving_finished(t->trace, t->id, t->end_ns);
    atomic_fetch_add_explicit(&w->busy_ns, (uint64_t)(t->end_ns - t->start_ns),
                              memory_order_relaxed);
    atomic_fetch_add_explicit(&w->tasks, 1, memory_order_relaxed);
}

static void compute_cpu(void *buffers[], void *arg)
{
    struct sv_task *t = arg;
    struct sv_model *m = t->model;
    begin_work(t);
    if (m->net->n && !m->scratch[t->worker])
        m->scratch[t->worker] =
            sv_alloc_aligned(sv_forward_scratch(m->net, m->rows_max) * sizeof(float), 64);
    struct sv_layer_times *times = sv_operators_begin(t);
    if (m->has_floats)
        sv_forward(m->net, (const float *)STARPU_VECTOR_GET_PTR(buffers[0]),
                   (float *)STARPU_VECTOR_GET_PTR(buffers[1]), t->rows, m->scratch[t->worker],
                   times);
    else
        t->is_failed = !sv_typed_compute(t, m->scratch[t->worker], times);
    end_work(t);
    if (times)
        sv_operators_put(t, times);
}

static void compute_opencl(void *buffers[], void *arg)
{
    struct sv_task *t = arg;
    struct sv_model *m = t->model;
    begin_work(t);
    if (!m->cl[t->worker])
        m->cl[t->worker] = sv_forward_cl_new(m->net, m->rows_max, t->worker);
    t->is_failed = !sv_forward_cl_run(m->cl[t->worker],
                                      (void *)STARPU_VECTOR_GET_DEV_HANDLE(buffers[0]),
                                      (void *)STARPU_VECTOR_GET_DEV_HANDLE(buffers[1]), t->rows);
    if (t->is_failed)
        snprintf(t->why, sizeof t->why, "OpenCL refused");
    end_work(t);
}

/* ---- rest: StarPU's workers spin while they wait, so they are paused while no batch is anywhere
 * ---- */

static void work_begins(struct sv_engine *e)
{
    pthread_mutex_lock(&e->work_lock);
    if (e->in_flight++ == 0)
        starpu_resume();
    pthread_mutex_unlock(&e->work_lock);
}

static void work_ends(struct sv_engine *e)
{
    pthread_mutex_lock(&e->work_lock);
    if (--e->in_flight == 0)
        starpu_pause();
    pthread_mutex_unlock(&e->work_lock);
}

/* ---- after it: on StarPU's threads ---- */

void sv_engine_give_slot(struct sv_model *m, struct sv_slot *s)
{
    pthread_mutex_lock(&m->pool_lock);
    s->next = m->free_slots;
    m->free_slots = s;
    m->in_work--;
    pthread_cond_broadcast(&m->pool_changed);
    pthread_mutex_unlock(&m->pool_lock);
}

static double ms(int64_t ns)
{
    return ns > 0 ? (double)ns / 1e6 : 0;
}

static void count_task(const struct sv_task *t)
{
    struct sv_model_metrics *m = &t->model->metrics;
    atomic_fetch_add_explicit(&m->batches, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&m->rows, t->rows, memory_order_relaxed);
    sv_histogram_add(&m->batch_size, t->rows);
    sv_histogram_add(&m->collect_ms, ms(t->collect_end_ns - t->collect_start_ns));
    sv_histogram_add(&m->scheduling_ms, ms(t->start_ns - t->submit_ns));
    sv_histogram_add(&m->codelet_ms, ms(t->end_ns - t->start_ns));
}

/* For the statistics in Triton's form: what a request waited for. */
static void count_stats(const struct sv_task *t, int64_t now_ns)
{
    struct sv_batch_stats b = {.rows = t->rows,
                               .is_failed = t->is_failed,
                               .input_ns = t->submit_ns - t->joined_ns,
                               .infer_ns = t->end_ns - t->start_ns,
                               .output_ns = now_ns - t->end_ns};
    for (const struct sv_served *r = t->requests; r; r = r->next) {
        if (t->is_divided && r->is_failed) {
            b.failed++;
            b.failed_ns += now_ns - r->enqueued_ns;
            continue;
        }
        b.requests++;
        b.queue_ns += t->joined_ns - r->enqueued_ns;
        b.whole_ns += now_ns - r->enqueued_ns;
    }
    sv_model_stats_add(&t->model->stats, &b);
}

static void count_request(const struct sv_task *t, const struct sv_served *r, int64_t now_ns)
{
    struct sv_model_metrics *m = &t->model->metrics;
    sv_histogram_add(&m->latency_ms, ms(now_ns - r->enqueued_ns));
    sv_histogram_add(&m->queue_ms, ms(t->collect_start_ns - r->enqueued_ns));
    sv_histogram_add(&t->model->tick_latency, ms(now_ns - r->enqueued_ns));
}

void sv_served_ends(struct sv_model *m, struct sv_served *r, enum sv_served_end how,
                    const char *why)
{
    struct stave_serving *trace = r->trace;
    _Atomic uint64_t *const counters[] = {[SV_ANSWERED] = &m->metrics.completed,
                                          [SV_FAILED] = &m->metrics.failed,
                                          [SV_CLIENT_LEFT] = &m->metrics.cancelled};
    if (r->has_ended)
        return;
    r->has_ended = true;
    switch (how) {
    case SV_ANSWERED: stave_serving_responded(trace, r->id, 0); break;
    case SV_FAILED: stave_serving_failed(trace, r->id, why, 0); break;
    case SV_CLIENT_LEFT: stave_serving_cancelled(trace, r->id, 0); break;
    }
    if (!r->is_warmup)
        atomic_fetch_add_explicit(counters[how], 1, memory_order_relaxed);
}

static bool divide_floats(const struct sv_task *t, struct sv_served *r, uint32_t row)
{
    size_t n = t->model->net->out_size;
    r->out[0].dims[0] = (int64_t)n;
    r->out[0].len = r->rows * n * sizeof(float);
    r->out[0].bytes = malloc(r->out[0].len);
    if (r->out[0].bytes)
        memcpy(r->out[0].bytes, t->slot->out + row * n, r->out[0].len);
    return r->out[0].bytes != NULL;
}

/* Each request its rows; from done() on it is no longer ours. */
static void answer(struct sv_task *t)
{
    struct sv_model *m = t->model;
    int64_t now_ns = stave_now_ns();
    uint32_t row = 0;
    for (struct sv_served *r = t->requests, *next; r; r = next) {
        next = r->next;
        if (!t->is_divided)
            r->is_failed = t->is_failed ||
                           !(m->has_floats ? divide_floats(t, r, row) : sv_typed_divide(t, r, row));
        row += r->rows;
        r->batch = t->id;
        r->batch_rows = t->rows;
        r->worker = t->worker;
        if (!t->is_warmup)
            count_request(t, r, now_ns);
        if (r->is_failed)
            sv_served_ends(m, r, SV_FAILED, "the worker could not compute it");
        r->done(r);
    }
}

static void free_task(struct sv_task *t)
{
    sv_typed_free(t);
    free(t);
}

/* In the trace each time, on standard error the first time: a model that cannot be computed fails
 * with every batch. */
static void report_failure(struct sv_task *t)
{
    struct sv_model *m = t->model;
    if (t->is_failed)
        stave_serving_batch_failed(t->trace, t->id, t->why, 0);
    if (!atomic_exchange(&m->has_complained, true))
        sv_print(stderr, "stave-server: model %s: batch %llu could not be computed: %s\n",
                 m->config->name, (unsigned long long)t->id, t->why);
}

/* The output is in main memory. */
static void on_output(void *arg)
{
    struct sv_task *t = arg;
    struct sv_model *m = t->model;
    struct stave_serving *trace = t->trace;
    int64_t start_ns = stave_now_ns();
    if (!t->is_warmup)
        count_task(t);
    if (t->is_failed || t->why[0])
        report_failure(t);
    if (!t->is_warmup)
        count_stats(t, start_ns);
    answer(t);
    if (m->has_floats)
        starpu_data_release(t->slot->out_handle);
    stave_serving_callback(trace, t->id, start_ns, 0);
    if (m->engine->config->verbose)
        sv_print(stderr, "batch %llu: %u requests, %u rows, worker %d, computed in %.3f ms\n",
                 (unsigned long long)t->id, t->n, t->rows, t->worker, ms(t->end_ns - t->start_ns));
    work_ends(m->engine);
    sv_engine_give_slot(m, t->slot);
    free_task(t);
}

static void on_computed(void *arg)
{
    struct sv_task *t = arg;
    const struct starpu_task *task = starpu_task_get_current();
    /* Where requests may be left out, what StarPU did for them would stay. */
    bool is_shown = t->trace && atomic_load(&t->model->engine->keeps_all);
    if (is_shown && task && task->profiling_info)
        sv_starpu_view_task(t, task->profiling_info);
    if (t->model->has_floats)
        starpu_data_acquire_cb(t->slot->out_handle, STARPU_R, on_output, t);
    else
        on_output(t);
}

/* ---- submission: on a batcher's thread ---- */

struct sv_slot *sv_engine_take_slot(struct sv_model *m)
{
    pthread_mutex_lock(&m->pool_lock);
    while (!m->free_slots || m->in_work >= (uint32_t)m->config->max_inflight_tasks)
        pthread_cond_wait(&m->pool_changed, &m->pool_lock);
    struct sv_slot *s = m->free_slots;
    m->free_slots = s->next;
    m->in_work++;
    pthread_mutex_unlock(&m->pool_lock);
    return s;
}

/* Those of its requests that are traced; a batch without any is not traced either. */
static void trace_collected(struct sv_task *t)
{
    uint64_t few[64], *ids = t->n <= 64 ? few : sv_alloc(t->n * sizeof *ids);
    size_t n = 0;
    for (const struct sv_served *r = t->requests; r; r = r->next) {
        if (!r->trace)
            continue;
        t->trace = r->trace;
        ids[n++] = r->id;
    }
    stave_serving_collected(t->trace, t->id, t->model->traced, ids, n, t->rows,
                            t->is_warmup ? STAVE_SERVING_WARMUP : 0, t->collect_start_ns,
                            t->collect_end_ns);
    if (ids != few)
        free(ids);
}

static void copy_inputs(struct sv_task *t)
{
    uint8_t *to = (uint8_t *)t->slot->in;
    if (!t->model->has_floats) {
        sv_typed_join(t);
        return;
    }
    starpu_data_acquire(t->slot->in_handle, STARPU_W);
    for (const struct sv_served *r = t->requests; r; r = r->next) {
        memcpy(to, r->in[0].bytes, r->in[0].len);
        to += r->in[0].len;
    }
    starpu_data_release(t->slot->in_handle);
}

static void fail_all(struct sv_task *t)
{
    struct sv_model *m = t->model;
    t->is_failed = true;
    stave_serving_batch_failed(t->trace, t->id, "StarPU refused the task", 0);
    answer(t);
    work_ends(m->engine);
    sv_engine_give_slot(m, t->slot);
    free_task(t);
}

void sv_engine_submit(struct sv_task *t, int forced_worker)
{
    struct sv_engine *e = t->model->engine;
    t->id = atomic_fetch_add_explicit(&e->next_batch, 1, memory_order_relaxed);
    if (e->trace)
        trace_collected(t); /* before it belongs to others */
    work_begins(e);
    t->joined_ns = stave_now_ns();
    copy_inputs(t);
    struct starpu_task *task = starpu_task_create();
    task->cl = &t->model->codelet;
    if (t->model->has_floats) {
        task->handles[0] = t->slot->in_handle;
        task->handles[1] = t->slot->out_handle;
    }
    task->cl_arg = t;
    task->cl_arg_size = sizeof *t;
    task->callback_func = on_computed;
    task->callback_arg = t;
    if (forced_worker >= 0) {
        task->execute_on_a_specific_worker = 1;
        task->workerid = (unsigned)forced_worker;
    }
    t->job = starpu_task_get_job_id(task);
    t->submit_ns = stave_now_ns();
    stave_serving_submitted(t->trace, t->id, t->submit_ns);
    if (starpu_task_submit(task) != 0) {
        task->destroy = 0;
        starpu_task_destroy(task);
        fail_all(t);
    }
}

/* ---- opening and closing ---- */

static void init_lock(pthread_mutex_t *lock, pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    pthread_mutex_init(lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

static int open_model(struct sv_engine *e, struct sv_model *m, const struct sv_config *c,
                      struct sv_err *err)
{
    m->engine = e;
    m->config = c;
    int code = sv_model_load(m, err);
    if (code < 0)
        return code;
    init_lock(&m->queue.lock, &m->queue.changed);
    init_lock(&m->pool_lock, &m->pool_changed);
    m->queue.last = &m->queue.first;
    m->queue.limit = (uint32_t)c->max_queue_size;
    m->target = m->rows_max;
    sv_congestion_init(&m->congestion, &c->congestion);
    sv_model_metrics_init(&m->metrics);
    sv_model_stats_init(&m->stats, m->rows_max);
    m->tick_latency = m->metrics.latency_ms;
    return code;
}

/* Memory that devices can reach by themselves, where there are any. */
static float *new_buffer(size_t n)
{
    void *p;
    if (starpu_malloc(&p, n * sizeof(float)) != 0)
        sv_out_of_memory(n * sizeof(float));
    memset(p, 0, n * sizeof(float));
    return p;
}

static void open_slots(struct sv_model *m)
{
    size_t n = (size_t)m->config->pool_size;
    m->slots = sv_alloc(n * sizeof *m->slots);
    for (size_t i = 0; i < n; i++) {
        struct sv_slot *s = &m->slots[i];
        uint32_t in = (uint32_t)(m->net->in_size * m->rows_max);
        uint32_t out = (uint32_t)(m->net->out_size * m->rows_max);
        s->next = m->free_slots;
        m->free_slots = s;
        if (!m->has_floats)
            continue;
        s->in = new_buffer(in);
        s->out = new_buffer(out);
        starpu_vector_data_register(&s->in_handle, STARPU_MAIN_RAM, (uintptr_t)s->in, in,
                                    sizeof(float));
        starpu_vector_data_register(&s->out_handle, STARPU_MAIN_RAM, (uintptr_t)s->out, out,
                                    sizeof(float));
    }
    starpu_codelet_init(&m->codelet);
    m->codelet.cpu_funcs[0] = compute_cpu;
    if (m->has_floats) {
        m->codelet.opencl_funcs[0] = compute_opencl;
        m->codelet.nbuffers = 2;
        m->codelet.modes[0] = STARPU_R;
        m->codelet.modes[1] = STARPU_W;
    }
    m->codelet.name = m->config->name;
}

static int open_starpu(struct sv_engine *e, struct sv_err *err)
{
    const struct sv_config *c = e->config;
    for (const struct sv_yaml_node *v = c->starpu_env ? c->starpu_env->first : NULL; v; v = v->next)
        setenv(v->key, v->text, 0);
    /* PoCL's device is a CPU: StarPU ignores it by default. */
    if (c->use_opencl)
        setenv("STARPU_OPENCL_ON_CPUS", "1", 0);
    if (!c->verbose)
        setenv("STARPU_SILENT", "1", 0);
    sv_fxt_prepare(&e->fxt, c->trace_enabled ? c->trace_output : NULL);
    struct starpu_conf conf;
    starpu_conf_init(&conf);
    conf.ncuda = 0;
    conf.nopencl = c->use_opencl ? -1 : 0;
    if (!c->use_cpu)
        conf.ncpus = 0;
    else if (c->workers)
        conf.ncpus = (int)c->workers;
    conf.catch_signals = 0;
    if (!getenv("STARPU_SCHED"))
        conf.sched_policy_name = "lws";
    if (starpu_init(&conf) != 0)
        return sv_error(err, SV_EIO, "StarPU cannot start: no worker for %s%s%s",
                        c->use_cpu ? "CPUs" : "", c->use_cpu && c->use_opencl ? " and " : "",
                        c->use_opencl ? "OpenCL devices (is pocl-opencl-icd installed?)" : "");
    openblas_set_num_threads(1); /* the workers are the threads */
    return 0;
}

static int find_workers(struct sv_engine *e, struct sv_err *err)
{
    e->n_workers = starpu_worker_get_count();
    if (e->n_workers > SV_WORKERS_MAX)
        return sv_error(err, SV_ELIMIT, "%u StarPU workers: at most %d", e->n_workers,
                        SV_WORKERS_MAX);
    for (uint32_t i = 0; i < e->n_workers; i++) {
        struct sv_worker *w = &e->workers[i];
        bool is_cl = starpu_worker_get_type((int)i) == STARPU_OPENCL_WORKER;
        snprintf(w->type, sizeof w->type, "%s", is_cl ? "opencl" : "cpu");
        starpu_worker_get_name((int)i, w->name, sizeof w->name);
        w->device = is_cl ? starpu_worker_get_devid((int)i) : -1;
    }
    return 0;
}

static void unload(struct sv_model *m)
{
    sv_network_close(m->net);
    sv_onnx_close(m->onnx);
    sv_model_stats_fini(&m->stats);
}

bool sv_engine_can_compute(const struct sv_model *m, uint32_t worker)
{
    return m->has_floats || strcmp(m->engine->workers[worker].type, "cpu") == 0;
}

int sv_engine_open(struct sv_engine *e, struct sv_config *const *configs, uint32_t n,
                   struct sv_err *err)
{
    int code = 0;
    e->config = configs[0];
    for (uint32_t i = 0; code == 0 && i < n; i++) {
        code = open_model(e, &e->models[i], configs[i], err);
        e->n_models = i + 1;
    }
    if (code == 0)
        code = open_starpu(e, err);
    if (code < 0) {
        for (uint32_t i = 0; i < e->n_models; i++)
            unload(&e->models[i]);
        return code;
    }
    e->started_ns = stave_now_ns();
    code = find_workers(e, err);
    for (uint32_t i = 0; i < n; i++)
        open_slots(&e->models[i]);
    sv_trace_name(e);
    pthread_mutex_init(&e->work_lock, NULL);
    starpu_pause();
    return code;
}

static void free_cl(void *arg)
{
    struct sv_engine *e = arg;
    int worker = starpu_worker_get_id();
    for (uint32_t i = 0; i < e->n_models; i++) {
        sv_forward_cl_free(e->models[i].cl[worker]);
        e->models[i].cl[worker] = NULL;
    }
}

static void close_model(struct sv_model *m)
{
    for (int64_t i = 0; m->has_floats && i < m->config->pool_size; i++) {
        starpu_data_unregister(m->slots[i].in_handle);
        starpu_data_unregister(m->slots[i].out_handle);
        starpu_free(m->slots[i].in);
        starpu_free(m->slots[i].out);
    }
    free(m->slots);
}

void sv_engine_close(struct sv_engine *e)
{
    starpu_task_wait_for_all();
    starpu_resume();
    if (e->trace)
        sv_starpu_view_stop(e);
    starpu_execute_on_each_worker(free_cl, e, STARPU_OPENCL);
    for (uint32_t i = 0; i < e->n_models; i++)
        close_model(&e->models[i]);
    starpu_shutdown();
    for (uint32_t i = 0; i < e->n_models; i++) {
        for (uint32_t w = 0; w < SV_WORKERS_MAX; w++)
            free(e->models[i].scratch[w]);
        unload(&e->models[i]);
    }
}

const struct sv_model *sv_engine_find(const struct sv_engine *e, const char *name, size_t len)
{
    for (uint32_t i = 0; i < e->n_models; i++)
        if (strlen(e->models[i].config->name) == len &&
            memcmp(e->models[i].config->name, name, len) == 0)
            return &e->models[i];
    return NULL;
}
