/* Names to call sites.
 *
 * A literal in a program is one object, however often it is passed: a small table keyed by its
 * address finds the name without hashing. What misses (names built at run time) is looked up by
 * value in the category's dictionary; after PY_NAMES_MAX of them a name travels as text with each
 * event instead, so that "step 123456" cannot fill the memory.
 *
 * Call places are made once per shape, category and name and live as long as the process: rings
 * refer to their numbers. Called with the GIL held or, without one, from any thread: what is shared
 * is published by a release store. */
#include "py_stave.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static const char *const no_keys[8] = {"", "", "", "", "", "", "", ""};

static const struct {
    uint8_t kind, n;
    uint8_t types[6];
} shapes[PY_SHAPES] = {
    [PY_BEGIN] = {STAVE_KIND_BEGIN, 0, {0}},
    [PY_BEGIN_ARGS] = {STAVE_KIND_BEGIN, 1, {STAVE_I_ARGS}},
    [PY_BEGIN_ON] = {STAVE_KIND_BEGIN, 3, {STAVE_I_TRACK, STAVE_I_OWNER, STAVE_I_ARGS}},
    [PY_INSTANT] = {STAVE_KIND_INSTANT, 0, {0}},
    [PY_INSTANT_ARGS] = {STAVE_KIND_INSTANT, 1, {STAVE_I_ARGS}},
    [PY_INSTANT_ON] = {STAVE_KIND_INSTANT, 2, {STAVE_I_TRACK, STAVE_I_ARGS}},
    [PY_COMPLETE] = {STAVE_KIND_COMPLETE,
                     4,
                     {STAVE_I_TRACK, STAVE_I_START, STAVE_I_DUR, STAVE_I_ARGS}},
    [PY_BEGIN_DYN] = {STAVE_KIND_BEGIN, 2, {STAVE_I_NAME, STAVE_I_ARGS}},
    [PY_BEGIN_ON_DYN] = {STAVE_KIND_BEGIN,
                         4,
                         {STAVE_I_TRACK, STAVE_I_OWNER, STAVE_I_NAME, STAVE_I_ARGS}},
    [PY_INSTANT_ON_DYN] = {STAVE_KIND_INSTANT, 3, {STAVE_I_TRACK, STAVE_I_NAME, STAVE_I_ARGS}},
    [PY_COMPLETE_DYN] = {STAVE_KIND_COMPLETE,
                         5,
                         {STAVE_I_TRACK, STAVE_I_START, STAVE_I_DUR, STAVE_I_NAME, STAVE_I_ARGS}},
    [PY_END_ARGS] = {STAVE_KIND_END, 1, {STAVE_I_ARGS}},
    [PY_END_ON] = {STAVE_KIND_END, 3, {STAVE_I_TRACK, STAVE_I_SLICE, STAVE_I_ARGS}},
    [PY_COUNT_INT] = {STAVE_KIND_COUNTER, 2, {STAVE_I_TRACK, STAVE_I_INT}},
    [PY_COUNT_DOUBLE] = {STAVE_KIND_COUNTER, 2, {STAVE_I_TRACK, STAVE_I_DOUBLE}},
};

/* ---- call sites ---- */

struct made {
    struct stave_site site; /* first */
    enum py_shape shape;
    struct made *next;
    char text[]; /* category, name */
};

static pthread_mutex_t made_lock = PTHREAD_MUTEX_INITIALIZER;
static struct made *made_by_hash[4096];
static struct stave_site never; /* state 0: without memory nothing is recorded */

static unsigned hash_of(enum py_shape shape, const char *category, const char *name)
{
    unsigned h = 2166136261u + (unsigned)shape;
    for (const char *c = category; *c; c++)
        h = (h ^ (unsigned char)*c) * 16777619u;
    for (const char *c = name; *c; c++)
        h = (h ^ (unsigned char)*c) * 16777619u;
    return h % (sizeof made_by_hash / sizeof *made_by_hash);
}

static struct made *make(enum py_shape shape, const char *category, const char *name)
{
    size_t category_size = strlen(category) + 1, name_size = strlen(name) + 1;
    struct made *m = calloc(1, sizeof *m + category_size + name_size);
    if (!m)
        return NULL;
    memcpy(m->text, category, category_size);
    memcpy(m->text + category_size, name, name_size);
    m->shape = shape;
    m->site = (struct stave_site){.state = 1,
                                  .kind = shapes[shape].kind,
                                  .n_args = shapes[shape].n,
                                  .cat = m->text,
                                  .name = m->text + category_size,
                                  .file = "",
                                  .func = "",
                                  .keys = no_keys,
                                  .types = shapes[shape].types,
                                  .dso = &stave_i_dso};
    return m;
}

struct stave_site *py_site_make(enum py_shape shape, const char *category, const char *name)
{
    struct made **bucket = &made_by_hash[hash_of(shape, category, name)];
    pthread_mutex_lock(&made_lock);
    struct made *m = *bucket;
    while (m && (m->shape != shape || strcmp(m->site.cat, category) != 0 ||
                 strcmp(m->site.name, name) != 0))
        m = m->next;
    if (!m) {
        m = make(shape, category, name);
        if (m) {
            m->next = *bucket;
            *bucket = m;
        }
    }
    pthread_mutex_unlock(&made_lock);
    return m ? &m->site : &never;
}

