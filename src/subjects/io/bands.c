/* Bands of file and block I/O: a band per process, per role or for all together, with lanes for
 * block requests, reads and writes, and opens.
 *
 * One walk over the slices of the window finds who is busy, a second one adds up those that get a
 * band, both by all threads. The share of time in a bin is that of all its threads together, at
 * most all of it. */
#include "subjects/io/bands.h"

#include "core/base/mem.h"
#include "store/ranks.h"
#include "subjects/io/figures.h"
#include "threads/workers.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROCESSES_DEFAULT 10u
#define NO_BAND           UINT32_MAX
#define THREADS_FROM      ((uint64_t)1 << 16) /* slices */

/* The parts of a band, in the order of drawing. */
enum part { BLOCK_READ, BLOCK_WRITE, READ, WRITE, OPEN, N_PARTS, NO_PART = N_PARTS };

static const struct {
    const char *name, *lane;
    uint32_t color;
} parts[N_PARTS] = {{"block read", "block", 0x0072b2},
                    {"block write", "block", 0xd55e00},
                    {"read", "read/write", 0x56b4e9},
                    {"write, sync", "read/write", 0xe69f00},
                    {"open", "open", 0xcc79a7}};

/* A process, as far as its I/O goes; number 0 is for requests that no process of the trace
 * caused. */
struct actor {
    sv_track process;
    uint32_t group; /* among the groups */
    enum sv_io_role role;
    uint64_t n;
    double busy_ns;
};

struct group {
    char title[96], note[64];
    enum sv_io_role role;
    double busy_ns;
    uint64_t n;
    size_t n_members;
    uint32_t rank;
    struct sv_cover cover[N_PARTS];
    uint32_t *count[N_PARTS];
    double *bytes[N_PARTS];
};

struct finder {
    const struct sv_trace *trace;
    struct sv_bins bins;
    struct sv_io_words words;
    struct actor *actors; /* by process track */
    struct group *groups;
    size_t n_groups, cap_groups;
    sv_str read;
    struct sv_workers *pool;
};

static bool has_io(const struct sv_trace *t)
{
    struct sv_io_words w;
    bool is_there = false;
    sv_io_words_init(&w, t);
    for (uint64_t row = 0; row < t->slices.n && !is_there; row++) {
        enum sv_io_kind kind = sv_io_kind_at(&w, row);
        is_there = kind == SV_IO_CALL || kind == SV_IO_BLOCK;
    }
    sv_io_words_fini(&w);
    return is_there;
}

/* ---- the walk ---- */

/* Long waits on pipes, sockets and terminals are no I/O on files. Short calls are not looked at:
 * there are many of them, and they cover little. */
static bool is_wait_elsewhere(const struct finder *f, uint32_t row)
{
    enum { SHORT_NS = 50000 };
    if (f->trace->slices.dur_ns[row] < SHORT_NS && f->trace->slices.dur_ns[row] >= 0)
        return false;
    return !sv_io_is_file(&f->words, row, f->words.path) &&
           !(sv_io_op_at(&f->words, row) == SV_OP_COPY &&
             sv_io_is_file(&f->words, row, f->words.path2));
}

static enum part part_of(const struct finder *f, uint32_t row)
{
    sv_str name = f->trace->slices.name[row];
    if (sv_io_kind_at(&f->words, row) == SV_IO_BLOCK)
        return name == f->read ? BLOCK_READ : BLOCK_WRITE; /* flush and discard write, too */
    switch (sv_io_op_at(&f->words, row)) {
    case SV_OP_READ: return is_wait_elsewhere(f, row) ? NO_PART : READ;
    case SV_OP_COPY:
    case SV_OP_WRITE: return is_wait_elsewhere(f, row) ? NO_PART : WRITE;
    case SV_OP_SYNC: return WRITE;
    case SV_OP_OPEN: return OPEN;
    default: return NO_PART;
    }
}

typedef void visit_fn(struct finder *f, struct actor *a, uint32_t row, enum part part);

/* Calls or requests of a track. Returns whether it has requests. */
static bool walk_track(struct finder *f, sv_track track, bool requests, visit_fn *visit)
{
    sv_track process = sv_dict_process_of(f->trace->dict, track);
    struct sv_window w = sv_trace_window(f->trace, track, f->bins.from_ns, f->bins.to_ns);
    bool has_requests = false;
    for (uint32_t row; sv_window_next(&w, &row);) {
        enum part part = part_of(f, row);
        bool is_request = part <= BLOCK_WRITE;
        has_requests |= is_request;
        if (part == NO_PART || is_request != requests)
            continue;
        sv_track who = process;
        if (is_request)
            who = sv_io_process(&f->words, track, sv_io_arg(&f->words, row, f->words.pid, -1));
        visit(f, &f->actors[who], row, part);
    }
    return has_requests;
}

