/* Arguments as rings carry them, into batches: words, and the bytes of struct stave_args.
 *
 * Called by the ring source and by files with explicit times. The bytes may be another process's:
 * every length is checked, and what cannot be right ends the list. */
#include "sdk/drain/drain_items.h"

#include "sdk/emit/items.h"

#include <stave/stave.h>
#include <string.h>

enum { OPEN_MAX = 32 };

void sv_item_number(struct sv_arg *a, unsigned type, uint64_t v)
{
    a->u = v;
    switch (type) {
    case STAVE_I_UINT: a->type = v > INT64_MAX ? SV_ARG_UINT : SV_ARG_INT; break;
    case STAVE_I_DOUBLE: a->type = SV_ARG_DOUBLE; break;
    case STAVE_I_BOOL:
        a->type = SV_ARG_BOOL;
        a->i = v != 0;
        break;
    case STAVE_I_POINTER: a->type = SV_ARG_POINTER; break;
    default: a->type = SV_ARG_INT; break;
    }
}

void sv_item_text(struct sv_arg *a, const uint8_t *bytes, size_t len, bool is_null)
{
    a->type = SV_ARG_TEXT;
    a->text = is_null ? "(null)" : (const char *)bytes;
    a->size = (is_null ? 6 : (uint32_t)len) & 0xffffff;
}

/* Keys with a meaning: no key in the model, but a type. */
static bool put_special(struct sv_arg *a, const char *key, size_t len, uint64_t v)
{
    if (len != 2 || key[0] != STAVE_FLOW_OUT[0])
        return false;
    a->type = key[1] == STAVE_CORRELATION[1] ? SV_ARG_CORRELATION : SV_ARG_FLOW;
    a->u = v;
    return true;
}

struct items {
    const uint8_t *p, *end;
};

/* A dictionary, a list, or the stack, which has no key in the model. */
static size_t open_container(struct sv_dict *dict, struct sv_batch *b, unsigned type,
                             const char *key, size_t len)
{
    if (type == SV_ITEM_LIST && len == 2 && memcmp(key, STAVE_STACK, 2) == 0)
        return sv_batch_open(b, 0, SV_ARG_STACK);
    return sv_batch_open(b, sv_dict_str(dict, key, len),
                         type == SV_ITEM_DICT ? SV_ARG_DICT : SV_ARG_ARRAY);
}

static bool take(struct items *c, void *to, size_t n)
{
    if ((size_t)(c->end - c->p) < n)
        return false;
    memcpy(to, c->p, n);
    c->p += n;
    return true;
}

static unsigned number_type(unsigned item)
{
    static const uint8_t types[] = {[SV_ITEM_INT] = STAVE_I_INT,
                                    [SV_ITEM_UINT] = STAVE_I_UINT,
                                    [SV_ITEM_DOUBLE] = STAVE_I_DOUBLE,
                                    [SV_ITEM_BOOL] = STAVE_I_BOOL,
                                    [SV_ITEM_POINTER] = STAVE_I_POINTER};
    return types[item];
}

/* One item that is no container; false: damaged. */
static bool put_plain_item(struct sv_dict *dict, struct sv_batch *b, struct items *c, unsigned type,
                           const char *key, size_t key_len)
{
    uint64_t v = 0;
    uint32_t len = 0;
    bool is_whole = type == SV_ITEM_NULL   ? true
                    : type == SV_ITEM_TEXT ? take(c, &len, sizeof len) && len <= c->end - c->p
                                           : take(c, &v, sizeof v);
    if (!is_whole)
        return false;
    struct sv_arg *a = sv_batch_arg(b);
    if (type == SV_ITEM_TEXT) {
        sv_item_text(a, c->p, len, false);
        c->p += len;
    } else if (type == SV_ITEM_NULL) {
        a->type = SV_ARG_NULL;
    } else {
        if (put_special(a, key, key_len, v))
            return true;
        sv_item_number(a, number_type(type), v);
    }
    a->key = sv_dict_str(dict, key, key_len);
    return true;
}

void sv_items_put(struct sv_dict *dict, struct sv_batch *b, sv_str key, const uint8_t *bytes,
                  size_t n)
{
    struct items c = {bytes, bytes + n};
    size_t open[OPEN_MAX + 1], depth = 0;
    if (key)
        open[depth++] = sv_batch_open(b, key, SV_ARG_DICT);
    size_t bottom = depth;
    while (c.p < c.end) {
        uint8_t type;
        uint16_t key_len;
        if (!take(&c, &type, 1) || !take(&c, &key_len, 2) || key_len > c.end - c.p)
            break;
        const char *name = (const char *)c.p;
        c.p += key_len;
        if (type == SV_ITEM_END) {
            if (depth == bottom)
                break;
            sv_batch_close(b, open[--depth]);
        } else if (type == SV_ITEM_DICT || type == SV_ITEM_LIST) {
            if (depth > OPEN_MAX)
                break;
            open[depth++] = open_container(dict, b, type, name, key_len);
        } else if (type == 0 || type > SV_ITEM_NULL ||
                   !put_plain_item(dict, b, &c, type, name, key_len)) {
            break;
        }
    }
    while (depth > 0)
        sv_batch_close(b, open[--depth]);
}
