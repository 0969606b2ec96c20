/* What is behind waits for data and for files: one file, a cold page cache, one loader, small
 * reads, many small files, too few loaders, checkpoints. Called by explain/explain_waits.c.
 *
 * The rules are tried from the narrowest to the widest; the first that explains most of the group
 * is the finding. */
#include "explain/waits.h"

#include "core/base/mem.h"
#include "core/base/sat.h"
#include "subjects/io/figures.h"
#include "why/coverage.h"
#include "why/wait.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct files {
    struct sv_wait_group *w;
    struct sv_wait_report passes; /* only passes and small reads are made */
    int64_t reads_ns, names_ns, writes_ns;
    bool is_own; /* the unit's own thread uses the files */
};

static double part(int64_t ns, const struct sv_wait_group *w)
{
    return w->ns > 0 ? (double)ns / (double)w->ns : 0;
}

static void say_first(struct files *f)
{
    struct sv_answer *a = &f->w->answer;
    static const char *const who[SV_N_UNIT_KINDS] = {
        "Training",    "Training", "Training", "The program",
        "The program", "A worker", "The loop", "The launching thread"};
    sv_answer_say(a, "%s %s %.0f %% of %s ", who[f->w->x->ledger->kind],
                  f->is_own ? "spends" : "waits", a->share * 100, sv_waits_of(f->w));
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ---- one file ---- */

struct pace {
    double per_open, per_byte; /* ns; 0: not known */
};

/* How long calls on each file waited for a CPU, by the hash of its path: a busy machine makes all
 * files slow, and the slow one less slow than the others. */
static void find_queued(const struct sv_ledger *l, struct sv_map *by_path)
{
    const struct sv_thread_states *s = &l->states;
    for (uint32_t i = 0; i < s->n; i++) {
        const struct sv_thread_rows *x = &s->threads[i];
        struct sv_state_cursor c = sv_state_window(s, i, x->from_ns, x->to_ns);
        if (!x->state || !x->calls)
            continue;
        for (struct sv_state_piece p; sv_state_next(&c, &p);) {
            if (p.reason != SV_WAIT_FOR_CPU || p.call == SV_NO_ROW || !sv_state_has_file(s, p.call))
                continue;
            bool is_new;
            struct sv_text path = sv_call_path(s, p.call);
            *sv_map_add(by_path, sv_hash_bytes(path.bytes, path.len, 5), &is_new) +=
                (uint64_t)(p.to_ns - p.from_ns);
        }
    }
}

static struct pace pace_of(const struct sv_io_report *io, const struct sv_io_group *g,
                           const struct sv_map *queued)
{
    struct sv_text path = sv_dict_text(io->strings, g->name);
    const uint64_t *wait = sv_map_find(queued, sv_hash_bytes(path.bytes, path.len, 5));
    double ns = (double)g->all.total_ns - (wait ? (double)*wait : 0);
    ns = ns > 0 ? ns : 0;
    return (struct pace){.per_open = g->opens ? ns / (double)g->opens : ns,
                         .per_byte = g->bytes_read ? ns / (double)g->bytes_read : 0};
}

/* Of the data files that were read: the one in the middle; n: how many. */
static struct pace usual_pace(const struct sv_io_report *io, const struct sv_map *queued, size_t *n)
{
    const struct sv_io_groups *g = &io->by[SV_IO_FILE];
    double *opens = sv_alloc((g->n + 1) * sizeof *opens),
           *bytes = sv_alloc((g->n + 1) * sizeof *bytes);
    *n = 0;
    for (size_t i = 0; i < g->n; i++) {
        if (!g->groups[i].reads || !sv_is_data_file(sv_dict_text(io->strings, g->groups[i].name)))
            continue;
        struct pace p = pace_of(io, &g->groups[i], queued);
        opens[*n] = p.per_open;
        bytes[(*n)++] = p.per_byte;
    }
    qsort(opens, *n, sizeof *opens, by_value);
    qsort(bytes, *n, sizeof *bytes, by_value);
    struct pace p = {*n ? opens[*n / 2] : 0, *n ? bytes[*n / 2] : 0};
    free(opens);
    free(bytes);
    return p;
}

static const struct sv_io_group *find_file(const struct sv_io_report *io, struct sv_text path)
{
    const struct sv_io_groups *g = &io->by[SV_IO_FILE];
    for (size_t i = 0; i < g->n; i++) {
        struct sv_text name = sv_dict_text(io->strings, g->groups[i].name);
        if (name.len == path.len && memcmp(name.bytes, path.bytes, path.len) == 0)
            return &g->groups[i];
    }
    return NULL;
}

static bool slow_file(struct files *f)
{
    enum { FILES_LEAST = 4, TIMES = 5 };
    struct sv_wait_group *w = f->w;
    struct sv_answer *a = &w->answer;
    const struct sv_why_sum *most = sv_why_sums_most(&w->paths);
    if (!most || part(most->ns, w) < 0.4)
        return false;
    struct sv_text path = sv_why_path(w->x->ledger, &w->x->ledger->pieces[most->piece]);
    struct sv_io_report io;
    size_t n;
    struct sv_map queued = {0};
    sv_io_report_make(&io, w->x->trace);
    find_queued(w->x->ledger, &queued);
    struct pace usual = usual_pace(&io, &queued, &n), its = {0};
    const struct sv_io_group *file = find_file(&io, path);
    if (file)
        its = pace_of(&io, file, &queued);
    sv_map_fini(&queued);
    bool is_slow = n >= FILES_LEAST &&
                   ((usual.per_byte > 0 && its.per_byte > TIMES * usual.per_byte) ||
                    its.per_open > TIMES * usual.per_open);
    sv_io_report_fini(&io);
    if (!is_slow)
        return false;
    a->cause = SV_CAUSE_SLOW_FILE;
    a->culprit.kind = "file";
    a->gain = a->share * part(most->ns, w);
    say_first(f);
    sv_answer_say(a,
                  "%s, and %.0f %% of that is for one file of %zu: %.*s takes %.1f times as long "
                  "as the others.",
                  f->is_own ? "reading files" : "for data", part(most->ns, w) * 100, n,
                  (int)(path.len < 200 ? path.len : 200), path.bytes,
                  usual.per_byte > 0 && its.per_byte > TIMES * usual.per_byte
                      ? its.per_byte / usual.per_byte
                      : its.per_open / usual.per_open);
    a->share *= part(most->ns, w);
    return true;
}

/* ---- how files are read ---- */

/* The folder of most of the files. */
static void set_folder(struct files *f)
{
    const struct sv_ledger *l = f->w->x->ledger;
    struct sv_culprit *c = &f->w->answer.culprit;
    struct sv_why_sums folders = {0};
    const struct sv_why_sum *file = sv_why_sums_most(&f->w->paths);
    if (file && file->ns > f->w->ns / 2)
        return; /* one file has most of it, and is named already */
    for (size_t i = 0; i < f->w->paths.n; i++) {
        const struct sv_why_sum *x = &f->w->paths.items[i];
        struct sv_text path = sv_why_path(l, &l->pieces[x->piece]);
        const char *slash = path.len ? memrchr(path.bytes, '/', path.len) : NULL;
        if (slash)
            sv_why_sums_add(&folders, sv_hash_bytes(path.bytes, (size_t)(slash - path.bytes), 3),
                            x->piece, x->ns);
    }
    const struct sv_why_sum *most = sv_why_sums_most(&folders);
    if (most) {
        struct sv_text path = sv_why_path(l, &l->pieces[most->piece]);
        const char *slash = memrchr(path.bytes, '/', path.len);
        snprintf(c->path, sizeof c->path, "%.*s", (int)(slash - path.bytes), path.bytes);
        c->kind = "folder";
    }
    sv_why_sums_fini(&folders);
}

static bool small_files(struct files *f)
{
    enum { FILES_LEAST = 100 };
    struct sv_answer *a = &f->w->answer;
    int64_t files_ns = f->names_ns + f->reads_ns;
    if (part(files_ns, f->w) < 0.4 || f->names_ns < f->reads_ns || f->w->paths.n < FILES_LEAST)
        return false;
    a->cause = SV_CAUSE_SMALL_FILES;
    say_first(f);
    sv_answer_say(a,
                  "%s: %.0f %% of that is opening, closing and looking up files, and %.0f %% is "
                  "reading them. There are more than %zu of them",
                  f->is_own ? "in files" : "for data", part(f->names_ns, f->w) * 100,
                  part(f->reads_ns, f->w) * 100, f->w->paths.n - 1);
    set_folder(f);
    sv_answer_say(a, "%s%s.", a->culprit.path[0] ? ", in " : "", a->culprit.path);
    return true;
}

static bool small_reads(struct files *f)
{
    /* A read of few bytes in memory is a call, and takes a few microseconds. Where it takes longer,
     * it waits for more than that, and a larger buffer may not be what it needs. */
    enum { READ_NS = 25000 };
    const struct sv_wait_report *r = &f->passes;
    struct sv_answer *a = &f->w->answer;
    if (r->file_reads < 500 || r->small_reads * 10 < r->file_reads * 8 ||
        part(f->w->rapid_ns, f->w) < 0.25 ||
        f->w->rapid_reads_ns > (int64_t)r->small_reads * READ_NS)
        return false;
    a->cause = SV_CAUSE_SMALL_READS;
    say_first(f);
    sv_answer_say(a,
                  "%s: %" PRIu64 " of %" PRIu64
                  " reads have less than %d KiB, and %.0f %% of that time is such reads, one right "
                  "after the other.",
                  f->is_own ? "in files" : "for data", r->small_reads, r->file_reads,
                  SV_WAIT_SMALL / 1024, part(f->w->rapid_ns, f->w) * 100);
    set_folder(f);
    return true;
}

static double per_byte(const struct sv_wait_pass *p)
{
    return (double)p->read_ns / (double)p->bytes;
}

/* Reading from the disk, against reading again what is in memory. */
static bool cold_cache(struct files *f)
{
    enum { BYTES_LEAST = 1 << 20 };
    struct sv_answer *a = &f->w->answer;
    const struct sv_wait_pass *cold = NULL, *warm = NULL;
    for (size_t i = 0; i < f->passes.n_passes; i++) {
        const struct sv_wait_pass *p = &f->passes.passes[i];
        if (p->bytes < BYTES_LEAST)
            continue;
        if (p->missed_bytes > p->bytes / 2 && (!cold || per_byte(p) > per_byte(cold)))
            cold = p;
        if (p->missed_bytes < p->bytes / 10 && (!warm || per_byte(p) < per_byte(warm)))
            warm = p;
    }
    if (!cold || part(f->reads_ns, f->w) < 0.4 || (warm && per_byte(cold) < 2 * per_byte(warm)))
        return false;
    a->cause = SV_CAUSE_COLD_CACHE;
    say_first(f);
    sv_answer_say(a,
                  "%s, and %.0f %% of that is reading: %.0f %% of the bytes of %" PRIu64
                  " files are not in the page cache",
                  f->is_own ? "in files" : "for data", part(f->reads_ns, f->w) * 100,
                  cold->missed_bytes < cold->bytes
                      ? 100 * (double)cold->missed_bytes / (double)cold->bytes
                      : 100,
                  cold->files);
    if (warm)
        sv_answer_say(a, ", and reading them takes %.1f times as long as again",
                      per_byte(cold) / per_byte(warm));
    set_folder(f);
    sv_answer_say(a, "%s%s.", a->culprit.path[0] ? ": mostly of " : "", a->culprit.path);
    return true;
}

/* ---- loaders ---- */

/* Loaders are forked anew for each epoch: the n-th of each is one. */
struct loader {
    uint32_t thread;
    sv_track parent;
    int64_t from_ns, to_ns, active_ns;
    uint32_t number; /* within those that are there at once */
};

static int by_start(const void *a, const void *b)
{
    const struct loader *x = a, *y = b;
    if (x->parent != y->parent)
        return x->parent < y->parent ? -1 : 1;
    if (x->from_ns != y->from_ns)
        return x->from_ns < y->from_ns ? -1 : 1;
    return (x->thread > y->thread) - (x->thread < y->thread);
}

static int64_t active_of(const struct sv_ledger *l, uint32_t thread)
{
    const struct sv_thread_rows *x = &l->states.threads[thread];
    struct sv_state_cursor c = sv_state_window(&l->states, thread, x->from_ns, x->to_ns);
    int64_t ns = 0;
    for (struct sv_state_piece p; sv_state_next(&c, &p);)
        if (p.reason == SV_WAIT_NO_REASON || p.reason == SV_WAIT_FOR_CPU ||
            p.reason == SV_WAIT_FOR_DISK || p.reason == SV_WAIT_FOR_FAULT ||
            p.reason == SV_WAIT_FOR_SLEEP)
            ns += p.to_ns - p.from_ns;
    return ns;
}

enum { IS_WAITED_FOR = 1, HAS_FORKED_ONE = 2 };

/* By track of a process: is it waited for, and has it forked one of those? To be freed. */
static uint8_t *find_waited_for(const struct sv_wait_group *w)
{
    const struct sv_ledger *l = w->x->ledger;
    uint8_t *is = sv_alloc((size_t)l->trace->dict->n_tracks + 1);
    for (size_t i = 0; i < w->holders.n; i++) {
        if (w->holders.items[i].key == SV_NO_THREAD)
            continue;
        sv_track process = l->states.threads[w->holders.items[i].key].process;
        is[process] |= IS_WAITED_FOR;
        is[l->workers.parent[process]] |= l->workers.has_exec[process] ? 0 : HAS_FORKED_ONE;
    }
    return is;
}

/* The processes that this group waits for, and those that were forked beside them, with their
 * numbers. To be freed. */
static struct loader *find_loaders(const struct sv_wait_group *w, size_t *n, uint32_t *n_at_once)
{
    enum { LATE_PART = 4 };
    const struct sv_ledger *l = w->x->ledger;
    struct loader *all = sv_alloc((l->states.n + 1) * sizeof *all);
    uint8_t *is = find_waited_for(w);
    *n = *n_at_once = 0;
    for (uint32_t i = 0; i < l->states.n; i++) {
        const struct sv_thread_rows *x = &l->states.threads[i];
        sv_track parent = l->workers.parent[x->process];
        bool is_beside = is[parent] & HAS_FORKED_ONE && !l->workers.has_exec[x->process];
        if (sv_thread_main(&l->states, x->process) != i || !parent ||
            (!is_beside && !(is[x->process] & IS_WAITED_FOR) &&
             !sv_is_data_worker(&l->workers, parent, x->process)))
            continue;
        all[(*n)++] = (struct loader){.thread = i,
                                      .parent = parent,
                                      .from_ns = x->from_ns,
                                      .to_ns = x->to_ns,
                                      .active_ns = active_of(l, i)};
    }
    free(is);
    qsort(all, *n, sizeof *all, by_start);
    int64_t until = 0;
    for (size_t i = 0, first = 0; i < *n; i++) {
        /* Looks at /proc see the end of a process late: a fresh one may begin before it. */
        int64_t end = until - (until - all[first].from_ns) / LATE_PART;
        bool is_new = i == 0 || all[i].parent != all[i - 1].parent || all[i].from_ns >= end;
        first = is_new ? i : first;
        until = is_new || all[i].to_ns > until ? all[i].to_ns : until;
        all[i].number = (uint32_t)(i - first);
        *n_at_once = all[i].number + 1 > *n_at_once ? all[i].number + 1 : *n_at_once;
    }
    return all;
}

/* What loaders do is not fully known: much reading, and nobody has recorded whether from the disk,
 * or calls were lost. Then not their number may be at fault. */
static bool may_be_files(const struct files *f)
{
    struct sv_coverage c;
    if (f->w->x->e->observed.is_lossy)
        return true;
    sv_coverage_stated(&c, f->w->x->trace->dict);
    return c.parts[SV_COVERAGE_PAGE_CACHE].is == SV_COVERAGE_HAS_NONE &&
           part(f->reads_ns, f->w) >= 0.4;
}

static bool slow_worker(struct files *f, const struct loader *all, size_t n, uint32_t at_once)
{
    const struct sv_ledger *l = f->w->x->ledger;
    struct sv_answer *a = &f->w->answer;
    struct sv_why_sums waits = {0};
    struct sv_map numbers = {0}; /* of processes */
    int64_t active[64] = {0}, others = 0;
    bool is_new;
    for (size_t i = 0; i < n; i++)
        *sv_map_add(&numbers, l->states.threads[all[i].thread].process, &is_new) = all[i].number;
    for (size_t i = 0; i < f->w->holders.n; i++) {
        const struct sv_why_sum *x = &f->w->holders.items[i];
        const uint64_t *number = NULL;
        if (x->key != SV_NO_THREAD)
            number = sv_map_find(&numbers, l->states.threads[x->key].process);
        sv_why_sums_add(&waits, number ? *number : UINT32_MAX, x->piece, x->ns);
    }
    for (size_t i = 0; i < n; i++)
        active[all[i].number % 64] += all[i].active_ns;
    const struct sv_why_sum *most = sv_why_sums_most(&waits);
    bool is_found = most && at_once >= 2 && at_once <= 64 && most->key != UINT32_MAX;
    if (is_found) {
        for (uint32_t i = 0; i < at_once; i++)
            others += i == most->key ? 0 : active[i];
        double usual = (double)others / (at_once - 1), own = (double)active[most->key];
        is_found = part(most->ns, f->w) > 0.3 + 1.0 / (2 * at_once) && own > 1.6 * usual;
        if (is_found) {
            a->cause = may_be_files(f) ? SV_CAUSE_DATA : SV_CAUSE_SLOW_WORKER;
            say_first(f);
            sv_answer_say(a,
                          "for data, and %.0f %% of that is for one of %" PRIu32
                          " loaders: number %" PRIu64 " (%s) is active %.1f times as long as the "
                          "others.",
                          part(most->ns, f->w) * 100, at_once, most->key + 1, a->culprit.name,
                          own / (usual > 0 ? usual : 1));
            a->gain = a->share * (1 - (own > 0 ? usual / own : 0));
        }
    }
    sv_why_sums_fini(&waits);
    sv_map_fini(&numbers);
    return is_found;
}

static void few_loaders(struct files *f, const struct loader *all, size_t n, uint32_t at_once)
{
    struct sv_answer *a = &f->w->answer;
    int64_t active = 0, there = 0;
    for (size_t i = 0; i < n; i++) {
        active = sv_sat_add(active, all[i].active_ns);
        there = sv_sat_add(there, all[i].to_ns - all[i].from_ns);
    }
    double busy = there > 0 ? (double)active / (double)there : 0;
    a->cause = n && busy > 0.6 && !may_be_files(f) ? SV_CAUSE_FEW_LOADERS : SV_CAUSE_DATA;
    say_first(f);
    if (n)
        sv_answer_say(a,
                      "for data: %" PRIu32 " loader%s (%s, …) %s active %.0f %% of the time and "
                      "not fast enough.",
                      at_once, at_once == 1 ? "" : "s", a->culprit.name,
                      at_once == 1 ? "is" : "are", busy * 100);
    else
        sv_answer_say(a, "for data that %s (pid %" PRId64 ") makes.", a->culprit.name,
                      a->culprit.pid);
}

/* ---- the whole ---- */

/* How many calls there were for each that the recording kept; 1: none was lost. */
static double calls_each(const struct sv_explaining *x)
{
    const struct sv_thread_states *s = &x->ledger->states;
    uint64_t kept = 0;
    for (uint32_t i = 0; i < s->n && x->e->observed.is_lossy; i++) {
        sv_track calls = s->threads[i].calls;
        kept += calls ? x->trace->tracks[calls].end - x->trace->tracks[calls].first : 0;
    }
    return kept ? 1 + (double)x->e->observed.lost / (double)kept : 1;
}

/* What the lost calls took is what others take as long for: their threads seemed to compute. */
static void estimate_lost(struct files *f)
{
    double each = calls_each(f->w->x), known = (double)(f->names_ns + f->reads_ns);
    double room = known + (double)f->w->doing_ns[SV_DOING_RUNS];
    each = known > 0 && known * each > room ? room / known : each;
    f->names_ns = (int64_t)((double)f->names_ns * each);
    f->reads_ns = (int64_t)((double)f->reads_ns * each);
    if (each > 1)
        f->w->answer.sure = "low";
}

static void begin(struct files *f, struct sv_wait_group *w, bool is_own)
{
    const struct sv_ledger *l = w->x->ledger;
    *f = (struct files){.w = w,
                        .is_own = is_own,
                        .passes = {.trace = w->x->trace, .ledger = {.states = l->states}},
                        .reads_ns = w->doing_ns[SV_DOING_READS] + w->doing_ns[SV_DOING_FAULTS],
                        .names_ns = w->doing_ns[SV_DOING_NAMES],
                        .writes_ns = w->doing_ns[SV_DOING_WRITES]};
    estimate_lost(f);
    if (part(f->reads_ns + f->names_ns, w) >= 0.1)
        sv_wait_find_passes(&f->passes);
    sv_waits_name(w);
}

/* It puts something into a queue that is full. */
static bool is_for_room(const struct sv_wait_group *w)
{
    const struct sv_ledger *l = w->x->ledger;
    const struct sv_lock_wait *wait =
        w->piece ? sv_why_edge_wait(l, sv_why_first_edge(l, w->piece->edge)) : NULL;
    return wait && wait->is_for_room;
}

static void say_taker(struct files *f)
{
    struct sv_answer *a = &f->w->answer;
    const struct sv_culprit *c = &a->culprit;
    bool is_process = strcmp(c->kind, "process") == 0;
    char does[520], where[200];
    a->cause = SV_CAUSE_DATA;
    say_first(f);
    sv_waits_tell_doing(f->w, sv_waits_doing(f->w), does, sizeof does);
    sv_culprit_where(c, where, sizeof where);
    sv_answer_say(a,
                  "for room in a queue that is full, until %s%s (%s %" PRId64
                  ") takes something out, which %s%s.",
                  is_process ? "" : "thread ", c->name, is_process ? "pid" : "tid",
                  is_process ? c->pid : c->tid, does, f->w->last ? "" : where);
}

static void say_producer(struct files *f)
{
    struct sv_answer *a = &f->w->answer;
    const struct sv_culprit *c = &a->culprit;
    a->cause = SV_CAUSE_DATA;
    say_first(f);
    if (!f->w->piece || f->w->piece->edge == SV_NO_EDGE) {
        const char *in = c->function[0] ? c->function : f->w->waits_in;
        sv_answer_say(a, "for data%s%s.", in[0] ? ", in " : "", in);
        return;
    }
    sv_answer_say(a, "for what thread %s (tid %" PRId64 ") makes", c->name, c->tid);
    if (c->function[0])
        sv_answer_say(a, " in %s()", c->function);
    if (c->function[0] && c->file[0])
        sv_answer_say(a, " (%s:%" PRIu32 ")", c->file, c->line);
    char does[520] = "";
    if (f->w->last)
        sv_waits_tell_doing(f->w, sv_waits_doing(f->w), does, sizeof does);
    sv_answer_say(a, ", which %s%s.", f->w->last ? "" : "mostly ",
                  f->w->last ? does : sv_doing_words[sv_waits_doing(f->w)]);
}

/* No file takes the time: which one the loader had used before the longest piece. */
static void hint_file(struct sv_wait_group *w)
{
    const struct sv_ledger *l = w->x->ledger;
    const struct sv_why_sum *most = sv_why_sums_most(&w->holders);
    const struct sv_why_piece *p = most ? &l->pieces[most->piece] : NULL;
    if (!p || p->thread == SV_NO_THREAD || w->answer.culprit.path[0])
        return;
    struct sv_text path =
        sv_last_data_file(&l->states, l->states.threads[p->thread].track, p->ts_ns);
    if (path.len)
        sv_answer_say(&w->answer, " Before its longest part, %.1f ms, it used %.*s.",
                      (double)p->dur_ns / 1e6, (int)(path.len < 150 ? path.len : 150), path.bytes);
}

void sv_waits_say_data(struct sv_wait_group *w)
{
    struct files f;
    size_t n;
    uint32_t at_once;
    const struct sv_why_sum *most = sv_why_sums_most(&w->holders);
    begin(&f, w, false);
    if (is_for_room(w) && w->answer.culprit.kind) {
        say_taker(&f);
        return;
    }
    if (slow_file(&f) || small_files(&f) || cold_cache(&f) || small_reads(&f))
        return;
    if (!most || !sv_is_of_loader(w->x->ledger, &w->x->ledger->pieces[most->piece])) {
        say_producer(&f);
        return;
    }
    struct loader *all = find_loaders(w, &n, &at_once);
    if (!slow_worker(&f, all, n, at_once))
        few_loaders(&f, all, n, at_once);
    free(all);
    hint_file(w);
}

/* What the calls of the group wrote, each call once. */
struct written {
    int64_t bytes;
    uint64_t syncs;
    struct sv_map by_path; /* hash → bytes */
    int64_t named;         /* bytes in files with names of checkpoints … */
    uint64_t first_path;   /* … the first of them … */
    uint32_t first_unit;
    bool is_again; /* … and others, or the same in another unit */
};

static uint64_t hash_of(struct sv_text path)
{
    return sv_hash_bytes(path.bytes, path.len, 7);
}

/* "checkpoint-500/model.bin", "epoch_3.pt": by its last two components. */
static bool is_checkpoint_name(struct sv_text path)
{
    static const char *const words[] = {"checkpoint", "ckpt", "epoch", "step"};
    size_t from = path.len;
    for (int slashes = 0; from > 0 && slashes < 2; from--)
        slashes += path.bytes[from - 1] == '/';
    for (; from < path.len; from++)
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            if (path.len - from >= strlen(words[i]) &&
                strncasecmp(path.bytes + from, words[i], strlen(words[i])) == 0)
                return true;
    return false;
}

static void add_written(struct written *x, struct sv_text path, uint32_t unit, int64_t bytes)
{
    bool is_new;
    uint64_t hash = hash_of(path), *of = sv_map_add(&x->by_path, hash, &is_new);
    *of = (uint64_t)sv_sat_add((int64_t)*of, bytes);
    x->bytes = sv_sat_add(x->bytes, bytes);
    if (!is_checkpoint_name(path))
        return;
    x->is_again |= x->named && (hash != x->first_path || unit != x->first_unit);
    x->first_path = hash;
    x->first_unit = unit;
    x->named = sv_sat_add(x->named, bytes);
}

static void find_written(const struct sv_wait_group *w, struct written *x)
{
    const struct sv_ledger *l = w->x->ledger;
    sv_str size = sv_dict_find_str(l->trace->dict, "bytes", 5),
           length = sv_dict_find_str(l->trace->dict, "length", 6);
    uint32_t last = SV_NO_ROW;
    struct sv_arg a;
    for (size_t i = 0; i < l->n_pieces; i++) {
        const struct sv_why_piece *p = &l->pieces[i];
        if (p->doing != SV_DOING_WRITES || p->row == last || !sv_waits_has(w, i))
            continue;
        last = p->row;
        struct sv_text name = sv_dict_text(l->trace->dict, l->trace->slices.name[p->row]);
        bool is_mapped = name.len == 5 && memcmp(name.bytes, "msync", 5) == 0;
        x->syncs += memmem(name.bytes, name.len, "sync", 4) != NULL;
        sv_str key = is_mapped ? length : size;
        if (key && sv_trace_arg(l->trace, l->trace->slices.args[p->row], key, &a) &&
            a.type == SV_ARG_INT && a.i > 0)
            add_written(x, sv_why_path(l, p), p->unit, a.i);
    }
}

/* Was most of it renamed into place? */
static bool is_renamed(const struct sv_ledger *l, struct written *x)
{
    static const char *const names[] = {"rename", "renameat", "renameat2"};
    const struct sv_trace *t = l->trace;
    sv_str calls[3];
    int64_t bytes = 0;
    for (int i = 0; i < 3; i++)
        calls[i] = sv_dict_find_str(t->dict, names[i], strlen(names[i]));
    for (uint32_t row = 0; row < t->slices.n; row++) {
        sv_str name = t->slices.name[row];
        if (!name || (name != calls[0] && name != calls[1] && name != calls[2]) ||
            !sv_state_is_call(&l->states, row))
            continue;
        uint64_t *of = sv_map_find(&x->by_path, hash_of(sv_call_path(&l->states, row)));
        bytes += of ? (int64_t)*of : 0;
        if (of)
            *of = 0;
    }
    return bytes > x->bytes / 2;
}

/* Many bytes, and synced, renamed into place, or again and again under such names: what is written
 * once is just a file. */
static bool is_checkpoint(const struct sv_wait_group *w, struct written *x, int64_t each)
{
    enum { CHECKPOINT_BYTES = 1 << 20 };
    return each >= CHECKPOINT_BYTES &&
           (x->syncs || (x->is_again && x->named > x->bytes / 2) || is_renamed(w->x->ledger, x));
}

static void say_written(struct files *f)
{
    struct sv_answer *a = &f->w->answer;
    struct written x = {.bytes = 0};
    find_written(f->w, &x);
    int64_t each = x.bytes / (int64_t)(x.syncs ? x.syncs : a->n_units ? a->n_units : 1);
    bool is_saving = is_checkpoint(f->w, &x, each);
    a->cause = is_saving ? SV_CAUSE_CHECKPOINT : SV_CAUSE_DISK;
    say_first(f);
    sv_answer_say(a,
                  is_saving  ? "writing checkpoints, %.1f MiB each time"
                  : !x.syncs ? "writing files"
                  : each > 0 ? "writing and syncing files, %.1f KiB each time"
                             : "writing and syncing files",
                  (double)each / (is_saving ? 1048576 : 1024));
    size_t len = strlen(a->culprit.path);
    bool is_folder = len && a->culprit.path[len - 1] == '/';
    sv_answer_say(a, "%s%s.", is_folder ? ", in " : len ? ": longest " : "", a->culprit.path);
    sv_map_fini(&x.by_path);
}

void sv_waits_say_disk(struct sv_wait_group *w)
{
    struct files f;
    struct sv_answer *a = &w->answer;
    begin(&f, w, true);
    a->culprit.kind = "file";
    if (part(f.writes_ns, w) > 0.5) {
        say_written(&f);
        return;
    }
    if (slow_file(&f) || small_files(&f))
        return;
    if (w->class == SV_WHY_PAGE) {
        a->cause = SV_CAUSE_PAGE_FAULT;
        say_first(&f);
        sv_answer_say(a, "waiting for pages of mapped files, mostly of %s.",
                      a->culprit.path[0] ? a->culprit.path : "several files");
        return;
    }
    if (cold_cache(&f) || small_reads(&f))
        return;
    a->cause = SV_CAUSE_DISK;
    say_first(&f);
    sv_answer_say(a, "in calls on files, mostly %s.",
                  a->culprit.path[0] ? a->culprit.path : "on several of them");
}
