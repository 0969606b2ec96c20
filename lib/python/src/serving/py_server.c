/* The module _serving, and Server: a traced server (<stave/serving.h>) as an object.
 *
 * stave/serving.py opens one; requests, batches and steps are made by its methods. A server that is
 * not traced, or was closed, is the same object, and its calls do nothing. */
#include "py_serving.h"

#include <string.h>
#include <time.h>

static struct PyModuleDef definition;

static struct py_server *as_server(PyObject *self)
{
    return (struct py_server *)(void *)self;
}

/* ---- what the other files use ---- */

uint64_t py_next(uint64_t *counter)
{
    return __atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}

int py_time(PyObject *const *args, Py_ssize_t n, Py_ssize_t at, int64_t *time_ns)
{
    *time_ns = 0;
    if (n > at + 1) {
        PyErr_Format(PyExc_TypeError, "stave: %zd arguments: at most %zd", n, at + 1);
        return -1;
    }
    if (n > at) {
        *time_ns = PyLong_AsLongLong(args[at]);
        if (*time_ns == -1 && PyErr_Occurred())
            return -1;
    }
    return 0;
}

bool py_reason_text(PyObject *object, char reason[256])
{
    PyObject *text = PyObject_Str(object);
    const char *utf8 = text ? PyUnicode_AsUTF8(text) : NULL;
    if (utf8)
        PyOS_snprintf(reason, 256, "%s", utf8);
    Py_XDECREF(text);
    return utf8 != NULL;
}

/* An exception whose text cannot be made has its type. */
void py_reason(PyObject *type, PyObject *value, char reason[256])
{
    char text[256] = "";
    const char *name = PyType_Check(type) ? ((PyTypeObject *)(void *)type)->tp_name : "exception";
    if (!value || !py_reason_text(value, text))
        PyErr_Clear();
    PyOS_snprintf(reason, 256, text[0] ? "%.80s: %.160s" : "%.80s", name, text);
}

/* A number, or a name that is looked up once. */
static int number_of(struct py_server *v, PyObject *what, PyObject *known,
                     uint32_t (*ask)(struct stave_serving *s, const char *name), uint32_t *number)
{
    PyObject *found = PyUnicode_Check(what) ? PyDict_GetItemWithError(known, what) : what;
    if (!found) {
        const char *name = PyErr_Occurred() ? NULL : PyUnicode_AsUTF8(what);
        PyObject *made = name ? PyLong_FromUnsignedLong(ask(v->s, name)) : NULL;
        int code = made ? PyDict_SetItem(known, what, made) : -1;
        Py_XDECREF(made);
        if (code < 0)
            return -1;
        found = PyDict_GetItemWithError(known, what);
    }
    unsigned long n = found ? PyLong_AsUnsignedLong(found) : 0;
    if (PyErr_Occurred())
        return -1;
    *number = n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
    return 0;
}

int py_model_number(struct py_server *v, PyObject *model, uint32_t *number)
{
    return number_of(v, model, v->models, stave_serving_model, number);
}

int py_engine_number(struct py_server *v, PyObject *engine, uint32_t *number)
{
    return number_of(v, engine, v->engines, stave_serving_engine, number);
}

/* ---- opening and closing ---- */

static int refuse(const struct stave_error *e)
{
    if (e->os_error) {
        errno = e->os_error;
        PyObject *args = Py_BuildValue("(is)", e->os_error, e->text);
        if (args)
            PyErr_SetObject(PyExc_OSError, args);
        Py_XDECREF(args);
    } else if (e->code == STAVE_EMEMORY) {
        PyErr_NoMemory();
    } else {
        PyErr_Format(PyExc_ValueError, "stave: %s", e->text);
    }
    return -1;
}

static int open_server(struct py_server *v, const struct stave_serving_config *c)
{
    struct stave_error error = {0};
    struct stave_serving *s;
    Py_BEGIN_ALLOW_THREADS s = stave_serving_open(c, &error);
    Py_END_ALLOW_THREADS if (!s && error.code != STAVE_OK) return refuse(&error);
    v->s = s;
    return 0;
}

