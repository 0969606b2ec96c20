/* Rows of batches from a trace: from the slices of libstave-serving (category `serving`: batch, request and their phases), or from those of
 * the seed's batching_trace.json (category `batching`: batch, batch_build, batch_submitted, the worker's span).
 *
 * Called by the loader of whoever reports or draws batches. Warm-up has its own names and is not looked at. */
#include "analysis/batch_rows.h"

#include "base/map.h"
#include "base/mem.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* What is known of a batch while the trace is walked. */
struct found {
    uint64_t id;
    int64_t arrival_ns, collect_ns, collected_ns, submitted_ns, started_ns, finished_ns, end_ns;
    int64_t phase_ns[SV_N_PHASES];
    int64_t worker;
    sv_str model, type;
    uint32_t size, n_requests;
    bool has_phases;
    size_t first_request, n_known; /* of the seed's list */
};

struct walk {
    const struct sv_trace *trace;
    struct sv_batch_rows *rows;
    struct sv_map of_id; /* batch → number of found + 1 */
    struct found *found;
    size_t n, cap;
    struct sv_map arrival_of;  /* request → its arrival, of the seed's instants */
    struct sv_map worker_type; /* worker → string of its type */
    uint64_t *known;           /* requests with the batch that they were in: id, batch, arrival */
    size_t n_known, cap_known;
};

static sv_str find(const struct walk *w, const char *word)
{
    return sv_dict_find_str(w->trace->dict, word, strlen(word));
}

static struct found *found_of(struct walk *w, uint64_t id)
{
    bool is_new;
    uint64_t *slot = sv_map_add(&w->of_id, id, &is_new);
    if (is_new) {
        w->found = sv_grow(w->found, &w->cap, w->n + 1, sizeof *w->found);
        w->found[w->n] = (struct found){.id = id,
                                        .arrival_ns = SV_BATCH_UNKNOWN,
                                        .collect_ns = SV_BATCH_UNKNOWN,
                                        .collected_ns = SV_BATCH_UNKNOWN,
                                        .submitted_ns = SV_BATCH_UNKNOWN,
                                        .started_ns = SV_BATCH_UNKNOWN,
                                        .finished_ns = SV_BATCH_UNKNOWN,
                                        .end_ns = SV_BATCH_UNKNOWN,
                                        .worker = -1};
        *slot = ++w->n;
    }
    return &w->found[*slot - 1];
}

static bool int_arg(const struct walk *w, uint64_t row, sv_str key, int64_t *out)
{
    struct sv_arg a;
    if (!key || !sv_trace_arg(w->trace, w->trace->slices.args[row], key, &a) ||
        a.type != SV_ARG_INT)
        return false;
    *out = a.i;
    return true;
}

static sv_str text_arg(const struct walk *w, uint64_t row, sv_str key)
{
    struct sv_arg a;
    if (!key || !sv_trace_arg(w->trace, w->trace->slices.args[row], key, &a) ||
        a.type != SV_ARG_TEXT)
        return 0;
    return sv_dict_str(w->rows->names, a.text, a.size);
}

static uint32_t small(int64_t n)
{
    return n < 0 ? 0 : n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
}

/* ---- libstave-serving ---- */

#define CHILDREN_MAX \
    64u /* slices that are looked at for the phases of a batch, of which there are few */

static void add_known(struct walk *w, uint64_t request, uint64_t batch, int64_t arrival_ns)
{
    w->known = sv_grow(w->known, &w->cap_known, w->n_known + 3, sizeof *w->known);
    w->known[w->n_known++] = batch;
    w->known[w->n_known++] = (uint64_t)arrival_ns ^ (1ull << 63); /* sorted like a signed number */
    w->known[w->n_known++] = request;
}

