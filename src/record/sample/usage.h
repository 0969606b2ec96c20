/* Utilisation from /proc at an interval: CPUs, memory, disks, network, the followed processes. A
 * live source of counters, in the form of docs/io.md.
 *
 *     sv_usage_new → per sample: sv_usage_sample(), sv_pump_round() */
#ifndef SV_RECORD_SAMPLE_USAGE_H
#define SV_RECORD_SAMPLE_USAGE_H

#include "core/stream/stream.h"
#include "record/decode/tree.h"

struct sv_usage;

/* `root` is where the files are: "/proc" but in tests. `tree` (may be NULL): whose processes are
 * sampled. */
struct sv_usage *sv_usage_new(struct sv_dict *dict, struct sv_tree *tree, const char *root);
void sv_usage_free(struct sv_usage *u);
struct sv_source *sv_usage_source(struct sv_usage *u);

/* Reads everything. Rates are means since the last call; the first call only remembers. */
void sv_usage_sample(struct sv_usage *u, int64_t now_ns);

/* What costs a file more per sample, and only some recordings need. */
enum sv_usage_also { SV_USAGE_PRESSURE = 1, SV_USAGE_OOM = 2 };
void sv_usage_also(struct sv_usage *u, unsigned also);

#endif
