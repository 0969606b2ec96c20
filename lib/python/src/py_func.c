/* Decorated functions: a callable that replaces the function and puts a slice around each call.
 *
 * Made by stave.trace_func and trace_func_args for plain functions (coroutines and generators are
 * wrapped in Python). It binds like a function, pickles by its name, and has the function's own
 * attributes by way of its dictionary, filled by functools.update_wrapper. Switched off, a call
 * costs one load and one more call. */
#include "py_stave.h"

#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <structmember.h>

struct func {
    PyObject_HEAD vectorcallfunc call;
    PyObject *function, *dict, *weak;
    struct py_name *name;
    struct py_state *state; /* the type holds the module, the module its state */
    struct stave_site *site;
    uint32_t track;
    bool with_args;
};

/* ---- names and values of arguments ---- */

struct signature {
    PyObject *code, *varnames, *defaults, *kwdefaults;
    Py_ssize_t n_positional, n_keyword;
    int flags;
};

static bool read_signature(PyObject *function, struct signature *s)
{
    if (!PyFunction_Check(function))
        return false;
    PyCodeObject *code = (PyCodeObject *)PyFunction_GET_CODE(function);
    *s = (struct signature){.code = (PyObject *)code,
                            .varnames = PyCode_GetVarnames(code),
                            .defaults = PyFunction_GET_DEFAULTS(function),
                            .kwdefaults = PyFunction_GET_KW_DEFAULTS(function),
                            .n_positional = code->co_argcount,
                            .n_keyword = code->co_kwonlyargcount,
                            .flags = code->co_flags};
    if (!s->varnames)
        py_forget_error();
    return s->varnames != NULL;
}

static PyObject *name_at(const struct signature *s, Py_ssize_t i)
{
    return PyTuple_GET_ITEM(s->varnames, i);
}

static void add_named(struct stave_args *a, PyObject *name, PyObject *value)
{
    PyObject *keep;
    py_add(a, py_c_text(name, PY_KEY_BYTES, &keep), value);
    Py_XDECREF(keep);
}

static bool is_given(PyObject *kwnames, PyObject *name)
{
    for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); i++)
        if (PyTuple_GET_ITEM(kwnames, i) == name ||
            PyUnicode_Compare(PyTuple_GET_ITEM(kwnames, i), name) == 0)
            return true;
    return false;
}

/* self is recorded as its type: its __repr__ may need what __init__ has not made yet. */
static void add_first(struct stave_args *a, PyObject *name, PyObject *value)
{
    if (PyUnicode_CompareWithASCIIString(name, "self") == 0)
        stave_args_text(a, "self", Py_TYPE(value)->tp_name);
    else
        add_named(a, name, value);
}

static void add_defaults(struct stave_args *a, const struct signature *s, Py_ssize_t n,
                         PyObject *kwnames)
{
    Py_ssize_t n_defaults = s->defaults ? PyTuple_GET_SIZE(s->defaults) : 0;
    Py_ssize_t first = s->n_positional - n_defaults;
    for (Py_ssize_t i = n > first ? n : first; i < s->n_positional; i++)
        if (!is_given(kwnames, name_at(s, i)))
            add_named(a, name_at(s, i), PyTuple_GET_ITEM(s->defaults, i - first));
    for (Py_ssize_t i = 0; s->kwdefaults && i < s->n_keyword; i++) {
        PyObject *name = name_at(s, s->n_positional + i);
        PyObject *value = is_given(kwnames, name) ? NULL
                                                  : PyDict_GetItemWithError(s->kwdefaults, name);
        if (value)
            add_named(a, name, value);
    }
}

static void add_rest(struct stave_args *a, PyObject *name, PyObject *const *args, Py_ssize_t n)
{
    PyObject *rest = PyTuple_New(n);
    for (Py_ssize_t i = 0; rest && i < n; i++)
        PyTuple_SET_ITEM(rest, i, Py_NewRef(args[i]));
    if (!rest)
        py_forget_error();
    else if (name)
        add_named(a, name, rest);
    else
        py_add(a, "args", rest);
    Py_XDECREF(rest);
}

static void add_arguments(struct stave_args *a, PyObject *function, PyObject *const *args,
                          Py_ssize_t n, PyObject *kwnames)
{
    struct signature s = {0};
    bool is_known = read_signature(function, &s);
    Py_ssize_t named = is_known ? (n < s.n_positional ? n : s.n_positional) : 0;
    for (Py_ssize_t i = 0; i < named; i++) {
        if (i == 0)
            add_first(a, name_at(&s, 0), args[0]);
        else
            add_named(a, name_at(&s, i), args[i]);
    }
    if (n > named) {
        bool has_name = is_known && s.flags & CO_VARARGS;
        add_rest(a, has_name ? name_at(&s, s.n_positional + s.n_keyword) : NULL, args + named,
                 n - named);
    }
    for (Py_ssize_t i = 0; kwnames && i < PyTuple_GET_SIZE(kwnames); i++)
        add_named(a, PyTuple_GET_ITEM(kwnames, i), args[n + i]);
    if (is_known)
        add_defaults(a, &s, n, kwnames);
    Py_XDECREF(s.varnames);
    if (PyErr_Occurred())
        py_forget_error();
}

