/* The report on waits: reading of the same files again, which is what an epoch is without markers.
 * Cold against warm. Called by why/wait.c, once.
 *
 * The n-th time that a data file is opened is pass n; reads and page-cache misses belong to the
 * pass of the last opening before them. Two walks over the rows: the first one lists openings, the
 * second one adds up reads. Each is shared among threads; sums do not depend on how. Most calls use
 * one of few files, and the store has each path once or a few times, so a path is looked at once
 * per address. */
#include "why/wait.h"

#include "core/base/map.h"
#include "core/base/mem.h"
#include "core/base/sat.h"
#include "core/base/search.h"
#include "subjects/io/words.h"
#include "threads/workers.h"

#include <stdlib.h>
#include <string.h>

#define THREADS_FROM ((uint64_t)1 << 18) /* slices */

struct opening {
    int64_t ts_ns;
    sv_str file;
};

/* What one thread does. */
struct share {
    size_t from, to;       /* rows */
    struct opening *found; /* their files are numbers of `paths` */
    size_t n, cap;
    struct sv_text *paths; /* of data files, by number; 0: none */
    size_t n_paths, paths_cap;
    struct sv_map by_address; /* of a path: first its number here, then the file */
    sv_str file;              /* of the last read, whose pass is that from … */
    int64_t from_ns, to_ns;   /* … to its next opening; empty: none */
    struct sv_wait_pass *pass;
    struct sv_wait_pass passes[SV_WAIT_PASSES];
    uint64_t small_reads, file_reads;
    int64_t small_reads_ns;
};

struct finder {
    struct sv_wait_report *r;
    struct share *shares;
    size_t n_shares;
    struct sv_dict *files;
    struct opening *openings; /* by file, then time */
    size_t n;
    size_t *first;           /* by file: its first opening; one more at the end */
    bool *is_open, *is_read; /* by string: calls */
    sv_str cat_cache, bytes, error;
};

static bool *names(const struct sv_dict *d, const char *const *words)
{
    bool *is = sv_alloc((size_t)d->n_strings + 1);
    for (; *words; words++) {
        sv_str s = sv_dict_find_str(d, *words, strlen(*words));
        if (s)
            is[s] = true;
    }
    return is;
}

static uint64_t address_of(struct sv_text path)
{
    return (uint64_t)(uintptr_t)path.bytes ^ (uint64_t)path.len << 48;
}

/* ---- openings ---- */

/* An open that failed opened nothing. */
static bool failed(const struct sv_trace *t, uint64_t row, sv_str key)
{
    struct sv_arg a;
    return key && sv_trace_arg(t, t->slices.args[row], key, &a);
}

static void list_openings(void *ctx, size_t number)
{
    struct finder *f = ctx;
    struct share *s = &f->shares[number];
    const struct sv_trace *t = f->r->trace;
    for (size_t row = s->from; row < s->to; row++) {
        bool is_new;
        if (!f->is_open[t->slices.name[row]] || !sv_state_is_call(&f->r->ledger.states, row))
            continue;
        struct sv_text path = sv_call_path(&f->r->ledger.states, (uint32_t)row);
        uint64_t *file = sv_map_add(&s->by_address, address_of(path), &is_new);
        if (is_new && sv_is_data_file(path)) {
            s->paths = sv_grow(s->paths, &s->paths_cap, s->n_paths + 1, sizeof *s->paths);
            s->paths[s->n_paths++] = path;
            *file = s->n_paths;
        }
        if (!*file || failed(t, row, f->error))
            continue;
        s->found = sv_grow(s->found, &s->cap, s->n + 1, sizeof *s->found);
        s->found[s->n++] = (struct opening){t->slices.ts_ns[row], (sv_str)*file};
    }
    sv_map_clear(&s->by_address);
}

static int by_time(const void *a, const void *b)
{
    const struct opening *x = a, *y = b;
    return (x->ts_ns > y->ts_ns) - (x->ts_ns < y->ts_ns);
}

