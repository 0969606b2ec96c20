/* Rows for asyncio tasks.
 *
 * Tasks take turns on one thread, so that their slices do not nest on the thread's track. As soon
 * as asyncio is there, an event without a track of its own asks for the running task, and is put on
 * the task's row. The row is kept as an attribute of the task; making one (the task's first event)
 * is left to Python, stave._tasks. Without asyncio none of this costs more than a load. */
#include "py_stave.h"

static PyObject *member(PyObject *modules, const char *module, const char *name)
{
    PyObject *m = PyDict_GetItemString(modules, module); /* borrowed */
    PyObject *value = m ? PyObject_GetAttrString(m, name) : NULL;
    if (!value)
        PyErr_Clear();
    return value;
}

void py_tasks_look(struct py_state *st)
{
    PyObject *modules = PySys_GetObject("modules");
    if (st->get_loop || !modules || !PyDict_Check(modules))
        return;
    PyObject *get_loop = member(modules, "asyncio.events", "_get_running_loop");
    PyObject *current = member(modules, "asyncio.tasks", "current_task");
    PyObject *row = member(modules, "stave._tasks", "new_row");
    if (get_loop && current && row) {
        st->current_task = current;
        st->new_row = row;
        __atomic_store_n(&st->get_loop, get_loop, __ATOMIC_RELEASE);
        return;
    }
    Py_XDECREF(get_loop);
    Py_XDECREF(current);
    Py_XDECREF(row);
}

/* Asked within an event: whatever goes wrong here must leave no error, and an error that is on its
 * way must stay. */
static uint32_t row_of_task(struct py_state *st)
{
    PyObject *loop = PyObject_CallNoArgs(st->get_loop);
    if (!loop || loop == Py_None) {
        Py_XDECREF(loop);
        return 0;
    }
    PyObject *task = PyObject_CallOneArg(st->current_task, loop), *row = NULL;
    if (task && task != Py_None) {
        row = PyObject_GetAttr(task, st->w_stave_row);
        if (!row) {
            PyErr_Clear();
            row = PyObject_CallOneArg(st->new_row, task);
        }
    }
    uint32_t track = row && PyLong_Check(row) ? (uint32_t)PyLong_AsUnsignedLongMask(row) : 0;
    Py_XDECREF(row);
    Py_XDECREF(task);
    Py_DECREF(loop);
    return track;
}

uint32_t py_tasks_row_slow(struct py_state *st)
{
    uint32_t track = row_of_task(st);
    if (PyErr_Occurred())
        py_forget_error();
    return track;
}

static PyObject *look(PyObject *module, PyObject *unused)
{
    (void)unused;
    struct py_state *st = py_state_of(module);
    py_tasks_look(st);
    return PyBool_FromLong(st->get_loop != NULL);
}

static PyObject *current_row(PyObject *module, PyObject *unused)
{
    (void)unused;
    return PyLong_FromUnsignedLong(py_tasks_row(py_state_of(module)));
}

PyMethodDef py_tasks_methods[] = {
    {"look_for_tasks", look, METH_NOARGS,
     "look_for_tasks($module)\n--\n\nIs asyncio there? From then on tasks have rows."},
    {"current_row", current_row, METH_NOARGS,
     "current_row($module)\n--\n\nThe row of the running task, 0: none."},
    {0}};