/* ---- calls ---- */

static __attribute__((noinline)) uint64_t begin(struct func *f, uint32_t track,
                                                PyObject *const *args, Py_ssize_t n,
                                                PyObject *kwnames)
{
    uint64_t owner = track ? py_owner(track != f->track, true) : 0;
    if (__builtin_expect(!f->with_args, 1))
        return track ? py_begin(f->name, NULL, track, owner, NULL) : stave_i_begin0(f->site);
    struct stave_args a;
    stave_args_init(&a);
    add_arguments(&a, f->function, args, n, kwnames);
    return py_begin(f->name, NULL, track, owner, a.len ? &a : NULL);
}

/* The pending exception is saved while it is recorded. */
static __attribute__((noinline)) void end_failed(struct func *f, uint64_t begun, uint32_t track)
{
    PyObject *type, *value, *trace;
    struct stave_args a;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    stave_args_init(&a);
    if (type)
        py_add_exception(&a, type, value);
    py_end(f->name->category, begun, track, &a);
    PyErr_Restore(type, value, trace);
}

/* ---- recursion ----
 *
 * The interpreter calls a Python function from another one without any C stack, however deep
 * sys.setrecursionlimit() allows it. This callable is in between and needs some, of which the
 * interpreter knows nothing (3.11), or which it counts against a small limit of its own (3.12,
 * 3.13). */

enum { NEAR_BYTES = 32 << 10, MARGIN_BYTES = 512 << 10 };

static _Thread_local struct {
    uintptr_t first;     /* where the thread's first call was; further up there is space */
    uintptr_t low, high; /* the stack; 0: not asked yet */
    uintptr_t least;     /* what is below is for whoever is called */
} stack __attribute__((tls_model("initial-exec")));

static void measure_stack(void)
{
    pthread_attr_t attr;
    void *low = NULL;
    size_t size = 0;
    if (pthread_getattr_np(pthread_self(), &attr) == 0) {
        pthread_attr_getstack(&attr, &low, &size);
        pthread_attr_destroy(&attr);
    }
    size_t margin = size / 4 < MARGIN_BYTES ? size / 4 : MARGIN_BYTES;
    stack.low = low ? (uintptr_t)low : 1;
    stack.high = (uintptr_t)low + size;
    stack.least = (uintptr_t)low + margin;
}

/* False: an exception is set. A stack that is not the thread's own (coroutines of C libraries) is
 * not judged. */
static bool has_stack(void)
{
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    if (__builtin_expect(here > stack.first, 0))
        stack.first = here;
    if (__builtin_expect(stack.first - here < NEAR_BYTES, 1))
        return true;
    if (stack.low == 0)
        measure_stack();
    if (here >= stack.least || here < stack.low || here >= stack.high)
        return true;
    PyErr_SetString(PyExc_RecursionError,
                    "maximum recursion depth exceeded: traced calls have used the C stack");
    return false;
}

/* The call does not count against the limit of calls from C: has_stack() is exact, and the limit of
 * Python's frames holds as it does without us. */
static PyObject *call_function(const struct func *f, PyObject *const *args, size_t nargsf,
                               PyObject *kwnames)
{
#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030E0000
    enum { UNITS = 2 }; /* of an evaluation that C has called */
    PyThreadState *t = PyThreadState_Get();
    t->c_recursion_remaining += UNITS;
    PyObject *result = PyObject_Vectorcall(f->function, args, nargsf, kwnames);
    t->c_recursion_remaining -= UNITS;
    return result;
#else
    return PyObject_Vectorcall(f->function, args, nargsf, kwnames);
#endif
}

/* Apart: the frame of a call that is not recorded stays small. */
static __attribute__((noinline)) PyObject *call_recorded(struct func *f, PyObject *const *args,
                                                         size_t nargsf, PyObject *kwnames)
{
    uint32_t track = f->track ? f->track : py_tasks_row(f->state);
    py_name_thread(f->state);
    uint64_t begun = begin(f, track, args, PyVectorcall_NARGS(nargsf), kwnames);
    PyObject *result = call_function(f, args, nargsf, kwnames);
    if (__builtin_expect(!begun, 0))
        return result;
    if (__builtin_expect(result != NULL, 1))
        py_end(f->name->category, begun, track, NULL);
    else
        end_failed(f, begun, track);
    return result;
}

