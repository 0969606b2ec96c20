/* Arguments as JSON, for the CSV writer and whoever shows arguments.
 *
 * Iterative over the pre-order list would need a stack of its own; the recursion is bounded by the JSON writer's depth limit, past which
 * containers are written as null. */
#include "formats/args_json.h"

#include <string.h>

static void put_members(struct sv_json *j, const struct sv_dict *d, const struct sv_arg *a,
                        const struct sv_arg *end, bool keyed)
{
    for (; a < end; a = sv_arg_next(a)) {
        if (keyed) {
            struct sv_text key = sv_dict_text(d, a->key);
            const char *type = sv_arg_type_name(a->type);
            sv_json_key(j, a->key ? key.bytes : type, a->key ? key.len : strlen(type));
        }
        sv_arg_json(j, d, a);
    }
}

static void put_container(struct sv_json *j, const struct sv_dict *d, const struct sv_arg *a)
{
    bool is_list = a->type == SV_ARG_ARRAY || a->type == SV_ARG_STACK;
    if (j->depth >= SV_JSON_DEPTH_MAX) {
        sv_json_null(j);
        return;
    }
    sv_json_begin(j, is_list ? '[' : '{');
    put_members(j, d, a + 1, a + 1 + a->size, !is_list);
    sv_json_end(j);
}

void sv_arg_json(struct sv_json *j, const struct sv_dict *d, const struct sv_arg *a)
{
    switch (a->type) {
    case SV_ARG_BOOL: sv_json_bool(j, a->i != 0); break;
    case SV_ARG_INT:
    case SV_ARG_THREAD_TIME:
    case SV_ARG_THREAD_DUR: sv_json_i64(j, a->i); break;
    case SV_ARG_UINT:
    case SV_ARG_CORRELATION: sv_json_u64(j, a->u); break;
    case SV_ARG_DOUBLE: sv_json_double(j, a->d); break;
    case SV_ARG_TEXT: sv_json_text(j, a->text, a->size); break;
    case SV_ARG_POINTER:
    case SV_ARG_FLOW_BEGIN:
    case SV_ARG_FLOW:
    case SV_ARG_FLOW_END: sv_json_hex(j, a->u); break;
    case SV_ARG_DICT:
    case SV_ARG_ARRAY:
    case SV_ARG_SOURCE:
    case SV_ARG_STACK: put_container(j, d, a); break;
    default: sv_json_null(j); break;
    }
}

void sv_args_json(struct sv_json *j, const struct sv_dict *d, const struct sv_arg *args, size_t n)
{
    sv_json_begin(j, '{');
    put_members(j, d, args, args + n, true);
    sv_json_end(j);
}
