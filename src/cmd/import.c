/* stave import: a folder full of what other tools recorded about one run, on one time axis.
 *
 * Each file is recognised by its content; files of unknown formats are named and counted. Files with dates are
 * read first; those with only a time of day get the earliest of these dates. All come from one machine; the model relates
 * their clocks or refuses, as for merge. */
#include "cli/console.h"
#include "cmd/commands.h"
#include "files/found.h"
#include "files/join.h"
#include "model/merge.h"

#include "core/base/map.h"
#include "core/base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMED_MAX 10 /* skipped files that are named one by one */

struct import {
    struct sv_output_choice out;
    const char *tz, *log_tz, *date, *from;
    bool strict, assume;
    struct sv_words offsets;
};

static void recognise(struct sv_files *f, const char *from)
{
    for (size_t i = 0; i < f->n; i++) {
        struct sv_err ignored = {0};
        struct sv_input *in;
        f->items[i].format = from ? sv_format_named(from) : NULL;
        if (from || sv_input_open(f->items[i].path, &in, &ignored) < 0)
            continue;
        f->items[i].format = sv_format_probe(in, &ignored);
        sv_input_close(in);
    }
}

/* ---- files that say the same ---- */

static uint64_t kind_in_folder(const char *path, const char *format)
{
    const char *slash = strrchr(path, '/');
    return sv_hash_bytes(format, strlen(format),
                         sv_hash_bytes(path, slash ? (size_t)(slash - path) : 0, 0));
}

/* What a traced server writes besides its trace: name before a number, suffix, name of the trace. */
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

/* The server's trace beside one of its other files, NULL: there is none. `paths`: hash of a path → index + 1. */
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

/* A run's files that were made of another one beside them would show everything twice, some without its clock. Who names such a file
 * gets it. */
static void leave_out(struct sv_files *f)
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

/* ---- what is known about time ---- */

static int read_zones(const struct import *o, struct sv_zone **zone, struct sv_zone **log_zone,
                      struct sv_err *err)
{
    *zone = *log_zone = NULL;
    const char *tz = o->tz ? o->tz : o->assume ? "UTC" : NULL;
    int code = tz ? sv_zone_open(tz, zone, err) : 0;
    if (code >= 0 && o->log_tz)
        code = sv_zone_open(o->log_tz, log_zone, err);
    return code;
}

static int check_zone(const struct import *o, const struct sv_files *f, struct sv_err *err)
{
    for (size_t i = 0; !o->tz && i < f->n; i++) {
        const struct sv_format *format = f->items[i].format;
        if (!format || !format->needs_zone)
            continue;
        if (!o->assume)
            return sv_err_set(err, SV_EUSAGE, SV_NO_POS,
                              "%s (%s) has local times but no time zone: give --tz (UTC, -05:00, "
                              "America/Montreal), or --assume to take it as UTC",
                              f->items[i].path, format->name);
        sv_console_note("%s: local times are taken as UTC (--assume)", f->items[i].path);
    }
    return 0;
}

/* The earliest date in the files of the run. */
static void learn_date(struct sv_join *join, const struct sv_dict *dict)
{
    const struct sv_meta *meta = sv_dict_find_meta(dict, "local_date");
    int64_t days;
    if (!meta)
        return;
    struct sv_text text = sv_dict_text(dict, meta->value);
    if (!sv_civil_parse_date(text.bytes, text.len, &days))
        return;
    if (!join->read.has_date || days < join->read.date_days)
        join->read.date_days = days;
    join->read.has_date = true;
}

static int parse_date(const struct import *o, struct sv_join *join, struct sv_err *err)
{
    join->read.has_date = o->date != NULL;
    if (o->date && !sv_civil_parse_date(o->date, strlen(o->date), &join->read.date_days))
        return sv_err_set(err, SV_EUSAGE, SV_NO_POS, "--date: '%s' is not YYYY-MM-DD", o->date);
    return 0;
}

/* ---- reading ---- */

static int read_files(const struct import *o, struct sv_join *join, const struct sv_files *f,
                      struct sv_merge *merge, struct sv_err *err)
{
    struct sv_join dated = *join;
    int code = 0;
    for (int second = 0; second < 2; second++) {
        for (size_t i = 0; i < f->n && code >= 0; i++) {
            const struct sv_dict *dict;
            const struct sv_found *file = &f->items[i];
            if (!file->format || file->format->needs_date != (second == 1))
                continue;
            code = sv_join_add(join, merge, file->path, &dict, err);
            if (code >= 0 && second == 0 && !o->date)
                learn_date(&dated, dict);
        }
        join->read.has_date = dated.read.has_date;
        join->read.date_days = dated.read.date_days;
    }
    return code;
}

static void report_skipped(const struct sv_files *f)
{
    size_t skipped = 0;
    for (size_t i = 0; i < f->n; i++) {
        const struct sv_found *file = &f->items[i];
        if (file->format || ++skipped > NAMED_MAX)
            continue;
        if (file->covered_by)
            sv_console_note("%s: skipped, it appears to hold the same data as %s; give the file "
                            "itself to import it",
                            file->path, file->covered_by);
        else
            sv_console_note("%s: skipped, unknown format", file->path);
    }
    if (skipped > NAMED_MAX)
        sv_console_note("%zu more files were skipped", skipped - NAMED_MAX);
    if (f->too_many || f->too_deep)
        sv_console_note(
            "%zu files after the first %u and %zu folders deeper than %d levels were not read",
            f->too_many, SV_FILES_MAX, f->too_deep, SV_FOLDERS_MAX);
    sv_console_note("%zu files read, %zu skipped", f->n - skipped, skipped);
}

