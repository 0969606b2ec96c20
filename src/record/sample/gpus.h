/* Utilisation of GPUs at an interval, by their vendors' own means: NVIDIA through NVML (loaded by
 * name, when it is there), AMD through sysfs. A live source of counters in the form of docs/io.md.
 *
 *     sv_gpus_new → per sample: sv_gpus_sample(), sv_pump_round() */
#ifndef SV_RECORD_SAMPLE_GPUS_H
#define SV_RECORD_SAMPLE_GPUS_H

#include "core/stream/stream.h"
#include "record/decode/tree.h"

struct sv_gpus;

/* NULL in `nvml` and `sysfs` are "libnvidia-ml.so.1" and "/sys": other ones are for tests. `tree`
 * (may be NULL): whose processes are sampled. */
struct sv_gpus *sv_gpus_new(struct sv_dict *dict, struct sv_tree *tree, const char *nvml,
                            const char *sysfs);
void sv_gpus_free(struct sv_gpus *g);
struct sv_source *sv_gpus_source(struct sv_gpus *g);

size_t sv_gpus_count(const struct sv_gpus *g);
const char *sv_gpus_why_none(const struct sv_gpus *g); /* in a few words, when there is none */
const char *sv_gpus_name(const struct sv_gpus *g, size_t i);

/* Asks every device. What a device does not report is no value, never 0. */
void sv_gpus_sample(struct sv_gpus *g, int64_t now_ns);

#endif
