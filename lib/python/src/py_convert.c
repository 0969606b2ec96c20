/* Python values to arguments of an event.
 *
 * Called with the GIL before an event is recorded; fills a struct stave_args and keeps no object.
 * What a value's own code raises (__repr__, __str__, attributes, items) is written into the
 * argument and cleared; the program never sees it. Work is bounded: containers show 256 items and
 * how many more there are, texts 4096 characters, nesting 16 levels, and a full builder ends it. */
#include "py_stave.h"

#include <string.h>

enum {
    DEPTH_MAX = 16,
    ITEMS_MAX = 256,
    TEXT_MAX = 4096,
    REPR_MAX = 256,
    BYTES_MAX = 128,
    ARRAY_MAX = 16
};

static void add_value(struct stave_args *a, const char *key, PyObject *v, int depth);

/* A Ctrl-C that arrives inside a value's __repr__ is not ours to swallow: it is raised again at the
 * next chance. */
void py_forget_error(void)
{
    if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt))
        PyErr_SetInterrupt();
    PyErr_Clear();
}

const char *py_utf8(PyObject *text, Py_ssize_t *len, PyObject **keep)
{
    const char *utf8 = PyUnicode_AsUTF8AndSize(text, len);
    *keep = NULL;
    if (utf8)
        return utf8;
    PyErr_Clear(); /* a lone surrogate */
    *keep = PyUnicode_AsEncodedString(text, "utf-8", "backslashreplace");
    if (!*keep) {
        PyErr_Clear();
        *len = 1;
        return "?";
    }
    *len = PyBytes_GET_SIZE(*keep);
    return PyBytes_AS_STRING(*keep);
}

/* At most `max` bytes, whole characters, and what was cut. */
static void add_text(struct stave_args *a, const char *key, PyObject *text, Py_ssize_t max)
{
    Py_ssize_t len;
    PyObject *keep;
    const char *utf8 = py_utf8(text, &len, &keep);
    if (len <= max) {
        stave_args_text_n(a, key, utf8, (size_t)len);
    } else {
        char cut[TEXT_MAX + 64];
        Py_ssize_t n = max;
        while (n > 0 && ((unsigned char)utf8[n] & 0xc0) == 0x80)
            n--;
        memcpy(cut, utf8, (size_t)n);
        int more = PyOS_snprintf(cut + n, 64, "... (%zd more bytes)", len - n);
        stave_args_text_n(a, key, cut, (size_t)(n + more));
    }
    Py_XDECREF(keep);
}

static void add_format(struct stave_args *a, const char *key, PyObject *text)
{
    if (text)
        add_text(a, key, text, TEXT_MAX);
    else
        py_forget_error();
    Py_XDECREF(text);
}

/* "ValueError" of the error that is set, which is forgotten. */
static void add_failure(struct stave_args *a, const char *key, PyObject *v, const char *what)
{
    PyObject *type = PyErr_Occurred(); /* borrowed, and a type outlives this */
    const char *name = type ? ((PyTypeObject *)type)->tp_name : "?";
    char text[256];
    int n = PyOS_snprintf(text, sizeof text, "<%.100s: %s raised %.100s>", Py_TYPE(v)->tp_name,
                          what, name);
    py_forget_error();
    stave_args_text_n(a, key, text, (size_t)n);
}

static void add_repr(struct stave_args *a, const char *key, PyObject *v)
{
    PyObject *text = PyObject_Repr(v);
    if (!text) {
        add_failure(a, key, v, "__repr__");
        return;
    }
    add_text(a, key, text, REPR_MAX);
    Py_DECREF(text);
}

static void add_int(struct stave_args *a, const char *key, PyObject *v)
{
    int overflow;
    long long i = PyLong_AsLongLongAndOverflow(v, &overflow);
    if (!overflow) {
        stave_args_int(a, key, i);
        return;
    }
    if (overflow > 0) {
        unsigned long long u = PyLong_AsUnsignedLongLong(v);
        if (!PyErr_Occurred()) {
            stave_args_uint(a, key, u);
            return;
        }
        PyErr_Clear();
    }
    PyObject *text = PyObject_Str(v); /* fails past 4300 digits: then as a hexadecimal number */
    if (!text) {
        py_forget_error();
        text = PyNumber_ToBase(v, 16);
    }
    if (text)
        add_text(a, key, text, TEXT_MAX);
    else
        add_failure(a, key, v, "__str__");
    Py_XDECREF(text);
}

