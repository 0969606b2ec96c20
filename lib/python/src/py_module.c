/* The module _stave: its functions, its state, its initialisation.
 *
 * One state per interpreter (multi-phase initialisation); nothing here is static but tables. Start,
 * flush and stop wait for the writer, which needs no GIL: they let go of it meanwhile. */
#include "py_stave.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

const uint32_t *py_gate;

struct py_usual py_usual;

/* Interpreters with a GIL each may come at the same time: the first one has the place until its
 * module goes. */
static _Atomic int has_usual;

static void set_usual(PyObject *module)
{
    if (atomic_exchange(&has_usual, 1))
        return;
    __atomic_store_n(&py_usual.state, PyModule_GetState(module), __ATOMIC_RELAXED);
    __atomic_store_n(&py_usual.module, module, __ATOMIC_RELEASE);
}

static void forget_usual(PyObject *module)
{
    if (__atomic_load_n(&py_usual.module, __ATOMIC_RELAXED) != module)
        return;
    __atomic_store_n(&py_usual.module, NULL, __ATOMIC_RELEASE);
    atomic_store(&has_usual, 0);
}

struct py_state *py_state_of_type(PyTypeObject *type)
{
    return PyType_GetModuleState(type);
}

/* ---- the session ---- */

/* When the interpreter has ended: after a KeyboardInterrupt that nobody caught it raises SIGINT
 * again, by its default action, and the library's own end is not reached. */
static void finish_with_interpreter(void)
{
    static _Atomic int is_known;
    if (!atomic_exchange(&is_known, 1))
        Py_AtExit(stave_finish);
}

static PyObject *start(PyObject *module, PyObject *args, PyObject *kwargs)
{
    (void)module;
    static char *words[] = {"out",     "categories", "buffer_bytes",   "full",         "compress",
                            "keep_ms", "after_ms",   "trigger_signal", "trigger_name", "trigger_ms",
                            NULL};
    const char *out = NULL, *categories = NULL, *compress = NULL, *trigger_name = NULL;
    Py_ssize_t buffer_bytes = 0;
    int full = 0, trigger_signal = 0, status;
    unsigned long long keep_ms = 0, after_ms = 0, trigger_ms = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|zznizKKizK", words, &out, &categories,
                                     &buffer_bytes, &full, &compress, &keep_ms, &after_ms,
                                     &trigger_signal, &trigger_name, &trigger_ms))
        return NULL;
    struct stave_options o = {.size = sizeof o,
                              .out = out,
                              .categories = categories,
                              .buffer_bytes = (size_t)buffer_bytes,
                              .full = (enum stave_full)full,
                              .compress = compress,
                              .keep_ms = keep_ms,
                              .after_ms = after_ms,
                              .trigger_signal = trigger_signal,
                              .trigger_name = trigger_name,
                              .trigger_ms = trigger_ms,
                              .quiet = true}; /* it becomes an exception */
    struct stave_error error;
    Py_BEGIN_ALLOW_THREADS status = stave_start(&o, &error);
    Py_END_ALLOW_THREADS py_name_again();
    if (status == 0)
        Py_RETURN_NONE;
    return PyUnicode_DecodeFSDefault(error.text);
}

static PyObject *flush(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    int status;
    Py_BEGIN_ALLOW_THREADS status = stave_flush();
    Py_END_ALLOW_THREADS return PyLong_FromLong(status);
}

static PyObject *stop(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    int status;
    Py_BEGIN_ALLOW_THREADS status = stave_stop();
    Py_END_ALLOW_THREADS return PyLong_FromLong(status);
}

/* Before os._exit(). */
static PyObject *finish(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    Py_BEGIN_ALLOW_THREADS stave_finish();
    Py_END_ALLOW_THREADS Py_RETURN_NONE;
}

static PyObject *trigger(PyObject *module, PyObject *args)
{
    (void)module;
    const char *reason = "";
    int number;
    if (!PyArg_ParseTuple(args, "|s", &reason))
        return NULL;
    Py_BEGIN_ALLOW_THREADS number = stave_trigger(reason);
    Py_END_ALLOW_THREADS return PyLong_FromLong(number);
}

static PyObject *enabled(PyObject *module, PyObject *args)
{
    (void)module;
    const char *category = NULL;
    if (!PyArg_ParseTuple(args, "|z", &category))
        return NULL;
    return PyBool_FromLong(stave_enabled(category));
}

static PyObject *categories(PyObject *module, PyObject *args)
{
    (void)module;
    const char *globs;
    if (!PyArg_ParseTuple(args, "s", &globs))
        return NULL;
    stave_set_categories(globs);
    Py_RETURN_NONE;
}

