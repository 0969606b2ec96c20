/* Files with explicit times: <stave/file.h> for Python.
 *
 * The classes of stave.generator and stave.writer use it. Files are independent: several may be
 * open at once, in addition to a session. Writing happens without the GIL. A file that is forgotten
 * is closed; in a forked child it is left alone, it belongs to the parent. */
#include "py_stave.h"

#include <limits.h>
#include <stave/file.h>
#include <unistd.h>

struct file {
    PyObject_HEAD struct stave_file *file; /* NULL: closed */
    pid_t pid;
};

/* NULL with an error when it is closed, or another process's. */
static struct stave_file *open_file(PyObject *self)
{
    struct file *f = (struct file *)self;
    if (!f->file)
        PyErr_SetString(PyExc_ValueError, "stave: the trace file is closed");
    else if (f->pid != getpid())
        PyErr_SetString(
            PyExc_ValueError,
            "stave: this trace file belongs to the parent process; open one of your own");
    else
        return f->file;
    return NULL;
}

static int file_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *words[] = {"path", "compress", NULL};
    struct file *f = (struct file *)self;
    PyObject *path;
    const char *compress = NULL;
    struct stave_error error;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|z", words, PyUnicode_FSConverter, &path,
                                     &compress))
        return -1;
    if (f->file) {
        PyErr_SetString(PyExc_RuntimeError, "stave: the trace file is open already");
    } else {
        f->file = stave_file_open(PyBytes_AS_STRING(path), compress, &error);
        f->pid = getpid();
        if (!f->file)
            PyErr_Format(PyExc_OSError, "%s: %s", PyBytes_AS_STRING(path), error.text);
    }
    Py_DECREF(path);
    return PyErr_Occurred() ? -1 : 0;
}

static int close_file(struct file *f, struct stave_error *error)
{
    struct stave_file *file = f->file;
    int status = 0;
    f->file = NULL;
    if (!file || f->pid != getpid())
        return 0;
    Py_BEGIN_ALLOW_THREADS status = stave_file_close(file, error);
    Py_END_ALLOW_THREADS return status;
}

static PyObject *file_close(PyObject *self, PyObject *unused)
{
    (void)unused;
    struct stave_error error;
    if (close_file((struct file *)self, &error) != 0) {
        PyErr_Format(PyExc_OSError, "stave: the trace file could not be written: %s", error.text);
        return NULL;
    }
    Py_RETURN_NONE;
}

static void file_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    close_file((struct file *)self, NULL);
    type->tp_free(self);
    Py_DECREF(type);
}

static PyObject *number(uint32_t track)
{
    if (track == 0) {
        PyErr_SetString(PyExc_ValueError, "stave: no such parent track, or the file has failed");
        return NULL;
    }
    return PyLong_FromUnsignedLong(track);
}

static PyObject *file_process(PyObject *self, PyObject *args)
{
    long long pid;
    struct py_text name = {0};
    struct stave_file *f = open_file(self);
    if (!f || !PyArg_ParseTuple(args, "LO&", &pid, py_text_arg, &name))
        return NULL;
    uint32_t track = stave_file_process(f, pid, name.text);
    py_text_free(&name);
    return number(track);
}

static PyObject *file_thread(PyObject *self, PyObject *args)
{
    long long pid, tid;
    struct py_text name = {0};
    struct stave_file *f = open_file(self);
    if (!f || !PyArg_ParseTuple(args, "LLO&", &pid, &tid, py_text_arg, &name))
        return NULL;
    uint32_t track = stave_file_thread(f, pid, tid, name.text);
    py_text_free(&name);
    return number(track);
}

static PyObject *file_track(PyObject *self, PyObject *args)
{
    unsigned parent;
    struct py_text name = {0};
    struct stave_file *f = open_file(self);
    if (!f || !PyArg_ParseTuple(args, "IO&", &parent, py_text_arg, &name))
        return NULL;
    uint32_t track = stave_file_track(f, parent, name.text);
    py_text_free(&name);
    return number(track);
}

static PyObject *file_counter(PyObject *self, PyObject *args)
{
    unsigned parent;
    struct py_text name = {0}, unit = {.text = ""};
    struct stave_file *f = open_file(self);
    if (!f || !PyArg_ParseTuple(args, "IO&|O&", &parent, py_text_arg, &name, py_text_arg, &unit))
        return NULL;
    uint32_t track = stave_file_counter(f, parent, name.text, unit.text);
    py_text_free(&name);
    py_text_free(&unit);
    return number(track);
}

static PyObject *emit(struct stave_file *f, struct stave_event *e)
{
    int status;
    e->size = sizeof *e;
    Py_BEGIN_ALLOW_THREADS status = stave_file_emit(f, e);
    Py_END_ALLOW_THREADS if (status < 0)
    {
        PyErr_SetString(
            PyExc_OSError,
            "stave: the event could not be written (no such track, or the file has failed)");
        return NULL;
    }
    Py_RETURN_NONE;
}

