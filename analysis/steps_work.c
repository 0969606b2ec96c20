/* The division of steps: every nanosecond of a step goes to one kind of work.
 *
 * Called after detection, once per trace. Each slice gets a kind: its own name's, its category's, or its parent's; a slice on a
 * device the kind of the host call that launched it. A step is then covered in layers, each taking what those before it
 * left:
 *
 *   1  the step's own thread: the innermost open slice. Waiting for a device (…Synchronize) covers nothing.
 *   2  other threads of the process, as far as they compute, communicate or copy: backward on the autograd thread
 *   3  devices: compute first, then communication, then copies
 *   4  other threads that load data or write checkpoints
 *
 * What is left is idle. Costs the rows that touch steps, and a lookup per step and track of its process. */
#include "analysis/launch.h"
#include "analysis/steps.h"
#include "base/mem.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define TRACKS_MAX 1024u /* threads of a process that are looked at, and tracks of its devices */

/* ---- kinds of work ---- */

/* Words are looked for in lower case, the first that occurs decides: the narrower ones come first. */
static const struct {
    const char *word;
    uint8_t work;
} words[] = {
    {"nccl", SV_WORK_COMM},
    {"allreduce", SV_WORK_COMM},
    {"all_reduce", SV_WORK_COMM},
    {"allgather", SV_WORK_COMM},
    {"all_gather", SV_WORK_COMM},
    {"reduce_scatter", SV_WORK_COMM},
    {"reducescatter", SV_WORK_COMM},
    {"c10d::", SV_WORK_COMM},
    {"gloo", SV_WORK_COMM},
    {"mpi_", SV_WORK_COMM},
    {"checkpoint", SV_WORK_CHECKPOINT},
    {"save_ckpt", SV_WORK_CHECKPOINT},
    {"torch.save", SV_WORK_CHECKPOINT},
    {"htod", SV_WORK_COPY},
    {"h2d", SV_WORK_COPY},
    {"memcpy", SV_WORK_COPY},
    {"host_to_device", SV_WORK_COPY},
    {"host-to-device", SV_WORK_COPY},
    {"aten::copy_", SV_WORK_COPY},
    {"pin_memory", SV_WORK_COPY},
    {"dataloader", SV_WORK_DATA},
    {"data_load", SV_WORK_DATA},
    {"data load", SV_WORK_DATA},
    {"next_batch", SV_WORK_DATA},
    {"load_batch", SV_WORK_DATA},
    {"read_batch", SV_WORK_DATA},
    {"optimizer", SV_WORK_OPTIMIZER},
    {"zero_grad", SV_WORK_OPTIMIZER},
    {"adam", SV_WORK_OPTIMIZER},
    {"backward", SV_WORK_BACKWARD},
    {"autograd::engine", SV_WORK_BACKWARD},
    {"forward", SV_WORK_FORWARD},
    {"nn.module", SV_WORK_FORWARD},
    {"synchronize", SV_WORK_WAIT},
    {"clfinish", SV_WORK_WAIT},
    {"clwaitforevents", SV_WORK_WAIT},
};

static bool has_word(const char *text, const char *word)
{
    size_t len = strlen(word);
    for (; *text; text++) {
        size_t i = 0;
        while (i < len && tolower((unsigned char)text[i]) == word[i])
            i++;
        if (i == len)
            return true;
    }
    return false;
}

uint8_t *sv_work_of_strings(const struct sv_dict *d)
{
    uint8_t *kind = sv_alloc_aligned((size_t)d->n_strings + 1, 64);
    memset(kind, SV_WORK_UNKNOWN, (size_t)d->n_strings + 1);
    for (sv_str s = 1; s < d->n_strings; s++) {
        const char *text = sv_dict_text(d, s).bytes;
        for (size_t i = 0; i < sizeof words / sizeof *words && kind[s] == SV_WORK_UNKNOWN; i++)
            if (has_word(text, words[i].word))
                kind[s] = words[i].work;
    }
    return kind;
}

struct division {
    const struct sv_trace *t;
    struct sv_launches launches;
    uint8_t *by_string, *by_row;
    sv_track *owner; /* by track: whose threads or devices these are, 0: not to be looked at */
    bool *is_device; /* by track */
    /* The current step: what is not covered yet, and a layer. */
    struct span *gaps, *left, *layer;
    size_t n_gaps, n_left, n_layer, cap_gaps, cap_left, cap_layer, cap_open;
    struct open *open;
};

struct span {
    int64_t from, to;
    uint8_t kind;
};

/* A slice that the sweep is inside of. */
struct open {
    int64_t to;
    uint8_t kind;
};

