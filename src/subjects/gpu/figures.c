/* The GPU report: devices, streams, kernels and copies. Called by subjects/gpu/sections.c and the
 * plots; gaps, memory and steps are in files of their own.
 *
 * Rows of a track are in the order of time already, so sets of time are made per track and
 * appended; all of them are united once. Must not change the trace; the dictionary learns the keys
 * that are looked for. */
#include "subjects/gpu/figures.h"

#include "core/base/mem.h"
#include "core/base/percentile.h"
#include "core/base/sat.h"
#include "core/base/sort.h"
#include "store/ranks.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers ---- */

int64_t sv_gpu_number_at(const struct sv_gpu_making *m, uint64_t row, const sv_str *keys, size_t n)
{
    struct sv_arg a;
    int64_t v;
    uint32_t handle = m->t->slices.args[row];
    for (size_t i = 0; i < n && handle; i++)
        if (keys[i] && sv_trace_arg(m->t, handle, keys[i], &a) && sv_gpu_whole(&a, &v))
            return v;
    return -1;
}

static struct sv_gpu_times times_of(int64_t *v, size_t n)
{
    struct sv_gpu_times t = {.n = n};
    for (size_t i = 0; i < n; i++) {
        t.total_ns = sv_sat_add(t.total_ns, v[i]);
        t.max_ns = v[i] > t.max_ns ? v[i] : t.max_ns;
    }
    if (n) {
        t.p50_ns = sv_percentile(v, n, 0.5);
        t.p99_ns = sv_percentile(v, n, 0.99);
    }
    return t;
}

/* Moments: appended as they come, put in order when all are there. Those of a track nearly always
 * are, so sorting is merging. */
struct moments {
    int64_t *v;
    size_t n, cap;
};

static bool is_earlier(const int64_t *a, const int64_t *b, const void *unused)
{
    (void)unused;
    return *a < *b;
}
SV_SORT_DEFINE(sort_times, int64_t, is_earlier)

static void add_moment(struct moments *m, int64_t v)
{
    m->v = sv_grow(m->v, &m->cap, m->n + 1, sizeof *m->v);
    m->v[m->n++] = v;
}

static void sort_moments(struct moments *m)
{
    int64_t *spare = sv_alloc(SV_SORT_SPARE(m->n) * sizeof *spare);
    sort_times(m->v, m->n, spare, NULL);
    free(spare);
}

/* The most that are between a moment of `in` and its partner in `out`. */
static unsigned most_inside(const struct moments *in, const struct moments *out)
{
    size_t k = 0, most = 0;
    for (size_t i = 0; i < in->n; i++) {
        while (k < out->n && out->v[k] <= in->v[i])
            k++;
        most = i + 1 - k > most && i + 1 > k ? i + 1 - k : most;
    }
    return (unsigned)most;
}

/* ---- devices and streams ---- */

/* The number of a device or stream: the row's argument, else one in the name of the track above it.
 * -1: unknown. */
static int64_t number_of(const struct sv_gpu_making *m, uint32_t row, const sv_str *keys, size_t n,
                         sv_track above)
{
    const struct sv_dict *d = m->t->dict;
    int64_t number = sv_gpu_number_at(m, row, keys, n);
    return number < 0 && above ? sv_gpu_number_in(sv_dict_text(d, d->tracks[above].name)) : number;
}

size_t sv_gpu_device_at(struct sv_gpu_making *m, uint32_t row)
{
    const struct sv_dict *d = m->t->dict;
    struct sv_gpu_report *r = m->r;
    sv_track track = m->t->slices.track[row], above = sv_gpu_device_of(d, track);
    int64_t number = number_of(m, row, m->words.device, 3, above);
    uint32_t space = d->tracks[track].space;
    uint64_t key = sv_mix64((uint64_t)(number < 0 ? -1 : number)) ^ sv_mix64((uint64_t)space << 32);
    bool is_new;
    uint64_t *at = sv_map_add(&m->devices, key, &is_new);
    if (is_new) {
        *at = r->n_devices;
        r->devices = sv_grow(r->devices, &m->cap_devices, r->n_devices + 1, sizeof *r->devices);
        r->devices[r->n_devices++] = (struct sv_gpu_device){
            .number = number,
            .space = space,
            .track = above ? above : track,
            .name = above ? d->tracks[above].name : 0,
            .first_ns = INT64_MAX,
            .last_ns = INT64_MIN,
        };
    }
    return (size_t)*at;
}