static PyObject *counts(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    struct stave_counts c = {.size = sizeof c};
    stave_count(&c);
    return Py_BuildValue("{sKsKsKsKsKsK}", "events", (unsigned long long)c.events, "lost_full",
                         (unsigned long long)c.lost_full, "lost_nested",
                         (unsigned long long)c.lost_nested, "lost_ring",
                         (unsigned long long)c.lost_ring, "lost_output",
                         (unsigned long long)c.lost_output, "lost_overwritten",
                         (unsigned long long)c.lost_overwritten);
}

static PyObject *now_ns(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromLongLong(stave_now_ns());
}

static PyObject *flow_new(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromUnsignedLongLong(stave_flow_new());
}

static PyObject *session(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyUnicode_DecodeFSDefault(stave_session());
}

/* ---- tracks ---- */

static PyObject *track_new(PyObject *module, PyObject *args)
{
    (void)module;
    unsigned parent;
    struct py_text name = {0};
    if (!PyArg_ParseTuple(args, "IO&", &parent, py_name_arg, &name))
        return NULL;
    stave_track_t track = stave_track(parent, name.text);
    py_text_free(&name);
    return PyLong_FromUnsignedLong(track);
}

static PyObject *counter_new(PyObject *module, PyObject *args)
{
    (void)module;
    unsigned parent;
    struct py_text name = {0}, unit = {0};
    if (!PyArg_ParseTuple(args, "IO&O&", &parent, py_name_arg, &name, py_name_arg, &unit))
        return NULL;
    stave_track_t track = stave_counter(parent, name.text, unit.text);
    py_text_free(&name);
    py_text_free(&unit);
    return PyLong_FromUnsignedLong(track);
}

static PyObject *async_new(PyObject *module, PyObject *args)
{
    (void)module;
    unsigned parent;
    struct py_text name = {0};
    unsigned long long id;
    if (!PyArg_ParseTuple(args, "IO&K", &parent, py_name_arg, &name, &id))
        return NULL;
    stave_track_t track = stave_async(parent, name.text, id);
    py_text_free(&name);
    return PyLong_FromUnsignedLong(track);
}

static PyObject *track_order(PyObject *module, PyObject *args)
{
    (void)module;
    unsigned track;
    long long order;
    if (!PyArg_ParseTuple(args, "IL", &track, &order))
        return NULL;
    stave_set_track_order(track, order);
    Py_RETURN_NONE;
}

/* ---- events ---- */

static PyObject *trace(PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    if (__builtin_expect(!py_records(), 1))
        return Py_NewRef(py_state_of(module)->off);
    return py_trace(py_state_of(module), 0, args, n, kwnames);
}

static PyObject *instant(PyObject *module, PyObject *const *args, Py_ssize_t n, PyObject *kwnames)
{
    return py_instant(py_state_of(module), 0, args, n, kwnames);
}

static void emit_instant(struct py_call *c, struct py_name *n, uint64_t track,
                         const struct stave_args *a)
{
    uint64_t args = a->len ? (uintptr_t)a : 0;
    if (n) {
        struct stave_site *site = py_site(n, track  ? PY_INSTANT_ON
                                             : args ? PY_INSTANT_ARGS
                                                    : PY_INSTANT);
        if (!py_is_on(site))
            return;
        if (track)
            stave_i_emit(site, (uint64_t[]){track, args});
        else if (args)
            stave_i_emit(site, &args);
        else
            stave_i_instant0(site);
        return;
    }
    PyObject *keep = NULL, *name = PyObject_Str(c->name);
    if (name)
        stave_i_emit(py_category_site(c->category, PY_INSTANT_ON_DYN),
                     (uint64_t[]){track, (uintptr_t)py_c_text(name, PY_NAME_BYTES, &keep), args});
    else
        py_forget_error();
    Py_XDECREF(keep);
    Py_XDECREF(name);
}

PyObject *py_instant(struct py_state *st, uint32_t track, PyObject *const *args, Py_ssize_t n,
                     PyObject *kwnames)
{
    struct py_call c = {.category = st->trace_category};
    if (n < 1) {
        PyErr_SetString(PyExc_TypeError, "instant() needs a name");
        return NULL;
    }
    if (__builtin_expect(!py_records(), 1)) {
        c.outgoing = kwnames ? py_call_outgoing(st, args, n, kwnames) : NULL;
    } else {
        struct stave_args a;
        stave_args_init(&a);
        c.name = args[0];
        if (py_call_read(st, &c, &a, args, n, kwnames, 1)) {
            struct py_name *name = py_name_find(st, c.category, args[0]);
            py_name_thread(st);
            if (name || !PyErr_Occurred())
                emit_instant(&c, name, track ? track : py_tasks_row(st), &a);
        }
    }
    if (__builtin_expect(PyErr_Occurred() != NULL, 0)) {
        Py_XDECREF(c.outgoing);
        return NULL;
    }
    return c.outgoing ? c.outgoing : Py_NewRef(Py_None);
}

