/* Merging for the commands: each input is read with a dictionary of its own into the merge, which then is one source.
 *
 * Must not decide anything about clocks or identities: the model does, and says what it did. */
#include "files/join.h"
#include "cli/console.h"
#include "model/merge.h"

#include <stdio.h>
#include <string.h>

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
            return sv_err_set(err, SV_EUSAGE, SV_NO_POS,
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
            return sv_err_set(err, SV_EUSAGE, SV_NO_POS, "--offset: no input is called '%.*s'",
                              (int)len, word);
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
    code = sv_open_input_as(path, join->from, &join->read, input.dict, &in, err);
    if (code < 0) {
        sv_opened_close(&in);
        sv_dict_free(input.dict);
        return code;
    }
    sv_progress_begin(&progress, in.in, "reading");
    code = sv_merge_add(merge, &input, in.source, &pump, err);
    in.source = NULL;
    sv_progress_end(&progress);
    if (code < 0)
        sv_err_in_file(err, path);
    else if (dict)
        *dict = input.dict;
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

int sv_join_run(const struct sv_join *join, struct sv_err *err)
{
    struct sv_merge_options options = {.same_host = join->same_host,
                                       .assume = join->assume,
                                       .relations = join->relations,
                                       .n_relations = join->n_relations,
                                       .align_collectives = join->align_collectives};
    int code = sv_join_check(join, err);
    if (code >= 0)
        code = sv_check_inputs(join->inputs->items, join->inputs->n, join->out.path, err);
    if (code < 0)
        return code;
    struct sv_merge *merge = sv_merge_new(&options);
    for (size_t i = 0; i < join->inputs->n; i++) {
        code = sv_join_add(join, merge, join->inputs->items[i], NULL, err);
        if (code < 0) {
            sv_merge_free(merge);
            return code;
        }
    }
    return sv_join_write(join, merge, err);
}