static bool is_stream(const struct sv_gpu_stream *s, size_t device, int64_t number,
                      sv_track process, sv_track track)
{
    return s->device == device && s->number == number &&
           (number >= 0 ? s->process == process : s->track == track);
}

static size_t stream_at(struct sv_gpu_making *m, uint32_t row, size_t device)
{
    const struct sv_dict *d = m->t->dict;
    struct sv_gpu_report *r = m->r;
    sv_track track = m->t->slices.track[row], above = sv_gpu_stream_of(d, track);
    int64_t number = number_of(m, row, m->words.stream, 2, above);
    sv_track process = sv_dict_process_of(d, track);
    bool is_new;
    uint64_t key = sv_mix64(sv_mix64((uint64_t)number ^ (uint64_t)device << 48) ^
                            (number >= 0 ? process : track));
    uint64_t *at = sv_map_add(&m->streams, key, &is_new);
    if (!is_new && is_stream(&r->streams[*at], device, number, process, track))
        return (size_t)*at;
    for (size_t i = is_new ? 0 : r->n_streams; i-- > 0;) /* two of one key: next to never */
        if (is_stream(&r->streams[i], device, number, process, track))
            return i;
    *at = r->n_streams;
    r->streams = sv_grow(r->streams, &m->cap_streams, r->n_streams + 1, sizeof *r->streams);
    r->streams[r->n_streams] = (struct sv_gpu_stream){.device = device,
                                                      .number = number,
                                                      .track = above ? above : track,
                                                      .process = process,
                                                      .first_ns = INT64_MAX,
                                                      .last_ns = INT64_MIN};
    return r->n_streams++;
}

/* ---- gathering ---- */

/* What a device gathers until its figures are made of it. */
struct gathered {
    struct moments starts, ends, launched, begun;
    struct moments latencies; /* in no order */
};

/* One run of rows on a track that belong to one stream. */
struct run {
    size_t device, stream;
    struct sv_spans sets[SV_N_GPU_KINDS];
};

struct gathering {
    struct sv_gpu_making *m;
    struct gathered *by_device;
    size_t n_by_device, cap_by_device;
    uint8_t *is_launch; /* by row: something belongs to it */
    struct run run;
};

static void finish_run(struct gathering *g)
{
    struct run *run = &g->run;
    struct sv_gpu_report *r = g->m->r;
    if (!r->n_streams)
        return;
    for (int k = 0; k < SV_N_GPU_KINDS; k++) {
        sv_spans_append(&r->devices[run->device].sets[k], &run->sets[k]);
        sv_spans_append(&r->streams[run->stream].sets[k], &run->sets[k]);
        run->sets[k].n = 0;
    }
}

/* What the device of the run gathers. */
static struct gathered *gathered_now(struct gathering *g)
{
    size_t n = g->m->r->n_devices;
    while (g->n_by_device < n) {
        g->by_device =
            sv_grow(g->by_device, &g->cap_by_device, g->n_by_device + 1, sizeof *g->by_device);
        g->by_device[g->n_by_device++] = (struct gathered){0};
    }
    return &g->by_device[g->run.device];
}

static void note_launch(struct gathering *g, struct gathered *to, uint32_t row)
{
    const struct sv_slices *c = &g->m->t->slices;
    struct sv_gpu_report *r = g->m->r;
    uint32_t launch = sv_launch_of(&g->m->launches, row);
    if (launch == SV_NO_ROW) {
        r->without_launch++;
        return;
    }
    g->is_launch[launch] = 1;
    int64_t latency = c->ts_ns[row] - c->ts_ns[launch];
    if (latency < 0) {
        r->before_launch++;
        return;
    }
    add_moment(&to->launched, c->ts_ns[launch]);
    add_moment(&to->begun, c->ts_ns[row]);
    add_moment(&to->latencies, latency);
}

static enum sv_gpu_kind kind_of(const struct sv_gpu_making *m, uint32_t row,
                                enum sv_gpu_class class)
{
    if (class != SV_GPU_KERNEL)
        return SV_GPU_COPIES;
    return m->by_name[m->t->slices.name[row]] == SV_WORK_COMM ? SV_GPU_TALKS : SV_GPU_COMPUTES;
}