/* Tracks by their owners: what two calls add to belongs to one owner if it is the same. */
struct owners {
    struct finder *finder;
    visit_fn *visit;
    sv_track *tracks;   /* by owner, then in their order */
    uint32_t *first;    /* by owner, and one more */
    bool *has_requests; /* by track */
};

static void walk_owner(void *ctx, size_t i)
{
    const struct owners *o = ctx;
    for (uint32_t k = o->first[i]; k < o->first[i + 1]; k++)
        o->has_requests[o->tracks[k]] = walk_track(o->finder, o->tracks[k], false, o->visit);
}

/* Once the groups are made, processes of one group have one owner. */
static uint32_t owner_of(const struct finder *f, sv_track track)
{
    sv_track process = sv_dict_process_of(f->trace->dict, track);
    return f->n_groups ? f->actors[process].group : process;
}

static void sort_tracks(struct owners *o, size_t n_owners)
{
    const struct finder *f = o->finder;
    size_t n_tracks = f->trace->n_tracks;
    o->first = sv_alloc((n_owners + 2) * sizeof *o->first);
    o->tracks = sv_alloc((n_tracks + 1) * sizeof *o->tracks);
    for (sv_track track = 1; track < n_tracks; track++)
        o->first[owner_of(f, track) + 2]++;
    for (size_t i = 2; i < n_owners + 2; i++)
        o->first[i] += o->first[i - 1];
    for (sv_track track = 1; track < n_tracks; track++)
        o->tracks[o->first[owner_of(f, track) + 1]++] = track;
}

/* Calls by several threads, requests by one, since each of them may be any process's. What is added
 * up for one part of one group comes in the same order whatever the number of threads, and so the
 * sums are the same to the last bit. */
static void walk(struct finder *f, visit_fn *visit)
{
    struct owners o = {.finder = f, .visit = visit};
    size_t n_owners = f->n_groups ? f->n_groups : f->trace->dict->n_tracks;
    o.has_requests = sv_alloc((size_t)f->trace->n_tracks + 1);
    sort_tracks(&o, n_owners);
    sv_workers_each(f->pool, n_owners, walk_owner, &o);
    for (sv_track track = 1; track < f->trace->n_tracks; track++)
        if (o.has_requests[track])
            walk_track(f, track, true, visit);
    free(o.first);
    free(o.tracks);
    free(o.has_requests);
}

static void count_actor(struct finder *f, struct actor *a, uint32_t row, enum part part)
{
    int64_t from = f->trace->slices.ts_ns[row], to = sv_trace_end_ns(f->trace, row);
    (void)part;
    from = from > f->bins.from_ns ? from : f->bins.from_ns;
    to = to < f->bins.to_ns ? to : f->bins.to_ns;
    a->n++;
    a->busy_ns += (double)to - (double)from;
}

static void add_slice(struct finder *f, struct actor *a, uint32_t row, enum part part)
{
    const struct sv_trace *t = f->trace;
    int64_t ts = t->slices.ts_ns[row];
    struct group *g = &f->groups[a->group];
    sv_cover_add(&g->cover[part], &f->bins, ts, sv_trace_end_ns(t, row), 1);
    if (ts < f->bins.from_ns)
        return;
    size_t bin = sv_bin_of(&f->bins, ts);
    g->count[part][bin]++;
    g->bytes[part][bin] += (double)sv_io_arg(&f->words, row, f->words.bytes, 0);
}

/* ---- groups ---- */

static uint32_t add_group(struct finder *f, enum sv_io_role role)
{
    f->groups = sv_grow(f->groups, &f->cap_groups, f->n_groups + 1, sizeof *f->groups);
    f->groups[f->n_groups] = (struct group){.role = role};
    return (uint32_t)f->n_groups++;
}

static void join(struct finder *f, struct actor *a, uint32_t number)
{
    struct group *g = &f->groups[number];
    a->group = number;
    g->n_members++;
    g->n += a->n;
    g->busy_ns += a->busy_ns;
}

static void find_roles(struct finder *f)
{
    struct sv_io_report r;
    sv_io_roles_make(&r, f->trace);
    for (size_t i = 0; i < r.by[SV_IO_PROCESS].n; i++) {
        const struct sv_io_group *g = &r.by[SV_IO_PROCESS].groups[i];
        f->actors[g->process].role = g->role;
    }
    sv_io_report_fini(&r);
}