/* ---- initialisation and removal ---- */

#define EVENT_WORDS "category='python', flow=None, incoming_flow_ids=None"

/* The first line of each is its signature, for inspect.signature(). */
static PyMethodDef methods[] = {
    {"trace", PY_FUNCTION(trace), METH_FASTCALL | METH_KEYWORDS,
     "trace($module, name, /, *args, " EVENT_WORDS ", **kwargs)\n--\n\n"
     "A slice: `with stave.trace(\"matmul\", size=1024): …`"},
    {"instant", PY_FUNCTION(instant), METH_FASTCALL | METH_KEYWORDS,
     "instant($module, name, /, *args, " EVENT_WORDS ", num_outgoing_flow_ids=0, **kwargs)\n--\n\n"
     "A moment. Returns the new flow numbers that were asked for, else None."},
    {"start", PY_FUNCTION(start), METH_VARARGS | METH_KEYWORDS,
     "start($module, out=None, categories=None, buffer_bytes=0, full=0, compress=None, keep_ms=0, "
     "after_ms=0, trigger_signal=0, trigger_name=None, trigger_ms=0)\n--\n\n"
     "None, or why it failed."},
    {"flush", flush, METH_NOARGS,
     "flush($module)\n--\n\nEverything recorded so far is in the (growing) file."},
    {"stop", stop, METH_NOARGS, "stop($module)\n--\n\nThe file is complete and has its name."},
    {"finish", finish, METH_NOARGS,
     "finish($module)\n--\n\nWhat happens by itself at a normal exit."},
    {"trigger", trigger, METH_VARARGS,
     "trigger($module, reason='', /)\n--\n\n"
     "The flight recorder writes its next file; returns its number."},
    {"enabled", enabled, METH_VARARGS,
     "enabled($module, category=None, /)\n--\n\n"
     "Is it recorded? To skip expensive preparation. None: is anything recorded?"},
    {"categories", categories, METH_VARARGS,
     "categories($module, globs, /)\n--\n\nWhat is recorded from now on: \"nn.*,-io\"."},
    {"counts", counts, METH_NOARGS,
     "counts($module)\n--\n\nEvents written, and lost by cause, as a dictionary."},
    {"now_ns", now_ns, METH_NOARGS,
     "now_ns($module)\n--\n\nCLOCK_MONOTONIC in nanoseconds: what complete() takes."},
    {"session", session, METH_NOARGS, "session($module)\n--\n\nIts directory, or \"\"."},
    {"flow_new", flow_new, METH_NOARGS, "flow_new($module)\n--\n\nThe number of a new flow."},
    {"track_new", track_new, METH_VARARGS,
     "track_new($module, parent, name, /)\n--\n\nThe number of a track."},
    {"counter_new", counter_new, METH_VARARGS,
     "counter_new($module, parent, name, unit, /)\n--\n\nThe number of a counter's track."},
    {"async_new", async_new, METH_VARARGS,
     "async_new($module, parent, name, id, /)\n--\n\nThe number of a row of an id."},
    {"track_order", track_order, METH_VARARGS,
     "track_order($module, track, order, /)\n--\n\nIts position among its siblings."},
    {0}};

static int add_words(struct py_state *st)
{
    st->w_category = PyUnicode_InternFromString("category");
    st->w_flow = PyUnicode_InternFromString("flow");
    st->w_incoming = PyUnicode_InternFromString("incoming_flow_ids");
    st->w_outgoing = PyUnicode_InternFromString("num_outgoing_flow_ids");
    st->w_stave_row = PyUnicode_InternFromString("_stave_row");
    return st->w_category && st->w_flow && st->w_incoming && st->w_outgoing && st->w_stave_row ? 0
                                                                                               : -1;
}

static struct py_category *own_category(struct py_state *st, const char *text)
{
    PyObject *str = PyUnicode_InternFromString(text);
    struct py_category *c = str ? py_category_find(st, str) : NULL;
    Py_XDECREF(str);
    return c;
}

/* The process may have had a libstave before: an older one may lack what the headers of this build
 * declare. */