static void gather(struct gathering *g, uint32_t row, enum sv_gpu_class class)
{
    const struct sv_slices *c = &g->m->t->slices;
    struct sv_gpu_report *r = g->m->r;
    struct sv_gpu_device *d = &r->devices[g->run.device];
    struct sv_gpu_stream *s = &r->streams[g->run.stream];
    int64_t from = c->ts_ns[row], to = sv_trace_end_ns(g->m->t, row);
    r->n_work++;
    r->unfinished += c->dur_ns[row] == SV_UNFINISHED;
    d->n_kernels += class == SV_GPU_KERNEL;
    d->n_copies += class == SV_GPU_COPY;
    d->n_sets += class == SV_GPU_SET;
    if (class == SV_GPU_KERNEL)
        d->kernels_ns = sv_sat_add(d->kernels_ns, sv_sat_sub(to, from));
    d->first_ns = from < d->first_ns ? from : d->first_ns;
    d->last_ns = to > d->last_ns ? to : d->last_ns;
    s->first_ns = from < s->first_ns ? from : s->first_ns;
    s->last_ns = to > s->last_ns ? to : s->last_ns;
    s->n++;
    sv_spans_add(&g->run.sets[kind_of(g->m, row, class)], from, to, row);
    struct gathered *of_device = gathered_now(g);
    add_moment(&of_device->starts, from);
    add_moment(&of_device->ends, to);
    note_launch(g, of_device, row);
}

/* Nearly all tracks are of one stream: a look at some of its rows spares the look at each. */
static bool is_of_one_stream(struct gathering *g, sv_track k)
{
    enum { LOOKS = 16 };
    struct sv_gpu_making *m = g->m;
    const struct sv_trace_track *track = &m->t->tracks[k];
    uint32_t step = (track->end - track->first) / LOOKS + 1;
    int64_t device = 0, stream = 0;
    bool is_first = true;
    for (uint32_t row = track->first; row < track->end; row += step) {
        if (!sv_gpu_is_work((enum sv_gpu_class)m->by_cat[m->t->slices.cat[row]]))
            continue;
        int64_t d = sv_gpu_number_at(m, row, m->words.device, 3);
        int64_t s = sv_gpu_number_at(m, row, m->words.stream, 2);
        if (!is_first && (d != device || s != stream))
            return false;
        device = d;
        stream = s;
        is_first = false;
    }
    return true;
}

static void gather_track(struct gathering *g, sv_track k)
{
    struct sv_gpu_making *m = g->m;
    const struct sv_slices *c = &m->t->slices;
    bool is_one = is_of_one_stream(g, k), is_known = false;
    for (uint32_t row = m->t->tracks[k].first; row < m->t->tracks[k].end; row++) {
        enum sv_gpu_class class = (enum sv_gpu_class)m->by_cat[c->cat[row]];
        if (!sv_gpu_is_work(class) || c->kind[row] != SV_SLICE)
            continue;
        if (!is_one || !is_known) {
            size_t device = sv_gpu_device_at(m, row), stream = stream_at(m, row, device);
            if (device != g->run.device || stream != g->run.stream)
                finish_run(g);
            g->run.device = device;
            g->run.stream = stream;
            is_known = true;
        }
        gather(g, row, class);
    }
    finish_run(g);
}

static void settle(struct sv_gpu_device *d, struct gathered *from)
{
    struct moments *all[] = {&from->starts, &from->ends, &from->launched, &from->begun};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        sort_moments(all[i]);
    for (int k = 0; k < SV_N_GPU_KINDS; k++) {
        sv_spans_settle(&d->sets[k]);
        sv_spans_unite(&d->busy, &d->sets[k]);
        d->kinds_ns[k] = sv_spans_length(&d->sets[k]);
    }
    d->busy_ns = sv_spans_length(&d->busy);
    d->copy_overlap_ns = sv_spans_common(&d->sets[SV_GPU_COMPUTES], &d->sets[SV_GPU_COPIES]);
    d->talk_overlap_ns = sv_spans_common(&d->sets[SV_GPU_COMPUTES], &d->sets[SV_GPU_TALKS]);
    d->concurrency_max = most_inside(&from->starts, &from->ends);
    d->queue_max = most_inside(&from->launched, &from->begun);
    d->latency = times_of(from->latencies.v, from->latencies.n);
    int64_t span = d->last_ns - d->first_ns;
    d->queue_mean = span > 0 ? (double)d->latency.total_ns / (double)span : 0;
}

/* ---- groups ---- */

static int most_time_first(const void *a, const void *b)
{
    const struct sv_gpu_group *x = a, *y = b;
    return (x->times.total_ns < y->times.total_ns) - (x->times.total_ns > y->times.total_ns);
}

/* The group of a piece of work: kernels by name, copies by direction, fills together. */
static uint64_t group_key(const struct sv_gpu_making *m, uint32_t row, enum sv_gpu_class class)
{
    sv_str name = m->t->slices.name[row];
    struct sv_text text = sv_dict_text(m->t->dict, name);
    if (class == SV_GPU_KERNEL)
        return name;
    return class == SV_GPU_SET ? 100 : (uint64_t)sv_gpu_direction(text.bytes, text.len);
}

