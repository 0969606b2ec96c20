/* Merging for the commands: each input is read with a dictionary of its own into the merge, which
 * then is one source.
 *
 * Must not decide anything about clocks or identities: the model does, and says what it did. */
#include "files/join.h"
#include "cli/console.h"
#include "clocks/merge.h"
#include "core/base/mem.h"
#include "files/found.h"
#include "files/rotation.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define KEPT_BYTES ((size_t)64 << 20) /* what reading one input takes */

/* A time with a unit, or a plain number of nanoseconds. */
static int parse_offset(const char *text, int64_t *ns)
{
    char with_unit[64];
    struct sv_moment m = {0};
    size_t len = strlen(text);
    bool is_plain = len && text[len - 1] >= '0' && text[len - 1] <= '9';
    if (len + 3 > sizeof with_unit)
        return SV_EUSAGE;
    snprintf(with_unit, sizeof with_unit, "%s%s", text, is_plain ? "ns" : "");
    int code = sv_parse_moment(with_unit, strlen(with_unit), &m);
    *ns = m.ns;
    return m.is_absolute ? SV_EUSAGE : code;
}

/* FILE=±TIME for this input, if it was given; names are compared whole. */
static int find_offset(const struct sv_join *join, const char *path, struct sv_merge_input *input,
                       struct sv_err *err)
{
    for (size_t i = 0; join->offsets && i < join->offsets->n; i++) {
        const char *word = join->offsets->items[i], *equals = strrchr(word, '=');
        int64_t ns;
        if (!equals || parse_offset(equals + 1, &ns) < 0)
            return sv_error(err, SV_EUSAGE,
                            "--offset: '%s' is not FILE=TIME, for example b.json=-1.5ms", word);
        if (strlen(path) == (size_t)(equals - word) &&
            memcmp(path, word, (size_t)(equals - word)) == 0) {
            input->has_offset = true;
            input->offset_ns = ns;
        }
    }
    return 0;
}

/* A misspelt file in --offset must not be ignored. */
int sv_join_check(const struct sv_join *join, struct sv_err *err)
{
    for (size_t i = 0; join->offsets && i < join->offsets->n; i++) {
        const char *word = join->offsets->items[i], *equals = strrchr(word, '=');
        size_t len = equals ? (size_t)(equals - word) : 0;
        bool found = false;
        for (size_t k = 0; k < join->inputs->n; k++)
            found |= strlen(join->inputs->items[k]) == len &&
                     memcmp(join->inputs->items[k], word, len) == 0;
        if (equals && !found)
            return sv_error(err, SV_EUSAGE, "--offset: no input is called '%.*s'", (int)len, word);
    }
    return 0;
}

int sv_join_add(const struct sv_join *join, struct sv_merge *merge, const char *path,
                const struct sv_dict **dict, struct sv_err *err)
{
    struct sv_opened in;
    struct sv_progress progress;
    struct sv_merge_input input = {.name = path, .dict = sv_dict_new()};
    struct sv_pump_options pump = {
        .strict = join->strict, .progress = sv_progress_tick, .progress_ctx = &progress};
    int code = find_offset(join, path, &input, err);
    if (code < 0) {
        sv_dict_free(input.dict);
        return code;
    }
    struct sv_read_options read = join->read;
    read.rotation = sv_rotation_of(join->rotations, path);
    struct sv_input *given = NULL;
    if (join->file && join->file->is_member)
        (void)sv_found_open(join->file, &given, err); /* a member is open already */
    code = sv_open_input_in(path, given, join->from, &read, input.dict, &in, err);
    if (code < 0) {
        sv_opened_close(&in);
        sv_dict_free(input.dict);
        return code;
    }
    input.kind = in.format->name;
    sv_progress_begin(&progress, in.in, "reading");
    code = sv_merge_add(merge, &input, in.source, &pump, err);
    in.source = NULL;
    sv_progress_end(&progress);
    if (code < 0)
        sv_err_in_file(err, path);
    else if (dict)
        *dict = input.dict;
    if (join->inputs->n > SV_JOIN_NOTED_MAX)
        sv_console_problems(path, &in.report);
    else
        sv_console_findings(path, &in.report);
    sv_opened_close(&in);
    return code;
}

int sv_join_write(const struct sv_join *join, struct sv_merge *merge, struct sv_err *err)
{
    struct sv_dict *dict = sv_dict_new();
    struct sv_report report;
    struct sv_sink *sink;
    sv_report_init(&report);
    int code = sv_merge_relate(merge, dict, &report, err);
    if (code >= 0)
        code = sv_open_output(&join->out, dict, &report, &sink, err);
    if (code < 0)
        sv_merge_free(merge);
    else
        code = sv_merge_pump(merge, sink, err);
    sv_console_findings(NULL, &report);
    sv_report_fini(&report);
    sv_dict_free(dict);
    return code;
}

/* ---- which files ---- */

/* What fails for another reason than the input itself fails for all of them. */
static bool is_bad_input(int code)
{
    return code == SV_EINPUT || code == SV_EFORMAT || code == SV_EFOUND || code == SV_ELIMIT;
}

/* The error is said, and forgotten. */
static int leave_out(struct sv_err *err)
{
    char line[sizeof err->msg + 64];
    snprintf(line, sizeof line, "%s; left out (--skip-bad)", err->msg);
    sv_console_error(NULL, SV_NO_POS, line);
    sv_err_clear(err);
    return 0;
}

