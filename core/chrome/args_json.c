/* Arguments as JSON, for the Chrome and CSV writers and for commands that show arguments.
 *
 * A walk over the pre-order list with a stack of open containers: no recursion, because the depth
 * comes from files. The size of a container is believed only as far as the one around it goes. */
#include "core/chrome/args_json.h"
#include "core/base/json_scan.h"

#include <string.h>

#define DEPTH_MAX 128 /* deeper containers are written as null */

static void put_scalar(struct sv_json *j, const struct sv_arg *a)
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
    default: sv_json_null(j); break;
    }
}

static void put_key(struct sv_json *j, const struct sv_dict *d, const struct sv_arg *a)
{
    struct sv_text key = sv_dict_text(d, a->key);
    const char *type = a->key != 0 ? NULL : sv_arg_type_name(a->type);
    sv_json_key(j, type != NULL ? type : key.bytes, type != NULL ? strlen(type) : key.len);
}

static bool is_object(const struct sv_arg *a)
{
    return a->type == SV_ARG_DICT || a->type == SV_ARG_SOURCE;
}

static bool is_list(const struct sv_arg *a)
{
    return a->type == SV_ARG_ARRAY || a->type == SV_ARG_STACK;
}

static const struct sv_arg *end_of(const struct sv_arg *a, const struct sv_arg *limit)
{
    return (size_t)(limit - a) > a->size ? a + 1 + a->size : limit;
}

bool sv_arg_json(struct sv_json *j, const struct sv_dict *d, const struct sv_arg *a,
                 const struct sv_arg *end)
{
    struct level {
        const struct sv_arg *end;
        bool has_keys;
    } levels[DEPTH_MAX];
    size_t depth = 0;
    bool is_whole = true;
    do {
        const struct sv_arg *limit = depth > 0 ? levels[depth - 1].end : end;
        if (depth > 0 && levels[depth - 1].has_keys)
            put_key(j, d, a);
        if (!is_object(a) && !is_list(a)) {
            put_scalar(j, a++);
        } else if (depth == DEPTH_MAX) {
            sv_json_null(j);
            a = end_of(a, limit);
            is_whole = false;
        } else {
            sv_json_begin(j, is_object(a) ? '{' : '[');
            levels[depth++] = (struct level){end_of(a, limit), is_object(a)};
            a++;
        }
        for (; depth > 0 && a >= levels[depth - 1].end; depth--)
            sv_json_end(j);
    } while (depth > 0);
    return is_whole;
}

bool sv_arg_member_json(struct sv_json *j, const struct sv_dict *d, const struct sv_arg *a,
                        const struct sv_arg *end)
{
    put_key(j, d, a);
    return sv_arg_json(j, d, a, end);
}

bool sv_args_json(struct sv_json *j, const struct sv_dict *d, const struct sv_arg *args, size_t n)
{
    bool is_whole = true;
    sv_json_begin(j, '{');
    for (size_t i = 0; i < n; i = (size_t)(sv_arg_next(args + i) - args))
        is_whole &= sv_arg_member_json(j, d, args + i, args + n);
    sv_json_end(j);
    return is_whole;
}

bool sv_json_copy(struct sv_buf *scratch, struct sv_text text)
{
    sv_buf_clear(scratch);
    sv_buf_add(scratch, text.bytes, text.len);
    return sv_buf_reserve(scratch, SV_JSON_PAD) && sv_json_valid(scratch->data, scratch->len);
}

void sv_meta_json(struct sv_json *j, const struct sv_dict *d, const struct sv_meta *m,
                  struct sv_buf *scratch)
{
    struct sv_text value = sv_dict_text(d, m->value);
    if (m->is_json && sv_json_copy(scratch, value))
        sv_json_raw(j, value.bytes, value.len);
    else
        sv_json_text(j, value.bytes, value.len);
}