/* ---- containers ---- */

static bool is_full(const struct stave_args *a)
{
    return a->dropped || a->count[a->depth] != a->kept[a->depth];
}

/* What is left of the open container: counted, not looked at. */
static void add_more(struct stave_args *a, Py_ssize_t items)
{
    if (items > 0)
        stave_args_more(a, items < UINT32_MAX / 2 ? (uint32_t)items : UINT32_MAX / 2);
}

static void add_sequence(struct stave_args *a, const char *key, PyObject *v, int depth)
{
    PyObject *items = PySequence_Fast(v, "");
    if (!items) {
        add_failure(a, key, v, "__iter__");
        return;
    }
    stave_args_list(a, key);
    Py_ssize_t n = PySequence_Fast_GET_SIZE(items), i = 0;
    for (; i < n && i < ITEMS_MAX && !is_full(a); i++) {
        if (i >= PySequence_Fast_GET_SIZE(items)) /* a __repr__ made the list shorter */
            break;
        PyObject *item = Py_NewRef(PySequence_Fast_GET_ITEM(items, i));
        add_value(a, NULL, item, depth + 1);
        Py_DECREF(item);
    }
    add_more(a, n - i);
    stave_args_end(a);
    Py_DECREF(items);
}

/* Sets, and whatever has a length and can be walked. */
static void add_iterable(struct stave_args *a, const char *key, PyObject *v, int depth)
{
    Py_ssize_t n = PyObject_Size(v), i = 0;
    PyObject *it = n < 0 ? NULL : PyObject_GetIter(v);
    if (!it) {
        add_failure(a, key, v, "__iter__");
        return;
    }
    stave_args_list(a, key);
    while (i < ITEMS_MAX && !is_full(a)) {
        PyObject *item = PyIter_Next(it);
        if (!item)
            break;
        add_value(a, NULL, item, depth + 1);
        Py_DECREF(item);
        i++;
    }
    if (PyErr_Occurred())
        py_forget_error();
    add_more(a, n - i);
    stave_args_end(a);
    Py_DECREF(it);
}

static void add_pair(struct stave_args *a, PyObject *key, PyObject *value, int depth)
{
    PyObject *text = PyUnicode_Check(key) ? Py_NewRef(key) : PyObject_Str(key), *keep = NULL;
    if (!text)
        py_forget_error();
    add_value(a, text ? py_c_text(text, PY_KEY_BYTES, &keep) : "?", value, depth);
    Py_XDECREF(keep);
    Py_XDECREF(text);
}

/* Items of a dictionary into what is open. A value's code may change it meanwhile: then the copy
 * continues. */
static void add_items(struct stave_args *a, PyObject *dict, int depth)
{
    PyObject *items = PyDict_Items(dict);
    if (!items) {
        py_forget_error();
        return;
    }
    Py_ssize_t n = PyList_GET_SIZE(items), i = 0;
    for (; i < n && i < ITEMS_MAX && !is_full(a); i++) {
        PyObject *pair = PyList_GET_ITEM(items, i);
        add_pair(a, PyTuple_GET_ITEM(pair, 0), PyTuple_GET_ITEM(pair, 1), depth + 1);
    }
    add_more(a, n - i);
    Py_DECREF(items);
}

static void add_dict(struct stave_args *a, const char *key, PyObject *v, int depth)
{
    stave_args_dict(a, key);
    if (a->dropped == 0)
        add_items(a, v, depth);
    stave_args_end(a);
}

void py_add_pairs(struct stave_args *a, PyObject *dict)
{
    add_items(a, dict, -1);
}

/* ---- objects ---- */

static PyObject *attribute(PyObject *v, const char *name)
{
    PyObject *value = PyObject_GetAttrString(v, name);
    if (!value)
        py_forget_error();
    return value;
}

