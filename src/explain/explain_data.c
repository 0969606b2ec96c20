/* What is behind waits for data: one file, a cold page cache, one loader, small reads, many small
 * files, or loaders that are too slow. Called by explain/explain.c.
 *
 * The rules are tried from the narrowest to the widest, and the first that explains most of the
 * waits is the finding. Shares of waits are those of the longest ones, which are looked into. */
#include "explain/explain.h"

#include "core/base/mem.h"
#include "core/base/sat.h"
#include "subjects/io/figures.h"
#include "why/wait.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct facts {
    struct sv_explanation *e;
    const struct sv_wait_report *w;
    struct sv_io_report io;
    double data; /* share of the time that waits for data, or for the disk in reads of its own */
    int64_t data_ns;    /* of the longest waits */
    int64_t active_ns;  /* of the loaders' main threads */
    int64_t loaders_ns; /* their whole time */
    size_t n_loaders;
    /* in calls of the loaders' main threads: open, close, stat and their kin; reads and writes of
     * files */
    int64_t names_ns, transfer_ns;
    uint64_t names;
    char line[160];
    const char *who;
};

static double share(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

static int64_t active(const struct sv_wait_span *s)
{
    return s->class_ns[SV_TIME_COMPUTE] + s->class_ns[SV_TIME_DISK] + s->class_ns[SV_TIME_CPU] +
           s->class_ns[SV_TIME_SLEEP];
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ---- one file ---- */

/* The time per opening of the data file in the middle; 0: fewer than ten. */
static double median_file(const struct sv_io_report *io)
{
    const struct sv_io_groups *g = &io->by[SV_IO_FILE];
    double *v = sv_alloc((g->n + 1) * sizeof *v), median = 0;
    size_t n = 0;
    for (size_t i = 0; i < g->n; i++) {
        const struct sv_io_group *f = &g->groups[i];
        if (f->reads && sv_is_data_file(sv_dict_text(io->strings, f->name)))
            v[n++] = (double)f->all.total_ns / (double)(f->opens ? f->opens : 1);
    }
    if (n >= 10) {
        qsort(v, n, sizeof *v, by_value);
        median = v[n / 2];
    }
    free(v);
    return median;
}

/* How much of the longest waits for data this file is behind; *direct: of it where the loader was
 * in a call on it, not only after one. */
static int64_t waits_for(const struct facts *f, struct sv_text path, int64_t *direct)
{
    int64_t ns = 0;
    *direct = 0;
    for (size_t i = 0; i < f->w->n_waits; i++) {
        const struct sv_wait *x = &f->w->waits[i];
        struct sv_text own = x->cause.path.len ? x->cause.path : x->cause.last;
        if (x->class != SV_TIME_DATA || own.len != path.len ||
            memcmp(own.bytes, path.bytes, path.len) != 0)
            continue;
        ns = sv_sat_add(ns, x->dur_ns);
        *direct = sv_sat_add(*direct, x->cause.path.len ? x->dur_ns : 0);
    }
    return ns;
}

static bool slow_file(struct facts *f)
{
    const struct sv_io_groups *g = &f->io.by[SV_IO_FILE];
    double median = median_file(&f->io);
    /* Groups are sorted by time: a file that costs much is among the first. */
    for (size_t i = 0; i < g->n && i < 5 && median > 0; i++) {
        const struct sv_io_group *x = &g->groups[i];
        struct sv_text path = sv_dict_text(f->io.strings, x->name);
        double one = (double)x->all.total_ns / (double)(x->opens ? x->opens : 1);
        int64_t direct, ns = waits_for(f, path, &direct);
        double part = share(ns, f->data_ns);
        bool is_read = direct > ns / 2;
        if (one < 5 * median || part < 0.4 || !sv_is_data_file(path))
            continue;
        sv_explain_add(f->e, SV_CAUSE_SLOW_FILE, f->data, is_read ? "high" : "medium", f->line,
                       "%s waits %.0f %% of the time for data, and %.0f %% of the longest "
                       "waits are for %s one file: %.*s takes %.1f ms to read, the others %.2f "
                       "ms.",
                       f->who, f->data * 100, part * 100,
                       is_read ? "the reading of" : "what a loader does after reading",
                       (int)(path.len < 200 ? path.len : 200), path.bytes, one / 1e6, median / 1e6);
        return true;
    }
    return false;
}

/* ---- a cold cache ---- */

static bool cold_cache(struct facts *f)
{
    const struct sv_wait_pass *first = &f->w->passes[0], *again = &f->w->passes[1];
    int64_t before = 0;
    if (f->w->n_passes < 2 || !first->bytes || !again->bytes || again->files * 4 < first->files)
        return false;
    double cold = (double)first->read_ns / (double)first->bytes,
           warm = (double)again->read_ns / (double)again->bytes;
    for (size_t i = 0; i < f->w->n_waits; i++)
        if (f->w->waits[i].class == SV_TIME_DATA && f->w->waits[i].ts_ns < again->from_ns)
            before = sv_sat_add(before, f->w->waits[i].dur_ns);
    /* Loaders read ahead: the last waits of the first epoch lie a little after the second one
     * began. */
    if (cold < 2 * warm || share(before, f->data_ns) < 0.6)
        return false;
    sv_explain_add(f->e, SV_CAUSE_COLD_CACHE, f->data, first->missed_bytes ? "high" : "medium",
                   f->line,
                   "The first epoch waits for the disk: reading %" PRIu64 " files for the first "
                   "time takes %.1f times as long per byte as again, %.0f %% of it was not in the "
                   "page cache, and %.0f %% of the time is spent waiting for data. Reading them "
                   "before, or a local copy, would help.",
                   first->files, warm > 0 ? cold / warm : 0,
                   100 * (double)first->missed_bytes / (double)first->bytes, f->data * 100);
    return true;
}

/* ---- one loader ---- */

/* How much of the longest waits for data a process is behind, how many they are, and the longest of
 * them. */
static int64_t waits_for_process(const struct facts *f, sv_track process, size_t *n,
                                 int64_t *longest_ns)
{
    int64_t ns = 0;
    *n = 0;
    *longest_ns = 0;
    for (size_t i = 0; i < f->w->n_waits; i++) {
        const struct sv_wait *x = &f->w->waits[i];
        if (x->class != SV_TIME_DATA ||
            sv_dict_process_of(f->w->trace->dict, x->cause.track) != process)
            continue;
        ns = sv_sat_add(ns, x->dur_ns);
        *longest_ns = x->dur_ns > *longest_ns ? x->dur_ns : *longest_ns;
        ++*n;
    }
    return ns;
}

static bool straggler_loader(struct facts *f)
{
    double *v = sv_alloc((f->n_loaders + 1) * sizeof *v);
    const struct sv_wait_span *worst = NULL;
    size_t n = 0;
    bool is_found = false;
    for (size_t i = 0; i < f->w->n_spans; i++) {
        const struct sv_wait_span *s = &f->w->spans[i];
        if (s->kind != SV_SPAN_LOADER)
            continue;
        v[n++] = (double)active(s);
        if (!worst || active(s) > active(worst))
            worst = s;
    }
    if (n >= 2) {
        qsort(v, n, sizeof *v, by_value);
        sv_track process = f->w->states.threads[worst->thread].process;
        double usual = v[(n - 1) / 2], own = (double)active(worst);
        size_t times;
        int64_t longest, ns = waits_for_process(f, process, &times, &longest);
        double part = share(ns, f->data_ns);
        /* Once is no habit. */
        is_found = own > 1.6 * usual && part > 0.3 + 1.0 / (double)n && times >= 3 &&
                   share(longest, ns) < 0.6;
        if (is_found)
            sv_explain_add(f->e, SV_CAUSE_STRAGGLER_LOADER, f->data, "high", f->line,
                           "%s waits %.0f %% of the time for data, and %.0f %% of the "
                           "longest waits are for one of %zu loaders: pid %" PRId64
                           " is active %.1f times as long as the others.",
                           f->who, f->data * 100, part * 100, n,
                           f->w->trace->dict->tracks[process].pid, own / (usual > 0 ? usual : 1));
    }
    free(v);
    return is_found;
}

/* ---- how they read ---- */

static bool small_reads(struct facts *f)
{
    const struct sv_wait_report *w = f->w;
    double part = share(w->small_reads_ns, f->active_ns);
    if (w->file_reads < 500 || w->small_reads * 10 < w->file_reads * 8 || part < 0.3)
        return false;
    sv_explain_add(f->e, SV_CAUSE_SMALL_READS, f->data, "high", f->line,
                   "%s waits %.0f %% of the time for data, and the loaders spend %.0f %% of "
                   "theirs in small reads: %" PRIu64 " of %" PRIu64
                   " have less than %d KiB. A larger buffer, or larger files, would need fewer.",
                   f->who, f->data * 100, part * 100, w->small_reads, w->file_reads,
                   SV_WAIT_SMALL / 1024);
    return true;
}

static bool small_files(struct facts *f)
{
    double part = share(f->names_ns, f->active_ns);
    if (f->names < 500 || f->names_ns < f->transfer_ns || part < 0.3)
        return false;
    sv_explain_add(f->e, SV_CAUSE_SMALL_FILES, f->data, "high", f->line,
                   "%s waits %.0f %% of the time for data, and the loaders spend %.0f %% of "
                   "theirs in %" PRIu64 " calls that open, close and look up files; reading them "
                   "takes %.0f %%. Fewer, larger files would help.",
                   f->who, f->data * 100, part * 100, f->names,
                   share(f->transfer_ns, f->active_ns) * 100);
    return true;
}

/* "; the longest wait, 296.1 ms, is for pid 20, which slept after using /data/a" */
static void add_longest(const struct facts *f, char *to, size_t size)
{
    const struct sv_dict *d = f->w->trace->dict;
    const struct sv_wait *x = f->w->waits;
    for (; x < f->w->waits + f->w->n_waits && x->class != SV_TIME_DATA; x++) {}
    *to = 0;
    if (x == f->w->waits + f->w->n_waits || !x->cause.track)
        return;
    bool is_call = x->cause.path.len > 0;
    struct sv_text file = is_call ? x->cause.path : x->cause.last;
    sv_track process = sv_dict_process_of(d, x->cause.track);
    snprintf(to, size, "; the longest wait, %.1f ms, is for pid %" PRId64 ", which %s%s%.*s",
             (double)x->dur_ns / 1e6, process ? d->tracks[process].pid : -1,
             x->cause.kind == SV_SEGMENT_RUN       ? "ran"
             : x->cause.reason == SV_WAIT_FOR_CPU  ? "waited for a CPU"
             : x->cause.reason == SV_WAIT_FOR_DISK ? "waited for the disk"
                                                   : "slept",
             !file.len ? ""
             : is_call ? " in "
                       : " after using ",
             (int)(file.len < 150 ? file.len : 150), file.bytes);
}

static void slow_loaders(struct facts *f)
{
    double busy = share(f->active_ns, f->loaders_ns);
    char longest[280];
    add_longest(f, longest, sizeof longest);
    if (f->n_loaders && busy > 0.5)
        sv_explain_add(f->e, SV_CAUSE_SLOW_LOADERS, f->data, "medium", f->line,
                       "%s waits %.0f %% of the time for data: %zu loader%s active %.0f %% "
                       "of their time and not fast enough%s. More loaders, or less work per "
                       "sample, would help.",
                       f->who, f->data * 100, f->n_loaders, f->n_loaders == 1 ? " is" : "s are",
                       busy * 100, longest);
    else
        sv_explain_add(f->e, SV_CAUSE_DATA, f->data, f->w->is_assumed ? "low" : "medium", f->line,
                       "%s waits %.0f %% of the time for data%s.", f->who, f->data * 100, longest);
}

static void add_calls(struct facts *f, uint32_t thread)
{
    const struct sv_thread_states *s = &f->w->states;
    const struct sv_trace *t = f->w->trace;
    sv_track calls = s->threads[thread].calls;
    for (uint32_t row = t->tracks[calls].first; calls && row < t->tracks[calls].end; row++) {
        unsigned class = s->call_class[t->slices.name[row]];
        if (!sv_state_is_call(s, row) || (class != SV_CALL_FILE && class != SV_CALL_TRANSFER))
            continue;
        int64_t ns = sv_sat_sub(sv_trace_end_ns(t, row), t->slices.ts_ns[row]);
        if (class == SV_CALL_FILE) {
            f->names_ns = sv_sat_add(f->names_ns, ns);
            f->names++;
        } else if (sv_call_file_kind(s, row) == SV_FILE_REGULAR) {
            f->transfer_ns = sv_sat_add(f->transfer_ns, ns);
        }
    }
}

void sv_explain_data(struct sv_explanation *e, const struct sv_wait_report *w, const char *path)
{
    struct facts f = {
        .e = e, .w = w, .data = share(w->total.class_ns[SV_TIME_DATA], w->total.dur_ns)};
    if (f.data < SV_EXPLAIN_LEAST)
        return;
    /* Data workers alone are no proof of training. */
    f.who = w->kind == SV_SPAN_STEP ? "Training" : "The program";
    snprintf(f.line, sizeof f.line, "stave report wait %.100s --by wait", path);
    sv_io_report_make(&f.io, w->trace);
    for (size_t i = 0; i < w->n_waits; i++)
        f.data_ns =
            sv_sat_add(f.data_ns, w->waits[i].class == SV_TIME_DATA ? w->waits[i].dur_ns : 0);
    for (size_t i = 0; i < w->n_spans; i++) {
        if (w->spans[i].kind != SV_SPAN_LOADER)
            continue;
        f.n_loaders++;
        f.loaders_ns = sv_sat_add(f.loaders_ns, w->spans[i].dur_ns);
        add_calls(&f, w->spans[i].thread);
        f.active_ns = sv_sat_add(f.active_ns, active(&w->spans[i]));
    }
    if (!slow_file(&f) && !cold_cache(&f) && !straggler_loader(&f) && !small_reads(&f) &&
        !small_files(&f))
        slow_loaders(&f);
    sv_io_report_fini(&f.io);
}
