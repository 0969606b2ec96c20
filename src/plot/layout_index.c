/* The layout's index: which rows there are, in which order, on which lines their slices lie, and a summary of every 64 slices.
 *
 * Made once per trace, used by every layout of it. Rows are grouped by process, or by
 * the topmost track above them (CPU, disks, a GPU), processes last; within a group a track is followed by those below it, threads
 * come first, by tid, then the other tracks by their order and name. Summaries are by row of the store: the lines that
 * 64 (and 4,096) neighbours lie on, and the longest of them. Costs one pass over two columns and less than half a byte per slice. */
#include "plot/layout_impl.h"

#include "core/base/map.h"
#include "core/base/mem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- lines of overlapping slices ---- */

static uint16_t *overlap_lines(const struct sv_trace *t, sv_track track, uint32_t *n_lines)
{
    const struct sv_trace_track *k = &t->tracks[track];
    const struct sv_slices *s = &t->slices;
    int64_t busy_until[SV_LINES_MAX];
    uint16_t *lines = sv_alloc((size_t)(k->end - k->first + 1) * sizeof *lines);
    for (uint32_t i = 0; i < SV_LINES_MAX; i++)
        busy_until[i] = INT64_MIN;
    for (uint32_t row = k->first; row < k->end; row++) {
        uint32_t line = s->parent[row] == SV_NO_ROW ? 0u : lines[s->parent[row] - k->first] + 1u;
        while (line < SV_LINES_MAX - 1 && busy_until[line] > s->ts_ns[row])
            line++;
        if (line > SV_LINES_MAX - 1)
            line = SV_LINES_MAX - 1;
        busy_until[line] = sv_trace_end_ns(t, row);
        lines[row - k->first] = (uint16_t)line;
        *n_lines = line + 1 > *n_lines ? line + 1 : *n_lines;
    }
    return lines;
}

static uint32_t track_height(struct sv_layout_index *x, sv_track track)
{
    const struct sv_trace_track *k = &x->trace->tracks[track];
    uint32_t lines = k->depth_max + 1u;
    if (k->first == k->end)
        return 0;
    if (k->has_overlap) {
        lines = 1;
        x->track_lines[track] = overlap_lines(x->trace, track, &lines);
    }
    return lines < SV_LINES_MAX ? lines : SV_LINES_MAX;
}

/* ---- order ---- */

#define DEPTH_MAX 16u /* of the tree of tracks; what is deeper is sorted like its ancestor there */

/* A lane represents the track whose overlapping slices it holds. */
static sv_track without_lane(const struct sv_dict *d, sv_track track)
{
    for (unsigned up = 0;
         up < 64 && d->tracks[track].kind == SV_TRACK_LANE && d->tracks[track].parent; up++)
        track = d->tracks[track].parent;
    return track;
}

/* A track at the top that is no process heads a group only of what lies below it. */
static sv_track group_of(const struct sv_dict *d, sv_track track)
{
    sv_track process = sv_dict_process_of(d, track), top = track = without_lane(d, track);
    if (process)
        return process;
    for (unsigned up = 0; up < 64 && d->tracks[top].parent; up++)
        top = d->tracks[top].parent;
    return top == track ? 0 : top;
}

/* The tracks from below the group down to this one. */
static size_t path_of(const struct sv_dict *d, sv_track track, sv_track group,
                      sv_track path[DEPTH_MAX])
{
    sv_track up[64];
    size_t n = 0;
    for (track = without_lane(d, track); track && track != group && n < 64;
         track = d->tracks[track].parent)
        up[n++] = track;
    size_t kept = n < DEPTH_MAX ? n : DEPTH_MAX;
    for (size_t i = 0; i < kept; i++)
        path[i] = up[n - 1 - i];
    return kept;
}

static int64_t order_of(const struct sv_track_info *k)
{
    return k->has_order ? k->order : 0;
}

