/* The I/O report: how files are used, in words with figures. Called at the end of the report.
 *
 * A verdict is about files of the run. Several may hold at once; none is given where there is too
 * little to judge by. */
#include "subjects/io/figures.h"

#include "core/base/mem.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CALLS_LEAST = 100,
    SMALL_FILE = 256 * 1024,
    SMALL_TRANSFER = 16 * 1024,
    MAPPED_LEAST = 1 << 20
};

__attribute__((format(printf, 3, 4))) static void judge(struct sv_io_report *r, const char *name,
                                                        const char *fmt, ...)
{
    va_list args;
    if (r->n_verdicts == SV_IO_VERDICTS)
        return;
    struct sv_io_verdict *v = &r->verdicts[r->n_verdicts++];
    v->name = name;
    va_start(args, fmt);
    vsnprintf(v->figures, sizeof v->figures, fmt, args);
    va_end(args);
}

static int by_size(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Files that were read, and what the one in the middle gave. */
static uint64_t median_file(const struct sv_io_report *r, uint64_t *n)
{
    const struct sv_io_groups *g = &r->by[SV_IO_FILE];
    uint64_t *sizes = sv_alloc((g->n + 1) * sizeof *sizes);
    *n = 0;
    for (size_t i = 0; i < g->n; i++)
        if (g->groups[i].bytes_read && g->groups[i].opens)
            sizes[(*n)++] = g->groups[i].bytes_read / g->groups[i].opens;
    if (*n)
        qsort(sizes, (size_t)*n, sizeof *sizes, by_size);
    uint64_t median = *n ? sizes[*n / 2] : 0;
    free(sizes);
    return median;
}

static void judge_names(struct sv_io_report *r)
{
    const struct sv_io_group *t = &r->total;
    uint64_t n, median = median_file(r, &n), names = t->opens + t->others;
    if (names >= CALLS_LEAST && r->names_ns > r->transfer_ns)
        judge(r, "metadata-bound",
              "%" PRIu64 " opens, stats and closes take %.1f ms, %" PRIu64 " transfers %.1f ms",
              names, (double)r->names_ns / 1e6, t->reads + t->writes, (double)r->transfer_ns / 1e6);
    if (n >= CALLS_LEAST && median < SMALL_FILE)
        judge(r, "many small files", "%" PRIu64 " files are read, %.1f KiB per opening (median)", n,
              (double)median / 1024);
}

static void judge_transfers(struct sv_io_report *r)
{
    const struct sv_io_group *t = &r->total;
    uint64_t compared = t->sequential + t->random, small = 0, all = 0;
    double share = sv_io_sequential(t);
    for (unsigned i = 1; i < SV_IO_SIZES; i++) {
        all += t->sizes[i];
        small += (UINT64_C(1) << i) <= SMALL_TRANSFER ? t->sizes[i] : 0;
    }
    if (compared >= CALLS_LEAST / 5 && (share >= 0.8 || share <= 0.5))
        judge(r, share >= 0.8 ? "sequential" : "random",
              "%.0f %% of %" PRIu64 " transfers continue where the one before ended", share * 100,
              compared);
    if (all >= CALLS_LEAST && small * 10 > all * 8)
        judge(r, "small transfers", "%" PRIu64 " of %" PRIu64 " move less than %d KiB", small, all,
              SMALL_TRANSFER / 1024);
}

bool sv_io_is_code(struct sv_text path)
{
    return memmem(path.bytes, path.len, ".so", 3) != NULL || path.len < 5 ||
           memcmp(path.bytes, "/usr/", 5) == 0 || memcmp(path.bytes, "/lib", 4) == 0 ||
           memcmp(path.bytes, "/etc/", 5) == 0;
}

bool sv_io_is_data_fault(const struct sv_io_words *w, uint64_t row)
{
    if (sv_io_kind_at(w, row) != SV_IO_FAULT)
        return false;
    struct sv_text path = sv_io_path(w, row);
    return sv_file_kind_of(path) == SV_FILE_REGULAR && !sv_io_is_code(path);
}

/* Mappings of files that are no code, and what was read through them: where it is most of what was
 * read from a file it was loaded by mapping. */
static void judge_maps(struct sv_io_report *r, const struct sv_io_words *w)
{
    const struct sv_slices *s = &r->trace->slices;
    const struct sv_io_group *t = &r->total;
    const struct sv_io_groups *files = &r->by[SV_IO_FILE];
    sv_str map = sv_dict_find_str(r->trace->dict, "mmap", 4);
    uint64_t maps = 0, mostly = 0;
    for (uint64_t row = 0; map && t->faults && row < s->n; row++) {
        if (s->name[row] != map || sv_io_kind_at(w, row) != SV_IO_CALL)
            continue;
        struct sv_text path = sv_io_path(w, row);
        maps += sv_file_kind_of(path) == SV_FILE_REGULAR && !sv_io_is_code(path);
    }
    for (size_t i = 0; i < files->n; i++)
        mostly += files->groups[i].fault_bytes > files->groups[i].bytes_read;
    if (maps && (t->faults >= CALLS_LEAST || t->fault_bytes >= MAPPED_LEAST))
        judge(r, "mapped",
              "%" PRIu64 " mappings of data files, %" PRIu64
              " page faults on them map %.1f MiB and wait %.1f ms; %" PRIu64
              " files are read mostly so",
              maps, t->faults, (double)t->fault_bytes / 1048576, (double)t->fault_ns / 1e6, mostly);
}

void sv_io_judge(struct sv_io_report *r, const struct sv_io_words *w)
{
    judge_names(r);
    judge_transfers(r);
    judge_maps(r, w);
}