static int check_library(void)
{
    Dl_info where = {0};
    const char *text = stave_version();
    char *end;
    unsigned long major = strtoul(text, &end, 10), minor = *end ? strtoul(end + 1, NULL, 10) : 0;
    if (major == STAVE_VERSION_MAJOR && minor >= STAVE_VERSION_MINOR)
        return 0;
    dladdr((const void *)(uintptr_t)text, &where);
    PyErr_Format(PyExc_ImportError,
                 "this process has loaded libstave %s (%s), but the Python package needs %d.%d or "
                 "later; update the former, or import stave first",
                 text, where.dli_fname ? where.dli_fname : "unknown file", STAVE_VERSION_MAJOR,
                 STAVE_VERSION_MINOR);
    return -1;
}

static int exec(PyObject *module)
{
    struct py_state *st = py_state_of(module);
    if (check_library() < 0)
        return -1;
    __atomic_store_n(&py_gate, stave_i_gate(),
                     __ATOMIC_RELAXED);     /* the same for all interpreters */
    stave_i_default_full(STAVE_FULL_BLOCK); /* also where STAVE_OUT has started the session */
    st->module = module;
    set_usual(module);
    st->auto_index = -1;
    st->categories = PyDict_New();
    if (!st->categories || add_words(st) < 0)
        return -1;
    st->trace_category = own_category(st, "python");
    st->func_category = own_category(st, "function");
    st->count_category = own_category(st, "counter");
    if (!st->trace_category || !st->func_category || !st->count_category)
        return -1;
    if (PyModule_AddFunctions(module, py_func_methods) < 0 ||
        PyModule_AddFunctions(module, py_tasks_methods) < 0 ||
        PyModule_AddFunctions(module, py_text_methods) < 0 ||
        PyModule_AddFunctions(module, py_auto_methods) < 0 ||
        PyModule_AddFunctions(module, py_trace_writer_methods) < 0)
        return -1;
    if (py_slice_init(st) < 0 || py_func_init(st) < 0 || py_track_init(st) < 0 ||
        py_file_init(st) < 0)
        return -1;
    finish_with_interpreter();
    py_text_init();
    return PyModule_AddStringConstant(module, "version", stave_version());
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    struct py_state *st = py_state_of(module);
    if (!st)
        return 0;
    Py_VISIT(st->slice_type);
    Py_VISIT(st->off_type);
    Py_VISIT(st->special_type);
    Py_VISIT(st->func_type);
    Py_VISIT(st->track_type);
    Py_VISIT(st->counter_type);
    Py_VISIT(st->file_type);
    Py_VISIT(st->get_loop);
    Py_VISIT(st->current_task);
    Py_VISIT(st->new_row);
    Py_VISIT(st->name_thread);
    Py_VISIT(st->auto_filter);
    return py_slice_traverse(st, visit, arg);
}

static int clear(PyObject *module)
{
    struct py_state *st = py_state_of(module);
    if (!st)
        return 0;
    py_auto_clear(st);
    py_slice_clear(st);
    Py_CLEAR(st->off);
    Py_CLEAR(st->slice_type);
    Py_CLEAR(st->off_type);
    Py_CLEAR(st->special_type);
    Py_CLEAR(st->func_type);
    Py_CLEAR(st->track_type);
    Py_CLEAR(st->counter_type);
    Py_CLEAR(st->file_type);
    Py_CLEAR(st->get_loop);
    Py_CLEAR(st->current_task);
    Py_CLEAR(st->new_row);
    Py_CLEAR(st->name_thread);
    return 0;
}

/* Names only now: whatever could refer to one held the module. */
static void free_state(void *module)
{
    struct py_state *st = py_state_of(module);
    if (!st)
        return;
    forget_usual(module);
    clear(module);
    py_names_clear(st);
    Py_CLEAR(st->w_category);
    Py_CLEAR(st->w_flow);
    Py_CLEAR(st->w_incoming);
    Py_CLEAR(st->w_outgoing);
    Py_CLEAR(st->w_stave_row);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, PY_SLOT(exec)},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
#if PY_VERSION_HEX >= 0x030D0000
    {Py_mod_gil, Py_MOD_GIL_NOT_USED},
#endif
    {0, NULL}};

static struct PyModuleDef definition = {.m_base = PyModuleDef_HEAD_INIT,
                                        .m_name = "_stave",
                                        .m_doc = "The C part of the package stave.",
                                        .m_size = sizeof(struct py_state),
                                        .m_methods = methods,
                                        .m_slots = slots,
                                        .m_traverse = traverse,
                                        .m_clear = clear,
                                        .m_free = free_state};

PyMODINIT_FUNC PyInit__stave(void);
PyMODINIT_FUNC PyInit__stave(void)
{
    return PyModuleDef_Init(&definition);
}
