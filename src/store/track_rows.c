/* Rows of the time line: their tracks, their order, and the lines of slices that overlap.
 *
 * Made once per trace. Rows are grouped by process, or by the topmost track above them (CPU, disks,
 * a GPU), processes first: by rank, devices before the threads that feed them, the busiest first.
 * Within a group a track is followed by those below it. A slice goes on the first free line below
 * its parent's; a tree over the lines finds it, so that thousands of requests at once cost no more
 * than their logarithm. */
#include "store/track_rows.h"

#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/sat.h"
#include "core/stream/gpu_words.h"
#include "store/ranks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- free lines ---- */

/* A tree whose leaves are lines and hold until when each is busy; a node holds the smallest of the
 * two below it. */
struct free_lines {
    int64_t *busy_until;
    uint32_t n; /* leaves: a power of two */
    uint32_t max;
};

static void init_lines(struct free_lines *f, uint32_t max)
{
    *f = (struct free_lines){.n = 1, .max = max};
    f->busy_until = sv_alloc(2 * sizeof *f->busy_until);
    f->busy_until[0] = f->busy_until[1] = INT64_MIN;
}

static void double_lines(struct free_lines *f)
{
    uint32_t n = 2 * f->n;
    int64_t *grown = sv_alloc(2 * (size_t)n * sizeof *grown);
    for (uint32_t i = 0; i < n; i++)
        grown[n + i] = i < f->n ? f->busy_until[f->n + i] : INT64_MIN;
    for (uint32_t i = n - 1; i > 0; i--)
        grown[i] = grown[2 * i] < grown[2 * i + 1] ? grown[2 * i] : grown[2 * i + 1];
    free(f->busy_until);
    f->busy_until = grown;
    f->n = n;
}

/* The first line from `line` on that is free at ts_ns, within the subtree of `node` (leaves [first,
 * first + size)); UINT32_MAX: none. */
static uint32_t find_free(const struct free_lines *f, uint32_t node, uint32_t first, uint32_t size,
                          uint32_t line, int64_t ts_ns)
{
    if (first + size <= line || f->busy_until[node] > ts_ns)
        return UINT32_MAX;
    if (size == 1)
        return first;
    uint32_t found = find_free(f, 2 * node, first, size / 2, line, ts_ns);
    return found != UINT32_MAX
               ? found
               : find_free(f, 2 * node + 1, first + size / 2, size / 2, line, ts_ns);
}

static void occupy(struct free_lines *f, uint32_t line, int64_t until_ns)
{
    uint32_t at = f->n + line;
    f->busy_until[at] = until_ns;
    for (at /= 2; at > 0; at /= 2) {
        int64_t a = f->busy_until[2 * at], b = f->busy_until[2 * at + 1];
        f->busy_until[at] = a < b ? a : b;
    }
}

/* Takes the first line from `line` on that is free at ts_ns, the last one of all if none is. */
static uint32_t take_line(struct free_lines *f, uint32_t line, int64_t ts_ns, int64_t until_ns)
{
    line = line < f->max ? line : f->max - 1;
    while (line >= f->n)
        double_lines(f);
    uint32_t found = find_free(f, 1, 0, f->n, line, ts_ns);
    while (found == UINT32_MAX && f->n < f->max) {
        double_lines(f);
        found = find_free(f, 1, 0, f->n, line, ts_ns);
    }
    found = found < f->max ? found : f->max - 1;
    occupy(f, found, until_ns);
    return found;
}

/* ---- lines of overlapping slices ---- */

