/* Files of one run that say the same; see covered.h. Called by import.
 *
 * Two rules. A format may name others that say the same and more, for the same folder. And files of
 * line-oriented logs are about something (reads, CPUs, …) at some distance from the tool that
 * measured it: what a pipeline has made of a file is left out beside it. */
#include "files/covered.h"

#include "core/base/map.h"

#include <stdio.h>
#include <string.h>

/* ---- formats that say the same ---- */

static uint64_t kind_in_folder(const char *path, const char *format)
{
    const char *slash = strrchr(path, '/');
    return sv_hash_bytes(format, strlen(format),
                         sv_hash_bytes(path, slash ? (size_t)(slash - path) : 0, 0));
}

/* What a traced server writes besides its trace: name before a number, suffix, name of the
 * trace. */
static const struct {
    const char *stem, *suffix, *trace;
} server_files[] = {{"batching_trace", ".json", "batching_trace"},
                    {"batching_trace_summary", ".csv", "batching_trace"},
                    {"perfetto_trace", ".json", "trace"},
                    {"trace", ".csv", "trace"}};

/* Is it "STEM.json" or "STEM.3.json"? Then *middle is the part in between. */
static bool is_named(const char *name, const char *stem, const char *suffix, const char **middle,
                     size_t *len)
{
    size_t all = strlen(name), n_stem = strlen(stem), n_suffix = strlen(suffix);
    if (all < n_stem + n_suffix || memcmp(name, stem, n_stem) != 0 ||
        strcmp(name + all - n_suffix, suffix) != 0)
        return false;
    *middle = name + n_stem;
    *len = all - n_stem - n_suffix;
    return *len == 0 || (**middle == '.' && strspn(*middle + 1, "0123456789") == *len - 1);
}

/* The server's trace beside one of its other files, NULL: there is none. `paths`: hash of a path →
 * index + 1. */
static const char *trace_beside(const struct sv_files *f, const struct sv_map *paths,
                                const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path, *middle;
    size_t len, folder = (size_t)(name - path);
    for (size_t i = 0; i < sizeof server_files / sizeof *server_files; i++) {
        char trace[4096];
        if (!is_named(name, server_files[i].stem, server_files[i].suffix, &middle, &len))
            continue;
        int n = snprintf(trace, sizeof trace, "%.*s%s%.*s.pftrace", (int)folder, path,
                         server_files[i].trace, (int)len, middle);
        if (n < 0 || (size_t)n >= sizeof trace)
            continue;
        const uint64_t *at = sv_map_find(paths, sv_hash_bytes(trace, (size_t)n, 0));
        if (at && strcmp(f->items[*at - 1].format->name, "perfetto") == 0)
            return f->items[*at - 1].path;
    }
    return NULL;
}

/* A run's files that were made of another one beside them would show everything twice, some without
 * its clock. Who names such a file gets it. */
static void leave_out_twins(struct sv_files *f)
{
    struct sv_map kinds = {0}, paths = {0}; /* folder and format, path → index + 1 */
    bool is_new;
    for (size_t i = 0; i < f->n; i++) {
        const struct sv_found *file = &f->items[i];
        if (!file->format)
            continue;
        uint64_t *at = sv_map_add(&kinds, kind_in_folder(file->path, file->format->name), &is_new);
        *at = is_new ? i + 1 : *at;
        *sv_map_add(&paths, sv_hash_bytes(file->path, strlen(file->path), 0), &is_new) = i + 1;
    }
    for (size_t i = 0; i < f->n; i++) {
        struct sv_found *file = &f->items[i];
        if (!file->format || !file->was_found)
            continue;
        file->covered_by = trace_beside(f, &paths, file->path);
        for (const char *const *by = file->format->covered_by; by && *by && !file->covered_by;
             by++) {
            const uint64_t *at = sv_map_find(&kinds, kind_in_folder(file->path, *by));
            file->covered_by = at ? f->items[*at - 1].path : NULL;
        }
    }
    for (size_t i = 0; i < f->n; i++)
        if (f->items[i].covered_by)
            f->items[i].format = NULL;
    sv_map_fini(&kinds);
    sv_map_fini(&paths);
}

/* ---- what was made of another file ---- */

/* Is `path` in or below the folder of `of`, or the one above that? */
static bool is_of_one_run(const char *of, const char *path)
{
    size_t len = strlen(of);
    for (int up = 0; up < 2; up++) {
        while (len > 0 && of[len - 1] != '/')
            len--;
        if (len == 0)
            return up == 0 && !strchr(path, '/'); /* both in the current folder */
        if (strncmp(of, path, len) == 0)
            return true;
        len--;
    }
    return false;
}

static bool is_raw_bpftrace(const struct sv_found *file)
{
    return file->format && strcmp(file->format->name, "bpftrace") == 0;
}

/* Intervals that were arranged twice, each time in another folder: the first one counts. */
static bool is_arranged_before(const struct sv_found *by, const struct sv_found *file)
{
    const char *a = strrchr(by->path, '/'), *b = strrchr(file->path, '/');
    size_t n = a ? (size_t)(a - by->path) : 0, m = b ? (size_t)(b - file->path) : 0;
    return by->holds.distance == SV_DERIVED && file->holds.distance == SV_DERIVED &&
           (n != m || memcmp(by->path, file->path, n) != 0) && strcmp(by->path, file->path) < 0;
}

/* Does `by` hold that subject of `file` at a smaller distance? bpftrace's own lines are of no use
 * where nothing relates their clock. */
static bool is_covered(const struct sv_found *file, const struct sv_found *by, unsigned subject,
                       bool has_alignment)
{
    bool is_unrelated = is_raw_bpftrace(file) && !has_alignment;
    if (!by->format || by == file || !(by->holds.subjects & subject))
        return false;
    if (is_raw_bpftrace(by) && !has_alignment)
        return false;
    if (!is_unrelated && by->holds.distance >= file->holds.distance &&
        !is_arranged_before(by, file))
        return false;
    bool is_same_process = is_unrelated || by->holds.pid < 0 || by->holds.pid == file->holds.pid;
    return is_same_process && is_of_one_run(by->path, file->path);
}

/* Which of its subjects other files hold; *cover is the file that holds the first one. */
static unsigned find_cover(const struct sv_files *f, const struct sv_found *file,
                           bool has_alignment, const char **cover)
{
    unsigned covered = 0;
    for (unsigned subject = 1; subject <= SV_ABOUT_PHASES; subject *= 2) {
        if (!(file->holds.subjects & subject))
            continue;
        for (size_t i = 0; i < f->n && !(covered & subject); i++)
            if (is_covered(file, &f->items[i], subject, has_alignment)) {
                *cover = covered ? *cover : f->items[i].path;
                covered |= subject;
            }
    }
    return covered;
}

static void leave_out_derived(struct sv_files *f)
{
    bool has_alignment = false;
    for (size_t i = 0; i < f->n; i++)
        has_alignment |= f->items[i].format && strcmp(f->items[i].format->name, "time-align") == 0;
    for (size_t i = 0; i < f->n; i++) {
        struct sv_found *file = &f->items[i];
        const char *cover = NULL;
        if (!file->format || !file->was_found || file->has_columns)
            continue;
        file->covered_subjects = find_cover(f, file, has_alignment, &cover);
        if (cover && file->covered_subjects == file->holds.subjects)
            file->covered_by = cover;
    }
    for (size_t i = 0; i < f->n; i++)
        if (f->items[i].covered_by)
            f->items[i].format = NULL;
}

void sv_files_leave_out(struct sv_files *f)
{
    leave_out_twins(f);
    leave_out_derived(f);
}