/* Operators of PyTorch that nothing else explains are its forward pass, provided that there is a backward one. */
static bool is_operator(const struct division *d, uint64_t row)
{
    const char *cat = sv_dict_text(d->t->dict, d->t->slices.cat[row]).bytes;
    return strcmp(cat, "cpu_op") == 0 || strcmp(cat, "Operator") == 0;
}

/* Parents have smaller rows, so one pass settles all. */
static void classify_host(struct division *d)
{
    const struct sv_slices *c = &d->t->slices;
    for (uint64_t row = 0; row < c->n; row++) {
        uint8_t kind = d->by_string[c->name[row]];
        uint32_t parent = c->parent[row];
        uint8_t above = parent == SV_NO_ROW ? (uint8_t)SV_WORK_UNKNOWN : d->by_row[parent];
        if (kind == SV_WORK_UNKNOWN)
            kind = d->by_string[c->cat[row]];
        /* A wait within work of a known kind is part of it. */
        if (kind == SV_WORK_UNKNOWN || (kind == SV_WORK_WAIT && above != SV_WORK_UNKNOWN))
            kind = above;
        d->by_row[row] = kind;
    }
}

/* A marker says nothing about what is below it; its name may hold a word by chance. */
static void free_markers(struct division *d, const struct sv_steps *s)
{
    const struct sv_slices *c = &d->t->slices;
    for (size_t i = 0; i < s->n; i++)
        d->by_string[c->name[s->steps[i].row]] = SV_WORK_UNKNOWN;
}

static void mark_forward(struct division *d)
{
    const struct sv_slices *c = &d->t->slices;
    bool *has_backward = sv_alloc((size_t)d->t->n_tracks + 1);
    for (uint64_t row = 0; row < c->n; row++)
        has_backward[sv_dict_process_of(d->t->dict, c->track[row])] |= d->by_row[row] ==
                                                                       SV_WORK_BACKWARD;
    has_backward[0] = false;
    for (uint64_t row = 0; row < c->n; row++) {
        uint32_t parent = c->parent[row];
        if (d->by_row[row] != SV_WORK_UNKNOWN)
            continue;
        if (parent != SV_NO_ROW && d->by_row[parent] != SV_WORK_UNKNOWN)
            d->by_row[row] = d->by_row[parent];
        else if (is_operator(d, row) && has_backward[sv_dict_process_of(d->t->dict, c->track[row])])
            d->by_row[row] = SV_WORK_FORWARD;
    }
    free(has_backward);
}

/* Device slices: communication and copies are what they are, kernels belong to what launched them. */
static void classify_devices(struct division *d)
{
    const struct sv_slices *c = &d->t->slices;
    for (uint32_t row = 0; row < c->n; row++) {
        enum sv_device_slice device = sv_device_slice(&d->launches, row);
        if (device == SV_NOT_DEVICE)
            continue;
        uint32_t launch = sv_launch_of(&d->launches, row);
        uint8_t own = d->by_string[c->name[row]];
        sv_track track = c->track[row], process = 0;
        if (launch != SV_NO_ROW)
            process = sv_dict_process_of(d->t->dict, c->track[launch]);
        d->is_device[track] = true;
        if (!d->owner[track])
            d->owner[track] = process;
        if (own == SV_WORK_COMM || device == SV_DEVICE_SLICE_COPY)
            d->by_row[row] = own == SV_WORK_COMM ? SV_WORK_COMM : SV_WORK_COPY;
        else if (launch != SV_NO_ROW && d->by_row[launch] < SV_N_WORK)
            d->by_row[row] = d->by_row[launch];
    }
}

/* Threads belong to their process; a device without a known launch to the process whose steps its machine has. */
static void find_owners(struct division *d, const struct sv_steps *s)
{
    const struct sv_dict *dict = d->t->dict;
    for (sv_track k = 1; k < d->t->n_tracks; k++) {
        if (!d->is_device[k])
            d->owner[k] = dict->tracks[k].kind == SV_TRACK_THREAD ? sv_dict_process_of(dict, k) : 0;
        for (size_t i = 0; d->is_device[k] && !d->owner[k] && i < s->n; i++)
            if (dict->tracks[s->steps[i].track].space == dict->tracks[k].space)
                d->owner[k] = sv_dict_process_of(dict, s->steps[i].track);
    }
}

/* ---- layers ---- */

static void add_span(struct span **items, size_t *n, size_t *cap, struct span s)
{
    if (s.from >= s.to)
        return;
    if (*n && (*items)[*n - 1].to == s.from && (*items)[*n - 1].kind == s.kind) {
        (*items)[*n - 1].to = s.to;
        return;
    }
    *items = sv_grow(*items, cap, *n + 1, sizeof **items);
    (*items)[(*n)++] = s;
}