static void name_process(const struct finder *f, struct group *g, const struct actor *a)
{
    const struct sv_track_info *k = &f->trace->dict->tracks[a->process];
    struct sv_text name = sv_dict_text(f->trace->dict, k->name);
    if (!a->process) {
        snprintf(g->title, sizeof g->title, "no known process");
        snprintf(g->note, sizeof g->note, "the kernel or other processes");
        return;
    }
    int64_t rank = sv_rank_of_track(f->trace, a->process);
    int n = rank < 0 ? 0
                     : snprintf(g->title, sizeof g->title, "rank %" PRId64 " \xc2\xb7 ",
                                rank % 1000000000);
    snprintf(g->title + n, sizeof g->title - (size_t)n,
             name.len ? "%.60s (pid %" PRId64 ")" : "%spid %" PRId64, name.bytes, k->pid);
    snprintf(g->note, sizeof g->note, "%s",
             a->role == SV_ROLE_NONE ? "" : sv_io_role_name(a->role));
}

static int by_weight(const void *a, const void *b)
{
    const struct actor *x = *(struct actor *const *)a, *y = *(struct actor *const *)b;
    if (x->busy_ns != y->busy_ns)
        return x->busy_ns > y->busy_ns ? -1 : 1;
    return x->process < y->process ? -1 : x->process > y->process;
}

/* The busiest have a group each, the others one together. */
static void group_by_process(struct finder *f, struct actor **actors, size_t n, size_t most)
{
    if (n)
        qsort(actors, n, sizeof(struct actor *), by_weight);
    size_t alone = n <= most ? n : most - 1;
    for (size_t i = 0; i < alone; i++) {
        uint32_t number = add_group(f, actors[i]->role);
        join(f, actors[i], number);
        name_process(f, &f->groups[number], actors[i]);
    }
    if (alone == n)
        return;
    uint32_t rest = add_group(f, SV_ROLE_NONE);
    for (size_t i = alone; i < n; i++)
        join(f, actors[i], rest);
    snprintf(f->groups[rest].title, sizeof f->groups[rest].title, "%zu %sprocesses", n - alone,
             alone ? "other " : "");
    f->groups[rest].rank = 1;
}

static void group_by_role(struct finder *f, struct actor **actors, size_t n)
{
    static const char *const names[] = {"processes without role", "trainers", "loaders", "others"};
    uint32_t of_role[4] = {NO_BAND, NO_BAND, NO_BAND, NO_BAND};
    for (size_t i = 0; i < n; i++) {
        enum sv_io_role role = actors[i]->role;
        if (of_role[role] == NO_BAND)
            of_role[role] = add_group(f, role);
        join(f, actors[i], of_role[role]);
    }
    uint32_t unknown = f->actors[0].n ? f->actors[0].group : NO_BAND;
    for (size_t i = 0; i < f->n_groups; i++) {
        struct group *g = &f->groups[i];
        if (i == unknown && g->n_members == 1) {
            name_process(f, g, &f->actors[0]);
            continue;
        }
        snprintf(g->title, sizeof g->title, "%s", names[g->role]);
        snprintf(g->note, sizeof g->note, "%zu process%s", g->n_members,
                 g->n_members == 1 ? "" : "es");
    }
}

static void group_all(struct finder *f, struct actor **actors, size_t n)
{
    uint32_t number = add_group(f, SV_ROLE_NONE);
    for (size_t i = 0; i < n; i++)
        join(f, actors[i], number);
    snprintf(f->groups[number].title, sizeof f->groups[number].title, "all processes");
    snprintf(f->groups[number].note, sizeof f->groups[number].note, "%zu of them", n);
}

/* Trainers, loaders, others; within them the busiest first. */
static int by_role(const void *a, const void *b)
{
    static const uint8_t order[] = {
        [SV_ROLE_NONE] = 3, [SV_ROLE_TRAINER] = 0, [SV_ROLE_LOADER] = 1, [SV_ROLE_OTHER] = 2};
    const struct group *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->role != y->role)
        return order[x->role] < order[y->role] ? -1 : 1;
    if (x->busy_ns != y->busy_ns)
        return x->busy_ns > y->busy_ns ? -1 : 1;
    return strcmp(x->title, y->title);
}