/* The numbers of files become the same for all shares. */
static void number_files(struct finder *f)
{
    for (size_t i = 0; i < f->n_shares; i++) {
        struct share *s = &f->shares[i];
        sv_str *files = sv_alloc((s->n_paths + 1) * sizeof *files);
        for (size_t k = 0; k < s->n_paths; k++)
            files[k + 1] = sv_dict_str(f->files, s->paths[k].bytes, s->paths[k].len);
        for (size_t k = 0; k < s->n; k++)
            s->found[k].file = files[s->found[k].file];
        f->n += s->n;
        free(files);
    }
}

/* Puts the openings of each file together, in the order of time. */
static void sort_openings(struct finder *f)
{
    size_t n_files = f->files->n_strings; /* and 0, which is none */
    f->first = sv_alloc((n_files + 1) * sizeof *f->first);
    f->openings = sv_alloc((f->n + 1) * sizeof *f->openings);
    size_t *next = sv_alloc((n_files + 1) * sizeof *next);
    for (size_t i = 0; i < f->n_shares; i++)
        for (size_t k = 0; k < f->shares[i].n; k++)
            f->first[f->shares[i].found[k].file + 1]++;
    for (size_t file = 1; file <= n_files; file++)
        f->first[file] += f->first[file - 1];
    memcpy(next, f->first, (n_files + 1) * sizeof *next);
    for (size_t i = 0; i < f->n_shares; i++)
        for (size_t k = 0; k < f->shares[i].n; k++)
            f->openings[next[f->shares[i].found[k].file]++] = f->shares[i].found[k];
    for (size_t file = 1; file < n_files; file++)
        if (f->first[file + 1] - f->first[file] > 1)
            qsort(f->openings + f->first[file], f->first[file + 1] - f->first[file],
                  sizeof *f->openings, by_time);
    free(next);
}

/* ---- reads ---- */

static sv_str file_of(const struct finder *f, struct share *s, struct sv_text path)
{
    bool is_new;
    uint64_t *file = sv_map_add(&s->by_address, address_of(path), &is_new);
    if (is_new)
        *file = sv_dict_find_str(f->files, path.bytes, path.len);
    return (sv_str)*file;
}

static struct sv_wait_pass *pass_at(const struct finder *f, struct share *s, struct sv_text path,
                                    int64_t ts_ns)
{
    sv_str file = file_of(f, s, path);
    if (!file)
        return NULL;
    if (file == s->file && ts_ns >= s->from_ns && ts_ns < s->to_ns)
        return s->pass;
    size_t first = f->first[file], end = f->first[file + 1], at;
    SV_SEARCH(at, middle, first, end, f->openings[middle].ts_ns <= ts_ns);
    size_t pass = at - first - 1;
    s->file = file;
    s->from_ns = at > first ? f->openings[at - 1].ts_ns : INT64_MIN;
    s->to_ns = at < end ? f->openings[at].ts_ns : INT64_MAX;
    s->pass = at > first ? &s->passes[pass < SV_WAIT_PASSES ? pass : SV_WAIT_PASSES - 1] : NULL;
    return s->pass;
}

static uint64_t bytes_of(const struct finder *f, uint64_t row)
{
    struct sv_arg a;
    bool found = f->bytes && sv_trace_arg(f->r->trace, f->r->trace->slices.args[row], f->bytes, &a);
    return found && a.type == SV_ARG_INT && a.i > 0 ? (uint64_t)a.i : 0;
}

