/* Names: Python's strings as C strings, and the names of threads and processes.
 *
 * A C string ends at its first NUL; a name that contains one is written with \\x00 in its place.
 * Threads have the names that Python gave them: at a thread's first event of a session stave._names
 * is asked, which names the process, too. */
#include "py_stave.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

_Thread_local uint32_t py_named_turn;
uint32_t py_turn = 1;

/* ---- C strings ---- */

/* `utf8` with its NULs written out, cut where it is too long. */
static PyObject *escaped(const char *utf8, Py_ssize_t len, Py_ssize_t max)
{
    static const char nul[] = "\\x00";
    enum { MARK = 40 };
    Py_ssize_t n = 0, i = 0, room = len;
    for (Py_ssize_t at = 0; at < len; at++)
        room += utf8[at] ? 0 : (Py_ssize_t)sizeof nul - 2;
    bool is_cut = room > max;
    Py_ssize_t limit = is_cut ? max - MARK : room;
    char *to = PyMem_Malloc((size_t)limit + MARK + sizeof nul);
    if (!to)
        return PyErr_NoMemory();
    for (; i < len && n + (utf8[i] ? 1 : (Py_ssize_t)sizeof nul - 1) <= limit; i++) {
        if (utf8[i]) {
            to[n++] = utf8[i];
        } else {
            memcpy(to + n, nul, sizeof nul - 1);
            n += (Py_ssize_t)sizeof nul - 1;
        }
    }
    while (is_cut && i > 0 && i < len &&
           ((unsigned char)utf8[i] & 0xc0) == 0x80) /* whole characters */
        i--, n--;
    if (is_cut)
        n += PyOS_snprintf(to + n, MARK, "... (%zd more bytes)", len - i);
    PyObject *bytes = PyBytes_FromStringAndSize(to, n);
    PyMem_Free(to);
    return bytes;
}

void py_value_is_wrong(PyObject *value)
{
    static int is_said;
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception))
        return; /* the program is being ended */
    if (__atomic_exchange_n(&is_said, 1, __ATOMIC_RELAXED))
        PyErr_Clear();
    else
        PyErr_WriteUnraisable(value);
}

const char *py_c_text(PyObject *text, Py_ssize_t max, PyObject **keep)
{
    Py_ssize_t len;
    const char *utf8 = py_utf8(text, &len, keep);
    if (__builtin_expect(len <= max && !memchr(utf8, '\0', (size_t)len), 1))
        return utf8;
    PyObject *bytes = escaped(utf8, len, max);
    Py_XDECREF(*keep);
    *keep = bytes;
    if (bytes)
        return PyBytes_AS_STRING(bytes);
    py_forget_error();
    return "?";
}

static int text_arg(PyObject *value, struct py_text *t, Py_ssize_t max)
{
    if (!value) { /* a later argument was wrong */
        py_text_free(t);
        return 1;
    }
    if (!PyUnicode_Check(value)) {
        PyErr_Format(PyExc_TypeError, "stave: a name is a str, not %.100s",
                     Py_TYPE(value)->tp_name);
        return 0;
    }
    t->text = py_c_text(value, max, &t->keep);
    return Py_CLEANUP_SUPPORTED;
}

int py_name_arg(PyObject *value, void *text)
{
    return text_arg(value, text, PY_NAME_BYTES);
}

int py_text_arg(PyObject *value, void *text)
{
    return text_arg(value, text, PY_SSIZE_T_MAX);
}

void py_text_free(struct py_text *t)
{
    Py_CLEAR(t->keep);
}

/* ---- threads and processes ---- */

void py_name_again(void)
{
    __atomic_fetch_add(&py_turn, 1, __ATOMIC_RELAXED);
}

void py_text_init(void)
{
    static _Atomic int is_known;
    if (!atomic_exchange(&is_known, 1))
        pthread_atfork(NULL, NULL, py_name_again);
}

/* Within an event: leaves no error, and keeps one that is on its way. */
void py_name_thread_slow(struct py_state *st)
{
    PyObject *type, *value, *trace;
    py_named_turn = __atomic_load_n(&py_turn, __ATOMIC_RELAXED);
    PyErr_Fetch(&type, &value, &trace);
    if (!st->name_thread) {
        PyObject *modules = PySys_GetObject("modules"); /* borrowed, as is what is in it */
        PyObject *names =
            modules && PyDict_Check(modules) ? PyDict_GetItemString(modules, "stave._names") : NULL;
        st->name_thread = names ? PyObject_GetAttrString(names, "name_thread") : NULL;
    }
    PyObject *done = st->name_thread ? PyObject_CallNoArgs(st->name_thread) : NULL;
    if (!done && PyErr_Occurred())
        py_forget_error();
    Py_XDECREF(done);
    PyErr_Restore(type, value, trace);
}

static PyObject *set_thread_name(PyObject *module, PyObject *args)
{
    (void)module;
    struct py_text name = {0};
    if (!PyArg_ParseTuple(args, "O&", py_name_arg, &name))
        return NULL;
    stave_set_thread_name(name.text);
    py_text_free(&name);
    Py_RETURN_NONE;
}

static PyObject *set_process_name(PyObject *module, PyObject *args)
{
    (void)module;
    struct py_text name = {0};
    if (!PyArg_ParseTuple(args, "O&", py_name_arg, &name))
        return NULL;
    stave_set_process_name(name.text);
    py_text_free(&name);
    Py_RETURN_NONE;
}

/* For a thread that names itself: what Python calls it must not come later. */
static PyObject *name_now(PyObject *module, PyObject *unused)
{
    (void)unused;
    py_name_thread(py_state_of(module));
    Py_RETURN_NONE;
}

PyMethodDef py_text_methods[] = {
    {"set_thread_name", set_thread_name, METH_VARARGS,
     "set_thread_name($module, name, /)\n--\n\nNames the calling thread."},
    {"set_process_name", set_process_name, METH_VARARGS,
     "set_process_name($module, name, /)\n--\n\nNames the process."},
    {"name_now", name_now, METH_NOARGS,
     "name_now($module)\n--\n\nNames the thread and the process, if that was not done."},
    {0}};
