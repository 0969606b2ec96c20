/* stave import: a folder full of what other tools recorded about one run, on one time axis.
 *
 * Each file is recognised by its content; files of unknown formats are named and counted. Files
 * with dates are read first; those with only a time of day get the earliest of these dates. All
 * come from one machine; the model relates their clocks or refuses, as for merge. */
#include "cli/console.h"
#include "clocks/merge.h"
#include "cmd/commands.h"
#include "files/archive.h"
#include "files/covered.h"
#include "files/join.h"
#include "formats/tar.h"

#include "core/base/mem.h"
#include "core/stream/batch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMED_MAX 10 /* skipped files that are named one by one */

/* Columns that a reader assumed, and for how many files. */
struct assumed {
    char columns[240];
    size_t n;
};

struct import {
    struct assumed assumed[16];
    size_t n_assumed;
    struct sv_output_choice out;
    const char *tz, *log_tz, *date, *from;
    bool strict, assume;
    const char *columns;
    unsigned columns_need; /* enum sv_needs */
    struct sv_words offsets;
};

/* Is what the content suggests weaker than the user's word? Lines without a header are, and for a
 * file that the user named all but a tool's own header. */
static bool yields(const struct sv_found *file, const struct sv_input *in)
{
    return !file->format || file->format->probe(in->data, in->len) < (file->was_found ? 82 : 90);
}

static void recognise_file(struct sv_found *file, const struct import *o, struct sv_input *in)
{
    struct sv_err ignored = {0};
    if (sv_input_need(in, SV_TAR_BLOCK, &ignored) > 0 && sv_tar_is(in->data, in->len)) {
        sv_console_note("%s: skipped, it is an archive: give it to import by its name", file->path);
        file->is_reported = true;
        file->format = NULL;
        return;
    }
    if (!o->from)
        file->format = sv_format_probe(in, &ignored);
    if (o->columns && !o->from && yields(file, in) && sv_columns_fit(o->columns, in))
        file->format = &sv_columns_format;
    file->has_columns = o->columns && file->format == &sv_columns_format &&
                        (o->from || sv_columns_fit(o->columns, in));
    if (!file->format)
        return;
    file->needs = file->has_columns ? o->columns_need : sv_format_needs(file->format, in);
    file->holds = sv_format_holds(file->format, in);
}

