/* Statistics of slices by name, category and track, and of counters by track.
 *
 *     struct sv_stats s;
 *     sv_stats_make(&s, trace, self, select, SV_BY_NAME);
 *     for (size_t i = 0; i < s.n; i++) … s.groups[i].total_ns …
 *
 * Percentiles are interpolated between neighbours, as SQL's percentile() does. A slice that never
 * ended counts as lasting until the trace ends. Instants are not counted. */
#pragma once

#include "stats/select.h"

enum sv_stats_by { SV_BY_NAME = 1, SV_BY_CAT = 2, SV_BY_TRACK = 4 };

struct sv_stat {
    sv_str name, cat; /* 0 when not grouped by it */
    sv_track track;
    uint64_t count, unfinished;
    int64_t total_ns, self_ns, min_ns, max_ns;
    double p50_ns, p90_ns, p99_ns;
};

struct sv_stats {
    struct sv_stat *groups;
    size_t n;
};

/* self: of sv_self_times(). select may be NULL. */
void sv_stats_make(struct sv_stats *s, const struct sv_trace *t, const int64_t *self,
                   const struct sv_select *select, unsigned by);
void sv_stats_fini(struct sv_stats *s);

/* By "count", "total", "self", "min", "mean", "p50", "p90", "p99", "max" (falling) or "name"
 * (rising). SV_EUSAGE: no such column. */
int sv_stats_sort(struct sv_stats *s, const struct sv_dict *dict, const char *column,
                  struct sv_err *err);

struct sv_counter_stat {
    sv_track track;
    uint64_t count;
    double first, last, min, max, mean; /* the mean is weighted by time */
};
/* Tracks with counter values, in their order; free() the result. */
struct sv_counter_stat *sv_counter_stats(const struct sv_trace *t, const struct sv_select *select,
                                         size_t *n);
