/* The I/O report: which process trains, which ones load its data, which are neither; by what they
 * do, and with the reason.
 *
 *   trainer  uses a GPU or holds the training's steps or phases; without any of these in the trace:
 *            loads PyTorch, or forked data workers (processes of its own
 *            program that read)
 *   loader   uses no GPU and reads at least 1 % of all bytes, more than it writes; where it is
 *            known who started whom, a trainer started it
 *   other    the rest
 *
 * Where the trace shows none of this, as of a compiler's run, no role is given. */
#include "subjects/io/figures.h"

#include "core/base/mem.h"
#include "threads/workers.h"
#include "why/data_workers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_FROM ((uint64_t)1 << 16) /* slices */

struct evidence {
    uint32_t gpu_rows;       /* counters and slices of GPUs */
    uint32_t steps, readers; /* readers: data workers that it started and that read */
    sv_track parent;
    bool has_exec, has_torch; /* it executed a program after it was forked; it loads PyTorch */
};

struct roles {
    struct sv_io_report *report;
    const struct sv_io_words *words;
    struct evidence *of; /* by process track */
    bool has_steps, has_parents;
};

static bool is_gpu_track(const struct sv_dict *d, sv_track t)
{
    for (int depth = 0; t && depth < 16; depth++, t = d->tracks[t].parent) {
        const struct sv_track_info *info = &d->tracks[t];
        if (info->kind == SV_TRACK_PROCESS || info->kind == SV_TRACK_THREAD)
            return false;
        if (info->kind == SV_TRACK_GPU || info->kind == SV_TRACK_STREAM ||
            strncmp(sv_dict_text(d, info->name).bytes, "GPU ", 4) == 0)
            return true;
    }
    return false;
}

static void find_gpus(struct roles *x)
{
    const struct sv_trace *t = x->report->trace;
    for (sv_track track = 1; track < t->n_tracks; track++) {
        const struct sv_trace_track *k = &t->tracks[track];
        uint32_t rows = k->end - k->first + k->counter_end - k->counter_first;
        if (!rows || !is_gpu_track(t->dict, track))
            continue;
        x->report->has_gpu = true;
        sv_track process = sv_dict_process_of(t->dict, track);
        if (process)
            x->of[process].gpu_rows += rows;
    }
    static const char *const cats[] = {"cuda_runtime", "cuda_driver", "hip_runtime"};
    for (size_t i = 0; i < sizeof cats / sizeof *cats; i++) {
        sv_str cat = sv_dict_find_str(t->dict, cats[i], strlen(cats[i]));
        for (uint64_t row = 0; cat && row < t->slices.n; row++)
            if (t->slices.cat[row] == cat)
                x->of[sv_dict_process_of(t->dict, t->slices.track[row])].gpu_rows++;
    }
}

static void find_steps(struct roles *x)
{
    const struct sv_trace *t = x->report->trace;
    for (size_t i = 0; i < x->report->n_spans; i++) {
        sv_track process = sv_dict_process_of(t->dict, t->slices.track[x->report->spans[i].row]);
        if (process)
            x->of[process].steps++;
        x->has_steps |= process != 0;
    }
}

static int64_t child_of(const struct sv_io_words *w, uint64_t row)
{
    int64_t child = sv_io_arg(w, row, w->child, 0);
    return child ? child : sv_io_arg(w, row, w->ret, 0);
}

/* Calls of clone, fork and vfork return the child, an instant of category process names it; a clone
 * that made a thread does not lead to a process. */
static void find_parents(struct roles *x)
{
    static const char *const names[] = {"clone", "clone3", "fork", "vfork"};
    const struct sv_trace *t = x->report->trace;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        sv_str name = sv_dict_find_str(t->dict, names[i], strlen(names[i]));
        for (uint64_t row = 0; name && row < t->slices.n; row++) {
            int64_t pid;
            if (t->slices.name[row] != name || (pid = child_of(x->words, row)) <= 0)
                continue;
            sv_track track = t->slices.track[row];
            sv_track child = sv_io_process(x->words, track, pid);
            sv_track parent = sv_dict_process_of(t->dict, track);
            if (!child || child == parent)
                continue;
            x->of[child].parent = parent;
            x->has_parents = true;
        }
    }
}

/* Instants of category process and calls. */
static void find_execs(struct roles *x)
{
    static const char *const names[] = {"exec", "execve", "execveat"};
    const struct sv_trace *t = x->report->trace;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        sv_str name = sv_dict_find_str(t->dict, names[i], strlen(names[i]));
        for (uint64_t row = 0; name && row < t->slices.n; row++)
            if (t->slices.name[row] == name)
                x->of[sv_dict_process_of(t->dict, t->slices.track[row])].has_exec = true;
    }
}

static void find_torch(struct roles *x)
{
    static const char library[] = "libtorch";
    const struct sv_trace *t = x->report->trace;
    for (uint64_t row = 0; row < t->slices.n; row++) {
        if (sv_io_op_at(x->words, row) != SV_OP_OPEN)
            continue;
        struct sv_text path = sv_io_path(x->words, row);
        if (path.len && memmem(path.bytes, path.len, library, sizeof library - 1) &&
            sv_io_arg(x->words, row, x->words->errno_, 0) == 0)
            x->of[sv_dict_process_of(t->dict, t->slices.track[row])].has_torch = true;
    }
}

