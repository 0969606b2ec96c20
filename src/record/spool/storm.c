/* See storm.h. Called by defer.c, once per round of the recorder. */
#include "record/spool/storm.h"

#define STORM_BYTES_S   ((uint64_t)6 << 20) /* some 100,000 calls a second: 2 % of a CPU to decode */
#define WINDOW_NS       ((int64_t)100000000)
#define BACKOFF_NS      ((int64_t)250000000)
#define BACKOFF_MOST_NS ((int64_t)8000000000)

void sv_storm_init(struct sv_storm *s, bool is_always)
{
    *s = (struct sv_storm){.is_on = is_always, .is_always = is_always, .backoff_ns = BACKOFF_NS};
}

void sv_storm_saw(struct sv_storm *s, int64_t now, uint64_t bytes)
{
    s->window_bytes += bytes;
    int64_t took = now - s->window_ns;
    if (took < WINDOW_NS || s->is_always)
        return;
    s->is_on = s->window_ns &&
               (double)s->window_bytes * 1e9 / (double)took >= (double)STORM_BYTES_S;
    s->window_ns = now;
    s->window_bytes = 0;
}

/* If that comes soon after the beginning it will come again. */
void sv_storm_back_off(struct sv_storm *s, int64_t now)
{
    bool is_soon = now - s->begun_ns < 2 * s->backoff_ns;
    s->backoff_ns = is_soon ? s->backoff_ns * 2 : BACKOFF_NS;
    if (s->backoff_ns > BACKOFF_MOST_NS)
        s->backoff_ns = BACKOFF_MOST_NS;
    s->not_before_ns = s->is_always ? 0 : now + s->backoff_ns;
}
