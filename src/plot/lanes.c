/* Which rows are lanes of one kind. See lanes.h. */
#include "plot/lanes.h"

#include <ctype.h>
#include <string.h>

/* The name of a row without the number at its end; the whole name if there is none. A row of
 * several tracks has their number behind its name: "requests 7 (3)". */
static void stem_of(const struct sv_track_rows *r, size_t row, struct sv_buf *to)
{
    sv_buf_clear(to);
    sv_row_name(r, row, to);
    size_t n = to->len;
    if (r->items[row].n_members > 1) {
        while (n > 0 && to->data[n - 1] != '(')
            n--;
        n -= n > 1 ? 2 : n;
        to->len = n;
    }
    while (n > 0 && isdigit(to->data[n - 1]))
        n--;
    if (n < to->len && n > 1 && to->data[n - 1] == ' ')
        to->len = n - 1;
}

/* Tracks that a program made to have more lanes. Threads, CPUs and streams are each of interest. */
static bool can_be_lane(const struct sv_track_rows *r, size_t row)
{
    const struct sv_track_info *tracks = r->trace->dict->tracks;
    const struct sv_row_info *info = &r->items[row];
    return tracks[info->track].kind == SV_TRACK_CUSTOM &&
           tracks[info->group].kind == SV_TRACK_PROCESS;
}

size_t sv_lanes_end(const struct sv_track_rows *r, const bool *is_shown, size_t row,
                    struct sv_buf *stem, size_t *n)
{
    const struct sv_row_info *info = r->items;
    size_t end = row + 1;
    struct sv_buf name;
    stem_of(r, row, stem);
    *n = 1;
    if (!is_shown[row] || !can_be_lane(r, row))
        return end;
    sv_buf_init(&name, SIZE_MAX);
    for (size_t at = end; at < r->n && info[at].group == info[row].group; at++) {
        if (!is_shown[at])
            continue;
        if (!can_be_lane(r, at))
            break;
        stem_of(r, at, &name);
        if (name.len != stem->len || memcmp(name.data, stem->data, stem->len) != 0)
            break;
        end = at + 1;
        ++*n;
    }
    sv_buf_fini(&name);
    if (*n >= SV_LANES_LEAST)
        return end;
    *n = 1;
    return row + 1;
}
