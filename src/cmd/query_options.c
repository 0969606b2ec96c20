/* What the SQL connection must know about a loaded trace. In a file of its own: libstave-read uses
 * it without the shell and its line editor. */
#include "cmd/query_shell.h"

#include <string.h>

/* Argument keys carry the prefix that Perfetto gives them for files of this format. */
struct sv_sql_options sv_query_options(const struct sv_loaded *l, uint64_t memory_limit)
{
    bool is_json = l->in.format && strcmp(l->in.format->name, "chrome") == 0;
    struct sv_sql_options options = {
        .arg_prefix = is_json ? "args." : "debug.",
        .report = &l->in.report,
        .trace_type = is_json ? "json" : "proto",
    };
    size_t held = l->trace ? sv_trace_bytes(l->trace) + sv_dict_bytes(l->dict) : 0;
    if (memory_limit)
        options.memory_limit_bytes = memory_limit > held + (1u << 20) ? memory_limit - held
                                                                      : 1u << 20;
    return options;
}