/* Sorting moves the groups: each remembers its number in `n` meanwhile. */
static void sort_groups(struct finder *f)
{
    uint32_t *new_number = sv_alloc((f->n_groups + 1) * sizeof *new_number);
    for (size_t i = 0; i < f->n_groups; i++)
        f->groups[i].n = i;
    if (f->n_groups)
        qsort(f->groups, f->n_groups, sizeof *f->groups, by_role);
    for (size_t i = 0; i < f->n_groups; i++)
        new_number[f->groups[i].n] = (uint32_t)i;
    for (sv_track k = 0; k < f->trace->dict->n_tracks; k++)
        if (f->actors[k].n)
            f->actors[k].group = new_number[f->actors[k].group];
    free(new_number);
}

static void make_groups(struct finder *f, const struct sv_bands_wanted *w)
{
    size_t n = 0, n_tracks = f->trace->dict->n_tracks;
    struct actor **actors = sv_alloc((n_tracks + 1) * sizeof(struct actor *));
    for (sv_track k = 0; k < n_tracks; k++)
        if (f->actors[k].n)
            actors[n++] = &f->actors[k];
    if (n && w->grouping == SV_GROUP_ALL)
        group_all(f, actors, n);
    else if (w->grouping == SV_GROUP_ROLE)
        group_by_role(f, actors, n);
    else
        group_by_process(f, actors, n, w->processes_max ? w->processes_max : PROCESSES_DEFAULT);
    free(actors);
    sort_groups(f);
}

/* ---- bands ---- */

static void open_group(struct finder *f, struct group *g)
{
    for (size_t i = 0; i < N_PARTS; i++) {
        sv_cover_init(&g->cover[i], f->bins.n);
        g->count[i] = sv_alloc((f->bins.n + 1) * sizeof **g->count);
        g->bytes[i] = sv_alloc((f->bins.n + 1) * sizeof **g->bytes);
    }
}

static void close_group(struct group *g)
{
    for (size_t i = 0; i < N_PARTS; i++) {
        sv_cover_fini(&g->cover[i]);
        free(g->count[i]);
        free(g->bytes[i]);
    }
}

static bool part_occurs(const struct group *g, size_t part, size_t n_bins)
{
    for (size_t i = 0; i < n_bins; i++)
        if (g->count[part][i] || g->cover[part].part[i] > 1e-9)
            return true;
    return false;
}

static void add_band(struct sv_bands *b, struct group *g)
{
    struct sv_band *band = sv_bands_add(b, SV_BAND_LANES);
    snprintf(band->title, sizeof band->title, "%s", g->title);
    snprintf(band->note, sizeof band->note, "%s", g->note);
    for (size_t i = 0; i < N_PARTS; i++) {
        sv_cover_finish(&g->cover[i]);
        if (!part_occurs(g, i, b->bins.n))
            continue;
        if (band->n_lanes == 0 || strcmp(band->lanes[band->n_lanes - 1], parts[i].lane) != 0)
            band->lanes[band->n_lanes++] = parts[i].lane;
        struct sv_band_part *p = sv_band_part_add(b, band, parts[i].name, parts[i].color);
        p->lane = (uint8_t)(band->n_lanes - 1);
        p->order = (uint8_t)i;
        for (size_t bin = 0; bin < b->bins.n; bin++) {
            p->value[bin] = fmin(fmax(g->cover[i].part[bin], 0), 1);
            p->count[bin] = g->count[i][bin];
            p->bytes[bin] = g->bytes[i][bin];
        }
    }
}

static void find_io(struct sv_bands *b, const struct sv_trace *t, const struct sv_bands_wanted *w)
{
    size_t n_tracks = t->dict->n_tracks;
    struct finder f = {.trace = t, .bins = b->bins, .read = sv_dict_find_str(t->dict, "read", 4)};
    f.pool = t->slices.n < THREADS_FROM ? NULL : sv_workers_new(0);
    sv_io_words_init(&f.words, t);
    f.actors = sv_alloc((n_tracks + 1) * sizeof *f.actors);
    for (sv_track k = 0; k < n_tracks; k++)
        f.actors[k].process = k;
    walk(&f, count_actor);
    if (w->grouping != SV_GROUP_ALL)
        find_roles(&f);
    make_groups(&f, w);
    for (size_t i = 0; i < f.n_groups; i++)
        open_group(&f, &f.groups[i]);
    walk(&f, add_slice);
    for (size_t i = 0; i < f.n_groups; i++) {
        add_band(b, &f.groups[i]);
        close_group(&f.groups[i]);
    }
    sv_workers_free(f.pool);
    free(f.groups);
    free(f.actors);
    sv_io_words_fini(&f.words);
}

const struct sv_bands_io sv_io_bands = {.has = has_io, .find = find_io};