static const char *text_of(PyObject *text, PyObject **keep)
{
    return text ? py_c_text(text, PY_NAME_BYTES, keep) : "";
}

static struct stave_site *publish(struct stave_site **slot, enum py_shape shape, PyObject *category,
                                  PyObject *name)
{
    PyObject *keep1 = NULL, *keep2 = NULL;
    struct stave_site *site = py_site_make(shape, text_of(category, &keep1), text_of(name, &keep2));
    Py_XDECREF(keep1);
    Py_XDECREF(keep2);
    __atomic_store_n(slot, site, __ATOMIC_RELEASE);
    return site;
}

struct stave_site *py_site_of_name(struct py_name *n, enum py_shape shape)
{
    return publish(&n->sites[shape], shape, n->category->text, n->text);
}

struct stave_site *py_category_site(struct py_category *c, enum py_shape shape)
{
    struct stave_site *site = __atomic_load_n(&c->sites[shape], __ATOMIC_ACQUIRE);
    return site ? site : publish(&c->sites[shape], shape, c->text, NULL);
}

/* ---- categories and names ---- */

static PyObject *as_text(PyObject *value)
{
    if (PyUnicode_Check(value))
        return Py_NewRef(value);
    PyObject *text = PyObject_Str(value);
    if (!text) {
        py_forget_error();
        text = PyUnicode_FromFormat("<%s>", Py_TYPE(value)->tp_name);
    }
    return text;
}

/* What the dictionary has for the text; *is_new says that `fresh` was put there. NULL: error. */
static void *find_or_put(PyObject *dict, PyObject *text, void *fresh)
{
    PyObject *capsule = PyCapsule_New(fresh, NULL, NULL);
    if (!capsule)
        return NULL;
    PyObject *there = PyDict_SetDefault(dict, text, capsule);
    void *found = there ? PyCapsule_GetPointer(there, NULL) : NULL;
    Py_DECREF(capsule);
    return found;
}

struct py_category *py_category_find(struct py_state *st, PyObject *value)
{
    PyObject *text = as_text(value);
    if (!text)
        return NULL;
    PyObject *there = PyDict_GetItemWithError(st->categories, text);
    struct py_category *found = there ? PyCapsule_GetPointer(there, NULL) : NULL;
    if (!there && !PyErr_Occurred()) {
        if (PyDict_GET_SIZE(st->categories) >= PY_NAMES_MAX) {
            Py_DECREF(text);
            return st->trace_category;
        }
        struct py_category *c = PyMem_Calloc(1, sizeof *c);
        PyObject *names = PyDict_New();
        if (c && names) {
            *c = (struct py_category){.text = Py_NewRef(text), .names = names};
            found = find_or_put(st->categories, text, c);
        }
        if (!c || found != c) {
            Py_XDECREF(names);
            if (c)
                Py_XDECREF(c->text);
            PyMem_Free(c);
            if (!found && !PyErr_Occurred())
                PyErr_NoMemory();
        }
    }
    Py_DECREF(text);
    return found;
}

static struct py_name *find_by_value(struct py_state *st, struct py_category *c, PyObject *text)
{
    PyObject *there = PyDict_GetItemWithError(c->names, text);
    if (there)
        return PyCapsule_GetPointer(there, NULL);
    if (PyErr_Occurred() || PyDict_GET_SIZE(c->names) >= PY_NAMES_MAX)
        return NULL;
    py_tasks_look(st); /* a new name is rare: a good moment to notice that asyncio was imported */
    struct py_name *n = PyMem_Calloc(1, sizeof *n);
    if (!n) {
        PyErr_NoMemory();
        return NULL;
    }
    *n = (struct py_name){.text = Py_NewRef(text), .category = c};
    struct py_name *found = find_or_put(c->names, text, n);
    if (found != n) {
        Py_DECREF(n->text);
        PyMem_Free(n);
    }
    return found;
}

struct py_name *py_name_find(struct py_state *st, struct py_category *c, PyObject *value)
{
    struct py_name *known = py_name_known(st, c, value);
    if (known)
        return known;
    PyObject *text = PyUnicode_CheckExact(value) ? Py_NewRef(value) : as_text(value);
    if (!text)
        return NULL;
    struct py_name *n = find_by_value(st, c, text);
#ifndef Py_GIL_DISABLED
    if (n && text == value) {
        struct py_cache_slot *slot = py_cache_slot(st, value);
        PyObject *old = slot->text;
        *slot = (struct py_cache_slot){Py_NewRef(text), c, n};
        Py_XDECREF(old);
    }
#endif
    Py_DECREF(text);
    return n;
}

static void free_names(PyObject *names)
{
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(names, &at, &key, &value)) {
        struct py_name *n = PyCapsule_GetPointer(value, NULL);
        Py_DECREF(n->text);
        PyMem_Free(n);
    }
}

void py_names_clear(struct py_state *st)
{
    for (size_t i = 0; i < PY_CACHE_SLOTS; i++)
        Py_CLEAR(st->cache[i].text);
    if (!st->categories)
        return;
    PyObject *key, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(st->categories, &at, &key, &value)) {
        struct py_category *c = PyCapsule_GetPointer(value, NULL);
        free_names(c->names);
        Py_DECREF(c->names);
        Py_DECREF(c->text);
        PyMem_Free(c);
    }
    Py_CLEAR(st->categories);
}