static int init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *words[] = {
        "trace_output",  "server", "names",    "outputs", "truncate", "without_request_spans",
        "queue_records", "full",   "flush_ms", "enabled", "keep",     NULL};
    struct py_server *v = as_server(self);
    struct stave_serving_config c = {.size = sizeof c};
    const char *dir = NULL, *server = NULL;
    int names = 0, truncate = 0, spanless = 0, full = 0, is_enabled = 1;
    unsigned long long flush_ms = 0;
    Py_ssize_t records = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|zz$iIppniKpz:Server", words, &dir, &server,
                                     &names, &c.outputs, &truncate, &spanless, &records, &full,
                                     &flush_ms, &is_enabled, &c.keep))
        return -1;
    if (v->s) {
        PyErr_SetString(PyExc_RuntimeError, "stave: this server is open already");
        return -1;
    }
    c.trace_enabled = is_enabled;
    c.trace_output = dir;
    c.server = server;
    c.names = (enum stave_serving_names)names;
    c.truncate = truncate;
    c.without_request_spans = spanless;
    c.queue_records = records > 0 ? (size_t)records : 0;
    c.full = (enum stave_full)full;
    c.flush_ms = flush_ms;
    return open_server(v, &c);
}

static PyObject *new_server(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    struct py_server *v = (struct py_server *)(void *)type->tp_alloc(type, 0);
    (void)args;
    (void)kwargs;
    if (!v)
        return NULL;
    PyObject *module = PyType_GetModuleByDef(type, &definition); /* of a class that inherits, too */
    v->st = module ? PyModule_GetState(module) : NULL;
    v->models = PyDict_New();
    v->engines = PyDict_New();
    if (v->st && v->models && v->engines)
        return (PyObject *)v;
    Py_DECREF(v);
    return NULL;
}

static PyObject *flush(PyObject *self, PyObject *unused)
{
    struct py_server *v = as_server(self);
    struct stave_serving *s = v->s;
    int code;
    (void)unused;
    v->n_flushing++; /* close() waits */
    Py_BEGIN_ALLOW_THREADS code = stave_serving_flush(s);
    Py_END_ALLOW_THREADS v->n_flushing--;
    return PyBool_FromLong(code == STAVE_OK);
}

static int close_server(struct py_server *v, struct stave_error *error)
{
    struct stave_serving *s = v->s;
    int code;
    v->s = NULL; /* no other call follows */
    while (v->n_flushing) {
        Py_BEGIN_ALLOW_THREADS nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        Py_END_ALLOW_THREADS
    }
    Py_BEGIN_ALLOW_THREADS code = stave_serving_close(s, error);
    Py_END_ALLOW_THREADS return code;
}

static PyObject *close_it(PyObject *self, PyObject *unused)
{
    struct stave_error error = {0};
    (void)unused;
    if (as_server(self)->s && close_server(as_server(self), &error) != STAVE_OK) {
        refuse(&error);
        return NULL;
    }
    Py_RETURN_NONE;
}

static void dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    struct py_server *v = as_server(self);
    struct stave_error error;
    if (v->s)
        close_server(v, &error);
    Py_XDECREF(v->models);
    Py_XDECREF(v->engines);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *enter(PyObject *self, PyObject *unused)
{
    (void)unused;
    return Py_NewRef(self);
}

static PyObject *leave(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    (void)args;
    (void)n;
    return close_it(self, NULL);
}

/* ---- names ---- */

static PyObject *model(PyObject *self, PyObject *name)
{
    uint32_t number;
    if (!PyUnicode_Check(name)) {
        PyErr_SetString(PyExc_TypeError, "stave: the name of a model is a str");
        return NULL;
    }
    return py_model_number(as_server(self), name, &number) < 0 ? NULL
                                                               : PyLong_FromUnsignedLong(number);
}

static PyObject *engine(PyObject *self, PyObject *name)
{
    uint32_t number;
    if (!PyUnicode_Check(name)) {
        PyErr_SetString(PyExc_TypeError, "stave: the name of an engine is a str");
        return NULL;
    }
    return py_engine_number(as_server(self), name, &number) < 0 ? NULL
                                                                : PyLong_FromUnsignedLong(number);
}

static PyObject *worker(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *words[] = {"worker", "type", "device", NULL};
    int number, device = -1;
    const char *type = "cpu";
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "i|si:worker", words, &number, &type, &device))
        return NULL;
    stave_serving_worker(as_server(self)->s, number, type, device);
    Py_RETURN_NONE;
}

static PyObject *congestion(PyObject *self, PyObject *const *args, Py_ssize_t n)
{
    int64_t time_ns;
    int is_so = n ? PyObject_IsTrue(args[0]) : 1;
    if (is_so < 0 || py_time(args, n, 1, &time_ns) < 0)
        return NULL;
    stave_serving_congestion(as_server(self)->s, is_so, time_ns);
    Py_RETURN_NONE;
}

