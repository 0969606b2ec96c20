/* Tracks and counters: thin objects over the SDK's numbers.
 *
 * The Python classes stave.track, stave.group and stave.count derive from them. Tracks are made
 * once per parent and name, by the SDK; a counter remembers its value, so that it can be
 * incremented. */
#include "py_stave.h"

#include <math.h>
#include <stddef.h>
#include <structmember.h>

#if PY_VERSION_HEX < 0x030D0000
#define Py_BEGIN_CRITICAL_SECTION(x) {
#define Py_END_CRITICAL_SECTION()    }
#endif

struct track {
    PyObject_HEAD unsigned id;
};

struct counter {
    PyObject_HEAD unsigned id;
    bool is_double;
    long long i;
    double d;
};

/* The module of a type that Python classes derive from. */
static struct py_state *state_of(PyTypeObject *defining)
{
    return PyType_GetModuleState(defining);
}

/* ---- tracks ---- */

static PyObject *track_trace(PyObject *self, PyTypeObject *type, PyObject *const *args, size_t n,
                             PyObject *kwnames)
{
    struct py_state *st = state_of(type);
    if (!py_records())
        return Py_NewRef(st->off);
    return py_trace(st, ((struct track *)self)->id, args, PyVectorcall_NARGS(n), kwnames);
}

static PyObject *track_instant(PyObject *self, PyTypeObject *type, PyObject *const *args, size_t n,
                               PyObject *kwnames)
{
    return py_instant(state_of(type), ((struct track *)self)->id, args, PyVectorcall_NARGS(n),
                      kwnames);
}

/* What py_name_find() does not know travels with the event. */
static void emit_complete(struct py_call *c, struct py_name *n, uint64_t track, int64_t start,
                          int64_t dur, const struct stave_args *a)
{
    uint64_t args = a->len ? (uintptr_t)a : 0;
    if (n) {
        struct stave_site *site = py_site(n, PY_COMPLETE);
        if (py_is_on(site))
            stave_i_emit(site, (uint64_t[]){track, (uint64_t)start, (uint64_t)dur, args});
        return;
    }
    PyObject *keep = NULL, *name = PyObject_Str(c->name);
    if (name)
        stave_i_emit(py_category_site(c->category, PY_COMPLETE_DYN),
                     (uint64_t[]){track, (uint64_t)start, (uint64_t)dur,
                                  (uintptr_t)py_c_text(name, PY_NAME_BYTES, &keep), args});
    else
        py_forget_error();
    Py_XDECREF(keep);
    Py_XDECREF(name);
}

/* Nanoseconds: a whole number, or a float, whose fraction is cut. */
static long long whole(PyObject *value)
{
    PyObject *number = PyErr_Occurred()       ? NULL
                       : PyFloat_Check(value) ? PyNumber_Long(value)
                                              : PyNumber_Index(value);
    long long ns = number ? PyLong_AsLongLong(number) : -1;
    Py_XDECREF(number);
    return ns;
}

/* complete(name, start_ns, dur_ns, *args, **kwargs) */
static PyObject *track_complete(PyObject *self, PyTypeObject *type, PyObject *const *args,
                                size_t nargsf, PyObject *kwnames)
{
    struct py_state *st = state_of(type);
    Py_ssize_t n = PyVectorcall_NARGS(nargsf);
    if (n < 3) {
        PyErr_SetString(PyExc_TypeError,
                        "complete(name, start_ns, dur_ns, …): times are of stave.now_ns()");
        return NULL;
    }
    long long start = whole(args[1]), dur = whole(args[2]);
    if (PyErr_Occurred()) {
        py_value_is_wrong(self);
        if (PyErr_Occurred())
            return NULL;
        Py_RETURN_NONE;
    }
    PyObject *flows = NULL;
    if (!stave_enabled(NULL)) {
        flows = py_call_outgoing(st, args, n, kwnames);
    } else {
        struct stave_args a;
        struct py_call c = {.name = args[0], .category = st->trace_category};
        stave_args_init(&a);
        if (py_call_read(st, &c, &a, args, n, kwnames, 3)) {
            struct py_name *name = py_name_find(st, c.category, args[0]);
            py_name_thread(st);
            if (name || !PyErr_Occurred())
                emit_complete(&c, name, ((struct track *)self)->id, start, dur, &a);
        }
        flows = c.outgoing;
    }
    if (PyErr_Occurred())
        Py_CLEAR(flows);
    else if (!flows)
        flows = Py_NewRef(Py_None);
    return flows;
}

static int track_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    (void)kwargs;
    return PyArg_ParseTuple(args, "I", &((struct track *)self)->id) ? 0 : -1;
}

#define EVENT_WORDS "category='python', flow=None, incoming_flow_ids=None"
#define FLOW_WORDS  ", num_outgoing_flow_ids=0, **kwargs)\n--\n\n"

static PyMethodDef track_methods[] = {
    {"trace", PY_FUNCTION(track_trace), METH_METHOD | METH_FASTCALL | METH_KEYWORDS,
     "trace($self, name, /, *args, " EVENT_WORDS ", **kwargs)\n--\n\nA slice on this track."},
    {"instant", PY_FUNCTION(track_instant), METH_METHOD | METH_FASTCALL | METH_KEYWORDS,
     "instant($self, name, /, *args, " EVENT_WORDS FLOW_WORDS "A moment on this track."},
    {"complete", PY_FUNCTION(track_complete), METH_METHOD | METH_FASTCALL | METH_KEYWORDS,
     "complete($self, name, start_ns, dur_ns, /, *args, " EVENT_WORDS FLOW_WORDS
     "A slice measured elsewhere; its clock is stave.now_ns()."},
    {0}};
