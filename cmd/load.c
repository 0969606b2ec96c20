/* Loading: input → store, with progress and findings. Used by every command that needs random access. */
#include "cmd/load.h"

#include <string.h>

int sv_load(const char *path, const char *from, bool strict, size_t memory_limit_bytes,
            struct sv_loaded *l, struct sv_err *err)
{
    *l = (struct sv_loaded){.dict = sv_dict_new()};
    int code = sv_open_input(path, from, 0, l->dict, &l->in, err);
    if (code < 0)
        return code;
    l->trace = sv_trace_new(l->dict, &l->in.report, memory_limit_bytes);
    return sv_run(&l->in, sv_trace_sink(l->trace), strict, "loading", err);
}

/* Findings of a further input join those of the first. */
static void join_reports(struct sv_report *to, const struct sv_report *from)
{
    for (size_t i = 0; i < from->n; i++)
        sv_report_add(to, from->rows[i].severity, from->rows[i].what, from->rows[i].count,
                      from->rows[i].first_pos, "%s",
                      from->rows[i].first_detail ? from->rows[i].first_detail : "");
}

static int load_one_more(const char *path, const char *from, uint32_t space, bool strict,
                         struct sv_loaded *l, struct sv_err *err)
{
    struct sv_opened in;
    int code = sv_open_input(path, from, space, l->dict, &in, err);
    if (code >= 0)
        code = sv_run_into(&in, sv_trace_sink(l->trace), strict, "loading", err);
    if (space == 0) {
        l->in.path = in.path;
        l->in.format = in.format;
    }
    join_reports(&l->in.report, &in.report);
    sv_opened_close(&in);
    return code;
}

int sv_load_many(const char *const *paths, size_t n, const char *from, bool strict,
                 size_t memory_limit_bytes, struct sv_loaded *l, struct sv_err *err)
{
    if (n == 1)
        return sv_load(paths[0], from, strict, memory_limit_bytes, l, err);
    *l = (struct sv_loaded){.dict = sv_dict_new()};
    sv_report_init(&l->in.report);
    l->trace = sv_trace_new(l->dict, &l->in.report, memory_limit_bytes);
    int code = 0;
    for (size_t i = 0; i < n && code >= 0; i++)
        code = load_one_more(paths[i], from, (uint32_t)i, strict, l, err);
    int finished = sv_trace_finish(l->trace, err);
    return code < 0 ? code : finished;
}

void sv_loaded_free(struct sv_loaded *l)
{
    if (l->trace)
        sv_trace_free(l->trace);
    sv_opened_close(&l->in);
    sv_dict_free(l->dict);
    *l = (struct sv_loaded){0};
}

/* Argument keys carry the prefix that Perfetto gives them for files of this format. */
struct sv_sql_options sv_loaded_sql_options(const struct sv_loaded *l, uint64_t memory_limit)
{
    bool is_json = l->in.format && strcmp(l->in.format->name, "chrome") == 0;
    struct sv_sql_options options = {
        .arg_prefix = is_json ? "args." : "debug.",
        .report = &l->in.report,
        .trace_type = is_json ? "json" : "proto",
    };
    size_t held = sv_trace_bytes(l->trace) + sv_dict_bytes(l->dict);
    if (memory_limit)
        options.memory_limit_bytes = memory_limit > held + (1u << 20) ? memory_limit - held
                                                                      : 1u << 20;
    return options;
}