/* Siblings: threads by tid first, then what has an order by it, then by name. */
static int compare_siblings(const struct sv_dict *d, sv_track a, sv_track b)
{
    const struct sv_track_info *x = &d->tracks[a], *y = &d->tracks[b];
    if ((x->kind == SV_TRACK_THREAD) != (y->kind == SV_TRACK_THREAD))
        return x->kind == SV_TRACK_THREAD ? -1 : 1;
    if (order_of(x) != order_of(y))
        return order_of(x) < order_of(y) ? -1 : 1;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    int by_name = strcmp(sv_dict_text(d, x->name).bytes, sv_dict_text(d, y->name).bytes);
    return by_name ? by_name : a < b ? -1 : a > b;
}

/* Tracks of no group, then groups that are no processes by name, then processes by pid. */
static int compare_groups(const struct sv_dict *d, sv_track a, sv_track b)
{
    const struct sv_track_info *x = &d->tracks[a], *y = &d->tracks[b];
    if (a == 0 || b == 0)
        return a == 0 ? -1 : 1;
    if ((x->kind == SV_TRACK_PROCESS) != (y->kind == SV_TRACK_PROCESS))
        return x->kind == SV_TRACK_PROCESS ? 1 : -1;
    if (order_of(x) != order_of(y))
        return order_of(x) < order_of(y) ? -1 : 1;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    int by_name = strcmp(sv_dict_text(d, x->name).bytes, sv_dict_text(d, y->name).bytes);
    return by_name ? by_name : a < b ? -1 : 1;
}

static int compare_rows(const void *a, const void *b, void *ctx)
{
    const struct sv_dict *d = ctx;
    const struct sv_row_info *x = a, *y = b;
    sv_track p[DEPTH_MAX], q[DEPTH_MAX];
    if (x->group != y->group)
        return compare_groups(d, x->group, y->group);
    size_t n = path_of(d, x->track, x->group, p), m = path_of(d, y->track, y->group, q);
    for (size_t i = 0; i < n && i < m; i++)
        if (p[i] != q[i])
            return compare_siblings(d, p[i], q[i]);
    if (n != m)
        return n < m ? -1 : 1;
    return x->lines != y->lines ? (x->lines > y->lines ? -1 : 1) : 0; /* slices, then counters */
}

/* How deep below threads and other rows of its group. */
static void set_depths(struct sv_layout_index *x)
{
    const struct sv_dict *d = x->trace->dict;
    sv_track path[DEPTH_MAX];
    bool *has_row = sv_alloc((size_t)d->n_tracks + 1);
    for (size_t i = 0; i < x->n_rows; i++)
        has_row[without_lane(d, x->rows[i].track)] = true;
    for (size_t i = 0; i < x->n_rows; i++) {
        size_t n = path_of(d, x->rows[i].track, x->rows[i].group, path);
        for (size_t k = 0; k + 1 < n; k++)
            x->rows[i].depth += has_row[path[k]];
    }
    free(has_row);
}

/* ---- rows ---- */

static bool belongs_to_others(const struct sv_track_info *k)
{
    return k->kind == SV_TRACK_ASYNC || (k->kind == SV_TRACK_LANE && k->parent);
}

/* Rows of one key are one row: asynchronous operations by parent and name, lanes by their parent. */
static uint64_t row_key(const struct sv_dict *d, sv_track track)
{
    track = without_lane(d, track);
    const struct sv_track_info *k = &d->tracks[track];
    if (k->kind == SV_TRACK_ASYNC)
        return sv_mix64((uint64_t)k->parent << 32 | k->name) | 1;
    return (uint64_t)track << 2;
}

struct candidate {
    sv_track track;
    uint64_t key;
    uint32_t height;
    int64_t first_ns, last_ns;
};

static int by_key_and_time(const void *a, const void *b)
{
    const struct candidate *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    if (x->first_ns != y->first_ns)
        return x->first_ns < y->first_ns ? -1 : 1;
    return x->track < y->track ? -1 : x->track > y->track;
}

static int64_t last_end(const struct sv_trace *t, sv_track track)
{
    int64_t last = INT64_MIN;
    for (uint32_t row = t->tracks[track].first; row < t->tracks[track].end; row++) {
        int64_t end = sv_trace_end_ns(t, row);
        last = end > last ? end : last;
    }
    return last;
}

