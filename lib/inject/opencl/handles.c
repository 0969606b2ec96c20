/* The maps from OpenCL's handles to what the layer knows of them. Called by the wrappers on the
 * program's threads.
 *
 * Chained buckets, doubled when full; the records belong to the caller. No OpenCL call is made
 * under a lock: a driver may call back into the program, which may come here again. */
#include <stdint.h>
#include <stdlib.h>

#include "handles.h"

static uint64_t hash(const void *handle)
{
    uint64_t h = (uint64_t)(uintptr_t)handle * 0x9E3779B97F4A7C15u;
    return h ^ (h >> 32);
}

static struct cl_shard *shard_of(struct cl_map *m, uint64_t h)
{
    return &m->shards[h % CL_SHARDS];
}

static struct cl_node **place(struct cl_shard *s, uint64_t h, const void *handle)
{
    struct cl_node **at = &s->buckets[h / CL_SHARDS % s->cap];
    while (*at && (*at)->handle != handle)
        at = &(*at)->next;
    return at;
}

static int grow(struct cl_shard *s)
{
    size_t cap = s->cap ? s->cap * 2 : 16;
    struct cl_node **buckets = calloc(cap, sizeof *buckets);
    if (!buckets)
        return s->cap ? 0 : -1; /* a full one is slow, not wrong */
    for (size_t i = 0; i < s->cap; i++) {
        struct cl_node *next;
        for (struct cl_node *n = s->buckets[i]; n; n = next) {
            next = n->next;
            struct cl_node **to = &buckets[hash(n->handle) / CL_SHARDS % cap];
            n->next = *to;
            *to = n;
        }
    }
    free(s->buckets);
    s->buckets = buckets;
    s->cap = cap;
    return 0;
}

struct cl_node *cl_map_find(struct cl_map *m, const void *handle)
{
    uint64_t h = hash(handle);
    struct cl_shard *s = shard_of(m, h);
    pthread_mutex_lock(&s->lock);
    struct cl_node *n = s->cap ? *place(s, h, handle) : NULL;
    pthread_mutex_unlock(&s->lock);
    return n;
}

struct cl_node *cl_map_add(struct cl_map *m, struct cl_node *node)
{
    uint64_t h = hash(node->handle);
    struct cl_shard *s = shard_of(m, h);
    pthread_mutex_lock(&s->lock);
    if (s->n >= s->cap && grow(s) < 0) {
        pthread_mutex_unlock(&s->lock);
        return NULL;
    }
    struct cl_node **at = place(s, h, node->handle);
    if (!*at) {
        node->next = NULL;
        *at = node;
        s->n++;
    }
    struct cl_node *kept = *at;
    pthread_mutex_unlock(&s->lock);
    return kept;
}

struct cl_node *cl_map_take(struct cl_map *m, const void *handle)
{
    uint64_t h = hash(handle);
    struct cl_shard *s = shard_of(m, h);
    pthread_mutex_lock(&s->lock);
    struct cl_node *n = NULL;
    if (s->cap) {
        struct cl_node **at = place(s, h, handle);
        n = *at;
        if (n) {
            *at = n->next;
            s->n--;
        }
    }
    pthread_mutex_unlock(&s->lock);
    return n;
}

void cl_map_each(struct cl_map *m, void (*f)(struct cl_node *, void *), void *arg)
{
    for (size_t k = 0; k < CL_SHARDS; k++) {
        struct cl_shard *s = &m->shards[k];
        pthread_mutex_lock(&s->lock);
        for (size_t i = 0; i < s->cap; i++)
            for (struct cl_node *n = s->buckets[i]; n; n = n->next)
                f(n, arg);
        pthread_mutex_unlock(&s->lock);
    }
}
