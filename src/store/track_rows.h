/* Rows of the time line: which tracks make a row, in which order rows come, and on which line of
 * its row a slice lies.
 *
 *     struct sv_track_rows *r = sv_track_rows_new(trace);
 *     for (size_t i = 0; i < r->n; i++) … r->items[i].lines …
 *     uint32_t line = sv_track_rows_line(r, slice);
 *
 * A row is a track, or several that belong together: asynchronous operations of one name under one
 * parent, and the lanes of a track. Slices that overlap without nesting get lines of their own, so
 * slices of one line never overlap. (Lines end at SV_ROW_LINES_MAX: what would be on further ones
 * is on the last.) Rows and lines depend on the trace alone: the pictures, the viewer and the SQL
 * columns view_row and view_line have the same numbers. */
#pragma once

#include "core/base/buf.h"
#include "store/image.h"

#define SV_ROW_LINES_MAX 65535u

struct sv_row_info {
    sv_track track; /* the first of its tracks */
    /* its process, else the topmost track above it; 0: neither. Rows of a group are neighbours */
    sv_track group;
    uint32_t lines; /* how many lines of slices; 0 for a counter */
    /* 1: below a thread or another row of its group, and so on; it follows that one */
    uint32_t depth;
    size_t first_member, n_members;
};

struct sv_row_member {
    sv_track track;
    uint32_t line; /* its slices begin on this line of the row */
};

struct sv_track_rows {
    const struct sv_trace *trace;
    struct sv_row_info *items;
    size_t n, cap;
    struct sv_row_member *members; /* by row; those of one row by the time of their first slice */
    size_t n_members, cap_members;
    /* by track: lines of its slices where they overlap, else NULL: their depths */
    uint16_t **track_lines;
    uint32_t *row_of_track;  /* by track: the row of its slices, SV_NO_ROW: it has none */
    uint32_t *line_of_track; /* by track: where its lines begin in that row */
    bool is_kept;            /* track_lines lie in the image of the trace */
};

struct sv_track_rows *sv_track_rows_new(const struct sv_trace *t);
void sv_track_rows_free(struct sv_track_rows *r);
/* Adds the rows to an image of their trace: there sv_track_rows_new() finds them. */
void sv_track_rows_put(const struct sv_track_rows *r, struct sv_image_writer *w);

/* The line of a slice within its track. */
static inline uint32_t sv_track_line(const struct sv_track_rows *r, sv_track track, uint32_t slice)
{
    const uint16_t *lines = r->track_lines[track];
    return lines ? lines[slice - r->trace->tracks[track].first] : r->trace->slices.depth[slice];
}

/* The line of a slice within its row. */
static inline uint32_t sv_track_rows_line(const struct sv_track_rows *r, uint32_t slice)
{
    sv_track track = r->trace->slices.track[slice];
    uint32_t line = sv_track_line(r, track, slice) + r->line_of_track[track];
    return line < SV_ROW_LINES_MAX ? line : SV_ROW_LINES_MAX - 1;
}

/* How many lines it has beyond those that calls within each other need: so many overlap at once. */
uint32_t sv_row_overlap(const struct sv_track_rows *r, size_t row);

/* The rows in another order: those whose numbers are in `first` before the others of their group,
 * their groups before the other groups; what is below a row follows it. to: r->n numbers. */
void sv_rows_order(const struct sv_track_rows *r, const uint32_t *first, size_t n, uint32_t *to);

/* The name of a row for people: the track's, "thread 7" where it has none. Of a group: "rank 3 ·
 * name (pid 7)", or the track's. Both append. */
void sv_row_name(const struct sv_track_rows *r, size_t row, struct sv_buf *to);
void sv_group_name(const struct sv_dict *d, sv_track group, struct sv_buf *to);