/* dataclasses and named tuples: their fields by name. */
static void add_fields(struct stave_args *a, const char *key, PyObject *v, PyObject *names,
                       int depth)
{
    stave_args_dict(a, key);
    PyObject *it = PyObject_GetIter(names), *name;
    Py_ssize_t n = it ? PyObject_Size(names) : 0, i = 0;
    for (; it && !is_full(a) && i < ITEMS_MAX && (name = PyIter_Next(it)); i++) {
        PyObject *value = PyObject_GetAttr(v, name);
        if (value)
            add_pair(a, name, value, depth + 1);
        else
            py_forget_error();
        Py_XDECREF(value);
        Py_DECREF(name);
    }
    if (PyErr_Occurred())
        py_forget_error();
    Py_XDECREF(it);
    add_more(a, n - i);
    stave_args_end(a);
}

static void add_attribute_text(struct stave_args *a, const char *key, PyObject *v)
{
    PyObject *value = attribute(v, key), *text = value ? PyObject_Str(value) : NULL;
    if (text)
        add_text(a, key, text, REPR_MAX);
    else if (PyErr_Occurred())
        py_forget_error();
    Py_XDECREF(text);
    Py_XDECREF(value);
}

/* Arrays and tensors: what they are. Their data is touched only where it is a few numbers of the
 * host's. */
static bool add_array(struct stave_args *a, const char *key, PyObject *v, int depth)
{
    bool is_numpy = strncmp(Py_TYPE(v)->tp_name, "numpy.", 6) == 0;
    PyObject *shape = attribute(v, "shape");
    if (!shape)
        return false;
    PyObject *list = NULL;
    if (is_numpy) {
        PyObject *size = attribute(v, "size");
        long long n = size && PyLong_Check(size) ? PyLong_AsLongLong(size) : ARRAY_MAX + 1;
        Py_XDECREF(size);
        if (n >= 0 && n <= ARRAY_MAX)
            list = PyObject_CallMethod(v, "tolist", NULL);
        if (PyErr_Occurred())
            py_forget_error();
    }
    if (list) {
        add_value(a, key, list, depth + 1);
    } else {
        stave_args_dict(a, key);
        PyObject *sizes = PySequence_List(shape);
        if (sizes)
            add_value(a, "shape", sizes, depth + 1);
        else
            py_forget_error();
        Py_XDECREF(sizes);
        add_attribute_text(a, "dtype", v);
        if (!is_numpy)
            add_attribute_text(a, "device", v);
        stave_args_end(a);
    }
    Py_XDECREF(list);
    Py_DECREF(shape);
    return true;
}

static bool type_has(PyObject *v, const char *name)
{
    PyObject *value = PyObject_GetAttrString((PyObject *)Py_TYPE(v), name);
    if (!value)
        PyErr_Clear();
    Py_XDECREF(value);
    return value != NULL;
}

static bool is_enum(PyObject *v)
{
    PyObject *meta = (PyObject *)Py_TYPE(Py_TYPE(v));
    return meta != (PyObject *)&PyType_Type &&
           strcmp(((PyTypeObject *)meta)->tp_name, "EnumType") == 0;
}

static void add_enum(struct stave_args *a, const char *key, PyObject *v)
{
    PyObject *name = attribute(v, "name");
    if (name && PyUnicode_Check(name))
        add_format(a, key, PyUnicode_FromFormat("%s.%U", Py_TYPE(v)->tp_name, name));
    else
        add_repr(a, key, v);
    Py_XDECREF(name);
}

static bool add_named(struct stave_args *a, const char *key, PyObject *v)
{
    if (!PyType_Check(v) && !PyFunction_Check(v) && !PyCFunction_Check(v))
        return false;
    PyObject *name = attribute(v, "__qualname__");
    bool ok = name && PyUnicode_Check(name);
    if (ok)
        add_text(a, key, name, REPR_MAX);
    Py_XDECREF(name);
    return ok;
}

