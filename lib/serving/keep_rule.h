/* Which requests are kept: slow ones by a limit or by a percentile of what the model took lately.
 * Those that failed are kept in any case. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct sv_keep_rule {
    bool is_on;       /* false: all requests are kept */
    int64_t slow_ns;  /* kept from this latency on; 0: no limit */
    uint32_t percent; /* in thousandths: 99900 is p99.9; 0: none */
};

/* "all", or a list with commas of "failed", "slow > 50ms" and "p99". False: it is none of them. */
bool sv_keep_parse(const char *text, struct sv_keep_rule *out);
#define SV_KEEP_WORDS "all, failed, slow > 50ms, p99, or several with commas"

/* Latencies of the last 30 to 60 seconds, each to 3 %. A zeroed struct is an empty one. */
enum { SV_LATENCY_BINS = 1920 };
struct sv_latencies {
    uint32_t bins[2][SV_LATENCY_BINS]; /* since since_ns, and of the 30 seconds before */
    uint64_t n[2];
    int64_t since_ns;
    uint32_t percent, until_next;
    /* Slow are those past the bin of the rule's percentile and this part of those in it. */
    bool is_known; /* false: too few are */
    uint32_t bin;
    double part, owed;
};

/* Is one that ended at time_ns slow by the rule? It is counted. */
bool sv_keep_is_slow(const struct sv_keep_rule *rule, struct sv_latencies *l, int64_t latency_ns,
                     int64_t time_ns);
