/* The writer of ferrum's files for Python: <stave/trace_writer.h> behind stave.compat.ferrum.
 *
 * A writer is a capsule, None where it is off. Each call waits for other processes at most as long
 * as they need for a write; the GIL is released meanwhile. */
#include "py_stave.h"

#include <stave/trace_writer.h>

static const char kind[] = "stave_trace_writer";

static void close_writer(PyObject *capsule)
{
    stave_trace_writer_close(PyCapsule_GetPointer(capsule, kind));
}

/* `end`: NULL for the global writer, which is never closed. */
static PyObject *wrap(struct stave_trace_writer *w, PyCapsule_Destructor end)
{
    if (!w)
        Py_RETURN_NONE;
    PyObject *capsule = PyCapsule_New(w, kind, end);
    if (!capsule && end)
        stave_trace_writer_close(w);
    return capsule;
}

static PyObject *writer_open(PyObject *module, PyObject *path)
{
    (void)module;
    PyObject *bytes;
    struct stave_trace_writer *w;
    if (!PyUnicode_FSConverter(path, &bytes))
        return NULL;
    Py_BEGIN_ALLOW_THREADS w = stave_trace_writer_open(PyBytes_AS_STRING(bytes));
    Py_END_ALLOW_THREADS Py_DECREF(bytes);
    return wrap(w, close_writer);
}

static PyObject *writer_from_env(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return wrap(stave_trace_writer_from_env(), close_writer);
}

/* from_vars(list of b"NAME=VALUE") */
static PyObject *writer_from_vars(PyObject *module, PyObject *list)
{
    (void)module;
    if (!PyList_Check(list)) {
        PyErr_SetString(PyExc_TypeError, "stave: a list of bytes is needed");
        return NULL;
    }
    Py_ssize_t n = PyList_GET_SIZE(list);
    const char **vars = PyMem_Calloc((size_t)n + 1, sizeof *vars);
    if (!vars)
        return PyErr_NoMemory();
    struct stave_trace_writer *w = NULL;
    Py_ssize_t i = 0;
    while (i < n && (vars[i] = PyBytes_AsString(PyList_GET_ITEM(list, i))))
        i++;
    if (i == n)
        w = stave_trace_writer_from_vars(vars);
    PyMem_Free(vars);
    return i == n ? wrap(w, close_writer) : NULL;
}

static PyObject *writer_global(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return wrap(stave_global_trace(), NULL);
}

/* UTF-8 of what str() makes of it; NULL: an error is set. The text lives as long as *keep and
 * *more. */
static const char *text_of(PyObject *value, size_t *len, PyObject **keep, PyObject **more)
{
    Py_ssize_t n;
    *more = NULL;
    *keep = PyObject_Str(value);
    if (!*keep)
        return NULL;
    const char *text = py_utf8(*keep, &n, more);
    *len = (size_t)n;
    return n ? text : ""; /* 0 is a length that is not known */
}

/* push(writer, name, cat, dur_ms, tid, args: bytes of JSON or None) */
static PyObject *writer_push(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *capsule, *name, *cat, *keep[4] = {0};
    struct stave_trace_event e = {0};
    double dur_ms;
    long long tid;
    Py_ssize_t args_len;
    int status = 0;
    if (!PyArg_ParseTuple(args, "OOOdLz#", &capsule, &name, &cat, &dur_ms, &tid, &e.args,
                          &args_len))
        return NULL;
    struct stave_trace_writer *w = PyCapsule_GetPointer(capsule, kind);
    if (!w)
        return NULL;
    if (tid < 0 || tid > UINT32_MAX) {
        PyErr_Format(PyExc_OverflowError, "stave: tid is %lld, not a number of 32 bits", tid);
        return NULL;
    }
    e.tid = (uint32_t)tid;
    e.args_len = (size_t)args_len;
    e.name = text_of(name, &e.name_len, &keep[0], &keep[1]);
    e.cat = e.name ? text_of(cat, &e.cat_len, &keep[2], &keep[3]) : NULL;
    if (e.cat) {
        Py_BEGIN_ALLOW_THREADS status = stave_trace_writer_push_timed(w, &e, dur_ms);
        Py_END_ALLOW_THREADS
    }
    for (int i = 0; i < 4; i++)
        Py_XDECREF(keep[i]);
    return e.cat ? PyLong_FromLong(status) : NULL;
}

static PyObject *writer_flush(PyObject *module, PyObject *capsule)
{
    (void)module;
    struct stave_trace_writer *w = PyCapsule_GetPointer(capsule, kind);
    int status;
    if (!w)
        return NULL;
    Py_BEGIN_ALLOW_THREADS status = stave_trace_writer_flush(w, NULL);
    Py_END_ALLOW_THREADS return PyLong_FromLong(status);
}

PyMethodDef py_trace_writer_methods[] = {
    {"trace_writer_open", writer_open, METH_O, NULL},
    {"trace_writer_from_env", writer_from_env, METH_NOARGS, NULL},
    {"trace_writer_from_vars", writer_from_vars, METH_O, NULL},
    {"trace_writer_global", writer_global, METH_NOARGS, NULL},
    {"trace_writer_push", writer_push, METH_VARARGS, NULL},
    {"trace_writer_flush", writer_flush, METH_O, NULL},
    {0}};