/* Leaves the slices that end by `until`, innermost first; returns how far that comes. */
static int64_t leave(struct division *d, size_t *depth, int64_t at, int64_t until)
{
    while (*depth && at < until) {
        const struct open *o = &d->open[*depth - 1];
        int64_t to = o->to < until ? o->to : until;
        add_span(&d->layer, &d->n_layer, &d->cap_layer, (struct span){at, to, o->kind});
        at = to > at ? to : at;
        if (o->to > until)
            return at;
        --*depth;
    }
    return until;
}

/* The innermost slices of a track within the step, as spans in the order of time, into the layer. */
static void sweep(struct division *d, sv_track track, const struct sv_step *s)
{
    const struct sv_slices *c = &d->t->slices;
    int64_t end = s->ts_ns + s->dur_ns, at = s->ts_ns;
    size_t depth = 0;
    struct sv_window w = sv_trace_window(d->t, track, s->ts_ns, end);
    d->n_layer = 0;
    for (uint32_t row; sv_window_next(&w, &row);) {
        int64_t from = c->ts_ns[row] > s->ts_ns ? c->ts_ns[row] : s->ts_ns;
        if (c->kind[row] != SV_SLICE || row == s->row)
            continue;
        at = leave(d, &depth, at, from);
        while (depth && d->open[depth - 1].to <= at)
            depth--;
        d->open = sv_grow(d->open, &d->cap_open, depth + 1, sizeof *d->open);
        d->open[depth++] = (struct open){sv_trace_end_ns(d->t, row), d->by_row[row]};
    }
    leave(d, &depth, at, end);
}

/* Gives the layer's spans of the wanted kinds, as far as nothing covers them yet, to the step. */
static void cover(struct division *d, struct sv_step *s, unsigned kinds)
{
    size_t g = 0;
    d->n_left = 0;
    for (size_t i = 0; i < d->n_layer && g < d->n_gaps; i++) {
        const struct span *x = &d->layer[i];
        if (!(kinds >> x->kind & 1))
            continue;
        while (g < d->n_gaps && d->gaps[g].to <= x->from)
            add_span(&d->left, &d->n_left, &d->cap_left, d->gaps[g++]);
        while (g < d->n_gaps && d->gaps[g].from < x->to) {
            struct span *gap = &d->gaps[g];
            int64_t from = gap->from > x->from ? gap->from : x->from;
            int64_t to = gap->to < x->to ? gap->to : x->to;
            s->work_ns[x->kind < SV_N_WORK ? x->kind : SV_WORK_OTHER] += to - from;
            add_span(&d->left, &d->n_left, &d->cap_left, (struct span){gap->from, from, 0});
            gap->from = to;
            if (gap->from < gap->to)
                break;
            g++;
        }
    }
    for (; g < d->n_gaps; g++)
        add_span(&d->left, &d->n_left, &d->cap_left, d->gaps[g]);
    struct span *gaps = d->gaps;
    size_t cap = d->cap_gaps;
    d->gaps = d->left;
    d->n_gaps = d->n_left;
    d->cap_gaps = d->cap_left;
    d->left = gaps;
    d->cap_left = cap;
}

#define KIND(work) (1u << (work))
enum {
    COMPUTE = KIND(SV_WORK_FORWARD) | KIND(SV_WORK_BACKWARD) | KIND(SV_WORK_OPTIMIZER),
    SUPPLY = KIND(SV_WORK_DATA) | KIND(SV_WORK_CHECKPOINT),
    ALL_BUT_WAIT = KIND(SV_WORK_WAIT) - 1
};

static void cover_tracks(struct division *d, const sv_track *tracks, size_t n, struct sv_step *s,
                         bool of_devices, unsigned kinds)
{
    for (size_t i = 0; i < n && d->n_gaps; i++) {
        if (d->is_device[tracks[i]] != of_devices)
            continue;
        sweep(d, tracks[i], s);
        if (d->n_layer)
            cover(d, s, kinds);
    }
}

static void divide(struct division *d, sv_track own, const sv_track *others, size_t n,
                   struct sv_step *s)
{
    unsigned copy = KIND(SV_WORK_COPY), comm = KIND(SV_WORK_COMM);
    d->n_gaps = 0;
    add_span(&d->gaps, &d->n_gaps, &d->cap_gaps, (struct span){s->ts_ns, s->ts_ns + s->dur_ns, 0});
    sweep(d, own, s);
    cover(d, s, ALL_BUT_WAIT);
    cover_tracks(d, others, n, s, false, COMPUTE | copy | comm);
    cover_tracks(d, others, n, s, true, ALL_BUT_WAIT & ~(comm | copy));
    cover_tracks(d, others, n, s, true, comm);
    cover_tracks(d, others, n, s, true, copy);
    cover_tracks(d, others, n, s, false, SUPPLY);
    for (size_t i = 0; i < d->n_gaps; i++)
        s->work_ns[SV_WORK_IDLE] += d->gaps[i].to - d->gaps[i].from;
}

