/* Handle → record: what the layer knows of a queue, a kernel, a memory object. Any thread; one lock
 * per shard. */
#pragma once

#include <pthread.h>
#include <stddef.h>

/* First member of each record. */
struct cl_node {
    const void *handle;
    struct cl_node *next;
};

enum { CL_SHARDS = 16 };
struct cl_shard {
    pthread_mutex_t lock;
    struct cl_node **buckets;
    size_t n, cap;
};
struct cl_map {
    struct cl_shard shards[CL_SHARDS];
};
#define CL_SHARD_INIT                         \
    {                                         \
        PTHREAD_MUTEX_INITIALIZER, NULL, 0, 0 \
    }
#define CL_SHARD_INIT4 CL_SHARD_INIT, CL_SHARD_INIT, CL_SHARD_INIT, CL_SHARD_INIT
#define CL_MAP_INIT                                                        \
    {                                                                      \
        {                                                                  \
            CL_SHARD_INIT4, CL_SHARD_INIT4, CL_SHARD_INIT4, CL_SHARD_INIT4 \
        }                                                                  \
    }

struct cl_node *cl_map_find(struct cl_map *m, const void *handle);
/* The one that is in the map afterwards: `node`, or another thread's that was faster. NULL: no
 * memory. */
struct cl_node *cl_map_add(struct cl_map *m, struct cl_node *node);
struct cl_node *cl_map_take(struct cl_map *m, const void *handle); /* out of the map; NULL: none */
/* Calls f for each with its shard locked: f must not come back to the map. */
void cl_map_each(struct cl_map *m, void (*f)(struct cl_node *, void *), void *arg);
