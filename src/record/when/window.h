/* Durations of the last while as a histogram: median and percentiles with an error of at most
 * 1.6 %, in memory that does not grow. For conditions such as `step > 2x median`. */
#ifndef SV_RECORD_WHEN_WINDOW_H
#define SV_RECORD_WHEN_WINDOW_H

#include <stdint.h>

enum { SV_WINDOW_SLOTS = 8, SV_WINDOW_FINE = 32, SV_WINDOW_BUCKETS = 60 * SV_WINDOW_FINE };

struct sv_when_window {
    int64_t slot_ns; /* the window has SV_WINDOW_SLOTS of them */
    int64_t newest;  /* the number of the newest slot */
    uint32_t slots[SV_WINDOW_SLOTS][SV_WINDOW_BUCKETS];
    uint32_t sums[SV_WINDOW_BUCKETS]; /* of all slots */
    uint64_t n;
    uint64_t changes, known_changes; /* since the beginning; when `known` was computed */
    double known_share;
    int64_t known;
};

struct sv_when_window *sv_window_new(int64_t span_ns);
void sv_window_clear(struct sv_when_window *w);
/* A value at a time; one older than the window is left out. */
void sv_window_add(struct sv_when_window *w, int64_t ts_ns, int64_t value);
void sv_window_turn(struct sv_when_window *w, int64_t ts_ns); /* forgets what is too old by then */
/* The value below which this share of all lies (0.5: the median); 0 where there is none. */
int64_t sv_window_at(struct sv_when_window *w, double share);

#endif
