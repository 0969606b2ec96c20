/* Whether so many records come that they are moved aside, and when to begin with it again after
 * something could not wait. */
#ifndef SV_RECORD_SPOOL_STORM_H
#define SV_RECORD_SPOOL_STORM_H

#include <stdbool.h>
#include <stdint.h>

struct sv_storm {
    bool is_on;     /* so many come */
    bool is_always; /* for tests: whatever can wait does */
    int64_t window_ns;
    uint64_t window_bytes;
    int64_t begun_ns, not_before_ns, backoff_ns;
};

void sv_storm_init(struct sv_storm *s, bool is_always);
/* A round had so many bytes. */
void sv_storm_saw(struct sv_storm *s, int64_t now, uint64_t bytes);
/* Something could not wait: not_before_ns is when to begin again. */
void sv_storm_back_off(struct sv_storm *s, int64_t now);

#endif