static int import_files(const struct import *o, struct sv_join *join, const struct sv_files *f,
                        struct sv_err *err)
{
    struct sv_words names = {0};
    for (size_t i = 0; i < f->n; i++)
        if (f->items[i].format)
            sv_words_add(&names, f->items[i].path);
    join->inputs = &names;
    int code = sv_join_check(join, err);
    if (code >= 0)
        code = sv_check_inputs(names.items, names.n, join->out.path, err);
    if (code >= 0 && names.n == 0)
        code = sv_err_set(err, SV_EINPUT, SV_NO_POS,
                          "nothing to import: none of %zu files has a known format", f->n);
    if (code >= 0)
        code = check_zone(o, f, err);
    if (code >= 0) {
        struct sv_merge_options options = {.same_host = true, .assume = o->assume};
        struct sv_merge *merge = sv_merge_new(&options);
        code = read_files(o, join, f, merge, err);
        if (code >= 0)
            code = sv_join_write(join, merge, err);
        else
            sv_merge_free(merge);
    }
    join->inputs = NULL;
    sv_words_free(&names);
    return code;
}

static int run(void *options, const struct sv_words *operands, struct sv_err *err)
{
    struct import *o = options;
    struct sv_join join = {.out = o->out,
                           .from = o->from,
                           .strict = o->strict,
                           .assume = o->assume,
                           .same_host = true,
                           .offsets = &o->offsets};
    struct sv_files files = {.output = o->out.path};
    struct sv_zone *zone = NULL, *log_zone = NULL;
    int code = sv_expect_operands(operands, 1, SIZE_MAX, "folder", err);
    if (code >= 0)
        code = sv_check_reader(o->from, err);
    if (code >= 0)
        code = parse_date(o, &join, err);
    if (code >= 0)
        code = read_zones(o, &zone, &log_zone, err);
    join.read.zone = zone;
    join.read.log_zone = log_zone;
    for (size_t i = 0; i < operands->n && code >= 0; i++)
        code = sv_files_walk(&files, operands->items[i], 0, err);
    if (code >= 0) {
        recognise(&files, o->from);
        leave_out(&files);
        code = import_files(o, &join, &files, err);
    }
    if (code >= 0)
        report_skipped(&files);
    sv_files_free(&files);
    sv_zone_free(zone);
    sv_zone_free(log_zone);
    sv_words_free(&o->offsets);
    return code;
}

static const struct sv_option options[] = {
    {0, "tz", "ZONE", SV_OPT_TEXT, offsetof(struct import, tz),
     "the time zone of local times (mpstat, pmon, iostat, strace -tt, the time alignment): UTC, "
     "-05:00 or a name such as America/Montreal, with daylight saving time",
     NULL},
    {0, "log-tz", "ZONE", SV_OPT_TEXT, offsetof(struct import, log_tz),
     "the time zone of DLIO's log (default UTC)", NULL},
    {0, "date", "DAY", SV_OPT_TEXT, offsetof(struct import, date),
     "YYYY-MM-DD, the first day of files without a date (default: the earliest day in the other "
     "files)",
     NULL},
    {0, "offset", "FILE=TIME", SV_OPT_LIST, offsetof(struct import, offsets),
     "shift FILE by TIME, as for merge; may be given several times", NULL},
    {0, "assume", NULL, SV_OPT_FLAG, offsetof(struct import, assume),
     "without --tz take local times as UTC, and use times that cannot be related unchanged", NULL},
    SV_OUTPUT_OPTIONS(struct import),
    SV_INPUT_OPTIONS(struct import),
    {0},
};

static const struct sv_example examples[] = {
    {"stave import exp_20260720153000 --tz America/Montreal -o run.pftrace",
     "everything that was recorded about a run"},
    {"stave import trace_read.out trace_time_align.out cpu.out --tz UTC -o run.pftrace",
     "some of its files"},
    {"stave import strace.out --tz Europe/Berlin --date 2026-07-20 -o calls.pftrace",
     "strace -tt prints neither day nor zone"},
    {0},
};

const struct sv_command sv_command_import = {
    .name = "import",
    .operands = "FOLDER|FILE… -o OUT",
    .summary = "import the recordings of other tools onto one time axis",
    .description =
        "Reads all files of a folder whose format is known, recognised by content: outputs of the "
        "bpftrace scripts for file and block I/O, their time alignment trace, mpstat, nvidia-smi "
        "pmon, iostat -o JSON, strace -f -ttt -T, MLPerf's :::MLLOG lines, DLIO's log, and traces "
        "of any format that convert reads. All come from one machine. Files that repeat others of "
        "the same folder are skipped: the output of starpu_fxt_tool if the StarPU trace "
        "(prof_file_*) is there, dag.dot, which has no times, if any of these files is there, and "
        "a traced server's JSON and CSV if its .pftrace is there.\n\n"
        "bpftrace counts nanoseconds since boot. The time alignment trace relates them to the wall "
        "clock: by the closest pair of lines around a change of the second; half the distance of "
        "the pair and a timer tick are the uncertainty, and several pairs give the drift. If a "
        "clock cannot be related, the import is refused, unless --offset gives the relation or "
        "--assume uses times unchanged.\n\n"
        "Files that are skipped, lines that are damaged (with the byte position of the first) and "
        "unrecognised lines are reported and counted; --strict makes damage an error.",
    .options = options,
    .examples = examples,
    .lists = sv_format_lists,
    .options_size = sizeof(struct import),
    .run = run,
};
