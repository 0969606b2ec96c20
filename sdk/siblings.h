/* Lanes: whole slices of one track as begin and end, where they may overlap.
 *
 * Slices arrive when they were measured, often inner ones first, never all at once, so that the stage `split` (which needs time
 * order) cannot be used. Each track remembers its newest slices; one that would cross one of them goes to a sibling lane. */
#ifndef SV_SDK_SIBLINGS_H
#define SV_SDK_SIBLINGS_H

#include "base/map.h"
#include "model/dict.h"

struct sv_sibling_track;

struct sv_siblings {
    struct sv_map by_track; /* sv_track → index + 1 */
    struct sv_sibling_track *tracks;
    size_t n, cap, n_lanes;
};

/* The lane (or the track itself) for a slice [start, end]. */
sv_track sv_siblings_choose(struct sv_siblings *l, struct sv_dict *dict, sv_track track,
                            int64_t start, int64_t end);
size_t sv_siblings_bytes(const struct sv_siblings *l); /* memory held */
void sv_siblings_fini(struct sv_siblings *l);

#endif
