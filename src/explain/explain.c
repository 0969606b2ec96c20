/* Findings from the reports on waits, GPUs and ranks, and from counters of memory. Called by the
 * command explain; what is behind waits for data is in explain/explain_data.c.
 *
 * Each rule looks at figures that a report shows, too, so that a finding can be checked. */
#include "explain/explain.h"

#include "core/base/sat.h"
#include "subjects/comm/figures.h"
#include "subjects/comm/words.h"
#include "subjects/gpu/figures.h"
#include "why/wait.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *const sv_explain_words[SV_N_CAUSES] = {
#define WORD(member, word) word,
    SV_EXPLAIN_CAUSES(WORD)
#undef WORD
};

enum { WAITS = 64 };

void sv_explain_add(struct sv_explanation *e, enum sv_explain_cause cause, double share,
                    const char *sure, const char *command, const char *fmt, ...)
{
    struct sv_answer f = {.cause = cause, .sure = sure, .share = share};
    va_list args;
    va_start(args, fmt);
    vsnprintf(f.sentence, sizeof f.sentence, fmt, args);
    va_end(args);
    snprintf(f.command, sizeof f.command, "%s", command);
    size_t at = e->n;
    while (at > 0 && e->findings[at - 1].share < share)
        at--;
    if (at == SV_EXPLAIN_MAX) {
        e->n_suspended++;
        return;
    }
    if (e->n < SV_EXPLAIN_MAX)
        e->n++;
    else
        e->n_suspended++;
    memmove(&e->findings[at + 1], &e->findings[at], (e->n - at - 1) * sizeof *e->findings);
    e->findings[at] = f;
}