/* Groups of one list, with all durations side by side. */
struct grouping {
    struct sv_gpu_group *groups;
    size_t n, cap;
    struct sv_map by_key;
    int64_t *times;
    size_t *next; /* where the next duration of a group goes */
};

static void count_row(struct grouping *g, const struct sv_gpu_making *m, uint32_t row,
                      enum sv_gpu_class class)
{
    bool is_new;
    uint64_t key = group_key(m, row, class);
    uint64_t *at = sv_map_add(&g->by_key, key, &is_new);
    if (is_new) {
        *at = g->n;
        g->groups = sv_grow(g->groups, &g->cap, g->n + 1, sizeof *g->groups);
        g->groups[g->n++] = (struct sv_gpu_group){
            .name = class == SV_GPU_KERNEL ? m->t->slices.name[row] : 0,
            .direction = class == SV_GPU_COPY ? (enum sv_gpu_direction)key : SV_GPU_DIR_UNKNOWN,
            .is_set = class == SV_GPU_SET,
        };
    }
    g->groups[*at].times.n++;
}

static void place_row(struct grouping *g, const struct sv_gpu_making *m, uint32_t row,
                      enum sv_gpu_class class)
{
    size_t at = (size_t)*sv_map_find(&g->by_key, group_key(m, row, class));
    int64_t bytes = class == SV_GPU_KERNEL ? -1 : sv_gpu_number_at(m, row, m->words.bytes, 3);
    assert(g->groups && at < g->n); /* count_row() has met it */
    g->groups[at].bytes += bytes > 0 ? (uint64_t)bytes : 0;
    g->times[g->next[at]++] = sv_trace_end_ns(m->t, row) - m->t->slices.ts_ns[row];
}

static void finish_groups(struct grouping *g)
{
    size_t first = 0;
    for (size_t i = 0; i < g->n; i++) {
        size_t n = g->next[i] - first;
        g->groups[i].times = times_of(g->times + first, n);
        first += n;
    }
    if (g->n)
        qsort(g->groups, g->n, sizeof *g->groups, most_time_first);
    sv_map_fini(&g->by_key);
    free(g->times);
    free(g->next);
}

static void make_space(struct grouping *g)
{
    size_t sum = 0;
    g->next = sv_alloc((g->n + 1) * sizeof *g->next);
    for (size_t i = 0; i < g->n; i++) {
        g->next[i] = sum;
        sum += g->groups[i].times.n;
    }
    g->times = sv_alloc((sum + 1) * sizeof *g->times);
}

static void find_groups(struct sv_gpu_making *m)
{
    const struct sv_slices *c = &m->t->slices;
    struct grouping both[2] = {0}; /* kernels; copies and fills */
    for (int turn = 0; turn < 2; turn++) {
        for (uint32_t row = 0; row < c->n; row++) {
            enum sv_gpu_class class = (enum sv_gpu_class)m->by_cat[c->cat[row]];
            if (!sv_gpu_is_work(class) || c->kind[row] != SV_SLICE)
                continue;
            struct grouping *g = &both[class != SV_GPU_KERNEL];
            if (turn == 0)
                count_row(g, m, row, class);
            else
                place_row(g, m, row, class);
        }
        for (int i = 0; i < 2; i++) {
            if (turn == 0)
                make_space(&both[i]);
            else
                finish_groups(&both[i]);
        }
    }
    m->r->kernels = both[0].groups;
    m->r->n_kernels = both[0].n;
    m->r->copies = both[1].groups;
    m->r->n_copies = both[1].n;
}

/* ---- broken ends ---- */

/* Calls that start work: their names say so. */
static bool starts_work(const char *name)
{
    static const char *const words[] = {"Launch", "Memcpy", "Memset", "clEnqueue"};
    if (strstr(name, "clEnqueueBarrier") || strstr(name, "clEnqueueMarker"))
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strstr(name, words[i]))
            return true;
    return false;
}

static void count_calls(struct sv_gpu_making *m, const uint8_t *is_launch)
{
    const struct sv_slices *c = &m->t->slices;
    const struct sv_dict *d = m->t->dict;
    uint8_t *starts = sv_alloc((size_t)d->n_strings + 1);
    for (sv_str s = 1; s < d->n_strings; s++)
        starts[s] = starts_work(sv_dict_text(d, s).bytes);
    for (uint32_t row = 0; row < c->n; row++) {
        if (m->by_cat[c->cat[row]] != SV_GPU_CALL)
            continue;
        m->r->n_calls++;
        m->r->without_work += starts[c->name[row]] && !is_launch[row];
    }
    free(starts);
}

