/* Chooses lanes (core/stream/lanes.h is for slices in the order of their begins). Called for block requests and requests of io_uring, in the order in which they end. */
#include "record/decode/overlap.h"

#include <stdio.h>

void sv_rows_init(struct sv_rows *l, sv_track row)
{
    *l = (struct sv_rows){.tracks = {row}, .n = 1};
}

static uint32_t lane_for(struct sv_rows *l, struct sv_dict *dict, int64_t start_ns)
{
    for (uint32_t i = 0; i < l->n; i++)
        if (l->end_ns[i] <= start_ns)
            return i;
    if (l->n == SV_ROWS_MAX)
        return SV_ROWS_MAX - 1;
    char name[64];
    struct sv_text row = sv_dict_text(dict, dict->tracks[l->tracks[0]].name);
    snprintf(name, sizeof name, "%.40s %u", row.bytes, l->n + 1);
    l->tracks[l->n] = sv_dict_child(dict, l->tracks[0], SV_TRACK_LANE, sv_dict_cstr(dict, name));
    return l->n++;
}

sv_track sv_rows_take(struct sv_rows *l, struct sv_dict *dict, int64_t *start_ns, int64_t *end_ns)
{
    uint32_t lane = lane_for(l, dict, *start_ns);
    if (*start_ns < l->end_ns[lane])
        *start_ns = l->end_ns[lane];
    if (*end_ns < *start_ns)
        *end_ns = *start_ns;
    l->end_ns[lane] = *end_ns;
    return l->tracks[lane];
}
