/* The names of event kinds and argument types: one table each, used by every text form and
 * message. */
#include "core/stream/event.h"

static const char *const kind_names[] = {
    [SV_BEGIN] = "begin",     [SV_END] = "end",   [SV_SLICE] = "slice", [SV_INSTANT] = "instant",
    [SV_COUNTER] = "counter", [SV_FLOW] = "flow", [SV_LOSS] = "loss",
};

static const char *const arg_type_names[] = {
    [SV_ARG_NULL] = "null",
    [SV_ARG_BOOL] = "bool",
    [SV_ARG_INT] = "int",
    [SV_ARG_UINT] = "uint",
    [SV_ARG_DOUBLE] = "double",
    [SV_ARG_TEXT] = "text",
    [SV_ARG_POINTER] = "pointer",
    [SV_ARG_DICT] = "dict",
    [SV_ARG_ARRAY] = "array",
    [SV_ARG_FLOW_BEGIN] = "flow_begin",
    [SV_ARG_FLOW] = "flow",
    [SV_ARG_FLOW_END] = "flow_end",
    [SV_ARG_CORRELATION] = "correlation",
    [SV_ARG_SOURCE] = "source",
    [SV_ARG_STACK] = "stack",
    [SV_ARG_THREAD_TIME] = "thread_time",
    [SV_ARG_THREAD_DUR] = "thread_dur",
};

const char *sv_kind_name(unsigned kind)
{
    return kind >= SV_BEGIN && kind <= SV_LOSS ? kind_names[kind] : "?";
}

const char *sv_arg_type_name(unsigned type)
{
    return type >= SV_ARG_NULL && type <= SV_ARG_THREAD_DUR ? arg_type_names[type] : "?";
}