/* ---- the whole ---- */

static void free_gathered(struct gathering *g)
{
    for (size_t i = 0; i < g->n_by_device; i++) {
        struct gathered *x = &g->by_device[i];
        free(x->starts.v);
        free(x->ends.v);
        free(x->launched.v);
        free(x->begun.v);
        free(x->latencies.v);
    }
    for (int k = 0; k < SV_N_GPU_KINDS; k++)
        sv_spans_fini(&g->run.sets[k]);
    free(g->by_device);
    free(g->is_launch);
}

static void settle_stream(struct sv_gpu_stream *s)
{
    for (int k = 0; k < SV_N_GPU_KINDS; k++) {
        sv_spans_settle(&s->sets[k]);
        sv_spans_unite(&s->busy, &s->sets[k]);
    }
    s->busy_ns = sv_spans_length(&s->busy);
}

static void find_devices(struct sv_gpu_making *m)
{
    struct gathering g = {.m = m, .is_launch = sv_alloc(m->t->slices.n + 1)};
    for (sv_track k = 1; k < m->t->n_tracks; k++)
        gather_track(&g, k);
    for (size_t i = 0; i < g.n_by_device; i++)
        settle(&m->r->devices[i], &g.by_device[i]);
    for (size_t i = 0; i < m->r->n_streams; i++)
        settle_stream(&m->r->streams[i]);
    count_calls(m, g.is_launch);
    free_gathered(&g);
}

static void find_ranks(struct sv_gpu_report *r)
{
    bool *is_known = sv_alloc(r->n_devices + 1);
    for (size_t i = 0; i < r->n_devices; i++)
        r->devices[i].rank = -1;
    for (size_t i = 0; i < r->n_streams; i++) {
        struct sv_gpu_device *d = &r->devices[r->streams[i].device];
        int64_t rank = sv_rank_of_track(r->trace, r->streams[i].track);
        d->rank = !is_known[r->streams[i].device] || d->rank == rank ? rank : -1;
        is_known[r->streams[i].device] = true;
    }
    free(is_known);
}

void sv_gpu_report_make(struct sv_gpu_report *r, const struct sv_trace *t, const char *steps)
{
    struct sv_gpu_making m = {.r = r, .t = t};
    *r = (struct sv_gpu_report){.trace = t};
    sv_gpu_words_init(&m.words, t->dict);
    m.by_cat = sv_alloc((size_t)t->dict->n_strings + 1);
    for (sv_str s = 1; s < t->dict->n_strings; s++)
        m.by_cat[s] = (uint8_t)sv_gpu_class_of(&m.words, t->dict, s);
    m.by_name = sv_work_of_strings(t->dict);
    sv_launches_init(&m.launches, t);
    find_devices(&m);
    find_groups(&m);
    find_ranks(r);
    sv_gpu_find_gaps(&m);
    sv_gpu_find_memory(&m);
    sv_gpu_find_sampled(r);
    sv_gpu_divide_steps(&m, steps);
    sv_launches_fini(&m.launches);
    sv_gpu_words_fini(&m.words);
    sv_map_fini(&m.devices);
    sv_map_fini(&m.streams);
    free(m.by_cat);
    free(m.by_name);
}

void sv_gpu_report_fini(struct sv_gpu_report *r)
{
    for (size_t i = 0; i < r->n_devices; i++) {
        for (int k = 0; k < SV_N_GPU_KINDS; k++)
            sv_spans_fini(&r->devices[i].sets[k]);
        for (int k = 0; k < SV_N_GAPS; k++)
            sv_spans_fini(&r->devices[i].idle[k]);
        sv_spans_fini(&r->devices[i].busy);
    }
    for (size_t i = 0; i < r->n_streams; i++) {
        for (int k = 0; k < SV_N_GPU_KINDS; k++)
            sv_spans_fini(&r->streams[i].sets[k]);
        sv_spans_fini(&r->streams[i].busy);
    }
    free(r->devices);
    free(r->streams);
    free(r->kernels);
    free(r->copies);
    free(r->leaks);
    free(r->levels);
    free(r->by_step);
    free(r->sampled);
    sv_ledger_fini(&r->gaps);
    sv_steps_fini(&r->steps);
    *r = (struct sv_gpu_report){0};
}