static uint16_t *overlap_lines(const struct sv_trace *t, sv_track track, uint32_t *n_lines)
{
    const struct sv_trace_track *k = &t->tracks[track];
    const struct sv_slices *s = &t->slices;
    uint16_t *lines = sv_alloc((size_t)(k->end - k->first + 1) * sizeof *lines);
    struct free_lines f;
    init_lines(&f, SV_ROW_LINES_MAX);
    for (uint32_t row = k->first; row < k->end; row++) {
        uint32_t line = s->parent[row] == SV_NO_ROW ? 0u : lines[s->parent[row] - k->first] + 1u;
        line = take_line(&f, line, s->ts_ns[row], sv_trace_end_ns(t, row));
        lines[row - k->first] = (uint16_t)line;
        *n_lines = line + 1 > *n_lines ? line + 1 : *n_lines;
    }
    free(f.busy_until);
    return lines;
}

static uint32_t track_height(struct sv_track_rows *r, sv_track track)
{
    const struct sv_trace_track *k = &r->trace->tracks[track];
    uint32_t lines = k->depth_max + 1u;
    if (k->first == k->end)
        return 0;
    if (k->has_overlap) {
        lines = 1;
        r->track_lines[track] = overlap_lines(r->trace, track, &lines);
    }
    return lines < SV_ROW_LINES_MAX ? lines : SV_ROW_LINES_MAX;
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

/* What a row is, first the one that people look for first. */
enum place { IS_DEVICE, IS_MAIN_THREAD, IS_NAMED, IS_UNNAMED, IS_COUNTER };

/* What rows are sorted by. Tracks of one parent whose names differ in numbers alone are a family:
 * they are neighbours, and the busiest one says where. */
struct order {
    const struct sv_trace *trace;
    const struct sv_dict *dict;
    int64_t *ranks;       /* by track: of groups; -1 where unknown: last */
    int64_t *busy_ns;     /* by track: of what it and those below it have at the top; a group's */
    int64_t *family_ns;   /* by track: of the busiest one of its family */
    uint8_t *place;       /* by track: enum place; of a group: of its first row */
    struct sv_map family; /* hash → busiest */
};

static uint64_t family_of(const struct order *o, sv_track track, sv_track parent)
{
    char pattern[128];
    size_t n = 0;
    const char *p = sv_dict_text(o->dict, o->dict->tracks[track].name).bytes;
    while (*p && n < sizeof pattern) {
        bool is_digit = *p >= '0' && *p <= '9';
        pattern[n++] = is_digit ? '#' : *p;
        p += is_digit ? strspn(p, "0123456789") : 1;
    }
    return sv_hash_bytes(pattern, n, parent + 1u) ^ sv_mix64(o->place[track] + 1u);
}

/* Numbers within names by their value: "loader 9" before "loader 10". */
static int compare_names(const char *a, const char *b)
{
    while (*a && *b) {
        size_t n = strspn(a, "0123456789"), m = strspn(b, "0123456789");
        if (n && m && n != m && *a != '0' && *b != '0')
            return n < m ? -1 : 1;
        if (*a != *b)
            return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
        a++;
        b++;
    }
    return *a ? 1 : *b ? -1 : 0;
}

/* How long its slices last together; of the states of a thread, Running. */
static int64_t own_busy(const struct sv_trace *t, sv_track track, sv_str state, sv_str running)
{
    const struct sv_slices *c = &t->slices;
    int64_t sum = 0;
    for (uint32_t row = t->tracks[track].first; row < t->tracks[track].end; row++)
        if (c->depth[row] == 0 && (!state || c->cat[row] != state || c->name[row] == running))
            sum = sv_sat_add(sum, sv_sat_sub(sv_trace_end_ns(t, row), c->ts_ns[row]));
    return sum;
}

static uint8_t place_of(const struct sv_dict *d, sv_track track)
{
    const struct sv_track_info *k = &d->tracks[track];
    if (k->kind == SV_TRACK_COUNTER)
        return IS_COUNTER;
    if (sv_gpu_device_of(d, track) || sv_gpu_stream_of(d, track))
        return IS_DEVICE;
    if (k->kind == SV_TRACK_THREAD && k->tid == k->pid && k->pid > 0)
        return IS_MAIN_THREAD;
    return k->name ? IS_NAMED : IS_UNNAMED;
}

/* Kineto's devices are processes with the label "GPU 0". */
static bool is_device_group(const struct sv_dict *d, sv_track group)
{
    struct sv_text label = sv_dict_text(d, d->tracks[group].desc);
    return label.len > 4 && memcmp(label.bytes, "GPU ", 4) == 0;
}

static void weigh_tracks(struct order *o)
{
    const struct sv_trace *t = o->trace;
    sv_str state = sv_dict_find_str(o->dict, "thread_state", 12);
    sv_str running = sv_dict_find_str(o->dict, "Running", 7);
    for (sv_track k = 1; k < o->dict->n_tracks; k++)
        o->place[k] = is_device_group(o->dict, k) ? (uint8_t)IS_DEVICE : place_of(o->dict, k);
    for (sv_track k = 1; k < t->n_tracks; k++) {
        int64_t busy = own_busy(t, k, state, running);
        sv_track group = group_of(o->dict, k), up = k;
        for (unsigned i = 0; up && up != group && i < 64; i++, up = o->dict->tracks[up].parent)
            o->busy_ns[up] = sv_sat_add(o->busy_ns[up], busy);
        if (group)
            o->busy_ns[group] = sv_sat_add(o->busy_ns[group], busy);
    }
    for (int turn = 0; turn < 2; turn++)
        for (sv_track k = 1; k < o->dict->n_tracks; k++) {
            const struct sv_track_info *info = &o->dict->tracks[k];
            sv_track parent = group_of(o->dict, k) == k ? 0 : info->parent;
            bool is_new;
            uint64_t *most = sv_map_add(&o->family, family_of(o, k, parent), &is_new);
            if (turn == 0 && (is_new || (int64_t)*most < o->busy_ns[k]))
                *most = (uint64_t)o->busy_ns[k];
            o->family_ns[k] = (int64_t)*most;
        }
}

static struct order make_order(const struct sv_trace *t)
{
    const struct sv_dict *d = t->dict;
    size_t n = (size_t)d->n_tracks + 1;
    struct order o = {.trace = t, .dict = d};
    o.ranks = sv_alloc(n * sizeof *o.ranks);
    o.busy_ns = sv_alloc(n * sizeof *o.busy_ns);
    o.family_ns = sv_alloc(n * sizeof *o.family_ns);
    o.place = sv_alloc(n);
    for (sv_track k = 1; k < d->n_tracks; k++)
        o.ranks[k] = d->tracks[k].kind == SV_TRACK_PROCESS ? sv_rank_of_track(t, k) : -1;
    weigh_tracks(&o);
    return o;
}

static void free_order(struct order *o)
{
    free(o->ranks);
    free(o->busy_ns);
    free(o->family_ns);
    free(o->place);
    sv_map_fini(&o->family);
}

/* The busiest family first, in it the order of names. */
static int compare_families(const struct order *o, sv_track a, sv_track b)
{
    const struct sv_track_info *x = &o->dict->tracks[a], *y = &o->dict->tracks[b];
    if (o->family_ns[a] != o->family_ns[b])
        return o->family_ns[a] > o->family_ns[b] ? -1 : 1;
    int by_name =
        compare_names(sv_dict_text(o->dict, x->name).bytes, sv_dict_text(o->dict, y->name).bytes);
    if (by_name)
        return by_name;
    if (x->pid != y->pid)
        return x->pid < y->pid ? -1 : 1;
    if (x->tid != y->tid)
        return x->tid < y->tid ? -1 : 1;
    return a < b ? -1 : a > b;
}

/* Siblings: devices, the main thread, what has a name, the rest, counters; tracks that are no
 * threads keep the order that the program gave them. */
static int compare_siblings(const struct order *o, sv_track a, sv_track b)
{
    const struct sv_track_info *x = &o->dict->tracks[a], *y = &o->dict->tracks[b];
    if (o->place[a] != o->place[b])
        return o->place[a] < o->place[b] ? -1 : 1;
    bool are_threads = x->kind == SV_TRACK_THREAD && y->kind == SV_TRACK_THREAD;
    if (!are_threads && order_of(x) != order_of(y))
        return order_of(x) < order_of(y) ? -1 : 1;
    return compare_families(o, a, b);
}

/* Ranks in their order; of each its devices, then its processes, the busiest first; then groups
 * that are no processes, and tracks of no group. */
static int compare_groups(const struct order *o, sv_track a, sv_track b)
{
    const struct sv_dict *d = o->dict;
    if (a == 0 || b == 0)
        return a == 0 ? 1 : -1;
    bool p = d->tracks[a].kind == SV_TRACK_PROCESS, q = d->tracks[b].kind == SV_TRACK_PROCESS;
    if (p != q)
        return p ? -1 : 1;
    if (o->ranks[a] != o->ranks[b])
        return (uint64_t)o->ranks[a] < (uint64_t)o->ranks[b] ? -1 : 1;
    if ((o->place[a] == IS_DEVICE) != (o->place[b] == IS_DEVICE))
        return o->place[a] == IS_DEVICE ? -1 : 1;
    return compare_families(o, a, b);
}

static int compare_rows(const void *a, const void *b, void *ctx)
{
    const struct order *o = ctx;
    const struct sv_dict *d = o->dict;
    const struct sv_row_info *x = a, *y = b;
    sv_track p[DEPTH_MAX], q[DEPTH_MAX];
    if (x->group != y->group)
        return compare_groups(o, x->group, y->group);
    size_t n = path_of(d, x->track, x->group, p), m = path_of(d, y->track, y->group, q);
    for (size_t i = 0; i < n && i < m; i++)
        if (p[i] != q[i])
            return compare_siblings(o, p[i], q[i]);
    if (n != m)
        return n < m ? -1 : 1;
    return x->lines != y->lines ? (x->lines > y->lines ? -1 : 1) : 0; /* slices, then counters */
}

/* How deep below threads and other rows of its group. */
static void set_depths(struct sv_track_rows *r)
{
    const struct sv_dict *d = r->trace->dict;
    sv_track path[DEPTH_MAX];
    bool *has_row = sv_alloc((size_t)d->n_tracks + 1);
    for (size_t i = 0; i < r->n; i++)
        has_row[without_lane(d, r->items[i].track)] = true;
    for (size_t i = 0; i < r->n; i++) {
        size_t n = path_of(d, r->items[i].track, r->items[i].group, path);
        for (size_t k = 0; k + 1 < n; k++)
            r->items[i].depth += has_row[path[k]];
    }
    free(has_row);
}

/* ---- rows ---- */

/* The name of a track that has none: that of its first slice, which is what programs write on such
 * tracks (Chrome by the hundred). */
static sv_str name_of(const struct sv_trace *t, sv_track track)
{
    const struct sv_track_info *k = &t->dict->tracks[track];
    bool borrows = k->name == 0 && (k->kind == SV_TRACK_CUSTOM || k->kind == SV_TRACK_ASYNC) &&
                   t->tracks[track].first < t->tracks[track].end;
    return borrows ? t->slices.name[t->tracks[track].first] : k->name;
}

static bool is_operation(const struct sv_trace *t, sv_track track)
{
    const struct sv_track_info *k = &t->dict->tracks[track];
    return k->kind == SV_TRACK_ASYNC || (k->kind == SV_TRACK_CUSTOM && k->name == 0);
}

static bool belongs_to_others(const struct sv_trace *t, sv_track track)
{
    const struct sv_track_info *k = &t->dict->tracks[track];
    return is_operation(t, track) || (k->kind == SV_TRACK_LANE && k->parent);
}

/* Rows of one key are one row: asynchronous operations by parent and name, lanes by their
 * parent. */
static uint64_t row_key(const struct sv_trace *t, sv_track track)
{
    track = without_lane(t->dict, track);
    if (is_operation(t, track))
        return sv_mix64((uint64_t)t->dict->tracks[track].parent << 32 | name_of(t, track)) | 1;
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

/* Tracks of one row: each gets the first free band of lines, bands are as high as the highest of
 * them. */
static void add_row(struct sv_track_rows *r, const struct candidate *c, size_t n)
{
    struct free_lines f;
    uint32_t height = 0, bands = 0;
    for (size_t i = 0; i < n; i++)
        height = c[i].height > height ? c[i].height : height;
    init_lines(&f, height ? SV_ROW_LINES_MAX / height : 1);
    r->items = sv_grow(r->items, &r->cap, r->n + 1, sizeof *r->items);
    struct sv_row_info *row = &r->items[r->n++];
    *row = (struct sv_row_info){.track = c[0].track,
                                .group = group_of(r->trace->dict, c[0].track),
                                .first_member = r->n_members,
                                .n_members = n};
    for (size_t i = 0; i < n; i++) {
        uint32_t band = take_line(&f, 0, c[i].first_ns, c[i].last_ns);
        bands = band + 1 > bands ? band + 1 : bands;
        SV_APPEND(r->members, r->n_members, r->cap_members) =
            (struct sv_row_member){.track = c[i].track, .line = band * height};
    }
    row->lines = bands * height;
    free(f.busy_until);
}

static struct candidate slices_of(struct sv_track_rows *r, sv_track track)
{
    const struct sv_trace *t = r->trace;
    bool shares = belongs_to_others(t, track);
    return (struct candidate){.track = track,
                              .key = row_key(t, track),
                              .height = track_height(r, track),
                              .first_ns = t->slices.ts_ns[t->tracks[track].first],
                              .last_ns = shares ? last_end(t, track) : INT64_MAX};
}

/* A track that has both slices and counter values is two rows. */
static void add_rows(struct sv_track_rows *r)
{
    const struct sv_trace *t = r->trace;
    struct candidate *c = sv_alloc(((size_t)t->n_tracks * 2 + 1) * sizeof *c);
    size_t n = 0;
    for (sv_track track = 1; track < t->n_tracks; track++) {
        const struct sv_trace_track *k = &t->tracks[track];
        if (k->first < k->end)
            c[n++] = slices_of(r, track);
        if (k->counter_first < k->counter_end)
            c[n++] = (struct candidate){.track = track, .key = (uint64_t)track << 2 | 2};
    }
    if (n)
        qsort(c, n, sizeof *c, by_key_and_time);
    for (size_t i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && c[j].key == c[i].key;)
            j++;
        add_row(r, c + i, j - i);
    }
    free(c);
}

/* After sorting, because it changes the numbers of rows. */
static void number_tracks(struct sv_track_rows *r)
{
    for (sv_track k = 0; k < r->trace->n_tracks; k++)
        r->row_of_track[k] = SV_NO_ROW;
    for (size_t i = 0; i < r->n; i++)
        for (size_t m = 0; r->items[i].lines && m < r->items[i].n_members; m++) {
            const struct sv_row_member *member = &r->members[r->items[i].first_member + m];
            r->row_of_track[member->track] = (uint32_t)i;
            r->line_of_track[member->track] = member->line;
        }
}

/* ---- rows in an image ---- */

_Static_assert(sizeof(struct sv_row_info) == 32 && sizeof(struct sv_row_member) == 8,
               "raise SV_IMAGE_VERSION");

void sv_track_rows_put(const struct sv_track_rows *r, struct sv_image_writer *w)
{
    const struct sv_trace *t = r->trace;
    size_t n = 0;
    for (sv_track k = 0; k < t->n_tracks; k++)
        n += r->track_lines[k] ? t->tracks[k].end - t->tracks[k].first : 0;
    sv_image_add(w, "rows", r->items, r->n * sizeof *r->items, sizeof *r->items);
    sv_image_add(w, "rows.members", r->members, r->n_members * sizeof *r->members,
                 sizeof *r->members);
    uint16_t *to = sv_image_add_new(w, "rows.lines", n * sizeof *to, sizeof *to);
    for (sv_track k = 0; k < t->n_tracks; k++) {
        n = r->track_lines[k] ? t->tracks[k].end - t->tracks[k].first : 0;
        if (n)
            memcpy(to, r->track_lines[k], n * sizeof *to);
        to += n;
    }
}

static uint32_t highest(const uint16_t *lines, size_t n)
{
    uint16_t max = 0;
    for (size_t i = 0; i < n; i++)
        max = lines[i] > max ? lines[i] : max;
    return max;
}

/* A row's members have what the row shows, on lines that the row has. */
static bool check_row(const struct sv_track_rows *r, const struct sv_row_info *row,
                      uint64_t *n_slices)
{
    const struct sv_trace *t = r->trace;
    if (row->group >= t->dict->n_tracks || row->lines > SV_ROW_LINES_MAX ||
        row->first_member > r->n_members || row->n_members == 0 ||
        row->n_members > r->n_members - row->first_member)
        return false;
    for (size_t m = 0; m < row->n_members; m++) {
        const struct sv_row_member *member = &r->members[row->first_member + m];
        const struct sv_trace_track *k = &t->tracks[member->track];
        if (member->track == 0 || member->track >= t->n_tracks ||
            (row->lines ? k->first == k->end : k->counter_first == k->counter_end))
            return false;
        if (!row->lines)
            continue;
        const uint16_t *lines = r->track_lines[member->track];
        uint64_t top = (lines ? highest(lines, k->end - k->first) : k->depth_max) + 1u;
        top += member->line;
        if ((top < SV_ROW_LINES_MAX ? top : SV_ROW_LINES_MAX) > row->lines)
            return false;
        *n_slices += k->end - k->first;
    }
    return row->track == r->members[row->first_member].track && (row->lines || row->n_members == 1);
}

/* Every track with slices is in one row. */
static bool check_rows(const struct sv_track_rows *r)
{
    uint64_t n_slices = 0, n_found = 0;
    for (size_t i = 0; i < r->n; i++)
        if (!check_row(r, &r->items[i], &n_slices))
            return false;
    for (size_t i = 0; i < r->n; i++)
        n_found += r->items[i].lines ? r->items[i].n_members : 0;
    for (sv_track k = 0; k < r->trace->n_tracks; k++)
        n_found -= r->row_of_track[k] != SV_NO_ROW;
    return n_slices == r->trace->slices.n && n_found == 0;
}

static bool members_are_tracks(const struct sv_track_rows *r)
{
    for (size_t i = 0; i < r->n_members; i++)
        if (r->members[i].track >= r->trace->n_tracks)
            return false;
    for (size_t i = 0; i < r->n; i++)
        if (r->items[i].first_member > r->n_members ||
            r->items[i].n_members > r->n_members - r->items[i].first_member)
            return false;
    return true;
}

/* The rows as they were put; false: there are none, or they cannot be those of this trace. */
static bool take_rows(struct sv_track_rows *r)
{
    const struct sv_trace *t = r->trace;
    const struct sv_image *im = sv_trace_image(t);
    uint64_t n, n_members, left;
    const struct sv_row_info *items = sv_image_find(im, "rows", sizeof *items, &n);
    const struct sv_row_member *members =
        sv_image_find(im, "rows.members", sizeof *members, &n_members);
    const uint16_t *lines = sv_image_find(im, "rows.lines", sizeof *lines, &left);
    if (!items || !members || !lines || n > 2ull * t->n_tracks)
        return false;
    r->items = sv_grow(NULL, &r->cap, (size_t)n + 1, sizeof *r->items);
    r->members = sv_grow(NULL, &r->cap_members, (size_t)n_members + 1, sizeof *r->members);
    memcpy(r->items, items, n * sizeof *items);
    memcpy(r->members, members, n_members * sizeof *members);
    r->n = (size_t)n;
    r->n_members = (size_t)n_members;
    r->is_kept = true;
    for (sv_track k = 0; k < t->n_tracks; k++) {
        size_t of_track = t->tracks[k].has_overlap ? t->tracks[k].end - t->tracks[k].first : 0;
        if (of_track > left)
            return false;
        r->track_lines[k] = of_track ? (uint16_t *)(uintptr_t)lines
                                     : NULL; /* nobody writes to it */
        lines += of_track;
        left -= of_track;
    }
    if (left || !members_are_tracks(r))
        return false;
    number_tracks(r);
    return check_rows(r);
}

/* ---- all ---- */

static struct sv_track_rows *begin_rows(const struct sv_trace *t)
{
    struct sv_track_rows *r = sv_alloc(sizeof *r);
    size_t n = (size_t)t->n_tracks + 1;
    r->trace = t;
    r->track_lines = sv_alloc(n * sizeof *r->track_lines);
    r->row_of_track = sv_alloc(n * sizeof *r->row_of_track);
    r->line_of_track = sv_alloc(n * sizeof *r->line_of_track);
    return r;
}

struct sv_track_rows *sv_track_rows_new(const struct sv_trace *t)
{
    struct sv_track_rows *r = begin_rows(t);
    if (take_rows(r))
        return r;
    sv_track_rows_free(r);
    r = begin_rows(t);
    add_rows(r);
    struct order order = make_order(t);
    if (r->n)
        qsort_r(r->items, r->n, sizeof *r->items, compare_rows, &order);
    free_order(&order);
    set_depths(r);
    number_tracks(r);
    return r;
}

void sv_track_rows_free(struct sv_track_rows *r)
{
    if (!r)
        return;
    for (sv_track track = 0; track < r->trace->n_tracks && !r->is_kept; track++)
        free(r->track_lines[track]);
    free(r->track_lines);
    free(r->row_of_track);
    free(r->line_of_track);
    free(r->items);
    free(r->members);
    free(r);
}

uint32_t sv_row_overlap(const struct sv_track_rows *r, size_t row)
{
    const struct sv_row_info *info = &r->items[row];
    uint32_t nested = 0;
    for (size_t m = 0; m < info->n_members; m++) {
        uint32_t depth = r->trace->tracks[r->members[info->first_member + m].track].depth_max;
        nested = depth > nested ? depth : nested;
    }
    return info->lines > nested ? info->lines - nested : 0;
}

/* ---- another order ---- */

/* Rows are sorted by these numbers, the first that differs decides. */
enum { GROUP_RANK, GROUP, PART_RANK, PART, ROW, N_PLACES };
struct row_place {
    uint32_t at[N_PLACES];
};

static int compare_places(const void *a, const void *b)
{
    const struct row_place *x = a, *y = b;
    for (size_t i = 0; i < N_PLACES; i++)
        if (x->at[i] != y->at[i])
            return x->at[i] < y->at[i] ? -1 : 1;
    return 0;
}

/* A part is a row with those below it; groups and parts have the number of their first row. */
static void place_rows(const struct sv_track_rows *r, struct row_place *places)
{
    for (uint32_t i = 0; i < r->n; i++) {
        bool is_first = i == 0 || r->items[i].group != r->items[i - 1].group;
        uint32_t group = is_first ? i : places[i - 1].at[GROUP];
        uint32_t part = is_first || r->items[i].depth == 0 ? i : places[i - 1].at[PART];
        places[i] = (struct row_place){{UINT32_MAX, group, UINT32_MAX, part, i}};
    }
}

void sv_rows_order(const struct sv_track_rows *r, const uint32_t *first, size_t n, uint32_t *to)
{
    struct row_place *places = sv_alloc((r->n + 1) * sizeof *places);
    place_rows(r, places);
    for (size_t i = n; i-- > 0;) {
        const uint32_t *at = places[first[i]].at;
        places[at[PART]].at[PART_RANK] = (uint32_t)i;
        places[at[GROUP]].at[GROUP_RANK] = (uint32_t)i;
    }
    for (size_t i = 0; i < r->n; i++) {
        uint32_t *at = places[i].at;
        at[GROUP_RANK] = places[at[GROUP]].at[GROUP_RANK];
        at[PART_RANK] = places[at[PART]].at[PART_RANK];
    }
    if (r->n)
        qsort(places, r->n, sizeof *places, compare_places);
    for (size_t i = 0; i < r->n; i++)
        to[i] = places[i].at[ROW];
    free(places);
}

/* ---- names ---- */

/* What lies between the group and a counter or row, and what the name alone does not say: a device,
 * a CPU. */
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

static void add_thread_name(const struct sv_dict *d, sv_track track, struct sv_buf *to)
{
    const struct sv_track_info *k = &d->tracks[track];
    struct sv_text name = sv_dict_text(d, k->name);
    bool is_main = k->tid == k->pid && k->pid > 0;
    if (name.len)
        sv_buf_add(to, name.bytes, name.len);
    else
        sv_buf_printf(to, "%s %" PRId64, is_main ? "main thread" : "thread", k->tid);
}

void sv_row_name(const struct sv_track_rows *r, size_t row, struct sv_buf *to)
{
    const struct sv_dict *d = r->trace->dict;
    sv_track track = without_lane(d, r->items[row].track);
    const struct sv_track_info *k = &d->tracks[track];
    struct sv_text name = sv_dict_text(d, name_of(r->trace, track));
    if (k->kind == SV_TRACK_COUNTER)
        add_owner(d, track, r->items[row].group, to);
    else if (d->tracks[k->parent].kind == SV_TRACK_THREAD &&
             r->row_of_track[k->parent] == SV_NO_ROW) {
        add_thread_name(d, k->parent, to); /* no row above it says whose it is */
        sv_buf_str(to, " \xc2\xb7 ");
    }
    if (k->kind == SV_TRACK_THREAD)
        add_thread_name(d, track, to);
    else if (name.len)
        sv_buf_add(to, name.bytes, name.len);
    else if (k->kind == SV_TRACK_PROCESS)
        sv_buf_str(to, "process");
    else
        sv_buf_str(to, sv_track_kind_name(k->kind));
    if (r->items[row].n_members > 1)
        sv_buf_printf(to, " (%zu)", r->items[row].n_members);
}

/* Kineto calls each device a process, with the number of the device as its pid and "GPU 0" as its
 * label. A process whose pid was a text has a negative one. */
static void add_process_name(const struct sv_track_info *k, struct sv_text name,
                             struct sv_text label, struct sv_buf *to)
{
    if (label.len > 4 && memcmp(label.bytes, "GPU ", 4) == 0) {
        sv_buf_add(to, label.bytes, label.len);
        if (name.len)
            sv_buf_printf(to, " (%s)", name.bytes);
        return;
    }
    sv_buf_add(to, name.bytes, name.len);
    if (name.len == 0 || k->pid >= 0)
        sv_buf_printf(to, name.len ? " (pid %" PRId64 ")" : "pid %" PRId64, k->pid);
}

void sv_group_name(const struct sv_dict *d, sv_track group, struct sv_buf *to)
{
    struct sv_text name = sv_dict_text(d, d->tracks[group].name);
    if (group == 0) {
        sv_buf_str(to, "no process");
    } else if (d->tracks[group].kind == SV_TRACK_PROCESS) {
        sv_rank_prefix(d, group, to);
        add_process_name(&d->tracks[group], name, sv_dict_text(d, d->tracks[group].desc), to);
    } else if (name.len) {
        sv_buf_add(to, name.bytes, name.len);
    } else {
        sv_buf_str(to, sv_track_kind_name(d->tracks[group].kind));
    }
}