/* ---- devices ---- */

/* How long at least one piece of work of the kind was running on the step's devices. */
static void divide_devices(struct division *d, const sv_track *tracks, size_t n, struct sv_step *s)
{
    static const unsigned kinds[SV_N_DEVICE] = {
        [SV_DEVICE_KERNEL] = ALL_BUT_WAIT & ~(KIND(SV_WORK_COMM) | KIND(SV_WORK_COPY)),
        [SV_DEVICE_COPY] = KIND(SV_WORK_COPY),
        [SV_DEVICE_COMM] = KIND(SV_WORK_COMM)};
    for (int kind = 0; kind < SV_N_DEVICE; kind++) {
        struct sv_step busy = {.row = s->row, .ts_ns = s->ts_ns, .dur_ns = s->dur_ns};
        d->n_gaps = 0;
        add_span(&d->gaps, &d->n_gaps, &d->cap_gaps,
                 (struct span){s->ts_ns, s->ts_ns + s->dur_ns, 0});
        cover_tracks(d, tracks, n, &busy, true, kinds[kind]);
        for (int work = 0; work < SV_N_WORK; work++)
            s->device_ns[kind] += busy.work_ns[work];
    }
}

/* A marker on a track of its own has nothing below it: then the thread of the process with most slices is looked at. */
static sv_track work_track(const struct sv_trace *t, sv_track marker_track)
{
    const struct sv_trace_track *own = &t->tracks[marker_track];
    sv_track process = sv_dict_process_of(t->dict, marker_track), best = marker_track;
    if (own->depth_max > 0 || process == 0)
        return marker_track;
    for (sv_track k = 1; k < t->n_tracks; k++) {
        uint32_t n = t->tracks[k].end - t->tracks[k].first;
        if (t->dict->tracks[k].kind == SV_TRACK_THREAD &&
            sv_dict_process_of(t->dict, k) == process &&
            n > t->tracks[best].end - t->tracks[best].first)
            best = k;
    }
    return best;
}

/* The other tracks that a step's process has. */
static size_t other_tracks(const struct division *d, sv_track own, sv_track marker, sv_track *to)
{
    sv_track process = sv_dict_process_of(d->t->dict, own);
    size_t n = 0;
    for (sv_track k = 1; k < d->t->n_tracks && process && n < TRACKS_MAX; k++)
        if (d->owner[k] == process && k != own && k != marker &&
            d->t->tracks[k].first < d->t->tracks[k].end)
            to[n++] = k;
    return n;
}

static void division_init(struct division *d, const struct sv_steps *s, const struct sv_trace *t)
{
    *d = (struct division){.t = t, .by_string = sv_work_of_strings(t->dict)};
    d->by_row = sv_alloc_aligned(t->slices.n + 1, 64);
    d->owner = sv_alloc(((size_t)t->n_tracks + 1) * sizeof *d->owner);
    d->is_device = sv_alloc(((size_t)t->n_tracks + 1) * sizeof *d->is_device);
    sv_launches_init(&d->launches, t);
    free_markers(d, s);
    classify_host(d);
    mark_forward(d);
    classify_devices(d);
    find_owners(d, s);
}

static void division_fini(struct division *d)
{
    sv_launches_fini(&d->launches);
    free(d->by_string);
    free(d->by_row);
    free(d->owner);
    free(d->is_device);
    free(d->gaps);
    free(d->left);
    free(d->layer);
    free(d->open);
}

void sv_steps_divide(struct sv_steps *s, const struct sv_trace *t)
{
    struct division d;
    sv_track *others = sv_alloc(TRACKS_MAX * sizeof *others), marker = 0, own = 0;
    size_t n = 0;
    division_init(&d, s, t);
    for (size_t i = 0; i < s->n; i++) {
        struct sv_step *step = &s->steps[i];
        if (i == 0 || step->track != marker) {
            marker = step->track;
            own = work_track(t, marker);
            n = other_tracks(&d, own, marker, others);
        }
        memset(step->work_ns, 0, sizeof step->work_ns);
        memset(step->device_ns, 0, sizeof step->device_ns);
        divide(&d, own, others, n, step);
        divide_devices(&d, others, n, step);
    }
    division_fini(&d);
    free(others);
}
