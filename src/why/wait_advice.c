/* The report on waits: what to try, and why. Called by why/wait.c at the end.
 *
 * An advice is given for a class that takes at least a twentieth of the time, with the figures that
 * speak for it. What a wait for data waits for is what its longest waits ended at. */
#include "why/wait.h"

#include "core/base/sat.h"

#include <inttypes.h>
#include <stdio.h>

#define LEAST 0.05

static double share(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

static void advise(struct sv_wait_report *r, const char *what, const char *sure,
                   const char *evidence)
{
    if (r->n_advice == SV_WAIT_ADVICES)
        return;
    struct sv_wait_advice *a = &r->advice[r->n_advice++];
    a->what = what;
    a->sure = sure;
    snprintf(a->evidence, sizeof a->evidence, "%s", evidence);
}

/* How the time of the longest waits for data was spent at their causes. */
struct causes {
    int64_t all_ns, run_ns, disk_ns, cpu_ns, sleep_ns;
};

static struct causes causes_of_data(const struct sv_wait_report *r)
{
    struct causes c = {0};
    for (size_t i = 0; i < r->n_waits; i++) {
        const struct sv_wait *w = &r->waits[i];
        if (w->class != SV_TIME_DATA)
            continue;
        c.all_ns = sv_sat_add(c.all_ns, w->dur_ns);
        for (size_t k = 0; k < w->chain.n; k++) {
            const struct sv_segment *s = &w->chain.segments[k];
            if (s->kind == SV_SEGMENT_RUN)
                c.run_ns = sv_sat_add(c.run_ns, s->dur_ns);
            else if (s->reason == SV_WAIT_FOR_DISK || s->reason == SV_WAIT_FOR_FAULT)
                c.disk_ns = sv_sat_add(c.disk_ns, s->dur_ns);
            else if (s->reason == SV_WAIT_FOR_CPU)
                c.cpu_ns = sv_sat_add(c.cpu_ns, s->dur_ns);
            else
                c.sleep_ns = sv_sat_add(c.sleep_ns, s->dur_ns);
        }
    }
    return c;
}

static size_t count_loaders(const struct sv_wait_report *r, double *busy)
{
    size_t n = 0;
    int64_t active = 0, all = 0;
    for (size_t i = 0; i < r->n_spans; i++) {
        const struct sv_wait_span *s = &r->spans[i];
        if (s->kind != SV_UNIT_IS_LOADER)
            continue;
        n++;
        all = sv_sat_add(all, s->dur_ns);
        active = sv_sat_add(active, s->class_ns[SV_TIME_COMPUTE] + s->class_ns[SV_TIME_DISK] +
                                        s->class_ns[SV_TIME_CPU] + s->class_ns[SV_TIME_SLEEP]);
    }
    *busy = share(active, all);
    return n;
}

static void advise_data(struct sv_wait_report *r)
{
    char text[240];
    double busy, part = share(r->total.class_ns[SV_TIME_DATA], r->total.dur_ns);
    size_t n = count_loaders(r, &busy);
    struct causes c = causes_of_data(r);
    if (part < LEAST)
        return;
    if (share(c.disk_ns, c.all_ns) > 0.3) {
        snprintf(text, sizeof text,
                 "%.0f %% of the time waits for data; behind the longest waits the loaders wait "
                 "for the disk %.0f %% of the time",
                 part * 100, share(c.disk_ns, c.all_ns) * 100);
        advise(r, "copy the data to a local disk, or read it into the page cache before", "high",
               text);
    } else if (n && share(c.cpu_ns, c.all_ns) > 0.4) {
        snprintf(text, sizeof text,
                 "%.0f %% of the time waits for data; behind the longest waits the loaders wait "
                 "for a CPU %.0f %% of the time",
                 part * 100, share(c.cpu_ns, c.all_ns) * 100);
        advise(r, "CPUs that others do not use, for the loaders", "high", text);
    } else if (n && (share(c.run_ns, c.all_ns) > 0.3 || busy > 0.5)) {
        snprintf(text, sizeof text,
                 "%.0f %% of the time waits for data; %zu loader process%s, active %.0f %% of "
                 "their time",
                 part * 100, n, n == 1 ? "" : "es", busy * 100);
        advise(r, "more loader processes, or less work per sample", "medium", text);
    } else if (!n) {
        snprintf(text, sizeof text,
                 "%.0f %% of the time waits for data, and the trace shows no loader processes",
                 part * 100);
        advise(r, "load in separate processes (num_workers > 0)", "medium", text);
    }
    if (r->file_reads >= 1000 && share((int64_t)r->small_reads, (int64_t)r->file_reads) > 0.8) {
        snprintf(text, sizeof text,
                 "%" PRIu64 " of %" PRIu64 " reads of data files have less than %d KiB",
                 r->small_reads, r->file_reads, SV_WAIT_SMALL / 1024);
        advise(r, "larger reads: fewer, larger files or a larger buffer", "high", text);
    }
}

static void advise_cold(struct sv_wait_report *r)
{
    const struct sv_wait_pass *first = &r->passes[0], *second = &r->passes[1];
    char text[240];
    if (r->n_passes < 2 || second->files * 2 < first->files || !first->bytes || !second->bytes)
        return;
    double cold = (double)first->read_ns / (double)first->bytes,
           warm = (double)second->read_ns / (double)second->bytes;
    double part = share(first->read_ns, sv_sat_sub(r->trace->last_ns, r->trace->first_ns));
    if (cold < 2 * warm || part < LEAST)
        return;
    snprintf(text, sizeof text,
             "reading %" PRIu64 " files for the first time took %.1f times as long per byte as "
             "the second time (%.0f %% of it came from disk)",
             first->files, cold / warm, 100 * (double)first->missed_bytes / (double)first->bytes);
    advise(r, "read the data into the page cache before the first epoch, or keep a local copy",
           first->missed_bytes ? "high" : "medium", text);
}

static void advise_others(struct sv_wait_report *r)
{
    const struct sv_wait_span *s = &r->total;
    char text[240];
    double part = share(s->class_ns[SV_TIME_DISK], s->dur_ns);
    if (part >= LEAST) {
        snprintf(text, sizeof text, "the thread itself waits %.0f %% of the time for the disk",
                 part * 100);
        advise(r, "read and write in other threads or processes, or on a faster disk", "high",
               text);
    }
    part = share(s->class_ns[SV_TIME_CPU], s->dur_ns);
    if (part >= LEAST) {
        snprintf(text, sizeof text, "the thread could run, and waits %.0f %% of the time for a CPU",
                 part * 100);
        advise(r, "fewer threads or processes than CPUs (OMP_NUM_THREADS, num_workers)", "high",
               text);
    }
    part = share(s->class_ns[SV_TIME_LOCK], s->dur_ns);
    if (part >= LEAST && s->gil_ns > s->class_ns[SV_TIME_LOCK] / 2) {
        snprintf(text, sizeof text, "%.0f %% of the time waits for Python's interpreter lock",
                 share(s->gil_ns, s->dur_ns) * 100);
        advise(r, "processes instead of threads, or code that releases the lock", "high", text);
    } else if (part >= LEAST) {
        snprintf(text, sizeof text,
                 "%.0f %% of the time waits for a lock or another thread of the process",
                 part * 100);
        advise(r, "see which thread holds it: the chains of the longest waits", "medium", text);
    }
    part = share(s->copy_ns, s->dur_ns);
    if (part >= LEAST) {
        snprintf(text, sizeof text, "the host is in copies to or from the GPU %.0f %% of the time",
                 part * 100);
        advise(r, "pinned memory and asynchronous copies (pin_memory, non_blocking)", "medium",
               text);
    }
}

void sv_wait_advise(struct sv_wait_report *r)
{
    advise_data(r);
    advise_cold(r);
    advise_others(r);
}
