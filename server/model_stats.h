/* What a model has done since the start, in the form of Triton's statistics extension: counts and
 * sums of nanoseconds, also by the size of the batch.
 *
 * Added to once per batch, under a lock of its own; written as JSON and as protobuf
 * (ModelStatistics). */
#pragma once

#include "core/base/json.h"

#include <pthread.h>

struct sv_batch_stats {
    uint32_t rows, requests;
    bool is_failed;
    uint32_t failed;                       /* requests beside those: the others were computed */
    int64_t queue_ns, whole_ns, failed_ns; /* sums over its requests */
    int64_t input_ns, infer_ns, output_ns; /* of the batch */
};

struct sv_duration {
    uint64_t count, ns;
};

struct sv_size_stats {
    struct sv_duration input, infer, output;
};

struct sv_model_stats {
    pthread_mutex_t lock;
    uint64_t last_ms; /* since 1970 */
    uint64_t inferences, executions;
    struct sv_duration success, fail, queue, input, infer, output;
    struct sv_size_stats *sizes; /* [rows - 1] */
    uint32_t rows_max;
};

void sv_model_stats_init(struct sv_model_stats *s, uint32_t rows_max);
void sv_model_stats_fini(struct sv_model_stats *s);
void sv_model_stats_add(struct sv_model_stats *s, const struct sv_batch_stats *b);
/* One element of model_stats. */
void sv_model_stats_json(struct sv_model_stats *s, const char *name, const char *version,
                         struct sv_json *j);
/* One message ModelStatistics. */
void sv_model_stats_proto(struct sv_model_stats *s, const char *name, const char *version,
                          struct sv_buf *out);
