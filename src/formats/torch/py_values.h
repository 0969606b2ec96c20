/* Values of a Python program, as its dumps hold them: numbers, texts, lists, dictionaries. From
 * pickle and from JSON; nothing is executed.
 *
 *     struct sv_py_values v;
 *     sv_py_init(&v);
 *     const struct sv_py *top;
 *     if (sv_py_unpickle(&v, bytes, len, &top, err) == 0)
 *         … sv_py_member(top, "entries") …
 *     sv_py_fini(&v);
 *
 * Texts point into the bytes that were given, or into the arena. A value may be part of several
 * others, and of itself: readers go along the members that they know and no deeper. */
#pragma once

#include "core/base/err.h"
#include "core/base/mem.h"

#include <stdbool.h>

enum sv_py_type {
    SV_PY_NONE,
    SV_PY_BOOL, /* i */
    SV_PY_INT,  /* i */
    SV_PY_REAL, /* d */
    SV_PY_TEXT,
    SV_PY_LIST, /* also a tuple */
    SV_PY_DICT  /* items are keys and values in turn */
};

struct sv_py {
    enum sv_py_type type;
    uint32_t len; /* of a text */
    union {
        int64_t i;
        double d;
        const char *text;
        struct {
            struct sv_py **items;
            size_t n, cap;
        };
    };
};

struct sv_py_values {
    struct sv_arena arena;
    struct sv_py **lists; /* those whose items are to be freed */
    size_t n_lists, cap_lists;
};

void sv_py_init(struct sv_py_values *v);
void sv_py_fini(struct sv_py_values *v);

/* Of pickle the operations that make values; any other is refused with SV_EFORMAT, by its name and
 * byte position. */
int sv_py_unpickle(struct sv_py_values *v, const uint8_t *bytes, size_t len,
                   const struct sv_py **top, struct sv_err *err);
/* The bytes need SV_JSON_PAD readable ones after them. */
int sv_py_of_json(struct sv_py_values *v, const uint8_t *bytes, size_t len,
                  const struct sv_py **top, struct sv_err *err);

/* The value of a key; NULL: it is no dictionary, or has no such key. */
const struct sv_py *sv_py_member(const struct sv_py *dict, const char *key);
int64_t sv_py_int(const struct sv_py *v, int64_t none); /* NULL is none, too */
/* A text; "" of len 0: it is none. */
const char *sv_py_text(const struct sv_py *v, size_t *len);
static inline bool sv_py_is(const struct sv_py *v, enum sv_py_type type)
{
    return v && v->type == type;
}

/* ---- for the readers ---- */

struct sv_py *sv_py_new(struct sv_py_values *v, enum sv_py_type type);
void sv_py_append(struct sv_py *list, struct sv_py *item);