/* Arguments of an event: a dictionary, anything else below the key `data`, None. */
static void add_args(struct stave_args *a, PyObject *args, PyObject *flows)
{
    stave_args_init(a);
    if (PyDict_Check(args))
        py_add_pairs(a, args);
    else if (args != Py_None)
        py_add(a, "data", args);
    py_add_flows(a, flows);
}

/* The name and the category of an event, its arguments and its flows; frees the texts. */
static PyObject *emit_named(struct stave_file *f, struct stave_event *e, struct py_text *name,
                            struct py_text *category, PyObject *values, PyObject *flows)
{
    struct stave_args a;
    add_args(&a, values, flows);
    e->args = a.len ? &a : NULL;
    e->name = name->text;
    e->category = category->text;
    PyObject *result = emit(f, e);
    e->args = NULL; /* they end here */
    py_text_free(name);
    py_text_free(category);
    return result;
}

/* slice(track, start_ns, dur_ns, name, args, flows, category) */
static PyObject *file_slice(PyObject *self, PyObject *args)
{
    struct stave_event e = {.kind = STAVE_KIND_COMPLETE};
    struct py_text name = {0}, category = {0};
    PyObject *values, *flows;
    long long start, dur;
    struct stave_file *f = open_file(self);
    if (!f || !PyArg_ParseTuple(args, "ILLO&OOO&", &e.track, &start, &dur, py_text_arg, &name,
                                &values, &flows, py_text_arg, &category))
        return NULL;
    e.start_ns = start;
    e.dur_ns = dur;
    if (dur > 0 && start > LLONG_MAX - dur) {
        PyErr_Format(PyExc_OverflowError, "stave: a slice at %lld ns of %lld ns ends at no time",
                     start, dur);
        py_text_free(&name);
        py_text_free(&category);
        return NULL;
    }
    return emit_named(f, &e, &name, &category, values, flows);
}

/* instant(track, ts_ns, name, args, flows, category) */
static PyObject *file_instant(PyObject *self, PyObject *args)
{
    struct stave_event e = {.kind = STAVE_KIND_INSTANT};
    struct py_text name = {0}, category = {0};
    PyObject *values, *flows;
    long long start;
    struct stave_file *f = open_file(self);
    if (!f || !PyArg_ParseTuple(args, "ILO&OOO&", &e.track, &start, py_text_arg, &name, &values,
                                &flows, py_text_arg, &category))
        return NULL;
    e.start_ns = start;
    return emit_named(f, &e, &name, &category, values, flows);
}

/* count(track, ts_ns, value) */
static PyObject *file_count(PyObject *self, PyObject *args)
{
    struct stave_event e = {.kind = STAVE_KIND_COUNTER};
    long long start;
    struct stave_file *f = open_file(self);
    if (!f || !PyArg_ParseTuple(args, "ILd", &e.track, &start, &e.value))
        return NULL;
    e.start_ns = start;
    return emit(f, &e);
}

static PyMethodDef file_methods[] = {
    {"process", file_process, METH_VARARGS, "process($self, pid, name, /)\n--\n\nIts track."},
    {"thread", file_thread, METH_VARARGS, "thread($self, pid, tid, name, /)\n--\n\nIts track."},
    {"track", file_track, METH_VARARGS,
     "track($self, parent, name, /)\n--\n\nA track; parent 0: top level."},
    {"counter", file_counter, METH_VARARGS,
     "counter($self, parent, name, unit='', /)\n--\n\nIts track."},
    {"slice", file_slice, METH_VARARGS,
     "slice($self, track, start_ns, dur_ns, name, args, flows, category, /)\n--\n\nA slice."},
    {"instant", file_instant, METH_VARARGS,
     "instant($self, track, ts_ns, name, args, flows, category, /)\n--\n\nA moment."},
    {"count", file_count, METH_VARARGS, "count($self, track, ts_ns, value, /)\n--\n\nA value."},
    {"close", file_close, METH_NOARGS,
     "close($self)\n--\n\nSorts and writes the file; again: nothing."},
    {0}};
static PyType_Slot file_slots[] = {
    {Py_tp_init, PY_SLOT(file_init)},
    {Py_tp_methods, file_methods},
    {Py_tp_dealloc, PY_SLOT(file_free)},
    {Py_tp_doc, "File(path, compress=None)\n--\n\nA trace with explicit times."},
    {0, NULL}};
static PyType_Spec file_spec = {"_stave.File", sizeof(struct file), 0, Py_TPFLAGS_DEFAULT,
                                file_slots};

int py_file_init(struct py_state *st)
{
    st->file_type = (PyTypeObject *)PyType_FromModuleAndSpec(st->module, &file_spec, NULL);
    return st->file_type ? PyModule_AddType(st->module, st->file_type) : -1;
}