/* Tracks of one row: each gets the first free band of lines, bands are as high as the highest of them. */
static void add_row(struct sv_layout_index *x, const struct candidate *c, size_t n)
{
    int64_t busy_until[SV_LINES_MAX];
    uint32_t height = 0, bands = 0;
    for (size_t i = 0; i < n; i++)
        height = c[i].height > height ? c[i].height : height;
    x->rows = sv_grow(x->rows, &x->cap_rows, x->n_rows + 1, sizeof *x->rows);
    struct sv_row_info *row = &x->rows[x->n_rows++];
    *row = (struct sv_row_info){.track = c[0].track,
                                .group = group_of(x->trace->dict, c[0].track),
                                .first_member = x->n_members,
                                .n_members = n};
    for (size_t i = 0; i < n; i++) {
        uint32_t band = 0, bands_max = height ? SV_LINES_MAX / height : 1;
        while (band < bands && busy_until[band] > c[i].first_ns)
            band++;
        if (band >= bands_max)
            band = bands_max - 1;
        bands = band + 1 > bands ? band + 1 : bands;
        busy_until[band] = c[i].last_ns;
        x->members = sv_grow(x->members, &x->cap_members, x->n_members + 1, sizeof *x->members);
        x->members[x->n_members++] =
            (struct sv_row_member){.track = c[i].track, .line = band * height};
    }
    row->lines = bands * height;
}

static struct candidate slices_of(struct sv_layout_index *x, sv_track track)
{
    const struct sv_trace *t = x->trace;
    bool shares = belongs_to_others(&t->dict->tracks[track]);
    return (struct candidate){.track = track,
                              .key = row_key(t->dict, track),
                              .height = track_height(x, track),
                              .first_ns = t->slices.ts_ns[t->tracks[track].first],
                              .last_ns = shares ? last_end(t, track) : INT64_MAX};
}

/* A track that has both slices and counter values is two rows. */
static void add_rows(struct sv_layout_index *x)
{
    const struct sv_trace *t = x->trace;
    struct candidate *c = sv_alloc(((size_t)t->n_tracks * 2 + 1) * sizeof *c);
    size_t n = 0;
    for (sv_track track = 1; track < t->n_tracks; track++) {
        const struct sv_trace_track *k = &t->tracks[track];
        if (k->first < k->end)
            c[n++] = slices_of(x, track);
        if (k->counter_first < k->counter_end)
            c[n++] = (struct candidate){.track = track, .key = (uint64_t)track << 2 | 2};
    }
    if (n)
        qsort(c, n, sizeof *c, by_key_and_time);
    for (size_t i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && c[j].key == c[i].key;)
            j++;
        add_row(x, c + i, j - i);
    }
    free(c);
}

/* ---- summaries ---- */

static uint32_t line_of(uint16_t depth)
{
    return depth < SV_LINES_MAX ? depth : SV_LINES_MAX - 1;
}

static void summarise_track(struct sv_layout_index *x, sv_track track)
{
    const struct sv_trace_track *k = &x->trace->tracks[track];
    const int64_t *dur = x->trace->slices.dur_ns;
    const uint16_t *lines = x->track_lines[track];
    const uint16_t *depth = lines ? lines : x->trace->slices.depth + k->first;
    for (uint64_t row = (k->first + 63u) & ~63ull; row + 64 <= k->end; row += 64) {
        const uint16_t *d = depth + (row - k->first);
        uint64_t mask = 0, most = (uint64_t)dur[row];
        unsigned longest = 0;
        for (unsigned i = 0; i < 64; i++) {
            mask |= 1ull << line_of(d[i]);
            longest = (uint64_t)dur[row + i] > most ? i : longest;
            most = (uint64_t)dur[row + i] > most ? (uint64_t)dur[row + i] : most;
        }
        x->blocks->small[row >> 6] =
            (struct sv_layout_block){mask, most, (uint32_t)row + longest, line_of(d[longest])};
    }
}