static void recognise(struct sv_files *f, const struct import *o)
{
    for (size_t i = 0; i < f->n; i++) {
        struct sv_err err = {0};
        struct sv_input *in;
        struct sv_found *file = &f->items[i];
        file->format = o->from ? sv_format_named(o->from) : NULL;
        if (sv_found_open(file, &in, &err) < 0) {
            sv_console_note("%s: skipped, it cannot be read: %s", file->path, err.msg);
            file->is_reported = true;
            file->format = NULL;
            continue;
        }
        recognise_file(file, o, in);
        sv_input_close(in);
    }
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
        if (!format || !(f->items[i].needs & SV_NEEDS_ZONE))
            continue;
        if (!o->assume)
            return sv_error(err, SV_EUSAGE,
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
        return sv_error(err, SV_EUSAGE, "--date: '%s' is not YYYY-MM-DD", o->date);
    return 0;
}

/* ---- reading ---- */

/* For more files than are reported one by one. */
static void count_assumed(struct import *o, const struct sv_dict *dict)
{
    const struct sv_meta *meta = sv_dict_find_meta(dict, "assumed_columns");
    size_t i = 0;
    if (!meta)
        return;
    const char *columns = sv_dict_text(dict, meta->value).bytes;
    while (i < o->n_assumed && strcmp(o->assumed[i].columns, columns) != 0)
        i++;
    if (i == sizeof o->assumed / sizeof *o->assumed)
        return;
    snprintf(o->assumed[i].columns, sizeof o->assumed[i].columns, "%s", columns);
    o->assumed[i].n++;
    o->n_assumed = i < o->n_assumed ? o->n_assumed : i + 1;
}

static void report_assumed(const struct import *o)
{
    for (size_t i = 0; i < o->n_assumed; i++)
        sv_console_note("%zu files: columns assumed by the look of the lines: '%s'; --columns "
                        "gives others",
                        o->assumed[i].n, o->assumed[i].columns);
}

/* A file that cannot be read is named and left out; only --strict and what concerns all files ends
 * the import. */
static int forgive(const struct import *o, struct sv_found *file, int code, struct sv_err *err)
{
    bool is_of_file = code == SV_EINPUT || code == SV_EFORMAT || code == SV_ELIMIT;
    if (o->strict || !is_of_file)
        return code;
    char line[sizeof err->msg + 16];
    snprintf(line, sizeof line, "%s; skipped", err->msg);
    sv_console_error(NULL, SV_NO_POS, line);
    sv_err_clear(err);
    file->format = NULL;
    file->is_reported = true;
    return 0;
}

static int read_file(const struct import *o, const struct sv_join *join, struct sv_found *file,
                     struct sv_merge *merge, const struct sv_dict **dict, struct sv_err *err)
{
    struct sv_join one = *join;
    one.from = file->format->name;
    one.file = file;
    one.read.columns = file->has_columns ? o->columns : NULL;
    one.read.skip_subjects = file->covered_subjects;
    *dict = NULL;
    int code = sv_join_add(&one, merge, file->path, dict, err);
    return code < 0 ? forgive(o, file, code, err) : 0;
}

/* Names of processes; there are no events. */
static int read_roles(const struct import *o, const struct sv_join *join, struct sv_found *file,
                      struct sv_dict *roles, struct sv_err *err)
{
    struct sv_opened in;
    struct sv_batch *batch = sv_alloc(sizeof *batch);
    struct sv_read_options read = join->read;
    read.roles = NULL;
    struct sv_input *given = NULL;
    int code = sv_found_open(file, &given, err);
    if (code < 0) {
        sv_err_in_file(err, file->path);
        free(batch);
        return forgive(o, file, err->code = SV_EINPUT, err);
    }
    code = sv_open_input_in(file->path, given, file->format->name, &read, roles, &in, err);
    sv_batch_init(batch);
    while (code >= 0 && (code = in.source->next(in.source, batch, err)) > 0)
        sv_batch_reset(batch);
    sv_batch_fini(batch);
    free(batch);
    sv_console_findings(file->path, &in.report);
    sv_opened_close(&in);
    return code < 0 ? forgive(o, file, code, err) : 0;
}

/* First the names of processes, then the files with dates, then those that need one. */
enum turn { ROLES, DATED, UNDATED, N_TURNS };

static enum turn turn_of(const struct sv_found *file)
{
    if (file->format == &sv_roles_format)
        return ROLES;
    return file->needs & SV_NEEDS_DATE ? UNDATED : DATED;
}

static int read_files(struct import *o, struct sv_join *join, struct sv_files *f,
                      struct sv_merge *merge, struct sv_dict *roles, struct sv_err *err)
{
    struct sv_join dated = *join;
    int code = 0;
    join->read.roles = roles;
    for (int turn = 0; turn < N_TURNS; turn++) {
        for (size_t i = 0; i < f->n && code >= 0; i++) {
            const struct sv_dict *dict;
            struct sv_found *file = &f->items[i];
            if (!file->format || (int)turn_of(file) != turn)
                continue;
            if (turn == ROLES) {
                code = read_roles(o, join, file, roles, err);
                continue;
            }
            code = read_file(o, join, file, merge, &dict, err);
            if (dict && join->inputs->n > SV_JOIN_NOTED_MAX)
                count_assumed(o, dict);
            if (dict && turn == DATED && !o->date)
                learn_date(&dated, dict);
        }
        join->read.has_date = dated.read.has_date;
        join->read.date_days = dated.read.date_days;
    }
    return code;
}

/* Files with events. */
static size_t count_known(const struct sv_files *f)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        n += f->items[i].format && f->items[i].format != &sv_roles_format;
    return n;
}