static double share(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

/* ---- locks, CPUs, disk, peers ---- */

static const char *command(char to[160], const char *verb, const char *path, const char *options)
{
    snprintf(to, 160, "stave %s %.100s%s", verb, path, options);
    return to;
}

/* The thread that most of the longest waits of a class end at; its share of their time. */
static sv_track blamed(const struct sv_wait_report *w, enum sv_wait_class class, double *part)
{
    sv_track best = 0;
    int64_t best_ns = 0, all = 0;
    for (size_t i = 0; i < w->n_waits; i++) {
        int64_t ns = 0;
        if (w->waits[i].class != class)
            continue;
        all = sv_sat_add(all, w->waits[i].dur_ns);
        for (size_t k = 0; k < w->n_waits; k++)
            if (w->waits[k].class == class && w->waits[k].cause.track == w->waits[i].cause.track)
                ns = sv_sat_add(ns, w->waits[k].dur_ns);
        if (ns > best_ns) {
            best_ns = ns;
            best = w->waits[i].cause.track;
        }
    }
    *part = share(best_ns, all);
    return best;
}

static void explain_lock(struct sv_explanation *e, const struct sv_wait_report *w, const char *path)
{
    const struct sv_wait_span *s = &w->total;
    double part, all = share(s->class_ns[SV_TIME_LOCK], s->dur_ns);
    char who[64] = "", line[160];
    if (all < SV_EXPLAIN_LEAST)
        return;
    sv_track track = blamed(w, SV_TIME_LOCK, &part);
    if (track && part > 0.3)
        snprintf(who, sizeof who, "; %.0f %% of the longest waits end at thread %" PRId64,
                 part * 100, w->trace->dict->tracks[track].tid);
    bool is_gil = s->gil_ns > s->class_ns[SV_TIME_LOCK] / 2;
    sv_explain_add(e, is_gil ? SV_CAUSE_GIL : SV_CAUSE_LOCK, all, is_gil ? "high" : "medium",
                   command(line, "report wait", path, " --by wait"),
                   is_gil ? "The thread waits %.0f %% of the time for Python's interpreter lock, "
                            "which other threads hold%s. Processes instead of threads, or code "
                            "that releases the lock, would run at the same time."
                          : "The thread waits %.0f %% of the time for a lock or for another thread "
                            "of its process%s.",
                   all * 100, who);
}

static void explain_cpu(struct sv_explanation *e, const struct sv_wait_report *w, const char *path)
{
    double all = share(w->total.class_ns[SV_TIME_CPU], w->total.dur_ns);
    char line[160];
    if (all >= SV_EXPLAIN_LEAST)
        sv_explain_add(e, SV_CAUSE_CPU, all, "high",
                       command(line, "report wait", path, " --by span"),
                       "The thread could run, and waits %.0f %% of the time for a CPU: more "
                       "threads want to run than there are CPUs for them.",
                       all * 100);
}

static bool has(struct sv_text path, const char *part)
{
    return memmem(path.bytes, path.len, part, strlen(part)) != NULL;
}

static bool is_checkpoint(struct sv_text path)
{
    static const char *const words[] = {"ckpt", "checkpoint", ".pt", ".safetensors", ".h5"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (has(path, words[i]))
            return true;
    return false;
}

/* Waits for the disk of the thread itself: writing of checkpoints, or others. */
static void explain_disk(struct sv_explanation *e, const struct sv_wait_report *w, const char *path)
{
    double all = share(w->total.class_ns[SV_TIME_DISK], w->total.dur_ns);
    int64_t saved = 0, known = 0;
    const struct sv_wait *longest = NULL;
    char line[160];
    for (size_t i = 0; i < w->n_waits; i++) {
        const struct sv_wait *x = &w->waits[i];
        if (x->class != SV_TIME_DISK)
            continue;
        known = sv_sat_add(known, x->dur_ns);
        saved = sv_sat_add(saved, is_checkpoint(x->cause.path) ? x->dur_ns : 0);
        longest = longest ? longest : x;
    }
    if (all < SV_EXPLAIN_LEAST)
        return;
    struct sv_text file = longest ? longest->cause.path : (struct sv_text){"", 0};
    bool is_saving = saved > known / 2;
    command(line, "report wait", path, " --by wait");
    sv_explain_add(e, is_saving ? SV_CAUSE_CHECKPOINT : SV_CAUSE_DISK, all,
                   w->is_assumed ? "low" : "high", line,
                   is_saving ? "Training stops for checkpoints: the thread waits %.0f %% of the "
                               "time for the disk, longest for %.*s. Writing them in another "
                               "thread or to a faster disk would let it continue."
                             : "The thread itself waits %.0f %% of the time for the disk, longest "
                               "for %.*s.",
                   all * 100, file.len ? (int)(file.len < 150 ? file.len : 150) : 12,
                   file.len ? file.bytes : "unknown file");
}

static void explain_peer(struct sv_explanation *e, const struct sv_wait_report *w, const char *path)
{
    double all = share(w->total.class_ns[SV_TIME_PEER], w->total.dur_ns), part;
    char line[160], who[48] = "";
    if (all < 2 * SV_EXPLAIN_LEAST)
        return;
    sv_track track = blamed(w, SV_TIME_PEER, &part);
    sv_track process = track ? sv_dict_process_of(w->trace->dict, track) : 0;
    if (process && part > 0.5)
        snprintf(who, sizeof who, ", mostly pid %" PRId64, w->trace->dict->tracks[process].pid);
    sv_explain_add(e, SV_CAUSE_PEER, all, "low", command(line, "report wait", path, " --by wait"),
                   "The thread waits %.0f %% of the time for another process (pipe, socket, end "
                   "of a child)%s.",
                   all * 100, who);
}

/* ---- GPUs ---- */

static void explain_gpu(struct sv_explanation *e, const struct sv_trace *t, const char *path)
{
    struct sv_gpu_report r;
    char line[160];
    sv_gpu_report_make(&r, t, NULL);
    const struct sv_gpu_device *worst = NULL;
    for (size_t i = 0; i < r.n_devices; i++) {
        const struct sv_gpu_device *d = &r.devices[i];
        if (d->n_kernels &&
            (!worst || d->gaps[SV_GAP_LAUNCH].total_ns > worst->gaps[SV_GAP_LAUNCH].total_ns))
            worst = d;
    }
    if (worst && worst->n_kernels >= 100) {
        int64_t span = sv_sat_sub(worst->last_ns, worst->first_ns);
        double launch = share(worst->gaps[SV_GAP_LAUNCH].total_ns, span),
               copy = share(worst->gaps[SV_GAP_COPY].total_ns, span);
        command(line, "report gpu", path, " --by gap");
        if (launch >= 4 * SV_EXPLAIN_LEAST)
            sv_explain_add(e, SV_CAUSE_GPU_LAUNCH, launch, "high", line,
                           "The GPU is idle %.0f %% of the time because the host has not launched "
                           "the next work: %" PRIu64 " kernels of %.1f us on average. Larger "
                           "batches, fused kernels or CUDA graphs launch less often.",
                           launch * 100, worst->n_kernels,
                           (double)worst->kernels_ns / (double)worst->n_kernels / 1e3);
        if (copy >= 2 * SV_EXPLAIN_LEAST)
            sv_explain_add(e, SV_CAUSE_GPU_COPY, copy, "medium", line,
                           "The GPU is idle %.0f %% of the time while a copy is before the next "
                           "kernel. Pinned memory and copies ahead of time would overlap them.",
                           copy * 100);
    }
    sv_gpu_report_fini(&r);
}

/* ---- ranks ---- */

static bool has_collectives(const struct sv_trace *t)
{
    static const char *const words[] = {SV_CAT_COLLECTIVE, "kernel", "cpu_op", "user_annotation"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (sv_dict_find_str(t->dict, words[i], strlen(words[i])))
            return true;
    return false;
}

static void explain_ranks(struct sv_explanation *e, const struct sv_trace *t, const char *path)
{
    struct sv_comm_report r;
    char line[160], name[64];
    if (!has_collectives(t))
        return;
    sv_comm_report_make(&r, t);
    uint32_t worst = UINT32_MAX;
    for (uint32_t i = 0; i < r.n_ranks; i++)
        if (r.ranks[i].is_slow &&
            (worst == UINT32_MAX || r.ranks[i].lost_share > r.ranks[worst].lost_share))
            worst = i;
    if (worst != UINT32_MAX && r.ranks[worst].lost_share >= SV_EXPLAIN_LEAST)
        sv_explain_add(e, SV_CAUSE_STRAGGLER_RANK, r.ranks[worst].lost_share, "high",
                       command(line, "report comm", path, ""),
                       "The other ranks wait for %s: it is last in %" PRIu64 " of %" PRIu64
                       " collectives, which costs %.0f %% of the time.",
                       sv_comm_rank_name(&r, worst, name, sizeof name), r.ranks[worst].last,
                       r.ranks[worst].judged, r.ranks[worst].lost_share * 100);
    sv_comm_report_fini(&r);
}

/* ---- memory ---- */

/* How a counter grows: the line through its values, and how well it fits. */
struct growth {
    double first, last, r2;
    uint32_t n;
};

static struct growth growth_of(const struct sv_trace *t, sv_track track)
{
    const struct sv_trace_track *k = &t->tracks[track];
    struct growth g = {.n = k->counter_end - k->counter_first};
    double sx = 0, sy = 0, sxx = 0, sxy = 0, syy = 0, n = g.n;
    int64_t origin = t->counters.ts_ns[k->counter_first];
    for (uint32_t i = k->counter_first; i < k->counter_end; i++) {
        double x = ((double)t->counters.ts_ns[i] - (double)origin) / 1e9, y = t->counters.value[i];
        sx += x;
        sy += y;
        sxx += x * x;
        sxy += x * y;
        syy += y * y;
    }
    double vx = n * sxx - sx * sx, vy = n * syy - sy * sy, c = n * sxy - sx * sy;
    if (vx <= 0 || vy <= 0)
        return g;
    double slope = c / vx,
           end = ((double)t->counters.ts_ns[k->counter_end - 1] - (double)origin) / 1e9;
    g.first = (sy - slope * sx) / n;
    g.last = g.first + slope * end;
    g.r2 = c * c / (vx * vy);
    return g;
}

/* A process whose memory grows all the time. The second half must grow, too: filling of buffers at
 * the beginning is no growth. */
static void explain_memory(struct sv_explanation *e, const struct sv_trace *t, const char *path)
{
    enum { VALUES = 10 };
    char line[160];
    sv_str name = sv_dict_find_str(t->dict, "memory", 6);
    struct growth worst = {0};
    sv_track who = 0;
    for (sv_track k = 1; name && k < t->n_tracks; k++) {
        const struct sv_trace_track *x = &t->tracks[k];
        const struct sv_track_info *info = &t->dict->tracks[k];
        sv_track up = info->parent;
        if (info->name != name || x->counter_end - x->counter_first < VALUES || !up ||
            t->dict->tracks[up].kind != SV_TRACK_PROCESS)
            continue;
        struct growth g = growth_of(t, k);
        uint32_t middle = x->counter_first + g.n / 2;
        double later = t->counters.value[x->counter_end - 1] - t->counters.value[middle];
        bool is_steady = g.first > 0 && g.last > 1.2 * g.first && g.r2 > 0.8 &&
                         later > 0.25 * (g.last - g.first);
        if (is_steady && g.last - g.first > worst.last - worst.first) {
            worst = g;
            who = up;
        }
    }
    if (who)
        sv_explain_add(e, SV_CAUSE_MEMORY, SV_EXPLAIN_LEAST, worst.r2 > 0.95 ? "high" : "medium",
                       command(line, "plot counter", path, ""),
                       "The memory of pid %" PRId64 " grows steadily, from %.0f to %.0f MiB: it "
                       "would run out in the end.",
                       t->dict->tracks[who].pid, worst.first / 1048576, worst.last / 1048576);
}

void sv_explain(struct sv_explanation *e, const struct sv_trace *t, const char *path)
{
    static const char *const kinds[] = {"the steps and the time between them",
                                        "",
                                        "the epochs",
                                        "the phases",
                                        "the main thread",
                                        ""};
    struct sv_wait_report w;
    *e = (struct sv_explanation){0};
    sv_wait_report_make(&w, t, &(struct sv_wait_options){.step = -1, .n_waits = WAITS});
    e->dur_ns = w.total.dur_ns;
    e->of = kinds[w.kind];
    e->has_states = w.states.has_states;
    sv_explain_data(e, &w, path);
    explain_lock(e, &w, path);
    explain_cpu(e, &w, path);
    explain_disk(e, &w, path);
    explain_peer(e, &w, path);
    explain_gpu(e, t, path);
    explain_ranks(e, t, path);
    explain_memory(e, t, path);
    sv_wait_report_fini(&w);
}
