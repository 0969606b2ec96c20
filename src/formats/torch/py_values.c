/* Values of a dump, and their reader for JSON. Called by the readers of formats that PyTorch
 * writes. */
#include "formats/torch/py_values.h"

#include "core/base/json_scan.h"
#include "core/stream/json_members.h"

#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 32

void sv_py_init(struct sv_py_values *v)
{
    *v = (struct sv_py_values){0};
    sv_arena_init(&v->arena, (size_t)SV_TABLE(1 << 16, 1 << 12));
}

void sv_py_fini(struct sv_py_values *v)
{
    for (size_t i = 0; i < v->n_lists; i++)
        free(v->lists[i]->items);
    free(v->lists);
    sv_arena_fini(&v->arena);
}

struct sv_py *sv_py_new(struct sv_py_values *v, enum sv_py_type type)
{
    struct sv_py *made = sv_arena_get(&v->arena, sizeof *made, _Alignof(struct sv_py));
    memset(made, 0, sizeof *made);
    made->type = type;
    if (type == SV_PY_LIST || type == SV_PY_DICT)
        SV_APPEND(v->lists, v->n_lists, v->cap_lists) = made;
    return made;
}

void sv_py_append(struct sv_py *list, struct sv_py *item)
{
    SV_APPEND(list->items, list->n, list->cap) = item;
}

/* The last one counts where a key is repeated, as in Python. */
const struct sv_py *sv_py_member(const struct sv_py *dict, const char *key)
{
    size_t len = strlen(key);
    if (!sv_py_is(dict, SV_PY_DICT))
        return NULL;
    for (size_t i = dict->n; i >= 2; i -= 2) {
        const struct sv_py *name = dict->items[i - 2];
        if (name->type == SV_PY_TEXT && name->len == len && memcmp(name->text, key, len) == 0)
            return dict->items[i - 1];
    }
    return NULL;
}

int64_t sv_py_int(const struct sv_py *v, int64_t none)
{
    return sv_py_is(v, SV_PY_INT) || sv_py_is(v, SV_PY_BOOL) ? v->i : none;
}

const char *sv_py_text(const struct sv_py *v, size_t *len)
{
    *len = sv_py_is(v, SV_PY_TEXT) ? v->len : 0;
    return *len ? v->text : "";
}

/* ---- JSON ---- */

static struct sv_py *text_of(struct sv_py_values *v, struct sv_text raw)
{
    struct sv_py *made = sv_py_new(v, SV_PY_TEXT);
    char *to = sv_arena_get(&v->arena, (size_t)raw.len + 1, 1);
    unsigned oddities = 0;
    made->len = (uint32_t)sv_json_unescape((const uint8_t *)raw.bytes, raw.len, to, &oddities);
    made->text = to;
    return made;
}

static struct sv_py *scalar_of(struct sv_py_values *v, const struct sv_member *m)
{
    struct sv_py *made = sv_py_new(v, SV_PY_NONE);
    if (sv_member_i64(m, &made->i))
        made->type = SV_PY_INT;
    else if (sv_member_double(m, &made->d))
        made->type = SV_PY_REAL;
    else if (m->type == 't' || m->type == 'f') {
        made->type = SV_PY_BOOL;
        made->i = m->type == 't';
    }
    return made;
}

/* One container; those within it follow, so that depth is bounded by the list of open ones. */
struct open {
    struct sv_members members;
    struct sv_py *value;
};

static int broken(const uint8_t *bytes, const struct sv_members *m, struct sv_err *err)
{
    return sv_err_set(err, SV_EFORMAT, m->p - bytes, "the JSON is broken here");
}

int sv_py_of_json(struct sv_py_values *v, const uint8_t *bytes, size_t len,
                  const struct sv_py **top, struct sv_err *err)
{
    struct open open[DEPTH_MAX];
    size_t depth = 0;
    struct sv_member m;
    open[0].members = sv_members_of((const char *)bytes, len);
    if (open[0].members.is_bad)
        return broken(bytes, &open[0].members, err);
    open[0].value = sv_py_new(v, open[0].members.is_object ? SV_PY_DICT : SV_PY_LIST);
    *top = open[0].value;
    for (;;) {
        struct open *o = &open[depth];
        if (!sv_member_next(&o->members, &m)) {
            if (o->members.is_bad)
                return broken(bytes, &o->members, err);
            if (depth == 0)
                return 0;
            depth--;
            continue;
        }
        bool is_inner = m.type == '{' || m.type == '[';
        struct sv_py *made = is_inner        ? sv_py_new(v, m.type == '{' ? SV_PY_DICT : SV_PY_LIST)
                             : m.type == '"' ? text_of(v, m.value)
                                             : scalar_of(v, &m);
        if (o->members.is_object)
            sv_py_append(o->value, text_of(v, m.key));
        sv_py_append(o->value, made);
        if (!is_inner)
            continue;
        if (++depth == DEPTH_MAX)
            return sv_err_set(err, SV_ELIMIT, o->members.p - bytes, "nested deeper than %d",
                              DEPTH_MAX);
        open[depth] = (struct open){sv_members_of(m.value.bytes, m.value.len), made};
    }
}
