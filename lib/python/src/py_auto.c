/* Every function of chosen modules as a slice: stave.auto().
 *
 * Two entry points, one implementation: sys.setprofile (Python 3.11) calls profile() in each thread
 * that installed it; sys.monitoring (3.12 and later) calls the mon_* functions in all threads. A
 * code object is judged once, by a Python function that gives its name or None; the verdict is kept
 * in the code object's extra slot. Begins and ends are those of STAVE_BEGIN and STAVE_END: per
 * thread, an end closes what was begun last. Frames that were running before have no begin and get
 * no end. */
#include "py_stave.h"

#include <frameobject.h>
#include <stdlib.h>

#if PY_VERSION_HEX < 0x030C0000
#define PyUnstable_Eval_RequestCodeExtraIndex _PyEval_RequestCodeExtraIndex
#define PyUnstable_Code_GetExtra              _PyCode_GetExtra
#define PyUnstable_Code_SetExtra              _PyCode_SetExtra
#endif

struct verdict {
    uint32_t turn;        /* of auto(): older ones do not count */
    struct py_name *name; /* NULL: not wanted */
};

/* Open slices of this thread, those past max_depth included, since the last auto(). */
static _Thread_local uint64_t depth;
static _Thread_local uint32_t depth_turn;

/* ---- verdicts ---- */

static struct py_name *judge(struct py_state *st, PyObject *code)
{
    PyObject *text = PyObject_CallOneArg(st->auto_filter, code);
    struct py_name *n = NULL;
    if (text && text != Py_None)
        n = py_name_find(st, st->func_category, text);
    if (PyErr_Occurred())
        py_forget_error();
    Py_XDECREF(text);
    struct verdict *v = malloc(sizeof *v);
    if (v) {
        *v = (struct verdict){st->auto_turn, n};
        if (PyUnstable_Code_SetExtra(code, st->auto_index, v) < 0) { /* frees the one before */
            free(v);
            py_forget_error();
        }
    }
    return n;
}

static struct py_name *name_of(struct py_state *st, PyObject *code)
{
    void *extra = NULL;
    if (!st->auto_filter || PyUnstable_Code_GetExtra(code, st->auto_index, &extra) < 0) {
        if (PyErr_Occurred())
            py_forget_error();
        return NULL;
    }
    const struct verdict *v = extra;
    return v && v->turn == st->auto_turn ? v->name : judge(st, code);
}

/* ---- events ---- */

static void begin(struct py_state *st, struct py_name *n)
{
    if (depth_turn != st->auto_turn) {
        depth_turn = st->auto_turn;
        depth = 0;
    }
    if (depth++ < st->auto_max_depth) {
        struct stave_site *site = py_site(n, PY_BEGIN);
        if (py_is_on(site))
            py_name_thread(st);
        stave_i_note_begin(py_is_on(site) ? stave_i_begin0(site) : 0);
    }
}

static void end(struct py_state *st)
{
    if (depth_turn != st->auto_turn || depth == 0)
        return;
    if (--depth < st->auto_max_depth)
        stave_i_end0();
}

/* ---- sys.setprofile ---- */

static int profile(PyObject *module, PyFrameObject *frame, int what, PyObject *arg)
{
    (void)arg;
    struct py_state *st = py_state_of(module);
    if (what != PyTrace_CALL && what != PyTrace_RETURN)
        return 0;
    PyObject *type, *value, *trace; /* a return may be an error on its way */
    PyErr_Fetch(&type, &value, &trace);
    PyCodeObject *code = PyFrame_GetCode(frame);
    struct py_name *n = name_of(st, (PyObject *)code);
    if (n && what == PyTrace_CALL)
        begin(st, n);
    else if (n)
        end(st);
    Py_DECREF(code);
    PyErr_Restore(type, value, trace);
    return 0;
}

static PyObject *profile_thread(PyObject *module, PyObject *args)
{
    int on;
    if (!PyArg_ParseTuple(args, "p", &on))
        return NULL;
    PyEval_SetProfile(on ? profile : NULL, on ? module : NULL);
    Py_RETURN_NONE;
}

/* ---- sys.monitoring ---- */

static PyObject *monitor(PyObject *module, PyObject *const *args, Py_ssize_t n, bool is_begin)
{
    struct py_state *st = py_state_of(module);
    struct py_name *name = n > 0 && PyCode_Check(args[0]) ? name_of(st, args[0]) : NULL;
    if (!name)
        return Py_NewRef(st->disable ? st->disable
                                     : Py_None); /* never asked again about this one */
    if (is_begin)
        begin(st, name);
    else
        end(st);
    Py_RETURN_NONE;
}

static PyObject *mon_begin(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    return monitor(module, args, n, true);
}

static PyObject *mon_end(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    return monitor(module, args, n, false);
}

/* For the events that cannot be disabled for one code object. */
static PyObject *mon_throw(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    Py_XDECREF(monitor(module, args, n, true));
    Py_RETURN_NONE;
}

static PyObject *mon_unwind(PyObject *module, PyObject *const *args, Py_ssize_t n)
{
    Py_XDECREF(monitor(module, args, n, false));
    Py_RETURN_NONE;
}

/* ---- switching ---- */

/* auto_setup(filter or None, max_depth, what a callback returns to be left alone) */
static PyObject *setup(PyObject *module, PyObject *args)
{
    struct py_state *st = py_state_of(module);
    PyObject *filter, *disable;
    unsigned long long max_depth;
    if (!PyArg_ParseTuple(args, "OKO", &filter, &max_depth, &disable))
        return NULL;
    if (st->auto_index < 0) {
        st->auto_index = PyUnstable_Eval_RequestCodeExtraIndex(free);
        if (st->auto_index < 0) {
            PyErr_SetString(PyExc_RuntimeError,
                            "stave.auto: no free slot for extra data in code objects");
            return NULL;
        }
    }
    while (depth_turn == st->auto_turn && depth > 0) /* what this thread has open ends here */
        end(st);
    st->auto_turn++;
    st->auto_max_depth = max_depth;
    Py_XSETREF(st->disable, Py_NewRef(disable));
    Py_XSETREF(st->auto_filter, filter == Py_None ? NULL : Py_NewRef(filter));
    Py_RETURN_NONE;
}

void py_auto_clear(struct py_state *st)
{
    Py_CLEAR(st->auto_filter);
    Py_CLEAR(st->disable);
}

PyMethodDef py_auto_methods[] = {
    {"auto_setup", setup, METH_VARARGS,
     "auto_setup($module, filter, max_depth, disable, /)\n--\n\nFor stave.auto."},
    {"profile_thread", profile_thread, METH_VARARGS,
     "profile_thread($module, on, /)\n--\n\nFor stave.auto: sys.setprofile."},
    {"mon_begin", PY_FUNCTION(mon_begin), METH_FASTCALL,
     "mon_begin($module, code, /, *args)\n--\n\nFor stave.auto: sys.monitoring."},
    {"mon_end", PY_FUNCTION(mon_end), METH_FASTCALL,
     "mon_end($module, code, /, *args)\n--\n\nFor stave.auto: sys.monitoring."},
    {"mon_throw", PY_FUNCTION(mon_throw), METH_FASTCALL,
     "mon_throw($module, code, /, *args)\n--\n\nFor stave.auto: sys.monitoring."},
    {"mon_unwind", PY_FUNCTION(mon_unwind), METH_FASTCALL,
     "mon_unwind($module, code, /, *args)\n--\n\nFor stave.auto: sys.monitoring."},
    {0}};