/* What can be opened only once is not tried before it is read. */
static bool is_tried(const char *path)
{
    struct stat st;
    return strcmp(path, "-") != 0 && (stat(path, &st) != 0 || S_ISREG(st.st_mode));
}

static int try_file(const struct sv_join *join, const char *path, struct sv_err *err)
{
    struct sv_opened in;
    struct sv_dict *dict = sv_dict_new();
    int code = sv_open_input_as(path, join->from, &join->read, dict, &in, err);
    sv_opened_close(&in);
    sv_dict_free(dict);
    return code;
}

static bool is_unfinished(const char *path)
{
    static const char end[] = ".part";
    size_t len = strlen(path);
    return len >= sizeof end && strcmp(path + len - (sizeof end - 1), end) == 0;
}

/* Takes the file, or says why not: what was found in a folder need not be a trace. */
static int choose_file(const struct sv_join *join, const struct sv_found *f, struct sv_words *names,
                       struct sv_err *err)
{
    if (f->was_found && is_unfinished(f->path)) {
        sv_console_note("%s: skipped, a recording that has not ended or was killed: see 'stave "
                        "recover'",
                        f->path);
        return 0;
    }
    int code = is_tried(f->path) ? try_file(join, f->path, err) : 0;
    if (code >= 0) {
        sv_words_add(names, f->path);
        return 0;
    }
    if (f->was_found && is_bad_input(code)) {
        sv_console_note("%s; skipped", err->msg);
        sv_err_clear(err);
        return 0;
    }
    return join->skip_bad && is_bad_input(code) ? leave_out(err) : code;
}

/* All are opened before the first one is read: a wrong name at the end does not cost the work on
 * those before it. */
static int find_inputs(const struct sv_join *join, struct sv_files *files, struct sv_words *names,
                       struct sv_err *err)
{
    int code = 0;
    for (size_t i = 0; i < join->inputs->n && code >= 0; i++) {
        const char *path = join->inputs->items[i];
        if (sv_is_folder(path))
            code = sv_files_walk(files, path, 0, err);
        else
            sv_files_add(files, path, false);
    }
    if (code >= 0 && files->too_many)
        code = sv_error(err, SV_ELIMIT,
                        "%zu files, and at most %u can be merged at once: merge them in groups, "
                        "then the results",
                        files->n + files->too_many, SV_FILES_MAX);
    if (code >= 0 && files->too_deep)
        code = sv_error(err, SV_ELIMIT,
                        "folders in more than %d levels: merge them in groups, then the results",
                        SV_FOLDERS_MAX);
    for (size_t i = 0; i < files->n && code >= 0; i++)
        code = choose_file(join, &files->items[i], names, err);
    if (code >= 0 && names->n == 0)
        code = sv_error(err, SV_EINPUT, "none of the inputs is a trace");
    return code;
}

/* ---- all of it ---- */

/* The error is said, and forgotten, where the input can be done without. */
static int forgive(const struct sv_join *join, const struct sv_found *f, int code,
                   struct sv_err *err)
{
    if (f->was_found && code == SV_EFORMAT) { /* JSON that is no trace, for example */
        sv_console_note("%s; skipped", err->msg);
        sv_err_clear(err);
        return 0;
    }
    return join->skip_bad && is_bad_input(code) ? leave_out(err) : code;
}

/* The parts of a recording are read with the first of them. */
static int read_inputs(const struct sv_join *join, const struct sv_files *files,
                       struct sv_merge *merge, struct sv_err *err)
{
    size_t n = 0;
    for (size_t i = 0; i < join->rotations->n; i++) {
        const struct sv_found *f = files->items;
        assert(f); /* the inputs are some of them */
        while (f->path != join->rotations->inputs[i])
            f++;
        int code = sv_join_add(join, merge, f->path, NULL, err);
        n += code >= 0;
        if (code < 0 && forgive(join, f, code, err) < 0)
            return code;
    }
    return n ? 0 : sv_error(err, SV_EINPUT, "none of the inputs can be read");
}

static int join_files(const struct sv_join *join, const struct sv_files *files, struct sv_err *err)
{
    struct sv_merge_options options = {.same_host = join->same_host,
                                       .assume = join->assume,
                                       .repeats_ranks = join->repeat_ranks,
                                       .skips_bad = join->skip_bad,
                                       .relations = join->relations,
                                       .n_relations = join->n_relations,
                                       .align_collectives = join->align_collectives};
    int code = sv_join_check(join, err);
    if (code >= 0)
        code = sv_check_inputs(join->inputs->items, join->inputs->n, join->out.path, err);
    if (code < 0)
        return code;
    sv_keep_freed(KEPT_BYTES);
    struct sv_merge *merge = sv_merge_new(&options);
    code = read_inputs(join, files, merge, err);
    if (code >= 0)
        return sv_join_write(join, merge, err);
    sv_merge_free(merge);
    return code;
}

int sv_join_run(const struct sv_join *join, struct sv_err *err)
{
    struct sv_files files = {.output = join->out.path};
    struct sv_words names = {0};
    struct sv_rotations rotations = {0};
    struct sv_join found = *join;
    int code = sv_check_reader(join->from, err);
    if (code >= 0)
        code = sv_check_output(&join->out, err);
    if (code >= 0)
        code = find_inputs(join, &files, &names, err);
    found.inputs = &names;
    found.rotations = &rotations;
    if (code >= 0) {
        sv_rotations_find(names.items, names.n, join->from, &rotations);
        code = join_files(&found, &files, err);
    }
    sv_rotations_fini(&rotations);
    sv_words_free(&names);
    sv_files_free(&files);
    return code;
}