static void add_reads(void *ctx, size_t number)
{
    struct finder *f = ctx;
    struct share *s = &f->shares[number];
    const struct sv_trace *t = f->r->trace;
    for (size_t row = s->from; row < s->to; row++) {
        bool is_miss = f->cat_cache && t->slices.cat[row] == f->cat_cache;
        bool is_read = f->is_read[t->slices.name[row]] &&
                       sv_state_is_call(&f->r->ledger.states, row);
        if (!is_miss && !is_read)
            continue;
        struct sv_text path = sv_call_path(&f->r->ledger.states, (uint32_t)row);
        struct sv_wait_pass *p = path.len ? pass_at(f, s, path, t->slices.ts_ns[row]) : NULL;
        if (!p)
            continue;
        uint64_t bytes = bytes_of(f, row);
        if (is_miss) {
            p->missed_bytes += bytes;
            continue;
        }
        p->bytes += bytes;
        int64_t ns = sv_sat_sub(sv_trace_end_ns(t, row), t->slices.ts_ns[row]);
        p->read_ns = sv_sat_add(p->read_ns, ns);
        s->file_reads += bytes > 0;
        if (bytes > 0 && bytes < SV_WAIT_SMALL) {
            s->small_reads++;
            s->small_reads_ns = sv_sat_add(s->small_reads_ns, ns);
        }
    }
}

static void add_share(struct sv_wait_report *r, const struct share *s)
{
    for (size_t i = 0; i < SV_WAIT_PASSES; i++) {
        r->passes[i].bytes += s->passes[i].bytes;
        r->passes[i].missed_bytes += s->passes[i].missed_bytes;
        r->passes[i].read_ns = sv_sat_add(r->passes[i].read_ns, s->passes[i].read_ns);
    }
    r->file_reads += s->file_reads;
    r->small_reads += s->small_reads;
    r->small_reads_ns = sv_sat_add(r->small_reads_ns, s->small_reads_ns);
}

static void count_files(struct finder *f)
{
    size_t number = 0;
    for (size_t i = 0; i < f->n; i++) {
        number = i && f->openings[i].file == f->openings[i - 1].file ? number + 1 : 0;
        size_t pass = number < SV_WAIT_PASSES ? number : SV_WAIT_PASSES - 1;
        struct sv_wait_pass *p = &f->r->passes[pass];
        int64_t ts = f->openings[i].ts_ns;
        p->from_ns = !p->files || ts < p->from_ns ? ts : p->from_ns;
        p->to_ns = !p->files || ts > p->to_ns ? ts : p->to_ns;
        p->files++;
        f->r->n_passes = pass + 1 > f->r->n_passes ? pass + 1 : f->r->n_passes;
    }
}

void sv_wait_find_passes(struct sv_wait_report *r)
{
    static const char *const opens[] = {"open", "openat", "openat2", NULL};
    static const char *const reads[] = {"read", "pread64", "readv", "preadv", "preadv2", NULL};
    struct finder f = {
        .r = r,
        .files = sv_dict_new(),
        .is_open = names(r->trace->dict, opens),
        .is_read = names(r->trace->dict, reads),
        .cat_cache = sv_dict_find_str(r->trace->dict, SV_CAT_PAGE_CACHE, strlen(SV_CAT_PAGE_CACHE)),
        .bytes = sv_dict_find_str(r->trace->dict, "bytes", 5),
        .error = sv_dict_find_str(r->trace->dict, "errno", 5)};
    struct sv_workers *w = r->trace->slices.n < THREADS_FROM ? NULL : sv_workers_new(0);
    f.n_shares = sv_workers_count(w);
    f.shares = sv_alloc(f.n_shares * sizeof *f.shares);
    for (size_t i = 0; i < f.n_shares; i++)
        sv_workers_share(r->trace->slices.n, i, f.n_shares, &f.shares[i].from, &f.shares[i].to);
    sv_workers_each(w, f.n_shares, list_openings, &f);
    number_files(&f);
    sort_openings(&f);
    if (f.n) {
        sv_workers_each(w, f.n_shares, add_reads, &f);
        for (size_t i = 0; i < f.n_shares; i++)
            add_share(r, &f.shares[i]);
        count_files(&f);
    }
    sv_workers_free(w);
    for (size_t i = 0; i < f.n_shares; i++) {
        free(f.shares[i].found);
        free(f.shares[i].paths);
        sv_map_fini(&f.shares[i].by_address);
    }
    free(f.shares);
    free(f.openings);
    free(f.first);
    free(f.is_open);
    free(f.is_read);
    sv_dict_free(f.files);
}