static PyMemberDef track_members[] = {
    {"id", T_UINT, offsetof(struct track, id), READONLY, "The SDK's number of the track."}, {0}};
static PyType_Slot track_slots[] = {{Py_tp_init, PY_SLOT(track_init)},
                                    {Py_tp_methods, track_methods},
                                    {Py_tp_members, track_members},
                                    {Py_tp_doc, "A row of the trace."},
                                    {0, NULL}};
static PyType_Spec track_spec = {"_stave.Track", sizeof(struct track), 0,
                                 Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, track_slots};

/* ---- counters ---- */

static void emit_counter(struct py_state *st, const struct counter *c)
{
    struct stave_site *site =
        py_category_site(st->count_category, c->is_double ? PY_COUNT_DOUBLE : PY_COUNT_INT);
    if (py_is_on(site))
        stave_i_emit(site, (uint64_t[]){c->id, c->is_double ? stave_i_from_double(c->d)
                                                            : stave_i_from_int(c->i)});
}

/* Sets or adds. Whole numbers stay whole while they fit into 64 bits. */
static bool change(struct counter *c, PyObject *value, bool add)
{
    int overflow = 0;
    long long i = 0;
    bool is_int = PyLong_Check(value);
    if (is_int)
        i = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (is_int && !overflow && !(add && c->is_double) &&
        !(add && __builtin_add_overflow(c->i, i, &i))) {
        c->is_double = false;
        c->i = i;
        return true;
    }
    double d = PyFloat_AsDouble(value);
    if (d == -1 && PyErr_Occurred())
        return false;
    c->d = add ? d + (c->is_double ? c->d : (double)c->i) : d;
    c->is_double = true;
    return true;
}

static PyObject *count_by(PyObject *self, PyTypeObject *type, PyObject *value, bool add)
{
    bool ok;
    Py_BEGIN_CRITICAL_SECTION(self);
    ok = change((struct counter *)self, value, add);
    if (ok)
        emit_counter(state_of(type), (struct counter *)self);
    Py_END_CRITICAL_SECTION();
    if (!ok)
        py_value_is_wrong(self);
    if (PyErr_Occurred())
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *counter_count(PyObject *self, PyTypeObject *type, PyObject *const *args, size_t n,
                               PyObject *kwnames)
{
    if (PyVectorcall_NARGS(n) == 1 && !kwnames)
        return count_by(self, type, args[0], false);
    PyErr_SetString(PyExc_TypeError, "count(value)");
    return NULL;
}

static PyObject *counter_increment(PyObject *self, PyTypeObject *type, PyObject *const *args,
                                   size_t n, PyObject *kwnames)
{
    Py_ssize_t count = PyVectorcall_NARGS(n);
    if (count <= 1 && !kwnames) {
        PyObject *one = count == 1 ? Py_NewRef(args[0]) : PyLong_FromLong(1);
        PyObject *result = one ? count_by(self, type, one, true) : NULL;
        Py_XDECREF(one);
        return result;
    }
    PyErr_SetString(PyExc_TypeError, "increment(by=1)");
    return NULL;
}

static PyObject *counter_value(PyObject *self, void *unused)
{
    (void)unused;
    const struct counter *c = (struct counter *)self;
    return c->is_double ? PyFloat_FromDouble(c->d) : PyLong_FromLongLong(c->i);
}

static int counter_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    (void)kwargs;
    return PyArg_ParseTuple(args, "I", &((struct counter *)self)->id) ? 0 : -1;
}

static PyMethodDef counter_methods[] = {
    {"count", PY_FUNCTION(counter_count), METH_METHOD | METH_FASTCALL | METH_KEYWORDS,
     "count($self, value, /)\n--\n\nThe value from now on."},
    {"increment", PY_FUNCTION(counter_increment), METH_METHOD | METH_FASTCALL | METH_KEYWORDS,
     "increment($self, by=1, /)\n--\n\nAdds to the value."},
    {0}};
static PyGetSetDef counter_getset[] = {{"value", counter_value, NULL, "The last value.", NULL},
                                       {0}};
static PyMemberDef counter_members[] = {
    {"id", T_UINT, offsetof(struct counter, id), READONLY, "The SDK's number of the track."}, {0}};
static PyType_Slot counter_slots[] = {
    {Py_tp_init, PY_SLOT(counter_init)}, {Py_tp_methods, counter_methods},
    {Py_tp_members, counter_members},    {Py_tp_getset, counter_getset},
    {Py_tp_doc, "A value over time."},   {0, NULL}};
static PyType_Spec counter_spec = {"_stave.Counter", sizeof(struct counter), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, counter_slots};

int py_track_init(struct py_state *st)
{
    st->track_type = (PyTypeObject *)PyType_FromModuleAndSpec(st->module, &track_spec, NULL);
    st->counter_type = (PyTypeObject *)PyType_FromModuleAndSpec(st->module, &counter_spec, NULL);
    if (!st->track_type || !st->counter_type || PyModule_AddType(st->module, st->track_type) < 0)
        return -1;
    return PyModule_AddType(st->module, st->counter_type);
}