static void report_skipped(const struct sv_files *f)
{
    size_t skipped = 0;
    for (size_t i = 0; i < f->n; i++) {
        const struct sv_found *file = &f->items[i];
        if (file->format || ++skipped > NAMED_MAX || file->is_reported)
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
    sv_console_note("%zu files read, %zu skipped", f->n - skipped, skipped);
}

/* What the input holds and the result does not: SV_EXIT_LESS, or 0. */
static int report_missing(const struct sv_files *f)
{
    char line[240];
    if (f->too_many || f->too_deep) {
        snprintf(line, sizeof line,
                 "%zu files after the first %u and %zu folders deeper than %d levels were not "
                 "read: import them in groups, then merge the results",
                 f->too_many, SV_FILES_MAX, f->too_deep, SV_FOLDERS_MAX);
        sv_console_error(NULL, SV_NO_POS, line);
    }
    return f->too_many || f->too_deep || f->refused ? SV_EXIT_LESS : 0;
}

static int import_files(struct import *o, struct sv_join *join, struct sv_files *f,
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
        code = sv_error(err, SV_EINPUT, "nothing to import: none of %zu files has a known format%s",
                        f->n, o->columns ? " or most lines with the columns of --columns" : "");
    if (code >= 0)
        code = check_zone(o, f, err);
    if (code >= 0) {
        struct sv_merge_options options = {.same_host = true, .assume = o->assume};
        struct sv_merge *merge = sv_merge_new(&options);
        struct sv_dict *roles = sv_dict_new();
        code = read_files(o, join, f, merge, roles, err);
        join->read.roles = NULL;
        sv_dict_free(roles);
        if (code >= 0 && count_known(f) == 0)
            code =
                sv_error(err, SV_EINPUT, "nothing to import: none of %zu files can be read", f->n);
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
    if (code >= 0 && o->columns)
        code = sv_columns_check(o->columns, &o->columns_need, err);
    if (code >= 0)
        code = parse_date(o, &join, err);
    if (code >= 0)
        code = read_zones(o, &zone, &log_zone, err);
    join.read.zone = zone;
    join.read.log_zone = log_zone;
    if (code >= 0) /* archives, too: their files have no names that could be compared later */
        code = sv_check_inputs(operands->items, operands->n, o->out.path, err);
    for (size_t i = 0; i < operands->n && code >= 0; i++) {
        code = sv_files_archive(&files, operands->items[i], o->strict, err);
        if (code == 0)
            code = sv_files_walk(&files, operands->items[i], 0, err);
    }
    if (code >= 0) {
        recognise(&files, o);
        sv_files_leave_out(&files);
        code = import_files(o, &join, &files, err);
    }
    if (code >= 0) {
        report_assumed(o);
        report_skipped(&files);
        code = report_missing(&files);
    }
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
     NULL, NULL},
    {0, "log-tz", "ZONE", SV_OPT_TEXT, offsetof(struct import, log_tz),
     "the time zone of DLIO's log (default UTC)", NULL, NULL},
    {0, "date", "DAY", SV_OPT_TEXT, offsetof(struct import, date),
     "YYYY-MM-DD, the first day of files without a date (default: the earliest day in the other "
     "files)",
     NULL, NULL},
    {0, "columns", "WORDS", SV_OPT_TEXT, offsetof(struct import, columns),
     "what the fields of line-oriented logs are: 'ts:utc pid bytes latency:ns path', or with "
     "commas "
     "for CSV; used for files that have these columns and are not recognised by a header",
     NULL, NULL},
    {0, "offset", "FILE=TIME", SV_OPT_LIST, offsetof(struct import, offsets),
     "shift FILE by TIME, as for merge; may be given several times", NULL, NULL},
    {0, "assume", NULL, SV_OPT_FLAG, offsetof(struct import, assume),
     "without --tz take local times as UTC, and use times that cannot be related unchanged", NULL,
     NULL},
    SV_OUTPUT_OPTIONS(struct import),
    SV_INPUT_OPTIONS(struct import),
    {0},
};

static const struct sv_example examples[] = {
    {"stave import exp_20260720153000 --tz America/Montreal -o run.pftrace",
     "everything that was recorded about a run"},
    {"stave import exp_20260720153000.tar.gz --tz America/Montreal -o run.pftrace",
     "the same from an archive"},
    {"stave import trace_read.out trace_time_align.out cpu.out --tz UTC -o run.pftrace",
     "some of its files"},
    {"stave import app.log --columns 'ts:utc pid bytes latency:ns path' -o app.pftrace",
     "a log of your own"},
    {"stave import strace.out --tz Europe/Berlin --date 2026-07-20 -o calls.pftrace",
     "strace -tt prints neither day nor zone"},
    {0},
};

const struct sv_command sv_command_import = {
    .name = "import",
    .operands = "FOLDER|ARCHIVE|FILE… -o OUT",
    .summary = "import the recordings of other tools onto one time axis",
    .description =
        "Reads all files of a folder whose format is known, recognised by content: outputs of the "
        "bpftrace scripts for file and block I/O, their time alignment trace, mpstat, nvidia-smi "
        "pmon, iostat -o JSON, strace -f -ttt -T, MLPerf's :::MLLOG lines, DLIO's log, and traces "
        "of any format that convert reads, also without their headers and as the DL benchmark "
        "pipeline aligned them. All come from one machine. Files that repeat others of "
        "the same folder are skipped: the output of starpu_fxt_tool if the StarPU trace "
        "(prof_file_*) is there, dag.dot, which has no times, if any of these files is there, and "
        "a traced server's JSON and CSV if its .pftrace is there.\n\n"
        "bpftrace counts nanoseconds since boot. The time alignment trace relates them to the wall "
        "clock: by the closest pair of lines around a change of the second; half the distance of "
        "the pair and a timer tick are the uncertainty, and several pairs give the drift. If a "
        "clock cannot be related, the import is refused, unless --offset gives the relation or "
        "--assume uses times unchanged.\n\n"
        "An archive (tar, also compressed by gzip or zstd; recognised by content) is read like the "
        "folder that it was made of. No file of it is written: a compressed one is unpacked to a "
        "temporary file without a name in TMPDIR, to at most 250 times its size (at least 1 GiB, "
        "at most 64 GiB). Files in it whose names lead out of it, sparse files and what "
        "is damaged are named and not read, links and devices are skipped. An archive in a folder "
        "or in an archive is skipped.\n\n"
        "If something was not read that way, or there are more than 10,000 files or 8 levels of "
        "folders, the rest is imported and the exit code is 5.\n\n"
        "Files that are skipped, lines that are damaged (with the byte position of the first) and "
        "unrecognised lines are reported and counted; a file that cannot be read does not stop the "
        "others; --strict makes both an error.\n\n"
        "The columns of line-oriented logs are found by the names in a header, or, without one, by "
        "the look of the lines, and then printed. --columns describes others, one word per field: "
        "ts (with latency: the end), start, end, latency, pid, tid, comm, name, cat, path, fd, "
        "bytes, offset, ret, requested, length, address, mode, errno, disk, rw, sector, queue, "
        "wait, cpu, gpu, words of mpstat, pmon and iostat (%usr, sm, rMB/s …), arg.NAME, "
        "counter.NAME, - (skipped), and name=, cat=, comm=, disk= or pid= with a value for all "
        "lines. Times have a unit: utc, local, clock (time of day), boot (ns), unix, unix_ms, "
        "unix_us, unix_ns, s, ms, us or ns; latencies s, ms, us or ns. Of files about the same, "
        "raw and derived, the one nearest to the tool is taken. A pids.json (process numbers to "
        "roles) names the processes.",
    .options = options,
    .examples = examples,
    .lists = sv_format_lists,
    .options_size = sizeof(struct import),
    .run = run,
};