static bool is_worker(const struct roles *x, sv_track process)
{
    const struct evidence *e = &x->of[process];
    return e->parent && sv_is_same_program(x->report->trace->dict, e->parent, process, e->has_exec);
}

static bool trains(const struct roles *x, sv_track process, bool by_parents)
{
    const struct evidence *e = &x->of[process];
    return e->gpu_rows || e->steps || (by_parents && (e->readers || e->has_torch));
}

/* Was it started by a trainer, at whatever distance? Where nobody's parent is known it may have
 * been. */
static bool is_of_trainer(const struct roles *x, sv_track process, bool by_parents)
{
    if (!x->has_parents)
        return true;
    sv_track up = x->of[process].parent;
    for (int depth = 0; up && depth < 16; depth++, up = x->of[up].parent)
        if (trains(x, up, by_parents))
            return true;
    return false;
}

static double share(const struct roles *x, const struct sv_io_group *g)
{
    uint64_t all = x->report->total.bytes_read;
    return all ? (double)g->bytes_read / (double)all : 0;
}

static bool is_reader(const struct roles *x, const struct sv_io_group *g)
{
    return share(x, g) >= 0.01 && g->bytes_read > g->bytes_written;
}

static void count_readers(struct roles *x)
{
    const struct sv_io_groups *groups = &x->report->by[SV_IO_PROCESS];
    for (size_t i = 0; i < groups->n; i++) {
        const struct sv_io_group *g = &groups->groups[i];
        sv_track parent = g->process ? x->of[g->process].parent : 0;
        if (parent && is_reader(x, g) && !x->of[g->process].gpu_rows && is_worker(x, g->process))
            x->of[parent].readers++;
    }
}

static void give_role(struct roles *x, struct sv_io_group *g, bool by_parents)
{
    const struct evidence *e = &x->of[g->process];
    const struct sv_dict *d = x->report->trace->dict;
    char parent[48] = "";
    if (e->parent)
        snprintf(parent, sizeof parent, ", started by %" PRId64, d->tracks[e->parent].pid);
    if (e->gpu_rows || e->steps) {
        g->role = SV_ROLE_TRAINER;
        char steps[48] = "";
        if (e->steps)
            snprintf(steps, sizeof steps, "%shas %u steps and phases", e->gpu_rows ? ", " : "",
                     e->steps);
        snprintf(g->why, sizeof g->why, "%s%s", e->gpu_rows ? "uses a GPU" : "", steps);
    } else if (by_parents && e->readers) {
        g->role = SV_ROLE_TRAINER;
        snprintf(g->why, sizeof g->why,
                 "started %u processes that read (no GPU, no steps in the trace)", e->readers);
    } else if (by_parents && e->has_torch && !is_of_trainer(x, g->process, by_parents)) {
        g->role = SV_ROLE_TRAINER;
        snprintf(g->why, sizeof g->why, "loads PyTorch (no GPU, no steps in the trace)");
    } else if (is_reader(x, g) && is_of_trainer(x, g->process, by_parents)) {
        g->role = SV_ROLE_LOADER;
        snprintf(g->why, sizeof g->why, "reads %.1f %% of all bytes, uses no GPU%s",
                 100 * share(x, g), parent);
    } else {
        g->role = SV_ROLE_OTHER;
        snprintf(g->why, sizeof g->why, "reads %.1f %% of all bytes%s", 100 * share(x, g), parent);
    }
}

/* Loaders need a trainer: where there is none, readers get no role. */
static void withdraw_without_trainer(struct sv_io_groups *groups)
{
    bool has_trainer = false;
    for (size_t i = 0; i < groups->n; i++)
        has_trainer |= groups->groups[i].role == SV_ROLE_TRAINER;
    for (size_t i = 0; i < groups->n && !has_trainer; i++) {
        struct sv_io_group *g = &groups->groups[i];
        if (g->role != SV_ROLE_NONE)
            snprintf(g->why, sizeof g->why, "no process of the trace appears to train");
        g->role = SV_ROLE_NONE;
    }
}

void sv_io_find_roles(struct sv_io_report *r, const struct sv_io_words *w)
{
    struct roles x = {.report = r, .words = w};
    struct sv_io_groups *groups = &r->by[SV_IO_PROCESS];
    x.of = sv_alloc(((size_t)r->trace->dict->n_tracks + 1) * sizeof *x.of);
    find_gpus(&x);
    find_steps(&x);
    find_parents(&x);
    find_execs(&x);
    count_readers(&x);
    bool has_user = x.has_steps;
    for (sv_track t = 1; t < r->trace->dict->n_tracks; t++)
        has_user |= x.of[t].gpu_rows > 0;
    if (!has_user)
        find_torch(&x);
    for (size_t i = 0; i < groups->n; i++) {
        struct sv_io_group *g = &groups->groups[i];
        if (!has_user && !x.has_parents)
            snprintf(g->why, sizeof g->why,
                     "the trace has no GPU use, no steps and no process starts");
        else if (g->process)
            give_role(&x, g, !has_user);
    }
    withdraw_without_trainer(groups);
    free(x.of);
}