/* Subclasses of the plain types and everything else. */
static void add_object(struct stave_args *a, const char *key, PyObject *v, int depth)
{
    PyObject *fields = NULL;
    if (is_enum(v)) {
        add_enum(a, key, v);
    } else if (PyTuple_Check(v) && type_has(v, "_fields") && (fields = attribute(v, "_fields"))) {
        add_fields(a, key, v, fields, depth);
    } else if (PyType_HasFeature(Py_TYPE(v), Py_TPFLAGS_UNICODE_SUBCLASS)) {
        add_text(a, key, v, TEXT_MAX);
    } else if (PyLong_Check(v)) {
        add_int(a, key, v);
    } else if (PyFloat_Check(v)) {
        stave_args_double(a, key, PyFloat_AS_DOUBLE(v));
    } else if (PyDict_Check(v)) {
        add_dict(a, key, v, depth);
    } else if (PyList_Check(v) || PyTuple_Check(v)) {
        add_sequence(a, key, v, depth);
    } else if (PyAnySet_Check(v)) {
        add_iterable(a, key, v, depth);
    } else if (PyExceptionInstance_Check(v)) {
        PyObject *text = PyObject_Str(v);
        if (text)
            add_format(a, key, PyUnicode_FromFormat("%s: %U", Py_TYPE(v)->tp_name, text));
        else
            add_failure(a, key, v, "__str__");
        Py_XDECREF(text);
    } else if (type_has(v, "__dataclass_fields__") &&
               (fields = attribute(v, "__dataclass_fields__"))) {
        add_fields(a, key, v, fields, depth);
    } else if (type_has(v, "shape") && type_has(v, "dtype") && add_array(a, key, v, depth)) {
        /* done */
    } else if (!add_named(a, key, v)) {
        add_repr(a, key, v);
    }
    Py_XDECREF(fields);
}

static void add_bytes(struct stave_args *a, const char *key, PyObject *v)
{
    Py_ssize_t n = PyBytes_GET_SIZE(v);
    if (n <= BYTES_MAX) {
        add_repr(a, key, v);
        return;
    }
    PyObject *head = PyBytes_FromStringAndSize(PyBytes_AS_STRING(v), BYTES_MAX);
    if (head)
        add_format(a, key, PyUnicode_FromFormat("%R... (%zd more bytes)", head, n - BYTES_MAX));
    else
        py_forget_error();
    Py_XDECREF(head);
}

static void add_value(struct stave_args *a, const char *key, PyObject *v, int depth)
{
    PyTypeObject *type = Py_TYPE(v);
    if (type == &PyLong_Type)
        add_int(a, key, v);
    else if (type == &PyUnicode_Type)
        add_text(a, key, v, TEXT_MAX);
    else if (type == &PyFloat_Type)
        stave_args_double(a, key, PyFloat_AS_DOUBLE(v));
    else if (type == &PyBool_Type)
        stave_args_bool(a, key, v == Py_True);
    else if (v == Py_None)
        stave_args_null(a, key);
    else if (depth >= DEPTH_MAX)
        stave_args_text_n(a, key, "...", 3);
    else if (type == &PyList_Type || type == &PyTuple_Type)
        add_sequence(a, key, v, depth);
    else if (type == &PyDict_Type)
        add_dict(a, key, v, depth);
    else if (type == &PyBytes_Type)
        add_bytes(a, key, v);
    else
        add_object(a, key, v, depth);
}

void py_add(struct stave_args *a, const char *key, PyObject *value)
{
    add_value(a, key, value, 0);
}

/* How iterators and generators end is no failure. */
static bool is_normal_end(PyObject *type)
{
    return PyErr_GivenExceptionMatches(type, PyExc_StopIteration) ||
           PyErr_GivenExceptionMatches(type, PyExc_StopAsyncIteration) ||
           PyErr_GivenExceptionMatches(type, PyExc_GeneratorExit);
}

void py_add_exception(struct stave_args *a, PyObject *type, PyObject *value)
{
    if (is_normal_end(type))
        return;
    PyObject *text = value && value != Py_None ? PyObject_Str(value) : NULL;
    if (PyErr_Occurred())
        py_forget_error();
    const char *name = PyType_Check(type) ? ((PyTypeObject *)type)->tp_name : "?";
    if (text && PyUnicode_GET_LENGTH(text) > 0)
        add_format(a, "exception", PyUnicode_FromFormat("%s: %U", name, text));
    else
        stave_args_text(a, "exception", name);
    Py_XDECREF(text);
}

/* ---- flows ---- */

