/* Loading: input → store, with progress and findings. Used by every command that needs random access. */
#include "cmd/load.h"

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

void sv_loaded_free(struct sv_loaded *l)
{
    if (l->trace)
        sv_trace_free(l->trace);
    sv_opened_close(&l->in);
    sv_dict_free(l->dict);
    *l = (struct sv_loaded){0};
}