static PyObject *func_call(PyObject *self, PyObject *const *args, size_t nargsf, PyObject *kwnames)
{
    struct func *f = (struct func *)self;
    if (__builtin_expect(!has_stack(), 0))
        return NULL;
    return __builtin_expect(!py_is_on(f->site), 1) ? call_function(f, args, nargsf, kwnames)
                                                   : call_recorded(f, args, nargsf, kwnames);
}

static PyObject *func_get(PyObject *self, PyObject *obj, PyObject *type)
{
    (void)type;
    return obj && obj != Py_None ? PyMethod_New(self, obj) : Py_NewRef(self);
}

static PyObject *func_reduce(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyObject_GetAttrString(self, "__qualname__");
}

static PyObject *func_repr(PyObject *self)
{
    return PyUnicode_FromFormat("<traced %R>", ((struct func *)self)->function);
}

static int func_traverse(PyObject *self, visitproc visit, void *arg)
{
    struct func *f = (struct func *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(f->function);
    Py_VISIT(f->dict);
    return 0;
}

static int func_clear(PyObject *self)
{
    struct func *f = (struct func *)self;
    Py_CLEAR(f->dict);
    return 0;
}

static void func_free(PyObject *self)
{
    struct func *f = (struct func *)self;
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    if (f->weak)
        PyObject_ClearWeakRefs(self);
    Py_CLEAR(f->dict);
    Py_CLEAR(f->function);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyMemberDef func_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(struct func, call), READONLY, NULL},
    {"__dictoffset__", T_PYSSIZET, offsetof(struct func, dict), READONLY, NULL},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(struct func, weak), READONLY, NULL},
    {0}};
static PyMethodDef func_own_methods[] = {
    {"__reduce__", func_reduce, METH_NOARGS, "By its name, as functions are."}, {0}};
static PyGetSetDef func_getset[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, NULL, NULL}, {0}};
static PyType_Slot func_slots[] = {{Py_tp_call, PY_SLOT(PyVectorcall_Call)},
                                   {Py_tp_descr_get, PY_SLOT(func_get)},
                                   {Py_tp_repr, PY_SLOT(func_repr)},
                                   {Py_tp_traverse, PY_SLOT(func_traverse)},
                                   {Py_tp_clear, PY_SLOT(func_clear)},
                                   {Py_tp_dealloc, PY_SLOT(func_free)},
                                   {Py_tp_members, func_members},
                                   {Py_tp_methods, func_own_methods},
                                   {Py_tp_getset, func_getset},
                                   {Py_tp_doc, "A traced function."},
                                   {0, NULL}};
static PyType_Spec func_spec = {"_stave.TracedFunction", sizeof(struct func), 0,
                                Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL |
                                    Py_TPFLAGS_METHOD_DESCRIPTOR | Py_TPFLAGS_HAVE_GC |
                                    Py_TPFLAGS_DISALLOW_INSTANTIATION,
                                func_slots};

int py_func_init(struct py_state *st)
{
    st->func_type = (PyTypeObject *)PyType_FromModuleAndSpec(st->module, &func_spec, NULL);
    return st->func_type ? PyModule_AddType(st->module, st->func_type) : -1;
}

PyObject *py_func_new(struct py_state *st, PyObject *function, uint32_t track, bool with_args,
                      PyObject *name, PyObject *category)
{
    struct py_category *c = category == Py_None ? st->func_category
                                                : py_category_find(st, category);
    struct py_name *n = c ? py_name_find(st, c, name) : NULL;
    if (!n) { /* thousands of decorated functions: the rest share a name */
        PyObject *other = c && !PyErr_Occurred() ? PyUnicode_FromString("function") : NULL;
        n = other ? py_name_find(st, st->func_category, other) : NULL;
        Py_XDECREF(other);
        if (!n) {
            if (!PyErr_Occurred())
                PyErr_SetString(PyExc_RuntimeError, "stave: too many names");
            return NULL;
        }
    }
    struct func *f = PyObject_GC_New(struct func, st->func_type);
    if (!f)
        return NULL;
    f->call = func_call;
    f->function = Py_NewRef(function);
    f->dict = f->weak = NULL;
    f->name = n;
    f->state = st;
    f->track = track;
    f->with_args = with_args;
    f->site = py_site(n, track ? PY_BEGIN_ON : with_args ? PY_BEGIN_ARGS : PY_BEGIN);
    PyObject_GC_Track((PyObject *)f);
    return (PyObject *)f;
}

static PyObject *wrap(PyObject *module, PyObject *args)
{
    PyObject *function, *name, *category;
    unsigned track;
    int with_args;
    if (!PyArg_ParseTuple(args, "OIpOO", &function, &track, &with_args, &name, &category))
        return NULL;
    return py_func_new(py_state_of(module), function, track, with_args, name, category);
}

PyMethodDef py_func_methods[] = {
    {"wrap", wrap, METH_VARARGS,
     "wrap($module, function, track, with_args, name, category, /)\n--\n\nA traced function."},
    {0}};