/* Also of a server that is closed: what is no rule is an error. */
static PyObject *keep(PyObject *self, PyObject *rule)
{
    struct stave_error error = {0};
    const char *text = PyUnicode_AsUTF8(rule);
    if (!text)
        return NULL;
    if (stave_serving_keep(as_server(self)->s, text, &error) != STAVE_OK) {
        refuse(&error);
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *sample(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *words[] = {"rate", "by_parent", NULL};
    unsigned rate = 0;
    int by_parent = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|Ip:sample", words, &rate, &by_parent))
        return NULL;
    stave_serving_sample(as_server(self)->s, rate, by_parent);
    Py_RETURN_NONE;
}

/* ---- what it did ---- */

static PyObject *file(PyObject *self, PyObject *output)
{
    unsigned long which = PyLong_AsUnsignedLong(output);
    if (PyErr_Occurred())
        return NULL;
    return PyUnicode_DecodeFSDefault(stave_serving_file(as_server(self)->s, (unsigned)which));
}

static PyObject *counts(PyObject *self, PyObject *unused)
{
    struct stave_serving_counts c = {.size = sizeof c};
    const struct {
        const char *name;
        const uint64_t *value;
    } all[] = {{"calls", &c.calls},
               {"lost", &c.lost},
               {"requests", &c.requests},
               {"batches", &c.batches},
               {"rejected", &c.rejected},
               {"failed", &c.failed},
               {"open_requests", &c.open_requests},
               {"open_batches", &c.open_batches},
               {"forgotten", &c.forgotten},
               {"steps", &c.steps},
               {"step_members", &c.step_members},
               {"tokens_in", &c.tokens_in},
               {"tokens_out", &c.tokens_out},
               {"lost_steps", &c.lost_steps},
               {"unexpected", &c.unexpected},
               {"deferred", &c.deferred},
               {"left_out", &c.left_out},
               {"left_out_batches", &c.left_out_batches}};
    (void)unused;
    stave_serving_count(as_server(self)->s, &c);
    PyObject *d = PyDict_New();
    for (size_t i = 0; d && i < sizeof all / sizeof *all; i++) {
        PyObject *n = PyLong_FromUnsignedLongLong(*all[i].value);
        if (!n || PyDict_SetItemString(d, all[i].name, n) < 0)
            Py_CLEAR(d);
        Py_XDECREF(n);
    }
    return d;
}

static PyObject *get_enabled(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(as_server(self)->s != NULL);
}

#define REQUEST_WORDS "model, traceparent=None, tracestate=None, *, warmup=False, time_ns=0"

static PyMethodDef server_methods[] = {
    {"request", PY_FUNCTION(py_server_request), METH_VARARGS | METH_KEYWORDS,
     "request($self, " REQUEST_WORDS ")\n--\n\nA request is in the queue."},
    {"rejected", PY_FUNCTION(py_server_rejected), METH_VARARGS | METH_KEYWORDS,
     "rejected($self, " REQUEST_WORDS ")\n--\n\nA request was refused: the queue is full."},
    {"batch", PY_FUNCTION(py_server_batch), METH_VARARGS | METH_KEYWORDS,
     "batch($self, requests, model=None, *, samples=0, warmup=False, start_ns=0, end_ns=0)\n--\n\n"
     "These requests are computed together."},
    {"step", PY_FUNCTION(py_server_step), METH_VARARGS | METH_KEYWORDS,
     "step($self, engine, step=None, *, kv_used=0, kv_total=0, waiting=0, graph='unknown', "
     "warmup=False, start_ns=0)\n--\n\nA step of an engine begins."},
    {"model", model, METH_O, "model($self, name, /)\n--\n\nThe number of a model."},
    {"engine", engine, METH_O, "engine($self, name, /)\n--\n\nThe number of an engine."},
    {"worker", PY_FUNCTION(worker), METH_VARARGS | METH_KEYWORDS,
     "worker($self, worker, type='cpu', device=-1)\n--\n\nDescribes a worker."},
    {"congestion", PY_FUNCTION(congestion), METH_FASTCALL,
     "congestion($self, is_congested=True, time_ns=0, /)\n--\n\nThe state has changed."},
    {"keep", keep, METH_O,
     "keep($self, rule, /)\n--\n\nRecords from now on only some requests: 'slow > 50ms', 'p99', "
     "'failed' or 'all'."},
    {"sample", PY_FUNCTION(sample), METH_VARARGS | METH_KEYWORDS,
     "sample($self, rate=0, by_parent=False)\n--\n\nRecords from now on one of so many requests, "
     "or "
     "those whose caller is sampled."},
    {"file", file, METH_O, "file($self, output, /)\n--\n\nThe name of a file, or ''."},
    {"counts", counts, METH_NOARGS, "counts($self)\n--\n\nWhat was recorded, as a dictionary."},
    {"flush", flush, METH_NOARGS,
     "flush($self)\n--\n\nEverything recorded so far is in the files."},
    {"close", close_it, METH_NOARGS, "close($self)\n--\n\nCompletes the files."},
    {"__enter__", enter, METH_NOARGS, NULL},
    {"__exit__", PY_FUNCTION(leave), METH_FASTCALL, NULL},
    {0}};

static PyGetSetDef getters[] = {{"enabled", get_enabled, NULL, "It is traced.", NULL}, {0}};

static PyType_Slot server_slots[] = {
    {Py_tp_new, PY_SLOT(new_server)},  {Py_tp_init, PY_SLOT(init)},
    {Py_tp_dealloc, PY_SLOT(dealloc)}, {Py_tp_methods, server_methods},
    {Py_tp_getset, getters},           {0, NULL}};

static PyType_Spec server_spec = {
    .name = "stave._serving.Server",
    .basicsize = sizeof(struct py_server),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = server_slots,
};

/* ---- the module ---- */

static PyObject *current(PyObject *module, PyObject *unused)
{
    struct py_serving *st = PyModule_GetState(module);
    PyObject *found;
    (void)unused;
    if (PyContextVar_Get(st->current, Py_None, &found) < 0)
        return NULL;
    return found;
}

static PyMethodDef methods[] = {
    {"current", current, METH_NOARGS,
     "current($module)\n--\n\nThe request whose `with` block the code runs in, or None."},
    {0}};

static PyTypeObject *add_type(PyObject *module, PyType_Spec *spec)
{
    PyTypeObject *type = (PyTypeObject *)(void *)PyType_FromModuleAndSpec(module, spec, NULL);
    if (type && PyModule_AddType(module, type) < 0)
        Py_CLEAR(type);
    return type;
}

static int exec(PyObject *module)
{
    struct py_serving *st = PyModule_GetState(module);
    st->current = PyContextVar_New("stave_serving_request", NULL);
    st->server = add_type(module, &server_spec);
    st->request = add_type(module, &py_request_spec);
    st->batch = add_type(module, &py_batch_spec);
    st->run = add_type(module, &py_run_spec);
    st->step = add_type(module, &py_step_spec);
    return st->current && st->server && st->request && st->batch && st->run && st->step ? 0 : -1;
}

static int traverse(PyObject *module, visitproc visit, void *arg)
{
    struct py_serving *st = PyModule_GetState(module);
    Py_VISIT(st->server);
    Py_VISIT(st->request);
    Py_VISIT(st->batch);
    Py_VISIT(st->run);
    Py_VISIT(st->step);
    Py_VISIT(st->current);
    return 0;
}

static int clear(PyObject *module)
{
    struct py_serving *st = PyModule_GetState(module);
    Py_CLEAR(st->server);
    Py_CLEAR(st->request);
    Py_CLEAR(st->batch);
    Py_CLEAR(st->run);
    Py_CLEAR(st->step);
    Py_CLEAR(st->current);
    return 0;
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, PY_SLOT(exec)},
#if PY_VERSION_HEX >= 0x030C0000
    {Py_mod_multiple_interpreters, Py_MOD_PER_INTERPRETER_GIL_SUPPORTED},
#endif
    {0, NULL}};

static struct PyModuleDef definition = {.m_base = PyModuleDef_HEAD_INIT,
                                        .m_name = "_serving",
                                        .m_doc = "The C part of stave.serving.",
                                        .m_size = sizeof(struct py_serving),
                                        .m_methods = methods,
                                        .m_slots = slots,
                                        .m_traverse = traverse,
                                        .m_clear = clear};

PyMODINIT_FUNC PyInit__serving(void);
PyMODINIT_FUNC PyInit__serving(void)
{
    return PyModuleDef_Init(&definition);
}