static void take_phases(struct walk *w, struct found *f, uint32_t row)
{
    const struct sv_trace *t = w->trace;
    uint32_t end = t->tracks[t->slices.track[row]].end;
    int64_t last = sv_trace_end_ns(t, row);
    end = end - row > CHILDREN_MAX ? row + CHILDREN_MAX : end;
    for (uint32_t i = row + 1; i < end && t->slices.ts_ns[i] < last; i++) {
        if (t->slices.parent[i] != row)
            continue;
        const char *name = sv_dict_text(t->dict, t->slices.name[i]).bytes;
        for (size_t k = 0; k < SV_N_PHASES; k++)
            if (strcmp(name, sv_life_phase_names[k]) == 0)
                f->phase_ns[k] += sv_trace_end_ns(t, i) - t->slices.ts_ns[i];
    }
    f->has_phases = true;
}

static void take_batch(struct walk *w, uint32_t row, int64_t id)
{
    struct found *f = found_of(w, (uint64_t)id);
    int64_t n;
    f->collect_ns = w->trace->slices.ts_ns[row];
    f->end_ns = sv_trace_end_ns(w->trace, row);
    f->size = int_arg(w, row, find(w, "samples"), &n) ? small(n) : 0;
    f->n_requests = int_arg(w, row, find(w, "requests"), &n) ? small(n) : 0;
    int_arg(w, row, find(w, "worker"), &f->worker);
    f->model = text_arg(w, row, find(w, "model"));
    take_phases(w, f, row);
}

/* "worker-3 (cpu)", "device 0 worker 3 (cuda) #2" → 3, cpu. */
static void take_worker_track(struct walk *w, sv_track track)
{
    struct sv_text name = sv_dict_text(w->trace->dict, w->trace->dict->tracks[track].name);
    const char *word = strstr(name.bytes, "worker"), *open = strrchr(name.bytes, '(');
    const char *close = open ? strchr(open, ')') : NULL;
    if (!word || !close || (word[6] != ' ' && word[6] != '-') || !isdigit((unsigned char)word[7]))
        return;
    uint64_t number = strtoull(word + 7, NULL, 10);
    *sv_map_add(&w->worker_type, number, NULL) =
        sv_dict_str(w->rows->names, open + 1, (size_t)(close - open - 1));
}

static void walk_serving(struct walk *w, sv_str cat)
{
    const struct sv_trace *t = w->trace;
    sv_str batch = find(w, "batch"), request = find(w, "request");
    for (uint64_t row = 0; row < t->slices.n; row++) {
        int64_t id, number;
        if (t->slices.cat[row] != cat || !int_arg(w, row, batch, &id))
            continue;
        if (t->slices.name[row] == batch)
            take_batch(w, (uint32_t)row, id);
        else if (t->slices.name[row] == request && int_arg(w, row, request, &number))
            add_known(w, (uint64_t)number, (uint64_t)id, t->slices.ts_ns[row]);
    }
}

/* ---- the seed's file ---- */

static void take_list(struct walk *w, struct found *f, uint32_t row, sv_str key,
                      struct sv_batch *scratch)
{
    size_t n;
    const struct sv_arg *a = sv_trace_args(w->trace, w->trace->slices.args[row], scratch, &n);
    for (const struct sv_arg *end = a + n; a < end; a = sv_arg_next(a)) {
        if (a->key != key || a->type != SV_ARG_ARRAY)
            continue;
        for (size_t i = 1; i <= a->size; i++) {
            const uint64_t *arrival = a[i].type == SV_ARG_INT ? sv_map_find(&w->arrival_of, a[i].u)
                                                              : NULL;
            if (a[i].type == SV_ARG_INT)
                add_known(w, a[i].u, f->id, arrival ? (int64_t)*arrival : SV_BATCH_UNKNOWN);
        }
        f->n_requests = a->size;
    }
    sv_batch_reset(scratch);
}

static void take_event(struct walk *w, uint32_t row, struct sv_batch *scratch)
{
    const struct sv_trace *t = w->trace;
    const char *name = sv_dict_text(t->dict, t->slices.name[row]).bytes;
    int64_t id, n, ts = t->slices.ts_ns[row], end = sv_trace_end_ns(t, row);
    if (!int_arg(w, row, find(w, "batch_id"), &id))
        return; /* warm-up has its own keys */
    struct found *f = found_of(w, (uint64_t)id);
    if (int_arg(w, row, find(w, "batch_size"), &n))
        f->size = small(n);
    f->model = text_arg(w, row, find(w, "model_name"));
    if (strcmp(name, "batch") == 0) {
        f->arrival_ns = ts;
        take_list(w, f, row, find(w, "request_ids"), scratch);
    } else if (strcmp(name, "batch_build") == 0) {
        f->collect_ns = ts;
        f->collected_ns = end;
    } else if (strcmp(name, "batch_submitted") == 0) {
        f->submitted_ns = ts;
    } else if (int_arg(w, row, find(w, "worker_id"), &n)) {
        f->worker = n;
        f->type = text_arg(w, row, find(w, "worker_type"));
        f->started_ns = ts;
        f->finished_ns = f->end_ns = end;
    }
}