/* ---- roles alone ---- */

/* The group of each process, made when it is first seen. */
struct census {
    struct sv_io_report *report;
    struct sv_io_words words;
    uint32_t *of; /* by process track: number of its group + 1 */
    size_t cap;
};

static struct sv_io_group *group_of(struct census *c, sv_track process)
{
    struct sv_io_groups *g = &c->report->by[SV_IO_PROCESS];
    if (!c->of[process]) {
        g->groups = sv_grow(g->groups, &c->cap, g->n + 1, sizeof *g->groups);
        g->groups[g->n] = (struct sv_io_group){.process = process};
        c->of[process] = (uint32_t)++g->n;
    }
    return &g->groups[c->of[process] - 1];
}

/* Rows of one track, counted beside those of others. */
struct count {
    sv_track track;
    uint32_t first, end;
    uint64_t calls, bytes_read, bytes_written;
    bool has_requests; /* of the block layer: each names its process */
};

struct counts {
    const struct sv_io_words *words;
    struct count *v;
    size_t n, cap;
};

static void list_rows(struct counts *c, const struct sv_trace *t)
{
    enum { ROWS = 1 << 17 };
    for (sv_track track = 1; track < t->n_tracks; track++) {
        uint32_t end = t->tracks[track].end;
        for (uint32_t first = t->tracks[track].first; first < end;) {
            uint32_t n = end - first < ROWS ? end - first : ROWS;
            SV_APPEND(c->v, c->n, c->cap) =
                (struct count){.track = track, .first = first, .end = first + n};
            first += n;
        }
    }
}

static void count_call(const struct sv_io_words *w, struct count *c, uint64_t row)
{
    enum sv_io_op op = sv_io_op_at(w, row);
    c->calls++;
    if (op != SV_OP_READ && op != SV_OP_WRITE && op != SV_OP_COPY)
        return;
    int64_t bytes = sv_io_arg(w, row, w->bytes, 0);
    if (bytes <= 0)
        return;
    if (op != SV_OP_WRITE && sv_io_is_file(w, row, w->path))
        c->bytes_read += (uint64_t)bytes;
    if (op != SV_OP_READ && sv_io_is_file(w, row, op == SV_OP_COPY ? w->path2 : w->path))
        c->bytes_written += (uint64_t)bytes;
}

static void count_rows(void *ctx, size_t i)
{
    const struct counts *all = ctx;
    struct count c = all->v[i];
    for (uint32_t row = c.first; row < c.end; row++) {
        enum sv_io_kind kind = sv_io_kind_at(all->words, row);
        if (kind == SV_IO_CALL)
            count_call(all->words, &c, row);
        c.has_requests = c.has_requests || kind == SV_IO_BLOCK;
    }
    all->v[i] = c;
}

/* The groups are in the order in which their processes come in the trace. */
static void make_groups(struct census *c, const struct count *n, sv_track process)
{
    const struct sv_io_words *w = &c->words;
    for (uint32_t row = n->first; n->has_requests && row < n->end; row++) {
        enum sv_io_kind kind = sv_io_kind_at(w, row);
        if (kind == SV_IO_CALL)
            group_of(c, process);
        else if (kind == SV_IO_BLOCK)
            group_of(c, sv_io_process(w, n->track, sv_io_arg(w, row, w->pid, -1)));
    }
    if (!n->calls)
        return;
    struct sv_io_group *const to[] = {group_of(c, process), &c->report->total};
    for (size_t i = 0; i < 2; i++) {
        to[i]->bytes_read += n->bytes_read;
        to[i]->bytes_written += n->bytes_written;
    }
    c->report->n_calls += n->calls;
}

static void take_census(struct census *c, const struct sv_trace *t)
{
    struct counts counts = {.words = &c->words};
    struct sv_workers *pool = t->slices.n < THREADS_FROM ? NULL : sv_workers_new(0);
    list_rows(&counts, t);
    sv_workers_each(pool, counts.n, count_rows, &counts);
    sv_workers_free(pool);
    for (size_t i = 0; i < counts.n; i++)
        make_groups(c, &counts.v[i], sv_dict_process_of(t->dict, counts.v[i].track));
    free(counts.v);
}

void sv_io_roles_make(struct sv_io_report *r, const struct sv_trace *t)
{
    struct census c = {.report = r};
    *r = (struct sv_io_report){.trace = t, .strings = sv_dict_new()};
    sv_io_words_init(&c.words, t);
    c.of = sv_alloc(((size_t)t->dict->n_tracks + 1) * sizeof *c.of);
    take_census(&c, t);
    sv_io_list_spans(r, &c.words);
    sv_io_find_roles(r, &c.words);
    sv_io_words_fini(&c.words);
    free(c.of);
}

const char *sv_io_role_name(enum sv_io_role role)
{
    static const char *const names[] = {"unknown", "trainer", "loader", "other"};
    return names[role];
}
