/* Counts and writes a model's statistics: see model_stats.h. */
#include "server/model_stats.h"

#include "core/base/mem.h"
#include "core/base/wire.h"

#include <stdlib.h>
#include <time.h>

void sv_model_stats_init(struct sv_model_stats *s, uint32_t rows_max)
{
    pthread_mutex_init(&s->lock, NULL);
    s->rows_max = rows_max;
    s->sizes = sv_alloc(rows_max * sizeof *s->sizes);
}

void sv_model_stats_fini(struct sv_model_stats *s)
{
    free(s->sizes);
    s->sizes = NULL;
}

static void add(struct sv_duration *d, uint64_t count, int64_t ns)
{
    d->count += count;
    d->ns += ns > 0 ? (uint64_t)ns : 0;
}

void sv_model_stats_add(struct sv_model_stats *s, const struct sv_batch_stats *b)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    pthread_mutex_lock(&s->lock);
    s->last_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    add(b->is_failed ? &s->fail : &s->success, b->requests, b->whole_ns);
    add(&s->fail, b->failed, b->failed_ns);
    if (!b->is_failed && b->rows >= 1 && b->rows <= s->rows_max) {
        struct sv_size_stats *size = &s->sizes[b->rows - 1];
        s->inferences += b->rows;
        s->executions++;
        add(&s->queue, b->requests, b->queue_ns);
        /* Every request waits for the whole batch. */
        add(&s->input, b->requests, b->input_ns * b->requests);
        add(&s->infer, b->requests, b->infer_ns * b->requests);
        add(&s->output, b->requests, b->output_ns * b->requests);
        add(&size->input, 1, b->input_ns);
        add(&size->infer, 1, b->infer_ns);
        add(&size->output, 1, b->output_ns);
    }
    pthread_mutex_unlock(&s->lock);
}

/* ---- JSON ---- */

static void json_duration(struct sv_json *j, const char *key, const struct sv_duration *d)
{
    sv_json_key(j, key, strlen(key));
    sv_json_begin(j, '{');
    sv_json_put(j, "count", u64, d->count);
    sv_json_put(j, "ns", u64, d->ns);
    sv_json_end(j);
}

static void json_sizes(struct sv_json *j, const struct sv_model_stats *s)
{
    sv_json_put(j, "batch_stats", begin, '[');
    for (uint32_t i = 0; i < s->rows_max; i++) {
        if (!s->sizes[i].infer.count)
            continue;
        sv_json_begin(j, '{');
        sv_json_put(j, "batch_size", u64, i + 1);
        json_duration(j, "compute_input", &s->sizes[i].input);
        json_duration(j, "compute_infer", &s->sizes[i].infer);
        json_duration(j, "compute_output", &s->sizes[i].output);
        sv_json_end(j);
    }
    sv_json_end(j);
}

void sv_model_stats_json(struct sv_model_stats *s, const char *name, const char *version,
                         struct sv_json *j)
{
    static const struct sv_duration none;
    pthread_mutex_lock(&s->lock);
    sv_json_begin(j, '{');
    sv_json_put(j, "name", cstr, name);
    sv_json_put(j, "version", cstr, version);
    sv_json_put(j, "last_inference", u64, s->last_ms);
    sv_json_put(j, "inference_count", u64, s->inferences);
    sv_json_put(j, "execution_count", u64, s->executions);
    sv_json_put(j, "inference_stats", begin, '{');
    json_duration(j, "success", &s->success);
    json_duration(j, "fail", &s->fail);
    json_duration(j, "queue", &s->queue);
    json_duration(j, "compute_input", &s->input);
    json_duration(j, "compute_infer", &s->infer);
    json_duration(j, "compute_output", &s->output);
    json_duration(j, "cache_hit", &none);
    json_duration(j, "cache_miss", &none);
    sv_json_end(j);
    json_sizes(j, s);
    sv_json_end(j);
    pthread_mutex_unlock(&s->lock);
}

/* ---- protobuf ---- */

static void put_duration(struct sv_buf *b, uint32_t id, const struct sv_duration *d)
{
    size_t mark = sv_put_begin(b, id);
    sv_put_u64(b, 1, d->count);
    sv_put_u64(b, 2, d->ns);
    sv_put_end(b, mark);
}

void sv_model_stats_proto(struct sv_model_stats *s, const char *name, const char *version,
                          struct sv_buf *out)
{
    pthread_mutex_lock(&s->lock);
    const struct sv_duration *all[] = {&s->success, &s->fail,  &s->queue,
                                       &s->input,   &s->infer, &s->output};
    sv_put_bytes(out, 1, name, strlen(name));
    sv_put_bytes(out, 2, version, strlen(version));
    sv_put_u64(out, 3, s->last_ms);
    sv_put_u64(out, 4, s->inferences);
    sv_put_u64(out, 5, s->executions);
    size_t stats = sv_put_begin(out, 6);
    for (uint32_t i = 0; i < sizeof all / sizeof *all; i++)
        put_duration(out, i + 1, all[i]);
    sv_put_end(out, stats);
    for (uint32_t i = 0; i < s->rows_max; i++) {
        if (!s->sizes[i].infer.count)
            continue;
        size_t size = sv_put_begin(out, 7);
        sv_put_u64(out, 1, i + 1);
        put_duration(out, 2, &s->sizes[i].input);
        put_duration(out, 3, &s->sizes[i].infer);
        put_duration(out, 4, &s->sizes[i].output);
        sv_put_end(out, size);
    }
    pthread_mutex_unlock(&s->lock);
}