/* A large block may hold rows of several tracks, then nobody asks for it. */
static void summarise(struct sv_layout_index *x)
{
    const struct sv_trace *t = x->trace;
    struct sv_layout_blocks *b = x->blocks = sv_alloc(sizeof *b);
    size_t n = (size_t)(t->slices.n >> 6), n_large = n >> 6;
    b->small = sv_alloc((n + 1) * sizeof *b->small);
    b->large = sv_alloc((n_large + 1) * sizeof *b->large);
    for (sv_track track = 1; track < t->n_tracks; track++)
        summarise_track(x, track);
    for (size_t i = 0; i < n_large; i++) {
        struct sv_layout_block large = b->small[i << 6];
        for (size_t j = (i << 6) + 1; j < (i + 1) << 6; j++) {
            uint64_t lines = large.lines | b->small[j].lines;
            if (b->small[j].dur_ns > large.dur_ns)
                large = b->small[j];
            large.lines = lines;
        }
        b->large[i] = large;
    }
}

struct sv_layout_index *sv_layout_index_new(const struct sv_trace *t)
{
    struct sv_layout_index *x = sv_alloc(sizeof *x);
    x->trace = t;
    x->track_lines = sv_alloc(((size_t)t->n_tracks + 1) * sizeof *x->track_lines);
    add_rows(x);
    if (x->n_rows)
        qsort_r(x->rows, x->n_rows, sizeof *x->rows, compare_rows, t->dict);
    set_depths(x);
    summarise(x);
    return x;
}

void sv_layout_index_free(struct sv_layout_index *x)
{
    if (!x)
        return;
    for (sv_track track = 0; track < x->trace->n_tracks; track++)
        free(x->track_lines[track]);
    free(x->track_lines);
    free(x->rows);
    free(x->members);
    free(x->blocks->small);
    free(x->blocks->large);
    free(x->blocks);
    free(x);
}

/* ---- names ---- */

/* The track between the group and a counter or row, which the name does not include: a device, a CPU. */
static void add_owner(const struct sv_dict *d, sv_track track, sv_track group, struct sv_buf *to)
{
    sv_track parent = d->tracks[track].parent;
    uint8_t kind = d->tracks[parent].kind;
    if (!parent || parent == group || kind == SV_TRACK_PROCESS || kind == SV_TRACK_THREAD)
        return;
    struct sv_text name = sv_dict_text(d, d->tracks[parent].name);
    sv_buf_add(to, name.bytes, name.len);
    sv_buf_str(to, name.len ? " " : "");
}

void sv_row_name(const struct sv_layout_index *x, size_t row, struct sv_buf *to)
{
    const struct sv_dict *d = x->trace->dict;
    sv_track track = without_lane(d, x->rows[row].track);
    const struct sv_track_info *k = &d->tracks[track];
    struct sv_text name = sv_dict_text(d, k->name);
    if (k->kind == SV_TRACK_COUNTER)
        add_owner(d, track, x->rows[row].group, to);
    if (name.len)
        sv_buf_add(to, name.bytes, name.len);
    else if (k->kind == SV_TRACK_THREAD)
        sv_buf_printf(to, "thread %" PRId64, k->tid);
    else if (k->kind == SV_TRACK_PROCESS)
        sv_buf_str(to, "process");
    else
        sv_buf_str(to, sv_track_kind_name(k->kind));
    if (x->rows[row].n_members > 1)
        sv_buf_printf(to, " (%zu)", x->rows[row].n_members);
}

void sv_group_name(const struct sv_dict *d, sv_track group, struct sv_buf *to)
{
    struct sv_text name = sv_dict_text(d, d->tracks[group].name);
    if (group == 0) {
        sv_buf_str(to, "no process");
    } else if (d->tracks[group].kind == SV_TRACK_PROCESS) {
        sv_buf_add(to, name.bytes, name.len);
        sv_buf_printf(to, name.len ? " (pid %" PRId64 ")" : "pid %" PRId64, d->tracks[group].pid);
    } else if (name.len) {
        sv_buf_add(to, name.bytes, name.len);
    } else {
        sv_buf_str(to, sv_track_kind_name(d->tracks[group].kind));
    }
}