static void walk_batching(struct walk *w, sv_str cat)
{
    const struct sv_trace *t = w->trace;
    sv_str enqueued = find(w, "request_enqueued"), request = find(w, "request_id");
    struct sv_batch scratch;
    sv_batch_init(&scratch);
    for (uint64_t row = 0; row < t->slices.n; row++) {
        int64_t id;
        if (t->slices.cat[row] == cat && t->slices.name[row] == enqueued &&
            int_arg(w, row, request, &id))
            *sv_map_add(&w->arrival_of, (uint64_t)id, NULL) = (uint64_t)t->slices.ts_ns[row];
    }
    for (uint64_t row = 0; row < t->slices.n; row++)
        if (t->slices.cat[row] == cat)
            take_event(w, (uint32_t)row, &scratch);
    sv_batch_fini(&scratch);
}

/* ---- rows ---- */

static int by_batch(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    for (size_t i = 0; i < 3; i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

static int64_t span(int64_t from, int64_t to)
{
    int64_t ns;
    return from == SV_BATCH_UNKNOWN || to == SV_BATCH_UNKNOWN ||
                   __builtin_sub_overflow(to, from, &ns) || ns < 0
               ? 0
               : ns;
}

static void take_requests(struct walk *w, const struct found *f, struct sv_batch_row *r)
{
    size_t low = 0, high = w->n_known / 3;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (w->known[mid * 3] < f->id)
            low = mid + 1;
        else
            high = mid;
    }
    for (; low < w->n_known / 3 && w->known[low * 3] == f->id; low++) {
        int64_t arrival = (int64_t)(w->known[low * 3 + 1] ^ (1ull << 63));
        sv_batch_request_add(w->rows, w->known[low * 3 + 2], arrival);
        if (arrival != SV_BATCH_UNKNOWN &&
            (r->arrival_ns == SV_BATCH_UNKNOWN || arrival < r->arrival_ns))
            r->arrival_ns = arrival;
        r->n_known++;
    }
}

static void fill_columns(const struct found *f, struct sv_batch_row *r)
{
    int64_t *c = r->column_ns;
    c[SV_BATCH_QUEUE] = span(r->arrival_ns, f->collect_ns);
    if (f->has_phases) {
        c[SV_BATCH_BATCH] = f->phase_ns[SV_PHASE_BATCH];
        c[SV_BATCH_SUBMIT] = f->phase_ns[SV_PHASE_BATCH] + f->phase_ns[SV_PHASE_SUBMIT];
        c[SV_BATCH_SCHEDULING] = f->phase_ns[SV_PHASE_SCHEDULING];
        c[SV_BATCH_CODELET] = c[SV_BATCH_INFERENCE] = f->phase_ns[SV_PHASE_RUN];
        c[SV_BATCH_CALLBACK] = f->phase_ns[SV_PHASE_CALLBACK];
        return;
    }
    c[SV_BATCH_BATCH] = span(f->collect_ns, f->collected_ns);
    c[SV_BATCH_SUBMIT] = span(f->collect_ns, f->submitted_ns);
    c[SV_BATCH_SCHEDULING] = span(f->submitted_ns, f->started_ns);
    c[SV_BATCH_CODELET] = c[SV_BATCH_INFERENCE] = span(f->started_ns, f->finished_ns);
}

static void add_row(struct walk *w, const struct found *f)
{
    const struct sv_dict *names = w->rows->names;
    if (f->end_ns == SV_BATCH_UNKNOWN)
        return; /* it was not computed */
    struct sv_batch_row *r = sv_batch_row_add(w->rows);
    const uint64_t *type = sv_map_find(&w->worker_type, (uint64_t)f->worker);
    struct sv_text text = sv_dict_text(names, f->type ? f->type : type ? (sv_str)*type : 0);
    r->id = f->id;
    r->model = f->model;
    r->worker = sv_batch_worker_of(w->rows, f->worker, text.len ? text.bytes : "unknown",
                                   text.len ? text.len : 7);
    r->arrival_ns = f->arrival_ns;
    take_requests(w, f, r);
    r->n_requests = f->n_requests ? f->n_requests : r->n_known ? r->n_known : 1;
    r->size = f->size ? f->size : r->n_requests;
    int64_t first = r->arrival_ns != SV_BATCH_UNKNOWN ? r->arrival_ns : f->collect_ns;
    r->total_ns = span(first != SV_BATCH_UNKNOWN ? first : f->started_ns, f->end_ns);
    r->end_ns = f->end_ns;
    fill_columns(f, r);
    sv_batch_derive_phases(r);
}

/* A batch that ends while the server was congested. The periods are slices of one track: in the order of time. */
static void take_congestion(struct walk *w)
{
    const struct sv_trace *t = w->trace;
    sv_str name = find(w, "congestion");
    sv_track track = 0;
    for (sv_track k = 1; name && k < t->n_tracks && !track; k++)
        track = t->dict->tracks[k].name == name ? k : 0;
    if (!track)
        return;
    w->rows->has_congestion = true;
    for (size_t i = 0; i < w->rows->n; i++) {
        struct sv_batch_row *r = &w->rows->rows[i];
        r->is_congested = r->end_ns != SV_BATCH_UNKNOWN &&
                          sv_trace_slice_at(t, track, r->end_ns) != SV_NO_ROW;
    }
}

static void take_metrics(struct walk *w)
{
    const struct sv_trace *t = w->trace;
    sv_str depth = find(w, "queue depth"), rejected = find(w, "rejected");
    struct sv_batch_rows *b = w->rows;
    for (sv_track k = 1; depth && k < t->n_tracks; k++) {
        if (t->dict->tracks[k].name != depth)
            continue;
        for (uint32_t i = t->tracks[k].counter_first; i < t->tracks[k].counter_end; i++) {
            b->metrics = sv_grow(b->metrics, &b->cap_metrics, b->n_metrics + 1, sizeof *b->metrics);
            b->metrics[b->n_metrics++] =
                (struct sv_batch_metric){t->counters.ts_ns[i], t->counters.value[i], 0};
        }
        break;
    }
    for (sv_track k = 1; rejected && k < t->n_tracks; k++) {
        if (t->dict->tracks[k].name != rejected)
            continue;
        uint32_t i = t->tracks[k].counter_first;
        double so_far = 0;
        for (size_t m = 0; m < b->n_metrics; m++) {
            for (; i < t->tracks[k].counter_end && t->counters.ts_ns[i] <= b->metrics[m].ts_ns; i++)
                so_far = t->counters.value[i];
            b->metrics[m].rejected = so_far;
        }
        break;
    }
}

void sv_batch_rows_from_trace(struct sv_batch_rows *b, const struct sv_trace *t)
{
    struct walk w = {.trace = t, .rows = b};
    sv_str serving = find(&w, "serving"), batching = find(&w, "batching");
    for (sv_track k = 1; k < t->n_tracks; k++)
        take_worker_track(&w, k);
    if (serving)
        walk_serving(&w, serving);
    if (w.n == 0 && batching)
        walk_batching(&w, batching);
    if (w.n_known)
        qsort(w.known, w.n_known / 3, 3 * sizeof *w.known, by_batch);
    for (size_t i = 0; i < w.n; i++) {
        b->has_phases |= w.found[i].has_phases;
        add_row(&w, &w.found[i]);
    }
    take_congestion(&w);
    take_metrics(&w);
    sv_batch_rows_finish(b);
    sv_map_fini(&w.of_id);
    sv_map_fini(&w.arrival_of);
    sv_map_fini(&w.worker_type);
    free(w.found);
    free(w.known);
}