static void add_flow(struct stave_args *a, PyObject *v)
{
    PyObject *number = PyNumber_Index(v); /* a flow object is its number */
    unsigned long long id = number ? PyLong_AsUnsignedLongLongMask(number) : 0;
    if (PyErr_Occurred())
        py_forget_error();
    else
        stave_args_flow(a, STAVE_FLOW_OUT, id);
    Py_XDECREF(number);
}

void py_add_flows(struct stave_args *a, PyObject *flows)
{
    if (flows == Py_None)
        return;
    if (!PyList_Check(flows) && !PyTuple_Check(flows) && !PyAnySet_Check(flows)) {
        add_flow(a, flows);
        return;
    }
    PyObject *it = PyObject_GetIter(flows), *item;
    while (it && (item = PyIter_Next(it))) {
        add_flow(a, item);
        Py_DECREF(item);
    }
    if (PyErr_Occurred())
        py_forget_error();
    Py_XDECREF(it);
}

PyObject *py_new_flows(long n)
{
    PyObject *list = PyList_New(0);
    for (long i = 0; list && i < n; i++) {
        PyObject *id = PyLong_FromUnsignedLongLong(stave_flow_new());
        if (!id || PyList_Append(list, id) < 0)
            Py_CLEAR(list);
        Py_XDECREF(id);
    }
    return list;
}

/* ---- calls ---- */

static bool is_word(PyObject *key, PyObject *word)
{
    return key == word || (PyUnicode_GET_LENGTH(key) == PyUnicode_GET_LENGTH(word) &&
                           PyUnicode_Compare(key, word) == 0);
}

static PyObject *read_outgoing(PyObject *value)
{
    long n = PyLong_AsLong(value);
    if ((n == -1 && PyErr_Occurred()) || n < 0 || n > 4096) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "num_outgoing_flow_ids: expected 0 to 4096");
        py_value_is_wrong(value);
        n = 0;
    }
    return py_new_flows(n);
}

PyObject *py_call_outgoing(struct py_state *st, PyObject *const *args, Py_ssize_t n,
                           PyObject *kwnames)
{
    for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); i++)
        if (is_word(PyTuple_GET_ITEM(kwnames, i), st->w_outgoing))
            return read_outgoing(args[n + i]);
    return NULL;
}

static bool read_keyword(struct py_state *st, struct py_call *c, struct stave_args *a,
                         PyObject *key, PyObject *value)
{
    /* The longest words first: most keys differ in length from all of them. */
    if (is_word(key, st->w_category)) {
        c->category = py_category_find(st, value);
        return c->category != NULL;
    }
    if (is_word(key, st->w_outgoing)) {
        Py_XSETREF(c->outgoing, read_outgoing(value));
        if (c->outgoing)
            py_add_flows(a, c->outgoing);
        return c->outgoing != NULL;
    }
    if (is_word(key, st->w_flow) || is_word(key, st->w_incoming)) {
        py_add_flows(a, value);
        return true;
    }
    PyObject *keep;
    py_add(a, py_c_text(key, PY_KEY_BYTES, &keep), value);
    Py_XDECREF(keep);
    return true;
}

/* Positional ones: the items of a dictionary become arguments, others go into a list named args. */
static void read_positional(struct stave_args *a, PyObject *const *args, Py_ssize_t n)
{
    bool has_list = false;
    for (Py_ssize_t i = 0; i < n; i++) {
        if (PyDict_Check(args[i]))
            py_add_pairs(a, args[i]);
        else if (args[i] != Py_None)
            has_list = true;
    }
    if (!has_list)
        return;
    stave_args_list(a, "args");
    for (Py_ssize_t i = 0; i < n && !is_full(a); i++)
        if (!PyDict_Check(args[i]))
            add_value(a, NULL, args[i], 1);
    stave_args_end(a);
}

bool py_call_read(struct py_state *st, struct py_call *c, struct stave_args *a,
                  PyObject *const *args, Py_ssize_t n, PyObject *kwnames, Py_ssize_t first)
{
    if (n > first)
        read_positional(a, args + first, n - first);
    Py_ssize_t n_words = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
    for (Py_ssize_t i = 0; i < n_words; i++)
        if (!read_keyword(st, c, a, PyTuple_GET_ITEM(kwnames, i), args[n + i]))
            return false;
    return true;
}
